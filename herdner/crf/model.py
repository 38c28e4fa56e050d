"""The linear-chain CRF as a factor graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner.graph import FactorGraph, chain


@dataclass(frozen=True)
class CRF:
    """Tied tables of a linear-chain CRF over K tags (Lafferty, McCallum and Pereira 2001); -inf forbids.

    transition: float64[K, K], log-potential of a tag (row) followed by a tag (column) in one sentence;
    start, end: float64[K], log-potentials of the first and the last tag of a sentence.
    """

    transition: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]

    def unroll(self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]) -> FactorGraph:
        """The graph of a document: ``unary`` float64[n, K] per token, one chain per sentence."""
        return chain(unary, self.transition, sentence_offsets, start=self.start, end=self.end)

    def with_borders(self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """``unary`` with start and end added at the borders of sentences: the chain's log-potentials without those
        tables.
        """
        total = unary.copy()
        total[sentence_offsets[:-1]] += self.start
        total[sentence_offsets[1:] - 1] += self.end
        return total
