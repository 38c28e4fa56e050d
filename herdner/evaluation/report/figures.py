"""Figures of a report, drawn by Matplotlib as SVG that can be embedded in a page."""

# pyright: reportUnknownMemberType=false
# Matplotlib does not annotate its keyword arguments.

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from herdner.evaluation.errors import MATCH_KINDS
from herdner.evaluation.report.sections import report_labels
from herdner.evaluation.report.values import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GOLD = "#b08d2e"
SYSTEMS = ("#8a97a8", "#1f5fa8", "#2d8a6a", "#a8477c", "#6b5aa8", "#c46a2d")
KIND_COLOURS = ("#c9b458", "#6f9fd8", "#8f7bc4", "#d9776a", "#7fb78f")
INK, SOFT = "#20262e", "#9aa3ad"
_MAX_NAME = 28  # characters of a prediction's name
_STYLE: Any = {
    "font.family": ["sans-serif"], "font.sans-serif": ["Liberation Sans", "Arial", "Helvetica", "DejaVu Sans"],
    "font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": SOFT, "xtick.color": INK,
    "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": "#e4e7ea", "legend.frameon": False, "svg.hashsalt": "herdner",
    "text.parse_math": False,
}  # fmt: skip


def draw_figures(report: Report) -> dict[str, str]:
    """Draw the figures of a report as SVG.

    Args:
        report: The report.

    Returns:
        SVG by name: "f1", "consistency", "kinds" and, if some prediction has confidences, "calibration".

    Raises:
        ImportError: Matplotlib is not installed.
    """
    import matplotlib

    n, n_labels = len(report.systems), len(report_labels(report))
    with matplotlib.rc_context(_STYLE):
        figures = {
            "f1": _svg(report, _f1, 0.34 * (max(1, n_labels) + 1) * (n + 0.8) ** 0.8 + 0.8),
            "consistency": _svg(report, _consistency, 0.3 * 2 * (n + 1) + 1.2),
            "kinds": _svg(report, _kinds, 0.42 * n + 1.1),
        }
        if any(system.calibration for system in report.systems):
            figures["calibration"] = _svg(report, _calibration, 4.2, width=5.0)
    return figures


def _svg(report: Report, draw: Callable[[Axes, Report], None], height: float, width: float = 8.2) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, max(1.8, height)), layout="constrained")
    FigureCanvasSVG(figure)
    draw(figure.add_subplot(), report)
    stream = io.StringIO()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(stream, format="svg", transparent=True, metadata=metadata)
    svg = stream.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)


def _short(name: str) -> str:
    """Return the name of a prediction, shortened so that the bars of the figure have enough room."""
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


def _colour(i: int, report: Report) -> str:
    """Return the colour of the i-th prediction.

    If there is only one prediction, its colour is that of the second of several.
    """
    return SYSTEMS[1] if len(report.systems) == 1 else SYSTEMS[i % len(SYSTEMS)]


def _bar_positions(i: int, n: int, n_groups: int) -> list[float]:
    """Return the position of the i-th of n bars in each group of bars.

    The distance between groups is 1, and the width of a bar 0.8 / n.
    """
    return [group + (i - (n - 1) / 2) * 0.8 / n for group in range(n_groups)]


def _finish(ax: Axes, names: Sequence[str], xlabel: str, n_columns: int) -> None:
    """Label the groups of bars and the x-axis, put the first group at the top, and draw the legend above the bars."""
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(xlabel)
    ax.grid(visible=False, axis="y")
    if n_columns > 1:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=n_columns)


def _f1(ax: Axes, report: Report) -> None:
    """Draw the F1 of each label and the micro F1.

    The whisker of the micro F1 is the bootstrap interval.
    """
    n, labels = len(report.systems), report_labels(report)
    for i, system in enumerate(report.systems):
        values = {row.label: row.f1 for row in system.scores.per_label}
        shares = [100 * values.get(label, 0.0) for label in labels] + [100 * system.scores.micro.f1]
        positions = _bar_positions(i, n, len(shares))
        ax.barh(positions, shares, 0.736 / n, color=_colour(i, report), label=_short(system.name))
        ends = list(shares)
        if (interval := system.scores.interval) is not None:
            low, high = 100 * interval.low, 100 * interval.high
            ax.hlines(positions[-1], low, high, color=INK, linewidth=1.4)
            ends[-1] = max(ends[-1], high)
        for position, share, end in zip(positions, shares, ends, strict=True):
            ax.text(end + 0.8, position, f"{share:.1f}", va="center", fontsize=8.5)
    ax.set_xlim(0, 108)
    ax.set_xticks(range(0, 101, 20))
    _finish(ax, [*labels, "micro"], "F1", min(n, 4))


def _consistency(ax: Axes, report: Report) -> None:
    rows = [("gold", report.gold_consistency, GOLD)]
    rows += [(system.name, system.consistency, _colour(i, report)) for i, system in enumerate(report.systems)]
    most = 0.0
    for i, (name, names, colour) in enumerate(rows):
        shares = [100 * names.share_differing, 100 * names.share_partly_missed]
        counts = [(names.n_differing, names.n_repeated), (names.n_partly_missed, names.n_occurring)]
        positions = _bar_positions(i, len(rows), 2)
        ax.barh(positions, shares, 0.72 / len(rows), color=colour, label=_short(name))
        most = max(most, *shares)
        for position, share, (part, whole) in zip(positions, shares, counts, strict=True):
            ax.annotate(
                f"{share:.1f} %  ({part:,} of {whole:,})", (share, position), (5, 0), textcoords="offset points",
                va="center", fontsize=8.5,
            )  # fmt: skip
    ax.set_xlim(0, max(1.0, most * 1.35))
    _finish(ax, ["several labels", "partly missed"], "% of names", min(len(rows), 5))


def _kinds(ax: Axes, report: Report) -> None:
    """Draw one stacked bar for each prediction; the lengths of its parts are the numbers of errors of each kind."""
    counts = [system.confusion.kinds() for system in report.systems]
    left = [0] * len(counts)
    widest = max(1, *(sum(kinds.values()) - kinds["correct"] for kinds in counts))
    for kind, colour in zip(MATCH_KINDS[1:], KIND_COLOURS, strict=True):
        sizes = [kinds[kind] for kinds in counts]
        ax.barh(range(len(sizes)), sizes, 0.66, left=left, color=colour, label=kind)
        for position, (begin, size) in enumerate(zip(left, sizes, strict=True)):
            if size > 0.03 * widest:
                ax.text(begin + size / 2, position, f"{size:,}", ha="center", va="center", fontsize=8.5)
        left = [a + b for a, b in zip(left, sizes, strict=True)]
    _finish(ax, [_short(system.name) for system in report.systems], "errors", 5)


def _calibration(ax: Axes, report: Report) -> None:
    ax.plot([0, 1], [0, 1], color=SOFT, linestyle=":", linewidth=1)
    for i, system in enumerate(report.systems):
        if (result := system.calibration) is not None:
            name, colour = _short(system.name), _colour(i, report)
            ax.plot(result.confidence, result.precision, "o-", markersize=4, color=colour, label=name)
    ax.set(xlabel="mean confidence", ylabel="precision", ylim=(-0.02, 1.02), xlim=(-0.02, 1.02), aspect="equal")
    ax.legend(loc="upper left")
