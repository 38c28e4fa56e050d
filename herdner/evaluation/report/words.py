"""What a report says in words and tables, section by section, for whatever shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from herdner.evaluation.consistency import Differing
from herdner.evaluation.mistakes import Confusion, Example, FrequentMistake
from herdner.evaluation.repeats import Repeats
from herdner.evaluation.report.values import Change, Report, System
from herdner.evaluation.scores import ClassScores
from herdner.evaluation.tabular import percent, points


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Rows(NamedTuple):
    """A table: names in the first ``n_names`` columns, figures in the others; the last ``n_totals`` rows sum up."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_names: int = 1
    n_totals: int = 0


class Cell(NamedTuple):
    """Entities of a gold and a predicted class, with the same borders and with others; ``share`` of the row, 0 to 1."""

    same: int
    other: int
    share: float


class Grid(NamedTuple):
    """A confusion: counts by gold class (rows) and predicted class; None in the corner, where nothing can be."""

    header: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]


class Errors(NamedTuple):
    """A list of frequent errors."""

    errors: Sequence[FrequentMistake]


class Figure(NamedTuple):
    """SVG of our own making; HTML alone shows it."""

    svg: str
    caption: str


Block = Text | Rows | Grid | Errors | Figure


class Section(NamedTuple):
    """``level`` 2 is a section of the page, 3 a part of one."""

    level: int
    title: str
    blocks: Sequence[Block]


class Card(NamedTuple):
    """A main figure, to be shown large, and what to read below it."""

    title: str
    figure: str
    unit: str
    below: Sequence[str]


def headline(report: Report) -> str:
    """Sizes in one line."""
    return (
        f"{report.n_documents:,} documents, {report.n_sentences:,} sentences, {report.n_tokens:,} tokens, "
        f"{report.n_entities:,} gold entities in {Path(report.gold).name}"
    )


def cards(report: Report) -> list[Card]:
    """The F1 of each prediction, and how much it changes."""
    found: list[Card] = []
    for system in report.systems:
        micro, interval = system.scores.micro, system.scores.interval
        below = [f"P {percent(micro.precision)} \N{MIDDLE DOT} R {percent(micro.recall)}"]
        if interval is not None:
            below.append(f"{interval.level:.0%} interval {percent(interval.low)} to {percent(interval.high)}")
        found.append(Card(system.name, percent(micro.f1), "micro F1", below))
    for change in report.changes:
        if (compared := change.comparison) is not None:
            low, high = points(compared.interval.low), points(compared.interval.high)
            below = [f"{compared.interval.level:.0%} interval {low} to {high}", f"p = {compared.randomisation_p:.2g}"]
            title = f"{change.before} to {change.after}"
            found.append(Card(title, points(compared.difference), "points of F1", below))
    return found


def sections(report: Report, drawn: Mapping[str, str]) -> list[Section]:
    """What the page says, in order; ``drawn`` are the figures by name (`herdner.evaluation.report.figures`)."""

    def figure(name: str, caption: str) -> list[Figure]:
        return [Figure(drawn[name], caption)] if name in drawn else []

    parts = [Section(2, "Scores", [*figure("f1", "F1 by class; whiskers: interval of the micro F1."), _scores(report)])]
    if report.systems[0].partial is not None:
        parts.append(_partial(report))
    parts += [_change(change) for change in report.changes]
    caption = "Repeated names that are tagged in several ways, and names that are found here and missed there."
    parts.append(Section(2, "Consistency", [*figure("consistency", caption), *_consistency(report)]))
    parts.append(Section(2, "Errors", [*figure("kinds", "Errors by what is wrong."), _kinds(report)]))
    for system in report.systems:
        parts += _errors(system)
    for change in report.changes:
        names = f"{change.before} to {change.after}"
        parts.append(Section(3, f"Mended, {names}: {change.n_mended:,}", [Errors(change.mended)]))
        parts.append(Section(3, f"New, {names}: {change.n_new:,}", [Errors(change.new)]))
    if any(system.calibration for system in report.systems):
        caption = "Precision by confidence, in bins of equal mass; on the dotted line confidences are true."
        parts.append(Section(2, "Calibration", [*figure("calibration", caption), _calibration(report)]))
    if report.notes:
        parts.append(Section(2, "Notes", [Text(note) for note in report.notes]))
    return parts


# --- the parts


def _scores(report: Report) -> Rows:
    """Precision, recall and F1 of all systems side by side."""
    header = ["class", "gold"]
    for system in report.systems:
        mark = f" {system.name}" if len(report.systems) > 1 else ""
        header += [f"P{mark}", f"R{mark}", f"F1{mark}"]
    by_label = [
        {row.label: row for row in (*system.scores.classes, system.scores.macro, system.scores.micro)}
        for system in report.systems
    ]
    rows: list[list[str]] = []
    for label in (*report_classes(report), "macro", "micro"):
        # A class that only one system predicts is none of the others'.
        found = [scores.get(label, ClassScores(label, 0.0, 0.0, 0.0, 0)) for scores in by_label]
        shares = [percent(share) for row in found for share in (row.precision, row.recall, row.f1)]
        rows.append([label, f"{max(row.support for row in found):,}", *shares])
    return Rows(header, rows, n_totals=2)


def report_classes(report: Report) -> list[str]:
    """The classes of the gold standard and of all predictions, sorted."""
    return sorted({row.label for system in report.systems for row in system.scores.classes})


def _partial(report: Report) -> Section:
    """The four schemes of all systems."""
    header = ["prediction", "matching", "right", "wrong", "partly", "missed", "spurious", "P", "R", "F1"]
    overall: list[list[str]] = []
    by_class: list[list[str]] = []
    for system in report.systems:
        if system.partial is None:
            continue
        for row in system.partial.overall:
            counts = (row.correct, row.incorrect, row.partial, row.missed, row.spurious)
            shares = map(percent, (row.precision, row.recall, row.f1))
            overall.append([system.name, row.matching, *(f"{n:,}" for n in counts), *shares])
        for label, rows in system.partial.classes.items():
            by_class.append([system.name, label, *(percent(row.f1) for row in rows)])
    said = (
        "By nervaluate. Strict: borders and class are right; exact: the borders, whatever the class; partial: borders "
        "overlap, whatever the class, and count half unless they are equal; ent_type: the class is right and borders "
        "overlap."
    )
    classes = Rows(["prediction", "class", "strict F1", "exact F1", "partial F1", "ent_type F1"], by_class, 2)
    return Section(2, "Partial matches", [Text(said), Rows(header, overall, 2), classes])


def _change(change: Change) -> Section:
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


def _consistency(report: Report) -> list[Block]:
    header = ["", "repeated names", "labels differ", "share %", "unlike gold", "all right", "share %",
              "names in 2+ places", "partly missed", "share %"]  # fmt: skip

    def row(name: str, found: Repeats) -> list[str]:
        unlike = "" if found.n_unlike_reference is None else f"{found.n_unlike_reference:,}"
        right = ["", ""] if found.n_right is None else [f"{found.n_right:,}", percent(found.share_right or 0)]
        return [
            name, f"{found.n_repeated:,}", f"{found.n_differing:,}", percent(found.share_differing), unlike, *right,
            f"{found.n_occurring:,}", f"{found.n_partly_missed:,}", percent(found.share_partly_missed),
        ]  # fmt: skip

    rows = [row("gold", report.gold_consistency), *(row(system.name, system.consistency) for system in report.systems)]
    said = (
        "Names are counted once for each document. Labels differ: of the names with two mentions or more, those whose "
        "mentions carry different labels; unlike gold: those of them that the gold standard gives one label alone; "
        "all right: those whose every mention has the borders and the label of a gold one. Partly missed: of the names "
        "that are tagged somewhere and stand at two places or more, those that no entity touches at one of them."
    )
    parts: list[Block] = [Text(said), Rows(header, rows), *_short_forms(report.systems)]
    for system in report.systems:
        if names := system.inconsistent_names:
            parts.append(Text(f"Names that {system.name} gives several labels ('-': places that are no entity):"))
            differing = Differing(system.name, tuple(names))
            parts.append(Rows(differing.header, differing.rows(), 4))
    return parts


def _short_forms(systems: Sequence[System]) -> list[Block]:
    """None where the gold standard has no short form."""
    labels = [label for label, found in systems[0].short_forms.items() if found.n]
    rows = [
        [s.name, *(f"{n:,}" for label in labels for n in (s.short_forms[label].n, s.short_forms[label].n_right))]
        for s in systems
    ]
    said = (
        "Short forms are mentions of one word that a longer name before it begins with (organisations) or ends with "
        "(persons)."
    )
    header = ["prediction", *(cell for label in labels for cell in (f"short forms, {label}", "right"))]
    return [Text(said), Rows(header, rows)] if labels else []


def _kinds(report: Report) -> Rows:
    kinds = list(report.systems[0].confusion.kinds())
    rows = [[s.name, *(f"{n:,}" for n in s.confusion.kinds().values())] for s in report.systems]
    return Rows(["prediction", *kinds], rows)


def _errors(system: System) -> list[Section]:
    said = "Rows are gold classes, columns predicted ones; + counts entities with other borders."
    found = [Section(3, f"Confusion, {system.name}", [Text(said), grid(system.confusion)])]
    if system.errors:
        found.append(Section(3, f"Most frequent errors, {system.name}", [Errors(system.errors)]))
    return found


def grid(confusion: Confusion) -> Grid:
    """The counts of a confusion, with what is spurious in the last row and what is missed in the last column."""
    n = len(confusion.labels)
    totals = confusion.counts.sum(axis=1).clip(1).tolist()

    def cell(i: int, j: int) -> Cell | None:
        if i == j == n:
            return None
        same, other = int(confusion.same_borders[i, j]), int(confusion.other_borders[i, j]) if max(i, j) < n else 0
        return Cell(same, other, (same + other) / totals[i])

    names = (*confusion.labels, "spurious")
    rows = [(name, [cell(i, j) for j in range(n + 1)]) for i, name in enumerate(names)]
    return Grid(["gold \\ predicted", *confusion.labels, "missed"], rows)


def _calibration(report: Report) -> Rows:
    known = [(system.name, system.calibration) for system in report.systems if system.calibration is not None]
    rows = [[name, f"{c.n_entities:,}", *(f"{value:.4f}" for value in c.measures.values())] for name, c in known]
    return Rows(["prediction", "entities", *known[0][1].measures], rows)


# --- errors


def described(error: FrequentMistake) -> str:
    """An error in words."""
    gold, predicted = f"{error.gold_text} {error.gold_label}", f"{error.predicted_text} {error.predicted_label}"
    if error.kind == "missed":
        return f"missed: {gold}"
    if error.kind == "spurious":
        return f"spurious: {predicted}"
    return f"{error.kind}: {gold} -> {predicted}"


def how_many_documents(error: FrequentMistake) -> str:
    return f"{error.n_documents:,} document{'s' if error.n_documents > 1 else ''}"


def cut(example: Example) -> list[tuple[str, str]]:
    """The text of an example in pieces, each with "g" where it is gold, "p" where predicted, "g p" for both."""
    places = {"g": example.gold, "p": example.predicted}
    borders = sorted({0, len(example.text), *(at for place in places.values() if place for at in place)})
    return [
        (
            example.text[start:end],
            " ".join(key for key, place in places.items() if place and place[0] <= start and end <= place[1]),
        )
        for start, end in pairwise(borders)
    ]
