"""Values of a case that nobody has confirmed: `{unconfirmed: …}` with what was observed, or `?` where nothing was yet.

They may stand for any expected value, for `raises` and `warns`, and for `title`, `why` and `rules`. A file with one is
a draft: it does not load as cases.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from conformance.language.schema import Reporter, load_schema
from conformance.language.steps import EXPRESSION_CHECKS
from conformance.language.yaml import UNCONFIRMED, UNKNOWN, Node

Path = tuple[str | int, ...]

WORDS = frozenset({"title", "why", "rules"})
ENDS = frozenset({"raises", "warns"})
TOLERANCES = frozenset({"rtol", "atol"})
FLAG = "flag"
# What can't be observed, by the schema's name for the values of a check: a check of it says what is there instead.
NAMES = ("nameCheck", "nameOrNullCheck", "dtypeCheck", "deviceCheck", "layoutCheck")  # of checks that take a name
NO_NAME = "unknown"  # what nothing is called
IMPOSSIBLE: dict[str, Any] = {
    **dict.fromkeys(NAMES, NO_NAME), "countCheck": -1, "sizesCheck": [-1], "namesOrNullCheck": [NO_NAME],
    "valueCheck": {"text": UNKNOWN}, "flagCheck": FLAG,
}  # fmt: skip
IMPOSSIBLE_END = {"type": "Exception", "match": "\ue000"}


def is_open(node: Node) -> bool:
    return type(node.value) is dict and node.value.keys() == {UNCONFIRMED}


def content(node: Node) -> Node | None:
    """Return what was observed in the place of an open value, or None for a `?`."""
    inner: Node = node.value[UNCONFIRMED]
    return None if inner.value == UNKNOWN else inner


def opened(value: Any) -> Any:
    """Return a value as one that is to be confirmed."""
    return {UNCONFIRMED: value}


def open_values(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield each open value in a document, in order, with its path."""
    if is_open(node):
        yield path, node
    elif type(node.value) is dict:
        for key, inner in node.value.items():
            yield from open_values(inner, (*path, key))
    elif type(node.value) is list:
        for index, inner in enumerate(node.value):
            yield from open_values(inner, (*path, index))


def refuse(root: Node, file: str, report: Reporter) -> None:
    """Report each open value of a file that is to be loaded as cases."""
    for path, node in open_values(root):
        place = ".".join(map(str, path[path.index("expect") :] if "expect" in path else path[-1:]))
        if content(node) is None:
            report(node, place, "? stands for what nobody has looked at yet", f"`observe {file}` says what it is")
        else:
            report(node, place, "was observed, and is to be confirmed", f"`confirm {file}` asks about each such value")


@cache
def check_names() -> dict[str, str]:
    """Return the schema's name for the values of each check."""
    checks = load_schema("case.schema.json")["$defs"]["checks"]["properties"]
    return {name: entry.get("$ref", "").rpartition("/")[2] for name, entry in checks.items()}


def unit(path: Path) -> Path:
    """Return the path of the whole check, or other entry, that an open value is a part of."""
    if "expect" in path:
        at = path.index("expect") + 2
        for _ in range(2):  # a check, and one of a gradient
            if path[at : at + 1] and path[at] in check_names():
                at += 1
        return path[:at]
    for index, step in enumerate(path):
        if step in ENDS | WORDS:
            return path[: index + 1]
    return path


def asked(path: Path) -> str:
    """Return what is asked: the name of a check, `log`, `raises` and so on; "" where no open value may stand."""
    whole = unit(path)
    if "expect" in whole:
        inside = whole[whole.index("expect") + 1 :]
        if len(inside) > 1:
            return str(inside[-1]) if inside[-1] not in TOLERANCES else ""
        return ("log" if inside[0] == "log" else "value") if inside else ""
    last = whole[-1] if whole else ""
    in_step = "steps" in whole
    return str(last) if (last in ENDS and in_step) or (last in WORDS and not in_step) else ""


def impossible(what: str, path: Path) -> Any:
    """Return a value that can't be observed in a place, which a run says what is there instead of."""
    if what in ENDS:
        return {**IMPOSSIBLE_END, "type": "Warning"} if what == "warns" else IMPOSSIBLE_END
    if what == "log":
        return [UNKNOWN]
    kind = "valueCheck" if what in ("value", "grad") else check_names()[what]
    inside = path[len(unit(path)) :]
    value = IMPOSSIBLE[kind]
    return value[0] if type(value) is list and any(type(step) is int for step in inside) else value


def is_reference(what: str) -> bool:
    """Whether a check takes an expression for another object."""
    return what in EXPRESSION_CHECKS


def with_value(node: Node, path: Path, value: Node | None) -> Node:
    """Return a copy of a tree with another value at a path, or without that and what it leaves empty."""
    if not path:
        assert value is not None
        return value
    step, *rest = path
    copied = Node(dict(node.value) if type(node.value) is dict else list(node.value), node.line, node.column)
    copied.keys = dict(node.keys)
    if not rest:
        if value is None:
            del copied.value[step]
        else:
            copied.value[step] = value
        return copied
    inner = with_value(node.value[step], tuple(rest), value)
    kept = inner.value.keys() - TOLERANCES if type(inner.value) is dict else inner.value
    if value is None and type(inner.value) in (dict, list) and not kept:
        del copied.value[step]
    elif value is None and type(inner.value) is dict and inner.value.keys() == {"do"}:
        copied.value[step] = inner.value["do"]
    else:
        copied.value[step] = inner
    return copied


def node_of(value: Any, like: Node) -> Node:
    """Return plain data as a tree, all in one place."""
    if type(value) is dict:
        node = Node({key: node_of(inner, like) for key, inner in value.items()}, like.line, like.column)
        node.keys = dict.fromkeys(value, (like.line, like.column))
        return node
    return Node([node_of(inner, like) for inner in value] if type(value) is list else value, like.line, like.column)


def closed(case: Node, kept: Path | None = None) -> Node:
    """Return a case without its open values, but for those of the check at the path that is `kept`.

    What was observed to be raised or warned stays, since what follows has come after it, and so do words.
    """
    found = {unit(path): (path, node) for path, node in open_values(case)}
    for whole, (path, node) in reversed(found.items()):
        own, what = content(node), asked(path)
        if kept is not None and whole == unit(kept):
            continue
        if what in WORDS:
            case = with_value(case, path, own or node_of([] if what == "rules" else UNKNOWN, node))
        elif what in ENDS and own is not None:
            case = with_value(case, path, own)
        else:
            case = with_value(case, whole, None)
    return case
