"""Certificates of block scans hold for the exact distribution of the order that is run (more: sound_blocks.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import Oracle
from reference_dobrushin import joint, marginal_distance
from sound_blocks import chances_after, law_after_block, random_chains, violations

import herdner
from herdner import DoGS, FactorGraph, Record, TableFactors, chain_graph, make_backend
from herdner.dobrushin import block_influence, certify_block_order, optimise_blocks
from herdner.dobrushin.variation import TargetVariables, selected_variables
from herdner.graph.order import block_ranges
from herdner.inference.gibbs import linear_annealing
from herdner.inference.gibbs.blocks import Blocks

PARTS = 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_of_blocks_is_below_the_exact_law(part: int) -> None:
    assert [what for seed in range(part, 24, PARTS) for what in violations(seed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_of_blocks_is_below_the_exact_law_of_a_thousand_graphs(part: int) -> None:
    assert [what for seed in range(100 + part, 1100, PARTS) for what in violations(seed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_certificate_of_blocks_is_below_the_exact_law_where_log_potentials_are_far_apart(part: int) -> None:
    assert [what for seed in range(part, 24, PARTS) for what in violations(seed, far=True)] == []


def test_a_label_beyond_doubles_may_be_the_one() -> None:
    """The link outweighs the first variable by e^800, which exceeds the range of doubles, as e^-800 does."""
    link = np.array([[[0.0, 0.0], [0.0, 1600.0]]])
    graph = FactorGraph([2] * 3, [TableFactors([[0]], [[0.0, -800.0]]), TableFactors([[0, 2]], link)])
    influence = block_influence(graph)
    p, law = joint(graph), np.eye(8).reshape(8, 2, 2, 2)
    for first, last in influence.ranges:
        law = law_after_block(p, law, first, last)
        bounds = influence.coupling_bounds([b for b, ends in enumerate(influence.ranges) if ends[0] <= first])
        for (v, w), bound in zip(influence.spans, bounds, strict=True):
            assert marginal_distance(law, p, tuple(range(v, w + 1))) <= bound


def test_labels_that_never_have_weight_do_not_spoil_the_others() -> None:
    """A penalty whose exponential underflows gives the same certificate as a smaller one."""
    found = []
    for penalty in (-200.0, -1000.0):
        fields, pairs, *others = sentences().factors
        table = np.where(np.isneginf(pairs.tables), penalty, pairs.tables)
        factors = [fields, TableFactors(pairs.scopes, table, pairs.table_of_factor), *others]
        found.append(block_influence(FactorGraph([3] * 9, factors)).values)
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)
    assert found[1].max() < 2


def sentences(strength: float = 0.6) -> FactorGraph:
    """Return three sentences of tags O, B, I, where I must follow B or I, with links across and within sentences."""
    rng = np.random.default_rng(5)
    unary = rng.normal(size=(9, 3)) + np.array([1.5, 0.0, 0.0])
    table = np.zeros((3, 3))
    table[0, 2] = -np.inf
    graph = chain_graph(unary, table, [0, 4, 6, 9], start=np.array([0.0, 0.0, -np.inf]))
    links = TableFactors([[0, 3], [1, 4], [4, 7], [3, 8]], strength * np.eye(3)[None])
    return FactorGraph(graph.domains, [*graph.factors, links])


def test_the_certificate_is_of_the_very_order_that_is_run(monkeypatch) -> None:
    graph, seen = sentences(), []
    real = Blocks.of
    keep = lambda compiled, ranges=None, order=None: seen.append((ranges, order)) or real(compiled, ranges, order)  # noqa: E731
    monkeypatch.setattr(herdner.inference.backends.dogs.Blocks, "of", keep)
    p = joint(graph)
    for targets in ("all", "variables(7)", "variables(3, 4)"):
        for n_steps in (1, 4, 12):
            result = DoGS(n_sweeps=3, blocks=True, n_steps=n_steps, targets=targets).infer(graph, 1)
            ranges, order = seen[-1]
            assert len(order) == n_steps
            chosen = range(9) if targets == "all" else TargetVariables.from_text(targets).variables
            chances = [chances_after(p, [tuple(ranges[block]) for block in order], v) for v in chosen]
            truth = [p.sum(axis=tuple(axis for axis in range(9) if axis != v)) for v in chosen]
            distance = sum(0.5 * abs(c - t).sum(axis=1).max() for c, t in zip(chances, truth, strict=True))
            certificate = result.certificate
            assert distance <= certificate.bound <= certificate.systematic
            assert certificate.trivial == len(chosen)
            assert result.n_updates == 3 * sum(ranges[block, 1] - ranges[block, 0] + 1 for block in order)


def test_forwards_and_backwards_the_truth_is_the_same() -> None:
    for seed in range(5):
        p = joint(random_chains(seed))
        blocks = [(v, min(v + 1, p.ndim - 1)) for v in range(p.ndim)] * 2
        law = np.eye(p.size)[p.ravel() > 0].reshape(-1, *p.shape)
        for first, last in blocks:
            law = law_after_block(p, law, first, last)
        for v in range(p.ndim):
            others = tuple(axis + 1 for axis in range(p.ndim) if axis != v)
            np.testing.assert_allclose(chances_after(p, blocks, v), law.sum(axis=others), atol=1e-12)


def test_hard_constraints_leave_something_to_say() -> None:
    certificate = (
        DoGS(n_sweeps=2, blocks=True, targets=selected_variables(4), n_steps=40).infer(sentences(), 1).certificate
    )
    assert not certificate.vacuous
    assert certificate.bound < 0.05
    single = DoGS(n_sweeps=2, targets=selected_variables(4), n_steps=400).infer(sentences(), 1).certificate
    assert single.vacuous


def test_blocks_in_any_order_sample_the_graph() -> None:
    graph = sentences(1.2)
    oracle = Oracle.of_graph(graph)
    result = DoGS(n_sweeps=20_000, blocks=True, n_steps=8, record=Record(marginals=True, rao_blackwell=True)).infer(
        graph, 3
    )
    truth = np.array([oracle.marginal(v) for v in range(9)])
    np.testing.assert_allclose(result.marginals, truth, atol=0.02)
    np.testing.assert_allclose(result.rao_blackwell, truth, atol=0.02)


def test_blocks_in_their_own_order_are_those_of_blocked_gibbs() -> None:
    graph = FactorGraph(
        sentences().domains, [*sentences().factors[:-1], TableFactors([[1, 4], [4, 7]], np.eye(3)[None])]
    )
    record, start = Record(every=1), np.zeros(9, np.int32)
    one = DoGS(n_sweeps=30, blocks=True, n_steps=3, record=record).infer(graph, 4, start=start)
    other = make_backend("blocked-gibbs", n_sweeps=30, record=record).infer(graph, 4, start=start)
    np.testing.assert_array_equal(one.samples, other.samples)


def test_overlapping_blocks_are_the_longest_without_a_link() -> None:
    compiled = herdner.compile_tables(sentences())
    assert block_ranges(compiled).tolist() == [[0, 2], [3, 3], [4, 5], [6, 8]]
    assert block_ranges(compiled, overlapping=True).tolist() == [[0, 2], [1, 3], [4, 5], [6, 8]]
    nothing = herdner.compile_tables(FactorGraph([], []))
    for overlapping in (False, True):
        assert block_ranges(nothing, overlapping).shape == (0, 2)


def test_the_optimised_scan_is_never_worse() -> None:
    for seed in range(30):
        influence = block_influence(random_chains(seed))
        rng = np.random.default_rng(seed)
        importance = rng.random(len(influence.spans)) * (rng.random(len(influence.spans)) < 0.5)
        order = rng.integers(0, influence.n_blocks, 10)
        new = optimise_blocks(influence, order, importance)
        before, after = (importance @ influence.coupling_bounds(which) for which in (order, new))
        assert after <= before
        _, certificate = certify_block_order(influence, importance, 10)
        assert certificate.bound <= certificate.systematic


def test_longer_scans_are_as_good_as_wanted_where_influence_is_below_one() -> None:
    influence = block_influence(sentences(0.15))
    assert influence.total < 1
    bounds = influence.coupling_bounds(list(range(influence.n_blocks)) * 60)
    assert bounds.max() <= influence.total**59
    assert influence.coupling_bounds([]).min() == 1


def test_a_link_that_forbids_is_without_limit() -> None:
    graph = sentences()
    table = np.zeros((3, 3))
    table[1, 2] = -np.inf
    graph = FactorGraph(graph.domains, [*graph.factors, TableFactors([[2, 5]], table[None])])
    influence = block_influence(graph)
    assert influence.coupling_bounds([0, 1, 2, 3] * 50).max() == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ranges": [0, 1]}, "`ranges` of a block influence must have shape"),
        ({"rows": [0, 99]}, "`rows` of a block influence must rise from 0"),
        ({"starts": [0]}, "`starts` of a block influence must have 9 elements"),
        ({"targets": -1}, "`targets` of a block influence must be span indices, 0 to "),
        ({"sources": 10**6}, "`sources` of a block influence must be span indices, 0 to "),
        ({"values": np.nan}, "must be finite and at least 0"),
        ({"values": []}, "must be one-dimensional and of equal length"),
    ],
)
def test_an_influence_of_blocks_made_by_hand_is_checked(changed, words) -> None:
    right = block_influence(sentences())
    assert np.array_equal(replace(right).values, right.values)
    (name, value), *_ = changed.items()
    wrong = np.full_like(getattr(right, name), value) if np.ndim(value) == 0 else np.array(value)
    with pytest.raises(ValueError, match=words):
        replace(right, **{name: wrong.astype(getattr(right, name).dtype)})


@pytest.mark.parametrize("block", [-1, 4])
def test_orders_name_blocks_that_are_there(block: int) -> None:
    influence = block_influence(sentences())
    said = f"there is no block {block}: the blocks are 0 to 3"
    with pytest.raises(ValueError, match=said):
        influence.coupling_bounds([0, block])
    with pytest.raises(ValueError, match=said):
        influence.steps(np.broadcast_to(np.int64(block), 2**40))  # refused at the first step, without a copy
    with pytest.raises(ValueError, match=said):
        optimise_blocks(influence, [0, block], np.ones(len(influence.spans)))
    with pytest.raises(ValueError, match=r"one number per span, got \(1,\)"):
        optimise_blocks(influence, [0], np.ones(1))


def test_bad_input_is_one_line() -> None:
    with pytest.raises(ValueError, match="no variables 3 to 12: the graph's variables are 0 to 8"):
        block_influence(sentences(), [(3, 12)])
    wide = FactorGraph([2] * 3, [TableFactors([[0, 1, 2]], np.zeros((1, 2, 2, 2)))])
    with pytest.raises(ValueError, match="factors of at most two variables"):
        DoGS(blocks=True).infer(wide)
    assert DoGS(n_sweeps=5, blocks=True, annealing=linear_annealing(0.1, 2)).infer(sentences(), 1).certificate.vacuous
