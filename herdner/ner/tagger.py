"""The tagger: a scikit-learn estimator that finds names in documents."""

from __future__ import annotations

import importlib.resources
import os
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from herdner.base.checks import check_integer, check_text
from herdner.base.estimator import Estimator
from herdner.base.messages import warn_caller
from herdner.base.seeds import child
from herdner.crf.learning import DEFAULT_LEARNER, Learner
from herdner.crf.templates import Template, linear_chain_template
from herdner.inference import Backend
from herdner.ner.decode import Decoder
from herdner.ner.features import FeaturePlan
from herdner.ner.inference import Inference
from herdner.ner.known_names import CollectionNames, Finder, Names
from herdner.ner.known_names.known import NamesLike
from herdner.ner.language import LanguageCheck, LanguageWarning, language_name, similar_model
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, shipped_models
from herdner.ner.streams import (
    Batch,
    BatchTagger,
    DocumentOrTokens,
    Item,
    TextOrDocument,
    as_document,
    batches,
    map_async,
    map_in_order,
    split_pairs,
)
from herdner.text.document import Document, Failure
from herdner.text.tags import Scheme, labels_of
from herdner.text.tokenize import Tokenizer, TokenizerSettings, with_tokens

if TYPE_CHECKING:
    from herdner.crf.learning import LearningCurve
    from herdner.crf.sequence_tagger import WeightTable
    from herdner.crf.trainer import TrainingProgress
    from herdner.ner.explain import Explanation
    from herdner.ner.training.options import TrainerName

SourceContext = TypeVar("SourceContext")
_COMPILED = "_full_decoder", "_decoders", "_tokenizer", "_finders", "language_check"  # lazily initialised, not pickled


class NotFittedError(ValueError, AttributeError):
    """Error: a tagger without a trained model is used."""


class Tagger(Estimator):
    """Named-entity tagger: a linear-chain CRF for each sentence, and links between the mentions of one name.

    Args:
        plan: Features (`FeaturePlan`). None selects `default_plan`, with topic features if topics can be learned.
        lexicon: Word classes, gazetteers and topics that the features read (`Lexicon`). If it has no topics, training
            learns them (`herdner.ner.training.topics`).
        scheme: Tag scheme of the chain, independent of the scheme of the training data.
        constrained: Forbid tag sequences that are not well formed in the scheme.
        c1: Weight of the L1 norm. It must be 0 if a base model is adapted.
        c2: Weight of the squared L2 norm. None is 0.3. If a base model is adapted, changes of its weights are penalised
            ten times as strongly. If the documents also have new labels, changes of all weights of the base's tags are
            penalised 5,000 times as strongly, and the link tables of the base stay unchanged.
        min_freq: Least number of times that a feature must occur with a tag to have a weight. None is 2, or 1 if a base
            model is adapted.
        max_iterations: Largest number of L-BFGS iterations.
        tolerance: Training stops when five iterations have reduced the loss by less than this fraction of its
            value. If a base model is adapted to documents with new labels, of which at least one is fully
            annotated, the fraction is 0.04 times as large. Chains of folds use at least 0.005. CRFsuite ignores this
            parameter and has its own stopping rule.
        trainer: "herdner" (`herdner.crf.trainer`) or "crfsuite"; both minimise the same objective.
        templates: Templates of the transitions and links. None is ``(linear_chain_template(), skip_chain_template())``;
            ``(linear_chain_template(),)`` trains a model without links.
        learner: Settings with which the tables of links are learned (`herdner.crf.learning.Learner`).
        n_folds: Number of folds. Links are learned from the scores of chains that were trained on the other folds,
            because links hardly improve the tags of documents on which a chain was trained.
        averaged: Average the weights of the chains of all folds and of the chain of all documents. The average is less
            overconfident on the training documents. Needs the trainer "herdner".
        backend: Name of an inference backend (`herdner.BACKENDS`) or a `Backend`. None is sum-product for documents
            with links and Viterbi for documents without.
        links: Use the links of the model. False ignores them and tags with the linear chain only.
        calibrated: Learn a calibration of the confidences in `fit` (`herdner.ner.calibration`), if there are at least
            two folds, and apply it when tagging. False reports the probabilities of the CRF.
        tokenizer: Settings of the tokenizer.

    Attributes:
        model_: The trained `TaggerModel`, after `fit` or `load`.
        learning_curve_: Objective and score of each iteration in which `fit` learned links (`LearningCurve`); None if
            there were no links.
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
        learner: Learner = DEFAULT_LEARNER,
        n_folds: int = 4,
        averaged: bool = False,
        backend: str | Backend | None = None,
        links: bool = True,
        calibrated: bool = True,
        tokenizer: TokenizerSettings | None = None,
    ) -> None:
        """Store the parameters of the tagger, which are checked when the tagger is trained."""
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
        """Return True if the tagger has a trained model."""
        return hasattr(self, "model_")

    def fit(
        self,
        documents: Iterable[DocumentOrTokens],
        tags: Iterable[Sequence[str]] | None = None,
        *,
        development: Iterable[Document] | None = None,
        card: Mapping[str, Any] | None = None,
        base: Tagger | None = None,
        start: Tagger | None = None,
        document_weights: Sequence[float] | NDArray[np.float64] | None = None,
        groups: Sequence[str] | None = None,
        guideline: str | None = None,
        progress: TrainingProgress | None = None,
        seed: int = 0,
    ) -> Tagger:
        """Train the tagger on tokenized, annotated documents.

        Training has four steps: the chain on all documents, a chain for each fold, the tables of links, and the
        calibration. Documents may be partially annotated; the likelihood then sums over all tags that the annotation
        allows (Tsuboi et al. 2008). The tables of links are learned from the most probable of these tags.

        Args:
            documents: Documents with tokens, or lists of tokens.
            tags: One flat sequence of tags for each document, in any scheme. None uses the documents' own tags.
            development: Annotated documents. The link tables of the iteration with the best F1 on these documents are
                kept.
            card: JSON values that describe the model, stored in its file.
            base: Tagger whose model is adapted. The new model has the plan, lexicon, scheme and tokenizer of the base.
                It also has the links of the base, unless ``templates`` are set. Learning starts at its weights and
                tables and is regularised towards them by ``c2`` and ``learner.l2``. The documents may have new labels.
            start: Tagger with the same features at whose weights training starts. They do not change the optimum.
            document_weights: float[documents], weight of each document in the loss of the chain. None is 1.
            groups: Name of the source of each document. Each source has the same weight in the calibration.
            guideline: The group whose annotation guideline the model follows (`herdner.ner.training.guidelines`).
            progress: Called after each iteration with its index and a dict: "stage", "loss", "f1" if it is known, and
                values of the trainer.
            seed: Seed of all random numbers.

        Returns:
            The tagger itself.

        Raises:
            ValueError: A parameter is invalid, documents and tags do not match, or nothing is annotated.
            TypeError: ``base`` or ``start`` is not a tagger.
        """
        # Imported here because tagging does not need the training code, whose import takes as long as tagging a page.
        from herdner.ner.training.pipeline import train_model

        for name, value in {"base": base, "start": start}.items():
            if not isinstance(value, Tagger | None):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public method
                raise TypeError(f"`{name}` must be a Tagger, such as herdner.load('en'), or None, got {value!r:.60}")
        model, curve = train_model(
            self, map(as_document, documents), tags, development=development, base=base and base._model,
            start=start and start._model,
            document_weights=document_weights, groups=groups, guideline=guideline, progress=progress, seed=seed,
        )  # fmt: skip
        self.model_ = replace(model, card=dict(card or {}))
        self.learning_curve_: LearningCurve | None = curve
        for name in _COMPILED:
            self.__dict__.pop(name, None)
        return self

    def predict(self, documents: Iterable[DocumentOrTokens]) -> list[list[str]]:
        """Return the tag of each token of tokenized documents.

        Args:
            documents: Documents with tokens, or lists of tokens.

        Returns:
            For each document, the tags of its tokens in the scheme of the model.
        """
        return [list(document.tags or ()) for document in self.pipe(map(as_document, documents))]

    def predict_marginals(self, documents: Iterable[DocumentOrTokens], links: bool = True) -> list[NDArray[np.float64]]:
        """Return, for each document, the marginal probability of each tag at each token.

        Args:
            documents: Documents with tokens, or lists of tokens.
            links: Use the links (by belief propagation). False returns the marginals of the chain alone.

        Returns:
            One float64[tokens, tags] for each document; its columns are in the order of ``classes_``.
        """
        decoder = self._full_decoder if links else self._full_decoder.without_links()
        return [decoder.marginals(as_document(document)) for document in documents]

    def score(self, documents: Iterable[DocumentOrTokens], tags: Iterable[Sequence[str]] | None = None) -> float:
        """Return the micro F1 of the predicted entities.

        An entity is correct if a gold entity has the same tokens and label.

        Args:
            documents: Documents with tokens, or lists of tokens.
            tags: Gold tags, one flat sequence for each document. None uses the documents' own tags.

        Returns:
            F1 between 0 and 1.
        """
        from herdner.evaluation.scores import evaluate

        originals = list(map(as_document, documents))
        gold = originals if tags is None else [d.with_tags(t) for d, t in zip(originals, tags, strict=True)]
        return evaluate(gold, list(self.pipe(originals))).micro.f1

    @property
    def classes_(self) -> tuple[str, ...]:
        """Tags of the linear chain, in the order of the transition table and of the columns of `predict_marginals`."""
        return self._model.weights.tags

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the entities that the model can find, sorted."""
        return tuple(sorted(labels_of(self.classes_)))

    @property
    def card(self) -> Mapping[str, Any]:
        """Model card: training corpora, licences, options and scores of the model."""
        return self._model.card

    # --- tagging ----------------------------------------------------------------------------------------------------

    def inference(
        self,
        inference: Inference | None = None,
        *,
        backend: str | Backend | None = None,
        links: bool | None = None,
        **options: Any,
    ) -> Inference:
        """Build the `Inference` options that the methods `tag` and `pipe` accept.

        Args:
            inference: Complete options, which are returned unchanged. They cannot be combined with other arguments.
            backend: Name of a backend or a `Backend`. None is the tagger's own backend.
            links: Link the mentions of one name. None is the tagger's own setting.
            options: ``names``, ``min_confidence`` and options of the backend, as in `Inference.of`.

        Returns:
            The inference options.

        Raises:
            ValueError: An option is invalid, or the model lacks the label of a known name.
        """
        if inference is None:
            backend, links = self.backend if backend is None else backend, self.links if links is None else links
            inference = Inference.of(backend, links=links, **options) if options or backend else _plain_inference(links)
        elif options or backend is not None or links is not None:
            raise ValueError("`inference` cannot be combined with other options; pass all options to Tagger.inference")
        if inference.names is not None:
            self.finder(inference.names)
        return inference

    def tag(
        self,
        source: TextOrDocument | Sequence[str],
        inference: Inference | None = None,
        *,
        seed: int | None = 0,
        first: int = 0,
        **options: Any,
    ) -> Document:
        """Tag one text or document.

        >>> import herdner
        >>> tagger = herdner.load("en")
        >>> [(entity.text, entity.label) for entity in tagger.tag("Ada Reyes met Bo Lim. Reyes left.").entities]
        [('Ada Reyes', 'PER'), ('Bo Lim', 'PER'), ('Reyes', 'PER')]

        If the language of the text is clearly not that of the model, a `LanguageWarning` is issued.

        Args:
            source: A text, a `Document` with or without tokens, or a list of tokens.
            inference: Options of tagging. None builds them from ``options``, as in `inference`.
            seed: Seed of the random numbers.
            first: Index of the document in its stream, which selects its random numbers.
            options: Keyword arguments of `inference`.

        Returns:
            The document with tokens, tags, and entities with their confidences.

        Raises:
            ValueError: An option is invalid, or the document cannot be tagged.
            TypeError: The source is neither a text, a `Document` nor a list of tokens.
        """
        # Compiled code reads plain strings only, so a string of a subclass, such as numpy.str_, is copied.
        source = str.__str__(source) if isinstance(source, str) else as_document(source)
        (result,) = self._batch_tagger(inference, options, seed)(Batch(first, [source]))
        if isinstance(result, Failure):
            raise result.error
        if other := self.language_check(result):
            warn_caller(self.language_check.message(other), LanguageWarning)
        return result

    @overload
    def pipe(
        self,
        sources: Iterable[TextOrDocument],
        inference: Inference | None = None,
        *,
        as_tuples: Literal[False] = False,
        on_error: Callable[[Failure], None] | None = None,
        collection: bool = False,
        **options: Any,
    ) -> Iterator[Document]: ...
    @overload
    def pipe(
        self,
        sources: Iterable[tuple[TextOrDocument, SourceContext]],
        inference: Inference | None = None,
        *,
        as_tuples: Literal[True],
        on_error: Callable[[Failure], None] | None = None,
        collection: bool = False,
        **options: Any,
    ) -> Iterator[tuple[Document, SourceContext]]: ...
    def pipe(
        self,
        sources: Iterable[Any],
        inference: Inference | None = None,
        *,
        as_tuples: bool = False,
        on_error: Callable[[Failure], None] | None = None,
        collection: bool = False,
        **options: Any,
    ) -> Iterator[Any]:
        """Tag a stream of texts or documents lazily and in order; the stream may be endless.

        The confidence of an entity is the probability that exactly its tokens form an entity with its label. For every
        backend, it is computed under the linear chain of the sentence, to which links add their expected
        log-potentials. A calibrated model maps it to the precision of such entities on held-out documents
        (`herdner.ner.calibration`). The calibration changes neither the decoded tags nor `predict_marginals`. But
        calibrated confidences decide whether a short form takes the label of a full name.

        A `LanguageWarning` is issued for the first document whose language is clearly not that of the model.

        Samplers, ICM and mean field start at the best tags of the chain. From another start they would rarely reach
        these tags, because a tag scheme forbids most changes of a single tag.

        Args:
            sources: Texts and documents; with ``as_tuples`` pairs of a text or document and any context.
            inference: Options of tagging. None builds them from ``options``, as in `inference`.
            as_tuples: Yield pairs of a tagged document and the context of its source.
            on_error: Called with the `Failure` of each document that cannot be tagged; the document is left out.
            collection: Tag the documents as a collection, in two passes: the labels that the first pass finds for a
                name in other documents are evidence in the second pass (`gather`). The results do not depend on the
                order of the documents. Sources that can be read only once, such as a generator, are kept in memory.
            options: Keyword arguments of `outcomes` and `inference`.

        Yields:
            Documents with tags and entities, or pairs of these and contexts.

        Raises:
            ValueError: An option is invalid, or a document cannot be tagged and ``on_error`` is None. Documents before
                this one are yielded first.
            TypeError: A source is neither a text nor a `Document`.
        """
        contexts: deque[Any] = deque()
        if collection:
            if iter(sources) is sources:
                sources = list(sources)
            texts = split_pairs(sources, deque(maxlen=0)) if as_tuples else sources
            inference, options = self._split_options(inference, options)
            inference = replace(inference, collection=self.gather(texts, inference, **options))
        sources = split_pairs(sources, contexts) if as_tuples else sources
        other: str | None = None
        check = self.language_check.of_stream()
        for result in self.outcomes(sources, inference, **options):
            context = contexts.popleft() if as_tuples else None
            if isinstance(result, Document):
                if other is None and (other := check(result)):
                    warn_caller(self.language_check.message(other), LanguageWarning)
                yield (result, context) if as_tuples else result
            elif on_error is None:
                raise result.error
            else:
                on_error(result)

    def outcomes(
        self,
        items: Iterable[Item],
        inference: Inference | None = None,
        *,
        seed: int | None = 0,
        first: int = 0,
        n_jobs: int = 1,
        batch_size: int = 64,
        **options: Any,
    ) -> Iterator[Document | Failure]:
        """Tag a stream like `pipe`, but yield a `Failure` for each document that cannot be read or tagged.

        The language of the documents is not checked; `language_check` does this.

        Short documents are tagged together, which is faster and gives the same result. Up to three batches wait
        for each thread.

        Args:
            items: Texts, documents, and failures of their reader.
            inference: Options of tagging. None builds them from ``options``, as in `inference`.
            seed: Seed of the random numbers. Document i, counted from ``first``, draws from the i-th child of the seed,
                so that results do not depend on batches or threads.
            first: Index of the first document.
            n_jobs: Number of threads, including the calling one. Compiled loops release the GIL.
            batch_size: Largest number of documents in a batch. A batch also ends after 80,000 characters.
            options: Keyword arguments of `inference`.

        Returns:
            An iterator over tagged documents and failures.

        Raises:
            ValueError: An option is invalid.
        """
        work = self._batch_tagger(inference, options, seed)
        child(seed, first)  # raises here, once, if the seed is invalid
        most = check_integer(batch_size, "batch_size") if work.inference.backend is None else 1
        return chain.from_iterable(
            map_in_order(work, batches(items, first, most), check_integer(n_jobs, "n_jobs"), Batch.halves)
        )

    def gather(self, items: Iterable[Item], inference: Inference | None = None, **options: Any) -> CollectionNames:
        """Tag the documents of a collection, and count the documents in which each name has each label.

        This is the first pass of `pipe` with ``collection=True``. The second pass tags the same documents with the
        result as ``Inference.collection``. The evidence for a document excludes its own contribution.
        `CollectionNames.update` joins the results for several parts of a collection.

        Args:
            items: Texts, documents, and failures of their reader, which are ignored.
            inference: Options of tagging. None builds them from ``options``, as in `inference`.
            options: Keyword arguments of `outcomes` and `inference`.

        Returns:
            Number of documents with each name, in total and for each label.

        Raises:
            ValueError: An option is invalid.
        """
        names = CollectionNames(self.labels)
        # The removal of uncertain names is left to the second pass.
        inference, stream = self._split_options(inference, options)
        inference = replace(inference, min_confidence=None, collection=None)
        for result in self.outcomes(items, inference, **stream):
            if isinstance(result, Document):
                names.add(result)
        return names

    def _split_options(self, inference: Inference | None, options: dict[str, Any]) -> tuple[Inference, dict[str, Any]]:
        """Return `Inference` options, and the options of `outcomes`, from the options of `pipe`."""
        stream = {name: options.pop(name) for name in ("seed", "first", "n_jobs", "batch_size") if name in options}
        return self.inference(inference, **options), stream

    async def apipe(
        self,
        sources: Iterable[TextOrDocument] | AsyncIterable[TextOrDocument],
        inference: Inference | None = None,
        *,
        n_jobs: int = 1,
        first: int = 0,
        **options: Any,
    ) -> AsyncIterator[Document]:
        """Tag texts or documents asynchronously: threads tag them while the asyncio event loop keeps running.

        Args:
            sources: Texts and documents, in a synchronous or an asynchronous iterable.
            inference: Options of tagging. None builds them from ``options``, as in `inference`.
            n_jobs: Number of documents that are tagged at the same time. With 1, each result is yielded before the next
                document is requested.
            first: Index of the first document.
            options: Keyword arguments of `pipe`.

        Yields:
            Documents with tags and entities, in the order of the sources.
        """

        def results(index: int, source: TextOrDocument) -> list[Document]:
            return list(self.pipe([source], inference, first=index, **options))

        async for documents in map_async(results, sources, first, check_integer(n_jobs, "n_jobs")):
            for document in documents:
                yield document

    def explain(
        self,
        source: TextOrDocument,
        inference: Inference | None = None,
        *,
        name: str | None = None,
        offsets: tuple[int, int] | None = None,
        against: str | None = None,
        seed: int | None = 0,
        first: int = 0,
        **options: Any,
    ) -> list[Explanation]:
        """Explain the labels of mentions by the contributions of features, transitions, links and known names.

        See `herdner.ner.explain` for the quantities.

        Args:
            source: A text or a document.
            inference: Options of tagging. None builds them from ``options``, as in `inference`.
            name: Explain only mentions that contain these words, ignoring case.
            offsets: Explain only the mention with these character offsets, (start, end).
            against: Alternative to compare with: None for "no name", "best" for the best other label, or a label.
                Mentions that have this label, or cannot have it, are left out.
            seed: Seed of the random numbers.
            first: Index of the document in its stream, which selects its random numbers.
            options: Keyword arguments of `inference`.

        Returns:
            One `Explanation` for each mention.

        Raises:
            ValueError: An option is invalid, no mention has these offsets, or the document cannot be tagged.
        """
        from herdner.ner.explain import explain  # imported here for the reason given in `fit`

        work = self._batch_tagger(inference, options, seed)
        document = self.tag(source, work.inference, seed=seed, first=first)
        own_tokens = isinstance(source, str) or not source.n_tokens
        evidence = next(iter(work.evidence([document], [own_tokens], first)), None)
        backend, rng = work.inference.backend, child(seed, first)
        return explain(self._model, work.decoder, document, name, against, offsets, evidence, backend, rng)

    def explain_weights(self, documents: Iterable[DocumentOrTokens], top: int = 10) -> WeightTable:
        """Return the largest weights of each tag and the largest transition weights as a `WeightTable`.

        Models store hashes of features, so the table lists only features that occur in the documents.

        Args:
            documents: Documents with tokens, or lists of tokens.
            top: Number of features for each tag, and number of transitions. The features and transitions with the
                largest absolute weights are returned.

        Raises:
            NotFittedError: The tagger is not trained.
            ValueError: ``top`` is below 1.
        """
        from herdner.ner.top_weights import top_weights  # imported here for the reason given in `fit`

        top = check_integer(top, "top")
        return top_weights(self._model, self._full_decoder, map(as_document, documents), top)

    def finder(self, names: NamesLike) -> Finder:
        """Return a compiled ``Finder`` of known names for this model. The finder of each `Names` object is cached.

        Args:
            names: Known names in any form that `Names.of` accepts.

        Raises:
            ValueError: A name is malformed, or the model lacks its label.
        """
        names, model = Names.of(names), self._model
        if names not in self._finders:
            tags, language = model.weights.tags, model.tokenizer.language
            self._finders[names] = Finder(names, tags, model.scheme, self._tokenizer.tokens, language)
        return self._finders[names]

    def find_links(self, source: TextOrDocument) -> dict[str, NDArray[np.int32]]:
        """Return the pairs of linked tokens of a text or document, as a dict from link rule to array.

        Args:
            source: A text or a document.

        Returns:
            int32[links, 2] for the name of each link rule: indices of the linked tokens, the earlier one first.
        """
        return self._full_decoder.links(with_tokens(source, self._tokenizer))

    # --- the model and its lazily initialised compiled forms ----------------------------------------------------------

    @property
    def _model(self) -> TaggerModel:
        if not hasattr(self, "model_"):
            raise NotFittedError("this tagger is not trained: call fit, or load a model with herdner.load")
        return self.model_

    def _batch_tagger(self, inference: Inference | None, options: dict[str, Any], seed: int | None) -> BatchTagger:
        inference = self.inference(inference, **options)
        finder = None if inference.names is None else self.finder(inference.names)
        key = inference.links, self.calibrated
        if key not in self._decoders:
            decoder = self._full_decoder if inference.links else self._full_decoder.without_links()
            self._decoders[key] = decoder if self.calibrated else replace(decoder, calibration=None)
        return BatchTagger(self._decoders[key], self._tokenizer, finder, inference, seed)

    @cached_property
    def language_check(self) -> LanguageCheck:
        """Function that returns a document's language if it clearly differs from the model's language, else None."""
        return LanguageCheck(self._model.tokenizer.language)

    @cached_property
    def _full_decoder(self) -> Decoder:
        return Decoder.of(self._model)

    @cached_property
    def _decoders(self) -> dict[tuple[bool, bool], Decoder]:
        return {}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model.tokenizer)

    @cached_property
    def _finders(self) -> WeakKeyDictionary[Names, Finder]:
        return WeakKeyDictionary()

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the trained model atomically to a file.

        Args:
            path: File to write.
            options: Keyword arguments of `TaggerModel.save`.
        """
        self._model.save(path, **options)

    @classmethod
    def from_model(cls, model: TaggerModel, **params: Any) -> Tagger:
        """Build a tagger from a trained model.

        Args:
            model: The trained model.
            params: Parameters of `Tagger` that the model does not determine, such as ``backend``.

        Returns:
            The tagger.
        """
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
        """Return the attributes of the tagger for pickling, without the compiled forms of the model."""
        return {name: value for name, value in self.__dict__.items() if name not in _COMPILED}


@cache  # building it takes longer than some other steps of tagging a short text
def _plain_inference(links: bool) -> Inference:
    return Inference(links=links)


def load(name_or_path: str | os.PathLike[str], **params: Any) -> Tagger:
    """Load the tagger of a shipped model ("en") or of a model file.

    Args:
        name_or_path: Name of a shipped model, or a path. The name of a shipped model takes precedence over a file of
            the same name in the current folder.
        params: Parameters of `Tagger` that the model does not determine, such as ``backend``.

    Returns:
        The tagger.

    Raises:
        ModelError: The model does not exist or cannot be read.
        TypeError: The argument is neither a string nor a path.
    """
    shipped = shipped_models()
    path = name_or_path.__fspath__() if isinstance(name_or_path, os.PathLike) else name_or_path
    if (name := check_text(path, "name_or_path", "the name of a shipped model or a path")) in shipped:
        with importlib.resources.as_file(shipped[name]) as path:
            return Tagger.from_model(TaggerModel.load(path), **params)
    if not os.path.exists(name):  # noqa: PTH110  # `Path.exists` raises OSError for a name that is too long
        names = ", ".join(sorted(shipped)) or "none"
        similar = similar_model(name)
        hint = "give" if similar is None else f"did you mean {similar!r} ({language_name(similar.split('_')[0])})? Give"
        raise ModelError(f"there is no model {name!r:.100}: {hint} a file, or one of {names}")
    return Tagger.from_model(TaggerModel.load(name), **params)
