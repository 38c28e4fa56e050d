"""Training documents from spaCy's examples."""

# spaCy is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, SENT_START  # type: ignore[attr-defined]
from spacy.tokens import Doc
from spacy.tokens import Span as DocSpan
from spacy.training import Example
from spacy.util import filter_spans

from herdner.base.messages import format_count, warn_caller
from herdner.integrations.spacy.doc import AlignedDocument, document_of
from herdner.text.document import Document, project
from herdner.text.entity import Entity
from herdner.text.sentences import SentenceRules
from herdner.text.tags import tags_from_spans


@dataclass
class _Losses:
    """Numbers of annotations that the conversion of training examples has changed or left out."""

    widened: int = 0
    dropped: int = 0
    unannotated: int = 0

    def message(self) -> str:
        parts = [
            ("widened to whole tokens of the pipeline's tokenizer", self.widened, "entity", "entities"),
            ("left out, because they overlap another one or contain no token", self.dropped, "entity", "entities"),
            ("left out, because they contain tokens without entity annotation", self.unannotated, "sentence", ""),
        ]
        return "; ".join(f"{what}: {format_count(n, noun, plural)}" for what, n, noun, plural in parts if n)


def training_documents(
    examples: Iterable[Example], rules: SentenceRules, spans_key: str | None, name: str
) -> list[Document]:
    """Convert spaCy's training examples to training documents.

    The documents have the tokens of ``predicted`` and the entities of ``reference``. The sentences come from
    ``predicted`` if it has sentences, else from ``reference`` if it has sentences, else from the ``rules``. Entities
    that begin or end within a token are widened; if entities overlap, the longest is kept. Sentences with unannotated
    tokens and references without annotation are left out. A warning states the number of each.

    Args:
        examples: The examples.
        rules: Rules that split sentences.
        spans_key: Group of ``reference.spans`` with the entities; None: ``reference.ents``.
        name: Name of the component for the warning.

    Returns:
        The annotated documents.

    Raises:
        ValueError: No example contains an entity.
    """
    losses = _Losses()
    documents = [
        document
        for example in examples
        if is_annotated(example.reference, spans_key)
        and (document := _document(example, rules, spans_key, losses)).n_tokens
    ]
    if message := losses.message():
        warn_caller(f"{name}: in the examples, {message}")
    if not any(document.entities for document in documents):
        where = "doc.ents" if spans_key is None else f"doc.spans[{spans_key!r}]"
        raise ValueError(
            f"the examples contain no entity in {where}: pass annotated examples to nlp.initialize, or set a model in"
            ' the configuration, as in model = "en"'
        )
    return documents


def has_entities(doc: Doc, spans_key: str | None) -> bool:
    """Return True if a reference ``Doc`` contains entities.

    Args:
        doc: The ``Doc``.
        spans_key: Group of ``doc.spans`` with the entities; None: ``doc.ents``.
    """
    return len(doc.ents if spans_key is None else doc.spans.get(spans_key, ())) > 0


def is_annotated(doc: Doc, spans_key: str | None) -> bool:
    """Return True if a component or an annotator has set the entities of a ``Doc``, even if there is none.

    Args:
        doc: The ``Doc``.
        spans_key: Group of ``doc.spans`` with the entities; None: ``doc.ents``.
    """
    return doc.has_annotation("ENT_IOB") if spans_key is None else spans_key in doc.spans


def _document(example: Example, rules: SentenceRules, spans_key: str | None, losses: _Losses) -> Document:
    reference = example.reference
    aligned = document_of(example.predicted, rules, _sentence_starts(example))
    document = aligned.document
    gold = reference.ents if spans_key is None else reference.spans[spans_key]
    entities = [entity for span in filter_spans(gold) if (entity := _entity(span, example, aligned, losses))]
    spans = project(entities, document).spans
    losses.dropped += len(gold) - len(spans)
    if spans_key is None and (tokens := np.flatnonzero(_column(reference, ENT_IOB) == 0)).size:
        unannotated = [_token_range(i, i + 1, example, aligned) for i in tokens.tolist()]
        tags = tags_from_spans(spans, document.n_tokens)
        return _annotated_sentences(document, tags, unannotated, losses)
    return document.with_spans(spans)


def _entity(span: DocSpan, example: Example, aligned: AlignedDocument, losses: _Losses) -> Entity | None:
    """Convert a reference span to an entity of the document; return None if the span has no token of the document."""
    document = aligned.document
    first, last = _token_range(span.start, span.end, example, aligned)
    if first == last:
        return None
    start, end = int(document.token_starts[first]), int(document.token_ends[last - 1])
    text = document.text[start:end]
    losses.widened += "".join(text.split()) != "".join(span.text.split())
    return Entity(start, end, span.label_, text)


def _token_range(start: int, end: int, example: Example, aligned: AlignedDocument) -> tuple[int, int]:
    """Return the range of the document's tokens that overlap the tokens ``start:end`` of the reference."""
    tokens = example.alignment.y2x[start:end]
    return aligned.to_document_range(int(tokens.min()), int(tokens.max()) + 1) if len(tokens) else (0, 0)


def _sentence_starts(example: Example) -> NDArray[np.bool_] | None:
    """Return a mask of the tokens of ``example.predicted`` that begin a sentence of ``example.reference``.

    Return None if ``predicted`` has sentences of its own, or ``reference`` has none.
    """
    predicted, reference = example.predicted, example.reference
    if predicted.has_annotation("SENT_START") or not reference.has_annotation("SENT_START"):
        return None
    starts = np.zeros(len(predicted), np.bool_)
    for token in np.flatnonzero(_column(reference, SENT_START) == 1).tolist():
        starts[example.alignment.y2x[token][:1]] = True
    return starts


def _column(doc: Doc, attribute: int) -> NDArray[Any]:
    return doc.to_array([attribute]).reshape(-1)


def _annotated_sentences(
    document: Document, tags: Sequence[str], unannotated: Sequence[tuple[int, int]], losses: _Losses
) -> Document:
    """Return a document of the sentences that contain no unannotated token.

    ``unannotated`` are ranges of tokens.
    """
    mask = np.zeros(document.n_tokens, np.bool_)
    for start, end in unannotated:
        mask[start:end] = True
    kept = [(start, end) for start, end in pairwise(document.sentence_offsets.tolist()) if not mask[start:end].any()]
    losses.unannotated += document.n_sentences - len(kept)
    return Document.from_tokens([document.tokens[a:b] for a, b in kept], [tags[a:b] for a, b in kept])
