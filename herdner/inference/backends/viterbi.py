"""Viterbi decoding and forward-backward as a backend: exact on graphs whose components are paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import chain as loops
from herdner._ext import layout
from herdner.base.arrays import Floats, Int64s
from herdner.base.seeds import Seed
from herdner.graph.chains import ChainForm
from herdner.graph.factors import TableFactors
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph, UnsupportedGraph
from herdner.inference.backends.sweeps import check_possible
from herdner.inference.record import Record
from herdner.inference.result import Result

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Viterbi:
    """The exact best state of a chain, and its marginals by forward-backward.

    Fits graphs of labels whose components are paths, the variables in any order, with any number of labels each and any
    number of factors per edge. Ties go to the smallest label, decided from the last variable of a path to its first; a
    path starts at the smaller of its two ends, so that chains in the order of their variables follow `Exact`.
    With ``marginals`` the result has log_z, marginals and table_counts.
    """

    marginals: bool = False

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals", "table_counts"}), linked=False)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Time O(V K^2), memory O(V K); with marginals and edges that are not tied, memory O(V K^2)."""
        began = perf_counter()
        self.capabilities.check("viterbi", record)
        compiled = compile_tables(graph)
        form = compiled.chain
        if isinstance(form, str):
            raise UnsupportedGraph(
                f"{form}: viterbi needs a chain, variables in a row joined by pairs;"
                " use sum-product, max-product or gibbs, or exact where there are few states"
            )
        states, scores = np.empty(len(form.unary), np.int32), np.empty(len(form.offsets) - 1)
        arrays = form.unary, form.tables, form.offsets, form.edge_table
        _check_possible(form, loops.viterbi(*arrays, states, scores))
        result = Result(state=_by_variable(form, states), log_potential=float(scores.sum()) + form.constant)
        if record is None and self.marginals:
            result = expected(result, compiled, form, table_counts=True)
        elif record is not None and (record.marginals or record.table_counts):
            result = expected(result, compiled, form, table_counts=record.table_counts)
        return replace(result, seconds=perf_counter() - began)


def expected(result: Result, compiled: TableGraph, form: ChainForm, table_counts: bool) -> Result:
    """``result`` with log_z and marginals by forward-backward and, if asked, table_counts."""
    n, n_states = form.unary.shape
    log_z, nodes = np.empty(len(form.offsets) - 1), np.empty((n, n_states))
    counts = edges = None
    # A single group of pairs whose one table is the loop's: the loop can add its counts up.
    pairs = [group for group in compiled.factors if group.arity == 2 and len(group)]
    if not table_counts:
        pass
    elif form.edge_table is None and len(pairs) == 1 and pairs[0].tables is form.tables:
        counts = np.empty(form.tables.shape)
    elif pairs:
        edges = np.empty((n, n_states, n_states))
    loops.forward_backward(form.unary, form.tables, form.offsets, form.edge_table, log_z, nodes, counts, edges)
    marginals = _by_variable(form, nodes)
    result = replace(result, log_z=float(log_z.sum()) + form.constant, marginals=marginals)
    if not table_counts:
        return result
    position = np.arange(len(form.unary))
    if form.order is not None:
        position[form.order] = np.arange(n)
    totals: list[Floats] = []
    for group in compiled.factors:
        if counts is not None and group.arity == 2 and len(group):
            totals.append(counts)
        elif group.arity == 2 and len(group):
            left, right = position[group.scopes].T
            totals.append(group_counts(group, marginals, edges, np.maximum(left, right), left > right))
        else:
            totals.append(group_counts(group, marginals))
    return replace(result, table_counts=tuple(totals))


def group_counts(
    group: TableFactors,
    marginals: Floats,
    edges: Floats | None = None,
    edge: Int64s | None = None,
    turned: NDArray[np.bool_] | None = None,
) -> Floats:
    """The scaled probabilities of a group's labels, added up by table.

    Pairs: factor f has the joint distribution ``edges[edge[f]]`` [K, K], or where ``turned[f]`` its transpose.
    """
    if group.arity == 0:
        rows = np.ones((len(group), 1))
    elif group.arity == 1:
        rows = marginals[group.scopes[:, 0], : group.tables.shape[1]]
    elif edges is not None and edge is not None and turned is not None:
        pairs = edges[edge]
        pairs = np.where(turned[:, None, None], pairs.swapaxes(1, 2), pairs)
        rows = pairs[:, : group.tables.shape[1], : group.tables.shape[2]]
    else:
        return np.zeros(group.tables.shape)
    counts = np.zeros(group.rows.shape)
    layout.add_rows(counts, group.table_of_factor, group.scale, np.ascontiguousarray(rows).reshape(len(group), -1))
    return counts.reshape(group.tables.shape)


def _by_variable(form: ChainForm, rows: NDArray[T]) -> NDArray[T]:
    if form.order is None:
        return rows
    result = np.empty_like(rows)
    result[form.order] = rows
    return result


def _check_possible(form: ChainForm, path: int) -> None:
    check_possible(form.constant)
    if path < 0:
        return
    first, last = form.offsets[path], form.offsets[path + 1] - 1
    if form.order is not None:
        first, last = form.order[first], form.order[last]
    raise ImpossibleGraph(
        f"-inf entries forbid every labelling of the chain from variable {first} to {last}; allow a label for each"
        " variable and a pair of labels for each edge"
    )
