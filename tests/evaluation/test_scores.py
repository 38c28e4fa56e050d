"""Scores against seqeval on raw tags, and the bootstrap against its definition."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from seqeval.metrics import classification_report
from seqeval.scheme import IOB2, IOBES

from herdner.evaluation.scores import Scores, bootstrap_interval, count_entities, evaluate, pair_documents
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import convert_tags

IOB2_TAGS = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
IOBES_TAGS = ["O", "S-PER", "B-PER", "I-PER", "E-PER", "S-LOC", "B-LOC", "E-LOC"]


def documents(tags: list[list[list[str]]]) -> list[Document]:
    return [
        Document.from_tokens([[f"w{i}" for i in range(len(s))] for s in d], d, id=f"d{k}") for k, d in enumerate(tags)
    ]


@st.composite
def gold_and_predicted(draw, tags=IOB2_TAGS):
    shape = draw(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=4))
    sentence = lambda n: draw(st.lists(st.sampled_from(tags), min_size=n, max_size=n))  # noqa: E731
    gold = [[convert_tags(sentence(n), None, "iob2" if tags is IOB2_TAGS else "iobes") for n in d] for d in shape]
    return gold, [[sentence(n) for n in d] for d in shape]


def reported(gold, predicted, scheme):
    flat = [[s for d in docs for s in d] for docs in (gold, predicted)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return classification_report(*flat, mode="strict", scheme=scheme, output_dict=True, zero_division=0)


@pytest.mark.slow
@pytest.mark.parametrize(("tags", "scheme"), [(IOB2_TAGS, IOB2), (IOBES_TAGS, IOBES)])
@given(data=st.data())
def test_scores_agree_with_strict_seqeval_on_raw_tags(tags, scheme, data):
    """Malformed predictions are included."""
    gold, predicted = data.draw(gold_and_predicted(tags))
    report = reported(gold, predicted, scheme)
    scores = evaluate(documents(gold), documents(predicted), scheme="iob2" if scheme is IOB2 else "iobes")
    for row in (scores.micro, *scores.per_label):
        expected = report["micro avg" if row.label == "micro" else row.label]
        assert (row.precision, row.recall, row.f1) == pytest.approx(
            (expected["precision"], expected["recall"], expected["f1-score"])
        )
        assert row.support == expected["support"]
    assert {row.label for row in scores.per_label} == set(report) - {"micro avg", "macro avg", "weighted avg"}
    supported = [row for label, row in report.items() if not label.endswith("avg") and row["support"]]
    expected_f1 = np.mean([row["f1-score"] for row in supported]) if supported else 0.0
    assert scores.macro.f1 == pytest.approx(expected_f1)


@pytest.mark.slow
@given(case=gold_and_predicted())
def test_counts_of_the_bootstrap_give_the_same_scores(case):
    gold, predicted = map(documents, case)
    scores = evaluate(gold, predicted)
    pairs = list(pair_documents(gold, predicted))
    labels, by_document = count_entities(pairs)
    assert (count_entities(pairs, "sentence")[1].sum(axis=0) == by_document.sum(axis=0)).all()
    assert len(by_document) == len(gold)
    rows = [*zip(scores.per_label, by_document.sum(axis=0), strict=True), (scores.micro, by_document.sum(axis=(0, 1)))]
    assert [row.label for row in scores.per_label] == labels
    for row, (right, n_predicted, n_gold) in rows:
        assert row.precision == pytest.approx(right / max(n_predicted, 1))
        assert row.recall == pytest.approx(right / max(n_gold, 1))
        assert row.f1 == pytest.approx(2 * right / max(n_predicted + n_gold, 1))
        assert row.support == n_gold


def test_gold_in_iob1_and_prediction_in_iobes():
    gold = documents([[["I-PER", "I-PER", "B-PER", "O", "I-LOC"]]])
    predicted = documents([[["B-PER", "E-PER", "S-PER", "O", "O"]]])
    micro = evaluate(gold, predicted).micro
    assert (micro.precision, micro.recall, micro.support) == (1.0, pytest.approx(2 / 3), 3)


def test_entities_count_where_there_are_no_tags():
    """A gold entity across a wrong sentence boundary stays one entity; character spans are projected onto tokens."""
    base = Document.from_tokens([["U.S."], ["Senate", "sat"]])
    gold = base.with_entities([Entity(0, 11, "ORG", "U.S.\nSenate")])
    for predicted, recall in [
        (base, 0.0),
        (base.with_tags(["B-ORG", "B-ORG", "O"]), 0.0),
        (base.with_tags(["B-ORG", "I-ORG", "O"]), 0.0),  # tags cannot cross the sentence boundary
        (base.with_proposals(gold.entities), 1.0),
        (base.with_proposals([Entity(1, 8, "ORG", ".S.\nSen")]), 1.0),
    ]:
        scores = evaluate([gold], [predicted])
        assert (scores.micro.support, scores.micro.recall) == (1, recall)


@pytest.mark.slow
def test_interval_holds_the_mean_of_a_slow_bootstrap():
    rng = np.random.default_rng(0)
    tags = [[[str(rng.choice(["B-PER", "B-LOC", "O"])) for _ in range(8)]] for _ in range(60)]
    noisy = [[[t if rng.random() < 0.8 else "O" for t in s] for s in d] for d in tags]
    gold, predicted = documents(tags), documents(noisy)
    scores = evaluate(gold, predicted, rng=np.random.default_rng(1), n_resamples=2000, level=0.9)
    slow = []
    for _ in range(200):
        chosen = rng.integers(len(gold), size=len(gold))
        slow.append(evaluate([gold[i] for i in chosen], [predicted[i] for i in chosen]).micro.f1)
    interval = scores.interval
    assert interval.unit == "document"
    assert interval.low < scores.micro.f1 < interval.high
    assert np.quantile(slow, [0.05, 0.95]) == pytest.approx([interval.low, interval.high], abs=0.012)


def test_interval_is_a_function_of_the_generator(monkeypatch):
    gold, predicted = documents([[["B-PER"], ["O"], ["B-LOC"]]]), documents([[["B-PER"], ["O"], ["O"]]])
    pairs = list(pair_documents(gold, predicted))
    one, two = (bootstrap_interval(pairs, np.random.default_rng(5), 300) for _ in range(2))
    assert one == two
    assert one.unit == "sentence"  # only one document
    monkeypatch.setattr("herdner.evaluation.scores._MAX_CELLS", 30)  # many small batches
    assert bootstrap_interval(pairs, np.random.default_rng(5), 300) == one
    assert evaluate(gold, predicted).interval is None
    assert bootstrap_interval(pairs[:0], np.random.default_rng(0)) is None


def test_perfect_and_empty():
    gold = documents([[["B-PER", "O"]], [["B-LOC"]]])
    scores = evaluate(gold, gold, rng=np.random.default_rng(0))
    assert (scores.micro.f1, scores.interval.low, scores.interval.high) == (1.0, 1.0, 1.0)
    empty = evaluate(documents([[["O"]]]), documents([[["O"]]]))
    assert (empty.micro.f1, empty.micro.support, empty.per_label) == (0.0, 0, ())
    assert evaluate([], []).n_documents == 0


def test_refusals():
    gold = documents([[["O", "O"]]])
    with pytest.raises(ValueError, match="1 gold document but 0 predicted"):
        evaluate(gold, [])
    with pytest.raises(ValueError, match="document 'd0': the predicted document has other tokens"):
        evaluate(gold, documents([[["O"]]]))
    with pytest.raises(TypeError, match="`evaluate` compares documents, got 'Ada met Bo'; read or tag documents first"):
        evaluate(gold, ["Ada met Bo"])


def test_forms():
    gold = documents([[["B-PER", "O", "B-LOC"]], [["B-[red]x", "O"]]])
    predicted = documents([[["B-PER", "O", "O"]], [["O", "O"]]])
    scores = evaluate(gold, predicted, rng=np.random.default_rng(0), tokens_per_second=12345.6)
    data = json.loads(scores.to_json())
    assert data["micro"] == {"label": "micro", "precision": 1.0, "recall": 1 / 3, "f1": 0.5, "support": 3}
    assert [row["label"] for row in data["per_label"]] == ["LOC", "PER", "[red]x"]
    assert (data["n_documents"], data["n_sentences"], data["n_tokens"]) == (2, 2, 5)
    assert data["tokens_per_second"] == 12345.6
    lines = scores.to_markdown().split("\n")
    assert lines[0] == "| label | precision | recall | F1 | support |"
    assert lines[-3] == "| micro | 100.00% | 33.33% | 50.00% | 3 |"
    assert "12,346 tokens per second" in lines[-1]
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(scores.to_table())
    shown = console.export_text()
    assert "[red]x" in shown
    assert "33.33%" in shown
    assert "by bootstrap over documents" in shown
    assert isinstance(scores, Scores)
