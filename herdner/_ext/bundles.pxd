# cython: language_level=3
# The random part of the slots of hash tables; set in cython_ext/bundles.pyx.
from libc.stdint cimport uint64_t

cdef uint64_t SLOT_SEED
