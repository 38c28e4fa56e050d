"""Graphs of every structure that a loop of the Gibbs family is made for: add one, and all laws hold it too.

``FAMILIES``: name -> graph. ``EQUAL``: those whose neighbours' sum may be shared. Graphs are small, so that their
weights are met again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from quick import pairwise

from herdner.graph import FactorGraph, TableFactors, chain_graph, complete_graph, ising, potts
from herdner.inference.gibbs import (
    Sharing,
    bin_sharing,
    blanket_sharing,
    complete_sharing,
    neighbour_sum_sharing,
    random_bin_sharing,
)

INF = np.inf


def binary_ring() -> FactorGraph:
    """Every coupling its own, one pair joined twice."""
    rng = np.random.default_rng(1)
    edges = np.array([[i, (i + 1) % 9] for i in range(9)] + [[3, 4]], np.int32)
    unary = TableFactors(np.arange(9, dtype=np.int32)[:, None], rng.normal(size=(9, 2)))
    return FactorGraph(np.full(9, 2), [unary, TableFactors(edges, rng.normal(size=(10, 2, 2)))])


def binary_grid() -> FactorGraph:
    return ising(0.4, np.random.default_rng(2).normal(size=(5, 7)))


def binary_torus() -> FactorGraph:
    return ising(-0.3, 0.1, (4, 4), wrap=True)


def binary_star() -> FactorGraph:
    """Degrees from 0 to 8, so that the weights of variables have different numbers; couplings of both signs."""
    rng = np.random.default_rng(3)
    edges = np.array([[0, j] for j in range(1, 9)] + [[1, 2], [2, 3]], np.int32)
    couplings = rng.normal(size=10)
    values = np.array([-1.0, 1.0])
    fields = TableFactors(np.arange(10, dtype=np.int32)[:, None], values[None], scale=rng.normal(size=10))
    return FactorGraph(np.full(10, 2), [fields, TableFactors(edges, np.outer(values, values)[None], scale=couplings)])


def binary_hub() -> FactorGraph:
    """A variable of 14 neighbours: more keys than are met."""
    edges = np.array([[14, j] for j in range(14)], np.int32)
    couplings = np.random.default_rng(11).normal(size=14) / 3
    values = np.array([-1.0, 1.0])
    fields = TableFactors(np.arange(15, dtype=np.int32)[:, None], values[None], scale=np.linspace(-0.3, 0.3, 15))
    return FactorGraph(np.full(15, 2), [fields, TableFactors(edges, np.outer(values, values)[None], scale=couplings)])


def binary_hard() -> FactorGraph:
    """Independent sets of a grid (-inf entries): no two neighbours have label 1."""
    grid = ising(1.0, 0.0, (4, 5))
    hard = TableFactors(grid.factors[1].scopes, np.array([[[0.0, 0.0], [0.0, -INF]]]))
    field = TableFactors(np.arange(20, dtype=np.int32)[:, None], np.array([[0.0, 0.7]]), scale=np.linspace(-1, 2, 20))
    return FactorGraph(np.full(20, 2), [field, hard])


def _labels_grid(n_labels: int, sides: tuple[int, int], seed: int) -> FactorGraph:
    return potts(0.6, np.random.default_rng(seed).normal(size=(*sides, n_labels)))


def three_labels() -> FactorGraph:
    return _labels_grid(3, (3, 4), 4)


def five_labels() -> FactorGraph:
    """Tables that are not symmetric, with -inf entries."""
    rng = np.random.default_rng(5)
    table = rng.normal(size=(5, 5))
    table[rng.random((5, 5)) < 0.2] = -INF
    np.fill_diagonal(table, 0.5)
    return chain_graph(rng.normal(size=(8, 5)), table)


def nine_labels() -> FactorGraph:
    return _labels_grid(9, (2, 3), 6)


def seventeen_labels() -> FactorGraph:
    return _labels_grid(17, (2, 2), 7)


def mixed_labels() -> FactorGraph:
    """One to four labels, an isolated variable, pairs only."""
    rng = np.random.default_rng(8)
    sizes = np.array([2, 3, 1, 4, 2, 2, 3])
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (3, 1)]
    factors = [TableFactors([pair], rng.normal(size=(1, *sizes[list(pair)]))) for pair in pairs]
    return FactorGraph(sizes, [*factors, TableFactors([[6]], rng.normal(size=(1, 3)))])


def higher_order() -> FactorGraph:
    """Factors of up to four variables, tied and scaled, a constant, -inf entries."""
    rng = np.random.default_rng(9)
    sizes = np.array([2, 2, 3, 2, 2, 3, 2])
    some = rng.normal(size=(2, 2, 2))
    some[0, 1, 1] = some[1, 0, 0] = -INF
    return FactorGraph(
        sizes,
        [
            TableFactors([[0, 1, 3]], some[None]),
            TableFactors([[3, 2, 4, 5]], rng.normal(size=(1, 2, 3, 2, 3))),
            TableFactors([[2, 0], [5, 6]], rng.normal(size=(1, 3, 2)), scale=[1.0, -0.5]),
            TableFactors([[1], [6]], rng.normal(size=(2, 2))),
            TableFactors(np.empty((1, 0), np.int32), [1.5]),
        ],
    )


def strong_pairs() -> FactorGraph:
    """Conditionals that span more than a double can: couplings of 450 that a field takes back where it matters."""
    couplings = np.array([[0, 450, 0.8, -0.4], [450, 0, 0, 0.5], [0.8, 0, 0, 0.3], [-0.4, 0.5, 0.3, 0]])
    return complete_graph(couplings, [-450.2, 900.0, 0.1, -0.3])


def strong_labels() -> FactorGraph:
    rng = np.random.default_rng(10)
    tables = rng.normal(size=(2, 3, 3)) + np.array([600.0, -600.0])[:, None, None] * (np.arange(3) > 0)
    unary = TableFactors([[0], [1], [2]], np.array([[0.0, 0.5, 1.0]]), scale=[1.0, -1.0, 0.7])
    return FactorGraph([3, 3, 3], [unary, TableFactors([[0, 1], [2, 1]], tables)])


_BUILDERS = (
    binary_ring, binary_grid, binary_torus, binary_star, binary_hub, binary_hard, three_labels, five_labels,
    nine_labels, seventeen_labels, mixed_labels, higher_order, strong_pairs, strong_labels,
)  # fmt: skip
FAMILIES = {build.__name__: build() for build in _BUILDERS}
EQUAL = {"binary_grid", "binary_torus", "binary_hard", "three_labels", "nine_labels", "seventeen_labels"}

_SHARINGS = (
    blanket_sharing(),
    complete_sharing(),
    neighbour_sum_sharing(),
    bin_sharing(1),
    bin_sharing(6),
    random_bin_sharing(6),
)


def fits(family: str, sharing: Sharing) -> bool:
    return sharing.kind != "neighbour-sum" or family in EQUAL


def sharings(family: str) -> list[Sharing]:
    """Return the options that fit a family."""
    return [sharing for sharing in _SHARINGS if fits(family, sharing)]


def shared(*axes: Sequence[Any], families: Iterable[str] = FAMILIES, random: bool = True) -> list[Any]:
    """(family, sharing, value of each axis): all combinations, the quick ones pairwise; RDHG only where ``random``."""
    chosen = [sharing for sharing in _SHARINGS if random or sharing.kind != "random-bins"]
    return pairwise(list(families), chosen, *axes, fits=fits)
