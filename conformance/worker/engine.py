"""Runs requests: the part of a worker that is the same inside a process of its own and inside pytest's."""

from __future__ import annotations

from typing import Any, Dict

from conformance.worker import build
from conformance.worker.runner import Runner
from conformance.worker.state import World, prepare_process


class Engine:
    """Answers requests, with one runner for each device."""

    def __init__(self) -> None:
        prepare_process()
        self.world = World()
        self.runners: Dict[str, Runner] = {}

    def run(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Return the outcome of a request, numbered as it is.

        `spent` is added when this process must not run another case, and says why.
        """
        device = request["device"]
        if device not in self.runners:
            self.runners[device] = Runner(device, self.world)
        outcome = self.runners[device].run(request)
        outcome["n"] = request["n"]
        if device != "cpu" and outcome["status"] not in ("pass", "unsupported") and not build.answers(device):
            outcome["spent"] = "the device did not answer any more"
        elif not self.world.is_clean():
            outcome["spent"] = "it left a mode in force that nothing can end"
        return outcome
