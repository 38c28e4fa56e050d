# What a word shows by itself: case, shape, affixes, word class. One record per distinct word (type).
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ
from libc.stdint cimport int32_t, uint32_t, uint64_t

from hashing cimport Slot, find, hash_char, hash_start, mix

cdef extern from "Python.h":
    bint Py_UNICODE_ISUPPER(Py_UCS4) nogil
    bint Py_UNICODE_ISLOWER(Py_UCS4) nogil
    bint Py_UNICODE_ISDIGIT(Py_UCS4) nogil
    bint Py_UNICODE_ISALPHA(Py_UCS4) nogil
    Py_UCS4 Py_UNICODE_TOLOWER(Py_UCS4) nogil

cdef enum:
    MAX_AFFIX = 5       # prefixes and suffixes of 1 to 5 letters
    N_CLASS_DEPTHS = 4  # word-class prefixes of 4, 6, 10 and 20 bits
    N_TYPE_ATTRIBUTES = 5 + 2 * MAX_AFFIX + N_CLASS_DEPTHS
    # indices of the attributes, in the order of features.TYPE_ATTRIBUTES
    WORD = 0
    LOWER = 1
    DIGITS = 2  # the lower-cased word with each digit replaced by 0
    SHAPE = 3   # Xxxx-dd, runs cut at four
    BRIEF = 4   # the shape with each run collapsed
    PREFIX = 5
    SUFFIX = PREFIX + MAX_AFFIX
    CLASS = SUFFIX + MAX_AFFIX

cdef enum Case:
    HAS_LETTER = 1
    CAPITAL = 2   # begins with a capital
    ALL_CAPS = 4  # two or more letters, none of them small
    SMALL = 8     # letters, none of them a capital


ctypedef struct TypeRecord:
    uint64_t attributes[N_TYPE_ATTRIBUTES]  # 0: the word has none
    uint32_t case
    int32_t group                           # words that differ only in case share a group
    uint32_t phrase                         # gazetteer entry of the word alone (see features.pyx)


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


cdef inline void describe(str word, TypeRecord* record) noexcept:
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
    for i in range(min(n, <Py_ssize_t> MAX_AFFIX)):  # read backwards: a suffix hash is that of the reversed letters
        lower = hash_char(lower, Py_UNICODE_TOLOWER(PyUnicode_READ(kind, data, n - 1 - i)))
        attributes[SUFFIX + i] = mix(lower)
    record.case = case_of(n_upper, n_lower, first_upper)


cdef inline void classify(TypeRecord* record, const Slot* classes, uint64_t mask) noexcept nogil:
    """Word-class prefixes: the class of the word as written, else of its small form.

    Classes are Brown bit paths read as little-endian integers, so a prefix of the path is a remainder.
    """
    cdef const Slot* slot = find(classes, mask, record.attributes[WORD])
    if slot == NULL:
        slot = find(classes, mask, record.attributes[LOWER])
    if slot != NULL:
        record.attributes[CLASS] = 1 + (slot.value & 0xF)
        record.attributes[CLASS + 1] = 1 + (slot.value & 0x3F)
        record.attributes[CLASS + 2] = 1 + (slot.value & 0x3FF)
        record.attributes[CLASS + 3] = 1 + (slot.value & 0xFFFFF)
