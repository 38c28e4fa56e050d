"""Loopy sum-product over chains joined by links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import sum_product as loops
from herdner.base.arrays import Floats, Int32s
from herdner.base.seeds import Seed
from herdner.dobrushin import marginal_bounds
from herdner.graph.chains import ChainForm
from herdner.graph.edges import is_near, pair_keys
from herdner.graph.linked_chains import LinkedChains
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph, Interrupted
from herdner.inference.backends.belief_propagation import BeliefPropagation
from herdner.inference.backends.sweeps import check_message_memory, check_options
from herdner.inference.backends.viterbi import Viterbi, add_marginals, group_counts
from herdner.inference.gibbs.start import repair
from herdner.inference.linear_chain import decode, smooth
from herdner.inference.record import Record
from herdner.inference.result import Result

BLOCK = 1 << 16  # number of variables that are decoded at a time


@dataclass(frozen=True, slots=True)
class SumProduct:
    """Loopy sum-product: marginals of chains joined by links, by message passing. It is exact on graphs without cycles.

    Edges between consecutive variables form chains, which are smoothed exactly by forward-backward. All other edges
    are links, which pass messages between the chains (Sutton and McCallum 2004, Sec. 3; tree-based reparametrisation of
    Wainwright, Jaakkola and Willsky 2003). Sweeps go through the chains from left to right and from right to left in
    turn; a chain whose incoming messages have not changed is skipped. On graphs with factors of three or more variables
    the result is that of `BeliefPropagation` with the same options and the residual schedule.

    Inference ends when no message would change a probability of its receiver by more than ``tolerance``, and at the
    latest after ``n_sweeps``.

    Attributes:
        n_sweeps: Largest number of sweeps.
        tolerance: Largest change of a probability that counts as convergence.
        damping: Weight of a new message: message <- message^(1 - damping) * new message^damping; 1 is undamped.
        table_counts: Also compute the expected counts of table cells.
        error_bounds: Also compute bounds on the error of each marginal, which hold on any graph, even if the messages
            have not converged (`herdner.dobrushin.marginal_bounds`). This takes longer than the marginals.
    """

    n_sweeps: int = 30
    tolerance: float = 1e-3
    damping: float = 1.0
    table_counts: bool = False
    error_bounds: bool = False

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals", "table_counts"}))

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run sum-product on one graph, and return the result.

        The first sweep takes time O(V K^2 + links x K^2); later sweeps skip chains without new messages. Table counts
        take memory O((V + links) K^2).

        Args:
            graph: A graph of discrete variables and tables. Table counts need factors of at most two variables.
            seed: Ignored.
            start: Ignored.
            record: Results to record; None records the marginals, and table counts if the option ``table_counts`` is
                set.

        Returns:
            The approximate marginals; log_z by the Bethe approximation (Wainwright and Jordan 2008, Sec. 4.1.4); and
            table_counts, which are the derivatives of log_z if the messages have converged. All are exact if chains
            and links form a forest and the messages have converged. The state is the best state of the chains given
            the messages, with ties as in `Viterbi`; if -inf entries forbid it, it is repaired. n_updates is the number
            of variables in all chains that were smoothed, and converged is True if no chain has messages to process.

        Raises:
            UnsupportedGraph: Table counts are requested and a factor joins more than two variables.
            UnsupportedRecord: ``record`` asks for more than marginals and table counts.
            ImpossibleGraph: The messages prove that every joint state is forbidden.
            Interrupted: Ctrl-C stopped the sweeps.
        """
        began, table_counts = perf_counter(), self.table_counts
        if record is not None:
            self.capabilities.require(record, "sum-product")
            table_counts = record.table_counts
        compiled = compile_tables(graph)
        form = compiled.find(ChainForm) if compiled.links is None else None
        if form is not None:
            result = add_marginals(Viterbi().infer(compiled), compiled, form, table_counts)
            result = replace(result, converged=True, n_updates=len(form.unary), seconds=perf_counter() - began)
        elif not table_counts and compiled.links is None and any(g.arity > 2 and len(g) for g in compiled.factors):
            result = BeliefPropagation(self.n_sweeps, self.tolerance, self.damping).infer(compiled)
        else:
            if compiled.links is None:
                check_message_memory(compiled, "sum-product", 4, 3)
            chains = compiled.require(
                LinkedChains,
                "sum-product needs tables that fit into memory, and factors of one or two variables for table counts;"
                " use belief-propagation",
            )
            result = self._pass_messages(compiled, chains, table_counts, began)
        if self.error_bounds and result.marginals is not None:
            errors = marginal_bounds(compiled).errors(result.marginals)
            result = replace(result, error_bounds=errors, seconds=perf_counter() - began)
        return result

    def _pass_messages(self, compiled: TableGraph, chains: LinkedChains, table_counts: bool, began: float) -> Result:
        """Run all sweeps of message passing, and return the result."""
        constant = chains.form.constant
        loop, interrupted = loops.SumProductLoop(chains, self.damping, self.tolerance), False
        try:
            loop.advance(self.n_sweeps, True)
        except KeyboardInterrupt:
            interrupted = True
        converged = loop.n_stale == 0
        loop.advance(1, False)  # make all marginals agree with the final messages
        if loop.fault >= 0:
            raise ImpossibleGraph(
                f"-inf entries forbid every joint state of the chain that contains variable {loop.fault}; allow a state"
                " for each variable and a pair of states for each edge"
            )
        log_z = constant + float(loop.log_zs.sum()) + loop.log_corrections()
        if log_z == -np.inf:
            raise ImpossibleGraph("-inf entries forbid every pair of states of a link; allow at least one pair")
        state = _best_state(chains.form, loop)
        log_potential = loop.log_potential(state)
        if log_potential == -np.inf:  # `repair` would compute the log-potential of an allowed state once more
            state = repair(compiled, state, 0, "sum-product")
            log_potential = loop.log_potential(state)
        result = Result(
            state=state,
            log_potential=constant + log_potential,
            log_z=log_z,
            marginals=loop.marginals,
            converged=converged,
            n_updates=loop.n_updates,
            seconds=perf_counter() - began,
        )
        if table_counts:
            result = replace(result, table_counts=_table_counts(compiled, chains, loop))
        if interrupted:
            raise Interrupted(result)
        return result


def _best_state(form: ChainForm, loop: loops.SumProductLoop) -> Int32s:
    """Return the best state of the chains, with the link messages added to the unary log-potentials.

    Parts of the chains are decoded one after the other, to save memory.
    """
    n_chains = len(form.offsets) - 1
    if len(form.unary) <= BLOCK:
        return decode(loop.unaries(0, n_chains), form.tables, form.offsets, form.edge_table)[0]
    state = np.empty(len(form.unary), np.int32)
    cuts = np.searchsorted(form.offsets[:-1], np.arange(0, len(form.unary), BLOCK)).tolist()
    for first, last in pairwise(sorted({*cuts, n_chains})):
        start, end = form.offsets[first], form.offsets[last]
        edges = None if form.edge_table is None else form.edge_table[start:end]
        offsets = form.offsets[first : last + 1] - start
        state[start:end] = decode(loop.unaries(first, last), form.tables, offsets, edges)[0]
    return state


def _table_counts(compiled: TableGraph, chains: LinkedChains, loop: loops.SumProductLoop) -> tuple[Floats, ...]:
    """Return the expected counts of the table cells of each factor group under the approximate marginals."""
    form, unary = chains.form, loop.unaries(0, len(chains.form.offsets) - 1)
    n, n_states = unary.shape
    edges = np.empty((n + len(chains.scopes), n_states, n_states))
    smooth(unary, form.tables, form.offsets, form.edge_table, nodes=False, edges_out=edges[:n])
    loop.pairs(edges[n:])
    keys = pair_keys(chains.scopes)
    order = np.argsort(keys)
    totals: list[Floats] = []
    for group in compiled.factors:
        if group.arity != 2 or not len(group):
            totals.append(group_counts(group, loop.marginals))
            continue
        far, edge = ~is_near(group), group.scopes.max(axis=1).astype(np.int64)
        flipped = group.scopes[:, 0] > group.scopes[:, 1]
        edge[far] = order[np.searchsorted(keys[order], pair_keys(group.scopes[far]))]
        flipped[far] = group.scopes[far, 0] != chains.scopes[edge[far], 0]
        edge[far] += n
        totals.append(group_counts(group, loop.marginals, edges, edge, flipped))
    return tuple(totals)
