# cython: language_level=3
"""One pass over a group of table factors: is everything in range? ``herdner.graph.factors`` words the errors."""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, isfinite
from libc.stdint cimport int32_t, int64_t


def find_fault(const int32_t[:, ::1] scopes, const int32_t[:] table_of_factor, const double[:] scale,
               const double[:, ::1] tables, double most):
    """The first fault as (name, factor or table, 0.0); or (None, 0, reach), the most that the finite log-potentials of
    the factors can add up to, in either direction.

    ``scopes`` [F, a], ``table_of_factor`` [F], ``scale`` [F]; ``tables`` [T, cells]. Names: "negative" and
    "repeated" variable, "table" number and "scale" of a factor, "entry" of a table, "forbidding" table of a factor
    whose scale is not above 0, "reach" of a factor that makes the reach of all, or "scales" of one that makes the sum
    of their scales, larger than ``most``.
    """
    cdef int64_t f, t, i
    cdef int a, b, arity = <int> scopes.shape[1]
    cdef bint forbids = False
    cdef double largest, reach = 0.0, scales = 0.0
    cdef double[::1] sizes = np.empty(tables.shape[0])
    for t in range(tables.shape[0]):
        largest = 0.0
        for i in range(tables.shape[1]):
            if not tables[t, i] < INFINITY:
                return "entry", t, 0.0
            if tables[t, i] == -INFINITY:
                forbids = True
            else:
                largest = fmax(largest, fabs(tables[t, i]))
        sizes[t] = largest
    for f in range(scopes.shape[0]):
        for a in range(arity):
            if scopes[f, a] < 0:
                return "negative", f, 0.0
            for b in range(a):
                if scopes[f, a] == scopes[f, b]:
                    return "repeated", f, 0.0
        if not 0 <= table_of_factor[f] < tables.shape[0]:
            return "table", f, 0.0
        if not isfinite(scale[f]):
            return "scale", f, 0.0
        if forbids and scale[f] <= 0:
            for i in range(tables.shape[1]):
                if tables[table_of_factor[f], i] == -INFINITY:
                    return "forbidding", f, 0.0
        reach += fabs(scale[f]) * sizes[table_of_factor[f]]
        if not reach <= most:
            return "reach", f, 0.0
        scales += fabs(scale[f])
        if not scales <= most:
            return "scales", f, 0.0
    return None, 0, reach


def find_misfit(const int32_t[:, ::1] scopes, const int32_t[::1] sizes, shape):
    """The first (factor, axis) whose variable is not in ``sizes`` [V] or has not ``shape[axis]`` labels, or None."""
    cdef int64_t f
    cdef int a
    cdef int32_t size
    for a in range(<int> scopes.shape[1]):
        size = shape[a]
        for f in range(scopes.shape[0]):
            if scopes[f, a] >= sizes.shape[0] or sizes[scopes[f, a]] != size:
                return f, a
    return None
