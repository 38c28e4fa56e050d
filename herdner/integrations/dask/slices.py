"""Inputs cut into slices and parts: a part knows the numbers of its documents before it is tagged."""

from __future__ import annotations

import codecs
import io
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO, Any, Literal, NamedTuple

from fsspec.utils import read_block  # pyright: ignore[reportMissingTypeStubs]

from herdner.corpora.formats import read_items
from herdner.integrations.dask.files import File, file_system
from herdner.text.document import Document, Failure
from herdner.text.io.jsonl import is_blank, records_of
from herdner.text.io.parquet import count_rows, read_rows
from herdner.text.io.plain import PIECE_CHARACTERS, pieces
from herdner.text.io.source import HEAD_BYTES, FormatError, Source, by_line, packing, read_chunks, uncompressed

FILES_PER_LOOK = 200


@dataclass(frozen=True)
class Slice:
    """Some documents of a file, one behind the other.

    ``kind`` says what ``begin`` and ``end`` count: bytes of JSON lines, bytes of one piece of a long text, row groups
    of a Parquet file; or nothing, where the slice is a whole file. ``number`` is that of the first line or row, or of
    the piece, in the file, from 1; ``offset`` the character where a piece begins. ``documents`` counts documents, also
    those that cannot be read; ``size`` is in bytes.
    """

    path: str
    kind: Literal["file", "lines", "piece", "rows"]
    begin: int
    end: int
    number: int
    offset: int
    documents: int
    size: int


@dataclass(frozen=True)
class Part:
    """What one task tags and one output file holds: part ``index`` of all, its first document number ``first``."""

    index: int
    first: int
    slices: tuple[Slice, ...]

    @property
    def documents(self) -> int:
        return sum(piece.documents for piece in self.slices)


class Reading(NamedTuple):
    """How inputs are read, the same in all of a run."""

    encoding: str = "utf-8"
    column: str = "text"
    storage_options: Mapping[str, Any] = {}


class Look(NamedTuple):
    """What one look at a file covers: the JSON lines that begin in a range of bytes, or (end 0) all of it."""

    file: File
    begin: int = 0
    end: int = 0


# --- planning -----------------------------------------------------------------------------------------------------


def looks(files: Iterable[File], part_bytes: int, reading: Reading) -> list[list[Look]]:
    """Looks that give every slice of the files in order, in batches of about ``part_bytes``."""
    batches: list[list[Look]] = [[]]
    size = 0
    for file in files:
        split = file.format == "jsonl" and file.size > part_bytes and by_line(reading.encoding)
        if split and packing(_head(file, reading)) is None:
            borders = range(0, file.size, part_bytes)
            found = [Look(file, begin, min(begin + part_bytes, file.size)) for begin in borders]
        else:
            found = [Look(file)]
        for look in found:
            if batches[-1] and (size + file.size > part_bytes or len(batches[-1]) == FILES_PER_LOOK):
                batches.append([])
                size = 0
            batches[-1].append(look)
            size += look.end - look.begin or file.size
    return batches


def slices_of(batch: Sequence[Look], reading: Reading) -> list[Slice]:
    """The slices of the looks of a batch. Lines and bytes of JSON count from the beginning of the look (`placed`)."""
    return [piece for look in batch for piece in _slices_of(look, reading)]


def placed(slices: Iterable[Slice]) -> Iterator[Slice]:
    """The slices with lines and bytes counted from the beginning of their file; those without documents left out."""
    path, begin, line = "", 0, 1
    for piece in slices:
        if piece.kind == "lines":
            if piece.path != path:
                path, begin, line = piece.path, 0, 1
            lines = piece.number
            piece = replace(piece, begin=begin, end=begin + piece.size, number=line)
            begin, line = begin + piece.size, line + lines
        if piece.documents:
            yield piece


def parts_of(slices: Iterable[Slice], part_bytes: int) -> list[Part]:
    """Neighbours joined to parts of at most ``part_bytes``, or of one slice."""
    parts: list[Part] = []
    chosen: list[Slice] = []
    first = size = 0

    def close() -> None:
        nonlocal chosen, first, size
        if chosen:
            parts.append(Part(len(parts), first, tuple(chosen)))
            first += parts[-1].documents
        chosen, size = [], 0

    for piece in slices:
        if size + piece.size > part_bytes:
            close()
        chosen.append(piece)
        size += piece.size
    close()
    return parts


def _slices_of(look: Look, reading: Reading) -> list[Slice]:
    file = look.file
    if look.end:
        with _opened(file.path, reading) as stream:
            data = read_block(stream, look.begin, look.end - look.begin, b"\n")
        lines = data.split(b"\n")
        documents = sum(not is_blank(line, reading.encoding) for line in lines)
        return [Slice(file.path, "lines", 0, 0, len(lines) - 1, 0, documents, len(data))]
    if file.format == "parquet":
        return _row_groups(file, reading)
    pieces = _text_pieces(file, reading) if file.format == "text" else []
    if pieces:
        return pieces
    documents = sum(1 for _ in _read_file(file.path, file.format, reading))
    return [Slice(file.path, "file", 0, 0, 1, 0, documents, file.size)]


def _text_pieces(file: File, reading: Reading) -> list[Slice]:
    """A slice for each piece of a long text; none where it is one document, or cannot be cut at bytes."""
    if file.size <= PIECE_CHARACTERS or not by_line(reading.encoding):
        return []
    found: list[Slice] = []
    offset = 0
    try:
        with _opened(file.path, reading) as stream:
            head = stream.read(HEAD_BYTES)
            if packing(head) is not None:
                return []
            begin = 3 if head.startswith(codecs.BOM_UTF8) and codecs.lookup(reading.encoding).name == "utf-8" else 0
            stream.seek(0)
            chunks = read_chunks(_source(file.path, stream), reading.encoding)
            for number, (text, is_whole) in enumerate(pieces(chunks, PIECE_CHARACTERS), 1):
                if is_whole:
                    return []
                size = len(text.encode(reading.encoding))
                documents = int(bool(text) and not text.isspace())
                found.append(Slice(file.path, "piece", begin, begin + size, number, offset, documents, size))
                begin, offset = begin + size, offset + len(text)
    except (FormatError, OSError):
        return []  # read as a whole, it gives what can be read and then the error
    return found


def _row_groups(file: File, reading: Reading) -> list[Slice]:
    try:
        with _opened(file.path, reading) as stream:
            groups = count_rows(stream, reading.column)
    except (ValueError, OSError):
        return [Slice(file.path, "rows", 0, 0, 1, 0, 1, file.size)]  # its one document is the failure
    found, number = list[Slice](), 1
    for group, (rows, size) in enumerate(groups):
        found.append(Slice(file.path, "rows", group, group + 1, number, 0, rows, size))
        number += rows
    return found


# --- reading ------------------------------------------------------------------------------------------------------


def read_part(part: Part, formats: Mapping[str, str], reading: Reading) -> Iterator[Document | Failure]:
    """The documents of a part; ``formats`` are those of its files.

    Raises ValueError where a file holds another number of documents than when it was looked at.
    """
    for piece in part.slices:
        count = 0
        for item in _read_slice(piece, formats[piece.path], reading):
            count += 1
            yield item
        if count != piece.documents:
            raise ValueError(f"{piece.path} has changed since the run began; tag it again, into another folder")


def _read_slice(piece: Slice, format: str, reading: Reading) -> Iterator[Document | Failure]:
    if piece.kind == "file":
        yield from _read_file(piece.path, format, reading)
        return
    source = _source(piece.path)
    if piece.kind == "rows":
        yield from _read_rows(piece, source, reading)
        return
    with _opened(piece.path, reading) as stream:
        stream.seek(piece.begin)
        data = stream.read(piece.end - piece.begin)
    if piece.kind == "lines":
        yield from records_of(io.BytesIO(data), source, reading.encoding, first=piece.number)
        return
    text = data.decode(reading.encoding)
    yield Document.from_text(text, id=f"{source.id}#{piece.number}", fields={"offset": piece.offset})


def _read_rows(piece: Slice, source: Source, reading: Reading) -> Iterator[Document | Failure]:
    try:
        with _opened(piece.path, reading) as stream:
            yield from read_rows(stream, source, reading.column, range(piece.begin, piece.end), piece.number)
    except ValueError as error:
        yield Failure(FormatError(f"{piece.path}: {error}"))


def _read_file(path: str, format: str, reading: Reading) -> Iterator[Document | Failure]:
    try:
        with _opened(path, reading) as stream:
            yield from read_items(_source(path, stream), format, reading.encoding)
    except OSError as error:
        yield Failure(FormatError(f"{path}: cannot be read ({error.strerror or error})"))


def _source(path: str, stream: IO[bytes] | None = None) -> Source:
    return Source(path, uncompressed(PurePosixPath(path).name), None, stream)


@contextmanager
def _opened(path: str, reading: Reading) -> Generator[IO[bytes]]:
    fs, name = file_system(path, reading.storage_options)
    with fs.open(name, "rb") as stream:
        yield stream


def _head(file: File, reading: Reading) -> bytes:
    with _opened(file.path, reading) as stream:
        return stream.read(HEAD_BYTES)
