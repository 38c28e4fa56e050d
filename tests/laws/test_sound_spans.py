"""No bound is below the truth where log-potentials span 1e0 to 1e300 (10^5 comparisons: sound_spans.py)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sound_spans import Oracle, cancelling_graph, random_graph, violations, wrong_certificates, wrong_log_z

from herdner import FactorGraph, TableFactors, boltzmann_machine
from herdner.dobrushin import binary_bound, binary_pairwise_bound, exact_influence, marginal_bounds
from herdner.inference.backends.gibbs import herded_gibbs
from herdner.studies.convergence import Convergence, count_visits, focus_variable, joint_distribution

PARTS = 4
WIDE = FactorGraph([2, 2], [TableFactors([[0, 1]], [[[0, -400], [-400, 800]]])])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_is_below_the_truth_at_any_span(part: int) -> None:
    assert [what for seed in range(part, 320, PARTS) for what in violations(seed)] == []


@pytest.mark.parametrize("seed", [800_023, 805_384])
def test_rounding_errors_of_the_tables_of_links_count(seed: int) -> None:
    assert violations(seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_is_below_the_truth_at_any_span_of_many_graphs(part: int) -> None:
    assert [what for seed in range(10_000 + part, 14_000, PARTS) for what in violations(seed)] == []


@pytest.mark.parametrize(
    "call", [Convergence.of, joint_distribution, focus_variable, lambda graph: count_visits(graph, herded_gibbs(), [4])]
)
def test_probabilities_below_the_range_of_doubles_are_refused(call) -> None:
    with pytest.raises(ValueError, match="log-potentials of the joint states differ by 1200") as caught:
        call(WIDE)
    assert "\n" not in str(caught.value)


def test_sums_with_large_rounding_errors_are_refused() -> None:
    graph = FactorGraph([2, 2], [TableFactors([[0, 1]], [[[1e9, 1e9 + 0.3], [1e9, 1e9]]])])
    with pytest.raises(ValueError, match="sums with rounding errors up to"):
        joint_distribution(graph)


def test_weak_bounds_of_convergence_are_1_instead_of_a_division_by_zero() -> None:
    found = Convergence.of(boltzmann_machine(np.zeros((3, 3)), [300.0, 300.0, 0.0]))
    assert found.l == 0
    assert found.shortest == found.rate == np.inf
    assert found.bound(1e12) == found.bound_from_start(1e12) == 1.0
    for length in (0, -1, np.nan):
        with pytest.raises(ValueError, match="`n_sweeps` must be a finite number of at least 1"):
            found.bound(length)


def test_a_state_that_is_hard_to_reach_is_not_impossible() -> None:
    """A sweep reaches some states with probability e^-1200, below the range of doubles."""
    found = Convergence.of(boltzmann_machine(np.zeros((4, 4)), [150.0] * 4))
    assert found.n_sweeps == 1


@pytest.mark.parametrize("size", [1e9, 1e15, 1e100])
def test_penalties_that_cancel_leave_exact_influences(size: float) -> None:
    """The tables add up to a coupling of 0.3 spins; the influence is tanh(0.3 ..) by enumeration."""
    noise = np.array([[0.3, -0.3], [-0.3, 0.3]])
    penalty = np.array([[0.0, -size], [-size, 0.0]])
    tables = [TableFactors([[0, 1]], t[None]) for t in (noise, penalty, -penalty)]
    graph = FactorGraph([2, 2], tables)
    truth = Oracle.of(graph).influence(0, 1)
    assert exact_influence(graph).to_scipy()[0, 1] == pytest.approx(truth, abs=1e-9)
    assert binary_pairwise_bound(graph).to_scipy()[0, 1] >= truth
    bounds = marginal_bounds(graph)
    assert (bounds.lower <= 0.5).all()
    assert (bounds.upper >= 0.5).all()


@pytest.mark.parametrize("seed", range(8))
def test_bounds_on_log_z_count_the_rounding_errors_of_factors_that_cancel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = cancelling_graph(random_graph(seed), rng)
    assert list(wrong_log_z(graph, Oracle.of(graph), rng, Counter())) == []


@pytest.mark.parametrize("seed", [70_000_197, 70_000_603, 70_000_696, 70_001_240])
def test_certificates_hold_where_large_factors_hide_differences(seed: int) -> None:
    graph = random_graph(seed)
    assert list(wrong_certificates(graph, Oracle.of(graph), np.random.default_rng(seed), Counter())) == []


@pytest.mark.parametrize("coupling", [10.0, 362.7, 400.0, 5000.0])
def test_a_field_close_to_a_large_coupling_leaves_the_exact_influence(coupling: float) -> None:
    """e^(-2 coupling) is below the range of normal doubles; its ratio to e^(-2 field) is not."""
    graph = boltzmann_machine([[0, coupling], [coupling, 0]], [coupling + 7.8, 0.0], (-1, 1))
    truth = Oracle.of(graph).influence(0, 1)
    assert 1e-8 < truth < 1e-6
    for bound in (binary_pairwise_bound, lambda g: binary_bound(g, as_printed=False), exact_influence):
        assert bound(graph).to_scipy()[0, 1] == pytest.approx(truth, rel=1e-5)
