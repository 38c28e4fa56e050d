# cython: language_level=3
"""Attributes of items: dictionaries, lists and strings become indices and values. Called by ``herdner.crf.estimator``.

The rules are those of python-crfsuite: the item ``{"word": "Ada", "length": 3, "shape": ["X", "x"]}`` has the
attributes ``word:Ada`` (value 1), ``length`` (value 3), ``shape:X`` and ``shape:x`` (value 1).
"""

import numpy as np

cimport cython
from cpython.dict cimport PyDict_Next
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from hashing cimport hash_char, hash_start, mix
from prefetch cimport prefetch

from herdner._ext.memory cimport owned
from herdner._ext.strings cimport WordSlot, Strings, hash_text

cdef extern from "allocation.h":
    bint is_addressable(int64_t n, size_t size)

cdef enum:
    AHEAD = 16       # attributes whose weights are prefetched
    DEEPEST = 64     # levels of nested dictionaries and lists
    MOST = 0x7fffffff
    N_COLUMNS = 64   # positions in an item whose key is remembered
    GROUP = 32       # attributes of an item whose look-ups overlap
    ABSENT = -1


cdef struct Buffer:
    # the attributes of all items so far
    int32_t* indices
    uint8_t* nonzero
    double* values     # NULL while all are 0 or 1
    int64_t n
    int64_t room
    int64_t* ends      # number of attributes up to each item
    int64_t n_items
    int64_t room_for_items
    bint only_ones
    bint grow          # new names get indices; otherwise attributes without an index or with the value 0 are left out


cdef struct Column:
    # The key at a position of an item. Most items have the same keys.
    PyObject* key      # NULL before the first item; ``column_keys`` holds a reference
    uint64_t hash      # unfinished hash of the key and a colon
    int32_t index      # of the attribute KEY, ABSENT if it was not looked up yet


cdef struct AttributeEntry:
    # A key of an item with its value.
    PyObject* key
    PyObject* value
    uint64_t hash      # of KEY:VALUE, if the value is a text
    double number      # the value, if it is no text
    bint is_text


cdef void* enlarged(void* memory, int64_t n, size_t size) except NULL:
    """Return the memory with room for n elements."""
    cdef void* moved = PyMem_RawRealloc(memory, n * size) if is_addressable(n, size) else NULL
    if moved == NULL:
        raise MemoryError("no memory is left for the attributes of the items")
    return moved


@cython.final
cdef class AttributeIndex:
    """Index of attribute names in the order in which they were first met.

    ``AttributeIndex(names)`` starts with distinct names.
    """
    cdef Strings by_name     # name -> index; the pointer is the index plus 1
    cdef list ordered, column_keys
    cdef Column[N_COLUMNS] columns

    def __cinit__(self, names=()):
        self.by_name, self.ordered, self.column_keys = Strings(), [], [None] * N_COLUMNS
        for name in names:
            if type(name) is not str:
                raise TypeError(f"attribute names must be strings, got {name!r}")
            if self.index(name, False) != ABSENT:
                raise ValueError(f"attribute names must be distinct, got {name!r} twice")
            self.index(name, True)

    def __reduce__(self):
        return AttributeIndex, (self.names,)

    def __len__(self):
        return len(self.ordered)

    @property
    def names(self):
        """The names in the order of their indices."""
        return list(self.ordered)

    def encode(self, sequences, bint grow):
        """Return (offsets int64[S + 1], starts int64[n + 1], indices int32[m], values [m] or None).

        Sequence s has the items ``offsets[s]`` to ``offsets[s + 1]`` - 1; item t has the attributes ``starts[t]`` to
        ``starts[t + 1]`` - 1. New names get indices if ``grow``; otherwise they are left out, and so are values of 0.
        Values are None if all are 1, and uint8 if all are 0 or 1.
        """
        cdef Buffer b = empty_buffer(grow)
        cdef list offsets = [0]
        try:
            for sequence in sequences:
                self.add_sequence(&b, sequence)
                offsets.append(b.n_items)
            starts, indices = np.zeros(b.n_items + 1, np.int64), np.empty(b.n, np.int32)
            copy_out(&b, starts[1:], indices)
            values = None if b.only_ones else values_of(&b)
        finally:
            free_buffer(&b)
        return np.array(offsets, np.int64), starts, indices, values

    def score(self, sequence, entry_starts, entry_labels, entry_weights, Py_ssize_t n_labels):
        """Return the sums of the weights of the attributes of each item of one sequence, float64[n, K].

        This is `encode` without new names, and `add_scores`.
        """
        cdef const int64_t[::1] starts = owned(entry_starts, np.int64, 1, "entry_starts")
        cdef const uint8_t[::1] labels = owned(entry_labels, np.uint8, 1, "entry_labels")
        cdef const double[::1] weights = owned(entry_weights, np.float64, 1, "entry_weights")
        cdef Buffer b = empty_buffer(False)
        cdef double[:, ::1] unary
        try:
            self.add_sequence(&b, sequence)
            result = np.zeros((b.n_items, n_labels))
            unary = result
            if b.n and not add_weights(0, b.ends, b.n_items, b.indices, b.values, b.n, starts, labels, weights, unary):
                raise IndexError("attributes and weights do not fit together")
        finally:
            free_buffer(&b)
        return result

    cdef int add_sequence(self, Buffer* b, sequence) except -1:
        """Add the attributes of all items of a sequence."""
        PyErr_CheckSignals()
        if isinstance(sequence, (str, bytes, dict)):
            raise TypeError(f"a sequence must be a list of items, got {shown(sequence)}; pass a list of sequences, each"
                            " of which is a list of items")
        for item in sequence:
            self.add_item(b, item)
        return 0

    cdef int add_item(self, Buffer* b, item) except -1:
        """Add the attributes of an item: a dictionary, a list or set of strings, or one string."""
        cdef int64_t n = b.n
        if type(item) is dict:
            if not self.add_plain(b, <dict> item):
                b.n = n
                self.add_all(b, None, item, 0)
        elif isinstance(item, str):
            append(b, self.index(str(item), b.grow), 1.0)
        else:
            self.add_all(b, None, item, 0)
        if b.n_items == b.room_for_items:
            b.room_for_items = max(2 * b.room_for_items, <int64_t> 1 << 8)
            b.ends = <int64_t*> enlarged(b.ends, b.room_for_items, sizeof(int64_t))
        b.ends[b.n_items] = b.n
        b.n_items += 1
        return 0

    cdef bint add_plain(self, Buffer* b, dict item) except -1:
        """Add the attributes of a dictionary of texts and floats; return False if it has other values.

        Nothing here runs Python code that could change the dictionary.
        """
        cdef Py_ssize_t position = 0, place = 0, n
        cdef AttributeEntry[GROUP] entries
        while True:
            n = 0
            while n < GROUP and PyDict_Next(item, &position, &entries[n].key, &entries[n].value):
                prefetch(entries[n].value)
                n += 1
            if n == 0:
                return True
            if not self.read_entries(entries, n, place):
                return False
            self.add_entries(b, entries, n, place)
            place += n

    cdef bint read_entries(self, AttributeEntry* entries, Py_ssize_t n, Py_ssize_t place) except -1:
        """Read the values of entries, of which the first has the position ``place``, and prefetch their look-ups.

        Returns False if a key is no text, or a value neither a text nor a finite float.
        """
        cdef Py_ssize_t i
        cdef uint64_t start
        cdef const WordSlot* slot
        for i in range(n):
            if not PyUnicode_CheckExact(<object> entries[i].key):
                return False
            if place + i < N_COLUMNS and self.columns[place + i].key != entries[i].key:
                fill_column(&self.columns[place + i], entries[i].key)
                self.column_keys[place + i] = <object> entries[i].key
            entries[i].is_text = PyUnicode_CheckExact(<object> entries[i].value)
            if entries[i].is_text:
                start = self.columns[place + i].hash if place + i < N_COLUMNS else hash_key(entries[i].key)
                entries[i].hash = mix(hash_text(start, entries[i].value))
                prefetch(self.by_name.first_slot(entries[i].hash))
            elif <object> entries[i].value is True or <object> entries[i].value is False:
                entries[i].number = 1.0 if <object> entries[i].value is True else 0.0
            elif PyFloat_CheckExact(<object> entries[i].value):
                entries[i].number = PyFloat_AS_DOUBLE(<object> entries[i].value)
                if not isfinite(entries[i].number):
                    return False
            else:
                return False
        for i in range(n):
            if entries[i].is_text:
                slot = self.by_name.first_slot(entries[i].hash)
                if slot.hash == entries[i].hash:
                    prefetch(slot.word)
        return True

    cdef int add_entries(self, Buffer* b, const AttributeEntry* entries, Py_ssize_t n, Py_ssize_t place) except -1:
        """Add the attributes of entries, of which the first has the position ``place``."""
        cdef Py_ssize_t i
        for i in range(n):
            if entries[i].is_text:
                append(b, self.pair_index(&entries[i], b.grow), 1.0)
            elif entries[i].number != 0.0 or b.grow:
                append(b, self.key_index(entries[i].key, place + i, b.grow), entries[i].number)
        return 0

    cdef int32_t pair_index(self, const AttributeEntry* entry, bint grow) except -2:
        """Return the index of the attribute KEY:TEXT, or ABSENT."""
        cdef void* found = self.by_name.find_pair(entry.key, entry.value, entry.hash)
        if found == NULL and (grow or not self.by_name.is_complete):
            return self.index(f"{<str> entry.key}:{<str> entry.value}", grow)
        return <int32_t> <size_t> found - 1   # NULL is ABSENT

    cdef int32_t key_index(self, PyObject* key, Py_ssize_t place, bint grow) except -2:
        """Return the index of the attribute KEY at a position of an item, or ABSENT."""
        if place >= N_COLUMNS:
            return self.index(<str> key, grow)
        if self.columns[place].index == ABSENT:
            self.columns[place].index = self.index(<str> key, grow)
        return self.columns[place].index

    cdef int add_all(self, Buffer* b, prefix, item, int depth) except -1:
        """Add the attributes of a dictionary, list, tuple or set, whose names begin with a prefix if it is not None."""
        if depth > DEEPEST:
            raise ValueError(f"attributes may be nested at most {DEEPEST} levels deep")
        if isinstance(item, dict):
            for key, value in item.items():
                self.add_value(b, prefix, key, value, depth)
        elif isinstance(item, (list, tuple)):
            for key in item:
                self.add_value(b, prefix, key, 1.0, depth)
        elif isinstance(item, (set, frozenset)):  # sorted, because the order of a set differs between processes
            for key in sorted(item):
                self.add_value(b, prefix, key, 1.0, depth)
        else:
            raise TypeError(f"an item must be a dictionary, a list of strings or a string, got {shown(item)}")
        return 0

    cdef int add_value(self, Buffer* b, prefix, key, value, int depth) except -1:
        """Add the attributes of one key and its value."""
        cdef double number
        name = key if type(key) is str else text_of(key, "a name of an attribute")
        if prefix is not None:
            name = f"{prefix}:{name}"
        if isinstance(value, (str, bytes)):
            append(b, self.index(f"{name}:{text_of(value, 'a value')}", b.grow), 1.0)
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            self.add_all(b, name, value, depth + 1)
        else:
            try:
                number = value
            except TypeError:
                raise TypeError(f"attribute {name!r} must have a text or a number, got {shown(value)}") from None
            except OverflowError:
                raise ValueError(f"attribute {name!r} must have a number below 1e308, got {shown(value)}") from None
            if not isfinite(number):
                raise ValueError(f"attribute {name!r} must have a finite number, got {number}")
            if number != 0.0 or b.grow:
                append(b, self.index(name, b.grow), number)
        return 0

    cdef int32_t index(self, str name, bint grow) except -2:
        """Return the index of a name, or ABSENT if it is new and ``grow`` is false."""
        index = self.by_name.values.get(name)
        if index is not None:
            return index
        if not grow:
            return ABSENT
        if len(self.ordered) >= MOST:
            raise ValueError(f"there can be at most {MOST} attributes")
        self.by_name.enter(name, len(self.ordered), <void*> <size_t> (len(self.ordered) + 1))
        self.ordered.append(name)
        return <int32_t> (len(self.ordered) - 1)


cdef inline void fill_column(Column* column, PyObject* key) noexcept:
    """Store a key and its hash in a column."""
    column.key, column.hash, column.index = key, hash_key(key), ABSENT


cdef inline uint64_t hash_key(PyObject* key) noexcept nogil:
    """Return the unfinished hash of a key and a colon."""
    return hash_char(hash_text(hash_start(), key), u":")


cdef Buffer empty_buffer(bint grow) noexcept:
    cdef Buffer b
    b.indices, b.nonzero, b.values, b.n, b.room, b.only_ones, b.grow = NULL, NULL, NULL, 0, 0, True, grow
    b.ends, b.n_items, b.room_for_items = NULL, 0, 0
    return b


cdef void free_buffer(Buffer* b) noexcept:
    PyMem_RawFree(b.indices)
    PyMem_RawFree(b.nonzero)
    PyMem_RawFree(b.values)
    PyMem_RawFree(b.ends)


cdef inline int append(Buffer* b, int32_t index, double value) except -1:
    """Append an attribute; an index of ABSENT is left out."""
    if index == ABSENT:
        return 0
    if b.n == b.room:
        b.room = max(2 * b.room, <int64_t> 1 << 10)
        b.indices = <int32_t*> enlarged(b.indices, b.room, sizeof(int32_t))
        b.nonzero = <uint8_t*> enlarged(b.nonzero, b.room, 1)
        if b.values != NULL:
            b.values = <double*> enlarged(b.values, b.room, sizeof(double))
    if b.values == NULL and value != 0.0 and value != 1.0:
        start_values(b)
    b.indices[b.n], b.nonzero[b.n] = index, value != 0.0
    if b.values != NULL:
        b.values[b.n] = value
    b.n += 1
    b.only_ones &= value == 1.0
    return 0


cdef int start_values(Buffer* b) except -1:
    """Store the values so far, which are 0 or 1, as numbers."""
    cdef int64_t i
    b.values = <double*> enlarged(NULL, b.room, sizeof(double))
    for i in range(b.n):
        b.values[i] = b.nonzero[i]
    return 0


cdef copy_out(Buffer* b, int64_t[::1] starts, int32_t[::1] indices):
    if b.n_items:
        memcpy(&starts[0], b.ends, b.n_items * sizeof(int64_t))
    if b.n:
        memcpy(&indices[0], b.indices, b.n * sizeof(int32_t))


cdef values_of(Buffer* b):
    """Return the values as float64[m], or as uint8[m] if all are 0 or 1."""
    cdef uint8_t[::1] flags
    cdef double[::1] numbers
    if b.values == NULL:
        values = flags = np.empty(b.n, np.uint8)
        memcpy(&flags[0], b.nonzero, b.n)
    else:
        values = numbers = np.empty(b.n)
        memcpy(&numbers[0], b.values, b.n * sizeof(double))
    return values


cdef text_of(value, str what):
    if isinstance(value, bytes):
        try:
            return (<bytes> value).decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{what} must be text in UTF-8, got {shown(value)}") from None
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{what} must be a string, got {shown(value)}")


cdef shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def add_scores(starts, indices, const double[::1] values, entry_starts, entry_labels,
               const double[::1] entry_weights not None, double[:, ::1] unary not None):
    """Add the weights of each item's attributes to ``unary`` [n, K]; ``values`` None means 1.

    Attribute a has the weights ``entry_weights[entry_starts[a]:entry_starts[a + 1]]`` of the labels ``entry_labels``.
    Raises ``IndexError`` if an index does not fit.
    """
    cdef const int64_t[::1] borders = owned(starts, np.int64, 1, "starts")
    cdef const int32_t[::1] attributes = owned(indices, np.int32, 1, "indices")
    cdef const int64_t[::1] own_entry_starts = owned(entry_starts, np.int64, 1, "entry_starts")
    cdef const uint8_t[::1] labels = owned(entry_labels, np.uint8, 1, "entry_labels")
    cdef int64_t n = unary.shape[0], m = attributes.shape[0]
    cdef bint fits = borders.shape[0] == n + 1 and (values is None or values.shape[0] == m)
    cdef const int32_t* first_index = &attributes[0] if m else NULL
    cdef const double* first_value = &values[0] if m and values is not None else NULL
    if fits and n:
        with nogil:
            fits = add_weights(borders[0], &borders[1], n, first_index, first_value, m, own_entry_starts, labels,
                               entry_weights, unary)
    if not fits:
        raise IndexError("attributes and weights do not fit together")


cdef bint add_weights(int64_t first, const int64_t* ends, int64_t n, const int32_t* indices, const double* values,
                      int64_t m, const int64_t[::1] entry_starts, const uint8_t[::1] entry_labels,
                      const double[::1] entry_weights, double[:, ::1] unary) noexcept nogil:
    """Add the weights of the attributes of n items to ``unary``; return False if an index does not fit.

    Item t has the attributes ``ends[t - 1]`` to ``ends[t]`` - 1; those of item 0 begin at ``first``.
    """
    cdef int64_t n_attributes = entry_starts.shape[0] - 1, n_labels = unary.shape[1]
    cdef int64_t n_entries = min(entry_labels.shape[0], entry_weights.shape[0]), t, i, e, begin, end
    cdef int32_t a
    cdef uint8_t label
    cdef double value
    for t in range(n):
        if first < 0 or ends[t] > m:
            return False
        for i in range(first, ends[t]):
            a, value = indices[i], 1.0 if values == NULL else values[i]
            if a < 0 or a >= n_attributes:
                return False
            if i + AHEAD < m and 0 <= indices[i + AHEAD] < n_attributes:
                prefetch(&entry_starts[indices[i + AHEAD]])
            begin, end = entry_starts[a], entry_starts[a + 1]
            if begin < 0 or end > n_entries:
                return False
            for e in range(begin, end):
                label = entry_labels[e]
                if label >= n_labels:
                    return False
                unary[t, label] += value * entry_weights[e]
        first = ends[t]
    return True


def quark_hash(const uint8_t[::1] text not None):
    """Return the hash of CRFsuite's string tables: lookup3's ``hashlittle`` with seed 0 (Bob Jenkins, 2006)."""
    cdef uint32_t[3] h  # lookup3 calls them a, b and c
    cdef int[6] mixing = [4, 6, 8, 16, 19, 4]
    cdef int[7] final = [14, 11, 25, 16, 4, 14, 24]
    cdef Py_ssize_t n = text.shape[0], i
    cdef int k
    h[0] = h[1] = h[2] = <uint32_t> 0xdeadbeef + <uint32_t> n
    for i in range(n):
        for k in range(6 if i and i % 12 == 0 else 0):  # before each block of 12 bytes but the first
            h[k % 3] = (h[k % 3] - h[(k + 2) % 3]) ^ rotate(h[(k + 2) % 3], mixing[k])
            h[(k + 2) % 3] += h[(k + 1) % 3]
        h[i % 12 // 4] += <uint32_t> text[i] << (8 * (i % 4))
    for k in range(7 if n else 0):
        h[(k + 2) % 3] = (h[(k + 2) % 3] ^ h[(k + 1) % 3]) - rotate(h[(k + 1) % 3], final[k])
    return h[2]


cdef inline uint32_t rotate(uint32_t x, int k) noexcept nogil:
    return (x << k) | (x >> (32 - k))
