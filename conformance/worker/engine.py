"""Runs requests, in a worker process or, for debugging, inside pytest's process."""

from __future__ import annotations

from typing import Any, Dict, Optional

from conformance.worker import build
from conformance.worker.isolation import GlobalState, prepare_process
from conformance.worker.runner import Runner
from conformance.worker.tracer import sketch


class Engine:
    """Answers requests, with one runner for each device."""

    def __init__(self, profile: Optional[Dict[str, Any]] = None) -> None:
        prepare_process()
        self.profile = profile or {}
        self.global_state = GlobalState()
        # That of the CPU is made before any fork: in some releases looking up the vocabulary imports the compiler.
        self.runners: Dict[str, Runner] = {"cpu": Runner("cpu", self.global_state, {})}

    def run(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Return the answer to a request, with its number `n`; the answer to a sketch request has the `graph`.

        `must_restart` gives the reason when this process must not run another case.
        """
        device = request["device"]
        if device not in self.runners:
            is_described = device.partition(":")[0] == self.profile.get("device")
            self.runners[device] = Runner(device, self.global_state, self.profile if is_described else {})
        is_sketch = request.get("sketch", False)
        outcome = self.runners[device].run(request, sketch if is_sketch else None)
        outcome["n"] = request["n"]
        is_fine = not is_sketch and outcome["status"] in ("pass", "unsupported")
        if device != "cpu" and not is_fine and not build.answers(device):
            outcome["must_restart"] = "the device did not answer any more"
        elif not self.global_state.is_clean():
            outcome["must_restart"] = "it left a mode in force that nothing can end"
        return outcome
