"""HG16, Lemma 1, Theorems 2 and 3, Corollary 4 and Proposition 5, checked on herded samples.

Lemma 1: single variables with random probabilities pi start at random weights in (pi - 1, pi]. The number of ones in
each window of T samples differs from T pi by at most 1. Theorem 3 with its burn-in: windows of T >= T* sweeps after
tau*(T) sweeps. Theorem 2: on an empty graph of two variables, the joint of herded Gibbs converges to the target if 1,
pi_1 and pi_2 are rationally independent (the square roots of 2 and 3, minus 1), and may not converge otherwise (both
1/2). Theorem 3 and Proposition 5 (constants of eq. 15 and 34): complete herding on random joints of two variables, and
one of four variables with an impossible state; visits and distances are counted after each power of two of sweeps.
"""

from __future__ import annotations

import math

import numpy as np
from experiment import Experiment, command, powers

from herdner import FactorGraph, TableFactors, graph_from_joint, herded_gibbs
from herdner.inference.gibbs import complete_sharing
from herdner.studies.convergence import Convergence, count_visits, joint_distribution
from herdner.studies.herding import herd_categorical


def independent(p: tuple[float, float]) -> FactorGraph:
    """Return a graph of two independent variables with the probabilities ``p`` of state 1."""
    tables = np.log([[1 - one, one] for one in p])
    return FactorGraph([2, 2], [TableFactors([[0], [1]], tables, [0, 1])])


def theorem2(p: tuple[float, float], lengths: list[int], seeds: list[int]) -> dict[str, float]:
    """Return the L1 error of the joint after the first and the last number of sweeps, averaged over seeds."""
    errors = [[e.all for e in count_visits(independent(p), herded_gibbs(), lengths, seed=s).errors] for s in seeds]
    first, *_, last = np.mean(errors, axis=0).tolist()
    return {"first": first, "last": last}


def lemma1(rng: np.random.Generator, n_cases: int, n_samples: int) -> dict[str, float]:
    """Return the largest difference between the number of ones in a window of T samples and T pi, over all windows."""
    largest = 0.0
    for _ in range(n_cases):
        p = rng.random()
        samples = herd_categorical([1 - p, p], n_samples, seed=rng).samples
        off = np.concatenate([[0.0], np.cumsum(samples - p)])
        largest = max(largest, float(np.ptp(off)))  # the largest over all windows
    return {"checks": n_cases, "largest": largest}


def after_burn_in(graphs: list[FactorGraph], longest: int, seeds: list[int]) -> dict[str, float]:
    """Compare the error of T sweeps after burn-in with the bound lambda / T, T = T*, 4 T*, .. (HG16, eq. 13)."""
    above, checks, nearest, most = 0, 0, 0.0, 0
    for graph, seed in zip(graphs, seeds, strict=True):
        constants, joint = Convergence.of(graph), joint_distribution(graph)
        n = math.ceil(constants.shortest)
        while n <= longest:
            burn_in = math.ceil(max(0.0, constants.burn_in(n))) + 1
            plan = herded_gibbs(sharing=complete_sharing())
            before, after = count_visits(graph, plan, [burn_in, burn_in + n], seed=seed).visits.sum(axis=1)
            distance = np.abs((after - before).astype(float) / n - joint.reshape(after.shape)).sum() / 2
            above += distance > constants.rate / n
            checks, nearest, most = checks + 1, max(nearest, distance * n / constants.rate), max(most, burn_in)
            n *= 4
    return {"checks": checks, "above": above, "nearest": nearest, "longest burn-in": most}


def theorem3(graphs: list[FactorGraph], lengths: list[int], seeds: list[int]) -> dict[str, dict[str, float]]:
    """Return the counts of distances above the bound of Theorem 3, and of visits below the bound of eq. 34."""
    distances, visits = [], []
    for graph, seed in zip(graphs, seeds, strict=True):
        constants, possible = Convergence.of(graph), joint_distribution(graph).ravel() > 0
        counted = count_visits(graph, herded_gibbs(sharing=complete_sharing()), lengths, seed=seed)
        for n, seen, errors in zip(lengths, counted.visits, counted.errors, strict=True):
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


@command("hg16_theory", "HG16 Lemma 1, Theorems 2 and 3, Corollary 4, Proposition 5")
def main(experiment: Experiment) -> None:
    lengths, n = powers(4, experiment.size(17, 22)), experiment.size(20, 200)
    rng, seeds = experiment.rng(), experiment.seeds(n)
    graphs = []
    for k in range(n):
        table = rng.uniform(0.3, 1.0, (2, 2))
        table[0, 1] *= k % 4 > 0
        graphs.append(graph_from_joint(table / table.sum()))
    results = {
        "rationally independent": theorem2((2**0.5 - 1, 3**0.5 - 1), lengths, seeds[:10]),
        "dependent": theorem2((0.5, 0.5), lengths, seeds[:10]),
        **theorem3(graphs, lengths, seeds),
        "lemma 1": lemma1(rng, experiment.size(100, 2000), 10_000),
        "burn-in": after_burn_in(graphs, lengths[-1], seeds),
    }
    experiment.finish(results)
