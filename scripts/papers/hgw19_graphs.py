"""The small graphs of HGW19: Boltzmann machines of values -1 and 1 on rings and on complete graphs."""

from __future__ import annotations

import numpy as np

from herdner import FactorGraph, boltzmann_machine


def ring(n: int, couplings: np.ndarray, biases: np.ndarray) -> FactorGraph:
    """Return a ring of n variables, in which each variable i is joined to i + 1 modulo n."""
    return boltzmann_machine(couplings, biases, (-1, 1), edges=[[i, (i + 1) % n] for i in range(n)])


def uniform_ring(rng: np.random.Generator, low: float, high: float, n: int = 8) -> FactorGraph:
    """Return a random ring as in HGW19, Fig. 3, with all parameters uniform in [low, high]."""
    return ring(n, rng.uniform(low, high, n), rng.uniform(low, high, n))


def full_graph(rng: np.random.Generator, low: float, high: float, n: int = 8) -> FactorGraph:
    """Return a random full graph as in HGW19, Fig. 4, with all parameters uniform in [low, high]."""
    weights = np.triu(rng.uniform(low, high, (n, n)), 1)
    return boltzmann_machine(weights + weights.T, rng.uniform(low, high, n), (-1, 1))
