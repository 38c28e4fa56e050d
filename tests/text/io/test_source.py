"""Input files: folders, ids, compressed files, and files that are not text."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import logging
import lzma
import sys
from importlib import import_module
from pathlib import Path

import pytest

from herdner.corpora.formats import FORMATS, format_of, read_documents
from herdner.text.io.source import (
    COMPRESSED,
    FormatError,
    Source,
    open_compressed,
    read_chunks,
    unique_ids,
)

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}
TEXT = "In Köln.\n" * 20_000


def texts(where: object, format: str = "text", **options: object) -> list[str]:
    return [document.text for document in read_documents(where, format, **options)]


# --- compressed files


@pytest.mark.parametrize("ending", sorted(COMPRESSED))
def test_a_compressed_file_is_read_whatever_it_is_called(tmp_path: Path, ending: str) -> None:
    data = PACK[ending](TEXT.encode())
    for name in ("a.txt" + ending, "a.txt"):
        (tmp_path / name).write_bytes(data)
        assert [(d.id, d.text) for d in read_documents(tmp_path / name, "text")] == [("a.txt", TEXT)]
    assert texts(io.BytesIO(data)) == [TEXT]


@pytest.mark.parametrize("ending", sorted(COMPRESSED))
def test_a_compressed_file_that_is_cut_off_or_damaged_is_one_message(tmp_path: Path, ending: str) -> None:
    data = PACK[ending](TEXT.encode())
    middle = len(data) // 2
    for wrong in (data[:middle], data[:-1], data[:12] + bytes(40) + data[52:], data[:10]):
        (tmp_path / "a.txt").write_bytes(wrong)
        with pytest.raises(FormatError, match=r"a\.txt: damaged \w+ file \(.*\); fetch it again") as raised:
            texts(tmp_path / "a.txt")
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", sorted(COMPRESSED.values()))
def test_compression_is_deterministic_and_reversible(kind: str) -> None:
    files: list[bytes] = []
    for _ in range(2):
        file = io.BytesIO()
        with open_compressed(kind, file, "wb") as stream:
            stream.write(TEXT.encode())
        files.append(file.getvalue())
    assert files[0] == files[1]
    assert open_compressed(kind, io.BytesIO(files[0])).read().decode() == TEXT


def test_a_text_that_begins_like_a_bzip2_file_is_a_text(tmp_path: Path) -> None:
    assert texts(io.BytesIO(b"BZh4 is a word")) == ["BZh4 is a word"]


# --- folders and ids


def test_ids_are_relative_paths_and_hidden_files_are_ignored(tmp_path: Path) -> None:
    for name in ("x.txt", "a/x.txt", "a/b/x.txt.gz", ".git/x.txt", "a/.x.txt", "y.txt", "y.txt.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(b"In Kenya.") if name.endswith("gz") else b"In Kenya.")
    folder = [document.id for document in read_documents(tmp_path, "text")]
    assert folder == ["a/b/x.txt", "a/x.txt", "x.txt", "y.txt", "y.txt.gz"]
    pattern = [document.id for document in read_documents(f"{tmp_path}/**/*.txt", "text")]
    assert pattern == ["a/x.txt", "x.txt", "y.txt"]
    assert [document.id for document in read_documents(tmp_path / "a" / "x.txt", "text")] == ["x.txt"]


def test_ids_are_unique(tmp_path: Path) -> None:
    files = [Path("a/x.txt"), Path("a/x.txt.gz"), Path("b/x.txt"), Path("b/y.txt.zst")]
    assert unique_ids(files, Path()) == ["a/x.txt", "a/x.txt.gz", "b/x.txt", "b/y.txt"]


def test_the_extension_determines_the_format() -> None:
    assert [format_of(name) for name in ("a.md", "a.TXT", "b.iob2", "c.jsonl.zst", "d.py", "e.gz")] == [
        "markdown", "text", "uner", "jsonl", None, None,
    ]  # fmt: skip
    assert [format_of(name, write=True) for name in ("a.jsonl.gz", "b.iob2", "c.spacy", "d.HTML", "e.pdf")] == [
        "jsonl", "conll", "spacy", "html", None,
    ]  # fmt: skip


def test_every_extension_belongs_to_a_format_that_is_read_or_written() -> None:
    for name, entry in FORMATS.items():
        for ending in entry.extensions:
            assert ending.startswith(".")
            if entry.read is not None:
                assert format_of("a" + ending) in {name, "uner", "markdown"}


# --- files that hold no text


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"PK\x03\x04\x14\x00", "zip archive or an office document"),
        (b"PAR1\x15\x04", "--input parquet"),
        (b"Ada.txt".ljust(257, b"\0") + b"ustar", "tar archive"),
    ],
)
@pytest.mark.parametrize("format", ["text", "jsonl", "conll", "ieer"])
def test_files_that_are_not_text_are_refused_by_name(tmp_path: Path, head: bytes, said: str, format: str) -> None:
    (tmp_path / "a").write_bytes(head + b"\0" * 200)
    for encoding in ("utf-8", "latin-1"):
        with pytest.raises(FormatError, match=f"a: the file is .*{said}"):
            texts(tmp_path / "a", format, encoding=encoding)


# --- bytes that do not decode


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "utf-16-le", "shift_jis", "gb18030", "utf-8-sig"])
def test_replaced_bytes_are_logged_once(encoding: str, caplog: pytest.LogCaptureFixture) -> None:
    text = "In Kenya. " * 300_000
    good = text.encode(encoding)
    wrong = b"\x00\xd8" if encoding == "utf-16-le" else b"\xff"
    middle, late = len(good) // 2, len(good) - 400
    data = good[:middle] + wrong + good[middle:late] + wrong + good[late:]
    source = Source("f", "f", None, io.BytesIO(data), replace=True)
    with caplog.at_level(logging.WARNING):
        found = "".join(read_chunks(source, encoding))
    assert found.replace("\ufffd", "") == text
    assert 2 <= found.count("\ufffd") <= 4
    (record,) = caplog.records
    assert f"f:1: byte 0x{wrong[0]:02x} at offset {middle}" in record.getMessage()


@pytest.mark.parametrize("encoding", ["zlib", "bz2", "hex", "uu", "rot13"])
def test_codecs_that_are_no_encodings_of_text_are_refused(encoding: str) -> None:
    with pytest.raises(FormatError, match="unknown encoding"):
        texts(io.BytesIO(b"Ada sang."), encoding=encoding)


def test_a_codec_without_an_incremental_decoder_is_refused() -> None:
    utf8 = codecs.lookup("utf-8")

    def find(name: str) -> codecs.CodecInfo | None:
        return codecs.CodecInfo(utf8.encode, utf8.decode, name=name) if name == "whole_texts" else None

    codecs.register(find)
    try:
        with pytest.raises(FormatError, match="unknown encoding 'whole_texts'"):
            texts(io.BytesIO(b"Ada sang."), encoding="whole_texts")
    finally:
        codecs.unregister(find)


@pytest.mark.parametrize("replace", [False, True])
def test_a_missing_byte_order_mark_is_one_message(replace: bool) -> None:
    source = Source("a.txt", "a.txt", None, io.BytesIO(bytes(range(1, 200))), replace)
    with pytest.raises(FormatError, match=r"a\.txt:1: not valid utf-16"):
        list(read_chunks(source, "utf-16"))
