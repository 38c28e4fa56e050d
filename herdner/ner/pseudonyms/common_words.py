"""Common words, which may remain in a text although they are words of a replaced name."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from herdner._ext.hashing import hash_phrase, hash_strings
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
        return cls(_LowerWords(lexicon), _CalendarWords(lexicon))

    def __contains__(self, word: str) -> bool:
        """Return whether ``word``, which must be in lower case, is a common word.

        Args:
            word: The word.
        """
        return word in self.lower or word in self.calendar


class _LowerWords:
    """Words that are usually in lower case."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._usual = lexicon.usual_words

    def __contains__(self, word: object) -> bool:
        key = int(hash_strings([str(word)])[0])
        at = int(np.searchsorted(self._usual, np.uint64(key)))
        return at < len(self._usual) and int(self._usual[at]) == key


class _CalendarWords:
    """Names of months and days."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._phrases = set[int]()
        gazetteers = lexicon.gazetteers
        if gazetteers is not None and CALENDAR in gazetteers.names:
            is_listed = gazetteers.phrases.values & np.uint32(1 << gazetteers.names.index(CALENDAR)) != 0
            self._phrases.update(gazetteers.phrases.keys[is_listed].tolist())

    def __contains__(self, word: object) -> bool:
        return bool(self._phrases) and hash_phrase([str(word)]) in self._phrases
