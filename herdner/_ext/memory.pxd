# cython: language_level=3
# Private and read-only copies of arrays; implemented in cython_ext/memory.pyx.
cimport cython
from libc.stdint cimport int32_t, int64_t


@cython.final
@cython.no_gc
cdef class Memory:
    """Memory that only compiled code can write to.

    Python can read it through the buffer protocol, which gives no other access; so arrays over it are *sealed*.
    """
    cdef object array         # the array whose memory was taken, or None
    cdef char* data           # a copy of elements if there is no array
    cdef Py_ssize_t sizes[6]  # lengths and strides of the axes of the copy
    cdef char[2] format       # of the elements of the copy
    cdef Py_buffer view
    cdef dict forms  # values that compiled code computed from the memory, by their names

    cdef int fill(self, array) except -1
    cdef int copy(self, const Py_buffer* source) except -1
    cdef object to_array(self)


cdef Memory memory_of(array)
cdef object own(value, dtype, int n_axes, str name, bint strided=*)
cdef Memory owned(value, dtype, int n_axes, str name)
cdef Memory memory_behind(array)
cdef int require(bint valid, str fault) except -1
cdef int require_range(const int32_t[:] values, int64_t first, int64_t end, str fault) except -1
cdef int require_offsets(object offsets, Py_ssize_t end, str name) except -1
