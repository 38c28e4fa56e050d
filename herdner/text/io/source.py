"""Where bytes come from: files, folders, globs, gzip, standard input; decoding with errors that name the place."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import sys
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

CHUNK_BYTES = 1 << 20
# In these a line feed is one byte that means nothing else, and a text is the bytes that it came from.
BY_LINE = ("utf-8", "ascii", "iso8859-1")
MAX_LINE_CHARS = 1 << 26  # a longer line of records is no such file, and would not stream


class FormatError(ValueError):
    """Input that is not what its format says: ``file:line: what is wrong, and what was expected``."""


class Source(NamedTuple):
    """Somewhere to read one file from."""

    name: str  # for messages
    id: str  # for documents
    path: Path | None
    stream: IO[Any] | None


def sources(where: str | Path | IO[Any] | Source, patterns: Sequence[str]) -> list[Source]:
    """The files behind a path, folder (searched for ``patterns``, recursively), glob, ``"-"``, open stream or source.

    Raises FormatError where there is nothing.
    """
    if isinstance(where, Source):
        return [where]
    if not isinstance(where, str | Path):
        name = str(getattr(where, "name", "<stream>"))
        return [Source(name, Path(name).name.removesuffix(".gz") or name, None, where)]
    if str(where) == "-":
        return [Source("<stdin>", "stdin", None, sys.stdin.buffer)]
    path = Path(where)
    if path.is_dir():
        found = {file for p in patterns for end in ("", ".gz") for file in path.rglob(p + end) if file.is_file()}
        wanted = f"{path}: no file named {' or '.join(patterns)} in this folder; name the files themselves"
    elif path.exists() or not glob.has_magic(str(where)):
        found, wanted = {path}, ""
    else:
        found = {Path(file) for file in glob.glob(str(where), recursive=True)}  # noqa: PTH207 (absolute patterns)
        wanted = f"{where}: no file matches"
    if not found:
        raise FormatError(wanted)
    return [Source(str(file), file.name.removesuffix(".gz") or file.name, file, None) for file in sorted(found)]


def by_line(encoding: str) -> bool:
    """Whether files of this encoding can be cut at line feeds before they are decoded."""
    try:
        return codecs.lookup(encoding).name in BY_LINE
    except LookupError:
        return False


@contextmanager
def open_bytes(source: Source) -> Generator[Any, None, None]:
    """The source's bytes, gunzipped where they are gzip. Errors of reading become a FormatError."""
    try:
        with _raw(source) as raw:
            buffered: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw, CHUNK_BYTES)
            is_gzip = buffered.peek(2)[:2] == b"\x1f\x8b"
            try:
                yield gzip.GzipFile(fileobj=buffered) if is_gzip else buffered
            finally:
                if buffered is not raw:
                    buffered.detach()  # else it closes the caller's stream when it is collected
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{source.name}: damaged gzip file ({error}); fetch it again") from error
    except FileNotFoundError as error:
        raise FormatError(f"{source.name}: no such file") from error
    except OSError as error:
        raise FormatError(f"{source.name}: cannot be read ({error.strerror or error})") from error


def _raw(source: Source) -> AbstractContextManager[Any]:
    if source.path is not None:
        return source.path.open("rb")
    stream: Any = source.stream
    if isinstance(stream, io.TextIOBase):
        stream = getattr(stream, "buffer", None) or io.BytesIO(stream.read().encode("utf-8", "replace"))
    return nullcontext(stream)


def read_chunks(source: Source, encoding: str = "utf-8") -> Iterator[str]:
    """The decoded text in pieces of about a megabyte; a byte order mark is dropped.

    Raises FormatError with line and byte offset at the first byte that does not decode, after what stands before it.
    """
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise FormatError(f"{source.name}: unknown encoding {encoding!r}; expected e.g. utf-8 or latin-1") from error
    n_bytes, n_lines, first = 0, 0, True
    with open_bytes(source) as stream:
        while True:
            data = stream.read1(CHUNK_BYTES)  # what is there: a pipe need not fill a chunk
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeError as error:
                good, message = _undecodable(error, encoding, n_bytes + len(data), n_lines)
                yield good.removeprefix("\ufeff") if first else good
                raise FormatError(f"{source.name}:{message}") from error
            n_bytes += len(data)
            n_lines += text.count("\n")
            if text:
                yield text.removeprefix("\ufeff") if first else text
                first = False
            if not data:
                return


def _undecodable(error: UnicodeError, encoding: str, n_bytes: int, n_lines: int) -> tuple[str, str]:
    """What decodes before the error, and a message that starts with the line number."""
    if not isinstance(error, UnicodeDecodeError):
        return "", f"{n_lines + 1}: not valid {encoding} ({error}); name another encoding"
    data = error.object
    good = data[: error.start].decode(encoding)
    offset = n_bytes - len(data) + error.start
    line = n_lines + good.count("\n") + 1
    wide = offset == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff")
    mend = "utf-16" if wide else "latin-1" if encoding.lower().startswith("utf") else "utf-8"
    what = f"byte 0x{data[error.start]:02x} at offset {offset} is not valid {encoding}"
    return good, f"{line}: {what}; expected {encoding}, or name the encoding of the file, as in --encoding {mend}"


def read_lines(source: Source, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers (from 1) and lines without their end (LF or CRLF); only LF separates lines."""
    number, rest = 0, ""
    for chunk in read_chunks(source, encoding):
        *lines, rest = (rest + chunk).split("\n")
        for line in lines:
            number += 1
            yield number, line.removesuffix("\r")
        if len(rest) > MAX_LINE_CHARS:
            raise FormatError(f"{source.name}:{number + 1}: line of more than {MAX_LINE_CHARS} characters")
    if rest:
        yield number + 1, rest.removesuffix("\r")
