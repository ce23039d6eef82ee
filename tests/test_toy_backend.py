"""A device that lives outside PyTorch is tested like any other: what it lacks isn't held against it, what is wrong is.

`toy_backend` is compiled with the C++ compiler of the machine, for the torch that is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from device_rules import NAMED, PLACED
from sessions import Session
from shipped import all_cases

from conformance.language.operations import PREFIX
from conformance.language.profile import load_profile
from conformance.render.script.script import script_of, snippets_for
from conformance.results.store import load_report

ROOT = Path(__file__).parent.parent
BACKEND = Path(__file__).parent / "toy_backend"
KNOWN = ("--known-issues", str(BACKEND / "known-issues.yaml"))
NOT_OPERATIONS = ("-k", f"not {PREFIX}")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.unmeasured,
    pytest.mark.skipif(
        shutil.which("g++") is None and not os.environ.get("CI"), reason="there is no C++ compiler here"
    ),
]


@pytest.fixture
def library(cache: pytest.Cache) -> Path:
    """Return the place where the compiled device is kept, which benchmarks use too."""
    return cache.mkdir("toy_backend")


def run(
    library: Path, directory: Path, *arguments: str, given: tuple[str, ...] = (), **environment: str
) -> tuple[int, str, dict[str, Any]]:
    """Run the suite on the device; return the exit status, what was printed, and the outcomes by case."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={library / 'cache'}", "--page", "never"),
        *("--report", str(directory)),
        *(given or ("--device", "toy", "--device-module", "toy_backend")),
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900,
        env={**os.environ, "PYTHONPATH": str(BACKEND), "TOY_BUILD": str(library), **environment},
    )  # fmt: skip
    assert list(directory.glob("torch-*.json")), done.stdout
    report = json.loads(next(directory.glob("torch-*.json")).read_text(encoding="utf-8"))
    return done.returncode, done.stdout, {outcome["case"]: outcome for outcome in report["outcomes"]}


def asked(outcomes: dict[str, Any]) -> dict[str, Any]:
    """Return the outcomes of the cases that were run and are for such a device."""
    return {
        case: outcome
        for case, outcome in outcomes.items()
        if outcome["status"] != "not-run" and not outcome.get("reason", "").startswith("needs a device of ")
    }


def statuses(outcomes: dict[str, Any]) -> set[str]:
    return {outcome["status"] for outcome in outcomes.values()}


def part(number: int) -> tuple[str, ...]:
    """Return the arguments for a twelfth of the suite, or with EVERY_CASE in the environment for all of it."""
    return () if os.environ.get("EVERY_CASE") else ("--shard", f"{number}/12")


def test_a_good_device_is_never_accused_and_what_it_lacks_is_named(library: Path, tmp_path: Path) -> None:
    status, printed, whole = run(library, tmp_path / "part", *KNOWN, *part(1))
    assert status == 0, printed
    assert "toy (toy device in host memory)" in printed
    outcomes = asked(whole)
    assert statuses(outcomes) == {"pass", "known", "unsupported"}, printed
    lacking = [outcome["reason"] for outcome in outcomes.values() if outcome["status"] == "unsupported"]
    for operator in ("aten::cumsum", "aten::_linalg_solve_ex", "aten::complex", "aten::sort"):
        assert any(f"'{operator}" in reason for reason in lacking), operator
    # What cases are for is tested there all the same.
    done = [outcome for outcome in outcomes.values() if outcome["status"] in ("pass", "known")]
    assert len(done) > 0.8 * len(outcomes)


def test_messages_and_reprs_name_such_a_device_too(library: Path, tmp_path: Path) -> None:
    cases = {rule: [case.id for case in all_cases() if rule in case.rules] for rule in (*NAMED, *PLACED)}
    chosen = " or ".join(dict.fromkeys(case for ids in cases.values() for case in ids))
    _, printed, outcomes = run(library, tmp_path, *KNOWN, "-k", chosen)
    for rule, ids in cases.items():
        assert any(outcomes[case]["status"] == "pass" for case in ids), (rule, printed)


def test_a_wrong_gradient_is_found(library: Path, tmp_path: Path) -> None:
    status, printed, outcomes = run(library, tmp_path, "-k", "sigmoid or activations or relu", TOY_FAULT="1")
    assert status == 1, printed
    assert outcomes["sigmoid-times-broadcast-weights"]["status"] == "fail"
    assert outcomes["activations-in-place"]["status"] == "fail"
    assert outcomes["derivatives-of-sigmoid"]["status"] == "fail"
    red = {case for case, outcome in outcomes.items() if outcome["status"] in ("fail", "error", "crash", "timeout")}
    assert not {case for case in red if "relu" in case}


def test_what_is_missing_is_found_by_trying_where_no_words_say_so(library: Path, tmp_path: Path) -> None:
    chosen = ("-k", "cumsum or erfinv or median or fft or sort or solve or cumprod or svd")
    _, _, known = run(library, tmp_path / "words", *chosen)
    status, printed, found = run(library, tmp_path / "none", *chosen, TOY_WORDS="1")
    assert status == 0, printed
    assert {case: each["status"] for case, each in found.items()} == {
        case: each["status"] for case, each in known.items()
    }
    reasons = [each["reason"] for each in found.values() if "error 17" in each.get("reason", "")]
    assert len(reasons) > 4
    assert all(" does not work on toy in " in reason for reason in reasons)


def test_what_is_missing_is_no_failure_where_a_case_has_caught_the_error(library: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    cases = session.cases(
        caught="""
        - |
          def tried():
              try:
                  return torch.cumsum(ones(3), 0)
              except RuntimeError as error:
                  return f"it is {error}"
        - expect: {tried(): [1.0, 2.0, 3.0]}
        """
    )
    _, printed, outcomes = run(library, tmp_path / "out", str(cases))
    assert outcomes["caught"]["status"] == "unsupported", printed
    assert "aten::cumsum" in outcomes["caught"]["reason"]


def test_an_operation_that_works_but_not_in_a_case_is_an_error(library: Path, tmp_path: Path) -> None:
    status, printed, found = run(library, tmp_path, "-k", "strides", TOY_FAULT="2")
    assert status == 1, printed
    assert any(each["status"] == "error" and "error 17" in each["failures"][0]["observed"] for each in found.values())
    assert not any("error 17" in each.get("reason", "") for each in found.values())


READS = """
import torch, toy_backend
from torch.utils._python_dispatch import TorchDispatchMode
from conformance.worker.reference import reference_of
from conformance.worker.values import elements

VIEWS = {f"aten.{name}.default" for name in ("detach", "_conj", "_neg_view")}

class Recorder(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(isinstance(each, torch.Tensor) and each.device.type == "toy" for each in args):
            ran.append(str(function))
        return function(*args, **(kwargs or {}))

z = torch.tensor([1 + 2j, 3 - 1j]).to("toy")
leaf = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to("toy").requires_grad_()
module = torch.nn.Linear(2, 2).to("toy")
with torch.autograd.forward_ad.dual_level():
    dual = torch.autograd.forward_ad.make_dual(leaf.detach(), torch.ones(2, 2).to("toy"))
    for read, value in (
        (elements, z.conj()), (elements, z.conj().imag), (elements, leaf.t()[1]), (elements, leaf * 2),
        (elements, dual), (reference_of, leaf), (reference_of, module),
    ):
        ran = []
        with Recorder():
            found = read(value)
        print(found if read is elements else type(found).__name__, *sorted(set(ran) - VIEWS), sep=" | ")
"""


def test_values_are_read_by_one_transfer_and_no_other_operation(library: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READS], cwd=ROOT, check=False, text=True, capture_output=True, timeout=900,
        env={**os.environ, "PYTHONPATH": str(BACKEND), "TOY_BUILD": str(library)},
    )  # fmt: skip
    found = ["[(1-2j), (3+1j)]", "[-2.0, 1.0]", "[2.0, 4.0]", "[[2.0, 4.0], [6.0, 8.0]]", "[[1.0, 2.0], [3.0, 4.0]]"]
    expected = [f"{value} | aten._to_copy.default" for value in (*found, "Tensor", "Linear")]
    assert done.stdout.splitlines() == expected, done.stderr


PROFILE = """\
device: toy
import: [toy_backend]
setup: toy_backend:is_available
synchronize: toy_backend:is_available
name: toy_backend:get_device_name
not_implemented: ["^RuntimeError: .* is a toy"]
"""


def test_a_profile_is_all_that_a_run_and_a_script_need(library: Path, tmp_path: Path) -> None:
    profile = tmp_path / "toy.yaml"
    profile.write_text(PROFILE)
    for isolation in ("process", "none"):
        given = ("--profile", str(profile), "--isolation", isolation)
        status, printed, outcomes = run(library, tmp_path / isolation, "-k", "sigmoid", given=given)
        assert status == 0, printed
        assert "back-end: toy_backend on toy device in host memory" in printed
        assert outcomes["sigmoid-times-broadcast-weights"]["status"] == "pass"
    (file,) = (tmp_path / "none").glob("torch-*.json")
    assert file.name.endswith("-toy_backend-toy_device_in_host_memory.json")
    place = tmp_path / "process"
    report = load_report(next(place.glob("torch-*.json")))
    case = next(case for case in all_cases() if case.id == "sigmoid-times-broadcast-weights")
    made = script_of(case)
    parts = snippets_for([report])
    (tmp_path / "script.py").write_text("".join(parts[name] for name in made.parts) + made.body)
    for fault, word in (("0", "pass"), ("1", "fail")):
        done = subprocess.run(
            [sys.executable, "script.py", "toy"], cwd=tmp_path, check=False, text=True, capture_output=True,
            env={**os.environ, "PYTHONPATH": str(BACKEND), "TOY_BUILD": str(library), "TOY_FAULT": fault},
        )  # fmt: skip
        assert done.stdout.splitlines()[-1].startswith(word), done.stdout + done.stderr


def test_a_draft_finds_what_the_device_lacks(library: Path, tmp_path: Path) -> None:
    command = ["profile", "toy", "--device-module", "toy_backend", "-o", str(tmp_path / "toy.yaml")]
    done = subprocess.run(
        [sys.executable, "-m", "conformance", *command], cwd=ROOT, check=False, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(BACKEND), "TOY_BUILD": str(library)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    profile = load_profile(tmp_path / "toy.yaml", "toy.yaml")
    assert (profile.device, profile.modules) == ("toy", ("toy_backend",))
    assert "sparse" in profile.absent
    assert "aliasing-views" not in profile.absent


def test_a_device_without_double_precision_is_not_accused(library: Path, tmp_path: Path) -> None:
    chosen = ("-k", f"not {PREFIX} or sum or conv or linear or norm or index")  # of operations some
    status, printed, whole = run(library, tmp_path / "part", *KNOWN, *chosen, *part(2), TOY_LIKE="mps")
    assert status == 0, printed
    outcomes = asked(whole)
    assert statuses(outcomes) == {"pass", "known", "unsupported"}, printed
    assert "toy lacks: float64, complex128, sparse, streams" in printed
    assert sum(outcome["status"] in ("pass", "known") for outcome in outcomes.values()) > 0.7 * len(outcomes)
    chosen = ("cases/gradcheck.yaml", "cases/inference_mode.yaml")
    status, printed, whole = run(library, tmp_path / "files", *KNOWN, *chosen, TOY_LIKE="mps")
    outcomes = asked(whole)
    assert status == 0, printed
    # Printing needs double precision there; torch, when that fails in inference mode, records nothing any more.
    assert outcomes["view-looked-at-in-inference-mode"]["reason"].endswith(
        "; it left a mode in force that nothing can end; the worker was replaced"
    )
    # gradcheck needs double precision, whatever it is given.
    checking = [case.id for case in all_cases() if case.file == "cases/gradcheck.yaml" and case.id in outcomes]
    assert len(checking) > 20
    for outcome in (outcomes[case] for case in checking):
        assert outcome["status"] == "unsupported", outcome
        assert "float64" in outcome["reason"] or "complex128" in outcome["reason"], outcome


def test_a_device_that_computes_in_single_precision_is_held_to_what_that_can_do(library: Path, tmp_path: Path) -> None:
    words = "gradcheck-accepts or double-precision or (differences and (exp or loss)) or sigmoid"
    chosen = ("-k", f"{words} or leaf-on-a-product-under-autocast")
    status, printed, outcomes = run(library, tmp_path / "good", *chosen, TOY_LIKE="vulkan")
    assert status == 0, printed
    for case in ("gradcheck-accepts-a-right-derivative", "elementwise-function-against-differences-exp"):
        assert outcomes[case]["reason"] == "toy lacks float64: LessPrecise: computed in single precision"
    cast = [outcome for case, outcome in outcomes.items() if case.endswith("leaf-on-a-product-under-autocast")]
    reasons = [outcome["reason"] for outcome in cast if outcome["status"] != "not-run"]
    assert reasons
    assert all("In toy autocast" in reason for reason in reasons), reasons
    # What is wrong in single precision, too, is no matter of digits.
    status, printed, outcomes = run(library, tmp_path / "bad", "-k", "sigmoid", TOY_LIKE="vulkan", TOY_FAULT="1")
    assert status == 1, printed
    assert outcomes["sigmoid-times-broadcast-weights"]["status"] == "fail"


def test_a_device_whose_errors_come_late_and_whose_memory_ends_is_not_accused(library: Path, tmp_path: Path) -> None:
    arguments = (*NOT_OPERATIONS, *part(3))
    status, printed, whole = run(library, tmp_path, *arguments, TOY_LIKE="cuda", TOY_MEMORY="64000000")
    assert status == 0, printed
    outcomes = asked(whole)
    assert statuses(outcomes) == {"pass", "known", "unsupported"}, printed
    assert sum(outcome["status"] in ("pass", "known") for outcome in outcomes.values()) > 0.8 * len(outcomes)


def test_a_late_error_is_that_of_its_case_and_the_worker_is_replaced(library: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    harmless = """
        - x = tensor([1.0, 2.0], requires_grad=True)
        - (x * x).sum().backward()
        - expect: {x: {grad: [2.0, 4.0]}}
        """
    cases = session.cases(
        before=harmless,
        at_an_expectation="""
        - x = tensor([1.0, 2.0], requires_grad=True)
        - y = x[tensor([7])]
        - expect: {y: [1.0], x: {grad: null}}
        """,
        between=harmless,
        in_backward="""
        - x = ones(2, requires_grad=True)
        - 'x.register_hook(lambda g: g[tensor([7, 7])])'
        - (x * 2).sum().backward()
        - (x + 1).sum().item()
        - expect: {x: {value: 1.0}}
        """,
        after_all=harmless,
        never_waited_for="""
        - x = tensor([1.0, 2.0])
        - y = x[tensor([7])]
        - expect: {y: {shape: [1]}}
        """,
        at_last=harmless,
    )
    arguments = (str(cases), "--workers", "1")
    status, printed, outcomes = run(library, tmp_path / "cuda", *arguments, TOY_LIKE="cuda")
    assert status == 1, printed
    found = {case: outcome["status"] for case, outcome in outcomes.items()}
    assert found == {
        "before": "pass", "at-an-expectation": "fail", "between": "pass", "in-backward": "error", "after-all": "pass",
        "never-waited-for": "error", "at-last": "pass",
    }  # fmt: skip
    for case, step in {"at-an-expectation": 2, "in-backward": 3, "never-waited-for": 2}.items():
        assert outcomes[case]["step"] == step
        assert "an earlier operation was given an index out of range" in outcomes[case]["failures"][0]["observed"]
        assert outcomes[case]["reason"] == "the device did not answer any more; the worker was replaced"
    # On a device whose errors come at once, the operation itself raises.
    _, _, prompt = run(library, tmp_path / "prompt", *arguments)
    assert {case for case, outcome in prompt.items() if outcome["status"] == "error"} == found.keys() - {
        case for case in found if found[case] == "pass"
    }


def test_a_case_for_which_memory_does_not_suffice_costs_no_other(library: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    large = """
        - x = ones(2000, 1000, requires_grad=True)
        - (x * 2).sum().backward()
        - expect: {x: {grad: 2.0}}
        """
    cases = session.cases(
        before=large,
        keeps_too_much="""
        - kept = [ones(1000, 1000) for _ in range(100)]
        - expect: {len(kept): 100}
        """,
        asks_for_too_much_in_a_hook="""
        - kept = []
        - x = ones(2, requires_grad=True)
        - y = x * 2
        - 'y.register_hook(lambda g: kept.append([kept, y, ones(2000, 1000)]) or ones(100000, 1000).sum() * g)'
        - y.sum().backward()
        - expect: {x: {grad: 2.0}}
        """,
        after=large,
    )
    status, printed, outcomes = run(library, tmp_path / "out", str(cases), "--workers", "1", TOY_MEMORY="40000000")
    assert status == 1, printed
    assert [outcome["status"] for outcome in outcomes.values()] == ["pass", "error", "error", "pass"]
    for case in ("keeps-too-much", "asks-for-too-much-in-a-hook"):
        assert outcomes[case]["failures"][0]["observed"].startswith("OutOfMemoryError: toy out of memory: ")
        assert "reason" not in outcomes[case]  # the device answers


def test_operands_on_two_devices_are_refused_as_on_a_real_one(library: Path, tmp_path: Path) -> None:
    cases = Session(tmp_path).cases(
        on_two="- {expect: {'ones(2) + ones(2, device=\"cpu\")': 2.0}}\n",
        with_a_number="- {expect: {'ones(2) + ones((), device=\"cpu\")': 2.0}}\n",
    )
    _, printed, outcomes = run(library, tmp_path / "out", str(cases), TOY_LIKE="cuda")
    assert [outcome["status"] for outcome in outcomes.values()] == ["fail", "pass"], printed


def test_a_wrong_gradient_is_found_on_a_device_without_double_precision(library: Path, tmp_path: Path) -> None:
    chosen = ("-k", "sigmoid and not differences and not mode-twice")  # those take two steps in double precision
    _, printed, whole = run(library, tmp_path / "whole", *chosen, TOY_FAULT="1")
    status, printed, found = run(library, tmp_path / "mps", *chosen, TOY_FAULT="1", TOY_LIKE="mps")
    assert status == 1, printed
    lost = [case for case, each in whole.items() if each["status"] == "fail" and found[case]["status"] != "fail"]
    assert lost == [], [found[case] for case in lost]
    assert found["sigmoid-times-broadcast-weights"]["status"] == "fail"
