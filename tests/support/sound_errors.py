"""No bound on a herded sampler's error is below that error: random small graphs, plans, lengths and functions.

    python tests/support/sound_errors.py [--cases 20000] [--first 0] [--labels]

Each case is a graph of two to five variables of two labels, or with --labels of two or three variables of two to four,
with weak to strong couplings, one plan of the Gibbs family, one number of sweeps and one function f of the state.
Compared are the error of the mean of f with `Lambdas.bound`, D^all with the sum of the parts, and, for two labels,
D^herding with `herding_bound`, of unknown width and of the width of the plan.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import numpy as np

from herdner import FactorGraph, Gibbs, TableFactors, boltzmann
from herdner.inference.backends.gibbs import bounded_error_gibbs, dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import bin_sharing, blanket_sharing, complete_sharing
from herdner.studies.convergence import (
    Lambdas,
    approx_bound,
    count_visits,
    expectation_error,
    herding_bound,
    rao_blackwell_bound,
    rao_blackwell_error,
)

SLACK = 1e-9  # probabilities are herded as multiples of 2^-32


def labelled_graph(rng: np.random.Generator) -> FactorGraph:
    """Return a random graph of pairs; a quarter of the graphs forbid some pairs of states."""
    sizes = [3, *rng.integers(2, 5, rng.choice([1, 2]))]
    strength, factors = rng.choice([0.3, 1.5, 3.0]), []
    for i in range(len(sizes) - 1):
        table = rng.normal(size=(sizes[i], sizes[i + 1])) * strength
        if rng.random() < 0.25:
            table[0, 0] = -np.inf
        factors.append(TableFactors([[i, i + 1]], table[None]))
    return FactorGraph(sizes, factors)


def random_graph(rng: np.random.Generator) -> FactorGraph:
    n, strength = int(rng.choice([2, 2, 2, 3, 5])), rng.choice([0.3, 1.5, 3.0])
    weights = np.triu(rng.normal(size=(n, n)) * strength, 1) * (rng.random((n, n)) < 0.8)
    return boltzmann(weights + weights.T, rng.normal(size=n) * strength, (-1, 1))


def random_plan(rng: np.random.Generator) -> tuple[str, Gibbs, int | None, float | None]:
    """Its kind; the plan; how many weights it has, None: as many as are met; how far apart what one sees can be."""
    n, c = int(rng.choice([1, 1, 2, 3, 8])), float(rng.choice([0.5, 1.0, 4.0]))
    kinds = {
        "blanket": (herded_gibbs(), None, 0.0),
        "blanket, threshold": (herded_gibbs(form="threshold"), None, 0.0),
        "complete": (herded_gibbs(sharing=complete_sharing()), None, 0.0),
        "bins, threshold": (dhg(n_bins=n, form="threshold"), n, 1 / n),
        "bins, circular": (dhg(n_bins=n, form="circular"), n, 0.0),
        "random bins": (rdhg(n_bins=n), n + 1, 0.0),
        "bounded error": (bounded_error_gibbs(error_bound=c), None, 0.0),
        "bounded error, bins": (bounded_error_gibbs(error_bound=c, sharing=bin_sharing(n)), n, 1 / n),
        "gibbs": (plain_gibbs(), None, None),
    }
    often = {"bins, threshold": 5, "random bins": 5, "bounded error, bins": 2}
    kind = str(rng.choice([kind for kind in kinds for _ in range(often.get(kind, 1))]))
    return kind, *kinds[kind]


def violations(seed: int, counted: Counter | None = None, labels: bool = False) -> list[str]:
    """Return the violated bounds of one case. D^herding has no bound for more than two states."""
    rng = np.random.default_rng((21, seed))
    graph = labelled_graph(rng) if labels else random_graph(rng)
    kind, plan, n_weights, width = random_plan(rng)
    n_sweeps = int(2 ** rng.uniform(0, 8))
    found = count_visits(graph, plan, [n_sweeps], seed=seed, sharing=blanket_sharing() if kind == "gibbs" else None)
    errors, seen, visits = found.errors[0], found.focus, found.visits[0]
    if counted is not None:
        counted[kind] += 1
    wrong = []
    if errors.all > errors.cor + errors.herding + errors.approx + errors.bin + errors.z + SLACK:
        wrong.append("D^all above the sum of its parts")
    for f in (
        rng.normal(size=seen.target.shape),
        np.broadcast_to(rng.integers(0, 2, seen.target.shape), seen.target.shape),
    ):
        if abs(expectation_error(f, visits, seen)) > Lambdas.of(f, seen).bound(errors) + SLACK:
            wrong.append("Lambdas.bound")
        if abs(rao_blackwell_error(f, visits, seen)) > rao_blackwell_bound(f, visits, seen) + SLACK:
            wrong.append("rao_blackwell_bound")
    if width is not None and not labels:
        weights = seen.n_weights if n_weights is None else n_weights
        for known in (None, width):
            if errors.herding > float(herding_bound(n_sweeps, weights, plan.error_bound, known)) + SLACK:
                wrong.append(f"herding_bound, width {known}")
    if kind.startswith("bins") and not labels and errors.approx > approx_bound(plan.sharing.n_bins) + SLACK:
        wrong.append("approx_bound")
    return [f"seed {seed}, {kind}, {n_sweeps} sweeps: {what}" for what in wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20000, help="how many [20000]")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first [0]")
    parser.add_argument("--labels", action="store_true", help="up to four labels")
    options = parser.parse_args()
    counted: Counter = Counter()
    seeds = range(options.first, options.first + options.cases)
    found = [what for seed in seeds for what in violations(seed, counted, options.labels)]
    print("\n".join(found[:20]))
    print(f"{options.cases} cases, {len(found)} bounds below the error")
    for kind, times in sorted(counted.items()):
        print(f"  {times:8} {kind}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
