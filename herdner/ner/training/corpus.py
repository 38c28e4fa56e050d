"""Checked training documents with the tags that their tokens may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s
from herdner.crf.likelihood import Borders
from herdner.crf.weights import MOST_TAGS
from herdner.inference.linear_chain import viterbi
from herdner.ner.training.allowed_tags import allowed_tags, allowed_tags_of_partial
from herdner.text.document import Document
from herdner.text.partial import alternatives
from herdner.text.tags import (
    Scheme,
    Span,
    allowed_transitions,
    convert_tags,
    labels_of,
    spans_from_tags,
    split_tag,
    tags_of_label,
)


@dataclass(frozen=True, eq=False)
class TrainingCorpus:
    """Checked training documents with their gold tags and weights, and the corpus of each document.

    Attributes:
        documents: D documents from which features are computed (``herdner.ner.recasing.reader``).
        tags: The K tags of the model.
        gold: Tags of each document in the model's scheme; O for undecided tokens.
        allowed: uint8[tokens, K] for each document, 1 for the tags that a token may have.
        counted: uint8[tokens, K] for each document, 1 for the tags with which a token's features are counted. A feature
            has no weight for tags with which it is never counted.
        borders: Log-potentials of -inf that forbid tag sequences; None if all documents are fully annotated.
        weights: float64[D], weight of each document in the likelihood of the chain.
        sources: Index of the source of each document, or None. Sources have equal weight in the calibration.
        groups: Name of the source of each document, or None.
        guideline: Group whose annotation guideline the model follows, or None.
        development: Annotated documents on which the iterations of link learning are scored.
    """

    documents: list[Document]
    tags: tuple[str, ...]
    gold: list[list[str]]
    allowed: list[NDArray[np.uint8]]
    counted: list[NDArray[np.uint8]]
    borders: Borders | None
    weights: Floats
    sources: list[int] | None
    groups: Sequence[str] | None
    guideline: str | None
    development: list[Document]

    def states(self, i: int, unary: Floats, transition: Floats) -> Int32s:
        """Return the tags of document i: the most probable sequence of allowed tags under a linear chain.

        The tags are indices into the tags of the model.

        Args:
            i: Index of the document.
            unary: float64[tokens, K], log-potentials of tags.
            transition: float64[K, K], log-potentials of adjacent tags.

        Returns:
            int32[tokens], indices of tags.
        """
        if self.borders is None or (self.allowed[i].sum(axis=1) == 1).all():
            return self.allowed[i].argmax(axis=1).astype(np.int32)
        sentence_offsets = self.documents[i].sentence_offsets
        unary = np.where(self.allowed[i] != 0, unary, -np.inf)
        unary[sentence_offsets[:-1]] += self.borders.start
        unary[sentence_offsets[1:] - 1] += self.borders.end
        return viterbi(unary, transition + self.borders.transition, sentence_offsets)[0].astype(np.int32)


def prepare_corpus(
    documents: Iterable[Document],
    tags: Iterable[Sequence[str]] | None,
    scheme: Scheme,
    *,
    base_tags: Sequence[str] = (),
    read: Callable[[Document], Document] | None = None,
    weights: Sequence[float] | Floats | None = None,
    groups: Sequence[str] | None = None,
    guideline: str | None = None,
    development: Iterable[Document] | None = None,
) -> TrainingCorpus:
    """Check training documents, and compute the allowed tags of each token.

    Args:
        documents: Documents with tokens.
        tags: Tags of each document, in any scheme; None uses the documents' own tags.
        scheme: Tag scheme of the model.
        base_tags: Tags of the base model, which precede the other tags in `TrainingCorpus.tags`.
        read: Function that prepares a document for features (``herdner.ner.recasing.reader``); None is the identity.
        weights: Weight of each document in the likelihood; None is 1.
        groups: Name of the source of each document.
        guideline: Group whose annotation guideline the model follows.
        development: Annotated documents on which the iterations of link learning are scored.

    Returns:
        The documents with the allowed tags of each token.

    Raises:
        ValueError: The arguments contradict each other, tags contradict partial annotation, or nothing is annotated.
    """
    documents = _with_tags(list(documents), tags)
    gold = [convert_tags(d.tags or (), None, scheme, d.sentence_offsets) for d in documents]
    all_tags, borders = _tags_and_borders(documents, gold, scheme, base_tags)
    if len(all_tags) > MOST_TAGS:
        raise ValueError(
            f"a model can have at most {MOST_TAGS} tags, but {len(labels_of(all_tags)):,} labels need"
            f" {len(all_tags):,} tags; merge some labels"
        )
    if borders is None:
        allowed = counted = [allowed_tags(sequence, all_tags) for sequence in gold]
    else:
        pairs = [allowed_tags_of_partial(*each, all_tags, scheme) for each in zip(documents, gold, strict=True)]
        allowed, counted = [a for a, _ in pairs], [c for _, c in pairs]
    if guideline is not None and guideline not in (groups or ()):
        raise ValueError(f"`guideline` must be one of `groups`, got {guideline!r}")
    read = read or (lambda document: document)
    return TrainingCorpus(
        list(map(read, documents)), all_tags, gold, allowed, counted, borders,
        _check_weights(weights, len(documents)), _source_indices(groups, len(documents)), groups, guideline,
        list(map(read, _check_development(development))),
    )  # fmt: skip


def _tags_and_borders(
    documents: Sequence[Document], gold: Sequence[Sequence[str]], scheme: Scheme, base_tags: Sequence[str]
) -> tuple[tuple[str, ...], Borders | None]:
    """Return the tags of the model, and log-potentials (0 or -inf) that forbid malformed tag sequences.

    The log-potentials are None if all documents are fully annotated, because each token then has a single
    allowed tag. They are also None if there are more than `MOST_TAGS` tags, which `prepare_corpus` rejects.
    """
    tags = tuple(dict.fromkeys([*base_tags, *(tag for sequence in gold for tag in sequence)]))
    partials = [document.partial for document in documents if document.partial is not None]
    if not partials:
        _check_entities(gold)
        return tags, None
    _check_partial(documents, gold)
    # Dictionaries keep the order of insertion; the order of a set differs from process to process.
    labels = dict.fromkeys(split_tag(tag)[1] for tag in tags)
    ranges = [each for partial in partials for each in partial.unannotated]
    labels |= dict.fromkeys(label for each in ranges for _, label in alternatives(each.tags) or ())
    labels |= dict.fromkeys(label for partial in partials for label in partial.annotated_labels or ())
    partial_tags = (tag for label in labels if label for tag in tags_of_label(label, scheme))
    tags = tuple(dict.fromkeys([*tags, "O", *partial_tags]))
    if len(tags) > MOST_TAGS:
        return tags, None
    allowed = allowed_transitions(tags, scheme)
    return tags, Borders(*(np.where(ok, 0.0, -np.inf) for ok in (allowed.follow, allowed.start, allowed.end)))


def _with_tags(documents: list[Document], tags: Iterable[Sequence[str]] | None) -> list[Document]:
    sequences = [document.tags for document in documents] if tags is None else list(tags)
    if len(sequences) != len(documents):
        raise ValueError(
            f"there must be one tag sequence for each of the {len(documents)} documents, got {len(sequences)}"
        )
    for i, (document, sequence) in enumerate(zip(documents, sequences, strict=True)):
        if sequence is None or len(sequence) != len(document.tokens):
            n = "none" if sequence is None else len(sequence)
            raise ValueError(
                f"document {document.id or i} must have one tag for each of its {len(document.tokens)} tokens, got {n}"
            )
    if tags is None:
        return documents
    return [d.with_tags(sequence or ()) for d, sequence in zip(documents, sequences, strict=True)]


def _check_entities(gold: Sequence[Sequence[str]]) -> None:
    if not any(tag != "O" for sequence in gold for tag in sequence):
        raise ValueError("the training documents have no entity; give annotated documents")


def _check_partial(documents: Sequence[Document], gold: Sequence[Sequence[str]]) -> None:
    """Raise `ValueError` if no token is annotated, or if spans contradict the partial annotation of their document."""
    has_annotation = has_label = False
    for i, (document, sequence) in enumerate(zip(documents, gold, strict=True)):
        spans = spans_from_tags(sequence, document.sentence_offsets)
        starts, ends = document.token_starts, document.token_ends
        entities = [(int(starts[span.start]), int(ends[span.end - 1]), span.label) for span in spans]
        if document.partial is not None and (conflict := document.partial.conflict(entities)):
            raise ValueError(f"document {document.id or i}: {conflict}")
        undecided = document.unannotated_tokens()
        has_no_label = document.partial is not None and document.partial.annotated_labels == ()
        has_annotation |= len(sequence) > len(undecided) and not has_no_label
        has_annotation |= any(tags != "?" for tags in undecided.values())
        has_label |= bool(spans) or any(label for tags in undecided.values() for _, label in alternatives(tags) or ())
    if not has_annotation:
        raise ValueError("no token of the training documents is annotated; give annotated documents")
    if not has_label:
        _check_entities(gold)


def _check_development(documents: Iterable[Document] | None) -> list[Document]:
    """Check that development documents are fully annotated and contain an entity; return them as a list."""
    documents = list(documents or ())
    if any(document.partial is not None for document in documents):
        raise ValueError("development documents must be fully annotated, got a partially annotated document")
    if documents:
        check_development_spans([document.spans or [] for document in documents])
    return documents


def check_development_spans(gold: Sequence[Sequence[Span]]) -> None:
    """Raise `ValueError` if no development document has an entity.

    Without entities, all iterations would have the same score, and training would return the first iteration.

    Args:
        gold: Gold spans of each document.

    Raises:
        ValueError: No document has an entity.
    """
    if not any(gold):
        raise ValueError(
            "the development documents have no entity; give annotated documents with tokens, or pass no development"
            " documents"
        )


def _check_weights(weights: Sequence[float] | Floats | None, n_documents: int) -> Floats:
    if weights is None:
        return np.ones(n_documents)
    array = np.asarray(weights, np.float64)
    if array.shape != (n_documents,):
        raise ValueError(f"`document_weights` must have shape ({n_documents},), got {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
        raise ValueError(f"`document_weights` must be finite, at least 0, and not all 0, got {array.tolist()!s:.80}")
    return array


def _source_indices(groups: Sequence[str] | None, n_documents: int) -> list[int] | None:
    if groups is None:
        return None
    if len(groups) != n_documents:
        raise ValueError(
            f"`groups` must name the source of each of the {n_documents} documents, got {len(groups)} names"
        )
    index = {group: k for k, group in enumerate(dict.fromkeys(groups))}
    return [index[group] for group in groups]
