"""Documents: texts with tokens, sentences and an optional annotation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner._ext.tags import make_entities, with_name_ids
from herdner._ext.text import find_offset_fault
from herdner.base.checks import check_text
from herdner.base.messages import format_count, number_advice
from herdner.text.entity import Entity, Name, names_of, to_frame
from herdner.text.partial import PartialAnnotation, UnannotatedRange, is_ambiguous
from herdner.text.plain_data import DocumentParts, parse_object
from herdner.text.show import to_html
from herdner.text.source_map import SourceMap
from herdner.text.table_row import TableRow
from herdner.text.tags import Scheme, Span, spans_from_tags, tags_from_spans

Sentences = Iterable[Sequence[str]]
"""Tokens, or tags, of each sentence."""

Fields = Mapping[str, object]
"""Values of a document by name, other than its text and annotation."""

Confidences = Sequence[float] | NDArray[np.floating[Any]]
"""Probability in [0, 1] that each entity is right."""


class Projection(NamedTuple):
    """Token spans of a document's entities, and how many entities were widened to whole tokens or dropped.

    Attributes:
        spans: Token spans in the order of the text; no two overlap.
        n_widened: Number of entities that were widened because they begin or end within a token.
        n_dropped: Number of entities that were dropped because they touch no token, or only tokens of earlier entities.
    """

    spans: list[Span]
    n_widened: int
    n_dropped: int


_N_SHOWN = 60  # characters of the text in the representation of a document


@dataclass(frozen=True, eq=False, repr=False)
class Document:
    """Text with its tokens and sentences, and with its entities if the document is annotated.

    The annotation is stored as token spans; `tags` are computed from them. Use `with_tags`, `with_spans` and
    `with_entities` to annotate a document: they keep spans and entities consistent.

    Attributes:
        text: The input, unchanged.
        tokens: Token t is ``text[token_starts[t]:token_ends[t]]``. No token consists of white space only.
        token_starts: int64[n], offset of the first character of each token.
        token_ends: int64[n], offset behind the last character of each token.
        sentence_offsets: int64[S + 1]. Sentence s has the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``; no
            sentence is empty.
        spans: Labelled token spans in the order of the text; None if there are neither annotations nor proposals.
        entities: Entities with character offsets, in the order of the text. They may begin or end within tokens.
        id: Identifier from the file or the caller.
        fields: Other values from the file or the caller.
        partial: Undecided parts of a partial annotation. Undecided tokens have the tag O.
        source_map: Positions of the text in the HTML page from which it was extracted.
        row: Row of the table from which the document was read; `herdner.write_documents` writes its columns again.
        is_proposal: The spans and entities are proposals of a model or tool, not an annotation.
        scheme: Tag scheme in which `tags` are computed.
        source_tags: Tags as given to `with_tags`, kept because they may be malformed; `tags` returns them unchanged.
        computed_parts: Parts that herdner has computed: "tokens" by a tokenizer, "confidence" and "names" by a tagger.
            `herdner.write_documents` does not warn if the format of the output cannot represent them.

    Raises:
        ValueError: Offsets of tokens, sentences, entities or unannotated ranges are invalid.
    """

    text: str
    tokens: Sequence[str]
    token_starts: NDArray[np.int64]
    token_ends: NDArray[np.int64]
    sentence_offsets: NDArray[np.int64]
    spans: Sequence[Span] | None = None
    entities: tuple[Entity, ...] = ()
    id: str | None = None
    fields: dict[str, object] = field(default_factory=dict[str, object])
    partial: PartialAnnotation | None = None
    source_map: SourceMap | None = None
    row: TableRow | None = None
    is_proposal: bool = False
    scheme: Scheme = "iob2"
    source_tags: Sequence[str] | None = None
    computed_parts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check all offsets of the document, and raise `ValueError` for invalid ones."""
        try:
            fault = find_offset_fault(self.text, self.tokens, self.token_starts, self.token_ends, self.sentence_offsets)
        except (TypeError, BufferError) as error:
            fault = f"text must be a string, tokens a list of strings, and all offsets int64 arrays ({error})"
        if fault is not None:
            raise ValueError(f"{self._title}: {fault}")
        length = len(self.text)
        for entity in self.entities:
            if not 0 <= entity.start < entity.end <= length:
                problem = f"{self._title} has {length} characters, but an entity is at {entity.start}..{entity.end}"
                raise ValueError(f"{problem}; expected a span of at least one character within the text")
        for each in self.partial.unannotated if self.partial else ():
            if not 0 <= each.start < each.end <= length:
                problem = (
                    f"{self._title} has {length} characters, but its partial annotation has a range at"
                    f" {each.start}..{each.end}"
                )
                raise ValueError(f"{problem}; expected at least one character within the text")

    @classmethod
    def from_tokens(
        cls, sentences: Sentences, tags: Sentences | None = None, *, id: str | None = None, fields: Fields | None = None
    ) -> Document:
        """Build a document from tokenized sentences, optionally annotated with a tag for each token.

        The text joins tokens by one space and sentences by a line break.

        Args:
            sentences: Tokens of each sentence; empty sentences are left out.
            tags: Tags of each sentence, in any scheme, as in `with_tags`.
            id: Identifier of the document.
            fields: Other values to keep with the document.

        Returns:
            The document, annotated if ``tags`` are given.

        Raises:
            ValueError: A sentence has more or fewer tags than tokens.
        """
        sentences = [list(sentence) for sentence in sentences]
        flat_tags = None if tags is None else _flat_tags(sentences, list(tags))
        sentences = [sentence for sentence in sentences if sentence]
        tokens = [check_text(token, "token") for sentence in sentences for token in sentence]
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
        cls, text: str, sentences: Sentences, *, id: str | None = None, fields: Fields | None = None
    ) -> Document:
        """Build a document from a text and tokens. The text must consist of these tokens and white space.

        Args:
            text: The text.
            sentences: Tokens of each sentence, in the order of the text; empty sentences are left out.
            id: Identifier of the document.
            fields: Other values to keep with the document.

        Returns:
            The document, without annotation.

        Raises:
            ValueError: The tokens do not occur in this order with only white space between them.
        """
        sentences = [sentence for sentence in sentences if len(sentence)]
        text, tokens = check_text(text, "text"), [check_text(token, "token") for part in sentences for token in part]
        starts = align_tokens(tokens, text)
        if starts is None:
            raise ValueError(
                "the tokens do not match the text; expected all tokens in order, with only white space between tokens"
            )
        ends = starts + np.fromiter(map(len, tokens), np.int64, len(tokens))
        offsets = offsets_from_lengths(map(len, sentences))
        return cls(text, tokens, starts, ends, offsets, id=id, fields=dict(fields or {}))

    @classmethod
    def from_text(cls, text: str, *, id: str | None = None, fields: Fields | None = None) -> Document:
        """Build a document that has a text but no tokens, such as a document from a plain text file.

        Args:
            text: The text.
            id: Identifier of the document.
            fields: Other values to keep with the document.

        Returns:
            The document, without tokens and annotation.
        """
        empty = np.zeros(0, np.int64)
        return cls(check_text(text, "text"), [], empty, empty, np.zeros(1, np.int64), id=id, fields=dict(fields or {}))

    @property
    def n_tokens(self) -> int:
        """Number of tokens in the document."""
        return len(self.tokens)

    @property
    def n_sentences(self) -> int:
        """Number of sentences in the document."""
        return len(self.sentence_offsets) - 1

    def sentences(self) -> Iterator[Sequence[str]]:
        """Return an iterator over the sentences of the document, each as a sequence of tokens."""
        return (self.tokens[start:end] for start, end in pairwise(self.sentence_offsets.tolist()))

    def gaps(self) -> list[str]:
        """Return the n + 1 pieces of text before, between and behind the n tokens."""
        ends, starts = [0, *self.token_ends.tolist()], [*self.token_starts.tolist(), len(self.text)]
        return [self.text[end:start] for end, start in zip(ends, starts, strict=True)]

    def sentence_tags(self) -> Iterator[Sequence[str]]:
        """Return an iterator over the sentences of the document, each as a sequence of tags.

        Raises:
            ValueError: The document is not annotated.
        """
        if self.tags is None:
            raise ValueError(f"{self._title} has no tags; tag or annotate the document first")
        tags = self.tags
        return (tags[start:end] for start, end in pairwise(self.sentence_offsets.tolist()))

    @property
    def is_annotated(self) -> bool:
        """True if the document is annotated, even if the annotation contains no name."""
        return self.spans is not None and not self.is_proposal

    @cached_property
    def tags(self) -> Sequence[str] | None:
        """Tags of all tokens: the tags in the file (`source_tags`) if there are any, else tags computed from the spans.

        None if the document is not annotated.
        """
        if self.spans is None or self.is_proposal or self.source_tags is not None:
            return self.source_tags
        return tags_from_spans(self.spans, self.n_tokens, self.scheme, self.sentence_offsets)

    @cached_property
    def names(self) -> tuple[Name, ...]:
        """Names in the document, each with all its mentions, in the order of their first mentions.

        Entities whose `name_id` is None belong to no name.
        """
        return names_of(self.entities)

    def unannotated_tokens(self) -> dict[int, str]:
        """Return the undecided tokens of a partial annotation: a dict from token index to the possible tags."""
        tokens: dict[int, str] = {}
        for start, end, tags in self.partial.unannotated if self.partial else ():
            first = int(np.searchsorted(self.token_ends, start, side="right"))
            stop = int(np.searchsorted(self.token_starts, end, side="left"))
            tokens |= dict.fromkeys(range(first, stop), tags)
        return tokens

    def with_tags(self, tags: Sequence[str]) -> Document:
        """Return a copy of the document, annotated by one tag for each token.

        Args:
            tags: One tag for each token, in any scheme. Malformed sequences are read as conlleval reads them
                (`spans_from_tags`). A token may be undecided: ``"?"`` stands for any tag, ``"PER|ORG"`` for any tag
                inside a name with one of these labels, ``"B-PER|O"`` for exactly these tags. Undecided tokens go to
                `partial`.

        Returns:
            The document with these tags and their spans and entities.

        Raises:
            ValueError: The number of tags differs from the number of tokens, or a tag cannot be parsed.
            TypeError: A tag is not a string.
        """
        if len(tags) != self.n_tokens:
            raise ValueError(
                f"{self._title} has {self.n_tokens} tokens but got {len(tags)} tags; expected one tag for each token"
            )
        for tag in tags:
            if not isinstance(tag, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
                raise TypeError(f"a tag must be a string such as 'B-PER', got {tag!r:.60}{number_advice(tag)}")
        partial = self.partial
        if any(map(is_ambiguous, set(tags))):
            partial = self._with_ambiguous(tags)
            tags = ["O" if is_ambiguous(tag) else tag for tag in tags]
        spans = spans_from_tags(tags, self.sentence_offsets)
        entities = self.entities_from_spans(spans)
        return replace(self, spans=spans, entities=entities, partial=partial, is_proposal=False, source_tags=tags)

    def _with_ambiguous(self, tags: Sequence[str]) -> PartialAnnotation:
        """Return the document's partial annotation, extended by the tokens that have ambiguous tags."""
        partial = self.partial or PartialAnnotation()
        ranges = [
            UnannotatedRange(int(self.token_starts[t]), int(self.token_ends[t]), tag)
            for t, tag in enumerate(tags)
            if is_ambiguous(tag)
        ]
        return replace(partial, unannotated=tuple(sorted({*partial.unannotated, *ranges})))

    def with_spans(
        self, spans: Sequence[Span], scheme: Scheme = "iob2", confidences: Confidences | None = None
    ) -> Document:
        """Return a copy of the document that is fully annotated: ``spans`` are the spans of all its entities.

        Args:
            spans: Spans in the order of the text; no two overlap.
            scheme: Scheme of the tags.
            confidences: [M], probability in [0, 1] that each span is right; None: unknown.

        Returns:
            The document with these spans and their entities, without partial annotation.

        Raises:
            ValueError: Spans are empty, overlap, are not sorted, or exceed the tokens.
        """
        for before, span in pairwise([(0, 0, ""), *spans]):
            if not before[1] <= span[0] < span[1] <= self.n_tokens:
                expected = f"must be sorted, disjoint, not empty and within its {self.n_tokens} tokens"
                raise ValueError(f"spans of {self._title} {expected}, got {tuple(before)} and {tuple(span)}")
        document = self.with_decoded(spans, scheme, confidences)
        return document._replace_unchecked(computed_parts=self.computed_parts - _TAGGED)

    def with_decoded(
        self,
        spans: Sequence[Span],
        scheme: Scheme = "iob2",
        confidences: Confidences | None = None,
        source_tags: Sequence[str] | None = None,
    ) -> Document:
        """Return a copy of the document with the spans of a tagger, without checking them.

        Args:
            spans: Spans in the order of the text; no two overlap. They are not checked.
            scheme: Scheme of the tags.
            confidences: [M], probability in [0, 1] that each span is right; None: unknown.
            source_tags: Tags from which the spans were read, one for each token; they may be malformed.

        Returns:
            The document with these spans and their entities, without partial annotation.
        """
        return self._replace_unchecked(
            spans=list(spans), entities=self.entities_from_spans(spans, confidences), partial=None, is_proposal=False,
            scheme=scheme, source_tags=source_tags, computed_parts=self.computed_parts | _TAGGED,
        )  # fmt: skip

    def with_name_ids(self, ids: Sequence[int]) -> Document:
        """Return a copy of the document in which the entities have new name identifiers.

        Offsets do not change and are not checked again.

        Args:
            ids: `name_id` of each entity.

        Raises:
            ValueError: The number of identifiers is not the number of entities.
        """
        return self._replace_unchecked(entities=with_name_ids(self.entities, list(ids)))

    def _replace_unchecked(self, **values: Any) -> Document:
        """Return a copy of the document with the given attribute values, whose offsets are valid and not checked."""
        document = Document.__new__(type(self))  # `copy.copy` and `replace` take two and four times as long
        attributes = vars(document)
        attributes.update(vars(self))
        attributes.update(values)
        for name in ("tags", "names"):  # computed from the values
            attributes.pop(name, None)
        return document

    def with_entities(self, entities: Iterable[Entity], scheme: Scheme = "iob2") -> Document:
        """Return a copy of the document in which ``entities`` replace the annotated entities; `partial` is copied.

        Args:
            entities: Entities with character offsets, in any order. Spans are computed by `project`.
            scheme: Scheme of the tags.

        Returns:
            The document with these entities, sorted, and their spans.
        """
        ordered = tuple(sorted(entities, key=lambda entity: (entity.start, entity.end)))
        spans = project(ordered, self).spans
        return replace(
            self, spans=spans, entities=ordered, is_proposal=False, scheme=scheme, source_tags=None,
            computed_parts=self.computed_parts - _TAGGED,
        )  # fmt: skip

    def with_proposals(self, entities: Iterable[Entity]) -> Document:
        """Return a copy of the document, marked as not annotated, with ``entities`` as proposals by a model or tool.

        Args:
            entities: Entities with character offsets, in any order.

        Returns:
            The document with these entities and their spans; the spans are None if there is no entity. The document
            counts as not annotated.
        """
        document = self.with_entities(entities)
        return replace(document, spans=document.spans if document.entities else None, is_proposal=True)

    def with_partial(self, partial: PartialAnnotation) -> Document:
        """Return a copy of the document in which ``partial`` marks parts of the annotation as undecided.

        Args:
            partial: The undecided parts.

        Returns:
            The document with this partial annotation.

        Raises:
            ValueError: An entity overlaps an unannotated range or has a label that was not annotated.
        """
        if conflict := partial.conflict((e.start, e.end, e.label) for e in self.entities):
            raise ValueError(f"{self._title}: {conflict}")
        return replace(self, partial=partial)

    def without_annotation(self) -> Document:
        """Return a copy of the document without annotation: no spans, entities, tags or partial annotation."""
        return replace(self, spans=None, entities=(), partial=None, is_proposal=False, source_tags=None)

    def __eq__(self, other: object) -> bool:
        """Return whether two documents have equal text, tokens, sentences, annotation, id and fields."""
        return self._values() == other._values() if isinstance(other, Document) else NotImplemented

    def __repr__(self) -> str:
        """Describe the document in one line by its text, id, and numbers of tokens and entities."""
        shown = repr(self.text if len(self.text) <= _N_SHOWN else self.text[: _N_SHOWN - 3] + "...")
        id = "" if self.id is None else f", id={self.id!r}"
        counts = format_count(self.n_tokens, "token"), format_count(len(self.entities), "entity", "entities")
        return f"Document({shown}{id}, {', '.join(counts)})"

    def __hash__(self) -> int:
        """Return the hash value of the document, computed from its text, id and entities."""
        return hash((self.text, self.id, self.entities))

    def to_dict(self) -> dict[str, Any]:
        """Return the document as a dict of plain Python values, which `from_dict` converts back.

        Returns:
            A dictionary with the keys "id", "text", "tokens" (a list for each sentence), "tags", "entities", "partial"
            and "fields".
        """
        partial, sentences = self.partial, pairwise(self.sentence_offsets.tolist())
        return {
            "id": self.id,
            "text": self.text,
            "tokens": [list(self.tokens[start:end]) for start, end in sentences],
            "tags": None if self.tags is None else list(self.tags),
            "entities": [asdict(entity) for entity in self.entities],
            "partial": None
            if partial is None
            else {
                "unannotated": [each._asdict() for each in partial.unannotated],
                "annotated_labels": None if partial.annotated_labels is None else list(partial.annotated_labels),
            },
            "fields": dict(self.fields),
        }

    def to_json(self) -> str:
        """Return the document as one line of JSON, which `from_json` converts back.

        Raises:
            TypeError: The fields hold a value that JSON cannot represent.
        """
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Document:
        """Build a document from the dict that `to_dict` returns.

        Args:
            values: The data; all keys but "text" are optional.

        Returns:
            The document.

        Raises:
            ValueError: The data do not describe a document.
        """
        parts = DocumentParts.of(values)
        if parts.sentences:
            document = Document.from_aligned(parts.text, parts.sentences, id=parts.id, fields=parts.fields)
        else:
            document = Document.from_text(parts.text, id=parts.id, fields=parts.fields)
        if parts.tags is None:
            document = document.with_proposals(parts.entities) if parts.entities else document
        elif len(parts.tags) != document.n_tokens:
            counts = f"{document.n_tokens} tokens but {len(parts.tags)} tags"
            raise ValueError(f"document {parts.id!r} has {counts}; expected one tag for each token")
        else:
            spans = None if parts.entities else spans_from_tags(parts.tags, document.sentence_offsets)
            document = document.with_entities(parts.entities)
            document = replace(document, spans=document.spans if spans is None else spans, source_tags=parts.tags)
        return replace(document, partial=parts.partial)

    @staticmethod
    def from_json(text: str) -> Document:
        """Build a document from the JSON that `to_json` returns.

        Args:
            text: One JSON object.

        Returns:
            The document.

        Raises:
            ValueError: The text is not JSON or does not describe a document.
        """
        return Document.from_dict(parse_object(text))

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the entities of the document as a data frame, one row for each entity.

        `herdner.text.entity.to_frame` accepts several documents.

        Args:
            backend: "pandas", "polars", "pyarrow" or "modin".

        Returns:
            A data frame with a row for each entity.

        Raises:
            ImportError: A package is missing.
            ValueError: The backend is unknown.
        """
        return to_frame([self], backend)

    def _repr_html_(self) -> str:
        """Return the document as HTML, for display in a Jupyter notebook."""
        return to_html(self)

    @property
    def _title(self) -> str:
        """Name of the document in messages."""
        return "the document" if self.id is None else f"document {self.id!r}"

    def _values(self) -> tuple[object, ...]:
        """Return the values that ``==`` compares between two documents."""
        arrays = self.tokens, self.token_starts, self.token_ends, self.sentence_offsets
        tags = None if self.tags is None else list(self.tags)
        return self.text, *map(list, arrays), tags, self.entities, self.id, self.fields, self.partial

    def entities_from_spans(self, spans: Sequence[Span], confidences: Confidences | None = None) -> tuple[Entity, ...]:
        """Convert token spans to entities with character offsets.

        Args:
            spans: Spans of the document's tokens.
            confidences: [M], probability in [0, 1] that each span is right; None: unknown.

        Returns:
            One entity with character offsets for each span.
        """
        values = None if confidences is None else np.ascontiguousarray(confidences, np.float64)
        return make_entities(Entity, spans, self.text, self.token_starts, self.token_ends, values)


_EMPTY = Document.from_text("")
_TOKENIZED, _TAGGED = frozenset({"tokens"}), frozenset({"confidence", "names"})


def document_from_valid_offsets(
    text: str, tokens: list[str], token_starts: NDArray[np.int64], token_ends: NDArray[np.int64],
    sentence_offsets: NDArray[np.int64], id: str | None = None,
) -> Document:  # fmt: skip
    """Build a document without annotation from the offsets of a tokenizer, which are not checked again.

    Args:
        text: The text.
        tokens: Tokens of the text.
        token_starts: int64[n], offset of the first character of each token.
        token_ends: int64[n], offset behind the last character of each token.
        sentence_offsets: int64[S + 1], first token of each sentence, and n.
        id: Identifier of the document.

    Returns:
        The document.
    """
    return _EMPTY._replace_unchecked(  # pyright: ignore[reportPrivateUsage]
        text=text, tokens=tokens, token_starts=token_starts, token_ends=token_ends, sentence_offsets=sentence_offsets,
        id=id, fields={}, computed_parts=_TOKENIZED,
    )  # fmt: skip


def project(entities: Sequence[Entity], document: Document) -> Projection:
    """Convert entities with character offsets to spans of a document's tokens.

    An entity that begins or ends within a token is widened to the tokens that it touches. If two entities touch the
    same token, it belongs to the earlier entity. The later entity keeps its other tokens, and is dropped if it has
    none.

    Args:
        entities: Entities with character offsets, in any order.
        document: The document whose tokens are used.

    Returns:
        The spans, and the numbers of widened and dropped entities.
    """
    ordered = sorted(entities, key=lambda entity: (entity.start, entity.end))
    starts = np.fromiter((entity.start for entity in ordered), np.int64, len(ordered))
    ends = np.fromiter((entity.end for entity in ordered), np.int64, len(ordered))
    first = np.searchsorted(document.token_ends, starts, side="right").tolist()
    stop = np.searchsorted(document.token_starts, ends, side="left").tolist()
    spans: list[Span] = []
    n_widened = n_dropped = last_end = 0
    for entity, begin, end in zip(ordered, first, stop, strict=True):
        begin = max(begin, last_end)
        if begin >= end:
            n_dropped += 1
            continue
        n_widened += bool(document.token_starts[begin] != entity.start or document.token_ends[end - 1] != entity.end)
        spans.append(Span(begin, end, entity.label))
        last_end = end
    return Projection(spans, n_widened, n_dropped)


def align_tokens(tokens: Sequence[str], text: str) -> NDArray[np.int64] | None:
    """Find the character offset of each token in a text.

    Args:
        tokens: n tokens in the order of the text.
        text: The text.

    Returns:
        int64[n], offset of each token; None unless the text consists of these tokens and white space.
    """
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
    """Convert the lengths of n consecutive pieces to n + 1 offsets: n starts, and the end of the last piece.

    Args:
        lengths: Lengths of n pieces.

    Returns:
        int64[n + 1], 0 and the cumulative sums of the lengths.
    """
    values = np.fromiter(lengths, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])


def _flat_tags(sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> list[str]:
    n_tokens, n_tags = list(map(len, sentences)), list(map(len, tags))
    if n_tokens != n_tags:
        counts = f"{n_tokens!s:.60} tokens and {n_tags!s:.60} tags"
        raise ValueError(f"every sentence needs as many tags as tokens, got {counts}")
    return [tag for sentence in tags for tag in sentence]


class Failure(NamedTuple):
    """Record of a document that could not be read or tagged. A stream yields the record in place of the document.

    A failure counts as one document when documents are numbered.

    Attributes:
        error: The exception.
        document_index: Index of the document among all documents of the run; None if it could not be read.
        source: The text or document that could not be tagged; None if it could not be read.
        is_truncated: Reading stopped within a file, so that an unknown number of documents is missing.
    """

    error: Exception
    document_index: int | None = None
    source: str | Document | None = None
    is_truncated: bool = False

    @property
    def message(self) -> str:
        """Error message for users. It begins with the name of the document."""
        problem = str(self.error) or type(self.error).__name__
        if self.document_index is None:  # the reader's message names the file and the line
            return problem
        id = self.source.id if isinstance(self.source, Document) else None
        return f"{id or f'document {self.document_index + 1}'}: {problem}"
