"""Scores of tokens from the spans of a tagger, and what the layer offers to those who use them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scored_documents import IOB2, OFFSETS, SCORES, WORDS

from herdner import SkipChainLayer
from herdner.integrations.spacy.task import NoiseModel, tags_of, token_scores
from herdner.text.tags import Span

LABELS = ["LOC", "PER"]


def scores_of(spans: list[Span], linked: list[bool], outside: list[int]) -> np.ndarray:
    noise = NoiseModel()
    rows = [noise.span_scores(2, LABELS.index(span.label)) for span in spans]
    missed = np.tile(noise.outside_scores(2), (len(outside), 1))
    return token_scores(len(linked), LABELS, spans, rows, np.array(outside, int), missed, np.array(linked))


def test_scores_of_a_span_are_probabilities() -> None:
    for row in (NoiseModel().span_scores(3, 1), NoiseModel().span_scores(3, 1, 0.4), NoiseModel().outside_scores(3)):
        assert np.exp(row).sum() == pytest.approx(1)
    assert np.exp(NoiseModel().span_scores(3, 1, 0.4))[1] == pytest.approx(0.4)
    assert np.isfinite(NoiseModel().span_scores(3, 1, 1.0)).all()
    assert np.isfinite(NoiseModel().parser_scores(np.array([0.0, 1.0, 0.0]))).all()


def test_without_links_the_spans_come_out_again() -> None:
    spans = [Span(0, 2, "PER"), Span(2, 3, "LOC"), Span(5, 7, "LOC")]
    for linked in ([True] * 8, [False] * 8, [False, True] * 4):
        scores = scores_of(spans, linked, [t for t in (3, 4, 7) if linked[t]])
        assert SkipChainLayer(tags_of(LABELS)).apply(scores, ["a"] * 8).spans == spans


def test_what_is_linked_to_nothing_cannot_change() -> None:
    scores = scores_of([Span(0, 2, "PER")], [False, False, False, True], [3])
    assert (np.isfinite(scores).sum(axis=1) == [1, 1, 1, 5]).all()


def test_links_found_before_give_the_same() -> None:
    layer = SkipChainLayer(IOB2)
    links = layer.links(WORDS, OFFSETS)
    np.testing.assert_array_equal(links[0], [[0, 5]])
    one, other = layer.apply(SCORES, WORDS, OFFSETS), layer.apply(SCORES, WORDS, OFFSETS, links=links)
    assert one.tags == other.tags
    np.testing.assert_array_equal(one.confidences, other.confidences)
    none = layer.apply(SCORES, WORDS, OFFSETS, links=[np.empty((0, 2), np.int32)])
    assert none.tags[5] == "B-LOC"


def test_confidences_are_of_whole_spans() -> None:
    layer, none = SkipChainLayer(IOB2), [np.empty((0, 2), np.int32)]
    result = layer.apply(SCORES, WORDS, OFFSETS, links=none)
    assert result.confidences is not None
    assert result.marginals is not None
    assert result.spans == [Span(0, 1, "PER"), Span(5, 6, "LOC")]
    assert result.confidences[0] == pytest.approx(result.marginals[0, IOB2.index("B-PER")])
    assert result.confidences[1] == pytest.approx(result.marginals[5, IOB2.index("B-LOC")])
    surer = layer.apply(SCORES, WORDS, OFFSETS)
    assert surer.confidences is not None
    assert surer.confidences[0] > result.confidences[0]
    assert SkipChainLayer(IOB2, backend="icm").apply(SCORES, WORDS, OFFSETS).confidences is None


def test_links_between_tokens_outside_have_a_tie_of_their_own() -> None:
    scores = np.array([[0, 1.0], [0.2, 0.0]])
    words = ["Paris", "Paris"]

    def outside(strength: float | None) -> list[str]:
        return SkipChainLayer(["O", "I-LOC"], link_strength=0.0, outside_strength=strength).apply(scores, words).tags

    assert outside(None) == ["I-LOC", "O"]
    assert outside(5.0) == ["O", "O"]
    stream = io.BytesIO()
    SkipChainLayer(["O", "I-LOC"], link_strength=0.0, outside_strength=5.0).save(stream)
    stream.seek(0)
    assert SkipChainLayer.load(stream).apply(scores, words).tags == ["O", "O"]
    with pytest.raises(ValueError, match="outside_strength must be a finite number"):
        outside(float("nan"))
