"""Herding over a finite set: samples whose moments approach given ones as 1 / T (HG16 eq. 1 and 2, HGW19 Sec. 2.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import herding as loops
from herdner.base.arrays import Floats, Int64s, finite
from herdner.base.seeds import Seed, generator

_OPERATIONS = 2**26  # of a loop at a time, so that Ctrl-C is answered


@dataclass(frozen=True, slots=True, eq=False)
class HerdingResult:
    """``samples`` int64[T], the points (or labels) in the order they came; ``weights`` float64[d] after the last.

    The moments of the samples miss the wanted ones by (weights - weights at the start) / T.
    """

    samples: Int64s
    weights: Floats


def herd(
    features: ArrayLike, moments: ArrayLike, n_samples: int, weights: ArrayLike | None = None, seed: Seed = None
) -> HerdingResult:
    """Herding with any feature map: sample x maximises <weights, features[x]>, then weights += moments - features[x].

    Where the moments lie in the convex hull of the features the weights stay bounded, and the error is O(1 / T).
    Outside of it no samples have these moments: the weights then grow without limit, by the distance to the hull with
    each sample, and the means approach the nearest point of the hull. Time O(n_samples n d).

    Ties go to the first point. The weights returned continue the run where it ended.

    Args:
        features: [n, d], those of the n points.
        moments: [d], the means that the features of the samples shall have.
        weights: [d] at the start, by default the moments or, with a ``seed``, the moments less the features of a random
            point.

    Raises:
        ValueError: Shapes do not fit, or numbers are not finite.
    """
    points = finite(features, "features")
    if points.ndim != 2 or not points.size:
        raise ValueError(f"features must have shape [points, features], neither of them 0, not {points.shape}")
    wanted = _row(moments, points.shape[1], "moments")
    if weights is not None:
        state = _row(weights, points.shape[1], "weights").copy()
    elif seed is not None:
        state = wanted - points[generator(seed).integers(len(points))]
    else:
        state = wanted.copy()
    samples = _in_pieces(n_samples, points.size, lambda piece: loops.herd(points, wanted, state, piece))
    return HerdingResult(samples, state)


def herd_categorical(
    p: ArrayLike, n_samples: int, weights: ArrayLike | None = None, seed: Seed = None
) -> HerdingResult:
    """Herding for one categorical distribution ``p`` [K], HGW19 Algorithm 3: the features are indicators of the labels.

    Each label's count is within K - 1 of T p, for K = 2 within 1 (HG16 Lemma 1), from the default start, which is p,
    from a random one in the set that herding stays in (``seed``; for K = 2 the first label then has the probabilities
    p), or from the ``weights`` [K] that another run ended with. Labels of probability 0 are never chosen. Probabilities
    are rounded to multiples of 2^-(53 - the bits of K), about 1e-15, so that the weights are exact.

    Raises:
        ValueError: ``p`` is no distribution.
    """
    wanted = finite(p, "p")
    if wanted.ndim != 1 or not wanted.size or (wanted < 0).any() or abs(wanted.sum() - 1) > 1e-9:
        raise ValueError("p must list probabilities of at least 0 that add up to 1; divide it by its sum")
    n_labels = len(wanted)
    whole = 1 << (53 - n_labels.bit_length())
    parts = np.rint(wanted * whole).astype(np.int64)
    parts[parts.argmax()] += whole - parts.sum()
    if weights is not None:
        start = _row(weights, n_labels, "weights")
        if np.abs(start).max() > n_labels:
            raise ValueError(f"weights must be between -1 and {n_labels - 1}, as a run ends with, not {start.tolist()}")
        state = np.rint(start * whole).astype(np.int64)
    else:
        state = parts.copy() if seed is None else _random_weights(parts, whole, generator(seed))
    samples = _in_pieces(n_samples, n_labels, lambda piece: loops.herd_categorical(parts, whole, state, piece))
    return HerdingResult(samples, state / whole)


def _random_weights(parts: Int64s, whole: int, rng: np.random.Generator) -> Int64s:
    """Uniform on the simplex {w >= p - 1, sum of w = 0} of the possible labels, which herding never leaves."""
    possible = np.flatnonzero(parts)
    above = np.rint((len(possible) - 1) * whole * rng.dirichlet(np.ones(len(possible)))).astype(np.int64)
    weights = np.zeros_like(parts)
    weights[possible] = parts[possible] - whole + above
    weights[possible[above.argmax()]] -= weights.sum()
    return weights


def _in_pieces(n_samples: int, cost: int, fill: Callable[[Int64s], None]) -> Int64s:
    if n_samples < 0:
        raise ValueError(f"n_samples must be at least 0, not {n_samples}")
    samples = np.empty(n_samples, np.int64)
    step = max(1, _OPERATIONS // cost)
    for first in range(0, n_samples, step):
        fill(samples[first : first + step])
    return samples


def _row(values: ArrayLike, n: int, name: str) -> Floats:
    array = finite(values, name)
    if array.shape != (n,):
        raise ValueError(f"{name} must list {n} numbers, not have shape {array.shape}")
    return array
