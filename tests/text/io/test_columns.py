"""Readers of column formats on small samples."""

from __future__ import annotations

import gzip
import io

import pytest

from herdner.corpora.formats import FORMATS, read_documents
from herdner.text.io.source import FormatError
from herdner.text.tags import Span

CONLL2003 = """-DOCSTART- -X- O O

Ada NNP I-NP I-PER
Lovelace NNP I-NP I-PER
met VBD I-VP O
Paris NNP I-NP I-LOC
Lyon NNP I-NP B-LOC

-DOCSTART- -X- O O

Rain NN I-NP O
"""


def read(text: str | bytes, format: str = "conll", **options):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return list(read_documents(io.BytesIO(data), format, **options))


def spans(document):
    return [(e.label, e.text) for e in document.entities]


def test_conll2003():
    first, second = read(CONLL2003, "conll2003")
    assert list(first.tags) == ["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]  # IOB1, as in the file
    assert spans(first) == [("PER", "Ada Lovelace"), ("LOC", "Paris"), ("LOC", "Lyon")]
    assert (first.text, second.text) == ("Ada Lovelace met Paris Lyon", "Rain")
    assert first.id != second.id
    (converted, _) = read(CONLL2003, "conll2003", scheme="iobes")
    assert converted.tags == ["B-PER", "E-PER", "O", "S-LOC", "S-LOC"]


def test_conll2002_marks_documents_without_a_blank_line():
    first, second = read(
        "-DOCSTART- -DOCSTART- O\nGent N B-LOC\n\nJa Adv O\n-DOCSTART- -DOCSTART- O\nNee Adv O\n", "conll2002"
    )
    assert first.sentence_offsets.tolist() == [0, 1, 2]
    assert (first.text, second.text) == ("Gent\nJa", "Nee")


@pytest.mark.parametrize(
    ("documents", "texts"), [("file", ["a\nb\nc"]), ("docstart", ["a", "b\nc"]), ("sentence", ["a", "b", "c"])]
)
def test_what_separates_documents(documents, texts):
    data = "a O\n\n-DOCSTART- O\n\nb O\n\nc O\n"
    found = read(data, documents=documents)
    assert [document.text for document in found] == texts
    assert len({document.id for document in found}) == len(texts)


def test_tweets_are_documents_and_a_tab_alone_is_a_blank_line():
    first, second = read("@ada\tO\nLondon\tB-location\n\t\nYes\tO\n", "wnut17")
    assert (first.text, second.text) == ("@ada London", "Yes")


def test_missing_tokens_and_tokens_with_white_space(caplog):
    (document,) = read("New York\tB-LOC\nCity\tI-LOC\n\tO\n4 hours\tO\n249 \tO\nRio de Janeiro\tS-LOC\n", "btc")
    assert document.tokens == ["New", "York", "City", "4", "hours", "249", "Rio", "de", "Janeiro"]
    assert list(document.tags) == ["B-LOC", "I-LOC", "I-LOC", "O", "O", "O", "B-LOC", "I-LOC", "E-LOC"]
    assert "<stream>:3: a line without a token is skipped" in caplog.text
    with pytest.raises(FormatError, match=r":1: tag B-LOC without a token"):
        read("\tB-LOC\n")


WORLDWIDE = (
    "https://news.example/a?b\tO\n{debris}\nGhana\tB-Organization\tB-Location\nToday\tI-Organization\nfrom    O\n"
)


@pytest.mark.parametrize(("debris", "url"), [("", ""), ("&\tO\nc\tO\n=\tO\n1\tO\n", "&c=1")])
def test_worldwide(tmp_path, debris, url):
    (tmp_path / "b.txt.tsv").write_text(WORLDWIDE.format(debris=debris), encoding="utf-8")
    (tmp_path / "a.txt.tsv").write_text("No\tO\naddress\tO\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("not data", encoding="utf-8")
    plain, document = read_documents(tmp_path, "worldwide")
    assert (plain.text, plain.fields, plain.id) == ("No address", {"url": None}, "a.txt.tsv")
    assert document.fields == {"url": "https://news.example/a?b" + url}
    assert document.text == "Ghana Today from"
    assert spans(document) == [("Organization", "Ghana Today")]  # the outermost entity


def test_worldwide_keeps_a_sentence_glued_to_the_address():
    (document,) = read("https://news.example/1Police\tO\nyesterday\tO\nin\tO\nAccra\tB-Location\n", "worldwide")
    assert document.text == "yesterday in Accra"
    assert spans(document) == [("Location", "Accra")]


UNER = """# newdoc id = first
# sent_id = 1
# text = Ada isn't in "Paris".
1\tAda\tB-PER\t-\tann
2\tis\tO\t-\t-
3\tn't\tO\t-\t-
4\tin\tO\t-\t-
5\t"\tO\t-\t-
6\tParis\tB-LOC\t-\tann
7\t"\tO\t-\t-
8\t.\tO\t-\t-

# text = does not fit
1\t#\tO\t-\t-
2\tno\tO\t-\t-

# newdoc id = second
# text = Yes
1\tYes\tO\t-\t-
"""


def test_uner_keeps_the_text_of_the_sentences():
    first, second = read(UNER, "uner")
    assert first.text == 'Ada isn\'t in "Paris".\n# no'
    assert [(e.start, e.end, e.text) for e in first.entities] == [(0, 3, "Ada"), (14, 19, "Paris")]
    assert [first.text[a:b] for a, b in zip(first.token_starts, first.token_ends, strict=True)] == first.tokens
    assert (first.id, second.id, second.text) == ("first", "second", "Yes")


def test_labels_are_renamed_and_removed():
    data = "Accra I-Location\nZoo I-Facility\nx O\ny I-Date\nz I-Misc\n"
    (document,) = read(data, labels={"Location": "LOC", "Facility": "LOC", "Misc": "Misc", "*": None})
    assert document.tags == ["B-LOC", "B-LOC", "O", "O", "B-Misc"]  # two names stay two although both are LOC now
    (document,) = read(data, labels={"Location": "LOC"}, scheme="iob1")
    assert document.tags == ["I-LOC", "I-Facility", "O", "I-Date", "I-Misc"]
    (document,) = read(data, labels={"*": "NAME"}, scheme="iob1")
    assert document.tags == ["I-NAME", "B-NAME", "O", "I-NAME", "B-NAME"]


def test_one_column_has_no_tags():
    (document,) = read("Ada\nmet\n\nBabbage\n")
    assert document.tags is None
    assert document.text == "Ada met\nBabbage"
    (document,) = read("Ada NNP\n", tag=None)
    assert (document.tags, document.tokens) == (None, ["Ada"])


def test_line_ends_byte_order_mark_and_other_separators():
    data = "\ufeffAda\tB-PER\r\n\r\nx\x85y\u2028z\tO\r\n"
    (document,) = read(data)
    assert list(document.sentences()) == [["Ada"], ["x", "y", "z"]]  # only LF ends a line; the rest is white space


def test_the_last_line_needs_no_end_and_blank_lines_do_no_harm():
    assert [d.text for d in read("\n\n \t \na O\n\n\n\nb O")] == ["a\nb"]
    for empty in ("", "\n\n", "\ufeff"):
        assert read(empty) == []


def test_a_document_between_two_docstart_lines_may_have_no_tokens():
    documents = read("-DOCSTART- O\n\n-DOCSTART- O\n\nAda B-PER\n\n-DOCSTART- O\n")
    assert [(d.id, d.text, d.spans) for d in documents] == [
        ("<stream>#1", "", []), ("<stream>#2", "Ada", [Span(0, 1, "PER")]), ("<stream>#3", "", []),
    ]  # fmt: skip
    assert [d.spans for d in read("-DOCSTART-\n\nAda\n\n-DOCSTART-\n")] == [None, None]


@pytest.mark.parametrize("name", ["conll", "conll2003", "conll2002", "wnut17", "btc"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a NN O\nb O\n", r"<stream>:2: 2 columns \(separated by space\), expected 3 as in the first row"),
        (b"a\tO\nb c\n\n", r":2: 2 columns|:2: 'c' is not a tag"),
        (
            b"a O\nb PER\n",
            r":2: 'PER' is not a tag; expected O, or B-, I-, E-, S-, L- or U- followed by a label, in the last column",
        ),
        (
            b"a O\n\xe9 O\n",
            r":2: byte 0xe9 at offset 4 is not valid utf-8; expected utf-8, or name .* --encoding latin-1",
        ),
        ("a O\n".encode("utf-16") + b"\x00\xd8", r":2: byte 0x00 at offset 10 is not valid utf-16"),
        (gzip.compress(b"a O\n" * 99, mtime=0)[:-9], r"damaged gzip file"),
    ],
)
def test_errors_name_the_position(name, data, message):
    with pytest.raises(FormatError, match=message):
        read(data, name)


def test_other_encodings():
    for encoding in ("latin-1", "utf-16", "utf-8-sig", "cp1252"):
        (document,) = read("Zoë B-PER\n\nñ O\n".encode(encoding), encoding=encoding)
        assert document.text == "Zoë\nñ", encoding
    with pytest.raises(FormatError, match=r"unknown encoding 'klingon'"):
        read("a O\n", encoding="klingon")


@pytest.mark.parametrize("format", ["conll", "text", "lines", "jsonl", "csv", "html", "markdown"])
@pytest.mark.parametrize("mark", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16-le"])
def test_a_byte_order_mark_states_the_encoding(format: str, mark: str, encoding: str):
    texts = {"conll": "Zoë B-PER\n", "jsonl": '{"id": "a", "text": "Zoë"}\n', "csv": "text\nZoë\n"}
    data = texts.get(format, "Zoë").encode(mark)
    for stream in (data, gzip.compress(data)):
        (document,) = read_documents(io.BytesIO(stream), format, encoding=encoding)
        assert document.text == "Zoë", (format, mark, encoding)


def test_utf8_read_in_another_encoding_is_reported(caplog: pytest.LogCaptureFixture):
    for data, encoding, n_messages in [
        ("Zoë B-PER\n".encode(), "latin-1", 1), ("Zoë B-PER\n".encode(), "cp1252", 1), (b"\xeb B-PER\n", "latin-1", 0),
        (b"Bob B-PER\n", "latin-1", 0), ("Zoë B-PER\n".encode(), "utf-8", 0), ("ë O\n".encode()[:1], "latin-1", 0),
    ]:  # fmt: skip
        caplog.clear()
        list(read_documents(io.BytesIO(data), "conll", encoding=encoding))
        messages = [record.getMessage() for record in caplog.records if "valid utf-8" in record.getMessage()]
        assert len(messages) == n_messages, (data, encoding)
    caplog.clear()
    list(read_documents(io.BytesIO("Zoë O\n".encode()), "conll", encoding="latin-1"))
    assert caplog.messages == ["<stream>: read as latin-1, but its bytes are valid utf-8; check --encoding"]


def test_documents_before_an_error_are_read():
    found = []
    with pytest.raises(FormatError, match=r":3: byte 0xff"):
        found.extend(read_documents(io.BytesIO(b"a O\n\n\xff O\n"), "btc"))
    assert [d.text for d in found] == ["a"]


def test_a_line_of_five_megabytes():
    (document,) = read("x" * 5_000_000 + " O\ny O\n")
    assert [len(token) for token in document.tokens] == [5_000_000, 1]
    with pytest.raises(FormatError, match=r":2: 2 columns .* expected 2500001 as in the first row"):
        read("O " * 2_500_000 + "O\n" + "a O\n")


def test_reading_streams():
    """Documents of an endless stream are read one by one."""

    class Endless(io.RawIOBase):
        n_read = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            block = b"-DOCSTART- O\n\nAda B-PER\n\n"
            buffer[: len(block)] = block
            self.n_read += len(block)
            return len(block)

    stream = Endless()
    documents = read_documents(stream, "conll")
    for _ in range(10_000):
        assert next(documents).text == "Ada"
    assert stream.n_read < 2_000_000


def test_paths(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.conll").write_text("b O\n", encoding="utf-8")
    (tmp_path / "deep" / "a.conll.gz").write_bytes(gzip.compress(b"a O\n", mtime=0))
    assert [d.text for d in read_documents(tmp_path, "conll")] == ["b", "a"]
    assert [d.text for d in read_documents(str(tmp_path / "*.conll"), "conll")] == ["b"]
    assert [d.id for d in read_documents(tmp_path / "deep" / "a.conll.gz", "conll")] == ["a.conll"]
    assert [d.text for d in read_documents(io.StringIO("ü O\n"), "conll")] == ["ü"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"c O\n")))
    assert [d.text for d in read_documents("-", "conll")] == ["c"]
    for missing, message in [("none.conll", "no such file"), ("*.none", "no file matches"), ("deep", "no file named")]:
        with pytest.raises(FormatError, match=message):
            list(read_documents(tmp_path / missing, "worldwide"))


def test_unknown_names():
    with pytest.raises(
        ValueError, match=r"cannot read the format 'conl'; did you mean 'conll'\? expected one of conll, conll2003"
    ):
        read("", "conl")
    with pytest.raises(ValueError, match="has no option 'colour'; expected one of"):
        read("", "conll", colour=True)
    with pytest.raises(ValueError, match="`documents` must be one of docstart, sentence, file, got 'page'"):
        read("", documents="page")
    assert "documents" in FORMATS["conll"].read_options
    assert "labels" in FORMATS["jsonl"].read_options
