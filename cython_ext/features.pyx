# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Features of tokens in their document, for training (keys) and for tagging (scores), from one enumeration.

A feature is a 64-bit key: the seed of its template combined with the values of its attributes. Attributes of a word
alone live in one record per distinct word, and the scores of their templates are summed once per word and offset.
Attributes of a position (context.pxd) are found anew in each document.
"""

from threading import Lock

import numpy as np

from herdner._ext.hashing import build_table

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from context cimport (
    LONGEST_PHRASE, MOST_GAZETTEERS, N_POSITION_ATTRIBUTES, PHRASE_CONTINUES, Occurrences, View, beside,
    describe_document, mark_gazetteers, position_of, slots_for,
)
from hashing cimport Slot, combine, find, hash_start
from words cimport (BRIEF, CAPITAL, DIGITS, LOWER, N_TYPE_ATTRIBUTES, SHAPE, TypeRecord, WORD, classify,
                    describe)

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define herdner_prefetch(p) __builtin_prefetch(p)
    #else
    #define herdner_prefetch(p) ((void)(p))
    #endif
    """
    void herdner_prefetch(const void* p) nogil

TYPE_ATTRIBUTES = (
    "word", "lower", "digits", "shape", "brief_shape",
    "prefix1", "prefix2", "prefix3", "prefix4", "prefix5", "suffix1", "suffix2", "suffix3", "suffix4", "suffix5",
    "class4", "class6", "class10", "class20",
)
# Followed by one attribute for each gazetteer.
POSITION_ATTRIBUTES = ("casing", "headline", "run", "run_first", "run_last", "run_before", "run_after", "bias")
MAX_GAZETTEERS, MAX_PHRASE, PHRASE_GOES_ON = MOST_GAZETTEERS, LONGEST_PHRASE, PHRASE_CONTINUES
MAX_OCCURRENCES, MAX_OFFSET = MOST_OCCURRENCES, FARTHEST
assert len(TYPE_ATTRIBUTES) == N_TYPE_ATTRIBUTES and len(POSITION_ATTRIBUTES) == N_POSITION_ATTRIBUTES

cdef enum:
    CHUNK = 1024           # records per allocation: records never move, so other threads may read while one adds
    MANY_TYPES = 1 << 16   # then a new store is begun, so that memory stays bounded on endless text
    BEFORE_SENTENCE = 0    # records of the two places outside a sentence
    AFTER_SENTENCE = 1
    MOST_OCCURRENCES = 16
    FARTHEST = 9           # offset in a template
    RING = 4               # tokens whose keys are kept at a time (a power of two above three)


include "feature_tables.pxi"


cdef class Context:
    """The arrays of one call: the words of the documents and what stands around them."""
    cdef TypeStore store
    cdef View view
    cdef const int64_t[::1] offsets, documents
    cdef int32_t[::1] types
    cdef Occurrences* occurrences   # of the first document
    cdef object arrays

    def __cinit__(self, TypeStore store, Py_ssize_t n, const int64_t[::1] offsets not None,
                  const int64_t[::1] documents not None, Py_ssize_t n_position):
        cdef Py_ssize_t n_slots = 0, d
        for d in range(documents.shape[0] - 1):
            n_slots += slots_for(offsets[documents[d + 1]] - offsets[documents[d]])
        words = np.empty(max(n, 1), np.uintp)
        links = np.empty((4, max(n, 1)), np.int32)
        occurrences = np.full((max(n_slots, 1), 4), -1, np.int32)
        position = np.zeros((max(n, 1), n_position), np.uint64)
        cdef size_t[::1] words_view = words
        cdef int32_t[:, ::1] links_view = links, occurrences_view = occurrences
        cdef uint64_t[:, ::1] position_view = position
        self.arrays = words, links, occurrences, position
        self.store, self.offsets, self.documents = store, offsets, documents
        self.types = np.empty(max(n, 1), np.int32)
        self.view.n, self.view.n_position = n, n_position
        self.view.words = <const TypeRecord**> &words_view[0]
        self.view.previous, self.view.next = &links_view[0, 0], &links_view[1, 0]
        self.view.occurrence = &links_view[2, 0]
        self.view.sentence = &links_view[3, 0]
        self.occurrences = <Occurrences*> &occurrences_view[0, 0]
        self.view.position = &position_view[0, 0]

    cdef void mark_places(self, WordTable gazetteers) noexcept nogil:
        """The words and positions of all tokens, whose types are known."""
        cdef Py_ssize_t i, s, d
        for i in range(self.view.n):
            self.view.words[i] = self.store.record(self.types[i])
        self.view.occurrences = self.occurrences
        for d in range(self.documents.shape[0] - 1):
            self.view.n_slots = slots_for(self.offsets[self.documents[d + 1]] - self.offsets[self.documents[d]])
            describe_document(&self.view, &self.offsets[0], self.documents[d], self.documents[d + 1])
            self.view.occurrences += self.view.n_slots
        if gazetteers is not None:
            for s in range(self.offsets.shape[0] - 1):
                mark_gazetteers(&self.view, self.offsets[s], self.offsets[s + 1], gazetteers.slots, gazetteers.mask)

    cdef inline TypeRecord* record_at(self, Py_ssize_t token, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        return self.store.record(self.type_at(token, begin, end))

    cdef inline Py_ssize_t type_at(self, Py_ssize_t token, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        return BEFORE_SENTENCE if token < begin else self.types[token] if token < end else AFTER_SENTENCE


cdef class Extractor:
    """Enumerates the features of a compiled plan (`herdner.ner.features.FeaturePlan.compile`).

    Parameters
    ----------
    singles: int32[n, 2], rows (type attribute, offset); single_seeds: uint64[n].
    conjunctions: int32[m, 2], rows (attribute, offset), attributes from N_TYPE_ATTRIBUTES on are those of positions;
        conjunction_starts: int32[c + 1]; conjunction_seeds: uint64[c].
    elsewhere: int32[e] type attributes of the neighbours of other occurrences; elsewhere_seeds: uint64[e, 2] (left,
    right);
        n_occurrences: how many other occurrences are looked at on either side, nearest first.
    classes, gazetteers: word classes and phrases, or None; n_gazetteers: the number of lists.
    weights: to score with, or None for training.
    """
    cdef const int32_t[:, ::1] singles
    cdef int32_t[:, ::1] conjunctions   # items as (source, index): see find_sources
    cdef const int32_t[::1] conjunction_starts, elsewhere
    cdef const uint64_t[::1] single_seeds, conjunction_seeds
    cdef const uint64_t[:, ::1] elsewhere_seeds
    cdef WordTable classes, gazetteers
    cdef FeatureWeights weights
    cdef TypeStore store
    cdef object lock        # held while words are looked up and added
    cdef const uint64_t[::1] nothing
    cdef Py_ssize_t n_occurrences, n_position, n_labels, window, reach, n_conjunctions, max_keys

    def __init__(self, plan, WordTable classes, WordTable gazetteers, Py_ssize_t n_gazetteers,
                 FeatureWeights weights=None):
        self.singles, self.single_seeds = plan["singles"], plan["single_seeds"]
        self.conjunction_starts, self.conjunctions = plan["conjunction_starts"], plan["conjunctions"].copy()
        self.conjunction_seeds = plan["conjunction_seeds"]
        self.elsewhere, self.elsewhere_seeds = plan["elsewhere"], plan["elsewhere_seeds"]
        self.n_occurrences, self.window = plan["n_occurrences"], plan["window"]
        self.classes, self.gazetteers, self.weights = classes, gazetteers, weights
        self.n_labels = weights.n_labels if weights is not None else 0
        self.n_position = N_POSITION_ATTRIBUTES + n_gazetteers
        self.max_keys = (self.singles.shape[0] + self.conjunction_seeds.shape[0]
                         + 2 * 2 * self.n_occurrences * self.elsewhere.shape[0])
        self.nothing = np.zeros(self.n_position, np.uint64)
        self.n_conjunctions = self.conjunction_seeds.shape[0]
        self.reach = max([abs(offset) for _, offset in plan["conjunctions"]], default=0)
        self.name_sources()
        self.lock, self.store = Lock(), self.new_store(0)

    cdef void name_sources(self):
        """Rewrite items (attribute, offset) as (source, index), in the order of `find_sources`."""
        cdef Py_ssize_t item
        cdef int32_t attribute, source
        for item in range(self.conjunctions.shape[0]):
            attribute, source = self.conjunctions[item, 0], self.conjunctions[item, 1] + <int32_t> self.reach
            if attribute >= N_TYPE_ATTRIBUTES:
                attribute -= N_TYPE_ATTRIBUTES
                source += 2 * <int32_t> self.reach + 1
            self.conjunctions[item, 0], self.conjunctions[item, 1] = source, attribute

    cdef TypeStore new_store(self, Py_ssize_t n_tokens):
        cdef Py_ssize_t n_places = 2 * self.window + 3
        cdef TypeStore store = TypeStore(max(2 * MANY_TYPES, MANY_TYPES + n_tokens), n_places * self.n_labels)
        cdef Py_ssize_t type
        cdef int a
        for type in (BEFORE_SENTENCE, AFTER_SENTENCE):
            store.reserve()
            for a in (WORD, LOWER, DIGITS, SHAPE, BRIEF):
                store.record(type).attributes[a] = 1 + type
            self.sum_singles(store, type)
        return store

    cdef void sum_singles(self, TypeStore store, Py_ssize_t type) noexcept:
        """The summed scores of what a word alone says, for each place at which it may stand from a token.

        The places are the offsets of the window, then: beside another occurrence of the token, on its left, on its
        right.
        """
        cdef Py_ssize_t t, look_up, side
        cdef const uint64_t* attributes = store.record(type).attributes
        cdef double* sums = store.sums_of(type)
        if self.weights is None:
            return
        for look_up in range(2):  # first ask for all the memory, then use it
            for t in range(self.singles.shape[0]):
                self.sum_one(self.single_seeds[t], attributes[self.singles[t, 0]],
                             sums + (self.singles[t, 1] + self.window) * self.n_labels, look_up)
            for t in range(self.elsewhere.shape[0]):
                for side in range(2):
                    self.sum_one(self.elsewhere_seeds[t, side], attributes[self.elsewhere[t]],
                                 sums + (2 * self.window + 1 + side) * self.n_labels, look_up)

    cdef inline void sum_one(self, uint64_t seed, uint64_t value, double* sums, bint look_up) noexcept nogil:
        cdef uint64_t key = combine(seed, value)
        if value == 0 or not self.weights.may_hold(key):
            return
        if look_up:
            self.weights.add(self.weights.row(key), sums)
        else:
            self.weights.prefetch(key)

    cdef Py_ssize_t intern(self, TypeStore store, str word) except -1:
        """Number of a word in the store; a new word is described."""
        cdef Py_ssize_t type = store.reserve()
        cdef TypeRecord* record = store.record(type)
        cdef const Slot* slot
        describe(plain_form(word), record)
        if self.classes is not None:
            classify(record, self.classes.slots, self.classes.mask)
        if self.gazetteers is not None:
            slot = find(self.gazetteers.slots, self.gazetteers.mask, combine(hash_start(), record.attributes[LOWER]))
            record.phrase = 0 if slot == NULL else <uint32_t> slot.value
        record.group = store.groups.setdefault(record.attributes[LOWER], len(store.groups))
        self.sum_singles(store, type)
        store.ids[word] = type
        return type

    cdef Context context(self, tokens, const int64_t[::1] offsets, const int64_t[::1] documents):
        """The words, looked up: this needs the interpreter, what follows does not."""
        cdef list words = list(tokens)
        cdef Py_ssize_t n = len(words), i
        cdef object type
        check_offsets(offsets, n)
        cdef TypeStore store
        cdef Context context
        with self.lock:
            if self.store.n_types > MANY_TYPES or self.store.n_types + n > self.store.capacity:
                self.store = self.new_store(n)
            store = self.store
            context = Context(store, n, offsets, sentences_of(offsets, documents), self.n_position)
            for i in range(n):
                type = store.ids.get(words[i])
                context.types[i] = self.intern(store, words[i]) if type is None else type
        return context

    cdef void find_sources(self, Context context, Py_ssize_t token, Py_ssize_t begin, Py_ssize_t end,
                           const uint64_t** sources) noexcept nogil:
        """The attributes within reach of a token: of the words from -reach to reach, then of the positions."""
        cdef Py_ssize_t offset, n = 2 * self.reach + 1
        for offset in range(-self.reach, self.reach + 1):
            sources[offset + self.reach] = context.record_at(token + offset, begin, end).attributes
            sources[offset + self.reach + n] = (position_of(&context.view, token + offset)
                                                if begin <= token + offset < end else &self.nothing[0])

    cdef Py_ssize_t conjunction_keys(self, const uint64_t** sources, uint64_t* keys,
                                     FeatureWeights known) noexcept nogil:
        """Keys of the templates that read more than one word's own record; how many there are.

        Keys that are surely not ``known`` are left out (unless that is None).
        """
        cdef Py_ssize_t c, item, n = 0
        cdef uint64_t h, value
        for c in range(self.n_conjunctions):
            h = self.conjunction_seeds[c]
            for item in range(self.conjunction_starts[c], self.conjunction_starts[c + 1]):
                value = sources[self.conjunctions[item, 0]][self.conjunctions[item, 1]]
                if value == 0:
                    break
                h = combine(h, value)
            else:
                if known is None or known.may_hold(h):
                    keys[n] = h
                    n += 1
        return n

    cdef Py_ssize_t other_occurrences(self, Context context, Py_ssize_t token, int32_t* places) noexcept nogil:
        """Nearest other occurrences of a capitalised token's group, on either side; how many there are."""
        cdef Py_ssize_t _, n = 0
        cdef int32_t before = token, after = token
        if not context.view.words[token].case & CAPITAL:
            return 0
        for _ in range(self.n_occurrences):
            if before != -1:
                before = context.view.previous[before]
            if before != -1:
                places[n] = before
                n += 1
            if after != -1:
                after = context.view.next[after]
            if after != -1:
                places[n] = after
                n += 1
        return n

    cdef Py_ssize_t neighbour_keys(self, Context context, Py_ssize_t token, uint64_t* keys) noexcept nogil:
        """Keys of the words beside the other occurrences of a token; how many there are."""
        cdef int32_t places[2 * MOST_OCCURRENCES]
        cdef Py_ssize_t a, k, side, n = 0
        cdef int32_t neighbour
        cdef uint64_t value
        for k in range(self.other_occurrences(context, token, places)):
            for side in range(2):
                neighbour = beside(&context.view, places[k], side)
                for a in range(self.elsewhere.shape[0] if neighbour != -1 else 0):
                    value = context.view.words[neighbour].attributes[self.elsewhere[a]]
                    if value:
                        keys[n] = combine(self.elsewhere_seeds[a, side], value)
                        n += 1
        return n

    def keys(self, tokens, const int64_t[::1] sentence_offsets not None):
        """Feature keys of each token: (starts int64[n + 1], keys uint64[starts[-1]]). A key may stand twice: it then
        counts twice.
        """
        cdef Context context = self.context(tokens, sentence_offsets, None)
        cdef Py_ssize_t n = context.view.n, s, i, t, k = 0, begin, end
        cdef uint64_t value
        cdef const uint64_t* sources[2 * (2 * FARTHEST + 1)]
        cdef int64_t[::1] starts = np.zeros(n + 1, np.int64)
        cdef uint64_t[::1] keys = np.empty(n * self.max_keys + 1, np.uint64)
        context.mark_places(self.gazetteers)
        for s in range(sentence_offsets.shape[0] - 1):
            begin, end = sentence_offsets[s], sentence_offsets[s + 1]
            for i in range(begin, end):
                for t in range(self.singles.shape[0]):
                    value = context.record_at(i + self.singles[t, 1], begin, end).attributes[self.singles[t, 0]]
                    if value:
                        keys[k] = combine(self.single_seeds[t], value)
                        k += 1
                k += self.neighbour_keys(context, i, &keys[k])
                self.find_sources(context, i, begin, end, sources)
                k += self.conjunction_keys(sources, &keys[k], None)
                starts[i + 1] = k
        return np.asarray(starts), np.asarray(keys)[:k].copy()

    def scores(self, tokens, const int64_t[::1] sentence_offsets not None, const int64_t[::1] documents=None):
        """Unary log-potentials: float64[n, n_labels], the sum of the weights of each token's features.

        Of several documents, one behind the other, ``documents`` int64[D + 1] has the first token of each and their
        number: each gets what it would get alone.
        """
        if self.weights is None:
            raise ValueError("this extractor has no weights to score with")
        cdef Context context = self.context(tokens, sentence_offsets, documents)
        scores_array = np.zeros((context.view.n, self.n_labels))
        buffer_array = np.empty((RING, self.n_conjunctions + 1), np.uint64)
        cdef double[:, ::1] scores = scores_array
        cdef uint64_t[:, ::1] buffer = buffer_array
        cdef Py_ssize_t s
        if context.view.n:
            with nogil:
                context.mark_places(self.gazetteers)
                for s in range(sentence_offsets.shape[0] - 1):
                    self.score_sentence(context, sentence_offsets[s], sentence_offsets[s + 1], &scores[0, 0], buffer)
        return scores_array

    cdef void score_sentence(self, Context context, Py_ssize_t begin, Py_ssize_t end, double* scores,
                             uint64_t[:, ::1] buffer) noexcept nogil:
        """Three tokens are under way at a time, so that memory is asked for long before it is used: token i has its
        keys made, token i - 1 has its features found, token i - 2 has their weights added."""
        cdef Py_ssize_t i, k, n_keys[RING]
        cdef const uint64_t* sources[2 * (2 * FARTHEST + 1)]
        cdef uint64_t* row
        for i in range(begin, end + 2):
            if i < end:
                row = &buffer[i % RING, 0]
                self.find_sources(context, i, begin, end, sources)
                n_keys[i % RING] = self.conjunction_keys(sources, row, self.weights)
                for k in range(n_keys[i % RING]):
                    self.weights.prefetch(row[k])
                self.add_word_sums(context, i, begin, end, scores + i * self.n_labels)
            if begin < i <= end:
                row = &buffer[(i - 1) % RING, 0]
                for k in range(n_keys[(i - 1) % RING]):
                    row[k] = self.weights.row(row[k])
            if begin + 1 < i:
                row = &buffer[(i - 2) % RING, 0]
                for k in range(n_keys[(i - 2) % RING]):
                    self.weights.add(row[k], scores + (i - 2) * self.n_labels)

    cdef void add_word_sums(self, Context context, Py_ssize_t token, Py_ssize_t begin, Py_ssize_t end,
                            double* scores) noexcept nogil:
        cdef int32_t places[2 * MOST_OCCURRENCES]
        cdef Py_ssize_t offset, k, side
        cdef int32_t neighbour
        for offset in range(-self.window, self.window + 1):
            self.add_sums(context.store, context.type_at(token + offset, begin, end), offset + self.window, scores)
        for k in range(self.other_occurrences(context, token, places)):
            for side in range(2):
                neighbour = beside(&context.view, places[k], side)
                if neighbour != -1:
                    self.add_sums(context.store, context.types[neighbour], 2 * self.window + 1 + side, scores)

    cdef inline void add_sums(self, TypeStore store, Py_ssize_t type, Py_ssize_t place, double* scores) noexcept nogil:
        cdef const double* sums = store.sums_of(type) + place * self.n_labels
        cdef Py_ssize_t k
        for k in range(self.n_labels):
            scores[k] += sums[k]


# Typographic variants of one mark: typesetting differs between sources, names do not.
cdef dict SAME_MARK = {
    "``": '"', "''": '"', "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\u2018": "'",
    "\u2014": "--", "\u2013": "--", "\u2015": "--", "_": "--",
}


cdef str plain_form(str word):
    """The word with typewriter quotes, apostrophes and dashes."""
    return SAME_MARK.get(word) or (word if word.isascii() else word.replace("\u2019", "'"))


cdef int check_offsets(const int64_t[::1] offsets, Py_ssize_t n) except -1:
    cdef Py_ssize_t s
    if offsets.shape[0] < 1 or offsets[0] != 0 or offsets[offsets.shape[0] - 1] != n:
        raise ValueError(f"sentence offsets must run from 0 to the number of tokens ({n})")
    for s in range(offsets.shape[0] - 1):
        if offsets[s] > offsets[s + 1]:
            raise ValueError("sentence offsets must not decrease")
    return 0


cdef sentences_of(const int64_t[::1] offsets, const int64_t[::1] documents):
    """int64[D + 1]: the first sentence of each document, and their number; None is one document."""
    cdef Py_ssize_t s = 0, d, n_sentences = offsets.shape[0] - 1
    if documents is None:
        return np.array([0, n_sentences])
    cdef int64_t[::1] first = np.zeros(documents.shape[0], np.int64)
    for d in range(documents.shape[0]):
        while s < n_sentences and offsets[s] < documents[d]:
            s += 1
        if offsets[s] != documents[d] or (d == 0 and s):
            raise ValueError(f"document {d}: sentence offsets must run from 0 to the number of its tokens")
        first[d] = s
    if not documents.shape[0] or s != n_sentences:
        raise ValueError("the documents must hold all sentences")
    return np.asarray(first)
