"""Step rules of Frank-Wolfe: what weights the particles get (FWSS18 App. B)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from herdner.base.arrays import Floats
from herdner.studies.fwss.kernels import KernelMean, gram, rbf
from herdner.studies.fwss.quadrature import GramSystem, least_ksd, refuse_duplicates
from herdner.studies.fwss.stein import stein_kernel


class StepResult(NamedTuple):
    """Steps towards m new particles: the weights [N] after all; lambda [m]; the duality gap [m] before."""

    weights: Floats
    steps: Floats
    gaps: Floats


class StepRule(Protocol):
    """Weights for particles that come a few at a time; ``jitter``: what the last solve added to the diagonal."""

    jitter: float

    def restart(self, x: Floats, scores: Floats, bandwidth: float, weights: Floats) -> Floats:
        """Takes up these particles, or another bandwidth; returns their weights."""
        ...

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> StepResult:
        """Particles [N, d], of which the last ``n_new`` are new."""
        ...

    def towards(self, particle: int) -> Floats:
        """The weights after a step towards a particle that is there already."""
        ...


class Embedding:
    """The Gram matrix K of the particles and z = mu_p at them, both grown by one particle at a time.

    Where mu_p is not known it is estimated from the particles and their scores: z = K w with the weights w of least
    KSD, that is by control functionals. FWSS18 (App. B) estimates it by the particles with their present weights; then
    K^-1 z returns just these weights, and neither line search nor full correction would ever change any.
    """

    def __init__(self, mean: KernelMean | None) -> None:
        self._mean = mean

    def restart(self, x: Floats, scores: Floats, bandwidth: float) -> None:
        self.system = GramSystem(gram(x, bandwidth))
        if self._mean is None:
            self._stein = GramSystem(stein_kernel(x, scores, x, scores, bandwidth))
        else:
            self._z = self._mean.at(x, bandwidth)

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> None:
        first = len(x) - n_new
        rows = rbf(x[first:], x, bandwidth)
        for i in range(n_new):
            rows[i, first + i] = 1
            self.system.append(rows[i, : first + i + 1])
        if self._mean is not None:
            self._z = np.append(self._z, self._mean.at(x[first:], bandwidth))
            return
        stein = stein_kernel(x[first:], scores[first:], x, scores, bandwidth)
        for i in range(n_new):
            self._stein.append(stein[i, : first + i + 1])

    def at_particles(self) -> tuple[Floats, Floats | None, float]:
        """(z [N], the quadrature weights K^-1 z where they are known without a solve, jitter)."""
        if self._mean is not None:
            return self._z, None, self.system.jitter
        weights = least_ksd(self._stein)
        return self.system.matrix @ weights, weights, self._stein.jitter


class ConstantStep:
    """lambda = 1 / (n + 1): equal weights."""

    jitter = 0.0

    def restart(self, x: Floats, scores: Floats, bandwidth: float, weights: Floats) -> Floats:
        return weights

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> StepResult:
        n = len(x)
        return StepResult(np.full(n, 1 / n), 1 / np.arange(n - n_new + 1.0, n + 1), np.full(n_new, np.nan))

    def towards(self, particle: int) -> Floats:
        raise ValueError("step='constant' has one weight for all; this sampler needs 'line-search'")


class LineSearch:
    """lambda = <mu - mu_p, mu - g> / |mu - g|^2, between 0 and 1 (FWSS18 eq. 10, which prints another
    denominator); g is the new particle's kernel.
    """

    def __init__(self, mean: KernelMean | None) -> None:
        self.embedding, self.jitter = Embedding(mean), 0.0
        self._weights = np.empty(0)

    def restart(self, x: Floats, scores: Floats, bandwidth: float, weights: Floats) -> Floats:
        self.embedding.restart(x, scores, bandwidth)
        self._weights = weights
        return weights

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> StepResult:
        self.embedding.add(x, scores, bandwidth, n_new)
        self._weights = np.append(self._weights, np.zeros(n_new))
        z, _, self.jitter = self.embedding.at_particles()
        taken = [self._take_in(len(x) - n_new + i, z) for i in range(n_new)]
        steps, gaps = np.array(taken).T
        return StepResult(self._weights, steps, gaps)

    def towards(self, particle: int) -> Floats:
        self._towards(particle, self.embedding.at_particles()[0])
        return self._weights

    def _take_in(self, particle: int, z: Floats) -> tuple[float, float]:
        """Gives a new particle its first weight; (lambda, gap)."""
        return self._towards(particle, z)

    def _towards(self, particle: int, z: Floats) -> tuple[float, float]:
        """Takes the step; (lambda, gap)."""
        gap, apart = gap_to(self.embedding.system.matrix, z, self._weights, particle)
        step = min(max(gap / apart, 0.0), 1.0) if apart > 0 else 0.0
        self._weights = (1 - step) * self._weights
        self._weights[particle] += step
        return step, gap

    def _worst(self, slope: Floats) -> int:
        """The particle with a weight that <mu - mu_p, .> is largest at: the one to step away from."""
        held = np.flatnonzero(self._weights > 0)
        return int(held[np.argmax(slope[held])])

    def _along(self, direction: Floats, slope: Floats, leaves: int, most: float) -> float:
        """Goes along a direction [N] of the weights, to the least of MMD or until ``leaves`` has no weight: lambda."""
        curvature = float(direction @ (self.embedding.system.matrix @ direction))
        step = min(max(-float(slope @ direction) / curvature, 0.0), most) if curvature > 0 else 0.0
        self._weights = self._weights + step * direction
        if step == most:
            self._weights[leaves] = 0.0
        return step


class AwaySteps(LineSearch):
    """Line search that steps away from the worst particle where that promises more (Lacoste-Julien and Jaggi 2015,
    Alg. 1; the paper names the variants of [20] as future work).

    Its rate is geometric also where mu_p is on the boundary of the hull of the particles' kernels, and line search
    alone zigzags. Steps away go before the one to a new particle, which stays the vertex meanwhile, until that one
    promises more, and one for each particle at most; so every particle is given a weight. It may lose it later.
    """

    def _take_in(self, particle: int, z: Floats) -> tuple[float, float]:
        for _ in range(len(z)):
            step, gap = self._towards(particle, z)
            if step > 0 or gap <= 0:
                return step, gap
        return super()._towards(particle, z)

    def _towards(self, particle: int, z: Floats) -> tuple[float, float]:
        slope = self.embedding.system.matrix @ self._weights - z
        own, worst = float(self._weights @ slope), self._worst(slope)
        gap, held = own - float(slope[particle]), float(self._weights[worst])
        if slope[worst] - own <= gap or held >= 1:
            return super()._towards(particle, z)
        direction = self._weights.copy()
        direction[worst] -= 1
        self._along(direction, slope, worst, held / (1 - held))
        return 0.0, gap


class PairwiseSteps(LineSearch):
    """Line search that takes the weight of the worst particle alone, and gives it to the new one (Lacoste-Julien and
    Jaggi 2015, Alg. 2). Geometric where `AwaySteps` are.
    """

    def _towards(self, particle: int, z: Floats) -> tuple[float, float]:
        slope = self.embedding.system.matrix @ self._weights - z
        worst = self._worst(slope)
        direction = np.zeros(len(z))
        direction[worst] -= 1
        direction[particle] += 1
        gap = float(self._weights @ slope - slope[particle])
        return self._along(direction, slope, worst, float(self._weights[worst])), gap


class FullyCorrective:
    """All weights anew: those of Bayesian quadrature, K w = z (FWSS18 eq. 11)."""

    def __init__(self, mean: KernelMean | None) -> None:
        self.embedding, self.jitter = Embedding(mean), 0.0
        self._weights = np.empty(0)

    def restart(self, x: Floats, scores: Floats, bandwidth: float, weights: Floats) -> Floats:
        refuse_duplicates(x, "particles")
        self.embedding.restart(x, scores, bandwidth)
        self._weights = self._solved()[0]
        return self._weights

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> StepResult:
        refuse_duplicates(x, "particles", n_new)
        self.embedding.add(x, scores, bandwidth, n_new)
        before = np.append(self._weights, np.zeros(n_new))
        self._weights, z = self._solved()
        matrix, new = self.embedding.system.matrix, range(len(x) - n_new, len(x))
        gaps = np.array([gap_to(matrix, z, before, i)[0] for i in new])
        return StepResult(self._weights, self._weights[new.start :], gaps)

    def towards(self, particle: int) -> Floats:
        return self._weights

    def _solved(self) -> tuple[Floats, Floats]:
        z, weights, self.jitter = self.embedding.at_particles()
        if weights is None:
            weights = self.embedding.system.solve(z)
            self.jitter = self.embedding.system.jitter
        return weights, z


def gap_to(matrix: Floats, z: Floats, weights: Floats, particle: int) -> tuple[float, float]:
    """<mu - mu_p, mu - g> (FWSS18 eq. 31) and |mu - g|^2, for g the kernel at one of the particles."""
    apart = weights.copy()
    apart[particle] -= 1
    towards = matrix @ apart
    return float(weights @ towards - apart @ z), float(apart @ towards)


def make_rule(step: str, mean: KernelMean | None) -> StepRule:
    """The rule of this name; ValueError where there is none."""
    if step not in _RULES:
        raise ValueError(f"step must be one of {', '.join(map(repr, _RULES))}, not {step!r}")
    return _RULES[step](mean)


_RULES: Mapping[str, Callable[[KernelMean | None], StepRule]] = {
    "constant": lambda _: ConstantStep(),
    "line-search": LineSearch,
    "away": AwaySteps,
    "pairwise": PairwiseSteps,
    "fully-corrective": FullyCorrective,
}
