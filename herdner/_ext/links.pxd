# cython: language_level=3
# Loops over links for other modules; implemented in cython_ext/links.pyx.
from libc.stdint cimport int32_t, uint8_t

from herdner._ext.memory cimport Memory


cdef int add_link_messages(double[:, ::1] total, Memory ends, const double[:, ::1] table,
                           const double[:, ::1] beliefs) except -1
cdef int mark_touched(list ends, Py_ssize_t n, Memory starts, Memory stops, uint8_t* touched) except -1
