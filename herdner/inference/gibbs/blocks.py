"""The blocks of blocked Gibbs sampling: runs of variables that are chains by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, Int32s
from herdner.graph.chains import check_cells, edge_recipes, factor_in_words, recipe_table
from herdner.graph.factors import TableFactors
from herdner.graph.linked_chains import is_near
from herdner.graph.order import block_ranges, block_steps
from herdner.graph.tables import TableGraph
from herdner.inference.backend import UnsupportedGraph


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a sweep; the engine reads it by these names (engine/fields.h).

    ``first``, ``last`` int32[n_steps]: the ends of the block of each step, which takes one variable; ``edge_table``
    int32[V]: the table of the edge to the variable before, in a block; ``tables`` float64[T, K, width]: log-potentials
    less the largest, the label of the variable before first, padded with -inf; ``range``: the largest distance of two
    finite entries of a table; ``longest``: variables of a block.
    """

    first: Int32s
    last: Int32s
    edge_table: Int32s
    tables: Floats
    range: float
    longest: int

    @property
    def n_states(self) -> int:
        """The largest number of labels."""
        return self.tables.shape[1]

    @property
    def stride(self) -> int:
        """Doubles of a row of a table."""
        return self.tables.shape[2]

    @classmethod
    def of(cls, compiled: TableGraph, ranges: Int32s | None = None, order: ArrayLike | None = None) -> Blocks:
        """The blocks of `block_ranges`, or other ``ranges``, in their ``order``, by default each once."""
        for g, group in enumerate(compiled.factors):
            if group.arity > 2 and len(group):
                raise UnsupportedGraph(
                    f"{factor_in_words(g, group)}: blocked-gibbs needs factors of one or two variables; use gibbs"
                )
        ranges = block_ranges(compiled) if ranges is None else ranges
        block = block_steps(ranges, np.arange(len(ranges)) if order is None else np.asarray(order, np.int64))[1]
        turns = np.zeros(len(compiled.sizes) + 1, np.int64)
        np.add.at(turns, ranges[:, 0] + 1, 1)
        np.add.at(turns, ranges[:, 1] + 1, -1)
        within = np.cumsum(turns)[:-1] > 0  # whether the edge to the variable before lies in a block
        inside = [_inside(group, within) for group in compiled.factors if group.arity == 2]
        edge_table, values = _edge_tables([group for group in inside if len(group)], len(within), compiled.n_states)
        width = max(2, int(compiled.conditionals.widths.max()))
        tables = np.full((max(1, len(values)), compiled.n_states, width), -np.inf)
        for target, value in zip(tables, values, strict=False):
            target[: value.shape[0], : value.shape[1]] = value - max(value.max(), np.finfo(np.float64).min)
        finite = np.where(np.isfinite(tables), tables, 0.0)
        longest = int((ranges[:, 1] - ranges[:, 0]).max(initial=0)) + 1
        ends = np.ascontiguousarray(ranges[block].T)
        return cls(ends[0], ends[1], edge_table, tables, -float(finite.min()), longest)


def _inside(group: TableFactors, within: NDArray[np.bool_]) -> TableFactors:
    """The factors of pairs that lie in a block."""
    return group.part(is_near(group) & within[group.scopes.max(axis=1)])


def _edge_tables(groups: Sequence[TableFactors], n_variables: int, n_states: int) -> tuple[Int32s, list[Floats]]:
    """Which table the edge to the variable before uses, and the tables [K, L], that variable's label first."""
    if not groups:
        return np.zeros(n_variables, np.int32), []
    edge_table, recipes = edge_recipes(
        groups,
        [group.scopes.max(axis=1) for group in groups],
        [group.scopes[:, 0] > group.scopes[:, 1] for group in groups],
        n_variables,
    )
    check_cells(len(recipes), n_states)
    return edge_table, [recipe_table(groups, recipe) for recipe in recipes]
