"""HG16 Theorem 3 and Corollary 4: how fast complete herded Gibbs converges, with the constants of a given graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from herdner.base.arrays import Floats, Int64s
from herdner.graph.tables import Graph
from herdner.studies.convergence.exact import (
    check_kernel,
    dobrushin_coefficient,
    full_conditional,
    joint_distribution,
    sweep_kernel,
)


@dataclass(frozen=True, slots=True)
class Convergence:
    """For herded Gibbs with the state of all other variables as key, in a fixed order; d_v is half the L1 distance.

    The paths of HG16 Proposition 5 have t* = N tau* steps.

    Attributes:
        n_variables: N.
        p_min: pi_min, the smallest full conditional probability above 0.
        eta: The Dobrushin coefficient of the kernel of a Gibbs sweep between the possible states.
        n_sweeps: tau*, so many sweeps, beginning anywhere, lead from any possible state to any other; 1 where all are
            possible.
    """

    n_variables: int
    p_min: float
    eta: float
    n_sweeps: int = 1

    @classmethod
    def of(cls, graph: Graph) -> Convergence:
        """What the theorem says of a graph.

        Raises:
            ValueError: There are other than two labels, whose counts stray further, or more than 2^11 states, or
                impossible states cut the others into parts between which Gibbs sampling does not move.
        """
        whole = joint_distribution(graph)
        if {*whole.shape} != {2}:
            found = " and ".join(map(str, sorted({*whole.shape}))) or "none"
            raise ValueError(f"HG16 Theorem 3 is about variables of two labels; those of the graph have {found}")
        check_kernel(whole)
        n, possible = whole.ndim, whole > 0
        smallest = min(float(full_conditional(whole, i)[possible].min()) for i in range(n))
        at = np.flatnonzero(possible)
        kernel = sweep_kernel(whole, range(n))[np.ix_(at, at)]
        return cls(n, smallest, dobrushin_coefficient(kernel), _sweeps_between_all(whole, at))

    @property
    def l(self) -> float:  # noqa: E743 - the paper's letter
        """l = p_min^t*: each possible state is visited at least l T - B times in T sweeps (HG16 Proposition 5, eq. 34;
        where all states are possible, eq. 15: t* = N).
        """
        return self.p_min ** (self.n_variables * self.n_sweeps)

    @property
    def b(self) -> float:
        """B = tau* p_min^t* + the sum of p_min^j 2^min(N, j), j < t* (HG16 eq. 34)."""
        j = np.arange(self.n_variables * self.n_sweeps)
        return self.n_sweeps * self.l + float(np.sum(self.p_min**j * 2.0 ** np.minimum(self.n_variables, j)))

    @property
    def rate(self) -> float:
        """lambda = 2 N (1 + eta) / (l (1 - eta)): d_v(P_T, pi) is at most lambda / T (HG16 eq. 13)."""
        if self.eta >= 1:
            raise ValueError("the Dobrushin coefficient of the Gibbs sweep is 1; HG16 Theorem 3 says nothing then")
        return 2 * self.n_variables * (1 + self.eta) / (self.l * (1 - self.eta))

    @property
    def shortest(self) -> float:
        """T* = 2 B / l: the bounds hold for samples of at least so many sweeps."""
        return 2 * self.b / self.l

    def burn_in(self, n_sweeps: float) -> float:
        """tau*(T) = log((1 - eta) l T / (4 N)) to the base 2 / (1 + eta): the bound lambda / T holds after so many."""
        whole = (1 - self.eta) * self.l * n_sweeps / (4 * self.n_variables)
        return math.log(whole) / math.log(2 / (1 + self.eta)) if self.eta < 1 and whole > 0 else math.inf

    def bound(self, n_sweeps: float) -> float:
        """Of d_v(P_T, pi) after the burn-in (Theorem 3): lambda / T, at most 1; 1 below T*."""
        return min(1.0, self.rate / n_sweeps) if n_sweeps >= self.shortest else 1.0

    def bound_from_start(self, n_sweeps: float) -> float:
        """The same without burn-in (Corollary 4): (lambda + tau*(T)) / T; 1 below T* + tau*(T*)."""
        if n_sweeps < self.shortest + max(0.0, self.burn_in(self.shortest)):
            return 1.0
        return min(1.0, (self.rate + max(0.0, self.burn_in(n_sweeps))) / n_sweeps)


def _sweeps_between_all(whole: Floats, at: Int64s) -> int:
    """tau*; a state can always stay what it is, so that what can be reached in fewer sweeps can be in more."""
    n, most = whole.ndim, 1
    for first in range(n):
        kernel = sweep_kernel(whole, [(first + k) % n for k in range(n)])[np.ix_(at, at)] > 0
        reached, sweeps = kernel, 1
        while not reached.all():
            further = reached @ kernel
            if np.array_equal(further, reached):
                raise ValueError(
                    "-inf entries cut the states into parts between which no change of one variable leads; HG16"
                    " Proposition 5 needs a Gibbs sampler that reaches all"
                )
            reached, sweeps = further, sweeps + 1
        most = max(most, sweeps)
    return most
