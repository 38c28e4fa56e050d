"""No bound on a herded sampler's error is below the error (thousands of cases: scripts/papers/hgw19_bounds.py)."""

from __future__ import annotations

import numpy as np
import pytest
from hgw19_bounds import violations

from herdner import boltzmann_machine
from herdner.inference.backends.gibbs import dhg, rdhg
from herdner.inference.gibbs import bin_sharing
from herdner.studies.convergence import Lambdas, count_visits, expectation_error, herding_bound


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "labels"), [(400, False), (150, True)])
def test_no_bound_of_an_error_is_below_it(cases, labels) -> None:
    assert [what for seed in range(cases) for what in violations(seed, labels=labels)] == []


@pytest.mark.slow
def test_no_bound_of_an_error_is_below_it_in_many_cases() -> None:
    assert [what for seed in range(1000, 2200) for what in violations(seed)] == []


def test_random_bins_weigh_by_the_states_that_came() -> None:
    """Weighed by pi(z), as HGW19 Sec. 6.5 prints D^bin, the bound would be .144 here."""
    graph = boltzmann_machine([[0, 1.5], [1.5, 0]], [1, 1], (-1, 1))
    found = count_visits(graph, rdhg(n_bins=2), [16], seed=21)
    f = [[0, 1], [0, 1]]
    error = abs(expectation_error(f, found.visits[0], found.focus))
    assert error == pytest.approx(0.163, abs=5e-4)
    assert error <= Lambdas.of(f, found.focus).bound(found.errors[0])


@pytest.mark.slow
def test_a_threshold_weight_that_sees_several_probabilities_strays_further() -> None:
    """Test that a bin deviates by up to 1 + 1 / B: here by more than 1, the deviation of one probability."""
    graph = boltzmann_machine([[0, 2], [2, 0]], [0, -1], (-1, 1))
    found = count_visits(graph, dhg(n_bins=1, form="threshold"), [43], seed=26).errors[0].herding
    assert float(herding_bound(43, 1, width=0)) < found == pytest.approx(0.0844, abs=5e-5)
    assert found <= float(herding_bound(43, 1))
    circular = [
        count_visits(graph, dhg(n_bins=1, form="circular"), [43], seed=seed).errors[0].herding for seed in range(300)
    ]
    assert max(circular) <= float(herding_bound(43, 1, width=0))


def test_the_constant_of_a_threshold_weight_is_nearly_reached() -> None:
    """p just above 0, so that the weight stays, then p near 1 while it is not positive: it rises by almost 1 + 1."""
    w = start = 1e-3 - 1 + 1e-4  # in (p - 1, p] of a first p = 1e-3
    seen = total = 0.0
    for p in [1e-3] * 998 + [0.999]:
        x = float(w > 0)
        w, seen, total = w + p - x, seen + p, total + x
    assert seen - total == pytest.approx(w - start)
    assert 1.9 < seen - total < 2


@pytest.mark.slow
def test_wide_bins_keep_their_bound() -> None:
    rng = np.random.default_rng(0)
    for seed in range(800):
        n, n_sweeps = int(rng.choice([1, 1, 2, 4])), int(rng.integers(1, 200))
        graph = boltzmann_machine([[0, 2], [2, 0]], rng.normal(0, 1.5, 2), (-1, 1))
        errors = count_visits(
            graph, dhg(n_bins=n, form="threshold"), [n_sweeps], seed=seed, sharing=bin_sharing(n)
        ).errors[0]
        assert errors.herding <= float(herding_bound(n_sweeps, n)) + 1e-9
