"""Domains: the values that the variables of a graph can take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Int32s, Int64s, frozen


class Domains(Protocol):
    """The domains of all variables of a graph. FactorGraph asks no more of them than this."""

    def __len__(self) -> int:
        """The number of variables."""
        ...

    def points(self, x: ArrayLike) -> NDArray[Any]:
        """``x``, of shape [V] or [P, V], as P points [P, V]. ValueError where a value is outside its domain."""
        ...

    def select(self, variables: Int64s) -> Domains:
        """The domains of these variables, in this order."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Discrete:
    """Discrete domains: variable i takes the labels 0 .. sizes[i] - 1; ``sizes`` int32[V], each at least 1."""

    sizes: Int32s

    def __init__(self, sizes: ArrayLike) -> None:
        sizes = frozen(sizes, np.int32, "sizes")
        if sizes.ndim != 1:
            raise ValueError(
                f"sizes must be a list with the number of labels of each variable, not of shape {sizes.shape}"
            )
        if sizes.size and sizes.min() < 1:
            raise ValueError(f"variable {int(sizes.argmin())} has {int(sizes.min())} labels; each needs at least one")
        object.__setattr__(self, "sizes", sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def points(self, x: ArrayLike) -> NDArray[np.integer]:
        points = np.asarray(x)
        if points.size and points.dtype.kind not in "iu":
            raise ValueError(f"a state holds integers, the labels of its variables, not {points.dtype}")
        if points.ndim not in (1, 2) or points.shape[-1] != len(self):
            raise ValueError(f"a state of this graph has shape [{len(self)}] or [P, {len(self)}], not {points.shape}")
        points = points if points.ndim == 2 else points[None]
        wrong = (points < 0) | (points >= self.sizes)
        if wrong.any():
            p, i = np.argwhere(wrong)[0]
            raise ValueError(f"variable {i} has the labels 0 to {self.sizes[i] - 1}, not {points[p, i]}")
        return points

    def select(self, variables: Int64s) -> Discrete:
        return Discrete(self.sizes[variables])
