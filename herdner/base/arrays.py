"""Checked, read-only arrays: what frozen values are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def frozen(values: ArrayLike, dtype: type, name: str) -> NDArray:
    """A read-only, C-contiguous array; a copy, unless ``values`` is such an array already.

    Raises ValueError where integers are wanted and something else, or something out of their range, is given.
    """
    array = np.asarray(values)
    if array.dtype != dtype:
        array = _converted(array, dtype, name)
    if array.flags.writeable or not array.flags.c_contiguous or not _owned(array):
        array = array.copy(order="C")
        array.flags.writeable = False
    return array


def constant(value: ArrayLike, n: int, dtype: type) -> NDArray:
    """[n]: one number, stored once (the array has stride 0)."""
    single = np.array(value, dtype)
    single.flags.writeable = False
    return np.broadcast_to(single, n)


def frozen_or_constant(values: ArrayLike, dtype: type, name: str) -> NDArray:
    """Like `frozen`, but a row that repeats one number by stride 0 stays so."""
    array = np.asarray(values)
    if array.ndim == 1 and array.size and array.strides == (0,):
        return constant(frozen(array[0], dtype, name), len(array), dtype)
    return frozen(array, dtype, name)


def _owned(array: NDArray) -> bool:
    """No other array can change this one's memory."""
    base = array.base
    return base is None or (isinstance(base, np.ndarray) and not base.flags.writeable)


def _converted(array: NDArray, dtype: type, name: str) -> NDArray:
    if np.issubdtype(dtype, np.integer) and array.size:
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must hold integers, not {array.dtype}")
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(f"{name} holds numbers outside {limits.min} to {limits.max}")
    try:
        return array.astype(dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, not {array.dtype}") from None
