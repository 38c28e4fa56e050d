# cython: language_level=3
"""Loops over linear chains: Viterbi, forward-backward and the probability of spans, for many sequences in one call.

``herdner.inference.linear_chain`` calls them, and the sum-product and Viterbi backends.

Arguments common to all: ``unary`` [N, K] log-potentials of all tokens, sequence s being the rows ``offsets[s]`` to
``offsets[s + 1]``; ``tables`` [T, K, K] pairwise log-potentials, the edge from token t - 1 to t using
``tables[edge_table[t]]``, or ``tables[0]`` where ``edge_table`` is None. Entries are finite or -inf. Shapes and tables
are checked before, by ``herdner.inference.linear_chain``; the numbers in ``unary`` here, sequence by sequence, which
brings them into the cache. Outputs are allocated by the caller. Each function stops at the first fault and returns the
index of a sequence in which every labelling is impossible, or -2 if ``unary`` holds numbers that are none, or beyond
1e300; -1 is success."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from herdner._ext.batches cimport BAD_NUMBERS, Spans, fit_lanes, smooth_all
from herdner._ext.smoothing cimport (
    CHAIN_OK, CHAIN_PATHS, Smoothed, Workspace, chain_best_scores, chain_has_bad_numbers, chain_path, chain_start_trace,
    chain_tables, chain_trace_back, count_edges, edge_marginal, edges_from, longest, node_marginals, pad,
    padded_tables, smooth, total_log,
)


cdef enum:
    SPARE = 512  # tokens for which there is room beside the longest sequence


cdef int64_t best_paths(const chain_tables *c, chain_path *paths, int n_paths, double[::1] scores) noexcept nogil:
    """Fills the states and scores of some sequences; returns the first that is at fault, or -1."""
    cdef int k
    cdef int64_t s
    chain_best_scores(c, paths, n_paths)
    for k in range(n_paths):
        s = paths[k].sequence
        scores[s] = chain_start_trace(c, &paths[k])
        if scores[s] == -INFINITY:
            return s
    chain_trace_back(c, paths, n_paths)
    return -1


def viterbi(const double[:, ::1] unary, const double[:, :, ::1] tables, const int64_t[::1] offsets,
            const int32_t[::1] edge_table, int32_t[::1] states, double[::1] scores):
    """Fills ``states`` [N] with each sequence's best labelling and ``scores`` [S] with its log-potential."""
    cdef double[:, :, :, ::1] padded = pad(tables, -INFINITY)
    cdef chain_tables c = padded_tables(padded)
    cdef chain_path paths[CHAIN_PATHS]
    cdef int64_t s, start, n, used = 0, n_values = unary.shape[0] * unary.shape[1], fault = -1, bad = -1
    cdef int n_paths = 0
    cdef double[:, ::1] rows = np.empty((longest(offsets) + SPARE, padded.shape[3]))
    with nogil:
        for s in range(offsets.shape[0] - 1):
            start = offsets[s]
            n = offsets[s + 1] - start
            scores[s] = 0.0
            if n == 0:
                continue
            if n_paths == CHAIN_PATHS or used + n + 1 > rows.shape[0]:
                fault = best_paths(&c, paths, n_paths, scores)
                n_paths, used = 0, 0
            if fault != -1 or chain_has_bad_numbers(&unary[start, 0], n * c.n_labels):
                bad = BAD_NUMBERS
                break
            paths[n_paths] = chain_path(&unary[start, 0], edges_from(edge_table, start), &rows[used, 0],
                                        &states[start], n, n_values - start * c.n_labels, s)
            used += n + 1
            n_paths += 1
        if fault == -1:
            fault = best_paths(&c, paths, n_paths, scores)
    return fault if fault != -1 else bad


def forward_backward(const double[:, ::1] unary, const double[:, :, ::1] tables, const int64_t[::1] offsets,
                     const int32_t[::1] edge_table, double[::1] log_z, double[:, ::1] nodes=None,
                     double[:, :, ::1] counts=None, double[:, :, ::1] edges=None):
    """Fills ``log_z`` [S] and, where given, node marginals ``nodes`` [N, K], the sum of the edge marginals per table
    ``counts`` [T, K, K], and the edge marginals ``edges`` [N, K, K] (row t: tokens t - 1 and t; 0 at a start)."""
    cdef Workspace space = Workspace(tables, longest(offsets))
    cdef Smoothed *c = &space.c
    cdef bint backward = not (nodes is None and counts is None and edges is None)
    cdef double[:, :, ::1] outer = None
    cdef double *outer_counts = NULL
    cdef const int32_t *edge
    cdef int64_t s, start, n, t, fault = -1
    if counts is None and edges is None and edge_table is None and fit_lanes(space, offsets.shape[0] - 1):
        return smooth_all(space, unary, offsets, log_z, nodes, None)
    if counts is not None:
        outer = np.zeros((tables.shape[0], tables.shape[1], c.scaled.stride))
        outer_counts = &outer[0, 0, 0]
        counts[:] = 0.0
    if edges is not None:
        edges[:] = 0.0
    with nogil:
        for s in range(offsets.shape[0] - 1):
            start = offsets[s]
            n = offsets[s + 1] - start
            log_z[s] = 0.0
            if n == 0:
                continue
            edge = edges_from(edge_table, start)
            if chain_has_bad_numbers(&unary[start, 0], n * c.scaled.n_labels):
                fault = BAD_NUMBERS
                break
            if smooth(c, &unary[start, 0], n, edge, backward) != CHAIN_OK:
                fault = s
                break
            log_z[s] = total_log(c, n)
            if nodes is not None:
                node_marginals(c, n, &nodes[start, 0])
            if counts is not None:
                count_edges(c, n, edge, outer_counts, &counts[0, 0, 0], &space.work[0])
            if edges is not None:
                for t in range(1, n):
                    edge_marginal(c, t, 0 if edge == NULL else edge[t], &edges[start + t, 0, 0])
    if counts is not None:
        exponentials = np.asarray(space.scaled.padded)[0]
        np.asarray(counts)[:] += (np.asarray(outer) * exponentials)[:, :, :tables.shape[1]]
    return fault


def span_log_probability(const double[:, ::1] unary, const double[:, :, ::1] tables, const int64_t[::1] offsets,
                         const int32_t[::1] edge_table, const int32_t[::1] states, const int64_t[::1] span_starts,
                         const int64_t[::1] span_ends, double[::1] out):
    """Fills ``out`` with log P(tokens span_start..span_end - 1 have these ``states`` [N]). Spans are sorted by their
    starts, not empty, and each lies inside one sequence. Sequences without a span are skipped."""
    cdef Workspace space = Workspace(tables, longest(offsets))
    cdef Spans spans = Spans(states, span_starts, span_ends, out)
    cdef Smoothed *c = &space.c
    cdef const int32_t *edge
    cdef int64_t s, start, n, fault = -1
    if edge_table is None and fit_lanes(space, offsets.shape[0] - 1):
        return smooth_all(space, unary, offsets, None, None, spans)
    with nogil:
        for s in range(offsets.shape[0] - 1):
            start = offsets[s]
            n = offsets[s + 1] - start
            if not spans.any_in(start, offsets[s + 1]):
                continue
            edge = edges_from(edge_table, start)
            if chain_has_bad_numbers(&unary[start, 0], n * c.scaled.n_labels):
                fault = BAD_NUMBERS
                break
            if smooth(c, &unary[start, 0], n, edge, True) != CHAIN_OK:
                fault = s
                break
            spans.fill(c, unary, edge, start, offsets[s + 1], &space.work[0])
    return fault
