# cython: language_level=3, boundscheck=True
"""The Dobrushin variation of scans (DoGS17 Definition 7): the vector b after each step.

Called by ``herdner.dobrushin.variation``, which checks the arguments, and ``herdner.dobrushin.optimise``.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from herdner._ext.influence cimport InfluenceMatrix
from herdner._ext.memory cimport owned, require
from matrix cimport Matrix, capped, row_times


cdef int require_vector(int64_t n, double[::1] b) except -1:
    """Raise ValueError unless ``b`` has an entry for each of n variables."""
    return require(b is not None and b.shape[0] == n > 0, "b must have an entry for each variable")


def walk(InfluenceMatrix influence not None, order, double[::1] b):
    """Compute b = B(order[T - 1]) .. B(order[0]) b: each step replaces b_i by (C b)_i."""
    cdef Matrix c = influence.c
    cdef int64_t t
    cdef int32_t i
    cdef double _old
    require_vector(c.n, b)
    cdef const int32_t[::1] steps = owned(order, np.int32, 1, "order")
    with nogil:
        for t in range(steps.shape[0]):
            i = steps[t]
            _old = b[i]  # an index out of range raises an error before the row is read
            b[i] = capped(row_times(&c, i, &b[0]))


def walk_recorded(InfluenceMatrix influence not None, order, double[::1] b, const double[::1] d, support,
                  double[::1] curve):
    """Compute b as `walk` does; ``curve`` [T + 1] receives d^T b before the first step and after each.

    The sum is updated by differences and computed anew every ``len(support)`` steps, so that rounding errors stay small
    relative to the shrinking sum.
    """
    cdef Matrix c = influence.c
    cdef int64_t t, since = 0
    cdef int32_t i
    cdef double old, new, now
    require_vector(c.n, b)
    cdef const int32_t[::1] steps = owned(order, np.int32, 1, "order")
    cdef const int32_t[::1] own_support = owned(support, np.int32, 1, "support")
    with nogil:
        now = weighted(own_support, d, b)
        curve[0] = now
        for t in range(steps.shape[0]):
            i = steps[t]
            old = b[i]  # an index out of range raises an error before the row is read
            new = capped(row_times(&c, i, &b[0]))
            now += d[i] * (new - old)
            b[i] = new
            since += 1
            if since >= own_support.shape[0]:
                now = weighted(own_support, d, b)
                since = 0
            curve[t + 1] = now


cdef double weighted(const int32_t[::1] support, const double[::1] d, const double[::1] b) except? -1 nogil:
    """Return d^T b over the support of d."""
    cdef int64_t k
    cdef double total = 0.0
    for k in range(support.shape[0]):
        total += d[support[k]] * b[support[k]]
    return total


def walk_random(InfluenceMatrix influence not None, const double[:, :] q, double[:, ::1] rows):
    """Compute rows[t + 1] = B(q[t]) rows[t] = rows[t] - diag(q[t]) (I - C) rows[t]; ``rows`` [T + 1, V]."""
    cdef Matrix c = influence.c
    cdef int64_t t, i
    cdef double change
    require(rows.shape[0] > 0 and rows.shape[1] == c.n > 0, "rows must have an entry for each variable")
    with nogil:
        for t in range(rows.shape[0] - 1):
            for i in range(c.n):
                change = 0.0
                if q[t, i]:
                    change = q[t, i] * (row_times(&c, i, &rows[t, 0]) - rows[t, i])
                rows[t + 1, i] = capped(rows[t, i] + change)
