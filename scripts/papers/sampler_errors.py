"""Errors of the marginals of samplers on small graphs, by the number of sweeps.

    python scripts/papers/sampler_errors.py [--runs 12]

The script prints the mean absolute error of all marginals over several runs, compared with exact marginals: by counts
and, after the slash, by Rao-Blackwellised averages.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from herdner.graph import FactorGraph, boltzmann_machine, ising, potts
from herdner.inference import Backend, make_backend
from herdner.inference.record import Record

METHODS: dict[str, tuple[str, dict]] = {
    "gibbs": ("gibbs", {}),
    "qmc-gibbs": ("qmc-gibbs", {}),
    "bounded-error": ("bounded-error", {}),
    "herded-gibbs": ("herded-gibbs", {}),
    "herded-gibbs, complete": ("herded-gibbs", {"sharing": "complete"}),
    "dhg": ("dhg", {}),
    "circular-dhg": ("circular-dhg", {}),
    "rdhg": ("rdhg", {}),
}
RECORD = Record(best=False, rao_blackwell=True)
LENGTHS = (511, 4095, 32767)  # whole periods of a shift register


def graphs(rng: np.random.Generator) -> dict[str, FactorGraph]:
    weights = np.triu(rng.normal(0, 0.15, (10, 10)), 1)
    return {
        "Ising grid 4x4, J = 0.3": ising(0.3, rng.normal(0, 0.5, (4, 4))),
        "Ising grid 4x4, J = 0.7": ising(0.7, rng.normal(0, 0.5, (4, 4))),
        "Potts grid 3x3, 4 labels": potts(0.5, rng.normal(0, 1, (3, 3, 4))),
        "complete graph of 10": boltzmann_machine(weights + weights.T, rng.normal(0, 0.3, 10), states=(-1, 1)),
    }


def errors(backend: Backend, graph: FactorGraph, runs: int) -> tuple[float, float]:
    """Return the mean errors of the marginals by counts and of the Rao-Blackwellised marginals."""
    truth = make_backend("exact").infer(graph).marginals
    results = [backend.infer(graph, seed) for seed in range(runs)]
    assert truth is not None
    found = [[r.marginals, r.rao_blackwell] for r in results if r.marginals is not None and r.rao_blackwell is not None]
    by_counts, by_conditionals = np.abs(np.array(found) - truth).mean(axis=(0, 2, 3))
    return float(by_counts), float(by_conditionals)


def main(runs: Annotated[int, typer.Option(min=1, help="Number of runs per sampler.")] = 12) -> None:
    """Print the errors of the marginals of samplers on small graphs, by the number of sweeps."""
    print("error x 10^5" + " " * 12 + "".join(f"{f'{n} sweeps':>16}" for n in LENGTHS))
    for title, graph in graphs(np.random.default_rng(0)).items():
        print(title)
        for shown, (name, options) in METHODS.items():
            backends = [make_backend(name, n_sweeps=n, record=RECORD, **options) for n in LENGTHS]
            cells = ["{:.0f} / {:.0f}".format(*(1e5 * e for e in errors(b, graph, runs))) for b in backends]
            print(f"  {shown:22}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    typer.run(main)
