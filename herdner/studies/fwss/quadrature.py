"""Weights for given points: Bayesian quadrature (FWSS18 eq. 11) and the weights of least KSD."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, solve_triangular  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from herdner.base.arrays import Floats
from herdner.studies.fwss.kernels import KernelMean, as_kernel_mean, as_points, fixed_bandwidth, gram
from herdner.studies.fwss.stein import stein_kernel

_FIRST_JITTER, _LAST_JITTER = 1e-13, 1e-4  # relative to the mean of the diagonal
_REFINEMENTS, _RESIDUAL = 20, 1e-9


class GramSystem:
    """A Gram matrix that grows by a row and a column at a time, and its Cholesky root once it is needed: O(N^2) each.

    ``jitter`` is what had to be added to the diagonal; it grows tenfold when rounding makes the root fail.
    """

    def __init__(self, matrix: Floats) -> None:
        n = len(matrix)
        self._matrix = np.empty((2 * n + 8, 2 * n + 8))
        self._root = np.zeros_like(self._matrix)
        self._n, self._factored = n, 0
        self._matrix[:n, :n] = matrix
        self.jitter = _FIRST_JITTER * float(np.trace(matrix)) / n

    @property
    def matrix(self) -> Floats:
        """[N, N], without the jitter."""
        return self._matrix[: self._n, : self._n]

    def append(self, row: Floats) -> None:
        """``row`` [N + 1]: the kernel of the new point with the others and, last, with itself."""
        n = self._n
        if n == len(self._matrix):
            self._matrix, self._root = (np.pad(a, (0, n)) for a in (self._matrix, self._root))
        self._matrix[n, : n + 1] = self._matrix[: n + 1, n] = row
        self._n = n + 1

    def solve(self, right: Floats) -> Floats:
        """w with matrix @ w = right; refined until the residual is below 1e-9, jitter or not, where that is possible.

        Each refinement is a step towards the least of w' K w - 2 w' right, so that it never makes MMD^2 larger.
        """
        self._factor()
        root = (self._root[: self._n, : self._n], True)
        w = cast(Floats, cho_solve(root, right, check_finite=False))
        for _ in range(_REFINEMENTS):
            residual = right - self.matrix @ w
            if np.abs(residual).max() < _RESIDUAL:
                break
            w = w + cast(Floats, cho_solve(root, residual, check_finite=False))
        return w

    def _factor(self) -> None:
        """Brings the root up to date: row by row, or from scratch, where that fails with more jitter."""
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
                self.jitter *= 10
                if not self.jitter < last:
                    raise ValueError(
                        f"the Gram matrix of {n} points is singular; a smaller bandwidth or points further apart help"
                    ) from None

    def _extend(self, n: int) -> bool:
        """The root's row ``n``; False where rounding has used up the jitter."""
        row = self._matrix[n, : n + 1]
        part = cast(Floats, solve_triangular(self._root[:n, :n], row[:n], lower=True, check_finite=False))
        pivot = row[n] + self.jitter - part @ part
        if pivot < self.jitter / 2:
            return False
        self._root[n, :n] = part
        self._root[n, n] = np.sqrt(pivot)
        self._factored = n + 1
        return True


def refuse_duplicates(x: Floats, what: str = "points", n_new: int | None = None) -> None:
    """ValueError where one of the last ``n_new`` points, by default of all, equals one before it."""
    n_new = len(x) if n_new is None else n_new
    if n_new > 8 and len(np.unique(x, axis=0)) == len(x):
        return
    for i in range(len(x) - n_new, len(x)):
        same = np.flatnonzero((x[:i] == x[i]).all(axis=1))
        if len(same):
            raise ValueError(
                f"{what} {same[0]} and {i} are equal, which makes the Gram matrix singular; drop one, or start apart"
            )


def quadrature_weights(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float) -> tuple[Floats, float]:
    """(w [N], jitter): the weights of points [N, d] that make MMD to ``truth`` least; K w = z (FWSS18 eq. 11).

    The weights need not be positive, nor add up to 1.

    Args:
        truth: A kernel mean, or samples [M, d].
    """
    _, z, system = _system(x, truth, bandwidth)
    return system.solve(z), system.jitter


def quadrature_variance(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float) -> float:
    """What Bayesian quadrature leaves unknown of an integral of f under p, given f at points [N, d]: its variance where
    f is drawn from a Gaussian process with the kernel, ``|mu_p|^2 - z' K^-1 z`` (FWSS18 eq. 46).

    The paper prints the first term, the double integral of k, without p. It is the MMD^2 of `quadrature_weights`
    (eq. 47), the least of any weights; rounding below 0 is 0. ``truth`` as there.
    """
    mean, z, system = _system(x, truth, bandwidth)
    return max(mean.squared_norm(bandwidth) - float(z @ system.solve(z)), 0.0)


def _system(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float) -> tuple[KernelMean, Floats, GramSystem]:
    """(mu_p, z [N], K) for checked points."""
    points, h, mean = as_points(x, "points"), fixed_bandwidth(bandwidth), as_kernel_mean(truth)
    refuse_duplicates(points)
    return mean, mean.at(points, h), GramSystem(gram(points, h))


def stein_weights(x: ArrayLike, scores: ArrayLike, bandwidth: float) -> Floats:
    """[N]: the weights of points [N, d] that add up to 1 and make KSD least (Liu and Lee 2017, but of any sign).

    They need no integral of p. sum_j w_j k(x_j, .) estimates mu_p by control functionals.
    """
    points = as_points(x, "points")
    s = np.asarray(scores, float)
    refuse_duplicates(points)
    return least_ksd(GramSystem(stein_kernel(points, s, points, s, bandwidth)))


def least_ksd(system: GramSystem) -> Floats:
    """The weights that add up to 1 and make w' K w least."""
    w = system.solve(np.ones(len(system.matrix)))
    return w / w.sum()
