"""Regression data for the experiments of FWSS18: tables whose last column is the target, in $HERDNER_DATA/uci."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from herdner.fwss import NeuralRegression, Points

FILES = {
    "naval": "naval-propulsion-plant.txt.gz",
    "protein": "protein-tertiary-structure.txt.gz",
    "kin8nm": "kin8nm.txt.gz",
    "power": "power-plant.txt.gz",
    "boston": "bostonHousing.txt.gz",
}


@dataclass(frozen=True)
class Split:
    """Inputs and outputs: 90 % to learn from, of which up to 500 are held back for the noise, and 10 % to test."""

    model: NeuralRegression
    held_back: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    def score(self, points: Points) -> tuple[float, float]:
        """(test RMSE, test log-likelihood), the noise fitted to what was held back as in the program of SVGD."""
        fitted = self.model.with_noise_fitted(points.x, *self.held_back)
        return self.model.score(fitted, points.weights, *self.test)


def _path(name: str) -> Path:
    return Path(os.environ.get("HERDNER_DATA") or "../shared/data") / "uci" / FILES[name]


def is_there(name: str) -> bool:
    """Whether the table can be read."""
    return _path(name).exists()


def table(name: str) -> np.ndarray:
    """The whole table [N, D + 1]."""
    path = _path(name)
    if not path.exists():
        raise SystemExit(f"needs {path}: set HERDNER_DATA to the folder that holds uci/{FILES[name]}")
    return np.loadtxt(path)


def split(data: np.ndarray, seed: int, units: int = 50) -> Split:
    """A random split, as FWSS18 Sec. 5 makes them."""
    order = np.random.default_rng(seed).permutation(len(data))
    n_learn = int(0.9 * len(data))
    learn, test = data[order[:n_learn]], data[order[n_learn:]]
    n_held = min(500, n_learn // 10)
    held, learn = learn[:n_held], learn[n_held:]
    parts = [(part[:, :-1], part[:, -1]) for part in (learn, held, test)]
    return Split(NeuralRegression(*parts[0], units=units), parts[1], parts[2])
