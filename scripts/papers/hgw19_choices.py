"""HGW19, Sec. 2.4, 5.4 and 6.4, on the authors' complete graph G4: partitions of [0, 1], the choice of c and of B.

Sec. 2.4: the partition of [0, 1] into bins is arbitrary, but the paper has results for equal widths only. The function
`discretised` runs Algorithm 5 with any borders. The script compares bins of equal width with bins of equal probability,
whose borders are quantiles of the full conditionals. Sec. 5.4: the script chooses the error bound c for several numbers
of sweeps, and compares the errors of all candidates. Sec. 6.4: the script compares D^herding + D^approx at the number
of bins of the paper's formula with that at other numbers of bins.
"""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
from experiment import Experiment, command, slope
from hgw19_parts import PARTS, authors_graph, curves
from numpy.typing import NDArray

from herdner import FactorGraph, bounded_error_gibbs, dhg, make_backend
from herdner.inference.gibbs import bin_sharing
from herdner.inference.result import Result
from herdner.studies.convergence import ErrorParts, best_bins, choose_error_bound, joint_distribution
from herdner.studies.convergence.exact import Focus, full_conditional

Array = NDArray[np.float64]
CANDIDATES = (0.0, 1.0, 3.0, 10.0, 30.0)  # error bounds c


def conditionals(graph: FactorGraph) -> tuple[Array, Array]:
    """Return the joint distribution [2^V] of V binary variables, and each variable's pi(x_i = 1 | z) [V, 2^V]."""
    joint = joint_distribution(graph)
    ones = [np.broadcast_to(np.take(full_conditional(joint, i), [1], i), joint.shape) for i in range(joint.ndim)]
    return joint.ravel(), np.array([one.ravel() for one in ones])


def borders(joint: Array, ones: Array, n_bins: int, equal: str) -> Array:
    """Return the borders [V, B + 1] of bins of equal "width" or of equal "probability" for each variable."""
    even = np.linspace(0, 1, n_bins + 1)
    if equal == "width":
        return np.tile(even, (len(ones), 1))
    order = np.argsort(ones, axis=1)
    found = [np.interp(even, joint[at].cumsum(), one[at]) for at, one in zip(order, ones, strict=True)]
    return np.array([[0.0, *np.maximum.accumulate(each[1:-1]), 1.0] for each in found])


def discretised(ones: Array, edges: Array, lengths: list[int], seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Run Algorithm 5 with any borders of the bins, ``edges`` [V, B + 1].

    Returns:
        Visits of the joint states after each number of sweeps, [T, 2^V], and the bin of the last variable for each
        state of the other variables.
    """
    rng, n = np.random.default_rng(seed), len(ones)
    keys = np.array([np.searchsorted(e[1:-1], one, "left") for e, one in zip(edges, ones, strict=True)])
    p, bins, visits = ones.tolist(), keys.tolist(), np.zeros(2**n, np.int64)
    weights = ((edges[:, 1:] + edges[:, :-1]) / 2 - rng.random((n, edges.shape[1] - 1))).tolist()  # in (p - 1, p]
    state, found = int(rng.integers(2**n)), []
    for sweep in range(1, lengths[-1] + 1):
        for i in range(n):
            weight, bit = weights[i], 1 << (n - 1 - i)
            key, is_one = bins[i][state], weights[i][bins[i][state]] > 0
            weight[key] += p[i][state] - is_one
            state = state | bit if is_one else state & ~bit
        visits[state] += 1
        if sweep in lengths:
            found.append(visits.copy())
    return np.array(found, dtype=float), keys[-1][::2]


def partitions(experiment: Experiment, graph: FactorGraph, lengths: list[int]) -> dict[str, dict[str, Array]]:
    """Return the error parts of Algorithm 5 with bins of equal width and of equal probability, and of `dhg`."""
    joint, ones = conditionals(graph)
    n, runs = len(ones), experiment.size(2, 10)
    found: dict[str, dict[str, Array]] = {}
    for n_bins in (4, 16):
        found[f"dhg, B={n_bins}"] = curves(experiment, graph, dhg(n_bins=n_bins, form="threshold"), lengths, runs)
        for equal in ("width", "probability"):
            edges = borders(joint, ones, n_bins, equal)

            def one(seed: int, edges: Array = edges) -> list[tuple[float, ...]]:
                visits, keys = discretised(ones, edges, lengths, seed)
                focus = Focus.of(joint.reshape((2,) * n), n - 1, keys, bin_sharing(edges.shape[1] - 1))
                return [astuple(ErrorParts.of(each.reshape(-1, 2), focus)) for each in visits]

            mean = experiment.repeat(one, runs).mean(axis=0)
            found[f"equal {equal}, B={n_bins}"] = dict(zip(PARTS, mean.T, strict=True))
    return found


def mean_error(exact: Result, result: Result) -> float:
    """Return the mean absolute error of marginals."""
    assert exact.marginals is not None
    assert result.marginals is not None
    return float(np.abs(result.marginals - exact.marginals).mean())


def error_bounds(experiment: Experiment, graph: FactorGraph) -> list[dict[str, float | list[float] | None]]:
    """Return the chosen error bound, and the errors of the marginals with all candidates, for several run lengths."""
    exact, sharing, found = make_backend("exact").infer(graph), bin_sharing(4), []
    for n_sweeps in [2**k for k in experiment.size((8, 12), (8, 11, 14, 17))]:
        choice = choose_error_bound(graph, n_sweeps, CANDIDATES, sharing=sharing, runs=experiment.size(4, 16), seed=1)
        errors = [
            experiment.repeat(
                lambda seed, c=c, n=n_sweeps: (
                    [mean_error(exact, bounded_error_gibbs(n, error_bound=c, sharing=sharing).infer(graph, seed))]
                ),
                experiment.size(8, 64),
            ).mean()
            for c in CANDIDATES
        ]  # fmt: skip
        found.append({"sweeps": n_sweeps, "chosen": choice.error_bound, "errors": errors})
    return found


def bin_numbers(experiment: Experiment, graph: FactorGraph) -> list[dict[str, float | list[float]]]:
    """Return D^herding + D^approx with the number of bins of the paper's formula and with powers of 2."""
    found = []
    for n_sweeps in [2**k for k in experiment.size((6, 10), (6, 8, 10, 12, 14, 16))]:
        best = round(best_bins(n_sweeps))

        def both(n_bins: int, n: int = n_sweeps) -> float:
            parts = curves(experiment, graph, dhg(n_bins=n_bins, form="threshold"), [n], experiment.size(3, 10))
            return float(parts["herding"][0] + parts["approx"][0])

        found.append({"sweeps": n_sweeps, "B": best, "sum": both(best), "sums": [both(2**k) for k in range(11)]})
    return found


@command("hgw19_choices", "HGW19 Sec. 2.4, 5.4 and 6.4: bins of unequal width, the choice of c and of B")
def main(experiment: Experiment) -> None:
    graph, lengths = authors_graph(), [2**k for k in range(6, experiment.size(13, 19))]
    parts = partitions(experiment, graph, lengths)
    results = {
        "lengths": lengths,
        "partitions": {
            name: {**one, "slope of herding": slope(lengths, one["herding"])} for name, one in parts.items()
        },
        "c": error_bounds(experiment, graph),
        "candidates": CANDIDATES,
        "B": bin_numbers(experiment, graph),
    }
    experiment.finish(results)
