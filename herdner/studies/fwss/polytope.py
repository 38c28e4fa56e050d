"""The constants of FWSS18's theorems, for a distribution on finitely many points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.studies.fwss.kernels import as_points, gram
from herdner.studies.fwss.quadrature import refuse_duplicates


@dataclass(frozen=True, slots=True)
class MarginalPolytope:
    """The hull of k(x_i, .) of finitely many points, and mu_p in it, as FWSS18's theorems see them.

    The kernel's bound, for which the paper also writes R (Sec. 3.1), is 1. Under a density the hull has infinitely many
    dimensions and holds no ball (App. E): R is 0 and the theorems say nothing.

    Attributes:
        diameter: D, the largest distance of two of the kernels.
        radius: R, of the largest ball around mu_p (printed "smallest") that the hull holds, within its affine hull.
    """

    diameter: float
    radius: float

    @classmethod
    def of(cls, x: ArrayLike, chances: ArrayLike, bandwidth: float) -> MarginalPolytope:
        """Points [M, d] with probabilities [M]. Time O(M^4). ValueError where two points are equal, or so close that
        rounding makes their kernels depend on each other.

        The kernels of M points are the corners of a simplex, and mu_p is chance_i times as far from the side opposite
        corner i as that corner is.
        """
        points, p = as_points(x, "points"), np.asarray(chances, float)
        if p.shape != (len(points),) or not (p >= 0).all() or not np.isclose(p.sum(), 1):
            raise ValueError(f"chances must be {len(points)} probabilities, one for each point, that add up to 1")
        refuse_duplicates(points)
        matrix = gram(points, bandwidth)
        try:
            corners = np.asarray(np.linalg.cholesky(matrix), float)  # a row for each kernel, at their distances
        except np.linalg.LinAlgError:
            raise ValueError("the Gram matrix is singular; a smaller bandwidth or points further apart help") from None
        heights = [_apart(corners[i], np.delete(corners, i, axis=0)) for i in range(len(p))]
        return cls(float(np.sqrt(2 - 2 * matrix.min())), float((p * heights).min()))

    def bound(self, n_particles: int, step: str = "line-search", accuracy: float = 1.0) -> float:
        """What MMD never exceeds after N particles (FWSS18 Theorems 1 and 3); ``accuracy``: delta of eq. 3.

        2 d^2 / (R delta N) for "constant", sqrt(2) d exp(-R^2 delta^2 N / (2 d^2)) for "line-search", "away" and
        "fully-corrective", whose weights may leave the hull: a step along the line through the new particle does that
        much from anywhere. Of "pairwise" steps the theorem does not speak, as the weight to move may be too little.
        """
        if step not in ("constant", "line-search", "away", "fully-corrective"):
            raise ValueError(f"the theorems bound 'constant', 'line-search', 'away', 'fully-corrective', not {step!r}")
        if step == "constant":
            return 2 * self.diameter**2 / (self.radius * accuracy * n_particles) if self.radius else np.inf
        share = (self.radius * accuracy / self.diameter) ** 2 if self.radius else 0.0
        return float(np.sqrt(2) * self.diameter * np.exp(-share * n_particles / 2))

    def contraction(self, n_particles: int, gamma: float, step: str = "line-search", accuracy: float = 1.0) -> float:
        """How much of the posterior of an integral of f, ``|f| <= 1``, is further than gamma from the truth, at most,
        when the particles are weighted by Bayesian quadrature (FWSS18 Theorems 2 and 4, whose second exponent lacks
        delta).

        sqrt(2 / pi) s / gamma exp(-gamma^2 / (2 s^2)), with the bound of MMD as s. The theorem leaves out that the
        posterior's mean is itself up to MMD off; as s is more than sqrt(2) times what MMD can be, the bound holds.
        """
        return _tail(self.bound(n_particles, step, accuracy), gamma)

    def lazy_bound(self, n_particles: int, phi: float, accuracy: float = 2.0) -> float:
        """What MMD of `lazy_fwss` never exceeds after N particles (FWSS18 Theorem 5), for its steps "line-search" and
        "fully-corrective".

        sqrt(2) d exp(-(phi / (K d L))^2 N / 2), with L = d, as no norm of mu - mu_p is larger. The paper has R phi in
        place of phi, but its proof has no R, and R < 1 makes the bound larger; and eq. 38 gives as L the largest
        <mu - mu_p, g>, which can be below that norm. So no ball is needed: it holds for densities too (d = sqrt(2)).

        Args:
            phi: The least Phi that a particle of the run was taken by (``history["phi"]``), known when it is over.
            accuracy: K of Alg. 9 and 10.
        """
        if not (phi >= 0 and accuracy >= 1):
            raise ValueError(f"phi must be at least 0 and accuracy at least 1, not {phi} and {accuracy}")
        share = (phi / (accuracy * self.diameter**2)) ** 2 if self.diameter else 0.0
        return float(np.sqrt(2) * self.diameter * np.exp(-share * n_particles / 2))

    def lazy_contraction(self, n_particles: int, gamma: float, phi: float, accuracy: float = 2.0) -> float:
        """`contraction` for `lazy_fwss` (FWSS18 Theorem 6), with `lazy_bound` as s."""
        return _tail(self.lazy_bound(n_particles, phi, accuracy), gamma)


def _tail(spread: float, gamma: float) -> float:
    """A bound of how much of a normal distribution of this standard deviation is further than gamma from its mean."""
    if not spread < np.inf:
        return 1.0
    inner = -((gamma / spread) ** 2) / 2
    return float(min(1.0, np.sqrt(2 / np.pi) * spread / gamma * np.exp(inner))) if spread else 0.0


def _apart(point: Floats, others: Floats) -> float:
    """The distance of a point from the plane through others [K, n]."""
    if not len(others):
        return 0.0
    frame = np.linalg.qr((others[1:] - others[0]).T)[0]  # of directions within the plane
    rest = point - others[0]
    return float(np.linalg.norm(rest - frame @ (frame.T @ rest)))
