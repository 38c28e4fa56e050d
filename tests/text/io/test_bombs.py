"""Small files that unpack to far more than their size are refused before their content is allocated."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from herdner.base.npz import NpzError, read_arrays
from herdner.corpora.formats import read_documents, write_documents
from herdner.text.document import Document
from herdner.text.io import brat, docbin, source
from herdner.text.io.source import FormatError

MIB = 1 << 20
MOST_BYTES = 700 * MIB  # of memory above that of an empty program
MOST_SECONDS = 20  # of processor time; a busy machine needs about 2

READ = """
import resource, sys, time
from herdner.corpora.formats import read_documents
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
try:
    n = sum(1 for _ in read_documents(sys.argv[1], sys.argv[2]))
except ValueError as error:
    n = str(error)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024, time.process_time() - began, n, sep="\\n")
"""


def zeros(n_mib: int, head: bytes = b"", block: bytes = b"\0") -> Iterator[bytes]:
    """Yield ``head``, then repetitions of ``block`` of about this number of MiB."""
    yield head
    for _ in range(n_mib):
        yield block * (MIB // len(block))


def deflated(pieces: Iterable[bytes]) -> bytes:
    pack = zlib.compressobj()
    return b"".join(map(pack.compress, pieces)) + pack.flush()


def gzipped(pieces: Iterable[bytes]) -> bytes:
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1) as file:
        for piece in pieces:
            file.write(piece)
    return stream.getvalue()


def parquet(column: str) -> bytes:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    text, stream = pa.array(["a " * (100 * MIB // 2)]), io.BytesIO()
    table = {
        "text": lambda: {"text": text},
        "repeated": lambda: {"text": pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), text)},
        "list": lambda: {
            "text": ["a"],
            "n": pa.ListArray.from_arrays(pa.array([0, 20 * MIB], pa.int32()), pa.array(np.zeros(20 * MIB, np.int8))),
        },
    }[column]()
    pq.write_table(pa.table(table), stream, compression="zstd", dictionary_pagesize_limit=1 << 30, store_schema=False)
    return stream.getvalue()


NESTED = b"\x81\xa7strings\xdd" + struct.pack(">I", 2**31 - 1)
BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "json line": ("jsonl", lambda: gzipped(zeros(80, b'{"text": "', b"a ")), "a line has more than 67108864 bytes"),
    "json array": ("jsonl", lambda: gzipped(zeros(80, b'{"x": [', b"0,")), "a line has more than 67108864 bytes"),
    "label studio": ("label-studio", lambda: gzipped(zeros(270, b"[", b"[],")), "more than 268,435,456 characters"),
    "page": ("html", lambda: gzipped(zeros(270, b"<p>", b"<b>")), "the file has more than 268,435,456 characters"),
    "docbin": ("spacy", lambda: deflated(zeros(100)), "unpacks to more than"),
    "docbin of a long list": ("spacy", lambda: deflated(zeros(100, NESTED, b"\xc0")), "unpacks to more than"),
    "docbin of a short list": ("spacy", lambda: deflated([NESTED]), "damaged DocBin"),
    "nested docbin": ("spacy", lambda: deflated(zeros(2, b"", b"\x91")), "damaged DocBin"),
    "parquet text": ("parquet", lambda: parquet("text"), "row group 1 would unpack to 100 MiB; expected at most"),
    "parquet dictionary": ("parquet", lambda: parquet("repeated"), "row group 1 would unpack to 100 MiB"),
    "parquet list": ("parquet", lambda: parquet("list"), "row group 1 has a list column of 20,971,520 values"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_one_line_in_bounded_memory_and_time(name: str, tmp_path: Path) -> None:
    format, build, message = BOMBS[name]
    data = build()
    assert len(data) < 6 * MIB
    (tmp_path / "bomb").write_bytes(data)
    command = [sys.executable, "-c", READ, str(tmp_path / "bomb"), format]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    assert len(out) == 3
    n_bytes, seconds, text = int(out[0]), float(out[1]), out[2]
    assert message in text
    assert n_bytes < MOST_BYTES
    assert seconds < MOST_SECONDS


def test_an_npz_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        for piece in zeros(200):
            member.write(piece)
    with pytest.raises(NpzError, match="the archive would unpack to 200 MiB; expected at most"):
        read_arrays(path)


@pytest.mark.parametrize("size", [2**62, 2**31])
def test_an_array_whose_shape_lies_is_refused(size: int) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (size,)})
        archive.writestr("a.npy", header.getvalue())
    with pytest.raises(NpzError, match="has 128 bytes, which do not fit"):
        read_arrays(stream)


def test_an_archive_of_brat_files_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brat, "MAX_BYTES", MIB)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = 2 * MIB
        archive.addfile(info, io.BytesIO(b"a " * MIB))
    with pytest.raises(FormatError, match="unpacks to more than 1048576 bytes"):
        list(read_documents(io.BytesIO(stream.getvalue()), "brat"))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_long_header_in_an_archive_of_brat_files_is_refused_before_it_is_read(kind: bytes) -> None:
    info = tarfile.TarInfo("a")
    info.type, info.size = kind, 3 << 30
    archive = io.BytesIO(gzip.compress(info.tobuf(tarfile.GNU_FORMAT)))
    with pytest.raises(FormatError, match="a header has 3221225472 bytes; expected at most 1048576"):
        list(read_documents(archive, "brat"))


def test_a_long_chain_of_headers_in_an_archive_of_brat_files_is_refused() -> None:
    info = tarfile.TarInfo("a")
    info.type = tarfile.GNUTYPE_LONGNAME
    archive = io.BytesIO(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) * sys.getrecursionlimit()))
    with pytest.raises(FormatError, match="not a tar archive"):
        list(read_documents(archive, "brat"))


def test_all_bytes_of_an_archive_of_brat_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brat, "MAX_BYTES", MIB)
    headers = tarfile.TarInfo("a.doc").tobuf(tarfile.GNU_FORMAT) * (MIB // tarfile.BLOCKSIZE + 1)
    with pytest.raises(FormatError, match="unpacks to more than 1048576 bytes"):
        list(read_documents(io.BytesIO(gzip.compress(headers)), "brat"))


def test_files_that_are_held_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = json.dumps([{"data": {"text": "Ada sang."}}] * 3).encode()
    assert len(list(read_documents(io.BytesIO(tasks), "label-studio"))) == 3
    monkeypatch.setattr(source, "MAX_WHOLE_CHARS", len(tasks) - 1)
    with pytest.raises(FormatError, match=f"the file has more than {len(tasks) - 1} characters; split the file"):
        list(read_documents(io.BytesIO(tasks), "label-studio"))


def test_a_docbin_that_packs_well_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    spacy = pytest.importorskip("spacy")
    doc = spacy.blank("en")("Ada sang in Rio. " * 20)
    data = spacy.tokens.DocBin(docs=[doc] * 100).to_bytes()
    assert len(zlib.decompress(data)) > 10 * len(data)
    assert len(list(read_documents(io.BytesIO(data), "spacy"))) == 100
    monkeypatch.setattr(docbin, "_MIN_LIMIT", 0)
    monkeypatch.setattr(docbin, "_MAX_RATIO", 2)
    with pytest.raises(FormatError, match=f"unpacks to more than {2 * len(data)} bytes"):
        list(read_documents(io.BytesIO(data), "spacy"))


def test_written_files_that_pack_well_are_read_or_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    monkeypatch.setattr(docbin, "_MIN_LIMIT", 1 << 16)
    tokens = np.arange(0, 80_000, 4)
    text, borders = "Ada " * len(tokens), np.array([0, len(tokens)])
    repeated = Document(text, ["Ada"] * len(tokens), tokens, tokens + 3, borders)
    write_documents([repeated] * 3, tmp_path / "d.spacy", "spacy")
    assert [document.text for document in read_documents(tmp_path / "d.spacy", "spacy")] == [text] * 3
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"row group 1 would unpack to \d+ MiB; .*; write JSON lines instead"):
        write_documents([Document.from_text("Ada. " * 4_000_000)], tmp_path / "d.parquet", "parquet")
    assert not (tmp_path / "d.parquet").exists()
