"""The links of rules: to an anchor that PyTorch's documentation has, or to a line of a file of a release.

Headings and labels of the documentation stand in `documentation_anchors.txt`, as its sources have them; the anchors of
functions and classes are their names in torch. Nothing is fetched.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import torch
from places import ROOT
from shipped import rules

DOCUMENTATION = re.compile(r"https://docs\.pytorch\.org/(?:docs/stable|tutorials)/([\w./]+\.html)(?:#([\w.-]+))?")
PINNED = re.compile(r"https://github\.com/pytorch/pytorch/blob/v(\d+\.\d+\.\d+)/([\w./-]+)#L([1-9]\d*)")
DISCUSSION = re.compile(r"https://github\.com/[\w-]+/[\w-]+/(?:(?:issues|pull)/\d+|releases)")
GUARD = "#if !defined(TORCH_STABLE_ONLY)"  # the line that the package has above those of a header
ANCHORS = set((ROOT / "tests" / "documentation_anchors.txt").read_text(encoding="utf-8").split())
LINKS = {rule.id: rule.link for rule in rules().values()}
WITHOUT_ANCHOR = 29  # links to a page as a whole: where one is made exact, this becomes less


def is_name_of_torch(name: str) -> bool:
    """Whether a dotted name is that of something in torch."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def file_in_torch(path: str) -> Path | None:
    """Return a file of PyTorch's repository as the installed package has it, if it has."""
    place = Path(torch.__file__).parent
    formulas = path.removeprefix("tools/autograd/")
    choices = [place.parent / path, place / "include" / path, place.parent / "torchgen/packaged/autograd" / formulas]
    return next((choice for choice in choices if choice.is_file()), None)


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file of the installed package, as PyTorch's repository has them."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return lines[1:] if lines[0].startswith(GUARD) else lines


def test_each_link_is_to_the_documentation_to_a_line_of_a_release_or_to_a_discussion() -> None:
    kinds = (DOCUMENTATION, PINNED, DISCUSSION)
    assert {name: link for name, link in LINKS.items() if not any(kind.fullmatch(link) for kind in kinds)} == {}


def test_a_header_is_read_as_the_repository_has_it() -> None:
    header = Path(torch.__file__).parent / "include/torch/csrc/autograd/variable.h"
    assert lines_of(header)[0] == "#pragma once"


def test_each_anchor_is_one_that_the_documentation_has() -> None:
    unknown = {}
    for name, link in LINKS.items():
        match = DOCUMENTATION.fullmatch(link)
        if match is None or match[2] is None:
            continue
        page, anchor = match.groups()
        own = page.removeprefix("generated/").removesuffix(".html")
        is_in_place = not page.startswith("generated/") or anchor == own or anchor.startswith(f"{own}.")
        if f"{page}#{anchor}" not in ANCHORS and not (is_in_place and is_name_of_torch(anchor)):
            unknown[name] = link
    assert unknown == {}


def test_the_page_of_one_function_is_linked_with_its_anchor() -> None:
    pages = {name: DOCUMENTATION.fullmatch(link) for name, link in LINKS.items()}
    assert [name for name, match in pages.items() if match and match[1].startswith("generated/") and not match[2]] == []


def test_a_line_of_the_release_that_is_installed_says_something() -> None:
    empty = {}
    seen = 0
    for name, link in LINKS.items():
        match = PINNED.fullmatch(link)
        if match is None or match[1] != torch.__version__.partition("+")[0]:
            continue
        file = file_in_torch(match[2])
        if file is None and match[2].endswith(".cpp"):  # the package has no sources of C++
            continue
        assert file is not None, link
        seen += 1
        if not re.search(r"\w{3}", lines_of(file)[int(match[3]) - 1]):
            empty[name] = link
    assert empty == {}
    assert seen > 200 or not torch.__version__.startswith("2.13.0")


def test_links_to_a_page_as_a_whole_do_not_become_more() -> None:
    assert len([link for link in LINKS.values() if re.fullmatch(r"https://docs\.pytorch\.org/[^#]+", link)]) <= (
        WITHOUT_ANCHOR
    )
