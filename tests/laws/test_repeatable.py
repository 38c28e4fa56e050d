"""The same seed gives the same result, bit for bit, for any number of threads and any pieces of a run."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from gibbs_families import FAMILIES, sharings
from quick import pairwise

from herdner.graph import FactorGraph, TableFactors, ising, potts
from herdner.graph.scan import checkerboard_scan, jacobi_scan, random_scan
from herdner.inference import Result
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import (
    LFSR,
    Sobol,
    bin_sharing,
    blanket_sharing,
    complete_sharing,
    linear_annealing,
    neighbour_sum_sharing,
    random_bin_sharing,
)
from herdner.inference.gibbs import run as gibbs_run
from herdner.inference.record import Record

RECORD = Record(rao_blackwell=True, table_counts=True, trace=True, every=2)
SHARINGS = [None, blanket_sharing(), neighbour_sum_sharing(), bin_sharing(1), bin_sharing(16), random_bin_sharing(8)]


def parts(result: Result) -> dict[str, list[np.ndarray]]:
    """Return all parts of a result except the time."""
    found = {}
    for name in (f.name for f in fields(result) if f.name != "seconds"):
        value = getattr(result, name)
        found[name] = [np.asarray(part) for part in (value if isinstance(value, tuple) else (value,))]
    return found


def assert_same(one: Result, other: Result) -> None:
    a, b = parts(one), parts(other)
    different = [name for name in a if not all(map(np.array_equal, a[name], b[name]))]
    assert not different, f"these differ: {different}"


def differ(one: Result, other: Result) -> bool:
    return not np.array_equal(one.samples, other.samples)


def big_graph(kind: str) -> FactorGraph:
    """Return a graph of more than two shards of 4096 positions, which threads share."""
    rng = np.random.default_rng(0)
    if kind == "grid":
        return ising(0.3, rng.normal(size=(91, 97)))
    if kind == "labels":
        return potts(0.5, rng.normal(size=(91, 97, 3)))

    def some(n: int, arity: int) -> np.ndarray:
        return rng.permutation(9000)[: n * arity].reshape(n, arity).astype(np.int32)

    unary = TableFactors(np.arange(9000, dtype=np.int32)[:, None], rng.normal(size=(1, 2)))
    pairs = TableFactors(some(4000, 2), rng.normal(size=(3, 2, 2)), rng.integers(0, 3, 4000))
    triples = TableFactors(some(1000, 3), rng.normal(size=(1, 2, 2, 2)))
    return FactorGraph(np.full(9000, 2), [unary, pairs, triples])


SWEEPS = pairwise(
    ["grid", "labels", "triples"],
    SHARINGS,
    [checkerboard_scan(), jacobi_scan()],
    fits=lambda kind, sharing: kind != "triples" or sharing != neighbour_sum_sharing(),  # which needs pairs alone
)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sharing", "scan"), SWEEPS, ids=str)
def test_threads_share_a_sweep(kind, sharing, scan):
    graph = big_graph(kind)
    plan = Gibbs(6, burn_in=2, sharing=sharing, scan=scan, record=RECORD)
    alone = plan.infer(graph, 1)
    for n_threads in (2, 3):
        assert_same(alone, replace(plan, n_threads=n_threads).infer(graph, 1))
    assert differ(alone, plan.infer(graph, 2))


@pytest.mark.slow
@pytest.mark.parametrize("scan", [checkerboard_scan(), jacobi_scan()], ids=str)
@pytest.mark.parametrize("family", ["binary_ring", "binary_torus", "three_labels", "mixed_labels"])
def test_threads_share_a_sweep_of_complete_herding(family, scan):
    """Each state depends on all others, so a checkerboard has one colour per variable."""
    graph = FAMILIES[family]
    plan = Gibbs(30, sharing=complete_sharing(), scan=scan, record=RECORD)
    alone = plan.infer(graph, 1)
    for n_threads in (2, 3):
        assert_same(alone, replace(plan, n_threads=n_threads).infer(graph, 1))


@pytest.mark.parametrize("form", ["circular", "threshold"])
@pytest.mark.parametrize("error_bound", [0.0, 1.0])
def test_threads_share_hashed_weights(form, error_bound):
    graph = big_graph("labels")
    plan = Gibbs(
        5, sharing=bin_sharing(50), error_bound=error_bound, form=form, scan=checkerboard_scan(), record=RECORD
    )
    alone = plan.infer(graph, 1)
    for n_threads in (2, 3):
        assert_same(alone, replace(plan, n_threads=n_threads).infer(graph, 1))


def test_threads_share_a_sweep_with_dummy_edges():
    """Variables joined by dummy edges have different colours, as each is in the other's keys."""
    graph = big_graph("grid")
    dummies = np.random.default_rng(1).permutation(graph.n_variables)[:4000].reshape(-1, 2)
    plan = Gibbs(8, sharing=blanket_sharing(), dummy_edges=dummies, scan=checkerboard_scan(), record=RECORD)
    alone = plan.infer(graph, 1)
    for n_threads in (2, 3):
        assert_same(alone, replace(plan, n_threads=n_threads).infer(graph, 1))
    assert differ(alone, replace(plan, dummy_edges=None).infer(graph, 1))


@pytest.mark.slow
def test_threads_share_an_annealed_sweep_and_its_driving_sequence():
    graph = big_graph("grid")
    for plan in (
        Gibbs(5, annealing=linear_annealing(0.2, 2), scan=checkerboard_scan(), record=RECORD),
        Gibbs(5, driving=LFSR(), scan=checkerboard_scan(), record=RECORD),
        Gibbs(8, driving=Sobol(), scan=checkerboard_scan(), record=RECORD),
    ):
        assert_same(plan.infer(graph, 1), replace(plan, n_threads=3).infer(graph, 1))


@pytest.mark.parametrize("sharing", SHARINGS, ids=str)
def test_chains_run_on_any_number_of_threads(sharing):
    graph = FAMILIES["three_labels"]
    plan = Gibbs(200, burn_in=20, sharing=sharing, n_chains=4, record=replace(RECORD, joint=True))
    results = [replace(plan, n_threads=n).infer(graph, 1) for n in (1, 2, 3, None)]
    for result in results[1:]:
        assert_same(results[0], result)
    chains = results[0].samples
    assert all(not np.array_equal(chains[0], chain) for chain in chains[1:]), "chains are independent"


def test_the_first_chain_is_not_changed_by_others():
    graph = FAMILIES["binary_ring"]
    one, three = (Gibbs(50, n_chains=n, record=RECORD).infer(graph, 1) for n in (1, 3))
    assert np.array_equal(one.samples[0], three.samples[0])
    assert np.array_equal(one.trace[0], three.trace[0])


PLANS = [
    Gibbs(40, burn_in=3, record=RECORD),
    Gibbs(40, scan=random_scan(), record=RECORD),
    Gibbs(40, scan=checkerboard_scan(), sharing=bin_sharing(4), record=RECORD),
    Gibbs(40, scan=jacobi_scan(), sharing=blanket_sharing(), record=RECORD),
    Gibbs(40, sharing=random_bin_sharing(4), form="threshold", record=RECORD),
    Gibbs(40, sharing=complete_sharing(), record=RECORD),
    Gibbs(40, annealing=linear_annealing(0.1, 3), sharing=blanket_sharing(), record=RECORD),
    Gibbs(63, driving=LFSR(), record=RECORD),
    Gibbs(64, driving=Sobol(), record=RECORD),
]


@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
@pytest.mark.parametrize("family", ["binary_grid", "binary_ring", "nine_labels", "mixed_labels"])
def test_pieces_change_nothing(monkeypatch, family, plan):
    """Pieces, between which Ctrl-C is checked, have one update or any number of updates here."""
    graph = FAMILIES[family]
    whole = plan.infer(graph, 1)
    pieces, begin = [], gibbs_run.Run.begin_piece
    monkeypatch.setattr(gibbs_run.Run, "begin_piece", lambda run: pieces.append(run.n_updates) or begin(run))
    for seconds in (0.0, 2e-5):
        monkeypatch.setattr(gibbs_run, "_PIECE_SECONDS", seconds)
        assert_same(whole, plan.infer(graph, 1))
    assert len(pieces) > whole.n_updates - graph.n_variables, "pieces of one update after the first sweep"


def test_pieces_change_nothing_on_threads(monkeypatch):
    graph, plan = (
        big_graph("grid"),
        Gibbs(6, sharing=blanket_sharing(), scan=checkerboard_scan(), n_threads=2, record=RECORD),
    )
    whole = plan.infer(graph, 1)
    monkeypatch.setattr(gibbs_run, "_PIECE_SECONDS", 0.0)
    assert_same(whole, plan.infer(graph, 1))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_another_seed_gives_another_result(family):
    graph = FAMILIES[family]
    for sharing in (None, *sharings(family)):
        plan = Gibbs(50, sharing=sharing, record=RECORD)
        assert_same(plan.infer(graph, 1), plan.infer(graph, 1))
        assert_same(plan.infer(graph, 1), plan.infer(graph, np.random.default_rng(1)))
        assert differ(plan.infer(graph, 1), plan.infer(graph, 2))
        assert differ(plan.infer(graph), plan.infer(graph)), "without a seed each run is its own"
