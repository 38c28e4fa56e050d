"""The spaCy component ``herdner``, which finds names and labels them consistently across the ``Doc``.

>>> import spacy
>>> nlp = spacy.blank("en")
>>> _ = nlp.add_pipe("herdner", config={"model": "en", "backend": {"name": "herded-gibbs", "n_sweeps": 400}})
>>> doc = nlp("Ada Lovelace met Charles Babbage in London.")
>>> [(entity.text, entity.label_) for entity in doc.ents]
[('Ada Lovelace', 'PER'), ('Charles Babbage', 'PER'), ('London', 'LOC')]
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger

from herdner.base.seeds import child
from herdner.crf.link_rules import rule_from_text
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.integrations.spacy.component import (
    SCORER,
    ConfiguredNames,
    EntityPipe,
    SavedPart,
    add_requirement,
    configured_backend,
    configured_names,
    errors_name,
    factory,
)
from herdner.integrations.spacy.doc import document_of, register_extension, set_entities
from herdner.integrations.spacy.examples import training_documents
from herdner.ner.inference import Inference
from herdner.ner.known_names import Names
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, shipped_models
from herdner.ner.tagger import Tagger, load
from herdner.text.labels import new_label
from herdner.text.sentences import ENGLISH, SentenceRules
from herdner.text.tags import Span
from herdner.text.tokenize import TokenizerSettings


class TaggedSpans(NamedTuple):
    """Entities of one ``Doc``, as spans of its tokens in the order of the text, with their confidences and names."""

    spans: list[Span]
    confidences: list[float]
    name_ids: list[int | None]


@factory("herdner", default_config={"scorer": SCORER})
class HerdnerTagger(EntityPipe):
    """Component that finds named entities in the tokens of a ``Doc``.

    The component uses the sentences that earlier components have set; otherwise herdner's own rules find sentences.

    There is no ``update``: `initialize` trains the CRF completely, on all examples at once. ``nlp.update`` and
    ``spacy train`` do not change the component.

    Args:
        nlp: The pipeline.
        name: Name of the component in the pipeline.
        model: A shipped model ("en") or a model file. None: `initialize`, ``from_disk`` or ``from_bytes`` provides the
            model. A missing file is an error only when the component is used, because a saved pipeline may provide the
            model.
        backend: Name of an inference backend (`herdner.BACKENDS`), or a mapping of "name" and its options. None: the
            tagger's default.
        links: Whether the model's links are used.
        names: Known names (`herdner.Names`): a file, a list of spaCy's patterns, or a mapping with "file" or
            "patterns" and the options "strength", "hard" and "fold_case". A saved pipeline contains them.
        labels: New names of the model's labels, as in ``{"PER": "PERSON", "LOC": "GPE"}``. None removes a label; a
            label that is not listed keeps its name. ``names`` uses the model's own labels.
        seed: Seed of samplers. Each ``Doc`` is sampled with the random numbers of ``Tagger.tag`` for this seed. Results
            do not depend on other documents, their order, the batch size or the number of processes.
        spans_key: Name of a group in ``doc.spans`` into which entities are also written, with their confidences in
            its ``attrs["scores"]``.
        annotate_ents: Whether entities are written into ``doc.ents``, with ``ent._.confidence``.
        overwrite_ents: Whether entities replace earlier ones that they overlap. By default the earlier ones are kept,
            as with spaCy's ``ner``.
        scorer: Scorer as for spaCy's ``ner``; by default the F1 of ``doc.ents``.

    Raises:
        ComponentError: An option is invalid.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "herdner",
        *,
        model: str | None = "en",
        backend: str | dict[str, Any] | None = None,
        links: bool = True,
        names: ConfiguredNames | None = None,
        labels: dict[str, str | None] | None = None,
        seed: int = 0,
        spans_key: str | None = None,
        annotate_ents: bool = True,
        overwrite_ents: bool = False,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        """Check the options of the component, and load its model if the model's file exists."""
        add_requirement(nlp)
        self.vocab, self.name = nlp.vocab, name
        self.links, self.seed, self.scorer = links, seed, scorer
        self.annotate_ents, self.overwrite_ents = annotate_ents, overwrite_ents
        self.cfg = {"spans_key": spans_key}
        self._configured_model, self._configured_names, self._new_labels = model, names, labels
        self._tagger: Tagger | None = None
        self._labels: tuple[str, ...] = ()
        register_extension()
        with errors_name(name):
            if not annotate_ents and spans_key is None:
                raise ValueError("the component would write no output: set annotate_ents to true, or set spans_key")
            child(seed, 0)  # checks the seed
            self._backend = configured_backend(backend)
            self._names = configured_names(names, missing_ok=True)
            # A file that does not exist may be contained in a saved pipeline.
            if model is not None and (model in shipped_models() or os.path.exists(model)):  # noqa: PTH110
                self._use_model(load(model).model_)
                self._check_new_labels()
            if self._tagger is not None and self._names is not None:
                self._tagger.finder(self._names)  # raises an error if the model does not have a label of the names

    # --- tagging ----------------------------------------------------------------------------------------------------

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[TaggedSpans]) -> None:
        """Write the predicted entities into each ``Doc``.

        Args:
            docs: The ``Doc`` of each prediction.
            predictions: Result of ``predict``.
        """
        for doc, (spans, confidences, name_ids) in zip(docs, predictions, strict=True):
            set_entities(
                doc, spans, confidences, name_ids, spans_key=self.spans_key, annotate_ents=self.annotate_ents,
                existing="overwrite" if self.overwrite_ents else "keep",
            )  # fmt: skip

    def _predict(self, docs: Sequence[Doc]) -> list[TaggedSpans]:
        tagger = self.tagger
        aligned = [document_of(doc, tagger.model_.tokenizer.sentences) for doc in docs]
        documents = [each.document for each in aligned if each.document.n_tokens]
        inference = Inference(self._backend, self.links, self.names)
        if (
            self._backend is None
        ):  # the default is deterministic, so that documents can be tagged together, which is faster
            tagged = tagger.pipe(documents, inference, seed=self.seed)
        else:
            tagged = (tagger.tag(document, inference, seed=self.seed) for document in documents)
        predictions: list[TaggedSpans] = []
        for each in aligned:
            document = next(tagged) if each.document.n_tokens else each.document
            rows = [
                (span._replace(label=label), entity.confidence or 0.0, entity.name_id)
                for span, entity in zip(document.spans or (), document.entities, strict=True)
                if (label := new_label(span.label, self._new_labels)) is not None
            ]
            spans, confidences, name_ids = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
            predictions.append(TaggedSpans(each.to_doc_spans(spans), confidences, name_ids))
        return predictions

    # --- model and names --------------------------------------------------------------------------------------------

    @property
    def tagger(self) -> Tagger:
        """Tagger of the component; its model is loaded on first use.

        Raises:
            ComponentError: There is no model yet, or it cannot be read.
        """
        if self._tagger is None:
            with errors_name(self.name):
                if self._configured_model is None:
                    raise ModelError(
                        'the component has no model: set a model in the configuration, as in model = "en", train a'
                        " model by nlp.initialize with examples, or load a saved pipeline"
                    )
                self._use_model(load(self._configured_model).model_)
        assert self._tagger is not None
        return self._tagger

    @property
    def names(self) -> Names | None:
        """Known names of the component; None if the component uses no known names.

        Raises:
            ValueError: Their file is missing.
        """
        if self._names is None:
            self._names = configured_names(self._configured_names)
        return self._names

    @property
    def labels(self) -> tuple[str, ...]:
        """Sorted labels of the entities; empty if the component has no model yet."""
        return self._labels

    def _use_model(self, model: TaggerModel) -> None:
        self._tagger = Tagger.from_model(model)
        labels = {new_label(label, self._new_labels) for label in self._tagger.labels}
        self._labels = tuple(sorted(label for label in labels if label is not None))
        for label in self._labels:
            self.vocab.strings.add(label)  # here, because a memory zone removes strings that are added inside it

    def _check_new_labels(self) -> None:
        """Raise `ValueError` if ``labels`` renames a label that the configured model does not have."""
        labels = self.tagger.labels
        if unknown := sorted(set(self._new_labels or {}) - set(labels)):
            raise ValueError(f"labels: the model has no label {unknown[0]!r}; it has {', '.join(labels)}")

    # --- training ---------------------------------------------------------------------------------------------------

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        train: bool | None = None,
        lexicon: str | None = None,
        rules: list[str] | None = None,
        c1: float = 0.0,
        c2: float = 0.3,
        min_freq: int = 2,
        max_iterations: int = 80,
    ) -> None:
        """Train the chain and the links of the model on examples.

        The training is complete: ``spacy train`` does not update the component later. The entities are
        ``reference.ents``, or ``reference.spans[spans_key]`` if only this group is written. They are projected to the
        tokens of the pipeline's own tokenizer.

        Args:
            get_examples: Function that returns the examples.
            nlp: The pipeline.
            train: Whether to train; None: only if the configuration has no model.
            lexicon: Model whose word classes and gazetteers are used, or "none". Default: the configured model, or
                else "en" for English and none for other languages.
            rules: Rules that link mentions, as in `herdner.crf.link_rules.rule_from_text`. Default:
                ``["same-word"]``; ``[]`` trains the chain alone.
            c1: See `herdner.Tagger`.
            c2: See `herdner.Tagger`.
            min_freq: See `herdner.Tagger`.
            max_iterations: See `herdner.Tagger`.

        Raises:
            ComponentError: An option is invalid, or the examples contain no entity.
        """
        if train is False or (train is None and self._configured_model is not None):
            return
        language = str(nlp.lang if nlp is not None else self.vocab.lang)
        with errors_name(self.name):
            settings = TokenizerSettings(language, sentences=ENGLISH if language == "en" else SentenceRules())
            links = [skip_chain_template(rule_from_text(rule)) for rule in (["same-word"] if rules is None else rules)]
            spans_key = None if self.annotate_ents else self.spans_key
            documents = training_documents(get_examples(), settings.sentences, spans_key, self.name)
            logger.info("%s: training on %d documents", self.name, len(documents))
            tagger = Tagger(
                lexicon=self._lexicon(lexicon, language),
                c1=c1, c2=c2, min_freq=min_freq, max_iterations=max_iterations,
                templates=[linear_chain_template(), *links], tokenizer=settings,
            )  # fmt: skip
            card = {"training_documents": len(documents)}
            tagger.fit(documents, card=card, seed=self.seed)  # pyright: ignore[reportUnknownMemberType]
            self._use_model(tagger.model_)

    def _lexicon(self, model: str | None, language: str) -> Lexicon:
        name = model or self._configured_model or ("en" if language == "en" else "none")
        return Lexicon() if name == "none" else load(name).model_.lexicon

    # --- saving -----------------------------------------------------------------------------------------------------

    def _saved_parts(self) -> dict[str, SavedPart]:
        has_model = self._tagger is not None or self._configured_model is not None

        def read_model(where: Path | io.BytesIO) -> None:
            self._use_model(TaggerModel.load(where))

        def read_names(where: Path | io.BytesIO) -> None:
            self._names = configured_names(self._configured_names, where)

        return {
            "model": SavedPart(lambda: self.tagger.model_ if has_model else None, read_model),
            "names": SavedPart(lambda: self.names, read_names),
        }
