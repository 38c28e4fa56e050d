"""Matches, confusion, frequent errors and repeated names, checked by hand, by counting and against nervaluate."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.evaluation.align import align_documents
from herdner.evaluation.compare import compare
from herdner.evaluation.consistency import count_repeated_names, find_repeated_names
from herdner.evaluation.errors import (
    SpanMatch,
    count_confusion,
    find_fixed_errors,
    find_frequent_errors,
    match_documents,
    match_spans,
)
from herdner.evaluation.partial import partial_scores
from herdner.evaluation.report.sections import confusion_grid
from herdner.evaluation.scores import evaluate
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import Span

TAGS = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@st.composite
def tagged(draw, n: int = 2):
    """Draw documents that are tagged n times with well-formed tags. They have few words, so that names repeat."""
    shape = draw(st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=3), min_size=1, max_size=3))
    words = [[[draw(st.sampled_from("AB")) for _ in range(k)] for k in sentences] for sentences in shape]
    sides = []
    for _ in range(n):
        tags = [[[draw(st.sampled_from(TAGS)) for _ in s] for s in d] for d in words]
        raw = [Document.from_tokens(w, t, id=f"d{i}") for i, (w, t) in enumerate(zip(words, tags, strict=True))]
        sides.append([d.with_entities(d.entities) for d in raw])
    return sides


def overlap(gold: Span, guess: Span) -> bool:
    return gold.start < guess.end and guess.start < gold.end


@pytest.mark.slow
@given(tagged())
def test_every_span_is_in_one_match_and_overlaps_are_matched(sides):
    for right, guess in zip(*sides, strict=True):
        gold, predicted = right.spans or [], guess.spans or []
        matches = match_spans(gold, predicted)
        assert sorted(m.gold for m in matches if m.gold) == gold
        assert sorted(m.predicted for m in matches if m.predicted) == predicted
        assert all(overlap(m.gold, m.predicted) for m in matches if m.gold and m.predicted)
        exact = {m.gold[:2] for m in matches if m.kind in ("correct", "label")}
        assert exact == {span[:2] for span in gold} & {span[:2] for span in predicted}
        for m in matches:
            for other in matches:  # no missed span overlaps a spurious one
                if m.kind == "missed" and other.kind == "spurious":
                    assert not overlap(m.gold, other.predicted)


def test_equal_labels_are_matched_before_larger_overlaps():
    gold = [Span(0, 4, "ORG"), Span(6, 7, "PER"), Span(9, 10, "LOC")]
    predicted = [Span(0, 1, "ORG"), Span(1, 4, "LOC"), Span(6, 7, "LOC"), Span(11, 12, "PER")]
    matches = match_spans(gold, predicted)
    assert SpanMatch(gold[0], predicted[0]) in matches
    kinds = ["boundaries", "spurious", "label", "missed", "spurious"]
    assert [m.kind for m in matches] == kinds
    assert match_spans([Span(0, 2, "A")], [Span(0, 3, "B")])[0].kind == "label and boundaries"


@given(tagged())
def test_confusion_counts_what_seqeval_counts(sides):
    gold, predicted = sides
    found = count_confusion(match_documents(gold, predicted))
    scores = evaluate(gold, predicted)
    counts = found.counts
    assert counts[:-1].sum() == scores.micro.support
    assert counts[:, :-1].sum() == sum(len(d.entities) for d in predicted)
    assert [row.label for row in scores.per_label] == list(found.labels)
    for i, row in enumerate(scores.per_label):
        assert found.same_boundaries[i, i] == pytest.approx(row.recall * row.support)
        assert counts[i].sum() == row.support
    kinds = found.kinds()
    assert sum(kinds.values()) == counts.sum()
    slow = Counter(f.match.kind for f in match_documents(gold, predicted))
    assert {kind: n for kind, n in kinds.items() if n} == slow
    shown = [cell for _, row in confusion_grid(found).rows for cell in row if cell is not None]
    assert sum(cell.same + cell.other for cell in shown) == counts.sum()
    assert sum(cell.share for cell in shown) == pytest.approx(np.count_nonzero(counts.sum(axis=1)))


@given(tagged())
def test_frequent_errors_cover_all_errors(sides):
    gold, predicted = sides
    found = match_documents(gold, predicted)
    errors = find_frequent_errors(found, gold, n=None, n_examples=100)
    assert sum(e.count for e in errors) == sum(f.match.kind != "correct" for f in found)
    assert [e.count for e in errors] == sorted((e.count for e in errors), reverse=True)
    for error in errors:
        assert len(error.examples) == error.count
        assert len({e.document for e in error.examples}) == error.n_documents
        for example in error.examples:
            for place, text in ((example.gold, error.gold_text), (example.predicted, error.predicted_text)):
                assert (place is None) == (text is None)
                assert place is None or " ".join(example.text[slice(*place)].split()) == text


@pytest.mark.slow
@given(tagged(3))
def test_fixed_errors_agree_with_compare(sides):
    gold, a, b = sides
    of_a, of_b = match_documents(gold, a), match_documents(gold, b)
    gone, new = find_fixed_errors(of_a, of_b), find_fixed_errors(of_b, of_a)
    assert all(error.match.kind != "correct" for error in (*gone, *new))
    assert find_fixed_errors(of_a, of_a) == []
    if sum(d.n_sentences for d in gold) > 1:
        found = compare(gold, a, b, rng=np.random.default_rng(0), n_resamples=1, unit="sentence")
        assert sum(error.match.gold is not None for error in gone) == found.micro.only_b
        assert sum(error.match.gold is not None for error in new) == found.micro.only_a
    spurious = {(f.document, f.match.predicted) for f in gone if f.match.gold is None}
    claimed = {(i, span) for i, d in enumerate(b) for span in d.spans or []}
    assert not spurious & claimed


@pytest.mark.slow
@given(tagged())
def test_strict_matches_of_nervaluate_are_those_of_seqeval(sides):
    pytest.importorskip("nervaluate", reason="needs the extra evaluate")
    from nervaluate import Evaluator

    gold, predicted = sides
    found = partial_scores(gold, predicted)
    strict = found.overall[0]
    micro = evaluate(gold, predicted).micro
    assert (strict.precision, strict.recall, strict.f1) == pytest.approx((micro.precision, micro.recall, micro.f1))
    labels = sorted({e.label for d in (*gold, *predicted) for e in d.entities})
    if labels:  # compare with nervaluate on whole documents
        sides_of = [
            [[{"label": s.label, "start": s.start, "end": s.end - 1} for s in d.spans or []] for d in side]
            for side in sides
        ]
        whole = Evaluator(*sides_of, tags=labels, loader="dict").evaluate()["overall"]
        for row in found.overall:
            theirs = whole[row.matching]
            names = ("correct", "incorrect", "partial", "missed", "spurious", "precision", "recall", "f1")
            assert [getattr(row, n) for n in names] == pytest.approx([getattr(theirs, n) for n in names])


def test_without_nervaluate_there_is_one_line(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "nervaluate", None)
    with pytest.raises(ImportError, match=r"need nervaluate: pip install '\.\[evaluate\]'"):
        partial_scores([], [])


# --- repeated names


def test_repeated_names_by_hand():
    """Washington PER and LOC; Rio is tagged once and missed once; the Clinton in "Bill Clinton" is not missed."""
    sentences = [
        ["Washington", "met", "Bill", "Clinton", "in", "Rio"],
        ["Clinton", "left", "Washington", ".", "Rio"],
        ["Oslo", "in", "Oslo"],
    ]
    tags = [["B-PER", "O", "B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O", "B-LOC", "O", "O"], ["B-LOC", "O", "B-LOC"]]
    document = Document.from_tokens(sentences, tags)
    found = count_repeated_names([document, document])
    assert (found.n_repeated, found.n_differing, found.n_occurring, found.n_partly_missed) == (4, 2, 6, 2)
    assert (found.share_differing, found.share_partly_missed) == (0.5, pytest.approx(1 / 3))
    assert found.n_unlike_reference is None
    names = {" ".join(name.name): name for name in find_repeated_names([document])}
    assert names["Washington"].labels == {"PER": 1, "LOC": 1}
    assert names["Rio"].n_untagged == 1
    assert "Clinton" not in names
    truth = document.with_tags(
        [t.replace("B-PER", "B-LOC") if i == 0 else t for i, t in enumerate(document.tags or ())]
    )
    assert count_repeated_names([document], [truth]).n_unlike_reference == 1
    assert count_repeated_names([document], [document]).n_unlike_reference == 0
    assert count_repeated_names([]).share_differing == 0


@given(tagged(1))
def test_repeated_names_agree_with_brute_force(sides):
    (documents,) = sides
    expected = []
    for number, document in enumerate(documents):
        spans = document.spans or []
        tokens = list(document.tokens)
        used = {t for s, e, _ in spans for t in range(s, e)}
        sentence = [0] * len(tokens)
        for i, start in enumerate(document.sentence_offsets[:-1]):
            sentence[start:] = [i] * (len(tokens) - start)
        for name in dict.fromkeys(tuple(tokens[s:e]) for s, e, _ in spans):
            labels = Counter(label for s, e, label in spans if tuple(tokens[s:e]) == name)
            bare, last = 0, 0
            for i in range(len(tokens) - len(name) + 1):
                place = range(i, i + len(name))
                fits = i >= last and tuple(tokens[i : i + len(name)]) == name and not used.intersection(place)
                if fits and len({sentence[t] for t in place}) == 1:
                    bare, last = bare + 1, i + len(name)
            if bare + labels.total() > 1:
                expected.append((number, name, dict(labels), bare))
    assert [tuple(name) for name in find_repeated_names(documents)] == expected


# --- alignment


def gold_documents() -> list[Document]:
    tags = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "O"]]
    first = Document.from_tokens([["Ada", "Lovelace", "left", "."], ["U.S.", "news"]], tags, id="a")
    return [first, Document.from_tokens([["Rain", "."]], [["O", "O"]], id="b")]


def test_predictions_with_other_tokens_and_white_space():
    gold = gold_documents()
    text = "Ada  Lovelace left.\nU.S. news"
    other = Document.from_aligned(text, [["Ada", "Lovelace", "left", "."], ["U", ".", "S", ".", "news"]], id="a")
    guess = other.with_entities([Entity(0, 13, "PERSON", text[:13], 0.75), Entity(20, 21, "LOC", "U", 0.5)])
    plain = Document.from_text("Rain.", id="b").with_entities([])
    found = align_documents(gold, [plain, guess], labels={"PERSON": "PER"}, name="x")  # matched by id
    assert [d.id for d in found.documents] == ["a", "b"]
    assert found.documents[0].spans == [Span(0, 2, "PER"), Span(4, 5, "LOC")]
    assert [(e.text, e.confidence) for e in found.documents[0].entities] == [("Ada Lovelace", 0.75), ("U.S.", 0.5)]
    assert (found.n_retokenized, found.n_widened, found.n_dropped) == (1, 1, 0)


def test_malformed_tags_count_as_evaluate_counts_them():
    gold = gold_documents()
    raw = [gold[0].with_tags(["I-PER", "I-PER", "O", "O", "B-LOC", "O"]), gold[1]]
    assert evaluate(gold, align_documents(gold, raw).documents).micro == evaluate(gold, raw).micro


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_any_order_of_ids(order):
    words = [[["Ada", "sang"]], [["Rio", "sang"]], [["Oslo", "sang"]]]
    gold = [Document.from_tokens(w, [["B-PER", "O"]], id=f"d{i}") for i, w in enumerate(words)]
    assert [d.text for d in align_documents(gold, [gold[i] for i in order]).documents] == [d.text for d in gold]


def test_predictions_for_further_documents_are_left_out():
    a, b = gold_documents()
    aligned = align_documents([a, b], [Document.from_tokens([["c"]], [["O"]], id="c"), b, a])
    assert [document.id for document in aligned.documents] == ["a", "b"]
    assert aligned.warnings() == ["1 predicted document was left out, because it is no gold document"]
    assert replace(aligned, n_other=1000, n_dropped=1).warnings() == [
        "1,000 predicted documents were left out, because they are no gold documents",
        "1 entity was left out, because it touches no gold token or only gold tokens of other entities",
    ]


def test_documents_that_do_not_match_are_one_line():
    gold = gold_documents()
    a, b = gold

    def refuse(predicted, match):
        with pytest.raises(ValueError, match=f"^x: {match}") as caught:
            align_documents(gold, predicted, name="x")
        assert "\n" not in str(caught.value)

    refuse([a], "expected 2 documents, as in the gold file, got 1; 'b' is missing")
    refuse([a, a, b], "expected 2 documents, as in the gold file, got 3; 'a' occurs more than once")
    refuse(
        [a, b, b, Document.from_tokens([["c"]], [["O"]], id="c")],
        "expected 2 documents, as in the gold file, got 4; 'b' occurs more than once and 'c' is not a gold document",
    )
    refuse(
        [Document.from_tokens([["c"]], [["O"]], id="c")],
        "expected 2 documents, as in the gold file, got 1; predict each gold document once",
    )
    wrong = Document.from_tokens([["Ada", "Lovelace", "lift", "."], ["U.S.", "news"]], [["O"] * 4, ["O"] * 2], id="a")
    refuse([wrong, b], "document 'a' must have the text of gold document 'a', but has 'ift .")
    short = Document.from_tokens([["Ada"]], [["O"]], id="a")
    refuse([short, b], r"document 'a' must have the text .* has '' at .* the gold document has 'Lovelace")
    refuse([a, Document.from_text("Rain.", id="b")], "document 'b' has no annotation")
