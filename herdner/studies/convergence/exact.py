"""Exact quantities of small graphs: joint distribution, full conditionals, Gibbs kernel, weights of one variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s
from herdner.base.extras import check_extra
from herdner.base.representation import short_repr
from herdner.graph.graph import ImpossibleGraph
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.gibbs.sharing import Sharing

MAX_STATES = 2**16
MAX_KERNEL = 2**11  # largest number of joint states of a kernel matrix
_MAX_SPAN = 650.0  # e^-650 is a normal double, and so are its products with the number of joint states
_MAX_ROUNDING = 1e-10  # largest accepted rounding error of the log-potential of a joint state


def joint_distribution(graph: Graph) -> Floats:
    """Return the probability of every joint state of a graph, by enumeration.

    A joint state has probability 0 if and only if a factor forbids it.

    Args:
        graph: A graph with at most 2^16 joint states, whose log-potentials differ by at most 650.

    Returns:
        float64[K1, .., KV].

    Raises:
        ValueError: The graph has more than 2^16 joint states, or doubles cannot represent the probabilities of its
            possible joint states.
        ImpossibleGraph: The graph forbids every joint state.
    """
    compiled = compile_tables(graph)
    sizes = compiled.sizes
    n_states = float(np.prod(sizes.astype(np.float64)))
    if n_states > MAX_STATES:
        raise ValueError(
            f"the graph has {n_states:.3g} joint states; at most {MAX_STATES} can be enumerated; use a smaller graph"
        )
    states = np.indices(tuple(sizes)).reshape(len(sizes), int(n_states)).T
    log_potentials = compiled.graph.log_potential(states)
    top = log_potentials.max()
    if top == -np.inf:
        raise ImpossibleGraph("-inf entries forbid every joint state of the graph; allow at least one joint state")
    _check_span(compiled, log_potentials[log_potentials > -np.inf])
    weights = np.exp(log_potentials - top)
    return (weights / weights.sum()).reshape(tuple(sizes))


def rounding_error(compiled: TableGraph) -> float:
    """Return a bound on the rounding error of the log-potential of a joint state.

    Args:
        compiled: The graph.
    """
    n_terms = sum(len(group) for group in compiled.factors)
    return (n_terms + 1) * sum(group.reach for group in compiled.factors) * float(np.finfo(np.float64).eps)


def _check_span(compiled: TableGraph, log_potentials: Floats) -> None:
    """Raise `ValueError` if the log-potentials of joint states differ too much or have large rounding errors."""
    span = float(np.ptp(log_potentials))
    if span > _MAX_SPAN:
        raise ValueError(
            f"the log-potentials of the joint states differ by {span:.4g}, but at most {_MAX_SPAN:g} is supported;"
            " use smaller penalties, or -inf for impossible states"
        )
    error = rounding_error(compiled)
    if error > _MAX_ROUNDING:
        raise ValueError(
            f"the log-potentials of the joint states are sums with rounding errors up to {error:.2g}; subtract"
            " from each table its largest entry, or use smaller numbers"
        )


def full_conditional(joint: Floats, variable: int) -> Floats:
    """Return the full conditionals of a variable; they are uniform for impossible states of the other variables.

    Args:
        joint: The joint distribution, float64[K1, .., KV].
        variable: Index of the variable.

    Returns:
        float64[K1, .., KV].
    """
    total = joint.sum(axis=variable, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = joint / total
        return np.where(total > 0, shares, 1.0 / joint.shape[variable])


def gibbs_kernel(graph: Graph, order: Sequence[int] | None = None) -> Floats:
    """Return the transition matrix of one Gibbs sweep, with a row and a column for each joint state.

    Args:
        graph: A graph with at most 2^11 joint states.
        order: The variables of a sweep; by default all, in order.

    Returns:
        float64[S, S], joint states in row-major order (the state of the last variable changes fastest).

    Raises:
        ValueError: The graph has more than 2^11 joint states.
    """
    joint = joint_distribution(graph)
    check_kernel(joint)
    return sweep_kernel(joint, range(joint.ndim) if order is None else order)


def check_kernel(joint: Floats) -> None:
    """Raise `ValueError` if a graph has too many joint states for a transition matrix.

    Args:
        joint: The joint distribution, float64[K1, .., KV].

    Raises:
        ValueError: The graph has more than 2^11 joint states.
    """
    if joint.size > MAX_KERNEL:
        raise ValueError(
            f"the graph has {joint.size} joint states; a transition matrix supports at most {MAX_KERNEL}; use a smaller"
            " graph"
        )


def sweep_kernel(joint: Floats, order: Sequence[int]) -> Floats:
    """Return the transition matrix of one Gibbs sweep, for a given joint distribution.

    Args:
        joint: The joint distribution, float64[K1, .., KV].
        order: The variables of a sweep.

    Returns:
        float64[S, S].
    """
    n = joint.size
    rows = np.eye(n).reshape(n, *joint.shape)
    for i in order:
        rows = rows.sum(axis=i + 1, keepdims=True) * full_conditional(joint, i)
    return rows.reshape(n, n)


def dobrushin_coefficient(kernel: Floats) -> float:
    """Return the largest total variation distance between two rows of a transition matrix (HG16, Sec. 3.3).

    Time O(S^3).

    Args:
        kernel: float64[S, S]. For a graph with impossible states, pass the rows and columns of the possible ones.

    Raises:
        ValueError: The matrix is not square, or a row is no distribution.
    """
    check_extra("scipy", "the ergodic coefficient needs SciPy")
    from scipy.spatial.distance import pdist

    rows = np.asarray(kernel, np.float64)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not np.allclose(rows.sum(axis=1), 1.0) or rows.min() < 0:
        raise ValueError(
            f"`kernel` must be a square matrix of probabilities with row sums 1, got {rows.tolist()!s:.80};"
            " gibbs_kernel returns such a matrix"
        )
    return float(pdist(rows, "cityblock").max(initial=0.0) / 2)


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Focus:
    """Distribution of a variable X and the joint state Z of all others, and the herding weight that X uses for each z.

    The notation is that of HGW19, Sec. 4.1. X has K states, and z is a joint state of the other variables.

    In the index of z, the state of the last of the other variables changes fastest. An update of X in z uses one weight
    (L = 1), or draws one of up to K weights (L > 1, `random_bin_sharing`). There are Y weights in all.

    Attributes:
        variable: Index of X.
        target: float64[Z, K], pi(x, z).
        keys: int64[L, Z], the weights y that z can use, 0 to Y - 1.
        chances: float64[L, Z], pi(y | z) of each weight in ``keys``.
        aims: float64[Y, K], the target q(x | y) of each weight if it is fixed (RDHG). If None, the target is the mean
            of pi(x | z) over the samples that used y (HGW19, eq. 1).
        sizes: Numbers of states of the other variables.
    """

    variable: int
    target: Floats
    keys: Int64s
    chances: Floats
    aims: Floats | None = None
    sizes: tuple[int, ...] = ()

    __repr__ = short_repr

    @classmethod
    def of(cls, joint: Floats, variable: int, keys: Int64s, sharing: Sharing) -> Focus:
        """Group the joint states z of the other variables by the herding weight that a sampler uses for ``variable``.

        Args:
            joint: The joint distribution, float64[K1, .., KV].
            variable: Index of X.
            keys: int64[Z], the sampler's weight key for each z; with random bins the lower of two keys.
            sharing: The weight sharing of the sampler.

        Returns:
            The variable, its weights and the groups of z that use each weight.
        """
        target = by_other_states(joint, variable)
        sizes = tuple(size for j, size in enumerate(joint.shape) if j != variable)
        if sharing.kind != "random-bins":
            _, compact = np.unique(keys, return_inverse=True)
            return cls(variable, target, compact.reshape(1, -1), np.ones((1, len(keys))), sizes=sizes)
        scaled = conditional(target)[:, 1] * sharing.n_bins
        upper = np.minimum(keys + 1, sharing.n_bins)
        chance = np.clip(scaled - keys, 0.0, 1.0)
        ones = np.arange(sharing.n_bins + 1) / sharing.n_bins
        aims = np.stack([1 - ones, ones], axis=1)
        return cls(variable, target, np.stack([keys, upper]), np.stack([1 - chance, chance]), aims, sizes)

    @property
    def n_weights(self) -> int:
        """Y, the number of herding weights of the variable X."""
        return int(self.keys.max()) + 1 if self.aims is None else len(self.aims)


def by_other_states(joint: NDArray[T], variable: int) -> NDArray[T]:
    """Reshape a joint distribution to [Z, K]: Z joint states of the other variables, K states of ``variable``.

    Args:
        joint: An array [K1, .., KV].
        variable: The variable.

    Returns:
        Array [Z, K].
    """
    return np.moveaxis(joint, variable, -1).reshape(-1, joint.shape[variable])


def conditional(target: Floats) -> Floats:
    """Return pi(x | z), the conditional probability of state x given the joint state z of the other variables.

    It is 1 / K if z is impossible.

    Args:
        target: float64[Z, K], pi(x, z).

    Returns:
        float64[Z, K].
    """
    return full_conditional(target, 1)
