"""HG16, Sec. 5: herded Gibbs with parallel updates, and the effect of parallel updates on the bias.

The authors' parallel version is asynchronous Jacobi, which updates all variables at once and is less efficient than
their Gauss-Seidel sweeps. Sweeps by the colours of a graph colouring are parallel and still Gauss-Seidel: variables of
one colour do not depend on each other, so several threads can update them. The top panels show the L1 error of the
joint at the ends of sweeps, by enumeration, on a 3 x 4 Ising grid and on a ring of nine, which needs three colours,
with random parameters. The script also checks that two threads give the same states as one thread, and measures the
time of a sweep of a large grid.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
from experiment import Experiment, command, powers

from herdner import FactorGraph, Gibbs, boltzmann_machine, herded_gibbs, ising, plain_gibbs
from herdner.graph.scan import Scan, checkerboard_scan, jacobi_scan, systematic_scan
from herdner.inference.record import Record
from herdner.studies.convergence import joint_distribution

SCANS = {"in order": systematic_scan(), "coloured": checkerboard_scan(), "Jacobi": jacobi_scan()}
KEPT = Record(best=False, marginals=False, joint=True)


def graphs(rng: np.random.Generator) -> dict[str, FactorGraph]:
    edges = [[i, (i + 1) % 9] for i in range(9)]
    ring = boltzmann_machine(rng.uniform(-1, 1, 9), rng.uniform(-1, 1, 9), (-1, 1), edges=edges)
    return {"grid of 3 x 4": ising(0.4, 0.5 * rng.normal(size=(3, 4))), "ring of 9": ring}


def error(graph: FactorGraph, plan: Gibbs, scan: Scan, n_sweeps: int, seed: int) -> float:
    """Return the L1 distance between the joint distribution of the states after sweeps and the target distribution."""
    found = replace(plan, n_sweeps=n_sweeps, burn_in=0, scan=scan, record=KEPT).infer(graph, seed).joint
    assert found is not None
    return float(np.abs(found - joint_distribution(graph)).sum())


def seconds(plan: Gibbs, side: int, n_threads: int) -> tuple[float, np.ndarray]:
    """Return the seconds of a sweep on a grid, and the last state."""
    graph = ising(0.3, np.random.default_rng(0).normal(size=(side, side)))
    plan = replace(plan, n_sweeps=20, scan=checkerboard_scan(), n_threads=n_threads, record=Record(False, False))
    plan.infer(graph, 0)
    began = time.perf_counter()
    state = plan.infer(graph, 0).state
    return (time.perf_counter() - began) / plan.n_sweeps, state


@command("hg16_parallel", "HG16 Sec. 5: herded Gibbs in parallel")
def main(experiment: Experiment) -> None:
    lengths, runs = powers(6, experiment.size(20, 24), 2), experiment.size(2, 10)
    figure, panels = experiment.axes(2)
    found: dict = {}
    chosen = graphs(experiment.rng())
    experiment.announce(
        lambda: error(chosen["ring of 9"], herded_gibbs(), systematic_scan(), lengths[-1] // 64, 0), 1 / (1024 * runs)
    )
    for panel, (name, graph) in zip(panels, chosen.items(), strict=True):
        found[name] = {}
        for plan_name, plan in (("Gibbs", plain_gibbs()), ("HG", herded_gibbs())):
            for scan_name, scan in SCANS.items():
                errors = [experiment.repeat(partial(error, graph, plan, scan, n), runs).mean() for n in lengths]
                found[name][f"{plan_name}, {scan_name}"] = errors
                panel.loglog(lengths, errors, "--" if plan_name == "Gibbs" else "-", label=f"{plan_name}, {scan_name}")
        panel.set(title=name, xlabel="sweeps T", ylabel="L1 error of the joint")
    side = experiment.size(512, 2048)
    (one, first), (two, second) = (seconds(herded_gibbs(), side, n) for n in (1, 2))
    print(f"{side} x {side}, a sweep: {1000 * one:.2f} ms by one thread, {1000 * two:.2f} by two")
    results = {"lengths": lengths, "errors": found, "side": side, "seconds": [one, two]}
    experiment.finish(results | {"same": np.array_equal(first, second)}, figure)
