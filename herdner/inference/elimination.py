"""Variable elimination on any graph of tables: the tree of buckets and its messages.

The bucket of a variable is the set of tables to multiply when the variable is eliminated. Summing the variable out of
their product gives a message: a table over the other variables of the bucket, which are called its separator. The
message is added to the bucket of the first variable of the separator in elimination order (Dechter 1999, "Bucket
elimination"). One pass in elimination order gives log Z or the largest log-potential. A second pass in the opposite
order gives the marginals of all variables and factors, as in a junction tree. Drawing the variables one after the
other in the opposite order gives an exact sample.

Only the messages are stored. The product of a bucket is larger, so the second pass computes it again.
"""

from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from herdner._ext import elimination as loops
from herdner.base.arrays import Floats, Int32s
from herdner.graph.graph import ImpossibleGraph
from herdner.inference.elimination_order import EliminationOrder, ReducedGraph

LINEAR_RANGE = 300.0  # tables whose log-potentials span fewer nats are stored as potentials, others as logarithms
BUCKET_RANGE = 600.0  # potentials of tables that together span at most this many nats multiply without underflow
COMBINED_PART = 32  # a table merged from several factors has at most 1/32 as many cells as its bucket has rows
COMBINED_ROWS = 64  # or at most this many cells, if that is more
DISTRIBUTION_COST = 2.0  # time per table cell in the second pass, relative to the first pass
_EARLY_SHARE = 0.05  # fraction of the time limit after which the measured speed predicts the end
_SLICE_BLOCKS = 1024  # blocks per call of the C loop, which takes a fraction of a second; Ctrl-C acts between calls


class OutOfTime(Exception):
    """Error: an elimination was stopped, because it would exceed its time limit."""


@dataclass(slots=True, eq=False)
class EliminationClock:
    """Time limit of an elimination. The measured speed predicts the end, so that slow runs stop early.

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
        """Count computed cells, and stop an elimination that is too slow; any thread may call this method.

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


@dataclass(slots=True, eq=False)
class BucketTable:
    """Table of potentials, or of their logarithms, scaled so that the largest potential is 1.

    Attributes:
        values: float64[cells], potentials with maximum 1 or logarithms with maximum 0, as a flat array.
        in_logs: True if the values are logarithms.
        span: Difference between the logarithms of the largest and the smallest positive potential, in nats.
    """

    values: Floats
    in_logs: bool
    span: float

    def as_logs(self) -> Floats:
        """Return the logarithms of the table's potentials, float64[cells]."""
        return self.values if self.in_logs else _log(self.values)

    @classmethod
    def scaled(cls, values: Floats, in_logs: bool) -> tuple[BucketTable, float]:
        """Scale potentials so that the largest is 1; exponentiate log-potentials if they differ little.

        Args:
            values: float64[cells], potentials or their logarithms.
            in_logs: True if the values are logarithms.

        Returns:
            The table, and the logarithm of the largest potential before scaling.

        Raises:
            ImpossibleGraph: All entries are zero.
        """
        top = float(values.max())
        if top == (-math.inf if in_logs else 0.0):
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")
        if in_logs:
            values = values - top
            span = -float(values.min(where=np.isfinite(values), initial=0.0))
            if span < LINEAR_RANGE:
                return cls(np.exp(values), False, span), top
            return cls(values, True, span), top
        least = float(values.min(where=values > 0, initial=top))
        return cls(values / top, False, math.log(top) - math.log(least)), math.log(top)


@dataclass(slots=True, eq=False)
class BucketNode:
    """Elimination step of one variable: the variable, its separator, and the tables to multiply.

    Attributes:
        variable: The variable that is eliminated.
        separator: The other variables of the tables, sorted by elimination order; the last one is eliminated first.
        sources: Source of each table: an index into ``BucketTree.factors`` (>= 0), or -1 - b for the message of bucket
            b.
        strides: int64[tables, separator], the distance between consecutive states of each separator variable in each
            table; 0 if the table does not contain the variable.
        n_states: Number of states of the variable.
        widths: int32[separator], number of states of each variable of the separator.
        n_rows: Number of joint states of the separator.
    """

    variable: int
    separator: tuple[int, ...]
    sources: list[int]
    strides: NDArray[np.int64]
    n_states: int
    widths: Int32s
    n_rows: int


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
        self.sizes = np.array(reduced.sizes, np.int32)
        self.position: list[int] = np.argsort(
            order.order
        ).tolist()  # lists, because arrays are slow to read number by number
        self.n_states: list[int] = self.sizes.tolist()
        self.factors: list[BucketTable] = []
        # For each factor of the reduced graph: index of its table in `factors`, and the factor's axes in this table.
        self.place_of_factor: list[tuple[int, tuple[int, ...]]] = []
        self.scope_of_table: list[tuple[int, ...]] = []
        self.nodes: list[BucketNode] = []
        self.offset = reduced.constant
        self._build(order.order)

    def _build(self, order: Int32s) -> None:
        """Assign each factor to the bucket of its first variable in the order; compute the strides of all buckets."""
        position, sizes = self.position, self.n_states
        earliest: list[list[int]] = [[] for _ in range(len(order))]
        for number, scope in enumerate(self.reduced.scopes):
            earliest[min(position[v] for v in scope)].append(number)
        waiting: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(len(order))]
        self.place_of_factor = [(0, ())] * len(self.reduced.scopes)
        variables: list[int] = order.tolist()
        for place, v in enumerate(variables):
            inputs = waiting[place]
            others = {u for _, scope in inputs for u in scope} | {
                u for f in earliest[place] for u in self.reduced.scopes[f]
            }
            others.discard(v)
            n_rows = math.prod(sizes[u] for u in others)
            inputs += self._combined_factors(earliest[place], max(n_rows // COMBINED_PART, COMBINED_ROWS))
            separator = tuple(sorted(others, key=position.__getitem__, reverse=True))
            strides = np.zeros((len(inputs), len(separator)), np.int64)
            for row, (_, scope) in enumerate(inputs):
                step = 1
                for u in reversed(scope):
                    if u != v:
                        strides[row, separator.index(u)] = step
                    step *= sizes[u]
            sources, widths = [source for source, _ in inputs], np.array([sizes[u] for u in separator], np.int32)
            self.nodes.append(BucketNode(v, separator, sources, strides, sizes[v], widths, n_rows))
            if separator:
                waiting[position[separator[-1]]].append((-1 - place, separator))

    def _combined_factors(self, numbers: list[int], most_rows: int) -> list[tuple[int, tuple[int, ...]]]:
        """Merge the factors of a bucket into few tables of at most ``most_rows`` rows.

        Returns:
            Index in ``factors`` and scope of each new table; the scope is sorted like the separator of a bucket.
        """
        position, sizes = self.position, self.n_states
        groups: list[tuple[set[int], list[int]]] = []
        for number in sorted(numbers, key=lambda f: sorted(-position[v] for v in self.reduced.scopes[f])):
            scope = set(self.reduced.scopes[number])
            for joined, members in groups:
                if math.prod(sizes[u] for u in joined | scope) <= most_rows:
                    joined |= scope
                    members.append(number)
                    break
            else:
                groups.append((scope, [number]))
        tables: list[tuple[int, tuple[int, ...]]] = []
        for joined, members in groups:
            scope = tuple(sorted(joined, key=position.__getitem__, reverse=True))
            total = np.zeros([sizes[u] for u in scope])
            for number in members:
                own = self.reduced.scopes[number]
                axes = tuple(scope.index(u) for u in own)
                table = self.reduced.tables[number].transpose(np.argsort(axes))
                total += table.reshape([total.shape[a] if a in axes else 1 for a in range(len(scope))])
                self.place_of_factor[number] = (len(self.factors), axes)
            scaled, offset = BucketTable.scaled(total.ravel(), True)
            self.offset += offset
            tables.append((len(self.factors), scope))
            self.scope_of_table.append(scope)
            self.factors.append(scaled)
        return tables

    def factor_belief(self, tables: Sequence[Floats | None], factor: int, axes: tuple[int, ...]) -> Floats:
        """Return the joint marginal of the variables at the given axes of a factor of the reduced graph.

        Args:
            tables: Beliefs of the tables in ``factors``, as `Messages.distribute` returns them.
            factor: Index of the reduced factor, or -1 for an original factor without remaining variables.
            axes: Axes of the reduced factor, one for each axis of the result (see `ReducedGraph.hosts`).

        Returns:
            float64[K1, .., Ka], the marginal of the variables of ``axes``, in their order.
        """
        if factor < 0:
            return np.ones(())
        table, places = self.place_of_factor[factor]
        belief = tables[table]
        assert belief is not None
        whole = belief.reshape([self.sizes[u] for u in self.scope_of_table[table]])
        kept = [places[a] for a in axes]
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
        messages = Messages(self, maximise)
        for node in self.nodes:
            messages.collect(node)
        return messages


@dataclass(slots=True, eq=False)
class Messages:
    """Messages of one pass over the buckets in elimination order.

    Attributes:
        tree: The buckets.
        maximised: True if the messages are maxima, false if they are sums.
        tables: Message of each bucket, scaled to a maximum of 1.
        offsets: Logarithm of the maximum of each message before scaling.
        total: Log Z, or the largest log-potential if ``maximised``.
    """

    tree: BucketTree
    maximised: bool
    tables: list[BucketTable] = field(init=False)
    offsets: list[float] = field(init=False)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        """Create the empty lists for the messages."""
        self.tables, self.offsets, self.total = [], [], self.tree.offset

    def collect(self, node: BucketNode) -> None:
        """Compute the message of the next bucket in elimination order, and append it to the messages.

        Args:
            node: The next bucket.

        Raises:
            ImpossibleGraph: All potentials of the message are 0.
        """
        inputs = self.inputs(node)
        in_logs = _need_logs(inputs)
        message = np.empty(node.n_rows)
        bucket = _bucket(inputs, in_logs, node)
        pieces = _pieces(bucket.n_blocks, _SLICE_BLOCKS)
        per_block = node.n_rows * node.n_states / bucket.n_blocks

        def one_piece(piece: tuple[int, int]) -> None:
            bucket.collect(in_logs, self.maximised, message, *piece)
            self._advance((piece[1] - piece[0]) * per_block)

        self._run(one_piece, pieces)
        table, offset = BucketTable.scaled(message, in_logs)
        self.tables.append(table)
        self.offsets.append(offset)
        self.total += offset

    def inputs(self, node: BucketNode) -> list[BucketTable]:
        """Return the tables that a bucket multiplies: its factors, and the messages from earlier buckets.

        Args:
            node: The bucket; the messages of earlier buckets must exist.
        """
        return [self.tree.factors[source] if source >= 0 else self.tables[-1 - source] for source in node.sources]

    def _advance(self, n_cells: float) -> None:
        """Add computed cells to the clock, which raises `OutOfTime` after the time limit."""
        if self.tree.clock is not None:
            self.tree.clock.advance(n_cells)

    def _run(self, work: Callable[[tuple[int, int]], None], pieces: list[tuple[int, int]]) -> None:
        """Call ``work`` on each range of blocks in ``pieces``, in threads if there is more than one range."""
        if self.tree.n_threads == 1 or len(pieces) == 1:
            for piece in pieces:
                work(piece)
            return
        with ThreadPoolExecutor(self.tree.n_threads) as pool:
            futures = [pool.submit(work, piece) for piece in pieces]
            try:
                for future in futures:
                    future.result()
            except BaseException:  # out of time, or Ctrl-C
                pool.shutdown(cancel_futures=True)
                raise

    def distribute(self, with_factors: bool) -> tuple[list[Floats], list[Floats | None]]:
        """Compute the marginals by a second pass over the buckets, in reverse elimination order.

        Args:
            with_factors: Also compute the marginals of the tables in ``BucketTree.factors``.

        Returns:
            The marginal float64[K] of each variable of the reduced graph; and the marginal of each table in
            ``BucketTree.factors`` as a flat array, or a list of None without ``with_factors``.

        Raises:
            OutOfTime: The passes would exceed the time limit.
        """
        tree = self.tree
        marginals: list[Floats] = [np.empty(0)] * len(tree.nodes)
        separators: dict[int, Floats] = {}
        factors: list[Floats | None] = [None] * len(tree.factors)
        for place in range(len(tree.nodes) - 1, -1, -1):
            node = tree.nodes[place]
            inputs = self.inputs(node)
            in_logs = _need_logs(inputs)
            beliefs: list[Floats | None] = []
            for source, table in zip(node.sources, inputs, strict=True):
                wanted = with_factors if source >= 0 else bool(tree.nodes[-1 - source].separator)
                beliefs.append(np.zeros(len(table.values)) if wanted else None)
            probability = separators.pop(place, np.ones(1))
            marginals[node.variable] = self._distribute(node, inputs, in_logs, beliefs, place, probability)
            for source, belief in zip(node.sources, beliefs, strict=True):
                if source >= 0:
                    factors[source] = belief
                elif belief is not None:
                    separators[-1 - source] = belief
        return marginals, factors

    def _distribute(
        self, node: BucketNode, inputs: list[BucketTable], in_logs: bool, beliefs: list[Floats | None], place: int,
        probability: Floats,
    ) -> Floats:  # fmt: skip
        """Add the marginals of a bucket's tables to ``beliefs``; return the marginal of the bucket's variable."""
        bucket = _bucket(inputs, in_logs, node, beliefs)
        own = self.tables[place]
        # The unscaled message: each row of the bucket's product, divided by its message entry, adds up to 1.
        message = own.as_logs() + self.offsets[place] if in_logs else own.values * math.exp(self.offsets[place])
        n_slices = bucket.n_slices
        per_slice = bucket.n_blocks // n_slices
        sums = np.zeros((n_slices, node.n_states))
        per_block = DISTRIBUTION_COST * node.n_rows * node.n_states / bucket.n_blocks

        def one_slice(piece: tuple[int, int]) -> None:
            bucket.distribute(in_logs, message, probability, sums[piece[0] // per_slice], *piece)
            self._advance((piece[1] - piece[0]) * per_block)

        pieces = [
            (number * per_slice + first, number * per_slice + last)
            for number in range(n_slices)
            for first, last in _pieces(per_slice, _SLICE_BLOCKS)
        ]
        if n_slices == 1 or len(pieces) > n_slices:  # pieces of one slice write the same cells
            for piece in pieces:
                one_slice(piece)
        else:
            self._run(one_slice, pieces)
        return sums.sum(axis=0)

    def log_rows(self, place: int, states: Int32s) -> Floats:
        """Return the log-potentials of the states of a bucket's variable, given the states of its separator.

        Each row has an unknown additive constant.

        Args:
            place: Index of the bucket in elimination order.
            states: int32[N, n], joint states of the reduced graph; only the separator's states are read.

        Returns:
            float64[N, K].
        """
        node = self.tree.nodes[place]
        total = np.zeros((len(states), node.n_states))
        at = states[:, list(node.separator)].astype(np.int64)
        for table, strides in zip(self.inputs(node), node.strides, strict=True):
            cells = (at @ strides)[:, None] + np.arange(total.shape[1])
            total += table.as_logs()[cells] if table.in_logs else _log(table.values[cells])
        return total


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
    tree, n = messages.tree, len(messages.tree.nodes)
    if n_best == 1:
        return _best_state(messages)[None]
    # Loss against the best state, a counter that breaks ties, the number of variables to set, the states set so far.
    queue: list[tuple[float, int, int, tuple[int, ...]]] = [(0.0, 0, n, ())]
    states: list[Int32s] = []
    count = 0
    while queue and len(states) < n_best:
        loss, _, place, prefix = heapq.heappop(queue)
        state = np.zeros(n, np.int32)
        for node, x in zip(reversed(tree.nodes[place:]), prefix, strict=True):
            state[node.variable] = x
        # Complete the state greedily; the other states of each variable go to the queue.
        while place:
            place -= 1
            row = messages.log_rows(place, state[None])[0]
            losses = row.max() - row
            first = int(row.argmax())
            for x in np.flatnonzero(np.isfinite(losses)).tolist():
                if x != first:
                    count += 1
                    heapq.heappush(queue, (loss + float(losses[x]), count, place, (*prefix, x)))
            state[tree.nodes[place].variable] = first
            prefix = (*prefix, first)
        states.append(state)
    return np.array(states, np.int32).reshape(len(states), n)


def _best_state(messages: Messages) -> Int32s:
    """Set the variables in reverse elimination order, each to its best state; return the joint state int32[n]."""
    tree = messages.tree
    state = [0] * len(tree.nodes)
    for node in reversed(tree.nodes):
        inputs = messages.inputs(node)
        in_logs = _need_logs(inputs)
        at = [state[u] for u in node.separator]
        row: Floats | None = None
        for table, strides in zip(inputs, node.strides.tolist(), strict=True):
            first = sum(map(operator.mul, strides, at))
            values = table.values[first : first + node.n_states]
            if in_logs and not table.in_logs:
                values = _log(values)
            row = values if row is None else row + values if in_logs else row * values
        state[node.variable] = 0 if row is None else int(row.argmax())
    return np.array(state, np.int32)


def draw_states(messages: Messages, n_samples: int, rng: np.random.Generator) -> Int32s:
    """Draw independent exact samples from the messages of an elimination of all variables.

    Args:
        messages: Messages that are sums.
        n_samples: Number of samples.
        rng: Source of randomness.

    Returns:
        int32[n_samples, n], states of the reduced graph.
    """
    tree = messages.tree
    states = np.zeros((n_samples, len(tree.nodes)), np.int32)
    for place in range(len(tree.nodes) - 1, -1, -1):
        rows = messages.log_rows(place, states)
        weights = np.exp(rows - rows.max(axis=1, keepdims=True)).cumsum(axis=1)
        uniforms = rng.random(n_samples) * weights[:, -1]
        drawn = (weights <= uniforms[:, None]).sum(axis=1)
        states[:, tree.nodes[place].variable] = np.minimum(drawn, rows.shape[1] - 1)
    return states


def _need_logs(inputs: Sequence[BucketTable]) -> bool:
    """Return True if the product of the tables could underflow without logarithms."""
    return any(table.in_logs for table in inputs) or sum(table.span for table in inputs) > BUCKET_RANGE


def _bucket(
    inputs: Sequence[BucketTable], in_logs: bool, node: BucketNode, beliefs: list[Floats | None] | None = None
) -> loops.Bucket:
    """Build the bucket object that the compiled loops read; a bucket without tables gets a table of ones."""
    tables = [table.as_logs() if in_logs else table.values for table in inputs]
    if not tables:
        tables, strides = [np.full(node.n_states, 0.0 if in_logs else 1.0)], np.zeros((1, 0), np.int64)
        return loops.Bucket(tables, strides, node.widths, node.n_states, None)
    return loops.Bucket(tables, node.strides, node.widths, node.n_states, beliefs)


def _pieces(n: int, length: int) -> list[tuple[int, int]]:
    """Divide the range from 0 to ``n`` into ranges (first, end) of at most ``length`` elements."""
    return [(first, min(first + length, n)) for first in range(0, n, length)]


def _log(values: Floats) -> Floats:
    """Return the natural logarithms of ``values``, with -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)
