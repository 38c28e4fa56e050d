"""Factors and graphs: contents, errors, conditioning and blankets, against the enumerated joint."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from graphs import any_graphs
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle, factors_of
from quick import examples

from herdner.graph import Discrete, FactorGraph, TableFactors

INF = np.inf


@examples(80)
@given(any_graphs())
def test_log_potential_is_the_sum_of_the_factors(graph):
    oracle = Oracle.of_graph(graph)
    np.testing.assert_allclose(graph.log_potential(oracle.states), oracle.log_potentials, atol=1e-12)
    assert graph.log_potential(oracle.states[-1]) == pytest.approx(oracle.log_potentials[-1], abs=1e-12)
    assert np.ndim(graph.log_potential(oracle.states[0])) == 0


@examples(120)
@given(any_graphs(), st.data())
def test_conditioning_keeps_the_log_potential_of_the_completed_state(graph, data):
    oracle = Oracle.of_graph(graph)
    variables = data.draw(st.sets(st.sampled_from(range(graph.n_variables)))) if graph.n_variables else set()
    observed = {i: data.draw(st.integers(0, int(graph.domains.sizes[i]) - 1)) for i in sorted(variables)}
    rest = [i for i in range(graph.n_variables) if i not in observed]
    conditioned = graph.condition(observed)
    assert conditioned.domains.sizes.tolist() == [graph.domains.sizes[i] for i in rest]
    for state, value in zip(oracle.states, oracle.log_potentials, strict=True):
        if all(state[i] == label for i, label in observed.items()):
            assert conditioned.log_potential(state[rest]) == pytest.approx(value, abs=1e-12)


@examples(60)
@given(any_graphs(forbidden=(0.0,)))
def test_a_variable_depends_on_its_blanket_alone(graph):
    oracle = Oracle.of_graph(graph)
    for i in range(graph.n_variables):
        blanket = graph.blanket(i).tolist()
        assert blanket == sorted({j for scope, _ in factors_of(graph) if i in scope for j in scope} - {i})
        for state in oracle.states[:: max(1, len(oracle.states) // 5)]:
            everything = {j: int(state[j]) for j in range(graph.n_variables) if j != i}
            near = {j: everything[j] for j in blanket}
            np.testing.assert_allclose(oracle.conditional(i, everything), oracle.conditional(i, near), atol=1e-9)


def test_tied_tables_are_stored_once_after_conditioning_too():
    scopes = np.stack([np.arange(100), np.arange(1, 101)], axis=1)
    graph = FactorGraph(np.full(101, 3), [TableFactors(scopes, np.arange(9.0).reshape(1, 3, 3))])
    groups = graph.condition({i: i % 3 for i in range(0, 101, 2)}).factors
    assert sum(len(group) for group in groups) == 100
    assert sum(len(group.tables) for group in groups) == 6


def test_values_are_frozen_and_apart_from_the_arrays_they_were_made_of():
    table = np.zeros((1, 2, 2))
    factors = TableFactors([[0, 1]], table)
    table[:] = 7.0
    assert not factors.tables.any()
    for array in (factors.scopes, factors.tables, factors.table_of_factor, factors.scale, Discrete([2]).sizes):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        factors.scale = np.ones(1)
    view = np.zeros((1, 2, 2))
    locked = view[:]
    locked.flags.writeable = False
    again = TableFactors([[0, 1]], locked)
    view[:] = 7.0
    assert not again.tables.any()


def test_a_repeated_number_is_stored_once_and_for_all():
    source = np.array(0.5)
    group = TableFactors([[0], [1]], np.zeros((1, 2)), scale=np.broadcast_to(source, 2))
    source[...] = 7
    assert group.scale.tolist() == [0.5, 0.5]
    assert not group.unscaled
    plain = TableFactors([[0], [1]], np.zeros((1, 2)))
    assert plain.unscaled
    assert plain.table_of_factor.tolist() == [0, 0]
    for row in (group.scale, plain.scale, plain.table_of_factor):
        assert row.strides == (0,)
        with pytest.raises(ValueError, match="read-only"):
            row[0] = 1


def test_a_read_only_array_is_shared_not_copied():
    tables = TableFactors([[0]], np.zeros((1, 2))).tables
    assert TableFactors([[1]], tables).tables is tables


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], np.zeros((1, 2))), r"scopes must have shape \[factors, variables"),
        (([[0, 1]], np.zeros((1, 2))), r"must have 3 axes .*, got shape \(1, 2\)"),
        (([[0.5]], np.zeros((1, 2))), "scopes must hold integers"),
        (([[2**40]], np.zeros((1, 2))), "scopes must hold integers from -2147483648 to 2147483647, got 1099511627776"),
        (([["a"]], np.zeros((1, 2))), "scopes must hold integers"),
        (([[0]], [["a", "b"]]), "tables must hold numbers"),
        (([[-1]], np.zeros((1, 2))), r"factor 0 has the scope \[-1\]; variables are numbered from 0"),
        (([[0, 1], [3, 3]], np.zeros((1, 2, 2))), r"factor 1 has the scope \[3, 3\], which names a variable twice"),
        (([[0], [1], [2]], np.zeros((2, 2))), "1 table, or one for each of the 3 factors, got 2 tables"),
        (([[0]], np.zeros((0, 2))), "1 table, or one for each of the 1 factors, got 0 tables"),
        (([[0]], np.zeros((1, 2)), [1]), "factor 0 uses table 1, but the tables are 0 to 0"),
        (([[0]], np.zeros((1, 2)), [0, 0]), "table_of_factor must have one entry for each of the 1"),
        (([[0]], np.zeros((1, 2)), [0], [1, 2]), "scale must have one entry"),
        (([[0]], np.zeros((1, 2)), [0], [INF]), "factor 0 has scale inf"),
        (([[0]], [[0, np.nan]]), "table 0 holds NaN"),
        (([[0], [1]], [[0, 0], [INF, -INF]]), r"table 1 holds NaN or \+inf"),
        (([[0], [1]], [[0.0, -INF]], None, [1, 0]), "factor 1 has scale 0, but its table 0 holds -inf"),
        (([[0]], [[0.0, -INF]], None, [-2]), "factor 0 has scale -2"),
    ],
)
def test_wrong_factors_are_refused_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        TableFactors(*arguments)
    assert "\n" not in str(caught.value)


def test_a_scale_of_zero_is_fine_beside_a_table_that_forbids():
    factors = TableFactors([[0], [0]], [[0, -INF], [1, 2]], [0, 1], [3, 0])
    assert FactorGraph([2], [factors]).log_potential([[0], [1]]).tolist() == [0, -INF]


@pytest.mark.parametrize(
    ("sizes", "scopes", "message"),
    [
        ([2, 2], [[0, 2]], "group 1: factor 0 names variable 2, but the graph's variables are 0 to 1"),
        ([2, 3, 2], [[0, 2], [0, 1]], "group 1: factor 1: variable 1 has 3 states, but axis 2 of the factor.s table"),
        ([2, 0], [[0, 1]], "variable 1 has 0 states"),
        ([[2, 2]], [[0, 1]], "sizes must be a list"),
    ],
)
def test_a_graph_refuses_factors_that_do_not_fit(sizes, scopes, message):
    with pytest.raises(ValueError, match=message):
        FactorGraph(sizes, [TableFactors([[0]], np.zeros((1, 2))), TableFactors(scopes, np.zeros((1, 2, 2)))])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0], r"shape \[2\], P states \[P, 2\], got \(1,\)"),
        ([0, 3], "the state of variable 1 must be from 0 to 2, got 3"),
        ([[0, 0], [-1, 0]], "the state of variable 0 must be from 0 to 1, got -1"),
        ([0.5, 0], "integers"),
    ],
)
def test_states_outside_the_domains_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        FactorGraph([2, 3], []).log_potential(x)


@pytest.mark.parametrize("call", [lambda g: g.blanket(2), lambda g: g.blanket(-1), lambda g: g.condition({5: 0})])
def test_variables_that_do_not_exist_are_refused(call):
    with pytest.raises(ValueError, match="the graph's variables are 0 to 1"):
        call(FactorGraph([2, 2], []))


def test_observed_labels_are_checked():
    with pytest.raises(ValueError, match="variable 1 must be from 0 to 1, got 2"):
        FactorGraph([2, 2], []).condition({1: 2})


def test_an_empty_graph_has_one_state():
    assert FactorGraph([], []).log_potential(np.empty((2, 0), int)).tolist() == [0, 0]


@dataclasses.dataclass(frozen=True)
class Line:
    """Domains of real numbers that FactorGraph does not import."""

    n: int

    def __len__(self):
        return self.n

    def points(self, x):
        return np.atleast_2d(np.asarray(x, float))

    def select(self, variables):
        return Line(len(variables))


@dataclasses.dataclass(frozen=True)
class Springs:
    """Factors -(x_a - x_b)^2 / 2 that FactorGraph does not import."""

    scopes: np.ndarray

    def check(self, domains):
        if not isinstance(domains, Line):
            raise ValueError("springs join numbers")

    def log_potential(self, points):
        return -0.5 * ((points[:, self.scopes[:, 0]] - points[:, self.scopes[:, 1]]) ** 2).sum(axis=1)


def test_a_graph_is_blind_to_the_kinds_of_its_domains_and_factors():
    graph = FactorGraph(Line(3), [Springs(np.array([[0, 1], [1, 2]]))])
    assert graph.log_potential([0.0, 1.0, 3.0]) == -2.5
    assert graph.blanket(1).tolist() == [0, 2]
    with pytest.raises(ValueError, match="group 0: springs join numbers"):
        FactorGraph([2, 2], [Springs(np.array([[0, 1]]))])
    with pytest.raises(ValueError, match="group 0: table factors need variables with Discrete domains, not Line"):
        FactorGraph(Line(1), [TableFactors([[0]], np.zeros((1, 2)))])


@pytest.mark.parametrize("size", [1e301, -1e301, 1.7e308])
def test_log_potentials_beyond_the_range_of_their_sums_are_told(size):
    with pytest.raises(
        ValueError,
        match=r"^.* of factors 0 to 1 could add up to more than 1e\+300 \(factor 1 has the variables \[1, 2\]\)",
    ):
        TableFactors([[0, 1], [1, 2]], [[[0.0, 0.0], [0.0, 0.0]], [[0.0, size], [0.0, 0.0]]])
    with pytest.raises(ValueError, match="the log-potentials of factors"):
        TableFactors([[0]], [[0.0, 2.0]], scale=[size])


def test_scales_beyond_the_range_of_their_sums_are_told():
    """Scales weight the counts of a cell, even if its log-potential is nearly 0."""
    with pytest.raises(
        ValueError, match=r"^the scales of factors 0 to 1 add up to more than 1e\+300 \(factor 1 has scale -1.7e\+308\)"
    ):
        TableFactors([[0], [1]], [[0.0, 1e-20]], scale=[1.0, -1.7e308])
    assert TableFactors([[0], [1]], [[0.0, 1e-20]], scale=[1e299, -1e299]).reach == 2e279


def test_the_reach_of_a_group_is_the_most_its_finite_entries_add_up_to():
    tables = [[1.0, -3.0], [-np.inf, 0.5]]
    assert TableFactors([[0], [1], [2]], tables, [0, 0, 1], [2.0, -1.0, 4.0]).reach == 2 * 3 + 1 * 3 + 4 * 0.5


def test_memory_that_somebody_else_can_change_is_copied_by_groups_and_sizes(tmp_path):
    """Use a read-only memory map of a file that is written to, and read-only views of writeable arrays."""
    writer = np.memmap(tmp_path / "numbers", np.int32, "w+", shape=2)
    seen = np.memmap(tmp_path / "numbers", np.int32, "r", shape=2)
    owner, scopes = np.full(2, 2, np.int32), np.array([[0], [1]], np.int32)
    sizes, places = owner.view(), scopes.view()
    sizes.flags.writeable = places.flags.writeable = False
    group = TableFactors(places, np.zeros((2, 2)), seen, np.broadcast_to(np.float64(1), 2))
    graph = FactorGraph(sizes, [group])
    writer[:], owner[:], scopes[:] = 10**6, 10**6, 10**6
    assert graph.factors[0].table_of_factor.tolist() == [0, 0]
    assert graph.factors[0].scopes.tolist() == [[0], [1]]
    assert graph.domains.sizes.tolist() == [2, 2]
