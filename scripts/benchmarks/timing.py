"""Timing for the benchmarks: best of several runs, in turn, beside a calibration that any machine can repeat."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

EXPS = 200_000  # exps of one calibration run


@dataclass(frozen=True)
class Row:
    """One line of a report: nanoseconds for each update or token, and ``value`` that is held against ``target``."""

    group: str
    what: str
    ns: float | None = None
    exps: float | None = None  # ns in units of one libm exp
    recorded_ns: float | None = None  # with the default Record
    setup_seconds: float | None = None
    value: float | None = None
    unit: str = ""
    target: float | None = None
    stretch: float | None = None
    wanted: Literal["at least", "at most"] = "at least"

    @property
    def verdict(self) -> str:
        """met or missed, and whether the stretch target is met too; nothing where there is no target."""
        if self.target is None or self.value is None:
            return ""
        met = self.value >= self.target if self.wanted == "at least" else self.value <= self.target
        far = self.stretch is not None and self.value >= self.stretch
        return "met, and the stretch" if far else "met" if met else "missed"


@dataclass(frozen=True)
class Loop:
    """Something that is done in sweeps of ``per_sweep`` updates, ``sweeps`` of which are timed: ``run(sweeps)``."""

    run: Callable[[int], object]
    per_sweep: int
    sweeps: int


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


def update_times(loops: Mapping[str, Loop], repeats: int) -> tuple[dict[str, float], float]:
    """Nanoseconds for each update of each loop, and those of one libm exp, all in turn.

    A long run less a run of one sweep, so that what a run does once is not counted.
    """
    candidates: dict[str, Callable[[], object]] = dict(_calibration_runs())
    for name, loop in loops.items():
        candidates[f"{name}, short"] = lambda loop=loop: loop.run(1)
        candidates[f"{name}, long"] = lambda loop=loop: loop.run(1 + loop.sweeps)
    best = best_times(candidates, repeats)
    ns = {
        name: 1e9 * (best[f"{name}, long"] - best[f"{name}, short"]) / (loop.sweeps * loop.per_sweep)
        for name, loop in loops.items()
    }
    return ns, 1e9 * (best["exp"] - best["fabs"]) / EXPS


def calibration(repeats: int = 31) -> float:
    """Nanoseconds of one libm exp: what mapping it over numbers takes longer than mapping fabs."""
    best = best_times(_calibration_runs(), repeats)
    return 1e9 * (best["exp"] - best["fabs"]) / EXPS


def _calibration_runs() -> dict[str, Callable[[], object]]:
    numbers = np.random.default_rng(0).uniform(-30.0, 0.0, EXPS).tolist()
    return {
        "exp": lambda: deque(map(math.exp, numbers), maxlen=0),
        "fabs": lambda: deque(map(math.fabs, numbers), maxlen=0),
    }
