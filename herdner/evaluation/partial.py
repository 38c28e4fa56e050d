"""Partial matches by nervaluate: the four schemes of SemEval-2013 task 9.1 (Segura-Bedmar et al. 2013)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from herdner.base.extras import import_extra
from herdner.evaluation.scores import DocumentSpans, pair_documents
from herdner.text.document import Document
from herdner.text.tags import Span

MatchingScheme = Literal["strict", "exact", "partial", "ent_type"]
MATCHING_SCHEMES: tuple[MatchingScheme, ...] = get_args(MatchingScheme)


@dataclass(frozen=True, slots=True)
class PartialRow:
    """Counts and scores of a prediction under one matching scheme of SemEval-2013.

    Attributes:
        matching: Matching scheme.
        correct: Number of predicted entities that match a gold entity.
        incorrect: Number of predicted entities that overlap a gold entity without matching it.
        partial: Number of predicted entities that match a gold entity partially. Each counts one half.
        missed: Number of gold entities that overlap no predicted entity.
        spurious: Number of predicted entities that overlap no gold entity.
        precision: In [0, 1].
        recall: In [0, 1].
        f1: In [0, 1].
    """

    matching: MatchingScheme
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
    """Scores of a prediction under the four matching schemes of SemEval-2013.

    A predicted entity is correct under a scheme if:

    - strict: a gold entity has the same boundaries and label;
    - exact: a gold entity has the same boundaries;
    - partial: it overlaps a gold entity; it counts one half unless the boundaries are equal;
    - ent_type: it overlaps a gold entity with the same label.

    Attributes:
        overall: One row for each scheme, for all entities.
        per_label: The rows of each label.
    """

    overall: tuple[PartialRow, ...]
    per_label: dict[str, tuple[PartialRow, ...]]


def partial_scores(gold: Sequence[Document], predicted: Sequence[Document]) -> PartialScores:
    """Score predicted documents under the four matching schemes of SemEval-2013.

    Args:
        gold: Gold documents.
        predicted: Predicted documents with the same tokens and order. Their tags are read as `herdner.evaluate` does.

    Returns:
        The scores.

    Raises:
        MissingExtra: The package nervaluate is not installed.
        ValueError: The documents differ in number or tokens, or a gold document is only partially annotated.
    """
    nervaluate = import_extra("nervaluate", "partial matches need nervaluate")
    groups = [group for pair in pair_documents(gold, predicted) for group in _sentence_groups(pair)]
    labels = sorted({span.label for group in groups for spans in group for span in spans})
    gold_records, predicted_records = ([_records(group[side]) for group in groups] for side in (0, 1))
    if not labels:
        empty = tuple(PartialRow(matching, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0) for matching in MATCHING_SCHEMES)
        return PartialScores(empty, {})
    results = nervaluate.Evaluator(gold_records, predicted_records, tags=labels, loader="dict").evaluate()
    by_label = results["entities"]
    return PartialScores(_rows(results["overall"]), {label: _rows(by_label[label]) for label in labels})


def _sentence_groups(pair: DocumentSpans) -> list[tuple[list[Span], list[Span]]]:
    """Return the gold and predicted spans of each sentence; sentences that share a span are treated as one.

    nervaluate takes quadratic time in the length of its input. These groups make the time linear and do not change the
    result, because only overlapping spans are matched.
    """
    inside = {at for spans in pair[:2] for start, end, _ in spans for at in range(start + 1, end)}
    boundaries = [boundary for boundary in pair.sentence_offsets.tolist() if boundary not in inside]
    groups: dict[int, tuple[list[Span], list[Span]]] = defaultdict(lambda: ([], []))
    for side in (0, 1):
        for span in pair[side]:
            groups[bisect_right(boundaries, span.start)][side].append(span)
    return [group for _, group in sorted(groups.items())]


def _records(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Convert spans to the dicts that nervaluate expects, in which the end is the index of the last token."""
    return [{"label": span.label, "start": span.start, "end": span.end - 1} for span in spans]


def _rows(results: dict[str, Any]) -> tuple[PartialRow, ...]:
    rows: list[PartialRow] = []
    for matching in MATCHING_SCHEMES:
        r = results[matching]
        shares = float(r.precision), float(r.recall), float(r.f1)
        rows.append(PartialRow(matching, r.correct, r.incorrect, r.partial, r.missed, r.spurious, *shares))
    return tuple(rows)
