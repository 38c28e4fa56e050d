"""Conversion of spaCy's ``Doc`` to `Document`, and of spans to entities of a ``Doc``.

A ``Doc`` may have white space tokens, a `Document` has none. `AlignedDocument` maps the tokens of one to the other.
"""

# spaCy is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH, SENT_START, SPACY  # type: ignore[attr-defined]
from spacy.tokens import Doc, SpanGroup
from spacy.tokens import Span as DocSpan

from herdner.ner.identity import with_names
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.sentences import ENGLISH, SentenceRules
from herdner.text.tags import Span

BEGIN = 3  # ENT_IOB of the first token of an entity; a token with this value and no ENT_TYPE is blocked
EXTENSION = "confidence"
NAME_EXTENSION = "name_id"
NAMES_KEY = "names"  # name of the group of all spans that have a `name_id`
Existing = Literal["keep", "overwrite", "replace"]


class AlignedDocument(NamedTuple):
    """Document that was converted from a ``Doc``, and the index in the ``Doc`` of each token of the document.

    Attributes:
        document: A document of n tokens.
        doc_tokens: int64[n], ascending. Index in the ``Doc`` of each token of the document.
    """

    document: Document
    doc_tokens: NDArray[np.int64]

    def to_doc_spans(self, spans: Sequence[Span]) -> list[Span]:
        """Convert spans of the document's tokens to spans of the ``Doc``'s tokens.

        White space inside a span is included.

        Args:
            spans: Spans of the document, with token indices.

        Returns:
            The spans with token indices of the ``Doc``.
        """
        tokens = self.doc_tokens
        return [Span(int(tokens[start]), int(tokens[end - 1]) + 1, label) for start, end, label in spans]

    def to_document_range(self, start: int, end: int) -> tuple[int, int]:
        """Convert the range ``start:end`` of tokens of the ``Doc`` to a range of tokens of the document.

        The range may be empty, because white space is not a token of the document.

        Args:
            start: Index of the first token of the range.
            end: Index after the last token of the range.

        Returns:
            Index of the first token, and index after the last token, in the document.
        """
        first, last = np.searchsorted(self.doc_tokens, (start, end)).tolist()
        return first, last


def document_of(
    doc: Doc, rules: SentenceRules = ENGLISH, sentence_starts: NDArray[np.bool_] | None = None
) -> AlignedDocument:
    """Convert a ``Doc`` to a document without annotation.

    Args:
        doc: The ``Doc``.
        rules: Rules that split sentences if neither ``sentence_starts`` nor a component defines them.
        sentence_starts: bool[len(doc)], whether each token begins a sentence; None: as in ``doc.sents``.

    Returns:
        A document with the text, the tokens except white space, and the sentences.
    """
    orth, spacy, starts_sentence = doc.to_array([ORTH, SPACY, SENT_START]).T
    # A text has far fewer distinct words than tokens: each word is looked up once.
    distinct, index = np.unique(orth, return_inverse=True)
    words = [doc.vocab.strings[key] for key in distinct.tolist()]
    lengths = np.fromiter(map(len, words), np.int64, len(words))[index]
    spaces = spacy.astype(np.int64)
    pieces = np.array([*words, *(word + " " for word in words)], dtype=object)
    text = "".join(pieces[index + len(words) * spaces])
    doc_tokens = np.flatnonzero(~np.fromiter(map(str.isspace, words), np.bool_, len(words))[index])
    tokens = pieces[index[doc_tokens]].tolist()
    ends = np.cumsum(lengths + spaces)[doc_tokens] - spaces[doc_tokens]
    starts = ends - lengths[doc_tokens]
    if sentence_starts is None:
        sentence_starts = _sentence_starts(doc, starts_sentence)
    if sentence_starts is None:
        offsets = rules.loop.offsets(text, tokens, starts, ends)
    else:
        sentence = np.cumsum(sentence_starts)[doc_tokens]
        offsets = np.append(np.flatnonzero(np.diff(sentence, prepend=-1)), len(doc_tokens))
    return AlignedDocument(Document(text, tokens, starts, ends, offsets), doc_tokens)


def _sentence_starts(doc: Doc, starts_sentence: NDArray[np.uint64]) -> NDArray[np.bool_] | None:
    """Return a mask of the tokens that begin a sentence of ``doc.sents``; None if the ``Doc`` has no sentences."""
    if "sents" in doc.user_hooks:
        starts = np.zeros(len(doc), np.bool_)
        starts[[sentence.start for sentence in doc.sents]] = True
        return starts
    return starts_sentence == 1 if len(doc) and doc.has_annotation("SENT_START") else None


def register_extension(name: str = EXTENSION) -> bool:
    """Register an attribute such as ``span._.confidence`` unless it exists; return True if the attribute can be set.

    The value is stored with the label of the span. If another component replaces the span by one with the same tokens
    and another label, the new span has the value None. The attribute cannot be set if another library has registered
    an extension of this name with a getter.

    Args:
        name: Name of the attribute.
    """
    if not DocSpan.has_extension(name):
        DocSpan.set_extension(name, getter=partial(_extension_value, name), setter=partial(_set_extension_value, name))
    _, method, getter, setter = DocSpan.get_extension(name)
    return setter is not None or (getter is None and method is None)


def _extension_key(name: str, span: DocSpan) -> tuple[str, str, int, int]:
    """Return the key of a span attribute in ``doc.user_data``.

    spaCy adapts the offsets in keys of this form when it copies a part of a ``Doc``.
    """
    return "._.", name, span.start_char, span.end_char


def _set_extension_value(name: str, span: DocSpan, value: Any) -> None:
    user_data = cast("dict[object, Any]", span.doc.user_data)
    user_data[_extension_key(name, span)] = {"label": span.label_, "value": value}


def _extension_value(name: str, span: DocSpan) -> Any:
    """Return the value of a span attribute, or None if the value was set for a span with another label."""
    stored = cast("dict[object, Any]", span.doc.user_data).get(_extension_key(name, span))
    if not isinstance(stored, dict):  # None, or set before the attribute was registered
        return stored
    labels = {stored["label"], span.label_} - {""}
    return stored["value"] if len(labels) < 2 else None


def set_entities(
    doc: Doc,
    spans: Sequence[Span],
    confidences: Sequence[float] | None = None,
    name_ids: Sequence[int | None] | None = None,
    *,
    spans_key: str | None = None,
    annotate_ents: bool = True,
    existing: Existing = "keep",
) -> None:
    """Write entities into a ``Doc``.

    Args:
        doc: The ``Doc`` to change.
        spans: Spans of the ``Doc``'s tokens in the order of the text; no two overlap.
        confidences: [M], probability in [0, 1] of each span. It becomes ``ent._.confidence``.
        name_ids: [M], identifier of the name of each span. It becomes ``span._.name_id``, and all spans become the
            group ``doc.spans["names"]``, unless ``spans_key`` is "names".
        spans_key: If set, all spans also become the group ``doc.spans[spans_key]``, with their confidences in its
            ``attrs["scores"]`` as `spancat` writes them. An existing group of this name is replaced.
        annotate_ents: Whether to write the spans into ``doc.ents``.
        existing: Treatment of earlier entities in ``doc.ents``. "keep" keeps them and, like spaCy's ``ner``, drops new
            entities that overlap them or a blocked token; "overwrite" removes earlier entities that overlap a new
            entity; "replace" removes all earlier entities.
    """
    new = [DocSpan(doc, span.start, span.end, label=span.label) for span in spans]
    if name_ids is not None:
        set_names(doc, new, name_ids, has_group=spans_key != NAMES_KEY)
    if spans_key is not None:
        attrs = {} if confidences is None else {"scores": np.array(confidences, np.float64)}
        doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=new, attrs=attrs)
    if not annotate_ents:
        return
    old = [] if existing == "replace" else list(doc.ents)
    blocked = blocked_tokens(doc) if existing == "keep" else []
    accepted = range(len(new))
    if existing == "overwrite":
        covered = _token_mask(len(doc), new)
        old = [entity for entity in old if not covered[entity.start : entity.end].any()]
    elif old or blocked:
        covered = _token_mask(len(doc), [*old, *blocked])
        accepted = [i for i, span in enumerate(new) if not covered[span.start : span.end].any()]
    doc.set_ents([*old, *(new[i] for i in accepted)], blocked=blocked)
    if confidences is not None and register_extension():
        for i in accepted:
            new[i]._.set(EXTENSION, float(confidences[i]))


def set_sentences(doc: Doc, starts: Sequence[int]) -> None:
    """Write sentence starts into a ``Doc``, unless an earlier component has set sentences.

    Args:
        doc: The ``Doc`` to change.
        starts: Indices of the tokens that begin a sentence.
    """
    if not len(doc) or "sents" in doc.user_hooks or doc.has_annotation("SENT_START"):
        return
    first = {0, *starts}
    for token in doc:
        token.is_sent_start = token.i in first


def set_names(doc: Doc, spans: Sequence[DocSpan], name_ids: Sequence[int | None], has_group: bool = True) -> None:
    """Write into a ``Doc`` the `name_id` of each span and, if ``has_group``, a span group of these spans.

    Args:
        doc: The ``Doc`` to change.
        spans: M spans of the ``Doc``.
        name_ids: [M], identifier of the name of each span.
        has_group: Whether the spans become the group ``doc.spans["names"]``.
    """
    if register_extension(NAME_EXTENSION):
        for span, name_id in zip(spans, name_ids, strict=True):
            span._.set(NAME_EXTENSION, name_id)
    if has_group:
        doc.spans[NAMES_KEY] = SpanGroup(doc, name=NAMES_KEY, spans=list(spans))


def name_ids_of(doc: Doc, spans: Sequence[DocSpan]) -> list[int | None]:
    """Return the `name_id` of each span; mentions of one name have the same `name_id` (`herdner.ner.identity`).

    Args:
        doc: The ``Doc``.
        spans: Labelled spans of the ``Doc``.
    """
    entities = [Entity(span.start_char, span.end_char, span.label_, span.text) for span in spans]
    order = sorted(range(len(spans)), key=lambda i: (entities[i].start, entities[i].end))
    named = with_names(Document.from_text(doc.text).with_proposals(entities)).entities
    ids: list[int | None] = [None] * len(spans)
    for i, entity in zip(order, named, strict=True):
        ids[i] = entity.name_id
    return ids


def blocked_tokens(doc: Doc) -> list[DocSpan]:
    """Return the tokens of a ``Doc`` that must not be part of an entity.

    Args:
        doc: The ``Doc``.
    """
    iob, label = doc.to_array([ENT_IOB, ENT_TYPE]).T
    return [doc[i : i + 1] for i in np.flatnonzero((iob == BEGIN) & (label == 0)).tolist()]


def _token_mask(n_tokens: int, spans: Sequence[DocSpan]) -> NDArray[np.bool_]:
    """Return a mask bool[n_tokens] of the tokens that at least one of the spans contains."""
    mask = np.zeros(n_tokens, np.bool_)
    for span in spans:
        mask[span.start : span.end] = True
    return mask
