# cython: language_level=3
"""Loops over the characters of a text: where its tokens stand, and which of them begin a sentence.

The rules are those of herdner.text.tokenize and herdner.text.sentences, which explain them.
"""

import math

import numpy as np

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ, PyUnicode_READ_CHAR
from libc.stdint cimport int64_t, uint8_t, uint64_t

from hashing cimport hash_char, hash_start, mix

cdef extern from *:
    """
    #define herdner_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
    #define herdner_store(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)
    """
    void* load_pointer "herdner_load"(void** p) nogil
    void store_pointer "herdner_store"(void** p, void* value) nogil

cdef extern from "Python.h":
    bint Py_UNICODE_ISALNUM(Py_UCS4) nogil
    bint Py_UNICODE_ISLOWER(Py_UCS4) nogil
    bint Py_UNICODE_ISSPACE(Py_UCS4) nogil
    # Strings do not change: whoever holds one may read it without the interpreter.
    Py_ssize_t length_of "PyUnicode_GET_LENGTH"(PyObject*) nogil
    int kind_of "PyUnicode_KIND"(PyObject*) nogil
    void* data_of "PyUnicode_DATA"(PyObject*) nogil
    Py_UCS4 read "PyUnicode_READ"(int, void*, Py_ssize_t) nogil

cdef enum:
    WIDEST_WRAP = 100  # texts with lines of more characters are not wrapped: each line is a block
    # what is known of a line that holds a token
    FIRST = 0          # its first token
    BEGIN = 1          # its first character
    INDENT = 2         # the characters before its first token
    WIDTH = 3          # those up to the end of its last token
    BLANK = 4          # a line without tokens comes before it
    N_COLUMNS = 5
    MOST_PROBES = 32   # slots that a look-up tries


ctypedef struct Split:
    PyObject* run      # of `Splits.parts`; NULL: the slot is empty. Written last
    PyObject* parts
    uint64_t hash


ctypedef struct Table:
    Table* before      # a smaller one
    uint64_t mask
    Split[0] slots     # mask + 1 of them


ctypedef struct Run:
    int64_t begin
    int64_t end
    PyObject* parts    # NULL: the table does not have it


ctypedef struct Text:
    void* data
    Py_ssize_t n
    int kind
    Py_ssize_t end     # the number of runs up to its end


cdef class Splits:
    """The parts of runs of characters between white space. ``parts`` has them all; loops find them without the
    interpreter in a table, while one thread at a time adds to it.
    """
    cdef readonly dict parts
    cdef Table* table

    def __cinit__(self):
        self.parts = {}
        self.grow(1 << 10)

    def __dealloc__(self):
        cdef Table* table = self.table
        while table != NULL:
            self.table = table.before
            PyMem_RawFree(table)
            table = self.table

    def add(self, str run not None, tuple parts not None):
        """Another run that is not among ``parts`` yet."""
        if 2 * len(self.parts) > <Py_ssize_t> self.table.mask:
            self.grow(2 * (self.table.mask + 1))
        self.parts[run] = parts
        enter(self.table, <PyObject*> run, <PyObject*> parts,
              run_hash(PyUnicode_KIND(run), PyUnicode_DATA(run), 0, PyUnicode_GET_LENGTH(run)))

    cdef int grow(self, uint64_t n_slots) except -1:
        """A larger table; those before it stay, as other threads may be reading them."""
        cdef Table* table = <Table*> PyMem_RawCalloc(1, sizeof(Table) + n_slots * sizeof(Split))
        cdef uint64_t i
        if table == NULL:
            raise MemoryError("no memory for the parts of words")
        table.mask, table.before = n_slots - 1, self.table
        if table.before != NULL:
            for i in range(table.before.mask + 1):
                if table.before.slots[i].run != NULL:
                    enter(table, table.before.slots[i].run, table.before.slots[i].parts, table.before.slots[i].hash)
        store_pointer(<void**> &self.table, table)
        return 0


cdef void enter(Table* table, PyObject* run, PyObject* parts, uint64_t hash) noexcept nogil:
    """Without effect where too many slots are taken, so that whoever chooses words cannot make look-ups slow."""
    cdef Split* slot
    cdef uint64_t i
    for i in range(MOST_PROBES):
        slot = &table.slots[(hash + i) & table.mask]
        if slot.run == NULL:
            slot.parts, slot.hash = parts, hash
            store_pointer(<void**> &slot.run, run)
            return


cdef PyObject* look_up(Table* table, uint64_t hash, int kind, void* data, Py_ssize_t begin, Py_ssize_t n) noexcept nogil:
    """The parts of ``n`` characters from ``begin``, or NULL where the table does not have them."""
    cdef Split* slot
    cdef PyObject* run
    cdef uint64_t i
    for i in range(MOST_PROBES):
        slot = &table.slots[(hash + i) & table.mask]
        run = <PyObject*> load_pointer(<void**> &slot.run)
        if run == NULL:
            break
        if slot.hash == hash and is_run(run, kind, data, begin, n):
            return slot.parts
    return NULL


cdef bint is_run(PyObject* run, int kind, void* data, Py_ssize_t begin, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int own = kind_of(run)
    cdef void* characters = data_of(run)
    if length_of(run) != n:
        return False
    for i in range(n):
        if read(own, characters, i) != read(kind, data, begin + i):
            return False
    return True


cdef uint64_t run_hash(int kind, void* data, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef uint64_t found = hash_start()
    cdef Py_ssize_t i
    for i in range(begin, end):
        found = hash_char(found, read(kind, data, i))
    return mix(found)


cdef class Runs:
    """The runs of characters between white space of texts, with their parts as far as they are known.

    ``long`` has the parts of further runs, for these texts alone.
    """
    cdef readonly Splits splits
    cdef readonly dict long
    cdef list texts
    cdef Run* at
    cdef Text* views

    def __init__(self, list texts not None, Splits splits not None):
        cdef Py_ssize_t n_texts = len(texts), i, most = 1
        cdef str text
        cdef Table* table = <Table*> load_pointer(<void**> &splits.table)
        self.texts, self.splits, self.long = list(texts), splits, {}
        self.views = <Text*> PyMem_RawCalloc(n_texts + 1, sizeof(Text))
        if self.views == NULL:
            raise MemoryError("no memory for texts")
        for i in range(n_texts):
            text = texts[i]
            self.views[i] = Text(PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text), PyUnicode_KIND(text), 0)
            most += (self.views[i].n + 1) // 2
        self.at = <Run*> PyMem_RawMalloc(most * sizeof(Run))  # no more is touched than there are runs
        if self.at == NULL:
            raise MemoryError("no memory for the words of texts")
        with nogil:
            most = 0
            for i in range(n_texts):
                most += find_runs(&self.views[i], table, &self.at[most])
                self.views[i].end = most

    def __dealloc__(self):
        PyMem_RawFree(self.views)
        PyMem_RawFree(self.at)

    cdef tuple parts_of(self, Py_ssize_t text, const Run* run):
        if run.parts != NULL:
            return <tuple> run.parts
        cdef str word = (<str> self.texts[text])[run.begin:run.end]
        return self.splits.parts.get(word) or self.long.get(word)

    def unknown(self):
        """set[str]: the runs of which nobody has told the parts."""
        cdef Py_ssize_t i, run = 0
        cdef set found = set()
        for i in range(len(self.texts)):
            while run < self.views[i].end:
                if self.at[run].parts == NULL and self.parts_of(i, &self.at[run]) is None:
                    found.add((<str> self.texts[i])[self.at[run].begin:self.at[run].end])
                run += 1
        return found

    def placed(self):
        """list[(tokens, int64[n] starts, int64[n] ends)]: of each text. TypeError if a run is unknown."""
        cdef Py_ssize_t i, first = 0, run, k
        cdef int64_t begin
        cdef int64_t[::1] starts, ends
        cdef list tokens, found = []
        cdef tuple parts
        cdef str part
        for i in range(len(self.texts)):
            tokens = []
            for run in range(first, self.views[i].end):
                parts = self.parts_of(i, &self.at[run])
                tokens += parts
            starts_array, ends_array = np.empty(len(tokens), np.int64), np.empty(len(tokens), np.int64)
            starts, ends = starts_array, ends_array
            k = 0
            for run in range(first, self.views[i].end):
                begin = self.at[run].begin
                while begin < self.at[run].end:
                    part = <str> tokens[k]
                    starts[k] = begin
                    begin += PyUnicode_GET_LENGTH(part)
                    ends[k] = begin
                    k += 1
            first = self.views[i].end
            found.append((tokens, starts_array, ends_array))
        return found


cdef Py_ssize_t find_runs(const Text* text, Table* table, Run* runs) noexcept nogil:
    """Fills in the runs of a text; how many they are."""
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
        runs[k].parts = look_up(table, mix(hash), text.kind, text.data, runs[k].begin, i - runs[k].begin)
        k += 1


def misplaced(str text not None, tokens, const int64_t[:] starts not None, const int64_t[:] ends not None,
              const int64_t[:] offsets not None):
    """What is wrong with tokens whose places in the text and sentences are given, or None."""
    cdef Py_ssize_t n = len(tokens), length = PyUnicode_GET_LENGTH(text), t, s
    cdef int64_t last = 0
    if starts.shape[0] != n or ends.shape[0] != n:
        return f"there are {n} tokens but {starts.shape[0]} starts and {ends.shape[0]} ends of tokens"
    for t in range(n):
        if not last <= starts[t] < ends[t] <= length:
            return (f"token {t} is at {starts[t]}..{ends[t]} in a text of {length} characters, where the one before it"
                    f" ends at {last}; tokens stand one behind the other and are not empty")
        last = ends[t]
    for token in tokens:
        if type(token) is not str:  # compiled loops read no subclasses, such as numpy.str_
            return f"a token is of type {type(token).__name__}; tokens are plain strings (str)"
    if offsets.shape[0] < 1 or offsets[0] != 0 or offsets[offsets.shape[0] - 1] != n:
        return f"sentence_offsets must run from 0 to the number of tokens, {n}"
    for s in range(1, offsets.shape[0]):
        if offsets[s - 1] >= offsets[s]:
            return f"sentence {s - 1} has no token; sentence_offsets must rise"
    return None


cdef class SentenceLoop:
    """Where sentences begin in texts, for the words of `herdner.text.sentences.SentenceRules`."""
    cdef frozenset titles, starters
    cdef str marks, closers, openers

    def __init__(self, titles, starters, str marks, str closers, str openers):
        self.titles, self.starters = frozenset(titles), frozenset(starters)
        self.marks, self.closers, self.openers = marks, closers, openers

    def offsets(self, str text not None, list tokens not None, const int64_t[::1] starts not None,
                const int64_t[::1] ends not None):
        """int64[S + 1], see `herdner.text.sentences.sentence_offsets`."""
        cdef Py_ssize_t n = len(tokens), token, n_found = 0
        cdef uint8_t[::1] begins = np.zeros(n + 1, np.uint8)
        check_places(text, n, starts, ends)
        begins[0] = begins[n] = 1
        if n:
            self.mark_after_punctuation(text, tokens, starts, ends, begins)
            self.mark_blocks(text, starts, ends, begins)
        for token in range(n + 1):
            n_found += begins[token]
        found = np.empty(n_found, np.int64)
        cdef int64_t[::1] offsets = found
        n_found = 0
        for token in range(n + 1):
            if begins[token]:
                offsets[n_found] = token
                n_found += 1
        return found

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
        """Whether a sentence may begin with ``word`` after the token ``end``, whose last character is a final mark.

        ``closed``: a quote or bracket was closed behind the mark, so that a reporting clause may follow ("he asked").
        """
        if end.endswith(".") and PyUnicode_GET_LENGTH(end) > 1 and end.strip("."):
            return end not in self.titles and word in self.starters
        if word[:1].islower():
            # People who write to each other often begin in lower case; after "..." the sentence goes on.
            return PyUnicode_GET_LENGTH(end) == 1 and end != "\u2026" and not closed
        return True

    cdef int mark_blocks(self, str text, const int64_t[::1] starts, const int64_t[::1] ends,
                         uint8_t[::1] begins) except -1:
        """The tokens that begin a block: after a blank line, and after a line break that is no wrap.

        A line was wrapped if the first word of the next line had no room left in it; the room is the width of the
        text's longer lines.
        """
        cdef Py_ssize_t n = starts.shape[0], n_lines, i, word, last
        cdef int64_t[:, ::1] lines = np.empty((n, N_COLUMNS), np.int64)  # no more is touched than there are lines
        cdef const int64_t* line
        cdef const int64_t* before
        cdef double room
        cdef bint fits, goes_on, indented
        n_lines = find_lines(text, starts, ends, lines)
        if n_lines < 2:
            return 0
        widths = np.asarray(lines)[:n_lines, WIDTH]
        longer = math.ceil(0.95 * (n_lines - 1))
        room = np.partition(widths, longer)[longer]
        for i in range(1, n_lines):
            line, before = &lines[i, 0], &lines[i - 1, 0]
            word = last = line[FIRST]
            while last + 1 < n and starts[last + 1] == ends[last]:
                last += 1
            fits = before[WIDTH] + 1 + ends[last] - starts[word] <= room
            # Wrapped by hand, with a ragged edge: a line goes on in lower case where the one before was not short.
            goes_on = Py_UNICODE_ISLOWER(PyUnicode_READ_CHAR(text, starts[word])) and before[WIDTH] > 0.6 * room
            indented = (line[INDENT] > before[INDENT]
                        and not goes_on_after(PyUnicode_READ_CHAR(text, ends[word - 1] - 1)))
            if room > WIDEST_WRAP or line[BLANK] or (fits and not goes_on) or indented:
                begins[word] = 1
        return 0


cdef Py_ssize_t find_lines(str text, const int64_t[::1] starts, const int64_t[::1] ends,
                           int64_t[:, ::1] lines) noexcept:
    """Fills a row for each line that holds a token; their number."""
    cdef Py_ssize_t n = PyUnicode_GET_LENGTH(text), token, i = 0, begin = 0, n_lines = 0, n_breaks
    cdef int kind = PyUnicode_KIND(text)
    cdef void* data = PyUnicode_DATA(text)
    cdef Py_UCS4 char
    for token in range(starts.shape[0]):
        n_breaks = 0
        while i < starts[token]:
            char = PyUnicode_READ(kind, data, i)
            i += 1
            # Carriage return and line feed are one break.
            if is_break(char) and not (char == u"\r" and i < n and PyUnicode_READ(kind, data, i) == u"\n"):
                begin = i
                n_breaks += 1
        if n_breaks or not token:
            lines[n_lines, FIRST], lines[n_lines, BLANK] = token, n_breaks > 1
            lines[n_lines, BEGIN], lines[n_lines, INDENT] = begin, starts[token] - begin
            n_lines += 1
        lines[n_lines - 1, WIDTH] = ends[token] - lines[n_lines - 1, BEGIN]
    return n_lines


cdef inline bint is_break(Py_UCS4 char) noexcept nogil:
    return u"\n" <= char <= u"\r" or char == 0x85 or char == 0x2028 or char == 0x2029


cdef inline bint goes_on_after(Py_UCS4 char) noexcept nogil:
    """Ends no paragraph: ASCII letters and digits, and marks that something follows."""
    return (u"a" <= char <= u"z" or u"A" <= char <= u"Z" or u"0" <= char <= u"9"
            or char == u"," or char == u";" or char == u"-")


cdef int check_places(str text, Py_ssize_t n, const int64_t[::1] starts, const int64_t[::1] ends) except -1:
    cdef Py_ssize_t token
    cdef int64_t last = 0
    if starts.shape[0] == ends.shape[0] == n:
        for token in range(n):
            if not last <= starts[token] < ends[token] <= PyUnicode_GET_LENGTH(text):
                break
            last = ends[token]
        else:
            return 0
    raise ValueError("each token needs a place of its own in the text, behind the one before")
