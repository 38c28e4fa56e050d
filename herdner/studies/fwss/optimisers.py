"""Optimisers of particles: they turn directions into moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from herdner.base.arrays import Floats

Mover = Callable[[Floats], Floats]


class Diverged(ArithmeticError):
    """A sampler's numbers left the finite ones: those of ``particle``, at ``step``."""

    def __init__(self, sampler: str, particle: int, step: int) -> None:
        super().__init__(
            f"{sampler} diverged: particle {particle}, step {step}: a position or gradient is not finite; lower the"
            " optimiser's rate or the step size, or scale the variables"
        )
        self.particle, self.step = particle, step


def check_finite(x: Floats, sampler: str, step: int, first: int = 0) -> None:
    """Diverged where points x [P, d] are not all finite; they are the particles from ``first`` on."""
    if not np.isfinite(x.sum()):
        wrong = np.flatnonzero(~np.isfinite(x).all(axis=1))
        if len(wrong):
            raise Diverged(sampler, first + int(wrong[0]), step)


class Optimiser(Protocol):
    """``begin`` makes a mover for one run of ``n_steps``: direction [P, d] -> what to add to the points [P, d]."""

    def begin(self, n_steps: int) -> Mover: ...


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam (Kingma and Ba). With ``final`` the rate falls to it, evenly in its logarithm, over the steps of a run."""

    rate: float = 0.05
    final: float | None = None
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check_rate("rate", self.rate)
        if self.final is not None:
            _check_rate("final", self.final)

    def begin(self, n_steps: int) -> Mover:
        first: Floats | float = 0.0
        second: Floats | float = 0.0
        fall = 1.0 if self.final is None else (self.final / self.rate) ** (1 / max(1, n_steps - 1))
        rate, left1, left2 = self.rate, 1.0, 1.0

        def move(direction: Floats) -> Floats:
            nonlocal first, second, rate, left1, left2
            left1, left2 = left1 * self.beta1, left2 * self.beta2
            first = self.beta1 * first + (1 - self.beta1) * direction
            second = self.beta2 * second + (1 - self.beta2) * (direction * direction)
            size = np.sqrt(second)
            size *= 1 / np.sqrt(1 - left2)
            size += self.epsilon
            np.divide(first, size, out=size)
            size *= rate / (1 - left1)
            rate *= fall
            return size

        return move


@dataclass(frozen=True, slots=True)
class GradientAscent:
    """Moves of ``rate`` times the direction."""

    rate: float

    def __post_init__(self) -> None:
        _check_rate("rate", self.rate)

    def begin(self, n_steps: int) -> Mover:
        return lambda direction: self.rate * direction


def _check_rate(name: str, value: float) -> None:
    if not np.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a number above 0, not {value}")
