"""Finds links of built pages that lead nowhere: to a page that there is not, or to an anchor that a page has not."""

import html
import re
from pathlib import Path
from urllib.parse import unquote

ID = re.compile(r'\s(?:id|name)="([^"]+)"')
HREF = re.compile(r'<a\b[^>]*?\shref="([^"]*)"')
OUTWARD = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def broken_links(folder: Path, skipped: str = "") -> list[str]:
    """Return a line for each link between the pages below a folder that leads nowhere.

    What stands in the folder `skipped` is not read: pages that bring their own anchors when they are opened.
    """
    pages = {path.resolve(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.html"))}
    own = folder.resolve()
    read = {path: text for path, text in pages.items() if not skipped or path.relative_to(own).parts[0] != skipped}
    anchors = {path: {html.unescape(name) for name in ID.findall(text)} for path, text in read.items()}
    return [
        f"{path.relative_to(own)}: {target}"
        for path, text in read.items()
        for target in dict.fromkeys(map(html.unescape, HREF.findall(text)))
        if not leads_somewhere(path, target, anchors)
    ]


def leads_somewhere(page: Path, target: str, anchors: dict[Path, set[str]]) -> bool:
    if OUTWARD.match(target):
        return True
    name, _, fragment = target.partition("#")
    place = (page.parent / unquote(name)).resolve() if name else page
    if place not in anchors:
        return place.is_file()
    return fragment in ("", "top") or unquote(fragment) in anchors[place]
