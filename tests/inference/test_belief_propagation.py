"""Belief propagation with factors of any arity, and the backend that chooses between it and exact inference."""

from __future__ import annotations

import re

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, complete_graph, ising
from herdner.inference import make_backend
from herdner.inference.backends import auto
from herdner.inference.backends.auto import Auto
from herdner.inference.elimination import EliminationClock, OutOfTime
from herdner.inference.record import Record


def tree(rng: np.random.Generator, n_factors: int) -> FactorGraph:
    """Factors of one to three variables that form a tree; some entries are -inf."""
    sizes, groups = [int(rng.integers(1, 4))], []
    for _ in range(n_factors):
        arity = int(rng.integers(1, 4))
        scope = [int(rng.integers(len(sizes)))]
        for _ in range(arity - 1):
            scope.append(len(sizes))
            sizes.append(int(rng.integers(1, 5)))
        order = rng.permutation(arity)
        scope = [scope[a] for a in order]
        table = 3 * rng.normal(size=[1, *(sizes[v] for v in scope)])
        table[rng.random(table.shape) < 0.1] = -np.inf
        groups.append(TableFactors([scope], table))
    return FactorGraph(sizes, groups)


@pytest.mark.parametrize("seed", range(40))
def test_trees_are_exact(seed):
    graph = tree(np.random.default_rng(seed), 12)
    try:
        exact = make_backend("exact").infer(graph)
    except ValueError:
        with pytest.raises(ValueError, match="forbid every joint state"):
            make_backend("belief-propagation").infer(graph)
        return
    result = make_backend("belief-propagation", damping=1.0, tolerance=1e-12).infer(graph)
    np.testing.assert_allclose(result.marginals, exact.marginals, atol=1e-9)
    assert result.log_z == pytest.approx(exact.log_z)


def test_pairs_have_the_fixed_point_of_sum_product():
    grid = ising(0.2, np.random.default_rng(1).normal(size=(6, 6)))
    pairs = make_backend("sum-product", n_sweeps=500, tolerance=1e-12).infer(grid)
    result = make_backend("belief-propagation", n_sweeps=5000, tolerance=1e-12).infer(grid)
    np.testing.assert_allclose(result.marginals, pairs.marginals, atol=1e-6)
    assert result.log_z == pytest.approx(pairs.log_z, abs=1e-6)


def test_auto_is_exact_where_it_can_be_and_says_so():
    grid = ising(0.5, np.random.default_rng(2).normal(size=(8, 8)))
    result = Auto(seconds=30).infer(grid)
    plan = make_backend("exact").plan(grid)
    assert result.method == f"exact ({plan})"
    assert re.fullmatch(r"2\^\d+\.\d table cells, width \d+, [\d.]+ [kM]B", str(plan))
    np.testing.assert_array_equal(result.marginals, make_backend("exact").infer(grid).marginals)


def wide_graph() -> FactorGraph:
    rng = np.random.default_rng(3)
    couplings = np.triu(rng.normal(size=(60, 60)) * 0.05, 1)
    return complete_graph(couplings + couplings.T, rng.normal(size=60))


def test_auto_states_the_time_in_which_it_found_no_elimination_order():
    couplings = 0.01 * (1 - np.eye(70))
    method = Auto(seconds=1).infer(complete_graph(couplings, 0.0), 1).method
    assert method.endswith("; exact inference found no elimination order of at most 2^60 table cells within 0.1 s")


@pytest.mark.slow
def test_auto_samples_and_propagates_where_the_graph_is_too_wide():
    graph = wide_graph()
    result = Auto(seconds=3).infer(graph, 1)
    assert result.method.startswith(("tempered, chains differ by 0.0", "belief propagation, converged; the chains"))
    assert re.search(r"; exact inference takes 2\^\d+\.\d table cells, width 59, .* GB, but the", result.method)
    gibbs = make_backend("gibbs", n_sweeps=20_000, burn_in=100).infer(graph, 1)
    np.testing.assert_allclose(result.marginals, gibbs.marginals, atol=0.05)
    assert result.log_potential >= gibbs.log_potential - 1e-9
    assert result.log_z == pytest.approx(make_backend("belief-propagation").infer(graph).log_z, abs=0.5)


@pytest.mark.slow
def test_auto_approximates_if_exact_inference_would_end_too_late(monkeypatch):
    def advance(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(EliminationClock, "advance", advance)
    grid = ising(0.3, np.random.default_rng(4).normal(size=(5, 5)))
    result = Auto(seconds=2).infer(grid, 1)
    assert result.method.startswith(("tempered", "belief propagation"))
    assert result.method.endswith("B) was too slow for the time limit")
    np.testing.assert_allclose(result.marginals, make_backend("exact").infer(grid).marginals, atol=0.05)
    with pytest.raises(ValueError, match="takes more than 2 s"):
        make_backend("exact", seconds=2).infer(grid)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "free", "cell_seconds", "reason"),
    [
        (3, 1e12, 1e-8, "`max_log2_cells` allows 2^3 cells"),
        (60, 1000, 1e-8, "the free memory allows 0.8 kB"),
        (60, 1e12, 1.0, "the time limit allows 2^0.0 cells"),
    ],
    ids=["cells", "memory", "time"],
)
def test_auto_states_why_it_rejects_exact_inference(monkeypatch, caplog, most, free, cell_seconds, reason):
    caplog.set_level("INFO")
    monkeypatch.setattr(auto, "free_memory", lambda: free)
    monkeypatch.setattr(auto, "CELL_SECONDS", cell_seconds)
    grid = ising(0.3, np.random.default_rng(7).normal(size=(6, 6)))
    result = Auto(seconds=0.5, max_log2_cells=most).infer(grid, 1)
    pattern = r"; exact inference takes 2\^\d+\.\d table cells, width \d+, [\d.]+ kB, but " + re.escape(reason)
    assert re.search(pattern + "$", result.method)
    assert caplog.messages[-1] == f"auto: {result.method}"


def test_exact_logs_its_width_and_memory(caplog):
    caplog.set_level("INFO")
    grid = ising(0.3, np.zeros((6, 6)))
    make_backend("exact").infer(grid)
    assert caplog.messages == [f"exact inference: {make_backend('exact').plan(grid)}"]


@pytest.mark.slow
def test_auto_computes_single_results():
    grid = ising(0.5, np.random.default_rng(6).normal(size=(4, 4)))
    exact = make_backend("exact").infer(grid)
    backend = Auto(seconds=2, max_log2_cells=0)
    result = backend.infer(grid, 1, record=Record(best=False, marginals=False))
    assert result.method.startswith("annealed importance sampling with an interval of width")
    assert result.log_z_interval is not None
    low, high = result.log_z_interval
    assert low - 0.5 <= exact.log_z <= high + 0.5
    best = backend.infer(grid, 1, record=Record(marginals=False))
    assert best.log_potential == pytest.approx(exact.log_potential)


@pytest.mark.slow
def test_auto_prefers_the_samples_if_belief_propagation_is_wrong():
    graph = ising(0.9, np.zeros((7, 7)))  # belief propagation converges to one mode, or to the wrong balance
    result = Auto(seconds=4, max_log2_cells=0).infer(graph, 1)
    np.testing.assert_allclose(result.marginals, 0.5, atol=0.1)


def test_auto_reports_constraints_without_a_solution():
    pairs = [(a, b) for a in range(5) for b in range(a)]
    graph = FactorGraph([4] * 5, [TableFactors(pairs, np.where(np.eye(4) > 0, -np.inf, 0.0)[None])])
    with pytest.raises(ValueError, match=r"found no joint state that the -inf entries allow|forbid every joint state"):
        Auto(seconds=1, max_log2_cells=0).infer(graph, 1)


def test_the_cost_limit_of_auto_is_checked():
    with pytest.raises(ValueError, match="max_log2_cells must be a number from 0 to 60, got 61"):
        Auto(max_log2_cells=61)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_the_time_of_auto_is_positive(seconds):
    with pytest.raises(ValueError, match="seconds must be a finite positive number"):
        Auto(seconds=seconds)


@pytest.mark.parametrize("name", ["belief-propagation", "tree-reweighted", "tempered", "annealed-importance"])
@pytest.mark.parametrize("seconds", [0, float("inf")])
def test_time_limits_are_positive_numbers(name, seconds):
    with pytest.raises(ValueError, match=f"seconds must be a finite positive number or None, got {seconds}"):
        make_backend(name, seconds=seconds)


@pytest.mark.slow
def test_auto_estimates_log_z_where_belief_propagation_does_not_converge():
    rng = np.random.default_rng(5)
    couplings = np.triu(3 * rng.normal(size=(12, 12)), 1)
    graph = complete_graph(couplings + couplings.T, rng.normal(size=12))
    backend = make_backend("belief-propagation", n_sweeps=3000)
    assert not backend.infer(graph).converged
    result = Auto(seconds=5, max_log2_cells=0).infer(graph, 1)
    exact = make_backend("exact").infer(graph)
    assert result.log_z_interval is not None
    low, high = result.log_z_interval
    assert low - 1 <= exact.log_z <= high + 1
    np.testing.assert_allclose(result.marginals, exact.marginals, atol=0.05)
    assert result.log_potential == pytest.approx(exact.log_potential)
