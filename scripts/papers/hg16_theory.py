"""HG16, Theorems 2 and 3, Corollary 4 and Proposition 5, checked on herded samples.

Theorem 2: on an empty graph of two variables, the joint of herded Gibbs converges to the target if 1, pi_1 and pi_2 are
rationally independent (the square roots of 2 and 3, minus 1), and may not converge otherwise (both 1/2). Theorem 3 and
Proposition 5 (constants of eq. 15 and 34): complete herding on random joints of two variables, and one of four
variables with an impossible state; visits and distances are counted after each power of two of sweeps.
"""

from __future__ import annotations

import numpy as np
from experiment import Experiment, command, powers

from herdner import FactorGraph, TableFactors, from_joint, herded_gibbs
from herdner.inference.gibbs import complete_sharing
from herdner.studies.convergence import Convergence, count_visits, joint_distribution


def independent(p: tuple[float, float]) -> FactorGraph:
    """Return a graph of two independent variables with these probabilities of state 1."""
    tables = np.log([[1 - one, one] for one in p])
    return FactorGraph([2, 2], [TableFactors([[0], [1]], tables, [0, 1])])


def theorem2(p: tuple[float, float], lengths: list[int], seeds: list[int]) -> dict[str, float]:
    """Return the L1 error of the joint after the first and the last length, averaged over seeds."""
    found = [[e.all for e in count_visits(independent(p), herded_gibbs(), lengths, seed=s).errors] for s in seeds]
    first, *_, last = np.mean(found, axis=0).tolist()
    return {"first": first, "last": last}


def theorem3(graphs: list[FactorGraph], lengths: list[int], seeds: list[int]) -> dict[str, dict[str, float]]:
    """Count the distances above their bound and the visits below theirs."""
    distances, visits = [], []
    for graph, seed in zip(graphs, seeds, strict=True):
        constants, possible = Convergence.of(graph), joint_distribution(graph).ravel() > 0
        found = count_visits(graph, herded_gibbs(sharing=complete_sharing()), lengths, seed=seed)
        for n, seen, errors in zip(lengths, found.visits, found.errors, strict=True):
            distances.append((errors.all / 2, constants.bound_from_start(n)))
            visits += [(v, constants.l * n - constants.b) for v in seen.sum(axis=0).ravel()[possible]]
    below_one = [(d, bound) for d, bound in distances if bound < 1]
    return {
        "theorem 3": {
            "checks": len(distances), "above": sum(d > bound for d, bound in distances),
            "nearest": max((d / bound for d, bound in below_one), default=0.0),
        },
        "equation 34": {"checks": len(visits), "below": sum(bool(v < bound) for v, bound in visits)},
    }  # fmt: skip


@command("hg16_theory", "HG16 Theorems 2 and 3, Corollary 4, Proposition 5")
def main(experiment: Experiment) -> None:
    lengths, n = powers(4, experiment.size(17, 22)), experiment.size(20, 200)
    rng, seeds = experiment.rng(), experiment.seeds(n)
    graphs = []
    for k in range(n):
        table = rng.uniform(0.3, 1.0, (2, 2))
        table[0, 1] *= k % 4 > 0
        graphs.append(from_joint(table / table.sum()))
    results = {
        "rationally independent": theorem2((2**0.5 - 1, 3**0.5 - 1), lengths, seeds[:10]),
        "dependent": theorem2((0.5, 0.5), lengths, seeds[:10]),
        **theorem3(graphs, lengths, seeds),
    }
    experiment.finish(results)
