# cython: language_level=3
"""Generalised arc consistency: the states of each variable that the zero entries of all tables allow.

A state of a variable is possible if each table with the variable has a cell above -inf at this state and at possible
states of its other variables. `herdner.inference.elimination_order` removes all other states from a graph.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

import numpy as np

from herdner._ext.memory cimport require, require_offsets, require_range

cdef enum:
    MOST_AXES = 64


cdef bint find_support(const int32_t* scope, Py_ssize_t arity, const int32_t* sizes, const int64_t* state_at,
                       const double* cells, const unsigned char* is_possible, unsigned char* is_supported
                       ) noexcept nogil:
    """Mark the states that have a possible cell in one table; return False if it has no possible cell."""
    cdef int32_t digits[MOST_AXES]
    cdef Py_ssize_t a, k
    cdef int64_t c = 0
    cdef bint is_cell_possible, has_support = False
    for a in range(arity):
        digits[a] = 0
        for k in range(sizes[scope[a]]):
            is_supported[state_at[scope[a]] + k] = 0
    while True:
        if cells[c] > -INFINITY:
            is_cell_possible = True
            for a in range(arity):
                if not is_possible[state_at[scope[a]] + digits[a]]:
                    is_cell_possible = False
                    break
            if is_cell_possible:
                has_support = True
                for a in range(arity):
                    is_supported[state_at[scope[a]] + digits[a]] = 1
        c += 1
        a = arity - 1
        while a >= 0:
            digits[a] += 1
            if digits[a] < sizes[scope[a]]:
                break
            digits[a] = 0
            a -= 1
        if a < 0:
            return has_support


def possible_states(sizes, scope_at, scopes, table_at, tables):
    """Return which states are possible, uint8[sum of the sizes], and a table that allows no state, or -1.

    Args:
        sizes: int32[V], the number of states of each variable.
        scope_at, scopes: int64[F + 1], int32[..]: the distinct variables of each table.
        table_at, tables: int64[F + 1], float64[..]: the log-potentials of each table, the last variable fastest.
    """
    cdef int32_t[::1] sizes_ = np.array(sizes, np.int32), scopes_ = np.array(scopes, np.int32)
    cdef int64_t[::1] scope_at_ = np.array(scope_at, np.int64), table_at_ = np.array(table_at, np.int64), state_at
    cdef double[::1] tables_ = np.array(tables, np.float64)
    cdef Py_ssize_t f, e, g, k, v, first, n_waiting, n = sizes_.shape[0], n_factors = scope_at_.shape[0] - 1
    cdef int64_t cells
    cdef bint has_changed
    cdef int64_t[::1] factor_at, factors_of, queue
    cdef unsigned char[::1] is_possible, is_supported, is_waiting
    require(n_factors >= 0 and table_at_.shape[0] == n_factors + 1, "the arrays of a graph do not fit each other")
    require_offsets(np.asarray(scope_at_), scopes_.shape[0], "scope_at")
    require_offsets(np.asarray(table_at_), tables_.shape[0], "table_at")
    require_range(sizes_, 1, 1 << 31, "sizes must be at least 1")
    require_range(scopes_, 0, n, "a scope must name variables of the graph")
    state_at = np.zeros(n + 1, np.int64)
    for v in range(n):
        state_at[v + 1] = state_at[v] + sizes_[v]
    for f in range(n_factors):
        if scope_at_[f + 1] - scope_at_[f] > MOST_AXES:
            raise ValueError(f"a table can have at most {MOST_AXES} variables")
        cells = 1
        for e in range(scope_at_[f], scope_at_[f + 1]):
            cells = min(cells * sizes_[scopes_[e]], <int64_t> tables_.shape[0] + 1)
        require(table_at_[f + 1] - table_at_[f] == cells,
                "a table must have one cell for each joint state of its variables")
    owners = np.repeat(np.arange(n_factors, dtype=np.int64), np.diff(np.asarray(scope_at_)))
    factors_of = owners[np.argsort(np.asarray(scopes_), kind="stable")]
    factor_at = np.concatenate([[0], np.cumsum(np.bincount(np.asarray(scopes_), minlength=n))]).astype(np.int64)
    is_possible_array = np.ones(state_at[n], np.uint8)
    is_possible, is_supported = is_possible_array, np.zeros(state_at[n] + 1, np.uint8)
    is_waiting, queue = np.ones(n_factors + 1, np.uint8), np.arange(n_factors + 1, dtype=np.int64)
    first, n_waiting = 0, n_factors
    while n_waiting:
        f = queue[first]
        first, n_waiting = (first + 1) % n_factors, n_waiting - 1
        is_waiting[f] = 0
        if scope_at_[f] == scope_at_[f + 1]:
            if tables_[table_at_[f]] == -INFINITY:
                return is_possible_array, f
            continue
        if not find_support(&scopes_[scope_at_[f]], scope_at_[f + 1] - scope_at_[f], &sizes_[0], &state_at[0],
                            &tables_[table_at_[f]], &is_possible[0], &is_supported[0]):
            return is_possible_array, f
        for e in range(scope_at_[f], scope_at_[f + 1]):
            v, has_changed = scopes_[e], False
            for k in range(state_at[v], state_at[v + 1]):
                if is_possible[k] and not is_supported[k]:
                    is_possible[k] = 0
                    has_changed = True
            if has_changed:
                for k in range(factor_at[v], factor_at[v + 1]):
                    g = factors_of[k]
                    if g != f and not is_waiting[g]:
                        is_waiting[g] = 1
                        queue[(first + n_waiting) % n_factors] = g
                        n_waiting += 1
    return is_possible_array, -1
