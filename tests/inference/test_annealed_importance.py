"""Annealed importance sampling: estimates and intervals of log Z."""

from __future__ import annotations

import math
import re
from functools import partial
from itertools import count

import numpy as np
import pytest

from herdner._ext.replicas import Replicas
from herdner.graph import FactorGraph, TableFactors, ising
from herdner.inference import UnsupportedGraph, make_backend, tempering
from herdner.inference.backends import annealed_importance
from herdner.inference.backends.annealed_importance import AnnealedImportance
from herdner.inference.elimination_order import reduce_graph
from herdner.inference.importance import bennett_estimate, importance_interval, log_mean_exp
from herdner.inference.tempering import Ensemble, TemperedRun, penalties_of


def small_graph(seed: int) -> FactorGraph:
    """Factors of one to four of eight variables, with entries of -inf, or a grid of strong couplings."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return ising(0.6, 0.3 * rng.normal(size=(5, 5)))
    sizes = rng.integers(1, 4, size=8)
    allowed = rng.integers(0, sizes)
    groups = []
    for _ in range(10):
        scope = rng.choice(8, size=int(rng.integers(1, 5)), replace=False)
        table = rng.normal(size=[1, *sizes[scope]])
        table[rng.random(table.shape) < 0.1] = -np.inf
        table[(0, *allowed[scope])] = 0.0
        groups.append(TableFactors([scope], table))
    return FactorGraph(sizes, groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "n_runs", "least"),
    [(0, 20, 17), (2, 20, 17), pytest.param(0, 100, 95, marks=pytest.mark.slow)],  # 95 % are expected
)
def test_intervals_contain_log_z(width, n_runs, least):
    contained, widths = 0, []
    for seed in range(n_runs):
        graph = small_graph(seed)
        backend = make_backend("annealed-importance", n_particles=20, n_temperatures=30, width=width)
        result = backend.infer(graph, seed)
        assert result.log_z_interval is not None
        low, high = result.log_z_interval
        assert low <= result.log_z <= high
        contained += low <= make_backend("exact").infer(graph).log_z <= high
        widths.append(high - low)
    assert contained >= least
    assert np.mean(widths) < 2


def test_more_temperatures_give_narrower_intervals():
    graph = small_graph(1)
    widths = []
    for n_temperatures in (5, 200):
        options = {"n_particles": 30, "n_temperatures": n_temperatures, "width": 1}
        interval = make_backend("annealed-importance", **options).infer(graph, 0).log_z_interval
        assert interval is not None
        low, high = interval
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_weights_are_unbiased(reverse):
    rng = np.random.default_rng(3)
    table = rng.normal(size=(2, 3))
    table[1, 2] = 0.0 if reverse else -np.inf  # reverse weights are conditional on possible forward runs
    replicas = Replicas([2, 3], [(0, 1)], [table], [[0], [1]], [1.0], [np.inf], 3)
    betas = np.array([0.0, 0.3, 1.0])
    log_z = math.log(np.exp(table).sum()) - math.log(6)
    states, weights = np.argwhere(np.isfinite(table)), []
    p = np.exp(table[np.isfinite(table)])
    for _ in range(20_000):
        if reverse:
            replicas.states = states[rng.choice(len(states), p=p / p.sum())][None]
            weights.append(replicas.anneal(0, betas[::-1], penalties_of(betas)[::-1], reverse=True))
        else:
            replicas.draw_uniform(0)
            weights.append(replicas.anneal(0, betas, penalties_of(betas)))
    assert log_mean_exp(np.array(weights)) == pytest.approx(-log_z if reverse else log_z, abs=0.03)


def test_bennett_estimate_of_gaussian_weights():
    rng = np.random.default_rng(0)  # forward N(z - s^2/2, s^2) and reverse N(z + s^2/2, s^2) satisfy Crooks' theorem
    forward, reverse = rng.normal(100 - 2, 2, size=4000), rng.normal(100 + 2, 2, size=4000)
    assert bennett_estimate(forward, reverse) == pytest.approx(100, abs=0.15)
    low, high = importance_interval(forward[:50], reverse[:50], rng)
    assert low < 100 < high
    assert bennett_estimate(np.array([-np.inf, 1.0]), np.array([1.0, 1.0])) < 1.0
    assert bennett_estimate(np.array([-np.inf]), np.array([1.0])) == -np.inf


@pytest.mark.parametrize("beta", [np.nan, np.inf, -1.0])
def test_inverse_temperatures_out_of_range_are_refused(beta):
    replicas = Replicas([2], [[0]], [np.zeros(2)], [[0]], np.ones(1), np.ones(1), 0)
    with pytest.raises(ValueError, match="inverse temperatures and penalties must be at least 0"):
        replicas.anneal(0, np.array([1.0, beta]), np.ones(2))
    with pytest.raises(ValueError, match="inverse temperatures and penalties must be at least 0"):
        replicas.anneal(0, np.ones(2), np.array([1.0, -1.0 if beta == np.inf else beta]))


@pytest.mark.parametrize("size", [1e300, 1e308])
@pytest.mark.parametrize("seed", range(20))
def test_annealing_ends_where_log_potentials_overflow(seed, size):
    rng = np.random.default_rng(seed)
    k, scopes = int(rng.integers(2, 5)), [[0, 1], [1, 2], [0, 2], [0, 1, 2]]
    tables = [rng.choice([-size, 0.0, size, -np.inf], size=(k,) * len(scope)) for scope in scopes]
    replicas = Replicas([k] * 3, scopes, tables, [[0, 1, 2]], np.array([1.0, 0.5]), np.array([np.inf, 3.0]), seed)
    replicas.advance(50, True)
    for reverse in (False, True):
        replicas.anneal(1, rng.choice([0.0, 0.5, 2.0, 1e10, 1e308], 20), rng.choice([0.0, 1.0, np.inf], 20), reverse)
        assert (replicas.states >= 0).all()
        assert (replicas.states < k).all()


@pytest.mark.parametrize("estimate", [bennett_estimate, partial(importance_interval, rng=np.random.default_rng(0))])
@pytest.mark.parametrize(
    ("forward", "reverse", "message"),
    [
        ([1.0, np.nan], [1.0, 1.0], "`forward` must be free of NaN and +inf"),
        ([1.0, np.inf], [1.0, 1.0], "`forward` must be free of NaN and +inf"),
        ([1.0, 1.0], [1.0, np.nan], "`reverse` must be finite"),
        ([1.0, 1.0], [1.0, -np.inf], "`reverse` must be finite"),
        ([1.0, 1.0], [1.0], "`forward` and `reverse` must have equal shapes, got (2,) and (1,)"),
        ([], [], "`forward` must hold at least one run, got shape (0,)"),
        (1.0, 1.0, "`forward` must hold at least one run, got shape ()"),
    ],
)
def test_log_weights_out_of_range_are_refused(estimate, forward, reverse, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        estimate(np.array(forward), np.array(reverse))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1.0, 1e15, 1e154, 1e300, 1.7e308])
def test_the_bisection_ends_for_any_finite_log_weights(size):
    signs = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    for forward in signs * size:
        for reverse in signs * size:
            assert min(*forward, *reverse) - 50 <= bennett_estimate(forward, reverse) <= max(*forward, *reverse) + 50
            low, high = importance_interval(forward, reverse, np.random.default_rng(0))
            assert np.isfinite([low, high]).all()
            assert low <= high


def test_log_weights_of_several_experiments_are_estimated_one_by_one():
    forward, reverse = np.array([[1.0, 2.0], [-1e308, 1e308]]), np.array([[3.0, 2.0], [1e308, -1e308]])
    estimates = bennett_estimate(forward, reverse)
    assert estimates == pytest.approx([float(bennett_estimate(f, r)) for f, r in zip(forward, reverse, strict=True)])


def test_results_do_not_depend_on_threads():
    options = {"n_particles": 10, "n_temperatures": 20}
    results = [make_backend("annealed-importance", n_threads=n, **options).infer(small_graph(2), 7) for n in (1, 2)]
    assert results[0].log_z == results[1].log_z
    assert results[0].log_z_interval == results[1].log_z_interval


def test_the_time_limit_is_kept(monkeypatch):
    """By a clock that advances with each reading, so that the number of sweeps does not depend on the machine."""
    readings, sweeps, advance = count(step=0.25), [], TemperedRun.advance

    def counted(run, *args, **options):
        sweeps.append(args)
        return advance(run, *args, **options)

    for module in (annealed_importance, tempering):
        monkeypatch.setattr(module, "perf_counter", lambda: next(readings))
    monkeypatch.setattr(TemperedRun, "advance", counted)
    backend = make_backend("annealed-importance", seconds=1.0)
    result = backend.infer(small_graph(3), 0)
    assert len(sweeps) < backend.n_particles / 2
    assert result.log_z_interval[0] <= result.log_z


def test_constraints_without_a_solution_are_reported(monkeypatch):
    monkeypatch.setattr("herdner.inference.tempering.has_solver", lambda: False)
    pairs = [(a, b) for a in range(4) for b in range(a)]
    graph = FactorGraph([3] * 4, [TableFactors(pairs, np.where(np.eye(3) > 0, -np.inf, 0.0)[None])])
    with pytest.raises(UnsupportedGraph, match="'annealed-importance' found no joint state"):
        make_backend("annealed-importance", n_rounds=20).infer(graph, 0)


@pytest.mark.parametrize("name", ["n_particles", "n_temperatures", "spacing", "seconds"])
def test_options_out_of_range_are_refused(name):
    with pytest.raises(ValueError, match=name):
        make_backend("annealed-importance", **{name: 0})


def test_reverse_runs_start_at_possible_states():
    """One ensemble has a possible state, three equal variables; the other cannot leave a state of three values."""
    equal = np.where(np.eye(3, dtype=bool), 0.0, -np.inf)
    graph = FactorGraph([3] * 3, [TableFactors([[0, 1], [1, 2], [2, 0]], equal[None])])
    reduced = reduce_graph(np.full(3, 3, np.int32), graph.factors)
    starts = np.array([[1, 1, 1], [0, 1, 2]], np.int32)
    run = TemperedRun(reduced, [Ensemble.of(reduced, 1, 0, np.random.default_rng(1), start) for start in starts], 1)
    states = np.concatenate(AnnealedImportance(n_particles=4, spacing=1)._samples(run))
    assert np.isfinite(graph.log_potential(states)).all()
