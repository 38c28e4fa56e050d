"""Variable elimination on any graph of tables: the tree of buckets and its messages.

The bucket of a variable is the set of tables to multiply when the variable is eliminated. Summing the variable out of
their product gives a message: a table over the other variables of the bucket, which are called its separator. The
message is added to the bucket of the first variable of the separator in elimination order (Dechter 1999, "Bucket
elimination"). One pass in elimination order gives log Z or the largest log-potential. A second pass in the opposite
order gives the marginals of all variables and factors, as in a junction tree. Drawing the variables one after the
other in the opposite order gives an exact sample.

Only the messages are stored. The product of a bucket is larger, so the second pass computes it again. The second pass
frees each message as soon as it has processed its bucket.
"""

from __future__ import annotations

import heapq
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from herdner._ext import elimination as loops
from herdner.base.arrays import Floats, Int32s
from herdner.graph.graph import ImpossibleGraph
from herdner.inference.elimination_order import EliminationOrder, OutOfTime, ReducedGraph, flat_factors

DISTRIBUTION_COST = 2.0  # time per table cell in the second pass, relative to the first pass
_EARLY_SHARE = 0.05  # fraction of the time limit after which the measured speed predicts the end
# Each call of the compiled loop takes a fraction of a second; Ctrl-C acts between calls.
_SLICE_BLOCKS = 1024  # largest number of blocks of a large bucket in a call
_SLICE_CELLS = 2**22  # approximate number of table cells of small buckets in a call


@dataclass(slots=True, eq=False)
class EliminationClock:
    """Time limit of an elimination. A run stops early if its measured speed shows that it would exceed the limit.

    Attributes:
        seconds: Time limit in seconds, from the creation of the clock.
        n_cells: Number of table cells of all passes, each cell weighted by its relative time.
        began: Reading of `time.perf_counter` at the creation.
        done: Number of cells that were computed.
    """

    seconds: float
    n_cells: float
    began: float = field(init=False, default_factory=perf_counter)
    done: float = field(init=False, default=0.0)

    def advance(self, n_cells: float) -> None:
        """Count computed cells; raise `OutOfTime` if the elimination is too slow. Any thread may call this method.

        Args:
            n_cells: Number of cells.

        Raises:
            OutOfTime: The time limit has passed, or the remaining cells would take more than 1.5 times the remaining
                time.
        """
        self.done += n_cells
        elapsed = perf_counter() - self.began
        remaining = self.seconds - elapsed
        if remaining <= 0:
            raise OutOfTime
        if elapsed > _EARLY_SHARE * self.seconds and elapsed * (self.n_cells / self.done - 1) > 1.5 * remaining:
            raise OutOfTime


class BucketTree:
    """Buckets of an elimination order, one for each variable.

    A bucket has the factors that are multiplied when its variable is eliminated.
    """

    def __init__(
        self, reduced: ReducedGraph, order: EliminationOrder, n_threads: int = 1, clock: EliminationClock | None = None
    ) -> None:
        """Assign the factors of a reduced graph to the buckets of an elimination order.

        Args:
            reduced: The reduced graph.
            order: Order in which its variables are eliminated. The caller has checked that the messages fit into
                memory.
            n_threads: Number of threads for large buckets; results do not depend on it.
            clock: Time limit of all passes; None is unlimited.
        """
        self.reduced, self.n_threads, self.clock = reduced, n_threads, clock
        self.sizes = reduced.sizes
        self.variables: list[int] = order.order.tolist()
        self.loop = loops.CompiledBucketTree(self.sizes, order.order, *flat_factors(reduced.scopes, reduced.tables))
        self.table_of_factor: list[int] = self.loop.table_of_factor.tolist()

    def factor_belief(self, beliefs: loops.Beliefs, factor: int, axes: tuple[int, ...]) -> Floats:
        """Return the joint marginal of the variables at the given axes of a factor of the reduced graph.

        Args:
            beliefs: Result of `distribute` with ``with_tables``, which contains the marginals of the tables.
            factor: Index of the reduced factor, or -1 for an original factor without remaining variables.
            axes: Axes of the reduced factor, one for each axis of the result (see `ReducedGraph.hosts`).

        Returns:
            float64[K1, .., Ka], the marginal of the variables of ``axes``, in their order.
        """
        if factor < 0:
            return np.ones(())
        table, own = self.table_of_factor[factor], self.reduced.scopes[factor]
        scope = self.loop.scope_of_table(table)
        whole = beliefs.table(table).reshape([self.sizes[u] for u in scope])
        kept = [scope.index(own[a]) for a in axes]
        marginal = whole.sum(axis=tuple(a for a in range(whole.ndim) if a not in kept))
        return marginal.transpose(np.argsort(np.argsort(kept)))

    def collect(self, maximise: bool = False) -> Messages:
        """Eliminate all variables in order, and return the messages of all buckets.

        Args:
            maximise: Take maxima in place of sums; the total is then the largest log-potential, not log Z.

        Returns:
            The messages of all buckets.

        Raises:
            ImpossibleGraph: No state has a log-potential above -inf.
            OutOfTime: The passes would exceed the time limit.
        """
        messages = loops.CompiledMessages(self.loop, maximise)
        self.complete(messages, 1.0)
        return Messages(self, messages)

    def complete(self, run: loops.CompiledMessages | loops.Beliefs, cost: float) -> None:
        """Compute the messages or marginals of all buckets in one pass.

        Args:
            run: The messages or marginals before the pass.
            cost: Time per table cell, relative to the first pass.

        Raises:
            ImpossibleGraph: No state has a log-potential above -inf.
            OutOfTime: The passes would exceed the time limit.
        """
        while not run.is_done:
            self._tick(cost * run.advance(_SLICE_CELLS))
            bucket = run.large_bucket()
            if bucket is not None:
                self._run(bucket, cost)
                bucket.close()
            if run.is_impossible:
                raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")

    def _tick(self, n_cells: float) -> None:
        """Add computed cells to the clock, which raises `OutOfTime` after the time limit."""
        if self.clock is not None:
            self.clock.advance(n_cells)

    def _run(self, bucket: loops.MessageBucket | loops.BeliefBucket, cost: float) -> None:
        """Compute the blocks of a large bucket, in threads if the bucket has several slices."""
        length = bucket.n_blocks // bucket.n_slices if bucket.n_slices else _SLICE_BLOCKS
        parts = [(first, min(first + length, bucket.n_blocks)) for first in range(0, bucket.n_blocks, length)]
        per_block = cost * bucket.n_cells / bucket.n_blocks
        stop = threading.Event()

        def run(begin: int, end: int) -> None:
            for first in range(begin, end, _SLICE_BLOCKS):
                if not stop.is_set():
                    last = min(first + _SLICE_BLOCKS, end)
                    bucket.run(first, last)
                    self._tick((last - first) * per_block)

        if self.n_threads == 1 or len(parts) == 1:
            for part in parts:
                run(*part)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            try:
                for future in [pool.submit(run, *part) for part in parts]:
                    future.result()
            finally:  # out of time, or Ctrl-C
                stop.set()


@dataclass(slots=True, eq=False)
class Messages:
    """Messages of one pass over the buckets in elimination order.

    Attributes:
        tree: The buckets.
        loop: The compiled pass.
    """

    tree: BucketTree
    loop: loops.CompiledMessages

    @property
    def total(self) -> float:
        """Log Z, or the largest log-potential if the messages are maxima."""
        return self.tree.reduced.constant + self.loop.total

    def distribute(self, with_tables: bool) -> loops.Beliefs:
        """Compute the marginals by a second pass over the buckets in reverse order, which frees the messages.

        Args:
            with_tables: Also compute the marginals of the tables of the buckets.

        Returns:
            The marginals of all variables and, on request, of the tables of the buckets.

        Raises:
            OutOfTime: The passes would exceed the time limit.
        """
        beliefs = loops.Beliefs(self.loop, with_tables)
        self.tree.complete(beliefs, DISTRIBUTION_COST)
        return beliefs


def best_states(messages: Messages, n_best: int) -> Int32s:
    """Search best-first for the ``n_best`` joint states of largest log-potential; return the best state first.

    The search sets the variables in reverse elimination order. Messages that are maxima give the exact value of the
    best completion of each partial state, so the search expands only partial states that lead to a result.

    Args:
        messages: Messages that are maxima. Messages that are sums are allowed if ``n_best`` is 1; the result is then a
            probable state, not always the best one.
        n_best: Number of states.

    Returns:
        int32[n_best, n], states of the reduced graph; fewer rows if fewer states are possible.
    """
    variables, n = messages.tree.variables, len(messages.tree.variables)
    if n_best == 1:
        return messages.loop.best_state()[None]
    # Loss against the best state, a counter that breaks ties, the number of variables to set, the states set so far.
    queue: list[tuple[float, int, int, tuple[int, ...]]] = [(0.0, 0, n, ())]
    states: list[Int32s] = []
    count = 0
    while queue and len(states) < n_best:
        loss, _, place, prefix = heapq.heappop(queue)
        state = np.zeros(n, np.int32)
        for v, x in zip(reversed(variables[place:]), prefix, strict=True):
            state[v] = x
        # Complete the state greedily; the other states of each variable go to the queue.
        while place:
            place -= 1
            row = messages.loop.log_rows(place, state[None])[0]
            losses = row.max() - row
            first = int(row.argmax())
            for x in np.flatnonzero(np.isfinite(losses)).tolist():
                if x != first:
                    count += 1
                    heapq.heappush(queue, (loss + float(losses[x]), count, place, (*prefix, x)))
            state[variables[place]] = first
            prefix = (*prefix, first)
        states.append(state)
    return np.array(states, np.int32).reshape(len(states), n)


def draw_states(messages: Messages, n_samples: int, rng: np.random.Generator) -> Int32s:
    """Draw independent exact samples from the messages of an elimination of all variables.

    Args:
        messages: Messages that are sums.
        n_samples: Number of samples.
        rng: Source of randomness.

    Returns:
        int32[n_samples, n], states of the reduced graph.
    """
    variables = messages.tree.variables
    states = np.zeros((n_samples, len(variables)), np.int32)
    for place in range(len(variables) - 1, -1, -1):
        rows = messages.loop.log_rows(place, states)
        weights = np.exp(rows - rows.max(axis=1, keepdims=True)).cumsum(axis=1)
        uniforms = rng.random(n_samples) * weights[:, -1]
        drawn = (weights <= uniforms[:, None]).sum(axis=1)
        states[:, variables[place]] = np.minimum(drawn, rows.shape[1] - 1)
    return states
