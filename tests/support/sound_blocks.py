"""No certificate of blocks is below the truth: random small linked chains, exact laws.

    python tests/support/sound_blocks.py [--graphs 1000] [--first 0] [--far]

The truth is the product of the kernels of the blocks, step by step, from every possible first state; nothing is drawn.
Chains have two or three labels, some pairs of neighbouring labels forbidden, links of all strengths between and within
chains, some of which forbid pairs of labels too.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
from reference_dobrushin import joint, log_weights, marginal_distance

from herdner import FactorGraph, TableFactors
from herdner.dobrushin import block_influence

SLACK = 1e-10


def random_chains(seed: int) -> FactorGraph:
    """Up to seven variables in one to four chains, joined by up to four links."""
    rng = np.random.default_rng((41, seed))
    while True:
        n = int(rng.integers(3, 8))
        k = int(rng.choice([2, 2, 3]) if n < 7 else 2)
        sizes = np.where(rng.random(n) < rng.choice([0.0, 0.3]), 2, k)
        near = [(t, t + 1) for t in range(n - 1) if rng.random() < 0.6]
        far = [pair for pair in itertools.combinations(range(n), 2) if pair not in near and pair[1] - pair[0] > 1]
        chosen = rng.permutation(len(far))[: int(rng.integers(1, 5))]
        strength, forbidden = rng.choice([0.2, 0.6, 1.5]), rng.choice([0.0, 0.15, 0.3])
        factors = [TableFactors([(v,)], [rng.normal(size=sizes[v]) * rng.choice([0.5, 2.5])]) for v in range(n)]
        for pairs, scale, gone in ((near, 1.0, forbidden), ([far[c] for c in chosen], strength, 0.0)):
            for v, w in pairs:
                table = rng.normal(size=(sizes[v], sizes[w])) * scale
                gone_here = gone if scale == 1.0 else float(rng.random() < 0.08) * 0.3
                table[rng.random(table.shape) < gone_here] = -np.inf
                v, w, table = (v, w, table) if rng.random() < 0.5 else (w, v, table.T)
                factors.append(TableFactors([(v, w)], table[None]))
        graph = FactorGraph(sizes, factors)
        with np.errstate(invalid="ignore"):
            p = joint(graph)
        if not np.isnan(p).any():
            return graph


def far_apart(seed: int) -> FactorGraph:
    """The same with log-potentials that exponentials in doubles cannot all tell apart from 0."""
    graph = random_chains(seed)
    times = float(np.random.default_rng((43, seed)).choice([30.0, 100.0, 300.0, 1000.0]))
    tables = [TableFactors(g.scopes, times * g.tables, g.table_of_factor, g.scale) for g in graph.factors]
    return FactorGraph(graph.domains, tables)


def law_after_block(
    p: np.ndarray, law: np.ndarray, first: int, last: int, given: np.ndarray | None = None
) -> np.ndarray:
    """Return the law of the state after the variables first .. last were drawn anew together.

    Args:
        p: The joint distribution, [K1, .., KV].
        law: The law before the update, [.., K1, .., KV].
        first: The first variable of the block.
        last: The last variable of the block.
        given: The distribution of the block given the other variables; None computes it from ``p``.
    """
    axes, shift = tuple(range(first, last + 1)), law.ndim - p.ndim
    if given is None:
        with np.errstate(invalid="ignore"):
            given = np.nan_to_num(p / p.sum(axis=axes, keepdims=True))
    return given * law.sum(axis=tuple(a + shift for a in axes), keepdims=True)


def block_conditional(total: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return the distribution of the variables first .. last given the others, 0 where the others are impossible.

    It is computed from log-potentials, because probabilities near 1e-308 have few significant digits.

    Args:
        total: The log-potential of each joint state, [K1, .., KV].
        first: The first variable of the block.
        last: The last variable of the block.
    """
    axes = tuple(range(first, last + 1))
    top = total.max(axis=axes, keepdims=True)
    weights = np.exp(total - np.where(top == -np.inf, 0.0, top))
    sums = weights.sum(axis=axes, keepdims=True)
    return weights / np.where(sums == 0.0, 1.0, sums)


def chances_after(p: np.ndarray, blocks: Sequence[tuple[int, int]], variable: int) -> np.ndarray:
    """[start, label]: the chances of a variable's labels when the blocks were drawn anew one after the other, from each
    start that may be.

    Backwards, from the labels to the start: the law of the whole state is too large for more than a few variables.
    """
    k = p.shape[variable]
    own = np.eye(k).reshape(*(k if axis == variable else 1 for axis in range(p.ndim)), k)
    found = np.broadcast_to(own, (*p.shape, k))
    for first, last in reversed(blocks):
        axes = tuple(range(first, last + 1))
        with np.errstate(invalid="ignore"):
            given = np.nan_to_num(p / p.sum(axis=axes, keepdims=True))
        found = np.broadcast_to((given[..., None] * found).sum(axis=axes, keepdims=True), found.shape)
    return found[p > 0]


def violations(seed: int, counted: Counter | None = None, far: bool = False) -> list[str]:
    """Return the errors in the certificates of one random graph."""
    graph, rng, found = (far_apart if far else random_chains)(seed), np.random.default_rng((42, seed)), []
    counted = Counter() if counted is None else counted
    p, total = joint(graph), log_weights(graph)
    n = p.ndim
    places = [(v, w) for v in range(n) for w in range(v, min(n, v + 3))]
    influence = block_influence(graph, places)
    order = rng.integers(0, influence.n_blocks, int(rng.integers(1, 3 * influence.n_blocks + 2)))
    law = np.eye(p.size)[total.ravel() > -np.inf].reshape(-1, *p.shape)
    given = {block: block_conditional(total, *influence.ranges[block]) for block in set(order.tolist())}
    for t, block in enumerate(order):
        law = law_after_block(p, law, *influence.ranges[block], given[block])
        bounds = influence.coupling_bounds(order[: t + 1])
        for (v, w), bound in zip(influence.spans, bounds, strict=True):
            truth = marginal_distance(law, p, tuple(range(v, w + 1)))
            counted["places"] += 1
            counted["below 1"] += bound < 1
            counted["tight"] += bound < 1 and truth > 0.5 * bound
            if not truth <= bound + SLACK:
                found.append(f"seed {seed}: {v} to {w} after {order[: t + 1]}: {truth} above {bound}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--far", action="store_true", help="log-potentials in the hundreds")
    arguments = parser.parse_args()
    counted: Counter = Counter()
    wrong = [
        what
        for seed in range(arguments.first, arguments.first + arguments.graphs)
        for what in violations(seed, counted, arguments.far)
    ]
    print(*wrong[:20], dict(counted), f"{len(wrong)} bounds below the truth", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
