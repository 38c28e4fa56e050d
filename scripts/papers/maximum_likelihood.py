"""MCMC maximum likelihood of binary Markov random fields with certified gradients (DoGS17, Sec. 5.3, after Domke 2015).

The model is log p(x) = sum of theta_ij x_i x_j over edges + sum of theta_i x_i - log Z, with x_i = -1 or +1. The
gradient of its log-likelihood is the mean of x_i x_j and x_i in the data minus their mean under the model. Many
independent runs of a Gibbs sampler estimate the mean under the model. The scan guarantees that each run is within total
variation epsilon of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from herdner import Gibbs, Record, TableGraph, boltzmann_machine, compile_tables
from herdner.base.seeds import Seed
from herdner.dobrushin import Influence, ScanSteps, binary_pairwise_bound, optimise_scan, shortest_scan, variation_curve
from herdner.graph.scan import fixed_scan, random_scan, systematic_scan

_NOTHING = Record(best=False, marginals=False)
_SHRINKING = 60  # halvings of the factor that couplings are shrunk by
EPSILON, MOST_STEPS, MOST_INFLUENCE = 0.01, 2**16, 0.95
ScanName = Literal["uniform", "systematic", "dogs"]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Result of `fit_binary`.

    Attributes:
        path: Parameters before each step and at the end, couplings first, float64[n_gradients + 1, E + V].
        n_steps: Number of updates of one run for each gradient, int64[n_gradients].
        bounds: Guarantee of the runs for each gradient, float64[n_gradients].
        seconds: Seconds from the start to each gradient, float64[n_gradients].
    """

    path: NDArray[np.float64]
    n_steps: NDArray[np.int64]
    bounds: NDArray[np.float64]
    seconds: NDArray[np.float64]


def fit_binary(
    edges: NDArray[np.int32],
    products: NDArray[np.float64],
    means: NDArray[np.float64],
    scan: ScanName,
    seed: Seed = None,
    *,
    n_gradients: int = 30,
    n_runs: int = 1000,
    step_size: float = 0.3,
) -> Fit:
    """Fit a model by gradient ascent, and recompute the bound of influences for each gradient.

    ``edges`` [E, 2]; ``products`` [E] and ``means`` [V] are the means of x_i x_j and of x_i in the data, within -1 to
    1. ``scan`` is ``uniform``, ``systematic``, or ``dogs``, the result of Algorithm 2 on the uniform scan. Each scan is
    long enough for a Dobrushin variation of EPSILON for the whole state, with at most MOST_STEPS steps. A gradient
    averages ``n_runs`` independent runs from uniformly random states. If the total influence of the couplings is above
    MOST_INFLUENCE (infinity norm), all couplings are multiplied by a factor, so that scans converge; Domke 2015
    projects the couplings instead.
    """
    began, rng = perf_counter(), np.random.default_rng(seed)
    data, n = np.concatenate([products, means]), len(means)
    theta, influence = _shrunk(np.zeros(len(data)), edges, n)
    path, n_steps, bounds, seconds = [theta], [], [], []
    for _ in range(n_gradients):
        steps, bound = _steps(influence, scan)
        expected = _expectations(theta, edges, n, steps, n_runs, rng)
        theta, influence = _shrunk(theta + step_size * (data - expected), edges, n)
        path.append(theta)
        n_steps.append(len(steps[0]) + steps[1])
        bounds.append(bound)
        seconds.append(perf_counter() - began)
    return Fit(np.array(path), np.array(n_steps, np.int64), np.array(bounds), np.array(seconds))


def _shrunk(theta: NDArray[np.float64], edges: NDArray[np.int32], n: int) -> tuple[NDArray[np.float64], Influence]:
    """Return parameters with couplings reduced to a total influence of at most MOST_INFLUENCE, and the influence."""

    def influence(factor: float) -> Influence:
        return binary_pairwise_bound(_graph(np.concatenate([factor * couplings, fields]), edges, n))

    couplings, fields = theta[: len(edges)], theta[len(edges) :]
    whole = influence(1.0)
    if whole.total_rows() <= MOST_INFLUENCE:
        return theta, whole
    low, high = 0.0, 1.0
    for _ in range(_SHRINKING):
        middle = (low + high) / 2
        low, high = (middle, high) if influence(middle).total_rows() <= MOST_INFLUENCE else (low, middle)
    return np.concatenate([low * couplings, fields]), influence(low)


def _graph(theta: NDArray[np.float64], edges: NDArray[np.int32], n: int) -> TableGraph:
    return compile_tables(boltzmann_machine(theta[: len(edges)], theta[len(edges) :], (-1, 1), edges))


def _steps(influence: Influence, scan: ScanName) -> tuple[tuple[NDArray[np.int32], int], float]:
    """Return the order of updates of a run, the number of random updates before it, and the run's guarantee."""
    if scan == "dogs":
        found = shortest_scan(influence, EPSILON, random_scan(), None, MOST_STEPS, refine=True)
        if found is None:
            found = optimise_scan(influence, random_scan(), None, MOST_STEPS)
        return (found.order, found.n_random), found.bound
    walk, length = systematic_scan() if scan == "systematic" else random_scan(), 2
    while True:
        curve = variation_curve(influence, walk, None, length)
        if curve[-1] <= EPSILON or length == MOST_STEPS:
            break
        length = min(2 * length, MOST_STEPS)
    length = int(np.argmax(curve <= EPSILON)) if curve[-1] <= EPSILON else length
    order = ScanSteps.of(walk, influence, length).order
    return ((order, 0) if order is not None else (np.empty(0, np.int32), length)), float(curve[length])


def _expectations(
    theta: NDArray[np.float64],
    edges: NDArray[np.int32],
    n: int,
    steps: tuple[NDArray[np.int32], int],
    n_runs: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the means of the products x_i x_j and of the states x_i at the end of independent runs.

    The runs are one sweep over many copies of the graph, which is equivalent to separate chains and much faster.
    """
    order, n_drawn = steps
    if not len(order) + n_drawn:
        return np.zeros(len(theta))  # the uniform start itself is near enough
    copies = np.arange(n_runs, dtype=np.int32)[:, None] * np.int32(n)
    many = np.concatenate([np.tile(theta[: len(edges)], n_runs), np.tile(theta[len(edges) :], n_runs)])
    graph = _graph(many, (copies[:, :, None] + edges).reshape(-1, 2), n * n_runs)
    drawn = rng.integers(0, n, (n_runs, n_drawn), dtype=np.int32)
    whole = np.concatenate([drawn, np.broadcast_to(order, (n_runs, len(order)))], axis=1) + copies
    state = Gibbs(1, scan=fixed_scan(whole.ravel()), record=_NOTHING).infer(graph, rng).state
    spins = 2.0 * state.reshape(n_runs, n) - 1.0
    return np.concatenate([(spins[:, edges[:, 0]] * spins[:, edges[:, 1]]).mean(axis=0), spins.mean(axis=0)])
