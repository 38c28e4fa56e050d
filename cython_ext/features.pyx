# cython: language_level=3
"""Features of tokens in their document: keys for training and scores for tagging, from one enumeration.

A feature is a 64-bit key: the seed of its template combined with the values of its attributes. Attributes of a single
word are stored in one record per distinct word (words.pyx), and the weights of their templates are summed once per word
and offset. Attributes of a position (context.pyx) are computed in each document.

``herdner.ner.features`` compiles plans; ``herdner.ner.model`` and ``herdner.ner.tagger`` call the extractor.
"""

import numpy as np

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t

from hashing cimport combine
from prefetch cimport prefetch

from herdner._ext.context cimport (
    AFTER_SENTENCE, BEFORE_SENTENCE, LONGEST_PHRASE, MOST_GAZETTEERS, N_POSITION_ATTRIBUTES, PHRASE_CONTINUES, Context,
    beside, checked_topics, position_of,
)
from herdner._ext.feature_tables cimport FeatureWeights, WordTable
from herdner._ext.memory cimport own, owned, require, require_offsets, require_range
from herdner._ext.network cimport CompiledNetwork
from herdner._ext.spellings cimport TokenSpellings
from herdner._ext.words cimport BRIEF, DIGITS, LOWER, N_TYPE_ATTRIBUTES, SHAPE, WORD, TypeStore

cdef extern from "Python.h":
    PyObject** items_of "PySequence_Fast_ITEMS"(list)
    bint is_string "PyUnicode_CheckExact"(PyObject*) nogil

TYPE_ATTRIBUTES = (
    "word", "lower", "digits", "shape", "brief_shape",
    "prefix1", "prefix2", "prefix3", "prefix4", "prefix5", "suffix1", "suffix2", "suffix3", "suffix4", "suffix5",
    "class4", "class6", "class10", "class20", "vector32", "vector128", "vector512", "vector2048",
)
# Followed by one attribute for each gazetteer.
POSITION_ATTRIBUTES = ("casing", "headline", "run", "run_first", "run_last", "run_before", "run_after", "bias",
                       "topic8", "topic24", "topic64")
MAX_GAZETTEERS, MAX_PHRASE, PHRASE_GOES_ON = MOST_GAZETTEERS, LONGEST_PHRASE, PHRASE_CONTINUES
MAX_OCCURRENCES, MAX_OFFSET = MOST_OCCURRENCES, FARTHEST
assert len(TYPE_ATTRIBUTES) == N_TYPE_ATTRIBUTES and len(POSITION_ATTRIBUTES) == N_POSITION_ATTRIBUTES

cdef enum:
    MANY_TYPES = 1 << 16   # a larger store is replaced by a new one, so that memory stays bounded
    MOST_OCCURRENCES = 16
    FARTHEST = 9           # offset in a template
    RING = 4               # tokens in the pipeline of `score_tokens` (a power of two)
    MOST_SUMS = 2 * FARTHEST + 1 + 4 * MOST_OCCURRENCES
    LOOK_AHEAD = 4         # tokens between the prefetching of a word's products in the network and their first use


ctypedef struct Conjunction:
    # a template over several words or positions: (source, index) of its first two items, see find_sources
    uint64_t seed
    int32_t source
    int32_t index
    int32_t second_source   # -1: there is no second item
    int32_t second_index
    int32_t rest            # further items, among those of all conjunctions
    int32_t end


ctypedef struct Origin:
    # the origin of a key
    int32_t template    # in the order of the enumeration: singles, elsewhere (left, right of each), conjunctions
    int32_t place       # the token itself, or the neighbour of another occurrence


@cython.final
cdef class Words:
    """Tokens as indices of words in the store of an extractor."""
    cdef TypeStore store
    cdef const int32_t[::1] types

    def __cinit__(self, TypeStore store not None, types):
        cdef const int32_t[::1] own_types = owned(types, np.int32, 1, "types")
        require_range(own_types, 0, store.n_types, "tokens must be words of the store")
        self.store, self.types = store, own_types

    def spellings(self):
        """Return the spellings of the tokens, which the link rules read."""
        cdef TokenSpellings said = TokenSpellings()
        cdef Py_ssize_t i
        said.make_room(self.types.shape[0])
        with nogil:
            for i in range(self.types.shape[0]):
                said.at[i] = self.store.letters_of(self.types[i])[0]
        said.count(self.store.spellings)
        return said


cdef class Extractor:
    """The features of tokens under a compiled plan (`herdner.ner.features.FeaturePlan.compile`).

    Args of the plan:
        singles: int32[n, 2], rows (type attribute, offset); single_seeds: uint64[n].
        conjunctions: int32[m, 2], rows (attribute, offset); attributes from N_TYPE_ATTRIBUTES on belong to positions.
            conjunction_starts: int32[c + 1]; conjunction_seeds: uint64[c].
        elsewhere: int32[e], type attributes of the neighbours of other occurrences; elsewhere_seeds: uint64[e, 2]
            (left, right). n_occurrences: the number of other occurrences on either side, nearest first.

    Other args: ``classes``, ``vectors`` and ``gazetteers`` are the tables of word classes, vector classes and phrases,
    or None; ``n_gazetteers`` is the number of phrase lists; ``weights`` is None for training; ``topics`` are
    `herdner.ner.lexicon.Topics` or None; ``network`` adds its scores, or is None.
    """
    cdef const int32_t[:, ::1] singles
    cdef int32_t[:, ::1] items          # of conjunctions, as (source, index): see find_sources
    cdef Conjunction* conjunctions
    cdef const int32_t[::1] elsewhere
    cdef const uint64_t[::1] single_seeds
    cdef const uint64_t[:, ::1] elsewhere_seeds
    cdef WordTable classes, vectors, gazetteers
    cdef FeatureWeights weights
    cdef CompiledNetwork network
    cdef TypeStore store
    cdef object topics
    cdef object lock        # a ForkLock; its lock is held while words are looked up and added
    cdef object identity    # owner of all stores of this extractor
    cdef const uint64_t[::1] nothing
    cdef Py_ssize_t n_occurrences, n_position, n_tags, window, reach, n_conjunctions, max_keys

    def __cinit__(self, plan, WordTable classes, WordTable vectors, WordTable gazetteers, Py_ssize_t n_gazetteers,
                  lock, FeatureWeights weights=None, topics=None, CompiledNetwork network=None):
        self.singles = own(plan["singles"], np.int32, 2, "singles")
        self.single_seeds = own(plan["single_seeds"], np.uint64, 1, "single_seeds")
        self.items = np.array(own(plan["conjunctions"], np.int32, 2, "conjunctions"))
        self.n_conjunctions = len(plan["conjunction_seeds"])
        self.elsewhere = own(plan["elsewhere"], np.int32, 1, "elsewhere")
        self.elsewhere_seeds = own(plan["elsewhere_seeds"], np.uint64, 2, "elsewhere_seeds")
        self.n_occurrences, self.window = plan["n_occurrences"], plan["window"]
        self.classes, self.vectors, self.gazetteers, self.weights = classes, vectors, gazetteers, weights
        self.topics = None if topics is None else checked_topics(topics)
        self.n_tags = weights.n_tags if weights is not None else 0
        self.network = network
        require(network is None or network.n_tags == self.n_tags, "the network and the weights have different tags")
        require(0 <= n_gazetteers <= MOST_GAZETTEERS, "there are too many gazetteers")
        self.n_position = N_POSITION_ATTRIBUTES + n_gazetteers
        self.max_keys = (self.singles.shape[0] + self.n_conjunctions
                         + 2 * 2 * self.n_occurrences * self.elsewhere.shape[0])
        self.nothing = np.zeros(self.n_position, np.uint64)
        require(network is None or network.n_attributes <= self.n_position, "the network reads unknown gazetteers")
        self.check_plan()
        self.name_sources()
        self.lay_out(own(plan["conjunction_starts"], np.int32, 1, "conjunction_starts"),
                     own(plan["conjunction_seeds"], np.uint64, 1, "conjunction_seeds"))
        self.lock, self.identity = lock, object()
        self.store = self.new_store(0)

    cdef int check_plan(self) except -1:
        """Raise ValueError unless all attributes and offsets of templates exist, and set ``reach``."""
        require(0 <= self.window <= FARTHEST and 0 <= self.n_occurrences <= MOST_OCCURRENCES, "the window is too wide")
        require(self.singles.shape[1] == 2 == self.items.shape[1], "templates have an attribute and an offset")
        require(self.single_seeds.shape[0] == self.singles.shape[0], "each template needs a seed")
        require(self.elsewhere_seeds.shape[0] == self.elsewhere.shape[0] and self.elsewhere_seeds.shape[1] == 2,
                "each template needs a seed for both neighbours")
        require_range(self.singles[:, 0], 0, N_TYPE_ATTRIBUTES, "templates must use attributes of words")
        require_range(self.singles[:, 1], -self.window, self.window + 1, "templates must use words in the window")
        require_range(self.elsewhere, 0, N_TYPE_ATTRIBUTES, "templates must use attributes of words")
        require_range(self.items[:, 0], 0, N_TYPE_ATTRIBUTES + self.n_position, "templates must use known attributes")
        require_range(self.items[:, 1], -FARTHEST, FARTHEST + 1, f"templates must use offsets of at most {FARTHEST}")
        self.reach = np.abs(np.asarray(self.items)[:, 1]).max(initial=0)
        return 0

    cdef void name_sources(self):
        """Rewrite items (attribute, offset) as (source, index), in the order of `find_sources`."""
        cdef Py_ssize_t item
        cdef int32_t attribute, source
        for item in range(self.items.shape[0]):
            attribute, source = self.items[item, 0], self.items[item, 1] + <int32_t> self.reach
            if attribute >= N_TYPE_ATTRIBUTES:
                attribute -= N_TYPE_ATTRIBUTES
                source += 2 * <int32_t> self.reach + 1
            self.items[item, 0], self.items[item, 1] = source, attribute

    cdef int lay_out(self, const int32_t[::1] starts, const uint64_t[::1] seeds) except -1:
        """Store the conjunctions in the layout of `conjunction_keys`."""
        cdef Py_ssize_t c
        cdef int32_t begin
        cdef Conjunction* each
        require(seeds.shape[0] == self.n_conjunctions == starts.shape[0] - 1, "each template needs a start and a seed")
        require_offsets(np.asarray(starts).astype(np.int64), self.items.shape[0], "conjunction_starts")
        for c in range(self.n_conjunctions):
            require(starts[c] < starts[c + 1], "a template must not be empty")
        self.conjunctions = <Conjunction*> PyMem_RawCalloc(max(self.n_conjunctions, 1), sizeof(Conjunction))
        if self.conjunctions == NULL:
            raise MemoryError("no memory for templates")
        for c in range(self.n_conjunctions):
            each, begin = &self.conjunctions[c], starts[c]
            each.seed, each.source, each.index = seeds[c], self.items[begin, 0], self.items[begin, 1]
            each.second_source, each.rest, each.end = -1, begin + 2, starts[c + 1]
            if begin + 1 < each.end:
                each.second_source, each.second_index = self.items[begin + 1, 0], self.items[begin + 1, 1]
        return 0

    def __dealloc__(self):
        PyMem_RawFree(self.conjunctions)

    cdef Py_ssize_t sum_width(self):
        """Return the number of sums of a word: one for each place and label."""
        return (2 * self.window + 3) * self.n_tags

    cdef TypeStore new_store(self, Py_ssize_t n_tokens):
        cdef TypeStore store = TypeStore(max(2 * MANY_TYPES, MANY_TYPES + n_tokens), self.sum_width(),
                                         0 if self.network is None else self.network.row_width)
        store.owner = self.identity
        cdef Py_ssize_t type
        cdef int a
        for type in (BEFORE_SENTENCE, AFTER_SENTENCE):
            store.reserve()
            for a in (WORD, LOWER, DIGITS, SHAPE, BRIEF):
                store.record(type).attributes[a] = 1 + type
            self.prepare(store, type)
        return store

    cdef void prepare(self, TypeStore store, Py_ssize_t type) noexcept:
        """Compute the numbers of a new word that depend on no other word: sums of weights, products in the network."""
        self.sum_singles(store, type)
        if self.network is not None:
            self.network.describe(store.record(type), store.row_of(type))

    cdef void sum_singles(self, TypeStore store, Py_ssize_t type) noexcept:
        """Sum the weights of a word's own features, for each position that it may have relative to a token.

        The positions are the offsets of the window; then the left and the right neighbour of another occurrence of the
        token.
        """
        cdef Py_ssize_t t, look_up, side
        cdef const uint64_t* attributes = store.record(type).attributes
        cdef double* sums = store.sums_of(type)
        if self.weights is None:
            return
        for look_up in range(2):  # prefetch all weights, then add them
            for t in range(self.singles.shape[0]):
                self.sum_one(self.single_seeds[t], attributes[self.singles[t, 0]],
                             sums + (self.singles[t, 1] + self.window) * self.n_tags, look_up)
            for t in range(self.elsewhere.shape[0]):
                for side in range(2):
                    self.sum_one(self.elsewhere_seeds[t, side], attributes[self.elsewhere[t]],
                                 sums + (2 * self.window + 1 + side) * self.n_tags, look_up)

    cdef inline void sum_one(self, uint64_t seed, uint64_t value, double* sums, bint look_up) noexcept nogil:
        cdef uint64_t key = combine(seed, value)
        if value == 0 or not self.weights.may_hold(key):
            return
        if look_up:
            self.weights.add(self.weights.row(key), sums)
        else:
            self.weights.prefetch(key)

    cdef Py_ssize_t intern(self, TypeStore store, str word) except -1:
        """Add a new word to the store and return its index."""
        cdef Py_ssize_t type = store.add(word, self.classes, self.vectors, self.gazetteers)
        self.prepare(store, type)
        store.ids.enter(word, type, <void*> (type + 1))
        return type

    def words(self, tokens):
        """Return the `Words` of a sequence of tokens."""
        cdef list words = list(tokens)  # a copy, which no other thread can alter
        cdef Py_ssize_t n = len(words), i
        types_array = np.empty(n, np.int32)
        cdef int32_t[::1] types = types_array
        cdef PyObject** items = items_of(words)
        cdef object type
        cdef TypeStore store
        with self.lock.current:
            if self.store.n_types > MANY_TYPES or self.store.n_types + n > self.store.capacity:
                self.store = self.new_store(n)
            store = self.store
            with nogil:
                for i in range(n):
                    types[i] = <int32_t> (<Py_ssize_t> store.ids.find_word(items[i])) - 1 if is_string(items[i]) else -1
            for i in range(n):
                if types[i] == -1:
                    # Only strings: the hash of another object is Python code, which could call this method.
                    type = store.ids.values.get(<str?> words[i])
                    types[i] = self.intern(store, words[i]) if type is None else type
        return Words(store, types_array)

    cdef Context context(self, tokens, offsets, documents):
        cdef Words words = tokens if isinstance(tokens, Words) else self.words(tokens)
        require(words.store.owner is self.identity, "these words belong to another extractor")
        cdef Context context = Context.__new__(Context)
        context.allocate(words.store, words.types, offsets, documents, self.n_position, self.gazetteers)
        context.make_room()
        context.read_topics(self.topics)
        return context

    cdef void find_sources(self, Context context, Py_ssize_t token, const uint64_t** sources) noexcept nogil:
        """Fill ``sources`` with the attributes of the words at offsets -reach to reach, then those of the positions."""
        cdef Py_ssize_t offset, n = 2 * self.reach + 1
        for offset in range(-self.reach, self.reach + 1):
            sources[offset + self.reach] = context.record_at(token + offset).attributes
            sources[offset + self.reach + n] = (
                position_of(&context.view, token + offset)
                if context.view.begin <= token + offset < context.view.end else &self.nothing[0]
            )

    cdef Py_ssize_t conjunction_keys(self, const uint64_t** sources, uint64_t* keys, Origin* origins) noexcept nogil:
        """Write the keys of the conjunctions, and their templates to ``origins`` unless NULL; return their number."""
        cdef Py_ssize_t c, item, n = 0, first = self.singles.shape[0] + 2 * self.elsewhere.shape[0]
        cdef const Conjunction* each
        cdef uint64_t h, value
        for c in range(self.n_conjunctions):
            each = &self.conjunctions[c]
            value = sources[each.source][each.index]
            if value == 0:
                continue
            h = combine(each.seed, value)
            if each.second_source >= 0:
                value = sources[each.second_source][each.second_index]
                if value == 0:
                    continue
                h = combine(h, value)
                for item in range(each.rest, each.end):
                    value = sources[self.items[item, 0]][self.items[item, 1]]
                    if value == 0:
                        break
                    h = combine(h, value)
                if value == 0:
                    continue
            keys[n] = h
            if origins != NULL:
                origins[n].template = <int32_t> (first + c)
            n += 1
        return n

    cdef Py_ssize_t neighbour_keys(self, Context context, Py_ssize_t token, uint64_t* keys,
                                   Origin* origins) noexcept nogil:
        """Write the keys of the neighbours of a token's other occurrences, and their ``origins`` unless NULL.

        Returns their number.
        """
        cdef int32_t places[2 * MOST_OCCURRENCES]
        cdef Py_ssize_t a, k, side, n = 0
        cdef int32_t neighbour
        cdef uint64_t value
        for k in range(context.other_occurrences(token, self.n_occurrences, places)):
            for side in range(2):
                neighbour = beside(&context.view, places[k], side)
                for a in range(self.elsewhere.shape[0] if neighbour != -1 else 0):
                    value = context.view.words[neighbour].attributes[self.elsewhere[a]]
                    if value:
                        keys[n] = combine(self.elsewhere_seeds[a, side], value)
                        if origins != NULL:
                            origins[n].template = <int32_t> (self.singles.shape[0] + 2 * a + side)
                            origins[n].place = neighbour
                        n += 1
        return n

    cdef Py_ssize_t token_keys(self, Context context, Py_ssize_t token, uint64_t* keys,
                               Origin* origins) noexcept nogil:
        """Write all keys of a token, and their ``origins`` unless NULL; return their number."""
        cdef Py_ssize_t t, n = 0, k
        cdef uint64_t value
        cdef const uint64_t* sources[2 * (2 * FARTHEST + 1)]
        context.enter(token)
        for t in range(self.singles.shape[0]):
            value = context.record_at(token + self.singles[t, 1]).attributes[self.singles[t, 0]]
            if value:
                keys[n] = combine(self.single_seeds[t], value)
                if origins != NULL:
                    origins[n].template, origins[n].place = <int32_t> t, <int32_t> token
                n += 1
        n += self.neighbour_keys(context, token, keys + n, NULL if origins == NULL else origins + n)
        self.find_sources(context, token, sources)
        k = n
        n += self.conjunction_keys(sources, keys + n, NULL if origins == NULL else origins + n)
        if origins != NULL:
            for t in range(k, n):
                origins[t].place = <int32_t> token
        return n

    def keys(self, tokens, sentence_offsets):
        """Return the feature keys of each token: (starts int64[n + 1], keys uint64[starts[-1]]).

        A key that occurs twice counts twice.
        """
        cdef Context context = self.context(tokens, sentence_offsets, None)
        cdef Py_ssize_t n = context.view.n, i, k = 0
        cdef int64_t[::1] starts = np.zeros(n + 1, np.int64)
        cdef uint64_t[::1] keys = np.empty(n * self.max_keys + 1, np.uint64)
        context.mark_places()
        for i in range(n):
            k += self.token_keys(context, i, &keys[k], NULL)
            starts[i + 1] = k
        return np.asarray(starts), np.asarray(keys)[:k].copy()

    def origins(self, tokens, sentence_offsets, chosen):
        """Return the features of the tokens ``chosen`` [m] in the order of `keys`, and the origin of each feature.

        Returns (starts int64[m + 1], keys uint64[F], origins int32[F, 2], attributes uint64[n, A]). Rows of origins are
        (template, token): the index of the template in `FeaturePlan.enumerated`, and the token itself or the neighbour
        of another occurrence. Columns of attributes are `TYPE_ATTRIBUTES`, `POSITION_ATTRIBUTES` and the gazetteers; 0
        means that a token does not have the attribute.
        """
        cdef const int64_t[::1] places = owned(chosen, np.int64, 1, "chosen")
        cdef Context context = self.context(tokens, sentence_offsets, None)
        cdef Py_ssize_t n = context.view.n, m = places.shape[0], i, j, k = 0
        cdef int64_t[::1] starts = np.zeros(m + 1, np.int64)
        cdef uint64_t[::1] keys = np.empty(m * self.max_keys + 1, np.uint64)
        cdef int32_t[:, ::1] origins = np.empty((m * self.max_keys + 1, 2), np.int32)
        cdef uint64_t[:, ::1] attributes = np.empty((n, N_TYPE_ATTRIBUTES + self.n_position), np.uint64)
        context.mark_places()
        for i in range(n):
            context.enter(i)
            for j in range(N_TYPE_ATTRIBUTES):
                attributes[i, j] = context.view.words[i].attributes[j]
            for j in range(self.n_position):
                attributes[i, N_TYPE_ATTRIBUTES + j] = position_of(&context.view, i)[j]
        for i in range(m):
            if not 0 <= places[i] < n:
                raise ValueError(f"token {places[i]} does not exist: the document has {n} tokens")
            k += self.token_keys(context, places[i], &keys[k], <Origin*> &origins[k, 0])
            starts[i + 1] = k
        return np.asarray(starts), np.asarray(keys)[:k].copy(), np.asarray(origins)[:k].copy(), np.asarray(attributes)

    def scores(self, tokens, sentence_offsets, documents=None):
        """Return the sums of the weights of each token's features, its unary log-potentials: float64[n, n_tags].

        ``tokens`` are strings or `Words`. For several concatenated documents, ``documents`` int64[D + 1] holds the
        first token of each and the number of tokens; each document gets the scores that it would get alone.
        """
        if self.weights is None:
            raise ValueError("this extractor has no weights to score with")
        cdef Context context = self.context(tokens, sentence_offsets, documents)
        scores_array = np.zeros((context.view.n, self.n_tags))
        buffer_array = np.empty((RING, self.n_conjunctions + 1), np.uint64)
        cdef double[:, ::1] scores = scores_array
        cdef uint64_t[:, ::1] buffer = buffer_array
        cdef int32_t[::1] outputs = self.network_outputs()
        if context.view.n:
            with nogil:
                context.mark_places()
                self.score_tokens(context, &scores[0, 0], buffer, &outputs[0])
        return scores_array

    def network_scores(self, tokens, sentence_offsets):
        """Return the part of `scores` that the network adds: float64[n, n_tags]."""
        cdef Context context = self.context(tokens, sentence_offsets, None)
        scores_array = np.zeros((context.view.n, self.n_tags))
        cdef double[:, ::1] scores = scores_array
        cdef Py_ssize_t i
        if self.network is None or not context.view.n:
            return scores_array
        cdef int32_t[::1] outputs = self.network_outputs()
        with nogil:
            context.mark_places()
            for i in range(context.view.n):
                context.enter(i)
                self.add_network(context, i, &scores[i, 0], &outputs[0])
        return scores_array

    cdef object network_outputs(self):
        """Return memory for the outputs of the network, whose tags may differ from those of the weights."""
        return np.empty(1 if self.network is None else self.network.n_outputs + self.network.units, np.int32)

    cdef inline void add_network(self, Context context, Py_ssize_t token, double* scores,
                                 int32_t* outputs) noexcept nogil:
        """Add the scores of the network to those of a token in the current sentence."""
        cdef const int8_t* rows[2 * FARTHEST + 1]
        cdef Py_ssize_t w, reach = self.network.window // 2
        if token + reach + LOOK_AHEAD < context.view.n:
            self.prefetch_products(context, context.types[token + reach + LOOK_AHEAD])
        for w in range(self.network.window):
            rows[w] = context.store.row_of(context.type_at(token + w - reach))
        self.network.add_scores(rows, position_of(&context.view, token), scores, outputs)

    cdef inline void prefetch_products(self, Context context, Py_ssize_t type) noexcept nogil:
        """Prefetch the products of a word."""
        cdef Py_ssize_t offset
        for offset in range(0, self.network.row_width, 64):
            prefetch(context.store.row_of(type) + offset)

    cdef void score_tokens(self, Context context, double* scores, uint64_t[:, ::1] buffer,
                           int32_t* outputs) noexcept nogil:
        """Compute the scores of all tokens in a pipeline of four stages, so that each stage prefetches for the next.

        Token i computes its keys, token i - 1 drops keys that certainly have no weights, token i - 2 looks up its
        features and token i - 3 adds their weights. The sums of single words are located for token i and added for
        token i - 1. The scores of the network are added for token i.
        """
        cdef Py_ssize_t n = context.view.n, i, j, k, n_keys[RING], n_sums[2]
        cdef const double* sums[2][MOST_SUMS]
        cdef const uint64_t* sources[2 * (2 * FARTHEST + 1)]
        cdef uint64_t* row
        for i in range(n + 3):
            if i < n:
                context.enter(i)
                row = &buffer[i % RING, 0]
                self.find_sources(context, i, sources)
                n_keys[i % RING] = self.conjunction_keys(sources, row, NULL)
                for k in range(n_keys[i % RING]):
                    self.weights.prefetch_filter(row[k])
                n_sums[i % 2] = self.find_word_sums(context, i, sums[i % 2])
                if self.network is not None:
                    self.add_network(context, i, scores + i * self.n_tags, outputs)
            if 1 <= i <= n:
                add_rows(scores + (i - 1) * self.n_tags, sums[(i - 1) % 2], n_sums[(i - 1) % 2], self.n_tags)
                j = (i - 1) % RING
                row = &buffer[j, 0]
                n_keys[j] = self.drop_unknown(row, n_keys[j])
                for k in range(n_keys[j]):
                    self.weights.prefetch(row[k])
            if 2 <= i <= n + 1:
                row = &buffer[(i - 2) % RING, 0]
                for k in range(n_keys[(i - 2) % RING]):
                    row[k] = self.weights.row(row[k])
            if 3 <= i:
                row = &buffer[(i - 3) % RING, 0]
                for k in range(n_keys[(i - 3) % RING]):
                    self.weights.add(row[k], scores + (i - 3) * self.n_tags)

    cdef Py_ssize_t drop_unknown(self, uint64_t* keys, Py_ssize_t n) noexcept nogil:
        """Move the keys that may have weights to the front and return their number. A branch would be unpredictable."""
        cdef Py_ssize_t k, n_possible = 0
        cdef uint64_t key
        for k in range(n):
            key = keys[k]
            keys[n_possible] = key
            n_possible += self.weights.may_hold(key)
        return n_possible

    cdef Py_ssize_t find_word_sums(self, Context context, Py_ssize_t token, const double** sums) noexcept nogil:
        """Locate and prefetch the sums of single words for a token; return their number."""
        cdef int32_t places[2 * MOST_OCCURRENCES]
        cdef Py_ssize_t offset, k, side, n = 0
        cdef int32_t neighbour
        for offset in range(-self.window, self.window + 1):
            sums[n] = self.sums_at(context, context.type_at(token + offset), offset + self.window)
            n += 1
        for k in range(context.other_occurrences(token, self.n_occurrences, places)):
            for side in range(2):
                neighbour = beside(&context.view, places[k], side)
                if neighbour != -1:
                    sums[n] = self.sums_at(context, context.types[neighbour], 2 * self.window + 1 + side)
                    n += 1
        for k in range(n):
            for offset in range(0, self.n_tags, 8):  # a cache line holds 8 doubles
                prefetch(sums[k] + offset)
        return n

    cdef inline const double* sums_at(self, Context context, Py_ssize_t type, Py_ssize_t place) noexcept nogil:
        return context.store.sums_of(type) + place * self.n_tags


cdef void add_rows(double* scores, const double** rows, Py_ssize_t n, Py_ssize_t n_tags) noexcept nogil:
    """Add the rows one by one to the scores of each tag; four tags at a time stay in registers."""
    cdef double a, b, c, d
    cdef Py_ssize_t k = 0, i
    while k + 4 <= n_tags:
        a, b, c, d = scores[k], scores[k + 1], scores[k + 2], scores[k + 3]
        for i in range(n):
            a += rows[i][k]
            b += rows[i][k + 1]
            c += rows[i][k + 2]
            d += rows[i][k + 3]
        scores[k], scores[k + 1], scores[k + 2], scores[k + 3] = a, b, c, d
        k += 4
    while k < n_tags:
        for i in range(n):
            scores[k] += rows[i][k]
        k += 1
