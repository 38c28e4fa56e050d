"""What a linear chain is trained on: sentences as sparse features, and the tags that each token may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from herdner._ext import likelihood as loops
from herdner.crf.weights import ChainWeights, Keys

_DENSE = 4  # weights of a feature from which on it is a row of the dense table


@dataclass(frozen=True, eq=False)
class ChainData:
    """Documents one behind the other.

    Features that occur at the same tokens are one column: they have the same weights where the likelihood is largest. A
    column has few weights, one for each tag it was met with; those with many are rows of a dense table.

    Attributes:
        labels: The K tags.
        sentence_offsets: int64[S + 1].
        documents: int32[S], the document of each sentence.
        allowed: uint8[n, K], whether a token may have a tag.
        states: int32[n], the tag where it is the only one, else -1.
        keys: uint64[F] of the features.
        columns: int32[F], the column of each.
        sizes: int64[C], features of each column.
        dense: bool[D, K], whether one of the first D columns has a weight for a tag.
        entry_starts: int64[C - D + 1], where the entries of each other column start.
        entry_labels: uint8, the tags for which the other columns have weights.
        uses: Token t uses the dense columns ``uses[starts[t]:middles[t]]`` and of the other weights
            ``uses[middles[t]:starts[t + 1]]``.
        starts: Where the uses of each token start.
        middles: Where its other weights start.
        occurrences: int64[C], tokens with a column.
        transitions: bool[K, K], which pairs of tags have weights.
    """

    labels: tuple[str, ...]
    sentence_offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    allowed: NDArray[np.uint8]
    states: NDArray[np.int32]
    keys: NDArray[np.uint64]
    columns: NDArray[np.int32]
    sizes: NDArray[np.int64]
    dense: NDArray[np.bool_]
    entry_starts: NDArray[np.int64]
    entry_labels: NDArray[np.uint8]
    uses: NDArray[np.int32]
    starts: NDArray[np.int64]
    middles: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    transitions: NDArray[np.bool_]

    @staticmethod
    def of(
        features: Sequence[Keys],
        sentence_offsets: Sequence[NDArray[np.int64]],
        allowed: Sequence[NDArray[np.uint8]],
        labels: Sequence[str],
        *,
        min_freq: int = 2,
        base: ChainWeights | None = None,
        counted: Sequence[NDArray[np.uint8]] | None = None,
    ) -> ChainData:
        """A weight for each feature and tag that occur together ``min_freq`` times, as CRFsuite has them, and for those
        that ``base`` has; likewise for pairs of neighbouring tags.

        Args:
            allowed: uint8[tokens, K] of each document.
            counted: Of the same shapes: the tags that a token counts with, none where these are all tags. None: those
                it may have.
        """
        labels = tuple(labels)
        joined = np.concatenate([*allowed, np.empty((0, len(labels)), np.uint8)])
        states = np.where(joined.sum(axis=1) == 1, joined.argmax(axis=1), -1).astype(np.int32)
        starts, offsets = _joined_starts([begin for begin, _ in features]), _joined_starts(sentence_offsets)
        distinct, numbers = loops.number_keys(np.concatenate([*(keys for _, keys in features), np.empty(0, np.uint64)]))
        met = joined if counted is None else np.concatenate([*counted, np.empty((0, len(labels)), np.uint8)])
        weighted = _weighted(distinct, numbers, starts, met, min_freq)
        transitions = _neighbours(states, joined, offsets, min_freq)
        if base is not None:
            number = _numbers(base.labels, labels)
            rows, entries = base.entries_of(distinct)
            weighted[rows, number[base.entry_labels[entries]]] = True
            transitions[np.ix_(number, number)] |= base.transition != 0
        kept = np.flatnonzero(weighted.any(axis=1))
        columns, first = _columns(kept, weighted, numbers, starts, len(distinct))
        column_of = np.full(len(distinct), -1, np.int32)
        column_of[kept] = columns
        weighted = weighted[first]
        n_dense = int((weighted.sum(axis=1) >= _DENSE).sum())
        entry_starts = np.append(0, np.cumsum(weighted[n_dense:].sum(axis=1), dtype=np.int64))
        leading = np.full(len(distinct), -1, np.int32)  # of the features of a column, one stands for all
        leading[first] = column_of[first]
        owners = np.repeat(np.arange(len(features), dtype=np.int32), [len(o) - 1 for o in sentence_offsets])
        return ChainData(
            labels, offsets, owners, joined, states, distinct[kept], columns,
            np.bincount(columns, minlength=len(first)), weighted[:n_dense], entry_starts,
            np.nonzero(weighted[n_dense:])[1].astype(np.uint8),
            *loops.lay_out(numbers, starts, leading, n_dense, entry_starts),
            np.bincount(numbers, minlength=len(distinct))[first], transitions,
        )  # fmt: skip

    @property
    def n_tokens(self) -> int:
        """Of all documents."""
        return len(self.states)

    @property
    def n_features(self) -> int:
        """Weights of pairs of a column and a tag."""
        return int(self.dense.sum()) + len(self.entry_labels)

    @cached_property
    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Column and tag of each weight of a column, in the order of the vector of weights."""
        rows, tags = np.nonzero(self.dense)
        others = np.repeat(np.arange(len(self.entry_starts) - 1), np.diff(self.entry_starts)) + len(self.dense)
        return np.concatenate([rows, others]), np.concatenate([tags.astype(np.uint8), self.entry_labels])

    def met(self, documents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[n_features + transitions]: whether a pair of a column and a tag occurs in some of the documents
        bool[D]; pairs of tags count as met.
        """
        tokens = np.repeat(documents[self.documents], np.diff(self.sentence_offsets))
        dense = np.zeros((len(self.dense), len(self.labels)), np.bool_)
        others = np.zeros(len(self.entry_labels), np.bool_)
        loops.meet(
            self, np.ascontiguousarray(self.allowed * tokens[:, None]), dense.view(np.uint8), others.view(np.uint8)
        )
        return np.concatenate([dense[self.dense], others, np.ones(int(self.transitions.sum()), np.bool_)])

    def vector_of(self, weights: ChainWeights) -> NDArray[np.float64]:
        """Float64[n_features + transitions]: what ``weights`` gives to the features of each column, added up; 0 where
        it has none.
        """
        number = _numbers(weights.labels, self.labels)
        rows, entries = weights.entries_of(self.keys)
        table = np.zeros((len(self.sizes), len(self.labels)))
        np.add.at(table, (self.columns[rows], number[weights.entry_labels[entries]]), weights.entry_weights[entries])
        transition = np.zeros((len(self.labels), len(self.labels)))
        transition[np.ix_(number, number)] = weights.transition
        return np.concatenate([table[self.entries], transition[self.transitions]])

    def weights_of(self, vector: NDArray[np.float64], base: ChainWeights | None = None) -> ChainWeights:
        """The weights that a vector stands for. Those of a column are shared out among its features, beside what
        ``base`` gives to each.
        """
        columns, tags = self.entries
        off = vector if base is None else vector - self.vector_of(base)
        table = np.zeros((len(self.sizes), len(self.labels)))
        table[columns, tags] = off[: len(columns)] / self.sizes[columns]
        weighted = np.zeros(table.shape, np.bool_)
        weighted[columns, tags] = True
        rows, tags = np.nonzero(weighted[self.columns])
        values = table[self.columns[rows], tags]
        transition = np.zeros((len(self.labels), len(self.labels)))
        transition[self.transitions] = vector[len(columns) :]
        found = ChainWeights.grouped(self.labels, transition, self.keys[rows], tags.astype(np.uint8), values)
        return found if base is None else found.added_to(base)


def _columns(
    kept: NDArray[np.int64],
    weighted: NDArray[np.bool_],
    numbers: NDArray[np.int32],
    starts: NDArray[np.int64],
    n_features: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The column of each ``kept`` feature, int32, and a feature of each column: the dense ones first, and of these the
    frequent ones. Features of a column have weights for the same tags.
    """
    hashes = loops.column_hashes(numbers, starts, n_features)[kept]
    packed = np.packbits(weighted[kept], axis=1)
    same = np.empty(len(kept), [("tokens", "u8"), ("tags", f"V{packed.shape[1]}")])
    same["tokens"], same["tags"] = hashes, packed.view(f"V{packed.shape[1]}")[:, 0]
    _, first, columns = np.unique(same, return_index=True, return_inverse=True)
    occurrences = np.bincount(numbers, minlength=n_features)[kept[first]]
    order = np.lexsort((-occurrences, weighted[kept[first]].sum(axis=1) < _DENSE))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[columns], kept[first[order]]


def _joined_starts(starts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Offsets of several documents, as those of one."""
    return np.concatenate([np.zeros(1, np.int64), *(np.diff(each) for each in starts)]).cumsum()


def _weighted(
    distinct: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    starts: NDArray[np.int64],
    allowed: NDArray[np.uint8],
    min_freq: int,
) -> NDArray[np.bool_]:
    """bool[features, K]: the pairs of a feature and a tag that are frequent enough."""
    frequent = np.flatnonzero(np.bincount(numbers, minlength=len(distinct)) >= min_freq)
    columns = np.full(len(distinct), -1, np.int32)
    columns[frequent] = np.arange(len(frequent), dtype=np.int32)
    counts = np.zeros((len(frequent), allowed.shape[1]), np.int32)
    loops.count_pairs(numbers, starts, allowed, columns, counts)
    weighted = np.zeros((len(distinct), allowed.shape[1]), np.bool_)
    weighted[frequent] = counts >= max(min_freq, 1)
    return weighted


def _numbers(labels: Sequence[str], among: Sequence[str]) -> NDArray[np.int64]:
    """Where each label stands among others, all of which must be there."""
    place = {label: k for k, label in enumerate(among)}
    return np.array([place[label] for label in labels], np.int64)


def _neighbours(
    states: NDArray[np.int32], allowed: NDArray[np.uint8], offsets: NDArray[np.int64], min_freq: int
) -> NDArray[np.bool_]:
    """bool[K, K]: the pairs of tags that neighbours in a sentence have ``min_freq`` times, or may have."""
    right = np.delete(np.arange(len(states)), offsets[:-1][np.diff(offsets) > 0])
    right = right[right > 0]
    n_labels = allowed.shape[1]
    known = right[(states[right] >= 0) & (states[right - 1] >= 0)]
    counts = np.bincount(states[known - 1] * n_labels + states[known], minlength=n_labels**2).astype(np.int64)
    counts = counts.reshape(n_labels, n_labels)
    open_ = right[(states[right] < 0) | (states[right - 1] < 0)]
    if len(open_):
        counts += allowed[open_ - 1].astype(np.int64).T @ allowed[open_].astype(np.int64)
    return counts >= max(min_freq, 1)
