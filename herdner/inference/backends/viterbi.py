"""Viterbi decoding and forward-backward as a backend: exact on graphs whose components are paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import layout
from herdner.base.arrays import Floats, Int64s
from herdner.base.seeds import Seed
from herdner.graph.chains import ChainForm, positions
from herdner.graph.factors import TableFactors
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph
from herdner.inference.linear_chain import ImpossibleChain, decode, smooth
from herdner.inference.record import Record
from herdner.inference.result import Result

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Viterbi:
    """Viterbi decoding for the exact best state of chains, with marginals by forward-backward.

    It supports discrete graphs whose components are paths, with the variables in any order and any number of factors
    per edge. Among equally good states it prefers the smallest state of the last variable of a path, then of the
    preceding variable, and so on. A path begins at its end with the lower index.

    Attributes:
        marginals: Also compute log_z, marginals and table_counts.
    """

    marginals: bool = False

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals", "table_counts"}), linked=False)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run Viterbi decoding on the chains of one graph.

        It takes time O(V K^2) and memory O(V K), or memory O(V K^2) for table counts if the edges do not share one
        table.

        Args:
            graph: A graph whose components are paths.
            seed: Ignored.
            start: Ignored.
            record: Results to record; None uses the option ``marginals``.

        Returns:
            The best state and, on request, exact log_z, marginals and table_counts.

        Raises:
            UnsupportedGraph: The graph is not a set of paths.
            UnsupportedRecord: ``record`` asks for more than marginals and table counts.
            ImpossibleGraph: Entries of -inf forbid every joint state.
        """
        began = perf_counter()
        self.capabilities.require(record, "viterbi")
        compiled = compile_tables(graph)
        form = compiled.require(
            ChainForm,
            "viterbi needs a chain, in which factors of two variables join each variable to at most two others, without"
            " cycles; use sum-product, max-product or gibbs, or exact if the treewidth is small",
        )
        try:
            states, scores = decode(form.unary, form.tables, form.offsets, form.edge_table)
        except ImpossibleChain as error:
            raise _impossible_path(form, error.sequence) from None
        result = Result(state=_by_variable(form, states), log_potential=float(scores.sum()) + form.constant)
        if record is None and self.marginals:
            result = add_marginals(result, compiled, form, table_counts=True)
        elif record is not None and (record.marginals or record.table_counts):
            result = add_marginals(result, compiled, form, table_counts=record.table_counts)
        return replace(result, seconds=perf_counter() - began)


def add_marginals(result: Result, compiled: TableGraph, form: ChainForm, table_counts: bool) -> Result:
    """Run forward-backward; return the result with ``log_z``, ``marginals`` and, on request, ``table_counts``.

    Args:
        result: Result without these fields.
        compiled: The graph.
        form: Chain form of the graph.
        table_counts: Also compute the expected counts of table cells.
    """
    # The loop itself can sum the counts of a single group of pairs whose one table it reads.
    pairs = [group for group in compiled.factors if group.arity == 2 and len(group)]
    is_tied = form.edge_table is None and len(pairs) == 1 and pairs[0].tables is form.tables
    chains = smooth(
        form.unary,
        form.tables,
        form.offsets,
        form.edge_table,
        transition_counts=table_counts and is_tied,
        edges=table_counts and bool(pairs) and not is_tied,
    )
    assert chains.nodes is not None
    marginals = _by_variable(form, chains.nodes)
    result = replace(result, log_z=float(chains.log_z.sum()) + form.constant, marginals=marginals)
    if not table_counts:
        return result
    position = positions(form.order, len(form.unary))
    totals: list[Floats] = []
    for group in compiled.factors:
        is_pairs = group.arity == 2 and len(group) > 0
        if is_pairs and chains.transition_counts is not None:
            totals.append(chains.transition_counts)
        elif is_pairs:
            left, right = position[group.scopes].T
            totals.append(group_counts(group, marginals, chains.edges, np.maximum(left, right), left > right))
        else:
            totals.append(group_counts(group, marginals))
    return replace(result, table_counts=tuple(totals))


def group_counts(
    group: TableFactors,
    marginals: Floats,
    edges: Floats | None = None,
    edge: Int64s | None = None,
    flipped: NDArray[np.bool_] | None = None,
) -> Floats:
    """Return the expected count of each table cell of a group: the sum over factors of joint marginal times scale.

    The group has factors of at most two variables. The last three arguments are needed for pairs only; without them the
    counts of pairs are 0.

    Args:
        group: A group of F factors.
        marginals: float64[V, K], the marginals of all variables.
        edges: float64[E, K, K], joint marginals of pairs of variables.
        edge: int64[F], the index in ``edges`` of each factor.
        flipped: bool[F], true if the joint marginal of a factor must be transposed.

    Returns:
        An array in the shape of the group's tables.
    """
    if group.arity == 0:
        rows = np.ones((len(group), 1))
    elif group.arity == 1:
        rows = marginals[group.scopes[:, 0], : group.tables.shape[1]]
    elif edges is not None and edge is not None and flipped is not None:
        pairs = edges[edge]
        pairs = np.where(flipped[:, None, None], pairs.swapaxes(1, 2), pairs)
        rows = pairs[:, : group.tables.shape[1], : group.tables.shape[2]]
    else:
        return np.zeros(group.tables.shape)
    counts = np.zeros(group.rows.shape)
    rows = np.ascontiguousarray(rows).reshape(len(group), -1)
    layout.add_rows(counts, group.table_of_factor, None, group.scale, rows)
    return counts.reshape(group.tables.shape)


def _by_variable(form: ChainForm, rows: NDArray[T]) -> NDArray[T]:
    """Reorder the rows of an array, one per variable, from the order of the chains to the order of the variables."""
    return rows if form.order is None else rows[positions(form.order, len(rows))]


def _impossible_path(form: ChainForm, path: int) -> ImpossibleGraph:
    """Return the error that names a chain whose joint states are all impossible."""
    first, last = form.offsets[path], form.offsets[path + 1] - 1
    if form.order is not None:
        first, last = form.order[first], form.order[last]
    return ImpossibleGraph(
        f"-inf entries forbid every joint state of the chain from variable {first} to {last}; allow a state for each"
        " variable and a pair of states for each edge"
    )
