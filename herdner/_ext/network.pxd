# cython: language_level=3
# A small neural network whose scores are added to those of the features; implemented in cython_ext/network.pyx.
cimport cython
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

from herdner._ext.words cimport TypeRecord

cdef enum:
    MOST_UNITS = 512
    MOST_DIMENSIONS = 256


@cython.final
cdef class CompiledNetwork:
    cdef const int32_t[:, ::1] attributes
    cdef const int64_t[::1] place_starts
    cdef const int64_t[::1] starts       # of the tables of attributes, then of those of codes
    cdef const int8_t[:, ::1] tables
    cdef const int32_t[:, ::1] places    # attributes of positions
    cdef const int8_t[:, ::1] place_rows
    cdef const uint8_t[:, ::1] codes
    cdef const int16_t[:, :, :, ::1] hidden
    cdef const int16_t[::1] bias
    cdef const int16_t[:, ::1] outputs
    cdef const int32_t[::1] output_bias
    cdef const int32_t[::1] columns
    cdef double scale
    cdef int shift
    cdef readonly Py_ssize_t window, units, row_width
    cdef Py_ssize_t n_outputs, n_dimensions, n_pairs
    cdef Py_ssize_t n_attributes         # of a position that the network reads
    cdef readonly Py_ssize_t n_tags

    cdef object in_lanes(self, hidden)
    cdef void describe(self, const TypeRecord* record, int8_t* rows) noexcept nogil
    cdef void add_scores(self, const int8_t** rows, const uint64_t* position, double* scores,
                         int32_t* products) noexcept nogil
