"""Scans: the order in which a sweep updates the variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext.gibbs import ENUMERATIONS
from herdner.base.arrays import Int32s, frozen
from herdner.base.checks import check_variables
from herdner.base.options import parse_call

ScanKind = Literal["systematic", "random", "checkerboard", "jacobi", "fixed"]


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Rule for the order in which one sweep updates the variables.

    The functions of this module build scans.

    Attributes:
        kind: Rule that determines the order.
        order: int32[n], the variables of a "fixed" scan; None for the other kinds.
    """

    kind: ScanKind = "systematic"
    order: Int32s | None = None

    SYNTAX: ClassVar[str] = "systematic, random, checkerboard, jacobi or an order such as fixed(0, 2, 1)"

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if the kind of the scan is unknown, or if ``order`` does not fit the kind."""
        if self.kind not in ENUMERATIONS["scan"]:
            raise ValueError(f"scan must be {self.SYNTAX}, not {self.kind!r}")
        if (self.kind == "fixed") != (self.order is not None):
            raise ValueError(
                "a fixed scan needs an order, and other scans must have none, got the kind"
                f" {self.kind!r} with the order {' '.join(repr(self.order).split()):.80}; use fixed_scan(order)"
            )
        if self.order is not None:
            order = frozen(self.order, np.int32, "a scan")
            if order.ndim != 1 or not len(order):
                raise ValueError(
                    f"a fixed scan must be a list of at least one variable, got an array of shape {order.shape}"
                )
            object.__setattr__(self, "order", order)

    @classmethod
    def from_text(cls, text: str) -> Scan:
        """Parse a scan such as ``systematic`` or ``fixed(0, 2, 1)``.

        Args:
            text: Kind of the scan, with the order in parentheses for a fixed one.

        Returns:
            The scan.

        Raises:
            ValueError: The text is not a scan.
        """
        functions: dict[str, Callable[..., Scan]] = {
            "systematic": systematic_scan, "random": random_scan, "checkerboard": checkerboard_scan,
            "jacobi": jacobi_scan, "fixed": lambda *order: fixed_scan(order),
        }  # fmt: skip
        return parse_call(text, functions, "scan", cls.SYNTAX)

    def check(self, n_variables: int) -> None:
        """Raise ``ValueError`` if the scan's order names a variable that does not exist.

        Args:
            n_variables: Number of variables of the graph.
        """
        if self.order is not None:
            check_variables(self.order, n_variables, "the scan names")

    def __eq__(self, other: object) -> bool:
        """Return True if two scans have equal kinds and orders."""
        return isinstance(other, Scan) and self.kind == other.kind and np.array_equal(self.order, other.order)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        """Return a hash of the scan's kind and order."""
        return hash((self.kind, None if self.order is None else self.order.tobytes()))

    def __str__(self) -> str:
        """Return the scan as a string that `Scan.from_text` parses."""
        return self.kind if self.order is None else f"fixed({', '.join(map(str, self.order))})"


def systematic_scan() -> Scan:
    """Return the scan that updates the variables in the order 0 to V - 1."""
    return Scan()


def random_scan() -> Scan:
    """Return the scan that draws V variables uniformly with replacement and updates each when it is drawn."""
    return Scan("random")


def checkerboard_scan() -> Scan:
    """Return the scan that updates the variables colour by colour, for a greedy colouring of the graph.

    Variables of one colour share no factor, so several threads can share a sweep. On a grid that does not wrap around,
    the colours form a checkerboard.
    """
    return Scan("checkerboard")


def jacobi_scan() -> Scan:
    """Return the scan that updates all variables simultaneously, each conditional on the states before the sweep.

    For study only: where variables share factors, its stationary distribution is not that of the graph (conclusions of
    HG13 and HG16).
    """
    return Scan("jacobi")


def fixed_scan(order: ArrayLike) -> Scan:
    """Return the scan that updates only the variables listed in ``order``, in this order.

    Args:
        order: int[n], variables; they may repeat.

    Raises:
        ValueError: ``order`` is not a list of at least one integer.
    """
    return Scan("fixed", order)  # type: ignore[arg-type]
