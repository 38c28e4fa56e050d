"""Convergence rate of complete herded Gibbs, with the constants of a graph (HG16, Theorem 3 and Corollary 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from herdner.base.arrays import Floats, Int64s
from herdner.base.checks import check_real
from herdner.graph.tables import Graph, compile_tables
from herdner.studies.convergence.exact import (
    check_kernel,
    dobrushin_coefficient,
    full_conditional,
    joint_distribution,
    rounding_error,
    sweep_kernel,
)

_ROUNDING = 1e-15  # bound on the rounding error of an element of the kernel


@dataclass(frozen=True, slots=True)
class Convergence:
    """Constants and error bounds of complete herded Gibbs with a fixed scan (HG16, Theorem 3).

    Complete herded Gibbs has one weight for each joint state of all other variables. The error d_v is half the L1
    distance between two distributions.

    The paths of HG16, Proposition 5 have t* = N tau* steps.

    Attributes:
        n_variables: N.
        p_min: pi_min, the smallest positive full conditional probability.
        eta: Dobrushin coefficient of the kernel of a Gibbs sweep between the possible joint states, or slightly more. A
            margin for rounding errors is subtracted from p_min and added to eta.
        n_sweeps: tau*, the number of sweeps, starting at any variable, that lead from any possible joint state to any
            other; 1 if all joint states are possible.
    """

    n_variables: int
    p_min: float
    eta: float
    n_sweeps: int = 1

    @classmethod
    def of(cls, graph: Graph) -> Convergence:
        """Compute the constants of HG16, Theorem 3 for a graph.

        Args:
            graph: A graph of binary variables with at most 2^11 joint states.

        Returns:
            The constants.

        Raises:
            ValueError: A variable is not binary, the graph has too many joint states, its log-potentials span more than
                `joint_distribution` allows, or Gibbs sampling cannot reach all possible joint states from each other.
        """
        compiled = compile_tables(graph)
        joint, error = joint_distribution(compiled), rounding_error(compiled)
        if {*joint.shape} != {2}:
            sizes = " and ".join(map(str, sorted({*joint.shape})))
            problem = f"variables of the graph have {sizes} states" if sizes else "the graph has no variables"
            raise ValueError(f"Theorem 3 of HG16 needs binary variables, but {problem}")
        check_kernel(joint)
        n, possible = joint.ndim, joint > 0
        smallest = min(float(full_conditional(joint, i)[possible].min()) for i in range(n))
        at = np.flatnonzero(possible)
        kernel = sweep_kernel(joint, range(n))[np.ix_(at, at)]
        eta = min(1.0, dobrushin_coefficient(kernel) + 4 * n * error + _ROUNDING * len(at))
        return cls(n, smallest * (1 - 4 * error), eta, _sweeps_between_all(joint, at))

    @property
    def l(self) -> float:  # noqa: E743 - the paper's letter
        """Constant l of HG16, eq. 34, a lower bound on the long-run frequency of each possible joint state.

        T sweeps visit each possible joint state at least l T - B times, where l = p_min^t*.

        If all joint states are possible, t* = N (eq. 15). l is 0 if it is below the range of doubles; the error bounds
        are then 1.
        """
        return self.p_min ** (self.n_variables * self.n_sweeps)

    @property
    def b(self) -> float:
        """Constant B: T sweeps visit each possible joint state at least `l` T - B times (HG16, Proposition 5).

        B is tau* p_min^t* + the sum over j < t* of p_min^j 2^min(N, j).
        """
        j = np.arange(self.n_variables * self.n_sweeps)
        return self.n_sweeps * self.l + float(np.sum(self.p_min**j * 2.0 ** np.minimum(self.n_variables, j)))

    @property
    def rate(self) -> float:
        """Convergence rate lambda of HG16, eq. 13: the error after T sweeps is at most lambda / T.

        lambda is 2 N (1 + eta) / (l (1 - eta)).

        It is infinite if l is 0.

        Raises:
            ValueError: eta is 1.
        """
        if self.eta >= 1:
            raise ValueError(
                "Theorem 3 of HG16 gives no bound, because the Dobrushin coefficient of the Gibbs sweep is 1; use"
                " smaller couplings"
            )
        return _ratio(2 * self.n_variables * (1 + self.eta), self.l * (1 - self.eta))

    @property
    def shortest(self) -> float:
        """Smallest number of sweeps for which the error bounds hold (HG16, Theorem 3).

        It is T* = 2 B / l, or infinite if l is 0.
        """
        return _ratio(2 * self.b, self.l)

    def burn_in(self, n_sweeps: float) -> float:
        """Return tau*(T), the number of burn-in sweeps after which the error bound lambda / T holds (HG16, Theorem 3).

        tau*(T) is the logarithm of (1 - eta) l T / (4 N) to the base 2 / (1 + eta); it is infinite if eta is 1 or l is
        0.

        Args:
            n_sweeps: T.

        Raises:
            ValueError: ``n_sweeps`` is below 1 or not a number.
        """
        ratio = (1 - self.eta) * self.l * _check_length(n_sweeps) / (4 * self.n_variables)
        return math.log(ratio) / math.log(2 / (1 + self.eta)) if self.eta < 1 and ratio > 0 else math.inf

    def bound(self, n_sweeps: float) -> float:
        """Return an upper bound, at most 1, on the error of T sweeps after the burn-in (HG16, Theorem 3).

        It is lambda / T, or 1 if T is below T*.

        Args:
            n_sweeps: T, without the burn-in.

        Raises:
            ValueError: eta is 1, or ``n_sweeps`` is below 1 or not a number.
        """
        return min(1.0, self.rate / n_sweeps) if _check_length(n_sweeps) >= self.shortest else 1.0

    def bound_from_start(self, n_sweeps: float) -> float:
        """Return an upper bound, at most 1, on the error of T sweeps without burn-in (HG16, Corollary 4).

        It is (lambda + tau*(T)) / T, or 1 if T is below T* + tau*(T*).

        Args:
            n_sweeps: T.

        Raises:
            ValueError: eta is 1, or ``n_sweeps`` is below 1 or not a number.
        """
        if not math.isfinite(self.shortest) or _check_length(n_sweeps) < self.shortest + max(
            0.0, self.burn_in(self.shortest)
        ):
            return 1.0
        return min(1.0, (self.rate + max(0.0, self.burn_in(n_sweeps))) / n_sweeps)


def _ratio(above: float, below: float) -> float:
    """Return ``above / below``, or infinity if ``below`` is 0."""
    return above / below if below > 0 else math.inf


def _check_length(n_sweeps: float) -> float:
    """Return ``n_sweeps`` unchanged if it is infinite or a number of at least 1; raise `ValueError` otherwise."""
    return n_sweeps if n_sweeps == math.inf else check_real(n_sweeps, "n_sweeps", 1)


def _sweeps_between_all(joint: Floats, at: Int64s) -> int:
    """Return tau* of HG16: the least number of sweeps in which every possible joint state can lead to every other."""
    n, most = joint.ndim, 1
    support = (joint > 0) / len(at)  # products of conditionals of the joint distribution itself can underflow
    for first in range(n):
        kernel = sweep_kernel(support, [(first + k) % n for k in range(n)])[np.ix_(at, at)] > 0
        reached, sweeps = kernel, 1
        while not reached.all():
            further = reached @ kernel
            if np.array_equal(further, reached):
                raise ValueError(
                    "-inf entries divide the joint states into parts that Gibbs sampling cannot leave, so"
                    " Proposition 5 of HG16 gives no bound; use finite penalties instead of -inf"
                )
            reached, sweeps = further, sweeps + 1
        most = max(most, sweeps)
    return most
