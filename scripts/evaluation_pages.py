"""What a report says in words and tables, section by section; and the page in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from evaluation_report import Change, InconsistentName, Report, System

from herdner.evaluation.mistakes import Confusion, Example, FrequentError
from herdner.evaluation.repeats import Consistency
from herdner.evaluation.tables import markdown_table


class Rows(NamedTuple):
    """A table: names in the first ``n_names`` columns, figures in the others; the last ``n_totals`` rows sum up."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_names: int = 1
    n_totals: int = 0


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Figure(NamedTuple):
    """SVG of our own making; HTML alone shows it."""

    svg: str
    caption: str


class Section(NamedTuple):
    """``level`` 2 is a section of the page, 3 a part of one."""

    level: int
    title: str
    blocks: Sequence[Rows | Text | Figure | Confusion | Sequence[FrequentError]]


def sections(report: Report, drawn: dict[str, str]) -> list[Section]:
    """What the page says, in order; ``drawn`` are the figures (`evaluation_plots.figures`)."""

    def figure(name: str, caption: str) -> list[Figure]:
        return [Figure(drawn[name], caption)] if name in drawn else []

    parts = [Section(2, "Scores", [*figure("f1", "F1 by class; whiskers: interval of the micro F1."), _scores(report)])]
    if len(report.systems) == 1 or report.systems[0].partial is not None:
        parts += [_partial(report)] if report.systems[0].partial is not None else []
    parts += [_changes(change) for change in report.changes]
    caption = "Repeated names that are tagged in several ways, and names that are found here and missed there."
    parts.append(Section(2, "Consistency", [*figure("consistency", caption), *_consistency(report)]))
    parts.append(Section(2, "Errors", [*figure("kinds", "Errors by what is wrong."), _kinds(report)]))
    for system in report.systems:
        parts += _errors(system)
    for change in report.changes:
        names = f"{change.before} to {change.after}"
        parts.append(Section(3, f"Mended, {names}: {change.n_mended:,}", [change.mended]))
        parts.append(Section(3, f"New, {names}: {change.n_new:,}", [change.new]))
    if any(system.calibration for system in report.systems):
        caption = "Precision by confidence, in bins of equal mass; on the dotted line confidences are true."
        parts.append(Section(2, "Calibration", [*figure("calibration", caption), *_calibration(report)]))
    if report.notes:
        parts.append(Section(2, "Notes", [Text(note) for note in report.notes]))
    return parts


# --- the parts


def percent(share: float) -> str:
    return f"{100 * share:.2f}"


def points(difference: float) -> str:
    return f"{100 * difference:+.2f}"


def _scores(report: Report) -> Rows:
    """Precision, recall and F1 of all systems side by side."""
    header = ["class", "gold"]
    for system in report.systems:
        mark = f" {system.name}" if len(report.systems) > 1 else ""
        header += [f"P{mark}", f"R{mark}", f"F1{mark}"]
    # A class that only one system predicts is none of the others'.
    labels = list(dict.fromkeys(row.label for system in report.systems for row in system.scores.classes))
    rows = []
    for label in (*sorted(labels), "macro", "micro"):
        found = [_row(system, label) for system in report.systems]
        support = max(row.support for row in found if row is not None)
        figures_of = [(row.precision, row.recall, row.f1) if row is not None else (0.0, 0.0, 0.0) for row in found]
        rows.append([label, f"{support:,}", *(percent(share) for shares in figures_of for share in shares)])
    return Rows(header, rows, n_totals=2)


def _row(system: System, label: str):
    rows = {row.label: row for row in system.scores.classes}
    rows |= {"macro": system.scores.macro, "micro": system.scores.micro}
    return rows.get(label)


def _partial(report: Report) -> Section:
    """The four schemes of all systems."""
    header = ["prediction", "matching", "right", "wrong", "partly", "missed", "spurious", "P", "R", "F1"]
    rows = []
    for system in report.systems:
        for row in system.partial.overall if system.partial else ():
            counts = (row.correct, row.incorrect, row.partial, row.missed, row.spurious)
            shares = (row.precision, row.recall, row.f1)
            rows.append([system.name, row.matching, *(f"{n:,}" for n in counts), *map(percent, shares)])
    said = (
        "By nervaluate. Strict: borders and class are right; exact: the borders, whatever the class; partial: borders "
        "overlap, whatever the class, and count half unless they are equal; ent_type: the class is right and borders "
        "overlap."
    )
    by_class: list[list[str]] = []
    for system in report.systems:
        if system.partial is not None:
            by_class += [
                [system.name, label, *(percent(row.f1) for row in found)]
                for label, found in system.partial.classes.items()
            ]
    classes = Rows(["prediction", "class", "strict F1", "exact F1", "partial F1", "ent_type F1"], by_class, 2)
    return Section(2, "Partial matches", [Text(said), Rows(header, rows, 2), classes])


def _changes(change: Change) -> Section:
    title = f"From {change.before} to {change.after}"
    found = change.comparison
    if found is None:
        return Section(2, title, [Text("Too few documents or sentences to compare.")])
    low, high = found.interval.low, found.interval.high
    said = (
        f"Micro F1 changes by {points(found.difference)} points ({found.interval.level:.0%} interval {points(low)} "
        f"to {points(high)}); p = {found.randomisation_p:.2g} by approximate randomisation, {found.bootstrap_p:.2g} by "
        f"paired bootstrap (two-sided; {found.n_units:,} {found.unit}s, {found.n_resamples:,} resamples). "
        f"{change.n_mended:,} errors are mended, {change.n_new:,} are new."
    )
    header = ["class", "gold", "F1 before", "F1 after", "change", "right before alone", "right after alone"]
    rows = [
        [
            row.label, f"{row.support:,}", percent(row.f1_a), percent(row.f1_b), points(row.difference),
            f"{row.only_a:,}", f"{row.only_b:,}",
        ]
        for row in (*found.classes, found.micro)
    ]  # fmt: skip
    return Section(2, title, [Text(said), Rows(header, rows, n_totals=1)])


def _consistency(report: Report) -> list[Rows | Text]:
    header = ["", "repeated names", "labels differ", "share %", "unlike gold", "names in 2+ places", "partly missed",
              "share %"]  # fmt: skip

    def row(name: str, found: Consistency) -> list[str]:
        unlike = "" if found.n_unlike_reference is None else f"{found.n_unlike_reference:,}"
        return [
            name, f"{found.n_repeated:,}", f"{found.n_differing:,}", percent(found.share_differing), unlike,
            f"{found.n_occurring:,}", f"{found.n_partly_missed:,}", percent(found.share_partly_missed),
        ]  # fmt: skip

    rows = [row("gold", report.gold_consistency), *(row(system.name, system.consistency) for system in report.systems)]
    said = (
        "Names are counted once for each document. Labels differ: of the names with two mentions or more, those whose "
        "mentions carry different labels; unlike gold: those of them that the gold standard gives one label alone. "
        "Partly missed: of the names that are tagged somewhere and stand at two places or more, those that no entity "
        "touches at one of them."
    )
    parts: list[Rows | Text] = [Text(said), Rows(header, rows)]
    for system in report.systems:
        if system.inconsistent:
            parts.append(Text(f"Names that {system.name} gives several labels ('-': places that are no entity):"))
            parts.append(Rows(["name", "document", "labels", "gold"], [_name(n) for n in system.inconsistent], 4))
    return parts


def _name(name: InconsistentName) -> list[str]:
    told = [[f"{label}\N{NO-BREAK SPACE}{n}" for label, n in each.items()] for each in (name.labels, name.gold_labels)]
    return [name.name, name.document or "", *map(", ".join, told)]


def _kinds(report: Report) -> Rows:
    kinds = list(report.systems[0].confusion.kinds())
    rows = [[s.name, *(f"{n:,}" for n in s.confusion.kinds().values())] for s in report.systems]
    return Rows(["prediction", *kinds], rows)


def _errors(system: System) -> list[Section]:
    said = "Rows are gold classes, columns predicted ones; + counts entities with other borders."
    found = [Section(3, f"Confusion, {system.name}", [Text(said), system.confusion])]
    if system.errors:
        found.append(Section(3, f"Most frequent errors, {system.name}", [system.errors]))
    return found


def _calibration(report: Report) -> list[Rows]:
    known = [system for system in report.systems if system.calibration is not None]
    names = list(known[0].calibration.measures) if known[0].calibration else []
    rows = [
        [s.name, f"{s.calibration.n_entities:,}", *(f"{value:.4f}" for value in s.calibration.measures.values())]
        for s in known
        if s.calibration is not None
    ]
    return [Rows(["prediction", "entities", *names], rows)]


def headline(report: Report) -> str:
    """Sizes in one line."""
    return (
        f"{report.n_documents:,} documents, {report.n_sentences:,} sentences, {report.n_tokens:,} tokens, "
        f"{report.n_entities:,} gold entities in {Path(report.gold).name}"
    )


# --- Markdown

_MARKS = re.compile(r"([\\`*_\[\]<>#&~|])")


def to_markdown(report: Report) -> str:
    """The page in Markdown, without figures."""
    lines = ["# Evaluation of names", "", _escaped(headline(report))]
    for section in sections(report, {}):
        lines += ["", f"{'#' * section.level} {_escaped(section.title)}"]
        for block in section.blocks:
            lines += ["", _markdown(block)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _markdown(block: object) -> str:
    if isinstance(block, Text):
        return _escaped(block.text)
    if isinstance(block, Rows):
        return _markdown_rows(block)
    if isinstance(block, Confusion):
        return _markdown_rows(_confusion_rows(block))
    return "\n".join(line for error in block for line in _markdown_error(error)) or "None."  # type: ignore[attr-defined]


def _markdown_rows(block: Rows) -> str:
    cells = [[_escaped(cell).replace("\\|", "|") for cell in row] for row in (block.header, *block.rows)]
    return markdown_table(cells[0], cells[1:], "").rstrip()


def _confusion_rows(confusion: Confusion) -> Rows:
    rows = [
        [label, *("" if cell is None else f"{cell[0]:,}" + (f" +{cell[1]:,}" if cell[1] else "") for cell in cells)]
        for label, cells in confusion_cells(confusion)
    ]
    return Rows(["gold \\ predicted", *confusion.labels, "missed"], rows)


def _markdown_error(error: FrequentError) -> list[str]:
    lines = [f"- {error.count:,} x {_escaped(described(error))} ({documents(error)})"]
    for example in error.examples:
        pieces = [
            f"**{_escaped(piece)}**" if marks and piece.strip() else _escaped(piece) for piece, marks in cut(example)
        ]
        lines.append(f"    - {_escaped(example.document or '')}: ... {' '.join(filter(None, pieces))} ...")
    return lines


# --- what both pages share


def confusion_cells(confusion: Confusion) -> list[tuple[str, list[tuple[int, int] | None]]]:
    """The rows of a confusion: counts of equal and of other borders; None in the corner, where nothing can be."""
    n = len(confusion.labels)
    rows = []
    for i, label in enumerate((*confusion.labels, "spurious")):
        cells: list[tuple[int, int] | None] = [
            (int(confusion.same_borders[i, j]), int(confusion.other_borders[i, j]) if max(i, j) < n else 0)
            for j in range(n + 1)
        ]
        rows.append((label, cells if i < n else [*cells[:n], None]))
    return rows


def described(error: FrequentError) -> str:
    """An error in words."""
    gold, predicted = f"{error.gold_text} {error.gold_label}", f"{error.predicted_text} {error.predicted_label}"
    if error.kind == "missed":
        return f"missed: {gold}"
    if error.kind == "spurious":
        return f"spurious: {predicted}"
    return f"{error.kind}: {gold} -> {predicted}"


def documents(error: FrequentError) -> str:
    return f"{error.n_documents:,} document{'s' if error.n_documents > 1 else ''}"


def cut(example: Example) -> list[tuple[str, str]]:
    """The text of an example in pieces, each with "g" where it is gold, "p" where predicted, "gp" for both."""
    places = {"g": example.gold, "p": example.predicted}
    borders = sorted({0, len(example.text), *(at for place in places.values() if place for at in place)})
    pieces = []
    for start, end in pairwise(borders):
        marks = "".join(key for key, place in places.items() if place and place[0] <= start and end <= place[1])
        pieces.append((example.text[start:end], marks))
    return pieces
