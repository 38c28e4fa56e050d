# cython: language_level=3
"""Attributes of each position in a document, computed sentence by sentence. Called by features.pyx."""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from hashing cimport Slot, combine, find, hash_start

from herdner._ext.feature_tables cimport WordTable
from herdner._ext.memory cimport own, owned, require, require_offsets
from herdner._ext.smoothing cimport longest
from herdner._ext.words cimport ALL_CAPS, CAPITAL, HAS_LETTER, LOWER, SMALL, VECTOR, TypeRecord, TypeStore


cdef enum:
    MOST_CLASSES = 512  # largest vector class that `find_topics` counts; 0 means none


cdef class Context:
    cdef int allocate(self, TypeStore store, const int32_t[::1] types, sentence_offsets, documents,
                      Py_ssize_t n_position, WordTable gazetteers) except -1:
        """Allocate the arrays of one call.

        ``types`` [n]: the index of each token's word in the store; ``sentence_offsets`` int64[S + 1]; ``documents``
        int64[D + 1]: the first token of each document, or None for one document.
        """
        cdef Py_ssize_t n = types.shape[0]
        cdef const int64_t[::1] offsets
        sentence_offsets = owned(sentence_offsets, np.int64, 1, "sentence_offsets")
        require_offsets(sentence_offsets, n, "sentence offsets")
        offsets = sentence_offsets
        if documents is not None:
            documents = owned(documents, np.int64, 1, "documents")
        self.documents = sentences_of(offsets, documents)
        words = np.empty(max(n, 1), np.uintp)
        links = np.empty((4, max(n, 1)), np.int32)
        position = np.empty((longest(offsets), n_position), np.uint64)
        cdef size_t[::1] words_view = words
        cdef int32_t[:, ::1] links_view = links
        cdef uint64_t[:, ::1] position_view = position
        self.arrays = [words, links, position]
        self.topics = None
        self.store, self.offsets, self.types, self.gazetteers = store, offsets, types, gazetteers
        self.view.n, self.view.n_position = n, n_position
        self.view.words = <const TypeRecord**> &words_view[0]
        self.view.previous, self.view.next = &links_view[0, 0], &links_view[1, 0]
        self.view.occurrence = &links_view[2, 0]
        self.view.sentence = &links_view[3, 0]
        self.view.position = &position_view[0, 0]
        return 0

    cdef int make_room(self) except -1:
        """Allocate the tables of occurrences, after all words are in the store."""
        cdef Py_ssize_t n_slots = 0, d
        self.n_groups = len(self.store.groups)
        for d in range(self.documents.shape[0] - 1):
            n_slots += self.slots_of(d)
        occurrences = np.empty((max(n_slots, 1), 4), np.int32)
        cdef int32_t[:, ::1] rows = occurrences
        rows[:] = -1
        self.arrays.append(occurrences)
        self.view.occurrences = <Occurrences*> &rows[0, 0]
        return 0

    cdef int read_topics(self, topics) except -1:
        """Compute the topics of all documents, after all words are in the store; ``topics`` may be None."""
        cdef Py_ssize_t d
        if topics is None:
            return 0
        self.centres, self.biases, self.topic_starts = topics
        self.topics = np.zeros((max(self.offsets.shape[0] - 1, 1), N_TOPICS), np.uint8)
        cdef double[::1] sums = np.empty(self.biases.shape[0])
        cdef int32_t[::1] counts = np.empty(self.centres.shape[0], np.int32)
        with nogil:
            for d in range(self.documents.shape[0] - 1):
                self.find_topics(d, sums, counts)
        return 0

    cdef void find_topics(self, Py_ssize_t d, double[::1] sums, int32_t[::1] counts) noexcept nogil:
        """Choose the topics of a document: for each number of topics the one with the nearest centre.

        The document is represented by the square roots of the relative frequencies of its vector classes. The nearest
        centre has the largest inner product minus half its squared length; both are multiplied by the square root of
        the number of tokens here.
        """
        cdef Py_ssize_t first = self.documents[d], last = self.documents[d + 1], i, k, c, best
        cdef Py_ssize_t n = self.offsets[last] - self.offsets[first]
        cdef double root
        counts[:] = 0
        for i in range(self.offsets[first], self.offsets[last]):
            counts[self.store.record(self.types[i]).attributes[VECTOR + 2]] += 1
        root = sqrt(n)
        for k in range(sums.shape[0]):
            sums[k] = root * self.biases[k]
        for c in range(counts.shape[0]):
            if counts[c]:
                root = sqrt(counts[c])
                for k in range(sums.shape[0]):
                    sums[k] += root * self.centres[c, k]
        for i in range(N_TOPICS):
            best = self.topic_starts[i]
            for k in range(self.topic_starts[i], self.topic_starts[i + 1]):
                if sums[k] > sums[best]:
                    best = k
            for k in range(first, last):
                self.topics[k, i] = <uint8_t> (1 + best - self.topic_starts[i])

    cdef Py_ssize_t slots_of(self, Py_ssize_t d) noexcept nogil:
        """Return the number of slots for the occurrences of a document: a power of 2, at most half of them in use."""
        cdef Py_ssize_t n_tokens = self.offsets[self.documents[d + 1]] - self.offsets[self.documents[d]], n_slots = 8
        while n_slots < 2 * min(n_tokens, self.n_groups):
            n_slots *= 2
        return n_slots

    cdef void mark_places(self) noexcept nogil:
        """Store the words and the occurrences of all tokens."""
        cdef Py_ssize_t i, d
        for i in range(self.view.n):
            self.view.words[i] = self.store.record(self.types[i])
        self.view.first_slot = 0
        for d in range(self.documents.shape[0] - 1):
            self.view.n_slots = self.slots_of(d)
            link_document(&self.view, &self.offsets[0], self.documents[d], self.documents[d + 1])
            self.view.first_slot += self.view.n_slots

    cdef void describe(self, Py_ssize_t s) noexcept nogil:
        """Compute the position attributes of a sentence; they replace those of the previous sentence."""
        cdef Py_ssize_t i, k
        self.view.begin, self.view.end = self.offsets[s], self.offsets[s + 1]
        describe_sentence(&self.view, self.view.begin, self.view.end)
        if self.topics is not None:
            for i in range(self.view.begin, self.view.end):
                for k in range(N_TOPICS):
                    position_of(&self.view, i)[TOPIC + k] = self.topics[s, k]
        if self.gazetteers is not None:
            mark_gazetteers(&self.view, self.view.begin, self.view.end, self.gazetteers)

    cdef Py_ssize_t other_occurrences(self, Py_ssize_t token, Py_ssize_t most, int32_t* places) noexcept nogil:
        """Write the nearest other occurrences of a capitalised token's group to ``places`` and return their number.

        There are at most ``most`` on either side.
        """
        cdef Py_ssize_t _, n = 0
        cdef int32_t before = token, after = token
        if not self.view.words[token].case & CAPITAL:
            return 0
        for _ in range(most):
            if before != -1:
                before = self.view.previous[before]
            if before != -1:
                places[n] = before
                n += 1
            if after != -1:
                after = self.view.next[after]
            if after != -1:
                places[n] = after
                n += 1
        return n


cdef bint is_headline(View* view, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Return True for a sentence in capitals: three or more words, none in lower case, most in capitals."""
    cdef Py_ssize_t i, n_words = 0, n_all_caps = 0
    for i in range(begin, end):
        if view.words[i].case & SMALL:
            return False
        n_words += (view.words[i].case & HAS_LETTER) != 0
        n_all_caps += (view.words[i].case & ALL_CAPS) != 0
    return n_words >= 3 and 2 * n_all_caps > n_words


cdef void link_token(View* view, Py_ssize_t token, bint free_choice) noexcept nogil:
    """Add a token to the occurrences of its group. ``free_choice``: the position does not require a capital."""
    cdef int32_t group = view.words[token].group
    cdef Py_ssize_t mask = view.n_slots - 1
    cdef Py_ssize_t slot = (<uint64_t> group * 0x9E3779B97F4A7C15ULL >> 20) & mask
    cdef Occurrences* entries = view.occurrences + view.first_slot
    cdef Occurrences* entry
    while entries[slot].group != group and entries[slot].group != -1:
        slot = (slot + 1) & mask
    entry = &entries[slot]
    view.previous[token] = view.next[token] = -1
    if entry.group == -1:
        entry.group = group
        entry.n_small = entry.n_capital_inside = 0
    else:
        view.previous[token] = entry.last
        view.next[entry.last] = token
    entry.last = token
    view.occurrence[token] = view.first_slot + slot
    entry.n_small += (view.words[token].case & SMALL) != 0
    entry.n_capital_inside += free_choice and (view.words[token].case & CAPITAL) != 0


cdef void mark_runs(View* view, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Describe runs of capitalised words: length, position in the run, first and last word, words around it."""
    cdef Py_ssize_t i = begin, j, k
    cdef uint64_t* position
    while i < end:
        if not view.words[i].case & CAPITAL:
            i += 1
            continue
        j = i + 1
        while j < end and view.words[j].case & CAPITAL:
            j += 1
        for k in range(i, j):
            position = position_of(view, k)
            position[RUN] = 1 + 4 * min(j - i, 6) + (2 if k > i else 0) + (1 if k < j - 1 else 0)
            position[RUN_FIRST] = view.words[i].attributes[LOWER]
            position[RUN_LAST] = view.words[j - 1].attributes[LOWER]
            position[RUN_BEFORE] = view.words[i - 1].attributes[LOWER] if i > begin else 1
            position[RUN_AFTER] = view.words[j].attributes[LOWER] if j < end else 2
        i = j


cdef uint64_t casing(View* view, Py_ssize_t token, bint first, bint headline) noexcept nogil:
    """Return the attribute that combines the case of a word here and elsewhere in the document."""
    cdef Occurrences* entry = &view.occurrences[view.occurrence[token]]
    cdef uint32_t case = view.words[token].case
    cdef bint inside = (case & CAPITAL) and not first and not headline
    if case & CAPITAL:
        return (32 + 16 * ((case & ALL_CAPS) != 0) + 8 * headline + 4 * first
                + 2 * (entry.n_capital_inside - inside > 0) + (entry.n_small > 0))
    if case & SMALL and entry.n_capital_inside:
        return 2
    return 0


cdef Py_ssize_t first_word(View* view, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Return the first word of a sentence, after opening quotes and bullets."""
    while begin < end - 1 and not view.words[begin].case & HAS_LETTER:
        begin += 1
    return begin


cdef void link_document(View* view, const int64_t* offsets, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Add the tokens of sentences ``begin`` to ``end`` - 1 to the occurrences of their groups."""
    cdef Py_ssize_t s, i, first
    cdef bint headline
    for s in range(begin, end):
        headline = is_headline(view, offsets[s], offsets[s + 1])
        first = first_word(view, offsets[s], offsets[s + 1])
        for i in range(offsets[s], offsets[s + 1]):
            view.sentence[i] = s
            link_token(view, i, i > first and not headline)


cdef void describe_sentence(View* view, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Compute all position attributes of a sentence except those of gazetteers."""
    cdef Py_ssize_t i, first = first_word(view, begin, end)
    cdef bint headline = is_headline(view, begin, end)
    memset(view.position, 0, (end - begin) * view.n_position * sizeof(uint64_t))
    for i in range(begin, end):
        position_of(view, i)[CASING] = casing(view, i, i <= first, headline)
        position_of(view, i)[HEADLINE] = headline
        position_of(view, i)[BIAS] = 1
    mark_runs(view, begin, end)


cdef void mark_phrase(View* view, Py_ssize_t begin, Py_ssize_t end, uint32_t lists) noexcept nogil:
    """Mark the position of each token in a gazetteer entry: 1 only, 2 first, 3 inside, 4 last. Longer entries win."""
    cdef Py_ssize_t list_index, k
    cdef uint64_t* value
    for list_index in range(view.n_position - N_POSITION_ATTRIBUTES):
        if not (lists >> list_index) & 1:
            continue
        if position_of(view, begin)[N_POSITION_ATTRIBUTES + list_index] > 2:
            continue  # inside an entry that begins earlier
        for k in range(begin, end):
            value = &position_of(view, k)[N_POSITION_ATTRIBUTES + list_index]
            value[0] = 1 if end - begin == 1 else 2 if k == begin else 4 if k == end - 1 else 3


cdef void mark_gazetteers(View* view, Py_ssize_t begin, Py_ssize_t end,
                          WordTable phrases) noexcept nogil:
    """Mark the entries of the gazetteers, matched without regard to case, unless the text begins them in lower case."""
    cdef Py_ssize_t i, j
    cdef uint64_t h
    cdef const Slot* slot
    for i in range(begin, end):
        if not view.words[i].phrase or view.words[i].case & SMALL:
            continue
        h = hash_start()
        for j in range(i, min(end, i + LONGEST_PHRASE)):
            h = combine(h, view.words[j].attributes[LOWER])
            slot = find(phrases.slots, phrases.mask, h)
            if slot == NULL:
                break
            mark_phrase(view, i, j + 1, <uint32_t> slot.value)
            if not slot.value & PHRASE_CONTINUES:
                break


cdef object checked_topics(topics):
    """Return private copies of the arrays of `herdner.ner.lexicon.Topics`."""
    cdef const int32_t[::1] starts
    cdef Py_ssize_t k
    centres, biases = own(topics.centres, np.float32, 2, "centres"), own(topics.biases, np.float32, 1, "biases")
    all_starts = starts = own(topics.starts, np.int32, 1, "starts")
    require_offsets(all_starts.astype(np.int64), len(biases), "starts")
    require(centres.shape[0] > MOST_CLASSES and centres.shape[1] == len(biases) and len(starts) == N_TOPICS + 1,
            "topics need a centre and a bias for each topic, and a row for each vector class")
    for k in range(N_TOPICS):
        require(starts[k] < starts[k + 1], "a set of topics must not be empty")
    return centres, biases, all_starts


cdef sentences_of(const int64_t[::1] offsets, const int64_t[::1] documents):
    """Return the first sentence of each document and the number of sentences: int64[D + 1]; None is one document."""
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
