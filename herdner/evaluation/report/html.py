"""A report as one self-contained page of HTML: figures inside, no script, everything from files escaped."""

from __future__ import annotations

from importlib.resources import files

from herdner.base.extras import MissingExtra, check_extra, import_extra
from herdner.evaluation.report.figures import figures
from herdner.evaluation.report.values import Report
from herdner.evaluation.report.words import cards, cut, headline, how_many_documents, sections


def missing() -> list[str]:
    """What a page lacks as long as something is not installed: lines for the notes of a report.

    Raises ImportError where there cannot be a page at all.
    """
    check_extra("jinja2", "an HTML report needs Jinja2")
    try:
        check_extra("matplotlib", "figures need Matplotlib")
    except MissingExtra as error:
        return [str(error)]
    return []


def to_html(report: Report) -> str:
    """One page, by the template beside this file. Raises ImportError without Jinja2 (extra ``evaluate``)."""
    jinja2 = import_extra("jinja2", "an HTML report needs Jinja2")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
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
