"""Small graphs in full: their joint distribution, full conditionals and the kernel of a Gibbs sweep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from herdner.base.arrays import Floats
from herdner.graph.graph import ImpossibleGraph
from herdner.graph.tables import Graph, compile_tables

MOST_STATES = 2**16
MOST_KERNEL = 2**11  # states of a kernel, a matrix of doubles


def joint(graph: Graph) -> Floats:
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
    whole = joint(graph)
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
