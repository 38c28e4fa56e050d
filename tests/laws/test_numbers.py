"""Extreme numbers: results are exact where exactness is defined, else an error of one line; never a NaN."""

from __future__ import annotations

import re

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, chain_graph, ising
from herdner.inference import BACKENDS, ImpossibleGraph, UnsupportedGraph, make_backend
from herdner.inference.backends.gibbs import annealed_gibbs

FEW = {"n_sweeps": 5, "burn_in": 1, "n_rounds": 8, "n_particles": 4, "n_temperatures": 10, "n_replicas": 2}


def backend(name: str):
    from herdner.inference import describe_backend

    known = {option.name for option in describe_backend(name).options}
    return make_backend(name, **{key: value for key, value in FEW.items() if key in known})


def infer(name: str, graph: FactorGraph):
    """Return the result, or None if the backend does not support such graphs."""
    try:
        return backend(name).infer(graph, 1)
    except UnsupportedGraph:
        return None


def assert_sound(graph: FactorGraph, result) -> None:
    assert graph.log_potential(result.state) > -np.inf
    for found in (result.marginals, result.rao_blackwell, result.joint, *(result.table_counts or ())):
        assert found is None or np.isfinite(found).all()
    for found in (result.log_z, result.log_potential, result.trace):
        assert found is None or not np.isnan(found).any()


def linked(unary: np.ndarray, pair: np.ndarray) -> FactorGraph:
    """Return two chains of four variables with links."""
    links = TableFactors(np.array([[0, 5], [2, 7]], np.int32), pair[None])
    graph = chain_graph(unary, pair, [0, 4, 8])
    return FactorGraph(graph.domains, [*graph.factors, links])


SIZES = [1e300, -1e300, 1e298, -1e298, 5e-324, -5e-324, 1e-310, 745.2]


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
def test_huge_and_tiny_log_potentials_give_no_nan(name):
    rng = np.random.default_rng(2)
    for size in SIZES:
        for make in (lambda u, p: chain_graph(u, p, [0, 4, 8]), linked, lambda u, p: chain_graph(u, np.zeros((3, 3)))):
            unary, pair = rng.normal(size=(8, 3)), rng.normal(size=(3, 3))
            unary[rng.random((8, 3)) < 0.4] = size
            if abs(size) < 1e200:
                pair[rng.random((3, 3)) < 0.4] = size
            try:
                graph = make(unary, pair)
                result = infer(name, graph)
            except ValueError as error:  # what adds up to no number
                assert re.search(r"^the log-potentials of factors 0 to \d+ .* has the variables \[\d", str(error))  # noqa: PT017
                assert abs(size) == 1e300
                continue
            if result is not None:
                assert_sound(graph, result)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_variable_without_a_possible_label_is_named_by_every_backend(name):
    for n_labels in (1, 2, 3):
        unary = np.zeros((4, n_labels))
        unary[2] = -np.inf
        graph = chain_graph(unary, np.zeros((n_labels, n_labels)))
        with pytest.raises((ImpossibleGraph, UnsupportedGraph)) as caught:
            backend(name).infer(graph, 1)
        assert "\n" not in str(caught.value)
        if isinstance(caught.value, UnsupportedGraph):
            assert infer(name, chain_graph(np.zeros((4, n_labels)), np.zeros((n_labels, n_labels)))) is None


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("n_labels", [1, pytest.param(65_535, marks=pytest.mark.slow)])
def test_one_label_and_the_most(name, n_labels):
    """Use isolated variables, all but one state of each impossible or far less probable."""
    unary = np.full((3, n_labels), -50.0)
    likely = [0, n_labels // 2, n_labels - 1]
    unary[np.arange(3), likely] = 50.0
    scopes = np.arange(3, dtype=np.int32)[:, None]
    try:
        result = backend(name).infer(FactorGraph(np.full(3, n_labels), [TableFactors(scopes, unary)]), 1)
    except (ValueError, MemoryError) as error:  # a backend that does not take so many
        assert n_labels > 1
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert result.state.tolist() == likely
    if result.marginals is not None:
        np.testing.assert_allclose(result.marginals.sum(axis=1), 1, atol=1e-9)


# Sums of eighths, of a modest size, are exact in any order; so is what a constant of 64 adds.
@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("shift", [64.0, -4096.0])
def test_a_constant_on_a_row_changes_nothing_bit_for_bit(name, shift):
    rng = np.random.default_rng(4)
    for n_labels in (2, 3):
        unary, pair = rng.integers(-16, 17, (8, n_labels)) / 8, rng.integers(-8, 9, (n_labels, n_labels)) / 8
        moved = unary.copy()
        moved[[1, 5]] += shift
        for make in (lambda u, p: chain_graph(u, p, [0, 4, 8]), linked):
            before, after = infer(name, make(unary, pair)), infer(name, make(moved, pair))
            if before is None:
                assert after is None
                continue
            np.testing.assert_array_equal(after.state, before.state)
            assert after.log_potential == pytest.approx(before.log_potential + 2 * shift, rel=1e-13)
            for found, expected in ((after.marginals, before.marginals), (after.rao_blackwell, before.rao_blackwell)):
                if expected is not None:
                    # Samplers see the same numbers; sums over all states are taken at another height.
                    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shift", [64.0, -4096.0])
def test_a_constant_on_a_field_of_a_grid_changes_no_draw(shift):
    rng = np.random.default_rng(5)
    fields, pairs = ising(0.25, np.zeros((5, 5))).factors
    tables = rng.integers(-16, 17, (25, 2)) / 8
    moved = tables + np.where(rng.random((25, 1)) < 0.5, shift, 0.0)
    both = [FactorGraph(np.full(25, 2), [TableFactors(fields.scopes, t), pairs]) for t in (tables, moved)]
    for name in ("gibbs", "herded-gibbs", "dhg", "rdhg", "icm"):
        a, b = (backend(name).infer(graph, 3) for graph in both)
        np.testing.assert_array_equal(a.state, b.state)


@pytest.mark.parametrize("annealing", ["linear(0, 0)", "linear(1e6, 1e6)", "geometric(1e-300, 1e6)", "linear(0, 1e6)"])
def test_no_heat_and_all_of_it(annealing):
    """At beta 0 all possible states are equally probable; at 10^6 a draw gives the best state."""
    rng = np.random.default_rng(6)
    unary, pair = rng.normal(size=(8, 3)), rng.normal(size=(3, 3))
    unary[3, 1] = -np.inf
    graph = linked(unary, pair)
    result = annealed_gibbs(annealing=annealing, n_sweeps=200).infer(graph, 1)
    assert_sound(graph, result)
    assert result.state[3] != 1
    if annealing.endswith("1e6)") and "0, 0" not in annealing:
        # Nothing that changes one variable is better.
        best = float(graph.log_potential(result.state))
        for v in range(8):
            for label in range(3):
                other = result.state.copy()
                other[v] = label
                assert float(graph.log_potential(other)) <= best + 1e-9
