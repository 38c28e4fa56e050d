"""Parts that samplers share: optimisers, argument checks, mini-batches, starting points, and the mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.base.extras import import_extra
from herdner.graph import DensityGraph
from herdner.studies.fwss.kernels import KernelMean, as_kernel_mean, as_points, median_bandwidth
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.stein import ksd_bandwidth
from herdner.studies.fwss.targets import Target

minimize = import_extra("scipy.optimize", "Stein sampling needs SciPy").minimize

Mover = Callable[[Floats], Floats]


class DivergenceError(ArithmeticError):
    """Error: a coordinate or gradient of a sampler's particle is not finite.

    Attributes:
        particle: Index of the first particle with a coordinate or gradient that is not finite.
        step: Step of the sampler.
    """

    def __init__(self, sampler: str, particle: int, step: int) -> None:
        """Build the error message from the name of the sampler, the particle and the step.

        Args:
            sampler: Name of the sampler.
            particle: Index of the first particle with a coordinate or gradient that is not finite.
            step: Step of the sampler.
        """
        super().__init__(
            f"{sampler} diverged: particle {particle}, step {step}: a position or gradient is not finite; lower the"
            " optimiser's rate or the step size, or scale the variables"
        )
        self.particle, self.step = particle, step


def check_finite(x: Floats, sampler: str, step: int, first: int = 0) -> None:
    """Raise `DivergenceError` unless all coordinates of all points are finite.

    Args:
        x: float64[P, d].
        sampler: Name of the sampler.
        step: Step of the sampler.
        first: Index of the first particle in x.

    Raises:
        DivergenceError: A point is not finite.
    """
    if not np.isfinite(x.sum()):
        wrong = np.flatnonzero(~np.isfinite(x).all(axis=1))
        if len(wrong):
            raise DivergenceError(sampler, first + int(wrong[0]), step)


class Optimiser(Protocol):
    """Optimisation rule that converts gradient directions to displacements of particles."""

    def begin(self, n_steps: int) -> Mover:
        """Start a run, and return a function that maps the directions of P particles [P, d] to displacements [P, d].

        Args:
            n_steps: Number of steps of the run.
        """
        ...


@dataclass(frozen=True, slots=True)
class Adam:
    """The Adam optimiser (Kingma and Ba).

    Attributes:
        rate: Learning rate.
        final: If set, the rate decreases geometrically to this value over the steps of a run.
        beta1: Decay rate of the running mean of the directions.
        beta2: Decay rate of the running mean of the squared directions.
        epsilon: Number that is added to the denominator.
    """

    rate: float = 0.05
    final: float | None = None
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        """Check that the learning rates and the constants of Adam are in range."""
        _check_rate("rate", self.rate)
        if self.final is not None:
            _check_rate("final", self.final)
        _check_rate("epsilon", self.epsilon)
        for name, value in (("beta1", self.beta1), ("beta2", self.beta2)):
            if not 0 <= value < 1:
                raise ValueError(f"`{name}` must be at least 0 and below 1, got {value}")

    def begin(self, n_steps: int) -> Mover:
        """Start a run, and return a function that maps the directions of P particles [P, d] to displacements [P, d].

        Args:
            n_steps: Number of steps of the run.
        """
        first: Floats | float = 0.0
        second: Floats | float = 0.0
        decay = 1.0 if self.final is None else (self.final / self.rate) ** (1 / max(1, n_steps - 1))
        rate, power1, power2 = self.rate, 1.0, 1.0

        def move(direction: Floats) -> Floats:
            nonlocal first, second, rate, power1, power2
            power1, power2 = power1 * self.beta1, power2 * self.beta2
            first = self.beta1 * first + (1 - self.beta1) * direction
            second = self.beta2 * second + (1 - self.beta2) * (direction * direction)
            size = np.sqrt(second)
            size *= 1 / np.sqrt(1 - power2)
            size += self.epsilon
            np.divide(first, size, out=size)
            size *= rate / (1 - power1)
            rate *= decay
            return size

        return move


@dataclass(frozen=True, slots=True)
class GradientAscent:
    """Gradient ascent: each displacement is ``rate`` times the direction.

    Attributes:
        rate: Learning rate.
    """

    rate: float

    def __post_init__(self) -> None:
        """Check that the learning rate is positive and finite."""
        _check_rate("rate", self.rate)

    def begin(self, n_steps: int) -> Mover:
        """Start a run, and return a function that maps the directions of P particles [P, d] to displacements [P, d].

        Args:
            n_steps: Number of steps of the run.
        """
        return lambda direction: self.rate * direction


def _check_rate(name: str, value: float) -> None:
    if not np.isfinite(value) or value <= 0:
        raise ValueError(f"`{name}` must be above 0, got {value}")


class GradientBatches:
    """Gradients of a log-density, computed from all data or from a new mini-batch at each call.

    Attributes:
        n_gradients: Number of gradients computed so far.
    """

    def __init__(self, density: DensityGraph, batch_size: int | None, rng: np.random.Generator) -> None:
        """Store the density, the size of mini-batches, and the random generator.

        Args:
            density: The density.
            batch_size: Number of data terms per mini-batch; None for all.
            rng: Random generator.

        Raises:
            ValueError: ``batch_size`` is out of range, or the density has no data terms.
        """
        if batch_size is not None:
            check_integer(batch_size, "batch_size")
            if not density.n_terms:
                raise ValueError("`batch_size` needs a target with data terms; set `n_terms` of the density factors")
        self._density, self._size, self._rng = density, batch_size, rng
        self.n_gradients = 0

    def with_rng(self, rng: np.random.Generator) -> GradientBatches:
        """Return a copy that draws mini-batches by another random generator; its count of gradients starts at 0.

        Args:
            rng: Random generator.
        """
        return GradientBatches(self._density, self._size, rng)

    def grad(self, x: Floats, block: NDArray[np.integer] | None = None) -> Floats:
        """Return the gradients of the log-density at points.

        If the batch size is set, the gradients are unbiased estimates from a mini-batch.

        Args:
            x: float64[P, d].
            block: int[b], the variables of the gradient; None for all.

        Returns:
            float64[P, d] or [P, b].
        """
        self.n_gradients += len(x)
        terms = None if self._size is None else self._rng.integers(0, self._density.n_terms, self._size)
        return self._density.grad(x, terms, block)

    def exact(self, x: Floats) -> Floats:
        """Return the gradients of the log-density at points, computed from all data instead of a mini-batch.

        Args:
            x: float64[P, d].

        Returns:
            float64[P, d].
        """
        self.n_gradients += len(x)
        return self._density.grad(x)


def check_start(density: DensityGraph, x: Floats) -> None:
    """Raise `ValueError` unless the log-density is finite at all points ``x``.

    Args:
        density: The density.
        x: float64[P, d].

    Raises:
        ValueError: The log-density is not finite at a point.
    """
    values = density.log_density(x)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        at = wrong[0]
        raise ValueError(f"the log-density is {values[at]} at starting point {at}; start where the density is positive")


def check_points(x: Points | ArrayLike, target: Target, name: str) -> Floats:
    """Check that the log-density of the target is finite at all points ``x``, and return the points as an array.

    Args:
        x: Points, float64[N, d].
        target: The target.
        name: Name of the points in error messages.

    Returns:
        float64[N, d], the points.

    Raises:
        ValueError: The points have the wrong shape, or the log-density is not finite at one of them.
    """
    points = as_points(x.x if isinstance(x, Points) else x, name)
    if points.shape[1] != target.dim:
        raise ValueError(f"{name} must have shape [N, {target.dim}] for this target, got {points.shape}")
    check_start(target.density, points)
    return points


def first_points(init: ArrayLike, target: Target, n: int, rng: np.random.Generator) -> Floats:
    """Return n initial points of a sampler: the points ``init``, followed by draws from the prior.

    Args:
        init: Points [M, d], or "prior".
        target: The target.
        n: Number of points.
        rng: Random generator.

    Returns:
        float64[n, d].

    Raises:
        ValueError: ``init`` does not fit the target.
    """
    if isinstance(init, str) and init != "prior":
        raise ValueError(f"`init` must be 'prior' or an array of points [M, d], got {init!r}")
    points = np.empty((0, target.dim)) if isinstance(init, str) else check_points(init, target, "init")[:n]
    if len(points) == n:
        return points
    return check_points(np.concatenate([points, target.prior(rng, n - len(points))]), target, "the prior's draws")


def resume_points(start: Points | None, target: Target, n: int, name: str = "n_particles") -> Points:
    """Return the points and scores of the earlier run ``start``; return empty arrays if ``start`` is None.

    Args:
        start: Result of an earlier run.
        target: The target.
        n: Number of points at the end of the run.
        name: Name of the argument ``n`` in error messages.

    Raises:
        ValueError: The points do not fit the target, or there are more than n points.
    """
    if start is None:
        return Points(np.empty((0, target.dim)), np.empty(0), np.empty((0, target.dim)))
    if not isinstance(start, Points):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        raise ValueError(f"`start` must be the Points that a sampler returned, got {type(start).__name__}")
    if start.x.ndim != 2 or start.x.shape[1] != target.dim:
        raise ValueError(f"points of `start` must have shape [N, {target.dim}] for this target, got {start.x.shape}")
    if len(start) > n:
        raise ValueError(f"`{name}` includes the points of `start` and must be at least {len(start)}, got {n}")
    if start.scores is None:
        return replace(start, scores=target.density.grad(start.x))
    return start


def resolve_bandwidth(rule: float | str, x: Floats, scores: Floats) -> float:
    """Compute the bandwidth by a rule such as "median". A number is returned unchanged.

    Args:
        rule: "median", "ksd", or a number.
        x: float64[N, d].
        scores: float64[N, d].

    Returns:
        The bandwidth, above 0.
    """
    if not isinstance(rule, str):
        return rule
    return ksd_bandwidth(x, scores) if rule == "ksd" else median_bandwidth(x)


def resolve_kernel_mean(kernel_mean: KernelMean | ArrayLike | str | None, target: Target) -> KernelMean | None:
    """Convert samples to their kernel mean; a kernel mean is returned unchanged.

    The result is None if the kernel mean must be estimated from scores.

    Args:
        kernel_mean: A kernel mean, samples, None for the kernel mean of the target, or "stein" to estimate it.
        target: The target.

    Returns:
        The kernel mean, or None.

    Raises:
        ValueError: ``kernel_mean`` is none of these.
    """
    if kernel_mean is None:
        return target.kernel_mean
    if isinstance(kernel_mean, str):
        if kernel_mean != "stein":
            raise ValueError(f"`kernel_mean` must be 'stein', an array of samples or a KernelMean, got {kernel_mean!r}")
        return None
    return as_kernel_mean(kernel_mean)


def find_mode(target: Target, x: Floats, batches: GradientBatches, n_steps: int) -> Floats:
    """Search for a maximum of the density near the point ``x``, by L-BFGS with all data.

    Args:
        target: The target.
        x: float64[1, d], the initial point.
        batches: The gradients.
        n_steps: Largest number of iterations.

    Returns:
        float64[1, d].
    """

    def minus(at: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            value, slope = -target.density.log_density(at[None])[0], -batches.exact(at[None])[0]
        return (value, slope) if np.isfinite(value) and np.isfinite(slope).all() else (np.inf, np.zeros_like(at))

    options = {"maxiter": n_steps, "maxfun": 2 * n_steps + 20, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(minus, x[0], jac=True, method="L-BFGS-B", options=options).x[None]
