"""Optimisers of particles: they turn directions into moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.graph import DensityGraph
from herdner.studies.fwss.kernels import KernelMean, as_kernel_mean, as_points, median_bandwidth
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.stein import ksd_bandwidth
from herdner.studies.fwss.targets import Target

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
        """Check and convert the fields."""
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
        """Check and convert the fields."""
        _check_rate("rate", self.rate)

    def begin(self, n_steps: int) -> Mover:
        return lambda direction: self.rate * direction


def _check_rate(name: str, value: float) -> None:
    if not np.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a number above 0, not {value}")


class Batches:
    """Gradients of a density: of all data, or of a new mini-batch each time. Counts what it computes."""

    def __init__(self, density: DensityGraph, batch_size: int | None, rng: np.random.Generator) -> None:
        if batch_size is not None:
            check_integer(batch_size, "batch_size")
            if not density.n_terms:
                raise ValueError("batch_size needs a target with data, that is factors with n_terms")
        self._density, self._size, self._rng = density, batch_size, rng
        self.n_gradients = 0

    def with_rng(self, rng: np.random.Generator) -> Batches:
        """The same, drawing its mini-batches from another generator."""
        return Batches(self._density, self._size, rng)

    def grad(self, x: Floats, block: NDArray[np.integer] | None = None) -> Floats:
        """[P, d] or [P, b]: an unbiased estimate where there are mini-batches, else exact."""
        self.n_gradients += len(x)
        terms = None if self._size is None else self._rng.integers(0, self._density.n_terms, self._size)
        return self._density.grad(x, terms, block)

    def exact(self, x: Floats) -> Floats:
        """[P, d]: from all data."""
        self.n_gradients += len(x)
        return self._density.grad(x)


def check_start(density: DensityGraph, x: Floats) -> None:
    """ValueError where the log-density at points [P, d] is not finite."""
    values = density.log_density(x)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"the log-density is {values[wrong[0]]} at starting point {wrong[0]}; start where the density is above 0"
        )


def check_points(x: Points | ArrayLike, target: Target, name: str) -> Floats:
    """Points [N, d] that the density is finite at; ValueError otherwise."""
    points = as_points(x.x if isinstance(x, Points) else x, name)
    if points.shape[1] != target.dim:
        raise ValueError(f"{name} must have shape [N, {target.dim}] for this target, not {points.shape}")
    check_start(target.density, points)
    return points


def first_points(init: ArrayLike, target: Target, n: int, rng: np.random.Generator) -> Floats:
    """[n, d]: the first points of ``init``, [M, d] or "prior", for none; where they are fewer, draws of the prior."""
    if isinstance(init, str) and init != "prior":
        raise ValueError(f"init must be 'prior' or points [M, d], not {init!r}")
    points = np.empty((0, target.dim)) if isinstance(init, str) else check_points(init, target, "init")[:n]
    if len(points) == n:
        return points
    return check_points(np.concatenate([points, target.prior(rng, n - len(points))]), target, "the prior's draws")


def resume_points(start: Points | None, target: Target, n: int, name: str = "n_particles") -> Points:
    """The points to go on from, none by default; ValueError where they do not fit, or are too many already."""
    if start is None:
        return Points(np.empty((0, target.dim)), np.empty(0), np.empty((0, target.dim)))
    if not isinstance(start, Points):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public door
        raise ValueError(f"start must be Points, as a sampler returns, not {type(start).__name__}")
    if start.x.ndim != 2 or start.x.shape[1] != target.dim:
        raise ValueError(f"start must hold points [N, {target.dim}] for this target, not {start.x.shape}")
    if len(start) > n:
        raise ValueError(f"{name} counts those of start too: at least {len(start)}, not {n}")
    if start.scores is None:
        return Points(start.x, start.weights, target.density.grad(start.x), start.history, start.n_gradients)
    return start


def resolve_bandwidth(rule: float | str, x: Floats, scores: Floats) -> float:
    """The bandwidth by a rule for points [N, d] with scores [N, d]; a number is itself."""
    if not isinstance(rule, str):
        return rule
    return ksd_bandwidth(x, scores) if rule == "ksd" else median_bandwidth(x)


def resolve_kernel_mean(kernel_mean: KernelMean | ArrayLike | str | None, target: Target) -> KernelMean | None:
    """The kernel mean that was given, or samples of it; None: the target's own; "stein": to be estimated."""
    if kernel_mean is None:
        return target.kernel_mean
    if isinstance(kernel_mean, str):
        if kernel_mean != "stein":
            raise ValueError(f"kernel_mean must be 'stein', samples, or a kernel mean, not {kernel_mean!r}")
        return None
    return as_kernel_mean(kernel_mean)


def find_mode(target: Target, x: Floats, batches: Batches, n_steps: int) -> Floats:
    """[1, d]: a maximum of the density near x [1, d], by L-BFGS with all data, in ``n_steps`` iterations at most."""

    def minus(at: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            value, slope = -target.density.log_density(at[None])[0], -batches.exact(at[None])[0]
        return (value, slope) if np.isfinite(value) and np.isfinite(slope).all() else (np.inf, np.zeros_like(at))

    options = {"maxiter": n_steps, "maxfun": 2 * n_steps + 20, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-9}
    found = cast(Any, minimize(minus, x[0], jac=True, method="L-BFGS-B", options=options))
    return found.x[None]
