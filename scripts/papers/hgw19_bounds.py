"""HGW19, eq. 8 and 10 to 13, on random small graphs: no bound on the error of a herded sampler is below that error.

Each case is a graph of two to five variables of two labels, or of two or three variables of two to four labels, with
weak to strong couplings, one plan of the Gibbs family, one number of sweeps and one function f of the state. The script
compares the error of the mean of f with `Lambdas.bound` (eq. 8), and with `rao_blackwell_bound` after
Rao-Blackwellisation, D^all with the sum of its parts, and, for two labels, D^herding with `herding_bound` (eq. 10) and
D^approx with `approx_bound` (eq. 11).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from experiment import Experiment, command

from herdner import FactorGraph, Gibbs, TableFactors, boltzmann_machine
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
    return boltzmann_machine(weights + weights.T, rng.normal(size=n) * strength, (-1, 1))


def random_plan(rng: np.random.Generator) -> tuple[str, Gibbs, int | None, float | None]:
    """Return the kind of a random plan, the plan, its number of weights, and the width of its bins.

    A number of None means as many weights as there are states of the blanket.
    """
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
    n_bins = plan.sharing.n_bins if plan.sharing and kind.startswith("bins") else None
    if n_bins is not None and not labels and errors.approx > approx_bound(n_bins) + SLACK:
        wrong.append("approx_bound")
    return [f"seed {seed}, {kind}, {n_sweeps} sweeps: {what}" for what in wrong]


@command("hgw19_bounds", "HGW19 eq. 8 and 10 to 13 on random small graphs")
def main(experiment: Experiment) -> None:
    counted: Counter[str] = Counter()
    first, n = 10**6 * experiment.seed, experiment.size(1000, 20_000)
    found = [
        fault
        for labels, cases in ((False, n), (True, n // 2))
        for seed in range(first, first + cases)
        for fault in violations(seed, counted, labels)
    ]
    print("\n".join(found[:20]))
    experiment.finish({"cases": sum(counted.values()), "below": len(found), "plans": dict(counted)})
