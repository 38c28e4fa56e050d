"""No bound of a scan is below the truth: random small graphs, every scan, every bound on influence, exact laws.

    python tests/support/sound_bounds.py [--graphs 5000] [--first 0]

The truth is the product of the kernels of the updates, step by step, from every possible first state; nothing is drawn.
Each graph has pairs and factors of three variables, some of whose tables ignore a variable, two or three labels, some
entries of -inf, and strengths from weak to strong. For each scan the sampler is run too: it visits the very states that
it visits by the order that the bound speaks of.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from reference_dobrushin import joint, law_after, marginal_distance

from herdner import FactorGraph, Gibbs, Record, TableFactors
from herdner.dobrushin import (
    Influence,
    ScanSteps,
    binary_bound,
    binary_pairwise_bound,
    coupling_bounds,
    dobrushin_variation,
    exact_influence,
    marginal_bound,
    pairwise_bound,
    rate_bound,
    tightest_influence,
    unit_importance,
    variation_curve,
    weighted_bound,
)
from herdner.graph.scan import Scan, checkerboard_scan, fixed_scan, random_scan, systematic_scan

SLACK = 1e-11


@dataclass(frozen=True)
class Case:
    graph: FactorGraph
    p: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """Every possible first state, [states, K1, ..]."""
        return np.eye(self.p.size)[self.p.ravel() > 0].reshape(-1, *self.p.shape)


def random_case(seed: int) -> Case:
    """Three to five variables; one in four has three labels somewhere, one in four has -inf entries."""
    rng = np.random.default_rng((19, seed))
    while True:
        n = int(rng.integers(3, 6))
        sizes = np.where(rng.random(n) < rng.choice([0.0, 0.0, 0.0, 0.4]), 3, 2)
        forbidden, strength = rng.choice([0.0, 0.0, 0.0, 0.12]), rng.choice([0.15, 0.4, 1.0])
        scopes = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5]
        scopes += [trio for trio in itertools.combinations(range(n), 3) if rng.random() < 0.2]
        scopes += [(i,) for i in range(n) if rng.random() < 0.7]
        factors = [_factor(rng, sizes, scope, forbidden, strength) for scope in scopes]
        graph = FactorGraph(sizes, factors)
        with np.errstate(invalid="ignore"):
            p = joint(graph)
        if not np.isnan(p).any():
            return Case(graph, p)


def wide_graph(seed: int) -> FactorGraph:
    """Return five variables of one to three states, factors of one to four variables, and evidence on a sixth variable.

    Half of the graphs have -inf entries.
    """
    rng = np.random.default_rng((23, seed))
    while True:
        sizes, forbidden = rng.integers(1, 4, 6), rng.choice([0.0, 0.3])
        scopes = [tuple(rng.choice(6, arity, replace=False).tolist()) for arity in (1, 1, 2, 3, 4, 4)]
        graph = FactorGraph(sizes, [_factor(rng, sizes, scope, forbidden, 0.4) for scope in scopes])
        states = np.array(list(np.ndindex(*sizes)))
        values = graph.log_potential(states)
        if values.max() > -np.inf:
            return graph.condition({2: int(states[values.argmax(), 2])})


def _factor(rng: np.random.Generator, sizes, scope, forbidden: float, strength: float) -> TableFactors:
    """A table over a scope, often one that does not change with one of its variables."""
    scope = tuple(rng.permutation(scope).tolist())
    table = rng.normal(size=[sizes[i] for i in scope]) * strength
    if len(scope) > 1 and rng.random() < 0.4:
        axis = int(rng.integers(len(scope)))
        table = np.repeat(table.take([0], axis), table.shape[axis], axis)
    table[rng.random(table.shape) < forbidden] = -np.inf
    return TableFactors([scope], table[None], scale=[float(rng.choice([1.0, 0.5, -1.0]))] if not forbidden else None)


def bounds_of(graph: FactorGraph) -> Iterator[Influence]:
    """Every bound on influence that fits."""
    yield pairwise_bound(graph)
    yield exact_influence(graph)
    yield tightest_influence(graph)
    yield tightest_influence(graph, exact_states=4)
    if (graph.domains.sizes == 2).all():
        yield binary_bound(graph)
        yield binary_bound(graph, as_printed=False)
        if max((group.arity for group in graph.factors), default=0) < 3:
            yield binary_pairwise_bound(graph)


def scans_of(rng: np.random.Generator, n: int) -> list[Scan | np.ndarray]:
    """Every kind of scan: four values, an order and distributions that change from step to step."""
    order = fixed_scan(rng.integers(0, n, n + 1))
    return [
        systematic_scan(),
        checkerboard_scan(),
        random_scan(),
        order,
        rng.integers(0, n, n),
        rng.dirichlet(np.ones(n), n),
    ]


def laws(case: Case, steps: ScanSteps) -> Iterator[np.ndarray]:
    """After each step the exact law from every first state, [states, K1, ..]."""
    law = case.starts
    for t in range(len(steps)):
        if steps.order is not None:
            law = law_after(case.p, law, int(steps.order[t]))
        else:
            q = np.asarray(steps.distributions)[t]
            law = np.sum([q[i] * law_after(case.p, law, i) for i in range(len(q))], axis=0)
        yield law


def violations(seed: int, counted: Counter | None = None) -> list[str]:
    """Return the violated bounds of one random graph; ``counted`` counts the comparisons by their names."""
    case, rng, found = random_case(seed), np.random.default_rng((20, seed)), []
    counted = Counter() if counted is None else counted
    n = case.p.ndim
    chosen = sorted(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist())
    influences = list(bounds_of(case.graph))
    for scan in scans_of(rng, n):
        n_steps = int(rng.integers(n, 2 * n + 1))
        steps = ScanSteps.of(scan, influences[0], n_steps)
        found += same_order(case, scan, steps)
        truth = list(laws(case, steps))
        for influence in influences:
            name = f"seed {seed}: {influence.theorem}, {scan if isinstance(scan, Scan) else scan.dtype}"
            counted[influence.theorem] += 1
            found += [f"{name}: {what}" for what in below(case, truth, influence, scan, n_steps, chosen, rng)]
    return found


def same_order(case: Case, scan: Scan | np.ndarray, steps: ScanSteps) -> list[str]:
    """Return True if the scan of the sampler visits the same states as the order that the bound assumes."""
    if not isinstance(scan, Scan) or steps.order is None:
        return []
    start = np.array(np.unravel_index(case.p.argmax(), case.p.shape), np.int32)
    order = fixed_scan(steps.order[: case.p.ndim] if scan.order is None else scan.order)
    one, other = (
        Gibbs(40, scan=which, record=Record(every=1)).infer(case.graph, 3, start=start).samples
        for which in (scan, order)
    )
    return [] if np.array_equal(one, other) else [f"the sampler does not take the order of the bound: {scan}"]


def below(case: Case, truth, influence: Influence, scan, n_steps: int, chosen, rng) -> Iterator[str]:
    """Bounds that are below the truth after the last step, and on the curve before it."""
    law, n = truth[-1], case.p.ndim
    b = coupling_bounds(influence, scan, n_steps)
    for i in range(n):
        if marginal_distance(law, case.p, (i,)) > b[i] + SLACK:
            yield f"variable {i}"
    distance = marginal_distance(law, case.p, chosen)
    if distance > marginal_bound(influence, scan, chosen, n_steps) + SLACK:
        yield f"variables {chosen}"
    curve = variation_curve(influence, scan, unit_importance(n, chosen), n_steps)
    for t, step in enumerate(truth):
        if marginal_distance(step, case.p, chosen) > curve[t + 1] + SLACK:
            yield f"variables {chosen} after step {t}"
    d = rng.random(n)
    means = sum(_expanded(d[i] * rng.random(case.p.shape[i]), i, n) for i in range(n))
    axes = tuple(range(1, n + 1))
    off = np.abs((law * means).sum(axis=axes) - (case.p * means).sum()).max()
    if off > min(weighted_bound(influence, scan, d, n_steps), dobrushin_variation(influence, scan, d, n_steps)) + SLACK:
        yield "a weighted mean"
    if isinstance(scan, Scan) and scan.kind != "fixed":
        rate = rate_bound(influence, scan, n_steps, d)
        if rate < min(d.sum(), dobrushin_variation(influence, scan, d, n_steps)) - SLACK or off > rate + SLACK:
            yield "a rate"


def _expanded(values: np.ndarray, axis: int, n: int) -> np.ndarray:
    return values.reshape([-1 if a == axis else 1 for a in range(n)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=5000, help="how many [5000]")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first [0]")
    options = parser.parse_args()
    counted: Counter = Counter()
    found = [
        what for seed in range(options.first, options.first + options.graphs) for what in violations(seed, counted)
    ]
    print("\n".join(found[:20]))
    print(f"{options.graphs} graphs, {sum(counted.values())} pairs of a scan and a bound, {len(found)} below the truth")
    for theorem, times in sorted(counted.items()):
        print(f"  {times:8} {theorem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
