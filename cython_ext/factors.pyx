# cython: language_level=3, boundscheck=True
"""Checks of a group of table factors, in one pass. ``herdner.graph.factors`` raises the errors."""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, isfinite
from libc.stdint cimport int32_t, int64_t

from herdner._ext.memory cimport own, owned


def find_fault(scopes, table_of_factor, const double[:] scale, const double[:, ::1] tables, double most):
    """Find the first fault in a group of factors. Return (name, index of the factor or table, 0.0).

    Without a fault, returns (None, 0, reach), where reach is the largest absolute sum of the factors' finite
    log-potentials. ``scopes`` [F, a]; ``table_of_factor`` [F]; ``scale`` [F]; ``tables`` [T, cells]. Names of faults:

    - "negative", "repeated": a variable of a factor;
    - "table", "scale": the table index or the scale of a factor;
    - "entry": an entry of a table is NaN or +inf;
    - "forbidding": a factor has -inf entries and a scale that is not positive;
    - "reach", "scales": with this factor the reach, or the sum of the scales, exceeds ``most``.
    """
    cdef const int32_t[:, ::1] variables = owned(scopes, np.int32, 2, "scopes")
    cdef const int32_t[:] table = own(table_of_factor, np.int32, 1, "table_of_factor", strided=True)
    cdef int64_t f, t, i
    cdef int a, b, arity = <int> variables.shape[1]
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
    for f in range(variables.shape[0]):
        for a in range(arity):
            if variables[f, a] < 0:
                return "negative", f, 0.0
            for b in range(a):
                if variables[f, a] == variables[f, b]:
                    return "repeated", f, 0.0
        if not 0 <= table[f] < tables.shape[0]:
            return "table", f, 0.0
        if not isfinite(scale[f]):
            return "scale", f, 0.0
        if forbids and scale[f] <= 0:
            for i in range(tables.shape[1]):
                if tables[table[f], i] == -INFINITY:
                    return "forbidding", f, 0.0
        reach += fabs(scale[f]) * sizes[table[f]]
        if not reach <= most:
            return "reach", f, 0.0
        scales += fabs(scale[f])
        if not scales <= most:
            return "scales", f, 0.0
    return None, 0, reach


def find_misfit(scopes, sizes, shape):
    """Return the first (factor, axis) whose variable is not in ``sizes`` [V] or does not have ``shape[axis]`` states.

    Returns None if all factors fit.
    """
    cdef const int32_t[:, ::1] variables = owned(scopes, np.int32, 2, "scopes")
    cdef const int32_t[::1] n_states = owned(sizes, np.int32, 1, "sizes")
    cdef int64_t f
    cdef int a
    cdef int32_t size
    for a in range(<int> variables.shape[1]):
        size = shape[a]
        for f in range(variables.shape[0]):
            if variables[f, a] >= n_states.shape[0] or n_states[variables[f, a]] != size:
                return f, a
    return None
