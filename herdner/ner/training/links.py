"""Learning of a model's tables of links, on the log-potentials of held-out chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.crf.learning import LearningCurve, LearningStep, learn_tables
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.objectives import Examples
from herdner.crf.trainer import TrainingProgress
from herdner.crf.weights import ChainWeights
from herdner.inference import make_backend
from herdner.ner.decode import Tokenized, joined
from herdner.ner.inference import DEFAULT_BACKEND
from herdner.ner.model import TaggerModel
from herdner.ner.training.corpus import Lessons
from herdner.ner.training.development import development_f1
from herdner.ner.training.folds import TrainChain, held_out_unaries
from herdner.ner.training.options import Recipe


class Linked(NamedTuple):
    """A model with what was learned of links, how, and the log-potentials of each document by a chain that has not seen
    it, float64[tokens, tags]; None where nothing had to be learned.
    """

    model: TaggerModel
    curve: LearningCurve | None = None
    unaries: list[Floats] | None = None


def learn_links(
    model: TaggerModel,
    tables: tuple[LinkTable, ...],
    lessons: Lessons,
    recipe: Recipe,
    train: TrainChain,
    progress: TrainingProgress | None,
    seed: int,
) -> Linked:
    """The model with learned tables of links, where anything is linked. A model that has tables
    adapts them: they are the mean of the prior.
    """
    documents, labels = lessons.documents, model.weights.labels
    linked = any(len(each.template.links(d.tokens, d.sentence_offsets)) for each in tables for d in documents)
    if not linked:
        return Linked(model)
    states, chains = _states(model, lessons), [model.weights]

    def train_fold(chosen: Sequence[int] | None, stage: str) -> TaggerModel:
        fold = train(chosen, stage)
        chains.append(fold.weights)
        return fold

    unaries = held_out_unaries(documents, labels, recipe.n_folds, train_fold)
    if recipe.averaged:
        model = replace(model, weights=ChainWeights.mean(chains))
    crf = replace(model.crf(), link_tables=tables)
    examples, score = gather(crf, documents, unaries, states), None
    if scored := lessons.development:
        extractor, gold = model.extractor(), [document.spans or [] for document in scored]
        own = [extractor.scores(document.tokens, document.sentence_offsets) for document in scored]
        score = development_f1(labels, scored, own, gold, make_backend(DEFAULT_BACKEND))
    told, adapted = _told(progress, sum(map(len, states))), bool(model.link_tables)
    crf, curve = learn_tables(crf, examples, recipe.learner, score=score, seed=seed, progress=told, adapted=adapted)
    transition = np.where(np.isfinite(crf.transition), crf.transition, model.weights.transition)
    model = replace(model, weights=replace(model.weights, transition=transition), link_tables=crf.link_tables)
    return Linked(model, curve, unaries)


def _told(progress: TrainingProgress | None, n_tokens: int) -> Callable[[LearningStep], None]:
    """Tells each step of the learner as the trainer of chains tells its own."""

    def report(step: LearningStep) -> None:
        if progress is not None:
            progress(step.iteration, {"stage": "links", "loss": step.value * n_tokens, "f1": step.score})

    return report


def _states(model: TaggerModel, lessons: Lessons) -> list[NDArray[np.int32]]:
    """Of each document int32[tokens], its tags; where they are open, those that the model believes in."""
    taught = lessons.taught
    if taught.borders is None or model.weights.labels != taught.labels:  # CRFsuite has an order of its own
        number = {label: k for k, label in enumerate(model.weights.labels)}
        return [np.array([number[tag] for tag in sequence], np.int32) for sequence in taught.gold]
    extractor, transition = model.extractor(), model.weights.transition
    return [
        taught.states(i, extractor.scores(d.tokens, d.sentence_offsets), transition, d.sentence_offsets)
        for i, d in enumerate(lessons.documents)
    ]


def gather(
    crf: SkipChainModel,
    documents: Sequence[Tokenized],
    unaries: Sequence[NDArray[np.float64]],
    states: Sequence[NDArray[np.int32]],
) -> Examples:
    """Documents, their log-potentials and their right tags, in one piece."""
    _, sentence_offsets, ends = joined(crf, documents)
    unary = np.concatenate(unaries)
    marginals = crf.chain_marginals(unary, sentence_offsets)
    unary = crf.with_borders(unary, sentence_offsets)
    return Examples(unary, sentence_offsets, np.concatenate(states), tuple(ends), marginals)
