"""The RBF kernel k(x, y) = exp(-|x - y|^2 / (2 h^2)), its means under distributions, and rules for its bandwidth h."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int64s, finite

_CELLS = 2**20  # number of elements per block of a Gram matrix; blocks keep the memory O(N)
_MEDIAN_POINTS = 512


class KernelMean(Protocol):
    """Mean mu_p of the kernel k under a distribution p: mu_p(x) is the mean of k(x, y) for y from p.

    MMD and quadrature weights are computed from kernel means.
    """

    def at(self, x: Floats, bandwidth: float) -> Floats:
        """Return the kernel mean at points x: the integral over y of k(x, y) p(y).

        Args:
            x: float64[M, d].
            bandwidth: h.

        Returns:
            float64[M].
        """
        ...

    def squared_norm(self, bandwidth: float) -> float:
        """Return the squared norm of the kernel mean: the double integral of k(x, y) p(x) p(y).

        Args:
            bandwidth: h.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SampleMean:
    """Kernel mean of weighted samples.

    Attributes:
        samples: float64[M, d].
        weights: float64[M], by default 1 / M each.
    """

    samples: Floats
    weights: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Convert the samples and their weights to arrays, and check the shapes."""
        samples = as_points(self.samples, "samples")
        weights = cast("Floats | None", self.weights)
        weights = np.full(len(samples), 1 / len(samples)) if weights is None else finite(weights, "`weights`")
        if weights.shape != (len(samples),):
            raise ValueError(f"`weights` must have shape [{len(samples)}], one per sample, got {weights.shape}")
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "weights", weights)

    def at(self, x: Floats, bandwidth: float) -> Floats:
        """Return the kernel mean of the samples at points; see ``KernelMean.at``.

        Args:
            x: float64[N, d].
            bandwidth: h.

        Returns:
            float64[N], the kernel mean at each point.
        """
        step = max(1, _CELLS // len(self.samples))
        parts = [rbf(x[i : i + step], self.samples, bandwidth) @ self.weights for i in range(0, len(x), step)]
        return np.concatenate([np.empty(0), *parts])

    def squared_norm(self, bandwidth: float) -> float:
        """Return the squared norm of the kernel mean of the samples; see ``KernelMean.squared_norm``.

        Args:
            bandwidth: h.
        """
        return float(self.weights @ self.at(self.samples, bandwidth))


@dataclass(frozen=True, slots=True, eq=False)
class MixtureMean:
    """Exact kernel mean of a Gaussian mixture.

    Attributes:
        weights: float64[C].
        means: float64[C, d].
        covariances: float64[C, d, d].
    """

    weights: Floats
    means: Floats
    covariances: Floats

    def __post_init__(self) -> None:
        """Convert the weights, means and covariances to arrays, and check the shapes."""
        weights, means = finite(self.weights, "`weights`"), as_points(self.means, "means")
        covariances, (n, d) = finite(self.covariances, "`covariances`"), means.shape
        if weights.shape != (n,) or covariances.shape != (n, d, d):
            raise ValueError(
                f"`means` has shape {(n, d)}, so `weights` and `covariances` must have shapes {(n,)} and {(n, d, d)},"
                f" got {weights.shape} and {covariances.shape}"
            )
        for name, values in (("weights", weights), ("means", means), ("covariances", covariances)):
            object.__setattr__(self, name, values)

    def at(self, x: Floats, bandwidth: float) -> Floats:
        """Return the kernel mean of the mixture at points; see ``KernelMean.at``.

        Args:
            x: float64[N, d].
            bandwidth: h.

        Returns:
            float64[N], the kernel mean at each point.
        """
        parts = zip(self.weights, self.means, self.covariances, strict=True)
        return sum((w * _smooth(x - mean, s, bandwidth) for w, mean, s in parts), np.zeros(len(x)))

    def squared_norm(self, bandwidth: float) -> float:
        """Return the squared norm of the kernel mean of the mixture; see ``KernelMean.squared_norm``.

        Args:
            bandwidth: h.
        """
        # The mean of mu_p over component c equals another kernel mean at the centre of c: the kernel mean of the
        # mixture in which the covariance of c is added to every covariance.
        each = [
            MixtureMean(self.weights, self.means, self.covariances + covariance).at(mean[None], bandwidth)[0]
            for mean, covariance in zip(self.means, self.covariances, strict=True)
        ]
        return float(self.weights @ each)


def _smooth(difference: Floats, covariance: Floats, bandwidth: float) -> Floats:
    """Return, for each of M points x, the mean of k(x, y) over y from a normal distribution, float64[M].

    The mean of the distribution is x - ``difference``.
    """
    d = difference.shape[1]
    total = covariance + fixed_bandwidth(bandwidth) ** 2 * np.eye(d)
    distance = (difference * np.linalg.solve(total, difference.T).T).sum(axis=1)
    return np.exp(d * np.log(bandwidth) - np.linalg.slogdet(total)[1] / 2 - distance / 2)


def as_kernel_mean(truth: KernelMean | ArrayLike) -> KernelMean:
    """Convert samples to their kernel mean. A kernel mean is returned unchanged.

    Args:
        truth: A kernel mean, or samples [M, d].

    Returns:
        The kernel mean.
    """
    return truth if hasattr(truth, "squared_norm") else SampleMean(as_points(truth, "samples"))  # type: ignore


def squared_distances(x: Floats, y: Floats) -> Floats:
    """Return the squared distance of each point of x from each point of y, computed from one matrix product.

    The mean of ``y`` is subtracted from all points first, which reduces cancellation.

    Args:
        x: float64[N, d].
        y: float64[M, d].

    Returns:
        float64[N, M].
    """
    middle = y.mean(axis=0)
    x, y = x - middle, y - middle
    result = x @ (-2 * y.T)
    result += (x * x).sum(axis=1)[:, None]
    result += (y * y).sum(axis=1)
    return np.maximum(result, 0, out=result)


def rbf(x: Floats, y: Floats, bandwidth: float) -> Floats:
    """Return the Gaussian (RBF) kernel k(x_i, y_j) between two sets of points.

    Args:
        x: float64[N, d].
        y: float64[M, d].
        bandwidth: h.

    Returns:
        float64[N, M].
    """
    result = squared_distances(x, y)
    result *= -0.5 / fixed_bandwidth(bandwidth) ** 2
    return np.exp(result, out=result)


def gram(x: Floats, bandwidth: float) -> Floats:
    """Return the Gram matrix k(x_i, x_j) of points; its diagonal is exactly 1.

    Args:
        x: float64[N, d].
        bandwidth: h.

    Returns:
        float64[N, N].
    """
    result = rbf(x, x, bandwidth)
    np.fill_diagonal(result, 1)
    return result


def median_bandwidth(x: ArrayLike) -> float:
    """Return the bandwidth of the median heuristic, h = m / sqrt(2 log(N + 1)), where m is the median distance.

    The kernels of a point with the other points then sum to about 1 (Liu and Wang 2016, in the parametrisation of
    FWSS18). Beyond 512 points, 512 evenly spaced points are used. The result is 1 if all points are equal.

    Args:
        x: float64[N, d].
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
    """Check that a bandwidth is a positive number or the name of a rule, and return it.

    Args:
        bandwidth: A number or a name.
        rules: Names of the rules.

    Raises:
        ValueError: ``bandwidth`` is neither a positive number nor the name of a rule.
    """
    if isinstance(bandwidth, str):
        if bandwidth not in rules:
            *most, last = ["a number above 0", *map(repr, rules)]
            raise ValueError(f"`bandwidth` must be {', '.join(most)} or {last}, got {bandwidth!r}")
        return bandwidth
    if not (1e-150 <= bandwidth <= 1e150):  # its square must be a normal double
        limits = "above 0" if not bandwidth > 0 else "from 1e-150 to 1e150"
        raise ValueError(f"`bandwidth` must be {limits}, got {bandwidth}; median_bandwidth(x) computes a bandwidth")
    return float(bandwidth)


def fixed_bandwidth(bandwidth: float) -> float:
    """Check that a bandwidth is a positive number, and return it.

    Args:
        bandwidth: The bandwidth.

    Raises:
        ValueError: ``bandwidth`` is not a positive number.
    """
    if isinstance(bandwidth, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        raise ValueError(f"`bandwidth` must be a number, got {bandwidth!r}; median_bandwidth(x) computes a bandwidth")
    return float(check_bandwidth(bandwidth))


def evenly_spaced(n: int, most: int) -> Int64s:
    """Return at most ``most`` evenly spaced indices of the range 0 to n - 1.

    Args:
        n: Number of elements.
        most: Largest number of indices.

    Returns:
        int64[min(n, most)].
    """
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def as_points(x: ArrayLike, name: str) -> Floats:
    """Convert points to an array with one row for each point.

    Args:
        x: The points.
        name: Name of the points in error messages.

    Returns:
        float64[N, d], the points.

    Raises:
        ValueError: There is no point, the shape is wrong, or a number is not finite.
    """
    points = finite(x, name)
    if points.ndim != 2 or not len(points):
        raise ValueError(f"{name} must have shape [points, dimensions] and at least one point, got {points.shape}")
    return points
