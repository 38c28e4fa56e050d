"""Learning of a model's tables of links on held-out documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from herdner._ext.spellings import spell_tokens
from herdner.base.arrays import Floats, Int32s
from herdner.base.seeds import child
from herdner.crf.learning import Learner, LearningCurve, LearningStep, ScoreFunction, learn_tables
from herdner.crf.link_rules import HasTokens, find_links_of_all
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.objectives import Examples
from herdner.crf.trainer import TrainingProgress
from herdner.evaluation.scores import DocumentSpans, count_entities, f1_from_counts
from herdner.inference import Backend, make_backend
from herdner.ner.decode import concatenate, decode
from herdner.ner.inference import DEFAULT_BACKEND
from herdner.ner.model import TaggerModel
from herdner.ner.training.corpus import TrainingCorpus, check_development_spans
from herdner.text.tags import Span, spans_from_states


def learn_link_tables(
    model: TaggerModel,
    link_tables: tuple[LinkTable, ...],
    corpus: TrainingCorpus,
    unaries: Sequence[Floats],
    states: Sequence[Int32s],
    learner: Learner,
    progress: TrainingProgress | None,
    seed: int,
) -> tuple[TaggerModel, LearningCurve]:
    """Learn the link tables of a model from held-out log-potentials and gold tags.

    Args:
        model: Model with a trained chain. If the model has link tables, they are the mean of the prior.
        link_tables: Tables at which learning starts.
        corpus: Training documents, and development documents if there are any.
        unaries: float64[tokens, K] for each document, log-potentials by a chain that was not trained on the document.
        states: int32[tokens] for each document, gold tags as indices.
        learner: Settings of learning.
        progress: Function called after each iteration.
        seed: Seed of samplers.

    Returns:
        The model with learned tables, and the learning curve.
    """
    skip_chain = replace(model.crf(), link_tables=link_tables)
    score = None
    if documents := corpus.development:
        extractor, gold = model.extractor(), [document.spans or [] for document in documents]
        dev_unaries = [extractor.scores(document.tokens, document.sentence_offsets) for document in documents]
        score = development_f1(model.weights.tags, documents, dev_unaries, gold, make_backend(DEFAULT_BACKEND))
    n_tokens = sum(map(len, states))

    def report(step: LearningStep) -> None:
        if progress is not None:
            progress(step.iteration, {"stage": "links", "loss": step.value * n_tokens, "f1": step.score})

    examples = join_examples(skip_chain, corpus.documents, unaries, states)
    skip_chain, curve = learn_tables(
        skip_chain, examples, learner, score=score, seed=seed, progress=report, adapted=bool(model.link_tables)
    )
    transition = np.where(np.isfinite(skip_chain.transition), skip_chain.transition, model.weights.transition)
    weights = replace(model.weights, transition=transition)
    return replace(model, weights=weights, link_tables=skip_chain.link_tables), curve


def gold_states(model: TaggerModel, corpus: TrainingCorpus) -> list[Int32s]:
    """Return the gold tags of each document, as indices into the tags of the model.

    Tokens whose tag is not annotated get their most probable allowed tag.

    Args:
        model: Model with a trained chain.
        corpus: Training documents.

    Returns:
        int32[tokens] for each document.
    """
    if corpus.borders is None or model.weights.tags != corpus.tags:  # CRFsuite orders tags in its own way
        index = {tag: k for k, tag in enumerate(model.weights.tags)}
        return [np.array([index[tag] for tag in sequence], np.int32) for sequence in corpus.gold]
    extractor, transition = model.extractor(), model.weights.transition
    return [
        corpus.states(i, extractor.scores(document.tokens, document.sentence_offsets), transition)
        for i, document in enumerate(corpus.documents)
    ]


def join_examples(
    model: SkipChainModel,
    documents: Sequence[HasTokens],
    unaries: Sequence[Floats],
    states: Sequence[Int32s],
) -> Examples:
    """Concatenate annotated documents into `Examples`, the training data of link tables.

    Args:
        model: Model whose links are learned.
        documents: Documents with tokens.
        unaries: float64[tokens, K] for each document, log-potentials without the log-potentials of sentence borders.
        states: int32[tokens] for each document, gold tags as indices.

    Returns:
        The examples, with the marginals of their chains.
    """
    tokens, starts, sentence_offsets = concatenate(documents)
    links = find_links_of_all(model.rules, documents, tokens, spell_tokens(tokens), np.array(starts), sentence_offsets)
    unary = np.concatenate(unaries)
    marginals = model.chain_marginals(unary, sentence_offsets)
    unary = model.with_borders(unary, sentence_offsets)
    return Examples(unary, sentence_offsets, np.concatenate(states), tuple(links), marginals)


def development_f1(
    tags: Sequence[str],
    documents: Sequence[HasTokens],
    unaries: Sequence[Floats],
    gold: Sequence[Sequence[Span]],
    backend: Backend,
) -> ScoreFunction:
    """Return a function from a model to its micro F1 on the development documents.

    Args:
        tags: Tags of the models, in the order of their tables.
        documents: Development documents with tokens.
        unaries: float64[tokens, K] for each document, log-potentials of tags.
        gold: Gold spans of each document.
        backend: Inference backend.

    Raises:
        ValueError: No document has an entity.
    """
    check_development_spans(gold)

    def score(model: SkipChainModel) -> float:
        pairs: list[DocumentSpans] = []
        for i, (document, unary, spans) in enumerate(zip(documents, unaries, gold, strict=True)):
            offsets = document.sentence_offsets
            links = model.links(document.tokens, offsets)
            states = decode(model, unary, offsets, links, backend, child(0, i)).states
            pairs.append(DocumentSpans(list(spans), spans_from_states(states, tuple(tags), offsets), offsets))
        return float(f1_from_counts(count_entities(pairs)[1].sum(axis=(0, 1))))

    return score
