"""Training of a tagger's skip tables on documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from herdner.crf.learning import Score
from herdner.crf.model import CRF
from herdner.crf.objectives import Examples
from herdner.crf.templates import EdgeScale
from herdner.graph import compile_tables
from herdner.inference import Backend
from herdner.ner.document import Document, document_spans
from herdner.ner.evaluate import Pair, count_spans, f1_of_counts
from herdner.ner.model import Model
from herdner.ner.tags import spans_from_tags
from herdner.sampling.seeds import child

TrainChain = Callable[[Sequence[int], str], Model]
"""Trains a chain on the documents of these numbers; the words say what for."""


def held_out_unaries(
    documents: Sequence[Document], labels: Sequence[str], n_folds: int, train: TrainChain
) -> list[NDArray[np.float64]]:
    """For each document float64[tokens, tags], by a chain that was trained without it (every n-th document is a fold).

    A chain knows its own training data too well to need any links there, so that tables learned from it come out too
    small. A single document can only be scored by the chain that was trained on it.
    """
    n_folds = min(n_folds, len(documents))
    unaries: list[NDArray[np.float64]] = [np.empty((0, len(labels)))] * len(documents)
    for fold in range(n_folds):
        others = [i for i in range(len(documents)) if i % n_folds != fold or n_folds == 1]
        model = train(others, f"fold {fold + 1} of {n_folds}")
        extractor = model.extractor()
        for i in range(fold, len(documents), n_folds):
            scores = extractor.scores(documents[i].tokens, documents[i].sentence_offsets)
            unaries[i] = _in_order(scores, model.weights.labels, labels)
    return unaries


def _in_order(scores: NDArray[np.float64], found: Sequence[str], labels: Sequence[str]) -> NDArray[np.float64]:
    """The columns of ``found`` tags in the order of ``labels``; a tag that was not seen is as unlikely as the least."""
    known = {label: k for k, label in enumerate(found)}
    least = scores.min(axis=1)
    return np.stack([scores[:, known[label]] if label in known else least for label in labels], axis=1)


def gather(
    crf: CRF,
    documents: Sequence[Document],
    unaries: Sequence[NDArray[np.float64]],
    states: Sequence[NDArray[np.int32]],
) -> Examples:
    """Documents, their log-potentials and their right tags, in one piece."""
    ends: list[list[NDArray[np.int32]]] = [[np.empty((0, 2), np.int32)] for _ in crf.skips]
    n, offsets = 0, [np.zeros(1, np.int64)]
    for document in documents:
        for found, skip in zip(ends, crf.skips, strict=True):
            found.append(skip.template.cliques(document.tokens, document.sentence_offsets) + np.int32(n))
        offsets.append(document.sentence_offsets[1:] + n)
        n += len(document.tokens)
    sentence_offsets, links = np.concatenate(offsets), tuple(np.concatenate(found) for found in ends)
    unary = np.concatenate(unaries)
    beliefs = crf.chain_marginals(unary, sentence_offsets)
    features = tuple(
        None if skip.scale is None else EdgeScale.features(found, sentence_offsets, beliefs)
        for skip, found in zip(crf.skips, links, strict=True)
    )
    unary = crf.with_borders(unary, sentence_offsets)
    return Examples(unary, sentence_offsets, np.concatenate(states), links, features, beliefs)


def development_f1(model: Model, documents: Sequence[Document], backend: Backend) -> Score:
    """The micro F1 on annotated documents of a CRF on top of the model's features, decoded by ``backend``."""
    extractor, labels = model.extractor(), model.weights.labels
    unaries = [extractor.scores(document.tokens, document.sentence_offsets) for document in documents]
    gold = [document_spans(document) for document in documents]

    def score(crf: CRF) -> float:
        pairs = []
        for i, (document, unary, right) in enumerate(zip(documents, unaries, gold, strict=True)):
            offsets = document.sentence_offsets
            links = crf.links(document.tokens, unary, offsets)
            state = backend.infer(compile_tables(crf.unroll(unary, offsets, links)), child(0, i)).state
            spans = spans_from_tags([labels[k] for k in state.tolist()], offsets)
            pairs.append(Pair(right, spans, offsets))
        return float(f1_of_counts(count_spans(pairs)[1].sum(axis=(0, 1))))

    return score
