"""Exact inference by variable elimination, for graphs of small treewidth."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, Int32s
from herdner.base.checks import check_integer
from herdner.base.memory import check_memory
from herdner.base.seeds import Seed, generator
from herdner.graph.factors import TableFactors
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, UnsupportedGraph
from herdner.inference.elimination import BucketTree, Messages, best_states, draw_states
from herdner.inference.elimination_order import EliminationOrder, ReducedGraph, find_elimination_order, reduce_graph
from herdner.inference.record import Record
from herdner.inference.result import Result

logger = logging.getLogger(__name__)

_LARGE = 30.0  # log2 of the number of cells above which the cost is logged: they take about half a minute


@dataclass(frozen=True, slots=True)
class EliminationPlan:
    """Predicted time and memory of exact inference on a graph.

    Attributes:
        n_variables: Number of variables that remain after impossible states and fixed variables are removed.
        log2_cells: log2 of the number of table cells of all buckets; the time is proportional to the number of cells.
        width: Number of variables of the largest bucket minus 1.
        n_bytes: Number of bytes of all messages and their marginals.
    """

    n_variables: int
    log2_cells: float
    width: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact inference by variable elimination (junction tree): best states, log Z, marginals, counts and samples.

    Factors may have any arity. The cost is exponential in the treewidth of the graph; `plan` predicts it. Impossible
    states (-inf entries) are removed first. If several states have the largest log-potential, the result is one of
    them.

    Attributes:
        max_log2_cells: Largest accepted cost, as log2 of the number of table cells; 2^30 cells take about half a
            minute.
        n_best: Number of states of largest log-potential in the result.
        n_samples: Number of exact, independent samples in the result.
        n_threads: Number of threads for large tables; None is one for each processor. Results do not depend on it.
    """

    max_log2_cells: float = 33.0
    n_best: int = 1
    n_samples: int = 0
    n_threads: int | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals", "table_counts"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        if not 0 <= self.max_log2_cells <= 60:
            raise ValueError(f"max_log2_cells must be a number from 0 to 60, got {self.max_log2_cells!r}")
        check_integer(self.n_best, "n_best")
        check_integer(self.n_samples, "n_samples", 0)
        if self.n_threads is not None:
            check_integer(self.n_threads, "n_threads")

    def plan(self, graph: Graph) -> EliminationPlan:
        """Predict the cost of exact inference on a graph.

        Args:
            graph: A graph of discrete variables and tables.

        Raises:
            ImpossibleGraph: Entries of -inf leave a variable without possible states.
            NotEnoughMemory: The graph has too many variables for the search for an elimination order.
        """
        return _Run.prepare(compile_tables(graph)).plan()

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run exact inference on one graph, and return the result.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Seed of the samples.
            start: Ignored.
            record: Contents of the result; None is the best states, the marginals and the expected counts.

        Returns:
            The best states and their log-potentials, log_z, marginals, table counts and samples, as requested. Without
            ``record.best`` and with ``n_best`` of 1, ``state`` is a possible state, not always the best one.

        Raises:
            UnsupportedGraph: The cost exceeds ``max_log2_cells``.
            NotEnoughMemory: The messages do not fit into memory.
            ImpossibleGraph: Entries of -inf forbid every joint state.
            UnsupportedRecord: ``record`` has fields other than best, marginals and table_counts.
        """
        began = perf_counter()
        self.capabilities.require(record, "exact")
        compiled = compile_tables(graph)
        run = _Run.prepare(compiled)
        self._check(run.plan())
        tree = BucketTree(run.reduced, run.order, self.n_threads or os.cpu_count() or 1)
        sums = tree.collect()
        wants_best = record is None or record.best or self.n_best > 1
        best, values = run.best(tree.collect(maximise=True) if wants_best else sums, self.n_best)
        marginals, counts = None, None
        wants_counts = record is None or record.table_counts
        if record is None or record.marginals or record.table_counts:
            marginals, counts = run.marginals(sums, wants_counts)
        samples = run.samples(sums, self.n_samples, seed) if self.n_samples else None
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
        """Raise an error if the predicted cost or the memory for messages exceeds its limit; log a large cost."""
        if plan.log2_cells > self.max_log2_cells:
            cost = f"2^{plan.log2_cells:.1f}" if math.isfinite(plan.log2_cells) else "more than 2^60"
            raise UnsupportedGraph(
                f"exact inference on this graph takes {cost} table cells, but at most 2^{self.max_log2_cells:g} are"
                " accepted; condition on some variables, use sum-product or a sampler, or raise max_log2_cells"
            )
        check_memory(plan.n_bytes, "exact inference on this graph", "condition on some variables, or use a sampler")
        if plan.log2_cells > _LARGE:
            logger.info("exact inference on 2^%.1f table cells, width %d", plan.log2_cells, plan.width)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Data of one run of exact inference: a graph, its reduced form and an elimination order."""

    compiled: TableGraph
    reduced: ReducedGraph
    order: EliminationOrder

    @classmethod
    def prepare(cls, compiled: TableGraph) -> _Run:
        """Prepare a run of exact inference: reduce the compiled graph, and find an elimination order."""
        reduced = reduce_graph(compiled.sizes, compiled.factors)
        order = find_elimination_order(np.array(reduced.sizes, np.int32), reduced.scopes)
        return cls(compiled, reduced, order)

    def plan(self) -> EliminationPlan:
        """Return the cost of the elimination order."""
        return EliminationPlan(
            len(self.reduced.variables), self.order.log2_cells, self.order.width, 16 * self.order.message_cells
        )

    def best(self, messages: Messages, n_best: int) -> tuple[Int32s, list[float]]:
        """Return the ``n_best`` states of largest log-potential [N, V], and their log-potentials.

        If the messages are sums, the result is a probable state, not always the best one.
        """
        states = self.reduced.original_states(best_states(messages, n_best))
        return states, [float(self.compiled.graph.log_potential(state)) for state in states]

    def samples(self, messages: Messages, n_samples: int, seed: Seed) -> Int32s:
        """Draw exact samples, int32[1, n_samples, V]."""
        return self.reduced.original_states(draw_states(messages, n_samples, generator(seed)))[None]

    def marginals(self, messages: Messages, with_counts: bool) -> tuple[Floats, tuple[Floats, ...] | None]:
        """Return the marginals [V, K] of all variables, and the expected counts of each group if ``with_counts``."""
        beliefs, tables = messages.distribute(with_counts)
        shares = (belief / belief.sum() for belief in beliefs)
        marginals = self.reduced.original_marginals(shares, self.compiled.sizes)
        return marginals, self._counts(messages.tree, tables) if with_counts else None

    def _counts(self, tree: BucketTree, tables: Sequence[Floats | None]) -> tuple[Floats, ...]:
        """Return the expected count of each table cell, in one array per group with the shape of the group's tables."""
        counts = tuple(np.zeros(group.tables.shape) for group in self.compiled.factors)
        number = 0
        for group, total in zip(self.compiled.factors, counts, strict=True):
            for f in range(len(group)):
                self._add_counts(tree, tables, number, group, f, total)
                number += 1
        return counts

    def _add_counts(
        self, tree: BucketTree, tables: Sequence[Floats | None], number: int, group: TableFactors, f: int, total: Floats
    ) -> None:
        """Add the marginal of factor ``f`` of a group to ``total``.

        ``number`` is the index of the factor among all factors of the graph.
        """
        states: list[NDArray[np.integer]] = [self.reduced.states[v] for v in group.scopes[f].tolist()]
        belief = tree.factor_belief(tables, *self.reduced.hosts[number])
        cells = np.ix_(group.table_of_factor[f : f + 1], *states)
        total[cells] += float(group.scale[f]) * belief.reshape([1, *map(len, states)])
