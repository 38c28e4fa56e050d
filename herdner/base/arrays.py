"""Checked, read-only arrays: what frozen values are made of.

Compiled loops read these arrays without looking, so nothing that a caller still holds may change them. NumPy's
``writeable`` flag alone does not promise that: the owner of the memory, or an older view of it, can be made writeable
again. A sealed array stands on a read-only buffer, on which NumPy refuses to set the flag.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T", bound=np.generic)
Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]  # labels, variables
Int64s = NDArray[np.int64]  # places, numbers of things


class _Owner(np.ndarray[Any, Any]):
    """The memory below a sealed array: its class tells it from memory that somebody else holds."""


def frozen(values: ArrayLike, dtype: type[T], name: str) -> NDArray[T]:
    """A sealed, C-contiguous array: a copy, unless ``values`` is sealed already.

    Raises ValueError where integers are wanted and something else, or something out of their range, is given.
    """
    array = np.asarray(values)
    if array.dtype != dtype:
        array = _converted(array, dtype, name)
    if array.flags.c_contiguous and _is_sealed(array):
        return array
    return sealed(array.copy(order="C"))


def sealed(array: NDArray[T]) -> NDArray[T]:
    """The same numbers, read-only for good, without a copy: for an array that nobody else holds."""
    buffer = memoryview(array.view(_Owner))  # pyright: ignore[reportArgumentType]  (NumPy declares it for 3.12)
    return np.asarray(buffer.toreadonly())


def constant(value: ArrayLike, n: int, dtype: type[T]) -> NDArray[T]:
    """[n]: one number, stored once (the array has stride 0)."""
    return np.broadcast_to(sealed(np.array(value, dtype)), n)


def frozen_or_constant(values: ArrayLike, dtype: type[T], name: str) -> NDArray[T]:
    """Like `frozen`, but a row that repeats one number by stride 0 stays so."""
    array = np.asarray(values)
    if array.ndim == 1 and array.size and array.strides == (0,):
        return constant(frozen(array[0], dtype, name), len(array), dtype)
    return frozen(array, dtype, name)


def finite(values: ArrayLike, name: str) -> Floats:
    """Doubles in C order; ValueError where some are not finite."""
    array = np.ascontiguousarray(values, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers")
    return array


def _is_sealed(array: NDArray[Any]) -> bool:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, memoryview) and base.readonly and type(base.obj) is _Owner  # pyright: ignore[reportUnnecessaryIsInstance]  # NumPy declares arrays alone


def _converted(array: NDArray[Any], dtype: type[T], name: str) -> NDArray[T]:
    if np.issubdtype(dtype, np.integer) and array.size:
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must hold integers, not {array.dtype}")
        limits = np.iinfo(dtype)  # type: ignore[type-var]
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(f"{name} holds numbers outside {limits.min} to {limits.max}")
    try:
        return array.astype(dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, not {array.dtype}") from None
