# cython: language_level=3
"""The Gibbs family's engine for Python: its parts are filled from plain values, and it goes on piece by piece.

Python checks and chooses; what an update does is in the headers of ``engine/`` (the README beside this file says
where).
"""

import numpy as np

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from rows cimport conditionals, rows_of


cdef extern from "engine/engine.h" nogil:
    enum:
        MOST_LABELS
        MOST_COUNTED
        BATCH
        MOST_PACKED
        WEIGHTS_FULL
        NO_MEMORY
        IMPOSSIBLE
        PART_PLAN
        PART_RECORD
        PART_SETUP
        PART_WEIGHTS
        PART_GRID
        PART_BLOCKS
        PART_ARRAYS
        PART_COUNTING
        PART_GROUPS
        WHOLE
        REAL
        WORD
        STRIDED
        BUFFER
    ctypedef struct engine
    ctypedef struct field:
        const char *name
        int64_t offset
        int kind
        const char *type
    engine *engine_new(int64_t n_groups)
    void engine_free(engine *e)
    void *engine_part(engine *e, int part, const field **fields)
    conditionals *engine_conditionals(engine *e)
    int64_t engine_begin(engine *e, const char *most)
    int64_t engine_advance(engine *e, int64_t start, int64_t stop)
    int64_t engine_advance_together(engine *e, int me, int64_t first, int64_t last)
    void engine_settle(engine *e)
    int64_t engine_faulty(const engine *e, int me)
    void engine_drive(engine *e, const double *uniforms, int64_t first)
    void engine_tabulate(engine *e)
    int64_t engine_count(engine *e, int64_t first, int64_t last)
    const uint16_t *engine_state(const engine *e)
    double engine_log_potential(const engine *e)
    double engine_best_log_potential(const engine *e)
    double engine_added_up(const engine *e, const uint16_t *x)
    int64_t engine_n_kept(const engine *e)
    int64_t engine_n_samples(const engine *e)
    const char *engine_instructions(const engine *e)
    void engine_uniforms(uint64_t key, uint64_t block, double *out)
    void engine_start_fractions(uint64_t key, uint32_t *fractions, const int64_t *at, int64_t n_keys, int64_t n)
    void engine_unborn(double *weights, int64_t n)

cdef extern from "engine/uniforms.h" nogil:
    enum:
        UNIFORM_BLOCK


LABELS_LIMIT, COUNTED_LIMIT, BATCH_SIZE, PACKED_LIMIT = MOST_LABELS, MOST_COUNTED, BATCH, MOST_PACKED
FULL, FORBIDDEN = WEIGHTS_FULL, IMPOSSIBLE


def uniforms(uint64_t key, uint64_t block):
    """float64[1024]: block ``block`` of the uniform numbers of a stream."""
    cdef double[::1] out = np.empty(UNIFORM_BLOCK)
    engine_uniforms(key, block, &out[0])
    return np.asarray(out)


def start_fractions(uint64_t key, uint32_t[::1] fractions, const int64_t[::1] weights_at, int64_t n_keys,
                    int64_t n_variables):
    """Fills dense weights of two labels; ``weights_at`` [V + 1], or None: n_keys for each variable."""
    cdef const int64_t *at = NULL if weights_at is None else &weights_at[0]
    with nogil:
        engine_start_fractions(key, &fractions[0], at, n_keys, n_variables)


def unborn(double[::1] weights):
    """Marks dense signed weights as not yet met."""
    with nogil:
        engine_unborn(&weights[0], weights.shape[0])


class Group:
    """A group of factors as the engine has it, from TableFactors; ``counts``: what its cells' counts are added to."""

    def __init__(self, factors, counts=None):
        self.arity, self.scopes, self.cells = factors.arity, factors.scopes, factors.rows.shape[1]
        self.table_of_factor, self.scale, self.tables = factors.table_of_factor, factors.scale, factors.tables
        self.sizes, self.counts = np.array(factors.tables.shape[1:], np.int32), counts


cdef class Engine:
    """One run over one graph; arrays are kept alive as long as it lives."""
    cdef engine *e
    cdef list kept
    cdef object driving
    cdef int64_t n_steps
    cdef readonly int64_t done  # updates so far

    def __cinit__(self, factors, table_counts=()):
        """``factors``: the TableFactors of the graph, for log-potentials and counts; ``table_counts``: one for each
        group, or none."""
        cdef int k
        self.kept = []
        self.e = engine_new(len(factors))
        if self.e == NULL:
            raise MemoryError
        for k in range(len(factors)):
            self.fill(PART_GROUPS + k, Group(factors[k], table_counts[k] if table_counts else None))

    def __dealloc__(self):
        engine_free(self.e)

    cdef int fill(self, int part, source) except -1:
        """Fills a part of the engine (fields.h) from the attributes of ``source``."""
        cdef const field *f = NULL
        cdef char *to = <char *> engine_part(self.e, part, &f)
        cdef int64_t *whole
        while f.name != NULL:
            value, type_of = getattr(source, f.name.decode()), f.type.decode()
            whole = <int64_t *> (to + f.offset)
            if f.kind == WHOLE:
                whole[0] = value
            elif f.kind == REAL:
                (<double *> whole)[0] = value
            elif f.kind == WORD:
                whole[0] = type_of.split().index(value)
            elif value is not None:
                self.hand_over(f.kind, whole, value, f.name.decode(), np.dtype(type_of))
            f += 1
        return 0

    cdef int hand_over(self, int kind, int64_t *to, array, str name, dtype) except -1:
        """A pointer to an array's numbers, and how many they are; for a row also how far apart."""
        strided = kind == STRIDED
        if array.dtype != dtype or not (strided or array.flags.c_contiguous) or (
                kind == BUFFER and not array.flags.writeable):
            raise TypeError(f"the engine's {name} must be a contiguous array of {dtype}")
        self.kept.append(array)
        to[0], to[1] = array.ctypes.data if array.size else 0, array.size
        if strided and array.size:
            to[2] = array.strides[0] // dtype.itemsize
        return 0

    def begin(self, setup, arrays, str most=""):
        """Takes what all runs of a `Setup` share and this run's own `Arrays`; ``most``: the best `instructions` that
        may be used, for tests."""
        cdef bint memory
        cdef bytes name = most.encode()
        cdef const char *best = name
        for part, source in ((PART_PLAN, setup.plan), (PART_RECORD, setup.plan.record), (PART_SETUP, setup),
                             (PART_WEIGHTS, setup.weights), (PART_BLOCKS, setup.blocks), (PART_ARRAYS, arrays)):
            if source is not None:
                self.fill(part, source)
        if setup.loop == "grid":
            self.fill(PART_GRID, setup.form)
        else:
            engine_conditionals(self.e)[0] = rows_of(setup.form)
            self.kept.append(setup.form)
        self.n_steps = setup.n_steps
        with nogil:
            memory = engine_begin(self.e, best) != NO_MEMORY
        if not memory:
            raise MemoryError

    def drive(self, const double[::1] uniforms, int64_t first):
        """Takes the uniform numbers of update ``first`` and later from here."""
        self.driving = uniforms
        engine_drive(self.e, &uniforms[0], first)

    def advance(self, int64_t start, int64_t stop):
        """Updates number start .. stop - 1. Returns (fault, variable): fault 0 is success."""
        cdef int64_t fault
        with nogil:
            fault = engine_advance(self.e, start, stop)
        if not fault:
            self.done = stop
        return fault, engine_faulty(self.e, 0)

    def advance_together(self, int me, int64_t first, int64_t last):
        """Sweeps first .. last - 1 as thread ``me``; all threads must call this with the same sweeps."""
        cdef int64_t fault
        with nogil:
            fault = engine_advance_together(self.e, me, first, last)
        if me == 0 and not fault:
            self.done = last * self.n_steps
        return fault, engine_faulty(self.e, me)

    def settle(self):
        """Brings the arrays of what is recorded up to date; `advance` alone leaves counts behind."""
        with nogil:
            engine_settle(self.e)

    def tabulate(self, tables):
        """Fills the `Tables` of a small graph, and makes the engine ready to count by them."""
        self.fill(PART_COUNTING, tables)
        with nogil:
            engine_tabulate(self.e)

    def count(self, int64_t first, int64_t last):
        """Sweeps first .. last - 1 of a small graph, counted. Returns (fault, variable)."""
        cdef int64_t fault
        with nogil:
            fault = engine_count(self.e, first, last)
        return fault, engine_faulty(self.e, 0)

    def added_up(self, const uint16_t[::1] x=None):
        """The log-potential of a state, by default the present one, added up anew."""
        if x is None:
            return engine_added_up(self.e, engine_state(self.e))
        return engine_added_up(self.e, &x[0] if x.shape[0] else NULL)

    def state(self, int64_t n):
        """int32[n]: the present state."""
        return np.array(<const uint16_t[:n]> engine_state(self.e), np.int32)

    @property
    def log_potential(self):
        """Of the present state, kept incrementally."""
        return engine_log_potential(self.e)

    @property
    def best_log_potential(self):
        return engine_best_log_potential(self.e)

    @property
    def n_kept(self):
        """Sweeps recorded after the burn-in."""
        return engine_n_kept(self.e)

    @property
    def instructions(self):
        """Those its loops are compiled for, once it has begun: "plain", "avx2" or "avx512"."""
        return engine_instructions(self.e).decode()

    @property
    def n_samples(self):
        """States kept."""
        return engine_n_samples(self.e)
