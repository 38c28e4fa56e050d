"""Recognition of chains, and their layout for the chain loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdner._ext import layout
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.memory import check_memory
from herdner.graph.edges import MOST_CELLS, check_cells, describe_factor, edge_terms, sum_terms
from herdner.graph.factors import TableFactors
from herdner.graph.graph import ImpossibleGraph, UnsupportedGraph


@dataclass(frozen=True, slots=True, eq=False)
class ChainForm:
    """Array layout of a graph in which every connected component is a path of variables.

    The layout is that of ``herdner.inference.linear_chain``.

    States that a variable does not have are forbidden by -inf.

    Attributes:
        order: int64[V], the variables path by path; None if this order is 0 .. V - 1.
        offsets: int64[S + 1]; path s holds the positions ``offsets[s]`` to ``offsets[s + 1] - 1``.
        unary: float64[V, K], the unary log-potentials at each position.
        tables: float64[T, K, K], log-potentials of edges; row = state at the left position.
        edge_table: int32[V], index of the table of the edge that ends at each position; None if all edges use table 0.
        constant: Sum of the factors without variables.
    """

    order: Int64s | None
    offsets: Int64s
    unary: Floats
    tables: Floats
    edge_table: Int32s | None
    constant: float


def chain_form(sizes: Int32s, factors: Sequence[TableFactors]) -> ChainForm:
    """Convert a graph whose components are paths to a `ChainForm`.

    Args:
        sizes: int32[V], the number of states of each variable.
        factors: Groups of factors.

    Returns:
        The paths and their log-potentials.

    Raises:
        UnsupportedGraph: The graph is not a set of paths; the message names the first factor that does not fit.
    """
    pairs = edge_groups(factors)
    n, n_states = len(sizes), int(sizes.max(initial=1))
    check_width(sizes, needs_table=not pairs)
    offsets = np.empty(n + 1, np.int64)
    n_paths = layout.forward_paths(pairs[0][1].scopes, n, offsets) if len(pairs) == 1 else -1
    order = None
    if n_paths < 0:
        order = np.empty(n, np.int64)
        edges = np.concatenate([np.empty((0, 2), np.int32), *(group.scopes for _, group in pairs)])
        n_paths = layout.order_paths(n, edges, order, offsets)
        if n_paths < 0:
            raise UnsupportedGraph(_describe_edge(pairs, -1 - n_paths))
        if (order[1:] > order[:-1]).all():
            order = None
    tables, edge_table = edge_tables([group for _, group in pairs], order, n - n_paths, n, n_states)
    unary = unary_table(sizes, factors)
    if order is not None:
        unary = unary[order]
    return ChainForm(order, offsets[: n_paths + 1], unary, tables, edge_table, constant_term(factors))


def edge_groups(factors: Sequence[TableFactors]) -> list[tuple[int, TableFactors]]:
    """Return the non-empty groups of two-variable factors, each with the index of the group in ``factors``.

    Args:
        factors: Groups of factors.

    Raises:
        UnsupportedGraph: A factor has more than two variables; the message names it.
    """
    for g, group in enumerate(factors):
        if group.arity > 2 and len(group):
            raise UnsupportedGraph(describe_factor(g, group))
    return [(g, group) for g, group in enumerate(factors) if group.arity == 2 and len(group)]


def check_width(sizes: Int32s, needs_table: bool) -> None:
    """Raise `UnsupportedGraph` if an array [V, K] of V variables with at most K states needs too much memory.

    Args:
        sizes: int32[V], the number of states of each variable.
        needs_table: True if a table [K, K] is needed in addition to the tables of the factors.

    Raises:
        UnsupportedGraph: The array, or the table, is too large.
    """
    n_states = int(sizes.max(initial=1))
    most_cells = max(MOST_CELLS, 2 * int(sizes.sum(dtype=np.int64)))
    if (needs_table and n_states**2 > MOST_CELLS) or len(sizes) * n_states > most_cells:
        raise UnsupportedGraph(
            f"variable {int(sizes.argmax())} has {n_states} states; arrays with one row for each of the {len(sizes)}"
            " variables and one column for each state are too large; use fewer states"
        )


def constant_term(factors: Sequence[TableFactors]) -> float:
    """Return the sum of all factors without variables.

    Args:
        factors: Groups of factors.

    Raises:
        ImpossibleGraph: The sum is -inf.
    """
    total = sum((float((g.scale * g.tables[g.table_of_factor]).sum()) for g in factors if g.arity == 0), 0.0)
    if total == -np.inf:
        raise ImpossibleGraph(
            "a factor with an empty scope is -inf, so every joint state is forbidden; change this factor or the"
            " observed states"
        )
    return total


def unary_table(sizes: Int32s, factors: Sequence[TableFactors]) -> Floats:
    """Return the sum of the unary factors of each variable, float64[V, K].

    The groups of factors are added in the order of ``factors``.

    Args:
        sizes: int32[V], the number of states of each variable.
        factors: Groups of factors.

    Returns:
        float64[V, K], with -inf for states that a variable does not have.
    """
    n_states = int(sizes.max(initial=1))
    check_memory(
        8.0 * len(sizes) * n_states, f"a table of the log-potentials of {len(sizes)} variables and {n_states} states",
        "use variables of fewer states",
    )  # fmt: skip
    unary = np.zeros((len(sizes), n_states))
    if len(sizes) and sizes.min() < n_states:
        unary[np.arange(n_states) >= sizes[:, None]] = -np.inf
    for group in factors:
        if group.arity == 1:
            layout.add_rows(unary, group.scopes[:, 0], group.table_of_factor, group.scale, group.tables)
    return unary


def edge_tables(
    groups: Sequence[TableFactors], order: Int64s | None, n_edges: int, n_variables: int, n_states: int
) -> tuple[Floats, Int32s | None]:
    """Build the tables of the edges of paths; the rows of a table are the states of the variable earlier on the path.

    Edges with the same terms share a table. If all edges use one table of the graph, this table is not copied.

    Args:
        groups: Groups of factors of two variables.
        order: int64[V], the variables path by path; None is 0 to V - 1.
        n_edges: Number of edges of all paths.
        n_variables: Number of variables, V.
        n_states: Largest number of states of a variable, K.

    Returns:
        The tables, float64[T, K, K], row = state at the left position; and int32[V], the index of the table of the edge
        that ends at each position, or None if T is 1.
    """
    if not groups:
        return np.zeros((1, n_states, n_states)), None
    if len(groups) == 1 and len(groups[0]) == n_edges and order is None and _is_tied(groups[0], n_states):
        return groups[0].tables, None
    position = positions(order, n_variables)
    ends = [position[group.scopes].T for group in groups]
    edge_table, term_lists = edge_terms(
        groups, [np.maximum(*both) for both in ends], [left > right for left, right in ends], n_variables
    )
    check_cells(len(term_lists), n_states)
    tables = np.zeros((len(term_lists), n_states, n_states))
    for target, terms in zip(tables, term_lists, strict=True):
        values = sum_terms(groups, terms)
        target[: values.shape[0], : values.shape[1]] = values
    return tables, (edge_table if len(tables) > 1 else None)


def positions(order: Int64s | None, n_variables: int) -> Int64s:
    """Return the position of each variable in an order of all variables, int64[V].

    Args:
        order: int64[V], the variables in order; None is 0 to V - 1.
        n_variables: Number of variables, V.
    """
    position = np.arange(n_variables)
    if order is not None:
        position[order] = np.arange(n_variables)
    return position


def _is_tied(group: TableFactors, n_states: int) -> bool:
    """Return True if all factors share one unscaled table and each scope lists the lower variable index first."""
    whole = group.tables.shape == (1, n_states, n_states) and group.unscaled
    return whole and bool((group.scopes[:, 0] < group.scopes[:, 1]).all())


def _describe_edge(pairs: Sequence[tuple[int, TableFactors]], factor: int) -> str:
    """Return a description of a two-variable factor for an error message.

    ``factor`` is the index of the factor if the factors of all groups in ``pairs`` are concatenated.
    """
    for g, group in pairs:
        if factor < len(group):
            return describe_factor(g, group, factor)
        factor -= len(group)
    raise AssertionError(f"the graph has no factor {factor}")
