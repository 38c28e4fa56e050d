"""Skip-chain layer: links between the mentions of a name, added to the scores of any tagger.

Example with an array of scores. The first "Paris" is clearly a person. Without a link, the second one would be a place:

>>> import numpy as np
>>> from herdner import SkipChainLayer
>>> layer = SkipChainLayer(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
>>> words = ["Paris", "sang", ".", "They", "cheered", "Paris", "."]
>>> scores = np.array([[0, 4, 0, 1, 0], *[[4, 0, 0, 0, 0]] * 4, [0, 1, 0, 1.5, 0], [4, 0, 0, 0, 0]], np.float32)
>>> result = layer.apply(scores, words, sentence_offsets=[0, 3, 7])
>>> result.tags
['B-PER', 'O', 'O', 'O', 'O', 'B-PER', 'O']
>>> result.changed.nonzero()[0], result.marginals[5].round(2)
(array([5]), array([0.08, 0.55, 0.  , 0.37, 0.  ]))

Example with a spaCy ``Doc``. A component has stored the scores of its tokens; the entities are written to the ``Doc``:

>>> import spacy
>>> from spacy.tokens import Doc, Span
>>> doc = Doc(spacy.blank("en").vocab, words=words, sent_starts=[True, False, False, True, False, False, False])
>>> doc.user_data["scores"] = scores
>>> offsets = [sentence.start for sentence in doc.sents] + [len(doc)]
>>> result = layer.apply(doc.user_data["scores"], [token.text for token in doc], offsets)
>>> doc.set_ents([Span(doc, *span) for span in result.spans])
>>> [(entity.text, entity.label_) for entity in doc.ents]
[('Paris', 'PER'), ('Paris', 'PER')]

Example with the output of a Hugging Face token classifier, ``model(**tokenizer(words, is_split_into_words=True,
return_tensors="pt"))``: ``logits`` [1, pieces, tags], and the ``word_ids`` of its tokenizer, None for "[CLS]" and
"[SEP]". The score of a word is that of its first piece. If a text is longer than the input of the model, concatenate
the words and scores of all parts first, because links join mentions across the whole document:

>>> id2label = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}  # model.config.id2label
>>> word_ids = [None, 0, 0, 1, 2, 3, 4, 5, 5, 6, None]  # .word_ids(0) of the tokenizer's output
>>> logits = scores[[6, 0, 0, 1, 2, 3, 4, 5, 5, 6, 6]][None]  # .logits.detach().numpy() of the model's output
>>> first = {}
>>> for piece, word in enumerate(word_ids):
...     if word is not None:
...         _ = first.setdefault(word, piece)
>>> layer = SkipChainLayer([id2label[k] for k in range(len(id2label))])
>>> layer.apply(logits[0, list(first.values())], [words[word] for word in first], [0, 3, 7]).tags
['B-PER', 'O', 'O', 'O', 'O', 'B-PER', 'O']
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.estimator import Estimator
from herdner.base.npz import Where
from herdner.base.representation import short_repr
from herdner.base.seeds import child
from herdner.crf.learning import Learner, LearningCurve, LearningStep, ScoreFunction, learn_tables
from herdner.crf.link_rules import RULES, Rule, SameWord, check_links, rule_from_text
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.templates import SkipChain
from herdner.inference import Backend
from herdner.inference.registry import resolve_backend
from herdner.ner.decode import DecodedTags, calibration_inputs, decode
from herdner.ner.inference import DEFAULT_BACKEND
from herdner.ner.model import link_table_to_dict, link_tables_from, parse_bool
from herdner.ner.model_file import LAYER_FORMAT, check_arrays, intact, read_model, write_model
from herdner.ner.scored import (
    ScoredDocument,
    ScoreKind,
    as_tags,
    check_finite,
    check_kind,
    check_offsets,
    check_tag_set,
    check_transition,
    error_prefix,
    gold_tags,
    infer_scheme,
)
from herdner.ner.training.links import development_f1, join_examples
from herdner.text.tags import SCHEMES, Scheme, SentenceOffsets, Span, chunks_from_states, spans_from_tags, split_tag

DEFAULT_RULES = (SameWord(),)
JOINT = Learner(joint=True)


@dataclass(frozen=True, eq=False)
class LayerResult:
    """Result of a `SkipChainLayer` for one document of n tokens.

    Attributes:
        tags: One tag of the layer for each token.
        spans: Entities of these tags. Without prefixes, runs of equal tags other than O.
        marginals: float64[n, K], probability of each tag of each token; columns are in the order of ``tags`` of the
            layer. None if the backend computes no marginals.
        links: int32[F, 2], linked tokens of all rules, the earlier one first, rows ascending.
        changed: bool[n], True where the tag differs from the tag without links.
        confidences: float64[M], for each span the probability of its tags, given the marginals of linked tokens. None
            if the backend computes no marginals.
    """

    tags: list[str]
    spans: list[Span]
    marginals: NDArray[np.float64] | None
    links: NDArray[np.int32]
    changed: NDArray[np.bool_]
    confidences: NDArray[np.float64] | None = None

    __repr__ = short_repr


class SkipChainLayer(Estimator):
    """Skip-chain layer, which adds links between mentions of a name to any tagger that provides token scores.

    The model is a skip-chain CRF (Sutton and McCallum 2004) whose unary log-potentials are the scores. Without training
    it uses soft links of equal strength; `fit` learns the log-potentials of the links from annotated documents. The
    documentation of the module shows the layer with an array, a spaCy ``Doc`` and the output of a Hugging Face model.

    Only `fit` and ``set_params`` change a layer: any number of threads may apply it.

    Args:
        tags: Tags of the columns of scores, in any order: O, B-PER and I-PER, or those of another scheme; or labels
            without prefixes, such as O and PER, with ``constrained=False``.
        rules: Rules that link tokens (`herdner.crf.link_rules`), or their text such as "acronym:nearest=3".
        scores: "log-potentials" (any real numbers, such as logits or log-probabilities) or "marginals" (probabilities).
        link_strength: Log-potential, before `fit`, of a link whose two tokens are in entities of the same label, or are
            both O. Other links have 0. On CoNLL-2003, all values from 0.5 to 2 give about the same F1.
        outside_strength: Log-potential, before `fit`, of a link whose two tokens are both O. None is ``link_strength``.
            Use 0 if the tagger also gives O to tokens about which it is uncertain.
        transition: float64[K, K], log-potentials of a tag (row) followed by a tag (column) in a sentence. None is a
            table of zeros. Use None for scores that include the tagger's own transitions, such as marginals of a CRF.
        constrained: Forbid tag sequences that are not well formed.
        scheme: Tag scheme. None infers it from the tags. Tags with B and I can be IOB1 or IOB2; IOB2 is inferred.
        backend: Name of an inference backend (`herdner.BACKENDS`), or a `Backend`.
        learner: Settings of `fit` (`herdner.crf.learning.Learner`). The default also learns transitions, which
            improve the tags most if the scores do not depend on the tags of neighbouring tokens.

    Attributes:
        classes_: Tags of the trained tables, after `fit` or `load`.
        model_: The trained tables (`SkipChainModel`), after `fit` or `load`.
        learning_curve_: Objective and score of each iteration of `fit` (`LearningCurve`); None if there is neither a
            rule nor a transition to learn.
    """

    def __init__(
        self,
        tags: Sequence[str],
        rules: Sequence[Rule | SkipChain | str] = DEFAULT_RULES,
        *,
        scores: ScoreKind = "log-potentials",
        link_strength: float = 1.0,
        outside_strength: float | None = None,
        transition: ArrayLike | None = None,
        constrained: bool = True,
        scheme: Scheme | None = None,
        backend: str | Backend = DEFAULT_BACKEND,
        learner: Learner = JOINT,
    ) -> None:
        """Store the parameters of the layer, which are checked when the layer is used."""
        self.tags = tags
        self.rules = rules
        self.scores: ScoreKind = scores
        self.link_strength = link_strength
        self.outside_strength = outside_strength
        self.transition = transition
        self.constrained = constrained
        self.scheme: Scheme | None = scheme
        self.backend = backend
        self.learner = learner

    def __setattr__(self, name: str, value: object) -> None:
        """Set a parameter of the layer, and discard the compiled model."""
        super().__setattr__(name, value)
        self.__dict__.pop("_tags_and_model", None)

    # --- inference --------------------------------------------------------------------------------------------------

    def apply(
        self,
        scores: ArrayLike,
        tokens: Sequence[str],
        sentence_offsets: SentenceOffsets | None = None,
        *,
        links: Sequence[NDArray[np.int32]] | None = None,
        seed: int | None = 0,
    ) -> LayerResult:
        """Compute the tags of one document from scores and links.

        Args:
            scores: Numbers [n, K], a row for each token and a column for each tag; -inf forbids a tag.
            tokens: The n tokens as they are written in the text; the default rule reads capitals.
            sentence_offsets: Sentence s has the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``: S + 1 integers
                from 0 to n. None is one sentence.
            links: Links of these tokens, as the method `links` returns them. None computes them.
            seed: Seed of samplers, which start at the best tags of the chain.

        Returns:
            Tags, spans, marginals and links. If no tokens are linked, the tags and marginals equal the tags and
            marginals of the linear chain.

        Raises:
            ValueError: A parameter or an argument is invalid.
        """
        tag_set, model = self._tags_and_model
        document = ScoredDocument.of(scores, tokens, sentence_offsets, len(tag_set), check_kind(self.scores))
        ends = None if links is None else _check_links(model, links, len(document.tokens))
        return _apply(tag_set, model, resolve_backend(self.backend), document, child(seed, 0), ends)

    def links(
        self, tokens: Sequence[str], sentence_offsets: SentenceOffsets | None = None
    ) -> tuple[NDArray[np.int32], ...]:
        """Return the linked tokens of a document, one array for each link rule.

        Args:
            tokens: The n tokens of the document.
            sentence_offsets: First token of each sentence, and n. None is one sentence.

        Returns:
            For each rule int32[F, 2], the earlier token first.
        """
        tokens, offsets = list(tokens), check_offsets(sentence_offsets, len(tokens))
        return tuple(each.template.links(tokens, offsets) for each in self._tags_and_model[1].link_tables)

    def predict(
        self,
        scores: Sequence[ArrayLike],
        tokens: Sequence[Sequence[str]],
        sentence_offsets: Sequence[SentenceOffsets] | None = None,
        *,
        seed: int | None = 0,
    ) -> list[list[str]]:
        """Compute the tags of several documents from scores; the layer finds the links.

        Args:
            scores: Scores of each document, as in `apply`.
            tokens: Tokens of each document.
            sentence_offsets: Sentence offsets of each document. None: each document is one sentence.
            seed: Seed of samplers; document i uses the i-th child of the seed.

        Returns:
            One list of tags for each document.

        Raises:
            ValueError: A parameter or a document is invalid.
        """
        tag_set, model = self._tags_and_model
        backend = resolve_backend(self.backend)
        documents = self._documents(tag_set, scores, tokens, sentence_offsets)
        return [_apply(tag_set, model, backend, each, child(seed, i)).tags for i, each in enumerate(documents)]

    @cached_property
    def _tags_and_model(self) -> tuple[tuple[str, ...], SkipChainModel]:
        """Tags and skip-chain model of the layer, as trained by `fit`; the initial ones if `fit` was not called.

        The value is cached until any attribute of the layer is set.
        """
        if not hasattr(self, "model_"):
            return self._initial()
        if check_tag_set(self.tags) != self.classes_:
            raise ValueError("`tags` has changed since this layer was trained; call `fit` again")
        return self.classes_, self.model_

    def _initial(self) -> tuple[tuple[str, ...], SkipChainModel]:
        """Build the initial model, whose links all have equal strength."""
        tag_set = check_tag_set(self.tags)
        inside = check_finite("link_strength", self.link_strength)
        outside = check_finite("outside_strength", self.outside_strength, self.link_strength)
        labels = np.array([split_tag(tag)[1] for tag in as_tags(tag_set)])
        table = np.where(labels == "", outside, inside) * (labels[:, None] == labels)
        tables = [LinkTable(each, table) for each in _templates(self.rules)]
        transition = check_transition(self.transition, len(tag_set))
        return tag_set, SkipChainModel.for_tags(tag_set, self._scheme(tag_set), transition, tuple(tables))

    def _scheme(self, tag_set: tuple[str, ...]) -> Scheme | None:
        """Return the tag scheme that all tag sequences must follow; return None if any sequence is allowed."""
        if self.scheme is not None and self.scheme not in SCHEMES:
            raise ValueError(f"unknown tag scheme {self.scheme!r}; expected one of {', '.join(SCHEMES)}")
        if not self.constrained:
            return None
        scheme = infer_scheme(tag_set)
        return self.scheme or scheme

    def _documents(
        self,
        tag_set: tuple[str, ...],
        scores: Sequence[ArrayLike],
        tokens: Sequence[Sequence[str]],
        sentence_offsets: Sequence[SentenceOffsets] | None,
    ) -> Iterator[ScoredDocument]:
        """Check the scores, tokens and sentence offsets of each document, and yield a `ScoredDocument` for each."""
        kind = check_kind(self.scores)
        offsets = [None] * len(tokens) if sentence_offsets is None else sentence_offsets
        if not len(scores) == len(tokens) == len(offsets):
            raise ValueError(
                "scores, tokens and sentence_offsets must have one item for each document, got"
                f" {len(scores)}, {len(tokens)} and {len(offsets)} items"
            )
        for i, document in enumerate(zip(scores, tokens, offsets, strict=True)):
            with error_prefix(f"document {i}"):
                yield ScoredDocument.of(*document, len(tag_set), kind)

    # --- training ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        scores: Sequence[ArrayLike],
        tokens: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
        sentence_offsets: Sequence[SentenceOffsets] | None = None,
        *,
        development: tuple[Any, ...] | None = None,
        progress: Callable[[LearningStep], None] | None = None,
        seed: int = 0,
    ) -> SkipChainLayer:
        """Learn the link tables from annotated documents; also learn the transition table if ``learner.joint`` is True.

        The tagger must not have been trained on these documents: use scores on held-out documents, such as scores from
        a cross-validation. A tagger is more confident and more accurate on its training documents than on other
        documents. Links hardly improve the tags of training documents, so the learned log-potentials would be too
        small.

        Tags that do not occur in the documents become unlikely at linked tokens. The table of a rule that finds no
        link in the documents becomes 0.

        Args:
            scores: Scores of each document, as in `apply`.
            tokens: Tokens of each document.
            tags: Gold tags of each document: those of the layer or, if constrained, tags of any scheme.
            sentence_offsets: Sentence offsets of each document. None: each document is one sentence.
            development: Other documents as ``(scores, tokens, tags)`` or ``(scores, tokens, tags, sentence_offsets)``.
                The result is then the tables of the iteration with the best F1 on these documents.
            progress: Called after each iteration.
            seed: Seed of the random numbers.

        Returns:
            The layer itself.

        Raises:
            ValueError: A parameter or a document is invalid, or a gold tag has the score -inf.
        """
        tag_set, model = self._initial()
        documents, gold = self._check_annotated(tag_set, scores, tokens, tags, sentence_offsets)
        if not any(document.tokens for document in documents):
            raise ValueError("the training documents have no tokens; give documents with tokens")
        index = {tag: k for k, tag in enumerate(tag_set)}
        states = [np.array([index[tag] for tag in sequence], np.int32) for sequence in gold]
        for i, (document, own) in enumerate(zip(documents, states, strict=True)):
            forbidden = document.unary[np.arange(len(own)), own] == -np.inf
            if forbidden.any():
                t = int(forbidden.argmax())
                raise ValueError(
                    f"document {i}: the gold tag {gold[i][t]!r} of token {t} has the score -inf; correct the tag or"
                    " the score"
                )
        score = None if development is None else self._development(tag_set, development)
        examples, curve = join_examples(model, documents, [document.unary for document in documents], states), None
        if model.link_tables or self.learner.joint:
            model, curve = learn_tables(model, examples, self.learner, score=score, seed=seed, progress=progress)
        self.classes_, self.model_ = tag_set, model
        self.learning_curve_: LearningCurve | None = curve
        return self

    def _development(self, tag_set: tuple[str, ...], development: object) -> ScoreFunction:
        parts = cast(tuple[Any, ...], development) if isinstance(development, tuple) else ()
        if len(parts) not in (3, 4):
            raise ValueError("development must be (scores, tokens, tags) or (scores, tokens, tags, sentence_offsets)")
        documents, gold = self._check_annotated(tag_set, *parts, *[None] * (4 - len(parts)))
        tag_of = dict(zip(tag_set, as_tags(tag_set), strict=True))
        spans = [
            spans_from_tags([tag_of[tag] for tag in sequence], document.sentence_offsets)
            for document, sequence in zip(documents, gold, strict=True)
        ]
        unaries = [document.unary for document in documents]
        return development_f1(list(tag_of.values()), documents, unaries, spans, resolve_backend(self.backend))

    def _check_annotated(
        self,
        tag_set: tuple[str, ...],
        scores: Sequence[ArrayLike],
        tokens: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
        sentence_offsets: Sequence[SentenceOffsets] | None,
    ) -> tuple[list[ScoredDocument], list[list[str]]]:
        """Check annotated documents, and return the documents and their gold tags."""
        scheme = self._scheme(tag_set)
        documents = list(self._documents(tag_set, scores, tokens, sentence_offsets))
        if len(tags) != len(documents):
            raise ValueError(f"tags must have one sequence for each of {len(documents)} documents, got {len(tags)}")
        gold: list[list[str]] = []
        for i, (document, sequence) in enumerate(zip(documents, tags, strict=True)):
            with error_prefix(f"document {i}"):
                gold.append(gold_tags(tag_set, sequence, document, scheme))
        return documents, gold

    # --- files ------------------------------------------------------------------------------------------------------

    def save(self, where: Where) -> None:
        """Write the tags, rules and tables of the layer to a stream or a file.

        A file is written atomically. The backend and the learner are not stored.

        Args:
            where: Path or binary stream.

        Raises:
            ValueError: A rule is not one of `herdner.crf.link_rules`, or `load` would refuse the layer, for example
                because it has too many tags for its links.
        """
        tag_set, model = self._tags_and_model
        for each in model.link_tables:
            rule = each.template.rule
            if type(rule) not in RULES.values():
                raise ValueError(f"{rule!r:.80} cannot be stored in a file; use only the rules {', '.join(RULES)}")
        header = {
            "tags": list(tag_set), "scores": check_kind(self.scores), "link_strength": self.link_strength,
            "outside_strength": self.outside_strength, "scheme": self.scheme, "constrained": bool(self.constrained),
            "links": [link_table_to_dict(each) for each in model.link_tables],
        }  # fmt: skip
        arrays = {"transition": model.transition}
        if model.link_tables:
            arrays["link_tables"] = np.stack([each.table for each in model.link_tables])
        # Raises for what `load` refuses.
        self._of_file(json.loads(json.dumps(header)), arrays, self.backend, self.learner)
        write_model(where, header, arrays, LAYER_FORMAT)

    @classmethod
    def load(
        cls, where: Where, *, backend: str | Backend = DEFAULT_BACKEND, learner: Learner = JOINT
    ) -> SkipChainLayer:
        """Read a layer from a file or a binary stream to which `save` has written it.

        Args:
            where: Path or binary stream.
            backend: Name of an inference backend, or a `Backend`.
            learner: Settings of `fit`.

        Returns:
            The layer.

        Raises:
            ModelError: The file is missing, damaged or not a layer.
        """
        file = read_model(where, LAYER_FORMAT)
        with intact(where, "layer", "save"):
            return cls._of_file(file.header, file.arrays, backend, learner)

    @classmethod
    def _of_file(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], backend: str | Backend, learner: Learner
    ) -> SkipChainLayer:
        """Build a layer from the header and the arrays of a file, and check them."""
        forbidden = np.isneginf(arrays["transition"])
        finite = {**arrays, "transition": np.where(forbidden, 0.0, arrays["transition"])}
        check_arrays(finite, {"transition": ("<f8", 2), "link_tables": ("<f8", 3)})
        tag_set = check_tag_set(header["tags"])
        link_tables = link_tables_from(header["links"], arrays, len(tag_set))
        layer = cls(
            tag_set, tuple(each.template for each in link_tables), scores=check_kind(header["scores"]),
            link_strength=header["link_strength"], outside_strength=header["outside_strength"],
            transition=arrays["transition"], scheme=header["scheme"],
            constrained=parse_bool(header["constrained"], "constrained"), backend=backend, learner=learner,
        )  # fmt: skip
        _, model = layer._initial()
        layer.classes_, layer.model_ = tag_set, replace(model, link_tables=link_tables)
        return layer


def _apply(
    tag_set: tuple[str, ...],
    model: SkipChainModel,
    backend: Backend,
    document: ScoredDocument,
    rng: np.random.Generator,
    ends: Sequence[NDArray[np.int32]] | None = None,
) -> LayerResult:
    """Tag one checked document with the links ``ends``; if ``ends`` is None, the model finds the links."""
    unary, tokens, offsets = document
    if not tokens:
        return LayerResult([], [], unary, np.empty((0, 2), np.int32), np.zeros(0, np.bool_), np.zeros(0))
    links = model.links(tokens, offsets) if ends is None else ends
    chain_states = model.best_chain(unary, offsets)
    pairs = np.concatenate([np.empty((0, 2), np.int32), *links])
    if len(pairs):
        pairs = np.unique(pairs, axis=0)
        decoded = decode(model, unary, offsets, links, backend, rng)
    else:
        decoded = DecodedTags(chain_states, model.chain_marginals(unary, offsets))
    chunks, confidences = chunks_from_states(decoded.states, tuple(as_tags(tag_set)), offsets), None
    if decoded.marginals is not None:
        confidences = calibration_inputs(model, unary, offsets, links, decoded, chunks).confidence
    states: list[int] = decoded.states.tolist()
    tags, changed = [tag_set[state] for state in states], decoded.states != chain_states
    return LayerResult(tags, chunks.spans(), decoded.marginals, pairs, changed, confidences)


def _check_links(model: SkipChainModel, links: Sequence[ArrayLike], n_tokens: int) -> list[NDArray[np.int32]]:
    """Check links that a user provides, and return one array for each link rule."""
    tables = model.link_tables
    if len(links) != len(tables):
        raise ValueError(f"links must have one array for each of the {len(tables)} rules, got {len(links)}")
    return [check_links(ends, n_tokens, f"rule {each.template.name}") for each, ends in zip(tables, links, strict=True)]


def _templates(rules: object) -> list[SkipChain]:
    """Return one link template for each rule in ``rules``; raise `ValueError` if a rule is invalid."""
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        raise ValueError(f"rules must be a list such as [SameWord()] or ['same-word'], got {rules!r:.80}")
    templates: list[SkipChain] = []
    for rule in cast(Sequence[object], rules):
        if isinstance(rule, str):
            rule = rule_from_text(rule)
        if isinstance(rule, type) or not isinstance(rule, SkipChain | Rule):
            raise ValueError(
                f"a rule must be an object such as SameWord() or a string such as 'same-word', got {rule!r:.80}"
            )
        templates.append(rule if isinstance(rule, SkipChain) else SkipChain(rule))
    return templates
