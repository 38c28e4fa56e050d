"""Is one tagger better than another? Paired bootstrap and approximate randomisation of the micro F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from herdner.evaluation.scores import (
    Interval,
    Pair,
    batches,
    bootstrap_sums,
    count_spans,
    distinct_rows,
    f1_of_counts,
    pair_up,
)
from herdner.evaluation.tabular import Tabulated, points
from herdner.text.document import Document

Unit = Literal["document", "sentence"]

# Equal differences, computed from other counts, may differ by rounding; they are ties.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """One class, or all together ("micro"). F1 lies in [0, 1]; ``difference`` is that of B minus that of A."""

    label: str
    f1_a: float
    f1_b: float
    difference: float
    only_a: int  # gold entities that A finds and B does not
    only_b: int
    support: int  # entities in the gold standard


@dataclass(frozen=True, slots=True)
class Comparison(Tabulated):
    """What a comparison of A with B says. All differences are those of B minus those of A; p-values are two-sided.

    Attributes:
        name_a: What the first is called.
        name_b: What the second is called.
        micro: F1 of both, all together.
        classes: F1 of both by class.
        interval: Percentile bootstrap interval of the difference in micro F1; what was resampled, and how often.
        n_units: How many documents or sentences were drawn, or swapped as a whole.
        share_not_better: Share of the resamples in which B is not better, a one-sided p-value (Koehn 2004); that of
            Berg-Kirkpatrick et al. (2012), the share beyond twice the observed difference, is close to it.
        bootstrap_p: Two-sided p-value of the bootstrap, which goes with the interval: 2 (c + 1) / (n + 1), at most 1,
            where c of n resamples have a difference of 0 or of the rarer sign.
        randomisation_p: Two-sided p-value of approximate randomisation: (c + 1) / (n + 1), where c of n random swaps
            make a difference at least as large.
        tokens_per_second_a: None where it is not known.
        tokens_per_second_b: None where it is not known.
    """

    header: ClassVar[tuple[str, ...]] = (
        "class", "F1 of A", "F1 of B", "B - A", "only A right", "only B right", "support",
    )  # fmt: skip

    name_a: str
    name_b: str
    micro: ClassComparison
    classes: tuple[ClassComparison, ...]
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

    @property
    def unit(self) -> str:
        """What was drawn or swapped as a whole: "document" or "sentence"."""
        return self.interval.unit

    @property
    def n_resamples(self) -> int:
        """Resamples of the bootstrap, and as many random swaps."""
        return self.interval.n_resamples

    def rows(self) -> list[tuple[str, ...]]:
        """The classes, and all together."""
        return [_cells(row) for row in (*self.classes, self.micro)]

    def summary(self) -> str:
        """Names, difference, interval, p-values and speeds in one line."""
        low, high, level = self.interval.low, self.interval.high, self.interval.level
        parts = [
            f"A is {self.name_a}, B is {self.name_b}",
            f"B - A is {points(self.difference)} points of F1, {level:.0%} interval {points(low)} to {points(high)}",
            f"p = {self.randomisation_p:.2g} by approximate randomisation, {self.bootstrap_p:.2g} by paired bootstrap "
            f"(two-sided; {self.n_units:,} {self.unit}s, {self.n_resamples:,} resamples, "
            f"B not better in {self.share_not_better:.2%} of them)",
        ]
        for name, speed in (("A", self.tokens_per_second_a), ("B", self.tokens_per_second_b)):
            if speed is not None:
                parts.append(f"{name}: {speed:,.0f} tokens per second")
        return "; ".join(parts)


def _cells(row: ClassComparison) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (row.only_a, row.only_b, row.support))
    return row.label, f"{row.f1_a:.2%}", f"{row.f1_b:.2%}", points(row.difference), *counts


def compare(
    gold: Iterable[Document],
    a: Iterable[Document],
    b: Iterable[Document],
    *,
    rng: np.random.Generator,
    n_resamples: int = 10_000,
    level: float = 0.95,
    unit: Unit | None = None,
    names: tuple[str, str] = ("A", "B"),
    tokens_per_second: tuple[float | None, float | None] = (None, None),
) -> Comparison:
    """Compares what two taggers predict for the same gold documents; entities count as in `evaluate`.

    ``unit`` is what is drawn, or swapped as a whole: "document" (the default), or "sentence" (the default where there
    is only one document; an entity belongs to the sentence where it begins). Sentences are more, so that smaller
    differences show, but those of one document are not independent: a tagger that looks at whole documents errs in
    many at once, and p-values by sentence are then too small.

    Paired bootstrap: units are drawn with replacement, and both taggers scored on the same draw (Efron & Tibshirani
    1993, ch. 13; Koehn 2004; Berg-Kirkpatrick, Burkett & Klein 2012). Approximate randomisation: the outputs of each
    unit are swapped between the taggers with probability 1/2; the p-value is the share of such swaps with an absolute
    difference at least as large, the observed one among them (Noreen 1989; Yeh 2000). Equal generators give equal
    results, and exchanging A and B changes signs alone.

    Raises:
        ValueError: Documents differ in number or tokens, there are not two units, or there are no resamples.
    """
    gold = list(gold)
    if n_resamples < 1:
        raise ValueError(f"n_resamples is {n_resamples}; expected 1 or more")
    if unit not in (None, "document", "sentence"):
        raise ValueError(f"unit is {unit!r}; expected 'document' or 'sentence'")
    pairs_a, pairs_b = (_pairs(gold, list(side), name) for side, name in zip((a, b), names, strict=True))
    unit = unit or ("document" if len(gold) > 1 else "sentence")
    labels, counts = count_spans([*pairs_a, *pairs_b], unit)  # in one call, for the same labels
    counts_a, counts_b = np.split(counts, 2)
    micro_a, micro_b = counts_a.sum(axis=1), counts_b.sum(axis=1)
    if (n_units := len(micro_a)) < 2:
        more = " or compare by sentences" if unit == "document" else ""
        raise ValueError(f"a comparison needs two {unit}s or more, and there is {n_units or 'none'}; give more{more}")
    micro, classes = _by_class(labels, counts_a, counts_b, pairs_a, pairs_b)
    drawn = bootstrap_differences(micro_a, micro_b, rng, n_resamples)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    not_better, not_worse = int((drawn <= 0).sum()), int((drawn >= 0).sum())
    large = abs(micro.difference) - _ROUNDING
    n_large = sum(int((abs(part) >= large).sum()) for part in swapped_differences(micro_a, micro_b, rng, n_resamples))
    return Comparison(
        *names,
        micro,
        classes,
        Interval(low, high, level, unit, n_resamples),
        n_units,
        share_not_better=not_better / n_resamples,
        bootstrap_p=min(1.0, 2 * (min(not_better, not_worse) + 1) / (n_resamples + 1)),
        randomisation_p=(n_large + 1) / (n_resamples + 1),
        tokens_per_second_a=tokens_per_second[0],
        tokens_per_second_b=tokens_per_second[1],
    )


def _pairs(gold: Sequence[Document], predicted: Sequence[Document], name: str) -> list[Pair]:
    try:
        return list(pair_up(gold, predicted))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _by_class(
    labels: Sequence[str],
    counts_a: NDArray[np.int64],
    counts_b: NDArray[np.int64],
    pairs_a: Sequence[Pair],
    pairs_b: Sequence[Pair],
) -> tuple[ClassComparison, tuple[ClassComparison, ...]]:
    """The rows of the table, from counts ``[n_units, n_labels, 3]``."""
    only_a, only_b = _found_alone(pairs_a, pairs_b), _found_alone(pairs_b, pairs_a)

    def row(label: str, sums_a: NDArray[np.int64], sums_b: NDArray[np.int64], *alone: int) -> ClassComparison:
        f1_a, f1_b = float(f1_of_counts(sums_a)), float(f1_of_counts(sums_b))
        return ClassComparison(label, f1_a, f1_b, f1_b - f1_a, *alone, support=int(sums_a[2]))

    sums_a, sums_b = counts_a.sum(axis=0), counts_b.sum(axis=0)
    classes = tuple(row(label, sums_a[i], sums_b[i], only_a[label], only_b[label]) for i, label in enumerate(labels))
    return row("micro", sums_a.sum(axis=0), sums_b.sum(axis=0), only_a.total(), only_b.total()), classes


def _found_alone(pairs: Sequence[Pair], others: Sequence[Pair]) -> Counter[str]:
    """Gold entities by class that ``pairs`` hold and ``others`` do not."""
    return Counter(
        span.label
        for mine, other in zip(pairs, others, strict=True)
        for span in set(mine.gold).intersection(mine.predicted).difference(other.predicted)
    )


def bootstrap_differences(
    counts_a: NDArray[np.int64], counts_b: NDArray[np.int64], rng: np.random.Generator, n_resamples: int
) -> NDArray[np.float64]:
    """F1 of B minus F1 of A in each resample, from the counts ``[n_units, 3]`` of both on the same units."""
    both = np.concatenate([counts_a, counts_b], axis=1)
    return np.concatenate(
        [f1_of_counts(sums[:, 3:]) - f1_of_counts(sums[:, :3]) for sums in bootstrap_sums(both, rng, n_resamples)]
    )


def swapped_differences(
    counts_a: NDArray[np.int64], counts_b: NDArray[np.int64], rng: np.random.Generator, n_resamples: int
) -> Iterator[NDArray[np.float64]]:
    """F1 of B minus F1 of A where the outputs of each unit are swapped with probability 1/2, in batches.

    Only units that differ matter. Those that differ by the same counts, whichever way, are swapped together: how many
    of m are swapped is binomial.
    """
    difference = counts_b - counts_a
    right, predicted = difference[:, 0], difference[:, 1]  # the gold counts are the same
    difference *= np.where(right, np.sign(right), np.sign(predicted))[:, None]
    kinds, copies = distinct_rows(difference[difference.any(axis=1)])
    total = counts_a.sum(axis=0) + counts_b.sum(axis=0)
    for size in batches(n_resamples, len(kinds)):
        swapped = rng.binomial(copies, 0.5, size=(size, len(kinds)))
        shift = (2 * swapped - copies) @ kinds  # sums of B minus sums of A; as odd or even as the total
        yield f1_of_counts((total + shift) // 2) - f1_of_counts((total - shift) // 2)
