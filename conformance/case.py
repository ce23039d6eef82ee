"""Cases: what a case file holds, read, checked and made ready to run.

A step is kept as the plain data that a worker gets, so that nothing is translated between loading and
running; `program.py` chooses among the alternatives for one torch. Of a step

    {"line": 7, "do": "b = a.exp()", "needs": ["func.vmap"], "torch": ">=2.1",
     "raises": [{"type": "RuntimeError", "match": ["version 1"], "torch": "<2.8", "line": 8}, …], "warns": […]}
    {"line": 9, "expect": [{"line": 10, "subject": "a", "checks": [["grad", <value>, 10], …]}]}

a value is JSON as it stands, {"expr": text}, or {"torch": {condition: value, …}}.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance import language, versions, vocabulary
from conformance.document import Node, read_document
from conformance.problem import CaseFileError, Problem, did_you_mean
from conformance.rule import Rule
from conformance.schema import compiled, load_schema

# Checks whose text is an expression on the case's own objects, and those where it is one on float64 CPU copies.
EXPRESSIONS = frozenset({"is", "is_not", "shares_storage", "not_shares_storage", "view_of"})
REFERENCES = frozenset({"value", "grad"})
CHECK_SCHEMA = compiled(load_schema("case.schema.json"))
WARNINGS = frozenset(name for name in vocabulary.EXCEPTIONS if name.endswith("Warning"))
KNOWN_EXCEPTIONS = vocabulary.EXCEPTIONS | vocabulary.TORCH_EXCEPTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One small program and what must hold during and after it.

    `file` is the name that messages use, `line` where the case begins in it, `text` its YAML. `digest` changes
    whenever what the case does or expects may have, and with nothing else: not with its words or its place.
    `dtypes` and `devices` are empty where any will do.
    """

    file: str
    line: int
    topic: str
    id: str
    title: str
    why: str
    rules: tuple[str, ...]
    source: tuple[str, ...] = ()
    torch: str | None = None
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    steps: tuple[dict[str, Any], ...]
    text: str
    digest: str


def parse_cases(text: str, name: str, rules: Mapping[str, Rule]) -> list[Case]:
    """Return the cases that `text` holds; `name` is what messages call its file."""
    root = read_document(text, name)
    problems: list[Problem] = []

    def report(place: Node | tuple[int, int], path: str, message: str, hint: str = "") -> None:
        line, column = place if isinstance(place, tuple) else (place.line, place.column)
        problems.append(Problem(file=name, line=line, column=column, path=path, message=message, hint=hint))

    CHECK_SCHEMA(root, "", lambda place, path, message, hint: report(place, _short(path), message, hint))
    broken = frozenset(problem.line for problem in problems)
    listed = root.value.get("cases") if isinstance(root.value, dict) else None
    nodes = listed.value if listed is not None and isinstance(listed.value, list) else []
    lines = text.splitlines(keepends=True)
    cases: list[Case] = []
    ids: dict[str, int] = {}
    for index, node in enumerate(nodes):
        if not isinstance(node.value, dict):
            continue
        end = nodes[index + 1].line - 1 if index + 1 < len(nodes) else len(lines)
        data = CaseReader(report, rules, broken).read(node)
        first = ids.setdefault(data["id"], node.line) if isinstance(data["id"], str) else node.line
        if first != node.line:
            report(node.value["id"], "id", f"{data['id']!r} stands twice", f"first in line {first}")
        if not problems:
            own = "".join(lines[node.line - 1 : end]).rstrip() + "\n"
            digest = digest_of(data)
            topic = root.value["topic"].value
            cases.append(Case(file=name, line=node.line, topic=topic, text=own, digest=digest, **data))
    if problems:
        raise CaseFileError(problems)
    return cases


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
            if key != "line"
        }
    return [placeless(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _short(path: str) -> str:
    """Return `path` as seen from the step or case that it lies in; its line says which one that is."""
    head, _, rest = path.partition("].")
    if not head.startswith("cases["):
        return path
    return rest.partition("].")[2] or rest if rest.startswith("steps[") else rest


def listed(value: object) -> tuple[Any, ...]:
    """Return a list of the file as a tuple; anything else has been reported already."""
    return tuple(value) if isinstance(value, list) else ()


class CaseReader:
    """Reads one case and reports what is wrong beyond its shape; what has a wrong shape (`broken` lines) it skips."""

    def __init__(self, report: Any, rules: Mapping[str, Rule], broken: frozenset[int]) -> None:
        self.report = report
        self.rules = rules
        self.broken = broken
        self.names = language.Names()
        self.torch: str | None = None

    def read(self, node: Node) -> dict[str, Any]:
        data = node.plain
        self.torch = self.condition(node.value.get("torch"), "torch")
        if self.torch and not versions.possible([self.torch]):
            self.report(node.value["torch"], "torch", "no torch fulfils this condition")
        cited = node.find("rules").value
        for index, rule in enumerate(cited if isinstance(cited, list) else ()):
            if isinstance(rule.value, str) and rule.line not in self.broken and rule.value not in self.rules:
                hint = did_you_mean(rule.value, self.rules) or "add it to rules.yaml"
                self.report(rule, f"rules[{index}]", f"unknown rule {rule.value!r}", hint)
        source = data.get("source")
        return {
            "id": data.get("id"),
            "title": data.get("title"),
            "why": data.get("why"),
            "rules": listed(data.get("rules")),
            "source": (source,) if isinstance(source, str) else listed(source),
            "torch": data.get("torch"),
            "dtypes": listed(data.get("dtypes")),
            "devices": listed(data.get("devices")),
            "steps": self.steps(node.value["steps"]) if isinstance(node.find("steps").value, list) else (),
        }

    def steps(self, listed: Node) -> tuple[dict[str, Any], ...]:
        """Read the steps; those whose shape is wrong only lend the names that they bind."""
        read: list[tuple[Node, language.Parsed | None, bool]] = []
        for node in listed.value:
            text = (
                node if isinstance(node.value, str) else node.value.get("do") if isinstance(node.value, dict) else None
            )
            parsed = language.parse(text.value) if text is not None and isinstance(text.value, str) else None
            if parsed is not None and parsed.tree is not None:
                self.names.anywhere |= parsed.bound
                self.names.attributes |= parsed.attributes
            read.append((node, parsed, bool(self.broken) and not self.broken.isdisjoint(node.lines())))
        steps = []
        for node, parsed, broken in read:
            if broken and parsed is not None:
                self.names.bound |= parsed.bound
            elif not broken:
                steps.append(self.expectation(node) if parsed is None else self.statements(node, parsed))
        whole = steps and not any(broken for *_, broken in read)
        if whole and not any(map(self.can_fail, steps)):
            self.report(listed, "steps", "nothing is expected: this case can't fail", "add an expect step")
        return tuple(steps)

    def can_fail(self, step: dict[str, Any]) -> bool:
        """Whether a step expects something, on a torch that can run it."""
        conditions = [condition for condition in (self.torch, step.get("torch")) if condition]
        return bool(step.keys() & {"expect", "raises", "warns"}) and (not conditions or versions.possible(conditions))

    def statements(self, node: Node, parsed: language.Parsed) -> dict[str, Any]:
        text, path = (node, "") if isinstance(node.value, str) else (node.value["do"], "do")
        self.findings(text, path, parsed)
        step: dict[str, Any] = {"line": text.line + (text.style in ("|", ">")), "do": parsed.text}
        if parsed.needs:
            step["needs"] = sorted(parsed.needs)
        if not isinstance(node.value, str):
            torch = self.condition(node.value.get("torch"), "torch")
            if torch is not None:
                step["torch"] = torch
            for key in ("raises", "warns"):
                if key in node.value:
                    step[key] = self.alternatives(node.value[key], key, torch)
        return step

    def findings(self, node: Node, path: str, parsed: language.Parsed) -> None:
        language.check(parsed, self.names)
        if parsed.tree is not None:
            self.names.bound -= parsed.deleted
            self.names.bound |= parsed.bound
        for finding in parsed.findings:
            place = node.place_in(finding.line, finding.column)
            self.report(place, path, finding.message, finding.hint)

    def alternatives(self, node: Node, path: str, step_torch: str | None) -> list[dict[str, Any]]:
        nodes = node.value if isinstance(node.value, list) else [node]
        alternatives = []
        for index, entry in enumerate(nodes):
            below = path if entry is node else f"{path}[{index}]"
            plain = entry.plain
            kind = plain["type"]
            match = plain.get("match")
            condition = self.condition(entry.value.get("torch"), f"{below}.torch")
            matches = [match] if isinstance(match, str) else match or []
            alternatives.append({"type": kind, "match": matches, "torch": condition, "line": entry.line})
            word, known = ("warning", WARNINGS) if path == "warns" else ("exception", KNOWN_EXCEPTIONS)
            if kind is not None and kind not in known:
                self.report(entry.value["type"], f"{below}.type", f"unknown {word} {kind!r}", did_you_mean(kind, known))
            if kind is not None and match is None:
                self.report(entry, below, "the key 'match' is missing", "say what the message must contain")
            if kind is None and match is not None:
                self.report(entry.value["match"], f"{below}.match", "where nothing comes, no message can match")
        self.tile(node, path, [entry["torch"] for entry in alternatives], step_torch)
        return alternatives

    def condition(self, node: Node | None, path: str) -> str | None:
        """Return a condition on torch, None where there is none, and "" for one that has been reported."""
        if node is None:
            return None
        if not isinstance(node.value, str) or not node.value.strip():
            return ""
        try:
            versions.parse(node.value)
        except ValueError as error:
            self.report(node, path, str(error))
            return ""
        return node.value

    def tile(self, place: Node, path: str, conditions: Sequence[str | None], step_torch: str | None) -> None:
        if "" in (*conditions, self.torch, step_torch):
            return
        within = ",".join(filter(None, (self.torch, step_torch))) or None
        problem = versions.gaps_and_overlaps(conditions, within)
        if problem:
            self.report(place, path, f"the alternatives don't tile: {problem}", "each torch needs exactly one")

    def expectation(self, node: Node) -> dict[str, Any]:
        value = node.value["expect"]
        step: dict[str, Any] = {"line": node.line, "expect": []}
        torch = self.condition(node.value.get("torch"), "torch")
        if torch is not None:
            step["torch"] = torch
        needs: set[str] = set()
        for subject, expected in value.value.items():
            line, column = value.keys[subject]
            path = f"expect.{subject}"
            if subject != "log" or "log" in self.names.bound:
                needs |= self.expression(Node(subject, line, column), path)
            checks = self.checks(subject, expected, path, torch, needs)
            step["expect"].append({"line": line, "subject": subject, "checks": checks})
        if needs:
            step["needs"] = sorted(needs)
        return step

    def checks(self, subject: str, node: Node, path: str, torch: str | None, needs: set[str]) -> list[list[Any]]:
        if subject == "log":
            return [["log", self.value(node, path, torch, None, needs), node.line]]
        if not isinstance(node.value, dict) or "torch" in node.value:
            return [["value", self.value(node, path, torch, "value", needs), node.line]]
        checks: list[list[Any]] = []
        for name, expected in node.value.items():
            below = f"{path}.{name}"
            if name == "grad" and isinstance(expected.value, dict) and "torch" not in expected.value:
                inner = self.checks("", expected, below, torch, needs)
                checks.append([name, {"checks": inner}, expected.line])
            else:
                checks.append([name, self.value(expected, below, torch, name, needs), expected.line])
        for name in {"rtol", "atol"} & set(node.value):
            if not math.isfinite(node.value[name].value):
                self.report(
                    node.value[name], f"{path}.{name}", f"expected a finite number, got {node.value[name].value}"
                )
            if not {"value", "grad"} & set(node.value):
                self.report(node.keys[name], f"{path}.{name}", "a tolerance alone checks nothing", "add a value")
        return checks

    def value(self, node: Node, path: str, torch: str | None, check: str | None, needs: set[str]) -> Any:
        """Return the value of a check as data; text becomes an expression where the check takes one."""
        if isinstance(node.value, dict):
            entries = node.value["torch"].value
            conditions = []
            for text in entries:
                line, column = node.value["torch"].keys[text]
                conditions.append(self.condition(Node(text, line, column), f"{path}.torch"))
            self.tile(node, path, conditions, torch)
            own: set[str] = set()  # what an alternative needs is the business of its condition
            return {"torch": {text: self.value(entry, path, torch, check, own) for text, entry in entries.items()}}
        if isinstance(node.value, list):
            return [self.value(entry, f"{path}[{i}]", torch, check, needs) for i, entry in enumerate(node.value)]
        if isinstance(node.value, str) and (check in EXPRESSIONS or check in REFERENCES):
            needs |= self.expression(node, path)
            return {"expr": node.value.strip()}
        return node.value

    def expression(self, node: Node, path: str) -> set[str]:
        if node.value in self.names.bound and not node.value.startswith("_"):
            return set()  # a variable alone, which most subjects are
        parsed = language.parse(node.value, mode="eval")
        self.findings(node, path, parsed)
        return parsed.needs
