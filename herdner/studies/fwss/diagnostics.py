"""How good weighted points are: MMD^2, effective sample size. KSD stands in `herdner.studies.fwss.stein`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdner.studies.fwss.kernels import KernelMean, SampleMean, as_kernel_mean, as_points, fixed_bandwidth


def mmd2(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float, weights: ArrayLike | None = None) -> float:
    """MMD^2 (FWSS18 Sec. 2.1) of weighted points [N, d] against samples [M, d] or an exact kernel mean.

    Weights are 1 / N by default. In blocks: memory O(N + M). Tiny negative values are rounding.
    """
    points = as_points(x, "points")
    own, mean, h = SampleMean(points, weights), as_kernel_mean(truth), fixed_bandwidth(bandwidth)  # type: ignore[arg-type]
    return mean.squared_norm(h) - 2 * float(own.weights @ mean.at(points, h)) + own.squared_norm(h)


def effective_sample_size(weights: ArrayLike) -> float:
    """``(sum |w|)^2 / sum w^2``: N for equal weights, 1 where one point has all."""
    w = np.abs(np.asarray(weights, float))
    if not w.sum() > 0:
        raise ValueError("weights must not all be 0")
    return float(w.sum() ** 2 / (w * w).sum())
