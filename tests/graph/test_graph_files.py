"""Graph files: round trips, files of other programs, and untrusted files."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from graphs import any_graphs
from hypothesis import given
from quick import examples

from herdner.graph import FactorGraph, GraphFileError, ising, load_graph, potts, save_graph


def same(one: FactorGraph, other: FactorGraph) -> None:
    np.testing.assert_array_equal(one.domains.sizes, other.domains.sizes)
    assert len(one.factors) == len(other.factors)
    for a, b in zip(one.factors, other.factors, strict=True):
        for name in ("scopes", "tables", "table_of_factor", "scale"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@examples(30)
@given(graph=any_graphs())
def test_there_and_back(graph, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("graphs") / "graph.npz"
    save_graph(path, graph)
    same(load_graph(path), graph)


def test_builders_there_and_back(tmp_path) -> None:
    for graph in (ising(0.2, np.linspace(-1, 1, 12).reshape(3, 4)), potts(0.5, np.zeros((3, 3, 4)))):
        save_graph(tmp_path / "g.npz", graph)
        same(load_graph(tmp_path / "g.npz"), graph)
    assert [path.name for path in tmp_path.iterdir()] == ["g.npz"]


def test_names_and_shapes_there_and_back(tmp_path) -> None:
    path = tmp_path / "g.npz"
    grid = ising(0.2, np.zeros((3, 4)))
    save_graph(path, grid)
    assert (load_graph(path).shape, load_graph(path).names) == ((3, 4), None)
    image = grid.condition({1: 1, 6: 0})
    save_graph(path, image)
    loaded = load_graph(path)
    assert (loaded.shape, loaded.observed) == ((3, 4), {1: 1, 6: 0})
    same(loaded, image)
    states = np.zeros(10, np.int32)
    np.testing.assert_array_equal(loaded.on_grid(states), image.on_grid(states))
    for names in (["rain", "überall", ""], []):
        save_graph(path, FactorGraph([2] * len(names), [], names=names))
        assert load_graph(path).names == tuple(names)
    with pytest.raises(ValueError, match="must not contain zero bytes"):
        save_graph(path, FactorGraph([2], [], names=["a\0b"]))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"names": np.array([97], np.uint8)}, "must have one name for each of 2 variables, got 1"),
        ({"names": np.array([255, 0, 97], np.uint8)}, "can't decode byte 0xff"),
        ({"names": [97, 0, 98]}, "array names must hold uint8, not int64"),
        ({"shape": [3]}, r"a grid of shape \(3,\) has 3 variables, but the graph has 2"),
        ({"shape": [0.5]}, "array shape must hold int32"),
        ({"observed": [[0, 1]]}, "observed cells belong to a grid"),
        ({"shape": [3], "observed": [0, 1]}, "array observed must hold pairs of a cell and its state"),
        ({"shape": [3], "observed": [[0, -1]]}, "array observed must hold pairs of a cell and its state"),
        ({"shape": [3], "observed": [[3, 1]]}, "observed: there is no"),
        ({"shape": [4], "observed": [[3, 1], [3, 1]]}, "4 variables, but the graph has 2 and 1 observed cells"),
    ],
)
def test_names_and_shapes_of_files_are_checked(tmp_path, arrays, message) -> None:
    np.savez(tmp_path / "g.npz", format=[1], sizes=[2, 3], **arrays)
    with pytest.raises(GraphFileError, match=message):
        load_graph(tmp_path / "g.npz")


def test_uai_files_are_refused_with_the_right_function(tmp_path) -> None:
    path = tmp_path / "g.uai"
    with pytest.raises(ValueError, match=r"save_graph writes \.npz files; use herdner\.graph\.uai_files\.write_uai"):
        save_graph(path, ising(0.2, 0.1, shape=(2, 2)))
    assert not path.exists()
    path.write_text("MARKOV\n1\n2\n0\n")
    assert load_graph(path).n_variables == 1


def test_numpy_alone_writes_one(tmp_path) -> None:
    np.savez(tmp_path / "g.npz", format=[1], sizes=[2, 3], scopes_0=[[0, 1]], tables_0=np.ones((1, 2, 3)))
    graph = load_graph(tmp_path / "g.npz")
    assert graph.log_potential([1, 2]) == 1.0


class Trap:
    """Object whose unpickling would call a function."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


GOOD = {"format": [1], "sizes": [2, 3], "scopes_0": [[0, 1]], "tables_0": np.ones((1, 2, 3))}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": [2]}, "array 'format' must hold the version 1"),
        ({"format": None}, "array 'format' must hold the version 1"),
        ({"sizes": None}, "array sizes is missing"),
        ({"sizes": [2, 2]}, "variable 1 has 2 states"),
        ({"sizes": [2.0, 3.0]}, "sizes must hold int32, not float64"),
        ({"tables_0": None}, "needs both arrays scopes_0 and tables_0"),
        ({"tables_0": np.full((1, 2, 3), np.nan)}, "NaN"),
        ({"tables_0": np.array([Trap()], object)}, "tables_0 has the type object"),
        ({"scopes_0": [[0, 5]]}, "names variable 5"),
        ({"tables_0": np.asfortranarray(np.ones((2, 2, 3)))}, "Fortran order"),
        ({"extra": [1]}, "unknown array"),
        ({"scale_0": [1.0, 2.0]}, "scale must have one entry"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path, changes, words) -> None:
    arrays = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    np.savez(tmp_path / "g.npz", **arrays)
    with pytest.raises(GraphFileError, match=words) as caught:
        load_graph(tmp_path / "g.npz")
    assert "\n" not in str(caught.value)
    assert "g.npz" in str(caught.value)


def test_other_files_are_refused(tmp_path) -> None:
    path = tmp_path / "g.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(GraphFileError, match=r"expected an \.npz file"):
        load_graph(path)
    np.savez_compressed(path, **GOOD)
    with pytest.raises(GraphFileError, match="compressed"):
        load_graph(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(GraphFileError, match="is not an array"):
        load_graph(path)


def test_claims_of_size_take_no_memory(tmp_path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i4", "fortran_order": False, "shape": (2**60,)})
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("sizes.npy", header.getvalue())
    with pytest.raises(GraphFileError, match="damaged"):
        load_graph(tmp_path / "g.npz")


def test_damaged_files_are_errors_of_this_kind_or_harmless(tmp_path) -> None:
    graph = ising(0.2, 0.1, (3, 3))
    state = np.zeros(9, np.int32)
    save_graph(tmp_path / "g.npz", graph)
    whole = bytearray((tmp_path / "g.npz").read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = whole.copy()
        for at in rng.integers(0, len(whole), 3):
            damaged[at] = rng.integers(0, 256)
        (tmp_path / "d.npz").write_bytes(damaged[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else damaged)
        try:
            loaded = load_graph(tmp_path / "d.npz")
        except GraphFileError:
            continue
        for other in (state, 1 - state, np.arange(9, dtype=np.int32) % 2):
            assert loaded.log_potential(other) == graph.log_potential(other)
