"""The configuration of Sphinx: `python -m sphinx -W docs build/site`."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from conformance import __version__  # noqa: E402 - this checkout's, whatever is installed

project = "autograd-conformance"
author = "autograd-conformance contributors"
copyright = author  # noqa: A001 - Sphinx names it so
version = release = __version__

extensions = ["myst_parser", "generator.extension"]
exclude_patterns = ["generator"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4
myst_heading_slug_func = "docutils.nodes.make_id"

highlight_language = "text"
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "autograd-conformance"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
