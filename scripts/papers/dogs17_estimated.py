"""Bias of DoGS scans from influences that are estimated from samples instead of bounded (no guarantee).

Bounds of influences hold for the worst joint state. With strong couplings, these bounds allow every variable to
influence every other variable strongly. The graphs are random Ising grids of 3 x 4 with weak to strong couplings and
strong fields, so that visited states are far from the worst. The bias is exact: the total variation distance between a
corner's distribution after T updates, from the worst of four initial states, and its target marginal. It is computed by
applying each update to the whole distribution. The scans have equal lengths: systematic, DoGS by the tightest bound of
influence, and DoGS by the mean influence in the states of a Gibbs run.
"""

from __future__ import annotations

import numpy as np
from experiment import Experiment, command

from herdner import FactorGraph, boltzmann_machine, plain_gibbs
from herdner.dobrushin import InfluenceEstimate, dobrushin_variation, optimise_scan, tightest_influence
from herdner.inference.record import Record
from herdner.studies.convergence import joint_distribution
from herdner.studies.convergence.exact import full_conditional

ROWS, COLUMNS = 3, 4
N = ROWS * COLUMNS
STATES = Record(best=False, marginals=False, every=5)


def grid(rng: np.random.Generator, strength: float) -> FactorGraph:
    edges = [[i, i + 1] for i in range(N) if (i + 1) % COLUMNS] + [[i, i + COLUMNS] for i in range(N - COLUMNS)]
    return boltzmann_machine(strength * rng.normal(size=len(edges)), rng.normal(size=N), (-1, 1), edges=edges)


def bias(whole: np.ndarray, order: np.ndarray, target: int) -> float:
    """Return the largest bias of a marginal after a scan from all 0, all 1, or either of two checkerboards."""
    others = tuple(i for i in range(whole.ndim) if i != target)
    truth, chequered = whole.sum(axis=others), np.indices((ROWS, COLUMNS)).sum(axis=0).ravel() % 2
    updates, worst = {i: full_conditional(whole, i) for i in range(whole.ndim)}, 0.0
    for first in (np.zeros(N, int), np.ones(N, int), chequered, 1 - chequered):
        law = np.zeros(whole.shape)
        law[tuple(first)] = 1
        for i in order.tolist():
            law = law.sum(axis=i, keepdims=True) * updates[i]
        worst = max(worst, float(np.abs(law.sum(axis=others) - truth).sum() / 2))
    return worst


def compared(graph: FactorGraph, n_steps: int, seed: int) -> dict[str, float]:
    """Return the bias of each scan, and the guarantee of each scan by the bound of influences."""
    bound, importance, whole = tightest_influence(graph), {0: 1.0}, joint_distribution(graph)
    samples = plain_gibbs(n_sweeps=1000, burn_in=100, record=STATES).infer(graph, seed).samples
    assert samples is not None
    estimate = InfluenceEstimate.of(graph, samples[0])
    orders = {
        "systematic": np.resize(np.arange(N), n_steps),
        "DoGS, bound": optimise_scan(bound, None, importance, n_steps, iterations=5).order,
        "DoGS, estimate": estimate.order(None, importance, n_steps, iterations=5),
    }
    biases = {name: bias(whole, order, 0) for name, order in orders.items()}
    return biases | {
        f"{name}, guarantee": dobrushin_variation(bound, order, importance) for name, order in orders.items()
    }


@command("dogs17_estimated", "DoGS17: influences estimated from samples")
def main(experiment: Experiment) -> None:
    strengths, n_graphs, n_steps = (0.2, 0.5, 1.0, 2.0), experiment.size(5, 30), N
    rng, results = experiment.rng(), {}
    experiment.announce(
        lambda: compared(grid(np.random.default_rng(0), 1.0), n_steps, 0), 1 / (n_graphs * len(strengths))
    )
    for strength in strengths:
        graphs = [grid(rng, strength) for _ in range(n_graphs)]
        rows = [compared(one, n_steps, seed) for one, seed in zip(graphs, experiment.seeds(n_graphs), strict=True)]
        means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        better = sum(row["DoGS, estimate"] < row["DoGS, bound"] - 1e-12 for row in rows)
        total = float(np.mean([tightest_influence(one).total.smallest for one in graphs]))
        results[str(strength)] = {**means, "estimate ahead": better, "graphs": n_graphs, "total influence": total}
    figure, (panel,) = experiment.axes(1)
    for name in ("systematic", "DoGS, bound", "DoGS, estimate"):
        panel.semilogy(strengths, [results[str(s)][name] for s in strengths], marker=".", label=name)
    panel.set(title=f"bias of a corner after {n_steps} updates", xlabel="standard deviation of the couplings")
    experiment.finish({"steps": n_steps, "strengths": results}, figure)
