"""Reports as one self-contained HTML page, with figures and without scripts. All text from files is escaped."""

from __future__ import annotations

from importlib.resources import files

from herdner.base.extras import MissingExtra, check_extra, import_extra
from herdner.base.messages import format_count
from herdner.evaluation.report.figures import draw_figures
from herdner.evaluation.report.sections import cards, headline, sections, split_example
from herdner.evaluation.report.values import Report


def missing_packages() -> list[str]:
    """Return one line of text for each missing package without which an HTML report is incomplete.

    Returns:
        Lines for the warnings of the report.

    Raises:
        MissingExtra: Jinja2 is not installed, so there can be no HTML report.
    """
    check_extra("jinja2", "HTML reports need Jinja2")
    try:
        check_extra("matplotlib", "figures need Matplotlib")
    except MissingExtra as error:
        return [str(error)]
    return []


def to_html(report: Report) -> str:
    """Return a report as an HTML page.

    It has no figures if Matplotlib is not installed.

    Args:
        report: The report.

    Returns:
        One page.

    Raises:
        MissingExtra: Jinja2 is not installed.
    """
    jinja2 = import_extra("jinja2", "HTML reports need Jinja2")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = files("herdner.evaluation.report").joinpath("page.html").read_text(encoding="utf-8")
    try:
        figures = draw_figures(report)
    except ImportError:
        figures = {}
    return environment.from_string(page).render(
        headline=headline(report),
        cards=cards(report),
        sections=[(section, [(type(b).__name__, b) for b in section.blocks]) for section in sections(report, figures)],
        split_example=split_example,
        format_count=format_count,
    )
