"""Other particle samplers: Stein variational gradient descent (FWSS18, Alg. 6) and Stein points (App. H)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.base.extras import import_extra
from herdner.base.seeds import Seed, generator
from herdner.studies.fwss.common import (
    Adam,
    GradientBatches,
    Optimiser,
    check_finite,
    check_start,
    find_mode,
    first_points,
    resolve_bandwidth,
    resume_points,
)
from herdner.studies.fwss.kernels import check_bandwidth, fixed_bandwidth
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.stein import SteinField, stein_kernel
from herdner.studies.fwss.targets import Target, as_target

special = import_extra("scipy.special", "Stein sampling needs SciPy")
minimize = import_extra("scipy.optimize", "Stein sampling needs SciPy").minimize

_BANDWIDTH_EVERY = 10


def svgd(
    target: Target,
    n_particles: int,
    *,
    n_iterations: int = 1000,
    init: Literal["prior"] | ArrayLike = "prior",
    optimiser: Optimiser = Adam(),  # noqa: B008
    bandwidth: float | Literal["median", "ksd"] = "median",
    batch_size: int | None = None,
    start: Points | None = None,
    seed: Seed = None,
    watch: Callable[[int, Floats], object] | None = None,
) -> Points:
    """Sample from a target by Stein variational gradient descent (SVGD).

    Each iteration moves all particles along the Stein field of all particles, in time O(N^2 d). With one particle, this
    is gradient ascent on the log-density. A bandwidth rule is applied every 10 iterations. The history holds the
    bandwidth of each iteration.

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: Number of particles, including those of ``start``.
        n_iterations: Number of iterations.
        init: Initial points, float64[M, d], or "prior" for draws of the prior.
        optimiser: The optimiser; its state is not continued from ``start``.
        bandwidth: A number, or the rule "median" or "ksd".
        batch_size: Number of data terms per gradient; None for all.
        start: Result of an earlier run; its particles are moved further.
        seed: Random seed or generator.
        watch: Function that is called with the iteration and the particles [N, d] after each iteration; its time is not
            counted.

    Returns:
        The particles, with equal weights.

    Raises:
        ValueError: An argument is out of range.
        DivergenceError: A coordinate of a particle is not finite.
    """
    target, rng = as_target(target), generator(seed)
    n, rule = check_integer(n_particles, "n_particles"), check_bandwidth(bandwidth)
    check_integer(n_iterations, "n_iterations", 0)
    previous = resume_points(start, target, n)
    x = np.concatenate([previous.x, first_points(init, target, n - len(previous), rng)])
    batches = GradientBatches(target.density, batch_size, rng)
    move, weights, h = optimiser.begin(n_iterations), np.full(n, 1 / n), 1.0
    bandwidths: list[float] = []
    began, excluded = time.perf_counter(), 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for iteration in range(n_iterations):
            scores = batches.grad(x)
            check_finite(scores, "svgd", iteration)
            if iteration % _BANDWIDTH_EVERY == 0:
                h = resolve_bandwidth(rule, x, scores)
            x = x + move(SteinField(x, weights, scores, h)(x))
            check_finite(x, "svgd", iteration)
            bandwidths.append(h)
            if watch is not None:
                now = time.perf_counter()
                watch(iteration, x)
                excluded += time.perf_counter() - now
    scores = batches.exact(x)
    history = {"bandwidth": np.append(previous.history.get("bandwidth", np.empty(0)), bandwidths)}
    seconds = previous.seconds + time.perf_counter() - began - excluded
    return Points(x, weights, scores, history, previous.n_gradients + batches.n_gradients, seconds)


_MOST_NODES = 2**20
_MODE_STEPS = 2000


def stein_points(
    target: Target,
    n_particles: int,
    *,
    search: Literal["monte-carlo", "grid", "nelder-mead"] = "monte-carlo",
    objective: Literal["greedy", "herding"] = "greedy",
    n_candidates: int = 20,
    scale: float = 1.0,
    box: ArrayLike | None = None,
    resolution: int = 100,
    bandwidth: float = 1.0,
    start: Points | None = None,
    seed: Seed = None,
) -> Points:
    """Sample Stein points. Each new point minimises the KSD, given the earlier points (FWSS18, App. H).

    The search uses no gradient of the KSD.

    The next point minimises k_s(x, x) / 2 + sum_i k_s(x_i, x); "herding" omits the first term. The first point is the
    mode, or with "grid" the node with the smallest score. The history holds seconds and n_gradients after each point.

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: Number of points, including those of ``start``.
        search: "monte-carlo" takes the best of ``n_candidates``, each an earlier point moved by N(0, scale^2);
            "nelder-mead" starts the simplex method at the best of these; "grid" takes the best node of a grid over
            ``box``.
        objective: "greedy" or "herding".
        n_candidates: Number of candidates.
        scale: Standard deviation of the moves.
        box: Lower and upper end of each variable, float64[d, 2]. Candidates are drawn inside the box, as in the
            authors' program.
        resolution: Number of grid nodes per axis.
        bandwidth: Bandwidth of the kernel.
        start: Result of an earlier run; its points are kept.
        seed: Random seed or generator.

    Returns:
        The points, with equal weights.

    Raises:
        ValueError: An argument is out of range.
    """
    target, rng = as_target(target), generator(seed)
    n, h = check_integer(n_particles, "n_particles"), fixed_bandwidth(bandwidth)
    if search not in ("monte-carlo", "grid", "nelder-mead"):
        raise ValueError(f"`search` must be 'monte-carlo', 'grid' or 'nelder-mead', got {search!r}")
    if objective not in ("greedy", "herding"):
        raise ValueError(f"`objective` must be 'greedy' or 'herding', got {objective!r}")
    previous, batches = resume_points(start, target, n), GradientBatches(target.density, None, rng)
    greedy = _GreedyObjective(previous.x, previous.scores, h, batches, 0.5 if objective == "greedy" else 0.0)  # type: ignore
    seconds: list[float] = []
    counts: list[int] = []
    began = time.perf_counter()
    limits = _limits(box, target.dim)
    nodes = _GridSearch(greedy, _grid(limits, resolution)) if search == "grid" else None
    while len(greedy.x) < n:
        if nodes is not None:
            x = nodes.best()
        elif not len(greedy.x):
            x = target.prior(rng, 1)
            check_start(target.density, x)
            x = _inside(find_mode(target, x, batches, _MODE_STEPS), limits)
        else:
            x = _candidates(greedy, check_integer(n_candidates, "n_candidates"), scale, limits, rng)
            x = x[[int(np.argmin(greedy.values(x)[0]))]]
            if search == "nelder-mead":
                x = _simplex(greedy, x, limits, scale)
        greedy.add(x)
        seconds.append(previous.seconds + time.perf_counter() - began)
        counts.append(batches.n_gradients)
    history = {"seconds": np.array(seconds), "n_gradients": np.array(counts)}
    weights = np.full(n, 1 / n)
    n_gradients = previous.n_gradients + batches.n_gradients
    return Points(greedy.x, weights, greedy.scores, history, n_gradients, seconds[-1] if seconds else previous.seconds)


class _GreedyObjective:
    """Objective that the next Stein point minimises, given the points so far."""

    def __init__(self, x: Floats, scores: Floats, bandwidth: float, batches: GradientBatches, own: float) -> None:
        self.x, self.scores, self.bandwidth, self.own, self._batches = x, scores, bandwidth, own, batches

    def values(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the objective [M] at M candidates for the next point, and the scores [M, d] of the candidates."""
        scores = self._batches.exact(x)
        own = self.own * (x.shape[1] / self.bandwidth**2 + (scores * scores).sum(axis=1))
        if len(self.x):
            own = own + stein_kernel(x, scores, self.x, self.scores, self.bandwidth).sum(axis=1)
        return np.where(np.isfinite(own), own, np.inf), scores

    def add(self, x: Floats) -> None:
        self.x = np.concatenate([self.x, x])
        self.scores = np.concatenate([self.scores, self._batches.exact(x)])


class _GridSearch:
    """Grid search for Stein points.

    The current objective at each of the M nodes is stored, so a new point takes time O(M d).
    """

    def __init__(self, objective: _GreedyObjective, nodes: Floats) -> None:
        self._objective, self._nodes, self._counted = objective, nodes, len(objective.x)
        self._values, self._scores = objective.values(nodes)

    def best(self) -> Floats:
        objective, i = self._objective, self._counted
        for j in range(i, len(objective.x)):
            x, scores = objective.x[j : j + 1], objective.scores[j : j + 1]
            self._values = self._values + stein_kernel(self._nodes, self._scores, x, scores, objective.bandwidth)[:, 0]
        self._counted = len(objective.x)
        # The first point has the least k_s(x, x), and therefore the smallest score; "herding" has no rule for the first
        # point.
        values = self._values if self._counted else (self._scores * self._scores).sum(axis=1)
        return self._nodes[[int(np.argmin(values))]]


def _candidates(
    objective: _GreedyObjective, n: int, scale: float, limits: Floats | None, rng: np.random.Generator
) -> Floats:
    """Draw n candidates: earlier points plus N(0, scale^2) noise, truncated to the limits (FWSS18, App. H)."""
    base = objective.x[rng.integers(len(objective.x), size=n)]
    if limits is None:
        return base + scale * rng.normal(size=base.shape)
    low, high = (special.ndtr((limits[:, side] - base) / scale) for side in (0, 1))
    return _inside(base + scale * special.ndtri(low + (high - low) * rng.random(base.shape)), limits)


def _simplex(objective: _GreedyObjective, x: Floats, limits: Floats | None, scale: float) -> Floats:
    def value(at: Floats) -> float:
        return float(objective.values(_inside(at[None], limits))[0][0])

    first = np.concatenate([x, x + 0.5 * scale * np.eye(x.shape[1])])
    options = {"initial_simplex": first, "maxfev": 50 * x.shape[1], "xatol": 1e-4, "fatol": 1e-6}
    return _inside(minimize(value, x[0], method="Nelder-Mead", options=options).x[None], limits)


def _limits(box: ArrayLike | None, dim: int) -> Floats | None:
    if box is None:
        return None
    limits = np.asarray(box, float)
    if limits.shape != (dim, 2) or not np.isfinite(limits).all() or not (limits[:, 0] < limits[:, 1]).all():
        raise ValueError(
            f"`box` must have a finite lower and a larger finite upper end for each of the {dim} variables, got"
            f" {limits.tolist()!s:.80}"
        )
    return limits


def _grid(limits: Floats | None, resolution: int) -> Floats:
    if limits is None:
        raise ValueError("search='grid' needs `box`, an array of shape [d, 2] with the limits of the grid")
    n = check_integer(resolution, "resolution", 2)
    if n ** len(limits) > _MOST_NODES:
        raise ValueError(
            f"a grid of {n} points in each of {len(limits)} dimensions is too large; decrease `resolution`, or use"
            " search='monte-carlo'"
        )
    axes: list[Floats] = [np.linspace(low, high, n) for low, high in limits]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(limits))


def _inside(x: Floats, limits: Floats | None) -> Floats:
    return x if limits is None else np.clip(x, limits[:, 0], limits[:, 1])
