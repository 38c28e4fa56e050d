"""Blocked Gibbs sampling against the enumerated joint: marginals, independence on chains, temperatures, extremes."""

from __future__ import annotations

import _thread
import dataclasses
import itertools
import threading
import time

import numpy as np
import pytest
from graphs import any_graphs, path_graphs
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Oracle
from patience import wait_until
from quick import examples

from herdner.graph import FactorGraph, TableFactors, chain_graph, compile_tables, ising, potts
from herdner.inference import Interrupted, UnsupportedGraph, make_backend
from herdner.inference.backends.blocked_gibbs import BlockedGibbs, Blocks
from herdner.inference.gibbs import linear_annealing
from herdner.inference.gibbs import run as gibbs_run
from herdner.inference.record import Record


def skip_chain(n, n_labels, links, seed, forbidden=0.0):
    rng = np.random.default_rng(seed)
    transition, skip = rng.normal(size=(n_labels, n_labels)), rng.normal(size=(n_labels, n_labels))
    transition[rng.random(transition.shape) < forbidden] = -np.inf
    np.fill_diagonal(transition, 0.3)
    graph = chain_graph(rng.normal(size=(n, n_labels)), transition)
    return FactorGraph(graph.domains, [*graph.factors, TableFactors(np.array(links), skip[None])])


def mixed():
    """Return a graph of various state counts, parallel factors in both directions, scales, and an isolated variable."""
    rng = np.random.default_rng(8)
    return FactorGraph(
        [2, 3, 3, 2, 1, 4, 2],
        [
            TableFactors([[0, 1], [3, 2]], rng.normal(size=(1, 2, 3)), scale=[1.0, 2.0]),
            TableFactors([[1, 0]], rng.normal(size=(1, 3, 2))),
            TableFactors([[1, 2]], rng.normal(size=(1, 3, 3))),
            TableFactors([[3, 4]], rng.normal(size=(1, 2, 1))),
            TableFactors([[5, 4]], rng.normal(size=(1, 4, 1))),
            TableFactors([[0, 5]], rng.normal(size=(1, 2, 4))),
            TableFactors([[2], [1]], rng.normal(size=(1, 3))),
        ],
    )


GRAPHS = {
    "skip chain of 2": skip_chain(8, 2, [[0, 4], [1, 7], [2, 4]], 0),
    "skip chain of 3": skip_chain(6, 3, [[0, 3], [5, 1]], 1),
    "skip chain of 5, constrained": skip_chain(5, 5, [[0, 3], [0, 4]], 2, forbidden=0.3),
    "skip chain of 9, constrained": skip_chain(4, 9, [[0, 3]], 3, forbidden=0.3),
    "grid": ising(0.4, np.random.default_rng(4).normal(size=(3, 3)) * 0.5),
    "grid of 4": potts(0.5, np.random.default_rng(5).normal(size=(2, 3, 4))),
    "triangle": potts(0.7, np.random.default_rng(6).normal(size=(3, 3)), [[0, 1], [1, 2], [2, 0]]),
    "mixed": mixed(),
}


def check_marginals(graph, oracle, seeds=16, **options):
    """Assert that each entry is within 5 standard errors, estimated from independent runs."""
    backend = make_backend("blocked-gibbs", n_sweeps=2000, burn_in=50, record="marginals,rao-blackwell", **options)
    results = [backend.infer(graph, seed) for seed in range(seeds)]
    for runs_ in ([r.marginals for r in results], [r.rao_blackwell for r in results]):
        error = np.std(runs_, axis=0, ddof=1) / np.sqrt(seeds) + 2e-4
        for i, size in enumerate(oracle.sizes):
            assert (abs(np.mean(runs_, axis=0)[i, :size] - oracle.marginal(i)) < 5 * error[i, :size]).all()
            np.testing.assert_array_equal(np.mean(runs_, axis=0)[i, size:], 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_marginals_are_those_of_the_enumerated_joint(name):
    check_marginals(GRAPHS[name], Oracle.of_graph(GRAPHS[name]))


@examples(60)
@given(st.one_of(any_graphs(), path_graphs()), st.integers(0, 100))
def test_any_graph_of_pairs_keeps_to_the_support_and_its_log_potentials(graph, seed):
    oracle = Oracle.of_graph(graph)
    assume(not oracle.impossible and len(graph.domains))
    backend = make_backend("blocked-gibbs", n_sweeps=100, record="best,trace,every=1,joint,table-counts")
    if max((group.arity for group in graph.factors if len(group)), default=0) > 2:
        with pytest.raises(UnsupportedGraph, match=r"^factor 0 of group \d joins variables .* use gibbs$"):
            backend.infer(graph, seed)
        return
    result = backend.infer(graph, seed)
    values = graph.log_potential(result.samples[0])
    assert (values > -np.inf).all()
    np.testing.assert_allclose(result.trace[0], values, atol=1e-9)
    assert result.log_potential >= values.max() - 1e-9
    assert result.log_potential == pytest.approx(graph.log_potential(result.state), abs=1e-9)
    seen, counts = np.unique(result.samples[0], axis=0, return_counts=True)
    assert [round(result.joint[tuple(state)] * 100) for state in seen] == counts.tolist()
    expected = sum((g.tables[g.tables > -np.inf] * c[g.tables > -np.inf]).sum() for g, c in counted(graph, result))
    assert expected == pytest.approx(values.mean(), abs=1e-9)


def counted(graph, result):
    return zip(graph.factors, result.table_counts, strict=True)


def chi_square(observed, expected):
    """Return how many standard deviations the statistic is above its mean; cells of small expectation are pooled."""
    large = expected >= 5
    pairs = np.array(
        [*zip(observed[large], expected[large], strict=True), (observed[~large].sum(), expected[~large].sum())]
    )
    pairs = pairs[pairs[:, 1] > 0]
    statistic = ((pairs[:, 0] - pairs[:, 1]) ** 2 / pairs[:, 1]).sum()
    freedom = len(pairs) - 1
    return (statistic - freedom) / np.sqrt(2 * freedom)


@pytest.mark.parametrize(("n", "n_labels"), [(3, 2), (2, 3)])
def test_a_chain_gives_independent_draws_from_the_joint(n, n_labels):
    rng = np.random.default_rng(n)
    graph = chain_graph(rng.normal(size=(n, n_labels)), rng.normal(size=(n_labels, n_labels)) * 2)
    p = Oracle.of_graph(graph).probabilities
    samples = make_backend("blocked-gibbs", n_sweeps=60_000, record="every=1").infer(graph, seed=3).samples[0]
    code = samples @ n_labels ** np.arange(n)[::-1]
    assert chi_square(np.bincount(code, minlength=len(p)), 60_000 * p) < 4
    pairs = np.bincount(code[:-1] * len(p) + code[1:], minlength=len(p) ** 2)
    assert chi_square(pairs, 59_999 * np.outer(p, p).ravel()) < 4


def test_a_long_chain_mixes_at_once_where_single_updates_stick():
    table = np.array([[0.0, -12.0], [-12.0, 0.0]])
    graph = chain_graph(np.zeros((200, 2)), table)
    result = make_backend("blocked-gibbs", n_sweeps=500, record="every=1").infer(graph, seed=0)
    ends = result.samples[0][:, 0]
    assert 150 < np.count_nonzero(ends[1:] != ends[:-1]) < 350
    assert np.count_nonzero(np.diff(result.samples[0], axis=1)) < 100


@examples(150)
@given(st.integers(0, 2**32 - 1))
def test_blocks_are_maximal_paths(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    edges = [e for e in itertools.combinations(range(n), 2) if rng.random() < (0.8 if e[1] == e[0] + 1 else 0.1)]
    pairs = TableFactors(rng.permuted(np.array(edges).reshape(-1, 2), axis=1), np.zeros((1, 2, 2)))
    first = Blocks.of(compile_tables(FactorGraph(np.full(n, 2), [pairs]))).first
    assert (first <= np.arange(n)).all()
    assert set(first) == {i for i in range(n) if first[i] == i}
    for v in range(1, n):
        inside = [a for a, b in edges if b == v and a >= first[v - 1]]
        assert (first[v] == first[v - 1]) == (inside == [v - 1])


def test_temperatures():
    graph = GRAPHS["skip chain of 3"]
    record = Record(trace=True, every=1)
    plain = BlockedGibbs(n_sweeps=200, record=record).infer(graph, 1)
    constant = BlockedGibbs(n_sweeps=200, record=record, annealing=linear_annealing(1, 1)).infer(graph, 1)
    assert np.array_equal(plain.samples, constant.samples)
    squared = FactorGraph(graph.domains, [dataclasses.replace(g, scale=2 * g.scale) for g in graph.factors])
    check_marginals(graph, Oracle.of_graph(squared), annealing="linear(2,2)")
    flat = BlockedGibbs(n_sweeps=20_000, annealing=linear_annealing(0, 0)).infer(graph, 1)
    np.testing.assert_allclose(flat.marginals, 1 / 3, atol=0.02)


def test_annealing_finds_the_best_state():
    graph = skip_chain(60, 4, [[i, i + 20] for i in range(0, 40, 3)], 11, forbidden=0.2)
    cold = BlockedGibbs(n_sweeps=1000, n_chains=4, annealing=linear_annealing(0.3, 20)).infer(graph, 0).log_potential
    climbed = make_backend("icm", n_starts=200).infer(graph, 0).log_potential
    assert cold >= max(climbed, make_backend("max-product").infer(graph).log_potential) - 1e-9


def forked(depth, n=150):
    """Return a chain with two exclusive paths: one loses ``depth`` nats early, the other late."""
    unary = np.zeros((2 * n, 2))
    unary[:n, 0], unary[n:, 1] = -depth / n, -depth / n
    return chain_graph(unary, np.where(np.eye(2, dtype=bool), 0.0, -np.inf))


@pytest.mark.parametrize("depth", [10.0, 700.0, 5000.0])
def test_a_filter_that_would_underflow_is_done_in_the_log_domain(depth):
    result = BlockedGibbs(n_sweeps=2000).infer(forked(depth), seed=2)
    np.testing.assert_allclose(result.marginals, 0.5, atol=0.06)


@pytest.mark.parametrize("scale", [100.0, 400.0, 5000.0])
def test_extreme_potentials(scale):
    """Log-potentials differ by many hundred nats, some of which cancel each other."""
    rng = np.random.default_rng(12)
    unary, table = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    unary[:, 2] -= scale
    table[2, 2] += 2 * scale
    table[0, 1] -= scale
    graph = chain_graph(unary, table)
    graph = FactorGraph(graph.domains, [*graph.factors, TableFactors([[0, 3]], rng.normal(size=(1, 3, 3)))])
    check_marginals(graph, Oracle.of_graph(graph), seeds=8)
    two = ising(scale, [[scale, -scale, 0.3]])
    check_marginals(two, Oracle.of_graph(two), seeds=8)


def test_the_result_depends_on_the_seed_alone(monkeypatch):
    graph = skip_chain(3000, 3, [[i, i + 1000] for i in range(0, 2000, 7)], 7)
    backend = BlockedGibbs(n_sweeps=5, n_chains=3, record=Record(every=1, trace=True))
    one = backend.infer(graph, 1)
    for threads in (1, 2, 3):
        same = dataclasses.replace(backend, n_threads=threads).infer(graph, 1)
        assert np.array_equal(same.samples, one.samples)
        assert np.array_equal(same.trace, one.trace)
    assert not np.array_equal(backend.infer(graph, 2).samples, one.samples)
    monkeypatch.setattr(gibbs_run, "_PIECE_SECONDS", 1e-5)
    assert np.array_equal(backend.infer(graph, 1).samples, one.samples)


def test_an_interrupted_run_keeps_what_it_has(monkeypatch):
    graph = skip_chain(2000, 9, [[0, 1000]], 1)
    pieces, came, end_piece = [], [], gibbs_run.Run.end_piece
    monkeypatch.setattr(gibbs_run.Run, "end_piece", lambda *run: end_piece(*run) or pieces.append(run))

    def interrupt():
        wait_until(lambda: len(pieces) >= 12)  # which grow, and are as long as they get
        came.append(time.process_time())
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(Interrupted) as caught:
        BlockedGibbs(n_sweeps=10**6, record=Record(trace=True)).infer(graph, 0)
    assert time.process_time() - came[0] < 1.0, "seconds of the processor, whoever else keeps it busy"
    result = caught.value.result
    assert 0 < result.trace.shape[1] < 10**6
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_sweeps": -1}, "n_sweeps must be a whole number of at least 0"),
        ({"n_threads": 2}, "n_threads above 1 needs n_chains above 1"),
        ({"annealing": "up"}, "annealing must be linear"),
        ({"record": "all"}, "record must be a list of"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        make_backend("blocked-gibbs", **options)
    assert "\n" not in str(caught.value)


def test_bad_graphs():
    with pytest.raises(ValueError, match="at least one unobserved variable"):
        BlockedGibbs().infer(FactorGraph([], []))
    graph = chain_graph(np.zeros((2, 2)), np.where(np.eye(2, dtype=bool), 0.0, -np.inf))
    with pytest.raises(ValueError, match="start has log-potential -inf"):
        BlockedGibbs().infer(graph, 0, start=[0, 1])
    assert BlockedGibbs(n_sweeps=0).infer(graph, 0, start=[1, 1]).state.tolist() == [1, 1]
