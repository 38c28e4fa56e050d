"""Removal of variables that exact inference does not need for log Z and samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s
from herdner.graph.graph import ImpossibleGraph
from herdner.inference.elimination_order import ReducedGraph, check_clock

_CLOSE = 1e-12  # largest difference of logarithms that counts as none

Factor = tuple[tuple[int, ...], Floats]  # variables in ascending order, and log-potentials


@dataclass(frozen=True, slots=True, eq=False)
class PrunedGraph:
    """Graph without barren variables.

    A variable is barren if it is in a single factor, and the sum of the factor over its states does not depend on one
    or more other variables of the factor. An example is a variable of a Bayesian network that has no observed
    descendant. The sum is a factor of fewer variables, so the width of the graph may be smaller without the variable.
    The elimination of the variable would join the other variables of the factor.

    Attributes:
        whole: The graph with barren variables.
        graph: The graph without barren variables, with the same log Z. Its factors are not assigned to hosts.
        kept: int64[n], the variables of ``whole`` that remain.
        removed: Each barren variable with its factor, in the order of their removal, as variables of ``whole``.
    """

    whole: ReducedGraph
    graph: ReducedGraph
    kept: NDArray[np.integer]
    removed: list[tuple[int, Factor]]

    @classmethod
    def of(cls, reduced: ReducedGraph, until: float = math.inf) -> PrunedGraph:
        """Remove barren variables until none is left.

        Args:
            reduced: The graph, without factors that are merged into factors of more variables; the sum of a merged
                factor depends on more variables.
            until: Reading of `time.perf_counter` at which the removal ends with an error.

        Returns:
            The graph without barren variables, and the removed variables with their factors.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every joint state.
            OutOfTime: The time ``until`` passed before the end.
        """
        factors: dict[tuple[int, ...], Floats] = dict(zip(reduced.scopes, reduced.tables, strict=True))
        scopes_of: list[set[tuple[int, ...]]] = [set() for _ in reduced.sizes]
        for scope in factors:
            for v in scope:
                scopes_of[v].add(scope)
        constant, removed = reduced.constant, list[tuple[int, Factor]]()
        queue = list(range(len(reduced.sizes)))
        while queue:
            check_clock(until)
            v = queue.pop()
            if len(scopes_of[v]) != 1:
                continue
            (scope,) = scopes_of[v]
            rest, total = _sum_out(scope, factors[scope], v)
            if len(rest) == len(scope) - 1 > 0:
                continue  # the sum depends on all other variables
            removed.append((v, (scope, factors.pop(scope))))
            for u in scope:
                scopes_of[u].discard(scope)
            queue += [u for u in scope if u != v]
            if not rest:
                if total == -math.inf:
                    raise ImpossibleGraph("entries of -inf forbid every joint state; allow at least one")
                constant += float(total)
                continue
            factors[rest] = factors[rest] + total if rest in factors else total
            for u in rest:
                scopes_of[u].add(rest)
        is_kept = np.ones(len(reduced.sizes), bool)
        is_kept[[v for v, _ in removed]] = False
        kept, index = np.flatnonzero(is_kept), np.cumsum(is_kept) - 1
        scopes = [tuple(index[list(scope)].tolist()) for scope in factors]
        variables = reduced.variables[kept]
        graph = ReducedGraph(reduced.states, variables, scopes, list(factors.values()), constant, [])
        return cls(reduced, graph, kept, removed)

    def complete(self, states: Int32s, rng: np.random.Generator | None = None) -> Int32s:
        """Add states of the barren variables to joint states of the other variables.

        Args:
            states: int32[N, n], joint states of ``graph``.
            rng: Source of randomness, to draw each variable given the others; None takes its best state.

        Returns:
            int32[N, n + removed], joint states of ``whole``.
        """
        whole = np.zeros((len(states), len(self.whole.sizes)), np.int32)
        whole[:, self.kept] = states
        for v, (scope, table) in reversed(self.removed):
            others = [u for u in scope if u != v]
            rows = np.moveaxis(table, scope.index(v), -1)[tuple(whole[:, u] for u in others)]
            rows = np.broadcast_to(rows, (len(states), rows.shape[-1]))
            whole[:, v] = (rows if rng is None else rows + rng.gumbel(size=rows.shape)).argmax(axis=1)
        return whole


def _sum_out(scope: tuple[int, ...], table: Floats, v: int) -> Factor:
    """Sum a variable out of a table; return the variables on which the sum depends, and the sum as a table of these."""
    total = np.logaddexp.reduce(table, axis=scope.index(v))
    rest = tuple(u for u in scope if u != v)
    for u in rest:
        axis = rest.index(u)
        first = total.take([0], axis=axis)
        with np.errstate(invalid="ignore"):  # -inf minus -inf
            is_equal = (total == first) | (np.abs(total - first) <= _CLOSE)
        if is_equal.all():
            total, rest = first.squeeze(axis), tuple(w for w in rest if w != u)
    return rest, total
