"""Checks of arguments that more than one room makes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def whole(value: object, name: str, least: int = 1, most: float = math.inf) -> int:
    """A whole number from ``least`` to ``most``, as an int; ValueError that names the argument otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        limits = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {limits}, not {value!r:.80}")
    return int(value)  # pyright: ignore[reportUnknownArgumentType]  # a NumPy integer of any width


def check_variables(named: NDArray[np.integer], n: int, said: str = "there is no") -> None:
    """ValueError where one of the variables ``named`` is not one of a graph's ``n``; ``said`` begins what it says."""
    wrong = named[(named < 0) | (named >= n)]
    if len(wrong):
        raise ValueError(f"{said} variable {wrong[0]}: the graph's variables are 0 to {n - 1}")


def rises(borders: NDArray[np.integer], end: int) -> bool:
    """Whether it is a list from 0 to ``end`` that never falls, as the borders of pieces do."""
    listed = borders.ndim == 1 and len(borders) > 0 and borders[0] == 0 and borders[-1] == end
    return bool(listed and (borders[1:] >= borders[:-1]).all())


def is_number(value: object) -> bool:
    """Whether it is an int or a float, whatever its type is declared to be."""
    return isinstance(value, int | float)
