"""Text in small letters or in capitals alone, read as it would usually be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import MAX_PHRASE, PHRASE_GOES_ON
from herdner._ext.hashing import hash_phrase, hash_strings
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import USUAL_CASE, Lexicon
from herdner.text.document import Document

_SHORTEST = 3  # letters of a word that is taken for a name where nobody knows it; shorter ones may stand inside names


def reader(plan: FeaturePlan, lexicon: Lexicon) -> Callable[[Document], Document]:
    """What features and links see of a document: itself, or as a `Recaser` reads it where the plan asks for that."""
    return _as_it_is if plan.recased is None else Recaser(lexicon, plan.recased)


def _as_it_is(document: Document) -> Document:
    return document


class Recaser:
    """Gives each word of a text in one case the case in which it is most frequent, as the word classes know it (a
    unigram truecaser, Lita et al. 2003), and capitals to the words of names that stand in gazetteers. A word that
    nobody knows gets a capital: it is mostly a name.

    Args:
        lexicon: Word classes that tell the usual case (`herdner.ner.lexicon.word_classes`).
        names: The gazetteers that hold names.
    """

    def __init__(self, lexicon: Lexicon, names: Sequence[str]) -> None:
        self.lexicon = lexicon
        known = () if lexicon.gazetteers is None else lexicon.gazetteers.names
        self.lists = sum(1 << g for g, name in enumerate(known) if name in names)

    @cached_property
    def _usual(self) -> NDArray[np.uint64]:
        """The hashes of words in their usual case, ascending; found once they are needed."""
        classes = self.lexicon.classes
        nothing = np.empty(0, np.uint64)
        return nothing if classes is None else classes.keys[classes.values & np.uint32(USUAL_CASE) != 0]

    @cached_property
    def _phrases(self) -> dict[int, int]:
        """The values of names of the gazetteers by their hash, and of beginnings of names."""
        if self.lexicon.gazetteers is None:
            return {}
        phrases = self.lexicon.gazetteers.phrases
        wanted = phrases.values & np.uint32(self.lists | PHRASE_GOES_ON) != 0
        return dict(zip(phrases.keys[wanted].tolist(), phrases.values[wanted].tolist(), strict=True))

    def __call__(self, document: Document) -> Document:
        """The document with the tokens that features and links are to see: its own, unless its text is in one case."""
        if not (document.text.islower() or document.text.isupper()):
            return document
        tokens = self._words(document.tokens)
        small = [token.lower() for token in document.tokens]
        for start, end in pairwise(document.sentence_offsets.tolist()):
            self._mark_names(small, tokens, start, end)
        return replace(document, tokens=tokens)

    def _words(self, tokens: Sequence[str]) -> list[str]:
        """Each token in its usual case."""
        small = list(dict.fromkeys(token.lower() for token in tokens))
        forms = small, [_capitalised(word) for word in small], [word.upper() for word in small]
        known = [self._is_usual(each) for each in forms]
        usual: dict[str, str] = {}
        for i, word in enumerate(small):
            guess = forms[1][i] if word.isalpha() and len(word) >= _SHORTEST else word
            usual[word] = next((each[i] for each, among in zip(forms, known, strict=True) if among[i]), guess)
        return [usual[token.lower()] for token in tokens]

    def _is_usual(self, words: list[str]) -> NDArray[np.bool_]:
        hashes = hash_strings(words)
        at = np.searchsorted(self._usual, hashes)
        return np.append(self._usual, np.uint64(0))[at] == hashes

    def _mark_names(self, small: list[str], tokens: list[str], start: int, end: int) -> None:
        """Gives capitals to names of two or more words, the longest first come; short words inside them stay."""
        while start < end:
            longest = start + 1
            for stop in range(start + 1, min(end, start + MAX_PHRASE) + 1):
                value = self._phrases.get(hash_phrase(small[start:stop]), 0)
                if value & self.lists:
                    longest = stop
                if not value & PHRASE_GOES_ON:
                    break
            for t in range(start, longest if longest > start + 1 else start):
                if tokens[t] == small[t] and (len(small[t]) > _SHORTEST or t == start):
                    tokens[t] = _capitalised(small[t])
            start = longest


def _capitalised(word: str) -> str:
    """With a capital at the beginning and behind each hyphen."""
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))
