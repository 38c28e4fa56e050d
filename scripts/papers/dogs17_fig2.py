"""DoGS17, Fig. 2, 10, 11 (Sec. 5.2): time for one marginal of a large Ising grid, with and without an optimised scan.

    python scripts/papers/dogs17_fig2.py [--side 1000]

The target is E[x_1] of a corner, with couplings uniform in [0, 0.25]. The paper has fields of 0 or 1 and states that
E[x_1] = 0 by symmetry. The symmetry holds only without fields, so the graph of this script has no fields; for a graph
with the paper's fields, only the number of updates is computed. Two systematic sweeps are compared with the DoGS scan
of the same guarantee. The paper's grids have side lengths 1000 (with a DoGS scan of 16 updates) and 300.
"""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer
from dogs17 import Copies, as_good_as_systematic, random_ising
from experiment import Experiment, command
from numpy.typing import NDArray

import herdner
from herdner.dobrushin import OptimisedScan, binary_pairwise_bound
from herdner.graph import FactorGraph

SAMPLES = 100_000  # of the short scan, drawn together


def by_systematic(graph: FactorGraph, seeds: list[int]) -> tuple[NDArray[np.float64], float]:
    """Return x_1 after two systematic sweeps from random states, and the seconds of one run without compilation."""
    compiled = herdner.compile_tables(graph)
    plan = herdner.plain_gibbs(2, record=herdner.Record(best=False, marginals=False))
    plan.infer(compiled, 0)
    began = time.perf_counter()
    spins = [2.0 * plan.infer(compiled, seed).state[0] - 1.0 for seed in seeds]
    return np.array(spins), (time.perf_counter() - began) / len(seeds)


def by_dogs(graph: FactorGraph, scan: OptimisedScan, seed: int, n_samples: int) -> tuple[NDArray[np.float64], float]:
    """Return x_1 after a DoGS scan from random states, and the seconds of a run on the variables that it reads."""
    pairs = graph.factors[1]
    assert isinstance(pairs, herdner.TableFactors)
    scopes = pairs.scopes
    near = np.isin(scopes, scan.order).any(axis=1)
    kept = np.unique(np.append(scopes[near], scan.order))
    place = np.searchsorted(kept, scopes[near]).astype(np.int32)
    kept_pairs = herdner.TableFactors(place, pairs.tables, pairs.table_of_factor[near], pairs.scale[near])
    part = FactorGraph(np.full(len(kept), 2), [kept_pairs])
    copies = Copies.of(part, n_samples)
    order = np.searchsorted(kept, scan.order)
    copies.run(order, seed)  # lays out the conditionals
    began = time.perf_counter()
    states = copies.run(order, seed)
    seconds = time.perf_counter() - began
    return 2.0 * states[:, np.searchsorted(kept, 0)].astype(np.float64) - 1.0, seconds / n_samples


@command("dogs17_fig2_{side}", "DoGS17 Fig. 2: {side} x {side} Ising grid")
def main(experiment: Experiment, side: Annotated[int, typer.Option(help="Side length of the grid.")] = 1000) -> None:
    side = experiment.size(100, side)
    experiment.title = f"DoGS17 Fig. 2: {side} x {side} Ising grid"
    graph = random_ising(experiment.rng(), side, fields=False)
    n_steps = 2 * side * side
    found, goal, setup = as_good_as_systematic(lambda: binary_pairwise_bound(graph), {0: 1.0}, n_steps)
    graph_with_fields = random_ising(experiment.rng(), side)
    with_fields, _, _ = as_good_as_systematic(lambda: binary_pairwise_bound(graph_with_fields), {0: 1.0}, n_steps)
    long_spins, long_seconds = by_systematic(graph, experiment.seeds(experiment.size(5, 40)))
    short_spins, short_seconds = by_dogs(graph, found, experiment.seeds(1, 1)[0], experiment.size(2000, SAMPLES))
    figure, (left, right) = experiment.axes(2)
    for name, spins, began, each in (
        ("systematic", long_spins, 0.0, long_seconds),
        ("DoGS", short_spins, setup, short_seconds),
    ):
        n = np.arange(1, len(spins) + 1)
        left.semilogx(began + n * each, np.cumsum(spins) / n, label=name)
    left.axhline(0, color="0.5", linewidth=0.8)
    left.set(xlabel="seconds, set-up included", ylabel="estimate of E[x_1]", ylim=(-1, 1))
    n = np.logspace(0, 6, 61)
    speedup = n * long_seconds / (setup + n * short_seconds)
    right.loglog(n, speedup)
    right.set(xlabel="samples", ylabel="speed-up, end to end")
    print(f"{found.n_steps} updates ({with_fields.n_steps} with fields) in place of {n_steps}:"
          f" {short_seconds * 1e6:.3g} us a sample in place of {long_seconds * 1e3:.3g} ms,"
          f" after {setup:.3g} s of set-up")  # fmt: skip
    results = {
        "side": side, "setup_seconds": setup,
        "n_steps": {"systematic": n_steps, "DoGS": found.n_steps, "DoGS, fields": with_fields.n_steps},
        "guarantee": {"systematic": goal, "DoGS": found.bound},
        "seconds_a_sample": {"systematic": long_seconds, "DoGS": short_seconds},
        "estimate": {"systematic": long_spins.mean(), "DoGS": short_spins.mean()},
        "samples": {"systematic": len(long_spins), "DoGS": len(short_spins)},
        "speedup": {"samples": n, "times": speedup},
    }  # fmt: skip
    experiment.finish(results, figure)
