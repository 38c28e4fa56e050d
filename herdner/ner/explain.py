"""Explanations of labels: contributions of features, network, transitions, links and known names to the log-odds.

A mention is compared with an alternative for its tokens, by default "no name" (the tag O); the tags of all other tokens
stay the same. The log-probability of a tag sequence is the sum of the log-potentials of all factors, minus log Z
(Lafferty, McCallum and Pereira 2001, eq. 1). Therefore the log-odds of the mention against the alternative,

    log p(tags of the mention, other tags) - log p(tags of the alternative, other tags),

are a sum of contributions, one for each factor that touches the mention. The contribution of a factor is its
log-potential at the tags of the mention minus its log-potential at the tags of the alternative. Factors are features,
the scores of the model's neural network, transitions, links and known names. The contributions are exact: except for
rounding, they add up to the log-odds. A contribution of +0.69 (log 2) doubles the odds.

The confidence of the mention cannot be computed from these log-odds. It takes all alternatives and all tags of linked
mentions into account, and it is calibrated (`herdner.ner.calibration`). The log-odds of a confidence p,
log(p / (1 - p)), are the sum of three steps: the log-odds under the chain, their change by the links, and their change
by the calibration. If a full name has decided the label of a short form (`herdner.ner.identity.short_forms`), the last
step is the change by the full name. An explanation contains these steps and the calibrated confidence without links.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.crf.weights import ChainWeights
from herdner.inference import Backend
from herdner.ner.calibration import CalibrationInputs
from herdner.ner.decode import DecodedTags, Decoder, calibration_inputs, decode
from herdner.ner.descriptions import Describer
from herdner.ner.known_names.evidence import Evidence
from herdner.ner.model import TaggerModel
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import Chunks, Span, labels_of, tags_from_spans

PartKind = Literal["feature", "network", "transition", "link", "name", "rest"]
PART_KINDS: tuple[PartKind, ...] = ("feature", "network", "transition", "link", "name")
BEST = "best"
"""Value of ``against`` that selects the most probable other label of each mention as its alternative."""
_START, _END = 0, 1  # values of `_Term.at` for the transitions at the start and at the end of a sentence


class NoSuchName(ValueError):
    """Error: no mention in the text matches the name to explain.

    Attributes:
        is_in_text: True if the text contains the name, but not as a mention.
    """

    def __init__(self, message: str, is_in_text: bool) -> None:
        """Store the message, and the flag ``is_in_text``."""
        self.is_in_text = is_in_text
        super().__init__(message)


class ExplanationPart(NamedTuple):
    """One contribution to the log-odds of a mention's label, such as the contribution of a feature or a link.

    Attributes:
        kind: "feature", "network" (the neural network of the model), "transition", "link", "name" (a known name), or
            "rest" (a sum of small parts).
        value: Contribution in log-odds; positive values support the label.
        words: Description in English.
        token: Token of the mention that the feature or the network describes, if the mention has several tokens; else
            empty.
    """

    kind: PartKind
    value: float
    words: str
    token: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return this part of an explanation as a dict of JSON values; an infinite contribution becomes None."""
        return {"kind": self.kind, "value": _finite(self.value), "words": self.words, "token": self.token}

    def __str__(self) -> str:
        """Return the contribution in English; if it belongs to a single token, the text begins with this token."""
        return f"{self.token}: {self.words}" if self.token else self.words


class ConfidenceStep(NamedTuple):
    """One of the three steps that lead from the model's probability of a mention to the mention's confidence.

    Attributes:
        name: "model" for the first step, "links" for the second, "calibration" or "full name" for the third.
        log_odds: Change of the log-odds by the step; for "model", the log-odds under the chain.
        probability: Probability after the step. After the last step, it is the confidence.
    """

    name: str
    log_odds: float
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """Return this step as a dict of JSON values; infinite log-odds become None."""
        return {"name": self.name, "log_odds": _finite(self.log_odds), "probability": self.probability}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of the label of a mention: the log-odds of the label, and contributions that sum to the log-odds.

    Attributes:
        mention: The mention with its label and confidence.
        sentence: Number of its sentence, starting at 1.
        against: Label of the alternative, or None for "no name".
        log_odds: Log-odds of the label against the alternative, the sum of all parts.
        parts: Contributions, largest magnitude first.
        confidence_without_links: Confidence without links between mentions.
        steps: Steps from the model's probability to the confidence. The log-odds of the steps add up to the log-odds of
            the confidence.
    """

    mention: Entity
    sentence: int
    against: str | None
    log_odds: float
    parts: tuple[ExplanationPart, ...]
    confidence_without_links: float
    steps: tuple[ConfidenceStep, ...]

    def total(self, kind: PartKind) -> float:
        """Return the sum of all contributions of one kind, in log-odds.

        Args:
            kind: Kind of the parts.
        """
        return math.fsum(part.value for part in self.parts if part.kind == kind)

    def top(self, most: int | None = None) -> list[ExplanationPart]:
        """Return the largest contributions, each as one part, and a last part with the sum of all other contributions.

        Args:
            most: Number of parts before the sum of all other parts. None returns all parts.
        """
        if most is None or len(self.parts) <= most + 1:
            return list(self.parts)
        rest = self.parts[most:]
        noun = "features" if all(part.kind == "feature" for part in rest) else "parts"
        value = math.fsum(part.value for part in rest)
        return [*self.parts[:most], ExplanationPart("rest", value, f"{len(rest)} smaller {noun}")]

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Return the explanation as a dict of JSON values.

        Args:
            most: Number of parts, as in `top`.
        """
        mention = self.mention
        return {
            "text": mention.text, "start": mention.start, "end": mention.end, "label": mention.label,
            "sentence": self.sentence, "against": self.against, "log_odds": _finite(self.log_odds),
            "confidence": mention.confidence, "confidence_without_links": self.confidence_without_links,
            "confidence_steps": [step.to_dict() for step in self.steps],
            "totals": {kind: _finite(self.total(kind)) for kind in PART_KINDS},
            "parts": [part.to_dict() for part in self.top(most)],
        }  # fmt: skip


def _log_odds(probability: float) -> float:
    if not 0 < probability < 1:
        return math.inf if probability > 0 else -math.inf
    return math.log(probability) - math.log1p(-probability)


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
    backend: Backend | None = None,
    rng: np.random.Generator | None = None,
) -> list[Explanation]:
    """Explain the labels of mentions in a tagged document, by default of all mentions.

    Args:
        model: Model of the tagger.
        decoder: Compiled form of the model, which tagged the document.
        document: Tagged document.
        name: Explain only mentions that contain these words, ignoring case.
        against: Alternative to compare with: None for "no name", "best" for the best other label, or a label.
        offsets: Explain only the mention with these character offsets, (start, end).
        evidence: Evidence of known names, or None.
        backend: Inference backend that tagged the document, or None for the default.
        rng: Source of random numbers of the backend.

    Returns:
        One explanation for each selected mention. Mentions that have the label ``against``, or cannot have it, are left
        out.

    Raises:
        NoSuchName: No mention matches ``name`` or ``offsets``.
        ValueError: ``name`` is empty, or the model lacks the label ``against``.
    """
    check_against(decoder.tags, against)
    if name is not None and not name.strip():
        raise ValueError(f"the name to explain must contain a word, got {name!r}")
    selected = [
        i
        for i, entity in enumerate(document.entities)
        if (name is None or _contains(name, entity.text)) and offsets in (None, (entity.start, entity.end))
    ]
    if not selected and offsets is not None:
        raise NoSuchName(
            f"characters {offsets[0]} to {offsets[1]} are not tagged as a name; give the offsets of a tagged name",
            is_in_text=True,
        )
    if not selected and name is not None:
        is_in_text = _contains(name, document.text)
        reason = "in the text, but not tagged as a name" if is_in_text else "not in the text"
        raise NoSuchName(f"{name!r} is {reason}", is_in_text)
    explainer = _Explainer(model, decoder, document, document.spans or [], evidence or Evidence(), backend, rng)
    return list(explainer.explanations(selected, against)) if selected else []


def check_against(tags: Sequence[str], against: str | None) -> None:
    """Raise `ValueError` unless the model supports ``against``, the alternative label of an explanation.

    Args:
        tags: Tags of the model.
        against: None, "best" or a label.

    Raises:
        ValueError: The model has no tags for the label, or no tag O for "no name".
    """
    labels = sorted(labels_of(tags))
    if against not in (None, BEST, *labels):
        raise ValueError(f"the model has no label {against!r}; expected {BEST} or one of {', '.join(labels)}")
    if against is None and "O" not in tags:
        raise ValueError(f"the model has no tag O; compare with another label: {BEST}, {', '.join(labels)}")


def _contains(name: str, text: str) -> bool:
    """Return True if the words of a name occur consecutively in a text, ignoring case and the kind of white space."""
    pattern = r"\s+".join(map(re.escape, name.split()))
    return re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) is not None


class _Sources(NamedTuple):
    """Features of some tokens, and the template and token from which each feature was computed.

    The features of token t have the indices from ``starts[row[t]]`` to ``starts[row[t] + 1] - 1``. Each feature has a
    key and an origin: the index of its template, and the index of the token that the template reads.
    """

    row: Mapping[int, int]
    starts: Int64s
    keys: NDArray[np.uint64]
    origins: Int32s


class _Term(NamedTuple):
    """Log-potential of one factor at the tags of the document minus its log-potential at the alternative tags.

    ``at`` identifies the factor among those of its kind at the token.
    """

    kind: PartKind
    token: int
    value: float
    at: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Explainer:
    """Computation of the explanations of one tagged document."""

    model: TaggerModel
    decoder: Decoder
    document: Document
    spans: Sequence[Span]
    evidence: Evidence
    backend: Backend | None
    rng: np.random.Generator | None

    def explanations(self, selected: Sequence[int], against: str | None) -> Iterator[Explanation]:
        """Yield an explanation for the label of each span whose index is in ``selected``."""
        alternatives = [list(self._alternatives(i, against)) for i in selected]
        sources, describer = self._sources({t for each in alternatives for _, other in each for t in other})
        without_links = self._confidences_without_links().tolist()
        for i, own in zip(selected, alternatives, strict=True):
            compared = [(label, list(self._terms(other, sources))) for label, other in own]
            if not compared:
                continue
            label, terms = min(compared, key=lambda each: math.fsum(term.value for term in each[1]))
            yield self._explanation(i, label, terms, describer, without_links[i])

    def _steps(self, i: int) -> tuple[ConfidenceStep, ...]:
        """Return the steps from the model's probability of a span to its confidence."""
        tokens = slice(self.spans[i].start, self.spans[i].end + 1)  # a full name may shorten a span
        is_changed = bool((self._backend_tags.states[tokens] != self._states[tokens]).any())
        inputs = self._inputs_of_final_labels if is_changed else self._inputs_of_backend_labels
        confidence = self.document.entities[i].confidence or 0.0
        probabilities = [float(inputs.without_links[i]), float(inputs.confidence[i]), confidence]
        names = "model", "links", "full name" if is_changed else "calibration"
        odds = [0.0, *map(_log_odds, probabilities)]
        # Equal values are not subtracted, because the difference of two infinities is NaN.
        changes = [0.0 if after == before else after - before for before, after in pairwise(odds)]
        return tuple(map(ConfidenceStep, names, changes, probabilities))

    @cached_property
    def _backend_tags(self) -> DecodedTags:
        """Tags decoded by the backend, before the later step that gives short forms the label of the full name."""
        rng = self.rng or np.random.default_rng(0)
        crf, offsets = self.decoder.crf, self.document.sentence_offsets
        return decode(crf, self._unary, offsets, self._links, self.backend, rng)

    @cached_property
    def _inputs_of_backend_labels(self) -> CalibrationInputs:
        """Calibration inputs of each span of the document, computed for the labels that the backend has decoded."""
        return self._calibration_inputs(self._backend_tags)

    @cached_property
    def _inputs_of_final_labels(self) -> CalibrationInputs:
        """Inputs of the calibration for each span of the document, with the final labels of the spans."""
        return self._calibration_inputs(self._backend_tags._replace(states=self._states))

    def _calibration_inputs(self, decoded: DecodedTags) -> CalibrationInputs:
        offsets, chunks = self.document.sentence_offsets, Chunks.of(self.spans)
        return calibration_inputs(self.decoder.crf, self._unary, offsets, self._links, decoded, chunks)

    # --- alternatives -----------------------------------------------------------------------------------------------

    def _alternatives(self, i: int, against: str | None) -> Iterator[tuple[str | None, dict[int, int]]]:
        """Yield (alternative label of span i, dict from token to alternative tag); the label None means "no name"."""
        labels = sorted(labels_of(self.decoder.tags)) if against == BEST else [against]
        for label in labels:
            other = None if label == self.spans[i].label else self._alternative(i, label)
            if other is not None:
                yield label, other

    def _alternative(self, i: int, label: str | None) -> dict[int, int] | None:
        """Return the tags that change if span i gets another label, as a dict from token to tag.

        If ``label`` is None, the tokens of the span get the tag O. In IOB1, the tags of a span depend on the adjacent
        span before it, so the tags of the span that directly follows span i may change too. The result is None if the
        model lacks one of the new tags.
        """
        span = self.spans[i]
        group = [span] if self.decoder.scheme is None else self._adjacent(i)
        first, end = group[0].start, group[-1].end
        changed = [each if each != span else Span(*each[:2], label or "") for each in group]
        shifted = [Span(each.start - first, each.end - first, each.label) for each in changed if each.label]
        tags = tags_from_spans(shifted, end - first, self.model.scheme)
        states = self.decoder.encoder.states(tags)
        if states is None:
            return None
        return {t: s for t, s in enumerate(states, first) if t >= span.start and s != self._states[t]}

    def _adjacent(self, i: int) -> list[Span]:
        """Return span i together with the spans of the same sentence that directly precede or follow it."""
        span, (first, end) = self.spans[i], self._sentence(self.spans[i].start)
        before = [each for each in self.spans[max(i - 1, 0) : i] if each.end == span.start > first]
        after = [each for each in self.spans[i + 1 : i + 2] if each.start == span.end < end]
        return [*before, span, *after]

    def _sentence(self, token: int) -> Int64s:
        end = int(np.searchsorted(self.document.sentence_offsets, token, "right"))
        return self.document.sentence_offsets[end - 1 : end + 1]

    @cached_property
    def _states(self) -> Int32s:
        return np.array(self.decoder.encoder.states(self.document.tags or ()), np.int32)

    # --- factors ----------------------------------------------------------------------------------------------------

    def _terms(self, other: Mapping[int, int], sources: _Sources) -> Iterator[_Term]:
        """Yield a `_Term` for each factor whose log-potential the alternative tags may change.

        ``other`` maps tokens to their alternative tags.
        """
        for token, state in sorted(other.items()):
            yield from self._features(token, state, sources)
            value = self._network_scores[token, self._states[token]] - self._network_scores[token, state]
            yield _Term("network", token, float(value), ())
            value = self._name_scores[token, self._states[token]] - self._name_scores[token, state]
            yield _Term("name", token, float(value), ())
        yield from self._transitions(other)
        yield from self._link_terms(other)

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
            if t in (n, first):  # a sentence ends at t - 1, and another one may begin at t
                if t - 1 in other:
                    yield _Term("transition", t - 1, float(crf.end[states[t - 1]] - crf.end[before]), (_END,))
                if t in other:
                    yield _Term("transition", t, float(crf.start[states[t]] - crf.start[other[t]]), (_START,))
                continue
            after = other.get(t, int(states[t]))
            value = crf.transition[states[t - 1], states[t]] - crf.transition[before, after]
            yield _Term("transition", t, float(value), ())

    def _link_terms(self, other: Mapping[int, int]) -> Iterator[_Term]:
        states = self._states
        for table, row in sorted({at for token in other for at in self._links_at.get(token, ())}):
            each = self.decoder.crf.link_tables[table]
            a, b = self._links[table][row].tolist()
            value = each.table[states[a], states[b]] - each.table[other.get(a, states[a]), other.get(b, states[b])]
            token, end = (a, b) if a in other else (b, a)
            yield _Term("link", token, float(value), (end, table))

    @cached_property
    def _prepared_document(self) -> Document:
        """Document from which features are computed: the result of `herdner.ner.recasing.reader`."""
        return self.decoder.read(self.document)

    @cached_property
    def _unary(self) -> Floats:
        unary = self.decoder.extractor.scores(self._prepared_document.tokens, self.document.sentence_offsets)
        self.evidence.add_to(unary)
        return unary

    @cached_property
    def _network_scores(self) -> Floats:
        """Log-potentials that the neural network adds to the tags of each token, float64[tokens, tags]."""
        tokens, offsets = self._prepared_document.tokens, self.document.sentence_offsets
        return self.decoder.extractor.network_scores(tokens, offsets)

    @cached_property
    def _name_scores(self) -> Floats:
        """Log-potentials that known names add to the tags of each token, float64[tokens, tags]."""
        scores = np.zeros((len(self.document.tokens), len(self.decoder.tags)))
        self.evidence.add_to(scores)
        return scores

    @cached_property
    def _links(self) -> list[Int32s]:
        return self.decoder.crf.links(self._prepared_document.tokens, self.document.sentence_offsets)

    @cached_property
    def _links_at(self) -> dict[int, list[tuple[int, int]]]:
        """Links of each token, as pairs: index of the link rule, and index of the link among the links of this rule."""
        rows: dict[int, list[tuple[int, int]]] = {}
        for table, each in enumerate(self._links):
            for row, ends in enumerate(each.tolist()):
                for token in ends:
                    rows.setdefault(token, []).append((table, row))
        return rows

    def _confidences_without_links(self) -> Floats:
        offsets, decoded = self.document.sentence_offsets, DecodedTags(self._states)
        chain, calibration = self.decoder.without_links().crf, self.decoder.calibration
        inputs = calibration_inputs(chain, self._unary, offsets, (), decoded, Chunks.of(self.spans))
        return inputs.confidence if calibration is None else calibration(inputs)

    # --- descriptions -----------------------------------------------------------------------------------------------

    def _sources(self, tokens: Iterable[int]) -> tuple[_Sources, Describer]:
        """Return the features of the tokens with the indices ``tokens``, and the `Describer` of the document."""
        selected = np.array(sorted(tokens), np.int64)
        describer, starts, keys, origins = Describer.of(
            self.document, self._prepared_document.tokens, self.spans, self.model.plan, self.decoder.extractor, selected
        )
        return _Sources({token: row for row, token in enumerate(selected.tolist())}, starts, keys, origins), describer

    def _explanation(
        self, i: int, label: str | None, terms: Sequence[_Term], describer: Describer, confidence: float
    ) -> Explanation:
        span = self.spans[i]
        values: dict[tuple[PartKind, str, str], list[float]] = {}
        for term in filter(lambda term: term.value, terms):
            has_token = term.kind in ("feature", "network") and span.end - span.start > 1
            token = self.document.tokens[term.token] if has_token else ""
            values.setdefault((term.kind, token, self._description(term, describer)), []).append(term.value)
        parts = [ExplanationPart(kind, math.fsum(own), words, token) for (kind, token, words), own in values.items()]
        largest_first = tuple(sorted((part for part in parts if part.value), key=lambda part: -abs(part.value)))
        sentence, log_odds = describer.sentence(span.start), math.fsum(term.value for term in terms)
        mention, steps = self.document.entities[i], self._steps(i)
        return Explanation(mention, sentence, label, log_odds, largest_first, confidence, steps)

    def _description(self, term: _Term, describer: Describer) -> str:
        if term.kind == "feature":
            template, position = term.at
            return describer.feature(template, term.token, position)
        if term.kind == "link":
            other, table = term.at
            return describer.link(term.token, other, self.decoder.crf.link_tables[table].template.name)
        if term.kind == "network":
            return "neural network, which reads the words around it"
        if term.kind == "name":
            return "known names forbid the alternative" if math.isinf(term.value) else "known names"
        if term.at:
            return describer.border(term.token, term.at == (_START,))
        return describer.transition(term.token)


def weights_of(weights: ChainWeights, keys: NDArray[np.uint64], states: Sequence[int]) -> Floats:
    """Return the model weights of F features for S tags, float64[F, S].

    Args:
        weights: Weights of a model.
        keys: uint64[F], hashes of the features.
        states: Indices of the S tags.

    Returns:
        float64[F, S]; 0 for features without a weight.
    """
    table = np.zeros((len(keys), len(states)))
    feature, entries = weights.entries_of(keys)
    for column, state in enumerate(states):
        of_state = weights.entry_tags[entries] == state
        table[feature[of_state], column] = weights.entry_weights[entries[of_state]]
    return table
