"""Tools for the regressions of FWSS18: tables in $HERDNER_DATA/uci, random splits, and samplers with a time limit.

The last column of a table is the output to predict.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from herdner.studies.fwss import Adam, NeuralRegression, Points, fwss, svgd

FILES = {
    "naval": "naval-propulsion-plant.txt.gz",
    "protein": "protein-tertiary-structure.txt.gz",
    "kin8nm": "kin8nm.txt.gz",
    "power": "power-plant.txt.gz",
    "boston": "bostonHousing.txt.gz",
}
# Iterations for the mode, particles, moves of each, observations in a mini-batch.
EFFORTS = {"naval": (700, 10, 500, 100), "protein": (500, 10, 500, 200), "year": (60, 10, 500, 500)}


@dataclass(frozen=True)
class Split:
    """Random split of a table: 90 % training rows, up to 500 of them held out for the noise, and 10 % test rows."""

    model: NeuralRegression
    held_back: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    def score(self, points: Points) -> tuple[float, float]:
        """Return test RMSE and log-likelihood, with noise fitted to held-out data as in SVGD's program."""
        fitted = self.model.fit_noise(points.x, *self.held_back)
        return self.model.score(fitted, points.weights, *self.test)


def _path(name: str) -> Path:
    return Path(os.environ.get("HERDNER_DATA") or "../shared/data") / "uci" / FILES[name]


def is_there(name: str) -> bool:
    """Return True if the file of a table exists."""
    return _path(name).exists()


def table(name: str) -> np.ndarray:
    """Return the table of a data set, [rows, inputs + 1]."""
    path = _path(name)
    if not path.exists():
        raise SystemExit(f"{path} is missing; set HERDNER_DATA to the folder with uci/{FILES[name]}")
    return np.loadtxt(path)


def split(data: np.ndarray, seed: int, units: int = 50) -> Split:
    """Return a random split as in FWSS18, Sec. 5."""
    order = np.random.default_rng(seed).permutation(len(data))
    n_learn = int(0.9 * len(data))
    learn, test = data[order[:n_learn]], data[order[n_learn:]]
    n_held = min(500, n_learn // 10)
    held, learn = learn[:n_held], learn[n_held:]
    parts = [(part[:, :-1], part[:, -1]) for part in (learn, held, test)]
    return Split(NeuralRegression(*parts[0], units=units), parts[1], parts[2])


def run_fwss(chosen: Split, mode_steps: int, n: int, n_steps: int, batch_size: int, seed: int) -> Points:
    """Run FWSS with equal weights and mini-batches, starting at the posterior mode."""
    return fwss(
        chosen.model.target, n, step="constant", init="map", mode_steps=mode_steps, n_steps=n_steps,
        optimiser=Adam(1e-3, final=1e-5), batch_size=batch_size, seed=seed,
    )  # fmt: skip


class Deadline(Exception):
    """Signal that the time of a run is over, with the particles ``x`` [N, d] of the run."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x


@dataclass(frozen=True)
class TimedAdam:
    """Adam optimiser with a rate that decreases from ``rate`` to ``final`` over ``seconds`` of wall time."""

    rate: float
    final: float
    seconds: float

    def begin(self, n_steps: int) -> Callable[[np.ndarray], np.ndarray]:
        move, began = Adam(1.0).begin(n_steps), time.perf_counter()

        def timed(direction: np.ndarray) -> np.ndarray:
            part = min(1.0, (time.perf_counter() - began) / self.seconds)
            return self.rate * (self.final / self.rate) ** part * move(direction)

        return timed


def run_svgd(
    chosen: Split, n: int, init: ArrayLike, seconds: float, seed: int, *,
    rates: tuple[float, float] | None = None, watch: Callable[[int, np.ndarray], object] | None = None,
) -> Points:  # fmt: skip
    """Run SVGD for ``seconds`` of wall time, from samples of the "prior" or near one point [1, d].

    The rate of Adam decreases from the first to the second of ``rates``. The function ``watch`` is called with the
    iteration and the particles after each iteration.
    """
    rng, target = np.random.default_rng(seed), chosen.model.target
    rates = rates or ((0.01, 1e-4) if isinstance(init, str) else (1e-3, 1e-5))
    if not isinstance(init, str):
        init = np.asarray(init) + rng.normal(size=(n, target.dim)) * (0.1 / np.sqrt(target.dim))
    began = time.perf_counter()

    def check_time(iteration: int, x: np.ndarray) -> None:
        if watch is not None:
            watch(iteration, x)
        if time.perf_counter() - began > seconds:
            raise Deadline(x)

    try:
        svgd(
            target, n, n_iterations=10**9, init=init, optimiser=TimedAdam(*rates, seconds), batch_size=100,
            seed=rng, watch=check_time,
        )  # fmt: skip
    except Deadline as reached:
        return Points(reached.x, np.full(n, 1 / n), seconds=time.perf_counter() - began)
    raise AssertionError("a run without end has ended")
