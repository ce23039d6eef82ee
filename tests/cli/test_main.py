"""The command line and the installed package: the shipped cases run from anywhere, and reports can be read anywhere."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from samples import CPU, HOSTILE, failed, outcome, read_case, report, valid_case
from shipped import all_cases
from write_faults import Faults

from conformance import __version__
from conformance.cli import input as reading
from conformance.cli import main as cli
from conformance.cli.rules import cases_by_rule
from conformance.language.files import parts_of, shipped_cases
from conformance.model.case import Case
from conformance.results.diff import GATES, MEANINGS
from conformance.results.store import text_of

# The cases are read where other tests have cached them, and a page of all of them is no matter.
READ_BEFORE = ("-o", f"cache_dir={ROOT / '.pytest_cache'}", "--page", "never")


def run(*command: str, directory: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))}
    environment = own if path is None else {**own, "PYTHONPATH": str(path)}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_run_runs_the_shipped_cases_from_anywhere(tmp_path: Path) -> None:
    done = run(
        sys.executable,
        "-m",
        "conformance",
        "run",
        "-k",
        "hooks-of-one-tensor or hook-result",
        *READ_BEFORE,
        directory=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases/hooks.yaml" in done.stdout
    assert len(list((tmp_path / "reports").glob("torch-*.json"))) == 1


def test_run_takes_a_case_file_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_bytes((shipped_cases() / "graph.yaml").read_bytes())
    done = run(sys.executable, "-m", "conformance", "run", "own.yaml", "-v", directory=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "own.yaml::node-of-an-exponential[cpu-float32] PASSED" in done.stdout
    assert " passed" in done.stdout


def test_run_takes_a_selection_that_is_longer_than_any_name_of_a_file(tmp_path: Path) -> None:
    wanted = " or ".join(["node-of-an-exponential", *(f"no-{number}" for number in range(99))])
    done = run(sys.executable, "-m", "conformance", "run", "cases/graph.yaml", "-k", wanted, directory=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_cases_prints_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cases"]) == 0
    assert capsys.readouterr().out == f"{shipped_cases()}\n"


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["rnu"])
    assert ended.value.code == 2
    assert "invalid choice: 'rnu'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_python_outside_of_the_checkout_can_be_given_with_a_blank() -> None:
    command = ("-m", "pytest", "-q", "--python", sys.executable, "-k", "hooks-of-one-tensor", "--page", "never")
    done = run(sys.executable, *command, directory=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_installing_the_suite_brings_no_torch() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = text.partition("dependencies = [")[2].partition("]")[0]
    assert '"pytest>=' in needed
    assert "torch" not in needed


@pytest.mark.slow
def test_run_takes_paths_with_a_blank_also_where_a_conftest_brings_the_plugin(tmp_path: Path) -> None:
    """In a checkout pytest would else take the interpreter, which is there, for a place of tests."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["conformance.pytest_plugin.plugin"]\n')
    (tmp_path / "mine.yaml").write_text("include: [shipped]\nissues: []\n")
    options = (
        "--python",
        sys.executable,
        "--known-issues",
        "mine.yaml",
        "--report",
        "out",
        "-k",
        "hardswish-at-its-bounds",
    )
    (tmp_path / "out").mkdir()
    command = (sys.executable, "-m", "conformance", "run", "-q", *options, *READ_BEFORE)
    done = run(*command, directory=tmp_path, path=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert list((tmp_path / "out").glob("torch-*.json"))


@pytest.mark.slow
def test_run_imports_no_conftest_beside_a_case(tmp_path: Path) -> None:
    case = "  - {id: first, title: T, why: W, rules: [bwd.accumulates], steps: [a = ones(1), expect: {a: 1}]}\n"
    (tmp_path / "first.yaml").write_text(f"topic: T\ncases:\n{case}", encoding="utf-8")
    (tmp_path / "conftest.py").write_text("raise SystemExit('imported')\n")
    command = (sys.executable, "-m", "conformance", "run", "-q", "first.yaml")
    for more in ((), ("-p", "no:cacheprovider")):
        done = run(*command, *more, directory=tmp_path, path=ROOT)
        assert "1 passed in" in done.stdout, done.stdout + done.stderr  # without a warning


GOOD = outcome("pass")
OLD = report({("a", CPU): GOOD, ("b", CPU): failed()})
WORSE = report({("a", CPU): failed(), ("b", CPU): failed()})
BETTER = report({("a", CPU): GOOD, ("b", CPU): GOOD})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory, the current one, with some reports in it."""
    monkeypatch.chdir(tmp_path)
    hostile = report({("a", CPU): failed(HOSTILE, HOSTILE, HOSTILE), ("b", HOSTILE): GOOD}, torch=HOSTILE)
    for name, made in {"old": OLD, "worse": WORSE, "better": BETTER, "hostile": hostile}.items():
        (tmp_path / f"{name}.json").write_text(text_of(made), encoding="utf-8")
    (tmp_path / "broken.json").write_text(text_of(OLD)[:-50], encoding="utf-8")
    return tmp_path


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Put a page in the place of the real one, and return what it is asked to show; the suite has one case."""
    asked: list[Any] = []
    shipped = read_case(valid_case("shipped"))

    assert shipped is not None

    def page_of(reports: Any, skipped: Any, suite: Any, nights: Any) -> str:
        assert nights == []
        assert suite.script_of((shipped.id, shipped.digest)) is not None
        assert suite.case_of((shipped.id, shipped.digest)) is shipped
        asked.extend([list(reports), list(skipped)])
        return "<html>"

    monkeypatch.setattr("conformance.cli.report.page_of", page_of)
    monkeypatch.setattr("conformance.cli.report.shipped_of", lambda _: {(shipped.id, shipped.digest): shipped})
    return asked


def test_the_cases_of_a_file_of_the_suite_are_read_once_for_words_and_for_scripts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Path] = []

    def cases_in(file: Path, *_: object) -> list[Case]:
        asked.append(file)
        return []

    monkeypatch.setattr(reading, "cases_in", cases_in)
    reading.shipped_in.cache_clear()
    try:
        reading.shipped()
        read = list(asked)
        assert shipped_cases() / "detach.yaml" in read
        reading.shipped_of([report({("detached-alias-untouched", CPU): outcome("pass")})])
        assert asked == read
    finally:
        reading.shipped_in.cache_clear()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command that is refused says on stderr; it says nothing else."""
    assert cli.main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert "\nhint: " in told.err
    return told.err


@pytest.mark.parametrize(
    "command",
    [
        "report {}", "summary {}", "merge {}", "diff {} {}", "diff {} .", "diff . {}", "upgrade -o out {}",
        "report --nights {} old.json", "check {}", "history {}", "list --file {}", "try {}",
    ],
)  # fmt: skip
def test_a_directory_that_can_not_be_read_is_not_taken_for_an_empty_one(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (here / "closed").mkdir()
    (here / "broken.json").unlink()
    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, closed(getattr(os, name)))
    told = refused(capsys, *command.format("closed", "closed").split())
    assert told.startswith("error: closed: ")
    assert "Permission denied" in told


def closed(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of `os` to which a directory is closed that root's own tests could read."""

    def look(place: Any = ".") -> Any:
        if Path(place).name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        return function(place)

    return look


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("badge old.json >&-", 2, "error: the output can't be written: "),
        ("badge absent.json 2>&-", 2, ""),
        ("diff old.json old.json 2>&-", 0, ""),
        ("badge absent.json <&- >&-", 2, "error: absent.json: can't be read"),
    ],
)
def test_a_stream_that_is_closed_is_no_traceback(here: Path, command: str, status: int, told: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m conformance {command}"
    done = run("sh", "-c", line, directory=here, path=ROOT)
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(told)
    assert "Traceback" not in done.stderr


def test_a_complaint_is_not_as_long_as_a_file_of_strangers_makes_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "long.json").write_text(f'{{"format": "{"x" * 100_000}"}}')
    told = refused(capsys, "badge", "long.json")
    assert "long.json: format 'xxx" in told
    assert "xxx', expected 2" in told
    assert len(told) < 3000


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("new", "status"), [("better.json", 0), ("old.json", 0), ("worse.json", 1)])
@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_diff_gates_in_every_format(capsys: pytest.CaptureFixture[str], new: str, status: int, form: str) -> None:
    assert cli.main(["diff", "old.json", new, "--format", form]) == status
    told = capsys.readouterr()
    assert told.err == ""
    if form == "json":
        assert json.loads(told.out)["gates"] == bool(status)
    else:
        assert ("worse (regressed)" in told.out) == bool(status)


@pytest.mark.usefixtures("here")
def test_diff_and_report_join_what_was_renamed(page: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    Path("new.json").write_text(text_of(report({("c", CPU): GOOD, ("b", CPU): failed()})), encoding="utf-8")
    Path("renames.yaml").write_text("renames: {a: [c]}\n", encoding="utf-8")
    assert cli.main(["diff", "old.json", "new.json"]) == 0
    assert "1 added, 1 removed" in capsys.readouterr().out
    assert cli.main(["diff", "old.json", "new.json", "--renames", "renames.yaml"]) == 0
    assert "nothing got worse: 2 unchanged" in capsys.readouterr().out
    assert cli.main(["report", "old.json", "new.json", "--renames", "renames.yaml"]) == 0
    assert [[record.id for record in made.cases] for made in page[0]] == [["c", "b"], ["c", "b"]]
    capsys.readouterr()
    Path("renames.yaml").write_text("renames: [a]\n", encoding="utf-8")
    assert "renames.yaml:1:10: renames: expected" in refused(
        capsys, "diff", "old.json", "new.json", "--renames", "renames.yaml"
    )
    assert "error: none.yaml: can't be read" in refused(capsys, "report", "old.json", "--renames", "none.yaml")


@pytest.mark.usefixtures("here")
def test_diff_refuses_what_cannot_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.json").write_text(text_of(report({("z", CPU): GOOD})), encoding="utf-8")
    assert "error: old.json and other.json can't be compared: they have no case in common\n" in refused(
        capsys, "diff", "old.json", "other.json"
    )
    assert "broken.json: can't be read as a report: " in refused(capsys, "diff", "old.json", "broken.json")
    assert "missing.json: can't be read: No such file" in refused(capsys, "diff", "missing.json", "old.json")
    assert "can't be read: Is a directory" in refused(capsys, "diff", ".", "old.json")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", ["text", "markdown", "json"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "cp1252"])
def test_diff_prints_hostile_text_on_any_terminal(form: str, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "conformance", "diff", "old.json", "hostile.json", "--format", form],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == b""
    text = done.stdout.decode(encoding if form == "text" else "utf-8")
    assert not {"\x1b", "\u202e"} & set(text)
    assert "U+D800" in text


@pytest.mark.usefixtures("here")
def test_errors_show_what_cannot_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no\u27e8U+001B\u27e9\u27e8U+DC80\u27e9.json: can't be read" in refused(capsys, "badge", "no\x1b\udc80.json")


def test_merge_writes_to_stdout_a_file_or_a_directory(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["merge", "old.json"]) == 0
    assert capsys.readouterr() == (text_of(OLD), "")
    assert cli.main(["merge", "-o", "deep/one.json", "old.json", "old.json"]) == 0
    assert (here / "deep" / "one.json").read_text(encoding="utf-8") == text_of(OLD)
    for place in ("deep", "new/"):
        assert cli.main(["merge", "-o", place, "old.json"]) == 0
        assert (here / place / f"{OLD.build.slug}.json").is_file()
    assert capsys.readouterr() == ("", "")


def test_merge_notes_what_is_missing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = report({("a", CPU): GOOD, ("b", CPU): None}, finished=False)
    (here / "shards").mkdir()
    (here / "shards" / "one.json").write_text(text_of(part), encoding="utf-8")
    assert cli.main(["merge", "-o", "out.json", "shards"]) == 0
    assert capsys.readouterr().err == (
        "note: shards/one.json is incomplete: its run did not finish\n"
        "note: the report is incomplete: 1 of 2 planned have no outcome\n"
    )


@pytest.mark.usefixtures("here")
def test_merge_refuses_with_the_file_and_the_fact(capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "merge", "old.json", "worse.json")
    assert message.startswith(
        "error: worse.json: outcomes: a[cpu-float32]: status: expected 'pass' as in old.json, got"
    )
    assert "is it cut off?" in refused(capsys, "merge", "old.json", "broken.json")


def test_merge_names_no_file_after_what_a_stranger_chose(here: Path) -> None:
    made = report({("a", CPU): GOOD}, torch="../../x\x00\n", system="/etc/\ud800")
    (here / "x.json").write_text(text_of(made), encoding="utf-8")
    assert cli.main(["merge", "-o", "out/", "x.json"]) == 0
    (written,) = (here / "out").iterdir()
    assert written.name == "torch-.._.._x__-01234567-py3.11-_etc__.json"


@pytest.mark.usefixtures("here")
def test_what_cannot_be_written_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert "old.json/x.json: can't be written: " in refused(capsys, "merge", "-o", "old.json/x.json", "old.json")


def test_report_writes_the_page_of_files_and_directories(
    here: Path, page: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "more").mkdir()
    (here / "more" / "b.json").write_text(text_of(WORSE), encoding="utf-8")
    (here / "more" / "a.json").write_text(text_of(BETTER), encoding="utf-8")
    assert cli.main(["report", "old.json", "more"]) == 0
    assert page == [[OLD, BETTER, WORSE], []]
    assert (here / "reports" / "index.html").read_text(encoding="utf-8") == "<html>"
    assert capsys.readouterr().out == "reports/index.html\n"


def test_report_refuses_what_it_cannot_read_unless_told_otherwise(
    here: Path, page: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "empty").mkdir()
    assert "broken.json: can't be read as a report: " in refused(capsys, "report", "old.json", "broken.json")
    assert "empty: there is no *.json in this directory" in refused(capsys, "report", "empty")
    assert "none of the reports can be read" in refused(capsys, "report", "--skip-unreadable", "broken.json")
    assert page == []
    assert cli.main(["report", "--skip-unreadable", "-o", "x.html", "broken.json", "old.json", "nowhere.json"]) == 0
    assert page[0] == [OLD]
    assert [reason.partition(": ")[0] for reason in page[1]] == ["broken.json", "nowhere.json"]


@pytest.mark.usefixtures("here")
def test_summary_prints_no_more_than_its_limit(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.main(["summary", "old.json", "hostile.json"]) == 0
    whole = capfdbinary.readouterr().out
    assert whole.startswith(b"## Autograd conformance\n")
    assert cli.main(["summary", "--limit", "600", "old.json", "hostile.json"]) == 0
    assert len(capfdbinary.readouterr().out) <= 600 < len(whole)


def test_a_page_for_others_says_nothing_of_the_machines(here: Path, page: list[Any]) -> None:
    assert cli.main(["report", "-o", "out.html", "--without-machines", "old.json"]) == 0
    (shown,) = page[0]
    assert (shown.build.path, shown.build.executable, shown.build.platform) == ("", "", "")
    assert shown.outcomes == OLD.outcomes
    assert (here / "out.html").is_file()


@pytest.mark.usefixtures("here")
def test_known_issues_are_drafted_from_what_is_red(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["known-issues", "old.json"]) == 0
    drafted = capsys.readouterr().out
    assert drafted.startswith("include: [shipped]\nissues:\n")
    assert "  - case: b\n    targets: [cpu]\n    torch: '>=2.13'\n" in drafted
    assert "hostile.json: header.build.torch: expected a version" in refused(capsys, "known-issues", "hostile.json")


def test_what_a_list_describes_is_not_drafted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["known-issues", "--known-issues", "none", "worse.json"]) == 0
    drafted = capsys.readouterr().out
    assert "cases: [a, b]" in drafted
    (here / "mine.yaml").write_text(drafted.replace("[a, b]", "[b]").replace("reason: null", "reason: It is wrong."))
    assert cli.main(["known-issues", "--known-issues", "mine.yaml", "worse.json"]) == 0
    drafted = capsys.readouterr().out
    assert drafted.startswith("issues:\n")
    assert "  - case: a\n" in drafted
    (here / "wrong.yaml").write_text("issues: 3\n")
    assert "wrong.yaml:1:9: issues: expected a list" in refused(
        capsys, "known-issues", "--known-issues", "wrong.yaml", "old.json"
    )
    assert "absent.yaml: can't be read" in refused(capsys, "known-issues", "--known-issues", "absent.yaml", "old.json")


def test_directories_are_compared_by_the_names_of_their_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, files in {"before": {"a": OLD, "b": OLD}, "after": {"a": OLD, "b": BETTER, "c": WORSE}}.items():
        (here / place).mkdir()
        for name, made in files.items():
            (here / place / f"{name}.json").write_text(text_of(made), encoding="utf-8")
    assert cli.main(["diff", "before", "after"]) == 0
    capsys.readouterr()
    assert cli.main(["diff", "before", "after", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["builds"].keys() == {"a.json", "b.json", "c.json"}
    assert cli.main(["diff", "after", "before"]) == 1
    assert "== c.json\nworse (gone)" in capsys.readouterr().out
    (here / "empty").mkdir()
    assert "there is no *.json in this directory" in refused(capsys, "diff", "before", "empty")


@pytest.mark.usefixtures("here")
def test_badge_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["badge", "old.json", "--label", "nightly"]) == 0
    assert json.loads(capsys.readouterr().out)["message"] == "1 fail, 1 pass"


def test_each_command_is_a_module_and_each_module_that_can_run_is_a_command() -> None:
    files = (ROOT / "conformance" / "cli").glob("*.py")
    able = {path.stem for path in files if "\ndef run(" in path.read_text(encoding="utf-8")}
    assert able == set(map(cli.module_of, cli.COMMANDS))


@pytest.mark.parametrize("command", ["", *(name for name in cli.COMMANDS if name != "run")])
def test_help_gives_an_example_and_the_exit_statuses(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*command.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "exit status" in text
    if command != "cases":
        assert f"  autograd-conformance {command}" in text


def test_help_of_diff_says_which_kinds_gate(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["diff", "--help"])
    text = capsys.readouterr().out
    for kind, meaning in MEANINGS.items():
        assert f"\n{'*' if kind in GATES else ' '} {kind.replace('-', ' '):19} {meaning}\n" in text


def test_run_leaves_help_to_pytest(tmp_path: Path) -> None:
    done = run(sys.executable, "-m", "conformance", "run", "--help", directory=tmp_path)
    assert done.returncode == 0
    assert "autograd conformance:" in done.stdout
    assert "--require-device" in done.stdout


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"autograd-conformance {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["diff", "one.json"], ["summary", "--limit", "0", "x"], ["badge", "a", "b"]])
def test_a_command_that_is_not_complete_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_reading_reports_needs_neither_pytest_nor_torch(here: Path) -> None:
    commands = [
        ["diff", "old.json", "better.json"], ["merge", "old.json"], ["summary", "old.json"], ["badge", "old.json"],
        ["known-issues", "old.json"], ["report", "old.json"],
    ]  # fmt: skip
    program = (
        "import sys\nfrom conformance.cli.main import main\n"
        f"for command in {commands!r}: assert main(command) == 0\n"
        "assert not {'pytest', '_pytest', 'torch'} & sys.modules.keys()\n"
    )
    done = run(sys.executable, "-c", program, directory=here, path=ROOT)
    assert done.returncode == 0, done.stderr


WRITING = {
    "report": ("report -o out/page.html old.json", "page.html"),
    "merge": ("merge -o out/merged.json old.json", "merged.json"),
    "merge into a directory": ("merge -o out/ old.json", f"{OLD.build.slug}.json"),
    "compact": ("compact -o out old.json", f"{OLD.build.slug}.json"),
}


@pytest.mark.parametrize(("command", "name"), WRITING.values(), ids=WRITING)
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.usefixtures("here")
def test_whichever_write_of_a_command_fails_it_says_so_and_what_was_there_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, name: str, *, for_good: bool
) -> None:
    target = Path("out", name)
    for failing in itertools.count(1):
        shutil.rmtree("out", ignore_errors=True)
        target.parent.mkdir()
        target.write_text("what was there")
        with monkeypatch.context() as patch:
            faults = Faults(patch, failing, for_good=for_good)
            status = cli.main(command.split())
        assert [path.name for path in Path("out").iterdir() if not path.name.startswith(".")] == [name]
        if faults.calls < failing:
            break
        told = capsys.readouterr().err
        if status:
            assert status == 2
            assert target.read_text() == "what was there"
            assert (
                told == f"error: out/{name}: can't be written: No space left on device\nhint: -o names another place\n"
            )
    assert status == 0
    assert target.read_text() != "what was there"
    assert failing > 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
@pytest.mark.parametrize(
    "command", ["merge old.json", "badge old.json", "diff old.json old.json", "--help", "diff --help"]
)
def test_output_that_can_not_be_written_is_an_error(here: Path, command: str) -> None:
    program = f"{shlex.quote(sys.executable)} -m conformance {command} > /dev/full"
    done = run("sh", "-c", program, directory=here, path=ROOT)
    told = "error: the output can't be written: No space left on device\nhint: is the disk full?\n"
    assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.parametrize("command", ["merge long.json", "run --help", "run -v -k engine", "history versions.yaml"])
def test_a_reader_that_has_seen_enough_is_no_error(here: Path, command: str) -> None:
    (here / "long.json").write_text(
        text_of(report({("a", f"d{number}-float32"): failed() for number in range(9000)})), encoding="utf-8"
    )
    (here / "versions.yaml").write_bytes((shipped_cases() / "versions.yaml").read_bytes())
    program = f"{shlex.quote(sys.executable)} -m conformance {command} | head -c 1"
    done = run("sh", "-c", program, directory=here, path=ROOT)
    assert (len(done.stdout), done.stderr) == (1, "")


def test_history_prints_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(shipped_cases() / "versions.yaml")
    assert cli.main(["history", file]) == 0
    assert capsys.readouterr().out.startswith("torch 2.")
    assert cli.main(["history", file, "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| torch | behaviour | of | before | since |\n")
    assert cli.main(["history", file, "--format", "json"]) == 0
    assert {change["file"] for change in json.loads(capsys.readouterr().out)["changes"]} == {"versions.yaml"}


def test_history_refuses_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("topic: T\ncases: 1\nother: 2\n", encoding="utf-8")
    told = {
        str(tmp_path / "missing.yaml"): [
            f"error: {tmp_path / 'missing.yaml'}: can't be read: No such file or directory"
        ],
        str(wrong): [
            "error: wrong.yaml:2:8: cases: expected a list of cases, each begun with - id, got 1",
            "error: wrong.yaml:3:1: other: unknown key 'other' (it takes topic, cases, programs, ops)",
        ],
    }
    for place, lines in told.items():
        assert cli.main(["history", place]) == 2
        assert capsys.readouterr().err.splitlines()[:-1] == lines
    wrong.unlink()
    assert cli.main(["history", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}: there is no case file in this directory\n")


def test_rules_are_found_by_words_with_their_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "detach", "shares", "memory"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "detach.shares-storage  (documented, since 1.13)\n  A detached tensor shares its memory with"
    )
    assert "\n  cases: " in text.partition("\n\n")[0]
    assert cli.main(["rules", "hook"]) == 0
    assert capsys.readouterr().out.endswith(" more; --all lists them\n")
    assert cli.main(["rules", "--format", "json", "detach.shares-storage"]) == 0
    first = json.loads(capsys.readouterr().out)["rules"][0]
    assert (first["id"], first["level"]) == ("detach.shares-storage", "documented")
    assert "detached-alias-untouched" in first["cases"]
    assert cli.main(["rules", "xyzzy"]) == 1
    assert "no rule has these words" in capsys.readouterr().out


def test_the_cases_of_a_rule_are_those_that_cite_it() -> None:
    written = {(rule, case) for rule, cases in cases_by_rule().items() for case in cases}
    loaded = {(rule, case.id) for case in all_cases() for rule in case.rules}
    assert {rule for rule, _ in written} == {rule for rule, _ in loaded}
    cited = {rule: [case for other, case in loaded if other == rule] for rule, _ in written}
    assert all(any(case in parts_of(each) for each in cited[rule]) for rule, case in written)


def test_what_rules_cannot_read_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "expected words to look for" in refused(capsys, "rules")
    assert "can't be read" in refused(capsys, "rules", "hook", "--rules", str(tmp_path / "none.yaml"))
    (tmp_path / "rules.yaml").write_text("rules: [1]\n", encoding="utf-8")
    assert "rules.yaml:1:9: rules[0]: expected a mapping" in refused(
        capsys, "rules", "hook", "--rules", str(tmp_path / "rules.yaml")
    )


@pytest.mark.parametrize(
    "case", ["detached-alias-zeroed-after-sigmoid", "derivatives-of-relu", "derivatives-of-trapezoid"]
)
def test_a_case_is_shown_with_its_rules_and_as_plain_torch(capsys: pytest.CaptureFixture[str], case: str) -> None:
    assert cli.main(["show", case]) == 0
    text = capsys.readouterr().out
    assert "\nrule " in text
    assert "\nassert " in text


def test_a_case_that_cannot_be_shown_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "show", "detached-alias-zeroed-after-sigmoi")
    assert "did you mean 'detached-alias-zeroed-after-sigmoid'?" in told
    assert "can't run" in refused(capsys, "show", "hook-before-the-node-or-weights-on-a-layer", "--torch", "1.13.1")
    assert "--torch: " in refused(capsys, "show", "detached-alias-untouched", "--torch", "new")
