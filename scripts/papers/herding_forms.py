"""Accuracy of the two forms of herding: circular (carry) and threshold (HG16, Alg. 1; HGW19, Alg. 5).

    python scripts/papers/herding_forms.py [--runs 40]

The script measures the mean absolute error of the marginals over runs, on three graphs of 8 or 9 variables: a ring and
a full graph with parameters as in HGW19, Sec. 5 and 6, and a 3 x 3 grid. With one weight per state of the Markov
blanket, the two forms differ only in their initial weights. If several probabilities share a weight (bins), the two
forms are different algorithms.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import typer
from sampler_errors import RECORD, errors

from herdner.graph import FactorGraph, boltzmann_machine, ising
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import bin_sharing, blanket_sharing

FORMS: tuple[Literal["circular", "threshold"], ...] = ("circular", "threshold")


def graphs(rng: np.random.Generator) -> dict[str, FactorGraph]:
    ring = np.stack([np.arange(8), (np.arange(8) + 1) % 8], axis=1)
    weights = np.triu(rng.uniform(0, 0.1, (8, 8)), 1)
    return {
        "ring": boltzmann_machine(rng.uniform(0, 1, 8), rng.uniform(0, 1, 8), states=(-1, 1), edges=ring),
        "full": boltzmann_machine(weights + weights.T, rng.uniform(0, 0.1, 8), states=(-1, 1)),
        "grid": ising(0.3, rng.normal(0, 0.5, (3, 3))),
    }


def main(runs: Annotated[int, typer.Option(min=1, help="Number of runs per sampler.")] = 40) -> None:
    """Print the errors of the marginals of both forms of herding on small graphs, compared with exact marginals."""
    lengths = (32, 256, 2048, 16384)
    print("error x 10^5, circular / threshold   " + "".join(f"{f'T = {t}':>16}" for t in lengths))
    for name, graph in graphs(np.random.default_rng(0)).items():
        for sharing in (bin_sharing(1), bin_sharing(4), bin_sharing(16), blanket_sharing()):
            cells = [
                [errors(Gibbs(t, sharing=sharing, form=form, record=RECORD), graph, runs)[0] for form in FORMS]
                for t in lengths
            ]
            print(f"{name:6}{sharing!s:31}" + "".join(f"{f'{1e5 * a:.0f} / {1e5 * b:.0f}':>16}" for a, b in cells))


if __name__ == "__main__":
    typer.run(main)
