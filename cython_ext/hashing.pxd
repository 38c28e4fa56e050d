# 64-bit hashes of words and features, and look-ups in tables keyed by them, which hashing.pyx builds.
# The hash is part of the model format: a change would make saved models tag differently.
from libc.stdint cimport uint32_t, uint64_t


cdef inline uint64_t mix(uint64_t h) noexcept nogil:
    """Apply the finaliser of MurmurHash3: a bijection in which every input bit affects every output bit."""
    h ^= h >> 33
    h *= 0xFF51AFD7ED558CCDULL
    h ^= h >> 33
    h *= 0xC4CEB9FE1A85EC53ULL
    h ^= h >> 33
    return h


cdef inline uint64_t combine(uint64_t h, uint64_t value) noexcept nogil:
    """Hash the ordered pair (h, value). It is cheap, because it runs for every feature."""
    h = (h ^ value) * 0x9E3779B97F4A7C15ULL
    return (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ULL


cdef inline uint64_t hash_start() noexcept nogil:
    return 0xCBF29CE484222325ULL


cdef inline uint64_t hash_char(uint64_t h, uint32_t char) noexcept nogil:
    """FNV-1a over code points, so that the hash does not depend on the internal form of a string."""
    return (h ^ char) * 0x100000001B3ULL


ctypedef struct Slot:
    uint64_t key    # 0: the slot is empty; key 0 itself is never stored
    uint64_t value


cdef enum:
    # Slots that a look-up tries. The keys of a model's file may be chosen so that they collide; `build_table` refuses
    # such keys. Hashes of words collide that often with a probability below 1e-12 for 10 million words.
    LONGEST_PROBE = 256


cdef inline uint64_t first_slot(uint64_t key, uint64_t mask) noexcept nogil:
    """Return the first slot that a look-up of a key tries, in a table of mask + 1 slots."""
    return (key ^ (key >> 32)) & mask


cdef inline const Slot* find(const Slot* slots, uint64_t mask, uint64_t key) noexcept nogil:
    """Return the slot of a key in a table of mask + 1 slots, or NULL."""
    cdef uint64_t slot = first_slot(key, mask)
    cdef int _probe
    for _probe in range(LONGEST_PROBE):
        if slots[slot].key == 0:
            return NULL
        if slots[slot].key == key:
            return &slots[slot]
        slot = (slot + 1) & mask
    return NULL
