"""Herding over a finite set: sample moments approach target moments like 1 / T (HG16, eq. 1, 2; HGW19, Sec. 2.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import herding as loops
from herdner.base.arrays import Floats, Int64s, finite
from herdner.base.checks import check_integer
from herdner.base.representation import short_repr
from herdner.base.seeds import Seed, generator

_OPERATIONS = 2**26  # number of operations per call of a compiled loop, so that Ctrl-C can interrupt


@dataclass(frozen=True, slots=True, eq=False)
class HerdingResult:
    """Samples of a herding run, with the herding weights after the last sample.

    The moments of T samples minus the target moments are (initial weights - final weights) / T.

    Attributes:
        samples: int64[T], index of the point or state of each sample, in order.
        weights: float64[d], the weights after the last sample.
    """

    samples: Int64s
    weights: Floats

    __repr__ = short_repr


def herd(
    features: ArrayLike, moments: ArrayLike, n_samples: int, weights: ArrayLike | None = None, seed: Seed = None
) -> HerdingResult:
    """Herd samples from a finite set of points: choose points whose mean features approach ``moments``.

    Each sample x is a point that maximises <weights, features[x]>; then the weights become weights + moments -
    features[x]. Among equal maxima, the first point is taken. If the moments lie in the convex hull of the features,
    the weights stay bounded and the error is O(1 / T). Otherwise no samples have these moments: the weights grow
    without bound, and the means approach the point of the hull that is nearest to the moments. The time is O(n_samples
    n d).

    Args:
        features: float64[n, d], the features of the n points.
        moments: float64[d], the target means of the features.
        n_samples: Number of samples, T.
        weights: float64[d], the initial weights, such as the final weights of another run. By default the moments or,
            with a ``seed``, the moments minus the features of a random point.
        seed: Random seed or generator of the initial weights.

    Returns:
        The samples as indices of points, and the final weights.

    Raises:
        ValueError: Shapes do not fit, or a number is not finite.
    """
    points = finite(features, "features")
    if points.ndim != 2 or not points.size:
        raise ValueError(f"`features` must have shape [points, features] and not be empty, got {points.shape}")
    target = _row(moments, points.shape[1], "moments")
    if weights is not None:
        state = _row(weights, points.shape[1], "weights").copy()
    elif seed is not None:
        state = target - points[generator(seed).integers(len(points))]
    else:
        state = target.copy()
    samples = _fill_samples(n_samples, points.size, lambda piece: loops.herd(points, target, state, piece))
    return HerdingResult(samples, state)


def herd_categorical(
    p: ArrayLike, n_samples: int, weights: ArrayLike | None = None, seed: Seed = None
) -> HerdingResult:
    """Herd samples of one categorical distribution with probabilities ``p`` (HGW19, Algorithm 3).

    The features are indicators of the states. From the default initial weights, the count of each state is within K - 1
    of T p; for K = 2 it is within 1 (HG16, Lemma 1). The same holds for random initial weights and for the final
    weights of another run. States of probability 0 never occur. Probabilities are rounded to multiples of 2^-(53 - bits
    of K), about 1e-15, so that the weights are exact.

    Args:
        p: float64[K], the probabilities.
        n_samples: Number of samples, T.
        weights: float64[K], the initial weights, such as the final weights of another run. The default is p.
        seed: Random seed or generator of initial weights from the set that herding never leaves. For K = 2, the first
            sample then has the distribution p.

    Returns:
        The samples as states, and the final weights.

    Raises:
        ValueError: ``p`` is no distribution, or an argument is out of range.
    """
    target = finite(p, "p")
    if target.ndim != 1 or not target.size or (target < 0).any() or abs(target.sum() - 1) > 1e-9:
        raise ValueError(f"`p` must be non-negative with sum 1, got {target.tolist()!s:.80}")
    n_states = len(target)
    unit = 1 << (53 - n_states.bit_length())
    shares = np.rint(target * unit).astype(np.int64)
    shares[shares.argmax()] += unit - shares.sum()
    if weights is not None:
        start = _row(weights, n_states, "weights")
        if np.abs(start).max() > n_states:
            raise ValueError(f"`weights` must be between -{n_states} and {n_states}, got {start.tolist()}")
        state = np.rint(start * unit).astype(np.int64)
    else:
        state = shares.copy() if seed is None else _random_weights(shares, unit, generator(seed))
    samples = _fill_samples(n_samples, n_states, lambda piece: loops.herd_categorical(shares, unit, state, piece))
    return HerdingResult(samples, state / unit)


def _random_weights(shares: Int64s, unit: int, rng: np.random.Generator) -> Int64s:
    """Draw initial herding weights w uniformly from the set {w >= p - 1, sum of w = 0}.

    States of probability 0 get weight 0.
    """
    possible = np.flatnonzero(shares)
    above = np.rint((len(possible) - 1) * unit * rng.dirichlet(np.ones(len(possible)))).astype(np.int64)
    weights = np.zeros_like(shares)
    weights[possible] = shares[possible] - unit + above
    weights[possible[above.argmax()]] -= weights.sum()
    return weights


def _fill_samples(n_samples: int, cost: int, fill: Callable[[Int64s], None]) -> Int64s:
    """Fill the array of samples part by part, so that Ctrl-C can interrupt the run."""
    samples = np.empty(check_integer(n_samples, "n_samples", 0), np.int64)
    step = max(1, _OPERATIONS // cost)
    for first in range(0, n_samples, step):
        fill(samples[first : first + step])
    return samples


def _row(values: ArrayLike, n: int, name: str) -> Floats:
    """Convert ``values`` to float64[n]; raise `ValueError` if they have another shape."""
    array = finite(values, name)
    if array.shape != (n,):
        raise ValueError(f"`{name}` must have shape [{n}], got {array.shape}")
    return array
