# cython: language_level=3
"""A map of strings that loops read without the interpreter. Used by text.pyx and features.pyx."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

from hashing cimport hash_start, mix

cdef enum:
    MAX_PROBES = 32   # slots that a look-up tries, so that hostile strings cannot make it slow


cdef class Strings:
    def __cinit__(self):
        self.values = {}
        self.grow(1 << 10)

    def __dealloc__(self):
        PyMem_RawFree(self.slots)

    def add(self, str word not None, value not None):
        """Add a string; loops find a pointer to its value."""
        self.enter(word, value, <void*> value)

    def get(self, str word not None):
        """Return the value of a string, or None."""
        return self.values.get(word)

    cdef int enter(self, str word, value, void* pointer) except -1:
        """Add a string with the pointer that loops find. A known string is not changed, as loops may use its value."""
        if word in self.values:
            return 0
        if 2 * len(self.values) > <Py_ssize_t> self.mask:
            self.grow(2 * (self.mask + 1))
        self.values[word] = value
        self.fill(WordSlot(<PyObject*> word, pointer, hash_of(<PyObject*> word)))
        return 0

    cdef int grow(self, uint64_t n_slots) except -1:
        cdef WordSlot* old = self.slots
        cdef uint64_t i, n_old = 0 if old == NULL else self.mask + 1
        cdef WordSlot* slots = <WordSlot*> PyMem_RawCalloc(n_slots, sizeof(WordSlot))
        if slots == NULL:
            raise MemoryError("no memory is left for the table of words")
        self.slots, self.mask, self.is_complete = slots, n_slots - 1, True
        for i in range(n_old):
            if old[i].word != NULL:
                self.fill(old[i])
        PyMem_RawFree(old)
        return 0

    cdef void fill(self, WordSlot entry) noexcept nogil:
        """Store an entry, unless MAX_PROBES slots are in use; then only ``values`` has the string."""
        cdef uint64_t i
        for i in range(MAX_PROBES):
            if self.slots[(entry.hash + i) & self.mask].word == NULL:
                self.slots[(entry.hash + i) & self.mask] = entry
                return
        self.is_complete = False

    cdef void* find(self, int kind, void* data, Py_ssize_t begin, Py_ssize_t end, uint64_t hash) noexcept nogil:
        """Return the pointer of a string of characters with this hash, or NULL; then ``values`` decides.

        NULL is final if the map ``is_complete``.
        """
        cdef const WordSlot* slot
        cdef uint64_t i
        for i in range(MAX_PROBES):
            slot = &self.slots[(hash + i) & self.mask]
            if slot.word == NULL:
                break
            if slot.hash == hash and is_word(slot.word, kind, data, begin, end):
                return slot.value
        return NULL

    cdef void* find_word(self, PyObject* word) noexcept nogil:
        return self.find(kind_of(word), data_of(word), 0, length_of(word), hash_of(word))

    cdef void* find_pair(self, PyObject* first, PyObject* second, uint64_t hash) noexcept nogil:
        """Return the pointer of the string FIRST:SECOND with this hash, as `find` does."""
        cdef const WordSlot* slot
        cdef uint64_t i
        for i in range(MAX_PROBES):
            slot = &self.slots[(hash + i) & self.mask]
            if slot.word == NULL:
                break
            if slot.hash == hash and is_pair(slot.word, first, second):
                return slot.value
        return NULL

    cdef const WordSlot* first_slot(self, uint64_t hash) noexcept nogil:
        """Return the slot that a look-up of a hash reads first, so that callers can prefetch it."""
        return &self.slots[hash & self.mask]


cdef inline bint is_word(PyObject* word, int kind, void* data, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    return length_of(word) == end - begin and has_at(kind, data, begin, word)


cdef bint is_pair(PyObject* word, PyObject* first, PyObject* second) noexcept nogil:
    """Return True if a string is FIRST:SECOND."""
    cdef Py_ssize_t n = length_of(first)
    return (length_of(word) == n + 1 + length_of(second) and read(kind_of(word), data_of(word), n) == u":"
            and has_at(kind_of(word), data_of(word), 0, first) and has_at(kind_of(word), data_of(word), n + 1, second))


cdef inline bint has_at(int kind, void* data, Py_ssize_t begin, PyObject* part) noexcept nogil:
    """Return True if the characters from ``begin`` on are those of a string."""
    cdef int own = kind_of(part)
    cdef void* characters = data_of(part)
    cdef Py_ssize_t i, n = length_of(part)
    if kind == own:
        return memcmp(<char*> data + begin * kind, characters, n * kind) == 0
    for i in range(n):
        if read(kind, data, begin + i) != read(own, characters, i):
            return False
    return True


cdef inline uint64_t hash_of(PyObject* word) noexcept nogil:
    return mix(hash_text(hash_start(), word))
