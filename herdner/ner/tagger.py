"""The tagger: documents in, names out; trained and scored like a scikit-learn estimator."""

from __future__ import annotations

import importlib.resources
import os
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from herdner.base.checks import check_integer
from herdner.base.estimator import Estimator
from herdner.base.seeds import child
from herdner.crf.templates import Template, linear_chain_template
from herdner.inference import Backend
from herdner.ner.decode import DEFAULT_BACKEND, Decoder, backend_of
from herdner.ner.features import FeaturePlan
from herdner.ner.known_names import Finder, Names
from herdner.ner.known_names.known import NamesLike
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, shipped_models
from herdner.ner.streams import Batch, Item, TextOrDocument, awaited, batches, kept_apart, ordered
from herdner.ner.tagging import BatchTagger
from herdner.text.document import Document, Failure
from herdner.text.tags import Scheme
from herdner.text.tokenize import Tokenizer, TokenizerSettings, with_tokens

if TYPE_CHECKING:
    from herdner.crf.learning import Learner, LearningCurve
    from herdner.crf.trainer import Progress
    from herdner.ner.explain import Explanation
    from herdner.ner.training.chains import TrainerName

Context = TypeVar("Context")
_COMPILED = ("_decoder", "_tokenizer", "_finders")


class NotFittedError(ValueError, AttributeError):
    """A tagger was asked to tag before it was trained or loaded."""


class Tagger(Estimator):
    """Names of a document by a CRF: a chain for each sentence, and links between mentions of one name.

    Args:
        plan: The features (`FeaturePlan`), or None for `default_plan`, with topics where they can be learned.
        lexicon: Word classes and gazetteers they read (`Lexicon`); without topics, training adds them
            (`herdner.ner.training.topics`).
        scheme: Tag scheme of the chain's labels, whatever scheme the training data are written in.
        constrained: Forbid tag sequences that are not well formed in the scheme.
        c1: Weight of the L1 norm.
        c2: Weight of the squared L2 norm; None: 0.3. Where a base is adapted, its weights are held ten times as
            strongly; those of the tag O only as strongly as others, if there are new classes.
        min_freq: How often a feature must meet a tag to have a weight; None: 2, and where a base is adapted 1.
        max_iterations: Of L-BFGS, at most.
        tolerance: It ends earlier when five iterations have lowered the loss by less than this share of it; for the
            chains of folds than 0.005 of it, at least. CRFsuite has a rule of its own.
        trainer: "herdner" (`herdner.crf.trainer`) or "crfsuite", the same objective; an L1 norm is always left to
            CRFsuite.
        templates: Which tokens are joined; None is ``(linear_chain(), skip_chain())``, the chain alone is
            ``(linear_chain(),)``.
        learner: How the tables of links are learned (`Learner`).
        n_folds: Of the documents, each scored by a chain trained on the others, as a chain needs no links on what it
            was trained on.
        averaged: Whether the chain is the mean of those of the folds and that of all documents, where there are folds:
            it is less sure of what it has seen, like the chains that the links are learned with. Needs the trainer
            "herdner".
        backend: Name of the inference backend (`herdner.BACKENDS`) or a `Backend`; None is "sum-product" where a
            document has links, and "viterbi" where it has none.
        links: False leaves a trained model's links out.
        calibrated: Whether `fit` also learns how often a name is right of which the CRF is so sure
            (`herdner.ner.calibration`), where it has chains to learn it from (the folds), and whether confidences say
            that. False: they are what the CRF itself says.
        tokenizer: Settings with which text is split.

    Attributes:
        model_: The trained `TaggerModel`, after `fit` or `load`.
        learning_curve_: How the tables of links were learned, after `fit`; None where there was nothing to learn.
    """

    def __init__(
        self,
        plan: FeaturePlan | None = None,
        lexicon: Lexicon | None = None,
        *,
        scheme: Scheme = "iobes",
        constrained: bool = True,
        c1: float = 0.0,
        c2: float | None = None,
        min_freq: int | None = None,
        max_iterations: int = 80,
        tolerance: float = 0.005,
        trainer: TrainerName = "herdner",
        templates: Sequence[Template] | None = None,
        learner: Learner | None = None,
        n_folds: int = 4,
        averaged: bool = False,
        backend: str | Backend | None = None,
        links: bool = True,
        calibrated: bool = True,
        tokenizer: TokenizerSettings | None = None,
    ) -> None:
        self.plan = plan
        self.lexicon = lexicon
        self.scheme: Scheme = scheme
        self.constrained = constrained
        self.c1 = c1
        self.c2 = c2
        self.min_freq = min_freq
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.trainer: TrainerName = trainer
        self.templates = templates
        self.learner = learner
        self.n_folds = n_folds
        self.averaged = averaged
        self.backend = backend
        self.links = links
        self.calibrated = calibrated
        self.tokenizer = tokenizer

    # --- scikit-learn's conventions ---------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def fit(
        self,
        documents: Iterable[Document],
        tags: Iterable[Sequence[str]] | None = None,
        *,
        development: Iterable[Document] | None = None,
        card: Mapping[str, Any] | None = None,
        base: Tagger | None = None,
        start: Tagger | None = None,
        document_weights: Sequence[float] | NDArray[np.float64] | None = None,
        groups: Sequence[str] | None = None,
        guideline: str | None = None,
        progress: Progress | None = None,
        seed: int = 0,
    ) -> Tagger:
        """Train on tokenised documents with tags (their own, or ``tags``: one flat sequence per document, any
        scheme). Documents may be annotated in part (`Document.partial`): the likelihood is then that of all tags they
        may have (Tsuboi et al. 2008), and links learn from the best of these.

        First the chain, on all documents and then on each fold's, then the tables of links, then the calibration.
        With annotated ``development`` documents the tables are those of the
        iteration whose F1 there is best. ``progress`` is told the number of each iteration and a report: "stage",
        "loss", "f1" where it is known, and what the trainer says.

        Args:
            base: Adapt this tagger's model. Plan, lexicon, scheme and tokenizer are its own, and so are the links,
                unless ``templates`` are given. Its weights and tables are where learning starts and what it is drawn
                to, by ``c2`` and ``learner.l2``; they stay where the documents say nothing. There may be new classes.
            start: A tagger with the same features, at whose weights the search begins; where it ends is the same.
            document_weights: By how much each document counts for the chain, 1 if None.
            groups: Of each document, the source that it is from; each counts the same for the calibration.
            guideline: One of the groups, whose guideline the model follows (`herdner.ner.training.guidelines`).
        """
        # Late: who only tags needs nothing of what trains, which takes as long to import as a page to tag.
        from herdner.ner.training.corpus import Lessons
        from herdner.ner.training.options import Recipe
        from herdner.ner.training.pipeline import Origin, train
        from herdner.ner.training.topics import with_topics

        recipe = Recipe(**{each.name: getattr(self, each.name) for each in fields(Recipe)})
        origin = Origin(base and base._model, start and start._model)
        empty = recipe.without_weights(origin.base)
        lessons = Lessons.of(empty, origin.base, documents, tags, development, document_weights, groups, guideline)
        if base is None and recipe.plan is None:
            empty = with_topics(empty, lessons.documents, origin.start, seed)
        model, curve = train(recipe, empty, lessons, origin, progress, seed)
        self.model_ = replace(model, card=dict(card or {}))
        self.learning_curve_: LearningCurve | None = curve
        self._forget_compiled()
        return self

    def predict(self, documents: Iterable[Document]) -> list[list[str]]:
        """The tags of each tokenised document, in the tagger's scheme."""
        return [list(document.tags or ()) for document in self.pipe(documents)]

    def predict_marginals(self, documents: Iterable[Document]) -> list[NDArray[np.float64]]:
        """Per document float64[tokens, tags]: the chain's marginal probabilities; columns as in `labels`."""
        return list(map(self._decoder.chain_marginals, documents))

    def score(self, documents: Iterable[Document], tags: Iterable[Sequence[str]] | None = None) -> float:
        """Micro F1 of the predicted entities (strict), between 0 and 1."""
        from herdner.evaluation.scores import evaluate

        documents = list(documents)
        gold = documents if tags is None else [d.with_tags(t) for d, t in zip(documents, tags, strict=True)]
        return evaluate(gold, list(self.pipe(documents))).micro.f1

    # --- tagging ----------------------------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        """The chain's tags, in the order of its tables."""
        return self._model.weights.labels

    @property
    def card(self) -> Mapping[str, Any]:
        """Where the model comes from."""
        return self._model.card

    def tag(
        self, source: TextOrDocument, *, seed: int | None = 0, backend: str | Backend | None = None, **options: Any
    ) -> Document:
        """One text or document with its tags and entities; see `pipe`."""
        return next(self.pipe([source], seed=seed, backend=backend, **options))

    @overload
    def pipe(
        self,
        sources: Iterable[TextOrDocument],
        *,
        as_tuples: Literal[False] = False,
        on_error: Callable[[Failure], None] | None = None,
        **options: Any,
    ) -> Iterator[Document]: ...
    @overload
    def pipe(
        self,
        sources: Iterable[tuple[TextOrDocument, Context]],
        *,
        as_tuples: Literal[True],
        on_error: Callable[[Failure], None] | None = None,
        **options: Any,
    ) -> Iterator[tuple[Document, Context]]: ...
    def pipe(
        self,
        sources: Iterable[Any],
        *,
        seed: int | None = 0,
        first: int = 0,
        backend: str | Backend | None = None,
        links: bool | None = None,
        names: NamesLike | None = None,
        n_jobs: int = 1,
        batch_size: int = 64,
        on_error: Callable[[Failure], None] | None = None,
        as_tuples: bool = False,
        **options: Any,
    ) -> Iterator[Any]:
        """Tag texts or documents, in their order; lazily, so that endless streams are fine.

        ``backend`` and its ``options``, and ``links``, replace the tagger's own. Document i, counted from ``first``,
        draws its random numbers from the i-th child of ``seed``, so that results do not depend on how the work is
        shared out. Samplers, icm and mean-field begin with the best state of the chain: tag schemes forbid most of the
        steps that change one tag alone, so that from elsewhere they would hardly come there. Whatever backend chose the
        tags, the confidence of an entity is the probability that exactly its tokens carry its label, under the chain of
        its sentence and what the backend's marginals of linked tokens add to it; a calibrated model turns it into how
        often such a name is right (`herdner.ner.calibration`). That concerns entities alone: tags and
        `predict_marginals` are what the CRF says, so that a confidence need not be what marginals of its tokens allow.

        ``names`` are known to the user (`Names`, or what `Names.of` takes): they speak for their labels where they
        occur, or settle them.

        Short documents are tagged together, which is faster and gives the same: up to ``batch_size`` are read ahead, or
        as many as make 80,000 characters. ``n_jobs`` threads tag at the same time, the calling one among them (the
        compiled loops leave Python to the others), each with two such batches waiting. A document that cannot be tagged
        raises ValueError in its place, or is left out and its `Failure` handed to ``on_error``.

        Args:
            as_tuples: The sources are pairs of a text or document and whatever you like, which comes back beside the
                tagged document.

        Raises:
            ValueError: A known name has a label that the model does not have; or, in its place in the stream, a
                document cannot be tagged and there is no ``on_error``.
        """
        contexts: deque[Any] = deque()
        outcomes = self.outcomes(
            kept_apart(sources, contexts) if as_tuples else sources, seed=seed, first=first, backend=backend,
            links=links, names=names,
            n_jobs=n_jobs, batch_size=batch_size, **options,
        )  # fmt: skip
        for result in outcomes:
            context = contexts.popleft() if as_tuples else None
            if isinstance(result, Document):
                yield (result, context) if as_tuples else result
            elif on_error is None:
                raise result.error
            else:
                on_error(result)

    def outcomes(
        self,
        items: Iterable[Item],
        *,
        seed: int | None = 0,
        first: int = 0,
        backend: str | Backend | None = None,
        links: bool | None = None,
        names: NamesLike | None = None,
        n_jobs: int = 1,
        batch_size: int = 64,
        **options: Any,
    ) -> Iterator[Document | Failure]:
        """`pipe` for those who go on behind what fails: a document that cannot be tagged is a `Failure` in its place,
        and so is one among ``items``, where its reader has failed.
        """
        backend = self.backend if backend is None else backend
        if backend is None and options:
            backend = DEFAULT_BACKEND
        chosen = None if backend is None else backend_of(backend, options)
        finder = None if names is None else self.finder(names)
        child(seed, first)  # a wrong seed raises here, and not once for each document
        work = BatchTagger(self._decoder_with(links), self._tokenizer, finder, chosen, seed)
        most = check_integer(batch_size, "batch_size") if chosen is None else 1
        return chain.from_iterable(
            ordered(work, batches(items, first, most), check_integer(n_jobs, "n_jobs"), Batch.halves)
        )

    async def apipe(
        self,
        sources: Iterable[TextOrDocument] | AsyncIterable[TextOrDocument],
        *,
        n_jobs: int = 1,
        first: int = 0,
        **options: Any,
    ) -> AsyncIterator[Document]:
        """`pipe` for asyncio: ``sources`` may be asynchronous, and the event loop goes on while threads tag.

        Each text or document is tagged by itself, ``n_jobs`` at a time; with one, its result is handed out before the
        next is asked for. ``options`` as in `pipe`.
        """

        def results(number: int, source: TextOrDocument) -> list[Document]:
            return list(self.pipe([source], first=number, **options))

        async for found in awaited(results, sources, first, check_integer(n_jobs, "n_jobs")):
            for document in found:
                yield document

    def explain(
        self,
        source: TextOrDocument,
        *,
        name: str | None = None,
        offsets: tuple[int, int] | None = None,
        against: str | None = None,
        seed: int | None = 0,
        backend: str | Backend | None = None,
        links: bool | None = None,
        names: NamesLike | None = None,
        **options: Any,
    ) -> list[Explanation]:
        """Why the mentions of a text or document have their labels: what features, transitions, links and known
        ``names`` add to the log-odds of each (`herdner.ner.explain`).

        All else as in `pipe`.

        Args:
            name: Only the mentions that hold these words, in whatever case.
            offsets: Only the mention with this start and end.
            against: What the label is compared with: None is no name, "best" the best other label, or a label. Mentions
                that have this label themselves, or cannot have it, are left out.

        Raises:
            ValueError: There is no mention at ``offsets``.
        """
        from herdner.ner.explain import explain  # late, as in `fit`

        document = self.tag(source, seed=seed, backend=backend, links=links, names=names, **options)
        decoder = self._decoder_with(links)
        own_tokens = isinstance(source, str) or not source.n_tokens
        evidence = None if names is None else self.finder(names)(document, own_tokens)
        return explain(self._model, decoder, document, name, against, offsets, evidence)

    def finder(self, names: NamesLike) -> Finder:
        """Known names made ready for this model, which is done once for each `Names`.

        Raises:
            ValueError: A name has a label that the model does not have, or is no name.
        """
        names, model = Names.of(names), self._model
        if names not in self._finders:
            labels, language = model.weights.labels, model.tokenizer.language
            self._finders[names] = Finder(names, labels, model.scheme, self._tokenizer.tokens, language)
        return self._finders[names]

    def find_links(self, source: TextOrDocument) -> dict[str, NDArray[np.int32]]:
        """Which tokens of a text or document are linked: int32[F, 2], the earlier first, by the name of the rule."""
        return self._decoder.links(with_tokens(source, self._tokenizer))

    # --- the model, compiled when first needed ------------------------------------------------------------------------

    @property
    def _model(self) -> TaggerModel:
        if not hasattr(self, "model_"):
            raise NotFittedError("this tagger is not trained: call fit, or load a model with herdner.load")
        return self.model_

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder.of(self._model)

    def _decoder_with(self, links: bool | None) -> Decoder:
        """The decoder, with links if this or else the tagger says so, calibrated if the tagger does."""
        decoder = self._decoder if (self.links if links is None else links) else self._decoder.without_links()
        return decoder if self.calibrated else replace(decoder, calibration=None)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model.tokenizer)

    @cached_property
    def _finders(self) -> WeakKeyDictionary[Names, Finder]:
        return WeakKeyDictionary()

    def _forget_compiled(self) -> None:
        for name in _COMPILED:
            self.__dict__.pop(name, None)

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the model to one file, atomically; options of `TaggerModel.save`."""
        self._model.save(path, **options)

    @classmethod
    def from_model(cls, model: TaggerModel, **params: Any) -> Tagger:
        """A tagger around a model that is already trained."""
        tagger = cls(
            model.plan,
            model.lexicon,
            scheme=model.scheme,
            constrained=model.constrained,
            templates=(linear_chain_template(), *(each.template for each in model.link_tables)),
            tokenizer=model.tokenizer,
            **params,
        )
        tagger.model_ = model
        return tagger

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _COMPILED}


def load(name_or_path: str | os.PathLike[str], **params: Any) -> Tagger:
    """The tagger of a shipped model ("en") or of a model file; ``params`` are `Tagger` parameters such as ``backend``.

    A shipped name goes before a file of the same name in the current folder.

    Raises:
        ModelError: There is no such model, or it cannot be read.
    """
    shipped = shipped_models()
    if (name := os.fspath(name_or_path)) in shipped:
        with importlib.resources.as_file(shipped[name]) as path:
            return Tagger.from_model(TaggerModel.load(path), **params)
    if not Path(name).exists():
        raise ModelError(f"there is no model {name!r}: give a file, or one of {', '.join(sorted(shipped)) or 'none'}")
    return Tagger.from_model(TaggerModel.load(name), **params)
