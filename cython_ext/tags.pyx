# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Labelled spans of tag sequences (herdner.text.tags)."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t


def read_spans(const int32_t[::1] states not None, const uint8_t[::1] prefixes not None,
               const int32_t[::1] labels not None, const int64_t[::1] offsets not None):
    """int64[3, M], start, end and label: the spans as conlleval reads them, in the order of the text.

    states [n]: numbers of tags; prefixes [K], labels [K]: the character O, B, I, E or S of each tag, and the number of
    its label, 0 for O. No span crosses a border of ``offsets`` [S + 1].
    """
    cdef Py_ssize_t n = states.shape[0], n_tags = prefixes.shape[0], s, i, begin, m = 0
    cdef int32_t label, new
    cdef uint8_t prefix
    cdef bint may_continue
    for i in range(n):
        if not 0 <= states[i] < n_tags or labels.shape[0] != n_tags:
            raise ValueError(f"token {i} has no tag of the {n_tags}")
    for s in range(offsets.shape[0]):
        if not 0 <= offsets[s] <= n or (s and offsets[s] < offsets[s - 1]):
            raise ValueError(f"sentence offsets must rise from 0 to the number of tags ({n})")
    spans = np.empty((3, n), np.int64)  # no more is touched than there are spans
    cdef int64_t[:, ::1] rows = spans
    for s in range(offsets.shape[0] - 1):
        label, begin, may_continue = 0, offsets[s], False
        for i in range(offsets[s], offsets[s + 1]):
            new, prefix = labels[states[i]], prefixes[states[i]]
            if may_continue and new == label and (prefix == c"I" or prefix == c"E"):
                may_continue = prefix == c"I"
                continue
            if label:
                rows[0, m], rows[1, m], rows[2, m] = begin, i, label
                m += 1
            label, begin, may_continue = new, i, prefix == c"B" or prefix == c"I"
        if label:
            rows[0, m], rows[1, m], rows[2, m] = begin, offsets[s + 1], label
            m += 1
    return spans[:, :m].copy()
