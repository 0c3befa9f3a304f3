"""The settings of the site that Sphinx makes of these pages; `make docs` builds it.

Pages stay plain Markdown that reads well in the repository.
Whatever else the site needs, text from the code and from files elsewhere, is put in while a page is read
(`scripts/docs.py`), and docstrings, which are Markdown too, are rewritten for Sphinx here.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "src"))  # the pages tell of this code, whatever is installed
_pages = runpy.run_path(str(TOP / "scripts/docs.py"))

project = "Anabranch"
copyright = "the authors of Anabranch"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]  # no lexer knows our windows, versions and dots

smartquotes = False  # quotes are often those of JSON

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "Anabranch"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
templates_path: list[str] = []


def _complete(app: Any, page: str, source: list[str]) -> None:
    """Complete a page when it is read."""
    source[0] = _pages["completed"](f"{page}.md", source[0])


def _docstring(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Make what Sphinx reads of a docstring: its code is marked as in Markdown, and its examples are indented."""
    text = "\n".join(lines)
    text = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", text)
    text = re.sub(r":\n\n(?= {4})", "::\n\n", text)
    lines[:] = text.split("\n")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _complete)
    app.connect("autodoc-process-docstring", _docstring)
