"""The features of `herdner.ner.features` as strings, in plain Python, as a python-crfsuite pipeline computes them.

This module shares no code with the compiled extractor. The tests compare the features of this module with those of the
extractor, and `bench_tagging.py` compares the speed of both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

SAME_MARK = dict.fromkeys(["``", "''", "\u201c", "\u201d", "\u201e", "\u00ab", "\u00bb"], '"') | {
    "\u2018": "'", "\u2014": "--", "\u2013": "--", "\u2015": "--", "_": "--",
}  # fmt: skip
VECTOR_NAMES = "vector32", "vector128", "vector512", "vector2048"
CLASS_BITS = {"class4": 0xF, "class6": 0x3F, "class10": 0x3FF, "class20": 0xFFFFF}
Attributes = dict[str, str]
PhraseIndex = dict[str, list[tuple[int, tuple[str, ...], str]]]


class Word(NamedTuple):
    attributes: Attributes
    letters: bool
    capital: bool
    all_caps: bool
    small: bool


BEFORE = Word(dict.fromkeys(("word", "lower", "digits", "shape", "brief_shape"), "<s>"), False, False, False, False)
AFTER = Word(dict.fromkeys(("word", "lower", "digits", "shape", "brief_shape"), "</s>"), False, False, False, False)


def describe(word: str, classes: Mapping[str, int], vectors: Mapping[str, Sequence[int]]) -> Word:
    """Return the attributes of a word."""
    word = SAME_MARK.get(word, word.replace("\u2019", "'"))
    lower = "".join(c.lower()[0] for c in word)
    marks = ["X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word]
    runs = [(mark, len(list(group))) for mark, group in groupby(marks)]
    attributes = {
        "word": word,
        "lower": lower,
        "digits": "".join("0" if mark == "d" else c for mark, c in zip(marks, lower, strict=True)),
        "shape": "".join(mark * min(n, 4) for mark, n in runs),
        "brief_shape": "".join(mark for mark, _ in runs),
    }
    for n in range(1, min(5, len(lower)) + 1):
        attributes[f"prefix{n}"], attributes[f"suffix{n}"] = lower[:n], lower[-n:]
    path = classes.get(word, classes.get(lower))
    if path is not None:
        attributes |= {name: str(path & bits) for name, bits in CLASS_BITS.items()}
    attributes |= zip(VECTOR_NAMES, map(str, vectors.get(lower, ())), strict=False)
    n_upper, n_lower = marks.count("X"), marks.count("x")
    return Word(
        attributes, n_upper + n_lower > 0, marks[:1] == ["X"], n_upper >= 2 and not n_lower, n_lower > 0 and not n_upper
    )


def is_headline(sentence: Sequence[Word]) -> bool:
    n_words = sum(word.letters for word in sentence)
    return not any(w.small for w in sentence) and n_words >= 3 and 2 * sum(w.all_caps for w in sentence) > n_words


def first_word(sentence: Sequence[Word]) -> int:
    """Return the index of the first word with letters, which may be capitalised because it begins the sentence."""
    return next((i for i, word in enumerate(sentence[:-1]) if word.letters), len(sentence) - 1)


def runs_of_capitals(sentence: Sequence[Word], positions: list[Attributes]) -> None:
    i = 0
    for capital, group in groupby(sentence, key=lambda word: word.capital):
        j = i + len(list(group))
        if capital:
            for k in range(i, j):
                positions[k] |= {
                    "run": f"{min(j - i, 6)},{k > i},{k < j - 1}",
                    "run_first": sentence[i].attributes["lower"],
                    "run_last": sentence[j - 1].attributes["lower"],
                    "run_before": sentence[i - 1].attributes["lower"] if i else "<s>",
                    "run_after": sentence[j].attributes["lower"] if j < len(sentence) else "</s>",
                }
        i = j


def index_phrases(lists: Mapping[str, Iterable[Sequence[str]]]) -> PhraseIndex:
    """Index the gazetteers' phrases (tuples of lower-case words) by first word, shorter phrases first."""
    index: PhraseIndex = defaultdict(list)
    for name, phrases in lists.items():
        for phrase in phrases:
            index[phrase[0]].append((len(phrase), tuple(phrase), f"gazetteer:{name}"))
    for entries in index.values():
        entries.sort()
    return dict(index)


def gazetteer_marks(sentence: Sequence[Word], positions: list[Attributes], index: PhraseIndex) -> None:
    """Mark each token's position in gazetteer names: alone, first, inside or last. Skip names inside earlier names."""
    words = [word.attributes["lower"] for word in sentence]
    for i, word in enumerate(sentence):
        for n, phrase, name in index.get(words[i], ()) if not word.small else ():
            if tuple(words[i : i + n]) == phrase and positions[i].get(name) not in ("inside", "last"):
                for k in range(i, i + n):
                    place = "alone" if n == 1 else "first" if k == i else "last" if k == i + n - 1 else "inside"
                    positions[k][name] = place


def casings(sentences: Sequence[Sequence[Word]], positions: Sequence[list[Attributes]]) -> None:
    small: dict[str, int] = defaultdict(int)
    inside: dict[str, int] = defaultdict(int)
    for sentence, places in zip(sentences, positions, strict=True):
        for i, word in enumerate(sentence):
            small[word.attributes["lower"]] += word.small
            inside[word.attributes["lower"]] += (
                word.capital and i > first_word(sentence) and "headline" not in places[i]
            )
    for sentence, places in zip(sentences, positions, strict=True):
        for i, word in enumerate(sentence):
            lower, first, headline = word.attributes["lower"], i <= first_word(sentence), "headline" in places[i]
            if word.capital:
                elsewhere = inside[lower] - (not first and not headline) > 0
                places[i]["casing"] = f"{word.all_caps},{headline},{first},{elsewhere},{small[lower] > 0}"
            elif word.small and inside[lower]:
                places[i]["casing"] = "small, capital elsewhere"


def features(
    plan,
    sentences: Sequence[Sequence[str]],
    classes: Mapping[str, int],
    index: PhraseIndex,
    known: dict[str, Word],
    vectors: Mapping[str, Sequence[int]] | None = None,
) -> list[list[list[str]]]:
    """Return feature strings by sentence and token, for a `herdner.ner.features.FeaturePlan`.

    ``classes``: word classes by word; ``index``: see `index_phrases`; ``known``: cache of described words, extended
    here; ``vectors``: the four vector classes of lower-case words.
    """
    words = [
        [known.get(t) or known.setdefault(t, describe(t, classes, vectors or {})) for t in tokens]
        for tokens in sentences
    ]
    positions: list[list[Attributes]] = [
        [{"bias": "1", "headline": "1"} if headline else {"bias": "1"} for _ in sentence]
        for sentence in words
        for headline in [is_headline(sentence)]
    ]
    for sentence, places in zip(words, positions, strict=True):
        runs_of_capitals(sentence, places)
        gazetteer_marks(sentence, places, index)
    casings(words, positions)
    templates = parsed(plan.templates)
    elsewhere = neighbours(words, plan.elsewhere)
    return [
        [
            token_features(templates, sentence, places, i)
            + elsewhere_features(elsewhere, s, i, word, plan.n_occurrences)
            for i, word in enumerate(sentence)
        ]
        for s, (sentence, places) in enumerate(zip(words, positions, strict=True))
    ]


@lru_cache(maxsize=8)
def parsed(templates: tuple[str, ...]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return each feature template with its items, as pairs of an attribute and an offset of a token."""
    return [(t, [(a, int(o[:-1])) for a, _, o in (item.partition("[") for item in t.split("|"))]) for t in templates]


def token_features(templates, sentence: Sequence[Word], places: Sequence[Attributes], i: int) -> list[str]:
    found = []
    for template, items in templates:
        values = []
        for attribute, offset in items:
            j = i + offset
            word = BEFORE if j < 0 else AFTER if j >= len(sentence) else sentence[j]
            value = word.attributes.get(attribute) or (places[j].get(attribute) if 0 <= j < len(sentence) else None)
            if value is None:
                break
            values.append(value)
        else:
            found.append(f"{template}={'|'.join(values)}")
    return found


def neighbours(
    words: Sequence[Sequence[Word]], attributes: Sequence[str]
) -> dict[str, list[tuple[int, int, list[str]]]]:
    """Return, for each lower-case word, its occurrences (sentence, token) with the features of adjacent words."""
    occurrences: dict[str, list[tuple[int, int, list[str]]]] = defaultdict(list)
    for s, sentence in enumerate(words):
        for i, word in enumerate(sentence):
            beside = [("left", sentence[i - 1])] if i else []
            beside += [("right", sentence[i + 1])] if i + 1 < len(sentence) else []
            found = [f"{side}:{a}={w.attributes[a]}" for side, w in beside for a in attributes if a in w.attributes]
            occurrences[word.attributes["lower"]].append((s, i, found))
    return occurrences


def elsewhere_features(occurrences, s: int, i: int, word: Word, n_occurrences: int) -> list[str]:
    if not word.capital:
        return []
    same = occurrences[word.attributes["lower"]]
    here = bisect_left(same, (s, i))
    near = same[max(0, here - n_occurrences) : here] + same[here + 1 : here + 1 + n_occurrences]
    return [feature for _, _, found in near for feature in found]
