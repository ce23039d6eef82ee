"""Finds out whether a device lacks what a case needs that has not passed there, or is at fault."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from typing import Any, Callable, Collection, Dict, List, Optional, Protocol, Sequence, Set, Tuple

from conformance.worker import features
from conformance.worker.lacking import (
    COPIED,
    REASON,
    Declared,
    is_of_module,
    may_be_lacking,
    message_of,
    why_lacking,
    why_left_out,
)
from conformance.worker.layout import Layouts, may_be_of_layout
from conformance.worker.limited import checks_of, is_alike
from conformance.worker.notes import Notes
from conformance.worker.probing import Call, FunctionRecorder, Prober, Recorder, Waiting
from conformance.worker.toolchain import is_of_quotes, why_not_built
from conformance.worker.values import FULL_DEVICES, one_line

TRUTHS = re.compile(
    r"(?:true|false|null|[\[\], ])+(?: \(.*\))?", re.DOTALL
)  # what is freed or not, and how it was expected
IDENTIFIER = re.compile(r"\b[^\W\d]\w*")
TOLD = 40  # characters of an error's message by which it is known again
LimitedRun = Callable[[Dict[str, Any], Sequence[str]], Optional[Dict[str, Any]]]


class Runs(Protocol):
    """What runs cases on a device; of the last one, `errors` has the messages and `warned` those of warnings."""

    device: str
    declared: Declared
    prober: Prober
    notes: Notes
    errors: Dict[str, bool]  # whether it may speak of something missing
    warned: List[str]

    def run(self, program: Dict[str, Any], go: Optional[Callable[[Any], Dict[str, Any]]] = None) -> Dict[str, Any]: ...


class Diagnosis:
    """What the device of a runner lacks for a case, or for a way to differentiate an operation."""

    def __init__(self, runner: Runs) -> None:
        self.runner = runner
        self.device = runner.device
        self.declared = runner.declared
        self.prober = runner.prober

    def why_lacking(self, program: Dict[str, Any], answer: Dict[str, Any], limited: LimitedRun) -> Optional[str]:
        """Return what the device lacks for the case that ran last and did not pass, or None where it is at fault.

        `answer` is noted, since what is tried here may end the worker. `limited` runs a case on the CPU under limits:
        what a device lacks without an error excuses only how the CPU fails under the same limit.

        The case is run again to see which operation raised the error, and in which dtypes it computes. Then it may end
        a step earlier: on some devices errors of operations come late.
        """
        errors = self.runner.errors
        failures = answer.get("failures", [])
        if self.device.partition(":")[0] in FULL_DEVICES:
            return self.why_not_generated(errors, program["steps"])
        left_out = why_left_out(self.runner.warned, self.device)
        if left_out is not None:
            return left_out
        self.runner.notes.answer(answer)
        if may_be_of_layout(failures):
            layouts = Layouts(self.device)
            self.runner.run(program, within(layouts))
            why = layouts.why_different(failures)
            if why is not None:
                return why
        recorder, functions = Recorder(self.device, self.prober.wait), FunctionRecorder(self.device)
        recorded = self.runner.run(program, within(functions, recorder))
        is_seen = recorder.raised is not None and message_of(recorder.raised.error) in errors
        if errors and not is_seen and functions.raised is None:
            # Some operations of a device raise another error while they are looked at, and torch.tensor() hides what it
            # does; functions don't.
            functions = FunctionRecorder(self.device, is_on=True)
            self.runner.run(program, within(functions))
        why = self.why_raised(errors, recorder.raised, functions.raised)
        behind = text_behind(" ".join(each["path"] for each in failures), program["steps"])
        if why is None and recorder.raised is not None and fails_as(answer, recorded):
            why = self.why_caught(recorder.raised, failures, behind)
        why = why or why_module_missing(failures, self.device)
        if why is None and looks_at_holders(behind, failures, errors):
            waited = self.runner.run(program, within(Waiting(self.prober.wait)))
            if waited["status"] == "pass":
                why = f"{self.device} holds what it computes with until that is done"
        if "repr(" in repr(program["steps"]):
            recorder.used.add("repr")
        why = why or self.why_not_compiled(errors, behind, program["steps"])
        why = why or self.prober.why_other_dtype(failures) or self.prober.why_silent(recorder.used)
        limits = {**self.prober.limits(recorder.used), **limits_of_copies(self.runner.warned, self.device)}
        return why or why_limited(program, answer, limits, limited)

    def why_raised(self, errors: Dict[str, bool], call: Optional[Call], called: Optional[Call]) -> Optional[str]:
        """Return what the device lacks that raised one of these errors: by an operation, or by a function of torch."""
        if call is not None and message_of(call.error) in errors:
            return self.prober.why_lacking(call) or self.prober.why_raising(errors)
        why = next((message for message, may_be in errors.items() if may_be), None) or self.prober.why_raising(errors)
        if why is None and called is not None and message_of(called.error) in errors:
            why = self.prober.why_not_working(called)
        return why

    def why_caught(self, call: Call, failures: Sequence[Dict[str, Any]], behind: str) -> Optional[str]:
        """Return what the device lacks that raised an error which the case has caught.

        What it logs or compares shows the error, or goes by it: `behind` is the text of that.
        """
        catches = "except " in behind
        why = None
        if catches or is_told_in(failures, call.error):
            why = why_lacking(call.error, self.device, "", self.declared)
        return why or (self.prober.why_lacking(call) if catches else None)

    def why_not_compiled(self, errors: Collection[str], behind: str, steps: Sequence[Any]) -> Optional[str]:
        """Return that nothing can be compiled for the device, if a compiled function has raised, caught or not."""
        raised = any(map(is_of_compiler, errors)) or ("except " in behind and "compiled(" in behind)
        # What takes operations apart asks, too, what code there is for the device.
        generates = any(backend in repr(steps) for backend in ("inductor", "decomp_partition"))
        tried = ("compiler", "generated-code") if generates else ("compiler",)
        lacks = next((each for each in tried if raised and self.prober.lacks(each)), None)
        return None if lacks is None else f"{self.device} lacks {lacks}: {self.prober.why_missing(lacks)}"

    def why_not_generated(self, errors: Collection[str], steps: Sequence[Any]) -> Optional[str]:
        """Return that code that is generated can't be built or loaded in this environment, if such a function raised.

        That is found out by the smallest function. A compiler that fails with it for any other reason is at fault.
        """
        if "inductor" in repr(steps) and any(map(is_of_compiler, errors)):
            try:
                features.generates_code(self.device)
            except Exception as error:
                why = why_of_environment(error)
                return f"no generated code can be built or loaded here: {why}" if why else None
        return None

    def why_lacking_way(self, error: Exception, again: Callable[[], Any]) -> Optional[str]:
        """Return what the device lacks for one way to differentiate an operation, which raises an error again.

        On a card, whose kernels are PyTorch's own, each refusal is taken for one: what it says is left out.
        """
        why = why_lacking(error, self.device, "", self.declared)
        if why is not None or self.device.partition(":")[0] in FULL_DEVICES:
            return why or message_of(error)
        recorder, functions = Recorder(self.device, self.prober.wait), FunctionRecorder(self.device)
        with contextlib.suppress(Exception), functions, recorder:
            again()
        told = message_of(error)
        if recorder.raised is None:  # some formulas are others while they are looked at
            return self.prober.why_as_before(told)
        return self.why_raised({told: may_be_lacking(error)}, recorder.raised, functions.raised)


def fails_as(answer: Dict[str, Any], recorded: Dict[str, Any]) -> bool:
    """Whether a case failed while it was looked at as it did before: some operations raise then alone."""
    return answer.get("step") == recorded.get("step") and checks_of(answer) <= checks_of(recorded)


def is_of_compiler(message: str) -> bool:
    """Whether a message, which begins with the type of the error, is of an error of torch's compiler."""
    errors = (sys.modules.get(f"torch.{part}.exc") for part in ("_dynamo", "_inductor"))
    return any(hasattr(each, message.partition(":")[0]) for each in errors)


def why_of_environment(error: BaseException) -> str:
    """Return why an error is no fault of torch, or "".

    It, or one that led to it, is of the file system: what may not be run, is missing, or is full. Or a C++ compiler can
    build nothing here, or can't be called for the names of directories.
    """
    led: Optional[BaseException] = error
    while led is not None:
        is_told = isinstance(led, OSError) or is_of_quotes(led)
        why = message_of(error) if is_told else why_not_built(str(led))
        if why:
            return why
        led = led.__cause__ or led.__context__
    return ""


def looks_at_holders(behind: str, failures: Sequence[Dict[str, Any]], errors: Collection[str]) -> bool:
    """Whether a case failed by who else has a tensor: an error that counts them, or that one is freed or isn't."""
    if errors:
        return any("use_count" in each for each in errors)
    said = [text for each in failures for text in (each["expected"], each["observed"])]
    return "weakref" in behind and all(map(TRUTHS.fullmatch, said))


def is_told_in(failures: Sequence[Dict[str, Any]], error: BaseException) -> bool:
    """Whether what was observed in place of what was expected has the beginning of an error's message."""
    told = one_line(str(error))[:TOLD]
    return bool(told) and any(told in one_line(each["observed"]) for each in failures)


def why_module_missing(failures: Sequence[Dict[str, Any]], device: str) -> Optional[str]:
    """Return what was observed if all that fails shows an error, which the case has caught, that torch lacks a module.

    No operation has raised it: a function of torch has looked for the module of the device.
    """
    observed = [one_line(each["observed"]) for each in failures]
    is_all = bool(observed) and all(is_of_module(text, device.partition(":")[0]) for text in observed)
    return observed[0][:REASON] if is_all else None


def why_limited(
    program: Dict[str, Any], answer: Dict[str, Any], limits: Dict[str, str], limited: LimitedRun
) -> Optional[str]:
    """Return the reason for a limit under which the CPU fails as the device did: one of `limits`, or all together.

    It must not do so without a limit: that would be a fault of PyTorch.
    """
    if not limits or is_alike(answer, limited(program, [])):
        return None
    ways = [[name] for name in limits] + ([list(limits)] if len(limits) > 1 else [])
    found = next((names for names in ways if is_alike(answer, limited(program, names))), None)
    return "; ".join(dict.fromkeys(limits[name] for name in found)) if found else None


def limits_of_copies(warned: Sequence[str], device: str) -> Dict[str, str]:
    """Return the limit under which operations that a device lacks give copies in place of views, with the reason."""
    found = map(COPIED.search, warned)
    names = sorted({match[1] for match in found if match is not None})
    limit = " ".join(["copying", *names])
    return {limit: f"{device} lacks {', '.join(names)}, and copies in place of views"} if names else {}


def within(*modes: Any) -> Callable[[Any], Dict[str, Any]]:
    """Return the run through all steps while modes are on."""

    def go(run: Any) -> Dict[str, Any]:
        with contextlib.ExitStack() as stack:
            for mode in modes:
                stack.enter_context(mode)
            outcome: Dict[str, Any] = run.all_steps()
        return outcome

    return go


def text_behind(subject: str, steps: Sequence[Dict[str, Any]]) -> str:
    """Return an expression with all statements that its names come from: functions, and what was computed with them.

    A gradient comes from what backward() was called on, too.
    """
    wanted = set(IDENTIFIER.findall(subject))
    left = [each["do"] for each in steps if "do" in each]
    if "log" in wanted:
        return "\n".join([subject, *left])
    if "grad" in wanted:
        wanted.update(*(names_in(text)[1] for text in left if "backward(" in text))
    found = [subject]
    while True:
        parts = [(text, *names_in(text)) for text in left]
        behind = [part for part in parts if wanted & part[1]]
        if not behind:
            return "\n".join(found)
        found += [text for text, _, _ in behind]
        left = [text for text, made, _ in parts if not wanted & made]
        wanted.update(*(used for _, _, used in behind))


def names_in(text: str) -> Tuple[Set[str], Set[str]]:
    """Return the names that statements give to something, and all that are in them."""
    nodes = list(ast.walk(compile(text, "", "exec", ast.PyCF_ONLY_AST)))
    names = [each for each in nodes if isinstance(each, ast.Name)]
    defined = {each.name for each in nodes if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    given = {each.id for each in names if not isinstance(each.ctx, ast.Load)}
    return defined | given, {each.id for each in names}
