# cython: language_level=3
"""Viterbi, forward-backward and the probability of spans, for many linear chains in one call.

Called by ``herdner.inference.linear_chain`` and the backends ``sum_product`` and ``viterbi``.

Arguments common to all functions: ``unary`` [N, K] are the log-potentials of all tokens; sequence s has the rows
``offsets[s]`` to ``offsets[s + 1]`` - 1. ``tables`` [T, K, K] are pairwise log-potentials; the edge from token t - 1 to
t uses ``tables[edge_table[t]]``, or ``tables[0]`` if ``edge_table`` is None. Entries are finite or -inf, which the
callers check. All arrays that contain positions are copied and checked here. The numbers in ``unary`` are checked
sequence by sequence, which also loads them into the cache; no number selects an element of an array. The caller
allocates all outputs.

Each function stops at the first fault. It returns -1 on success, -2 if ``unary`` holds NaN, +inf or numbers beyond
1e300, or else the index of a sequence without an allowed labelling.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from herdner._ext.batches cimport BAD_NUMBERS, Many, PairCounts, smooth_spans, spans_of
from herdner._ext.links cimport add_link_messages, mark_touched
from herdner._ext.memory cimport Memory, owned, require, require_range
from herdner._ext.smoothing cimport (
    CHAIN_LANE_STATES, CHAIN_PATHS, CHAIN_STRETCHES, Workspace, chain_best_scores, chain_count_bad_numbers,
    chain_lane_best_scores, chain_lane_trace_back, chain_n_lanes, chain_path, chain_start_trace, chain_stretches,
    chain_tables, chain_trace_back, edges_from, in_lines, longest, own_edges, own_sequences, own_tables, padded_tables,
    padded_with_infinity,
)


cdef enum:
    EXTRA_ROWS = 512  # tokens that fit into the rows beside the longest sequence
    # Viterbi uses lanes if a call has at least FEW_TOKENS tokens, the longest stretch at most LONG_STRETCH, and all
    # stretches together at least PAYING_STRETCHES times as many as the longest.
    FEW_TOKENS = 4096
    LONG_STRETCH = 256
    PAYING_STRETCHES = 5


@cython.internal
cdef class ViterbiDecoder:
    """Viterbi decoding of many sequences, and its memory."""
    cdef const double[:, ::1] unary
    cdef const int64_t[::1] offsets
    cdef const int32_t[::1] edge_table
    cdef int32_t[::1] states
    cdef double[::1] scores
    cdef chain_tables c
    cdef double[:, ::1] rows
    cdef chain_stretches groups[CHAIN_STRETCHES]  # each with as many stretches as there are lanes
    cdef int n_groups, wide
    cdef object references

    cdef int allocate(self, const double[:, ::1] unary, Memory tables, const int64_t[::1] offsets,
                      const int32_t[::1] edge_table, int32_t[::1] states, double[::1] scores) except -1:
        """Store the sequences and the outputs, and allocate the memory for sequences without lanes."""
        cdef double[:, :, :, ::1] padded = padded_with_infinity(tables)
        self.unary, self.offsets, self.edge_table, self.states, self.scores = unary, offsets, edge_table, states, scores
        self.c = padded_tables(padded)
        self.rows = np.empty((longest(offsets) + EXTRA_ROWS, padded.shape[3]))
        self.references = padded
        return 0

    cdef bint fills_lanes(self) noexcept nogil:
        """Return True if all edges share one table and there are enough tokens to repay the cost of `widen`."""
        return (self.edge_table is None and self.c.n_states <= CHAIN_LANE_STATES
                and self.unary.shape[0] >= FEW_TOKENS)

    cdef widen(self):
        """Allocate memory for lanes."""
        cdef Py_ssize_t n_states = self.unary.shape[1], wide = chain_n_lanes, n = CHAIN_STRETCHES // wide, k
        cdef double[:, ::1] table = in_lines((n_states, wide * n_states))
        cdef double[:, :, ::1] rows = in_lines((n, LONG_STRETCH, wide * n_states))
        cdef double[:, :, ::1] tops = in_lines((n, LONG_STRETCH, wide))
        cdef uint8_t[:, ::1] begins = np.empty((n, LONG_STRETCH + 1), np.uint8)
        np.asarray(table)[:] = np.repeat(np.asarray(self.references)[0, 0, :, :n_states], wide, axis=1)
        self.n_groups, self.wide = n, wide
        for k in range(n):
            self.groups[k].n_states, self.groups[k].stride = self.c.n_states, self.c.stride
            self.groups[k].table, self.groups[k].transposed = &table[0, 0], self.c.transposed
            self.groups[k].scores, self.groups[k].tops = &rows[k, 0, 0], &tops[k, 0, 0]
            self.groups[k].begins = &begins[k, 0]
        self.references = (self.references, table, rows, tops, begins)

    cdef inline int64_t length(self, int64_t s) noexcept nogil:
        return self.offsets[s + 1] - self.offsets[s]

    cdef int64_t lay_out(self, int64_t first, int64_t[CHAIN_STRETCHES + 1] bounds) noexcept nogil:
        """Partition sequences from ``first`` on into stretches of similar length.

        Stretch i has the sequences ``bounds[i]`` to ``bounds[i + 1]`` - 1. A sequence that is too long forms the first
        stretch alone. Returns the number of tokens of the longest stretch.
        """
        cdef int64_t n = self.offsets.shape[0] - 1, s = first, most = 0, taken, i
        cdef int64_t n_tokens = self.offsets[n] - self.offsets[first]
        cdef int64_t wanted = min(n_tokens // CHAIN_STRETCHES + 1, <int64_t> LONG_STRETCH)
        bounds[0] = first
        for i in range(CHAIN_STRETCHES):
            taken = 0
            while s < n and taken < wanted and (taken + self.length(s) <= LONG_STRETCH or s == first):
                taken += self.length(s)
                s += 1
            bounds[i + 1] = s
            most = max(most, taken)
        return most

    cdef int64_t next(self, int64_t first, int64_t *fault) noexcept nogil:
        """Process some sequences from ``first`` on; return the next one. ``fault`` receives the first faulty one."""
        cdef int64_t bounds[CHAIN_STRETCHES + 1]
        cdef int64_t most = self.lay_out(first, bounds), last = bounds[CHAIN_STRETCHES]
        cdef int64_t n_tokens = self.offsets[last] - self.offsets[first]
        if most > LONG_STRETCH or n_tokens < PAYING_STRETCHES * most or not self.together(bounds):
            fault[0] = self.alone(first, last)
        return last

    cdef bint together(self, const int64_t[CHAIN_STRETCHES + 1] bounds) noexcept nogil:
        """Process stretches in lanes. Return False if a fault requires processing the sequences alone."""
        cdef int64_t first = self.offsets[bounds[0]], n_tokens = self.offsets[bounds[CHAIN_STRETCHES]] - first, i
        cdef bint sound = True
        for i in range(CHAIN_STRETCHES):
            self.begin(i, bounds[i], bounds[i + 1])
        for i in range(self.n_groups):
            sound &= chain_lane_best_scores(&self.groups[i])
        if not sound and chain_count_bad_numbers(&self.unary[first, 0], n_tokens * self.c.n_states):
            return False
        chain_lane_trace_back(self.groups)
        sound = True
        for i in range(CHAIN_STRETCHES):
            sound &= self.take_scores(i, bounds[i], bounds[i + 1])
        return sound

    cdef void begin(self, int64_t stretch, int64_t first, int64_t last) noexcept nogil:
        """Lay out sequences ``first`` to ``last`` - 1 as a stretch. The stretches of a group come in order."""
        cdef chain_stretches *group = &self.groups[stretch // self.wide]
        cdef int64_t lane = stretch % self.wide, start = self.offsets[first], n = self.offsets[last] - start, s
        if lane == 0:
            group.longest = 0
            memset(group.begins, 0, LONG_STRETCH + 1)
        group.longest = max(group.longest, n)
        group.ends[lane] = n
        if n:
            group.unary[lane], group.states[lane] = &self.unary[start, 0], &self.states[start]
        for s in range(first, last + 1):
            group.begins[self.offsets[s] - start] |= 1 << lane

    cdef bint take_scores(self, int64_t stretch, int64_t first, int64_t last) noexcept nogil:
        """Store the scores of a stretch. Return True if all its sequences have an allowed labelling."""
        cdef const double *tops = self.groups[stretch // self.wide].tops + stretch % self.wide
        cdef int64_t s
        cdef bint possible = True
        for s in range(first, last):
            self.scores[s] = 0.0
            if self.length(s):
                self.scores[s] = tops[self.wide * (self.offsets[s + 1] - self.offsets[first] - 1)]
                possible &= self.scores[s] > -INFINITY
        return possible

    cdef int64_t alone(self, int64_t first, int64_t last) noexcept nogil:
        """Process sequences without lanes. Return the first faulty sequence, or -1."""
        cdef chain_path paths[CHAIN_PATHS]
        cdef int64_t s, start, n, used = 0, fault = -1, bad = -1
        cdef int64_t n_values = self.unary.shape[0] * self.unary.shape[1]
        cdef int n_paths = 0
        for s in range(first, last):
            start = self.offsets[s]
            n = self.length(s)
            self.scores[s] = 0.0
            if n == 0:
                continue
            if n_paths == CHAIN_PATHS or used + n + 1 > self.rows.shape[0]:
                fault = self.paths(paths, n_paths)
                n_paths, used = 0, 0
            if fault != -1 or chain_count_bad_numbers(&self.unary[start, 0], n * self.c.n_states):
                bad = BAD_NUMBERS
                break
            paths[n_paths] = chain_path(&self.unary[start, 0], edges_from(self.edge_table, start),
                                        &self.rows[used, 0], &self.states[start], n,
                                        n_values - start * self.c.n_states, s)
            used += n + 1
            n_paths += 1
        if fault == -1:
            fault = self.paths(paths, n_paths)
        return fault if fault != -1 else bad

    cdef int64_t paths(self, chain_path *paths, int n_paths) noexcept nogil:
        """Fill the states and scores of some sequences. Return the first without an allowed labelling, or -1."""
        cdef int k
        cdef int64_t s
        chain_best_scores(&self.c, paths, n_paths)
        for k in range(n_paths):
            s = paths[k].sequence
            self.scores[s] = chain_start_trace(&self.c, &paths[k])
            if self.scores[s] == -INFINITY:
                return s
        chain_trace_back(&self.c, paths, n_paths)
        return -1


def add_borders(double[:, :] unary not None, offsets, const double[::1] start not None, const double[::1] end not None):
    """Add ``start`` [K] to the first token and ``end`` [K] to the last token of each sequence that is not empty."""
    add_to_borders(unary, own_sequences(offsets, unary.shape[0]), start, end)


@cython.boundscheck(True)
cdef int add_to_borders(double[:, :] unary, const int64_t[::1] borders, const double[::1] start,
                        const double[::1] end) except -1:
    cdef Py_ssize_t s, k
    require(start.shape[0] == unary.shape[1] == end.shape[0], "start and end need a number for each state")
    for s in range(borders.shape[0] - 1):
        if borders[s] < borders[s + 1]:
            for k in range(unary.shape[1]):
                unary[borders[s], k] += start[k]
            for k in range(unary.shape[1]):
                unary[borders[s + 1] - 1, k] += end[k]
    return 0


def viterbi(const double[:, ::1] unary not None, tables, offsets, edge_table, int32_t[::1] states not None,
            double[::1] scores not None):
    """Fill ``states`` [N] with each sequence's best labelling and ``scores`` [S] with its log-potential."""
    tables, offsets = own_tables(tables, unary.shape[1]), own_sequences(offsets, unary.shape[0])
    edge_table = own_edges(edge_table, unary.shape[0], len(tables))
    cdef int64_t n = len(offsets) - 1, s = 0, fault = -1
    require(states.shape[0] == unary.shape[0] and scores.shape[0] == n, "states and scores must fit the sequences")
    cdef ViterbiDecoder best = ViterbiDecoder.__new__(ViterbiDecoder)
    best.allocate(unary, tables, offsets, edge_table, states, scores)
    if not best.fills_lanes():
        with nogil:
            fault = best.alone(0, n)
        return fault
    best.widen()
    with nogil:
        while s < n and fault == -1:
            s = best.next(s, &fault)
    return fault


def forward_backward(const double[:, ::1] unary not None, tables, offsets, edge_table, double[::1] log_z not None,
                     double[:, ::1] nodes=None, double[:, :, ::1] counts=None, double[:, :, ::1] edges=None):
    """Fill ``log_z`` [S] and the other outputs that are not None.

    ``nodes`` [N, K] are node marginals; ``counts`` [T, K, K] the sums of the edge marginals by table; ``edges``
    [N, K, K] the edge marginals, row t for tokens t - 1 and t, 0 at the start of a sequence.
    """
    tables, edge_table = own_tables(tables, unary.shape[1]), own_edges(edge_table, unary.shape[0], len(tables))
    cdef const int64_t[::1] borders = own_sequences(offsets, unary.shape[0])
    check_outputs(unary, tables, borders, log_z, nodes, counts, edges)
    cdef Workspace space = Workspace(tables, longest(borders))
    cdef Many many = Many.__new__(Many)
    cdef PairCounts pairs = None
    cdef int64_t fault
    if counts is not None and nodes is not None and edges is None and edge_table is None:
        pairs = PairCounts(unary.shape[1], space.c.scaled.stride)
    elif counts is not None:
        many.outer, many.counts = np.zeros((len(tables), unary.shape[1], space.c.scaled.stride)), counts
        counts[:] = 0.0
    if edges is not None:
        edges[:] = 0.0
    many.edge_table, many.edges = edge_table, edges
    many.allocate(space, unary, borders, longest(borders), log_z, nodes, None, pairs, None)
    fault = many.all()
    if pairs is not None:
        np.asarray(counts)[0] = pairs.total(space)
    elif counts is not None:
        exponentials = np.asarray(space.scaled.padded)[0]
        np.asarray(counts)[:] += (np.asarray(many.outer) * exponentials)[:, :, :unary.shape[1]]
    return fault


cdef int check_outputs(const double[:, ::1] unary, const double[:, :, ::1] tables, const int64_t[::1] offsets,
                       double[::1] log_z, double[:, ::1] nodes, double[:, :, ::1] counts,
                       double[:, :, ::1] edges) except -1:
    """Raise ValueError unless the outputs have their shapes."""
    cdef Py_ssize_t n = unary.shape[0], n_states = unary.shape[1]
    require(log_z.shape[0] == offsets.shape[0] - 1, "log_z must have an entry for each sequence")
    require(nodes is None or (nodes.shape[0] == n and nodes.shape[1] == n_states), "nodes must have the shape of unary")
    require(counts is None or (counts.shape[0] == tables.shape[0] and counts.shape[1] == n_states == counts.shape[2]),
            "counts must have the shape of the tables")
    require(edges is None or (edges.shape[0] == n and edges.shape[1] == n_states == edges.shape[2]),
            "edges must have a table for each token")
    return 0


cdef int check_spans(const int64_t[::1] offsets, const int32_t[::1] states, int64_t n_states,
                     const int64_t[::1] starts, const int64_t[::1] ends) except -1:
    """Raise ValueError unless the spans are sorted, not empty and inside sequences, and the states exist."""
    cdef Py_ssize_t k, s = 0
    require(states.shape[0] == offsets[offsets.shape[0] - 1], "each token needs a state")
    require(starts.shape[0] == ends.shape[0], "each span needs a start and an end")
    require_range(states, 0, n_states, "states must be columns of unary")
    for k in range(starts.shape[0]):
        require(starts[k] >= (starts[k - 1] if k else 0), "spans must be sorted by their starts")
        while s < offsets.shape[0] - 1 and offsets[s + 1] <= starts[k]:
            s += 1
        require(s < offsets.shape[0] - 1 and starts[k] < ends[k] <= offsets[s + 1], "spans must be inside sequences")
    return 0


def span_log_probability(const double[:, ::1] unary not None, tables, offsets, edge_table, states, span_starts,
                         span_ends, double[::1] out not None):
    """Fill ``out`` with log P(tokens span_start to span_end - 1 have these ``states`` [N]).

    Spans are sorted by their starts, not empty, and each lies inside one sequence. Sequences without a span are
    skipped.
    """
    tables, edge_table = own_tables(tables, unary.shape[1]), own_edges(edge_table, unary.shape[0], len(tables))
    cdef const int64_t[::1] borders = own_sequences(offsets, unary.shape[0])
    states = owned(states, np.int32, 1, "states")
    span_starts, span_ends = owned(span_starts, np.int64, 1, "span_starts"), owned(span_ends, np.int64, 1, "span_ends")
    check_spans(borders, states, unary.shape[1], span_starts, span_ends)
    require(out.shape[0] == len(span_starts), "out must have an entry for each span")
    return smooth_spans(Workspace(tables, longest(borders)), unary, borders, edge_table,
                        spans_of(states, span_starts, span_ends, out))


def linked_span_log_probability(const double[:, ::1] unary not None, double[:, ::1] total not None, tables, offsets,
                                states, span_starts, span_ends, links, list link_tables not None,
                                const double[:, ::1] beliefs not None, const double[::1] start, const double[::1] end):
    """Compute `span_log_probability` of spans in linked chains.

    ``links`` holds int32[F, 2] for each of ``link_tables`` [K, K]. The expected log-potentials of links under
    ``beliefs`` [N, K] are added to ``total`` [N, K], and then ``start`` and ``end`` (`add_borders`), unless they are
    None. ``total`` may be ``unary``, which is read before.

    Returns (fault, linked bool[M], results float64[2, M]): whether a link joins a token of the span, and the results
    for ``total`` and for ``unary``. For spans that are not linked, both are the results for ``total``.
    """
    cdef Memory own_table = own_tables(tables, unary.shape[1])
    cdef const int32_t[::1] own_states = owned(states, np.int32, 1, "states")
    cdef Memory first = owned(span_starts, np.int64, 1, "span_starts")
    cdef Memory last = owned(span_ends, np.int64, 1, "span_ends")
    cdef list ends = [owned(part, np.int32, 2, "links") for part in list(links)], matrices = list(link_tables)
    cdef const int64_t[::1] borders = own_sequences(offsets, unary.shape[0]), starts = first, stops = last
    cdef Py_ssize_t m = starts.shape[0], k, n_linked = 0
    cdef int64_t fault
    linked, results = np.empty(m, np.uint8), np.empty((2, m))
    cdef uint8_t[::1] is_linked = linked
    cdef double[:, ::1] rows = results
    cdef int64_t[:, ::1] chosen
    cdef double[::1] chain_results
    check_spans(borders, own_states, unary.shape[1], starts, stops)
    require(total.shape[0] == unary.shape[0] and total.shape[1] == unary.shape[1], "total must have the shape of unary")
    require(len(ends) == len(matrices), "each table needs links")
    if not m:
        return -1, linked.view(np.bool_), results
    mark_touched(ends, unary.shape[0], first, last, &is_linked[0])
    cdef Workspace space = Workspace(own_table, longest(borders))
    for k in range(m):
        n_linked += is_linked[k]
    if n_linked:
        chosen, chain_results, n_linked = np.empty((2, n_linked), np.int64), np.empty(n_linked), 0
        for k in range(m):
            if is_linked[k]:
                chosen[0, n_linked], chosen[1, n_linked] = starts[k], stops[k]
                n_linked += 1
        fault = smooth_spans(space, unary, borders, None, spans_of(own_states, chosen[0], chosen[1], chain_results))
        if fault != -1:
            return fault, linked.view(np.bool_), results
    for part, table in zip(ends, matrices):
        add_link_messages(total, part, table, beliefs)
    if start is not None:
        add_to_borders(total, borders, start, end)
    fault = smooth_spans(space, total, borders, None, spans_of(own_states, starts, stops, rows[0]))
    n_linked = 0
    for k in range(m):
        rows[1, k] = rows[0, k]
        if is_linked[k]:
            rows[1, k] = chain_results[n_linked]
            n_linked += 1
    return fault, linked.view(np.bool_), results
