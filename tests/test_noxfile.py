"""The local matrix: a session for each release, a column for one that can't be installed, and nothing done twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sources import keep_topics

from conformance.releases.catalogue import load_releases
from conformance.results.store import load_report

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
NOX = [sys.executable, "-m", "nox", "--no-color"]


def test_each_release_has_a_session() -> None:
    done = subprocess.run([*NOX, "--list"], cwd=ROOT, check=True, capture_output=True, text=True)
    for release in load_releases().releases:
        assert f"* torch({release.torch})" in done.stdout
    for profile in ("xla", "jax", "vulkan"):
        assert f"- back_end({profile})" in done.stdout
    assert "* page" in done.stdout
    assert "- publish" in done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the suite with few cases, whose only release does not exist."""
    for name in ("conformance", "cases"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    keep_topics(tmp_path / "cases", ("hooks",))
    shutil.copy(ROOT / "noxfile.py", tmp_path)
    here = ".".join(map(str, sys.version_info[:2]))
    releases = {"python": here, "releases": [{"torch": "0.0.1", "pythons": [here, here], "with": []}]}
    (tmp_path / "conformance" / "releases" / "releases.json").write_text(json.dumps(releases))
    return tmp_path


def nox(checkout: Path, *arguments: str) -> str:
    environment = {**os.environ, "UV_OFFLINE": "1", "PIP_NO_INDEX": "1", "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [*NOX, *arguments], cwd=checkout, env=environment, check=False, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_release_that_can_not_be_installed_has_a_column_and_is_not_tried_twice(checkout: Path) -> None:
    first = nox(checkout)
    assert "torch 0.0.1 (1 of 1" in first
    assert "not run" in first
    (path,) = (checkout / "reports" / "matrix").glob("torch-0.0.1*.json")
    report = load_report(path)
    assert report.outcomes[0].reason.startswith("it could not be installed: ")
    assert "0.0.1" in (checkout / "reports" / "matrix" / "index.html").read_text(encoding="utf-8")
    written = path.stat().st_mtime_ns
    again = nox(checkout, "-t", "0.0.1")
    assert "torch 0.0.1 (1 of 1, 0 s)" in again
    assert path.stat().st_mtime_ns == written
    with (checkout / "cases" / "hooks.yaml").open("a", encoding="utf-8") as cases:
        cases.write("# another state of the suite\n")
    nox(checkout, "-t", "0.0.1")
    assert path.stat().st_mtime_ns > written


def test_what_is_there_can_be_published(checkout: Path) -> None:
    nox(checkout, "-s", "torch", "publish")
    published = checkout / "reports" / "published"
    (path,) = published.glob("*.json")
    assert '"compact": 1' in path.read_text(encoding="utf-8")
    assert {outcome.status for outcome in load_report(path).outcomes} == {"not-run"}
    assert (published / "index.html").is_file()
