"""Readers of IE-ER, plain text and JSON lines on small samples."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spaces import by_space

from herdner.corpora.formats import read_documents
from herdner.text.io.source import FormatError
from herdner.text.tokenize import tokenize_documents

STORY = """<IEER_DOC type="NEWSWIRE">
<DOC>
<DOCNO> XYZ19980101.0001 </DOCNO>
<DOCTYPE> NEWS STORY </DOCTYPE>
<DATE_TIME> 01/01/1998 10:00:00 </DATE_TIME>
<BODY>
<HEADLINE>
<b_enamex type="ORGANIZATION">Smith &AMP; Sons<e_enamex> grow
</HEADLINE>
<TEXT>
\t   ``In <b_timex type="DATE">1997<e_timex> <b_enamex type="PERSON">Ada
Lovelace<e_enamex> left,'' said <b_enamex type="ORGANIZATION" status="opt">Trade<e_enamex> 5 < 6.
   The <b_enamex type="ORGANIZATION" alt="Crescent">Red Crescent<e_enamex> of <b_enamex type="LOCATION">Lima<e_enamex>
</TEXT>
</BODY>
</DOC>
<DOC>
<DOCNO> 2 </DOCNO>
<TEXT>
No headline.
</TEXT>
</DOC>
</IEER_DOC>
"""


def read(text: str | bytes, format: str, **options):
    return list(read_documents(io.BytesIO(text if isinstance(text, bytes) else text.encode()), format, **options))


def test_ieer():
    first, second = read(STORY, "ieer")
    assert first.text == (
        "Smith & Sons grow\n\n\t   ``In 1997 Ada\nLovelace left,'' said Trade 5 < 6.\n   The Red Crescent of Lima"
    )
    assert [(e.label, e.text) for e in first.entities] == [
        ("ORG", "Smith & Sons"),
        ("PER", "Ada\nLovelace"),
        ("ORG", "Trade"),
        ("ORG", "Red Crescent"),
        ("LOC", "Lima"),
    ]
    assert all(first.text[e.start : e.end] == e.text for e in first.entities)
    assert first.fields["entity_attributes"] == {2: {"status": "opt"}, 3: {"alt": "Crescent"}}
    assert first.fields["date_time"] == "01/01/1998 10:00:00"
    assert (first.id, first.n_tokens, list(first.tags)) == ("XYZ19980101.0001", 0, [])
    assert (second.text, second.id) == ("No headline.", "2")


def test_ieer_options():
    (first, _) = read(
        STORY, "ieer", optional=False, kinds=("enamex", "timex"), labels={"PERSON": "P", "DATE": "D", "*": None}
    )
    assert [(e.label, e.text) for e in first.entities] == [("D", "1997"), ("P", "Ada\nLovelace")]
    (first, _) = read(STORY, "ieer", optional=False)
    assert [e.text for e in first.entities if e.label == "ORG"] == ["Smith & Sons", "Red Crescent"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("<DOC>\n<TEXT>\na\n</TEXT>\n", ":1: <DOC> never ends; expected </DOC>"),
        ("<DOC>\n<DOC>\n", ":2: <DOC> inside the <DOC> of line 1"),
        ("x\n</DOC>\n", ":2: </DOC> without <DOC>"),
        ("<DOC>\nx\n</DOC>\n", ":1: in the document that ends on line 3: there is no <TEXT> element"),
        ('<DOC>\n<TEXT>\n<b_enamex type="PERSON">A\n</TEXT>\n</DOC>\n', "<b_enamex> is never closed"),
        ("<DOC>\n<TEXT>\nA<e_enamex>\n</TEXT>\n</DOC>\n", "<e_enamex> closes nothing"),
    ],
)
def test_ieer_errors(data, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        read(data, "ieer")


PERSON, ORGANIZATION = '<b_enamex type="PERSON">', '<b_enamex type="ORGANIZATION">'


@pytest.mark.parametrize(
    ("marked", "entities"),
    [
        (f"{ORGANIZATION}{PERSON}Smithsonian<e_enamex><e_enamex>", [("ORG", "Smithsonian")]),
        (f"{PERSON}A {ORGANIZATION}B<e_enamex><e_enamex>", [("PER", "A B")]),
        (f"{PERSON}{ORGANIZATION}A<e_enamex> B<e_enamex> {PERSON}C<e_enamex>", [("PER", "A B"), ("PER", "C")]),
        (f"{PERSON}{ORGANIZATION}{PERSON}A<e_enamex><e_enamex> B<e_enamex>", [("PER", "A B")]),
    ],
)
def test_only_the_outermost_of_nested_spans_is_read(marked, entities, caplog):
    more = f"<DOC>\n<HEADLINE>\n\n{PERSON}H<e_enamex>\n</HEADLINE>\n<TEXT>\n\nx\n {marked}\n</TEXT>\n</DOC>\n"
    documents = read(2 * more, "ieer")
    for document in documents:
        assert [(e.label, e.text) for e in document.entities] == [("PER", "H"), *entities]
        assert all(document.text[e.start : e.end] == e.text for e in document.entities)
    (line,) = caplog.messages
    assert re.search(r":9: a span marked inside another is left out, [24] in all$", line)
    with pytest.raises(
        FormatError, match=":9: a span marked inside another is left out; this is an error in strict mode"
    ):
        read(more, "ieer", strict=True)


def test_ieer_refuses_other_files(tmp_path):
    (tmp_path / "x_1").write_text("just text", encoding="utf-8")
    with pytest.raises(FormatError, match="no <DOC>"):
        list(read_documents(tmp_path / "x_1", "ieer"))
    (tmp_path / "x_1").write_text("", encoding="utf-8")
    assert list(read_documents(tmp_path / "x_1", "ieer")) == []


def test_text_is_untouched():
    text = "  Zoë\r\n\r\nmet\x00 \u2028 Ada\x85.\t\n"
    (document,) = read("\ufeff" + text, "text")
    assert (document.text, document.tags, document.id) == (text, None, "<stream>")
    assert read("", "text") == read(" \n ", "text") == []
    with pytest.raises(FormatError, match=r":2: byte 0xe9 at offset 3 is not valid utf-8"):
        read(b"ab\n\xe9", "text")
    assert read(b"ab\n\xe9", "text", encoding="latin-1")[0].text == "ab\né"


def test_text_by_line():
    first, second = read("a b\r\n\n c\n", "text", documents="line")
    assert (first.text, second.text) == ("a b", " c")
    assert first.id != second.id


@given(text=st.text(st.sampled_from("ab \n.é"), max_size=200).filter(lambda t: t.strip()), max_chars=st.integers(1, 50))
def test_text_in_pieces_is_the_same_text(text, max_chars):
    pieces = read(text, "text", max_chars=max_chars)
    assert all(0 < len(piece.text) <= max_chars for piece in pieces)
    for piece in pieces:
        offset = piece.fields.get("offset", 0)
        assert text[offset : offset + len(piece.text)] == piece.text
    covered = {i for p in pieces for i in range(p.fields.get("offset", 0), p.fields.get("offset", 0) + len(p.text))}
    assert all(text[i].isspace() for i in set(range(len(text))) - covered)


def test_text_is_cut_between_paragraphs():
    text = "\n\n".join("word " * n + "end." for n in range(1, 30))
    pieces = read(text, "text", max_chars=200)
    assert len(pieces) > 5
    assert "".join(piece.text for piece in pieces) == text
    assert all(piece.text.endswith(".\n\n") for piece in pieces[:-1])


def test_a_large_text_streams():
    block = b"Ada met Charles in London.\n" * 40_000

    class Stream(io.RawIOBase):
        left = 60

        def readable(self):
            return True

        def readinto(self, buffer):
            self.left -= 1
            n = min(len(buffer), len(block)) if self.left >= 0 else 0
            buffer[:n] = block[:n]
            return n

    sizes = [len(d.text) for d in read_documents(Stream(), "text", max_chars=100_000)]
    assert max(sizes) <= 100_000
    assert sum(sizes) > 50_000_000


def line(**record) -> str:
    return json.dumps(record) + "\n"


def test_jsonl():
    text = "Ada met\nZoë. \u2028 😀"
    entities = [{"start": 8, "end": 11, "label": "PER"}, {"start": 0, "end": 3, "label": "person", "confidence": 0.5}]
    data = line(id=7, text=text, entities=entities, source="x") + "\n" + line(text="No names.")
    first, second = read(data, "jsonl", labels={"person": "PER"})
    assert (first.text, first.id, first.fields) == (text, "7", {"id": 7, "source": "x"})
    assert [(e.label, e.text, e.confidence) for e in first.entities] == [("PER", "Ada", 0.5), ("PER", "Zoë", None)]
    assert (list(first.tags), second.tags) == ([], None)  # annotated, and not
    assert read(line(text="a", entities=[]), "jsonl")[0].tags is not None


def test_jsonl_with_tokens():
    entities = [{"start": 0, "end": 3, "label": "PER"}]
    (document,) = read(line(text="Ada  met.\nYes", tokens=[["Ada", "met", "."], ["Yes"]], entities=entities), "jsonl")
    assert document.token_starts.tolist() == [0, 5, 8, 10]
    assert document.sentence_offsets.tolist() == [0, 3, 4]
    assert document.tags == ["B-PER", "O", "O", "O"]
    (document,) = read(line(tokens=["Ada", "met"]), "jsonl")
    assert document.text == "Ada met"
    assert read(line(text="", tokens=[]), "jsonl")[0].n_tokens == 0


def test_a_null_as_text_is_an_empty_text() -> None:
    (document,) = read(line(id="a", text=None, n=3), "jsonl")
    assert (document.id, document.text, document.fields) == ("a", "", {"n": 3})
    (document,) = read(line(text=None, tokens=["Ada"]), "jsonl")
    assert document.text == "Ada"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "a JSON list; expected an object with the key `text` or `tokens`"),
        ("{}", "neither `text` nor `tokens`; expected"),
        ('{"text": 5}', "`text` is 5; expected a string"),
        ('{"text": "ab", "entities": [3]}', "entity 0 is 3; expected an object"),
        (
            '{"text": "ab", "entities": [{"start": 0, "end": 3, "label": "X"}]}',
            r"entity 0 is 0..3; expected 0 <= start < end <= 2",
        ),
        ('{"text": "ab", "entities": [{"start": -1, "end": 1, "label": "X"}]}', r"entity 0 is -1..1"),
        ('{"text": "ab", "entities": [{"start": 1, "end": 1, "label": "X"}]}', r"entity 0 is 1..1"),
        ('{"text": "ab", "entities": [{"start": true, "end": 2, "label": "X"}]}', r"entity 0 is True..2"),
        ('{"text": "ab", "entities": [{"start": 0, "end": 2.0, "label": "X"}]}', r"entity 0 is 0..2.0"),
        ('{"text": "ab", "entities": [{"start": 0, "end": 1}]}', "the label of entity 0 is None"),
        ('{"text": "ab", "entities": [{"start": 0, "end": 1, "label": "A  B"}]}', "the label of entity 0 is 'A  B'"),
        (
            '{"text": "ab", "entities": [{"start": 0, "end": 1, "label": "X", "text": "b"}]}',
            "entity 0 has the text 'b', but the text at 0..1 is 'a'",
        ),
        (
            '{"text": "abc", "entities": [{"start": 1, "end": 3, "label": "X"}, {"start": 0, "end": 2, "label": "X"}]}',
            "'bc' overlaps 'ab'",
        ),
        ('{"text": "ab", "tokens": ["a", "c"]}', "the tokens do not match the text"),
        ('{"text": "a b", "tokens": ["a b"]}', "`tokens` must be a list of strings without white space"),
        ('{"tokens": "ab"}', "`tokens` must be a list of strings"),
        ('{"text": "ab", "id": 1e400}', "the number 1e400 is too large; write it as a string"),
        ("[" * 200_000, "nested too deeply|not JSON"),
        ('{"text": ' + "9" * 5000 + "}", "`text` is 9999|a number has more than 4,300 digits"),
    ],
)
def test_jsonl_errors(record, message):
    with pytest.raises(FormatError, match=f"<stream>:2: .*({message})"):
        read('{"text": "fine"}\n' + record + "\n", "jsonl")


def test_lone_surrogates_are_replaced(caplog):
    data = r'{"id": "\udc00", "text": "a\ud800b \ud83d\ude00", "entities": [{"start": 2, "end": 3, "label": "X"}]}'
    (document,) = read(data, "jsonl")
    assert (document.text, document.id) == ("a\ufffdb 😀", "\ufffd")
    assert document.entities[0].text == "b"
    assert "<stream>:1: lone surrogates are replaced" in caplog.text


def test_tokenized_projects_entities():
    data = line(
        text="Anglo-American Ada",
        entities=[{"start": 0, "end": 3, "label": "X"}, {"start": 15, "end": 18, "label": "PER"}],
    )
    (document,) = read(data, "jsonl", tokenizer=by_space)
    assert document.tokens == ["Anglo", "-", "American", "Ada"]
    assert document.tags == ["B-X", "O", "O", "B-PER"]
    assert [e.text for e in document.entities] == ["Ang", "Ada"]  # gold offsets stay as given
    (plain,) = tokenize_documents(read("no names", "text"), by_space)
    assert (plain.tokens, plain.tags) == (["no", "names"], None)
    (kept,) = tokenize_documents(read("Ada\tB-PER\n", "conll"), by_space)
    assert kept.tokens == ["Ada"]
