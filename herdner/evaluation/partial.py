"""Partial matches by nervaluate (extra ``evaluate``): four schemes of SemEval-2013 task 9.1 (Segura-Bedmar et al)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

from herdner.base.extras import import_extra
from herdner.evaluation.scores import Pair, pair_up
from herdner.text.document import Document
from herdner.text.tags import Span

Matching = Literal["strict", "exact", "partial", "ent_type"]
MATCHINGS: tuple[Matching, ...] = get_args(Matching)


@dataclass(frozen=True, slots=True)
class PartialRow:
    """One scheme; precision, recall and F1 lie in [0, 1]. A partial match counts half."""

    matching: Matching
    correct: int
    incorrect: int
    partial: int
    missed: int
    spurious: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class PartialScores:
    """``overall`` holds a row for each scheme, ``classes`` the same for the entities of one label alone.

    Attributes:
        strict: Borders and label are right.
        exact: Borders are right, whatever the label.
        partial: Borders overlap, whatever the label.
        ent_type: Borders overlap and the label is right.
    """

    overall: tuple[PartialRow, ...]
    classes: dict[str, tuple[PartialRow, ...]]


def partial_matches(gold: Sequence[Document], predicted: Sequence[Document]) -> PartialScores:
    """What nervaluate says of predicted documents, read as `evaluate` reads them.

    Raises:
        MissingExtra: The package nervaluate is not installed.
        ValueError: Documents do not match.
    """
    nervaluate = import_extra("nervaluate", "partial matches need nervaluate")
    stretches = [stretch for pair in pair_up(gold, predicted) for stretch in _stretches(pair)]
    labels = sorted({span.label for stretch in stretches for spans in stretch for span in spans})
    right, guess = ([_records(stretch[side]) for stretch in stretches] for side in (0, 1))
    if not labels:
        empty = tuple(PartialRow(matching, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0) for matching in MATCHINGS)
        return PartialScores(empty, {})
    results = nervaluate.Evaluator(right, guess, tags=labels, loader="dict").evaluate()
    by_label = results["entities"]
    return PartialScores(_rows(results["overall"]), {label: _rows(by_label[label]) for label in labels})


def _stretches(pair: Pair) -> Iterator[tuple[list[Span], list[Span]]]:
    """Spans of both sides, sentence by sentence; sentences that a span joins stay together.

    Only spans that overlap are matched, so that the figures are those of whole documents, in time that is linear.
    """
    borders = [int(border) for border in pair.sentence_offsets]
    inside = {at for spans in pair[:2] for start, end, _ in spans for at in range(start + 1, end)}
    kept = [border for border in borders if border not in inside]
    sides = [iter(spans) for spans in pair[:2]]
    waiting = [next(side, None) for side in sides]
    for _, end in pairwise(kept):
        found: tuple[list[Span], list[Span]] = ([], [])
        for k in (0, 1):
            while (span := waiting[k]) is not None and span.start < end:
                found[k].append(span)
                waiting[k] = next(sides[k], None)
        if found[0] or found[1]:
            yield found


def _records(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """As nervaluate takes them: ends belong to the span."""
    return [{"label": span.label, "start": span.start, "end": span.end - 1} for span in spans]


def _rows(results: dict[str, Any]) -> tuple[PartialRow, ...]:
    return tuple(_row(matching, results[matching]) for matching in MATCHINGS)


def _row(matching: Matching, found: Any) -> PartialRow:
    shares = float(found.precision), float(found.recall), float(found.f1)
    return PartialRow(matching, found.correct, found.incorrect, found.partial, found.missed, found.spurious, *shares)
