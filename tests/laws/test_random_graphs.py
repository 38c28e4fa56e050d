"""The equalities of the loops on random graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import any_graphs
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Oracle
from quick import examples
from reference_gibbs import Reference

from herdner.graph import FactorGraph, TableFactors, compile_tables, ising
from herdner.graph.scan import checkerboard_scan, jacobi_scan, random_scan, systematic_scan
from herdner.inference.backends.gibbs import Gibbs
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

RECORD = Record(every=1, trace=True, rao_blackwell=True, table_counts=True)


@st.composite
def grids(draw) -> FactorGraph:
    """Generate grids of 3 x 3 to 6 x 150 variables, wrapping or not, with any pair table and some -inf fields."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(3, 6)), draw(st.one_of(st.integers(3, 12), st.integers(60, 150)))
    wrap = draw(st.booleans())
    fields, pairs = ising(1.0, rng.normal(size=shape), wrap=wrap).factors
    n = shape[0] * shape[1]
    scale = np.ones(len(pairs.scopes))
    scale[n if wrap else n - shape[1] :] = draw(st.sampled_from([1.0, 0.5, -2.0]))
    table = rng.normal(size=(2, 2)) if draw(st.booleans()) else np.array([[0.4, -0.4], [-0.4, 0.4]])
    forbidden = np.zeros((n, 2))
    if draw(st.booleans()):
        forbidden[rng.random(n) < 0.1, draw(st.integers(0, 1))] = -np.inf
    joined, more = TableFactors(pairs.scopes, table[None], scale=scale), TableFactors(fields.scopes, forbidden)
    return FactorGraph(np.full(n, 2), [fields, joined, more])


def bounded(sharing, error_bound, **options):
    """Return a plan; error bounds need weights, that is, a sharing."""
    return Gibbs(sharing=sharing, error_bound=error_bound if sharing else 0.0, **options)


PLANS = st.builds(
    bounded,
    n_sweeps=st.integers(1, 12),
    sharing=st.sampled_from(
        [
            None,
            None,
            blanket_sharing(),
            neighbour_sum_sharing(),
            complete_sharing(),
            bin_sharing(1),
            bin_sharing(9),
            random_bin_sharing(5),
        ]
    ),
    error_bound=st.sampled_from([0.0, 0.0, 0.0, 1.0]),
    scan=st.sampled_from([systematic_scan(), systematic_scan(), random_scan(), checkerboard_scan(), jacobi_scan()]),
    annealing=st.sampled_from([None, None, linear_annealing(0.0, 2.0), linear_annealing(2.0, 0.5)]),
    form=st.sampled_from(["circular", "circular", "threshold"]),
    n_chains=st.integers(1, 2),
    weight_memory=st.sampled_from([2**30, 2**22]),
    record=st.sampled_from([RECORD, RECORD, replace(RECORD, rao_blackwell=False), Record(False, True, every=1)]),
)


def runs(plan: Gibbs, graph: FactorGraph, seed: int) -> list:
    """Return the result or the error message."""
    try:
        result = plan.infer(graph, seed)
    except ValueError as error:
        return [str(error).partition(";")[0].partition(" of ")[0].partition("differ")[0][:30]]
    parts = [result.state, result.samples, result.trace, result.marginals, result.rao_blackwell]
    return [result.log_potential, *parts, *(result.table_counts or ())]


def assert_same_runs(plan: Gibbs, graph: FactorGraph, seed: int) -> None:
    fast, general = runs(plan, graph, seed), runs(replace(plan, loop="general"), graph, seed)
    assert len(fast) == len(general), (fast[0], general[0])
    for number, (a, b) in enumerate(zip(fast, general, strict=True)):
        assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b, f"part {number}"


@pytest.mark.slow
@examples(200)
@given(grids(), PLANS, st.integers(0, 99))
def test_grids(graph, plan, seed):
    assert Setup.of(replace(plan, sharing=None, error_bound=0.0), compile_tables(graph), None).loop == "grid"
    assert_same_runs(plan, graph, seed)


@st.composite
def sparse_graphs(draw) -> FactorGraph:
    """Generate variables of 2 to 18 states each, joined in random pairs, many by one table."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_labels = draw(st.integers(2, 120)), draw(st.one_of(st.just(2), st.integers(3, 18)))
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(draw(st.integers(0, 3 * n)))], np.int32).reshape(
        -1, 2
    )
    tables = rng.normal(size=(2, n_labels, n_labels))
    tables[0] += tables[0].T
    which = rng.integers(0, 2, len(pairs)) if draw(st.booleans()) else np.zeros(len(pairs), np.int32)
    unary = TableFactors(np.arange(n, dtype=np.int32)[:, None], rng.normal(size=(n, n_labels)))
    return FactorGraph(np.full(n, n_labels), [unary, TableFactors(pairs, tables, which)])


@pytest.mark.slow
@examples(200)
@given(sparse_graphs(), PLANS, st.integers(0, 99))
def test_pairs(graph, plan, seed):
    assert_same_runs(plan, graph, seed)


@pytest.mark.slow
@examples(200)
@given(any_graphs(), PLANS, st.integers(0, 99))
def test_anything_follows_the_reference(graph, plan, seed):
    """Factors of 0 to 3 variables of 1 to 3 states: states equal those of the plain implementation and are allowed."""
    assume(graph.n_variables and not Oracle.of_graph(graph).impossible)
    assume(plan.scan.kind in ("systematic", "random") and plan.sharing != neighbour_sum_sharing())
    plan = replace(
        plan, annealing=None if plan.annealing == linear_annealing(0.0, 2.0) else plan.annealing
    )  # ties at beta 0
    try:
        result = plan.infer(graph, seed)
    except ValueError as error:
        assert "no state that the graph's -inf entries allow" in str(error)  # noqa: PT017
        return
    for chain in range(plan.n_chains):
        assert result.samples[chain].tolist() == Reference(plan, graph, seed, chain).states[1:]
    assert (graph.log_potential(result.samples.reshape(-1, graph.n_variables)) > -np.inf).all()
