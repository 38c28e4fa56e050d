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

from herdner.base.messages import warn_caller
from herdner.base.seeds import child
from herdner.crf.link_rules import rule_from_text
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.integrations.spacy.component import (
    SCORER,
    ComponentError,
    ConfiguredNames,
    EntityPipe,
    SavedPart,
    add_requirement,
    configured_backend,
    configured_names,
    errors_name,
    factory,
)
from herdner.integrations.spacy.doc import document_of, register_extension, set_entities, set_sentences
from herdner.integrations.spacy.examples import has_entities, training_documents
from herdner.ner.inference import Inference
from herdner.ner.known_names import Names
from herdner.ner.language import LanguageWarning, language_name
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, shipped_models
from herdner.ner.tagger import Tagger, load
from herdner.text.labels import new_label, rename_labels
from herdner.text.tags import Span
from herdner.text.tokenize import TokenizerSettings

ONTONOTES: dict[str, str | None] = {"PER": "PERSON", "LOC": "GPE", "MISC": None}
"""Names of labels in OntoNotes, as in ``en_core_web_sm``. GPE are countries and places with a government, the most
frequent places. OntoNotes has no label for miscellaneous names. Other labels of ``en_core7`` are those of OntoNotes.
"""
LABEL_PRESETS = {"ontonotes": ONTONOTES}


class TaggedSpans(NamedTuple):
    """Predictions for one ``Doc``: entities as token spans, their confidences and name ids, and sentence starts.

    Attributes:
        spans: The spans.
        confidences: Probability of each span.
        name_ids: Identifier of the name of each span; None if unknown.
        sentence_starts: Indices of the tokens that begin a sentence.
    """

    spans: list[Span]
    confidences: list[float]
    name_ids: list[int | None]
    sentence_starts: list[int]


def _label_names(labels: str | dict[str, str | None] | None) -> dict[str, str | None] | None:
    """Return the option ``labels`` as a dict from label to new name; replace the name of a preset by its dict."""
    if not isinstance(labels, str):
        return labels
    if labels not in LABEL_PRESETS:
        raise ValueError(
            f"labels must be a dict from labels to their new names, or {' or '.join(LABEL_PRESETS)}, got {labels!r}"
        )
    return LABEL_PRESETS[labels]


@factory("herdner", default_config={"scorer": SCORER})
class HerdnerTagger(EntityPipe):
    """Component that finds named entities in the tokens of a ``Doc``.

    The component uses the sentences that earlier components have set; otherwise herdner's own rules find sentences.

    `initialize` trains the CRF completely, on all examples at once. Therefore `update` does not train: after
    `initialize` it changes nothing, as in ``spacy train``, and without `initialize` it raises an error.

    Args:
        nlp: The pipeline.
        name: Name of the component in the pipeline.
        model: A shipped model ("en") or a model file. None: `initialize`, ``from_disk`` or ``from_bytes`` provides the
            model. In a saved pipeline, which contains its model, the file may be missing.
        backend: Name of an inference backend (`herdner.BACKENDS`), or a mapping of "name" and its options. None: the
            tagger's default.
        links: Whether the model's links are used.
        names: Known names (`herdner.Names`): a file, a list of patterns or [name, label], or a mapping with "file" or
            "patterns" and the options "strength", "hard" and "fold_case". A saved pipeline contains them.
        labels: New names of the model's labels, as in ``{"PER": "PERSON", "LOC": "GPE"}``, or "ontonotes" for
            PERSON, GPE and ORG as in OntoNotes. None removes a label; a label that is not listed keeps its name.
            ``names`` uses the model's own labels.
        seed: Seed of samplers. Each ``Doc`` is sampled with the random numbers of ``Tagger.tag`` for this seed. Results
            do not depend on other documents, their order, the batch size or the number of processes.
        spans_key: Name of a group in ``doc.spans`` into which entities are also written, with their confidences in
            its ``attrs["scores"]``.
        annotate_ents: Whether entities are written into ``doc.ents``, with ``ent._.confidence``.
        annotate_sents: Whether the sentences that herdner has found are written as ``token.is_sent_start``, if no
            earlier component has set sentences.
        overwrite_ents: Whether entities replace earlier entities that they overlap. By default the earlier ones are
            kept, as with spaCy's ``ner``.
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
        labels: str | dict[str, str | None] | None = None,
        seed: int = 0,
        spans_key: str | None = None,
        annotate_ents: bool = True,
        annotate_sents: bool = False,
        overwrite_ents: bool = False,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        """Check the options of the component, and load its model unless a saved pipeline provides it."""
        is_saved = add_requirement(nlp)
        self.vocab, self.name = nlp.vocab, name
        self.links, self.seed, self.scorer = links, seed, scorer
        self.annotate_ents, self.annotate_sents, self.overwrite_ents = annotate_ents, annotate_sents, overwrite_ents
        self.cfg = {"spans_key": spans_key}
        self._configured_model, self._configured_names = model, names
        self._trained_texts: set[str] | None = None  # texts of the examples of `initialize`
        self._tagger: Tagger | None = None
        self._labels: tuple[str, ...] = ()
        register_extension()
        with errors_name(name):
            if not annotate_ents and spans_key is None:
                raise ValueError("the component would write no output: set annotate_ents to true, or set spans_key")
            child(seed, 0)  # checks the seed
            self._new_labels = _label_names(labels)
            self._backend = configured_backend(backend)
            self._names = configured_names(names, missing_ok=is_saved)
            exists = model is not None and (model in shipped_models() or os.path.exists(model))  # noqa: PTH110
            if model is not None and (exists or not is_saved):
                self._use_model(load(model).model_)
                self._warn_about_language(nlp.lang or "")
                if not isinstance(labels, str):
                    self._check_new_labels()
            if self._tagger is not None and self._names is not None:
                self._tagger.finder(self._names)  # raises an error if the model does not have a label of the names

    def _warn_about_language(self, language: str) -> None:
        """Warn if herdner has a model for the language of the pipeline, but the configured model is for another one.

        The language "xx" of a model stands for any language.
        """
        own = self.tagger.model_.tokenizer.language
        if own not in (language, "xx") and language in shipped_models():
            warn_caller(
                f"{self.name}: the pipeline is for {language_name(language)}, but the model {self._configured_model!r}"
                f' is for {language_name(own)}; use config={{"model": "{language}"}}',
                LanguageWarning,
            )

    # --- tagging ----------------------------------------------------------------------------------------------------

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[TaggedSpans]) -> None:
        """Write the predicted entities into each ``Doc``.

        Args:
            docs: The ``Doc`` of each prediction.
            predictions: Result of ``predict``.
        """
        for doc, (spans, confidences, name_ids, sentence_starts) in zip(docs, predictions, strict=True):
            if self.annotate_sents:
                set_sentences(doc, sentence_starts)
            set_entities(
                doc, spans, confidences, name_ids, spans_key=self.spans_key, annotate_ents=self.annotate_ents,
                existing="overwrite" if self.overwrite_ents else "keep",
            )  # fmt: skip

    def _predict(self, docs: Sequence[Doc]) -> list[TaggedSpans]:
        tagger = self.tagger
        aligned = [document_of(doc, tagger.model_.tokenizer.sentences) for doc in docs]
        documents = [each.document for each in aligned if each.document.n_tokens]
        inference = Inference(self._backend, self.links, self.names)
        if self._backend is None:  # deterministic, so that documents can be tagged together, which is faster
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
            starts = each.doc_tokens[each.document.sentence_offsets[:-1]].tolist()
            predictions.append(TaggedSpans(each.to_doc_spans(spans), confidences, name_ids, starts))
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
        """Raise `ValueError` if the option ``labels`` renames a label that the configured model does not have."""
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
        base: str | None = None,
        lexicon: str | None = None,
        rules: list[str] | None = None,
        c1: float = 0.0,
        c2: float | None = None,
        min_freq: int | None = None,
        max_iterations: int = 80,
    ) -> None:
        """Train the linear-chain CRF and the links of the component's model on examples.

        The training is complete: ``spacy train`` does not update the component later. The entities are
        ``reference.ents``, or ``reference.spans[spans_key]`` if only this group is written. They are projected to the
        tokens of the pipeline's own tokenizer.

        Args:
            get_examples: Function that returns the examples.
            nlp: The pipeline.
            train: True trains a model, False keeps the model of the configuration. None trains if ``base`` is set or
                the configuration has no model; otherwise annotated examples are an error, because they would change
                nothing.
            base: A shipped model ("en") or a model file that is adapted to the examples. The entities have the new
                names of ``labels``.
            lexicon: Model whose word classes and gazetteers are used, or "none". Default: the configured model, or
                else "en" for English and none for other languages.
            rules: Rules that link mentions, as in `herdner.crf.link_rules.rule_from_text`. Default:
                those of the base, or ``["same-word"]``; ``[]`` trains a model without links.
            c1: See `herdner.Tagger`.
            c2: See `herdner.Tagger`.
            min_freq: See `herdner.Tagger`.
            max_iterations: See `herdner.Tagger`.

        Raises:
            ComponentError: An option is invalid, the examples contain no entity, or they would change nothing.
        """
        if train is False:
            if base is not None:
                raise ComponentError(
                    f"{self.name}: train = false keeps the model, but base = {base!r} adapts it; leave out one of the"
                    " two options"
                )
            return
        spans_key = None if self.annotate_ents else self.spans_key
        with errors_name(self.name):
            if train is None and base is None and self._configured_model is not None:
                if any(has_entities(example.reference, spans_key) for example in get_examples()):
                    raise ValueError(
                        f"the component already has the model {self._configured_model!r}, but the examples have"
                        f" entities and no option selects whether to train. In [initialize.components.{self.name}], set"
                        f' base = "{self._configured_model}" to adapt this model, train = true to train a new model, or'
                        " train = false to keep this model"
                    )
                return
            based = None if base is None else load(base)
            language = str(nlp.lang if nlp is not None else self.vocab.lang)
            if based is None:
                settings = TokenizerSettings.of_language(language)
                rules = ["same-word"] if rules is None else rules
                own: dict[str, Any] = {"lexicon": self._lexicon(lexicon, language), "tokenizer": settings}
            elif lexicon is not None:
                raise ValueError(
                    "lexicon cannot be combined with base, which determines the lexicon; leave out one of the two"
                    " options"
                )
            else:
                settings, own = based.model_.tokenizer, {"scheme": based.model_.scheme}
            if rules is not None:
                links = [skip_chain_template(rule_from_text(rule)) for rule in rules]
                own["templates"] = [linear_chain_template(), *links]
            documents = training_documents(get_examples(), settings.sentences, spans_key, self.name)
            if based is not None:
                documents = [rename_labels(document, self._model_labels(based)) for document in documents]
            logger.info("%s: training on %d documents", self.name, len(documents))
            tagger = Tagger(c1=c1, c2=c2, min_freq=min_freq, max_iterations=max_iterations, **own)
            card = {"training_documents": len(documents), **({} if base is None else {"base": base})}
            tagger.fit(documents, card=card, base=based, seed=self.seed)  # pyright: ignore[reportUnknownMemberType]
            self._use_model(tagger.model_)
            self._trained_texts = {example.reference.text for example in get_examples()}

    def _model_labels(self, base: Tagger) -> dict[str, str | None] | None:
        """Return the renamed labels as a dict from new name to name in the base model; None if no label is renamed."""
        names: dict[str, str | None] = {
            new: label
            for label in base.labels
            if (new := new_label(label, self._new_labels)) is not None and new != label
        }
        return names or None

    def update(
        self, examples: Iterable[Example], *, drop: float = 0.0, sgd: Any = None, losses: dict[str, float] | None = None
    ) -> dict[str, float]:
        """Do nothing if `initialize` has trained the component; otherwise raise an error.

        Args:
            examples: The examples. A warning reports examples that `initialize` did not have.
            drop: Ignored.
            sgd: Ignored.
            losses: Losses of the components.

        Returns:
            ``losses``, with the loss 0 of this component.

        Raises:
            ComponentError: `initialize` has not trained the component.
        """
        if self._trained_texts is None:
            raise ComponentError(
                f"{self.name}: update cannot train a CRF on single batches. To train on all examples, call"
                ' nlp.initialize, with model = null in the configuration or base = "en" in'
                f" [initialize.components.{self.name}]. To train only other components, freeze this one by"
                " frozen_components or nlp.select_pipes"
            )
        if any(example.reference.text not in self._trained_texts for example in examples):
            warn_caller(f"{self.name}: update does not train; examples that nlp.initialize did not have are ignored")
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        return losses

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
