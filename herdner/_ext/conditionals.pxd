# cython: language_level=3
# The full conditionals of a graph as loops read them; implemented in cython_ext/conditionals.pyx.
cimport cython
from libc.stdint cimport int32_t

from rows cimport conditionals


@cython.final
cdef class CompiledConditionals:
    """Private and checked copy of the arrays of a `herdner.graph.conditionals.Conditionals`."""
    cdef conditionals c
    cdef readonly int32_t widest  # the largest width of a row, at least 2
    cdef tuple memories  # of the arrays
