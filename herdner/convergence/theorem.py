"""HG16 Theorem 3 and Corollary 4: how fast complete herded Gibbs converges, with the constants of a given graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from herdner.convergence.enumeration import dobrushin_coefficient, full_conditional, joint, sweep_kernel
from herdner.graph.tables import Graph


@dataclass(frozen=True, slots=True)
class Convergence:
    """For herded Gibbs with the state of all other variables as key, in a fixed order; d_v is half the L1 distance.

    n_variables  N
    p_min        the smallest full conditional probability
    eta          the Dobrushin coefficient of the kernel of a Gibbs sweep
    """

    n_variables: int
    p_min: float
    eta: float

    @classmethod
    def of(cls, graph: Graph) -> Convergence:
        """ValueError for other than two labels, which Theorem 3 is about, beyond 2^11 states, or where some state is
        impossible: eq. 15 is for positive distributions.
        """
        whole = joint(graph)
        if max(whole.shape, default=2) > 2 or min(whole.shape, default=2) < 2:
            raise ValueError(
                f"HG16 Theorem 3 is about variables of two labels; the graph has some of {max(whole.shape)}, for which"
                " counts stray further"
            )
        if whole.size > 2**11:
            raise ValueError(f"the graph has {whole.size} states; its kernel is made for at most 2048")
        if whole.min() == 0:
            raise ValueError("some states are impossible; HG16 eq. 15 needs a distribution that is positive everywhere")
        smallest = min(float(full_conditional(whole, i).min()) for i in range(whole.ndim))
        return cls(whole.ndim, smallest, dobrushin_coefficient(sweep_kernel(whole, range(whole.ndim))))

    @property
    def l(self) -> float:  # noqa: E743 - the paper's letter
        """l = p_min^N: each state is visited at least l T - B times in T sweeps (HG16 Proposition 5, eq. 15)."""
        return self.p_min**self.n_variables

    @property
    def b(self) -> float:
        """B = p_min^N + the sum of (2 p_min)^j, j < N (HG16 eq. 15)."""
        return self.l + float(np.sum((2 * self.p_min) ** np.arange(self.n_variables)))

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
