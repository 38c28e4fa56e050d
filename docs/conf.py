"""Settings of Sphinx, which turns the pages and the docstrings of herdner into a site in out/site:

python -m sphinx -W --keep-going -c docs docs/pages out/site      (pip install '.[docs]')
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Generic, TypeVar

import numpy.typing
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


class ArrayLike:
    """What annotations show, instead of the union that it stands for."""

    __module__ = "numpy.typing"


class NDArray(Generic[TypeVar("Number")]):
    """What annotations show, instead of the nested types that it stands for."""

    __module__ = "numpy.typing"


numpy.typing.ArrayLike, numpy.typing.NDArray = ArrayLike, NDArray
sys.path.insert(0, str(Path(__file__).parent))
from generated import PAGES  # noqa: E402

import herdner  # noqa: E402

project = "herdner"
copyright = "the contributors of herdner"
version = release = herdner.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
smartquotes_action = "D"  # dashes; quotes stay as they are, since most are of strings
nitpicky = True
# Annotations speak of types of NumPy and of Python, and of helpers that have no entry; all other names must be known.
nitpick_ignore_regex = [("py:class", ".*"), ("py:obj", r"(dataclasses|jax|numpy|scipy|spacy|typing)\b.*")]

# Pages
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# Docstrings: Google style; a name between single backticks is a link to its entry.
default_role = "py:obj"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Seed", "Graph")}
autodoc_mock_imports = ["presidio_analyzer", "transformers"]
napoleon_numpy_docstring = False
napoleon_attr_annotations = False  # the signature of the class has them
napoleon_use_rtype = False  # "float64[n, K]: ..." states a shape, whose dimensions are not names of classes
add_module_names = False
python_maximum_signature_line_length = 100

# The site: no fonts or scripts of other hosts, and pages that open from a folder too.
html_theme = "furo"
html_title = "herdner"
html_show_sphinx = False
html_copy_source = False


def offer_public_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Makes the entry of what a package offers known under the package's name too, as in `herdner.Tagger`."""
    known = env.domains.python_domain.objects
    for path, entry in list(known.items()):
        home, _, name = path.rpartition(".")
        value, package = getattr(sys.modules.get(home), name, None), home.rpartition(".")[0]
        while value is not None and package:
            offered = sys.modules[package]
            if name in getattr(offered, "__all__", ()) and getattr(offered, name) is value:
                known.setdefault(f"{package}.{name}", entry._replace(aliased=True))
            package = package.rpartition(".")[0]


def resolve_anywhere(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    """The entry of a name that is written without its module."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True
    place, role, name = node.get("refdoc", env.docname), node["reftype"], node["reftarget"]
    return env.domains.python_domain.resolve_xref(env, place, app.builder, role, name, node, content)


def no_field_numbers(app: Sphinx, kind: str, name: str, item: object, skip: bool, options: object) -> bool | None:
    """Leaves out the fields of named tuples, of which Python says no more than their numbers."""
    return True if type(item).__name__ == "_tuplegetter" else None


def no_type_before_colon(app: Sphinx, kind: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Lets "float64[n]: the weights" be the text of a property, where Napoleon would read a type and a text."""
    if kind in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """Adds what is generated to a page, a heading above each module, and the name of a file above its block."""
    if page in PAGES:
        source[0] += PAGES[page]()
    heading = r"```\n\n## `\1`\n\n```{eval-rst}\n\g<0>"
    source[0] = re.sub(r"^\.\. automodule:: (\S+)$", heading, source[0], flags=re.M).replace("```{eval-rst}\n```\n", "")
    source[0] = re.sub(r'^```(\w+) title="([^"]+)"$', r"```{code-block} \1\n:caption: \2", source[0], flags=re.M)


# What axe misses in the theme's pages: captions are headings of no level, code and tables that scroll are out of reach
# of the keys, two parts at the sides have no name, corners of tables are headers of nothing, the page of the search has
# no heading, and parameters on lines of their own are a list of definitions without a term.
_ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}
_PARAMETERS = re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*</dd>\n)+)</dl>')


def _parameters(found: re.Match[str]) -> str:
    """The parameters of a signature, a line each."""
    return found[1].replace("<dd>", '<span style="display: block; margin-left: 2rem">').replace("</dd>", "</span>")


def accessible(app: Sphinx, error: Exception | None) -> None:
    """Completes the pages, which come from templates of the theme."""
    for page in [] if error else Path(app.outdir).rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        for there, wanted in _ACCESSIBLE.items():
            html = html.replace(there, wanted)
        html = _PARAMETERS.sub(_parameters, html)
        page.write_text(html, encoding="utf-8", newline="\n")


def setup(app: Sphinx) -> None:
    app.connect("env-updated", offer_public_names)
    app.connect("missing-reference", resolve_anywhere)
    app.connect("autodoc-skip-member", no_field_numbers)
    app.connect("autodoc-process-docstring", no_type_before_colon, priority=100)  # before Napoleon
    app.connect("source-read", prepare)
    app.connect("build-finished", accessible)
