"""Reads one case of a case file: its steps and expectations as the plain data that a worker gets.

This checks what the schema can't: names, rules, versions, and that the case can fail. Parts that don't match the schema
have been reported already and are skipped.
"""

import ast
import keyword
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.language import grammar, patterns, sameness, versions, vocabulary
from conformance.language.errors import did_you_mean
from conformance.language.parsing import Parsed, parse_code
from conformance.language.yaml import Node
from conformance.model.rule import Rule

# Checks whose text is an expression, evaluated on the case's own objects or on float64 CPU copies of them.
EXPRESSION_CHECKS = frozenset({"is", "is_not", "shares_storage", "not_shares_storage", "view_of"})
REFERENCES = frozenset({"value", "grad"})
WARNINGS = frozenset(name for name in vocabulary.EXCEPTIONS if name.endswith("Warning"))
NONE = "none"  # instead of the type, for an exception or a warning that must not occur
CAN_FAIL = frozenset({"expect", "raises", "warns"})
KEYWORDS = frozenset(keyword.kwlist)
IDENTIFIER = re.compile(r"[^\W\d]\w*")
WORD = re.compile(r"[a-zA-Z0-9]+")
KNOWN_EXCEPTIONS = vocabulary.EXCEPTIONS | vocabulary.TORCH_EXCEPTIONS


def as_tuple(value: object) -> tuple[Any, ...]:
    """Return a list as a tuple, and an empty one for anything else, which has been reported already."""
    return tuple(value) if isinstance(value, list) else ()


def joined(*conditions: str | None) -> str | None:
    """Return the conjunction of conditions: None for none, and "" if one of them has been reported as wrong."""
    given = [condition for condition in conditions if condition is not None]
    return (",".join(given) if all(given) else "") if given else None


def names_set(parsed: Parsed) -> frozenset[str]:
    """Return the names that code sets; where it can't be read, all that it may set, so that none is missed later."""
    return parsed.bound if parsed.tree is not None else likely_names(parsed.text)


def likely_names(text: str) -> frozenset[str]:
    return frozenset(IDENTIFIER.findall(text)) - vocabulary.NAMES.keys() - KEYWORDS


def is_quoted(text: str) -> bool:
    """Whether an expression is a string literal."""
    tree = sameness.tree_of(text) if text.strip()[-1:] in ("'", '"') else None
    return isinstance(tree, ast.Constant) and isinstance(tree.value, str)


class CaseReader:
    """Reads one case and reports what is wrong with it; skips the `broken` lines, which don't match the schema."""

    def __init__(self, report: Any, rules: Mapping[str, Rule], broken: frozenset[int]) -> None:
        self.report = report
        self.rules = rules
        self.broken = broken
        self.names = grammar.Names()
        self.torch: str | None = None
        self.needs: set[str] = set()  # names of the vocabulary in the current expectation

    def read(self, node: Node) -> dict[str, Any]:
        """Return the fields of a case but its text; a case with spellings has no steps of its own."""
        data = node.plain
        self.torch = self.condition(node.value.get("torch"), "torch")
        cited = node.find("rules").value
        for index, rule in enumerate(cited if isinstance(cited, list) else ()):
            if isinstance(rule.value, str) and rule.line not in self.broken and rule.value not in self.rules:
                words = " ".join(WORD.findall(rule.value))
                found = f"`python -m conformance rules {words}` finds rules; a new one goes into rules.yaml"
                hint = did_you_mean(rule.value, self.rules) or found
                self.report(rule, f"rules[{index}]", f"unknown rule {rule.value!r}", hint)
        source, listed = data.get("source"), node.find("steps")
        steps = self.steps(listed) if isinstance(listed.value, list) else ()
        can_fail = any(step.keys() & CAN_FAIL for step in steps)
        if steps and not can_fail and self.broken.isdisjoint(listed.lines()):
            self.report(listed, "steps", "nothing is expected: this case can't fail", "add an expect step")
        return {
            **{name: data.get(name) for name in ("id", "title", "why", "torch")},
            **{name: as_tuple(data.get(name)) for name in ("rules", "dtypes", "devices")},
            "source": (source,) if isinstance(source, str) else as_tuple(source),
            "steps": steps,
        }

    def steps(self, listed: Node) -> tuple[dict[str, Any], ...]:
        """Read steps; of those that don't match the schema, only the names that they bind."""
        read: list[tuple[Node, str | None, Parsed | None, bool]] = []
        for node, when in self.one_by_one(listed, None):
            text = node.value.get("do") if isinstance(node.value, dict) else node
            parsed = parse_code(text.value) if text is not None and isinstance(text.value, str) else None
            if parsed is not None:
                self.names.anywhere |= names_set(parsed)
                self.names.attributes |= parsed.attributes if parsed.tree is not None else names_set(parsed)
            read.append((node, when, parsed, bool(self.broken) and not self.broken.isdisjoint(node.lines())))
        steps = []
        for node, when, parsed, broken in read:
            if broken and parsed is not None:
                self.names.bound |= names_set(parsed)
            elif broken and node.find("expect") is node:
                self.names.bound |= likely_names(str(node.plain))
            elif not broken:
                steps.append(self.expectation(node, when) if parsed is None else self.statements(node, when, parsed))
        return tuple(steps)

    def one_by_one(self, listed: Node, when: str | None) -> Iterator[tuple[Node, str | None]]:
        """Yield each step, also those in blocks, with the condition of the enclosing blocks."""
        for node in listed.value:
            block = node.find("when")
            if block is node or not isinstance(block.value, dict):
                yield node, when
                continue
            inner = block.find("steps")
            condition = self.condition(block.value.get("torch"), "when.torch", when)
            if isinstance(inner.value, list):
                yield from self.one_by_one(inner, joined(when, condition))

    def statements(self, node: Node, when: str | None, parsed: Parsed) -> dict[str, Any]:
        text, path = (node, "") if isinstance(node.value, str) else (node.value["do"], "do")
        self.findings(text, path, parsed)
        line = text.line + (text.style in ("|", ">"))
        step: dict[str, Any] = {"begins": node.line, "line": line, "do": parsed.text}
        if parsed.needs:
            step["needs"] = sorted(parsed.needs)
        own = None if isinstance(node.value, str) else self.condition(node.value.get("torch"), "torch", when)
        torch = joined(when, own)
        if torch is not None:
            step["torch"] = torch
        for key in ("raises", "warns"):
            if isinstance(node.value, dict) and key in node.value:
                step[key] = self.alternatives(node.value[key], key, torch)
        if isinstance(node.value, dict) and not step.keys() & {"raises", "warns"}:
            hint = "write the statements as the step itself"
            if own is not None:
                hint += ", in when: {torch: …, steps: […]}"
            self.report(node.keys["do"], "do", "neither raises nor warns stands beside it", hint)
        return step

    def findings(self, node: Node, path: str, parsed: Parsed) -> None:
        grammar.check_code(parsed, self.names)
        self.names.bound -= parsed.deleted
        self.names.bound |= names_set(parsed)
        for finding in parsed.findings:
            place = node.place_in(finding.line, finding.column)
            self.report(place, path, finding.message, finding.hint)

    def alternatives(self, node: Node, path: str, step_torch: str | None) -> list[dict[str, Any]]:
        if isinstance(node.value, str):
            return [{"type": None, "match": [], "torch": None, "line": node.line}]
        nodes = node.value if isinstance(node.value, list) else [node]
        alternatives = []
        for index, entry in enumerate(nodes):
            below = path if entry is node else f"{path}[{index}]"
            name, match = entry.value["type"].value, entry.value.get("match")
            condition = self.condition(entry.value.get("torch"), f"{below}.torch", step_torch)
            matches = [] if match is None else match.value if isinstance(match.value, list) else [match]
            alternatives.append({
                "type": None if name == NONE else name,
                "match": [self.part(part, f"{below}.match") for part in matches],
                "torch": condition,
                "line": entry.line,
            })  # fmt: skip
            word, known = ("warning", WARNINGS) if path == "warns" else ("exception", KNOWN_EXCEPTIONS)
            if name != NONE and name not in known:
                self.report(entry.value["type"], f"{below}.type", f"unknown {word} {name!r}", did_you_mean(name, known))
            if name != NONE and match is None:
                self.report(entry, below, "the key 'match' is missing", "say what the message must contain")
            if name == NONE and match is not None:
                self.report(match, f"{below}.match", "where nothing comes, no message can match")
            if name == NONE and match is None and len(nodes) == 1:
                self.report(entry, below, "none stands alone where there are no alternatives", f"write {path}: none")
        self.check_alternatives(node, path, [entry["torch"] for entry in alternatives], step_torch)
        return alternatives

    def part(self, node: Node, path: str) -> Any:
        """Return a part of `match`: text, {"kernel": text}, or {"regex": pattern}."""
        if isinstance(node.value, str):
            return node.value
        if "kernel" in node.value:
            return {"kernel": node.value["kernel"].value}
        pattern = node.value["regex"]
        wrong = patterns.pattern_problem(pattern.value)
        if wrong:
            self.report(pattern, f"{path}.regex", *wrong)
        return {"regex": pattern.value}

    def condition(self, node: Node | None, path: str, within: str | None = None) -> str | None:
        """Return a condition on torch, None for none, and "" for one that has been reported as wrong.

        `within` is the condition of the enclosing step or blocks; the case's own is added.
        """
        if node is None:
            return None
        if not isinstance(node.value, str) or not node.value.strip():
            return ""
        try:
            versions.specifier_of(node.value)
        except ValueError as error:
            self.report(node, path, str(error))
            return ""
        around = joined(self.torch, within)
        if not versions.possible([node.value]):
            first, last = vocabulary.OLDEST, versions.LAST
            hint = f"releases from {first} on count, up to {last}, a few after the newest that is known"
            self.report(node, path, f"no torch fulfils the condition {node.value!r}", hint)
            return ""
        if around and not versions.possible([around, node.value]):
            message = f"no torch fulfils the condition {node.value!r} where {around!r} holds"
            self.report(node, path, message, "the enclosing condition")
            return ""
        return node.value

    def check_alternatives(self, place: Node, path: str, conditions: Sequence[str | None], within: str | None) -> None:
        if "" in (*conditions, self.torch, within):
            return
        problem = versions.gaps_and_overlaps(conditions, joined(self.torch, within))
        if problem:
            message = f"the alternatives are not exhaustive and disjoint: {problem}"
            self.report(place, path, message, "each torch needs exactly one")

    def expectation(self, node: Node, when: str | None = None) -> dict[str, Any]:
        value = node.value["expect"]
        step: dict[str, Any] = {"line": node.line, "expect": []}
        torch = joined(when, self.condition(node.value.get("torch"), "torch", when))
        if torch is not None:
            step["torch"] = torch
        self.needs = set()
        for subject, expected in value.value.items():
            line, column = value.keys[subject]
            path = f"expect.{subject}"
            if subject != "log" or "log" in self.names.bound:
                self.needs |= self.expression(Node(subject, line, column), path)
                if sameness.is_independent_of_case(subject):
                    message = "is the same whatever the case does: this can't fail"
                    self.report((line, column), path, message, "look at something that the case has set")
            checks = self.checks(subject, expected, path, torch)
            step["expect"].append({"line": line, "subject": subject, "checks": checks})
        if self.needs:
            step["needs"] = sorted(self.needs)
        return step

    def checks(self, subject: str, node: Node, path: str, torch: str | None) -> list[list[Any]]:
        if subject == "log":
            return [["log", self.value(node, path, torch, None), node.line]]
        if not isinstance(node.value, dict) or node.value.keys() & {"torch", "text"}:
            return [["value", self.value(node, path, torch, "value", subject), node.line]]
        checks: list[list[Any]] = []
        for name, expected in node.value.items():
            below = f"{path}.{name}"
            observed = f"({subject}\n).grad" if name == "grad" else subject
            if name == "grad" and isinstance(expected.value, dict) and not expected.value.keys() & {"torch", "text"}:
                inner = self.checks(observed, expected, below, torch)
                checks.append([name, {"checks": inner}, expected.line])
            else:
                checks.append([name, self.value(expected, below, torch, name, observed), expected.line])
        for name in {"rtol", "atol"} & set(node.value):
            given = node.value[name]
            if not math.isfinite(given.value):
                self.report(given, f"{path}.{name}", f"expected a finite number, got {given.value}")
            if not {"value", "grad"} & set(node.value):
                self.report(node.keys[name], f"{path}.{name}", "a tolerance alone checks nothing", "add a value")
        return checks

    def value(self, node: Node, path: str, torch: str | None, check: str | None, observed: str = "") -> Any:
        """Return what a check expects of `observed` as data, for each of its alternatives."""
        if isinstance(node.value, dict) and "torch" in node.value:
            entries = node.value["torch"].value
            conditions = []
            for text in entries:
                line, column = node.value["torch"].keys[text]
                conditions.append(self.condition(Node(text, line, column), f"{path}.torch", torch))
            self.check_alternatives(node, path, conditions, torch)
            kept, self.needs = self.needs, set()  # an alternative states by its condition what it needs
            chosen = {text: self.value(entry, path, torch, check, observed) for text, entry in entries.items()}
            self.needs = kept
            return {"torch": chosen}
        value = self.plain_value(node, path, check)
        if check in EXPRESSION_CHECKS | REFERENCES and sameness.compares_with_itself(observed, check, value):
            self.report(node, path, "is compared with itself: this can't fail", "say what it must be")
        return value

    def plain_value(self, node: Node, path: str, check: str | None) -> Any:
        """Return a value as data: text is an expression where the check takes one, elsewhere a name or an event."""
        if isinstance(node.value, dict):
            text = node.value["text"].plain
            return [{"expr": repr(each)} for each in text] if isinstance(text, list) else {"expr": repr(text)}
        if isinstance(node.value, list):
            return [self.plain_value(entry, f"{path}[{i}]", check) for i, entry in enumerate(node.value)]
        if isinstance(node.value, str) and (check in EXPRESSION_CHECKS or check in REFERENCES):
            if node.value.isidentifier() and self.is_unknown(node.value):
                hint = did_you_mean(node.value, self.names.anywhere) or vocabulary.hint_for(node.value)
                hint = hint or f"for the text itself, {{text: {node.value}}}"
                self.report(node, path, f"unknown name {node.value!r}", hint)
                return None
            self.needs |= self.expression(node, path)
            if is_quoted(node.value):
                self.report(node, path, "is text in quotation marks, as an expression", "write {text: …}")
            return {"expr": node.value.strip()}
        return node.value

    def is_unknown(self, name: str) -> bool:
        return not any(name in known for known in (self.names.anywhere, self.names.bound, vocabulary.NAMES, KEYWORDS))

    def expression(self, node: Node, path: str) -> set[str]:
        if node.value in self.names.bound and not node.value.startswith("_"):
            return set()  # a variable, as most subjects are: saves parsing
        parsed = parse_code(node.value, mode="eval")
        self.findings(node, path, parsed)
        return parsed.needs
