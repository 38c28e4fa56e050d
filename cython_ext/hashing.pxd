# The 64-bit hashes of words and features, and look-ups in the tables keyed by them (built by hashing.pyx).
# The hash is part of the model format: changing it makes old models tag differently.
from libc.stdint cimport uint32_t, uint64_t


cdef inline uint64_t mix(uint64_t h) noexcept nogil:
    """Finaliser of MurmurHash3: a bijection in which every input bit reaches every output bit."""
    h ^= h >> 33
    h *= 0xFF51AFD7ED558CCDULL
    h ^= h >> 33
    h *= 0xC4CEB9FE1A85EC53ULL
    h ^= h >> 33
    return h


cdef inline uint64_t combine(uint64_t h, uint64_t value) noexcept nogil:
    """Hash of the ordered pair (h, value); one multiplication and a fold, because it runs for every feature."""
    h = (h ^ value) * 0x9E3779B97F4A7C15ULL
    return (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ULL


cdef inline uint64_t hash_start() noexcept nogil:
    return 0xCBF29CE484222325ULL


cdef inline uint64_t hash_char(uint64_t h, uint32_t char) noexcept nogil:
    """FNV-1a, a code point at a time: independent of how a string is stored."""
    return (h ^ char) * 0x100000001B3ULL


ctypedef struct Slot:
    uint64_t key    # 0: the slot is empty; key 0 itself is never stored
    uint64_t value


cdef inline const Slot* find(const Slot* slots, uint64_t mask, uint64_t key) noexcept nogil:
    """The slot of a key in a table of mask + 1 slots, or NULL."""
    cdef uint64_t slot = (key ^ (key >> 32)) & mask
    while slots[slot].key != 0:
        if slots[slot].key == key:
            return &slots[slot]
        slot = (slot + 1) & mask
    return NULL
