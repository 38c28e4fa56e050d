# cython: language_level=3
# Dobrushin's influence matrix for the loops: pointers into the arrays of a `herdner.dobrushin.Influence`, which
# describes them. The caller must keep that Python object alive.
from libc.stdint cimport int32_t, int64_t

from firsts cimport first_double, first_int32, first_int64


cdef struct Matrix:
    int64_t n
    const int64_t *starts
    const int32_t *sources
    const double *values


cdef inline Matrix matrix_of(object influence):
    return Matrix(
        len(influence.starts) - 1, first_int64(influence.starts), first_int32(influence.sources),
        first_double(influence.values),
    )


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
