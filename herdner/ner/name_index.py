"""Index of the names of a corpus, in bounded memory."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NamedTuple

from herdner.ner.pseudonyms.tokens import name_key
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.html_view import PAGE_END, chip, page_start
from herdner.text.io.write import CONTROLS, json_line, utf8
from herdner.text.show import escape_html

CACHE_KILOBYTES = 32_768
CONTEXT = 40  # characters on each side of the first mention
MAX_WIDTH = 40  # largest width of the column of names in the text format, in characters
COLUMNS = ("name", "label", "mentions", "documents", "first_document", "context")


class IndexedName(NamedTuple):
    """Name in an index, with its number of mentions, its number of documents and the text around its first mention.

    Attributes:
        name: Fullest form, in the spelling of the first document that does not write it in capitals.
        label: Entity type.
        mentions: Number of mentions.
        documents: Number of documents with a mention.
        first_document: Identifier of the first of these documents.
        context: Text around the first mention.
    """

    name: str
    label: str
    mentions: int
    documents: int
    first_document: str
    context: str


class NameIndex:
    """Index of names, stored by SQLite in a temporary file.

    Names of different documents are counted as one name if they have the same label and their fullest forms are equal
    after NFKC normalisation, case folding and removal of extra white space. A short form such as a surname is counted
    with a longer name only in documents where both are mentions of one name; in other documents it is a separate name.
    The required memory does not depend on the number of documents or names.
    """

    def __init__(self) -> None:
        """Create an empty index."""
        self._database = sqlite3.connect("", isolation_level=None)  # "": a temporary file, which SQLite removes
        for statement in (
            f"PRAGMA cache_size = -{CACHE_KILOBYTES}",
            "PRAGMA journal_mode = OFF",
            "PRAGMA temp_store = FILE",
            "CREATE TABLE names (label TEXT, key TEXT, name TEXT, is_upper INTEGER, mentions INTEGER,"
            " documents INTEGER, first_document TEXT, context TEXT, PRIMARY KEY (label, key)) WITHOUT ROWID",
            "BEGIN",
        ):
            self._database.execute(statement)

    def __enter__(self) -> NameIndex:
        """Return the index itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file of the index."""
        self._database.close()

    def add(self, document: Document) -> None:
        """Add the names of a document to the index.

        Args:
            document: Document with entities. An entity without `name_id` counts as the only mention of its name.
        """
        names: dict[tuple[str, str], tuple[str, int, Entity]] = {}
        for label, text, n_mentions, first in _names(document):
            key = label, name_key(text)
            text, n_earlier, first = names.get(key, (text, 0, first))
            names[key] = text, n_earlier + n_mentions, first
        document_id = _storable(document.id or "")
        self._database.executemany(
            "INSERT INTO names VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (label, key) DO UPDATE SET"
            " mentions = mentions + excluded.mentions, documents = documents + 1,"
            " name = CASE WHEN is_upper AND NOT excluded.is_upper THEN excluded.name ELSE name END,"
            " is_upper = is_upper AND excluded.is_upper",
            [
                (*map(_storable, (*key, text)), text.isupper(), n, document_id, _context(document, first))
                for key, (text, n, first) in names.items()
            ],
        )

    def __len__(self) -> int:
        """Return the number of names in the index."""
        return int(self._database.execute("SELECT count(*) FROM names").fetchone()[0])

    def width(self) -> int:
        """Return the number of characters of the longest name in the index."""
        return int(self._database.execute("SELECT coalesce(max(length(name)), 0) FROM names").fetchone()[0])

    def rows(self, min_mentions: int = 1, limit: int | None = None) -> Iterator[IndexedName]:
        """Return an iterator over the names of the index, the most frequent first.

        The names are sorted by descending numbers of mentions and of documents, then alphabetically.

        Args:
            min_mentions: Least number of mentions.
            limit: Largest number of names; None: all.
        """
        rows = self._database.execute(
            "SELECT name, label, mentions, documents, first_document, context FROM names WHERE mentions >= ?"
            " ORDER BY mentions DESC, documents DESC, key, label LIMIT ?",
            (min_mentions, -1 if limit is None else limit),
        )
        return (IndexedName(*row) for row in rows)


def _names(document: Document) -> Iterator[tuple[str, str, int, Entity]]:
    """Yield, for each name in a document, its label, text, number of mentions and first mention."""
    for name in document.names:
        yield name.label, name.text, len(name.mentions), document.entities[name.mentions[0]]
    for entity in document.entities:
        if entity.name_id is None:
            yield entity.label, " ".join(entity.text.split()), 1, entity


def _context(document: Document, entity: Entity) -> str:
    """Return the text around an entity, with line breaks replaced by spaces."""
    text, start, end = document.text, entity.start, entity.end
    begin, stop = max(0, start - CONTEXT), min(len(text), end + CONTEXT)
    before, after = text[begin:start], text[end:stop]
    if begin > 0 and not text[begin - 1].isspace():
        before = before.partition(" ")[2] or before
    if stop < len(text) and not text[stop].isspace():
        after = after.rpartition(" ")[0] or after
    return _storable(" ".join(f"{before}{text[start:end]}{after}".split()))


def _storable(text: str) -> str:
    """Replace lone surrogates by question marks, because SQLite cannot store a text with lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def write_index(rows: Iterable[IndexedName], stream: IO[str], format: str, width: int = MAX_WIDTH) -> None:
    """Write the rows of an index as a table.

    Args:
        rows: The rows.
        stream: A text stream.
        format: "text", "csv", "json" or "html".
        width: Width of the column of names in the text format; at most ``MAX_WIDTH`` is used.

    Raises:
        ValueError: The format is unknown.
    """
    if format not in WRITERS:
        raise ValueError(f"`format` must be one of {', '.join(WRITERS)}, got {format!r}")
    put = utf8(stream)
    if format == "text":
        _write_text(rows, put, min(width, MAX_WIDTH))
    else:
        WRITERS[format](rows, put)


def _write_text(rows: Iterable[IndexedName], put: Callable[[str], object], width: int = MAX_WIDTH) -> None:
    width = max(width, len("name"))
    put(f"{'mentions':>8}  {'documents':>9}  {'label':<5}  {'name':<{width}}  first context\n")
    for row in rows:
        name = CONTROLS.sub("\ufffd", row.name)
        context = CONTROLS.sub("\ufffd", row.context)
        put(f"{row.mentions:>8}  {row.documents:>9}  {row.label:<5}  {name:<{width}}  {context}\n")


class _CsvStream:
    """Output stream for a CSV writer; the stream passes each written row to a function."""

    def __init__(self, put: Callable[[str], object]) -> None:
        self.write = put


def _write_csv(rows: Iterable[IndexedName], put: Callable[[str], object]) -> None:
    writer = csv.writer(_CsvStream(put), lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)


def _write_json(rows: Iterable[IndexedName], put: Callable[[str], object]) -> None:
    separator = "[\n"
    for row in rows:
        put(separator + json_line(row._asdict()).rstrip("\n"))
        separator = ",\n"
    put("\n]\n" if separator == ",\n" else json.dumps([]) + "\n")


def _write_html(rows: Iterable[IndexedName], put: Callable[[str], object]) -> None:
    columns = "".join(f'<th scope="col">{column.replace("_", " ")}</th>' for column in COLUMNS)
    put(
        f'{page_start("Names")}<main class="wide">\n<h1>Names</h1>\n<div class="card scroll" tabindex="0"><table>\n'
        f"<thead><tr>{columns}</tr></thead>\n<tbody>\n"
    )
    for row in rows:
        name, document, context = map(escape_html, (row.name, row.first_document, row.context))
        put(
            f'<tr><td dir="auto">{name}</td><td>{chip(row.label)}</td><td class="n">{row.mentions}</td>'
            f'<td class="n">{row.documents}</td><td dir="auto">{document}</td><td dir="auto">{context}</td></tr>\n'
        )
    put(f"</tbody>\n</table></div>\n</main>\n{PAGE_END}")


WRITERS: dict[str, Callable[..., None]] = {
    "text": _write_text, "csv": _write_csv, "json": _write_json, "html": _write_html,
}  # fmt: skip
"""Functions that write the rows of an index, by format."""
