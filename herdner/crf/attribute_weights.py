"""Weights of a linear chain over named attributes, as in CRFsuite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext.attributes import AttributeIndex, add_scores
from herdner.base.arrays import Floats, Int32s, Int64s, sealed
from herdner.crf.weights import MOST_TAGS, ChainWeights


@dataclass(frozen=True, eq=False)
class EncodedSequences:
    """Attributes of all items of sequences, encoded as attribute indices and values.

    Attributes:
        offsets: int64[S + 1], first item of each sequence, and the number of items n.
        starts: int64[n + 1], first attribute of each item, and the number of attributes m.
        indices: int32[m], index of each attribute.
        values: float64[m], value of each attribute, or uint8[m] if all values are 0 or 1; None means that all are 1.
        index: Attribute index (map from names to indices) that defines ``indices``.
    """

    offsets: Int64s
    starts: Int64s
    indices: Int32s
    values: NDArray[Any] | None
    index: AttributeIndex

    @property
    def n_items(self) -> int:
        """Number of items in all sequences."""
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class AttributeWeights:
    """Weights of a linear-chain CRF whose features are named attributes.

    Attributes:
        labels: Names of the K labels, in the order of their indices.
        attribute_names: Names of the A attributes, in the order of their indices.
        attributes: uint32[m], attribute of each state weight.
        state_labels: uint32[m], label of each state weight.
        state_weights: float64[m], state weights.
        transition: float64[K, K], transition weights of a label (row) followed by a label (column); -inf forbids it.
    """

    labels: list[str]
    attribute_names: list[str]
    attributes: NDArray[np.uint32]
    state_labels: NDArray[np.uint32]
    state_weights: Floats
    transition: Floats

    @staticmethod
    def of(weights: ChainWeights, names: list[str], transition: Floats, keep_zeros: bool = False) -> AttributeWeights:
        """Build attribute weights from chain weights whose feature keys are attribute indices plus 1.

        Args:
            weights: Weights of the chain.
            names: Names of all attributes.
            transition: float64[K, K], log-potentials of transitions.
            keep_zeros: Keep weights of 0 and attributes without weights. Otherwise they are dropped.

        Returns:
            The attribute weights, in the order of ``names``.
        """
        if keep_zeros:
            entries = weights.entry_keys.astype(np.uint32) - np.uint32(1), weights.entry_tags.astype(np.uint32)
            return AttributeWeights(list(weights.tags), names, *entries, weights.entry_weights, transition)
        present = weights.entry_weights != 0
        keys = weights.entry_keys[present].astype(np.int64) - 1
        used, attributes = np.unique(keys, return_inverse=True)
        used_names: list[str] = [names[k] for k in used.tolist()]
        entries = attributes.astype(np.uint32), weights.entry_tags[present].astype(np.uint32)
        return AttributeWeights(list(weights.tags), used_names, *entries, weights.entry_weights[present], transition)

    @cached_property
    def index(self) -> AttributeIndex:
        """Map from the name of each attribute to its index."""
        return AttributeIndex(self.attribute_names)

    @cached_property
    def chain_weights(self) -> ChainWeights:
        """Weights in the form of ``ChainWeights``; the feature key of an attribute is the attribute's index plus 1.

        Raises:
            ValueError: There are more than 256 labels.
        """
        if len(self.labels) > MOST_TAGS:
            raise ValueError(f"a chain can have at most {MOST_TAGS} labels, got {len(self.labels)}; merge some labels")
        return self.with_keys(np.arange(1, len(self.attribute_names) + 1, dtype=np.uint64))

    def with_keys(self, keys: NDArray[np.uint64]) -> ChainWeights:
        """Return the weights in the form of ``ChainWeights``.

        Args:
            keys: uint64[A], feature key of each attribute.

        Returns:
            The weights, with ``keys`` as feature keys.
        """
        states = self.state_labels.astype(np.uint8)
        return ChainWeights.from_entries(
            tuple(self.labels), self.transition, keys[self.attributes], states, self.state_weights
        )

    @property
    def learned_weights(self) -> ChainWeights:
        """Weights from which training can start: `chain_weights` with 0 in place of -inf."""
        return replace(self.chain_weights, transition=np.nan_to_num(self.transition, neginf=0.0))

    @cached_property
    def _entries(self) -> tuple[Int64s, NDArray[np.uint8], Floats]:
        """Weights as a sparse matrix [attributes, labels], in three arrays: row starts, label indices, and values."""
        weights = self.chain_weights
        borders = np.arange(1, len(self.attribute_names) + 2, dtype=np.uint64)
        starts = weights.starts.astype(np.int64)[np.searchsorted(weights.keys, borders)]
        return sealed([starts]), sealed([weights.entry_tags]), sealed([weights.entry_weights])

    def encode(self, sequences: object) -> EncodedSequences:
        """Encode the attributes of sequences as indices and values; leave out attributes without weights.

        Args:
            sequences: Sequences of items, as `herdner.CRF` accepts them.

        Returns:
            The sequences as indices of attributes and their values.

        Raises:
            TypeError: An item is neither a dictionary, nor a list of strings, nor a string.
            ValueError: A value is not finite.
        """
        return EncodedSequences(*self.index.encode(sequences, False), self.index)  # pyright: ignore[reportArgumentType]

    def unary(self, sequences: EncodedSequences) -> Floats:
        """Return the log-potentials of the labels of each item, float64[n, K].

        Args:
            sequences: Encoded sequences.

        Raises:
            ValueError: The sequences were encoded for other weights.
        """
        if sequences.index is not self.index:
            raise ValueError("the sequences were encoded for other weights; call `encode` again")
        unary = np.zeros((sequences.n_items, len(self.labels)))
        add_scores(sequences.starts, sequences.indices, sequences.values, *self._entries, unary)
        return unary

    def score(self, sequence: object) -> Floats:
        """Return the log-potentials of the labels of each item of one sequence, float64[n, K].

        This is faster than `encode` and `unary` for one sequence.

        Args:
            sequence: Items of the sequence.

        Raises:
            TypeError: An item is neither a dictionary, nor a list of strings, nor a string.
            ValueError: A value is not finite.
        """
        return self.index.score(sequence, *self._entries, len(self.labels))
