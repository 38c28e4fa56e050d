"""DoGS17 Fig. 2, 10, 11 (Sec. 5.2): one marginal of a large Ising grid, seconds with and without an optimised scan.

    python scripts/papers/dogs17_fig2.py [--side 1000] [--quick] [--seed 0] [--out out]

The target is E[x_1] of the first corner, couplings uniform in [0, 0.25]. The paper has fields of 0 or 1 and says that
E[x_1] = 0 by symmetry; that holds without fields, so there are none here. A scan of two systematic sweeps is held
against the DoGS scan of the same guarantee. Sizes in the paper: 1000 (DoGS scan of 16 updates) and 300.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from dogs17 import Copies, random_ising
from experiment import Experiment, Out, Quick, Seed
from numpy.typing import NDArray

import herdner
from herdner.dobrushin import OptimisedScan, binary_pairwise_bound, dobrushin_variation, shortest_scan
from herdner.graph import FactorGraph
from herdner.sampling import systematic

SAMPLES = 100_000  # of the short scan, drawn together


def main(
    side: Annotated[int, typer.Option(help="Variables along a side of the grid.")] = 1000,
    quick: Quick = False, seed: Seed = 0, out: Out = Path("out"),
) -> None:  # fmt: skip
    experiment = Experiment(f"dogs17_fig2_{side}", f"DoGS17 Fig. 2: {side} x {side} Ising grid", quick, seed, out)
    side = experiment.size(100, side)
    graph = random_ising(experiment.rng(), side, fields=False)
    n_steps = 2 * side * side
    found, setup = select(graph, n_steps)
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
    left.legend()
    n = np.logspace(0, 6, 61)
    speedup = n * long_seconds / (setup + n * short_seconds)
    right.loglog(n, speedup)
    right.set(xlabel="samples", ylabel="speed-up, end to end")
    print(f"{found.n_steps} updates in place of {n_steps}: {short_seconds * 1e6:.3g} us a sample in place of"
          f" {long_seconds * 1e3:.3g} ms, after {setup:.3g} s of set-up")  # fmt: skip
    results = {
        "side": side, "n_steps": {"systematic": n_steps, "DoGS": found.n_steps}, "setup_seconds": setup,
        "guarantee": {"systematic": found_goal(graph, n_steps), "DoGS": found.bound},
        "seconds_a_sample": {"systematic": long_seconds, "DoGS": short_seconds},
        "estimate": {"systematic": long_spins.mean(), "DoGS": short_spins.mean()},
        "samples": {"systematic": len(long_spins), "DoGS": len(short_spins)},
        "speedup": {"samples": n, "times": speedup},
    }  # fmt: skip
    experiment.finish(results, figure)


def found_goal(graph: FactorGraph, n_steps: int) -> float:
    return dobrushin_variation(binary_pairwise_bound(graph), systematic(), {0: 1.0}, n_steps)


def select(graph: FactorGraph, n_steps: int) -> tuple[OptimisedScan, float]:
    """The length-doubling search, and the seconds from the graph to the scan."""
    began = time.perf_counter()
    influence = binary_pairwise_bound(graph)
    goal = dobrushin_variation(influence, systematic(), {0: 1.0}, n_steps)
    found = shortest_scan(influence, goal, systematic(), {0: 1.0}, n_steps)
    assert found is not None  # the systematic scan itself reaches its bound
    return found, time.perf_counter() - began


def by_systematic(graph: FactorGraph, seeds: list[int]) -> tuple[NDArray[np.float64], float]:
    """x_1 after two sweeps from random states, and the seconds of one, compilation left out."""
    compiled = herdner.compile_tables(graph)
    plan = herdner.gibbs(2, record=herdner.Record(best=False, marginals=False))
    plan.infer(compiled, 0)
    began = time.perf_counter()
    spins = [2.0 * plan.infer(compiled, seed).state[0] - 1.0 for seed in seeds]
    return np.array(spins), (time.perf_counter() - began) / len(seeds)


def by_dogs(graph: FactorGraph, scan: OptimisedScan, seed: int, n_samples: int) -> tuple[NDArray[np.float64], float]:
    """x_1 after a DoGS scan from random states: copies of the variables that it reads, the only ones that need to be
    there.
    """
    scopes = graph.factors[1].scopes
    near = np.isin(scopes, scan.order).any(axis=1)
    kept = np.unique(np.append(scopes[near], scan.order))
    place = np.searchsorted(kept, scopes[near]).astype(np.int32)
    pairs = graph.factors[1]
    kept_pairs = herdner.TableFactors(place, pairs.tables, pairs.table_of_factor[near], pairs.scale[near])
    part = FactorGraph(np.full(len(kept), 2), [kept_pairs])
    copies = Copies.of(part, n_samples)
    order = np.searchsorted(kept, scan.order)
    copies.run(order, seed)  # lays out the conditionals
    began = time.perf_counter()
    states = copies.run(order, seed)
    return 2.0 * states[:, np.searchsorted(kept, 0)] - 1.0, (time.perf_counter() - began) / n_samples


if __name__ == "__main__":
    typer.run(main)
