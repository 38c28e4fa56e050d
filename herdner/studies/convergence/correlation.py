"""The limit of D^cor, estimated from the returns of a Gibbs chain to the same herding weight (HGW19, Sec. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, finite
from herdner.studies.convergence.exact import Focus, check_kernel, conditional, sweep_kernel

_TOLERANCE = 1e-9  # probabilities that differ by less count as equal


@dataclass(frozen=True, slots=True, eq=False)
class CorrelationEstimate:
    """Estimated limit of D^cor, the correlation part of the sampling error, as the samples grow (HGW19, Table 1).

    Each herding weight y has one row.

    The contribution of weight y is D^cor_y pi(y), with D^cor_y = 2 t^2 D^depend_y. The paper assumes that Gibbs
    sampling draws the other variables, and that each weight is used with a single probability; the weight then depends
    on only one earlier state of X. A weight of a bin is used with several probabilities, so it also depends on the
    states z. The estimate ignores this dependence and would be several times too small, so weights of bins raise an
    error. On rings as in the paper, the relative error of the estimate is a few per cent if D^cor is above 0.003. If
    D^cor is smaller, the estimate can be as low as half of D^cor.

    Attributes:
        chances: float64[Y], pi(y).
        t: float64[Y], the smaller of pi(0 | y) and pi(1 | y).
        depend: float64[Y], the sum over z of ``|T_y(0 -> z) - T_y(1 -> z)|``: the dependence of the z at the next use
            of y on the state of X at the last use. It is 0 if y was never used again after one of the states.
    """

    chances: Floats
    t: Floats
    depend: Floats

    @property
    def contributions(self) -> Floats:
        """Contribution of each of the Y herding weights to D^cor, the correlation part of the error, float64[Y].

        The contribution of weight y is pi(y) 2 t^2 D^depend_y.
        """
        return self.chances * 2 * self.t**2 * self.depend

    @property
    def total(self) -> float:
        """Estimated limit of D^cor, the correlation part of the sampling error, as the number of samples grows."""
        return float(self.contributions.sum())

    @classmethod
    def of_returns(cls, returns: ArrayLike, focus: Focus) -> CorrelationEstimate:
        """Estimate D^cor, the correlation part of the error, from the counts `VisitCounts.returns` of a Gibbs run.

        HGW19 counts the returns of a long Gibbs run, 2^32 samples. With fewer samples, noise makes ``depend`` too
        large.

        Args:
            returns: [2, Z], counts or probabilities of the z at the next use of the same weight, by the state of X at
                its last use.
            focus: The variable X and its weights.

        Returns:
            The estimate.

        Raises:
            ValueError: X is not binary, a weight is drawn at random or used with several probabilities, or ``returns``
                are not counts of this shape.
        """
        _check(focus)
        y, observed = focus.keys[0], finite(returns, "`returns`")
        if observed.shape != focus.target.shape[::-1] or observed.min() < 0:
            raise ValueError(
                f"`returns` must be counts of shape {list(focus.target.shape[::-1])}, got {list(observed.shape)} with"
                f" smallest element {observed.min(initial=0.0):g}"
            )
        totals = np.stack([np.bincount(y, row, focus.n_weights) for row in observed])
        with np.errstate(invalid="ignore", divide="ignore"):
            transition = np.where(totals[:, y] > 0, observed / totals[:, y], 0.0)
        moved = np.bincount(y, np.abs(transition[0] - transition[1]), focus.n_weights)
        depend = np.where((totals == 0).any(axis=0), 0.0, moved)
        of_y = np.stack([np.bincount(y, column, focus.n_weights) for column in focus.target.T])
        chances = of_y.sum(axis=0)
        return cls(chances, of_y.min(axis=0) / np.where(chances > 0, chances, 1.0), depend)

    @classmethod
    def exact(cls, joint: Floats, focus: Focus, order: Sequence[int] | None = None) -> CorrelationEstimate:
        """Compute D^cor, the correlation part of the error, by linear algebra, without sampling.

        Time O(Y S^3) for S joint states, at most 2^11.

        Args:
            joint: The joint distribution, float64[2, .., 2].
            focus: The variable X and its weights.
            order: The variables of a sweep; by default the order of `count_visits`.

        Returns:
            The exact values.

        Raises:
            ValueError: There are too many states, X is not binary, a weight is drawn at random or used with several
                probabilities, or the chain hardly ever returns to a weight.
        """
        _check(focus)
        check_kernel(joint)
        n, x = joint.ndim, focus.variable
        kernel = sweep_kernel(joint, [(x + 1 + k) % n for k in range(n - 1)] if order is None else order)
        states = np.moveaxis(np.arange(joint.size).reshape(joint.shape), x, -1).reshape(-1, 2)
        both = states.ravel()
        moves = kernel[np.ix_(both, both)].reshape(len(both), -1, 2).sum(axis=2)  # [(z', x'), z]
        given_z, y = conditional(focus.target), focus.keys[0]
        returns = np.zeros((2, len(y)))
        for weight in range(focus.n_weights):
            here = y == weight
            elsewhere = (moves[:, ~here, None] * given_z[~here]).reshape(len(both), -1)
            away = np.repeat(~here, 2)
            absorbed = np.eye(int(away.sum())) - elsewhere[away]
            inside = _solve(absorbed, moves[np.ix_(away, here)])
            first = moves[:, here] + elsewhere @ inside  # [(z', x'), z of this weight]
            from_here = first.reshape(len(y), 2, -1)[here]
            returns[:, here] = np.einsum("zx,zxw->xw", focus.target[here], from_here)
        return cls.of_returns(returns, focus)


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve a linear system; raise `ValueError` if the matrix is singular."""
    try:
        return cast(Floats, np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        raise ValueError(
            "D^cor, the correlation part of the error, cannot be computed, because the Gibbs chain too rarely reaches"
            " some states that choose a herding weight; use smaller couplings"
        ) from None


def _check(focus: Focus) -> None:
    """Raise `ValueError` if `CorrelationEstimate` cannot estimate D^cor (HGW19) for the variable ``focus.variable``.

    The variable must have two states, and each of its herding weights must be used with a single probability.
    """
    if focus.target.shape[1] != 2:
        raise ValueError(
            "the estimate of D^cor, the correlation part of the error, needs a binary variable, got a variable of"
            f" {focus.target.shape[1]} states"
        )
    if len(focus.keys) > 1:
        raise ValueError(
            "the estimate of D^cor, the correlation part of the error, does not support random bins; use"
            " sharing=blanket, complete or neighbour-sum"
        )
    possible = focus.target.sum(axis=1) > 0
    y, p = focus.keys[0][possible], conditional(focus.target)[possible, 1]
    least, most = np.full(focus.n_weights, np.inf), np.full(focus.n_weights, -np.inf)
    np.minimum.at(least, y, p)
    np.maximum.at(most, y, p)
    if (most - least).max() > _TOLERANCE:
        raise ValueError(
            "the estimate of D^cor, the correlation part of the error, needs one probability per herding weight; use"
            " sharing=blanket, complete or neighbour-sum instead of bins"
        )
