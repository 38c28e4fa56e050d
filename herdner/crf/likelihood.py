"""Penalised conditional log-likelihood of a linear chain and its gradient, computed on several threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from herdner._ext import likelihood as loops
from herdner.base.arrays import Floats, Int64s, sealed
from herdner.crf.chain_data import ChainData
from herdner.crf.lbfgs import ranges

_PARTS = 4  # the sums of this many parts are added in order, so that results do not depend on the threads


class ImpossibleTags(ValueError):
    """Error: the annotation of a sentence allows only tag sequences with forbidden transitions.

    Args:
        document: Index of the document.
    """

    def __init__(self, document: int) -> None:
        """Store the index of the document that contains the impossible tags, and build the error message."""
        self.document = document
        super().__init__(
            f"document {document}: forbidden transitions rule out every tag sequence that the annotation of a sentence"
            " allows; correct the tags of this document, or allow the transitions"
        )


@dataclass(frozen=True, eq=False)
class Borders:
    """Log-potentials of adjacent tags and of tags at sentence borders: -inf if the tag scheme forbids them, else 0.

    Attributes:
        transition: float64[K, K], adjacent tags.
        start: float64[K], first tag of a sentence.
        end: float64[K], last tag of a sentence.
    """

    transition: Floats
    start: Floats
    end: Floats

    @staticmethod
    def free(n_tags: int) -> Borders:
        """Return log-potentials that are all 0, so that every tag sequence is allowed.

        Args:
            n_tags: Number of tags.
        """
        return Borders(np.zeros((n_tags, n_tags)), np.zeros(n_tags), np.zeros(n_tags))


class ChainLikelihood:
    """Training loss of a linear chain as a function of its d weights: the negative log-likelihood plus a penalty.

    The likelihood sums over all tag sequences that the tokens may have (Tsuboi et al. 2008). If each token has a single
    tag, this is the likelihood of Lafferty, McCallum and Pereira 2001. The penalty is ``c2`` times the squared distance
    from ``origin`` (Chelba and Acero 2004).

    Args:
        data: Features and allowed tags of the documents.
        c2: Weight of the penalty, a number or float64[d].
        origin: float64[d], mean of the prior; None is 0.
        document_weights: float64[D], weight of each document; None is 1.
        borders: Log-potentials that forbid tag sequences; None forbids nothing.
        n_threads: Number of threads; None is one for each processor, at most 4.
    """

    def __init__(
        self,
        data: ChainData,
        c2: float | Floats = 0.0,
        *,
        origin: Floats | None = None,
        document_weights: Floats | None = None,
        borders: Borders | None = None,
        n_threads: int | None = None,
    ) -> None:
        """Store the training data and the options, and divide the sentences among threads."""
        self.data = data
        self.n_weights = data.n_features + int(data.transitions.sum())
        columns, _ = data.entries
        # The m features of a column have equal weights w / m, so the sum of their squares is w^2 / m.
        self.penalty = np.array(np.broadcast_to(c2, self.n_weights), np.float64)
        self.penalty[: len(columns)] /= data.sizes[columns]
        self.origin, self.has_origin = np.zeros(self.n_weights) if origin is None else origin, origin is not None
        n_documents = int(data.documents.max()) + 1 if len(data.documents) else 0
        weights = np.ones(n_documents) if document_weights is None else document_weights
        self.sentence_weights = weights[data.documents]
        self.borders = borders or Borders.free(len(data.tags))
        self.n_threads = n_threads or min(os.cpu_count() or 1, _PARTS)
        self.parts = [loops.TrainingData(data, *part) for part in _parts(data.sentence_offsets, self.sentence_weights)]
        n_tags, n_parts = len(data.tags), len(self.parts)
        padded = np.pad(data.dense, ((0, 0), (0, -n_tags % 4)))
        self.dense, self.dense_places = np.zeros(padded.shape), sealed([np.flatnonzero(padded)])
        # Derivatives of each part; the memory is used again in each call.
        self.dense_slopes = np.empty((n_parts, *padded.shape))
        self.entry_slopes = np.empty((n_parts, data.n_features - len(self.dense_places)))
        self.transition_slopes = np.empty((n_parts, n_tags, n_tags))

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        """Return the training loss for a weight vector, and the gradient of the loss.

        Args:
            vector: float64[d], weights.

        Returns:
            The loss, and its derivatives, float64[d].

        Raises:
            ImpossibleTags: Forbidden transitions rule out every tag sequence that the annotation of a sentence allows.
        """
        data, n_tags = self.data, len(self.data.tags)
        n_dense, n_features = len(self.dense_places), data.n_features
        self.dense.reshape(-1)[self.dense_places] = vector[:n_dense]
        transition = np.zeros((n_tags, n_tags))
        transition[data.transitions] = vector[n_features:]
        transition += self.borders.transition

        def part(k: int) -> tuple[float, int]:
            return loops.add_gradient(
                self.parts[k], self.sentence_weights, self.dense, vector[n_dense:n_features],
                transition[None], self.borders.start, self.borders.end,
                self.dense_slopes[k], self.entry_slopes[k], self.transition_slopes[k],
            )  # fmt: skip

        def add_slopes(first: int, last: int) -> None:
            loops.add_slopes(self.dense_slopes, self.entry_slopes, self.dense_places, slope, first, last)

        with ThreadPoolExecutor(self.n_threads) as threads:
            results = list(threads.map(part, range(len(self.parts))))
            for _, impossible in results:  # index of a sentence, or -1
                if impossible >= 0:
                    raise ImpossibleTags(int(data.documents[impossible]))
            shift = vector - self.origin if self.has_origin else vector
            penalised = self.penalty * shift
            slope = 2 * penalised
            list(threads.map(add_slopes, *zip(*ranges(n_features, self.n_threads), strict=True)))
        for pairs in self.transition_slopes:
            slope[n_features:] += pairs[data.transitions]
        return sum(value for value, _ in results) + float(penalised @ shift), slope


def _parts(offsets: Int64s, weights: Floats) -> Sequence[tuple[int, int]]:
    """Divide the sentences into `_PARTS` ranges with similar numbers of tokens.

    Only tokens of documents with a positive weight are counted.
    """
    sizes = np.cumsum(np.diff(offsets) * (weights != 0))
    total = sizes[-1] if len(sizes) else 0
    cuts = np.searchsorted(sizes, [total * k / _PARTS for k in range(1, _PARTS)])
    borders = [0, *cuts.tolist(), len(weights)]
    return list(pairwise(borders))
