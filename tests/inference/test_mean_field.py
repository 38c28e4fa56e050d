"""Mean field against a plain implementation, and its bound against the enumerated joint."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graphs import any_graphs
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle, factors_of
from quick import examples

from herdner._ext.mean_field import MeanFieldLoop
from herdner.graph import FactorGraph, TableFactors, chain_graph, compile_tables, ising
from herdner.inference import ImpossibleGraph, UnsupportedGraph, make_backend


def plain_expectations(factors, q, i, size):
    """Return the expected log-potential of each state of variable i under q, float64[size]."""
    values = np.zeros(size)
    for scope, table in factors:
        if i not in scope:
            continue
        for cell in itertools.product(*map(range, table.shape)):
            weight = np.prod([q[j][x] for j, x in zip(scope, cell, strict=True) if j != i])
            values[cell[scope.index(i)]] += weight * table[cell]
    return values


def plain_bound(factors, q):
    total = -sum(p * np.log(p) for row in q for p in row if p > 0)
    for scope, table in factors:
        for cell in itertools.product(*map(range, table.shape)):
            total += np.prod([q[j][x] for j, x in zip(scope, cell, strict=True)]) * table[cell]
    return total


def softmax(values):
    weights = np.exp(values - values.max())
    return weights / weights.sum()


@examples(60)
@given(any_graphs(forbidden=(0.0,)), st.sampled_from([1.0, 0.5, 0.1]), st.sampled_from(["unary", "uniform"]))
def test_three_sweeps_are_the_three_sweeps_of_a_plain_version(graph, damping, start):
    factors, sizes = factors_of(graph), graph.domains.sizes
    unary = [plain_expectations([f for f in factors if len(f[0]) == 1], None, i, k) for i, k in enumerate(sizes)]
    q = [softmax(row if start == "unary" else np.zeros_like(row)) for row in unary]
    bounds = []
    for _ in range(3):
        for i, size in enumerate(sizes):
            q[i] = (1 - damping) * q[i] + damping * softmax(plain_expectations(factors, q, i, size))
        bounds.append(plain_bound(factors, q))
    result = make_backend("mean-field", damping=damping, n_sweeps=3, tolerance=0, start=start).infer(graph)
    if result.trace.shape[1] < 3:  # nothing moved any more
        bounds = bounds[: result.trace.shape[1]]
    np.testing.assert_allclose(result.trace, [bounds], atol=1e-9)
    for i, size in enumerate(sizes):
        np.testing.assert_allclose(result.marginals[i, :size], q[i], atol=1e-9)
        assert not result.marginals[i, size:].any()


def bare(graph):
    """Return whether a constant is -inf or the unary factors of a variable forbid all states."""
    sums = {(): 0.0} | {(i,): np.zeros(size) for i, size in enumerate(graph.domains.sizes)}
    for scope, table in factors_of(graph):
        if len(scope) < 2:
            sums[scope] = sums[scope] + table
    return any(np.max(total) == -np.inf for total in sums.values())


@examples(200)
@given(
    any_graphs(forbidden=(0.0, 0.1, 0.4)),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from(["unary", "uniform", "random"]),
)
def test_the_bound_never_falls_and_never_exceeds_log_z(graph, damping, start):
    backend = make_backend("mean-field", damping=damping, start=start, n_sweeps=30)
    if bare(graph):
        with pytest.raises(ValueError, match=r"forbid every state|every joint state is forbidden"):
            backend.infer(graph, seed=1)
        return
    oracle = Oracle.of_graph(graph)
    if oracle.impossible:
        with pytest.raises((ImpossibleGraph, UnsupportedGraph), match="-inf entries"):
            backend.infer(graph, seed=1)
        return
    result = backend.infer(graph, seed=1)
    trace = result.trace[0]
    assert not np.isnan(trace).any()
    assert (trace[1:] >= trace[:-1] - 1e-9).all()
    assert result.log_z == trace[-1]
    assert result.log_z <= oracle.log_z + 1e-9
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1)
    assert (result.marginals >= 0).all()
    assert result.log_potential == graph.log_potential(result.state) > -np.inf
    modes = result.marginals.argmax(axis=1)
    if graph.log_potential(modes) > -np.inf:
        assert result.state.tolist() == modes.tolist()


@pytest.mark.parametrize("damping", [1.0, 0.3])
def test_a_fixed_point_is_each_variables_best_distribution(damping):
    graph = ising(0.3, np.random.default_rng(1).normal(size=(5, 5)))
    result = make_backend("mean-field", damping=damping, n_sweeps=10_000, tolerance=1e-12).infer(graph)
    assert result.trace.shape[1] < 1000
    assert result.n_updates == 25 * result.trace.shape[1]
    for i in range(25):
        best = softmax(plain_expectations(factors_of(graph), result.marginals, i, 2))
        np.testing.assert_allclose(result.marginals[i], best, atol=1e-10)


def test_without_factors_between_variables_mean_field_is_exact():
    rng = np.random.default_rng(3)
    unary = rng.normal(size=(4, 3))
    unary[2, 1] = -np.inf
    graph = FactorGraph(np.full(4, 3), [TableFactors(np.arange(4)[:, None], unary), TableFactors([[]], [1.5])])
    result, exact = (make_backend(name).infer(graph) for name in ("mean-field", "exact"))
    assert result.log_z == pytest.approx(exact.log_z, abs=1e-12)
    np.testing.assert_allclose(result.marginals, exact.marginals, atol=1e-12)


UNEQUAL = np.where(np.eye(2, dtype=bool), -np.inf, 0.0)[None]


def test_where_every_label_is_forbidden_the_limit_of_a_penalty_decides():
    """Three variables of two states must all differ, so every state always has forbidden entries."""
    unary = TableFactors([[0], [1], [2]], [[0.3, 0.0], [0.2, 0.0], [0.0, 0.9]])
    triangle = [[0, 1], [1, 2], [2, 0]]
    impossible = FactorGraph([2, 2, 2], [unary, TableFactors(triangle, UNEQUAL)])
    q = np.full((3, 2), 0.5)
    limit = MeanFieldLoop(compile_tables(impossible).conditionals.compiled, q, 1.0)
    for _ in range(4):
        limit.sweep(0)
    penalty = TableFactors(triangle, np.maximum(UNEQUAL, -1e6))
    finite = make_backend("mean-field", start="uniform", n_sweeps=4).infer(FactorGraph([2, 2, 2], [unary, penalty]))
    np.testing.assert_allclose(q, finite.marginals, atol=1e-9)
    with pytest.raises(UnsupportedGraph, match="mean-field found no joint state"):
        make_backend("mean-field").infer(impossible)


def test_a_forbidden_label_is_dropped_at_once_under_damping_too():
    graph = FactorGraph([2, 3], [TableFactors([[0, 1]], np.array([[[-np.inf, 0, 0.5], [0, -np.inf, 0.5]]]))])
    result = make_backend("mean-field", damping=0.1, n_sweeps=1, start="uniform").infer(graph)
    np.testing.assert_allclose(result.marginals[0], [0.5, 0.5, 0])  # forbidden both, equally often
    assert result.marginals[1, :2].tolist() == [0, 0]
    assert result.log_z == pytest.approx(0.5 + np.log(2))


def test_constraints_of_a_chain_are_kept():
    """State 2 must not follow state 0, as I- must not follow O."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        transition = rng.normal(size=(3, 3))
        transition[0, 2] = -np.inf
        graph = chain_graph(rng.normal(size=(12, 3)) * 2, transition)
        result = make_backend("mean-field").infer(graph)
        assert -np.inf < result.log_z < make_backend("viterbi", marginals=True).infer(graph).log_z
        assert result.log_potential > -np.inf


def test_only_the_random_start_asks_for_a_seed():
    graph = ising(0.8, np.zeros((4, 4)))
    flat = make_backend("mean-field").infer(graph)
    np.testing.assert_allclose(flat.marginals, 0.5)
    one, same, other = (make_backend("mean-field", start="random", n_sweeps=2).infer(graph, s) for s in (1, 1, 2))
    assert np.array_equal(one.marginals, same.marginals)
    assert not np.array_equal(one.marginals, other.marginals)
    assert one.log_z > flat.log_z


def test_a_given_start_is_certain_at_first():
    """One undamped sweep equals that of the plain implementation; hard constraints keep the run near its start."""
    rng = np.random.default_rng(3)
    graph = chain_graph(rng.normal(size=(5, 3)), rng.normal(size=(3, 3)))
    state = [2, 0, 1, 1, 0]
    q = list(np.eye(3)[state])
    for i in range(5):
        q[i] = softmax(plain_expectations(factors_of(graph), q, i, 3))
    result = make_backend("mean-field", n_sweeps=1).infer(graph, start=state)
    np.testing.assert_allclose(result.marginals, q, atol=1e-9)
    equal = np.where(np.eye(3, dtype=bool), 0.0, -np.inf)
    hard = chain_graph(np.tile([2.0, 0.0, 1.0], (6, 1)), equal)
    for label in range(3):
        assert make_backend("mean-field").infer(hard, start=np.full(6, label)).state.tolist() == [label] * 6
    with pytest.raises(ValueError, match=r"^start has log-potential -inf"):
        make_backend("mean-field").infer(hard, start=[0, 0, 1, 1, 1, 1])


def test_no_trace_is_the_same_result():
    graph = ising(0.3, np.random.default_rng(1).normal(size=(4, 4)))
    with_trace, without = (make_backend("mean-field", trace=t).infer(graph) for t in (True, False))
    assert without.trace is None
    assert without.log_z == with_trace.log_z
    assert np.array_equal(without.marginals, with_trace.marginals)


def test_bad_graphs():
    with pytest.raises(ImpossibleGraph, match="with an empty scope is -inf"):
        make_backend("mean-field").infer(FactorGraph([2], [TableFactors([[]], [-np.inf])]))
    with pytest.raises(ValueError, match=r"^variable 1: its unary factors forbid every state"):
        make_backend("mean-field").infer(FactorGraph([2, 2], [TableFactors([[1]], [[-np.inf, -np.inf]])]))
    empty = make_backend("mean-field").infer(FactorGraph([], []))
    assert (empty.log_z, empty.state.tolist()) == (0.0, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 0}, "damping must be above 0 and at most 1"),
        ({"damping": 1.5}, "damping must be above 0 and at most 1"),
        ({"n_sweeps": 0}, "n_sweeps must be a whole number of at least 1, not 0"),
        ({"tolerance": -1}, "tolerance must be a number of at least 0"),
        ({"start": "mode"}, "start must be one of 'unary', 'uniform', 'random', not 'mode'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        make_backend("mean-field", **options)
    assert "\n" not in str(caught.value)
