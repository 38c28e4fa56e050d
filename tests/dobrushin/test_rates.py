"""Rates in closed form are above the variation itself, and reached where they can be."""

from __future__ import annotations

import numpy as np
import pytest

from herdner import ising
from herdner.dobrushin import Influence, dobrushin_variation, rate_bound, tightest_influence
from herdner.graph.scan import checkerboard_scan, fixed_scan, random_scan, systematic_scan


@pytest.mark.parametrize("seed", range(40))
def test_no_rate_is_below_the_variation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    matrix = rng.random((n, n)) * (rng.random((n, n)) < 0.6) * rng.choice([0.1, 0.3, 0.8])
    np.fill_diagonal(matrix, 0.0)
    # Columns or rows of which some are large, so that each norm is the only one below 1 at times.
    matrix *= rng.choice([1.0, 3.0], n, p=[0.8, 0.2]) if seed % 2 else rng.choice([1.0, 3.0], (n, 1), p=[0.8, 0.2])
    influence, d = Influence.of_matrix(matrix), rng.random(n) * (rng.random(n) < 0.7)
    for scan in (systematic_scan(), random_scan()):
        for n_steps in (0, 1, n, 3 * n - 1, 3 * n, 40 * n):
            bound = rate_bound(influence, scan, n_steps, d)
            assert min(d.sum(), dobrushin_variation(influence, scan, d, n_steps)) <= bound + 1e-12
            assert bound <= d.sum()


def test_rates_are_reached_and_go_to_0() -> None:
    ring = 0.3 * (np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0))  # all rows add up to 0.6
    influence = Influence.of_matrix(ring)
    assert rate_bound(influence, random_scan(), 50) == pytest.approx(
        dobrushin_variation(influence, random_scan(), None, 50)
    )
    pair = Influence.of_matrix([[0.0, 0.5], [0.5, 0.0]])
    assert rate_bound(pair, systematic_scan(), 2) == pytest.approx(1.0)
    assert dobrushin_variation(pair, systematic_scan(), None, 2) == pytest.approx(0.75)
    grid = tightest_influence(ising(0.1, 0.0, (5, 5)))
    assert rate_bound(grid, checkerboard_scan(), 25 * 60, {3: 1.0}) < 1e-10
    assert rate_bound(tightest_influence(ising(3.0, 0.0, (5, 5))), systematic_scan(), 10**6) == 25
    with pytest.raises(ValueError, match="scan, got fixed"):
        rate_bound(grid, fixed_scan([0, 1]), 10)
