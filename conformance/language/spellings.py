"""Checks cases with spellings, and the programs that these are run on, as they are written in their file.

The cases that they expand to are checked too. Checking the originals first gives most mistakes a place of their own.
"""

import keyword
import re
from collections.abc import Mapping, Sequence
from itertools import filterfalse
from typing import Any

from conformance.language import agreement, expansion, grammar, vocabulary
from conformance.language.errors import did_you_mean
from conformance.language.parsing import parse_code
from conformance.language.steps import CaseReader
from conformance.language.yaml import Node

PROVIDED = frozenset("f g inputs plain".split())  # names that a program defines for spellings
LASTING = frozenset("f g".split()) | agreement.NAMES  # that no spelling may set: what it does is measured by them
SPELLINGS_KEYS = frozenset({"given", "expect", "programs", "except", "suspends"})
FOUND = agreement.FOUND  # the name to which spellings assign the gradients
RANDOM_CALL = re.compile(rf"\b({'|'.join(sorted(vocabulary.RANDOM))})\b")


def check_spellings(reader: CaseReader, node: Node, programs: Mapping[str, Node]) -> None:
    """Report what is wrong with the spellings of a case, or with their keys in a case without any."""
    case = node.value
    if "spellings" not in case:
        for key in SPELLINGS_KEYS & case.keys():
            hint = "in steps it is a step of its own, - expect: …" if key == "expect" else ""
            reader.report(case[key], key, "belongs to a case with spellings", hint)
        return
    tried = "expect" not in case and bool(programs)
    if "expect" not in case and not programs:
        reader.report(node, "spellings", "nothing is expected: this case can't fail", "add expect, or programs")
    for key in ("programs", "except", "suspends"):
        if "expect" in case and key in case:
            reader.report(case[key], key, "can't stand beside 'expect'")
    if "programs" in case and "except" in case:
        reader.report(case["except"], "except", "can't stand beside 'programs'", "name those that it is tried on")
    check_names_of_programs(reader, node, programs)
    reader.names.bound |= PROVIDED if tried else frozenset()
    if "given" in case and isinstance(case["given"].value, list):
        reader.steps(case["given"])
    spellings = case["spellings"].value if isinstance(case["spellings"].value, dict) else {}
    after = [steps_of_spelling(reader, name, steps, tried) for name, steps in spellings.items()]
    if tried:
        check_names_set(reader, node, programs)
    if "expect" in case and after and isinstance(case["expect"].value, dict):
        reader.names.bound = set.intersection(*after)
        if "log" in case["expect"].value:
            message = "the log goes on from spelling to spelling"
            reader.report(case["expect"].keys["log"], "expect.log", message, "expect what a name holds")
        elif reader.broken.isdisjoint(case["expect"].lines()):
            reader.expectation(Node({"expect": case["expect"]}, case["expect"].line, case["expect"].column))


def check_names_of_programs(reader: CaseReader, node: Node, programs: Mapping[str, Node]) -> None:
    """Report words that name no program, under `programs` and under `except`, and when no program is left."""
    case = node.value
    places: list[tuple[str, Any, Any]] = []
    if "programs" in case and isinstance(case["programs"].value, list):
        places += ((f"programs[{index}]", name.value, name) for index, name in enumerate(case["programs"].value))
    if "except" in case and isinstance(case["except"].value, dict):
        places += ((f"except.{name}", name, place) for name, place in case["except"].keys.items())
        if programs and "programs" not in case and not expansion.programs_of(node, programs):
            reader.report(case["except"], "except", "no program is left")
    words = {word for name, program in programs.items() for word in (name, *expansion.features_of(program))}
    for path, name, place in places:
        if isinstance(name, str) and programs and name not in words:
            reader.report(place, path, f"unknown program {name!r}", did_you_mean(name, words))


def check_names_set(reader: CaseReader, node: Node, programs: Mapping[str, Node]) -> None:
    """Report names that spellings set although formulas, or the next spelling, use them for parts of a program."""
    bound = reader.names.anywhere
    for name in sorted(bound & LASTING):
        reader.report(node.value["spellings"], "spellings", f"{name!r} is set here, and belongs to the program")
    chosen = {} if reader.broken else expansion.programs_of(node, programs)
    for program in chosen.values():
        for name in sorted(bound & program.value["inputs"].value.keys()):
            message = f"{name!r} is set here, and is an input of the program {program.find('id').value!r}"
            reader.report(node.value["spellings"], "spellings", message, "choose another name")


def steps_of_spelling(reader: CaseReader, name: str, steps: Node, tried: bool) -> set[str]:
    """Check the steps of one spelling, and return the names that are bound after it."""
    before = set(reader.names.bound)
    if isinstance(steps.value, list):
        reader.steps(steps)
        if tried and FOUND not in reader.names.bound and reader.broken.isdisjoint(steps.lines()):
            hint = "it is to hold the gradients of f(*inputs) for g"
            reader.report(steps, f"spellings.{name}", f"doesn't set {FOUND!r}", hint)
    after, reader.names.bound = reader.names.bound, before
    return after


def read_programs(root: Node, report: Any, broken: frozenset[int]) -> dict[str, Node]:
    """Return the programs of a file by id, and report what is wrong with them."""
    listed = root.value.get("programs") if isinstance(root.value, dict) else None
    programs: dict[str, Node] = {}
    for node in listed.value if listed is not None and isinstance(listed.value, list) else ():
        name = node.find("id").value
        if not isinstance(node.value, dict) or not isinstance(name, str):
            continue
        if name in programs:
            report(node.value["id"], "id", f"{name!r} stands twice")
        elif broken.isdisjoint(node.lines()):
            check_program(node, report)
        programs[name] = node
    for node in programs.values():
        features = node.find("features").value
        for index, word in enumerate(features if isinstance(features, list) else ()):
            if isinstance(word.value, str) and word.value in programs:
                report(word, f"features[{index}]", f"{word.value!r} is the id of a program", "choose another word")
    return programs


def check_use(programs: Mapping[str, Node], cases: Sequence[Node], report: Any) -> None:
    """Report the programs that no case runs on; the cases have no other problem."""
    with_spellings = [node for node in cases if "spellings" in node.value]
    used = {name for node in with_spellings for name in expansion.programs_of(node, programs)}
    for name, program in programs.items():
        if name not in used:
            report(program, "", f"no case is tried on the program {name!r}", "name it in a case with spellings")


def check_program(node: Node, report: Any) -> None:
    program, inputs = node.value, node.value["inputs"]
    reader = CaseReader(report, {}, frozenset())
    if "torch" in program:
        reader.condition(program["torch"], "torch")
    for name in filterfalse(is_free, inputs.value):
        report(inputs.keys[name], f"inputs.{name}", "can't be the name of an input", "choose another name")
    gradients = program["gradients"]
    for name in inputs.value.keys() - gradients.value.keys():
        report(gradients, "gradients", f"the key {name!r} is missing", "every input has a gradient")
    for name in gradients.value.keys() - inputs.value.keys():
        hint = did_you_mean(name, inputs.value)
        report(gradients.keys[name], f"gradients.{name}", "isn't an input", hint)
    for name, value in (*((f"inputs.{name}", value) for name, value in inputs.value.items()), ("g", program["g"])):
        if isinstance(value.value, str):
            reader.expression(value, name)
            if RANDOM_CALL.search(value.value):
                report(value, name, "would be drawn anew for each spelling", "write the numbers down")
    reader.names.bound = set(filter(is_free, inputs.value)) | ({"events"} if "events" in program else set())
    check_result(program["result"], reader)
    reader.names.bound |= {"g", "plain"}
    for name, value in gradients.value.items():
        if isinstance(value.value, str):
            reader.expression(value, f"gradients.{name}")


def is_free(name: str) -> bool:
    """Whether an input can have this name."""
    taken = name in {FOUND, *PROVIDED, *LASTING, *vocabulary.RESERVED, *vocabulary.FOREIGN} or keyword.iskeyword(name)
    return name.isidentifier() and not taken and not name.startswith("_")


def check_result(node: Node, reader: CaseReader) -> None:
    """Check the result of a program: an expression, or the body of a function, below its `def` and indented."""
    if parse_code(node.value, mode="eval").tree is not None:
        reader.expression(node, "result")
        return
    parsed = parse_code(expansion.definition(sorted(reader.names.bound), node.value))
    if parsed.tree is not None:
        grammar.check_code(parsed, reader.names)
    for finding in parsed.findings:
        place = node.place_in(max(1, finding.line - 1), max(1, finding.column - expansion.INDENT))
        reader.report(place, "result", finding.message, finding.hint)
