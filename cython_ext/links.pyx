# cython: language_level=3
"""Loops of the rules that link tokens (herdner.crf.rules)."""

import numpy as np

from cpython.unicode cimport PyUnicode_GET_LENGTH, PyUnicode_READ_CHAR
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "Python.h":
    bint Py_UNICODE_ISLOWER(Py_UCS4) nogil
    bint Py_UNICODE_ISUPPER(Py_UCS4) nogil
    bint Py_UNICODE_ISALPHA(Py_UCS4) nogil

cdef enum:
    MOST_BULLETS = 3  # tokens without letters before the first word of a sentence: "1 .", "--", "(4)"

# Behind these a capital may be that of a sentence inside a sentence: "said: `` The ...", bullets, three full stops.
cdef str OPENINGS = (".!?\u2026:;\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u00a1\u00bf"
                     "\u2022*\u2014")


cdef inline bint has_letters(str word, Py_ssize_t n_letters) noexcept:
    cdef Py_ssize_t i
    for i in range(PyUnicode_GET_LENGTH(word)):
        if n_letters <= 0:
            break
        n_letters -= Py_UNICODE_ISALPHA(PyUnicode_READ_CHAR(word, i))
    return n_letters <= 0


def capitalised(list tokens not None, Py_ssize_t min_letters):
    """list[int]: the tokens that begin with a capital and have so many letters, ascending. ValueError if a token is no
    string: None would pass for one in all loops behind this."""
    cdef Py_ssize_t token
    cdef str word
    cdef list found = []
    for token in range(len(tokens)):
        if type(tokens[token]) is not str:
            raise ValueError(f"a token is of type {type(tokens[token]).__name__}; tokens are plain strings (str)")
        word = tokens[token]
        if (PyUnicode_GET_LENGTH(word) and Py_UNICODE_ISUPPER(PyUnicode_READ_CHAR(word, 0))
                and has_letters(word, min_letters)):
            found.append(token)
    return found


def checked_borders(sentence_offsets, Py_ssize_t n_tokens):
    """The borders of sentences as int64[S + 1]: from 0 to the number of tokens, none below the one before; ValueError
    otherwise."""
    found = np.asarray(sentence_offsets)
    if found.dtype.kind not in "iu" and found.shape[:1] != (0,) or found.ndim != 1:
        raise ValueError("sentence offsets must be a list of whole numbers")
    found = np.ascontiguousarray(found, np.int64)
    cdef const int64_t[::1] borders = found
    cdef Py_ssize_t s
    if not borders.shape[0] or borders[0] != 0 or borders[borders.shape[0] - 1] != n_tokens:
        raise ValueError(f"sentence offsets must run from 0 to the number of tokens ({n_tokens})")
    for s in range(1, borders.shape[0]):
        if borders[s] < borders[s - 1]:
            raise ValueError(f"sentence offsets must not fall, as from {borders[s - 1]} to {borders[s]}")
    return found


def names(list tokens not None, sentence_offsets, Py_ssize_t min_letters):
    """list[int]: the tokens that begin with a capital of their own, ascending.

    Left out are those that the document has in small letters too where their place asks for a capital.
    """
    return Names(tokens, sentence_offsets, min_letters).found


def same_words(list tokens not None, sentence_offsets, Py_ssize_t min_letters, bint fold_case, Py_ssize_t nearest):
    """int32[F, 2], see `herdner.crf.rules.SameWord`: the links of `names` that are the same word."""
    cdef Names said = Names(tokens, sentence_offsets, min_letters)
    cdef Py_ssize_t m = len(said.found), i
    cdef int32_t[:, ::1] rows = np.empty((5, m), np.int32)
    cdef dict numbers = {}
    cdef list groups = said.spellings
    if fold_case:
        groups = [said.lowered[i] if (<str> groups[i]).isascii() else (<str> groups[i]).casefold()
                  for i in range(len(groups))]
    for i in range(m):
        rows[0, i] = said.found[i]
        rows[1, i] = numbers.setdefault(groups[said.spelling[i]], len(numbers))
    return nearest_links(rows, len(numbers), nearest)


cdef enum:
    NAME = 1        # what a token is for `company_runs`
    DESIGNATOR = 2
    START = 4       # of a sentence


def company_runs(list tokens not None, sentence_offsets, frozenset designators not None):
    """list[(begin, end, designated)]: the runs of `names`, see `herdner.crf.rules.Company`, and each that begins a
    sentence also without its first word; only those whose first word is that of a run before a designator.
    """
    cdef const int64_t[::1] borders = checked_borders(sentence_offsets, len(tokens))
    cdef Py_ssize_t n = len(tokens), token, begin, after, s
    cdef list runs = []
    cdef set wanted
    cdef tuple run
    if designators.isdisjoint(tokens):
        return runs
    cdef bytearray kinds = bytearray(n + 1)
    cdef unsigned char[::1] kind = kinds
    for token in range(n):
        if tokens[token] in designators:
            kind[token] = DESIGNATOR
    for token in names(tokens, sentence_offsets, 1):
        kind[token] |= NAME
    for s in range(borders.shape[0]):
        kind[borders[s]] |= START
    token = 0
    while token < n:
        if kind[token] & (NAME | DESIGNATOR) != NAME:
            token += 1
            continue
        begin = token
        token += 1
        while kind[token] == NAME:
            token += 1
        after = token
        if not kind[after] & START and tokens[after] in (",", "&"):
            after += 1
        designated = kind[after] & (DESIGNATOR | START) == DESIGNATOR
        runs.append((begin, token, designated))
        if kind[begin] & START and token > begin + 1:
            runs.append((begin + 1, token, designated))
    wanted = {(<str> tokens[<Py_ssize_t> run[0]]).casefold() for run in runs if run[2]}
    return [run for run in runs if (<str> tokens[<Py_ssize_t> run[0]]).casefold() in wanted]


cdef class Names:
    """The tokens of `names` in a document."""
    cdef list found
    cdef list spelling      # of each of them, which of the spellings it has
    cdef list spellings, lowered  # distinct words; the same in small letters

    def __cinit__(self, list tokens, sentence_offsets, Py_ssize_t min_letters):
        cdef const int64_t[::1] borders = checked_borders(sentence_offsets, len(tokens))
        cdef dict numbers = {}
        cdef set small
        cdef object token, number, word
        self.found, self.spelling, self.lowered = capitalised(tokens, min_letters), [], []
        for token in self.found:
            word = tokens[<Py_ssize_t> token]
            number = numbers.get(word)
            if number is None:
                number = numbers[word] = len(numbers)
                self.lowered.append((<str> word).lower())
            self.spelling.append(number)
        self.spellings = list(numbers)
        small = also_among(tokens, set(self.lowered))
        if small:
            self.leave_out(tokens, borders, [word in small for word in self.lowered])

    cdef int leave_out(self, list tokens, const int64_t[::1] borders, list is_small) except -1:
        """Those whose place asks for a capital, of the spellings that the document has in small letters too."""
        cdef list found = [], spelling = []
        cdef Py_ssize_t s = 0, headline_of = -1, token, i
        cdef bint headline = False
        for i in range(len(self.found)):
            if is_small[self.spelling[i]]:
                token = self.found[i]
                while borders[s + 1] <= token:
                    s += 1
                if opens(tokens, borders[s], token):
                    continue
                if headline_of != s:
                    headline, headline_of = is_headline(tokens, borders[s], borders[s + 1]), s
                if headline:
                    continue
            found.append(self.found[i])
            spelling.append(self.spelling[i])
        self.found, self.spelling = found, spelling
        return 0


cdef set also_among(list tokens, set words):
    """Those of the words that are among the tokens. Most tokens are told from all of them by their length and first
    character, without looking for them in the set."""
    cdef uint64_t[64] lengths  # by the first character, those of words that begin so, one bit each
    cdef Py_ssize_t i
    cdef str word
    cdef set found = set()
    for i in range(64):
        lengths[i] = 0
    for word in words:
        lengths[first(word)] |= <uint64_t> 1 << (PyUnicode_GET_LENGTH(word) & 63)
    for word in tokens:
        if lengths[first(word)] >> (PyUnicode_GET_LENGTH(word) & 63) & 1 and word in words:
            found.add(word)
    return found


cdef inline Py_ssize_t first(str word) noexcept:
    """The last bits of the first character."""
    return <Py_ssize_t> PyUnicode_READ_CHAR(word, 0) & 63 if PyUnicode_GET_LENGTH(word) else 0


cdef bint opens(list tokens, Py_ssize_t begin, Py_ssize_t token) except -1:
    """Whether a token begins the sentence that begins with ``begin``, or one inside it."""
    cdef Py_ssize_t i
    cdef str before = tokens[token - 1] if token > begin else ""
    for i in range(PyUnicode_GET_LENGTH(before)):
        if PyUnicode_READ_CHAR(before, i) not in OPENINGS:
            break
    else:
        return True
    if token - begin > MOST_BULLETS:
        return False
    for i in range(begin, token):
        if has_letters(tokens[i], 1):
            return False
    return True


cdef bint is_headline(list tokens, Py_ssize_t begin, Py_ssize_t end) except -1:
    """Three or more words, none of which begins with a small letter and most of which are in capitals."""
    cdef Py_ssize_t i, n_words = 0, n_capitals = 0
    cdef str word
    for i in range(begin, end):
        word = tokens[i]
        if not has_letters(word, 1):
            continue
        if Py_UNICODE_ISLOWER(PyUnicode_READ_CHAR(word, 0)):
            return False
        n_words += 1
        n_capitals += PyUnicode_GET_LENGTH(word) > 1 and word.isupper()
    return n_words >= 3 and 2 * n_capitals > n_words


cdef nearest_links(int32_t[:, ::1] rows, Py_ssize_t n_groups, Py_ssize_t nearest):
    """int32[F, 2], rows ascending: each mention with up to ``nearest`` earlier ones of its group, closest first.

    rows [5, m]: tokens, ascending; of each, its group, from 0 to ``n_groups`` - 1; room for what is found here.
    """
    cdef Py_ssize_t m = rows.shape[1], i, k, other, row = 0, n_links = 0
    cdef int32_t[::1] mentions = rows[0], groups = rows[1], later = rows[2], latest = rows[3], sizes = rows[4]
    for i in range(n_groups):
        latest[i], sizes[i] = -1, 0
    for i in range(m - 1, -1, -1):
        later[i] = latest[groups[i]]
        latest[groups[i]] = <int32_t> i
        n_links += min(<Py_ssize_t> sizes[groups[i]], nearest)
        sizes[groups[i]] += 1
    found = np.empty((n_links, 2), np.int32)
    cdef int32_t[:, ::1] links = found
    # From the earlier end: the next mentions of each, so that rows come in order.
    for i in range(m):
        k, other = 0, later[i]
        while other >= 0 and k < nearest:
            links[row, 0], links[row, 1] = mentions[i], mentions[other]
            row += 1
            k += 1
            other = later[other]
    return found


def merged(list ends not None):
    """(int32[E, 2], int32[E], int64[C]): the pairs that any rule links, ascending; by which combination of rules each
    is linked; and these combinations, ascending, bit r for rule r. ``ends``: int32[F, 2] for each of at most 62 rules;
    None where these do not ascend, or one stands twice.
    """
    cdef Py_ssize_t n_rules = len(ends), n = 0, r
    cdef bint ascends = True
    cdef int64_t[::1] heads = np.zeros(n_rules + 1, np.int64)
    # Rules one behind the other, each with a last row beyond all others.
    beyond = np.full((1, 2), np.iinfo(np.int32).max, np.int32)
    cdef const int32_t[:, ::1] rows = np.concatenate([beyond, *(part for own in ends for part in (own, beyond))])
    pairs, masks = np.empty((rows.shape[0], 2), np.int32), np.empty(rows.shape[0], np.int64)
    cdef int32_t[:, ::1] to = pairs
    cdef int64_t[::1] mask = masks
    cdef const int32_t* least
    cdef const int32_t* row
    heads[0] = 1
    for r in range(n_rules):
        heads[r + 1] = heads[r] + len(ends[r]) + 1
    with nogil:
        while True:
            least = &rows[0, 0]
            for r in range(n_rules):
                row = &rows[heads[r], 0]
                if row[0] < least[0] or (row[0] == least[0] and row[1] < least[1]):
                    least = row
            if least == &rows[0, 0]:
                break
            to[n, 0], to[n, 1], mask[n] = least[0], least[1], 0
            for r in range(n_rules):
                row = &rows[heads[r], 0]
                if row[0] == to[n, 0] and row[1] == to[n, 1]:
                    mask[n] |= <int64_t> 1 << r
                    heads[r] += 1
                    if row[2] < row[0] or (row[2] == row[0] and row[3] <= row[1]):  # the row behind it
                        ascends = False
            n += 1
    if not ascends:
        return None
    combinations, which = distinct(mask[:n])
    return pairs[:n], which, combinations


cdef distinct(const int64_t[::1] values):
    """Few distinct values, ascending, and which of them each is: what numpy.unique would sort all for."""
    cdef dict numbers = {}
    cdef Py_ssize_t i
    cdef int32_t[::1] which = np.empty(values.shape[0], np.int32)
    for i in range(values.shape[0]):
        which[i] = which[i - 1] if i and values[i] == values[i - 1] else numbers.setdefault(values[i], len(numbers))
    found = np.array(list(numbers), np.int64)
    ranks = np.argsort(np.argsort(found)).astype(np.int32)
    return np.sort(found), ranks[np.asarray(which)]


def add_messages(double[:, ::1] total not None, const int32_t[:, ::1] ends not None, scale,
                 const double[:, ::1] table not None, const double[:, ::1] beliefs not None):
    """Adds to the rows of ``total`` [n, K] of both ends of each link, int32[F, 2], the expected log-potentials
    ``scale[f]`` [F] (None: 1) times ``table`` [K, K] (row: the earlier end) under ``beliefs`` [n, K] of the other end.

    In the order of the links, each alone: so the numbers of a document do not depend on what else there is.
    """
    cdef const double[::1] scales = scale
    cdef const double[:, ::1] turned = np.ascontiguousarray(np.swapaxes(table, 0, 1))
    cdef Py_ssize_t f, n_labels = table.shape[0]
    cdef double[::1] expected = np.empty(n_labels)
    with nogil:
        for f in range(ends.shape[0]):
            add_message(&total[ends[f, 0], 0], &total[ends[f, 1], 0], 1.0 if scales is None else scales[f],
                        &table[0, 0], &turned[0, 0], &beliefs[ends[f, 0], 0], &beliefs[ends[f, 1], 0], &expected[0],
                        n_labels)


cdef void add_message(double* to_earlier, double* to_later, double weight, const double* table, const double* turned,
                      const double* earlier, const double* later, double* expected, Py_ssize_t n_labels) noexcept nogil:
    """The sums of `add_messages` for one link, each over the labels in their order, all labels side by side."""
    cdef Py_ssize_t i, j
    cdef double share
    for i in range(n_labels):
        expected[i] = 0.0
    for j in range(n_labels):
        share = later[j]
        for i in range(n_labels):
            expected[i] += turned[j * n_labels + i] * share
    for i in range(n_labels):
        share = weight * earlier[i]
        for j in range(n_labels):
            to_later[j] += share * table[i * n_labels + j]
    for i in range(n_labels):
        to_earlier[i] += weight * expected[i]
