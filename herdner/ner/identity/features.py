"""Features of the identity model: comparison of a mention with the earlier mentions of a name.

All features are binary; each has a name and a weight. The match of two forms is one of `MATCHES`, which are sorted from
the closest to none.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple, Protocol

from herdner.ner.identity.forms import N_CACHED, SMALL_WORDS, MentionForm, is_person_label

MATCHES = (
    "same words", "last word", "first word", "acronym", "beginning", "end", "has last word", "has first word",
    "all words and same ends", "last word and similar first word", "all words", "similar to first word", "inner word",
    "has inner word", "similar words", "last word and other first word", "first word and other last word",
    "other words", "",
)  # fmt: skip
_RANKS = {match: rank for rank, match in enumerate(MATCHES)}
_CONFLICTS = frozenset(("last word and other first word", "first word and other last word", "other words", ""))
NEAR, FAR = 400, 3000  # characters
MOST_FREQUENT_ENDINGS = ("ie", "y", "i")
SHARE_OF_PRONOUNS = 2  # a gender needs twice as many pronouns as the other


class ComparedName(Protocol):
    """Interface of a name with the values from which features are computed."""

    forms: list[MentionForm]
    labels: set[str]
    genders: set[str]
    titles: set[str]
    first_names: set[str]
    n_mentions: int


PronounCounts = Callable[[MentionForm], tuple[int, int]]
"""Function that returns the numbers of male and female pronouns behind the mentions with a form."""


@cache
def nicknames() -> Mapping[str, frozenset[str]]:
    """Return the nicknames of each first name and the first names of each nickname, in lower case."""
    path = importlib.resources.files("herdner") / "data" / "nicknames.json"
    table: dict[str, set[str]] = {}
    for name, short_names in json.loads(path.read_text(encoding="utf-8"))["nicknames"].items():
        for short in short_names:
            table.setdefault(name, set()).add(short)
            table.setdefault(short, set()).add(name)
    return {name: frozenset(others) for name, others in table.items()}


def is_similar(a: str, b: str) -> bool:
    """Return True if one of two first names may be an initial, a beginning or a nickname of the other, or if equal.

    Args:
        a: First name in lower case.
        b: Another first name.
    """
    if a == b:
        return True
    if len(a) > len(b):
        a, b = b, a
    if b in (a + "s", a + "es"):  # "the Blaines" are a family
        return False
    if b.startswith(a):
        return True
    if len(a) < 3:
        return False
    stem = a.rstrip("iey")
    return b in nicknames().get(a, ()) or (len(stem) >= 3 and stem != a and b.startswith(stem))


@lru_cache(N_CACHED)
def match(a: MentionForm, b: MentionForm) -> str:
    """Return the element of `MATCHES` that describes how the words of two mentions match most closely.

    Args:
        a: Form of a mention.
        b: Form of a mention of a name. "last word" means that ``a`` is the last word of ``b``; "has last word" is the
            reverse.
    """
    if a.words == b.words:
        return "same words"
    if len(a.words) == len(b.words) == 1:
        return "similar words" if a.is_person and b.is_person and is_similar(a.words[0], b.words[0]) else ""
    if len(a.words) == 1:
        return _match_word(a, b)
    if len(b.words) == 1:
        reverse = _match_word(b, a)
        return f"has {reverse}" if reverse in ("last word", "first word", "inner word") else reverse
    return _match_words(*((a.words, b.words) if len(a.words) <= len(b.words) else (b.words, a.words)))


def _match_word(short: MentionForm, full: MentionForm) -> str:
    """Return the element of `MATCHES` for a form of one word and a form of several words."""
    (word,), words = short.words, full.words
    if word == words[-1]:
        return "last word"
    if word == words[0]:
        return "first word"
    if word in words:
        return "inner word"
    if short.acronym and short.acronym == full.initials:
        return "acronym"
    is_first_name = short.is_person and full.is_person and len(word) > 2 and is_similar(word, words[0])
    return "similar to first word" if is_first_name else ""


def _match_words(short: tuple[str, ...], full: tuple[str, ...]) -> str:
    """Return the element of `MATCHES` for two forms of several words."""
    if full[: len(short)] == short:
        return "beginning"
    if full[-len(short) :] == short:
        return "end"
    same_last, same_first = short[-1] == full[-1], short[0] == full[0]
    if set(short) <= set(full):
        return "all words and same ends" if same_first and same_last else "all words"
    if same_last:
        similar = is_similar(short[0], full[0])
        return "last word and similar first word" if similar else "last word and other first word"
    if same_first:
        return "first word and other last word"
    return "" if (set(short) & set(full)) <= SMALL_WORDS else "other words"


def features_of_new(form: MentionForm) -> list[str]:
    """Return the features of the decision that a mention is the first one of a name.

    Args:
        form: Form of the mention.
    """
    n_words = ("one word", "two words", "many words")[min(len(form.words), 3) - 1] if form.words else "one word"
    return [f"new {'person' if form.is_person else 'name'}{', title' if form.title else ''}, {n_words}"]


class WordFeatures(NamedTuple):
    """Features of a pair of a mention and a name that depend on words, labels and genders only.

    Attributes:
        first: Features in front of those that depend on positions.
        last: Features behind those.
    """

    first: list[str]
    last: list[str]


def word_features(form: MentionForm, name: ComparedName, pronouns: PronounCounts) -> WordFeatures:
    """Return the features that depend on the form of a mention and the distinct forms of a name.

    Args:
        form: Form of the mention.
        name: Mentions of the name.
        pronouns: Numbers of male and female pronouns behind the mentions with a form.
    """
    group = "person" if form.is_person else "name"
    matches = {match(form, other) for other in name.forms}
    best = min(matches, key=_RANKS.__getitem__)
    features = [f"{best or 'no word'} ({group})"]
    features += [f"also {each or 'no word'}" for each in MATCHES if each in _CONFLICTS and each in matches]
    features += _label_features(form, name, best)
    features += _gender_features(form, name, pronouns)
    if form.is_person:
        features += _person_features(form, name)
    numbers = [other.numbers for other in name.forms]
    if form.numbers or any(numbers):
        features.append("same numbers" if form.numbers in numbers else "other numbers")
    if form.is_group != any(other.is_group for other in name.forms):
        features.append("person and group")
    is_other = best != "same words" and len(form.words) == 1 and _has_other_word(form, name.forms)
    return WordFeatures(features, ["other single word"] if is_other else [])


def features_of_pair(
    words: WordFeatures,
    name: ComparedName,
    distance: int | None = None,
    *,
    is_nearest: bool = True,
    n_rivals: int = 0,
) -> list[str]:
    """Return the features of the decision that a mention belongs to a name.

    Args:
        words: Word features of the mention and the name.
        name: Mentions of the name.
        distance: Characters since the last mention of the name; None if all mentions follow.
        is_nearest: No rival has a nearer mention.
        n_rivals: Number of other names to which the mention may belong.
    """
    features = [*words.first]
    if distance is None:
        features.append("not yet mentioned")
    else:
        features.append("near" if distance < NEAR else "far" if distance >= FAR else "at medium distance")
        if is_nearest:
            features.append("nearest name")
    if n_rivals:
        features.append("one rival" if n_rivals == 1 else "several rivals")
    if name.n_mentions > 3:
        features.append("frequent name")
    return features + words.last


def _has_other_word(form: MentionForm, others: Iterable[MentionForm]) -> bool:
    return any(
        len(each.words) == 1 and each.words != form.words and each.is_person == form.is_person for each in others
    )


def _label_features(form: MentionForm, name: ComparedName, best: str) -> list[str]:
    if form.label in name.labels:
        return ["same label"]
    features = ["other label, same words" if best == "same words" else "other label"]
    if form.is_person != any(map(is_person_label, name.labels)):
        features.append("person and other")
    return features


def _gender_features(form: MentionForm, name: ComparedName, pronouns: PronounCounts) -> list[str]:
    if form.gender and name.genders:
        return ["same gender" if form.gender in name.genders else "other gender"]
    if not form.is_person or not (own := form.gender or gender_of_pronouns(*pronouns(form))):
        return []
    if len(name.genders) == 1:
        (other,) = name.genders
    else:
        male, female = zip(*map(pronouns, name.forms), strict=True)
        other = gender_of_pronouns(sum(male), sum(female))
    return ["same pronouns" if own == other else "other pronouns"] if other else []


def gender_of_pronouns(male: int, female: int) -> str:
    """Return "m" or "f" if most pronouns have this gender, else an empty string.

    Args:
        male: Number of male pronouns.
        female: Number of female pronouns.
    """
    if male >= max(1, SHARE_OF_PRONOUNS * female):
        return "m"
    return "f" if female >= max(1, SHARE_OF_PRONOUNS * male) else ""


def _person_features(form: MentionForm, name: ComparedName) -> list[str]:
    features: list[str] = []
    single = ", single word" if len(form.words) == 1 else ""
    if form.title and name.titles:
        if form.title in name.titles:
            features.append("same title")
        else:
            features.append(
                "other title, same gender" if form.gender and form.gender in name.genders else "other title"
            )
    elif form.title or name.titles:
        features.append(("only mention has title" if form.title else "only name has title") + single)
    if form.is_full and name.first_names:
        similar = any(is_similar(form.words[0], first) for first in name.first_names)
        features.append("similar first name" if similar else "other first name")
    return features
