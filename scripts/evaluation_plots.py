"""The figures of a report, as SVG that stands inside a page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evaluation_report import Report

from herdner.evaluation.mistakes import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GOLD = "#b08d2e"
SYSTEMS = ("#8a97a8", "#1f5fa8", "#2d8a6a", "#a8477c", "#6b5aa8", "#c46a2d")
KIND_COLOURS = ("#c9b458", "#6f9fd8", "#8f7bc4", "#d9776a", "#7fb78f")
INK = "#20262e"
_WIDEST = 28  # characters of a name
_STYLE = {
    "font.family": ["sans-serif"], "font.sans-serif": ["Liberation Sans", "Arial", "Helvetica", "DejaVu Sans"],
    "font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": "#9aa3ad", "xtick.color": INK,
    "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": "#e4e7ea", "legend.frameon": False, "svg.hashsalt": "herdner",
    "text.parse_math": False,
}  # fmt: skip


def figures(report: Report) -> tuple[dict[str, str], str | None]:
    """SVG by name, and what is missing, if anything is."""
    try:
        import matplotlib
    except ImportError:
        return {}, "figures need Matplotlib: pip install 'herdner[plot]'"
    drawn: dict[str, str] = {}
    n = len(report.systems)
    with matplotlib.rc_context(_STYLE):
        n_classes = max(1, len({row.label for system in report.systems for row in system.scores.classes}))
        drawn["f1"] = _svg(lambda ax: _f1(ax, report), 0.34 * (n_classes + 1) * (n + 0.8) ** 0.8 + 0.8)
        drawn["consistency"] = _svg(lambda ax: _consistency(ax, report), 0.3 * 2 * (n + 1) + 1.2)
        drawn["kinds"] = _svg(lambda ax: _kinds(ax, report), 0.42 * n + 1.1)
        if any(system.calibration for system in report.systems):
            drawn["calibration"] = _svg(lambda ax: _calibration(ax, report), 4.2, width=5.0)
    return drawn, None


def _svg(draw: Callable[[Axes], Any], height: float, width: float = 8.2) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, max(1.8, height)), layout="constrained")
    FigureCanvasSVG(figure)
    draw(figure.add_subplot())
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = stream.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)


def _short(name: str) -> str:
    """A name that leaves room for the bars beside it."""
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}\u2026"


def _colour(i: int, n: int) -> str:
    """The last of two systems is the one to look at; a single one too."""
    return SYSTEMS[1] if n == 1 else SYSTEMS[i % len(SYSTEMS)]


def _f1(ax: Axes, report: Report) -> None:
    """Bars of each class and of all together, from the top; whiskers are the interval of the micro F1."""
    n = len(report.systems)
    labels = sorted({row.label for system in report.systems for row in system.scores.classes})
    height = 0.8 / n
    for i, system in enumerate(report.systems):
        values = {row.label: row.f1 for row in system.scores.classes}
        shares = [100 * values.get(label, 0.0) for label in labels] + [100 * system.scores.micro.f1]
        places = [k + (i - (n - 1) / 2) * height for k in range(len(shares))]
        ax.barh(places, shares, height * 0.92, color=_colour(i, n), label=_short(system.name))
        interval, right = system.scores.interval, list(shares)
        if interval is not None:
            low, high = 100 * interval.low, 100 * interval.high
            ax.hlines(places[-1], low, high, color=INK, linewidth=1.4)
            right[-1] = max(right[-1], high)
        for place, share, at in zip(places, shares, right, strict=True):
            ax.text(at + 0.8, place, f"{share:.1f}", va="center", fontsize=8.5)
    ax.set_yticks(range(len(labels) + 1), [*labels, "micro"])
    ax.invert_yaxis()
    ax.set_xlim(0, 108)
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("F1")
    ax.grid(visible=False, axis="y")
    if n > 1:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(n, 4))


def _consistency(ax: Axes, report: Report) -> None:
    rows = [("gold", report.gold_consistency, GOLD)]
    n = len(report.systems)
    rows += [(system.name, system.consistency, _colour(i, n)) for i, system in enumerate(report.systems)]
    height = 0.8 / len(rows)
    most = 0.0
    for i, (name, found, colour) in enumerate(rows):
        shares = [100 * found.share_differing, 100 * found.share_partly_missed]
        counts = [(found.n_differing, found.n_repeated), (found.n_partly_missed, found.n_occurring)]
        places = [k + (i - (len(rows) - 1) / 2) * height for k in (0, 1)]
        ax.barh(places, shares, height * 0.9, color=colour, label=_short(name))
        most = max(most, *shares)
        for place, share, (part, whole) in zip(places, shares, counts, strict=True):
            ax.annotate(
                f"{share:.1f} %  ({part:,} of {whole:,})", (share, place), (5, 0), textcoords="offset points",
                va="center", fontsize=8.5,
            )  # fmt: skip
    ax.set_yticks([0, 1], ["labels differ", "partly missed"])
    ax.invert_yaxis()
    ax.set_xlim(0, max(1.0, most * 1.35))
    ax.set_xlabel("% of names")
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(rows), 5))


def _kinds(ax: Axes, report: Report) -> None:
    """One stacked bar for each system."""
    names = [_short(system.name) for system in report.systems]
    left = [0] * len(names)
    widest = max(1, *(sum(list(s.confusion.kinds().values())[1:]) for s in report.systems))
    for kind, colour in zip(KINDS[1:], KIND_COLOURS, strict=True):
        counts = [system.confusion.kinds()[kind] for system in report.systems]
        ax.barh(range(len(names)), counts, 0.66, left=left, color=colour, label=kind)
        for place, (begin, count) in enumerate(zip(left, counts, strict=True)):
            if count > 0.03 * widest:
                ax.text(begin + count / 2, place, f"{count:,}", ha="center", va="center", fontsize=8.5)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel("errors")
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5)


def _calibration(ax: Axes, report: Report) -> None:
    ax.plot([0, 1], [0, 1], color="#9aa3ad", linestyle=":", linewidth=1)
    n = len(report.systems)
    for i, system in enumerate(report.systems):
        found = system.calibration
        if found is not None:
            name = _short(system.name)
            ax.plot(found.confidence, found.precision, "o-", markersize=4, color=_colour(i, n), label=name)
    ax.set(xlabel="mean confidence", ylabel="precision", ylim=(-0.02, 1.02), xlim=(-0.02, 1.02), aspect="equal")
    ax.legend(loc="upper left")
