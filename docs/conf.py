"""Settings of Sphinx, which builds the site from the pages and docstrings of herdner.

pip install '.[test]' && python -m sphinx -W --keep-going -c docs docs/pages out/site
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
    """Name that annotations show instead of NumPy's union of types."""

    __module__ = "numpy.typing"


class NDArray(Generic[TypeVar("Number")]):
    """Name that annotations show instead of NumPy's nested types."""

    __module__ = "numpy.typing"


numpy.typing.ArrayLike, numpy.typing.NDArray = ArrayLike, NDArray
sys.path.insert(0, str(Path(__file__).parent))
from generated import PAGES  # noqa: E402

import herdner  # noqa: E402

project = "herdner"
copyright = "the contributors of herdner"
version = release = herdner.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
smartquotes_action = "D"  # convert dashes only; most quotes belong to strings
nitpicky = True
# Annotations name types of NumPy and Python, and helpers without an entry. All other names must have an entry.
nitpick_ignore_regex = [
    ("py:class", ".*"),
    ("py:exc", "NotFittedError"),  # of scikit-learn
    ("py:obj", r"(dataclasses|jax|numpy|scipy|spacy|typing)\b.*"),
]

# Pages
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# Docstrings have Google style. A name between single backticks becomes a link to its entry.
default_role = "py:obj"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Seed", "Graph")}
autodoc_mock_imports = ["presidio_analyzer", "transformers"]
napoleon_numpy_docstring = False
napoleon_attr_annotations = False  # the signature of the class contains them
napoleon_use_rtype = False  # "float64[n, K]: ..." states a shape, whose dimensions are not names of classes
add_module_names = False
python_maximum_signature_line_length = 100

# The site loads no fonts or scripts from other hosts. Its pages can also be opened from a folder.
html_theme = "furo"
html_title = "herdner"
html_show_sphinx = False
html_copy_source = False


def add_public_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Add an alias for each name that a package exports, such as `herdner.Tagger` for `herdner.ner.tagger.Tagger`."""
    entries = env.domains.python_domain.objects
    for path, entry in list(entries.items()):
        module, _, name = path.rpartition(".")
        value, parent = getattr(sys.modules.get(module), name, None), module.rpartition(".")[0]
        while value is not None and parent:
            package = sys.modules[parent]
            if name in getattr(package, "__all__", ()) and getattr(package, name) is value:
                entries.setdefault(f"{parent}.{name}", entry._replace(aliased=True))
            parent = parent.rpartition(".")[0]


def resolve_short_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    """Return a link to the entry of a name that is written without its module."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True
    page, role, name = node.get("refdoc", env.docname), node["reftype"], node["reftarget"]
    return env.domains.python_domain.resolve_xref(env, page, app.builder, role, name, node, content)


def skip_generated(app: Sphinx, kind: str, name: str, item: object, skip: bool, options: object) -> bool | None:
    """Skip what is generated: fields of named tuples, and the methods ``set_*_request`` of scikit-learn."""
    is_request = name.startswith("set_") and name.endswith("_request")
    return True if is_request or type(item).__name__ == "_tuplegetter" else None


def keep_colons(app: Sphinx, kind: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Prevent Napoleon from reading "float64[n]: the weights" in a property as a type and a description."""
    if kind in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """Add generated text to a page, a heading to each module, and a caption to each block with a file name."""
    if page in PAGES:
        source[0] += PAGES[page]()
    heading = r"```\n\n## `\1`\n\n```{eval-rst}\n\g<0>"
    source[0] = re.sub(r"^\.\. automodule:: (\S+)$", heading, source[0], flags=re.M).replace("```{eval-rst}\n```\n", "")
    source[0] = re.sub(r'^```(\w+) title="([^"]+)"$', r"```{code-block} \1\n:caption: \2", source[0], flags=re.M)


# Corrections of the theme's HTML for axe, an accessibility checker. Without them captions are headings without a level,
# the keyboard cannot scroll code and tables, the two sidebars have no name, empty corner cells of tables are headers,
# the search page has no heading, and parameters on separate lines are a definition list without terms.
_REPLACEMENTS = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}
_PARAMETERS = re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*</dd>\n)+)</dl>')


def _parameters(match: re.Match[str]) -> str:
    """Return the parameters of a signature as one block each."""
    return match[1].replace("<dd>", '<span style="display: block; margin-left: 2rem">').replace("</dd>", "</span>")


def correct_html(app: Sphinx, error: Exception | None) -> None:
    """Make the theme's pages accessible."""
    for page in [] if error else Path(app.outdir).rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        for old, new in _REPLACEMENTS.items():
            html = html.replace(old, new)
        html = _PARAMETERS.sub(_parameters, html)
        page.write_text(html, encoding="utf-8", newline="\n")


def setup(app: Sphinx) -> None:
    """Connect the functions of this file to Sphinx's events."""
    app.connect("env-updated", add_public_names)
    app.connect("missing-reference", resolve_short_name)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("autodoc-process-docstring", keep_colons, priority=100)  # before Napoleon
    app.connect("source-read", prepare)
    app.connect("build-finished", correct_html)
