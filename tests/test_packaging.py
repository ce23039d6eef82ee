"""Tests of the package as a whole: what it needs is declared, what it reads is in it, and it knows its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from places import ROOT
from sources import commit, copy_sources
from test_rooms import MODULES, imports_of, tree_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
UNDER_TEST = {"torch"}  # it is whatever is there
FOR_DEVELOPERS = {"dev", "docs", "fuzz"}  # what the checkout is worked on with; the package needs none of it


ADDRESS = re.compile(r"github\.com/([\w.-]+/autograd-conformance)\b|uses: ([\w.-]+/autograd-conformance)/")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
NAMING = ["pyproject.toml", "CITATION.cff", "README.md", "docs/back-ends.md", ".github/ISSUE_TEMPLATE/back-end.yml"]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def test_what_the_package_imports_is_declared_and_what_is_declared_is_imported() -> None:
    roots = {found.partition(".")[0] for path in MODULES.values() for found, _ in imports_of(tree_of(path))}
    others = roots - sys.stdlib_module_names - UNDER_TEST - {"conformance"}
    distributions = packages_distributions()
    imported = {name_of(distribution) for root in others for distribution in distributions[root]}
    extras = (
        each
        for name, listed in PROJECT["optional-dependencies"].items()
        if name not in FOR_DEVELOPERS
        for each in listed
    )
    declared = {name_of(each) for each in (*PROJECT["dependencies"], *extras)}
    assert imported <= declared
    # pytest itself loads pytest-xdist, for `-n`; nothing else is declared without being imported.
    assert declared - imported == {"pytest-xdist"}


def run(*command: str, directory: Path, path: Path | None = None) -> str:
    """Return what a command that must succeed prints, with the package from `path`."""
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path is not None else {})}
    done = subprocess.run(
        command, cwd=directory, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    return copy_sources(tmp_path / "sources")


def built(sources: Path, kind: str) -> Path:
    """Build the package, with what is installed here, and return the file."""
    run(sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", "../dist", directory=sources)
    (made,) = (sources.parent / "dist").glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.mark.slow
def test_a_wheel_has_all_that_the_package_reads_and_runs_the_cases(sources: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built(sources, "wheel")) as wheel:
        wheel.extractall(tmp_path / "site")
    ours = {path.relative_to(sources) for path in (sources / "conformance").rglob("*") if path.is_file()}
    ours |= {Path("conformance") / path.relative_to(sources) for path in (sources / "cases").rglob("*")}
    there = {path.relative_to(tmp_path / "site") for path in (tmp_path / "site" / "conformance").rglob("*")}
    assert ours <= there
    assert Path("conformance/py.typed") in there
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    python = (sys.executable, "-m", "conformance")
    where = run(*python, "cases", directory=elsewhere, path=tmp_path / "site")
    assert where.strip() == str(tmp_path / "site" / "conformance" / "cases")
    told = run(*python, "run", "-q", where.strip() + "/detach.yaml", directory=elsewhere, path=tmp_path / "site")
    assert " passed" in told
    assert (elsewhere / "reports" / "index.html").is_file(), told


@pytest.mark.slow
def test_an_sdist_is_enough_to_build_the_wheel_and_keeps_the_version(sources: Path, tmp_path: Path) -> None:
    with tarfile.open(built(sources, "sdist")) as sdist:
        sdist.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    shutil.rmtree(tmp_path / "dist")
    assert built(unpacked, "wheel").name == f"{unpacked.name}-py3-none-any.whl"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tag", "version"),
    [("v0.3.0", r"0\.3\.0"), ("v0.3.0 and a commit", r"0\.3\.1\.dev1\+g[0-9a-f]+"),
     ("no tag", r"0\.1\.dev1\+g[0-9a-f]+"), ("no git", r"0\.1\.dev0")],
)  # fmt: skip
def test_the_version_is_that_of_the_tag(sources: Path, tag: str, version: str) -> None:
    if tag != "no git":
        commit(sources, tag="v0.3.0" if tag.startswith("v") else None)
    if tag.endswith("commit"):
        commit(sources)
    with zipfile.ZipFile(built(sources, "wheel")) as wheel:
        text = wheel.read("conformance/_version.py").decode()
    assert re.fullmatch(f"version = '{version}'\n", text), text
    program = f"import sys; sys.path.insert(0, {str(sources)!r}); import conformance; print(conformance.__version__)"
    assert run(sys.executable, "-S", "-c", program, directory=sources.parent) == text.partition("'")[2].replace("'", "")


def test_a_checkout_that_nothing_was_built_from_has_no_version(sources: Path) -> None:
    command = (sys.executable, "-S", "-c", "import conformance; print(conformance.__version__)")
    assert run(*command, directory=sources, path=sources) == "0+unknown\n"


def test_the_repository_has_one_name_everywhere() -> None:
    named = {
        name: {found[1] or found[2] for found in ADDRESS.finditer((ROOT / name).read_text(encoding="utf-8"))}
        for name in NAMING
    }
    assert set().union(*named.values()) == {PROJECT["urls"]["Repository"].removeprefix("https://github.com/")}, named
    assert all(named[name] for name in NAMING if name != "README.md")


def test_the_citation_is_what_the_package_says_of_itself() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["title"] == PROJECT["name"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]
    assert citation["abstract"] == PROJECT["description"] + "."


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_an_issue_form_asks_each_thing_once_and_requires_something(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert all(link.keys() == {"name", "url", "about"} for link in form["contact_links"])
        return
    assert form.keys() == {"name", "description", "title", "labels", "body"}
    asked = [entry for entry in form["body"] if entry["type"] != "markdown"]
    assert {entry["type"] for entry in asked} <= {"input", "textarea", "dropdown"}
    for facts in ([entry["id"] for entry in asked], [entry["attributes"]["label"] for entry in asked]):
        assert len(set(facts)) == len(facts)
    assert any(entry.get("validations") == {"required": True} for entry in asked)
