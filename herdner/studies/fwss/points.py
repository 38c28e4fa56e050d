"""Weighted points: what samplers of continuous distributions return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats
from herdner.studies.fwss.kernels import KernelMean, SampleMean, as_kernel_mean, as_points, fixed_bandwidth


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A distribution as N weighted points: samples and particles alike.

    Attributes:
        x: float64[N, d].
        weights: float64[N]: 1 / N for samples; quadrature weights may be negative and need not add up to 1.
        scores: float64[N, d]: the gradients of the log-density at x, where the sampler keeps them.
        history: What the sampler noted, in arrays by name; one entry for each particle or iteration.
        n_gradients: Gradients of single points that were computed (one of a mini-batch counts as one).
        seconds: Wall time.
    """

    x: Floats
    weights: Floats
    scores: Floats | None = None
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    n_gradients: int = 0
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.x)

    def expect(self, f: Callable[[Floats], NDArray[Any]]) -> Floats:
        """The weighted sum of ``f``, which maps points [N, d] to [N] or [N, ..]; a number or an array [..]."""
        values: NDArray[Any] = np.asarray(f(self.x))
        if values.shape[:1] != (len(self),):
            raise ValueError(f"f must return one value or row for each of the {len(self)} points, not {values.shape}")
        return np.tensordot(self.weights, values, axes=1)


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
