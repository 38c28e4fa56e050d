"""Conversion of a ``Doc`` with entities to the input of `herdner.SkipChainLayer`, and of its result to entities.

Most taggers return entities but no scores of single tokens. `NoiseModel` computes scores from the entities and the
error rates of a tagger. Only tokens that are linked to another token may change.
"""

# SciPy has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from spacy.tokens import Doc
from spacy.tokens import Span as DocSpan

from herdner.base.arrays import Floats
from herdner.integrations.spacy.doc import AlignedDocument, blocked_tokens, document_of
from herdner.integrations.spacy.entities import DocEntities
from herdner.ner.layer import SkipChainLayer
from herdner.text.tags import Span

MIN_PROBABILITY = 1e-4  # lower probabilities are raised to this value, so that links can overrule a confident tagger
BOUNDARY_CHANGE = float(np.log(0.02))  # log-potential of a span boundary that the tagger has not predicted
HIDDEN = "0"  # replaces the text of tokens that must not be linked
# Log-potential, while tables are learned, of all other tags at tokens that keep their tag. It is finite because the tag
# may be wrong.
UNCHANGED = -20.0

ParserProbabilities = Callable[[Sequence[str], NDArray[np.int64]], Floats]
"""Function from K labels and the indices of C tokens of the ``Doc`` to float64[C, K + 1], as `begin_probabilities`."""


@dataclass(frozen=True)
class NoiseModel:
    """Error rates of a tagger, which are assumed to be equal for all labels.

    ``scripts/models/learn_consistency.py`` finds the defaults by coordinate ascent. They maximise the F1 of
    ``en_core_web_sm`` on openly licensed news (Worldwide train, ODC-By, and herdner-news, CC0).

    Attributes:
        correct: Share of spans whose label is correct.
        spurious: Share of spans that are not entities. The remaining spans are entities with a wrong label.
        missed: Share of linked tokens outside all spans that belong to an entity.
        power: Exponent of the tagger's own probabilities; below 1, because they are overconfident.
        outside_bias: Log-potential that is added to the outcome "not an entity" if the tagger provides probabilities.
    """

    correct: float = 0.8
    spurious: float = 0.06
    missed: float = 0.2
    power: float = 0.5
    outside_bias: float = 1.5

    def span_scores(self, n_labels: int, label: int, confidence: float | None = None) -> Floats:
        """Return the log-potentials of the labels, and of the outcome "not an entity", for a predicted span.

        Args:
            n_labels: Number of labels K.
            label: Index of the predicted label.
            confidence: Probability of the span; None if the tagger provides none.

        Returns:
            float64[K + 1]: one for each label, and the last one for "not an entity".
        """
        correct = self.correct if confidence is None else min(max(confidence, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
        spurious = self.spurious / (1 - self.correct) * (1 - correct)
        probabilities = np.full(n_labels + 1, (1 - correct - spurious) / max(n_labels - 1, 1))
        probabilities[label], probabilities[-1] = correct, spurious
        return np.log(probabilities)

    def outside_scores(self, n_labels: int) -> Floats:
        """Compute the log-potentials of the labels, and of "not an entity", for a token outside all spans.

        Args:
            n_labels: Number of labels, K.

        Returns:
            float64[K + 1]; the last entry is that of "not an entity".
        """
        return np.log(np.append(np.full(n_labels, self.missed / n_labels), 1 - self.missed))

    def parser_scores(self, probabilities: Floats) -> Floats:
        """Convert the probabilities of a parser to log-potentials.

        Args:
            probabilities: float64[..., K + 1], probabilities of K labels and, last, of "not an entity".

        Returns:
            float64[..., K + 1], the log-potentials.
        """
        scores = self.power * np.log(np.maximum(probabilities, MIN_PROBABILITY))
        scores[..., -1] += self.outside_bias
        return scores


def tags_of(labels: Iterable[str]) -> list[str]:
    """Return the tags that a skip-chain layer needs for ``labels``: O, and B-LABEL and I-LABEL for each label.

    Args:
        labels: Labels of entities.
    """
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]


def layer_labels(layer: SkipChainLayer) -> tuple[str, ...]:
    """Return the labels, such as PER, of a skip-chain layer whose tags are O, B-LABEL and I-LABEL for each label.

    Args:
        layer: A layer with these tags.
    """
    return tuple(tag[2:] for tag in layer.tags if tag.startswith("B-"))


def token_scores(
    n_tokens: int,
    labels: Sequence[str],
    spans: Sequence[Span],
    span_scores: Sequence[Floats],
    outside: NDArray[np.int64],
    outside_scores: Floats,
    linked: NDArray[np.bool_],
    *,
    unchanged: float = -np.inf,
) -> Floats:
    """Return the log-potential of each tag at each token.

    Each token of a span has the scores of the span. Spans without a linked token keep their tags. Tokens that are
    neither in a span nor in ``outside`` keep the tag O.

    Args:
        n_tokens: Number of tokens n.
        labels: K labels.
        spans: Disjoint spans with these labels.
        span_scores: float64[K + 1] of each span.
        outside: int64[C], tokens outside all spans that may belong to an entity.
        outside_scores: float64[C, K + 1], scores of the tokens in ``outside``.
        linked: bool[n], whether each token is linked to another one.
        unchanged: Log-potential of all other tags at tokens that keep their tag.

    Returns:
        float64[n, 2 K + 1]: a column for each tag of `tags_of`.
    """
    scores = np.full((n_tokens, 2 * len(labels) + 1), unchanged)
    scores[:, 0] = 0
    scores[outside, 0], scores[outside, 1::2] = outside_scores[:, -1], outside_scores[:, :-1]
    scores[outside, 2::2] = outside_scores[:, :-1] + BOUNDARY_CHANGE / 2
    index = {label: k for k, label in enumerate(labels)}
    for (start, end, label), row in zip(spans, span_scores, strict=True):
        if linked[start:end].any():
            scores[start:end, 0] = row[-1]
            scores[start:end, 1::2], scores[start:end, 2::2] = row[:-1] + BOUNDARY_CHANGE, row[:-1]
            scores[start, 1::2], scores[start, 2::2] = row[:-1], row[:-1] + BOUNDARY_CHANGE
        else:
            scores[start:end] = unchanged
            scores[start, 1 + 2 * index[label]] = 0
            scores[start + 1 : end, 2 + 2 * index[label]] = 0
    return scores


def linked_tokens(n_tokens: int, links: Iterable[NDArray[np.int32]]) -> NDArray[np.bool_]:
    """Return a mask of the tokens that have a link.

    Args:
        n_tokens: Number of tokens.
        links: int32[F, 2] for each link rule, pairs of token indices.

    Returns:
        bool[n_tokens], True for tokens that have a link.
    """
    linked = np.zeros(n_tokens, np.bool_)
    for pairs in links:
        linked[pairs.ravel()] = True
    return linked


def offsets_outside(spans: Iterable[Span], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Remove the sentence offsets that are inside a span, so that no span crosses a sentence border.

    Args:
        spans: Spans of tokens.
        offsets: int64[S + 1], first token of each sentence, and the number of tokens.

    Returns:
        int64[up to S + 1], the remaining offsets.
    """
    inside = {t for span in spans for t in range(span.start + 1, span.end)}
    return np.array([offset for offset in offsets.tolist() if offset not in inside], np.int64)


class ConsistentEntities(NamedTuple):
    """Entities of one ``Doc`` as the consistency layer has predicted them.

    Attributes:
        spans: Spans of the ``Doc``'s tokens in the order of the text.
        confidences: Probability of each span; None if unknown.
        originals: The earlier span of each unchanged entity; None for a changed or new entity.
    """

    spans: list[Span]
    confidences: list[float | None]
    originals: list[DocSpan | None]

    @classmethod
    def without_changes(cls, entities: DocEntities) -> ConsistentEntities:
        """Return the result for a ``Doc`` whose entities all stay as they are.

        Args:
            entities: Entities of the ``Doc``.
        """
        return cls([_plain(span) for span in entities.spans], list(entities.confidences), list(entities.spans))


class ConsistencyTask(NamedTuple):
    """Input of the consistency layer for one ``Doc``: its tokens, and the entities that may change.

    White space is not a token.

    Attributes:
        doc: The ``Doc``.
        entities: All entities of the ``Doc``, before the layer.
        aligned: The document of n tokens.
        tokens: Texts of the tokens; `HIDDEN` for tokens that must keep their tags.
        offsets: int64[S + 1], sentence offsets; no span crosses one.
        names: The entities that may change, as spans of the tokens.
        indices: Index of each name among the entities.
        hidden: bool[n], whether each token must keep its tag.
    """

    doc: Doc
    entities: DocEntities
    aligned: AlignedDocument
    tokens: list[str]
    offsets: NDArray[np.int64]
    names: list[Span]
    indices: list[int]
    hidden: NDArray[np.bool_]

    @classmethod
    def of(
        cls, doc: Doc, entities: DocEntities, ignore_labels: Collection[str], labels: Collection[str] | None
    ) -> ConsistencyTask:
        """Build the input of the consistency layer from a ``Doc`` and its entities.

        Args:
            doc: The ``Doc``.
            entities: Its entities.
            ignore_labels: Labels of entities that must not change.
            labels: Labels of entities that may change; None: all others.

        Returns:
            The task.
        """
        aligned = document_of(doc)
        tokens, hidden = list(aligned.document.tokens), np.zeros(aligned.document.n_tokens, np.bool_)
        spans = [Span(*aligned.to_document_range(span.start, span.end), span.label_) for span in entities.spans]
        indices: list[int] = []
        for i, (start, end, label) in enumerate(spans):
            if start < end and label not in ignore_labels and (labels is None or label in labels):
                indices.append(i)
            else:
                hidden[start:end] = True
        for token in blocked_tokens(doc):
            hidden[slice(*aligned.to_document_range(token.start, token.end))] = True
        for t in np.flatnonzero(hidden).tolist():
            tokens[t] = HIDDEN
        offsets = offsets_outside(spans, aligned.document.sentence_offsets)
        return cls(doc, entities, aligned, tokens, offsets, [spans[i] for i in indices], indices, hidden)

    def scores(
        self,
        labels: Sequence[str],
        linked: NDArray[np.bool_],
        noise: NoiseModel,
        parser_probabilities: ParserProbabilities | None,
        *,
        drop: bool = True,
        unchanged: float = -np.inf,
    ) -> tuple[Floats, list[float | None]]:
        """Return the log-potential of each tag at each token, and the tagger's confidence in each name.

        Args:
            labels: K labels.
            linked: bool[n], whether each token is linked to another one.
            noise: Error rates of the tagger.
            parser_probabilities: Probabilities of the parser that has predicted the entities, if there is one.
            drop: Whether a name may be removed.
            unchanged: See `token_scores`.

        Returns:
            The scores of `token_scores`, and one confidence for each name, None if unknown.
        """
        inside = np.zeros(len(self.tokens), np.bool_)
        for span in self.names:
            inside[span.start : span.end] = True
        outside = np.flatnonzero(linked & ~inside & ~self.hidden)
        tokens = np.unique(np.concatenate([outside, np.array([span.start for span in self.names], np.int64)]))
        rows = np.zeros((len(tokens), len(labels) + 1))
        if parser_probabilities is not None:
            rows = parser_probabilities(labels, self.aligned.doc_tokens[tokens])
        row_of = dict(zip(tokens.tolist(), rows, strict=True))
        index = {label: k for k, label in enumerate(labels)}
        span_scores, confidences = list[Floats](), list[float | None]()
        for (start, _, label), i in zip(self.names, self.indices, strict=True):
            row, confidence = row_of[start], self.entities.confidences[i]
            # If the parser prefers another label, another component has set the entity, and its scores do not apply.
            if confidence is None and row.any() and row[:-1].argmax() == index[label]:
                span_scores.append(noise.parser_scores(row))
                confidence = float(row[index[label]])
            else:
                span_scores.append(noise.span_scores(len(labels), index[label], confidence))
            if not drop:
                span_scores[-1][-1] = -np.inf
            confidences.append(confidence)
        outside_scores = np.empty((len(outside), len(labels) + 1))
        for i, t in enumerate(outside.tolist()):
            row = row_of[t]
            outside_scores[i] = noise.parser_scores(row) if row.any() else noise.outside_scores(len(labels))
        scores = token_scores(
            len(self.tokens), labels, self.names, span_scores, outside, outside_scores, linked, unchanged=unchanged
        )
        return scores, confidences

    def agreed_names(self, links: Iterable[NDArray[np.int32]]) -> NDArray[np.bool_]:
        """Find the names with links whose directly and indirectly linked tokens all have the label of the name.

        Args:
            links: int32[F, 2], linked tokens of each rule.

        Returns:
            bool[names]; True if links support the name and no link contradicts it. False for names without links.
        """
        labels = {label: k for k, label in enumerate(sorted({name.label for name in self.names}), 1)}
        label_of = np.zeros(len(self.tokens), np.int64)  # 0 is outside
        for start, end, label in self.names:
            label_of[start:end] = labels[label]
        pairs = np.concatenate([np.zeros((0, 2), np.int32), *links])
        graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(self.tokens),) * 2)
        n, component = connected_components(graph, directed=False)
        lowest, highest = np.full(n, len(labels)), np.zeros(n, np.int64)
        np.minimum.at(lowest, component, label_of)
        np.maximum.at(highest, component, label_of)
        is_linked = linked_tokens(len(self.tokens), [pairs])
        is_contradicted = is_linked & (lowest != highest)[component]
        return np.array([is_linked[a:b].any() and not is_contradicted[a:b].any() for a, b, _ in self.names], np.bool_)

    def merge(
        self,
        spans: Sequence[Span],
        confidences: Sequence[float | None],
        tagger_confidences: Sequence[float | None],
        links: Sequence[NDArray[np.int32]],
    ) -> ConsistentEntities:
        """Combine the entities that the layer has predicted with the entities that must not change.

        Args:
            spans: Names that the layer has predicted, as spans of the document's tokens.
            confidences: Probabilities of these names under the layer; None if unknown.
            tagger_confidences: The tagger's confidence in each name of the task. A name without links keeps this
                confidence.
            links: int32[F, 2], linked tokens of each rule. A name of `agreed_names` is kept even if the layer has
                removed it.

        Returns:
            All entities in the order of the text.
        """
        linked = linked_tokens(len(self.tokens), links)
        position = {name: at for at, name in enumerate(self.names)}
        may_change = set(self.indices)
        rows: list[tuple[Span, float | None, DocSpan | None]] = [
            (_plain(span), confidence, span)
            for i, (span, confidence) in enumerate(zip(*self.entities, strict=True))
            if i not in may_change
        ]
        for span, doc_span, confidence in zip(spans, self.aligned.to_doc_spans(spans), confidences, strict=True):
            at = position.get(span)
            original = None if at is None else self.entities.spans[self.indices[at]]
            if at is not None and (confidence is None or not linked[span.start : span.end].any()):
                confidence = tagger_confidences[at]
            rows.append((doc_span if original is None else _plain(original), confidence, original))
        covered = np.zeros(len(self.tokens), np.bool_)
        for start, end, _ in spans:
            covered[start:end] = True
        for at in np.flatnonzero(self.agreed_names(links)).tolist():
            start, end, _ = self.names[at]
            if not covered[start:end].any():
                original = self.entities.spans[self.indices[at]]
                rows.append((_plain(original), tagger_confidences[at], original))
        rows.sort(key=lambda row: row[0][:2])
        return ConsistentEntities([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def _plain(span: DocSpan) -> Span:
    return Span(span.start, span.end, span.label_)
