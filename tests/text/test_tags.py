"""Tag schemes against seqeval, against each other and against brute force."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB2, IOBES, Entities

from herdner.text.tags import (
    SCHEMES,
    Span,
    allowed_transitions,
    check_tags,
    convert_tags,
    detect_scheme,
    spans_from_tags,
    split_tag,
    tags_from_spans,
)

LABELS = ["PER", "LOC", "creative-work"]
SEQEVAL = {"iob2": IOB2, "iobes": IOBES, "bilou": BILOU}


@st.composite
def sentences_with_spans(draw):
    """Draw sentence offsets and disjoint spans within sentences, many of them adjacent."""
    pieces = draw(st.lists(st.tuples(st.sampled_from(["", *LABELS]), st.integers(1, 4), st.booleans()), max_size=12))
    position, spans, offsets = 0, [], [0]
    for label, length, closes_sentence in pieces:
        if label:
            spans.append(Span(position, position + length, label))
        position += length
        if closes_sentence:
            offsets.append(position)
    if offsets[-1] != position:
        offsets.append(position)
    return np.array(offsets), spans


def any_tags(prefixes: str, labels=("PER", "LOC")):
    known = ["O", *(f"{p}-{label}" for p in prefixes if p != "O" for label in labels)]
    return st.lists(st.sampled_from(known), max_size=12)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@given(case=sentences_with_spans())
def test_spans_survive_every_scheme(scheme, case):
    offsets, spans = case
    tags = tags_from_spans(spans, int(offsets[-1]), scheme, offsets)
    assert spans_from_tags(tags, offsets) == spans
    check_tags(tags, scheme)
    if scheme != "iob1":
        assert spans_from_tags(tags, offsets, strict=scheme) == spans


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), list(itertools.product(SCHEMES, repeat=2)))
@given(case=sentences_with_spans())
def test_conversion_preserves_spans(source, target, case):
    offsets, spans = case
    n = int(offsets[-1])
    there = convert_tags(tags_from_spans(spans, n, source, offsets), source, target, offsets)
    assert there == tags_from_spans(spans, n, target, offsets)
    assert convert_tags(there, target, source, offsets) == tags_from_spans(spans, n, source, offsets)


@given(tags=any_tags("BIOES", LABELS))
def test_lenient_reading_is_seqevals(tags):
    expected = [Span(start, end + 1, label) for label, start, end in get_entities(tags)]
    assert spans_from_tags(tags) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "prefixes"), [("iob2", "BIO"), ("iobes", "BIOES"), ("bilou", "BILOU")])
@given(data=st.data())
def test_strict_reading_is_seqevals(scheme, prefixes, data):
    tags = data.draw(any_tags(prefixes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [Span(e.start, e.end, e.tag) for e in Entities([tags], SEQEVAL[scheme]).entities[0]]
    assert spans_from_tags(tags, strict=scheme) == expected


@given(data=st.data(), tags=any_tags("BIOES"))
def test_no_span_crosses_a_sentence(data, tags):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(tags)))) | {0, len(tags)})
    whole = spans_from_tags(tags, cuts)
    parts = [
        Span(s.start + a, s.end + a, s.label) for a, b in itertools.pairwise(cuts) for s in spans_from_tags(tags[a:b])
    ]
    assert whole == parts


@pytest.mark.parametrize("scheme", SCHEMES)
def test_allowed_transitions_are_those_of_well_formed_sequences(scheme):
    """A sequence of three tags is allowed if and only if writing its spans gives the same sequence."""
    prefixes = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}[scheme]
    tags = ["O", *(f"{p}-{label}" for p in prefixes for label in ("A", "B"))]
    follow, start, end = allowed_transitions(tags, scheme)
    assert follow.shape == (len(tags),) * 2
    assert follow.dtype == start.dtype == end.dtype == np.bool_
    for i, j, k in itertools.product(range(len(tags)), repeat=3):
        sequence = [tags[i], tags[j], tags[k]]
        allowed = bool(start[i] and follow[i, j] and follow[j, k] and end[k])
        assert allowed == (convert_tags(sequence, scheme, scheme) == sequence), sequence


def test_bilou_is_read_and_becomes_iobes():
    tags = ["U-PER", "O", "B-ORG", "I-ORG", "L-ORG"]
    assert convert_tags(tags, "bilou", "iobes") == ["S-PER", "O", "B-ORG", "I-ORG", "E-ORG"]
    assert detect_scheme([tags]) == "bilou"


@pytest.mark.parametrize(
    ("sequences", "scheme"),
    [
        ([["I-PER", "I-PER", "O"], ["I-LOC", "B-LOC"]], "iob1"),
        ([["B-PER", "I-PER", "O"], ["B-LOC"]], "iob2"),
        ([["B-PER", "I-PER", "O"], ["O", "I-LOC"]], "iob2"),  # a malformed span in IOB2
        ([["I-PER", "O"], ["I-LOC"], ["O", "B-ORG", "I-ORG"]], "iob1"),  # a needless B-, as twice in eng.train
        ([["O", "S-PER"]], "iobes"),
        ([["O", "O"]], "iob2"),
        ([], "iob2"),
    ],
)
def test_detection(sequences, scheme):
    assert detect_scheme(sequences) == scheme


@given(case=sentences_with_spans())
def test_detected_scheme_reads_what_was_written(case):
    offsets, spans = case
    for scheme in SCHEMES:
        tags = tags_from_spans(spans, int(offsets[-1]), scheme, offsets)
        parts = [tags[a:b] for a, b in itertools.pairwise(offsets)]
        found = detect_scheme(parts)
        if found != "iob1":
            assert spans_from_tags(tags, offsets, strict=found) == spans


def test_iob1_writes_b_only_where_needed():
    spans = [Span(0, 2, "PER"), Span(2, 3, "PER"), Span(3, 4, "LOC"), Span(4, 5, "LOC")]
    assert tags_from_spans(spans, 5, "iob1", [0, 4, 5]) == ["I-PER", "I-PER", "B-PER", "I-LOC", "I-LOC"]


@pytest.mark.parametrize("tag", ["", "PER", "B", "B-", "-PER", "X-PER", "o", "b-PER", "BPER", "<b>"])
def test_invalid_tags_are_refused(tag):
    with pytest.raises(ValueError, match="is not a tag"):
        split_tag(tag)


def test_refusals():
    with pytest.raises(ValueError, match="does not exist in iob2"):
        convert_tags(["S-PER"], "iob2", "iobes")
    with pytest.raises(ValueError, match="must be disjoint"):
        tags_from_spans([Span(0, 2, "A"), Span(1, 3, "B")], 3)
    with pytest.raises(ValueError, match="within the 3 tokens"):
        tags_from_spans([Span(2, 4, "A")], 3)
    with pytest.raises(ValueError, match="iob1"):
        spans_from_tags(["O"], strict="iob1")
