"""The component ``herdner_consistency``: entities of the components before it, made consistent across the ``Doc``.

>>> import spacy
>>> nlp = spacy.blank("en")
>>> ruler = nlp.add_pipe("entity_ruler")
>>> ruler.add_patterns([{"label": "PERSON", "pattern": "Ada Lovelace"}])
>>> _ = nlp.add_pipe("herdner_consistency")
>>> doc = nlp("Ada Lovelace wrote. So Lovelace knew, and Lovelace said it.")
>>> [(entity.text, entity.label_) for entity in doc.ents]
[('Ada Lovelace', 'PERSON'), ('Lovelace', 'PERSON'), ('Lovelace', 'PERSON')]
"""

# spaCy has types in parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from herdner.base.seeds import child
from herdner.crf.learning import Learner
from herdner.crf.link_rules import rule_from_text
from herdner.integrations.spacy.common import (
    EXTENSION,
    annotated,
    blocked_tokens,
    configured_backend,
    named,
    register_extension,
    require_herdner,
)
from herdner.integrations.spacy.evidence import OVERLAPS, Evidence, ask, entities_of, group_of, parser_before
from herdner.integrations.spacy.pipe import SCORES, WRITES, EntityPipe
from herdner.integrations.spacy.span_scores import Trust, tags_of
from herdner.integrations.spacy.task import (
    CERTAIN,
    Asking,
    Predicted,
    Task,
    borders_outside,
    classes_of,
    linked_tokens,
    merged,
    unchanged,
)
from herdner.ner.inference import DEFAULT_BACKEND
from herdner.ner.layer import SkipChainLayer
from herdner.ner.model_file import ModelError
from herdner.text.tags import Span, tags_from_spans

RULES = ("same-word", "last-name", "acronym")
# OntoNotes' numbers and times: no names, their words mean something else each time.
LEAVE_ALONE = ("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME")
# Log-potential of a link whose ends have the same label: found with the defaults of `Trust`.
TIE = 1.0
MOST_LAYERS = 256  # of sets of labels, kept ready
DEFAULT_CONFIG = {
    "rules": list(RULES),
    "layer": None,
    "backend": None,
    "leave_alone": list(LEAVE_ALONE),
    "ask_ner": True,
    "drop": True,
    "spans_key": None,
    "scores_key": "scores",
    "overlaps": "error",
    "seed": 0,
    "scorer": {"@scorers": "spacy.ner_scorer.v1"},
}


class HerdnerConsistency(EntityPipe):
    """Links the mentions of one name in a ``Doc`` together, whoever has found its entities.

    A mention that was missed is added, and one whose label is not that of the others changes it, where the links to
    other mentions are stronger than what speaks for it (`herdner.SkipChainLayer`). What is linked to nothing stays.

    Args:
        rules: Which tokens are linked, as in `herdner.crf.link_rules.rule_from_text`.
        layer: File of a learned `SkipChainLayer` whose tags are O and B and I of labels; it has its own rules. None
            works for any labels.
        backend: Name of an inference backend, or a mapping of its "name" and options.
        leave_alone: Labels of entities that are no names; they stay as they are.
        ask_ner: Ask the spaCy ``ner`` before the component how sure it was of each of its decisions, which costs as
            much time again as ``ner`` itself. Otherwise, and for entities of others without a score, ``Trust`` says how
            far they are believed.
        drop: False keeps all entities; by default one that its links speak against can go.
        spans_key: Read and write ``doc.spans[spans_key]``, scores in its ``attrs[scores_key]``, as ``spancat`` does;
            None reads and writes ``doc.ents``, where ``ent._.confidence`` has the score.
        overlaps: "error", or "best" to keep the surest (without scores: longest) of overlapping spans in the group.
        seed: Of samplers, the same for each ``Doc``: nothing depends on other documents or the batch size.
    """

    part = "layer"

    def __init__(
        self,
        nlp: Language,
        name: str = "herdner_consistency",
        *,
        rules: Sequence[str] = RULES,
        layer: str | None = None,
        backend: str | Mapping[str, Any] | None = None,
        leave_alone: Sequence[str] = LEAVE_ALONE,
        ask_ner: bool = True,
        drop: bool = True,
        spans_key: str | None = None,
        scores_key: str = "scores",
        overlaps: str = "error",
        seed: int = 0,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        self.nlp, self.vocab, self.name = nlp, nlp.vocab, name
        self.leave_alone, self.ask_ner, self.scores_key, self.overlaps = (
            frozenset(leave_alone), ask_ner, scores_key, overlaps,
        )  # fmt: skip
        self.seed, self.scorer, self.drop = seed, scorer, drop
        self.trust, self.tie = Trust(), TIE
        self.cfg = {"spans_key": spans_key}  # where spaCy's scorers look for it
        self._named_layer = layer
        self._trained: SkipChainLayer | None = None
        self._ready: dict[tuple[str, ...], SkipChainLayer] = {}
        register_extension()
        with named(name):
            if overlaps not in OVERLAPS:
                raise ValueError(f"overlaps must be one of {', '.join(OVERLAPS)}, not {overlaps!r:.80}")
            child(seed, 0)
            self.rules = [rule_from_text(rule) for rule in rules]
            self._backend = configured_backend(backend) or DEFAULT_BACKEND
            if layer is not None and os.path.exists(layer):  # noqa: PTH110 (False for what can be no path)
                self._take(SkipChainLayer.load(layer))

    # --- entities ---------------------------------------------------------------------------------------------------

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[Predicted]) -> None:
        """Write what ``predict`` has found to where the entities came from. Spans that stay keep their ids."""
        for doc, (spans, confidences, before) in zip(docs, predictions, strict=True):
            found = [
                old or DocSpan(doc, span.start, span.end, label=span.label)
                for span, old in zip(spans, before, strict=True)
            ]
            if self.spans_key is not None:
                attrs = dict(doc.spans[self.spans_key].attrs)
                attrs[self.scores_key] = np.array(
                    [np.nan if each is None else each for each in confidences], np.float64
                )
                doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=found, attrs=attrs)
                continue
            doc.set_ents(found, blocked=blocked_tokens(doc))
            if register_extension():
                for span, confidence in zip(found, confidences, strict=True):
                    span._.set(EXTENSION, confidence)

    def _predicted(self, docs: Sequence[Doc]) -> list[Predicted]:
        return list(map(self._consistent, docs))

    def _consistent(self, doc: Doc) -> Predicted:
        evidence = self._evidence(doc)
        task = Task.of(doc, evidence, self.leave_alone, None if self.layer is None else classes_of(self.layer))
        if not task.names:
            return unchanged(evidence)
        layer = self._layer(task)
        links = layer.links(task.tokens, task.offsets)
        linked = linked_tokens(len(task.tokens), links)
        if not linked.any():
            return unchanged(evidence)
        scores, sure = task.scores(evidence, classes_of(layer), linked, self.trust, self._asking(doc), drop=self.drop)
        result = layer.apply(scores, task.tokens, task.offsets, links=links, seed=self.seed)
        confidences = [None] * len(result.spans) if result.confidences is None else result.confidences.tolist()
        return merged(task, evidence, result.spans, confidences, linked, sure)

    def _evidence(self, doc: Doc) -> Evidence:
        if self.spans_key is None:
            return entities_of(doc)
        return group_of(doc, self.spans_key, self.scores_key, self.overlaps)

    def _asking(self, doc: Doc) -> Asking | None:
        """What asks the ``ner`` before this component about a ``Doc``; None where none is asked."""
        parser = parser_before(self.nlp, self) if self.ask_ner and self.spans_key is None else None
        return None if parser is None else partial(ask, parser, doc)

    # --- what it knows ----------------------------------------------------------------------------------------------

    @property
    def layer(self) -> SkipChainLayer | None:
        """The layer that was learned or read; None where the defaults are at work. `ModelError` for a missing file."""
        if self._trained is None and self._named_layer is not None:
            with named(self.name):
                if not os.path.exists(self._named_layer):  # noqa: PTH110
                    raise ModelError(
                        f"there is no layer file {self._named_layer}: give the path of one that SkipChainLayer.save"
                        " wrote, or null in its config to go without"
                    )
                self._take(SkipChainLayer.load(self._named_layer))
        return self._trained

    def _take(self, layer: SkipChainLayer) -> None:
        if list(layer.labels) != tags_of(classes_of(layer)) or layer.scores != "log-potentials":
            raise ModelError(
                "the labels of its layer must be O and then B- and I- of each label, as in"
                ' ["O", "B-PER", "I-PER"], and its scores log-potentials: learn it by initialize'
            )
        layer.backend = self._backend
        self._trained = layer
        for label in classes_of(layer):
            self.vocab.strings.add(label)  # now: a memory zone would forget a label that comes with an entity

    def _layer(self, task: Task) -> SkipChainLayer:
        return self.layer or self._default(tuple(sorted({span.label for span in task.names})))

    def _default(self, labels: tuple[str, ...]) -> SkipChainLayer:
        """The layer of these labels before anything is learned."""
        if labels not in self._ready:
            if len(self._ready) >= MOST_LAYERS:
                self._ready = {}
            self._ready[labels] = SkipChainLayer(
                tags_of(labels), self.rules, tie=self.tie, tie_outside=0.0, backend=self._backend, learner=Learner()
            )
        return self._ready[labels]

    # --- learning ---------------------------------------------------------------------------------------------------

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        learn: bool = True,
        l2: float = 2.0,
    ) -> None:
        """Learn the tables of the links from examples: what ``predicted`` holds against the entities of ``reference``.

        A ``predicted`` without entities gets them from the components before this one, but for those that are being
        trained themselves, which know nothing yet. So in ``spacy train`` the tables are learned if the component that
        finds entities is frozen or sourced; otherwise they stay what they are, and can be learned afterwards, as in
        ``component.initialize(lambda: [Example(nlp(text), reference), ...])``, with this component disabled. The
        examples should be none that the components before were trained on.

        Args:
            learn: False keeps the tables.
            l2: See `herdner.crf.learning.Learner`.
        """
        if not learn or self._named_layer is not None:
            return
        before = [] if nlp is None else self._trained_before(nlp)
        with named(self.name):
            pairs = [pair for example in get_examples() if (pair := self._pair(example, before)) is not None]
            labels = {span.label for _, _, task, gold in pairs for span in (*task.names, *gold)}
            if not any(task.names for _, _, task, _ in pairs) or not any(gold for *_, gold in pairs):
                logger.info(
                    "%s: no example with entities by a trained component; the tables stay as they are", self.name
                )
                return
            self._learn(pairs, tuple(sorted(labels - self.leave_alone)), l2)

    def _trained_before(self, nlp: Language) -> list[Callable[[Doc], Doc]]:
        """The components before this one in the pipeline that can be run while it is initialised."""
        found: list[Callable[[Doc], Doc]] = []
        for name, pipe in nlp.components:
            if pipe is self:
                return found
            if name in nlp.disabled or not getattr(pipe, "is_trainable", False):
                found.append(pipe)
        return []

    def _pair(
        self, example: Example, before: Sequence[Callable[[Doc], Doc]]
    ) -> tuple[Doc, Evidence, Task, list[Span]] | None:
        """A ``Doc``, what was found in it, and its right names over the document's tokens."""
        doc, key = example.predicted, self.spans_key
        if not (doc.has_annotation("ENT_IOB") if key is None else key in doc.spans):
            doc = doc.copy()
            for pipe in before:
                doc = pipe(doc)
            if not (doc.has_annotation("ENT_IOB") if key is None else key in doc.spans):
                return None
        evidence = self._evidence(doc)
        task = Task.of(doc, evidence, self.leave_alone, None)
        reference = example.reference
        right = reference.ents if key is None else reference.spans.get(key, ())
        gold: list[Span] = []
        for span in example.get_aligned_spans_y2x(list(right), allow_overlap=False):
            start, end = task.aligned.in_document(span.start, span.end)
            if start < end and span.label_ not in self.leave_alone and not task.hidden[start:end].any():
                gold.append(Span(start, end, span.label_))
        return doc, evidence, task, gold

    def _learn(
        self, pairs: Sequence[tuple[Doc, Evidence, Task, list[Span]]], labels: tuple[str, ...], l2: float
    ) -> None:
        layer = self._default(labels)
        scores, tokens, tags, offsets = list[Floats](), list[list[str]](), list[list[str]](), list[NDArray[np.int64]]()
        for doc, evidence, task, gold in pairs:
            if task.tokens:
                linked = linked_tokens(len(task.tokens), layer.links(task.tokens, task.offsets))
                scores.append(
                    task.scores(evidence, labels, linked, self.trust, self._asking(doc), otherwise=CERTAIN)[0]
                )
                tokens.append(task.tokens)
                tags.append(tags_from_spans(gold, len(task.tokens)))
                offsets.append(borders_outside(gold, task.offsets))
        logger.info("%s: learning from %d documents", self.name, len(scores))
        layer = SkipChainLayer(tags_of(labels), self.rules, tie=self.tie, tie_outside=0.0, learner=Learner(l2=l2))
        self._take(layer.fit(scores, tokens, tags, offsets))

    # --- saving -----------------------------------------------------------------------------------------------------

    def _saved(self) -> SkipChainLayer | None:
        return self.layer

    def _load(self, where: Path | io.BytesIO) -> None:
        self._take(SkipChainLayer.load(where))


@Language.factory(  # pyright: ignore[reportUnknownMemberType, reportUntypedFunctionDecorator]
    "herdner_consistency",
    requires=["doc.ents"],
    assigns=WRITES,
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORES,
)
@annotated
def make_consistency(
    nlp: Language,
    name: str,
    rules: list[str],
    layer: str | None,
    backend: str | dict[str, Any] | None,
    leave_alone: list[str],
    ask_ner: bool,
    drop: bool,
    spans_key: str | None,
    scores_key: str,
    overlaps: str,
    seed: int,
    scorer: Callable[..., dict[str, Any]] | None,
) -> HerdnerConsistency:
    """The factory ``herdner_consistency``; its arguments are those of `HerdnerConsistency`."""
    require_herdner(nlp)
    return HerdnerConsistency(
        nlp, name, rules=rules, layer=layer, backend=backend, leave_alone=leave_alone, ask_ner=ask_ner, drop=drop,
        spans_key=spans_key, scores_key=scores_key, overlaps=overlaps, seed=seed, scorer=scorer,
    )  # fmt: skip
