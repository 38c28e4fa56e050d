# Memory that is asked for long before it is used.
cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define herdner_prefetch(p) __builtin_prefetch(p)
    #else
    #define herdner_prefetch(p) ((void)(p))
    #endif
    """
    void prefetch "herdner_prefetch"(const void* p) nogil
