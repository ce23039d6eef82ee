"""Runs requests, in a worker process or, for debugging, inside pytest's process."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from conformance.worker import build
from conformance.worker.diagnosis import Diagnosis
from conformance.worker.isolation import GlobalState, prepare_process
from conformance.worker.limited import Limits
from conformance.worker.modes import mode_of
from conformance.worker.notes import Notes
from conformance.worker.reach import reach
from conformance.worker.runner import Runner, in_mode
from conformance.worker.tracer import sketch


class Engine:
    """Answers requests, with one runner for each device.

    Cases are run under limits in a process beside this one, where there is one.
    """

    def __init__(self, profile: Optional[Dict[str, Any]] = None, beside: Optional[Any] = None) -> None:
        prepare_process()
        self.beside = beside
        self.profile = profile or {}
        self.global_state = GlobalState()
        self.notes = Notes()
        # That of the CPU is made before any fork: in some releases looking up the vocabulary imports the compiler.
        self.runners: Dict[str, Runner] = {"cpu": Runner("cpu", self.global_state, self.notes, {})}

    def run(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Return the answer to a request, with its number `n`.

        The answer to a sketch request has the `graph`, one about the reach of a case what it `uses`. The answer to one
        about a `feature` has the `reason` why the device lacks it, or ""; one that `enters` a mode, why that can't be.

        `must_restart` gives the reason when this process must not run another case.
        """
        device = request["device"]
        if device not in self.runners:
            is_described = device.partition(":")[0] == self.profile.get("device")
            profile = self.profile if is_described else {}
            self.runners[device] = Runner(device, self.global_state, self.notes, profile)
        self.notes.begin(request["n"])
        is_sketch = request.get("sketch", False)
        is_look = is_sketch or request.get("reach", False)
        runner = self.runners[device]
        if "enters" in request:
            reason = why_unusable(request["enters"], device, self.global_state)
            return {"n": request["n"], "status": "pass", "reason": reason}
        if "feature" in request:
            return {"n": request["n"], "status": "pass", "reason": runner.prober.why_missing(request["feature"])}
        if "limits" in request:
            return runner.run(request, Limits(request["limits"]))
        if "mode" in request:
            outcome = runner.run(request, in_mode(request["mode"]))
        else:
            outcome = runner.run(request, (sketch if is_sketch else reach) if is_look else None)
        is_fine = not is_look and outcome["status"] in ("pass", "unsupported")
        if not is_look and outcome["status"] in ("fail", "error") and build.answers(device):
            why = Diagnosis(runner).why_lacking(request, {"n": request["n"], **outcome}, self.limited)
            if why is not None:
                outcome = {**outcome, "status": "unsupported", "reason": why}
                outcome.pop("failures", None)
                outcome.pop("traceback", None)
        outcome["n"] = request["n"]
        if device != "cpu" and not is_fine and not build.answers(device):
            outcome["must_restart"] = "the device did not answer any more"
        elif self.global_state.overwritten:
            outcome["must_restart"] = self.global_state.overwritten
        elif not self.global_state.is_clean():
            outcome["must_restart"] = "it left a mode in force that nothing can end"
        return outcome

    def limited(self, request: Dict[str, Any], names: Sequence[str]) -> Optional[Dict[str, Any]]:
        """Return how a case ends on the CPU under limits, or None where that can't be found out."""
        limited = {**request, "device": "cpu", "limits": list(names)}
        return self.run(limited) if self.beside is None else self.beside.run(limited)


def why_unusable(name: str, device: str, state: GlobalState) -> str:
    """Return why no case can run in a mode: entering or leaving it raises an error, or it leaves another state."""
    for error in (None, ValueError("an error of a case")):
        try:
            with mode_of(name, device):
                if error is not None:
                    raise error
        except Exception as raised:
            if raised is not error:
                return f"{type(raised).__name__}: {raised}"
        changed = state.changed()
        if changed:
            state.restore()
            return f"leaves {', '.join(changed)} changed{' when there is an error inside' * bool(error)}"
    return ""
