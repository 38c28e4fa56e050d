"""Weights for fixed points: Bayesian quadrature (FWSS18, eq. 11) and the weights of least KSD."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.extras import import_extra
from herdner.studies.fwss.kernels import KernelMean, as_kernel_mean, as_points, fixed_bandwidth, gram
from herdner.studies.fwss.stein import check_scores, stein_kernel

linalg = import_extra("scipy.linalg", "Stein sampling needs SciPy")

_FIRST_JITTER, _LAST_JITTER = 1e-13, 1e-4  # relative to the mean diagonal element
_REFINEMENTS, _RESIDUAL = 20, 1e-9


class GramSystem:
    """Gram matrix of a growing set of points, with its Cholesky factor; adding a point costs O(N^2).

    Attributes:
        jitter: The number that is added to the diagonal. It grows tenfold if rounding errors make the factorisation
            fail.
    """

    def __init__(self, matrix: Floats) -> None:
        """Store and factorise the initial Gram matrix.

        Args:
            matrix: float64[N, N].
        """
        n = len(matrix)
        self._matrix = np.empty((2 * n + 8, 2 * n + 8))
        self._root = np.zeros_like(self._matrix)
        self._n, self._factored = n, 0
        self._matrix[:n, :n] = matrix
        self.jitter = _FIRST_JITTER * float(np.trace(matrix)) / n

    @property
    def matrix(self) -> Floats:
        """Gram matrix without the jitter on its diagonal, float64[N, N]."""
        return self._matrix[: self._n, : self._n]

    def append(self, row: Floats) -> None:
        """Append the row and the column of a new point to the Gram matrix.

        Args:
            row: float64[N + 1], the kernel between the new point and each earlier point and, as last element, between
                the new point and itself.
        """
        n = self._n
        if n == len(self._matrix):
            self._matrix, self._root = (np.pad(a, (0, n)) for a in (self._matrix, self._root))
        self._matrix[n, : n + 1] = self._matrix[: n + 1, n] = row
        self._n = n + 1

    def solve(self, right: Floats) -> Floats:
        """Solve K w = ``right`` for w, where K is the Gram matrix.

        The solution is refined until the residual is below 1e-9, but at most 20 times. Each refinement decreases
        w' K w - 2 w' right, so that MMD^2 never increases.

        Args:
            right: float64[N].

        Returns:
            float64[N].

        Raises:
            ValueError: The matrix is singular.
        """
        self._factor()
        root = (self._root[: self._n, : self._n], True)
        w = cast(Floats, linalg.cho_solve(root, right, check_finite=False))
        for _ in range(_REFINEMENTS):
            residual = right - self.matrix @ w
            if np.abs(residual).max() < _RESIDUAL:
                break
            w = w + cast(Floats, linalg.cho_solve(root, residual, check_finite=False))
        return w

    def _factor(self) -> None:
        """Extend the Cholesky factor to all rows of the matrix.

        If rounding errors prevent this, the factor is computed again with more jitter.
        """
        if self._factored and all(self._extend(n) for n in range(self._factored, self._n)):
            return
        n, matrix = self._n, self.matrix
        last = _LAST_JITTER * float(np.trace(matrix)) / n
        while True:
            try:
                self._root[:n, :n] = np.linalg.cholesky(matrix + self.jitter * np.eye(n))
                self._factored = n
                return
            except np.linalg.LinAlgError:
                self.jitter = max(10 * self.jitter, _FIRST_JITTER * float(np.trace(matrix)) / n)  # it may be 0
                if not self.jitter < last:
                    raise ValueError(
                        f"the Gram matrix of {n} points is singular; use a smaller bandwidth or more distant points"
                    ) from None

    def _extend(self, n: int) -> bool:
        """Compute row ``n`` of the Cholesky factor; return False if rounding errors require a larger jitter."""
        row = self._matrix[n, : n + 1]
        part = cast(Floats, linalg.solve_triangular(self._root[:n, :n], row[:n], lower=True, check_finite=False))
        pivot = row[n] + self.jitter - part @ part
        if pivot < self.jitter / 2:
            return False
        self._root[n, :n] = part
        self._root[n, n] = np.sqrt(pivot)
        self._factored = n + 1
        return True


def refuse_duplicates(x: Floats, what: str = "points", n_new: int | None = None) -> None:
    """Raise `ValueError` if one of the last ``n_new`` points equals an earlier point.

    Args:
        x: float64[N, d].
        what: Name of the points in the error message.
        n_new: Number of new points, the last ones; by default all.

    Raises:
        ValueError: Two points are equal.
    """
    n_new = len(x) if n_new is None else n_new
    if n_new > 8 and len(np.unique(x, axis=0)) == len(x):
        return
    for i in range(len(x) - n_new, len(x)):
        same = np.flatnonzero((x[:i] == x[i]).all(axis=1))
        if len(same):
            raise ValueError(
                f"{what} {same[0]} and {i} are equal, which makes the Gram matrix singular; remove one, or use distinct"
                " starting points"
            )


def quadrature_weights(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float) -> tuple[Floats, float]:
    """Return the Bayesian quadrature weights w, which minimise the MMD (FWSS18, eq. 11).

    They solve K w = z.

    The weights can be negative, and their sum can differ from 1.

    Args:
        x: Points, float64[N, d].
        truth: A kernel mean, or samples [M, d].
        bandwidth: Bandwidth of the kernel.

    Returns:
        The weights, float64[N], and the jitter.

    Raises:
        ValueError: Two points are equal, or the Gram matrix is singular.
    """
    _, z, system = _system(x, truth, bandwidth)
    return system.solve(z), system.jitter


def quadrature_variance(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float) -> float:
    """Return the posterior variance of an integral in Bayesian quadrature (FWSS18, eq. 46).

    The variance is ``|mu_p|^2 - z' K^-1 z``. The integral is that of f under p, where f is drawn from a Gaussian
    process with the kernel, given its values at the points. The paper prints the first term, the double integral of k,
    without p. The variance equals the MMD^2 of `quadrature_weights`, which is the smallest of all weights (eq. 47).
    Negative values by rounding become 0.

    Args:
        x: Points, float64[N, d].
        truth: A kernel mean, or samples [M, d].
        bandwidth: Bandwidth of the kernel.

    Raises:
        ValueError: Two points are equal, or the Gram matrix is singular.
    """
    mean, z, system = _system(x, truth, bandwidth)
    return max(mean.squared_norm(bandwidth) - float(z @ system.solve(z)), 0.0)


def _system(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float) -> tuple[KernelMean, Floats, GramSystem]:
    """Check the points; return the kernel mean mu_p, its values [N] at the points, and the points' Gram matrix."""
    points, h, mean = as_points(x, "points"), fixed_bandwidth(bandwidth), as_kernel_mean(truth)
    refuse_duplicates(points)
    return mean, mean.at(points, h), GramSystem(gram(points, h))


def stein_weights(x: ArrayLike, scores: ArrayLike, bandwidth: float) -> Floats:
    """Return weights with sum 1 that minimise the kernelised Stein discrepancy (Liu and Lee 2017).

    Weights may be negative.

    The weights need no integral under p: sum_j w_j k(x_j, .) estimates mu_p by control functionals.

    Args:
        x: Points, float64[N, d].
        scores: Gradients of the log-density, float64[N, d].
        bandwidth: Bandwidth of the kernel.

    Returns:
        float64[N].

    Raises:
        ValueError: Two points are equal, or the Gram matrix is singular.
    """
    points = as_points(x, "points")
    s = check_scores(scores, points)
    refuse_duplicates(points)
    return least_ksd(GramSystem(stein_kernel(points, s, points, s, bandwidth)))


def least_ksd(system: GramSystem) -> Floats:
    """Return the weights w with sum 1 that minimise w' K w, for the Gram matrix K of the Stein kernel.

    Args:
        system: The Gram matrix K of the Stein kernel.

    Returns:
        float64[N].
    """
    w = system.solve(np.ones(len(system.matrix)))
    return w / w.sum()
