# cython: language_level=3, boundscheck=True
"""Dobrushin's influence matrix: building its rows from pairs of variables, its bounds and its products.

Called by ``herdner.dobrushin.influence``, which checks the arguments. A matrix C consists of ``starts`` int64[V + 1],
``sources`` int32[nnz] and ``values`` float64[nnz]. Row i holds the influences on variable i of the variables in
``sources``. The pattern is symmetric: entry (i, j) is stored wherever (j, i) is, even if zero; (i, i) never is.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, isnan, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.memory cimport Memory, memory_behind, own, owned, require, require_offsets
from matrix cimport Matrix, row_times


cdef class InfluenceMatrix:
    def __cinit__(self, starts, sources, values):
        cdef const int64_t[::1] offsets = own(starts, np.int64, 1, "starts")
        cdef const int32_t[::1] columns = own(sources, np.int32, 1, "sources")
        cdef const double[::1] entries = own(values, np.float64, 1, "values")
        cdef Py_ssize_t e, n = offsets.shape[0] - 1
        require_offsets(offsets, columns.shape[0], "starts")
        require(entries.shape[0] == columns.shape[0], "sources and values must have the same length")
        for e in range(columns.shape[0]):
            require(0 <= columns[e] < n, "sources must be variables of the matrix")
        self.c.n, self.c.starts = n, &offsets[0]
        if columns.shape[0]:
            self.c.sources, self.c.values = &columns[0], &entries[0]
        self.memories = (memory_behind(offsets.base), memory_behind(columns.base), memory_behind(entries.base))

    def __reduce__(self):
        cdef Memory memory
        return InfluenceMatrix, tuple([memory.to_array() for memory in self.memories])


def symmetric_rows(int64_t n, pairs, const double[:] strength not None):
    """Return the sparse rows (starts int64[n + 1], sources int32[nnz], values float64[nnz]) of a symmetric matrix.

    Both rows of each of the ``pairs`` int32[F, 2] get an entry with its strength. The strengths of repeated pairs are
    summed, at the place of the first.
    """
    cdef const int32_t[:, ::1] ends = owned(pairs, np.int32, 2, "pairs")
    cdef int64_t f, e, i, k, begin, end, to = 0, n_pairs = ends.shape[0]
    cdef int32_t j
    require(ends.shape[1] == 2 and strength.shape[0] == n_pairs, "pairs must have two columns, and a strength each")
    starts_array = np.zeros(max(n, 0) + 1, np.int64)
    sources_array, values_array = np.empty(2 * n_pairs, np.int32), np.empty(2 * n_pairs)
    cdef int64_t[::1] starts = starts_array, cursor, seen
    cdef int32_t[::1] sources = sources_array
    cdef double[::1] values = values_array
    for f in range(n_pairs):
        require(0 <= ends[f, 0] < n and 0 <= ends[f, 1] < n, "pairs must consist of variables")
    with nogil:
        for f in range(n_pairs):
            starts[ends[f, 0] + 1] += 1
            starts[ends[f, 1] + 1] += 1
        for i in range(n):
            starts[i + 1] += starts[i]
    cursor = starts_array[:n].copy()
    with nogil:
        for f in range(n_pairs):
            for k in range(2):
                e = cursor[ends[f, k]]
                cursor[ends[f, k]] += 1
                sources[e], values[e] = ends[f, 1 - k], strength[f]
    seen = cursor
    seen[:] = -1
    with nogil:
        begin = 0
        for i in range(n):
            end = starts[i + 1]
            starts[i] = to
            for e in range(begin, end):
                j = sources[e]
                if seen[j] >= starts[i]:
                    values[seen[j]] += values[e]
                    continue
                seen[j] = to
                sources[to], values[to] = j, values[e]
                to += 1
            begin = end
        starts[starts.shape[0] - 1] = to
    if to < 2 * n_pairs:
        return starts_array, sources_array[:to].copy(), values_array[:to].copy()
    return starts_array, sources_array, values_array


def bound_pairwise(double[::1] values):
    """Replace each range R >= 0 by tanh(R / 4) (DoGS17 Theorem 10)."""
    cdef int64_t e
    cdef double q
    with nogil:
        for e in range(values.shape[0]):
            q = exp(-0.5 * values[e])
            values[e] = (1.0 - q) / (1.0 + q)


def bound_binary(starts, double[::1] values, const double[::1] fields, bint as_printed):
    """Replace the couplings t (or sums of their sizes) by DoGS17's bound for states -1 and +1.

    With q = e^-2|t| and the b of the theorem (b and 1/b give the same bound, so take b <= 1), the influence is at most
    (1 - q^2) b / ((b + q) (1 + b q)) (Theorem 11), and with ``as_printed`` (1 - q^2) b / (q (1 + b)^2), at most 1
    (Theorem 12). ``fields`` [V] are theta_i. A NaN, such as infinity minus infinity, sets b = 1.

    b is q times ``widest``. The factors b / q and b / (b + q) are computed from ``widest``, as b and q may underflow.
    """
    cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts")
    cdef int64_t i, e
    cdef double total, widest, q, b, ratio, bound
    with nogil:
        for i in range(fields.shape[0]):
            total = 0.0
            for e in range(first[i], first[i + 1]):
                total += fabs(values[e])
            widest = exp(-2.0 * (fabs(fields[i]) - total))
            for e in range(first[i], first[i + 1]):
                q = exp(-2.0 * fabs(values[e]))
                b, ratio = widest * q, widest
                if not b < 1.0:
                    b, ratio = 1.0, 1.0 / q if q > 0.0 else INFINITY
                if as_printed:
                    bound = (1.0 - q * q) * ratio / ((1.0 + b) * (1.0 + b))
                elif ratio < INFINITY:
                    bound = (1.0 - q * q) * ratio / ((1.0 + ratio) * (1.0 + b * q))
                else:
                    bound = 1.0
                values[e] = 1.0 if isnan(bound) or bound > 1.0 else bound


def multiply(InfluenceMatrix influence not None, const double[::1] x not None, double[::1] to not None):
    """Compute to = C x."""
    cdef Matrix c = influence.c
    cdef int64_t i
    require(x.shape[0] == c.n == to.shape[0], "x and to must have an entry for each variable")
    if not c.n:
        return
    with nogil:
        for i in range(c.n):
            to[i] = row_times(&c, i, &x[0])


def multiply_transposed(InfluenceMatrix influence not None, const double[::1] x not None, double[::1] to not None):
    """Compute to = C^T x."""
    cdef Matrix c = influence.c
    cdef int64_t i, e
    require(x.shape[0] == c.n == to.shape[0], "x and to must have an entry for each variable")
    with nogil:
        to[:] = 0.0
        for i in range(c.n):
            for e in range(c.starts[i], c.starts[i + 1]):
                to[c.sources[e]] += c.values[e] * x[i]


def largest_changes(const double[:, ::1] low, const double[:, ::1] high, const double[:, :, ::1] tables,
                    table, possible, double[::1] out):
    """Bound the change of a conditional when a neighbour flips.

    ``out`` [N] receives an upper bound of the total variation distance of p_u(k) ~ q(k) exp(t[u, k]) for two states u
    of the neighbour, for any q with low <= log q <= high (up to a factor). t is ``tables[table[n]]`` of [T, K, K]; u is
    one of the states marked in ``possible``. Tables hold no NaN and no +inf. The bound is exact where low = high.

    For a set S of states let r be the odds of S under p_u and r' those under p_v. Then r' is at least r times the
    smallest mean of exp(t[v] - t[u]) over S, divided by the largest mean over the other states, both over the box of q;
    r and r' also have bounds of their own. The largest p_u(S) - p_v(S) is reached by a set of states whose
    t[v] - t[u] lies below a threshold.
    """
    cdef const int32_t[::1] table_of = owned(table, np.int32, 1, "table")
    cdef const uint8_t[:, ::1] is_possible = owned(possible, np.uint8, 2, "possible")
    cdef int64_t n, u, v, n_states = low.shape[1]
    cdef double[:, ::1] work = np.empty((6, n_states))
    cdef double[:, ::1] rows = np.empty((n_states, n_states))
    cdef double top, worst
    cdef int k
    with nogil:
        for n in range(low.shape[0]):
            top = -INFINITY
            for k in range(n_states):
                top = fmax(top, high[n, k])
            for k in range(n_states):
                work[0, k], work[1, k] = exp(low[n, k] - top), exp(high[n, k] - top)
            for u in range(n_states):
                if is_possible[n, u]:
                    top = -INFINITY
                    for k in range(n_states):
                        if work[1, k] > 0.0:
                            top = fmax(top, tables[table_of[n], u, k])
                    for k in range(n_states):
                        rows[u, k] = 0.0 if top == -INFINITY else exp(tables[table_of[n], u, k] - top)
            worst = 0.0
            for u in range(n_states):
                for v in range(u + 1, n_states):
                    if is_possible[n, u] and is_possible[n, v]:
                        worst = fmax(worst, largest_change(rows[u], rows[v], work))
            out[n] = fmin(1.0, worst * (1.0 + 1e-9) + 1e-12)


cdef double largest_change(const double[::1] a, const double[::1] b, double[:, ::1] work) noexcept nogil:
    """Return the bound of p_u(S) - p_v(S) over all S.

    ``a`` and ``b`` are the exponentials of the two rows; ``work`` [6, K]
    holds the box of q, then scratch."""
    cdef int k, m, i, n = 0, n_states = <int> a.shape[0]
    cdef double worst = 0.0, a_in[2], b_in[2], a_out[2], b_out[2]
    cdef double[::1] ratio = work[2]
    cdef double[::1] order = work[3]
    cdef double c
    for k in range(n_states):
        if work[1, k] == 0.0 or (a[k] == 0.0 and b[k] == 0.0):
            continue
        c = b[k] / a[k] if a[k] > 0.0 else INFINITY
        i = n
        while i > 0 and ratio[i - 1] > c:
            ratio[i], order[i] = ratio[i - 1], order[i - 1]
            i -= 1
        ratio[i], order[i] = c, k
        n += 1
    if n == 0 or ratio[0] == INFINITY or ratio[n - 1] == 0.0:
        return 0.0 if n == 0 else 1.0
    for m in range(1, n):  # S: the first m in the order
        if ratio[m - 1] == INFINITY:
            break
        sums(a, b, work, order, 0, m, a_in, b_in)
        sums(a, b, work, order, m, n, a_out, b_out)
        worst = fmax(worst, gap(a_in, b_in, a_out, b_out, extreme_mean(a, b, work, order, 0, m, False),
                                extreme_mean(a, b, work, order, m, n, True)))
    return worst


cdef inline void sums(const double[::1] a, const double[::1] b, const double[:, ::1] work, const double[::1] order,
                      int begin, int end, double *of_a, double *of_b) noexcept nogil:
    """Compute the smallest and the largest weights of a set of states under both rows."""
    cdef int i, k, side
    of_a[0] = of_a[1] = of_b[0] = of_b[1] = 0.0
    for i in range(begin, end):
        k = <int> order[i]
        for side in range(2):
            of_a[side] += work[side, k] * a[k]
            of_b[side] += work[side, k] * b[k]


cdef inline double extreme_mean(const double[::1] a, const double[::1] b, const double[:, ::1] work,
                                const double[::1] order, int begin, int end, bint largest) noexcept nogil:
    """Return the smallest or largest (sum of q b) / (sum of q a) over some states, inf where a may have no weight.

    The smallest mean has q high up to a threshold in the order and low after it, the largest mean the other way round.
    """
    cdef int i, k
    cdef double up = 0.0, down = 0.0, mean = 0.0 if largest else INFINITY
    for i in range(begin, end):
        k = <int> order[i]
        up += work[0, k] * b[k]
        down += work[0, k] * a[k]
    for i in range(end - begin):
        k = <int> order[end - 1 - i if largest else begin + i]
        up += (work[1, k] - work[0, k]) * b[k]
        down += (work[1, k] - work[0, k]) * a[k]
        if largest:
            mean = fmax(mean, up / down if down > 0.0 else INFINITY)
        else:
            mean = fmin(mean, up / down)
    return mean


cdef inline double gap(const double *a_in, const double *b_in, const double *a_out, const double *b_out, double least,
                       double most) noexcept nogil:
    """Return the largest r / (1 + r) - r' / (1 + r'), where r' >= r least / most and both are within their bounds."""
    cdef double r_low = a_in[0] / a_out[1] if a_out[1] > 0.0 else INFINITY
    cdef double r_high = a_in[1] / a_out[0] if a_out[0] > 0.0 else INFINITY
    cdef double s_low = b_in[0] / b_out[1] if b_out[1] > 0.0 else INFINITY
    cdef double apart = share(r_high) - share(s_low), by, r
    by = fmin(least / most, 1.0) if most < INFINITY else 0.0
    if by == 0.0:
        return fmax(apart, 0.0)
    r = fmin(fmax(1.0 / sqrt(by), r_low), r_high)
    return fmax(fmin(apart, share(r) - share(r * by)), 0.0)


cdef inline double share(double odds) noexcept nogil:
    return odds / (1.0 + odds) if odds < INFINITY else 1.0
