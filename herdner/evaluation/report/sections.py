"""Contents of a report in words and tables, section by section, for all output formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from herdner.base.messages import format_count
from herdner.evaluation.consistency import InconsistentNames, RepeatedNameCounts
from herdner.evaluation.errors import Confusion, ErrorExample, FrequentError
from herdner.evaluation.report.values import Report, SystemChange, SystemResult
from herdner.evaluation.scores import LabelScores
from herdner.evaluation.tabular import percent, points


class Paragraph(NamedTuple):
    """Paragraph of text in a report."""

    text: str


class ReportTable(NamedTuple):
    """Table in a report.

    The first ``n_names`` columns contain names, and all later columns contain numbers. The last ``n_totals`` rows are
    totals.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_names: int = 1
    n_totals: int = 0


class ConfusionCell(NamedTuple):
    """Cell of a confusion matrix: numbers of entities with correct boundaries and with wrong boundaries.

    ``share`` is the share of these entities among all entities of the row, in [0, 1].
    """

    same: int
    other: int
    share: float


class ConfusionGrid(NamedTuple):
    """Confusion matrix: numbers of entities by gold label (rows) and predicted label (columns).

    The last row counts spurious entities, and the last column missed entities; the cell in the corner is None.
    """

    header: Sequence[str]
    rows: Sequence[tuple[str, Sequence[ConfusionCell | None]]]


class ErrorList(NamedTuple):
    """List of frequent errors in a report."""

    errors: Sequence[FrequentError]


class ReportFigure(NamedTuple):
    """Figure in SVG, which only HTML reports show."""

    svg: str
    caption: str


Block = Paragraph | ReportTable | ConfusionGrid | ErrorList | ReportFigure


class Section(NamedTuple):
    """Section (``level`` 2) or subsection (``level`` 3) of a report."""

    level: int
    title: str
    blocks: Sequence[Block]


class Card(NamedTuple):
    """Important number of a report, which HTML shows in large type, and the lines of text below the number."""

    title: str
    figure: str
    unit: str
    below: Sequence[str]


def headline(report: Report) -> str:
    """Return one line with the gold file name and the numbers of documents, sentences, tokens and gold entities.

    Args:
        report: The report.

    Returns:
        One line.
    """
    return (
        f"{format_count(report.n_documents, 'document')}, {format_count(report.n_sentences, 'sentence')}, "
        f"{format_count(report.n_tokens, 'token')}, {format_count(report.n_entities, 'gold entity', 'gold entities')}"
        f" in {Path(report.gold).name}"
    )


def cards(report: Report) -> list[Card]:
    """Return one card for each tagger with its F1, and one for each pair of compared taggers with the difference in F1.

    Args:
        report: The report.

    Returns:
        Cards in the order of the predictions.
    """
    result: list[Card] = []
    for system in report.systems:
        micro, interval = system.scores.micro, system.scores.interval
        below = [f"P {percent(micro.precision)} \N{MIDDLE DOT} R {percent(micro.recall)}"]
        if interval is not None:
            below.append(f"{interval.level:.0%} interval {percent(interval.low)} to {percent(interval.high)}")
        result.append(Card(system.name, percent(micro.f1), "micro F1", below))
    for change in report.changes:
        if (comparison := change.comparison) is not None:
            low, high = points(comparison.interval.low), points(comparison.interval.high)
            below = [f"{comparison.interval.level:.0%} interval {low} to {high}"]
            below.append(f"p = {comparison.randomisation_p:.2g}")
            title = f"{change.before} to {change.after}"
            result.append(Card(title, points(comparison.difference), "points of F1", below))
    return result


def sections(report: Report, figures: Mapping[str, str]) -> list[Section]:
    """Return the sections of a report.

    Args:
        report: The report.
        figures: SVG of the figures by name (see `herdner.evaluation.report.figures.draw_figures`); may be empty.

    Returns:
        Sections and subsections in their order.
    """

    def figure(name: str, caption: str) -> list[ReportFigure]:
        return [ReportFigure(figures[name], caption)] if name in figures else []

    caption = "F1 of each label; whiskers show the interval of the micro F1."
    parts = [Section(2, "Scores", [*figure("f1", caption), _scores(report)])]
    if report.systems[0].partial is not None:
        parts.append(_partial(report))
    parts += [_change(change) for change in report.changes]
    caption = "Repeated names with several labels, and names that are tagged at one occurrence and missed at another."
    parts.append(Section(2, "Consistency", [*figure("consistency", caption), *_consistency(report)]))
    parts.append(Section(2, "Errors", [*figure("kinds", "Number of errors of each kind."), _kinds(report)]))
    for system in report.systems:
        parts += _errors(system)
    for change in report.changes:
        names = f"{change.before} to {change.after}"
        parts.append(Section(3, f"Fixed errors, {names}: {change.n_fixed:,}", [ErrorList(change.fixed)]))
        parts.append(Section(3, f"New errors, {names}: {change.n_new:,}", [ErrorList(change.new)]))
    if any(system.calibration for system in report.systems):
        caption = "Precision by confidence, in bins of equal mass; the dotted line is perfect calibration."
        parts.append(Section(2, "Calibration", [*figure("calibration", caption), _calibration(report)]))
    if report.warnings:
        parts.append(Section(2, "Warnings", [Paragraph(line) for line in report.warnings]))
    return parts


# --- sections


def _scores(report: Report) -> ReportTable:
    header = ["label", "gold"]
    for system in report.systems:
        suffix = f" {system.name}" if len(report.systems) > 1 else ""
        header += [f"P{suffix}", f"R{suffix}", f"F1{suffix}"]
    by_label = [
        {row.label: row for row in (*system.scores.per_label, system.scores.macro, system.scores.micro)}
        for system in report.systems
    ]
    rows: list[list[str]] = []
    for label in (*report_labels(report), "macro", "micro"):
        # A label that only one system predicts is missing in the scores of the others.
        scores = [each.get(label, LabelScores(label, 0.0, 0.0, 0.0, 0)) for each in by_label]
        shares = [percent(share) for row in scores for share in (row.precision, row.recall, row.f1)]
        rows.append([label, f"{max(row.support for row in scores):,}", *shares])
    return ReportTable(header, rows, n_totals=2)


def report_labels(report: Report) -> list[str]:
    """Return all labels that occur in the gold documents or in the predictions of a report.

    Args:
        report: The report.

    Returns:
        Sorted labels.
    """
    return sorted({row.label for system in report.systems for row in system.scores.per_label})


def _partial(report: Report) -> Section:
    header = ["prediction", "matching", "correct", "incorrect", "partial", "missed", "spurious", "P", "R", "F1"]
    overall: list[list[str]] = []
    per_label: list[list[str]] = []
    for system in report.systems:
        if system.partial is None:
            continue
        for row in system.partial.overall:
            counts = (row.correct, row.incorrect, row.partial, row.missed, row.spurious)
            shares = map(percent, (row.precision, row.recall, row.f1))
            overall.append([system.name, row.matching, *(f"{n:,}" for n in counts), *shares])
        for label, rows in system.partial.per_label.items():
            per_label.append([system.name, label, *(percent(row.f1) for row in rows)])
    explanation = (
        "Computed by nervaluate. strict: boundaries and label are correct. exact: boundaries are correct. partial: "
        "entities overlap, and count half unless the boundaries are equal. ent_type: entities overlap and the label is "
        "correct."
    )
    labels = ReportTable(["prediction", "label", "strict F1", "exact F1", "partial F1", "ent_type F1"], per_label, 2)
    return Section(2, "Partial matches", [Paragraph(explanation), ReportTable(header, overall, 2), labels])


def _change(change: SystemChange) -> Section:
    title = f"From {change.before} to {change.after}"
    result = change.comparison
    if result is None:
        return Section(2, title, [Paragraph("Too few documents or sentences to compare.")])
    explanation = f"{result.summary()}. {change.n_fixed:,} errors are fixed, {change.n_new:,} are new."
    header = ["label", "gold", "F1 before", "F1 after", "change", "only before correct", "only after correct"]
    rows = [
        [row.label, f"{row.support:,}", percent(row.f1_a), percent(row.f1_b), points(row.difference),
         f"{row.only_a:,}", f"{row.only_b:,}"]
        for row in (*result.per_label, result.micro)
    ]  # fmt: skip
    return Section(2, title, [Paragraph(explanation), ReportTable(header, rows, n_totals=1)])


def _consistency(report: Report) -> list[Block]:
    header = ["", "repeated names", "several labels", "share %", "unlike gold", "all correct", "share %",
              "names in 2+ places", "partly missed", "share %"]  # fmt: skip

    def row(name: str, counts: RepeatedNameCounts) -> list[str]:
        unlike = "" if counts.n_unlike_reference is None else f"{counts.n_unlike_reference:,}"
        share = counts.share_correct
        correct = ["", ""] if share is None else [f"{counts.n_correct:,}", percent(share)]
        return [
            name, f"{counts.n_repeated:,}", f"{counts.n_differing:,}", percent(counts.share_differing), unlike,
            *correct, f"{counts.n_occurring:,}", f"{counts.n_partly_missed:,}", percent(counts.share_partly_missed),
        ]  # fmt: skip

    rows = [row("gold", report.gold_consistency), *(row(system.name, system.consistency) for system in report.systems)]
    explanation = (
        "A name is counted once for each document. Repeated names have at least two mentions. Several labels: the "
        "mentions have different labels. Unlike gold: of these, names with a single label in the gold documents. All "
        "correct: every mention has the gold boundaries and label. Names in 2+ places are tagged at least once and "
        "occur at least twice. Partly missed: of these, names with an occurrence that no entity touches."
    )
    parts: list[Block] = [Paragraph(explanation), ReportTable(header, rows), *_short_forms(report.systems)]
    for system in report.systems:
        if names := system.inconsistent_names:
            parts.append(Paragraph(f"Names with several labels in {system.name} ('-': occurrences outside entities):"))
            table = InconsistentNames(system.name, tuple(names))
            parts.append(ReportTable(table.header, table.rows(), 4))
    return parts


def _short_forms(systems: Sequence[SystemResult]) -> list[Block]:
    """Return an explanation and a table of short forms; return an empty list if the gold documents contain none."""
    labels = [label for label, counts in systems[0].short_forms.items() if counts.n]
    rows = [
        [s.name, *(f"{n:,}" for label in labels for n in (s.short_forms[label].n, s.short_forms[label].n_correct))]
        for s in systems
    ]
    explanation = (
        "A short form is a mention of one word of a longer name before it: the first word of an organisation, the last "
        "word of a person."
    )
    header = ["prediction", *(cell for label in labels for cell in (f"short forms, {label}", "correct"))]
    return [Paragraph(explanation), ReportTable(header, rows)] if labels else []


def _kinds(report: Report) -> ReportTable:
    kinds = list(report.systems[0].confusion.kinds())
    rows = [[s.name, *(f"{n:,}" for n in s.confusion.kinds().values())] for s in report.systems]
    return ReportTable(["prediction", *kinds], rows)


def _errors(system: SystemResult) -> list[Section]:
    explanation = "Rows are gold labels, columns predicted labels; + counts entities with other boundaries."
    blocks = [Paragraph(explanation), confusion_grid(system.confusion)]
    parts = [Section(3, f"Confusion, {system.name}", blocks)]
    if system.errors:
        parts.append(Section(3, f"Most frequent errors, {system.name}", [ErrorList(system.errors)]))
    return parts


def confusion_grid(confusion: Confusion) -> ConfusionGrid:
    """Convert the counts of a confusion matrix to a grid for display.

    Args:
        confusion: Counts by gold and predicted label.

    Returns:
        Grid with spurious entities in the last row and missed ones in the last column.
    """
    n = len(confusion.labels)
    totals = confusion.counts.sum(axis=1).clip(1).tolist()

    def cell(i: int, j: int) -> ConfusionCell | None:
        if i == j == n:
            return None
        same = int(confusion.same_boundaries[i, j])
        other = int(confusion.other_boundaries[i, j]) if max(i, j) < n else 0
        return ConfusionCell(same, other, (same + other) / totals[i])

    names = (*confusion.labels, "spurious")
    rows = [(name, [cell(i, j) for j in range(n + 1)]) for i, name in enumerate(names)]
    return ConfusionGrid(["gold \\ predicted", *confusion.labels, "missed"], rows)


def _calibration(report: Report) -> ReportTable:
    results = [(system.name, system.calibration) for system in report.systems if system.calibration is not None]
    rows = [[name, f"{c.n_entities:,}", *(f"{value:.4f}" for value in c.measures.values())] for name, c in results]
    return ReportTable(["prediction", "entities", *results[0][1].measures], rows)


# --- errors


def describe_error(error: FrequentError) -> str:
    """Return a one-line description of an error: its kind, gold entity and predicted entity.

    Args:
        error: The error.

    Returns:
        The kind, the gold entity and the predicted entity.
    """
    gold, predicted = f"{error.gold_text} {error.gold_label}", f"{error.predicted_text} {error.predicted_label}"
    if error.kind == "missed":
        return f"missed: {gold}"
    if error.kind == "spurious":
        return f"spurious: {predicted}"
    return f"{error.kind}: {gold} -> {predicted}"


def split_example(example: ErrorExample) -> list[tuple[str, str]]:
    """Split the text of an example at the entity boundaries.

    Args:
        example: The example.

    Returns:
        Pieces of the text, each with "g" inside the gold entity, "p" inside the predicted one, "g p" inside both, else
        "".
    """
    ranges = {"g": example.gold, "p": example.predicted}
    boundaries = sorted({0, len(example.text), *(at for each in ranges.values() if each for at in each)})
    return [
        (
            example.text[start:end],
            " ".join(key for key, each in ranges.items() if each and each[0] <= start and end <= each[1]),
        )
        for start, end in pairwise(boundaries)
    ]
