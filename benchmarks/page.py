"""Measures the page of many reports: its size, and how long it takes to make, to open and to filter.

    python benchmarks/page.py
    python benchmarks/page.py --builds 20 --cases 10000 --targets 10

The reports are made up from the shipped cases, with other ids, titles and numbers; a case has the same graph on all
builds, as nearly all have. Making the page is timed with loaded
cases, as in pytest. The times in the browser are Chromium's: from the start of the navigation until the
search field takes input, and from an input or a click until the frame after it has been drawn.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import random
import shutil
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path

from playwright.sync_api import sync_playwright

from conformance.language.files import case_files, shipped_cases
from conformance.language.reader import parse_cases
from conformance.language.rules import load_rules
from conformance.model.build import Build, Device
from conformance.model.case import Case
from conformance.model.graph import Graph, GraphEdge, GraphNode, GraphTensor, SavedTensor
from conformance.model.outcome import Failure, Outcome
from conformance.model.report import (
    FORMAT,
    Header,
    PlanEntry,
    Report,
    Run,
    SuiteVersion,
    case_record,
    cited_rules,
    footer_of,
)
from conformance.model.rule import Rule
from conformance.render.page.page import Suite, page_of
from conformance.render.script.script import script_of

RELEASES = "1.13.1 2.0.1 2.1.2 2.2.2 2.3.1 2.4.1 2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0".split()
TARGETS = "cpu-float32 cpu-float64 cpu-bfloat16 cpu-float16 cpu-complex64 xpu-float32 xpu-float64 xpu-bfloat16".split()
TARGETS += "xpu-float16 xpu-complex64".split()
INPUTS = {
    "search a word": "q.value = 'gradient'; q.dispatchEvent(new Event('input'))",
    "search two words": "q.value = 'gradient observed'; q.dispatchEvent(new Event('input'))",
    "clear the search": "q.value = ''; q.dispatchEvent(new Event('input'))",
    "only what differs": "document.getElementById('differ').click()",
    "all again": "document.getElementById('differ').click()",
    "only failures": "document.querySelector('input[value=fail]').click()",
    "clear": "document.getElementById('clear').click()",
    "open a topic": "document.querySelector('button.toggle').click()",
}
TIMED = """async () => {
    const q = document.getElementById('q');
    const begin = performance.now();
    %s;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - begin;
}"""
READY = """() => new Promise((done) => {
    const look = () => document.getElementById('wait') ? setTimeout(look, 1) : done(performance.now());
    look();
})"""


def made_up_cases(count: int, chance: random.Random) -> tuple[list[Case], dict[str, Rule]]:
    """Return `count` cases that are like the shipped ones, and the rules."""
    directory = shipped_cases()
    rules = load_rules(directory / "rules.yaml", "rules.yaml")
    texts = ((path.read_text(encoding="utf-8"), path.name) for path in case_files([directory]))
    shipped = list(islice((case for text, name in texts for case in parse_cases(text, name, rules)), count))
    cases = []
    for number in range(count):
        case = shipped[number % len(shipped)]
        again = number // len(shipped)
        name = f"{case.id}-{again}"
        cases.append(
            dataclasses.replace(
                case, id=name, file=f"cases/{again % 50}-{case.file}", topic=f"{case.topic} {again % 5}",
                title=f"{case.title}, {chance.random():.5f}", digest=f"{case.digest}-{again}",
                text=case.text.replace(case.id, name).replace("1.0", f"{chance.random():.5f}"),
            )
        )  # fmt: skip
    return cases, rules


def made_up_graph(case: Case, target: str) -> Graph:
    """Return the graph of a chain of a few operations on two leaves, which is the case's."""
    chance = random.Random(case.id)  # noqa: S311 - the same numbers each time is what is wanted
    length = chance.randrange(2, 7)
    leaf = {"is_leaf": True, "requires_grad": True, "retains_grad": False, "has_grad": True, "accumulates": True}
    made = {**leaf, "is_leaf": False, "accumulates": False, "retains_grad": True}
    tensors = [
        GraphTensor(name=name, line=5, shape=(2,), node=None, output_nr=0, shares_storage=None, **leaf) for name in "ab"
    ]
    nodes = []
    for at in range(length):
        edges = [
            GraphEdge(node=at - 1, tensor=None) if at else GraphEdge(node=None, tensor=0),
            GraphEdge(node=None, tensor=1),
        ]
        name = chance.choice(("MulBackward0", "AddBackward0", "SigmoidBackward0", "DivBackward0"))
        nodes.append(GraphNode(name=name, next=tuple(edges), saved=(SavedTensor(name="self", tensor=at),)))
        tensors.append(
            GraphTensor(name=f"t{at}", line=6 + at, shape=(2,), node=at, output_nr=0, shares_storage=None, **made)
        )
    return Graph(target=target, tensors=tuple(tensors), nodes=tuple(nodes))


def made_up_outcome(number: int, case: Case, target: str, chance: random.Random) -> Outcome:
    """Return the outcome of a case on a build on which three in a hundred fail, each in its own way."""
    drawn = chance.random()
    if drawn < 0.03:
        line = case.steps[-1]["line"]
        failure = Failure(line=line, path="a.grad", expected="[1.0, 2.0]", observed=f"[{chance.random():.5f}, 2.0]")
        return Outcome(case=case.id, target=target, status="fail", step=3, line=line, failures=(failure,))
    if drawn < 0.1 and number < 9:
        reason = f"needs torch >=2.{chance.randrange(1, 9)} for func.vmap"
        return Outcome(case=case.id, target=target, status="unsupported", reason=reason)
    return Outcome(case=case.id, target=target, status="pass", seconds=chance.random() / 1000)


def made_up_report(
    number: int, cases: list[Case], targets: list[str], rules: dict[str, Rule], chance: random.Random
) -> Report:
    """Return the report of a build."""
    outcomes = [made_up_outcome(number, case, target, chance) for case in cases for target in targets]
    device = Device(type="cpu", name="x86_64", count=1, driver=None, absent=None, unknown=False)
    build = Build(
        torch=f"{RELEASES[number % len(RELEASES)]}+cpu", git=f"{number:040x}", debug=False, cuda=None, hip=None,
        config="PyTorch built with: GCC 13.3", path="site-packages/torch", python=f"3.1{number // len(RELEASES)}.2",
        implementation="CPython", executable="python", system="linux-x86_64", platform="Linux-6.1", devices=(device,),
    )  # fmt: skip
    header = Header(
        suite=SuiteVersion(version="0.1.0", commit=None, cases="0" * 16), build=build,
        run=Run(started="2026-01-01T00:00:00+00:00", arguments=()),
    )  # fmt: skip
    return Report(
        format=FORMAT, header=header, rules=cited_rules(rules, cases), outcomes=tuple(outcomes),
        cases=tuple(case_record(case, rules) for case in cases),
        plan=tuple(PlanEntry(case=case.id, target=target) for case in cases for target in targets),
        graphs={case.id: made_up_graph(case, targets[0]) for case in cases},
        footer=footer_of(outcomes, 1, "2026-01-01T00:00:09+00:00"),
    )  # fmt: skip


def browse(path: Path, times: int) -> None:
    """Open the page and work with it, and print how long each thing takes: the least, the median and the most."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        taken: dict[str, list[float]] = {"open": [], **{name: [] for name in INPUTS}}
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1300, "height": 900})
            page.goto(path.as_uri(), wait_until="commit")
            taken["open"].append(page.evaluate(READY))
            for name, work in INPUTS.items():
                taken[name].append(page.evaluate(TIMED % work))
            page.close()
        browser.close()
    for name, values in taken.items():
        print(f"{name:20} {min(values):7.0f} ms  {statistics.median(values):7.0f} ms  {max(values):7.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=20, help="how many builds")
    parser.add_argument("--cases", type=int, default=10_000, help="how many cases each of them has run")
    parser.add_argument(
        "--targets", type=int, default=1, choices=range(1, len(TARGETS) + 1), help="on how many targets"
    )
    parser.add_argument("--times", type=int, default=5, help="how often the page is opened")
    options = parser.parse_args()
    chance = random.Random(0)  # noqa: S311 - the same numbers each time is what is wanted
    cases, rules = made_up_cases(options.cases, chance)
    targets = TARGETS[: options.targets]
    reports = [made_up_report(number, cases, targets, rules, chance) for number in range(options.builds)]
    scripts = {(case.id, case.digest): script_of(case) for case in cases}
    gc.freeze()  # as pytest's session has it
    for several in (reports[:1], reports):
        begin = time.perf_counter()
        page = page_of(several, suite=Suite(script_of=scripts.get))
        seconds = time.perf_counter() - begin
        what = f"{len(several):3} builds of {len(several[0].outcomes)} outcomes"
        print(f"{what}: made in {seconds:.2f} s, {len(page) / 2**20:.1f} MiB")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "index.html"
        path.write_text(page, encoding="utf-8")
        browse(path, options.times)


if __name__ == "__main__":
    main()
