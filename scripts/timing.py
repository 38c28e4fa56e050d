"""Timing for the benchmarks: best of several runs, in turn, beside a calibration that any machine can repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


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
