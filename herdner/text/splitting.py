"""Tokenization of strings without white space by spaCy's algorithm and rules, without importing spaCy.

The algorithm is that of ``spacy.tokenizer.Tokenizer`` (https://spacy.io/usage/linguistic-features#how-tokenizer-works)
and gives the same tokens. `shipped_rules` reads spaCy's rules for the languages of the shipped models from data files;
the rules of other languages come from spaCy itself. Importing spaCy would take longer than tagging a page.
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

MatchFunction = Callable[[str], "re.Match[str] | None"]


@dataclass(frozen=True)
class SplitRules:
    """Rules by which a tokenizer splits words: prefixes, suffixes, infixes and exceptions of a language.

    Attributes:
        prefixes: Regular expressions of tokens that are split off at the start of a word.
        suffixes: Regular expressions of tokens that are split off at the end of a word.
        infixes: Regular expressions of tokens at which a word is split in the middle.
        exceptions: Dict from a word to its tokens, which takes precedence over the other rules.
        is_word: Matches words that are never split.
        is_address: Matches addresses, which are not split at infixes.
    """

    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]
    infixes: tuple[str, ...]
    exceptions: Mapping[str, tuple[str, ...]]
    is_word: MatchFunction | None = None
    is_address: MatchFunction | None = None

    def extend(
        self, prefixes: Sequence[str], suffixes: Sequence[str], infixes: Sequence[str], words: Iterable[str]
    ) -> SplitRules:
        """Return the rules, extended by further prefixes, suffixes and infixes, and by words that are never split.

        Args:
            prefixes: Regular expressions that are tried before the present ones.
            suffixes: Regular expressions that are tried before the present ones.
            infixes: Regular expressions that are tried before the present ones.
            words: Words that are never split.

        Returns:
            The extended rules.
        """
        return replace(
            self,
            prefixes=(*prefixes, *self.prefixes),
            suffixes=(*suffixes, *self.suffixes),
            infixes=(*infixes, *self.infixes),
            exceptions={**self.exceptions, **{word: (word,) for word in words}},
        )


LANGUAGES_WITH_RULES = {
    "da": "danish", "de": "german", "en": "english", "nb": "norwegian", "pt": "portuguese", "sv": "swedish"
}  # fmt: skip
"""Languages of the shipped models, and the names of their files of rules."""


def shipped_rules(language: str) -> SplitRules:
    """Return spaCy's tokenizer rules (MIT licence) for the language of a shipped model.

    They are exported by ``scripts/models/tokenizer_rules.py``.

    Args:
        language: A key of `LANGUAGES_WITH_RULES`.
    """
    file = importlib.resources.files("herdner") / "data" / f"{LANGUAGES_WITH_RULES[language]}.json"
    rules = json.loads(file.read_text(encoding="utf-8"))
    address = cache(lambda: re.compile(rules["address"]))  # lazily, see `Splitter`
    return SplitRules(
        prefixes=tuple(rules["prefixes"]),
        suffixes=tuple(rules["suffixes"]),
        infixes=tuple(rules["infixes"]),
        exceptions={"".join(parts): tuple(parts) for parts in rules["exceptions"]},
        is_address=lambda run: address().match(run),
    )


def spacy_rules(language: str) -> SplitRules:
    """Return spaCy's tokenizer rules for a language.

    Args:
        language: Language code, as for ``spacy.blank``.

    Returns:
        The rules.

    Raises:
        ValueError: spaCy does not know the language or does not tokenize it by rules.
        MissingExtra: spaCy is not installed.
    """
    spacy = import_extra("spacy", f"tokens of the language {language!r} need spaCy")
    try:
        nlp: Any = spacy.blank(language)
    except ImportError as error:
        problem = f"tokenizer language {language!r}: spaCy does not know this language"
        raise ValueError(f"{problem}; expected a code such as 'en'") from error
    defaults, tokenizer = nlp.Defaults, nlp.tokenizer
    if not isinstance(tokenizer, spacy.tokenizer.Tokenizer):
        problem = f"tokenizer language {language!r}: herdner has no word segmenter for texts without spaces"
        raise ValueError(f"{problem}; split the texts into tokens yourself, and use the language 'xx'")
    orth: int = spacy.symbols.ORTH
    return SplitRules(
        prefixes=tuple(defaults.prefixes or ()),
        suffixes=tuple(defaults.suffixes or ()),
        infixes=tuple(defaults.infixes or ()),
        exceptions={word: tuple(part[orth] for part in parts) for word, parts in tokenizer.rules.items()},
        is_word=tokenizer.token_match,
        is_address=tokenizer.url_match,
    )


class _ExceptionSpan(NamedTuple):
    start: int
    end: int
    word: str


def is_plain(run: str) -> bool:
    """Return whether a string contains only ASCII letters, so that only a tokenizer exception can split it.

    Args:
        run: The string.
    """
    return run.isascii() and run.isalpha()


class Splitter:
    """Callable that splits a string without white space into tokens.

    Args:
        rules: Rules of the language.
    """

    def __init__(self, rules: SplitRules) -> None:
        """Store the tokenizer rules. Their regular expressions are lazily initialised."""
        self._exceptions = dict(rules.exceptions)
        self._is_word, self._is_address = rules.is_word, rules.is_address
        self._rules = rules
        self._joined: dict[str, dict[str, dict[tuple[str, ...], str]]] = {}

    # Lazily initialised: compiling takes longer than tagging a page, and most words need no regular expression.

    @cached_property
    def _prefix(self) -> MatchFunction:
        return re.compile("|".join(f"^{piece}" for piece in self._rules.prefixes if piece.strip())).search

    @cached_property
    def _suffix(self) -> MatchFunction:
        return re.compile("|".join(f"{piece}$" for piece in self._rules.suffixes if piece.strip())).search

    @cached_property
    def _infixes(self) -> Callable[[str], Iterator[re.Match[str]]]:
        return re.compile("|".join(piece for piece in self._rules.infixes if piece.strip())).finditer

    @cached_property
    def _by_first_character(self) -> dict[str, list[str]]:
        """Dict from a character to the exceptions that begin with this character and that other rules might split."""
        words: dict[str, list[str]] = {}
        for word in filterfalse(is_plain, self._exceptions):
            words.setdefault(word[0], []).append(word)
        return words

    def _split_exceptions(self, token: str) -> Mapping[tuple[str, ...], str]:
        """Return the tokenizer exceptions whose first part would be ``token`` if the other rules split them.

        The keys of the result are the parts, its values the exceptions. spaCy also applies exceptions within a longer
        string.
        """
        first = token[0]
        if first not in self._joined:
            by_token: dict[str, dict[tuple[str, ...], str]] = {}
            for word in self._by_first_character.get(first, ()):
                if self._prefix(word) or self._suffix(word) or next(self._infixes(word), None):
                    parts = tuple(self._cut(word, {}))
                    by_token.setdefault(parts[0], {})[parts] = word
            self._joined[first] = by_token
        return self._joined[first].get(token, {})

    def __call__(self, run: str) -> tuple[str, ...]:
        """Split a string without white space into tokens whose concatenation is the string."""
        valid = run if run.isascii() else SURROGATES.sub("\ufffd", run)  # spaCy cannot encode lone surrogates
        whole = self._exceptions.get(valid)
        if whole is None and is_plain(valid):
            return (run,)
        tokens = list(self._cut(valid, self._exceptions)) if whole is None else list(whole)
        spans = [
            _ExceptionSpan(start, start + len(parts), word)
            for start in range(len(tokens))
            for parts, word in self._split_exceptions(tokens[start]).items()
            if tuple(tokens[start : start + len(parts)]) == parts
        ]
        for span in reversed(_without_overlaps(spans)):
            tokens[span.start : span.end] = self._exceptions[span.word]
        if valid != run:
            ends = accumulate(map(len, tokens))
            tokens = [run[end - len(token) : end] for token, end in zip(tokens, ends, strict=True)]
        return tuple(tokens)

    def _cut(self, run: str, exceptions: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
        """Split off all prefixes and suffixes of a string, then split the remainder at infixes."""
        before: list[str] = []
        after: list[str] = []
        size = 0
        while run and len(run) != size and not (self._is_word and self._is_word(run)) and run not in exceptions:
            size = len(run)
            n_prefix = _length(self._prefix(run))
            if n_prefix and run[n_prefix:] in exceptions:
                before.append(run[:n_prefix])
                run = run[n_prefix:]
                break
            n_suffix = _length(self._suffix(run[n_prefix:]))
            if n_suffix and run[:-n_suffix] in exceptions:
                after.append(run[-n_suffix:])
                run = run[:-n_suffix]
                break
            if n_suffix:
                after.append(run[-n_suffix:])
            if n_prefix:
                before.append(run[:n_prefix])
            run = run[n_prefix : len(run) - n_suffix]
        yield from before
        if run in exceptions:
            yield from exceptions[run]
        elif run:
            yield from self._middle(run)
        yield from reversed(after)

    def _middle(self, run: str) -> Iterator[str]:
        """Split a string at its infixes, unless it is a web address or a word that the rules keep whole."""
        start = 0
        if (
            not is_plain(run)
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


def _length(match: re.Match[str] | None) -> int:
    return 0 if match is None else match.end() - match.start()


def _without_overlaps(spans: list[_ExceptionSpan]) -> list[_ExceptionSpan]:
    """Return, in ascending order, the spans that overlap neither a longer span nor an earlier span of equal length."""
    covered: set[int] = set()
    kept: list[_ExceptionSpan] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        if span.start not in covered and span.end - 1 not in covered:
            kept.append(span)
        covered.update(range(span.start, span.end))
    return sorted(kept)
