"""Calibration of confidences: a logistic regression that maps a CRF's log-odds to the frequency of correct entities.

A trained CRF is overconfident, and a link counts the same evidence twice, once at each of its two tokens. A logistic
regression on the log-odds of entities in held-out documents corrects this (Platt 1999; Guo et al. 2017). Its other
inputs are the label of the entity, its number of tokens, and the mean probability of the document's entities. Of
entities with equal log-odds, persons, short entities, and entities of documents with high probabilities are more often
correct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner._ext.calibration import calibrated, regressors
from herdner.base.arrays import Floats, Int64s

_NEAREST = 1e-12  # probabilities are clipped to [_NEAREST, 1 - _NEAREST]; log-odds of 0 and 1 would be infinite
_PENALTY = 1.0  # weight of the squared distance from the prior's mean; it matters only if there are few entities
_LONGEST = 4  # number of tokens; a longer entity is treated as an entity of this length


class CalibrationInputs(NamedTuple):
    """Properties of M predicted entities, from which a calibration computes their confidence.

    Attributes:
        confidence: float64[M], probabilities under the CRF with links.
        without_links: float64[M], probabilities under the chain without links.
        is_linked: bool[M], True if at least one token of the entity is linked.
        label: The M labels.
        length: int64[M], number of tokens.
        document: int64[M], index of the entity's document.
    """

    confidence: Floats
    without_links: Floats
    is_linked: NDArray[np.bool_]
    label: Sequence[str]
    length: Int64s
    document: Int64s

    @classmethod
    def concatenate(cls, parts: Sequence[CalibrationInputs]) -> CalibrationInputs:
        """Concatenate several `CalibrationInputs` into one.

        Args:
            parts: Objects to concatenate. Their indices ``document`` must refer to the same list of documents.

        Returns:
            The inputs of all entities, in the order of ``parts``.
        """
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in cls._fields if name != "label"
        }
        return cls(label=[label for part in parts for label in part.label], **arrays)

    def regressors(self) -> Floats:
        """Return the regressors (rows) of each entity (column) for the logistic regression, float64[4, entities].

        Returns:
            Log-odds with links and log-odds without links, both clipped to finite values; number of tokens after the
            first, at most 3; and the mean probability without links of all entities in the same document.
        """
        return regressors(self.confidence, self.without_links, self.length, self.document, _NEAREST, _LONGEST)


@dataclass(frozen=True)
class Calibration:
    """Map from the probabilities that a CRF computes to calibrated confidences of entities.

    The calibrated log-odds are linear in the log-odds of the CRF. Weights of log-odds are at least 0, so a larger
    probability never lowers the confidence.

    Attributes:
        linked: For entities with links: weight of the log-odds with links, weight of the log-odds without links, and a
            constant.
        unlinked: For other entities: weight of the log-odds, and a constant.
        labels: Constant added for each label.
        length: Constant added for each token after the first, up to the fourth.
        document: Weight, at least 0, of the mean probability without links of all entities in the document.

    Raises:
        ValueError: A weight is negative, a number is not finite, or `linked` or `unlinked` has the wrong length.
    """

    linked: tuple[float, float, float] = (1.0, 0.0, 0.0)
    unlinked: tuple[float, float] = (1.0, 0.0)
    labels: Mapping[str, float] = field(default_factory=dict[str, float])
    length: float = 0.0
    document: float = 0.0

    def __post_init__(self) -> None:
        """Raise `ValueError` if a coefficient of the calibration is invalid."""
        if len(self.linked) != 3 or len(self.unlinked) != 2:
            raise ValueError(
                "`linked` must have 3 numbers, and `unlinked` must have 2 numbers, got"
                f" {len(self.linked)} and {len(self.unlinked)}"
            )
        numbers = [*self.linked, *self.unlinked, *self.labels.values(), self.length, self.document]
        if not np.isfinite(numbers).all():
            raise ValueError(f"the weights and constants of a calibration must be finite, got {numbers}")
        if (least := min(*self.linked[:2], self.unlinked[0], self.document)) < 0:
            raise ValueError(f"the weights of a calibration must be at least 0, got {least}")

    def __call__(self, inputs: CalibrationInputs) -> Floats:
        """Return the calibrated confidence of each entity.

        An entity whose label is fixed by a known name has probability 1 with and without links, and confidence 1.

        Args:
            inputs: The M entities.

        Returns:
            float64[M], probabilities.
        """
        confidence, without_links, is_linked, labels, length, document = inputs
        constants = np.array([self.labels.get(label, 0.0) for label in labels], np.float64)
        return calibrated(
            confidence, without_links, is_linked, length, document, constants, self.linked, self.unlinked, self.length,
            self.document, _NEAREST, _LONGEST,
        )  # fmt: skip

    @classmethod
    def fit(
        cls,
        inputs: CalibrationInputs,
        is_correct: NDArray[np.bool_],
        weights: Floats | None = None,
        origin: Calibration | None = None,
    ) -> Calibration:
        """Fit a calibration to predicted entities by penalised maximum likelihood.

        Args:
            inputs: M predicted entities of held-out documents.
            is_correct: bool[M], whether each entity is correct.
            weights: float64[M], weight of each entity in the likelihood; None gives each entity weight 1.
            origin: Calibration that is the mean of the prior; with few entities, the result is close to it. None is the
                identity, which leaves the probabilities of the CRF unchanged.

        Returns:
            The calibration.
        """
        origin, weights = origin or cls(), np.ones(len(is_correct)) if weights is None else weights
        odds, chain_odds, extra_tokens, document_confidence = inputs.regressors()
        labels = sorted({*origin.labels, *inputs.label})
        indicators = [np.array([label == each for label in inputs.label], np.float64) for each in labels]
        is_linked, is_unlinked = inputs.is_linked.astype(np.float64), (~inputs.is_linked).astype(np.float64)
        # The first four columns have weights of at least 0.
        columns: list[Floats] = [is_linked * odds, is_linked * chain_odds, is_unlinked * odds]
        columns += [document_confidence, is_linked, is_unlinked, extra_tokens, *indicators]
        mean = [*origin.linked[:2], origin.unlinked[0], origin.document, origin.linked[2], origin.unlinked[1]]
        mean += [origin.length, *(origin.labels.get(each, 0.0) for each in labels)]
        fitted = _regression(np.stack(columns, axis=1), is_correct, weights, mean, 4)
        with_links, without_links, unlinked, document, linked_constant, unlinked_constant, length, *constants = fitted
        return cls((with_links, without_links, linked_constant), (unlinked, unlinked_constant),
                   dict(zip(labels, constants, strict=True)), length, document)  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration as a dict of JSON values."""
        return {"linked": list(self.linked), "unlinked": list(self.unlinked), "labels": dict(self.labels),
                "length": self.length, "document": self.document}  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Build a calibration from the dict that `to_dict` returns.

        Args:
            values: Values of `to_dict`.

        Returns:
            The calibration.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has the wrong type.
            ValueError: A number is out of range.
        """
        linked, unlinked = ([float(number) for number in values[name]] for name in ("linked", "unlinked"))
        labels = {str(label): float(number) for label, number in dict(values["labels"]).items()}
        length, document = float(values["length"]), float(values["document"])
        return cls(tuple(linked), tuple(unlinked), labels, length, document)  # pyright: ignore[reportArgumentType]


def _regression(
    x: Floats, is_correct: NDArray[np.bool_], weights: Floats, origin: Sequence[float], n_nonnegative: int
) -> list[float]:
    """Return the coefficients of a penalised logistic regression of ``is_correct`` on ``x``, float64[entities, D].

    The first ``n_nonnegative`` coefficients are at least 0.
    """
    from herdner.crf.lbfgs import minimise

    sign, mean = np.where(is_correct, 1.0, -1.0), np.array(origin)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        margin, shift = sign * (x @ coefficients), coefficients - mean
        gradient = -(weights * sign * _probability(-margin)) @ x
        return float(weights @ np.logaddexp(0, -margin) + _PENALTY * shift @ shift), gradient + 2 * _PENALTY * shift

    bounds = [(0.0, None)] * n_nonnegative + [(None, None)] * (len(origin) - n_nonnegative)
    return minimise(loss, mean, bounds=bounds).tolist()


def _probability(odds: Floats) -> Floats:
    """Return the probability ``1 / (1 + exp(-x))`` for each value x of the log-odds ``odds``, without overflow."""
    return np.exp(-np.logaddexp(0, -odds))
