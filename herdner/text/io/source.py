"""Where bytes come from: files, folders, globs, compressed or not, standard input; decoding with errors that name the
place.
"""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import io
import logging
import lzma
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
# In these a line feed is one byte that means nothing else, and a text is the bytes that it came from.
BY_LINE = ("utf-8", "ascii", "iso8859-1")
MAX_LINE_CHARS = 1 << 26  # a longer line of records is no such file, and would not stream


class FormatError(ValueError):
    """Input that is not what its format says: ``file:line: what is wrong, and what was expected``."""


class Source(NamedTuple):
    """Somewhere to read one file from. ``replace``: bytes that do not decode become U+FFFD, with one warning a file."""

    name: str  # for messages
    id: str  # for documents
    path: Path | None
    stream: IO[Any] | None
    replace: bool = False


def sources(where: str | Path | IO[Any] | Source, patterns: Sequence[str]) -> list[Source]:
    """The files behind a path, folder (searched for ``patterns``, recursively), glob, ``"-"``, open stream or source.

    The id of a file is its path from the folder, or from what is fixed in the glob (`named`). Hidden files and folders
    are left out. Raises FormatError where there is nothing.
    """
    if isinstance(where, Source):
        return [where]
    if not isinstance(where, str | Path):
        name = str(getattr(where, "name", "<stream>"))
        return [Source(name, uncompressed(Path(name).name), None, where)]
    if str(where) == "-":
        return [Source("<stdin>", "stdin", None, sys.stdin.buffer)]
    path = root = Path(where)
    if path.is_dir():
        found = [file for file in visible(path) if any(_matches(file, path, pattern) for pattern in patterns)]
        wanted = f"{path}: no file named {' or '.join(patterns)} in this folder; name the files themselves"
    elif path.exists() or not glob.has_magic(str(where)):
        found, wanted, root = [path], "", path.parent
    else:
        matching = glob.glob(str(where), recursive=True)  # noqa: PTH207 (absolute patterns)
        found = [Path(file) for file in matching if Path(file).is_file()]
        root = next(parent for parent in path.parents if not glob.has_magic(str(parent)))
        wanted = f"{where}: no file matches"
    if not found:
        raise FormatError(wanted)
    found.sort()
    return [Source(str(file), id, file, None) for file, id in zip(found, named(found, root), strict=True)]


def visible(folder: Path) -> list[Path]:
    """The files in a folder and its folders, sorted, without those that are hidden or in hidden folders."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in files if not name.startswith(".")]
    return sorted(path for path in found if path.is_file())


def matches(file: Path, folder: Path, pattern: str) -> bool:
    """Whether the end of the file's path from the folder is as the pattern says, as in ``*.md`` and ``notes/*.md``."""
    return PurePosixPath(file.relative_to(folder).as_posix()).match(pattern)


def _matches(file: Path, folder: Path, pattern: str) -> bool:
    """`matches`, also of files that are compressed."""
    return any(matches(file, folder, pattern + ending) for ending in ("", *COMPRESSED))


def named(files: Sequence[Path], root: Path) -> list[str]:
    """An id for each file, no two the same where the files are not: its path from the root, with slashes, without the
    ending of a compressed file unless another file has that name.
    """
    whole = [PurePosixPath(os.path.relpath(file, root).replace(os.sep, "/")).as_posix() for file in files]
    short = list(map(uncompressed, whole))
    counts = Counter(short)
    return [name if counts[name] == 1 else full for name, full in zip(short, whole, strict=True)]


# --- compressed files ---------------------------------------------------------------------------------------------

COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_PACKED = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),  # a text may begin with BZh
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "zstd": re.compile(rb"[\x28\x22-\x28]\xb5\x2f\xfd"),
}
HEAD_BYTES = 10  # enough to tell


def uncompressed(name: str) -> str:
    """A file's name without the ending that says that it is compressed."""
    return name.removesuffix(ending) if (ending := Path(name).suffix) in COMPRESSED and name != ending else name


def packing(head: bytes) -> str | None:
    """How a file that begins with these bytes is compressed; None where it is not."""
    return next((kind for kind, pattern in _PACKED.items() if pattern.match(head)), None)


def _zstd() -> Any:
    """Python 3.14's module, or its backport."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def unpacked(kind: str, stream: IO[bytes]) -> Any:
    """What a compressed stream holds. Python's own modules: xopen, which joins them, lets zstd take 2 GB of memory."""
    openers: dict[str, Callable[[IO[bytes]], Any]] = {
        "gzip": lambda raw: gzip.GzipFile(fileobj=raw), "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile,
        "zstd": lambda raw: _zstd().ZstdFile(raw),
    }  # fmt: skip
    return openers[kind](stream)


def packed(kind: str, stream: IO[bytes]) -> Any:
    """A stream that compresses what is written to it; close it before the other. The same bytes give the same file."""
    openers: dict[str, Callable[[IO[bytes]], Any]] = {
        "gzip": lambda raw: gzip.GzipFile("", "wb", fileobj=raw, mtime=0),
        "bzip2": lambda raw: bz2.BZ2File(raw, "wb"),
        "xz": lambda raw: lzma.LZMAFile(raw, "wb"),  # noqa: SIM115 (the caller closes it)
        "zstd": lambda raw: _zstd().ZstdFile(raw, "wb"),
    }
    return openers[kind](stream)


# --- bytes and text -----------------------------------------------------------------------------------------------

# Files that people try, which hold no text that can be read here, by their first bytes.
_NO_TEXT = {
    b"%PDF-": "a PDF; extract its text first, as with pdftotext",
    b"\x89PNG\r\n": "a picture (PNG); recognise its text first, as with tesseract",
    b"\xff\xd8\xff": "a picture (JPEG); recognise its text first, as with tesseract",
    b"GIF8": "a picture (GIF); recognise its text first, as with tesseract",
    b"II*\x00": "a picture (TIFF); recognise its text first, as with tesseract",
    b"MM\x00*": "a picture (TIFF); recognise its text first, as with tesseract",
    b"PK\x03\x04": "a zip archive, or a document of an office program; unpack it, or save it as text",
    b"\xd0\xcf\x11\xe0": "a document of an office program; save it as text",
    b"{\\rtf": "rich text (RTF); save it as plain text",
    b"PAR1": "a Parquet file; its name should end in .parquet, or name the format, as in --input parquet",
}


def check_text(source: Source, head: bytes) -> None:
    """FormatError for a file that is something else than text, by its first bytes."""
    for magic, what in _NO_TEXT.items():
        if head.startswith(magic):
            raise FormatError(f"{source.name}: is {what}")


def by_line(encoding: str) -> bool:
    """Whether files of this encoding can be cut at line feeds before they are decoded."""
    try:
        return codecs.lookup(encoding).name in BY_LINE
    except LookupError:
        return False


@contextmanager
def open_bytes(source: Source) -> Generator[Any, None, None]:
    """The source's bytes, unpacked where they are compressed. Errors of reading become a FormatError."""
    kind = None
    try:
        with _raw(source) as raw:
            buffered: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw, CHUNK_BYTES)
            kind = packing(buffered.peek(HEAD_BYTES)[:HEAD_BYTES])
            try:
                yield buffered if kind is None else unpacked(kind, buffered)
            finally:
                if buffered is not raw:
                    with suppress(ValueError):  # closed by now, where a reader was left in the middle
                        buffered.detach()  # else it closes the caller's stream when it is collected
    except FileNotFoundError as error:
        raise FormatError(f"{source.name}: no such file") from error
    except Exception as error:
        if kind is not None and _is_damage(kind, error):
            raise FormatError(f"{source.name}: damaged {kind} file ({error}); fetch it again") from error
        if isinstance(error, OSError):
            raise FormatError(f"{source.name}: cannot be read ({error.strerror or error})") from error
        raise


def _is_damage(kind: str, error: Exception) -> bool:
    """Whether an error of reading says that a compressed file is broken, or ends too early."""
    if isinstance(error, EOFError | zlib.error | lzma.LZMAError):
        return True
    return isinstance(error, _zstd().ZstdError if kind == "zstd" else OSError) and getattr(error, "errno", None) is None


def _raw(source: Source) -> AbstractContextManager[Any]:
    if source.path is not None:
        return source.path.open("rb")
    stream: Any = source.stream
    if isinstance(stream, io.TextIOBase):
        stream = getattr(stream, "buffer", None) or io.BytesIO(stream.read().encode("utf-8", "replace"))
    return nullcontext(stream)


def read_chunks(source: Source, encoding: str = "utf-8") -> Iterator[str]:
    """The decoded text in pieces of about a megabyte; a byte order mark is dropped.

    Raises FormatError with line and byte offset at the first byte that does not decode, after what stands before it
    (unless the source says ``replace``), and for what is no text.
    """
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise FormatError(f"{source.name}: unknown encoding {encoding!r}; expected e.g. utf-8 or latin-1") from error
    n_bytes, n_lines, first = 0, 0, True
    with open_bytes(source) as stream:
        while True:
            data = stream.read1(CHUNK_BYTES)  # what is there: a pipe need not fill a chunk
            if not n_bytes:
                check_text(source, data)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeError as error:
                good, message = _undecodable(error, encoding, n_bytes + len(data), n_lines)
                if not source.replace:
                    yield good.removeprefix("\ufeff") if first else good
                    mend = f"name the encoding of the file, as in --encoding {_guess(error, encoding, n_bytes)}"
                    raise FormatError(f"{source.name}:{message}; expected {encoding}, or {mend}") from error
                logger.warning("%s:%s; U+FFFD stands for it and for all that follow", source.name, message)
                decoder.errors = "replace"
                text = decoder.decode(data, final=not data)
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
        return "", f"{n_lines + 1}: not valid {encoding} ({error})"
    data = error.object
    good = data[: error.start].decode(encoding)
    offset = n_bytes - len(data) + error.start
    line = n_lines + good.count("\n") + 1
    return good, f"{line}: byte 0x{data[error.start]:02x} at offset {offset} is not valid {encoding}"


def _guess(error: UnicodeError, encoding: str, n_bytes: int) -> str:
    """An encoding that would explain the error, ``n_bytes`` after the beginning of the file."""
    data = error.object[error.start :] if isinstance(error, UnicodeDecodeError) else b""
    if n_bytes == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return "latin-1" if encoding.lower().startswith("utf") else "utf-8"


def read_lines(source: Source, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers (from 1) and lines without their end (LF or CRLF); only LF separates lines."""
    for number, line in enumerate(read_raw_lines(source, encoding), 1):
        yield number, line.removesuffix("\n").removesuffix("\r")


def read_raw_lines(source: Source, encoding: str = "utf-8") -> Iterator[str]:
    """Lines with their ends; only LF separates lines."""
    number, rest = 0, ""
    for chunk in read_chunks(source, encoding):
        *lines, rest = (rest + chunk).split("\n")
        for line in lines:
            number += 1
            yield line + "\n"
        if len(rest) > MAX_LINE_CHARS:
            raise FormatError(f"{source.name}:{number + 1}: line of more than {MAX_LINE_CHARS} characters")
    if rest:
        yield rest


def listed_names(names: Sequence[str]) -> str:
    """The names of columns for a message, on one line: the first of many, the beginning of long ones."""
    short = [" ".join(name[:41].split())[:40] + ("..." if len(name) > 40 else "") for name in names[:20]]
    return ", ".join(short) + (", ..." if len(names) > 20 else "")
