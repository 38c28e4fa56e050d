"""The spaCy component ``herdner_consistency``, which makes the entities of earlier components consistent.

>>> import spacy
>>> nlp = spacy.blank("en")
>>> ruler = nlp.add_pipe("entity_ruler")
>>> ruler.add_patterns([{"label": "PERSON", "pattern": "Ada Lovelace"}])
>>> _ = nlp.add_pipe("herdner_consistency")
>>> doc = nlp("Ada Lovelace wrote. So Lovelace knew, and Lovelace said it.")
>>> [(entity.text, entity.label_) for entity in doc.ents]
[('Ada Lovelace', 'PERSON'), ('Lovelace', 'PERSON'), ('Lovelace', 'PERSON')]
"""

# spaCy is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, SpanGroup
from spacy.tokens import Span as DocSpan
from spacy.training import Example
from spacy.util import logger

from herdner.base.arrays import Floats
from herdner.base.messages import warn_caller
from herdner.base.seeds import child
from herdner.crf.learning import Learner
from herdner.crf.link_rules import rule_from_text
from herdner.integrations.spacy.component import (
    SCORER,
    EntityPipe,
    SavedPart,
    add_requirement,
    configured_backend,
    errors_name,
    factory,
)
from herdner.integrations.spacy.doc import (
    EXTENSION,
    NAMES_KEY,
    blocked_tokens,
    name_ids_of,
    register_extension,
    set_names,
)
from herdner.integrations.spacy.entities import (
    OVERLAPS,
    DocEntities,
    begin_probabilities,
    preceding_parser,
    read_ents,
    read_group,
)
from herdner.integrations.spacy.examples import is_annotated
from herdner.integrations.spacy.task import (
    UNCHANGED,
    ConsistencyTask,
    ConsistentEntities,
    NoiseModel,
    ParserProbabilities,
    layer_labels,
    linked_tokens,
    offsets_outside,
    tags_of,
)
from herdner.ner.inference import DEFAULT_BACKEND
from herdner.ner.layer import SkipChainLayer
from herdner.ner.model_file import ModelError
from herdner.text.tags import Span, tags_from_spans

RULES = ["same-word", "last-name", "acronym"]
# OntoNotes' numbers and times: they are not names, and equal words have different meanings.
IGNORE_LABELS = ["CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME"]
LINK_STRENGTH = 1.0  # log-potential of a link whose ends have the same label; measured with the default `NoiseModel`
MAX_LAYERS = 256  # cached layers, one for each set of labels
DEFAULT_CONFIG = {"rules": RULES, "ignore_labels": IGNORE_LABELS, "scorer": SCORER}


@factory("herdner_consistency", requires=["doc.ents"], default_config=DEFAULT_CONFIG)
class HerdnerConsistency(EntityPipe):
    """Component that makes the entities of a ``Doc`` consistent by linking the mentions of each name.

    Any earlier component may have predicted the entities. This component adds missed mentions, and changes labels where
    the links to other mentions outweigh the entity's own score (`herdner.SkipChainLayer`). A mention without links does
    not change.

    Args:
        nlp: The pipeline.
        name: Name of the component in the pipeline.
        rules: Rules that link tokens, as in `herdner.crf.link_rules.rule_from_text`.
        layer: File of a trained `SkipChainLayer` with the tags O, and B and I of each label; it has its own rules.
            None: an untrained layer, for any labels.
        backend: Name of an inference backend, or a mapping of "name" and its options.
        ignore_labels: Labels of entities that must not change.
        use_ner_scores: Whether to compute the probabilities of the preceding spaCy ``ner``, which takes as long as
            ``ner`` itself. Other entities get probabilities from the error rates of `NoiseModel`.
        drop: Whether entities may be removed. An entity whose linked mentions all have its label is never removed.
        spans_key: Name of the group in ``doc.spans`` to read and write, with scores in its ``attrs[scores_key]``, as
            ``spancat`` does. None: ``doc.ents``, with ``ent._.confidence``.
        scores_key: Name of the attribute with the scores of a group.
        overlaps: "error", or "best" to keep the most probable of overlapping spans of the group (without scores: the
            longest).
        seed: Seed of samplers, the same for each ``Doc``, so that results do not depend on other documents.
        scorer: Scorer as for spaCy's ``ner``; by default the F1 of ``doc.ents``.

    Raises:
        ComponentError: An option is invalid.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = "herdner_consistency",
        *,
        rules: list[str] = RULES,
        layer: str | None = None,
        backend: str | dict[str, Any] | None = None,
        ignore_labels: list[str] = IGNORE_LABELS,
        use_ner_scores: bool = True,
        drop: bool = True,
        spans_key: str | None = None,
        scores_key: str = "scores",
        overlaps: str = "error",
        seed: int = 0,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        """Check the options of the component, and load its layer unless a saved pipeline provides it."""
        is_saved = add_requirement(nlp)
        self.nlp, self.vocab, self.name = nlp, nlp.vocab, name
        self.ignore_labels, self.use_ner_scores, self.drop = frozenset(ignore_labels), use_ner_scores, drop
        self.scores_key, self.overlaps, self.seed, self.scorer = scores_key, overlaps, seed, scorer
        self.noise, self.link_strength = NoiseModel(), LINK_STRENGTH
        self.cfg = {"spans_key": spans_key}
        self._configured_layer = layer
        self._trained: SkipChainLayer | None = None
        self._untrained: dict[tuple[tuple[str, ...], float], SkipChainLayer] = {}
        register_extension()
        with errors_name(name):
            if overlaps not in OVERLAPS:
                raise ValueError(f"overlaps must be one of {', '.join(OVERLAPS)}, got {overlaps!r:.80}")
            child(seed, 0)  # checks the seed
            self.rules = [rule_from_text(rule) for rule in rules]
            self._backend = configured_backend(backend) or DEFAULT_BACKEND
            if layer is not None and not is_saved:
                self._load_layer(layer)

    # --- entities ---------------------------------------------------------------------------------------------------

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[ConsistentEntities]) -> None:
        """Replace the entities of each ``Doc`` by the predicted entities.

        They are written to where the earlier ones were read. Unchanged spans keep their ids. Entities whose labels are
        not ignored have the number of their name in ``span._.name_id``, and form the group ``doc.spans["names"]``.

        Args:
            docs: The ``Doc`` of each prediction.
            predictions: Result of ``predict``.
        """
        for doc, (spans, confidences, originals) in zip(docs, predictions, strict=True):
            new = [
                original or DocSpan(doc, span.start, span.end, label=span.label)
                for span, original in zip(spans, originals, strict=True)
            ]
            names = [span for span in new if span.label_ not in self.ignore_labels]
            set_names(doc, names, name_ids_of(doc, names), has_group=self.spans_key != NAMES_KEY)
            if self.spans_key is not None:
                attrs = dict(doc.spans[self.spans_key].attrs)
                attrs[self.scores_key] = np.array([np.nan if c is None else c for c in confidences], np.float64)
                doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=new, attrs=attrs)
                continue
            doc.set_ents(new, blocked=blocked_tokens(doc))
            if register_extension():
                for span, confidence in zip(new, confidences, strict=True):
                    span._.set(EXTENSION, confidence)

    def _predict(self, docs: Sequence[Doc]) -> list[ConsistentEntities]:
        return list(map(self._consistent_entities, docs))

    def _consistent_entities(self, doc: Doc) -> ConsistentEntities:
        entities = self._entities(doc)
        labels = None if self.layer is None else layer_labels(self.layer)
        task = ConsistencyTask.of(doc, entities, self.ignore_labels, labels)
        if not task.names:
            return ConsistentEntities.without_changes(entities)
        layer = self.layer or self._untrained_layer(tuple(sorted({span.label for span in task.names})))
        links = layer.links(task.tokens, task.offsets)
        linked = linked_tokens(len(task.tokens), links)
        if not linked.any():
            return ConsistentEntities.without_changes(entities)
        scores, tagger_confidences = task.scores(
            layer_labels(layer), linked, self.noise, self._parser_probabilities(doc), drop=self.drop
        )
        result = layer.apply(scores, task.tokens, task.offsets, links=links, seed=self.seed)
        confidences = [None] * len(result.spans) if result.confidences is None else result.confidences.tolist()
        return task.merge(result.spans, confidences, tagger_confidences, links)

    def _entities(self, doc: Doc) -> DocEntities:
        if self.spans_key is None:
            return read_ents(doc)
        return read_group(doc, self.spans_key, self.scores_key, self.overlaps)

    def _parser_probabilities(self, doc: Doc) -> ParserProbabilities | None:
        """Return a function that computes label probabilities with the component ``ner``; None if it is not used."""
        use_parser = self.use_ner_scores and self.spans_key is None
        parser = preceding_parser(self.nlp, self) if use_parser else None
        return None if parser is None else partial(begin_probabilities, parser, doc)

    # --- layers -----------------------------------------------------------------------------------------------------

    @property
    def layer(self) -> SkipChainLayer | None:
        """Trained skip-chain layer of the component; None if the component uses an untrained layer.

        Raises:
            ComponentError: The configured file is missing or invalid.
        """
        if self._trained is None and self._configured_layer is not None:
            with errors_name(self.name):
                self._load_layer(self._configured_layer)
        return self._trained

    def _load_layer(self, file: str) -> None:
        if not os.path.exists(file):  # noqa: PTH110
            raise ModelError(
                f"there is no layer file {file}: set the option layer to the path of a file that SkipChainLayer.save"
                " has written, or to null"
            )
        self._use_layer(SkipChainLayer.load(file))

    def _use_layer(self, layer: SkipChainLayer) -> None:
        if list(layer.tags) != tags_of(layer_labels(layer)) or layer.scores != "log-potentials":
            raise ModelError(
                'the layer must have the tags O, B-LABEL and I-LABEL of each label, such as ["O", "B-PER", "I-PER"],'
                f" got {list(layer.tags)!r:.80}, and its scores must be log-potentials, got {layer.scores}; call the"
                " method initialize of this component with examples, which trains such a layer"
            )
        layer.backend = self._backend
        self._trained = layer
        for label in layer_labels(layer):
            self.vocab.strings.add(label)  # here, because a memory zone removes strings that are added inside it

    def _new_layer(self, labels: Sequence[str], learner: Learner) -> SkipChainLayer:
        return SkipChainLayer(
            tags_of(labels), self.rules, link_strength=self.link_strength, outside_strength=0.0,
            backend=self._backend, learner=learner,
        )  # fmt: skip

    def _untrained_layer(self, labels: tuple[str, ...]) -> SkipChainLayer:
        key = labels, self.link_strength
        if key not in self._untrained:
            if len(self._untrained) >= MAX_LAYERS:
                self._untrained = {}
            self._untrained[key] = self._new_layer(labels, Learner())
        return self._untrained[key]

    # --- training ---------------------------------------------------------------------------------------------------

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        learn: bool = True,
        l2: float = 2.0,
    ) -> None:
        """Learn the link tables from examples.

        The entities of ``predicted`` are compared with the entities of ``reference``.

        If ``predicted`` has no entities, the earlier components of the pipeline add them. Components that are trained
        at the same time are left out, because they cannot predict yet. Therefore ``spacy train`` learns the tables only
        if the component that predicts entities is frozen or sourced. Otherwise learn them afterwards, with this
        component disabled: ``component.initialize(lambda: [Example(nlp(text), reference), ...])``. The earlier
        components should not have been trained on the same examples.

        Args:
            get_examples: Function that returns the examples.
            nlp: The pipeline.
            learn: Whether to learn the tables.
            l2: See `herdner.crf.learning.Learner`.

        Raises:
            ComponentError: The entities of an example are invalid.
        """
        if not learn or self._configured_layer is not None:
            return
        earlier = [] if nlp is None else self._preceding_components(nlp)
        with errors_name(self.name):
            pairs = [pair for example in get_examples() if (pair := self._pair(example, earlier)) is not None]
            labels = {span.label for task, gold in pairs for span in (*task.names, *gold)}
            if not any(task.names for task, _ in pairs) or not any(gold for _, gold in pairs):
                logger.info("%s: no example has entities of a trained component; the tables do not change", self.name)
                return
            self._learn(pairs, tuple(sorted(labels - self.ignore_labels)), l2)

    def _preceding_components(self, nlp: Language) -> list[Callable[[Doc], Doc]]:
        """Return the components that precede this component and can predict while the pipeline is initialised."""
        components: list[Callable[[Doc], Doc]] = []
        for name, pipe in nlp.components:
            if pipe is self:
                return components
            if name in nlp.disabled or not getattr(pipe, "is_trainable", False):
                components.append(pipe)
        return []

    def _pair(
        self, example: Example, components: Sequence[Callable[[Doc], Doc]]
    ) -> tuple[ConsistencyTask, list[Span]] | None:
        """Return the task of an example, and its gold names as token spans; None if no component sets entities."""
        doc, key = example.predicted, self.spans_key
        if not is_annotated(doc, key):
            doc = doc.copy()
            for component in components:
                doc = component(doc)
            if not is_annotated(doc, key):
                return None
        task = ConsistencyTask.of(doc, self._entities(doc), self.ignore_labels, None)
        reference = example.reference
        references = reference.ents if key is None else reference.spans.get(key, ())
        gold: list[Span] = []
        for span in example.get_aligned_spans_y2x(list(references), allow_overlap=False):
            start, end = task.aligned.to_document_range(span.start, span.end)
            if start < end and span.label_ not in self.ignore_labels and not task.hidden[start:end].any():
                gold.append(Span(start, end, span.label_))
        return task, gold

    def _learn(self, pairs: Sequence[tuple[ConsistencyTask, list[Span]]], labels: tuple[str, ...], l2: float) -> None:
        layer = self._untrained_layer(labels)
        scores, tokens, tags, offsets = list[Floats](), list[list[str]](), list[list[str]](), list[NDArray[np.int64]]()
        for task, gold in pairs:
            if task.tokens:
                linked = linked_tokens(len(task.tokens), layer.links(task.tokens, task.offsets))
                parser_probabilities = self._parser_probabilities(task.doc)
                scores.append(task.scores(labels, linked, self.noise, parser_probabilities, unchanged=UNCHANGED)[0])
                tokens.append(task.tokens)
                tags.append(tags_from_spans(gold, len(task.tokens)))
                offsets.append(offsets_outside(gold, task.offsets))
        logger.info("%s: learning from %d documents", self.name, len(scores))
        self._use_layer(self._new_layer(labels, Learner(l2=l2)).fit(scores, tokens, tags, offsets))

    def update(
        self, examples: Iterable[Example], *, drop: float = 0.0, sgd: Any = None, losses: dict[str, float] | None = None
    ) -> dict[str, float]:
        """Warn that only `initialize` learns the link tables, unless `initialize` has already been called.

        Args:
            examples: Ignored.
            drop: Ignored.
            sgd: Ignored.
            losses: Losses of the components.

        Returns:
            ``losses``, unchanged.
        """
        if self._trained is None:
            warn_caller(
                f"{self.name}: update does not train; the link tables stay as they are. To learn them, call initialize"
                " with examples whose predicted entities are those of the earlier components"
            )
        return {} if losses is None else losses

    # --- saving -----------------------------------------------------------------------------------------------------

    def _saved_parts(self) -> dict[str, SavedPart]:
        def read(where: Path | io.BytesIO) -> None:
            self._use_layer(SkipChainLayer.load(where))

        return {"layer": SavedPart(lambda: self.layer, read)}
