"""Documents survive every pair of formats, or the writer refuses them; and input that was once lost without a word."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Call, one_line
from hypothesis import given
from hypothesis import strategies as st
from lossless import NAMES, PAIRS, check_pair, random_document

from herdner.corpora.formats import FORMATS, WRITABLE, read_documents, write_documents
from herdner.corpora.reading import convert
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.source import FileId, FormatError

pytest.importorskip("spacy", reason="needs spaCy: pip install '.[spacy]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[files]'")
STORY = Document.from_tokens([["Ada", "sang"]], [["B-PER", "O"]], id="a")


def written(documents: list[Document], format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    write_documents(documents, stream, format, **options)
    return stream.getvalue()


def read(data: bytes, format: str) -> list[Document]:
    return list(read_documents(io.BytesIO(data), format))


@pytest.mark.slow
@given(rng=st.randoms(use_true_random=False), pair=st.sampled_from(PAIRS), n=st.integers(1, 4))
def test_documents_survive_all_pairs_of_formats(rng: random.Random, pair: tuple[str, str], n: int) -> None:
    check_pair([random_document(rng) for _ in range(n)], *pair)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_each_pair_of_formats(pair: tuple[str, str]) -> None:
    rng = random.Random(1)
    check_pair([random_document(rng) for _ in range(10)], *pair)


def test_formats_that_carry_documents() -> None:
    assert set(FORMATS) - set(NAMES) >= {"text", "html", "ieer", "lines"}
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", ["x.tar.gz", "x.tgz", "x.tar.zst", "x.tar", "x.brat"])
def test_a_brat_archive_is_compressed_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.jsonl").write_bytes(written([STORY], "jsonl"))
    convert(str(tmp_path / "in.jsonl") + ":jsonl", "brat", tmp_path / name)
    assert [d.text for d in read_documents(tmp_path / name, "brat")] == ["Ada sang"]
    if not name.endswith("zst"):
        with tarfile.open(tmp_path / name) as archive:
            assert archive.getnames() == ["a.txt", "a.ann"]


@pytest.mark.parametrize("name", ["x.tar.gz", "x.tgz", "x.tar"])
def test_a_brat_archive_that_is_written_to_a_path_is_compressed_once(tmp_path: Path, name: str) -> None:
    write_documents([STORY], tmp_path / name, "brat")
    assert [d.text for d in read_documents(tmp_path / name, "brat")] == ["Ada sang"]
    with tarfile.open(tmp_path / name) as archive:
        assert archive.getnames() == ["a.txt", "a.ann"]


def test_converted_files_are_compressed_by_their_extension(tmp_path: Path) -> None:
    (tmp_path / "in.conll").write_bytes(written([STORY], "conll"))
    convert(f"{tmp_path / 'in.conll'}:conll", "jsonl", tmp_path / "out.jsonl.gz")
    assert json.loads(gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()))["text"] == "Ada sang"


def test_brat_archive_of_the_command_line(call: Call, news_model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("In Kenya.")
    assert call("tag", tmp_path / "a.txt", "-m", news_model, "-f", "brat", "-o", tmp_path / "o.tar.gz").code == 0
    with tarfile.open(tmp_path / "o.tar.gz") as archive:
        assert archive.getnames() == ["a.txt", "a.ann"]


def test_ids_that_become_one_file_name_are_kept_apart() -> None:
    ids = ["a-3", "a", "a", "A", "a/b", "a b", "ä", "a\u0308", "document-10", None, "..", ""]
    documents = [Document.from_text(f"text {i}", id=id) for i, id in enumerate(ids)]
    data = written(documents, "brat")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = archive.getnames()
    assert len({name.casefold() for name in names}) == 2 * len(ids)
    assert [d.text for d in read(data, "brat")] == [d.text for d in documents]


def test_a_byte_order_mark_at_the_start_of_a_token_is_kept() -> None:
    document = Document.from_tokens([["\ufeffAda", "sang"]], [["B-PER", "O"]], id="a")
    for format in ("conll", "brat", "csv", "jsonl", "spacy"):
        (back,) = read(written([document], format), format)
        assert back.text == "\ufeffAda sang"
        assert [entity.text for entity in back.entities] == ["\ufeffAda"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document.from_tokens([["-DOCSTART-", "x"]]), "the token '-DOCSTART-' separates documents"),
        (Document.from_tokens([["New York"]]), "the token 'New York' contains white space"),
        (Document.from_tokens([["Ada"]], [["B-a\tb"]]), r"the label 'a\\tb' cannot be written"),
        (Document.from_tokens([["Ada"]], [["B-a\nb"]]), r"the label 'a\\nb' cannot be written"),
    ],
)
def test_documents_that_columns_cannot_represent_are_refused(document: Document, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written([document], "conll")


def test_an_entity_has_at_least_one_character() -> None:
    with pytest.raises(ValueError, match=r"an entity is at 1\.\.1; expected a span of at least one character"):
        Document.from_text("Ada").with_entities([Entity(1, 1, "PER", "")])


def test_overlapping_entities_are_refused() -> None:
    document = Document.from_text("Ada").with_entities([Entity(0, 2, "PER", "Ad"), Entity(1, 3, "PER", "da")])
    with pytest.raises(ValueError, match=r"the entity at 1\.\.3 overlaps another entity"):
        written([document], "jsonl")


@pytest.mark.parametrize("format", ["jsonl", "doccano", "prodigy", "label-studio"])
def test_numbers_out_of_range_are_refused(format: str) -> None:
    record = '{"id": 1e400, "text": "a", "data": {"text": "a"}}'
    with pytest.raises(FormatError, match="the number 1e400 is too large; write it as a string"):
        read(record.encode(), format)


def test_json_lines_with_everyday_keys_come_back_unchanged(call: Call, news_model: Path, tmp_path: Path) -> None:
    records = [
        {"id": 3, "text": "In Kenya.", "tokens": 17, "open": True, "labels": ["x"], "offset": "y"},
        {"text": "In Kenya.", "entities": "none", "tokens": {"n": 2}},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    outcome = call("tag", path, "-m", news_model)
    assert outcome.code == 0, outcome.err
    first, second = (json.loads(line) for line in call("tag", path, "-m", news_model, "-f", "jsonl").out.splitlines())
    assert first | records[0] == first
    assert second["source_entities"] == "none"
    assert second["tokens"] == {"n": 2}
    assert [entity["text"] for entity in second["entities"]] == ["Kenya"]
    path.write_text(json.dumps(records[1]))
    message = one_line(call("tag", path, "-m", news_model, "--strict"), 1)
    assert "the value of 'entities' is not a list; it is read as a field; this is an error in strict mode" in message


SURROGATES = {
    "id": Document.from_tokens([["Ada"]], [["B-PER"]], id="a\udcff"),
    "text": Document.from_tokens([["Ad\ud800", "Rio"]], [["B-PER", "O"]], id="a"),
    "label": Document.from_tokens([["Ada"]], [["B-P\ud800"]], id="a"),
    "field": Document.from_tokens([["Ada"]], [["B-PER"]], id="a", fields={"year": "\udfff"}),
    "name of a field": Document.from_tokens([["Ada"]], [["B-PER"]], id="a", fields={"y\ud800": "1"}),
    "list": Document.from_tokens([["Ada"]], [["B-PER"]], id="a", fields={"year": ["\udfff"]}),
}


@pytest.mark.parametrize("part", SURROGATES)
@pytest.mark.parametrize("format", WRITABLE)
def test_surrogates_are_kept_or_refused(format: str, part: str, caplog: pytest.LogCaptureFixture) -> None:
    document = SURROGATES[part]
    try:
        data = written([document], format)
    except ValueError as error:
        (line,) = str(error).splitlines()
        assert "surrogate" in line or (part == "label" and "the label 'P\\ud800' cannot be written" in line)
        assert "write JSON lines" in line or part == "label"
        assert line.startswith("document 'a") or format in ("text", "html")
        return
    if "surrogates" in FORMATS[format].carries:
        assert rb"\ud" in data
    elif format == "html":  # for display, as control characters
        assert "\ufffd".encode() in data or part in ("field", "name of a field", "list")
    else:  # the format has no place for this part
        assert part not in ("text", "label")
        assert "cannot represent" in caplog.text or format == "text"


def test_two_surrogates_that_json_reads_as_one_character_are_refused() -> None:
    message = r"document 'a': the text contains two surrogates at character 1, .* from the character U\+1F600"
    for format in ("jsonl", "doccano", "prodigy", "label-studio"):
        with pytest.raises(ValueError, match=message):
            written([Document.from_text("x\ud83d\ude00", id="a")], format)
        (back,) = read(written([Document.from_text("x\ude00\ud83d", id="a")], format), format)
        assert len(back.text) == 3


RICH = Document.from_tokens(
    [["Ada", "met"], ["Ada", "Rio"]], [["B-PER", "O"], ["B-PER", "B-LOC"]], id="a", fields={"year": 1843, "note": ""}
)
RICH = RICH.with_entities([Entity(e.start, e.end, e.label, e.text, 0.5, e.label == "LOC") for e in RICH.entities])


@pytest.mark.parametrize(
    ("format", "parts"),
    [
        ("conll", ["confidences", "fields", "groups of mentions", "ids"]),
        ("spacy", ["confidences", "fields", "ids"]),
        ("brat", ["fields", "ids", "tokens and sentence borders"]),
        ("doccano", ["confidences", "groups of mentions", "tokens and sentence borders"]),
        ("jsonl", ["tokens and sentence borders"]),
        ("csv", ["tokens and sentence borders"]),
        ("text", []),
        ("html", []),
    ],
)
def test_one_warning_for_each_part_that_a_format_cannot_represent(
    format: str, parts: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    written([RICH, RICH, Document.from_text("").with_entities([])], format)
    starts = [f"the format {format} cannot represent the {part} of 2 documents; these formats can: " for part in parts]
    assert len(caplog.messages) == len(starts)
    for start, message in zip(starts, sorted(caplog.messages, key=lambda m: m.split("represent the ")[1]), strict=True):
        assert message.startswith(start)
    if "ids" in parts:
        assert "ids of 2 documents; these formats can: jsonl, csv, tsv, parquet, label-studio, doccano" in caplog.text


@pytest.mark.slow
def test_parts_that_herdner_has_computed_are_left_out_silently(
    call: Call, news_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {
        "a.txt": b"Ada Lovelace met Mr. Kenya in Kenya. Kenya.", "b.jsonl": b'{"text": "In Kenya."}\n{"text": ""}',
        "c.csv": b"text\nIn Kenya.\n", "d.md": b"# Kenya",
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert all(isinstance(d.id, FileId) for d in read_documents(tmp_path / name, FORMATS_OF[name[2:]]))
    for format in WRITABLE:
        outcome = call("tag", *map(tmp_path.joinpath, files), "-m", news_model, "-f", format, "-o", tmp_path / "out.x")
        assert (outcome.code, outcome.err) == (0, ""), format
    assert not [each for each in caplog.messages if "cannot represent" in each]


FORMATS_OF = {"txt": "text", "jsonl": "jsonl", "csv": "csv", "md": "markdown"}


def test_the_command_line_warns_about_parts_of_the_input(
    call: Call, news_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "x", "text": "In Kenya.", "year": 1}\n{"id": "y", "text": "Hi."}\n')
    assert call("tag", tmp_path / "a.jsonl", "-m", news_model, "-o", tmp_path / "o.conll").code == 0
    fields, ids = caplog.messages
    assert fields.startswith("the format conll cannot represent the fields of 1 document; these formats can: ")
    assert ids.startswith("the format conll cannot represent the ids of 2 documents; these formats can: jsonl")
    assert call("tag", tmp_path / "a.jsonl", "-m", news_model, "-f", "jsonl").code == 0
    assert call("tag", tmp_path / "o.conll", "-m", news_model, "-o", tmp_path / "p.conll").code == 0
    assert len(caplog.messages) == 2


def test_documents_without_tokens_come_back(tmp_path: Path) -> None:
    empty, blank = Document.from_text("", id="b"), Document.from_text(" \n").with_entities([])
    for documents in ([empty], [empty, STORY], [STORY, blank, empty, STORY], [STORY, empty], [blank, blank]):
        back = read(written(documents, "conll"), "conll")
        assert [d.text for d in back] == [d.text.strip() for d in documents]
        assert [list(d.spans or ()) for d in back] == [list(d.spans or ()) for d in documents]
        assert all(d.is_annotated for d in back)


def test_unannotated_documents_among_annotated_ones(caplog: pytest.LogCaptureFixture) -> None:
    plain = Document.from_tokens([["Rain"]])
    written([plain, plain], "conll")
    assert not caplog.messages
    written([replace(STORY, id=None), plain, plain], "conll")
    assert caplog.messages == [
        "conll: document 2: a document without annotation is written like an annotated document without entities, 2 in"
        " all"
    ]
    assert [d.spans is None for d in read(written([STORY, plain], "spacy"), "spacy")] == [False, True]


def test_entities_within_tokens_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    document = Document.from_tokens([["Ada", "Rio"], ["x"]])
    cut = document.with_entities([Entity(1, 3, "PER", "da"), Entity(4, 9, "LOC", "Rio\nx")])
    written([document, cut, cut], "conll")
    assert caplog.messages == [
        "conll: document 2: an entity begins or ends within a token; it is widened to whole tokens, or left out if"
        " other entities cover all its tokens, 2 in all",
        "conll: document 2: an entity crosses a sentence border; it is split there, 2 in all",
        "conll: document 1: a document without annotation is written like an annotated document without entities",
    ]


def test_a_file_is_not_compressed_twice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.gz: the extension already states how the file is compressed"):
        write_documents([STORY], tmp_path / "x.gz", "brat", compress=True)
    assert not list(tmp_path.iterdir())
    write_documents([STORY], tmp_path / "x.tar", "brat")
    with tarfile.open(tmp_path / "x.tar", "r:") as archive:
        assert archive.getnames() == ["a.txt", "a.ann"]
    write_documents([STORY], tmp_path / "x.JSONL.GZ", "jsonl")
    assert gzip.decompress((tmp_path / "x.JSONL.GZ").read_bytes()).startswith(b'{"id": "a"')


@pytest.mark.parametrize("name", ["x.jsonl.zip", "x.7z", "x.CSV.RAR"])
def test_a_name_of_another_compression_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r": cannot write files with this extension; expected .gz, .bz2, .xz or .zst"):
        write_documents([STORY], tmp_path / name, "jsonl")
    assert not list(tmp_path.iterdir())
