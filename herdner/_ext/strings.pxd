# cython: language_level=3
# What is known of strings; cython_ext/strings.pyx keeps it.
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

cdef extern from "Python.h":
    # Strings do not change: whoever holds one may read it without the interpreter.
    Py_ssize_t length_of "PyUnicode_GET_LENGTH"(PyObject*) nogil
    int kind_of "PyUnicode_KIND"(PyObject*) nogil
    void* data_of "PyUnicode_DATA"(PyObject*) nogil
    Py_UCS4 read "PyUnicode_READ"(int, void*, Py_ssize_t) nogil


ctypedef struct Slot:
    PyObject* word     # of `Strings.values`; NULL: the slot is empty
    void* value
    uint64_t hash


@cython.final
cdef class Strings:
    """A value of each of some strings. ``values`` has them all; loops find them without the interpreter, in a table.
    Whoever finds or adds holds a lock, as other threads may add.
    """
    cdef readonly dict values
    cdef Slot* slots
    cdef uint64_t mask   # their number - 1

    cdef int enter(self, str word, value, void* found) except -1
    cdef int grow(self, uint64_t n_slots) except -1
    cdef void fill(self, Slot entry) noexcept nogil
    cdef void* find(self, int kind, void* data, Py_ssize_t begin, Py_ssize_t end, uint64_t hash) noexcept nogil
    cdef void* find_word(self, PyObject* word) noexcept nogil
