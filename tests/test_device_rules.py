"""A good card is not accused: what differs between devices is not in what cases expect, or they don't run there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from device_rules import AUTOCAST, HOST_MEMORY, NAMED, PLACED
from loops import each
from shipped import all_cases, rules

from conformance.execution.program import why_unsupported
from conformance.model.build import Target
from conformance.model.case import Case

NEWEST = "2.13.0"
CUDA, MPS = Target(device="cuda", dtype="float32"), Target(device="mps", dtype="float32")
# Names of the CPU's tensor types, and devices as messages and reprs write them.
OF_ONE_DEVICE = re.compile(
    r"torch\.(?:cuda\.)?\w+Tensor|device=|device type '(?!meta)|cuda:0|mps:0|'cpu'|XLA|\bcpu backend"
)


def cases_of(rule: str) -> list[Case]:
    return [case for case in all_cases() if rule in case.rules]


def runs_on(case: Case, target: Target) -> bool:
    needs = why_unsupported(case, target, NEWEST)
    return not needs.startswith("needs a device")


def expected_texts(value: Any) -> Iterator[str]:
    """Yield the texts in an expectation of errors, warnings or values; expressions are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in ("expr", "torch", "type", "subject"):
                yield from expected_texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from expected_texts(item)


@each("rule", [*NAMED, *PLACED, *HOST_MEMORY])
def test_a_rule_has_a_case_that_cuda_and_mps_run_unless_it_is_about_memory_of_the_host(rule: str) -> None:
    assert rule in rules()
    assert cases_of(rule)
    for target in (CUDA, MPS):
        assert any(runs_on(case, target) for case in cases_of(rule)) is (rule not in HOST_MEMORY)


def test_cases_about_memory_of_the_host_are_for_the_cpu_alone() -> None:
    assert {case.devices for rule in HOST_MEMORY for case in cases_of(rule)} == {("cpu",)}


def test_cases_about_autocast_name_their_devices_and_ask_for_the_dtype_there() -> None:
    for case in (case for rule in AUTOCAST for case in cases_of(rule)):
        asked = set(re.findall(r"torch\.autocast\((.+?)[,)]", case.text))
        assert asked == ({"x.device.type"} if "cuda" in case.devices else {'"cpu"'}), case.id
        assert case.devices, case.id
    assert any(runs_on(case, CUDA) for rule in AUTOCAST for case in cases_of(rule))


def test_no_case_that_other_devices_run_expects_text_that_is_of_one_device() -> None:
    found = [
        f"{case.id}: {text}"
        for case in all_cases()
        if runs_on(case, CUDA) or runs_on(case, MPS)
        for step in case.steps
        for name in ("raises", "warns", "expect")
        for text in expected_texts(step.get(name, ()))
        if OF_ONE_DEVICE.search(text)
    ]
    assert not found


def test_the_texts_are_found() -> None:
    match = {"type": "RuntimeError", "match": ["[torch.FloatTensor [1]]"], "line": 3}
    assert list(expected_texts([match])) == ["[torch.FloatTensor [1]]"]
    for text in ("[torch.FloatTensor [1]]", "tensor([1.], device='cuda:0')", "with device type 'cpu'"):
        assert OF_ONE_DEVICE.search(text)
    for text in ("with device type 'meta' to a tensor with device type", "torch.Size([3])", "Float"):
        assert not OF_ONE_DEVICE.search(text)


def test_no_case_that_cuda_runs_has_an_operation_refuse_the_indices_in_a_tensor() -> None:
    """There such an error comes late, and takes the device with it; a number or a list is looked at by the host."""
    found = [
        case.id
        for case in all_cases()
        if runs_on(case, CUDA)
        for step in case.steps
        if re.search(r"IndexError|out of (?:range|bounds)", json.dumps(step.get("raises", ())))
        if "tensor([" in step["do"]
    ]
    assert not found
