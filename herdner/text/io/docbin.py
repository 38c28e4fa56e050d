"""spaCy's DocBin files (``.spacy``), read from their columns: no spaCy object is made of bytes that may be hostile."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.extras import check_extra
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Source, open_bytes, sources
from herdner.text.sentences import ENGLISH

MAX_BYTES = 1 << 32  # of the file unpacked; a small file may unpack to any size
_MEND = "expected what spaCy's DocBin.to_disk writes; write the file again"


class _Columns(NamedTuple):
    """The tokens of one document; ``None`` for an attribute that the file does not hold."""

    words: list[str]
    spaces: NDArray[np.bool_]
    ent_iob: NDArray[np.uint64] | None
    ent_type: Sequence[str]
    sent_start: NDArray[np.uint64] | None


def read_spacy(where: str | Path | IO[Any], *, strict: bool = False) -> Iterator[Document]:
    """The documents of DocBin files, each with its text, tokens, sentences and entities.

    White space tokens are part of the text alone. Where a document has no sentence borders, they are those of running
    text. One without any entity annotation has no tags. Documents have no id of their own: it is ``FILE#NUMBER``, from
    1. Tables are checked before anything is made of them; user data and span groups are not read. A file is one
    compressed block and is held in memory. Tokens that are in a name without a class, or that continue one which does
    not come before, are told in one warning for each file; with ``strict`` they are an error. Raises FormatError.
    """
    check_extra("spacy", ".spacy files need spaCy")
    for source in sources(where, ("*.spacy",)):
        message = _unpacked(source)
        try:
            with ParseWarnings(source.name, strict) as doubts:
                found = list(_documents(message, source.id, doubts))
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise FormatError(f"{source.name}: damaged DocBin ({what}); {_MEND}") from None
        yield from found


def _unpacked(source: Source) -> dict[str, Any]:
    import srsly  # pyright: ignore[reportMissingTypeStubs]

    with open_bytes(source) as stream:
        data = stream.read(MAX_BYTES + 1)
    if not data:
        raise FormatError(f"{source.name}: is empty; {_MEND}")
    unpack = zlib.decompressobj()
    try:
        plain = unpack.decompress(data, MAX_BYTES)
    except zlib.error:
        raise FormatError(f"{source.name}: no DocBin (not compressed as one); {_MEND}") from None
    if unpack.unconsumed_tail:
        raise FormatError(f"{source.name}: unpacks to more than {MAX_BYTES} bytes; split it into smaller files")
    if not unpack.eof:
        raise FormatError(f"{source.name}: the DocBin ends too early; {_MEND}")
    try:
        message = srsly.msgpack_loads(plain)
    except Exception as error:  # msgpack raises what it likes for damaged bytes
        raise FormatError(f"{source.name}: damaged DocBin ({error}); {_MEND}") from None
    if not isinstance(message, dict):
        raise FormatError(f"{source.name}: no DocBin; {_MEND}")
    return message


def _documents(message: dict[str, Any], id: str, doubts: ParseWarnings) -> Iterator[Document]:
    for number, columns in enumerate(_columns(message), 1):
        try:
            document = _document(columns, f"{id}#{number}")
        except ValueError as error:
            raise ValueError(f"document {number}: {error}") from None
        for what in _doubts(columns):
            doubts.add(what, document=number)
        yield document


def _doubts(columns: _Columns) -> Iterator[str]:
    """What is in doubt about the entities of a document, for each of its tokens."""
    if columns.ent_iob is None:
        return
    last = ""
    for iob, label in zip(columns.ent_iob.tolist(), columns.ent_type, strict=True):
        if iob in (1, 3) and not label:
            yield "a token in a name without a class is read as outside"
        elif iob == 1 and label != last:
            yield "a token that continues no name begins one"
        last = label if iob in (1, 3) else ""


def _columns(message: dict[str, Any]) -> Iterator[_Columns]:
    spacy: Any = import_module("spacy.attrs")  # untyped
    from spacy.strings import get_string_id

    orth, iob, type_, start = map(int, (spacy.ORTH, spacy.ENT_IOB, spacy.ENT_TYPE, spacy.SENT_START))
    attrs = [int(attribute) for attribute in message["attrs"]]
    lengths = np.frombuffer(message["lengths"], "<i4").astype(np.int64)
    spaces = np.frombuffer(message["spaces"], bool)
    table = np.reshape(np.frombuffer(message["tokens"], np.dtype("<u8")), (-1, len(attrs)))
    if lengths.min(initial=0) < 0 or lengths.sum() != len(table) or len(spaces) != len(table):
        raise ValueError(f"lengths of {lengths.sum()} tokens for {len(table)} tokens and {len(spaces)} spaces")
    if orth not in attrs:
        raise ValueError("it holds no words")
    words = {int(get_string_id(word)): word for word in map(str, message["strings"])} | {0: ""}
    flags: list[dict[str, Any]] = message.get("flags") or [{}] * len(lengths)
    if len(flags) != len(lengths):
        raise ValueError(f"{len(flags)} flags for {len(lengths)} documents")
    begin = 0
    for length, flag in zip(lengths.tolist(), flags, strict=True):
        rows = table[begin : begin + length]
        own: dict[int, NDArray[np.uint64]] = {attribute: rows[:, k] for k, attribute in enumerate(attrs)}
        space = np.ones(length, bool) if flag.get("has_unknown_spaces") else spaces[begin : begin + length]
        types = _strings(own[type_], words) if type_ in own else [""] * length
        yield _Columns(_strings(own[orth], words), space, own.get(iob), types, own.get(start))
        begin += length


def _strings(column: NDArray[np.uint64], words: dict[int, str]) -> list[str]:
    try:
        return [words[code] for code in column.tolist()]
    except KeyError as error:
        raise ValueError(f"no string for the number {error}") from None


def _document(columns: _Columns, id: str) -> Document:
    pieces = [word + " " if space else word for word, space in zip(columns.words, columns.spaces.tolist(), strict=True)]
    text = "".join(pieces)
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64) - columns.spaces
    starts = ends - np.array([len(word) for word in columns.words], np.int64)
    kept = np.array([bool(word) and not word.isspace() for word in columns.words], bool)
    tokens = [word for word, keep in zip(columns.words, kept.tolist(), strict=True) if keep]
    if any(len(token.split()) != 1 for token in tokens):
        raise ValueError("a token has white space inside; expected tokens without")
    entities = _entities(columns, text, starts.tolist(), ends.tolist())
    starts, ends = starts[kept], ends[kept]
    borders = _borders(columns.sent_start, kept)
    if borders is None:
        borders = ENGLISH.loop.offsets(text, tokens, starts, ends)
    document = Document(text, tokens, starts, ends, borders, id=id)
    return document if entities is None else document.with_entities(entities)


def _entities(columns: _Columns, text: str, starts: list[int], ends: list[int]) -> list[Entity] | None:
    """The entities by spaCy's tags: 3 begins one, 1 continues it, 2 is outside, 0 is unknown. None: nothing known."""
    if columns.ent_iob is None or (len(columns.words) and not columns.ent_iob.any()):
        return None
    spans: list[list[int]] = []
    last = ""
    for i, (iob, label) in enumerate(zip(columns.ent_iob.tolist(), columns.ent_type, strict=True)):
        label = label if iob in (1, 3) else ""
        if label and iob == 1 and label == last:
            spans[-1][1] = i
        elif label:
            spans.append([i, i])
        last = label
    found = ((starts[first], ends[last], columns.ent_type[first]) for first, last in spans)
    return [Entity(start, end, label, text[start:end]) for start, end, label in found if text[start:end].strip()]


def _borders(sent_start: NDArray[np.uint64] | None, kept: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Sentence offsets over the kept tokens; None where nobody has said where sentences begin (0 is "unknown")."""
    if sent_start is None or not sent_start[1:].any():
        return None
    place = np.cumsum(kept) - kept  # of each token among those kept, or of the next one that is
    n_tokens = int(kept.sum())
    return np.unique(np.append(place[sent_start == 1], [0, n_tokens])).astype(np.int64)
