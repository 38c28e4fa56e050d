"""Scores of predicted entities: precision, recall and F1 by seqeval in strict mode, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.extras import check_extra
from herdner.evaluation.tabular import Tabulated
from herdner.text.document import Document
from herdner.text.tags import Scheme, Span, detect_scheme, spans_from_tags, tags_from_spans

KNOWN = "micro, known classes"
_CELLS = 1 << 22  # numbers held at once while resampling


@dataclass(frozen=True, slots=True)
class ClassScores:
    """One class, all together ("micro") or the mean of the classes ("macro"). Precision, recall and F1 lie in [0, 1],
    0 where they are undefined.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int  # entities in the gold standard


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile bootstrap interval of the micro F1, or of the difference between two."""

    low: float
    high: float
    level: float
    unit: str  # what was resampled: "document" or "sentence"
    n_resamples: int


@dataclass(frozen=True, slots=True)
class Scores(Tabulated):
    """What an evaluation says. ``macro`` is the mean over the classes, ``classes`` are those of either side, sorted.

    Where the tagger is known not to know some class of the gold standard, ``unknown`` has the number of gold entities
    of each: ``micro`` and ``macro`` count them as missed, and ``known`` leaves them out.
    """

    header: ClassVar[tuple[str, ...]] = ("class", "precision", "recall", "F1", "support")

    micro: ClassScores
    macro: ClassScores
    classes: tuple[ClassScores, ...]
    n_documents: int
    n_sentences: int
    n_tokens: int
    interval: Interval | None = None
    tokens_per_second: float | None = None
    known: ClassScores | None = None
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])

    def rows(self) -> list[tuple[str, ...]]:
        """The classes, the macro and the micro average; before the last that of the known classes, if some are not."""
        classes = [(*_cells(c)[:1], "-", "-", "-", f"{c.support:,}") if c.label in self.unknown else _cells(c)
                   for c in self.classes]  # fmt: skip
        averages = (self.macro, self.micro) if self.known is None else (self.macro, self.known, self.micro)
        return [*classes, *map(_cells, averages)]

    def summary(self) -> str:
        """Sizes, interval and speed in one line."""
        parts = [self._of_unknown()] if self.unknown else []
        parts += [] if self.micro.support else ["the gold standard holds no name"]
        parts += [f"{self.n_documents:,} documents, {self.n_sentences:,} sentences, {self.n_tokens:,} tokens"]
        if self.interval is not None:
            low, high, level = self.interval.low, self.interval.high, self.interval.level
            parts.append(f"{level:.0%} interval of F1 {low:.2%} to {high:.2%}, by bootstrap over {self.interval.unit}s")
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens per second")
        return "; ".join(parts)

    def _of_unknown(self) -> str:
        counts = ", ".join(f"{n:,} {label}" for label, n in self.unknown.items())
        classes = "a class" if len(self.unknown) == 1 else "classes"
        missed = f"micro and macro count them as missed, '{KNOWN}' leaves them out"
        return f"gold names of {classes} that the model does not know: {counts} ({missed})"


def _cells(row: ClassScores) -> tuple[str, ...]:
    return row.label, f"{row.precision:.2%}", f"{row.recall:.2%}", f"{row.f1:.2%}", f"{row.support:,}"


class Pair(NamedTuple):
    """Gold and predicted token spans of one document."""

    gold: list[Span]
    predicted: list[Span]
    sentence_offsets: NDArray[np.int64]


def evaluate(
    gold: Iterable[Document],
    predicted: Iterable[Document],
    *,
    scheme: Scheme | None = None,
    rng: np.random.Generator | None = None,
    n_resamples: int = 1000,
    level: float = 0.95,
    tokens_per_second: float | None = None,
    known: Iterable[str] | None = None,
) -> Scores:
    """Scores of predicted documents against gold documents with the same tokens, in the same order.

    An entity counts when both borders and the class are right (seqeval, ``mode="strict"``). The gold entities are those
    of the gold documents, laid on tokens. Predicted tags are read strictly in their ``scheme`` (None: as detected): of
    malformed sequences only the well-formed spans count, as in seqeval; IOB1 has no malformed sequences. Without tags
    the predicted entities count.

    With ``rng``, the interval resamples documents (sentences, when there is only one document; an entity then belongs
    to the sentence where it begins). ``known`` are the classes that the tagger knows, if it does not know all.

    Raises:
        ValueError: Documents differ in number or tokens.
    """
    pairs = list(pair_up(list(gold), list(predicted), scheme))
    micro, macro, classes = _seqeval(pairs)
    interval = None if rng is None else bootstrap_interval(pairs, rng, n_resamples, level)
    n_sentences = sum(len(pair.sentence_offsets) - 1 for pair in pairs)
    n_tokens = sum(int(pair.sentence_offsets[-1]) for pair in pairs)
    scores = Scores(micro, macro, classes, len(pairs), n_sentences, n_tokens, interval, tokens_per_second)
    return scores if known is None else _of_known(scores, pairs, set(known))


def _of_known(scores: Scores, pairs: Sequence[Pair], known: set[str]) -> Scores:
    """The scores with what is to be said of classes that the tagger does not know."""
    unknown = {row.label: row.support for row in scores.classes if row.support and row.label not in known}
    if not unknown:
        return scores
    kept = [pair._replace(gold=[span for span in pair.gold if span.label not in unknown]) for pair in pairs]
    return replace(scores, known=replace(_seqeval(kept)[0], label=KNOWN), unknown=unknown)


def pair_up(gold: Sequence[Document], predicted: Sequence[Document], scheme: Scheme | None = None) -> Iterator[Pair]:
    """Gold and predicted spans of each document, read as `evaluate` says.

    Raises:
        ValueError: Documents do not match.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold documents but {len(predicted)} predicted; expected one for one")
    if scheme is None:
        scheme = detect_scheme(tags for document in predicted if document.tags for tags in document.sentence_tags())
    strict = None if scheme == "iob1" else scheme
    for right, guess in zip(gold, predicted, strict=True):
        if right.partial is not None:
            raise ValueError(
                f"document {right.id!r} is annotated in part; only what is annotated in full can be scored"
            )
        if list(right.tokens) != list(guess.tokens):
            raise ValueError(f"document {right.id!r}: the predicted document has other tokens; expected the gold ones")
        if guess.tags is None:
            spans = guess.spans or []
        else:
            spans = spans_from_tags(guess.tags, guess.sentence_offsets, strict=strict)
        yield Pair(right.spans or [], spans, right.sentence_offsets)


def check_scores() -> None:
    """MissingExtra where seqeval is not installed; for what takes long before it comes to its scores."""
    check_extra("seqeval", "scores need seqeval")


def _seqeval(pairs: Sequence[Pair]) -> tuple[ClassScores, ClassScores, tuple[ClassScores, ...]]:
    """Micro and macro scores and scores by class, from seqeval."""
    check_scores()
    from seqeval.metrics.v1 import precision_recall_fscore_support  # pyright: ignore
    from seqeval.scheme import IOB2  # pyright: ignore[reportMissingTypeStubs]

    lengths = [int(pair.sentence_offsets[-1]) for pair in pairs]
    gold = [tags_from_spans(pair.gold, n, "iob2") for pair, n in zip(pairs, lengths, strict=True)]
    predicted = [tags_from_spans(pair.predicted, n, "iob2") for pair, n in zip(pairs, lengths, strict=True)]
    labels = _labels(pairs)
    if not labels:
        return ClassScores("micro", 0.0, 0.0, 0.0, 0), ClassScores("macro", 0.0, 0.0, 0.0, 0), ()

    options: dict[str, Any] = {"scheme": IOB2, "zero_division": 0}

    def scores(average: str | None) -> Any:
        return precision_recall_fscore_support(gold, predicted, average=average, **options)

    def mean(name: str) -> ClassScores:
        precision, recall, f1, support = scores(name)
        return ClassScores(name, float(precision), float(recall), float(f1), int(support))

    by_class = zip(labels, *(values.tolist() for values in scores(None)), strict=True)
    return mean("micro"), mean("macro"), tuple(ClassScores(*row) for row in by_class)


def count_spans(pairs: Sequence[Pair], unit: str = "document") -> tuple[list[str], NDArray[np.int64]]:
    """Labels (sorted), and ``int64[n_units, n_labels, 3]``: right, predicted and gold entities of each unit."""
    labels = _labels(pairs)
    index = {label: i for i, label in enumerate(labels)}
    sizes = [1 if unit == "document" else len(pair.sentence_offsets) - 1 for pair in pairs]
    counts = np.zeros((sum(sizes), len(labels), 3), np.int64)
    first = 0
    for pair, size in zip(pairs, sizes, strict=True):
        found = set(pair.gold) & set(pair.predicted)
        for column, spans in enumerate((found, pair.predicted, pair.gold)):
            for span in spans:
                inner = 0 if size == 1 else int(np.searchsorted(pair.sentence_offsets, span.start, side="right")) - 1
                counts[first + inner, index[span.label], column] += 1
        first += size
    return labels, counts


def _labels(pairs: Sequence[Pair]) -> list[str]:
    return sorted({span.label for pair in pairs for spans in (pair.gold, pair.predicted) for span in spans})


def bootstrap_interval(
    pairs: Sequence[Pair], rng: np.random.Generator, n_resamples: int = 1000, level: float = 0.95
) -> Interval | None:
    """Percentile interval of the micro F1 over resampled documents (Efron & Tibshirani 1993, ch. 13).

    One document alone is resampled by sentences. None where there are not two units to resample.
    """
    unit = "document" if len(pairs) > 1 else "sentence"
    counts = count_spans(pairs, unit)[1].sum(axis=1)  # [n_units, 3]
    if len(counts) < 2 or n_resamples < 1:
        return None
    f1 = np.concatenate([f1_of_counts(sums) for sums in bootstrap_sums(counts, rng, n_resamples)])
    low, high = np.quantile(f1, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low, high, level, unit, n_resamples)


def bootstrap_sums(
    counts: NDArray[np.int64], rng: np.random.Generator, n_resamples: int
) -> Iterator[NDArray[np.int64]]:
    """Sums over units drawn with replacement, from counts ``[n_units, columns]``: batches of ``[resamples, columns]``.

    Units of equal counts are drawn together, which is the same in law and cheap even for very many units.
    """
    kinds, copies = distinct_rows(counts)
    for size in batches(n_resamples, len(kinds)):
        yield rng.multinomial(len(counts), copies / len(counts), size=size) @ kinds


def distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows, in the order in which they first appear, and how often each does."""
    kinds, first, copies = np.unique(rows, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return kinds[order], copies[order]


def batches(n_resamples: int, width: int) -> Iterator[int]:
    """How many resamples are held at once, batch by batch, when each needs ``width`` numbers."""
    most = max(1, _CELLS // max(1, width))
    for done in range(0, n_resamples, most):
        yield min(most, n_resamples - done)


def f1_of_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """F1 of right, predicted and gold counts ``[..., 3]``; 0 where there is nothing."""
    total = counts[..., 1] + counts[..., 2]
    return 2 * counts[..., 0] / np.maximum(total, 1)
