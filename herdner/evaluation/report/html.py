"""A report as one self-contained page of HTML: figures inside, no script, everything from files escaped."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec

from herdner.evaluation.report.figures import figures
from herdner.evaluation.report.values import Report
from herdner.evaluation.report.words import cards, cut, headline, how_many_documents, sections

WITHOUT_JINJA = "a page of HTML needs Jinja2: pip install 'herdner[report]'"
WITHOUT_MATPLOTLIB = "figures need Matplotlib: pip install 'herdner[report]'"


def missing() -> list[str]:
    """What a page lacks as long as something is not installed: lines for the notes of a report.

    Raises ImportError where there cannot be a page at all.
    """
    if find_spec("jinja2") is None:
        raise ImportError(WITHOUT_JINJA)
    return [] if find_spec("matplotlib") else [WITHOUT_MATPLOTLIB]


def to_html(report: Report) -> str:
    """One page, by the template beside this file. Raises ImportError without Jinja2 (extra ``report``)."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise ImportError(WITHOUT_JINJA) from None
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(
        files("herdner.evaluation.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    try:
        drawn = figures(report)
    except ImportError:
        drawn = {}
    return template.render(
        headline=headline(report),
        cards=cards(report),
        sections=[(section, [(type(b).__name__, b) for b in section.blocks]) for section in sections(report, drawn)],
        cut=cut,
        how_many_documents=how_many_documents,
    )
