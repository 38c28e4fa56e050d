"""Patterns of tokens, by spaCy's ``Matcher``; spaCy is imported only where there is one."""

# spaCy has types in parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from herdner.base.extras import import_extra

if TYPE_CHECKING:
    from herdner.text.document import Document

# What a word says by itself; the other attributes are those that a pipeline's components set.
ATTRIBUTES = (
    "ORTH", "TEXT", "NORM", "LOWER", "SHAPE", "LENGTH", "IS_ALPHA", "IS_ASCII", "IS_DIGIT", "IS_LOWER", "IS_UPPER",
    "IS_TITLE", "IS_PUNCT", "IS_SPACE", "IS_STOP", "IS_QUOTE", "IS_BRACKET", "IS_LEFT_PUNCT", "IS_RIGHT_PUNCT",
    "IS_CURRENCY", "LIKE_NUM", "LIKE_URL", "LIKE_EMAIL", "SPACY", "OP", "REGEX", "FUZZY",
    *(f"FUZZY{n}" for n in range(1, 10)),
)  # fmt: skip


class TokenPatterns:
    """Compiled patterns, each with a number and the place it comes from, for messages."""

    def __init__(self, patterns: Sequence[tuple[int, Sequence[Mapping[str, Any]], str]], language: str) -> None:
        for _, pattern, place in patterns:
            _check(pattern, place)
        spacy = import_extra("spacy", "patterns of tokens need spaCy")
        matching: Any = import_module("spacy.matcher")
        self._vocab = spacy.blank(language).vocab
        self._doc = import_module("spacy.tokens").Doc
        self._matcher = matching.Matcher(self._vocab, validate=True)
        self._lock = Lock()  # spaCy's vocabulary is not for several threads
        for number, pattern, place in patterns:
            try:
                self._matcher.add(str(number), [[dict(token) for token in pattern]])
            except Exception as error:  # of whatever kind: regular expressions have errors of their own
                said = " ".join(str(error).split())
                raise ValueError(f"{place}: spaCy cannot read this pattern ({said[:200]})") from None

    def matches(self, document: Document) -> list[tuple[int, int, int]]:
        """Start, end and number of each match among the document's tokens."""
        gaps = np.append(document.token_starts[1:] > document.token_ends[:-1], False)
        with self._lock, self._vocab.memory_zone():
            doc = self._doc(self._vocab, words=list(document.tokens), spaces=gaps.tolist())
            strings = self._vocab.strings
            found = [(start, end, int(strings[key])) for key, start, end in self._matcher(doc)]
        return [match for match in found if match[1] > match[0]]


def _check(pattern: Sequence[Mapping[str, Any]], place: str) -> None:
    """ValueError for attributes that tokens without a pipeline do not have."""
    for token in pattern:
        for key in token:
            if str(key).upper() not in ATTRIBUTES:
                said = ", ".join(name for name in ATTRIBUTES[:24] if not name.startswith("IS_"))
                raise ValueError(
                    f"{place}: the pattern asks for {key}, which tokens here do not have; they have {said} and IS_..."
                )
