"""Finds the names that code in a case file can use: those that the case has set, and those of the vocabulary."""

from __future__ import annotations

import re

from conformance.language.vocabulary import ATTRIBUTES, NAMES, NAMESPACES, ROOTS, inner

NAME = r"[A-Za-z_]\w*"
WRITTEN = re.compile(rf"((?:{NAME}\.)*|[\])}}'\"]\.)(\w*)$")  # a name, and what stands before its dot: torch.nn, )
ENTRY = re.compile(r"^ *- \{?(?:id|rules): ", re.MULTILINE)
TARGETS = rf"{NAME}(?:\s*,\s*{NAME})*"
START = r"(?:^\s*(?:-\s+)*(?:do:\s*)?[\"']?|;\s*)"
SET = re.compile(
    rf"{START}(?P<set>{TARGETS})\s*=(?!=)|[\[{{,]\s+(?P<listed>{TARGETS})\s+=\s|"
    rf"\bfor (?P<each>{TARGETS}) in\b|\bas (?P<held>{NAME})|"
    rf"^\s*(?:-\s+)*(?:def|class) (?P<made>{NAME})|^\s*inputs: *\{{(?P<inputs>[^}}]*)",
    re.MULTILINE,
)


def set_before(text: str) -> list[str]:
    """Return the names that the last case of a text has set, in their order."""
    starts = [found.start() for found in ENTRY.finditer(text)]
    found: dict[str, None] = {}
    for each in SET.finditer(text, starts[-1] if starts else 0):
        words = each["set"] or each["listed"] or each["each"] or each["held"] or each["made"]
        given = words or " ".join(re.findall(rf"({NAME}):", each["inputs"]))
        found |= dict.fromkeys(re.findall(NAME, given))
    return list(found)


def namespace_of(path: str) -> str:
    """Return the namespace that a path of names leads to, such as nn.functional, or nothing if it leads to none."""
    first, *others = path.split(".")
    space = "torch" if first == "torch" else ROOTS.get(first)
    for name in others:
        space = inner(space, name) if space else None
    return space if space in NAMESPACES else ""


def members(path: str) -> dict[str, str]:
    """Return the names that can follow a path of names and a dot, each with what is to be said of it."""
    space = namespace_of(path)
    if not space:
        return {name: told(name, "an attribute", since) for name, since in ATTRIBUTES.items()}
    own = {name: told(name, f"in {space}", since) for name, since in NAMESPACES[space].items()}
    below = {each.rpartition(".")[2] for each in NAMESPACES}
    return own | {name: f"{name}: a namespace" for name in below if inner(space, name)}


def globals_() -> dict[str, str]:
    """Return the names that a case can use without anything before them, each with what is to be said of it."""
    return {name: of_name(name) for name in NAMES} | {"torch": "torch: a namespace"}


def of_name(name: str) -> str:
    where = f"a namespace, {ROOTS[name]}" if name in ROOTS else "in torch" if name in NAMESPACES["torch"] else ""
    return told(name, where or "in the language of cases", NAMES[name])


def told(name: str, where: str, since: str) -> str:
    return f"{name}: {where}, from torch {since} on"


def written(text: str) -> tuple[str, str]:
    """Return the name that code ends with, behind what stands before its dot, such as nn and Linear."""
    found = WRITTEN.search(text)
    return (found[1][:-1], found[2]) if found else ("", "")


def meaning(text: str) -> str:
    """Return what the vocabulary says of the name that code ends with, or nothing."""
    owner, name = written(text)
    return (members(owner) if owner else globals_()).get(name, "")
