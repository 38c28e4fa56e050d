"""Annealing: the inverse temperature beta of each sweep, by which the log-potentials are multiplied."""

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
    """How the inverse temperature goes from sweep to sweep; beta = 1 is the graph's own distribution."""

    __slots__ = ()
    SYNTAX: ClassVar[str] = "linear(start, end) or geometric(start, end)"

    @abstractmethod
    def betas(self, n_sweeps: int) -> Floats:
        """float64[n_sweeps], finite and at least 0. With one sweep it is the end's."""

    @classmethod
    def from_text(cls, text: str) -> Annealing:
        """An annealing such as "linear(0.1, 1)" or "geometric(0.01, 5)"; "linear" alone has the defaults."""
        return parse_call(text, {"linear": linear_annealing, "geometric": geometric_annealing}, "annealing", cls.SYNTAX)


@dataclass(frozen=True, slots=True)
class InterpolatedAnnealing(Annealing):
    """From ``start`` to ``end`` in equal steps ("linear", the annealed Gibbs of HG16 Sec. 4.4) or ratios."""

    kind: Literal["linear", "geometric"]
    start: float
    end: float

    def __post_init__(self) -> None:
        for name, beta in (("start", self.start), ("end", self.end)):
            if not (math.isfinite(beta) and beta >= 0):
                raise ValueError(f"{self.kind}: {name} must be a finite inverse temperature of at least 0, not {beta}")
            if beta == 0 and self.kind == "geometric":
                raise ValueError(f"geometric: {name} must be above 0, not {beta}; linear may use 0")

    def __str__(self) -> str:
        return f"{self.kind}({self.start}, {self.end})"

    def betas(self, n_sweeps: int) -> Floats:
        if n_sweeps <= 1:
            return np.full(n_sweeps, float(self.end))
        return (np.linspace if self.kind == "linear" else np.geomspace)(self.start, self.end, n_sweeps)


@dataclass(frozen=True, slots=True, eq=False)
class ListedAnnealing(Annealing):
    """The inverse temperatures themselves: ``values`` float64[n_sweeps], finite and at least 0."""

    values: Floats

    def __post_init__(self) -> None:
        values = frozen(self.values, np.float64, "annealing")
        if values.ndim != 1:
            raise ValueError(
                f"annealing lists one inverse temperature for each sweep, not an array of shape {values.shape}"
            )
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong):
            raise ValueError(
                f"annealing[{wrong[0]}] is {values[wrong[0]]}; inverse temperatures are finite and at least 0"
            )
        object.__setattr__(self, "values", values)

    def betas(self, n_sweeps: int) -> Floats:
        if len(self.values) != n_sweeps:
            raise ValueError(
                f"annealing lists {len(self.values)} inverse temperatures for {n_sweeps} sweeps; give one for each,"
                f" or set n_sweeps={len(self.values)}"
            )
        return self.values


def linear_annealing(start: float = 0.1, end: float = 1.0) -> Annealing:
    """Inverse temperatures in equal steps from ``start`` to ``end``, each finite and at least 0 (HG16 Sec. 4.4)."""
    return InterpolatedAnnealing("linear", start, end)


def geometric_annealing(start: float = 0.1, end: float = 1.0) -> Annealing:
    """Inverse temperatures in equal ratios from ``start`` to ``end``, each finite and above 0."""
    return InterpolatedAnnealing("geometric", start, end)


def as_annealing(value: Annealing | ArrayLike | str | None) -> Annealing:
    """An annealing from itself, its text, one constant beta, a list of betas [n_sweeps], or None, which is beta = 1."""
    if isinstance(value, Annealing):
        return value
    if value is None:
        return linear_annealing(1.0, 1.0)
    if isinstance(value, str):
        return Annealing.from_text(value)
    array = frozen(value, np.float64, "annealing")
    return ListedAnnealing(array) if array.ndim else linear_annealing(float(array), float(array))
