"""Decay of the MMD of FWSS18 in more than two dimensions, with bandwidths that adapt to the particles.

The paper measures its rate in two dimensions with a fixed bandwidth, and leaves the choice of the bandwidth open. The
targets here are mixtures of four Gaussians in 2, 3, 5 and 10 dimensions, whose kernel mean is exact for every
bandwidth. Weights are equal, or those of Bayesian quadrature for the particles of a line search. The bandwidth is fixed
at the median distance of two draws divided by sqrt(2), or follows the rules "median" and "ksd" as particles are added.
MMD is always measured at the fixed bandwidth, and compared with the mean MMD of N exact samples.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from experiment import Experiment, command
from fwss_toy import rates, truth

from herdner.studies.fwss import Adam, Target, fwss, gaussian_mixture, mmd2, quadrature_weights

DIMENSIONS = (2, 3, 5, 10)
RULES = ("fixed", "median", "ksd")
STEPS = {"equal weights": "constant", "quadrature weights": "line-search"}


def mixture(dim: int, rng: np.random.Generator) -> Target:
    """Return a mixture of four equally weighted Gaussians with covariances 0.5 I and random means."""
    means = 3 / np.sqrt(dim) * rng.normal(size=(4, dim))
    return gaussian_mixture(np.full(4, 0.25), means, np.broadcast_to(0.5 * np.eye(dim), (4, dim, dim)))


def usual_bandwidth(target: Target, rng: np.random.Generator) -> float:
    assert target.draw is not None
    x, y = target.draw(rng, 500), target.draw(rng, 500)
    return float(np.median(np.linalg.norm(x - y, axis=1)) / np.sqrt(2))


def fall(target: Target, h: float, rule: str, step: str, sizes: list[int], seed: int) -> list[float]:
    """Return the MMD^2 of the first N particles of FWSS, for each N of ``sizes``."""
    bandwidth = h if rule == "fixed" else rule
    points = fwss(target, sizes[-1], step=step, bandwidth=bandwidth, optimiser=Adam(0.2, 0.02), seed=seed)  # type: ignore
    found, mean = [], truth(target)
    for n in sizes:
        some = points.x[:n]
        weights = None if step == "constant" else quadrature_weights(some, mean, h)[0]
        found.append(max(mmd2(some, mean, h, weights), 1e-16))
    return found


@command("fwss_dimensions", "FWSS18: bandwidth and rate in 2 to 10 dimensions")
def main(experiment: Experiment) -> None:
    sizes = [n for n in (5, 8, 12, 18, 27, 40, 60, 90, 135, 200) if n <= experiment.size(60, 200)]
    results: dict = {"sizes": sizes}
    runs = experiment.size(2, 10)
    probe = mixture(5, np.random.default_rng(0))
    share = 1 / (len(DIMENSIONS) * len(RULES) * len(STEPS) * runs)
    experiment.announce(lambda: fall(probe, 1.0, "median", "constant", sizes, 0), share)
    figure, panels = experiment.axes(len(DIMENSIONS), rows=2, width=3.6, height=3.2)
    for column, dim in enumerate(DIMENSIONS):
        target = mixture(dim, experiment.rng(dim))
        h = usual_bandwidth(target, experiment.rng(100 + dim))
        one = 1 - truth(target).squared_norm(h)
        for row, (weights, step) in enumerate(STEPS.items()):
            panel = panels[row * len(DIMENSIONS) + column]
            for rule in RULES:
                curves = experiment.repeat(partial(fall, target, h, rule, step, sizes), runs, dim)
                found = np.exp(np.log(curves).mean(axis=0))
                results[f"{dim} dimensions, {weights}, {rule}"] = {
                    "mmd2": found, "exponent": rates(np.array(sizes), found)["exponent of N"],
                    "exact samples": one / sizes[-1], "h": h,
                }  # fmt: skip
                panel.loglog(sizes, found, marker=".", label=rule)
            panel.loglog(sizes, one / np.array(sizes), "k:", label="exact samples")
            panel.set_xticks([5, 10, 20, 50, 100, 200][: 4 if sizes[-1] < 100 else 6])
            panel.set_xticks([], minor=True)
            panel.xaxis.set_major_formatter("{x:.0f}")
            panel.set(title=f"{dim} dimensions, {weights}", xlabel="particles N", ylabel="MMD$^2$")
    experiment.finish(results, figure)
