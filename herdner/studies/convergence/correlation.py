"""What D^cor comes to in the long run, by the returns of a Gibbs chain to the same herding weight (HGW19 Sec. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.studies.convergence.exact import Focus, check_kernel, conditional, sweep_kernel

_SAME = 1e-9  # probabilities that differ by less are one


@dataclass(frozen=True, slots=True, eq=False)
class CorrelationEstimate:
    """HGW19 Table 1, a row for each weight y: D^cor_y = 2 t^2 D^depend_y is what y adds to D^cor, times pi(y).

    The paper takes the other variables as drawn by Gibbs sampling and the herded one as remembering one label only, by
    a weight that always sees the same probability. Where it sees several (bins), it remembers these too, and with them
    the states z, which the estimate does not know of: it would be several times too small, and is refused.
    On rings like its own the estimate is within some percent where D^cor is large (above 0.003), and down to half of
    D^cor where that is small.

    Attributes:
        chances: float64[Y], pi(y).
        t: float64[Y], the smaller of pi(0 | y) and pi(1 | y).
        depend: float64[Y], sum over z of ``|T_y(0 -> z) - T_y(1 -> z)|``, by how much the state in which y is next used
            depends on the label it gave last; 0 where y never returned after one of the labels.
    """

    chances: Floats
    t: Floats
    depend: Floats

    @property
    def contributions(self) -> Floats:
        """[Y]: pi(y) 2 t^2 D^depend_y."""
        return self.chances * 2 * self.t**2 * self.depend

    @property
    def total(self) -> float:
        """The estimate of D^cor for T to infinity."""
        return float(self.contributions.sum())

    @classmethod
    def of_returns(cls, returns: ArrayLike, focus: Focus) -> CorrelationEstimate:
        """From ``returns`` [2, Z]: counts, or probabilities, of the next z of the same weight by the last label of X.

        Counts of a long Gibbs run are what HGW19 takes, 2^32 samples; noise makes ``depend`` too large.
        """
        _check(focus)
        y, found = focus.keys[0], np.asarray(returns, np.float64)
        totals = np.stack([np.bincount(y, row, focus.n_weights) for row in found])
        with np.errstate(invalid="ignore", divide="ignore"):
            transition = np.where(totals[:, y] > 0, found / totals[:, y], 0.0)
        moved = np.bincount(y, np.abs(transition[0] - transition[1]), focus.n_weights)
        depend = np.where((totals == 0).any(axis=0), 0.0, moved)
        of_y = np.stack([np.bincount(y, column, focus.n_weights) for column in focus.target.T])
        chances = of_y.sum(axis=0)
        return cls(chances, of_y.min(axis=0) / np.where(chances > 0, chances, 1.0), depend)

    @classmethod
    def exact(cls, whole: Floats, focus: Focus, order: Sequence[int] | None = None) -> CorrelationEstimate:
        """The same without sampling: the first returns of the Gibbs chain itself, by linear algebra.

        ``whole`` [2, .., 2] is the joint; sweeps are as `count` makes them. At most 2^11 states; time O(Y S^3).
        """
        _check(focus)
        check_kernel(whole)
        n, x = whole.ndim, focus.variable
        kernel = sweep_kernel(whole, [(x + 1 + k) % n for k in range(n - 1)] if order is None else order)
        states = np.moveaxis(np.arange(whole.size).reshape(whole.shape), x, -1).reshape(-1, 2)
        both = states.ravel()
        moves = kernel[np.ix_(both, both)].reshape(len(both), -1, 2).sum(axis=2)  # [(z', x'), z]
        given_z, y = conditional(focus.target), focus.keys[0]
        returns = np.zeros((2, len(y)))
        for weight in range(focus.n_weights):
            here = y == weight
            elsewhere = (moves[:, ~here, None] * given_z[~here]).reshape(len(both), -1)
            away = np.repeat(~here, 2)
            absorbed = np.eye(int(away.sum())) - elsewhere[away]
            inside = cast(Floats, np.linalg.solve(absorbed, moves[np.ix_(away, here)]))
            first = moves[:, here] + elsewhere @ inside  # [(z', x'), z of this weight]
            from_here = first.reshape(len(y), 2, -1)[here]
            returns[:, here] = np.einsum("zx,zxw->xw", focus.target[here], from_here)
        return cls.of_returns(returns, focus)


def _check(focus: Focus) -> None:
    """ValueError where a weight is drawn, or sees more than one probability, or labels are more than two."""
    if focus.target.shape[1] != 2:
        raise ValueError(f"the estimate is for a variable of two labels, not of {focus.target.shape[1]}")
    if len(focus.keys) > 1:
        raise ValueError("the estimate is for weights that z determines, not for random bins")
    possible = focus.target.sum(axis=1) > 0
    y, p = focus.keys[0][possible], conditional(focus.target)[possible, 1]
    least, most = np.full(focus.n_weights, np.inf), np.full(focus.n_weights, -np.inf)
    np.minimum.at(least, y, p)
    np.maximum.at(most, y, p)
    if (most - least).max() > _SAME:
        raise ValueError(
            "the estimate is for weights that see one probability each (blanket, complete, neighbour-sum), not for bins"
        )
