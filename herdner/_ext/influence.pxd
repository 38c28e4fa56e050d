# cython: language_level=3
# Dobrushin's influence matrix as loops read it; implemented in cython_ext/influence.pyx.
cimport cython

from matrix cimport Matrix


@cython.final
cdef class InfluenceMatrix:
    """Private and checked copy of the sparse rows of an influence matrix.

    Row i has the entries ``starts[i]`` to ``starts[i + 1]`` - 1 of ``sources`` and ``values``.
    """
    cdef Matrix c
    cdef tuple memories  # of the arrays
