"""Backends without an own time limit are repeated with more and more sweeps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from herdner.graph import ising
from herdner.inference import Interrupted, UnsupportedRecord, make_backend
from herdner.inference.backends.exact import Exact
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.backends.mini_bucket import MiniBucket
from herdner.inference.time_limit import TimeLimited

GRID = ising(0.4, np.random.default_rng(1).normal(size=(8, 8)) * 0.5)


@pytest.fixture
def lengths(monkeypatch):
    """The numbers of sweeps of all runs of `Gibbs`."""
    found = []
    infer = Gibbs.infer

    def recorded(self, *arguments, **options):
        found.append(self.n_sweeps)
        return infer(self, *arguments, **options)

    monkeypatch.setattr(Gibbs, "infer", recorded)
    return found


@pytest.mark.slow
def test_the_last_run_is_the_longest(lengths):
    result = TimeLimited(make_backend("gibbs", burn_in=10), 5.0).infer(GRID, 0)
    assert lengths[0] == 20
    assert all(2 * first <= second <= 16 * first for first, second in itertools.pairwise(lengths))
    assert result.n_updates == 64 * lengths[-1]
    np.testing.assert_allclose(result.marginals, Exact().infer(GRID).marginals, atol=0.05)
    lengths.clear()
    TimeLimited(make_backend("gibbs"), 60.0, largest=100).infer(GRID, 0)
    assert lengths == [4, 64, 100]


def test_annealing_ends_within_each_run():
    result = TimeLimited(make_backend("annealed-gibbs"), 600.0, largest=2000).infer(GRID, 0)
    assert result.log_potential == pytest.approx(Exact().infer(GRID).log_potential)


def test_a_converged_run_is_the_last():
    for name in ("max-product", "mean-field", "sum-product", "viterbi"):
        graph = ising(0.4, np.random.default_rng(1).normal(size=(1, 9)))
        result = TimeLimited(make_backend(name), 600.0).infer(graph)
        assert result.seconds < 60


def test_max_product_with_residuals_runs_until_it_converges():
    result = TimeLimited(make_backend("max-product", schedule="residual"), 600.0, largest=64).infer(GRID)
    assert result.converged


def test_samples_are_the_last_of_each_chain():
    result = TimeLimited(make_backend("gibbs", n_sweeps=199, n_chains=2), None, 200).infer(GRID, 0)
    assert result.samples is not None
    assert result.samples.shape == (2, 100, 64)
    assert result.sample_sweeps.tolist() == list(range(99, 199))


def test_bounds_on_log_z_become_closer():
    result = TimeLimited(MiniBucket(), 600.0, largest=8.0).infer(GRID)
    first = MiniBucket(4.0).infer(GRID)
    assert result.log_z_bounds
    assert first.log_z_bounds
    (low, high), (first_low, first_high) = result.log_z_bounds, first.log_z_bounds
    assert first_low < low <= Exact().infer(GRID).log_z <= high < first_high
    assert np.ptp(TimeLimited(MiniBucket(), 600.0).infer(GRID).log_z_bounds) < 1e-6


def test_ctrl_c_keeps_the_result_of_the_earlier_runs(monkeypatch, lengths):
    infer = Gibbs.infer

    def interrupted(self, *arguments, **options):
        if self.n_sweeps > 4:
            raise KeyboardInterrupt
        return infer(self, *arguments, **options)

    monkeypatch.setattr(Gibbs, "infer", interrupted)
    with pytest.raises(Interrupted) as caught:
        TimeLimited(make_backend("gibbs"), 60.0).infer(GRID, 0)
    assert caught.value.result.n_updates == 4 * 64


def test_samples_have_equal_distances():
    result = TimeLimited(make_backend("gibbs", n_sweeps=1000, burn_in=200, n_chains=2), None, 100).infer(GRID, 0)
    assert result.samples.shape == (2, 50, 64)
    assert np.diff(result.sample_sweeps).tolist() == [16] * 49
    assert TimeLimited(make_backend("gibbs", n_sweeps=10), None, 100).infer(GRID, 0).samples.shape == (1, 100, 64)
    for name in ("icm", "annealed-gibbs"):
        with pytest.raises(UnsupportedRecord, match="draws no samples"):
            TimeLimited(make_backend(name), 1.0, 10)
