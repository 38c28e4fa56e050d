"""brat's standoff files NAME.txt and NAME.ann, in a folder or in a tar.gz as brat exports it.

Format: https://brat.nlplab.org/standoff.html
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import cached_property
from itertools import chain, count, pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from herdner.text.document import Document
from herdner.text.entity import Entity, join_pairs
from herdner.text.io.annotation_tools import MarkedSpan, with_marked_spans
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FileId, FormatError, Input, Source, locate_errors, open_bytes, read_whole, sources
from herdner.text.io.write import encode

MAX_BYTES = 1 << 30  # size of an unpacked archive, which is held in memory; a small file may unpack to any size
MAX_HEADER_BYTES = 1 << 20  # size of a long name or of the attributes of a file in an archive
_LONG_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
_PIECE = re.compile(r"(\d+) (\d+)", re.ASCII)
_NOTE = re.compile(r"#\d+\tAnnotatorNotes (T\S+)\tconfidence ([01]\.\d+)\s*")


class _Pair(NamedTuple):
    """Contents of a brat text file and of the annotation file that belongs to it.

    Attributes:
        id: Identifier of the document.
        text: The text.
        name: Name of the annotation file, for messages.
        annotation: Content of the annotation file; None if there is none.
    """

    id: str
    text: str
    name: str
    annotation: str | None


def read_brat(where: Input, *, encoding: str = "utf-8", strict: bool = False) -> Iterator[Document]:
    """Read documents in brat's format from a folder, a tar archive, or a pair of files (.txt and .ann).

    A document with an empty .ann file counts as not annotated, because brat requires this file before annotation
    begins. Relations, events and attributes are ignored. A span of several pieces is omitted if there are words between
    the pieces.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents without tokens.

    Raises:
        FormatError: A file is missing or invalid.
    """
    for pair in _pairs(where, encoding):
        document = Document.from_text(pair.text, id=FileId(pair.id))
        if pair.annotation is not None and pair.annotation.strip():
            with ParseWarnings(pair.name, strict) as warnings, locate_errors(pair.name):
                document = with_marked_spans(document, _spans(pair, warnings), warnings.add)
        yield document


def _pairs(where: Input, encoding: str) -> Iterator[_Pair]:
    for source in sources(where, ("*.ann", "*.tar", "*.tgz")):
        if source.path is None or source.path.suffix not in (".ann", ".txt"):
            yield from _read_archive(source, encoding)
            continue
        text, annotation = source.path.with_suffix(".txt"), source.path.with_suffix(".ann")
        if not text.exists():
            raise FormatError(f"{source.name}: the text file {text.name} is missing; put it in the same folder")
        id = source.id.removesuffix(".ann").removesuffix(".txt")
        content = _read(annotation, encoding) if annotation.exists() else None
        yield _Pair(id, _read(text, encoding), str(annotation), content)


def _read(path: Path, encoding: str) -> str:
    return read_whole(Source(str(path), path.name, path, None), encoding)


class _Member(tarfile.TarInfo):
    """Header of a file in an archive; headers that would take much memory are refused before they are read."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Check the size of a long header before tarfile reads it; tarfile calls this hook for every block of a header.

        Unlike `frombuf`, the hook is called by all versions of tarfile.
        """
        if self.type in _LONG_HEADERS and self.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header has {self.size} bytes; expected at most {MAX_HEADER_BYTES}")
        return cast("Any", super())._proc_member(archive)


class _LimitedStream:
    """Stream of an unpacked archive that raises `FormatError` after `MAX_BYTES` bytes."""

    def __init__(self, source: Source, stream: IO[bytes]) -> None:
        self.source = source
        self.stream = stream
        self.n_bytes = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes of the archive, at most ``size``."""
        data = self.stream.read(size)
        self.n_bytes += len(data)
        if self.n_bytes > MAX_BYTES:
            raise FormatError(f"{self.source.name}: unpacks to more than {MAX_BYTES} bytes; split the archive")
        return data


def _read_archive(source: Source, encoding: str) -> Iterator[_Pair]:
    files: dict[str, str] = {}
    problem = f"{source.name}: not a tar archive; expected a folder of .txt and .ann files, or an export of brat"
    total = 0
    with open_bytes(source) as stream:
        bounded: Any = _LimitedStream(source, stream)
        try:
            with tarfile.open(fileobj=bounded, mode="r|", tarinfo=_Member) as archive:
                for member in archive:
                    cast("Any", archive).members.clear()  # otherwise the headers of all files stay in memory
                    if not member.isfile() or PurePosixPath(member.name).suffix not in (".txt", ".ann"):
                        continue
                    total += member.size  # a sparse file is larger than its part of the archive
                    if total > MAX_BYTES:
                        raise FormatError(f"{source.name}: unpacks to more than {MAX_BYTES} bytes; split the archive")
                    content = archive.extractfile(member)
                    data = b"" if content is None else content.read()
                    inside = Source(f"{source.name}/{member.name}", member.name, None, io.BytesIO(data))
                    files[member.name] = read_whole(inside, encoding)
        except FormatError:
            raise
        # ValueError: numbers in headers; RecursionError: a long chain of long names
        except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
            raise FormatError(f"{problem} ({error})") from None
    texts = [name for name in files if name.endswith(".txt")]
    if not texts:
        raise FormatError(f"{source.name}: no .txt file in the archive; expected NAME.txt and NAME.ann")
    for name in texts:
        stem = name.removesuffix(".txt")
        yield _Pair(stem, files[name], f"{source.name}/{stem}.ann", files.get(f"{stem}.ann"))


def _spans(pair: _Pair, warnings: ParseWarnings) -> list[MarkedSpan]:
    lines = (pair.annotation or "").split("\n")
    confidences = {note[1]: float(note[2]) for note in map(_NOTE.fullmatch, lines) if note is not None}
    equivalent = [line.split()[2:] for line in lines if line.startswith("*\tEquiv ")]
    names = join_pairs((keys[0], key) for keys in equivalent for key in keys[1:])
    spans: list[MarkedSpan] = []
    words = _Words(pair.text)
    for number, line in enumerate(lines, 1):
        if not line.startswith("T"):
            continue
        with locate_errors(f"{pair.name}:{number}"):
            span = _span(line.rstrip("\r"), pair.text, words)
        if span is None:
            warnings.add("a span of several pieces with words between them is left out", number)
        else:
            key = line.partition("\t")[0]
            spans.append(span._replace(confidence=confidences.get(key), name=names.get(key)))
    return spans


class _Words:
    """Character ranges of the words of a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def ranges(self) -> tuple[list[int], list[int]]:
        """Offsets of the starts and of the ends of all words."""
        matches = list(re.finditer(r"\S+", self.text))
        return [match.start() for match in matches], [match.end() for match in matches]

    def lie_between(self, start: int, end: int) -> bool:
        """Return whether the text contains anything but white space between the offsets ``start`` and ``end``."""
        starts, ends = self.ranges
        first = bisect_right(ends, start)
        return start < end and first < len(starts) and starts[first] < end


def _span(line: str, text: str, words: _Words) -> MarkedSpan | None:
    """Parse the span in a line of a brat annotation file.

    Return None if the span has several pieces with unmarked words between them.
    """
    columns = line.split("\t")
    label, space, ranges = columns[1].partition(" ") if len(columns) > 2 else ("", "", "")
    pieces = [_PIECE.fullmatch(piece) for piece in ranges.split(";")]
    offsets = [(int(piece[1]), int(piece[2])) for piece in pieces if piece is not None]
    if not space or len(offsets) < len(pieces):
        raise ValueError(f"{line[:60]!r} is not a span; expected T1 TAB LABEL START END TAB TEXT")
    offsets.sort()
    if any(words.lie_between(left[1], right[0]) for left, right in pairwise(offsets)):
        return None
    start, end = offsets[0][0], offsets[-1][1]
    if not 0 <= start < end <= len(text):
        raise ValueError(f"the span {start}..{end} exceeds the text, which has {len(text)} characters")
    return MarkedSpan(start, end, label, columns[2] if len(offsets) == 1 else None)


def write_brat(documents: Iterable[Document], stream: IO[Any], *, compress: bool = True) -> None:
    """Write documents in brat's format: a tar.gz archive with a NAME.txt and a NAME.ann for each document.

    Unpack it in brat's data folder.

    NAME is the id of the document, in which "_" replaces all characters but letters, digits and ".#-". A number is
    added to a file name if a file system may confuse it with an earlier file name. White space in labels is replaced by
    "_", because brat does not allow it. A span over several lines is written in pieces, as brat does. Confidences
    become notes, and the mentions of a name an equivalence (``Equiv``). Equal documents give equal bytes.

    Args:
        documents: The documents.
        stream: A binary stream, or a text stream with a binary buffer.
        compress: Compress the archive by gzip.

    Raises:
        ValueError: Two labels become the same label of brat, or an entity begins or ends with a line break or TAB.
    """
    binary = getattr(stream, "buffer", stream)
    labels: dict[str, str] = {}
    names: set[str] = set()
    with (
        gzip.GzipFile("", "wb", fileobj=binary, mtime=0) if compress else nullcontext(binary) as target,
        tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for number, document in enumerate(documents, 1):
            name = _file_name(document.id, number, names)
            # The reader removes one byte order mark. A second one keeps the first character of the text.
            text = f"\ufeff{document.text}" if document.text.startswith("\ufeff") else document.text
            for extension, content in ((".txt", text), (".ann", "".join(_lines(document, labels)))):
                data = encode(content)
                info = tarfile.TarInfo(name + extension)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def _file_name(id: str | None, number: int, names: set[str]) -> str:
    stem = re.sub(r"[^\w.#-]+", "_", id or "").strip("._").removesuffix(".txt") or f"document-{number}"
    candidates = chain([stem], (f"{stem}-{i}" for i in count(number)))
    name = next(each for each in candidates if _file_name_key(each) not in names)
    names.add(_file_name_key(name))
    return name


def _file_name_key(name: str) -> str:
    """Normalise the case and Unicode form of a file name; names that some file systems confuse become equal."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _lines(document: Document, labels: dict[str, str]) -> Iterator[str]:
    notes = list[str]()
    for i, entity in enumerate(document.entities, 1):
        label = "_".join(entity.label.split())
        if labels.setdefault(label, entity.label) != entity.label:
            both = f"{labels[label]!r} and {entity.label!r}"
            raise ValueError(f"the labels {both} would both be written as {label}; rename one label")
        pieces = _pieces(entity)
        if (pieces[0][0], pieces[-1][1]) != (entity.start, entity.end):
            raise ValueError(
                f"document {document.id!r}: brat cannot represent the entity at {entity.start}..{entity.end}, which"
                " begins or ends with a line break or TAB; write JSON lines instead"
            )
        text = " ".join(entity.text[start - entity.start : end - entity.start] for start, end in pieces)
        yield f"T{i}\t{label} {';'.join(f'{start} {end}' for start, end in pieces)}\t{text}\n"
        if entity.confidence is not None:
            notes.append(f"#{i}\tAnnotatorNotes T{i}\tconfidence {float(entity.confidence):.6f}\n")
    yield from notes
    for name in document.names:
        if len(name.mentions) > 1:
            yield f"*\tEquiv {' '.join(f'T{i + 1}' for i in name.mentions)}\n"


def _pieces(entity: Entity) -> list[tuple[int, int]]:
    """Return the character ranges of the pieces into which line breaks and TABs divide an entity.

    Spans of brat must not contain these characters.
    """
    ranges = [(entity.start + m.start(), entity.start + m.end()) for m in re.finditer(r"[^\n\r\t]+", entity.text)]
    return ranges or [(entity.start, entity.end)]
