"""F1 on documents that are not learned from, by which the best iteration is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from herdner.base.seeds import child
from herdner.crf.learning import ScoreFunction
from herdner.crf.model import SkipChainModel
from herdner.evaluation.scores import DocumentSpans, count_entities, f1_from_counts
from herdner.inference import Backend
from herdner.ner.decode import Tokenized, decode
from herdner.text.tags import Span, spans_from_states


def development_f1(
    labels: Sequence[str],
    documents: Sequence[Tokenized],
    unaries: Sequence[NDArray[np.float64]],
    gold: Sequence[list[Span]],
    backend: Backend,
) -> ScoreFunction:
    """The micro F1 on documents with these log-potentials and right spans of a CRF whose tags are ``labels``."""
    check_development(gold)

    def score(crf: SkipChainModel) -> float:
        pairs: list[DocumentSpans] = []
        for i, (document, unary, right) in enumerate(zip(documents, unaries, gold, strict=True)):
            offsets = document.sentence_offsets
            links = crf.links(document.tokens, offsets)
            states = decode(crf, unary, offsets, links, backend, child(0, i)).states
            pairs.append(DocumentSpans(right, spans_from_states(states, tuple(labels), offsets), offsets))
        return float(f1_from_counts(count_entities(pairs)[1].sum(axis=(0, 1))))

    return score


def check_development(gold: Sequence[list[Span]]) -> None:
    """ValueError where no document has a right span: every iteration would score the same, and the first win."""
    if not any(gold):
        raise ValueError("the development documents hold no entity on tokens; give annotated, tokenised ones, or none")
