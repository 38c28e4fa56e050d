"""Chain loops against the enumerated joint, and on long and extreme sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle, chain_factors
from quick import examples

from herdner.inference.linear_chain import ImpossibleChain, forward_backward, span_log_probability, viterbi

INF = np.inf


@st.composite
def batches(draw, *, integers=False):
    """Generate short sequences with tied tables or one per edge, forbidden entries, and moderate to extreme weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels = draw(st.integers(1, 5))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n_tokens, n_tables = int(offsets[-1]), draw(st.integers(1, 3))
    shapes = (n_tokens, n_labels), (n_tables, n_labels, n_labels)
    if integers:
        unary, tables = (rng.integers(0, 3, shape).astype(float) for shape in shapes)
    else:
        unary, tables = (rng.normal(size=shape) * draw(st.sampled_from([1, 30, 1e3, 1e5])) for shape in shapes)
    for array in (unary, tables):
        array[rng.random(array.shape) < draw(st.sampled_from([0, 0.2, 0.5]))] = -INF
    edge_table = rng.integers(0, n_tables, n_tokens) if n_tables > 1 else None
    return unary, tables, offsets, edge_table


def oracles(unary, tables, offsets, edge_table):
    for a, b in itertools.pairwise(offsets):
        edges = None if edge_table is None else edge_table[a:b]
        yield a, b, Oracle.of([unary.shape[1]] * (b - a), chain_factors(unary[a:b], tables, edges))


@examples(150)
@given(batches(integers=True))
def test_viterbi_is_the_enumerated_maximum_and_ties_follow_the_stated_rule(batch):
    each = list(oracles(*batch))
    impossible = [s for s, (_, _, oracle) in enumerate(each) if oracle.impossible]
    unary, tables, offsets, edge_table = batch
    if impossible:
        with pytest.raises(ImpossibleChain, match=f"^sequence {impossible[0]} "):
            viterbi(unary, tables, offsets, edge_table)
        return
    states, scores = viterbi(unary, tables, offsets, edge_table)
    for (a, b, oracle), score in zip(each, scores, strict=True):
        assert score == oracle.log_potentials.max()
        assert states[a:b].tolist() == oracle.best().tolist()


@pytest.mark.slow
@examples(250)
@given(batches())
def test_forward_backward_is_the_enumerated_joint(batch):
    each = list(oracles(*batch))
    unary, tables, offsets, edge_table = batch
    if any(oracle.impossible for _, _, oracle in each):
        with pytest.raises(ImpossibleChain):
            forward_backward(unary, tables, offsets, edge_table)
        return
    result = forward_backward(unary, tables, offsets, edge_table, transition_counts=True, edges=True)
    counts = np.zeros(tables.shape)
    for s, (a, b, oracle) in enumerate(each):
        assert result.log_z[s] == pytest.approx(oracle.log_z, rel=1e-12, abs=1e-12)
        for t in range(a, b):
            np.testing.assert_allclose(result.nodes[t], oracle.marginal(t - a), atol=1e-9)
            if t == a:
                assert not result.edges[t].any()
                continue
            pair = oracle.marginal(t - a - 1, t - a)
            np.testing.assert_allclose(result.edges[t], pair, atol=1e-9)
            counts[0 if edge_table is None else edge_table[t]] += pair
    np.testing.assert_allclose(result.transition_counts, counts, atol=1e-9)


@examples(150)
@given(batches(), st.data())
def test_span_probabilities_are_the_enumerated_ones(batch, data):
    unary, tables, offsets, edge_table = batch
    each = list(oracles(*batch))
    states = np.array(data.draw(st.lists(st.integers(0, unary.shape[1] - 1), min_size=len(unary), max_size=len(unary))))
    spans, expected = [], []
    for a, b, oracle in each:
        if oracle.impossible or a == b:
            continue
        for _ in range(2):
            start = data.draw(st.integers(a, b - 1))
            end = data.draw(st.integers(start + 1, b))
            spans.append((start, end))
            expected.append(oracle.probability({t - a: states[t] for t in range(start, end)}))
    order = data.draw(st.permutations(range(len(spans))))
    starts, ends = [spans[k][0] for k in order], [spans[k][1] for k in order]
    result = span_log_probability(unary, tables, offsets, states, starts, ends, edge_table)
    np.testing.assert_allclose(np.exp(result), [expected[k] for k in order], atol=1e-9)


@pytest.mark.parametrize("n_labels", [1, 2, 4, 5, 8, 9, 12, 13, 17, 23, 24, 30, 37])
def test_every_width_of_row_agrees_with_a_plain_recursion(n_labels):
    rng = np.random.default_rng(n_labels)
    unary, table = rng.normal(size=(40, n_labels)) * 3, rng.normal(size=(n_labels, n_labels))
    best, total = unary[0], unary[0]
    for row in unary[1:]:
        best = (best[:, None] + table).max(0) + row
        total = np.logaddexp.reduce(total[:, None] + table, axis=0) + row
    states, scores = viterbi(unary, table, [0, 40])
    assert scores[0] == best.max()
    path = unary[np.arange(40), states].sum() + table[states[:-1], states[1:]].sum()
    assert path == pytest.approx(scores[0], rel=1e-12)
    assert forward_backward(unary, table, [0, 40]).log_z[0] == pytest.approx(np.logaddexp.reduce(total), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_sequence_of_100_000_tokens_is_stable(scale):
    rng = np.random.default_rng(5)
    n, k = 100_000, 9
    table = rng.normal(size=(k, k))
    table[rng.random((k, k)) < 0.3] = -INF
    np.fill_diagonal(table, 0.0)
    unary = rng.normal(size=(n, k)) * scale
    result = forward_backward(unary, table, [0, n], transition_counts=True)
    np.testing.assert_allclose(result.nodes.sum(1), 1, rtol=1e-9)
    assert result.transition_counts.sum() == pytest.approx(n - 1, rel=1e-9)
    states, scores = viterbi(unary, table, [0, n])
    assert scores[0] == pytest.approx(
        unary[np.arange(n), states].sum() + table[states[:-1], states[1:]].sum(), rel=1e-9
    )
    assert scores[0] <= result.log_z[0] <= scores[0] + n * np.log(k)
    # Nothing far away matters: the middle of the long sequence is the middle of a short one.
    short = forward_backward(unary[49_000:51_000], table, [0, 2000])
    np.testing.assert_allclose(result.nodes[49_900:50_100], short.nodes[900:1100], atol=1e-9)
    span = span_log_probability(unary, table, [0, n], states, [50_000], [50_001])
    assert np.exp(span[0]) == pytest.approx(result.nodes[50_000, states[50_000]], rel=1e-9)


def test_a_path_that_pays_dearly_at_first_and_wins_slowly_is_not_lost():
    """A scaled recursion without range checks drops state 1 (exp(-750) is 0) and reports state 0 as certain."""
    unary = np.array([[0.0, 0.0]] * 2 + [[0.0, 5.0]] * 400)
    unary[0, 1] = -INF
    table = np.array([[0.0, -750.0], [-INF, 0.0]])
    nodes = forward_backward(unary, table, [0, len(unary)]).nodes
    assert nodes[-1, 1] == pytest.approx(1.0)
    assert nodes[0, 0] == 1.0


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20, 21])
def test_a_sequence_has_the_same_bits_alone_and_in_any_batch(n_labels):
    """Sequences of a batch are computed side by side, except those that need the log domain."""
    rng = np.random.default_rng(n_labels)
    lengths = rng.integers(0, 30, 90)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    unary, table = rng.normal(size=(offsets[-1], n_labels)) * 4, rng.normal(size=(n_labels, n_labels))
    unary[offsets[20] : offsets[21]] *= 1e4
    unary[:, 1:][rng.random((len(unary), n_labels - 1)) < 0.1] = -INF
    table[rng.random(table.shape) < 0.2] = -INF
    table[0] = table[:, 0] = 0.0
    states, scores = viterbi(unary, table, offsets)
    result = forward_backward(unary, table, offsets, edges=True)
    lean = forward_backward(unary, table, offsets)
    starts = np.flatnonzero(rng.random(len(unary)) < 0.2)
    ends = np.minimum(starts + rng.integers(1, 4, len(starts)), offsets[np.searchsorted(offsets, starts, "right")])
    spans = span_log_probability(unary, table, offsets, states, starts, ends)
    assert np.array_equal(lean.nodes, result.nodes)
    assert np.array_equal(lean.log_z, result.log_z)
    for s, (a, b) in enumerate(itertools.pairwise(offsets)):
        alone, score = viterbi(unary[a:b], table, [0, b - a])
        assert alone.tolist() == states[a:b].tolist()
        assert score[0] == scores[s]
        single = forward_backward(unary[a:b], table, [0, b - a], edges=True)
        assert single.log_z[0] == result.log_z[s]
        assert np.array_equal(single.nodes, result.nodes[a:b])
        assert np.array_equal(single.edges, result.edges[a:b])
        here = (starts >= a) & (starts < b)
        of_spans = starts[here] - a, ends[here] - a
        single_spans = span_log_probability(unary[a:b], table, [0, b - a], alone, *of_spans)
        assert np.array_equal(single_spans, spans[here])


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 9, 13, 17, 20, 21])
def test_pairs_counted_in_lanes_are_the_sums_of_edges(n_labels):
    rng = np.random.default_rng(n_labels)
    lengths = rng.integers(0, 30, 150)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    unary, table = rng.normal(size=(offsets[-1], n_labels)) * 4, rng.normal(size=(n_labels, n_labels))
    flat = np.zeros_like(table)  # exp(table) is 1 and rounds nothing: bits tell the order of the sums
    batches = [sorted(range(s, min(s + 64, 150)), key=lambda i: -lengths[i]) for s in range(0, 150, 64)]
    total = np.zeros_like(table)
    for s in itertools.chain(*batches):
        rows = unary[offsets[s] : offsets[s + 1]]
        total += forward_backward(rows, flat, [0, len(rows)], transition_counts=True).transition_counts
    assert np.array_equal(forward_backward(unary, flat, offsets, transition_counts=True).transition_counts, total)
    unary[offsets[20] : offsets[21]] *= 1e4  # needs logarithms
    unary[:, 1:][rng.random((len(unary), n_labels - 1)) < 0.1] = -INF
    result = forward_backward(unary, table, offsets, transition_counts=True)
    edges = forward_backward(unary, table, offsets, edges=True).edges
    np.testing.assert_allclose(result.transition_counts, edges.sum(axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 6, 7, 9, 10, 16, 17, 20, 21])
@pytest.mark.parametrize("ties", [False, True])
def test_best_labellings_in_lanes_are_those_of_sequences_alone(n_labels, ties):
    """Long input is computed in parallel stretches; one sequence is longer than a stretch."""
    rng = np.random.default_rng(n_labels)
    lengths = rng.integers(0, 60, 180)
    lengths[[5, 90, 179]] = 700, 255, 300
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    unary, table = rng.normal(size=(offsets[-1], n_labels)) * 4, rng.normal(size=(n_labels, n_labels))
    if ties:
        unary, table = np.sign(unary), np.sign(table)
    unary[offsets[30] : offsets[31]] *= 1e290
    unary[offsets[60] : offsets[150], 1:][rng.random((offsets[150] - offsets[60], n_labels - 1)) < 0.1] = -INF
    states, scores = viterbi(unary, table, offsets)
    for s, (a, b) in enumerate(itertools.pairwise(offsets)):
        alone, score = viterbi(unary[a:b], table, [0, b - a])
        assert alone.tolist() == states[a:b].tolist()
        assert score.tobytes() == scores[s : s + 1].tobytes()


def test_the_first_fault_is_told_where_sequences_stand_in_lanes():
    offsets = np.arange(0, 9001, 20)
    unary = np.random.default_rng(3).normal(size=(9000, 3))
    unary[7000] = unary[8500] = -INF
    with pytest.raises(ImpossibleChain, match=r"^sequence 350 "):
        viterbi(unary, np.zeros((3, 3)), offsets)
    unary[7900, 1] = 1.1e300
    with pytest.raises(ImpossibleChain, match=r"^sequence 350 "):
        viterbi(unary, np.zeros((3, 3)), offsets)
    for wrong in (np.nan, INF, -1.1e300):
        unary[6500, 1] = wrong
        with pytest.raises(ValueError, match="unary holds NaN"):
            viterbi(unary, np.zeros((3, 3)), offsets)


def test_the_first_sequence_at_fault_is_named_whatever_the_order_of_work():
    """The longest sequence of a batch is computed first."""
    unary, offsets = np.zeros((60, 3)), np.arange(0, 61, 5)
    unary[11] = unary[41] = -INF
    with pytest.raises(ImpossibleChain, match=r"^sequence 2 "):
        forward_backward(unary, np.zeros((3, 3)), offsets)
    unary[3, 1] = np.nan
    with pytest.raises(ValueError, match="unary holds NaN"):
        forward_backward(unary, np.zeros((3, 3)), offsets)


def test_tied_and_untied_tables_give_the_same_bits():
    rng = np.random.default_rng(2)
    unary, table, offsets = rng.normal(size=(60, 9)) * 4, rng.normal(size=(9, 9)), [0, 25, 60]
    each, edge_table = np.repeat(table[None], 60, axis=0), np.arange(60)
    tied, untied = viterbi(unary, table, offsets), viterbi(unary, each, offsets, edge_table)
    assert np.array_equal(tied[0], untied[0])
    assert np.array_equal(tied[1], untied[1])
    a, b = forward_backward(unary, table, offsets), forward_backward(unary, each, offsets, edge_table)
    assert np.array_equal(a.log_z, b.log_z)
    assert np.array_equal(a.nodes, b.nodes)


GOOD = {"unary": np.zeros((3, 2)), "transition": np.zeros((2, 2)), "offsets": [0, 3]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unary": [[0, np.nan], [0, 0], [0, 0]]}, "unary holds NaN"),
        ({"unary": [[0, INF], [0, -INF], [0, 0]]}, "unary holds NaN, "),
        ({"transition": [[0, INF], [0, 0]]}, "transition holds NaN, "),
        ({"unary": np.zeros(3)}, "shape"),
        ({"unary": np.zeros((3, 0))}, "at least one state"),
        ({"transition": np.zeros((3, 3))}, r"shape \[2, 2\]"),
        ({"offsets": [0, 2]}, "rise from 0 to the number of tokens, 3"),
        ({"offsets": [0, 4, 3]}, "rise from 0"),
        ({"transition": np.zeros((2, 2, 2))}, "edge_table"),
        ({"edge_table": [0, 1, 0]}, "from 0 to 0"),
    ],
)
def test_wrong_input_is_refused_in_one_line(change, message):
    for function in (viterbi, forward_backward):
        with pytest.raises(ValueError, match=message) as caught:
            function(**{**GOOD, **change})
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("start", "end"), [(0, 0), (1, 4), (-1, 1), (0, 3), (5, 6)])
def test_spans_outside_a_sequence_are_refused(start, end):
    with pytest.raises(ValueError, match="span 0"):
        span_log_probability(np.zeros((3, 2)), np.zeros((2, 2)), [0, 2, 3], [0, 0, 0], [start], [end])


def test_states_out_of_range_are_refused():
    with pytest.raises(ValueError, match="from 0 to 1"):
        span_log_probability(np.zeros((3, 2)), np.zeros((2, 2)), [0, 3], [0, 2, 0], [0], [1])


@pytest.mark.parametrize("n_labels", [*range(1, 10), 12, 13, 16, 31])
def test_probabilities_of_single_tokens_are_those_of_exact_exponentials(n_labels):
    """Probabilities are exact to a few units in the last place, however large the differences of scores."""
    rng = np.random.default_rng(n_labels)
    unary = rng.normal(size=(300, n_labels)) * 10.0 ** rng.uniform(-3, 1.5, (300, 1))
    unary[:, 1:][rng.random((300, n_labels - 1)) < 0.2] = -INF
    found = forward_backward(unary, np.zeros((n_labels, n_labels)), np.arange(301))
    powers = np.exp((unary - unary.max(axis=1, keepdims=True)).astype(np.longdouble))
    total = powers.sum(axis=1, keepdims=True)
    assert found.nodes is not None
    np.testing.assert_allclose(found.nodes, (powers / total).astype(float), rtol=4 * np.finfo(float).eps, atol=0)
    log_z = np.log(total[:, 0]) + unary.max(axis=1)
    np.testing.assert_allclose(found.log_z, log_z.astype(float), rtol=1e-15, atol=1e-15)


def test_scores_that_are_far_apart_change_nothing_but_the_way_of_counting():
    """States are e^-140 or e^-160 times as probable as others: the scaled loop and the log domain must agree."""
    transition = np.array([[0.0, -1.0], [-2.0, 0.5]])
    for gap in (140.0, 160.0):
        unary = np.array([[0.0, -gap], [-gap, 0.0], [0.3, -0.2], [0.0, -gap]])
        oracle = Oracle.of([2] * 4, chain_factors(unary, transition[None], None))
        found = forward_backward(unary, transition, [0, 4])
        assert found.nodes is not None
        np.testing.assert_allclose(found.nodes, [oracle.marginal(t) for t in range(4)], rtol=1e-11, atol=0)
