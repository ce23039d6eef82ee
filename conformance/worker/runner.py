"""Runs one case: its statements in order, its expectations at their places, up to the first step that fails."""

from __future__ import annotations

import contextlib
import gc
import io
import time
import warnings
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch

from conformance.worker import confinement
from conformance.worker.backend import named
from conformance.worker.checks import difference_of
from conformance.worker.defects import internal_error, is_of_the_suite
from conformance.worker.diagnosis import Diagnosis, text_behind
from conformance.worker.failures import (
    exception_name,
    failure,
    failures_of_error,
    failures_of_warnings,
    may_have_other_words,
)
from conformance.worker.functions import in_thread, print_to
from conformance.worker.isolation import GlobalState, forget
from conformance.worker.lacking import declared_by, is_out_of_memory, may_be_lacking, message_of, why_lacking
from conformance.worker.modes import mode_of
from conformance.worker.namespace import offer
from conformance.worker.notes import Notes
from conformance.worker.probing import Prober, waiter
from conformance.worker.reference import References
from conformance.worker.sandbox import MODULE, Namespace, compile_step, compile_text
from conformance.worker.storage import why_hidden
from conformance.worker.values import Unobservable, event_of, plain


class Runner:
    """Runs cases on one device, with objects that all cases share."""

    def __init__(self, device: str, global_state: GlobalState, notes: Notes, profile: Dict[str, Any]) -> None:
        device = "cpu" if device.startswith("cpu:") else device  # torch treats cpu:0 as another device
        self.device = device
        self.global_state = global_state
        self.notes = notes
        self.generator = torch.Generator()
        self.offered = offer(device, self.generator)
        # Expected values are computed on the CPU for every target.
        self.references = References(self.offered if device == "cpu" else offer("cpu", self.generator))
        self.declared = declared_by(profile)
        self.synchronize = synchronizer(device, profile.get("synchronize", ""))
        self.errors: Dict[str, bool] = {}  # messages in the last case, and whether they may speak of something missing
        self.warned: List[str] = []  # the texts of warnings in the last case
        self.prober = Prober(device, self.declared.absent)
        if device != "cpu":
            lacking = Diagnosis(self).why_lacking_way
            self.offered["derivatives"] = plainly(partial(self.offered["derivatives"], lacking=lacking))
            vars(self.offered["gc"])["collect"] = plainly(self.collect)
        global_state.share(shared_classes(self.offered))

    def run(self, program: Dict[str, Any], go: Optional[Callable[[CaseRun], Dict[str, Any]]] = None) -> Dict[str, Any]:
        """Run `program` (`file`, `dtype`, `steps`) and return its outcome: `status` and what goes with it.

        `go` replaces the usual run through the steps.
        """
        begin = time.perf_counter()
        run = CaseRun(self, program)
        self.errors = run.errors
        self.global_state.begin(self.device, run.dtype, self.generator)
        try:
            with warnings.catch_warnings(record=True) as run.warned:
                warnings.simplefilter("always")
                outcome = run.guarded(go or CaseRun.all_steps)
        finally:
            self.warned = [text_of(warning) for warning in run.warned]  # not themselves, which hold objects of the case
            run.warned.clear()
            forget(run.names)
            del run
            self.global_state.restore()
        outcome["seconds"] = round(time.perf_counter() - begin, 6)
        return outcome

    def collect(self) -> int:
        """Collect garbage once the device is done, which holds what it computes with."""
        self.synchronize()
        return gc.collect()


def in_mode(name: str) -> Callable[[CaseRun], Dict[str, Any]]:
    """Return the run through all steps in a mode."""

    def go(run: CaseRun) -> Dict[str, Any]:
        with mode_of(name, run.device):
            outcome: Dict[str, Any] = run.all_steps()
        return outcome

    return go


def synchronizer(device: str, own: str) -> Callable[[], None]:
    """Return a function that waits until a device and autograd's threads are done; it never raises.

    `own` names a function of the back-end that waits for the device, if the device's module has none.
    """
    waits = [] if device == "cpu" else [engine_wait(device), waiter(device)]
    if own:
        waits.append(named(own))

    def synchronize() -> None:
        for wait in waits:
            with contextlib.suppress(Exception):  # the cases will show the failure
                wait()

    return synchronize


def engine_wait(device: str) -> Callable[[], Any]:
    """Return a function that waits until autograd's threads have released the objects of earlier tasks.

    On a device, backward runs in a thread of the engine, which may hold the graph for a while after the result is
    ready. It releases one task before it begins the next, so a small task is run.
    """
    try:
        leaf = torch.ones((), device=device, requires_grad=True)
        root, weight = leaf * 1, torch.ones((), device=device)  # made now, since a case may disable gradients
    except Exception:
        return lambda: None  # the device can't run that
    return lambda: torch.autograd.grad(root, leaf, weight, retain_graph=True)


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that shows nothing of the object that another is bound to, and whose copy it is itself."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called


def shared_classes(offered: Dict[str, Any]) -> Set[type]:
    """Return the classes of torch in the vocabulary."""
    spaces = [value for value in offered.values() if isinstance(value, Namespace)]
    found = [value for space in spaces for value in vars(space).values() if isinstance(value, type)]
    return {cls for cls in found if cls.__module__.startswith("torch.") or cls is torch.Tensor}


class CaseRun:
    """One case while it runs."""

    def __init__(self, runner: Runner, program: Dict[str, Any]) -> None:
        self.device = runner.device
        self.dtype_name: str = program["dtype"]
        self.dtype: torch.dtype = getattr(torch, self.dtype_name)
        self.references = runner.references
        self.synchronize = runner.synchronize
        self.wait = runner.prober.wait
        self.notes = runner.notes
        self.declared = runner.declared
        self.file: str = program["file"]
        self.steps: List[Dict[str, Any]] = program["steps"]
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
        self.names: Dict[str, Any] = {
            "__builtins__": runner.offered, "__name__": MODULE, "log": plainly(self.add_to_log), "dtype": self.dtype,
            "print": plainly(partial(print_to, self.printed)),
        }  # fmt: skip

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
        failures = []
        self.synchronize()
        for entry in step["expect"]:
            self.line = entry["line"]
            hidden = self.why_hidden(entry)
            if hidden:
                self.unobserved.append({"line": self.line, "path": entry["subject"], "reason": hidden})
                continue
            try:
                subject = self.log if is_log(entry) else self.evaluate(entry["subject"])
            except Unobservable as error:
                self.unobserved.append({"line": self.line, "path": entry["subject"], "reason": str(error)})
                continue
            except (Exception, GeneratorExit) as error:
                ending = self.own_defect(error) or self.lacking(error)
                if ending is not None:
                    return ending
                failures.append(failure(self.line, entry["subject"], "a value", plain(error), exception_name(error)))
                continue
            tolerance = {name: value for name, value, _ in entry["checks"] if name in ("rtol", "atol")}
            for name, expected, line in entry["checks"]:
                if name in tolerance:
                    continue
                self.line = line
                exception = ""
                path = entry["subject"] if name in ("value", "log") else f"{entry['subject']}.{name}"
                self.judged += 1
                try:
                    difference: Optional[Tuple[str, str]] = self.apart(
                        difference_of, subject, name, expected, self, tolerance
                    )
                except Unobservable as error:
                    self.judged -= not error.within
                    self.unobserved.append({"line": line, "path": path + error.within, "reason": str(error)})
                    continue
                except (Exception, GeneratorExit) as error:
                    ending = self.own_defect(error) or self.lacking(error)
                    if ending is not None:
                        return ending
                    difference = ("no error", plain(error))
                    exception = exception_name(error)
                    error.__traceback__ = None
                if difference is None:
                    continue
                of_memory = "" if isinstance(subject, torch.Tensor) else text_behind(entry["subject"], self.steps)
                hidden = why_hidden(of_memory, self.device)
                if hidden:
                    self.judged -= 1
                    self.unobserved.append({"line": line, "path": path, "reason": hidden})
                else:
                    failures.append(failure(line, path, *difference, exception))
        if not failures:
            return None
        self.line = failures[0]["line"]
        return failed(failures)

    def why_hidden(self, entry: Dict[str, Any]) -> str:
        """Return why the device can't show what an expression, or a step that logs, looks at; "" if it can."""
        steps = [step.get("do", "") for step in self.steps] if is_log(entry) else []
        return why_hidden("\n".join([entry["subject"], *steps]), self.device)

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
        """Return the result `internal-error` if the suite itself raised `error`."""
        return internal_error(error) if is_of_the_suite(error, self.file) else None


def call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def text_of(warning: warnings.WarningMessage) -> str:
    """Return the text of a warning, "" where objects of the case can't be shown."""
    try:
        return str(warning.message)
    except Exception:
        return ""


def is_log(entry: Dict[str, Any]) -> bool:
    return bool(entry["checks"][0][0] == "log")


def failed(failures: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {"status": "fail", "failures": failures}
