"""Stein variational gradient descent (FWSS18 Alg. 6), with the kernel, the field and the targets of FWSS."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import special  # pyright: ignore[reportMissingTypeStubs]
from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed, generator
from herdner.studies.fwss.common import (
    Adam,
    Batches,
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
    """SVGD: all particles at once along the field of all, each iteration O(N^2 d).

    Particles of ``start`` go on from where they are; more of them, up to ``n_particles``, come from ``init``, points
    [M, d] or draws of the prior. The optimiser begins afresh. A rule for the bandwidth is applied every 10 iterations.
    ``watch`` is called with the iteration and the particles [N, d] after each, the time of which is not counted.
    history: bandwidth, for each iteration. With one particle this is gradient ascent on the log-density.
    """
    chosen, rng = as_target(target), generator(seed)
    n, rule = check_integer(n_particles, "n_particles"), check_bandwidth(bandwidth)
    check_integer(n_iterations, "n_iterations", 0)
    before = resume_points(start, chosen, n)
    x = np.concatenate([before.x, first_points(init, chosen, n - len(before), rng)])
    batches = Batches(chosen.density, batch_size, rng)
    move, weights, h = optimiser.begin(n_iterations), np.full(n, 1 / n), 1.0
    used: list[float] = []
    began, watched = time.perf_counter(), 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for iteration in range(n_iterations):
            scores = batches.grad(x)
            if iteration % _BANDWIDTH_EVERY == 0:
                h = resolve_bandwidth(rule, x, scores)
            x = x + move(SteinField(x, weights, scores, h)(x))
            check_finite(x, "svgd", iteration)
            used.append(h)
            if watch is not None:
                now = time.perf_counter()
                watch(iteration, x)
                watched += time.perf_counter() - now
    scores = batches.exact(x)
    history = {"bandwidth": np.append(before.history.get("bandwidth", np.empty(0)), used)}
    seconds = before.seconds + time.perf_counter() - began - watched
    return Points(x, weights, scores, history, before.n_gradients + batches.n_gradients, seconds)


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
    """The next point makes k_s(x, x) / 2 + sum_i k_s(x_i, x) least ("herding": without the first term).

    The first point is the mode, or the node with the smallest score. Points of ``start`` count and stay. The authors
    draw candidates anew until they are in a box; with ``box`` they are so here, too. history: seconds and n_gradients
    after each point.

    Args:
        search: "monte-carlo": the best of ``n_candidates``, each an earlier point moved by N(0, scale^2);
            "nelder-mead": the simplex method from the best of these; "grid": the best node of a grid of ``resolution``
            points an axis over ``box`` [d, 2], lower and upper ends.
    """
    chosen, rng = as_target(target), generator(seed)
    n, h = check_integer(n_particles, "n_particles"), fixed_bandwidth(bandwidth)
    if search not in ("monte-carlo", "grid", "nelder-mead"):
        raise ValueError(f"search must be 'monte-carlo', 'grid' or 'nelder-mead', not {search!r}")
    if objective not in ("greedy", "herding"):
        raise ValueError(f"objective must be 'greedy' or 'herding', not {objective!r}")
    before, batches = resume_points(start, chosen, n), Batches(chosen.density, None, rng)
    found = _GreedyObjective(before.x, before.scores, h, batches, 0.5 if objective == "greedy" else 0.0)  # type: ignore
    seconds: list[float] = []
    counts: list[int] = []
    began = time.perf_counter()
    limits = _limits(box, chosen.dim)
    nodes = _GridSearch(found, _grid(limits, resolution)) if search == "grid" else None
    while len(found.x) < n:
        if nodes is not None:
            x = nodes.best()
        elif not len(found.x):
            x = chosen.prior(rng, 1)
            check_start(chosen.density, x)
            x = _inside(find_mode(chosen, x, batches, _MODE_STEPS), limits)
        else:
            x = _candidates(found, check_integer(n_candidates, "n_candidates"), scale, limits, rng)
            x = x[[int(np.argmin(found.values(x)[0]))]]
            if search == "nelder-mead":
                x = _simplex(found, x, limits, scale)
        found.add(x)
        seconds.append(before.seconds + time.perf_counter() - began)
        counts.append(batches.n_gradients)
    history = {"seconds": np.array(seconds), "n_gradients": np.array(counts)}
    weights = np.full(n, 1 / n)
    n_gradients = before.n_gradients + batches.n_gradients
    return Points(found.x, weights, found.scores, history, n_gradients, seconds[-1] if seconds else before.seconds)


class _GreedyObjective:
    """The points so far, and the objective of another one."""

    def __init__(self, x: Floats, scores: Floats, bandwidth: float, batches: Batches, own: float) -> None:
        self.x, self.scores, self.bandwidth, self.own, self._batches = x, scores, bandwidth, own, batches

    def values(self, x: Floats) -> tuple[Floats, Floats]:
        """The objective [M] at points [M, d], and the scores [M, d] there."""
        scores = self._batches.exact(x)
        own = self.own * (x.shape[1] / self.bandwidth**2 + (scores * scores).sum(axis=1))
        if len(self.x):
            own = own + stein_kernel(x, scores, self.x, self.scores, self.bandwidth).sum(axis=1)
        return np.where(np.isfinite(own), own, np.inf), scores

    def add(self, x: Floats) -> None:
        self.x = np.concatenate([self.x, x])
        self.scores = np.concatenate([self.scores, self._batches.exact(x)])


class _GridSearch:
    """A grid, with the sum of the objective at each node kept up to date: O(M d) for each new point."""

    def __init__(self, found: _GreedyObjective, nodes: Floats) -> None:
        self._found, self._nodes, self._counted = found, nodes, len(found.x)
        self._values, self._scores = found.values(nodes)

    def best(self) -> Floats:
        found, i = self._found, self._counted
        for j in range(i, len(found.x)):
            x, scores = found.x[j : j + 1], found.scores[j : j + 1]
            self._values = self._values + stein_kernel(self._nodes, self._scores, x, scores, found.bandwidth)[:, 0]
        self._counted = len(found.x)
        # Of the first point "herding" says nothing; "greedy" takes the node of least k_s(x, x), of the smallest score.
        values = self._values if self._counted else (self._scores * self._scores).sum(axis=1)
        return self._nodes[[int(np.argmin(values))]]


def _candidates(
    found: _GreedyObjective, n: int, scale: float, limits: Floats | None, rng: np.random.Generator
) -> Floats:
    """Earlier points moved by N(0, scale^2), and drawn anew until they are inside the limits (FWSS18 App. H): that is
    a truncated normal number along each axis, here by its inverse distribution function.
    """
    base = found.x[rng.integers(len(found.x), size=n)]
    if limits is None:
        return base + scale * rng.normal(size=base.shape)
    low, high = (special.ndtr((limits[:, side] - base) / scale) for side in (0, 1))
    return _inside(base + scale * special.ndtri(low + (high - low) * rng.random(base.shape)), limits)


def _simplex(found: _GreedyObjective, x: Floats, limits: Floats | None, scale: float) -> Floats:
    def value(at: Floats) -> float:
        return float(found.values(_inside(at[None], limits))[0][0])

    first = np.concatenate([x, x + 0.5 * scale * np.eye(x.shape[1])])
    options = {"initial_simplex": first, "maxfev": 50 * x.shape[1], "xatol": 1e-4, "fatol": 1e-6}
    best = cast(Any, minimize(value, x[0], method="Nelder-Mead", options=options))
    return _inside(best.x[None], limits)


def _limits(box: ArrayLike | None, dim: int) -> Floats | None:
    if box is None:
        return None
    limits = np.asarray(box, float)
    if limits.shape != (dim, 2) or not np.isfinite(limits).all() or not (limits[:, 0] < limits[:, 1]).all():
        raise ValueError(f"box must list a lower and an upper end for each of the {dim} variables")
    return limits


def _grid(limits: Floats | None, resolution: int) -> Floats:
    if limits is None:
        raise ValueError("search='grid' needs box, the ends of the grid [d, 2]")
    n = check_integer(resolution, "resolution", 2)
    if n ** len(limits) > _MOST_NODES:
        raise ValueError(
            f"a grid of {n} points in each of {len(limits)} dimensions is too large; lower resolution, or take"
            " search='monte-carlo'"
        )
    axes: list[Floats] = [np.linspace(low, high, n) for low, high in limits]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(limits))


def _inside(x: Floats, limits: Floats | None) -> Floats:
    return x if limits is None else np.clip(x, limits[:, 0], limits[:, 1])
