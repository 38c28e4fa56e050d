"""Style of realistic pseudonyms: names invented word by word, with the gender and script of the original."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal

from herdner.base.extras import import_extra
from herdner.ner.pseudonyms.common_words import CommonWords
from herdner.ner.pseudonyms.pseudonym_map import MappedName, PseudonymMap
from herdner.ner.pseudonyms.restoring import ENDINGS
from herdner.ner.pseudonyms.styles import NumberedStyle
from herdner.ner.pseudonyms.tokens import TOKEN, TOKEN_OR_SPACE

Kind = Literal["female", "male", "given", "surname", "place"]

NEED = "realistic pseudonyms need Faker"
LOCALES = {
    "LATIN": "en_US", "CYRILLIC": "ru_RU", "GREEK": "el_GR", "ARABIC": "ar_AA", "HEBREW": "he_IL", "ARMENIAN": "hy_AM",
    "GEORGIAN": "ka_GE",
}  # fmt: skip
"""Locale of Faker that provides the names of each script."""

KINDS = {"LOC": "place", "GPE": "place", "LOCATION": "place", "PER": "person", "PERSON": "person", "ORG": "surname"}
DESIGNATORS = frozenset({
    "ab", "ag", "as", "asa", "bv", "co", "company", "corp", "corporation", "gmbh", "inc", "incorporated", "kg",
    "limited", "llc", "llp", "ltd", "nv", "oy", "plc", "sa", "sarl", "spa", "srl",
})  # fmt: skip
FEMALE_TITLES = re.compile(r"\b(?:Mrs|Ms|Miss|Madam|Mme|Lady|Queen|Princess|Sister|Frau)\.?\s+$")
MALE_TITLES = re.compile(r"\b(?:Mr|Sir|Lord|King|Prince|Brother|Herr)\.?\s+$")
MIN_LETTERS = 3


class Realistic:
    """Style of pseudonyms that look like real names; their words come from the name lists of the library Faker.

    Each word of a name gets an invented word, which no other word of the map has. Initials, particles in lower case,
    and the common words of places and organisations remain. Identifiers, and names in scripts without a list, get
    numbered pseudonyms.

    Args:
        names: Map to which new names are added. Its invented words are not used again.
        labels: Labels of the texts.
        common_words: Words that are never invented, and that remain in names of places and organisations.
        seed: Seed of the order in which names are taken from the lists.

    Raises:
        MissingExtra: Faker is not installed.
    """

    def __init__(
        self, names: PseudonymMap, labels: Iterable[str] = (), common_words: CommonWords | None = None, seed: int = 0
    ) -> None:
        """Store the arguments, and collect the invented words that the pseudonym map already contains."""
        import_extra("faker", NEED)
        self._names = names
        self._numbered = NumberedStyle(names, labels)
        self._common_words = common_words or CommonWords()
        self._seed = seed
        self._used = {word.lower() for name in names.names for word in name.words.values()}
        self._pools: dict[tuple[Kind, str], Iterator[str]] = {}

    def find(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Yield the strings that look like a pseudonym of the map; see `PseudonymStyle.find`.

        Words of the text that Faker's lists contain are reserved, so that they are not invented later.

        Args:
            text: The text.
        """
        yield from ((start, end, True) for start, end, _ in self._numbered.find(text))
        for match in TOKEN.finditer(text):
            word = match[0].lower()
            forms = {word, *map(word.removesuffix, ENDINGS)}
            if not self._used.isdisjoint(forms):
                yield (*match.span(), False)
            elif len(word) >= MIN_LETTERS:
                self._names.reserved |= forms & _listed_words(script_of(word))

    def pseudonym_of(self, label: str, text: str, key: str, form: str, context: str) -> str:
        """Return the pseudonym for one spelling (form) of a name.

        Args:
            label: Entity type or kind of identifier.
            text: Fullest form of the name.
            key: Key of the name.
            form: Text of the mention.
            context: Text before the mention, for titles such as "Mrs.".
        """
        name = self._names.find(label, key)
        if name is None and label in KINDS:
            name = MappedName(label, text, "")
            self._invent(name, text, context)
            if name.words:
                name.pseudonym = self._render(name, text)
                self._names.add(name, key)
        if name is None or not name.words:
            return self._numbered.pseudonym_of(label, text, key, form, context)
        known = len(name.words)
        self._invent(name, form, context)
        for word, invented in list(name.words.items())[known:]:
            self._names.connect(invented, word)
        pseudonym = self._render(name, form)
        if pseudonym != form and pseudonym not in self._names.originals:
            name.forms[form] = pseudonym  # as "savage 1" beside "Savage 1": the longest pseudonym is restored
            self._names.connect(pseudonym, form)
        return pseudonym

    def _render(self, name: MappedName, form: str) -> str:
        return "".join(name.words.get(match[0], match[0]) for match in TOKEN_OR_SPACE.finditer(form))

    def _invent(self, name: MappedName, form: str, context: str) -> None:
        """Invent a word for each word of ``form`` that must be replaced and has none yet; add it to ``name.words``."""
        tokens: list[str] = TOKEN.findall(form)
        selected = [token for token in tokens if self._is_name_word(token)]
        if name.label not in ("PER", "PERSON"):
            rare = [token for token in selected if not self._is_common(token)]
            selected = rare if rare or name.words else selected
        gender = _gender(form, context)
        for i, token in enumerate(selected):
            if token in name.words or script_of(token) not in LOCALES:
                continue
            kind = KINDS[name.label]
            if kind == "person":
                is_given = i < len(selected) - 1 or (len(selected) == 1 and token.lower() in _given_names())
                kind = gender if is_given else "surname"
            name.words[token] = self._word_like(name, token, kind)

    def _is_name_word(self, token: str) -> bool:
        return len(token) > 1 and token[0].isalpha() and not (token.islower() and token in self._common_words)

    def _is_common(self, token: str) -> bool:
        return token.lower() in self._common_words or token.lower() in DESIGNATORS

    def _word_like(self, name: MappedName, token: str, kind: str) -> str:
        """Return an invented word for a token, in the letter case of the token.

        Tokens that differ only in case get the same word.
        """
        case = _case(token)
        if case is not None:
            for other, invented in name.words.items():
                if other.lower() == token.lower() and _case(other) is not None:
                    word = case(invented.lower())
                    if word not in self._names.originals and word not in name.words.values():
                        return word
        word = self._new_word(kind, script_of(token))
        return word if case is None else case(word.lower())

    def _new_word(self, kind: Any, script: str) -> str:
        pool = self._pools.get((kind, script))
        if pool is None:
            pool = self._pools[kind, script] = _shuffle_names(kind, script, self._seed)
        for word in pool:
            lower = word.lower()
            if lower not in self._used and lower not in self._names.reserved and lower not in self._common_words:
                self._used.add(lower)
                return word
        raise AssertionError("the pool of names must be infinite, but it is exhausted")


def _case(token: str) -> Any:
    """Return the `str` method (`capitalize`, `upper` or `lower`) that yields a token's case; None for mixed case."""
    for convert in (str.capitalize, str.upper, str.lower):
        if convert(token.lower()) == token:
            return convert
    return None


def _gender(form: str, context: str) -> Literal["female", "male", "given"]:
    """Infer a person's gender from a title before the name, or else from the first name; return "given" if unknown."""
    if FEMALE_TITLES.search(context):
        return "female"
    if MALE_TITLES.search(context):
        return "male"
    match = TOKEN.match(form)
    word = "" if match is None else match[0].lower()
    script = script_of(word)
    is_female, is_male = (word in map(str.lower, _names(kind, script)) for kind in ("female", "male"))
    return "given" if is_female == is_male else "female" if is_female else "male"


@cache
def script_of(word: str) -> str:
    """Return the script of the first letter of a word, such as "LATIN".

    Args:
        word: The word.
    """
    letter = next((character for character in word if character.isalpha()), None)
    return "" if letter is None else unicodedata.name(letter, "").partition(" ")[0]


@cache
def _names(kind: Kind, script: str) -> tuple[str, ...]:
    """Return Faker's single-word names of one kind, such as "surname", in a script, such as "LATIN"."""
    if script not in LOCALES:
        return ()
    provider = import_extra(f"faker.providers.person.{LOCALES[script]}", NEED).Provider
    lists = {
        "female": ["first_names_female"], "male": ["first_names_male"], "surname": ["last_names"],
        "given": ["first_names_female", "first_names_male", "first_names"],
    }  # fmt: skip
    if kind == "place":
        if script != "LATIN":
            return _names("surname", script)
        suffixes = import_extra("faker.providers.address.en_US", NEED).Provider.city_suffixes
        return tuple(name + suffix for name in _names("surname", script) for suffix in suffixes)
    found = [*(getattr(provider, name, ()) for name in lists[kind])]
    if not any(found):
        found = [getattr(provider, name, ()) for name in ("last_names_male", "last_names_female", "first_names")]
    words = (word for names in found for word in names if len(word) >= MIN_LETTERS and TOKEN.fullmatch(word))
    return tuple(dict.fromkeys(words))


@cache
def _given_names() -> frozenset[str]:
    return frozenset(word.lower() for script in LOCALES for word in _names("given", script))


@cache
def _listed_words(script: str) -> frozenset[str]:
    kinds: tuple[Kind, ...] = ("given", "surname", "place")
    return frozenset(word.lower() for kind in kinds for word in _names(kind, script))


def _shuffle_names(kind: Kind, script: str, seed: int) -> Iterator[str]:
    """Yield the names of one kind in random order, then endless new words, each joined from two earlier words."""
    words = list(_names(kind, script))
    rng = random.Random(f"{seed} {kind} {script}")
    rng.shuffle(words)
    yield from words
    while True:
        first, second = rng.choice(words), rng.choice(words)
        yield first + second.lower()
        words.append(first + second.lower())
