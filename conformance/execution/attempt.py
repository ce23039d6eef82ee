"""Runs cases, one after another, on the CPU with the torch of an interpreter."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from conformance.execution.fork_server import Interpreter
from conformance.execution.program import outcome_without_run, program_of
from conformance.execution.workers import LOOKING_SECONDS, Workers
from conformance.model.build import Build, Target
from conformance.model.case import Case
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome, outcome_of

CASE_SECONDS = 120.0
TARGET = Target(device="cpu", dtype="float32")
UNLIKELY = "what nothing is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """The torch of an interpreter, on whose CPU cases are run."""

    workers: Workers
    build: Build

    @classmethod
    def start(cls, python: str, *, trusts: bool, modules: tuple[str, ...] = ()) -> "Torch":
        """Start the torch of an interpreter, with a sandbox unless what is run is trusted; raise Refused without one.

        It is to be closed.
        """
        interpreter = Interpreter(python, modules=modules, devices=("cpu",))
        workers = Workers(interpreter, CASE_SECONDS, sandbox="off" if trusts else "required")
        try:
            return cls(workers=workers, build=workers.handshake())
        except BaseException:
            workers.close()
            raise

    def __enter__(self) -> "Torch":
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.close()

    def outcome(self, case: Case) -> Outcome:
        """Return the outcome of a case, whatever known issues say."""
        return outcome_without_run(case, TARGET, self.build) or self.run(self.program(case))

    def program(self, case: Case) -> dict[str, Any]:
        return program_of(case, TARGET, self.build.torch)

    def run(self, program: dict[str, Any]) -> Outcome:
        self.workers.request(0, program)
        return outcome_of(self.workers.outcome(0))

    def uses(self, program: dict[str, Any]) -> list[str]:
        """Return the formulas that a program goes through, by the names of their nodes, and how it uses them."""
        self.workers.request(0, {**program, "reach": True})
        return list(self.workers.outcome(0).get("uses", ()))

    def read(self, program: dict[str, Any], expressions: Iterable[str]) -> dict[str, str]:
        """Return what expressions are after the steps of a program, in words; those that can't be read are left out.

        They are read by expecting of each what it is not.
        """
        listed = [
            {"line": number, "subject": each, "checks": [["value", UNLIKELY, number]]}
            for number, each in enumerate(expressions, 1)
        ]
        last = {"number": len(program["steps"]), "line": 1, "expect": listed}
        found = self.run({**program, "steps": [*program["steps"], last]}) if listed else None
        failures = found.failures if found is not None and found.step == last["number"] else ()
        return {each.path: each.observed for each in failures if not each.exception}

    def graph(self, program: dict[str, Any]) -> Graph | None:
        """Return the graph that the steps of a program build, with all their tensors; None if it can't be recorded."""
        self.workers.request(0, {**program, "sketch": True})
        answer = self.workers.answer(0, LOOKING_SECONDS + CASE_SECONDS) or {}
        try:
            return msgspec.convert(answer.get("graph"), Graph)
        except msgspec.ValidationError:
            return None
