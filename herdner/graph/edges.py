"""Edges of a graph: factors of two variables, and the sums of the tables of parallel factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.factors import TableFactors
from herdner.graph.graph import UnsupportedGraph

MOST_CELLS = 2**28  # largest number of doubles in all edge tables together

# One factor of an edge: the index of its group, the index of its table, its scale, and True if its scope lists the
# edge's second variable first.
Term = tuple[int, int, float, bool]


def is_near(group: TableFactors) -> NDArray[np.bool_]:
    """Return a boolean mask, true for the factors of ``group`` whose two variables have consecutive indices.

    Args:
        group: A group of factors of two variables.

    Returns:
        bool[F], true for factors (i, i + 1) and (i + 1, i).
    """
    return np.abs(group.scopes[:, 0] - group.scopes[:, 1]) == 1


def pair_keys(scopes: Int32s) -> Int64s:
    """Return one integer for each pair of variables; (i, j) and (j, i) have the same integer.

    Args:
        scopes: int32[E, 2], pairs of variables.

    Returns:
        int64[E].
    """
    return scopes.min(axis=1).astype(np.int64) << 32 | scopes.max(axis=1)


def describe_factor(g: int, group: TableFactors, factor: int = 0) -> str:
    """Return the index, the group and the variables of a factor as text for an error message.

    Args:
        g: Index of the group.
        group: The group, whose factors have at least one variable.
        factor: Index of the factor in the group.
    """
    *most, last = [str(int(i)) for i in group.scopes[factor]]
    return f"factor {factor} of group {g} joins variables {', '.join(most)} and {last}"


def check_cells(n_tables: int, n_states: int) -> None:
    """Raise `UnsupportedGraph` if edge tables would need more than 2 GB.

    Args:
        n_tables: Number of tables.
        n_states: Number of rows and of columns of a table.

    Raises:
        UnsupportedGraph: The tables have more cells than fit into 2 GB.
    """
    n_cells = n_tables * n_states**2
    if n_cells > MOST_CELLS:
        raise UnsupportedGraph(
            f"{n_tables} different edge tables of {n_states} x {n_states} states need {n_cells / 2**27:.0f} GB, more"
            " than 2 GB: let edges share tables (table_of_factor), or split the graph into its components"
        )


def edge_terms(
    groups: Sequence[TableFactors],
    edges: Sequence[NDArray[np.integer]],
    flipped: Sequence[NDArray[np.bool_]],
    n_edges: int,
) -> tuple[Int32s, list[tuple[Term, ...]]]:
    """Return the terms of each edge; a term is a factor that joins the two variables of the edge.

    The sum of the terms is the edge's table of log-potentials. The terms are in the order of the groups. Edges with
    equal terms share one list, so that tied tables stay tied.

    Args:
        groups: Groups of factors of two variables.
        edges: int[F] for each group, the index of the edge of each factor.
        flipped: bool[F] for each group, true if a factor lists the edge's second variable first.
        n_edges: Number of edges.

    Returns:
        int32[n_edges], the index of each edge's list of terms; and the distinct lists.
    """
    terms: list[Int64s] = []
    distinct_terms: list[Term] = []
    for g, (group, is_flipped) in enumerate(zip(groups, flipped, strict=True)):
        key = np.empty(len(group), [("table", np.int32), ("scale", np.float64), ("flipped", np.bool_)])
        key["table"], key["scale"], key["flipped"] = group.table_of_factor, group.scale, is_flipped
        distinct, inverse = np.unique(key, return_inverse=True)
        terms.append(inverse.reshape(-1) + len(distinct_terms))
        distinct_terms.extend((g, *term) for term in distinct.tolist())
    list_of_edge, term_lists = _distinct_lists(n_edges, np.concatenate(edges), np.concatenate(terms))
    return list_of_edge, [tuple(distinct_terms[k] for k in indices) for indices in term_lists]


def sum_terms(groups: Sequence[TableFactors], terms: Sequence[Term]) -> Floats:
    """Return the table of log-potentials of an edge: the sum of the tables of the factors (terms) on this edge.

    Args:
        groups: The groups that the terms refer to.
        terms: The terms of the edge, which are added in this order.

    Returns:
        float64[K, L], the table.
    """
    parts = [groups[g].tables[table] * scale for g, table, scale, _ in terms]
    return sum(part.T if term[3] else part for part, term in zip(parts, terms, strict=True))  # type: ignore[return-value]


def _distinct_lists(n_edges: int, edge: NDArray[np.integer], term: Int64s) -> tuple[Int32s, list[tuple[int, ...]]]:
    """List the terms of each edge; return an index for each edge, and the distinct lists to which the indices refer."""
    by_edge = np.argsort(edge, kind="stable")
    edge, term = edge[by_edge], term[by_edge]
    starts = np.flatnonzero(np.r_[True, edge[1:] != edge[:-1]])
    list_of_edge = np.zeros(n_edges, np.int32)
    if len(starts) == len(edge):
        distinct, inverse = np.unique(term, return_inverse=True)
        list_of_edge[edge] = inverse.reshape(-1)
        return list_of_edge, [(int(k),) for k in distinct]
    term_lists: dict[tuple[int, ...], int] = {}
    for at, terms in zip(edge[starts], np.split(term, starts[1:]), strict=True):
        list_of_edge[at] = term_lists.setdefault(tuple(terms.tolist()), len(term_lists))
    return list_of_edge, list(term_lists)


def merge_parallel_factors(factors: Sequence[TableFactors]) -> Sequence[TableFactors]:
    """Merge the factors that join the same two variables into one factor, because parallel factors form a cycle.

    Args:
        factors: Groups of factors.

    Returns:
        Groups without parallel factors; ``factors`` itself if no factors are parallel. A merged factor lists its
        variables in the same order as the first of the factors that it replaces.
    """
    pairs = [group for group in factors if group.arity == 2 and len(group)]
    scopes = np.concatenate([np.empty((0, 2), np.int32), *(group.scopes for group in pairs)])
    keys = pair_keys(scopes)
    in_order = np.sort(keys)
    if not (in_order[1:] == in_order[:-1]).any():
        return factors
    _, first, edge = np.unique(keys, return_index=True, return_inverse=True)
    scopes = scopes[first]
    edges = np.split(edge.reshape(-1), np.cumsum([len(group) for group in pairs])[:-1])
    flipped = [group.scopes[:, 0] != scopes[to, 0] for group, to in zip(pairs, edges, strict=True)]
    list_of_edge, term_lists = edge_terms(pairs, edges, flipped, len(first))
    check_cells(len(term_lists), max(max(group.tables.shape[1:]) for group in pairs))
    tables = [sum_terms(pairs, terms) for terms in term_lists]
    merged = [group for group in factors if group.arity != 2]
    for shape in sorted({table.shape for table in tables}):
        alike = [r for r, table in enumerate(tables) if table.shape == shape]
        renumber = np.full(len(tables), -1, np.int32)
        renumber[alike] = np.arange(len(alike))
        mine = renumber[list_of_edge] >= 0
        merged.append(TableFactors(scopes[mine], np.stack([tables[r] for r in alike]), renumber[list_of_edge[mine]]))
    return merged


def scaled_tables(group: TableFactors) -> tuple[Floats, Int32s]:
    """Multiply a group's tables by the factors' scales; return the products, and the index of each factor's product.

    Args:
        group: A non-empty group of F factors.

    Returns:
        The tables, float64[T, K1, ..]; and the index of the table of each factor, int32[F].
    """
    if group.unscaled:
        return group.tables, group.table_of_factor
    if (group.scale == group.scale[0]).all():
        return group.scale[0] * group.tables, group.table_of_factor
    scales, code = np.unique(group.scale, return_inverse=True)
    if len(scales) * len(group.tables) <= len(group):
        values = scales[:, None, None] * group.rows
        term = code.reshape(-1) * len(group.tables) + group.table_of_factor
    else:
        values, term = group.scale[:, None] * group.rows[group.table_of_factor], np.arange(len(group))
    return values.reshape(-1, *group.tables.shape[1:]), term.astype(np.int32)
