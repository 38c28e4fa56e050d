"""Elimination orders: their costs, the lower bound, and searches on large graphs."""

from __future__ import annotations

import itertools
import math
from time import process_time

import numpy as np
import pytest

from herdner import ising
from herdner._ext.consistency import possible_states
from herdner._ext.elimination_order import GreedyOrder, find_block, least_largest_bucket
from herdner.graph.tables import compile_tables
from herdner.inference import UnsupportedGraph
from herdner.inference.backends.exact import Exact
from herdner.inference.elimination_order import adjacency, find_elimination_order, flat_factors, reduce_tables


def random_scopes(rng: np.random.Generator, n: int) -> list[tuple[int, ...]]:
    sizes = rng.integers(1, min(n, 4) + 1, int(rng.integers(1, 2 * n)))
    return [tuple(np.sort(rng.permutation(n)[:size]).tolist()) for size in sizes]


def buckets(order: list[int], scopes: list[tuple[int, ...]]) -> list[set[int]]:
    """The bucket of each variable, from the definition of variable elimination."""
    rest, found = [set(scope) for scope in scopes], []
    for v in order:
        bucket = set().union({v}, *(scope for scope in rest if v in scope))
        rest = [scope for scope in rest if v not in scope] + [bucket - {v}]
        found.append(bucket)
    return found


def peak(order: list[int], found: list[set[int]], sizes: np.ndarray) -> int:
    """The largest number of cells of messages and beliefs that exist together, by the steps of the second pass."""
    separators = [bucket - {v} for v, bucket in zip(order, found, strict=True)]
    cells = [math.prod(int(sizes[u]) for u in separator) for separator in separators]
    messages, beliefs, largest = set(range(len(order))), set(), 0
    for place in reversed(range(len(order))):
        beliefs |= {b for b, each in enumerate(separators) if each and min(map(order.index, each)) == place}
        largest = max(largest, sum(cells[b] for b in messages) + sum(cells[b] for b in beliefs))
        messages.discard(place)
        beliefs.discard(place)
    return largest


def run(scopes, sizes, criterion=0, limit=60.0, spread=0.0, seed=0, work=2**62) -> GreedyOrder:
    search = GreedyOrder(*adjacency(len(sizes), scopes), np.log2(sizes), criterion, seed, limit, spread)
    while not search.advance(work):
        pass
    return search


@pytest.mark.parametrize("seed", range(150))
def test_the_cost_of_an_order_is_that_of_its_buckets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    scopes, sizes = random_scopes(rng, n), rng.integers(1, 5, n)
    search = run(scopes, sizes, seed % 3, spread=0.5 * (seed % 2), seed=seed, work=int(rng.integers(1, 50)))
    order = search.order.tolist()
    assert sorted(order) == list(range(n))
    found = buckets(order, scopes)
    cells = [math.prod(sizes[u] for u in bucket) for bucket in found]
    assert search.cells == pytest.approx(sum(cells))
    assert search.message_cells == pytest.approx(sum(c / sizes[v] for c, v in zip(cells, order, strict=True)))
    assert search.width == max(len(bucket) - 1 for bucket in found)
    assert search.peak_cells(*adjacency(n, scopes)) == pytest.approx(peak(order, found, sizes))
    best = min(
        max(math.prod(sizes[u] for u in bucket) for bucket in buckets(list(each), scopes))
        for each in (itertools.permutations(range(n)) if n <= 6 else [order])
    )
    bound = least_largest_bucket(*adjacency(n, scopes), np.log2(sizes))
    assert bound <= math.log2(best) + 1e-9


def cost(v: int, criterion: int, neighbours: list[set[int]], weights: np.ndarray) -> float:
    """The cost of eliminating a variable, from the definitions of the three rules."""
    if criterion == 2:
        return weights[v] + sum(weights[u] for u in neighbours[v])
    pairs = itertools.combinations(neighbours[v], 2)
    missing = [(a, b) for a, b in pairs if b not in neighbours[a]]
    return len(missing) if criterion == 0 else sum(weights[a] * weights[b] for a, b in missing)


@pytest.mark.parametrize("seed", range(40))
def test_the_rules_take_the_cheapest_variable(seed: int) -> None:
    """The costs that the search updates are those of the definition, at every step."""
    rng = np.random.default_rng(seed)
    n = 20
    scopes, sizes = random_scopes(rng, n), rng.choice([2, 4, 8], n)  # powers of 2 have exact logarithms
    weights = np.log2(sizes)
    for criterion in range(3):
        neighbours = [set[int]() for _ in range(n)]
        for scope in scopes:
            for v in scope:
                neighbours[v] |= set(scope) - {v}

        left, leaves = set(range(n)), True
        for v in run(scopes, sizes, criterion).order.tolist():
            leaves = leaves and any(len(neighbours[u]) <= 1 for u in left)
            if leaves:
                assert len(neighbours[v]) <= 1
            else:
                assert v == min(left, key=lambda u, rule=criterion, near=neighbours: (cost(u, rule, near, weights), u))
            for u in neighbours[v]:
                neighbours[u] |= neighbours[v] - {u}
                neighbours[u].discard(v)
            left.remove(v)


def test_a_search_ends_at_a_bucket_beyond_the_limit() -> None:
    scopes = list(itertools.combinations(range(8), 2))
    assert run(scopes, np.full(8, 2), limit=8.0).cells == 2**9 - 2
    search = run(scopes, np.full(8, 2), limit=7.9)
    assert (search.is_hopeless, search.n_ordered) == (True, 1)


def test_large_grids_are_refused_soon() -> None:
    """A search for an order of 10^4 variables once took 20 s."""
    grid = ising(0.4, np.random.default_rng(0).normal(size=(100, 100)))
    reduced = reduce_tables(compile_tables(grid))
    began = process_time()
    with pytest.raises(UnsupportedGraph, match=r"takes more than 2\^60 table cells, but .* allows only 2\^33"):
        Exact().infer(grid)
    assert process_time() - began < 5
    search = run(reduced.scopes, np.array(reduced.sizes))
    assert search.work < 5e7  # about 0.1 s


def test_a_dense_graph_is_refused_by_the_lower_bound() -> None:
    scopes = list(itertools.combinations(range(70), 2))
    assert least_largest_bucket(*adjacency(70, scopes), np.ones(70)) == 70
    order = find_elimination_order(np.full(70, 2, np.int32), scopes)
    assert (order.log2_cells, sorted(order.order.tolist())) == (math.inf, list(range(70)))


def test_an_order_beyond_the_accepted_cost_ends_the_search() -> None:
    """The first rule finds 2^13 cells; a caller that accepts 2^5 gets this order without restarts."""
    scopes = [(v, w) for v in range(12) for w in range(v)]
    sizes = np.full(12, 2, np.int32)
    order = find_elimination_order(sizes, scopes, limit=5.0)
    assert order.log2_cells == pytest.approx(math.log2(2**13 - 1))


@pytest.mark.slow
def test_a_long_cycle_and_a_star_need_little_memory_and_time() -> None:
    n = 200_000
    cycle = [(v, v + 1) for v in range(n - 1)] + [(0, n - 1)]
    began = process_time()
    assert run(cycle, np.full(n, 2)).width == 2
    star = [(0, v) for v in range(1, n)] + [(v, v + 1) for v in range(1, n - 1)]
    assert run(star, np.full(n, 2)).width == 2
    assert process_time() - began < 20


@pytest.mark.parametrize("seed", range(100))
def test_possible_states_are_the_fixed_point_of_arc_consistency(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    sizes = rng.integers(1, 5, n).astype(np.int32)
    scopes = [tuple(rng.permutation(n)[: rng.integers(0, min(n, 3) + 1)].tolist()) for _ in range(5)]
    tables = [np.where(rng.random([sizes[v] for v in scope]) < 0.6, -np.inf, 0.0) for scope in scopes]
    found, fault = possible_states(sizes, *flat_factors(scopes, tables))
    possible = [np.ones(size, bool) for size in sizes]
    for _ in range(100):
        for scope, table in zip(scopes, tables, strict=True):
            allowed = np.isfinite(table)
            for axis, v in enumerate(scope):
                allowed &= possible[v].reshape([-1 if a == axis else 1 for a in range(len(scope))])
            for axis, v in enumerate(scope):
                possible[v] &= allowed.any(axis=tuple(a for a in range(len(scope)) if a != axis))
            if not scope and not allowed:
                possible = [np.zeros(size, bool) for size in sizes]
    if fault >= 0:
        assert not all(states.any() for states in possible)
    else:
        assert found.tolist() == np.concatenate(possible).astype(int).tolist()


def test_wrong_arrays_are_refused() -> None:
    starts, neighbours = adjacency(3, [(0, 1), (1, 2)])
    for wrong in ([1, 0, 2, 2], [1, 0, 5, 1], [1, 2, 0, 1]):
        with pytest.raises(ValueError, match="neighbours must be"):
            GreedyOrder(starts, np.array(wrong, np.int32), np.ones(3), 0, 0, 60.0, 0.0)
    with pytest.raises(ValueError, match="starts and neighbours"):
        least_largest_bucket(starts + 1, neighbours, np.ones(3))
    with pytest.raises(ValueError, match="do not fit each other"):
        find_block(starts, neighbours, np.ones(3), 1, 14.0, np.zeros(2), np.ones(3, np.uint8))
    with pytest.raises(ValueError, match="a table must have one cell"):
        possible_states([2, 2], [0, 2], [0, 1], [0, 3], np.zeros(3))
