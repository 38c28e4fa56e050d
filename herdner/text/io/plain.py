"""Plain text files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from herdner.text.document import Document
from herdner.text.io.source import Input, read_chunks, read_lines, sources

PIECE_CHARACTERS = 1_000_000  # longer files are read in pieces to bound memory


def read_text(
    where: Input, *, encoding: str = "utf-8", documents: Literal["file", "line"] = "file", max_chars: int | None = None
) -> Iterator[Document]:
    """Read documents from plain text files.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files; a byte order mark is dropped.
        documents: "file": each file is a document; "line": each line that is not blank is a document.
        max_chars: Largest number of characters of a document. A longer file gives several documents. It is split at a
            blank line if possible, else at a line break or space; ``fields["offset"]`` is the offset of each document
            in the file.

    Yields:
        Documents without tokens.

    Raises:
        ValueError: An option is invalid.
        FormatError: A file cannot be read.
    """
    if documents not in ("file", "line"):
        raise ValueError(f"`documents` must be 'file' or 'line', got {documents!r}")
    if max_chars is not None and max_chars < 1:
        raise ValueError(f"`max_chars` must be a positive number, got {max_chars}")
    for source in sources(where, ("*.txt",)):
        if documents == "line":
            for number, line in read_lines(source, encoding):
                if line and not line.isspace():
                    yield Document.from_text(line, id=source.document_id(number))
            continue
        offset = 0
        for count, (piece, is_whole) in enumerate(pieces(read_chunks(source, encoding), max_chars), 1):
            if piece and not piece.isspace():
                fields = {} if is_whole else {"offset": offset}
                yield Document.from_text(piece, id=source.document_id(None if is_whole else count), fields=fields)
            offset += len(piece)


def pieces(chunks: Iterator[str], max_chars: int | None) -> Iterator[tuple[str, bool]]:
    """Split a text, given as chunks, into documents of limited length, by the rules of `read_text`.

    Args:
        chunks: The text in consecutive parts.
        max_chars: Largest number of characters of a document; None: no limit.

    Yields:
        The text of each document, and True if it is the whole text, else False.
    """
    if max_chars is None:
        yield "".join(chunks), True
        return
    rest, is_whole = "", True
    for chunk in chunks:
        rest += chunk
        begin = 0
        while len(rest) - begin > max_chars:
            cut = _cut(rest, begin, begin + max_chars)
            yield rest[begin:cut], False
            begin, is_whole = cut, False
        rest = rest[begin:]
    yield rest, is_whole


def _cut(text: str, begin: int, limit: int) -> int:
    for border in ("\n\n", "\n", " "):
        position = text.rfind(border, begin, limit)
        if position > begin:
            return position + len(border)
    return limit
