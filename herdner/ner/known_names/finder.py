"""Known names, compiled for a model: where they stand in a document, and what that adds to its scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from herdner.ner.known_names.evidence import Evidence, Spelling, Support
from herdner.ner.known_names.known import Names
from herdner.ner.known_names.token_patterns import TokenPatterns
from herdner.ner.known_names.trie import Trie, readings
from herdner.text.document import Document
from herdner.text.tags import Scheme, Span, split_tag


class Match(NamedTuple):
    """Tokens ``start:end`` are the entry with this number."""

    start: int
    end: int
    entry: int


class Finder:
    """`Names` for the tags of one model. Threads may share it.

    ``split`` is the model's own tokenizer, which is asked only for texts that it has split itself; in documents that
    came with tokens a name may be cut in several ways (`readings`). ``language`` is that of spaCy's word attributes.

    Raises ValueError for a label that the model does not have, and for patterns that spaCy cannot read.
    """

    def __init__(
        self, names: Names, tags: tuple[str, ...], scheme: Scheme, split: Callable[[str], Sequence[str]], language: str
    ) -> None:
        names.check_labels(split_tag(tag)[1] for tag in tags)
        self._entries, self._fold_case, self._split = names.entries, names.fold_case, split
        self._strengths = list(map(names.strength_of, names.entries))
        self._spelling = Spelling(tags, scheme)
        self._tries: dict[bool, Trie] = {}
        patterns = [(i, e.pattern, e.place) for i, e in enumerate(names.entries) if not isinstance(e.pattern, str)]
        self._patterns = TokenPatterns(patterns, language) if patterns else None

    def __call__(self, document: Document, own_tokens: bool) -> Evidence:
        """What the names say of a document; ``own_tokens``: whether the model's tokenizer made its tokens."""
        return self._spelling.evidence(self.supports(document, own_tokens), document.sentence_offsets)

    def supports(self, document: Document, own_tokens: bool) -> Iterator[Support]:
        """The spans that count, in the order of the text, each with its label and strength."""
        strengths, entries = self._strengths, self._entries
        by_span: dict[tuple[int, int], list[int]] = {}
        for start, end, entry in self._matches(document, own_tokens):
            by_span.setdefault((start, end), []).append(entry)
        settled = {span for span, found in by_span.items() if any(strengths[entry] == math.inf for entry in found)}
        for span in sorted(_disjoint(by_span, settled)):
            found = sorted(set(by_span[span]))
            if span in settled:
                found = [next(entry for entry in found if strengths[entry] == math.inf)]
            best: dict[str, float] = {}
            for entry in found:
                label = entries[entry].label
                best[label] = max(best.get(label, -math.inf), strengths[entry])
            yield from (Support(Span(*span, label), strength) for label, strength in best.items())

    def _matches(self, document: Document, own_tokens: bool) -> Iterator[Match]:
        """All of them, those across the border of a sentence left out."""
        tokens = [token.lower() for token in document.tokens] if self._fold_case else document.tokens
        found = [
            Match(start, end, entry)
            for start, end, entries in self._trie(own_tokens).matches(tokens)
            for entry in entries
        ]
        if self._patterns is not None and document.n_tokens:
            found += [Match(*match) for match in self._patterns.matches(document)]
        ends = document.sentence_offsets[1:]
        return (match for match in found if match.end <= ends[np.searchsorted(ends, match.start, side="right")])

    def _trie(self, own_tokens: bool) -> Trie:
        """The phrases, cut as the document's tokens are; made when first asked for."""
        if own_tokens not in self._tries:
            trie = Trie()
            for number, entry in enumerate(self._entries):
                if isinstance(entry.pattern, str):
                    for tokens in self._readings(entry.pattern, own_tokens):
                        trie.add(tokens, number)
            self._tries[own_tokens] = trie
        return self._tries[own_tokens]

    def _readings(self, name: str, own_tokens: bool) -> Iterable[Sequence[str]]:
        """The tokens of a name; where case is folded also of the name as its text may have it."""
        if not self._fold_case:
            return [self._split(name)] if own_tokens else readings(name)
        cased = dict.fromkeys((name, name.lower(), name.upper(), name.title()))
        found = [tokens for each in cased for tokens in ([self._split(each)] if own_tokens else readings(each))]
        return [[token.lower() for token in tokens] for tokens in found]


def _disjoint(spans: Iterable[tuple[int, int]], before: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of spans that overlap those of ``before`` first, then the longest, then the first in the text."""
    taken: set[int] = set()
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span not in before, span[0] - span[1], span[0])):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            chosen.append((start, end))
    return chosen
