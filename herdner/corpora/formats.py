"""All file formats by name, and the functions that read and write documents in any of them."""

from __future__ import annotations

import inspect
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import IO, Any, Literal

from herdner.base.extras import check_extra
from herdner.base.messages import format_count, suggestion
from herdner.corpora.ieer import read_ieer
from herdner.text.document import Document, Failure
from herdner.text.io.brat import read_brat, write_brat
from herdner.text.io.columns import Layout, read_columns
from herdner.text.io.delimited import read_table, write_table
from herdner.text.io.docbin import read_spacy
from herdner.text.io.doccano import read_doccano, write_doccano
from herdner.text.io.html_view import write_html
from herdner.text.io.jsonl import read_jsonl
from herdner.text.io.label_studio import read_label_studio, write_label_studio
from herdner.text.io.marked_up import read_docx, read_markdown
from herdner.text.io.pages import read_html
from herdner.text.io.plain import PIECE_CHARACTERS, read_text
from herdner.text.io.prodigy import read_prodigy, write_prodigy
from herdner.text.io.source import FileId, Input, create_file, sources, strip_compression_suffix
from herdner.text.io.write import check_encodable, write_conll, write_jsonl, write_spacy, write_text
from herdner.text.labels import is_label, rename_labels
from herdner.text.tokenize import tokenize_documents

logger = logging.getLogger(__name__)

Reader = Callable[..., Iterator[Document | Failure]]
"""A function of a source and options. It yields a `Failure` for each document that it cannot read, and continues."""

Writer = Callable[..., None]
"""A function of documents, a stream and options."""


Part = Literal[
    "id", "text", "tokens", "entities", "spans", "confidence", "names", "partial", "fields", "strings", "surrogates"
]
"""Part of a document that a format may carry. "tokens" includes sentences. "spans" are entities of whole tokens.
"names" are the mentions of each name. "strings" are fields with strings as values. "surrogates" are single surrogates
(U+D800 to U+DFFF) in texts, which JSON writes as escapes; readers replace them, with a warning."""

_PART_NAMES: dict[Part, str] = {
    "id": "ids", "tokens": "tokens and sentence borders", "confidence": "confidences",
    "names": "groups of mentions", "fields": "fields",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format:
    """File format of documents, with the functions that read and write it.

    Attributes:
        name: Name in options and on the command line.
        description: One line for users.
        read: The reader; None if the format can only be written.
        write: The writer; None if the format can only be read.
        extensions: File extensions that select the format in `format_of`, such as ".conll".
        layout: Layout of a column format; its fields are options of `read_documents`.
        is_binary: The writer writes bytes.
        has_labels: Documents of this format may have labels, which `read_documents` can rename.
        carries: Parts of a document that writing and then reading leaves unchanged. `write_documents` refuses documents
            with partial annotation or surrogates if the format cannot represent them, and warns about other parts.
            The set is empty for formats for display.
    """

    name: str
    description: str
    read: Reader | None = None
    write: Writer | None = None
    extensions: tuple[str, ...] = ()
    layout: Layout | None = None
    is_binary: bool = False
    has_labels: bool = True
    carries: frozenset[Part] = frozenset()

    @property
    def read_options(self) -> tuple[str, ...]:
        """Names of the options of `read_documents` for this file format."""
        own = [name for name in _parameters(self.read) if name not in ("where", "layout", "patterns")]
        of_layout = [] if self.layout is None else [*(field.name for field in fields(Layout)), "scheme"]
        return tuple(dict.fromkeys([*own, *of_layout, *(["labels"] if self.has_labels else [])]))

    @property
    def write_options(self) -> tuple[str, ...]:
        """Names of the options of `write_documents` for this file format."""
        return tuple(name for name in _parameters(self.write) if name not in ("documents", "stream"))


def _parameters(function: Callable[..., object] | None) -> tuple[str, ...]:
    return () if function is None else tuple(inspect.signature(function).parameters)


def _columns(name: str, description: str, layout: Layout, *patterns: str, **more: Any) -> Format:
    return Format(name, description, partial(read_columns, patterns=patterns), layout=layout, **more)


def _parquet() -> Any:
    check_extra("pyarrow", "Parquet needs pyarrow")
    return import_module("herdner.text.io.parquet")


def _read_parquet(
    where: Input, *, column: str = "text", id_column: str | None = None, strict: bool = False
) -> Iterator[Document | Failure]:
    for source in sources(where, ("*.parquet", "*.pq")):
        yield from _parquet().read_file(source, column, id_column, strict)


def _write_parquet(documents: Iterable[Document], stream: IO[Any], *, column: str = "text") -> None:
    _parquet().write_table(documents, stream, column=column)


_TABLE: frozenset[Part] = frozenset({"id", "text", "entities", "confidence", "names", "strings"})
_JSON: frozenset[Part] = frozenset({"id", "text", "entities", "confidence", "names", "fields", "surrogates"})
_FORMATS = [
    _columns(
        "conll",
        "columns separated by TAB or spaces: token first, tag last (one column: no tags); -DOCSTART- starts a document",
        Layout(),
        "*.conll",
        "*.iob2",
        "*.bio",
        extensions=(".conll", ".bio", ".iob2"),
        write=write_conll,
        carries=frozenset({"tokens", "spans", "partial"}),
    ),
    _columns("conll2003", "CoNLL-2003: token, part of speech, chunk, tag (IOB1)", Layout(), "eng.*", "deu.*"),
    _columns("conll2002", "CoNLL-2002: token, part of speech, tag (IOB2)", Layout(), "esp.*", "ned.*"),
    _columns("wnut17", "WNUT-17: each post is a document", Layout(documents="sentence"), "*.conll"),
    _columns("btc", "Broad Twitter Corpus: each tweet is a document", Layout(documents="sentence"), "*.conll", "btc.*"),
    _columns(
        "worldwide",
        "English Worldwide Newswire: one article per file, which begins with its URL; only the outermost entities",
        Layout(tag=1, documents="file", nested=True, url=True),
        "*.tsv",
    ),
    _columns(
        "uner",
        "Universal NER: id, token, tag, -, annotator",
        Layout(token=1, tag=2, comments=True),
        "*.iob2",
        extensions=(".iob2",),
    ),
    _columns("wikigold", "wikigold: token, tag (IOB1)", Layout(), "wikigold.*"),
    _columns("norne", "NorNE: token, tag (IOB2)", Layout(), "nob.*", "nno.*"),
    _columns("mobie", "MobIE: token, part of speech, chunk, tag (IOB2)", Layout(), "*.conll2003"),
    _columns("ler", "German court decisions: token, tag (IOB2)", Layout(), "ler_*.conll"),
    Format("ieer", "NIST IE-ER 1999: SGML-like news stories; PER, LOC, ORG", read_ieer),
    Format(
        "text",
        "plain text, one document per file; written: entities in colour or in brackets",
        read_text,
        write_text,
        (".txt", ".text", ".md", ".rst"),
        has_labels=False,
    ),
    Format(
        "markdown",
        "Markdown, one document per file; read: the text without markup",
        read_markdown,
        None,
        (".md", ".markdown"),
        has_labels=False,
    ),
    Format(
        "docx",
        "Word document; read: the text with footnotes and text boxes",
        read_docx,
        None,
        (".docx",),
        has_labels=False,
    ),
    Format(
        "jsonl",
        'one object per line: {"id", "text", "entities": [{"start", "end", "label", ...}]}',
        read_jsonl,
        write_jsonl,
        (".jsonl", ".ndjson"),
        carries=frozenset({*_JSON, "partial"}),
    ),
    Format("lines", "plain text, one document per line", partial(read_text, documents="line"), has_labels=False),
    Format(
        "csv",
        "comma-separated values, one document per row, its text in --column",
        read_table,
        write_table,
        (".csv",),
        carries=_TABLE,
    ),
    Format(
        "tsv",
        "tab-separated values, one document per row, its text in --column",
        partial(read_table, delimiter="\t"),
        partial(write_table, delimiter="\t"),
        (".tsv", ".tab"),
        carries=_TABLE,
    ),
    Format(
        "parquet",
        "Parquet, one document per row, its text in --column",
        _read_parquet,
        _write_parquet,
        (".parquet", ".pq"),
        is_binary=True,
        carries=_JSON - {"surrogates"},
    ),
    Format(
        "html",
        "read: the text of a page with its offsets in the page; written: a page with names, confidences and links",
        read_html,
        write_html,
        (".html", ".htm", ".xhtml"),
        has_labels=False,
    ),
    Format(
        "spacy",
        "spaCy's DocBin (.spacy)",
        read_spacy,
        write_spacy,
        (".spacy",),
        is_binary=True,
        carries=frozenset({"text", "tokens", "spans", "names"}),
    ),
    Format(
        "label-studio",
        "Label Studio's JSON; written: tasks with predictions",
        read_label_studio,
        write_label_studio,
        carries=_JSON,
    ),
    Format(
        "doccano",
        "doccano's JSON lines for sequence labelling",
        read_doccano,
        write_doccano,
        carries=_JSON - {"confidence", "names"},
    ),
    Format("prodigy", "Prodigy's JSON lines of named entities", read_prodigy, write_prodigy, carries=_JSON),
    Format(
        "brat",
        "brat's standoff: a folder of .txt and .ann files, or a tar.gz of them",
        read_brat,
        write_brat,
        is_binary=True,
        carries=frozenset({"text", "entities", "confidence", "names"}),
    ),
]

FORMATS: dict[str, Format] = {entry.name: entry for entry in _FORMATS}
"""All formats by name."""

READABLE = tuple(name for name, entry in FORMATS.items() if entry.read is not None)
"""Names of the formats that can be read."""

WRITABLE = tuple(name for name, entry in FORMATS.items() if entry.write is not None)
"""Names of the formats that can be written."""

# If several formats share an extension, the last one is the most specific.
_READ_AS = {extension: name for name in READABLE for extension in FORMATS[name].extensions}
_WRITTEN_AS = {extension: name for name in WRITABLE for extension in FORMATS[name].extensions}


def format_of(name: str | os.PathLike[str], *, write: bool = False) -> str | None:
    """Return the name of the file format to which the extension of a file name belongs.

    Args:
        name: File name; an extension of compression such as ".gz" is ignored.
        write: Consider the formats that can be written instead of those that can be read.

    Returns:
        Name of the format; None if the extension belongs to no format.
    """
    extension = PurePath(strip_compression_suffix(os.fspath(name))).suffix.lower()
    return (_WRITTEN_AS if write else _READ_AS).get(extension)


def split_format(argument: str) -> tuple[str, str | None]:
    """Split an argument ``FILE:FORMAT`` or ``FILE`` into the path and the format.

    Args:
        argument: The text. The path may contain colons: if a file has the whole argument as its name, it takes
            precedence.

    Returns:
        The path, and the format; None if the argument contains none.
    """
    head, colon, tail = argument.rpartition(":")
    if colon and head and tail in READABLE and not (Path(argument).exists() and not Path(head).exists()):
        return head, tail
    return argument, None


def file_options(format: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return options that stop `write_documents` from compressing a file against its extension.

    ``herdner.text.io.source.create_file`` compresses a file if its extension selects a compression, and ".tar" is the
    extension of archives that are not compressed.

    Args:
        format: Name of a format (`WRITABLE`).
        path: Path of the file.

    Returns:
        ``{"compress": False}`` if the writer must not compress the file; else no option.
    """
    name = os.fspath(path)
    has_own = strip_compression_suffix(name) != name or name.lower().endswith(".tar")
    return {"compress": False} if has_own and "compress" in FORMATS[format].write_options else {}


def read_documents(
    where: Input,
    format: str | None = None,
    *,
    tokenizer: Callable[[str], Document] | None = None,
    strict: bool = False,
    **options: Any,
) -> Iterator[Document]:
    """Read documents from one or more files that have the same file format.

    Compressed files (gzip, bzip2, xz, zstd) are recognised by their content.

    Args:
        where: A file, folder, glob pattern, ``"-"`` (standard input) or open stream.
        format: Name of a format (`READABLE`); None: by the extension of the file.
        tokenizer: Tokenizer for documents that have no tokens; without it they stay untokenized.
        strict: Treat dubious input as an error instead of logging a warning.
        **options: Options of the format (`Format.read_options`). Most formats have ``encoding`` and ``labels``
            ({old name: new name, or None to remove the label; "*": entry for all others}); column formats have
            ``scheme``, the tag scheme to convert to.

    Returns:
        An iterator over the documents.

    Raises:
        ValueError: The format or an option does not exist.
        FormatError: The input is invalid. It is raised during iteration.
    """
    entry = _entry(format or _format_by_extension(where), "read", options)
    if strict and "strict" in entry.read_options:  # the other formats have no dubious input
        options["strict"] = True
    documents = _raise_failures(_items(entry, where, options))
    return documents if tokenizer is None else tokenize_documents(documents, tokenizer)


def _items(entry: Format, where: Input, options: dict[str, Any]) -> Iterator[Document | Failure]:
    assert entry.read is not None
    if entry.layout is not None:
        own = {field.name: options.pop(field.name) for field in fields(Layout) if field.name in options}
        options["layout"] = replace(entry.layout, **own)
    names = None if "labels" in _parameters(entry.read) else options.pop("labels", None)
    scheme = options.pop("scheme", None)
    items = entry.read(where, **options)
    if names is None and scheme is None:
        return items
    return (item if isinstance(item, Failure) else rename_labels(item, names, scheme or "iob2") for item in items)


def _raise_failures(items: Iterable[Document | Failure]) -> Iterator[Document]:
    for item in items:
        if isinstance(item, Failure):
            raise item.error
        yield item


def read_items(where: Input, format: str, encoding: str, **options: Any) -> Iterator[Document | Failure]:
    """Read documents, and yield a `Failure` instead of each document that cannot be read.

    If a file cannot be read to its end, the last item is a failure, with ``is_truncated`` if documents were read before
    it. Long texts are read in pieces (``herdner.text.io.plain.read_text``).

    Args:
        where: As in `read_documents`.
        format: Name of a format.
        encoding: Encoding of text files.
        **options: Options as in `read_documents`; options that the format does not have are ignored.

    Yields:
        Documents and failures, in the order of the file.
    """
    entry, has_documents = _entry(format, "read"), False
    options = {name: value for name, value in {"encoding": encoding, **options}.items() if name in entry.read_options}
    if format == "text":
        options["max_chars"] = PIECE_CHARACTERS
    try:
        for item in _items(entry, where, options):
            yield item
            has_documents = True
    except (ValueError, OSError) as error:
        yield Failure(error, is_truncated=has_documents)


def write_documents(
    documents: Iterable[Document], stream: IO[Any] | str | os.PathLike[str], format: str | None = None, **options: Any
) -> None:
    """Write documents to a stream or a file.

    If the format cannot represent a part of the documents, such as their ids, one warning names the part, the number of
    documents that have it, and the formats that can represent it. There is no warning about parts that herdner has
    computed: ids from file names, the tokens of a tokenizer, and the confidences and names of a tagger.

    Args:
        documents: The documents.
        stream: A text or binary stream, or the path of a file, which appears when it is complete. The file is
            compressed if its extension is that of a compression, such as ".gz".
        format: Name of a format (`WRITABLE`); None: by the extension of the file.
        **options: Options of the format (`Format.write_options`).

    Raises:
        ValueError: The format or an option does not exist, or the format cannot represent a document.
    """
    format = format or _format_by_extension(stream, write=True)
    entry = _entry(format, "write", options)
    assert entry.write is not None
    if isinstance(stream, str | os.PathLike):
        settings = file_options(format, stream)
        if settings and options.get("compress"):
            path = os.fspath(stream)
            raise ValueError(f"{path}: the extension already states how the file is compressed; leave out `compress`")
        with create_file(stream) as file:
            write_documents(documents, file, format, **{**settings, **options})
        return
    if not entry.carries:
        entry.write(documents, stream, **options)
        return
    lost: Counter[Part] = Counter()

    def check_each() -> Iterator[Document]:
        for document in documents:
            _check(entry, document)
            lost.update(_lost_parts(entry, document))
            yield document

    entry.write(check_each(), stream, **options)
    for part in sorted(lost):
        able = [name for name in WRITABLE if FORMATS[name].carries & {part, "strings" if part == "fields" else part}]
        logger.warning(
            "the format %s cannot represent the %s of %s; these formats can: %s",
            format, _PART_NAMES[part], format_count(lost[part], "document"), ", ".join(able),
        )  # fmt: skip


def _lost_parts(entry: Format, document: Document) -> Iterator[Part]:
    """Yield the parts of a document that a format cannot represent, except parts that herdner has computed."""
    kept = entry.carries | document.computed_parts
    has_fields, has_file_id = not kept.isdisjoint(("fields", "strings")), isinstance(document.id, FileId)
    fields = {name for name, value in document.fields.items() if not (value is None or value == "")} - {"id"}
    has_own_tokens = document.n_tokens > 0 and not (has_fields and "tokens" in fields)
    if "id" not in kept and document.id and not has_file_id:
        yield "id"
    if not has_fields and fields - {"offset" if has_file_id else "", "tokens" if document.n_tokens else ""}:
        yield "fields"
    if "tokens" not in kept and has_own_tokens:
        yield "tokens"
    if "confidence" not in kept and any(entity.confidence is not None for entity in document.entities):
        yield "confidence"
    if "names" not in kept and any(len(name.mentions) > 1 for name in document.names):
        yield "names"


def _check(entry: Format, document: Document) -> None:
    """Raise `ValueError` if the file format cannot represent the surrogates or the annotation of a document."""
    check_encodable(document, entry.carries)
    if document.partial is not None and "partial" not in entry.carries:
        problem = f"the format {entry.name} cannot represent a partial annotation"
        raise ValueError(f"document {document.id!r}: {problem}; write JSON lines instead")
    end = 0
    for entity in document.entities:
        if not is_label(entity.label):
            expected = "expected printable words with single spaces between them, without |"
            raise ValueError(f"document {document.id!r}: the label {entity.label!r:.60} cannot be written; {expected}")
        if entity.start < end:
            place = f"{entity.start}..{entity.end}"
            raise ValueError(f"document {document.id!r}: the entity at {place} overlaps another entity; remove one")
        end = entity.end


def _format_by_extension(where: Input | os.PathLike[str], write: bool = False) -> str:
    name = os.fspath(where) if isinstance(where, str | os.PathLike) else ""
    if (format := format_of(name, write=write)) is None:
        names = ", ".join(WRITABLE if write else READABLE)
        raise ValueError(
            f"the format of {repr(name) if name else 'a stream'} is unknown; pass `format`, which is one of {names}"
        )
    return format


def _entry(format: str, direction: Literal["read", "write"], options: Iterable[str] = ()) -> Format:
    """Return the `Format` named ``format``; raise `ValueError` if it lacks an option, or cannot be read or written.

    The format must support ``direction``, reading or writing, and have all ``options``.
    """
    names = READABLE if direction == "read" else WRITABLE
    if format not in names:
        raise ValueError(
            f"cannot {direction} the format {format!r}; {suggestion(format, names)}expected one of {', '.join(names)}"
        )
    entry = FORMATS[format]
    available = entry.read_options if direction == "read" else entry.write_options
    for name in options:
        if name not in available:
            raise ValueError(f"format {format!r} has no option {name!r}; expected one of {', '.join(available)}")
    return entry
