"""Documents survive every pair of formats, or the writer refuses them; and input that was once lost without a word."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from pathlib import Path

import pytest
from commands import Call, one_line
from hypothesis import given
from hypothesis import strategies as st
from lossless import NAMES, PAIRS, check_pair, random_document

from herdner.corpora.formats import FORMATS, read_documents, write_documents
from herdner.corpora.reading import convert
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.source import FormatError

pytest.importorskip("spacy", reason="needs spaCy: pip install '.[spacy]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[files]'")
STORY = Document.from_tokens([["Ada", "sang"]], [["B-PER", "O"]], id="a")


def written(documents: list[Document], format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    write_documents(documents, stream, format, **options)
    return stream.getvalue()


def read(data: bytes, format: str) -> list[Document]:
    return list(read_documents(io.BytesIO(data), format))


@given(rng=st.randoms(use_true_random=False), pair=st.sampled_from(PAIRS), n=st.integers(1, 4))
def test_documents_survive_all_pairs_of_formats(rng: random.Random, pair: tuple[str, str], n: int) -> None:
    check_pair([random_document(rng) for _ in range(n)], *pair)


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
