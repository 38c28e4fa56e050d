"""Are confidences of entities right as often as they say?

ECE, the expected calibration error, is the mean distance between the confidence and the precision of the entities of a
bin (Naeini, Cooper and Hauskrecht 2015), with 15 bins of equal width or of equal mass; it is never 0, as each bin is
noisy: beside it stands what chance alone makes of it. Brier score and log loss are proper scores, of sharpness too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.text.document import Document

N_BINS = 15


class Claims(NamedTuple):
    """What was claimed of M entities: ``confidence`` [M], whether each is ``right`` [M] (0 or 1), and its document."""

    confidence: Floats
    right: Floats
    document: NDArray[np.int64]


def claims(gold: Sequence[Document], predicted: Sequence[Document]) -> Claims:
    """Of all predicted entities; right are those with both borders and the class of an entity in ``gold``.

    Raises:
        ValueError: There is no entity, or one without a confidence in [0, 1].
    """
    rows: list[tuple[float, bool, int]] = []
    for i, (right, guess) in enumerate(zip(gold, predicted, strict=True)):
        known, spans = set(right.spans or []), guess.spans or []
        if len(spans) != len(guess.entities):
            raise ValueError(f"document {guess.id!r}: its entities are not those of its tags")
        for entity, span in zip(guess.entities, spans, strict=True):
            if entity.confidence is None:
                raise ValueError(f"document {guess.id!r}: {entity.text!r} has no confidence; give one for every entity")
            if not 0 <= entity.confidence <= 1:
                raise ValueError(
                    f"document {guess.id!r}: the confidence of {entity.text!r} is {entity.confidence:g}; "
                    "expected a probability, from 0 to 1"
                )
            rows.append((entity.confidence, span in known, i))
    if not rows:
        raise ValueError("nothing to measure: no entity was predicted")
    confidence, right, document = zip(*rows, strict=True)
    return Claims(np.array(confidence), np.array(right, float), np.array(document))


def bins_of(confidence: Floats, equal: str, n_bins: int = N_BINS) -> NDArray[np.int64]:
    """[M]: the bin of each claim, of equal "width" or "mass"."""
    if equal == "width":
        return np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    ranks = np.empty(len(confidence), np.int64)
    ranks[np.argsort(confidence, kind="stable")] = np.arange(len(confidence))
    return ranks * n_bins // len(confidence)


def ece(found: Claims, equal: str, n_bins: int = N_BINS) -> float:
    """sum over bins of ``|sum of (confidence - right)| / M``."""
    gaps = np.bincount(bins_of(found.confidence, equal, n_bins), found.confidence - found.right, n_bins)
    return float(np.abs(gaps).sum() / len(found.right))


def ece_by_chance(found: Claims, equal: str, n_bins: int = N_BINS) -> float:
    """What `ece` would be on average, nearly, if each of these claims were right exactly as often as it says: the gap
    of a bin is then about normal, with the variance sum of p (1 - p), and so sqrt(2/pi) of its deviation in size.
    """
    p = found.confidence
    variances = np.bincount(bins_of(p, equal, n_bins), p * (1 - p), n_bins)
    return float(np.sqrt(2 / np.pi * variances).sum() / len(p))


def brier(found: Claims) -> float:
    """The mean squared distance between confidence and truth (Brier 1950)."""
    return float(((found.confidence - found.right) ** 2).mean())


def log_loss(found: Claims) -> float:
    """Minus the mean log-probability of the truth, in nats; confidences closer to 0 or 1 than 1e-6 count as 1e-6."""
    p = np.minimum(np.maximum(found.confidence, 1e-6), 1 - 1e-6)
    return float(-np.where(found.right > 0, np.log(p), np.log(1 - p)).mean())


def overconfidence(found: Claims) -> float:
    """Mean confidence less precision."""
    return float((found.confidence - found.right).mean())


MEASURES: dict[str, Callable[[Claims], float]] = {
    "ECE (mass)": lambda found: ece(found, "mass"),
    "ECE (mass) by chance": lambda found: ece_by_chance(found, "mass"),
    "ECE (width)": lambda found: ece(found, "width"),
    "Brier": brier,
    "log loss": log_loss,
    "overconfidence": overconfidence,
}


def reliability(found: Claims, equal: str) -> tuple[Floats, Floats, Floats]:
    """Mean confidence, precision and size of each bin that is not empty."""
    which = bins_of(found.confidence, equal)
    sizes = np.bincount(which, minlength=N_BINS)
    kept = sizes > 0
    means = (np.bincount(which, values, N_BINS)[kept] / sizes[kept] for values in (found.confidence, found.right))
    return (*means, sizes[kept])  # type: ignore[return-value]
