# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Forward-backward of many sequences, as chain.pyx sees it; cython_ext/batches.pyx has the loops.
from libc.stdint cimport int32_t, int64_t

from herdner._ext.smoothing cimport Smoothed, Workspace


cdef enum:
    BAD_NUMBERS = -2
    FEW_SEQUENCES = 8   # fewer do not repay what lanes cost at the beginning


cdef class Spans:
    cdef const int32_t[::1] states
    cdef const int64_t[::1] starts, ends
    cdef double[::1] out
    cdef int64_t first(self, int64_t token) noexcept nogil
    cdef void fill(self, const Smoothed *c, const double[:, ::1] unary, const int32_t *edge_table, int64_t start,
                   int64_t end, double *work) noexcept nogil
    cdef bint any_in(self, int64_t start, int64_t end) noexcept nogil


cdef bint fit_lanes(Workspace space, int64_t n_sequences)
cdef int64_t smooth_all(Workspace space, const double[:, ::1] unary, const int64_t[::1] offsets, double[::1] log_z,
                        double[:, ::1] nodes, Spans spans)
