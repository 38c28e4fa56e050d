"""Reports on predicted entities, as values and as Markdown, JSON or HTML.

`make_report` evaluates predictions that `herdner.evaluation.align.align_predictions` has aligned with the gold
documents. `WRITERS` has the functions that turn a report into text.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from herdner.evaluation.report.html import to_html
from herdner.evaluation.report.markdown import to_markdown
from herdner.evaluation.report.values import Prediction, Report, ReportSettings, make_report

__all__ = ["WRITERS", "Prediction", "Report", "ReportSettings", "make_report", "to_html", "to_json", "to_markdown"]


def to_json(report: Report) -> str:
    """Return an evaluation report as text that contains one JSON object.

    Args:
        report: The report.

    Returns:
        The values of `Report.to_dict`.
    """
    return json.dumps(report.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


WRITERS: dict[str, Callable[[Report], str]] = {"md": to_markdown, "json": to_json, "html": to_html}
"""Functions that turn a report into text, by file extension."""
