# cython: language_level=3
# The tables of a model that the loops over features read; implemented in cython_ext/feature_tables.pyx.
cimport cython
from libc.stdint cimport int64_t, uint64_t

from hashing cimport Slot, find
from prefetch cimport prefetch


@cython.final
cdef class WordTable:
    cdef const uint64_t[:, ::1] table
    cdef const Slot* slots
    cdef uint64_t mask


cdef struct WeightEntry:
    double weight
    int64_t tag


@cython.final
cdef class FeatureWeights:
    cdef const uint64_t[:, ::1] table   # key -> first entry << 16 | number of entries
    cdef const int64_t[:, ::1] entry_rows
    cdef const uint64_t[::1] filter_words
    cdef const Slot* slots
    cdef const WeightEntry* entries
    cdef const uint64_t* filter         # a bit per hash: it fits the cache and rejects most unknown features
    cdef uint64_t mask, filter_mask
    cdef readonly Py_ssize_t n_tags

    cdef inline bint may_hold(self, uint64_t key) noexcept nogil:
        """Return False only for keys without weights."""
        cdef uint64_t bit = key >> 20 & self.filter_mask
        return self.filter[bit >> 6] >> (bit & 63) & 1

    cdef inline void prefetch_filter(self, uint64_t key) noexcept nogil:
        prefetch(&self.filter[(key >> 20 & self.filter_mask) >> 6])

    cdef inline void prefetch(self, uint64_t key) noexcept nogil:
        prefetch(&self.slots[(key ^ (key >> 32)) & self.mask])

    cdef inline uint64_t row(self, uint64_t key) noexcept nogil:
        """Prefetch the weights of a feature and return their position, or 0 if it has none."""
        cdef const Slot* slot = find(self.slots, self.mask, key)
        if slot == NULL:
            return 0
        prefetch(&self.entries[slot.value >> 16])
        return slot.value

    cdef inline void add(self, uint64_t row, double* scores) noexcept nogil:
        cdef const WeightEntry* entry = &self.entries[row >> 16]
        cdef Py_ssize_t e
        for e in range(row & 0xFFFF):
            scores[entry[e].tag] += entry[e].weight
