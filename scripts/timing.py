"""Timing for the benchmarks: best of several runs, in turn, beside a calibration that any machine can repeat."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np


def best_times(candidates: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Shortest of ``repeats`` runs of each, in seconds; the candidates take turns, so that a slow spell hits all of
    them.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(repeats):
        for name, run in candidates.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def calibration(n: int = 200_000, repeats: int = 7) -> float:
    """Nanoseconds of one libm exp: what mapping it over n numbers takes longer than mapping fabs."""
    numbers = np.random.default_rng(0).uniform(-30.0, 0.0, n).tolist()
    times = best_times(
        {
            "exp": lambda: deque(map(math.exp, numbers), maxlen=0),
            "fabs": lambda: deque(map(math.fabs, numbers), maxlen=0),
        },
        repeats,
    )
    return 1e9 * (times["exp"] - times["fabs"]) / n
