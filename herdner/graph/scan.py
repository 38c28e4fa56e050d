"""Scans: the order in which a sweep updates the variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Int32s, frozen
from herdner.base.checks import check_variables
from herdner.base.options import parse_call


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """One sweep's order; made by the functions below. ``order`` int32[n] is given for kind "fixed" alone."""

    kind: Literal["systematic", "random", "checkerboard", "jacobi", "fixed"] = "systematic"
    order: Int32s | None = None

    SYNTAX: ClassVar[str] = "systematic, random, checkerboard, jacobi or an order such as fixed(0, 2, 1)"

    def __post_init__(self) -> None:
        if self.kind not in ("systematic", "random", "checkerboard", "jacobi", "fixed"):
            raise ValueError(f"scan must be {self.SYNTAX}, not {self.kind!r}")
        if (self.kind == "fixed") != (self.order is not None):
            raise ValueError("a fixed scan, and no other, has an order: use fixed_scan(order)")
        if self.order is not None:
            order = frozen(self.order, np.int32, "a scan")
            if order.ndim != 1 or not len(order):
                raise ValueError(f"a scan is a list of at least one variable, not of shape {order.shape}")
            object.__setattr__(self, "order", order)

    @classmethod
    def from_text(cls, text: str) -> Scan:
        """The scan that ``systematic``, ``fixed(0, 2, 1)`` and so on stand for; ValueError for others."""

        def listed(*order: float | str) -> Scan:
            return fixed_scan(order)

        functions: dict[str, Callable[..., Scan]] = {
            "systematic": systematic_scan, "random": random_scan, "checkerboard": checkerboard_scan,
            "jacobi": jacobi_scan, "fixed": listed,
        }  # fmt: skip
        return parse_call(text, functions, "scan", cls.SYNTAX)

    def check(self, n_variables: int) -> None:
        """ValueError where the order names a variable that is not there."""
        if self.order is not None:
            check_variables(self.order, n_variables, "the scan names")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scan) and self.kind == other.kind and np.array_equal(self.order, other.order)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash((self.kind, None if self.order is None else self.order.tobytes()))

    def __str__(self) -> str:
        return self.kind if self.order is None else f"fixed({', '.join(map(str, self.order))})"


def systematic_scan() -> Scan:
    """The variables in their order: V updates."""
    return Scan()


def random_scan() -> Scan:
    """V variables, each drawn uniformly from all."""
    return Scan("random")


def checkerboard_scan() -> Scan:
    """Colour by colour of a greedy colouring in which variables of one colour never depend on each other.

    On a grid without wrapping these are the fields of a checkerboard. Several threads can share such a sweep.
    """
    return Scan("checkerboard")


def jacobi_scan() -> Scan:
    """All variables at once, given the state before the sweep, as HG13 and HG16 discuss in their conclusions.

    For study: it does not sample from the graph's distribution where variables depend on each other.
    """
    return Scan("jacobi")


def fixed_scan(order: ArrayLike) -> Scan:
    """These variables in this order, each as often as it is named; variables that are not named keep their labels."""
    return Scan("fixed", order)  # type: ignore[arg-type]
