"""The weights of a trained chain, by the 64-bit keys of its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_TAGS = 256  # as a model keeps the number of a tag in a byte
Keys = tuple[NDArray[np.int64], NDArray[np.uint64]]
"""The features of a document's tokens: token t has ``keys[starts[t]:starts[t + 1]]``."""


@dataclass(frozen=True)
class ChainWeights:
    """Weights of a linear-chain CRF (Lafferty, McCallum and Pereira 2001).

    Attributes:
        labels: The K tags.
        transition: float64[K, K], from row to column.
        keys: uint64[n], of the features, ascending.
        starts: Feature r has the entries ``starts[r]:starts[r + 1]``.
        entry_labels: uint8, the tag of each entry.
        entry_weights: float64, its weight.
    """

    labels: tuple[str, ...]
    transition: NDArray[np.float64]
    keys: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    entry_labels: NDArray[np.uint8]
    entry_weights: NDArray[np.float64]

    @staticmethod
    def grouped(
        labels: tuple[str, ...],
        transition: NDArray[np.float64],
        keys: NDArray[np.uint64],
        entry_labels: NDArray[np.uint8],
        entry_weights: NDArray[np.float64],
    ) -> ChainWeights:
        """Entries, each with its key, gathered by key; the order of a key's entries is kept."""
        order = np.argsort(keys, kind="stable")
        distinct, first = np.unique(keys[order], return_index=True)
        starts = np.append(first, len(keys)).astype(np.uint32)
        return ChainWeights(labels, transition, distinct, starts, entry_labels[order], entry_weights[order])

    @staticmethod
    def none() -> ChainWeights:
        """No tags and no features."""
        nothing = np.empty(0, np.uint64)
        return ChainWeights(
            (), np.empty((0, 0)), nothing, np.zeros(1, np.uint32), nothing.astype(np.uint8), np.empty(0)
        )

    @property
    def entry_keys(self) -> NDArray[np.uint64]:
        """uint64: the key of each entry."""
        return np.repeat(self.keys, np.diff(self.starts.astype(np.int64)))

    def entries_of(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The entries of some features, as pairs: a place in ``keys``, which may hold unknown ones, and an entry."""
        at = np.searchsorted(self.keys, keys)
        known = np.flatnonzero(at < len(self.keys))
        known = known[self.keys[at[known]] == keys[known]]
        starts = self.starts.astype(np.int64)
        first, sizes = starts[at[known]], np.diff(starts)[at[known]]
        within = np.arange(int(sizes.sum()), dtype=np.int64)
        entries = within + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        return np.repeat(known, sizes), entries

    def only(self, kept: NDArray[np.bool_]) -> ChainWeights:
        """The entries that are ``kept``, without rows that are then empty."""
        return ChainWeights.grouped(
            self.labels, self.transition, self.entry_keys[kept], self.entry_labels[kept], self.entry_weights[kept]
        )

    def added_to(self, base: ChainWeights) -> ChainWeights:
        """``base`` with these weights added to its own. All tags of ``base`` are these; transitions stay these."""
        number = np.array([self.labels.index(label) for label in base.labels], np.uint8)
        return _summed(
            self.labels,
            self.transition,
            [base.entry_keys, self.entry_keys],
            [number[base.entry_labels], self.entry_labels],
            [base.entry_weights, self.entry_weights],
        )

    @staticmethod
    def mean(several: Sequence[ChainWeights]) -> ChainWeights:
        """Of chains with the same tags; what one of them has no weight for counts as 0 there.

        Raises:
            ValueError: Their tags differ.
        """
        labels, n = several[0].labels, len(several)
        if any(each.labels != labels for each in several):
            raise ValueError("the chains have different tags: no mean of their weights")
        return _summed(
            labels,
            np.mean([each.transition for each in several], axis=0),
            [each.entry_keys for each in several],
            [each.entry_labels for each in several],
            [each.entry_weights / n for each in several],
        )

    def pruned(self, smallest: float) -> ChainWeights:
        """Without the entries whose weight is below ``smallest`` in size."""
        return self.only(np.abs(self.entry_weights) >= smallest)


def _summed(
    labels: tuple[str, ...],
    transition: NDArray[np.float64],
    of_keys: Sequence[NDArray[np.uint64]],
    of_tags: Sequence[NDArray[np.uint8]],
    of_weights: Sequence[NDArray[np.float64]],
) -> ChainWeights:
    """All entries, those of the same key and tag as one."""
    keys, tags, weights = np.concatenate(of_keys), np.concatenate(of_tags), np.concatenate(of_weights)
    order = np.lexsort((tags, keys))
    first = np.append(True, (np.diff(keys[order]) != 0) | (np.diff(tags[order]) != 0))[: len(order)]
    total = np.add.reduceat(weights[order], np.flatnonzero(first)) if len(order) else weights
    return ChainWeights.grouped(labels, transition, keys[order][first], tags[order][first], total)
