"""Training of a tagger's model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from herdner.base.arrays import Floats
from herdner.crf.learning import LearningCurve
from herdner.crf.likelihood import ImpossibleTags
from herdner.crf.templates import check_link_costs
from herdner.crf.trainer import StoppingRule, TrainingProgress
from herdner.crf.weights import ChainWeights
from herdner.ner.features import make_extractor
from herdner.ner.model import TaggerModel
from herdner.ner.recasing import reader
from herdner.ner.training.adapting import check_start, initial_link_tables, warn_of_similar_labels, with_base_links
from herdner.ner.training.chains import ChainTrainer, HerdnerTrainer, crfsuite_trainer
from herdner.ner.training.corpus import TrainingCorpus, prepare_corpus
from herdner.ner.training.guidelines import FeatureCopies
from herdner.ner.training.held_out import fit_calibration, held_out_unaries, predict_held_out
from herdner.ner.training.links import gold_states, learn_link_tables
from herdner.ner.training.options import check_options, initial_model, link_templates, regularisation
from herdner.ner.training.topics import with_topics
from herdner.text.document import Document
from herdner.text.tags import labels_of

if TYPE_CHECKING:
    from herdner.ner.tagger import Tagger


def train_model(
    tagger: Tagger,
    documents: Iterable[Document],
    tags: Iterable[Sequence[str]] | None = None,
    *,
    development: Iterable[Document] | None = None,
    base: TaggerModel | None = None,
    start: TaggerModel | None = None,
    document_weights: Sequence[float] | Floats | None = None,
    groups: Sequence[str] | None = None,
    guideline: str | None = None,
    progress: TrainingProgress | None = None,
    seed: int = 0,
) -> tuple[TaggerModel, LearningCurve | None]:
    """Train a tagger model in four steps: linear chain, chains of cross-validation folds, link tables and calibration.

    Args:
        tagger: Tagger to be trained, whose parameters are the options.
        documents: Documents with tokens.
        tags: Tags of each document; None uses the documents' own tags.
        development: Annotated documents on which iterations of link learning are scored.
        base: Model that is adapted.
        start: Model at whose weights the search starts.
        document_weights: Weight of each document in the likelihood of the chain; None is 1.
        groups: Name of the source of each document.
        guideline: Group whose annotation guideline the model follows.
        progress: Function called after each iteration.
        seed: Seed of all random numbers.

    Returns:
        The model, and the learning curve of the links; None if nothing is linked.

    Raises:
        ValueError: The options, the documents or the models contradict each other.
    """
    check_options(tagger)
    model = initial_model(tagger, base)
    base_tags = () if base is None else base.weights.tags
    corpus = prepare_corpus(
        documents, tags, model.scheme, base_tags=base_tags, read=reader(model.plan, model.lexicon),
        weights=document_weights, groups=groups, guideline=guideline, development=development,
    )  # fmt: skip
    warn_of_similar_labels(corpus.gold, base_tags)
    if base is None and tagger.plan is None:
        model = with_topics(model, corpus.documents, start, seed)
    templates, train = link_templates(tagger, base), _make_trainer(tagger, model, corpus, base, start)
    check_link_costs(templates, len(corpus.tags))

    def train_chain(indices: Sequence[int] | None, stage: str) -> TaggerModel:
        def report(iteration: int, values: dict[str, Any]) -> None:
            if progress is not None:
                progress(iteration, {**values, "stage": stage})

        try:
            return replace(model, weights=train(indices, report))
        except ImpossibleTags as error:
            raise ValueError(
                f"document {corpus.documents[error.document].id or error.document}: its annotation allows no tag"
                f" sequence that is well formed in {model.scheme}; correct the tags next to unannotated tokens"
            ) from None

    trained = train_chain(None, "chain")
    link_tables = initial_link_tables(templates, base, trained.weights.tags)
    if base is not None:
        trained = replace(trained, link_tables=link_tables)
    if not any(
        len(each.template.links(d.tokens, d.sentence_offsets)) for each in link_tables for d in corpus.documents
    ):
        return trained, None
    states = gold_states(trained, corpus)
    unaries, chains = held_out_unaries(corpus.documents, trained.weights.tags, tagger.n_folds, train_chain)
    if tagger.averaged:
        trained = replace(trained, weights=ChainWeights.mean([trained.weights, *chains]))
    trained, curve = learn_link_tables(trained, link_tables, corpus, unaries, states, tagger.learner, progress, seed)
    if base is not None and labels_of(trained.weights.tags) - labels_of(base_tags):
        trained = with_base_links(trained, base)
    if tagger.calibrated and len(chains) > 1:
        predictions = predict_held_out(trained.crf(), trained.weights.tags, corpus, unaries)
        calibration = fit_calibration(predictions, corpus.sources, base and base.calibration)
        trained = replace(trained, calibration=calibration)
    return trained, curve


def _make_trainer(
    tagger: Tagger,
    model: TaggerModel,
    corpus: TrainingCorpus,
    base: TaggerModel | None,
    start: TaggerModel | None,
) -> ChainTrainer:
    """Return the trainer of linear chains, for the features of ``model`` and the documents of ``corpus``."""
    start_weights = None if start is None else check_start(start, model.plan, model.lexicon, corpus.tags)
    if tagger.trainer != "herdner" and (base or start or corpus.borders or (corpus.weights != 1).any()):
        raise ValueError(
            "training by CRFsuite needs fully annotated documents of equal weight, and supports neither `base` nor"
            " `start`; use trainer='herdner'"
        )
    if tagger.c1 and base is not None:
        raise ValueError(f"`c1` must be 0 with `base`: the L1 norm removes weights of the base model, got {tagger.c1}")
    extractor, copies = make_extractor(model.plan, model.lexicon), None
    features = [extractor.keys(d.tokens, d.sentence_offsets) for d in corpus.documents]
    if corpus.guideline is not None and corpus.groups is not None:
        copies = FeatureCopies.of(
            corpus.documents, features, corpus.groups, corpus.guideline, model.plan, model.lexicon
        )
        features = copies.features
    penalties = regularisation(tagger.c1, tagger.c2, tagger.min_freq, has_base=base is not None)
    if tagger.trainer == "herdner":
        train = HerdnerTrainer(
            features, corpus, penalties, StoppingRule(tagger.max_iterations, tagger.tolerance),
            base=None if base is None else base.weights, start=start_weights,
        ).train  # fmt: skip
    else:
        train = crfsuite_trainer(features, corpus, penalties, tagger.max_iterations)
    if copies is None:
        return train
    return lambda indices, progress: copies.merge_weights(train(indices, progress))
