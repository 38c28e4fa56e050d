# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Loops of the rules that link tokens (herdner.crf.rules)."""

import numpy as np

from cpython.unicode cimport PyUnicode_GET_LENGTH, PyUnicode_READ_CHAR
from libc.stdint cimport int32_t

cdef extern from "Python.h":
    bint Py_UNICODE_ISUPPER(Py_UCS4) nogil
    bint Py_UNICODE_ISALPHA(Py_UCS4) nogil


cdef inline bint has_letters(str word, Py_ssize_t n_letters) noexcept:
    cdef Py_ssize_t i
    for i in range(PyUnicode_GET_LENGTH(word)):
        if n_letters <= 0:
            break
        n_letters -= Py_UNICODE_ISALPHA(PyUnicode_READ_CHAR(word, i))
    return n_letters <= 0


def capitalised(list tokens not None, Py_ssize_t min_letters):
    """list[int]: the tokens that begin with a capital and have so many letters, ascending."""
    cdef Py_ssize_t token
    cdef str word
    cdef list found = []
    for token in range(len(tokens)):
        word = tokens[token]
        if (word is not None and PyUnicode_GET_LENGTH(word) and Py_UNICODE_ISUPPER(PyUnicode_READ_CHAR(word, 0))
                and has_letters(word, min_letters)):
            found.append(token)
    return found


def nearest_links(const int32_t[::1] mentions not None, const int32_t[::1] groups not None, Py_ssize_t n_groups,
                  Py_ssize_t nearest):
    """int32[F, 2], rows ascending: each mention with up to ``nearest`` earlier ones of its group, closest first.

    mentions: tokens, ascending; groups: of each mention, from 0 to n_groups - 1.
    """
    cdef Py_ssize_t m = mentions.shape[0], i, k, other, row = 0, n_links = 0
    cdef int32_t[::1] later = np.empty(m, np.int32), latest = np.full(n_groups, -1, np.int32)
    cdef int32_t[::1] sizes = np.zeros(n_groups, np.int32)
    for i in range(m - 1, -1, -1):
        later[i] = latest[groups[i]]
        latest[groups[i]] = <int32_t> i
        n_links += min(<Py_ssize_t> sizes[groups[i]], nearest)
        sizes[groups[i]] += 1
    links = np.empty((n_links, 2), np.int32)
    cdef int32_t[:, ::1] rows = links
    # From the earlier end: the next mentions of each, so that rows come in order.
    for i in range(m):
        k, other = 0, later[i]
        while other >= 0 and k < nearest:
            rows[row, 0], rows[row, 1] = mentions[i], mentions[other]
            row += 1
            k += 1
            other = later[other]
    return links


def add_messages(double[:, ::1] total not None, const int32_t[:, ::1] ends not None, scale,
                 const double[:, ::1] table not None, const double[:, ::1] beliefs not None):
    """Adds to the rows of ``total`` [n, K] of both ends of each link, int32[F, 2], the expected log-potentials
    ``scale[f]`` [F] (None: 1) times ``table`` [K, K] (row: the earlier end) under ``beliefs`` [n, K] of the other end.

    In the order of the links, each alone: so the numbers of a document do not depend on what else there is.
    """
    cdef const double[::1] scales = scale
    cdef Py_ssize_t f, i, j, n_labels = table.shape[0]
    cdef int32_t earlier, later
    cdef double weight, expected
    with nogil:
        for f in range(ends.shape[0]):
            earlier, later = ends[f, 0], ends[f, 1]
            weight = 1.0 if scales is None else scales[f]
            for i in range(n_labels):
                expected = 0.0
                for j in range(n_labels):
                    expected += table[i, j] * beliefs[later, j]
                    total[later, j] += weight * beliefs[earlier, i] * table[i, j]
                total[earlier, i] += weight * expected
