"""Common words, which may remain in a text although they are words of a replaced name."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from herdner._ext.hashing import hash_phrase
from herdner.ner.lexicon import Lexicon

CALENDAR = "month_day"  # gazetteer of the names of months and days


@dataclass(frozen=True)
class CommonWords:
    """List of common words in lower case.

    Attributes:
        lower: Words that are usually in lower case, such as "bank".
        calendar: Names of months and days. In contrast to other common words, they may remain where they are
            capitalised, even if a person has this name.
    """

    lower: Container[str] = ()
    calendar: Container[str] = ()

    @classmethod
    def of(cls, lexicon: Lexicon) -> CommonWords:
        """Return the common words that the lexical resources of a model contain.

        Args:
            lexicon: Lexical resources of a model: word classes, which contain the most frequent case of each word,
                and a gazetteer of months and days. Without them, no word is common.
        """
        phrases: set[int] = set()
        gazetteers = lexicon.gazetteers
        if gazetteers is not None and CALENDAR in gazetteers.names:
            phrases.update(gazetteers.phrases.select(1 << gazetteers.names.index(CALENDAR)).keys.tolist())
        lower = _Words(lambda word: bool(lexicon.is_usual([word])[0]))
        return cls(lower, _Words(lambda word: hash_phrase([word]) in phrases))

    def __contains__(self, word: str) -> bool:
        """Return whether ``word``, which must be in lower case, is a common word.

        Args:
            word: The word.
        """
        return word in self.lower or word in self.calendar


class _Words:
    """Container of all words for which a function returns True."""

    def __init__(self, contains: Callable[[str], bool]) -> None:
        self._contains = contains

    def __contains__(self, word: object) -> bool:
        return self._contains(str(word))
