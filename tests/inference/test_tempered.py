"""Blocks, replicas at several temperatures, and the backend that samples with them."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from time import process_time

import numpy as np
import pytest

from herdner._ext.replicas import Replicas
from herdner.graph import FactorGraph, TableFactors, compile_tables, ising
from herdner.inference import UnsupportedGraph, make_backend, tempering
from herdner.inference.backends import tempered
from herdner.inference.backends.annealed_importance import AnnealedImportance
from herdner.inference.backends.tempered import Tempered
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.tempering import (
    Ensemble,
    TemperedRun,
    affordable_whole_log2_cells,
    affordable_width,
    equalise_rejections,
    find_blocks,
    find_whole_block,
    mixing_ratio,
    penalties_of,
)


def random_graph(rng: np.random.Generator, n: int = 6, zeros: float = 0.1) -> FactorGraph:
    """Factors of one to four of ``n`` variables with one to three states; one joint state has no entry of -inf."""
    sizes = rng.integers(1, 4, size=n)
    allowed = [int(rng.integers(size)) for size in sizes]
    groups = []
    for _ in range(7):
        scope = rng.choice(n, size=int(rng.integers(1, 5)), replace=False)
        table = rng.normal(size=[1, *sizes[scope]])
        table[rng.random(table.shape) < zeros] = -np.inf
        table[(0, *(allowed[v] for v in scope))] = 0.0
        groups.append(TableFactors([scope], table))
    return FactorGraph(sizes, groups)


def pieces(graph: FactorGraph) -> tuple[list[int], list[tuple[int, ...]], list[np.ndarray]]:
    """Sizes, scopes and tables of a graph whose groups have one factor each."""
    groups = graph.factors
    scopes = [tuple(int(v) for v in group.scopes[0]) for group in groups]
    return graph.domains.sizes.tolist(), scopes, [np.array(group.tables[0]) for group in groups]


def tempered_probabilities(graph: FactorGraph, beta: float, penalty: float) -> dict[tuple[int, ...], float]:
    """Probability of each joint state at an inverse temperature, by enumeration."""
    sizes, scopes, tables = pieces(graph)
    values = {}
    for state in itertools.product(*map(range, sizes)):
        entries = np.array([table[tuple(state[v] for v in s)] for s, table in zip(scopes, tables, strict=True)])
        is_finite = np.isfinite(entries)
        violations = int((~is_finite).sum())
        values[state] = np.exp(beta * entries[is_finite].sum() - (penalty * violations if violations else 0.0))
    total = sum(values.values())
    return {state: value / total for state, value in values.items()}


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_contain_all_variables_and_have_small_separators(width, seed):
    rng = np.random.default_rng(seed)
    n = 30
    scopes = [tuple(rng.choice(n, size=int(rng.integers(1, 5)), replace=False).tolist()) for _ in range(40)]
    blocks = find_blocks([2] * n, scopes, width, rng)
    assert set(itertools.chain(*blocks)) == set(range(n))
    for block in blocks:
        assert len(set(block)) == len(block)
        rest = [set(scope) & set(block) for scope in scopes]
        for v in block:
            bucket = set().union(*(scope for scope in rest if v in scope)) - {v}
            assert len(bucket) <= width
            rest = [scope for scope in rest if v not in scope] + [bucket]


def test_blocks_of_width_0_are_single_variables():
    assert np.array_equal(find_blocks([2, 3], [(0, 1)], 0, np.random.default_rng(0)), [[0], [1]])


BETAS = np.array([1.0, 0.6, 0.2])


def move(replicas: Replicas, step: str) -> None:
    """Move all replicas by a step that conserves their distributions, at the inverse temperatures ``BETAS``."""
    if step in ("forward", "reverse"):  # without exchanges
        for r, (beta, penalty) in enumerate(zip(BETAS, penalties_of(BETAS), strict=True)):
            replicas.anneal(r, [beta, beta], [penalty, penalty], reverse=step == "reverse")
    else:
        replicas.advance(1, update=step == "round")


def moved_states(
    graph: FactorGraph, width: int, step: str, rng: np.random.Generator, n_runs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw ``n_runs`` states of each replica from its distribution, and move them by one step.

    Returns:
        All joint states [S, V], their probabilities at each temperature [3, S], and the indices of the states before
        and after the step [n_runs, 3].
    """
    sizes, scopes, tables = pieces(graph)
    penalties = penalties_of(BETAS)
    exact = [tempered_probabilities(graph, *pair) for pair in zip(BETAS, penalties, strict=True)]
    states, probabilities = np.array(list(exact[0])), np.array([list(each.values()) for each in exact])
    blocks = find_blocks(sizes, scopes, width, np.random.default_rng(0))
    replicas = Replicas(sizes, scopes, tables, blocks, BETAS, penalties, int(rng.integers(2**30)))
    before = np.array([rng.choice(len(states), size=n_runs, p=p) for p in probabilities]).T
    after = np.empty_like(before)
    for run in range(n_runs):
        replicas.states = states[before[run]]
        move(replicas, step)
        after[run] = np.ravel_multi_index(replicas.states.T, sizes)
    return states, probabilities, before, after


def pairwise_sums(states: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the total weight of each pair of states of two variables, or of one variable."""
    is_state = np.concatenate([states == x for x in range(states.max() + 1)], axis=1).astype(float)
    return is_state.T @ (weights[:, None] * is_state)


def dense_graph(rng: np.random.Generator, n: int) -> FactorGraph:
    """Factors of all pairs of ``n`` binary variables, some of which forbid a state; state 0 of all is allowed."""
    groups = []
    for pair in itertools.combinations(range(n), 2):
        table = rng.normal(scale=0.5, size=(1, 2, 2))
        table[0, 1, 1] = -np.inf if rng.random() < 0.1 else table[0, 1, 1]
        groups.append(TableFactors([pair], table))
    return FactorGraph([2] * n, groups)


@pytest.mark.slow
@pytest.mark.parametrize("width", [0, 1, 3, 8])
@pytest.mark.parametrize("step", ["exchange", "round", "reverse"])
@pytest.mark.parametrize("seed", range(3))
def test_a_round_conserves_the_distribution_of_every_replica(seed, step, width):
    """The blocks of width 8 have nine of eleven variables, which differ from block to block."""
    rng, n_runs = np.random.default_rng(seed), 4000
    graph = dense_graph(rng, 11) if width == 8 else random_graph(rng, 4)
    states, probabilities, before, after = moved_states(graph, width, step, rng, n_runs)
    assert (after != before).any(axis=1).mean() > 0.1
    for r in range(3):
        counts = np.bincount(after[:, r], minlength=len(states))
        for observed, expected in [
            (counts, probabilities[r]),
            (pairwise_sums(states, counts), pairwise_sums(states, probabilities[r])),
        ]:
            deviation = 5 * np.sqrt(n_runs * expected * (1 - expected).clip(0)) + 5 * (expected > 0)
            assert (np.abs(observed - n_runs * expected) <= deviation).all()


@pytest.mark.slow
def test_a_reverse_step_is_the_reversal_of_a_round():
    """With the distribution of a replica at the start, (before, after) and (after, before) are equally distributed."""
    n_runs, pairs = 10_000, []
    couplings = [TableFactors([scope], [[[0.5, -0.5], [-0.5, 0.5]]]) for scope in ([0, 1], [1, 2], [0, 2])]
    graph = FactorGraph([2] * 3, [*couplings, TableFactors([[0]], [[-0.5, 0.5]]), TableFactors([[1]], [[0.5, -0.5]])])
    for step in ("forward", "reverse"):
        states, _, before, after = moved_states(graph, 0, step, np.random.default_rng(1), n_runs)
        first, last = (before, after) if step == "forward" else (after, before)
        pairs.append(np.bincount(first[:, 0] * len(states) + last[:, 0], minlength=len(states) ** 2))
    assert (np.abs(pairs[0] - pairs[1]) <= 5 * np.sqrt(pairs[0] + pairs[1]) + 5).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [(0, 1), (1, 1), (1, 3), (2, 4), (8, 2)], ids="width {0[0]}, {0[1]} replicas".format
)
@pytest.mark.parametrize("seed", range(6))
def test_marginals_are_those_of_elimination(seed, options):
    width, n_replicas = options
    graph = random_graph(np.random.default_rng(seed), zeros=0.1 if n_replicas > 1 else 0.0)
    exact = make_backend("exact").infer(graph)
    result = make_backend("tempered", n_rounds=4000, width=width, n_replicas=n_replicas).infer(graph, seed)
    np.testing.assert_allclose(result.marginals, exact.marginals, atol=0.03)
    assert result.log_potential == pytest.approx(exact.log_potential)


def test_a_time_limit_for_marginals_is_spent_on_one_chain_of_the_whole_graph(monkeypatch):
    """A block that a half of the limit does not allow is drawn if the whole limit allows it, because it is exact."""
    graph = compile_tables(ising(0.4, np.random.default_rng(0).normal(size=(6, 6))))
    shares = []

    def affordable(seconds, n_chains):
        shares.append((seconds, n_chains))
        return 24.0

    monkeypatch.setattr(tempered, "affordable_whole_log2_cells", affordable)
    options = {"seconds": 0.4, "n_chains": 2, "n_threads": 1}
    result = make_backend("tempered", **options).infer(graph, 0)
    np.testing.assert_allclose(result.marginals, make_backend("exact").infer(graph).marginals, atol=1e-9)
    assert make_backend("tempered", n_samples=4, **options).infer(graph, 0).samples.shape == (2, 2, 36)
    assert shares == [(0.4, 1), (0.2, 2)]


def test_a_block_that_is_the_whole_graph_is_exact():
    graph = ising(0.7, np.random.default_rng(1).normal(size=(1, 30)))
    result = make_backend("tempered", n_rounds=1, burn_in=0, width=1).infer(graph, 0)
    np.testing.assert_allclose(result.marginals, make_backend("exact").infer(graph).marginals, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_a_cheap_graph_is_one_block_with_exact_marginals(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(4, 9)), zeros=0.3)
    expected = make_backend("exact").infer(graph)
    for options in ({"n_rounds": 1, "burn_in": 0}, *([{"seconds": 1.0}] if seed < 3 else [])):
        result = make_backend("tempered", n_samples=2, **options).infer(graph, seed)
        np.testing.assert_allclose(result.marginals, expected.marginals, atol=1e-12)
        assert graph.log_potential(result.state) == pytest.approx(result.log_potential)
        assert result.log_potential <= expected.log_potential + 1e-9


@pytest.mark.slow
def test_states_of_one_block_are_independent():
    graph = ising(1.5, np.random.default_rng(0).normal(size=(4, 4)) / 10)
    result = make_backend("tempered", n_rounds=20_000, n_samples=20_000, n_chains=1, burn_in=0).infer(graph, 1)
    up = result.samples[0].astype(float)
    np.testing.assert_allclose(up.mean(axis=0), result.marginals[:, 1], atol=0.02)
    assert abs(np.corrcoef(up[1:, 0], up[:-1, 0])[0, 1]) < 0.03


def test_one_block_needs_time_and_memory(monkeypatch):
    reduced = reduce_tables(compile_tables(ising(0.5, np.zeros((12, 12)))))
    assert find_whole_block(reduced, 12.0) is None
    block = find_whole_block(reduced, 24.0)
    assert sorted(block) == list(range(144))
    limits = [affordable_whole_log2_cells(seconds, 1) for seconds in (1.0, 4.0, 1e9)]
    assert limits[0] < limits[1] <= limits[2]
    monkeypatch.setattr("herdner.inference.tempering.free_memory", lambda: 48.0 * 2**10)
    assert affordable_whole_log2_cells(1e9, 4) == 8.0


def test_blocks_are_narrow_if_the_time_is_short():
    reduced = reduce_tables(compile_tables(ising(0.5, np.zeros((60, 60)))))
    assert affordable_width(reduced, 8, 1000, np.inf) == 8
    seconds = [1000 * tempering.update_seconds(reduced, width) + 1 for width in (8, 4, 2, 1)]
    assert [affordable_width(reduced, 8, 1000, limit) for limit in seconds] == [8, 4, 2, 1]
    assert affordable_width(reduced, 8, 1000, 1e-9) == 1
    assert affordable_width(reduced, 0, 1000, 1e-9) == 0


@pytest.mark.parametrize("backend", [Tempered, AnnealedImportance])
def test_the_least_time_is_that_of_the_width_that_the_limit_allows(backend):
    """With blocks of the preferred width, not even the shortest run would fit into this limit."""
    rng = np.random.default_rng(0)
    scopes = [sorted(rng.choice(60, 12, replace=False)) for _ in range(60)]
    graph = FactorGraph([2] * 60, [TableFactors(scopes, rng.normal(size=(60, *[2] * 12)))])
    reduced = reduce_tables(compile_tables(graph))
    seconds = 2 * backend(seconds=1e-3).least_seconds(reduced)
    assert seconds < 0.6 * backend(seconds=1e6).least_seconds(reduced)
    assert backend(seconds=seconds).least_seconds(reduced) <= seconds


@pytest.mark.slow
def test_samples_are_joint_states_at_equal_distances():
    graph = random_graph(np.random.default_rng(3), zeros=0.05)
    exact = make_backend("exact").infer(graph)
    result = make_backend("tempered", n_rounds=20_000, n_samples=2001, n_chains=2).infer(graph, 1)
    assert result.samples.shape == (2, 1001, len(exact.marginals))
    states = result.samples.reshape(-1, len(exact.marginals))
    assert all(graph.log_potential(state) > -np.inf for state in states)
    for v, row in enumerate(exact.marginals):
        frequencies = np.bincount(states[:, v], minlength=len(row)) / len(states)
        np.testing.assert_allclose(frequencies, row, atol=0.06)
    few = make_backend("tempered", n_rounds=5, n_samples=100).infer(graph, 1)
    assert few.samples.shape[:2] == (2, 5)
    timed = make_backend("tempered", seconds=2.0, n_samples=10).infer(graph, 1)
    assert timed.samples.shape[:2] == (2, 5)


@pytest.mark.slow
def test_replicas_move_between_modes():
    graph = ising(0.8, np.full((8, 8), 0.002))
    exact = make_backend("exact").infer(graph).marginals
    for width in (0, 1):
        result = make_backend("tempered", n_rounds=4000, burn_in=1000, width=width, n_replicas=10).infer(graph, 1)
        assert np.abs(result.marginals - exact).max() < 0.1
    stuck = make_backend("gibbs", n_sweeps=4000).infer(graph, 1)
    assert np.abs(stuck.marginals - exact).max() > 0.2


def test_results_do_not_depend_on_threads():
    graph = random_graph(np.random.default_rng(4))
    results = [make_backend("tempered", n_rounds=300, n_threads=n, n_chains=3).infer(graph, 5) for n in (1, 3)]
    np.testing.assert_array_equal(results[0].marginals, results[1].marginals)
    np.testing.assert_array_equal(results[0].state, results[1].state)


def colouring(n: int) -> FactorGraph:
    """Complete graph of ``n`` variables with three states, all different."""
    pairs = list(itertools.combinations(range(n), 2))
    return FactorGraph([3] * n, [TableFactors(pairs, np.where(np.eye(3) > 0, -np.inf, 0.0)[None])])


@pytest.mark.parametrize("width", [0, 1, 3])
def test_constraints_without_a_solution_are_reported(width, monkeypatch):
    monkeypatch.setattr("herdner.inference.tempering.has_solver", lambda: False)
    with pytest.raises(
        UnsupportedGraph, match="'tempered' found no joint state that the -inf entries allow; increase `n_rounds`"
    ):
        make_backend("tempered", n_rounds=50, width=width).infer(colouring(4), 0)


@pytest.mark.parametrize("width", [0, 1])
def test_replicas_cross_constraints(width):
    result = make_backend("tempered", n_rounds=3000, width=width).infer(colouring(3), 0)
    assert result.log_potential == 0.0
    np.testing.assert_allclose(result.marginals, 1 / 3, atol=0.05)


def test_a_start_is_the_first_state():
    graph = colouring(3)
    result = make_backend("tempered", n_rounds=1, burn_in=0, n_replicas=1, width=0).infer(graph, 0, start=[2, 0, 1])
    np.testing.assert_array_equal(result.marginals.argmax(axis=1), [2, 0, 1])
    with pytest.raises(ValueError, match="start has log-potential -inf"):
        make_backend("tempered").infer(graph, 0, start=[0, 0, 1])


def test_temperatures_are_placed_at_equal_rejections():
    betas = np.array([1.0, 0.5, 0.0])
    np.testing.assert_allclose(equalise_rejections(betas, np.array([0.4, 0.2])), [1.0, 0.625, 0.0])
    placed = equalise_rejections(betas, np.array([1.0, 1.0]))
    assert placed[0] == 1.0
    assert placed[-1] == pytest.approx(0.4)
    assert equalise_rejections(np.array([1.0, 0.8]), np.array([0.1]))[-1] < 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [0, 2]}, "sizes must be at least 1"),
        ({"scopes": [(0, 0)]}, "distinct variables"),
        ({"scopes": [(0, 2)]}, "distinct variables"),
        ({"tables": [np.zeros((2, 3))]}, "the shape of a table"),
        ({"tables": [np.full((2, 2), np.nan)]}, "finite or -inf"),
        ({"tables": []}, "one table"),
        ({"blocks": [[0, 0]]}, "a block must name distinct variables"),
        ({"blocks": [[-1]]}, "a block must name distinct variables"),
        ({"betas": [1.0]}, "2 inverse temperatures and penalties|1 inverse temperatures and penalties"),
        ({"betas": [1.0, -1.0]}, "at least 0"),
        ({"penalties": [0.0, np.nan]}, "at least 0"),
    ],
)
def test_arguments_of_replicas_are_checked(change, message):
    arguments = {
        "sizes": [2, 2], "scopes": [(0, 1)], "tables": [np.zeros((2, 2))], "blocks": [[0, 1]],
        "betas": [1.0, 0.5], "penalties": [np.inf, 2.0], "key": 0,
    } | change  # fmt: skip
    with pytest.raises(ValueError, match=message):
        Replicas(**arguments)


def test_states_of_replicas_are_checked():
    replicas = Replicas([2, 2], [(0, 1)], [np.zeros((2, 2))], [[0, 1]], [1.0], [np.inf], 0)
    for states in ([[0, 2]], [[-1, 0]], [[0]]):
        with pytest.raises(ValueError, match="states must"):
            replicas.states = states


@pytest.mark.parametrize("name", ["n_rounds", "n_replicas", "n_chains", "seconds"])
def test_options_out_of_range_are_refused(name):
    with pytest.raises(ValueError, match=name):
        make_backend("tempered", **{name: 0})


def test_a_call_does_a_fraction_of_a_second_of_rounds():
    sizes, scopes, tables = pieces(random_graph(np.random.default_rng(0), 4))
    blocks = find_blocks(sizes, scopes, 1, np.random.default_rng(0))
    one, other = (Replicas(sizes, scopes, tables, blocks, np.ones(2), np.zeros(2), 0) for _ in range(2))
    n_rounds = one.advance(2**62, record=True)
    assert 1000 < n_rounds < 2**24
    for n in (1, n_rounds // 2, n_rounds - 1 - n_rounds // 2):
        assert other.advance(n, record=True) == n
    np.testing.assert_array_equal(one.states, other.states)
    np.testing.assert_array_equal(one.marginal_sums[0], other.marginal_sums[0])
    assert one.advance(0) == one.advance(-1) == 0


class Overridden(Replicas):
    """Replicas whose own methods would leave positions unset."""

    def _copy_factors(self, scopes, tables):
        pass

    _lay_out = _lay_out_block = _copy_factors


def test_methods_of_a_subclass_do_not_replace_the_checks():
    with pytest.raises(ValueError, match="distinct variables of the graph"):
        Overridden([2, 2], [(0, 9)], [np.zeros((2, 2))], [[0], [1]], np.ones(2), np.zeros(2), 0)
    made = Overridden([2, 2], [(0, 1)], [np.zeros((2, 2))], [[0], [1]], np.ones(2), np.zeros(2), 0)
    with pytest.raises(ValueError, match="copied once"):
        Replicas._copy_factors(made, [(0, 1)], [np.zeros((2, 2))])


def test_one_thread_at_a_time_updates_replicas():
    n = 2000
    scopes = [(v, v + 1) for v in range(n - 1)]
    tables = [np.zeros((2, 2))] * (n - 1)
    replicas = Replicas([2] * n, scopes, tables, [list(range(n))], np.ones(2), np.zeros(2), 0)
    with ThreadPoolExecutor(2) as pool:
        rounds = [pool.submit(replicas.advance, 2**62) for _ in range(2)]
        errors = [each.exception() for each in rounds]
    assert [type(each) for each in errors if each] == [ValueError]


def test_workers_share_the_replicas_of_a_round():
    sizes, scopes, tables = pieces(random_graph(np.random.default_rng(0), 5))
    betas = np.linspace(1, 0, 5)
    blocks = find_blocks(sizes, scopes, 1, np.random.default_rng(0))
    found = []
    for n_workers in (0, 1, 2, 5, 7):
        replicas = Replicas(sizes, scopes, tables, blocks, betas, penalties_of(betas), 3)
        if not n_workers:
            replicas.advance(30, record=True)
        for _ in range(30 if n_workers else 0):
            replicas.n_workers = n_workers
            for worker in reversed(range(n_workers)):
                replicas.update_share(worker, record=True)
            replicas.exchange_states()
        arrays = [replicas.states, replicas.energies, replicas.rejection_rates, *replicas.marginal_sums, replicas.best]
        found.append([*arrays, np.array(replicas.best_log_potential)])
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, another)
    for worker in (-1, 7):
        with pytest.raises(ValueError, match="there is no worker"):
            replicas.update_share(worker)
    with pytest.raises(ValueError, match="n_workers must be at least 1"):
        replicas.n_workers = 0


def test_a_worker_runs_in_one_thread_at_a_time():
    n = 200_000
    scopes, tables = [(v, v + 1) for v in range(n - 1)], [np.zeros((2, 2))] * (n - 1)
    replicas = Replicas([2] * n, scopes, tables, [list(range(n))], np.ones(8), np.zeros(8), 0)
    replicas.n_workers = 2
    calls = [lambda worker=worker: replicas.update_share(worker) for worker in (0, 0, 1)]
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(call) for call in calls]
        refused = []
        for call in (lambda: replicas.advance(1), replicas.exchange_states, lambda: setattr(replicas, "n_workers", 3)):
            if not all(each.done() for each in runs):
                try:
                    call()
                except ValueError as error:
                    refused.append(error)
        errors = [each.exception() for each in runs]
    assert errors[2] is None
    assert sum(isinstance(each, ValueError) for each in errors) == 1
    assert refused


@pytest.mark.parametrize(("n_chains", "n_threads"), [(1, 2), (1, 5), (2, 4), (2, 16)])
def test_threads_share_the_replicas_of_a_chain(monkeypatch, n_chains, n_threads):
    graph = random_graph(np.random.default_rng(6))
    options = {"n_rounds": 120, "burn_in": 60, "n_chains": n_chains, "width": 1, "n_samples": 10}
    one = make_backend("tempered", n_threads=1, **options).infer(graph, 5)
    monkeypatch.setattr(tempering, "_SHARED_ROUNDS", 2**62)
    n_workers = []
    share = TemperedRun._share_rounds

    def recorded(run, *arguments):
        n_workers.append(run.ensembles[0].replicas.n_workers)
        share(run, *arguments)

    monkeypatch.setattr(TemperedRun, "_share_rounds", recorded)
    several = make_backend("tempered", n_threads=n_threads, **options).infer(graph, 5)
    assert set(n_workers) == {min(n_threads // n_chains, 8)}
    np.testing.assert_array_equal(one.marginals, several.marginals)
    np.testing.assert_array_equal(one.samples, several.samples)
    np.testing.assert_array_equal(one.state, several.state)


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "n_replicas"), [(0.2, [1] * 8), (1.2, [1] * 8 + [8] * 2)])
def test_chains_that_mix_need_no_tempering(monkeypatch, coupling, n_replicas):
    """With the strong coupling, chains of single-site Gibbs sampling stay in one of two modes."""
    built = []
    of = Ensemble.of

    def recorded(reduced, n_replicas, *arguments):
        built.append(n_replicas)
        return of(reduced, n_replicas, *arguments)

    monkeypatch.setattr(Ensemble, "of", recorded)
    for module in (tempered, tempering):  # the processor time does not depend on the load of the machine
        monkeypatch.setattr(module, "perf_counter", process_time)
    graph = compile_tables(ising(coupling, 0.02 * np.random.default_rng(0).normal(size=(8, 8))))
    result, disagreement = Tempered(seconds=3.0, n_samples=40, n_threads=1).sample(graph, 0, allow_whole_block=False)
    assert built == n_replicas
    assert result.samples.shape[:2] == ((8, 5) if len(built) == 8 else (2, 20))
    assert disagreement < 0.3
    np.testing.assert_allclose(result.marginals, make_backend("exact").infer(graph).marginals, atol=0.2)


def test_the_mixing_ratio_compares_chains_with_halves_of_chains():
    rng = np.random.default_rng(0)
    p = rng.random((1, 50, 1))
    half = rng.binomial(100, p, (8, 50, 1)), np.full((8, 50, 1), 100)
    rest = rng.binomial(100, p, (8, 50, 1)), np.full((8, 50, 1), 100)
    whole = half[0] + rest[0], half[1] + rest[1]
    assert mixing_ratio(half, whole) == pytest.approx(1, abs=0.1)
    modes = 100.0 * (np.arange(8) % 2)[:, None, None]
    apart = half[0] + modes, half[1]
    assert mixing_ratio(apart, (whole[0] + 2 * modes, whole[1])) > 4
    assert mixing_ratio(half, half) == np.inf
    few = modes * (np.arange(50) < 1)[:, None]  # only one variable stays in different modes
    assert mixing_ratio((half[0] + few, half[1]), (whole[0] + 2 * few, whole[1])) > 4
