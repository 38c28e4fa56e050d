"""The normal distribution that touches a density at its mode (Laplace 1774; MacKay 2003, ch. 27)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import whole
from herdner.studies.fwss.common import Batches, find_mode, given_points
from herdner.studies.fwss.targets import Target, target


@dataclass(frozen=True, slots=True, eq=False)
class Laplace:
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

        return target(log_density, grad, dim=given.dim)


def laplace(given: Target, start: ArrayLike, *, step: float = 1e-4, mode_steps: int = 2000) -> Laplace:
    """The mode by L-BFGS from ``start`` [d], the curvature there by d differences of the gradient, ``step`` apart.

    Raises:
        ValueError: The density does not fall in every direction from there.
    """
    x = given_points(np.atleast_2d(start), given, "start")
    batches = Batches(given.density, None, np.random.default_rng(0))  # all data: nothing is drawn
    mode = find_mode(given, x[:1], batches, whole(mode_steps, "mode_steps"))
    change = given.density.grad(mode) - given.density.grad(mode + step * np.eye(given.dim))
    curvatures, directions = np.linalg.eigh((change + change.T) / (2 * step))
    if not curvatures.min() > 1e-8 * curvatures.max():
        raise ValueError("the density does not fall in every direction from its mode; add a prior, or make it narrower")
    return Laplace(mode[0], directions / np.sqrt(curvatures))
