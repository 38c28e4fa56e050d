"""The engine is compiled for several instruction sets: all must give the same states, bit for bit."""

from __future__ import annotations

import platform
from dataclasses import fields, replace
from typing import get_args, get_type_hints

import numpy as np
import pytest

try:
    from numpy._core._multiarray_umath import __cpu_features__
except ImportError:  # NumPy 1
    from numpy.core._multiarray_umath import __cpu_features__

from herdner._ext.gibbs import ENUMERATIONS
from herdner.graph import FactorGraph, TableFactors, boltzmann_machine, compile_tables, ising, potts
from herdner.graph.scan import Scan
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import (
    bin_sharing,
    blanket_sharing,
    linear_annealing,
    neighbour_sum_sharing,
    random_bin_sharing,
)
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.run import Arrays, Run
from herdner.inference.gibbs.setup import Setup
from herdner.inference.gibbs.sharing import Sharing
from herdner.inference.gibbs.weights import Weights
from herdner.inference.record import Record


def graphs() -> dict[str, FactorGraph]:
    rng = np.random.default_rng(5)
    weights = np.triu(rng.normal(0, 0.4, (50, 50)), 1)
    triples = rng.permuted(np.tile(np.arange(30), (20, 1)), axis=1)[:, :3].astype(np.int32)
    return {
        "grid": ising(0.4, rng.normal(0, 1, (13, 290))),
        "binary": boltzmann_machine(weights + weights.T, rng.normal(0, 1, 50)),
        "categorical": potts(0.5, rng.normal(0, 1, (9, 8, 9))),
        "general": FactorGraph(np.full(30, 5), [TableFactors(triples, rng.normal(0, 1, (20, 5, 5, 5)))]),
    }


def instructions() -> list[str]:
    """Return the instruction sets of this machine according to NumPy; results do not reveal them."""
    names = {"avx512": "AVX512_SKX", "avx2": "AVX2"} if platform.machine() in ("x86_64", "AMD64") else {}
    return [name for name, feature in names.items() if __cpu_features__[feature]] + ["plain"]


@pytest.mark.parametrize("kind", ["grid", "binary", "categorical", "general"])
@pytest.mark.parametrize(
    "sharing",
    [None, blanket_sharing(), neighbour_sum_sharing(), bin_sharing(1), bin_sharing(16), random_bin_sharing(8)],
    ids=str,
)
@pytest.mark.parametrize("annealing", [None, linear_annealing(0.2, 1.5)], ids=["steady", "annealed"])
def test_instruction_sets_agree(kind, sharing, annealing) -> None:
    graph = compile_tables(graphs()[kind])
    if sharing == neighbour_sum_sharing() and kind in ("binary", "general"):
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


@pytest.mark.parametrize(
    ("name", "owner", "attribute"),
    [("form", Plan, "form"), ("scan", Scan, "kind"), ("sharing", Sharing, "kind"), ("loop", Setup, "loop"),
     ("draw", Weights, "draw")],
)  # fmt: skip
def test_literals_are_the_words_of_the_engine(name, owner, attribute) -> None:
    assert get_args(get_type_hints(owner)[attribute]) == ENUMERATIONS[name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": np.arange(50)}, r"Setup\.order must be a contiguous array of int32, got an array of int64"),
        ({"order": np.arange(100, dtype=np.int32)[::2]}, r"Setup\.order must be a contiguous array of int32"),
        ({"colour_starts": [0, 50]}, r"Setup\.colour_starts must be a contiguous array of int64, got \[0, 50\]"),
        ({"max_factors": 2.5}, r"Setup\.max_factors must be an integer, got 2\.5"),
        ({"loop": "quick"}, r"Setup\.loop must be one of general, binary, categorical, grid, got 'quick'"),
    ],
)
def test_fields_of_another_type_are_refused(change, message) -> None:
    setup = Setup.of(Gibbs(2), compile_tables(graphs()["binary"]))
    with pytest.raises(TypeError, match=message):
        Run(replace(setup, **change), np.zeros(50, np.uint16), np.arange(4, dtype=np.uint64))
