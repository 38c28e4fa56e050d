"""Checks of arguments that more than one room makes."""

from __future__ import annotations

import numpy as np


def whole(value: object, name: str, least: int = 1) -> int:
    """A whole number of at least ``least``, as an int; ValueError that names the argument otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)  # pyright: ignore[reportUnknownArgumentType]  # a NumPy integer of any width


def is_number(value: object) -> bool:
    """Whether it is an int or a float, whatever its type is declared to be."""
    return isinstance(value, int | float)
