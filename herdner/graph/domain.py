"""Domains: the values that the variables of a graph can take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Int32s, Int64s, frozen
from herdner.base.representation import short_repr


class Domains(Protocol):
    """Interface of the domains of a graph's variables; a domain is the set of a variable's values.

    `FactorGraph` uses only these three methods.
    """

    def __len__(self) -> int:
        """Return the number of variables; each variable has one domain."""
        ...

    def points(self, x: ArrayLike) -> NDArray[Any]:
        """Check one or more points, each with a value for every variable, and return them as an array [P, V].

        Args:
            x: One point [V], or P points [P, V].

        Returns:
            The points, [P, V] (P = 1 for one point).

        Raises:
            ValueError: The shape is wrong, or a value is outside its domain.
        """
        ...

    def select(self, variables: Int64s) -> Domains:
        """Return the domains of the variables listed in ``variables``.

        Args:
            variables: int64[N], the variables in the order of the result.
        """
        ...


def point_rows(x: ArrayLike, n: int, kinds: str, noun: str, requirement: str) -> NDArray[Any]:
    """Check the type and the shape of one or more points, and return them as an array [P, V].

    Args:
        x: One point [V], or P points [P, V].
        n: Number of variables, V.
        kinds: Accepted kinds of NumPy types, such as "iu".
        noun: Name of a point in error messages.
        requirement: Message for other kinds, such as "a point must hold real numbers".

    Raises:
        ValueError: The type or the shape is wrong.
    """
    points = np.asarray(x)
    if points.size and points.dtype.kind not in kinds:
        raise ValueError(f"{requirement}, not {points.dtype}")
    if points.ndim not in (1, 2) or points.shape[-1] != n:
        raise ValueError(f"one {noun} must have shape [{n}], P {noun}s [P, {n}], got {points.shape}")
    return points if points.ndim == 2 else points[None]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Discrete:
    """Domains of discrete variables: variable i has the states 0 to ``sizes[i] - 1``.

    Attributes:
        sizes: int32[V], the number of states of each variable, at least 1.
    """

    sizes: Int32s

    __repr__ = short_repr

    def __init__(self, sizes: ArrayLike) -> None:
        """Copy and check ``sizes``, the number of states of each variable.

        Args:
            sizes: int[V], the number of states of each variable.

        Raises:
            ValueError: ``sizes`` is not a list of integers of at least 1.
        """
        sizes = frozen(sizes, np.int32, "sizes")
        if sizes.ndim != 1:
            raise ValueError(f"sizes must be a list of the number of states of each variable, got shape {sizes.shape}")
        if sizes.size and sizes.min() < 1:
            raise ValueError(f"variable {sizes.argmin()} has {sizes.min()} states; it needs at least one state")
        object.__setattr__(self, "sizes", sizes)

    def __len__(self) -> int:
        """Return the number of variables; each variable has one domain."""
        return len(self.sizes)

    def points(self, x: ArrayLike) -> NDArray[np.integer]:
        """Check joint states, int[P, V] or one state int[V], and return them as an array int[P, V].

        Args:
            x: int[V], or int[P, V] for P points.

        Returns:
            int[P, V] (P = 1 for one point).

        Raises:
            ValueError: The shape is wrong, or a state does not exist.
        """
        points = point_rows(x, len(self), "iu", "state", "the states of variables must be integers")
        wrong = (points < 0) | (points >= self.sizes)
        if wrong.any():
            p, i = np.argwhere(wrong)[0]
            raise ValueError(f"the state of variable {i} must be from 0 to {self.sizes[i] - 1}, got {points[p, i]}")
        return points

    def select(self, variables: Int64s) -> Discrete:
        """Return the domains of the variables listed in ``variables``.

        Args:
            variables: int64[N], the variables in the order of the result.
        """
        return Discrete(self.sizes[variables])
