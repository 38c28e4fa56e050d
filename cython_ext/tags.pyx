# cython: language_level=3, boundscheck=True
"""Spans of tag sequences, and the objects made of them.

Called by ``herdner.text.tags`` and ``herdner.text.document``.
"""

import numpy as np

from cpython.object cimport PyObject, PyObject_GenericSetAttr
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.memory cimport owned

cdef extern from "Python.h":
    str PyUnicode_Substring(str text, Py_ssize_t start, Py_ssize_t end)
    object PyType_GenericAlloc(type kind, Py_ssize_t n_items)
    void PyObject_GC_UnTrack(object value)
    ctypedef void (*destructor)(PyObject*)
    ctypedef struct PyTypeObject:
        destructor tp_dealloc


cdef enum:
    HAVE_GC = 1 << 14  # Py_TPFLAGS_HAVE_GC: the garbage collector tracks objects of the class


cdef object PLAIN = type("Plain", (), {})  # a class as Python code defines it


cdef bint is_plain(type kind) noexcept:
    """Return True if Python code defined a class, so that the memory of its objects may be zero at first.

    Objects of other classes, such as generators, need other values.
    """
    return (<PyTypeObject*> kind).tp_dealloc == (<PyTypeObject*> PLAIN).tp_dealloc


def read_spans(states, prefixes, labels, list names not None, offsets):
    """Read the spans of a tag sequence as conlleval does. Return their starts int64[M], ends int64[M] and labels.

    ``states`` [n]: the tag index of each token; ``prefixes`` [K]: the character O, B, I, E or S of each tag;
    ``labels`` [K]: the label of each tag as an index of ``names``, 0 for O; ``offsets`` [S + 1]: sentence offsets,
    which no span crosses.
    """
    cdef const int32_t[::1] tag = owned(states, np.int32, 1, "states"), label_of = owned(labels, np.int32, 1, "labels")
    cdef const uint8_t[::1] prefix_of = owned(prefixes, np.uint8, 1, "prefixes")
    cdef const int64_t[::1] borders = owned(offsets, np.int64, 1, "offsets")
    cdef Py_ssize_t n = tag.shape[0], n_tags = prefix_of.shape[0], s, i, begin, m = 0
    cdef int32_t label, new
    cdef uint8_t prefix
    cdef bint may_continue
    cdef list found = []
    for i in range(n):
        if not 0 <= tag[i] < n_tags or label_of.shape[0] != n_tags:
            raise ValueError(f"token {i} has no tag of the {n_tags}")
    for s in range(borders.shape[0]):
        if not 0 <= borders[s] <= n or (s and borders[s] < borders[s - 1]):
            raise ValueError(f"sentence offsets must rise from 0 to the number of tags ({n})")
    starts, ends = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] first = starts, stop = ends
    for s in range(borders.shape[0] - 1):
        label, begin, may_continue = 0, borders[s], False
        for i in range(borders[s], borders[s + 1]):
            new, prefix = label_of[tag[i]], prefix_of[tag[i]]
            if may_continue and new == label and (prefix == c"I" or prefix == c"E"):
                may_continue = prefix == c"I"
                continue
            if label:
                first[m], stop[m] = begin, i
                found.append(names[label])
                m += 1
            label, begin, may_continue = new, i, prefix == c"B" or prefix == c"I"
        if label:
            first[m], stop[m] = begin, borders[s + 1]
            found.append(names[label])
            m += 1
    return starts[:m], ends[:m], found


def make_spans(type kind not None, starts, ends, list labels not None, int64_t origin=0):
    """Make named tuples (start, end, label) of the class ``kind`` without calling it for each: list[kind].

    Positions are counted from token ``origin``.
    """
    cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts"), stop = owned(ends, np.int64, 1, "ends")
    cdef Py_ssize_t i
    cdef list spans = []
    labels = list(labels)
    if kind.__base__ is not tuple or not is_plain(kind) or not first.shape[0] == stop.shape[0] == len(labels):
        raise ValueError("spans must be made of as many starts as ends and labels, by a class of tuples")
    for i in range(first.shape[0]):
        spans.append(triple(kind, first[i] - origin, stop[i] - origin, labels[i]))
    return spans


cdef allocated(type kind, Py_ssize_t n_items):
    """Allocate an object that the garbage collector does not track; it will hold strings and numbers, so no cycles."""
    cdef object value = PyType_GenericAlloc(kind, n_items)
    PyObject_GC_UnTrack(value)
    return value


cdef int check_class(type kind) except -1:
    """Raise ValueError unless objects of a class can be allocated and then filled, attribute by attribute."""
    cdef object each = kind
    cdef bint fits = kind.__new__ is object.__new__ and kind.__flags__ & HAVE_GC
    while fits and each is not object:
        fits, each = is_plain(each), each.__base__
    if not fits:
        raise ValueError(f"entities cannot be made of the class {kind.__name__}")
    return 0


cdef triple(type kind, object start, object end, object label):
    cdef object span = allocated(kind, 3)
    Py_INCREF(start)
    PyTuple_SET_ITEM(span, 0, start)
    Py_INCREF(end)
    PyTuple_SET_ITEM(span, 1, end)
    Py_INCREF(label)
    PyTuple_SET_ITEM(span, 2, label)
    return span


def make_entities(type kind not None, spans not None, str text not None, token_starts, token_ends, confidences=None):
    """Make entities of ``text`` from spans of tokens, without calling the class ``kind`` for each: tuple[kind].

    ``spans`` are tuples (start, end, label); ``kind`` has the attributes of `herdner.text.entity.Entity`.
    ``token_starts`` and ``token_ends`` [n] are offsets of characters. Raises IndexError for spans outside the tokens.
    """
    cdef const int64_t[::1] starts = owned(token_starts, np.int64, 1, "token_starts")
    cdef const int64_t[::1] ends = owned(token_ends, np.int64, 1, "token_ends")
    cdef const double[::1] numbers = None
    cdef Py_ssize_t i, first, end, n = starts.shape[0]
    cdef int64_t begin, stop
    cdef list entities = []
    cdef object span
    check_class(kind)
    if confidences is not None:
        numbers = owned(confidences, np.float64, 1, "confidences")
    cdef list own_spans = list(spans)  # setters of the attributes may run any code
    if ends.shape[0] != n or numbers is not None and numbers.shape[0] != len(own_spans):
        raise ValueError(
            f"there are {n} token starts and {ends.shape[0]} token ends, {len(own_spans)} spans and"
            f" {0 if numbers is None else numbers.shape[0]} confidences; the numbers must agree"
        )
    for i in range(len(own_spans)):
        span = own_spans[i]
        if not isinstance(span, tuple) or len(span) != 3:
            raise ValueError(f"spans are tuples of a start, an end and a label, not {span!r:.80}")
        first, end = (<tuple> span)[0], (<tuple> span)[1]
        if not 0 <= first < end <= n:
            raise IndexError(f"the span {span} is not within {n} tokens")
        begin, stop = starts[first], ends[end - 1]
        entities.append(entity_of(kind, begin, stop, (<tuple> span)[2], PyUnicode_Substring(text, begin, stop),
                                  None if numbers is None else numbers[i], None))
    return tuple(entities)


cdef object entity_of(type kind, start, end, label, text, confidence, name_id):
    cdef object entity = allocated(kind, 0)
    PyObject_GenericSetAttr(entity, "start", start)
    PyObject_GenericSetAttr(entity, "end", end)
    PyObject_GenericSetAttr(entity, "label", label)
    PyObject_GenericSetAttr(entity, "text", text)
    PyObject_GenericSetAttr(entity, "confidence", confidence)
    PyObject_GenericSetAttr(entity, "name_id", name_id)
    return entity


def with_name_ids(tuple entities not None, list ids not None):
    """Copy entities and give them these values of ``name_id``, without calling their class for each: tuple.

    ``entities`` have the attributes of `herdner.text.entity.Entity`; ``ids`` [M] are integers.
    """
    cdef Py_ssize_t i
    cdef list copies = []
    cdef object entity
    cdef type kind = None
    ids = list(ids)  # attributes of the entities may run any code
    if len(entities) != len(ids):
        raise ValueError(f"there are {len(entities)} entities and {len(ids)} ids; the numbers must agree")
    for i in range(len(entities)):
        entity = entities[i]
        if type(entity) is not kind:
            kind = type(entity)
            check_class(kind)
        copies.append(entity_of(kind, entity.start, entity.end, entity.label, entity.text, entity.confidence, ids[i]))
    return tuple(copies)
