"""Step rules of Frank-Wolfe, which determine the weights of the particles (FWSS18, App. B)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from herdner.base.arrays import Floats
from herdner.studies.fwss.kernels import KernelMean, gram, rbf
from herdner.studies.fwss.quadrature import GramSystem, least_ksd, refuse_duplicates
from herdner.studies.fwss.stein import stein_kernel


class StepResult(NamedTuple):
    """Weights, step sizes and duality gaps of m Frank-Wolfe steps, one towards each of m new particles.

    Attributes:
        weights: float64[N], all weights after the steps.
        steps: float64[m], the step sizes lambda.
        gaps: float64[m], the duality gaps before the steps.
    """

    weights: Floats
    steps: Floats
    gaps: Floats


class Embedding:
    """Gram matrix of a growing set of particles, and the kernel mean mu_p at each particle.

    If mu_p is unknown, it is estimated from the particles and their scores by control functionals: z = K w with the
    weights w of least KSD. FWSS18 (App. B) estimates mu_p by the particles with their current weights; then K^-1 z
    would equal these weights, and neither line search nor full correction would ever change a weight.
    """

    def __init__(self, mean: KernelMean | None) -> None:
        """Store ``mean``, the kernel mean of the target; the embedding has no particles yet.

        Args:
            mean: The kernel mean, or None to estimate it.
        """
        self._mean = mean

    def restart(self, x: Floats, scores: Floats, bandwidth: float) -> None:
        """Replace all particles of the embedding and the bandwidth.

        Args:
            x: float64[N, d].
            scores: float64[N, d].
            bandwidth: Bandwidth of the kernel.
        """
        self.system = GramSystem(gram(x, bandwidth))
        if self._mean is None:
            self._stein = GramSystem(stein_kernel(x, scores, x, scores, bandwidth))
        else:
            self._z = self._mean.at(x, bandwidth)

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> None:
        """Add the last ``n_new`` points of ``x`` as particles to the Gram matrix and to the kernel means.

        Args:
            x: float64[N, d], all particles, the new ones last.
            scores: float64[N, d].
            bandwidth: Bandwidth of the kernel.
            n_new: Number of new particles.
        """
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
        """Return the kernel mean z [N] at the particles, the optimal weights, and the jitter of the Gram matrix.

        The optimal weights are K^-1 z. If mu_p is known, None is returned in their place, and the caller must solve
        K w = z.
        """
        if self._mean is not None:
            return self._z, None, self.system.jitter
        weights = least_ksd(self._stein)
        return self.system.matrix @ weights, weights, self._stein.jitter


class ConstantStep:
    """Step rule that gives all particles equal weights.

    The step size is 1 / (n + 1) for n earlier particles.

    Attributes:
        jitter: Always 0, because this rule solves no linear system.
    """

    jitter = 0.0

    def restart(self, x: Floats, scores: Floats, bandwidth: float, weights: Floats) -> Floats:
        """Return ``weights`` unchanged.

        Args:
            x: Ignored.
            scores: Ignored.
            bandwidth: Ignored.
            weights: float64[N].

        Returns:
            float64[N], the weights.
        """
        return weights

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> StepResult:
        """Give all particles equal weights.

        Args:
            x: float64[N, d], all particles, the new ones last.
            scores: Ignored.
            bandwidth: Ignored.
            n_new: Number of new particles.

        Returns:
            The equal weights of all particles and the step sizes of the new particles; their duality gaps are NaN.
        """
        n = len(x)
        return StepResult(np.full(n, 1 / n), 1 / np.arange(n - n_new + 1.0, n + 1), np.full(n_new, np.nan))


class EmbeddedRule:
    """Base class of the step rules that use the Gram matrix of the particles and the kernel mean of the target.

    Attributes:
        embedding: The Gram matrix and the kernel means.
        jitter: The number that was added to the diagonal of the Gram matrix in the last solution of a linear system.
    """

    def __init__(self, mean: KernelMean | None) -> None:
        """Set up the step rule; it has no particles yet.

        Args:
            mean: The kernel mean, or None to estimate it.
        """
        self.embedding, self.jitter = Embedding(mean), 0.0
        self._weights = np.empty(0)


class LineSearch(EmbeddedRule):
    """Step rule that moves weight to the new particle; a line search finds the step size that minimises the MMD.

    The step size is lambda = <mu - mu_p, mu - g> / |mu - g|^2, limited to [0, 1]. Here mu is the current mean, mu_p
    the kernel mean of the target, and g the kernel at the new particle. FWSS18, eq. 10 prints another denominator.
    """

    def restart(self, x: Floats, scores: Floats, bandwidth: float, weights: Floats) -> Floats:
        """Replace the particles and the bandwidth; return the weights of the particles.

        Args:
            x: float64[N, d].
            scores: float64[N, d].
            bandwidth: Bandwidth of the kernel.
            weights: float64[N].

        Returns:
            float64[N], the weights; line search returns ``weights`` unchanged.
        """
        self.embedding.restart(x, scores, bandwidth)
        self._weights = weights
        return weights

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> StepResult:
        """Take a Frank-Wolfe step towards each new particle.

        Args:
            x: float64[N, d], all particles, the new ones last.
            scores: float64[N, d].
            bandwidth: Bandwidth of the kernel.
            n_new: Number of new particles.

        Returns:
            The new weights of all particles, and the step size and the duality gap of each step.
        """
        self.embedding.add(x, scores, bandwidth, n_new)
        self._weights = np.append(self._weights, np.zeros(n_new))
        z, _, self.jitter = self.embedding.at_particles()
        results = [self._add_weight(len(x) - n_new + i, z) for i in range(n_new)]
        steps, gaps = np.array(results).T
        return StepResult(self._weights, steps, gaps)

    def towards(self, particle: int) -> Floats:
        """Take a Frank-Wolfe step towards an existing particle, and return the new weights of all particles.

        Args:
            particle: Index of the particle.

        Returns:
            float64[N], the weights.
        """
        self._towards(particle, self.embedding.at_particles()[0])
        return self._weights

    def _add_weight(self, particle: int, z: Floats) -> tuple[float, float]:
        """Take the first step towards a new particle; return the step size and the duality gap."""
        return self._towards(particle, z)

    def _towards(self, particle: int, z: Floats) -> tuple[float, float]:
        """Take a step towards a particle; return the step size and the duality gap."""
        gap, squared = gap_to(self.embedding.system.matrix, z, self._weights, particle)
        step = min(max(gap / squared, 0.0), 1.0) if squared > 0 else 0.0
        self._weights = (1 - step) * self._weights
        self._weights[particle] += step
        return step, gap

    def _worst(self, slope: Floats) -> int:
        """Return the index of the particle with the largest ``slope``; particles of weight 0 are ignored."""
        support = np.flatnonzero(self._weights > 0)
        return int(support[np.argmax(slope[support])])

    def _along(self, direction: Floats, slope: Floats, leaves: int, most: float) -> float:
        """Move the weights along ``direction`` to the minimum of the MMD; return the step size, at most ``most``."""
        curvature = float(direction @ (self.embedding.system.matrix @ direction))
        step = min(max(-float(slope @ direction) / curvature, 0.0), most) if curvature > 0 else 0.0
        self._weights = self._weights + step * direction
        if step == most:
            self._weights[leaves] = 0.0
        return step


class AwaySteps(LineSearch):
    """Line search that takes steps away from the worst particle before the step towards the new particle.

    The worst particle is the one whose weight has the largest derivative of MMD^2. The source is Lacoste-Julien and
    Jaggi (2015), Algorithm 1.

    FWSS18 names the variants of its reference [20] as future work. The convergence rate is geometric even if mu_p is on
    the boundary of the hull of the particles' kernels, where line search zigzags. Steps away are taken as long as their
    duality gap is larger than the gap of the step towards the new particle, but at most as many as there are particles.
    The step towards the new particle follows in any case, so the new particle receives a weight, which it may lose
    later.
    """

    def _add_weight(self, particle: int, z: Floats) -> tuple[float, float]:
        for _ in range(len(z)):
            step, gap = self._towards(particle, z)
            if step > 0 or gap <= 0:
                return step, gap
        return super()._towards(particle, z)

    def _towards(self, particle: int, z: Floats) -> tuple[float, float]:
        slope = self.embedding.system.matrix @ self._weights - z
        own, worst = float(self._weights @ slope), self._worst(slope)
        gap, weight = own - float(slope[particle]), float(self._weights[worst])
        if slope[worst] - own <= gap or weight >= 1:
            return super()._towards(particle, z)
        direction = self._weights.copy()
        direction[worst] -= 1
        self._along(direction, slope, worst, weight / (1 - weight))
        return 0.0, gap


class PairwiseSteps(LineSearch):
    """Line search that moves weight from the worst particle (largest derivative of MMD^2) to the new particle.

    The source is Lacoste-Julien and Jaggi (2015), Algorithm 2.

    The convergence rate is geometric in the same cases as for `AwaySteps`.
    """

    def _towards(self, particle: int, z: Floats) -> tuple[float, float]:
        slope = self.embedding.system.matrix @ self._weights - z
        worst = self._worst(slope)
        direction = np.zeros(len(z))
        direction[worst] -= 1
        direction[particle] += 1
        gap = float(self._weights @ slope - slope[particle])
        return self._along(direction, slope, worst, float(self._weights[worst])), gap


class FullyCorrective(EmbeddedRule):
    """Step rule that recomputes the weights of all particles by Bayesian quadrature (FWSS18, eq. 11)."""

    def restart(self, x: Floats, scores: Floats, bandwidth: float, weights: Floats) -> Floats:
        """Replace the particles, and compute their weights; see `LineSearch.restart`."""
        refuse_duplicates(x, "particles")
        self.embedding.restart(x, scores, bandwidth)
        self._weights = self._solve()[0]
        return self._weights

    def add(self, x: Floats, scores: Floats, bandwidth: float, n_new: int) -> StepResult:
        """Add the new particles, and recompute the weights of all particles; see `LineSearch.add`."""
        refuse_duplicates(x, "particles", n_new)
        self.embedding.add(x, scores, bandwidth, n_new)
        before = np.append(self._weights, np.zeros(n_new))
        self._weights, z = self._solve()
        matrix, new = self.embedding.system.matrix, range(len(x) - n_new, len(x))
        gaps = np.array([gap_to(matrix, z, before, i)[0] for i in new])
        return StepResult(self._weights, self._weights[new.start :], gaps)

    def towards(self, particle: int) -> Floats:
        """Return the weights unchanged, because they are already optimal; see `LineSearch.towards`."""
        return self._weights

    def _solve(self) -> tuple[Floats, Floats]:
        z, weights, self.jitter = self.embedding.at_particles()
        if weights is None:
            weights = self.embedding.system.solve(z)
            self.jitter = self.embedding.system.jitter
        return weights, z


def gap_to(matrix: Floats, z: Floats, weights: Floats, particle: int) -> tuple[float, float]:
    """Return the duality gap of a step towards a particle (FWSS18, eq. 31), and the squared length of a full step.

    The gap is <mu - mu_p, mu - g> and the squared length ``|mu - g|^2``, where mu is the current mean, mu_p the kernel
    mean of the target, and g the kernel at the particle.

    Args:
        matrix: float64[N, N], the Gram matrix.
        z: float64[N], mu_p at the particles.
        weights: float64[N].
        particle: Index of the particle.
    """
    difference = weights.copy()
    difference[particle] -= 1
    towards = matrix @ difference
    return float(weights @ towards - difference @ z), float(difference @ towards)


StepRule = ConstantStep | LineSearch | FullyCorrective
"""Step rule of Frank-Wolfe, which computes the weights of all particles when new particles are added."""


def make_rule(step: str, mean: KernelMean | None) -> StepRule:
    """Return the step rule named ``step``, such as "line-search".

    Args:
        step: Name of the rule.
        mean: The kernel mean, or None to estimate it.

    Raises:
        ValueError: There is no such rule.
    """
    if step not in _RULES:
        raise ValueError(f"`step` must be one of {', '.join(map(repr, _RULES))}, got {step!r}")
    return _RULES[step](mean)


_RULES: Mapping[str, Callable[[KernelMean | None], StepRule]] = {
    "constant": lambda _: ConstantStep(),
    "line-search": LineSearch,
    "away": AwaySteps,
    "pairwise": PairwiseSteps,
    "fully-corrective": FullyCorrective,
}
