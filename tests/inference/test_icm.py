"""Iterated conditional modes: ascent to states that no change of one variable improves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graphs import any_graphs
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle
from quick import examples

from herdner.graph import FactorGraph, TableFactors, chain_graph, ising, potts
from herdner.inference import ImpossibleGraph, UnsupportedGraph, make_backend


def flips(state, sizes):
    for i, size in enumerate(sizes):
        for k in range(size):
            if k != state[i]:
                flipped = state.copy()
                flipped[i] = k
                yield flipped


@examples(200)
@given(any_graphs(forbidden=(0.0, 0.1, 0.3)), st.sampled_from(["unary", "random"]), st.integers(1, 3))
def test_the_state_is_a_local_optimum_reached_uphill(graph, start, n_starts):
    oracle = Oracle.of_graph(graph)
    backend = make_backend("icm", start=start, n_starts=n_starts)
    if oracle.impossible:
        with pytest.raises(ValueError, match=r"allow|forbid"):
            backend.infer(graph, seed=1)
        return
    result = backend.infer(graph, seed=1)
    assert result.trace.shape[0] == n_starts
    assert (np.diff(result.trace) >= -1e-9).all()
    assert result.trace.max() == pytest.approx(result.log_potential, abs=1e-9)
    assert result.log_potential == graph.log_potential(result.state) > -np.inf
    for flipped in flips(result.state, graph.domains.sizes):
        assert graph.log_potential(flipped) <= result.log_potential + 1e-9


def test_a_sweep_takes_the_best_labels_in_the_order_of_the_variables():
    rng = np.random.default_rng(0)
    graph = potts(0.7, rng.normal(size=(6, 6, 4)))
    result = make_backend("icm", n_sweeps=1).infer(graph)
    state = graph.factors[0].tables.argmax(axis=1)
    for i in range(36):
        values = [graph.log_potential(np.r_[state[:i], k, state[i + 1 :]]) for k in range(4)]
        state[i] = int(np.argmax(values))
    assert result.state.tolist() == state.tolist()
    assert result.n_updates == 36


def test_ties_keep_the_label_and_then_take_the_smallest():
    two = TableFactors([[0]], [[0.0, 0.0]])
    pair = TableFactors([[0, 1]], [[[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]])
    unary = TableFactors([[1]], [[0.5, 0.0, 0.0]])
    result = make_backend("icm").infer(FactorGraph([2, 3], [two, pair, unary]))
    assert result.state.tolist() == [0, 1]
    assert result.trace.tolist() == [[1.0, 1.0]]


def test_more_starts_find_better_states():
    graph = ising(1.0, np.random.default_rng(3).normal(size=(6, 6)) * 0.5, shape=(6, 6))
    one, many = (make_backend("icm", n_starts=n).infer(graph, seed=0) for n in (1, 40))
    assert many.trace.shape[0] == 40
    assert many.log_potential > one.log_potential
    again = make_backend("icm", n_starts=40).infer(graph, seed=0)
    assert np.array_equal(again.trace, many.trace)
    assert not np.array_equal(make_backend("icm", n_starts=40).infer(graph, seed=1).trace, many.trace)


def test_a_forbidden_start_is_repaired():
    """The unary factors prefer states that must not follow each other, as I- must not follow O."""
    rng = np.random.default_rng(5)
    transition = np.zeros((5, 5))
    transition[rng.random((5, 5)) < 0.4] = -np.inf
    np.fill_diagonal(transition, 0)
    for _ in range(20):
        graph = chain_graph(rng.normal(size=(200, 5)) * 5, transition)
        best = make_backend("viterbi").infer(graph).log_potential
        assert -np.inf < make_backend("icm").infer(graph).log_potential <= best + 1e-9


def colouring(n_vertices, edges, n_colours):
    unequal = np.where(np.eye(n_colours, dtype=bool), -np.inf, 0.0)[None]
    return FactorGraph(np.full(n_vertices, n_colours), [TableFactors(edges, unequal)])


@pytest.mark.parametrize("n_colours", [2, 3, 5])
def test_a_graph_is_coloured(n_colours):
    """Repair a random state of a colouring problem that has a hidden solution."""
    rng = np.random.default_rng(n_colours)
    hidden = np.arange(60) % n_colours
    edges = [e for e in itertools.combinations(range(60), 2) if hidden[e[0]] != hidden[e[1]] and rng.random() < 0.05]
    graph = colouring(60, edges, n_colours)
    assert make_backend("icm", start="random").infer(graph, seed=0).log_potential == 0.0


def test_a_run_begins_where_it_is_told_to():
    """States must agree along a chain: each constant joint state is a local optimum, so a run stays at its start."""
    equal = np.where(np.eye(3, dtype=bool), 0.0, -np.inf)
    graph = chain_graph(np.tile([2.0, 0.0, 1.0], (6, 1)), equal)
    for label in range(3):
        result = make_backend("icm").infer(graph, start=np.full(6, label))
        assert result.state.tolist() == [label] * 6
    several = make_backend("icm", n_starts=20).infer(graph, seed=0, start=np.full(6, 1))
    assert several.trace[0].tolist() == [0.0] * several.trace.shape[1]
    assert several.log_potential == 12.0
    with pytest.raises(ValueError, match=r"^start has log-potential -inf"):
        make_backend("icm").infer(graph, start=[0, 0, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="start must be one state"):
        make_backend("icm").infer(graph, start=np.zeros((2, 6), int))


def test_no_start_is_an_error_in_one_line():
    with pytest.raises(UnsupportedGraph, match=r"icm found no joint state .* use the backend 'exact'") as caught:
        make_backend("icm").infer(colouring(3, [[0, 1], [1, 2], [2, 0]], 2))
    assert "\n" not in str(caught.value)
    with pytest.raises(ImpossibleGraph, match="chain from variable 0 to 1"):
        make_backend("icm").infer(colouring(2, [[0, 1]], 1))
    with pytest.raises(ImpossibleGraph, match="with an empty scope is -inf"):
        make_backend("icm").infer(FactorGraph([2], [TableFactors([[]], [-np.inf])]))
    assert make_backend("icm").infer(FactorGraph([], [])).log_potential == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_starts": 0}, "n_starts must be a whole number of at least 1, not 0"),
        ({"n_sweeps": 0}, "n_sweeps must be a whole number of at least 1, not 0"),
        ({"start": "uniform"}, "start must be one of 'unary', 'random', not 'uniform'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        make_backend("icm", **options)
