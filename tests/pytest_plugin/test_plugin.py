"""What a pytest user expects of the plugin: selection, markers, reports, exit statuses, and readable failures."""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as ET
import zlib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from samples import CPU, report, valid_case
from sessions import PAIRS, Result, Session

from conformance.language.schema import load_schema
from conformance.model.outcome import Outcome
from conformance.render.page.matrix import MARKS
from conformance.results.drafts import drafts_text
from conformance.results.known_issues import KnownIssues
from conformance.results.store import load_report, text_of

GOOD = """\
- a = tensor([2.0], requires_grad=True)
- b = a * 3
- b.backward()
- expect:
    a: {is_leaf: true, requires_grad: true, grad: [3.0]}
    b: {grad_fn: MulBackward0}
"""
WRONG_GRAD = GOOD.replace("grad: [3.0]", "grad: [4.0]")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Result]:
    """Return a run with a case of each kind of verdict, beside two published reports, and where it ran."""
    session = Session(tmp_path_factory.mktemp("red"))
    session.cases(
        first=GOOD, second=WRONG_GRAD, third="- a = tensor([1.0]).nonzero(as_tuple=3)\n- expect: {a: 1}\n",
        fourth="- a = tensor([1.0]).reshape(7)\n- expect: {a: 1}\n",
    )  # fmt: skip
    publish(session, "1.13.1")
    publish(session, "2.0.1")
    return session, session.run("--color=no", "-rf", "--junitxml", "junit.xml")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory after a run of two files."""
    session = Session(tmp_path_factory.mktemp("ran"))
    session.cases(first=GOOD, second=GOOD)
    session.cases(name="other.yaml", topic="Others", third=GOOD)
    assert session.run().statuses == {"first": "pass", "second": "pass", "third": "pass"}
    return session.directory


@pytest.fixture
def after(ran: Path, session: Session) -> Session:
    """Return a session that goes on after that run."""
    shutil.copytree(ran, session.directory, dirs_exist_ok=True)
    return session


def test_a_run_passes_and_says_what_it_tested(session: Session) -> None:
    session.cases(first=GOOD, second=GOOD)
    result = session.run("-v")
    assert result.status == 0, result.output
    assert "first.yaml::first[cpu-float32] PASSED" in result.output
    assert "torch: " in result.output
    assert "devices: cpu" in result.output
    assert "absent: " in result.output
    assert "Tests  2 pass" in result.output
    assert "report: reports/torch-" in result.output
    assert result.statuses == {"first": "pass", "second": "pass"}


def test_the_report_fits_its_schema(red: tuple[Session, Result]) -> None:
    _, result = red
    assert result.status == 1
    Draft202012Validator(load_schema("report.schema.json")).validate(result.report)
    assert result.report is not None
    assert result.report["footer"]["counts"] == {"error": 2, "fail": 1, "pass": 1}
    assert result.report["footer"]["exit_status"] == 1
    assert [case["id"] for case in result.report["cases"]] == ["first", "second", "third", "fourth"]
    assert result.report["cases"][0]["yaml"].startswith("  - id: first\n")
    assert set(result.report["rules"]) == {"test.rule"}


def test_a_failure_says_what_where_expected_and_observed(red: tuple[Session, Result]) -> None:
    _, result = red
    assert result.statuses == {"first": "pass", "second": "fail", "third": "error", "fourth": "error"}
    for words in (
        "The case second  [cpu-float32]",
        "an expectation does not hold: first.yaml:23",
        "rule test.rule (documented): What the tests of the suite check.",
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#tests",
        ">   23           a: {is_leaf: true, requires_grad: true, grad: [4.0]}",
        "a.grad:23  [4.0]     [3.0]",
        "run it alone: pytest 'first.yaml::second[cpu-float32]'",
        "FAILED first.yaml::second[cpu-float32] - fail: a.grad: expected",
    ):
        assert words in result.output


@pytest.mark.slow
def test_the_command_that_a_failure_gives_runs_just_that_item(session: Session) -> None:
    session.cases(first=GOOD, second=WRONG_GRAD)
    result = session.run("first.yaml::second[cpu-float32]")
    assert "1 failed" in result.output
    assert result.statuses == {"second": "fail"}


@pytest.mark.slow
def test_selecting_by_word_marker_level_and_rule(session: Session) -> None:
    observed = session.cases(name="second.yaml", seen=GOOD)
    observed.write_text(observed.read_text().replace("[test.rule]", "[test.rule, test.observed]"))
    session.cases(first=GOOD, other=GOOD)

    def ran(*arguments: str) -> set[str]:
        """Return the cases that a run with these arguments runs, without what an earlier run has left."""
        shutil.rmtree(session.directory / "reports", ignore_errors=True)
        return {case for case, status in session.run(*arguments).statuses.items() if status == "pass"}

    assert ran("-k", "other") == {"other"}
    assert ran("-m", "observed") == {"seen"}
    assert ran("-m", "documented") == {"first", "other"}
    assert ran("--level", "observed") == {"seen"}
    assert ran("-m", 'rule(id="test.observed")') == {"seen"}
    assert ran("-m", "cpu and float32") == {"first", "other", "seen"}


def test_quick_leaves_out_what_the_nearest_list_says(session: Session) -> None:
    session.cases(first=GOOD, other=GOOD)
    listed = session.directory / "left-out.txt"
    listed.write_text("# Comment\nfirst  # and its reason\n\nfirst-of-all\n")
    result = session.run("--quick")
    assert result.statuses == {"first": "not-run", "other": "pass"}
    assert result.outcomes["first"]["reason"] == "left out by --quick"
    listed.write_bytes(b"\xff")
    refused = session.run("--quick")
    assert refused.status == pytest.ExitCode.USAGE_ERROR
    assert "--quick: left-out.txt:1:1: expected UTF-8 text, got the byte 0xff" in refused.output
    listed.unlink()
    assert session.run("--quick").statuses == {"first": "pass", "other": "pass"}
    assert session.run().statuses == {"first": "pass", "other": "pass"}


def test_pairs_are_covered_unless_all_or_a_certain_one_is_asked_for(session: Session) -> None:
    session.write("pairs.yaml", PAIRS)
    covering = session.run()
    (run,) = covering.statuses
    assert "pairs: each way with each feature of a program; --pairs all adds 1 cases" in covering.output
    everything = session.run("--pairs", "all")
    assert everything.statuses == {"way-on-times-2": "fail", "way-on-times-3": "fail"}
    assert "--pairs all adds" not in everything.output
    (other,) = everything.statuses.keys() - {run}
    assert session.run(f"pairs.yaml::{other}[cpu-float32]").statuses[other] == "fail"
    assert session.run("--lf").statuses[other] == "fail"


@pytest.mark.slow
def test_deselected_items_are_in_the_report_with_the_reason(session: Session) -> None:
    session.cases(first=GOOD, other=GOOD)
    result = session.run("-k", "other")
    assert result.outcomes["first"]["reason"] == "deselected"


def test_stopping_early_leaves_the_rest_in_the_report(session: Session) -> None:
    session.cases(first=GOOD, second=WRONG_GRAD, third=GOOD, fourth=GOOD)
    result = session.run("-x")
    assert result.statuses == {"first": "pass", "second": "fail", "third": "not-run", "fourth": "not-run"}
    assert result.outcomes["third"]["reason"] == "the run ended before it"


@pytest.mark.slow
def test_last_failed_runs_what_failed(session: Session) -> None:
    session.cases(first=GOOD, second=WRONG_GRAD)
    session.run()
    result = session.run("--lf", "-v")
    assert "second[cpu-float32] FAILED" in result.output
    assert "first[cpu-float32] PASSED" not in result.output


def test_collect_only_runs_nothing_and_writes_no_report(session: Session) -> None:
    session.cases(first=GOOD)
    result = session.run("--collect-only", "-q")
    assert "first.yaml::first[cpu-float32]" in result.output
    assert result.report is None


def test_junit_xml_has_a_case_for_each_item(red: tuple[Session, Result]) -> None:
    session, _ = red
    suite = ET.parse(session.directory / "junit.xml").getroot()[0]
    assert suite.attrib["tests"] == "4"
    assert suite.attrib["failures"] == "3"
    failure = suite.find("testcase[@name='second[cpu-float32]']/failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("fail: a.grad: expected")


@pytest.mark.slow
def test_with_xdist_the_report_is_the_same(session: Session) -> None:
    session.cases(**{f"case_{number}": GOOD if number % 5 else WRONG_GRAD for number in range(12)})
    alone = session.run("-k", "not case-7")
    spread = session.run("-n", "2", "-k", "not case-7")
    assert alone.status == spread.status == 1
    assert spread.statuses == alone.statuses
    assert spread.outcomes["case-7"]["reason"] == "deselected"
    assert spread.report is not None
    assert alone.report is not None
    assert spread.report["plan"] == alone.report["plan"]
    assert spread.report["cases"] == alone.report["cases"]


@pytest.mark.slow
def test_isolation_changes_no_verdict(session: Session) -> None:
    session.cases(
        good=GOOD, bad=WRONG_GRAD, raised="- a = tensor([1.0]).reshape(7)\n- expect: {a: 1}\n",
        warned='- do: "tensor([1.0])"\n  warns: {type: UserWarning, match: nothing of the kind}\n',
    )  # fmt: skip
    inside, outside = session.run("--isolation", "none"), session.run()
    assert inside.statuses == outside.statuses
    for case, outcome in outside.outcomes.items():
        assert inside.outcomes[case].get("failures") == outcome.get("failures")


@pytest.mark.slow
def test_several_dtypes_make_several_items(session: Session) -> None:
    session.cases(first=GOOD)
    result = session.run("--dtype", "float64", "--dtype", "float32", "-v")
    assert "first[cpu-float64] PASSED" in result.output
    assert "first[cpu-float32] PASSED" in result.output


@pytest.mark.slow
def test_an_absent_device_is_not_run_and_a_required_one_turns_the_run_red(session: Session) -> None:
    session.cases(first=GOOD)
    absent = session.run("--device", "mps", "--device", "cpu")
    assert absent.status == 0
    assert absent.report is not None
    assert [outcome["status"] for outcome in absent.report["outcomes"]] == ["not-run", "pass"]
    assert "device mps is absent" in absent.report["outcomes"][0]["reason"]
    required = session.run("--require-device", "mps")
    assert required.status == 1
    assert "required device mps: torch.mps is not available" in required.output


def test_a_device_that_torch_does_not_know_is_an_error(session: Session) -> None:
    session.cases(first=GOOD)
    result = session.run("--device", "cdua")
    assert result.status == 2
    assert "no device 'cdua'" in result.output
    assert result.report is None


def test_markers_and_hooks_of_a_conftest_are_obeyed(session: Session) -> None:
    session.cases(first=WRONG_GRAD, second=WRONG_GRAD, third=GOOD, fourth=WRONG_GRAD)
    session.write(
        "conftest.py",
        """\
        import pytest
        pytest_plugins = ["conformance.pytest_plugin.plugin"]
        def pytest_runtest_setup(item):
            if item.name.startswith("fourth"):
                pytest.skip("no")
        def pytest_collection_modifyitems(items):
            items[0].add_marker(pytest.mark.skip(reason="not today"))
            items[1].add_marker(pytest.mark.xfail(reason="known here"))
        """,
    )
    result = session.run("-rsx")
    assert result.status == 0, result.output
    assert "1 passed, 2 skipped, 1 xfailed" in result.output
    assert result.statuses == {"first": "not-run", "second": "fail", "third": "pass", "fourth": "not-run"}
    assert "not today" in result.outcomes["first"]["reason"]


def test_a_run_that_has_lost_an_item_is_not_green(session: Session) -> None:
    session.cases(first=GOOD, second=WRONG_GRAD, third=GOOD)
    session.write(
        "conftest.py",
        """\
        import pytest
        pytest_plugins = ["conformance.pytest_plugin.plugin"]
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item):
            return True if item.name.startswith("second") else None
        """,
    )
    result = session.run()
    assert result.status == 1, result.output
    assert "1 item without an outcome, and nothing says why" in result.output
    assert result.statuses == {"first": "pass", "second": "not-run", "third": "pass"}


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)], ids=["alone", "xdist"])
def test_setup_and_teardown_are_reported_to_plugins_of_others(session: Session, workers: tuple[str, ...]) -> None:
    session.cases(first=GOOD, second=WRONG_GRAD)
    summary = """\
        def pytest_terminal_summary(terminalreporter):
            print("phases", len(terminalreporter.stats.get("", [])))
    """
    session.write("conftest.py", summary)
    assert f"phases {4 if workers else 0}\n" in session.run(*workers).output
    hook = """\
        def pytest_runtest_logreport(report):
            print("looked at", report.nodeid, report.when)
    """
    session.write("conftest.py", textwrap.dedent(summary) + textwrap.dedent(hook))
    output = session.run("-s", *workers).output
    assert "phases 4\n" in output
    for name in ("first", "second"):
        looked = re.findall(rf"looked at first.yaml::{name}\[cpu-float32\] (\w+)", output)
        assert looked == ["setup", "call", "teardown"]


def test_an_expected_failure_shows_the_case_and_no_frame_of_the_suite(session: Session) -> None:
    """The phases of items are not run, which hypothesis's plugin has no part in."""
    session.cases(first=WRONG_GRAD)
    session.write("pytest.ini", "[pytest]\naddopts = -p conformance.pytest_plugin.plugin\n")
    session.write(
        "conftest.py",
        """\
        from conformance.pytest_plugin.protocol import is_shortened
        def pytest_report_header(config):
            plugins = config.pluginmanager.hasplugin("hypothesispytest"), is_shortened(config)
            return f"hypothesis and shortened: {plugins}"
        """,
    )
    session.write(
        "known-issues.yaml",
        """\
        issues:
          - case: "*"
            targets: ["*"]
            torch: ">=1.13"
            fails: {status: fail}
            reason: The gradient is not 4.
            link: null
            review: 2099-01-01
        """,
    )
    result = session.run("-rx", "--xfail-tb")
    assert result.statuses == {"first": "known"}, result.output
    assert "hypothesis and shortened: (True, True)" in result.output
    assert "it fails as a known issue says: first.yaml:" in result.output
    assert "XFAIL first.yaml::first[cpu-float32] - The gradient is not 4." in result.output
    assert "items.py" not in result.output


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_defect_of_the_suite_is_no_verdict_on_torch_even_where_an_issue_is_known(
    session: Session, options: tuple[str, ...]
) -> None:
    session.cases(first=GOOD, second=GOOD, third=GOOD)
    session.write(
        "conftest.py",
        """\
        from conformance.execution.workers import Workers
        pytest_plugins = ["conformance.pytest_plugin.plugin"]
        answer = Workers.outcome
        def outcome(self, number):
            raised = {"status": "internal-error", "reason": "the suite raised KeyError: 'x'"}
            return [answer(self, number), raised, {"status": "splendid"}][number]
        Workers.outcome = outcome
        """,
    )
    session.write(
        "known-issues.yaml",
        """\
        issues:
          - case: "*"
            targets: ["*"]
            torch: ">=1.13"
            fails: {status: error}
            reason: Anything may fail.
            link: null
            review: 2099-01-01
        """,
    )
    result = session.run("-ra", *options)
    assert result.status == pytest.ExitCode.INTERNAL_ERROR, result.output
    assert result.statuses["second"] == result.statuses["third"] == "internal-error"
    assert "Invalid enum value 'splendid'" in result.outcomes["third"]["reason"]  # which nobody understands
    assert result.report is not None
    assert result.report["footer"]["exit_status"] == 3
    assert "ERROR at call of second[cpu-float32]" in result.output
    assert "a defect of the suite, which says nothing of torch; please report it: first.yaml:" in result.output
    assert "the suite raised KeyError: 'x'" in result.output
    assert "describes another failure" not in result.output
    assert "internal error: 2 items: a defect of the suite" in result.output
    assert "2 errors" in result.output


BAD = GOOD.replace("is_leaf", "is_laef")
PROCESSES = pytest.mark.parametrize("processes", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
PROBLEM = "bad.yaml:12:15: expect.a.is_laef: unknown key 'is_laef' (did you mean 'is_leaf'?)"


@PROCESSES
def test_a_bad_case_file_is_red_and_leaves_the_others_alone(session: Session, processes: tuple[str, ...]) -> None:
    session.cases(name="bad.yaml", second=BAD)
    session.cases(first=GOOD)
    session.cases(name="same.yaml", first=GOOD, third=GOOD)
    result = session.run(*processes, "-rf", "--color=no")
    assert result.status == 1, result.output
    assert "2 failed, 1 passed" in result.output
    assert "FAILED bad.yaml::does not load - bad.yaml:12:15: " in result.output
    assert f"\nbad.yaml does not load: {PROBLEM}\n" in result.output
    assert "same.yaml:3:1: id: 'first' stands twice (first in first.yaml:3)" in result.output
    assert "Traceback" not in result.output
    assert result.statuses == {"first": "pass"}
    assert result.report is not None
    assert result.report["footer"]["exit_status"] == 1


@PROCESSES
@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8")
def test_a_file_whose_name_is_no_text_is_red_and_leaves_the_others_alone(
    session: Session, processes: tuple[str, ...]
) -> None:
    session.cases(first=GOOD)
    session.cases(name="\udcff.yaml", second=GOOD)
    result = session.run(*processes, "-rf", "--color=no")
    assert result.status == 1, result.output
    assert "1 failed, 1 passed" in result.output
    assert "⟨U+DCFF⟩.yaml:1:1: expected a file name in UTF-8 (rename the file)" in result.output
    assert result.statuses == {"first": "pass"}


@PROCESSES
@pytest.mark.parametrize("selected", [pytest.param("first", marks=pytest.mark.slow), "nothing"])
def test_a_bad_case_file_is_not_overlooked_where_something_else_is_selected(
    session: Session, processes: tuple[str, ...], selected: str
) -> None:
    session.cases(name="bad.yaml", second=BAD)
    session.cases(first=GOOD)
    session.write("known-issues.yaml", "issues: []\n")
    result = session.run(*processes, "-k", selected)
    assert result.status == 1, result.output
    assert f"bad.yaml does not load: {PROBLEM}" in result.output


def test_a_case_of_a_bad_file_is_answered_by_what_is_wrong_with_the_file(session: Session) -> None:
    session.cases(name="bad.yaml", second=BAD)
    result = session.run("bad.yaml::second[cpu-float32]")
    assert result.status != 0
    assert PROBLEM in result.output


@pytest.mark.slow
def test_other_yaml_files_are_not_taken_for_cases(session: Session) -> None:
    session.cases(first=GOOD)
    elsewhere = session.directory.parent / f"{session.directory.name}-elsewhere"
    elsewhere.mkdir()
    (elsewhere / "compose.yaml").write_text("services: {}\n")
    result = session.run(".", str(elsewhere))
    assert result.statuses == {"first": "pass"}


def test_an_interpreter_without_torch_is_a_clear_error(session: Session) -> None:
    session.cases(first=GOOD)
    session.write("torch.py", "raise ImportError('this torch is broken')\n")
    result = session.run()
    assert result.status == 2
    assert "ImportError: this torch is broken" in result.output


@pytest.mark.slow
def test_an_interpreter_that_is_none_is_a_clear_error(session: Session) -> None:
    session.cases(first=GOOD)
    result = session.run("--python", "nowhere/python")
    assert result.status == 4
    assert "can't start nowhere/python (--python): No such file" in result.output


def blocked_run(session: Session, **options: Any) -> subprocess.Popen[bytes]:
    """Start a run of 40 cases that can't finish, and return it when the 20 that do are in the report."""
    session.write("blocking.py", "import time, torch\ntorch.Tensor.sinh = lambda _: time.sleep(600)\n")
    blocking = "- y = tensor(1.0).sinh()\n- expect: {y: 1}\n"
    session.cases(**{f"case_{number}": GOOD if number < 20 else blocking for number in range(40)})
    run = subprocess.Popen(
        session.command("-q", "--device-module", "blocking"), cwd=session.directory, env=session.environment(),
        stdout=subprocess.DEVNULL, **options,
    )  # fmt: skip
    while run.poll() is None:
        report = session.report()
        if report is not None and len(report["outcomes"]) == 20:
            return run
        time.sleep(0.05)
    raise AssertionError(f"the run ended with {run.returncode}")


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_a_readable_report_without_a_footer(session: Session) -> None:
    run = blocked_run(session, start_new_session=True)
    run.send_signal(signal.SIGKILL)
    run.wait()
    report = session.report()
    assert report is not None
    assert "footer" not in report
    assert [outcome["status"] for outcome in report["outcomes"]] == ["pass"] * 20
    assert len(report["plan"]) == 40
    Draft202012Validator(load_schema("report.schema.json")).validate(report)


def hear_interrupts() -> None:
    """Undo what a shell does to a job in the background, which would make a process deaf to SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.slow
def test_an_interrupted_run_still_writes_its_report(session: Session) -> None:
    run = blocked_run(session, preexec_fn=hear_interrupts)  # there are no threads here
    run.send_signal(signal.SIGINT)
    assert run.wait() == 2
    report = session.report()
    assert report is not None
    assert report["footer"]["exit_status"] == 2
    assert report["footer"]["counts"]["not-run"] >= 16
    assert report["footer"]["counts"]["pass"] == 20


@pytest.mark.slow
def test_a_finished_report_replaces_the_one_before(session: Session) -> None:
    session.cases(first=WRONG_GRAD)
    assert session.run().statuses == {"first": "fail"}
    session.cases(first=GOOD)
    assert session.run().statuses == {"first": "pass"}
    assert sorted(path.suffix for path in (session.directory / "reports").iterdir()) == [".html", ".json"]


@pytest.mark.slow
def test_what_is_kept_of_a_file_is_forgotten_when_it_changes(session: Session) -> None:
    session.cases(first=GOOD)
    session.run()
    assert session.run().statuses == {"first": "pass"}
    session.cases(first=WRONG_GRAD)
    assert session.run().statuses == {"first": "fail"}
    kept = session.directory / ".pytest_cache" / "d" / "conformance"
    for path in kept.iterdir():
        path.write_bytes(b"no entry")
    assert session.run().statuses == {"first": "fail"}


@pytest.mark.slow
def test_a_mode_is_a_further_target(session: Session) -> None:
    session.cases(first=GOOD)
    result = session.run("--under", "anomaly", "--under", "one-thread")
    assert result.report is not None, result.output
    found = [(each["case"], each["target"], each["status"]) for each in result.report["outcomes"]]
    targets = ["cpu-float32", "cpu+anomaly-float32", "cpu+one-thread-float32"]
    assert found == [("first", target, "pass") for target in targets]
    session.cases(first=WRONG_GRAD)
    again = session.run("--under", "anomaly").output
    command = next(line for line in again.splitlines() if "run it alone" in line and "cpu+anomaly" in line)
    alone = session.run(*shlex.split(command.partition(": pytest ")[2]))
    assert "1 failed" in alone.output


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("anomly", "argument --under: there is no mode 'anomly'; did you mean 'anomaly'?"),
        ("not a module:x", "there is no mode 'not a module:x'; expected one of anomaly, saved-tensor-hooks, "),
        ("not_there:x", "--under not_there:x: ModuleNotFoundError: No module named 'not_there'"),
    ],
)
@pytest.mark.slow
def test_a_mode_that_there_is_not_is_said_and_nothing_runs(session: Session, mode: str, why: str) -> None:
    session.cases(first=GOOD)
    result = session.run("--under", mode)
    assert result.status in (2, 4)
    assert result.report is None
    assert why in result.output


@pytest.mark.slow
def test_the_report_goes_where_it_is_told(session: Session) -> None:
    session.cases(first=GOOD)
    result = session.run("--report", "elsewhere")
    assert result.report is None
    page, written = sorted((session.directory / "elsewhere").iterdir())
    assert page.name == "index.html"
    assert json.loads(written.read_text())["footer"]["counts"] == {"pass": 1}


@pytest.mark.slow
def test_case_files_of_several_places_make_one_report(session: Session) -> None:
    session.cases(first=GOOD)
    elsewhere = session.directory.parent / f"{session.directory.name}-elsewhere"
    elsewhere.mkdir()
    Session(elsewhere).cases(name="other.yaml", second=GOOD)
    places = ("first.yaml", str(elsewhere / "other.yaml"), "--rootdir", ".", "-c", "pytest.ini")
    for result in (session.run(*places), session.run(*places, "-n", "2")):
        assert result.status == 0, result.output
        assert result.statuses == {"first": "pass", "second": "pass"}


def index_of(page: Path) -> dict[str, Any]:
    """Return what a page knows before anything on it is opened."""
    packed = page.read_text(encoding="utf-8").partition('id="part-0">')[2].partition("<")[0]
    index: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return index


def publish(session: Session, torch: str) -> Path:
    """Put a report of another build where the published ones are."""
    place = session.directory / "reports" / "published"
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{torch}.json"
    made = report({("first", CPU): Outcome(status="pass")}, cases=[valid_case("first")], torch=torch)
    path.write_text(text_of(made), encoding="utf-8")
    return path


def test_a_run_writes_a_page_with_the_published_reports_beside_it(red: tuple[Session, Result]) -> None:
    session, result = red
    assert "page: reports/index.html" in result.output
    assert result.report is not None
    index = index_of(session.directory / "reports" / "index.html")
    own = result.report["header"]["build"]["torch"]
    assert [(build["torch"], build["is_own"]) for build in index["builds"]] == [
        ("1.13.1", False), ("2.0.1", False), (own, True)
    ]  # fmt: skip
    marks = {index["builds"][each["build"]]["torch"]: each["cells"]["0"]["marks"] for each in index["columns"]}
    old = MARKS["pass"] + " " * 3
    assert marks == {"1.13.1": old, "2.0.1": old, own: MARKS["pass"] + MARKS["fail"] + MARKS["error"] * 2}


@pytest.mark.slow
def test_an_unreadable_published_report_is_named_on_the_page_and_does_no_harm(session: Session) -> None:
    session.cases(first=GOOD)
    publish(session, "1.13.1")
    publish(session, "2.0.1").write_text('{"format": 1, "header"')
    result = session.run()
    assert result.status == 0, result.output
    assert result.statuses == {"first": "pass"}
    page = session.directory / "reports" / "index.html"
    assert [build["is_own"] for build in index_of(page)["builds"]] == [False, True]
    notice = page.read_text(encoding="utf-8").partition("Not shown:")[2].partition("</p>")[0]
    assert "2.0.1.json" in notice
    assert "is it cut off?" in notice


@pytest.mark.slow
def test_a_page_that_can_not_be_written_leaves_the_run_and_its_report_alone(session: Session) -> None:
    session.cases(first=GOOD)
    (session.directory / "reports" / "index.html").mkdir(parents=True)
    result = session.run()
    assert result.status == 0, result.output
    assert "no page: IsADirectoryError" in result.output
    assert "page: reports/index.html" not in result.output
    assert "report: reports/torch-" in result.output
    assert result.statuses == {"first": "pass"}
    assert result.report is not None
    assert result.report["footer"]["exit_status"] == 0
    assert [path for path in (session.directory / "reports").iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_a_session_that_runs_nothing_leaves_the_page_alone(session: Session) -> None:
    session.cases(first=GOOD)
    session.run()
    page = session.directory / "reports" / "index.html"
    before = page.read_bytes()
    session.run("--collect-only")
    assert page.read_bytes() == before


@pytest.mark.slow
def test_with_xdist_there_is_one_page_of_the_whole_run(session: Session) -> None:
    session.cases(**{f"case_{number}": GOOD for number in range(8)})
    result = session.run("-n", "2")
    assert result.output.count("page: reports/index.html") == 1
    index = index_of(session.directory / "reports" / "index.html")
    assert len(index["cases"]) == 8
    assert [build["is_own"] for build in index["builds"]] == [True]


def test_a_run_of_a_part_leaves_the_report_of_the_whole_alone(after: Session) -> None:
    after.cases(first=GOOD, second=WRONG_GRAD)
    assert_part(after, "-k", "second", "--page", "always")
    index = index_of(after.directory / "reports" / "index.html")
    assert [len(build["runs"]) for build in index["builds"]] == [2]


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["alone", "xdist"])
def test_a_run_of_a_part_leaves_the_page_alone_and_says_so(after: Session, workers: tuple[str, ...]) -> None:
    after.cases(first=GOOD, second=WRONG_GRAD)
    page = after.directory / "reports" / "index.html"
    before = page.read_bytes()
    for part in (("-k", "second"), ("first.yaml",), ("--page", "never")):
        output = after.run(*part, *workers).output
        assert page.read_bytes() == before
        (told,) = [line for line in output.splitlines() if line.startswith("page: ")]
        is_never = part[0] == "--page"
        assert told == (
            "page: not written, as --page never says" if is_never else
            "page: reports/index.html is of an earlier run: this one left out cases of the report; see --page"
        )  # fmt: skip
    page.unlink()
    assert "page: reports/index.html\n" in after.run("-k", "second", *workers).output
    assert page.read_bytes() != before


@pytest.mark.slow
def test_a_part_may_be_named_or_be_what_failed_and_a_whole_run_replaces_it(after: Session) -> None:
    after.cases(first=GOOD, second=WRONG_GRAD)
    assert_part(after, "first.yaml::second[cpu-float32]")
    assert_part(after, "first.yaml", "--lf")
    whole = after.run()
    assert whole.report is not None
    assert "partial_runs" not in whole.report["header"]
    assert "outcomes are of the run" not in whole.output


def assert_part(session: Session, *arguments: str) -> None:
    """Hold that a run of the second case alone tells of its topic, and keeps the others' outcomes."""
    part = session.run(*arguments)
    assert part.statuses == {"first": "pass", "second": "fail", "third": "pass"}
    assert part.report is not None
    (run,) = part.report["header"]["partial_runs"]
    assert run["run"]["arguments"] == list(arguments)
    assert "1 of 3 outcomes are of the run of " in part.output
    assert "the others are of the run of " in part.output
    assert "Tests  1 fail\n" in part.output
    assert "Others" not in part.output


@pytest.mark.slow
def test_shards_in_one_place_add_up_to_the_whole(session: Session) -> None:
    session.cases(**{f"case_{number}": GOOD for number in range(6)})
    first, second = (session.run("--shard", f"{number}/2") for number in (1, 2))
    assert set(first.statuses.values()) == {"pass", "not-run"}
    assert set(second.statuses.values()) == {"pass"}
    assert second.report is not None
    assert second.report["header"]["run"]["shard"]["count"] == 2


def test_a_case_that_was_taken_out_leaves_the_report_and_one_of_a_file_that_does_not_load_stays(after: Session) -> None:
    after.cases(first=GOOD)
    after.cases(name="other.yaml", topic="Others", third=BAD)
    statuses = after.run("--continue-on-collection-errors", "-k", "nothing").statuses
    assert statuses == {"first": "pass", "third": "pass"}


@pytest.mark.slow
def test_a_file_of_cases_that_was_taken_out_leaves_the_report(after: Session) -> None:
    (after.directory / "other.yaml").unlink()
    assert after.run("-k", "nothing").statuses == {"first": "pass", "second": "pass"}


def test_a_brief_run_shows_totals_and_what_is_red(session: Session) -> None:
    session.cases(topic="Green", first=GOOD, second=GOOD)
    session.cases(name="other.yaml", topic="Red", third=WRONG_GRAD, fourth=GOOD)
    output = session.run("-q").output
    assert "all topics  3 pass, 1 fail\n" in output
    assert "Red         1 pass, 1 fail\n" in output
    assert "Green" not in output


LOST = "- a = tensor([{0}.0], requires_grad=True)\n{1}- (a * 2).sum().backward()\n- expect: {{a: {{grad: null}}}}\n"


def test_what_is_red_is_told_by_cause_and_a_drafted_list_makes_the_next_run_green(session: Session) -> None:
    lost = {name: LOST.format(at, "- b = a + 1\n" * at) for at, name in enumerate(("first", "second", "third"))}
    session.cases(**lost, fourth="- a = tensor([1.0]).reshape(7)\n- expect: {a: 1}\n", fifth=GOOD)
    result = session.run()
    assert result.report is not None
    shown = "  3  sum: grad: a value instead of null                        first[cpu-float32]"
    assert shown in result.output.splitlines(), result.output
    assert [(cause["counts"], cause["case"]) for cause in result.report["causes"]] == [
        ({"fail": 3}, "first"), ({"error": 1}, "fourth"),
    ]  # fmt: skip
    (path,) = (session.directory / "reports").glob("*.json")
    drafted = drafts_text([load_report(path)], date.today(), KnownIssues())
    assert "cases: [first, second, third]" in drafted
    session.write("mine.yaml.txt", drafted.replace("reason: null", "reason: It is wrong."))
    again = session.run("--known-issues", "mine.yaml.txt")
    assert (again.status, set(again.statuses.values())) == (0, {"known", "pass"}), again.output
    assert "red by cause" not in again.output
    session.cases(**{**lost, "second": GOOD}, fourth=lost["first"], fifth=GOOD)
    strict = session.run("--known-issues", "mine.yaml.txt").statuses
    assert strict == {"first": "known", "second": "fixed", "third": "known", "fourth": "fail", "fifth": "pass"}


def test_a_failure_says_which_error_was_raised_in_a_field(red: tuple[Session, Result]) -> None:
    (failure,) = red[1].outcomes["fourth"]["failures"]
    assert failure["exception"] == "RuntimeError"


def test_what_could_not_be_observed_is_counted_and_named(session: Session) -> None:
    session.write(
        "hides.py",
        """\
        import conformance.worker.storage as place
        place.FULL_DEVICES = frozenset()
        place.has_addresses = lambda kind: False
        """,
    )
    session.cases(
        seen=GOOD, partly="- a = ones(2)\n- expect: {a: 1, a.data_ptr(): 0}\n",
        wrong="- a = ones(2)\n- expect: {a.data_ptr(): 0, a: 2}\n",
        hidden="- a = ones(2)\n- expect: {a.data_ptr(): 0}\n",
    )  # fmt: skip
    result = session.run("--device-module", "hides", "-q")
    assert result.statuses == {"seen": "pass", "partly": "pass", "wrong": "fail", "hidden": "unsupported"}
    assert "3 expectations of 3 cases could not be observed\n" in result.output
    assert "\nnot observed: a.data_ptr() (cpu shows no addresses)\n" in result.output  # below the failure
    assert "partly[cpu-float32]" not in result.output
    told = session.run("--device-module", "hides", "-v").output
    assert "  partly[cpu-float32] not observed: a.data_ptr() (cpu shows no addresses)\n" in told


def test_files_beside_the_one_that_is_named_are_not_read(session: Session) -> None:
    session.cases(first=GOOD)
    session.cases("other.yaml", second=GOOD.replace("is_leaf", "is_laef"))
    named = session.run("first.yaml")
    assert (named.status, named.statuses) == (0, {"first": "pass"})
    assert "other.yaml" not in named.output
    assert "other.yaml does not load" in session.run().output


def test_what_a_case_prints_is_shown_with_its_failure_or_at_once(session: Session) -> None:
    session.cases(
        fine='- print("seen", 1 + 1, sep="-", end="!")\n- expect: {log: []}\n',
        red="- print(tensor([1.5]))\n- expect: {log: [1]}\n",
    )
    captured = session.run("--color=no")
    assert "seen-2!" not in captured.output
    assert re.search(r"-+ Captured stdout call -+\ntensor\(\[1\.5000\]\)\n", captured.output)
    assert "printed" not in json.dumps(captured.report)
    at_once = session.run("-s", "--color=no")
    assert "seen-2!.tensor([1.5000])\nF" in at_once.output
    assert "Captured stdout call" not in at_once.output


def test_printing_wrongly_is_an_error_of_the_case(session: Session) -> None:
    session.cases(first="- do: print(1, end=3)\n  raises: {type: TypeError, match: must be None or a string}\n")
    assert session.run().statuses == {"first": "pass"}


def test_a_pattern_that_was_written_as_text_is_told(session: Session) -> None:
    session.cases(
        first="- a = tensor([1.0], requires_grad=True)\n"
        "- do: a.add_(1)\n  raises: {type: RuntimeError, match: a leaf .* requires grad}\n",
        second="- a = tensor([1.0], requires_grad=True)\n"
        "- do: a.add_(1)\n  raises: {type: RuntimeError, match: a leaf .* requires no grad}\n",
    )
    output = session.run("--color=no").output
    note = "match is text, not a pattern; as one it would have held: write {regex: 'a leaf .* requires grad'}"
    assert output.count(note) == output.count("match is text, not a pattern") == 1
