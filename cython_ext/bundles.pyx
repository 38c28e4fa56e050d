# cython: language_level=3, boundscheck=True
"""Bundles of features that many tokens share, so that loops add the weights of a bundle once.

Called by likelihood.pyx. The attributes of a word, such as its suffixes, occur together at each occurrence of the word.
"""

import os

import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

from hashing cimport Slot

from herdner._ext.memory cimport Memory, owned, require, require_offsets, require_range

cdef uint64_t SLOT_SEED = int.from_bytes(os.urandom(8), "little")

cdef enum:
    FEWEST = 32   # tokens that share a bundle; the sums of fewer and more frequent bundles stay in the cache


cdef class KeyTable:
    def __cinit__(self):
        self.seed = SLOT_SEED
        self.allocate(1 << 12)

    cdef int allocate(self, Py_ssize_t n_slots) except -1:
        """Replace the table by one of ``n_slots``, a power of two."""
        cdef uint64_t[:, ::1] old = self.rows if self.n else None
        cdef Py_ssize_t i
        self.rows = np.zeros((n_slots, 2), np.uint64)
        self.slots, self.mask = <Slot*> &self.rows[0, 0], n_slots - 1
        for i in range(old.shape[0] if self.n else 0):
            if old[i, 0]:
                self.slot(old[i, 0])[0] = Slot(old[i, 0], old[i, 1])
        return 0


cdef inline uint64_t pair_key(int32_t first, int32_t second) noexcept nogil:
    return (<uint64_t> first + 1) << 32 | <uint64_t> second


@cython.internal
@cython.final
cdef class Bundler:
    """Division of the features of each token into runs: bundles of at least FEWEST tokens, and other features.

    ``uses`` are the features of all tokens, overwritten by runs: feature f as f, bundle b as n_features + b, and a
    feature with a value other than 1 as -1 - f. ``last`` and ``before`` describe a bundle: its last feature, and the
    run of the others.
    """
    cdef int32_t[::1] uses, totals, last, before
    cdef double[::1] values
    cdef int64_t[::1] ends       # of the runs of each token
    cdef int32_t n_features, n_bundles

    def __cinit__(self, uses, Memory borders, const double[::1] values, int32_t n_features):
        self.uses = np.array(owned(uses, np.int32, 1, "uses"))
        cdef const int64_t[::1] starts = borders
        cdef Py_ssize_t i, n = self.uses.shape[0], room = n // FEWEST + 1  # each bundle takes the place of FEWEST uses
        require_offsets(borders, n, "starts")
        require(n_features + <int64_t> room < <int64_t> 1 << 31, "there are too many features")
        require(values is None or values.shape[0] == n, "each use needs a value")
        self.ends = np.array(starts[:starts.shape[0] - 1])
        require_range(self.uses, 0, n_features, "uses must be features that exist")
        self.values = None if values is None else np.array(values)
        self.totals = np.zeros(n_features, np.int32)
        self.n_features, self.n_bundles = n_features, 0
        for i in range(n):
            self.totals[self.uses[i]] += 1
        self.last, self.before = np.empty(room, np.int32), np.empty(room, np.int32)
        self.divide(starts)

    @cython.boundscheck(False)
    @cython.wraparound(False)
    cdef bint can_join(self, int32_t run, int64_t i) noexcept nogil:
        """Return True if the feature of use i may extend a run."""
        return (run >= self.n_features or run >= 0 and self.totals[run] >= FEWEST) and self.is_frequent(i)

    @cython.boundscheck(False)
    @cython.wraparound(False)
    cdef bint is_frequent(self, int64_t i) noexcept nogil:
        return self.totals[self.uses[i]] >= FEWEST and (self.values is None or self.values[i] == 1.0)

    @cython.boundscheck(False)
    @cython.wraparound(False)
    cdef int divide(self, const int64_t[::1] starts) except -1:
        """Extend the run of each token by one feature in each round, if FEWEST tokens extend it so."""
        cdef Py_ssize_t n = self.ends.shape[0], n_active = 0, kept, a, t
        cdef int64_t[::1] at = np.array(starts)
        cdef int32_t[::1] runs = np.full(n, -1, np.int32), active = np.empty(n, np.int32)
        cdef KeyTable pairs = KeyTable()  # values: the number of occurrences, and above 32 bits 1 + the bundle
        cdef Slot* slot
        cdef int32_t feature
        cdef bint joins
        for t in range(n):
            if starts[t] < starts[t + 1]:
                active[n_active] = <int32_t> t
                n_active += 1
        while n_active:
            for a in range(n_active):
                t = active[a]
                if self.can_join(runs[t], at[t]):
                    pairs.add(pair_key(runs[t], self.uses[at[t]])).value += 1
            kept = 0
            for a in range(n_active):
                t = active[a]
                feature = self.uses[at[t]]
                joins = self.can_join(runs[t], at[t])
                slot = pairs.slot(pair_key(runs[t], feature)) if joins else NULL
                if joins and slot.value & 0xFFFFFFFF >= FEWEST:
                    if slot.value >> 32 == 0:
                        self.before[self.n_bundles], self.last[self.n_bundles] = runs[t], feature
                        self.n_bundles += 1
                        slot.value |= <uint64_t> self.n_bundles << 32
                    runs[t] = self.n_features + <int32_t> (slot.value >> 32) - 1
                else:
                    self.end_run(t, runs[t])
                    if self.values is not None and self.values[at[t]] != 1.0:
                        self.values[self.ends[t]] = self.values[at[t]]
                        self.uses[self.ends[t]], runs[t] = -1 - feature, -1
                        self.ends[t] += 1
                    else:
                        runs[t] = feature
                at[t] += 1
                if at[t] < starts[t + 1]:
                    active[kept] = <int32_t> t
                    kept += 1
                else:
                    self.end_run(t, runs[t])
            n_active = kept
        return 0

    cdef int32_t last_feature(self, int32_t run) noexcept nogil:
        return self.last[run - self.n_features] if run >= self.n_features else run

    cdef int32_t rest(self, int32_t run) noexcept nogil:
        """Return the run without its last feature, or -1."""
        return self.before[run - self.n_features] if run >= self.n_features else -1

    cdef void end_run(self, Py_ssize_t t, int32_t run) noexcept nogil:
        """Store a run of token t, unless it is -1; runs need at most the memory of their features."""
        if run >= 0:
            self.uses[self.ends[t]] = run
            if self.values is not None:
                self.values[self.ends[t]] = 1.0
            self.ends[t] += 1


def bundle(uses, starts, const double[::1] values, int32_t n_dense, int32_t n_features):
    """Return the features of tokens as bundles and single features, and the features of the bundles.

    Token t has the features ``uses[starts[t]:starts[t + 1]]``; features below ``n_dense`` are columns, and the others
    are entries plus ``n_dense``. ``values`` None means 1.

    Returns two layouts (columns int32, column_starts int64, entries int32, entry_starts int64) and the values of the
    entries of the first, or None. The first layout has a row for each token, and its columns are bundles. The second
    has a row for each bundle.
    """
    require(0 <= n_dense <= n_features, "columns must be features")
    cdef Memory borders = owned(starts, np.int64, 1, "starts")
    cdef const int64_t[::1] first = borders
    cdef Bundler b = Bundler(uses, borders, values, n_features)
    cdef Py_ssize_t n = b.ends.shape[0], m = b.uses.shape[0], t, i
    cdef int32_t run
    cdef int32_t[::1] row_of = np.full(n_features + b.n_bundles, -1, np.int32), runs = np.empty(m, np.int32)
    cdef FeatureRows tokens = FeatureRows(n, m)
    cdef int32_t n_rows = 0
    numbers = None if values is None else np.empty(m)
    cdef double[::1] entry_values = numbers
    for t in range(n):
        for i in range(first[t], b.ends[t]):
            run = b.uses[i]
            if run < 0 or run < n_features and run >= n_dense and b.totals[run] < FEWEST:
                if values is not None:
                    entry_values[tokens.n_entries] = b.values[i]
                tokens.add_entry((run if run >= 0 else -1 - run) - n_dense)
                continue
            if row_of[run] < 0:
                row_of[run], runs[n_rows] = n_rows, run
                n_rows += 1
            tokens.add_column(row_of[run])
        tokens.end_row()
    cdef FeatureRows rows = FeatureRows(n_rows, m)  # rows are distinct parts of the m uses
    for t in range(n_rows):
        run = runs[t]
        while run >= 0:
            if b.last_feature(run) < n_dense:
                rows.add_column(b.last_feature(run))
            else:
                rows.add_entry(b.last_feature(run) - n_dense)
            run = b.rest(run)
        rows.end_row()
    return tokens.arrays(), rows.arrays(), None if values is None else numbers[:tokens.n_entries]


@cython.internal
@cython.final
cdef class FeatureRows:
    """Columns and entries of n rows, which are added in order, at most ``most`` of each."""
    cdef int32_t[::1] columns, entries
    cdef int64_t[:, ::1] starts
    cdef int64_t n_rows, n_columns, n_entries

    def __cinit__(self, Py_ssize_t n, Py_ssize_t most):
        self.columns, self.entries = np.empty(most, np.int32), np.empty(most, np.int32)
        self.starts = np.zeros((2, n + 1), np.int64)

    cdef inline int add_column(self, int32_t column) except -1:
        self.columns[self.n_columns] = column
        self.n_columns += 1
        return 0

    cdef inline int add_entry(self, int32_t entry) except -1:
        self.entries[self.n_entries] = entry
        self.n_entries += 1
        return 0

    cdef inline int end_row(self) except -1:
        self.n_rows += 1
        self.starts[0, self.n_rows], self.starts[1, self.n_rows] = self.n_columns, self.n_entries
        return 0

    cdef tuple arrays(self):
        """Return (columns, column_starts, entries, entry_starts)."""
        columns, entries = np.asarray(self.columns)[:self.n_columns], np.asarray(self.entries)[:self.n_entries]
        return columns, np.asarray(self.starts[0]), entries, np.asarray(self.starts[1])
