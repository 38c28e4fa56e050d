"""Weight sharing: HGW19, Fig. 1, both panels.

The left panel shows the median error of E[sum of x] on a ring of 9 variables, for Gibbs and for herding with 2, 4, 6 or
8 neighbours (by dummy edges). The right panel shows the mean error of E[x8] on a full graph of 8 variables, with
parameters uniform in [0, 0.1], for several numbers of bins. The exact expectations are computed by enumeration. Each
curve has 100 runs, as in the paper, with samples from the ends of sweeps.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from experiment import Experiment, command, powers
from hgw19_graphs import full_graph, ring

from herdner import FactorGraph, Gibbs, dhg, herded_gibbs, plain_gibbs
from herdner.inference.gibbs import blanket_sharing
from herdner.studies.convergence import count_visits, expectation_error

SPREAD = 0.05  # the second parameter of the paper's normal distributions, taken as the standard deviation


def errors(graph: FactorGraph, plan: Gibbs, lengths: list[int], values: np.ndarray, seed: int) -> np.ndarray:
    """Return the error of the mean of a function after each number of sweeps, [T]; ``values`` [Z, 2] is its table."""
    found = count_visits(graph, plan, lengths, seed=seed)
    return np.abs([expectation_error(values, visits, found.focus) for visits in found.visits])


def spins(n: int) -> np.ndarray:
    """Return the values of all variables in each joint state, [2^(n-1), 2, n]; the second axis is the last variable."""
    states = np.array(np.unravel_index(np.arange(2**n), (2,) * n)).T
    return (2.0 * states - 1).reshape(-1, 2, n)


def herding(neighbours: int) -> Gibbs:
    """Return HGW19's Herding(``neighbours``) for a ring of 9, with dummy edges to variables at distance 2, 3, .."""
    dummies = [(i, (i + k) % 9) for k in range(2, neighbours // 2 + 1) for i in range(9)]
    return Gibbs(sharing=blanket_sharing(), dummy_edges=dummies or None)


@command("hgw19_fig1", "HGW19 Fig. 1: weight sharing")
def main(experiment: Experiment) -> None:
    rng, runs, lengths = experiment.rng(), experiment.size(10, 100), powers(3, experiment.size(14, 19))
    nine = ring(9, rng.normal(0.5, SPREAD, 9), rng.normal(0.2, SPREAD, 9))
    eight = full_graph(rng, 0.0, 0.1)
    panels = {
        "left": (
            nine,
            spins(9).sum(axis=2),
            {"Gibbs": plain_gibbs()} | {f"Herding({n})": herding(n) for n in (2, 4, 6, 8)},
        ),
        "right": (
            eight,
            spins(8)[..., 7],
            {"Gibbs": plain_gibbs()} | {f"DHG, B={n}": dhg(n_bins=n, form="threshold") for n in (1, 4, 16, 64)}
            | {"HG": herded_gibbs()},
        ),
    }  # fmt: skip
    n_curves = sum(len(plans) for _, _, plans in panels.values())
    experiment.announce(lambda: count_visits(nine, plain_gibbs(), [lengths[-1]], seed=0), 1 / (n_curves * runs))
    figure, axes = experiment.axes(2)
    results: dict = {"lengths": lengths}
    for panel, (name, (graph, values, plans)) in zip(axes, panels.items(), strict=True):
        for label, plan in plans.items():
            found = experiment.repeat(partial(errors, graph, plan, lengths, values), runs)
            middle = np.median(found, axis=0) if name == "left" else found.mean(axis=0)
            results[f"{name}, {label}"] = middle
            panel.plot(np.log2(lengths), np.log2(np.maximum(middle, 1e-9)), label=label)
        panel.set_xlabel("log2 T")
    axes[0].set_ylabel("log2 of the median error of E[sum of x]")
    axes[1].set_ylabel("log2 of the mean error of E[x8]")
    experiment.finish(results, figure)
