"""The normal distribution that touches a density at its mode (Laplace 1774; MacKay 2003, ch. 27)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed
from herdner.studies.fwss.common import Adam, Batches, Optimiser, check_points, find_mode
from herdner.studies.fwss.growing import FwssOptions, ParticleRun, add_particles, moved_along
from herdner.studies.fwss.kernels import check_bandwidth, evenly_spaced
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.targets import Target, density_target


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceApproximation:
    """Its mean ``mode`` [d], and ``root`` [d, d]: root @ root.T is its covariance, the inverse of the curvature."""

    mode: Floats
    root: Floats

    def points(self, z: Floats) -> Floats:
        """[N, d]: what whitened points z [N, d] stand for; standard normal z are exact draws."""
        return self.mode + z @ self.root.T

    def whitened(self, given: Target) -> Target:
        """The target of z, close to a standard normal one: every direction has the same scale, and no two variables
        correlate to second order.
        """
        density, root = given.density, self.root

        def log_density(z: Floats) -> Floats:
            return density.log_density(self.points(z))

        def grad(z: Floats) -> Floats:
            return density.grad(self.points(z)) @ root

        return density_target(log_density, grad, dim=given.dim)


def fit_laplace(given: Target, start: ArrayLike, *, step: float = 1e-4, mode_steps: int = 2000) -> LaplaceApproximation:
    """The mode by L-BFGS from ``start`` [d], the curvature there by d differences of the gradient, ``step`` apart.

    Raises:
        ValueError: The density does not fall in every direction from there.
    """
    x = check_points(np.atleast_2d(start), given, "start")
    batches = Batches(given.density, None, np.random.default_rng(0))  # all data: nothing is drawn
    mode = find_mode(given, x[:1], batches, check_integer(mode_steps, "mode_steps"))
    change = given.density.grad(mode) - given.density.grad(mode + step * np.eye(given.dim))
    curvatures, directions = np.linalg.eigh((change + change.T) / (2 * step))
    if not curvatures.min() > 1e-8 * curvatures.max():
        raise ValueError("the density does not fall in every direction from its mode; add a prior, or make it narrower")
    return LaplaceApproximation(mode[0], directions / np.sqrt(curvatures))


_MEDIAN_POINTS = 64


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
    """`fwss` with equal weights, each variable moved by the field of one kernel over that variable alone.

    For many variables that depend little on each other, such as those of `Laplace.whitened`. There one kernel over all
    of them fails: its particles come to lie too close together, the more so the fewer there are for each variable (Ba
    et al. 2022). Kernels over few variables repel as strongly as in few dimensions (Zhuo et al. 2018; Wang, Zeng and
    Liu 2018). They see to each variable's own distribution, less a shrinkage that falls with the number of particles;
    how variables depend on each other comes from the scores and from where the particles start. Other options as in
    `fwss`, to which this is equal for one variable. history: seconds.

    Args:
        bandwidth: One for all variables, or "median", the rule applied to each.
    """
    rule = check_bandwidth(bandwidth, ["median"])
    if isinstance(init, str) and init != "prior":
        raise ValueError(f"init must be 'prior' or points [M, d], not {init!r}")
    plan = FwssOptions(step="constant", init=init, n_steps=n_steps, optimiser=optimiser, bandwidth=1.0)

    def oracle(run: ParticleRun, x: Floats, seed: int) -> Floats:
        if not run.n:
            return moved_along(run, x, None, seed)
        each = bandwidths(np.concatenate([run.x, x])) if isinstance(rule, str) else np.full(x.shape[1], rule)
        return moved_along(run, x, LocalField(run.x, run.pull(1), run.scores, each), seed)

    points = add_particles(ParticleRun(target, plan, start, n_particles, seed), n_particles, oracle)
    history = {"seconds": points.history["seconds"]}
    return Points(points.x, points.weights, points.scores, history, points.n_gradients, points.seconds)


class LocalField:
    """phi_i(x) = sum_l w_l [k_i(x_li, x_i) s_li + d/dx_li k_i(x_li, x_i)]: `SteinField`, variable by variable."""

    def __init__(self, points: Floats, weights: Floats, scores: Floats, bandwidths: Floats) -> None:
        self._points, self._weights, self._scores, self._squares = points, weights, scores, bandwidths**2

    def __call__(self, x: Floats) -> Floats:
        """[M, d] at points [M, d]."""
        return np.stack([self._at(row) for row in x])

    def _at(self, x: Floats) -> Floats:
        away = x - self._points
        kernel = np.exp(-0.5 * away * away / self._squares)
        kernel *= self._scores + away / self._squares
        return self._weights @ kernel


def bandwidths(x: Floats) -> Floats:
    """[d]: the median rule (`median_bandwidth`) for each variable of points [N, d], of 64 of them at most."""
    n = len(x)
    x = x[evenly_spaced(n, _MEDIAN_POINTS)]
    i, j = np.triu_indices(len(x), 1)
    middle = np.median((x[i] - x[j]) ** 2, axis=0) if len(i) else np.zeros(x.shape[1])
    return np.where(middle > 0, np.sqrt(middle / (2 * np.log(n + 1))), 1.0)
