# cython: language_level=3
# Memory for arrays. The caller frees it. ``purpose`` says in errors what needs the memory, and what the user can do.
from libc.stdint cimport int64_t

cdef extern from "allocation.h" nogil:
    void* array_memory(int64_t n, size_t size)
    void* zeroed_memory(int64_t n, size_t size)


cdef inline void* allocate(int64_t n, size_t size, const char* purpose) except NULL nogil:
    """Return uninitialised memory for n elements of ``size`` bytes; raise MemoryError if there is none."""
    return require_memory(array_memory(n + (n == 0), size), purpose)


cdef inline void* allocate_zeroed(int64_t n, size_t size, const char* purpose) except NULL nogil:
    """Return memory of zeros for n elements of ``size`` bytes; raise MemoryError if there is none."""
    return require_memory(zeroed_memory(n + (n == 0), size), purpose)


cdef inline void* require_memory(void* memory, const char* purpose) except NULL nogil:
    if memory == NULL:
        with gil:
            raise MemoryError(f"no memory for {purpose.decode()}")
    return memory
