"""Chains of consecutive variables joined by links: the layout of a graph for sum-product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner._ext import layout
from herdner.base.arrays import Floats, Int32s
from herdner.graph.chains import ChainForm, check_width, constant_term, edge_groups, edge_tables, unary_table
from herdner.graph.edges import check_cells, is_near, merge_parallel_factors, pair_keys, scaled_tables
from herdner.graph.factors import TableFactors


@dataclass(frozen=True, slots=True, eq=False)
class LinkedChains:
    """Array layout of a graph of one- and two-variable factors, divided into chains and E links between variables.

    Attributes:
        form: The chains, runs of consecutive variables.
        scopes: int32[E, 2], the two variables of each link. No two links join the same pair.
        table_of_edge: int32[E], index of the table of each link.
        tables: float64[T, K, K], log-potentials of links.
    """

    form: ChainForm
    scopes: Int32s
    table_of_edge: Int32s
    tables: Floats


def linked_chains(sizes: Int32s, factors: Sequence[TableFactors]) -> LinkedChains:
    """Divide a graph of one- and two-variable factors into chains and links.

    Args:
        sizes: int32[V], the number of states of each variable.
        factors: Groups of factors.

    Returns:
        The chains, and the links between their variables.

    Raises:
        UnsupportedGraph: A factor has more than two variables, or the tables need too much memory.
    """
    near: list[TableFactors] = []
    far: list[TableFactors] = []
    for _, group in edge_groups(factors):
        inside = is_near(group)
        near += _part(group, inside)
        far += _part(group, ~inside)
    check_width(sizes, needs_table=True)
    n_states = int(sizes.max(initial=1))
    return LinkedChains(_runs(sizes, factors, near, n_states), *_links(far, n_states))


def _part(group: TableFactors, mask: NDArray[np.bool_]) -> list[TableFactors]:
    """Return the factors of a group that ``mask`` selects, as a list of one group, or [] if no factor is selected."""
    if mask.all():
        return [group]
    return [group.part(mask)] if mask.any() else []


def _runs(sizes: Int32s, factors: Sequence[TableFactors], near: Sequence[TableFactors], n_states: int) -> ChainForm:
    """Return the chains of a graph: runs of consecutive variables that are joined by factors of the groups ``near``."""
    n = len(sizes)
    offsets = np.empty(n + 1, np.int64)
    n_runs = layout.forward_paths(near[0].scopes, n, offsets) if len(near) == 1 else -1
    if n_runs < 0:
        starts = np.ones(n + 1, np.bool_)
        for group in near:
            starts[group.scopes.max(axis=1)] = False
        offsets = np.flatnonzero(starts)
        n_runs = len(offsets) - 1
    tables, edge_table = edge_tables(near, None, n - n_runs, n, n_states)
    unary = unary_table(sizes, factors)
    return ChainForm(None, offsets[: n_runs + 1], unary, tables, edge_table, constant_term(factors))


def _links(groups: Sequence[TableFactors], n_states: int) -> tuple[Int32s, Int32s, Floats]:
    """Return the links as pairs of variables [E, 2], the table index of each link, and the tables [T, K, K].

    The links of several groups are sorted by their variables. Sums over links are thus added in the same order, and are
    bitwise reproducible.
    """
    distinct = merge_parallel_factors(groups)
    scopes, table_of_edge = [np.empty((0, 2), np.int32)], [np.empty(0, np.int32)]
    tables: list[Floats] = []
    n_tables = 0
    for group in distinct:
        if not group.unscaled:
            check_cells(len(group), n_states)
        values, term_of_factor = scaled_tables(group)
        scopes.append(group.scopes)
        table_of_edge.append(term_of_factor + np.int32(n_tables))
        tables.append(_squares(values, n_states))
        n_tables += len(values)
    if len(distinct) == 1 and distinct is groups:
        return scopes[1], table_of_edge[1], tables[0]
    order = np.argsort(pair_keys(np.concatenate(scopes))) if distinct else np.empty(0, np.int64)
    everything = np.concatenate(tables) if tables else np.zeros((1, n_states, n_states))
    return np.concatenate(scopes)[order], np.concatenate(table_of_edge)[order], everything


def _squares(tables: Floats, n_states: int) -> Floats:
    """Pad tables to [T, K, K]; entries for states that a variable does not have are -inf."""
    n_rows, n_columns = tables.shape[1:]
    if n_rows == n_columns == n_states:
        return tables
    squares = np.full((len(tables), n_states, n_states), -np.inf)
    squares[:, :n_rows, :n_columns] = tables
    return squares
