# cython: language_level=3, boundscheck=True
"""Loops over the vectors of a quasi-Newton search with an L1 norm. Called by ``herdner.crf.lbfgs``.

The loops process blocks of `BLOCK` coordinates and store the sums of each block, so that results do not depend on which
thread processes a block. All vectors have length d. Block b begins at coordinate ``BLOCK * b``.
"""

import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from herdner._ext.memory cimport own, require, require_range

cdef extern from "quasi_newton.h" nogil:
    void differences(const double* point, const double* trial, const double* gradient, const double* trial_gradient,
                     const double* l1, int64_t n, float* shift, float* change, double* slope, double* sums)
    void products(const float* row, const float* shift, const float* change, const double* slope, int64_t n,
                  double* sums)
    void add_row(const float* row, double coefficient, int64_t n, double* direction)
    void keep_descent(const double* slope, double coefficient, int64_t n, double* direction)
    void advance(const double* point, const double* slope, const double* l1, const double* direction, double length,
                 int64_t n, double* trial, double* sums)

cdef enum:
    BLOCK_SIZE = 1024   # the blocks of three vectors fit into the first-level cache

BLOCK = BLOCK_SIZE


def measure(const double[::1] point not None, const double[::1] trial not None, const double[::1] gradient not None,
            const double[::1] trial_gradient not None, const double[::1] l1 not None, float[:, ::1] rows not None,
            int slot, used_rows, double[::1] slope not None, double[:, ::1] sums not None, int64_t first,
            int64_t last):
    """Measure a step from ``point`` to ``trial``, in the blocks ``first`` to ``last`` - 1.

    Stores the differences of the points and of the gradients in the rows ``2 * slot`` and ``2 * slot + 1``, and in
    ``slope`` the gradient of the function plus the L1 norm at ``trial``: at coordinates of 0, the one-sided derivative
    in the direction of descent, or 0. ``sums`` [blocks, 2 + 3 * len(used_rows)] gets the sum of the squares and the
    largest absolute value of ``slope``, and the products of each row in ``used_rows`` with the two differences and with
    ``slope``.
    """
    cdef int64_t d = point.shape[0], b, begin, n
    cdef float* shift
    cdef float* change
    cdef Py_ssize_t r
    cdef const int32_t[::1] used = rows_of(used_rows, rows.shape[0])
    check_blocks(d, first, last, sums.shape[0])
    require(trial.shape[0] == d == gradient.shape[0] and trial_gradient.shape[0] == d == l1.shape[0]
            and slope.shape[0] == d == rows.shape[1], "the vectors must have equal lengths")
    require(sums.shape[1] == 2 + 3 * used.shape[0] and 0 <= slot < rows.shape[0] // 2,
            "there must be a place for each difference and each sum")
    with nogil, cython.boundscheck(False), cython.wraparound(False):
        for b in range(first, last):
            begin = b * BLOCK_SIZE
            n = min(BLOCK_SIZE, d - begin)
            shift, change = &rows[2 * slot, begin], &rows[2 * slot + 1, begin]
            differences(&point[begin], &trial[begin], &gradient[begin], &trial_gradient[begin], &l1[begin], n, shift,
                        change, &slope[begin], &sums[b, 0])
            for r in range(used.shape[0]):
                products(&rows[used[r], begin], shift, change, &slope[begin], n, &sums[b, 2 + 3 * r])


def step(const double[::1] point not None, const double[::1] slope not None, const double[::1] l1 not None,
         const float[:, ::1] rows not None, used_rows, const double[::1] coefficients not None, double length,
         double[::1] direction not None, double[::1] trial not None, double[:, ::1] sums not None,
         int64_t first, int64_t last):
    """Take a step of a length from ``point`` to ``trial``, in the blocks ``first`` to ``last`` - 1.

    Fills ``direction`` with the rows in ``used_rows`` times their ``coefficients``, added up, plus the last coefficient
    times ``slope``; coordinates that would raise the value are 0. Without coefficients, ``direction`` is read. The step
    stays in one orthant: coordinates that would leave it become 0. ``sums`` [blocks, 2] gets the L1 norm of ``trial``
    and the product of ``slope`` and the step.
    """
    cdef int64_t d = point.shape[0], b, begin, n
    cdef Py_ssize_t r
    cdef const int32_t[::1] used = rows_of(used_rows, rows.shape[0])
    check_blocks(d, first, last, sums.shape[0])
    require(slope.shape[0] == d == l1.shape[0] and direction.shape[0] == d == trial.shape[0] and rows.shape[1] == d
            and sums.shape[1] == 2, "the vectors must have equal lengths")
    require(coefficients.shape[0] in (0, used.shape[0] + 1), "each row needs a coefficient")
    with nogil, cython.boundscheck(False), cython.wraparound(False):
        for b in range(first, last):
            begin = b * BLOCK_SIZE
            n = min(BLOCK_SIZE, d - begin)
            if coefficients.shape[0]:
                memset(&direction[begin], 0, n * sizeof(double))
                for r in range(used.shape[0]):
                    add_row(&rows[used[r], begin], coefficients[r], n, &direction[begin])
                keep_descent(&slope[begin], coefficients[used.shape[0]], n, &direction[begin])
            advance(&point[begin], &slope[begin], &l1[begin], &direction[begin], length, n, &trial[begin], &sums[b, 0])


cdef const int32_t[::1] rows_of(used_rows, Py_ssize_t n_rows):
    """Return a private copy of indices of rows, which must exist."""
    cdef const int32_t[::1] used = own(used_rows, np.int32, 1, "used_rows")
    require_range(used, 0, n_rows, "the rows must exist")
    return used


cdef int check_blocks(int64_t d, int64_t first, int64_t last, int64_t n_blocks) except -1:
    require((d + BLOCK_SIZE - 1) // BLOCK_SIZE == n_blocks and 0 <= first <= last <= n_blocks, "the blocks must exist")
    return 0
