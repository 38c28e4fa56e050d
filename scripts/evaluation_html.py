"""A report as one self-contained page of HTML: figures inside, no script, everything from files escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from evaluation_pages import (
    Figure,
    Rows,
    Section,
    Text,
    confusion_cells,
    cut,
    documents,
    headline,
    percent,
    points,
    sections,
)
from evaluation_plots import figures
from evaluation_report import Report

from herdner.evaluation.mistakes import Confusion, FrequentError

TEMPLATE = Path(__file__).with_name("evaluation_page.html")


def to_html(report: Report) -> str:
    """One self-contained page."""
    drawn, missing = figures(report)
    if missing:
        report.notes.append(missing)
    body = "\n".join(_html_section(section) for section in sections(report, drawn))
    page = TEMPLATE.read_text(encoding="utf-8")
    for key, value in {"{HEADLINE}": _text(headline(report)), "{CARDS}": _cards(report), "{BODY}": body}.items():
        page = page.replace(key, value, 1)
    return page


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _cards(report: Report) -> str:
    """The main figures, large."""
    cards = []
    for system in report.systems:
        micro, interval = system.scores.micro, system.scores.interval
        under = f"P {percent(micro.precision)} &middot; R {percent(micro.recall)}"
        if interval is not None:
            under += f"<br>{interval.level:.0%} interval {percent(interval.low)} to {percent(interval.high)}"
        cards.append(_card(system.name, percent(micro.f1), "micro F1", under))
    for change in report.changes:
        found = change.comparison
        if found is not None:
            low, high = points(found.interval.low), points(found.interval.high)
            under = f"{found.interval.level:.0%} interval {low} to {high}<br>p = {found.randomisation_p:.2g}"
            cards.append(_card(f"{change.before} to {change.after}", points(found.difference), "points of F1", under))
    return "\n".join(cards)


def _card(title: str, figure: str, unit: str, under: str) -> str:
    return (
        f'<div class="card"><h3>{_text(title)}</h3><p class="figure">{_text(figure)} <span>{_text(unit)}</span></p>'
        f"<p>{under}</p></div>"
    )


def _html_section(section: Section) -> str:
    blocks = "\n".join(_html(block) for block in section.blocks)
    return f"<section><h{section.level}>{_text(section.title)}</h{section.level}>\n{blocks}\n</section>"


def _html(block: object) -> str:
    if isinstance(block, Text):
        return f"<p>{_text(block.text)}</p>"
    if isinstance(block, Figure):
        return f"<figure>{block.svg}<figcaption>{_text(block.caption)}</figcaption></figure>"
    if isinstance(block, Rows):
        return _html_rows(block)
    if isinstance(block, Confusion):
        return _html_confusion(block)
    return _html_errors(block)  # type: ignore[arg-type]


def _html_rows(block: Rows) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        kinds = ["" if i < block.n_names else ' class="n"' for i in range(len(row))]
        return "".join(f"<{tag}{kind}>{_text(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    kinds = [""] * (len(block.rows) - block.n_totals) + [' class="total"'] * block.n_totals
    body = "".join(f"<tr{kind}>{cells(row, 'td')}</tr>\n" for kind, row in zip(kinds, block.rows, strict=True))
    head = f"<thead><tr>{cells(block.header, 'th')}</tr></thead>"
    return f'<div class="wide"><table>{head}\n<tbody>{body}</tbody></table></div>'


def _html_confusion(confusion: Confusion) -> str:
    """Shaded by the share of the row; the diagonal is what is right."""
    head = "".join(f"<th>{_text(name)}</th>" for name in (*confusion.labels, "missed"))
    rows = []
    for i, (label, cells) in enumerate(confusion_cells(confusion)):
        total = max(1, sum(sum(cell) for cell in cells if cell is not None))
        shown = "".join(_cell(cell, total, i == j) for j, cell in enumerate(cells))
        rows.append(f"<tr><th>{_text(label)}</th>{shown}</tr>")
    return (
        f'<div class="wide"><table class="grid"><thead><tr><th>gold \\ predicted</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: tuple[int, int] | None, total: int, is_right: bool) -> str:
    if cell is None:
        return "<td></td>"
    same, other = cell
    if not same + other:
        return '<td class="none">0</td>'
    colour, shade = "34, 139, 94" if is_right else "201, 76, 60", 0.08 + 0.5 * (same + other) / total
    more = f' <small title="other borders">+{other:,}</small>' if other else ""
    return f'<td style="background: rgba({colour}, {shade:.2f})">{same:,}{more}</td>'


def _html_errors(errors: Sequence[FrequentError]) -> str:
    if not errors:
        return "<p>None.</p>"
    return '<ol class="errors">' + "\n".join(map(_html_error, errors)) + "</ol>"


def _html_error(error: FrequentError) -> str:
    def reading(text: str | None, label: str | None, side: str) -> str:
        return f'<span class="{side}">{_text(text or "")}<b>{_text(label or "")}</b></span>'

    sides = []
    if error.gold_text is not None:
        sides.append(reading(error.gold_text, error.gold_label, "g"))
    if error.predicted_text is not None:
        sides.append(reading(error.predicted_text, error.predicted_label, "p"))
    examples = []
    for example in error.examples:
        shown = "".join(_marked(*piece) for piece in cut(example))
        examples.append(f"<li><q>{shown}</q> <cite>{_text(example.document or '')}</cite></li>")
    return (
        f'<li><p><span class="count">{error.count:,}&times;</span> <em>{_text(error.kind)}</em> '
        f"{' &rarr; '.join(sides)} <small>{_text(documents(error))}</small></p><ul>{''.join(examples)}</ul></li>"
    )


def _marked(text: str, marks: str) -> str:
    return f'<span class="{" ".join(marks)}">{_text(text)}</span>' if marks else _text(text)
