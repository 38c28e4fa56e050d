"""Writers, checked by independent readers."""

from __future__ import annotations

import gzip
import io
import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from running_texts import running_texts
from spacy.tokens import DocBin

from herdner.corpora.formats import FORMATS, read_documents, write_documents
from herdner.text.document import Document
from herdner.text.entity import Entity

STORY = Document.from_tokens(
    [["Ada", "Lovelace", "met", "[bold]"], ["Rio", "<b>&"]],
    [["B-PER", "I-PER", "O", "O"], ["B-LOC", "B-ORG"]],
    id="a&b",
)
RAIN = Document.from_tokens([["Rain", "."]], id="rain")


def written(documents, format: str, **options) -> str:
    stream = io.BytesIO()
    write_documents(documents, stream, format, **options)
    return stream.getvalue().decode("utf-8")


@pytest.mark.slow
@given(documents=st.lists(running_texts(), max_size=3))
def test_conll_reads_back(documents):
    for scheme in ("iob1", "iob2", "iobes", "bilou"):
        back = list(read_documents(io.StringIO(written(documents, "conll", scheme=scheme)), "conll"))
        assert [list(map(list, d.sentences())) for d in back] == [list(map(list, d.sentences())) for d in documents]
        for ours, theirs in zip(documents, back, strict=True):
            assert (theirs.spans or []) == (ours.spans or [])


def test_conll_form():
    assert written([STORY, RAIN], "conll", scheme="iobes") == (
        "Ada\tB-PER\nLovelace\tE-PER\nmet\tO\n[bold]\tO\n\nRio\tS-LOC\n<b>&\tS-ORG\n\n-DOCSTART-\tO\n\nRain\tO\n.\tO\n\n"
    )
    assert written([], "conll") == ""
    assert written([Document.from_text(" "), RAIN], "conll") == "-DOCSTART-\tO\n\n-DOCSTART-\tO\n\nRain\tO\n.\tO\n\n"
    with pytest.raises(ValueError, match="document 'x' has no tokens; tokenize it first"):
        written([Document.from_text("Ada", id="x")], "conll")


def test_the_extension_of_a_file_selects_the_format(tmp_path):
    for name, format in (("a.jsonl.gz", "jsonl"), ("a.conll", "conll"), ("a.csv", "csv")):
        write_documents([RAIN], tmp_path / name)
        assert list(read_documents(tmp_path / name)) == list(read_documents(tmp_path / name, format))
    with pytest.raises(
        ValueError, match=r"^the format of '.*a\.pdf' is unknown; pass `format`, which is one of conll, "
    ):
        write_documents([RAIN], tmp_path / "a.pdf")
    with pytest.raises(ValueError, match=r"^the format of a stream is unknown; pass `format`"):
        read_documents(io.BytesIO())


@given(text=st.text(), id=st.none() | st.text())
def test_jsonl_survives(text, id):
    entities = (Entity(0, 1, "PER", text[:1], 0.123456789),) if text else ()
    document = Document.from_text(text, id=id)
    document = document.with_entities(entities)
    out = written([document, RAIN], "jsonl")
    assert len(out.splitlines()) == 2
    first = json.loads(out.splitlines()[0])
    assert list(first) == ["id", "text", "entities"]
    assert (first["id"], first["text"]) == (id, text)
    assert first["entities"] == [
        {"start": 0, "end": 1, "label": "PER", "text": text[0], "confidence": 0.123457} for _ in entities
    ]
    (back, _) = read_documents(io.StringIO(out), "jsonl")
    assert back.text == text


def test_jsonl_with_odd_characters():
    text = "a\u2028b\u2029c\x85d\x0be\ud800\x00"
    out = written([Document.from_text(text)], "jsonl")
    assert len(out.splitlines()) == 1
    assert json.loads(out) == {"id": None, "text": text}
    unsure = Document.from_text("Ada").with_entities([Entity(0, 3, "PER", "Ada")])
    assert json.loads(written([unsure], "jsonl"))["entities"][0]["confidence"] is None


def test_html_is_written_document_by_document():
    stream = io.BytesIO()

    def documents():
        yield STORY
        assert b"Lovelace" in stream.getvalue()
        yield RAIN

    write_documents(documents(), stream, "html")
    assert b"Rain" in stream.getvalue()


def test_text_in_brackets():
    assert written([STORY, RAIN], "text", color=False) == (
        "[Ada Lovelace PER] met [bold]\n[Rio LOC] [<b>& ORG]\n\nRain .\n"
    )
    stream = io.StringIO()
    write_documents([RAIN], stream, "text")
    assert stream.getvalue() == "Rain .\n"


def test_text_in_colour():
    hostile = Document.from_text("\x1b[2J[red]Ada[/red] \x9b1m\rx :smile:" + " long" * 100).with_entities(
        [Entity(9, 12, "PER", "Ada")]
    )
    stream = io.StringIO()
    write_documents([hostile], stream, "text", color=True)
    out = stream.getvalue()
    assert "\x1b[1;36mAda\x1b[0m\x1b[2m PER\x1b[0m" in out
    assert "[red]" in out
    assert ":smile:" in out
    assert "\x1b[2J" not in out
    assert not set("\x9b\r") & set(out)
    assert out.count("\n") == 1  # never wrapped


@pytest.mark.slow
@given(document=running_texts())
def test_spacy_keeps_text_and_entities(document):
    stream = io.BytesIO()
    write_documents([document], stream, "spacy")
    (doc,) = DocBin().from_bytes(stream.getvalue()).get_docs(spacy.blank("xx").vocab)
    assert doc.text == document.text
    assert [(e.start_char, e.end_char, e.label_, e.text) for e in doc.ents] == [
        (e.start, e.end, e.label, e.text) for e in document.entities
    ]
    if document.n_tokens:
        words = [[t.text for t in sentence if not t.is_space] for sentence in doc.sents]
        assert words == [list(sentence) for sentence in document.sentences()]


def test_every_format_writes_what_the_registry_says():
    for name, entry in FORMATS.items():
        if entry.write is None:
            with pytest.raises(ValueError, match=f"cannot write the format '{name}'; .*expected one of conll, "):
                written([RAIN], name)
        else:
            stream = io.BytesIO()
            write_documents([RAIN], stream, name)
            assert stream.getvalue(), name
    with pytest.raises(ValueError, match="has no option 'width'"):
        written([RAIN], "conll", width=3)


def test_a_path_is_written_when_it_is_complete(tmp_path):
    path = tmp_path / "rain.jsonl.gz"

    def documents():
        yield RAIN
        assert not path.exists()

    write_documents(documents(), path, "jsonl")
    (document,) = read_documents(path, "jsonl")
    assert document.text == RAIN.text
    write_documents([RAIN], str(path), "conll")
    assert gzip.decompress(path.read_bytes()).startswith(b"R")


def test_output_is_utf8_whatever_the_locale():
    for name in ("jsonl", "conll", "html", "text"):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding="ascii")
        write_documents([Document.from_tokens([["Zoë"]])], stream, name)
        stream.flush()
        assert "Zoë" in raw.getvalue().decode("utf-8"), name
