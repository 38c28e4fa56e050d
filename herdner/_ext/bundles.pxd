# cython: language_level=3
# A hash table for keys that a file may have chosen; implemented in cython_ext/bundles.pyx.
cimport cython
from libc.stdint cimport uint64_t

from hashing cimport Slot, mix
from herdner._ext.memory cimport require


@cython.final
cdef class KeyTable:
    """Table of n distinct keys other than 0, each with a value, which is 0 at first.

    The slots of the table are random, so keys of a file cannot be chosen to collide.
    """
    cdef uint64_t[:, ::1] rows
    cdef Slot* slots
    cdef uint64_t seed, mask, n

    cdef int allocate(self, Py_ssize_t n_slots) except -1

    cdef inline Slot* slot(self, uint64_t key) noexcept nogil:
        """Return the slot of a key, or the empty slot in which it can be stored."""
        cdef uint64_t at = mix(key ^ self.seed) & self.mask
        while self.slots[at].key != 0 and self.slots[at].key != key:
            at = (at + 1) & self.mask
        return &self.slots[at]

    cdef inline Slot* add(self, uint64_t key) except NULL:
        """Return the slot of a key, which is stored if it is new."""
        cdef Slot* slot = self.slot(key)
        if slot.key == 0:
            require(key != 0, "keys must not be 0")
            if 2 * self.n > self.mask:
                self.allocate(4 * (self.mask + 1))
                slot = self.slot(key)
            slot.key = key
            self.n += 1
        return slot
