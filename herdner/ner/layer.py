"""The skip chain on top of any tagger: its scores of a document's tokens in, tags that agree with each other out.

An array of scores, of whatever tagger. The second "Paris" alone looks like a place; the first says that it is a person:

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

A spaCy ``Doc`` whose tokens a component has scored. The entities come back into the ``Doc``:

>>> import spacy
>>> from spacy.tokens import Doc, Span
>>> doc = Doc(spacy.blank("en").vocab, words=words, sent_starts=[True, False, False, True, False, False, False])
>>> doc.user_data["scores"] = scores
>>> offsets = [sentence.start for sentence in doc.sents] + [len(doc)]
>>> result = layer.apply(doc.user_data["scores"], [token.text for token in doc], offsets)
>>> doc.set_ents([Span(doc, *span) for span in result.spans])
>>> [(entity.text, entity.label_) for entity in doc.ents]
[('Paris', 'PER'), ('Paris', 'PER')]

The output of a Hugging Face token classifier, ``model(**tokenizer(words, is_split_into_words=True,
return_tensors="pt"))``: ``logits`` [1, pieces, labels], and the ``word_ids`` of its tokenizer, None for "[CLS]" and
"[SEP]". A word is scored by its first piece. Of a text longer than the model reads, join the words and scores of all
parts first, as names are linked across a whole document:

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

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.estimator import Estimator
from herdner.base.seeds import child
from herdner.crf.learning import Learner, LearningCurve, LearningStep, ScoreFunction, learn_tables
from herdner.crf.link_rules import RULES, Rule, SameWord, checked_links, rule_from_text
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.templates import SkipChain
from herdner.inference import Backend
from herdner.ner.decode import Decoded, decode, span_confidences
from herdner.ner.inference import DEFAULT_BACKEND, resolve_backend
from herdner.ner.model import link_table_to_dict, link_tables_from, truth
from herdner.ner.model_file import LAYER_FORMAT, check_arrays, read_model, undamaged, write_model
from herdner.ner.scored import (
    Scored,
    ScoreKind,
    among,
    as_tags,
    checked_kind,
    checked_labels,
    checked_offsets,
    finite,
    named,
    scheme_of,
    transition_table,
)
from herdner.ner.training.development import development_f1
from herdner.ner.training.links import gather
from herdner.text.tags import (
    SCHEMES,
    Scheme,
    SentenceOffsets,
    Span,
    chunks_from_states,
    spans_from_tags,
    split_tag,
)

DEFAULT_RULES = (SameWord(),)
JOINT = Learner(joint=True)


@dataclass(frozen=True, eq=False)
class Consistent:
    """The tags of one document of n tokens.

    Attributes:
        tags: One of the layer's labels for each token.
        spans: The entities that they say; of plain labels, runs of one.
        marginals: float64[n, K], P(token = label), columns as in ``labels``; None where the backend gives none.
        confidences: float64[M], for each span the probability of the tags of its tokens, given what is believed of
            those that they are linked to; None where the backend gives no marginals.
        links: int32[F, 2], the linked tokens of all rules, the earlier one first, rows ascending.
        changed: bool[n], whether the tag is another than without links.
    """

    tags: list[str]
    spans: list[Span]
    marginals: NDArray[np.float64] | None
    links: NDArray[np.int32]
    changed: NDArray[np.bool_]
    confidences: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Learned:
    """The tied tables, and the labels that they are of."""

    labels: tuple[str, ...]
    crf: SkipChainModel


class SkipChainLayer(Estimator):
    """Links the mentions of one name in a document together, whichever tagger scored their tokens.

    A skip-chain CRF (Sutton and McCallum 2004) whose log-potentials of single tokens are the scores of another tagger.
    It works as it is, with a soft link, and better after `fit`. The module's documentation shows it on an array, a
    spaCy ``Doc`` and the output of a Hugging Face model.

    Nothing but `fit` and ``set_params`` changes a layer: any number of threads may apply one.

    Args:
        labels: What the columns of scores are: tags of any scheme, such as O, B-PER and I-PER, in any order; or plain
            labels, with ``constrained=False``.
        rules: Which tokens are linked: rules (`herdner.crf.link_rules`), their text such as "acronym:nearest=3", or
        scores: "log-potentials" (any real numbers, the larger the likelier: logits, log-probabilities), or "marginals"
            (probabilities of a token's labels).
        tie: Before `fit`, the log-potential of a link whose ends have the same class: both in a PER, or both O; other
            links have 0. 1 is a good guess: between 0.5 and 2, F1 on CoNLL-2003 hardly depends on it.
        tie_outside: Before `fit`, the log-potential of a link whose ends are both O; None is that of ``tie``. 0 for
            scores that say O wherever they say nothing.
        transition: float64[K, K], log-potentials of a label (row) followed by a label (column) in a sentence; None is
            0. Not for scores in which the tagger's own transitions are counted already, as in marginals of a CRF.
        constrained: Forbid sequences of tags that are not well formed.
        scheme: Of the tags; None reads it off the labels. Where B and I are the only prefixes that is IOB2; taggers of
            IOB1, in which most names begin with I, must say "iob1".
        backend: Name of the inference backend (`herdner.BACKENDS`), or a `Backend`.
        learner: How `fit` learns (`herdner.crf.learning.Learner`), by default the transitions too: of scores that know
            nothing of the neighbours' labels that is most of the gain.

    Attributes:
        learned_: The tied tables (`Learned`), after `fit` or `load`.
        learning_curve_: How they were learned, after `fit`.
    """

    def __init__(
        self,
        labels: Sequence[str],
        rules: Sequence[Rule | SkipChain | str] = DEFAULT_RULES,
        *,
        scores: ScoreKind = "log-potentials",
        tie: float = 1.0,
        tie_outside: float | None = None,
        transition: ArrayLike | None = None,
        constrained: bool = True,
        scheme: Scheme | None = None,
        backend: str | Backend = DEFAULT_BACKEND,
        learner: Learner = JOINT,
    ) -> None:
        self.labels = labels
        self.rules = rules
        self.scores: ScoreKind = scores
        self.tie = tie
        self.tie_outside = tie_outside
        self.transition = transition
        self.constrained = constrained
        self.scheme: Scheme | None = scheme
        self.backend = backend
        self.learner = learner

    # --- tags out ---------------------------------------------------------------------------------------------------

    def apply(
        self,
        scores: ArrayLike,
        tokens: Sequence[str],
        sentence_offsets: SentenceOffsets | None = None,
        *,
        links: Sequence[NDArray[np.int32]] | None = None,
        seed: int | None = 0,
    ) -> Consistent:
        """The consistent tags of one document.

        Where nothing is linked the answer is that of the chains.

        Args:
            scores: float[n, K] of any precision, a row for each token and a column for each label; -inf forbids a
                label.
            tokens: The n words as they stand in the text, with their capitals.
            sentence_offsets: Sentence s holds the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``, S + 1 numbers
                from 0 to n; None is one sentence.
            links: What `links` has found in these tokens, to save finding it again.
            seed: Matters to samplers only, which begin with the best tags of the chains.

        Raises:
            ValueError: Something is wrong; one line says what.
        """
        labels, crf = self._tables()
        document = Scored.of(scores, tokens, sentence_offsets, len(labels), checked_kind(self.scores))
        known = None if links is None else _checked_links(crf, links, len(document.tokens))
        return _consistent(labels, crf, resolve_backend(self.backend), document, child(seed, 0), known)

    def links(
        self, tokens: Sequence[str], sentence_offsets: SentenceOffsets | None = None
    ) -> tuple[NDArray[np.int32], ...]:
        """For each rule int32[F, 2]: the tokens of a document that it links, the earlier one first."""
        tokens, offsets = list(tokens), checked_offsets(sentence_offsets, len(tokens))
        return tuple(each.template.links(tokens, offsets) for each in self._tables()[1].link_tables)

    def predict(
        self,
        scores: Sequence[ArrayLike],
        tokens: Sequence[Sequence[str]],
        sentence_offsets: Sequence[SentenceOffsets] | None = None,
        *,
        seed: int | None = 0,
    ) -> list[list[str]]:
        """The consistent tags of several documents, arguments as lists of those of `apply`.

        Document i draws its random numbers from the i-th child of ``seed``.
        """
        labels, crf = self._tables()
        backend = resolve_backend(self.backend)
        documents = self._scored(labels, scores, tokens, sentence_offsets)
        return [_consistent(labels, crf, backend, each, child(seed, i)).tags for i, each in enumerate(documents)]

    def _tables(self) -> tuple[tuple[str, ...], SkipChainModel]:
        """Labels, and the learned CRF or else the one that can be had without."""
        learned: Learned | None = getattr(self, "learned_", None)
        if learned is None:
            return self._untrained()
        if checked_labels(self.labels) != learned.labels:
            raise ValueError("the labels are not those that this layer has learned from: call fit again")
        return learned.labels, learned.crf

    def _untrained(self) -> tuple[tuple[str, ...], SkipChainModel]:
        labels = checked_labels(self.labels)
        tie, outside = finite("tie", self.tie), finite("tie_outside", self.tie_outside, self.tie)
        names = np.array([split_tag(label)[1] for label in as_tags(labels)])
        table = np.where(names == "", outside, tie) * (names[:, None] == names)
        tables = [LinkTable(each, table) for each in _templates(self.rules)]
        transition = transition_table(self.transition, len(labels))
        return labels, SkipChainModel.for_tags(labels, self._scheme(labels), transition, tuple(tables))

    def _scheme(self, labels: tuple[str, ...]) -> Scheme | None:
        """The scheme whose sequences are well formed; None where anything goes."""
        if self.scheme is not None and self.scheme not in SCHEMES:
            raise ValueError(f"unknown tag scheme {self.scheme!r}; known are {', '.join(SCHEMES)}")
        if not self.constrained:
            return None
        found = scheme_of(labels)
        return self.scheme or found

    def _scored(
        self,
        labels: tuple[str, ...],
        scores: Sequence[ArrayLike],
        tokens: Sequence[Sequence[str]],
        sentence_offsets: Sequence[SentenceOffsets] | None,
    ) -> Iterator[Scored]:
        """Several documents, checked as they are asked for."""
        kind = checked_kind(self.scores)
        offsets = [None] * len(tokens) if sentence_offsets is None else sentence_offsets
        if not len(scores) == len(tokens) == len(offsets):
            raise ValueError(
                f"each document has scores, tokens and sentence offsets, not {len(scores)}, {len(tokens)} and"
                f" {len(offsets)} of them"
            )
        for i, document in enumerate(zip(scores, tokens, offsets, strict=True)):
            with named(f"document {i}"):
                yield Scored.of(*document, len(labels), kind)

    # --- learning ---------------------------------------------------------------------------------------------------

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
        """Learn the tables of the links, and that of the transitions if ``learner.joint``, from documents and their
        right ``tags``.

        The tagger must not have been trained on these documents: score them by one that has not seen them, such as
        those of a cross-validation. A tagger is surer, and oftener right, on what it was trained on than it will ever
        be again; from there it looks as if links had nothing to add, and their tables come out too small.

        A label that the documents do not hold is learned to be unlikely at linked tokens; without any link a table is
        0.

        Args:
            scores: Of each document, as in `apply`.
            tokens: Of each document, as in `apply`.
            tags: Of each document: ``labels`` or, if constrained, of any scheme.
            sentence_offsets: Of each document, as in `apply`.
            development: Other documents as ``(scores, tokens, tags)`` or ``(scores, tokens, tags, sentence_offsets)``;
                the tables are then those of the iteration whose entities have the best F1 there.
        """
        labels, crf = self._untrained()
        documents, gold = self._annotated(labels, scores, tokens, tags, sentence_offsets)
        if not any(document.tokens for document in documents):
            raise ValueError("nothing to learn from: the documents hold no token")
        number = {label: k for k, label in enumerate(labels)}
        states = [np.array([number[tag] for tag in sequence], np.int32) for sequence in gold]
        for i, (document, right) in enumerate(zip(documents, states, strict=True)):
            forbidden = document.unary[np.arange(len(right)), right] == -np.inf
            if forbidden.any():
                t = int(forbidden.argmax())
                raise ValueError(f"document {i}: the score of the right tag of token {t}, {gold[i][t]!r}, is -inf")
        score = None if development is None else self._development(labels, development)
        examples = gather(crf, documents, [document.unary for document in documents], states)
        if crf.link_tables or self.learner.joint:
            crf, curve = learn_tables(crf, examples, self.learner, score=score, seed=seed, progress=progress)
        else:
            curve = None
        self.learned_ = Learned(labels, crf)
        self.learning_curve_: LearningCurve | None = curve
        return self

    def _development(self, labels: tuple[str, ...], development: object) -> ScoreFunction:
        parts = cast(tuple[Any, ...], development) if isinstance(development, tuple) else ()
        if len(parts) not in (3, 4):
            raise ValueError("development must be (scores, tokens, tags) or (scores, tokens, tags, sentence_offsets)")
        documents, gold = self._annotated(labels, *parts, *[None] * (4 - len(parts)))
        readable = dict(zip(labels, as_tags(labels), strict=True))
        right = [
            spans_from_tags([readable[tag] for tag in sequence], document.sentence_offsets)
            for document, sequence in zip(documents, gold, strict=True)
        ]
        unaries = [document.unary for document in documents]
        return development_f1(list(readable.values()), documents, unaries, right, resolve_backend(self.backend))

    def _annotated(
        self,
        labels: tuple[str, ...],
        scores: Sequence[ArrayLike],
        tokens: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
        sentence_offsets: Sequence[SentenceOffsets] | None,
    ) -> tuple[list[Scored], list[list[str]]]:
        """Documents, and their right tags among the labels."""
        scheme = self._scheme(labels)
        documents = list(self._scored(labels, scores, tokens, sentence_offsets))
        if len(tags) != len(documents):
            raise ValueError(f"{len(documents)} documents but {len(tags)} sequences of tags")
        gold: list[list[str]] = []
        for i, (document, sequence) in enumerate(zip(documents, tags, strict=True)):
            with named(f"document {i}"):
                gold.append(among(labels, sequence, document, scheme))
        return documents, gold

    # --- files ------------------------------------------------------------------------------------------------------

    def save(self, where: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the layer to a stream, or atomically to a file: labels, rules, tables, not the backend and learner."""
        labels, crf = self._tables()
        for each in crf.link_tables:
            if type(each.template.rule) not in RULES.values():
                rule = each.template.rule
                raise ValueError(f"{rule!r:.80} is your own rule; a file can hold {', '.join(RULES)} only")
        header = {
            "labels": list(labels), "scores": checked_kind(self.scores), "tie": self.tie, "scheme": self.scheme,
            "constrained": bool(self.constrained), "links": [link_table_to_dict(each) for each in crf.link_tables],
            "tie_outside": self.tie_outside,
        }  # fmt: skip
        arrays = {"transition": crf.transition}
        if crf.link_tables:
            arrays["link_tables"] = np.stack([each.table for each in crf.link_tables])
        write_model(where, header, arrays, LAYER_FORMAT)

    @classmethod
    def load(
        cls,
        where: str | os.PathLike[str] | IO[bytes],
        *,
        backend: str | Backend = DEFAULT_BACKEND,
        learner: Learner = JOINT,
    ) -> SkipChainLayer:
        """Read what `save` wrote.

        Raises:
            ModelError: The file is anything else, or damaged.
        """
        file = read_model(where, LAYER_FORMAT)
        header = file.header
        with undamaged(where, "layer", "save"):
            forbidden = np.isneginf(file.arrays["transition"])
            allowed = {**file.arrays, "transition": np.where(forbidden, 0.0, file.arrays["transition"])}
            check_arrays(allowed, {"transition": ("<f8", 2), "link_tables": ("<f8", 3)})
            labels = checked_labels(header["labels"])
            link_tables = link_tables_from(header["links"], file.arrays, len(labels))
            layer = cls(
                labels, tuple(each.template for each in link_tables), scores=checked_kind(header["scores"]),
                tie=header["tie"], transition=file.arrays["transition"], scheme=header["scheme"],
                constrained=truth(header["constrained"], "constrained"), tie_outside=header.get("tie_outside"),
                backend=backend, learner=learner,
            )  # fmt: skip
            _, crf = layer._untrained()
            layer.learned_ = Learned(labels, replace(crf, link_tables=link_tables))
            return layer


def _consistent(
    labels: tuple[str, ...],
    crf: SkipChainModel,
    backend: Backend,
    document: Scored,
    rng: np.random.Generator,
    known: Sequence[NDArray[np.int32]] | None = None,
) -> Consistent:
    unary, tokens, offsets = document
    if not tokens:
        return Consistent([], [], unary, np.empty((0, 2), np.int32), np.zeros(0, np.bool_), np.zeros(0))
    links = crf.links(tokens, offsets) if known is None else known
    alone = crf.best_chain(unary, offsets)
    ends = np.concatenate([np.empty((0, 2), np.int32), *links])
    if len(ends):
        ends = np.unique(ends, axis=0)
        found = decode(crf, unary, offsets, links, backend, rng)
    else:
        found = Decoded(alone, crf.chain_marginals(unary, offsets))
    chunks, sure = chunks_from_states(found.states, tuple(as_tags(labels)), offsets), None
    if found.marginals is not None:
        sure = span_confidences(crf, unary, offsets, links, found, chunks.starts, chunks.ends)
    chosen: list[int] = found.states.tolist()
    tags = [labels[state] for state in chosen]
    return Consistent(tags, chunks.spans(), found.marginals, ends, found.states != alone, sure)


def _checked_links(crf: SkipChainModel, links: Sequence[ArrayLike], n_tokens: int) -> list[NDArray[np.int32]]:
    """Links that a caller has found, those of each rule; ValueError where they are none."""
    if len(links) != len(crf.link_tables):
        raise ValueError(f"links must hold an array for each of the {len(crf.link_tables)} rules, not {len(links)}")
    return [
        checked_links(found, n_tokens, f"rule {each.template.name}")
        for each, found in zip(crf.link_tables, links, strict=True)
    ]


def _templates(rules: object) -> list[SkipChain]:
    """The rules as templates; ValueError where one is none."""
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        raise ValueError(f"rules must be a list such as [SameWord()] or ['same-word'], not {rules!r:.80}")
    found: list[SkipChain] = []
    for rule in cast(Sequence[object], rules):
        if isinstance(rule, str):
            rule = rule_from_text(rule)
        if isinstance(rule, type) or not isinstance(rule, SkipChain | Rule):
            raise ValueError(f"a rule must be such as SameWord() or 'same-word', not {rule!r:.80}")
        found.append(rule if isinstance(rule, SkipChain) else SkipChain(rule))
    return found
