"""Reduction of a graph of tables, and the order in which variable elimination removes its variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from herdner._ext import elimination_order as loops
from herdner._ext.consistency import possible_states
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.memory import check_memory
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph, ImpossibleGraph
from herdner.graph.tables import TableGraph

_SLICE_WORK = 2**20  # entries that the search reads between two checks of the clock and of Ctrl-C
_ROUNDING = 2.0**-50  # bound on the relative rounding error of an operation such as logaddexp
_FACTORS_PER_CHECK = 4096  # factors that the reduction processes between two checks of the clock
_HOPELESS = 1.5  # factor on the accepted log2 of cells above which the first rule ends the search
LARGEST_LOG2_CELLS = 60.0  # log2 of the largest number of cells of a bucket in an order; no machine can store more


class OutOfTime(Exception):
    """Error: exact inference or the reduction of a graph was stopped, because it would exceed its time limit."""


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
        sizes: Number of states of each remaining variable.
    """

    states: list[NDArray[np.int64]]
    variables: NDArray[np.int64]
    scopes: list[tuple[int, ...]]
    tables: list[Floats]
    constant: float
    hosts: list[tuple[int, tuple[int, ...]]]
    sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Compute ``sizes``, the number of possible states of each remaining variable."""
        remaining: list[int] = self.variables.tolist()
        object.__setattr__(self, "sizes", [len(self.states[v]) for v in remaining])

    def absorb_factors(self, until: float = math.inf) -> ReducedGraph:
        """Merge factors into factors of more variables.

        Args:
            until: Reading of `time.perf_counter` at which the merging ends with an error.

        Returns:
            The graph of the same distribution, in which no factor has only variables of another factor.

        Raises:
            OutOfTime: The time ``until`` passed before the end.
        """
        merged = dict(zip(self.scopes, self.tables, strict=True))
        absorbing_scope = _absorb(merged, len(self.variables), until)
        check_clock(until)
        if not absorbing_scope:
            return self
        factor_of = {scope: factor for factor, scope in enumerate(merged)}
        moved: list[tuple[int, tuple[int, ...]]] = []  # the host of each factor, and the axes of the factor's variables
        for scope in self.scopes:
            host = absorbing_scope.get(scope, scope)
            moved.append((factor_of[host], tuple([host.index(v) for v in scope])))
        hosts = self.hosts.copy()
        for number, (factor, axes) in enumerate(hosts):
            if factor >= 0:
                host, host_axes = moved[factor]
                hosts[number] = moved[factor] if len(axes) == 1 else (host, tuple([host_axes[a] for a in axes]))
        return ReducedGraph(self.states, self.variables, list(merged), list(merged.values()), self.constant, hosts)

    def factor_graph(self) -> FactorGraph:
        """Build the factor graph of the remaining variables, with one group for all factors of the same shape.

        Returns:
            The graph, without the constant.
        """
        return self._graph((scope, table, 1.0) for scope, table in zip(self.scopes, self.tables, strict=True))

    def restrict(self, groups: Sequence[TableFactors]) -> FactorGraph:
        """Restrict the original factors to the variables and states of the reduced graph. No factors are merged.

        The tables of the reduced graph itself are sums of log-potentials of several factors. The sum of a large and a
        small log-potential loses digits of the small one, so these tables are no basis for sound bounds on influences.

        Args:
            groups: The factors of the original graph.

        Returns:
            The graph of the remaining variables, without factors over no variables.
        """
        numbers = (np.cumsum([len(possible) > 1 for possible in self.states]) - 1).tolist()
        uses = (
            (_reduce_factor(tuple(scope), group.tables[t], self.states, numbers), scale)
            for group in groups
            for scope, t, scale in zip(
                group.scopes.tolist(), group.table_of_factor.tolist(), group.scale.tolist(), strict=True
            )
        )
        return self._graph((scope, table, scale) for (scope, table), scale in uses if scope)

    def _graph(self, factors: Iterable[tuple[tuple[int, ...], Floats, float]]) -> FactorGraph:
        """Build a graph of the remaining variables from the scope, the table and the scale of each factor."""
        groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], Floats, float]]] = {}
        for factor in factors:
            groups.setdefault(factor[1].shape, []).append(factor)
        columns = [list(zip(*group, strict=True)) for group in groups.values()]
        tables = [TableFactors(scopes, np.stack(tables), scale=scales) for scopes, tables, scales in columns]
        return FactorGraph(np.array(self.sizes, np.int32), tables)

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

    def original_marginals(self, marginals: Floats, sizes: Int32s) -> Floats:
        """Convert marginals of the remaining variables to marginals of the original graph.

        Args:
            marginals: float64[sum of the remaining variables' numbers of states], the probabilities of the possible
                states of each remaining variable, one variable after the other.
            sizes: int32[V], number of states of each variable of the original graph.

        Returns:
            float64[V, K].
        """
        whole = np.zeros((len(sizes), int(sizes.max(initial=1))))
        whole[np.arange(len(sizes)), [possible[0] for possible in self.states]] = 1.0
        counts = self.sizes
        remaining: list[int] = self.variables.tolist()
        columns = np.concatenate([np.zeros(0, np.int64), *(self.states[v] for v in remaining)])
        whole[self.variables, [self.states[v][0] for v in remaining]] = 0.0
        whole[np.repeat(self.variables, counts), columns] = marginals
        return whole


_reduced_graphs: WeakKeyDictionary[TableGraph, dict[bool, ReducedGraph]] = WeakKeyDictionary()


def reduce_tables(compiled: TableGraph, until: float = math.inf, *, absorb: bool = True) -> ReducedGraph:
    """Reduce a compiled graph by `reduce_graph`, and cache the reduced graph as long as the compiled graph exists.

    Args:
        compiled: The graph.
        until: Reading of `time.perf_counter` at which the reduction ends with an error.
        absorb: Merge factors also into factors of more variables, not only into factors of the same variables.

    Returns:
        The reduced graph.

    Raises:
        ImpossibleGraph: A variable has no possible state.
        OutOfTime: The time ``until`` passed before the end.
    """
    forms = _reduced_graphs.setdefault(compiled, {})
    if absorb not in forms:
        reduced = forms.get(False) or reduce_graph(compiled.sizes, compiled.factors, until)
        forms[absorb] = reduced.absorb_factors(until) if absorb else reduced
    return forms[absorb]


def log_z_margin(compiled: TableGraph) -> float:
    """Return a bound on the rounding error of log Z, or of a bound on it, by the elimination of all variables.

    Each operation adds numbers that are at most as large as the largest sum of log-potentials, so large factors that
    cancel widen the margin.

    Args:
        compiled: The graph.
    """
    n_operations = sum(map(len, compiled.factors)) + int(compiled.sizes.sum())
    largest = sum(group.reach for group in compiled.factors) + float(np.log(compiled.sizes).sum())
    return _ROUNDING * (1 + n_operations) * (1 + largest)


def reduce_graph(sizes: Int32s, groups: Sequence[TableFactors], until: float = math.inf) -> ReducedGraph:
    """Remove impossible states and variables with a single possible state, and merge factors of the same variables.

    A state of a variable is impossible if some factor is -inf at this state for all possible states of its other
    variables (generalised arc consistency).

    Args:
        sizes: int32[V], number of states of each variable.
        groups: Groups of factors.
        until: Reading of `time.perf_counter` at which the reduction ends with an error.

    Returns:
        The reduced graph. Its joint states are the joint states of the original graph that consist of possible states.

    Raises:
        ImpossibleGraph: A variable has no possible state.
        OutOfTime: The time ``until`` passed before the end.
    """
    scopes, tables = single_factors(groups)
    check_clock(until)
    states = _possible_states(sizes, scopes, tables, groups)
    possible = np.array([len(each) for each in states], np.int64)
    remaining = possible > 1
    variables = np.flatnonzero(remaining)
    index = np.cumsum(remaining) - 1
    is_whole = remaining & (possible == sizes)
    constant = 0.0
    remaining_scopes: list[tuple[int, ...]] = []
    merged: dict[tuple[int, ...], Floats] = {}
    numbers = index.tolist()
    for number, (scope, table, is_simple) in enumerate(zip(scopes, tables, _are_simple(groups, is_whole), strict=True)):
        if number % _FACTORS_PER_CHECK == 0:
            check_clock(until)
        if is_simple:
            rest = key = scope if len(variables) == len(sizes) else tuple([numbers[v] for v in scope])
        else:
            rest, table = _reduce_factor(scope, table, states, numbers)
            key = tuple(sorted(rest))
            if key != rest:
                table = table.transpose(np.argsort(rest))
        remaining_scopes.append(rest)
        if not key:
            constant += float(table)
        else:
            merged[key] = merged[key] + table if key in merged else table
    check_clock(until)
    hosts = _hosts(remaining_scopes, {scope: factor for factor, scope in enumerate(merged)})
    return ReducedGraph(states, variables, list(merged), list(merged.values()), constant, hosts)


def check_clock(until: float) -> None:
    """Raise `OutOfTime` if a time has passed.

    Args:
        until: Reading of `time.perf_counter`.

    Raises:
        OutOfTime: The clock is past ``until``.
    """
    if perf_counter() > until:
        raise OutOfTime


def _are_simple(groups: Sequence[TableFactors], is_whole: NDArray[np.bool_]) -> list[bool]:
    """Return, for each factor, True if its variables are in ascending order and keep all their states."""
    simple: list[bool] = []
    for group in groups:
        is_kept: NDArray[np.bool_] = np.all(is_whole[group.scopes], axis=1, keepdims=True)
        is_sorted: NDArray[np.bool_] = np.all(np.diff(group.scopes, axis=1) > 0, axis=1, keepdims=True)
        simple += (is_kept & is_sorted & (group.arity > 0)).ravel().tolist()
    return simple


def _reduce_factor(
    scope: tuple[int, ...], table: Floats, states: list[NDArray[np.int64]], numbers: list[int]
) -> tuple[tuple[int, ...], Floats]:
    """Return the scope and the table of a factor in the reduced graph; variables keep their order in the scope.

    The entry ``numbers[v]`` is the index of variable ``v`` in the reduced graph.
    """
    kept = [v for v in scope if len(states[v]) > 1]
    if len(kept) < len(scope) or table.shape != tuple([len(states[v]) for v in scope]):
        table = table[np.ix_(*(states[v] for v in scope))].reshape([len(states[v]) for v in kept])
    return tuple([numbers[v] for v in kept]), table


def _hosts(scopes: list[tuple[int, ...]], factor_of: dict[tuple[int, ...], int]) -> list[tuple[int, tuple[int, ...]]]:
    """Return, for each original factor, its host: the reduced factor that contains it (see `ReducedGraph`)."""
    axes: list[tuple[int, ...]] = [tuple(range(arity)) for arity in range(1 + max(map(len, scopes), default=0))]
    hosts: list[tuple[int, tuple[int, ...]]] = []
    for scope in scopes:
        factor = factor_of.get(scope)
        if factor is not None:
            hosts.append((factor, axes[len(scope)]))
        elif not scope:
            hosts.append((-1, ()))
        else:
            key = tuple(sorted(scope))
            hosts.append((factor_of[key], tuple([key.index(v) for v in scope])))
    return hosts


def single_factors(groups: Sequence[TableFactors]) -> tuple[list[tuple[int, ...]], list[Floats]]:
    """Return the scopes of all factors of all groups, and a table of log-potentials for each factor.

    Args:
        groups: Groups of factors.

    Returns:
        The variables of each factor, and float64[K1, .., Ka] for each factor of a variables.
    """
    scopes: list[tuple[int, ...]] = []
    tables: list[Floats] = []
    for group in groups:
        scopes += map(tuple, group.scopes.tolist())
        chosen, uses = list(group.tables), zip(group.table_of_factor.tolist(), group.scale.tolist(), strict=True)
        tables += [chosen[t] if scale == 1 else chosen[t] * scale for t, scale in uses]
    return scopes, tables


def flat_factors(scopes: Sequence[tuple[int, ...]], tables: Sequence[Floats]) -> tuple[Int64s, Int32s, Int64s, Floats]:
    """Concatenate the scopes and the tables of factors for compiled loops.

    Args:
        scopes: Variables of each factor.
        tables: Log-potentials of each factor.

    Returns:
        The offsets of the scopes int64[F + 1], the scopes, the offsets of the tables int64[F + 1], and the tables.
    """
    return (
        np.cumsum([0, *map(len, scopes)], dtype=np.int64),
        np.fromiter(itertools.chain.from_iterable(scopes), np.int32),
        np.cumsum([0, *(table.size for table in tables)], dtype=np.int64),
        np.concatenate([np.zeros(0), *(table.ravel() for table in tables)]),
    )


def _possible_states(
    sizes: Int32s, scopes: list[tuple[int, ...]], tables: list[Floats], groups: Sequence[TableFactors]
) -> list[NDArray[np.int64]]:
    """Return the possible states of each variable, by generalised arc consistency."""
    counts: list[int] = sizes.tolist()
    check_memory(
        16.0 * sum(counts), f"inference on {len(counts)} variables of up to {max(counts, default=0)} states",
        "use variables of fewer states",
    )  # fmt: skip
    every = {size: np.arange(size) for size in set(counts)}
    states: list[NDArray[np.int64]] = [every[size] for size in counts]
    is_restricting = [(group.rows == -math.inf).any(axis=1)[group.table_of_factor] for group in groups]
    restricting = np.flatnonzero(np.concatenate([np.zeros(0, bool), *is_restricting])).tolist()
    if not restricting:
        return states
    arrays = flat_factors([scopes[f] for f in restricting], [tables[f] for f in restricting])
    is_possible, fault = possible_states(sizes, *arrays)
    if fault >= 0:
        raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")
    ends = np.cumsum(sizes, dtype=np.int64)
    for v in np.unique(np.repeat(np.arange(len(sizes)), sizes)[is_possible == 0]).tolist():
        states[v] = np.flatnonzero(is_possible[ends[v] - sizes[v] : ends[v]])
    return states


def _absorb(
    merged: dict[tuple[int, ...], Floats], n_variables: int, until: float
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Merge tables into tables of larger scopes; return a dict from each removed scope to the scope that absorbs it.

    `OutOfTime` is raised at the time ``until``.
    """
    containing: list[list[tuple[int, ...]]] = [[] for _ in range(n_variables)]
    hosts: dict[tuple[int, ...], tuple[int, ...]] = {}
    largest = max(map(len, merged), default=0)
    for number, scope in enumerate(sorted(sorted(merged), key=len, reverse=True)):
        if number % _FACTORS_PER_CHECK == 0:
            check_clock(until)
        members, host = set(scope), None
        if len(scope) < largest:  # the largest scopes have no superset
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
        peak_cells: Largest number of table cells that messages and marginals of separators have at the same time, while
            marginals are computed; 0 if ``log2_cells`` is infinite.
    """

    order: Int32s
    log2_cells: float
    width: int
    message_cells: int
    peak_cells: int

    @classmethod
    def of(cls, search: loops.GreedyOrder, starts: Int64s, neighbours: Int32s) -> EliminationOrder:
        """Return the elimination order that a search found, with its cost. If the search failed, the cost is infinite.

        Args:
            search: The search. If it found no order, its first variables are followed by the others.
            starts: The graph of the search (see `adjacency`).
            neighbours: The neighbours of all variables.
        """
        order, n_ordered, cost = search.order, search.n_ordered, _log2_cells(search)
        if cost == math.inf:
            rest = np.setdiff1d(np.arange(len(order), dtype=np.int32), order[:n_ordered])
            return cls(np.concatenate([order[:n_ordered], rest]), math.inf, len(order), 0, 0)
        cells, peak = int(search.message_cells), int(search.peak_cells(starts, neighbours))
        return cls(order, cost, search.width, cells, peak)


def _log2_cells(search: loops.GreedyOrder) -> float:
    """Return log2 of the number of table cells of the order that a search found; infinity if it failed."""
    return math.inf if search.is_hopeless or search.n_ordered < len(search.order) else math.log2(search.cells + 1)


def adjacency(n_variables: int, scopes: Sequence[tuple[int, ...]]) -> tuple[Int64s, Int32s]:
    """Return the neighbours of all variables; two variables are neighbours if a factor contains both.

    Args:
        n_variables: Number of variables.
        scopes: Variables of each factor.

    Returns:
        int64[n_variables + 1] and int32[..]: the neighbours of variable v, in ascending order, are the entries of the
        second array from ``starts[v]`` to ``starts[v + 1]``, where ``starts`` is the first array.
    """
    by_arity: dict[int, list[tuple[int, ...]]] = {}
    for scope in scopes:
        by_arity.setdefault(len(scope), []).append(scope)
    keys: list[Int64s] = [np.zeros(0, np.int64)]
    for arity, group in by_arity.items():
        variables, (left, right) = np.array(group, np.int64), np.triu_indices(arity, 1)
        first, second = variables[:, left].ravel(), variables[:, right].ravel()
        keys += [first * n_variables + second, second * n_variables + first]
    pairs = np.unique(np.concatenate(keys))
    starts = np.searchsorted(pairs, np.arange(n_variables + 1, dtype=np.int64) * n_variables).astype(np.int64)
    return starts, (pairs % max(n_variables, 1)).astype(np.int32)


def find_elimination_order(
    sizes: Int32s,
    scopes: Sequence[tuple[int, ...]],
    seed: int = 0,
    *,
    seconds: float = math.inf,
    limit: float = LARGEST_LOG2_CELLS,
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
        limit: log2 of the largest number of table cells that the caller accepts. If the first rule exceeds 1.5 times
            this number, the search ends, because the other rules are seldom much better.

    Returns:
        The cheapest order, with its cost. The cost is infinite if no order of finite cost was found in time.

    Raises:
        MemoryError: The graph has too many variables for the search.
    """
    until = perf_counter() + seconds
    n = len(sizes)
    starts, neighbours = adjacency(n, scopes)
    log_sizes = np.log2(sizes.astype(np.float64))
    if loops.least_largest_bucket(starts, neighbours, log_sizes) > LARGEST_LOG2_CELLS:
        return EliminationOrder(np.arange(n, dtype=np.int32), math.inf, n, 0, 0)
    best, cost, work, attempt = None, math.inf, 0, 0
    # An entry that the search reads takes about as much time as one cell of a bucket takes in inference.
    while best is None or attempt < 3 or (attempt < 500 and work < 2.0 ** min(cost, 30.0) / 4):
        if best is not None and perf_counter() >= until:
            break
        least = min(LARGEST_LOG2_CELLS, cost)
        spread = 0.0 if attempt < 3 else (0.05, 0.2, 0.5)[attempt // 3 % 3]
        search = loops.GreedyOrder(starts, neighbours, log_sizes, attempt % 3, seed + attempt, least, spread)
        share = 0.5 if attempt < 2 else 1.0  # the third rule is the fastest on large graphs
        stop = perf_counter() + share * (until - perf_counter()) if seconds < math.inf else math.inf
        while perf_counter() < stop and not search.advance(_SLICE_WORK):
            pass
        work += search.work
        attempt += 1
        new_cost = _log2_cells(search)
        if best is None or new_cost < cost:
            best, cost = search, new_cost
        if attempt == 1 and (search.is_hopeless or limit * _HOPELESS < new_cost < math.inf):
            break
    return EliminationOrder.of(best, starts, neighbours)
