"""Running text, in files of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

from herdner.text.document import Document
from herdner.text.io.source import Source, read_chunks, read_lines, sources

# Longer text files are tagged in pieces, cut at a blank line, so that memory stays small.
PIECE_CHARACTERS = 1_000_000


def read_text(
    where: str | Path | IO[Any] | Source,
    *,
    encoding: str = "utf-8",
    documents: Literal["file", "line"] = "file",
    max_chars: int | None = None,
) -> Iterator[Document]:
    """Each file one document, its text untouched (a byte order mark apart); or each line that is not blank.

    A file of more than ``max_chars`` characters comes as several documents, cut at a blank line where possible, else at
    a line break, else at a space, so that files of any size stream; ``fields["offset"]`` is the character where the
    piece begins in the file. Raises FormatError.
    """
    if documents not in ("file", "line"):
        raise ValueError(f"documents={documents!r}; expected file or line")
    if max_chars is not None and max_chars < 1:
        raise ValueError(f"max_chars={max_chars}; expected a positive number")
    for source in sources(where, ("*.txt",)):
        if documents == "line":
            for number, line in read_lines(source, encoding):
                if line and not line.isspace():
                    yield Document.from_text(line, id=f"{source.id}#{number}")
            continue
        offset = 0
        for count, (piece, is_whole) in enumerate(pieces(read_chunks(source, encoding), max_chars), 1):
            if piece and not piece.isspace():
                fields = {} if is_whole else {"offset": offset}
                yield Document.from_text(piece, id=source.id if is_whole else f"{source.id}#{count}", fields=fields)
            offset += len(piece)


def pieces(chunks: Iterator[str], max_chars: int | None) -> Iterator[tuple[str, bool]]:
    """The text in pieces of at most ``max_chars``, cut as `read_text` does, and whether the piece is all there is."""
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
        found = text.rfind(border, begin, limit)
        if found > begin:
            return found + len(border)
    return limit
