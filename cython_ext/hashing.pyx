# cython: language_level=3, boundscheck=True
"""Hashes of words, and open-addressing tables keyed by them.

Called by `herdner.ner.features` and `herdner.ner.lexicon`; other compiled modules use hashing.pxd.
"""

import numpy as np

from libc.stdint cimport uint8_t, uint64_t

from hashing cimport LONGEST_PROBE, combine, first_slot, hash_char, hash_start, mix
from prefetch cimport prefetch

cdef enum:
    AHEAD = 16  # keys whose slots are prefetched


def hash_string(str text):
    """Return the 64-bit hash of a string, never 0 and the same on every machine."""
    cdef uint64_t h = hash_start()
    cdef Py_UCS4 char
    for char in text:
        h = hash_char(h, char)
    return mix(h) or 1


def hash_strings(texts):
    """Return `hash_string` of each text: uint64[len(texts)]."""
    return np.fromiter((hash_string(text) for text in texts), np.uint64, len(texts))


def hash_phrase(words):
    """Return the hash of a sequence of words; the hash of a phrase continues the hash of its first words."""
    cdef uint64_t h = hash_start()
    for word in words:
        h = combine(h, hash_string(word))
    return h or 1


cdef uint64_t capacity_for(Py_ssize_t n) noexcept:
    """Return the number of rows of a table of n keys: a power of two, at least 2 n."""
    cdef uint64_t capacity = 8
    while capacity < 2 * <uint64_t> n:
        capacity *= 2
    return capacity


cdef collision(uint64_t key):
    return ValueError(f"more than {LONGEST_PROBE} keys collide with the key {key}; they are no hashes of words or"
                      " features")


def check_collisions(const uint64_t[::1] keys not None):
    """Raise ValueError if so many keys collide that `build_table` refuses them. The keys must be distinct."""
    cdef uint64_t mask = capacity_for(keys.shape[0]) - 1, slot
    cdef uint8_t[::1] used = np.zeros(mask + 1, np.uint8)
    cdef Py_ssize_t i
    cdef int n_probes
    for i in range(keys.shape[0]):
        slot = first_slot(keys[i], mask)
        n_probes = 1
        while used[slot]:
            n_probes += 1
            if n_probes > LONGEST_PROBE:
                raise collision(keys[i])
            slot = (slot + 1) & mask
        used[slot] = 1


def build_table(const uint64_t[::1] keys not None, const uint64_t[::1] values not None):
    """Build an open-addressing table of distinct non-zero keys: uint64[m, 2], rows (key, value).

    m is a power of two; at most half of the rows are in use. Raises ValueError for a key that is 0 or occurs twice, and
    for keys of which many collide.
    """
    cdef Py_ssize_t n = keys.shape[0], i
    cdef uint64_t capacity = capacity_for(n), slot
    if values.shape[0] != n:
        raise ValueError(f"there are {n} keys but {values.shape[0]} values")
    table_array = np.zeros((capacity, 2), np.uint64)
    cdef uint64_t[:, ::1] table = table_array
    cdef int n_probes
    for i in range(n):
        if keys[i] == 0:
            raise ValueError("key 0 marks an empty slot and cannot be stored")
        if i + AHEAD < n:
            prefetch(&table[first_slot(keys[i + AHEAD], capacity - 1), 0])
        slot = first_slot(keys[i], capacity - 1)
        n_probes = 1
        while table[slot, 0] != 0:
            if table[slot, 0] == keys[i]:
                raise ValueError(f"key {keys[i]} occurs twice")
            n_probes += 1
            if n_probes > LONGEST_PROBE:
                raise collision(keys[i])
            slot = (slot + 1) & (capacity - 1)
        table[slot, 0] = keys[i]
        table[slot, 1] = values[i]
    return table_array
