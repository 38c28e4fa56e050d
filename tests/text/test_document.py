"""Consistency of offsets, tags and entities of documents."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.text.document import Document, project
from herdner.text.entity import Entity
from herdner.text.tags import Span, spans_from_tags

WORDS = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=5)
WORDS = WORDS.filter(lambda word: not any(map(str.isspace, word)))
SENTENCES = st.lists(st.lists(WORDS, max_size=5), max_size=5)


def check(document: Document) -> None:
    """Check the invariants of a document."""
    assert len(document.token_starts) == len(document.token_ends) == document.n_tokens
    starts, ends = document.token_starts.tolist(), document.token_ends.tolist()
    assert [document.text[a:b] for a, b in zip(starts, ends, strict=True)] == list(document.tokens)
    offsets = document.sentence_offsets
    assert offsets[0] == 0
    assert offsets[-1] == document.n_tokens
    assert (np.diff(offsets) > 0).all()
    for entity in document.entities:
        assert document.text[entity.start : entity.end] == entity.text


@given(sentences=SENTENCES, data=st.data())
def test_from_tokens(sentences, data):
    tags = [[data.draw(st.sampled_from(["O", "B-PER", "I-PER", "S-LOC"])) for _ in s] for s in sentences]
    document = Document.from_tokens(sentences, tags, id="x", fields={"a": 1})
    check(document)
    kept = [s for s in sentences if s]
    assert [list(s) for s in document.sentences()] == kept
    assert [list(t) for t in document.sentence_tags()] == [t for t in tags if t]
    assert document.text == "\n".join(" ".join(s) for s in kept)
    assert document.spans == spans_from_tags(document.tags, document.sentence_offsets)
    assert project(document.entities, document)[1:] == (0, 0)
    assert (document.id, document.fields) == ("x", {"a": 1})


@given(sentences=SENTENCES)
def test_from_aligned_finds_the_tokens(sentences):
    expected = Document.from_tokens(sentences)
    spaced = Document.from_aligned("\n" + expected.text.replace(" ", " \t ") + " ", sentences, id="x")
    check(spaced)
    assert spaced.tokens == expected.tokens
    assert spaced.sentence_offsets.tolist() == expected.sentence_offsets.tolist()
    for text in (expected.text + " §§", "§§§§§§ " + expected.text):
        with pytest.raises(ValueError, match="do not match the text"):
            Document.from_aligned(text, sentences)


def test_offsets_count_characters():
    document = Document.from_tokens([["Zoë", "😀", "ﬁ"], ["São", "Paulo"]], [["B-PER", "O", "O"], ["B-LOC", "I-LOC"]])
    assert document.entities == (Entity(0, 3, "PER", "Zoë"), Entity(8, 17, "LOC", "São Paulo"))


@given(data=st.data(), sentences=SENTENCES)
def test_projection_agrees_with_every_token(data, sentences):
    document = Document.from_tokens(sentences)
    cut = st.integers(0, len(document.text))
    cuts = sorted(data.draw(st.lists(cut, max_size=8, unique=True)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    entities = [Entity(a, b, "X", document.text[a:b]) for a, b in pairs]
    spans, n_widened, n_dropped = project(entities, document)
    assert len(spans) + n_dropped == len(entities)
    borders = list(zip(document.token_starts.tolist(), document.token_ends.tolist(), strict=True))
    touched = [{t for t, (start, end) in enumerate(borders) if start < b and a < end} for a, b in pairs]
    assert {t for span in spans for t in range(span.start, span.end)} == set().union(*touched)
    if sum(map(len, touched)) == len(set().union(*touched)):  # no token is claimed twice
        reach = [(borders[min(ts)][0], borders[max(ts)][1]) if ts else None for ts in touched]
        assert n_dropped == touched.count(set())
        assert n_widened == sum(r is not None and r != pair for pair, r in zip(pairs, reach, strict=True))
    check(document.with_entities(entities))


def test_widened_and_dropped():
    document = Document.from_tokens([["Anglo-American", "talks", "."]])
    entities = [Entity(0, 5, "LOC", "Anglo"), Entity(6, 14, "LOC", "American"), Entity(15, 20, "MISC", "talks")]
    assert project(entities, document) == ([Span(0, 1, "LOC"), Span(1, 2, "MISC")], 1, 1)
    assert project([Entity(14, 15, "LOC", " ")], document) == ([], 0, 1)
    tagged = document.with_entities(reversed(entities), scheme="iobes")
    assert tagged.tags == ["S-LOC", "S-MISC", "O"]
    assert tagged.entities == tuple(entities)


def test_entities_carry_confidences():
    document = Document.from_tokens([["Ada", "Lovelace", "wrote"]])
    (entity,) = document.entities_from_spans([Span(0, 2, "PER")], np.array([0.25], np.float32))
    assert entity == Entity(0, 12, "PER", "Ada Lovelace", 0.25)
    assert type(entity.confidence) is float


def test_entities_of_missing_tokens_are_refused():
    document = Document.from_tokens([["Ada", "wrote"]])
    for wrong in (Span(0, 3, "PER"), Span(-1, 1, "PER"), Span(1, 1, "PER")):
        with pytest.raises(IndexError, match="is not within 2 tokens"):
            document.entities_from_spans([wrong])
    with pytest.raises(ValueError, match="the numbers must agree"):
        document.entities_from_spans([Span(0, 1, "PER")], [0.5, 0.5])
    (entity,) = document.entities_from_spans([Span(0, 1, "PER")])
    assert pickle.loads(pickle.dumps(entity)) == entity == Entity(0, 3, "PER", "Ada")
    assert hash(entity) == hash(Entity(0, 3, "PER", "Ada"))


def test_refusals():
    document = Document.from_tokens([["Ada", "wrote"]])
    with pytest.raises(ValueError, match="2 tokens but got 1 tags"):
        document.with_tags(["O"])
    with pytest.raises(ValueError, match="as many tags as tokens"):
        Document.from_tokens([["Ada"], ["wrote"]], [["O", "O"]])
    with pytest.raises(ValueError, match="has no tags"):
        list(document.sentence_tags())
    with pytest.raises(TypeError, match=r"a tag must be a string such as 'B-PER', got 3; replace .* names\[3\]; for a"):
        document.with_tags([3, 0])
    with pytest.raises(TypeError, match=r"a tag must be a string such as .B-PER., got None$"):
        document.with_tags([None, "O"])


def test_a_document_is_described_in_one_line():
    document = Document.from_tokens([["Ada", "met", "Bo"]], [["B-PER", "O", "O"]])
    assert repr(document) == "Document('Ada met Bo', 3 tokens, 1 entity)"
    assert repr(Document.from_text("a\n" * 50, id="x")) == (
        f"Document({('a' + chr(10)) * 28 + 'a...'!r}, id='x', 0 tokens, 0 entities)"
    )
    with pytest.raises(ValueError, match=r"^the document has 3 tokens but got 1 tags"):
        document.with_tags(["O"])


def test_empty():
    for document in (Document.from_tokens([]), Document.from_tokens([[]]), Document.from_text("")):
        check(document)
        assert document.n_tokens == document.n_sentences == 0


def test_spans_and_their_tags():
    """Tags are computed from spans in the scheme; malformed tags from a file stay as they are."""
    document = Document.from_tokens([["Ada", "met", "Bo"], ["Bo", "left"]], id="x")
    assert document.spans is None
    spans = [Span(0, 1, "PER"), Span(2, 3, "PER"), Span(3, 4, "PER")]
    for scheme, tags in {
        "iob1": ["I-PER", "O", "I-PER", "I-PER", "O"],
        "iobes": ["S-PER", "O", "S-PER", "S-PER", "O"],
    }.items():
        tagged = document.with_spans(spans, scheme, [0.5, 0.25, 1.0])
        assert (tagged.spans, tagged.tags) == (spans, tags)
        assert [entity.confidence for entity in tagged.entities] == [0.5, 0.25, 1.0]
        assert replace(tagged, id="y").spans == spans
        assert tagged.without_annotation().spans is None
        assert tagged.with_entities(tagged.entities[:1]).spans == spans[:1]
    malformed = document.with_tags(["I-PER", "O", "E-PER", "O", "O"])
    assert malformed.tags == ["I-PER", "O", "E-PER", "O", "O"]
    assert malformed.spans == [Span(0, 1, "PER"), Span(2, 3, "PER")]


def test_documents_are_compared_by_value():
    document = Document.from_tokens([["Ada", "met", "Bo"]], [["B-PER", "O", "B-PER"]], id="x", fields={"a": 1})
    same = pickle.loads(pickle.dumps(document.with_spans(document.spans or ())))
    assert document == document
    assert document == same
    for other in (replace(same, id="y"), same.with_proposals(same.entities), same.with_tags(["O"] * 3)):
        assert document != other
    assert document != "Ada met Bo"


PLACES = [[0, 4], [3, 7], [0, 2]]


@pytest.mark.parametrize(
    "places",
    [
        [[10, 400], [13, 403], [0, 2]],
        [[0, 4], [3, 9], [0, 2]],
        [[-3, 4], [3, 7], [0, 2]],
        [[4, 0], [7, 3], [0, 2]],
        [[0, 2], [3, 7], [0, 2]],
        [[0, 4], [0, 7], [0, 2]],
        [[0], [3], [0, 2]],
        [[0, 4], [3, 7], []],
        [[0, 4], [3, 7], [0, 3]],
        [[0, 4], [3, 7], [0, 1, 1, 2]],
        [[0, 4], [3, 7], [0, 2, 1, 2]],
        [[0, 4], [3, 7], [0, -(2**62), 2]],
    ],
)
def test_invalid_offsets_are_refused(places):
    starts, ends, offsets = (np.array(each, np.int64) for each in places)
    with pytest.raises(ValueError, match=r"^document 'd': "):
        Document("Ada Bob", ["Ada", "Bob"], starts, ends, offsets, id="d")


@pytest.mark.parametrize("tokens", [["Ada", 7], ["Ada"], ["Ada", None], ["Ada", np.str_("Bob")], 7])
def test_tokens_that_are_not_strings_are_refused(tokens):
    with pytest.raises(ValueError, match=r"^document 'd': "):
        Document("Ada Bob", tokens, *(np.array(each, np.int64) for each in PLACES), id="d")
    with pytest.raises(ValueError, match=r"^document 'd': "):
        Document("Ada Bob", ["Ada", "Bob"], [0, 4], [3, 7], [0, 2], id="d")


def test_entities_and_spans_outside_the_document_are_refused():
    document = Document("Ada Bob", ["Ada", "Bob"], *(np.array(each, np.int64) for each in PLACES), id="d")
    for start, end in ((0, 8), (-1, 3), (5, 4), (100, 103)):
        with pytest.raises(ValueError, match="has 7 characters, but an entity is at"):
            document.with_entities([Entity(start, end, "PER", "Ada")])
    for spans in ([Span(0, 3, "PER")], [Span(-1, 1, "PER")], [Span(1, 1, "PER")], [Span(0, 2, "A"), Span(1, 2, "B")]):
        with pytest.raises(ValueError, match="spans of document 'd' must be sorted, disjoint, not empty and within"):
            document.with_spans(spans)
    with pytest.raises(ValueError, match="spans of the document must be sorted"):
        Document.from_tokens([["Ada"]]).with_spans([Span(0, 3, "PER")])
