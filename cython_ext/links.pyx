# cython: language_level=3
"""Loops of the rules that link tokens (herdner.crf.rules)."""

import numpy as np

from cpython.unicode cimport PyUnicode_GET_LENGTH, PyUnicode_READ_CHAR
from libc.stdint cimport int32_t, int64_t

cdef extern from "Python.h":
    bint Py_UNICODE_ISLOWER(Py_UCS4) nogil
    bint Py_UNICODE_ISUPPER(Py_UCS4) nogil
    bint Py_UNICODE_ISALPHA(Py_UCS4) nogil

cdef enum:
    MOST_BULLETS = 3  # tokens without letters before the first word of a sentence: "1 .", "--", "(4)"

# Behind these a capital may be that of a sentence inside a sentence: "said: `` The ...", bullets, three full stops.
cdef str OPENINGS = (".!?\u2026:;\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u00a1\u00bf"
                     "\u2022*\u2014")


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


def checked_borders(sentence_offsets, Py_ssize_t n_tokens):
    """The borders of sentences as int64[S + 1]: from 0 to the number of tokens, none below the one before; ValueError
    otherwise."""
    found = np.asarray(sentence_offsets)
    if found.dtype.kind not in "iu" and found.shape[:1] != (0,) or found.ndim != 1:
        raise ValueError("sentence offsets must be a list of whole numbers")
    found = np.ascontiguousarray(found, np.int64)
    cdef const int64_t[::1] borders = found
    cdef Py_ssize_t s
    if not borders.shape[0] or borders[0] != 0 or borders[borders.shape[0] - 1] != n_tokens:
        raise ValueError(f"sentence offsets must run from 0 to the number of tokens ({n_tokens})")
    for s in range(1, borders.shape[0]):
        if borders[s] < borders[s - 1]:
            raise ValueError(f"sentence offsets must not fall, as from {borders[s - 1]} to {borders[s]}")
    return found


def names(list tokens not None, sentence_offsets, Py_ssize_t min_letters):
    """list[int]: the tokens that begin with a capital of their own, ascending.

    Left out are those that the document has in small letters too where their place asks for a capital.
    """
    cdef list found = capitalised(tokens, min_letters), kept = []
    cdef list lowered = [(<str> tokens[token]).lower() for token in found]
    cdef set small = set(lowered).intersection(tokens)
    cdef const int64_t[::1] borders
    cdef Py_ssize_t s = 0, headline_of = -1, token, i
    cdef bint headline = False
    borders = checked_borders(sentence_offsets, len(tokens))
    if not small:
        return found
    for i in range(len(found)):
        token = found[i]
        if lowered[i] in small:
            while borders[s + 1] <= token:
                s += 1
            if opens(tokens, borders[s], token):
                continue
            if headline_of != s:
                headline, headline_of = is_headline(tokens, borders[s], borders[s + 1]), s
            if headline:
                continue
        kept.append(token)
    return kept


cdef bint opens(list tokens, Py_ssize_t begin, Py_ssize_t token) except -1:
    """Whether a token begins the sentence that begins with ``begin``, or one inside it."""
    cdef Py_ssize_t i
    cdef str before = tokens[token - 1] if token > begin else ""
    for i in range(PyUnicode_GET_LENGTH(before)):
        if PyUnicode_READ_CHAR(before, i) not in OPENINGS:
            break
    else:
        return True
    if token - begin > MOST_BULLETS:
        return False
    for i in range(begin, token):
        if has_letters(tokens[i], 1):
            return False
    return True


cdef bint is_headline(list tokens, Py_ssize_t begin, Py_ssize_t end) except -1:
    """Three or more words, none of which begins with a small letter and most of which are in capitals."""
    cdef Py_ssize_t i, n_words = 0, n_capitals = 0
    cdef str word
    for i in range(begin, end):
        word = tokens[i]
        if not has_letters(word, 1):
            continue
        if Py_UNICODE_ISLOWER(PyUnicode_READ_CHAR(word, 0)):
            return False
        n_words += 1
        n_capitals += PyUnicode_GET_LENGTH(word) > 1 and word.isupper()
    return n_words >= 3 and 2 * n_capitals > n_words


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
    cdef const double[:, ::1] turned = np.ascontiguousarray(np.swapaxes(table, 0, 1))
    cdef Py_ssize_t f, n_labels = table.shape[0]
    cdef double[::1] expected = np.empty(n_labels)
    with nogil:
        for f in range(ends.shape[0]):
            add_message(&total[ends[f, 0], 0], &total[ends[f, 1], 0], 1.0 if scales is None else scales[f],
                        &table[0, 0], &turned[0, 0], &beliefs[ends[f, 0], 0], &beliefs[ends[f, 1], 0], &expected[0],
                        n_labels)


cdef void add_message(double* to_earlier, double* to_later, double weight, const double* table, const double* turned,
                      const double* earlier, const double* later, double* expected, Py_ssize_t n_labels) noexcept nogil:
    """The sums of `add_messages` for one link, each over the labels in their order, all labels side by side."""
    cdef Py_ssize_t i, j
    cdef double share
    for i in range(n_labels):
        expected[i] = 0.0
    for j in range(n_labels):
        share = later[j]
        for i in range(n_labels):
            expected[i] += turned[j * n_labels + i] * share
    for i in range(n_labels):
        share = weight * earlier[i]
        for j in range(n_labels):
            to_later[j] += share * table[i * n_labels + j]
    for i in range(n_labels):
        to_earlier[i] += weight * expected[i]
