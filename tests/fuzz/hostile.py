"""Hostile versions of valid arguments.

Arrays get other values, layouts, types, sizes and classes. Objects get other fields, are copied and pickled.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
import tempfile
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
from faults.reentrant import Liar, Meddler

from fuzz.calls import Changing, Longer, Odd
from fuzz.files import VALUES
from fuzz.graphs import ODD, Rng, pick

Array = np.ndarray[Any, Any]

HUGE = 2**31  # length of views of a few elements
LIMITS = [-1, 0, 1, 2, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, -(2**31), -(2**63)]
TYPES = ["i1", "u1", "i2", "u2", "i4", ">i4", "i8", ">i8", "u8", "f2", "f4", "f8", ">f8", "g", "c16", "?", "O", "U3"]
LAYOUTS = ["strides", "reversed", "fortran", "unaligned", "memory map", "read-only", "huge"]
KINDS = ["liar", "two-faced", "masked", "list", "shorter", "longer", "empty", "axis", "no axis", "zeros"]
# Parameters whose large values take long.
COUNTS = ("n_", "burn_in", "thin", "max_", "iterations", "size", "most", "num", "at_most")


class TwoFaced:
    """Object that is converted to a different array each time."""

    def __init__(self, array: Array, rng: Rng) -> None:
        self.array, self.rng = array, rng

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(values_changed(self.rng, self.array), dtype)


def values_changed(rng: Rng, array: Array) -> Array:
    """Return a copy with some numbers out of range, or just within it."""
    made = np.array(array, copy=True, subok=False)
    if made.size and made.dtype.kind in "iufb":
        near = [n + step for n in (made.size, len(np.atleast_1d(made))) for step in (-1, 0, 1)]
        choices = [*near, *LIMITS] if made.dtype.kind != "f" else [*near, np.nan, np.inf, -np.inf, -1.0, *ODD]
        with np.errstate(all="ignore"):
            for at in rng.integers(0, made.size, int(pick(rng, 1, 1, 2, min(made.size, 50)))):
                made.flat[at] = np.array(pick(rng, *choices)).astype(made.dtype)
    return made


def layout_changed(rng: Rng, array: Array) -> Array:
    """Return the same values in another layout, or repeated without memory."""
    kind = pick(rng, *LAYOUTS) if array.ndim and array.size and array.dtype != object else "read-only"
    if kind == "memory map":
        with tempfile.NamedTemporaryFile() as file:
            mapped = np.memmap(file, array.dtype, "w+", shape=array.shape)
        mapped[...] = array
        return mapped
    if kind == "unaligned":
        return np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    if kind == "huge" and rng.random() < 0.3:
        shape = pick(rng, (HUGE, *array.shape[1:]), (*array.shape[:-1], HUGE))
        return np.lib.stride_tricks.as_strided(array, shape, [0] * array.ndim)
    if kind == "strides":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if kind == "read-only":
        array = array.copy()
        array.flags.writeable = False
        return array
    return array[::-1] if kind == "reversed" else np.asfortranarray(array)


def array_changed(rng: Rng, array: Array) -> Any:
    """Return an array with other values, layout, type, size or class."""
    draw = rng.random()
    if draw < 0.3:
        return values_changed(rng, array)
    if draw < 0.5:
        return layout_changed(rng, array)
    if draw < 0.6:
        with np.errstate(all="ignore"):
            return array.astype(pick(rng, *TYPES))
    rows = np.atleast_1d(array)
    return {
        "liar": lambda: array.view(Liar), "two-faced": lambda: TwoFaced(array, rng), "shorter": lambda: rows[:-1],
        "masked": lambda: np.ma.masked_array(array, rng.random(array.shape) < 0.5), "empty": lambda: rows[:0],
        "list": lambda: pick(rng, array.tolist(), [array.tolist()]), "longer": lambda: np.concatenate([rows, rows]),
        "axis": lambda: pick(rng, array[None], array[..., None]), "no axis": lambda: array.ravel(),
        "zeros": lambda: np.zeros_like(array),
    }[pick(rng, *KINDS)]()  # fmt: skip


def fields_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object of the package."""
    if not type(value).__module__.startswith("herdner"):
        return {}
    slots = [name for kind in type(value).__mro__ for name in np.atleast_1d(getattr(kind, "__slots__", ())).tolist()]
    names = dict.fromkeys([*slots, *getattr(value, "__dict__", ())])
    return {name: getattr(value, name) for name in names if not name.startswith("__") and hasattr(value, name)}


def object_changed(rng: Rng, value: Any, depth: int) -> Any:
    """Return an object with an altered field, a copy, or an instance of a subclass."""
    fields = fields_of(value)
    kind = pick(rng, "set", "set", "replace", "replace", "inside", "init", "subclass", "copy", "deepcopy", "pickle")
    if kind in ("copy", "deepcopy"):
        return getattr(copy, kind)(value)
    if kind == "pickle":
        return pickle.loads(pickle.dumps(value))
    if not fields:
        return anything(rng)
    name = pick(rng, *fields)
    if kind == "inside":
        for array in arrays_in(value):
            np.copyto(array, values_changed(rng, array))
        return value
    altered = hostile(rng, fields[name], name, depth + 1)
    if kind == "replace" and dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **{name: altered})
    if kind == "init":
        value.__init__(**{**fields, name: altered})
        return value
    made = copy.copy(value)
    if kind == "subclass":
        made = object.__new__(type(type(value).__name__, (type(value),), {}))
    for each, field in {**fields, name: altered}.items():
        object.__setattr__(made, each, field)
    return made


def anything(rng: Rng, name: str = "") -> Any:
    """Return a value of any type. Files are not given as numbers: these could close the output of the process."""
    nested: list[Any] = []
    for _ in range(3000):
        nested = [nested]
    made = pick(rng, *VALUES, Changing(rng), Odd("x"), 1j, np.array(3), np.array(["x"]), object(), lambda *_: 1, nested)
    is_number = isinstance(made, int | float | np.ndarray)
    return "x" if is_number and name in ("path", "where", "stream", "file", "folder", "destination") else made


def hostile(rng: Rng, value: Any, name: str = "", depth: int = 0) -> Any:
    """Return a hostile version of a valid value of a parameter or field."""
    if rng.random() < 0.06 or depth > 4:
        return anything(rng, name)
    if rng.random() < 0.05:
        return Meddler(value, bool(rng.random() < 0.5))
    if isinstance(value, np.ndarray):
        return array_changed(rng, value)
    if isinstance(value, bool) or value is None:
        return pick(rng, True, False, None, 2, "x")
    if isinstance(value, int | np.integer):
        limits = [] if name.startswith(COUNTS) or name == "n" else LIMITS
        return pick(rng, -1, 0, 1, 2, 3, 17, *limits, float(value), str(value))
    if isinstance(value, float | np.floating):
        return pick(rng, np.nan, np.inf, -np.inf, 0.0, -1.0, 2.0, str(value), *ODD)
    if isinstance(value, str):
        return pick(rng, "", value * 3, value[:-1], value.upper(), value + "\0", "\ud800" + value, Odd(value), b"x")
    if isinstance(value, list | tuple) and value:
        return items_changed(rng, value, name, depth)
    if isinstance(value, dict) and value:
        key = pick(rng, *value)
        return {**value, key: hostile(rng, value[key], str(key), depth + 1)}
    if isinstance(value, io.BytesIO):
        return io.BytesIO(value.getvalue()[: int(rng.integers(1 + len(value.getvalue())))])
    return object_changed(rng, value, depth)


def items_changed(rng: Rng, value: Any, name: str, depth: int) -> Any:
    """Return a sequence with other items or of another type."""
    items, at = list(value), int(rng.integers(len(value)))
    kind = pick(rng, "item", "item", "item", "item", "fewer", "more", "longer", "array", "iterator")
    if kind == "item":
        items[at] = hostile(rng, items[at], name, depth + 1)
    elif kind == "fewer":
        del items[at]
    elif kind == "more":
        items.append(items[at])
    made = {"longer": Longer, "array": np.array, "iterator": iter}.get(kind, type(value))
    return made(*items) if hasattr(made, "_fields") else made(items)


def arrays_in(value: Any, depth: int = 0, fixed: bool = False) -> Iterator[Array]:
    """Yield the arrays inside of a value that can be written to, if need be after a change of their flags.

    With ``fixed``, yield all arrays as they are.
    """
    if isinstance(value, np.ndarray) and type(value) is not Liar:
        if not fixed:
            try:
                value.flags.writeable = True
            except ValueError:
                return
        yield value
    elif depth < 4:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
        for item in list(fields_of(value).values() if items is None else items)[:50]:
            yield from arrays_in(item, depth + 1, fixed)


class Writer:
    """Context in which another thread writes numbers out of range to arrays."""

    def __init__(self, rng: Rng, values: Any) -> None:
        arrays = [array for array in arrays_in(values) if array.size < 10**6]
        self.copies = [(array, array.copy(), values_changed(rng, array)) for array in arrays]
        self.end = Event()
        self.thread = Thread(target=self.write, daemon=True)

    def write(self) -> None:
        while not self.end.is_set():
            for array, valid, invalid in self.copies:
                np.copyto(array, invalid)
                np.copyto(array, valid)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.thread.join()
