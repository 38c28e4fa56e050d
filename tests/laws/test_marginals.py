"""Samplers reach exact marginals, conditional averages, table counts and joints within theoretical tolerances.

Tolerances are six standard deviations, by the exact asymptotic variance of the sweep's transition matrix
(gibbs_kernels.py): 10^4 numbers fail by chance once in 10^5 times. The tests also check that the tolerances are small.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from gibbs_families import FAMILIES
from gibbs_kernels import Sites, Sweeps, indicators
from oracle import Oracle

from herdner.graph import FactorGraph, TableFactors, chain_graph, compile_tables, ising, potts
from herdner.graph.conditionals import greedy_colouring
from herdner.graph.scan import checkerboard_scan, fixed_scan, jacobi_scan, random_scan
from herdner.inference.backends.gibbs import Gibbs, bounded_error_gibbs, qmc_gibbs
from herdner.inference.gibbs import Sobol, complete_sharing, random_bin_sharing
from herdner.inference.record import Record

N_SWEEPS = 150_000


def loop_of(n_labels: int, length: int) -> FactorGraph:
    edges = [(i, (i + 1) % length) for i in range(length if length > 2 else 1)]
    return potts(0.8, np.random.default_rng(n_labels).normal(size=(length, n_labels)), edges)


def tree() -> FactorGraph:
    edges = np.array([[(i - 1) // 2, i] for i in range(1, 8)], np.int32)
    tables = np.random.default_rng(0).normal(size=(7, 2, 2))
    return FactorGraph(np.full(8, 2), [TableFactors(edges, tables)])


def hard_grid() -> FactorGraph:
    grid = ising(1.0, 0.0, (3, 4))
    hard = TableFactors(grid.factors[1].scopes, np.array([[[0.0, 0.0], [0.0, -np.inf]]]))
    return FactorGraph(np.full(12, 2), [hard])


def constrained_chain() -> FactorGraph:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(5, 5))
    table[0, 3] = table[2, 1] = table[4, 4] = -np.inf
    return chain_graph(rng.normal(size=(3, 5)), table)


GRAPHS = {
    "grid": ising(0.4, np.random.default_rng(0).normal(size=(3, 3)) / 2),
    "torus": ising(0.3, 0.1, (3, 3), wrap=True),
    "hard grid": hard_grid(),
    "tree": tree(),
    "constrained chain": constrained_chain(),
    **{f"{k} labels": loop_of(k, n) for k, n in ((2, 8), (3, 5), (4, 4), (5, 3), (6, 3), (7, 3), (8, 2), (9, 2))},
    **{name: FAMILIES[name] for name in ("mixed_labels", "higher_order", "strong_pairs", "strong_labels")},
}


@cache
def oracle_of(name: str) -> Oracle:
    return Oracle.of_graph(GRAPHS[name])


@cache
def systematic_sweeps(name: str) -> Sweeps:
    return Sweeps.of(oracle_of(name))


def assert_marginals(found, oracle: Oracle, sweeps: Sweeps, n_sweeps: int = N_SWEEPS) -> None:
    for i, features in enumerate(indicators(sweeps.states, oracle.sizes)):
        tolerance = sweeps.tolerance(features, n_sweeps)
        assert tolerance.max() < 0.025, "a check this weak would let errors pass"
        assert (found[i, oracle.sizes[i] :] == 0).all()
        wrong = np.abs(found[i, : oracle.sizes[i]] - sweeps.target @ features) - tolerance
        assert wrong.max() <= 0, f"variable {i} is wrong by {wrong.max()} more than chance allows"


def assert_joint(found, oracle: Oracle, sweeps: Sweeps, n_sweeps: int = N_SWEEPS) -> None:
    possible = oracle.probabilities > 0
    assert not found.ravel()[~possible].any()
    assert (np.abs(found.ravel()[possible] - sweeps.target) <= sweeps.joint_tolerance(n_sweeps)).all()


def cell_features(graph: FactorGraph, states: np.ndarray) -> list[np.ndarray]:
    """Return the counts [S, cells] of table cells for each group, each factor weighted by its scale."""
    features = []
    for group in graph.factors:
        counts = np.zeros((len(states), *group.tables.shape))
        for scope, table, scale in zip(group.scopes, group.table_of_factor, group.scale, strict=True):
            counts[(np.arange(len(states)), table, *states[:, scope].T)] += scale
        features.append(counts.reshape(len(states), -1))
    return features


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_gibbs_meets_all_that_is_recorded(name):
    graph, oracle, sweeps = GRAPHS[name], oracle_of(name), systematic_sweeps(name)
    record = Record(rao_blackwell=True, table_counts=True, joint=True)
    result = Gibbs(N_SWEEPS + 50, burn_in=50, record=record).infer(graph, seed=1)
    assert_marginals(result.marginals, oracle, sweeps)
    assert_joint(result.joint, oracle, sweeps)
    for found, features in zip(result.table_counts, cell_features(graph, sweeps.states), strict=True):
        wrong = np.abs(found.ravel() - sweeps.target @ features) - sweeps.tolerance(features, N_SWEEPS)
        assert wrong.max() <= 1e-9
    for i, conditionals in enumerate(Sites(oracle).conditionals):
        seen = Sweeps.of(oracle, first=i)
        wrong = np.abs(result.rao_blackwell[i, : oracle.sizes[i]] - oracle.marginal(i))
        assert (wrong <= seen.tolerance(conditionals, N_SWEEPS)).all()


def test_the_check_finds_a_coupling_that_is_off_by_a_tenth():
    wrong = ising(0.44, np.random.default_rng(0).normal(size=(3, 3)) / 2)
    found = Gibbs(N_SWEEPS).infer(wrong, seed=1).marginals
    with pytest.raises(AssertionError, match="more than chance allows"):
        assert_marginals(found, oracle_of("grid"), systematic_sweeps("grid"))


def colour_order(graph: FactorGraph) -> list[int]:
    colour = greedy_colouring(compile_tables(graph).conditionals.blankets)
    return np.argsort(colour, kind="stable").tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_other_scans(name):
    graph, oracle, record = GRAPHS[name], oracle_of(name), Record(joint=True)
    order = np.random.default_rng(3).permutation(graph.n_variables).tolist() * 2
    for scan, sweeps in (
        (random_scan(), Sweeps.random(oracle)),
        (checkerboard_scan(), Sweeps.of(oracle, colour_order(graph))),
        (fixed_scan(order), Sweeps.of(oracle, order)),
    ):
        result = Gibbs(N_SWEEPS, scan=scan, record=record).infer(graph, seed=2)
        assert_marginals(result.marginals, oracle, sweeps)
        assert_joint(result.joint, oracle, sweeps)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_other_samplers_of_the_same_distribution(name):
    """Other samplers are no worse than Gibbs: temperature 1, quasi-random numbers, bounds, several chains."""
    graph, oracle, sweeps = GRAPHS[name], oracle_of(name), systematic_sweeps(name)
    record, n_sweeps = Record(joint=True), 2**16
    for plan in (
        Gibbs(n_sweeps, annealing=1.0, record=record),
        qmc_gibbs(n_sweeps - 1, record=record),
        qmc_gibbs(n_sweeps, driving=Sobol(), record=record),
        bounded_error_gibbs(n_sweeps, error_bound=1.5, sharing=complete_sharing(), record=record),
        Gibbs(n_sweeps // 4, n_chains=4, record=record),
    ):
        result = plan.infer(graph, seed=3)
        assert_marginals(result.marginals, oracle, sweeps, n_sweeps)
        assert_joint(result.joint, oracle, sweeps, n_sweeps)


@pytest.mark.parametrize("name", ["grid", "2 labels", "mixed_labels", "strong_pairs"])
def test_rdhg_within_an_infinite_and_a_large_bound(name):
    """Its random draw uses the rounded probability, whose mean is p: the same distribution, other bits."""
    plan = Gibbs(N_SWEEPS, sharing=random_bin_sharing(5), error_bound=1e9, record=Record(joint=True))
    result = plan.infer(GRAPHS[name], seed=4)
    assert_marginals(result.marginals, oracle_of(name), systematic_sweeps(name))
    assert_joint(result.joint, oracle_of(name), systematic_sweeps(name))


@pytest.mark.parametrize("name", ["grid", "6 labels", "higher_order", "strong_pairs"])
@pytest.mark.parametrize("beta", [0.3, 2.0])
def test_a_constant_temperature_samples_the_heated_graph(name, beta):
    graph = GRAPHS[name]
    heated = FactorGraph(graph.domains, [replace(group, scale=group.scale * beta) for group in graph.factors])
    oracle = Oracle.of_graph(heated)
    result = Gibbs(N_SWEEPS, annealing=beta, record=Record(joint=True)).infer(graph, seed=5)
    sweeps = Sweeps.of(oracle)
    assert_marginals(result.marginals, oracle, sweeps)
    assert_joint(result.joint, oracle, sweeps)


@pytest.mark.parametrize("name", ["grid", "5 labels", "mixed_labels"])
def test_jacobi_samples_what_its_own_transition_matrix_says(name):
    """Updating all variables at once has another distribution, given by the product of the conditionals."""
    oracle, sites = oracle_of(name), Sites(oracle_of(name))
    kernel = np.ones((len(sites.target),) * 2)
    for i, conditionals in enumerate(sites.conditionals):
        kernel *= conditionals[:, sites.states[:, i]]
    target = np.linalg.matrix_power(kernel, 2**20).mean(axis=0)
    target /= target.sum()
    assert np.abs(target - sites.target).sum() > 0.05, "the same distribution as the graph's compares nothing"
    sweeps = Sweeps(kernel, target, sites.states)
    result = Gibbs(N_SWEEPS, scan=jacobi_scan(), record=Record(joint=True)).infer(GRAPHS[name], seed=6)
    assert_marginals(result.marginals, oracle, sweeps)
    assert_joint(result.joint, oracle, sweeps)
