"""Why this label: what features, transitions, links and names given by the user add to the log-odds of a mention.

A mention is set against another reading of its tokens, by default that they are no name; the rest of the document
stays as it was tagged. As log p(tags) is a sum of factors less log Z (Lafferty, McCallum and Pereira 2001, eq. 1), the
logarithm of the odds of the two readings,

    log p(mention as tagged, rest) - log p(mention read otherwise, rest),

is the sum of what each factor that touches the mention differs by: weights of features, entries of the transition table
and of the tables of links, whose other ends have the tags that they were given, and what the user's own names add. So
the parts add up to the log-odds, to the rounding of floats, and each is exact, not an estimate: +0.69 doubles the odds,
given the rest.

That is not the confidence, which sums over all other readings and over what linked mentions might be instead, and is
calibrated (`herdner.ner.calibration`) where log-odds are what the CRF itself says. Both are shown, and what the
confidence would be without links.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.crf.weights import ChainWeights
from herdner.ner.decode import Decoded, Decoder
from herdner.ner.known_names.evidence import Evidence
from herdner.ner.model import TaggerModel
from herdner.ner.wording import WELL_KNOWN, Words
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import Chunks, Span, split_tag, tags_from_spans

Kind = Literal["feature", "transition", "link", "name", "rest"]
KINDS: tuple[Kind, ...] = ("feature", "transition", "link", "name")
BEST = "best"
"""Stands for the best other label of a mention."""
_START, _END = 0, 1  # borders of a sentence


class NoSuchName(ValueError):
    """No mention of a text holds the name that was to be explained; ``stands_there``: the text does."""

    def __init__(self, message: str, stands_there: bool) -> None:
        self.stands_there = stands_there
        super().__init__(message)


class Part(NamedTuple):
    """What one thing adds to the log-odds of a mention.

    Attributes:
        kind: Feature, transition, link, known name, or the sum of the rest.
        value: Above 0 it speaks for the label.
        words: What it is, in words.
        token: The word of the mention that it is about, where the mention has several; else empty.
    """

    kind: Kind
    value: float
    words: str
    token: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; null for a value that is infinite, because the other reading is not allowed."""
        return {"kind": self.kind, "value": _finite(self.value), "words": self.words, "token": self.token}

    def __str__(self) -> str:
        return f"{self.token}: {self.words}" if self.token else self.words


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a mention has its label; module `herdner.ner.explain` says what is compared.

    Attributes:
        mention: What was tagged, with its confidence.
        sentence: Its number, from 1.
        against: The label of the other reading, None for no name.
        log_odds: Natural logarithm, the sum of all ``parts``, which come largest first.
        confidence_without_links: What the confidence would be if mentions were not linked.
    """

    mention: Entity
    sentence: int
    against: str | None
    log_odds: float
    parts: tuple[Part, ...]
    confidence_without_links: float

    def total(self, kind: Kind) -> float:
        """What all parts of a kind add."""
        return math.fsum(part.value for part in self.parts if part.kind == kind)

    def top(self, most: int | None = None) -> list[Part]:
        """The ``most`` largest parts, and one that sums up the others; None is all."""
        if most is None or len(self.parts) <= most + 1:
            return list(self.parts)
        rest = self.parts[most:]
        what = "features" if all(part.kind == "feature" for part in rest) else "parts"
        value = math.fsum(part.value for part in rest)
        return [*self.parts[:most], Part("rest", value, f"{len(rest)} smaller {what}")]

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Plain values for JSON, with the parts of `top`."""
        mention = self.mention
        return {
            "text": mention.text, "start": mention.start, "end": mention.end, "label": mention.label,
            "sentence": self.sentence, "against": self.against, "log_odds": _finite(self.log_odds),
            "confidence": mention.confidence, "confidence_without_links": self.confidence_without_links,
            "totals": {kind: _finite(self.total(kind)) for kind in KINDS},
            "parts": [part.to_dict() for part in self.top(most)],
        }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def explain(
    model: TaggerModel,
    decoder: Decoder,
    document: Document,
    name: str | None = None,
    against: str | None = None,
    offsets: tuple[int, int] | None = None,
    evidence: Evidence | None = None,
) -> list[Explanation]:
    """The mentions of a document that ``decoder`` has tagged, by the weights of its ``model`` and the ``evidence`` of
    known names; see `Tagger.explain`.
    """
    check_against(decoder.tags, against)
    if name is not None and not name.strip():
        raise ValueError("the name to explain is empty")
    chosen = [
        i
        for i, entity in enumerate(document.entities)
        if (name is None or _stands(name, entity.text)) and offsets in (None, (entity.start, entity.end))
    ]
    if not chosen and offsets is not None:
        raise NoSuchName(f"characters {offsets[0]} to {offsets[1]} are not tagged as a name", stands_there=True)
    if not chosen and name is not None:
        there = _stands(name, document.text)
        why = "in the text, but not tagged as a name" if there else "not in the text"
        raise NoSuchName(f"{name!r} is {why}", there)
    tagged = _Tagged(model, decoder, document, document.spans or [], evidence or Evidence())
    return list(tagged.explanations(chosen, against)) if chosen else []


def check_against(tags: Sequence[str], against: str | None) -> None:
    """ValueError for a label of which there are no tags."""
    known = _labels(tags)
    if against not in (None, BEST, *known):
        raise ValueError(f"no label {against!r}; expected {BEST} or one of {', '.join(known)}")
    if against is None and "O" not in tags:
        raise ValueError(f"to this model all is a name; compare with another label: {BEST}, {', '.join(known)}")


def _labels(tags: Sequence[str]) -> list[str]:
    return sorted({split_tag(tag)[1] for tag in tags if tag != "O"})


def _stands(name: str, text: str) -> bool:
    """Whether the words of a name stand in a text, one after the other, in whatever case."""
    pattern = r"\s+".join(map(re.escape, name.split()))
    return re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) is not None


class _Sources(NamedTuple):
    """Where the unary log-potentials of some tokens come from: token t has the features
    ``starts[row[t]]:starts[row[t] + 1]``, of which ``origins`` are rows (template, place).
    """

    row: Mapping[int, int]
    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    origins: NDArray[np.int32]


class _Term(NamedTuple):
    """A factor at the tags as they are, less the same factor at the other reading; ``at`` says which it is."""

    kind: Kind
    token: int
    value: float
    at: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Tagged:
    """A document as ``decoder`` tagged it, and the factors that its log-potential is the sum of."""

    model: TaggerModel
    decoder: Decoder
    document: Document
    spans: Sequence[Span]
    evidence: Evidence

    def explanations(self, chosen: Sequence[int], against: str | None) -> Iterator[Explanation]:
        """Of the spans of these numbers."""
        readings = [list(self._readings(i, against)) for i in chosen]
        sources, words = self._described({t for several in readings for _, other in several for t in other})
        alone = self._confidences_without_links().tolist()
        for i, several in zip(chosen, readings, strict=True):
            compared = [(label, list(self._terms(other, sources))) for label, other in several]
            if not compared:
                continue
            label, terms = min(compared, key=lambda each: math.fsum(term.value for term in each[1]))
            yield self._explanation(i, label, terms, words, alone[i])

    # --- readings ---------------------------------------------------------------------------------------------------

    def _readings(self, i: int, against: str | None) -> Iterator[tuple[str | None, dict[int, int]]]:
        """The other readings of a span: a label, or None, and the tags of the tokens that it changes."""
        labels = _labels(self.decoder.tags) if against == BEST else [against]
        for label in labels:
            other = None if label == self.spans[i].label else self._reading(i, label)
            if other is not None:
                yield label, other

    def _reading(self, i: int, label: str | None) -> dict[int, int] | None:
        """Tags of the tokens that change when a span gets another label, or none; None where the model has not all of
        these tags. In IOB1 they depend on the name that it touches before it, and that behind it may change, too.
        """
        span = self.spans[i]
        near = [span] if self.decoder.scheme is None else self._touching(i)
        first, end = near[0].start, near[-1].end
        kept = [each if each != span else Span(*each[:2], label or "") for each in near]
        moved = [Span(each.start - first, each.end - first, each.label) for each in kept if each.label]
        tags = tags_from_spans(moved, end - first, self.model.scheme)
        if not all(tag in self._number for tag in tags):
            return None
        states = [self._number[tag] for tag in tags]
        return {t: s for t, s in enumerate(states, first) if t >= span.start and s != self._states[t]}

    def _touching(self, i: int) -> list[Span]:
        """A span, between those of its sentence that touch it."""
        span, (first, end) = self.spans[i], self._sentence(self.spans[i].start)
        before = [each for each in self.spans[max(i - 1, 0) : i] if each.end == span.start > first]
        after = [each for each in self.spans[i + 1 : i + 2] if each.start == span.end < end]
        return [*before, span, *after]

    def _sentence(self, token: int) -> NDArray[np.int64]:
        number = int(np.searchsorted(self.document.sentence_offsets, token, "right"))
        return self.document.sentence_offsets[number - 1 : number + 1]

    @cached_property
    def _number(self) -> dict[str, int]:
        return {tag: k for k, tag in enumerate(self.decoder.tags)}

    @cached_property
    def _states(self) -> NDArray[np.int32]:
        return np.array([self._number[tag] for tag in self.document.tags or ()], np.int32)

    # --- factors ----------------------------------------------------------------------------------------------------

    def _terms(self, other: Mapping[int, int], sources: _Sources) -> Iterator[_Term]:
        """All factors that differ between the tags as they are and those of ``other``."""
        for token, state in sorted(other.items()):
            yield from self._features(token, state, sources)
            given = self._given[token, self._states[token]] - self._given[token, state]
            yield _Term("name", token, float(given), ())
        yield from self._transitions(other)
        yield from self._linked(other)

    def _features(self, token: int, state: int, sources: _Sources) -> Iterator[_Term]:
        row = sources.row[token]
        own = slice(int(sources.starts[row]), int(sources.starts[row + 1]))
        weights = weights_of(self.model.weights, sources.keys[own], (int(self._states[token]), state))
        values = weights[:, 0] - weights[:, 1]
        for k in np.flatnonzero(values).tolist():
            yield _Term("feature", token, float(values[k]), tuple(sources.origins[own.start + k].tolist()))

    def _transitions(self, other: Mapping[int, int]) -> Iterator[_Term]:
        crf, states, n = self.decoder.crf, self._states, len(self._states)
        for t in sorted({t for token in other for t in (token, token + 1)}):
            first, _ = self._sentence(min(t, n - 1))
            before = other.get(t - 1, int(states[t - 1]) if t else 0)
            if t in (n, first):  # a border: the sentence before ends with t - 1, the one here begins with t
                if t - 1 in other:
                    yield _Term("transition", t - 1, float(crf.end[states[t - 1]] - crf.end[before]), (_END,))
                if t in other:
                    yield _Term("transition", t, float(crf.start[states[t]] - crf.start[other[t]]), (_START,))
                continue
            after = other.get(t, int(states[t]))
            value = crf.transition[states[t - 1], states[t]] - crf.transition[before, after]
            yield _Term("transition", t, float(value), ())

    def _linked(self, other: Mapping[int, int]) -> Iterator[_Term]:
        states = self._states
        for table, row in sorted({at for token in other for at in self._links_at.get(token, ())}):
            each, found = self.decoder.crf.link_tables[table], self._links[table]
            a, b = found[row].tolist()
            value = each.table[states[a], states[b]] - each.table[other.get(a, states[a]), other.get(b, states[b])]
            token, far = (a, b) if a in other else (b, a)
            yield _Term("link", token, float(value), (far, table))

    @cached_property
    def _seen(self) -> Document:
        """The document as features and links see it."""
        return self.decoder.read(self.document)

    @cached_property
    def _unary(self) -> Floats:
        unary = self.decoder.extractor.scores(self._seen.tokens, self.document.sentence_offsets)
        self.evidence.add_to(unary)
        return unary

    @cached_property
    def _given(self) -> Floats:
        """What known names add to each tag of each token."""
        given = np.zeros((len(self.document.tokens), len(self.decoder.tags)))
        self.evidence.add_to(given)
        return given

    @cached_property
    def _links(self) -> list[NDArray[np.int32]]:
        return self.decoder.crf.links(self._seen.tokens, self.document.sentence_offsets)

    @cached_property
    def _links_at(self) -> dict[int, list[tuple[int, int]]]:
        """The links of each token: (link table, row)."""
        found: dict[int, list[tuple[int, int]]] = {}
        for table, each in enumerate(self._links):
            for row, ends in enumerate(each.tolist()):
                for token in ends:
                    found.setdefault(token, []).append((table, row))
        return found

    def _confidences_without_links(self) -> Floats:
        offsets, found = self.document.sentence_offsets, Decoded(self._states)
        return self.decoder.confidences(
            self.decoder.without_links().crf, self._unary, offsets, (), found, Chunks.of(self.spans)
        )

    # --- words ------------------------------------------------------------------------------------------------------

    def _described(self, tokens: Iterable[int]) -> tuple[_Sources, Words]:
        chosen, extractor = sorted(tokens), self.decoder.extractor
        document, nobody = self.document, np.empty(0, np.int64)
        offsets = document.sentence_offsets
        starts, keys, origins, attributes = extractor.origins(self._seen.tokens, offsets, np.array(chosen, np.int64))
        known = extractor.origins(WELL_KNOWN, np.array([0, len(WELL_KNOWN)]), nobody)[3]
        plan = self.model.plan
        words = Words(document.tokens, offsets, self.spans, plan.attributes, plan.enumerated(), attributes, known)
        return _Sources({token: row for row, token in enumerate(chosen)}, starts, keys, origins), words

    def _explanation(
        self, i: int, label: str | None, terms: Sequence[_Term], words: Words, confidence: float
    ) -> Explanation:
        span = self.spans[i]
        parts: dict[tuple[Kind, str, str], list[float]] = {}
        for term in filter(lambda term: term.value, terms):
            token = self.document.tokens[term.token] if term.kind == "feature" and span.end - span.start > 1 else ""
            parts.setdefault((term.kind, token, self._in_words(term, words)), []).append(term.value)
        summed = [Part(kind, math.fsum(values), said, token) for (kind, token, said), values in parts.items()]
        return Explanation(
            self.document.entities[i],
            words.sentence(span.start),
            label,
            math.fsum(term.value for term in terms),
            tuple(sorted((part for part in summed if part.value), key=lambda part: -abs(part.value))),
            confidence,
        )

    def _in_words(self, term: _Term, words: Words) -> str:
        if term.kind == "feature":
            template, place = term.at
            return words.feature(template, term.token, place)
        if term.kind == "link":
            other, table = term.at
            return words.link(term.token, other, self.decoder.crf.link_tables[table].template.name)
        if term.kind == "name":
            return words.given(math.isinf(term.value))
        if term.at:
            return words.border(term.token, term.at == (_START,))
        return words.neighbours(term.token)


def weights_of(weights: ChainWeights, keys: NDArray[np.uint64], states: Sequence[int]) -> Floats:
    """float64[F, S]: the weight of each feature for each of the tags; 0 where it has none."""
    rows = np.minimum(np.searchsorted(weights.keys, keys), max(len(weights.keys) - 1, 0))
    found = np.zeros((len(keys), len(states)))
    if not len(weights.keys):
        return found
    known = np.flatnonzero(weights.keys[rows] == keys)
    begins = weights.starts[rows[known]].astype(np.int64)
    sizes = weights.starts[rows[known] + 1].astype(np.int64) - begins
    ends = np.cumsum(sizes)
    entries = np.arange(int(sizes.sum())) + np.repeat(begins - ends + sizes, sizes)
    feature = np.repeat(known, sizes)
    for column, state in enumerate(states):
        of_state = weights.entry_labels[entries] == state
        found[feature[of_state], column] = weights.entry_weights[entries[of_state]]
    return found
