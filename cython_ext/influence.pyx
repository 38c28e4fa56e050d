# cython: language_level=3
"""Dobrushin's matrix: its rows from pairs of variables, its bounds and its products. ``herdner.dobrushin.influence``
checks and calls.

A matrix C is ``starts`` int64[V + 1], ``sources`` int32[nnz], ``values`` float64[nnz]: row i holds the influences on
variable i, of the variables j in ``sources``; entry (i, j) is there where (j, i) is, zero or not, and (i, i) is not.
"""

import numpy as np

from libc.math cimport exp, fabs, isnan
from libc.stdint cimport int32_t, int64_t

from matrix cimport Matrix, matrix_of, row_times


def count_pairs(const int32_t[:, ::1] pairs, int64_t[::1] starts):
    """Adds to ``starts[i + 1]`` the number of pairs of variable i."""
    cdef int64_t f
    with nogil:
        for f in range(pairs.shape[0]):
            starts[pairs[f, 0] + 1] += 1
            starts[pairs[f, 1] + 1] += 1


def place_pairs(const int32_t[:, ::1] pairs, const double[:] strength, int64_t[::1] cursor, int32_t[::1] sources,
                double[::1] values):
    """Appends each pair, with its strength, to the rows of its two variables; ``cursor`` [V] is where each row
    stands."""
    cdef int64_t f, e
    cdef int32_t i, j
    with nogil:
        for f in range(pairs.shape[0]):
            i, j = pairs[f, 0], pairs[f, 1]
            e = cursor[i]
            cursor[i] += 1
            sources[e], values[e] = j, strength[f]
            e = cursor[j]
            cursor[j] += 1
            sources[e], values[e] = i, strength[f]


def merge_repeated(int64_t[::1] starts, int32_t[::1] sources, double[::1] values):
    """Adds up the entries of a row that name one source, in place of the first; returns how many entries are left."""
    cdef int64_t i, e, begin, end, to = 0, n = starts.shape[0] - 1
    cdef int64_t[::1] seen = np.full(n, -1, np.int64)
    with nogil:
        begin = 0
        for i in range(n):
            end = starts[i + 1]
            starts[i] = to
            for e in range(begin, end):
                if seen[sources[e]] >= starts[i]:
                    values[seen[sources[e]]] += values[e]
                    continue
                seen[sources[e]] = to
                sources[to], values[to] = sources[e], values[e]
                to += 1
            begin = end
        starts[n] = to
    return to


def bound_pairwise(double[::1] values):
    """tanh(R / 4) in place of each range R >= 0 (DoGS17 Theorem 10)."""
    cdef int64_t e
    cdef double q
    with nogil:
        for e in range(values.shape[0]):
            q = exp(-0.5 * values[e])
            values[e] = (1.0 - q) / (1.0 + q)


def bound_binary(const int64_t[::1] starts, double[::1] values, const double[::1] fields, bint as_printed):
    """DoGS17's bound for states -1 and +1 in place of the couplings t (or sums of their sizes).

    With q = e^-2|t| and b of the theorem, which is at most 1 up to b -> 1/b: the influence is at most
    (1 - q^2) b / ((b + q) (1 + b q)) (Theorem 11), and with ``as_printed`` (1 - q^2) b / (q (1 + b)^2), at most 1
    (Theorem 12). ``fields`` [V] are theta_i. What is not a number, as infinity less infinity, makes b = 1.
    """
    cdef int64_t i, e
    cdef double total, widest, q, b, bound
    with nogil:
        for i in range(fields.shape[0]):
            total = 0.0
            for e in range(starts[i], starts[i + 1]):
                total += fabs(values[e])
            widest = exp(-2.0 * (fabs(fields[i]) - total))
            for e in range(starts[i], starts[i + 1]):
                q = exp(-2.0 * fabs(values[e]))
                b = widest * q
                if not b < 1.0:
                    b = 1.0
                if as_printed:
                    bound = (1.0 - q * q) * b / (q * (1.0 + b) * (1.0 + b))
                else:
                    bound = (1.0 - q * q) * b / ((b + q) * (1.0 + b * q))
                values[e] = 1.0 if isnan(bound) or bound > 1.0 else bound


def multiply(influence, const double[::1] x, double[::1] to):
    """to = C x."""
    cdef Matrix c = matrix_of(influence)
    cdef int64_t i
    with nogil:
        for i in range(c.n):
            to[i] = row_times(&c, i, &x[0])


def multiply_transposed(influence, const double[::1] x, double[::1] to):
    """to = C^T x."""
    cdef Matrix c = matrix_of(influence)
    cdef int64_t i, e
    with nogil:
        to[:] = 0.0
        for i in range(c.n):
            for e in range(c.starts[i], c.starts[i + 1]):
                to[c.sources[e]] += c.values[e] * x[i]
