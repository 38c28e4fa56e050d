# cython: language_level=3
# Properties of the letters of a word that the link rules read; computed by cython_ext/spellings.pyx.
cimport cython
from libc.stdint cimport int32_t, uint8_t

cdef enum:
    MOST_LETTERS = 255


cdef enum CharacterKind:
    BEGINS_CAPITAL = 1
    BEGINS_SMALL = 2
    IN_CAPITALS = 4   # two or more characters, the letters all capitals
    OPENS = 8         # the next token may begin a sentence inside a sentence


ctypedef struct Spelling:
    int32_t word      # index of the word
    int32_t small     # for words that begin with a capital: index of the word in lower case, else -1
    int32_t folded    # likewise: index shared by all words that differ only in case
    uint8_t kind
    uint8_t n_letters


@cython.final
cdef class Spellings:
    """Indices of words, and of words without regard to case. The tables only grow."""
    cdef dict words, folded

    cdef Spelling of(self, str word) except *


@cython.final
cdef class TokenSpellings:
    """The `Spelling` of each of n tokens. Word indices are below ``n_words``, those without regard to case below
    ``n_folded``."""
    cdef Spelling* at
    cdef Py_ssize_t n, n_words, n_folded
    cdef dict words
    cdef object references

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef int count(self, Spellings spellings) except -1
