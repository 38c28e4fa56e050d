"""Loopy sum-product over chains joined by links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import chain as chain_loops
from herdner._ext import sum_product as loops
from herdner.base.arrays import Floats, Int32s
from herdner.base.seeds import Seed
from herdner.dobrushin import marginal_bounds
from herdner.graph.chains import ChainForm
from herdner.graph.linked_chains import LinkedChains, is_near, pair_keys
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph, Interrupted, UnsupportedGraph
from herdner.inference.backends.sweeps import check_options, check_possible, check_room
from herdner.inference.backends.viterbi import Viterbi, expected, group_counts
from herdner.inference.gibbs.start import repaired
from herdner.inference.record import Record
from herdner.inference.result import Result

BLOCK = 1 << 16  # variables whose chains are decoded at a time


@dataclass(frozen=True, slots=True)
class SumProduct:
    """Loopy sum-product: marginals of chains with links by message passing, exact without loops.

    Edges between consecutive variables make up chains, which are smoothed exactly, by forward-backward; all other edges
    of two variables pass messages between them (Sutton and McCallum 2004, Sec. 3; tree-based reparametrisation of
    Wainwright, Jaakkola and Willsky 2003). A sweep goes through the chains from left to right and the next from right
    to left; each chain smoothed tells the others what it found, and those that are told nothing new are left alone.
    Factors of one and two variables, any numbers of labels.

    Ends when no message would change a probability of its receiver by more than ``tolerance``, and after ``n_sweeps``.
    message <- message^(1 - damping) * new message^damping; ``damping`` = 1 is undamped. ``table_counts`` and
    ``error_bounds`` are given only if asked for: the latter hold on graphs with loops too, converged or not
    (`herdner.dobrushin.marginal_bounds`), and take more time than the marginals themselves.
    """

    n_sweeps: int = 30
    tolerance: float = 1e-3
    damping: float = 1.0
    table_counts: bool = False
    error_bounds: bool = False

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals", "table_counts"}))

    def __post_init__(self) -> None:
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Time of a sweep O(V K^2 + links x K^2), later ones only for the chains told something new. ``seed`` is
        ignored.

        marginals: the beliefs; log_z: Bethe's approximation (Wainwright and Jordan 2008, Sec. 4.1.4), of which
        table_counts are the derivatives once the messages have converged; both exact where chains and links form a
        forest and enough sweeps were made. state: the best state of the chains given the messages, ties as in `Viterbi`
        (on graphs that are chains it is `Viterbi`'s); if -inf entries forbid it, a repaired one. n_updates: variables
        smoothed. table_counts take memory O((V + links) K^2).

        Raises:
            UnsupportedGraph: A factor joins more than two variables.
            ImpossibleGraph: Messages show that no state is allowed.
        """
        return self._inferred(graph, record)[0]

    def infer_chains(self, graph: Graph, record: Record | None = None) -> tuple[Result, ChainForm]:
        """What `infer` gives, and the chains with the messages added to their unary log-potentials: so that, for
        instance, `herdner.inference.linear_chain.span_log_probability` gives the beliefs of whole spans.
        """
        result, chains, loop = self._inferred(graph, record)
        return result, chains if loop is None else _with_messages(chains, loop)

    def _inferred(self, graph: Graph, record: Record | None) -> tuple[Result, ChainForm, loops.SumProduct | None]:
        """The result, the chains, and the messages; None: there are no links."""
        began = perf_counter()
        self.capabilities.check("sum-product", record)
        table_counts = self.table_counts if record is None else record.table_counts
        compiled = compile_tables(graph)
        if compiled.links is None and isinstance(form := compiled.chain, ChainForm):
            result, loop = self._smoothed(compiled, form, table_counts, began), None
        else:
            if compiled.links is None:
                check_room(compiled, "sum-product", 4, 5)
            chains = compiled.linked_chains
            if isinstance(chains, str):
                raise UnsupportedGraph(
                    f"{chains}: sum-product needs factors of one or two variables, and tables that fit into memory; use"
                    " max-product, mean-field or gibbs"
                )
            form = chains.form
            result, loop = self._passed(compiled, chains, table_counts, began)
        if self.error_bounds and result.marginals is not None:
            errors = marginal_bounds(compiled).errors(result.marginals)
            result = replace(result, error_bounds=errors, seconds=perf_counter() - began)
        return result, form, loop

    def _passed(
        self, compiled: TableGraph, chains: LinkedChains, table_counts: bool, began: float
    ) -> tuple[Result, loops.SumProduct]:
        """What was reached by all sweeps: the result, and the messages."""
        fixed = chains.form.constant
        check_possible(fixed)
        loop, stopped = loops.SumProduct(chains, self.damping, self.tolerance), False
        try:
            _advance(loop, chains, self.n_sweeps, True)
        except KeyboardInterrupt:
            stopped = True
        _advance(loop, chains, 1, False)  # so that all beliefs are those by the messages as they are now
        log_z = fixed + float(loop.log_zs.sum()) + loop.log_corrections()
        if log_z == -np.inf:
            raise ImpossibleGraph("-inf entries forbid every pair of labels of a link; allow one for each link")
        state = _best_state(chains.form, loop)
        log_potential = loop.log_potential(state)
        if log_potential == -np.inf:
            state = repaired(compiled, state, 0, "sum-product")
            log_potential = loop.log_potential(state)
        result = Result(
            state=state,
            log_potential=fixed + log_potential,
            log_z=log_z,
            marginals=loop.marginals,
            n_updates=loop.n_updates,
            seconds=perf_counter() - began,
        )
        if table_counts:
            form = _with_messages(chains.form, loop)
            result = replace(result, table_counts=_table_counts(compiled, chains, form, loop))
        if stopped:
            raise Interrupted(result)
        return result, loop

    def _smoothed(self, compiled: TableGraph, form: ChainForm, table_counts: bool, began: float) -> Result:
        """The result on a graph that is chains alone."""
        result = expected(Viterbi().infer(compiled), compiled, form, table_counts)
        return replace(result, n_updates=len(form.unary), seconds=perf_counter() - began)


def _advance(loop: loops.SumProduct, chains: LinkedChains, n_sweeps: int, send: bool) -> None:
    at, end = 0, n_sweeps * (len(chains.form.offsets) - 1)
    while at < end:
        at = loop.advance(at, n_sweeps, send)
        if loop.fault >= 0:
            raise ImpossibleGraph(
                f"-inf entries forbid every state: they leave the chain of variable {loop.fault} no labelling; allow a"
                " label for each variable and a pair of labels for each edge"
            )


def _with_messages(form: ChainForm, loop: loops.SumProduct) -> ChainForm:
    """The chains with the messages added to their unary log-potentials."""
    return replace(form, unary=loop.unaries(0, len(form.offsets) - 1))


def _best_state(form: ChainForm, loop: loops.SumProduct) -> Int32s:
    """The best state of the chains given the messages; many chains at a time, so that memory stays small."""
    state = np.empty(len(form.unary), np.int32)
    n_chains = len(form.offsets) - 1
    cuts = np.searchsorted(form.offsets[:-1], np.arange(0, len(state), BLOCK)).tolist()
    for first, last in pairwise(sorted({*cuts, n_chains})):
        start, end = form.offsets[first], form.offsets[last]
        edges = None if form.edge_table is None else form.edge_table[start:end]
        offsets = form.offsets[first : last + 1] - start
        chain_loops.viterbi(
            loop.unaries(first, last), form.tables, offsets, edges, state[start:end], np.empty(last - first)
        )
    return state


def _table_counts(
    compiled: TableGraph, chains: LinkedChains, form: ChainForm, loop: loops.SumProduct
) -> tuple[Floats, ...]:
    n, n_states = form.unary.shape
    edges = np.empty((n + len(chains.scopes), n_states, n_states))
    arrays = form.unary, form.tables, form.offsets, form.edge_table
    chain_loops.forward_backward(*arrays, np.empty(len(form.offsets) - 1), None, None, edges[:n])
    loop.pairs(edges[n:])
    keys = pair_keys(chains.scopes)
    order = np.argsort(keys)
    totals: list[Floats] = []
    for group in compiled.factors:
        if group.arity != 2 or not len(group):
            totals.append(group_counts(group, loop.marginals))
            continue
        near, edge = is_near(group), group.scopes.max(axis=1).astype(np.int64)
        turned = group.scopes[:, 0] > group.scopes[:, 1]
        edge[~near] = order[np.searchsorted(keys[order], pair_keys(group.scopes[~near]))]
        turned[~near] = group.scopes[~near, 0] != chains.scopes[edge[~near], 0]
        edge[~near] += n
        totals.append(group_counts(group, loop.marginals, edges, edge, turned))
    return tuple(totals)
