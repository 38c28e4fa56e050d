"""The formats by name, and the two doors through which documents come in and go out."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import IO, Any, Literal

from herdner.base.extras import check_extra
from herdner.text.document import Document, Failure
from herdner.text.io.brat import read_brat, write_brat
from herdner.text.io.columns import Layout, read_columns
from herdner.text.io.delimited import read_table, write_table
from herdner.text.io.docbin import read_spacy
from herdner.text.io.doccano import read_doccano, write_doccano
from herdner.text.io.ieer import read_ieer
from herdner.text.io.jsonl import read_jsonl
from herdner.text.io.label_studio import read_label_studio, write_label_studio
from herdner.text.io.pages import read_html
from herdner.text.io.plain import PIECE_CHARACTERS, read_text
from herdner.text.io.prodigy import read_prodigy, write_prodigy
from herdner.text.io.source import Source, sources, uncompressed
from herdner.text.io.write import write_conll, write_html, write_jsonl, write_spacy, write_text
from herdner.text.labels import rename_labels

Reader = Callable[..., Iterator[Document | Failure]]  # one that reads on where a document is wrong gives its `Failure`
Writer = Callable[..., None]
BINARY = ("spacy", "brat", "parquet")  # what is written is no text


@dataclass(frozen=True, slots=True)
class Format:
    """How to read and write one format; None where that is not possible.

    Attributes:
        endings: Those of the files that are read and written so where nobody names a format (`format_of`).
        read_options: The names of the options that `read_documents` takes for it.
        write_options: The names of the options that `write_documents` takes for it.
    """

    name: str
    description: str
    read: Reader | None = None
    write: Writer | None = None
    endings: tuple[str, ...] = ()
    layout: Layout | None = None  # of the column formats, whose fields are options too
    is_binary: bool = False  # what is written
    read_options: tuple[str, ...] = ()
    renaming: tuple[str, ...] = ()
    write_options: tuple[str, ...] = ()


def _format(
    name: str,
    description: str,
    read: Reader | None = None,
    write: Writer | None = None,
    endings: tuple[str, ...] = (),
    layout: Layout | None = None,
) -> Format:
    own = _options(read, "where") + (tuple(f.name for f in fields(Layout)) if layout else ())
    renaming = () if name in ("text", "lines", "html", "ieer") else ("labels", "scheme") if layout else ("labels",)
    writing = _options(write, "documents", "stream")
    return Format(name, description, read, write, endings, layout, name in BINARY, own + renaming, renaming, writing)


def _options(function: Callable[..., object] | None, *without: str) -> tuple[str, ...]:
    names = () if function is None else tuple(inspect.signature(function).parameters)
    return tuple(name for name in names if name not in (*without, "layout", "patterns"))


def _columns(
    name: str,
    description: str,
    layout: Layout,
    *patterns: str,
    write: Writer | None = None,
    endings: tuple[str, ...] = (),
) -> Format:
    return _format(name, description, partial(read_columns, patterns=patterns), write, endings, layout=layout)


def _pyarrow() -> Any:
    """`herdner.text.io.parquet`, which needs an extra."""
    check_extra("pyarrow", "Parquet needs pyarrow")
    return import_module("herdner.text.io.parquet")


def _read_parquet(
    where: str | Path | IO[Any] | Source, *, column: str = "text", strict: bool = False
) -> Iterator[Document | Failure]:
    for source in sources(where, ("*.parquet", "*.pq")):
        yield from _pyarrow().read_file(source, column, strict)


def _write_parquet(documents: Iterable[Document], stream: IO[Any], *, column: str = "text") -> None:
    _pyarrow().write_table(documents, stream, column=column)


_FORMATS = [
    _columns(
        "conll",
        "columns separated by TAB or spaces: token first, tag last (one column: no tags); -DOCSTART- starts a document",
        Layout(),
        "*.conll",
        "*.iob2",
        "*.bio",
        write=write_conll,
        endings=(".conll", ".bio", ".iob2"),
    ),
    _columns("conll2003", "CoNLL-2003: token, part of speech, chunk, tag (IOB1)", Layout(), "eng.*", "deu.*"),
    _columns("conll2002", "CoNLL-2002: token, part of speech, tag (IOB2)", Layout(), "esp.*", "ned.*"),
    _columns("wnut17", "WNUT-17: each post is a document", Layout(documents="sentence"), "*.conll"),
    _columns("btc", "Broad Twitter Corpus: each tweet is a document", Layout(documents="sentence"), "*.conll", "btc.*"),
    _columns(
        "worldwide",
        "English Worldwide Newswire: one article a file, its address first; the outermost entities",
        Layout(tag=1, documents="file", nested=True, url=True),
        "*.tsv",
    ),
    _columns(
        "uner",
        "Universal NER: id, token, tag, -, annotator",
        Layout(token=1, tag=2, comments=True),
        "*.iob2",
        endings=(".iob2",),
    ),
    _columns("wikigold", "wikigold: token, tag (IOB1)", Layout(), "wikigold.*"),
    _columns("norne", "NorNE: token, tag (IOB2)", Layout(), "nob.*", "nno.*"),
    _format("ieer", "NIST IE-ER 1999: SGML-like news stories; PER, LOC, ORG", read_ieer),
    _format(
        "text",
        "plain text, one document a file; out: entities coloured or in brackets",
        read_text,
        write_text,
        (".txt", ".text", ".md", ".rst"),
    ),
    _format(
        "jsonl",
        'one object a line: {"id", "text", "entities": [{"start", "end", "label", ...}]}',
        read_jsonl,
        write_jsonl,
        (".jsonl", ".ndjson"),
    ),
    _format("lines", "plain text, one document a line", partial(read_text, documents="line")),
    _format(
        "csv",
        "comma-separated values, one row a document, the text in --column",
        read_table,
        write_table,
        (".csv",),
    ),
    _format(
        "tsv",
        "tab-separated values, one row a document, the text in --column",
        partial(read_table, delimiter="\t"),
        partial(write_table, delimiter="\t"),
        (".tsv", ".tab"),
    ),
    _format(
        "parquet",
        "Parquet, one row a document, the text in --column",
        _read_parquet,
        _write_parquet,
        (".parquet", ".pq"),
    ),
    _format(
        "html",
        "in: the text of a page, with its places there; out: a page of displaCy's entity view",
        read_html,
        write_html,
        (".html", ".htm", ".xhtml"),
    ),
    _format("spacy", "spaCy's DocBin (.spacy)", read_spacy, write_spacy, (".spacy",)),
    _format(
        "label-studio",
        "Label Studio's JSON; out: tasks with predictions",
        read_label_studio,
        write_label_studio,
    ),
    _format(
        "doccano",
        "doccano's JSON lines for sequence labelling",
        read_doccano,
        write_doccano,
    ),
    _format("prodigy", "Prodigy's JSON lines of named entities", read_prodigy, write_prodigy),
    _format("brat", "brat's standoff: a folder of .txt and .ann files, or a tar.gz of them", read_brat, write_brat),
]

FORMATS: dict[str, Format] = {entry.name: entry for entry in _FORMATS}
"""All formats that are read and written, by name."""

READABLE = tuple(name for name, entry in FORMATS.items() if entry.read is not None)
"""The names of the formats that are read."""

WRITABLE = tuple(name for name, entry in FORMATS.items() if entry.write is not None)
"""The names of the formats that are written."""

# Of several formats with one ending the last is the narrower.
_READ_AS = {ending: name for name in READABLE for ending in FORMATS[name].endings}
_WRITTEN_AS = {ending: name for name in WRITABLE for ending in FORMATS[name].endings}

# Options with which what people have annotated is written as done, not as something to look at.
DONE: Mapping[str, dict[str, Any]] = {"label-studio": {"annotations": True}, "prodigy": {"answer": "accept"}}


def format_of(name: str | os.PathLike[str], *, write: bool = False) -> str | None:
    """The format that the ending of a file's name tells, also before that of a compressed file; None where it tells
    none.
    """
    ending = PurePath(uncompressed(os.fspath(name))).suffix.lower()
    return (_WRITTEN_AS if write else _READ_AS).get(ending)


def read_documents(
    where: str | Path | IO[Any] | Source,
    format: str,
    *,
    tokenizer: Callable[[str], Document] | None = None,
    strict: bool = False,
    **options: Any,
) -> Iterator[Document]:
    """The documents of a file, folder, glob, ``"-"`` (standard input) or open stream, streaming.

    Files that are compressed (gzip, bzip2, xz, zstd) are unpacked, whatever they are called. ``options`` are those of
    the format (`Format.read_options`), above all ``encoding`` and, where there are labels, ``labels`` ({old: new or
    None to drop, "*": what happens to the rest}) and ``scheme``. Running text has no tokens unless a ``tokenizer`` is
    given. What a file leaves in doubt is told in a warning; with ``strict`` it is refused.

    Raises:
        ValueError: The format or an option does not exist.
        FormatError: The input is bad; when iteration gets there.
    """
    entry = _entry(format, "read", options)
    if strict and "strict" in entry.read_options:  # nothing is ever in doubt in the others
        options["strict"] = True
    documents = _raised(_items(entry, where, options))
    return documents if tokenizer is None else tokenized(documents, tokenizer)


def _items(
    entry: Format, where: str | Path | IO[Any] | Source, options: dict[str, Any]
) -> Iterator[Document | Failure]:
    if entry.layout is not None:
        own = {f.name: options.pop(f.name) for f in fields(Layout) if f.name in options}
        options["layout"] = replace(entry.layout, **own)
    names, scheme = (options.pop(name, None) if name in entry.renaming else None for name in ("labels", "scheme"))
    assert entry.read is not None
    items = entry.read(where, **options)
    if names is None and scheme is None:
        return items
    return (item if isinstance(item, Failure) else rename_labels(item, names, scheme or "iob2") for item in items)


def _raised(items: Iterable[Document | Failure]) -> Iterator[Document]:
    for item in items:
        if isinstance(item, Failure):
            raise item.error
        yield item


def read_items(
    where: str | Path | IO[Any] | Source, format: str, encoding: str, **options: Any
) -> Iterator[Document | Failure]:
    """`read_documents` for those who go on where something is wrong: a file that cannot be read ends with a `Failure`,
    which breaks off where documents came before; a bad line of JSON or a bad row of a table is one, and the next
    follows. Long texts come in pieces (`read_text`). Options that a format does not have are left out.
    """
    entry, begun = _entry(format, "read"), False
    options = {name: value for name, value in {"encoding": encoding, **options}.items() if name in entry.read_options}
    if format == "text":
        options["max_chars"] = PIECE_CHARACTERS
    try:
        for item in _items(entry, where, options):
            yield item
            begun = True
    except (ValueError, OSError) as error:
        yield Failure(error, is_truncated=begun)


def write_documents(documents: Iterable[Document], stream: IO[Any], format: str, **options: Any) -> None:
    """Writes the documents one by one.

    Raises:
        ValueError: The format or an option does not exist.
    """
    entry = _entry(format, "write", options)
    assert entry.write is not None
    entry.write(documents, stream, **options)


def tokenized(documents: Iterable[Document], tokenizer: Callable[[str], Document]) -> Iterator[Document]:
    """The documents with the tokenizer's tokens and sentences where they have none; entities are projected to tags."""
    return (with_tokens(document, tokenizer) for document in documents)


def with_tokens(document: str | Document, tokenizer: Callable[[str], Document]) -> Document:
    """One of the documents of `tokenized`, or a text as one."""
    if isinstance(document, str):
        return tokenizer(document)
    if len(document.tokens):
        return document
    cut = tokenizer(document.text)
    filled = replace(
        cut, id=document.id, fields=document.fields, partial=document.partial, source_map=document.source_map
    )
    if document.spans is None:
        return filled
    return (filled.with_entities if document.is_annotated else filled.with_proposals)(document.entities)


def _entry(format: str, direction: Literal["read", "write"], options: Iterable[str] = ()) -> Format:
    """The format; ValueError where it does not go in this direction, or has no such options there."""
    known = READABLE if direction == "read" else WRITABLE
    if format not in known:
        raise ValueError(f"no format {format!r} to {direction}; expected one of {', '.join(known)}")
    entry = FORMATS[format]
    own = entry.read_options if direction == "read" else entry.write_options
    for name in options:
        if name not in own:
            raise ValueError(f"format {format!r} has no option {name!r}; expected one of {', '.join(own)}")
    return entry
