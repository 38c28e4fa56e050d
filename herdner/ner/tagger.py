"""The tagger: documents in, names out; trained and scored like a scikit-learn estimator."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.crf.training import Progress, train_chain
from herdner.graph import compile_tables
from herdner.inference import Backend, chain, make_backend
from herdner.inference.backend import takes_start
from herdner.inference.viterbi import Viterbi
from herdner.ner.document import Document
from herdner.ner.features import FeaturePlan, default_plan, make_extractor
from herdner.ner.io import tokenized
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import Model
from herdner.ner.tags import SCHEMES, Scheme, convert_tags, spans_from_tags
from herdner.ner.tokenize import Tokenizer, TokenizerSettings
from herdner.sampling.seeds import child

Source = str | Document


class NotFittedError(ValueError, AttributeError):
    """A tagger was asked to tag before it was trained or loaded."""


class Tagger:
    """Names of a document by a CRF.

    Parameters
    ----------
    plan: the features (`FeaturePlan`), or None for `default_plan`; lexicon: word classes and gazetteers they read
    (`Lexicon`).
    scheme: tag scheme of the chain's labels, whatever scheme the training data are written in.
    constrained: forbid tag sequences that are not well formed in the scheme.
    c1, c2, min_freq, max_iterations: CRFsuite's L-BFGS (`herdner.crf.training.train_chain`).
    backend: name of the inference backend (`herdner.BACKENDS`) or a `Backend`.
    tokenizer: settings with which text is split.

    Attributes
    ----------
    model_: the trained `Model`, after `fit` or `load`.
    """

    def __init__(
        self,
        plan: FeaturePlan | None = None,
        lexicon: Lexicon | None = None,
        *,
        scheme: Scheme = "iobes",
        constrained: bool = True,
        c1: float = 0.0,
        c2: float = 0.3,
        min_freq: int = 2,
        max_iterations: int = 80,
        backend: str | Backend = "viterbi",
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
        self.backend = backend
        self.tokenizer = tokenizer

    # --- scikit-learn's conventions ---------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Tagger:
        """Change constructor arguments; ValueError for one that does not exist."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"unknown parameter {name!r}; a tagger has {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def fit(
        self,
        documents: Iterable[Document],
        tags: Iterable[Sequence[str]] | None = None,
        *,
        card: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Tagger:
        """Train on tokenised documents with tags (their own, or ``tags``: one flat sequence per document, any
        scheme).
        """
        documents, gold = self._training_data(documents, tags)
        lexicon = self.lexicon or Lexicon()
        plan = self.plan or default_plan(lexicon.gazetteers.names if lexicon.gazetteers else ())
        extractor = make_extractor(plan, lexicon)
        offsets = [document.sentence_offsets for document in documents]
        weights = train_chain(
            [extractor.keys(d.tokens, d.sentence_offsets) for d in documents], offsets, gold,
            c1=self.c1, c2=self.c2, min_freq=self.min_freq, max_iterations=self.max_iterations, progress=progress,
        )  # fmt: skip
        self.model_ = Model(
            weights,
            plan,
            lexicon,
            self.scheme,
            self.constrained,
            self.tokenizer or TokenizerSettings(),
            dict(card or {}),
        )
        self._forget_compiled()
        return self

    def _training_data(self, documents, tags) -> tuple[list[Document], list[list[str]]]:
        if self.scheme not in SCHEMES:
            raise ValueError(f"unknown tag scheme {self.scheme!r}; known are {', '.join(SCHEMES)}")
        documents = list(documents)
        given = [document.tags for document in documents] if tags is None else list(tags)
        if len(given) != len(documents):
            raise ValueError(f"{len(documents)} documents but {len(given)} tag sequences")
        gold = []
        for i, (document, sequence) in enumerate(zip(documents, given, strict=True)):
            if sequence is None or len(sequence) != len(document.tokens):
                n = "no" if sequence is None else len(sequence)
                raise ValueError(f"document {document.id or i}: {len(document.tokens)} tokens but {n} tags to train on")
            gold.append(convert_tags(sequence, None, self.scheme, document.sentence_offsets))
        if not any(tag != "O" for sequence in gold for tag in sequence):
            raise ValueError("nothing to train on: the documents hold no entity")
        return documents, gold

    def predict(self, documents: Iterable[Document]) -> list[list[str]]:
        """The tags of each tokenised document, in the tagger's scheme."""
        return [list(document.tags or ()) for document in self.pipe(documents)]

    def predict_marginals(self, documents: Iterable[Document]) -> list[NDArray[np.float64]]:
        """Per document float64[tokens, tags]: the chain's marginal probabilities; columns as in `labels`."""
        return [self._chain_marginals(document) for document in documents]

    def score(self, documents: Iterable[Document], tags: Iterable[Sequence[str]] | None = None) -> float:
        """Micro F1 of the predicted entities (strict, by seqeval), between 0 and 1."""
        from herdner.ner.evaluate import evaluate

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
        self, source: Source, *, seed: int | None = 0, backend: str | Backend | None = None, **options: Any
    ) -> Document:
        """One text or document with its tags and entities; see `pipe`."""
        return next(self.pipe([source], seed=seed, backend=backend, **options))

    def pipe(
        self,
        sources: Iterable[Source],
        *,
        seed: int | None = 0,
        first: int = 0,
        backend: str | Backend | None = None,
        **options: Any,
    ) -> Iterator[Document]:
        """Tag texts or documents one after the other; lazily, so that endless streams are fine.

        ``backend`` and its ``options`` replace the tagger's own. Document i, counted from ``first``, draws its random
        numbers from the i-th child of ``seed``, so that results do not depend on how the work is shared out. Samplers
        begin with the best state of the chain: tag schemes forbid most of the steps that change one tag alone, so that
        from elsewhere they would hardly come there. Whatever backend chose the tags, the confidence of an entity
        is the probability, under the chain, that exactly its tokens carry its label.
        """
        chosen = self._backend(self.backend if backend is None else backend, options)
        for i, source in enumerate(sources, first):
            document = self._with_tokens(source)
            yield self._tagged(document, chosen, child(seed, i))

    def _with_tokens(self, source: Source) -> Document:
        """Texts, and documents that nobody has split yet, with their tokens."""
        if isinstance(source, str):
            return self._tokenizer(source)
        return source if len(source.tokens) else next(tokenized([source], self._tokenizer))

    @staticmethod
    def _backend(backend: str | Backend, options: dict[str, Any]) -> Backend:
        if isinstance(backend, str):
            return make_backend(backend, **options)
        if isinstance(backend, type) or not hasattr(backend, "infer"):
            raise ValueError(
                f"backend must be a name, as `herdner backends` lists, or such as Gibbs(), not {backend!r}"
            )
        if options:
            raise ValueError(f"options {', '.join(options)} belong to a backend given by name; {backend!r} has its own")
        return backend

    def _tagged(self, document: Document, backend: Backend, rng: np.random.Generator) -> Document:
        if not len(document.tokens):
            return replace(document, tags=[], entities=())
        unary = self._extractor.scores(document.tokens, document.sentence_offsets)
        graph = compile_tables(self._crf.unroll(unary, document.sentence_offsets))
        start: dict[str, Any] = {"start": Viterbi().infer(graph).state} if takes_start(backend) else {}
        states = backend.infer(graph, rng, **start).state
        labels = self.labels
        tags = [labels[state] for state in states.tolist()]
        spans = spans_from_tags(tags, document.sentence_offsets)
        confidences = self._confidences(document, unary, states, spans)
        return replace(document, tags=tags, entities=document.entities_from_spans(spans, confidences))

    def _confidences(self, document, unary, states, spans) -> NDArray[np.float64]:
        unary = self._crf.with_borders(unary, document.sentence_offsets)
        starts, ends = [span.start for span in spans], [span.end for span in spans]
        return np.exp(
            chain.span_log_probability(unary, self._crf.transition, document.sentence_offsets, states, starts, ends)
        )

    def _chain_marginals(self, document: Document) -> NDArray[np.float64]:
        unary = self._crf.with_borders(
            self._extractor.scores(document.tokens, document.sentence_offsets), document.sentence_offsets
        )
        nodes = chain.forward_backward(unary, self._crf.transition, document.sentence_offsets).nodes
        assert nodes is not None
        return nodes

    # --- the model, compiled when first needed ------------------------------------------------------------------------

    @property
    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("this tagger is not trained: call fit, or load a model with herdner.load")
        return self.model_

    @cached_property
    def _extractor(self):
        return self._model.extractor()

    @cached_property
    def _crf(self):
        return self._model.crf()

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model.tokenizer)

    def _forget_compiled(self) -> None:
        for name in ("_extractor", "_crf", "_tokenizer"):
            self.__dict__.pop(name, None)

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the model to one file, atomically; options of `Model.save`."""
        self._model.save(path, **options)

    @classmethod
    def from_model(cls, model: Model, **params: Any) -> Tagger:
        """A tagger around a model that is already trained."""
        tagger = cls(
            model.plan,
            model.lexicon,
            scheme=model.scheme,
            constrained=model.constrained,
            tokenizer=model.tokenizer,
            **params,
        )
        tagger.model_ = model
        return tagger

    def __getstate__(self) -> dict[str, Any]:
        compiled = ("_extractor", "_crf", "_tokenizer")
        return {name: value for name, value in self.__dict__.items() if name not in compiled}
