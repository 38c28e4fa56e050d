"""Text in small letters or in capitals alone, read as it would usually be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from herdner._ext.features import MAX_PHRASE, PHRASE_GOES_ON
from herdner._ext.hashing import hash_phrase, hash_strings
from herdner.ner.lexicon import USUAL_CASE, Lexicon
from herdner.text.document import Document

_SHORTEST = 3  # letters of a word that is taken for a name where nobody knows it; shorter ones may stand inside names


class Recaser:
    """Gives each word of a text without case the case in which it is most frequent, as the word classes know it (a
    unigram truecaser, Lita et al. 2003), and capitals to the words of names that stand in gazetteers. A word that nobody
    knows gets a capital: it is mostly a name.

    lexicon: word classes that tell the usual case (`herdner.ner.lexicon.word_classes`). names: the gazetteers that hold
    names.
    """

    def __init__(self, lexicon: Lexicon, names: Sequence[str]) -> None:
        classes, gazetteers = lexicon.classes, lexicon.gazetteers
        self.usual = np.empty(0, np.uint64) if classes is None else classes.keys[classes.values & USUAL_CASE != 0]
        self.phrases: dict[int, int] = {}
        self.lists = 0
        if gazetteers is not None:
            self.lists = sum(1 << g for g, name in enumerate(gazetteers.names) if name in names)
            wanted = gazetteers.phrases.values & np.uint32(self.lists | PHRASE_GOES_ON) != 0
            keys, values = gazetteers.phrases.keys[wanted], gazetteers.phrases.values[wanted]
            self.phrases = dict(zip(keys.tolist(), values.tolist(), strict=True))

    def __call__(self, document: Document) -> Document:
        """The document with the tokens that features and links are to see: its own, unless its text has but one case."""
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
        known = [np.isin(hash_strings(each), self.usual) for each in forms]
        usual: dict[str, str] = {}
        for i, word in enumerate(small):
            guess = forms[1][i] if word.isalpha() and len(word) >= _SHORTEST else word
            usual[word] = next((each[i] for each, among in zip(forms, known, strict=True) if among[i]), guess)
        return [usual[token.lower()] for token in tokens]

    def _mark_names(self, small: list[str], tokens: list[str], start: int, end: int) -> None:
        """Gives capitals to names of two or more words, the longest first come; short words inside them stay."""
        while start < end:
            longest = start + 1
            for stop in range(start + 1, min(end, start + MAX_PHRASE) + 1):
                value = self.phrases.get(hash_phrase(small[start:stop]), 0)
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
