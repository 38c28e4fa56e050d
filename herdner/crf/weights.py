"""Weights of a trained chain, indexed by the 64-bit keys of its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s

MOST_TAGS = 256  # model files store the index of a tag in a byte
Keys = tuple[Int64s, NDArray[np.uint64]]
"""Features of a document as ``starts`` and ``keys``; token t has ``keys[starts[t]:starts[t + 1]]``."""


@dataclass(frozen=True)
class ChainWeights:
    """Weights of a linear-chain CRF (Lafferty, McCallum and Pereira 2001).

    Attributes:
        tags: The K tags.
        transition: float64[K, K], weight of a tag (row) followed by a tag (column).
        keys: uint64[n], keys of the features, ascending.
        starts: uint32[n + 1]; feature r has the entries ``starts[r]:starts[r + 1]``.
        entry_tags: uint8[m], index of the tag of each entry.
        entry_weights: float64[m], weight of each entry.
    """

    tags: tuple[str, ...]
    transition: Floats
    keys: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    entry_tags: NDArray[np.uint8]
    entry_weights: Floats

    @staticmethod
    def from_entries(
        tags: tuple[str, ...],
        transition: Floats,
        keys: NDArray[np.uint64],
        entry_tags: NDArray[np.uint8],
        entry_weights: Floats,
    ) -> ChainWeights:
        """Build chain weights from entries in any order; entries of one feature keep their order.

        Args:
            tags: The K tags.
            transition: float64[K, K], weights of adjacent tags.
            keys: uint64[m], key of each entry.
            entry_tags: uint8[m], index of the tag of each entry.
            entry_weights: float64[m], weight of each entry.

        Returns:
            The weights, sorted by feature key.
        """
        order = np.argsort(keys, kind="stable")
        distinct, first = np.unique(keys[order], return_index=True)
        starts = np.append(first, len(keys)).astype(np.uint32)
        return ChainWeights(tags, transition, distinct, starts, entry_tags[order], entry_weights[order])

    @staticmethod
    def empty() -> ChainWeights:
        """Return chain weights that have no tags and no features."""
        nothing = np.empty(0, np.uint64)
        return ChainWeights((), np.empty((0, 0)), nothing, np.zeros(1, np.uint32), np.empty(0, np.uint8), np.empty(0))

    @property
    def entry_keys(self) -> NDArray[np.uint64]:
        """Feature key of each weight entry, uint64[m]. An entry is the weight of one feature for one tag."""
        return np.repeat(self.keys, np.diff(self.starts.astype(np.int64)))

    def entries_of(self, keys: NDArray[np.uint64]) -> tuple[Int64s, Int64s]:
        """Return the indices of the weight entries of all features whose keys are in ``keys``.

        Args:
            keys: Keys of features. Features without weights have no entries.

        Returns:
            Two int64 arrays with one item for each entry: the index of its feature in ``keys``, and its own index.
        """
        at = np.searchsorted(self.keys, keys)
        present = np.flatnonzero(at < len(self.keys))
        present = present[self.keys[at[present]] == keys[present]]
        starts = self.starts.astype(np.int64)
        first, sizes = starts[at[present]], np.diff(starts)[at[present]]
        within = np.arange(int(sizes.sum()), dtype=np.int64)
        entries = within + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        return np.repeat(present, sizes), entries

    def select(self, mask: NDArray[np.bool_]) -> ChainWeights:
        """Return chain weights with only the selected entries; features without entries are removed.

        Args:
            mask: bool[m], True for the selected entries.
        """
        return ChainWeights.from_entries(
            self.tags, self.transition, self.entry_keys[mask], self.entry_tags[mask], self.entry_weights[mask]
        )

    def add_to(self, base: ChainWeights) -> ChainWeights:
        """Return the sums of these weights and the weights of another model, ``base``.

        Args:
            base: Weights whose tags are a subset of `tags`.

        Returns:
            The sums, with the tags and the transitions of these weights.
        """
        number = np.array([self.tags.index(tag) for tag in base.tags], np.uint8)
        entries = [(base.entry_keys, number[base.entry_tags], base.entry_weights)]
        entries.append((self.entry_keys, self.entry_tags, self.entry_weights))
        return _sum_entries(self.tags, self.transition, entries)

    @staticmethod
    def mean(several: Sequence[ChainWeights]) -> ChainWeights:
        """Return the mean weights of several chains. A weight that a chain does not have counts as 0.

        Args:
            several: Weights with the same tags.

        Raises:
            ValueError: The chains have different tags.
        """
        tags, n = several[0].tags, len(several)
        if any(each.tags != tags for each in several):
            raise ValueError(
                "the weights of chains with different tags cannot be averaged; train all chains on the same tags"
            )
        transition = np.mean([each.transition for each in several], axis=0)
        entries = [(each.entry_keys, each.entry_tags, each.entry_weights / n) for each in several]
        return _sum_entries(tags, transition, entries)

    def prune(self, smallest: float) -> ChainWeights:
        """Return a copy of the weights without entries whose absolute value is below ``smallest``.

        Args:
            smallest: Smallest absolute value that is kept.
        """
        return self.select(np.abs(self.entry_weights) >= smallest)


def _sum_entries(
    tags: tuple[str, ...], transition: Floats, entries: Sequence[tuple[NDArray[Any], ...]]
) -> ChainWeights:
    """Sum the weights of equal entries; ``entries`` has the keys, the tags and the weights of each chain."""
    keys, states, weights = map(np.concatenate, zip(*entries, strict=True))
    order = np.lexsort((states, keys))
    first = np.append(True, (np.diff(keys[order]) != 0) | (np.diff(states[order]) != 0))[: len(order)]
    total = np.add.reduceat(weights[order], np.flatnonzero(first)) if len(order) else weights
    return ChainWeights.from_entries(tags, transition, keys[order][first], states[order][first], total)
