"""Documents and entities: the values that flow through the tagger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from herdner._ext.tags import make_entities
from herdner._ext.text import misplaced
from herdner.text.entity import Entity
from herdner.text.frames import to_frame
from herdner.text.open import Open, Place, is_open
from herdner.text.plain_data import Plain, object_of
from herdner.text.show import to_html
from herdner.text.source_map import SourceMap
from herdner.text.tags import Scheme, Span, spans_from_tags, tags_from_spans


class Projection(NamedTuple):
    """Entities laid on tokens."""

    spans: list[Span]  # over tokens, in the order of the text, disjoint
    n_widened: int  # entities that did not meet token borders and were widened to the tokens they touch
    n_dropped: int  # entities that touch no token, or only tokens that an earlier entity holds


class Tagging(NamedTuple):
    """Spans of tokens, disjoint and in the order of the text, and the scheme in which they are written as tags."""

    spans: Sequence[Span]
    scheme: Scheme = "iob2"


class _Tags:
    """The field ``tags`` of a `Document`: kept as given; of a `Tagging`, written when somebody asks for them."""

    @overload
    def __get__(self, document: None, owner: type) -> None: ...
    @overload
    def __get__(self, document: Document, owner: type) -> Sequence[str] | None: ...
    def __get__(self, document: Document | None, owner: type) -> Sequence[str] | None:
        if document is None:
            return None  # the default
        held = document.__dict__["tags"]
        if isinstance(held, Tagging):
            held = tags_from_spans(held.spans, document.n_tokens, held.scheme, document.sentence_offsets)
            document.__dict__["tags"] = held
        return held

    def __set__(self, document: Document, tags: Sequence[str] | Tagging | None) -> None:
        if isinstance(tags, Tagging):
            document.__dict__["spans"] = list(tags.spans)
        document.__dict__["tags"] = tags


@dataclass(frozen=True, eq=False)
class Document:
    """A text with its tokens and sentences; tags, spans and entities where they are known.

    Attributes:
        text: The input, untouched.
        tokens: Token t is ``text[token_starts[t]:token_ends[t]]``; white space is never one.
        token_starts: int64[n].
        token_ends: int64[n].
        sentence_offsets: int64[S + 1]. Sentence s, never empty, holds the tokens
            ``sentence_offsets[s]:sentence_offsets[s + 1]``.
        tags: What is known of the tokens: strings, which stay as they are, however malformed, or a `Tagging`, whose
            strings are written when they are asked for. None means that nobody has annotated the document; annotated
            but not yet tokenised, it has empty tags.
        entities: The names, in the order of the text.
        id: As its file or its user calls it.
        fields: What else came with the text.
        open: Of a document that is annotated in part, what is not; its open tokens have the tag O.
        source_map: Where the text stands in the page that it was taken from.

    Raises:
        ValueError: Tokens, sentences or entities are not at such places.
    """

    text: str
    tokens: Sequence[str]
    token_starts: NDArray[np.int64]
    token_ends: NDArray[np.int64]
    sentence_offsets: NDArray[np.int64]
    tags: _Tags = _Tags()
    entities: tuple[Entity, ...] = ()
    id: str | None = None
    fields: dict[str, object] = field(default_factory=dict[str, object])
    open: Open | None = None
    source_map: SourceMap | None = None

    def __post_init__(self) -> None:
        try:
            fault = misplaced(self.text, self.tokens, self.token_starts, self.token_ends, self.sentence_offsets)
        except (TypeError, BufferError) as error:
            fault = f"text is a string, tokens a list of them, places and offsets are int64 arrays ({error})"
        if fault is not None:
            raise ValueError(f"document {self.id!r}: {fault}")
        length = len(self.text)
        for entity in self.entities:
            if not 0 <= entity.start <= entity.end <= length:
                raise ValueError(
                    f"document {self.id!r} has {length} characters, but an entity is at {entity.start}..{entity.end}"
                )
        for place in self.open.places if self.open else ():
            if not 0 <= place.start < place.end <= length:
                raise ValueError(
                    f"document {self.id!r} has {length} characters, but open tags are at {place.start}..{place.end}"
                )

    @classmethod
    def from_tokens(
        cls,
        sentences: Iterable[Sequence[str]],
        tags: Iterable[Sequence[str]] | None = None,
        *,
        id: str | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> Document:
        """A document from its sentences' tokens, joined by one space, the sentences by a line break.

        Empty sentences are left out. ``tags`` has one sequence per sentence, in any scheme; it fills the entities too.

        Raises:
            ValueError: Tokens and tags differ in number.
        """
        sentences = [list(sentence) for sentence in sentences]
        flat_tags = None if tags is None else _flat_tags(sentences, list(tags))
        sentences = [sentence for sentence in sentences if sentence]
        tokens = [token for sentence in sentences for token in sentence]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        ends = np.cumsum(lengths + 1) - 1  # every separator is one character wide
        document = cls(
            text="\n".join(map(" ".join, sentences)),
            tokens=tokens,
            token_starts=ends - lengths,
            token_ends=ends,
            sentence_offsets=offsets_from_lengths(map(len, sentences)),
            id=id,
            fields=dict(fields or {}),
        )
        return document if flat_tags is None else document.with_tags(flat_tags)

    @classmethod
    def from_aligned(
        cls,
        text: str,
        sentences: Iterable[Sequence[str]],
        *,
        id: str | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> Document:
        """A document of the text and its sentences' tokens, found in it one after the other.

        Raises:
            ValueError: They are not there, or something other than white space stands between them.
        """
        sentences = [sentence for sentence in sentences if len(sentence)]
        tokens = [token for sentence in sentences for token in sentence]
        starts = align_tokens(tokens, text)
        if starts is None:
            raise ValueError("the tokens are not those of the text; expected them in order, with white space between")
        ends = starts + np.fromiter(map(len, tokens), np.int64, len(tokens))
        offsets = offsets_from_lengths(map(len, sentences))
        return cls(text, tokens, starts, ends, offsets, id=id, fields=dict(fields or {}))

    @classmethod
    def from_text(cls, text: str, *, id: str | None = None, fields: Mapping[str, object] | None = None) -> Document:
        """A document without tokens, as the readers of running text give it where they have no tokenizer."""
        none = np.zeros(0, np.int64)
        return cls(text, [], none, none, np.zeros(1, np.int64), id=id, fields=dict(fields or {}))

    @property
    def n_tokens(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    @property
    def n_sentences(self) -> int:
        """The number of sentences."""
        return len(self.sentence_offsets) - 1

    def sentences(self) -> Iterator[Sequence[str]]:
        """The tokens of each sentence."""
        return (self.tokens[start:end] for start, end in pairwise(self.sentence_offsets.tolist()))

    def sentence_tags(self) -> Iterator[Sequence[str]]:
        """The tags of each sentence.

        Raises:
            ValueError: The document has none.
        """
        if self.tags is None:
            raise ValueError(f"document {self.id!r} has no tags")
        tags = self.tags
        return (tags[start:end] for start, end in pairwise(self.sentence_offsets.tolist()))

    @cached_property
    def spans(self) -> list[Span] | None:
        """The labelled spans of tokens: those that were given, else the entities laid on the tokens (`project`), else
        what the tags say. None where nobody has annotated the document.
        """
        if self.entities:
            return project(self.entities, self).spans
        return None if self.tags is None else spans_from_tags(self.tags, self.sentence_offsets)

    def with_tags(self, tags: Sequence[str]) -> Document:
        """The same document with these tags (one per token, any scheme), and the entities they say.

        Malformed sequences are read as conlleval does (`spans_from_tags`). "?" is any tag, "PER|ORG" any inside a name
        of one of these classes, "B-PER|O" one of these (`Document.open`). Raises ValueError on a wrong number of tags.
        """
        if len(tags) != self.n_tokens:
            raise ValueError(f"document {self.id!r} has {self.n_tokens} tokens but got {len(tags)} tags")
        if any(map(is_open, set(tags))):
            return self._opened(tags)
        entities = self.entities_from_spans(spans_from_tags(tags, self.sentence_offsets))
        return replace(self, tags=tags, entities=entities)

    def _opened(self, tags: Sequence[str]) -> Document:
        """`with_tags` of tags some of which are open."""
        known = self.open or Open()
        new = [
            Place(int(self.token_starts[t]), int(self.token_ends[t]), tag) for t, tag in enumerate(tags) if is_open(tag)
        ]
        places = tuple(sorted({*known.places, *new}))
        closed = ["O" if is_open(tag) else tag for tag in tags]
        return replace(self, open=replace(known, places=places)).with_tags(closed)

    def open_tokens(self) -> dict[int, str]:
        """The tokens whose tags are open in some `Place`, with these."""
        found: dict[int, str] = {}
        for start, end, tags in self.open.places if self.open else ():
            first = int(np.searchsorted(self.token_ends, start, side="right"))
            stop = int(np.searchsorted(self.token_starts, end, side="left"))
            found |= dict.fromkeys(range(first, stop), tags)
        return found

    def with_spans(
        self,
        spans: Sequence[Span],
        scheme: Scheme = "iob2",
        confidences: Sequence[float] | NDArray[np.floating[Any]] | None = None,
    ) -> Document:
        """The same document with these spans of its tokens (disjoint, in order), each an entity as sure as its
        confidence says; tags are written in the ``scheme``, and nothing is open.

        Raises:
            ValueError: The spans are no such.
        """
        for before, span in pairwise([(0, 0, ""), *spans]):
            if not before[1] <= span[0] < span[1] <= self.n_tokens:
                raise ValueError(
                    f"document {self.id!r} has {self.n_tokens} tokens: its spans must be of these, not empty, and one"
                    f" behind the other, not {tuple(before)} and {tuple(span)}"
                )
        entities = self.entities_from_spans(spans, confidences)
        return replace(self, tags=Tagging(spans, scheme), entities=entities, open=None)

    def with_found(
        self, spans: list[Span], tags: Tagging | list[str], confidences: NDArray[np.float64] | None
    ) -> Document:
        """The same document with names that a tagger has just found among these very tokens, and their tags: nothing is
        looked at again.
        """
        entities = self.entities_from_spans(spans, confidences)
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, spans=spans, tags=tags, entities=entities)
        return found

    def with_entities(self, entities: Iterable[Entity], scheme: Scheme = "iob2") -> Document:
        """The same document with these entities (sorted, otherwise as given) and the tags that `project` finds."""
        ordered = tuple(sorted(entities, key=lambda entity: (entity.start, entity.end)))
        return replace(self, entities=ordered, tags=Tagging(project(ordered, self).spans, scheme))

    def guessed(self, entities: Iterable[Entity]) -> Document:
        """The same document, which nobody has annotated, with entities that somebody or something proposes."""
        ordered = tuple(sorted(entities, key=lambda entity: (entity.start, entity.end)))
        return replace(self, tags=None, entities=ordered)

    def opened(self, left: Open) -> Document:
        """The same document, of which this is left open.

        Raises:
            ValueError: An entity lies there.
        """
        if fault := left.fault((e.start, e.end, e.label) for e in self.entities):
            raise ValueError(f"document {self.id!r}: {fault}")
        return replace(self, open=left)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Document) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.text, self.id, self.entities))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads again: "id", "text", "tokens" (a list for each sentence), "tags",
        "entities", "open" and "fields".
        """
        left, sentences = self.open, pairwise(self.sentence_offsets.tolist())
        return {
            "id": self.id,
            "text": self.text,
            "tokens": [list(self.tokens[start:end]) for start, end in sentences],
            "tags": None if self.tags is None else list(self.tags),
            "entities": [asdict(entity) for entity in self.entities],
            "open": None
            if left is None
            else {
                "places": [place._asdict() for place in left.places],
                "annotated": None if left.annotated is None else list(left.annotated),
            },
            "fields": dict(self.fields),
        }

    def to_json(self) -> str:
        """`to_dict` as one line of JSON.

        Raises:
            TypeError: Its fields hold what JSON has no form for.
        """
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Document:
        """The document that `to_dict` has described; all but "text" may be left out.

        Raises:
            ValueError: The mapping is no document.
        """
        plain = Plain.of(values)
        if plain.sentences:
            document = Document.from_aligned(plain.text, plain.sentences, id=plain.id, fields=plain.fields)
        else:
            document = Document.from_text(plain.text, id=plain.id, fields=plain.fields)
        if plain.tags is not None and len(plain.tags) != document.n_tokens:
            raise ValueError(f"document {plain.id!r} has {document.n_tokens} tokens but {len(plain.tags)} tags")
        return replace(document, tags=cast("Any", plain.tags), entities=plain.entities, open=plain.open)

    @staticmethod
    def from_json(text: str) -> Document:
        """The document that `to_json` has written.

        Raises:
            ValueError: The text is no document.
        """
        return Document.from_dict(object_of(text))

    def to_frame(self, backend: str = "pandas") -> Any:
        """The entities as a data frame; of several documents: `herdner.text.frames.to_frame`."""
        return to_frame([self], backend)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return to_html(self)

    def _values(self) -> tuple[object, ...]:
        """What makes two documents equal, as plain values."""
        arrays = self.tokens, self.token_starts, self.token_ends, self.sentence_offsets
        tags = None if self.tags is None else list(self.tags)
        return self.text, *map(list, arrays), tags, self.entities, self.id, self.fields, self.open

    def entities_from_spans(
        self, spans: Sequence[Span], confidences: Sequence[float] | NDArray[np.floating[Any]] | None = None
    ) -> tuple[Entity, ...]:
        """Entities with character offsets for token spans, each with its confidence in [0, 1] where known."""
        sure = None if confidences is None else np.ascontiguousarray(confidences, np.float64)
        return make_entities(Entity, list(spans), self.text, self.token_starts, self.token_ends, sure)


def project(entities: Sequence[Entity], document: Document) -> Projection:
    """Character spans laid on the document's tokens.

    An entity that does not meet token borders is widened to the tokens it touches. Where two then claim one token, the
    earlier keeps it and the later gets what is left of its tokens, or is dropped when nothing is left.
    """
    ordered = sorted(entities, key=lambda entity: (entity.start, entity.end))
    starts = np.fromiter((entity.start for entity in ordered), np.int64, len(ordered))
    ends = np.fromiter((entity.end for entity in ordered), np.int64, len(ordered))
    first = np.searchsorted(document.token_ends, starts, side="right").tolist()
    stop = np.searchsorted(document.token_starts, ends, side="left").tolist()
    spans: list[Span] = []
    n_widened = n_dropped = taken = 0
    for entity, begin, end in zip(ordered, first, stop, strict=True):
        begin = max(begin, taken)
        if begin >= end:
            n_dropped += 1
            continue
        n_widened += bool(document.token_starts[begin] != entity.start or document.token_ends[end - 1] != entity.end)
        spans.append(Span(begin, end, entity.label))
        taken = end
    return Projection(spans, n_widened, n_dropped)


def align_tokens(tokens: Sequence[str], text: str) -> NDArray[np.int64] | None:
    """int64[n]: where each token begins in the text, with only white space around them; None where they do not fit."""
    starts = np.zeros(len(tokens), np.int64)
    end = 0
    for i, token in enumerate(tokens):
        start = text.find(token, end)
        if start < 0 or not (start == end or text[end:start].isspace()):
            return None
        starts[i] = start
        end = start + len(token)
    return None if text[end:].strip() else starts


def offsets_from_lengths(lengths: Iterable[int]) -> NDArray[np.int64]:
    """int64[n + 1]: 0 and the running sums of n lengths."""
    values = np.fromiter(lengths, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])


def _flat_tags(sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> list[str]:
    if [len(sentence) for sentence in sentences] != [len(sentence) for sentence in tags]:
        raise ValueError("every sentence needs as many tags as tokens")
    return [tag for sentence in tags for tag in sentence]
