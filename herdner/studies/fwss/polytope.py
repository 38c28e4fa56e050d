"""Constants and error bounds of the theorems of FWSS18, for distributions on finitely many points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer, check_real
from herdner.studies.fwss.kernels import as_points, fixed_bandwidth
from herdner.studies.fwss.quadrature import refuse_duplicates

_ROUNDING = 2.0**-48  # bound on the relative rounding error of an entry of a matrix and of its decomposition
_ABOVE = 1 + 2.0**-48  # factor above all rounding errors of a distance


@dataclass(frozen=True, slots=True)
class MarginalPolytope:
    """Convex hull of the kernel functions k(x_i, .), one for each point x_i of a discrete distribution p (FWSS18).

    The hull contains mu_p, the kernel mean of p. The paper (Sec. 3.1) also uses the name R for the bound on the kernel,
    which is 1 here. For a density, the hull has infinitely many dimensions and contains no ball (App. E); then R is 0
    and the theorems give no information.

    Attributes:
        diameter: D, the largest distance between two of the kernels.
        radius: R, the radius of the largest ball around mu_p in the hull, within its affine hull (the paper prints
            "smallest").
    """

    diameter: float
    radius: float

    def __post_init__(self) -> None:
        """Check that the diameter and the inner radius are not negative."""
        check_real(self.diameter, "diameter", 0)
        check_real(self.radius, "radius", 0)

    @classmethod
    def of(cls, x: ArrayLike, chances: ArrayLike, bandwidth: float) -> MarginalPolytope:
        """Compute the diameter and the inner radius of the polytope of a discrete distribution.

        The time is O(M^4) for M points.

        The kernels of M points are the corners of a simplex. The distance of mu_p from the side opposite corner i is
        p_i times the distance of corner i from this side.

        Args:
            x: Points, float64[M, d].
            chances: Probabilities, float64[M].
            bandwidth: Bandwidth of the kernel.

        Returns:
            The diameter and the inner radius.

        Raises:
            ValueError: The probabilities do not sum to 1, or two points are so close that their kernels are dependent.
        """
        points, p, h = as_points(x, "points"), np.asarray(chances, float), fixed_bandwidth(bandwidth)
        if p.shape != (len(points),) or not (p >= 0).all() or not np.isclose(p.sum(), 1):
            raise ValueError(
                f"`chances` must be {len(points)} probabilities with sum 1, one per point, got {p.tolist()!s:.80}"
            )
        refuse_duplicates(points)
        off = _complements(points, h)
        heights = [_height(off, i) for i in range(len(p))]
        return cls(_ABOVE * float(np.sqrt(2 * off.max())), float((p * heights).min()))

    def bound(self, n_particles: int, step: str = "line-search", accuracy: float = 1.0) -> float:
        """Return an upper bound on the MMD of FWSS with ``n_particles`` particles (FWSS18, Theorems 1 and 3).

        The bound is 2 d^2 / (R delta N) for "constant". It is sqrt(2) d exp(-R^2 delta^2 N / (2 d^2)) for
        "line-search", "away" and "fully-corrective". The weights of "away" and "fully-corrective" steps may leave the
        hull, but a step along the line through the new particle's kernel decreases the MMD as much from there. The
        theorem does not cover "pairwise" steps, because there may be too little weight to move.

        Args:
            n_particles: Number of particles, N.
            step: The step rule.
            accuracy: delta of eq. 3, above 0 and at most 1.

        Raises:
            ValueError: The theorems do not cover the step rule, or an argument is out of their range.
        """
        if step not in ("constant", "line-search", "away", "fully-corrective"):
            raise ValueError(
                "`step` must be 'constant', 'line-search', 'away' or 'fully-corrective', because other steps have no"
                f" bound, got {step!r}"
            )
        check_integer(n_particles, "n_particles")
        if check_real(accuracy, "accuracy", 0, 1) == 0:
            raise ValueError(f"`accuracy` must be above 0, got {accuracy}")
        if step == "constant":
            return 2 * self.diameter**2 / (self.radius * accuracy * n_particles) if self.radius else np.inf
        share = (self.radius * accuracy / self.diameter) ** 2 if self.radius else 0.0
        return float(np.sqrt(2) * self.diameter * np.exp(-share * n_particles / 2))

    def contraction(self, n_particles: int, gamma: float, step: str = "line-search", accuracy: float = 1.0) -> float:
        """Bound the posterior probability that an integral differs from its estimate by more than ``gamma``.

        This bound holds for integrals of f with ``|f| <= 1``, if the particles have Bayesian quadrature weights
        (FWSS18, Theorems 2 and 4; the exponent printed in Theorem 4 lacks delta). The bound is sqrt(2 / pi) s / gamma
        exp(-gamma^2 / (2 s^2)), where s is the bound on the MMD. The theorem neglects that the posterior mean differs
        from the true integral by up to the MMD. The bound still holds, since s is more than sqrt(2) times the largest
        possible MMD.

        Args:
            n_particles: Number of particles, N.
            gamma: The distance, above 0.
            step: See `bound`.
            accuracy: See `bound`.

        Returns:
            Upper bound on the probability.

        Raises:
            ValueError: The theorems do not cover the step rule, or an argument is out of their range.
        """
        return _tail(self.bound(n_particles, step, accuracy), gamma)

    def lazy_bound(self, n_particles: int, phi: float, accuracy: float = 2.0) -> float:
        """Return an upper bound on the MMD of `lazy_fwss` with ``n_particles`` particles (FWSS18, Theorem 5).

        It applies to "line-search" and "fully-corrective" steps: sqrt(2) d exp(-(phi / (K d L))^2 N / 2), with L = d,
        since no norm of mu - mu_p is larger. The paper prints R phi in place of phi, but its proof contains no R, and R
        < 1 makes the bound larger. The L of eq. 38 is the largest <mu - mu_p, g>, which can be smaller than the norm.
        The proof needs no ball in the hull, so the bound also holds for densities (d = sqrt(2)).

        Args:
            n_particles: Number of particles, N.
            phi: The smallest Phi at which a particle of the run was added (``history["phi"]``), available after the
                run.
            accuracy: K of Alg. 9 and 10.

        Raises:
            ValueError: An argument is out of range.
        """
        check_integer(n_particles, "n_particles")
        check_real(phi, "phi", 0)
        check_real(accuracy, "accuracy", 1)
        share = (phi / (accuracy * self.diameter**2)) ** 2 if self.diameter else 0.0
        return float(np.sqrt(2) * self.diameter * np.exp(-share * n_particles / 2))

    def lazy_contraction(self, n_particles: int, gamma: float, phi: float, accuracy: float = 2.0) -> float:
        """Bound the posterior probability that a `lazy_fwss` estimate errs by more than ``gamma`` (FWSS18, Theorem 6).

        Args:
            n_particles: Number of particles, N.
            gamma: The distance, above 0.
            phi: See `lazy_bound`.
            accuracy: See `lazy_bound`.

        Returns:
            Upper bound on the probability.

        Raises:
            ValueError: An argument is out of range.
        """
        return _tail(self.lazy_bound(n_particles, phi, accuracy), gamma)


def _tail(spread: float, gamma: float) -> float:
    """Bound the probability that a normal variable differs from its mean by more than ``gamma``.

    ``spread`` is the standard deviation of the variable.
    """
    if check_real(gamma, "gamma", 0) == 0:
        raise ValueError(f"`gamma` must be above 0, got {gamma}")
    if not spread < np.inf:
        return 1.0
    if spread < gamma / 1e3:  # the result is below the smallest positive number
        return 0.0
    return float(min(1.0, np.sqrt(2 / np.pi) * spread / gamma * np.exp(-((gamma / spread) ** 2) / 2)))


def _complements(points: Floats, bandwidth: float) -> Floats:
    """Return 1 - k(x_i, x_j), float64[M, M], with small relative errors also for close points."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.square((points[:, None] - points) / bandwidth).sum(axis=-1)
        return -np.expm1(-squares / 2)


def _height(off: Floats, i: int) -> float:
    """Return a lower bound on the distance of the kernel of point i from the plane of the other kernels.

    The distance is the last pivot of the Gram matrix of differences from the kernel of one other point. The matrix is
    lowered by a bound on its rounding errors, which lowers the pivot by at least the error.

    Args:
        off: 1 - k(x_i, x_j), float64[M, M].
        i: Index of the point.

    Raises:
        ValueError: The kernels are dependent, as far as the rounding errors allow to tell.
    """
    others = np.delete(np.arange(len(off)), i)
    if not len(others):
        return 0.0
    base, rest = others[0], [*others[1:], i]
    matrix: Floats = off[rest, base][:, None] + off[base, rest] - off[np.ix_(rest, rest)]
    matrix -= _ROUNDING * len(rest) ** 2 * matrix.max() * np.eye(len(rest))
    try:
        return float(np.linalg.cholesky(matrix)[-1, -1])
    except np.linalg.LinAlgError:
        raise ValueError("the Gram matrix is singular; use a smaller bandwidth or more distant points") from None
