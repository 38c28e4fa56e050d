# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The Gibbs family's loops. ``herdner.inference.backends.gibbs`` checks and chooses everything; here arrays become pointers.

The algorithm is in the headers: gibbs_model.h (conditionals), gibbs_weights.h and gibbs_draw.h (herding), gibbs_loops.h
(a loop for each structure), gibbs_record.h and gibbs_run.h (sweeps, threads).
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc


cdef extern from "gibbs_engine.h" nogil:
    enum:
        UNIFORM_BLOCK
        MOST_LABELS
        SHARD
        BATCH
        DRAW_RANDOM
        DRAW_BLANKET
        DRAW_SUM
        DRAW_BINS
        DRAW_ANY
        SHARE_COMPLETE
        SHARE_BLANKET
        SHARE_SUM
        SHARE_BINS
        SHARE_RANDOM_BINS
        LOOP_ANY
        LOOP_TWO
        LOOP_LABELS
        LOOP_GRID
        WEIGHTS_FULL
        IMPOSSIBLE
    double UNBORN
    ctypedef uint16_t label
    ctypedef struct grid_model:
        int64_t rows, columns
        int wraps
        double[4][2] log_ratio
    ctypedef struct model:
        int64_t n, n_unary, n_rows
        const grid_model *grid
        const int32_t *sizes
        const int32_t *widths
        const int64_t *unary_at
        const int64_t *starts
        const int64_t *others_at
        const int32_t *row_at
        const int32_t *others
        const int32_t *places
        const double *unary_log
        const double *rows_log
        double *unary
        double *rows
        double *unary_step
        double *rows_step
        const uint8_t *careful
        double beta
    ctypedef struct sampler:
        model m
        const label *x
        label *y
        int draw, sharing, circular, follow
        int64_t bins, n_keys, words, most_bytes
        double error_bound, one
        const uint64_t *bin_places
        const int64_t *key_starts
        const int32_t *key_members
        const uint8_t *long_keys
        const uint64_t *place
        uint64_t *state_sum
        uint64_t weight_key
        uint32_t *fractions
        double *dense
        const int64_t *weights_at
        const uint8_t *independent
        uint32_t *conditional_counts
    ctypedef struct weight_table:
        int64_t words
    ctypedef struct worker:
        int64_t fault, faulty
        double *w
        double *cumulative
        double *p
    ctypedef struct factor_group:
        int64_t n, arity, cells, table_stride, scale_stride
        const int32_t *scopes
        const int32_t *table_of_factor
        const int32_t *sizes
        const double *scale
        const double *tables
        double *counts
    ctypedef struct record:
        uint32_t *counts
        double *conditional_sums
        uint32_t *joint
        const int64_t *joint_place
        int table_counts
        double *trace
        label *samples
        label *best
        int64_t every, burn_in, n_kept, n_samples
        double best_log_potential, log_potential
    ctypedef struct blocks:
        const int32_t *first
        const int32_t *edge_table
        const double *tables_log
        double *tables
        int64_t n_tables, n_labels, stride
        double range, beta
        double *filter
        double *row
    ctypedef struct run:
        sampler s
        record r
        factor_group *groups
        int n_groups, loop, all_two, random_scan, jacobi, n_threads
        int64_t n_steps, n_colours, n_tables, driving_from
        const int32_t *order
        uint64_t draw_key, scan_key
        const double *driving
        const double *betas
        const int64_t *colour_starts
        weight_table *tables
        blocks *blocks
        double *gains
    ctypedef struct thread_state:
        worker w
        int64_t block, order_block
    ctypedef struct gibbs_engine:
        void (*heat)(model *m, double beta) noexcept nogil
        void (*exp_scaled)(const double *start, double *to, int64_t n, double beta) noexcept nogil
        int64_t (*run_alone)(run *r, thread_state *t, int64_t start, int64_t stop) noexcept nogil
        int64_t (*run_together)(run *r, thread_state *t, int me, int64_t first, int64_t last) noexcept nogil
    const gibbs_engine *best_engine()
    const gibbs_engine gibbs_engine_base
    void sum_state(run *r)
    double state_log_potential(const factor_group *groups, int n_groups, const label *x)
    void weight_table_free(weight_table *t)
    uint32_t start_fraction(uint64_t key, int64_t i, uint64_t k)
    void uniform_block(uint64_t key, uint64_t block, double *out)

cdef extern from "gibbs_count.h" nogil:
    enum:
        MOST_COUNTED
    ctypedef struct counting:
        double *odds
        int64_t *p
        int64_t *keys
        double *upper
        int64_t *aims
        int64_t focus
        uint64_t *visits
        uint64_t *returns
        const int32_t *groups
        int8_t *last
    void tabulate(run *r, const counting *c)
    int64_t count_sweeps(run *r, thread_state *t, const counting *c, int64_t first, int64_t last)


LABELS_LIMIT = MOST_LABELS
COUNTED_LIMIT = MOST_COUNTED
SHARD_SIZE, BATCH_SIZE = SHARD, BATCH
SHARINGS = {
    "complete": SHARE_COMPLETE, "blanket": SHARE_BLANKET, "neighbour-sum": SHARE_SUM,
    "bins": SHARE_BINS, "random-bins": SHARE_RANDOM_BINS,
}
DRAWS = {"random": DRAW_RANDOM, "blanket": DRAW_BLANKET, "neighbour-sum": DRAW_SUM, "bins": DRAW_BINS, "any": DRAW_ANY}
LOOPS = {"any": LOOP_ANY, "two": LOOP_TWO, "labels": LOOP_LABELS, "grid": LOOP_GRID}
FULL, FORBIDDEN = WEIGHTS_FULL, IMPOSSIBLE


def uniforms(uint64_t key, uint64_t block):
    """float64[1024]: block ``block`` of the uniform numbers of a stream."""
    cdef double[::1] out = np.empty(UNIFORM_BLOCK)
    uniform_block(key, block, &out[0])
    return np.asarray(out)


def start_fractions(uint64_t key, uint32_t[::1] fractions, const int64_t[::1] weights_at, int64_t n_keys,
                    int64_t n_variables):
    """Fills dense weights of two labels; ``weights_at`` [V + 1], or None: n_keys for each variable."""
    cdef int64_t i, k, first, last
    with nogil:
        for i in range(n_variables):
            first = i * n_keys if weights_at is None else weights_at[i]
            last = first + n_keys if weights_at is None else weights_at[i + 1]
            for k in range(last - first):
                fractions[first + k] = start_fraction(key, i, k)


def unborn(double[::1] weights):
    """Marks dense signed weights as not yet met."""
    cdef int64_t k
    with nogil:
        for k in range(weights.shape[0]):
            weights[k] = UNBORN


def log_potential(factors, label[::1] x):
    """The log-potential of one state, without the temporary arrays of FactorGraph.log_potential."""
    run = Run()
    return run.set_state(factors, x)


cdef class Run:
    """One run over one graph, advanced piece by piece; arrays are kept alive as long as it lives."""
    cdef run r
    cdef grid_model grid
    cdef const gibbs_engine *engine
    cdef thread_state *threads
    cdef blocks blocks
    cdef counting counting
    cdef list kept
    cdef uint64_t state_sum
    cdef object driving
    cdef int64_t widest
    cdef readonly int64_t done  # updates so far

    def __cinit__(self):
        self.kept = []
        self.threads = NULL
        self.engine = best_engine()

    def __dealloc__(self):
        cdef int64_t k
        if self.r.tables != NULL:
            for k in range(self.r.n_tables):
                weight_table_free(&self.r.tables[k])
            free(self.r.tables)
        free(self.r.groups)
        free(self.r.gains)
        if self.threads != NULL:
            for k in range(self.r.n_threads):
                free(self.threads[k].w.w)
            free(self.threads)

    cdef void* at(self, array) except? NULL:
        """Where an array's numbers are; NULL for None or an empty one."""
        if array is None or not array.size:
            return NULL
        assert array.flags.c_contiguous
        self.kept.append(array)
        return <void *> <size_t> array.ctypes.data

    def set_model(self, c, label[::1] x, label[::1] y, double[::1] unary, double[::1] rows, careful, str loop,
                  independent):
        """``c`` is a Conditionals; ``unary`` and ``rows`` receive its heated rows; ``careful`` uint8[V] and
        ``independent`` uint8[V // BATCH_SIZE] or None."""
        cdef model *m = &self.r.s.m
        m.n, m.n_unary, m.n_rows = len(c.sizes), len(c.unary), len(c.rows)
        m.sizes, m.widths = <const int32_t *> self.at(c.sizes), <const int32_t *> self.at(c.widths)
        m.unary_at, m.starts = <const int64_t *> self.at(c.unary_at), <const int64_t *> self.at(c.starts)
        m.others_at, m.row_at = <const int64_t *> self.at(c.others_at), <const int32_t *> self.at(c.row_at)
        m.others, m.places = <const int32_t *> self.at(c.others), <const int32_t *> self.at(c.places)
        m.unary_log, m.rows_log = <const double *> self.at(c.unary), <const double *> self.at(c.rows)
        m.unary, m.rows = <double *> self.at(unary.base), <double *> self.at(rows.base)
        m.careful = <const uint8_t *> self.at(careful)
        m.beta = -1.0
        self.r.s.independent = <const uint8_t *> self.at(independent)
        self.r.s.x, self.r.s.y = <const label *> self.at(x.base), <label *> self.at(y.base)
        self.widest = max(4, int(c.widths.max(initial=1)))
        self.r.loop = LOOPS[loop]
        self.r.all_two = loop == "two"

    def set_grid(self, g, label[::1] x, label[::1] y, double[::1] unary):
        """``g`` is a GridForm; ``unary`` receives its heated log odds."""
        cdef model *m = &self.r.s.m
        cdef int side, k
        self.grid.rows, self.grid.columns, self.grid.wraps = g.rows, g.columns, g.wraps
        for side in range(4):
            for k in range(2):
                self.grid.log_ratio[side][k] = g.sides[side, k]
        m.grid, m.n, m.n_unary = &self.grid, g.rows * g.columns, g.rows * g.columns
        m.unary_log, m.unary = <const double *> self.at(g.unary), <double *> self.at(unary.base)
        m.beta = -1.0
        self.widest = 4
        self.r.s.x, self.r.s.y = <const label *> self.at(x.base), <label *> self.at(y.base)
        self.r.loop, self.r.all_two = LOOP_GRID, True

    def set_step(self, double[::1] unary_step, double[::1] rows_step, double step):
        """Annealing rises by ``step`` from sweep to sweep: the arrays, like the rows, receive what they rise by."""
        cdef model *m = &self.r.s.m
        m.unary_step, m.rows_step = <double *> self.at(unary_step.base), <double *> self.at(rows_step.base)
        self.engine.exp_scaled(m.unary_log, m.unary_step, m.n_unary, step)
        if m.grid != NULL:
            self.engine.exp_scaled(&self.grid.log_ratio[0][0], m.rows_step, 8, step)
        elif m.rows_step != NULL:
            self.engine.exp_scaled(m.rows_log, m.rows_step, m.n_rows, step)

    def use_plain_engine(self):
        """Without AVX2, for tests and benchmarks: the same results."""
        self.engine = &gibbs_engine_base

    def set_state(self, factors, label[::1] x):
        """Only what log-potentials need: `set_groups` for a state."""
        self.r.s.x = <const label *> self.at(np.asarray(x))
        return self.set_groups(factors)

    def set_groups(self, factors):
        """``factors``: the TableFactors of the graph, for log-potentials and counts. Returns its log-potential now."""
        cdef int k
        cdef factor_group *g
        self.r.n_groups = len(factors)
        self.r.groups = <factor_group *> calloc(len(factors) + 1, sizeof(factor_group))
        for k in range(self.r.n_groups):
            group, g = factors[k], &self.r.groups[k]
            g.n, g.arity, g.cells = len(group), group.arity, group.rows.shape[1]
            g.scopes, g.tables = <const int32_t *> self.at(group.scopes), <const double *> self.at(group.rows)
            g.sizes = <const int32_t *> self.at(np.array(group.tables.shape[1:], np.int32))
            self.kept += [group.table_of_factor, group.scale]
            g.table_of_factor = <const int32_t *> <size_t> group.table_of_factor.ctypes.data
            g.scale = <const double *> <size_t> group.scale.ctypes.data
            if g.n:
                g.table_stride = group.table_of_factor.strides[0] // 4
                g.scale_stride = group.scale.strides[0] // 8
        self.r.r.log_potential = state_log_potential(self.r.groups, self.r.n_groups, self.r.s.x)
        return self.r.r.log_potential

    def set_draws(self, str draw, str sharing, double one, bint circular, int64_t bins, double error_bound,
                  key_starts, key_members, long_keys, place, bin_places, uint64_t weight_key, fractions, dense,
                  weights_at, int64_t n_keys, int64_t words, int64_t most_bytes, int64_t n_tables):
        """How labels are drawn, and the herding weights: dense ``fractions`` or ``dense``, or ``n_tables`` hashed."""
        cdef sampler *s = &self.r.s
        cdef int64_t k
        s.draw, s.sharing, s.one, s.circular = DRAWS[draw], SHARINGS[sharing], one, circular
        s.bins, s.error_bound, s.weight_key = bins, error_bound, weight_key
        s.key_starts, s.key_members = <const int64_t *> self.at(key_starts), <const int32_t *> self.at(key_members)
        s.long_keys, s.place = <const uint8_t *> self.at(long_keys), <const uint64_t *> self.at(place)
        s.bin_places = <const uint64_t *> self.at(bin_places)
        s.fractions, s.dense = <uint32_t *> self.at(fractions), <double *> self.at(dense)
        s.weights_at, s.n_keys, s.words, s.most_bytes = <const int64_t *> self.at(weights_at), n_keys, words, most_bytes
        s.state_sum = &self.state_sum
        self.r.tables = <weight_table *> calloc(max(n_tables, 1), sizeof(weight_table))
        self.r.n_tables = n_tables
        for k in range(n_tables):
            self.r.tables[k].words = words

    def set_scan(self, int64_t n_steps, order, bint random_scan, bint jacobi, uint64_t draw_key, uint64_t scan_key,
                 betas, colour_starts, int n_threads):
        """The order of a sweep, the temperatures, and the colours for threads (at least one colour)."""
        cdef int k
        self.r.n_steps, self.r.order = n_steps, <const int32_t *> self.at(order)
        self.r.random_scan, self.r.jacobi, self.r.draw_key, self.r.scan_key = random_scan, jacobi, draw_key, scan_key
        self.r.betas, self.r.colour_starts = <const double *> self.at(betas), <const int64_t *> self.at(colour_starts)
        self.r.n_colours, self.r.n_threads = len(colour_starts) - 1, n_threads
        self.r.gains = <double *> calloc(n_steps // SHARD + 1, 32)
        self.threads = <thread_state *> calloc(n_threads, sizeof(thread_state))
        for k in range(n_threads):
            self.threads[k].block = self.threads[k].order_block = -1
            self.threads[k].w.w = <double *> malloc(3 * self.widest * 8)
            self.threads[k].w.cumulative = self.threads[k].w.w + self.widest
            self.threads[k].w.p = self.threads[k].w.w + 2 * self.widest
        if self.r.s.place != NULL:
            sum_state(&self.r)
        if self.r.betas == NULL:
            self.engine.heat(&self.r.s.m, 1.0)

    def set_record(self, bint follow, dict arrays, table_counts, int64_t every, int64_t burn_in):
        """What is kept: ``arrays`` by fields of gibbs_record.h; ``table_counts``: one for each group, or none."""
        cdef record *r = &self.r.r
        self.r.s.follow, r.conditional_sums = follow, <double *> self.at(arrays.get("conditional_sums"))
        self.r.s.conditional_counts = <uint32_t *> self.at(arrays.get("conditional_counts"))
        r.counts, r.joint = <uint32_t *> self.at(arrays.get("counts")), <uint32_t *> self.at(arrays.get("joint"))
        r.joint_place = <const int64_t *> self.at(arrays.get("joint_place"))
        r.trace = <double *> self.at(arrays.get("trace"))
        r.table_counts = len(table_counts) > 0
        for k in range(len(table_counts)):
            self.r.groups[k].counts = <double *> self.at(table_counts[k])
        r.samples, r.best = <label *> self.at(arrays.get("samples")), <label *> self.at(arrays.get("best"))
        r.every, r.burn_in, r.best_log_potential = every, burn_in, r.log_potential if follow else -INFINITY

    def set_blocks(self, first, edge_table, tables, double range_of_tables, int64_t longest):
        """Resamples blocks of variables together: arrays as in gibbs_blocks.h, ``tables`` [T, n_labels, stride]."""
        cdef blocks *b = &self.blocks
        b.first, b.edge_table = <const int32_t *> self.at(first), <const int32_t *> self.at(edge_table)
        b.n_tables, b.n_labels, b.stride = tables.shape
        b.tables_log, b.tables = <const double *> self.at(tables), <double *> self.at(np.empty(tables.shape))
        b.filter = <double *> self.at(np.empty((longest, b.stride)))
        b.row = <double *> self.at(np.empty(2 * max(4, b.stride)))
        b.range, b.beta = range_of_tables, -1.0
        self.r.blocks = b

    def drive(self, const double[::1] uniforms, int64_t first):
        """Takes the uniform numbers of update ``first`` and later from here."""
        self.driving = uniforms
        self.r.driving, self.r.driving_from = &uniforms[0], first

    def advance(self, int64_t start, int64_t stop):
        """Updates number start .. stop - 1. Returns (fault, variable): fault 0 is success."""
        cdef int64_t fault
        with nogil:
            fault = self.engine.run_alone(&self.r, &self.threads[0], start, stop)
        if not fault:
            self.done = stop
        return fault, self.threads[0].w.faulty

    def advance_together(self, int me, int64_t first, int64_t last):
        """Sweeps first .. last - 1 as thread ``me``; all threads must call this with the same sweeps."""
        cdef int64_t fault
        with nogil:
            fault = self.engine.run_together(&self.r, &self.threads[me], me, first, last)
        if me == 0 and not fault:
            self.done = last * self.r.n_steps
        return fault, self.threads[me].w.faulty

    def set_counting(self, odds, p, keys, int64_t focus, visits, returns, groups, last):
        """Fills the tables ``odds``, ``p``, ``keys`` [V, 2^V]; the others, for `count`, as in gibbs_count.h."""
        upper, aims = np.empty(odds.shape), np.empty(self.r.s.bins + 1, np.int64)
        cdef counting *c = &self.counting
        c.odds, c.p, c.keys = <double *> self.at(odds), <int64_t *> self.at(p), <int64_t *> self.at(keys)
        c.upper, c.aims = <double *> self.at(upper), <int64_t *> self.at(aims)
        c.visits, c.returns, c.focus = <uint64_t *> self.at(visits), <uint64_t *> self.at(returns), focus
        c.groups, c.last = <const int32_t *> self.at(groups), <int8_t *> self.at(last)
        tabulate(&self.r, c)

    def count(self, int64_t first, int64_t last):
        """Sweeps first .. last - 1 of a small graph, counted. Returns (fault, variable)."""
        cdef int64_t fault
        with nogil:
            fault = count_sweeps(&self.r, &self.threads[0], &self.counting, first, last)
        return fault, self.threads[0].w.faulty

    def recomputed_log_potential(self):
        """The log-potential of the present state, added up anew."""
        return state_log_potential(self.r.groups, self.r.n_groups, self.r.s.x)

    @property
    def state(self):
        """int32[V]: the present state."""
        if self.r.s.m.n == 0:
            return np.empty(0, np.int32)
        return np.array(<const label[:self.r.s.m.n]> self.r.s.x, np.int32)

    @property
    def log_potential(self):
        """Of the present state, kept incrementally."""
        return self.r.r.log_potential

    @property
    def best_log_potential(self):
        return self.r.r.best_log_potential

    @property
    def kept_sweeps(self):
        """Sweeps recorded after the burn-in, and samples among them."""
        return self.r.r.n_kept, self.r.r.n_samples
