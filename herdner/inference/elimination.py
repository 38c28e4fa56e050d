"""Variable elimination on any graph of tables: reduction, elimination order, and the tree of buckets.

Each variable is summed out of the product of the tables that contain it. The result, a message over the other
variables of these tables (the separator), goes to the bucket of the variable of the separator that is eliminated next
(Dechter 1999, "Bucket elimination"). One pass in elimination order gives log Z or the largest log-potential. A second
pass in the opposite order gives the marginals of all variables and factors, as in a junction tree; a draw in the
opposite order gives an exact sample.

Only messages are stored: the table of a bucket, larger by one variable, is combined again in the second pass.
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

LINEAR_RANGE = 300.0  # nats between the entries of one table that is stored as numbers, not as logarithms
BUCKET_RANGE = 600.0  # nats between the entries of a product of such tables: nothing underflows
COMBINED_PART = 32  # a combined table has at most this part of its bucket's rows
COMBINED_ROWS = 64  # or this many
LARGEST_LOG2_CELLS = 60.0  # of a bucket: no machine has room for one
_SLICE_BLOCKS = 4096  # blocks of one call: fractions of a second, so Ctrl-C is heard


@dataclass(frozen=True, slots=True, eq=False)
class ReducedGraph:
    """A graph without impossible states and without variables that have a single possible state.

    Attributes:
        states: For each variable of the original graph, int64[k], its possible states.
        variables: int64[n], the original variables that remain.
        scopes: For each factor of the reduced graph its variables, as indices into ``variables``.
        tables: For each such factor its log-potentials.
        constant: Log-potential of all factors without remaining variables.
        hosts: For each factor of the original graph (in the order of groups and of factors in a group), the reduced
            factor that contains it, and the axes of that factor that are the factor's own remaining variables.
    """

    states: list[NDArray[np.int64]]
    variables: NDArray[np.int64]
    scopes: list[tuple[int, ...]]
    tables: list[Floats]
    constant: float
    hosts: list[tuple[int, tuple[int, ...]]]


def reduce_graph(sizes: Int32s, groups: Sequence[TableFactors]) -> ReducedGraph:
    """Remove impossible states, fix variables with one possible state, and merge factors into larger ones.

    A state is impossible if all entries of some factor at that state are -inf, given the possible states of the other
    variables (generalised arc consistency).

    Args:
        sizes: int32[V], number of states of each variable.
        groups: The factors.

    Raises:
        ImpossibleGraph: A variable has no possible state.
    """
    scopes, tables = _single_factors(groups)
    states = _possible_states(sizes, scopes, tables)
    remaining = np.array([len(possible) > 1 for possible in states], bool)
    variables = np.flatnonzero(remaining)
    index = np.cumsum(remaining) - 1
    constant = 0.0
    own: list[tuple[int, ...]] = []
    merged: dict[tuple[int, ...], Floats] = {}
    for scope, table in zip(scopes, tables, strict=True):
        table = table[np.ix_(*(states[v] for v in scope))] if scope else table
        table = table.reshape([n for n in table.shape if n > 1])
        rest = [int(index[v]) for v in scope if remaining[v]]
        axes = np.argsort(rest)
        key, table = tuple(sorted(rest)), table.transpose(axes)
        own.append(tuple(rest))
        if not key:
            constant += float(table)
        else:
            merged[key] = merged[key] + table if key in merged else table
    hosts = _absorb(merged, len(variables))
    final = list(merged)
    place = {key: number for number, key in enumerate(final)}
    located = []
    for key in own:  # in the order of the factor's own axes
        scope = tuple(sorted(key))
        host = hosts.get(scope, scope)
        located.append((place[host], tuple(host.index(v) for v in key)) if key else (-1, ()))
    return ReducedGraph(states, variables, final, [merged[key] for key in final], constant, located)


def _single_factors(groups: Sequence[TableFactors]) -> tuple[list[tuple[int, ...]], list[Floats]]:
    """Return the scope and the log-potentials of each factor of all groups."""
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
    states = [np.arange(size) for size in sizes.tolist()]
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
    """Add each table to one whose scope contains its own; return which scope each removed scope went to."""
    containing: list[list[tuple[int, ...]]] = [[] for _ in range(n_variables)]
    hosts: dict[tuple[int, ...], tuple[int, ...]] = {}
    for scope in sorted(merged, key=lambda key: (-len(key), key)):
        wanted = set(scope)
        candidates = min((containing[v] for v in scope), key=len)
        host = next((other for other in candidates if wanted <= set(other)), None)
        if host is None:
            for v in scope:
                containing[v].append(scope)
            continue
        table = merged.pop(scope)
        shape = [merged[host].shape[axis] if v in wanted else 1 for axis, v in enumerate(host)]
        merged[host] = merged[host] + table.reshape(shape)
        hosts[scope] = host
    return hosts


@dataclass(frozen=True, slots=True, eq=False)
class EliminationOrder:
    """An elimination order and its cost.

    Attributes:
        order: int32[n], the variables in the order of their elimination.
        log2_cells: log2 of the number of cells of all buckets; infinity if no order was found whose largest bucket has
            at most 2^60 cells.
        width: Number of variables of the largest bucket, less 1.
        message_cells: Number of cells of all messages.
    """

    order: Int32s
    log2_cells: float
    width: int
    message_cells: int

    @classmethod
    def of(cls, order: Int32s, is_small: bool, sizes: Int32s, scopes: Sequence[tuple[int, ...]]) -> EliminationOrder:
        """Measure an order, whose buckets are known to be too large unless ``is_small``."""
        if not is_small:
            return cls(order, math.inf, len(order), 0)
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        waiting: list[set[int]] = [set() for _ in order]
        for scope in scopes:
            waiting[min(position[v] for v in scope)].update(scope)
        width, cells, message_cells = 0, 1, 0
        for place, v in enumerate(order.tolist()):
            separator = waiting[place] - {v}
            width = max(width, len(separator))
            rows = math.prod(int(sizes[u]) for u in separator)
            message_cells += rows
            cells += rows * int(sizes[v])
            if separator:
                waiting[min(position[u] for u in separator)].update(separator)
        return cls(order, math.log2(cells), width, message_cells)


def find_elimination_order(sizes: Int32s, scopes: Sequence[tuple[int, ...]], seed: int = 0) -> EliminationOrder:
    """Search an elimination order by the greedy rules least fill, weighted fill and smallest bucket, with restarts.

    The number of restarts grows with the cost of the best order, so the search takes a small part of the time of
    inference. It does not depend on the machine.

    Args:
        sizes: int32[n], number of states of each variable.
        scopes: The variables of each factor.
        seed: Seed of the random restarts.

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
    # A word of the search costs about as much as a cell of a bucket.
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
    """Eliminate variables with at most one neighbour, again and again, which is always optimal.

    Returns:
        The eliminated variables in order, and the remaining pairs of neighbours in both directions.
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
    """A table of log-potentials or of numbers, up to a factor: the largest entry is 0 or 1.

    Attributes:
        values: float64[cells], flat.
        in_logs: The values are logarithms.
        span: Nats between the largest and the least entry above zero.
    """

    values: Floats
    in_logs: bool
    span: float

    def as_logs(self) -> Floats:
        """Return the logarithms of the values."""
        if self.in_logs:
            return self.values
        with np.errstate(divide="ignore"):
            return np.log(self.values)

    @classmethod
    def scaled(cls, values: Floats, in_logs: bool) -> tuple[BucketTable, float]:
        """Return the table scaled to a largest entry of 1, as numbers if these suffice, and the log of the factor.

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
    """One bucket: its variable, its separator, and which tables it combines.

    Attributes:
        variable: The variable.
        separator: The other variables, the next one to be eliminated last.
        sources: For each table the factor (>= 0) or the bucket (-1 - bucket) that it comes from.
        strides: int64[tables, separator].
    """

    variable: int
    separator: tuple[int, ...]
    sources: list[int]
    strides: NDArray[np.int64]


class BucketTree:
    """The buckets of an elimination order, and the messages between them.

    Args:
        reduced: The graph.
        order: The order, which fits into memory (see `check`).
        n_threads: Threads for large buckets; results do not depend on it.
    """

    def __init__(self, reduced: ReducedGraph, order: EliminationOrder, n_threads: int = 1) -> None:
        """Lay out the buckets.

        Args:
            reduced: The reduced graph.
            order: Order in which its variables are eliminated.
            n_threads: Number of threads.
        """
        self.reduced, self.n_threads = reduced, n_threads
        self.sizes = np.array([len(reduced.states[v]) for v in reduced.variables], np.int32)
        self.position = np.empty(len(self.sizes), np.int64)
        self.position[order.order] = np.arange(len(self.sizes))
        self.factors: list[BucketTable] = []
        self.place_of_factor: list[tuple[int, tuple[int, ...]]] = []  # of each factor: its table, and its axes there
        self.scope_of_table: list[tuple[int, ...]] = []
        self.nodes: list[BucketNode] = []
        self.offset = reduced.constant
        self._build(order.order)

    def _build(self, order: Int32s) -> None:
        """Lay out all buckets."""
        earliest: list[list[int]] = [[] for _ in order]
        for number, scope in enumerate(self.reduced.scopes):
            earliest[min(self.position[v] for v in scope)].append(number)
        waiting: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in order]
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
                waiting[self.position[separator[-1]]].append((-1 - place, separator))

    def _combined_factors(self, numbers: list[int], most_rows: int) -> list[tuple[int, tuple[int, ...]]]:
        """Combine the factors of a bucket into few tables of at most ``most_rows`` rows each.

        Returns:
            The index of each new table in ``factors``, and its scope in the order of the bucket.
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
        tables = []
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
        """Return the joint marginal of some variables of a reduced factor.

        Args:
            tables: The beliefs that `Messages.distribute` returned.
            factor: Index of the reduced factor, -1 for one without variables.
            axes: The wanted axes of the factor.
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
        """Eliminate all variables in order.

        Args:
            maximise: Compute the largest log-potential in place of log Z.

        Raises:
            ImpossibleGraph: No state has a log-potential above -inf.
        """
        messages = Messages(self, maximise)
        for node in self.nodes:
            messages.collect(node)
        return messages


@dataclass(slots=True, eq=False)
class Messages:
    """All messages of one pass in elimination order.

    Attributes:
        tree: The buckets.
        maximised: The messages are maxima, not sums.
        tables: One message for each bucket, scaled.
        offsets: The logarithm of the factor by which each message was scaled.
        total: Log Z, or the largest log-potential.
    """

    tree: BucketTree
    maximised: bool
    tables: list[BucketTable] = field(init=False)
    offsets: list[float] = field(init=False)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin without messages."""
        self.tables, self.offsets, self.total = [], [], self.tree.offset

    def collect(self, node: BucketNode) -> None:
        """Compute the message of the next bucket."""
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
        """Return the tables that a bucket combines."""
        return [self.tree.factors[source] if source >= 0 else self.tables[-1 - source] for source in node.sources]

    def _run(self, work: Callable[[tuple[int, int]], None], pieces: list[tuple[int, int]]) -> None:
        """Do the pieces of a bucket, in threads if there are several."""
        if self.tree.n_threads == 1 or len(pieces) == 1:
            for piece in pieces:
                work(piece)
            return
        with ThreadPoolExecutor(self.tree.n_threads) as pool:
            for future in [pool.submit(work, piece) for piece in pieces]:
                future.result()

    def distribute(self, with_factors: bool) -> tuple[list[Floats], list[Floats | None]]:
        """Return the marginals of all variables, and of all factors if ``with_factors``.

        The beliefs of a factor are flat, in the order of its table in the tree.
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
        """Add the beliefs of one bucket to those of its tables; return the marginal of its variable."""
        sizes = self.tree.sizes
        bucket = _bucket(inputs, in_logs, node, sizes, beliefs)
        own = self.tables[place]
        # As it was before it was scaled, so the rows of the bucket add up to 1.
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
        if n_slices == 1 or len(pieces) > n_slices:  # pieces of one slice share cells
            for piece in pieces:
                one_slice(piece)
        else:
            self._run(one_slice, pieces)
        return sums.sum(axis=0)

    def log_rows(self, place: int, states: Int32s) -> Floats:
        """Return the log-potentials [N, K] of the variable of a bucket, given N states [N, n] of the separator."""
        node, sizes = self.tree.nodes[place], self.tree.sizes
        total = np.zeros((len(states), int(sizes[node.variable])))
        at = states[:, list(node.separator)].astype(np.int64)
        for table, strides in zip(self.inputs(node), node.strides, strict=True):
            cells = (at @ strides)[:, None] + np.arange(total.shape[1])
            total += table.as_logs()[cells] if table.in_logs else _log(table.values[cells])
        return total


def best_states(messages: Messages, n_best: int) -> Int32s:
    """Return the ``n_best`` states of largest log-potential, best first, int32[n_best or fewer, n].

    The messages are maxima, so they are the exact value of the best completion of every prefix in the opposite order of
    elimination: a best-first search expands no prefix in vain. With messages that are sums, the result is one state of
    probability above 0, which is likely but not the best.
    """
    tree, n = messages.tree, len(messages.tree.nodes)
    queue: list[tuple[float, int, int, tuple[int, ...]]] = [(0.0, 0, n, ())]
    states: list[Int32s] = []
    count = 0
    while queue and len(states) < n_best:
        loss, _, place, prefix = heapq.heappop(queue)
        state = np.zeros(n, np.int32)
        for node, x in zip(reversed(tree.nodes[place:]), prefix, strict=True):
            state[node.variable] = x
        # The best completion is followed at once; the other states of each variable wait.
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
    """Draw exact, independent samples, int32[n_samples, n], by the messages of a pass of sums."""
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
    return any(table.in_logs for table in inputs) or sum(table.span for table in inputs) > BUCKET_RANGE


def _bucket(
    inputs: Sequence[BucketTable], in_logs: bool, node: BucketNode, sizes: Int32s,
    beliefs: list[Floats | None] | None = None,
) -> loops.Bucket:  # fmt: skip
    tables = [table.as_logs() if in_logs else table.values for table in inputs]
    widths = np.array([sizes[u] for u in node.separator], np.int32)
    if not tables:
        tables, strides = [np.zeros(int(sizes[node.variable])) + (0.0 if in_logs else 1.0)], np.zeros((1, 0), np.int64)
        return loops.Bucket(tables, strides, widths, int(sizes[node.variable]), None)
    return loops.Bucket(tables, node.strides, widths, int(sizes[node.variable]), beliefs)


def _pieces(n: int, length: int) -> list[tuple[int, int]]:
    return [(first, min(first + length, n)) for first in range(0, n, length)]


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)
