# cython: language_level=3
# A map of strings that loops can read without the interpreter; implemented in cython_ext/strings.pyx.
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from hashing cimport hash_char

cdef extern from "Python.h":
    # Strings are immutable: who holds a reference may read them without the GIL.
    Py_ssize_t length_of "PyUnicode_GET_LENGTH"(PyObject*) nogil
    int kind_of "PyUnicode_KIND"(PyObject*) nogil
    void* data_of "PyUnicode_DATA"(PyObject*) nogil
    Py_UCS4 read "PyUnicode_READ"(int, void*, Py_ssize_t) nogil


cdef inline uint64_t hash_text(uint64_t hash, PyObject* text) noexcept nogil:
    """Continue a hash by the characters of a text."""
    cdef int kind = kind_of(text)
    cdef void* data = data_of(text)
    cdef Py_ssize_t i
    for i in range(length_of(text)):
        hash = hash_char(hash, read(kind, data, i))
    return hash


ctypedef struct WordSlot:
    PyObject* word     # a key of `Strings.values`; NULL: the slot is empty
    void* value
    uint64_t hash


@cython.final
cdef class Strings:
    """A map from strings to values. ``values`` holds all of them; a hash table makes most of them readable without the
    GIL. The caller must hold a lock while finding or adding, as other threads may add.
    """
    cdef dict values
    cdef WordSlot* slots
    cdef uint64_t mask   # number of slots - 1
    cdef bint is_complete   # the table has all strings

    cdef int enter(self, str word, value, void* pointer) except -1
    cdef int grow(self, uint64_t n_slots) except -1
    cdef void fill(self, WordSlot entry) noexcept nogil
    cdef void* find(self, int kind, void* data, Py_ssize_t begin, Py_ssize_t end, uint64_t hash) noexcept nogil
    cdef void* find_word(self, PyObject* word) noexcept nogil
    cdef void* find_pair(self, PyObject* first, PyObject* second, uint64_t hash) noexcept nogil
    cdef const WordSlot* first_slot(self, uint64_t hash) noexcept nogil
