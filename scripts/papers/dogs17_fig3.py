"""DoGS17, Fig. 3 (Sec. 5.3): MCMC maximum likelihood of 3 x 3 and 4 x 4 Ising grids.

Training samples have independent, uniform entries, as in Domke 2015. The plot shows the distance to the optimal
parameters against updates. Three scans are compared: uniform random (Domke's), systematic, and the DoGS scan that is
optimised from the uniform scan. Each scan has a guarantee that the joint state is within total variation 0.01 of the
model. Step size, number of runs and samples are choices of this project, because the paper refers to Domke for them. In
the paper, DoGS reaches the same accuracy much sooner than the uniform random scan, the only other scan of its Fig. 3.
The script counts the updates of each scan until its error is 1.5 times the largest final error of all scans.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from experiment import Experiment, command
from maximum_likelihood import fit_binary
from numpy.typing import NDArray
from scipy.optimize import minimize

import herdner

SCANS: tuple[Literal["uniform", "systematic", "dogs"], ...] = ("uniform", "systematic", "dogs")
COLOURS = dict(zip(SCANS, ("tab:green", "tab:blue", "tab:orange"), strict=True))
LABELS = dict(zip(SCANS, ("uniform random", "systematic", "DoGS"), strict=True))


def optimum(edges: NDArray, products: NDArray, means: NDArray) -> NDArray[np.float64]:
    """Return the maximum-likelihood parameters, by enumeration of all states and BFGS."""
    n, data = len(means), np.concatenate([products, means])
    spins = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1.0
    statistics = np.concatenate([spins[:, edges[:, 0]] * spins[:, edges[:, 1]], spins], axis=1)

    def loss(theta: NDArray) -> tuple[float, NDArray]:
        scores = statistics @ theta
        weights = np.exp(scores - scores.max())
        log_z = float(scores.max() + np.log(weights.sum()))
        return log_z - float(data @ theta), (weights / weights.sum()) @ statistics - data

    return minimize(loss, np.zeros(len(data)), jac=True, method="BFGS", options={"gtol": 1e-9}).x


@command("dogs17_fig3", "DoGS17 Fig. 3: MCMC maximum likelihood")
def main(experiment: Experiment) -> None:
    n_gradients, n_runs = experiment.size(8, 30), experiment.size(100, 2000)
    figure, panels = experiment.axes(2)
    results = {}
    for side, ax in zip((3, 4), panels, strict=True):
        edges = herdner.ising(1.0, 0.0, (side, side)).factors[1].scopes
        spins = experiment.rng(side).choice([-1.0, 1.0], (experiment.size(200, 1000), side * side))
        products, means = (spins[:, edges[:, 0]] * spins[:, edges[:, 1]]).mean(axis=0), spins.mean(axis=0)
        best = optimum(edges, products, means)
        found: dict = {}
        for scan in SCANS:
            runs = []
            for number, each in enumerate(experiment.seeds(experiment.size(2, 5), side)):
                fit = fit_binary(edges, products, means, scan, each, n_gradients=n_gradients, n_runs=n_runs)
                errors = np.linalg.norm(fit.path - best, axis=1)
                updates = np.concatenate([[0], np.cumsum(fit.n_steps) * n_runs])
                ax.semilogy(updates, errors, color=COLOURS[scan], label=None if number else LABELS[scan])
                runs.append({"errors": errors, "updates": updates, "seconds": fit.seconds})
            found[scan] = runs
        level = found["level"] = 1.5 * max(float(r["errors"][-5:].mean()) for scan in SCANS for r in found[scan])
        near = {scan: [r["updates"][np.argmax(r["errors"] <= level)] for r in found[scan]] for scan in SCANS}
        found["updates_to_level"] = {k: [float(np.mean(n)), float(np.std(n, ddof=1))] for k, n in near.items()}
        ax.set(title=f"{side} x {side}", xlabel="updates", ylabel="distance to the optimum")
        results[f"{side} x {side}"] = found
    experiment.finish({"n_runs": n_runs, "grids": results}, figure)
