"""The blocks of blocked Gibbs sampling: runs of variables that are chains by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner._ext import layout
from herdner.graph.chains import check_cells, edge_recipes, factor_in_words, recipe_table
from herdner.graph.factors import TableFactors
from herdner.graph.tables import TableGraph
from herdner.inference.backend import UnsupportedGraph


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a graph and the tables of the edges in them; the engine reads it by these names (engine/fields.h).

    ``first`` int32[V]: the first variable of each variable's block; ``edge_table`` int32[V]: the table of the edge to
    the variable before, in a block; ``tables`` float64[T, K, width]: log-potentials less the largest, the label of the
    variable before first, padded with -inf; ``range``: the largest distance of two finite entries of a table;
    ``longest``: variables of a block.
    """

    first: NDArray[np.int32]
    edge_table: NDArray[np.int32]
    tables: NDArray[np.float64]
    range: float
    longest: int

    @property
    def n_labels(self) -> int:
        """The largest number of labels."""
        return self.tables.shape[1]

    @property
    def stride(self) -> int:
        """Doubles of a row of a table."""
        return self.tables.shape[2]

    @classmethod
    def of(cls, compiled: TableGraph) -> Blocks:
        sizes, n_labels = compiled.sizes, int(compiled.sizes.max(initial=1))
        nearest, joined = np.full(len(sizes), -1, np.int32), np.zeros(len(sizes), np.uint8)
        for g, group in enumerate(compiled.factors):
            if group.arity > 2 and len(group):
                raise UnsupportedGraph(
                    f"{factor_in_words(g, group)}: blocked-gibbs needs factors of one or two variables; use gibbs"
                )
            if group.arity == 2:
                layout.mark_neighbours(group.scopes, nearest, joined)
        first = np.empty(len(sizes), np.int32)
        longest = layout.cut_runs(nearest, joined, first)
        inside = [_inside(group, first) for group in compiled.factors if group.arity == 2]
        edge_table, values = _edge_tables([group for group in inside if len(group)], len(sizes), n_labels)
        width = max(2, int(compiled.conditionals.widths.max()))
        tables = np.full((max(1, len(values)), n_labels, width), -np.inf)
        for target, value in zip(tables, values, strict=False):
            target[: value.shape[0], : value.shape[1]] = value - max(value.max(), np.finfo(np.float64).min)
        finite = np.where(np.isfinite(tables), tables, 0.0)
        return cls(first, edge_table, tables, -float(finite.min()), longest)


def _inside(group: TableFactors, first: NDArray[np.int32]) -> TableFactors:
    """The factors of pairs that lie in one block."""
    at = np.flatnonzero(first[group.scopes[:, 0]] == first[group.scopes[:, 1]])
    return TableFactors(group.scopes[at], group.tables, group.table_of_factor[at], group.scale[at])


def _edge_tables(
    groups: Sequence[TableFactors], n_variables: int, n_labels: int
) -> tuple[NDArray[np.int32], list[NDArray[np.float64]]]:
    """Which table the edge to the variable before uses, and the tables [K, L], that variable's label first."""
    if not groups:
        return np.zeros(n_variables, np.int32), []
    edge_table, recipes = edge_recipes(
        groups,
        [group.scopes.max(axis=1) for group in groups],
        [group.scopes[:, 0] > group.scopes[:, 1] for group in groups],
        n_variables,
    )
    check_cells(len(recipes), n_labels)
    return edge_table, [recipe_table(groups, recipe) for recipe in recipes]
