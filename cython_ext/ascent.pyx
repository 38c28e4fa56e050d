# cython: language_level=3
"""Coordinate ascent on states: iterated conditional modes, and the repair of states that meet forbidden entries."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t

from rows cimport BUDGET, conditionals, state_value, row_of_int32, rows_of


cdef extern from "engine/random_numbers.h" nogil:
    uint64_t mix_pair(uint64_t key, uint64_t a, uint64_t b)
    uint64_t below(uint64_t raw, uint64_t n)


cdef enum:
    GREEDY_SWEEPS = 10  # of a repair; from then on ties are broken at random
    LEAPS = 32          # then one move of so many goes to any label


cdef class Ascent:
    """Works on the state ``x`` int32[V] in place. Sweeps go on from variable i for a fraction of a second and return
    where they stand, V at the end; ``moved`` and ``gain`` are of the sweep so far."""
    cdef conditionals c
    cdef object kept
    cdef int32_t[::1] x
    cdef double[::1] values
    cdef int32_t[::1] forbidden
    cdef readonly int64_t moved  # variables that got another label (climb), or met forbidden entries (repair)
    cdef readonly double gain    # of log-potential

    def __cinit__(self, laid_out, int32_t[::1] x):
        self.c = rows_of(laid_out)
        self.kept = laid_out
        self.x = x
        self.values = np.empty(np.max(laid_out.widths, initial=2))
        self.forbidden = np.empty(len(self.values), np.int32)

    def climb(self, int64_t i):
        """Gives each variable its best label given the others, the smallest of equals; the label it has if that is
        as good as any. The state must not meet forbidden entries."""
        cdef int64_t spent = 0
        cdef int32_t best
        cdef double gain
        if i == 0:
            self.moved, self.gain = 0, 0.0
        with nogil:
            while i < self.c.n and spent < BUDGET:
                spent += (self.c.starts[i + 1] - self.c.starts[i] + 1) * self.c.widths[i]
                best = self.x[i]
                gain = self.best_of_two(i, &best) if self.c.sizes[i] == 2 else self.best_of_many(i, &best)
                if best != self.x[i]:
                    self.x[i] = best
                    self.moved += 1
                    self.gain += gain
                i += 1
        return i

    cdef inline const double *row_of(self, int64_t i, int64_t e) noexcept nogil:
        return self.c.rows + row_of_int32(&self.c, e, self.c.widths[i], &self.x[0])

    cdef double best_of_two(self, int64_t i, int32_t *best) noexcept nogil:
        cdef double odds = self.c.unary[self.c.unary_at[i]]
        cdef int64_t e
        for e in range(self.c.starts[i], self.c.starts[i + 1]):
            odds += self.row_of(i, e)[0]
        if odds != 0.0:
            best[0] = 0 if odds > 0.0 else 1
        return fabs(odds)

    cdef double best_of_many(self, int64_t i, int32_t *best) noexcept nogil:
        cdef double *values = &self.values[0]
        cdef const double *row = self.c.unary + self.c.unary_at[i]
        cdef int32_t k, now = best[0]
        cdef int64_t e
        for k in range(self.c.widths[i]):
            values[k] = row[k]
        for e in range(self.c.starts[i], self.c.starts[i + 1]):
            row = self.row_of(i, e)
            for k in range(self.c.widths[i]):
                values[k] += row[k]
        for k in range(self.c.sizes[i]):
            if values[k] > values[best[0]] or (values[k] == values[best[0]] > values[now] and k < best[0]):
                best[0] = k
        return values[best[0]] - values[now]

    def repair(self, int64_t i, uint64_t key, uint64_t sweep):
        """Gives each variable that meets forbidden entries a label, allowed by its unary factors, that meets fewest of
        them: the best of these, later one at random, and now and then any label. Repairs are done when none moved."""
        cdef int64_t spent = 0
        if i == 0:
            self.moved = 0
        with nogil:
            while i < self.c.n and spent < BUDGET:
                spent += (self.c.starts[i + 1] - self.c.starts[i] + 1) * self.c.widths[i]
                if self.count_forbidden(i):
                    self.x[i] = self.least_forbidden(i, mix_pair(key, sweep, i), sweep < GREEDY_SWEEPS)
                    self.moved += 1
                i += 1
        return i

    cdef bint count_forbidden(self, int64_t i) noexcept nogil:
        """Fills ``values``, the finite parts of the labels, -inf for those that the unary factors forbid, and
        ``forbidden``, the number of -inf entries each meets, less what all meet. Whether x meets any."""
        cdef int k, n_states = self.c.sizes[i]
        cdef const double *row = self.c.unary + self.c.unary_at[i]
        cdef int64_t e
        cdef bint met = False
        cdef double value
        for k in range(n_states):
            self.forbidden[k] = 0
            self.values[k] = state_value(row, k, n_states)
        for e in range(self.c.starts[i], self.c.starts[i + 1]):
            row = self.row_of(i, e)
            for k in range(n_states):
                value = state_value(row, k, n_states)
                if value != value:
                    met = True
                elif value == -INFINITY:
                    self.forbidden[k] += 1
                else:
                    self.values[k] += value
        return met or self.forbidden[self.x[i]] > 0 or self.values[self.x[i]] == -INFINITY

    cdef int32_t least_forbidden(self, int64_t i, uint64_t raw, bint greedy) noexcept nogil:
        cdef int32_t k, best = -1, n_states = self.c.sizes[i], n = 0
        cdef bint leap = not greedy and below(mix_pair(raw, 0, 0), LEAPS) == 0
        for k in range(n_states):
            if self.values[k] == -INFINITY:
                continue
            if best < 0 or (not leap and self.forbidden[k] < self.forbidden[best]):
                best, n = k, 1
            elif leap or self.forbidden[k] == self.forbidden[best]:
                n += 1
                if greedy and self.values[k] > self.values[best]:
                    best = k
                elif not greedy and below(mix_pair(raw, 1, k), n) == 0:
                    best = k
        return best if best >= 0 else self.x[i]  # none where finite parts add up to -inf
