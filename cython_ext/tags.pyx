# cython: language_level=3
"""Labelled spans of tag sequences (herdner.text.tags)."""

import numpy as np

from cpython.object cimport PyObject_GenericSetAttr
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "Python.h":
    str PyUnicode_Substring(str text, Py_ssize_t start, Py_ssize_t end)
    object PyType_GenericAlloc(type kind, Py_ssize_t n_items)
    void PyObject_GC_UnTrack(object value)


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


def make_spans(type kind not None, const int64_t[::1] starts not None, const int64_t[::1] ends not None,
               list labels not None, int64_t origin=0):
    """list[kind]: tuples (start, end, label) with names, tokens counted from ``origin``, without a call of Python for
    each."""
    cdef Py_ssize_t i
    cdef list spans = []
    if not issubclass(kind, tuple) or not starts.shape[0] == ends.shape[0] == len(labels):
        raise ValueError("spans are tuples of a start, an end and a label each")
    for i in range(starts.shape[0]):
        spans.append(triple(kind, starts[i] - origin, ends[i] - origin, labels[i]))
    return spans


cdef allocated(type kind, Py_ssize_t n_items):
    """A value that will hold strings and numbers alone: no cycle, so that the garbage collector need not look at it."""
    cdef object value = PyType_GenericAlloc(kind, n_items)
    PyObject_GC_UnTrack(value)
    return value


cdef triple(type kind, object start, object end, object label):
    cdef object span = allocated(kind, 3)
    Py_INCREF(start)
    PyTuple_SET_ITEM(span, 0, start)
    Py_INCREF(end)
    PyTuple_SET_ITEM(span, 1, end)
    Py_INCREF(label)
    PyTuple_SET_ITEM(span, 2, label)
    return span


def make_entities(type kind not None, list spans not None, str text not None, const int64_t[:] token_starts not None,
                  const int64_t[:] token_ends not None, const double[::1] confidences=None):
    """tuple[kind]: spans of tokens, tuples (start, end, label), as entities of the text with the attributes of
    `herdner.text.entity.Entity`, without a call of Python for each. IndexError for tokens that are not there."""
    cdef Py_ssize_t i, first, end, n = token_starts.shape[0]
    cdef int64_t begin, stop
    cdef list entities = []
    cdef object span, entity
    if token_ends.shape[0] != n or confidences is not None and confidences.shape[0] != len(spans):
        raise ValueError("places of tokens and confidences of spans differ in number from these")
    for i in range(len(spans)):
        span = spans[i]
        if not isinstance(span, tuple) or len(span) != 3:
            raise ValueError(f"spans are tuples of a start, an end and a label, not {span!r:.80}")
        first, end = (<tuple> span)[0], (<tuple> span)[1]
        if not 0 <= first < end <= n:
            raise IndexError(f"{span} are not among {n} tokens")
        begin, stop = token_starts[first], token_ends[end - 1]
        entity = allocated(kind, 0)
        PyObject_GenericSetAttr(entity, "start", begin)
        PyObject_GenericSetAttr(entity, "end", stop)
        PyObject_GenericSetAttr(entity, "label", (<tuple> span)[2])
        PyObject_GenericSetAttr(entity, "text", PyUnicode_Substring(text, begin, stop))
        PyObject_GenericSetAttr(entity, "confidence", None if confidences is None else confidences[i])
        entities.append(entity)
    return tuple(entities)
