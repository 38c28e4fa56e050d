# cython: language_level=3
"""Loops of the rules that link tokens. Called by ``herdner.crf.link_rules``."""

import numpy as np

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.memory cimport Memory, owned, require, require_offsets
from herdner._ext.smoothing cimport own_sequences
from herdner._ext.spellings cimport (
    BEGINS_CAPITAL, BEGINS_SMALL, IN_CAPITALS, OPENS, TokenSpellings, Spelling,
)

cdef enum:
    MAX_BULLETS = 3  # tokens without letters before the first word of a sentence: "1 .", "--", "(4)"


def checked_borders(sentence_offsets, Py_ssize_t n_tokens):
    """Return the sentence offsets as int64[S + 1].

    Raises ValueError unless they are integers that start at 0, end at ``n_tokens`` and never decrease.
    """
    result = np.asarray(sentence_offsets)
    if result.dtype.kind not in "iu" and result.shape[:1] != (0,) or result.ndim != 1:
        raise ValueError("sentence offsets must be a list of whole numbers")
    result = np.array(result, np.int64, order="C")  # a copy, which no other thread can change
    cdef const int64_t[::1] borders = result
    cdef Py_ssize_t s
    if not borders.shape[0] or borders[0] != 0 or borders[borders.shape[0] - 1] != n_tokens:
        raise ValueError(f"sentence offsets must run from 0 to the number of tokens ({n_tokens})")
    for s in range(1, borders.shape[0]):
        if borders[s] < borders[s - 1]:
            raise ValueError(f"sentence offsets must not decrease, as from {borders[s - 1]} to {borders[s]}")
    return result


cdef object checked_documents(documents, Py_ssize_t n):
    """Return a private copy of the first token of each document and the number of tokens, n."""
    result = owned(np.array([0, n]) if documents is None else documents, np.int64, 1, "documents")
    require_offsets(result, n, "documents")
    return result


def name_tokens(TokenSpellings said not None, sentence_offsets, Py_ssize_t min_letters):
    """Return the tokens of one document that are probably names: list[int], ascending.

    These are the tokens that begin with a capital. A token whose position requires a capital is left out if the
    document also contains the word in lower case.
    """
    tokens, _ = name_tokens_of_documents(said, sentence_offsets, None, min_letters)
    return tokens.tolist()


cdef tuple name_tokens_of_documents(TokenSpellings said, sentence_offsets, documents, Py_ssize_t min_letters):
    """Return the `name_tokens` of D concatenated documents and the first of each document: (int32[m], int64[D + 1]).

    ``documents`` int64[D + 1] holds the first token of each document and the number of tokens; None means one document.
    """
    cdef const int64_t[::1] borders = own_sequences(sentence_offsets, said.n)
    cdef const int64_t[::1] starts = checked_documents(documents, said.n)
    # The last document with this word, or -1. There are many more words than tokens, and only those of tokens are set.
    cdef int32_t[::1] last_document = np.empty(said.n_words, np.int32)
    result, firsts = np.empty(said.n, np.int32), np.zeros(starts.shape[0], np.int64)
    cdef int32_t[::1] tokens = result
    cdef int64_t[::1] first = firsts
    cdef Py_ssize_t s = 0, d, token, m = 0
    with nogil:
        for token in range(said.n):
            if said.at[token].small >= 0:
                last_document[said.at[token].small] = -1
        for d in range(starts.shape[0] - 1):
            for token in range(starts[d], starts[d + 1]):
                last_document[said.at[token].word] = <int32_t> d
            while s < borders.shape[0] - 1 and borders[s] < starts[d + 1]:
                m += names_of(said.at, borders[s], borders[s + 1], min_letters, &last_document[0], <int32_t> d,
                              &tokens[m])
                s += 1
            first[d + 1] = m
    return result[:m], firsts


cdef Py_ssize_t names_of(const Spelling* at, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t min_letters,
                         const int32_t* last_document, int32_t document, int32_t* out) noexcept nogil:
    """Write the names of a sentence to ``out`` and return their number."""
    cdef Py_ssize_t token, m = 0
    cdef int headline = -1  # not determined yet
    for token in range(begin, end):
        if not at[token].kind & BEGINS_CAPITAL or at[token].n_letters < min_letters:
            continue
        if last_document[at[token].small] == document:
            if opens(at, begin, token):
                continue
            if headline == -1:
                headline = is_headline(at, begin, end)
            if headline:
                continue
        out[m] = <int32_t> token
        m += 1
    return m


cdef bint opens(const Spelling* at, Py_ssize_t begin, Py_ssize_t token) noexcept nogil:
    """Return True if a token begins the sentence that starts at ``begin``, or a sentence inside it."""
    cdef Py_ssize_t i
    if token == begin or at[token - 1].kind & OPENS:
        return True
    if token - begin > MAX_BULLETS:
        return False
    for i in range(begin, token):
        if at[i].n_letters:
            return False
    return True


cdef bint is_headline(const Spelling* at, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Return True for three or more words of which none begins in lower case and most are in capitals."""
    cdef Py_ssize_t i, n_words = 0, n_capitals = 0
    for i in range(begin, end):
        if not at[i].n_letters:
            continue
        if at[i].kind & BEGINS_SMALL:
            return False
        n_words += 1
        n_capitals += (at[i].kind & IN_CAPITALS) != 0
    return n_words >= 3 and 2 * n_capitals > n_words


def same_words(TokenSpellings said not None, sentence_offsets, documents, Py_ssize_t min_letters, bint fold_case,
               Py_ssize_t nearest):
    """Link the `name_tokens` that are the same word, as `herdner.crf.link_rules.SameWord` describes: int32[F, 2]."""
    mentions, firsts = name_tokens_of_documents(said, sentence_offsets, documents, min_letters)
    cdef const int32_t[::1] tokens = mentions
    cdef const int64_t[::1] first = firsts
    cdef Py_ssize_t m = tokens.shape[0], d, i
    rows = np.empty((2, m), np.int32)
    cdef int32_t[::1] groups = rows[0], later = rows[1]
    cdef int32_t[:, ::1] of_group = np.empty((2, said.n_folded if fold_case else said.n_words), np.int32)
    cdef int64_t n_links = 0
    with nogil:
        for i in range(m):
            groups[i] = said.at[tokens[i]].folded if fold_case else said.at[tokens[i]].word
        for d in range(first.shape[0] - 1):
            n_links += link_groups(groups, first[d], first[d + 1], nearest, later, of_group)
    return nearest_links(tokens, later, nearest, n_links)


cdef enum:
    NAME = 1    # for `company_runs`: a token of a name that is no designator
    START = 2   # the first token of a sentence


@cython.boundscheck(True)
cdef bytearray company_kinds(TokenSpellings said, list tokens, sentence_offsets, documents, frozenset designators):
    """Return NAME and START for each token of D concatenated documents, and START behind the last one."""
    cdef const int64_t[::1] borders = own_sequences(sentence_offsets, said.n)
    cdef const int32_t[::1] names = name_tokens_of_documents(said, sentence_offsets, documents, 1)[0]
    cdef Py_ssize_t i
    cdef bytearray kinds = bytearray(said.n + 1)
    cdef unsigned char[::1] kind = kinds
    for i in range(names.shape[0]):
        kind[names[i]] = NAME if tokens[names[i]] not in designators else 0
    for i in range(borders.shape[0]):
        kind[borders[i]] |= START
    return kinds


@cython.boundscheck(True)
cdef list company_runs(unsigned char[::1] kind, list tokens, Py_ssize_t token, Py_ssize_t end, frozenset designators,
                       frozenset last_words):
    """Return the runs of `name_tokens` of the document ``token`` to ``end`` - 1 for `herdner.crf.link_rules.Company`.

    Returns list[(begin, end, is_designated, is_full)]: a designator follows the run; it does, or the run has several
    words and ends in one of ``last_words``. A run that begins a sentence is also returned without its first word. Only
    runs are returned whose first word is also the first word of a full run.
    """
    cdef Py_ssize_t begin, after
    cdef list runs = []
    cdef set wanted
    cdef tuple run
    cdef bint is_designated, is_last
    while token < end:
        if not kind[token] & NAME:
            token += 1
            continue
        begin = token
        token += 1
        while kind[token] == NAME:
            token += 1
        after = token
        if not kind[after] & START and tokens[after] in (",", "&"):
            after += 1
        is_designated = not kind[after] & START and tokens[after] in designators
        is_last = tokens[token - 1] in last_words
        runs.append((begin, token, is_designated, is_designated or is_last and token > begin + 1))
        if kind[begin] & START and token > begin + 1:
            runs.append((begin + 1, token, is_designated, is_designated or is_last and token > begin + 2))
    wanted = {(<str?> tokens[<Py_ssize_t> run[0]]).casefold() for run in runs if run[3]}
    return [run for run in runs if (<str?> tokens[<Py_ssize_t> run[0]]).casefold() in wanted]


cdef set pairs_of_companies(list runs, list tokens, Py_ssize_t nearest):
    """Return the pairs of linked tokens of a document from its `company_runs`."""
    cdef dict full = {}, early = {}  # the last ``nearest`` full names and short forms by their first word
    cdef set pairs = set()
    cdef list known
    cdef tuple run, other
    for run in runs:
        key = (<str?> tokens[<Py_ssize_t> run[0]]).casefold()
        known = full.setdefault(key, [])
        if run[2] or (run[3] and not known):
            if not known:
                for other in early.get(key, ()):
                    add_prefix(pairs, tokens, other, run, other)
        else:
            for other in known:
                add_prefix(pairs, tokens, other, run, run)
            known = early.setdefault(key, [])
        known.append(run)
        if len(known) > nearest:
            del known[0]
    return pairs


@cython.boundscheck(True)
def company_links(TokenSpellings said not None, list tokens not None, sentence_offsets, documents,
                  frozenset designators not None, frozenset last_words not None, Py_ssize_t nearest):
    """Return the links of `herdner.crf.link_rules.Company` in D documents: int32[F, 2], ascending and distinct.

    ``documents``: as in `name_tokens_of_documents`; ``last_words``: the last words of full names, and ``designators``;
    ``nearest``: the number of full names to which a short form is linked.
    """
    cdef const int64_t[::1] starts = checked_documents(documents, said.n)
    cdef list words = list(tokens), links = []
    cdef bytearray kinds = None
    cdef Py_ssize_t d, token
    require(len(words) == said.n, "each token needs a spelling")
    for d in range(starts.shape[0] - 1):
        for token in range(starts[d], starts[d + 1]):
            if words[token] in last_words:
                break
        else:
            continue
        if kinds is None:
            kinds = company_kinds(said, words, sentence_offsets, documents, designators)
        runs = company_runs(kinds, words, starts[d], starts[d + 1], designators, last_words)
        links += sorted(pairs_of_companies(runs, words, nearest))
    return np.array(links, np.int32).reshape(-1, 2)


cdef int add_prefix(set pairs, list tokens, tuple earlier, tuple later, tuple short) except -1:
    """Add the pairs of equal words of two company names if the shorter one is a prefix of the other."""
    cdef Py_ssize_t first = earlier[0], second = later[0], n = short[1] - short[0], k
    if n > min(earlier[1] - first, later[1] - second):
        return 0
    for k in range(n):
        if (<str?> tokens[first + k]).casefold() != (<str?> tokens[second + k]).casefold():
            return 0
    for k in range(n):
        pairs.add((first + k, second + k))
    return 0


cdef int64_t link_groups(const int32_t[::1] groups, int64_t begin, int64_t end, int64_t nearest, int32_t[::1] later,
                         int32_t[:, ::1] of_group) noexcept nogil:
    """Fill ``later`` with the next mention of the same group for each mention of a document, or -1.

    Returns the number of links. ``of_group`` [2, groups] is scratch.
    """
    cdef int64_t i, n_links = 0
    cdef int32_t[::1] latest = of_group[0], sizes = of_group[1]
    for i in range(begin, end):
        latest[groups[i]], sizes[groups[i]] = -1, 0
    for i in range(end - 1, begin - 1, -1):
        later[i] = latest[groups[i]]
        latest[groups[i]] = <int32_t> i
        n_links += min(<int64_t> sizes[groups[i]], nearest)
        sizes[groups[i]] += 1
    return n_links


cdef nearest_links(const int32_t[::1] mentions, const int32_t[::1] later, Py_ssize_t nearest, int64_t n_links):
    """Return the links of each mention with up to ``nearest`` earlier ones of its group: int32[F, 2], ascending."""
    cdef Py_ssize_t i, k, other, row = 0
    result = np.empty((n_links, 2), np.int32)
    cdef int32_t[:, ::1] links = result
    # Enumerated from the earlier end, so that rows are in order.
    with nogil:
        for i in range(mentions.shape[0]):
            k, other = 0, later[i]
            while other >= 0 and k < nearest:
                links[row, 0], links[row, 1] = mentions[i], mentions[other]
                row += 1
                k += 1
                other = later[other]
    return result


cdef int mark_touched(list ends, Py_ssize_t n, Memory starts, Memory stops, uint8_t* touched) except -1:
    """Fill ``touched`` [M]: whether a link joins one of the tokens of each span.

    ``ends`` holds links int32[F, 2] of n tokens; ``starts`` and ``stops`` int64[M] are the borders of the spans.
    """
    cdef const int64_t* first = <const int64_t*> starts.view.buf
    cdef const int64_t* last = <const int64_t*> stops.view.buf
    cdef const int32_t* pair
    cdef int64_t* linked_before  # number of linked tokens before each token
    cdef Py_ssize_t f, k, m = starts.view.shape[0]
    cdef Memory links
    require(m == stops.view.shape[0], "each span needs a start and an end")
    linked_before = <int64_t*> PyMem_Calloc(n + 1, sizeof(int64_t))
    if linked_before == NULL:
        raise MemoryError("no memory for the links")
    try:
        for links in ends:
            require(links.view.shape[1] == 2, "links must have two columns")
            for f in range(links.view.shape[0]):
                pair = <const int32_t*> links.view.buf + 2 * f
                require(0 <= pair[0] < n and 0 <= pair[1] < n, "links must join tokens")
                linked_before[pair[0] + 1] = linked_before[pair[1] + 1] = 1
        for k in range(n):
            linked_before[k + 1] += linked_before[k]
        for k in range(m):
            require(0 <= first[k] <= last[k] <= n, "spans must consist of tokens")
            touched[k] = linked_before[last[k]] > linked_before[first[k]]
    finally:
        PyMem_Free(linked_before)
    return 0


cdef enum:
    MOST_RULES = 62  # a combination of rules is a bit mask


cdef inline bint precedes(const int32_t* one, const int32_t* other) noexcept nogil:
    return one[0] < other[0] or (one[0] == other[0] and one[1] < other[1])


def merge_links(list ends not None):
    """Merge the links of several rules.

    Returns (pairs int32[E, 2], combination of each int32[E], combinations tuple[int]). ``ends`` holds the links
    int32[F, 2] of each of at most 62 rules. Pairs and combinations are ascending; bit r of a combination stands for
    rule r. Returns None if the links of a rule are not strictly ascending.
    """
    cdef list parts = [owned(each, np.int32, 2, "links") for each in list(ends)]
    cdef Py_ssize_t n_rules = len(parts), n_links = 0, n = 0, r
    cdef const int32_t* heads[MOST_RULES]  # the next link of each rule
    cdef const int32_t* stops[MOST_RULES]
    cdef const int32_t* least
    cdef Memory part
    cdef bint ascends = True
    require(n_rules <= MOST_RULES, "links must be those of 62 rules at most")
    for r in range(n_rules):
        part = parts[r]
        require(part.view.shape[1] == 2, "links must have two columns")
        heads[r] = <const int32_t*> part.view.buf
        stops[r] = heads[r] + 2 * part.view.shape[0]
        n_links += part.view.shape[0]
    pairs, masks = np.empty((n_links, 2), np.int32), np.empty(n_links, np.int64)
    cdef int32_t[:, ::1] to = pairs
    cdef int64_t[::1] mask = masks
    with nogil:
        while ascends:
            least = NULL
            for r in range(n_rules):
                if heads[r] < stops[r] and (least == NULL or precedes(heads[r], least)):
                    least = heads[r]
            if least == NULL:
                break
            ascends = n == 0 or precedes(&to[n - 1, 0], least)
            to[n, 0], to[n, 1], mask[n] = least[0], least[1], 0
            for r in range(n_rules):
                if heads[r] < stops[r] and heads[r][0] == to[n, 0] and heads[r][1] == to[n, 1]:
                    mask[n] |= <int64_t> 1 << r
                    heads[r] += 2
            n += 1
    if not ascends:
        return None
    which, combinations = distinct(mask[:n])
    return pairs[:n], which, combinations


cdef tuple distinct(const int64_t[::1] values):
    """Return the index of each value among the distinct values, and these, ascending, without sorting all values."""
    cdef dict numbers = {}
    cdef Py_ssize_t i
    indices = np.empty(values.shape[0], np.int32)
    cdef int32_t[::1] which = indices
    for i in range(values.shape[0]):
        which[i] = which[i - 1] if i and values[i] == values[i - 1] else numbers.setdefault(values[i], len(numbers))
    cdef list ascending = sorted(numbers), ranks = [0] * len(numbers)
    for i in range(len(ascending)):
        ranks[numbers[ascending[i]]] = i
    for i in range(which.shape[0]):
        which[i] = ranks[which[i]]
    return indices, tuple(ascending)


def lay_out_chains(const double[:, ::1] unary not None, sentence_offsets, list links not None):
    """Lay out the chains of a document and the links of several rules (`merge_links`).

    Returns (offsets int64[S + 1], tables of edges int32[n] or None, pairs int32[E, 2], combination of each int32[E],
    combinations tuple[int]). A link between neighbours is no pair: it changes the table of their edge, and joins two
    sentences if it crosses their border. With C combinations, edge table 0 is the transition table, table 1 + c the sum
    of the transition table and combination c, and table 1 + C + c combination c alone.

    Returns None if a sentence is empty, a log-potential is NaN or +inf, or `merge_links` returns None.
    """
    cdef const int64_t[::1] borders = own_sequences(sentence_offsets, unary.shape[0])
    cdef const double* value = &unary[0, 0] if unary.shape[0] and unary.shape[1] else NULL
    cdef Py_ssize_t s, i, f, n = unary.shape[0], n_far = 0, n_combinations
    cdef int32_t[:, ::1] pairs
    cdef int32_t[::1] which, edges
    cdef uint8_t[::1] starts
    cdef bint good = True
    for s in range(1, borders.shape[0]):
        good &= borders[s - 1] < borders[s]
    with nogil:
        for i in range(n * unary.shape[1]):
            good &= value[i] < INFINITY
    merged = merge_links(links) if good else None
    if merged is None:
        return None
    all_pairs, all_which, combinations = merged
    pairs, which, n_combinations = all_pairs, all_which, len(combinations)
    for f in range(pairs.shape[0]):
        n_far += <int64_t> pairs[f, 1] - pairs[f, 0] != 1
    if n_far == pairs.shape[0]:
        return sentence_offsets, None, all_pairs, all_which, combinations
    edge_table, is_start = np.zeros(n, np.int32), np.zeros(n + 1, np.uint8)
    edges, starts, n_far = edge_table, is_start, 0
    for s in range(borders.shape[0]):
        starts[borders[s]] = 1
    for f in range(pairs.shape[0]):
        i = pairs[f, 1]
        if i - pairs[f, 0] != 1:
            pairs[n_far, 0], pairs[n_far, 1], which[n_far] = pairs[f, 0], pairs[f, 1], which[f]
            n_far += 1
            continue
        require(0 < i < n, "links must join tokens")
        edges[i] = <int32_t> (1 + which[f] + n_combinations * starts[i])
        starts[i] = 0
    return np.flatnonzero(is_start), edge_table, all_pairs[:n_far], all_which[:n_far], combinations


cdef int add_link_messages(double[:, ::1] total, Memory ends, const double[:, ::1] table,
                           const double[:, ::1] beliefs) except -1:
    """Add to ``total`` [n, K], at both ends of each link, the expectation of ``table`` under the other end's beliefs.

    The rows of ``table`` [K, K] belong to the earlier end. Links are added one by one, in order, so the results of a
    document do not depend on other documents.
    """
    cdef const int32_t* links = <const int32_t*> ends.view.buf
    cdef Py_ssize_t f, i, j, n_links = ends.view.shape[0], n_states = table.shape[0]
    cdef double* transposed
    require(table.shape[1] == n_states == total.shape[1] == beliefs.shape[1], "tables and rows must have equal widths")
    require(total.shape[0] == beliefs.shape[0] and ends.view.shape[1] == 2,
            "each token needs a belief, each link two ends")
    for f in range(2 * n_links):
        require(0 <= links[f] < total.shape[0], "links must join tokens")
    if not n_links or not n_states:
        return 0
    transposed = <double*> PyMem_Malloc((n_states + 1) * n_states * sizeof(double))
    if transposed == NULL:
        raise MemoryError("no memory for a table")
    for i in range(n_states):
        for j in range(n_states):
            transposed[j * n_states + i] = table[i, j]
    with nogil:
        for f in range(n_links):
            i, j = links[2 * f], links[2 * f + 1]
            add_message(&total[i, 0], &total[j, 0], &table[0, 0], transposed,
                        &beliefs[i, 0], &beliefs[j, 0], transposed + n_states * n_states, n_states)
    PyMem_Free(transposed)
    return 0


cdef void add_message(double* to_earlier, double* to_later, const double* table,
                      const double* transposed, const double* earlier, const double* later, double* expected,
                      Py_ssize_t n_states) noexcept nogil:
    """Add the messages of one link: every sum runs over the states in order, with all results side by side."""
    cdef Py_ssize_t i, j
    cdef double share
    for i in range(n_states):
        expected[i] = 0.0
    for j in range(n_states):
        share = later[j]
        for i in range(n_states):
            expected[i] += transposed[j * n_states + i] * share
    for i in range(n_states):
        share = earlier[i]
        for j in range(n_states):
            to_later[j] += share * table[i * n_states + j]
    for i in range(n_states):
        to_earlier[i] += expected[i]
