"""Which documents to annotate next: those where labels would teach a model most (active learning).

A token is in doubt by how little its best tag leads the second (the margin of Scheffer et al. 2001, as Settles and
Craven 2008 use it for sequences), or by how far mentions that a link joins are believed to differ. A word counts the
more, the more of the documents hold it (the density of Settles and Craven 2008), and once, however often it is in
doubt: the order is that of a greedy choice in which each distinct word has its largest doubt in the documents chosen so
far. That is a sum of maxima, a submodular function, of which the greedy choice is near the best (Nemhauser et al.
1978), and lazy evaluation finds it fast (Minoux 1978).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tags import split_tag

# A document is chosen for what it adds divided by its tokens to this power: 0 prefers long documents, 1 short ones. In
# between, suggestions are better than random ones document by document, and token by token.
LENGTH_POWER = 0.5


class Suggestion(NamedTuple):
    """A document with the names that the model believes in.

    Attributes:
        document: The document, with these names.
        gain: The weighted doubt that it adds to that of those before it.
        doubts: Its words with how much each is in doubt, between 0 and 1, the most doubtful first.
    """

    document: Document
    gain: float
    doubts: list[tuple[str, float]]


def suggest(tagger: Tagger, documents: Iterable[Document]) -> list[Suggestion]:
    """All documents that have tokens, in the order in which to annotate them. All are held in memory."""
    return suggested(tagger, list(tagger.pipe(documents)))


def suggested(tagger: Tagger, tagged: Sequence[Document]) -> list[Suggestion]:
    """`suggest` of documents that the tagger has tagged."""
    tagged = [document for document in tagged if document.n_tokens]
    found = [by_word(document, doubts(tagger, document)) for document in tagged]
    spread = Counter(word for words in found for word in words)
    weighted = [{word: doubt * log1p(spread[word]) for word, doubt in words.items()} for words in found]
    order = greedy_order(weighted, [document.n_tokens**LENGTH_POWER for document in tagged])
    return [Suggestion(tagged[i], gain, sorted(found[i].items(), key=lambda pair: -pair[1])) for i, gain in order]


def doubts(tagger: Tagger, document: Document) -> NDArray[np.float64]:
    """float64[n], between 0 and 1: how much each token of a tokenised document is in doubt."""
    (marginals,) = tagger.predict_marginals([document])
    top = np.sort(marginals, axis=1)[:, -2:]
    found = 1 - (top[:, 1] - top[:, 0])
    classes = [split_tag(label)[1] for label in tagger.classes_]
    columns = [[k for k, own in enumerate(classes) if own == label] for label in dict.fromkeys(classes)]
    beliefs = np.stack([marginals[:, own].sum(axis=1) for own in columns], axis=1)
    for left, right in (ends.T for ends in tagger.find_links(document).values()):
        differ = 0.5 * np.abs(beliefs[left] - beliefs[right]).sum(axis=1)
        np.maximum.at(found, left, differ)
        np.maximum.at(found, right, differ)
    return found


def by_word(document: Document, found: NDArray[np.float64]) -> dict[str, float]:
    """The largest doubt of each distinct word."""
    largest: dict[str, float] = {}
    for token, doubt in zip(document.tokens, found.tolist(), strict=True):
        largest[token] = max(doubt, largest.get(token, 0.0))
    return largest


def greedy_order(found: Sequence[dict[str, float]], costs: Sequence[float]) -> list[tuple[int, float]]:
    """The numbers of all documents, each with what it adds: at each step the one that adds most for its cost, of equal
    ones the first. ``found``: what the words of each are worth; of a word only its largest worth counts.
    """
    known: dict[str, float] = {}

    def gain(i: int) -> float:
        return sum(max(0.0, worth - known.get(word, 0.0)) for word, worth in found[i].items())

    waiting = [(-gain(i) / costs[i], i) for i in range(len(found))]
    heapq.heapify(waiting)
    order: list[tuple[int, float]] = []
    while waiting:
        _, i = heapq.heappop(waiting)
        added = gain(i)
        now = (-added / costs[i], i)
        if waiting and now > waiting[0]:  # what it adds has shrunk: another may add more
            heapq.heappush(waiting, now)
            continue
        order.append((i, added))
        for word, worth in found[i].items():
            known[word] = max(worth, known.get(word, 0.0))
    return order
