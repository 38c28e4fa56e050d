"""Token patterns of spaCy's ``Matcher``. spaCy is imported only if there is a pattern."""

# spaCy has incomplete type hints.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from herdner.base.extras import import_extra
from herdner.base.locks import ForkLock
from herdner.text.document import Document

# Attributes of single words. Other attributes need the components of a spaCy pipeline, which do not run here.
ATTRIBUTES = (
    "ORTH", "TEXT", "NORM", "LOWER", "SHAPE", "LENGTH", "IS_ALPHA", "IS_ASCII", "IS_DIGIT", "IS_LOWER", "IS_UPPER",
    "IS_TITLE", "IS_PUNCT", "IS_SPACE", "IS_STOP", "IS_QUOTE", "IS_BRACKET", "IS_LEFT_PUNCT", "IS_RIGHT_PUNCT",
    "IS_CURRENCY", "LIKE_NUM", "LIKE_URL", "LIKE_EMAIL", "SPACY", "OP", "REGEX", "FUZZY",
    *(f"FUZZY{n}" for n in range(1, 10)),
)  # fmt: skip


class TokenPatterns:
    """spaCy token patterns, compiled to search documents.

    Args:
        patterns: Tuples (index, pattern, place); the place is for error messages.
        language: Language code of the word attributes, such as "en".

    Raises:
        ValueError: A pattern is invalid.
        MissingExtra: spaCy is not installed.
    """

    def __init__(self, patterns: Sequence[tuple[int, Sequence[Mapping[str, Any]], str]], language: str) -> None:
        """Compile spaCy token patterns for one language."""
        for _, pattern, place in patterns:
            _check(pattern, place)
        spacy = import_extra("spacy", "patterns of tokens need spaCy")
        matching: Any = import_module("spacy.matcher")
        self._vocab = spacy.blank(language).vocab
        self._doc = import_module("spacy.tokens").Doc
        self._matcher = matching.Matcher(self._vocab, validate=True)
        self._lock = ForkLock()  # spaCy's vocabulary is not thread-safe
        for index, pattern, place in patterns:
            try:
                self._matcher.add(str(index), [[dict(token) for token in pattern]])
            except Exception as error:  # regular expressions raise errors of their own types
                reason = " ".join(str(error).split())
                raise ValueError(f"{place}: spaCy cannot read this pattern ({reason[:200]})") from None

    def matches(self, document: Document) -> list[tuple[int, int, int]]:
        """Return the matches in a document as tuples (start token, end token, pattern index).

        Args:
            document: Document with tokens.
        """
        gaps = np.append(document.token_starts[1:] > document.token_ends[:-1], False)
        with self._lock.current, self._vocab.memory_zone():
            doc = self._doc(self._vocab, words=list(document.tokens), spaces=gaps.tolist())
            strings = self._vocab.strings
            matches = [(start, end, int(strings[key])) for key, start, end in self._matcher(doc)]
        return [match for match in matches if match[1] > match[0]]


def _check(pattern: Sequence[Mapping[str, Any]], place: str) -> None:
    """Raise `ValueError` if a token pattern has an attribute that only a spaCy pipeline can compute."""
    for token in pattern:
        for key in token:
            if str(key).upper() not in ATTRIBUTES:
                names = ", ".join(name for name in ATTRIBUTES[:24] if not name.startswith("IS_"))
                raise ValueError(f"{place}: the attribute {key} needs a spaCy pipeline; use one of {names}, IS_...")
