# cython: language_level=3, boundscheck=True
"""Loops over the vectors of a quasi-Newton search with an L1 norm. Called by ``herdner.crf.lbfgs``.

The loops process blocks of `BLOCK` coordinates and store the sums of each block, so that results do not depend on which
thread processes a block. All vectors have length d. Block b has the coordinates ``BLOCK * b`` to ``BLOCK * (b + 1) - 1``.
"""

import numpy as np

cimport cython
from libc.math cimport copysign, fabs
from libc.stdint cimport int32_t, int64_t

from herdner._ext.memory cimport own, require

cdef enum:
    BLOCK_SIZE = 2048   # two blocks of each of three vectors fit into the first-level cache
    LANES = 8           # sums side by side, which compilers keep in vector registers

BLOCK = BLOCK_SIZE


cdef inline void add_products(const double* row, const double* shift, const double* change, const double* slope,
                              int64_t n, double* sums) noexcept nogil:
    """Store the products of a row with three vectors."""
    cdef double[LANES] of_shift, of_change, of_slope
    cdef int64_t i = 0
    cdef int lane
    for lane in range(LANES):
        of_shift[lane] = of_change[lane] = of_slope[lane] = 0.0
    while i + LANES <= n:
        for lane in range(LANES):
            of_shift[lane] += row[i + lane] * shift[i + lane]
            of_change[lane] += row[i + lane] * change[i + lane]
            of_slope[lane] += row[i + lane] * slope[i + lane]
        i += LANES
    for lane in range(<int> (n - i)):
        of_shift[lane] += row[i + lane] * shift[i + lane]
        of_change[lane] += row[i + lane] * change[i + lane]
        of_slope[lane] += row[i + lane] * slope[i + lane]
    sums[0] = sums[1] = sums[2] = 0.0
    for lane in range(LANES):
        sums[0] += of_shift[lane]
        sums[1] += of_change[lane]
        sums[2] += of_slope[lane]


def measure(const double[::1] point not None, const double[::1] trial not None, const double[::1] gradient not None,
            const double[::1] trial_gradient not None, const double[::1] l1 not None, double[:, ::1] rows not None,
            int slot, used_rows, double[::1] slope not None, double[:, ::1] sums not None,
            int64_t first, int64_t last):
    """Measure a step from ``point`` to ``trial``, in the blocks ``first`` to ``last`` - 1.

    Stores the differences of the points and of the gradients in the rows ``2 * slot`` and ``2 * slot + 1``, and in
    ``slope`` the gradient of the function plus the L1 norm at ``trial``: at coordinates of 0, the one-sided derivative
    in the direction of descent, or 0. ``sums`` [blocks, 2 + 3 * len(used_rows)] gets the sum of the squares and the largest
    absolute value of ``slope``, and the products of each row in ``used_rows`` with the two differences and with ``slope``.
    """
    cdef int64_t d = point.shape[0], b, i, begin, n
    cdef double square, largest, value, weight
    cdef double* shift
    cdef double* change
    cdef Py_ssize_t r
    cdef const int32_t[::1] used = rows_of(used_rows, rows.shape[0])
    check_blocks(d, first, last, sums.shape[0])
    require(trial.shape[0] == d == gradient.shape[0] and trial_gradient.shape[0] == d == l1.shape[0]
            and slope.shape[0] == d == rows.shape[1], "the vectors must have equal lengths")
    require(sums.shape[1] == 2 + 3 * used.shape[0] and 0 <= slot and 2 * slot + 1 < rows.shape[0],
            "there must be a place for each difference and each sum")
    with nogil, cython.boundscheck(False), cython.wraparound(False):
        for b in range(first, last):
            begin = b * BLOCK_SIZE
            n = min(BLOCK_SIZE, d - begin)
            shift, change = &rows[2 * slot, begin], &rows[2 * slot + 1, begin]
            square = largest = 0.0
            for i in range(begin, begin + n):
                shift[i - begin] = trial[i] - point[i]
                change[i - begin] = trial_gradient[i] - gradient[i]
                value, weight = trial_gradient[i], l1[i]
                if trial[i] == 0.0:
                    value -= min(max(value, -weight), weight)
                else:
                    value += weight if trial[i] > 0.0 else -weight
                slope[i] = value
                square += value * value
                largest = max(largest, fabs(value))
            sums[b, 0], sums[b, 1] = square, largest
            for r in range(used.shape[0]):
                add_products(&rows[used[r], begin], shift, change, &slope[begin], n, &sums[b, 2 + 3 * r])


def step(const double[::1] point not None, const double[::1] slope not None, const double[::1] l1 not None,
         const double[:, ::1] rows not None, used_rows, const double[::1] coefficients not None, double length,
         double[::1] direction not None, double[::1] trial not None, double[:, ::1] sums not None,
         int64_t first, int64_t last):
    """Take a step of a length from ``point`` to ``trial``, in the blocks ``first`` to ``last`` - 1.

    Fills ``direction`` with the sum of the rows in ``used_rows`` times their ``coefficients``, plus the last coefficient
    times ``slope``; coordinates that would raise the value are 0. Without coefficients, ``direction`` is read. The step
    stays in one orthant: coordinates that would leave it become 0. ``sums`` [blocks, 2] gets the L1 norm of ``trial``
    and the product of ``slope`` and the step.
    """
    cdef int64_t d = point.shape[0], b, i, begin, n
    cdef double norm, product, side, value, coefficient
    cdef Py_ssize_t r
    cdef const int32_t[::1] used = rows_of(used_rows, rows.shape[0])
    check_blocks(d, first, last, sums.shape[0])
    require(slope.shape[0] == d == l1.shape[0] and direction.shape[0] == d == trial.shape[0] and rows.shape[1] == d
            and sums.shape[1] == 2, "the vectors must have equal lengths")
    require(coefficients.shape[0] in (0, used.shape[0] + 1), "each row needs a coefficient")
    with nogil, cython.boundscheck(False), cython.wraparound(False):
        for b in range(first, last):
            begin = b * BLOCK_SIZE
            n = begin + min(BLOCK_SIZE, d - begin)
            if coefficients.shape[0]:
                coefficient = coefficients[used.shape[0]]
                for i in range(begin, n):
                    direction[i] = coefficient * slope[i]
                for r in range(used.shape[0]):
                    coefficient = coefficients[r]
                    for i in range(begin, n):
                        direction[i] += coefficient * rows[used[r], i]
                for i in range(begin, n):
                    direction[i] = direction[i] if direction[i] * slope[i] < 0.0 else 0.0
            norm = product = 0.0
            for i in range(begin, n):
                side = point[i] if point[i] != 0.0 else -slope[i]
                value = point[i] + length * direction[i]
                value = value if value * copysign(1.0, side) > 0.0 else 0.0
                trial[i] = value
                norm += l1[i] * fabs(value)
                product += slope[i] * (value - point[i])
            sums[b, 0], sums[b, 1] = norm, product


cdef const int32_t[::1] rows_of(used_rows, Py_ssize_t n_rows):
    """Return a private copy of indices of rows, which must exist."""
    cdef const int32_t[::1] used = own(used_rows, np.int32, 1, "used_rows")
    cdef Py_ssize_t r
    for r in range(used.shape[0]):
        require(0 <= used[r] < n_rows, "the rows must exist")
    return used


cdef int check_blocks(int64_t d, int64_t first, int64_t last, int64_t n_blocks) except -1:
    require((d + BLOCK_SIZE - 1) // BLOCK_SIZE == n_blocks and 0 <= first <= last <= n_blocks, "the blocks must exist")
    return 0
