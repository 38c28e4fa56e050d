"""Loopy sum-product over chains joined by skip edges."""

from __future__ import annotations

from collections.abc import Sequence
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
from herdner.inference.repair import repaired
from herdner.inference.sweeps import Interruptible, check_options, constant
from herdner.inference.viterbi import Viterbi, expectations, group_counts
from herdner.sampling.result import Result


@dataclass(frozen=True, slots=True)
class SumProduct:
    """Loopy sum-product: marginals of chains with skip edges by message passing, exact without loops.

    Edges between consecutive variables make up chains, which are smoothed exactly, by forward-backward; all other edges
    of two variables pass messages between them (Sutton and McCallum 2004, Sec. 3; tree-based reparametrisation of
    Wainwright, Jaakkola and Willsky 2003). A sweep goes through the chains from left to right and the next from right
    to left; each chain smoothed tells the others what it found, and those that are told nothing new are left alone.
    Factors of one and two variables, any numbers of labels.

    Ends when no message would change a probability of its receiver by more than ``tolerance``, and after ``n_sweeps``.
    message <- message^(1 - damping) * new message^damping; ``damping`` = 1 is undamped. ``table_counts`` are given
    only if asked for.
    """

    n_sweeps: int = 10
    tolerance: float = 1e-3
    damping: float = 1.0
    table_counts: bool = False

    def __post_init__(self) -> None:
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)

    def infer(self, graph: FactorGraph | TableGraph, seed: int | np.random.Generator | None = None) -> Result:
        """Time of a sweep O(V K^2 + skip edges x K^2), later ones only for the chains told something new. ``seed`` is
        ignored.

        marginals: the beliefs; log_z: Bethe's approximation (Wainwright and Jordan 2008, Sec. 4.1.4), of which
        table_counts are the derivatives once the messages have converged; both exact where chains and skip edges form a
        forest and enough sweeps were made. state: the best state of the chains given the messages, ties as in `Viterbi`
        (on graphs that are chains it is `Viterbi`'s); if -inf entries forbid it, a repaired one. n_updates: variables
        smoothed. table_counts take memory O((V + skip edges) K^2).

        UnsupportedGraph where a factor joins more than two variables; ImpossibleGraph where messages show that no state
        is allowed. Ctrl-C raises `Interrupted`, whose ``result`` is what was reached until then.
        """
        return self.infer_chains(graph)[0]

    def infer_chains(self, graph: FactorGraph | TableGraph) -> tuple[Result, ChainForm]:
        """What `infer` gives, and the chains with the messages added to their unary log-potentials: so that, for
        instance, `herdner.inference.chain.span_log_probability` gives the beliefs of whole spans."""
        began = perf_counter()
        compiled = compile_tables(graph)
        form = compiled.structure
        if isinstance(form, ChainForm):
            found = replace(
                Viterbi().infer(compiled), **expectations(compiled, form, self.table_counts), n_updates=len(form.unary)
            )
            return replace(found, seconds=perf_counter() - began), form
        fixed = constant(compiled)
        chains = SkipChains.of(compiled)
        loop = loops.SumProduct(chains, self.damping, self.tolerance)
        with Interruptible() as sweeps:
            for sweep in range(self.n_sweeps):
                _advance(loop, chains, sweep % 2 == 1, True)
                if not loop.n_stale:
                    break
        _advance(loop, chains, False, False)  # so that all beliefs are those by the messages as they are now
        log_z = fixed + float(loop.log_zs.sum()) + loop.log_corrections()
        if log_z == -np.inf:
            raise ImpossibleGraph("-inf entries forbid every pair of labels of a skip edge; allow one for each edge")
        form = replace(chains.form, unary=loop.unaries)
        state = _best(compiled, form)
        result = Result(
            state=state,
            log_potential=float(compiled.graph.log_potential(state)),
            log_z=log_z,
            marginals=loop.marginals,
            table_counts=_table_counts(compiled, chains, form, loop) if self.table_counts else None,
            n_updates=loop.n_updates,
            seconds=perf_counter() - began,
        )
        return sweeps.give(result), form


def _advance(loop: loops.SumProduct, chains: SkipChains, backward: bool, send: bool) -> None:
    at, end = 0, len(chains.form.offsets) - 1
    while at < end:
        at = loop.advance(at, backward, send)
        if loop.fault >= 0:
            raise ImpossibleGraph(
                f"-inf entries forbid every state: they leave the chain of variable {loop.fault} no labelling; allow a"
                " label for each variable and a pair of labels for each edge"
            )


def _best(compiled: TableGraph, form: ChainForm) -> NDArray[np.int32]:
    """The best labelling of the chains; repaired where it is forbidden."""
    state = np.empty(len(form.unary), np.int32)
    chain_loops.viterbi(form.unary, form.tables, form.offsets, form.edge_table, state, np.empty(len(form.offsets) - 1))
    if compiled.graph.log_potential(state) == -np.inf:
        return repaired(compiled, state, 0, "sum-product")
    return state


def _table_counts(
    compiled: TableGraph, chains: SkipChains, form: ChainForm, loop: loops.SumProduct
) -> tuple[NDArray[np.float64], ...]:
    n, n_labels = form.unary.shape
    edges = np.empty((n + len(chains.scopes), n_labels, n_labels))
    arrays = form.unary, form.tables, form.offsets, form.edge_table
    chain_loops.forward_backward(*arrays, np.empty(len(form.offsets) - 1), None, None, edges[:n])
    loop.pairs(chains.edge, edges[n:])
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
class SkipChains:
    """A graph of pairs laid out as chains and E skip edges, each with a slot at both ends.

    ``form``: the chains, runs of consecutive variables; ``scopes`` int32[E, 2]: the skip edges, no two of the same
    variables; ``tables`` float64[T, K, K]: their log-potentials. The slots come in the order of their variables:
    ``variable``, ``edge``, ``table`` (of the edge) and ``partner`` (the slot at its other end), int32[2E]; ``second``
    uint8[2E]: whether the slot is that of the scope's second variable. ``slot_starts`` int64[S + 1]: the slots of each
    chain; ``run_of`` int32[2E]: the chain of each slot.
    """

    form: ChainForm
    scopes: NDArray[np.int32]
    tables: NDArray[np.float64]
    variable: NDArray[np.int32]
    edge: NDArray[np.int32]
    table: NDArray[np.int32]
    partner: NDArray[np.int32]
    second: NDArray[np.uint8]
    slot_starts: NDArray[np.int64]
    run_of: NDArray[np.int32]

    @classmethod
    def of(cls, compiled: TableGraph) -> SkipChains:
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
            scopes, table_of_edge, tables = _skips(far, sizes, n_labels)
        except ValueError as error:
            raise UnsupportedGraph(f"sum-product: {error}") from None
        ends = scopes.ravel()
        order = np.argsort(ends, kind="stable").astype(np.int32)
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=np.int32)
        variable, edge = ends[order], order >> 1
        slot_starts = np.searchsorted(variable, form.offsets)
        run_of = np.repeat(np.arange(len(form.offsets) - 1, dtype=np.int32), np.diff(slot_starts))
        return cls(
            form=form,
            scopes=scopes,
            tables=tables,
            variable=variable,
            edge=edge,
            table=table_of_edge[edge],
            partner=place[order ^ 1],
            second=(order & 1).astype(np.uint8),
            slot_starts=slot_starts,
            run_of=run_of,
        )


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


def _skips(
    groups: Sequence[TableFactors], sizes: NDArray[np.int32], n_labels: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """The skip edges [E, 2], the table of each, and the tables [T, K, K].

    Factors of the same two variables are one edge, their tables added up: else they would be a loop that messages run
    around. Where nothing is to be added, tied edges share a table.
    """
    scopes = np.concatenate([group.scopes for group in groups]) if len(groups) > 1 else groups[0].scopes
    whole = all(group.unscaled and group.tables.shape[1:] == (n_labels, n_labels) for group in groups)
    keys = _keys(scopes)
    in_order = np.sort(keys)
    if whole and not (in_order[1:] == in_order[:-1]).any():
        if len(groups) == 1:
            return scopes, groups[0].table_of_factor, groups[0].tables
        bases = np.cumsum([0, *(len(group.tables) for group in groups)])
        chosen = [group.table_of_factor + base for group, base in zip(groups, bases, strict=False)]
        return scopes, np.concatenate(chosen).astype(np.int32), np.concatenate([group.tables for group in groups])
    _, first, edge = np.unique(keys, return_index=True, return_inverse=True)
    check_cells(len(first), n_labels)
    edges, tables, at = scopes[first], np.zeros((len(first), n_labels, n_labels)), 0
    for group in groups:
        to = edge.reshape(-1)[at : at + len(group)].astype(np.int32)
        at += len(group)
        rows = group.tables[group.table_of_factor]
        turned = group.scopes[:, 0] != edges[to, 0]
        square = np.zeros((len(group), n_labels, n_labels))
        square[~turned, : rows.shape[1], : rows.shape[2]] = rows[~turned]
        square[turned, : rows.shape[2], : rows.shape[1]] = rows[turned].swapaxes(1, 2)
        layout.add_rows(tables.reshape(len(first), -1), to, group.scale, square.reshape(len(group), -1))
    if sizes.min() < n_labels:
        absent = np.arange(n_labels) >= sizes[edges][:, :, None]
        tables[absent[:, 0, :, None] | absent[:, 1, None, :]] = -np.inf
    return edges, np.arange(len(first), dtype=np.int32), tables


def _keys(scopes: NDArray[np.int32]) -> NDArray[np.int64]:
    """[E]: a number for each pair of variables, whichever comes first."""
    return scopes.min(axis=1).astype(np.int64) << 32 | scopes.max(axis=1)
