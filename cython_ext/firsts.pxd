# cython: language_level=3
# The address of the first element of an array; NULL for an empty array.
from libc.stdint cimport int32_t, int64_t


cdef inline const int32_t *first_int32(const int32_t[::1] array):
    return &array[0] if array.shape[0] else NULL


cdef inline const int64_t *first_int64(const int64_t[::1] array):
    return &array[0] if array.shape[0] else NULL


cdef inline const double *first_double(const double[::1] array):
    return &array[0] if array.shape[0] else NULL
