"""Checked and read-only arrays.

Compiled loops read these arrays without further checks, so no caller may be able to change them. NumPy's ``writeable``
flag does not guarantee that: the owner of the memory, or an older view of it, can set the flag again. A *sealed* array
is a view of a compiled `herdner._ext.memory.Memory`, which owns its memory and has no writable view.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext.arrays import Floats as Floats
from herdner._ext.arrays import Int32s as Int32s
from herdner._ext.arrays import Int64s as Int64s
from herdner._ext.memory import is_sealed, sealed

T = TypeVar("T", bound=np.generic)


def frozen(values: ArrayLike, dtype: type[T], name: str) -> NDArray[T]:
    """Return the values as a C-contiguous array that is permanently read-only ("sealed").

    Args:
        values: The values; they are copied unless they are a sealed array of this type.
        dtype: Type of the elements.
        name: Name of the array, for messages.

    Returns:
        The sealed array.

    Raises:
        ValueError: The values are not numbers, or not integers in the range of an integer ``dtype``.
    """
    array = np.asarray(values)
    if array.dtype != dtype:
        array = _convert(array, dtype, name)
    if array.flags.c_contiguous and is_sealed(array):
        return array
    owned = [array]
    del array  # so that `sealed` does not copy an array that was made here
    return sealed(owned)


def constant(value: ArrayLike, n: int, dtype: type[T]) -> NDArray[T]:
    """Return a read-only array [n] in which one value is repeated.

    The value is stored once (stride 0).

    Args:
        value: The value.
        n: Length of the array.
        dtype: Type of the array.
    """
    return np.broadcast_to(sealed([np.array(value, dtype)]), n)


def frozen_or_constant(values: ArrayLike, dtype: type[T], name: str) -> NDArray[T]:
    """Return values as a permanently read-only array; a broadcast scalar (stride 0) is stored only once.

    Args:
        values: [n], the values; they are copied unless the array is already permanently read-only.
        dtype: Type of the array.
        name: Name of the values in error messages.

    Returns:
        dtype[n], the values.
    """
    array = np.asarray(values)
    if array.ndim == 1 and array.size and array.strides == (0,):
        return constant(frozen(array[0], dtype, name), len(array), dtype)
    return frozen(array, dtype, name)


def finite(values: ArrayLike, name: str) -> Floats:
    """Convert values to a C-contiguous float64 array, and check that all are finite.

    Args:
        values: Array of any shape.
        name: Name of the values in the error message.

    Returns:
        float64 array of the same shape; the array itself if it already has this type and layout.

    Raises:
        ValueError: A value is NaN or infinite.
    """
    array = np.ascontiguousarray(values, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers, got NaN or infinity")
    return array


def _convert(array: NDArray[Any], dtype: type[T], name: str) -> NDArray[T]:
    if np.issubdtype(dtype, np.integer) and array.size:
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must hold integers, not {array.dtype}")
        limits = np.iinfo(dtype)  # type: ignore[type-var]
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(
                f"{name} must hold integers from {limits.min} to {limits.max}, got {array.min()} to {array.max()}"
            )
    try:
        return array.astype(dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, not {array.dtype}") from None
