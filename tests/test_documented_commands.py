"""Every command line that the documentation shows is executed, where there is what it told the reader to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

import forks
import pytest
from packaging.requirements import Requirement
from places import ROOT
from sources import keep_topics

from conformance.language.files import case_files, shipped_cases

DOCUMENTS = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
PROGRAMS = "git|nox|npm|pip|pytest|python|ruff"
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)

# Those that can't be executed as they stand: why, and the command that is executed instead, or where else it is tested.
STAND_INS = {
    "pytest --known-issues none --python …": ("… is any", "pytest --known-issues none --python ../venv-2.6/bin/python"),
    "python -m conformance COMMAND --help": ("COMMAND is any", "python -m conformance diff --help"),
    'python -m conformance run … -k "leaf or retained or backward-twice"': (
        "… is any",
        'python -m conformance run -k "leaf or retained or backward-twice"',
    ),
}
ANSWERED = "python -m conformance confirm draft.yaml --answers answers.txt"
COPIED = "cp draft.yaml answered.yaml"  # other commands are about the draft before it was confirmed
STAND_INS |= {
    command: (
        "comes after another command",
        f"{COPIED} && " + f"{ANSWERED} && {command}".replace("draft.yaml", "answered.yaml"),
    )
    for command in (
        "python -m conformance run draft.yaml",
        "python -m conformance similar draft.yaml",
        "python -m conformance mutate draft.yaml::line-1-of-snippet-py",
        "python -m conformance try draft.yaml --python ../venv-1.13/bin/python --python ../venv-2.6/bin/python "
        "--python .venv/bin/python",
    )
}
ELSEWHERE = {
    "git clone … && cd autograd-conformance && python -m venv .venv && . .venv/bin/activate": "is what `reader` does",
    "git diff --stat": "is of git alone",
    "nox": "installs every release",
    "nox -s publish": "is for maintainers, on reports of every release; tests/test_noxfile.py runs it on others",
    **dict.fromkeys(
        ["nox -t xla", "nox -t jax", "nox -t vulkan"], "installs a back-end, and runs the suite for minutes"
    ),
    "nox -t 2.6.0": "installs a release; tests/test_noxfile.py runs the session on one that doesn't exist",
    "nox -t 2.6.0 -s torch": "installs a release; tests/test_noxfile.py runs the session on one that doesn't exist",
    "python -m conformance coverage -o cases/left-out.txt": "takes minutes; tests/execution/test_reach.py does it",
    "npm exec --package=typescript@5.9.3 -- tsc -p .": "brings a compiler; .ci/run runs it",
    "npm exec --yes --package=typescript@5.9.3 -- tsc -p .": "brings a compiler; .ci/run runs it",
    'pip install -e ".[dev]" && pytest tests -n auto': "is what this test is part of; .ci/run runs it",
    "pip install .": "is what `reader` does, from what is there",
    "pip install argcomplete": "is of another package",
    "pip install nbformat": "is of another package",
    "pip install torch==2.13.0 -e .": "is what `reader` does, from what is there",
    'pip install -e ".[editors]"': "brings what the suite's own tests have already",
    "python -m conformance language-server": "editors start it, as tests/cli/test_language_server.py does",
    "pip install torch==2.13.0 -e . && pytest": "brings gigabytes, and is what .ci/run begins with",
    "python -m sphinx -W -d build/doctrees docs build/site": "needs all reports; tests/docs/test_site.py does it",
    "python tests/allocation_faults.py": "takes minutes; tests/results/test_allocations.py does some of it",
    "python tests/formula_faults.py --count 300 --seed 1": "takes minutes; tests/test_formula_faults.py plants a few",
    "python tests/source_faults.py torch.optim --count 300 --seed 1": "takes minutes; its tests plant some",
    'pip install torch==2.13.0 -e ".[dev]"': "brings gigabytes; .ci/run runs it",
    "pip install torch==2.9.0 torch_xla==2.9.0": "brings gigabytes, and another torch than the one under test",
    "pytest tests -n auto": "is what this test is part of",
    "pytest tests/language --update-snippets": "writes into the checkout, with the tools of who changes the suite",
    "pytest -p conformance.pytest_plugin.plugin --dist=load --rsyncdir=. --device cuda "
    "--tx ssh=gpu1//python=/venv/bin/python "
    "--tx ssh=gpu2//python=/venv/bin/python": "needs hosts; tests/pytest_plugin/test_gateways.py has two",
    "pytest --under my_modes:Counting cases/hooks.yaml": "needs a module; tests/worker/test_modes.py has some",
    "python script.py npu": "is of a script from the page; tests/render/script runs those of all cases",
    "ruff check . && ruff format . && mypy": "is of the suite's own tests; .ci/run runs it",
}
# Those that end otherwise than with 0, and what they say then.
TOLD = {
    "pytest --device cuda --require-device cuda": (1, "required device cuda"),
    "pytest --known-issues none --python …": (1, " failed"),
    "python -m conformance bisect CASE --good 2.3.1 --bad 2.6.0": (2, "there is no case 'CASE'"),
    "python -m conformance run --profile npu --python ~/venv-npu/bin/python --require-device npu": (
        1,
        "required device npu",
    ),
    "python -m conformance confirm draft.yaml": (1, "goes on where you stopped"),
    "python -m conformance similar draft.yaml": (1, "no case asks the same"),  # of those few that there are
    "python -m conformance profile npu --device-module torch_npu": (2, "npu can't be used"),
    "python -m conformance profile npu --device-module torch_npu --python ~/venv-npu/bin/python -o mine-npu.yaml": (
        2,
        "npu can't be used",
    ),
    "python -m conformance run --profile mine-npu.yaml --python ~/venv-npu/bin/python": (4, "can't be read"),
}
TOPICS = ("detach", "hooks")  # what there is of the cases for all other commands
NPU = """\
import sys, types, torch
torch.utils.rename_privateuse1_backend("npu")
module = sys.modules["torch_npu.npu"] = types.ModuleType("npu")
module.is_available = lambda: False
module.synchronize = lambda: None
torch._register_device_module("npu", module)
"""


def commands_of(text: str) -> Iterator[str]:
    """Yield the command lines of a document: lines of blocks, and what stands in backquotes."""
    for block in FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(rf"({PROGRAMS})\b", line):
                yield " ".join(line.partition(" #")[0].split())
    for quoted in re.findall(rf"`((?:{PROGRAMS}) [^`]*)`", FENCED.sub("", text)):
        yield " ".join(quoted.split())


TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
COMMANDS = list(dict.fromkeys(command for text in TEXTS.values() for command in commands_of(text)))
ELSEWHERE |= {
    command: "takes minutes; tests/worker/test_escapes.py and tests/pytest_plugin/test_recorder.py do some of it"
    for command in COMMANDS
    if command.startswith(("python tests/walls.py", "python tests/interruptions.py"))
}
ELSEWHERE |= {
    command: "takes many minutes, and a fuzzer; tests/test_fuzzing.py reads some of what it feeds"
    for command in COMMANDS
    if command.startswith("python tests/fuzzing.py")
}
ELSEWHERE |= {
    command: "takes minutes; tests/test_benchmarks.py runs each benchmark with small numbers"
    for command in COMMANDS
    if command.startswith("python benchmarks/")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who has a checkout, and an environment with what `pip install torch -e .` brings."""

    checkout: Path
    variables: Mapping[str, str]

    def does(self, command: str) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON", "COV"))}
        path = f"{self.checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        places = {"HOME": str(self.checkout.parent), "GITHUB_STEP_SUMMARY": str(self.checkout.parent / "job.md")}
        return subprocess.run(
            ["sh", "-c", command], cwd=self.checkout, env={**own, **places, **self.variables, "PATH": path},
            check=False, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=300,
        )  # fmt: skip


def needed(names: list[str]) -> dict[str, Distribution]:
    """Return the distributions of this environment that pip would install for these, without any extra."""
    found: dict[str, Distribution] = {}
    while names:
        requirement = Requirement(names.pop())
        if requirement.name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found[requirement.name] = distribution(requirement.name)
            names += found[requirement.name].requires or []
    return found


def install(checkout: Path) -> None:
    """Make the environment; what is installed here is linked, and not installed anew."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", checkout / ".venv"], check=True)
    (site,) = (checkout / ".venv").glob("lib/python*/site-packages")
    build = "import sys, hatchling.build; print(hatchling.build.build_editable(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", build, str(checkout.parent)], cwd=checkout, check=True, capture_output=True, text=True
    )
    zipfile.ZipFile(checkout.parent / built.stdout.split()[-1]).extractall(site)
    (own,) = site.glob("*.dist-info")
    for found in needed([*(Distribution.at(own).requires or []), "torch"]).values():
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    for name in ("pytest", "conformance"):
        script = checkout / ".venv" / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{script.parent}/python" -m {name} "$@"\n')
        script.chmod(0o755)


def checkout_in(place: Path, **variables: str) -> Reader:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.splitlines()):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    install(place)
    return Reader(checkout=place, variables=variables)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Return a reader with few cases, the files that the commands are about, and workers that start at once."""
    home = tmp_path_factory.mktemp("home")
    made = checkout_in(home / "checkout", PYTEST_ADDOPTS=f"--python {forks.python()}", PYTHONPATH=str(home / "modules"))
    cases = made.checkout / "cases"
    keep_topics(cases, TOPICS)
    first = FENCED.findall(TEXTS["CONTRIBUTING.md"])[1]
    assert "topic: Mine" in first
    for folder in (cases, made.checkout):
        (folder / "mine.yaml").write_text(first, encoding="utf-8")
    blocks = FENCED.findall(TEXTS["docs/tutorial.md"])
    snippet, answers, asking = (
        next(block for block in blocks if begin in block)
        for begin in ("import torch\n", "Each element goes through", "id: detached-alias-sees-writes")
    )
    for name, text in {"snippet.py": snippet, "answers.txt": answers, "asking.yaml": asking}.items():
        (made.checkout / name).write_text(text, encoding="utf-8")
    assert made.does("python -m conformance draft snippet.py -o draft.yaml").returncode == 0
    (made.checkout / "known-issues.yaml").write_text("include: [shipped]\nissues: []\n", encoding="utf-8")
    python = made.checkout / ".venv" / "bin" / "python"
    for name in ("venv-2.6", "venv-1.13", "venv-npu"):
        (home / name / "bin").mkdir(parents=True)
        (home / name / "bin" / "python").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
        (home / name / "bin" / "python").chmod(0o755)
    (home / "modules").mkdir()
    (home / "modules" / "torch_npu.py").write_text(NPU)
    for number, place in enumerate(("one", "two"), 1):
        done = made.does(f"pytest -q --shard {number}/2 --report {place}")
        assert done.returncode == 0, done.stdout
        shutil.copy(next((made.checkout / place).glob("*.json")), made.checkout / f"shard-{place}.json")
    merged = made.does("python -m conformance merge -o report.json one/ two/")
    assert merged.returncode == 0, merged.stdout
    names = ("one", "another", "old", "new", "last-good/cpu", "tonight/cpu", "reports/torch-2.13.0", "reports/matrix/a")
    for name in names:
        (made.checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made.checkout / "report.json", made.checkout / f"{name}.json")
    return made


def test_nothing_is_listed_that_no_document_shows() -> None:
    assert {*STAND_INS, *ELSEWHERE, *TOLD} <= set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in ELSEWHERE])
def test_a_documented_command_does_what_it_is_there_for(reader: Reader, command: str) -> None:
    status, words = TOLD.get(command, (0, ""))
    done = reader.does(STAND_INS[command][1] if command in STAND_INS else command)
    assert done.returncode == status, done.stdout
    assert words in done.stdout


def test_each_word_by_which_a_documented_command_selects_selects_something() -> None:
    selections = [found for text in TEXTS.values() for found in re.findall(r'-k (?:"([^"]+)"|([\w-]+))', text)]
    words = [word for quoted, plain in selections for word in re.split(r" (?:or|and) ", quoted or plain)]
    words = [word.removeprefix("not ") for word in words]
    ids = re.findall(
        r"^  - id: (\S+)", "".join(path.read_text() for path in case_files([shipped_cases()])), re.MULTILINE
    )
    assert words
    assert [word for word in words if not any(word in name for name in ids)] == []
