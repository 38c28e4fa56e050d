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
from numpy.typing import NDArray

from herdner.base.arrays import Floats

_RESAMPLES = 400  # bootstrap resamples
_TAIL = 0.025  # probability beyond each end of the interval
_BISECTIONS = 1200  # upper limit of halvings; an interval from -1e308 to 1e308 takes about 1060


def log_mean_exp(values: Floats) -> Floats:
    """Return the logarithm of the mean of the exponentials of ``values`` along the last axis.

    Args:
        values: float64[.., N], N >= 1, possibly -inf.

    Returns:
        float64[..], one number for each row of N values.
    """
    top = values.max(axis=-1, keepdims=True)
    top = np.where(top == -math.inf, 0.0, top)
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(np.exp(values - top).mean(axis=-1)) + top[..., 0]


def bennett_estimate(forward: Floats, reverse: Floats) -> Floats:
    """Return the estimate of log Z by Bennett's acceptance ratio, for equal numbers of forward and reverse runs.

    Args:
        forward: float64[.., N], log-weights of forward runs; -inf if the run ended at an impossible state.
        reverse: float64[.., N], negative log-weights of reverse runs, finite.

    Returns:
        float64[..], the value at which both directions accept equally often; -inf where all of ``forward`` is -inf.

    Raises:
        ValueError: The shapes differ, there is no run, ``forward`` has NaN or +inf, or ``reverse`` is not finite.
    """
    forward, reverse = _check_weights(forward, reverse)
    margin = math.log(forward.shape[-1]) + 40
    is_finite: NDArray[np.bool_] = np.isfinite(forward)
    least: Floats = forward.min(axis=-1, where=is_finite, initial=math.inf)
    low: Floats = np.minimum(least, reverse.min(axis=-1)) - margin
    high: Floats = np.maximum(forward.max(axis=-1, initial=-math.inf), reverse.max(axis=-1)) + margin
    with np.errstate(over="ignore"):  # differences of values near 1e308
        for _ in range(_BISECTIONS):
            middle: Floats = low / 2 + high / 2
            is_converged = (high - low <= 1e-10 * np.maximum(1.0, np.abs(low))) | (middle == low) | (middle == high)
            if np.all(is_converged):
                break
            threshold = middle[..., None]
            accepted: Floats = _logistic(forward - threshold).sum(axis=-1)
            is_below: NDArray[np.bool_] = accepted > _logistic(threshold - reverse).sum(axis=-1)
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.where(is_finite.any(axis=-1), low / 2 + high / 2, -math.inf)


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

    Raises:
        ValueError: The shapes differ, there is no run, ``forward`` has NaN or +inf, or ``reverse`` is not finite.
    """
    forward, reverse = _check_weights(forward, reverse)
    if forward.ndim != 1:
        raise ValueError(f"`forward` must have one axis, got shape {forward.shape}")
    n = len(forward)
    f, r = forward[rng.integers(n, size=(_RESAMPLES, n))], reverse[rng.integers(n, size=(_RESAMPLES, n))]
    estimates = np.stack([log_mean_exp(f), -log_mean_exp(-r), bennett_estimate(f, r)], axis=1)
    low = np.quantile(estimates, _TAIL, axis=0, method="lower").min()
    high = np.quantile(estimates, 1 - _TAIL, axis=0, method="higher").max()
    return float(low), float(high)


def _check_weights(forward: Floats, reverse: Floats) -> tuple[Floats, Floats]:
    """Check the log-weights of forward and reverse runs, and return them as float64 arrays."""
    forward, reverse = np.asarray(forward, np.float64), np.asarray(reverse, np.float64)
    if forward.shape != reverse.shape:
        raise ValueError(f"`forward` and `reverse` must have equal shapes, got {forward.shape} and {reverse.shape}")
    if forward.ndim == 0 or forward.size == 0:
        raise ValueError(f"`forward` must hold at least one run, got shape {forward.shape}")
    if not (forward < math.inf).all():
        raise ValueError(f"`forward` must be free of NaN and +inf, got {forward[~(forward < math.inf)][0]}")
    if not np.isfinite(reverse).all():
        raise ValueError(f"`reverse` must be finite, got {reverse[~np.isfinite(reverse)][0]}")
    return forward, reverse


def _logistic(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))
