# cython: language_level=3
# Attributes of a position in its document: case of the same word elsewhere, runs of capitals, headlines, topics and
# gazetteers; computed by cython_ext/context.pyx.
cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from herdner._ext.feature_tables cimport WordTable
from herdner._ext.words cimport TypeRecord, TypeStore

cdef enum:
    # attributes of positions, in the order of POSITION_ATTRIBUTES in features.pyx; the gazetteers follow
    CASING = 0
    HEADLINE = 1
    RUN = 2
    RUN_FIRST = 3
    RUN_LAST = 4
    RUN_BEFORE = 5
    RUN_AFTER = 6
    BIAS = 7
    TOPIC = 8
    N_TOPICS = 3                         # topics of a document: one each from a small, a medium and a large set
    N_POSITION_ATTRIBUTES = 11
    LONGEST_PHRASE = 12                  # words of a gazetteer entry
    MOST_GAZETTEERS = 24
    PHRASE_CONTINUES = 1 << 30           # a longer entry begins with these words

ctypedef struct Occurrences:
    # the occurrences in a document of one group of words, which differ only in case
    int32_t group
    int32_t last
    int32_t n_small
    int32_t n_capital_inside           # capitalised where the position does not require it

ctypedef struct View:
    # concatenated documents: arrays of n tokens each, allocated by the caller
    Py_ssize_t n
    Py_ssize_t n_position
    const TypeRecord** words
    int32_t* previous                  # neighbouring occurrences of the same group, or -1
    int32_t* next
    int32_t* occurrence                # the token's entry in `occurrences`
    int32_t* sentence                  # the sentence that the token stands in
    Occurrences* occurrences           # hash tables of all documents, concatenated; group -1: the slot is empty
    Py_ssize_t first_slot              # of the current document
    Py_ssize_t n_slots                 # of the current document
    Py_ssize_t begin, end              # the tokens of the current sentence
    uint64_t* position                 # n_position attributes for each of its tokens; 0: none


cdef enum:
    BEFORE_SENTENCE = 0    # records of the two places outside a sentence
    AFTER_SENTENCE = 1


cdef inline uint64_t* position_of(View* view, Py_ssize_t token) noexcept nogil:
    return &view.position[(token - view.begin) * view.n_position]


cdef inline int32_t beside(View* view, Py_ssize_t token, bint right) noexcept nogil:
    """Return the token on the left or right in the same sentence, or -1."""
    cdef Py_ssize_t place = token + 1 if right else token - 1
    return place if 0 <= place < view.n and view.sentence[place] == view.sentence[token] else -1


cdef object checked_topics(topics)


@cython.final
cdef class Context:
    """The arrays of one call: the words of the documents and the attributes of their positions."""
    cdef TypeStore store
    cdef View view
    cdef const int64_t[::1] offsets
    cdef const int64_t[::1] documents  # the first sentence of each document, and the number of sentences
    cdef const int32_t[::1] types
    cdef const float[:, ::1] centres   # of topics (herdner.ner.lexicon.Topics), or None
    cdef const float[::1] biases
    cdef const int32_t[::1] topic_starts
    cdef uint8_t[:, ::1] topics        # of each sentence, counted from 1
    cdef WordTable gazetteers          # or None
    cdef Py_ssize_t n_groups
    cdef list arrays

    cdef int allocate(self, TypeStore store, const int32_t[::1] types, sentence_offsets, documents,
                      Py_ssize_t n_position, WordTable gazetteers) except -1
    cdef int make_room(self) except -1
    cdef int read_topics(self, topics) except -1
    cdef void find_topics(self, Py_ssize_t d, double[::1] sums, int32_t[::1] counts) noexcept nogil
    cdef Py_ssize_t slots_of(self, Py_ssize_t d) noexcept nogil
    cdef void mark_places(self) noexcept nogil
    cdef void describe(self, Py_ssize_t s) noexcept nogil
    cdef Py_ssize_t other_occurrences(self, Py_ssize_t token, Py_ssize_t most, int32_t* places) noexcept nogil

    cdef inline void enter(self, Py_ssize_t token) noexcept nogil:
        """Make the sentence of a token the current one, whose position attributes can be read."""
        if not self.view.begin <= token < self.view.end:
            self.describe(self.view.sentence[token])

    cdef inline TypeRecord* record_at(self, Py_ssize_t token) noexcept nogil:
        return self.store.record(self.type_at(token))

    cdef inline Py_ssize_t type_at(self, Py_ssize_t token) noexcept nogil:
        """Return the word of a token, or that of the place before or after the current sentence."""
        return (BEFORE_SENTENCE if token < self.view.begin else self.types[token] if token < self.view.end
                else AFTER_SENTENCE)
