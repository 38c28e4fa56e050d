"""Precision, recall and F1 of predicted entities, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.messages import format_count
from herdner.evaluation.tabular import Tabular
from herdner.text.document import Document
from herdner.text.tags import Scheme, Span, detect_scheme, spans_from_tags

KNOWN_LABELS = "micro, known labels"
"""Name of the row with the micro average over the labels that the tagger knows."""
_MAX_CELLS = 1 << 22  # array elements that resampling may hold in memory at once


@dataclass(frozen=True, slots=True)
class LabelScores:
    """Precision, recall and F1 for one label, for all entities ("micro") or averaged over the labels ("macro").

    Attributes:
        label: Entity label, "micro" or "macro".
        precision: Share of the predicted entities that are correct, in [0, 1]; 0 if nothing was predicted.
        recall: Share of the gold entities that were predicted, in [0, 1]; 0 if there is no gold entity.
        f1: Harmonic mean of precision and recall, in [0, 1].
        support: Number of gold entities.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class Interval:
    """Percentile bootstrap interval of a micro F1, or of the difference between two micro F1 values.

    Attributes:
        low: Lower bound.
        high: Upper bound.
        level: Confidence level, in (0, 1).
        unit: Unit that was resampled: "document" or "sentence".
        n_resamples: Number of bootstrap samples.
    """

    low: float
    high: float
    level: float
    unit: str
    n_resamples: int


@dataclass(frozen=True, slots=True)
class Scores(Tabular):
    """Result of `evaluate`: precision, recall and F1 of each label and in total.

    Attributes:
        micro: Scores of all entities together.
        macro: Mean of the scores of all labels that occur in the gold documents. Labels that occur only in the
            predicted documents affect only ``micro``.
        per_label: Scores of each label that occurs in the gold or the predicted documents, sorted by label.
        n_documents: Number of documents.
        n_sentences: Number of sentences.
        n_tokens: Number of tokens.
        interval: Bootstrap interval of the micro F1; None if it was not computed.
        tokens_per_second: Speed of the tagger; None if it was not measured.
        micro_known: Micro average over the labels that the tagger knows; None if it knows all gold labels.
        unknown_labels: Number of gold entities of each label that the tagger does not know. ``micro`` and ``macro``
            count these entities as missed.
    """

    header: ClassVar[tuple[str, ...]] = ("label", "precision", "recall", "F1", "support")

    micro: LabelScores
    macro: LabelScores
    per_label: tuple[LabelScores, ...]
    n_documents: int
    n_sentences: int
    n_tokens: int
    interval: Interval | None = None
    tokens_per_second: float | None = None
    micro_known: LabelScores | None = None
    unknown_labels: Mapping[str, int] = field(default_factory=dict[str, int])

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row per label, the macro average, the micro average of the model's labels, and that of all labels.

        Returns:
            Cells of each row. The micro average of the model's labels is present only if the model lacks a gold label.
        """
        labels = [(row.label, "-", "-", "-", f"{row.support:,}") if row.label in self.unknown_labels else _cells(row)
                  for row in self.per_label]  # fmt: skip
        averages = [row for row in (self.macro, self.micro_known, self.micro) if row is not None]
        return [*labels, *map(_cells, averages)]

    def summary(self) -> str:
        """Return one line with the numbers of documents and tokens, the bootstrap interval of F1, and the speed."""
        parts: list[str] = []
        if self.unknown_labels:
            counts = ", ".join(f"{n:,} {label}" for label, n in self.unknown_labels.items())
            labels = "a label" if len(self.unknown_labels) == 1 else "labels"
            parts.append(
                f"gold entities with {labels} that the model does not know: {counts} (micro and macro count them as "
                f"missed, '{KNOWN_LABELS}' leaves them out)"
            )
        if not self.micro.support:
            parts.append("the gold documents have no entity")
        sizes = format_count(self.n_documents, "document"), format_count(self.n_sentences, "sentence")
        parts.append(", ".join([*sizes, format_count(self.n_tokens, "token")]))
        if self.interval is not None:
            low, high, level = self.interval.low, self.interval.high, self.interval.level
            parts.append(f"{level:.0%} interval of F1 {low:.2%} to {high:.2%}, by bootstrap over {self.interval.unit}s")
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens per second")
        return "; ".join(parts)


def _cells(row: LabelScores) -> tuple[str, ...]:
    return row.label, f"{row.precision:.2%}", f"{row.recall:.2%}", f"{row.f1:.2%}", f"{row.support:,}"


class DocumentSpans(NamedTuple):
    """Gold and predicted spans of one document.

    Attributes:
        gold: Gold spans, in token indices.
        predicted: Predicted spans, in token indices.
        sentence_offsets: int64[n_sentences + 1], index of the first token of each sentence, then the token count.
    """

    gold: list[Span]
    predicted: list[Span]
    sentence_offsets: NDArray[np.int64]


def evaluate(
    gold: Iterable[Document], predicted: Iterable[Document], *, scheme: Scheme | None = None,
    rng: np.random.Generator | None = None, n_resamples: int = 1000, level: float = 0.95,
    tokens_per_second: float | None = None, known_labels: Iterable[str] | None = None,
) -> Scores:  # fmt: skip
    """Score predicted documents against gold documents.

    A predicted entity is correct if a gold entity has the same boundaries and the same label, as in seqeval's strict
    mode. If a predicted document has tags, only spans whose tags are well formed count. If it has no tags, its entities
    count.

    Args:
        gold: Gold documents.
        predicted: Predicted documents with the same tokens, in the same order.
        scheme: Tag scheme of the predicted documents; None detects it. Every IOB1 sequence is well formed.
        rng: Random generator of the bootstrap; None computes no interval. The bootstrap resamples documents, or the
            sentences of a single document. An entity belongs to the sentence in which it begins.
        n_resamples: Number of bootstrap samples.
        level: Confidence level of the interval, in (0, 1).
        tokens_per_second: Speed of the tagger, which is copied into the result.
        known_labels: Labels that the tagger can predict; None means all.

    Returns:
        The scores.

    Raises:
        ValueError: The documents differ in number or tokens, or a gold document is only partially annotated.
        TypeError: A value is not a document.
    """
    gold, predicted = list(gold), list(predicted)
    for document in (*gold, *predicted):
        if not isinstance(document, Document):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
            raise TypeError(f"`evaluate` compares documents, got {document!r:.60}; read or tag documents first")
    pairs = list(pair_documents(gold, predicted, scheme))
    labels, counts = count_entities(pairs)
    totals = counts.sum(axis=0)
    micro, macro, per_label = _label_scores(labels, totals)
    unknown: dict[str, int] = {}
    if known_labels is not None:
        known = set(known_labels)
        unknown = {row.label: row.support for row in per_label if row.support and row.label not in known}
    micro_known = None
    if unknown:
        rows = [i for i, label in enumerate(labels) if label in unknown]
        totals[np.ix_(rows, [0, 2])] = 0  # removes gold entities with unknown labels, but no predicted entities
        micro_known = replace(_label_scores(labels, totals)[0], label=KNOWN_LABELS)
    return Scores(
        micro, macro, per_label, n_documents=len(pairs),
        n_sentences=sum(len(pair.sentence_offsets) - 1 for pair in pairs),
        n_tokens=sum(int(pair.sentence_offsets[-1]) for pair in pairs),
        interval=None if rng is None else bootstrap_interval(pairs, rng, n_resamples, level),
        tokens_per_second=tokens_per_second, micro_known=micro_known, unknown_labels=unknown,
    )  # fmt: skip


def pair_documents(
    gold: Sequence[Document], predicted: Sequence[Document], scheme: Scheme | None = None
) -> Iterator[DocumentSpans]:
    """Yield the gold and predicted spans of each document, which are the spans that `evaluate` compares.

    Args:
        gold: Gold documents.
        predicted: Predicted documents with the same tokens, in the same order.
        scheme: Tag scheme of the predicted documents; None detects it.

    Yields:
        The spans of each pair of documents.

    Raises:
        ValueError: The documents differ in number or tokens, or a gold document is only partially annotated.
    """
    if len(gold) != len(predicted):
        counts = format_count(len(gold), "gold document"), format_count(len(predicted), "predicted document")
        raise ValueError(f"{' but '.join(counts)}; predict each document once")
    if scheme is None:
        tagged = (document for document in predicted if document.source_tags)
        scheme = detect_scheme(tags for document in tagged for tags in document.sentence_tags())
    strict = None if scheme == "iob1" else scheme
    for reference, guess in zip(gold, predicted, strict=True):
        if reference.partial is not None:
            raise ValueError(f"document {reference.id!r} is only partially annotated; annotate it fully to score it")
        if list(reference.tokens) != list(guess.tokens):
            raise ValueError(
                f"document {reference.id!r}: the predicted document has other tokens than the gold document; align them"
                " with herdner.evaluation.align.align_documents"
            )
        if guess.source_tags is None:
            spans = guess.spans or []
        else:
            spans = spans_from_tags(guess.source_tags, guess.sentence_offsets, strict=strict)
        yield DocumentSpans(list(reference.spans or ()), list(spans), reference.sentence_offsets)


def _label_scores(
    labels: Sequence[str], totals: NDArray[np.int64]
) -> tuple[LabelScores, LabelScores, tuple[LabelScores, ...]]:
    """Return the micro average, the macro average and the scores of each label.

    ``totals`` has the numbers of correct, predicted and gold entities of each label, int64[n_labels, 3].
    """

    def scores(label: str, counts: NDArray[np.int64]) -> LabelScores:
        n_correct, n_predicted, n_gold = counts.tolist()
        shares = n_correct / max(1, n_predicted), n_correct / max(1, n_gold), float(f1_from_counts(counts))
        return LabelScores(label, *shares, support=n_gold)

    per_label = tuple(scores(label, counts) for label, counts in zip(labels, totals, strict=True))
    micro = scores("micro", totals.sum(axis=0))
    gold = [row for row in per_label if row.support]
    means = (sum(getattr(row, name) for row in gold) / max(1, len(gold)) for name in ("precision", "recall", "f1"))
    return micro, LabelScores("macro", *means, support=micro.support), per_label


def count_entities(pairs: Sequence[DocumentSpans], unit: str = "document") -> tuple[list[str], NDArray[np.int64]]:
    """Count the correct, predicted and gold entities of each label in each unit (document or sentence).

    Args:
        pairs: Spans of each document.
        unit: "document" or "sentence". An entity belongs to the sentence in which it begins.

    Returns:
        The sorted labels, and the counts ``int64[n_units, n_labels, 3]``: correct, predicted and gold entities.
    """
    labels = sorted({span.label for pair in pairs for spans in (pair.gold, pair.predicted) for span in spans})
    index = {label: i for i, label in enumerate(labels)}
    sizes = [1 if unit == "document" else len(pair.sentence_offsets) - 1 for pair in pairs]
    counts = np.zeros((sum(sizes), len(labels), 3), np.int64)
    first = 0
    for pair, size in zip(pairs, sizes, strict=True):
        correct = set(pair.gold) & set(pair.predicted)
        for column, spans in enumerate((correct, pair.predicted, pair.gold)):
            for span in spans:
                inner = 0 if size == 1 else int(np.searchsorted(pair.sentence_offsets, span.start, side="right")) - 1
                counts[first + inner, index[span.label], column] += 1
        first += size
    return labels, counts


def f1_from_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the F1 for counts of correct, predicted and gold entities.

    Args:
        counts: int64[..., 3], numbers of correct, predicted and gold entities.

    Returns:
        float64[...], in [0, 1]; 0 if there is neither a predicted nor a gold entity.
    """
    total = counts[..., 1] + counts[..., 2]
    return 2 * counts[..., 0] / np.maximum(total, 1)


def bootstrap_interval(
    pairs: Sequence[DocumentSpans], rng: np.random.Generator, n_resamples: int = 1000, level: float = 0.95
) -> Interval | None:
    """Return the percentile bootstrap interval of the micro F1 of a prediction (Efron & Tibshirani 1993, ch. 13).

    Args:
        pairs: Spans of each document. The sentences of a single document are resampled.
        rng: Random generator.
        n_resamples: Number of bootstrap samples.
        level: Confidence level, in (0, 1).

    Returns:
        The interval; None if there are fewer than two units to resample.
    """
    unit = "document" if len(pairs) > 1 else "sentence"
    counts = count_entities(pairs, unit)[1].sum(axis=1)  # [n_units, 3]
    if len(counts) < 2 or n_resamples < 1:
        return None
    f1 = np.concatenate([f1_from_counts(sums) for sums in bootstrap_sums(counts, rng, n_resamples)])
    low, high = np.quantile(f1, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low, high, level, unit, n_resamples)


def bootstrap_sums(
    counts: NDArray[np.int64], rng: np.random.Generator, n_resamples: int
) -> Iterator[NDArray[np.int64]]:
    """Draw bootstrap samples of the rows of ``counts`` with replacement, and yield the column sums of each sample.

    Units with equal counts form a group, and the number of times that each group is drawn comes from a multinomial
    distribution. The distribution of the sums is the same, and the computation is fast even for very many units.

    Args:
        counts: int64[n_units, n_columns].
        rng: Random generator.
        n_resamples: Number of bootstrap samples.

    Yields:
        Batches ``int64[batch size, n_columns]``.
    """
    rows, multiplicity = distinct_rows(counts)
    for size in batch_sizes(n_resamples, len(rows)):
        yield rng.multinomial(len(counts), multiplicity / len(counts), size=size) @ rows


def distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of an array in the order of their first occurrence, and the count of each row.

    Args:
        rows: int64[n, n_columns].

    Returns:
        int64[n_distinct, n_columns] and int64[n_distinct].
    """
    distinct, first, multiplicity = np.unique(rows, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return distinct[order], multiplicity[order]


def batch_sizes(n_resamples: int, width: int) -> Iterator[int]:
    """Divide bootstrap samples into batches that fit into memory: yield the size of each batch.

    Args:
        n_resamples: Total number of resamples.
        width: Number of array elements that one resample needs.

    Yields:
        Number of resamples in each batch.
    """
    largest = max(1, _MAX_CELLS // max(1, width))
    for done in range(0, n_resamples, largest):
        yield min(largest, n_resamples - done)
