"""Lazy Frank-Wolfe Stein sampling, which uses cached points whose duality gaps suffice (FWSS18, Alg. 9 and 10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_real
from herdner.base.seeds import Seed
from herdner.studies.fwss.common import check_points, resolve_bandwidth, resolve_kernel_mean
from herdner.studies.fwss.growing import FwssOptions, ParticleRun, approximate_lmo
from herdner.studies.fwss.kernels import KernelMean, SampleMean, rbf
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.quadrature import stein_weights
from herdner.studies.fwss.sample import field_norms
from herdner.studies.fwss.steps import FullyCorrective, LineSearch
from herdner.studies.fwss.targets import Target, as_target

_CALLS_FOR_EACH = 50
_SMALLEST_PHI = 1e-14


def lazy_fwss(
    target: Target,
    n_particles: int,
    *,
    cache: Points | ArrayLike,
    accuracy: float = 2.0,
    start: Points | None = None,
    seed: Seed = None,
    **options: Any,
) -> Points:
    """Sample from a target by lazy Frank-Wolfe Stein sampling (FWSS18, Algorithms 9 and 10).

    A point of the cache becomes a particle unchanged if its duality gap is at least Phi / ``accuracy``. If there is no
    such point, the cached linear minimisation oracle (LMO, Alg. 7) moves a point. If the gap of the moved point is too
    small as well, Phi is halved. The gap (eq. 31; Alg. 9 prints it with the opposite sign) needs mu_p, which the
    authors could not estimate (App. J). Here mu_p is ``kernel_mean``, the target's own kernel mean, or the kernel mean
    of the cache with the weights of least KSD. The bandwidth is computed once, for the cache.

    The result has fewer particles if no point improves it any further. This can happen if mu_p is estimated from the
    cache. The history is that of `fwss` with an additional entry phi: the Phi at which each particle was added, NaN for
    the first particle and for those of ``start`` (see `MarginalPolytope.lazy_bound`).

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: Number of particles, including those of ``start``.
        cache: Candidate points, float64[M, d].
        accuracy: K of Alg. 9, at least 1.
        start: Result of an earlier run to continue.
        seed: Random seed or generator.
        options: Options of `fwss`, with any step rule but "constant"; ``n_steps`` is 10 by default.

    Returns:
        The particles with their weights.

    Raises:
        ValueError: An argument is out of range.
        DivergenceError: A coordinate of a particle is not finite.
    """
    target = as_target(target)
    points = check_points(cache, target, "cache")
    scores = target.density.grad(points)
    options.setdefault("n_steps", 10)
    plan = FwssOptions(**options)
    if plan.step == "constant":
        raise ValueError("lazy_fwss does not support step='constant', which ignores duality gaps; use another `step`")
    check_real(accuracy, "accuracy", 1)
    bandwidth = float(resolve_bandwidth(plan.bandwidth, points, scores))
    mean = resolve_kernel_mean(plan.kernel_mean, target)
    if mean is None:
        mean = SampleMean(points, stein_weights(points, scores, bandwidth))
    plan = replace(plan, bandwidth=bandwidth, kernel_mean=mean)
    run = ParticleRun(target, plan, start, n_particles, seed)
    run.batches.n_gradients += len(points)
    return _LazySampler(run, points, scores, accuracy).grow(n_particles)


class _LazySampler:
    """State of a run of lazy FWSS: candidate points, the value of the kernel mean at each, and which are particles.

    The attribute ``particle`` has the index of each candidate among the particles, -1 if it is none.
    """

    def __init__(self, run: ParticleRun, points: Floats, scores: Floats, accuracy: float) -> None:
        assert run.mean is not None
        assert isinstance(run.rule, LineSearch | FullyCorrective)
        self.rule = run.rule
        self.run, self.points, self.scores, self.accuracy = run, points, scores, accuracy
        self.mean: KernelMean = run.mean
        self.z = self.mean.at(points, run.bandwidth)
        self.k = np.empty((len(points), 0))
        same = (points[:, None] == run.x).all(axis=2) if run.n else np.zeros((len(points), 0), bool)
        self.particle = np.where(same.any(axis=1), same.argmax(axis=1) if run.n else 0, -1)
        self.phis = [np.nan] * run.n

    def gaps(self, k: Floats, z: Floats) -> Floats:
        """Return the Frank-Wolfe duality gap of each of M candidate points.

        ``k`` has the kernels [M, n] of the candidates and the n particles, and ``z`` the kernel mean at the
        candidates [M]. The gap of x is <mu - mu_p, mu - k(x, .)>.
        """
        w, embedding = self.run.weights, self.rule.embedding
        own = embedding.system.matrix @ w - embedding.at_particles()[0]
        return float(w @ own) - k @ w + z

    def candidate_gaps(self) -> Floats:
        """Return the Frank-Wolfe duality gap of each of the M candidates, float64[M]."""
        k, run = self.k, self.run
        if k.shape[1] < run.n:
            k = np.hstack([k, rbf(self.points[: len(k)], run.x[k.shape[1] :], run.bandwidth)])
        if len(k) < len(self.points):
            k = np.vstack([k, rbf(self.points[len(k) :], run.x, run.bandwidth)])
        self.k = k
        return self.gaps(k, self.z)

    def grow(self, n: int) -> Points:
        """Add particles until the run has ``n`` particles or Phi, the threshold for duality gaps, is below 1e-14."""
        run = self.run
        if not run.n:
            self.take(int(np.argmin((self.scores**2).sum(axis=1))))
            self.phis.append(np.nan)
        phi = float(self.candidate_gaps().max()) / 2
        for _ in range(_CALLS_FOR_EACH * n):
            if run.n == n or not phi > _SMALLEST_PHI:
                break
            gaps = self.candidate_gaps()
            best = int(np.argmax(gaps))
            if gaps[best] >= phi / self.accuracy:
                self.take(best)
            elif not self.improve(phi):
                phi /= 2
            self.phis += [phi] * (run.n - len(self.phis))
        points = run.points()
        return replace(points, history={**points.history, "phi": np.array(self.phis)})

    def take(self, candidate: int) -> None:
        """Take a Frank-Wolfe step towards a candidate point. The candidate becomes a particle if it is not one yet."""
        run = self.run
        if self.particle[candidate] >= 0:
            run.weights = self.rule.towards(int(self.particle[candidate]))
            return
        run.keep(self.points[candidate : candidate + 1])
        self.particle[candidate] = run.n - 1

    def improve(self, phi: float) -> bool:
        """Add a particle: move a copy of the unused candidate that has the smallest Stein field towards the minimum.

        If the duality gap of the moved point is below ``phi / accuracy``, add nothing and return False.
        """
        run = self.run
        free = np.flatnonzero(self.particle < 0)
        if len(free):
            x = self.points[free[np.argmin(field_norms(run, self.points[free], self.scores[free]))]][None]
        else:
            x = run.starting_points(1)
        x = approximate_lmo(run, x, int(run.rng.integers(1 << 63)))
        z = self.mean.at(x, run.bandwidth)
        if not self.gaps(rbf(x, run.x, run.bandwidth), z)[0] >= phi / self.accuracy:
            return False
        run.keep(x)
        self.points, self.z = np.concatenate([self.points, x]), np.append(self.z, z)
        self.scores = np.concatenate([self.scores, run.scores[-1:]])
        self.particle = np.append(self.particle, run.n - 1)
        return True
