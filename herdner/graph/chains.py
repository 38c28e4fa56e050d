"""Recognising chains, and laying them out for the chain loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner._ext import layout
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.factors import TableFactors

MOST_CELLS = 2**28  # of all edge tables together


@dataclass(frozen=True, slots=True, eq=False)
class ChainForm:
    """A graph whose components are paths of variables, in the form of ``herdner.inference.linear_chain``.

    Labels that a variable has not are forbidden by -inf.

    Attributes:
        order: int64[V], the variables path by path, None where that is 0 .. V - 1.
        offsets: int64[S + 1], path s holds the positions ``offsets[s]`` to ``offsets[s + 1] - 1``.
        unary: float64[V, K], the unary log-potentials by position.
        tables: float64[T, K, K].
        edge_table: int32[V], the table of the edge from the position before, or None where all edges use table 0.
        constant: The factors of no variables.
    """

    order: Int64s | None
    offsets: Int64s
    unary: Floats
    tables: Floats
    edge_table: Int32s | None
    constant: float


def chain_form(sizes: Int32s, factors: Sequence[TableFactors]) -> ChainForm | str:
    """The chain form of a graph; or, where it has none, the factor in the way."""
    pairs: list[tuple[int, TableFactors]] = []
    for g, group in enumerate(factors):
        if group.arity > 2 and len(group):
            return factor_in_words(g, group)
        if group.arity == 2 and len(group):
            pairs.append((g, group))
    n, n_states = len(sizes), int(sizes.max(initial=1))
    if (not pairs and n_states**2 > MOST_CELLS) or too_wide(sizes):
        # The loops want rows of the most labels for every variable, and a table of pairs even where there are none.
        return f"variable {int(sizes.argmax())} has {n_states} labels, too many for tables of all variables"
    offsets = np.empty(n + 1, np.int64)
    n_paths = layout.forward_paths(pairs[0][1].scopes, n, offsets) if len(pairs) == 1 else -1
    order = None
    if n_paths < 0:
        order = np.empty(n, np.int64)
        n_paths = layout.order_paths(n, _edges(pairs), order, offsets)
        if n_paths < 0:
            return _factor(pairs, -1 - n_paths)
        if (order[1:] > order[:-1]).all():
            order = None
    try:
        tables, edge_table = edge_tables([group for _, group in pairs], order, n - n_paths, n, n_states)
    except ValueError as error:
        return str(error)
    unary = unary_table(sizes, factors)
    if order is not None:
        unary = unary[order]
    return ChainForm(order, offsets[: n_paths + 1], unary, tables, edge_table, constant(factors))


def constant(factors: Sequence[TableFactors]) -> float:
    """The factors of no variables added up."""
    return sum((float((g.scale * g.tables[g.table_of_factor]).sum()) for g in factors if g.arity == 0), 0.0)


def too_wide(sizes: Int32s) -> bool:
    """Rows of the most labels for each variable would take too much memory, most of it for labels that few have."""
    return len(sizes) * int(sizes.max(initial=1)) > max(MOST_CELLS, 2 * int(sizes.sum(dtype=np.int64)))


def unary_table(sizes: Int32s, factors: Sequence[TableFactors]) -> Floats:
    """[V, K]: the unary factors of each variable added up in the order of their groups."""
    n_states = int(sizes.max(initial=1))
    unary = np.zeros((len(sizes), n_states))
    if len(sizes) and sizes.min() < n_states:
        unary[np.arange(n_states) >= sizes[:, None]] = -np.inf
    for group in factors:
        if group.arity == 1:
            layout.add_unary(unary, group.scopes, group.table_of_factor, group.scale, group.tables)
    return unary


def edge_tables(
    groups: Sequence[TableFactors], order: Int64s | None, n_edges: int, n_variables: int, n_states: int
) -> tuple[Floats, Int32s | None]:
    """The tables of the edges, oriented along the paths, and which one each position's edge uses.

    A factor is a term (group, table, scale, direction); edges with the same terms, in the order of the groups, share a
    table. In the usual case there is nothing to do: one table, tied over all edges.
    """
    if not groups:
        return np.zeros((1, n_states, n_states)), None
    if len(groups) == 1 and len(groups[0]) == n_edges and order is None and _tied(groups[0], n_states):
        return groups[0].tables, None
    position = np.arange(n_variables)
    if order is not None:
        position[order] = np.arange(n_variables)
    ends = [position[group.scopes].T for group in groups]
    edge_table, recipes = edge_recipes(
        groups, [np.maximum(*both) for both in ends], [left > right for left, right in ends], n_variables
    )
    check_cells(len(recipes), n_states)
    tables = np.zeros((len(recipes), n_states, n_states))
    for target, recipe in zip(tables, recipes, strict=True):
        values = recipe_table(groups, recipe)
        target[: values.shape[0], : values.shape[1]] = values
    return tables, (edge_table if len(tables) > 1 else None)


def check_cells(n_tables: int, n_states: int) -> None:
    """ValueError where tables made for edges would need too much memory."""
    n_cells = n_tables * n_states**2
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"{n_tables} different edge tables of {n_states} x {n_states} labels need {n_cells / 2**27:.0f} GB, more"
            " than 2 GB: tie the tables of some edges, or split the graph into its components"
        )


# One factor of an edge: its group, table and scale, and whether its scope names the edge's second variable first.
Term = tuple[int, int, float, bool]


def edge_recipes(
    groups: Sequence[TableFactors],
    edges: Sequence[NDArray[np.integer]],
    flipped: Sequence[NDArray[np.bool_]],
    n_edges: int,
) -> tuple[Int32s, list[tuple[Term, ...]]]:
    """Which factors of pairs each of ``n_edges`` edges adds up: which of the distinct recipes, and these.

    Factor f of group g lies on edge ``edges[g][f]``, its scope turned round where ``flipped[g][f]``. Edges of the
    same terms, in the order of the groups, have the same recipe, so that tied tables stay tied.
    """
    terms: list[Int64s] = []
    kinds: list[Term] = []
    for g, (group, turned) in enumerate(zip(groups, flipped, strict=True)):
        key = np.empty(len(group), [("table", np.int32), ("scale", np.float64), ("flipped", np.bool_)])
        key["table"], key["scale"], key["flipped"] = group.table_of_factor, group.scale, turned
        distinct, inverse = np.unique(key, return_inverse=True)
        terms.append(inverse.reshape(-1) + len(kinds))
        kinds.extend((g, *kind) for kind in distinct.tolist())
    edge_table, recipes = _recipes(n_edges, np.concatenate(edges), np.concatenate(terms))
    return edge_table, [tuple(kinds[k] for k in recipe) for recipe in recipes]


def recipe_table(groups: Sequence[TableFactors], recipe: Sequence[Term]) -> Floats:
    """[K, L]: the log-potentials of an edge, its terms added up in their order."""
    parts = [groups[g].tables[table] * scale for g, table, scale, _ in recipe]
    return sum(part.T if term[3] else part for part, term in zip(parts, recipe, strict=True))  # type: ignore[return-value]


def _tied(group: TableFactors, n_states: int) -> bool:
    """All factors are the one table itself, read from left to right."""
    whole = group.tables.shape == (1, n_states, n_states) and group.unscaled
    return whole and bool((group.scopes[:, 0] < group.scopes[:, 1]).all())


def _recipes(n_positions: int, edge: NDArray[np.integer], term: Int64s) -> tuple[Int32s, list[tuple[int, ...]]]:
    """Which of the distinct lists of terms each edge adds up, and these lists."""
    by_edge = np.argsort(edge, kind="stable")
    edge, term = edge[by_edge], term[by_edge]
    starts = np.flatnonzero(np.r_[True, edge[1:] != edge[:-1]])
    edge_table = np.zeros(n_positions, np.int32)
    if len(starts) == len(edge):
        used, inverse = np.unique(term, return_inverse=True)
        edge_table[edge] = inverse.reshape(-1)
        return edge_table, [(int(k),) for k in used]
    known: dict[tuple[int, ...], int] = {}
    for at, terms in zip(edge[starts], np.split(term, starts[1:]), strict=True):
        edge_table[at] = known.setdefault(tuple(terms.tolist()), len(known))
    return edge_table, list(known)


def _edges(pairs: Sequence[tuple[int, TableFactors]]) -> Int32s:
    """[F, 2]: the scopes of all groups, one after the other."""
    if len(pairs) == 1:
        return pairs[0][1].scopes
    return np.concatenate([np.empty((0, 2), np.int32), *(group.scopes for _, group in pairs)])


def _factor(pairs: Sequence[tuple[int, TableFactors]], factor: int) -> str:
    """A factor, counted over all groups of pairs, in words."""
    for g, group in pairs:
        if factor < len(group):
            return factor_in_words(g, group, factor)
        factor -= len(group)
    raise AssertionError("every edge comes from a factor")


def factor_in_words(g: int, group: TableFactors, factor: int = 0) -> str:
    """A factor of at least one variable, as errors name it."""
    *most, last = [str(int(i)) for i in group.scopes[factor]]
    return f"factor {factor} of group {g} joins variables {', '.join(most)} and {last}"
