"""Stein variational gradient descent (FWSS18 Alg. 6), with the kernel, the field and the targets of FWSS."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import whole
from herdner.base.seeds import Seed, generator
from herdner.studies.fwss.common import Batches, chosen_bandwidth, continued, first_points
from herdner.studies.fwss.kernels import check_bandwidth
from herdner.studies.fwss.optimisers import Adam, Optimiser, check_finite
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.stein import SteinField
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
    n, rule = whole(n_particles, "n_particles"), check_bandwidth(bandwidth)
    whole(n_iterations, "n_iterations", 0)
    before = continued(start, chosen, n)
    x = np.concatenate([before.x, first_points(init, chosen, n - len(before), rng)])
    batches = Batches(chosen.density, batch_size, rng)
    move, weights, h = optimiser.begin(n_iterations), np.full(n, 1 / n), 1.0
    used: list[float] = []
    began, watched = time.perf_counter(), 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for iteration in range(n_iterations):
            scores = batches.grad(x)
            if iteration % _BANDWIDTH_EVERY == 0:
                h = chosen_bandwidth(rule, x, scores)
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
