# cython: language_level=3
"""Replicas of a graph of tables at several temperatures, which are updated in blocks and exchange their states.

A block is a set of variables with an elimination order. One update draws all its variables jointly, given the others:
``filter_forward`` eliminates the variables one after the other, and ``sample_backward`` draws them in the opposite
order. A block of one variable is plain Gibbs sampling.

The bucket of a variable has the tables that are multiplied when the variable is eliminated. Its separator has the
other variables of the block in these tables; a row belongs to one joint state of the separator. Variables outside the
block only shift the place where the reading of a table begins.

Replica r has the log-potential ``betas[r] * finite - penalties[r] * violations``: the sum of the finite entries, and
the number of entries of -inf. Replica 0 has the inverse temperature 1 and an infinite penalty, so it samples from the
graph itself.

`herdner.inference.tempering` chooses blocks and temperatures.
"""

from libc.math cimport INFINITY, exp, fabs, log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from itertools import chain

cimport cython
import numpy as np

from herdner._ext.memory cimport require
from rows cimport BUDGET

cdef enum:
    MOST_AXES = 64  # of a separator

cdef int64_t MOST_CELLS = <int64_t> 1 << 40  # of a bucket


cdef struct IntegerArray:  # a growing array
    int64_t* items
    Py_ssize_t length, room


cdef int push(IntegerArray* numbers, int64_t value) except -1:
    """Append a number."""
    cdef int64_t* moved
    cdef Py_ssize_t room
    if numbers.length == numbers.room:
        room = 2 * numbers.room + 16
        moved = <int64_t*> realloc(numbers.items, room * sizeof(int64_t))
        if not moved:
            raise MemoryError("no memory for the blocks of a graph")
        numbers.items, numbers.room = moved, room
    numbers.items[numbers.length] = value
    numbers.length += 1
    return 0


cdef object array_of(const IntegerArray* numbers, dtype=np.int64):
    """Copy a growing array to an array of NumPy."""
    cdef Py_ssize_t i
    array = np.empty(numbers.length, np.int64)
    cdef int64_t[::1] view = array
    for i in range(numbers.length):
        view[i] = numbers.items[i]
    return array.astype(dtype, copy=False)


cdef enum:  # the growing arrays of a layout, which become attributes of `Replicas`
    VARIABLE, SEPARATORS, FIXED_VARIABLES, CONSTANT_TO, ROW_AT, CELL_AT, N_ROWS, SOURCE, OWN_STRIDE, FIXED_STRIDES
    STRIDE_AT, STRIDES, BLOCK_AT, SEPARATOR_AT, INPUT_AT, FIXED_AT, N_COLUMNS


cdef bint any_repeated(owners, variables) except -1:
    """Return True if two entries agree both in their owner and in their variable."""
    order = np.lexsort((variables, owners))
    return ((np.diff(owners[order]) == 0) & (np.diff(variables[order]) == 0)).any()


cdef struct BlockSizes:
    int64_t rows, cells, inputs


@cython.internal
@cython.final
cdef class BlockLayout:
    """Working memory for the layout of blocks: the inputs and the separator of one bucket after the other.

    An input is a factor f >= 0, or -1 - b for the message of bucket b.
    """
    cdef IntegerArray inputs        # of the current bucket
    cdef IntegerArray next_message  # [buckets]: the next message to the same bucket, or -1
    cdef const int64_t[::1] scope_at
    cdef const int32_t[::1] scopes
    cdef int64_t[::1] factor_at, first_message, last_message, stride
    cdef int32_t[::1] factors_of, position
    cdef int64_t[::1] bucket_of  # [n]: the last bucket, plus 1, whose separator has the variable

    def __cinit__(self, Py_ssize_t n, const int64_t[::1] scope_at not None, const int32_t[::1] scopes not None):
        self.scope_at, self.scopes = scope_at, scopes
        variables, at = np.asarray(scopes), np.asarray(scope_at)
        factors = np.repeat(np.arange(len(at) - 1, dtype=np.int32), np.diff(at))
        self.factors_of = factors[np.argsort(variables, kind="stable")]
        self.factor_at = np.concatenate([[0], np.cumsum(np.bincount(variables, minlength=n))]).astype(np.int64)
        self.position, self.stride = np.full(n, -1, np.int32), np.zeros(n, np.int64)
        self.first_message, self.last_message = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        self.bucket_of = np.zeros(n, np.int64)

    def __dealloc__(self):
        free(self.inputs.items)
        free(self.next_message.items)

    cdef int find_inputs(self, int32_t v) except -1:
        """Find the factors whose first variable in the block is ``v``, and the messages to the bucket of ``v``."""
        cdef Py_ssize_t e, k
        cdef int32_t f
        cdef int64_t message = self.first_message[v]
        cdef bint is_first
        self.inputs.length = 0
        for e in range(self.factor_at[v], self.factor_at[v + 1]):
            f, is_first = self.factors_of[e], True
            for k in range(self.scope_at[f], self.scope_at[f + 1]):
                if 0 <= self.position[self.scopes[k]] < self.position[v]:
                    is_first = False
                    break
            if is_first:
                push(&self.inputs, f)
        while message >= 0:
            push(&self.inputs, -1 - message)
            message = self.next_message.items[message]
        return 0

    cdef Py_ssize_t find_separator(self, int32_t v, const IntegerArray* out, int32_t* separator) except -1:
        """Write the separator of the bucket of ``v``, the variable that is eliminated first last; return its length."""
        cdef Py_ssize_t i, e, m = 0, at
        cdef int64_t source, mark = out[VARIABLE].length + 1
        cdef int32_t u
        for i in range(self.inputs.length):
            source = self.inputs.items[i]
            for e in range(self.first_of(source, out), self.end_of(source, out)):
                u = self.variable(source, e, out)
                if u == v or self.position[u] < 0 or self.bucket_of[u] == mark:
                    continue
                if m == MOST_AXES:
                    raise ValueError("a separator has too many variables")
                self.bucket_of[u] = mark
                at = m
                while at > 0 and self.position[separator[at - 1]] < self.position[u]:
                    separator[at] = separator[at - 1]
                    at -= 1
                separator[at] = u
                m += 1
        return m

    cdef int varies(self, int32_t v, int64_t source, const IntegerArray* out) noexcept:
        """Return 1 if an input depends on the separator of the bucket of ``v``, else 0."""
        cdef Py_ssize_t e
        cdef int32_t u
        for e in range(self.first_of(source, out), self.end_of(source, out)):
            u = self.variable(source, e, out)
            if u != v and self.position[u] >= 0:
                return 1
        return 0

    cdef int append_message(self, int32_t v, int64_t bucket) noexcept:
        """Append the message of a bucket to the inputs of the bucket of ``v``."""
        if self.last_message[v] < 0:
            self.first_message[v] = bucket
        else:
            self.next_message.items[self.last_message[v]] = bucket
        self.last_message[v] = bucket
        return 0

    cdef inline int64_t first_of(self, int64_t source, const IntegerArray* out) noexcept:
        return self.scope_at[source] if source >= 0 else out[SEPARATOR_AT].items[-1 - source]

    cdef inline int64_t end_of(self, int64_t source, const IntegerArray* out) noexcept:
        return self.scope_at[source + 1] if source >= 0 else out[SEPARATOR_AT].items[-source]

    cdef inline int32_t variable(self, int64_t source, int64_t e, const IntegerArray* out) noexcept:
        return self.scopes[e] if source >= 0 else <int32_t> out[SEPARATORS].items[e]


cdef struct ReplicaWorkspace:  # of the update of one replica
    double* messages
    double* cells
    double* row
    double* constant
    int64_t* offsets


cdef inline double uniform(uint64_t* state) noexcept nogil:
    """Return the next number from 0 to below 1 of a stream (splitmix64, Steele et al. 2014)."""
    cdef uint64_t z
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    z = state[0]
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return ((z ^ (z >> 31)) >> 11) * (1.0 / 9007199254740992.0)


cdef inline double normalise(const double* values, double* probabilities, Py_ssize_t n) noexcept nogil:
    """Write exp(values) divided by its sum; return the logarithm of the sum."""
    cdef double top = values[0]
    cdef double total = 0
    cdef double e
    cdef Py_ssize_t x
    if n == 2:
        e = fabs(values[1] - values[0])
        if e != e:  # both are -inf
            probabilities[0] = probabilities[1] = 0
            return -INFINITY
        top = max(values[0], values[1])
        e = exp(-e)
        total = 1 / (1 + e)
        probabilities[0] = total if values[0] >= values[1] else e * total
        probabilities[1] = e * total if values[0] >= values[1] else total
        return top + log(1 + e)
    for x in range(1, n):
        top = max(top, values[x])
    if top == -INFINITY:
        for x in range(n):
            probabilities[x] = 0
        return -INFINITY
    for x in range(n):
        probabilities[x] = exp(values[x] - top)
        total += probabilities[x]
    for x in range(n):
        probabilities[x] /= total
    return top + log(total)


cdef int check_temperatures(betas, penalties) except -1:
    """Raise ValueError unless inverse temperatures and penalties are at least 0, and inverse temperatures finite."""
    if not (np.isfinite(betas) & (betas >= 0) & (penalties >= 0)).all():
        raise ValueError("inverse temperatures and penalties must be at least 0, and inverse temperatures finite")
    return 0


cdef class Replicas:
    """Replicas of one graph with their states, and the blocks in which they are updated; owns copies of all arrays."""
    cdef readonly Py_ssize_t n_variables, n_replicas, n_blocks
    cdef Py_ssize_t n_factors, most_inputs, most_states
    cdef int64_t round_work  # table cells that one round of one replica reads
    cdef int32_t[::1] sizes, scopes, bucket_variable, separators, fixed_variables
    # Factors: the variables and strides of factor f are scope_at[f] .. scope_at[f + 1], its cells begin at table_at[f].
    cdef int64_t[::1] scope_at, scope_strides, table_at
    cdef double[::1] tables
    # Buckets of block b: block_at[b] .. block_at[b + 1]. Ranges of a bucket in other arrays: separators, inputs. The
    # inputs before constant_to do not depend on the separator. Its rows begin at row_at, its cells at cell_at.
    cdef int64_t[::1] block_at, separator_at, input_at, constant_to, row_at, cell_at, n_rows
    # Inputs: the factor, or -1 - the place of a message's first row; the stride of the bucket's variable; the range of
    # the fixed variables with their strides; the place of the strides of the separator.
    cdef int64_t[::1] source, own_stride, fixed_at, fixed_strides, stride_at, strides
    cdef double[::1] betas, penalties, beliefs
    cdef double[:, ::1] messages, cells, row, constant  # [workers, ..]: the parts of each worker's `ReplicaWorkspace`
    cdef int64_t[:, ::1] offsets
    cdef uint8_t[::1] is_working
    cdef double[:, ::1] scaled, sums
    cdef int32_t[:, ::1] states_
    cdef double[::1] finite, violations, rejected, attempted
    cdef int64_t[::1] counts
    cdef uint64_t[::1] streams
    cdef int32_t[::1] best_
    cdef readonly double best_log_potential
    cdef Py_ssize_t parity
    cdef bint complete  # all arrays have their final sizes
    cdef bint busy  # a thread runs updates; another one would change positions that it uses
    cdef Py_ssize_t n_working  # number of workers that update their share of the replicas

    def __cinit__(self, sizes, list scopes not None, list tables not None, list blocks not None, betas, penalties,
                  int64_t key):
        """Check and copy a graph and its blocks, and draw uniform states.

        Args:
            sizes: int[n], the number of states of each variable.
            scopes: The distinct variables of each factor.
            tables: float64[K1, .., Ka] for each factor, log-potentials without +inf and NaN.
            blocks: The variables of each block, in the order of their elimination.
            betas: float64[R], the inverse temperature of each replica, at least 0.
            penalties: float64[R], the penalty of each replica for an entry of -inf, at least 0; may be infinite.
            key: Seed of the random numbers.

        Raises:
            ValueError: The arguments do not fit each other.
        """
        cdef Py_ssize_t r
        self.sizes = np.array(sizes, np.int32)
        # Converted once, and before they are counted: an object could be converted to another number the next time,
        # or change a list.
        scopes, blocks = [[int(v) for v in scope] for scope in scopes], [[int(v) for v in block] for block in blocks]
        tables = [np.array(table, np.float64, order="C") for table in tables]
        betas, penalties = np.array(betas, np.float64), np.array(penalties, np.float64)
        self.n_variables, self.n_factors, self.n_blocks = self.sizes.shape[0], len(scopes), len(blocks)
        if self.n_variables and min(self.sizes) < 1:
            raise ValueError("sizes must be at least 1")
        # Not methods of a subclass, which would get an incomplete object.
        Replicas._copy_factors(self, scopes, tables)
        Replicas._lay_out(self, blocks)
        self.n_replicas = len(betas)
        self.betas, self.penalties = np.zeros(self.n_replicas), np.zeros(self.n_replicas)
        self.scaled = np.empty((self.n_replicas, self.tables.shape[0]))
        Replicas.set_temperatures(self, betas, penalties)
        self.states_ = np.zeros((self.n_replicas, self.n_variables), np.int32)
        self.streams = np.random.SeedSequence(key).generate_state(self.n_replicas + 1, np.uint64)
        self.sums = np.zeros((self.n_variables, self.most_states))
        self.counts = np.zeros(self.n_variables, np.int64)
        self.finite, self.violations = np.zeros(self.n_replicas), np.zeros(self.n_replicas)
        self.rejected, self.attempted = np.zeros(max(1, self.n_replicas - 1)), np.zeros(max(1, self.n_replicas - 1))
        self.best_, self.best_log_potential = np.zeros(self.n_variables, np.int32), -INFINITY
        self.complete = True
        for r in range(self.n_replicas):
            Replicas.draw_uniform(self, r)

    @cython.wraparound(True)
    @cython.boundscheck(True)
    def _copy_factors(self, list scopes, list tables):
        """Copy the tables of all factors into one array."""
        require(not self.complete, "the tables are copied once")
        if len(tables) != self.n_factors:
            raise ValueError("each factor must have one table")
        self.scope_at = np.cumsum([0, *map(len, scopes)], dtype=np.int64)
        self.table_at = np.cumsum([0, *[table.size for table in tables]], dtype=np.int64)
        variables = list(chain.from_iterable(scopes))
        if min(variables, default=0) < 0 or max(variables, default=-1) >= self.n_variables:
            raise ValueError("a scope must name distinct variables of the graph")
        flat = np.array(variables, np.int32)
        if any_repeated(np.repeat(np.arange(len(scopes)), np.diff(np.asarray(self.scope_at))), flat):
            raise ValueError("a scope must name distinct variables of the graph")
        shapes = np.array(list(chain.from_iterable([table.shape for table in tables])), np.int64)
        arities = [table.ndim for table in tables]
        if arities != list(map(len, scopes)) or not np.array_equal(shapes, np.asarray(self.sizes)[flat]):
            raise ValueError("the shape of a table must be the sizes of its variables")
        cells = np.concatenate([np.zeros(0), *[table.ravel() for table in tables]])
        if not (cells < INFINITY).all():
            raise ValueError("tables must be finite or -inf")
        self.scopes = flat
        self.scope_strides = np.array(list(chain.from_iterable([table.strides for table in tables])), np.int64) // 8
        self.tables = cells
        self.most_states = max(self.sizes, default=1)

    def _lay_out(self, list blocks):
        """Assign the factors to the buckets of all blocks, and compute the strides of all tables."""
        cdef IntegerArray out[N_COLUMNS]
        cdef BlockSizes most
        cdef Py_ssize_t c
        cdef const int32_t[::1] members
        require(not self.complete, "the blocks are laid out once")
        memset(out, 0, sizeof(out))
        layout = BlockLayout(self.n_variables, self.scope_at, self.scopes)
        most.rows = most.cells = most.inputs = 1
        try:
            for c in (BLOCK_AT, SEPARATOR_AT, INPUT_AT, FIXED_AT):
                push(&out[c], 0)
            for block in blocks:
                members = np.array(block, np.int32)
                self.lay_out_block(out, layout, members, &most)
            self.bucket_variable = array_of(&out[VARIABLE], np.int32)
            self.separators = array_of(&out[SEPARATORS], np.int32)
            self.fixed_variables = array_of(&out[FIXED_VARIABLES], np.int32)
            self.constant_to, self.row_at = array_of(&out[CONSTANT_TO]), array_of(&out[ROW_AT])
            self.cell_at, self.n_rows = array_of(&out[CELL_AT]), array_of(&out[N_ROWS])
            self.source, self.own_stride = array_of(&out[SOURCE]), array_of(&out[OWN_STRIDE])
            self.fixed_strides, self.stride_at = array_of(&out[FIXED_STRIDES]), array_of(&out[STRIDE_AT])
            self.strides, self.block_at = array_of(&out[STRIDES]), array_of(&out[BLOCK_AT])
            self.separator_at, self.input_at = array_of(&out[SEPARATOR_AT]), array_of(&out[INPUT_AT])
            self.fixed_at = array_of(&out[FIXED_AT])
        finally:
            for c in range(N_COLUMNS):
                free(out[c].items)
        self.beliefs = np.zeros(most.rows)
        self.allocate(1, most)

    cdef int allocate(self, Py_ssize_t n_workers, BlockSizes most) except -1:
        """Allocate a workspace for each worker."""
        messages, cells = np.zeros((n_workers, most.rows)), np.zeros((n_workers, most.cells))
        row, constant = np.zeros((2, n_workers, self.most_states))
        offsets, is_working = np.zeros((n_workers, most.inputs), np.int64), np.zeros(n_workers, np.uint8)
        self.messages, self.cells, self.row, self.constant = messages, cells, row, constant
        self.offsets, self.is_working = offsets, is_working
        return 0

    cdef inline ReplicaWorkspace workspace(self, Py_ssize_t worker) noexcept nogil:
        cdef ReplicaWorkspace w
        w.messages, w.cells, w.row = &self.messages[worker, 0], &self.cells[worker, 0], &self.row[worker, 0]
        w.constant, w.offsets = &self.constant[worker, 0], &self.offsets[worker, 0]
        return w

    cdef int lay_out_block(self, IntegerArray* out, BlockLayout layout, const int32_t[::1] block, BlockSizes* most
                           ) except -1:
        """Append the buckets of one block; raise the sizes ``most`` to those of the block."""
        cdef int32_t separator[MOST_AXES]
        cdef IntegerArray* inputs = &layout.inputs
        cdef Py_ssize_t b, m, i, varying, n_constant
        cdef int64_t bucket, rows, source, n_rows = 0, n_cells = 0, most_inputs = 0
        cdef int32_t v
        for b in range(block.shape[0]):
            v = block[b]
            if not 0 <= v < self.n_variables or layout.position[v] >= 0:
                raise ValueError("a block must name distinct variables of the graph")
            layout.position[v] = <int32_t> b
            layout.first_message[v] = layout.last_message[v] = -1
        for b in range(block.shape[0]):
            v, bucket = block[b], out[VARIABLE].length
            layout.find_inputs(v)
            m = layout.find_separator(v, out, separator)
            n_constant = 0
            for varying in range(2):
                for i in range(inputs.length):
                    if layout.varies(v, inputs.items[i], out) == varying:
                        source = inputs.items[i]
                        push(&out[SOURCE], source if source >= 0 else -1 - out[ROW_AT].items[-1 - source])
                        n_constant += 1 - varying
                        self.append_strides(out, layout, v, source, separator, m)
            push(&out[CONSTANT_TO], out[INPUT_AT].items[bucket] + n_constant)
            push(&out[INPUT_AT], out[SOURCE].length)
            push(&out[VARIABLE], v)
            rows = 1
            for i in range(m):
                push(&out[SEPARATORS], separator[i])
                if rows > MOST_CELLS // self.sizes[separator[i]]:
                    raise ValueError("a separator must have at most 2^40 states")
                rows *= self.sizes[separator[i]]
            if rows > MOST_CELLS // self.sizes[v]:
                raise ValueError("a bucket must have at most 2^40 cells")
            push(&out[SEPARATOR_AT], out[SEPARATORS].length)
            push(&out[ROW_AT], n_rows)
            push(&out[CELL_AT], n_cells)
            push(&out[N_ROWS], rows)
            push(&layout.next_message, -1)
            if m:
                layout.append_message(separator[m - 1], bucket)
            n_rows += rows
            n_cells += rows * self.sizes[v]
            most_inputs = max(most_inputs, inputs.length)
        for b in range(block.shape[0]):
            layout.position[block[b]] = -1
        push(&out[BLOCK_AT], out[VARIABLE].length)
        most.rows, most.cells = max(most.rows, n_rows), max(most.cells, n_cells)
        most.inputs = max(most.inputs, most_inputs)
        self.round_work += n_cells * (most_inputs + 1)
        return 0

    cdef int append_strides(self, IntegerArray* out, BlockLayout layout, int32_t v, int64_t source,
                            const int32_t* separator, Py_ssize_t m) except -1:
        """Append the strides of one input of a bucket, and its variables outside the block."""
        cdef Py_ssize_t e, a
        cdef int32_t u
        cdef int64_t step = 1
        if source >= 0:
            for e in range(self.scope_at[source], self.scope_at[source + 1]):
                u = self.scopes[e]
                if layout.position[u] >= 0:
                    layout.stride[u] = self.scope_strides[e]
                else:
                    push(&out[FIXED_VARIABLES], u)
                    push(&out[FIXED_STRIDES], self.scope_strides[e])
        else:
            for e in range(out[SEPARATOR_AT].items[-source] - 1, out[SEPARATOR_AT].items[-1 - source] - 1, -1):
                u = <int32_t> out[SEPARATORS].items[e]
                layout.stride[u] = step
                step *= self.sizes[u]
        push(&out[OWN_STRIDE], layout.stride[v])
        push(&out[STRIDE_AT], out[STRIDES].length)
        for a in range(m):
            push(&out[STRIDES], layout.stride[separator[a]])
            layout.stride[separator[a]] = 0
        layout.stride[v] = 0
        push(&out[FIXED_AT], out[FIXED_VARIABLES].length)
        return 0

    @property
    def states(self):
        """Copy of the joint states of all replicas, int32[R, n]."""
        return np.array(self.states_)

    @states.setter
    def states(self, values):
        cdef int32_t[:, ::1] new
        checked = np.array(values, np.int32, order="C")
        if checked.shape != (self.n_replicas, self.n_variables):
            raise ValueError(f"states must have the shape [{self.n_replicas}, {self.n_variables}], got {checked.shape}")
        if (checked < 0).any() or (checked >= np.asarray(self.sizes)).any():
            raise ValueError("states must be at least 0 and below the sizes")
        require(self.is_free(), "another thread uses the replicas")
        new = checked
        self.states_[:, :] = new
        self._measure_all()

    @property
    def best(self):
        """Copy of the best joint state so far, int32[n]; its log-potential is -inf if no state was possible."""
        return np.array(self.best_)

    @property
    def energies(self):
        """Sum of the finite entries, and the number of entries of -inf, at the state of each replica; float64[R, 2]."""
        return np.stack([self.finite, self.violations], axis=1)

    @property
    def rejection_rates(self):
        """Average probability that an exchange of replicas r and r + 1 is rejected, float64[R - 1]."""
        return (np.array(self.rejected) / np.maximum(self.attempted, 1))[: max(self.n_replicas - 1, 0)]

    @property
    def marginal_sums(self):
        """Sums float64[n, K] of the recorded conditional marginals, and their counts int64[n]."""
        return np.array(self.sums), np.array(self.counts)

    def set_temperatures(self, betas, penalties):
        """Set the inverse temperatures and the penalties of all replicas; forget the rejection rates.

        Args:
            betas: float64[R], at least 0.
            penalties: float64[R], at least 0; may be infinite.
        """
        new_betas, new_penalties = np.array(betas, np.float64), np.array(penalties, np.float64)
        if new_betas.shape != (self.n_replicas,) or new_penalties.shape != (self.n_replicas,):
            raise ValueError(f"there must be {self.n_replicas} inverse temperatures and penalties")
        check_temperatures(new_betas, new_penalties)
        for r in range(self.n_replicas):
            self._scale(r, new_betas[r], new_penalties[r])
        if self.rejected is not None:
            self.rejected[:], self.attempted[:] = 0, 0

    cdef void _scale(self, Py_ssize_t r, double beta, double penalty) noexcept nogil:
        """Compute the tables of a replica."""
        cdef Py_ssize_t c
        self.betas[r], self.penalties[r] = beta, penalty
        for c in range(self.tables.shape[0]):
            self.scaled[r, c] = -penalty if self.tables[c] == -INFINITY else beta * self.tables[c]

    def draw_uniform(self, Py_ssize_t r):
        """Draw the state of replica ``r`` uniformly."""
        cdef Py_ssize_t v
        if not (self.complete and 0 <= r < self.n_replicas):
            raise ValueError(f"there is no replica {r}")
        for v in range(self.n_variables):
            self.states_[r, v] = <int32_t> (uniform(&self.streams[r]) * self.sizes[v])
        self._measure(r)
        self.keep_best(r)

    def _measure_all(self):
        """Compute the energies of all replicas."""
        for r in range(self.n_replicas):
            self._measure(r)
            self.keep_best(r)

    cdef void _measure(self, Py_ssize_t r) noexcept nogil:
        """Compute the energy of a replica."""
        cdef double total = 0
        cdef double value
        cdef Py_ssize_t f, e, cell
        cdef int64_t violations = 0
        for f in range(self.n_factors):
            cell = self.table_at[f]
            for e in range(self.scope_at[f], self.scope_at[f + 1]):
                cell += self.scope_strides[e] * self.states_[r, self.scopes[e]]
            value = self.tables[cell]
            if value == -INFINITY:
                violations += 1
            else:
                total += value
        self.finite[r], self.violations[r] = total, violations

    cdef void keep_best(self, Py_ssize_t r) noexcept nogil:
        """Keep the state of a replica if it is the best so far."""
        cdef Py_ssize_t v
        if self.violations[r] == 0 and self.finite[r] > self.best_log_potential:
            self.best_log_potential = self.finite[r]
            for v in range(self.n_variables):
                self.best_[v] = self.states_[r, v]

    cdef bint filter_forward(self, Py_ssize_t r, Py_ssize_t block, const ReplicaWorkspace* w) noexcept nogil:
        """Eliminate the variables of a block; return False if no state of the block is possible."""
        cdef Py_ssize_t b, i, e, a, x, row, first, m, n_states, varying, separator
        cdef int64_t offset
        cdef const double* table = &self.scaled[r, 0] if self.scaled.shape[1] else NULL
        cdef const double* values
        cdef double* messages = w.messages
        cdef double* cells = w.cells
        cdef double* constant = w.constant
        cdef double* out = w.row
        cdef int64_t* offsets = w.offsets
        cdef int32_t digits[MOST_AXES]
        for b in range(self.block_at[block], self.block_at[block + 1]):
            n_states, first, varying = self.sizes[self.bucket_variable[b]], self.input_at[b], self.constant_to[b]
            separator = self.separator_at[b]
            m = self.separator_at[b + 1] - separator
            for x in range(n_states):
                constant[x] = 0
            for i in range(first, self.input_at[b + 1]):
                offset = 0 if self.source[i] < 0 else self.table_at[self.source[i]]
                for e in range(self.fixed_at[i], self.fixed_at[i + 1]):
                    offset += self.fixed_strides[e] * self.states_[r, self.fixed_variables[e]]
                if i < varying:
                    values = messages - 1 - self.source[i] if self.source[i] < 0 else table + offset
                    for x in range(n_states):
                        constant[x] += values[x * self.own_stride[i]]
                else:
                    offsets[i - first] = -1 - self.source[i] if self.source[i] < 0 else offset
            for a in range(m):
                digits[a] = 0
            for row in range(self.n_rows[b]):
                for x in range(n_states):
                    out[x] = constant[x]
                for i in range(varying, self.input_at[b + 1]):
                    values = (messages if self.source[i] < 0 else table) + offsets[i - first]
                    for x in range(n_states):
                        out[x] += values[x * self.own_stride[i]]
                messages[self.row_at[b] + row] = normalise(out, &cells[self.cell_at[b] + row * n_states], n_states)
                if m:
                    self.next_row(b, m, separator, varying, first, digits, offsets)
            if m == 0 and messages[self.row_at[b]] == -INFINITY:
                return False
        return True

    cdef inline void next_row(self, Py_ssize_t b, Py_ssize_t m, Py_ssize_t separator, Py_ssize_t varying,
                              Py_ssize_t first, int32_t* digits, int64_t* offsets) noexcept nogil:
        """Move the offsets of a bucket's inputs to the next joint state of the separator."""
        cdef Py_ssize_t a = m - 1
        cdef Py_ssize_t i
        cdef int64_t step
        while a >= 0:
            digits[a] += 1
            step = 1
            if digits[a] == self.sizes[self.separators[separator + a]]:
                step = 1 - digits[a]
                digits[a] = 0
            for i in range(varying, self.input_at[b + 1]):
                offsets[i - first] += step * self.strides[self.stride_at[i] + a]
            if step == 1:
                return
            a -= 1

    cdef void sample_backward(self, Py_ssize_t r, Py_ssize_t block, const ReplicaWorkspace* w) noexcept nogil:
        """Draw the variables of a block in the opposite order of their elimination."""
        cdef Py_ssize_t b, a, x, row, n_states
        cdef const double* p
        cdef double u
        for b in range(self.block_at[block + 1] - 1, self.block_at[block] - 1, -1):
            row = 0
            for a in range(self.separator_at[b], self.separator_at[b + 1]):
                row = row * self.sizes[self.separators[a]] + self.states_[r, self.separators[a]]
            n_states = self.sizes[self.bucket_variable[b]]
            p = &w.cells[self.cell_at[b] + row * n_states]
            u = uniform(&self.streams[r])
            x = 0
            while x < n_states - 1 and u >= p[x]:
                u -= p[x]
                x += 1
            # Rounding: the probabilities can add up to less than 1. All are 0 if log-potentials overflow.
            for a in range(n_states):
                if p[(x + n_states - a) % n_states] != 0:
                    x = (x + n_states - a) % n_states
                    break
            self.states_[r, self.bucket_variable[b]] = <int32_t> x

    cdef void add_marginals(self, Py_ssize_t block, const ReplicaWorkspace* w) noexcept nogil:
        """Add the marginals of a block's variables, given all other variables, to the sums."""
        cdef Py_ssize_t b, i, a, x, row, first, m, n_states, varying, separator, v
        cdef double weight
        cdef const double* cells
        cdef int32_t digits[MOST_AXES]
        for b in range(self.block_at[block + 1] - 1, self.block_at[block] - 1, -1):
            for row in range(self.n_rows[b]):
                self.beliefs[self.row_at[b] + row] = 1 if self.separator_at[b] == self.separator_at[b + 1] else 0
        for b in range(self.block_at[block + 1] - 1, self.block_at[block] - 1, -1):
            v, first = self.bucket_variable[b], self.input_at[b]
            n_states, separator, varying = self.sizes[v], self.separator_at[b], self.constant_to[b]
            m = self.separator_at[b + 1] - separator
            self.counts[v] += 1
            for i in range(first, self.input_at[b + 1]):
                w.offsets[i - first] = -1 - self.source[i]
            for a in range(m):
                digits[a] = 0
            for row in range(self.n_rows[b]):
                weight = self.beliefs[self.row_at[b] + row]
                cells = &w.cells[self.cell_at[b] + row * n_states]
                if weight > 0:
                    for x in range(n_states):
                        self.sums[v, x] += weight * cells[x]
                    for i in range(first, self.input_at[b + 1]):
                        if self.source[i] < 0:
                            for x in range(n_states):
                                self.beliefs[w.offsets[i - first] + x * self.own_stride[i]] += weight * cells[x]
                self.next_row(b, m, separator, varying, first, digits, w.offsets)

    cdef void update(self, Py_ssize_t r, bint reverse, bint record, const ReplicaWorkspace* w) noexcept nogil:
        """Update all blocks of a replica, in opposite order if ``reverse``."""
        cdef Py_ssize_t k, block
        for k in range(self.n_blocks):
            block = self.n_blocks - 1 - k if reverse else k
            if self.filter_forward(r, block, w):
                if record:
                    self.add_marginals(block, w)
                self.sample_backward(r, block, w)
        self._measure(r)

    cdef void exchange(self) noexcept nogil:
        """Propose to exchange the states of replicas r and r + 1, for even and odd r in turn (Syed et al. 2022)."""
        cdef Py_ssize_t r, v
        cdef double change, accept
        for r in range(self.parity, self.n_replicas - 1, 2):
            change = (self.betas[r] - self.betas[r + 1]) * (self.finite[r + 1] - self.finite[r])
            if self.violations[r] != self.violations[r + 1]:
                if self.penalties[r] < INFINITY:
                    change -= ((self.penalties[r] - self.penalties[r + 1])
                               * (self.violations[r + 1] - self.violations[r]))
                elif self.violations[r + 1] < self.violations[r]:
                    change = INFINITY
                else:
                    change = -INFINITY
            accept = 1 if change >= 0 else exp(change)
            self.rejected[r] += 1 - accept
            self.attempted[r] += 1
            if uniform(&self.streams[self.n_replicas]) < accept:
                for v in range(self.n_variables):
                    self.states_[r, v], self.states_[r + 1, v] = self.states_[r + 1, v], self.states_[r, v]
                self.finite[r], self.finite[r + 1] = self.finite[r + 1], self.finite[r]
                self.violations[r], self.violations[r + 1] = self.violations[r + 1], self.violations[r]
        self.parity = 1 - self.parity

    def advance(self, Py_ssize_t n_rounds, bint record=False, bint update=True):
        """Run rounds for a fraction of a second, and return their number; it is at least 1 if ``n_rounds`` is.

        A round updates all blocks of all replicas and then proposes exchanges. The number does not depend on the clock.

        Args:
            n_rounds: Largest number of rounds.
            record: Add the conditional marginals of replica 0 to the sums, once its state is possible.
            update: Update the blocks; without it, a round consists of exchanges.
        """
        cdef Py_ssize_t n_done = 0, r
        cdef int64_t spent = 0, work = self.n_replicas * (self.n_variables + (self.round_work if update else 0)) + 1
        cdef ReplicaWorkspace w
        require(self.is_free(), "another thread uses the replicas")
        self.busy = True
        w = self.workspace(0)
        with nogil:
            while n_done < n_rounds and spent < BUDGET:
                if update:
                    for r in range(self.n_replicas):
                        self.update(r, False, record and r == 0 and self.violations[0] == 0, &w)
                        self.keep_best(r)
                self.exchange()
                n_done += 1
                spent += work
        self.busy = False
        return n_done

    cdef bint is_free(self) noexcept:
        """Return True if the replicas are complete, and no thread updates them."""
        return self.complete and not self.busy and self.n_working == 0

    @property
    def n_workers(self):
        """Number of workers that can update their shares of the replicas simultaneously."""
        return self.is_working.shape[0]

    @n_workers.setter
    def n_workers(self, Py_ssize_t n_workers):
        cdef BlockSizes most
        if n_workers < 1:
            raise ValueError(f"n_workers must be at least 1, got {n_workers}")
        require(self.is_free(), "another thread uses the replicas")
        most.rows, most.cells, most.inputs = self.messages.shape[1], self.cells.shape[1], self.offsets.shape[1]
        self.allocate(n_workers, most)

    def update_share(self, Py_ssize_t worker, bint record=False):
        """Update all blocks of every ``n_workers``-th replica, from the replica ``worker`` on.

        The updates of all workers, in any threads, and then `exchange_states` are one round of `advance`.

        Args:
            worker: Number of the worker, below ``n_workers``.
            record: Add the conditional marginals of replica 0 to the sums if its state is possible.
        """
        cdef Py_ssize_t r = worker
        cdef ReplicaWorkspace w
        if not 0 <= worker < self.is_working.shape[0]:
            raise ValueError(f"there is no worker {worker}")
        require(self.complete and not self.busy and not self.is_working[worker], "another thread uses the replicas")
        self.is_working[worker] = True
        self.n_working += 1
        w = self.workspace(worker)
        with nogil:
            while r < self.n_replicas:
                self.update(r, False, record and r == 0 and self.violations[0] == 0, &w)
                r += self.is_working.shape[0]
        self.n_working -= 1
        self.is_working[worker] = False

    def exchange_states(self):
        """Keep the best state of all replicas, and propose exchanges, after the updates of all workers."""
        cdef Py_ssize_t r
        require(self.is_free(), "another thread uses the replicas")
        for r in range(self.n_replicas):
            self.keep_best(r)
        self.exchange()

    def anneal(self, Py_ssize_t r, betas, penalties, bint reverse=False):
        """Move a replica through a sequence of temperatures, and return the logarithm of its importance weight.

        The weight is the product of the ratios of successive unnormalised probabilities (Neal 2001). With ``reverse``
        each update precedes the change of temperature and takes the blocks in opposite order, so that the run is the
        reversal of a run through the opposite sequence.

        Args:
            r: The replica.
            betas: float64[T], inverse temperatures, at least 0; the state is a sample at the first one.
            penalties: float64[T], penalties for entries of -inf, at least 0; may be infinite.
            reverse: Run in the opposite direction.

        Raises:
            ValueError: The replica does not exist, or a temperature or penalty is out of range.
        """
        cdef double[::1] b = np.array(betas, np.float64)
        cdef double[::1] c = np.array(penalties, np.float64)
        cdef double log_weight = 0
        cdef Py_ssize_t t
        cdef ReplicaWorkspace w
        if not 0 <= r < self.n_replicas or b.shape[0] != c.shape[0] or b.shape[0] < 1:
            raise ValueError("the replica must exist, and each inverse temperature must have a penalty")
        check_temperatures(np.asarray(b), np.asarray(c))
        require(self.is_free(), "another thread uses the replicas")
        self.busy = True
        w = self.workspace(0)
        with nogil:
            self._scale(r, b[0], c[0])
            for t in range(1, b.shape[0]):
                if reverse:
                    self.update(r, True, False, &w)
                    self.keep_best(r)
                log_weight += (b[t] - b[t - 1]) * self.finite[r]
                if self.violations[r] > 0:
                    log_weight -= (c[t] - c[t - 1]) * self.violations[r]
                self._scale(r, b[t], c[t])
                if not reverse:
                    self.update(r, False, False, &w)
                    self.keep_best(r)
        self.busy = False
        return log_weight
