# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One pass over a group of table factors: is everything in range? ``herdner.graph.factors`` words the errors."""

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t


def find_fault(const int32_t[:, ::1] scopes, const int32_t[:] table_of_factor, const double[:] scale,
               const double[:, ::1] tables):
    """The first fault as (name, factor or table), or None.

    ``scopes`` [F, a], ``table_of_factor`` [F], ``scale`` [F]; ``tables`` [T, cells]. Names: "negative" and
    "repeated" variable, "table" number and "scale" of a factor, "entry" of a table, "forbidding" table of a factor
    whose scale is not above 0.
    """
    cdef int64_t f, t, i
    cdef int a, b, arity = <int> scopes.shape[1]
    cdef bint forbids = False
    for t in range(tables.shape[0]):
        for i in range(tables.shape[1]):
            if not tables[t, i] < INFINITY:
                return "entry", t
            if tables[t, i] == -INFINITY:
                forbids = True
    for f in range(scopes.shape[0]):
        for a in range(arity):
            if scopes[f, a] < 0:
                return "negative", f
            for b in range(a):
                if scopes[f, a] == scopes[f, b]:
                    return "repeated", f
        if not 0 <= table_of_factor[f] < tables.shape[0]:
            return "table", f
        if not isfinite(scale[f]):
            return "scale", f
        if forbids and scale[f] <= 0:
            for i in range(tables.shape[1]):
                if tables[table_of_factor[f], i] == -INFINITY:
                    return "forbidding", f
    return None


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
