"""Reports on predicted names: what they say as values, in words and tables, and as Markdown, JSON and HTML.

`make_report` measures predictions that `lay` has laid on the gold documents; `WRITERS` turn a report into text.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from herdner.evaluation.report.html import to_html
from herdner.evaluation.report.markdown import to_markdown
from herdner.evaluation.report.predictions import lay
from herdner.evaluation.report.values import Options, Prediction, Report, make_report

__all__ = ["WRITERS", "Options", "Prediction", "Report", "lay", "make_report", "to_html", "to_json", "to_markdown"]


def to_json(report: Report) -> str:
    """One object; `Report.to_dict` says what it holds."""
    return json.dumps(report.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


WRITERS: dict[str, Callable[[Report], str]] = {"md": to_markdown, "json": to_json, "html": to_html}
"""Formats by the ending of their files."""
