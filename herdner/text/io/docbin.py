"""Reader of spaCy's DocBin files (``.spacy``) that creates no spaCy objects from untrusted bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.extras import check_extra
from herdner.base.messages import one_line
from herdner.text.document import Document
from herdner.text.entity import Entity, with_numbered_names
from herdner.text.io.jsonl import Warn
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Input, Source, open_bytes, sources
from herdner.text.sentences import ENGLISH

MAX_BYTES = 1 << 32  # size of an unpacked file
# A file may unpack to at most _MIN_LIMIT bytes plus _MAX_RATIO times its size; the usual ratio is about five.
_MAX_RATIO, _MIN_LIMIT = 100, 1 << 22
_REMEDY = "expected what spaCy's DocBin.to_disk writes; write the file again"


class _Columns(NamedTuple):
    """Token attributes of one document in a DocBin file. An attribute that is missing in the file is None."""

    words: list[str]
    spaces: NDArray[np.bool_]
    ent_iob: NDArray[np.uint64] | None
    ent_type: Sequence[str]
    ent_id: Sequence[str]
    sent_start: NDArray[np.uint64] | None


def read_spacy(where: Input, *, strict: bool = False) -> Iterator[Document]:
    """Read documents with text, tokens, sentences and entities from spaCy's DocBin files.

    White space tokens become part of the text, but not of the tokens. A document without sentence borders is segmented
    like plain text. A document without any entity attribute is not annotated. Entities with the same ``ent.ent_id_``
    are mentions of one name. Ids are ``FILE#NUMBER``, from 1. User data and span groups are ignored. Inconsistent
    entity attributes of tokens are logged as warnings.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`). A file is held in memory.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents.

    Raises:
        FormatError: A file is damaged or not a DocBin.
        MissingExtra: spaCy is not installed.
    """
    check_extra("spacy", ".spacy files need spaCy")
    for source in sources(where, ("*.spacy",)):
        message = _unpack(source)
        try:
            with ParseWarnings(source.name, strict) as warnings:
                documents = list(_documents(message, source, warnings))
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else one_line(error)
            raise FormatError(f"{source.name}: damaged DocBin ({what}); {_REMEDY}") from None
        yield from documents


def readable_docbin(data: bytes) -> bytes:
    """Return a DocBin that the reader accepts: one that unpacks to too much for its size is stored uncompressed.

    Args:
        data: The bytes of a DocBin.

    Raises:
        ValueError: The DocBin unpacks to more than `MAX_BYTES`.
    """
    plain = zlib.decompress(data)
    if len(plain) >= MAX_BYTES:
        raise ValueError(f"the DocBin would unpack to {len(plain):,} bytes; write the documents to several files")
    return data if len(plain) < _MIN_LIMIT + _MAX_RATIO * len(data) else zlib.compress(plain, 0)


def _unpack(source: Source) -> dict[str, Any]:
    import srsly  # pyright: ignore[reportMissingTypeStubs]

    with open_bytes(source) as stream:
        data = stream.read(MAX_BYTES + 1)
    if not data:
        raise FormatError(f"{source.name}: the file is empty; {_REMEDY}")
    unpack = zlib.decompressobj()
    try:
        most = min(MAX_BYTES, _MIN_LIMIT + _MAX_RATIO * len(data))
        plain = unpack.decompress(data, most)
    except zlib.error:
        raise FormatError(f"{source.name}: not a DocBin (not compressed by zlib); {_REMEDY}") from None
    if unpack.unconsumed_tail or (len(plain) == most and not unpack.eof):
        raise FormatError(f"{source.name}: the file unpacks to more than {most} bytes; split it into smaller files")
    if not unpack.eof:
        raise FormatError(f"{source.name}: the DocBin ends too early; {_REMEDY}")
    try:
        message = srsly.msgpack_loads(plain)
    except Exception as error:  # msgpack raises many types for damaged bytes
        raise FormatError(f"{source.name}: damaged DocBin ({one_line(error)}); {_REMEDY}") from None
    if not isinstance(message, dict):
        raise FormatError(f"{source.name}: not a DocBin; {_REMEDY}")
    return message


def _documents(message: dict[str, Any], source: Source, warnings: ParseWarnings) -> Iterator[Document]:
    for number, columns in enumerate(_columns(message), 1):
        problems: list[str] = []
        try:
            document = _document(columns, source.document_id(number), problems.append)
        except ValueError as error:
            raise ValueError(f"document {number}: {error}") from None
        for problem in problems:
            warnings.add(problem, document=number)
        yield document


def _columns(message: dict[str, Any]) -> Iterator[_Columns]:
    spacy: Any = import_module("spacy.attrs")  # untyped
    from spacy.strings import get_string_id

    names = spacy.ORTH, spacy.ENT_IOB, spacy.ENT_TYPE, spacy.ENT_ID, spacy.SENT_START
    orth, iob, type_, id_, start = map(int, names)
    attrs = [int(attribute) for attribute in message["attrs"]]
    lengths = np.frombuffer(message["lengths"], "<i4").astype(np.int64)
    spaces = np.frombuffer(message["spaces"], bool)
    table = np.reshape(np.frombuffer(message["tokens"], np.dtype("<u8")), (-1, len(attrs)))
    if lengths.min(initial=0) < 0 or lengths.sum() != len(table) or len(spaces) != len(table):
        raise ValueError(
            f"document lengths must not be negative, and their sum, {lengths.sum()}, must equal both the number of"
            f" tokens, {len(table)}, and the number of entries of `spaces`, {len(spaces)}"
        )
    if orth not in attrs:
        raise ValueError("the attribute ORTH, which contains the words, is missing")
    words = {int(get_string_id(word)): word for word in map(str, message["strings"])} | {0: ""}
    flags: list[dict[str, Any]] = message.get("flags") or [{}] * len(lengths)
    if len(flags) != len(lengths):
        raise ValueError(f"there must be one set of flags for each of the {len(lengths)} documents, got {len(flags)}")
    begin = 0
    for length, flag in zip(lengths.tolist(), flags, strict=True):
        rows = table[begin : begin + length]
        own: dict[int, NDArray[np.uint64]] = {attribute: rows[:, k] for k, attribute in enumerate(attrs)}
        space = np.ones(length, bool) if flag.get("has_unknown_spaces") else spaces[begin : begin + length]
        types, ids = (_strings(own[each], words) if each in own else [""] * length for each in (type_, id_))
        yield _Columns(_strings(own[orth], words), space, own.get(iob), types, ids, own.get(start))
        begin += length


def _strings(column: NDArray[np.uint64], words: dict[int, str]) -> list[str]:
    try:
        return [words[code] for code in column.tolist()]
    except KeyError as error:
        raise ValueError(f"a token refers to the string with the hash {error}, which the file lacks") from None


def _document(columns: _Columns, id: str, warn: Warn) -> Document:
    pieces = [word + " " if space else word for word, space in zip(columns.words, columns.spaces.tolist(), strict=True)]
    text = "".join(pieces)
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64) - columns.spaces
    starts = ends - np.array([len(word) for word in columns.words], np.int64)
    is_token = np.array([bool(word) and not word.isspace() for word in columns.words], bool)
    tokens = [word for word, keep in zip(columns.words, is_token.tolist(), strict=True) if keep]
    if invalid := next((token for token in tokens if len(token.split()) != 1), None):
        raise ValueError(f"the token {invalid!r:.60} has white space inside; expected tokens without white space")
    entities = _entities(columns, text, starts.tolist(), ends.tolist(), warn)
    starts, ends = starts[is_token], ends[is_token]
    borders = _borders(columns.sent_start, is_token)
    if borders is None:
        borders = ENGLISH.loop.offsets(text, tokens, starts, ends)
    document = Document(text, tokens, starts, ends, borders, id=id)
    return document if entities is None else document.with_entities(entities)


def _entities(columns: _Columns, text: str, starts: list[int], ends: list[int], warn: Warn) -> list[Entity] | None:
    """Return the entities of a DocBin document; return None if the file has no entity annotation for any token.

    spaCy's codes are 3 for the first token of an entity, 1 for a further token, 2 outside, 0 unknown.
    """
    if columns.ent_iob is None or (len(columns.words) and not columns.ent_iob.any()):
        return None
    spans: list[list[int]] = []
    last = ""
    for i, (iob, label) in enumerate(zip(columns.ent_iob.tolist(), columns.ent_type, strict=True)):
        if iob in (1, 3) and not label:
            warn("an entity token without a label is read as a token outside entities")
        label = label if iob in (1, 3) else ""
        if label and iob == 1 and label == last:
            spans[-1][1] = i
        elif label:
            if iob == 1:
                warn("a token marked as inside an entity follows no entity with its label; it begins an entity")
            spans.append([i, i])
        last = label
    entities = [
        Entity(start := starts[first], end := ends[last], columns.ent_type[first], text[start:end])
        for first, last in spans
    ]
    entities = with_numbered_names(entities, [columns.ent_id[first] or None for first, _ in spans])
    return [entity for entity in entities if entity.text.strip()]


def _borders(sent_start: NDArray[np.uint64] | None, is_token: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return the sentence offsets, counted in tokens that are not white space.

    Return None if ``sent_start`` is 0 (unknown) for all tokens.
    """
    if sent_start is None or not sent_start[1:].any():
        return None
    index = np.cumsum(is_token) - is_token  # number of tokens before each word
    n_tokens = int(is_token.sum())
    return np.unique(np.append(index[sent_start == 1], [0, n_tokens])).astype(np.int64)
