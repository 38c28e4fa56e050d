"""Noise models of pictures: the likelihood of an observation given labels, and estimates of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, Int32s, finite
from herdner.base.checks import check_integer, is_number

BLACK_AND_WHITE = (-1.0, 1.0)
_LEAST_SIGMA, _LEAST_P = 1e-3, 1e-6


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise: label k is observed as levels[k] plus sigma times a standard normal number (HG16, eq. 19).

    Attributes:
        sigma: Standard deviation, in the unit of the levels.
        levels: The level of each label, K of them. By default black is -1 and white +1, as in HG16 and HGW19.
    """

    sigma: float
    levels: tuple[float, ...] = BLACK_AND_WHITE

    def __post_init__(self) -> None:
        """Convert the levels to a tuple of floats, and check ``sigma`` and the levels."""
        if not (is_number(self.sigma) and 0 < self.sigma < math.inf):
            raise ValueError(
                f"sigma must be finite and above 0, got {self.sigma}; a picture without noise needs no denoising"
            )
        levels = tuple(float(level) for level in self.levels)
        if len(levels) < 2 or not np.isfinite(levels).all() or len(set(levels)) < len(levels):
            raise ValueError(f"`levels` must be at least two distinct finite numbers, got {self.levels}")
        object.__setattr__(self, "levels", levels)

    def __str__(self) -> str:
        """Return the noise model as a one-line summary."""
        return f"Gaussian noise of sigma {self.sigma:.4g}"

    @property
    def n_labels(self) -> int:
        """Number of pixel labels, K."""
        return len(self.levels)

    def log_likelihood(self, y: Floats) -> Floats:
        """Return, for each pixel and each label, the log-density of the observed value in ``y`` given this label.

        Args:
            y: float64[P].

        Returns:
            float64[P, K], natural logarithms.
        """
        table = np.subtract.outer(y, np.array(self.levels))
        np.square(table, out=table)
        table *= -0.5 / self.sigma**2
        table -= math.log(self.sigma) + 0.5 * math.log(2 * math.pi)
        return table

    def most_likely(self, y: Floats) -> Int32s:
        """Return, for each observation in ``y``, the label whose level is nearest, int32 in the shape of ``y``.

        Args:
            y: Observations, float64 of any shape.

        Returns:
            int32 in the shape of ``y``.
        """
        levels = np.array(self.levels)
        order = np.argsort(levels)
        return order[np.searchsorted((levels[order][1:] + levels[order][:-1]) / 2, y)].astype(np.int32)

    def observe(self, labels: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        """Draw a noisy observation of pixels with the true labels ``labels``.

        Args:
            labels: The true labels.
            rng: Random generator.

        Returns:
            float64 array of the shape of ``labels``, the observed numbers.
        """
        return np.array(self.levels)[labels] + rng.normal(0.0, self.sigma, labels.shape)

    def refit(self, y: Floats, q: Floats, levels_too: bool) -> GaussianNoise:
        """Return the maximum-likelihood noise model, given the observation y and the label probabilities ``q``.

        Args:
            y: float64[P], the observations.
            q: float64[P, K], the probability of each label.
            levels_too: True to also fit the levels.
        """
        levels = np.array(self.levels)
        if levels_too:
            weights = q.sum(axis=0)
            levels = np.where(weights > 0.5, (q * y[:, None]).sum(axis=0) / np.maximum(weights, 0.5), levels)
            levels = levels + 1e-9 * np.arange(len(levels)) * (len(set(levels.tolist())) < len(levels))
        squared = (q * (y[:, None] - levels) ** 2).sum() / len(y)
        return GaussianNoise(max(_LEAST_SIGMA, math.sqrt(squared)), tuple(levels.tolist()))


@dataclass(frozen=True, slots=True)
class FlipNoise:
    """Flip noise: with probability ``p``, the observed label is drawn uniformly from the other labels (HGW19, Sec. 7).

    Attributes:
        p: Probability of a wrong label.
        n_labels: Number of labels, K.
    """

    p: float
    n_labels: int = 2

    def __post_init__(self) -> None:
        """Check the flip probability and the number of labels."""
        if not (is_number(self.p) and 0 < self.p < 1):
            raise ValueError(f"p must be above 0 and below 1, got {self.p}; a picture without noise needs no denoising")
        check_integer(self.n_labels, "n_labels", 2, 2**15)

    def __str__(self) -> str:
        """Return the noise model as a one-line summary."""
        return f"flips with probability {self.p:.4g}"

    @property
    def table(self) -> Floats:
        """Table of log p(observed label | true label), float64[K, K], one row per true label."""
        table = np.full((self.n_labels, self.n_labels), math.log(self.p / (self.n_labels - 1)))
        np.fill_diagonal(table, math.log1p(-self.p))
        return table

    def log_likelihood(self, y: NDArray[np.integer]) -> Floats:
        """Return, for each pixel and each true label, the log-probability of the observed label in ``y``.

        Args:
            y: int[P].

        Returns:
            float64[P, K].
        """
        return self.table.T[y]

    def most_likely(self, y: NDArray[np.integer]) -> Int32s:
        """Return the observed labels as int32, because the observed label is the most likely true label.

        Args:
            y: Observed labels.

        Returns:
            int32 in the shape of ``y``.
        """
        return np.asarray(y, np.int32)

    def observe(self, labels: NDArray[np.integer], rng: np.random.Generator) -> Int32s:
        """Draw a noisy observation of pixels with the true labels ``labels``.

        Args:
            labels: The true labels.
            rng: Random generator.

        Returns:
            int32 array of the shape of ``labels``, the observed labels.
        """
        flipped = labels + rng.integers(1, self.n_labels, labels.shape)
        return np.where(rng.random(labels.shape) < self.p, flipped % self.n_labels, labels).astype(np.int32)

    def refit(self, y: NDArray[np.integer], q: Floats, levels_too: bool) -> FlipNoise:
        """Return the maximum-likelihood noise model, given the observation y and the label probabilities ``q``.

        Args:
            y: int[P], the observations.
            q: float64[P, K], the probability of each label.
            levels_too: Ignored; flip noise has no levels.
        """
        wrong = 1.0 - float(q[np.arange(len(y)), y].mean())
        return replace(self, p=min(max(wrong, _LEAST_P), 1 - 1 / self.n_labels))


Noise = GaussianNoise | FlipNoise
"""A noise model."""


def estimate_gaussian_noise(y: ArrayLike, n_labels: int, levels: tuple[float, ...] | None) -> GaussianNoise:
    """Fit Gaussian noise to a picture by EM for a mixture of normal distributions. Pixels are treated as independent.

    Fewer than 2^17 evenly spaced pixels are used.

    Args:
        y: Observed numbers.
        n_labels: Number of labels, K.
        levels: Fixed levels, or None to fit them, starting at quantiles.

    Returns:
        The noise with its levels and its standard deviation.

    Raises:
        ValueError: The picture is empty or has numbers that are not finite, or ``n_labels`` is below 2.
    """
    check_integer(n_labels, "n_labels", 2)
    values = finite(y, "a picture").ravel()
    if not len(values):
        raise ValueError(f"a picture must have at least one pixel, got shape {np.shape(y)}")
    values = values[:: max(1, len(values) >> 16)]
    if levels is None:
        middle = np.quantile(values, (np.arange(n_labels) + 0.5) / n_labels)
        spread = np.ptp(values) or 1.0
        start = middle + 1e-3 * spread * np.arange(n_labels)
    else:
        start = np.array(levels)
    sigma = max(_LEAST_SIGMA, float(values.std()) / n_labels)
    noise, weights = GaussianNoise(sigma, tuple(start.tolist())), np.full(n_labels, 1.0 / n_labels)
    for _ in range(60):
        logs = noise.log_likelihood(values) + np.log(np.maximum(weights, 1e-300))
        q = np.exp(logs - logs.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        weights = q.mean(axis=0)
        fitted = noise.refit(values, q, levels is None)
        if abs(fitted.sigma - noise.sigma) < 1e-6 * noise.sigma:
            break
        noise = fitted
    return noise


def estimate_flip_noise(y: NDArray[np.integer], n_labels: int) -> FlipNoise:
    """Estimate the flip probability of flip noise from the share of neighbour pairs with two different labels.

    The estimate assumes that neighbours differ only because of noise.

    Args:
        y: int[rows, columns], observed labels.
        n_labels: Number of labels.

    Returns:
        The noise with its flip probability.

    Raises:
        ValueError: ``n_labels`` is below 2.
    """
    check_integer(n_labels, "n_labels", 2)
    pairs = [y[:, 1:] != y[:, :-1], y[1:] != y[:-1]]
    n = sum(part.size for part in pairs)
    differ = sum(int(part.sum()) for part in pairs) / n if n else 0.0
    most = 1 - 1 / n_labels
    p = most * (1 - math.sqrt(max(0.0, 1 - differ / most)))
    return FlipNoise(min(max(p, 0.01), 0.9 * most), n_labels)
