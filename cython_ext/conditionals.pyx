# cython: language_level=3, boundscheck=True
"""Loops that lay out the full conditionals of a graph, each in one pass over the factors.

Called by ``herdner.graph.conditionals``, which checks the arguments.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, isinf
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport qsort

from firsts cimport first_double, first_int32, first_int64
from herdner._ext.memory cimport Memory, memory_behind, own, require, require_offsets
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


def add_unary(double[::1] unary, const int64_t[::1] unary_at, const int32_t[:, ::1] scopes,
              const int32_t[:] table_of_factor, const double[:] scale, const double[:, ::1] tables):
    """Add factors of one variable: to the log-odds of state 0 of a binary variable, else to the row of its states.

    ``unary_at`` [V] holds the start of each variable's row; None means that variable i has the single entry i.
    """
    cdef int64_t f, j, at
    cdef const double *row
    cdef double *to
    cdef int64_t width = 1 if tables.shape[1] == 2 else tables.shape[1]
    with nogil:
        for f in range(scopes.shape[0]):
            at = scopes[f, 0] if unary_at is None else unary_at[scopes[f, 0]]
            if tables.shape[1] == 0 or at < 0 or at > unary.shape[0] - width:
                with gil:
                    raise IndexError("the row of a variable must be inside unary")
            row, to = &tables[table_of_factor[f], 0], &unary[at]
            if tables.shape[1] == 2:
                to[0] += scale[f] * row[0] - scale[f] * row[1]
            else:
                for j in range(tables.shape[1]):
                    to[j] += scale[f] * row[j]


def normalise(double[::1] rows, const int64_t[::1] row_at, const int32_t[::1] sizes, const int32_t[::1] widths,
              double[::1] spread):
    """Shift each row so that its largest entry is 0, and pad it with -inf. Rows of log-odds stay as they are.

    ``spread`` [V] receives the largest finite difference between two states. Returns the index of a row that allows no
    state, or -1.
    """
    cdef int64_t r, k, begin, fault = -1
    cdef double top, low
    cdef double *row
    cdef int32_t size, width
    with nogil:
        for r in range(row_at.shape[0]):
            begin, size, width = row_at[r], sizes[r], widths[r]  # read once: another thread may change the arrays
            row = &rows[begin]
            if begin + max(width, size if size != 2 else 1) > rows.shape[0]:
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


def count_incidences(const int32_t[:, ::1] scopes, int64_t[::1] starts):
    """Add to ``starts[i + 1]`` the number of factors of variable i."""
    cdef int64_t f, a
    with nogil:
        for f in range(scopes.shape[0]):
            for a in range(scopes.shape[1]):
                starts[scopes[f, a] + 1] += 1


def fill_incidences(const int32_t[:, ::1] scopes, const int32_t[:] term_of_factor, const int64_t[:, ::1] blocks,
                    const int32_t[:, ::1] places, const double[:, ::1] spreads, int64_t[::1] cursor,
                    int32_t[::1] row_at, int64_t[::1] others_at, int32_t[::1] others, int32_t[::1] all_places,
                    double[::1] spread):
    """Append the factors of one group to the incidence lists of their variables; ``cursor`` [V]: the end of each list.

    For position a, ``blocks[a]`` is (start of its rows, doubles in the rows of one term), ``places[a, b]`` the number
    of doubles by which one state of position b moves the row, and ``spreads[a, t]`` the spread of term t. ``others_at``
    [E + 1] holds the first of the other variables of each incidence; it is None if each factor has two variables.
    """
    cdef int64_t f, a, b, e, at, arity = scopes.shape[1]
    cdef int32_t i, term
    with nogil:
        for f in range(scopes.shape[0]):
            term = term_of_factor[f]
            for a in range(arity):
                i = scopes[f, a]
                e = cursor[i]
                cursor[i] += 1
                row_at[e] = <int32_t> (blocks[a, 0] + term * blocks[a, 1])
                spread[i] += spreads[a, term]
                at = e if others_at is None else others_at[e]
                for b in range(arity):
                    if b != a:
                        others[at] = scopes[f, b]
                        if all_places is not None:
                            all_places[at] = places[a, b]
                        at += 1


cdef inline int64_t age(int64_t i, int64_t j, int64_t n) noexcept nogil:
    """Return how many updates ago a sweep visited variable j when it visits i."""
    return i - j if j < i else i - j + n


def sort_pairs(const int64_t[::1] starts, int32_t[::1] row_at, int32_t[::1] others):
    """Sort the pairs of each variable: first those with earlier variables in descending order, then those with later
    variables in descending order. Lists of more than 64 pairs are not sorted."""
    cdef int64_t i, e, to, n = starts.shape[0] - 1
    cdef int32_t row, other
    with nogil:
        for i in range(n):
            if starts[i + 1] - starts[i] > 64:
                continue
            for e in range(starts[i] + 1, starts[i + 1]):
                row, other, to = row_at[e], others[e], e
                while to > starts[i] and age(i, others[to - 1], n) > age(i, other, n):
                    row_at[to], others[to] = row_at[to - 1], others[to - 1]
                    to -= 1
                row_at[to], others[to] = row, other


def pad_incidences(const int64_t[::1] starts, const int32_t[::1] row_at, const int32_t[::1] others,
                   const double[::1] rows, const int64_t[::1] new_starts, int32_t[::1] new_row_at,
                   int32_t[::1] new_others, double[::1] new_rows):
    """Copy lists of binary pairs into longer lists, padded with neutral pairs (log-odds 0).

    ``new_rows`` has a separate row for each entry; or, if it is two doubles longer than ``rows``, the same rows and one
    neutral row.
    """
    cdef int64_t i, e, to
    cdef int32_t neutral = <int32_t> rows.shape[0]
    cdef bint is_separate = new_rows.shape[0] != rows.shape[0] + 2
    with nogil:
        for i in range(starts.shape[0] - 1):
            e = starts[i]
            for to in range(new_starts[i], new_starts[i + 1]):
                new_others[to] = others[e] if e < starts[i + 1] else 0
                new_row_at[to] = <int32_t> (2 * to) if is_separate else (row_at[e] if e < starts[i + 1] else neutral)
                if is_separate and e < starts[i + 1]:
                    new_rows[2 * to] = rows[row_at[e]]
                    new_rows[2 * to + 1] = rows[row_at[e] + 1]
                e += 1
        if not is_separate:
            new_rows[:neutral] = rows


def mark_independent(const int64_t[::1] starts, const int32_t[::1] others, int64_t size, uint8_t[::1] flags):
    """Set flags[b] = 1 where no two of the variables b * size to (b + 1) * size - 1 are neighbours, else 0."""
    cdef int64_t i, e, b
    cdef uint8_t independent
    with nogil:
        for b in range(flags.shape[0]):
            independent = 1
            for i in range(b * size, (b + 1) * size):
                for e in range(starts[i], starts[i + 1]):
                    independent &= not (b * size <= others[e] < (b + 1) * size)
            flags[b] = independent


def count_others(const int32_t[:, ::1] scopes, int64_t[::1] cursor, int64_t[::1] others_at):
    """Set ``others_at[e + 1]`` to the number of other variables of each incidence e, in the order of the lists."""
    cdef int64_t f, a
    with nogil:
        for f in range(scopes.shape[0]):
            for a in range(scopes.shape[1]):
                others_at[cursor[scopes[f, a]] + 1] = scopes.shape[1] - 1
                cursor[scopes[f, a]] += 1


cdef int compare(const void *a, const void *b) noexcept nogil:
    cdef int32_t left = (<const int32_t *> a)[0], right = (<const int32_t *> b)[0]
    return (left > right) - (left < right)


def sort_distinct(int64_t[::1] starts, int32_t[::1] members):
    """Sort each list ``members[starts[i]:starts[i + 1]]`` and remove repetitions. Return the total length."""
    cdef int64_t i, e, begin, end, to = 0
    with nogil:
        begin = 0
        for i in range(starts.shape[0] - 1):
            end = starts[i + 1]
            if begin < end:
                if end > members.shape[0]:
                    with gil:
                        raise IndexError("starts must be inside members")
                qsort(&members[begin], end - begin, sizeof(int32_t), compare)
            starts[i] = to
            for e in range(begin, end):
                if e == begin or members[e] != members[e - 1]:
                    members[to] = members[e]
                    to += 1
            begin = end
        starts[starts.shape[0] - 1] = to
    return to


def colour(const int64_t[::1] starts, const int32_t[::1] members, int32_t[::1] colours):
    """Colour the variables greedily in their order, each by the smallest free colour. Return the number of colours."""
    cdef int64_t i, e, n = starts.shape[0] - 1, n_colours = 0
    cdef int64_t[::1] taken = np.full(n + 1, -1, np.int64)
    cdef int32_t c
    with nogil:
        for i in range(n):
            for e in range(starts[i], starts[i + 1]):
                if members[e] < i:
                    taken[colours[members[e]]] = i
            c = 0
            while taken[c] == i:
                c += 1
            colours[i] = c
            n_colours = max(n_colours, c + 1)
    return n_colours


def largest_odds(const double[::1] unary):
    """Return (largest finite absolute log-odds, index of a variable with NaN odds or -1)."""
    cdef int64_t i, fault = -1
    cdef double size, largest = 0.0
    with nogil:
        for i in range(unary.shape[0]):
            size = fabs(unary[i])
            if size != size:
                fault = i
                break
            if not isinf(size) and size > largest:
                largest = size
    return largest, fault


def grid_columns(const int32_t[:, ::1] scopes, int64_t n_variables):
    """Recognise a grid in raster order. Return (columns, wraps), or (0, False) if the pairs form no grid.

    The pairs must come first along columns, then along rows, each in the order of their first variables.
    """
    cdef int64_t n_pairs = scopes.shape[0], columns, rows, r, c, f = 0
    cdef bint wraps, fits
    if not n_pairs:
        return 0, False
    columns = scopes[0, 1] - scopes[0, 0]
    if columns < 3 or n_variables % columns or n_variables < 3 * columns:
        return 0, False
    rows = n_variables // columns
    wraps = n_pairs == 2 * n_variables
    if not wraps and n_pairs != (rows - 1) * columns + rows * (columns - 1):
        return 0, False
    with nogil:
        fits = True
        for r in range(rows if wraps else rows - 1):
            for c in range(columns):
                fits &= scopes[f, 0] == r * columns + c and scopes[f, 1] == (r + 1) % rows * columns + c
                f += 1
        for r in range(rows):
            for c in range(columns if wraps else columns - 1):
                fits &= scopes[f, 0] == r * columns + c and scopes[f, 1] == r * columns + (c + 1) % columns
                f += 1
    return (columns if fits else 0), fits and wraps
