# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# Forward-backward of many sequences: the declarations of cython_ext/batches.pyx for other modules.
from libc.stdint cimport int32_t, int64_t

from herdner._ext.smoothing cimport Smoothed, Workspace, chain_lanes


cdef enum:
    BAD_NUMBERS = -2
    FEW_SEQUENCES = 8      # for fewer sequences lanes are not worth their set-up
    BATCH_SEQUENCES = 64   # sequences that are sorted by length together


cdef Spans spans_of(const int32_t[::1] states, const int64_t[::1] starts, const int64_t[::1] ends, double[::1] out)


cdef class Spans:
    cdef const int32_t[::1] states
    cdef const int64_t[::1] starts, ends
    cdef double[::1] out
    cdef int64_t first(self, int64_t token) noexcept nogil
    cdef void fill(self, const Smoothed *c, const double[:, ::1] unary, const int32_t *edge_table, int64_t start,
                   int64_t end, double *work) noexcept nogil
    cdef bint any_in(self, int64_t start, int64_t end) noexcept nogil


cdef class PairCounts:
    cdef double[:, ::1] outer, counts, work, total_outer, total_counts
    cdef void add_alone(self, const Smoothed *c, int64_t n, double weight) noexcept nogil
    cdef void add_lane(self, const chain_lanes *lanes, int wide, int64_t lane, double weight) noexcept nogil
    cdef total(self, Workspace space)


cdef class Many:
    cdef Workspace space
    cdef const double[:, ::1] unary
    cdef const int64_t[::1] offsets
    cdef double[::1] log_z
    cdef double[:, ::1] nodes
    cdef Spans spans
    cdef PairCounts pairs
    cdef const double[::1] weights
    cdef const int32_t[::1] edge_table
    cdef double[:, :, ::1] outer, counts, edges
    cdef bint backward, in_lanes, in_order
    cdef chain_lanes lanes
    cdef int wide               # the number of lanes
    cdef object references
    cdef int allocate(self, Workspace space, const double[:, ::1] unary, const int64_t[::1] offsets, int64_t most,
                      double[::1] log_z, double[:, ::1] nodes, Spans spans, PairCounts pairs,
                      const double[::1] weights) except -1
    cdef int64_t length(self, int64_t s) noexcept nogil
    cdef int64_t all(self)
    cdef int64_t batch(self, int64_t first, int64_t last) noexcept nogil
    cdef bint lanes_pay(self, const int64_t *group, int64_t n) noexcept nogil
    cdef int64_t alone(self, int64_t s, int64_t none) noexcept nogil
    cdef int64_t together(self, const int64_t *group, int64_t n, int64_t none) noexcept nogil
    cdef void lane_spans(self, int64_t lane, int64_t first, int64_t last) noexcept nogil
    cdef double lane_log_z(self, int64_t lane) noexcept nogil


cdef int64_t smooth_spans(Workspace space, const double[:, ::1] unary, const int64_t[::1] offsets,
                          const int32_t[::1] edge_table, Spans spans)
