"""Names of variables and shapes of grids."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from herdner import (
    FactorGraph,
    TableFactors,
    complete_graph,
    ising,
    load_graph,
    make_backend,
    potts,
    save_graph,
)


def rain() -> FactorGraph:
    table = np.log([[[0.72, 0.08], [0.02, 0.18]]])
    return FactorGraph([2, 2], [TableFactors([[0, 1]], table)], names=["rain", "wet"])


def test_evidence_and_results_by_name():
    graph = rain()
    marginals = graph.by_name(make_backend("exact").infer(graph).marginals)
    np.testing.assert_allclose(marginals["wet"], [0.74, 0.26])
    rest = graph.condition({"wet": 1})
    assert rest.names == ("rain",)
    np.testing.assert_allclose(rest.by_name(make_backend("exact").infer(rest).marginals)["rain"], [8 / 26, 18 / 26])
    assert graph.condition({1: 1}).names == ("rain",)
    assert (graph.index("wet"), graph.index(1)) == (1, 1)


def test_grids_know_their_shape():
    grid = ising(0.3, np.random.default_rng(0).normal(size=(3, 4)))
    marginals = make_backend("exact").infer(grid).marginals
    image = grid.on_grid(marginals)
    assert image.shape == (3, 4, 2)
    np.testing.assert_array_equal(image[2, 1], marginals[2 * 4 + 1])
    assert grid.on_grid(np.arange(12))[1, 2] == 6
    assert potts(0.5, np.zeros((2, 3, 4, 5))).shape == (2, 3, 4)
    assert potts(0.5, np.zeros((3, 2)), [[0, 1]]).shape is None


def test_observed_cells_of_a_grid_are_filled(tmp_path):
    grid = potts(0.3, np.random.default_rng(0).normal(size=(2, 3, 3)))
    rest = grid.condition({1: 2}).condition({3: 0})  # the second index is that of cell 4
    assert (rest.shape, rest.observed) == ((2, 3), {1: 2, 4: 0})
    result = make_backend("exact").infer(rest)
    image = rest.on_grid(result.marginals)
    assert image.shape == (2, 3, 3)
    np.testing.assert_array_equal(image[[0, 1], [1, 1]], [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(image.reshape(6, 3)[[0, 2, 3, 5]], result.marginals)
    states = rest.on_grid(result.state)
    assert (states[0, 1], states[1, 1], states[1, 2]) == (2, 0, result.state[3])
    assert grid.log_potential(states.ravel()) == pytest.approx(result.log_potential)
    whole = grid.condition(dict.fromkeys(range(6), 1))
    assert whole.on_grid(np.empty(0, np.int32)).tolist() == [[1, 1, 1]] * 2
    assert grid.condition({}).on_grid(np.arange(6)).shape == (2, 3)
    copy = pickle.loads(pickle.dumps(rest))
    np.testing.assert_array_equal(copy.on_grid(result.state), states)
    save_graph(tmp_path / "rest.npz", rest)
    loaded = load_graph(tmp_path / "rest.npz")
    assert (loaded.shape, loaded.observed) == (rest.shape, rest.observed)
    for values in (np.zeros(4), np.zeros((4, 3), int)):
        with pytest.raises(ValueError, match=r"must be states \[V\] or marginals \[V, K\], got"):
            rest.on_grid(values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a"]}, "names must have one name for each of 2 variables, got 1"),
        ({"names": ["a", "a"]}, "the name 'a' belongs to two variables"),
        ({"names": ["a", 2]}, "names must be a list of strings"),
        ({"names": "ab"}, "names must be a list of strings"),
        ({"shape": ()}, "has 1 variables"),
        ({"shape": (2, 2)}, r"grid of shape \(2, 2\) has 4 variables, but the graph has 2"),
        ({"shape": (2, 2), "observed": {0: 1}}, "but the graph has 2 and 1 observed cells"),
        ({"observed": {0: 1}}, "observed cells belong to a grid"),
        ({"shape": (3,), "observed": {3: 1}}, "observed: there is no variable 3"),
    ],
)
def test_names_and_shapes_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        FactorGraph([2, 2], [], **options)


def test_missing_names_and_shapes_are_one_line():
    graph = complete_graph(0.1, np.zeros(3))
    for call, message in [
        (lambda: graph.by_name(np.zeros(3)), "have no names"),
        (lambda: graph.on_grid(np.zeros(3)), "is not a grid"),
        (lambda: graph.condition({"a": 1}), "no variable named 'a'"),
        (lambda: rain().by_name(np.zeros(3)), r"one row for each of 2 variables, got shape \(3,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
