"""Small graphs in full: their joint distribution, full conditionals and the kernel of a Gibbs sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s
from herdner.graph.graph import ImpossibleGraph
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.gibbs.sharing import Sharing

MOST_STATES = 2**16
MOST_KERNEL = 2**11  # states of a kernel, a matrix of doubles


def joint_distribution(graph: Graph) -> Floats:
    """[K1, .., KV]: the probability of every state, by enumeration. ValueError where there are more than 2^16."""
    compiled = compile_tables(graph)
    sizes = compiled.sizes
    n_states = float(np.prod(sizes.astype(np.float64)))
    if n_states > MOST_STATES:
        raise ValueError(f"the graph has {n_states:.3g} states, more than the {MOST_STATES} that can be enumerated")
    states = np.indices(tuple(sizes)).reshape(len(sizes), int(n_states)).T
    log_potentials = compiled.graph.log_potential(states)
    top = log_potentials.max()
    if top == -np.inf:
        raise ImpossibleGraph("-inf entries forbid every state of the graph; allow at least one")
    weights = np.exp(log_potentials - top)
    return (weights / weights.sum()).reshape(tuple(sizes))


def full_conditional(whole: Floats, variable: int) -> Floats:
    """[K1, .., KV]: pi(x_i | the others) of a joint; where the others are impossible, uniform (never visited)."""
    total = whole.sum(axis=variable, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = whole / total
        return np.where(total > 0, shares, 1.0 / whole.shape[variable])


def gibbs_kernel(graph: Graph, order: Sequence[int] | None = None) -> Floats:
    """[S, S]: the transition probabilities of one Gibbs sweep between all S states, the last variable fastest.

    Args:
        order: The variables that are updated, by default all in their order.

    Raises:
        ValueError: The graph has more than 2^11 states.
    """
    whole = joint_distribution(graph)
    check_kernel(whole)
    return sweep_kernel(whole, range(whole.ndim) if order is None else order)


def check_kernel(whole: Floats) -> None:
    """ValueError where a joint has too many states for a matrix of them."""
    if whole.size > MOST_KERNEL:
        raise ValueError(f"the graph has {whole.size} states; a kernel is made for at most {MOST_KERNEL}")


def sweep_kernel(whole: Floats, order: Sequence[int]) -> Floats:
    """`gibbs_kernel` of a joint."""
    n = whole.size
    rows = np.eye(n).reshape(n, *whole.shape)
    for i in order:
        rows = rows.sum(axis=i + 1, keepdims=True) * full_conditional(whole, i)
    return rows.reshape(n, n)


def dobrushin_coefficient(kernel: Floats) -> float:
    """max over x, y of the total variation between rows x and y of a transition matrix [S, S] (HG16 Sec. 3.3).

    For a graph with impossible states give the rows and columns of the possible ones. Time O(S^3).
    """
    from scipy.spatial.distance import pdist

    rows = np.asarray(kernel, np.float64)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not np.allclose(rows.sum(axis=1), 1.0) or rows.min() < 0:
        raise ValueError("a kernel is a square matrix of probabilities whose rows sum to 1, as gibbs_kernel() makes")
    return float(pdist(rows, "cityblock").max(initial=0.0) / 2)


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Focus:
    """What an update of one variable X of K labels depends on.

    Z states z of the other variables, the last of them fastest; L = 1 weight that z uses, or up to K of which one is
    drawn (`random_bins`); Y weights in all.

    Attributes:
        variable: X.
        target: float64[Z, K]: pi(x, z).
        keys: int64[L, Z]: the weights y that z can use, 0 to Y - 1.
        chances: float64[L, Z]: pi(y | z) of each.
        aims: float64[Y, K]: q(x | y) where the weight herds probabilities of its own (RDHG); None: the mean of
            pi(x | z) over the samples of y (HGW19 eq. 1).
        sizes: Numbers of labels of the other variables.
    """

    variable: int
    target: Floats
    keys: Int64s
    chances: Floats
    aims: Floats | None = None
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, whole: Floats, variable: int, keys: Int64s, sharing: Sharing) -> Focus:
        """``whole`` [K1, .., KV] is the joint; ``keys`` [Z] those of the sampler, of random bins the lower of two."""
        target = by_others(whole, variable)
        sizes = tuple(size for j, size in enumerate(whole.shape) if j != variable)
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
        """Y."""
        return int(self.keys.max()) + 1 if self.aims is None else len(self.aims)


def by_others(whole: NDArray[T], variable: int) -> NDArray[T]:
    """[Z, K] from [K1, .., KV]: the variable last, the states of the others flat."""
    return np.moveaxis(whole, variable, -1).reshape(-1, whole.shape[variable])


def conditional(target: Floats) -> Floats:
    """[Z, K]: pi(x | z); 1 / K where z is impossible."""
    total, even = target.sum(axis=1, keepdims=True), float(1 / target.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, target / total, even)
