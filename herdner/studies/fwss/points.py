"""Weighted points, the results of samplers of continuous distributions; their MMD^2 and effective sample size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, finite
from herdner.base.representation import short_repr
from herdner.studies.fwss.kernels import KernelMean, SampleMean, as_kernel_mean, as_points, fixed_bandwidth


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Distribution that consists of N weighted points, such as samples or particles.

    Attributes:
        x: float64[N, d].
        weights: float64[N], 1 / N for samples. Quadrature weights may be negative, and their sum may differ from 1.
        scores: float64[N, d], the gradients of the log-density at x, if the sampler stores them.
        history: Arrays by name, with one entry per particle or iteration, as documented by the sampler.
        n_gradients: Number of gradients of single points that were computed; a mini-batch gradient counts as one.
        seconds: Wall time.
    """

    x: Floats
    weights: Floats
    scores: Floats | None = None
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    n_gradients: int = 0
    seconds: float = 0.0

    __repr__ = short_repr

    def __len__(self) -> int:
        """Return the number of points, N."""
        return len(self.x)

    def expect(self, f: Callable[[Floats], NDArray[Any]]) -> Floats:
        """Return the weighted mean of f over the points, an estimate of the expectation of f.

        Args:
            f: Maps points [N, d] to values [N] or [N, ..].

        Returns:
            A number, or an array [..].

        Raises:
            ValueError: ``f`` returns another number of values.
        """
        values: NDArray[Any] = np.asarray(f(self.x))
        if values.shape[:1] != (len(self),):
            raise ValueError(
                f"`f` must return an array of shape [{len(self)}] or [{len(self)}, ..], got shape {values.shape}"
            )
        return np.tensordot(self.weights, values, axes=1)


def mmd2(x: ArrayLike, truth: KernelMean | ArrayLike, bandwidth: float, weights: ArrayLike | None = None) -> float:
    """Return the squared MMD (maximum mean discrepancy) between weighted points and a distribution (FWSS18, Sec. 2.1).

    The kernel matrix is computed in blocks, in memory O(N + M). Rounding can cause tiny negative values.

    Args:
        x: float64[N, d].
        truth: Samples [M, d], or an exact kernel mean.
        bandwidth: Bandwidth of the kernel.
        weights: float64[N], by default 1 / N.

    Raises:
        ValueError: An argument has the wrong shape or is out of range.
    """
    points = as_points(x, "points")
    own, mean, h = SampleMean(points, weights), as_kernel_mean(truth), fixed_bandwidth(bandwidth)  # type: ignore[arg-type]
    return mean.squared_norm(h) - 2 * float(own.weights @ mean.at(points, h)) + own.squared_norm(h)


def effective_sample_size(weights: ArrayLike) -> float:
    """Return the effective sample size of weighted points.

    It is N for N equal weights, and 1 if one point has all the weight.

    The size is ``(sum |w|)^2 / sum w^2``.

    Args:
        weights: float64[N].

    Raises:
        ValueError: All weights are 0, or one is not finite.
    """
    w = np.abs(finite(weights, "`weights`"))
    if not w.sum() > 0:
        raise ValueError("`weights` must not all be 0")
    w = w / w.max()
    return float(w.sum() ** 2 / (w * w).sum())
