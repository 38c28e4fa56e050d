# Prefetching of memory into the cache (GCC and Clang; the loops need their vector types anyway).
cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* p) nogil
