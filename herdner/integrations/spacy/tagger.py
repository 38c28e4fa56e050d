"""The component ``herdner``: names of tokens that spaCy made, tagged consistently across the ``Doc``.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger
from spacy.vocab import Vocab

from herdner.base.seeds import child
from herdner.crf.link_rules import rule_from_text
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.integrations.spacy.common import (
    ConfiguredNames,
    annotated,
    configured_backend,
    configured_names,
    document_of,
    named,
    register_extension,
    require_herdner,
    set_entities,
)
from herdner.integrations.spacy.examples import training_documents
from herdner.integrations.spacy.pipe import SCORES, WRITES, EntityPipe, Part
from herdner.ner.inference import Inference
from herdner.ner.known_names import Names
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, shipped_models
from herdner.ner.tagger import Tagger, load
from herdner.text.labels import new_label, rename_labels
from herdner.text.sentences import ENGLISH, SentenceRules
from herdner.text.tags import Span, classes_of
from herdner.text.tokenize import TokenizerSettings

DEFAULT_CONFIG = {
    "model": "en",
    "backend": None,
    "links": True,
    "names": None,
    "labels": None,
    "seed": 0,
    "spans_key": None,
    "annotate_ents": True,
    "overwrite_ents": False,
    "scorer": {"@scorers": "spacy.ner_scorer.v1"},
}


class Found(NamedTuple):
    """Entities of one ``Doc``: spans of its tokens, in the order of the text, and the probability of each."""

    spans: list[Span]
    confidences: list[float]


class HerdnerTagger(EntityPipe):
    """Finds named entities in the tokens of a ``Doc``, by a chain for each sentence and links between equal names.

    Sentences are those that components before it have set; where there are none, herdner's own rules find them.

    There is no ``update``: the CRF is trained by `initialize`, to the end, on all examples at once, and steps on single
    batches would only lead away from there. ``nlp.update`` and ``spacy train`` pass the component by.

    Args:
        model: A shipped model ("en") or a model file; None waits for `initialize`, ``from_disk`` or ``from_bytes``. A
            file that is missing is an error when the component is used, so that a saved pipeline, which holds its
            model, opens anywhere.
        backend: Name of an inference backend (`herdner.BACKENDS`), or a mapping of its "name" and options; None is the
            tagger's own choice.
        links: False leaves the links out.
        names: Those that the user knows (`herdner.Names`): a file, a list of spaCy's patterns, or a mapping with "file"
            or "patterns" and the options "strength", "hard" and "fold_case". A saved pipeline holds them.
        labels: Other names for the model's classes, as in ``{"PER": "PERSON", "LOC": "GPE"}``; None drops a class, and
            one that is not named keeps its name. A mapping for names (``names``) speaks of the model's own.
        seed: Of samplers. Each ``Doc`` draws its random numbers from the same child of the seed, so what is found in it
            does not depend on other documents, their order, the batch size or the number of processes; it is what
            ``Tagger.tag`` finds with this seed.
        annotate_ents: Whether entities go into ``doc.ents``; ``ent._.confidence`` has the confidence.
        overwrite_ents: Whether they replace others there that they overlap; by default those that are there stay, as
            with spaCy's own ``ner``.
        spans_key: Also write ``doc.spans[spans_key]``, confidences in its ``attrs["scores"]``.
        scorer: As in spaCy's ``ner``, by default F1 of ``doc.ents``.
    """

    part = "model"

    def __init__(
        self,
        vocab: Vocab,
        name: str = "herdner",
        *,
        model: str | None = "en",
        backend: str | Mapping[str, Any] | None = None,
        links: bool = True,
        names: ConfiguredNames | None = None,
        labels: Mapping[str, str | None] | None = None,
        seed: int = 0,
        spans_key: str | None = None,
        annotate_ents: bool = True,
        overwrite_ents: bool = False,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        self.vocab = vocab
        self.name = name
        self.links = links
        self.seed = seed
        self.annotate_ents = annotate_ents
        self.overwrite_ents = overwrite_ents
        self.scorer = scorer
        self.cfg = {"spans_key": spans_key}  # where spaCy's scorers look for it
        self._named_model = model
        self._tagger: Tagger | None = None
        self._labels: tuple[str, ...] = ()
        self._renaming = None if labels is None else dict(labels)
        register_extension()
        with named(name):
            if not annotate_ents and spans_key is None:
                raise ValueError("nowhere to write to: set annotate_ents to true or name a spans_key")
            child(seed, 0)
            self._backend = configured_backend(backend)
            self._named_names, self._names = names, configured_names(names, missing_ok=True)
            if model is not None and _exists(model):
                self._take(load(model).model_)
                self._check_renaming()
            if self._tagger is not None and self._names is not None:
                self._tagger.finder(self._names)  # a label that the model does not have is found here

    # --- tagging ----------------------------------------------------------------------------------------------------

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[Found]) -> None:
        """Write what ``predict`` has found."""
        for doc, (spans, confidences) in zip(docs, predictions, strict=True):
            set_entities(
                doc, spans, confidences, spans_key=self.spans_key, annotate_ents=self.annotate_ents,
                existing="overwrite" if self.overwrite_ents else "keep",
            )  # fmt: skip

    def _predicted(self, docs: Sequence[Doc]) -> list[Found]:
        tagger = self.tagger
        aligned = [document_of(doc, tagger.model_.tokenizer.sentences) for doc in docs]
        documents = [each.document for each in aligned if each.document.n_tokens]
        inference = Inference(self._backend, self.links, self.names)
        if self._backend is None:  # which draws no numbers: several documents at a time are faster
            tagged = tagger.pipe(documents, inference, seed=self.seed)
        else:
            tagged = (tagger.tag(document, inference, seed=self.seed) for document in documents)
        found: list[Found] = []
        for each in aligned:
            names = next(tagged) if each.document.n_tokens else each.document
            if self._renaming is not None:
                names = rename_labels(names, self._renaming)
            found.append(Found(each.in_doc(names.spans or []), [entity.confidence or 0.0 for entity in names.entities]))
        return found

    # --- what it knows ------------------------------------------------------------------------------------------------

    @property
    def tagger(self) -> Tagger:
        """The tagger at work; a ValueError where there is no model yet."""
        if self._tagger is None:
            with named(self.name):
                if self._named_model is None:
                    raise ModelError(
                        'there is no model yet: name one in its config, as in model = "en", train one by'
                        " nlp.initialize with examples, or open a saved pipeline"
                    )
                self._take(load(self._named_model).model_)
        assert self._tagger is not None
        return self._tagger

    @property
    def names(self) -> Names | None:
        """Names that the user knows, if any. ValueError where their file is missing."""
        if self._names is None:
            self._names = configured_names(self._named_names)
        return self._names

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of its entities, sorted; none before there is a model."""
        return self._labels

    def _take(self, model: TaggerModel) -> None:
        """Tag with this model from now on."""
        self._tagger = Tagger.from_model(model)
        renamed = {new_label(label, self._renaming) for label in classes_of(model.weights.labels)}
        self._labels = tuple(sorted(label for label in renamed if label is not None))
        for label in self._labels:
            self.vocab.strings.add(label)  # now: a memory zone would forget a label that comes with an entity

    def _check_renaming(self) -> None:
        """ValueError for classes that the model of the config does not have: a slip would go unnoticed."""
        classes = set(self.tagger.labels)
        if unknown := sorted(set(self._renaming or {}) - classes):
            raise ValueError(f"labels: the model has no class {unknown[0]!r}; it has {', '.join(sorted(classes))}")

    # --- training -----------------------------------------------------------------------------------------------------

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
        """Train the CRF, chain and links, on the examples, all of it now: ``spacy train`` has nothing to update later.

        Other arguments are those of `herdner.Tagger`. Gold entities are ``reference.ents``, or those of
        ``reference.spans[spans_key]`` where only these are written. They are laid on the tokens of the pipeline's own
        tokenizer.

        Args:
            train: None trains where the config names no model, True in any case.
            lexicon: The model that gives word classes and gazetteers, or "none"; by default the config's model, else
                "en" for English and none for others.
            rules: Which mentions are linked (``["same-word"]`` by default), as in
                `herdner.crf.link_rules.rule_from_text`; ``[]`` trains the chain alone.
        """
        if train is False or (train is None and self._named_model is not None):
            return
        language = str(nlp.lang if nlp is not None else self.vocab.lang)
        with named(self.name):
            settings = TokenizerSettings(language, sentences=ENGLISH if language == "en" else SentenceRules())
            linked = [skip_chain_template(rule_from_text(rule)) for rule in (["same-word"] if rules is None else rules)]
            key = None if self.annotate_ents else self.spans_key
            documents = training_documents(get_examples(), settings.sentences, key, self.name)
            logger.info("%s: training on %d documents", self.name, len(documents))
            tagger = Tagger(
                lexicon=self._lexicon(lexicon, language),
                c1=c1, c2=c2, min_freq=min_freq, max_iterations=max_iterations,
                templates=[linear_chain_template(), *linked], tokenizer=settings,
            )  # fmt: skip
            card = {"training_documents": len(documents)}
            tagger.fit(documents, card=card, seed=self.seed)  # pyright: ignore[reportUnknownMemberType]
            self._take(tagger.model_)

    def _lexicon(self, named_model: str | None, language: str) -> Lexicon:
        name = named_model or self._named_model or ("en" if language == "en" else "none")
        return Lexicon() if name == "none" else load(name).model_.lexicon

    # --- saving -----------------------------------------------------------------------------------------------------

    def _saved(self) -> TaggerModel | None:
        return None if self._tagger is None and self._named_model is None else self.tagger.model_

    def _load(self, where: Path | io.BytesIO) -> None:
        self._take(TaggerModel.load(where))

    def _parts(self) -> dict[str, Part]:
        return {**super()._parts(), "names": Part(lambda: self.names, self._read_names)}

    def _read_names(self, where: Path | io.BytesIO) -> None:
        with named(self.name):
            self._names = configured_names(self._named_names, where)


def _exists(model: str) -> bool:
    """Whether there is a model of this name to load now; a file that is not here may be inside a saved pipeline."""
    return model in shipped_models() or os.path.exists(model)  # noqa: PTH110 (False for what can be no path)


@Language.factory(  # pyright: ignore[reportUnknownMemberType, reportUntypedFunctionDecorator]
    "herdner",
    assigns=WRITES,
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORES,
)
@annotated
def make_tagger(
    nlp: Language,
    name: str,
    model: str | None,
    backend: str | dict[str, Any] | None,
    links: bool,
    names: str | list[dict[str, Any]] | dict[str, Any] | None,
    labels: dict[str, str | None] | None,
    seed: int,
    spans_key: str | None,
    annotate_ents: bool,
    overwrite_ents: bool,
    scorer: Callable[..., dict[str, Any]] | None,
) -> HerdnerTagger:
    """The factory ``herdner``; its arguments are those of `HerdnerTagger`."""
    require_herdner(nlp)
    return HerdnerTagger(
        nlp.vocab, name, model=model, backend=backend, links=links, names=names,
        labels=labels, seed=seed, spans_key=spans_key, annotate_ents=annotate_ents, overwrite_ents=overwrite_ents,
        scorer=scorer,
    )  # fmt: skip
