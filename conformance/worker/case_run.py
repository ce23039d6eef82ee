"""Runs one case: its statements in order, its expectations at their places, up to the first step that fails."""

from __future__ import annotations

import io
import linecache
import warnings
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from conformance.worker import confinement
from conformance.worker.checks import difference_of
from conformance.worker.defects import internal_error, is_of_the_suite
from conformance.worker.diagnosis import text_behind
from conformance.worker.failures import (
    exception_name,
    failure,
    failures_of_error,
    failures_of_warnings,
    may_have_other_words,
)
from conformance.worker.functions import in_thread, print_to
from conformance.worker.lacking import Declared, is_out_of_memory, may_be_lacking, message_of, why_lacking
from conformance.worker.messages import give_text
from conformance.worker.notes import Notes
from conformance.worker.reference import References
from conformance.worker.sandbox import PLACE, compile_step, compile_text
from conformance.worker.storage import why_hidden
from conformance.worker.values import Unobservable, event_of, plain

OF_PYTHON = (AttributeError, TypeError, IndexError, KeyError)  # raised by values that a step has not put there


class Ended(Exception):
    """Ends a case with a result, as what it asks can't be judged."""

    def __init__(self, result: Dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class Shared(NamedTuple):
    """What all cases on a device share."""

    device: str
    offered: Dict[str, Any]
    references: References
    synchronize: Callable[[], None]
    wait: Callable[[], None]
    notes: Notes
    declared: Declared


def source_of(steps: List[Dict[str, Any]], file: str) -> Tuple[int, None, List[str], str]:
    """Return the statements, each in its line of the file, as `linecache` has the source of a module without a file."""
    lines: Dict[int, str] = {}
    for step in steps:
        lines.update(enumerate(step.get("do", "").splitlines(), step["line"]))
    text = [f"{lines.get(number, '')}\n" for number in range(1, max(lines, default=0) + 1)]
    return sum(map(len, text)), None, text, file


class CaseRun:
    """One case while it runs."""

    def __init__(self, shared: Shared, program: Dict[str, Any]) -> None:
        self.device = shared.device
        self.dtype_name: str = program["dtype"]
        self.dtype: torch.dtype = getattr(torch, self.dtype_name)
        self.references = shared.references
        self.synchronize = shared.synchronize
        self.wait = shared.wait
        self.notes = shared.notes
        self.declared = shared.declared
        self.file = f"{program['file']} (no source)"  # a compiler would find the file, and take its lines for Python
        self.steps: List[Dict[str, Any]] = program["steps"]
        # Of a function without a source torch's compiler traces a wrapper instead, which differs in what it looks at.
        linecache.cache[self.file] = source_of(self.steps, self.file)
        self.log: List[Any] = []
        self.warned: List[warnings.WarningMessage] = []
        self.errors: Dict[str, bool] = {}
        self.printed = io.StringIO()
        self.judged = 0  # expectations that could be looked at
        self.unobserved: List[Dict[str, Any]] = []  # and those that couldn't
        first = self.steps[0] if self.steps else {"number": 0, "line": 1}
        self.step: int = first["number"]
        self.line: int = first["line"]
        # In a mode it is a thread of its own, which the mode doesn't reach, that computes what is expected.
        self.apart: Callable[..., Any] = in_thread if "mode" in program else call
        self.names: Dict[str, Any] = vars(PLACE)
        self.names.update(
            __builtins__=shared.offered, __offered__=shared.offered, log=plainly(self.add_to_log),
            dtype=self.dtype, print=plainly(partial(print_to, self.printed)),
        )  # fmt: skip

    def add_to_log(self, *event: Any) -> None:
        self.log.append(event_of(event))

    def guarded(self, go: Callable[[CaseRun], Dict[str, Any]]) -> Dict[str, Any]:
        """Return the result of `go`, or that of the current step if an error was raised outside statements."""
        try:
            result = go(self)
        except (Exception, GeneratorExit) as error:
            result = {"step": self.step, "line": self.line, **(self.own_defect(error) or self.unexpected(error))}
        if self.printed.getvalue():
            result = {**result, "printed": self.printed.getvalue()}
        return {**result, "unobserved": self.unobserved} if self.unobserved else result

    def all_steps(self) -> Dict[str, Any]:
        for step in self.steps:
            self.step, self.line = step["number"], step["line"]
            self.notes.step(self.step, self.line)
            problem = self.statements(step) if "do" in step else self.expectations(step)
            if problem is not None:
                return {"step": self.step, "line": self.line, **problem}
        try:
            self.wait()
        except Exception as error:  # of this case, though it comes late
            return {"step": self.step, "line": self.line, **self.unexpected(error)}
        if self.unobserved and not self.judged:
            first = self.unobserved[0]
            return {"status": "unsupported", "reason": f"nothing can be observed: {first['path']}: {first['reason']}"}
        return {"status": "pass"}

    def live(self, expression: Dict[str, str]) -> Any:
        """Return the value of an expression on the objects of the case."""
        return self.evaluate(expression["expr"])

    def evaluate(self, text: str) -> Any:
        if text in self.names:
            return self.names[text]
        return eval(compile_text(text, "eval"), self.names)

    def reference(self, value: Any) -> Any:
        """Return an expected value; expressions in it are evaluated on copies."""
        if isinstance(value, dict) and "expr" in value:
            return self.references.evaluate(compile_text(value["expr"], "eval"), self.names)
        if type(value) is list:
            return [item if type(item) is float else plain(self.reference(item)) for item in value]
        return value

    def statements(self, step: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        before = len(self.warned)
        raised: Optional[BaseException] = None
        try:
            exec(compile_step(step["do"], self.file, self.line), self.names)
        except (Exception, GeneratorExit) as error:  # the exceptions of the vocabulary; others end the worker
            raised = error
            defect = self.own_defect(error)
            if defect is not None:
                return defect
        given = self.warned[before:]
        if raised is not None and "raises" not in step:
            return self.unexpected(raised)
        self.judged += "raises" in step or "warns" in step
        wrong = failures_of_error(step["raises"], raised) if "raises" in step else []
        failures = failures_of_warnings(step["warns"], given, self.device) if "warns" in step else []
        lacking = self.lacking(raised) if raised is not None and (wrong or failures) else None
        if wrong and not may_have_other_words(step["raises"], raised, self.device):
            failures = wrong + failures
        if raised is not None:
            raised.__traceback__ = None  # its frames keep tensors alive
        return lacking or (failed(failures) if failures else None)

    def expectations(self, step: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        failures: List[Dict[str, Any]] = []
        self.synchronize()
        try:
            for entry in step["expect"]:
                self.line = entry["line"]
                failures += self.failures_of(entry)
        except Ended as ended:
            return ended.result
        if not failures:
            return None
        self.line = failures[0]["line"]
        return failed(failures)

    def failures_of(self, entry: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        """Yield what an entry of an expectation asks and does not hold."""
        hidden = self.why_hidden(entry)
        if hidden:
            self.leave_out(entry["line"], entry["subject"], hidden)
            return
        try:
            subject = self.log if is_log(entry) else self.evaluate(entry["subject"])
        except Unobservable as error:
            self.leave_out(entry["line"], entry["subject"], str(error))
            return
        except (Exception, GeneratorExit) as error:
            told = self.told(error)
            hidden = self.why_hidden_behind(entry["subject"]) if isinstance(error, OF_PYTHON) else ""
            if hidden:
                self.leave_out(entry["line"], entry["subject"], hidden)
            else:
                yield failure(entry["line"], entry["subject"], "a value", told, exception_name(error))
            return
        tolerance = {name: value for name, value, _ in entry["checks"] if name in ("rtol", "atol")}
        for name, expected, line in entry["checks"]:
            if name not in tolerance:
                self.line = line
                yield from self.failures_of_check(entry["subject"], subject, name, expected, tolerance)

    def failures_of_check(
        self, text: str, subject: Any, name: str, expected: Any, tolerance: Dict[str, Any]
    ) -> Iterator[Dict[str, Any]]:
        """Yield the failure of a check, if it fails: `subject` is the value of `text`."""
        path = text if name in ("value", "log") else f"{text}.{name}"
        exception = ""
        self.judged += 1
        try:
            difference: Optional[Tuple[str, str]] = self.apart(difference_of, subject, name, expected, self, tolerance)
        except Unobservable as error:
            self.judged -= not error.within
            self.leave_out(self.line, path + error.within, str(error))
            return
        except (Exception, GeneratorExit) as error:
            difference = ("no error", self.told(error))
            exception = exception_name(error)
            error.__traceback__ = None
        if difference is None:
            return
        hidden = "" if isinstance(subject, torch.Tensor) else self.why_hidden_behind(text)
        if hidden:
            self.judged -= 1
            self.leave_out(self.line, path, hidden)
        else:
            yield failure(self.line, path, *difference, exception)

    def leave_out(self, line: int, path: str, why: str) -> None:
        self.unobserved.append({"line": line, "path": path, "reason": why})

    def told(self, error: BaseException) -> str:
        """Return an error that looking has raised, in words; raise Ended if it says more than that of the case."""
        ending = self.own_defect(error) or self.lacking(error)
        if ending is not None:
            raise Ended(ending)
        text: str = plain(error)
        return text

    def why_hidden(self, entry: Dict[str, Any]) -> str:
        """Return why the device can't show what an expression, or a step that logs, looks at; "" if it can."""
        steps = [step.get("do", "") for step in self.steps] if is_log(entry) else []
        return why_hidden("\n".join([entry["subject"], *steps]), self.device)

    def why_hidden_behind(self, text: str) -> str:
        """Return why the device can't show what statements have read that an expression comes from; "" if it can."""
        return why_hidden(text_behind(text, self.steps), self.device)

    def unexpected(self, error: BaseException) -> Dict[str, Any]:
        """Return the result of a step that raised an error that it doesn't expect."""
        lacking = self.lacking(error)
        lines: List[Tuple[int, str]] = []
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.file:
                lines.append((trace.tb_lineno, trace.tb_frame.f_code.co_name))
            trace = trace.tb_next
        error.__traceback__ = None
        if lacking is not None:
            return lacking
        if lines:
            self.line = lines[0][0]
        return {
            "status": "error",
            "failures": [failure(self.line, "", "no error", f"{type(error).__name__}: {error}", exception_name(error))],
            "traceback": lines,
        }

    def lacking(self, error: BaseException) -> Optional[Dict[str, Any]]:
        """Return the result `unsupported` if `error` reports that this device or build lacks a feature."""
        unobservable = isinstance(error, Unobservable)  # such as elements for the log
        reason = str(error) if unobservable else why_lacking(error, self.device, self.dtype_name, self.declared)
        reason = reason or confinement.why_refused(error)
        if reason is None and not is_out_of_memory(error):
            self.errors[message_of(error)] = may_be_lacking(error)
        return None if reason is None else {"status": "unsupported", "reason": reason}

    def own_defect(self, error: BaseException) -> Optional[Dict[str, Any]]:
        """Return the result `internal-error` if the suite itself raised `error`, whose text can be had from here on."""
        give_text(error)
        return internal_error(error) if is_of_the_suite(error, self.file) else None


def call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def is_log(entry: Dict[str, Any]) -> bool:
    return bool(entry["checks"][0][0] == "log")


def failed(failures: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {"status": "fail", "failures": failures}


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that shows nothing of the object that another is bound to, and whose copy it is itself."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called
