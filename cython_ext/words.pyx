# cython: language_level=3
"""Attributes of each distinct word, computed once and stored. Called by features.pyx."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ
from libc.stdint cimport uint32_t, uint64_t

from hashing cimport Slot, combine, find, hash_char, hash_start, mix

from herdner._ext.feature_tables cimport WordTable
from herdner._ext.spellings cimport Spelling, Spellings
from herdner._ext.strings cimport Strings

cdef extern from "Python.h":
    bint Py_UNICODE_ISUPPER(Py_UCS4) nogil
    bint Py_UNICODE_ISLOWER(Py_UCS4) nogil
    bint Py_UNICODE_ISDIGIT(Py_UCS4) nogil
    bint Py_UNICODE_ISALPHA(Py_UCS4) nogil
    Py_UCS4 Py_UNICODE_TOLOWER(Py_UCS4) nogil

# Typographic variants of one mark: typesetting differs between sources, names do not.
cdef dict SAME_MARK = {
    "``": '"', "''": '"', "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\u2018": "'",
    "\u2014": "--", "\u2013": "--", "\u2015": "--", "_": "--",
}


cdef str plain_form(str word):
    """Return the word with typewriter quotes, apostrophes and dashes."""
    return SAME_MARK.get(word) or (word if word.isascii() else word.replace("\u2019", "'"))


cdef void* memory_of_words(Py_ssize_t n, size_t size) except NULL:
    """Return memory of zeros for n elements, possibly of size 0."""
    cdef void* memory = PyMem_RawCalloc(n, size)  # never NULL for a size of 0
    if memory == NULL:
        raise MemoryError("no memory for word records")
    return memory


cdef class TypeStore:
    def __cinit__(self, Py_ssize_t capacity, Py_ssize_t sum_width, Py_ssize_t row_width):
        cdef Py_ssize_t k
        self.ids, self.groups, self.spellings = Strings(), {}, Spellings()
        self.n_types, self.capacity, self.sum_width, self.row_width = 0, capacity, sum_width, row_width
        for k in range(N_PARTS):
            self.parts[k] = <void**> memory_of_words(capacity // CHUNK + 1, sizeof(void*))

    def __dealloc__(self):
        cdef Py_ssize_t i, k
        for k in range(N_PARTS):
            for i in range(self.capacity // CHUNK + 1 if self.parts[k] != NULL else 0):
                PyMem_RawFree(self.parts[k][i])
            PyMem_RawFree(self.parts[k])

    cdef Py_ssize_t reserve(self) except -1:
        """Make room for one more record and return its index."""
        cdef Py_ssize_t chunk = self.n_types // CHUNK, k
        cdef size_t[N_PARTS] sizes = [
            sizeof(TypeRecord), self.sum_width * sizeof(double), self.row_width, sizeof(Spelling),
        ]
        if self.n_types >= self.capacity:
            raise MemoryError("no room for another word record")
        for k in range(N_PARTS):
            if self.parts[k][chunk] == NULL:
                self.parts[k][chunk] = memory_of_words(CHUNK, sizes[k])
        self.n_types += 1
        return self.n_types - 1

    cdef Py_ssize_t add(self, str word, WordTable classes, WordTable vectors, WordTable gazetteers) except -1:
        """Fill the record of a new word and return its index. The caller then adds the word to ``ids``."""
        cdef Py_ssize_t type = self.reserve()
        cdef TypeRecord* record = self.record(type)
        cdef const Slot* slot
        describe(plain_form(word), record)
        self.letters_of(type)[0] = self.spellings.of(word)
        if classes is not None:
            classify(record, classes)
        if vectors is not None:
            classify_vector(record, vectors)
        if gazetteers is not None:
            slot = find(gazetteers.slots, gazetteers.mask, combine(hash_start(), record.attributes[LOWER]))
            record.phrase = 0 if slot == NULL else <uint32_t> slot.value
        record.group = self.groups.setdefault(record.attributes[LOWER], len(self.groups))
        return type


cdef inline Py_UCS4 shape_of(Py_UCS4 char) noexcept nogil:
    if Py_UNICODE_ISUPPER(char):
        return u"X"
    if Py_UNICODE_ISLOWER(char):
        return u"x"
    if Py_UNICODE_ISDIGIT(char):
        return u"d"
    return char


cdef inline uint32_t case_of(Py_ssize_t n_upper, Py_ssize_t n_lower, bint first_upper) noexcept nogil:
    cdef uint32_t case = 0
    if n_upper + n_lower:
        case |= HAS_LETTER
    if first_upper:
        case |= CAPITAL
    if n_upper >= 2 and n_lower == 0:
        case |= ALL_CAPS
    if n_lower and n_upper == 0:
        case |= SMALL
    return case


cdef void describe(str word, TypeRecord* record) noexcept:
    """Fill the attributes and the case of a word, except its word class, group and phrase."""
    cdef Py_ssize_t n = PyUnicode_GET_LENGTH(word), i, k, run = 0, n_upper = 0, n_lower = 0
    cdef int kind = PyUnicode_KIND(word)
    cdef void* data = PyUnicode_DATA(word)
    cdef Py_UCS4 char, small, mark, previous = 0
    cdef bint first_upper = False
    cdef uint64_t exact = hash_start(), lower = exact, digits = exact, shape = exact, brief = exact
    cdef uint64_t* attributes = record.attributes
    for k in range(N_TYPE_ATTRIBUTES):
        attributes[k] = 0
    for i in range(n):
        char = PyUnicode_READ(kind, data, i)
        small = Py_UNICODE_TOLOWER(char)
        mark = shape_of(char)
        n_upper += mark == u"X"
        n_lower += mark == u"x"
        if i == 0:
            first_upper = mark == u"X"
        exact = hash_char(exact, char)
        lower = hash_char(lower, small)
        digits = hash_char(digits, u"0" if mark == u"d" else small)
        run = run + 1 if mark == previous and i else 1
        if run == 1:
            brief = hash_char(brief, mark)
        if run <= 4:
            shape = hash_char(shape, mark)
        previous = mark
        if i < MAX_AFFIX:
            attributes[PREFIX + i] = mix(lower)
    attributes[WORD] = mix(exact)
    attributes[LOWER] = mix(lower)
    attributes[DIGITS] = mix(digits)
    attributes[SHAPE] = mix(shape)
    attributes[BRIEF] = mix(brief)
    lower = hash_start()
    for i in range(min(n, <Py_ssize_t> MAX_AFFIX)):  # the hash of a suffix is that of its letters in reverse order
        lower = hash_char(lower, Py_UNICODE_TOLOWER(PyUnicode_READ(kind, data, n - 1 - i)))
        attributes[SUFFIX + i] = mix(lower)
    record.case = case_of(n_upper, n_lower, first_upper)
    record.vector = 0


cdef void classify(TypeRecord* record, WordTable classes) noexcept nogil:
    """Fill the word-class attributes from the class of the word as written, else of its lower-case form.

    Classes are Brown bit paths read as little-endian integers, so a prefix of the path is a remainder.
    """
    cdef const Slot* slot = find(classes.slots, classes.mask, record.attributes[WORD])
    if slot == NULL:
        slot = find(classes.slots, classes.mask, record.attributes[LOWER])
    if slot != NULL:
        record.attributes[CLASS] = 1 + (slot.value & 0xF)
        record.attributes[CLASS + 1] = 1 + (slot.value & 0x3F)
        record.attributes[CLASS + 2] = 1 + (slot.value & 0x3FF)
        record.attributes[CLASS + 3] = 1 + (slot.value & 0xFFFFF)


cdef void classify_vector(TypeRecord* record, WordTable vectors) noexcept nogil:
    """Fill the vector-class attributes of the lower-case form.

    The table maps 32 bits of its hash to class indices of 5, 7, 9 and 11 bits, and to the index of the word in the
    upper 32 bits.
    """
    cdef const Slot* slot = find(vectors.slots, vectors.mask, <uint32_t> record.attributes[LOWER])
    if slot != NULL:
        record.attributes[VECTOR] = 1 + (slot.value & 0x1F)
        record.attributes[VECTOR + 1] = 1 + (slot.value >> 5 & 0x7F)
        record.attributes[VECTOR + 2] = 1 + (slot.value >> 12 & 0x1FF)
        record.attributes[VECTOR + 3] = 1 + (slot.value >> 21 & 0x7FF)
        record.vector = <uint32_t> (1 + (slot.value >> 32))
