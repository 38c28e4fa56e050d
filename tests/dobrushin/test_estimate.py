"""Influence estimated from samples: its numbers, the scans that it finds, and that it certifies nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracle import Oracle

from herdner.dobrushin import (
    InfluenceEstimate,
    coupling_bounds,
    dobrushin_variation,
    exact_influence,
    marginal_bound,
    optimise_scan,
    rate_bound,
    shortest_scan,
    tightest_influence,
    variation_curve,
    weighted_bound,
)
from herdner.graph import FactorGraph, TableFactors, ising
from herdner.graph.scan import systematic_scan

GRAPH = FactorGraph(
    [3, 2, 4, 2],
    [
        TableFactors([[0, 1, 2]], np.random.default_rng(51).normal(size=(1, 3, 2, 4))),
        TableFactors([[2, 3]], np.random.default_rng(52).normal(size=(1, 4, 2))),
    ],
)
EVERY = np.array(list(itertools.product(range(3), range(2), range(4), range(2))))


def by_hand(states: np.ndarray, i: int, j: int) -> list[float]:
    oracle, sizes, found = Oracle.of_graph(GRAPH), (3, 2, 4, 2), []
    for x in states.tolist():
        rows = []
        for label in range(sizes[j]):
            others = {k: (label if k == j else x[k]) for k in range(4) if k != i}
            rows.append(oracle.conditional(i, others))
        found.append(max(np.abs(a - b).sum() / 2 for a, b in itertools.product(rows, rows)))
    return found


def test_the_estimate_is_the_mean_or_the_largest_over_the_states():
    rng = np.random.default_rng(46)
    states = EVERY[rng.integers(len(EVERY), size=7)]
    for largest in (False, True):
        found = InfluenceEstimate.of(GRAPH, states, largest)._influence.to_scipy().toarray()
        for i, j in itertools.permutations(range(4), 2):
            seen = by_hand(states, i, j)
            assert found[i, j] == pytest.approx(max(seen) if largest else np.mean(seen), abs=1e-12)


def test_the_largest_over_all_states_is_the_influence_itself():
    found = InfluenceEstimate.of(GRAPH, EVERY, largest=True)._influence.to_scipy().toarray()
    np.testing.assert_allclose(found, exact_influence(GRAPH).to_scipy().toarray(), atol=1e-12)
    fewer = InfluenceEstimate.of(GRAPH, EVERY[:5])._influence.to_scipy().toarray()
    assert (fewer <= found + 1e-12).all()


def test_states_beside_impossible_ones_are_left_out():
    table = np.array([[[0.0, -np.inf], [-np.inf, -np.inf]]])
    graph = FactorGraph([2, 2], [TableFactors([[0, 1]], table)])
    assert not InfluenceEstimate.of(graph, [[0, 0]])._influence.values.any()


@pytest.mark.parametrize(
    "bound",
    [
        lambda e: dobrushin_variation(e, systematic_scan()),
        lambda e: variation_curve(e, [0, 1]),
        lambda e: coupling_bounds(e, [0, 1]),
        lambda e: marginal_bound(e, [0, 1], [0]),
        lambda e: weighted_bound(e, [0, 1], {0: 1.0}),
        lambda e: rate_bound(e, systematic_scan(), 10),
        lambda e: optimise_scan(e),
        lambda e: shortest_scan(e, 0.1),
    ],
)
def test_it_certifies_nothing(bound):
    estimate = InfluenceEstimate.of(GRAPH, EVERY[:9])
    assert not {name for name in dir(estimate) if "bound" in name or "total" in name or "certificate" in name}
    with pytest.raises(ValueError, match=r"bounds need an Influence, got InfluenceEstimate"):
        bound(estimate)


def test_its_scan_can_be_certified_by_a_bound():
    rng = np.random.default_rng(88)
    graph = ising(0.1, np.zeros((4, 4)))
    estimate = InfluenceEstimate.of(graph, rng.integers(0, 2, (50, 16)))
    order = estimate.order(None, {0: 1.0}, 32)
    assert order.dtype == np.int32
    assert len(order) == 32
    bound = tightest_influence(graph)
    assert dobrushin_variation(bound, order, {0: 1.0}) < dobrushin_variation(bound, systematic_scan(), {0: 1.0}, 32)


def test_what_cannot_be_estimated_is_one_line():
    with pytest.raises(ValueError, match=r"`samples` must have shape \[samples, 4\]"):
        InfluenceEstimate.of(GRAPH, EVERY[0])
    with pytest.raises(ValueError, match="`samples` must be states"):
        InfluenceEstimate.of(GRAPH, EVERY[:3] + 4)
