"""Preparation of documents for features: composed characters, and truecasing.

Texts in lower or upper case are truecased, and headlines in title case ("Barclays Cuts Jobs at London Office").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from unicodedata import is_normalized, normalize

from herdner._ext.features import MAX_PHRASE, PHRASE_GOES_ON
from herdner._ext.hashing import hash_phrase
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import Lexicon
from herdner.text.document import Document

_REPEATED = 3  # smallest number of occurrences of two adjacent words, the second one unknown, that form a name
_DESIGNATORS = frozenset("inc inc. corp corp. ltd ltd. plc plc. gmbh gmbh. llc llp".split())  # noqa: SIM905
# Words that often precede the name of a company, but are not part of it.
_BEFORE_COMPANIES = frozenset("from with that said into over than this were have been will against".split())  # noqa: SIM905
_MIN_TITLE_WORDS, _TITLE_SHARE = 4, 0.8  # words of at least four letters in a headline; share of them with a capital
_MIN_LETTERS = 3  # unknown words with fewer letters get no capital, nor do words of at most this length inside names


def reader(plan: FeaturePlan, lexicon: Lexicon) -> Callable[[Document], Document]:
    """Return the function that a tagger applies to each document before feature extraction.

    The function composes decomposed characters, such as "e" and a combining accent. With recasing options, it is a
    `Recaser`, which also changes the case of words.

    Args:
        plan: Feature plan.
        lexicon: Lexical resources of the model.
    """
    return _compose if plan.recasing is None else Recaser(lexicon, plan.recasing)


def _compose(document: Document) -> Document:
    """Return a document whose tokens are in the normal form NFC, which training texts have; its text is unchanged."""
    if document.text.isascii() or is_normalized("NFC", document.text):
        return document
    return replace(document, tokens=[normalize("NFC", token) for token in document.tokens])


class Recaser:
    """Truecaser for texts in lower or upper case, and headlines in title case, by word frequencies (Lita et al. 2003).

    Each word gets its most frequent case, and the words of names in gazetteers get capitals. An unknown word gets a
    capital, because most unknown words are names. The two words before a company designator such as "Inc." get
    capitals, also where the same two words occur together without the designator. In headlines, capitalised words that
    are usually in lower case lose their capital.

    Args:
        lexicon: Lexical resources; word classes contain the most frequent case (`herdner.ner.lexicon.word_classes`).
        names: Names of the gazetteers whose entries get capitals.
    """

    def __init__(self, lexicon: Lexicon, names: Sequence[str]) -> None:
        """Store the lexicon, and select the gazetteers whose entries are capitalised names."""
        self.lexicon = lexicon
        self.lists = sum(1 << g for g, name in enumerate(lexicon.gazetteer_names) if name in names)

    @cached_property
    def _phrases(self) -> dict[int, int]:
        """Dict from hash to bit mask, for each phrase that is a capitalised name or the beginning of a longer phrase.

        `Gazetteers` describes the bits.
        """
        if self.lexicon.gazetteers is None:
            return {}
        phrases = self.lexicon.gazetteers.phrases.select(self.lists | PHRASE_GOES_ON)
        return dict(zip(phrases.keys.tolist(), phrases.values.tolist(), strict=True))

    def __call__(self, document: Document) -> Document:
        """Compose decomposed characters, and truecase texts in lower or upper case, and headlines in title case.

        Args:
            document: Document with tokens.
        """
        document = document if document.text.isascii() else _compose(document)
        if not (document.text.islower() or document.text.isupper()):
            return self._recase_headlines(document)
        tokens, unknown = self._words(document.tokens)
        lower = [token.lower() for token in document.tokens]
        for start, end in pairwise(document.sentence_offsets.tolist()):
            self._mark_names(lower, tokens, start, end)
        _mark_companies(lower, tokens, unknown, set(document.sentence_offsets.tolist()))
        return replace(document, tokens=tokens)

    def _recase_headlines(self, document: Document) -> Document:
        """Return a document whose headlines have lower-case words where the usual case is lower.

        Sentences in title case without a short word such as "at" are left unchanged: most are titles before a name.
        """
        tokens = list(document.tokens)
        offsets: list[int] = document.sentence_offsets.tolist()
        headlines = [
            (start, end)
            for start, end in pairwise(offsets)
            if end - start >= _MIN_TITLE_WORDS
            and tokens[end - 1][-1].isalnum()  # words in lower case and punctuation marks end other sentences
            and not tokens[end - 1][0].islower()
            and _is_title_case(tokens[start:end])
        ]
        if not headlines:
            return document
        lower, recased = list(tokens), list(tokens)
        for start, end in headlines:
            lower[start:end] = map(str.lower, tokens[start:end])
        inner = [i for start, end in headlines for i in range(start + 1, end)]
        is_usual = self.lexicon.is_usual([lower[i] for i in inner])
        usual = {i for i, flag in zip(inner, is_usual.tolist(), strict=True) if flag}
        for start, end in headlines:
            words = usual.intersection(range(start + 1, end))
            if any(len(tokens[i]) <= _MIN_LETTERS and tokens[i].isalpha() for i in words):
                for i in words:
                    recased[i] = lower[i] if tokens[i].istitle() else tokens[i]
                self._mark_names(lower, recased, start, end)
        return replace(document, tokens=recased)

    def _words(self, tokens: Sequence[str]) -> tuple[list[str], set[str]]:
        """Return the tokens, each in its most frequent case, and the set of lower-cased unknown words."""
        lower = list(dict.fromkeys(token.lower() for token in tokens))
        forms = lower, [_capitalise(word) for word in lower], [word.upper() for word in lower]
        is_usual = [self.lexicon.is_usual(words) for words in forms]
        usual: dict[str, str] = {}
        unknown: set[str] = set()
        for i, word in enumerate(lower):
            default = forms[1][i] if word.isalpha() and len(word) >= _MIN_LETTERS else word
            usual[word] = next((words[i] for words, flags in zip(forms, is_usual, strict=True) if flags[i]), default)
            if word.isalpha() and not any(flags[i] for flags in is_usual):
                unknown.add(word)
        return [usual[token.lower()] for token in tokens], unknown

    def _mark_names(self, lower: list[str], tokens: list[str], start: int, end: int) -> None:
        """Capitalise gazetteer names of two or more words; at each token, the longest name is chosen.

        Short words after the first word of a name stay unchanged.
        """
        while start < end:
            longest = start + 1
            for stop in range(start + 1, min(end, start + MAX_PHRASE) + 1):
                value = self._phrases.get(hash_phrase(lower[start:stop]), 0)
                if value & self.lists:
                    longest = stop
                if not value & PHRASE_GOES_ON:
                    break
            for t in range(start, longest if longest > start + 1 else start):
                if tokens[t] == lower[t] and (len(lower[t]) > _MIN_LETTERS or t == start):
                    tokens[t] = _capitalise(lower[t])
            start = longest


def _mark_companies(lower: Sequence[str], tokens: list[str], unknown: Set[str], sentence_starts: Set[int]) -> None:
    """Capitalise one or two words before a company designator ("inc"), and every other occurrence of such a word pair.

    A pair of words such as "Vertex Biolabs" that occurs often and whose second word is unknown is capitalised too.
    """
    pairs: set[tuple[str, str]] = set()
    for end, word in enumerate(lower):
        if word in _DESIGNATORS and end not in sentence_starts and _may_be_of_company(lower[end - 1]):
            tokens[end - 1] = _capitalise_lower(tokens[end - 1])
            if end - 1 not in sentence_starts and _may_be_of_company(lower[end - 2]):
                pairs.add((lower[end - 2], lower[end - 1]))
    counts, words = Counter(pairwise(lower)), Counter(lower)
    pairs.update(
        pair
        for pair, count in counts.items()
        if pair[1] in unknown and count >= max(_REPEATED, words[pair[1]] / 2) and _may_be_of_company(pair[0])
    )
    for start, pair in enumerate(pairwise(lower) if pairs else ()):
        if pair in pairs:
            tokens[start : start + 2] = map(_capitalise_lower, tokens[start : start + 2])


def _is_title_case(tokens: Sequence[str]) -> bool:
    """Return True if nearly all words of at least four letters are capitalised; a list of names has several commas."""
    words = [token for token in tokens if len(token) > _MIN_LETTERS and token.isalpha()]
    n_title = sum(map(str.istitle, words))
    return len(words) >= _MIN_TITLE_WORDS and n_title >= _TITLE_SHARE * len(words) and tokens.count(",") < 2


def _may_be_of_company(word: str) -> bool:
    return word.isalpha() and len(word) > _MIN_LETTERS and word not in _BEFORE_COMPANIES


def _capitalise_lower(token: str) -> str:
    return _capitalise(token) if token.islower() else token


def _capitalise(word: str) -> str:
    """Capitalise the first letter of a word and each letter that follows a hyphen."""
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))
