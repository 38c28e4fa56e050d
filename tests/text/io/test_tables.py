"""CSV, TSV and Parquet keep every column and can be read back."""

from __future__ import annotations

import csv
import io
import json
import pickle
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.corpora.formats import read_documents, read_items, write_documents
from herdner.text.document import Document, Failure
from herdner.text.entity import Entity
from herdner.text.io.delimited import detect_delimiter
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


@pytest.mark.slow
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
def test_an_empty_cell_is_no_id(format: str) -> None:
    documents = list(read_documents(io.BytesIO(b"id\ttext\n\tAda\n7\tBo\n"), "tsv"))
    back = list(read_documents(io.BytesIO(written(documents, format)), format))
    assert [document.id for document in back] == [document.id for document in documents] == ["<stream>#1", "7"]


@pytest.mark.parametrize("format", TABLES)
def test_a_table_of_no_documents_is_a_table(format: str) -> None:
    assert list(read_documents(io.BytesIO(written([], format)), format)) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "f: the file is empty; expected a first row"),
        (b"a,b\n1,2\n", "f: no column 'text'; the columns of the file are a, b: name the column of texts by --column"),
        (b"id^text\n1^Ada\n", r"are id\^text: name the column of texts by --column, or the separator by --delimiter"),
        (
            b'a,"b\nc",' + b"d" * 50 + b"\n1,2,3\n",
            f"f: no column 'text'; the columns of the file are a, b c, {'d' * 40}...: name",
        ),
        (b"text,a,a\n1,2,3\n", "f: two columns are named 'a'"),
        (b'id,text\n1,"never closed\nmore', "f:3: a quote is never closed"),
        (b'id,text\n1,"Ada" said\n', "f:2: .*expected after '\"'; expected quotes around whole fields"),
        (b'id,text\n1,"Ada" said', "f:2: .*expected after '\"'; expected quotes around whole fields"),
        (b"id,text\n1\n", "f:2: 1 column; expected 2, as in the first row"),
        (b"id,text\n1,a,b\n", "f:2: 3 columns; expected 2"),
        (b"text,entities\nAda,[Bo;Cy\n", r"f:2: the column entities contains '\[Bo;Cy'"),
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
    with pytest.raises(FormatError, match="no column 'body'; the columns of the file are id, text, entities"):
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
    with pytest.raises(
        FormatError, match=r"^<stream>: the file contains a value that Python cannot represent"
    ) as raised:
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


# --- columns and rows


def tag_all(documents: list[Document]) -> list[Document]:
    """Tag the first word of each text as a person."""
    return [
        document.with_entities([Entity(0, 3, "PER", document.text[:3])] if len(document.text) > 2 else [])
        for document in documents
    ]


TYPED = {
    "when": pa.array([1, None, 3], pa.timestamp("ms")),
    "moment": pa.array([1, 2, None], pa.timestamp("ns", "Europe/Oslo")),
    "id": pa.array([30, None, 10], pa.int16()),
    "body": pa.array(["Ada met", None, ""], pa.large_string()),
    "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
    "price": pa.array([1, None, 3], pa.float32()),
    "amount": pa.array(["1.50", "2.25", None]).cast(pa.decimal128(9, 2)),
    "blob": pa.array([b"\xff", None, b""], pa.binary()),
    "pairs": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    "nested": pa.array([{"x": [1]}, {"x": []}, None], pa.struct([("x", pa.list_(pa.uint8()))])),
    "nothing": pa.nulls(3),
}


@pytest.mark.parametrize("rows_read", [1, 2, 64])
def test_every_row_and_column_of_a_parquet_file_comes_out_as_it_went_in(
    rows_read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("herdner.text.io.parquet.ROWS_READ", rows_read)
    table = pa.table(TYPED).replace_schema_metadata({"pandas": "{}", "origin": "x"})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    documents = list(read_documents(io.BytesIO(stream.getvalue()), "parquet", column="body"))
    documents = [pickle.loads(pickle.dumps(document)) for document in documents]  # as --jobs sends them
    found = pq.read_table(io.BytesIO(written(tag_all(documents), "parquet")))
    assert found.column_names == [*TYPED, "entities"]
    assert found.drop_columns("entities").equals(table)
    assert found.schema.metadata[b"origin"] == b"x"
    assert [entity["text"] for entity in found["entities"][0].as_py()] == ["Ada"]


def test_a_changed_value_of_a_parquet_file_is_written() -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.int8()), "text": ["Ada", "Bo"], "x": [0.5, 1.5]}), stream)
    first, second = read_documents(io.BytesIO(stream.getvalue()), "parquet")
    changed = replace(second, fields={**second.fields, "n": 7, "new": "y"}, id="b")
    found = pq.read_table(io.BytesIO(written([first, changed], "parquet")))
    assert found.schema.field("n").type == pa.int8()
    assert found.drop_columns("entities").to_pydict() == {
        "n": [1, 7], "text": ["Ada", "Bo"], "x": [0.5, 1.5], "id": ["<stream>#1", "b"], "new": [None, "y"]
    }  # fmt: skip


def test_source_positions_are_columns_only_for_documents_that_have_them() -> None:
    def entity_keys(documents: list[Document]) -> list[str]:
        table = pq.read_table(io.BytesIO(written(documents, "parquet")))
        return [field.name for field in table.schema.field("entities").type.value_type]

    plain = ["start", "end", "label", "text", "confidence", "name_id"]
    assert entity_keys([tagged("Ada met", "1")]) == plain
    pages = tag_all(list(read_documents(io.BytesIO(b"<p>Ada met"), "html")))
    assert entity_keys(pages) == [*plain, "source_start", "source_end"]
    record = pq.read_table(io.BytesIO(written(pages, "parquet")))["entities"][0].as_py()[0]
    assert (record["source_start"], record["source_end"]) == (3, 6)


CSV = 'When;"Full text ";;No\n2020-01-02;"Ada; met";0;007\n;;1;\n"a\nb";Bo;2;9\n'


def test_every_row_and_column_of_a_csv_file_comes_out_as_it_went_in() -> None:
    documents = list(read_documents(io.BytesIO(CSV.encode()), "csv", column="Full text", id_column="No"))
    assert [(document.id, document.text) for document in documents] == [
        ("007", "Ada; met"), ("<stream>#2", ""), ("9", "Bo")
    ]  # fmt: skip
    found = list(csv.reader(io.StringIO(written(tag_all(documents), "csv").decode(), newline=""), delimiter=";"))
    expected = list(csv.reader(io.StringIO(CSV, newline=""), delimiter=";"))
    assert [row[:-1] for row in found] == expected
    assert found[0][-1] == "entities"
    tabs = written(tag_all(documents), "tsv").decode()
    assert tabs.startswith("When\tFull text \t\tNo\tentities\n")


def test_entities_of_a_table_keep_their_place_and_ids_follow() -> None:
    data = b'entities,text,n\n"[{""start"": 0, ""end"": 2, ""label"": ""LOC""}]",Ada,1\n,Bob,2\n'
    documents = tag_all(list(read_documents(io.BytesIO(data), "csv")))
    rows = list(csv.DictReader(io.StringIO(written(documents, "csv").decode())))
    assert list(rows[0]) == ["entities", "text", "n", "id"]
    assert [(json.loads(row["entities"])[0]["label"], row["n"], row["id"]) for row in rows] == [
        ("PER", "1", "<stream>#1"), ("PER", "2", "<stream>#2")
    ]  # fmt: skip


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl"])
def test_a_column_of_other_content_named_entities_becomes_a_field(
    format: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = io.BytesIO()
    if format == "parquet":
        pq.write_table(pa.table({"text": ["Ada", "Bob"], "entities": [3, 4]}), stream)
    else:
        stream.write(
            b"text,entities\nAda,3\nBob,4\n"
            if format == "csv"
            else b"""{"text": "Ada", "entities": 3}
            {"text": "Bob", "entities": 4}"""
        )
    documents = list(read_documents(io.BytesIO(stream.getvalue()), format))
    assert "the value of 'entities' is not a list; it is read as a field, 2 in all" in caplog.text
    assert [str(document.fields["entities"]) for document in documents] == ["3", "4"]
    assert [document.spans for document in documents] == [None, None]
    rows = list(csv.DictReader(io.StringIO(written(tag_all(documents), "csv").decode())))
    assert [(row["source_entities"], json.loads(row["entities"])[0]["label"]) for row in rows] == [
        ("3", "PER"), ("4", "PER")
    ]  # fmt: skip
    with pytest.raises(FormatError, match="this is an error in strict mode"):
        list(read_documents(io.BytesIO(stream.getvalue()), format, strict=True))


@pytest.mark.parametrize("first", ["", "[]"])
@pytest.mark.parametrize("cell", ["n/a", "3"])
def test_other_content_in_a_column_of_entities_is_the_failure_of_its_row(first: str, cell: str) -> None:
    results = list(
        read_items(io.BytesIO(f"text,entities\nAda,{first}\nBob,{cell}\nEve,\n".encode()), "csv", encoding="utf-8")
    )
    (failure,) = [each for each in results if isinstance(each, Failure)]
    assert f"<stream>:3: the column entities contains '{cell}'; expected a JSON list of entities" in failure.message
    documents = [each for each in results if isinstance(each, Document)]
    rows = list(csv.DictReader(io.StringIO(written(tag_all(documents), "csv").decode())))
    assert [row["text"] for row in rows] == ["Ada", "Eve"]


@pytest.mark.parametrize("second", ["", "[]"])
def test_an_empty_cell_after_other_content_in_a_column_named_entities(second: str) -> None:
    documents = list(read_documents(io.BytesIO(f"text,entities\nAda,n/a\nBob,{second}\nEve,3\n".encode()), "csv"))
    rows = list(csv.DictReader(io.StringIO(written(tag_all(documents), "csv").decode())))
    assert [row["source_entities"] for row in rows] == ["n/a", "", "3"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_null_in_a_parquet_column_of_other_content_named_entities(format: str) -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": ["Ada", "Bob"], "entities": [None, "n/a"]}), stream)
    documents = list(read_documents(io.BytesIO(stream.getvalue()), "parquet"))
    data = written(tag_all(documents), format)
    if format == "csv":
        values = [row["source_entities"] or None for row in csv.DictReader(io.StringIO(data.decode()))]
    else:
        values = pq.read_table(io.BytesIO(data))["source_entities"].to_pylist()
    assert values == [None, "n/a"]


def test_a_table_with_two_id_columns_keeps_both() -> None:
    (document,) = read_documents(io.BytesIO(b"id,text,no\na,Ada,7\n"), "csv", id_column="no")
    assert (document.id, dict(document.fields)) == ("7", {"source_id": "a"})
    assert written([document], "csv").startswith(b"id,text,no,entities\na,Ada,7,")
    assert json.loads(written([document], "jsonl")) == {"id": "7", "text": "Ada", "source_id": "a"}


def test_dates_of_parquet_files_are_plain_text_in_csv() -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"on": [date(2020, 1, 2)], "text": ["Ada"], "n": [0.5]}), stream)
    documents = list(read_documents(io.BytesIO(stream.getvalue()), "parquet"))
    assert written(documents, "csv") == b"on,text,n,id,entities\n2020-01-02,Ada,0.5,<stream>#1,\n"


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("text", ","), ("text,b", ","), ("a;text", ";"), ("a\ttext\tc", "\t"), ("a|text", "|"), ('"a, b";"text"', ";"),
        ("a;text;c, d", ";"), ("a, b, c;text", ";"), ("a;b", ";"), ("", ","),
    ],
)  # fmt: skip
def test_the_delimiter_is_detected_in_the_header(header: str, delimiter: str) -> None:
    assert detect_delimiter(header + "\n", "text") == delimiter


def test_a_carriage_return_in_the_header_is_an_error_of_the_format() -> None:
    for format in ("csv", "tsv"):
        with pytest.raises(FormatError, match="new-line character"):
            list(read_documents(io.BytesIO(b"id,te\rxt\n1,Ada met Bob.\n"), format))


def test_a_given_delimiter_is_used() -> None:
    (document,) = read_documents(io.BytesIO(b"text:n\nAda, Bo:7\n"), "csv", delimiter=":")
    assert (document.text, document.fields) == ("Ada, Bo", {"n": "7"})
    assert written([document], "csv").startswith(b"text:n:id:entities\nAda, Bo:7:")
    for id_column, message in (("x", "name the column of ids by --id-column"), ("text", "both the texts and the ids")):
        with pytest.raises(FormatError, match=message):
            list(read_documents(io.BytesIO(b"text,n\nAda,7\n"), "csv", id_column=id_column))
