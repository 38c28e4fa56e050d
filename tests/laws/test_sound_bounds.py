"""No certificate is below the exact truth, and each speaks of the order that is run (thousands: sound_bounds.py)."""

from __future__ import annotations

import numpy as np
import pytest
from reference_dobrushin import joint, law_after, marginal_distance
from sound_bounds import violations

from herdner import FactorGraph, TableFactors
from herdner.dobrushin import Influence, ScanSteps, exact_influence, marginal_bound, tightest_influence
from herdner.graph.order import sweep_order
from herdner.graph.scan import checkerboard_scan, jacobi_scan, random_scan, systematic_scan

PARTS = 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_is_below_the_exact_law(part: int) -> None:
    assert [what for seed in range(part, 36, PARTS) for what in violations(seed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_is_below_the_exact_law_of_many_graphs(part: int) -> None:
    assert [what for seed in range(100 + part, 400, PARTS) for what in violations(seed)] == []


def ignoring() -> FactorGraph:
    """A factor over (0, 2, 1) that couples 0 and 2 alone, and two pairs."""
    signs = np.array([-1.0, 1.0])
    pair = np.outer(signs, signs)
    trio = np.repeat(0.6 * pair[:, :, None], 2, axis=2)
    return FactorGraph(
        [2] * 4, [TableFactors([[0, 2, 1]], trio[None]), TableFactors([[0, 1], [2, 3]], pair[None], scale=[0.3, -0.3])]
    )


def test_variables_that_share_a_factor_have_two_colours_whatever_its_table_says() -> None:
    graph = ignoring()
    order = sweep_order(checkerboard_scan(), graph)
    assert order.tolist() == [0, 3, 1, 2]
    for influence in (
        tightest_influence(graph),
        tightest_influence(graph).scale(1.0),
        tightest_influence(graph, 8),
        exact_influence(graph),
    ):
        assert ScanSteps.of(checkerboard_scan(), influence).order.tolist() == order.tolist()
    p = joint(graph)
    law = np.eye(16)[15].reshape(1, 2, 2, 2, 2)  # all ones
    for i in order:
        law = law_after(p, law, int(i))
    off = marginal_distance(law, p, (3,))
    assert off == pytest.approx(0.1457, abs=1e-4)
    assert off <= marginal_bound(tightest_influence(graph), checkerboard_scan(), [3], 4)


def test_an_order_that_is_not_known_has_no_bound() -> None:
    with pytest.raises(ValueError, match="needs a graph for its order"):
        marginal_bound(Influence.of_matrix(tightest_influence(ignoring()).to_scipy()), checkerboard_scan(), [3], 4)
    for scan in (random_scan(), jacobi_scan()):
        with pytest.raises(ValueError, match="has no predetermined order"):
            sweep_order(scan, ignoring())
    assert sweep_order(systematic_scan(), ignoring()).tolist() == [0, 1, 2, 3]
