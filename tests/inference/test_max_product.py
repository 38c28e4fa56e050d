"""Max-product: exact on trees, deterministic, and without NaN under forbidden states."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import any_graphs, grouped, path_graphs, random_group
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle
from quick import examples

from herdner.graph import FactorGraph, TableFactors, chain_graph, compile_tables, ising, potts
from herdner.graph.chains import ChainForm
from herdner.inference import ImpossibleGraph, UnsupportedGraph, make_backend


@st.composite
def trees(draw, *, forbidden=(0.0, 0.15), integers=False):
    """Generate graphs without cycles: each factor of 2 to 4 variables joins one earlier variable to new ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 7))
    sizes, name = rng.integers(1, 4, n), rng.permutation(n)
    scopes, known = [(int(i),) for i in rng.integers(0, n, n)], 1
    while known < n:
        new = min(n - known, int(rng.integers(1, 4)))
        if rng.random() < 0.9:  # otherwise a component of its own begins
            scope = [int(rng.integers(known)), *range(known, known + new)]
            scopes.append(tuple(int(name[i]) for i in rng.permutation(scope)))
            known += new
        else:
            known += 1
    share = draw(st.sampled_from(forbidden))
    return FactorGraph(
        sizes, [random_group(rng, sizes, p, forbidden=share, integers=integers) for p in grouped(sizes, scopes)]
    )


def check_exact(graph, **options):
    oracle = Oracle.of_graph(graph)
    backend = make_backend("max-product", **options)
    if oracle.impossible:
        with pytest.raises(ImpossibleGraph):
            backend.infer(graph)
        return None
    result = backend.infer(graph)
    assert result.log_potential == pytest.approx(oracle.log_potentials.max(), abs=1e-9)
    assert result.log_potential == graph.log_potential(result.state)
    return result


@examples(200)
@given(st.one_of(trees(), trees(integers=True), path_graphs(), path_graphs(integers=True)))
def test_trees_are_exact_after_two_sweeps(graph):
    """Integers make ties, where the best state of each belief alone need not be a best joint state."""
    check_exact(graph, n_sweeps=2)
    result = check_exact(graph)
    if result is not None:
        assert result.trace.shape[1] <= 3


def test_labels_ruled_out_late_do_not_count_as_change():
    """The second sweep forbids the state with the largest entry of a message, which moves the others up."""
    no = -np.inf
    unary = TableFactors([[0], [1], [2]], [[2.0, -1.0], [5.0, -5.0], [-1.0, -2.0]])
    tables = [[[-2.0, 0.0], [no, no]], [[no, 3.0], [-1.0, 0.0]]]
    result = check_exact(FactorGraph([2] * 3, [unary, TableFactors([[2, 1], [0, 2]], tables)]))
    assert result is not None
    assert result.trace.shape == (1, 3)


@pytest.mark.parametrize("n", [4, 6, 9])
def test_what_is_ruled_out_travels_to_the_end(n):
    """A ring of equal variables with entries 0 or -inf is not converged while a state is still to be forbidden."""
    equal = np.where(np.eye(2, dtype=bool), 0.0, -np.inf)[None]
    name = np.random.default_rng(n).permutation(n)
    ring = TableFactors(np.stack([name, np.roll(name, 1)], axis=1), equal)
    for i in range(n):
        result = make_backend("max-product").infer(FactorGraph([2] * n, [ring, TableFactors([[i]], [[-np.inf, 0.0]])]))
        assert result.state.tolist() == [1] * n
        assert result.trace[0, -1] == 0.0


@examples(60)
@given(st.one_of(trees(), path_graphs()))
def test_damping_reaches_the_same_state(graph):
    check_exact(graph, damping=0.5, n_sweeps=1000, tolerance=1e-12)


@examples(100)
@given(path_graphs(integers=True, forbidden=(0.0,)))
def test_ties_follow_the_rule_of_viterbi(graph):
    form = compile_tables(graph).find(ChainForm)
    if form.order is None:
        best = Oracle.of_graph(graph).best()
        assert make_backend("max-product").infer(graph).state.tolist() == best.tolist()


@examples(300)
@given(any_graphs(forbidden=(0.0, 0.1, 0.4)), st.sampled_from([1.0, 0.5]), st.sampled_from(["sweeps", "residual"]))
def test_any_graph_gives_an_allowed_state_or_an_error(graph, damping, schedule):
    oracle = Oracle.of_graph(graph)
    backend = make_backend("max-product", damping=damping, n_sweeps=20, schedule=schedule)
    if oracle.impossible:
        with pytest.raises((ImpossibleGraph, UnsupportedGraph)) as caught:
            backend.infer(graph)
        assert "\n" not in str(caught.value)
        return
    result = backend.infer(graph)
    assert (result.trace is None) == (schedule == "residual")
    trace = np.zeros((1, 0)) if result.trace is None else result.trace
    assert not np.isnan(trace).any()
    assert max([-np.inf, *trace[0]]) - 1e-9 <= result.log_potential <= oracle.log_potentials.max() + 1e-9
    assert result.log_potential == graph.log_potential(result.state) > -np.inf
    again = backend.infer(graph, seed=5)
    assert np.array_equal(again.state, result.state)
    assert result.trace is None or np.array_equal(again.trace, result.trace)


def plain_sweep(edges, unary, messages, order):
    """Make one sweep over a graph of pairs: ``edges`` {(i, j): table}, ``messages`` {(from, to): values}."""
    for i in order:
        for (a, b), table in edges.items():
            if i not in (a, b):
                continue
            j = b if i == a else a
            total = unary[j] + sum(
                (m for (k, to), m in messages.items() if to == j and k != i), start=np.zeros_like(unary[j])
            )
            new = (table + total).max(axis=1) if i == a else (table.T + total).max(axis=1)
            messages[j, i] = new - new.max()


def test_sweeps_on_a_loop_are_those_of_a_plain_version():
    rng = np.random.default_rng(6)
    scopes = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    unary, tables = rng.normal(size=(4, 3)), rng.normal(size=(5, 3, 3))
    graph = FactorGraph(np.full(4, 3), [TableFactors(np.arange(4)[:, None], unary), TableFactors(scopes, tables)])
    edges = dict(zip(scopes, tables, strict=True))
    messages = {(a, b): np.zeros(3) for i, j in scopes for a, b in [(i, j), (j, i)]}
    trace = []
    for sweep in range(4):
        outwards = [3, 2, 1, 0]
        plain_sweep(edges, unary, messages, outwards[::-1] if sweep % 2 == 0 else outwards)
        beliefs = [unary[i] + sum(m for (_, to), m in messages.items() if to == i) for i in range(4)]
        trace.append(graph.log_potential(np.argmax(beliefs, axis=1)))
    result = make_backend("max-product", n_sweeps=4, tolerance=0).infer(graph)
    np.testing.assert_allclose(result.trace, [trace[: result.trace.shape[1]]], atol=1e-12)


def test_long_paths_in_any_order_take_three_sweeps():
    rng = np.random.default_rng(4)
    graph = chain_graph(rng.normal(size=(5000, 4)) * 3, rng.normal(size=(4, 4)))
    name = rng.permutation(5000).astype(np.int32)
    shuffled = FactorGraph(graph.domains, [TableFactors(name[g.scopes], g.tables) for g in graph.factors])
    best = make_backend("viterbi").infer(graph)
    for tree in (graph, shuffled):
        result = make_backend("max-product", tolerance=1e-9).infer(tree)
        assert result.trace.shape == (1, 3)
        assert result.log_potential == pytest.approx(best.log_potential, rel=1e-12)
    assert make_backend("max-product").infer(graph).state.tolist() == best.state.tolist()


def test_loopy_grids_come_near_the_best_state():
    rng = np.random.default_rng(7)
    for _ in range(10):
        graph = potts(0.5, rng.normal(size=(3, 4, 2)) * 1.5)
        best = make_backend("exact").infer(graph).log_potential
        result = make_backend("max-product", damping=0.7).infer(graph)
        assert best - 1.0 < result.log_potential <= best + 1e-9


def test_what_has_not_converged_uses_all_sweeps():
    graph = ising(1.0, np.random.default_rng(0).normal(size=(8, 8)) * 0.1)
    short, long = (make_backend("max-product", n_sweeps=n).infer(graph) for n in (2, 500))
    assert short.trace.shape == (1, 2)
    assert short.n_updates == 128
    assert long.trace.shape[1] < 500


def test_bad_graphs():
    unequal = np.where(np.eye(2, dtype=bool), -np.inf, 0.0)[None]
    with pytest.raises(UnsupportedGraph, match=r"max-product found no joint state"):
        make_backend("max-product").infer(FactorGraph([2] * 3, [TableFactors([[0, 1], [1, 2], [2, 0]], unequal)]))
    unary = TableFactors([[0], [1]], [[0.0, -np.inf], [0.0, -np.inf]])
    with pytest.raises(ImpossibleGraph, match=r"^-inf entries forbid every state of variable \d"):
        make_backend("max-product").infer(FactorGraph([2, 2], [unary, TableFactors([[0, 1]], unequal)]))
    with pytest.raises(ImpossibleGraph, match="every state of variable 0"):
        make_backend("max-product").infer(FactorGraph([2], [TableFactors([[0]], [[-np.inf, -np.inf]])]))
    with pytest.raises(ImpossibleGraph, match="with an empty scope is -inf"):
        make_backend("max-product").infer(FactorGraph([2], [TableFactors([[]], [-np.inf])]))
    assert make_backend("max-product").infer(FactorGraph([], [])).state.tolist() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 0.0}, "damping must be above 0 and at most 1"),
        ({"n_sweeps": 0}, "n_sweeps must be a whole number of at least 1, not 0"),
        ({"tolerance": -0.1}, "tolerance must be a number of at least 0"),
        ({"schedule": "flooding"}, "schedule must be one of 'sweeps', 'residual', not 'flooding'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        make_backend("max-product", **options)


@examples(100)
@given(trees(forbidden=(0.0,)))
def test_the_residual_schedule_is_exact_on_trees(graph):
    assert check_exact(graph, schedule="residual", tolerance=0.0).converged


@pytest.mark.parametrize("seed", [1, 3])
def test_the_residual_schedule_converges_where_sweeps_do_not(seed):
    values = np.random.default_rng(seed).normal(size=(3, 12, 12))
    graph = ising([values[0, 1:], values[1, :, 1:]], values[2])
    options = {"n_sweeps": 500, "damping": 0.5}
    results = [make_backend("max-product", schedule=name, **options).infer(graph) for name in ("sweeps", "residual")]
    assert [result.converged for result in results] == [False, True]
