"""Errors of a tagger: matches of gold and predicted spans, confusion of labels, the most frequent errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from herdner.evaluation.scores import pair_documents
from herdner.text.document import Document
from herdner.text.tags import Span

_CONTEXT = 45  # characters before and after the entities of an example


MatchKind = Literal["correct", "label", "boundaries", "label and boundaries", "missed", "spurious"]
"""Kind of a match: "correct", or the kind of the error."""
MATCH_KINDS: tuple[MatchKind, ...] = get_args(MatchKind)


class SpanMatch(NamedTuple):
    """Pair of a gold span and its matching predicted span; the partner of a span without a match is None.

    Attributes:
        gold: Gold span; None if the predicted span is spurious.
        predicted: Predicted span; None if the gold span was missed.
    """

    gold: Span | None
    predicted: Span | None

    @property
    def kind(self) -> MatchKind:
        """Kind of the match, such as "missed" or "spurious"."""
        if self.gold is None:
            return "spurious"
        if self.predicted is None:
            return "missed"
        same_boundaries = self.gold[:2] == self.predicted[:2]
        if self.gold.label == self.predicted.label:
            return "correct" if same_boundaries else "boundaries"
        return "label" if same_boundaries else "label and boundaries"


class DocumentMatch(NamedTuple):
    """Match of a gold span and a predicted span, with the index of the document that contains both spans.

    Attributes:
        document: Index of the document.
        match: The match.
    """

    document: int
    match: SpanMatch


def match_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[SpanMatch]:
    """Match the gold spans and predicted spans of a document one to one.

    Only spans that share tokens are matched. Pairs with equal boundaries take precedence, then pairs with equal labels,
    then pairs that share more tokens, then earlier pairs. The other spans are missed or spurious, even if they overlap
    a matched span.

    Args:
        gold: Disjoint gold spans, sorted.
        predicted: Disjoint predicted spans, sorted.

    Returns:
        Matches in the order of the text. Every span is in exactly one of them.
    """
    candidates: list[tuple[bool, bool, int, int, int]] = []
    for i, j in _overlaps(gold, predicted):
        reference, guess = gold[i], predicted[j]
        shared = min(reference.end, guess.end) - max(reference.start, guess.start)
        candidates.append((reference[:2] != guess[:2], reference.label != guess.label, -shared, i, j))
    partner: dict[int, int] = {}  # index of the predicted span by index of the gold span
    matched: set[int] = set()  # indices of predicted spans
    for *_, i, j in sorted(candidates):
        if i not in partner and j not in matched:
            partner[i] = j
            matched.add(j)
    matches = [SpanMatch(span, predicted[partner[i]] if i in partner else None) for i, span in enumerate(gold)]
    matches += [SpanMatch(None, span) for j, span in enumerate(predicted) if j not in matched]
    return sorted(matches, key=lambda match: match.gold or match.predicted or ())


def _overlaps(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the index pairs of gold and predicted spans that share tokens."""
    i = j = 0
    while i < len(gold) and j < len(predicted):
        if gold[i].start < predicted[j].end and predicted[j].start < gold[i].end:
            yield i, j
        if gold[i].end <= predicted[j].end:
            i += 1
        else:
            j += 1


def match_documents(gold: Sequence[Document], predicted: Sequence[Document]) -> list[DocumentMatch]:
    """Match the gold and predicted spans of all documents; the spans are those that `evaluate` compares.

    Args:
        gold: Gold documents.
        predicted: Predicted documents with the same tokens, in the same order.

    Returns:
        Matches in the order of the documents and the text.

    Raises:
        ValueError: The documents differ in number or tokens, or a gold document is only partially annotated.
    """
    pairs = pair_documents(gold, predicted)
    return [DocumentMatch(i, match) for i, pair in enumerate(pairs) for match in match_spans(pair.gold, pair.predicted)]


def find_fixed_errors(before: Iterable[DocumentMatch], after: Iterable[DocumentMatch]) -> list[DocumentMatch]:
    """Find the errors of the prediction ``before`` that are corrected in the prediction ``after``.

    A missed or wrongly predicted gold span is fixed if the other prediction is correct. A spurious span is fixed if
    the other prediction does not contain it.

    Args:
        before: Matches of the first prediction.
        after: Matches of the second prediction of the same documents.

    Returns:
        The matches of ``before`` that are errors and are fixed in ``after``.
    """
    correct: set[tuple[int, Span | None]] = set()
    predicted: set[tuple[int, Span | None]] = set()
    for document, match in after:
        predicted.add((document, match.predicted))
        if match.kind == "correct":
            correct.add((document, match.gold))
    return [
        DocumentMatch(document, match)
        for document, match in before
        if match.kind != "correct"
        and ((document, match.gold) in correct if match.gold else (document, match.predicted) not in predicted)
    ]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Confusion matrix: number of matched entities for each pair of gold label and predicted label.

    Attributes:
        labels: L labels of the gold and predicted entities, sorted.
        same_boundaries: int64[L + 1, L + 1], number of matches with equal boundaries by gold label (row) and predicted
            label (column). The last row counts spurious entities, the last column missed entities.
        other_boundaries: int64[L, L], number of matches with overlapping, different boundaries by gold label (row) and
            predicted label (column).
    """

    labels: tuple[str, ...]
    same_boundaries: NDArray[np.int64]
    other_boundaries: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of matches with equal or overlapping boundaries, by gold label (row) and predicted label (column).

        int64[L + 1, L + 1] for L labels. The last row counts spurious entities, and the last column missed entities.
        """
        total = np.array(self.same_boundaries)
        total[:-1, :-1] += self.other_boundaries
        return total

    def kinds(self) -> dict[MatchKind, int]:
        """Return the number of matches of each kind, such as "missed", as a dict."""
        same, other = self.same_boundaries, self.other_boundaries
        n_correct, n_shifted = int(np.trace(same[:-1, :-1])), int(np.trace(other))
        matched = (n_correct, int(same[:-1, :-1].sum()) - n_correct, n_shifted, int(other.sum()) - n_shifted)
        return dict(zip(MATCH_KINDS, (*matched, int(same[:, -1].sum()), int(same[-1].sum())), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the confusion as a dict: labels, counts of entities, and number of matches of each kind."""
        return {
            "labels": list(self.labels),
            "same_boundaries": self.same_boundaries.tolist(),
            "other_boundaries": self.other_boundaries.tolist(),
            "kinds": self.kinds(),
        }


def count_confusion(matches: Iterable[DocumentMatch]) -> Confusion:
    """Count the matches for each pair of gold label and predicted label.

    Args:
        matches: Result of `match_documents`.

    Returns:
        The counts.
    """
    pairs = [match for _, match in matches]
    labels = tuple(sorted({span.label for match in pairs for span in match if span is not None}))
    index = {label: i for i, label in enumerate(labels)}
    n = len(labels)
    same, other = np.zeros((n + 1, n + 1), np.int64), np.zeros((n, n), np.int64)
    for match in pairs:
        i = n if match.gold is None else index[match.gold.label]
        j = n if match.predicted is None else index[match.predicted.label]
        (other if "boundaries" in match.kind else same)[i, j] += 1
    return Confusion(labels, same, other)


@dataclass(frozen=True, slots=True)
class ErrorExample:
    """Occurrence of an error, with the text around it.

    Attributes:
        document: Id of the document.
        text: Text around the error.
        gold: Start and end offset of the gold entity in ``text``; None if there is no gold entity.
        predicted: Start and end offset of the predicted entity in ``text``; None if there is no predicted entity.
    """

    document: str | None
    text: str
    gold: tuple[int, int] | None
    predicted: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class FrequentError:
    """Frequent error of a prediction, and the occurrences of the error.

    Errors are equal if their kind, texts and labels are equal.

    Attributes:
        kind: Kind of the error.
        gold_text: Text of the gold entity; None if there is none.
        gold_label: Label of the gold entity; None if there is none.
        predicted_text: Text of the predicted entity; None if there is none.
        predicted_label: Label of the predicted entity; None if there is none.
        count: Number of occurrences.
        n_documents: Number of documents in which the error occurs.
        examples: Some occurrences.
    """

    kind: MatchKind
    gold_text: str | None
    gold_label: str | None
    predicted_text: str | None
    predicted_label: str | None
    count: int
    n_documents: int
    examples: tuple[ErrorExample, ...]


def find_frequent_errors(
    matches: Iterable[DocumentMatch], documents: Sequence[Document], *, n: int | None = 20, n_examples: int = 3
) -> list[FrequentError]:
    """Find the most frequent errors of a prediction.

    Args:
        matches: Result of `match_documents`.
        documents: Gold documents.
        n: Largest number of errors to return; None returns all.
        n_examples: Largest number of examples for each error. They come from different documents if possible.

    Returns:
        Errors by decreasing count; errors with equal counts are in the order of the text.
    """
    groups: dict[tuple[str | None, ...], list[DocumentMatch]] = defaultdict(list)
    for error in matches:
        if error.match.kind != "correct":
            groups[_error_key(documents[error.document], error.match)].append(error)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))[:n]
    return [_frequent_error(key, errors, documents, n_examples) for key, errors in largest]


def _error_key(document: Document, match: SpanMatch) -> tuple[str | None, ...]:
    parts: list[str | None] = [match.kind]
    for span in match:
        parts += [None, None] if span is None else [span_text(document, span), span.label]
    return tuple(parts)


def span_text(document: Document, span: Span) -> str:
    """Return the text of a span, in which one space replaces each run of white space.

    Args:
        document: Document of the span.
        span: Span in token indices.

    Returns:
        The text.
    """
    return " ".join(document.text[slice(*_characters(document, span))].split())


def _frequent_error(
    key: tuple[Any, ...], errors: Sequence[DocumentMatch], documents: Sequence[Document], n_examples: int
) -> FrequentError:
    first = {error.document: error for error in reversed(errors)}
    occurrences = [first[i] for i in sorted(first)]
    occurrences += [error for error in errors if first[error.document] is not error]
    examples = tuple(_example(documents[e.document], e.match) for e in occurrences[:n_examples])
    return FrequentError(*key, count=len(errors), n_documents=len(first), examples=examples)


def _example(document: Document, match: SpanMatch) -> ErrorExample:
    ranges = [None if span is None else _characters(document, span) for span in match]
    present = [each for each in ranges if each is not None]
    begin = max(0, min(start for start, _ in present) - _CONTEXT)
    end = min(len(document.text), max(end for _, end in present) + _CONTEXT)
    gold, predicted = (None if each is None else (each[0] - begin, each[1] - begin) for each in ranges)
    return ErrorExample(document.id, document.text[begin:end], gold, predicted)


def _characters(document: Document, span: Span) -> tuple[int, int]:
    return int(document.token_starts[span.start]), int(document.token_ends[span.end - 1])
