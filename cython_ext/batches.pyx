# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Forward-backward of many sequences, and the probabilities of spans in them.

Sequences of similar length are processed side by side, one in each lane of a vector (chain_loops/lanes.h). A lane gives
the bits that its sequence would get alone (`smooth`), so batches do not change results. Called by chain.pyx and
likelihood.pyx."""

import numpy as np

cimport cython
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t

from herdner._ext.smoothing cimport (
    CHAIN_LANE_STATES, CHAIN_LANE_TOKENS, CHAIN_OK, CHAIN_WIDEST, Smoothed, Workspace, chain_count_bad_numbers,
    chain_lane_backward, chain_lane_exponentials, chain_lane_forward, chain_lane_marginals, chain_lanes, chain_n_lanes,
    count_edges, edge_marginal, edges_from, in_lines, joined, longest, node_marginals, smooth, total_log,
)
from herdner._ext.memory cimport require
from sums cimport CompensatedSum, add


cdef bint fit_lanes(Workspace space, int64_t n_sequences):
    """Return True if lanes can process the tables and are worth their set-up for so many sequences."""
    return n_sequences >= FEW_SEQUENCES and space.c.scalable and space.c.scaled.n_states <= CHAIN_LANE_STATES


cdef double log_span(const Smoothed *c, const double *unary, const int32_t *states, const int32_t *edge_table,
                     int64_t start, int64_t end, double *work) noexcept nogil:
    """Return log P(tokens start to end - 1 have these states).

    It is forward at the start + the path - the normalisers + backward at the end. All terms are local to the span, so
    the accuracy does not depend on the length of the sequence.
    """
    cdef int stride = c.scaled.stride
    cdef double here = c.forward[start * stride + states[start]]
    cdef double ahead = c.backward[(end - 1) * stride + states[end - 1]]
    cdef double total = joined(c, end - 1, work)
    cdef double both = here + ahead - total if c.log_domain else log(here * ahead / total)
    return min(add_path(c, unary, states, edge_table, start, end, c.norm, 1, both), 0.0)


cdef double add_path(const Smoothed *c, const double *unary, const int32_t *states, const int32_t *edge_table,
                     int64_t start, int64_t end, const double *norm, int step, double result) noexcept nogil:
    """Add to ``result`` the path from a span's first token to its last, minus the normalisers (``step`` apart)."""
    cdef int n_states = c.scaled.n_states
    cdef int64_t t, table = 0
    for t in range(start + 1, end):
        if edge_table != NULL:
            table = edge_table[t]
        result += c.tables[(table * n_states + states[t - 1]) * n_states + states[t]]
        result += unary[t * n_states + states[t]] - norm[step * t]
    return result


cdef Spans spans_of(const int32_t[::1] states, const int64_t[::1] starts, const int64_t[::1] ends, double[::1] out):
    """Return a `Spans`. A constructor would convert each argument to a Python object and back."""
    cdef Spans spans = Spans.__new__(Spans)
    spans.states, spans.starts, spans.ends, spans.out = states, starts, ends, out
    return spans


@cython.auto_pickle(False)  # a copy of an object that `spans_of` has not filled would read invalid memory
cdef class Spans:
    """The states of all tokens [N], spans sorted by their starts, and the array for their log-probabilities."""
    cdef int64_t first(self, int64_t token) noexcept nogil:
        """Return the first span that begins at this token or later."""
        cdef int64_t low = 0, high = self.starts.shape[0], k
        while low < high:
            k = (low + high) // 2
            if self.starts[k] < token:
                low = k + 1
            else:
                high = k
        return low

    cdef void fill(self, const Smoothed *c, const double[:, ::1] unary, const int32_t *edge_table, int64_t start,
                   int64_t end, double *work) noexcept nogil:
        """Compute the spans of the sequence of tokens ``start:end``, after its forward-backward."""
        cdef int64_t k = self.first(start)
        while k < self.starts.shape[0] and self.starts[k] < end:
            self.out[k] = log_span(c, &unary[start, 0], &self.states[start], edge_table, self.starts[k] - start,
                                   self.ends[k] - start, work)
            k += 1

    cdef bint any_in(self, int64_t start, int64_t end) noexcept nogil:
        """Return True if a span begins at one of the tokens ``start:end``."""
        cdef int64_t k = self.first(start)
        return k < self.starts.shape[0] and self.starts[k] < end


cdef class PairCounts:
    """Expected counts of pairs of states, summed over sequences with their weights."""

    def __cinit__(self, Py_ssize_t n_states, Py_ssize_t stride):
        require(0 < n_states <= stride < 1 << 24, "tables must be square")
        self.outer, self.counts = np.zeros((n_states, stride)), np.zeros((n_states, n_states))
        self.total_outer, self.total_counts = np.zeros((n_states, n_states)), np.zeros((n_states, n_states))
        self.work = np.empty((n_states, stride))

    cdef void add_alone(self, const Smoothed *c, int64_t n, double weight) noexcept nogil:
        """Add the counts of a sequence after its own forward-backward."""
        cdef Py_ssize_t i, j
        self.outer[:] = 0.0
        if c.log_domain:
            self.counts[:] = 0.0
        count_edges(c, n, NULL, &self.outer[0, 0], &self.counts[0, 0], &self.work[0, 0])
        for i in range(self.counts.shape[0]):
            for j in range(self.counts.shape[1]):
                self.total_outer[i, j] += weight * self.outer[i, j]
        if c.log_domain:
            for i in range(self.counts.shape[0]):
                for j in range(self.counts.shape[1]):
                    self.total_counts[i, j] += weight * self.counts[i, j]

    cdef void add_lane(self, const chain_lanes *lanes, int wide, int64_t lane, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.total_outer.shape[0] * self.total_outer.shape[1]
        cdef double *total = &self.total_outer[0, 0]
        for k in range(n):
            total[k] += weight * lanes.pairs[wide * k + lane]

    cdef total(self, Workspace space):
        """Return the counts: float64[K, K]."""
        exponentials = np.asarray(space.scaled.padded)[0, 0, :, :self.total_outer.shape[1]]
        return np.asarray(self.total_outer) * exponentials + np.asarray(self.total_counts)


cdef class Many:
    """The sequences of one call, its outputs, and memory for lanes.

    Outputs that are None are not computed; ``pairs`` requires ``nodes``. ``weights`` [S] are the weights of sequences
    in ``pairs``; None means 1. Sequences have at most ``most`` tokens.

    ``edge_table`` [N], ``outer`` and ``counts`` (of `count_edges`) and the edge marginals ``edges`` [N, K, K] are set
    before `allocate`. If one of them is not None, sequences are processed one by one in their order.
    """

    def __cinit__(self):
        self.edge_table, self.outer, self.counts, self.edges = None, None, None, None

    cdef int allocate(self, Workspace space, const double[:, ::1] unary, const int64_t[::1] offsets, int64_t most,
                      double[::1] log_z, double[:, ::1] nodes, Spans spans, PairCounts pairs,
                      const double[::1] weights) except -1:
        """Store the sequences and the outputs, and allocate the memory for lanes."""
        cdef Py_ssize_t n_states = unary.shape[1]
        cdef int64_t n = min(most, CHAIN_LANE_TOKENS)
        cdef int wide = chain_n_lanes
        cdef double[:, :, ::1] tables, rows, numbers, sums
        require(n_states == space.c.scaled.n_states and n > 0, "unary must have a column for each state")
        self.space, self.unary, self.offsets, self.log_z, self.nodes = space, unary, offsets, log_z, nodes
        self.spans, self.pairs, self.weights = spans, pairs, weights
        self.backward = not (nodes is None and spans is None and self.counts is None and self.edges is None)
        self.in_order = not (self.edge_table is None and self.counts is None and self.edges is None)
        self.in_lanes, self.wide = not self.in_order and fit_lanes(space, offsets.shape[0] - 1), wide
        if not self.in_lanes:
            return 0
        tied = np.asarray(space.scaled.padded)[:, 0, :, :n_states]
        tables, rows = in_lines((2, n_states, wide * n_states)), in_lines((3, n, wide * n_states))
        numbers, sums = in_lines((4, n, wide)), in_lines((n_states, n_states, wide))
        np.asarray(tables)[:] = np.repeat(tied, wide, axis=2)
        self.lanes.n_states, self.lanes.shift = <int> n_states, space.scaled.shifts[0]
        self.lanes.table, self.lanes.transposed = &tables[0, 0, 0], &tables[1, 0, 0]
        self.lanes.x, self.lanes.forward, self.lanes.backward = &rows[0, 0, 0], &rows[1, 0, 0], &rows[2, 0, 0]
        self.lanes.tops, self.lanes.norm = &numbers[0, 0, 0], &numbers[1, 0, 0]
        self.lanes.factor, self.lanes.scale = &numbers[2, 0, 0], &numbers[3, 0, 0]
        self.lanes.pairs = NULL if pairs is None else &sums[0, 0, 0]
        self.references = (tables, rows, numbers, sums)
        return 0

    cdef int64_t length(self, int64_t s) noexcept nogil:
        return self.offsets[s + 1] - self.offsets[s]

    cdef int64_t all(self):
        """Process all sequences. Return a fault, as `batch` does."""
        cdef int64_t n = self.offsets.shape[0] - 1, s = 0, fault = -1
        with nogil:
            while s < n and fault == -1:
                fault = self.batch(s, min(s + BATCH_SEQUENCES, n))
                s += BATCH_SEQUENCES
        return fault

    cdef int64_t batch(self, int64_t first, int64_t last) noexcept nogil:
        """Process sequences ``first`` to ``last`` - 1, the longest first unless they are processed in order.

        Returns the first sequence without an allowed labelling, -1, or BAD_NUMBERS.
        """
        cdef int64_t order[BATCH_SEQUENCES]
        cdef int64_t s, j, i = 0, n_sound = 0, bad = last, fault = last
        for s in range(first, last):
            if self.log_z is not None:
                self.log_z[s] = 0.0
            if not self.length(s) or self.spans is not None and not self.spans.any_in(self.offsets[s],
                                                                                      self.offsets[s + 1]):
                continue
            if chain_count_bad_numbers(&self.unary[self.offsets[s], 0], self.length(s) * self.unary.shape[1]):
                bad = s
                break
            j = n_sound
            while j and not self.in_order and self.length(order[j - 1]) < self.length(s):
                order[j] = order[j - 1]
                j -= 1
            order[j] = s
            n_sound += 1
        while i < n_sound:
            if self.lanes_pay(&order[i], n_sound - i):
                fault = min(fault, self.together(&order[i], min(n_sound - i, self.wide), last))
                i += self.wide
            else:
                fault = min(fault, self.alone(order[i], last))
                i += 1
        return fault if fault < last else BAD_NUMBERS if bad < last else -1

    cdef bint lanes_pay(self, const int64_t *group, int64_t n) noexcept nogil:
        """Return True if lanes take less time than processing their sequences one by one."""
        cdef int64_t lane, n_tokens = 0
        if not self.in_lanes:
            return False
        for lane in range(min(n, self.wide)):
            n_tokens += self.length(group[lane])
        return n_tokens > 2 * self.length(group[0]) and self.length(group[0]) <= CHAIN_LANE_TOKENS

    cdef int64_t alone(self, int64_t s, int64_t none) noexcept nogil:
        """Process one sequence without lanes. Return its index if no labelling is allowed, else ``none``."""
        cdef Smoothed *c = &self.space.c
        cdef int64_t start = self.offsets[s], n = self.length(s), t
        cdef const int32_t *edge = edges_from(self.edge_table, start)
        if smooth(c, &self.unary[start, 0], n, edge, self.backward) != CHAIN_OK:
            return s
        if self.log_z is not None:
            self.log_z[s] = total_log(c, n)
        if self.nodes is not None:
            node_marginals(c, n, &self.nodes[start, 0])
        if self.pairs is not None:
            self.pairs.add_alone(c, n, 1.0 if self.weights is None else self.weights[s])
        if self.counts is not None:
            count_edges(c, n, edge, &self.outer[0, 0, 0], &self.counts[0, 0, 0], &self.space.work[0])
        for t in range(1, n if self.edges is not None else 0):
            edge_marginal(c, t, 0 if edge == NULL else edge[t], &self.edges[start + t, 0, 0])
        if self.spans is not None:
            self.spans.fill(c, self.unary, edge, start, self.offsets[s + 1], &self.space.work[0])
        return none

    cdef int64_t together(self, const int64_t *group, int64_t n, int64_t none) noexcept nogil:
        """Process n sequences in lanes; unused lanes repeat the last one. Return the first faulty one, or ``none``."""
        cdef int sound[CHAIN_WIDEST]
        cdef double *nodes[CHAIN_WIDEST]
        cdef int64_t lane, s, fault = none
        for lane in range(self.wide):
            s = group[min(lane, n - 1)]
            self.lanes.ends[lane], self.lanes.unary[lane] = self.length(s), &self.unary[self.offsets[s], 0]
            sound[lane] = True
            if self.nodes is not None:
                nodes[lane] = &self.nodes[self.offsets[s], 0]
        chain_lane_exponentials(&self.lanes, sound)
        chain_lane_forward(&self.lanes, sound)
        if self.backward:
            chain_lane_backward(&self.lanes, sound)
        if self.nodes is not None:
            chain_lane_marginals(&self.lanes, nodes)
        for lane in range(n):
            if not sound[lane]:
                fault = min(fault, self.alone(group[lane], none))
                continue
            if self.log_z is not None:
                self.log_z[group[lane]] = self.lane_log_z(lane)
            if self.pairs is not None:
                s = group[lane]
                self.pairs.add_lane(&self.lanes, self.wide, lane, 1.0 if self.weights is None else self.weights[s])
            if self.spans is not None:
                self.lane_spans(lane, self.offsets[group[lane]], self.offsets[group[lane] + 1])
        return fault

    cdef void lane_spans(self, int64_t lane, int64_t first, int64_t last) noexcept nogil:
        """Compute `log_span` for the spans of the sequence in a lane. Missing powers of 2 cancel."""
        cdef const chain_lanes *c = &self.lanes
        cdef int64_t k = self.spans.first(first), n_states = c.n_states, start, end, j
        cdef const int32_t *states = &self.spans.states[first]
        cdef double sums[4]
        cdef double here, ahead, total
        while k < self.spans.starts.shape[0] and self.spans.starts[k] < last:
            start, end = self.spans.starts[k] - first, self.spans.ends[k] - first - 1
            here = c.forward[self.wide * (start * n_states + states[start]) + lane] * c.factor[self.wide * start + lane]
            ahead = c.backward[self.wide * (end * n_states + states[end]) + lane]
            for j in range(4):
                sums[j] = 0.0
            for j in range(n_states):
                sums[j % 4] += (c.forward[self.wide * (end * n_states + j) + lane]
                                * c.backward[self.wide * (end * n_states + j) + lane])
            total = ((sums[0] + sums[2]) + (sums[1] + sums[3])) * c.factor[self.wide * end + lane]
            self.spans.out[k] = min(add_path(&self.space.c, &self.unary[first, 0], states, NULL, start, end + 1,
                                             c.norm + lane, self.wide, log(here * ahead / total)), 0.0)
            k += 1

    cdef double lane_log_z(self, int64_t lane) noexcept nogil:
        """Return `total_log` of the sequence in a lane."""
        cdef CompensatedSum total = CompensatedSum(0.0, 0.0)
        cdef int64_t t, last = self.lanes.ends[lane] - 1
        cdef double rest = 0.0
        cdef int j
        for t in range(last + 1):
            add(&total, self.lanes.norm[self.wide * t + lane])
        for j in range(self.lanes.n_states):
            rest += self.lanes.forward[self.wide * (last * self.lanes.n_states + j) + lane]
        add(&total, log(rest * self.lanes.factor[self.wide * last + lane]))
        return total.value


cdef int64_t smooth_spans(Workspace space, const double[:, ::1] unary, const int64_t[::1] offsets,
                          const int32_t[::1] edge_table, Spans spans):
    """Compute ``spans``; sequences without a span are skipped. Returns a fault, as `Many.all` does."""
    cdef Many many = Many.__new__(Many)
    many.edge_table = edge_table
    many.allocate(space, unary, offsets, longest(offsets), None, None, spans, None, None)
    return many.all()
