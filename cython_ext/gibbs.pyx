# cython: language_level=3
"""The engine of the Gibbs family for Python. It is filled from plain values and advances in chunks.

Python checks the arguments and chooses the loop; the headers in ``engine/`` do the updates (see the README beside this
file).
"""

from numbers import Integral, Real

import numpy as np

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from herdner._ext.conditionals cimport CompiledConditionals
from herdner._ext.memory cimport own, require
from rows cimport conditionals


cdef extern from "engine/engine.h" nogil:
    enum:
        BATCH_SIZE, IMPOSSIBLE, MAX_COUNTED_VARIABLES, MAX_PACKED_STATES, MAX_STATES, NO_MEMORY, WEIGHTS_FULL
        PART_PLAN, PART_RECORD, PART_SETUP, PART_WEIGHTS, PART_GRID, PART_BLOCKS, PART_ARRAYS, PART_COUNTING
        PART_GROUPS
        WHOLE, REAL, ENUM, BUFFER, STRIDED, PRIVATE
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
    const char *engine_group_fault(const engine *e, int64_t k)
    const char *engine_state_fault(const engine *e, const uint16_t *x, int64_t n)
    const char *engine_fault(const engine *e)
    const char *engine_counting_fault(const engine *e, int filled)
    int64_t engine_most_sweeps(const engine *e)
    int64_t engine_begin(engine *e, const char *max_instructions)
    int64_t engine_advance(engine *e, int64_t start, int64_t stop)
    int64_t engine_advance_parallel(engine *e, int thread, int64_t first, int64_t last)
    void engine_flush(engine *e)
    int64_t engine_fault_variable(const engine *e, int thread)
    void engine_set_uniforms(engine *e, const double *uniforms, int64_t first)
    void engine_fill_counting_tables(engine *e)
    int64_t engine_count_states(engine *e, int64_t first, int64_t last)
    const uint16_t *engine_state(const engine *e)
    const int64_t *engine_counting_keys(const engine *e)
    double engine_best_log_potential(const engine *e)
    double engine_log_potential_of(const engine *e, const uint16_t *x)
    const char *engine_instructions(const engine *e)
    void engine_uniform_block(uint64_t key, uint64_t block, double *out)
    void engine_initialise_fractions(uint64_t key, uint32_t *fractions, const int64_t *starts, int64_t n_keys,
                                     int64_t n)

cdef extern from "engine/random_numbers.h" nogil:
    enum:
        UNIFORM_BLOCK


STATES_LIMIT, COUNTED_LIMIT, BATCH, PACKED_LIMIT = MAX_STATES, MAX_COUNTED_VARIABLES, BATCH_SIZE, MAX_PACKED_STATES
FAULT_WEIGHTS_FULL, FAULT_IMPOSSIBLE = WEIGHTS_FULL, IMPOSSIBLE


def uniform_block(uint64_t key, uint64_t block):
    """Return block ``block`` of the uniform numbers of the stream ``key``: float64[1024]."""
    cdef double[::1] out = np.empty(UNIFORM_BLOCK)
    engine_uniform_block(key, block, &out[0])
    return np.asarray(out)


def initialise_fractions(uint64_t key, uint32_t[::1] fractions not None, starts, int64_t n_keys, int64_t n_variables):
    """Set dense weights of binary variables to their start values.

    ``starts`` [V + 1] holds the first weight of each variable; None means that each variable has ``n_keys`` weights.
    """
    cdef const int64_t[::1] first = None if starts is None else own(starts, np.int64, 1, "starts")
    cdef const int64_t *at = NULL if first is None else &first[0]
    cdef Py_ssize_t i
    require(0 <= n_keys <= fractions.shape[0] and 0 <= n_variables <= 1 << 40, "fractions need a place for each key")
    if first is None:
        require(not n_keys or n_variables <= fractions.shape[0] // n_keys, "fractions need a place for each key")
    else:
        require(first.shape[0] == n_variables + 1, "starts need an entry for each variable")
        for i in range(n_variables):
            require(0 <= first[i] <= first[i + 1] <= fractions.shape[0], "fractions need a place for each key")
    if not fractions.shape[0]:
        return
    with nogil:
        engine_initialise_fractions(key, &fractions[0], at, n_keys, n_variables)


class Group:
    """A group of factors in the engine's layout, from TableFactors; ``counts`` accumulates the counts of its cells."""

    def __init__(self, factors, counts=None):
        self.arity, self.scopes, self.cells = factors.arity, factors.scopes, factors.rows.shape[1]
        self.table_of_factor, self.scale, self.tables = factors.table_of_factor, factors.scale, factors.tables
        self.sizes, self.counts = np.array(factors.tables.shape[1:], np.int32), counts


cdef class Engine:
    """One run over one graph. It keeps references to its arrays as long as it lives."""
    cdef engine *e
    cdef list references
    cdef const double[::1] uniforms
    cdef int64_t n_steps, n_variables, n_threads, most_updates, first_uniform
    cdef bint begun, begins, counts_states, has_colours  # `begins`: a call of `begin` runs
    cdef bytearray busy                # [threads]: 1 while a call of a thread runs
    cdef readonly int64_t n_updates  # so far

    def __cinit__(self, factors, table_counts=()):
        """Store the TableFactors of the graph, from which log-potentials and counts are computed.

        ``table_counts``: an array for each group of factors, or nothing.
        """
        cdef int k
        factors, table_counts = list(factors), list(table_counts)
        require(not table_counts or len(table_counts) == len(factors), "each group of factors needs counts")
        self.references, self.uniforms = [], None
        self.e = engine_new(len(factors))
        if self.e == NULL:
            raise MemoryError
        for k in range(len(factors)):
            self.fill(PART_GROUPS + k, Group(factors[k], table_counts[k] if table_counts else None))
            self.require_sound(engine_group_fault(self.e, k))

    def __dealloc__(self):
        engine_free(self.e)

    cdef int require_sound(self, const char *fault) except -1:
        """Raise ValueError for a fault that the engine found."""
        if fault != NULL:
            raise ValueError(f"the engine refuses {fault.decode()}: it does not fit the run")
        return 0

    cdef int enter(self, int thread) except -1:
        """Raise ValueError unless a thread may enter the loops: the run has begun and the thread is not in them."""
        require(self.begun and 0 <= thread < self.n_threads, "the run has not begun, or the thread does not exist")
        require(not self.busy[thread], "another call advances this run")
        self.busy[thread] = 1
        return 0

    cdef dict fill(self, int part, source):
        """Fill a part of the engine (fields.h) from the attributes of ``source``, each of which is read once.

        Returns the integers, the lengths of the arrays, and None for attributes that are None. Raises TypeError where
        an attribute has another type than declared.
        """
        cdef dict filled = {}
        cdef const field *f = NULL
        cdef char *base = <char *> engine_part(self.e, part, &f)
        cdef int64_t *target
        while f.name != NULL:
            name = f"{type(source).__name__}.{f.name.decode()}"
            value, declared = getattr(source, f.name.decode()), f.type.decode()
            target = <int64_t *> (base + f.offset)
            if f.kind == WHOLE:
                check(isinstance(value, Integral), name, "an integer", value)
                target[0] = value
                filled[f.name.decode()] = target[0]
            elif f.kind == REAL:
                check(isinstance(value, Real), name, "a number", value)
                (<double *> target)[0] = value
            elif f.kind == ENUM:
                words = declared.split()
                check(isinstance(value, str) and value in words, name, f"one of {', '.join(words)}", value)
                target[0] = words.index(value)
            elif value is not None:
                self.fill_array(f.kind, target, value, name, np.dtype(declared))
                filled[f.name.decode()] = target[1]
            else:
                filled[f.name.decode()] = None
            f += 1
        return filled

    cdef int fill_array(self, int kind, int64_t *target, array, str name, dtype) except -1:
        """Store an array's address and length; for a strided array also the distance of its elements."""
        strided = kind == STRIDED
        target[0] = target[1] = 0
        check(
            isinstance(array, np.ndarray) and array.dtype == dtype and array.flags.aligned
            and (strided or array.flags.c_contiguous) and (kind != BUFFER or array.flags.writeable),
            name, f"a {'writeable ' if kind == BUFFER else ''}contiguous array of {dtype}", array,
        )
        if kind == PRIVATE and not np.asarray(array).flags.writeable:
            array = np.array(array, dtype)  # the engine changes its copy, but `own` does not copy sealed memory
        # The attributes of an instance of a subclass may be wrong; those of a plain array are not.
        array = np.asarray(array) if kind == BUFFER else own(array, dtype, 1 if strided else array.ndim, name, strided)
        self.references.append(array)
        target[0], target[1] = array.ctypes.data if array.size else 0, array.size
        if strided and array.size:
            target[2] = array.strides[0] // dtype.itemsize
        return 0

    def begin(self, setup, arrays, str max_instructions=""):
        """Begin the run: take the `Setup` that all runs share, and the `Arrays` of this run.

        ``max_instructions``: the best of the `instructions` that may be used, for tests.
        """
        cdef bint succeeded
        cdef bytes name = max_instructions.encode()
        cdef const char *best = name
        require(not self.begun and not self.begins, "the run has begun already")
        self.begins = True
        try:
            self.fill_all(setup, arrays)
        except BaseException:
            self.begins = False
            raise
        with nogil:
            succeeded = engine_begin(self.e, best) != NO_MEMORY
        if not succeeded:
            raise MemoryError
        self.begun = True

    cdef int fill_all(self, setup, arrays) except -1:
        """Fill and check all parts of the run.

        Attributes of the arguments may be Python code, which cannot use the engine until it has begun.
        """
        cdef dict filled, filled_arrays
        cdef CompiledConditionals form
        plan = setup.plan
        self.fill(PART_PLAN, plan)
        self.fill(PART_RECORD, plan.record)
        filled = self.fill(PART_SETUP, setup)
        self.fill(PART_WEIGHTS, setup.weights)
        blocks = setup.blocks
        if blocks is not None:
            self.fill(PART_BLOCKS, blocks)
        filled_arrays = self.fill(PART_ARRAYS, arrays)
        if setup.loop == "grid":
            self.fill(PART_GRID, setup.form)
        else:
            form = <CompiledConditionals?> setup.form.compiled
            engine_conditionals(self.e)[0] = form.c
            self.references.append(form)
        self.require_sound(engine_fault(self.e))
        self.n_steps, self.n_threads = filled["n_steps"], filled["n_threads"]
        self.n_variables, self.has_colours = filled_arrays["state"], filled["colour_starts"] is not None
        self.most_updates = engine_most_sweeps(self.e) * self.n_steps
        self.busy = bytearray(self.n_threads)
        return 0

    def set_uniforms(self, uniforms, int64_t first):
        """Take the uniform numbers of update ``first`` and later from an array; they are at least 0 and below 1."""
        cdef const double[::1] numbers = own(uniforms, np.float64, 1, "uniforms")
        cdef Py_ssize_t k
        require(self.begun and not any(self.busy) and numbers.shape[0] > 0 and first >= 0,
                "uniform numbers belong to a run that has begun and does not advance")
        for k in range(numbers.shape[0]):
            require(0.0 <= numbers[k] < 1.0, "uniform numbers must be at least 0 and below 1")
        self.uniforms, self.first_uniform = numbers, first
        engine_set_uniforms(self.e, &numbers[0], first)

    cdef int require_updates(self, int64_t start, int64_t stop) except -1:
        """Raise ValueError unless updates ``start`` to ``stop`` - 1 are the next ones and fit the arrays of the run."""
        require(start == self.n_updates and start <= stop <= self.most_updates, "the updates must be the next ones")
        require(self.uniforms is None or (self.first_uniform <= start
                and stop - self.first_uniform <= self.uniforms.shape[0]), "each update needs a uniform number")
        return 0

    cdef int require_alone(self, int64_t start, int64_t stop) except -1:
        """Raise ValueError unless the calling thread may do these updates; it must then clear ``busy[0]``."""
        require(self.begun and not any(self.busy), "the run has not begun, or another call advances it")
        self.require_updates(start, stop)
        return self.enter(0)

    def advance(self, int64_t start, int64_t stop):
        """Do the next updates, ``start`` to ``stop`` - 1. Return (fault, variable); fault 0 is success."""
        cdef int64_t fault
        self.require_alone(start, stop)
        with nogil:
            fault = engine_advance(self.e, start, stop)
        self.busy[0] = 0
        if not fault:
            self.n_updates = stop
        return fault, engine_fault_variable(self.e, 0)

    def advance_parallel(self, int thread, int64_t first, int64_t last):
        """Do one thread's share of sweeps ``first`` to ``last`` - 1. Return (fault, variable).

        All threads must call this with the same sweeps and their own index.
        """
        cdef int64_t fault
        require(0 <= first <= last <= self.most_updates // max(self.n_steps, 1), "the sweeps must fit the run")
        require(self.has_colours, "threads need colours")
        self.require_updates(first * self.n_steps, last * self.n_steps)
        self.enter(thread)
        with nogil:
            fault = engine_advance_parallel(self.e, thread, first, last)
        self.busy[thread] = 0
        if thread == 0 and not fault:
            self.n_updates = last * self.n_steps
        return fault, engine_fault_variable(self.e, thread)

    def flush(self):
        """Bring the recorded arrays up to date; `advance` keeps the latest counts in a buffer."""
        require(self.begun, "the run has not begun")
        with nogil:
            engine_flush(self.e)

    def fill_counting_tables(self, tables):
        """Fill private copies of the `CountingTables` of a small graph, which `count_states` reads.

        Returns the filled ``keys``, int64[n, 2^n].
        """
        require(self.begun and not any(self.busy), "the run has not begun, or advances")
        self.enter(0)
        try:
            self.counts_states = False
            self.fill(PART_COUNTING, tables)
            self.require_sound(engine_counting_fault(self.e, 0))
            with nogil:
                engine_fill_counting_tables(self.e)
            self.counts_states = True
            return np.array(<const int64_t[:self.n_variables, :1 << self.n_variables]> engine_counting_keys(self.e))
        finally:
            self.busy[0] = 0

    def count_states(self, int64_t first, int64_t last):
        """Do sweeps ``first`` to ``last`` - 1 of a small graph and count its states. Return (fault, variable)."""
        cdef int64_t fault
        require(self.counts_states and not any(self.busy) and 0 <= first <= last < (<int64_t> 1 << 40),
                "counting needs its tables and a run that does not advance")
        require(self.uniforms is None or (self.first_uniform <= first * self.n_steps
                and last * self.n_steps - self.first_uniform <= self.uniforms.shape[0]), "updates need uniform numbers")
        self.require_sound(engine_counting_fault(self.e, 1))
        self.enter(0)
        with nogil:
            fault = engine_count_states(self.e, first, last)
        self.busy[0] = 0
        return fault, engine_fault_variable(self.e, 0)

    def log_potential_of(self, x=None):
        """Return the log-potential of a state uint16[V], summed over all factors; None is the current state."""
        cdef const uint16_t[::1] state
        if x is None:
            require(self.begun, "the run has not begun")
            return engine_log_potential_of(self.e, engine_state(self.e))
        state = own(x, np.uint16, 1, "x")
        self.require_sound(engine_state_fault(self.e, &state[0], state.shape[0]))
        return engine_log_potential_of(self.e, &state[0])

    def state(self, int64_t n):
        """Return the current state of all n variables: int32[n]."""
        require(self.begun and n == self.n_variables, "the run has not begun, or has another number of variables")
        return np.array(<const uint16_t[:n]> engine_state(self.e), np.int32)

    @property
    def best_log_potential(self):
        """Largest log-potential at the end of a sweep so far."""
        return engine_best_log_potential(self.e)

    @property
    def instructions(self):
        """Instruction set of its loops after `begin`: "plain", "avx2" or "avx512"."""
        require(self.begun, "the run has not begun")
        return engine_instructions(self.e).decode()


cdef int check(bint valid, str name, str expected, value) except -1:
    """Raise TypeError unless ``valid``."""
    if not valid:
        shown = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
        raise TypeError(f"{name} must be {expected}, got {shown}")
    return 0


cdef dict enumerations():
    """Return the words of each enumeration in fields.h by the name of its field."""
    cdef Engine run = Engine(())
    cdef const field *f = NULL
    cdef int part
    words = {}
    for part in range(PART_GROUPS):
        engine_part(run.e, part, &f)
        while f.name != NULL:
            if f.kind == ENUM:
                words[f.name.decode()] = tuple(f.type.decode().split())
            f += 1
    return words


ENUMERATIONS = enumerations()
