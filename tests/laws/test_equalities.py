"""Plans that define the same algorithm give the same states, bit for bit, from the same seed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from gibbs_families import EQUAL, FAMILIES, shared
from quick import pairwise

from herdner.graph import FactorGraph, TableFactors, compile_tables, ising, potts
from herdner.graph.scan import checkerboard_scan, jacobi_scan, random_scan, systematic_scan
from herdner.inference.backends.gibbs import Gibbs, bounded_error_gibbs, circular_dhg, herded_gibbs, plain_gibbs
from herdner.inference.gibbs import (
    bin_sharing,
    blanket_sharing,
    complete_sharing,
    linear_annealing,
    neighbour_sum_sharing,
    random_bin_sharing,
)
from herdner.inference.gibbs.setup import Setup
from herdner.inference.record import Record

RECORD = Record(every=1, trace=True)
BOTH = ("circular", "threshold")


def assert_equal_runs(one: Gibbs, other: Gibbs, graph: FactorGraph, seed: int = 1) -> None:
    a, b = one.infer(graph, seed), other.infer(graph, seed)
    assert np.array_equal(a.samples, b.samples)
    assert np.array_equal(a.trace, b.trace), "the log-potentials differ in their last bits"
    assert np.array_equal(a.state, b.state)
    assert a.log_potential == b.log_potential


@pytest.mark.parametrize(("family", "sharing", "form"), shared(BOTH), ids=str)
def test_an_infinite_error_bound_is_gibbs(family, sharing, form):
    infinite = Gibbs(100, sharing=sharing, error_bound=math.inf, form=form, record=RECORD)
    assert_equal_runs(Gibbs(100, record=RECORD), infinite, FAMILIES[family])


# RDHG draws which weight with the number that draws the label otherwise.
@pytest.mark.parametrize(("family", "sharing", "form", "bound"), shared(BOTH, (1e12, 1e300), random=False), ids=str)
def test_a_bound_that_is_never_reached_is_gibbs(family, sharing, form, bound):
    """The herding code runs here, and always chooses the random draw."""
    bounded = Gibbs(100, sharing=sharing, error_bound=bound, form=form, record=RECORD)
    assert bounded.herds
    assert_equal_runs(Gibbs(100, record=RECORD), bounded, FAMILIES[family])


def test_a_bound_that_is_reached_is_not_gibbs():
    graph = FAMILIES["binary_grid"]
    plain, bounded = plain_gibbs(100, record=RECORD), bounded_error_gibbs(100, error_bound=1.0, record=RECORD)
    assert not np.array_equal(plain.infer(graph, 1).samples, bounded.infer(graph, 1).samples)


def unjoined(n_labels: list[int]) -> FactorGraph:
    """Return isolated variables, each of which has one key under any sharing."""
    rng = np.random.default_rng(0)
    return FactorGraph(n_labels, [TableFactors([[i]], rng.normal(size=(1, k))) for i, k in enumerate(n_labels)])


@pytest.mark.parametrize("sizes", [[2] * 5, [3] * 4, [2, 3, 9, 1, 2]], ids=str)
def test_one_bin_is_one_key(sizes):
    """Without neighbours the blanket and the sum of the neighbours have one value.

    With neighbours, test_reference.py compares one bin with a plain implementation.
    """
    for form in BOTH:
        one_bin = Gibbs(200, sharing=bin_sharing(1), form=form, record=RECORD)
        for sharing in (blanket_sharing(), neighbour_sum_sharing()):
            assert_equal_runs(one_bin, replace(one_bin, sharing=sharing), unjoined(sizes))


GRIDS = ("ising", "torus")


def loop(plan: Gibbs, graph: FactorGraph) -> str:
    return Setup.of(plan, compile_tables(graph), None).loop


def large(family: str) -> FactorGraph:
    """Return more variables than a block of uniform numbers and than a shard of a sweep."""
    rng = np.random.default_rng(0)
    if family in GRIDS:
        return ising(0.3, rng.normal(size=(67, 83)), wrap=family == "torus")
    if family == "couplings":
        return ising([rng.normal(size=(66, 83)), rng.normal(size=(67, 82))], rng.normal(size=(67, 83)))
    return potts(0.5, rng.normal(size=(61, 71, int(family))))


LARGE = pairwise(
    ["ising", "torus", "couplings", "3", "8", "14"],
    [None, blanket_sharing(), neighbour_sum_sharing(), bin_sharing(1), bin_sharing(16), random_bin_sharing(9)],
    [systematic_scan(), random_scan(), checkerboard_scan(), jacobi_scan()],
    fits=lambda family, sharing: family != "couplings" or sharing != neighbour_sum_sharing(),  # its couplings differ
)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "sharing", "scan"), LARGE, ids=str)
def test_the_fast_loop_is_the_general_one_on_many_variables(family, sharing, scan):
    graph = large(family)
    plan = Gibbs(3, sharing=sharing, scan=scan, record=replace(RECORD, rao_blackwell=True, table_counts=True))
    general = replace(plan, loop="general")
    assert loop(plan, graph) == ("binary" if family == "couplings" else "grid" if family in GRIDS else "categorical")
    assert loop(general, graph) == "general"
    assert_equal_runs(plan, general, graph)
    a, b = plan.infer(graph, 2), general.infer(graph, 2)
    assert np.array_equal(a.rao_blackwell, b.rao_blackwell)
    assert all(map(np.array_equal, a.table_counts, b.table_counts))


@pytest.mark.parametrize(("family", "sharing", "form"), shared(BOTH), ids=str)
def test_the_fast_loop_is_the_general_one_under_heat(family, sharing, form):
    plan = Gibbs(60, sharing=sharing, form=form, annealing=linear_annealing(0.1, 2), record=RECORD)
    assert_equal_runs(plan, replace(plan, loop="general"), FAMILIES[family])


def layout(plan: Gibbs, graph: FactorGraph) -> str:
    weights = Setup.of(plan, compile_tables(graph), None).weights
    everywhere = weights.n_dense and (weights.weight_starts is None or (weights.weight_starts >= 0).all())
    return "fractions" if weights.fractions else "dense" if everywhere else "hashed"


@pytest.mark.parametrize(
    ("family", "sharing", "memory", "dense"),
    [
        ("binary_hub", blanket_sharing(), 40_000, "fractions"),
        ("binary_hub", complete_sharing(), 100_000, "fractions"),
        ("binary_torus", complete_sharing(), 200_000, "fractions"),
        ("nine_labels", blanket_sharing(), 2**19, "dense"),
        ("mixed_labels", complete_sharing(), 2**18, "dense"),
        ("higher_order", complete_sharing(), 2**18, "dense"),
    ],
    ids=str,
)
def test_hashed_weights_are_the_dense_ones(family, sharing, memory, dense):
    """The memory is too small for the dense table, but not for the keys that occur."""
    graph = FAMILIES[family]
    n_sweeps = 400 if dense == "dense" else 40  # a table of more weights than updates is hashed in any case
    plan = herded_gibbs(n_sweeps, sharing=sharing, weight_memory=2**31, record=RECORD)
    assert layout(plan, graph) == dense
    tight = replace(plan, weight_memory=memory)
    assert layout(tight, graph) == "hashed"
    assert_equal_runs(plan, tight, graph)
    assert_equal_runs(plan, replace(tight, loop="general"), graph)
    signed = replace(plan, form="threshold")
    assert_equal_runs(signed, replace(signed, weight_memory=memory), graph)


def linked_chain(n: int = 240, n_labels: int = 9) -> FactorGraph:
    """Return a chain with names of four linked occurrences, and one variable of ten neighbours."""
    rng, nodes = np.random.default_rng(3), np.arange(n, dtype=np.int32)
    names = rng.permutation(nodes[20:])[: n // 10 * 4].reshape(-1, 4)
    pairs = [nodes[:-1], nodes[1:]], *names[:, np.transpose(np.triu_indices(4, 1))].reshape(-1, 2).T[None]
    hub = np.stack([np.zeros(9, np.int32), nodes[3:12]])
    return FactorGraph(
        np.full(n, n_labels),
        [
            TableFactors(nodes[:, None], rng.normal(size=(n, n_labels))),
            *(TableFactors(np.transpose(p), rng.normal(size=(1, n_labels, n_labels))) for p in (*pairs, hub)),
        ],
    )


@pytest.mark.slow
@pytest.mark.parametrize("scan", [systematic_scan(), random_scan(), checkerboard_scan(), jacobi_scan()], ids=str)
@pytest.mark.parametrize("sharing", [blanket_sharing(), bin_sharing(6), bin_sharing(16)], ids=str)
def test_weights_found_by_the_state_of_the_blanket_are_those_of_its_key(sharing, scan):
    graph = linked_chain()
    plan = herded_gibbs(80, sharing=sharing, scan=scan, record=RECORD)
    assert (loop(plan, graph), layout(plan, graph)) == ("categorical", "hashed")
    assert_equal_runs(plan, replace(plan, loop="general"), graph)
    if scan == checkerboard_scan():
        assert_equal_runs(plan, replace(plan, n_threads=3), graph)


def hard_chain(n_labels: int, n: int = 90) -> FactorGraph:
    """Return a chain of thirty tables with forbidden transitions, and ten links."""
    rng, nodes = np.random.default_rng(n_labels), np.arange(n, dtype=np.int32)
    tables = rng.normal(size=(30, n_labels, n_labels)) * 2
    tables[rng.random(tables.shape) < 0.15] = -np.inf
    tables[:, 0] = tables[:, :, 0] = 0.0  # label 0 is always possible
    unary = rng.normal(size=(n, n_labels))
    unary[:, 1:][rng.random((n, n_labels - 1)) < 0.1] = -np.inf
    links = rng.permutation(nodes)[:20].reshape(-1, 2)
    return FactorGraph(
        np.full(n, n_labels),
        [
            TableFactors(nodes[:, None], unary),
            TableFactors(np.stack([nodes[:-1], nodes[1:]], axis=1), tables, nodes[:-1] % 30),
            TableFactors(links, np.eye(n_labels)[None]),
        ],
    )


@pytest.mark.parametrize("sharing", [None, blanket_sharing(), bin_sharing(1), bin_sharing(16)], ids=str)
@pytest.mark.parametrize("n_labels", [3, 4, 5, 8, 9, 11, 12, 13, 16, 17])
def test_the_fast_loop_is_the_general_one_on_chains_of_any_number_of_labels(n_labels, sharing):
    graph = hard_chain(n_labels)
    for options in ({}, {"annealing": linear_annealing(0.1, 2)}, {"record": replace(RECORD, rao_blackwell=True)}):
        plan = Gibbs(60, **{"sharing": sharing, "record": RECORD} | options)
        assert loop(plan, graph) == "categorical"
        assert_equal_runs(plan, replace(plan, loop="general"), graph)


@pytest.mark.parametrize("family", sorted(EQUAL))
def test_presets_are_their_plans(family):
    graph, plan = FAMILIES[family], Gibbs(30, record=RECORD)
    assert_equal_runs(plan, plain_gibbs(30, record=RECORD), graph)
    assert_equal_runs(replace(plan, sharing=bin_sharing(16)), circular_dhg(30, record=RECORD), graph)
    assert_equal_runs(replace(plan, sharing=blanket_sharing()), herded_gibbs(30, record=RECORD), graph)
