"""Entities that earlier components of a pipeline have predicted, with their probabilities."""

# spaCy is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc
from spacy.tokens import Span as DocSpan
from spacy.util import filter_spans

from herdner.base.arrays import Floats
from herdner.integrations.spacy.doc import EXTENSION

OVERLAPS = ("error", "best")


class DocEntities(NamedTuple):
    """Entities of a ``Doc``, and the confidence of each entity.

    Attributes:
        spans: Disjoint spans in the order of the text.
        confidences: Probability of each span; None if unknown.
    """

    spans: list[DocSpan]
    confidences: list[float | None]


def read_ents(doc: Doc) -> DocEntities:
    """Return the entities in ``doc.ents``, with the confidences in ``ent._.confidence``.

    Args:
        doc: A ``Doc`` that an earlier component has annotated.

    Raises:
        ValueError: No component has set entities, or a confidence is not a probability.
    """
    if len(doc) and not doc.has_annotation("ENT_IOB"):
        raise ValueError(
            "no earlier component has set doc.ents: add this component after one that sets doc.ents, as in"
            ' nlp.add_pipe("herdner_consistency", after="ner"), or set spans_key'
        )
    has_confidence = DocSpan.has_extension(EXTENSION)
    spans = list(doc.ents)
    return DocEntities(spans, [_probability(span._.get(EXTENSION) if has_confidence else None, span) for span in spans])


def read_group(doc: Doc, key: str, scores_key: str, overlaps: str) -> DocEntities:
    """Return the spans in ``doc.spans[key]``, with the scores in ``doc.spans[key].attrs[scores_key]``.

    Args:
        doc: The ``Doc``.
        key: Name of the group.
        scores_key: Name of the attribute with the scores.
        overlaps: "error", or "best" to keep the most probable of overlapping spans, or the longest without scores.

    Returns:
        The spans, sorted.

    Raises:
        ValueError: The group is missing, or its spans or scores are invalid.
    """
    if key not in doc.spans:
        groups = ", ".join(map(repr, doc.spans)) or "none"
        raise ValueError(
            f"doc.spans has no group {key!r} (groups: {groups}): add this component after the one that writes the"
            " group, such as spancat, and set the same spans_key for both"
        )
    group = doc.spans[key]
    spans: list[DocSpan] = list(group)
    scores = group.attrs.get(scores_key)
    if scores is not None and len(scores) != len(spans):
        raise ValueError(
            f"doc.spans[{key!r}] has {len(spans)} spans but {len(scores)} scores in attrs[{scores_key!r}]: set one"
            " score for each span, or none"
        )
    scores = [None] * len(spans) if scores is None else scores
    confidences = [_probability(score, span) for score, span in zip(scores, spans, strict=True)]
    invalid = next((span for span in spans if not span.label_ or span.start >= span.end), None)
    if invalid is not None:
        raise ValueError(f"span {invalid.text!r:.60} in doc.spans[{key!r}] has no label or no token: remove this span")
    order = sorted(range(len(spans)), key=lambda i: (int(spans[i].start), int(spans[i].end)))
    overlap = next(((a, b) for a, b in pairwise(order) if spans[b].start < spans[a].end), None)
    if overlap is not None and overlaps == "error":
        first, second = (spans[i] for i in overlap)
        raise ValueError(
            f'spans {first.text!r:.60} and {second.text!r:.60} in doc.spans[{key!r}] overlap: set overlaps to "best" in'
            " the configuration, or remove overlapping spans by spacy.util.filter_spans in an earlier component"
        )
    if overlap is not None:
        order = _best_spans(spans, confidences)
    return DocEntities([spans[i] for i in order], [confidences[i] for i in order])


def _best_spans(spans: Sequence[DocSpan], confidences: Sequence[float | None]) -> list[int]:
    """Select disjoint spans, the most probable first, and return their indices.

    If the confidence of any span is unknown, the longest spans are selected instead.
    """
    if any(confidence is None for confidence in confidences):
        kept = {id(span) for span in filter_spans(spans)}
        return sorted((i for i, span in enumerate(spans) if id(span) in kept), key=lambda i: spans[i].start)
    covered: set[int] = set()
    best: list[int] = []
    for i in sorted(range(len(spans)), key=lambda i: (-(confidences[i] or 0.0), spans[i].start, -spans[i].end)):
        tokens = range(spans[i].start, spans[i].end)
        if covered.isdisjoint(tokens):
            covered.update(tokens)
            best.append(i)
    return sorted(best, key=lambda i: spans[i].start)


def _probability(score: Any, span: DocSpan) -> float | None:
    """Return ``score`` as a float, or raise `ValueError` if ``score`` is not a probability."""
    if score is None:
        return None
    value = float(score)
    if not 0 <= value <= 1.001:
        raise ValueError(f"the score of {span.text!r:.60} must be a probability from 0 to 1, got {value:g}")
    return min(value, 1.0)


def preceding_parser(nlp: Language, component: Any) -> Any:
    """Return the last ``ner`` or ``beam_ner`` before the component in its pipeline; return None if there is none.

    Args:
        nlp: The pipeline.
        component: A component of the pipeline.
    """
    earlier = takewhile(lambda pipe: pipe is not component, (pipe for _, pipe in nlp.pipeline))
    parsers = [pipe for pipe in earlier if isinstance(pipe, EntityRecognizer)]
    return parsers[-1] if parsers else None


def begin_probabilities(parser: Any, doc: Doc, labels: Sequence[str], tokens: NDArray[np.int64]) -> Floats:
    """Return the probabilities with which a transition parser begins an entity at each token (Lample et al. 2016).

    The parser runs on the single ``Doc``, so that results do not depend on other documents.

    Args:
        parser: spaCy's ``ner``.
        doc: The ``Doc``.
        labels: K labels.
        tokens: int64[C], ascending indices of tokens.

    Returns:
        float64[C, K + 1]: for each token, the probabilities that an entity of each label begins there; the last column
        is the probability that no entity begins. A row is 0 if the parser stops before the token.
    """
    columns = _action_columns(parser, labels)
    probabilities = np.zeros((len(tokens), len(labels) + 1))
    states = [state for state in parser.moves.init_batch([doc]) if not state.is_final()]
    model: Any = parser.model.predict([doc])
    rows = {token: row for row, token in enumerate(tokens.tolist())}
    token = 0  # each action consumes one token
    while states and token <= (tokens[-1] if len(tokens) else -1):
        scores = np.ascontiguousarray(parser.model.ops.to_numpy(model.predict(states)), np.float32)
        if token in rows:
            probabilities[rows[token]] = _begin_probabilities(scores[0], columns, len(labels))
        states = parser.transition_states(states, scores)
        token += 1
    model.clear_memory()
    return probabilities


def _action_columns(parser: Any, labels: Sequence[str]) -> NDArray[np.int64]:
    """Return, for each action of the parser, the index of the label probability to which the action contributes.

    An action that begins an entity has the index of its label, or K + 1 if the label is not in ``labels``. The action O
    (outside) has the index K. Actions inside an entity have the index -1.
    """
    index = {label: k for k, label in enumerate(labels)}

    def column(action: str) -> int:
        if action == "O":
            return len(labels)
        prefix, _, label = action.partition("-")
        return index.get(label, len(labels) + 1) if prefix in ("B", "U") and label else -1

    moves = parser.moves
    return np.array([column(moves.get_class_name(action)) for action in range(moves.n_moves)])


def _begin_probabilities(scores: NDArray[np.float32], columns: NDArray[np.int64], n_labels: int) -> Floats:
    """Convert the scores of the parser's actions to probabilities [K + 1] of K labels and of "not an entity".

    Each probability is the softmax of the scores, summed over the actions of its column.
    """
    actions = columns >= 0
    odds = np.exp(scores[actions].astype(np.float64) - float(scores[actions].max()))
    return np.bincount(columns[actions], odds, n_labels + 2)[: n_labels + 1] / odds.sum()
