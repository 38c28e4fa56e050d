"""Frank-Wolfe Stein sampling with a kernel of its own for each variable."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.seeds import Seed
from herdner.studies.fwss.growing import Growing, Recipe, grow, moved_along
from herdner.studies.fwss.kernels import check_bandwidth, evenly
from herdner.studies.fwss.optimisers import Adam, Optimiser
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.targets import Target

_MEDIAN_POINTS = 64


def local_fwss(
    target: Target,
    n_particles: int,
    *,
    init: Literal["prior"] | ArrayLike = "prior",
    n_steps: int = 50,
    optimiser: Optimiser = Adam(),  # noqa: B008 (frozen)
    bandwidth: float | Literal["median"] = "median",
    start: Points | None = None,
    seed: Seed = None,
) -> Points:
    """`fwss` with equal weights, each variable moved by the field of one kernel over that variable alone.

    For many variables that depend little on each other, such as those of `Laplace.whitened`. There one kernel over all
    of them fails: its particles come to lie too close together, the more so the fewer there are for each variable (Ba
    et al. 2022). Kernels over few variables repel as strongly as in few dimensions (Zhuo et al. 2018; Wang, Zeng and
    Liu 2018). They see to each variable's own distribution, less a shrinkage that falls with the number of particles;
    how variables depend on each other comes from the scores and from where the particles start. Other options as in
    `fwss`, to which this is equal for one variable. history: seconds.

    Args:
        bandwidth: One for all variables, or "median", the rule applied to each.
    """
    rule = check_bandwidth(bandwidth, ["median"])
    if isinstance(init, str) and init != "prior":
        raise ValueError(f"init must be 'prior' or points [M, d], not {init!r}")
    plan = Recipe(step="constant", init=init, n_steps=n_steps, optimiser=optimiser, bandwidth=1.0)

    def oracle(run: Growing, x: Floats, seed: int) -> Floats:
        if not run.n:
            return moved_along(run, x, None, seed)
        each = bandwidths(np.concatenate([run.x, x])) if isinstance(rule, str) else np.full(x.shape[1], rule)
        return moved_along(run, x, LocalField(run.x, run.pull(1), run.scores, each), seed)

    points = grow(Growing(target, plan, start, n_particles, seed), n_particles, oracle)
    history = {"seconds": points.history["seconds"]}
    return Points(points.x, points.weights, points.scores, history, points.n_gradients, points.seconds)


class LocalField:
    """phi_i(x) = sum_l w_l [k_i(x_li, x_i) s_li + d/dx_li k_i(x_li, x_i)]: `SteinField`, variable by variable."""

    def __init__(self, points: Floats, weights: Floats, scores: Floats, bandwidths: Floats) -> None:
        self._points, self._weights, self._scores, self._squares = points, weights, scores, bandwidths**2

    def __call__(self, x: Floats) -> Floats:
        """[M, d] at points [M, d]."""
        return np.stack([self._at(row) for row in x])

    def _at(self, x: Floats) -> Floats:
        away = x - self._points
        kernel = np.exp(-0.5 * away * away / self._squares)
        kernel *= self._scores + away / self._squares
        return self._weights @ kernel


def bandwidths(x: Floats) -> Floats:
    """[d]: the median rule (`median_bandwidth`) for each variable of points [N, d], of 64 of them at most."""
    n = len(x)
    x = x[evenly(n, _MEDIAN_POINTS)]
    i, j = np.triu_indices(len(x), 1)
    middle = np.median((x[i] - x[j]) ** 2, axis=0) if len(i) else np.zeros(x.shape[1])
    return np.where(middle > 0, np.sqrt(middle / (2 * np.log(n + 1))), 1.0)
