"""The penalised conditional log-likelihood of a linear chain, and its derivatives, on several threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from herdner._ext import likelihood as loops
from herdner.base.arrays import Floats
from herdner.crf.chain_data import ChainData

_PARTS = 4  # of the sentences, added up in their order: so that the number of threads changes no bit


class ImpossibleTags(ValueError):
    """No tags that a sentence may have are well formed; ``document`` is its document's place."""

    def __init__(self, document: int) -> None:
        self.document = document
        super().__init__(f"document {document}: a sentence has tags that the tag scheme forbids")


@dataclass(frozen=True, eq=False)
class Borders:
    """What is forbidden, as -inf among zeros: pairs of neighbours float64[K, K], first and last tags float64[K]."""

    transition: Floats
    start: Floats
    end: Floats

    @staticmethod
    def free(n_labels: int) -> Borders:
        """Nothing is forbidden: as CRFsuite trains."""
        return Borders(np.zeros((n_labels, n_labels)), np.zeros(n_labels), np.zeros(n_labels))


class ChainLikelihood:
    """Minus the log-likelihood of the tags that tokens may have (Tsuboi et al. 2008; where each token has one, that of
    Lafferty, McCallum and Pereira 2001), plus ``c2`` times the squared distance from ``origin`` (Chelba and Acero
    2004).

    Called with a vector of weights float64[weights] it returns the value and its derivatives float64[weights].

    Args:
        c2: A number, or float64[weights], one for each.
        document_weights: float64[documents], by how much each counts; None: 1.
        origin: float64[weights], 0 where None.
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
        self.data = data
        self.n_weights = data.n_features + int(data.transitions.sum())
        columns, _ = data.entries
        # The weights of m features that are one column are equal: m squares of 1/m of their sum.
        self.penalty = np.array(np.broadcast_to(c2, self.n_weights), np.float64)
        self.penalty[: len(columns)] /= data.sizes[columns]
        self.origin = np.zeros(self.n_weights) if origin is None else origin
        n_documents = int(data.documents.max()) + 1 if len(data.documents) else 0
        weights = np.ones(n_documents) if document_weights is None else document_weights
        self.sentence_weights = weights[data.documents]
        self.borders = borders or Borders.free(len(data.labels))
        self.n_threads = n_threads or min(os.cpu_count() or 1, _PARTS)
        self.parts = _parts(data.sentence_offsets, self.sentence_weights)
        n_labels = len(data.labels)
        padded = np.pad(data.dense, ((0, 0), (0, -n_labels % 4)))
        self.dense_shape, self.dense_places = padded.shape, np.flatnonzero(padded)

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        data, n_labels = self.data, len(self.data.labels)
        n_dense, n_features = len(self.dense_places), data.n_features
        dense = np.zeros(self.dense_shape)
        dense.ravel()[self.dense_places] = vector[:n_dense]
        transition = np.zeros((n_labels, n_labels))
        transition[data.transitions] = vector[n_features:]
        transition += self.borders.transition
        slopes = [(np.zeros_like(dense), np.zeros(n_features - n_dense), np.zeros_like(transition)) for _ in self.parts]

        def part(k: int) -> tuple[float, int]:
            return loops.slope(
                data, *self.parts[k], self.sentence_weights, dense, vector[n_dense:n_features], transition[None],
                self.borders.start, self.borders.end, *slopes[k],
            )  # fmt: skip

        with ThreadPoolExecutor(self.n_threads) as threads:
            found = list(threads.map(part, range(len(self.parts))))
        for _, fault in found:
            if fault >= 0:
                raise ImpossibleTags(int(data.documents[fault]))
        off = vector - self.origin
        slope = 2 * self.penalty * off
        for rows, entries, pairs in slopes:
            slope[:n_dense] += rows.ravel()[self.dense_places]
            slope[n_dense:n_features] += entries
            slope[n_features:] += pairs[data.transitions]
        return sum(value for value, _ in found) + float((self.penalty * off) @ off), slope


def _parts(offsets: NDArray[np.int64], weights: Floats) -> Sequence[tuple[int, int]]:
    """The sentences in `_PARTS` stretches of about as many tokens that count."""
    sizes = np.cumsum(np.diff(offsets) * (weights != 0))
    total = sizes[-1] if len(sizes) else 0
    cuts = np.searchsorted(sizes, [total * k / _PARTS for k in range(1, _PARTS)])
    borders = [0, *cuts.tolist(), len(weights)]
    return list(pairwise(borders))
