"""A small book for tests: four rules, a case that has changed and a known issue, one that is several, an operation."""

from __future__ import annotations

from generator.book import Book
from generator.cases import load_single, told_cases
from generator.chapters import Chapter, Order, Part
from generator.published import columns_of
from samples import CPU, GRAPH, case, outcome, report, rule

from conformance.language.operations import RULES as OF_OPERATIONS
from conformance.language.outline import entries_in
from conformance.model.outcome import Issue

CASES = """\
topic: Tests
cases:
  - id: first-case
    title: A <tensor> & its "leaf"
    why: One reason.
    rules: [r.one, s.two]
    steps:
      - a = tensor([1.0], requires_grad=True)
      - b = a.sigmoid()
      - expect: {b: {is_leaf: false, output_nr: {torch: {"<2.6": 1, ">=2.6": 0}}}}
  - id: several
    title: Many of them
    why: Another reason.
    rules: [s.two]
    parametrize:
      exp: {op: "lambda t: t.exp()"}
      sin: {op: "lambda t: t.sin()"}
    steps:
      - x = op(tensor([0.5], requires_grad=True))
      - expect: {x: {is_leaf: false}}
ops:
  - id: cumsum
    op: [x.cumsum(dim), "torch.cumsum(x, dim=dim)"]
    inputs: {x: [n, m]}
    rows: [{dim: 0}]
"""
RULES = {
    each.id: each
    for each in (
        rule("r.one", topic="R", upgrade="Write `a.b` <now>."),
        rule("r.none", topic="R", level="observed", untested="It can't be seen."),
        rule("s.two", topic="S", text="The rule\n\ns.two."),
        *(rule(name, topic="S") for name in OF_OPERATIONS),
    )
}
ORDER = Order(
    parts=(
        Part(
            title="Part",
            chapters=(
                Chapter(name="one", title="Rules of R()", says="Of *R*.", topics=("R",)),
                Chapter(name="two", title="Rules of S", says="Of S.", topics=("S",)),
            ),
        ),
    )
)
ENTRIES = list(entries_in(CASES, "cases/tests.yaml"))
SINGLE = load_single(ENTRIES, RULES)
ISSUE = Issue(status="fail", reason="It <rounds>.", link="https://issue")

RECORDS = [
    case("first-case", digest=SINGLE["first-case"].digest),
    *map(case, ("several-exp", "several-sin", "derivatives-of-cumsum")),
]
OLD = report(
    {
        ("first-case", CPU): outcome("known", issue=ISSUE), ("several-exp", CPU): outcome("pass"),
        ("several-sin", CPU): outcome("pass"), ("derivatives-of-cumsum", CPU): outcome("unsupported", reason="no"),
    },
    cases=RECORDS, torch="2.1.2",
)  # fmt: skip
NEW = report({(record.id, CPU): outcome("pass") for record in RECORDS}, cases=RECORDS, torch="2.13.0")
COLUMNS = columns_of([OLD, NEW])
TOLD = list(told_cases(ENTRIES, SINGLE, COLUMNS, {"first-case": GRAPH}, ["2.1.2", "2.13.0"]))
BOOK = Book(
    order=ORDER, rules=RULES, columns=COLUMNS, cases=TOLD, repository="https://host/suite",
    homes={name: "one" if each.topic == "R" else "two" for name, each in RULES.items()},
)  # fmt: skip
