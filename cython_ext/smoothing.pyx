# cython: language_level=3
"""Forward-backward over one sequence: scaled where that is safe, else in the log domain.

Called by chain.pyx, batches.pyx, likelihood.pyx and sum_product.pyx through herdner/_ext/smoothing.pxd.
"""

import math

import numpy as np

from libc.math cimport INFINITY, exp, fabs
from libc.stdint cimport int32_t, int64_t

from herdner._ext.memory cimport Memory, owned, require, require_offsets, require_range


cdef Memory own_tables(tables, Py_ssize_t n_states):
    """Return a private copy of tables [T, K, K] for ``n_states`` states, at least one table."""
    cdef Memory result = owned(tables, np.float64, 3, "tables")
    require(n_states > 0 and result.view.shape[0] > 0 and result.view.shape[1] == n_states == result.view.shape[2],
            "tables must have a row and a column for each state")
    return result


cdef Memory own_sequences(offsets, Py_ssize_t n):
    """Return a private copy of the offsets of sequences of n tokens."""
    cdef Memory result = owned(offsets, np.int64, 1, "offsets")
    require_offsets(result, n, "offsets")
    return result


cdef Memory own_edges(edge_table, Py_ssize_t n, Py_ssize_t n_tables):
    """Return a private copy of the table of each token's edge, or None."""
    cdef Memory result
    if edge_table is None:
        return None
    result = owned(edge_table, np.int32, 1, "edge_table")
    require(result.view.shape[0] == n, "edge_table must have an entry for each token")
    require_range(result, 0, n_tables, "edge_table must consist of tables")
    return result


cdef object in_lines(tuple shape):
    """Return an uninitialised float64 array that begins with a cache line, so that no vector crosses a line."""
    n = 8 * math.prod(shape)
    raw = np.empty(n + 64, np.uint8)
    start = -raw.__array_interface__["data"][0] % 64
    return raw[start:start + n].view(np.float64).reshape(shape)


cdef object pad(const double[:, :, ::1] tables, double filler):
    """Return the tables and their transposes with rows padded to a multiple of 4: [2, T, K, stride]."""
    cdef Py_ssize_t n_tables = tables.shape[0], n_states = tables.shape[1], stride = (n_states + 3) // 4 * 4, t, i, j
    padded = np.empty((2, n_tables, n_states, stride))
    cdef double[:, :, :, ::1] rows = padded
    require(tables.shape[2] == n_states, "tables must be square")
    for t in range(n_tables):
        for i in range(n_states):
            for j in range(stride):
                rows[0, t, i, j] = tables[t, i, j] if j < n_states else filler
                rows[1, t, i, j] = tables[t, j, i] if j < n_states else filler
    return padded


cdef object padded_with_infinity(Memory tables):
    """Return the tables [T, K, K] with rows padded by -inf, as `pad` does.

    Tables that many calls share are padded once if they are sealed.
    """
    padded = tables.forms.get("padded")
    if padded is None:
        padded = tables.forms["padded"] = pad(tables, -INFINITY)
    return padded


cdef ScaledTables scaled_tables(Memory tables):
    """Return the `ScaledTables` of tables [T, K, K], which are computed once if the tables are sealed."""
    scaled = tables.forms.get("scaled")
    if scaled is None:
        scaled = tables.forms["scaled"] = ScaledTables(tables)
    return scaled


cdef int log_forward(Smoothed *c, const double *unary, int64_t n, const int32_t *edge_table) noexcept nogil:
    """Run the forward pass in the log domain. Rows and ``norm`` are the logarithms of the scaled pass's results."""
    cdef int n_states = c.scaled.n_states, stride = c.scaled.stride, i, j
    cdef const double *table = c.tables
    cdef double *row
    cdef int64_t t
    for t in range(n):
        row = c.forward + t * stride
        if edge_table != NULL:
            table = c.tables + <int64_t> edge_table[t] * n_states * n_states
        for j in range(n_states):
            row[j] = unary[t * n_states + j]
            if t > 0 and row[j] > -INFINITY:
                for i in range(n_states):
                    c.x[i] = row[i - stride] + table[i * n_states + j]
                row[j] += log_sum_exp(c.x, n_states)
        c.norm[t] = log_sum_exp(row, n_states)
        if c.norm[t] == -INFINITY:
            return CHAIN_IMPOSSIBLE
        for j in range(n_states):
            row[j] -= c.norm[t]
    return CHAIN_OK


cdef void log_backward(Smoothed *c, const double *unary, int64_t n, const int32_t *edge_table) noexcept nogil:
    cdef int n_states = c.scaled.n_states, stride = c.scaled.stride, i, j
    cdef const double *table = c.tables
    cdef double *row = c.backward + (n - 1) * stride
    cdef double *xb
    cdef double top
    cdef int64_t t
    for j in range(n_states):
        row[j] = 0.0
    for t in range(n - 1, 0, -1):
        row = c.backward + t * stride
        xb = c.xb + t * stride
        if edge_table != NULL:
            table = c.tables + <int64_t> edge_table[t] * n_states * n_states
        for j in range(n_states):
            xb[j] = unary[t * n_states + j] + row[j]
        row -= stride
        for i in range(n_states):
            for j in range(n_states):
                c.x[j] = table[i * n_states + j] + xb[j]
            row[i] = log_sum_exp(c.x, n_states)
        top = log_sum_exp(row, n_states)
        for i in range(n_states):
            row[i] -= top


cdef int smooth(Smoothed *c, const double *unary, int64_t n, const int32_t *edge_table, bint backward) noexcept nogil:
    """Run forward and, if ``backward``, backward: scaled where that is safe, else in the log domain."""
    cdef int status = CHAIN_EXTREME
    c.log_domain = False
    if c.scalable:
        status = chain_exponentials(&c.scaled, unary, n, c.x, c.tops)
    if status == CHAIN_OK:
        chain_start_backward(&c.scaled, c.backward + (n - 1) * c.scaled.stride)
        status = scaled_passes(c, n, edge_table, 0, n - 1, backward)
    if status == CHAIN_EXTREME:
        c.log_domain = True
        status = log_forward(c, unary, n, edge_table)
        if status == CHAIN_OK and backward:
            log_backward(c, unary, n, edge_table)
    return status


cdef int scaled_passes(Smoothed *c, int64_t n, const int32_t *edge_table, int64_t first, int64_t last,
                       bint backward) noexcept nogil:
    """Run the scaled passes after x has changed only at tokens from ``first`` to ``last``."""
    cdef int status = chain_forward(&c.scaled, n, edge_table, first, c.x, c.tops, c.forward, c.norm)
    if status == CHAIN_OK and backward:
        status = chain_backward(&c.scaled, last, edge_table, c.x, c.backward, c.xb, c.scale)
    return status


cdef void node_marginals(const Smoothed *c, int64_t n, double *out) noexcept nogil:
    cdef int n_states = c.scaled.n_states, j
    cdef double total, share
    cdef int64_t t
    for t in range(n):
        total = joined(c, t, out)
        share = 1.0 / total
        if not c.log_domain:
            for j in range(n_states):
                out[j] *= share
        elif fabs(total) > LARGE_LOG:
            soft_max(out, n_states)
        else:
            for j in range(n_states):
                out[j] = exp(out[j] - total)
        out += n_states


cdef void edge_marginal(const Smoothed *c, int64_t t, int64_t table, double *out) noexcept nogil:
    """Fill ``out`` [K, K] with P(token t - 1 has state i and token t has state j)."""
    cdef int n_states = c.scaled.n_states, stride = c.scaled.stride, i, j, k
    cdef const double *f = c.forward + (t - 1) * stride
    cdef const double *xb = c.xb + t * stride
    cdef const double *log_table = c.tables + table * n_states * n_states
    cdef const double *exp_table = c.scaled.tables + table * n_states * stride
    cdef double total = 0.0
    for i in range(n_states):
        for j in range(n_states):
            if c.log_domain:
                out[i * n_states + j] = f[i] + log_table[i * n_states + j] + xb[j]
            else:
                out[i * n_states + j] = f[i] * exp_table[i * stride + j] * xb[j]
                total += out[i * n_states + j]
    if c.log_domain:
        soft_max(out, n_states * n_states)
        return
    for k in range(n_states * n_states):
        out[k] /= total


cdef void count_edges(const Smoothed *c, int64_t n, const int32_t *edge_table, double *outer, double *counts,
                      double *work) noexcept nogil:
    """Add the edge marginals of a sequence.

    In the log domain they are added to ``counts`` [T, K, K], else to ``outer`` [T, K, stride]. Entries of ``outer``
    lack the factor exp(table), by which the caller multiplies once at the end.
    """
    cdef int n_states = c.scaled.n_states, stride = c.scaled.stride, i
    cdef int64_t t, table = 0
    cdef double total
    for t in range(1, n):
        if edge_table != NULL:
            table = edge_table[t]
        if c.log_domain:
            edge_marginal(c, t, table, work)
            for i in range(n_states * n_states):
                counts[table * n_states * n_states + i] += work[i]
            continue
        total = joined(c, t - 1, work) * c.scale[t]
        chain_add_outer(outer + table * n_states * stride, c.forward + (t - 1) * stride, c.xb + t * stride, 1.0 / total,
                        n_states, stride)


cdef class ScaledTables:
    def __cinit__(self, const double[:, :, ::1] tables not None):
        require(tables.shape[0] > 0 and 0 < tables.shape[1] == tables.shape[2], "tables must be square")
        differences = np.empty((tables.shape[0], tables.shape[1], tables.shape[2]))
        cdef double[:, :, ::1] relative = differences
        cdef Py_ssize_t t, i, j
        cdef double top, least = 0.0
        self.shifts = np.empty(tables.shape[0])
        for t in range(tables.shape[0]):
            top = -INFINITY
            for i in range(tables.shape[1]):
                for j in range(tables.shape[2]):
                    top = max(top, tables[t, i, j])
            self.shifts[t] = 0.0 if top == -INFINITY else top
            for i in range(tables.shape[1]):
                for j in range(tables.shape[2]):
                    relative[t, i, j] = tables[t, i, j] - self.shifts[t]
                    if relative[t, i, j] > -INFINITY:
                        least = min(least, relative[t, i, j])
        self.padded, self.scalable = pad(np.exp(differences), 0.0), least >= -CHAIN_TABLE_RANGE
        self.c = padded_tables(self.padded)
        self.c.shifts = &self.shifts[0]


cdef class Workspace:
    def __cinit__(self, tables, int64_t n):
        cdef Memory own_copy = owned(tables, np.float64, 3, "tables")
        cdef double[::1] numbers
        cdef int64_t size
        require(0 < n < 1 << 48, "sequences must have tokens")
        self.scaled = scaled_tables(own_copy)
        self.c.scaled, self.c.scalable = self.scaled.c, self.scaled.scalable
        self.c.tables = <const double*> own_copy.view.buf
        size = n * self.c.scaled.stride
        numbers = np.empty(4 * size + 3 * n + self.c.scaled.n_states * self.c.scaled.stride)
        self.c.x, self.c.forward = &numbers[0], &numbers[size]
        self.c.backward, self.c.xb = &numbers[2 * size], &numbers[3 * size]
        self.c.norm, self.c.scale, self.c.tops = &numbers[4 * size], &numbers[4 * size + n], &numbers[4 * size + 2 * n]
        self.work, self.own_copy = numbers[4 * size + 3 * n:], own_copy
