"""Training of a chain's weights by maximum likelihood, from features that are 64-bit keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdner.base.arrays import Floats
from herdner.crf.chain_data import ChainData
from herdner.crf.likelihood import Borders, ChainLikelihood

Progress = Callable[[int, dict[str, Any]], None]
"""Called after each iteration with its number and a report ("loss", ...)."""

_MEMORY = 6  # pairs of differences that L-BFGS keeps
# Of the scales of the weights; bench_trainer.py shows what they are worth: set the power to 0 and compare iterations.
_FREQUENCY_POWER, _FREQUENCY_SHARE = 0.2, 0.1


@dataclass(frozen=True)
class Stop:
    """When training ends: after ``max_iterations``, or when ``period`` iterations have lowered the loss by less than
    ``delta`` of it.
    """

    max_iterations: int = 80
    delta: float = 5e-3
    period: int = 5


class _Enough(Exception):
    """The loss falls too slowly."""


def train_chain(
    data: ChainData,
    *,
    c2: float | Floats = 0.3,
    stop: Stop | None = None,
    start: Floats | None = None,
    origin: Floats | None = None,
    document_weights: Floats | None = None,
    borders: Borders | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Floats:
    """The weights float64[data.n_features + transitions] of the largest penalised likelihood (`ChainLikelihood`), by
    L-BFGS (Liu and Nocedal 1989; SciPy's).

    The weights of frequent features are searched in smaller steps: each is scaled by its frequency to the power of
    -1/5, which saves iterations and does not move the optimum.

    Args:
        start: Where to begin; None is ``origin``, or 0.
    """
    # Late, as everywhere: a tagger that only tags does without SciPy, which takes half a second.
    from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    likelihood = ChainLikelihood(
        data, c2, origin=origin, document_weights=document_weights, borders=borders, n_threads=n_threads
    )
    scales = _scales(data, likelihood.penalty)
    first = likelihood.origin if start is None else start
    watch = _Watch(stop or Stop(), first, scales, progress)

    def value_and_slope(scaled: Floats) -> tuple[float, Floats]:
        value, slope = likelihood(scaled * scales)
        return value, slope * scales

    options = {"maxiter": watch.stop.max_iterations, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 1e-7, "maxfun": 10**9}
    # Its own loops are two threads already; BLAS would start as many, and on a busy machine all wait for each other.
    with suppress(_Enough), threadpool_limits(1, "blas"):
        minimize(value_and_slope, first / scales, jac=True, method="L-BFGS-B", callback=watch.take, options=options)
    return watch.vector


class _Watch:
    """Keeps the last vector, reports, and ends the search when the loss falls too slowly."""

    def __init__(self, stop: Stop, first: Floats, scales: Floats, progress: Progress | None) -> None:
        self.stop, self.scales, self.progress = stop, scales, progress
        self.vector: Floats = first
        self.losses: list[float] = []

    def take(self, intermediate_result: Any) -> None:
        """After an iteration; the argument has the name that SciPy asks for."""
        self.vector = intermediate_result.x * self.scales
        self.losses.append(float(intermediate_result.fun))
        if self.progress is not None:
            self.progress(len(self.losses), {"loss": self.losses[-1]})
        past = self.losses[-self.stop.period - 1 :]
        if len(past) > self.stop.period and past[0] - past[-1] < self.stop.delta * abs(past[-1]):
            raise _Enough


def _scales(data: ChainData, penalty: Floats) -> Floats:
    """Float64[weights]: by what each weight is multiplied; about the curvature to the power of -1/5."""
    columns, _ = data.entries
    pairs = np.ones(int(data.transitions.sum()))
    sizes, counts = np.append(data.sizes[columns], pairs), np.append(data.occurrences[columns], data.n_tokens * pairs)
    return np.sqrt(sizes) * (_FREQUENCY_SHARE * sizes * counts + 2 * penalty * sizes + 1e-3) ** -_FREQUENCY_POWER
