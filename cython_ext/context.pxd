# What a position shows in its document: casing of the same word elsewhere, runs of capitals, headlines, gazetteers.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from hashing cimport Slot, combine, find, hash_start
from words cimport ALL_CAPS, CAPITAL, HAS_LETTER, LOWER, SMALL, TypeRecord, WORD

cdef enum:
    # attributes of positions, in the order of features.POSITION_ATTRIBUTES; the gazetteers follow
    CASING = 0
    HEADLINE = 1
    RUN = 2
    RUN_FIRST = 3
    RUN_LAST = 4
    RUN_BEFORE = 5
    RUN_AFTER = 6
    BIAS = 7
    N_POSITION_ATTRIBUTES = 8
    LONGEST_PHRASE = 12                    # words of a gazetteer entry
    MOST_GAZETTEERS = 24
    PHRASE_CONTINUES = 1 << 30           # a longer entry begins with these words

ctypedef struct Occurrences:
    # the occurrences of one group of words (the same but for case) in a document
    int32_t group
    int32_t last
    int32_t n_small
    int32_t n_capital_inside           # capitalised where nothing asks for a capital

ctypedef struct View:
    # documents one behind the other: caller-allocated arrays of n tokens each
    Py_ssize_t n
    Py_ssize_t n_position
    const TypeRecord** words
    int32_t* previous                  # neighbouring occurrences of the same group, or -1
    int32_t* next
    int32_t* occurrence                # the token's entry in `occurrences`
    int32_t* sentence                  # the sentence that the token stands in
    Occurrences* occurrences           # of the document at hand: 2^k >= 2 n slots, group -1 where empty
    Py_ssize_t n_slots
    uint64_t* position                 # n x n_position attributes, 0 where there is none


cdef inline uint64_t* position_of(View* view, Py_ssize_t token) noexcept nogil:
    return &view.position[token * view.n_position]


cdef inline int32_t beside(View* view, Py_ssize_t token, bint right) noexcept nogil:
    """The token on the left or right in the same sentence, or -1."""
    cdef Py_ssize_t place = token + 1 if right else token - 1
    return place if 0 <= place < view.n and view.sentence[place] == view.sentence[token] else -1


cdef inline bint is_headline(View* view, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Sentence in capitals: three or more words with letters, none of which begins with a small letter."""
    cdef Py_ssize_t i, n_words = 0, n_all_caps = 0
    for i in range(begin, end):
        if view.words[i].case & SMALL:
            return False
        n_words += (view.words[i].case & HAS_LETTER) != 0
        n_all_caps += (view.words[i].case & ALL_CAPS) != 0
    return n_words >= 3 and 2 * n_all_caps > n_words


cdef inline void link_token(View* view, Py_ssize_t token, bint free_choice) noexcept nogil:
    """Enter a token among the occurrences of its group. ``free_choice``: nothing but the word itself asks for a
    capital.
    """
    cdef int32_t group = view.words[token].group
    cdef Py_ssize_t mask = view.n_slots - 1
    cdef Py_ssize_t slot = (<uint64_t> group * 0x9E3779B97F4A7C15ULL >> 20) & mask
    cdef Occurrences* entry
    while view.occurrences[slot].group != group and view.occurrences[slot].group != -1:
        slot = (slot + 1) & mask
    entry = &view.occurrences[slot]
    view.previous[token] = view.next[token] = -1
    if entry.group == -1:
        entry.group = group
        entry.n_small = entry.n_capital_inside = 0
    else:
        view.previous[token] = entry.last
        view.next[entry.last] = token
    entry.last = token
    view.occurrence[token] = slot
    entry.n_small += (view.words[token].case & SMALL) != 0
    entry.n_capital_inside += free_choice and (view.words[token].case & CAPITAL) != 0


cdef inline void mark_runs(View* view, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Runs of capitalised words: length and place in the run, its first and last word, the words around it."""
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


cdef inline uint64_t casing(View* view, Py_ssize_t token, bint first, bint headline) noexcept nogil:
    """How the word is cased here and elsewhere in the document."""
    cdef Occurrences* entry = &view.occurrences[view.occurrence[token]]
    cdef uint32_t case = view.words[token].case
    cdef bint inside = (case & CAPITAL) and not first and not headline
    if case & CAPITAL:
        return (32 + 16 * ((case & ALL_CAPS) != 0) + 8 * headline + 4 * first
                + 2 * (entry.n_capital_inside - inside > 0) + (entry.n_small > 0))
    if case & SMALL and entry.n_capital_inside:
        return 2
    return 0


cdef inline Py_ssize_t slots_for(Py_ssize_t n_tokens) noexcept nogil:
    """The number of slots that the occurrences of a document take."""
    cdef Py_ssize_t n_slots = 8
    while n_slots < 2 * n_tokens:
        n_slots *= 2
    return n_slots


cdef inline void describe_document(View* view, const int64_t* offsets, Py_ssize_t begin,
                                   Py_ssize_t end) noexcept nogil:
    """All position attributes but the gazetteers', in the sentences from ``begin`` to ``end`` (exclusive)."""
    cdef Py_ssize_t s, i, first
    cdef bint headline
    for s in range(begin, end):
        headline = is_headline(view, offsets[s], offsets[s + 1])
        first = offsets[s]
        while first < offsets[s + 1] - 1 and not view.words[first].case & HAS_LETTER:
            first += 1  # an opening quote or bullet does not take the sentence's capital
        for i in range(offsets[s], offsets[s + 1]):
            position_of(view, i)[BIAS] = 1
            view.sentence[i] = s
            position_of(view, i)[HEADLINE] = headline
            link_token(view, i, i > first and not headline)
        mark_runs(view, offsets[s], offsets[s + 1])
    for s in range(begin, end):
        first = offsets[s]
        while first < offsets[s + 1] - 1 and not view.words[first].case & HAS_LETTER:
            first += 1
        for i in range(offsets[s], offsets[s + 1]):
            position_of(view, i)[CASING] = casing(view, i, i <= first, position_of(view, i)[HEADLINE])


cdef inline void mark_phrase(View* view, Py_ssize_t begin, Py_ssize_t end, uint32_t lists) noexcept nogil:
    """Give the tokens of a gazetteer entry their place in it (1 to 4: alone, first, inside, last); longer entries
    win.
    """
    cdef Py_ssize_t list_index, k
    cdef uint64_t* value
    for list_index in range(view.n_position - N_POSITION_ATTRIBUTES):
        if not (lists >> list_index) & 1:
            continue
        if position_of(view, begin)[N_POSITION_ATTRIBUTES + list_index] > 2:
            continue  # inside an entry that began earlier
        for k in range(begin, end):
            value = &position_of(view, k)[N_POSITION_ATTRIBUTES + list_index]
            value[0] = 1 if end - begin == 1 else 2 if k == begin else 4 if k == end - 1 else 3


cdef inline void mark_gazetteers(View* view, Py_ssize_t begin, Py_ssize_t end, const Slot* phrases,
                                 uint64_t mask) noexcept nogil:
    """Entries of the gazetteers, matched without regard to case, unless the text begins them with a small letter."""
    cdef Py_ssize_t i, j
    cdef uint64_t h
    cdef const Slot* slot
    for i in range(begin, end):
        if not view.words[i].phrase or view.words[i].case & SMALL:
            continue
        h = hash_start()
        for j in range(i, min(end, i + LONGEST_PHRASE)):
            h = combine(h, view.words[j].attributes[LOWER])
            slot = find(phrases, mask, h)
            if slot == NULL:
                break
            mark_phrase(view, i, j + 1, <uint32_t> slot.value)
            if not slot.value & PHRASE_CONTINUES:
                break
