"""The RBF kernel k(x, y) = exp(-|x - y|^2 / (2 h^2)), its means under distributions, and rules for its bandwidth h."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int64s, finite

_CELLS = 2**20  # of a block of a Gram matrix, so that memory stays O(N)
_MEDIAN_POINTS = 512


class KernelMean(Protocol):
    """mu_p, the mean of the kernel under a distribution p: what MMD and the quadrature weights are made of."""

    def at(self, x: Floats, bandwidth: float) -> Floats:
        """[M]: the integral of k(x, y) p(y) dy at points [M, d]."""
        ...

    def squared_norm(self, bandwidth: float) -> float:
        """The double integral of k(x, y) p(x) p(y) dx dy."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SampleMean:
    """The kernel mean of ``samples`` [M, d] with ``weights`` [M], by default 1 / M each."""

    samples: Floats
    weights: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        samples = as_points(self.samples, "samples")
        given = cast("Floats | None", self.weights)
        weights = np.full(len(samples), 1 / len(samples)) if given is None else np.asarray(given, float)
        if weights.shape != (len(samples),):
            raise ValueError(f"weights must list one number for each of the {len(samples)} samples")
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "weights", weights)

    def at(self, x: Floats, bandwidth: float) -> Floats:
        step = max(1, _CELLS // len(self.samples))
        parts = [rbf(x[i : i + step], self.samples, bandwidth) @ self.weights for i in range(0, len(x), step)]
        return np.concatenate([np.empty(0), *parts])

    def squared_norm(self, bandwidth: float) -> float:
        return float(self.weights @ self.at(self.samples, bandwidth))


@dataclass(frozen=True, slots=True, eq=False)
class MixtureMean:
    """The exact kernel mean of a Gaussian mixture: ``weights`` [C], ``means`` [C, d], ``covariances`` [C, d, d]."""

    weights: Floats
    means: Floats
    covariances: Floats

    def at(self, x: Floats, bandwidth: float) -> Floats:
        parts = zip(self.weights, self.means, self.covariances, strict=True)
        return sum((w * _smoothed(x - mean, s, bandwidth) for w, mean, s in parts), np.zeros(len(x)))

    def squared_norm(self, bandwidth: float) -> float:
        # Given y from component c, the mean at y is that of a mixture whose covariances have grown by c's.
        each = [
            MixtureMean(self.weights, self.means, self.covariances + covariance).at(mean[None], bandwidth)[0]
            for mean, covariance in zip(self.means, self.covariances, strict=True)
        ]
        return float(self.weights @ each)


def _smoothed(difference: Floats, covariance: Floats, bandwidth: float) -> Floats:
    """[M]: the integral of k(x, y) N(y; x - difference, covariance) dy."""
    d = difference.shape[1]
    whole = covariance + bandwidth**2 * np.eye(d)
    distance = (difference * np.linalg.solve(whole, difference.T).T).sum(axis=1)
    return np.exp(d * np.log(bandwidth) - np.linalg.slogdet(whole)[1] / 2 - distance / 2)


def as_kernel_mean(truth: KernelMean | ArrayLike) -> KernelMean:
    """A kernel mean, or that of samples [M, d]."""
    return truth if hasattr(truth, "squared_norm") else SampleMean(as_points(truth, "samples"))  # type: ignore


def squared_distances(x: Floats, y: Floats) -> Floats:
    """[N, M], by one matrix product. Points are moved to the middle of ``y`` first, so that little cancels."""
    middle = y.mean(axis=0)
    x, y = x - middle, y - middle
    found = x @ (-2 * y.T)
    found += (x * x).sum(axis=1)[:, None]
    found += (y * y).sum(axis=1)
    return np.maximum(found, 0, out=found)


def rbf(x: Floats, y: Floats, bandwidth: float) -> Floats:
    """[N, M]: the kernel between points [N, d] and [M, d]."""
    found = squared_distances(x, y)
    found *= -0.5 / bandwidth**2
    return np.exp(found, out=found)


def gram(x: Floats, bandwidth: float) -> Floats:
    """[N, N]: the Gram matrix of points, with exact ones on its diagonal."""
    found = rbf(x, x, bandwidth)
    np.fill_diagonal(found, 1)
    return found


def median_bandwidth(x: ArrayLike) -> float:
    """The median trick: h^2 = med^2 / (2 log(N + 1)), med the median distance, so that a row of the Gram matrix has
    about one neighbour's worth of weight (Liu and Wang 2016, in FWSS18's parametrisation).

    Beyond 512 points the median is that of 512 of them, evenly spaced. 1 where fewer than two points differ.
    """
    points = as_points(x, "points")
    n = len(points)
    points = points[evenly_spaced(n, _MEDIAN_POINTS)]
    distances = squared_distances(points, points)[np.triu_indices(len(points), 1)]
    middle = float(np.median(distances)) if distances.size else 0.0
    if middle <= 0:
        positive = distances[distances > 0]
        return float(np.sqrt(positive.mean() / 2)) if positive.size else 1.0
    return float(np.sqrt(middle / (2 * np.log(n + 1))))


def check_bandwidth(bandwidth: float | str, rules: Sequence[str] = ("median", "ksd")) -> float | str:
    """A positive number or the name of one of the ``rules``; ValueError otherwise."""
    if isinstance(bandwidth, str):
        if bandwidth not in rules:
            *most, last = ["a number above 0", *map(repr, rules)]
            raise ValueError(f"bandwidth must be {', '.join(most)} or {last}, not {bandwidth!r}")
        return bandwidth
    if not np.isfinite(bandwidth) or bandwidth <= 0:
        raise ValueError(f"bandwidth must be a number above 0, not {bandwidth}; median_bandwidth(x) finds one")
    return float(bandwidth)


def fixed_bandwidth(bandwidth: float) -> float:
    """A positive number; ValueError otherwise, for the name of a rule too."""
    if isinstance(bandwidth, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public door
        raise ValueError(f"bandwidth must be a number here, not {bandwidth!r}; median_bandwidth(x) finds one")
    return float(check_bandwidth(bandwidth))


def evenly_spaced(n: int, most: int) -> Int64s:
    """The places among n of at most so many of them, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def as_points(x: ArrayLike, name: str) -> Floats:
    """[N, d], N at least 1, finite; ValueError otherwise."""
    points = finite(x, name)
    if points.ndim != 2 or not len(points):
        raise ValueError(f"{name} must have shape [points, dimensions], with one point at least, not {points.shape}")
    return points
