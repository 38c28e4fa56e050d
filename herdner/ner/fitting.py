"""What the training of links and the calibration need: documents in one piece, log-potentials that are held out, what a
CRF says of them, F1 on other documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.seeds import child
from herdner.crf.learning import Score
from herdner.crf.model import CRF
from herdner.crf.objectives import Examples
from herdner.crf.templates import EdgeScale
from herdner.evaluation.scores import Pair, count_spans, f1_of_counts
from herdner.inference import Backend
from herdner.ner.calibration import Beliefs, Calibration
from herdner.ner.decode import Tokenized, decode, joined, span_beliefs
from herdner.ner.model import Model
from herdner.ner.supervision import Supervision
from herdner.text.document import Document
from herdner.text.tags import Span, spans_from_states, spans_from_tags

TrainChain = Callable[[Sequence[int], str], Model]
"""Trains a chain on the documents of these numbers; the words say what for."""


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


class Judged(NamedTuple):
    """What a CRF says of the M names that it finds; which are ``right``, bool[M], and of which that is ``known``,
    bool[M]: an annotation in part need not tell.
    """

    said: Beliefs
    right: NDArray[np.bool_]
    known: NDArray[np.bool_]


def judged(
    crf: CRF,
    labels: tuple[str, ...],
    documents: Sequence[Document],
    unaries: Sequence[NDArray[np.float64]],
    taught: Supervision,
) -> Judged:
    """The names that a CRF over these tags finds in documents with these log-potentials."""
    said: list[Beliefs] = []
    right, known = [np.empty(0, np.bool_)], [np.empty(0, np.bool_)]
    for i, (document, unary) in enumerate(zip(documents, unaries, strict=True)):
        offsets = document.sentence_offsets
        links = crf.links(document.tokens, unary, offsets)
        found = decode(crf, unary, offsets, links, None, child(0, i))
        gold, spans = set(spans_from_tags(taught.gold[i], offsets)), spans_from_states(found.states, labels, offsets)
        own = span_beliefs(crf, unary, offsets, links, found, spans)
        said.append(own._replace(document=np.full(len(spans), i)))
        right.append(np.array([span in gold for span in spans], np.bool_))
        known.append(np.ones(len(spans), np.bool_))
        if document.open is not None:  # then the labels are those of the annotation
            may = taught.allowed[i][np.arange(len(unary)), found.states] != 0
            known[-1] = right[-1] | ~np.array([may[span.start : span.end].all() for span in spans], np.bool_)
    return Judged(Beliefs.joined(said), np.concatenate(right), np.concatenate(known))


def calibration(found: Judged, sources: Sequence[int] | None, origin: Calibration | None) -> Calibration:
    """Fitted to names that were held against the truth; each of the ``sources`` of the documents counts the same."""
    counts = found.known.astype(np.float64)
    if sources is not None:
        of_name = np.array(sources, np.int64)[found.said.document]
        sizes = np.bincount(of_name, counts)
        counts *= (counts.sum() / np.count_nonzero(sizes) / np.maximum(sizes, 1))[of_name]
    return Calibration.fit(found.said, found.right, counts, origin)


def numbered(groups: Sequence[str] | None, n_documents: int) -> list[int] | None:
    """Of each document the number of its group, from 0. ValueError where there is not one for each document."""
    if groups is None:
        return None
    if len(groups) != n_documents:
        raise ValueError(f"{n_documents} documents but {len(groups)} groups: name a source for each document")
    number = {group: k for k, group in enumerate(dict.fromkeys(groups))}
    return [number[group] for group in groups]


def _in_order(scores: NDArray[np.float64], found: Sequence[str], labels: Sequence[str]) -> NDArray[np.float64]:
    """The columns of ``found`` tags in the order of ``labels``; a tag that was not seen is as unlikely as the least."""
    known = {label: k for k, label in enumerate(found)}
    least = scores.min(axis=1)
    return np.stack([scores[:, known[label]] if label in known else least for label in labels], axis=1)


def gather(
    crf: CRF,
    documents: Sequence[Tokenized],
    unaries: Sequence[NDArray[np.float64]],
    states: Sequence[NDArray[np.int32]],
) -> Examples:
    """Documents, their log-potentials and their right tags, in one piece."""
    _, sentence_offsets, ends = joined(crf, documents)
    unary = np.concatenate(unaries)
    beliefs = crf.chain_marginals(unary, sentence_offsets)
    features = tuple(
        None if each.scale is None else EdgeScale.features(found, sentence_offsets, beliefs)
        for each, found in zip(crf.link_tables, ends, strict=True)
    )
    unary = crf.with_borders(unary, sentence_offsets)
    return Examples(unary, sentence_offsets, np.concatenate(states), tuple(ends), features, beliefs)


def development_f1(
    labels: Sequence[str],
    documents: Sequence[Tokenized],
    unaries: Sequence[NDArray[np.float64]],
    gold: Sequence[list[Span]],
    backend: Backend,
) -> Score:
    """The micro F1 on documents with these log-potentials and right spans of a CRF whose tags are ``labels``."""
    check_development(gold)

    def score(crf: CRF) -> float:
        pairs: list[Pair] = []
        for i, (document, unary, right) in enumerate(zip(documents, unaries, gold, strict=True)):
            offsets = document.sentence_offsets
            links = crf.links(document.tokens, unary, offsets)
            states = decode(crf, unary, offsets, links, backend, child(0, i)).states
            pairs.append(Pair(right, spans_from_states(states, tuple(labels), offsets), offsets))
        return float(f1_of_counts(count_spans(pairs)[1].sum(axis=(0, 1))))

    return score


def check_development(gold: Sequence[list[Span]]) -> None:
    """ValueError where no document has a right span: every iteration would score the same, and the first win."""
    if not any(gold):
        raise ValueError("the development documents hold no entity on tokens; give annotated, tokenised ones, or none")
