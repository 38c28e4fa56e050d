"""brat's standoff files: NAME.txt and NAME.ann, in a folder, or in the tar.gz that brat's export makes.

The format: https://brat.nlplab.org/standoff.html
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.marked import Mark, annotated
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Source, open_bytes, read_chunks, sources

MAX_BYTES = 1 << 32  # of an archive unpacked; a small file may unpack to any size
_PIECE = re.compile(r"(\d+) (\d+)", re.ASCII)
_NOTE = re.compile(r"#\d+\tAnnotatorNotes (T\S+)\tconfidence ([01]\.\d+)\s*")


class _Pair(NamedTuple):
    """A text and its annotation, None where there is no such file; the name of the latter is for messages."""

    id: str
    text: str
    name: str
    marks: str | None


def read_brat(
    where: str | Path | IO[Any] | Source,
    *,
    encoding: str = "utf-8",
    strict: bool = False,
) -> Iterator[Document]:
    """The documents of a folder, of a single .ann or .txt file beside its partner, or of a tar archive.

    An .ann file that is empty is not annotated: brat wants it there before anybody has begun. Relations, events and
    attributes are left out; so are spans of several pieces with other words between them. Raises FormatError.
    """
    for pair in _pairs(where, encoding):
        document = Document.from_text(pair.text, id=pair.id)
        if pair.marks is not None and pair.marks.strip():
            with ParseWarnings(pair.name, strict) as doubts:
                marks = _marks(pair, doubts)
                try:
                    document = annotated(document, marks, doubts.add)
                except FormatError:  # a doubt that is refused, which names the place
                    raise
                except ValueError as error:
                    raise FormatError(f"{pair.name}: {error}") from None
        yield document


def _pairs(where: str | Path | IO[Any] | Source, encoding: str) -> Iterator[_Pair]:
    for source in sources(where, ("*.ann", "*.tar", "*.tgz")):
        if source.path is None or source.path.suffix not in (".ann", ".txt"):
            yield from _archived(source, encoding)
            continue
        text, marks = source.path.with_suffix(".txt"), source.path.with_suffix(".ann")
        if not text.exists():
            raise FormatError(f"{source.name}: there is no {text.name} beside it; expected the text there")
        name = source.id.removesuffix(".ann").removesuffix(".txt")
        said = _read(marks, encoding) if marks.exists() else None
        yield _Pair(name, _read(text, encoding), str(marks), said)


def _read(path: Path, encoding: str) -> str:
    return "".join(read_chunks(Source(str(path), path.name, path, None), encoding))


def _archived(source: Source, encoding: str) -> Iterator[_Pair]:
    files: dict[str, str] = {}
    wrong = f"{source.name}: no tar archive; expected a folder of .txt and .ann files, or what brat's export gives"
    total = 0
    with open_bytes(source) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    if not member.isfile() or PurePosixPath(member.name).suffix not in (".txt", ".ann"):
                        continue
                    total += member.size
                    if total > MAX_BYTES:
                        raise FormatError(f"{source.name}: unpacks to more than {MAX_BYTES} bytes; split it")
                    content = archive.extractfile(member)
                    data = b"" if content is None else content.read()
                    inside = Source(f"{source.name}/{member.name}", member.name, None, io.BytesIO(data))
                    files[member.name] = "".join(read_chunks(inside, encoding))
        except tarfile.TarError as error:
            raise FormatError(f"{wrong} ({error})") from None
    texts = [name for name in files if name.endswith(".txt")]
    if not texts:
        raise FormatError(f"{source.name}: no .txt file in the archive; expected NAME.txt and NAME.ann")
    for name in texts:
        stem = name.removesuffix(".txt")
        yield _Pair(stem, files[name], f"{source.name}/{stem}.ann", files.get(f"{stem}.ann"))


def _marks(pair: _Pair, doubts: ParseWarnings) -> list[Mark]:
    lines = (pair.marks or "").split("\n")
    sure = {note[1]: float(note[2]) for note in map(_NOTE.fullmatch, lines) if note is not None}
    found: list[Mark] = []
    for number, line in enumerate(lines, 1):
        if not line.startswith("T"):
            continue
        try:
            mark = _mark(line.rstrip("\r"), pair.text)
        except ValueError as error:
            raise FormatError(f"{pair.name}:{number}: {error}") from None
        if mark is None:
            doubts.add("a span of several pieces is left out", number)
        else:
            found.append(mark._replace(confidence=sure.get(line.partition("\t")[0])))
    return found


def _mark(line: str, text: str) -> Mark | None:
    """The mark of a line; None where words that it does not mark stand between its pieces. ValueError for others."""
    columns = line.split("\t")
    label, space, places = columns[1].partition(" ") if len(columns) > 2 else ("", "", "")
    pieces = [_PIECE.fullmatch(piece) for piece in places.split(";")]
    offsets = [(int(piece[1]), int(piece[2])) for piece in pieces if piece is not None]
    if not space or len(offsets) < len(pieces):
        raise ValueError(f"{line[:60]!r} is no span; expected T1 TAB CLASS START END TAB TEXT")
    offsets.sort()
    if any(text[left[1] : right[0]].strip() for left, right in pairwise(offsets)):
        return None
    start, end = offsets[0][0], offsets[-1][1]
    if not 0 <= start < end <= len(text):
        raise ValueError(f"the span {start}..{end} is not in the text, which has {len(text)} characters")
    return Mark(start, end, label, columns[2] if len(offsets) == 1 else None)


def write_brat(documents: Iterable[Document], stream: IO[Any]) -> None:
    """A tar.gz of NAME.txt and NAME.ann, to unpack in brat's data folder; NAME is the document's id.

    brat's classes have no white space: each is written with "_" in its place. ValueError where two become one. A span
    over several lines is written in pieces, as brat does. Confidences become notes. Equal documents, equal bytes.
    """
    binary = getattr(stream, "buffer", stream)
    classes: dict[str, str] = {}
    used: set[str] = set()
    with (
        gzip.GzipFile("", "wb", fileobj=binary, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for number, document in enumerate(documents, 1):
            name = _file_name(document.id, number, used)
            for ending, content in ((".txt", document.text), (".ann", "".join(_lines(document, classes)))):
                data = content.encode("utf-8", "replace")
                info = tarfile.TarInfo(name + ending)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def _file_name(id: str | None, number: int, used: set[str]) -> str:
    stem = re.sub(r"[^\w.#-]+", "_", id or "").strip("._").removesuffix(".txt") or f"document-{number}"
    name = stem if stem not in used else f"{stem}-{number}"
    used.add(name)
    return name


def _lines(document: Document, classes: dict[str, str]) -> Iterator[str]:
    notes = list[str]()
    for i, entity in enumerate(document.entities, 1):
        label = "_".join(entity.label.split())
        if classes.setdefault(label, entity.label) != entity.label:
            raise ValueError(f"brat's class {label} would be both {classes[label]!r} and {entity.label!r}; rename one")
        pieces = _pieces(entity)
        text = " ".join(entity.text[start - entity.start : end - entity.start] for start, end in pieces)
        yield f"T{i}\t{label} {';'.join(f'{start} {end}' for start, end in pieces)}\t{text}\n"
        if entity.confidence is not None:
            notes.append(f"#{i}\tAnnotatorNotes T{i}\tconfidence {float(entity.confidence):.6f}\n")
    yield from notes


def _pieces(entity: Entity) -> list[tuple[int, int]]:
    """The lines of an entity: no piece holds a line break or a TAB."""
    found = [(entity.start + m.start(), entity.start + m.end()) for m in re.finditer(r"[^\n\r\t]+", entity.text)]
    return found or [(entity.start, entity.end)]
