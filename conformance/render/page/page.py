"""The compatibility report as one self-contained HTML page.

The page holds an index, which it unpacks when it is opened; the details of the cases in parts, which it unpacks when
one of their cases is opened; what cases expect otherwise on other releases, for the changes between two; the background
of the pages of cases: where rules come from, and what scripts bring along; and what cases went through in the last
nights, if that was kept.
Each is deflated JSON in base64, which is small and can't contain markup.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from conformance import __version__
from conformance.model.case import Case
from conformance.model.report import CaseRecord, Report, Revision, now
from conformance.model.status import STATUSES
from conformance.render.page.details import NOTHING_KEPT, Keepers, details_of, inputs_of
from conformance.render.page.expected import expected_of
from conformance.render.page.matrix import Matrix, backgrounds_of, index_of, matrix_of
from conformance.render.page.over_time import over_time
from conformance.render.page.tables import tables
from conformance.render.script.script import Script, snippets_for
from conformance.render.visible import visible
from conformance.results.nights import Nights
from conformance.results.store import encoded

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = "dom view data search find matrix form changes graph nights case build verdict main".split()
CHUNK = 128  # cases in a part: those of one file are alike, and compress well
LEVEL = 5  # of compression: higher ones take longer for little gain


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What returns the script of a revision of a case that the suite has, and the case itself, or None."""

    script_of: Callable[[Revision], Script | None] = lambda _: None
    case_of: Callable[[Revision], Case | None] = lambda _: None


NO_SUITE = Suite()


def page_of(  # noqa: PLR0913 - each says something else that the page tells
    reports: Sequence[Report],
    skipped: Sequence[str] = (),
    suite: Suite = NO_SUITE,
    *,
    own: Report | None = None,
    kept: Keepers = NOTHING_KEPT,
    nights: Sequence[Nights] = (),
) -> str:
    """Return the page of `reports`.

    `skipped` holds the reasons why other reports were left out; `own` is the report of the run that has just ended;
    `kept` returns what may be known from an earlier page; `nights` are records of build lines.
    """
    matrix = matrix_of(reports)
    last = 1 + -(-len(matrix.cases) // CHUNK)
    past = over_time(matrix, nights)
    places = {"chunk": CHUNK, "last": last, "background": last + 1, "nights": last + 2 if past else 0}
    index = {**index_of(matrix, own), **tables(), **places}
    parts = [packed(index)]
    releases = [report.build.torch for report in matrix.reports]
    for at in range(0, len(matrix.cases), CHUNK):
        chunk = [(matrix, each, suite.script_of((each.id, each.digest))) for each in matrix.cases[at : at + CHUNK]]
        inputs = encoded([releases, *(inputs_of(*each) for each in chunk)])
        parts.append(kept.part(inputs, partial(part_of, chunk, suite, kept)))
    parts.append(packed(expected_of(matrix, lambda case: suite.case_of((case.id, case.digest)))))
    parts.append(packed({"rules": backgrounds_of(matrix), "snippets": snippets_for(matrix.reports)}))
    if past:
        parts.append(packed(past))
    style, script = assets()
    return template().render(
        version=__version__, made=now(), cases=len(matrix.cases), builds=index["builds"], statuses=STATUSES,
        skipped=skipped, parts=parts,
        style=style, script=script, style_digest=csp_digest(style), script_digest=csp_digest(script),
    )  # fmt: skip


def part_of(chunk: Sequence[tuple[Matrix, CaseRecord, Script | None]], suite: Suite, kept: Keepers) -> str:
    return packed([details_of(*each, suite.case_of((each[1].id, each[1].digest)), kept) for each in chunk])


def packed(value: Any) -> str:
    """Return `value` as deflated JSON in base64."""
    return base64.b64encode(zlib.compress(encoded(value).encode(), LEVEL)).decode("ascii")


def csp_digest(text: str) -> str:
    """Return the digest by which the Content-Security-Policy of the page allows a script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


@cache
def template() -> Template:
    """Return the compiled template of the page."""
    loader = FileSystemLoader(TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, finalize=made_visible, trim_blocks=True
    )
    return environment.get_template("page.html.j2")


def made_visible(value: Any) -> Any:
    return visible(value) if type(value) is str else value


@cache
def assets() -> tuple[Markup, Markup]:
    """Return the style and script of the page, unescaped."""
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    script = '"use strict";\n' + "\n".join((TEMPLATES / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return Markup(style), Markup(script)  # noqa: S704 - files of this package
