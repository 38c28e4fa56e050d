"""Paired tests of two taggers against enumeration, SciPy and their documentation."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from rich.console import Console
from scipy import stats

from herdner.evaluation.compare import Comparison, compare
from herdner.evaluation.scores import count_entities, evaluate, f1_from_counts, pair_documents
from herdner.text.document import Document

N_SENTENCES, N_TOKENS = 2, 6


def corpus(rng: np.random.Generator, n_documents: int) -> list[Document]:
    sentences = [[f"w{i}" for i in range(N_TOKENS)]] * N_SENTENCES
    tags = rng.choice(["B-PER", "B-LOC", "O", "O"], size=(n_documents, N_SENTENCES, N_TOKENS)).tolist()
    return [Document.from_tokens(sentences, each, id=f"d{i}") for i, each in enumerate(tags)]


def noisy(gold: list[Document], rng: np.random.Generator, rate: float) -> list[Document]:
    """Return predictions with some tags drawn again: missed, spurious and wrongly labelled entities."""
    predicted = []
    for document in gold:
        drawn = rng.choice(["B-PER", "B-LOC", "O"], size=document.n_tokens)
        wrong = rng.random(document.n_tokens) < rate
        predicted.append(document.with_tags(np.where(wrong, drawn, document.tags).tolist()))
    return predicted


def case(seed: int, n_documents: int, rate_a: float, rate_b: float) -> tuple[list[Document], ...]:
    rng = np.random.default_rng(seed)
    gold = corpus(rng, n_documents)
    return gold, noisy(gold, rng, rate_a), noisy(gold, rng, rate_b)


def counts(gold: list[Document], predicted: list[Document]) -> np.ndarray:
    return count_entities(list(pair_documents(gold, predicted)))[1].sum(axis=1)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(
    ("seed", "rate_b"),
    [(0, 0.3), (3, 0.6), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 0.1), (2, 0.02)))],
)
def test_randomisation_is_the_share_of_all_swaps(seed: int, rate_b: float) -> None:
    """All 2^n swaps are scored separately."""
    gold, a, b = case(seed, 7, 0.3, rate_b)
    differences = []
    for swaps in product([False, True], repeat=len(gold)):
        first = [y if swap else x for x, y, swap in zip(a, b, swaps, strict=True)]
        second = [x if swap else y for x, y, swap in zip(a, b, swaps, strict=True)]
        differences.append(evaluate(gold, second).micro.f1 - evaluate(gold, first).micro.f1)
    exact = np.mean(np.abs(differences) >= abs(differences[0]) - 1e-9)
    found = compare(gold, a, b, rng=rng(), n_resamples=40_000)
    assert found.difference == pytest.approx(differences[0])
    assert found.randomisation_p == pytest.approx(exact, abs=5 * np.sqrt(0.25 / 40_000))


def test_scipy_agrees() -> None:
    gold, a, b = case(4, 40, 0.3, 0.22)
    table = np.concatenate([counts(gold, a), counts(gold, b)])
    units = np.arange(len(gold))

    def difference(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        return f1_from_counts(table[y].sum(axis=-2)) - f1_from_counts(table[x].sum(axis=-2))

    swapped = stats.permutation_test(
        (units, units + len(gold)), difference, permutation_type="samples", vectorized=True, n_resamples=20_000,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    drawn = stats.bootstrap(
        (units, units + len(gold)), difference, paired=True, vectorized=True, method="percentile", n_resamples=20_000,
        rng=np.random.default_rng(2),
    )  # fmt: skip
    found = compare(gold, a, b, rng=rng(), n_resamples=20_000)
    assert found.difference == pytest.approx(swapped.statistic) == pytest.approx(difference(units, units + len(gold)))
    assert found.randomisation_p == pytest.approx(swapped.pvalue, abs=0.012)
    low, high = drawn.confidence_interval
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.003)
    not_better = np.mean(drawn.bootstrap_distribution <= 0)
    assert found.share_not_better == pytest.approx(not_better, abs=0.01)
    assert found.bootstrap_p == pytest.approx(2 * min(not_better, 1 - not_better), abs=0.02)


def test_scores_are_those_of_evaluate() -> None:
    gold, a, b = case(5, 20, 0.3, 0.2)
    found = compare(gold, a, b, rng=rng(), n_resamples=100)
    scores = evaluate(gold, a), evaluate(gold, b)
    rows = zip((found.micro, *found.per_label), *((s.micro, *s.per_label) for s in scores), strict=True)
    for row, of_a, of_b in rows:
        assert (row.label, row.support) == (of_a.label, of_a.support) == (of_b.label, of_b.support)
        assert (row.f1_a, row.f1_b, row.difference) == pytest.approx((of_a.f1, of_b.f1, of_b.f1 - of_a.f1))
    right = [
        {(i, e) for i, (g, p) in enumerate(zip(gold, side, strict=True)) for e in g.entities if e in p.entities}
        for side in (a, b)
    ]
    for row in found.per_label:
        assert row.only_a == sum(entity.label == row.label for _, entity in right[0] - right[1]) > 0
        assert row.only_b == sum(entity.label == row.label for _, entity in right[1] - right[0]) > 0
    assert found.micro.only_a == sum(row.only_a for row in found.per_label)
    assert found.interval.low < found.difference < found.interval.high


def test_a_label_that_only_one_predicts() -> None:
    gold, a, _ = case(5, 3, 0.0, 0.0)
    b = [document.with_tags(["B-MISC", *(document.tags or ())[1:]]) for document in gold]
    found = compare(gold, a, b, rng=rng(), n_resamples=100)
    misc = {row.label: row for row in found.per_label}["MISC"]
    assert (misc.f1_a, misc.f1_b, misc.support) == (0, 0, 0)
    assert found.micro.f1_b == pytest.approx(evaluate(gold, b).micro.f1)
    assert found.micro.f1_b < found.micro.f1_a == 1


@examples(25)
@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from(["document", "sentence"]))
def test_exchanging_a_and_b_only_changes_signs(seed: int, n_documents: int, unit) -> None:
    gold, a, b = case(seed, n_documents, 0.4, 0.3)
    one = compare(gold, a, b, rng=rng(), n_resamples=300, unit=unit)
    two = compare(gold, b, a, rng=rng(), n_resamples=300, unit=unit)
    assert one.difference == -two.difference
    assert (one.interval.low, one.interval.high) == pytest.approx((-two.interval.high, -two.interval.low), abs=1e-12)
    assert (one.bootstrap_p, one.randomisation_p) == (two.bootstrap_p, two.randomisation_p)
    assert (one.micro.only_a, one.micro.only_b) == (two.micro.only_b, two.micro.only_a)
    assert one.share_not_better + two.share_not_better >= 1  # both count samples without difference


@examples(25)
@given(st.integers(0, 10**6), st.integers(2, 9), st.floats(0, 1))
def test_against_itself_nothing_differs(seed: int, n_documents: int, rate: float) -> None:
    gold, a, _ = case(seed, n_documents, rate, rate)
    found = compare(gold, a, a, rng=rng(), n_resamples=50)
    assert (found.difference, found.interval.low, found.interval.high) == (0, 0, 0)
    assert (found.bootstrap_p, found.randomisation_p, found.share_not_better) == (1, 1, 1)
    assert (found.micro.only_a, found.micro.only_b) == (0, 0)


@pytest.mark.slow
def test_p_values_are_about_uniform_where_neither_is_better() -> None:
    """300 pairs of equally bad taggers have uniform p-values, and none of 30 real gains is missed."""
    random = np.random.default_rng(11)
    gold = corpus(random, 40)
    p = []
    for _ in range(300):
        found = compare(gold, noisy(gold, random, 0.3), noisy(gold, random, 0.3), rng=random, n_resamples=199)
        p.append((found.randomisation_p, found.bootstrap_p, found.share_not_better))
    for values in zip(*p, strict=True):
        assert stats.kstest(values, "uniform").pvalue > 0.001
        assert stats.binomtest(int(np.sum(np.array(values) <= 0.05)), 300, 0.05).pvalue > 0.001
    for _ in range(30):
        found = compare(gold, noisy(gold, random, 0.4), noisy(gold, random, 0.2), rng=random, n_resamples=199)
        assert max(found.randomisation_p, found.bootstrap_p, found.share_not_better) < 0.05
        assert found.interval.low > 0


def test_sentences_on_request_or_where_there_is_one_document() -> None:
    gold, a, b = case(6, 5, 0.3, 0.2)
    by_document = compare(gold, a, b, rng=rng(), n_resamples=100)
    by_sentence = compare(gold, a, b, rng=rng(), n_resamples=100, unit="sentence")
    alone = compare(gold[:1], a[:1], b[:1], rng=rng(), n_resamples=100)
    assert (by_document.interval.unit, by_document.n_units) == ("document", 5)
    assert (by_sentence.interval.unit, by_sentence.n_units) == ("sentence", 5 * N_SENTENCES)
    assert (alone.interval.unit, alone.n_units) == ("sentence", N_SENTENCES)
    assert by_document.micro == by_sentence.micro


def test_the_result_is_a_function_of_the_generator_not_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    gold, a, b = case(8, 12, 0.3, 0.2)
    one = compare(gold, a, b, rng=rng(), n_resamples=501)
    assert one == compare(iter(gold), iter(a), iter(b), rng=rng(), n_resamples=501)
    monkeypatch.setattr("herdner.evaluation.scores._MAX_CELLS", 50)
    assert one == compare(gold, a, b, rng=rng(), n_resamples=501)
    assert one != compare(gold, a, b, rng=np.random.default_rng(8), n_resamples=501)


def test_without_any_entity_there_is_no_difference() -> None:
    empty = [Document.from_tokens([["a", "b"]], [["O", "O"]])] * 2
    found = compare(empty, empty, empty, rng=rng(), n_resamples=10)
    assert (found.difference, found.randomisation_p, found.per_label) == (0, 1, ())


def test_refusals() -> None:
    gold, a, b = case(0, 2, 0.1, 0.1)
    one = [Document.from_tokens([["a"]], [["O"]])]
    with pytest.raises(ValueError, match="needs at least two sentences, got 1; give more"):
        compare(one, one, one, rng=rng())
    with pytest.raises(ValueError, match="or compare by sentence"):
        compare(gold[:1], a[:1], b[:1], rng=rng(), unit="document")
    with pytest.raises(ValueError, match="at least two sentences, got 0"):
        compare([], [], [], rng=rng())
    with pytest.raises(ValueError, match="`n_resamples` must be at least 1, got 0"):
        compare(gold, a, b, rng=rng(), n_resamples=0)
    with pytest.raises(ValueError, match="`unit` must be 'document' or 'sentence', got 'token'"):
        compare(gold, a, b, rng=rng(), unit="token")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="new: 2 gold documents but 1 predicted"):
        compare(gold, a, b[:1], rng=rng(), names=("old", "new"))
    with pytest.raises(ValueError, match=r"old: document 'd0': .* has other tokens than the gold document"):
        compare(gold[:1], one, b[:1], rng=rng(), names=("old", "new"))


def test_forms() -> None:
    gold, a, b = case(9, 30, 0.3, 0.1)
    found = compare(gold, a, b, rng=rng(), names=("old|one", "[red]new"), tokens_per_second=(12345.6, None))
    data = json.loads(found.to_json())
    assert data == json.loads(json.dumps(asdict(found)))
    assert data["micro"]["difference"] == found.difference > 0
    assert (data["interval"]["unit"], data["n_units"], data["interval"]["n_resamples"]) == ("document", 30, 10_000)
    lines = found.to_markdown().split("\n")
    assert lines[0] == "| label | F1 of A | F1 of B | B - A | only A correct | only B correct | support |"
    micro = found.micro
    assert lines[-3].startswith(f"| micro | {micro.f1_a:.2%} | {micro.f1_b:.2%} | +{100 * micro.difference:.2f} | ")
    assert lines[-1] == found.summary()
    assert "A is old|one, B is [red]new; B - A is +" in lines[-1]
    assert "A: 12,346 tokens per second" in lines[-1]
    assert "B: " not in lines[-1]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found.to_table())
    shown = console.export_text()
    assert "[red]new" in shown
    assert f"{micro.f1_b:.2%}" in shown
    assert isinstance(found, Comparison)
