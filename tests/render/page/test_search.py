"""What a reader searches for is among the first cases that the page finds, by its own script and all shipped cases."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from samples import CPU, outcome, report
from shipped import all_cases, rules

from conformance.model.report import case_record
from conformance.render.page.matrix import index_of, matrix_of
from conformance.render.page.page import TEMPLATES
from conformance.render.page.tables import tables
from conformance.results.store import encoded

NODE = shutil.which("node")
FIRST = 3
PROGRAM = """
const [index, texts, searches] = JSON.parse(require("fs").readFileSync(0, "utf-8"));
model = modelOf(index);
const { own } = searchTexts();
texts.forEach(([why, text], item) => { [own[item].why, own[item].text] = [plainWords(why), plainWords(text)]; });
const tracks = model.columns.map((column) => column.tracks);
console.log(JSON.stringify(searches.map((words) => {
  const scores = scoresOf(words, tracks);
  const found = model.cases.filter((item) => scores[item.number] > 0).map((item) => [item.id, scores[item.number]]);
  return found.sort(([, one], [, other]) => other - one).map(([id]) => id);
})));
"""
# For each search the cases of which at least one tells what the reader wants to know, as their titles say.
WANTED = {
    "is_leaf": {"user-tensor-is-leaf-result-is-not", "result-marked-afterwards-is-a-leaf"},
    "retain_grad": {"some-results-retain-others-do-not"},
    "detach vs data": {"data-zeroed-after-sigmoid", "detached-alias-zeroed-after-sigmoid"},
    "modified by an inplace operation": {
        "saved-sum-overwritten", "refusal-of-an-overwritten-tensor-tells-which", "sum-lets-its-input-be-overwritten"
    },
    "zero_grad": {"module-zero-grad-drops-the-gradients", "module-zero-grad-fills-with-zeros"},
    "no_grad inside function": {"func-grad-and-no-grad"},
    "leaf variable": {"user-tensor-is-leaf-result-is-not", "whole-leaf-overwritten", "leaf-added-to-in-place"},
    "grad is None": {"no-gradient-before-backward"},
    "version counter": {"views-count-with-their-base", "saved-output-shares-the-version-counter"},
    "hook order": {"order-of-hooks-at-a-leaf", "order-of-hooks-at-a-result"},
}  # fmt: skip


WITH_NODE = pytest.mark.skipif(
    NODE is None and not os.environ.get("CI"), reason="there is no node; continuous integration has one"
)


@WITH_NODE
def test_what_a_reader_looks_for_is_among_the_first_that_are_found() -> None:
    found = searched(list(WANTED))
    missed = {words: found[words][:FIRST] for words, ids in WANTED.items() if not ids & {*found[words][:FIRST]}}
    assert missed == {}


@WITH_NODE
def test_an_id_leads_to_its_case_and_a_rule_to_those_that_cite_it_and_nonsense_to_none() -> None:
    ids = [case.id for case in all_cases()][::400]
    rule = "leaf.created-by-user"
    cited = {case.id for case in all_cases() if rule in case.rules}
    found = searched([*ids, rule, "xyzzy", "???", " "])
    assert {each: found[each][0] for each in ids} == {each: each for each in ids}
    assert cited <= {*found[rule][: 3 * len(cited)]}
    assert (found["xyzzy"], found["???"], len(found[" "])) == ([], [], len(all_cases()))


def searched(searches: list[str]) -> dict[str, list[str]]:
    """Return the ids of the cases that the page finds for each search, the best first."""
    assert NODE is not None
    records = [case_record(case, rules()) for case in all_cases()]
    matrix = matrix_of([report({(record.id, CPU): outcome("pass") for record in records}, cases=records)])
    given = [{**index_of(matrix), **tables()}, [(record.why, record.yaml) for record in matrix.cases], searches]
    names = "dom view data search find".split()
    script = "\n".join((TEMPLATES / f"{name}.js").read_text(encoding="utf-8") for name in names)
    done = subprocess.run(
        [NODE, "-e", script + PROGRAM], input=encoded(given), capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(searches, json.loads(done.stdout), strict=True))
