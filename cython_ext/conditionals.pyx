# cython: language_level=3, boundscheck=True
"""Loops that lay out the full conditionals of a graph, each in one pass over the factors.

Called by ``herdner.graph.conditionals``, which checks the arguments.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, isinf
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport qsort

from firsts cimport first_double, first_int32, first_int64
from herdner._ext.memory cimport Memory, memory_behind, own, owned, require, require_offsets
from rows cimport MOST_VARIABLES, conditionals

cdef tuple TYPES = (np.int32, np.int32, np.int64, np.float64, np.int64, np.int32, np.int64, np.int32, np.int32,
                    np.float64)
cdef tuple NAMES = ("sizes", "widths", "unary_at", "unary", "starts", "row_at", "others_at", "others", "places", "rows")


cdef class CompiledConditionals:
    def __cinit__(self, sizes, widths, unary_at, unary, starts, row_at, others_at, others, places, rows):
        """Copy and check the arrays; ``others_at`` and ``places`` are None if all factors are pairs."""
        cdef Py_ssize_t k
        arrays = [sizes, widths, unary_at, unary, starts, row_at, others_at, others, places, rows]
        for k in range(len(arrays)):
            if arrays[k] is not None or NAMES[k] not in ("others_at", "places"):
                arrays[k] = own(arrays[k], TYPES[k], 1, NAMES[k])
        self.memories = tuple([memory_behind(array) for array in arrays])
        sizes, widths, unary_at, unary, starts, row_at, others_at, others, places, rows = arrays
        self.c.n, self.c.n_unary, self.c.n_rows = len(sizes), len(unary), len(rows)
        require(len(widths) == len(unary_at) == len(sizes) == len(starts) - 1, "conditionals need a row per variable")
        require_offsets(starts, len(row_at), "starts")
        require((others_at is None) == (places is None), "others_at and places belong together")
        if others_at is not None:
            require_offsets(others_at, len(others), "others_at")
            require(len(others_at) == len(row_at) + 1, "others_at must have an entry for each incidence")
        require(len(others) == (len(row_at) if others_at is None else len(places)), "others and places differ")
        self.c.sizes, self.c.widths = first_int32(sizes), first_int32(widths)
        self.c.row_at, self.c.others = first_int32(row_at), first_int32(others)
        self.c.unary_at, self.c.starts = first_int64(unary_at), first_int64(starts)
        self.c.unary, self.c.rows = first_double(unary), first_double(rows)
        self.c.others_at = NULL if others_at is None else first_int64(others_at)
        self.c.places = NULL if places is None else first_int32(places)
        self.widest = 2
        require(are_inside(&self.c), "the rows of conditionals must be inside their arrays")
        for k in range(self.c.n):
            self.widest = max(self.widest, self.c.widths[k])

    def __reduce__(self):
        cdef Memory memory
        return CompiledConditionals, tuple([None if memory is None else memory.to_array() for memory in self.memories])


cdef bint are_inside(const conditionals *c) noexcept nogil:
    """Return True if each row of each joint state of the neighbours is inside ``rows``."""
    cdef int64_t i, e, k, first, end, last, n_rows
    cdef int32_t width
    for i in range(c.n):
        width = c.widths[i]
        if c.sizes[i] < 1 or width != (1 if c.sizes[i] == 2 else (<int64_t> c.sizes[i] + 3) // 4 * 4):
            return False
        if not 0 <= c.unary_at[i] <= c.n_unary - width:
            return False
        if i and c.unary_at[i] < c.unary_at[i - 1] + c.widths[i - 1]:  # counts are moved in blocks of rows
            return False
        for e in range(c.starts[i], c.starts[i + 1]):
            first = e if c.others_at == NULL else c.others_at[e]
            end = e + 1 if c.others_at == NULL else c.others_at[e + 1]
            if c.row_at[e] < 0 or end - first >= MOST_VARIABLES:
                return False
            n_rows, last = 1, c.row_at[e]  # the row of the largest states
            for k in range(first, end):
                if not 0 <= c.others[k] < c.n or (c.places != NULL and c.places[k] < 0):
                    return False
                n_rows *= c.sizes[c.others[k]]
                last += <int64_t> (width if c.places == NULL else c.places[k]) * (c.sizes[c.others[k]] - 1)
                if n_rows < 1 or n_rows > c.n_rows or last > c.n_rows:
                    return False
            if last > c.n_rows - width or n_rows * width > c.n_rows - c.row_at[e]:
                return False
    return True


def add_unary(double[::1] unary, unary_at, scopes, table_of_factor, const double[:] scale, const double[:, ::1] tables):
    """Add factors of one variable: to the log-odds of state 0 of a binary variable, else to the row of its states.

    ``unary_at`` [V] holds the start of each variable's row; None means that variable i has the single entry i.
    """
    cdef const int64_t[::1] starts = None if unary_at is None else owned(unary_at, np.int64, 1, "unary_at")
    cdef const int32_t[:, ::1] variables = owned(scopes, np.int32, 2, "scopes")
    cdef const int32_t[:] table = own(table_of_factor, np.int32, 1, "table_of_factor", strided=True)
    cdef int64_t f, j, at
    cdef const double *row
    cdef double *to
    cdef int64_t width = 1 if tables.shape[1] == 2 else tables.shape[1]
    with nogil:
        for f in range(variables.shape[0]):
            at = variables[f, 0] if starts is None else starts[variables[f, 0]]
            if tables.shape[1] == 0 or at < 0 or at > unary.shape[0] - width:
                with gil:
                    raise IndexError("the row of a variable must be inside unary")
            row, to = &tables[table[f], 0], &unary[at]
            if tables.shape[1] == 2:
                to[0] += scale[f] * row[0] - scale[f] * row[1]
            else:
                for j in range(tables.shape[1]):
                    to[j] += scale[f] * row[j]


def normalise(double[::1] rows, row_at, sizes, widths, double[::1] spread):
    """Shift each row so that its largest entry is 0, and pad it with -inf. Rows of log-odds stay as they are.

    ``spread`` [V] receives the largest finite difference between two states. Returns the index of a row that allows no
    state, or -1.
    """
    cdef const int64_t[::1] starts = owned(row_at, np.int64, 1, "row_at")
    cdef const int32_t[::1] n_states = owned(sizes, np.int32, 1, "sizes")
    cdef const int32_t[::1] n_doubles = owned(widths, np.int32, 1, "widths")
    cdef int64_t r, k, begin, fault = -1
    cdef double top, low
    cdef double *row
    cdef int32_t size, width
    with nogil:
        for r in range(starts.shape[0]):
            begin, size, width = starts[r], n_states[r], n_doubles[r]
            row = &rows[begin]
            if begin < 0 or begin + max(width, size if size != 2 else 1) > rows.shape[0]:
                with gil:
                    raise IndexError("the row of a variable must be inside rows")
            if size == 2:
                if row[0] != row[0]:
                    fault = r
                    break
                spread[r] = 0.0 if isinf(row[0]) else fabs(row[0])
                continue
            top = -INFINITY
            for k in range(size):
                top = max(top, row[k])
            if top == -INFINITY:
                fault = r
                break
            low = 0.0
            for k in range(size):
                row[k] -= top
                if row[k] != -INFINITY:
                    low = min(low, row[k])
            for k in range(size, width):
                row[k] = -INFINITY
            spread[r] = -low
    return fault


def fill_incidences(list groups not None, starts, first_others, double[::1] spread not None):
    """Return (row_at, others_at, others, places) of the factors of all groups, in the order of groups and factors.

    A group is a tuple (scopes int32[F, a], term_of_factor int32[F], blocks int64[a, 2], strides int32[a, a], spreads
    float64[a, terms]). For position b, ``blocks[b]`` is (start of its rows, doubles in the rows of one term),
    ``strides[b, c]`` the number of doubles by which one state of position c moves the row, and ``spreads[b, t]`` the
    spread of term t, which is added to ``spread`` [V]. ``starts`` [V + 1] is the first incidence of each variable, and
    ``first_others`` [V + 1] its first entry in ``others``; ``first_others`` is None if each factor has two variables,
    and ``others_at`` and ``places`` are then None.
    """
    cdef int64_t[::1] cursor = np.array(owned(starts, np.int64, 1, "starts")), to
    cdef int64_t f, a, b, e, at, arity, n = cursor.shape[0] - 1
    cdef int32_t i, term
    require(n >= 0 and cursor[n] >= 0, "starts must have an entry more than there are variables")
    row_at_array, others_at_array, places_array, n_others = np.empty(cursor[n], np.int32), None, None, cursor[n]
    if first_others is not None:
        to = np.array(owned(first_others, np.int64, 1, "first_others"))
        require(to.shape[0] == n + 1 and to[n] >= 0, "first_others must have an entry for each variable and one more")
        n_others, others_at_array, places_array = to[n], np.zeros(cursor[n] + 1, np.int64), np.empty(to[n], np.int32)
        others_at_array[cursor[n]] = n_others
    others_array = np.empty(n_others, np.int32)
    cdef int32_t[::1] row_at = row_at_array, others = others_array, places = places_array
    cdef int64_t[::1] others_at = others_at_array
    cdef const int32_t[:, ::1] variables, strides
    cdef const int32_t[::1] term_of
    cdef const int64_t[:, ::1] blocks
    cdef const double[:, ::1] spreads
    for group in list(groups):
        scopes, term_of_factor, own_blocks, own_strides, spreads = group
        variables, term_of = owned(scopes, np.int32, 2, "scopes"), owned(term_of_factor, np.int32, 1, "term_of_factor")
        blocks, strides = owned(own_blocks, np.int64, 2, "blocks"), owned(own_strides, np.int32, 2, "strides")
        arity = variables.shape[1]
        with nogil:
            for f in range(variables.shape[0]):
                term = term_of[f]
                for a in range(arity):
                    i = variables[f, a]
                    e = cursor[i]
                    cursor[i] += 1
                    row_at[e] = <int32_t> (blocks[a, 0] + term * blocks[a, 1])
                    spread[i] += spreads[a, term]
                    at = e
                    if places is not None:
                        at = others_at[e] = to[i]
                        to[i] += arity - 1
                    for b in range(arity):
                        if b != a:
                            others[at] = variables[f, b]
                            if places is not None:
                                places[at] = strides[a, b]
                            at += 1
    return row_at_array, others_at_array, others_array, places_array


cdef inline int64_t age(int64_t i, int64_t j, int64_t n) noexcept nogil:
    """Return how many updates ago a sweep visited variable j when it visits i."""
    return i - j if j < i else i - j + n


def sort_pairs(starts, int32_t[::1] row_at, int32_t[::1] others):
    """Sort the pairs of each variable: first those with earlier variables in descending order, then those with later
    variables in descending order. Lists of more than 64 pairs are not sorted."""
    cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts")
    cdef int64_t i, e, to, n = first.shape[0] - 1
    cdef int32_t row, other
    with nogil:
        for i in range(n):
            if first[i + 1] - first[i] > 64:
                continue
            for e in range(first[i] + 1, first[i + 1]):
                row, other, to = row_at[e], others[e], e
                while to > first[i] and age(i, others[to - 1], n) > age(i, other, n):
                    row_at[to], others[to] = row_at[to - 1], others[to - 1]
                    to -= 1
                row_at[to], others[to] = row, other


cdef int compare(const void *a, const void *b) noexcept nogil:
    cdef int32_t left = (<const int32_t *> a)[0], right = (<const int32_t *> b)[0]
    return (left > right) - (left < right)


def sort_distinct(starts, members):
    """Sort each list ``members[starts[i]:starts[i + 1]]`` and remove repetitions. Return the new (starts, members)."""
    starts_array = np.array(owned(starts, np.int64, 1, "starts"))
    members_array = np.array(owned(members, np.int32, 1, "members"))
    require_offsets(starts_array, len(members_array), "starts")
    cdef int64_t[::1] first = starts_array
    cdef int32_t[::1] member = members_array
    cdef int64_t i, e, begin = 0, end, to = 0
    with nogil:
        for i in range(first.shape[0] - 1):
            end = first[i + 1]
            if begin < end:
                qsort(&member[begin], end - begin, sizeof(int32_t), compare)
            first[i] = to
            for e in range(begin, end):
                if e == begin or member[e] != member[e - 1]:
                    member[to] = member[e]
                    to += 1
            begin = end
        first[first.shape[0] - 1] = to
    return starts_array, members_array[:to].copy()


def colour(starts, members):
    """Colour the variables greedily in their order, each by the smallest free colour. Return their colours int32[V]."""
    cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts")
    cdef const int32_t[::1] member = owned(members, np.int32, 1, "members")
    cdef int64_t i, e, n = first.shape[0] - 1
    cdef int64_t[::1] taken = np.full(n + 1, -1, np.int64)
    colours_array = np.zeros(max(n, 0), np.int32)
    cdef int32_t[::1] colours = colours_array
    cdef int32_t c
    with nogil:
        for i in range(n):
            for e in range(first[i], first[i + 1]):
                if member[e] < i:
                    taken[colours[member[e]]] = i
            c = 0
            while taken[c] == i:
                c += 1
            colours[i] = c
    return colours_array
