"""The blocks of blocked Gibbs sampling: sequences of consecutive variables that form chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s
from herdner.graph.chains import edge_groups
from herdner.graph.edges import check_cells, edge_terms, is_near, sum_terms
from herdner.graph.order import block_ranges, block_steps
from herdner.graph.tables import TableGraph
from herdner.inference.backend import UnsupportedGraph


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of variables, which blocked Gibbs sampling updates one after the other in a sweep.

    The compiled engine reads the fields by name (engine/fields.h).

    Attributes:
        first: int32[n_steps], the first variable of the block of each step; a step updates one variable.
        last: int32[n_steps], the last variable of the block of each step.
        edge_table: int32[V], the index of the table of the edge from the preceding variable, within a block.
        tables: float64[T, K, width], log-potentials minus their maximum; row = state of the preceding variable, padded
            with -inf.
        range: Largest difference between two finite entries of the same table.
        longest: Number of variables of the longest block.
    """

    first: Int32s
    last: Int32s
    edge_table: Int32s
    tables: Floats
    range: float
    longest: int

    @property
    def n_states(self) -> int:
        """Largest number of states of a variable, K."""
        return self.tables.shape[1]

    @property
    def stride(self) -> int:
        """Number of doubles in a row of an edge table, including padding."""
        return self.tables.shape[2]

    @classmethod
    def of(cls, compiled: TableGraph, ranges: Int32s | None = None, order: ArrayLike | None = None) -> Blocks:
        """Divide the variables of a graph into blocks.

        Args:
            compiled: A graph of factors of at most two variables.
            ranges: int32[B, 2], the first and the last variable of each block; None is `block_ranges`.
            order: int[n], the indices of the blocks in the order of their updates; None updates each block once, in
                ascending order.

        Returns:
            The blocks and the tables of their edges.

        Raises:
            UnsupportedGraph: A factor joins more than two variables.
        """
        try:
            pairs = [group for _, group in edge_groups(compiled.factors)]
        except UnsupportedGraph as error:
            raise UnsupportedGraph(f"{error}: blocked-gibbs needs factors of one or two variables; use gibbs") from None
        ranges = block_ranges(compiled) if ranges is None else ranges
        block = block_steps(ranges, np.arange(len(ranges)) if order is None else np.asarray(order, np.int64))[1]
        depth = np.zeros(len(compiled.sizes) + 1, np.int64)
        np.add.at(depth, ranges[:, 0] + 1, 1)
        np.add.at(depth, ranges[:, 1] + 1, -1)
        is_inner = np.cumsum(depth)[:-1] > 0  # true if the edge from the preceding variable lies in a block
        inner = [group.part(is_near(group) & is_inner[group.scopes.max(axis=1)]) for group in pairs]
        inner = [group for group in inner if len(group)]
        edge_table, values = np.zeros(len(is_inner), np.int32), []
        if inner:
            ends = [group.scopes.max(axis=1) for group in inner]
            flipped = [group.scopes[:, 0] > group.scopes[:, 1] for group in inner]
            edge_table, term_lists = edge_terms(inner, ends, flipped, len(is_inner))
            check_cells(len(term_lists), compiled.n_states)
            values = [sum_terms(inner, terms) for terms in term_lists]
        width = max(2, int(compiled.conditionals.widths.max()))
        tables = np.full((max(1, len(values)), compiled.n_states, width), -np.inf)
        for target, value in zip(tables, values, strict=False):
            target[: value.shape[0], : value.shape[1]] = value - max(value.max(), np.finfo(np.float64).min)
        finite = np.where(np.isfinite(tables), tables, 0.0)
        longest = int((ranges[:, 1] - ranges[:, 0]).max(initial=0)) + 1
        first, last = np.ascontiguousarray(ranges[block].T)
        return cls(first, last, edge_table, tables, -float(finite.min()), longest)
