"""Log-potentials that are held out: of each document, by a chain that was trained without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from herdner.ner.model import TaggerModel
from herdner.text.document import Document

TrainChain = Callable[[Sequence[int] | None, str], TaggerModel]
"""Trains a chain on the documents of these numbers, None: on all; the words say what for."""


def held_out_unaries(
    documents: Sequence[Document], labels: Sequence[str], n_folds: int, train: TrainChain
) -> list[NDArray[np.float64]]:
    """For each document float64[tokens, tags], by a chain that was trained without it (every n-th document is a fold).

    A chain knows its own training data too well to need any links there, so that tables learned from it come out too
    small, and is too sure of it. A single document can only be scored by the chain that was trained on it.
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
