"""FWSS18, Theorems 1 to 6 and eq. 46 on a distribution over few points, for which all constants can be computed.

On few points, the space of the kernel has as many dimensions as there are points, and the oracle is exact: it checks
every point. Left panel: all points have positive probability, so the kernel mean mu_p is inside the marginal polytope,
and the theorems bound MMD. Lazy FWSS (Theorems 5 and 6) takes the worst point that is good enough. Right panel: 16 of
20 points have probability 0, so mu_p is on the boundary of the polytope. On the boundary, the radius R is 0 and the
theorems give no bound. Line search then zigzags, but away and pairwise steps (Lacoste-Julien and Jaggi 2015) still
converge geometrically. The script also compares the mass of normal posteriors with Theorems 2 and 4, and the particles
of `block_fwss` computed by one and by two workers (App. F).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from experiment import Experiment, command
from scipy.stats import norm

from herdner.studies.fwss import (
    MarginalPolytope,
    block_fwss,
    eleven_gaussians,
    mmd2,
    quadrature_variance,
    quadrature_weights,
)
from herdner.studies.fwss.kernels import SampleMean, gram
from herdner.studies.fwss.steps import LineSearch, make_rule

STEPS = ("constant", "line-search", "away", "pairwise", "fully-corrective")
BOUNDED = ("constant", "line-search", "away", "fully-corrective")
H = 0.5


@dataclass(frozen=True)
class Finite:
    """Distribution with probabilities ``chances`` [M] on the points ``x`` [M, 2]."""

    x: np.ndarray
    chances: np.ndarray

    @property
    def mean(self) -> SampleMean:
        return SampleMean(self.x, self.chances)

    def chosen(self, weights: np.ndarray) -> int:
        """Return the index of the point towards which MMD^2 falls most steeply (the exact oracle)."""
        return int(np.argmin(gram(self.x, H) @ (weights - self.chances)))

    def weights(self, step: str, n: int) -> Iterator[np.ndarray]:
        """Yield the weights [M] of the points after each of ``n`` steps of a rule towards the oracle's points."""
        first = np.eye(len(self.x))[0]
        counts = first.copy()
        rule = make_rule(step, self.mean)
        if isinstance(rule, LineSearch):
            rule.restart(self.x, np.zeros_like(self.x), H, first)
        weights = first
        for _ in range(n):
            yield weights
            at = self.chosen(weights)
            counts[at] += 1
            if isinstance(rule, LineSearch):
                weights = rule.towards(at)
            elif step == "constant":
                weights = counts / counts.sum()
            else:
                taken = np.flatnonzero(counts)
                weights = np.zeros(len(self.x))
                weights[taken] = quadrature_weights(self.x[taken], self.mean, H)[0]

    def lazy(self, accuracy: float, n: int) -> Iterator[tuple[np.ndarray, float]]:
        """Yield the weights [M] of the points, and Phi, after each of ``n`` steps of Algorithm 10 by line search.

        Phi is halved if no point has a gap of Phi / accuracy (Alg. 9).
        """
        weights, matrix = np.eye(len(self.x))[0], gram(self.x, H)
        rule = LineSearch(self.mean)
        rule.restart(self.x, np.zeros_like(self.x), H, weights)
        phi = np.inf
        for _ in range(n):
            field = matrix @ (weights - self.chances)
            gaps = field @ weights - field
            phi = min(phi, gaps.max() / 2)
            while gaps.max() < phi / accuracy:
                phi /= 2
            if phi < 1e-12:
                return
            good = np.flatnonzero(gaps >= phi / accuracy)
            weights = rule.towards(int(good[np.argmin(gaps[good])]))
            yield weights, phi

    def mmd(self, step: str, n: int) -> np.ndarray:
        """Return the MMD after each of ``n`` steps of a rule, [n]."""
        root = np.linalg.cholesky(gram(self.x, H))
        return np.array([np.linalg.norm((w - self.chances) @ root) for w in self.weights(step, n)])


def scattered(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return ``n`` random points of a square, [n, 2], with pairwise distances of at least H / 2."""
    points = rng.uniform(-1, 1, (1, 2))
    while len(points) < n:
        one = rng.uniform(-1, 1, 2)
        if np.linalg.norm(points - one, axis=1).min() > H / 2:
            points = np.vstack([points, one])
    return points


def bounds(finite: Finite, n: int) -> dict[str, float]:
    """Return MMD and the bounds of Theorems 1 and 3, their mean ratio, and the number of violations."""
    polytope = MarginalPolytope.of(finite.x, finite.chances, H)
    result = {"diameter": polytope.diameter, "radius": polytope.radius, "above": 0, "checks": 0}
    for step in BOUNDED:
        measured = finite.mmd(step, n)
        allowed = np.array([polytope.bound(k, step) for k in range(1, n + 1)])
        result["above"] += int((measured > allowed * (1 + 1e-9) + 1e-12).sum())
        result["checks"] += n
        result[f"last / bound, {step}"] = float(measured[-1] / allowed[-1])
    return result


def lazy_bounds(finite: Finite, n: int) -> dict[str, float]:
    """Return MMD and a normal posterior's mass beyond gamma = 2 MMD, with their bounds by Theorems 5 and 6."""
    polytope = MarginalPolytope.of(finite.x, finite.chances, H)
    root = np.linalg.cholesky(gram(finite.x, H))
    found = {"above": 0, "checks": 0, "nearest": 0.0, "phi": 1.0}
    for accuracy in (1.0, 2.0, 8.0):
        for k, (weights, phi) in enumerate(finite.lazy(accuracy, n), 2):
            measured = float(np.linalg.norm((weights - finite.chances) @ root))
            allowed = polytope.lazy_bound(k, phi, accuracy)
            mass = float(norm.cdf(-1) + norm.sf(3))  # the mean is off by MMD, which is the standard deviation
            tail = polytope.lazy_contraction(k, 2 * measured, phi, accuracy) if measured > 1e-9 else 1.0
            found["above"] += int(measured > allowed) + int(mass > tail)
            found["checks"] += 2
            found["nearest"], found["phi"] = max(found["nearest"], measured / allowed), min(found["phi"], phi)
    return found


def contraction(finite: Finite) -> dict[str, float]:
    """Compare the mass of a normal posterior beyond gamma with Theorems 2 and 4, for quadrature on the first N points.

    The integrands are the worst one and random ones, all of norm 1.
    """
    polytope, m = MarginalPolytope.of(finite.x, finite.chances, H), len(finite.x)
    root, rng = np.linalg.cholesky(gram(finite.x, H)), np.random.default_rng(0)
    found = {"above": 0, "checks": 0, "nearest": 0.0, "last": polytope.contraction(10**7, 0.1)}
    for n in range(1, m):
        weights = quadrature_weights(finite.x[:n], finite.mean, H)[0]
        off = finite.chances - np.append(weights, np.zeros(m - n))
        spread = float(np.sqrt(quadrature_variance(finite.x[:n], finite.mean, H)))
        for c in [off, *rng.normal(size=(5, m))]:
            error = float(off @ root @ root.T @ c / np.linalg.norm(c @ root))
            for gamma in (0.1, 0.5, 1.0, 2.0):
                mass = float(norm.cdf((-gamma + error) / spread) + norm.sf((gamma + error) / spread))
                for step in ("line-search", "fully-corrective"):
                    allowed = polytope.contraction(n, gamma, step)
                    found["above"] += int(mass > allowed + 1e-12)
                    found["checks"] += 1
                    found["nearest"] = max(found["nearest"], mass / allowed if allowed > 1e-300 else 0.0)
    return found


def blocks_differ() -> float:
    """Return the largest difference between particles of `block_fwss` computed by one worker and by two workers."""
    one, two = (block_fwss(eleven_gaussians(), 40, blocks=2, workers=n, seed=0).x for n in (1, 2))
    return float(np.abs(one - two).max())


def tails(experiment: Experiment, problems: Sequence[Finite]) -> None:
    """Compare normal posteriors with Theorems 2 and 4, and blocks of one worker with those of two workers."""
    found = [contraction(one) for one in problems]
    results = {name: sum(one[name] for one in found) for name in ("above", "checks")}
    results |= {name: max(one[name] for one in found) for name in ("nearest", "last")}
    experiment.finish({"contraction": results, "blocks": blocks_differ()})


def variance(finite: Finite) -> float:
    """Return the largest difference between eq. 46 and the MMD^2 of quadrature weights on the first N points."""
    apart = []
    for n in range(1, len(finite.x)):
        some = finite.x[:n]
        weights = quadrature_weights(some, finite.mean, H)[0]
        apart.append(quadrature_variance(some, finite.mean, H) - mmd2(some, finite.mean, H, weights))
    return float(np.abs(apart).max())


def per_step(values: np.ndarray) -> float:
    """Return the factor by which MMD falls per step: a least-squares fit to log MMD above rounding errors."""
    seen = np.flatnonzero(values > 1e-7)
    seen = seen[len(seen) // 4 :]
    return float(np.exp(np.polyfit(seen, np.log(values[seen]), 1)[0]))


def above_rounding(values: np.ndarray) -> np.ndarray:
    return np.where(values > 1e-12, values, np.nan)


@command("fwss_theorems", "FWSS18 Theorems 1 to 6, eq. 46: on finitely many points")
def main(experiment: Experiment) -> None:
    rng, n, problems = experiment.rng(), experiment.size(300, 2000), experiment.size(20, 200)
    inner = [Finite(scattered(rng, 5), rng.dirichlet(np.full(5, 5.0))) for _ in range(problems)]
    x = scattered(rng, 20)
    outer = Finite(x, np.where(np.arange(20) % 5 == 2, 0.25, 0.0))
    held, lazy = [bounds(one, n) for one in inner], [lazy_bounds(one, 300) for one in inner]
    tails(experiment.part("fwss_theorems_tails", "FWSS18 Theorems 2 and 4, App. F"), inner)
    edge = {step: outer.mmd(step, n) for step in STEPS}
    results = {
        "above": sum(one["above"] for one in held), "checks": sum(one["checks"] for one in held),
        "problems": problems, "particles": n, "first": held[0],
        "nearest": max(v for one in held for k, v in one.items() if k.startswith("last")),
        "lazy": {name: sum(one[name] for one in lazy) for name in ("above", "checks")}
        | {"nearest": max(one["nearest"] for one in lazy), "phi": min(one["phi"] for one in lazy)},
        "eq. 46 - eq. 47": max(variance(one) for one in inner[:20]),
        "radius, boundary": MarginalPolytope.of(x, outer.chances, H).radius,
        "boundary": {step: {"last": float(v[-1]), "per step": per_step(v)} for step, v in edge.items()},
    }  # fmt: skip
    figure, (left, right) = experiment.axes(2)
    polytope = MarginalPolytope.of(inner[0].x, inner[0].chances, H)
    for step in STEPS:
        (line,) = left.semilogy(above_rounding(inner[0].mmd(step, n)), label=step)
        right.semilogy(above_rounding(edge[step]), color=line.get_color(), label=step)
        if step in ("constant", "line-search"):
            allowed = [polytope.bound(k, step) for k in range(1, n + 1)]
            left.semilogy(allowed, ":", color=line.get_color(), label=f"{step}, Theorem 3")
    left.set(title="MMD, 5 points, mu_p inside", xlabel="particles N", ylim=(1e-12, 3))
    right.set(title="MMD, 20 points, mu_p on the boundary", xlabel="steps", ylim=(1e-12, 3))
    experiment.finish(results, figure)
