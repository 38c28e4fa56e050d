"""Sampling in many dimensions: Laplace approximation, and Frank-Wolfe Stein sampling with a kernel per variable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_real
from herdner.base.seeds import Seed
from herdner.studies.fwss.common import Adam, GradientBatches, Optimiser, check_points, find_mode
from herdner.studies.fwss.growing import FwssOptions, ParticleRun, add_particles, move_along_field
from herdner.studies.fwss.kernels import check_bandwidth, evenly_spaced
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.targets import Target, density_target


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceApproximation:
    """Normal approximation of a density at its mode (Laplace 1774; MacKay 2003, ch. 27).

    Attributes:
        mode: float64[d], the mean.
        root: float64[d, d], where root @ root.T is the covariance, the inverse of the curvature.
    """

    mode: Floats
    root: Floats

    def points(self, z: Floats) -> Floats:
        """Convert whitened points z to points x.

        If z is standard normal, x is an exact draw from the approximation.

        Args:
            z: float64[N, d].

        Returns:
            float64[N, d].
        """
        return self.mode + z @ self.root.T

    def whiten(self, target: Target) -> Target:
        """Return a `Target` whose density is that of ``target`` as a function of whitened points.

        `points` converts whitened points to points of the target. The whitened density is close to a standard normal
        distribution: all directions have about equal scales, and the variables are almost uncorrelated.

        Args:
            target: The target.
        """
        density, root = target.density, self.root

        def log_density(z: Floats) -> Floats:
            return density.log_density(self.points(z))

        def grad(z: Floats) -> Floats:
            return density.grad(self.points(z)) @ root

        return density_target(log_density, grad, dim=target.dim)


def fit_laplace(target: Target, start: ArrayLike, *, step: float = 1e-4) -> LaplaceApproximation:
    """Fit a Laplace approximation to a target's density.

    The mode is found by L-BFGS, and the curvature by finite differences of the gradient in d directions.

    Args:
        target: The target.
        start: Initial point, float64[d].
        step: Distance of the points in a finite difference.

    Returns:
        The approximation: a normal distribution around the mode.

    Raises:
        ValueError: The density does not decrease in every direction from the mode.
    """
    if check_real(step, "step", 0) == 0:
        raise ValueError(f"`step` must be above 0, got {step}")
    x = check_points(np.atleast_2d(start), target, "start")
    batches = GradientBatches(target.density, None, np.random.default_rng(0))  # no mini-batches, so the seed is unused
    mode = find_mode(target, x[:1], batches, _MODE_STEPS)
    change = target.density.grad(mode) - target.density.grad(mode + step * np.eye(target.dim))
    curvatures, directions = np.linalg.eigh((change + change.T) / (2 * step))
    if not curvatures.min() > 1e-8 * curvatures.max():
        raise ValueError(
            "the density does not decrease in every direction from its mode; add a prior, or use a narrower prior"
        )
    return LaplaceApproximation(mode[0], directions / np.sqrt(curvatures))


_MEDIAN_POINTS = 64
_MODE_STEPS = 2000  # largest number of iterations of L-BFGS


def local_fwss(
    target: Target,
    n_particles: int,
    *,
    init: Literal["prior"] | ArrayLike = "prior",
    n_steps: int = 50,
    optimiser: Optimiser = Adam(),  # noqa: B008 (frozen)
    bandwidth: float | Literal["median"] = "median",
    start: Points | None = None,
    seed: Seed = None,
) -> Points:
    """Sample by `fwss` with equal weights and with a separate kernel for each variable.

    The method suits targets with many, almost independent variables, such as those of
    `LaplaceApproximation.whiten`. A single kernel over all variables fails on such targets: the particles lie too close
    together, especially with few particles per variable (Ba et al. 2022). Kernels over few variables repel as strongly
    as in few dimensions (Zhuo et al. 2018; Wang, Zeng and Liu 2018). They reproduce each variable's marginal, up to a
    shrinkage that decreases with the number of particles. The dependence between variables comes from the scores and
    from the initial positions. For one variable, the result equals that of `fwss`. The history holds seconds.

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: Number of particles, including those of ``start``.
        init: See `fwss`.
        n_steps: See `fwss`.
        optimiser: See `fwss`.
        bandwidth: One number for all variables, or "median" to apply the median rule to each variable.
        start: Result of an earlier run to continue.
        seed: Random seed or generator.

    Returns:
        The particles, with equal weights.

    Raises:
        ValueError: An argument is out of range.
        DivergenceError: A coordinate of a particle is not finite.
    """
    rule = check_bandwidth(bandwidth, ["median"])
    if isinstance(init, str) and init != "prior":
        raise ValueError(f"`init` must be 'prior' or an array of points [M, d], got {init!r}")
    plan = FwssOptions(step="constant", init=init, n_steps=n_steps, optimiser=optimiser, bandwidth=1.0)

    def oracle(run: ParticleRun, x: Floats, seed: int) -> Floats:
        if not run.n:
            return move_along_field(run, x, None, seed)
        each = bandwidths(np.concatenate([run.x, x])) if isinstance(rule, str) else np.full(x.shape[1], rule)
        return move_along_field(run, x, LocalField(run.x, run.pull(1), run.scores, each), seed)

    points = add_particles(ParticleRun(target, plan, start, n_particles, seed), n_particles, oracle)
    return replace(points, history={"seconds": points.history["seconds"]})


class LocalField:
    """Vector field of Stein's method with one kernel k_i for each variable i.

    The field at x is phi_i(x) = sum_l w_l [k_i(x_li, x_i) s_li + d/dx_li k_i(x_li, x_i)].
    """

    def __init__(self, points: Floats, weights: Floats, scores: Floats, bandwidths: Floats) -> None:
        """Store the points, weights, scores and bandwidths that define the field.

        Args:
            points: float64[N, d].
            weights: float64[N].
            scores: float64[N, d].
            bandwidths: float64[d].
        """
        self._points, self._weights, self._scores, self._squares = points, weights, scores, bandwidths**2

    def __call__(self, x: Floats) -> Floats:
        """Return the Stein field (the update direction of SVGD) at the points ``x``.

        Args:
            x: float64[M, d].

        Returns:
            float64[M, d].
        """
        return np.stack([self._at(row) for row in x])

    def _at(self, x: Floats) -> Floats:
        away = x - self._points
        kernel = np.exp(-0.5 * away * away / self._squares)
        kernel *= self._scores + away / self._squares
        return self._weights @ kernel


def bandwidths(x: Floats) -> Floats:
    """Return the bandwidth of the median heuristic for each variable, computed from at most 64 points.

    Args:
        x: float64[N, d].

    Returns:
        float64[d].
    """
    n = len(x)
    x = x[evenly_spaced(n, _MEDIAN_POINTS)]
    i, j = np.triu_indices(len(x), 1)
    middle = np.median((x[i] - x[j]) ** 2, axis=0) if len(i) else np.zeros(x.shape[1])
    return np.where(middle > 0, np.sqrt(middle / (2 * np.log(n + 1))), 1.0)
