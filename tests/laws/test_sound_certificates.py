"""No `Result.certificate` is below the exact law of the scan that ran: random graphs and importances, blocks too."""

from __future__ import annotations

import numpy as np
import pytest
from reference_dobrushin import joint, law_after, marginal_distance
from sound_blocks import law_after_block, random_chains
from sound_bounds import random_case, wide_graph

import herdner
from herdner import DoGS, FactorGraph
from herdner.dobrushin import Certificate
from herdner.graph.scan import fixed_scan
from herdner.inference.gibbs.blocks import Blocks

PARTS = 4
SLACK = 1e-10


class Watched:
    """Return the scans that the backend runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.orders: list = []
        self.blocks: list = []
        real = Blocks.of

        def blocks(compiled, ranges=None, order=None):
            self.blocks.append((ranges, order))
            return real(compiled, ranges, order)

        backend = herdner.inference.backends.dogs
        monkeypatch.setattr(backend, "fixed_scan", lambda order: self.orders.append(order) or fixed_scan(order))
        monkeypatch.setattr(backend.Blocks, "of", blocks)

    def law(self, p: np.ndarray, blocks: bool) -> np.ndarray:
        """After one run of the last scan, from every possible state."""
        law = np.eye(p.size)[p.ravel() > 0].reshape(-1, *p.shape)
        if blocks:
            ranges, order = self.blocks[-1]
            for block in order:
                law = law_after_block(p, law, *ranges[block])
            return law
        for i in self.orders[-1]:
            law = law_after(p, law, int(i))
        return law


def below(graph: FactorGraph, blocks: bool, seed: int, watched: Watched) -> list[str]:
    """Return the false statements of a certificate."""
    rng, p = np.random.default_rng((51, seed)), joint(graph)
    n, wrong = p.ndim, []
    for kind in ("all", "some", "weighed"):
        d = {"all": np.ones(n), "some": rng.random(n) < 0.5, "weighed": rng.random(n) * (rng.random(n) < 0.7)}[kind]
        d = np.asarray(d, float)
        d[int(rng.integers(n))] += not d.any()
        exact, again = int(rng.choice([0, 8])), int(rng.integers(1, 3))
        backend = DoGS(2, int(rng.integers(1, 3 * n)), iterations=again, blocks=blocks, exact_states=exact)
        found = backend.infer(graph, seed, importance=d).certificate
        assert isinstance(found, Certificate)
        assert not found.broken
        law = watched.law(p, blocks)
        singles = np.array([marginal_distance(law, p, (i,)) for i in range(n)])
        chosen = tuple(np.flatnonzero(d).tolist())
        if (d * singles).max() > found.bound + SLACK:
            wrong.append(f"seed {seed}, {kind}: a single variable")
        if kind != "weighed" and marginal_distance(law, p, chosen) > found.bound + SLACK:
            wrong.append(f"seed {seed}, {kind}: {chosen} together")
        steps = [d[i] * rng.random(p.shape[i]) for i in range(n)]
        f = sum(step.reshape([-1 if a == i else 1 for a in range(n)]) for i, step in enumerate(steps))
        axes = tuple(range(1, n + 1))
        off = np.abs((law * f).sum(axis=axes) - (p * f).sum()).max()
        if off > found.bound + SLACK:
            wrong.append(f"seed {seed}, {kind}: a function of importance d is off by {off}, above {found.bound}")
        if found.vacuous != (found.bound >= found.trivial):
            wrong.append(f"seed {seed}, {kind}: vacuous")
    return wrong


@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_of_single_updates_is_below_the_exact_law(part, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    graphs = ((seed, random_case(seed).graph) for seed in range(part, 24, PARTS))
    assert [what for seed, graph in graphs for what in below(graph, False, seed, watched)] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_after_evidence_is_below_the_exact_law(part, monkeypatch) -> None:
    """Factors of up to four variables, with -inf entries and variables of one state."""
    watched = Watched(monkeypatch)
    assert [what for seed in range(part, 40, PARTS) for what in below(wide_graph(seed), False, seed, watched)] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_of_blocks_is_below_the_exact_law(part, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    assert [what for seed in range(part, 24, PARTS) for what in below(random_chains(seed), True, seed, watched)] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("blocks", [False, True])
def test_no_certificate_of_a_thousand_graphs_is_below_the_exact_law(part, blocks, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    graph_of = random_chains if blocks else lambda seed: random_case(seed).graph
    seeds = range(100 + part, 600, PARTS)
    assert [what for seed in seeds for what in below(graph_of(seed), blocks, seed, watched)] == []
