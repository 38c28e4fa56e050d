"""Training of a model: the chain on all documents, then the tables of links, then the calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from herdner.crf.learning import LearningCurve
from herdner.crf.likelihood import ImpossibleTags
from herdner.crf.trainer import StoppingRule, TrainingProgress
from herdner.ner.features import make_extractor
from herdner.ner.model import TaggerModel
from herdner.ner.training.adapting import checked_start, link_tables
from herdner.ner.training.chains import Chains, CRFsuiteChains, OwnChains
from herdner.ner.training.corpus import Lessons
from herdner.ner.training.guidelines import Guided, GuidedChains
from herdner.ner.training.held_out import calibration, judged
from herdner.ner.training.links import Linked, learn_links
from herdner.ner.training.options import Recipe


class Origin(NamedTuple):
    """What a training begins with: the model that is adapted, and one at whose weights the search begins."""

    base: TaggerModel | None = None
    start: TaggerModel | None = None


def train(
    recipe: Recipe, empty: TaggerModel, lessons: Lessons, origin: Origin, progress: TrainingProgress | None, seed: int
) -> tuple[TaggerModel, LearningCurve | None]:
    """The ``empty`` model, which lacks its weights, with all that was learned; and how its tables of links were, where
    there was anything to learn.
    """
    documents, scheme, base = lessons.documents, empty.scheme, origin.base
    templates = recipe.link_templates(base)
    chains = _chains(recipe, empty, lessons, origin)

    def train_chain(chosen: Sequence[int] | None, stage: str) -> TaggerModel:
        try:
            return replace(empty, weights=chains.train(chosen, _staged(progress, stage)))
        except ImpossibleTags as error:
            raise ValueError(
                f"document {documents[error.document].id or error.document}: no tags that its tokens may have are"
                f" well formed in {scheme}; look for tags that collide with open ones beside them"
            ) from None

    model = train_chain(None, "chain")
    labels, found = model.weights.labels, Linked(model)
    if templates:
        tables = link_tables(templates, base, labels)
        model = replace(model, link_tables=tables) if base is not None else model
        found = learn_links(model, tables, lessons, recipe, train_chain, progress, seed)
    model = found.model
    if recipe.calibrated and found.unaries and min(recipe.n_folds, len(documents)) > 1:
        names = judged(model.crf(), labels, documents, found.unaries, lessons.taught)
        model = replace(model, calibration=calibration(names, lessons.sources, base and base.calibration))
    return model, found.curve


def _chains(recipe: Recipe, model: TaggerModel, lessons: Lessons, origin: Origin) -> Chains:
    """What trains chains on the documents, with the features of a model that lacks its weights."""
    documents, taught, (base, start) = lessons.documents, lessons.taught, origin
    first = None if start is None else checked_start(start, model.plan, model.lexicon, taught.labels)
    own = recipe.trainer == "herdner" and not recipe.c1
    if not own and (base or start or taught.borders or (lessons.counts != 1).any()):
        raise ValueError(
            "CRFsuite trains from nothing, on whole annotation, and all documents count the same: use the"
            " trainer herdner, without an L1 norm"
        )
    extractor = make_extractor(model.plan, model.lexicon)
    features, guided = [extractor.keys(d.tokens, d.sentence_offsets) for d in documents], None
    if lessons.corpora is not None:
        guided = Guided.of(documents, features, lessons.corpora, model.plan, model.lexicon)
        features = guided.features
    offsets, penalty = [document.sentence_offsets for document in documents], recipe.penalty(base)
    if own:
        chains = OwnChains(
            features, offsets, taught.allowed, taught.labels, penalty,
            StoppingRule(recipe.max_iterations, recipe.tolerance),
            base=None if base is None else base.weights, start=first, document_weights=lessons.counts,
            borders=taught.borders, counted=taught.counted,
        )  # fmt: skip
    else:
        chains = CRFsuiteChains(features, offsets, taught.gold, penalty, recipe.max_iterations)
    return chains if guided is None else GuidedChains(chains, guided)


def _staged(progress: TrainingProgress | None, stage: str) -> TrainingProgress | None:
    """What is told also says at which stage."""
    return progress and (lambda number, report: progress(number, {**report, "stage": stage}))
