"""The profile of a device: what it may say, and those that come with the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from loops import each

from conformance.language.errors import CaseFileError
from conformance.language.profile import GROUPS, NO_PROFILE, SCHEMA, Profile, find_profile, shipped_profiles
from conformance.language.schema import load_schema
from conformance.language.yaml import Node

WHOLE = """\
device: npu
import: [torch_npu, torch_npu.extras]
setup: torch_npu:begin
synchronize: torch_npu.npu:synchronize
name: torch_npu.npu:name
version: torch_npu:__version__
commit: torch_npu.version:commit
absent: [double, sparse, complex128]
not_implemented: ["no kernel for \\\\w+"]
seconds: 90
known_issues: lists/mine.yaml
"""


def profile_in(directory: Path, text: str) -> Profile:
    (directory / "mine.yaml").write_text(text, encoding="utf-8")
    return find_profile("mine.yaml", directory)


def problems(directory: Path, text: str) -> list[str]:
    with pytest.raises(CaseFileError) as caught:
        profile_in(directory, text)
    return [str(problem) for problem in caught.value.problems]


def test_all_that_a_profile_says_is_known(tmp_path: Path) -> None:
    profile = profile_in(tmp_path, WHOLE)
    assert (profile.device, profile.modules) == ("npu", ("torch_npu", "torch_npu.extras"))
    assert (profile.setup, profile.synchronize) == ("torch_npu:begin", "torch_npu.npu:synchronize")
    assert (profile.hardware, profile.version) == ("torch_npu.npu:name", "torch_npu:__version__")
    assert profile.commit == "torch_npu.version:commit"
    assert profile.absent == ("float64", "complex128", "sparse")
    assert profile.not_implemented == (r"no kernel for \w+",)
    assert (profile.seconds, profile.issues, profile.file) == (90, tmp_path / "lists" / "mine.yaml", "mine.yaml")


def test_entries_of_known_issues_may_stand_in_it(tmp_path: Path) -> None:
    issues = profile_in(tmp_path, "device: npu\nknown_issues:\n  - case: a\n").issues
    assert isinstance(issues, Node)
    assert issues.plain == [{"case": "a"}]


@each(
    "text, message",
    [
        (
            "import: [torch_npu]",
            "1:1: the key 'device' is missing (the device on which the cases run, unless --device names others)",
        ),
        ("device: Npu", "1:9: device: expected the type of a device, such as npu, got 'Npu'"),
        ("{device: npu, imprt: [a]}", "1:15: imprt: unknown key 'imprt' (did you mean 'import'?)"),
        (
            "{device: npu, import: [a-b]}",
            "1:24: import[0]: expected the name of a module, such as torch_npu, got 'a-b'",
        ),
        ("{device: npu, import: []}", "1:23: import: expected a list of at least 1, got an empty list"),
        (
            "{device: npu, setup: begin}",
            "1:22: setup: expected a module and a name in it, such as torch_npu:__version__, got 'begin'",
        ),
        ("{device: npu, seconds: 0}", "1:24: seconds: expected a number of at least 1, got 0"),
        ("{device: npu, seconds: .inf}", "1:24: seconds: expected a number of at most 86400, got inf"),
        (
            "{device: npu, known_issues: 3}",
            "1:29: known_issues: expected the path of a list of known issues, got 3 (quote it)",
        ),
        (
            "{device: npu, not_implemented: ['(a+)+']}",
            "1:33: not_implemented[0]: a repetition inside a repetition can take for ever (repeat one of the two only)",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert problems(tmp_path, text) == [f"mine.yaml:{message}"]


def test_features_are_of_a_closed_vocabulary(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, "device: npu\nabsent: [complx]\n")
    assert told.startswith("mine.yaml:2:10: absent[0]: expected one of float64, ")
    assert told.endswith("got 'complx' (did you mean 'complex'?)")


def test_groups_stand_for_features_of_the_vocabulary() -> None:
    features = load_schema(SCHEMA)["$defs"]["feature"]["enum"]
    assert set(GROUPS) | {name for names in GROUPS.values() for name in names} <= set(features)


@each("given", ["none.yaml", "xal"])
def test_what_is_not_there_is_answered_with_what_there_is(tmp_path: Path, given: str) -> None:
    with pytest.raises(CaseFileError) as caught:
        find_profile(given, tmp_path)
    assert str(caught.value).startswith(f"{given}:1:1: can't be read: No such file or directory (there are jax, mps, ")


def test_those_that_come_with_the_suite_are_known_by_name(tmp_path: Path) -> None:
    validator = Draft202012Validator(load_schema(SCHEMA))
    for name, path in shipped_profiles().items():
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert list(validator.iter_errors(content)) == [], name
        assert find_profile(name, tmp_path).device == name
    assert {"xla", "openreg", "npu", "mps", "jax"} <= shipped_profiles().keys()


def test_the_worker_is_told_of_what_is_asked_there() -> None:
    assert set(NO_PROFILE.told()) == set(Profile.__slots__) - {"modules", "seconds", "issues", "file"}
