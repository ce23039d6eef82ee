"""Drafts cases of what somebody has written elsewhere."""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.cli.attempt import add_python, observer_of
from conformance.cli.list import those_in
from conformance.cli.output import CommandError, complain, put, save
from conformance.cli.progress import following
from conformance.execution.filling import Draft
from conformance.execution.observing import Observer
from conformance.language.drafting.bodies import Body, bodies_of
from conformance.language.drafting.functions import functions_in
from conformance.language.drafting.sources import NotReadable, cells_of
from conformance.language.drafting.standins import StandIn, standins_for, to_go_backward_from, with_standins
from conformance.language.drafting.statements import Converter, Untold, own_names
from conformance.language.errors import CaseFileError
from conformance.language.outline import Entry, entry_of
from conformance.language.unconfirmed import node_of, opened, with_value
from conformance.language.writing import write_case
from conformance.language.yaml import Node, content_of, read_text
from conformance.model.rule import Rule
from conformance.render.ranking import ranked
from conformance.render.similarity import Similar, features_of, similar_to

DESCRIPTION = """\
Drafts cases of a Python snippet, a function or test in a file, a notebook, or a notebook that was exported as text. The
statements become steps, and what is printed or asserted becomes what is expected. It is run with the installed torch,
and what was observed is written as {unconfirmed: …}: a draft does not load until `confirm` has asked about each.

  autograd-conformance draft snippet.py -o mine.yaml
  autograd-conformance draft notebook.ipynb -o mine.yaml
  autograd-conformance draft test_autograd.py::TestAutograd::test_grad -o mine.yaml
  pbpaste | autograd-conformance draft - -o mine.yaml

Comments in the draft say what has no place in a case, what stands in the place of a model, tensor or optimizer that the
source uses and doesn't set, and which of the suite's cases are much alike.

exit statuses: 0 drafted; 1 nothing in it can be a case; 2 the source can't be read, or there is no such torch
"""
ITEM = "::"
SLUG = re.compile(r"[^a-z0-9]+")
MOST_RULES = 3
MOST_ALIKE = 3
ALIKE = 0.6  # of what a case of the suite and a draft do and check together, that both do


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a file, FILE::FUNCTION, FILE::CLASS::TEST, or - for stdin")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write there (default: print)")
    parser.add_argument("--state", action="store_true", help="look at each tensor at the end of each case, too")
    add_python(parser)


def run(options: argparse.Namespace) -> int:
    file, _, function = options.source.partition(ITEM)
    name = "stdin" if file == "-" else Path(file).name
    try:
        text = source_text(file)
        bodies, untold = (functions_in(text, function), []) if function else bodies_of(cells_of(text, name))
    except NotReadable as error:
        raise CommandError(f"{name}: {error}", error.hint) from None
    with observer_of(options.python, trusts=options.trust) as observer:
        drafted = [drafted_case(body, name, observer, state=options.state) for body in drafting(bodies)]
        torch = observer.torch.build.torch
    head = f"# Drafted from {name} with torch {torch}, on which all that is `unconfirmed` was observed.\n"
    lines = [f"{head}# `confirm` asks about each of these values.\n", *map(comment_of, untold)]
    lines += [line for told, case in drafted if case is None for line in told]
    cases = list(unlike([(told, case) for told, case in drafted if case is not None]))
    lines += [f"topic: Drafts from {name}\n", "cases:\n" if cases else ""]
    number = len("".join(lines).splitlines())
    for told, case in cases:
        lines.append("".join(told))
        lines.append(write_case(case, number)[0])
    if options.output is None:
        put("".join(lines), "utf-8")
    else:
        save(options.output, "".join(lines))
    missing = sum(line.lstrip().startswith("# no place for") for line in "".join(lines).splitlines())
    complain(f"cases: {len(cases)}; what has no place in one, as comments say: {missing}")
    return 0 if cases else 1


def drafting(bodies: list[Body]) -> Iterator[Body]:
    return following(bodies, "drafting cases", lambda body: body.name or f"line {body.line}")


def source_text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return read_text(content_of(Path(file)), file)
    except OSError as error:
        raise CommandError(f"{file}: can't be read: {error.strerror}", "name a file, or - for stdin") from None
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), "expected text") from None


def drafted_case(body: Body, file: str, observer: Observer, *, state: bool) -> tuple[list[str], Node | None]:
    """Return the lines that tell of the draft of a case, and the case, if anything in it can be one."""
    standins = standins_for(body.statements, body.imports)
    statements = with_standins(body.statements, standins)
    told_before = [each for each in body.told if each.name not in {standin.name for standin in standins}]
    converter = Converter(imports=body.imports, own=own_names(statements), untold=told_before)
    converter.convert(statements)
    root = to_go_backward_from(body.statements, standins)
    if root:
        converter.add_silently(f"{root}.sum().backward()")
    converter.finish()
    draft = Draft(converter.steps, converter.untold, observer, file, is_whole=not standins)
    case = draft.fill(state)
    told = list(dict.fromkeys(comment_of(each) for each in draft.untold))
    if case is None:
        return told, None
    told += map(remark_on, standins)
    if root:
        told.append(
            f"  # nothing goes backward: a step does from {root} where it can, which shows who gets a gradient\n"
        )
    own = Node({"id": Node("draft", 1, 1), "steps": case.value["steps"]}, 1, 1)
    entry = entry_of(write_case(own, 1)[0], "", is_operation=False)
    near = similar_to(entry, those_in(None), MOST_ALIKE)
    alike = [each.entry.id for each in near if each.share >= ALIKE]
    if alike:
        told.append(f"  # much alike: {', '.join(alike)}\n")
    rules = suggested_rules(entry, near, observer.rules)
    place = f"line {body.line} of {file}"
    words = body.name or place
    head = {
        "id": slug(words) or slug(place),
        "title": words,
        "why": opened(f"It is so in {file}, line {body.line}."),
        "rules": opened(rules),
        "source": file,
    }
    for key, value in head.items():
        case = with_value(case, (key,), node_of(value, case))
    order = [*head, "steps"]
    return told, Node({key: case.value[key] for key in order}, 1, 1)


def slug(words: str) -> str:
    return SLUG.sub("-", words.lower()).strip("-")


def suggested_rules(entry: Entry, near: list[Similar], rules: Mapping[str, Rule]) -> list[str]:
    """Return rules that a draft may be about: those of cases like it, and those that have its words."""
    cited = [name for each in near for name in each.entry.rules if name in rules]
    texts = {name: (name, rule.text) for name, rule in rules.items()}
    features = sorted(features_of(entry), key=lambda feature: feature[0] == "check")
    for used in ([each for each in features if each[0] != "check"], features):
        found = list(dict.fromkeys([*cited, *ranked(" ".join(name.replace("_", " ") for _, name in used), texts)]))
        if found:
            break
    return found[:MOST_RULES]


def unlike(drafted: list[tuple[list[str], Node]]) -> Iterator[tuple[list[str], Node]]:
    """Yield drafts of which no two have the same steps or the same id, nor the id of a case of the suite."""
    seen: list[object] = []
    ids = {entry.id for entry in those_in(None)}
    for told, case in drafted:
        steps = case.value["steps"].plain
        if steps in seen:
            continue
        seen.append(steps)
        first = case.value["id"].value
        name = next(each for n in range(1, 10_000) if (each := first if n == 1 else f"{first}-{n}") not in ids)
        ids.add(name)
        yield told, with_value(case, ("id",), Node(name, 1, 1))


def comment_of(untold: Untold) -> str:
    """Return a line that tells what has no place in a case."""
    hint = f" ({untold.hint})" if untold.hint else ""
    text = f"no place for line {untold.line}, {untold.text}: {untold.why}{hint}"
    return f"  # {' '.join(text.split())}\n"


def remark_on(standin: StandIn) -> str:
    """Return a line that tells what stands for a name that the source doesn't set."""
    return f"  # nothing says what {standin.name} is, which line {standin.line} uses: the first steps have a stand-in\n"
