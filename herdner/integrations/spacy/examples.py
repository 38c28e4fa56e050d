"""Documents to train on, from spaCy's examples."""

# spaCy has types in parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import warnings
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

from herdner.integrations.spacy.common import Aligned, document_of
from herdner.text.document import Document, project
from herdner.text.entity import Entity
from herdner.text.sentences import SentenceRules
from herdner.text.tags import tags_from_spans


@dataclass
class _Losses:
    """What could not be learned from, to be told once."""

    widened: int = 0
    dropped: int = 0
    unknown: int = 0

    def words(self) -> str:
        told = [
            (self.widened, "entities do not begin and end with a token of the pipeline's tokenizer and were widened"),
            (self.dropped, "entities overlap another one, or hold no token, and were left out"),
            (self.unknown, "sentences hold tokens of which nobody says whether they are in an entity; left out"),
        ]
        return "; ".join(f"{n} {what}" for n, what in told if n)


def training_documents(
    examples: Iterable[Example], rules: SentenceRules, spans_key: str | None, name: str
) -> list[Document]:
    """Documents whose tokens are those of ``predicted`` and whose entities are those of ``reference``: its ``ents``, or
    the group ``spans_key``.

    Entities that do not meet tokens are widened to those they touch; of overlapping ones the longest stays; sentences
    with tokens whose entity is missing, and references without annotation, are left out. A warning counts all this.
    Sentences are those of ``predicted``, else of ``reference``, else found by the ``rules``. ValueError where no entity
    is left.
    """
    losses = _Losses()
    documents = [
        document
        for example in examples
        if _annotated(example.reference, spans_key)
        and (document := _document(example, rules, spans_key, losses)).n_tokens
    ]
    if losses.words():
        warnings.warn(f"{name}: of the examples, {losses.words()}", stacklevel=4)
    if not any(document.entities for document in documents):
        where = "doc.ents" if spans_key is None else f"doc.spans[{spans_key!r}]"
        raise ValueError(
            f"nothing to train on: the examples hold no entity in {where}; give annotated ones to nlp.initialize, or"
            ' name a model in the config, as in model = "en"'
        )
    return documents


def _annotated(doc: Doc, spans_key: str | None) -> bool:
    return doc.has_annotation("ENT_IOB") if spans_key is None else spans_key in doc.spans


def _document(example: Example, rules: SentenceRules, spans_key: str | None, losses: _Losses) -> Document:
    reference = example.reference
    aligned = document_of(example.predicted, rules, _sentence_starts(example))
    document = aligned.document
    given = reference.ents if spans_key is None else reference.spans[spans_key]
    entities = [entity for span in filter_spans(given) if (entity := _entity(span, example, aligned, losses))]
    laid = project(entities, document).spans
    losses.dropped += len(given) - len(laid)
    tags = tags_from_spans(laid, document.n_tokens, "iob2", document.sentence_offsets)
    if spans_key is None and (unknown := np.flatnonzero(_column(reference, ENT_IOB) == 0)).size:
        return _known_sentences(document, tags, [_range(i, i + 1, example, aligned) for i in unknown.tolist()], losses)
    return document.with_tags(tags)


def _entity(span: DocSpan, example: Example, aligned: Aligned, losses: _Losses) -> Entity | None:
    """A span of the reference on the document's tokens; None where it holds none."""
    document = aligned.document
    first, last = _range(span.start, span.end, example, aligned)
    if first == last:
        return None
    start, end = int(document.token_starts[first]), int(document.token_ends[last - 1])
    text = document.text[start:end]
    losses.widened += "".join(text.split()) != "".join(span.text.split())
    return Entity(start, end, span.label_, text)


def _range(start: int, end: int, example: Example, aligned: Aligned) -> tuple[int, int]:
    """The document's tokens from the first to the last that the tokens ``start:end`` of the reference touch."""
    touched = example.alignment.y2x[start:end]
    return aligned.in_document(int(touched.min()), int(touched.max()) + 1) if len(touched) else (0, 0)


def _sentence_starts(example: Example) -> NDArray[np.bool_] | None:
    """Where the reference's sentences begin in ``predicted``, if that has none of its own."""
    predicted, reference = example.predicted, example.reference
    if predicted.has_annotation("SENT_START") or not reference.has_annotation("SENT_START"):
        return None
    begins = np.zeros(len(predicted), np.bool_)
    for token in np.flatnonzero(_column(reference, SENT_START) == 1).tolist():
        begins[example.alignment.y2x[token][:1]] = True
    return begins


def _column(doc: Doc, attribute: int) -> NDArray[Any]:
    return doc.to_array([attribute]).reshape(-1)


def _known_sentences(
    document: Document, tags: Sequence[str], unknown: Sequence[tuple[int, int]], losses: _Losses
) -> Document:
    """The sentences that none of the ``unknown`` ranges of tokens touches."""
    mask = np.zeros(document.n_tokens, np.bool_)
    for start, end in unknown:
        mask[start:end] = True
    borders = [(a, b) for a, b in pairwise(document.sentence_offsets.tolist()) if not mask[a:b].any()]
    losses.unknown += document.n_sentences - len(borders)
    return Document.from_tokens([document.tokens[a:b] for a, b in borders], [tags[a:b] for a, b in borders])
