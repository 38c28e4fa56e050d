"""Exact inference by variable elimination, for graphs of small treewidth."""

from __future__ import annotations

import logging
import math
import os
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext.elimination import Beliefs
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import check_counts
from herdner.base.memory import check_memory
from herdner.base.messages import format_size
from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, UnsupportedGraph
from herdner.inference.backends.sweeps import check_seconds
from herdner.inference.barren import PrunedGraph
from herdner.inference.elimination import (
    DISTRIBUTION_COST,
    BucketTree,
    EliminationClock,
    Messages,
    best_states,
    draw_states,
)
from herdner.inference.elimination_order import (
    LARGEST_LOG2_CELLS,
    EliminationOrder,
    OutOfTime,
    ReducedGraph,
    find_elimination_order,
    reduce_tables,
)
from herdner.inference.record import Record
from herdner.inference.result import Result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EliminationPlan:
    """Predicted time and memory of exact inference on a graph.

    Attributes:
        n_variables: Number of variables that remain after impossible states and fixed variables are removed.
        log2_cells: log2 of the number of table cells of all buckets; the time is proportional to the number of cells.
        width: Number of variables of the largest bucket minus 1.
        n_bytes: Largest number of bytes that messages and marginals of separators have at the same time.
    """

    n_variables: int
    log2_cells: float
    width: int
    n_bytes: int

    def __str__(self) -> str:
        """Return the number of table cells, the width and the memory as text."""
        if not math.isfinite(self.log2_cells):
            return "no elimination order of at most 2^60 table cells"
        return f"2^{self.log2_cells:.1f} table cells, width {self.width}, {format_size(self.n_bytes)}"


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact inference by variable elimination (junction tree): best states, log Z, marginals, expected counts, samples.

    Factors may have any arity. The cost is exponential in the treewidth of the graph; `plan` predicts it. Impossible
    states (-inf entries) are removed first. If several states have the largest log-potential, the result is one of
    them. If only log Z and samples are requested, barren variables are removed too; elimination alone would join the
    other variables of their factors, which can increase the width.

    Attributes:
        max_log2_cells: Largest accepted cost, as log2 of the number of table cells; 2^30 cells take about half a
            minute.
        n_best: Number of states of largest log-potential in the result.
        n_samples: Number of exact, independent samples in the result.
        n_threads: Number of threads for large tables; None is one for each processor. Results do not depend on it.
        seconds: Time limit in seconds; None is unlimited. A run ends early if its measured speed predicts that it would
            exceed the limit.
    """

    max_log2_cells: float = 33.0
    n_best: int = 1
    n_samples: int = 0
    n_threads: int | None = None
    seconds: float | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals", "table_counts"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        if not 0 <= self.max_log2_cells <= 60:
            raise ValueError(f"max_log2_cells must be a number from 0 to 60, got {self.max_log2_cells!r}")
        check_counts(self, n_best=1, n_samples=0, n_threads=1)
        check_seconds(self.seconds)

    def plan(self, graph: Graph) -> EliminationPlan:
        """Predict the cost of exact inference on a graph.

        Args:
            graph: A graph of discrete variables and tables.

        Returns:
            The predicted cost.

        Raises:
            ImpossibleGraph: Entries of -inf leave a variable without possible states.
            MemoryError: The graph has too many variables for the search for an elimination order.
        """
        return EliminationRun.prepare(compile_tables(graph)).plan(True)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run exact inference on one graph, and return the result.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Seed of the samples.
            start: Ignored.
            record: Results to record; None records the best states, the marginals and the expected counts.

        Returns:
            The best states and their log-potentials, log_z, marginals, table counts and samples, as requested, and the
            predicted cost as method. Without ``record.best`` and with ``n_best`` of 1, ``state`` is a possible state,
            not always the best one.

        Raises:
            UnsupportedGraph: The cost exceeds ``max_log2_cells``, or the time exceeds ``seconds``.
            NotEnoughMemory: The messages do not fit into memory.
            ImpossibleGraph: Entries of -inf forbid every joint state.
            UnsupportedRecord: ``record`` has fields other than best, marginals and table_counts.
        """
        began = perf_counter()
        self.capabilities.require(record, "exact")
        limit = math.inf if self.seconds is None else self.seconds
        try:
            compiled = compile_tables(graph)
            prune = needs_only_sums(record) and self.n_best == 1
            until = perf_counter() + limit
            run = EliminationRun.prepare(compiled, limit / 2, self.max_log2_cells, until, prune=prune)
        except OutOfTime:
            raise UnsupportedGraph(slow_reduction("exact", limit)) from None
        plan = run.plan(needs_marginals(record))
        self._check(plan)
        remaining = None if self.seconds is None else self.seconds - (perf_counter() - began)
        try:
            result = self.run(run, seed, record, remaining)
        except OutOfTime:
            raise UnsupportedGraph(
                f"exact inference on this graph of 2^{run.order.log2_cells:.1f} table cells takes more than"
                f" {self.seconds:g} s; increase `seconds`, condition on some variables, or use the backend 'auto'"
            ) from None
        return replace(result, method=str(plan), seconds=perf_counter() - began)

    def run(self, run: EliminationRun, seed: Seed, record: Record | None, seconds: float | None) -> Result:
        """Run exact inference on a prepared graph, and return the result.

        Args:
            run: The graph with an elimination order of finite cost.
            seed: Seed of the samples.
            record: Results to record, as in `infer`.
            seconds: Time limit in seconds; None is unlimited.

        Raises:
            OutOfTime: The run would exceed the time limit.
            ImpossibleGraph: Entries of -inf forbid every joint state.
        """
        began = perf_counter()
        wants_best = record is None or record.best or self.n_best > 1
        wants_marginals = needs_marginals(record)
        clock = None
        if seconds is not None:
            n_passes = 1 + wants_best + DISTRIBUTION_COST * wants_marginals
            clock = EliminationClock(seconds, n_passes * 2.0**run.order.log2_cells)
        tree = BucketTree(run.reduced, run.order, self.n_threads or os.cpu_count() or 1, clock)
        # Only the messages of one pass exist at a time, and the marginals use up those of the last pass.
        best, values = run.best(tree.collect(maximise=True), self.n_best) if wants_best else (None, [])
        sums = tree.collect()
        if best is None:
            best, values = run.best(sums, 1)
        samples = run.samples(sums, self.n_samples, seed) if self.n_samples else None
        marginals, counts = None, None
        if wants_marginals:
            marginals, counts = run.marginals(sums, record is None or record.table_counts)
        return Result(
            state=best[0],
            log_potential=values[0],
            best_states=best if wants_best else None,
            best_log_potentials=np.array(values) if wants_best else None,
            log_z=sums.total,
            marginals=marginals,
            table_counts=counts,
            samples=samples,
            seconds=perf_counter() - began,
        )

    def _check(self, plan: EliminationPlan) -> None:
        """Raise an error if the predicted cost or memory exceeds its limit, else log both."""
        if self.seconds is not None and not math.isfinite(plan.log2_cells):
            raise UnsupportedGraph(
                f"'exact' found no elimination order of at most 2^60 table cells within {self.seconds / 2:g} s;"
                " increase `seconds`, condition on some variables, or use the backend 'auto'"
            )
        if plan.log2_cells > self.max_log2_cells:
            cost = f"2^{plan.log2_cells:.1f}" if math.isfinite(plan.log2_cells) else "more than 2^60"
            raise UnsupportedGraph(
                f"exact inference on this graph takes {cost} table cells, but `max_log2_cells` allows only"
                f" 2^{self.max_log2_cells:g}; condition on some variables, use the backend 'sum-product' or a sampler,"
                " or increase `max_log2_cells`"
            )
        check_memory(plan.n_bytes, "exact inference on this graph", "condition on some variables, or use a sampler")
        logger.info("exact inference: %s", plan)


def needs_only_sums(record: Record | None) -> bool:
    """Return True if a record requests neither the best state nor marginals, so that barren variables can be removed.

    Args:
        record: Requested results; None requests all.
    """
    return record is not None and not (record.best or record.marginals or record.table_counts)


def needs_marginals(record: Record | None) -> bool:
    """Return True if a record requests marginals or expected counts of table cells, which need a second pass.

    Args:
        record: Requested results; None requests all.
    """
    return record is None or record.marginals or record.table_counts


def slow_reduction(backend: str, seconds: float) -> str:
    """Return the error message for a graph whose impossible states cannot be removed within a time limit.

    Args:
        backend: Name of the backend.
        seconds: The time limit in seconds.
    """
    return (
        f"{backend!r} could not remove the impossible states of this graph within {seconds:g} s; increase `seconds`, or"
        " use a Gibbs sampler"
    )


@dataclass(frozen=True, slots=True, eq=False)
class EliminationRun:
    """Data of one run of exact inference: a graph, its reduced form and an elimination order.

    Attributes:
        compiled: The graph.
        reduced: The graph without impossible states.
        order: The elimination order of the reduced graph.
        pruned: Graph before and after the removal of barren variables; None if none was removed.
    """

    compiled: TableGraph
    reduced: ReducedGraph
    order: EliminationOrder
    pruned: PrunedGraph | None = None

    @classmethod
    def prepare(
        cls,
        compiled: TableGraph,
        seconds: float = math.inf,
        limit: float = LARGEST_LOG2_CELLS,
        until: float = math.inf,
        *,
        prune: bool = False,
    ) -> EliminationRun:
        """Prepare a run of exact inference: reduce the compiled graph, and find an elimination order.

        Args:
            compiled: The graph.
            seconds: Time limit of the search for an order, in seconds.
            limit: log2 of the largest number of table cells that the caller accepts; a search that cannot reach it ends
                early.
            until: Reading of ``time.perf_counter`` at which the reduction ends with an error.
            prune: Remove barren variables, for runs that need only log Z and samples.

        Returns:
            The run, which has an elimination order but no result yet.

        Raises:
            ImpossibleGraph: Entries of -inf leave a variable without possible states.
            MemoryError: The graph has too many variables for the search for an elimination order.
            OutOfTime: The reduction exceeds the time limit.
        """
        pruned = PrunedGraph.of(reduce_tables(compiled, until, absorb=False), until) if prune else None
        if pruned is not None and not pruned.removed:
            pruned = None
        reduced = reduce_tables(compiled, until) if pruned is None else pruned.graph
        order = find_elimination_order(np.array(reduced.sizes, np.int32), reduced.scopes, seconds=seconds, limit=limit)
        return cls(compiled, reduced, order, pruned)

    def plan(self, with_marginals: bool) -> EliminationPlan:
        """Return the predicted cost of the run.

        Args:
            with_marginals: The run computes marginals or expected counts, which need more memory.
        """
        cells = self.order.peak_cells if with_marginals else self.order.message_cells
        return EliminationPlan(len(self.reduced.variables), self.order.log2_cells, self.order.width, 8 * cells)

    def best(self, messages: Messages, n_best: int) -> tuple[Int32s, list[float]]:
        """Return the ``n_best`` joint states of largest log-potential, int32[N, V], and their log-potentials.

        Args:
            messages: Messages that are maxima. If they are sums, the result is a probable state, not always the best.
            n_best: Number of states.
        """
        states = self._original_states(best_states(messages, n_best))
        return states, [float(self.compiled.graph.log_potential(state)) for state in states]

    def samples(self, messages: Messages, n_samples: int, seed: Seed) -> Int32s:
        """Draw exact samples from the joint distribution.

        Args:
            messages: Messages that are sums.
            n_samples: Number of samples.
            seed: Source of randomness.

        Returns:
            int32[1, n_samples, V], joint states.
        """
        rng = generator(seed)
        return self._original_states(draw_states(messages, n_samples, rng), rng)[None]

    def _original_states(self, states: Int32s, rng: np.random.Generator | None = None) -> Int32s:
        """Convert joint states of the reduced graph to those of the original graph; ``rng`` draws barren variables."""
        if self.pruned is None:
            return self.reduced.original_states(states)
        return self.pruned.whole.original_states(self.pruned.complete(states, rng))

    def marginals(self, messages: Messages, with_counts: bool) -> tuple[Floats, tuple[Floats, ...] | None]:
        """Return the marginals [V, K] of all variables and, if ``with_counts``, the expected counts of table cells.

        Args:
            messages: Messages of a pass that sums, and does not maximise.
            with_counts: Also compute the expected counts of table cells.

        Raises:
            OutOfTime: The run would exceed its time limit.
        """
        beliefs = messages.distribute(with_counts)
        flat, sizes = beliefs.marginals, np.array(self.reduced.sizes, np.int64)
        if len(sizes):
            flat /= np.repeat(np.add.reduceat(flat, np.cumsum(sizes) - sizes), sizes)
        marginals = self.reduced.original_marginals(flat, self.compiled.sizes)
        return marginals, self._counts(messages.tree, beliefs) if with_counts else None

    def _counts(self, tree: BucketTree, beliefs: Beliefs) -> tuple[Floats, ...]:
        """Return the expected count of each table cell, in one array per group with the shape of the group's tables."""
        counts = tuple(np.zeros(group.tables.shape) for group in self.compiled.factors)
        hosts = iter(self.reduced.hosts)
        for group, total in zip(self.compiled.factors, counts, strict=True):
            for scope, table, scale in zip(group.scopes.tolist(), group.table_of_factor, group.scale, strict=True):
                states: list[Int64s] = [self.reduced.states[v] for v in scope]
                belief = tree.factor_belief(beliefs, *next(hosts))
                total[np.ix_([table], *states)] += float(scale) * belief.reshape([1, *map(len, states)])
        return counts
