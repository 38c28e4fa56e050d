"""Chains of consecutive variables joined by links: the form that sum-product passes messages on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner._ext import layout
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.chains import (
    MOST_CELLS,
    ChainForm,
    check_cells,
    constant,
    edge_tables,
    factor_in_words,
    too_wide,
    unary_table,
)
from herdner.graph.factors import TableFactors


@dataclass(frozen=True, slots=True, eq=False)
class LinkedChains:
    """A graph of pairs laid out as chains and E links.

    Attributes:
        form: The chains, runs of consecutive variables.
        scopes: int32[E, 2], the links, no two of the same variables.
        table_of_edge: int32[E], which of the tables holds the log-potentials of each.
        tables: float64[T, K, K].
    """

    form: ChainForm
    scopes: Int32s
    table_of_edge: Int32s
    tables: Floats


def linked_chains(sizes: Int32s, factors: Sequence[TableFactors]) -> LinkedChains | str:
    """The chains and links of a graph; or, where it has none, what is in the way."""
    near: list[TableFactors] = []
    far: list[TableFactors] = []
    n, n_states = len(sizes), int(sizes.max(initial=1))
    for g, group in enumerate(factors):
        if group.arity > 2 and len(group):
            return factor_in_words(g, group)
        if group.arity == 2 and len(group):
            inside = is_near(group)
            near += _part(group, inside)
            far += _part(group, ~inside)
    if n_states**2 > MOST_CELLS or too_wide(sizes):
        return f"variable {int(sizes.argmax())} has {n_states} labels, too many for tables of all variables"
    try:
        form = _runs(sizes, factors, near, n, n_states)
        scopes, table_of_edge, tables = _links(far, sizes, n_states)
    except ValueError as error:
        return str(error)
    return LinkedChains(form, scopes, table_of_edge, tables)


def is_near(group: TableFactors) -> NDArray[np.bool_]:
    """Which factors of pairs join a variable to the one before it."""
    return np.abs(group.scopes[:, 0] - group.scopes[:, 1]) == 1


def _part(group: TableFactors, chosen: NDArray[np.bool_]) -> list[TableFactors]:
    """The factors of a group that are chosen; no group where there are none."""
    if chosen.all():
        return [group]
    if not chosen.any():
        return []
    return [group.part(chosen)]


def _runs(
    sizes: Int32s, factors: Sequence[TableFactors], near: Sequence[TableFactors], n: int, n_states: int
) -> ChainForm:
    """The chains: runs of variables each of which is joined to the one before it."""
    offsets = np.empty(n + 1, np.int64)
    n_runs = layout.forward_paths(near[0].scopes, n, offsets) if len(near) == 1 else -1
    if n_runs < 0:
        starts = np.ones(n + 1, np.bool_)
        for group in near:
            starts[group.scopes.max(axis=1)] = False
        offsets = np.flatnonzero(starts)
        n_runs = len(offsets) - 1
    tables, edge_table = edge_tables(near, None, n - n_runs, n, n_states)
    return ChainForm(None, offsets[: n_runs + 1], unary_table(sizes, factors), tables, edge_table, constant(factors))


def _links(groups: Sequence[TableFactors], sizes: Int32s, n_states: int) -> tuple[Int32s, Int32s, Floats]:
    """The links [E, 2], the table of each, and the tables [T, K, K].

    Factors of the same two variables are one edge, their tables added up: else they would be a loop that messages run
    around. Edges to which nothing is added share the tables of their factors.
    """
    if not groups:
        return np.empty((0, 2), np.int32), np.empty(0, np.int32), np.zeros((1, n_states, n_states))
    scopes = np.concatenate([group.scopes for group in groups]) if len(groups) > 1 else groups[0].scopes
    keys = pair_keys(scopes)
    in_order = np.sort(keys)
    repeated = bool((in_order[1:] == in_order[:-1]).any())
    if len(groups) == 1 and not repeated and _ready(groups[0], n_states):
        return scopes, groups[0].table_of_factor, groups[0].tables
    edge = np.arange(len(scopes))
    if repeated or len(groups) > 1:  # in the order of their variables, as the order of a sum decides its bits
        _, first, edge = np.unique(keys, return_index=True, return_inverse=True)
        scopes, edge = scopes[first], edge.reshape(-1)
    edge_of = np.split(edge, np.cumsum([len(group) for group in groups])[:-1])
    alone = np.bincount(edge) == 1
    table_of_edge, n_tables = np.full(len(scopes), -1, np.int32), 0
    ready: list[Floats] = []
    for group, to in zip(groups, edge_of, strict=True):
        if _ready(group, n_states):
            chosen = alone[to]
            table_of_edge[to[chosen]] = group.table_of_factor[chosen] + n_tables
            ready.append(group.tables)
            n_tables += len(group.tables)
    own = np.flatnonzero(table_of_edge < 0)
    table_of_edge[own] = np.arange(n_tables, n_tables + len(own))
    check_cells(len(own), n_states)
    made = np.zeros((len(own), n_states, n_states))
    for group, to in zip(groups, edge_of, strict=True):
        chosen = table_of_edge[to] >= n_tables
        for part in _part(group, chosen):
            _add_tables(made, table_of_edge[to[chosen]] - np.int32(n_tables), part, scopes[to[chosen], 0])
    if sizes.min() < n_states:
        absent = np.arange(n_states) >= sizes[scopes[own]][:, :, None]
        made[absent[:, 0, :, None] | absent[:, 1, None, :]] = -np.inf
    return scopes, table_of_edge, np.concatenate([*ready, made])


def _ready(group: TableFactors, n_states: int) -> bool:
    """The log-potentials of the factors are the tables as they are."""
    return group.unscaled and group.tables.shape[1:] == (n_states, n_states)


def _add_tables(tables: Floats, to: Int32s, group: TableFactors, first: Int32s) -> None:
    """Adds factor f to ``tables[to[f]]``, turned so that the variable ``first[f]`` comes first."""
    rows = group.tables[group.table_of_factor]
    turned = group.scopes[:, 0] != first
    if rows.shape[1:] != tables.shape[1:] or turned.any():
        square = np.zeros((len(rows), *tables.shape[1:]))
        square[~turned, : rows.shape[1], : rows.shape[2]] = rows[~turned]
        square[turned, : rows.shape[2], : rows.shape[1]] = rows[turned].swapaxes(1, 2)
        rows = square
    layout.add_rows(tables.reshape(len(tables), -1), to, group.scale, rows.reshape(len(rows), -1))


def pair_keys(scopes: Int32s) -> Int64s:
    """[E]: a number for each pair of variables, whichever comes first."""
    return scopes.min(axis=1).astype(np.int64) << 32 | scopes.max(axis=1)
