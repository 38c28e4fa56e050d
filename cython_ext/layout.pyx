# cython: language_level=3, boundscheck=True
"""Loops that lay out factor groups as chains and paths, each in one pass over checked arrays.

Called by ``herdner.graph.chains``, ``herdner.graph.linked_chains``, ``herdner.inference.gibbs.blocks`` and the backend
``viterbi``.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.memory cimport own, owned, require


def forward_paths(scopes, int64_t n_variables, int64_t[::1] offsets):
    """Find the paths of a graph whose factors, ``scopes`` [F, 2], join variables t - 1 and t in ascending order of t.

    ``offsets`` [V + 1] receives the start of each path and, at the end, V. Returns the number of paths, or -1 if a
    factor joins other variables.
    """
    cdef const int32_t[:, ::1] pairs = owned(scopes, np.int32, 2, "scopes")
    cdef int64_t f = 0, v, n_paths = 0
    require(offsets.shape[0] > n_variables >= 0, "offsets must have an entry for each variable and one more")
    for v in range(n_variables):
        if f < pairs.shape[0] and (pairs[f, 1] < v or pairs[f, 0] != pairs[f, 1] - 1):
            return -1
        if f < pairs.shape[0] and pairs[f, 1] == v:
            f += 1
        else:
            offsets[n_paths] = v
            n_paths += 1
    offsets[n_paths] = n_variables
    return n_paths if f == pairs.shape[0] else -1


def cut_runs(nearest, joined, int32_t[::1] first):
    """Partition the variables into runs and fill ``first`` [V], the start of each variable's run.

    From left to right a run continues while each variable is joined to the previous one and to no other of the run.
    Returns the length of the longest run.
    """
    cdef const int32_t[::1] left = owned(nearest, np.int32, 1, "nearest")
    cdef const uint8_t[::1] is_joined = owned(joined, np.uint8, 1, "joined")
    cdef int64_t v, longest = 0
    cdef int32_t start = 0
    with nogil:
        for v in range(first.shape[0]):
            if v > 0 and not (is_joined[v] and left[v] < start):
                start = <int32_t> v
            first[v] = start
            longest = max(longest, v - start + 1)
    return longest


def order_paths(int64_t n_variables, edges, int64_t[::1] order, int64_t[::1] offsets):
    """Order the variables of a graph whose components are all paths.

    ``order`` [V] lists the variables path by path; path s is ``order[offsets[s]:offsets[s + 1]]``. Each path starts at
    the smaller of its ends, and paths come in the order of their starts. ``edges`` [E, 2] are pairs of variables, in
    either direction, possibly repeated. Returns the number of paths. If the components are not all paths, returns
    -1 - e for the first edge e that gives a variable a third neighbour, or else lies on a cycle.
    """
    # Neighbour + 1, or 0 for none: zero pages cost nothing for variables that are never reached.
    cdef int32_t[:, ::1] neighbours = np.zeros((max(n_variables, 0), 2), np.int32)
    cdef const int32_t[:, ::1] ends = owned(edges, np.int32, 2, "edges")
    cdef int64_t e, v, at, previous, following, n_ordered = 0, n_paths = 0
    cdef signed char[::1] seen = np.zeros(max(n_variables, 0), np.int8)
    require(order.shape[0] == n_variables == offsets.shape[0] - 1, "order and offsets must fit the variables")
    require(ends.shape[1] == 2, "edges must have two columns")
    for e in range(ends.shape[0]):
        require(0 <= ends[e, 0] < n_variables and 0 <= ends[e, 1] < n_variables, "edges must join variables")
    with nogil:
        for e in range(ends.shape[0]):
            if not (add_neighbour(neighbours, ends[e, 0], ends[e, 1])
                    and add_neighbour(neighbours, ends[e, 1], ends[e, 0])):
                with gil:
                    return -1 - e
        offsets[0] = 0
        for v in range(n_variables):
            if seen[v] or neighbours[v, 1]:
                continue
            previous, at = -1, v
            while at >= 0:
                seen[at] = 1
                order[n_ordered] = at
                n_ordered += 1
                following = (neighbours[at, 1] if neighbours[at, 0] - 1 == previous else neighbours[at, 0]) - 1
                previous, at = at, following
            n_paths += 1
            offsets[n_paths] = n_ordered
    for e in range(ends.shape[0]):
        if not seen[ends[e, 0]]:
            return -1 - e
    return n_paths


cdef inline bint add_neighbour(int32_t[:, ::1] neighbours, int64_t here, int32_t there) except -1 nogil:
    """Add a neighbour to a variable. Return False if it would be the third."""
    cdef int side
    for side in range(2):
        if neighbours[here, side] == 0:
            neighbours[here, side] = there + 1
        if neighbours[here, side] == there + 1:
            return True
    return False


def add_rows(double[:, ::1] totals, to, table_of, const double[:] scale, const double[:, ::1] rows):
    """Add ``scale[f] * rows[table_of[f]]`` to the first columns of ``totals[to[f]]`` for each f in order.

    If ``table_of`` is None, row f is ``rows[f]``.
    """
    cdef const int32_t[:] place = own(to, np.int32, 1, "to", strided=True)
    cdef bint has_tables = table_of is not None
    cdef const int32_t[:] table = own(table_of, np.int32, 1, "table_of", strided=True) if has_tables else place
    cdef int64_t f, j
    cdef const double *row
    cdef double *total
    require(0 < rows.shape[1] <= totals.shape[1] or not place.shape[0], "totals must have a column for each of rows")
    with nogil:
        for f in range(place.shape[0]):
            row, total = &rows[table[f] if has_tables else f, 0], &totals[place[f], 0]
            for j in range(rows.shape[1]):
                total[j] += scale[f] * row[j]
