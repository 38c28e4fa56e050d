"""Speed and marginals of belief propagation on graphs of the UAI-2014 competition, compared with pyAgrum.

    python scripts/benchmarks/bench_belief_propagation.py ../shared/data/uai [--only Grids_11 DBN_12]

Both programs send all messages of the same reduced graph in each undamped sweep (flooding), in turn and in one thread.
The table shows processor time. The time of a sweep of pyAgrum is the difference between a run of many sweeps and a run
of one sweep, divided by the number of further sweeps, so set-up is excluded. pyAgrum passes messages in Bayesian
networks only: each factor becomes an observed binary variable, with the factor's variables as its parents. The last
columns show the sweeps until herdner's messages converge, with flooding and with the residual schedule, and the largest
difference between the marginals of both programs if both converge. The comparison needs pip install pyagrum; without
this package, the columns of pyAgrum are empty.
"""

from __future__ import annotations

import argparse
import math
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from timing import best_times

from herdner.graph.graph import FactorGraph
from herdner.graph.tables import compile_tables
from herdner.graph.uai_files import read_evidence, read_uai
from herdner.inference.elimination_order import ReducedGraph, reduce_tables
from herdner.inference.factor_messages import FactorLayout, MessagePassing, Schedule

TOLERANCE = 1e-10
PYAGRUM_TOLERANCE = 1e-15  # of the change of its messages; a larger one leaves differences of 1e-6
MOST_SWEEPS = 1000


def read_conditioned(path: Path) -> FactorGraph:
    """Read a graph, and condition it on the evidence in its ``.evid`` file."""
    graph = read_uai(path)
    return graph.condition(read_evidence(path.with_name(path.name + ".evid"), graph))


def propagate(reduced: ReducedGraph, schedule: Schedule, tolerance: float, n_sweeps: int) -> MessagePassing:
    """Run herdner's belief propagation, and return its final state."""
    run = MessagePassing(FactorLayout.of(reduced), n_sweeps, tolerance, 1.0, schedule)
    run.run()
    if run.interrupted:
        raise KeyboardInterrupt
    return run


def herdner_sweep_seconds(reduced: ReducedGraph) -> float:
    """Return the seconds of a sweep of herdner: the shortest of five measurements of 20 sweeps."""
    loop = MessagePassing(FactorLayout.of(reduced), 1, 0.0, 1.0).loop

    def sweep_often() -> None:
        for _ in range(20):
            at = 0
            while at < len(reduced.scopes):
                at = loop.sweep(at)

    return best_times({"herdner": sweep_often}, 5, process_time)["herdner"] / 20


def pyagrum_network(reduced: ReducedGraph) -> tuple[Any, dict[str, int]]:
    """Return a Bayesian network and evidence, which together have the distribution of the graph."""
    import pyagrum  # pyright: ignore[reportMissingImports]

    pyagrum.setNumberOfThreads(1)
    network, evidence = pyagrum.BayesNet(), {}
    for v, size in enumerate(reduced.sizes):
        network.add(pyagrum.LabelizedVariable(f"x{v}", "", size))
        network.cpt(v).fillWith(1.0 / size)
    for f, (scope, table) in enumerate(zip(reduced.scopes, reduced.tables, strict=True)):
        child = network.add(pyagrum.LabelizedVariable(f"f{f}", "", 2))
        for v in scope:
            network.addArc(v, child)
        p = np.exp(table - table.max())
        axes = [scope.index(int(name[1:])) for name in reversed(network.cpt(child).names) if name != f"f{f}"]
        network.cpt(child)[:] = np.ascontiguousarray(np.stack([1 - p, p], axis=-1).transpose([*axes, p.ndim]))
        evidence[f"f{f}"] = 1
    return network, evidence


def pyagrum_run(network: Any, evidence: dict[str, int], n_sweeps: int, tolerance: float) -> tuple[Any, float]:
    """Run pyAgrum's loopy belief propagation, and return pyAgrum's inference object and the seconds of the run."""
    import pyagrum  # pyright: ignore[reportMissingImports]

    inference = pyagrum.LoopyBeliefPropagation(network)
    inference.setEvidence(evidence)
    inference.setMaxIter(n_sweeps)
    inference.setEpsilon(tolerance)
    inference.setMinEpsilonRate(1e-300)
    began = process_time()
    inference.makeInference()
    return inference, process_time() - began


def pyagrum_sweep_seconds(network: Any, evidence: dict[str, int]) -> float:
    """Return the seconds of a sweep of pyAgrum, from the shortest of three runs of eleven sweeps and of one sweep."""
    best = math.inf
    for _ in range(3):
        one, first = pyagrum_run(network, evidence, 1, 1e-300)
        many, whole = pyagrum_run(network, evidence, 11, 1e-300)
        if many.nbrIterations() > one.nbrIterations():
            best = min(best, (whole - first) / (many.nbrIterations() - one.nbrIterations()))
    return best


def largest_difference(run: MessagePassing, inference: Any) -> float:
    """Return the largest difference between the marginals of both programs."""
    rows = enumerate(np.split(run.loop.marginals, np.cumsum(run.layout.sizes)[:-1]))
    return max(float(np.abs(row - inference.posterior(v).toarray()).max()) for v, row in rows)


def sweeps(run: MessagePassing) -> str:
    """Return the number of sweeps until convergence as text, or "-" if the messages did not converge."""
    return f"{run.n_messages / len(run.layout.scope):.0f}" if run.converged else "-"


def main() -> None:
    """Print a table with a row for each graph."""
    parser = argparse.ArgumentParser(description="Belief propagation on UAI graphs.")
    parser.add_argument("path", type=Path, help="folder of .uai files with .evid files")
    parser.add_argument("--only", nargs="*", help="names of the graphs to measure [default: all]")
    options = parser.parse_args()
    has_peer, ratios = find_spec("pyagrum") is not None, []
    print("| instance | messages | herdner, us per sweep | pyAgrum, us per sweep | ratio | sweeps, flooding |"
          " sweeps, residual | difference |\n|---|--:|--:|--:|--:|--:|--:|--:|")  # fmt: skip
    for file in sorted(options.path.glob("*.uai")):
        if options.only and file.stem not in options.only:
            continue
        has_evidence = file.with_name(file.name + ".evid").exists()
        reduced = reduce_tables(compile_tables(read_conditioned(file) if has_evidence else read_uai(file)))
        ours, theirs, difference = herdner_sweep_seconds(reduced), math.inf, "-"
        flooding, residual = (propagate(reduced, name, TOLERANCE, MOST_SWEEPS) for name in ("flooding", "residual"))
        if has_peer:
            network, evidence = pyagrum_network(reduced)
            theirs = pyagrum_sweep_seconds(network, evidence)
            ratios.append(theirs / ours)
            if flooding.converged:
                inference, _ = pyagrum_run(network, evidence, 200, PYAGRUM_TOLERANCE)
                if "epsilon" in inference.messageApproximationScheme():
                    difference = f"{largest_difference(flooding, inference):.0e}"
        times = [f"{1e6 * ours:.0f}", *(f"{1e6 * theirs:.0f} {theirs / ours:.0f}".split() if has_peer else "--")]
        cells = [file.stem, len(flooding.layout.scope), *times, sweeps(flooding), sweeps(residual), difference]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    if ratios:
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"\npyAgrum's time over herdner's, geometric mean of {len(ratios)}: {mean:.0f}")


if __name__ == "__main__":
    main()
