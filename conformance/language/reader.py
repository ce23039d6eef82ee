"""Reads the cases of a file: from its text to cases that can run."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from conformance.language import expansion
from conformance.language.errors import CaseFileError, Problem
from conformance.language.operations import check_operation, of_operation
from conformance.language.rows import check_rows
from conformance.language.schema import load_schema, reporter, validator_of
from conformance.language.spellings import check_spellings, check_use, read_programs
from conformance.language.steps import CaseReader
from conformance.language.unconfirmed import refuse
from conformance.language.writing import write_case
from conformance.language.yaml import Node, read_document
from conformance.model.case import Case
from conformance.model.rule import Rule

SCHEMA = load_schema("case.schema.json")
CHECK_FILE = validator_of(SCHEMA)
CHECK_CASE = validator_of({"$ref": "#/$defs/case", "$defs": SCHEMA["$defs"]})
MOST_EXPANDED = 7500  # that the entries of a file may expand to: those of equivalences.yaml are some 6000
MOST_STEPS = 250_000  # of these cases together: those of equivalences.yaml have some 160,000
MOST_CASES = 200  # that one entry may expand to: a small file must not exhaust the memory


class Variant(NamedTuple):
    """An ordinary case that an entry expands to, the words that tell it from the others, and its line.

    One that is covered repeats what the others have between them: see `expansion.covering`.
    """

    where: str
    line: int
    node: Node
    is_covered: bool = False


def parse_cases(text: str, name: str, rules: Mapping[str, Rule]) -> list[Case]:
    """Return the cases in `text`; `name` is the name of its file in messages."""
    return parse_part(text, name, rules)[0]


def parse_part(
    text: str, name: str, rules: Mapping[str, Rule], covered: bool | None = None
) -> tuple[list[Case], list[str]]:
    """Return the cases in `text` that are covered, or those that aren't, or all, and the ids of the covered ones.

    To write out the covered ones takes longer than all else, and few runs want them.
    """
    root = read_document(text, name)
    problems: list[Problem] = []
    report = reporter(name, problems)
    refuse(root, name, report)
    if problems:
        raise CaseFileError(problems)
    CHECK_FILE(root, "", lambda place, path, *message: report(place, _short(path), *message))
    broken = frozenset(problem.line for problem in problems)
    programs = read_programs(root, report, broken)
    nodes = listed_in(root, "cases")
    lines = text.splitlines(keepends=True)
    cases: list[Case] = []
    ids: dict[str, int] = {}
    left: list[str] = []
    expanded = steps = 0
    for index, node in enumerate(nodes):
        if not isinstance(node.value, dict):
            continue
        end = nodes[index + 1].line - 1 if index + 1 < len(nodes) else len(lines)
        reader = CaseReader(report, rules, broken)
        check_rows(reader, node)
        data = reader.read(node)
        check_spellings(reader, node, programs)
        found: list[Case] = []
        own_left: list[str] = []
        if not problems and node.value.keys() & {"spellings", "parametrize"}:
            variants = islice(variants_of(node, programs, covered, own_left, report), MOST_CASES)
            expanding = written(variants, rules, name, report, what_expands(node))
            found = list(of_few_steps(expanding, steps, partial(report, node, "cases")))
            steps += sum(len(case.steps) for case in found)
            left += own_left
            expanded += len({*own_left, *(case.id for case in found)})
            if expanded > MOST_EXPANDED:
                report(node, "cases", f"expected at most {MOST_EXPANDED} cases of a file to be written out")
        elif not problems:
            own = "".join(lines[node.line - 1 : end]).rstrip() + "\n"
            found = [Case(file=name, line=node.line, topic="", text=own, digest=case_digest(data), **data)]
        check_ids(ids, node, [*own_left, *(case.id for case in found)], report)
        cases += found
    for node in [] if covered else listed_in(root, "ops"):
        if isinstance(node.value, dict) and broken.isdisjoint(node.lines()):
            check_operation(node, report)
            variant = Variant("", node.line, of_operation(node))
            found = [] if problems else list(written([variant], rules, name, report, "op"))
            check_ids(ids, node, [case.id for case in found], report)
            cases += found
    if not problems:
        check_use(programs, nodes, report)
    if problems:
        raise CaseFileError(problems)
    wanted = [case for case in cases if covered is None or case.is_covered is covered]
    return [replace(case, topic=root.value["topic"].value) for case in wanted], left


def of_few_steps(cases: Iterable[Case], before: int, complain: Callable[[str], None]) -> Iterator[Case]:
    """Yield cases, until they and what was `before` have more steps than a file may have."""
    for case in cases:
        before += len(case.steps)
        if before > MOST_STEPS:
            complain(f"expected at most {MOST_STEPS} steps of a file to be written out")
            return
        yield case


def check_ids(ids: dict[str, int], node: Node, found: list[str], report: Any) -> None:
    """Report ids that stood in the file before; `ids` has the line of each, and gets those of this entry."""
    for own_id in found or [node.find("id").value]:
        first = ids.setdefault(own_id, node.line) if isinstance(own_id, str) else node.line
        if first != node.line:
            report(node.value["id"], "id", f"{own_id!r} stands twice", f"first in line {first}")


def listed_in(root: Node, key: str) -> list[Node]:
    """Return the nodes of a list of a case file, or none where it is absent or no list."""
    listed = root.value.get(key) if isinstance(root.value, dict) else None
    return listed.value if listed is not None and isinstance(listed.value, list) else []


def what_expands(node: Node) -> str:
    return "parametrize" if "parametrize" in node.value else "spellings"


def variants_of(
    node: Node, programs: Mapping[str, Node], covered: bool | None, left: list[str], report: Any
) -> Iterator[Variant]:
    """Yield what a case with spellings or rows expands to, a row's with the line of that row.

    Of cases that are covered, whose ids `left` gets, and of those that aren't, `covered` can choose the ones or others.
    """
    what = what_expands(node)
    if what == "spellings" and "expect" not in node.value:
        few = expansion.covering(node, programs)
        tried = expansion.programs_of(node, programs)
        check_number(node, what, len(tried), report)
        left += [expansion.id_on(node, program) for name, program in tried.items() if name not in few]
        for name, program in tried.items():
            if covered is None or covered is (name not in few):
                yield Variant(f" on {name}", node.line, expansion.on_program(node, program), name not in few)
    elif covered:
        return
    elif what == "parametrize":
        rows = node.value[what].value
        check_number(node, what, len(rows), report)
        for row, values in rows.items():
            line, _ = node.value[what].keys[row]
            yield Variant(f" for {row}", line, expansion.of_row(node, row, values))
    else:
        yield Variant("", node.line, expansion.on_program(node, None))


def check_number(node: Node, what: str, number: int, report: Any) -> None:
    if number > MOST_CASES:
        report(node, what, f"expected at most {MOST_CASES} cases to be written out, got {number}")


def written(
    variants: Iterable[Variant], rules: Mapping[str, Rule], name: str, report: Any, what: str
) -> Iterator[Case]:
    """Yield expanded cases as they are written out."""
    for where, line, variant, is_covered in variants:
        text, placed = write_case(variant, line)
        problems: list[Problem] = []
        data = read_case(placed, rules, reporter(name, problems))
        if problems:  # reported again, at the places in the file that the parts come from

            def own(place: Any, path: str, message: str, hint: str = "", where: str = where) -> None:
                report(place, what, f"written out{where}: {f'{path}: ' if path else ''}{message}", hint)

            read_case(variant, rules, own)
            continue
        yield Case(
            file=name, line=line, topic="", text=text, digest=case_digest(data), written_out=True,
            is_covered=is_covered, **data,
        )  # fmt: skip


def read_case(node: Node, rules: Mapping[str, Rule], report: Any) -> dict[str, Any]:
    """Return the fields of an ordinary case but its text, and report what is wrong with it."""
    places: set[int] = set()

    def of_shape(place: Node | tuple[int, int], path: str, *message: str) -> None:
        places.add(place[0] if isinstance(place, tuple) else place.line)
        report(place, _short(f"cases[0].{path}"), *message)

    CHECK_CASE(node, "", of_shape)
    return CaseReader(report, rules, frozenset(places)).read(node)


def case_digest(data: dict[str, Any]) -> str:
    """Return a digest of what a case does and expects, independent of its lines and its descriptions."""
    names = ("id", "torch", "dtypes", "devices", "steps")
    meaning = json.dumps([placeless(data[name]) for name in names], sort_keys=True)
    return hashlib.sha256(meaning.encode()).hexdigest()[:16]


def placeless(value: Any) -> Any:
    """Return part of a case without the line numbers of its steps, entries and checks."""
    if isinstance(value, dict):
        return {
            key: [[name, placeless(expected)] for name, expected, _ in entry] if key == "checks" else placeless(entry)
            for key, entry in value.items()
            if key not in ("begins", "line")
        }
    return [placeless(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _short(path: str) -> str:
    """Return `path` relative to its step or case, which the line of the problem identifies."""
    head, _, rest = path.partition("].")
    if not head.startswith("cases["):
        return path
    return rest.partition("].")[2] or rest if rest.startswith("steps[") else rest
