# cython: language_level=3
"""Naive mean field by coordinate ascent, and the terms of its lower bound of log Z.

An entry of -inf is treated as the limit of a large penalty. So the best distribution of a variable has its support on
the states with the least probability of forbidden entries and, among those, maximises the finite part of the bound.
Where some state has no forbidden entries, this is the usual update.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp, fabs, fmax, fmin, isfinite, log
from libc.stdint cimport int32_t, int64_t

from herdner._ext.conditionals cimport CompiledConditionals
from herdner._ext.memory cimport own, owned, require
from rows cimport BUDGET, EXP_CELLS, MOST_VARIABLES, Configurations, conditionals, first_configuration
from rows cimport next_configuration, state_value
from sums cimport CompensatedSum, add


cdef class MeanFieldLoop:
    """Mean-field updates of q [V, K] in place, one variable at a time: q <- (1 - damping) q + damping * best."""
    cdef conditionals c
    cdef CompiledConditionals references
    cdef double[:, ::1] q
    cdef double[:, ::1] work
    cdef double damping
    cdef readonly double change  # the largest distance in this sweep between a q and its best distribution

    def __cinit__(self, CompiledConditionals laid_out not None, double[:, ::1] q not None, double damping):
        cdef Py_ssize_t i
        self.c, self.references = laid_out.c, laid_out
        require(q.shape[0] == self.c.n, "q must have a row for each variable")
        for i in range(self.c.n):
            require(self.c.sizes[i] <= q.shape[1], "q must have a column for each state")
        self.q = q
        self.work = np.empty((2, laid_out.widest))
        self.damping = damping
        self.change = 0.0

    def sweep(self, int64_t i):
        """Continue the sweep from variable i for a fraction of a second. Return the next variable, V at the end."""
        cdef int64_t spent = 0
        require(i >= 0, "variables count from 0")
        if i == 0:
            self.change = 0.0
        with nogil:
            while i < self.c.n and spent < BUDGET:
                if self.c.sizes[i] == 2:
                    spent += self.update_binary(i)
                elif self.c.sizes[i] > 2:
                    spent += self.update(i)
                i += 1
        return i

    cdef int64_t update_binary(self, int64_t i) noexcept nogil:
        """Update a binary variable, from the expected log-odds of state 0."""
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
            possible |= values[k] > -INFINITY  # False for NaN
        if not possible:
            spent += self.least_forbidden(i)
        self.move(i)
        return spent + n_states * EXP_CELLS

    cdef int64_t add_expected(self, int64_t i, double *values) noexcept nogil:
        """Add to ``values`` the expected rows of all incidences, with 0 * -inf = 0."""
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
        """Fill the values of a variable whose states are all forbidden with positive probability.

        States that its unary factors allow and that have the least probability of forbidden entries get their finite
        part, all others -inf.
        """
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
            if forbidden[k] > least * (1.0 + 1e-9):  # a tolerance for rounding
                values[k] = -INFINITY
        return spent

    cdef void move(self, int64_t i) noexcept nogil:
        """Move q towards the normalised exp(values). A state of value -inf gets probability 0 whatever the damping."""
        cdef int k, n_states = self.c.sizes[i]
        cdef double *values = &self.work[0, 0]
        cdef double *q = &self.q[i, 0]
        cdef double top = -INFINITY, total = 0.0, possible = 0.0, change = self.change, old
        for k in range(n_states):
            top = fmax(top, values[k])
        for k in range(n_states):
            if values[k] > -INFINITY:
                possible += q[k]
            values[k] = exp(values[k] - top) if values[k] > -INFINITY else -1.0
            total += fmax(values[k], 0.0)
        for k in range(n_states):
            old = q[k]
            q[k] = fmax(values[k], 0.0) / total
            change = fmax(change, fabs(q[k] - old))
            if self.damping < 1.0 and possible > 0.0 and values[k] >= 0.0:
                q[k] = (1.0 - self.damping) * (old / possible) + self.damping * q[k]
        self.change = change


cdef double weighted(const double *p, const double *row, int n, double share) noexcept nogil:
    """Return the sum of share * p * row, with 0 * -inf = 0."""
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


def expected(const double[:, ::1] q not None, sizes, scopes, table_of_factor,
             const double[:] scale not None, const double[:, ::1] tables not None, int64_t f):
    """Sum the expected log-potentials of factors from f on, under independent distributions q [V, K] with 0 * -inf = 0.

    Runs for a fraction of a second. Returns (sum, next factor).
    """
    cdef CompensatedSum total = CompensatedSum(0.0, 0.0)
    cdef const int32_t[::1] widths = own(sizes, np.int32, 1, "sizes")
    cdef const int32_t[:, ::1] variables = own(scopes, np.int32, 2, "scopes")
    cdef const int32_t[:] table = own(table_of_factor, np.int32, 1, "table_of_factor", strided=True)
    cdef int64_t spent = 0, t
    cdef int last = <int> variables.shape[1] - 1, n_states
    cdef double part
    cdef const double *row
    cdef const double *other
    cdef Configurations c
    require(0 <= last < MOST_VARIABLES and f >= 0, "factors have 1 to 64 variables and count from 0")
    require(table.shape[0] == scale.shape[0] == variables.shape[0], "factors need a table and a scale each")
    check_cells(variables, widths, q, tables.shape[1])
    if not variables.shape[0]:
        return 0.0, f
    c.sizes, c.q, c.stride = &widths[0], &q[0, 0], q.shape[1]
    with nogil:
        while f < variables.shape[0] and spent < BUDGET:
            t = table[f]
            if not 0 <= t < tables.shape[0]:
                with gil:
                    raise IndexError(f"factor {f} uses table {t}, which does not exist")
            row = &tables[t, 0]
            other = &q[variables[f, last], 0]
            n_states = widths[variables[f, last]]
            part = 0.0
            first_configuration(&c, &variables[f, 0], last)
            while True:
                if c.weights[last] != 0.0:
                    part += weighted(other, row, n_states, c.weights[last])
                row += n_states
                spent += n_states
                if not next_configuration(&c):
                    break
            if part == -INFINITY:
                total = CompensatedSum(-INFINITY, 0.0)
                f = variables.shape[0]
                break
            add(&total, scale[f] * part)
            f += 1
    return total.value, f


cdef int check_cells(const int32_t[:, ::1] scopes, const int32_t[::1] sizes, const double[:, ::1] q,
                     int64_t n_cells) except -1:
    """Raise ValueError unless each factor has ``n_cells`` joint states and each variable a row of ``q``."""
    cdef int64_t f, a, cells
    require(q.shape[0] >= sizes.shape[0], "q must have a row for each variable")
    for f in range(sizes.shape[0]):
        require(0 < sizes[f] <= q.shape[1], "q must have a column for each state")
    for f in range(scopes.shape[0]):
        cells = 1
        for a in range(scopes.shape[1]):
            require(0 <= scopes[f, a] < sizes.shape[0], "scopes must consist of variables of the graph")
            cells *= sizes[scopes[f, a]]
            require(0 < cells <= n_cells, "tables must have a cell for each joint state of a factor")
        require(cells == n_cells, "tables must have a cell for each joint state of a factor")
    return 0


@cython.boundscheck(True)
def entropy(const double[:, ::1] q not None, sizes, int64_t i):
    """Sum the entropies of the distributions q [V, K] of variables from i on.

    Runs for a fraction of a second. Returns (sum, next variable).
    """
    cdef CompensatedSum total = CompensatedSum(0.0, 0.0)
    cdef const int32_t[::1] widths = owned(sizes, np.int32, 1, "sizes")
    cdef int64_t spent = 0
    cdef int k
    cdef double part
    with nogil:
        while i < q.shape[0] and spent < BUDGET:
            part = 0.0
            for k in range(widths[i]):
                if q[i, k] > 0.0:
                    part -= q[i, k] * log(q[i, k])
            add(&total, part)
            spent += widths[i] * EXP_CELLS
            i += 1
    return total.value, i
