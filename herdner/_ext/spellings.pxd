# cython: language_level=3
# What rules that link tokens read of a word's letters; cython_ext/spellings.pyx finds it.
cimport cython
from libc.stdint cimport int32_t, uint8_t

cdef enum:
    MOST_LETTERS = 255


cdef enum Kind:
    BEGINS_CAPITAL = 1
    BEGINS_SMALL = 2
    IN_CAPITALS = 4   # two or more characters, the letters all capitals
    OPENS = 8         # what follows may begin a sentence inside a sentence


ctypedef struct Spelling:
    int32_t word      # its number
    int32_t small     # of words that begin with a capital: the number of the word in small letters
    int32_t folded    # and the number that they share with all that differ only in case
    uint8_t kind
    uint8_t n_letters


@cython.final
cdef class Spellings:
    """Numbers of words, and of words without regard to case. It only grows."""
    cdef dict words, folded

    cdef Spelling of(self, str word) except *


@cython.final
cdef class Spelled:
    """The `Spelling` of each of n tokens. Numbers of words are below ``n_words``, those without regard to case below
    ``n_folded``."""
    cdef Spelling* at
    cdef Py_ssize_t n, n_words, n_folded
    cdef dict words
    cdef object kept

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef int count(self, Spellings spellings) except -1
