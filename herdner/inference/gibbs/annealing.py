"""Annealing: the inverse temperature beta of each sweep, a multiplier of all log-potentials."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, frozen
from herdner.base.options import parse_call


class Annealing(ABC):
    """Schedule of the inverse temperature over the sweeps.

    At the inverse temperature 1, the target is the distribution of the graph.
    """

    __slots__ = ()
    SYNTAX: ClassVar[str] = "linear(start, end) or geometric(start, end)"

    @abstractmethod
    def betas(self, n_sweeps: int) -> Floats:
        """Return the inverse temperature of each sweep, float64[n_sweeps]; a run of one sweep uses the final value.

        Args:
            n_sweeps: Number of sweeps.

        Raises:
            ValueError: The schedule lists a number of inverse temperatures other than ``n_sweeps``.
        """

    @classmethod
    def from_text(cls, text: str) -> Annealing:
        """Parse an annealing schedule such as ``linear(0.1, 1)`` or ``geometric``.

        Args:
            text: Kind of the schedule, optionally followed by start and end in parentheses.

        Returns:
            The annealing schedule.

        Raises:
            ValueError: The text is not an annealing schedule.
        """
        return parse_call(text, {"linear": linear_annealing, "geometric": geometric_annealing}, "annealing", cls.SYNTAX)


@dataclass(frozen=True, slots=True)
class InterpolatedAnnealing(Annealing):
    """Annealing schedule that interpolates between a start and an end inverse temperature.

    Attributes:
        kind: "linear" for equal steps (HG16 Sec. 4.4), "geometric" for equal ratios.
        start: Inverse temperature of the first sweep.
        end: Inverse temperature of the last sweep.
    """

    kind: Literal["linear", "geometric"]
    start: float
    end: float

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if an inverse temperature is out of range."""
        for name, beta in (("start", self.start), ("end", self.end)):
            if not (math.isfinite(beta) and beta >= 0):
                raise ValueError(f"{self.kind}: {name} must be a finite inverse temperature of at least 0, not {beta}")
            if beta == 0 and self.kind == "geometric":
                raise ValueError(f"geometric: {name} must be above 0, not {beta}; the schedule 'linear' allows 0")

    def __str__(self) -> str:
        """Return the schedule as a string that `Annealing.from_text` parses."""
        return f"{self.kind}({self.start}, {self.end})"

    def betas(self, n_sweeps: int) -> Floats:
        """Return the inverse temperature of each sweep, float64[n_sweeps].

        Args:
            n_sweeps: Number of sweeps.
        """
        if n_sweeps <= 1:
            return np.full(n_sweeps, float(self.end))
        return (np.linspace if self.kind == "linear" else np.geomspace)(self.start, self.end, n_sweeps)


@dataclass(frozen=True, slots=True, eq=False)
class ListedAnnealing(Annealing):
    """Annealing schedule that lists one inverse temperature per sweep.

    Attributes:
        values: float64[n_sweeps], finite and at least 0.
    """

    values: Floats

    def __post_init__(self) -> None:
        """Copy the inverse temperatures, and raise ``ValueError`` if one is out of range."""
        values = frozen(self.values, np.float64, "annealing")
        if values.ndim != 1:
            raise ValueError(
                f"annealing must be a flat list with one inverse temperature for each sweep, got shape {values.shape}"
            )
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong):
            raise ValueError(
                f"annealing[{wrong[0]}] must be a finite inverse temperature of at least 0, not {values[wrong[0]]}"
            )
        object.__setattr__(self, "values", values)

    def betas(self, n_sweeps: int) -> Floats:
        """Return the inverse temperature of each sweep, float64[n_sweeps].

        Args:
            n_sweeps: Number of sweeps.

        Raises:
            ValueError: The list has another length.
        """
        if len(self.values) != n_sweeps:
            raise ValueError(
                f"annealing must list {n_sweeps} inverse temperatures, one for each sweep, got {len(self.values)};"
                f" change the list, or set n_sweeps={len(self.values)}"
            )
        return self.values


def linear_annealing(start: float = 0.1, end: float = 1.0) -> Annealing:
    """Return an annealing schedule whose inverse temperature changes in equal steps (HG16, Sec. 4.4).

    Args:
        start: Inverse temperature of the first sweep, finite and at least 0.
        end: Inverse temperature of the last sweep, finite and at least 0.

    Raises:
        ValueError: A value is out of range.
    """
    return InterpolatedAnnealing("linear", start, end)


def geometric_annealing(start: float = 0.1, end: float = 1.0) -> Annealing:
    """Return an annealing schedule whose inverse temperature changes by equal ratios.

    Args:
        start: Inverse temperature of the first sweep, finite and above 0.
        end: Inverse temperature of the last sweep, finite and above 0.

    Raises:
        ValueError: A value is out of range.
    """
    return InterpolatedAnnealing("geometric", start, end)


def as_annealing(value: Annealing | ArrayLike | str | None) -> Annealing:
    """Convert a string, a list of inverse temperatures or an annealing schedule to an `Annealing`.

    Args:
        value: An annealing schedule, its text, one constant beta, a list of betas [n_sweeps], or None for beta = 1.

    Returns:
        The annealing schedule.

    Raises:
        ValueError: A value is out of range, or the text is not an annealing schedule.
    """
    if isinstance(value, Annealing):
        return value
    if value is None:
        return linear_annealing(1.0, 1.0)
    if isinstance(value, str):
        return Annealing.from_text(value)
    array = frozen(value, np.float64, "annealing")
    return ListedAnnealing(array) if array.ndim else linear_annealing(float(array), float(array))
