# cython: language_level=3
# Forward-backward over one sequence: the declarations of cython_ext/smoothing.pyx and chain_loops/chain.h for other
# modules. Tables [T, K, K] are log-potentials of pairs, finite or -inf; ``offsets`` [S + 1] are the starts of the
# sequences and, at the end, the number of tokens.
cimport cython
from libc.math cimport INFINITY, exp, fabs, log
from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.memory cimport Memory

from sums cimport CompensatedSum, add, log_sum_exp


cdef extern from "chain_loops/chain.h" nogil:
    enum:
        CHAIN_OK, CHAIN_IMPOSSIBLE, CHAIN_EXTREME
        CHAIN_LANE_STATES, CHAIN_LANE_TOKENS, CHAIN_PATHS, CHAIN_STRETCHES, CHAIN_WIDEST
    double CHAIN_TABLE_RANGE
    int chain_n_lanes
    ctypedef struct chain_tables:
        int n_states, stride
        const double *tables
        const double *transposed
        const double *shifts
    ctypedef struct chain_path:
        const double *unary
        const int32_t *edge_table
        double *scores
        int32_t *states
        int64_t n, readable, sequence
    ctypedef struct chain_lanes:
        int n_states
        double shift
        const double *table
        const double *transposed
        const double *unary[CHAIN_WIDEST]
        int64_t ends[CHAIN_WIDEST]
        double *x
        double *forward
        double *backward
        double *tops
        double *norm
        double *factor
        double *scale
        double *pairs
    ctypedef struct chain_stretches:
        int n_states, stride
        const double *table
        const double *transposed
        const double *unary[CHAIN_WIDEST]
        int32_t *states[CHAIN_WIDEST]
        int64_t ends[CHAIN_WIDEST]
        int64_t longest
        uint8_t *begins
        double *scores
        double *tops
    ctypedef struct chain_features:
        int stride
        int64_t n_rows
        const int32_t *columns
        const int32_t *entries
        const int64_t *column_starts
        const int64_t *entry_starts
        const uint8_t *entry_tags
        const double *values
    int64_t chain_count_bad_numbers(const double *values, int64_t n)
    void chain_best_scores(const chain_tables *c, chain_path *paths, int n_paths)
    double chain_start_trace(const chain_tables *c, chain_path *path)
    void chain_trace_back(const chain_tables *c, chain_path *paths, int n_paths)
    int chain_exponentials(const chain_tables *c, const double *unary, int64_t n, double *x, double *tops)
    int chain_forward(const chain_tables *c, int64_t n, const int32_t *edge_table, int64_t first, const double *x,
                      const double *tops, double *forward, double *norm)
    void chain_start_backward(const chain_tables *c, double *row)
    int chain_backward(const chain_tables *c, int64_t last, const int32_t *edge_table, const double *x,
                       double *backward, double *xb, double *scale)
    void chain_lane_exponentials(const chain_lanes *c, int *sound)
    void chain_lane_forward(const chain_lanes *c, int *sound)
    void chain_lane_backward(const chain_lanes *c, int *sound)
    void chain_lane_marginals(const chain_lanes *c, double **rows)
    bint chain_lane_best_scores(const chain_stretches *c)
    void chain_lane_trace_back(const chain_stretches *c)
    void chain_product(double *out, const double *row, const double *table, int n_states, int stride)
    double chain_message(double *out, const double *row, const double *table, const double *before, int n_states,
                         int stride)
    void chain_cavity(double *out, const double *belief, const double *message, int stride)
    void chain_replace_message(double *belief, const double *new, const double *old, int stride, double *least,
                               double *most)
    void chain_multiply(double *row, const double *by, int stride, double *least, double *most)
    double chain_join(double *out, const double *forward, const double *backward, int n, int stride)
    void chain_add_outer(double *table, const double *left, const double *right, double share, int n_states,
                         int stride)
    void chain_score_rows(const chain_features *f, int64_t first, int64_t n, const double *table, const double *weights,
                          double *out, int width)
    void chain_spread_rows(const chain_features *f, int64_t first, int64_t n, const double *excess, int width,
                           double share, double *table, double *weights)


# One sequence after forward (and backward): rows are probabilities, or logarithms of them if log_domain.
cdef struct Smoothed:
    chain_tables scaled       # exp(table - shift), for the scaled loops
    const double *tables      # [T, K, K] log-potentials
    bint scalable, log_domain # the tables allow the scaled loops; the rows are logarithms
    double *x                 # these are [longest, stride]
    double *forward
    double *backward
    double *xb                # unary and backward together
    double *tops              # [longest]: the largest unary log-potential
    double *norm              # [longest]: the logarithms of the divisors of forward rows
    double *scale             # [longest]: the divisors of backward rows


cdef inline int64_t longest(const int64_t[::1] offsets) noexcept nogil:
    cdef int64_t s, n = 1
    for s in range(offsets.shape[0] - 1):
        n = max(n, offsets[s + 1] - offsets[s])
    return n


cdef inline const int32_t* edges_from(const int32_t[::1] edge_table, int64_t start) noexcept nogil:
    return NULL if edge_table is None else &edge_table[0] + start


cdef enum:
    LARGE_LOG = 1000000  # from here on rounding of logarithms shows in the sum of probabilities


cdef inline void soft_max(double *row, int n) noexcept nogil:
    """Replace a row of logarithms by normalised probabilities."""
    cdef double total = log_sum_exp(row, n), whole = 0.0
    cdef int k
    for k in range(n):
        row[k] = exp(row[k] - total)
        whole += row[k]
    if fabs(total) > LARGE_LOG:
        for k in range(n):
            row[k] /= whole


cdef inline double total_log(const Smoothed *c, int64_t n) noexcept nogil:
    """Return log Z: the sum of ``norm`` plus, in the scaled case, the logarithm of the last row's sum."""
    cdef CompensatedSum total = CompensatedSum(0.0, 0.0)
    cdef const double *last = c.forward + (n - 1) * c.scaled.stride
    cdef double rest = 0.0
    cdef int64_t t
    cdef int j
    for t in range(n):
        add(&total, c.norm[t])
    if not c.log_domain:
        for j in range(c.scaled.n_states):
            rest += last[j]
        add(&total, log(rest))
    return total.value


cdef inline double joined(const Smoothed *c, int64_t t, double *out) noexcept nogil:
    """Fill ``out`` with forward times backward of token t. Return its sum (in the log domain: sum and log-sum-exp)."""
    cdef const double *f = c.forward + t * c.scaled.stride
    cdef const double *b = c.backward + t * c.scaled.stride
    cdef int j
    if not c.log_domain:
        return chain_join(out, f, b, c.scaled.n_states, c.scaled.stride)
    for j in range(c.scaled.n_states):
        out[j] = f[j] + b[j]
    return log_sum_exp(out, c.scaled.n_states)


cdef inline chain_tables padded_tables(double[:, :, :, ::1] padded) noexcept nogil:
    """Return the result of `pad` as a struct for the loops, without shifts, which only scaled tables have."""
    return chain_tables(<int> padded.shape[2], <int> padded.shape[3], &padded[0, 0, 0, 0], &padded[1, 0, 0, 0], NULL)


cdef class ScaledTables

cdef Memory own_tables(tables, Py_ssize_t n_states)
cdef Memory own_sequences(offsets, Py_ssize_t n)
cdef Memory own_edges(edge_table, Py_ssize_t n, Py_ssize_t n_tables)
cdef object in_lines(tuple shape)
cdef object pad(const double[:, :, ::1] tables, double filler)
cdef object padded_with_infinity(Memory tables)
cdef ScaledTables scaled_tables(Memory tables)
cdef int smooth(Smoothed *c, const double *unary, int64_t n, const int32_t *edge_table, bint backward) noexcept nogil
cdef int scaled_passes(Smoothed *c, int64_t n, const int32_t *edge_table, int64_t first, int64_t last,
                       bint backward) noexcept nogil
cdef void node_marginals(const Smoothed *c, int64_t n, double *out) noexcept nogil
cdef void edge_marginal(const Smoothed *c, int64_t t, int64_t table, double *out) noexcept nogil
cdef void count_edges(const Smoothed *c, int64_t n, const int32_t *edge_table, double *outer, double *counts,
                      double *work) noexcept nogil


@cython.final
cdef class ScaledTables:
    """exp(table - its largest entry), and whether the finite entries span a range that the scaled loops allow."""
    cdef chain_tables c
    cdef bint scalable
    cdef double[::1] shifts
    cdef double[:, :, :, ::1] padded    # the result of `pad`


@cython.final
cdef class Workspace:
    """Memory for sequences of ``n`` tokens, allocated once per call."""
    cdef Smoothed c
    cdef ScaledTables scaled
    cdef double[::1] work
    cdef Memory own_copy  # of the tables

    cdef inline Smoothed part(self, int64_t start) noexcept nogil:
        """Return the memory from token ``start`` on; ``xb`` and ``scale`` are shared, as only one backward pass needs
        them."""
        cdef Smoothed c = self.c
        c.x += start * c.scaled.stride
        c.forward += start * c.scaled.stride
        c.backward += start * c.scaled.stride
        c.norm += start
        c.tops += start
        return c
