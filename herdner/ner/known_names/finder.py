"""Known names compiled for a model: matches in a document and their evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import numpy as np

from herdner.ner.known_names.evidence import Evidence, SpanEncoder, SpanEvidence
from herdner.ner.known_names.known import Names
from herdner.ner.known_names.token_patterns import TokenPatterns
from herdner.ner.known_names.trie import Trie, tokenizations
from herdner.text.document import Document
from herdner.text.tags import Scheme, Span, labels_of


class Finder:
    """Search for known names in documents, compiled for the tags of one model. Threads may share it.

    Args:
        names: The known names.
        tags: Tags of the model, in the order of its tables.
        scheme: Scheme of the tags.
        split: Tokenizer of the model. It splits the names that are searched in documents with tokens of this
            tokenizer. In other documents, each name is searched in several tokenizations (`tokenizations`).
        language: Language code of spaCy's word attributes, for token patterns.

    Raises:
        ValueError: The model lacks the label of a name, or spaCy cannot read a pattern.
    """

    def __init__(
        self, names: Names, tags: tuple[str, ...], scheme: Scheme, split: Callable[[str], Sequence[str]], language: str
    ) -> None:
        """Compile the token patterns of the known names.

        The tries of all other names are lazily initialised.
        """
        names.check_labels(labels_of(tags))
        self._entries, self._fold_case, self._split = names.entries, names.fold_case, split
        self._strengths = list(map(names.strength_of, names.entries))
        self._encoder = SpanEncoder(tags, scheme)
        self._tries: dict[bool, Trie] = {}
        patterns = [(i, e.pattern, e.place) for i, e in enumerate(names.entries) if not isinstance(e.pattern, str)]
        self._patterns = TokenPatterns(patterns, language) if patterns else None

    @property
    def has_constraints(self) -> bool:
        """True if a known name has the strength ``inf``."""
        return math.inf in self._strengths

    def __call__(self, document: Document, own_tokens: bool, spans: Sequence[Span] | None = None) -> Evidence:
        """Return the changes of log-potentials that the known names in a document cause.

        Args:
            document: Document with tokens.
            own_tokens: True if the tokens come from the tokenizer of the model.
            spans: Spans of the names that the model finds without constraints. A constraint that is only a
                part of one of these spans has no effect. None: all constraints are left out.

        Raises:
            ValueError: The tags of the model cannot encode the span of a constraint.
        """
        evidence = self.span_evidence(document, own_tokens, spans)
        return self._encoder.evidence(evidence, document.sentence_offsets)

    def span_evidence(
        self, document: Document, own_tokens: bool, spans: Sequence[Span] | None = ()
    ) -> Iterator[SpanEvidence]:
        """Yield, in text order, the evidence that known names give for labels of spans.

        If matches overlap, only the match with the highest precedence counts (`disjoint_spans`).

        Args:
            document: The document.
            own_tokens: True if the tokens of the document are those of the model's tokenizer.
            spans: Spans of the names that the model finds without constraints. A constraint that is only a part of one
                of these spans has no effect. None: all constraints are left out.
        """
        strengths, entries = self._strengths, self._entries
        by_span: dict[tuple[int, int], list[int]] = {}
        for start, end, entry in self._matches(document, own_tokens):
            by_span.setdefault((start, end), []).append(entry)
        constraints = {span for span, own in by_span.items() if any(strengths[entry] == math.inf for entry in own)}
        inside = constraints if spans is None else _inside_longer(constraints, spans)
        by_span = {span: own for span, own in by_span.items() if span not in inside}
        constraints -= inside
        for span in sorted(disjoint_spans(by_span, constraints)):
            own = sorted(set(by_span[span]))
            if span in constraints:
                own = [next(entry for entry in own if strengths[entry] == math.inf)]
            best: dict[str, float] = {}
            for entry in own:
                label = entries[entry].label
                best[label] = max(best.get(label, -math.inf), strengths[entry])
            yield from (SpanEvidence(Span(*span, label), strength) for label, strength in best.items())

    def has_constraint_in(self, document: Document, own_tokens: bool) -> bool:
        """Return True if a known name with the strength ``inf`` occurs in a document.

        Args:
            document: The document.
            own_tokens: True if the tokens of the document are those of the model's tokenizer.
        """
        return any(strength == math.inf for _, strength in self.span_evidence(document, own_tokens))

    def _matches(self, document: Document, own_tokens: bool) -> Iterator[tuple[int, int, int]]:
        """Return all matches of known names within a sentence: first token, token after the last one, index of name."""
        tokens = [token.lower() for token in document.tokens] if self._fold_case else document.tokens
        in_tries = self._trie(own_tokens).matches(tokens)
        matches = [(start, end, entry) for start, end, entries in in_tries for entry in entries]
        if self._patterns is not None and document.n_tokens:
            matches += self._patterns.matches(document)
        ends = document.sentence_offsets[1:]
        return (
            (start, end, entry)
            for start, end, entry in matches
            if end <= ends[np.searchsorted(ends, start, side="right")]
        )

    def _trie(self, own_tokens: bool) -> Trie:
        """Return a trie of the known names, tokenized like the document. It is lazily initialised."""
        if own_tokens not in self._tries:
            trie = Trie()
            for index, entry in enumerate(self._entries):
                if isinstance(entry.pattern, str):
                    for tokens in self._tokenizations(entry.pattern, own_tokens):
                        trie.add(tokens, index)
            self._tries[own_tokens] = trie
        return self._tries[own_tokens]

    def _tokenizations(self, name: str, own_tokens: bool) -> Iterable[Sequence[str]]:
        """Return the possible tokenizations of a name.

        If case is ignored, they include the tokenizations of the name in lower, upper and title case.
        """
        if not self._fold_case:
            return [self._split(name)] if own_tokens else tokenizations(name)
        cased = dict.fromkeys((name, name.lower(), name.upper(), name.title()))
        variants = [tokens for each in cased for tokens in ([self._split(each)] if own_tokens else tokenizations(each))]
        return [[token.lower() for token in tokens] for tokens in variants]


def _inside_longer(constraints: set[tuple[int, int]], spans: Iterable[Span]) -> set[tuple[int, int]]:
    """Return the constraints inside longer spans; ignore a span that equals or only partly overlaps a constraint."""
    inside: set[tuple[int, int]] = set()
    for start, end, _ in spans:
        touching = {each for each in constraints if each[0] < end and start < each[1]}
        if all(start <= a and b <= end and (a, b) != (start, end) for a, b in touching):
            inside |= touching
    return inside


def disjoint_spans(
    spans: Iterable[tuple[int, int]], constraints: Container[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Select disjoint spans. Spans in ``constraints`` take precedence, then longer spans, then earlier spans.

    Args:
        spans: Start and end of each span.
        constraints: Those of the spans that match a known name with the strength ``inf``.

    Returns:
        Start and end of each selected span, in the order of their precedence.
    """
    covered: set[int] = set()
    selected: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span not in constraints, span[0] - span[1], span[0])):
        if covered.isdisjoint(range(start, end)):
            covered.update(range(start, end))
            selected.append((start, end))
    return selected
