"""Confidences that are right as often as they say: a map of log-odds, fitted where the right names are known.

A trained CRF is surer than it is right, and with links it counts the same evidence at both of their ends. So what it
says of names in documents that its chain has not seen is held against the truth, and a logistic regression on the
log-odds (Platt 1999; Guo et al. 2017), of few numbers, says how often such a name is right. The same log-odds are right
more often of a person than of an organisation, of a short name than of a long one, and in a document whose names are
sure than in one whose names are not: that stands in the regression too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats

Whole = NDArray[np.int64]

_NEAREST = 1e-12  # probabilities closer to 0 or 1 count as this close: the log-odds of 0 and 1 are infinite
_PENALTY = 1.0  # weight of the squared distance from the map that changes nothing; matters where names are few
_LONGEST = 4  # tokens: a longer name counts as one of so many


class Beliefs(NamedTuple):
    """What a CRF says of M names: the probability of each with links and ``without_links``, float64[M], and whether a
    link ends in it, bool[M]; and of each its class, its number of tokens, and the number of its document, int64[M].
    """

    confidence: Floats
    without_links: Floats
    linked: NDArray[np.bool_]
    label: Sequence[str]
    length: Whole
    document: Whole

    @classmethod
    def joined(cls, parts: Sequence[Beliefs]) -> Beliefs:
        """The names of all parts, whose documents are numbered in common."""
        confidence, without, linked, _, length, document = (list(column) for column in zip(*parts, strict=True))
        return cls(
            np.concatenate([np.empty(0), *confidence]),
            np.concatenate([np.empty(0), *without]),
            np.concatenate([np.empty(0, np.bool_), *linked]),
            [label for part in parts for label in part.label],
            np.concatenate([np.empty(0, np.int64), *length]),
            np.concatenate([np.empty(0, np.int64), *document]),
        )

    def of_document(self) -> Floats:
        """[M]: how sure the CRF is, without links, of the names of the same document, on average."""
        sizes = np.maximum(np.bincount(self.document), 1)
        return (np.bincount(self.document, self.without_links) / sizes)[self.document]


@dataclass(frozen=True)
class Calibration:
    """How often names are right, from the log-odds of what the CRF says of them.

    Weights are at least 0: no name is less sure for being likelier.

    Attributes:
        linked: Of names in which links end: the weights of the log-odds with links and of those without, and a
            constant.
        alone: Of other names: the weight of the log-odds, and a constant.
        classes: Of each class, a number to add.
        length: What to add for each token after the first, of at most 4.
        document: At least 0: what to add times how sure the CRF is of the names of the document
            (`Beliefs.of_document`).

    Raises:
        ValueError: A weight is below 0, or a number is none.
    """

    linked: tuple[float, float, float] = (1.0, 0.0, 0.0)
    alone: tuple[float, float] = (1.0, 0.0)
    classes: Mapping[str, float] = field(default_factory=dict[str, float])
    length: float = 0.0
    document: float = 0.0

    def __post_init__(self) -> None:
        if len(self.linked) != 3 or len(self.alone) != 2:
            raise ValueError("calibration needs 3 numbers for linked names and 2 for others")
        numbers = [*self.linked, *self.alone, *self.classes.values(), self.length, self.document]
        if not np.isfinite(numbers).all() or min(*self.linked[:2], self.alone[0], self.document) < 0:
            raise ValueError("calibration needs finite numbers, its weights at least 0")

    def __call__(self, said: Beliefs) -> Floats:
        """[M], each between 0 and 1: how often such names are right. What is certain, with links and without, stays so:
        a name that the user has settled.
        """
        with_links, without, constant = self.linked
        odds, own = log_odds(said.confidence), log_odds(said.without_links)
        linked = with_links * odds + without * own + constant
        total = np.where(said.linked, linked, self.alone[0] * odds + self.alone[1])
        total += np.array([self.classes.get(label, 0.0) for label in said.label], np.float64)
        total += self.length * _tokens_after_the_first(said) + self.document * said.of_document()
        return np.where((said.confidence >= 1) & (said.without_links >= 1), 1.0, _probability(total))

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
        odds, own, linked = log_odds(said.confidence), log_odds(said.without_links), said.linked
        classes = sorted({*origin.classes, *said.label})
        of_class = [np.array([label == each for label in said.label], np.float64) for each in classes]
        is_linked, is_alone = linked.astype(np.float64), (~linked).astype(np.float64)
        columns: list[Floats] = [is_linked * odds, is_linked * own, is_alone * odds, said.of_document()]  # at least 0
        columns += [is_linked, is_alone, _tokens_after_the_first(said), *of_class]
        centre = [*origin.linked[:2], origin.alone[0], origin.document, origin.linked[2], origin.alone[1]]
        centre += [origin.length, *(origin.classes.get(each, 0.0) for each in classes)]
        found = _regression(np.stack(columns, axis=1), right, counts, centre, 4)
        with_links, without, alone, document, constant, other, length, *own_classes = found
        return cls((with_links, without, constant), (alone, other), dict(zip(classes, own_classes, strict=True)),
                   length, document)  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"linked": list(self.linked), "alone": list(self.alone), "classes": dict(self.classes),
                "length": self.length, "document": self.document}  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """From `to_dict`, or what older versions wrote; KeyError, TypeError or ValueError for anything else."""
        linked, alone = ([float(number) for number in values[name]] for name in ("linked", "alone"))
        classes = {str(label): float(number) for label, number in dict(values.get("classes", {})).items()}
        more = (float(values.get(name, 0.0)) for name in ("length", "document"))
        return cls(tuple(linked), tuple(alone), classes, *more)  # pyright: ignore[reportArgumentType]


def log_odds(probability: Floats) -> Floats:
    """log(p / (1 - p)), finite."""
    p = np.clip(probability, _NEAREST, 1 - _NEAREST)
    return np.log(p) - np.log1p(-p)


def _tokens_after_the_first(said: Beliefs) -> Floats:
    return np.minimum(said.length, _LONGEST) - 1.0


def _regression(
    x: Floats, right: NDArray[np.bool_], counts: Floats, origin: Sequence[float], n_weights: int
) -> list[float]:
    """The weights of the columns of ``x`` [M, D] with the largest penalised likelihood (logistic regression); those of
    the first ``n_weights`` are at least 0.
    """
    # SciPy's optimisers take longer to import than a page to tag.
    from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    sign, centre = np.where(right, 1.0, -1.0), np.array(origin)

    def value_and_slope(weights: Floats) -> tuple[float, Floats]:
        margin, off = sign * (x @ weights), weights - centre
        slope = -(counts * sign * _probability(-margin)) @ x
        return float(counts @ np.logaddexp(0, -margin) + _PENALTY * off @ off), slope + 2 * _PENALTY * off

    bounds = [(0.0, None)] * n_weights + [(None, None)] * (len(origin) - n_weights)
    with threadpool_limits(1, "blas"):  # the last digits of its sums differ from one number of threads to the next
        found = cast(Any, minimize(value_and_slope, centre, jac=True, method="L-BFGS-B", bounds=bounds))
    return found.x.tolist()


def _probability(odds: Floats) -> Floats:
    """1 / (1 + exp(-odds)), without overflow."""
    return np.exp(-np.logaddexp(0, -odds))
