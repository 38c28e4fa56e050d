"""Calibration of confidences: the confidence of an entity should be the probability that it is correct.

The expected calibration error (ECE) is the mean absolute difference between the mean confidence and the precision of
the entities in a bin (Naeini, Cooper and Hauskrecht 2015). Bins have equal width or equal mass. Even with perfect
calibration, the ECE of a finite sample is above 0; `expected_ece` estimates this value. The Brier score and the log
loss are proper scoring rules, which also measure sharpness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.text.document import Document

N_BINS = 15
Binning = Literal["width", "mass"]
"""Kind of bins: of equal width in [0, 1], or with an equal number of entities."""


class EntityConfidences(NamedTuple):
    """Confidences of M predicted entities, and whether each entity is correct.

    Attributes:
        confidence: float64[M], in [0, 1].
        is_correct: float64[M], 1 if the entity is correct, else 0.
        document: int64[M], index of the document.
    """

    confidence: Floats
    is_correct: Floats
    document: NDArray[np.int64]


def entity_confidences(gold: Sequence[Document], predicted: Sequence[Document]) -> EntityConfidences:
    """Return the confidence of each predicted entity, and whether the entity is correct.

    Args:
        gold: Gold documents.
        predicted: Predicted documents with the same tokens, in the same order.

    Returns:
        Confidences of all predicted entities. An entity is correct if a gold entity has the same boundaries and label.

    Raises:
        ValueError: No entity was predicted, an entity has no confidence in [0, 1], or the entities of a document do not
            agree with its tags.
    """
    rows: list[tuple[float, bool, int]] = []
    for i, (reference, guess) in enumerate(zip(gold, predicted, strict=True)):
        gold_spans, spans = set(reference.spans or []), guess.spans or []
        where = f"document {guess.id!r}"
        if len(spans) != len(guess.entities):
            sizes = f"{len(spans)} tagged spans but {len(guess.entities)} entities"
            raise ValueError(f"{where} has {sizes}; make its tags agree with its entities")
        for entity, span in zip(guess.entities, spans, strict=True):
            if entity.confidence is None:
                raise ValueError(f"{where}: {entity.text!r} has no confidence; set a confidence for every entity")
            if not 0 <= entity.confidence <= 1:
                what = f"the confidence of {entity.text!r}"
                raise ValueError(f"{where}: {what} must be between 0 and 1, got {entity.confidence:g}")
            rows.append((entity.confidence, span in gold_spans, i))
    if not rows:
        raise ValueError("no entity was predicted, so there is no confidence to measure; predict at least one entity")
    confidence, is_correct, document = zip(*rows, strict=True)
    return EntityConfidences(np.array(confidence), np.array(is_correct, float), np.array(document))


def bin_indices(confidence: Floats, binning: Binning, n_bins: int = N_BINS) -> NDArray[np.int64]:
    """Return the bin index of each confidence.

    Args:
        confidence: float64[M], in [0, 1].
        binning: Kind of bins.
        n_bins: Number of bins.

    Returns:
        int64[M], in [0, n_bins).
    """
    if binning == "width":
        return np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    ranks = np.empty(len(confidence), np.int64)
    ranks[np.argsort(confidence, kind="stable")] = np.arange(len(confidence))
    return ranks * n_bins // len(confidence)


def ece(sample: EntityConfidences, binning: Binning, n_bins: int = N_BINS) -> float:
    """Return the expected calibration error: ``sum over bins of |sum of (confidence - is_correct)| / n_entities``.

    Args:
        sample: Confidences of M entities.
        binning: Kind of bins.
        n_bins: Number of bins.

    Returns:
        Error in [0, 1].
    """
    bins = bin_indices(sample.confidence, binning, n_bins)
    gaps = np.bincount(bins, sample.confidence - sample.is_correct, n_bins)
    return float(np.abs(gaps).sum() / len(sample.is_correct))


def expected_ece(sample: EntityConfidences, binning: Binning, n_bins: int = N_BINS) -> float:
    """Return the approximate mean of `ece` over random samples from a perfectly calibrated tagger.

    If each entity is correct with the probability of its confidence p, the gap of a bin is approximately normal with
    variance ``sum of p (1 - p)``. Its mean absolute value is ``sqrt(2 / pi)`` standard deviations.

    Args:
        sample: Confidences of M entities; ``is_correct`` is not used.
        binning: Kind of bins.
        n_bins: Number of bins.

    Returns:
        Error in [0, 1].
    """
    p = sample.confidence
    variances = np.bincount(bin_indices(p, binning, n_bins), p * (1 - p), n_bins)
    return float(np.sqrt(2 / np.pi * variances).sum() / len(p))


def brier_score(sample: EntityConfidences) -> float:
    """Return the mean squared difference between the confidence (0 to 1) and the correctness (0 or 1; Brier 1950).

    Args:
        sample: Confidences of M entities.

    Returns:
        Score in [0, 1]; lower is better.
    """
    return float(((sample.confidence - sample.is_correct) ** 2).mean())


def log_loss(sample: EntityConfidences) -> float:
    """Return the mean negative log-likelihood of the correctness of entities under their confidences.

    Args:
        sample: Confidences of M entities. They are clipped to [1e-6, 1 - 1e-6].

    Returns:
        Loss in nats; lower is better.
    """
    p = np.minimum(np.maximum(sample.confidence, 1e-6), 1 - 1e-6)
    return float(-np.where(sample.is_correct > 0, np.log(p), np.log(1 - p)).mean())


def overconfidence(sample: EntityConfidences) -> float:
    """Return the mean confidence of the entities minus their precision.

    Args:
        sample: Confidences of M entities.

    Returns:
        Difference in [-1, 1]; 0 is best.
    """
    return float((sample.confidence - sample.is_correct).mean())


MEASURES: dict[str, Callable[[EntityConfidences], float]] = {
    "ECE (mass)": lambda sample: ece(sample, "mass"),
    "ECE (mass) by chance": lambda sample: expected_ece(sample, "mass"),
    "ECE (width)": lambda sample: ece(sample, "width"),
    "Brier": brier_score,
    "log loss": log_loss,
    "overconfidence": overconfidence,
}
"""Calibration measures by the name that reports print."""


def reliability_curve(sample: EntityConfidences, binning: Binning) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the points of a reliability diagram: mean confidence and precision of the entities in each bin.

    Args:
        sample: Confidences of M entities.
        binning: Kind of bins.

    Returns:
        Mean confidence, precision and number of entities of each bin that is not empty.
    """
    bins = bin_indices(sample.confidence, binning)
    sizes = np.bincount(bins, minlength=N_BINS)
    filled = sizes > 0
    confidence, precision = (
        np.bincount(bins, values, N_BINS)[filled] / sizes[filled] for values in (sample.confidence, sample.is_correct)
    )
    return confidence, precision, sizes[filled]
