# cython: language_level=3
# Attributes of a word: case, shape, affixes, classes. One record per distinct word (type), filled by
# cython_ext/words.pyx.
cimport cython
from libc.stdint cimport int8_t, int32_t, uint32_t, uint64_t

from herdner._ext.feature_tables cimport WordTable
from herdner._ext.spellings cimport Spelling, Spellings
from herdner._ext.strings cimport Strings

cdef enum:
    MAX_AFFIX = 5       # prefixes and suffixes of 1 to 5 letters
    N_CLASS_DEPTHS = 4  # word-class prefixes of 4, 6, 10 and 20 bits
    N_VECTOR_DEPTHS = 4  # each word has one of 32, one of 128, one of 512 and one of 2,048 vector classes
    N_TYPE_ATTRIBUTES = 5 + 2 * MAX_AFFIX + N_CLASS_DEPTHS + N_VECTOR_DEPTHS
    # indices of the attributes, in the order of TYPE_ATTRIBUTES in features.pyx
    WORD = 0
    LOWER = 1
    DIGITS = 2  # the lower-cased word with each digit replaced by 0
    SHAPE = 3   # such as Xxxx-dd; runs are shortened to four characters
    BRIEF = 4   # the shape with each run collapsed
    PREFIX = 5
    SUFFIX = PREFIX + MAX_AFFIX
    CLASS = SUFFIX + MAX_AFFIX
    VECTOR = CLASS + N_CLASS_DEPTHS

cdef enum CaseForm:
    HAS_LETTER = 1
    CAPITAL = 2   # begins with a capital
    ALL_CAPS = 4  # two or more letters, none of them small
    SMALL = 8     # letters, none of them a capital


ctypedef struct TypeRecord:
    uint64_t attributes[N_TYPE_ATTRIBUTES]  # 0: the word has none
    uint32_t case
    int32_t group                           # words that differ only in case share a group
    uint32_t phrase                         # gazetteer entry that consists of, or begins with, this word (context.pyx)
    uint32_t vector                         # 1 + index of the word among those with vector classes; 0: it has none


cdef enum:
    CHUNK = 1024  # records per allocation: records never move, so other threads may read while one adds
    RECORDS = 0   # parts of a store
    SUMS = 1
    ROWS = 2
    LETTERS = 3
    N_PARTS = 4


@cython.final
cdef class TypeStore:
    """Records of all words so far, with ``sum_width`` sums and ``row_width`` bytes for each that the caller fills.

    The store only grows, and records never move.
    """
    cdef Strings ids   # loops find index + 1
    cdef dict groups
    cdef Spellings spellings
    cdef void** parts[N_PARTS]  # the chunks of each part: TypeRecord, double, int8_t, Spelling
    cdef object owner  # the extractor that made the store has the same object
    cdef Py_ssize_t n_types, capacity, sum_width, row_width

    cdef inline TypeRecord* record(self, Py_ssize_t type) noexcept nogil:
        return &(<TypeRecord**> self.parts[RECORDS])[type // CHUNK][type % CHUNK]

    cdef inline Spelling* letters_of(self, Py_ssize_t type) noexcept nogil:
        return &(<Spelling**> self.parts[LETTERS])[type // CHUNK][type % CHUNK]

    cdef inline double* sums_of(self, Py_ssize_t type) noexcept nogil:
        return &(<double**> self.parts[SUMS])[type // CHUNK][(type % CHUNK) * self.sum_width]

    cdef inline int8_t* row_of(self, Py_ssize_t type) noexcept nogil:
        return &(<int8_t**> self.parts[ROWS])[type // CHUNK][(type % CHUNK) * self.row_width]

    cdef Py_ssize_t reserve(self) except -1
    cdef Py_ssize_t add(self, str word, WordTable classes, WordTable vectors, WordTable gazetteers) except -1
