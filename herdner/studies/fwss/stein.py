"""Stein's operator with the RBF kernel: the field that moves particles, the Stein kernel, KSD, and weights by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.studies.fwss.kernels import as_points, evenly_spaced, median_bandwidth, squared_distances

_CELLS = 2**20
_BANDWIDTH_POINTS = 512


class SteinField:
    """phi(x) = sum_l w_l [k(x_l, x) s_l + grad_{x_l} k(x_l, x)], for fixed points x_l with scores s_l.

    Minus the gradient of the MMD objective <mu - mu_p, k(., x)> at x, where mu is the mean of the kernel at the points,
    and, by Stein's identity, grad mu_p(x) = E_p[k(., x) grad log p] is estimated at the same points: attracted by
    density, repelled by particles. (FWSS18 eq. 4 and 9 print both with a plus, and the gradient of k at x; eq. 7 has
    lost a sign.) It is also the direction of SVGD. A call costs O(N d) for each x, by matrix products; nothing of size
    N x N x d ever exists.
    """

    def __init__(self, points: Floats, weights: Floats, scores: Floats, bandwidth: float) -> None:
        self._middle = points.mean(axis=0)
        moved = points - self._middle
        self._norms = (moved * moved).sum(axis=1)
        self._doubled = -2 * moved.T
        self._scale = -0.5 / bandwidth**2
        spread = weights[:, None] / bandwidth**2
        # k @ this gives both sums over l that depend on x through k alone.
        self._right = np.hstack([weights[:, None] * scores - spread * moved, spread])

    def kernel(self, x: Floats) -> Floats:
        """[M, N]: k between points [M, d], taken from the middle, and the particles."""
        k = x @ self._doubled
        k += self._norms
        k += (x * x).sum(axis=1)[:, None]
        np.maximum(k, 0, out=k)
        k *= self._scale
        return np.exp(k, out=k)

    def __call__(self, x: Floats) -> Floats:
        """[M, d] at points [M, d]."""
        x = x - self._middle
        sums = self.kernel(x) @ self._right
        x *= sums[:, -1:]
        x += sums[:, :-1]
        return x


def stein_kernel(x: Floats, scores_x: Floats, y: Floats, scores_y: Floats, bandwidth: float) -> Floats:
    """[N, M]: k_s(x, y) (FWSS18 eq. 30), the kernel whose mean under p is 0; by matrix products."""
    return _stein_parts(x, scores_x, y, scores_y, bandwidth)[0]


def _stein_parts(x: Floats, sx: Floats, y: Floats, sy: Floats, bandwidth: float) -> tuple[Floats, Floats]:
    """k_s, and its derivative by log h."""
    d, h2 = x.shape[1], bandwidth**2
    middle = y.mean(axis=0)
    x, y = x - middle, y - middle
    r2 = squared_distances(x, y) / h2
    k = np.exp(-0.5 * r2)
    across = ((sx * x).sum(axis=1)[:, None] - sx @ y.T - x @ sy.T + (sy * y).sum(axis=1)) / h2
    k_s = k * ((d - r2) / h2 + across + sx @ sy.T)
    return k_s, k_s * r2 + k * (4 * r2 / h2 - 2 * d / h2 - 2 * across)


def ksd(x: ArrayLike, scores: ArrayLike, bandwidth: float, weights: ArrayLike | None = None) -> float:
    """The kernelised Stein discrepancy of weighted points [N, d] with scores [N, d]: sqrt(w' K_s w).

    Weights are 1 / N by default. Computed in blocks, so that memory is O(N d).
    """
    return float(np.sqrt(max(_ksd_squared(as_points(x, "points"), scores, bandwidth, weights)[0], 0.0)))


def _ksd_squared(
    x: Floats, scores: ArrayLike, bandwidth: float, weights: ArrayLike | None = None
) -> tuple[float, float]:
    """KSD^2 and its derivative by log h."""
    s = np.asarray(scores, float)
    if s.shape != x.shape:
        raise ValueError(f"scores must have the shape of the points, {x.shape}, not {s.shape}")
    w = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights, float)
    step = max(1, _CELLS // len(x))
    value = slope = 0.0
    for i in range(0, len(x), step):
        part = slice(i, i + step)
        k_s, by_log = _stein_parts(x[part], s[part], x, s, bandwidth)
        value += w[part] @ (k_s @ w)
        slope += w[part] @ (by_log @ w)
    return float(value), float(slope)


def ksd_bandwidth(x: ArrayLike, scores: ArrayLike, n_steps: int = 30, rate: float = 0.1) -> float:
    """The bandwidth by gradient descent on log KSD^2 over log h (FWSS18 App. G.2, third choice), from the median's.

    It stays within a factor of 4 of where it began: as h grows without limit KSD tends to ``|mean score|``, which for
    points near balance is almost 0, so that its minimum alone says nothing. Beyond 512 points it looks at 512 of them.
    """
    points, s = as_points(x, "points"), np.asarray(scores, float)
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
