"""Herding and Rao-Blackwell estimates: HGW19, Fig. 9.

The figure shows the mean error of E[x8] over 100 runs on full graphs of 8 variables, with parameters uniform in [0,
0.5] and in [0, 0.1], for Gibbs, DHG(64) and RDHG(64), by counts and by the average of the conditionals (RB).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from experiment import Experiment, command, powers
from hgw19_graphs import full_graph

from herdner import FactorGraph, Gibbs, dhg, plain_gibbs, rdhg
from herdner.studies.convergence import count_visits, expectation_error, rao_blackwell_error


def errors(graph: FactorGraph, plan: Gibbs, lengths: list[int], seed: int) -> np.ndarray:
    """Return the error of E[x8] after each number of sweeps, by counts and by conditionals, [2, T]; x is -1 or 1."""
    found = count_visits(graph, plan, lengths, seed=seed)
    x = np.broadcast_to([-1.0, 1.0], found.focus.target.shape)
    measures = (expectation_error, rao_blackwell_error)
    return np.abs([[error(x, visits, found.focus) for visits in found.visits] for error in measures])


@command("hgw19_fig9", "HGW19 Fig. 9: E[x8] on complete graphs of 8, RB beside herding")
def main(experiment: Experiment) -> None:
    runs, lengths = experiment.size(10, 100), powers(3, experiment.size(14, 19))
    plans = {"Gibbs": plain_gibbs(), "DHG(64)": dhg(n_bins=64, form="threshold"), "RDHG(64)": rdhg(n_bins=64)}
    graphs = {f"0 to {high}": full_graph(experiment.rng(), 0.0, high) for high in (0.5, 0.1)}
    experiment.announce(
        lambda: count_visits(graphs["0 to 0.5"], plain_gibbs(), [lengths[-1]], seed=0),
        1 / (len(plans) * len(graphs) * runs),
    )
    figure, panels = experiment.axes(2)
    results: dict = {"lengths": lengths}
    for axes, (name, graph) in zip(panels, graphs.items(), strict=True):
        for label, plan in plans.items():
            found = experiment.repeat(partial(errors, graph, plan, lengths), runs).mean(axis=0)
            (line,) = axes.plot(np.log2(lengths), np.log2(found[0]), label=label)
            axes.plot(np.log2(lengths), np.log2(found[1]), "--", color=line.get_color(), label=f"{label}, RB")
            results[f"{name}, {label}"], results[f"{name}, {label}, RB"] = found
        axes.set(title=f"parameters {name}", xlabel="log2 T", ylabel="log2 of the mean error of E[x8]")
    experiment.finish(results, figure)
