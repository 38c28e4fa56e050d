"""The exact error of Gibbs sampling on small graphs, from its transition matrix: what tests may tolerate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from oracle import Oracle


@dataclass
class Sweeps:
    """A Markov chain whose step is a whole sweep. ``kernel`` [S, S] over the states of an `Oracle` that are possible,
    ``target`` [S] its stationary distribution, ``states`` [S, V].
    """

    kernel: np.ndarray
    target: np.ndarray
    states: np.ndarray

    @classmethod
    def of(cls, oracle: Oracle, order=None, first: int = 0) -> Sweeps:
        """Return the kernel of the updates ``order``, rotated to begin at update ``first``; None is all in turn."""
        sites = Sites(oracle)
        order = list(range(len(oracle.sizes)) if order is None else order)
        kernel = np.eye(len(sites.target))
        for i in reversed(order[first:] + order[:first]):
            kernel = sites.updated(i, kernel)
        return cls(kernel, sites.target, sites.states)

    @classmethod
    def random(cls, oracle: Oracle) -> Sweeps:
        """Return the kernel of V updates of variables that are drawn at random."""
        sites, n = Sites(oracle), len(oracle.sizes)
        one = sum(sites.updated(i, np.eye(len(sites.target))) for i in range(n)) / n
        return cls(np.linalg.matrix_power(one, n), sites.target, sites.states)

    def tolerance(self, features: np.ndarray, n_sweeps: int, sigmas: float = 6.0) -> np.ndarray:
        """How far averages of ``features`` [S, M] over so many sweeps may be from their means: some standard deviations
        of the central limit theorem, and the bias of the worst first state.
        """
        return _tolerance(*self.spread(features), n_sweeps, sigmas)

    def joint_tolerance(self, n_sweeps: int, sigmas: float = 6.0) -> np.ndarray:
        """The same of the frequencies of the states [S], rare ones of which are Poisson."""
        return _tolerance(*self.joint_spread, n_sweeps, sigmas) + 10 / n_sweeps

    def spread(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Asymptotic standard deviations and largest biases, by Poisson's equation."""
        centred = features - self.target @ features
        solved = self.fundamental @ centred
        variance = self.target @ (2 * centred * solved - centred**2)
        return np.sqrt(np.maximum(variance, 0)), 2 * np.abs(solved).max(axis=0)

    @cached_property
    def joint_spread(self) -> tuple[np.ndarray, np.ndarray]:
        return self.spread(np.eye(len(self.target)))

    @cached_property
    def fundamental(self) -> np.ndarray:
        return np.linalg.inv(np.eye(len(self.target)) - self.kernel + self.target)


def _tolerance(deviation: np.ndarray, bias: np.ndarray, n_sweeps: int, sigmas: float) -> np.ndarray:
    return sigmas * deviation / np.sqrt(n_sweeps) + bias / n_sweeps + 1e-9


class Sites:
    """The updates of single variables; ``conditionals[i]`` [S, K_i]."""

    def __init__(self, oracle: Oracle) -> None:
        possible = oracle.probabilities > 0
        self.states, self.target = oracle.states[possible], oracle.probabilities[possible]
        number = np.full(len(possible), -1)
        number[possible] = np.arange(possible.sum())
        places = np.cumprod([1, *oracle.sizes[:0:-1]])[::-1]
        self.moves, self.conditionals = [], []
        for i, size in enumerate(oracle.sizes):
            shifts = (np.arange(size) - self.states[:, i : i + 1]) * places[i]
            moves = number[np.flatnonzero(possible)[:, None] + shifts]
            weights = np.where(moves >= 0, self.target[moves], 0.0)
            self.moves.append(np.maximum(moves, 0))
            self.conditionals.append(weights / weights.sum(axis=1, keepdims=True))

    def updated(self, i: int, matrix: np.ndarray) -> np.ndarray:
        """The kernel of variable i's update times ``matrix`` [S, M]."""
        parts = zip(self.moves[i].T, self.conditionals[i].T, strict=True)
        return sum((p[:, None] * matrix[to] for to, p in parts), np.zeros(matrix.shape))


def indicators(states: np.ndarray, sizes) -> list[np.ndarray]:
    """For each variable the features [x = label], [S, K_i]."""
    return [(states[:, i, None] == np.arange(size)).astype(float) for i, size in enumerate(sizes)]
