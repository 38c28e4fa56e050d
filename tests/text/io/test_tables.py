"""CSV, TSV and Parquet keep every column and can be read back."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.corpora.formats import read_documents, read_items, write_documents
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.source import FormatError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
TABLES = ("csv", "tsv", "parquet")
WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def written(documents: list[Document], format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    write_documents(documents, stream, format, **options)
    return stream.getvalue()


def tagged(text: str, id: str, **fields: object) -> Document:
    document = Document.from_text(text, id=id, fields=fields)
    return document.with_entities([Entity(0, 3, "PER", text[:3], 0.5)]) if len(text) > 2 else document


@pytest.mark.parametrize("format", TABLES)
@given(texts=st.lists(st.tuples(WORD, WORD), min_size=1, max_size=4))
def test_written_tables_are_read_back(format: str, texts: list[tuple[str, str]]) -> None:
    documents = [tagged(text, f"d{i}", author=author) for i, (text, author) in enumerate(texts)]
    data = written(documents, format, column="body")
    assert list(read_documents(io.BytesIO(data), format, column="body")) == documents


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_other_libraries_read_the_tables(format: str) -> None:
    fields = {"note": 'a "b",\tc\r\nd', "n": 7}
    data = written([tagged("Ada, met\nZoë", "1", **fields)], format).decode()
    (row,) = csv.DictReader(io.StringIO(data, newline=""), delimiter="," if format == "csv" else "\t")
    assert (row["id"], row["text"], row["note"], row["n"]) == ("1", "Ada, met\nZoë", fields["note"], "7")
    assert json.loads(row["entities"])[0]["text"] == "Ada"


def test_a_parquet_file_keeps_columns_and_their_types() -> None:
    table = pa.table({"id": [3, 4], "body": ["Ada met", "Bo"], "on": [date(2020, 1, 2), None], "tags": [["a"], []]})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    documents = list(read_documents(io.BytesIO(stream.getvalue()), "parquet", column="body"))
    assert [document.id for document in documents] == ["3", "4"]
    found = pq.read_table(io.BytesIO(written(documents, "parquet", column="body")))
    assert found.drop_columns("entities").select(table.column_names).equals(table)


@pytest.mark.parametrize("format", TABLES)
def test_a_table_of_no_documents_is_a_table(format: str) -> None:
    assert list(read_documents(io.BytesIO(written([], format)), format)) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "f: is empty; expected a first row"),
        (b"a,b\n1,2\n", "f: no column 'text'; the file has a, b: name the column of texts by --column"),
        (b'a,"b\nc",' + b"d" * 50 + b"\n1,2,3\n", f"f: no column 'text'; the file has a, b c, {'d' * 40}...: name"),
        (b"text,a,a\n1,2,3\n", "f: two columns are named 'a'"),
        (b'id,text\n1,"never closed\nmore', "f:3: a quote is never closed"),
        (b'id,text\n1,"Ada" said\n', "f:2: .*expected after '\"'; expected quotes around whole fields"),
        (b"id,text\n1\n", "f:2: 1 columns; expected 2, as in the first row"),
        (b"id,text\n1,a,b\n", "f:2: 3 columns; expected 2"),
        (b"text,entities\nAda,Bo;Cy\n", "f:2: the column entities contains 'Bo;Cy'"),
        (b'text,entities\nAda,"[{""start"": 0}]"\n', r"f:2: entity 0 is 0\.\.None"),
        (b"text\nK\xf6ln\n", "f:2: byte 0xf6 at offset 6 is not valid utf-8"),
        (b"PAR1....", "f: the file is a Parquet file"),
    ],
)
def test_a_bad_table_is_one_message(tmp_path: Path, data: bytes, said: str) -> None:
    stream = io.BytesIO(data)
    stream.name = "f"
    with pytest.raises(FormatError, match=said) as raised:
        list(read_documents(stream, "csv"))
    assert "\n" not in str(raised.value)


def test_rows_after_an_invalid_row_are_read() -> None:
    data = b"id,text\n1,Ada\n2\n3,Bo\n\n4,Cy\n"
    items = list(read_items(io.BytesIO(data), "csv", "utf-8"))
    assert [getattr(item, "id", None) for item in items] == ["1", None, "3", "4"]


def test_a_long_text_is_read_and_an_endless_one_refused() -> None:
    text = "In Kenya. " * 300_000
    assert [d.text for d in read_documents(io.BytesIO(f"text\n{text}\n".encode()), "csv")] == [text]
    with pytest.raises(FormatError, match=r"larger than field limit"):
        list(read_documents(io.BytesIO(b'text\n"' + (b"a" * 9999 + b"\n") * 6800), "csv"))


@pytest.mark.parametrize("format", TABLES)
def test_unsupported_documents_are_refused(format: str) -> None:
    documents = [tagged("Ada", "1", a=1), tagged("Bob", "2", b=1)]
    if format == "parquet":  # the columns of the first documents together
        assert len(list(read_documents(io.BytesIO(written(documents, format)), format))) == 2
        documents = [tagged("Ada", "1", a=1), tagged("Bob", "2", a="x")]
    with pytest.raises(ValueError, match="write JSON lines"):
        written(documents, format)


def test_a_damaged_parquet_file_is_one_message() -> None:
    data = written([tagged("Ada", "1")], "parquet")
    for wrong in (b"", b"PAR1", data[:-9], data[: len(data) // 2], data[:20] + b"\xff" * 40 + data[60:], b"a,b\n"):
        with pytest.raises(FormatError, match=r"<stream>: (not a|damaged|\d+:) ?Parquet file"):
            list(read_documents(io.BytesIO(wrong), "parquet"))
    with pytest.raises(FormatError, match="no column 'body'; the file has id, text, entities"):
        list(read_documents(io.BytesIO(data), "parquet", column="body"))


@pytest.mark.parametrize(
    ("numbers", "type"), [("int64", "timestamp[us]"), ("int64", "time64[us]"), ("int32", "date32")]
)
def test_a_date_without_a_python_type_is_one_message(numbers: str, type: str) -> None:
    """Arrow has dates after the year 9999 and times over 24 hours."""
    stream = io.BytesIO()
    days = pa.array([2**31 - 1], numbers)
    days = days if numbers == "int32" else pa.array([2**62], numbers)
    pq.write_table(pa.table({"text": ["Ada"], "day": days.cast(type)}), stream)
    stream.seek(0)
    with pytest.raises(FormatError, match=r"^<stream>: contains a value without a Python type") as raised:
        list(read_documents(stream, "parquet"))
    assert "\n" not in str(raised.value)


def test_lines_are_documents() -> None:
    documents = list(read_documents(io.BytesIO(b"Ada\r\n\n  \nBo\n"), "lines"))
    assert [document.text for document in documents] == ["Ada", "Bo"]
    assert [document.id for document in documents] == ["<stream>#1", "<stream>#4"]


# --- JSON lines


def test_json_lines_keep_all_fields() -> None:
    records = [
        {"id": 7, "text": "Ada met Bo", "entities": [], "meta": {"a": [1, None]}, "score": 0.25, "label": "x"},
        {"id": [1, 2], "text": "Ada met Bo", "tokens": ["Ada", "met", "Bo"], "url": None},
        {"id": "7", "text": "a", "annotated": ["PER"], "entities": [], "more": True},
        {"id": 1.5, "tokens": [["Ada"], ["Bo"]], "entities": []},
    ]
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    found = [
        json.loads(line) for line in written(list(read_documents(io.BytesIO(data), "jsonl")), "jsonl").splitlines()
    ]
    for given_, kept in zip(records, found, strict=True):
        assert kept == {"text": "Ada\nBo", **given_}
        assert type(kept["id"]) is type(given_["id"])


def test_a_changed_id_is_written() -> None:
    (document,) = read_documents(io.BytesIO(b'{"id": 7, "text": "a"}\n'), "jsonl")
    assert json.loads(written([replace(document, id="b")], "jsonl"))["id"] == "b"
