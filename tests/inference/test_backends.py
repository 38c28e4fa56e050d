"""The exact backends against the enumerated joint and against each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from graphs import any_graphs, path_graphs
from hypothesis import given
from oracle import Oracle
from quick import examples

from herdner.graph import FactorGraph, TableFactors, chain_graph, compile_tables, complete_graph, ising
from herdner.graph.chains import ChainForm
from herdner.inference import ImpossibleGraph, UnsupportedGraph, make_backend


def check_expectations(result, graph, oracle):
    assert result.log_z == pytest.approx(oracle.log_z, abs=1e-9)
    assert result.log_potential == pytest.approx(oracle.log_potentials.max(), abs=1e-9)
    assert graph.log_potential(result.state) == pytest.approx(result.log_potential, abs=1e-9)
    for i, size in enumerate(oracle.sizes):
        np.testing.assert_allclose(result.marginals[i, :size], oracle.marginal(i), atol=1e-9)
        assert not result.marginals[i, size:].any()
    for ours, theirs in zip(result.table_counts, oracle.table_counts(graph), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@examples(150)
@given(any_graphs(forbidden=(0.0, 0.1, 0.3)))
def test_exact_is_the_enumerated_joint(graph):
    oracle = Oracle.of_graph(graph)
    if oracle.impossible:
        with pytest.raises(ImpossibleGraph, match="forbid every joint state"):
            make_backend("exact").infer(graph)
        return
    check_expectations(make_backend("exact").infer(graph), graph, oracle)


@pytest.mark.slow
@examples(250)
@given(path_graphs(forbidden=(0.0, 0.1, 0.3)))
def test_viterbi_is_the_enumerated_joint_on_any_paths(graph):
    oracle = Oracle.of_graph(graph)
    backend = make_backend("viterbi", marginals=True)
    if oracle.impossible:
        with pytest.raises(ImpossibleGraph, match=r"allow a state|empty scope is -inf"):
            backend.infer(graph)
        return
    check_expectations(backend.infer(graph), graph, oracle)


@examples(100)
@given(path_graphs(integers=True, forbidden=(0.0,)))
def test_ties_follow_the_stated_rule(graph):
    """Integers add up without rounding, so ties are exact; viterbi has a rule for them, exact has none."""
    best = Oracle.of_graph(graph).best()
    assert graph.log_potential(make_backend("exact").infer(graph).state) == graph.log_potential(best)
    form = compile_tables(graph).find(ChainForm)
    if form.order is None:
        assert make_backend("viterbi").infer(graph).state.tolist() == best.tolist()


def test_the_form_of_a_chain_changes_no_bit():
    """Build one chain with a tied table, a table per edge, other orders and directions, or several factors per edge."""
    rng = np.random.default_rng(8)
    unary, table = rng.normal(size=(50, 9)) * 3, rng.normal(size=(9, 9))
    table[2, 5] = -np.inf
    left = np.concatenate([np.arange(19), np.arange(20, 49)])
    scopes = np.stack([left, left + 1], axis=1)
    nodes = TableFactors(np.arange(50)[:, None], unary)
    mixed = rng.permutation(len(left))
    forms = [
        [nodes, TableFactors(scopes, table[None])],
        [nodes, TableFactors(scopes, np.repeat(table[None], len(left), axis=0))],
        [TableFactors(scopes[mixed], table[None]), nodes],
        [nodes, TableFactors(scopes[mixed, ::-1], table.T[None])],
        [nodes, TableFactors(scopes, table[None] / 2), TableFactors(scopes[:, ::-1], table.T[None] / 2)],
        [nodes, TableFactors(scopes, table[None] / 4, scale=np.full(len(left), 4))],
    ]
    results = [make_backend("viterbi", marginals=True).infer(FactorGraph(np.full(50, 9), form)) for form in forms]
    assert compile_tables(FactorGraph(np.full(50, 9), forms[0])).find(ChainForm).tables.shape == (1, 9, 9)
    for result in results[1:]:
        assert np.array_equal(result.state, results[0].state)
        assert result.log_potential == results[0].log_potential
        assert result.log_z == results[0].log_z
        assert np.array_equal(result.marginals, results[0].marginals)


def test_a_relabelled_chain_has_the_same_states():
    rng = np.random.default_rng(4)
    graph = chain_graph(rng.normal(size=(40, 4)) * 3, rng.normal(size=(4, 4)), [0, 25, 40])
    name = rng.permutation(40).astype(np.int32)
    shuffled = FactorGraph(graph.domains, [dataclasses.replace(g, scopes=name[g.scopes]) for g in graph.factors])
    backend = make_backend("viterbi", marginals=True)
    one, other = backend.infer(graph), backend.infer(shuffled)
    assert other.state[name].tolist() == one.state.tolist()
    assert other.log_z == pytest.approx(one.log_z, rel=1e-12)
    np.testing.assert_allclose(other.marginals[name], one.marginals, atol=1e-9)


def test_a_compiled_graph_is_as_good_as_the_graph():
    graph = ising(0.4, np.random.default_rng(0).normal(size=(3, 3)))
    backend = make_backend("exact")
    assert backend.infer(compile_tables(graph)).log_z == backend.infer(graph).log_z
    with pytest.raises(UnsupportedGraph, match=r"^factor 7 of group 1 joins variables 1 and 2: a chain$"):
        compile_tables(compile_tables(graph)).require(ChainForm, "a chain")


PAIR = np.zeros((1, 2, 2))


@pytest.mark.parametrize(
    ("factors", "name"),
    [
        ([TableFactors([[0, 1], [1, 2], [3, 1]], PAIR)], "factor 2 of group 0 joins variables 3 and 1"),
        (
            [TableFactors([[0]], np.zeros((1, 2))), TableFactors([[0, 1], [1, 2], [2, 0]], PAIR)],
            "factor 0 of group 1 joins",
        ),
        (
            [TableFactors([[0, 1]], PAIR), TableFactors([[3, 1], [2, 1]], PAIR)],
            "factor 1 of group 1 joins variables 2 and 1",
        ),
        ([TableFactors([[0, 1, 2]], PAIR[..., None].repeat(2, -1))], "factor 0 of group 0 joins variables 0, 1 and 2"),
    ],
)
def test_viterbi_names_the_factor_in_the_way_and_the_way_out(factors, name):
    with pytest.raises(UnsupportedGraph, match=rf"^{name}.*viterbi needs a chain.*use sum-product") as caught:
        make_backend("viterbi").infer(FactorGraph([2, 2, 2, 2], factors))
    assert "\n" not in str(caught.value)


def test_the_factor_that_closes_a_long_cycle_is_on_it():
    scopes = [[i, i + 1] for i in range(5)] + [[6 + i, 6 + (i + 1) % 4] for i in range(4)]
    with pytest.raises(UnsupportedGraph, match=r"^factor 5 of group 0 joins variables 6 and 7"):
        make_backend("viterbi").infer(FactorGraph(np.full(10, 2), [TableFactors(scopes, PAIR)]))


def test_exact_refuses_what_is_too_wide_and_says_how_much_it_would_take():
    grid = ising(0.3, shape=(20, 20))
    with pytest.raises(
        UnsupportedGraph, match=r"takes 2\^\d\d\.\d table cells, but `max_log2_cells` allows only 2\^10; condition"
    ):
        make_backend("exact", max_log2_cells=10).infer(grid)
    full = complete_graph(np.zeros((80, 80)), np.zeros(80))
    with pytest.raises(UnsupportedGraph, match="takes more than 2\\^60 table cells"):
        make_backend("exact").infer(full)


def test_exact_on_variables_without_factors_and_of_one_state():
    result = make_backend("exact").infer(FactorGraph(np.r_[np.ones(9000, int), np.full(14_000, 2)], []))
    assert result.log_z == pytest.approx(14_000 * np.log(2))
    grid = ising(0.3, np.random.default_rng(2).normal(size=(4, 4)))
    result = make_backend("exact").infer(grid)
    states = np.indices((2,) * 16).reshape(16, -1).T
    values = grid.log_potential(states)
    assert result.log_z == pytest.approx(np.logaddexp.reduce(values))
    p = np.exp(values - result.log_z)
    np.testing.assert_allclose(result.marginals[:, 1], p @ states, atol=1e-12)
    assert result.table_counts[1][0, 1, 1] == pytest.approx(
        0.3 * sum(p @ (states[:, a] * states[:, b]) for a, b in grid.factors[1].scopes)
    )


def test_fields_that_were_not_asked_for_are_none():
    result = make_backend("viterbi").infer(chain_graph(np.eye(3), np.zeros((3, 3))))
    assert result.state.tolist() == [0, 1, 2]
    assert result.state.dtype == np.int32
    unasked = ("log_z", "marginals", "table_counts", "trace", "samples", "n_updates")
    assert all(getattr(result, name) is None for name in unasked)
    assert result.seconds > 0


def test_the_impossible_chain_is_named():
    unary = np.zeros((6, 2))
    unary[4] = -np.inf
    with pytest.raises(ImpossibleGraph, match="chain from variable 3 to 5"):
        make_backend("viterbi").infer(chain_graph(unary, np.zeros((2, 2)), [0, 3, 6]))
