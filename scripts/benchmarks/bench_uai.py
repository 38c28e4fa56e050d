"""Exact marginals of graphs of the UAI-2014 competition, beside pyAgrum's junction tree.

    python scripts/benchmarks/bench_uai.py ../shared/data/uai [--seconds 60] [--only Grids_11 Pedigree_11]

Each instance and program runs in a process of its own with 8 GB of memory and one thread. The table shows the processor
time of inference without the time to read the file, the best of up to five runs within one second, and the largest
difference from the marginals of the ``.MAR`` file if there is one. The peer needs pip install pyagrum; without it, its
column is empty. pyAgrum cannot read graphs with variables of one state, so its column is empty there too.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

import numpy as np

from herdner.graph.uai_files import read_evidence, read_marginals, read_uai
from herdner.inference.backends.exact import Exact
from herdner.inference.record import Record

MEMORY = 8 * 2**30
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
    truth = path.with_name(path.name + ".MAR")
    if truth.exists() and result.marginals is not None:
        expected = read_marginals(truth)
        free = [v for v in range(len(expected)) if v not in evidence]
        rows = zip(free, result.marginals, strict=True)
        outcome["error"] = max(float(np.abs(row[: len(expected[v])] - expected[v]).max()) for v, row in rows)
    return outcome


def pyagrum_run(path: Path) -> dict[str, float]:
    """Return the seconds of pyAgrum's junction tree."""
    pyagrum: Any = import_module("pyagrum")

    pyagrum.setNumberOfThreads(1)
    graph = pyagrum.loadMRF(str(path))
    evidence = read_evidence(path.with_name(path.name + ".evid"))

    def infer() -> None:
        inference = pyagrum.ShaferShenoyMRFInference(graph)
        inference.setEvidence({graph.variable(v).name(): state for v, state in evidence.items()})
        inference.makeInference()
        for v in graph.nodes():
            inference.posterior(v)

    return {"seconds": best_run(infer)[1]}


PROGRAMS = {"herdner": herdner_run, "pyagrum": pyagrum_run}


def run_alone(program: str, path: Path, seconds: float) -> dict[str, float]:
    """Run one program in a child process; the result is empty after the time or beyond the memory."""
    command = [sys.executable, __file__, str(path), "--program", program, "--seconds", str(seconds)]
    child = subprocess.run(command, capture_output=True, text=True)
    return json.loads(child.stdout) if child.returncode == 0 else {}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Exact marginals of UAI graphs.")
    parser.add_argument("path", type=Path, help="folder of .uai files with .evid files")
    parser.add_argument("--seconds", type=float, default=60, help="largest time for one instance")
    parser.add_argument("--only", nargs="*", help="names of instances")
    parser.add_argument("--program", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        limit = int(options.seconds) + 10  # processor seconds with the start of the process
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        print(json.dumps(PROGRAMS[options.program](options.path)))
        return
    files = [file for file in sorted(options.path.glob("*.uai")) if not options.only or file.stem in options.only]
    ratios, solved = [], dict.fromkeys(PROGRAMS, 0)
    print("| instance | herdner, s | error | pyAgrum, s |\n|---|--:|--:|--:|")
    for file in files:
        programs = [name for name in PROGRAMS if name != "pyagrum" or find_spec("pyagrum")]
        runs = {name: run_alone(name, file, options.seconds) for name in programs}
        times = {name: run.get("seconds", math.inf) for name, run in runs.items()}
        for name, took in times.items():
            solved[name] += took <= options.seconds
        if times["herdner"] < math.inf and times.get("pyagrum", math.inf) < math.inf:
            ratios.append(times["pyagrum"] / times["herdner"])
        error = runs["herdner"].get("error")
        cells = [f"{times.get(name, math.inf):.3g}".replace("inf", "-") for name in PROGRAMS]
        print(f"| {file.stem} | {cells[0]} | {'-' if error is None else f'{error:.0e}'} | {cells[1]} |", flush=True)
    print(f"\nsolved within {options.seconds:g} s: {solved} of {len(files)}")
    if ratios:
        print(f"pyAgrum's time over herdner's, geometric mean of {len(ratios)}: {np.exp(np.mean(np.log(ratios))):.1f}")


if __name__ == "__main__":
    main()
