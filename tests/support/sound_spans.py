"""No bound is below the truth where log-potentials span 1e0 to 1e300: random small graphs against rational arithmetic.

    python tests/support/sound_spans.py [--graphs 5000] [--first 0]

The oracle adds log-potentials as fractions, so that differences are exact, and takes exponentials of the differences.
Tables have penalties, cancelling pairs, large common terms and ordinary noise. A function may refuse a graph by an
error of one line; refusals are counted.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from herdner import FactorGraph, TableFactors
from herdner.dobrushin import (
    Influence,
    binary_bound,
    binary_pairwise_bound,
    block_influence,
    coupling_bounds,
    exact_influence,
    marginal_bound,
    marginal_bounds,
    pairwise_bound,
    tightest_influence,
)
from herdner.graph.tables import compile_tables
from herdner.inference.backends.dogs import DoGS
from herdner.inference.backends.gibbs import dhg, herded_gibbs
from herdner.inference.backends.mini_bucket import MiniBucket
from herdner.inference.backends.tree_reweighted import TreeReweighted
from herdner.inference.gibbs import complete_sharing
from herdner.studies.convergence import (
    Convergence,
    Lambdas,
    approx_bound,
    count_visits,
    expectation_error,
    gibbs_kernel,
    herding_bound,
    joint_distribution,
)

SLACK = 1e-9


@dataclass(frozen=True)
class Oracle:
    """Exact log-potentials of all joint states, None for impossible ones."""

    sizes: tuple[int, ...]
    logs: dict[tuple[int, ...], Fraction | None]
    local: list[dict[tuple[int, ...], Fraction | None]]  # of the factors of each variable alone

    @classmethod
    def of(cls, graph: FactorGraph) -> Oracle:
        sizes, logs = tuple(graph.domains.sizes.tolist()), {}
        factors = [
            (scope, tables[which], Fraction(scale))
            for group in graph.factors
            for tables in [[_fractions(table) for table in group.tables]]
            for scope, which, scale in zip(
                group.scopes.tolist(), group.table_of_factor.tolist(), group.scale.tolist(), strict=True
            )
        ]
        locals_ = [[factor for factor in factors if i in factor[0]] for i in range(len(sizes))]
        for state in np.ndindex(*sizes):
            logs[state] = _total(factors, state)
        return cls(sizes, logs, [{state: _total(own, state) for state in logs} for own in locals_])

    def given(self, axes: tuple[int, ...], logs: dict | None = None) -> np.ndarray:
        """Return the distribution of the variables ``axes`` given all others, in the shape of the joint distribution.

        It is 0 where the others allow no state.
        """
        found, logs = np.zeros(self.sizes), self.logs if logs is None else logs
        inside = [range(self.sizes[a]) for a in axes]
        outside = [range(1) if a in axes else range(size) for a, size in enumerate(self.sizes)]
        for base in itertools.product(*outside):
            states = []
            for part in itertools.product(*inside):
                state = list(base)
                for a, value in zip(axes, part, strict=True):
                    state[a] = value
                states.append(tuple(state))
            for state, p in zip(states, softmax([logs[state] for state in states]), strict=True):
                found[state] = p
        return found

    @cached_property
    def joint(self) -> np.ndarray:
        return self.given(tuple(range(len(self.sizes))))

    @cached_property
    def singles(self) -> list[np.ndarray]:
        return [self.given((i,), self.local[i]) for i in range(len(self.sizes))]

    @property
    def possible(self) -> np.ndarray:
        return np.array([self.logs[state] is not None for state in np.ndindex(*self.sizes)]).reshape(self.sizes)

    def influence(self, i: int, j: int) -> float:
        """Return the largest distance between full conditionals of i whose conditions differ at j (DoGS17, eq. 1)."""
        p = np.moveaxis(self.singles[i], (i, j), (-1, 0))
        largest = 0.0
        for x, y in itertools.combinations(range(len(p)), 2):
            allowed = [part.sum(axis=-1) > 0 for part in (p[x], p[y])]
            distance = np.abs(p[x] - p[y]).sum(axis=-1) / 2
            distance = np.where(allowed[0] & allowed[1], distance, (allowed[0] != allowed[1]).astype(float))
            largest = max(largest, float(distance.max()))
        return largest

    def after(self, law: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """Return laws [S, K1, ..] after the variables ``axes`` were drawn anew together."""
        given = self.singles[axes[0]] if len(axes) == 1 else self.given(axes)
        return given * law.sum(axis=tuple(a + 1 for a in axes), keepdims=True)

    def distance(self, law: np.ndarray, variables: tuple[int, ...]) -> float:
        """Return the largest distance of a marginal of laws [S, K1, ..] from that of the target."""
        others = tuple(a + 1 for a in range(len(self.sizes)) if a not in variables)
        off = (law - self.joint).sum(axis=others)
        return float(np.abs(off).reshape(len(law), -1).sum(axis=1).max() / 2)


def _total(factors: list, state: tuple[int, ...]) -> Fraction | None:
    terms = [(table[tuple(state[i] for i in scope)], scale) for scope, table, scale in factors]
    if any(value is None for value, _ in terms):
        return None
    return sum((scale * value for value, scale in terms), Fraction(0))


def _fractions(table: np.ndarray) -> dict[tuple[int, ...], Fraction | None]:
    return {at: Fraction(float(x)) if x > -np.inf else None for at, x in np.ndenumerate(table)}


def softmax(logs: list[Fraction | None]) -> list[float]:
    """Return probabilities from exact logarithms."""
    finite = [x for x in logs if x is not None]
    if not finite:
        return [0.0] * len(logs)
    top = max(finite)
    weights = [0.0 if x is None or x - top < -5000 else math.exp(float(x - top)) for x in logs]
    return [w / math.fsum(weights) for w in weights]


def random_graph(seed: int) -> FactorGraph:
    """Two to four variables of two or three states, with tables of very different sizes."""
    rng = np.random.default_rng((61, seed))
    n = int(rng.integers(2, 5))
    sizes = np.where(rng.random(n) < rng.choice([0.0, 0.0, 0.5]), 3, 2)
    most = float(rng.choice([0, 2, 3, 9, 18, 100, 299]))
    forbidden = float(rng.choice([0.0, 0.0, 0.0, 0.15]))
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.7] or [(0, 1)]
    scopes = [(i,) for i in range(n) if rng.random() < 0.8] + pairs
    if rng.random() < 0.2:
        scopes += [trio for trio in itertools.combinations(range(n), 3) if rng.random() < 0.5]
    factors = [one for scope in scopes for one in _factors(rng, sizes, scope, most, forbidden)]
    graph = FactorGraph(sizes, factors)
    return graph if any(x is not None for x in Oracle.of(graph).logs.values()) else random_graph(seed + 10**7)


def _factors(rng: np.random.Generator, sizes, scope, most: float, forbidden: float) -> Iterator[TableFactors]:
    scope = tuple(rng.permutation(scope).tolist())
    shape, size = [sizes[i] for i in scope], 10.0 ** rng.uniform(0, most)
    noise = rng.normal(size=shape) * rng.choice([0.1, 0.5, 2.0])
    kind = rng.choice(["noise", "penalty", "common", "wide", "cancelling", "one-sided"])
    table = {
        "noise": noise,
        "penalty": noise - size * (rng.random(shape) < 0.4),
        "common": noise + size,
        "wide": rng.normal(size=shape) * size,
        "cancelling": size * rng.normal(size=shape),
        "one-sided": noise + size * rng.normal(size=shape[0]).reshape(-1, *[1] * (len(shape) - 1)),
    }[str(kind)]
    if len(scope) > 1 and rng.random() < forbidden:
        table[tuple(rng.integers(0, k) for k in shape)] = -np.inf
        yield TableFactors([scope], table[None])
        return
    yield TableFactors([scope], table[None], scale=[float(rng.choice([1.0, 1.0, -1.0, 0.3]))])
    if kind == "cancelling":
        yield TableFactors([scope], (noise - table)[None])


def cancelling_graph(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """Add a large table of a variable and tables of two variables that cancel it except for its rounding errors."""
    i, j = rng.permutation(graph.n_variables)[:2].tolist()
    sizes = graph.domains.sizes
    single, noise = rng.normal(size=sizes[i]) * 10.0 ** rng.uniform(0, 299), rng.normal(size=(sizes[i], sizes[j]))
    pair = TableFactors([[i, j]], (noise - single[:, None])[None])
    return FactorGraph(sizes, [*graph.factors, TableFactors([[i]], single[None]), pair])


def influences_of(graph: FactorGraph) -> Iterator[Influence]:
    yield pairwise_bound(graph)
    yield tightest_influence(graph)
    yield tightest_influence(graph, exact_states=16)
    yield exact_influence(graph)
    if (graph.domains.sizes == 2).all():
        yield binary_bound(graph)
        yield binary_bound(graph, as_printed=False)
        if max(group.arity for group in graph.factors) < 3:
            yield binary_pairwise_bound(graph)


def violations(seed: int, counted: Counter | None = None) -> list[str]:
    """Return the bounds of one random graph that are below the truth."""
    counted = Counter() if counted is None else counted
    graph, rng = random_graph(seed), np.random.default_rng((62, seed))
    oracle = Oracle.of(graph)
    checks = [wrong_influences, wrong_laws, wrong_convergence, wrong_errors, wrong_log_z, wrong_certificates]
    if max(group.arity for group in graph.factors) < 3:
        checks += [wrong_marginals, wrong_blocks, wrong_block_certificates]
    found = []
    for check in checks:
        try:
            found += [f"seed {seed}: {what}" for what in check(graph, oracle, rng, counted)]
        except ValueError as error:
            counted[f"refused: {check.__name__}"] += 1
            if "\n" in str(error):
                found.append(f"seed {seed}: an error of several lines: {error}")
    return found


def wrong_influences(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    n = len(oracle.sizes)
    truth = np.array([[0.0 if i == j else oracle.influence(i, j) for j in range(n)] for i in range(n)])
    for influence in influences_of(graph):
        counted["influences"] += 1
        bound = influence.to_scipy().toarray()
        if not (truth <= bound + SLACK).all():
            yield f"{influence.theorem}: {bound.tolist()} for {truth.tolist()}"


def wrong_laws(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    n = len(oracle.sizes)
    order = rng.integers(0, n, 2 * n)
    law = np.eye(oracle.joint.size)[oracle.possible.ravel()].reshape(-1, *oracle.sizes)
    for i in order.tolist():
        law = oracle.after(law, (i,))
    chosen = tuple(sorted(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist()))
    for influence in (tightest_influence(graph), tightest_influence(graph, 16)):
        counted["scans"] += 1
        if oracle.distance(law, chosen) > marginal_bound(influence, order, chosen) + SLACK:
            yield f"variables {chosen} after {order.tolist()} by {influence.theorem}"
        single = coupling_bounds(influence, order)
        if any(oracle.distance(law, (i,)) > single[i] + SLACK for i in range(n)):
            yield f"single variables after {order.tolist()} by {influence.theorem}"


def wrong_marginals(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    bounds, n = marginal_bounds(graph), len(oracle.sizes)
    counted["marginals"] += 1
    for i, size in enumerate(oracle.sizes):
        truth = oracle.joint.sum(axis=tuple(a for a in range(n) if a != i))
        low, high = bounds.lower[i, :size], bounds.upper[i, :size]
        if not ((low <= truth + SLACK) & (truth <= high + SLACK)).all():
            yield f"marginal {truth} of variable {i} is not between {low} and {high}"


def wrong_blocks(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    influence, n = block_influence(graph, [(0, len(oracle.sizes) - 1)]), len(oracle.sizes)
    order = rng.integers(0, influence.n_blocks, influence.n_blocks + 1)
    law = np.eye(oracle.joint.size)[oracle.possible.ravel()].reshape(-1, *oracle.sizes)
    for block in order.tolist():
        first, last = influence.ranges[block].tolist()
        law = oracle.after(law, tuple(range(first, last + 1)))
    counted["blocks"] += 1
    assert influence.spans[-1] == (0, n - 1)
    for (first, last), bound in zip(influence.spans, influence.coupling_bounds(order), strict=True):
        truth = oracle.distance(law, tuple(range(first, last + 1)))
        if truth > bound + SLACK:
            yield f"blocks {order.tolist()}, variables {first} to {last}: {bound} for {truth}"


def wrong_convergence(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    """Compare the constants of HG16, Theorem 3, and the error of a run of complete herding."""
    found, n = Convergence.of(graph), len(oracle.sizes)
    counted["convergence"] += 1
    possible = oracle.possible
    truth = min(float(oracle.singles[i][possible].min()) for i in range(n))
    if not found.p_min <= truth * (1 + SLACK):
        yield f"pi_min {found.p_min} for {truth}"
    law = np.eye(oracle.joint.size).reshape(-1, *oracle.sizes)
    for i in range(n):
        law = oracle.after(law, (i,))
    rows = law.reshape(len(law), -1)[possible.ravel()]
    eta = max(float(np.abs(a - b).sum() / 2) for a in rows for b in rows)
    if not found.eta >= eta - 1e-12:
        yield f"eta {found.eta} for {eta}"
    n_sweeps = int(2 ** rng.uniform(0, 10))
    run = count_visits(graph, herded_gibbs(sharing=complete_sharing()), [n_sweeps], seed=int(rng.integers(1 << 30)))
    visited = run.visits[0].sum(axis=0).reshape(oracle.sizes)
    error = float(np.abs(visited / n_sweeps - oracle.joint).sum() / 2)
    if found.eta < 1 and error > found.bound_from_start(n_sweeps) + 1e-6:  # weights are multiples of 2^-32
        yield f"bound_from_start {found.bound_from_start(n_sweeps)} for {error}"
    if not found.shortest >= 1:
        yield f"shortest {found.shortest}"


def wrong_errors(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    """Compare the exact quantities of a graph, and the bounds on the error parts of one run."""
    n_sweeps, n_bins = int(2 ** rng.uniform(0, 8)), int(rng.choice([1, 2, 4]))
    joint, n = joint_distribution(graph), len(oracle.sizes)
    counted["error parts"] += 1
    if not (np.abs(joint - oracle.joint) < SLACK).all() or not ((joint > 0) == oracle.possible).all():
        yield "joint_distribution"
    kernel = gibbs_kernel(graph, [0])[oracle.possible.ravel()]
    start = np.eye(joint.size)[oracle.possible.ravel()].reshape(-1, *oracle.sizes)
    if not (np.abs(kernel - oracle.after(start, (0,)).reshape(kernel.shape)) < SLACK).all():
        yield "gibbs_kernel"
    found = count_visits(graph, dhg(n_bins=n_bins), [n_sweeps], seed=int(rng.integers(1 << 30)))
    errors, focus = found.errors[0], found.focus
    given = np.moveaxis(oracle.singles[n - 1], n - 1, -1).reshape(focus.target.shape)
    seen = found.visits[0].sum(axis=0)
    z = (seen.sum(axis=1) / n_sweeps)[:, None]
    truth = float(np.abs(seen / n_sweeps - z * given).sum())
    if oracle.sizes[n - 1] == 2 and truth > errors.cor + errors.herding + errors.approx + errors.bin + 1e-6:
        yield f"the parts of the error are below {truth}"
    if set(oracle.sizes) == {2}:
        if errors.approx > approx_bound(n_bins) + SLACK:
            yield f"approx_bound {approx_bound(n_bins)} for {errors.approx}"
        if errors.herding > float(herding_bound(n_sweeps, n_bins)) + 1e-6:
            yield f"herding_bound {herding_bound(n_sweeps, n_bins)} for {errors.herding}"
    f = rng.normal(size=focus.target.shape)
    if abs(expectation_error(f, found.visits[0], focus)) > Lambdas.of(f, focus).bound(errors) + 1e-6:
        yield "Lambdas.bound"


def wrong_log_z(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    """Compare proven bounds on log Z with exact sums, also where factors of different variables cancel."""
    if rng.random() < 0.3:
        graph = cancelling_graph(graph, rng)
        oracle = Oracle.of(graph)
    logs = [x for x in oracle.logs.values() if x is not None]
    truth = max(logs) + Fraction(math.log(math.fsum(math.exp(max(float(x - max(logs)), -5000.0)) for x in logs)))
    for backend in (MiniBucket(float(rng.uniform(0, 6))), MiniBucket(), TreeReweighted(n_sweeps=20, n_forests=2)):
        counted["log Z"] += 1
        bounds = backend.infer(graph).log_z_bounds
        assert bounds is not None
        low, high = bounds
        if not Fraction(low) <= truth + Fraction(SLACK) or not truth <= Fraction(high) + Fraction(SLACK):
            yield f"{backend}: {low} to {high} for log Z {float(truth)}"


def wrong_certificates(graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter) -> Iterator[str]:
    """Compare the certificate of an optimised scan with the exact error after the scan, from the worst first state."""
    n = len(oracle.sizes)
    chosen = tuple(sorted(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist()))
    dogs = DoGS(steps_per_target=int(rng.integers(1, 5)), exact_states=int(rng.choice([0, 16])))
    weights = np.zeros(n)
    weights[list(chosen)] = 1.0
    order, certificate, _ = dogs._variable_scan(compile_tables(graph), weights)
    counted["certificates"] += 1
    law = np.eye(oracle.joint.size)[oracle.possible.ravel()].reshape(-1, *oracle.sizes)
    for i in order.tolist():
        law = oracle.after(law, (i,))
    if oracle.distance(law, chosen) > certificate.bound + SLACK:
        yield f"certificate {certificate.bound} for {oracle.distance(law, chosen)}, {chosen} after {order.tolist()}"


def wrong_block_certificates(
    graph: FactorGraph, oracle: Oracle, rng: np.random.Generator, counted: Counter
) -> Iterator[str]:
    """Compare certificates of scans of blocks, also with observed variables and variables of one or four states."""
    if rng.random() < 0.5:
        graph = with_variable(graph, rng, int(rng.choice([1, 1, 4])))
        oracle = Oracle.of(graph)
    if graph.n_variables > 2 and rng.random() < 0.5 and oracle.possible.any():
        state = rng.permutation(np.argwhere(oracle.possible))[0]
        observed = rng.permutation(graph.n_variables)[: int(rng.integers(1, graph.n_variables - 1))]
        graph = graph.condition({int(v): int(state[v]) for v in observed})
        oracle = Oracle.of(graph)
    if not oracle.possible.any():
        return
    n = len(oracle.sizes)
    weights = rng.choice([0.0, 1.0, 0.3, 7.0], n)
    weights[rng.integers(n)] = 1.0
    dogs = DoGS(blocks=True, n_steps=int(rng.integers(1, 7)))
    _, certificate, blocks = dogs._block_scan(compile_tables(graph), weights)
    assert blocks is not None
    counted["block certificates"] += 1
    law, at = np.eye(oracle.joint.size)[oracle.possible.ravel()].reshape(-1, *oracle.sizes), 0
    while at < len(blocks.first):
        first, last = int(blocks.first[at]), int(blocks.last[at])
        law, at = oracle.after(law, tuple(range(first, last + 1))), at + last - first + 1
    truth = sum(weights[v] * oracle.distance(law, (v,)) for v in range(n))
    if truth > certificate.bound + SLACK * weights.sum():
        yield f"certificate of blocks {certificate.bound} for {truth}, {blocks.first.tolist()} {blocks.last.tolist()}"
    elif not certificate.vacuous:
        counted["block certificates below the trivial bound"] += 1


def with_variable(graph: FactorGraph, rng: np.random.Generator, n_states: int) -> FactorGraph:
    """Add a variable with factors that join it to some others, at a random place."""
    n, place = graph.n_variables, int(rng.integers(graph.n_variables + 1))
    moved = np.delete(np.arange(n + 1), place)
    sizes = np.insert(graph.domains.sizes, place, n_states)
    factors = [TableFactors(moved[g.scopes], g.tables, g.table_of_factor, g.scale) for g in graph.factors]
    for v in rng.permutation(moved)[: int(rng.integers(0, n + 1))].tolist():
        factors += _factors(rng, sizes, (place, v), float(rng.choice([0, 2, 18, 299])), 0.15)
    return FactorGraph(sizes, factors)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=5000, help="number of graphs [5000]")
    parser.add_argument("--first", type=int, default=0, help="seed of the first graph [0]")
    options = parser.parse_args()
    counted: Counter = Counter()
    seeds = range(options.first, options.first + options.graphs)
    found = [what for seed in seeds for what in violations(seed, counted)]
    print("\n".join(found[:20]))
    compared = sum(times for kind, times in counted.items() if not kind.startswith("refused"))
    print(f"{options.graphs} graphs, {compared} comparisons, {len(found)} below the truth")
    for kind, times in sorted(counted.items()):
        print(f"  {times:8} {kind}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
