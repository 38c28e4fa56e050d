"""DoGS17, Lemma 5, Proposition 9 and Theorems 8, 10, 11, 12, checked on random small graphs without sampling.

Lemma 5: the weighted total variation of two distributions is the least cost sum_i d_i P(X_i != Y_i) of a coupling, by
linear programming. The script checks that random couplings do not cost less. Theorem 8: the weighted total variation
between the target and the distribution after a scan, from the worst initial state, is at most the Dobrushin variation
of the scan. Proposition 9: if a norm of C is below 1, the Dobrushin variation of systematic and uniform random scans is
at most a closed-form bound, and both tend to 0. Theorems 10 to 12: no entry of the bound is below the exact influence
of Definition 6.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from experiment import Experiment, command
from numpy.typing import NDArray
from scipy.optimize import linprog

from herdner import FactorGraph, TableFactors
from herdner.dobrushin import (
    Influence,
    binary_bound,
    binary_pairwise_bound,
    dobrushin_variation,
    exact_influence,
    pairwise_bound,
    rate_bound,
)
from herdner.graph.scan import random_scan, systematic_scan
from herdner.studies.convergence import joint_distribution
from herdner.studies.convergence.exact import full_conditional

SLACK = 1e-9
Array = NDArray[np.float64]


def random_graph(rng: np.random.Generator, n: int, n_states: int = 2, triples: bool = False) -> FactorGraph:
    """Return a graph with random normal tables for all variables, most pairs and, on request, some triples."""
    strength = float(rng.choice([0.2, 0.5, 1.5]))
    scopes: list[tuple[int, ...]] = [(i,) for i in range(n)]
    scopes += [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.7] or [(0, 1)]
    scopes += [trio for trio in itertools.combinations(range(n), 3) if triples and rng.random() < 0.5]
    tables = [strength * rng.normal(size=(1, *[n_states] * len(scope))) for scope in scopes]
    return FactorGraph([n_states] * n, [TableFactors([s], table) for s, table in zip(scopes, tables, strict=True)])


def weighted_variation(mu: Array, nu: Array, d: Array) -> float:
    """Return the d-weighted total variation (Definition 4) of two distributions: the least cost of a coupling."""
    states = np.array(list(np.ndindex(*mu.shape)))
    cost = ((states[:, None] != states) * d).sum(axis=2)
    n = len(states)
    rows, columns = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
    both = np.concatenate([mu.ravel() / mu.sum(), nu.ravel() / nu.sum()])
    found = linprog(
        cost.ravel(), A_eq=np.vstack([rows, columns])[:-1], b_eq=both[:-1]
    )  # the last follows from the others
    return float(found.fun)


def lemma5(rng: np.random.Generator, n_cases: int) -> dict[str, float]:
    """Compare random couplings of random distributions over three binary variables with the weighted variation."""
    states = np.array(list(np.ndindex(2, 2, 2)))
    below, nearest = 0, np.inf
    for _ in range(n_cases):
        coupling = rng.dirichlet(np.full(64, float(rng.choice([0.05, 0.3])))).reshape(8, 8)
        d = rng.random(3)
        cost = float((coupling * ((states[:, None] != states) * d).sum(axis=2)).sum())
        least = weighted_variation(coupling.sum(axis=1).reshape(2, 2, 2), coupling.sum(axis=0).reshape(2, 2, 2), d)
        below += cost < least - SLACK
        nearest = min(nearest, cost / max(least, 1e-12))
    return {"checks": n_cases, "below": below, "nearest": nearest}


def theorem8(rng: np.random.Generator, n_cases: int) -> dict[str, float]:
    """Compare the exact error of random scans, from every initial state, with the Dobrushin variation of the scans."""
    above, checks, nearest = 0, 0, 0.0
    for _ in range(n_cases):
        graph = random_graph(rng, 3)
        p, d = joint_distribution(graph), rng.random(3)
        updates = [full_conditional(p, i) for i in range(3)]
        order = rng.integers(0, 3, int(rng.integers(2, 9)))
        law = np.eye(8).reshape(8, 2, 2, 2)
        for i in order.tolist():
            law = law.sum(axis=i + 1, keepdims=True) * updates[i]
        truth = max(weighted_variation(one, p, d) for one in law)
        for influence in (exact_influence(graph), binary_pairwise_bound(graph), pairwise_bound(graph)):
            bound = dobrushin_variation(influence, order, d)
            above += truth > bound + SLACK
            checks += 1
            nearest = max(nearest, truth / bound)
    return {"checks": checks, "above": above, "nearest": nearest}


def proposition9(rng: np.random.Generator, n_cases: int) -> dict[str, float]:
    """Compare the Dobrushin variation of systematic and random scans with its bound; a norm of C is below 1."""
    above, checks, nearest, last = 0, 0, 0.0, 0.0
    for _ in range(n_cases):
        n, d = int(rng.integers(2, 9)), rng.random(9)
        matrix = rng.random((n, n)) * (rng.random((n, n)) < 0.7) * (1 - np.eye(n))
        matrix[0, 1] += 0.1
        matrix *= rng.uniform(0.2, 0.9) / np.linalg.norm(matrix, float(rng.choice([1.0, np.inf])))
        influence = Influence.of_matrix(matrix)
        for scan in (systematic_scan(), random_scan()):
            for n_sweeps in (1, 3, 10, 30, 100, 300):
                truth = dobrushin_variation(influence, scan, d[:n], n * n_sweeps)
                bound = rate_bound(influence, scan, n * n_sweeps, d[:n])
                above += min(truth, d[:n].sum()) > bound + SLACK
                checks += 1
                nearest = max(nearest, truth / bound)
            last = max(last, truth)
    return {"checks": checks, "above": above, "nearest": nearest, "last": last}


def theorem(
    bound: Callable[[FactorGraph], Influence], rng: np.random.Generator, n_cases: int, n_states: int, triples: bool
) -> dict[str, float]:
    """Compare an influence bound with the exact influence, entry by entry."""
    ratios, below = [], 0
    for _ in range(n_cases):
        graph = random_graph(rng, 4, n_states, triples)
        exact, found = (f(graph).to_scipy().toarray() for f in (exact_influence, bound))
        below += int((found < exact - SLACK).sum())
        ratios += (exact[found > 0] / found[found > 0]).tolist()
    ratio = np.array(ratios)
    exact, median = float((ratio > 1 - 1e-6).mean()), float(np.median(ratio))
    return {"checks": len(ratio), "below": below, "exact": exact, "median": median}


@command("dogs17_theorems", "DoGS17 Lemma 5, Proposition 9, Theorems 8, 10, 11 and 12")
def main(experiment: Experiment) -> None:
    rng, n = experiment.rng(), experiment.size(100, 2000)
    results = {
        "Lemma 5": lemma5(rng, n),
        "Theorem 8": theorem8(rng, n // 5),
        "Proposition 9": proposition9(experiment.rng(9), n // 5),
        "Theorem 10": theorem(pairwise_bound, rng, n, 3, False),
        "Theorem 11": theorem(binary_pairwise_bound, rng, n, 2, False),
        "Theorem 12": theorem(binary_bound, rng, n, 2, True),
    }
    for name, found in results.items():
        print(f"{name}: {found}")
    experiment.finish(results)
