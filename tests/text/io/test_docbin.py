"""DocBin files compared with spaCy's reader, and damaged files."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from hypothesis import given
from hypothesis import strategies as st
from running_texts import running_texts
from spacy.tokens import Doc, DocBin, Span

from herdner.corpora.formats import read_documents, write_documents
from herdner.text.io import docbin
from herdner.text.io.source import FormatError

NLP = spacy.blank("en")


def stored(docs, **options) -> bytes:
    return DocBin(docs=docs, **options).to_bytes()


def read(data: bytes, **options):
    return list(read_documents(io.BytesIO(data), "spacy", **options))


@pytest.mark.slow
@given(documents=st.lists(running_texts(), max_size=3))
def test_written_files_are_read_back(documents):
    stream = io.BytesIO()
    documents = [document for document in documents if document.n_tokens]
    write_documents(documents, stream, "spacy")
    back = read(stream.getvalue())
    assert [d.text for d in back] == [d.text for d in documents]
    for ours, theirs in zip(documents, back, strict=True):
        assert list(theirs.tokens) == list(ours.tokens)
        assert (theirs.token_starts == ours.token_starts).all()
        assert (theirs.spans or []) == (ours.spans or [])
        if ours.n_sentences > 1:  # one sentence alone equals no sentences
            assert theirs.sentence_offsets.tolist() == ours.sentence_offsets.tolist()


@pytest.mark.parametrize("attrs", [["ENT_IOB", "ENT_TYPE"], ["ENT_TYPE", "TAG", "ENT_IOB", "SENT_START", "LEMMA"]])
def test_text_entities_and_sentences_are_those_that_spacy_reads(attrs):
    texts = ["Ada Lovelace met  Mr. Babbage.\n\nThey sang in Rio. ", "Rain.", ""]
    docs = [NLP(text) for text in texts]
    docs[0].ents = [Span(docs[0], 0, 2, "PERSON"), Span(docs[0], 4, 6, "PERSON"), Span(docs[0], 11, 12, "GPE")]
    docs[1].ents = []
    if "SENT_START" in attrs:
        for token in docs[0]:
            token.is_sent_start = token.i in (0, 8)
    found = read(stored(docs, attrs=attrs), labels={"PERSON": "PER"})
    assert [d.text for d in found] == texts
    assert [d.id for d in found] == ["<stream>#1", "<stream>#2", "<stream>#3"]
    for document, doc in zip(found, docs, strict=True):
        assert list(document.tokens) == [token.text for token in doc if not token.is_space]
        expected = [(e.start_char, e.end_char, {"PERSON": "PER"}.get(e.label_, e.label_)) for e in doc.ents]
        assert [(e.start, e.end, e.label) for e in document.entities] == expected
        assert all(e.text == document.text[e.start : e.end] for e in document.entities)
    assert found[0].sentence_offsets.tolist()[1:-1] == [6]  # after "Babbage ."; from spaCy, or by the rules


def test_a_document_without_annotation_has_no_tags():
    plain, none, some = NLP("Ada sang."), NLP("Ada sang."), NLP("Ada sang in Rio.")
    none.ents = []
    some.set_ents([Span(some, 0, 1, "PER")], default="missing")
    found = read(stored([plain, none, some]))
    assert found[0].tags is None
    assert list(found[1].tags) == ["O"] * 3
    assert [e.text for e in found[2].entities] == ["Ada"]


def test_unknown_spaces_are_one_space():
    doc = Doc(NLP.vocab, words=["Ada", "sang"], ents=["B-PER", "O"])
    assert read(stored([doc]))[0].text == doc.text == "Ada sang "


def altered(**values) -> bytes:
    message: Any = srsly.msgpack_loads(zlib.decompress(stored([NLP("Ada sang.")])))
    return zlib.compress(srsly.msgpack_dumps({k: v for k, v in {**message, **values}.items() if v is not None}))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"token\tO\n", "not a DocBin"),
        (stored([NLP("Ada sang.")])[:-9], "ends too early"),
        (zlib.compress(b"\xc1\xc1\xc1"), "damaged DocBin"),
        (zlib.compress(srsly.msgpack_dumps([1])), "not a DocBin"),
        (altered(attrs=None), "'attrs' is missing"),
        (altered(attrs=[]), "damaged DocBin"),
        (altered(attrs=[65, 66, 67]), "damaged DocBin"),
        (altered(strings=["Ada"]), "a token refers to the string with the hash"),
        (altered(strings=7), "damaged DocBin"),
        (altered(lengths=np.array([-1, 4], "i4").tobytes()), "their sum, 3, must equal"),
        (altered(lengths=np.array([2**30], "i4").tobytes()), "their sum, 1073741824, must equal"),
        (altered(lengths=b"123"), "damaged DocBin"),
        (altered(spaces=b""), "entries of `spaces`, 0"),
        (altered(flags=[{}, {}]), "one set of flags for each of the 1 documents, got 2"),
    ],
)
def test_damaged_files_are_one_line(data, says):
    with pytest.raises(FormatError, match=f"^<stream>: .*({says})") as caught:
        read(data)
    assert "\n" not in str(caught.value)


def test_a_file_that_unpacks_to_any_size_is_refused(monkeypatch):
    monkeypatch.setattr(docbin, "MAX_BYTES", 1000)
    with pytest.raises(FormatError, match="unpacks to more than 1000 bytes"):
        read(zlib.compress(bytes(100_000)))


@given(data=st.data())
def test_any_damage_is_a_format_error(data):
    """Bytes of the decompressed message are changed, because zlib would detect changes of the file."""
    plain = bytearray(zlib.decompress(stored([NLP("Ada sang in Rio.")], attrs=["ENT_IOB", "ENT_TYPE"])))
    for _ in range(data.draw(st.integers(1, 4))):
        plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    try:
        documents = read(zlib.compress(bytes(plain)))
    except FormatError:
        return
    for document in documents:
        assert [document.text[a:b] for a, b in zip(document.token_starts, document.token_ends, strict=True)] == list(
            document.tokens
        )
