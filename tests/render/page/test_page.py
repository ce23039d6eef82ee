"""Tests of the page as a file: it needs nothing but itself, holds what went in, and shows no text as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from samples import (
    CPU,
    CUDA,
    GRAPH,
    HOSTILE,
    any_report,
    broken,
    case,
    device,
    outcome,
    report,
    rule,
    suite_of,
    valid_case,
)

from conformance.model.report import Report
from conformance.model.status import STATUSES
from conformance.render.page.details import Keepers, details_of
from conformance.render.page.matrix import index_of, matrix_of
from conformance.render.page.page import CHUNK, Suite, made_visible, page_of
from conformance.results.update import updated

GOOD = outcome("pass")
PAIR = ("a", CPU)
HALF = "\ud800"


class Elements(HTMLParser):
    """The elements of a page: tags with their attributes, and the text within each script, style and paragraph."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, text: str) -> None:
        if self.tags:
            self.texts.append((self.tags[-1][0], text))

    def text_in(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def all_parts(page: str) -> list[Any]:
    """Return what a page holds packed."""
    found = re.findall(r'<script type="text/plain" id="part-(\d+)">([A-Za-z0-9+/=]*)</script>', page)
    assert [int(number) for number, _ in found] == list(range(len(found)))
    return [json.loads(zlib.decompress(base64.b64decode(packed))) for _, packed in found]


def parts(page: str) -> list[Any]:
    """Return the index of a page, then the details of its cases in parts."""
    *unpacked, expected, background = all_parts(page)
    assert unpacked[0]["last"] == len(unpacked)
    assert unpacked[0]["background"] == len(unpacked) + 1
    assert isinstance(expected, dict)
    assert set(background) == {"rules", "snippets"}
    assert len(background["rules"]) == len(unpacked[0]["rules"])
    return unpacked


def plain(page: str) -> str:
    """Return the page without what is packed."""
    return re.sub(r'(id="part-\d+">)[A-Za-z0-9+/=]*', r"\1", page)


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(msgspec.to_builtins(value)))


def hostile() -> Report:
    """Return a report with hostile text wherever text can be."""
    cases = [
        case(
            "a" + HOSTILE, file=HOSTILE, topic=HOSTILE, title=HOSTILE, why=HOSTILE, rules=(HOSTILE,), source=(HOSTILE,),
            digest=HOSTILE, yaml=HOSTILE,
        )
    ]  # fmt: skip
    facts = "torch git cuda hip config path python implementation executable system platform".split()
    build: dict[str, Any] = dict.fromkeys(facts, HOSTILE)
    made = report(
        {
            (cases[0].id, f"{HOSTILE}-{HOSTILE}"): broken(
                reason=HOSTILE, stderr=HOSTILE, traceback=((1, HOSTILE), (2, HOSTILE)),
                failures=tuple(
                    msgspec.structs.replace(each, path=HOSTILE, expected=HOSTILE, observed=HOSTILE)
                    for each in broken().failures
                ),
            )
        },
        cases=cases, finished=False, arguments=(HOSTILE,), devices=(device(HOSTILE, name=HOSTILE, absent=HOSTILE),),
        **build,
    )  # fmt: skip
    rules = {HOSTILE: rule(HOSTILE, text=HOSTILE, topic=HOSTILE, link=HOSTILE)}
    graph = msgspec.structs.replace(
        GRAPH, target=HOSTILE, tensors=tuple(msgspec.structs.replace(each, name=HOSTILE) for each in GRAPH.tensors),
        nodes=tuple(msgspec.structs.replace(each, name=HOSTILE) for each in GRAPH.nodes),
    )  # fmt: skip
    return msgspec.structs.replace(made, rules=rules, graphs={cases[0].id: graph})


def test_the_page_refers_to_no_other_file() -> None:
    page = page_of([report({PAIR: broken(reason="see https://example.org/1")}, cases=[valid_case("a")]), hostile()])
    links = [
        (tag, name, value)
        for tag, attributes in Elements(page).tags
        for name, value in attributes.items()
        if name in ("src", "href", "action", "data", "srcset", "poster", "background", "xlink:href")
    ]
    assert links == [("a", "href", "#content"), ("a", "href", "#")]
    assert {tag for tag, _ in Elements(page).tags}.isdisjoint({"link", "iframe", "object", "embed", "base", "img"})
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert not re.search(r"url\(|@import|//", style)


def test_the_policy_lets_in_the_page_s_own_style_and_script_and_nothing_else() -> None:
    page = page_of([report({PAIR: GOOD})])
    elements = Elements(page)
    (policy,) = [
        attributes["content"] or ""
        for tag, attributes in elements.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(entry.strip().split(" ", 1) for entry in policy.split(";"))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    assert rules == {
        "default-src": "'none'", "script-src": digest(script), "style-src": digest(style), "base-uri": "'none'",
        "form-action": "'none'",
    }  # fmt: skip
    assert not [
        name for _, attributes in elements.tags for name in attributes if name.startswith("on") or name == "style"
    ]


def test_what_is_packed_is_the_matrix_and_the_details() -> None:
    cases = [valid_case("a"), valid_case("b", line=21)]
    reports = [
        report({PAIR: broken(), ("b", CUDA): outcome("not-run", reason="no cuda")}, cases=cases),
        report({PAIR: GOOD, ("b", CPU): GOOD}, cases=cases, torch="2.0.0"),
    ]
    reports[1] = msgspec.structs.replace(reports[1], graphs={"b": GRAPH})
    suite = suite_of(*reports)
    index, details = parts(page_of(reports, suite=Suite(script_of=suite.get)))
    matrix = matrix_of(reports)
    scripts = {case: script for (case, _), script in suite.items()}
    assert set(scripts) == {"a", "b"}
    expected = as_json(index_of(matrix))
    assert {name: index[name] for name in expected} == expected
    assert details == as_json([details_of(matrix, record, scripts[record.id]) for record in matrix.cases])
    assert details[1]["graph"]["boxes"]
    assert details[0]["script"]


def test_a_part_that_is_kept_is_the_one_that_would_be_made() -> None:
    cases = [valid_case("a"), valid_case("b", line=21)]
    first = report({PAIR: broken(), ("b", CUDA): outcome("not-run", reason="no cuda")}, cases=cases)
    other = report({PAIR: GOOD, ("b", CPU): GOOD}, cases=cases, torch="2.0.0")
    drawn = msgspec.structs.replace(other, graphs={"b": GRAPH})
    turned = msgspec.structs.replace(GRAPH, nodes=GRAPH.nodes[:1])
    conditional = tuple(msgspec.structs.replace(step, torch=">=2.1") for step in cases[0].steps)
    pages: dict[str, tuple[list[Report], Any]] = {
        "first": ([first, drawn], suite_of(first)),
        "again": ([first, drawn], suite_of(first)),
        "another graph": ([first, msgspec.structs.replace(drawn, graphs={"b": turned})], suite_of(first)),
        "no graph": ([first, other], suite_of(first)),
        "no scripts": ([first, drawn], {}),
        "another order": ([msgspec.structs.replace(first, header=drawn.header), drawn], suite_of(first)),
        "another outcome": ([report({PAIR: GOOD, ("b", CUDA): GOOD}, cases=cases), drawn], suite_of(first)),
        "another place": ([report({PAIR: broken()}, cases=[valid_case("a", line=9)]), drawn], {}),
        "another text": ([report({PAIR: GOOD}, cases=[valid_case("a", why="because")])], {}),
        "a condition": ([report({PAIR: GOOD}, cases=[msgspec.structs.replace(cases[0], steps=conditional)])], {}),
        "another release": (
            [report({PAIR: GOOD}, cases=[msgspec.structs.replace(cases[0], steps=conditional)], torch="2.0.1")], {},
        ),
    }  # fmt: skip
    known: dict[str, Any] = {}
    made: list[str] = []

    def kept(made_of: str, make: Callable[[], Any]) -> Any:
        if made_of not in known:
            known[made_of] = make()
            made.append(name)
        return known[made_of]

    for name, (reports, read) in pages.items():
        assert parts(page_of(reports, suite=Suite(script_of=read.get), kept=Keepers(drawing=kept, part=kept))) == parts(
            page_of(reports, suite=Suite(script_of=read.get))
        ), name
    assert set(made) == pages.keys() - {"again"}


def test_details_lie_in_parts_of_a_few_cases() -> None:
    for count, sizes in ((0, []), (1, [1]), (CHUNK, [CHUNK]), (2 * CHUNK + 1, [CHUNK, CHUNK, 1])):
        cases = [case(f"a{number:03}", line=number + 1) for number in range(count)]
        index, *details = parts(page_of([report({(each.id, CPU): GOOD for each in cases}, cases=cases)]))
        assert [len(part) for part in details] == sizes
        assert index["chunk"] == CHUNK == 128
        assert [each[0] for each in index["cases"]] == [each.id for each in cases]
        assert [each["yaml"] for part in details for each in part] == [each.yaml for each in cases]


def test_hostile_text_is_in_the_page_only_packed_or_escaped() -> None:
    page = page_of([hostile()], skipped=[HOSTILE])
    text = plain(page)
    for raw in ("<img", "</details>", "\x1b", "\u202e", HALF, HOSTILE):
        assert raw not in text
    assert text.count("<script") == len(parts(page)) + 3
    assert "&lt;img src=x&gt;" in text
    assert "⟨U+202E⟩⟨U+D800⟩" in text
    index, (details,) = parts(page)
    assert index["cases"][0][0] == "a" + HOSTILE
    assert index["builds"][0]["torch"] == HOSTILE
    assert details["yaml"] == HOSTILE
    page.encode()


def test_the_template_s_own_text_survives_being_made_visible() -> None:
    assert made_visible(3) == 3
    assert made_visible("a\u202eb") == "a⟨U+202E⟩b"
    page = page_of([report({PAIR: GOOD})])
    assert "1 case, 1 build" in " ".join(page.split())


def test_reports_that_could_not_be_read_are_named() -> None:
    page = page_of([report({PAIR: GOOD})], skipped=["x.json: cut off", "y.json: <b>none</b>"])
    said = [" ".join(text.split()) for text in Elements(page).text_in("strong")]
    assert said.count("Not shown:") == 2
    assert "x.json: cut off" in page
    assert "y.json: &lt;b&gt;none&lt;/b&gt;" in page
    assert "Not shown" not in page_of([report({PAIR: GOOD})])


def test_a_run_that_did_not_finish_is_named() -> None:
    page = page_of([report({PAIR: None}, finished=False, torch="2.1.0"), report({PAIR: GOOD}, torch="2.2.0")])
    notice = re.findall(r"<strong>Incomplete:</strong>(.*?)</p>", page, re.DOTALL)
    assert len(notice) == 1
    assert "torch 2.1.0" in notice[0]
    assert "Incomplete:" not in plain(page_of([report({PAIR: GOOD})])).partition("<main")[0]


def test_the_counts_are_there_without_javascript() -> None:
    made = report({PAIR: GOOD, ("b", CPU): broken(), ("c", CPU): GOOD, ("a", CUDA): outcome("not-run")})
    page = page_of([made])
    table = page.partition("<noscript>")[2].partition("</noscript>")[0]
    rows = re.findall(r"<td>([\w-]+)</td>((?:<td>\d+</td>)+)", table)
    counts = {target: [int(count) for count in re.findall(r"\d+", cells)] for target, cells in rows}
    expected = {CPU: {"pass": 2, "fail": 1}, CUDA: {"not-run": 1}}
    assert counts == {target: [found.get(status, 0) for status in STATUSES] for target, found in expected.items()}


PLACES = [
    "cases.0.title", "cases.0.why", "cases.0.yaml", "cases.0.file", "cases.0.topic", "cases.0.digest",
    "cases.0.source.0", "outcomes.0.reason", "outcomes.0.stderr", "outcomes.0.failures.0.path",
    "outcomes.0.failures.0.expected", "outcomes.0.failures.1.observed", "outcomes.0.traceback.0.1",
    "rules.r¹one.text", "rules.r¹one.topic", "rules.r¹one.link", "rules.r¹one.since", "graphs.a.target",
    "graphs.a.tensors.0.name", "graphs.a.nodes.0.name", "graphs.a.nodes.0.saved.0.name", "header.suite.version",
    "header.suite.commit", "header.suite.cases", "header.run.started", "header.run.arguments.0", "header.build.torch",
    "header.build.git", "header.build.cuda", "header.build.config", "header.build.path", "header.build.python",
    "header.build.implementation", "header.build.system", "header.build.platform", "header.build.devices.0.name",
    "header.build.devices.0.type", "header.build.devices.0.driver", "footer.finished",
]  # fmt: skip


@each("place", PLACES)
def test_half_of_a_pair_anywhere_does_not_stop_the_page(place: str) -> None:
    failed = broken(reason="r", stderr="s", traceback=((1, "x"),))
    made = report({PAIR: failed}, cases=[valid_case("a", source=("s",))], arguments=("-q",))
    content = as_json(msgspec.structs.replace(made, graphs={"a": GRAPH}))
    way: list[Any] = [int(step) if step.isdecimal() else step.replace("¹", ".") for step in place.split(".")]
    holder = content
    for step in way[:-1]:
        holder = holder[step]
    assert isinstance(holder[way[-1]], str | None)
    holder[way[-1]] = HALF
    page = page_of([msgspec.convert(content, Report)])
    page.encode()
    not_shown = ("graphs", "cases.0.digest", "rules.r¹one.topic")
    assert HALF in json.dumps(all_parts(page), ensure_ascii=False) or place.startswith(not_shown)


def test_names_with_half_of_a_pair_do_not_stop_the_page() -> None:
    made = report({(HALF, f"{HALF}-{HALF}"): GOOD}, cases=[valid_case(HALF, rules=(HALF,))])
    index, details = parts(page_of([made]))
    assert index["cases"][0][0] == HALF
    assert details[0]["script"] is None


def test_a_case_shows_the_script_of_its_own_text() -> None:
    plain_case, same_digest = valid_case("a", digest="same"), valid_case("b", digest="same", line=21)
    made = report({PAIR: GOOD, ("b", CPU): GOOD}, cases=[plain_case, same_digest])
    first, second = parts(page_of([made], suite=Suite(script_of=suite_of(made).get)))[1]
    assert "a: The case a" in first["script"][1]
    assert "b: The case b" in second["script"][1]


def test_a_case_that_the_suite_does_not_have_at_its_digest_has_no_script() -> None:
    own, another = valid_case("a"), valid_case("a", digest="another")
    suite = suite_of(report({PAIR: GOOD}, cases=[own]))
    for record, has_script in ((own, True), (another, False)):
        ((details,),) = parts(page_of([report({PAIR: GOOD}, cases=[record])], suite=Suite(script_of=suite.get)))[1:]
        assert (details["script"] is not None) is has_script
        assert details["steps"] == [5, 6, 7, 10, 11]


def test_a_build_says_which_runs_its_outcomes_are_of() -> None:
    whole, part = report({PAIR: GOOD, ("b", CPU): GOOD}), report({PAIR: GOOD}, arguments=("-k", "a"))
    index = parts(page_of([updated(whole, part, ()), whole]))[0]
    assert [each["runs"] for each in index["builds"]] == [
        [
            "1 of 2 outcomes are of the run of 2026-01-02T03:04:05+00:00 (pytest)",
            "the others are of the run of 2026-01-02T03:04:05+00:00 (pytest -k a)",
        ],
        [],
    ]


def test_a_page_of_nothing_is_a_page() -> None:
    for reports in ([], [report({})], [report({}, devices=())]):
        index, *details = parts(page_of(reports))
        assert index["cases"] == details == []


@given(st.lists(any_report(), max_size=3), st.lists(st.text(max_size=9), max_size=2))
def test_any_reports_make_a_page(reports: list[Report], skipped: list[str]) -> None:
    page = page_of(reports, skipped)
    page.encode()
    index, *details = parts(page)
    assert len(index["builds"]) == len(reports)
    assert sum(map(len, details)) == len(index["cases"]) == len(
        {record.id for each in reports for record in each.cases}
    )  # fmt: skip
    assert page.count("<strong>Not shown:</strong>") == len(skipped)
    assert page.count("<strong>Incomplete:</strong>") == sum(each.footer is None for each in reports)
    assert HOSTILE not in plain(page)
