"""Finds out which of the features that a profile can call absent a device has: a small case for each."""

from collections.abc import Iterator

import yaml

from conformance.execution.program import program_of, why_unsupported
from conformance.execution.workers import Workers
from conformance.language.reader import parse_cases
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.rule import Rule

DTYPES = ("float64", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "uint8")
RULE = Rule(id="device.feature", text="", topic="Devices", level="observed", link="", since="1.13")
NOT_ASKED = ("device-module", "random-state", "streams")  # what no case can tell
# The statements of each, and what they must come to.
FEATURES = {
    **{name: (f"a = ones(2, dtype={name}); b = a + a", "{b: {value: 2.0}}") for name in DTYPES},
    "bool": ("a = ones(2) > 0; b = a & a", "{b: {value: [true, true]}}"),
    "strides": ("b = arange(4.0).reshape(2, 2).t() + 1", "{b: {value: [[1.0, 3.0], [2.0, 4.0]]}}"),
    "aliasing-views": ("a = zeros(2, 2); a[0].add_(1.0)", "{a: {value: [[1.0, 1.0], [0.0, 0.0]]}}"),
    "storage": ("a = ones(2); b = a.data_ptr() != 0", "{b: true}"),
    "sparse": ("a = eye(2).to_sparse().to_dense()", "{a: {value: [[1.0, 0.0], [0.0, 1.0]]}}"),
    "empty": ("a = ones(0, 2) + 1", "{a: {shape: [0, 2]}}"),
    "amp": ("a = ones(2, 2)\nwith autocast(a.device.type): b = a @ a", "{b: {value: 2.0}}"),
}


def feature_cases() -> list[Case]:
    """Return a case for each feature, called by its name."""
    cases = [
        {"id": name, "title": name, "why": "A profile can call it absent.", "rules": [RULE.id],
         "steps": [statements, {"expect": yaml.safe_load(expected)}]}
        for name, (statements, expected) in FEATURES.items()
    ]  # fmt: skip
    text = yaml.safe_dump({"topic": "Devices", "cases": cases}, sort_keys=False)
    return parse_cases(text, "features.yaml", {RULE.id: RULE})


def survey(workers: Workers, device: str) -> Iterator[tuple[str, Outcome]]:
    """Yield each feature with the outcome of its case on a device of the build that the workers test."""
    target = Target(device=device, dtype="float32")
    torch = workers.handshake().torch
    cases = [case for case in feature_cases() if not why_unsupported(case, target, torch)]
    for number, case in enumerate(cases):
        workers.request(number, program_of(case, target, torch))
        yield case.id, outcome_of(workers.outcome(number))
