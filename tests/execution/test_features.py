"""What devices can do is tried one feature a request, so that one that ends a worker costs only itself."""

from __future__ import annotations

from typing import Any

from samples import build, device

from conformance.execution.features import FEATURES, WRONG, with_features
from conformance.worker import features


class FakeExecutor:
    """Answers requests about features; that about sparse tensors ends its worker."""

    def __init__(self) -> None:
        self.programs: dict[int, dict[str, Any]] = {}

    def request(self, number: int, program: dict[str, Any]) -> None:
        self.programs[number] = program

    def outcome(self, number: int) -> dict[str, Any]:
        if self.programs.pop(number)["feature"] == "sparse":
            return {"status": "crash", "reason": "the worker was ended by SIGSEGV"}
        return {"status": "pass", "reason": ""}


def test_the_names_and_the_words_are_those_of_the_worker() -> None:
    assert (list(FEATURES), WRONG) == (list(features.FEATURES), features.WRONG)


def test_each_device_but_the_cpu_is_looked_at_and_a_crash_is_a_reason() -> None:
    executor = FakeExecutor()
    devices = (device("cpu"), device("cuda", absent="none"), device("toy"))
    cpu, cuda, toy = with_features(build(devices=devices), executor).devices
    assert cpu.features == cuda.features == {}
    assert {name: why for name, why in toy.features.items() if why} == {"sparse": "the worker was ended by SIGSEGV"}
    assert toy.features.keys() == set(FEATURES)
    assert not executor.programs
