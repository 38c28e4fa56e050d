# cython: language_level=3
"""Properties of the letters of a word that the link rules read, computed once per word.

Called by links.pyx and words.pyx."""

import numpy as np

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ
from libc.stdint cimport int32_t

cdef extern from "Python.h":
    bint Py_UNICODE_ISLOWER(Py_UCS4) nogil
    bint Py_UNICODE_ISUPPER(Py_UCS4) nogil
    bint Py_UNICODE_ISALPHA(Py_UCS4) nogil

# After these marks a capital may begin a sentence inside a sentence: "said: `` The ...", bullets, three full stops.
cdef str OPENINGS = (".!?\u2026:;\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u00a1\u00bf"
                     "\u2022*\u2014")


cdef class Spellings:
    def __cinit__(self):
        self.words, self.folded = {}, {}

    cdef Spelling of(self, str word) except *:
        cdef Py_ssize_t n = PyUnicode_GET_LENGTH(word), i, n_letters = 0
        cdef int kind = PyUnicode_KIND(word)
        cdef void* data = PyUnicode_DATA(word)
        cdef Spelling spelling
        cdef str small = word
        spelling.kind = OPENS
        for i in range(n):
            n_letters += Py_UNICODE_ISALPHA(PyUnicode_READ(kind, data, i))
            if PyUnicode_READ(kind, data, i) not in OPENINGS:
                spelling.kind = 0
        spelling.n_letters = min(n_letters, MOST_LETTERS)
        if n and Py_UNICODE_ISLOWER(PyUnicode_READ(kind, data, 0)):
            spelling.kind |= BEGINS_SMALL
        if n > 1 and word.isupper():
            spelling.kind |= IN_CAPITALS
        spelling.word = self.words.setdefault(word, len(self.words))
        spelling.small = spelling.folded = -1
        if n and Py_UNICODE_ISUPPER(PyUnicode_READ(kind, data, 0)):
            spelling.kind |= BEGINS_CAPITAL
            small = word.lower()
            spelling.small = self.words.setdefault(small, len(self.words))
            small = small if word.isascii() else word.casefold()
            spelling.folded = self.folded.setdefault(small, len(self.folded))
        return spelling


cdef class TokenSpellings:
    cdef int make_room(self, Py_ssize_t n) except -1:
        self.references = np.empty((n + 1, sizeof(Spelling) // sizeof(int32_t)), np.int32)
        cdef int32_t[:, ::1] rows = self.references
        self.at, self.n = <Spelling*> &rows[0, 0], n
        return 0

    cdef int count(self, Spellings spellings) except -1:
        """Store the numbers of words, after the last token."""
        self.words, self.n_words, self.n_folded = spellings.words, len(spellings.words), len(spellings.folded)
        return 0


def spell_tokens(list tokens not None):
    """Return the spellings of a list of tokens. Raise ValueError if one is not a string, as the loops trust them."""
    cdef Spellings spellings = Spellings()
    cdef TokenSpellings said = TokenSpellings()
    cdef dict first = {}
    cdef Py_ssize_t token, earlier
    cdef str word
    tokens = list(tokens)  # a copy, which no other thread can alter
    said.make_room(len(tokens))
    for token in range(len(tokens)):
        if type(tokens[token]) is not str:
            raise ValueError(f"a token is of type {type(tokens[token]).__name__}; tokens are plain strings (str)")
        word = tokens[token]
        earlier = first.setdefault(word, token)
        said.at[token] = spellings.of(word) if earlier == token else said.at[earlier]
    said.count(spellings)
    return said
