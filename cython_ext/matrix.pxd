# cython: language_level=3
# Rows of Dobrushin's influence matrix for the loops, which get them from a `herdner._ext.influence.InfluenceMatrix`.
from libc.stdint cimport int32_t, int64_t


cdef struct Matrix:
    int64_t n
    const int64_t *starts
    const int32_t *sources
    const double *values


cdef inline double row_times(const Matrix *c, int64_t i, const double *x) noexcept nogil:
    """Return (C x)_i."""
    cdef int64_t e
    cdef double total = 0.0
    for e in range(c.starts[i], c.starts[i + 1]):
        total += c.values[e] * x[c.sources[e]]
    return total


cdef inline double capped(double bound) noexcept nogil:
    """Return the bound, at most 1e150, so that products stay finite where C gives no useful bound."""
    return min(bound, 1e150)
