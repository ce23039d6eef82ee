"""Reads the cases of a file: the one way from its text to cases that can run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from conformance.language import expansion as equivalence
from conformance.language.errors import CaseFileError, Problem
from conformance.language.schema import compiled, load_schema
from conformance.language.spellings import check_spellings, check_use, read_programs
from conformance.language.steps import CaseReader
from conformance.language.yaml import Node, read_document
from conformance.model.case import Case
from conformance.model.rule import Rule

CHECK_SCHEMA = compiled(load_schema("case.schema.json"))
MOST_PROGRAMS = 100  # what a few lines stand for must not fill the memory


def parse_cases(text: str, name: str, rules: Mapping[str, Rule]) -> list[Case]:
    """Return the cases that `text` holds; `name` is what messages call its file."""
    root = read_document(text, name)
    problems: list[Problem] = []

    def report(place: Node | tuple[int, int], path: str, message: str, hint: str = "") -> None:
        line, column = place if isinstance(place, tuple) else (place.line, place.column)
        problems.append(Problem(file=name, line=line, column=column, path=path, message=message, hint=hint))

    CHECK_SCHEMA(root, "", lambda place, path, message, hint: report(place, _short(path), message, hint))
    broken = frozenset(problem.line for problem in problems)
    programs = read_programs(root, report, broken)
    listed = root.value.get("cases") if isinstance(root.value, dict) else None
    nodes = listed.value if listed is not None and isinstance(listed.value, list) else []
    lines = text.splitlines(keepends=True)
    cases: list[Case] = []
    ids: dict[str, int] = {}
    for index, node in enumerate(nodes):
        if not isinstance(node.value, dict):
            continue
        end = nodes[index + 1].line - 1 if index + 1 < len(nodes) else len(lines)
        reader = CaseReader(report, rules, broken)
        data = reader.read(node)
        check_spellings(reader, node, programs)
        first = ids.setdefault(data["id"], node.line) if isinstance(data["id"], str) else node.line
        if first != node.line:
            report(node.value["id"], "id", f"{data['id']!r} stands twice", f"first in line {first}")
        if problems:
            continue
        topic = root.value["topic"].value
        if "spellings" in node.value:
            cases += [replace(case, topic=topic) for case in equivalents(node, programs, rules, name, report)]
        else:
            own = "".join(lines[node.line - 1 : end]).rstrip() + "\n"
            cases.append(Case(file=name, line=node.line, topic=topic, text=own, digest=digest_of(data), **data))
    if not problems:
        check_use(root, programs, nodes, report)
    if problems:
        raise CaseFileError(problems)
    return cases


def equivalents(
    node: Node, programs: Mapping[str, Any], rules: Mapping[str, Rule], name: str, report: Any
) -> Iterator[Case]:
    """Yield the cases that one with spellings stands for; what is wrong only then is reported for it as a whole."""
    case = node.plain
    chosen = equivalence.tried_on(case, programs)
    if len(chosen) > MOST_PROGRAMS:
        report(node, "spellings", f"expected at most {MOST_PROGRAMS} programs to be tried on, got {len(chosen)}")
    for program in chosen[:MOST_PROGRAMS]:
        text = equivalence.yaml_of(equivalence.written_out(case, program))
        try:
            found = parse_at(text, node.line, name, rules)
        except CaseFileError as error:
            for problem in error.problems:
                within = f"{problem.path}: " if problem.path else ""
                where = f" on {program['id']}" if program is not None else ""
                report(node, "spellings", f"written out{where}: {within}{problem.message}", problem.hint)
            continue
        yield replace(found, text=text, written_out=True)


def parse_at(text: str, line: int, name: str, rules: Mapping[str, Rule]) -> Case:
    """Return the case whose YAML, as an entry of a list, is `text`, as if it began in `line` of its file."""
    above = "\n" * (line - 2)
    cases = parse_cases(f"cases:\n{above}{text}\ntopic: any\n", name, rules)
    if len(cases) != 1:
        problem = Problem(file=name, line=line, column=1, message=f"expected one case, got {len(cases)}")
        raise CaseFileError([problem])
    return cases[0]


def digest_of(data: dict[str, Any]) -> str:
    """Return a digest of what a case does and expects, wherever it stands and however it is described."""
    names = ("id", "torch", "dtypes", "devices", "steps")
    meaning = json.dumps([placeless(data[name]) for name in names], sort_keys=True)
    return hashlib.sha256(meaning.encode()).hexdigest()[:16]


def placeless(value: Any) -> Any:
    """Return part of a case without the lines that its steps, entries and checks stand in."""
    if isinstance(value, dict):
        return {
            key: [[name, placeless(expected)] for name, expected, _ in entry] if key == "checks" else placeless(entry)
            for key, entry in value.items()
            if key not in ("begins", "line")
        }
    return [placeless(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _short(path: str) -> str:
    """Return `path` as seen from the step or case that it lies in; its line says which one that is."""
    head, _, rest = path.partition("].")
    if not head.startswith("cases["):
        return path
    return rest.partition("].")[2] or rest if rest.startswith("steps[") else rest
