"""Makes pages of sections of other documents, and turns links out of the documentation into links to the repository."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.version import Version

from generator.rendering import rendered

LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^()\s#]*)(#[^()\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.*)", re.MULTILINE)
ADDRESS = re.compile(r'^(Repository|Documentation) = "(https://[^"]+)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A page that consists of sections of a document, by their headings; none stand for the whole document."""

    page: str
    source: str
    headings: Sequence[str] = ()
    title: str = ""


EXCERPTS = (
    Excerpt(
        page="cases/first-case", source="CONTRIBUTING.md", headings=["Your first case, from an empty file to green"]
    ),
    Excerpt(
        page="cases/language", source="CONTRIBUTING.md", title="How cases are written",
        headings=["The language of steps", "Parametrized cases"],
    ),
    Excerpt(page="cases/ways", source="CONTRIBUTING.md", headings=["Spellings that must agree"]),
    Excerpt(page="cases/operations", source="CONTRIBUTING.md", headings=["Operations at their hard points"]),
    Excerpt(
        page="running/ways", source="README.md", title="Run it", headings=["Ways to run it", "The matrix of releases"]
    ),
    Excerpt(page="running/page", source="README.md", title="Read what it says", headings=["What it says", "The page"]),
    Excerpt(
        page="running/how", source="README.md", title="How a run works", headings=["How it works", "What it costs"]
    ),
)  # fmt: skip
GUIDES = "reports/published/upgrading"


def excerpt_pages(root: Path) -> dict[str, str]:
    """Return the pages that are made of sections, and of the published guides, by their names."""
    pages = {each.page: excerpt_of((root / each.source).read_text(encoding="utf-8"), each) for each in EXCERPTS}
    sources = {each.page: each.source for each in EXCERPTS}
    guides = {f"upgrading/{path.stem}": path for path in (root / GUIDES).glob("*.md")}
    for name, guide in guides.items():
        pages[name], sources[name] = guide.read_text(encoding="utf-8"), f"{GUIDES}/{guide.name}"
    addresses = addresses_of(root)
    found = {name: relinked(text, sources[name], f"docs/{name}.md", root, addresses) for name, text in pages.items()}
    ordered = sorted((path.stem.removeprefix("torch-") for path in guides.values()), key=Version, reverse=True)
    return {**found, "upgrading/index": rendered("guides.md.j2", {"releases": ordered})}


def excerpt_of(text: str, excerpt: Excerpt) -> str:
    """Return the page of an excerpt: its sections below its title, or as one page where it has no title of its own."""
    sections = [section_of(text, heading) for heading in excerpt.headings]
    if excerpt.title:
        return "\n".join([f"# {excerpt.title}\n", *sections])
    return outside_code("\n".join(sections), lambda part: HEADING.sub(lambda found: f"{found[1][1:]} {found[2]}", part))


def section_of(text: str, heading: str) -> str:
    """Return a section of a document with its heading, up to the next one of its level; raise ValueError without."""
    blanked = CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)  # a comment in code is no heading
    found = [(match.start(), len(match[1]), text[match.start(2) : match.end(2)]) for match in HEADING.finditer(blanked)]
    for number, (start, level, name) in enumerate(found):
        if name == heading:
            ends = (place for place, other, _ in found[number + 1 :] if other <= level)
            return text[start : next(ends, len(text))].rstrip() + "\n"
    raise ValueError(f"there is no section {heading!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the repository and this documentation are published."""

    repository: str
    site: str


def addresses_of(root: Path) -> Addresses:
    """Return the addresses, as the package has them."""
    found = dict(ADDRESS.findall((root / "pyproject.toml").read_text(encoding="utf-8")))
    return Addresses(repository=found["Repository"], site=found["Documentation"])


def relinked(text: str, source: str, page: str, root: Path, addresses: Addresses) -> str:
    """Return a document of the repository as a page of the documentation: its links lead to pages or the repository.

    Links to the published documentation, by which the repository's documents name generated pages, stay within it.
    """

    def link(found: re.Match[str]) -> str:
        target, fragment = found[2], found[3] or ""
        if target.startswith(addresses.site):
            return f"{found[1]}({relative(page_at(target.removeprefix(addresses.site)), page)}{fragment})"
        if not target or ":" in target:
            return found[0]
        path = normal(PurePosixPath(source).parent / target)
        if path.startswith("docs/") and (root / path).is_file():
            return f"{found[1]}({relative(path, page)}{fragment})"
        kind = "tree" if (root / path).is_dir() else "blob"
        return f"{found[1]}({addresses.repository}/{kind}/main/{path}{fragment})"

    return outside_code(text, lambda part: LINK.sub(link, part))


def page_at(path: str) -> str:
    """Return the source of a page of the site: `book/leaves.html` is `docs/book/leaves.md`."""
    name = f"{path}index.html" if path.endswith("/") or not path else path
    return f"docs/{name.removesuffix('.html')}.md"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return text whose parts outside of code are changed."""
    return "".join(part if at % 2 else change(part) for at, part in enumerate(CODE.split(text)))


def normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def relative(path: str, page: str) -> str:
    """Return the way from a page to a file."""
    here = PurePosixPath(page).parent.parts
    there = PurePosixPath(path).parts
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    return "/".join([*[".."] * (len(here) - common), *there[common:]])
