# cython: language_level=3
"""Loops over the characters of a text: positions of tokens, and the tokens that begin sentences.

``herdner.text.tokenize`` and ``herdner.text.sentences`` explain the rules.
"""

import numpy as np

cimport cython
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ, PyUnicode_READ_CHAR
from libc.math cimport ceil
from libc.stdint cimport int64_t, uint8_t, uint64_t

from hashing cimport hash_char, hash_start, mix

from herdner._ext.memory cimport owned, require
from herdner._ext.strings cimport Strings, read

cdef extern from "allocation.h":
    bint is_addressable(int64_t n, size_t size)

cdef extern from "Python.h":
    bint Py_UNICODE_ISALNUM(Py_UCS4) nogil
    bint Py_UNICODE_ISLOWER(Py_UCS4) nogil
    bint Py_UNICODE_ISUPPER(Py_UCS4) nogil
    bint Py_UNICODE_ISSPACE(Py_UCS4) nogil

cdef enum:
    WIDEST_WRAP = 100  # texts with longer lines are not wrapped: each line is a block
    NARROWEST_WRAP = 40  # texts with shorter lines are lists if nearly all lines begin with a capital
    LOWER_LINES = 2    # least number of lines in lower case of a text that was wrapped by hand
    LIST_LINES = 4     # least number of lines of a list that is not narrow
    LIST_CAPITALS = 6  # least number of capitalised words of a list for each word in lower case
    CELL_SPACES = 4    # least number of spaces between two cells of a table
    # columns that describe a line with tokens
    FIRST = 0          # its first token
    INDENT = 1         # characters before its first token
    WIDTH = 2          # characters up to the end of its last token
    BLANK = 3          # 1 after a line without tokens
    N_COLUMNS = 4


ctypedef struct CharacterRun:
    int64_t begin
    int64_t end
    PyObject* parts    # NULL: `Strings.values` or `Runs.long` may have them


ctypedef struct Text:
    void* data
    Py_ssize_t n
    int kind
    Py_ssize_t end     # the number of runs up to the end of this text


cdef class Runs:
    """The runs of characters between white space in a list of texts, and the tokens (parts) of each run.

    ``splits`` maps runs to parts and outlives this object; ``long`` holds the parts of long runs for these texts only.
    """
    cdef readonly Strings splits
    cdef readonly dict long
    cdef list texts
    cdef CharacterRun* at
    cdef Text* views

    def __cinit__(self, list texts not None, Strings splits not None):
        cdef Py_ssize_t n_texts = len(texts), i
        cdef int64_t most = 1
        cdef str text
        self.texts, self.splits, self.long = list(texts), splits, {}
        self.views = <Text*> PyMem_RawCalloc(n_texts + 1, sizeof(Text))
        if self.views == NULL:
            raise MemoryError("no memory is left for the texts")
        for i in range(n_texts):
            text = self.texts[i]
            self.views[i] = Text(PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text), PyUnicode_KIND(text), 0)
            most += (self.views[i].n + 1) // 2
        if is_addressable(most, sizeof(CharacterRun)):
            # Pages beyond the last run are never touched.
            self.at = <CharacterRun*> PyMem_RawMalloc(most * sizeof(CharacterRun))
        if self.at == NULL:
            raise MemoryError("no memory is left for the words of the texts")
        with nogil:
            most = 0
            for i in range(n_texts):
                most += find_runs(&self.views[i], splits, &self.at[most])
                self.views[i].end = most

    def __dealloc__(self):
        PyMem_RawFree(self.views)
        PyMem_RawFree(self.at)

    cdef tuple parts_of(self, Py_ssize_t text, const CharacterRun* run):
        if run.parts != NULL:
            return <tuple?> <object> run.parts
        cdef str word = (<str> self.texts[text])[run.begin:run.end]
        return self.splits.values.get(word) or self.long.get(word)

    def unknown(self):
        """Return the runs whose parts are not known yet: set[str]."""
        cdef Py_ssize_t i, run = 0
        cdef set result = set()
        for i in range(len(self.texts)):
            while run < self.views[i].end:
                if self.at[run].parts == NULL and self.parts_of(i, &self.at[run]) is None:
                    result.add((<str> self.texts[i])[self.at[run].begin:self.at[run].end])
                run += 1
        return result

    @cython.boundscheck(True)
    def tokens_with_offsets(self):
        """Return the tokens of each text with their offsets: list[(tokens, int64[n] starts, int64[n] ends)].

        Raises TypeError if the parts of a run are not known.
        """
        cdef Py_ssize_t i, first = 0, run, k
        cdef int64_t begin
        cdef int64_t[::1] starts, ends
        cdef list tokens, result = []
        cdef tuple parts
        cdef str part
        for i in range(len(self.texts)):
            tokens = []
            for run in range(first, self.views[i].end):
                parts = self.parts_of(i, &self.at[run])
                for part in parts:
                    tokens.append(part)
            starts_array, ends_array = np.empty(len(tokens), np.int64), np.empty(len(tokens), np.int64)
            starts, ends = starts_array, ends_array
            k = 0
            for run in range(first, self.views[i].end):
                begin = self.at[run].begin
                parts = self.parts_of(i, &self.at[run])
                for part in parts:
                    starts[k] = begin
                    begin += PyUnicode_GET_LENGTH(part)
                    ends[k] = begin
                    k += 1
            first = self.views[i].end
            result.append((tokens, starts_array, ends_array))
        return result


cdef Py_ssize_t find_runs(const Text* text, Strings splits, CharacterRun* runs) noexcept nogil:
    """Write the runs of a text to ``runs`` and return their number."""
    cdef Py_ssize_t i = 0, k = 0
    cdef Py_UCS4 char
    cdef uint64_t hash
    while True:
        while i < text.n and Py_UNICODE_ISSPACE(read(text.kind, text.data, i)):
            i += 1
        if i == text.n:
            return k
        runs[k].begin, hash = i, hash_start()
        while i < text.n:
            char = read(text.kind, text.data, i)
            if Py_UNICODE_ISSPACE(char):
                break
            hash = hash_char(hash, char)
            i += 1
        runs[k].end = i
        runs[k].parts = <PyObject*> splits.find(text.kind, text.data, runs[k].begin, i, mix(hash))
        k += 1


def find_offset_fault(str text not None, tokens, token_starts, token_ends, sentence_offsets):
    """Check the offsets of tokens and sentences in a text. Return a description of the first fault, or None."""
    for array in (token_starts, token_ends, sentence_offsets):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"got {type(array).__name__}")
    cdef const int64_t[::1] starts = owned(token_starts, np.int64, 1, "token_starts")
    cdef const int64_t[::1] ends = owned(token_ends, np.int64, 1, "token_ends")
    cdef const int64_t[::1] offsets = owned(sentence_offsets, np.int64, 1, "sentence_offsets")
    cdef Py_ssize_t n = len(tokens), length = PyUnicode_GET_LENGTH(text), t, s
    if starts.shape[0] != n or ends.shape[0] != n:
        return f"there are {n} tokens but {starts.shape[0]} starts and {ends.shape[0]} ends of tokens"
    t = first_misplaced(length, starts, ends)
    if t >= 0:
        return (f"token {t} is at {starts[t]}..{ends[t]} in a text of {length} characters, and the previous token"
                f" ends at {ends[t - 1] if t else 0}; tokens must be in order, not empty and not overlap")
    for token in tokens:
        if type(token) is not str:  # the loops read no subclasses, such as numpy.str_
            return f"a token is of type {type(token).__name__}; tokens are plain strings (str)"
    if offsets.shape[0] < 1 or offsets[0] != 0 or offsets[offsets.shape[0] - 1] != n:
        return f"sentence_offsets must run from 0 to the number of tokens, {n}"
    for s in range(1, offsets.shape[0]):
        if offsets[s - 1] >= offsets[s]:
            return f"sentence {s - 1} has no token; sentence_offsets must rise"
    return None


cdef class SentenceLoop:
    """The sentence splitter for the word lists of `herdner.text.sentences.SentenceRules`."""
    cdef frozenset titles, starters
    cdef str marks, closers, openers

    def __cinit__(self, titles, starters, str marks not None, str closers not None, str openers not None):
        self.titles, self.starters = frozenset(titles), frozenset(starters)
        self.marks, self.closers, self.openers = marks, closers, openers

    def __reduce__(self):
        return SentenceLoop, (self.titles, self.starters, self.marks, self.closers, self.openers)

    def offsets(self, str text not None, list tokens not None, starts not None, ends not None):
        """Return the sentence offsets, as `herdner.text.sentences.sentence_offsets` describes: int64[S + 1]."""
        cdef list words = list(tokens)  # a copy, which neither other threads nor the word lists can alter
        cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts"), last = owned(ends, np.int64, 1, "ends")
        cdef Py_ssize_t n = len(words), token, n_offsets = 0
        cdef uint8_t[::1] begins = np.zeros(n + 1, np.uint8)
        require(first.shape[0] == last.shape[0] == n and first_misplaced(PyUnicode_GET_LENGTH(text), first, last) < 0,
                "each token needs offsets in the text that begin at or after the end of the previous token")
        begins[0] = begins[n] = 1
        if n:
            self.mark_after_punctuation(text, words, first, last, begins)
            self.mark_blocks(text, first, last, begins)
            mark_cells(text, first, last, begins)
        for token in range(n + 1):
            n_offsets += begins[token]
        result = np.empty(n_offsets, np.int64)
        cdef int64_t[::1] offsets = result
        n_offsets = 0
        for token in range(n + 1):
            if begins[token]:
                offsets[n_offsets] = token
                n_offsets += 1
        return result

    cdef int mark_after_punctuation(self, str text, list tokens, const int64_t[::1] starts, const int64_t[::1] ends,
                                    uint8_t[::1] begins) except -1:
        cdef Py_ssize_t n = len(tokens), end, after, word
        cdef int kind = PyUnicode_KIND(text)
        cdef void* data = PyUnicode_DATA(text)
        cdef Py_UCS4 mark
        for end in range(n):
            mark = PyUnicode_READ(kind, data, ends[end] - 1)
            if Py_UNICODE_ISALNUM(mark) or mark not in self.marks:
                continue
            after = end + 1
            while (after < n and starts[after] == ends[after - 1]
                   and PyUnicode_READ(kind, data, starts[after]) in self.closers):
                after += 1
            if after == n or starts[after] == ends[after - 1]:
                continue
            word = after
            while word < n - 1 and PyUnicode_READ(kind, data, starts[word]) in self.openers:
                word += 1
            if self.begins(tokens[end], tokens[word], after > end + 1):
                begins[after] = 1

    cdef bint begins(self, str end, str word, bint closed) except -1:
        """Return True if a sentence may begin with ``word`` after the token ``end``, which ends with a final mark.

        ``closed``: a quote or bracket was closed after the mark, so that a reporting clause may follow ("he asked").
        """
        if end.endswith(".") and PyUnicode_GET_LENGTH(end) > 1 and end.strip("."):
            return end not in self.titles and word in self.starters
        if word[:1].islower():
            # In chats sentences often begin in lower case; after "..." the sentence continues.
            return PyUnicode_GET_LENGTH(end) == 1 and end != "\u2026" and not closed
        return True

    cdef int mark_blocks(self, str text, const int64_t[::1] starts, const int64_t[::1] ends,
                         uint8_t[::1] begins) except -1:
        """Mark the tokens that begin a block: after a blank line, and after a line break that is no wrap.

        A line was wrapped if the first word of the next line would not have fitted into it. The available width is that
        of the longer lines of the text. Lines wrapped by hand are ragged: in a text in which most lines that follow an
        unfinished line begin in lower case, a line ends a block only if it is short. Each line of a list is a block.
        """
        cdef Py_ssize_t n = starts.shape[0], n_lines, i, word, last, n_lower = 0, n_upper = 0, n_title = 0, n_others = 0
        line_array = np.empty((n, N_COLUMNS), np.int64)  # pages beyond the last line are not touched
        cdef int64_t[:, ::1] lines = line_array
        cdef const int64_t* line
        cdef const int64_t* before
        cdef int64_t[::1] widths
        cdef double room
        cdef bint fits, continues, indented, ragged, is_list
        cdef Py_UCS4 before_break
        n_lines = find_lines(text, starts, ends, lines)
        if n_lines < 2:
            return 0
        widths = np.sort(line_array[:n_lines, WIDTH])
        for i in range(1, n_lines):
            word = lines[i, FIRST]
            if not lines[i, BLANK] and not begins[word] and lines[i, INDENT] <= lines[i - 1, INDENT]:
                if Py_UNICODE_ISLOWER(PyUnicode_READ_CHAR(text, starts[word])):
                    n_lower += 1
                else:
                    n_others += 1
                    if Py_UNICODE_ISUPPER(PyUnicode_READ_CHAR(text, starts[word])):
                        n_upper += 1
                        n_title += (ends[word] > starts[word] + 1
                                    and Py_UNICODE_ISLOWER(PyUnicode_READ_CHAR(text, starts[word] + 1)))
        ragged = n_lower >= LOWER_LINES and n_lower >= n_others
        room = widths[<Py_ssize_t> ceil((0.75 if ragged else 0.95) * (n_lines - 1))]
        is_list = (n_title >= LIST_LINES and n_lower == 0
                   or room < NARROWEST_WRAP and n_upper > 0 and 4 * n_lower <= n_upper)
        if room > WIDEST_WRAP or (is_list and has_few_lower_words(text, starts)):
            for i in range(1, n_lines):
                begins[lines[i, FIRST]] = 1
            return 0
        for i in range(1, n_lines):
            line, before = &lines[i, 0], &lines[i - 1, 0]
            word = last = line[FIRST]
            while last + 1 < n and starts[last + 1] == ends[last]:
                last += 1
            fits = before[WIDTH] + 1 + ends[last] - starts[word] <= room
            before_break = PyUnicode_READ_CHAR(text, ends[word - 1] - 1)
            if Py_UNICODE_ISLOWER(PyUnicode_READ_CHAR(text, starts[word])):
                continues = before[WIDTH] > (0.5 if ragged else 0.6) * room
            else:
                continues = (ragged and before[WIDTH] > 0.5 * room and before_break != u":"
                             and line[INDENT] <= before[INDENT]
                             and (i + 1 == n_lines or lines[i + 1, BLANK] or line[INDENT] <= lines[i + 1, INDENT]))
            indented = line[INDENT] > before[INDENT] and not continues_after(before_break)
            if line[BLANK] or (fits and not continues) or indented:
                begins[word] = 1
        return 0


cdef bint has_few_lower_words(str text, const int64_t[::1] starts) noexcept:
    """Return True if a text has at least `LIST_CAPITALS` capitalised words for each word in lower case."""
    cdef Py_ssize_t token, n_upper = 0, n_lower = 0
    cdef Py_UCS4 char
    cdef int kind = PyUnicode_KIND(text)
    cdef void* data = PyUnicode_DATA(text)
    for token in range(starts.shape[0]):
        char = PyUnicode_READ(kind, data, starts[token])
        n_upper += Py_UNICODE_ISUPPER(char)
        n_lower += Py_UNICODE_ISLOWER(char)
    return LIST_CAPITALS * n_lower <= n_upper


cdef Py_ssize_t find_lines(str text, const int64_t[::1] starts, const int64_t[::1] ends,
                           int64_t[:, ::1] lines) noexcept:
    """Fill a row for each line with tokens and return the number of rows."""
    cdef Py_ssize_t n = PyUnicode_GET_LENGTH(text), token = 0, i = 0, begin = 0, n_lines = 0, n_breaks
    cdef int kind = PyUnicode_KIND(text)
    cdef void* data = PyUnicode_DATA(text)
    cdef Py_UCS4 char
    while token < starts.shape[0]:
        n_breaks = 0
        while i < starts[token]:
            char = PyUnicode_READ(kind, data, i)
            i += 1
            # A carriage return with a line feed is one break.
            if is_break(char) and not (char == u"\r" and i < n and PyUnicode_READ(kind, data, i) == u"\n"):
                begin = i
                n_breaks += 1
        lines[n_lines, FIRST], lines[n_lines, BLANK] = token, n_breaks > 1
        lines[n_lines, INDENT] = starts[token] - begin
        while i < n and not is_break(PyUnicode_READ(kind, data, i)):
            i += 1
        while token < starts.shape[0] and starts[token] <= i:
            token += 1
        lines[n_lines, WIDTH] = ends[token - 1] - begin
        n_lines += 1
    return n_lines


cdef int mark_cells(str text, const int64_t[::1] starts, const int64_t[::1] ends, uint8_t[::1] begins) noexcept:
    """Mark the first token of each cell of a table: cells are separated by a tab or by `CELL_SPACES` spaces."""
    cdef Py_ssize_t token, i
    cdef Py_UCS4 char
    cdef int kind = PyUnicode_KIND(text)
    cdef void* data = PyUnicode_DATA(text)
    cdef int n_spaces
    cdef bint tab
    for token in range(1, starts.shape[0]):
        n_spaces, tab = 0, False
        for i in range(ends[token - 1], starts[token]):
            char = PyUnicode_READ(kind, data, i)
            if is_break(char):  # the indentation of a line
                break
            tab |= char == u"\t"
            n_spaces += 1
        else:
            begins[token] |= tab or n_spaces >= CELL_SPACES
    return 0


cdef inline bint is_break(Py_UCS4 char) noexcept nogil:
    return char <= u"\r" and char >= u"\n" or char >= 0x85 and (char == 0x85 or char == 0x2028 or char == 0x2029)


cdef inline bint continues_after(Py_UCS4 char) noexcept nogil:
    """Return True if a paragraph cannot end with this character: ASCII letters, digits, and marks such as a comma."""
    return (u"a" <= char <= u"z" or u"A" <= char <= u"Z" or u"0" <= char <= u"9"
            or char == u"," or char == u";" or char == u"-")


cdef Py_ssize_t first_misplaced(Py_ssize_t length, const int64_t[::1] starts, const int64_t[::1] ends) noexcept:
    """Return the first token that is empty, behind a text of this length or before the end of another token, or -1."""
    cdef Py_ssize_t token
    cdef int64_t last = 0
    for token in range(starts.shape[0]):
        if not last <= starts[token] < ends[token] <= length:
            return token
        last = ends[token]
    return -1
