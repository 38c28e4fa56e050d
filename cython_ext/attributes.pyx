# cython: language_level=3
"""Attributes of items: dictionaries, lists and strings become indices and values. Called by ``herdner.crf.estimator``.

The rules are those of python-crfsuite: the item ``{"word": "Ada", "length": 3, "shape": ["X", "x"]}`` has the
attributes ``word:Ada`` (value 1), ``length`` (value 3), ``shape:X`` and ``shape:x`` (value 1).
"""

import numpy as np

cimport cython
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLong
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from prefetch cimport prefetch

cdef enum:
    AHEAD = 16       # attributes whose weights are prefetched
    DEEPEST = 64     # levels of nested dictionaries and lists
    MOST = 0x7fffffff
    N_COLUMNS = 64   # positions in an item whose key and texts are remembered


cdef struct Buffer:
    # the attributes of all items so far
    int32_t* indices
    double* values
    int64_t n
    int64_t room
    bint only_ones


cdef int enlarge(Buffer* b) except -1:
    """Make room for more attributes."""
    cdef int64_t room
    cdef void* moved
    room = max(2 * b.room, <int64_t> 1 << 12)
    moved = PyMem_RawRealloc(b.indices, room * sizeof(int32_t))
    if moved != NULL:
        b.indices = <int32_t*> moved
        moved = PyMem_RawRealloc(b.values, room * sizeof(double))
    if moved == NULL:
        raise MemoryError("no memory is left for the attributes of the items")
    b.values, b.room = <double*> moved, room
    return 0


@cython.final
cdef class AttributeIndex:
    """Index of attribute names in the order in which they were first met.

    ``AttributeIndex(names)`` starts with distinct names.
    """
    cdef dict by_name     # name -> index
    cdef dict by_text     # key -> {text: index} of the attributes KEY:TEXT that were looked up
    cdef list ordered
    # Borrowed from ``by_text``: the key at each position of an item, and its texts. Most items have the same keys.
    cdef PyObject* column_keys[N_COLUMNS]
    cdef PyObject* column_texts[N_COLUMNS]

    def __cinit__(self, names=()):
        self.by_name, self.by_text, self.ordered = {}, {}, []
        for name in names:
            if type(name) is not str:
                raise TypeError(f"attribute names must be strings, got {name!r}")
            if self.by_name.setdefault(name, len(self.ordered)) != len(self.ordered):
                raise ValueError(f"attribute names must be distinct, got {name!r} twice")
            self.ordered.append(name)

    def __reduce__(self):
        return AttributeIndex, (self.names,)

    def __len__(self):
        return len(self.ordered)

    @property
    def names(self):
        """The names in the order of their indices."""
        return list(self.ordered)

    def encode(self, sequences, bint grow):
        """Return (offsets int64[S + 1], starts int64[n + 1], indices int32[m], values float64[m] or None).

        Sequence s has the items ``offsets[s]`` to ``offsets[s + 1]`` - 1; item t has the attributes ``starts[t]`` to
        ``starts[t + 1]`` - 1. New names get indices if ``grow``; otherwise they are left out. Values are None if all
        are 1.
        """
        cdef Buffer b
        cdef list starts = [0], offsets = [0]
        b.indices, b.values, b.n, b.room, b.only_ones = NULL, NULL, 0, 0, True
        try:
            for sequence in sequences:
                PyErr_CheckSignals()
                if isinstance(sequence, (str, bytes, dict)):
                    raise TypeError(f"a sequence must be a list of items, got {shown(sequence)}")
                for item in sequence:
                    self.add_item(&b, item, grow)
                    starts.append(b.n)
                offsets.append(len(starts) - 1)
            indices, values = np.empty(b.n, np.int32), None if b.only_ones else np.empty(b.n)
            copy_out(&b, indices, values)
        finally:
            PyMem_RawFree(b.indices)
            PyMem_RawFree(b.values)
        return np.array(offsets, np.int64), np.array(starts, np.int64), indices, values

    cdef int add_item(self, Buffer* b, item, bint grow) except -1:
        """Add the attributes of an item: a dictionary, a list or set of strings, or one string."""
        cdef int64_t n = b.n
        if type(item) is dict:
            if not self.add_plain(b, <dict> item, grow):
                b.n = n
                self.add_all(b, None, item, grow, 0)
        elif isinstance(item, str):
            add(b, self.index(str(item), grow), 1.0)
        else:
            self.add_all(b, None, item, grow, 0)
        return 0

    cdef bint add_plain(self, Buffer* b, dict item, bint grow) except -1:
        """Add the attributes of a dictionary of texts and floats; return False if it has other values.

        Nothing here runs Python code that could change the dictionary.
        """
        cdef Py_ssize_t position = 0
        cdef int column = -1
        cdef double number
        cdef PyObject* key
        cdef PyObject* value
        cdef PyObject* texts
        cdef PyObject* index
        while PyDict_Next(item, &position, &key, &value):
            column += 1
            if not PyUnicode_CheckExact(<object> key):
                return False
            if PyUnicode_CheckExact(<object> value):
                if column < N_COLUMNS and self.column_keys[column] == key:
                    texts = self.column_texts[column]
                else:
                    texts = self.find_texts(<str> key, column, grow)
                index = NULL if texts == NULL else PyDict_GetItemWithError(<dict> texts, <object> value)
                if index != NULL:
                    append(b, <int32_t> PyLong_AsLong(<object> index), 1.0)
                else:
                    self.add_text(b, <str> key, <str> value, texts, grow)
                continue
            if <object> value is True or <object> value is False:
                number = 1.0 if <object> value is True else 0.0
            elif PyFloat_CheckExact(<object> value) and isfinite(PyFloat_AS_DOUBLE(<object> value)):
                number = PyFloat_AS_DOUBLE(<object> value)
            else:
                return False
            index = PyDict_GetItemWithError(self.by_name, <object> key)
            if index != NULL:
                append(b, <int32_t> PyLong_AsLong(<object> index), number)
            else:
                add(b, self.index(<str> key, grow), number)
        return True

    cdef PyObject* find_texts(self, str key, int column, bint grow) except? NULL:
        """Return the texts of a key and remember them for its position in an item; NULL if the key is new."""
        cdef PyObject* texts = PyDict_GetItemWithError(self.by_text, key)
        if texts == NULL and grow:
            self.by_text[key] = {}
            texts = PyDict_GetItemWithError(self.by_text, key)
            if column < N_COLUMNS:
                self.column_keys[column], self.column_texts[column] = <PyObject*> key, texts
        return texts

    cdef int add_text(self, Buffer* b, str key, str text, PyObject* texts, bint grow) except -1:
        """Add the attribute KEY:TEXT, which is new or was not looked up before."""
        index = self.index(f"{key}:{text}", grow)
        if index is not None:
            append(b, index, 1.0)
            if texts == NULL:
                self.by_text[key] = {text: index}
            else:
                (<dict> texts)[text] = index
        return 0

    cdef int add_all(self, Buffer* b, prefix, item, bint grow, int depth) except -1:
        """Add the attributes of a dictionary, list, tuple or set, whose names begin with a prefix if it is not None."""
        if depth > DEEPEST:
            raise ValueError(f"attributes may be nested at most {DEEPEST} levels deep")
        if isinstance(item, dict):
            for key, value in item.items():
                self.add_value(b, prefix, key, value, grow, depth)
        elif isinstance(item, (list, tuple)):
            for key in item:
                self.add_value(b, prefix, key, 1.0, grow, depth)
        elif isinstance(item, (set, frozenset)):  # sorted, because the order of a set differs between processes
            for key in sorted(item):
                self.add_value(b, prefix, key, 1.0, grow, depth)
        else:
            raise TypeError(f"an item must be a dictionary, a list of strings or a string, got {shown(item)}")
        return 0

    cdef int add_value(self, Buffer* b, prefix, key, value, bint grow, int depth) except -1:
        """Add the attributes of one key and its value."""
        cdef double number
        name = key if type(key) is str else text_of(key, "a name of an attribute")
        if prefix is not None:
            name = f"{prefix}:{name}"
        if isinstance(value, (str, bytes)):
            add(b, self.index(f"{name}:{text_of(value, 'a value')}", grow), 1.0)
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            self.add_all(b, name, value, grow, depth + 1)
        else:
            try:
                number = value
            except TypeError:
                raise TypeError(f"attribute {name!r} must have a text or a number, got {shown(value)}") from None
            if not isfinite(number):
                raise ValueError(f"attribute {name!r} must have a finite number, got {number}")
            add(b, self.index(name, grow), number)
        return 0

    cdef index(self, str name, bint grow):
        """Return the index of a name, or None if it is new and ``grow`` is false."""
        index = self.by_name.get(name)
        if index is None and grow:
            if len(self.ordered) >= MOST:
                raise ValueError(f"there can be at most {MOST} attributes")
            index = len(self.ordered)
            self.by_name[name] = index
            self.ordered.append(name)
        return index


cdef inline int add(Buffer* b, index, double value) except -1:
    """Append an attribute; an index of None is left out."""
    return 0 if index is None else append(b, index, value)


cdef inline int append(Buffer* b, int32_t index, double value) except -1:
    if b.n == b.room:
        enlarge(b)
    b.indices[b.n], b.values[b.n] = index, value
    b.n += 1
    b.only_ones &= value == 1.0
    return 0


cdef copy_out(Buffer* b, int32_t[::1] indices, double[::1] values):
    if b.n:
        memcpy(&indices[0], b.indices, b.n * sizeof(int32_t))
        if values is not None:
            memcpy(&values[0], b.values, b.n * sizeof(double))


cdef text_of(value, str what):
    if isinstance(value, bytes):
        return (<bytes> value).decode("utf-8")
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{what} must be a string, got {shown(value)}")


cdef shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def add_scores(const int64_t[::1] starts not None, const int32_t[::1] indices not None, const double[::1] values,
               const int64_t[::1] entry_starts not None, const uint8_t[::1] entry_labels not None,
               const double[::1] entry_weights not None, double[:, ::1] unary not None):
    """Add the weights of each item's attributes to ``unary`` [n, K]; ``values`` None means 1.

    Attribute a has the weights ``entry_weights[entry_starts[a]:entry_starts[a + 1]]`` of the labels ``entry_labels``.
    Raises ``IndexError`` if an index does not fit.
    """
    cdef int64_t n = unary.shape[0], m = indices.shape[0], n_attributes = entry_starts.shape[0] - 1
    cdef int64_t n_entries = min(entry_labels.shape[0], entry_weights.shape[0]), n_labels = unary.shape[1]
    cdef int64_t t, i, e, first, last, begin, end
    cdef int32_t a
    cdef uint8_t label
    cdef double value
    cdef bint fits = starts.shape[0] == n + 1 and (values is None or values.shape[0] == m)
    if fits:
        with nogil:
            for t in range(n):
                first, last = starts[t], starts[t + 1]
                if first < 0 or last > m:
                    fits = False
                    break
                for i in range(first, last):
                    a, value = indices[i], 1.0 if values is None else values[i]
                    if a < 0 or a >= n_attributes:
                        fits = False
                        break
                    if i + AHEAD < m and 0 <= indices[i + AHEAD] < n_attributes:
                        prefetch(&entry_starts[indices[i + AHEAD]])
                    begin, end = entry_starts[a], entry_starts[a + 1]
                    if begin < 0 or end > n_entries:
                        fits = False
                        break
                    for e in range(begin, end):
                        label = entry_labels[e]
                        if label >= n_labels:
                            fits = False
                            break
                        unary[t, label] += value * entry_weights[e]
    if not fits:
        raise IndexError("attributes and weights do not fit together")


def quark_hash(const uint8_t[::1] text not None):
    """Return the hash of CRFsuite's string tables: lookup3's ``hashlittle`` with seed 0 (Bob Jenkins, 2006)."""
    cdef uint32_t a, b, c
    cdef uint32_t[3] part
    cdef Py_ssize_t n = text.shape[0], i = 0, k
    a = b = c = <uint32_t> 0xdeadbeef + <uint32_t> n
    while n - i > 12:
        part[0] = part[1] = part[2] = 0
        for k in range(12):
            part[k // 4] |= <uint32_t> text[i + k] << (8 * (k % 4))
        a, b, c = a + part[0], b + part[1], c + part[2]
        a = (a - c) ^ rotate(c, 4)
        c = c + b
        b = (b - a) ^ rotate(a, 6)
        a = a + c
        c = (c - b) ^ rotate(b, 8)
        b = b + a
        a = (a - c) ^ rotate(c, 16)
        c = c + b
        b = (b - a) ^ rotate(a, 19)
        a = a + c
        c = (c - b) ^ rotate(b, 4)
        b = b + a
        i += 12
    if i == n:
        return c
    part[0] = part[1] = part[2] = 0
    for k in range(n - i):
        part[k // 4] |= <uint32_t> text[i + k] << (8 * (k % 4))
    a, b, c = a + part[0], b + part[1], c + part[2]
    c = (c ^ b) - rotate(b, 14)
    a = (a ^ c) - rotate(c, 11)
    b = (b ^ a) - rotate(a, 25)
    c = (c ^ b) - rotate(b, 16)
    a = (a ^ c) - rotate(c, 4)
    b = (b ^ a) - rotate(a, 14)
    c = (c ^ b) - rotate(b, 24)
    return c


cdef inline uint32_t rotate(uint32_t x, int k) noexcept nogil:
    return (x << k) | (x >> (32 - k))
