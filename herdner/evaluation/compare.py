"""Significance tests of the difference in micro F1 between two taggers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from herdner.evaluation.scores import (
    DocumentSpans,
    Interval,
    batch_sizes,
    bootstrap_sums,
    count_entities,
    distinct_rows,
    f1_from_counts,
    pair_documents,
)
from herdner.evaluation.tabular import Tabular, points
from herdner.text.document import Document

ResamplingUnit = Literal["document", "sentence"]

_ROUNDING = 1e-12  # equal differences that are computed from different counts may differ by rounding


@dataclass(frozen=True, slots=True)
class LabelComparison:
    """F1 of two taggers for one label, or for all entities together ("micro").

    Attributes:
        label: Entity label, or "micro".
        f1_a: F1 of A, in [0, 1].
        f1_b: F1 of B, in [0, 1].
        difference: ``f1_b - f1_a``.
        only_a: Number of gold entities that A predicts correctly and B does not.
        only_b: Number of gold entities that B predicts correctly and A does not.
        support: Number of gold entities.
    """

    label: str
    f1_a: float
    f1_b: float
    difference: float
    only_a: int
    only_b: int
    support: int


@dataclass(frozen=True, slots=True)
class Comparison(Tabular):
    """Result of `compare`, a significance test of two taggers A and B.

    Differences are B minus A; p-values are two-sided unless stated otherwise.

    Attributes:
        name_a: Name of A.
        name_b: Name of B.
        micro: F1 of all entities together.
        per_label: F1 of each label, sorted by label.
        interval: Percentile bootstrap interval of the difference in micro F1.
        n_units: Number of documents or sentences that were resampled.
        share_not_better: Share of the bootstrap samples in which B is not better than A. This is a one-sided p-value
            (Koehn 2004), close to that of Berg-Kirkpatrick et al. (2012).
        bootstrap_p: p-value of the paired bootstrap: ``min(1, 2 (c + 1) / (n + 1))``. In c of n bootstrap samples the
            difference is 0 or has the less frequent sign.
        randomisation_p: p-value of approximate randomisation: ``(c + 1) / (n + 1)``. In c of n random swaps the
            absolute difference is at least as large as the observed one.
        tokens_per_second_a: Speed of A; None if it was not measured.
        tokens_per_second_b: Speed of B; None if it was not measured.
    """

    header: ClassVar[tuple[str, ...]] = (
        "label", "F1 of A", "F1 of B", "B - A", "only A correct", "only B correct", "support",
    )  # fmt: skip

    name_a: str
    name_b: str
    micro: LabelComparison
    per_label: tuple[LabelComparison, ...]
    interval: Interval
    n_units: int
    share_not_better: float
    bootstrap_p: float
    randomisation_p: float
    tokens_per_second_a: float | None = None
    tokens_per_second_b: float | None = None

    @property
    def difference(self) -> float:
        """Micro F1 of B minus micro F1 of A."""
        return self.micro.difference

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the comparison table: one for each label, and the last one for all entities."""
        return [_cells(row) for row in (*self.per_label, self.micro)]

    def summary(self) -> str:
        """Return the comparison as one line: names, difference with its interval, p-values and speeds."""
        low, high, level = self.interval.low, self.interval.high, self.interval.level
        parts = [
            f"A is {self.name_a}, B is {self.name_b}",
            f"B - A is {points(self.difference)} points of F1, {level:.0%} interval {points(low)} to {points(high)}",
            f"p = {self.randomisation_p:.2g} by approximate randomisation, {self.bootstrap_p:.2g} by paired bootstrap "
            f"(two-sided; {self.n_units:,} {self.interval.unit}s, {self.interval.n_resamples:,} resamples, "
            f"B not better in {self.share_not_better:.2%} of them)",
        ]
        for name, speed in (("A", self.tokens_per_second_a), ("B", self.tokens_per_second_b)):
            if speed is not None:
                parts.append(f"{name}: {speed:,.0f} tokens per second")
        return "; ".join(parts)


def _cells(row: LabelComparison) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (row.only_a, row.only_b, row.support))
    return row.label, f"{row.f1_a:.2%}", f"{row.f1_b:.2%}", points(row.difference), *counts


def compare(
    gold: Iterable[Document], a: Iterable[Document], b: Iterable[Document], *, rng: np.random.Generator,
    n_resamples: int = 10_000, level: float = 0.95, unit: ResamplingUnit | None = None,
    names: tuple[str, str] = ("A", "B"), tokens_per_second: tuple[float | None, float | None] = (None, None),
) -> Comparison:  # fmt: skip
    """Test whether the micro F1 of taggers A and B differs significantly on the same gold documents.

    Two tests are made. The paired bootstrap draws units with replacement and scores both taggers on the same sample
    (Efron & Tibshirani 1993, ch. 13; Koehn 2004; Berg-Kirkpatrick, Burkett & Klein 2012). Approximate randomisation
    swaps the outputs of each unit between the taggers with probability 1/2 (Noreen 1989; Yeh 2000). Its p-value is the
    share of swaps whose absolute difference is at least as large as the observed difference.

    Exchanging A and B reverses the sign of the differences and does not change the two-sided p-values.

    Args:
        gold: Gold documents.
        a: Documents predicted by A, with the gold tokens and in the same order.
        b: Documents predicted by B, with the gold tokens and in the same order.
        rng: Random generator. Equal generators give equal results.
        n_resamples: Number of bootstrap samples, and of random swaps.
        level: Confidence level of the interval, in (0, 1).
        unit: Unit to resample or swap; None chooses "document" if there are two documents or more, else "sentence".
            Resampling sentences detects smaller differences, but the sentences of one document are not independent.
            Therefore the p-values are too small for taggers that use the context of the whole document.
        names: Names of A and B.
        tokens_per_second: Speeds of A and B, which are copied into the result.

    Returns:
        Both F1, their difference with its interval, and the p-values.

    Raises:
        ValueError: The documents differ in number or tokens, there are fewer than two units, or ``n_resamples`` is
            below 1.
    """
    gold = list(gold)
    if n_resamples < 1:
        raise ValueError(f"`n_resamples` must be at least 1, got {n_resamples}")
    if unit not in (None, "document", "sentence"):
        raise ValueError(f"`unit` must be 'document' or 'sentence', got {unit!r}")
    pairs_a, pairs_b = (_pairs(gold, list(side), name) for side, name in zip((a, b), names, strict=True))
    unit = unit or ("document" if len(gold) > 1 else "sentence")
    labels, counts = count_entities([*pairs_a, *pairs_b], unit)  # one call, so that both have the same labels
    counts_a, counts_b = np.split(counts, 2)
    micro_a, micro_b = counts_a.sum(axis=1), counts_b.sum(axis=1)
    if (n_units := len(micro_a)) < 2:
        remedy = "give more documents" + (" or compare by sentence" if unit == "document" else "")
        raise ValueError(f"a comparison needs at least two {unit}s, got {n_units}; {remedy}")
    micro, per_label = _compare_labels(labels, counts_a, counts_b, pairs_a, pairs_b)
    differences = bootstrap_differences(micro_a, micro_b, rng, n_resamples)
    low, high = np.quantile(differences, [(1 - level) / 2, (1 + level) / 2]).tolist()
    not_better, not_worse = int((differences <= 0).sum()), int((differences >= 0).sum())
    observed = abs(micro.difference) - _ROUNDING
    swaps = swapped_differences(micro_a, micro_b, rng, n_resamples)
    n_as_large = sum(int((abs(batch) >= observed).sum()) for batch in swaps)
    return Comparison(
        *names,
        micro,
        per_label,
        Interval(low, high, level, unit, n_resamples),
        n_units,
        share_not_better=not_better / n_resamples,
        bootstrap_p=min(1.0, 2 * (min(not_better, not_worse) + 1) / (n_resamples + 1)),
        randomisation_p=(n_as_large + 1) / (n_resamples + 1),
        tokens_per_second_a=tokens_per_second[0],
        tokens_per_second_b=tokens_per_second[1],
    )


def _pairs(gold: Sequence[Document], predicted: Sequence[Document], name: str) -> list[DocumentSpans]:
    try:
        return list(pair_documents(gold, predicted))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _compare_labels(
    labels: Sequence[str], counts_a: NDArray[np.int64], counts_b: NDArray[np.int64], pairs_a: Sequence[DocumentSpans],
    pairs_b: Sequence[DocumentSpans],
) -> tuple[LabelComparison, tuple[LabelComparison, ...]]:  # fmt: skip
    """Compare two taggers on the entities of all labels together ("micro"), and on the entities of each label.

    The counts are ``int64[n_units, n_labels, 3]``.
    """
    only_a, only_b = _count_exclusive(pairs_a, pairs_b), _count_exclusive(pairs_b, pairs_a)

    def row(label: str, sums_a: NDArray[np.int64], sums_b: NDArray[np.int64], *exclusive: int) -> LabelComparison:
        f1_a, f1_b = float(f1_from_counts(sums_a)), float(f1_from_counts(sums_b))
        return LabelComparison(label, f1_a, f1_b, f1_b - f1_a, *exclusive, support=int(sums_a[2]))

    sums_a, sums_b = counts_a.sum(axis=0), counts_b.sum(axis=0)
    rows = tuple(row(label, sums_a[i], sums_b[i], only_a[label], only_b[label]) for i, label in enumerate(labels))
    return row("micro", sums_a.sum(axis=0), sums_b.sum(axis=0), only_a.total(), only_b.total()), rows


def _count_exclusive(pairs: Sequence[DocumentSpans], others: Sequence[DocumentSpans]) -> Counter[str]:
    """Count, for each label, the gold entities predicted by the tagger of ``pairs`` but not by that of ``others``."""
    return Counter(
        span.label
        for pair, other in zip(pairs, others, strict=True)
        for span in set(pair.gold).intersection(pair.predicted).difference(other.predicted)
    )


def bootstrap_differences(
    counts_a: NDArray[np.int64], counts_b: NDArray[np.int64], rng: np.random.Generator, n_resamples: int
) -> NDArray[np.float64]:
    """Return the F1 of tagger B minus the F1 of tagger A for each bootstrap sample.

    Args:
        counts_a: int64[n_units, 3], correct, predicted and gold entities of A.
        counts_b: int64[n_units, 3], the counts of B for the same units.
        rng: Random generator.
        n_resamples: Number of bootstrap samples.

    Returns:
        float64[n_resamples], F1 of B minus F1 of A.
    """
    both = np.concatenate([counts_a, counts_b], axis=1)
    batches = bootstrap_sums(both, rng, n_resamples)
    return np.concatenate([f1_from_counts(sums[:, 3:]) - f1_from_counts(sums[:, :3]) for sums in batches])


def swapped_differences(
    counts_a: NDArray[np.int64], counts_b: NDArray[np.int64], rng: np.random.Generator, n_resamples: int
) -> Iterator[NDArray[np.float64]]:
    """Yield batches of differences in F1 (tagger B minus A), each after random swaps of outputs between the taggers.

    The outputs of each unit are swapped with probability 1/2. Units with equal counts are ignored, because swapping
    them changes nothing. Units whose differences in counts are equal up to the sign form a group. The number of swapped
    units of a group is drawn from a binomial distribution.

    Args:
        counts_a: int64[n_units, 3], correct, predicted and gold entities of A.
        counts_b: int64[n_units, 3], the counts of B for the same units.
        rng: Random generator.
        n_resamples: Number of swaps.

    Yields:
        Batches ``float64[batch size]`` of F1 of B minus F1 of A.
    """
    difference = counts_b - counts_a
    correct, predicted = difference[:, 0], difference[:, 1]  # the gold counts are equal
    difference *= np.where(correct, np.sign(correct), np.sign(predicted))[:, None]
    rows, multiplicity = distinct_rows(difference[difference.any(axis=1)])
    total = counts_a.sum(axis=0) + counts_b.sum(axis=0)
    for size in batch_sizes(n_resamples, len(rows)):
        swapped = rng.binomial(multiplicity, 0.5, size=(size, len(rows)))
        shift = (2 * swapped - multiplicity) @ rows  # sums of B minus sums of A; total + shift is even
        yield f1_from_counts((total + shift) // 2) - f1_from_counts((total - shift) // 2)
