"""Stein's operator with the RBF kernel: the field that moves particles, the Stein kernel, and KSD."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer, check_real
from herdner.studies.fwss.kernels import (
    SampleMean,
    as_points,
    evenly_spaced,
    fixed_bandwidth,
    median_bandwidth,
    squared_distances,
)

_CELLS = 2**20
_BANDWIDTH_POINTS = 512


class SteinField:
    """Stein field of weighted points, a vector field that moves particles towards the target distribution.

    The field is phi(x) = sum_l w_l [k(x_l, x) s_l + grad_{x_l} k(x_l, x)], for points x_l with weights w_l and scores
    s_l, which are gradients of the log-density.

    Let mu be the mean of the kernel at the points. The field is minus the gradient of the MMD objective <mu - mu_p,
    k(., x)> at x. By Stein's identity, grad mu_p(x) = E_p[k(., x) grad log p], which is estimated at the same points.
    The density attracts particles, and particles repel each other. FWSS18, eq. 4 and 9 print both terms with a plus
    sign and the gradient of k with respect to x; eq. 7 lacks a sign. The field is also the direction of SVGD. A call
    costs O(N d) per point, by matrix products; no array of size N x N x d exists.
    """

    def __init__(self, points: Floats, weights: Floats, scores: Floats, bandwidth: float) -> None:
        """Store the points, weights, scores and bandwidth that define the Stein field.

        Args:
            points: float64[N, d].
            weights: float64[N].
            scores: float64[N, d].
            bandwidth: Bandwidth of the kernel.

        Raises:
            ValueError: A score is not finite, or the bandwidth is not above 0.
        """
        check_scores(scores, points)
        bandwidth = fixed_bandwidth(bandwidth)
        self._middle = points.mean(axis=0)
        shifted = points - self._middle
        self._norms = (shifted * shifted).sum(axis=1)
        self._doubled = -2 * shifted.T
        self._scale = -0.5 / bandwidth**2
        spread = weights[:, None] / bandwidth**2
        # k @ self._right gives both sums over l, which depend on x only through k.
        self._right = np.hstack([weights[:, None] * scores - spread * shifted, spread])

    def kernel(self, x: Floats) -> Floats:
        """Return the kernel between each of the points x and each of the N points that define the Stein field.

        Args:
            x: float64[M, d], relative to the mean of the N points.

        Returns:
            float64[M, N].
        """
        k = x @ self._doubled
        k += self._norms
        k += (x * x).sum(axis=1)[:, None]
        np.maximum(k, 0, out=k)
        k *= self._scale
        return np.exp(k, out=k)

    def __call__(self, x: Floats) -> Floats:
        """Return the Stein field at the points x.

        Args:
            x: float64[M, d].

        Returns:
            float64[M, d].
        """
        x = x - self._middle
        sums = self.kernel(x) @ self._right
        x *= sums[:, -1:]
        x += sums[:, :-1]
        return x


def stein_kernel(x: Floats, scores_x: Floats, y: Floats, scores_y: Floats, bandwidth: float) -> Floats:
    """Return the Stein kernel k_s(x, y) of a distribution p; its mean under p is 0 (FWSS18, eq. 30).

    Args:
        x: float64[N, d].
        scores_x: float64[N, d].
        y: float64[M, d].
        scores_y: float64[M, d].
        bandwidth: Bandwidth of the kernel.

    Returns:
        float64[N, M].
    """
    sx, sy = check_scores(scores_x, x), check_scores(scores_y, y)
    return _stein_parts(x, sx, y, sy, fixed_bandwidth(bandwidth))[0]


def check_scores(scores: ArrayLike, x: Floats) -> Floats:
    """Check the scores of points, and return them as float64[N, d].

    Args:
        scores: Gradients of the log-density at the points.
        x: The points, float64[N, d].

    Raises:
        ValueError: The scores have another shape than the points, or one is not finite.
    """
    s = np.asarray(scores, float)
    if s.shape != x.shape:
        raise ValueError(f"`scores` must have the shape of the points, {x.shape}, got {s.shape}")
    if not np.isfinite(s).all():
        raise ValueError(
            "`scores` must be finite, got NaN or infinity; remove points where the log-density has no gradient"
        )
    return s


def _stein_parts(x: Floats, sx: Floats, y: Floats, sy: Floats, bandwidth: float) -> tuple[Floats, Floats]:
    """Return the Stein kernel between points, and its derivative with respect to the logarithm of the bandwidth."""
    d, h2 = x.shape[1], bandwidth**2
    middle = y.mean(axis=0)
    x, y = x - middle, y - middle
    r2 = squared_distances(x, y) / h2
    k = np.exp(-0.5 * r2)
    across = ((sx * x).sum(axis=1)[:, None] - sx @ y.T - x @ sy.T + (sy * y).sum(axis=1)) / h2
    k_s = k * ((d - r2) / h2 + across + sx @ sy.T)
    return k_s, k_s * r2 + k * (4 * r2 / h2 - 2 * d / h2 - 2 * across)


def ksd(x: ArrayLike, scores: ArrayLike, bandwidth: float, weights: ArrayLike | None = None) -> float:
    """Return the kernelised Stein discrepancy (KSD) of weighted points, with memory O(N d).

    It is sqrt(w' K_s w), where K_s is the matrix of the Stein kernel.

    Args:
        x: float64[N, d].
        scores: Gradients of the log-density, float64[N, d].
        bandwidth: Bandwidth of the kernel.
        weights: float64[N], by default 1 / N.

    Raises:
        ValueError: ``scores`` does not have the shape of the points.
    """
    return float(np.sqrt(max(_ksd_squared(as_points(x, "points"), scores, bandwidth, weights)[0], 0.0)))


def _ksd_squared(
    x: Floats, scores: ArrayLike, bandwidth: float, weights: ArrayLike | None = None
) -> tuple[float, float]:
    """Return the squared kernelised Stein discrepancy, and its derivative with respect to the log-bandwidth."""
    s, bandwidth = check_scores(scores, x), fixed_bandwidth(bandwidth)
    w = SampleMean(x, weights).weights  # type: ignore[arg-type]
    step = max(1, _CELLS // len(x))
    value = slope = 0.0
    for i in range(0, len(x), step):
        part = slice(i, i + step)
        k_s, by_log = _stein_parts(x[part], s[part], x, s, bandwidth)
        value += w[part] @ (k_s @ w)
        slope += w[part] @ (by_log @ w)
    return float(value), float(slope)


def ksd_bandwidth(x: ArrayLike, scores: ArrayLike, n_steps: int = 30, rate: float = 0.1) -> float:
    """Optimise the bandwidth by gradient descent on log KSD^2 (FWSS18, App. G.2).

    The descent starts at the median bandwidth and stays within a factor of 4 of the median. Without this limit the
    minimum could have no meaning: as h grows, KSD tends to ``|mean score|``, which can be almost 0. Beyond 512 points,
    512 evenly spaced points are used.

    Args:
        x: float64[N, d].
        scores: Gradients of the log-density, float64[N, d].
        n_steps: Number of steps of the descent over log h.
        rate: Step size.

    Returns:
        The bandwidth h.
    """
    points, n_steps = as_points(x, "points"), check_integer(n_steps, "n_steps", 0)
    s, rate = check_scores(scores, points), check_real(rate, "rate", 0)
    some = evenly_spaced(len(points), _BANDWIDTH_POINTS)
    points, s = points[some], s[some]
    start = log_h = float(np.log(median_bandwidth(points)))
    for _ in range(n_steps):
        value, slope = _ksd_squared(points, s, float(np.exp(log_h)))
        if value <= 0:
            break
        log_h -= rate * slope / value
        log_h = min(max(log_h, start - np.log(4)), start + np.log(4))
    return float(np.exp(log_h))
