"""Exact inference by elimination against the enumeration of all states."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

from herdner._ext.elimination import Beliefs
from herdner.graph import FactorGraph, TableFactors, chain_graph, complete_graph, ising
from herdner.graph.tables import compile_tables
from herdner.inference import ImpossibleGraph, elimination
from herdner.inference.backends.exact import Exact
from herdner.inference.elimination import BucketTree, EliminationClock, OutOfTime
from herdner.inference.elimination_order import (
    EliminationOrder,
    find_elimination_order,
    reduce_graph,
    reduce_tables,
)
from herdner.inference.record import Record


def random_graph(rng: np.random.Generator, most_variables: int = 7, most_states: int = 4) -> FactorGraph:
    """Variables of few states, groups of tied and scaled factors of 0 to 4 variables, and some entries of -inf."""
    n = int(rng.integers(1, most_variables + 1))
    sizes = rng.integers(1, most_states + 1, n).astype(np.int32)
    groups = []
    for _ in range(rng.integers(0, 7)):
        arity = int(rng.integers(0, min(n, 4) + 1))
        scopes = [rng.permutation(n)[:arity]]
        shape = sizes[scopes[0]].tolist()
        others = (rng.permutation(n)[:arity] for _ in range(20))
        scopes += list(itertools.islice((scope for scope in others if sizes[scope].tolist() == shape), 2))
        n_tables = int(rng.integers(1, 3))
        tables = rng.normal(size=(n_tables, *shape)) * rng.choice([1, 10, 1000])
        if rng.random() < 0.4:
            tables[rng.random(tables.shape) < 0.3] = -np.inf
        choice, scale = rng.integers(0, n_tables, len(scopes)), np.exp(rng.normal(size=len(scopes)))
        groups.append(TableFactors(np.reshape(scopes, (len(scopes), arity)), tables, choice, scale))
    return FactorGraph(sizes, groups)


def all_states(graph: FactorGraph) -> np.ndarray:
    sizes = graph.domains.sizes.tolist()
    return np.array(list(itertools.product(*map(range, sizes))), np.int32).reshape(-1, len(sizes))


@pytest.mark.slow
def test_graphs_with_evidence_agree_with_the_enumeration() -> None:
    n_possible = 0
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 5, 5)
        sizes = graph.domains.sizes
        observed = np.flatnonzero(rng.random(len(sizes)) < 0.3).tolist()
        evidence = {v: int(rng.integers(sizes[v])) for v in observed}
        states = all_states(graph)
        states = states[(states[:, observed] == list(evidence.values())).all(axis=1)]
        values = graph.log_potential(states)
        if values.max() == -np.inf:
            with pytest.raises(ImpossibleGraph):
                Exact().infer(graph.condition(evidence))
            continue
        n_possible += 1
        result = Exact().infer(graph.condition(evidence))
        log_z = np.logaddexp.reduce(values)
        assert result.log_z == pytest.approx(log_z, rel=1e-9, abs=1e-9)
        assert result.log_potential == pytest.approx(values.max(), rel=1e-9, abs=1e-9)
        free = np.setdiff1d(np.arange(len(sizes)), observed)
        for row, v in zip(result.marginals, free, strict=True):
            expected = np.bincount(states[:, v], np.exp(values - log_z), int(sizes[v]))
            np.testing.assert_allclose(row[: sizes[v]], expected, rtol=1e-7, atol=1e-9)
    assert n_possible > 1500


@pytest.mark.slow
@examples(300)
@given(st.integers(0, 2**32))
def test_marginals_counts_log_z_and_best_states_are_those_of_the_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, n_best = random_graph(rng), int(rng.integers(1, 6))
    states = all_states(graph)
    values = graph.log_potential(states)
    backend = Exact(n_best=n_best, n_samples=3, n_threads=int(rng.integers(1, 3)))
    if np.isneginf(values).all():
        with pytest.raises(ImpossibleGraph):
            backend.infer(graph)
        return
    result = backend.infer(graph, seed=1)
    log_z = np.logaddexp.reduce(values)
    assert result.log_z == pytest.approx(log_z, rel=1e-12, abs=1e-9)
    p = np.exp(values - log_z)
    for i, row in enumerate(result.marginals):
        np.testing.assert_allclose(row, np.bincount(states[:, i], p, len(row)), atol=1e-9)
    for group, counts in zip(graph.factors, result.table_counts, strict=True):
        expected = np.zeros(group.tables.shape)
        for scope, table, scale in zip(group.scopes, group.table_of_factor, group.scale, strict=True):
            np.add.at(expected, (np.full(len(p), table), *states[:, scope].T), p * scale)
        np.testing.assert_allclose(counts, expected, atol=1e-9)
    best = np.sort(values[np.isfinite(values)])[::-1][:n_best]
    np.testing.assert_allclose(result.best_log_potentials, best, rtol=1e-12, atol=1e-9)
    assert len(np.unique(result.best_states, axis=0)) == len(best)
    np.testing.assert_array_equal(result.state, result.best_states[0])
    assert np.isfinite(graph.log_potential(result.samples[0])).all()


def test_samples_have_the_exact_distribution() -> None:
    graph = random_graph(np.random.default_rng(12))
    states, n = all_states(graph), 200_000
    values = graph.log_potential(states)
    p = np.exp(values - np.logaddexp.reduce(values))
    samples = Exact(n_samples=n).infer(graph, seed=5).samples[0]
    sizes = graph.domains.sizes
    counts = np.bincount(np.ravel_multi_index(tuple(samples.T), tuple(sizes)), minlength=len(p))
    assert (np.abs(counts / n - p) <= 5 * np.sqrt(p / n) + 1e-9).all()


def test_large_tables_are_shared_by_threads_with_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[ThreadPoolExecutor] = []

    class RecordedPool(ThreadPoolExecutor):
        def __init__(self, n_threads: int) -> None:
            super().__init__(n_threads)
            pools.append(self)

    monkeypatch.setattr(elimination, "ThreadPoolExecutor", RecordedPool)
    monkeypatch.setattr(elimination, "_SLICE_BLOCKS", 32)  # fewer than the blocks of a slice
    rng = np.random.default_rng(1)
    couplings = np.triu(rng.normal(size=(21, 21)), 1)
    graph = complete_graph(couplings + couplings.T, rng.normal(size=21))  # its largest table has 2^21 cells
    for record, n_passes in ((None, 3), (Record(best=False, marginals=True), 2)):
        pools.clear()
        one = Exact(n_threads=1).infer(graph, record=record)
        assert not pools
        two = Exact(n_threads=2).infer(graph, record=record)
        assert len(pools) == n_passes  # of sums and marginals, and of maxima if requested
        assert one.log_z == two.log_z
        assert one.log_potential == two.log_potential
        np.testing.assert_array_equal(one.marginals, two.marginals)
        if record is None:
            np.testing.assert_array_equal(one.table_counts[1], two.table_counts[1])


def test_marginals_use_up_the_messages() -> None:
    """A second use would read memory that the pass for marginals has freed."""
    reduced = reduce_tables(compile_tables(complete_graph(0.3, n_variables=5)))
    order = find_elimination_order(np.array(reduced.sizes, np.int32), reduced.scopes)
    messages = BucketTree(reduced, order).collect()
    total = messages.total
    messages.distribute(with_tables=True)
    assert messages.total == total
    for use in (
        lambda: Beliefs(messages.loop, True),
        messages.loop.best_state,
        lambda: messages.loop.log_rows(0, np.zeros((1, 5), np.int32)),
    ):
        with pytest.raises(ValueError, match=r"marginals|no other pass"):
            use()


@pytest.mark.parametrize("seed", range(4))
def test_large_buckets_with_several_messages_are_divided(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Two groups of variables joined to one set: the last bucket has two messages, whose variables differ."""
    monkeypatch.setattr(elimination, "_SLICE_BLOCKS", 7)
    rng = np.random.default_rng(seed)
    left, right = list(range(12)), list(range(6, 18))
    scopes = [(18, *left), (19, *right)]
    tables = [TableFactors([scope], rng.normal(size=(1,) + (2,) * 13)) for scope in scopes]
    pairs = TableFactors([(v, 20 + v % 2) for v in range(18)], rng.normal(size=(18, 2, 3)))
    graph = compile_tables(FactorGraph([2] * 20 + [3] * 2, [*tables, pairs]))
    reduced = reduce_tables(graph)
    order = EliminationOrder(np.array([18, 19, 20, 21, *range(18)], np.int32), 21.0, 18, 2**18, 2**19)
    found = []
    for n_threads in (1, 3):
        tree = elimination.BucketTree(reduced, order, n_threads)
        messages = tree.collect()
        beliefs = messages.distribute(with_tables=True)
        found.append([beliefs.marginals, *(beliefs.table(t) for t in set(tree.table_of_factor))])
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)
    expected = Exact().infer(graph).marginals  # in another order of elimination
    rows = [row[:size] for row, size in zip(expected, graph.sizes, strict=True)]
    np.testing.assert_allclose(found[0][0], np.concatenate(rows), rtol=1e-9)


def subsets_of(n: int, size: int, count: int) -> list[list[int]]:
    """Different sets of ``size`` of the variables 1 to ``n``, which together contain all these variables."""
    rng = np.random.default_rng(0)
    return [sorted((rng.permutation(n)[:size] + 1).tolist()) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize(
    ("n_states", "n", "scopes", "n_slices"),
    [
        (2, 20, [range(1, 21)], 4),
        (2, 20, [[*range(1, 6), *range(10, 21)], range(6, 21)], 1),  # each outer variable is missing in a large table
        (2, 20, [range(2, 17), [1, *range(3, 21)]], 4),  # the first two outer variables are
        (2, 20, subsets_of(20, 14, 8), 4),  # 4 copies of 8 tables of 2^15 cells are as large as the message
        (2, 20, subsets_of(20, 14, 9), 2),
        (2, 20, subsets_of(20, 14, 17), 1),
        (64, 15, [range(1, 10), range(10, 16)], 4),  # each slice has a copy of a table of 4096 cells
        (64, 15, [range(1, 10), range(9, 16)], 2),  # but not of one of 8192 cells, which has one outer variable
    ],
)
def test_slices_of_a_large_bucket_do_not_change_its_marginals(n_states, n, scopes, n_slices, is_flat) -> None:
    """Variable 0 is eliminated first, and the outer variables of its bucket are 1 to 9.

    Flat tables have log-potentials of 0. Together with one state of variable 0 for each state of a table, all marginals
    are multiples of powers of two, so they have the same bits in every order of summation.
    """
    rng = np.random.default_rng(0)
    tables = []
    for number, scope in enumerate(scopes):
        shape = (n_states, *[2] * len(scope))
        table = np.zeros(shape) if is_flat else rng.normal(size=shape)
        if is_flat and number == 0:
            table = np.where(np.arange(n_states)[:, None] == rng.integers(n_states, size=2 ** len(scope)), 0.0, -np.inf)
        tables.append(TableFactors([(0, *scope)], table.reshape(1, *shape)))
    graph = compile_tables(FactorGraph([n_states, *[2] * n], tables))
    order = EliminationOrder(np.array([0, *range(n, 0, -1)], np.int32), n + 6.0, n, 2**n, 2**n)
    found = []
    for n_threads in (1, 3):
        tree = BucketTree(reduce_tables(graph), order, n_threads)
        beliefs = Beliefs(tree.collect().loop, True)
        while (bucket := beliefs.large_bucket()) is None:
            beliefs.advance(2**22)
        assert bucket.n_slices == n_slices
        del bucket
        beliefs = tree.collect().distribute(with_tables=True)
        found.append([tree.factor_belief(beliefs, *host) for host in tree.reduced.hosts])
        found[-1].append(beliefs.marginals)
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)
    joint = np.zeros([n_states, *[2] * n])
    for group, scope in zip(tables, scopes, strict=True):
        joint += group.tables[0].reshape([n_states, *(2 if v in scope else 1 for v in range(1, n + 1))])
    joint = np.exp(joint - joint.max())
    joint /= joint.sum()
    for belief, scope in zip(found[0], scopes, strict=False):
        expected = joint.sum(axis=tuple(v for v in range(1, n + 1) if v not in scope))
        if is_flat:
            np.testing.assert_array_equal(belief, expected)
        else:
            np.testing.assert_allclose(belief, expected, rtol=1e-10)


def test_a_clock_stops_runs_that_are_too_slow() -> None:
    clock = EliminationClock(1000.0, 1e9)
    clock.advance(1.0)  # too early to measure the speed
    clock.began -= 500
    clock.advance(5e8)
    with pytest.raises(OutOfTime):
        EliminationClock(1e-9, 1.0).advance(1.0)
    late = EliminationClock(1000.0, 1e9)
    late.began -= 500
    with pytest.raises(OutOfTime):
        late.advance(1e8)  # a tenth in half of the time


def test_a_search_for_an_order_ends_after_its_time() -> None:
    scopes = [(v, w) for v in range(40) for w in range(v)]
    assert find_elimination_order(np.full(40, 2, np.int32), scopes, seconds=0.0).log2_cells == np.inf
    assert find_elimination_order(np.full(40, 2, np.int32), scopes).width == 39


@pytest.mark.slow
def test_a_long_chain_is_linear() -> None:
    chain = chain_graph(np.random.default_rng(2).normal(size=(20_000, 3)), np.zeros((3, 3)) + np.eye(3))
    result, plan = Exact().infer(chain), Exact().plan(chain)
    assert plan.width == 1
    assert np.isfinite(result.log_z)
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1)


def test_far_apart_log_potentials_do_not_underflow() -> None:
    graph = FactorGraph([2, 2], [TableFactors([[0, 1]], [[[0, -400], [-400, 800]]])])
    result = Exact().infer(graph)
    assert result.marginals[0, 1] == 1
    apart = FactorGraph([2], [TableFactors([[0]], [[0, -800.0]]), TableFactors([[0]], [[0, 900.0]])])
    assert Exact().infer(apart).log_z == pytest.approx(100)


def test_tables_beyond_the_last_one_are_refused():
    reduced = reduce_tables(compile_tables(ising(0.3, np.zeros((3, 3)))))
    tree = BucketTree(reduced, find_elimination_order(np.array(reduced.sizes, np.int32), reduced.scopes))
    n_tables = int(tree.loop.table_of_factor.max()) + 1
    scopes = [tree.loop.scope_of_table(table) for table in range(n_tables)]
    assert all(set(scope) <= set(range(9)) for scope in scopes)
    for table in (-1, -(2**62), 2**62, 10**6):
        with pytest.raises(ValueError, match="the table does not exist"):
            tree.loop.scope_of_table(table)
    with pytest.raises(OverflowError):
        tree.loop.scope_of_table(2**63)


@pytest.mark.slow
def test_reduction_keeps_the_log_potential_of_every_possible_state():
    rng = np.random.default_rng(0)
    for _ in range(100):
        sizes = rng.integers(1, 4, 5)
        groups = []
        for arity in (0, 1, 2, 2, 3):
            scopes = np.array([rng.permutation(5)[:arity] for _ in range(2)]).reshape(2, arity)
            if (sizes[scopes] != sizes[scopes[:1]]).any():
                scopes = scopes[:1]
            table = rng.normal(size=(1, *sizes[scopes[0]]))
            if arity:
                table[rng.random(table.shape) < 0.15] = -np.inf
            groups.append(TableFactors(scopes, table, scale=rng.uniform(0.5, 2, len(scopes))))
        graph = FactorGraph(sizes, groups)
        try:
            merged = reduce_graph(np.asarray(sizes, np.int32), groups)
        except ImpossibleGraph:
            continue
        absorbed = merged.absorb_factors()
        assert not any(set(a) < set(b) for a, b in itertools.permutations(absorbed.scopes, 2))
        for reduced in (merged, absorbed):
            assert all(list(scope) == sorted(scope) for scope in reduced.scopes)
            rebuilt = reduced.factor_graph()
            assert len(rebuilt.factors) == len({table.shape for table in reduced.tables})
            for state in itertools.product(*map(range, reduced.sizes)):
                whole = reduced.original_states(np.array([state], np.int32).reshape(1, -1))[0]
                total = reduced.constant + sum(
                    table[tuple(state[v] for v in scope)]
                    for scope, table in zip(reduced.scopes, reduced.tables, strict=True)
                )
                assert total == pytest.approx(graph.log_potential(whole), abs=1e-12)
                assert reduced.constant + rebuilt.log_potential(state) == pytest.approx(total, abs=1e-12)
            scopes = [scope for group in groups for scope in group.scopes.tolist()]
            for scope, (factor, axes) in zip(scopes, reduced.hosts, strict=True):
                left = [v for v in scope if v in reduced.variables]
                host = [reduced.variables[reduced.scopes[factor][axis]] for axis in axes]
                assert (factor == -1) == (not left)
                assert host == left
