"""spaCy's split of a run of characters without white space, by spaCy's rules but without spaCy, whose import takes
longer than all else that tagging a page needs.

The algorithm is that of ``spacy.tokenizer.Tokenizer`` (https://spacy.io/usage/linguistic-features#how-tokenizer-works),
and the tokens are the same. `english` reads the rules of spaCy's English from a file of this package; those of other
languages come from spaCy itself.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, filterfalse
from typing import Any, NamedTuple

from herdner.base.extras import import_extra

SURROGATES = re.compile("[\ud800-\udfff]")

Match = Callable[[str], "re.Match[str] | None"]


@dataclass(frozen=True)
class SplitRules:
    """What a language cuts off: regular expressions of prefixes, suffixes and infixes; words that are cut into the
    parts given (``exceptions``); and what is left whole, whatever is in it.
    """

    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]
    infixes: tuple[str, ...]
    exceptions: Mapping[str, tuple[str, ...]]
    is_word: Match | None = None
    is_address: Match | None = None

    def extended(
        self, prefixes: Sequence[str], suffixes: Sequence[str], infixes: Sequence[str], words: Iterable[str]
    ) -> SplitRules:
        """With rules that are tried before these, and words that are never cut."""
        return replace(
            self,
            prefixes=(*prefixes, *self.prefixes),
            suffixes=(*suffixes, *self.suffixes),
            infixes=(*infixes, *self.infixes),
            exceptions={**self.exceptions, **{word: (word,) for word in words}},
        )


def english() -> SplitRules:
    """The rules of spaCy's English (MIT), as ``scripts/models/english_rules.py`` wrote them down."""
    found = json.loads((importlib.resources.files("herdner") / "data" / "english.json").read_text(encoding="utf-8"))
    address = cache(lambda: re.compile(found["address"]))  # when first needed, see `Splitter`
    return SplitRules(
        prefixes=tuple(found["prefixes"]),
        suffixes=tuple(found["suffixes"]),
        infixes=tuple(found["infixes"]),
        exceptions={"".join(parts): tuple(parts) for parts in found["exceptions"]},
        is_address=lambda run: address().match(run),
    )


def spacy_rules(language: str) -> SplitRules:
    """Those of ``spacy.blank(language)``; ValueError where spaCy does not know it, or does not split it by rules."""
    spacy = import_extra("spacy", f"tokens of the language {language!r} need spaCy")
    try:
        nlp: Any = spacy.blank(language)
    except ImportError as error:
        raise ValueError(f"tokenizer language {language!r} is not one that spaCy knows") from error
    defaults, rules = nlp.Defaults, nlp.tokenizer
    if not isinstance(rules, spacy.tokenizer.Tokenizer):
        raise ValueError(f"tokenizer language {language!r}: texts without spaces need a word segmenter")
    orth: int = spacy.symbols.ORTH
    return SplitRules(
        prefixes=tuple(defaults.prefixes or ()),
        suffixes=tuple(defaults.suffixes or ()),
        infixes=tuple(defaults.infixes or ()),
        exceptions={word: tuple(part[orth] for part in parts) for word, parts in rules.rules.items()},
        is_word=rules.token_match,
        is_address=rules.url_match,
    )


class _Span(NamedTuple):
    start: int
    end: int
    word: str


def plain(run: str) -> bool:
    """Whether all are Latin letters, between which no language cuts but in its exceptions."""
    return run.isascii() and run.isalpha()


class Splitter:
    """Callable: a run of characters without white space to its tokens, which are the run when joined."""

    def __init__(self, rules: SplitRules) -> None:
        self._exceptions = dict(rules.exceptions)
        self._is_word, self._is_address = rules.is_word, rules.is_address
        self._rules = rules
        self._joined: dict[str, dict[str, dict[tuple[str, ...], str]]] = {}

    # Compiled when first needed, as most words of a text are plain: it takes longer than to tag a page.

    @cached_property
    def _prefix(self) -> Match:
        return re.compile("|".join(f"^{piece}" for piece in self._rules.prefixes if piece.strip())).search

    @cached_property
    def _suffix(self) -> Match:
        return re.compile("|".join(f"{piece}$" for piece in self._rules.suffixes if piece.strip())).search

    @cached_property
    def _infixes(self) -> Callable[[str], Iterator[re.Match[str]]]:
        return re.compile("|".join(piece for piece in self._rules.infixes if piece.strip())).finditer

    @cached_property
    def _by_first_character(self) -> dict[str, list[str]]:
        """The exceptions that other rules might cut."""
        found: dict[str, list[str]] = {}
        for word in filterfalse(plain, self._exceptions):
            found.setdefault(word[0], []).append(word)
        return found

    def _joined_from(self, token: str) -> Mapping[tuple[str, ...], str]:
        """Exceptions that the other rules would cut, by what they would leave, of which the token is the first: they
        count inside a run too.
        """
        first = token[0]
        if first not in self._joined:
            found: dict[str, dict[tuple[str, ...], str]] = {}
            for word in self._by_first_character.get(first, ()):
                if self._prefix(word) or self._suffix(word) or next(self._infixes(word), None):
                    parts = tuple(self._cut(word, {}))
                    found.setdefault(parts[0], {})[parts] = word
            self._joined[first] = found
        return self._joined[first].get(token, {})

    def __call__(self, run: str) -> tuple[str, ...]:
        seen = run if run.isascii() else SURROGATES.sub("\ufffd", run)  # spaCy cannot encode those that stand alone
        whole = self._exceptions.get(seen)
        if whole is None and plain(seen):
            return (run,)
        tokens = list(self._cut(seen, self._exceptions)) if whole is None else list(whole)
        spans = [
            _Span(start, start + len(parts), word)
            for start in range(len(tokens))
            for parts, word in self._joined_from(tokens[start]).items()
            if tuple(tokens[start : start + len(parts)]) == parts
        ]
        for span in reversed(_apart(spans)):
            tokens[span.start : span.end] = self._exceptions[span.word]
        if seen != run:
            ends = accumulate(map(len, tokens))
            tokens = [run[end - len(token) : end] for token, end in zip(tokens, ends, strict=True)]
        return tuple(tokens)

    def _cut(self, run: str, exceptions: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
        """Prefixes, what is left, suffixes."""
        before: list[str] = []
        after: list[str] = []
        size = 0
        while run and len(run) != size and not (self._is_word and self._is_word(run)) and run not in exceptions:
            size = len(run)
            ahead = _length(self._prefix(run))
            if ahead and run[ahead:] in exceptions:
                before.append(run[:ahead])
                run = run[ahead:]
                break
            behind = _length(self._suffix(run[ahead:]))
            if behind and run[:-behind] in exceptions:
                after.append(run[-behind:])
                run = run[:-behind]
                break
            if behind:
                after.append(run[-behind:])
            if ahead:
                before.append(run[:ahead])
            run = run[ahead : len(run) - behind]
        yield from before
        if run in exceptions:
            yield from exceptions[run]
        elif run:
            yield from self._middle(run)
        yield from reversed(after)

    def _middle(self, run: str) -> Iterator[str]:
        """What is left without prefixes and suffixes, cut at its infixes, unless it is a word or an address."""
        start = 0
        if (
            not plain(run)
            and not (self._is_word and self._is_word(run))
            and not (self._is_address and self._is_address(run))
        ):
            for infix in self._infixes(run):
                first, last = infix.span()
                if first == 0:
                    continue
                yield from filter(None, (run[start:first], run[first:last]))
                start = last
        if start < len(run):
            yield run[start:]


def _length(found: re.Match[str] | None) -> int:
    return 0 if found is None else found.end() - found.start()


def _apart(spans: list[_Span]) -> list[_Span]:
    """Of spans that overlap the longest, and of those the first; ascending."""
    taken: set[int] = set()
    kept: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        if span.start not in taken and span.end - 1 not in taken:
            kept.append(span)
        taken.update(range(span.start, span.end))
    return sorted(kept)
