"""A ``Doc`` with entities as a problem for `herdner.SkipChainLayer`, and its answer as entities of the ``Doc``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.tokens import Span as DocSpan

from herdner.base.arrays import Floats
from herdner.integrations.spacy.common import Aligned, blocked_tokens, document_of
from herdner.integrations.spacy.evidence import Evidence
from herdner.integrations.spacy.span_scores import Trust, token_scores
from herdner.ner.layer import SkipChainLayer
from herdner.text.tags import Span

HIDDEN = "0"  # stands for a token that no rule may link
CERTAIN = -20.0  # log-potential of a tag that is not open to change, while tables are learned: it may be wrong
Asking = Callable[[Sequence[str], NDArray[np.int64]], Floats]
"""Labels and tokens of the ``Doc``, to the probability of each label, and of no name, at each token; 0: unknown."""


class Predicted(NamedTuple):
    """Entities of one ``Doc`` in the order of the text: spans of its tokens, how probable each is (None where nobody
    says), and the span of before where it stays what it was.
    """

    spans: list[Span]
    confidences: list[float | None]
    before: list[DocSpan | None]


class Task(NamedTuple):
    """A ``Doc`` made ready: tokens without white space, where those that stay as they are are hidden, in sentences that
    no span crosses; the names among the spans of the evidence, over these tokens, and their numbers there; which tokens
    are hidden, bool[n].
    """

    aligned: Aligned
    tokens: list[str]
    offsets: NDArray[np.int64]
    names: list[Span]
    numbers: list[int]
    hidden: NDArray[np.bool_]

    @classmethod
    def of(cls, doc: Doc, evidence: Evidence, leave_alone: Collection[str], known: Collection[str] | None) -> Task:
        """The names of the evidence in ``doc`` that are open to change.

        Args:
            known: The labels that are open to change, but for those to leave alone; None is all.
        """
        aligned = document_of(doc)
        tokens, hidden = list(aligned.document.tokens), np.zeros(aligned.document.n_tokens, np.bool_)
        places = [Span(*aligned.in_document(span.start, span.end), span.label_) for span in evidence.spans]
        names, numbers = list[Span](), list[int]()
        for i, (start, end, label) in enumerate(places):
            if start < end and label not in leave_alone and (known is None or label in known):
                names.append(places[i])
                numbers.append(i)
            else:
                hidden[start:end] = True
        for token in blocked_tokens(doc):
            hidden[slice(*aligned.in_document(token.start, token.end))] = True
        for t in np.flatnonzero(hidden).tolist():
            tokens[t] = HIDDEN
        offsets = borders_outside(places, aligned.document.sentence_offsets)
        return cls(aligned, tokens, offsets, names, numbers, hidden)

    def scores(
        self,
        evidence: Evidence,
        labels: Sequence[str],
        linked: NDArray[np.bool_],
        trust: Trust,
        asking: Asking | None,
        *,
        drop: bool = True,
        otherwise: float = -np.inf,
    ) -> tuple[Floats, list[float | None]]:
        """The log-potentials of tokens (`token_scores`), and of each name how sure of it its component was.

        Args:
            drop: Whether a name may turn out to be none.
        """
        inside = np.zeros(len(self.tokens), np.bool_)
        for span in self.names:
            inside[span.start : span.end] = True
        outside = np.flatnonzero(linked & ~inside & ~self.hidden)
        tokens = np.unique(np.concatenate([outside, np.array([span.start for span in self.names], np.int64)]))
        nothing = np.zeros((len(tokens), len(labels) + 1))
        rows = nothing if asking is None else asking(labels, self.aligned.places[tokens])
        asked = dict(zip(tokens.tolist(), rows, strict=True))
        number = {label: k for k, label in enumerate(labels)}
        span_scores, sure = list[Floats](), list[float | None]()
        for (start, _, label), i in zip(self.names, self.numbers, strict=True):
            row, confidence = asked[start], evidence.confidences[i]
            # What the parser would not have chosen, somebody else has: it has nothing to say about that.
            if confidence is None and row.any() and row[:-1].argmax() == number[label]:
                span_scores.append(trust.of_tagger(row))
                confidence = float(row[number[label]])
            else:
                span_scores.append(trust.of_span(len(labels), number[label], confidence))
            if not drop:
                span_scores[-1][-1] = -np.inf
            sure.append(confidence)
        unheld = [
            trust.of_tagger(row) if row.any() else trust.of_outside(len(labels))
            for row in (asked[t] for t in outside.tolist())
        ]
        held = np.stack(unheld) if unheld else np.empty((0, len(labels) + 1))
        scores = token_scores(
            len(self.tokens), labels, self.names, span_scores, outside, held, linked, otherwise=otherwise
        )
        return scores, sure


def classes_of(layer: SkipChainLayer) -> tuple[str, ...]:
    """The labels that the tags of a layer are of."""
    return tuple(tag[2:] for tag in layer.labels if tag.startswith("B-"))


def linked_tokens(n_tokens: int, links: Iterable[NDArray[np.int32]]) -> NDArray[np.bool_]:
    """bool[n_tokens]: those that a link ends at."""
    linked = np.zeros(n_tokens, np.bool_)
    for ends in links:
        linked[ends.ravel()] = True
    return linked


def borders_outside(spans: Iterable[Span], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sentence borders that do not cut a span."""
    inner = {t for span in spans for t in range(span.start + 1, span.end)}
    return np.array([at for at in offsets.tolist() if at not in inner], np.int64)


def unchanged(evidence: Evidence) -> Predicted:
    """What was there before."""
    return Predicted([_plain(span) for span in evidence.spans], list(evidence.confidences), list(evidence.spans))


def merged(
    task: Task,
    evidence: Evidence,
    spans: Sequence[Span],
    confidences: Sequence[float | None],
    linked: NDArray[np.bool_],
    sure: Sequence[float | None],
) -> Predicted:
    """The names of the layer, and the spans that it was not asked about; what is linked to nothing stays as sure."""
    numbers = {name: at for at, name in enumerate(task.names)}
    named_before = set(task.numbers)
    rows: list[tuple[Span, float | None, DocSpan | None]] = [
        (_plain(span), confidence, span)
        for i, (span, confidence) in enumerate(zip(*evidence, strict=True))
        if i not in named_before
    ]
    for span, place, confidence in zip(spans, task.aligned.in_doc(spans), confidences, strict=True):
        at = numbers.get(span)
        old = None if at is None else evidence.spans[task.numbers[at]]
        if at is not None and (confidence is None or not linked[span.start : span.end].any()):
            confidence = sure[at]
        rows.append((place if old is None else _plain(old), confidence, old))
    rows.sort(key=lambda row: row[0][:2])
    return Predicted([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def _plain(span: DocSpan) -> Span:
    return Span(span.start, span.end, span.label_)
