"""Dubious input is logged once with position and count, and refused if reading is strict."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from herdner.corpora.formats import FORMATS, read_documents, write_documents
from herdner.text.io.source import FormatError
from herdner.text.tags import spans_from_tags

PER = '<b_enamex type="PERSON">'


def ieer(text: str) -> str:
    return f"<DOC>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"


def jsonl(*entities: tuple[int, int, str]) -> str:
    found = [{"start": start, "end": end, "label": label} for start, end, label in entities]
    return json.dumps({"text": "Ada Lee met Bob", "entities": found}) + "\n"


# Format, file, place and words of the first warning, how many there are, and what is read: labels with their texts.
WARNINGS = [
    ("ieer", ieer(f"a\n{PER}{PER}Ada<e_enamex> Lee<e_enamex>"), 4, "a span marked inside another", 1, ["PER Ada Lee"]),
    ("ieer", ieer(f"{PER} <e_enamex>{PER}Ada<e_enamex>"), 3, "a span without text", 1, ["PER Ada"]),
    ("ieer", ieer("<b_enamex>Ada<e_enamex>"), 3, "a span without a type is read as ENAMEX", 1, ["ENAMEX Ada"]),
    ("ieer", ieer("<b_enamex type=PERSON>Ada\n<e_"), 3, "mark-up that IE-ER does not define", 2, []),
    ("ieer", "<DOC>\n<TEXT>\na\n</TEXT>\n<TEXT>\nb\n</TEXT>\n</DOC>\n", 5, "a second <TEXT> is not read", 1, []),
    ("conll", "a\tI-X\nb\tO\nc\tB-X\nd\tB-X\n", 1, "a name begins with I-", 1, ["X a", "X c", "X d"]),
    ("conll", "a\tI-X\nb\tO\nc\tI-X\nd\tO\ne\tB-X\n", 5, "a name begins with B-", 1, ["X a", "X c", "X e"]),
    ("conll", "a\tB-X\n\nb\tE-X\nc\tS-X\n", 1, "a name has no first tag", 2, ["X a", "X b", "X c"]),
    ("conll", "a\tB-X\nb\tL-X\nc\tI-X\nd\tO\n", 3, "a name has no first tag", 2, ["X a b", "X c"]),
    ("btc", "New York\tB-LOC\n", 1, "a token with white space inside", 1, ["LOC New York"]),
    ("btc", "Ada\tB-PER\n\tO\n \tO\n", 2, "a line without a token is skipped", 2, ["PER Ada"]),
    ("uner", "# text = a b\n1\ta\tB-X\t-\tx\n2\tc\tO\t-\tx\n", 3, "the text of a sentence differs", 1, ["X a"]),
    ("jsonl", jsonl((0, 7, "X"), (0, 3, "Y"), (4, 7, "X")), 1, "an entity inside another", 2, ["X Ada Lee"]),
    ("jsonl", "\n" + jsonl((0, 3, "PER"), (0, 3, "PER")), 2, "a duplicate entity", 1, ["PER Ada"]),
    ("jsonl", r'{"text": "\ud800 x"}' + "\n" + r'{"text": "\ud800"}', 1, "lone surrogates", 2, []),
]  # fmt: skip


@pytest.mark.parametrize(("format", "data", "line", "what", "count", "found"), WARNINGS)
def test_dubious_input_is_logged_once_and_refused_if_strict(format, data, line, what, count, found, caplog):
    documents = list(read_documents(io.BytesIO(data.encode()), format))
    assert [f"{e.label} {e.text}" for document in documents for e in document.entities] == found
    (message,) = caplog.messages
    assert message.startswith(f"<stream>:{line}: {what}")
    assert message.endswith(f", {count} in all") == (count > 1)
    with pytest.raises(FormatError, match=f"^<stream>:{line}: .*{what}.*; this is an error in strict mode$") as raised:
        list(read_documents(io.BytesIO(data.encode()), format, strict=True))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "tags",
    [
        "I-PER I-PER B-PER O I-LOC I-PER",  # IOB1
        "B-PER I-PER B-PER O B-LOC B-PER",  # IOB2
        "B-PER E-PER S-PER O S-LOC B-PER I-PER E-PER",
        "B-PER L-PER U-PER O U-LOC B-PER I-PER L-PER",
        "B-PER ? I-PER O PER|ORG I-PER",  # whatever is open may be right
    ],
)
def test_tags_of_one_scheme_give_no_warning(tags, caplog):
    data = "".join(f"w{i}\t{tag}\n" for i, tag in enumerate(tags.split()))
    (document,) = read_documents(io.BytesIO(data.encode()), "conll", strict=True)
    closed = ["O" if "|" in tag or tag == "?" else tag for tag in tags.split()]
    assert document.spans == spans_from_tags(closed)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (jsonl((0, 7, "PER"), (4, 11, "PER")), "'Lee met' overlaps 'Ada Lee'"),
        (jsonl((0, 3, "PER"), (0, 3, "LOC")), "'Ada' has the labels PER and LOC; expected one label"),
        ('{"text": "a", "text": "b"}', 'the key "text" occurs twice; give it once$'),
        ('{"text": "a", "entities": [{"start": 0, "end": 1, "end": 1, "label": "X"}]}', 'the key "end" occurs twice'),
    ],
)
def test_ambiguous_input_is_refused(line, part):
    with pytest.raises(FormatError, match=f"^<stream>:1: {part}"):
        list(read_documents(io.BytesIO(line.encode()), "jsonl"))


def docbin(*tokens: tuple[int, str]) -> bytes:
    """Return a DocBin whose tokens have these values of ENT_IOB and ENT_TYPE."""
    vocab = Vocab()
    store = DocBin(attrs=["ENT_IOB", "ENT_TYPE"])
    store.add(Doc(vocab, words=["Ada"] * len(tokens)))
    columns = [int(attribute) for attribute in store.attrs]
    table = np.array(store.tokens[0])
    table[:, columns.index(int(ENT_IOB))] = [iob for iob, _ in tokens]
    table[:, columns.index(int(ENT_TYPE))] = [vocab.strings.add(label) if label else 0 for _, label in tokens]
    store.tokens = [table]
    store.strings |= {label for _, label in tokens}
    return store.to_bytes()


@pytest.mark.parametrize(
    ("tokens", "what", "found"),
    [
        (
            [(2, ""), (1, "PER")],
            "a token marked as inside an entity follows no entity with its label; it begins an entity",
            ["PER Ada"],
        ),
        ([(3, ""), (3, "PER")], "an entity token without a label is read as a token outside entities", ["PER Ada"]),
    ],
)
def test_a_dubious_docbin_gives_a_warning(tokens, what, found, caplog):
    (document,) = read_documents(io.BytesIO(docbin(*tokens)), "spacy")
    assert [f"{e.label} {e.text}" for e in document.entities] == found
    assert caplog.messages == [f"<stream>: document 1: {what}"]
    with pytest.raises(FormatError, match=f"^<stream>: document 1: {what}; this is an error in strict mode"):
        list(read_documents(io.BytesIO(docbin(*tokens)), "spacy", strict=True))


def test_written_files_give_no_warning():
    (document,) = read_documents(io.BytesIO(b"Ada\tB-PER\nLee\tB-PER\nmet\tO\n\nBob\tB-PER\n"), "conll")
    for format in (
        name for name, entry in FORMATS.items() if entry.read and entry.write and name not in ("text", "html")
    ):
        stream = io.BytesIO()
        write_documents([document], stream, format)
        (back,) = read_documents(io.BytesIO(stream.getvalue()), format, strict=True)
        assert [entity.label for entity in back.entities] == ["PER", "PER", "PER"]
