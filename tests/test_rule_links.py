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
from loops import each
from places import ROOT
from shipped import rules

DOCUMENTATION = re.compile(r"https://docs\.pytorch\.org/(?:docs/stable|tutorials)/([\w./]+\.html)(?:#([\w.-]+))?")
SOURCE = re.compile(
    r"https://github\.com/(?:[\w-]+/[\w-]+)/(?:blob/[\w./-]+(?:#L[1-9]\d*)?|(?:issues|pull)/\d+|releases)"
)
PINNED = re.compile(r"https://github\.com/pytorch/pytorch/blob/v([\d.]+)/([\w./-]+?)(?:#L(\d+))?")
ANCHORS = set((ROOT / "tests" / "documentation_anchors.txt").read_text(encoding="utf-8").split())
LINKS = {rule.id: rule.link for rule in rules().values()}
WITHOUT_ANCHOR = 29  # links to a page as a whole: where one is made exact, this becomes less
UNPINNED = 287  # links to a file as it is today: likewise


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


def test_each_link_is_to_the_documentation_or_to_a_source() -> None:
    assert {
        name: link for name, link in LINKS.items() if not DOCUMENTATION.fullmatch(link) and not SOURCE.fullmatch(link)
    } == {}


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
        assert file is not None, link
        lines = file.read_text(encoding="utf-8").splitlines()
        seen += 1
        if match[3] and not re.search(r"\w{3}", lines[int(match[3]) - 1]):
            empty[name] = link
    assert empty == {}
    assert seen > 200 or not torch.__version__.startswith("2.13.0")


@each(
    "count, pattern",
    [
        (WITHOUT_ANCHOR, r"https://docs\.pytorch\.org/[^#]+"),
        (UNPINNED, r"https://github\.com/pytorch/pytorch/blob/main/.+"),
    ],
)
def test_links_that_prove_less_do_not_become_more(count: int, pattern: str) -> None:
    assert len([link for link in LINKS.values() if re.fullmatch(pattern, link)]) <= count
