"""Confidences that are right as often as they say: a map of log-odds, fitted where the right names are known.

A trained CRF is surer than it is right, and with links it counts the same evidence at both of their ends. So what it
says of names in documents that its chain has not seen is held against the truth, and a logistic regression on the
log-odds (Platt 1999; Guo et al. 2017), of few numbers, says how often such a name is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEAREST = 1e-12  # probabilities closer to 0 or 1 count as this close: the log-odds of 0 and 1 are infinite
_PENALTY = 1.0  # weight of the squared distance from the map that changes nothing; matters where names are few


class Beliefs(NamedTuple):
    """What a CRF says of M names: the probability of each with links and ``without_links``, float64[M], and whether a
    link ends in it, bool[M].
    """

    confidence: Floats
    without_links: Floats
    linked: NDArray[np.bool_]


@dataclass(frozen=True)
class Calibration:
    """How often names are right, from the log-odds of what the CRF says of them.

    Weights are at least 0: no name is less sure for being likelier.

    Attributes:
        linked: Of names in which links end: the weights of the log-odds with links and of those without, and a
            constant.
        alone: Of other names: the weight of the log-odds, and a constant.

    Raises:
        ValueError: A weight is below 0, or a number is none.
    """

    linked: tuple[float, float, float] = (1.0, 0.0, 0.0)
    alone: tuple[float, float] = (1.0, 0.0)

    def __post_init__(self) -> None:
        numbers = np.array([*self.linked, *self.alone])
        if numbers.shape != (5,) or not np.isfinite(numbers).all() or (numbers[[0, 1, 3]] < 0).any():
            raise ValueError("calibration needs 3 numbers for linked names and 2 for others, its weights at least 0")

    def __call__(self, said: Beliefs) -> Floats:
        """[M], each between 0 and 1: how often such names are right. What is certain, with links and without, stays so:
        a name that the user has settled.
        """
        with_links, without, constant = self.linked
        odds, own = log_odds(said.confidence), log_odds(said.without_links)
        linked = with_links * odds + without * own + constant
        found = _probability(np.where(said.linked, linked, self.alone[0] * odds + self.alone[1]))
        return np.where((said.confidence >= 1) & (said.without_links >= 1), 1.0, found)

    @classmethod
    def fit(
        cls, said: Beliefs, right: NDArray[np.bool_], counts: Floats | None = None, origin: Calibration | None = None
    ) -> Calibration:
        """The most likely map for names of which ``right`` bool[M] says which are right.

        Args:
            counts: float64[M], how much each name counts, 1 if None.
            origin: The map that the prior has as its mean, which stays where there are no names; None: the one that
                changes nothing.
        """
        origin, counts = origin or cls(), np.ones(len(right)) if counts is None else counts
        odds, own, one = log_odds(said.confidence), log_odds(said.without_links), np.ones(len(right))
        linked, alone = np.stack([odds, own, one], axis=1), np.stack([odds, one], axis=1)
        of_linked = _regression(linked, right, counts * said.linked, origin.linked)
        of_alone = _regression(alone, right, counts * ~said.linked, origin.alone)
        return cls((of_linked[0], of_linked[1], of_linked[2]), (of_alone[0], of_alone[1]))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"linked": list(self.linked), "alone": list(self.alone)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """From `to_dict`; KeyError, TypeError or ValueError for anything else."""
        linked, alone = ([float(number) for number in values[name]] for name in ("linked", "alone"))
        return cls(tuple(linked), tuple(alone))  # pyright: ignore[reportArgumentType]


def log_odds(probability: Floats) -> Floats:
    """log(p / (1 - p)), finite."""
    p = np.clip(probability, _NEAREST, 1 - _NEAREST)
    return np.log(p) - np.log1p(-p)


def _regression(x: Floats, right: NDArray[np.bool_], counts: Floats, origin: Sequence[float]) -> list[float]:
    """The weights of the columns of ``x`` [M, D] with the largest penalised likelihood (logistic regression); the last
    column is the constant, whose weight alone may be below 0.
    """
    # SciPy's optimisers take longer to import than a page to tag.
    from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    sign, centre = np.where(right, 1.0, -1.0), np.array(origin)

    def value_and_slope(weights: Floats) -> tuple[float, Floats]:
        margin, off = sign * (x @ weights), weights - centre
        slope = -(counts * sign * _probability(-margin)) @ x
        return float(counts @ np.logaddexp(0, -margin) + _PENALTY * off @ off), slope + 2 * _PENALTY * off

    bounds = [(0.0, None)] * (len(origin) - 1) + [(None, None)]
    return cast(Any, minimize(value_and_slope, centre, jac=True, method="L-BFGS-B", bounds=bounds)).x.tolist()


def _probability(odds: Floats) -> Floats:
    """1 / (1 + exp(-odds)), without overflow."""
    return np.exp(-np.logaddexp(0, -odds))
