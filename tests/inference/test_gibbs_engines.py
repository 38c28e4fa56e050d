"""The engine is compiled for several instruction sets: all must give the same states, bit for bit."""

from __future__ import annotations

import platform
from dataclasses import fields

import numpy as np
import pytest

try:
    from numpy._core._multiarray_umath import __cpu_features__
except ImportError:  # NumPy 1
    from numpy.core._multiarray_umath import __cpu_features__

from herdner.graph import FactorGraph, TableFactors, boltzmann, compile_tables, ising, potts
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import (
    bin_sharing,
    blanket_sharing,
    linear_annealing,
    neighbour_sum_sharing,
    random_bin_sharing,
)
from herdner.inference.gibbs.run import Arrays, Run
from herdner.inference.gibbs.setup import Setup
from herdner.inference.record import Record


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


def instructions() -> list[str]:
    """What this machine has, by NumPy's own account: a slower loop gives the same bits, so no result tells."""
    names = {"avx512": "AVX512_SKX", "avx2": "AVX2"} if platform.machine() in ("x86_64", "AMD64") else {}
    return [name for name, feature in names.items() if __cpu_features__[feature]] + ["plain"]


@pytest.mark.parametrize("kind", ["grid", "two", "labels", "any"])
@pytest.mark.parametrize(
    "sharing",
    [None, blanket_sharing(), neighbour_sum_sharing(), bin_sharing(1), bin_sharing(16), random_bin_sharing(8)],
    ids=str,
)
@pytest.mark.parametrize("annealing", [None, linear_annealing(0.2, 1.5)], ids=["steady", "annealed"])
def test_instruction_sets_agree(kind, sharing, annealing) -> None:
    graph = compile_tables(graphs()[kind])
    if sharing == neighbour_sum_sharing() and kind in ("two", "any"):
        pytest.skip("the sum of the neighbours needs equal couplings")
    plan = Gibbs(20, sharing=sharing, annealing=annealing, record=Record(rao_blackwell=True, trace=True))
    setup = Setup.of(plan, graph)
    runs = [
        Run(setup, np.zeros(len(graph.sizes), np.uint16), np.arange(4, dtype=np.uint64), instructions=most)
        for most in ("", "avx2", "plain")
    ]
    here = instructions()
    assert [run.engine.instructions for run in runs] == [here[0], here[-2:][0], "plain"]
    for run in runs:
        run.engine.advance(0, 20 * len(graph.sizes))
        run.engine.flush()
    for field in fields(Arrays):
        first, *others = (getattr(run.arrays, field.name) for run in runs)
        for other in others:
            np.testing.assert_array_equal(first, other, err_msg=field.name)
