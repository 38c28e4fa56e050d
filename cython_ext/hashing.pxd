# The 64-bit hash of features and words. It is part of the model format: changing it makes old models tag differently.
from libc.stdint cimport uint64_t


cdef inline uint64_t mix(uint64_t h) noexcept nogil:
    """Finaliser of MurmurHash3 (Appleby, public domain): a bijection; every input bit reaches every output bit."""
    h ^= h >> 33
    h *= 0xFF51AFD7ED558CCDULL
    h ^= h >> 33
    h *= 0xC4CEB9FE1A85EC53ULL
    h ^= h >> 33
    return h


cdef inline uint64_t combine(uint64_t h, uint64_t value) noexcept nogil:
    """Hash of the ordered pair (h, value)."""
    return mix(h * 0x9E3779B97F4A7C15ULL + value + 0x2545F4914F6CDD1DULL)


cdef inline uint64_t hash_bytes(const unsigned char* data, Py_ssize_t n, uint64_t seed) noexcept nogil:
    """FNV-1a over the bytes, then mixed; the same on every machine."""
    cdef uint64_t h = 0xCBF29CE484222325ULL ^ seed
    cdef Py_ssize_t i
    for i in range(n):
        h = (h ^ data[i]) * 0x100000001B3ULL
    return mix(h)
