"""Tokenization of texts for the replacement of names, and normal forms in which words are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Scripts that do not separate words by spaces, or attach particles to names. Each character is a token.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
# Marks within words: accents, vowel signs, points and joiners. Python's \w does not contain them.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u200c\u200d"
)
LETTER = rf"[^\W{_UNSPACED}]"
"""Pattern of a letter, digit or underscore of a script with spaces."""

_WORD = rf"{LETTER}+(?:[{_MARKS}]+{LETTER}*)*"

UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]{{2,}}")
"""Two or more characters of scripts without spaces."""

TOKEN = re.compile(rf"{_WORD}|[{_UNSPACED}]|[^\w\s]")
"""Token: a word, one character of a script without spaces, or one punctuation character."""

TOKEN_OR_SPACE = re.compile(rf"{TOKEN.pattern}|\s+")
"""Token or run of white space. The matches of a text cover it completely."""

_JOINING = re.compile(rf"{LETTER}|[{_MARKS}]")  # characters that would form one word with an adjacent pseudonym
_BREAK = re.compile(  # invisible break within a word, or a hyphen at the end of a line
    rf"(?<={LETTER}|[{_MARKS}])(?:[\u00ad\u200b\u2060\ufeff]+|[-\u00ad\u2010]\r?\n[ \t]*)(?={LETTER})"
)
_MAX_PIECES = 6  # of a broken word
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")  # parts of words such as AnaRivera and ana_rivera2


def fold(text: str) -> str:
    """Normalise a text (NFKD), fold its case, and remove combining marks such as accents and vowel signs.

    Args:
        text: The text.

    Returns:
        The folded text; its length may differ.
    """
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return decomposed if decomposed.isascii() else "".join(c for c in decomposed if not unicodedata.combining(c))


def name_key(text: str) -> str:
    """Return the key of a name. Names in different documents are one name if their labels and keys are equal.

    The key is the NFKC-normalised and case-folded text, with single spaces between its words.

    Args:
        text: The name.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def words(text: str) -> Iterator[str]:
    """Yield the folded words of a text; omit numbers and words of a single character.

    Args:
        text: The text.
    """
    for match in TOKEN.finditer(text):
        word = fold(match[0])
        if len(word) > 1 and not word.isdigit() and word[0].isalnum():
            yield word


def without_breaks(text: str) -> str:
    """Join words that a soft hyphen, a zero-width space, or a hyphen at the end of a line divides.

    Args:
        text: The text.

    Returns:
        The text without these breaks.
    """
    return _BREAK.sub("", text)


def broken_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and joined text of each possible word that line-end hyphens or invisible characters divide.

    Every run of up to six pieces is yielded, because a break may also be a hyphen: "Ana-Lind-" before "qvist" on the
    next line contains the broken word "Lindqvist".

    Args:
        text: The text.
    """
    pieces: list[tuple[int, int]] = []
    for match in _BREAK.finditer(text):
        left = widen(text, match.start() - 1, match.start())
        if not pieces or pieces[-1] != left:
            yield from _runs(text, pieces)
            pieces = [left]
        pieces.append(widen(text, match.end(), match.end() + 1))
    yield from _runs(text, pieces)


def _runs(text: str, pieces: list[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    for i in range(len(pieces)):
        for j in range(i + 2, min(i + _MAX_PIECES, len(pieces)) + 1):
            yield pieces[i][0], pieces[j - 1][1], "".join(text[start:end] for start, end in pieces[i:j])


def parts(word: str) -> Iterator[str]:
    """Return an iterator over the folded parts of a word. "AnaRivera" has the parts "ana" and "rivera".

    Args:
        word: A word with capitals, digits or underscores within it.
    """
    return (fold(match[0]) for match in _PART.finditer(word))


def widen(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a range of a text to whole words, so that a pseudonym that replaces the range is a separate token.

    Characters of scripts without spaces do not count as words here.

    Args:
        text: The text.
        start: Offset of the first character.
        end: Offset behind the last character; greater than ``start``.

    Returns:
        Start and end of the widened range.

    Raises:
        ValueError: The range is empty or not within the text.
    """
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"the range to widen must not be empty and must lie within the {len(text)} characters of the text, got"
            f" {start} to {end}"
        )
    while start > 0 and _JOINING.match(text, start - 1):
        start -= 1
    while end < len(text) and _JOINING.match(text, end):
        end += 1
    return start, end


def is_joined(text: str, offset: int) -> bool:
    """Return whether one token contains the characters on both sides of an offset.

    Args:
        text: The text.
        offset: Offset within the text, neither its start nor its end.
    """
    match = TOKEN_OR_SPACE.match(text, offset - 1, offset + 1)
    return match is not None and match.end() > offset
