"""Builders against their formulas, evaluated edge by edge."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from oracle import Oracle

from herdner.graph import boltzmann_machine, chain_graph, complete_graph, graph_from_joint, ising, potts


def neighbours(shape, wrap):
    """Yield (axis, position, next position) for each undirected edge of a grid."""
    for position in itertools.product(*map(range, shape)):
        for axis, side in enumerate(shape):
            if position[axis] + 1 < side or wrap:
                step = list(position)
                step[axis] = (step[axis] + 1) % side
                yield axis, position, tuple(step)


@pytest.mark.parametrize(
    ("shape", "wrap"), [((3, 4), False), ((3, 3), True), ((5,), True), ((1, 4), False), ((2, 2, 3), False)]
)
@pytest.mark.parametrize("arrays", [False, True])
def test_ising(shape, wrap, arrays):
    rng = np.random.default_rng(3)
    h = rng.normal(size=shape) if arrays else 0.3
    own = [rng.normal(size=[n - (a == axis and not wrap) for a, n in enumerate(shape)]) for axis in range(len(shape))]
    graph = ising(own if arrays else 0.7, h, shape, wrap=wrap)
    for _ in range(10):
        x = rng.integers(0, 2, shape)
        s = 2 * x - 1
        expected = (h * s).sum()
        for axis, here, there in neighbours(shape, wrap):
            expected += (own[axis][here] if arrays else 0.7) * s[here] * s[there]
        assert graph.log_potential(x.ravel()) == pytest.approx(expected)


def test_an_ising_grid_takes_the_shape_of_its_fields():
    assert ising(1.0, np.zeros((4, 6))).n_variables == 24
    assert len(ising(1.0, np.zeros((4, 6))).factors[1].tables) == 1


@pytest.mark.parametrize(
    ("J", "h", "wrap", "most"), [(0.4, 0.1, False, 25), (0.4, None, True, 33), (None, None, False, 50)]
)
def test_a_large_grid_takes_few_bytes_per_variable(J, h, wrap, most):
    """Bound the peak memory of building a grid of 10^6 variables, without its arguments.

    Bytes per variable: 4 for its number of states, 4 for the scope of its field, 16 for its edges, 8 for a field or
    coupling.
    """
    shape = (1000, 1000)
    h = np.full(shape, 0.1) if h is None else h
    J = [np.full((999, 1000), 0.4), np.full((1000, 999), 0.4)] if J is None else J
    tracemalloc.start()
    graph = ising(J, h, shape, wrap=wrap)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.n_variables == 10**6
    assert peak < most * 10**6


@pytest.mark.parametrize("states", [(0, 1), (-1, 1)])
def test_boltzmann_counts_each_edge_once(states):
    rng = np.random.default_rng(3)
    w = rng.normal(size=(6, 6)) * (rng.random((6, 6)) < 0.5)
    w, b = np.triu(w, 1) + np.triu(w, 1).T, rng.normal(size=6)
    edges = np.argwhere(np.triu(w))
    for graph in (boltzmann_machine(w, b, states), boltzmann_machine(w[tuple(edges.T)], b, states, edges)):
        for _ in range(10):
            x = rng.integers(0, 2, 6)
            v = np.array(states)[x]
            assert graph.log_potential(x) == pytest.approx(v @ w @ v / 2 + b @ v)


def test_the_two_kinds_of_boltzmann_machine_are_one_model():
    """Replace x by (1 + s) / 2: couplings are divided by 4, fields shift, and the joint is the same."""
    rng = np.random.default_rng(3)
    w, b = np.triu(rng.normal(size=(5, 5)), 1), rng.normal(size=5)
    w = w + w.T
    zero_one = Oracle.of_graph(boltzmann_machine(w, b, (0, 1)))
    spins = Oracle.of_graph(boltzmann_machine(w / 4, b / 2 + w.sum(axis=1) / 4, (-1, 1)))
    np.testing.assert_allclose(zero_one.probabilities, spins.probabilities, atol=1e-12)


def test_complete_keeps_zero_couplings():
    rng = np.random.default_rng(3)
    w = np.triu(rng.normal(size=(5, 5)), 1)
    w[0, 3] = 0
    graph = complete_graph(w + w.T, np.arange(5.0))
    assert len(graph.factors[1]) == 10
    assert graph.blanket(0).tolist() == [1, 2, 3, 4]
    s = np.array([1, -1, 1, 1, -1])
    assert graph.log_potential((s + 1) // 2) == pytest.approx(s @ w @ s + np.arange(5) @ s)
    assert complete_graph(0.1, n_variables=4).log_potential([1, 1, 1, 0]) == pytest.approx(0.0)


def test_potts_on_a_grid_and_on_edges():
    rng = np.random.default_rng(3)
    unary = rng.normal(size=(3, 4, 5))
    J = [rng.normal(size=(2, 4)), rng.normal(size=(3, 3))]
    graph = potts(J, unary)
    edges, scale = [], []
    index = np.arange(12).reshape(3, 4)
    for axis, here, there in neighbours((3, 4), False):
        edges.append((index[there], index[here]))
        scale.append(J[axis][here])
    same = potts(scale, unary.reshape(12, 5), edges)
    for _ in range(10):
        x = rng.integers(0, 5, (3, 4))
        expected = sum(unary[p][x[p]] for p in np.ndindex(3, 4))
        expected += sum(J[axis][p] * (x[p] == x[q]) for axis, p, q in neighbours((3, 4), False))
        assert graph.log_potential(x.ravel()) == pytest.approx(expected)
        assert same.log_potential(x.ravel()) == pytest.approx(expected)


def test_chain_joins_tokens_inside_sequences_only():
    rng = np.random.default_rng(3)
    unary, transition = rng.normal(size=(7, 3)), rng.normal(size=(3, 3))
    start, end = rng.normal(size=(2, 3))
    graph = chain_graph(unary, transition, [0, 2, 2, 3, 7], start=start, end=end)
    for _ in range(10):
        x = rng.integers(0, 3, 7)
        expected = sum(unary[t, x[t]] for t in range(7))
        for a, b in [(0, 2), (2, 3), (3, 7)]:
            expected += start[x[a]] + end[x[b - 1]] + sum(transition[x[t - 1], x[t]] for t in range(a + 1, b))
        assert graph.log_potential(x) == pytest.approx(expected)
    whole = chain_graph(unary, transition)
    assert len(whole.factors[1]) == 6
    assert chain_graph(np.empty((0, 3)), transition).n_variables == 0


def test_from_joint():
    rng = np.random.default_rng(3)
    p = rng.random((2, 3, 2))
    p[0, 1, 1] = 0
    oracle = Oracle.of_graph(graph_from_joint(p))
    np.testing.assert_allclose(oracle.probabilities, (p / p.sum()).ravel(), atol=1e-12)
    assert oracle.log_z == pytest.approx(np.log(p.sum()))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ising(1.0, shape=(2**16, 2**16)), "a graph can have at most 2147483647 variables .*, not 4294967296"),
        (lambda: ising(1.0), "at least one axis"),
        (lambda: ising(1.0, shape=(0, 3)), "sides of at least 1"),
        (lambda: ising(1.0, shape=(2, 5), wrap=True), "sides of at least 3"),
        (lambda: ising(1.0, np.zeros((2, 3)), (3, 2)), "h must be a number or have the grid's shape"),
        (lambda: ising([np.zeros((2, 2)), np.zeros((2, 2))], np.zeros((2, 3))), r"of shapes \[\(1, 3\), \(2, 2\)\]"),
        (lambda: boltzmann_machine(np.triu(np.ones((3, 3)), 1), np.zeros(3)), "symmetric with a zero diagonal"),
        (lambda: boltzmann_machine(np.ones((3, 3)), np.zeros(3)), "symmetric with a zero diagonal"),
        (lambda: boltzmann_machine(np.zeros((3, 3)), np.zeros(4)), r"shape \(4, 4\)"),
        (lambda: boltzmann_machine(np.zeros((3, 3)), np.zeros(3), (1, 2)), r"\(0, 1\) or \(-1, 1\)"),
        (lambda: boltzmann_machine([1.0, 2.0], np.zeros(3), edges=[[0, 1], [1, 0]]), "twice"),
        (lambda: boltzmann_machine([1.0], np.zeros(3), edges=[[0.5, 1]]), "edges must hold integers"),
        (lambda: boltzmann_machine([1.0], np.zeros(3), edges=[[0, 7]]), "names variable 7"),
        (lambda: complete_graph(1.0), "n_variables must be at least 1"),
        (lambda: potts(1.0, np.zeros(3)), "unary must have shape"),
        (
            lambda: potts([1.0], np.zeros((3, 2)), [[0, 1], [1, 2]]),
            r"`J` must be a number or have the shape \(2,\); got .* `J` of shape \(1,\)",
        ),
        (lambda: graph_from_joint([[0, 0]]), "not all 0"),
        (lambda: graph_from_joint([1, -1]), "at least 0"),
        (lambda: chain_graph(np.zeros((3, 2)), np.zeros((2, 2)), [0, 2]), "rise from 0 to the number of variables, 3"),
        (lambda: chain_graph(np.zeros((3, 2)), np.zeros((3, 3))), "axis 1 of the factor's table has size 3"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named(value):
    matrix = np.zeros((3, 3))
    matrix[0, 1] = matrix[1, 0] = value
    edge, spins = [[0, 1]], np.zeros((3, 2))
    for name, build in [
        ("h", lambda: ising(0.1, value, (2, 2))),
        ("h", lambda: ising(0.1, matrix)),
        ("J", lambda: ising(value, 0.0, (2, 2))),
        ("J", lambda: ising(value, 0.0, (1, 1))),
        ("J", lambda: ising([matrix[:2], matrix[:, :2]], np.zeros((3, 3)))),
        ("weights", lambda: boltzmann_machine(matrix, np.zeros(3))),
        ("weights", lambda: boltzmann_machine([value], np.zeros(3), edges=edge)),
        ("biases", lambda: boltzmann_machine(np.zeros((3, 3)), matrix[0])),
        ("J", lambda: complete_graph(value, 0.0, 3)),
        ("J", lambda: complete_graph(matrix)),
        ("h", lambda: complete_graph(0.1, matrix[0])),
        ("J", lambda: potts(value, np.zeros((2, 2, 2)))),
        ("J", lambda: potts([value], spins, edge)),
    ]:
        with pytest.raises(ValueError, match=f"^{name} must be finite, got {value}$"):
            build()
    for name, build in [
        ("unary", lambda: potts(0.1, np.full((2, 2, 2), value))),
        ("unary", lambda: chain_graph(spins + value, np.zeros((2, 2)))),
        ("transition", lambda: chain_graph(spins, np.full((2, 2), value))),
        ("start", lambda: chain_graph(spins, np.zeros((2, 2)), start=[0, value])),
        ("end", lambda: chain_graph(spins, np.zeros((2, 2)), end=[value, 0])),
    ]:
        if value == -np.inf:
            build()
            continue
        with pytest.raises(ValueError, match=f"^{name} must be finite or -inf, got {value}$"):
            build()
