"""Language check: warnings about texts whose language is not that of the model.

A language is recognised by its most frequent function words, such as "the" and "of", or by a script such as Greek or
Thai that the model's language does not use. Texts with fewer than 50 words, and texts with few function words of any
language, such as lists of names, are reported only if most of their letters, and at least 10 letters, belong to such a
script. In a stream, such as the rows of a table, the first short texts are checked together.
"""

from __future__ import annotations

import importlib.resources
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

import numpy as np

from herdner.base.arrays import Int64s
from herdner.ner.model_file import shipped_models
from herdner.text.document import Document

MIN_WORDS = 50
MIN_LETTERS = 10  # for recognition by the script; some scripts have no spaces between words, so letters are counted
# A text is in another language if it reaches all of these minima.
_MIN_SHARE = 0.2  # share of function words of the other language among all words
_MIN_LOWER = 0.4  # share of words in lower case among all words; lists of names have a smaller share
_MIN_DISTINCT = 5  # distinct function words that the model's language lacks; lists of names ("van der Berg") have fewer
_FACTOR = 4  # occurrences of these words for each function word that only the model's language has
_OWN_WORDS = 3  # the check ends early if a sample has this many distinct function words of only the model's language
_SAMPLE, _LARGE_SAMPLE = 100, 1000
_FIRST_GREEK = "\u0370"
_SAME_TABLE = {"bs": "hr", "nn": "nb", "no": "nb", "sr": "hr"}  # languages with the function words of another language
_SCRIPTS = {
    "ARABIC": "ar", "ARMENIAN": "hy", "BENGALI": "bn", "CJK": "zh", "CYRILLIC": "Cyrl", "DEVANAGARI": "hi",
    "GEORGIAN": "ka", "GREEK": "el", "HANGUL": "ko", "HEBREW": "he", "HIRAGANA": "ja", "KATAKANA": "ja", "TAMIL": "ta",
    "THAI": "th",
}  # fmt: skip
_SCRIPT_NAMES = {
    "Cyrl": "in Cyrillic script", "bn": "Bengali", "hi": "Hindi", "hy": "Armenian", "ja": "Japanese", "ka": "Georgian",
    "ko": "Korean", "ta": "Tamil", "th": "Thai", "zh": "Chinese",
}  # fmt: skip


class LanguageWarning(UserWarning):
    """Warning: a text is in another language than the training texts of the model."""


class _FunctionWords(NamedTuple):
    """Function words of all supported languages.

    Attributes:
        names: English name of each language.
        words: Words of each language.
        rows: Row of each word in ``table``.
        table: int64[words, languages], 1 for the languages of each word, in the order of ``words``.
    """

    names: dict[str, str]
    words: dict[str, frozenset[str]]
    rows: dict[str, int]
    table: Int64s

    def language_counts(self, tokens: Iterable[str]) -> Int64s:
        """Return, for each language, the number of tokens that are function words of the language, int64[languages]."""
        rows = self.rows
        return self.table[[rows[token] for token in tokens if token in rows]].sum(axis=0)


def _script(letter: str) -> str:
    """Return the script of a letter, which is the first word of the letter's Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


@cache
def _function_words() -> _FunctionWords:
    data = json.loads((importlib.resources.files("herdner") / "data" / "function_words.json").read_text("utf-8"))
    words = {code: frozenset(each["words"].split()) for code, each in data.items()}
    rows = {word: i for i, word in enumerate(sorted(frozenset[str]().union(*words.values())))}
    table = np.array([[word in own for own in words.values()] for word in rows], np.int64)
    return _FunctionWords({code: each["name"] for code, each in data.items()} | _SCRIPT_NAMES, words, rows, table)


def language_name(code: str) -> str:
    """Return the English name of a language; return its code if the table of languages lacks it.

    Args:
        code: Code of the language, such as "de".
    """
    return _function_words().names.get(_SAME_TABLE.get(code, code), code)


def similar_model(name: str) -> str | None:
    """Return the shipped model for the language that an unknown model name describes; return None if there is none.

    Args:
        name: Name or code of a language, such as "German" or "no", or the beginning of the name (at least three
            letters); anything after "_" or "-" is ignored, as in "en_core_web_sm". A misspelt name of a shipped model
            such as "en_core" is accepted too.
    """
    if not re.fullmatch(r"[\w-]+", name):  # a path
        return None
    if len(name) > 2 and (near := get_close_matches(name.casefold(), shipped_models(), 1, 0.8)):
        return near[0]
    head = re.split("[_-]", name.casefold())[0]
    code = _SAME_TABLE.get(head, head)
    for model in sorted(shipped_models()):
        if code == model or (len(head) >= 3 and language_name(model).casefold().startswith(head)):
            return model
    return None


class LanguageCheck:
    """Callable that returns the language of a text if it differs from the language of a model, else None.

    Args:
        language: Code of the model's language. If it is not in the table of function words, all texts pass the check.
    """

    def __init__(self, language: str) -> None:
        """Select the function words of ``language`` and, among these, the words that no other language has."""
        table = _function_words()
        self.language = _SAME_TABLE.get(language, language)
        self._words = table.words.get(self.language, frozenset[str]())
        self._own_scripts = {_script(word[0]) for word in self._words}
        self._own_only = frozenset(word for word in self._words if table.table[table.rows[word]].sum() == 1)

    def __call__(self, document: Document) -> str | None:
        """Return the code of the document's language if it clearly differs from the model's language, else None.

        Args:
            document: Document with tokens.
        """
        tokens = document.tokens
        if len(tokens) >= MIN_WORDS:
            sample = tokens[:: max(1, len(tokens) // _SAMPLE)]
            if len(self._own_only.intersection(sample)) >= _OWN_WORDS or not self._words:
                return None
            if other := self._other_language(document):
                return other
        if self._words and len(document.text) >= MIN_LETTERS and not document.text.isascii():
            return self._language_of_script(document.text)
        return None

    def _other_language(self, document: Document) -> str | None:
        """Return the language that a document's function words indicate; None if it is unclear or that of the model."""
        table = _function_words()
        codes = list(table.words)
        tokens = document.tokens[:: max(1, document.n_tokens // _LARGE_SAMPLE)]
        if document.text.isupper():
            tokens = list(map(str.lower, tokens))
        other = codes[int(table.language_counts(tokens[:: max(1, len(tokens) // _SAMPLE)]).argmax())]
        if other == self.language:
            return None
        counts = Counter(tokens)
        n_words = sum(n for word, n in counts.items() if word.isalpha())
        n_lower = sum(n for word, n in counts.items() if word.isalpha() and word.islower())
        theirs = counts.keys() & table.words[other]
        distinct = theirs - self._words
        n_own = sum(counts[word] for word in counts.keys() & self._words - table.words[other])
        is_other = (
            n_words >= MIN_WORDS
            and n_lower >= _MIN_LOWER * n_words
            and sum(counts[word] for word in theirs) >= _MIN_SHARE * n_words
            and len(distinct) >= _MIN_DISTINCT
            and sum(counts[word] for word in distinct) >= _FACTOR * n_own
        )
        return other if is_other else None

    def _language_of_script(self, text: str) -> str | None:
        """Determine the language of a text by the script of most of its letters.

        The result is None if no script prevails, or if the language of the model uses this script.
        """
        sample = text[:: max(1, len(text) // _SAMPLE)]
        if 2 * sum(map(_FIRST_GREEK.__le__, sample)) < len(sample):
            return None  # most characters are Latin
        letters = [letter for letter in text[:: max(1, len(text) // _LARGE_SAMPLE)] if letter.isalpha()]
        languages: Counter[str] = Counter()
        for script, n in Counter(map(_script, letters)).items():
            if script in _SCRIPTS and script not in self._own_scripts:
                languages[_SCRIPTS[script]] += n
        if languages["ja"]:
            languages["ja"] += languages.pop("zh", 0)
        code, n = max(languages.items(), key=lambda item: item[1], default=("", 0))
        return code if n >= MIN_LETTERS and 2 * n > len(letters) else None

    def of_stream(self) -> Callable[[Document], str | None]:
        """Return a language check of the documents of one stream, which also checks the first short documents together.

        The first documents with fewer than ``MIN_WORDS`` tokens are joined until they have 100 tokens.
        """
        sample: list[str] | None = []

        def check(document: Document) -> str | None:
            nonlocal sample
            other = self(document)
            if other is None and sample is not None and document.n_tokens < MIN_WORDS:
                sample += document.tokens
                if len(sample) >= _SAMPLE:
                    other, sample = self(Document.from_tokens([sample])), None
            return other

        return check

    def message(self, other: str, source: str = "the text", command_line: bool = False) -> str:
        """Return a warning about a text in another language.

        Args:
            other: Code of the language of the text.
            source: Name of the text, which begins the message.
            command_line: Advise the option ``--model`` of the command line instead of a Python call.
        """
        if other in shipped_models():
            advice = f"use --model {other}" if command_line else f'use the model "{other}"'
        else:
            advice = 'train a model as the page "Train another language" of the documentation describes'
        names = language_name(other), language_name(self.language)
        return f"{source} seems to be {names[0]}, but the model is for {names[1]}; {advice}"
