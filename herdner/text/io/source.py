"""Input files: folders, glob patterns, compressed files, standard input, and decoding with positions in errors."""

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
from typing import IO, Any, Literal, NamedTuple

from herdner.base.files import atomic_write

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
MAX_LINE_CHARS = 1 << 26  # longer lines are refused, because they would have to be held in memory
MAX_WHOLE_CHARS = 1 << 28  # characters of a file that is held in memory


class FormatError(ValueError):
    """Error: the content of an input file is invalid.

    The message has the form ``file:line: problem; expectation``.
    """


@contextmanager
def locate_errors(position: str) -> Generator[None]:
    """Convert a `ValueError` that the ``with`` block raises to a `FormatError` that begins with ``position``.

    A `FormatError` stays unchanged, because its message contains a position.

    Args:
        position: File, and line if it is known.

    Raises:
        FormatError: The ``with`` block raised a `ValueError`.
    """
    try:
        yield
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"{position}: {error}") from None


class FileId(str):
    """Document id that names a file or a part of a file, because the file contains no id of the document.

    Bytes of a file name that are not UTF-8 are replaced by escape sequences.
    """

    __slots__ = ()

    def __new__(cls, id: str) -> FileId:
        """Build an id, which every format can represent."""
        return super().__new__(cls, id.encode("utf-8", "backslashreplace").decode())


class Source(NamedTuple):
    """File or stream to read, with its name and document id.

    Attributes:
        name: Name for messages.
        id: Identifier for documents.
        path: Path of the file; None for a stream.
        stream: The stream; None for a file.
        replace: Replace undecodable bytes by U+FFFD, with one warning for each file.
    """

    name: str
    id: str
    path: Path | None
    stream: IO[Any] | None
    replace: bool = False

    def document_id(self, number: int | None = None) -> FileId:
        """Make an id for a document without its own id, from the name of the file and the number of the document.

        Args:
            number: Number of the document in the file, from 1; None: it is the only one.

        Returns:
            The id.
        """
        return FileId(self.id if number is None else f"{self.id}#{number}")


Input = str | Path | IO[Any] | Source
"""A file, folder, glob pattern, ``"-"`` for standard input, open stream, or source."""


def sources(where: Input, patterns: Sequence[str]) -> list[Source]:
    """Return the sources to read for a path, folder, glob pattern or stream.

    Args:
        where: A file, folder, glob pattern, ``"-"`` (standard input), open stream or source.
        patterns: File names to read in a folder and its subfolders; hidden files and folders are ignored.

    Returns:
        The sources, sorted by path. The id of a file is its path relative to the folder or to the part of the glob
        pattern without wildcards (`unique_ids`).

    Raises:
        FormatError: There is no such file.
    """
    if isinstance(where, Source):
        return [where]
    if not isinstance(where, str | Path):
        name = str(getattr(where, "name", "<stream>"))
        return [Source(name, strip_compression_suffix(Path(name).name), None, where)]
    if str(where) == "-":
        if sys.stdin is None:
            raise FormatError("<stdin>: standard input is closed; name a file")
        return [Source("<stdin>", "stdin", None, sys.stdin.buffer)]
    path = root = Path(where)
    if path.is_dir():
        names = [pattern + extension for pattern in patterns for extension in ("", *COMPRESSED)]
        files = [file for file in visible_files(path) if any(matches_pattern(file, path, name) for name in names)]
        problem = f"{path}: no file named {' or '.join(patterns)} in this folder; name the files themselves"
    elif path.exists() or not glob.has_magic(str(where)):
        files, problem, root = [path], "", path.parent
    else:
        matching = glob.glob(str(where), recursive=True)  # noqa: PTH207 (absolute patterns)
        files = [Path(file) for file in matching if Path(file).is_file()]
        root = next(parent for parent in path.parents if not glob.has_magic(str(parent)))
        problem = f"{where}: no file matches"
    if not files:
        raise FormatError(problem)
    files.sort()
    return [Source(str(file), id, file, None) for file, id in zip(files, unique_ids(files, root), strict=True)]


def visible_files(folder: Path) -> list[Path]:
    """Return all files in a folder and its subfolders, in sorted order.

    Hidden files and folders are excluded, and the lock files that Word and Excel write beside an open document.

    Args:
        folder: The folder.
    """
    paths: list[Path] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(parent, name) for name in files if not name.startswith((".", "~$"))]
    return sorted(path for path in paths if path.is_file())


def matches_pattern(file: Path, folder: Path, pattern: str) -> bool:
    """Return whether the end of a file's path in ``folder`` matches a pattern such as ``*.md`` or ``notes/*.md``.

    Args:
        file: Path of the file.
        folder: Folder that contains the file, also indirectly.
        pattern: Pattern of `pathlib.PurePath.match`.
    """
    return PurePosixPath(file.relative_to(folder).as_posix()).match(pattern)


def unique_ids(files: Sequence[Path], root: Path) -> list[str]:
    """Return a unique document id for each file, derived from its path.

    Args:
        files: Distinct files.
        root: A folder that contains them.

    Returns:
        Paths relative to the root, with slashes. The extension of a compressed file is removed unless another file has
        the same path without it.
    """
    whole = [PurePosixPath(os.path.relpath(file, root).replace(os.sep, "/")).as_posix() for file in files]
    short = list(map(strip_compression_suffix, whole))
    counts = Counter(short)
    return [name if counts[name] == 1 else full for name, full in zip(short, whole, strict=True)]


# --- compressed files ---------------------------------------------------------------------------------------------

COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_NOT_WRITTEN = (".zip", ".7z", ".rar", ".lz4", ".br", ".lzma", ".z")  # extensions of other packed files
_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),  # a text may begin with BZh
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "zstd": re.compile(rb"[\x28\x22-\x28]\xb5\x2f\xfd"),
}
HEAD_BYTES = 10  # length of the longest magic number


def strip_compression_suffix(name: str) -> str:
    """Remove the extension of a compressed file, such as ".gz", from a file name.

    Args:
        name: File name.

    Returns:
        The name without the extension, or unchanged if it has another extension.
    """
    extension = Path(name).suffix
    return name.removesuffix(extension) if extension.lower() in COMPRESSED and name != extension else name


def compression_of(head: bytes) -> str | None:
    """Detect the compression of a file from its first bytes.

    Args:
        head: First bytes of the file.

    Returns:
        "gzip", "bzip2", "xz" or "zstd"; None if the file is not compressed.
    """
    return next((name for name, pattern in _MAGIC.items() if pattern.match(head)), None)


def _zstd() -> Any:
    """Return the `compression.zstd` module of Python 3.14, or its backport for earlier versions."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def open_compressed(compression: str, stream: IO[bytes], mode: Literal["rb", "wb"] = "rb") -> Any:
    """Return a binary stream that decompresses the content of ``stream``, or writes compressed bytes to ``stream``.

    Close it before ``stream``. Equal input yields equal bytes. It uses Python's modules, because xopen lets zstd take
    2 GB of memory.

    Args:
        compression: Name of the compression, as `compression_of` returns it.
        stream: Binary stream to read or write.
        mode: "rb" decompresses, "wb" compresses.
    """
    openers: dict[str, Callable[[], Any]] = {
        "gzip": lambda: gzip.GzipFile("", mode, fileobj=stream, mtime=0),
        "bzip2": lambda: bz2.BZ2File(stream, mode),
        "xz": lambda: lzma.LZMAFile(stream, mode),  # noqa: SIM115 (the caller closes it)
        "zstd": lambda: _zstd().ZstdFile(stream, mode),
    }
    return openers[compression]()


def check_compression(path: str | os.PathLike[str]) -> None:
    """Raise `ValueError` if a path has the extension of an archive that cannot be written, such as ".zip".

    Args:
        path: Path of an output file.

    Raises:
        ValueError: Files with this extension cannot be written.
    """
    if Path(path).suffix.lower() in _NOT_WRITTEN:
        *others, last = COMPRESSED
        expected = f"expected {', '.join(others)} or {last}, or the extension of the format"
        raise ValueError(f"{os.fspath(path)}: cannot write files with this extension; {expected}")


@contextmanager
def create_file(path: str | os.PathLike[str]) -> Generator[Any, None, None]:
    """Open a file for writing by `atomic_write`, so that the file appears only when it is complete.

    Args:
        path: Path of the file. The file is compressed if the path has an extension such as ".gz".

    Yields:
        A binary stream.

    Raises:
        OSError: The file cannot be written.
        ValueError: The extension is that of an archive or compression that cannot be written, such as ".zip".
    """
    check_compression(path)
    compression = COMPRESSED.get(Path(path).suffix.lower())
    with (
        atomic_write(path) as file,
        nullcontext(file) if compression is None else open_compressed(compression, file, "wb") as binary,
    ):
        yield binary


# --- bytes and text -----------------------------------------------------------------------------------------------

# Common files that are not plain text, by their first bytes.
_NOT_TEXT = {
    b"%PDF-": "a PDF; extract its text first, as with pdftotext",
    b"\x89PNG\r\n": "a picture (PNG); recognise its text first, as with tesseract",
    b"\xff\xd8\xff": "a picture (JPEG); recognise its text first, as with tesseract",
    b"GIF8": "a picture (GIF); recognise its text first, as with tesseract",
    b"II*\x00": "a picture (TIFF); recognise its text first, as with tesseract",
    b"MM\x00*": "a picture (TIFF); recognise its text first, as with tesseract",
    b"PK\x03\x04": "a zip archive or an office document; unpack it, save a table as CSV and a document as text, or add"
    " --input docx",
    b"\xd0\xcf\x11\xe0": "a document of an office program; save it as text",
    b"{\\rtf": "rich text (RTF); save it as plain text",
    b"PAR1": "a Parquet file; rename it to end in .parquet, or add --input parquet",
}


_TAR, _TAR_AT = b"ustar", 257  # the mark of a tar archive, and its offset


def check_text(source: Source, head: bytes) -> None:
    """Raise `FormatError` if the first bytes of a file show a format other than plain text, such as PDF.

    Args:
        source: The file.
        head: First bytes of the file.

    Raises:
        FormatError: The file is not plain text.
    """
    for magic, what in _NOT_TEXT.items():
        if head.startswith(magic):
            raise FormatError(f"{source.name}: the file is {what}")
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        raise FormatError(f"{source.name}: the file is a tar archive; unpack it")


def looks_like_text(path: Path) -> bool:
    """Return False if the first bytes of a file show that it is not plain text, or if the file cannot be read.

    Args:
        path: The file.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(_LOOK_BYTES)
    except OSError:
        return False
    return b"\0" not in head and compression_of(head) is None and not head.startswith(tuple(_NOT_TEXT))


_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before the mark of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LOOK_BYTES = 1 << 12
MARK_BYTES = 4  # length of the longest byte order mark


def marked_encoding(head: bytes, encoding: str) -> str:
    """Return the encoding that the byte order mark of a file states, or ``encoding`` if the file has no mark.

    Args:
        head: The first `MARK_BYTES` bytes of the file.
        encoding: Encoding of files without a byte order mark.
    """
    return next((marked for mark, marked in _MARKS.items() if head.startswith(mark)), encoding)


def contradicts_mark(head: bytes, encoding: str) -> bool:
    """Return whether a file begins with a byte order mark that states another encoding than ``encoding``.

    Args:
        head: The first `MARK_BYTES` bytes of the file.
        encoding: Name of a known encoding.
    """
    return codecs.lookup(marked_encoding(head, encoding)) != codecs.lookup(encoding)


def by_line(encoding: str) -> bool:
    """Return whether files in this encoding can be split at line feeds before decoding.

    Args:
        encoding: Name of the encoding.
    """
    try:
        # In these encodings, a line feed is one byte that has no other meaning.
        return codecs.lookup(encoding).name in ("utf-8", "ascii", "iso8859-1")
    except LookupError:
        return False


@contextmanager
def open_bytes(source: Source) -> Generator[Any, None, None]:
    """Open a file or stream as a stream of uncompressed bytes.

    Args:
        source: A file or stream, possibly compressed.

    Yields:
        A stream of the decompressed bytes.

    Raises:
        FormatError: The source cannot be read or is damaged.
    """
    kind = None
    try:
        with _raw(source) as raw:
            buffered: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw, CHUNK_BYTES)
            kind = compression_of(buffered.peek(HEAD_BYTES)[:HEAD_BYTES])
            try:
                yield buffered if kind is None else open_compressed(kind, buffered)
            finally:
                if buffered is not raw:
                    with suppress(ValueError):  # the stream may be closed after a partial read
                        buffered.detach()  # otherwise garbage collection closes the caller's stream
    except FileNotFoundError as error:
        raise FormatError(f"{source.name}: no such file") from error
    except Exception as error:
        if kind is not None and _is_damage(kind, error):
            raise FormatError(f"{source.name}: damaged {kind} file ({error}); fetch it again") from error
        if isinstance(error, OSError):
            raise FormatError(f"{source.name}: cannot be read ({error.strerror or error})") from error
        raise


def _is_damage(kind: str, error: Exception) -> bool:
    """Return whether an exception shows that a compressed file is damaged or truncated."""
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


DeclaredEncoding = Callable[[bytes], str | None]
"""A function that finds the encoding that a file declares in its first megabyte, such as the ``charset`` of a page."""


def read_whole(
    source: Source, encoding: str = "utf-8", declared_encoding: DeclaredEncoding | None = None,
    max_chars: int | None = None, remedy: str = "split the file",
) -> str:  # fmt: skip
    """Read and decode a whole text file, and return it as one string.

    Args:
        source: A file or stream, possibly compressed.
        encoding: Its encoding, unless the file begins with a byte order mark, which states another one.
        declared_encoding: Function that returns the encoding that the file declares; `read_chunks` states when it is
            called.
        max_chars: Largest number of characters of the file; None: `MAX_WHOLE_CHARS`.
        remedy: Advice at the end of the error message for a longer file.

    Raises:
        FormatError: The source cannot be read, or has more than ``max_chars`` characters.
    """
    most = MAX_WHOLE_CHARS if max_chars is None else max_chars
    chunks: list[str] = []
    size = 0
    for chunk in read_chunks(source, encoding, declared_encoding):
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            raise FormatError(f"{source.name}: the file has more than {most:,} characters; {remedy}")
    return "".join(chunks)


def read_chunks(
    source: Source, encoding: str = "utf-8", declared_encoding: DeclaredEncoding | None = None
) -> Iterator[str]:
    """Decode a text file, and yield the text in pieces of about a megabyte.

    Args:
        source: A file or stream, possibly compressed.
        encoding: Its encoding, unless the file begins with a byte order mark, which states another one.
        declared_encoding: Function that finds the encoding that a file declares, such as the ``charset`` of an HTML
            page. It is called if ``encoding`` is UTF-8, unless the file has a byte order mark or the first megabyte
            contains characters in valid UTF-8 that are not ASCII.

    Yields:
        Pieces of the text; a byte order mark is dropped.

    Raises:
        FormatError: The source cannot be read, is not text, or contains an undecodable byte. The text before that byte
            is yielded first. If ``source.replace`` is set, such bytes are replaced instead.
    """
    try:
        with suppress(UnicodeError):
            b"x".decode(encoding)  # raises LookupError for codecs of bytes, such as zlib
        codecs.getincrementaldecoder(encoding)  # raises LookupError for codecs that decode only whole texts
        example = "latin-1" if _is_utf(encoding) else "utf-8"
    except LookupError as error:
        raise FormatError(f"{source.name}: unknown encoding {encoding!r}; expected e.g. utf-8 or latin-1") from error
    n_bytes, n_lines, first = 0, 0, True
    with open_bytes(source) as stream:
        data = stream.read1(CHUNK_BYTES)  # the available bytes, without waiting until a pipe fills a chunk
        needed = MARK_BYTES if declared_encoding is None else CHUNK_BYTES
        while len(data) < needed and (more := stream.read1(CHUNK_BYTES)):
            data += more
        check_text(source, data)
        marked = marked_encoding(data, encoding)
        is_open = marked == encoding and codecs.lookup(encoding).name == "utf-8"
        if declared_encoding is not None and is_open and not _has_utf8(data):
            marked = declared_encoding(data) or encoding
        encoding = marked
        decoder, utf8 = codecs.getincrementaldecoder(encoding)(), _Utf8Check(not _is_utf(encoding))
        while True:
            utf8.add(data)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeError as error:
                valid, message = _undecodable(error, encoding, n_bytes + len(data), n_lines)
                if not source.replace or not isinstance(error, UnicodeDecodeError):
                    yield valid.removeprefix("\ufeff") if first else valid
                    remedy = f"name the encoding of the file, as in --encoding {example}"
                    raise FormatError(f"{source.name}:{message}; expected {encoding}, or {remedy}") from error
                logger.warning("%s:%s; all invalid bytes of the file are replaced by U+FFFD", source.name, message)
                decoder.errors = "replace"
                text = decoder.decode(data, final=not data)
            n_bytes += len(data)
            n_lines += text.count("\n")
            if text:
                yield text.removeprefix("\ufeff") if first else text
                first = False
            if not data:
                break
            data = stream.read1(CHUNK_BYTES)
    if utf8.is_valid and not utf8.is_ascii:
        logger.warning("%s: read as %s, but its bytes are valid utf-8; check --encoding", source.name, encoding)


def _is_utf(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith("utf")


def _has_utf8(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8, perhaps without their end, and contain a character that is not ASCII."""
    try:
        return not codecs.getincrementaldecoder("utf-8")().decode(data).isascii()
    except UnicodeDecodeError:
        return False


class _Utf8Check:
    """Incremental validator that determines whether the bytes of a file are valid UTF-8.

    Attributes:
        is_valid: Whether the bytes that were added are valid UTF-8.
        is_ascii: Whether these bytes are ASCII.
    """

    def __init__(self, is_valid: bool) -> None:
        """Create a validator that has read no bytes yet; ``is_valid`` False switches the check off."""
        self.is_valid = is_valid
        self.is_ascii = True
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, data: bytes) -> None:
        """Test whether the next bytes of the file are ASCII and valid UTF-8; set ``is_ascii`` and ``is_valid``.

        Args:
            data: The bytes; empty at the end of the file.
        """
        if self.is_valid:
            self.is_ascii = self.is_ascii and data.isascii()
            try:
                self._decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                self.is_valid = False


def _undecodable(error: UnicodeError, encoding: str, n_bytes: int, n_lines: int) -> tuple[str, str]:
    """Return the valid text before a decoding error, and an error message that begins with the line number."""
    if not isinstance(error, UnicodeDecodeError):
        return "", f"{n_lines + 1}: not valid {encoding} ({error})"
    data = error.object
    valid = data[: error.start].decode(encoding)
    offset = n_bytes - len(data) + error.start
    line = n_lines + valid.count("\n") + 1
    return valid, f"{line}: byte 0x{data[error.start]:02x} at offset {offset} is not valid {encoding}"


def read_lines(source: Source, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Read the lines of a text file, and yield each line with its number.

    Args:
        source: A file or stream, possibly compressed.
        encoding: Its encoding.

    Yields:
        Number of the line, from 1, and the line without LF or CRLF. Only LF separates lines.

    Raises:
        FormatError: The source cannot be read or decoded, or a line is too long.
    """
    for number, line in enumerate(read_raw_lines(source, encoding), 1):
        yield number, line.removesuffix("\n").removesuffix("\r")


def read_raw_lines(source: Source, encoding: str = "utf-8") -> Generator[str]:
    """Read the lines of a text file as `read_lines` does, but keep the line feed at the end of each line.

    Args:
        source: A file or stream, possibly compressed.
        encoding: Encoding of the file.

    Returns:
        Iterator over the lines.

    Raises:
        FormatError: The source cannot be read, or a line has more than `MAX_LINE_CHARS` characters.
    """
    number, length = 0, 0
    parts: list[str] = []  # parts of the current line; joining them once takes linear time for chunks of any size
    for chunk in read_chunks(source, encoding):
        first, *others = chunk.split("\n")
        parts.append(first)
        length += len(first)
        if others:
            lines = ["".join(parts), *others[:-1]]
            parts, length = [others[-1]], len(others[-1])
            for line in lines:
                number += 1
                yield line + "\n"
        if length > MAX_LINE_CHARS:
            place = f"{source.name}:{number + 1}"
            raise FormatError(f"{place}: the line has more than {MAX_LINE_CHARS} characters; split the line")
    if rest := "".join(parts):
        yield rest
