"""Reads one case of a case file: its steps and expectations as the plain data that a worker gets.

What the schema can't say is checked here: names, rules, versions, and that the case can fail. What has a wrong shape
has been reported already, and is skipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.language import grammar as language
from conformance.language import versions, vocabulary
from conformance.language.errors import did_you_mean
from conformance.language.yaml import Node
from conformance.model.rule import Rule

# Checks whose text is an expression on the case's own objects, and those where it is one on float64 CPU copies.
EXPRESSIONS = frozenset({"is", "is_not", "shares_storage", "not_shares_storage", "view_of"})
REFERENCES = frozenset({"value", "grad"})
WARNINGS = frozenset(name for name in vocabulary.EXCEPTIONS if name.endswith("Warning"))
KNOWN_EXCEPTIONS = vocabulary.EXCEPTIONS | vocabulary.TORCH_EXCEPTIONS


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
        """Return what a case holds beside its text; one with spellings has no steps of its own."""
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
            "steps": self.steps_that_can_fail(node.value["steps"])
            if isinstance(node.find("steps").value, list)
            else (),
        }

    def steps_that_can_fail(self, listed: Node) -> tuple[dict[str, Any], ...]:
        """Read the steps of a case, of which one at least must expect something."""
        steps = self.steps(listed)
        if steps and self.broken.isdisjoint(listed.lines()) and not any(map(self.can_fail, steps)):
            self.report(listed, "steps", "nothing is expected: this case can't fail", "add an expect step")
        return steps

    def steps(self, listed: Node) -> tuple[dict[str, Any], ...]:
        """Read steps; those whose shape is wrong only lend the names that they bind."""
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
        return tuple(steps)

    def can_fail(self, step: dict[str, Any]) -> bool:
        """Whether a step expects something, on a torch that can run it."""
        conditions = [condition for condition in (self.torch, step.get("torch")) if condition]
        return bool(step.keys() & {"expect", "raises", "warns"}) and (not conditions or versions.possible(conditions))

    def statements(self, node: Node, parsed: language.Parsed) -> dict[str, Any]:
        text, path = (node, "") if isinstance(node.value, str) else (node.value["do"], "do")
        self.findings(text, path, parsed)
        line = text.line + (text.style in ("|", ">"))
        step: dict[str, Any] = {"begins": node.line, "line": line, "do": parsed.text}
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
