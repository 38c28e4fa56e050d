"""Loopy sum-product over chains joined by links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from herdner._ext import chain as chain_loops
from herdner._ext import layout
from herdner._ext import sum_product as loops
from herdner.graph.chains import (
    MOST_CELLS,
    ChainForm,
    check_cells,
    edge_tables,
    factor_in_words,
    unary_table,
)
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import TableGraph, compile_tables
from herdner.inference.backend import ImpossibleGraph, UnsupportedGraph
from herdner.inference.backends.sweeps import Interruptible, check_options, constant
from herdner.inference.backends.viterbi import Viterbi, expectations, group_counts
from herdner.inference.gibbs.repair import repaired
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class SumProduct:
    """Loopy sum-product: marginals of chains with links by message passing, exact without loops.

    Edges between consecutive variables make up chains, which are smoothed exactly, by forward-backward; all other edges
    of two variables pass messages between them (Sutton and McCallum 2004, Sec. 3; tree-based reparametrisation of
    Wainwright, Jaakkola and Willsky 2003). A sweep goes through the chains from left to right and the next from right
    to left; each chain smoothed tells the others what it found, and those that are told nothing new are left alone.
    Factors of one and two variables, any numbers of labels.

    Ends when no message would change a probability of its receiver by more than ``tolerance``, and after ``n_sweeps``.
    message <- message^(1 - damping) * new message^damping; ``damping`` = 1 is undamped. ``table_counts`` are given
    only if asked for.
    """

    n_sweeps: int = 30
    tolerance: float = 1e-3
    damping: float = 1.0
    table_counts: bool = False

    def __post_init__(self) -> None:
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)

    def infer(self, graph: FactorGraph | TableGraph, seed: int | np.random.Generator | None = None) -> Result:
        """Time of a sweep O(V K^2 + links x K^2), later ones only for the chains told something new. ``seed`` is
        ignored.

        marginals: the beliefs; log_z: Bethe's approximation (Wainwright and Jordan 2008, Sec. 4.1.4), of which
        table_counts are the derivatives once the messages have converged; both exact where chains and links form a
        forest and enough sweeps were made. state: the best state of the chains given the messages, ties as in `Viterbi`
        (on graphs that are chains it is `Viterbi`'s); if -inf entries forbid it, a repaired one. n_updates: variables
        smoothed. table_counts take memory O((V + links) K^2).

        UnsupportedGraph where a factor joins more than two variables; ImpossibleGraph where messages show that no state
        is allowed. Ctrl-C raises `Interrupted`, whose ``result`` is what was reached until then.
        """
        return self.infer_chains(graph)[0]

    def infer_chains(self, graph: FactorGraph | TableGraph) -> tuple[Result, ChainForm]:
        """What `infer` gives, and the chains with the messages added to their unary log-potentials: so that, for
        instance, `herdner.inference.linear_chain.span_log_probability` gives the beliefs of whole spans."""
        began = perf_counter()
        compiled = compile_tables(graph)
        if isinstance(compiled.structure, ChainForm):
            return self._smoothed(compiled, compiled.structure, began), compiled.structure
        chains, fixed = LinkedChains.of(compiled), constant(compiled)
        result, form, loop, sweeps = self._passed(chains, fixed, lambda: compiled, began)
        if self.table_counts:
            result = replace(result, table_counts=_table_counts(compiled, chains, form, loop))
        return sweeps.give(result), form

    def infer_laid_out(self, chains: LinkedChains, graph: Callable[[], FactorGraph | TableGraph]) -> Result:
        """What `infer` gives for ``graph()``, whose `LinkedChains` are known: by messages, also where chains and
        links make up a path. table_counts are not given.
        """
        result, _, _, sweeps = self._passed(chains, 0.0, lambda: compile_tables(graph()), perf_counter())
        return sweeps.give(result)

    def _passed(
        self, chains: LinkedChains, fixed: float, compiled: Callable[[], TableGraph], began: float
    ) -> tuple[Result, ChainForm, loops.SumProduct, Interruptible]:
        """What was reached by all sweeps: the result, the chains with the messages, and the messages."""
        loop = loops.SumProduct(chains, self.damping, self.tolerance)
        with Interruptible() as sweeps:
            _advance(loop, chains, self.n_sweeps, True)
        _advance(loop, chains, 1, False)  # so that all beliefs are those by the messages as they are now
        loop.settle()
        log_z = fixed + float(loop.log_zs.sum()) + loop.log_corrections()
        if log_z == -np.inf:
            raise ImpossibleGraph("-inf entries forbid every pair of labels of a link; allow one for each link")
        runs = chains.form
        form = ChainForm(None, runs.offsets, loop.unaries, runs.tables, runs.edge_table, fixed)
        state = np.empty(len(form.unary), np.int32)
        arrays = form.unary, form.tables, form.offsets, form.edge_table
        chain_loops.viterbi(*arrays, state, np.empty(len(form.offsets) - 1))
        if loop.log_potential(state) == -np.inf:
            state = repaired(compiled(), state, 0, "sum-product")
        result = Result(
            state=state,
            log_potential=fixed + loop.log_potential(state),
            log_z=log_z,
            marginals=loop.marginals,
            n_updates=loop.n_updates,
            seconds=perf_counter() - began,
        )
        return result, form, loop, sweeps

    def _smoothed(self, compiled: TableGraph, form: ChainForm, began: float) -> Result:
        """The result on a graph that is chains alone."""
        best, found = Viterbi().infer(compiled), expectations(compiled, form, self.table_counts)
        return Result(
            state=best.state,
            log_potential=best.log_potential,
            **found,
            n_updates=len(form.unary),
            seconds=perf_counter() - began,
        )


def _advance(loop: loops.SumProduct, chains: LinkedChains, n_sweeps: int, send: bool) -> None:
    at, end = 0, n_sweeps * (len(chains.form.offsets) - 1)
    while at < end:
        at = loop.advance(at, n_sweeps, send)
        if loop.fault >= 0:
            raise ImpossibleGraph(
                f"-inf entries forbid every state: they leave the chain of variable {loop.fault} no labelling; allow a"
                " label for each variable and a pair of labels for each edge"
            )


def _table_counts(
    compiled: TableGraph, chains: LinkedChains, form: ChainForm, loop: loops.SumProduct
) -> tuple[NDArray[np.float64], ...]:
    n, n_labels = form.unary.shape
    edges = np.empty((n + len(chains.scopes), n_labels, n_labels))
    arrays = form.unary, form.tables, form.offsets, form.edge_table
    chain_loops.forward_backward(*arrays, np.empty(len(form.offsets) - 1), None, None, edges[:n])
    loop.pairs(edges[n:])
    keys = _keys(chains.scopes)
    order = np.argsort(keys)
    totals = []
    for group in compiled.factors:
        if group.arity != 2 or not len(group):
            totals.append(group_counts(group, loop.marginals))
            continue
        near, edge = _near(group), group.scopes.max(axis=1).astype(np.int64)
        turned = group.scopes[:, 0] > group.scopes[:, 1]
        edge[~near] = order[np.searchsorted(keys[order], _keys(group.scopes[~near]))]
        turned[~near] = group.scopes[~near, 0] != chains.scopes[edge[~near], 0]
        edge[~near] += n
        totals.append(group_counts(group, loop.marginals, edges, edge, turned))
    return tuple(totals)


@dataclass(frozen=True, slots=True, eq=False)
class LinkedChains:
    """A graph of pairs laid out as chains and E links.

    ``form``: the chains, runs of consecutive variables; ``scopes`` int32[E, 2]: the links, no two of the same
    variables; ``table_of_edge`` int32[E]: which of ``tables`` float64[T, K, K] holds the log-potentials of each.
    """

    form: ChainForm
    scopes: NDArray[np.int32]
    table_of_edge: NDArray[np.int32]
    tables: NDArray[np.float64]

    @classmethod
    def of(cls, compiled: TableGraph) -> LinkedChains:
        sizes, near, far = compiled.sizes, [], []
        n, n_labels = len(sizes), int(sizes.max(initial=1))
        for g, group in enumerate(compiled.factors):
            if group.arity > 2 and len(group):
                raise UnsupportedGraph(
                    f"{factor_in_words(g, group)}: sum-product needs factors of one or two variables; use max-product,"
                    " mean-field or gibbs"
                )
            if group.arity == 2 and len(group):
                inside = _near(group)
                near += _part(group, inside)
                far += _part(group, ~inside)
        if n_labels**2 > MOST_CELLS or n * n_labels > max(MOST_CELLS, 2 * sizes.sum(dtype=np.int64)):
            raise UnsupportedGraph(
                f"variable {int(sizes.argmax())} has {n_labels} labels, too many for tables of all variables: use"
                " max-product, mean-field or gibbs"
            )
        try:
            form = _runs(compiled, near, n, n_labels)
            scopes, table_of_edge, tables = _links(far, sizes, n_labels)
        except ValueError as error:
            raise UnsupportedGraph(f"sum-product: {error}") from None
        return cls(form, scopes, table_of_edge, tables)


def _near(group: TableFactors) -> NDArray[np.bool_]:
    """Which factors of pairs join a variable to the one before it."""
    return np.abs(group.scopes[:, 0] - group.scopes[:, 1]) == 1


def _part(group: TableFactors, chosen: NDArray[np.bool_]) -> list[TableFactors]:
    """The factors of a group that are chosen; no group where there are none."""
    if chosen.all():
        return [group]
    if not chosen.any():
        return []
    return [TableFactors(group.scopes[chosen], group.tables, group.table_of_factor[chosen], group.scale[chosen])]


def _runs(compiled: TableGraph, near: Sequence[TableFactors], n: int, n_labels: int) -> ChainForm:
    """The chains: runs of variables each of which is joined to the one before it."""
    offsets = np.empty(n + 1, np.int64)
    n_runs = layout.forward_paths(near[0].scopes, n, offsets) if len(near) == 1 else -1
    if n_runs < 0:
        starts = np.ones(n + 1, np.bool_)
        for group in near:
            starts[group.scopes.max(axis=1)] = False
        offsets = np.flatnonzero(starts)
        n_runs = len(offsets) - 1
    tables, edge_table = edge_tables(near, None, n - n_runs, n, n_labels)
    unary = unary_table(compiled.sizes, compiled.factors, n_labels)
    return ChainForm(None, offsets[: n_runs + 1], unary, tables, edge_table, 0.0)


def _links(
    groups: Sequence[TableFactors], sizes: NDArray[np.int32], n_labels: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """The links [E, 2], the table of each, and the tables [T, K, K].

    Factors of the same two variables are one edge, their tables added up: else they would be a loop that messages run
    around. Edges to which nothing is added share the tables of their factors.
    """
    if not groups:
        return np.empty((0, 2), np.int32), np.empty(0, np.int32), np.zeros((1, n_labels, n_labels))
    scopes = np.concatenate([group.scopes for group in groups]) if len(groups) > 1 else groups[0].scopes
    keys = _keys(scopes)
    in_order = np.sort(keys)
    repeated = bool((in_order[1:] == in_order[:-1]).any())
    if len(groups) == 1 and not repeated and _ready(groups[0], n_labels):
        return scopes, groups[0].table_of_factor, groups[0].tables
    edge = np.arange(len(scopes))
    if repeated:
        _, first, edge = np.unique(keys, return_index=True, return_inverse=True)
        scopes, edge = scopes[first], edge.reshape(-1)
    edge_of = np.split(edge, np.cumsum([len(group) for group in groups])[:-1])
    alone = np.bincount(edge) == 1
    table_of_edge, ready, n_tables = np.full(len(scopes), -1, np.int32), [], 0
    for group, to in zip(groups, edge_of, strict=True):
        if _ready(group, n_labels):
            chosen = alone[to]
            table_of_edge[to[chosen]] = group.table_of_factor[chosen] + n_tables
            ready.append(group.tables)
            n_tables += len(group.tables)
    own = np.flatnonzero(table_of_edge < 0)
    table_of_edge[own] = np.arange(n_tables, n_tables + len(own))
    check_cells(len(own), n_labels)
    made = np.zeros((len(own), n_labels, n_labels))
    for group, to in zip(groups, edge_of, strict=True):
        chosen = table_of_edge[to] >= n_tables
        for part in _part(group, chosen):
            _add_tables(made, table_of_edge[to[chosen]] - np.int32(n_tables), part, scopes[to[chosen], 0])
    if sizes.min() < n_labels:
        absent = np.arange(n_labels) >= sizes[scopes[own]][:, :, None]
        made[absent[:, 0, :, None] | absent[:, 1, None, :]] = -np.inf
    return scopes, table_of_edge, np.concatenate([*ready, made])


def _ready(group: TableFactors, n_labels: int) -> bool:
    """The log-potentials of the factors are the tables as they are."""
    return group.unscaled and group.tables.shape[1:] == (n_labels, n_labels)


def _add_tables(
    tables: NDArray[np.float64], to: NDArray[np.int32], group: TableFactors, first: NDArray[np.int32]
) -> None:
    """Adds factor f to ``tables[to[f]]``, turned so that the variable ``first[f]`` comes first."""
    rows = group.tables[group.table_of_factor]
    turned = group.scopes[:, 0] != first
    if rows.shape[1:] != tables.shape[1:] or turned.any():
        square = np.zeros((len(rows), *tables.shape[1:]))
        square[~turned, : rows.shape[1], : rows.shape[2]] = rows[~turned]
        square[turned, : rows.shape[2], : rows.shape[1]] = rows[turned].swapaxes(1, 2)
        rows = square
    layout.add_rows(tables.reshape(len(tables), -1), to, group.scale, rows.reshape(len(rows), -1))


def _keys(scopes: NDArray[np.int32]) -> NDArray[np.int64]:
    """[E]: a number for each pair of variables, whichever comes first."""
    return scopes.min(axis=1).astype(np.int64) << 32 | scopes.max(axis=1)
