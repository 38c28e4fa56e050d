"""Inference on graphs of the UAI-2014 competition, compared with pyAgrum, pgmpy and toulbar2.

    python scripts/benchmarks/bench_uai.py ../shared/data/uai [--task mpe] [--seconds 60] [--only Grids_11 Pedigree_11]
    python scripts/benchmarks/bench_uai.py ../shared/data/uai --task approximate --seconds 10

The task ``mar`` compares the marginals of all variables with the junction trees of pyAgrum and pgmpy. The column
*error* shows the largest total variation distance of herdner's marginals from those of the ``.MAR`` file if there is
one. The task ``mpe`` compares the most probable state with toulbar2. There, the column shows herdner's log-potential
minus that of toulbar2, whose costs have 8 decimal places. The task ``approximate`` shows, in place of times, the mean
total variation distance of the marginals of samplers and of loopy belief propagation from those of the ``.MAR`` file,
after at most ``--seconds``. pyAgrum samples and passes messages in Bayesian networks only (see
bench_belief_propagation.py), and its sampler exceeds the limit, because it checks the time only after its burn-in.

Each instance and program runs in a process of its own with 8 GB of memory and one thread. The table shows the processor
time of inference without the time to read the file, the best of up to five runs within one second. If a program ends
without a result, the table shows the reason: ``time``, ``memory``, ``refused`` (more than 2^33 table cells) or
``error``. The peers need pip install pyagrum pgmpy pytoulbar2; a peer that is not installed is left out. pyAgrum cannot
read graphs with variables of one state; for these, it gets the reduced graph without observed variables and impossible
states. pgmpy (1.1 or later, which does not need torch) always gets the reduced graph. Within 60 s, it does not even
solve Promedus_24.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypeVar

import numpy as np
from bench_belief_propagation import pyagrum_network, read_conditioned

from herdner.base.arrays import Floats
from herdner.graph import FactorGraph, TableFactors
from herdner.graph.tables import compile_tables
from herdner.graph.uai_files import read_evidence, read_marginals, read_uai, write_uai
from herdner.inference import make_backend
from herdner.inference.backends.exact import Exact
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.record import Record
from herdner.inference.time_limit import TimeLimited

MEMORY = 8 * 2**30
FORBIDDEN = 1e6  # cost of an impossible state in toulbar2
T = TypeVar("T")


def best_run(run: Callable[[], T]) -> tuple[T, float]:
    """Call a function up to five times within one second; return its result and the least processor time of a call."""
    results: list[T] = []
    times: list[float] = []
    while len(times) < 5 and sum(times) <= 1:
        began = process_time()
        results.append(run())
        times.append(process_time() - began)
    return results[-1], min(times)


def herdner_run(path: Path) -> dict[str, float]:
    """Return the seconds of exact inference and the error of its marginals."""
    graph = read_uai(path)
    evidence = read_evidence(path.with_name(path.name + ".evid"), graph)
    result, seconds = best_run(lambda: Exact(n_threads=1).infer(graph.condition(evidence), record=Record(best=False)))
    outcome = {"seconds": seconds}
    if path.with_name(path.name + ".MAR").exists() and result.marginals is not None:
        outcome["error"] = max(distances(path, result.marginals))
    return outcome


def distances(path: Path, marginals: Floats) -> list[float]:
    """Return the total variation distance of the marginal of each variable without evidence from the ``.MAR`` file."""
    graph = read_uai(path)
    expected = read_marginals(path.with_name(path.name + ".MAR"), graph)
    evidence = read_evidence(path.with_name(path.name + ".evid"), graph)
    rows = zip([row for v, row in enumerate(expected) if v not in evidence], marginals, strict=True)
    return [0.5 * float(np.abs(row[: len(truth)] - truth).sum()) for truth, row in rows]


def pyagrum_run(path: Path) -> dict[str, float]:
    """Return the seconds of pyAgrum's junction tree."""
    pyagrum: Any = import_module("pyagrum")

    pyagrum.setNumberOfThreads(1)
    evidence = read_evidence(path.with_name(path.name + ".evid"))
    whole = read_uai(path)
    if (compile_tables(whole).sizes > 1).all():
        graph = pyagrum.loadMRF(str(path))
    else:
        reduced = reduce_tables(compile_tables(whole.condition(evidence)))
        factors = [
            TableFactors([scope], (table - table.max())[None])
            for scope, table in zip(reduced.scopes, reduced.tables, strict=True)
        ]
        with TemporaryDirectory() as folder:
            write_uai(f"{folder}/reduced.uai", FactorGraph(reduced.sizes, factors))
            graph, evidence = pyagrum.loadMRF(f"{folder}/reduced.uai"), {}
    del whole

    def infer() -> None:
        inference = pyagrum.ShaferShenoyMRFInference(graph)
        inference.setEvidence({graph.variable(v).name(): state for v, state in evidence.items()})
        inference.makeInference()
        for v in graph.nodes():
            inference.posterior(v)

    return {"seconds": best_run(infer)[1]}


def pgmpy_run(path: Path) -> dict[str, float]:
    """Return the seconds of pgmpy's junction tree; raise ``AssertionError`` if its marginals differ from herdner's.

    pgmpy gets the reduced graph. It requires connected graphs, so each further component is joined to the first one by
    a factor of ones.
    """
    models: Any = import_module("pgmpy.models")
    factors: Any = import_module("pgmpy.factors.discrete")
    inference: Any = import_module("pgmpy.inference")
    compiled = compile_tables(read_conditioned(path))
    reduced = reduce_tables(compiled)
    n = len(reduced.sizes)
    model = models.DiscreteMarkovNetwork()
    model.add_nodes_from(range(n))
    for scope, table in zip(reduced.scopes, reduced.tables, strict=True):
        model.add_edges_from(itertools.combinations(scope, 2))
        model.add_factors(factors.DiscreteFactor(scope, table.shape, np.exp(table - table.max())))
    first, *others = (min(component) for component in import_module("networkx").connected_components(model))
    for v in others:
        sizes = reduced.sizes[first], reduced.sizes[v]
        model.add_edge(first, v)
        model.add_factors(factors.DiscreteFactor((first, v), sizes, np.ones(sizes)))
    marginals: list[Any] = [None] * n

    def infer() -> None:
        propagation = inference.BeliefPropagation(model)
        propagation.calibrate()
        for clique, belief in propagation.get_clique_beliefs().items():
            for v in clique:
                if marginals[v] is None:
                    marginals[v] = belief.marginalize([u for u in clique if u != v], inplace=False)

    _, seconds = best_run(infer)
    values = np.concatenate([each.values / each.values.sum() for each in marginals])
    expected = Exact(n_threads=1).infer(compiled, record=Record(best=False)).marginals
    assert expected is not None
    found = reduced.original_marginals(values, compiled.sizes)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    return {"seconds": seconds}


def herdner_best(path: Path) -> dict[str, float]:
    """Return the seconds of the search for the most probable state, and the log-potential of this state."""
    graph, record = read_conditioned(path), Record(best=True, marginals=False)
    result, seconds = best_run(lambda: Exact(n_threads=1).infer(graph, record=record))
    return {"seconds": seconds, "value": result.log_potential}


def toulbar2_best(path: Path) -> dict[str, float]:
    """Return the seconds of toulbar2 and the log-potential of its best state.

    toulbar2 gets the graph without impossible states. The cost of a table cell is its distance from the maximum.
    """
    toulbar2: Any = import_module("pytoulbar2")
    reduced = reduce_tables(compile_tables(read_conditioned(path)))
    network = toulbar2.CFN(FORBIDDEN, resolution=8)
    for v, size in enumerate(reduced.sizes):
        network.AddVariable(f"x{v}", range(size))
    offset = reduced.constant
    for scope, table in zip(reduced.scopes, reduced.tables, strict=True):
        top = float(table.max())
        offset += top
        costs = np.where(np.isneginf(table), FORBIDDEN, top - table)
        network.AddFunction([f"x{v}" for v in scope], costs.ravel().tolist())
    began = process_time()
    solution = network.Solve()
    return {"seconds": process_time() - began, "value": offset - solution[1]} if solution else {}


def herdner_approximation(path: Path, name: str, seconds: float) -> dict[str, float]:
    """Return the mean error of the marginals of a backend after ``seconds``."""
    graph = compile_tables(read_conditioned(path))
    options = {"n_threads": 1, "n_chains": 1} if name == "tempered" else {}
    if name == "gibbs":
        record = Record(best=False, marginals=False, rao_blackwell=True)
        result = TimeLimited(make_backend(name), seconds).infer(graph, 0, record=record)
    else:
        result = make_backend(name, seconds=seconds, **options).infer(graph, 0)
    marginals = result.marginals if result.rao_blackwell is None else result.rao_blackwell
    assert marginals is not None
    return {"error": float(np.mean(distances(path, marginals)))}


def pyagrum_approximation(path: Path, method: str, seconds: float) -> dict[str, float]:
    """Return the mean error of the marginals of a class of pyAgrum after ``seconds``."""
    pyagrum: Any = import_module("pyagrum")
    compiled = compile_tables(read_conditioned(path))
    reduced = reduce_tables(compiled)
    network, evidence = pyagrum_network(reduced)
    inference = getattr(pyagrum, method)(network)
    inference.setEvidence(evidence)
    inference.setMaxTime(seconds)
    inference.setMaxIter(10**8)
    inference.setEpsilon(1e-12)
    inference.setMinEpsilonRate(1e-300)
    inference.makeInference()
    rows = [inference.posterior(f"x{v}").toarray() for v in range(len(reduced.sizes))]
    marginals = reduced.original_marginals(np.concatenate([np.zeros(0), *rows]), compiled.sizes)
    return {"error": float(np.mean(distances(path, marginals)))}


PROGRAMS = {
    "mar": {"herdner": herdner_run, "pyAgrum": pyagrum_run, "pgmpy": pgmpy_run},
    "mpe": {"herdner": herdner_best, "toulbar2": toulbar2_best},
}
MODULES = {"herdner": "herdner", "pyAgrum": "pyagrum", "pgmpy": "pgmpy", "toulbar2": "pytoulbar2"}
APPROXIMATIONS: dict[str, Callable[..., dict[str, float]]] = {
    **{name: partial(herdner_approximation, name=name) for name in ("gibbs", "tempered", "belief-propagation")},
    "pyAgrum GibbsSampling": partial(pyagrum_approximation, method="GibbsSampling"),
    "pyAgrum LoopyBeliefPropagation": partial(pyagrum_approximation, method="LoopyBeliefPropagation"),
}


def run_alone(program: str, task: str, path: Path, seconds: float) -> dict[str, Any]:
    """Run one program in a child process, and return its result, or the reason why it has none."""
    command = [sys.executable, __file__, str(path), "--program", program, "--task", task, "--seconds", str(seconds)]
    child = subprocess.run(command, capture_output=True, text=True)
    lines = child.stdout.splitlines()
    outcome = json.loads(lines[-1]) if child.returncode == 0 and lines else {}
    if outcome.get("seconds", math.inf) <= seconds or ("error" in outcome and task == "approximate"):
        return outcome
    if outcome or child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"failure": "time"}
    if "UnsupportedGraph" in child.stderr:
        return {"failure": "refused"}
    is_memory = "MemoryError" in child.stderr or "NotEnoughMemory" in child.stderr or "bad_alloc" in child.stderr
    return {"failure": "memory" if is_memory else "error"}


def shown_error(run: dict[str, Any]) -> str:
    """Return the error of an outcome as text, or the reason why there is none."""
    return f"{run['error']:.4f}" if "error" in run else run["failure"]


def print_errors(files: Sequence[Path], seconds: float) -> None:
    """Print the mean errors of the marginals of all approximations, for graphs with exact marginals and their families.

    A family's mean is over the graphs for which the program has marginals; a dash means that there is none.
    """
    names = [name for name in APPROXIMATIONS if not name.startswith("pyAgrum") or find_spec("pyagrum") is not None]
    rule = "|---|" + "--:|" * len(names)
    errors: dict[str, dict[str, list[float]]] = {}
    print(f"| instance | {' | '.join(names)} |\n{rule}")
    for file in files:
        if not file.with_name(file.name + ".MAR").exists():
            continue
        runs = {name: run_alone(name, "approximate", file, seconds) for name in names}
        print(f"| {file.stem} | {' | '.join(map(shown_error, runs.values()))} |",
              flush=True)  # fmt: skip
        family = errors.setdefault(file.stem.rpartition("_")[0], {name: [] for name in names})
        for name in names:
            family[name] += [runs[name]["error"]] if "error" in runs[name] else []
    print(f"\n| family | {' | '.join(names)} |\n{rule}")
    for family, by_name in errors.items():
        means = [f"{np.mean(each):.4f}" if each else "-" for each in by_name.values()]
        print(f"| {family} | {' | '.join(means)} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Exact inference on UAI graphs.")
    parser.add_argument("path", type=Path, help="folder of .uai files with .evid files")
    parser.add_argument("--task", choices=[*PROGRAMS, "approximate"], default="mar", help="results to compare")
    parser.add_argument("--seconds", type=float, default=60, help="largest time for one instance")
    parser.add_argument("--only", nargs="*", help="names of instances")
    parser.add_argument("--alone", action="store_true", help="run herdner without the peer")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        # Processor seconds, with the start of the process and the burn-in of pyAgrum's sampler.
        limit = int(options.seconds if options.task in PROGRAMS else max(options.seconds, 60)) + 10
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        if options.task in PROGRAMS:
            outcome = PROGRAMS[options.task][options.program](options.path)
        else:
            outcome = APPROXIMATIONS[options.program](options.path, seconds=options.seconds)
        print("\n" + json.dumps(outcome))
        return
    files = [file for file in sorted(options.path.glob("*.uai")) if not options.only or file.stem in options.only]
    if options.task == "approximate":
        print_errors(files, options.seconds)
        return
    peers = [] if options.alone else [name for name in PROGRAMS[options.task] if name != "herdner"]
    for name in [name for name in peers if find_spec(MODULES[name]) is None]:
        print(f"{name} is not installed and left out; pip install {MODULES[name]}")
        peers.remove(name)
    names = ["herdner", *peers]
    solved = dict.fromkeys(names, 0)
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    print("| instance | herdner, s | error |" + "".join(f" {name}, s |" for name in peers))
    print("|---|--:|--:|" + "--:|" * len(peers))
    for file in files:
        runs = {name: run_alone(name, options.task, file, options.seconds) for name in names}
        for name, run in runs.items():
            solved[name] += "seconds" in run
        for peer in peers:
            if "seconds" in runs[peer] and "seconds" in runs["herdner"]:
                if runs[peer]["seconds"] and runs["herdner"]["seconds"]:  # 0 is below the resolution of the clock
                    ratios[peer].append(runs[peer]["seconds"] / runs["herdner"]["seconds"])
                if "value" in runs[peer]:
                    runs["herdner"]["error"] = runs["herdner"]["value"] - runs[peer]["value"]
        error = runs["herdner"].get("error")
        times = [f"{run['seconds']:.3g}" if "seconds" in run else run["failure"] for run in runs.values()]
        cells = [file.stem, times[0], "-" if error is None else f"{error:.0e}", *times[1:]]
        print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\nsolved within {options.seconds:g} s: {solved} of {len(files)}")
    for peer in peers:
        if ratios[peer]:
            mean = np.exp(np.mean(np.log(ratios[peer])))
            print(f"{peer}'s time over herdner's, geometric mean of {len(ratios[peer])}: {mean:.1f}")


if __name__ == "__main__":
    main()
