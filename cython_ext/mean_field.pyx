# cython: language_level=3
"""Naive mean field: one distribution for each variable, updated in turn, and the lower bound of log Z that they give.

-inf entries are the limit of one large penalty for each: a variable's best distribution lies on the labels that
meet the least probability of forbidden entries and, among those, maximises the finite part of the bound. Where
no label need meet any, this is the plain update.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, isfinite, log
from libc.stdint cimport int32_t, int64_t

from rows cimport BUDGET, EXP_CELLS, Configurations, conditionals, first_configuration, state_value
from rows cimport next_configuration, rows_of
from sums cimport CompensatedSum, add


cdef class MeanField:
    """Updates q [V, K] in place, variable by variable: q <- (1 - damping) q + damping * (its best distribution)."""
    cdef conditionals c
    cdef object kept
    cdef double[:, ::1] q
    cdef double[:, ::1] work
    cdef double damping
    cdef readonly double change  # the largest distance of this sweep between a q and its best distribution

    def __cinit__(self, laid_out, double[:, ::1] q, double damping):
        self.c = rows_of(laid_out)
        self.kept = laid_out
        self.q = q
        self.work = np.empty((2, np.max(laid_out.widths, initial=2)))
        self.damping = damping
        self.change = 0.0

    def sweep(self, int64_t i):
        """Goes on from variable i for a fraction of a second; returns where it stands, V at the end of the sweep."""
        cdef int64_t spent = 0
        if i == 0:
            self.change = 0.0
        with nogil:
            while i < self.c.n and spent < BUDGET:
                if self.c.sizes[i] == 2:
                    spent += self.update_two(i)
                elif self.c.sizes[i] > 2:
                    spent += self.update(i)
                i += 1
        return i

    cdef int64_t update_two(self, int64_t i) noexcept nogil:
        """`update` for two labels, where the expectation is that of the log-odds of label 0."""
        cdef double *q = &self.q[i, 0]
        cdef double odds = self.c.unary[self.c.unary_at[i]], small, large
        cdef double *values = &self.work[0, 0]
        cdef int64_t spent = EXP_CELLS + self.add_expected(i, &odds)
        if isfinite(odds):
            small = exp(-fabs(odds))
            large = 1.0 / (1.0 + small)
            small *= large
            values[0] = large if odds > 0.0 else small
            values[1] = small if odds > 0.0 else large
            self.change = fmax(self.change, fabs(values[0] - q[0]))
            q[0] += self.damping * (values[0] - q[0])
            q[1] += self.damping * (values[1] - q[1])
            return spent
        if odds == odds:
            values[0], values[1] = state_value(&odds, 0, 2), state_value(&odds, 1, 2)
        else:
            spent += self.least_forbidden(i)
        self.move(i)
        return spent

    cdef int64_t update(self, int64_t i) noexcept nogil:
        cdef int k, n_states = self.c.sizes[i]
        cdef double *values = &self.work[0, 0]
        cdef const double *unary = self.c.unary + self.c.unary_at[i]
        cdef int64_t spent
        cdef bint possible = False
        for k in range(self.c.widths[i]):
            values[k] = unary[k]
        spent = self.add_expected(i, values)
        for k in range(n_states):
            possible |= values[k] > -INFINITY  # not so for NaN either
        if not possible:
            spent += self.least_forbidden(i)
        self.move(i)
        return spent + n_states * EXP_CELLS

    cdef int64_t add_expected(self, int64_t i, double *values) noexcept nogil:
        """Adds to ``values`` the expectations of the rows of all incidences, 0 * -inf counting as 0."""
        cdef int64_t e, spent = 0
        cdef int32_t width = self.c.widths[i]
        cdef int j, k
        cdef double weight
        cdef const double *row
        cdef const double *other
        cdef Configurations others
        for e in range(self.c.starts[i], self.c.starts[i + 1]):
            row = self.c.rows + self.c.row_at[e]
            if self.c.others_at == NULL:
                other = &self.q[self.c.others[e], 0]
                for j in range(self.c.sizes[self.c.others[e]]):
                    weight = other[j]
                    if weight != 0.0:
                        for k in range(width):
                            values[k] += weight * row[k]
                    row += width
                spent += row - self.c.rows - self.c.row_at[e]
                continue
            self.start(&others, e)
            while True:
                weight = others.weights[others.n]
                if weight != 0.0:
                    for k in range(width):
                        values[k] += weight * row[k]
                row += width
                if not next_configuration(&others):
                    break
            spent += row - self.c.rows - self.c.row_at[e]
        return spent

    cdef void start(self, Configurations *others, int64_t e) noexcept nogil:
        others.sizes, others.q, others.stride = self.c.sizes, &self.q[0, 0], self.q.shape[1]
        if self.c.others_at == NULL:
            first_configuration(others, self.c.others + e, 1)
        else:
            first_configuration(others, self.c.others + self.c.others_at[e],
                                <int> (self.c.others_at[e + 1] - self.c.others_at[e]))

    cdef int64_t least_forbidden(self, int64_t i) noexcept nogil:
        """The values of a variable whose labels all meet forbidden entries: -inf but for the labels that its unary
        factors allow and that meet the least probability of them, and there the finite part."""
        cdef int k, n_states = self.c.sizes[i]
        cdef int32_t width = self.c.widths[i]
        cdef int64_t e, spent = 0
        cdef double *values = &self.work[0, 0]
        cdef double *forbidden = &self.work[1, 0]
        cdef double weight, value, least = INFINITY
        cdef const double *at
        cdef Configurations others
        at = self.c.unary + self.c.unary_at[i]
        for k in range(n_states):
            values[k], forbidden[k] = state_value(at, k, n_states), 0.0
        for e in range(self.c.starts[i], self.c.starts[i + 1]):
            at = self.c.rows + self.c.row_at[e]
            self.start(&others, e)
            while True:
                weight = others.weights[others.n]
                for k in range(n_states):
                    value = state_value(at, k, n_states)
                    if value == -INFINITY:
                        forbidden[k] += weight
                    elif value == value:
                        values[k] += weight * value
                at += width
                spent += width
                if not next_configuration(&others):
                    break
        for k in range(n_states):
            if values[k] > -INFINITY:
                least = fmin(least, forbidden[k])
        for k in range(n_states):
            if forbidden[k] > least * (1.0 + 1e-9):  # equal but for rounding is equal
                values[k] = -INFINITY
        return spent

    cdef void move(self, int64_t i) noexcept nogil:
        """Moves q towards exp(values), normalised; a label of value -inf gets probability 0 whatever the damping."""
        cdef int k, n_states = self.c.sizes[i]
        cdef double *values = &self.work[0, 0]
        cdef double *q = &self.q[i, 0]
        cdef double top = -INFINITY, total = 0.0, kept = 0.0, change = self.change, old
        for k in range(n_states):
            top = fmax(top, values[k])
        for k in range(n_states):
            if values[k] > -INFINITY:
                kept += q[k]
            values[k] = exp(values[k] - top) if values[k] > -INFINITY else -1.0
            total += fmax(values[k], 0.0)
        for k in range(n_states):
            old = q[k]
            q[k] = fmax(values[k], 0.0) / total
            change = fmax(change, fabs(q[k] - old))
            if self.damping < 1.0 and kept > 0.0 and values[k] >= 0.0:
                q[k] = (1.0 - self.damping) * (old / kept) + self.damping * q[k]
        self.change = change


cdef double weighted(const double *p, const double *row, int n, double share) noexcept nogil:
    """The sum of share * p * row, in which 0 * -inf counts as 0."""
    cdef double total = 0.0
    cdef int k
    for k in range(n):
        total += p[k] * row[k]
    if isfinite(total):
        return share * total
    total = 0.0
    for k in range(n):
        if share * p[k] != 0.0:
            total += share * p[k] * row[k]
    return total


def expected(const double[:, ::1] q, const int32_t[::1] sizes, const int32_t[:, ::1] scopes,
             const int32_t[:] table_of_factor, const double[:] scale, const double[:, ::1] tables, int64_t f):
    """The expected log-potential of factors from f on under independent distributions q [V, K], 0 * -inf being 0, for
    a fraction of a second: (their sum, the factor to go on from)."""
    cdef CompensatedSum total = CompensatedSum(0.0, 0.0)
    cdef int64_t spent = 0
    cdef int last = <int> scopes.shape[1] - 1, n_states
    cdef double part
    cdef const double *row
    cdef const double *other
    cdef Configurations c
    c.sizes, c.q, c.stride = &sizes[0], &q[0, 0], q.shape[1]
    with nogil:
        while f < scopes.shape[0] and spent < BUDGET:
            row = &tables[table_of_factor[f], 0]
            other = &q[scopes[f, last], 0]
            n_states = sizes[scopes[f, last]]
            part = 0.0
            first_configuration(&c, &scopes[f, 0], last)
            while True:
                if c.weights[last] != 0.0:
                    part += weighted(other, row, n_states, c.weights[last])
                row += n_states
                spent += n_states
                if not next_configuration(&c):
                    break
            if part == -INFINITY:
                total = CompensatedSum(-INFINITY, 0.0)
                f = scopes.shape[0]
                break
            add(&total, scale[f] * part)
            f += 1
    return total.value, f


def entropy(const double[:, ::1] q, const int32_t[::1] sizes, int64_t i):
    """The entropy of the distributions q [V, K] of the variables from i on, for a fraction of a second: (their sum, the
    variable to go on from)."""
    cdef CompensatedSum total = CompensatedSum(0.0, 0.0)
    cdef int64_t spent = 0
    cdef int k
    cdef double part
    with nogil:
        while i < q.shape[0] and spent < BUDGET:
            part = 0.0
            for k in range(sizes[i]):
                if q[i, k] > 0.0:
                    part -= q[i, k] * log(q[i, k])
            add(&total, part)
            spent += sizes[i] * EXP_CELLS
            i += 1
    return total.value, i
