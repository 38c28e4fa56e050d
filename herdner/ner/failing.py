"""Documents that fail are reported and the rest goes on: what every command that tags many documents has in common."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, count
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from herdner.ner.streams import Failure as NotTagged
from herdner.text.document import Document
from herdner.text.io import FORMATS, FormatError, read_documents
from herdner.text.io.plain import document_of_line
from herdner.text.io.source import MAX_LINE_CHARS, Source, open_bytes, sources

if TYPE_CHECKING:
    from herdner.ner.tagger import Tagger

# Longer text files are tagged in pieces, cut at a blank line, so that memory stays small.
PIECE_CHARACTERS = 1_000_000
# In these a line feed is one byte that means nothing else, and a text is the bytes that it came from.
BY_LINE = ("utf-8", "ascii", "iso8859-1")


class Failure(NamedTuple):
    """A document that could not be read or tagged. Where documents are numbered, it counts as one."""

    message: str


def by_line(encoding: str) -> bool:
    """Whether files of this encoding can be cut at line feeds before they are decoded."""
    return codecs.lookup(encoding).name in BY_LINE


def read_items(where: str | Source, format: str, encoding: str = "utf-8") -> Iterator[Document | Failure]:
    """The documents of a path or source. A file that cannot be read ends with a `Failure`; a bad line of JSON is one,
    and the next line follows. Long texts come in pieces (`read_text`).
    """
    try:
        if format == "jsonl" and by_line(encoding):
            for source in sources(where, ("*.jsonl", "*.ndjson")):
                with open_bytes(source) as stream:
                    yield from read_records(stream, source, encoding)
            return
        options: dict[str, Any] = {"max_chars": PIECE_CHARACTERS} if format == "text" else {}
        if "encoding" in FORMATS[format].read_options and (encoding != "utf-8" or format in ("text", "jsonl", "conll")):
            options["encoding"] = encoding
        yield from read_documents(where, format, **options)
    except (ValueError, OSError) as error:
        yield Failure(str(error))


def read_records(
    stream: IO[bytes], source: Source, encoding: str = "utf-8", first: int = 1
) -> Iterator[Document | Failure]:
    """The documents of JSON lines (`read_jsonl`), the first of which is line number ``first`` of the source, in an
    encoding that is `by_line`. Raises FormatError for a line that would not stream.
    """
    for number in count(first):
        line = stream.readline(MAX_LINE_CHARS)
        place = f"{source.name}:{number}"
        if len(line) == MAX_LINE_CHARS and not line.endswith(b"\n"):
            raise FormatError(f"{place}: line of more than {MAX_LINE_CHARS} bytes")
        if not line:
            return
        if is_blank(line, encoding):
            continue
        try:
            text = line.decode(encoding).rstrip("\r\n")
            yield document_of_line(text.removeprefix("\ufeff") if number == 1 else text, place, f"{source.id}#{number}")
        except UnicodeDecodeError as error:
            what = f"byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line is not valid {encoding}"
            yield Failure(f"{place}: {what}; name the encoding of the file, as in --encoding latin-1")
        except FormatError as error:
            yield Failure(str(error))


def is_blank(line: bytes, encoding: str) -> bool:
    """Whether a line holds nothing but white space."""
    visible = line.strip()
    if not visible or visible.startswith(b"{"):
        return not visible
    text = visible.decode(encoding, "replace").removeprefix("\ufeff")
    return not text or text.isspace()


class _Handed(Iterator[Document]):
    """Documents handed out up to the next failure, counted."""

    def __init__(self, items: Iterable[Document | Failure], first: int) -> None:
        self.items, self.count = iter(items), first
        self.failure: Failure | None = None

    def __next__(self) -> Document:
        item = next(self.items)
        self.count += 1
        if isinstance(item, Failure):
            self.failure = item
            raise StopIteration
        return item


class Work(NamedTuple):
    """What tagging needs, in this process or in another: ``inference`` holds the backend and its options, as
    `Tagger.pipe` takes them.
    """

    tagger: Tagger
    inference: dict[str, Any]
    seed: int

    def results(self, items: Iterable[Document | Failure], first: int) -> Iterator[Document | Failure]:
        """Tags the documents, the first of which is number ``first`` of all; goes on behind one that fails."""
        handed = _Handed(items, first)
        failed: deque[NotTagged] = deque()
        while True:
            pipe = self.tagger.pipe(
                handed, seed=self.seed, first=handed.count, on_error=failed.append, **self.inference
            )
            for document in chain(pipe, [None]):
                while failed:
                    yield _in_words(failed.popleft())
                if document is not None:
                    yield document
            if handed.failure is None:
                return
            yield handed.failure
            handed.failure = None


def _in_words(failed: NotTagged) -> Failure:
    name = getattr(failed.source, "id", None) or f"document {failed.number + 1}"
    return Failure(f"{name}: {str(failed.error) or type(failed.error).__name__}")
