"""Reduction of a graph of tables, and the order in which variable elimination removes its variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from herdner._ext import elimination as loops
from herdner.base.arrays import Floats, Int32s
from herdner.base.memory import check_memory
from herdner.graph.factors import TableFactors
from herdner.graph.graph import ImpossibleGraph
from herdner.graph.tables import TableGraph

_WORDS_PER_SECOND = 5e8  # lower bound on the speed at which the search reads words of the adjacency matrix
LARGEST_LOG2_CELLS = 60.0  # log2 of the largest number of cells of a bucket in an order; no machine can store more


@dataclass(frozen=True, slots=True, eq=False)
class ReducedGraph:
    """Graph after the removal of impossible states and of variables with a single possible state.

    Attributes:
        states: int64[k] for each variable of the original graph, its possible states.
        variables: int64[n], the original variables that remain.
        scopes: Variables of each factor of the reduced graph, as indices into ``variables``, in ascending order.
        tables: Log-potentials of each factor of the reduced graph.
        constant: Sum of the log-potentials of all original factors without remaining variables.
        hosts: Host of each original factor, in the order of groups and of factors in a group. A host is the index of
            the reduced factor that contains the original factor, and the axes of this reduced factor. The axes belong
            to the remaining variables of the original factor, in the order of its scope. The index is -1 if no variable
            remains.
    """

    states: list[NDArray[np.int64]]
    variables: NDArray[np.int64]
    scopes: list[tuple[int, ...]]
    tables: list[Floats]
    constant: float
    hosts: list[tuple[int, tuple[int, ...]]]

    @property
    def sizes(self) -> list[int]:
        """Number of states of each remaining variable."""
        return [len(self.states[int(v)]) for v in self.variables]

    def original_states(self, states: Int32s) -> Int32s:
        """Convert joint states of the remaining variables to joint states of the original graph.

        Args:
            states: int32[N, n].

        Returns:
            int32[N, V].
        """
        whole_states = np.tile(np.array([possible[0] for possible in self.states], np.int32), (len(states), 1))
        for column, v in enumerate(self.variables.tolist()):
            whole_states[:, v] = self.states[v][states[:, column]]
        return whole_states

    def reduced_state(self, state: Int32s) -> Int32s:
        """Convert a joint state of the original graph to a joint state of the remaining variables.

        Args:
            state: int32[V], a state that consists of possible states.

        Returns:
            int32[n].
        """
        return np.array([np.searchsorted(self.states[int(v)], state[v]) for v in self.variables], np.int32)

    def original_marginals(self, marginals: Iterable[Floats], sizes: Int32s) -> Floats:
        """Convert marginals of the remaining variables to marginals of the original graph.

        Args:
            marginals: The probabilities of the possible states of each remaining variable; further entries are ignored.
            sizes: int32[V], number of states of each variable of the original graph.

        Returns:
            float64[V, K].
        """
        whole = np.zeros((len(sizes), int(sizes.max(initial=1))))
        for v, possible in enumerate(self.states):
            whole[v, possible[0]] = 1.0
        for v, marginal in zip(self.variables, marginals, strict=True):
            possible = self.states[int(v)]
            whole[v, possible] = marginal[: len(possible)]
        return whole


_reduced_graphs: WeakKeyDictionary[TableGraph, ReducedGraph] = WeakKeyDictionary()


def reduce_tables(compiled: TableGraph) -> ReducedGraph:
    """Reduce a compiled graph by `reduce_graph`, and cache the reduced graph as long as the compiled graph exists.

    Args:
        compiled: The graph.

    Raises:
        ImpossibleGraph: A variable has no possible state.
    """
    reduced = _reduced_graphs.get(compiled)
    if reduced is None:
        reduced = _reduced_graphs[compiled] = reduce_graph(compiled.sizes, compiled.factors)
    return reduced


def reduce_graph(sizes: Int32s, groups: Sequence[TableFactors]) -> ReducedGraph:
    """Remove impossible states and variables with a single possible state, and merge factors into larger factors.

    A state of a variable is impossible if some factor is -inf at this state for all possible states of its other
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
    numbers, possible = index.tolist(), [len(each) for each in states]
    for scope, table in zip(scopes, tables, strict=True):
        if table.shape != tuple(possible[v] for v in scope):
            table = table[np.ix_(*(states[v] for v in scope))]
        if 1 in table.shape:
            table = table.reshape([n for n in table.shape if n > 1])
        rest = tuple(numbers[v] for v in scope if possible[v] > 1)
        key = tuple(sorted(rest))
        if key != rest:
            table = table.transpose(np.argsort(rest))
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
        possible = restricting[f]
        if possible.shape != tuple(len(states[v]) for v in scope):
            possible = possible[np.ix_(*(states[v] for v in scope))]
        if not possible.any():
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")
        for axis, v in enumerate(scope):
            supported = possible.any(axis=tuple(a for a in range(len(scope)) if a != axis))
            if not supported.all():
                states[v] = states[v][supported]
                possible = np.compress(supported, possible, axis=axis)
                waiting |= dict.fromkeys(other for other in factors_of[v] if other != f)
    return states


def _absorb(merged: dict[tuple[int, ...], Floats], n_variables: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Add each table to a table with a larger scope, if one exists; map each removed scope to the larger scope."""
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
        position: list[int] = np.argsort(order).tolist()
        n_states: list[int] = sizes.tolist()
        buckets: list[set[int]] = [set() for _ in range(len(order))]
        for scope in scopes:
            buckets[min(position[v] for v in scope)].update(scope)
        width, cells, message_cells = 0, 1, 0
        variables: list[int] = order.tolist()
        for bucket, v in zip(buckets, variables, strict=True):
            separator = bucket - {v}
            width = max(width, len(separator))
            rows = math.prod(n_states[u] for u in separator)
            message_cells += rows
            cells += rows * n_states[v]
            if separator:
                buckets[min(position[u] for u in separator)].update(separator)
        return cls(order, math.log2(cells), width, message_cells)


def find_elimination_order(
    sizes: Int32s, scopes: Sequence[tuple[int, ...]], seed: int = 0, *, seconds: float = math.inf
) -> EliminationOrder:
    """Search for a cheap elimination order by three greedy rules with random restarts.

    The three rules choose the next variable by the least fill, the least weighted fill and the smallest bucket. The
    number of restarts grows with the cost of the best order, so the search takes a small part of the time of
    inference. Without a time limit, the result does not depend on the speed of the machine.

    Args:
        sizes: int32[n], number of states of each variable.
        scopes: Variables of each factor.
        seed: Seed of the random restarts.
        seconds: Approximate time limit in seconds.

    Returns:
        The cheapest order, with its cost. The cost is infinite if the time was too short to find an order.

    Raises:
        NotEnoughMemory: The graph has too many variables for the search.
    """
    until = perf_counter() + seconds
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
        share = 0.5 if attempt < 2 else 1.0  # the third rule is the fastest on large graphs
        most_words = int(min(2.0**62, share * max(until - perf_counter(), 0.0) * _WORDS_PER_SECOND))
        if most_words == 0:
            break
        key = 0 if attempt < 3 else seed + attempt
        cells, words = loops.find_order(
            starts, neighbours, log_sizes, attempt % 3, key, limit, spread, most_words, order
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
        The eliminated variables in order, and the pairs of neighbours among the remaining variables, each pair in both
        directions.
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
