"""Every plan visits the states of a plain implementation of the papers, from the same random numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gibbs_families import FAMILIES, shared, sharings
from reference_gibbs import Reference

from herdner.graph import FactorGraph, TableFactors
from herdner.graph.scan import fixed_scan, jacobi_scan, random_scan
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import blanket_sharing, complete_sharing, linear_annealing, neighbour_sum_sharing
from herdner.inference.record import Record

FORMS = ("circular", "threshold")
RECORD = Record(every=1, marginals=False)


def assert_same_states(plan: Gibbs, graph: FactorGraph, seed: int = 5) -> None:
    expected = np.array(Reference(plan, graph, seed).states[1:])
    assert len(np.unique(expected, axis=0)) > 1, "a chain that stands still compares nothing"
    for loop in ("auto", "general"):
        found = replace(plan, loop=loop).infer(graph, seed).samples[0]
        assert np.array_equal(found, expected), f"{plan}, {loop}: first in sweep {(found != expected).argmax(axis=0)}"


@pytest.mark.parametrize("family", FAMILIES)
def test_gibbs(family):
    graph = FAMILIES[family]
    some = np.random.default_rng(0).integers(0, graph.n_variables, 2 * graph.n_variables)
    for scan in (Gibbs().scan, random_scan(), fixed_scan(some)):
        assert_same_states(Gibbs(40, scan=scan, record=RECORD), graph)
    assert_same_states(Gibbs(40, annealing=linear_annealing(0.0, 1.5), record=RECORD), graph)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "sharing", "form", "bound"), shared(FORMS, (0.0, 0.7)), ids=str)
def test_herding(family, sharing, form, bound):
    plan = Gibbs(14, sharing=sharing, form=form, error_bound=bound, record=RECORD)
    assert_same_states(plan, FAMILIES[family])


@pytest.mark.slow
@pytest.mark.parametrize("family", ["binary_grid", "three_labels"])
def test_herding_under_other_scans_and_temperatures(family):
    for sharing in sharings(family):
        for scan in (random_scan(), jacobi_scan(), fixed_scan([2, 5, 2, 7, 0])):
            assert_same_states(Gibbs(15, sharing=sharing, scan=scan, record=RECORD), FAMILIES[family])
        assert_same_states(
            Gibbs(15, sharing=sharing, annealing=linear_annealing(0.3, 2), record=RECORD), FAMILIES[family]
        )


def test_dummy_edges_widen_the_keys():
    graph = FAMILIES["binary_ring"]
    plan = Gibbs(40, sharing=blanket_sharing(), dummy_edges=[(0, 4), (4, 0), (8, 2), (0, 1)], record=RECORD)
    assert_same_states(plan, graph)
    without = replace(plan, dummy_edges=None).infer(graph, 5)
    assert not np.array_equal(without.samples, plan.infer(graph, 5).samples)


def hub(n_labels: int, n_neighbours: int) -> FactorGraph:
    """Return a graph whose keys exceed 64 bits."""
    rng = np.random.default_rng(0)
    n = n_neighbours + 1
    edges = np.array([[0, j] for j in range(1, n)], np.int32)
    unary = TableFactors(np.arange(n, dtype=np.int32)[:, None], rng.normal(size=(n, n_labels)))
    return FactorGraph(np.full(n, n_labels), [unary, TableFactors(edges, np.eye(n_labels)[None] / n)])


@pytest.mark.parametrize("n_labels", [2, 3, 12])
@pytest.mark.parametrize("sharing", [blanket_sharing(), complete_sharing(), neighbour_sum_sharing()], ids=str)
def test_keys_too_long_for_a_number_are_hashed(n_labels, sharing):
    assert_same_states(Gibbs(12, sharing=sharing, record=RECORD), hub(n_labels, 64))
