"""Estimates of log Z from the weights of annealed importance sampling in both directions.

A forward run starts at a sample of a reference distribution with known log Z and ends at the graph (Neal 2001). The
mean of the forward weights estimates the ratio of the two partition functions; the logarithm of this mean is too small
on average. A reverse run starts at a sample of the graph; the mean of its inverse weights gives an estimate that is too
large on average (Grosse, Ghahramani and Adams 2015). Bennett's acceptance ratio combines both directions (Bennett
1976). If forward runs can end at impossible states, the reverse estimate is too large even for many runs; Bennett's
estimate is not affected.
"""

from __future__ import annotations

import math

import numpy as np

from herdner.base.arrays import Floats

_RESAMPLES = 400  # bootstrap resamples
_TAIL = 0.025  # probability beyond each end of the interval


def log_mean_exp(values: Floats) -> float:
    """Return the logarithm of the mean of the exponentials of ``values``.

    Args:
        values: float64[N], N >= 1, possibly -inf.
    """
    top = float(values.max())
    return top if top == -math.inf else top + math.log(float(np.exp(values - top).mean()))


def bennett_estimate(forward: Floats, reverse: Floats) -> float:
    """Return the estimate of log Z by Bennett's acceptance ratio, for equal numbers of runs in both directions.

    Args:
        forward: float64[N], log-weights of forward runs; -inf if the run ended at an impossible state.
        reverse: float64[N], negative log-weights of reverse runs, finite.

    Returns:
        The value at which both directions accept equally often; -inf if all of ``forward`` is -inf.
    """
    finite = forward[np.isfinite(forward)]
    if not len(finite):
        return -math.inf
    low = min(float(finite.min()), float(reverse.min())) - math.log(len(forward)) - 40
    high = max(float(finite.max()), float(reverse.max())) + math.log(len(forward)) + 40
    while high - low > 1e-10 * max(1.0, abs(low)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _logistic(finite - middle).sum() > _logistic(middle - reverse).sum():
            low = middle
        else:
            high = middle
    return (low + high) / 2


def importance_interval(forward: Floats, reverse: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return an interval that contains log Z with a probability of about 0.95 or more.

    The interval is the union of the bootstrap intervals of three estimates: forward runs alone, reverse runs alone, and
    Bennett's acceptance ratio. If the weights of the two directions overlap little, the first two intervals are far
    apart.

    Args:
        forward: float64[N], log-weights of forward runs.
        reverse: float64[N], negative log-weights of reverse runs.
        rng: Source of randomness for the bootstrap.

    Returns:
        The lower and the upper end.
    """
    n = len(forward)
    estimates = np.empty((_RESAMPLES, 3))
    for row in estimates:
        f, r = forward[rng.integers(n, size=n)], reverse[rng.integers(n, size=n)]
        row[:] = log_mean_exp(f), -log_mean_exp(-r), bennett_estimate(f, r)
    low = np.quantile(estimates, _TAIL, axis=0, method="lower").min()
    high = np.quantile(estimates, 1 - _TAIL, axis=0, method="higher").max()
    return float(low), float(high)


def _logistic(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))
