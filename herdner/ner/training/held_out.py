"""Predictions on held-out documents, from which links and the calibration are learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.base.seeds import child
from herdner.crf.model import SkipChainModel
from herdner.crf.weights import ChainWeights
from herdner.ner.calibration import Calibration, CalibrationInputs
from herdner.ner.decode import calibration_inputs, decode
from herdner.ner.model import TaggerModel
from herdner.ner.training.corpus import TrainingCorpus
from herdner.text.document import Document
from herdner.text.tags import chunks_from_states, spans_from_tags

TrainChain = Callable[[Sequence[int] | None, str], TaggerModel]
"""Function that trains a chain. Its arguments are the indices of the documents (None is all) and the stage's name."""


def held_out_unaries(
    documents: Sequence[Document], tags: Sequence[str], n_folds: int, train_chain: TrainChain
) -> tuple[list[Floats], list[ChainWeights]]:
    """Compute log-potentials of each document with a linear chain that was trained on other documents only.

    Document i belongs to fold i modulo ``n_folds``. A chain is overconfident on its own training documents, and
    links hardly improve its tags there, so log-potentials of links that were learned there would be too small. If there
    is only one document or one fold, each document is scored by a chain that was also trained on it.

    Args:
        documents: The training documents.
        tags: The K tags, in the order of the returned columns.
        n_folds: Number of folds.
        train_chain: Function that trains a chain.

    Returns:
        float64[tokens, K] for each document, and the weights of the chain of each fold.
    """
    n_folds = min(n_folds, len(documents))
    unaries: list[Floats] = [np.empty((0, len(tags)))] * len(documents)
    chains: list[ChainWeights] = []
    for fold in range(n_folds):
        others = [i for i in range(len(documents)) if i % n_folds != fold or n_folds == 1]
        model = train_chain(others, f"fold {fold + 1} of {n_folds}")
        extractor = model.extractor()
        chains.append(model.weights)
        for i in range(fold, len(documents), n_folds):
            scores = extractor.scores(documents[i].tokens, documents[i].sentence_offsets)
            unaries[i] = _reorder(scores, model.weights.tags, tags)
    return unaries, chains


def _reorder(scores: Floats, columns: Sequence[str], tags: Sequence[str]) -> Floats:
    """Reorder the columns of an array of scores, so that they are in the order of ``tags``.

    A tag that ``columns`` lacks gets the lowest score of each token.
    """
    index = {tag: k for k, tag in enumerate(columns)}
    lowest = scores.min(axis=1)
    return np.stack([scores[:, index[tag]] if tag in index else lowest for tag in tags], axis=1)


class HeldOutPredictions(NamedTuple):
    """Entities predicted in held-out documents, with the correctness of each entity.

    Attributes:
        inputs: Properties from which confidences are calibrated.
        is_correct: bool[M], True if an entity is a gold entity.
        is_decidable: bool[M], False if partial annotation does not decide whether the entity is correct.
    """

    inputs: CalibrationInputs
    is_correct: NDArray[np.bool_]
    is_decidable: NDArray[np.bool_]


def predict_held_out(
    model: SkipChainModel, tags: tuple[str, ...], corpus: TrainingCorpus, unaries: Sequence[Floats]
) -> HeldOutPredictions:
    """Predict the entities of held-out documents from log-potentials, and compare them with the gold entities.

    Args:
        model: Transition table and learned tables of links.
        tags: The K tags, in the order of the tables.
        corpus: Annotated documents.
        unaries: float64[tokens, K] for each document, log-potentials by a chain that was not trained on the document.

    Returns:
        The predicted entities, and for each whether it is correct.
    """
    parts: list[CalibrationInputs] = []
    is_correct, is_decidable = [np.empty(0, np.bool_)], [np.empty(0, np.bool_)]
    for i, (document, unary) in enumerate(zip(corpus.documents, unaries, strict=True)):
        offsets = document.sentence_offsets
        links = model.links(document.tokens, offsets)
        decoded = decode(model, unary, offsets, links, None, child(0, i))
        gold = set(spans_from_tags(corpus.gold[i], offsets))
        chunks = chunks_from_states(decoded.states, tags, offsets)
        inputs, spans = calibration_inputs(model, unary, offsets, links, decoded, chunks), chunks.spans()
        parts.append(inputs._replace(document=np.full(len(spans), i)))
        is_correct.append(np.array([span in gold for span in spans], np.bool_))
        is_decidable.append(np.ones(len(spans), np.bool_))
        if document.partial is not None:  # then CRFsuite is not used, and ``tags`` equals ``corpus.tags``
            is_allowed = corpus.allowed[i][np.arange(len(unary)), decoded.states] != 0
            may_be_correct = np.array([is_allowed[span.start : span.end].all() for span in spans], np.bool_)
            is_decidable[-1] = is_correct[-1] | ~may_be_correct
    return HeldOutPredictions(
        CalibrationInputs.concatenate(parts), np.concatenate(is_correct), np.concatenate(is_decidable)
    )


def fit_calibration(
    predictions: HeldOutPredictions, sources: Sequence[int] | None, origin: Calibration | None
) -> Calibration:
    """Fit a calibration of confidences to entities predicted in held-out documents.

    Args:
        predictions: Entities of held-out documents.
        sources: Index of the source of each document. All sources have equal weight; None weights entities equally.
        origin: Calibration that is the mean of the prior; None is the identity.

    Returns:
        The calibration.
    """
    inputs, is_correct, is_decidable = predictions
    weights = is_decidable.astype(np.float64)
    if sources is not None:
        source = np.array(sources, np.int64)[inputs.document]
        sizes = np.bincount(source, weights)
        weights *= (weights.sum() / np.count_nonzero(sizes) / np.maximum(sizes, 1))[source]
    return Calibration.fit(inputs, is_correct, weights, origin)
