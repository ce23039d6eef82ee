"""Finds in cases that load what can't be as it was meant, without torch: each is a problem with its line.

A name that no earlier step sets on some release, a condition that says nothing, an expectation that holds whatever
torch does, a pattern under `match` that is text, and a few mistakes that torch itself would refuse in its own words.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.language import versions, vocabulary
from conformance.language.errors import Problem
from conformance.language.parsing import names_bound, parse_code
from conformance.language.patterns import pattern_problem
from conformance.language.steps import WARNINGS, joined
from conformance.model.case import Case

Remark = tuple[int, str, str, str]  # line, path, message, hint
Setters = dict[str, list[str | None]]  # for each name the conditions of the steps that set it

OF_PATTERNS = re.compile(r"\.[*+?]|\\[.dswDSW()\[\]]|^\^|\$$|\(\?|\[[^\]]+\][*+]")
LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.USub, ast.Load)
INTEGERS = (ast.List, ast.Tuple, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)


def remarks_on(case: Case) -> list[Problem]:
    """Return what is remarkable in a case, in the order of its lines; of one that is written out, at its beginning."""
    found = [*names_missing(case), *conditions_without_effect(case), *what_can_not_fail(case), *slips(case)]
    lines = case.text.split("\n")
    problems = []
    for line, path, message, hint in found:
        text = lines[line - case.line] if 0 <= line - case.line < len(lines) else ""
        place = (case.line, 1) if case.written_out else (line, len(text) - len(text.lstrip(" ")) + 1)
        told = f"{case.id}, written out: {message}" if case.written_out else message
        problems.append(Problem(file=case.file, line=place[0], column=place[1], path=path, message=told, hint=hint))
    return sorted(set(problems))


def names_missing(case: Case) -> Iterator[Remark]:
    """Yield the uses of names that, on a release that gets there, no step before has set."""
    set_under: Setters = {}
    for step in case.steps:
        within = condition_of(case, step)
        for line, path, name in names_used(step):
            release = versions.gap(set_under[name], within) if name in set_under else ""
            if release:
                where = " or ".join(repr(each) for each in set_under[name] if each)
                hint = f"it is set where {where} holds: set it elsewhere, too, or put this under the same condition"
                hint = hint if where else "the step that would set it raises"
                yield line, path, f"{name!r} is not set on torch {release}", hint
        for name, under in names_left(case, step):
            set_under.setdefault(name, []).extend(under)


def condition_of(case: Case, step: dict[str, Any]) -> str | None:
    return joined(case.torch, step.get("torch"))


def names_left(case: Case, step: dict[str, Any]) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the names that a step sets, with the conditions under which it does: not where it must raise."""
    if "do" not in step:
        return
    within = condition_of(case, step)
    conditions = [within]
    if "raises" in step:
        conditions = [joined(within, each["torch"]) for each in step["raises"] if each["type"] is None]
    parsed = parse_code(step["do"])
    last = parsed.tree.body[-1] if isinstance(parsed.tree, ast.Module) else None
    unset = names_bound(last, itself=True) if isinstance(last, ast.Assign) else set()  # of a block, it isn't known
    for name in parsed.bound:
        yield name, conditions if name in unset else [within]


def names_used(step: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Yield the names that a step looks up when it runs, each with its line and path."""
    if "do" in step:
        tree = parse_code(step["do"]).tree
        yield from ((step["line"], "", name) for name in loaded_by(tree))
        return
    for entry in step["expect"]:
        if entry["checks"][0][0] != "log":
            path = f"expect.{entry['subject']}"
            texts = [entry["subject"], *(text for _, value, _ in entry["checks"] for text in expressions_in(value))]
            for text in texts:
                yield from ((entry["line"], path, name) for name in loaded_by(parse_code(text, "eval").tree))


def expressions_in(value: Any) -> Iterator[str]:
    """Yield the expressions in an expected value that stand there for every release."""
    if isinstance(value, dict) and "expr" in value:
        yield value["expr"]
    elif isinstance(value, dict) and "checks" in value:
        yield from (text for _, inner, _ in value["checks"] for text in expressions_in(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in expressions_in(inner))


def loaded_by(tree: ast.AST | None) -> list[str]:
    """Return the names that code looks up, but for those in functions, which may be called later or not at all."""
    found: list[str] = []
    waiting = [tree] if tree is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.append(node.id)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return list(dict.fromkeys(found))


def conditions_without_effect(case: Case) -> Iterator[Remark]:
    """Yield conditions that hold on every release that runs the case, and those that hold on none of them."""
    if case.torch is not None and not versions.gap([case.torch]):
        yield case.line, "torch", f"the condition {case.torch!r} holds on every release", "leave it out"
    within = joined(case.torch, *(since for _, since in needed(case)))
    runs = ", and ".join([*filter(None, [case.torch]), *(f"{since} for {name}" for name, since in needed(case))])
    for line, path, condition, around in conditions_in(case):
        inside = joined(within, around)
        if inside is not None and not versions.possible([inside, condition]):
            message = f"no torch that runs the case fulfils the condition {condition!r}"
            yield line, path, message, f"it needs torch {runs}: say so under torch of the case"
        elif not versions.gap([condition], joined(case.torch, around)):
            where = f" where {joined(case.torch, around)!r} holds" if case.torch or around else ""
            yield line, path, f"the condition {condition!r} holds on every release{where}", "leave it out"


def needed(case: Case) -> list[tuple[str, str]]:
    """Return the names that the case needs whatever the release, each with the condition that it makes."""
    always = [name for name, within in case.needs if not within]
    return [(name, f">={vocabulary.since(name)}") for name in always]


def conditions_in(case: Case) -> Iterator[tuple[int, str, str, str | None]]:
    """Yield the conditions of steps and alternatives, each with its line, its path and what must hold around it."""
    for step in case.steps:
        if "torch" in step:
            yield step["line"], "torch", step["torch"], None
        for key in ("raises", "warns"):
            for each in step.get(key, ()):
                if each["torch"] is not None:
                    yield each["line"], f"{key}.torch", each["torch"], step.get("torch")
        for entry in step.get("expect", ()):
            for name, value, line in entry["checks"]:
                for condition in value["torch"] if isinstance(value, dict) and "torch" in value else ():
                    yield line, f"expect.{entry['subject']}.{name}", condition, step.get("torch")


def what_can_not_fail(case: Case) -> Iterator[Remark]:
    """Yield patterns that every message has, and expectations of names that the case sets to a literal."""
    literals = names_of_literals(case)
    for step in case.steps:
        for key in ("raises", "warns"):
            for each in step.get(key, ()):
                for part in each["match"]:
                    if isinstance(part, dict) and "regex" in part and re.search(part["regex"], ""):
                        yield each["line"], f"{key}.match", "every message has this pattern", "name what must be in it"
        for entry in step.get("expect", ()):
            if entry["subject"] in literals:
                message = "is what a step sets it to, whatever torch does: this can't fail"
                yield entry["line"], f"expect.{entry['subject']}", message, "look at what torch has computed"


def names_of_literals(case: Case) -> set[str]:
    """Return the names that are set once, to a literal that nothing in the case can change."""
    values: dict[str, list[ast.AST | None]] = {}
    mentioned: list[str] = []
    for step in case.steps:
        if "do" in step:
            parsed = parse_code(step["do"])
            mentioned += (
                [node.id for node in ast.walk(parsed.tree) if isinstance(node, ast.Name)] if parsed.tree else []
            )
            for statement in parsed.tree.body if isinstance(parsed.tree, ast.Module) else ():
                for name in parse_code(ast.unparse(statement)).bound:
                    is_one = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
                    values.setdefault(name, []).append(statement.value if is_one else None)  # type: ignore[attr-defined]
    return {
        name
        for name, given in values.items()
        if len(given) == 1 and given[0] is not None and all(isinstance(each, LITERALS) for each in ast.walk(given[0]))
        and mentioned.count(name) == 1
    }  # fmt: skip


def slips(case: Case) -> Iterator[Remark]:
    """Yield what is valid and was hardly meant: patterns that are text, warnings that are to be raised, and others."""
    compiled = {"compiled"}
    for step in case.steps:
        for key in ("raises", "warns"):
            for each in step.get(key, ()):
                if key == "raises" and each["type"] in WARNINGS:
                    hint = "warns: expects a warning that is given"
                    yield each["line"], "raises.type", f"{each['type']} is a warning, which nothing raises here", hint
                for part in each["match"]:
                    if isinstance(part, str) and OF_PATTERNS.search(part) and not pattern_problem(part):
                        hint = f"a pattern is {{regex: '{part}'}}"
                        yield each["line"], f"{key}.match", f"{part!r} is text, and looks like a pattern", hint
        if "do" in step and "raises" not in step and "warns" not in step:
            yield from slips_of_statements(step)
        for entry in step.get("expect", ()):
            for text in (text for _, value, _ in entry["checks"] for text in expressions_in(value)):
                called = calls_in(parse_code(text, "eval").tree)
                if called & {"autograd.grad", "torch.autograd.grad"}:
                    message = "an expected value is computed of copies that don't require grad, and has no gradients"
                    hint = "compute the gradient in a step, and expect what the step has set"
                    yield entry["line"], f"expect.{entry['subject']}", message, hint
                if called & compiled:
                    message = "an expected value is computed on the CPU, a compiled function on its device"
                    hint = "call it in a step, and expect what the step has set"
                    yield entry["line"], f"expect.{entry['subject']}", message, hint
        if "do" in step:
            compiled |= names_of_compiled(parse_code(step["do"]).tree)


def calls_in(tree: ast.AST | None) -> set[str]:
    nodes = ast.walk(tree) if tree is not None else ()
    return {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}


def names_of_compiled(tree: ast.AST | None) -> set[str]:
    """Return the names that statements outside of functions set to what compiled() gives, or to something around it."""
    body = tree.body if isinstance(tree, ast.Module) else []
    assigned = [each for each in body if isinstance(each, ast.Assign) and "compiled" in calls_in(each.value)]
    targets = [node for each in assigned for target in each.targets for node in ast.walk(target)]
    return {node.id for node in targets if isinstance(node, ast.Name)}


def slips_of_statements(step: dict[str, Any]) -> Iterator[Remark]:
    tree = parse_code(step["do"]).tree
    for statement in tree.body if isinstance(tree, ast.Module) else ():
        line = step["line"] + statement.lineno - 1
        if isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Compare, ast.BoolOp)):
            yield line, "", "the comparison is made and forgotten", "say it in an expect step"
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and requires_grad_of_integers(node):
                message = "whole numbers make a tensor of integers, which can't require grad"
                yield line, "", message, "write 1.0 for 1, or name the dtype"


def requires_grad_of_integers(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    keywords = {each.arg: each.value for each in call.keywords}
    requires = keywords.get("requires_grad")
    if name != "tensor" or len(call.args) != 1 or "dtype" in keywords or not isinstance(requires, ast.Constant):
        return False
    parts: Iterable[ast.AST] = ast.walk(call.args[0])
    numbers = [each.value for each in ast.walk(call.args[0]) if isinstance(each, ast.Constant)]
    is_plain = all(isinstance(each, INTEGERS) for each in parts)
    return bool(requires.value is True and is_plain and numbers and all(type(each) is int for each in numbers))
