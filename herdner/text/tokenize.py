"""Tokenization with character offsets by spaCy's rules.

A text is divided at white space, and each string between white space is split separately. The tokens of a string are
cached, so that a repeated string costs one look-up; tokenization takes a tenth of the time that spaCy needs. The
tokenizer has the rules of ``spacy.blank(language)`` and the additions below. A full cache is emptied, so that memory
does not grow with the number of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext.strings import Strings
from herdner._ext.text import Runs
from herdner.base.checks import check_text
from herdner.base.locks import ForkLock
from herdner.text.document import Document, document_from_valid_offsets
from herdner.text.sentences import ENGLISH, SentenceRules
from herdner.text.splitting import LANGUAGES_WITH_RULES, Splitter, shipped_rules, spacy_rules

# News texts contain "U.S.-led", "U.S./Mexico", "(AP)-based", "--Paris", "``Moi" and "NAIROBI--", and byte-order marks
# and zero-width spaces copied from web pages. spaCy's English rules do not split these from the name, and neither marks
# of footnotes ("Smith[1]", "Smith[^2]", "Smith³", "Smith†"), bullets ("•Smith") and single guillemets ("‹Smith›").
INVISIBLE = "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]"
FOOTNOTE = r"\[\^?\d{1,4}\]"
RAISED = "[¹²³⁰⁴-⁹]+"
PREFIXES = ("``", r"-+(?=[^\W\d])", r"[|~]", INVISIBLE, FOOTNOTE, RAISED, "[•‣·→►‹›†‡]")
SUFFIXES = (
    "``",
    r"(?<=[\w.])-+",
    r"[|~]",
    r"(?<=A/S)\.",
    INVISIBLE,
    FOOTNOTE,
    r"(?<=[^\W\d])\[[a-z]\]",
    RAISED,
    "[†‡›‹]",
)
INFIXES = (
    r"(?<=[^\W\d]\.)[-/](?=[^\W\d])",
    r"(?<=[^\W\d])[)\]]-?(?=[^\W\d])|(?<=[)\]])-(?=[^\W\d])",
    r"(?<=[^\W\d])(?:(?<!&amp)(?<!&[A-Za-z]{4})(?<!&[A-Za-z]{5})(?<!&[A-Za-z]{6});|[”»›][–—]|[–—][“«‹])(?=[^\W\d])",
    r"\|",
    INVISIBLE,
)
# Designators of companies that spaCy's rules of some languages split. Their full stop does not end a sentence.
DESIGNATORS = tuple(
    "A.m.b.a. A/S Bhd. Cia. Cie. G.m.b.H. Lda. Ltda. Pte. Pty. S.p.A. S.r.l. Sdn. a.s. d.o.o. m.b.H. r.l."  # noqa: SIM905
    " s.r.o.".split()
)
# Strings without white space that are longer than this are split into pieces before the rules are applied, after a
# punctuation mark if possible, because the time of prefix and suffix rules grows with the square of the length.
LONGEST_RUN = 128
PIECE = re.compile(rf"(?s).{{1,{LONGEST_RUN}}}(?<=\W)|.{{1,{LONGEST_RUN}}}")


@dataclass(frozen=True)
class TokenizerSettings:
    """Settings of a tokenizer. They are stored in model files, so that a model always tokenizes in the same way.

    They contain no regular expressions, because one from a hostile file could run forever.

    Attributes:
        language: Language code of two or three letters.
        rules: Version of the rules of this module.
        sentences: Rules of sentence segmentation.

    Raises:
        ValueError: The language code or the version of the rules is invalid.
    """

    language: str = "en"
    rules: int = 1
    sentences: SentenceRules = ENGLISH

    def __post_init__(self) -> None:
        """Check the values of the tokenizer settings."""
        if self.rules != 1:
            raise ValueError(f"the tokenizer rules must have version 1, got {self.rules!r}; install a newer herdner")
        if not re.fullmatch("[a-z]{2,3}", self.language):
            raise ValueError(
                f"tokenizer language {self.language!r}: expected a code of two or three letters, as in 'en'"
            )

    @classmethod
    def of_language(cls, language: str) -> TokenizerSettings:
        """Return the settings for training in a language: the sentence rules of English, or rules without word lists.

        Args:
            language: Language code of two or three letters.

        Returns:
            The tokenizer settings.

        Raises:
            ValueError: The language code is invalid.
        """
        return cls(language, sentences=ENGLISH if language == "en" else SentenceRules())

    def to_dict(self) -> dict[str, Any]:
        """Return the tokenizer settings as a dict for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TokenizerSettings:
        """Build tokenizer settings from the dict that ``to_dict`` returns.

        Args:
            values: Values by the names of the attributes.

        Returns:
            The settings.

        Raises:
            ValueError: A key is unknown or a value is invalid.
        """
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"tokenizer settings: unknown key {sorted(unknown)[0]!r}; install a newer herdner")
        if values.get("sentences") is not None:
            values = {**values, "sentences": SentenceRules.from_dict(values["sentences"])}
        return cls(**{key: value for key, value in values.items() if value is not None})


class Tokenizer:
    """Callable that converts a text to a `Document` with tokens and sentences.

    Any text is accepted, including NULs, lone surrogates and millions of characters without white space (which are
    split into pieces of at most ``LONGEST_RUN`` characters). The text itself is not changed. Threads may share a
    tokenizer. It can be pickled and copied without its cache.

    Args:
        settings: The settings; the default is English.
        cache_characters: Total length of cached strings at which the cache is emptied, in characters.
    """

    def __init__(self, settings: TokenizerSettings | None = None, *, cache_characters: int = 2_000_000) -> None:
        """Store the tokenizer settings. The rules are lazily initialised."""
        self.settings = settings or TokenizerSettings()
        self._cache_characters = cache_characters
        self._splits = Strings()
        self._cached_characters = 0
        self._lock = ForkLock()  # reentrant, because a signal handler may tokenize

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling of the tokenizer; its cache is not pickled."""
        return partial(Tokenizer, cache_characters=self._cache_characters), (self.settings,)

    def documents(self, texts: Iterable[str]) -> Iterator[Document]:
        """Tokenize an iterable of texts lazily, one text at a time.

        Args:
            texts: The texts, which are read one at a time.

        Returns:
            An iterator over the documents.
        """
        return map(self, texts)

    def __call__(self, text: str, id: str | None = None) -> Document:
        """Convert a text to a document with tokens and sentences.

        Args:
            text: The text.
            id: Identifier of the document.

        Returns:
            A document with tokens and sentences, without annotation.

        Raises:
            TypeError: ``text`` is not a string.
        """
        return self.tokenize_batch([check_text(text, "text")], id)[0]

    def tokenize_batch(self, texts: list[str], id: str | None = None) -> list[Document]:
        """Tokenize several texts in one call, which is faster than one call for each text.

        Args:
            texts: The texts.
            id: Identifier of all documents.

        Returns:
            One document for each text.
        """
        find = self.settings.sentences.loop.offsets
        pairs = zip(texts, self._with_offsets(texts), strict=True)
        return [document_from_valid_offsets(text, *tokens, find(text, *tokens), id) for text, tokens in pairs]

    def load_rules(self) -> None:
        """Load the rules of the language now, rather than when the first text is tokenized.

        Raises:
            ValueError: spaCy does not know the language or does not tokenize it by rules.
            MissingExtra: spaCy is not installed, and herdner does not contain the rules of the language.
        """
        _ = self._splitter

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text as strings.

        Args:
            text: The text.
        """
        return self._with_offsets([check_text(text, "text")])[0][0]

    def _with_offsets(self, texts: list[str]) -> list[tuple[list[str], NDArray[np.int64], NDArray[np.int64]]]:
        with self._lock.current:
            runs = Runs(texts, self._splits)
            if unknown := runs.unknown():
                self._split(unknown, runs)
                if self._cached_characters > self._cache_characters:
                    self._splits, self._cached_characters = Strings(), 0
        return runs.tokens_with_offsets()

    def _split(self, words: Iterable[str], runs: Runs) -> None:
        """Split words into tokens and add the tokens to the cache.

        A long word is split into pieces first, and its tokens are stored for the current texts only.
        """
        parts = runs.splits
        for word in words:
            if len(word) > LONGEST_RUN:
                pieces = PIECE.findall(word)
                self._split(pieces, runs)
                runs.long[word] = tuple(chain.from_iterable(map(parts.get, pieces)))
            elif parts.get(word) is None:
                parts.add(word, self._splitter(word))
                self._cached_characters += len(word)

    @cached_property
    def _splitter(self) -> Splitter:  # lazily initialised: tokenized documents need no rules
        language, words = self.settings.language, self.settings.sentences.abbreviations
        rules = shipped_rules(language) if language in LANGUAGES_WITH_RULES else spacy_rules(language)
        return Splitter(rules.extend(PREFIXES, SUFFIXES, INFIXES, (*DESIGNATORS, *words)))


def tokenize_documents(documents: Iterable[Document], tokenizer: Callable[[str], Document]) -> Iterator[Document]:
    """Tokenize the documents that have no tokens; return all documents in the given order.

    Args:
        documents: Documents; documents that already have tokens stay unchanged.
        tokenizer: The tokenizer.

    Returns:
        An iterator over the documents with tokens and sentences; entities are projected to tokens.
    """
    return (with_tokens(document, tokenizer) for document in documents)


def with_tokens(document: str | Document, tokenizer: Callable[[str], Document]) -> Document:
    """Tokenize a text or document. A document that already has tokens is returned unchanged.

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
        row=document.row,
        computed_parts=document.computed_parts | {"tokens"},
    )
    if document.spans is None:
        return tokenized
    return (tokenized.with_entities if document.is_annotated else tokenized.with_proposals)(document.entities)
