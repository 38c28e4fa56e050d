"""Dobrushin's influence by enumeration of a blanket."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.tables import TableGraph

# Of one variable's factors: the other variables, and the log-potentials [K, others ..].
_Local = list[tuple[list[int], Floats]]


def exact_entries(compiled: TableGraph, starts: Int64s, sources: Int32s, values: Floats, max_states: int) -> int:
    """Overwrites the rows of variables whose blankets have at most ``max_states`` states by their exact influences
    (DoGS17 eq. 1).

    A condition under which no label is possible counts as different from any under which one is. Returns the first
    variable that was left out, or -1.
    """
    sizes = compiled.sizes
    small = [
        i
        for i in range(len(sizes))
        if math.prod(int(sizes[j]) for j in sources[starts[i] : starts[i + 1]]) <= max_states
    ]
    for i, factors in zip(small, _local_factors(compiled, small), strict=True):
        row = slice(int(starts[i]), int(starts[i + 1]))
        many = np.flatnonzero(sizes[sources[row]] > 1)  # NumPy has few axes, and one label influences nothing
        blanket = sources[row][many].tolist()
        p, possible = _conditional(int(sizes[i]), sizes[blanket].tolist(), blanket, factors)
        values[row] = 0.0
        values[row.start + many] = [
            _influence(np.moveaxis(p, a, 0), np.moveaxis(possible, a, 0)) for a in range(len(blanket))
        ]
    return min({*range(len(sizes))}.difference(small), default=-1)


def _local_factors(compiled: TableGraph, variables: Sequence[int]) -> list[_Local]:
    place = {i: at for at, i in enumerate(variables)}
    found: list[_Local] = [[] for _ in variables]
    for group in compiled.factors:
        for scope, table, scale in zip(group.scopes.tolist(), group.table_of_factor, group.scale, strict=True):
            for a, i in enumerate(scope):
                if i in place:
                    values = np.moveaxis(scale * group.tables[table], a, 0)
                    found[place[i]].append((scope[:a] + scope[a + 1 :], values))
    return found


def _conditional(
    n_labels: int, sizes: list[int], blanket: list[int], factors: _Local
) -> tuple[Floats, NDArray[np.bool_]]:
    """[labels of the blanket .., K]: the probabilities; [labels of the blanket ..]: whether any label is possible."""
    log_p = np.zeros((*sizes, n_labels))
    for others, values in factors:
        place = {j: a for a, j in enumerate(blanket)}
        order = sorted(range(len(others)), key=lambda k: place.get(others[k], -1))
        turned = np.transpose(values, [*(1 + k for k in order), 0])
        shape = [sizes[a] if j in others else 1 for a, j in enumerate(blanket)]
        log_p = log_p + turned.reshape(*shape, n_labels)
    top = log_p.max(axis=-1, keepdims=True)
    possible = top[..., 0] > -np.inf
    p = np.exp(log_p - np.where(np.isfinite(top), top, 0.0))
    return p / np.maximum(p.sum(axis=-1, keepdims=True), np.finfo(float).tiny), possible


def _influence(p: Floats, possible: NDArray[np.bool_]) -> float:
    """The largest total variation distance between conditionals that differ in the first axis alone."""
    largest = 0.0
    for x in range(len(p)):
        for y in range(x):
            distance: Floats = 0.5 * np.abs(p[x] - p[y]).sum(axis=-1)
            distance = np.where(possible[x] & possible[y], distance, (possible[x] != possible[y]).astype(float))
            largest = max(largest, float(distance.max(initial=0.0)))
    return min(largest, 1.0)
