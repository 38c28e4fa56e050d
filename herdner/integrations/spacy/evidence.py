"""What components before ``herdner_consistency`` have found in a ``Doc``, and how sure of it they were."""

# spaCy has types in parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc
from spacy.tokens import Span as DocSpan
from spacy.util import filter_spans

from herdner.integrations.spacy.common import EXTENSION

OVERLAPS = ("error", "best")


class Evidence(NamedTuple):
    """Disjoint spans in the order of the text, and the probability of each where it is known."""

    spans: list[DocSpan]
    confidences: list[float | None]


def entities_of(doc: Doc) -> Evidence:
    """``doc.ents``, with ``ent._.confidence``. ValueError where no component has looked for any."""
    if len(doc) and not doc.has_annotation("ENT_IOB"):
        raise ValueError(
            "no component before it has looked for entities (doc.ents): put it behind one that does, as in"
            ' nlp.add_pipe("herdner_consistency", after="ner"), or name a spans_key'
        )
    known = DocSpan.has_extension(EXTENSION)
    spans = list(doc.ents)
    return Evidence(spans, [_checked(span._.get(EXTENSION) if known else None, span) for span in spans])


def group_of(doc: Doc, key: str, scores_key: str, overlaps: str) -> Evidence:
    """``doc.spans[key]``, with its ``attrs[scores_key]``. ValueError says what is wrong with them."""
    if key not in doc.spans:
        there = ", ".join(map(repr, doc.spans)) or "none"
        raise ValueError(
            f"doc.spans has no group {key!r}, there is {there}: put the component behind the one that writes the group,"
            " such as spancat, and give both the same spans_key"
        )
    group = doc.spans[key]
    spans: list[DocSpan] = list(group)
    scores = group.attrs.get(scores_key)
    if scores is not None and len(scores) != len(spans):
        raise ValueError(
            f"doc.spans[{key!r}] has {len(spans)} spans but {len(scores)} scores in attrs[{scores_key!r}]: give one for"
            " each span, or none"
        )
    values = [None] * len(spans) if scores is None else [_checked(*pair) for pair in zip(scores, spans, strict=True)]
    nameless = next((span for span in spans if not span.label_ or span.start >= span.end), None)
    if nameless is not None:
        raise ValueError(f"span {nameless.text!r:.60} in doc.spans[{key!r}] has no label or no token: leave it out")
    order = sorted(range(len(spans)), key=lambda i: (int(spans[i].start), int(spans[i].end)))
    clash = next(((a, b) for a, b in pairwise(order) if spans[b].start < spans[a].end), None)
    if clash is None:
        return Evidence([spans[i] for i in order], [values[i] for i in order])
    if overlaps == "error":
        one, other = (spans[i] for i in clash)
        raise ValueError(
            f'spans {one.text!r:.60} and {other.text!r:.60} in doc.spans[{key!r}] overlap: set overlaps to "best" in'
            " its config to keep the surest ones, or use spacy.util.filter_spans before"
        )
    kept = _best(spans, values)
    return Evidence([spans[i] for i in kept], [values[i] for i in kept])


def _best(spans: Sequence[DocSpan], confidences: Sequence[float | None]) -> list[int]:
    """The spans that are kept of overlapping ones: the surest first; without scores the longest, as `filter_spans`."""
    if any(confidence is None for confidence in confidences):
        chosen = {id(span) for span in filter_spans(spans)}
        return sorted((i for i, span in enumerate(spans) if id(span) in chosen), key=lambda i: spans[i].start)
    taken: set[int] = set()
    kept = []
    for i in sorted(range(len(spans)), key=lambda i: (-(confidences[i] or 0.0), spans[i].start, -spans[i].end)):
        tokens = range(spans[i].start, spans[i].end)
        if taken.isdisjoint(tokens):
            taken.update(tokens)
            kept.append(i)
    return sorted(kept, key=lambda i: spans[i].start)


def _checked(confidence: Any, span: DocSpan) -> float | None:
    if confidence is None:
        return None
    value = float(confidence)
    if not 0 <= value <= 1.001:
        raise ValueError(f"the score of {span.text!r:.60} is {value:g}: a score must be a probability, from 0 to 1")
    return min(value, 1.0)


def parser_before(nlp: Language, component: Any) -> Any:
    """The last ``ner`` or ``beam_ner`` that stands before the component in its pipeline; None where there is none."""
    found = None
    for _, pipe in nlp.pipeline:
        if pipe is component:
            break
        if isinstance(pipe, EntityRecognizer):
            found = pipe
    return found


def ask(parser: Any, doc: Doc, labels: Sequence[str], tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """[C, K + 1]: the probability that an entity of each label begins at each of the ``tokens`` (ascending), and, last,
    that none does: what the transition parser (Lample et al. 2016) had to choose from when it came there, entities
    before it being those of ``doc.ents``. Rows of 0 where it did not come there.

    One by one, and not in batches, so that nothing depends on the other documents.
    """
    columns = _columns(parser, labels)
    found = np.zeros((len(tokens), len(labels) + 1))
    states = [state for state in parser.moves.init_batch([doc]) if not state.is_final()]
    model: Any = parser.model.predict([doc])
    wanted = {token: row for row, token in enumerate(tokens.tolist())}
    at = 0  # each action takes one token
    while states and at <= (tokens[-1] if len(tokens) else -1):
        scores = np.ascontiguousarray(parser.model.ops.to_numpy(model.predict(states)), np.float32)
        if at in wanted:
            found[wanted[at]] = _begins(scores[0], columns, len(labels))
        states = parser.transition_states(states, scores)
        at += 1
    model.clear_memory()
    return found


def _columns(parser: Any, labels: Sequence[str]) -> NDArray[np.int64]:
    """For each action: the number of the label that it begins, len(labels) for none, len(labels) + 1 for labels of no
    interest, -1 for what is no beginning.
    """
    number = {label: k for k, label in enumerate(labels)}

    def column(action: str) -> int:
        if action == "O":
            return len(labels)
        prefix, _, label = action.partition("-")
        return number.get(label, len(labels) + 1) if prefix in ("B", "U") and label else -1

    moves = parser.moves
    return np.array([column(moves.get_class_name(action)) for action in range(moves.n_moves)])


def _begins(scores: NDArray[np.float32], columns: NDArray[np.int64], n_labels: int) -> NDArray[np.float64]:
    possible = columns >= 0
    odds = np.exp(scores[possible].astype(np.float64) - float(scores[possible].max()))
    return np.bincount(columns[possible], odds, n_labels + 2)[: n_labels + 1] / odds.sum()
