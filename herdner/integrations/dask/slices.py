"""Division of input files into slices and parts, and reading of parts.

The workers scan all files once before tagging, so that the index of the first document of each part is known.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

from fsspec.core import url_to_fs  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from fsspec.utils import read_block  # pyright: ignore[reportMissingTypeStubs]

from herdner.corpora.formats import read_items
from herdner.integrations.dask.files import RunInput
from herdner.integrations.dask.manifest import InputSlice, OutputPart
from herdner.text.document import Document, Failure
from herdner.text.io.jsonl import is_blank, records_of
from herdner.text.io.parquet import count_rows, read_rows
from herdner.text.io.plain import PIECE_CHARACTERS, pieces
from herdner.text.io.source import (
    HEAD_BYTES,
    FormatError,
    Source,
    by_line,
    compression_of,
    contradicts_mark,
    read_chunks,
    strip_compression_suffix,
)

FILES_PER_SCAN = 200


class ReadOptions(NamedTuple):
    """Options for reading the input files of a run, which apply to all files.

    Attributes:
        encoding: Encoding of text files.
        column: Column of Parquet files that contains the texts.
        storage_options: Options of fsspec.
    """

    encoding: str = "utf-8"
    column: str = "text"
    storage_options: Mapping[str, Any] = {}


class FileScan(NamedTuple):
    """Range of a file to scan: all JSON lines that begin in bytes ``begin:end``, or all lines if ``end`` is 0."""

    file: RunInput
    begin: int = 0
    end: int = 0


# --- planning -------------------------------------------------------------------------------------------------------


def plan_scans(files: Iterable[RunInput], part_bytes: int, options: ReadOptions) -> list[list[FileScan]]:
    """Divide input files into ranges to scan, and group the ranges into batches, one for each task.

    Args:
        files: The files.
        part_bytes: Approximate size of a batch, in bytes.
        options: Options of reading.

    Returns:
        Batches of scans, in the order of the files.
    """
    batches: list[list[FileScan]] = [[]]
    size = 0
    for file in files:
        scans = [FileScan(file)]
        if file.format == "jsonl" and file.size > part_bytes and by_line(options.encoding):
            with _open(file.path, options) as stream:
                head = _seekable_head(stream, options)
            if head is not None:
                begins = range(0, file.size, part_bytes)
                scans = [FileScan(file, begin, min(begin + part_bytes, file.size)) for begin in begins]
        for scan in scans:
            if batches[-1] and (size + file.size > part_bytes or len(batches[-1]) == FILES_PER_SCAN):
                batches.append([])
                size = 0
            batches[-1].append(scan)
            size += scan.end - scan.begin or file.size
    return batches


def scan_slices(batch: Sequence[FileScan], options: ReadOptions) -> list[InputSlice]:
    """Read the file ranges of a batch and divide them into slices of consecutive documents.

    Args:
        batch: The scans.
        options: Options of reading.

    Returns:
        The slices. In slices of JSON lines, ``first`` contains the number of lines of the scan, and the offsets are 0,
        until `locate_slices` computes them.
    """
    return [piece for scan in batch for piece in _scan(scan, options)]


def locate_slices(slices: Iterable[InputSlice]) -> Iterator[InputSlice]:
    """Compute the position of each slice in its file from the numbers of lines and bytes of the preceding slices.

    Args:
        slices: Slices of `scan_slices`, in the order of the files.

    Yields:
        The slices that contain documents.
    """
    path, begin, line = "", 0, 1
    for piece in slices:
        if piece.unit == "lines":
            if piece.path != path:
                path, begin, line = piece.path, 0, 1
            n_lines = piece.first
            piece = replace(piece, begin=begin, end=begin + piece.n_bytes, first=line)
            begin, line = piece.end, line + n_lines
        if piece.n_documents:
            yield piece


def join_slices(slices: Iterable[InputSlice], part_bytes: int) -> list[OutputPart]:
    """Join consecutive slices into parts of at most ``part_bytes``; a larger slice is a part of its own.

    Args:
        slices: The slices.
        part_bytes: Size limit in bytes.

    Returns:
        The parts.
    """
    groups: list[list[InputSlice]] = []
    size = 0
    for piece in slices:
        if not groups or size + piece.n_bytes > part_bytes:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += piece.n_bytes
    parts: list[OutputPart] = []
    first_document = 0
    for group in groups:
        parts.append(OutputPart(first_document, tuple(group)))
        first_document += parts[-1].n_documents
    return parts


def _scan(scan: FileScan, options: ReadOptions) -> list[InputSlice]:
    file = scan.file
    if scan.end:
        with _open(file.path, options) as stream:
            data = read_block(stream, scan.begin, scan.end - scan.begin, b"\n")
        lines = data.split(b"\n")
        n_documents = sum(not is_blank(line, options.encoding) for line in lines)
        return [InputSlice(file.path, "lines", 0, 0, len(lines) - 1, 0, n_documents, len(data))]
    if file.format == "parquet":
        return _row_groups(file, options)
    text_pieces = _text_pieces(file, options) if file.format == "text" else []
    if text_pieces:
        return text_pieces
    n_documents = sum(1 for _ in _read_file(file.path, file.format, options))
    return [InputSlice(file.path, "file", 0, 0, 1, 0, n_documents, file.size)]


def _text_pieces(file: RunInput, options: ReadOptions) -> list[InputSlice]:
    """Divide a long text file into pieces, and return a slice for each piece.

    The list is empty if the file is one document, or if compression or encoding prevent reading from a byte offset.
    """
    if file.size <= PIECE_CHARACTERS or not by_line(options.encoding):
        return []
    slices: list[InputSlice] = []
    offset = 0
    try:
        with _open(file.path, options) as stream:
            if (head := _seekable_head(stream, options)) is None:
                return []
            begin = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
            stream.seek(0)
            chunks = read_chunks(_source(file.path, stream), options.encoding)
            for number, (text, is_whole) in enumerate(pieces(chunks, PIECE_CHARACTERS), 1):
                if is_whole:
                    return []
                end = begin + len(text.encode(options.encoding))
                n_documents = int(bool(text) and not text.isspace())
                slices.append(InputSlice(file.path, "piece", begin, end, number, offset, n_documents, end - begin))
                begin, offset = end, offset + len(text)
    except (FormatError, OSError):
        return []  # as a single slice, the file yields the documents before the error and then the error
    return slices


def _row_groups(file: RunInput, options: ReadOptions) -> list[InputSlice]:
    try:
        with _open(file.path, options) as stream:
            groups = count_rows(stream, options.column)
    except (ValueError, OSError):
        return [InputSlice(file.path, "rows", 0, 0, 1, 0, 1, file.size)]  # reading it yields one failure
    slices, first = list[InputSlice](), 1
    for group, (n_rows, size) in enumerate(groups):
        slices.append(InputSlice(file.path, "rows", group, group + 1, first, 0, n_rows, size))
        first += n_rows
    return slices


# --- reading --------------------------------------------------------------------------------------------------------


def read_part(part: OutputPart, formats: Mapping[str, str], options: ReadOptions) -> Iterator[Document | Failure]:
    """Read the documents of one part of a run.

    Args:
        part: The part.
        formats: Format of each of its files, by path.
        options: Options of reading.

    Yields:
        Each document, or its failure.

    Raises:
        ValueError: A file has another number of documents than when it was scanned.
    """
    for piece in part.slices:
        count = 0
        for item in _read_slice(piece, formats[piece.path], options):
            count += 1
            yield item
        if count != piece.n_documents:
            raise ValueError(
                f"{piece.path} has changed since the run began; start a new run with another output folder"
            )


def _read_slice(piece: InputSlice, format: str, options: ReadOptions) -> Iterator[Document | Failure]:
    if piece.unit == "file":
        yield from _read_file(piece.path, format, options)
        return
    source = _source(piece.path)
    if piece.unit == "rows":
        try:
            with _open(piece.path, options) as stream:
                yield from read_rows(stream, source, options.column, range(piece.begin, piece.end), piece.first)
        except ValueError as error:
            yield Failure(FormatError(f"{piece.path}: {error}"))
        return
    with _open(piece.path, options) as stream:
        stream.seek(piece.begin)
        data = stream.read(piece.end - piece.begin)
    if piece.unit == "lines":
        yield from records_of(io.BytesIO(data), source, options.encoding, first=piece.first)
        return
    text = data.decode(options.encoding)
    yield Document.from_text(text, id=source.document_id(piece.first), fields={"offset": piece.offset})


def _read_file(path: str, format: str, options: ReadOptions) -> Iterator[Document | Failure]:
    try:
        with _open(path, options) as stream:
            yield from read_items(_source(path, stream), format, options.encoding)
    except OSError as error:
        yield Failure(FormatError(f"{path}: cannot be read ({error.strerror or error})"))


def _source(path: str, stream: IO[bytes] | None = None) -> Source:
    return Source(path, strip_compression_suffix(PurePosixPath(path).name), None, stream)


@contextmanager
def _open(path: str, options: ReadOptions) -> Generator[IO[bytes]]:
    location: tuple[Any, str] = url_to_fs(path, **options.storage_options)  # pyright: ignore[reportUnknownVariableType]
    with location[0].open(location[1], "rb") as stream:
        yield stream


def _seekable_head(stream: IO[bytes], options: ReadOptions) -> bytes | None:
    """Return the first bytes of a file; None if compression or a byte order mark prevents reading from an offset."""
    head = stream.read(HEAD_BYTES)
    return None if compression_of(head) is not None or contradicts_mark(head, options.encoding) else head
