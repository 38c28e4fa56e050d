"""Active learning: an order in which to annotate documents, the most informative first.

The uncertainty of a token is 1 minus the difference between the probabilities of its two best tags (the margin of
Scheffer et al. 2001, applied to sequences by Settles and Craven 2008). For linked tokens, it is at least the total
variation distance between their label distributions. A word has more weight if more documents contain it (the density
of Settles and Craven 2008).

The gain of a set of documents is the sum over distinct words of the largest uncertainty of each word. This function is
submodular, so a greedy choice is near the optimum (Nemhauser et al. 1978), and lazy evaluation makes it fast (Minoux
1978).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log1p
from typing import NamedTuple

import numpy as np

from herdner.base.arrays import Floats
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tags import split_tag

# The gain of a document is divided by its number of tokens, raised to this power. The power 0 prefers long documents, 1
# short ones. With a power between 0 and 1, suggestions are better than random documents per document and per token.
LENGTH_POWER = 0.5


class Suggestion(NamedTuple):
    """Document that should be annotated, with its predicted entities and the expected gain of its annotation.

    Attributes:
        document: The document with predicted entities.
        gain: Sum, over the words of the document, of the amount by which their weighted uncertainty exceeds that of the
            same word in the documents before it.
        uncertain_words: Words of the document with their uncertainty between 0 and 1, in descending order.
    """

    document: Document
    gain: float
    uncertain_words: list[tuple[str, float]]


def suggest(tagger: Tagger, documents: Iterable[Document]) -> list[Suggestion]:
    """Tag documents, and return them in the order in which they should be annotated.

    All documents are kept in memory.

    Args:
        tagger: Tagger whose uncertainty is measured.
        documents: Texts or documents; documents without tokens are left out.
    """
    return rank_documents(tagger, list(tagger.pipe(documents)))


def rank_documents(tagger: Tagger, tagged: Sequence[Document]) -> list[Suggestion]:
    """Sort tagged documents into the order in which they should be annotated.

    Args:
        tagger: Tagger whose uncertainty is measured.
        tagged: Documents that the tagger has tagged; documents without tokens are left out.

    Returns:
        The documents with their expected gains, the most useful document first.
    """
    tagged = [document for document in tagged if document.n_tokens]
    uncertainties = [_by_word(document, token_uncertainty(tagger, document)) for document in tagged]
    n_documents = Counter(word for words in uncertainties for word in words)
    weighted = [{word: value * log1p(n_documents[word]) for word, value in words.items()} for words in uncertainties]
    order = greedy_order(weighted, [document.n_tokens**LENGTH_POWER for document in tagged])
    return [
        Suggestion(tagged[i], gain, sorted(uncertainties[i].items(), key=lambda pair: -pair[1])) for i, gain in order
    ]


def token_uncertainty(tagger: Tagger, document: Document) -> Floats:
    """Return the uncertainty about the tag of each token, between 0 and 1, float64[tokens].

    Args:
        tagger: Tagger whose uncertainty is measured.
        document: Document with n tokens.
    """
    (marginals,) = tagger.predict_marginals([document], links=False)
    best = np.sort(marginals, axis=1)[:, -2:]
    uncertainty = 1 - (best[:, 1] - best[:, 0])
    labels = [split_tag(tag)[1] for tag in tagger.classes_]
    columns = [[k for k, own in enumerate(labels) if own == label] for label in dict.fromkeys(labels)]
    label_marginals = np.stack([marginals[:, own].sum(axis=1) for own in columns], axis=1)
    for left, right in (ends.T for ends in tagger.find_links(document).values()):
        distance = 0.5 * np.abs(label_marginals[left] - label_marginals[right]).sum(axis=1)
        np.maximum.at(uncertainty, left, distance)
        np.maximum.at(uncertainty, right, distance)
    return uncertainty


def _by_word(document: Document, uncertainty: Floats) -> dict[str, float]:
    """Return the largest uncertainty of each distinct word of a document, as a dict from word to uncertainty."""
    largest: dict[str, float] = {}
    for token, value in zip(document.tokens, uncertainty.tolist(), strict=True):
        largest[token] = max(value, largest.get(token, 0.0))
    return largest


def greedy_order(values: Sequence[dict[str, float]], costs: Sequence[float]) -> list[tuple[int, float]]:
    """Order documents greedily by the ratio of gain to cost, largest ratio first.

    Documents with equal ratios keep the input order.

    Args:
        values: Value of each word of each document. The gain of a document is the sum, over its words, of the increase
            of the word's largest value in the documents before it.
        costs: Cost of each document.

    Returns:
        Index and gain of each document.
    """
    largest: dict[str, float] = {}

    def gain(i: int) -> float:
        return sum(max(0.0, value - largest.get(word, 0.0)) for word, value in values[i].items())

    queue = [(-gain(i) / costs[i], i) for i in range(len(values))]
    heapq.heapify(queue)
    order: list[tuple[int, float]] = []
    while queue:
        _, i = heapq.heappop(queue)
        added = gain(i)
        now = (-added / costs[i], i)
        if queue and now > queue[0]:  # its gain has decreased, so another document may be better
            heapq.heappush(queue, now)
            continue
        order.append((i, added))
        for word, value in values[i].items():
            largest[word] = max(value, largest.get(word, 0.0))
    return order
