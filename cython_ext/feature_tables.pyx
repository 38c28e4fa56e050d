# cython: language_level=3
"""Read-only tables of a model: word classes, phrases, and the weights of features.

Made by ``herdner.ner.lexicon`` and ``herdner.ner.model``; read by words.pyx, context.pyx and features.pyx.
"""

import numpy as np

from herdner._ext.hashing import build_table

from libc.stdint cimport uint64_t

from hashing cimport Slot
from herdner._ext.memory cimport require, require_offsets


cdef class WordTable:
    """Table from hashed words or phrases to integers: distinct ``keys`` uint64[n], and ``values`` uint64[n]."""

    def __cinit__(self, keys, values):
        self.table = build_table(keys, values)
        self.slots, self.mask = <const Slot*> &self.table[0, 0], self.table.shape[0] - 1


cdef class FeatureWeights:
    """Sparse weights of features. Finding a feature reads one cache line, and its weights mostly fit in another.

    Parameters: as in `herdner.crf.weights.ChainWeights`, whose row r has the entries ``starts[r]:starts[r + 1]``.
    """

    def __cinit__(self, keys, starts, tags, weights, Py_ssize_t n_tags):
        tags = np.array(tags, np.int64)
        require(0 <= n_tags < 1 << 16 and tags.min(initial=0) >= 0 and tags.max(initial=0) < max(n_tags, 1),
                f"tags of weights must be from 0 to {n_tags - 1}")
        entries = np.zeros((len(tags) + 1, 2), np.int64)  # never empty, so that its address exists
        entries[:-1, 0] = np.asarray(weights, np.float64).view(np.int64)
        entries[:-1, 1] = tags
        starts = np.array(starts, np.int64)
        require_offsets(starts, len(entries) - 1, "starts")
        counts = np.diff(starts)
        require((counts < 1 << 16).all(), "a feature must have less than 65,536 weights")
        own_keys = np.array(keys)
        self.table = build_table(own_keys, (starts[:counts.size] << 16 | counts).astype(np.uint64))
        self.entry_rows = entries
        self.slots, self.mask = <const Slot*> &self.table[0, 0], self.table.shape[0] - 1
        self.entries = <const WeightEntry*> &self.entry_rows[0, 0]
        self.n_tags = n_tags
        self.filter_words = filter_of(own_keys)
        self.filter, self.filter_mask = &self.filter_words[0], 64 * self.filter_words.shape[0] - 1


cdef filter_of(const uint64_t[::1] keys):
    """Return a bit filter of the keys: uint64 words, their number a power of two, with 16 to 32 bits per key."""
    cdef uint64_t n_bits = 64, bit
    cdef Py_ssize_t i
    while n_bits < 16 * <uint64_t> keys.shape[0]:
        n_bits *= 2
    cdef uint64_t[::1] words = np.zeros(n_bits // 64, np.uint64)
    for i in range(keys.shape[0]):
        bit = keys[i] >> 20 & (n_bits - 1)
        words[bit >> 6] |= <uint64_t> 1 << (bit & 63)
    return np.asarray(words)
