"""Two variables that tend to be equal: HG16, Fig. 5 (a, b, c).

The figure shows P(X1 = 1) and the L1 error of the joint for eps = 0.1 to 0.0001, after up to 2.6 * 10^5 sweeps. Gibbs,
and Gibbs driven by the whole period of a shift register (MCQMC), have 100 runs, drawn by median and quartiles. Herded
Gibbs has one run, drawn by the envelope of its error: the largest error from each time on.

The paper uses the whole period of the register in one run. In this script, as in Chen et al. 2012, the run has twice
this length, and each number is used at each of the two steps of a sweep. The variant "once" has a register of twice the
period, and uses each number once.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from experiment import Experiment, command, envelope, summary

from herdner import FactorGraph, Gibbs, graph_from_joint, herded_gibbs, plain_gibbs, qmc_gibbs
from herdner.inference.gibbs import LFSR
from herdner.studies.convergence import count_visits

EPSILONS = (0.1, 0.01, 0.001, 0.0001)


def methods(degree: int) -> dict[str, tuple[Gibbs, str]]:
    """Return the plan and the colour of each method, for 2^degree - 1 sweeps."""
    return {
        "Gibbs": (plain_gibbs(), "tab:blue"),
        "MCQMC": (qmc_gibbs(), "tab:green"),
        "MCQMC, once": (Gibbs(driving=LFSR(degree + 1)), "tab:olive"),
        "herded Gibbs": (herded_gibbs(), "tab:red"),
    }


def model(epsilon: float) -> FactorGraph:
    """Return the model of HG16, Table 1."""
    return graph_from_joint([[0.25 - epsilon, epsilon], [epsilon, 0.75 - epsilon]])


def path(graph: FactorGraph, plan: Gibbs, lengths: list[int], seed: int) -> np.ndarray:
    """Return the estimate of P(X1 = 1) and the L1 error of the joint after each number of sweeps, [2, T]."""
    found = count_visits(graph, plan, lengths, seed=seed)
    first = found.visits[:, 0, 1, :].sum(axis=1) / np.array(lengths)
    return np.array([first, [errors.all for errors in found.errors]])


def decorate(a, b, c, epsilon: float) -> None:
    a.axhline(0.75, color="black", linewidth=0.7)
    a.set_ylim(0.4, 1.0)
    a.set(title=f"eps = {epsilon}", xscale="log", ylabel="P(X1 = 1)")
    b.set(xscale="log", yscale="log", ylabel="L1 error of the joint")
    c.set(xscale="linear", yscale="linear", ylabel="1 / error", xlabel="sweeps")
    c.locator_params(axis="x", nbins=4)


@command("hg16_fig5", "HG16 Fig. 5: a two-variable model, eps = 0.1 to 0.0001")
def main(experiment: Experiment) -> None:
    degree, runs = experiment.size(13, 18), experiment.size(20, 100)
    lengths = np.unique(np.geomspace(8, 2**degree - 1, 70).astype(int)).tolist()
    experiment.announce(lambda: path(model(0.1), qmc_gibbs(), lengths, 0), 1 / (2.2 * runs * len(EPSILONS)))
    figure, panels = experiment.axes(len(EPSILONS), 3, 3.8, 3.0)
    results: dict = {"lengths": lengths}
    for column, epsilon in enumerate(EPSILONS):
        a, b, c = (panels[row * len(EPSILONS) + column] for row in range(3))
        for name, (plan, colour) in methods(degree).items():
            n = 1 if name == "herded Gibbs" else runs
            found = experiment.repeat(partial(path, model(epsilon), plan, lengths), n)
            if n == 1:
                found[:, 1] = envelope(found[:, 1])
            quantiles = summary(found)
            results[f"eps={epsilon}, {name}"] = quantiles
            for axes, k, turn in ((a, 0, 1), (b, 1, 1), (c, 1, -1)):
                axes.plot(lengths, quantiles["median"][k] ** turn, color=colour, label=name if axes is a else None)
                if n > 1:
                    axes.fill_between(
                        lengths, quantiles["low"][k] ** turn, quantiles["high"][k] ** turn, color=colour, alpha=0.2
                    )
        decorate(a, b, c, epsilon)
    experiment.finish(results, figure)
