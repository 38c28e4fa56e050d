"""Variable elimination on any graph of tables: reduction, elimination order, and the tree of buckets.

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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from herdner._ext import elimination as loops
from herdner.base.arrays import Floats, Int32s
from herdner.base.memory import check_memory
from herdner.graph.factors import TableFactors
from herdner.graph.graph import ImpossibleGraph

LINEAR_RANGE = 300.0  # a table whose entries span fewer nats is stored as numbers, other tables as logarithms
BUCKET_RANGE = 600.0  # tables that together span at most this many nats are multiplied as numbers without underflow
COMBINED_PART = 32  # a table of several factors has at most 1/32 of the rows of its bucket
COMBINED_ROWS = 64  # or at most 64 rows, where this is more
LARGEST_LOG2_CELLS = 60.0  # log2 of the largest number of cells of a bucket in an order; no machine can store more
_SLICE_BLOCKS = 4096  # blocks per call of the C loop, which takes a fraction of a second; Ctrl-C acts between calls


@dataclass(frozen=True, slots=True, eq=False)
class ReducedGraph:
    """Graph after the removal of impossible states and of variables with a single possible state.

    Attributes:
        states: int64[k] for each variable of the original graph, its possible states.
        variables: int64[n], the original variables that remain.
        scopes: Variables of each factor of the reduced graph, as indices into ``variables``, in ascending order.
        tables: Log-potentials of each factor of the reduced graph.
        constant: Sum of the log-potentials of all original factors without remaining variables.
        hosts: Host of each original factor (in the order of groups, then of factors in a group): the index of the
            reduced factor that contains it, and the axes of the reduced factor that correspond to the remaining
            variables of the original factor, in the order of its scope. The index is -1 if no variable remains.
    """

    states: list[NDArray[np.int64]]
    variables: NDArray[np.int64]
    scopes: list[tuple[int, ...]]
    tables: list[Floats]
    constant: float
    hosts: list[tuple[int, tuple[int, ...]]]


def reduce_graph(sizes: Int32s, groups: Sequence[TableFactors]) -> ReducedGraph:
    """Remove impossible states and variables with a single possible state, and merge factors into larger factors.

    A state is impossible if some factor has only entries of -inf at that state, among the possible states of its other
    variables (generalised arc consistency).

    Args:
        sizes: int32[V], number of states of each variable.
        groups: Groups of factors.

    Returns:
        The reduced graph. Its joint states are the joint states of the original graph that consist of possible states.

    Raises:
        ImpossibleGraph: A variable has no possible state.
    """
    scopes, tables = _single_factors(groups)
    states = _possible_states(sizes, scopes, tables)
    remaining = np.array([len(possible) > 1 for possible in states], bool)
    variables = np.flatnonzero(remaining)
    index = np.cumsum(remaining) - 1
    constant = 0.0
    remaining_scopes: list[tuple[int, ...]] = []
    merged: dict[tuple[int, ...], Floats] = {}
    for scope, table in zip(scopes, tables, strict=True):
        table = table[np.ix_(*(states[v] for v in scope))] if scope else table
        table = table.reshape([n for n in table.shape if n > 1])
        rest = tuple(int(index[v]) for v in scope if remaining[v])
        key, table = tuple(sorted(rest)), table.transpose(np.argsort(rest))
        remaining_scopes.append(rest)
        if not key:
            constant += float(table)
        else:
            merged[key] = merged[key] + table if key in merged else table
    absorbing = _absorb(merged, len(variables))
    factor_of = {scope: factor for factor, scope in enumerate(merged)}
    hosts: list[tuple[int, tuple[int, ...]]] = []
    for rest in remaining_scopes:
        key = tuple(sorted(rest))
        host = absorbing.get(key, key)
        hosts.append((factor_of[host], tuple(host.index(v) for v in rest)) if rest else (-1, ()))
    return ReducedGraph(states, variables, list(merged), list(merged.values()), constant, hosts)


def _single_factors(groups: Sequence[TableFactors]) -> tuple[list[tuple[int, ...]], list[Floats]]:
    """Return the scope and the table of log-potentials of every factor of all groups."""
    scopes: list[tuple[int, ...]] = []
    tables: list[Floats] = []
    for group in groups:
        for scope, table, scale in zip(
            group.scopes.tolist(), group.table_of_factor.tolist(), group.scale.tolist(), strict=True
        ):
            scopes.append(tuple(scope))
            tables.append(group.tables[table] if scale == 1 else group.tables[table] * scale)
    return scopes, tables


def _possible_states(sizes: Int32s, scopes: list[tuple[int, ...]], tables: list[Floats]) -> list[NDArray[np.int64]]:
    """Return the possible states of each variable, by generalised arc consistency."""
    states: list[NDArray[np.int64]] = [np.arange(size) for size in sizes.tolist()]
    restricting = {f: np.isfinite(table) for f, table in enumerate(tables) if not np.isfinite(table).all()}
    factors_of: dict[int, list[int]] = {}
    for f in restricting:
        for v in scopes[f]:
            factors_of.setdefault(v, []).append(f)
    waiting = dict.fromkeys(restricting)
    while waiting:
        f = next(iter(waiting))
        del waiting[f]
        scope = scopes[f]
        possible = restricting[f][np.ix_(*(states[v] for v in scope))] if scope else restricting[f]
        if not possible.any():
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one")
        for axis, v in enumerate(scope):
            supported = possible.any(axis=tuple(a for a in range(len(scope)) if a != axis))
            if not supported.all():
                states[v] = states[v][supported]
                possible = np.compress(supported, possible, axis=axis)
                waiting |= dict.fromkeys(other for other in factors_of[v] if other != f)
    return states


def _absorb(merged: dict[tuple[int, ...], Floats], n_variables: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Add each table to a table with a larger scope, if one exists; return the larger scope for each removed scope."""
    containing: list[list[tuple[int, ...]]] = [[] for _ in range(n_variables)]
    hosts: dict[tuple[int, ...], tuple[int, ...]] = {}
    for scope in sorted(merged, key=lambda key: (-len(key), key)):
        members = set(scope)
        candidates = min((containing[v] for v in scope), key=len)
        host = next((other for other in candidates if members <= set(other)), None)
        if host is None:
            for v in scope:
                containing[v].append(scope)
            continue
        table = merged.pop(scope)
        shape = [merged[host].shape[axis] if v in members else 1 for axis, v in enumerate(host)]
        merged[host] = merged[host] + table.reshape(shape)
        hosts[scope] = host
    return hosts


@dataclass(frozen=True, slots=True, eq=False)
class EliminationOrder:
    """Order in which variables are eliminated, and the cost of this order.

    Attributes:
        order: int32[n], the variables in the order of their elimination.
        log2_cells: log2 of the number of table cells of all buckets together; infinity if no order was found in which
            every bucket has at most 2^60 cells.
        width: Number of variables of the largest bucket minus 1, an upper bound on the treewidth.
        message_cells: Number of table cells of all messages together; 0 if ``log2_cells`` is infinite.
    """

    order: Int32s
    log2_cells: float
    width: int
    message_cells: int

    @classmethod
    def of(cls, order: Int32s, is_small: bool, sizes: Int32s, scopes: Sequence[tuple[int, ...]]) -> EliminationOrder:
        """Compute the cost of an elimination order, and return the order with its cost.

        Args:
            order: int32[n], the variables in the order of their elimination.
            is_small: False if a bucket of the order has more than 2^60 cells.
            sizes: int32[n], number of states of each variable.
            scopes: Variables of each factor.

        Returns:
            The order with its cost.
        """
        if not is_small:
            return cls(order, math.inf, len(order), 0)
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        buckets: list[set[int]] = [set() for _ in range(len(order))]
        for scope in scopes:
            buckets[int(min(position[v] for v in scope))].update(scope)
        width, cells, message_cells = 0, 1, 0
        for bucket, v in zip(buckets, order.tolist(), strict=True):
            separator = bucket - {v}
            width = max(width, len(separator))
            rows = math.prod(int(sizes[u]) for u in separator)
            message_cells += rows
            cells += rows * int(sizes[v])
            if separator:
                buckets[int(min(position[u] for u in separator))].update(separator)
        return cls(order, math.log2(cells), width, message_cells)


def find_elimination_order(sizes: Int32s, scopes: Sequence[tuple[int, ...]], seed: int = 0) -> EliminationOrder:
    """Search for a cheap elimination order by three greedy rules with random restarts.

    The rules eliminate next the variable with the least fill, the least weighted fill or the smallest bucket. The
    number of restarts grows with the cost of the best order, so the search takes a small part of the time of
    inference. The result does not depend on the speed of the machine.

    Args:
        sizes: int32[n], number of states of each variable.
        scopes: Variables of each factor.
        seed: Seed of the random restarts.

    Returns:
        The cheapest order, with its cost.

    Raises:
        NotEnoughMemory: The graph has too many variables for the search.
    """
    leaves, pairs = _eliminate_leaves(len(sizes), scopes)
    core = np.setdiff1d(np.arange(len(sizes)), leaves)
    index = np.full(len(sizes), -1, np.int32)
    index[core] = np.arange(len(core))
    n = len(core)
    check_memory(n * n / 8, f"an elimination order of {n} variables", "use sum-product or a sampler")
    edges = index[np.array(sorted(pairs), np.int64).reshape(-1, 2)]
    starts = np.searchsorted(edges[:, 0], np.arange(n + 1)).astype(np.int64)
    neighbours, log_sizes = np.ascontiguousarray(edges[:, 1]), np.log2(sizes[core].astype(np.float64))
    best, least, work, attempt = np.arange(n, dtype=np.int32), 0.0 if n == 0 else math.inf, 0, 0
    # Reading one 64-bit word in the search takes about as much time as one cell of a bucket takes in inference.
    while n and (attempt < 3 or (attempt < 500 and work < 2.0 ** min(least, 30.0) / 4)):
        order = np.empty(n, np.int32)
        spread = 0.0 if attempt < 3 else (0.05, 0.2, 0.5)[attempt // 3 % 3]
        limit = min(LARGEST_LOG2_CELLS, least)
        cells, words = loops.find_order(
            starts, neighbours, log_sizes, attempt % 3, 0 if attempt < 3 else seed + attempt, limit, spread, order
        )
        work += words
        attempt += 1
        if cells < least:
            best, least = order, cells
    best = np.concatenate([np.array(leaves, np.int32), core[best].astype(np.int32)])
    return EliminationOrder.of(best, math.isfinite(least), sizes, scopes)


def _eliminate_leaves(n: int, scopes: Sequence[tuple[int, ...]]) -> tuple[list[int], set[tuple[int, int]]]:
    """Eliminate variables with at most one neighbour until none is left.

    This is always optimal.

    Returns:
        The eliminated variables in order, and the pairs of neighbours among the others, each pair in both directions.
    """
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(scope)
    for v in range(n):
        neighbours[v].discard(v)
    leaves: list[int] = []
    waiting = [v for v in range(n) if len(neighbours[v]) <= 1]
    while waiting:
        v = waiting.pop()
        leaves.append(v)
        for u in neighbours[v]:
            neighbours[u].discard(v)
            if len(neighbours[u]) == 1:
                waiting.append(u)
        neighbours[v] = set()
    pairs = {(v, u) for v in range(n) for u in neighbours[v]}
    return leaves, pairs


@dataclass(slots=True, eq=False)
class BucketTable:
    """Table of potentials or of their logarithms, scaled to a largest potential of 1.

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
        """Scale potentials to a maximum of 1; convert logarithms of small range to potentials.

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
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one")
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
    """

    variable: int
    separator: tuple[int, ...]
    sources: list[int]
    strides: NDArray[np.int64]


class BucketTree:
    """Buckets of an elimination order, one for each variable.

    A bucket has the factors that are multiplied when its variable is eliminated.
    """

    def __init__(self, reduced: ReducedGraph, order: EliminationOrder, n_threads: int = 1) -> None:
        """Assign the factors of a reduced graph to the buckets of an elimination order.

        Args:
            reduced: The reduced graph.
            order: Order in which its variables are eliminated. The caller has checked that the messages fit into
                memory.
            n_threads: Number of threads for large buckets; results do not depend on it.
        """
        self.reduced, self.n_threads = reduced, n_threads
        self.sizes = np.array([len(reduced.states[int(v)]) for v in reduced.variables], np.int32)
        self.position = np.empty(len(self.sizes), np.int64)
        self.position[order.order] = np.arange(len(self.sizes))
        self.factors: list[BucketTable] = []
        # For each factor of the reduced graph: index of its table in `factors`, and the factor's axes in this table.
        self.place_of_factor: list[tuple[int, tuple[int, ...]]] = []
        self.scope_of_table: list[tuple[int, ...]] = []
        self.nodes: list[BucketNode] = []
        self.offset = reduced.constant
        self._build(order.order)

    def _build(self, order: Int32s) -> None:
        """Assign each factor to the bucket of its first variable in the order; compute the strides of all buckets."""
        earliest: list[list[int]] = [[] for _ in range(len(order))]
        for number, scope in enumerate(self.reduced.scopes):
            earliest[int(min(self.position[v] for v in scope))].append(number)
        waiting: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(len(order))]
        self.place_of_factor = [(0, ())] * len(self.reduced.scopes)
        for place, v in enumerate(order.tolist()):
            inputs = waiting[place]
            others = {u for _, scope in inputs for u in scope} | {
                u for f in earliest[place] for u in self.reduced.scopes[f]
            }
            others.discard(v)
            n_rows = math.prod(int(self.sizes[u]) for u in others)
            inputs += self._combined_factors(earliest[place], max(n_rows // COMBINED_PART, COMBINED_ROWS))
            separator = tuple(sorted(others, key=lambda u: -self.position[u]))
            strides = np.zeros((len(inputs), len(separator)), np.int64)
            for row, (_, scope) in enumerate(inputs):
                step = 1
                for u in reversed(scope):
                    if u != v:
                        strides[row, separator.index(u)] = step
                    step *= int(self.sizes[u])
            self.nodes.append(BucketNode(v, separator, [source for source, _ in inputs], strides))
            if separator:
                waiting[int(self.position[separator[-1]])].append((-1 - place, separator))

    def _combined_factors(self, numbers: list[int], most_rows: int) -> list[tuple[int, tuple[int, ...]]]:
        """Merge the factors of a bucket into few tables; each merged table has at most ``most_rows`` cells.

        Returns:
            Index in ``factors`` and scope of each new table; the scope is sorted like the separator of a bucket.
        """
        groups: list[tuple[set[int], list[int]]] = []
        for number in sorted(numbers, key=lambda f: sorted(-self.position[v] for v in self.reduced.scopes[f])):
            scope = set(self.reduced.scopes[number])
            for joined, members in groups:
                if math.prod(int(self.sizes[u]) for u in joined | scope) <= most_rows:
                    joined |= scope
                    members.append(number)
                    break
            else:
                groups.append((scope, [number]))
        tables: list[tuple[int, tuple[int, ...]]] = []
        for joined, members in groups:
            scope = tuple(sorted(joined, key=lambda u: -self.position[u]))
            total = np.zeros([self.sizes[u] for u in scope])
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
        """Return the joint marginal of some of the variables of a factor of the reduced graph.

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
            maximise: Take maxima in place of sums, so that the total is the largest log-potential in place of log Z.

        Returns:
            The messages of all buckets.

        Raises:
            ImpossibleGraph: No state has a log-potential above -inf.
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
        sizes = self.tree.sizes
        inputs = self.inputs(node)
        in_logs = _need_logs(inputs)
        message = np.empty(math.prod(int(sizes[u]) for u in node.separator))
        bucket = _bucket(inputs, in_logs, node, sizes)
        pieces = _pieces(bucket.n_blocks, _SLICE_BLOCKS)
        self._run(lambda piece: bucket.collect(in_logs, self.maximised, message, *piece), pieces)
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

    def _run(self, work: Callable[[tuple[int, int]], None], pieces: list[tuple[int, int]]) -> None:
        """Call ``work`` on each range of blocks in ``pieces``, in threads if there is more than one range."""
        if self.tree.n_threads == 1 or len(pieces) == 1:
            for piece in pieces:
                work(piece)
            return
        with ThreadPoolExecutor(self.tree.n_threads) as pool:
            for future in [pool.submit(work, piece) for piece in pieces]:
                future.result()

    def distribute(self, with_factors: bool) -> tuple[list[Floats], list[Floats | None]]:
        """Compute the marginals by a second pass over the buckets, in reverse elimination order.

        Args:
            with_factors: Compute the marginals of the tables of factors too.

        Returns:
            float64[K] for each variable of the reduced graph; and the marginal of each table in ``BucketTree.factors``
            as a flat array, or None for each without ``with_factors``.
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
        sizes = self.tree.sizes
        bucket = _bucket(inputs, in_logs, node, sizes, beliefs)
        own = self.tables[place]
        # The message before scaling: divided by it, each row of the bucket's product adds up to 1.
        message = own.as_logs() + self.offsets[place] if in_logs else own.values * math.exp(self.offsets[place])
        n_slices = bucket.n_slices
        per_slice = bucket.n_blocks // n_slices
        sums = np.zeros((n_slices, int(sizes[node.variable])))

        def one_slice(piece: tuple[int, int]) -> None:
            bucket.distribute(in_logs, message, probability, sums[piece[0] // per_slice], *piece)

        pieces = [
            (number * per_slice + first, number * per_slice + last)
            for number in range(n_slices)
            for first, last in _pieces(per_slice, _SLICE_BLOCKS)
        ]
        if n_slices == 1 or len(pieces) > n_slices:  # pieces of one slice add to the same cells: no threads
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
        node, sizes = self.tree.nodes[place], self.tree.sizes
        total = np.zeros((len(states), int(sizes[node.variable])))
        at = states[:, list(node.separator)].astype(np.int64)
        for table, strides in zip(self.inputs(node), node.strides, strict=True):
            cells = (at @ strides)[:, None] + np.arange(total.shape[1])
            total += table.as_logs()[cells] if table.in_logs else _log(table.values[cells])
        return total


def best_states(messages: Messages, n_best: int) -> Int32s:
    """Search best-first for the ``n_best`` joint states of largest log-potential; return the best state first.

    The search sets the variables in the opposite order of elimination. Messages that are maxima give the exact value of
    the best completion of each partial state, so the search expands only partial states of results.

    Args:
        messages: Messages that are maxima. Messages that are sums are allowed if ``n_best`` is 1; the result is then a
            probable state, not always the best one.
        n_best: Number of states.

    Returns:
        int32[n_best, n], states of the reduced graph; fewer rows if fewer states are possible.
    """
    tree, n = messages.tree, len(messages.tree.nodes)
    # Loss against the best state, a counter that breaks ties, the number of variables to set, the states set so far.
    queue: list[tuple[float, int, int, tuple[int, ...]]] = [(0.0, 0, n, ())]
    states: list[Int32s] = []
    count = 0
    while queue and len(states) < n_best:
        loss, _, place, prefix = heapq.heappop(queue)
        state = np.zeros(n, np.int32)
        for node, x in zip(reversed(tree.nodes[place:]), prefix, strict=True):
            state[node.variable] = x
        # Complete the state at once; the other states of each variable go to the queue.
        while place:
            place -= 1
            row = messages.log_rows(place, state[None])[0]
            losses = row.max() - row
            first = int(row.argmax())
            for x in np.flatnonzero(np.isfinite(losses)).tolist() if n_best > 1 else []:
                if x != first:
                    count += 1
                    heapq.heappush(queue, (loss + float(losses[x]), count, place, (*prefix, x)))
            state[tree.nodes[place].variable] = first
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
    inputs: Sequence[BucketTable], in_logs: bool, node: BucketNode, sizes: Int32s,
    beliefs: list[Floats | None] | None = None,
) -> loops.Bucket:  # fmt: skip
    """Convert a bucket to its compiled form. A bucket without tables gets a table of ones."""
    tables = [table.as_logs() if in_logs else table.values for table in inputs]
    widths = np.array([sizes[u] for u in node.separator], np.int32)
    if not tables:
        tables, strides = [np.zeros(int(sizes[node.variable])) + (0.0 if in_logs else 1.0)], np.zeros((1, 0), np.int64)
        return loops.Bucket(tables, strides, widths, int(sizes[node.variable]), None)
    return loops.Bucket(tables, node.strides, widths, int(sizes[node.variable]), beliefs)


def _pieces(n: int, length: int) -> list[tuple[int, int]]:
    """Divide the range from 0 to ``n`` into ranges (first, end) of at most ``length`` elements."""
    return [(first, min(first + length, n)) for first in range(0, n, length)]


def _log(values: Floats) -> Floats:
    """Return the natural logarithms of ``values``, with -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)
