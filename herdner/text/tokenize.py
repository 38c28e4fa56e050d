"""Text to tokens with character offsets: spaCy's rules, applied once per distinct word.

Every run of characters between white space is split on its own, so the split of a run is worked out once and kept;
repeated runs cost a look-up, a tenth of the time of calling spaCy on the whole text. The rules are those of
``spacy.blank(language)`` with the additions below. The cache is emptied when it is full, so memory does not grow with
the stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import chain
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext.strings import Strings
from herdner._ext.text import Runs
from herdner.text.document import Document
from herdner.text.sentences import ENGLISH, SentenceRules
from herdner.text.splitting import Splitter, english, spacy_rules

# News writes "U.S.-led", "U.S./Mexico", "(AP)-based", "--Paris", "``Moi", "NAIROBI--" and copies byte-order marks and
# zero-width spaces from web pages. spaCy's English rules leave these glued to the name.
INVISIBLE = "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]"
PREFIXES = ("``", r"-+(?=[^\W\d])", r"[|~]", INVISIBLE)
SUFFIXES = ("``", r"(?<=[\w.])-+", r"[|~]", INVISIBLE)
INFIXES = (r"(?<=[^\W\d]\.)[-/](?=[^\W\d])", r"(?<=[^\W\d])[)\]]-?(?=[^\W\d])|(?<=[)\]])-(?=[^\W\d])", r"\|", INVISIBLE)
# Runs without white space longer than this are cut before the rules see them, behind a punctuation mark where one is
# near: rules of affixes take time that grows with the square of the length.
LONGEST_RUN = 128
PIECE = re.compile(rf"(?s).{{1,{LONGEST_RUN}}}(?<=\W)|.{{1,{LONGEST_RUN}}}")


@dataclass(frozen=True)
class TokenizerSettings:
    """What a model file carries, so that an old model reads text as it always did; only names, numbers and words.

    Regular expressions are never taken from a file (a hostile one could run for ever): ``rules`` numbers the set of
    this module, and an unknown number is an error that names the remedy.
    """

    language: str = "en"
    rules: int = 1
    sentences: SentenceRules = ENGLISH

    def __post_init__(self) -> None:
        if self.rules != 1:
            raise ValueError(f"tokenizer rules {self.rules!r}: this herdner knows set 1; install a newer herdner")
        if not re.fullmatch("[a-z]{2,3}", self.language):
            raise ValueError(
                f"tokenizer language {self.language!r}: expected a code of two or three letters, as in 'en'"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TokenizerSettings:
        """The inverse of ``to_dict``; ValueError names a key that is not known."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"tokenizer settings: unknown key {sorted(unknown)[0]!r}; install a newer herdner")
        given: dict[str, Any] = dict(values)
        sentences: dict[str, Any] | None = given.pop("sentences", None)
        return cls(**given, sentences=ENGLISH if sentences is None else SentenceRules.from_dict(sentences))


class Tokenizer:
    """Callable: text to ``Document`` (tokens, offsets, sentences; no tags).

    The text is kept as it is. Any text is accepted: NULs, lone surrogates, runs of millions of characters without white
    space (cut as described at ``LONGEST_RUN``). A text without tokens gives a document without sentences.
    Threads may share an instance; it can be pickled and copied (the cache stays behind).
    """

    def __init__(self, settings: TokenizerSettings | None = None, *, cache_characters: int = 2_000_000) -> None:
        self.settings = settings or TokenizerSettings()
        self._cache_characters = cache_characters
        self._splits = Strings()
        self._cached_characters = 0
        self._lock = RLock()  # held while words are looked up and split; a handler of signals may tag meanwhile

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.settings, self._cache_characters)

    def documents(self, texts: Iterable[str]) -> Iterator[Document]:
        """One document per text, in order; reads ahead by none."""
        return map(self, texts)

    def __call__(self, text: str, id: str | None = None) -> Document:
        return self.together([text], id)[0]

    def together(self, texts: list[str], id: str | None = None) -> list[Document]:
        """The documents of several texts, in less time than one by one."""
        find = self.settings.sentences.loop.offsets
        placed = zip(texts, self._placed(texts), strict=True)
        return [Document(text, *places, find(text, *places), id=id) for text, places in placed]

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, without offsets."""
        return self._placed([text])[0][0]

    def _placed(self, texts: list[str]) -> list[tuple[list[str], NDArray[np.int64], NDArray[np.int64]]]:
        with self._lock:
            runs = Runs(texts, self._splits)
            if unknown := runs.unknown():
                self._learn(unknown, runs)
                if self._cached_characters > self._cache_characters:
                    self._splits, self._cached_characters = Strings(), 0
        return runs.placed()

    def _learn(self, words: Iterable[str], runs: Runs) -> None:
        """Keeps the parts of each of them; long ones are split piece by piece and stay among these runs."""
        parts = runs.splits.values
        for word in words:
            if len(word) > LONGEST_RUN:
                pieces = PIECE.findall(word)
                self._learn(pieces, runs)
                runs.long[word] = tuple(chain.from_iterable(map(parts.__getitem__, pieces)))
            elif word not in parts:
                runs.splits.add(word, self._splitter(word))
                self._cached_characters += len(word)

    @cached_property
    def _splitter(self) -> Splitter:  # late: a document that is already split into tokens needs no rules
        language, words = self.settings.language, self.settings.sentences.abbreviations
        rules = english() if language == "en" else spacy_rules(language)
        return Splitter(rules.extended(PREFIXES, SUFFIXES, INFIXES, words))


def _restore(settings: TokenizerSettings, cache_characters: int) -> Tokenizer:
    return Tokenizer(settings, cache_characters=cache_characters)


def tokenize_documents(documents: Iterable[Document], tokenizer: Callable[[str], Document]) -> Iterator[Document]:
    """Tokenize documents that have no tokens.

    Args:
        documents: Documents; those with tokens stay unchanged.
        tokenizer: The tokenizer.

    Returns:
        An iterator over the documents with tokens and sentences; entities are projected to tokens.
    """
    return (with_tokens(document, tokenizer) for document in documents)


def with_tokens(document: str | Document, tokenizer: Callable[[str], Document]) -> Document:
    """Tokenize a text, or a document unless it has tokens.

    Args:
        document: A text or a document.
        tokenizer: The tokenizer.

    Returns:
        A document with tokens and sentences; entities are projected to tokens.
    """
    if isinstance(document, str):
        return tokenizer(document)
    if len(document.tokens):
        return document
    tokenized = replace(
        tokenizer(document.text),
        id=document.id,
        fields=document.fields,
        partial=document.partial,
        source_map=document.source_map,
    )
    if document.spans is None:
        return tokenized
    return (tokenized.with_entities if document.is_annotated else tokenized.with_proposals)(document.entities)
