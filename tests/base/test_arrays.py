"""Frozen arrays cannot be changed by callers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from herdner.base.arrays import constant, frozen, frozen_or_constant, sealed


def test_an_array_whose_owner_is_made_writeable_later_is_copied() -> None:
    owner = np.zeros(3)
    older_view = owner[:]
    owner.flags.writeable = False
    array = frozen(owner, np.float64, "numbers")
    older_view[:] = 7
    owner.flags.writeable = True
    owner[:] = 7
    assert not array.any()


@pytest.mark.parametrize("buffer", [bytearray(24), np.zeros(3)])
def test_a_read_only_view_of_somebody_s_buffer_is_copied(buffer) -> None:
    array = frozen(np.frombuffer(memoryview(buffer).toreadonly(), np.float64), np.float64, "numbers")
    memoryview(buffer).cast("B")[:] = bytes(range(24))
    assert not array.any()


def test_a_read_only_memory_map_is_copied(tmp_path) -> None:
    writer = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=3)
    array = frozen(np.memmap(tmp_path / "numbers", np.float64, "r", shape=3), np.float64, "numbers")
    writer[:] = 7
    assert not array.any()


@pytest.mark.parametrize(
    "array",
    [
        frozen([1, 2, 3, 4], np.int32, "numbers"),
        frozen([1, 2, 3, 4], np.int32, "numbers")[1:],
        frozen([1, 2, 3, 4], np.int32, "numbers").reshape(2, 2),
        sealed([np.arange(4.0)]),
        constant(3, 4, np.int32),
        frozen_or_constant(np.broadcast_to(np.float64(3), 4), np.float64, "numbers"),
    ],
)
def test_the_writeable_flag_cannot_be_set(array) -> None:
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        array.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 1


def test_frozen_arrays_and_their_views_are_not_copied() -> None:
    array = frozen([[1, 2], [3, 4]], np.int32, "numbers")
    assert frozen(array, np.int32, "numbers") is array
    row = array[1]
    assert frozen(row, np.int32, "numbers") is row
    assert frozen(array.T, np.int32, "numbers").flags.c_contiguous


def references() -> dict[str, Callable[[np.ndarray], Callable[[], np.ndarray | None]]]:
    """Return ways to refer to an array; each returns a function that gives the array, or None if it is gone."""

    def reference(array):
        return lambda: array

    def view(array):
        later = array[:]
        return lambda: later

    def exported(array):
        later = memoryview(array)
        return lambda: np.asarray(later)

    return {"reference": reference, "view": view, "weak reference": weakref.ref, "memoryview": exported}


@pytest.mark.parametrize("way", references())
@pytest.mark.parametrize("call", [lambda values: sealed(values), lambda values: sealed(*(values,)), "partial"])
def test_memory_is_not_taken_while_something_refers_to_it(way: str, call) -> None:
    values = [np.arange(4.0)]
    later = references()[way](values[0])
    array = partial(sealed, values)() if call == "partial" else call(values)
    assert not values
    if (writable := later()) is not None:
        writable[:] = 7
    assert array.tolist() == [0, 1, 2, 3]


def test_memory_of_a_temporary_array_is_taken() -> None:
    values = [np.arange(4.0)]
    address = values[0].ctypes.data
    assert sealed(values).ctypes.data == address


def test_an_array_with_a_false_base_is_copied() -> None:
    class Liar(np.ndarray):
        base = property(lambda _: frozen([1.0], np.float64, "numbers").base)

    liar = np.ndarray.__new__(Liar, 3)
    liar[:] = 1
    array = frozen(np.asarray(liar), np.float64, "numbers")
    liar[:] = 2
    assert array.tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0), (2, 3)])
def test_shape_type_and_numbers_stay(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.uint16)
    array = frozen(values, np.uint16, "numbers")
    assert (type(array), array.dtype, array.shape) == (np.ndarray, np.uint16, shape)
    assert (array == values).all()
