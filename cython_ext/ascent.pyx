# cython: language_level=3
"""Coordinate ascent on joint states: iterated conditional modes, and the repair of forbidden states."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t

from herdner._ext.conditionals cimport CompiledConditionals
from herdner._ext.memory cimport owned, require
from rows cimport BUDGET, conditionals, state_value, row_of_int32


cdef extern from "engine/random_numbers.h" nogil:
    uint64_t mix_pair(uint64_t key, uint64_t a, uint64_t b)
    uint64_t below(uint64_t raw, uint64_t n)


cdef enum:
    GREEDY_SWEEPS = 10  # of a repair; later sweeps break ties at random
    LEAPS = 32          # in later sweeps one move in so many goes to a random state


cdef class Ascent:
    """Coordinate ascent on a joint state, which starts at ``x`` int32[V].

    A sweep continues from variable i for a fraction of a second and returns the next variable, V at the end. ``moved``
    and ``gain`` refer to the sweep so far.
    """
    cdef conditionals c
    cdef CompiledConditionals references
    cdef int32_t[::1] x
    cdef double[::1] values
    cdef int32_t[::1] forbidden
    cdef readonly int64_t moved  # variables that flipped (climb), or were forbidden (repair)
    cdef readonly double gain    # of the log-potential

    def __cinit__(self, CompiledConditionals laid_out not None, x):
        cdef Py_ssize_t i
        self.c, self.references = laid_out.c, laid_out
        self.x = np.array(owned(x, np.int32, 1, "x"))
        require(self.x.shape[0] == self.c.n, "a joint state has a state for each variable")
        for i in range(self.c.n):
            require(0 <= self.x[i] < self.c.sizes[i], "a joint state consists of states of the variables")
        self.values = np.empty(laid_out.widest)
        self.forbidden = np.empty(laid_out.widest, np.int32)

    @property
    def state(self):
        """The joint state: int32[V]."""
        return np.array(self.x)

    def climb(self, int64_t i):
        """Flip each variable to its best state given the others.

        A variable keeps its state if no other is better; of equal states the smallest wins. The joint state must not be
        forbidden.
        """
        cdef int64_t spent = 0
        cdef int32_t best
        cdef double gain
        require(i >= 0, "variables count from 0")
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
        """Move each forbidden variable to a state that violates the fewest -inf entries, among those that its unary
        factors allow.

        Ties go to the best state; in later sweeps to a random one, and sometimes a variable moves to any allowed state.
        The repair is complete when no variable moves.
        """
        cdef int64_t spent = 0
        require(i >= 0, "variables count from 0")
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
        """Fill ``values``, the finite part of each state's log-potential (-inf where a unary factor forbids it), and
        ``forbidden``, the number of -inf entries of each state beyond those of all states. Return True if the current
        state of variable i is forbidden."""
        cdef int k, n_states = self.c.sizes[i]
        cdef const double *row = self.c.unary + self.c.unary_at[i]
        cdef int64_t e
        cdef bint all_forbidden = False
        cdef double value
        for k in range(n_states):
            self.forbidden[k] = 0
            self.values[k] = state_value(row, k, n_states)
        for e in range(self.c.starts[i], self.c.starts[i + 1]):
            row = self.row_of(i, e)
            for k in range(n_states):
                value = state_value(row, k, n_states)
                if value != value:
                    all_forbidden = True
                elif value == -INFINITY:
                    self.forbidden[k] += 1
                else:
                    self.values[k] += value
        return all_forbidden or self.forbidden[self.x[i]] > 0 or self.values[self.x[i]] == -INFINITY

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
        return best if best >= 0 else self.x[i]  # no state is left where finite parts add up to -inf
