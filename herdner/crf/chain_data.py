"""Training data of a linear chain: sparse features of sentences, and the tags that each token may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext import likelihood as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.crf.weights import ChainWeights, Keys

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplication maps different hashes to different hashes
_DENSE = 4  # columns with at least this many weights are rows of the dense table


@dataclass(frozen=True, eq=False)
class ChainData:
    """Training data of linear chains: concatenated documents with their features and allowed tags.

    Features that occur at exactly the same tokens form one column, because they have equal weights at the optimum. A
    column has one weight for each tag with which it occurs. Columns with many weights are rows of a dense table.

    Attributes:
        tags: The K tags.
        sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens n.
        documents: int32[S], index of the document of each sentence.
        allowed: uint8[n, K], 1 for the tags that a token may have.
        states: int32[n], index of each token's tag, or -1 if the token may have several tags.
        keys: uint64[F], keys of the features.
        columns: int32[F], column of each feature.
        sizes: int64[C], number of features of each column.
        dense: bool[D, K], True if the column has a weight for the tag. The first D columns are dense.
        entry_starts: int64[C - D + 1], first entry of each column that is not dense, and the number of entries.
        entry_tags: uint8, tag of each entry of the columns that are not dense.
        uses: Token t uses the dense columns ``uses[starts[t]:middles[t]]`` and the entries
            ``uses[middles[t]:starts[t + 1]]``.
        starts: int64[n + 1], first use of each token.
        middles: int64[n], first entry among the uses of each token.
        occurrences: int64[C], number of tokens with each column.
        transitions: bool[K, K], pairs of adjacent tags that have weights.
        values: float64, value of each of ``uses``; None means that all features have the value 1.
    """

    tags: tuple[str, ...]
    sentence_offsets: Int64s
    documents: Int32s
    allowed: NDArray[np.uint8]
    states: Int32s
    keys: NDArray[np.uint64]
    columns: Int32s
    sizes: Int64s
    dense: NDArray[np.bool_]
    entry_starts: Int64s
    entry_tags: NDArray[np.uint8]
    uses: Int32s
    starts: Int64s
    middles: Int64s
    occurrences: Int64s
    transitions: NDArray[np.bool_]
    values: Floats | None = None

    @staticmethod
    def of(
        features: Sequence[Keys],
        sentence_offsets: Sequence[Int64s],
        allowed: Sequence[NDArray[np.uint8]],
        tags: Sequence[str],
        *,
        min_freq: int = 2,
        base: ChainWeights | None = None,
        counted: Sequence[NDArray[np.uint8]] | None = None,
        values: Sequence[Floats] | None = None,
    ) -> ChainData:
        """Build the training data of a linear chain from the features and the allowed tags of documents.

        A feature has a weight for each tag with which it occurs at least ``min_freq`` times. A pair of adjacent tags
        has a weight if it occurs at least ``min_freq`` times. CRFsuite uses the same rules. Weights of ``base`` are
        always included.

        Args:
            features: Features of each document.
            sentence_offsets: int64[S + 1] for each document, first token of each sentence, and the number of tokens.
            allowed: uint8[tokens, K] for each document, 1 for the tags that a token may have.
            tags: The K tags.
            min_freq: Minimum number of occurrences.
            base: Weights of a base model, or None.
            counted: uint8[tokens, K] for each document, 1 for the tags with which the features of a token are counted.
                Tokens that may have all tags are not counted. None means ``allowed``.
            values: float64, value of each feature of each document; None is 1. Features are merged only if all values
                are 0 or 1.

        Returns:
            The training data of all documents.
        """
        distinct, indices = loops.number_keys(np.concatenate([*(keys for _, keys in features), np.empty(0, np.uint64)]))
        no_tags = np.empty((0, len(tags)), np.uint8)
        starts, offsets = _concatenate_starts([begin for begin, _ in features]), _concatenate_starts(sentence_offsets)
        data = ChainData.of_indices(
            distinct, indices, starts, offsets,
            np.concatenate([*allowed, no_tags]), tags, min_freq=min_freq, base=base,
            counted=None if counted is None else np.concatenate([*counted, no_tags]),
            values=None if values is None else np.concatenate(values),
        )  # fmt: skip
        owners = np.repeat(np.arange(len(features), dtype=np.int32), [len(o) - 1 for o in sentence_offsets])
        return replace(data, documents=owners)

    @staticmethod
    def of_indices(
        keys: NDArray[np.uint64],
        indices: Int32s,
        starts: Int64s,
        sentence_offsets: Int64s,
        allowed: NDArray[np.uint8],
        tags: Sequence[str],
        *,
        min_freq: int = 2,
        base: ChainWeights | None = None,
        counted: NDArray[np.uint8] | None = None,
        values: NDArray[Any] | None = None,
        merge: bool = True,
        all_states: bool = False,
        all_transitions: bool = False,
    ) -> ChainData:
        """Build the training data of a linear chain from feature indices; treat each sentence as one document.

        Args:
            keys: uint64[F], keys of the features.
            indices: int32, features of all tokens, as indices of ``keys``.
            starts: int64[n + 1], first feature of each token, and the number of ``indices``.
            sentence_offsets: int64[S + 1], first token of each sentence, and n.
            allowed: uint8[n, K], 1 for the tags that a token may have.
            tags: The K tags.
            min_freq: Minimum number of occurrences, as in `of`.
            base: Weights of a base model, or None.
            counted: uint8[n, K], 1 for the tags with which the features of a token are counted; None is ``allowed``.
            values: float64, value of each of ``indices``, or uint8 if all are 0 or 1; None is 1.
            merge: Merge features that occur at the same tokens into one column, and store columns with many weights
                densely.
            all_states: Give each feature a weight for each tag, unless ``min_freq`` is above 0.
            all_transitions: Give each pair of tags a weight, unless ``min_freq`` is above 0.

        Returns:
            The training data; document s is sentence s.
        """
        tags = tuple(tags)
        states = np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), -1).astype(np.int32)
        counted = allowed if counted is None else counted
        weighted = _frequent_pairs(keys, indices, starts, counted, min_freq) | (all_states and min_freq <= 0)
        transitions = _neighbours(states, allowed, sentence_offsets, min_freq) | (all_transitions and min_freq <= 0)
        if base is not None:
            tag_indices = _indices(base.tags, tags)
            rows, entries = base.entries_of(keys)
            weighted[rows, tag_indices[base.entry_tags[entries]]] = True
            transitions[np.ix_(tag_indices, tag_indices)] |= base.transition != 0
        with_weights = np.flatnonzero(weighted.any(axis=1))
        numbers = None
        if values is not None:
            indices, starts, numbers = _without_zeros(indices, starts, values)
        merge = merge and numbers is None
        columns, first = np.arange(len(with_weights), dtype=np.int32), with_weights
        if merge:
            columns, first = _columns(with_weights, weighted, indices, starts, len(keys))
        column_of = np.full(len(keys), -1, np.int32)
        column_of[with_weights] = columns
        weighted = weighted[first]
        n_dense = int((weighted.sum(axis=1) >= _DENSE).sum()) if merge else 0
        entry_starts = np.append(0, np.cumsum(weighted[n_dense:].sum(axis=1), dtype=np.int64))
        leading = np.full(len(keys), -1, np.int32)  # one feature represents its column
        leading[first] = column_of[first]
        use_values = None
        if numbers is not None:  # once for each weight of the feature's column; -1 is a feature without a column
            use_values = np.repeat(numbers, np.append(np.diff(entry_starts), 0)[leading[indices]])
        return ChainData(
            tags, sentence_offsets, np.arange(len(sentence_offsets) - 1, dtype=np.int32), allowed, states,
            keys[with_weights], columns, np.bincount(columns, minlength=len(first)), weighted[:n_dense], entry_starts,
            np.nonzero(weighted[n_dense:])[1].astype(np.uint8),
            *loops.lay_out(indices, starts, leading, n_dense, entry_starts),
            np.bincount(indices, minlength=len(keys))[first], transitions,
            use_values,
        )  # fmt: skip

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all documents."""
        return len(self.states)

    @property
    def n_features(self) -> int:
        """Number of feature weights in a weight vector. Transition weights are not counted."""
        return int(self.dense.sum()) + len(self.entry_tags)

    @cached_property
    def entries(self) -> tuple[Int64s, NDArray[np.uint8]]:
        """Index of the group of features, and index of the tag, of each feature weight in a weight vector.

        A group (column) consists of features that occur at the same tokens and share their weights.
        """
        rows, states = np.nonzero(self.dense)
        others = np.repeat(np.arange(len(self.entry_starts) - 1), np.diff(self.entry_starts)) + len(self.dense)
        return np.concatenate([rows, others]), np.concatenate([states.astype(np.uint8), self.entry_tags])

    def occurring_weights(self, documents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask bool[d] of the weights whose feature and tag occur together in the selected documents.

        Args:
            documents: bool[D], True for these documents.

        Returns:
            bool[d], True for weights of columns that occur in the documents, and for all transitions.
        """
        tokens = np.repeat(documents[self.documents], np.diff(self.sentence_offsets))
        dense = np.zeros((len(self.dense), len(self.tags)), np.bool_)
        others = np.zeros(len(self.entry_tags), np.bool_)
        loops.mark_used_weights(
            self, np.ascontiguousarray(self.allowed * tokens[:, None]), dense.view(np.uint8), others.view(np.uint8)
        )
        return np.concatenate([dense[self.dense], others, np.ones(int(self.transitions.sum()), np.bool_)])

    def vector_of(self, weights: ChainWeights) -> Floats:
        """Convert a model's weights to a weight vector; the features of a group (column) share one entry per tag.

        An entry is the sum of the weights of the features in the column.

        Args:
            weights: Weights whose tags are a subset of `tags`.

        Returns:
            float64[d] with d = `n_features` + number of transitions; 0 where ``weights`` has no entry.
        """
        tag_indices = _indices(weights.tags, self.tags)
        rows, entries = weights.entries_of(self.keys)
        table = np.zeros((len(self.sizes), len(self.tags)))
        np.add.at(table, (self.columns[rows], tag_indices[weights.entry_tags[entries]]), weights.entry_weights[entries])
        transition = np.zeros((len(self.tags), len(self.tags)))
        transition[np.ix_(tag_indices, tag_indices)] = weights.transition
        return np.concatenate([table[self.entries], transition[self.transitions]])

    def weights_of(self, vector: Floats, base: ChainWeights | None = None) -> ChainWeights:
        """Convert a weight vector to the weights of individual features.

        The weight of a column is divided equally among its features. With a base, only the difference from the base is
        divided, and each feature keeps its weight of the base.

        Args:
            vector: float64[d], weights of columns and transitions.
            base: Weights of a base model, or None.

        Returns:
            The weights, including those of the base.
        """
        columns, states = self.entries
        shift = vector if base is None else vector - self.vector_of(base)
        table = np.zeros((len(self.sizes), len(self.tags)))
        table[columns, states] = shift[: len(columns)] / self.sizes[columns]
        weighted = np.zeros(table.shape, np.bool_)
        weighted[columns, states] = True
        rows, states = np.nonzero(weighted[self.columns])
        values = table[self.columns[rows], states]
        transition = np.zeros((len(self.tags), len(self.tags)))
        transition[self.transitions] = vector[len(columns) :]
        weights = ChainWeights.from_entries(self.tags, transition, self.keys[rows], states.astype(np.uint8), values)
        return weights if base is None else weights.add_to(base)


def _without_zeros(key_indices: Int32s, starts: Int64s, values: NDArray[Any]) -> tuple[Int32s, Int64s, Floats | None]:
    """Remove features with value 0, which add nothing to log-potentials.

    They are counted for ``min_freq`` before they are removed, as in CRFsuite.

    Return the indices of the remaining features, the first feature of each token, and the values of the remaining
    features. The values are None if all are 1.
    """
    present = values != 0
    starts = starts - np.searchsorted(np.flatnonzero(~present), starts)
    has_ones = bool(((values == 1) == present).all())
    return key_indices[present], starts, None if has_ones else values[present]


def _columns(
    with_weights: Int64s,
    weighted: NDArray[np.bool_],
    key_indices: Int32s,
    starts: Int64s,
    n_features: int,
) -> tuple[Int32s, Int64s]:
    """Group features into columns; features of one column occur at the same tokens and have weights for the same tags.

    Return the column of each feature, and the index of one feature of each column.

    All features of a column have the same tags. Dense columns come first. Dense columns and other columns are each
    sorted by descending frequency. Equally frequent columns are in the order of their first occurrence, so that the
    columns of a token are close in memory.
    """
    hashes = loops.column_hashes(key_indices, starts, n_features)[with_weights]
    tags = np.packbits(weighted[with_weights], axis=1)
    for word in np.pad(tags, ((0, 0), (0, -tags.shape[1] % 8))).view(np.uint64).T:
        hashes = (hashes ^ word) * _MULTIPLIER
    distinct, columns = loops.number_keys(np.maximum(hashes, 1))
    first = np.empty(len(distinct), np.int64)
    first[columns[::-1]] = np.arange(len(columns))[::-1]  # the last assignment to an element counts
    occurrences = np.bincount(key_indices, minlength=n_features)[with_weights[first]]
    order = np.lexsort((first, -occurrences, weighted[with_weights[first]].sum(axis=1) < _DENSE))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[columns], with_weights[first[order]]


def _concatenate_starts(starts: Sequence[Int64s]) -> Int64s:
    """Convert the start offsets of several documents to start offsets in the concatenation of the documents."""
    return np.concatenate([np.zeros(1, np.int64), *(np.diff(each) for each in starts)]).cumsum()


def _frequent_pairs(
    distinct: NDArray[np.uint64],
    key_indices: Int32s,
    starts: Int64s,
    allowed: NDArray[np.uint8],
    min_freq: int,
) -> NDArray[np.bool_]:
    """Return a mask bool[features, K] of the (feature, tag) pairs that occur at least ``min_freq`` times."""
    frequent = np.flatnonzero(np.bincount(key_indices, minlength=len(distinct)) >= min_freq)
    columns = np.full(len(distinct), -1, np.int32)
    columns[frequent] = np.arange(len(frequent), dtype=np.int32)
    counts = np.zeros((len(frequent), allowed.shape[1]), np.int32)
    loops.count_pairs(key_indices, starts, allowed, columns, counts)
    weighted = np.zeros((len(distinct), allowed.shape[1]), np.bool_)
    weighted[frequent] = counts >= max(min_freq, 1)
    return weighted


def _indices(tags: Sequence[str], among: Sequence[str]) -> Int64s:
    """Return the index of each tag in the list ``among``."""
    place = {tag: k for k, tag in enumerate(among)}
    return np.array([place[tag] for tag in tags], np.int64)


def _neighbours(states: Int32s, allowed: NDArray[np.uint8], offsets: Int64s, min_freq: int) -> NDArray[np.bool_]:
    """Return a mask bool[K, K] of the pairs of adjacent tags that get a transition weight.

    A pair is counted at adjacent tokens that have these two tags, or may have them.
    """
    right = np.delete(np.arange(len(states)), offsets[:-1][np.diff(offsets) > 0])
    right = right[right > 0]
    n_tags = allowed.shape[1]
    certain = right[(states[right] >= 0) & (states[right - 1] >= 0)]
    counts = np.bincount(states[certain - 1] * n_tags + states[certain], minlength=n_tags**2).astype(np.int64)
    counts = counts.reshape(n_tags, n_tags)
    uncertain = right[(states[right] < 0) | (states[right - 1] < 0)]
    if len(uncertain):
        counts += allowed[uncertain - 1].astype(np.int64).T @ allowed[uncertain].astype(np.int64)
    return counts >= max(min_freq, 1)
