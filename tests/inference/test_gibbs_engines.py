"""The engine is compiled for several instruction sets: all must give the same states, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, boltzmann, compile_tables, ising, potts
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs.run import Chain
from herdner.inference.gibbs.setup import Setup
from herdner.sampling import Record, bins, blanket, linear, neighbour_sum, random_bins


def graphs() -> dict[str, FactorGraph]:
    rng = np.random.default_rng(5)
    weights = np.triu(rng.normal(0, 0.4, (50, 50)), 1)
    triples = rng.permuted(np.tile(np.arange(30), (20, 1)), axis=1)[:, :3].astype(np.int32)
    return {
        "grid": ising(0.4, rng.normal(0, 1, (13, 290))),
        "two": boltzmann(weights + weights.T, rng.normal(0, 1, 50)),
        "labels": potts(0.5, rng.normal(0, 1, (9, 8, 9))),
        "any": FactorGraph(np.full(30, 5), [TableFactors(triples, rng.normal(0, 1, (20, 5, 5, 5)))]),
    }


@pytest.mark.parametrize("kind", ["grid", "two", "labels", "any"])
@pytest.mark.parametrize("sharing", [None, blanket(), neighbour_sum(), bins(1), bins(16), random_bins(8)], ids=str)
def test_instruction_sets_agree(kind, sharing) -> None:
    graph = compile_tables(graphs()[kind])
    if sharing == neighbour_sum() and kind in ("two", "any"):
        pytest.skip("the sum of the neighbours needs equal couplings")
    plan = Gibbs(20, sharing=sharing, annealing=linear(0.2, 1.5), record=Record(rao_blackwell=True, trace=True))
    shared = Setup.of(plan, graph, None)
    runs = []
    for plain in (False, True):
        chain = Chain(shared, np.zeros(len(graph.sizes), np.uint16), np.arange(4, dtype=np.uint64), None)
        if plain:
            chain.engine.use_plain_engine()
        chain.engine.advance(0, 20 * len(graph.sizes))
        runs.append({**chain.arrays, "state": chain.engine.state})
    for name, array in runs[0].items():
        np.testing.assert_array_equal(array, runs[1][name], err_msg=name)
