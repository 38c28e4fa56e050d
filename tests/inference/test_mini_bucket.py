"""Mini-bucket bounds on log Z."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, ising
from herdner.inference import make_backend


def random_graph(seed: int) -> FactorGraph:
    """Factors of one to four of ten variables with one to three states; every third graph has entries of -inf."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=10)
    allowed = rng.integers(0, sizes)
    groups = []
    for _ in range(12):
        scope = rng.choice(10, size=int(rng.integers(1, 5)), replace=False)
        table = 2 * rng.normal(size=[1, *sizes[scope]])
        if seed % 3 == 0:
            table[rng.random(table.shape) < 0.2] = -np.inf
        table[(0, *allowed[scope])] = 0.0
        groups.append(TableFactors([scope], table))
    return FactorGraph(sizes, groups)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_contain_log_z_and_become_exact(seed):
    graph = random_graph(seed)
    log_z = make_backend("exact").infer(graph).log_z
    for max_log2_cells in (0, 3, 6):
        result = make_backend("mini-bucket", max_log2_cells=max_log2_cells).infer(graph)
        assert result.log_z_bounds is not None
        low, high = result.log_z_bounds
        assert low <= log_z <= high
        assert result.log_potential == pytest.approx(float(graph.log_potential(result.state)))
        assert result.log_potential > -np.inf
    result = make_backend("mini-bucket").infer(graph)
    np.testing.assert_allclose(result.log_z_bounds, log_z, rtol=1e-9, atol=1e-9)
    assert result.log_z == pytest.approx(log_z, rel=1e-9, abs=1e-9)


def test_more_cells_give_closer_bounds():
    grid = ising(0.4, np.random.default_rng(1).normal(size=(8, 8)))
    log_z = make_backend("exact").infer(grid).log_z
    gaps = []
    for max_log2_cells in (2, 6, 12):
        result = make_backend("mini-bucket", max_log2_cells=max_log2_cells).infer(grid)
        assert result.log_z_bounds is not None
        low, high = result.log_z_bounds
        assert low <= log_z <= high
        assert (result.log_z is None) == (max_log2_cells < 12)
        gaps.append(high - low)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-6


@pytest.mark.parametrize("value", [-1, 31])
def test_the_limit_is_checked(value):
    with pytest.raises(ValueError, match="max_log2_cells must be a number from 0 to 30"):
        make_backend("mini-bucket", max_log2_cells=value)
