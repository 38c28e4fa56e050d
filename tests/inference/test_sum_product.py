"""Sum-product: exact on forests of chains, a fixed point of the Bethe free energy elsewhere, never NaN."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from graphs import any_graphs, grouped, path_graphs, random_group
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle
from quick import examples

from herdner.graph import FactorGraph, TableFactors, chain_graph, ising, potts
from herdner.inference import ImpossibleGraph, Interrupted, UnsupportedGraph, make_backend
from herdner.inference.backends import sum_product

CONVERGED = {"n_sweeps": 2000, "tolerance": 1e-13, "table_counts": True}


@st.composite
def forests(draw, *, forbidden=(0.0, 0.15), scales=(1.0,)):
    """Generate runs of consecutive variables of 1 to 3 states, joined by links without a cycle.

    Edges and links have parallels in either direction, and are tied and scaled at random.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 8))
    sizes = rng.integers(1, 4, n) if draw(st.booleans()) else np.full(n, 3)
    component = np.cumsum(rng.random(n) < draw(st.sampled_from([0.3, 0.6])))
    scopes = [(int(i),) for i in rng.integers(0, n, n)] + [()]
    edges = [(i - 1, i) for i in range(1, n) if component[i] == component[i - 1]]
    for i, j in rng.integers(0, n, (20, 2)).tolist():
        if abs(i - j) > 1 and component[i] != component[j]:
            component[component == component[i]] = component[j]
            edges.append((i, j))
    for i, j in edges:
        scopes += [[(i, j), (j, i)][rng.integers(2)] for _ in range(rng.integers(1, 4) if rng.random() < 0.3 else 1)]
    scale = draw(st.sampled_from(scales))
    groups = [
        random_group(rng, sizes, part, forbidden=draw(st.sampled_from(forbidden)), scaled=draw(st.booleans()))
        for part in grouped(sizes, scopes)
    ]
    return FactorGraph(sizes, [replace(group, tables=group.tables * scale) for group in groups])


def check_expectations(result, graph, oracle, atol=1e-9):
    assert result.log_z == pytest.approx(oracle.log_z, abs=atol)
    for i, size in enumerate(oracle.sizes):
        np.testing.assert_allclose(result.marginals[i, :size], oracle.marginal(i), atol=atol)
        assert not result.marginals[i, size:].any()
    for ours, theirs in zip(result.table_counts, oracle.table_counts(graph), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=atol)


@pytest.mark.slow
@examples(400)
@given(forests(forbidden=(0.0, 0.1, 0.3)), st.sampled_from([1.0, 0.6]))
def test_forests_are_exact(graph, damping):
    oracle = Oracle.of_graph(graph)
    backend = make_backend("sum-product", damping=damping, **CONVERGED)
    if oracle.impossible:
        with pytest.raises(ImpossibleGraph) as caught:
            backend.infer(graph)
        assert "\n" not in str(caught.value)
        return
    result = backend.infer(graph)
    check_expectations(result, graph, oracle)
    assert result.log_potential == pytest.approx(graph.log_potential(result.state), abs=1e-9)
    assert result.log_potential > -np.inf


@pytest.mark.slow
@examples(200)
@given(forests(forbidden=(0.0, 0.2), scales=(30.0, 300.0, 1e6)))
def test_forests_of_extreme_tables_are_exact(graph):
    """The tables exceed the range of the probability domain, so the loops use the log domain."""
    oracle = Oracle.of_graph(graph)
    if oracle.impossible:
        return
    result = make_backend("sum-product", **CONVERGED).infer(graph)
    top = max(1.0, abs(oracle.log_z))
    check_expectations(result, graph, oracle, atol=1e-9 * top)


@examples(100)
@given(path_graphs(forbidden=(0.0, 0.1, 0.3)))
def test_paths_are_those_of_viterbi_to_the_bit(graph):
    try:
        known = make_backend("viterbi", marginals=True).infer(graph)
    except ImpossibleGraph:
        with pytest.raises(ImpossibleGraph):
            make_backend("sum-product").infer(graph)
        return
    result = make_backend("sum-product", table_counts=True).infer(graph)
    assert np.array_equal(result.state, known.state)
    assert np.array_equal(result.marginals, known.marginals)
    assert (result.log_potential, result.log_z) == (known.log_potential, known.log_z)
    assert all(np.array_equal(*both) for both in zip(result.table_counts, known.table_counts, strict=True))
    assert result.n_updates == graph.n_variables
    assert make_backend("sum-product").infer(graph).table_counts is None


def skip_chain(rng, n, n_labels, sentences, n_skips, strength=1.0, forbidden=0.0, scaled=False):
    """Return a document: sentences as chains of one table, links of another."""
    unary, table = rng.normal(size=(n, n_labels)) * 2, rng.normal(size=(n_labels, n_labels))
    table[rng.random(table.shape) < forbidden] = -np.inf
    cuts = np.r_[0, np.sort(rng.choice(np.arange(1, n), sentences - 1, replace=False)), n]
    graph = chain_graph(unary, table, cuts)
    ends = rng.choice(n, (4 * n_skips, 2))
    ends = np.unique(np.sort(ends[abs(ends[:, 0] - ends[:, 1]) > 1], axis=1), axis=0)
    ends = rng.permutation(ends)[:n_skips].astype(np.int32)
    scale = rng.uniform(0.5, 1.5, len(ends)) if scaled else None
    linked = TableFactors(ends, np.eye(n_labels)[None] * strength, scale=scale)
    return FactorGraph(graph.domains, [*graph.factors, linked])


def test_links_that_say_nothing_change_no_bit():
    rng = np.random.default_rng(3)
    graph = skip_chain(rng, 60, 5, 6, 20, strength=0.0, forbidden=0.2)
    known = make_backend("viterbi", marginals=True).infer(FactorGraph(graph.domains, graph.factors[:-1]))
    result = make_backend("sum-product").infer(graph)
    assert np.array_equal(result.state, known.state)
    assert np.array_equal(result.marginals, known.marginals)
    assert result.log_z == pytest.approx(known.log_z, rel=1e-12)
    assert result.n_updates <= 120


def bethe(graph, beliefs, pairs):
    """Return the Bethe log Z from the beliefs of variables and of pairs (Wainwright and Jordan 2008, eq. 4.29).

    No two factors join the same variables.
    """

    def entropy(p):
        p = p[p > 0]
        return -(p * np.log(p)).sum()

    degrees = np.zeros(graph.n_variables, int)
    total = 0.0
    for group in graph.factors:
        for f, scope in enumerate(group.scopes):
            table = group.tables[group.table_of_factor[f]] * group.scale[f]
            p = beliefs[scope[0], : len(table)] if group.arity == 1 else pairs[tuple(scope.tolist())]
            total += (p[p > 0] * table[p > 0]).sum()
            if group.arity == 2:
                degrees[scope] += 1
                total += entropy(p)
    return total + sum((1 - d) * entropy(row) for d, row in zip(degrees, beliefs, strict=True))


@pytest.mark.parametrize("forbidden", [0.0, 0.15])
@pytest.mark.parametrize("seed", range(8))
def test_loopy_graphs_end_at_a_stationary_point_of_bethes_free_energy(seed, forbidden):
    """Beliefs of pairs agree with those of their variables, and log_z is the formula of all of them."""
    graph = skip_chain(np.random.default_rng(seed), 40, 4, 5, 12, forbidden=forbidden)
    unary, transition, links = graph.factors
    own = [TableFactors(g.scopes, g.tables[g.table_of_factor]) for g in (unary, transition, links)]
    result = make_backend("sum-product", **CONVERGED).infer(FactorGraph(graph.domains, own))
    pairs = {}
    for group, counts in zip(own[1:], result.table_counts[1:], strict=True):
        for (i, j), p in zip(group.scopes.tolist(), counts, strict=True):
            pairs[i, j] = p
            np.testing.assert_allclose(p.sum(axis=1), result.marginals[i], atol=1e-9)
            np.testing.assert_allclose(p.sum(axis=0), result.marginals[j], atol=1e-9)
    assert result.log_z == pytest.approx(bethe(graph, result.marginals, pairs), abs=1e-8)
    tied = make_backend("sum-product", **CONVERGED).infer(graph)
    assert tied.log_z == pytest.approx(result.log_z, abs=1e-9)
    np.testing.assert_allclose(tied.table_counts[2][0], result.table_counts[2].sum(axis=0), atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_the_derivatives_of_log_z(seed):
    """Use a graph with cycles, parallels and scales."""
    rng = np.random.default_rng(seed)
    graph = skip_chain(rng, 24, 3, 4, 8, scaled=True)
    again = TableFactors(graph.factors[2].scopes[::2, ::-1], rng.normal(size=(1, 3, 3)))
    groups = [*graph.factors, again]
    backend = make_backend("sum-product", **CONVERGED)
    counts = backend.infer(FactorGraph(graph.domains, groups)).table_counts
    for g, group in enumerate(groups):
        direction = rng.normal(size=group.tables.shape)
        values = []
        for step in (1e-4, -1e-4):
            moved = replace(group, tables=group.tables + step * direction)
            values.append(backend.infer(FactorGraph(graph.domains, [*groups[:g], moved, *groups[g + 1 :]])).log_z)
        assert (counts[g] * direction).sum() == pytest.approx((values[0] - values[1]) / 2e-4, abs=1e-5)


def test_weak_loops_come_near_the_truth():
    rng = np.random.default_rng(5)
    for graph in (ising(0.2, rng.normal(size=(4, 4))), potts(0.3, rng.normal(size=(3, 3, 3)))):
        exact = make_backend("exact").infer(graph)
        result = make_backend("sum-product", n_sweeps=100, tolerance=1e-9).infer(graph)
        assert abs(result.log_z - exact.log_z) < 0.01
        assert np.abs(result.marginals - exact.marginals).max() < 0.005


@pytest.mark.slow
@examples(300)
@given(any_graphs(forbidden=(0.0, 0.1, 0.4)), st.sampled_from([1.0, 0.5]), st.sampled_from([1, 2, 10]))
def test_any_graph_of_pairs_gives_an_allowed_state_or_an_error(graph, damping, n_sweeps):
    graph = FactorGraph(graph.domains, [group for group in graph.factors if group.arity < 3])
    oracle = Oracle.of_graph(graph)
    backend = make_backend("sum-product", damping=damping, n_sweeps=n_sweeps, table_counts=True)
    if oracle.impossible:
        with pytest.raises((ImpossibleGraph, UnsupportedGraph)) as caught:
            backend.infer(graph)
        assert "\n" not in str(caught.value)
        return
    result, again = backend.infer(graph), backend.infer(graph, seed=5)
    assert np.isfinite(result.log_z)
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1.0)
    assert (result.marginals >= 0).all()
    for group, counts in zip(graph.factors, result.table_counts, strict=True):
        assert counts.sum() == pytest.approx(group.scale.sum())
        assert not counts[np.isneginf(group.tables)].any()
    for i, size in enumerate(oracle.sizes):
        possible = np.array([oracle.probability({i: k}) > 0 for k in range(size)])
        assert (result.marginals[i, :size][possible] > 0).all(), "what messages rule out is impossible"
    assert result.log_potential == pytest.approx(graph.log_potential(result.state), abs=1e-9)
    assert result.log_potential > -np.inf
    assert np.array_equal(again.state, result.state)
    assert np.array_equal(again.marginals, result.marginals)


def test_only_what_hears_news_is_smoothed_again():
    rng = np.random.default_rng(0)
    graph = chain_graph(rng.normal(size=(100, 3)), rng.normal(size=(3, 3)), np.arange(0, 101, 10))
    linked = TableFactors([[3, 27], [24, 38]], np.eye(3)[None])
    graph = FactorGraph(graph.domains, [*graph.factors, linked])
    result = make_backend("sum-product", n_sweeps=50, tolerance=1e-9).infer(graph)
    assert result.n_updates == 100 + 20  # to the right in the first sweep, back through 20..29 and 0..9 in the second
    blind = make_backend("sum-product", n_sweeps=50, tolerance=1.0).infer(graph)
    assert blind.n_updates == 100


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_the_tolerance_is_about_probabilities(tolerance):
    for seed in range(5):
        graph = skip_chain(np.random.default_rng(seed), 200, 6, 15, 25)
        fine = make_backend("sum-product", n_sweeps=500, tolerance=1e-10).infer(graph)
        result = make_backend("sum-product", n_sweeps=500, tolerance=tolerance).infer(graph)
        assert np.abs(result.marginals - fine.marginals).max() < 3 * tolerance
        assert result.n_updates < fine.n_updates


def one_name(n):
    """Return a document of n sentences with one name, each mention linked to the three before it."""
    rng = np.random.default_rng(7)
    graph = chain_graph(rng.normal(size=(10 * n, 3)) * 2, rng.normal(size=(3, 3)), np.arange(0, 10 * n + 1, 10))
    at = np.arange(n, dtype=np.int32) * 10 + 4
    ends = np.concatenate([np.stack([at[:-k], at[k:]], axis=1) for k in (1, 2, 3)])
    return FactorGraph(graph.domains, [*graph.factors, TableFactors(ends, np.eye(3)[None])])


def test_work_grows_with_the_mentions_of_one_name_and_no_faster():
    few, many = (make_backend("sum-product").infer(one_name(n)) for n in (300, 6000))
    assert many.n_updates / 60_000 < 1.2 * few.n_updates / 3000


def test_chains_decoded_in_blocks_are_as_decoded_at_once(monkeypatch):
    graph = skip_chain(np.random.default_rng(4), 300, 5, 30, 60, strength=2.0)
    known = make_backend("sum-product").infer(graph)
    monkeypatch.setattr(sum_product, "BLOCK", 7)
    assert np.array_equal(make_backend("sum-product").infer(graph).state, known.state)


def test_edges_of_several_rules_are_edges_of_their_sums():
    """Compare three groups with parallel factors, one flipped and scaled, with their sums."""
    rng = np.random.default_rng(6)
    words, stems, names = rng.normal(size=(3, 1, 4, 4))
    document = chain_graph(rng.normal(size=(20, 4)), rng.normal(size=(4, 4)), [0, 5, 12, 20]).factors
    rules = [
        TableFactors([[1, 7], [2, 9], [3, 15]], words),
        TableFactors([[2, 9], [6, 18], [4, 11]], stems),
        TableFactors([[18, 6], [0, 9], [9, 2]], names, scale=[2.0, 1.0, 0.5]),
    ]
    two = words[0] + stems[0] + 0.5 * names[0].T
    by_hand = [words[0], two, words[0], stems[0] + 2 * names[0].T, stems[0], names[0]]
    edges = [[1, 7], [2, 9], [3, 15], [6, 18], [4, 11], [0, 9]]
    backend = make_backend("sum-product", **CONVERGED)
    found, known = (
        backend.infer(FactorGraph([4] * 20, [*document, *linked])) for linked in (rules, [TableFactors(edges, by_hand)])
    )
    assert found.log_z == pytest.approx(known.log_z, abs=1e-9)
    np.testing.assert_allclose(found.marginals, known.marginals, atol=1e-9)
    pairs = known.table_counts[2]
    np.testing.assert_allclose(found.table_counts[2][0], pairs[0] + pairs[1] + pairs[2], atol=1e-9)
    np.testing.assert_allclose(found.table_counts[4][0], 2 * pairs[3].T + pairs[5] + 0.5 * pairs[1].T, atol=1e-9)


def test_a_forbidden_state_is_repaired():
    """Two distant variables must differ but have no other preference, so both chains choose state 0."""
    unequal = np.where(np.eye(2, dtype=bool), -np.inf, 0.0)[None]
    pairs = [[0, 2], [2, 4], [4, 6], [6, 0]]
    result = make_backend("sum-product").infer(FactorGraph([2] * 7, [TableFactors(pairs, unequal)]))
    assert result.log_potential == 0.0
    np.testing.assert_allclose(result.marginals, 0.5)
    with pytest.raises(UnsupportedGraph, match=r"sum-product found no joint state"):
        make_backend("sum-product").infer(FactorGraph([2] * 5, [TableFactors([[0, 2], [2, 4], [4, 0]], unequal)]))


def test_factors_of_three_variables_have_the_result_of_belief_propagation():
    rng = np.random.default_rng(0)
    triples = TableFactors([[0, 1, 2], [2, 3, 4]], rng.normal(size=(2, 3, 3, 3)), [0, 1])
    graph = FactorGraph([3] * 5, [triples, TableFactors([[0, 4]], rng.normal(size=(1, 3, 3)))])
    options = {"n_sweeps": 500, "tolerance": 1e-10, "damping": 0.7}
    result = make_backend("sum-product", **options).infer(graph)
    known = make_backend("belief-propagation", **options).infer(graph)
    assert result.converged is True
    assert np.array_equal(result.marginals, known.marginals)
    assert result.log_z == known.log_z


def test_bad_graphs():
    backend = make_backend("sum-product")
    triple = FactorGraph(
        [2] * 3, [TableFactors([[0]], [[0.0, 1.0]]), TableFactors([[0, 1, 2]], np.zeros((1, 2, 2, 2)))]
    )
    with pytest.raises(UnsupportedGraph, match=r"^factor 0 of group 1 joins variables 0, 1 and 2: .* table counts"):
        make_backend("sum-product", table_counts=True).infer(triple)
    unequal = np.where(np.eye(2, dtype=bool), -np.inf, 0.0)[None]
    ring = TableFactors([[0, 2], [2, 4], [4, 0]], unequal)
    decided = TableFactors([[0]], [[0.0, -np.inf]])
    with pytest.raises(ImpossibleGraph, match=r"forbid every joint state of the chain that contains variable \d"):
        backend.infer(FactorGraph([2] * 5, [ring, decided]))
    with pytest.raises(ImpossibleGraph, match="with an empty scope is -inf"):
        backend.infer(FactorGraph([2] * 5, [ring, TableFactors([[]], [-np.inf])]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 0.0}, "damping must be above 0 and at most 1"),
        ({"n_sweeps": 0}, "n_sweeps must be a whole number of at least 1, not 0"),
        ({"tolerance": -0.1}, "tolerance must be a number of at least 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        make_backend("sum-product", **options)


@pytest.mark.parametrize("patience", [0, 2])
def test_ctrl_c_hands_out_the_result_so_far(monkeypatch, patience):
    graph = skip_chain(np.random.default_rng(1), 60, 4, 6, 20, strength=2.0)
    known = make_backend("sum-product", n_sweeps=max(patience, 1), tolerance=0.0).infer(graph)
    calls = []

    class Impatient(sum_product.loops.SumProductLoop):
        def advance(self, n_sweeps, send):
            calls.append(send)
            super().advance(patience if len(calls) == 1 else n_sweeps, send)
            if len(calls) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(sum_product.loops, "SumProductLoop", Impatient)
    with pytest.raises(Interrupted) as caught:
        make_backend("sum-product", n_sweeps=50, tolerance=0.0).infer(graph)
    result = caught.value.result
    assert result.log_potential == pytest.approx(graph.log_potential(result.state), rel=1e-12)
    if patience:
        assert np.array_equal(result.marginals, known.marginals)
    else:
        chains = FactorGraph(graph.domains, graph.factors[:-1])
        assert np.array_equal(result.marginals, make_backend("viterbi", marginals=True).infer(chains).marginals)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_signal_stops_the_sweeps(monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    class Timed(sum_product.loops.SumProductLoop):
        def advance(self, n_sweeps, send):
            signal.setitimer(signal.ITIMER_REAL, 0.01 if send else 0)
            super().advance(n_sweeps, send)

    graph = skip_chain(np.random.default_rng(1), 30_000, 3, 1500, 3000, strength=2.0)
    monkeypatch.setattr(sum_product.loops, "SumProductLoop", Timed)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted) as caught:
            make_backend("sum-product", n_sweeps=3000, tolerance=0.0).infer(graph)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_allclose(caught.value.result.marginals.sum(axis=1), 1.0)


def test_long_documents_need_linear_work_and_no_recursion():
    graph = skip_chain(np.random.default_rng(1), 30_000, 3, 1500, 3000)
    backend = make_backend("sum-product")
    result = backend.infer(graph)
    assert result.n_updates <= (backend.n_sweeps + 1) * 30_000
    assert np.isfinite(result.log_z)
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1.0)
