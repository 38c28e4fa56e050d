# cython: language_level=3
"""Variable elimination: the buckets of an elimination order, and the passes over them.

A bucket belongs to one variable with K states and has inputs: tables that contain the variable. Each table is a flat
array whose last axis is this variable, so the K cells of a row are adjacent. The other axes are those of the separator:
all other variables of the bucket. ``strides`` [inputs, axes] gives the step of each table along each axis of the
separator, 0 where the table does not contain the axis.

`CompiledMessages` sums each variable out, in elimination order: the message of a bucket has one cell for each state of
the separator, and is an input of a later bucket. `Beliefs` combines the probabilities of the separator with the inputs,
in the opposite order, and adds up the beliefs of each input. Both passes process small buckets in one call. They give
large buckets to the caller as objects, whose blocks of rows can be computed by several threads.

`herdner.inference.elimination` calls these passes.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

cimport cython
import numpy as np

from allocation cimport allocate, allocate_zeroed
from herdner._ext.memory cimport require, require_offsets

cdef int64_t MOST_CELLS = <int64_t> 1 << 40  # states of a separator

cdef enum:
    BLOCK = 4096         # cells that are combined at a time; they stay in the first cache
    MOST_AXES = 64       # of a separator
    SMALL_BLOCKS = 256   # most blocks of a small bucket, which takes a few milliseconds
    LEAST_SLICES = 4     # slices that are aimed at in the second pass; one thread works on each
    COPIED_CELLS = 4096  # largest table of which each slice has a copy, if 1/32 of the rows is not more
    COMBINED_PART = 32   # a table merged from several factors has at most 1/32 as many cells as its bucket has rows
    COMBINED_ROWS = 64   # or at most this many cells, if that is more

# What needs memory, in errors.
cdef const char* BUCKETS = b"the buckets of a graph; condition on some variables, or use a sampler"
cdef const char* MESSAGES = b"the messages of a graph; condition on some variables, or use a sampler"
cdef const char* MARGINALS = b"the marginals of a graph; condition on some variables, or use a sampler"

cdef double LINEAR_RANGE = 300.0  # tables that span fewer nats are stored as potentials, others as logarithms
cdef double BUCKET_RANGE = 600.0  # potentials of tables that together span fewer nats multiply without underflow


# Tables and buckets ---------------------------------------------------------------------------------------------------

cdef struct Table:
    double* values  # potentials with maximum 1, or their logarithms with maximum 0
    int64_t length
    double span     # between the logarithms of the largest and the smallest positive potential
    bint in_logs


cdef struct Node:
    int32_t variable
    Py_ssize_t n_states, n_axes, n_inputs
    int64_t n_rows
    int64_t* sources    # [inputs]: a table of the tree (>= 0), or -1 - b for the message of bucket b
    int64_t* strides    # [inputs, axes], in the same memory
    int32_t* separator  # [axes]: the variable that is eliminated first is the last
    int32_t* widths     # [axes]: numbers of states of the separator's variables, in the same memory
    Py_ssize_t n_blocks


cdef enum Pattern:
    ADJACENT, CONSTANT, GATHER


cdef struct BucketInput:       # a table of a bucket, as the loops read it
    const double* values
    double* logs               # a copy of the table as logarithms, or NULL
    double* output             # its beliefs; NULL where none are wanted
    int32_t* index             # [inner]: the place of each row of the block; NULL where rows are adjacent
    const int64_t* step        # [axes]
    int64_t base               # the place where the current block begins
    Pattern pattern


cdef struct BucketLayout:
    Py_ssize_t n_inputs, n_axes, n_inner, n_states, inner, outer  # inner: states of the separator in a block
    const int32_t* sizes       # [axes]
    double* cells              # of one block
    BucketInput* inputs        # [n_inputs], in the same memory


cdef struct Own:               # of a bucket in the second pass
    const double* message      # [rows], as it was stored
    double* logs               # [rows]: its logarithms, or NULL
    double offset, scale       # the logarithm of the maximum before scaling, and the maximum
    const double* probability  # [rows]: of the states of the separator; NULL for a separator without variables
    double one
    bint in_logs


cdef inline bint scale(Table* table, double* top_) noexcept nogil:
    """Scale a table to a maximum of 1, and write the logarithm of its maximum; return False if all entries are 0.

    Logarithms that span less than LINEAR_RANGE become potentials.
    """
    cdef double top = table.values[0], least
    cdef double* values = table.values
    cdef int64_t i, n = table.length
    for i in range(1, n):
        if values[i] > top:
            top = values[i]
    if top == (-INFINITY if table.in_logs else 0.0):
        return False
    least = top
    if table.in_logs:
        for i in range(n):
            if values[i] < least and values[i] > -INFINITY:
                least = values[i]
        table.span = top - least
        if table.span < LINEAR_RANGE:
            for i in range(n):
                values[i] = exp(values[i] - top)
            table.in_logs = False
        else:
            for i in range(n):
                values[i] -= top
        top_[0] = top
        return True
    for i in range(n):
        if values[i] < least and values[i] > 0:
            least = values[i]
    for i in range(n):
        values[i] /= top
    top_[0] = log(top)
    table.span = top_[0] - log(least)
    return True


cdef inline Py_ssize_t axes_of_block(const int32_t* widths, Py_ssize_t n_axes, Py_ssize_t n_states,
                                     Py_ssize_t* inner) noexcept nogil:
    """Return the number of axes of a block, and write the number of its rows."""
    cdef Py_ssize_t n_inner = 0
    inner[0] = 1
    while n_inner < n_axes and inner[0] * widths[n_axes - 1 - n_inner] * n_states <= BLOCK:
        inner[0] *= widths[n_axes - 1 - n_inner]
        n_inner += 1
    return n_inner


cdef inline int64_t next_place(int64_t place, int32_t* digits, const int32_t* sizes, const int64_t* step,
                               Py_ssize_t first, Py_ssize_t n_axes) noexcept nogil:
    """Advance the odometer over the axes from ``first`` on, the last axis fastest; return the next place in a table."""
    cdef Py_ssize_t a = n_axes - 1
    while a >= first:
        digits[a] += 1
        place += step[a]
        if digits[a] < sizes[a]:
            break
        place -= step[a] * sizes[a]
        digits[a] = 0
        a -= 1
    return place


cdef int allocate_block(BucketLayout* f) except -1 nogil:
    """Allocate the cells of a block and the inputs."""
    cdef int64_t cells = f.inner * f.n_states * sizeof(double)
    f.cells = <double*> allocate(cells + f.n_inputs * sizeof(BucketInput), 1, BUCKETS)
    f.inputs = <BucketInput*> (f.cells + f.inner * f.n_states)
    return 0


cdef int copy_layout(BucketLayout* copy, const BucketLayout* f) except -1:
    """Copy a layout for a thread, which frees ``cells``; both share tables and outputs."""
    copy[0] = f[0]
    allocate_block(copy)
    memcpy(copy.inputs, f.inputs, f.n_inputs * sizeof(BucketInput))
    return 0


cdef int lay_out_block(const BucketLayout* f, BucketInput* table) except -1 nogil:
    """Find the places of the rows of a block in a table."""
    cdef Py_ssize_t a, b, first = f.n_axes - f.n_inner
    cdef int32_t digits[MOST_AXES]
    cdef int64_t place = 0, dense = f.n_states
    cdef bint adjacent = True, constant = True
    for a in range(f.n_axes - 1, first - 1, -1):
        adjacent = adjacent and table.step[a] == dense
        constant = constant and table.step[a] == 0
        dense *= f.sizes[a]
    table.pattern = ADJACENT if adjacent else CONSTANT if constant else GATHER
    if adjacent:
        return 0
    table.index = <int32_t*> allocate(f.inner, sizeof(int32_t), BUCKETS)
    memset(digits, 0, sizeof(digits))
    for b in range(f.inner):
        table.index[b] = <int32_t> place
        place = next_place(place, digits, f.sizes, table.step, first, f.n_axes)
    return 0


cdef double* logarithms(const Table* table) except NULL nogil:
    """Return a copy of a table as logarithms."""
    cdef double* logs = <double*> allocate(table.length, sizeof(double), BUCKETS)
    cdef int64_t k
    for k in range(table.length):
        logs[k] = log(table.values[k])
    return logs


cdef void close_layout(BucketLayout* f) noexcept nogil:
    cdef Py_ssize_t i
    if f.cells:
        for i in range(f.n_inputs):
            free(f.inputs[i].index)
            free(f.inputs[i].logs)
    free(f.cells)
    f.cells = NULL


@cython.final
cdef class CompiledBucketTree:
    """The buckets of an elimination order with their factors, which are multiplied into few tables for each bucket."""
    cdef readonly Py_ssize_t n
    cdef readonly double offset   # the logarithm of the constant by which the tables were scaled
    cdef Py_ssize_t n_tables, n_factors, most_states
    cdef Node* nodes              # [n], in elimination order
    cdef Table* tables            # [n_tables]; the last one, which is no factor, has ones
    cdef int64_t[::1] table_of_factor_, state_at
    cdef list scopes_of_tables
    cdef readonly bint is_impossible  # all entries of a table are 0

    def __cinit__(self, sizes, order, scope_at, scopes, table_at, tables):
        """Check and copy a graph, and lay out the buckets.

        Args:
            sizes: int32[n], the number of states of each variable.
            order: int32[n], the variables in elimination order.
            scope_at, scopes: int64[F + 1], int32[..]: the variables of each factor, at least one, ascending.
            table_at, tables: int64[F + 1], float64[..]: the log-potentials of each factor, the last variable fastest.
        """
        cdef int32_t[::1] sizes_ = np.array(sizes, np.int32), order_ = np.array(order, np.int32)
        cdef int32_t[::1] scopes_ = np.array(scopes, np.int32), position
        cdef int64_t[::1] scope_at_ = np.array(scope_at, np.int64), table_at_ = np.array(table_at, np.int64)
        cdef double[::1] tables_ = np.array(tables, np.float64)
        cdef Py_ssize_t f, e, place, n = sizes_.shape[0], n_factors = table_at_.shape[0] - 1
        cdef int64_t cells
        require(order_.shape[0] == n and scope_at_.shape[0] == table_at_.shape[0],
                "the arrays of a graph do not fit each other")
        require_offsets(scope_at_, scopes_.shape[0], "scope_at")
        require_offsets(table_at_, tables_.shape[0], "table_at")
        position = np.full(n, -1, np.int32)
        self.state_at = np.zeros(n + 1, np.int64)
        self.most_states = 1
        for place in range(n):
            require(0 <= order_[place] < n and position[order_[place]] < 0 and sizes_[place] >= 1,
                    "order must name each variable once, and sizes must be at least 1")
            position[order_[place]] = <int32_t> place
            self.state_at[place + 1] = self.state_at[place] + sizes_[place]
            self.most_states = max(self.most_states, sizes_[place])
        for f in range(n_factors):
            require(scope_at_[f] < scope_at_[f + 1], "a factor must have at least one variable")
            cells = 1
            for e in range(scope_at_[f], scope_at_[f + 1]):
                require(0 <= scopes_[e] < n and (e == scope_at_[f] or scopes_[e - 1] < scopes_[e]),
                        "a scope must name variables of the graph in ascending order")
                require(cells <= MOST_CELLS // sizes_[scopes_[e]], "a factor must have at most 2^40 cells")
                cells *= sizes_[scopes_[e]]
            require(table_at_[f + 1] - table_at_[f] == cells,
                    "a table must have one cell for each joint state of its variables")
        self.n, self.n_factors = n, n_factors
        self.nodes = <Node*> allocate_zeroed(n, sizeof(Node), BUCKETS)
        self.tables = <Table*> allocate_zeroed(n_factors + 1, sizeof(Table), BUCKETS)
        self.table_of_factor_, self.scopes_of_tables = np.zeros(n_factors, np.int64), []
        self.build(sizes_, order_, position, scope_at_, scopes_, table_at_, tables_)

    def __dealloc__(self):
        cdef Py_ssize_t b, t
        if self.nodes:
            for b in range(self.n):
                free(self.nodes[b].sources)
                free(self.nodes[b].separator)
        if self.tables:
            for t in range(self.n_factors + 1):
                free(self.tables[t].values)
        free(self.nodes)
        free(self.tables)

    @property
    def table_of_factor(self):
        """Copy of the index of the table that contains each factor, int64[F]."""
        return np.array(self.table_of_factor_)

    def scope_of_table(self, Py_ssize_t table):
        """Return the variables of a table, one for each axis."""
        require(0 <= table < len(self.scopes_of_tables), "the table does not exist")
        return self.scopes_of_tables[table]

    cdef int build(self, const int32_t[::1] sizes, const int32_t[::1] order, const int32_t[::1] position,
                   const int64_t[::1] scope_at, const int32_t[::1] scopes, const int64_t[::1] table_at,
                   const double[::1] tables) except -1:
        """Assign each factor to the bucket of its first variable, and lay out all buckets."""
        cdef Py_ssize_t f, e, b, place, n_axes, at, n_messages
        cdef int32_t u, v
        cdef int64_t k
        cdef Node* node
        cdef int32_t separator[MOST_AXES]
        cdef int64_t[::1] first_factor = np.full(self.n + 1, -1, np.int64)
        cdef int64_t[::1] next_factor = np.full(self.n_factors + 1, -1, np.int64)
        cdef int64_t[::1] first_message = np.full(self.n + 1, -1, np.int64)
        cdef int64_t[::1] last_message = np.full(self.n + 1, -1, np.int64)
        cdef int64_t[::1] next_message = np.full(self.n + 1, -1, np.int64)
        cdef int32_t[::1] axis = np.full(self.n + 1, -1, np.int32)  # axis of a variable in the current separator
        for f in range(self.n_factors - 1, -1, -1):
            place = self.n
            for e in range(scope_at[f], scope_at[f + 1]):
                place = min(place, position[scopes[e]])
            next_factor[f], first_factor[place] = first_factor[place], f
        for place in range(self.n):
            v, node, n_axes, n_messages = order[place], &self.nodes[place], 0, 0
            b = first_message[place]
            while b >= 0:
                n_messages += 1
                for e in range(self.nodes[b].n_axes):
                    add_axis(self.nodes[b].separator[e], v, &axis[0], position, separator, &n_axes)
                b = next_message[b]
            f = first_factor[place]
            while f >= 0:
                for e in range(scope_at[f], scope_at[f + 1]):
                    add_axis(scopes[e], v, &axis[0], position, separator, &n_axes)
                f = next_factor[f]
            require(n_axes <= MOST_AXES, "a separator has too many variables")
            node.variable, node.n_states, node.n_axes, node.n_rows = v, sizes[v], n_axes, 1
            node.separator = <int32_t*> allocate(2 * n_axes, sizeof(int32_t), BUCKETS)
            node.widths = node.separator + n_axes
            for at in range(n_axes):
                u = separator[at]
                node.separator[at], node.widths[at], axis[u] = u, sizes[u], <int32_t> at
                require(node.n_rows <= MOST_CELLS // sizes[u], "a separator must have at most 2^40 states")
                node.n_rows *= sizes[u]
            axes_of_block(node.widths, n_axes, node.n_states, &at)
            node.n_blocks = node.n_rows // at
            f = self.n_tables
            self.multiply_factors(node, first_factor[place], next_factor, &axis[0], scope_at, scopes, table_at, tables,
                                  sizes)
            node.n_inputs = n_messages + self.n_tables - f
            # A bucket without inputs gets the table of ones.
            node.sources = <int64_t*> allocate_zeroed(max(node.n_inputs, 1) * (1 + n_axes), sizeof(int64_t), BUCKETS)
            node.strides = node.sources + max(node.n_inputs, 1)
            b, at = first_message[place], 0
            while b >= 0:
                node.sources[at], k = -1 - b, 1
                for e in range(self.nodes[b].n_axes - 1, -1, -1):
                    u = self.nodes[b].separator[e]
                    if u != v:
                        node.strides[at * n_axes + axis[u]] = k
                    k *= sizes[u]
                b, at = next_message[b], at + 1
            while f < self.n_tables:
                node.sources[at], k = f, 1
                for u in reversed(self.scopes_of_tables[f]):
                    if u != v:
                        node.strides[at * n_axes + axis[u]] = k
                    k *= sizes[u]
                f, at = f + 1, at + 1
            for at in range(n_axes):
                axis[separator[at]] = -1
            if n_axes:
                b = position[separator[n_axes - 1]]
                if first_message[b] < 0:
                    first_message[b] = place
                else:
                    next_message[last_message[b]] = place
                last_message[b] = place
        return self.add_ones()

    cdef int add_ones(self) except -1:
        """Append a table of ones for buckets without inputs."""
        cdef Py_ssize_t place, x
        cdef Table* ones = &self.tables[self.n_tables]
        ones.values = <double*> allocate(self.most_states, sizeof(double), BUCKETS)
        ones.length = self.most_states
        for x in range(self.most_states):
            ones.values[x] = 1
        for place in range(self.n):
            if self.nodes[place].n_inputs == 0:
                self.nodes[place].n_inputs = 1
                self.nodes[place].sources[0] = self.n_tables
        return 0

    cdef int multiply_factors(self, const Node* node, int64_t first, const int64_t[::1] next_factor,
                              const int32_t* axis, const int64_t[::1] scope_at, const int32_t[::1] scopes,
                              const int64_t[::1] table_at, const double[::1] tables, const int32_t[::1] sizes
                              ) except -1:
        """Multiply the factors of a bucket into few tables with few rows, and append the tables."""
        cdef int64_t most = max(node.n_rows // COMBINED_PART, COMBINED_ROWS), f = first
        cdef Py_ssize_t e, g
        cdef uint64_t mask, lowest
        cdef list factors = [], groups = []  # (axes as bits, factor); [axes as bits, factors]
        while f >= 0:
            mask = 0
            for e in range(scope_at[f], scope_at[f + 1]):
                if scopes[e] != node.variable:
                    mask |= <uint64_t> 1 << axis[scopes[e]]
            g = len(factors)
            while g > 0:  # the factor with the lowest differing axis is first
                lowest = mask ^ <uint64_t> factors[g - 1][0]
                if not mask & lowest & (~lowest + 1):
                    break
                g -= 1
            factors.insert(g, (mask, f))
            f = next_factor[f]
        for mask_, f_ in factors:
            mask = mask_
            for group in groups:
                if self.table_cells(node, mask | <uint64_t> group[0], most) <= most:
                    group[0] |= mask_
                    group[1].append(f_)
                    break
            else:
                groups.append([mask_, [f_]])
        for mask_, members in groups:
            mask = mask_
            self.multiply(node, mask, members, axis, scope_at, scopes, table_at, tables, sizes)
        return 0

    cdef int64_t table_cells(self, const Node* node, uint64_t mask, int64_t most) noexcept:
        """Return the number of cells of a table with some axes of the separator, or a number above ``most``."""
        cdef Py_ssize_t a
        cdef int64_t cells = node.n_states
        for a in range(node.n_axes):
            if mask >> a & 1:
                if cells > most // node.widths[a]:
                    return most + 1
                cells *= node.widths[a]
        return cells

    cdef int multiply(self, const Node* node, uint64_t mask, list members, const int32_t* axis,
                      const int64_t[::1] scope_at, const int32_t[::1] scopes, const int64_t[::1] table_at,
                      const double[::1] tables, const int32_t[::1] sizes) except -1:
        """Multiply factors, and append the scaled product as a table of the given axes of the separator."""
        cdef Py_ssize_t a, e, m = 0
        cdef int64_t f, c, place, step, cells = self.table_cells(node, mask, MOST_CELLS)
        cdef int64_t strides[MOST_AXES + 1]
        cdef int32_t digits[MOST_AXES + 1]
        cdef int32_t widths[MOST_AXES + 1]
        cdef int32_t place_of_axis[MOST_AXES]
        cdef double top
        cdef Table* table = &self.tables[self.n_tables]
        require(cells <= MOST_CELLS, "the product of factors must have at most 2^40 cells")
        table.values = <double*> allocate_zeroed(cells, sizeof(double), BUCKETS)
        table.length, table.in_logs = cells, True
        scope = []
        for a in range(node.n_axes):
            if mask >> a & 1:
                place_of_axis[a], widths[m], m = <int32_t> m, node.widths[a], m + 1
                scope.append(node.separator[a])
        widths[m] = <int32_t> node.n_states
        scope.append(node.variable)
        for member in members:
            f = member
            self.table_of_factor_[f] = self.n_tables
            for a in range(m + 1):
                strides[a] = digits[a] = 0
            step = 1
            for e in range(scope_at[f + 1] - 1, scope_at[f] - 1, -1):
                strides[m if scopes[e] == node.variable else place_of_axis[axis[scopes[e]]]] = step
                step *= sizes[scopes[e]]
            place = table_at[f]
            for c in range(cells):
                table.values[c] += tables[place]
                place = next_place(place, digits, widths, strides, 0, m + 1)
        self.n_tables += 1
        self.scopes_of_tables.append(tuple(scope))
        if scale(table, &top):
            self.offset += top
        else:
            self.is_impossible = True
        return 0


cdef inline void add_axis(int32_t u, int32_t v, int32_t* axis, const int32_t[::1] position, int32_t* separator,
                          Py_ssize_t* n_axes) noexcept:
    """Add ``u`` to a separator, the variable that is eliminated first last, unless it is ``v`` or was added before."""
    cdef Py_ssize_t at = n_axes[0]
    if u == v or axis[u] >= 0:
        return
    axis[u] = 0
    n_axes[0] += 1
    if at >= MOST_AXES:
        return
    while at > 0 and position[separator[at - 1]] < position[u]:
        separator[at] = separator[at - 1]
        at -= 1
    separator[at] = u


# Passes ---------------------------------------------------------------------------------------------------------------

@cython.final
@cython.no_gc_clear  # deallocation reads other objects
cdef class CompiledMessages:
    """Messages of all buckets in elimination order, by sums or maxima."""
    cdef readonly CompiledBucketTree tree
    cdef readonly bint maximised, is_impossible
    cdef readonly Py_ssize_t n_done  # messages that were computed
    cdef readonly double total       # sum of the logarithms of all maxima by which tables and messages were scaled
    cdef Table* tables               # [n]
    cdef double[::1] offsets         # [n]
    cdef BucketLayout f              # of the bucket whose message is being computed
    cdef bint busy, is_used          # is_used: `Beliefs` frees the messages

    def __cinit__(self, CompiledBucketTree tree not None, bint maximise):
        self.tree, self.maximised, self.total = tree, maximise, tree.offset
        self.is_impossible = tree.is_impossible
        self.offsets = np.zeros(tree.n)
        self.tables = <Table*> allocate_zeroed(tree.n, sizeof(Table), MESSAGES)

    def __dealloc__(self):
        cdef Py_ssize_t b
        if self.tables:
            for b in range(self.tree.n):
                free(self.tables[b].values)
        free(self.tables)
        close_layout(&self.f)

    @property
    def is_done(self):
        """True if all messages were computed."""
        return self.n_done == self.tree.n

    cdef inline const Table* input(self, const Node* node, Py_ssize_t i) noexcept nogil:
        """Return an input of a bucket."""
        cdef int64_t source = node.sources[i]
        return &self.tree.tables[source] if source >= 0 else &self.tables[-1 - source]

    cdef inline const double* row_at(self, const Node* node, Py_ssize_t i, const int32_t* digits) noexcept nogil:
        """Return the row of an input of a bucket at a joint state of the separator."""
        cdef Py_ssize_t a
        cdef int64_t at = 0
        for a in range(node.n_axes):
            at += node.strides[i * node.n_axes + a] * digits[a]
        return self.input(node, i).values + at

    cdef bint needs_logs(self, const Node* node) noexcept nogil:
        """Return True if the product of the inputs of a bucket must be computed with logarithms."""
        cdef Py_ssize_t i
        cdef double span = 0
        for i in range(node.n_inputs):
            span += self.input(node, i).span
            if self.input(node, i).in_logs:
                return True
        return span > BUCKET_RANGE

    cdef int open_layout(self, BucketLayout* f, const Node* node, bint in_logs) except -1 nogil:
        """Lay out the inputs of a bucket for the loops."""
        cdef Py_ssize_t i
        cdef const Table* table
        close_layout(f)
        f.n_inputs, f.n_axes, f.n_states, f.sizes = node.n_inputs, node.n_axes, node.n_states, node.widths
        f.n_inner, f.outer = axes_of_block(node.widths, node.n_axes, node.n_states, &f.inner), node.n_blocks
        allocate_block(f)
        memset(f.inputs, 0, f.n_inputs * sizeof(BucketInput))
        for i in range(node.n_inputs):
            table = self.input(node, i)
            f.inputs[i].values, f.inputs[i].step = table.values, node.strides + i * node.n_axes
            if in_logs and not table.in_logs:
                f.inputs[i].values = f.inputs[i].logs = logarithms(table)
            lay_out_block(f, &f.inputs[i])
        return 0

    cdef int open_message(self) except -1 nogil:
        """Lay out the next bucket, and allocate its message."""
        cdef const Node* node = &self.tree.nodes[self.n_done]
        cdef Table* message = &self.tables[self.n_done]
        free(message.values)
        message.values = NULL
        message.values = <double*> allocate(node.n_rows, sizeof(double), MESSAGES)
        message.length, message.in_logs = node.n_rows, self.needs_logs(node)
        return self.open_layout(&self.f, node, message.in_logs)

    cdef void collect(self, BucketLayout* f, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        """Compute the message of the next bucket for some of its blocks."""
        collect_rows(f, self.tables[self.n_done].in_logs, self.maximised, self.tables[self.n_done].values, first, last)

    cdef void close_message(self) noexcept nogil:
        """Scale the message of the next bucket."""
        close_layout(&self.f)
        if scale(&self.tables[self.n_done], &self.offsets[self.n_done]):
            self.total += self.offsets[self.n_done]
            self.n_done += 1
        else:
            self.is_impossible = True

    cdef int advance_small(self, int64_t most_cells, double* n_cells) except -1 nogil:
        cdef const Node* node
        while not self.is_impossible and self.n_done < self.tree.n and n_cells[0] < most_cells:
            node = &self.tree.nodes[self.n_done]
            if node.n_blocks > SMALL_BLOCKS:
                break
            self.open_message()
            self.collect(&self.f, 0, self.f.outer)
            self.close_message()
            n_cells[0] += <double> node.n_rows * node.n_states + 1
        return 0

    def advance(self, int64_t most_cells):
        """Compute the messages of the next small buckets, and return their number of table cells.

        The result ends before a large bucket, or after ``most_cells`` cells, which takes a fraction of a second.
        """
        cdef double n_cells = 0
        if self.busy:
            raise RuntimeError("another thread computes the messages")
        self.busy = True
        try:
            with nogil:
                self.advance_small(most_cells, &n_cells)
        finally:
            self.busy = False
        return n_cells

    def large_bucket(self):
        """Return the next bucket if it is large, else None."""
        if self.is_impossible or self.n_done == self.tree.n or self.busy or \
                self.tree.nodes[self.n_done].n_blocks <= SMALL_BLOCKS:
            return None
        return MessageBucket(self)

    def log_rows(self, Py_ssize_t place, states):
        """Return the log-potentials of the states of a bucket's variable, given joint states; each row has a constant.

        Args:
            place: Index of the bucket in elimination order.
            states: int32[N, n], of which only the states of the separator are read.

        Returns:
            float64[N, K].
        """
        cdef Py_ssize_t i, a, x, row
        cdef const double* values
        cdef const Node* node
        states = np.asarray(states)
        require(0 <= place < self.tree.n and self.n_done == self.tree.n and states.shape[1:] == (self.tree.n,),
                "the bucket must exist, the messages must be complete, and states must fit the graph")
        node = &self.tree.nodes[place]
        # Only the separator is copied: this method is called for each bucket with all states.
        variables = np.asarray(<int32_t[:node.n_axes]> node.separator) if node.n_axes else np.zeros(0, np.int32)
        cdef const int32_t[:, ::1] digits = np.take(states, variables, axis=1)
        result = np.zeros((digits.shape[0], node.n_states))
        cdef double[:, ::1] rows = result
        # Checked after the copy, during which another thread may run.
        require(not self.is_used, "the computation of marginals has freed the messages")
        for row in range(digits.shape[0]):
            for a in range(node.n_axes):
                require(0 <= digits[row, a] < node.widths[a], "states must be at least 0 and below the sizes")
            for i in range(node.n_inputs):
                values = self.row_at(node, i, &digits[row, 0] if node.n_axes else NULL)
                for x in range(node.n_states):
                    rows[row, x] += values[x] if self.input(node, i).in_logs else log(values[x])
        return result

    def best_state(self):
        """Set the variables in reverse elimination order, each to its best state; return the joint state int32[n]."""
        cdef Py_ssize_t place, i, a, x
        cdef const Node* node
        cdef const double* values
        cdef bint in_logs
        cdef int32_t digits[MOST_AXES]
        cdef int32_t[::1] state = np.zeros(self.tree.n, np.int32)
        cdef double[::1] row = np.empty(self.tree.most_states)
        require(self.n_done == self.tree.n and not self.is_used,
                "the messages must be complete, and the computation of marginals frees them")
        for place in range(self.tree.n - 1, -1, -1):
            node = &self.tree.nodes[place]
            in_logs = self.needs_logs(node)
            for a in range(node.n_axes):
                digits[a] = state[node.separator[a]]
            for x in range(node.n_states):
                row[x] = 0.0 if in_logs else 1.0
            for i in range(node.n_inputs):
                values = self.row_at(node, i, digits)
                for x in range(node.n_states):
                    if in_logs:
                        row[x] += values[x] if self.input(node, i).in_logs else log(values[x])
                    else:
                        row[x] *= values[x]
            a = 0
            for x in range(1, node.n_states):
                if row[x] > row[a]:
                    a = x
            state[node.variable] = <int32_t> a
        return np.asarray(state)


cdef class LargeBucket:
    """A large bucket that is processed in pieces, possibly by several threads."""
    cdef BucketLayout* f
    cdef Py_ssize_t n_blocks_, n_slices_
    cdef double n_cells_
    cdef bint is_open
    cdef Py_ssize_t n_running  # calls in progress, in any thread

    @property
    def n_blocks(self):
        """Number of blocks; a call may take some of them."""
        return self.n_blocks_

    @property
    def n_slices(self):
        """Number of slices of equally many blocks; a call may take blocks of one. 0: calls may take any blocks."""
        return self.n_slices_

    @property
    def n_cells(self):
        """Number of cells of the bucket."""
        return self.n_cells_

    cdef void open(self, BucketLayout* f) noexcept:
        self.f, self.is_open = f, True
        self.n_blocks_, self.n_cells_ = f.outer, <double> f.outer * f.inner * f.n_states

    cdef int require_blocks(self, Py_ssize_t first, Py_ssize_t last) except -1:
        return require(self.is_open and 0 <= first <= last <= self.n_blocks_, "the blocks do not exist")

    cdef int require_complete(self) except -1:
        return require(self.is_open and not self.n_running, "the bucket is closed, or a thread computes its blocks")


@cython.final
@cython.no_gc_clear  # deallocation reads other objects
cdef class MessageBucket(LargeBucket):
    """A large bucket whose message is computed."""
    cdef CompiledMessages messages

    def __cinit__(self, CompiledMessages messages not None):
        require(not (messages.busy or messages.is_impossible or messages.n_done == messages.tree.n),
                "no bucket is left")
        self.messages = messages
        messages.open_message()
        messages.busy = True
        self.open(&messages.f)

    def __dealloc__(self):
        if self.is_open:
            self.messages.busy = False
            close_layout(&self.messages.f)

    def run(self, Py_ssize_t first, Py_ssize_t last):
        """Compute the message for the blocks from ``first`` to ``last`` - 1."""
        cdef BucketLayout f
        self.require_blocks(first, last)
        copy_layout(&f, self.f)
        self.n_running += 1
        with nogil:
            self.messages.collect(&f, first, last)
        self.n_running -= 1
        free(f.cells)

    def close(self):
        """Complete the message after all blocks were computed."""
        self.require_complete()
        self.is_open = self.messages.busy = False
        self.messages.close_message()


@cython.final
@cython.no_gc_clear  # deallocation reads other objects
cdef class Beliefs:
    """Marginals of variables and tables, by a pass over the buckets in reverse elimination order.

    Each message is freed as soon as it is no longer needed, so the messages can be used only once.
    """
    cdef readonly CompiledMessages messages
    cdef readonly Py_ssize_t n_left  # buckets that are left
    cdef readonly bint is_impossible  # False, because the messages exist
    cdef double** separators         # [n]: the probabilities of a bucket's separator, or NULL
    cdef double** tables             # [n_tables]: the marginal of each table, or NULL
    cdef double[::1] marginals_
    cdef BucketLayout f              # of the bucket that is being processed
    cdef Own own
    cdef bint with_tables, busy

    def __cinit__(self, CompiledMessages messages not None, bint with_tables):
        require(messages.n_done == messages.tree.n and not messages.maximised and not messages.is_used,
                "the messages must be complete, and they must be sums that no other pass has used")
        self.messages, self.with_tables, self.n_left = messages, with_tables, messages.tree.n
        self.marginals_ = np.zeros(messages.tree.state_at[messages.tree.n])
        self.separators = <double**> allocate_zeroed(messages.tree.n, sizeof(double*), MARGINALS)
        self.tables = <double**> allocate_zeroed(messages.tree.n_tables, sizeof(double*), MARGINALS)
        messages.is_used = True

    def __dealloc__(self):
        cdef Py_ssize_t b
        if self.separators:
            for b in range(self.messages.tree.n):
                free(self.separators[b])
        if self.tables:
            for b in range(self.messages.tree.n_tables):
                free(self.tables[b])
        free(self.separators)
        free(self.tables)
        self.free_layout()

    @property
    def is_done(self):
        """True if all marginals were computed."""
        return self.n_left == 0

    @property
    def marginals(self):
        """Copy of the marginals of all variables, one after the other, float64[sum of the sizes]."""
        return np.array(self.marginals_)

    def table(self, Py_ssize_t t):
        """Return the marginal of a table as a flat array, float64[cells]."""
        require(0 <= t < self.messages.tree.n_tables and self.n_left == 0 and self.with_tables,
                "the table must exist, and the pass must be complete")
        result = np.empty(self.messages.tree.tables[t].length)
        cdef double[::1] view = result
        memcpy(&view[0], self.tables[t], view.shape[0] * sizeof(double))
        return result

    cdef int open_bucket(self) except -1 nogil:
        """Lay out the next bucket, and allocate its beliefs."""
        cdef Py_ssize_t place = self.n_left - 1, i
        cdef const Node* node = &self.messages.tree.nodes[place]
        cdef const Table* table = &self.messages.tables[place]
        cdef double** output
        self.free_layout()
        memset(&self.own, 0, sizeof(Own))
        self.own.in_logs = self.messages.needs_logs(node)
        self.messages.open_layout(&self.f, node, self.own.in_logs)
        self.own.message, self.own.offset = table.values, self.messages.offsets[place]
        self.own.scale, self.own.probability, self.own.one = exp(self.own.offset), self.separators[place], 1
        if self.own.in_logs and not table.in_logs:
            self.own.message = self.own.logs = logarithms(table)
        for i in range(node.n_inputs):
            if node.sources[i] < 0:
                output = &self.separators[-1 - node.sources[i]]
            elif self.with_tables and node.sources[i] < self.messages.tree.n_tables:
                output = &self.tables[node.sources[i]]
            else:
                continue
            free(output[0])
            output[0] = NULL
            output[0] = <double*> allocate_zeroed(self.messages.input(node, i).length, sizeof(double), MARGINALS)
            self.f.inputs[i].output = output[0]
        return 0

    cdef void free_layout(self) noexcept nogil:
        close_layout(&self.f)
        free(self.own.logs)
        self.own.logs = NULL

    cdef void close_bucket(self) noexcept nogil:
        """Free the layout of the next bucket, its message and its probabilities, and go on to the bucket after."""
        cdef Table* message = &self.messages.tables[self.n_left - 1]
        self.free_layout()
        self.n_left -= 1
        free(message.values)
        message.values = NULL
        free(self.separators[self.n_left])
        self.separators[self.n_left] = NULL

    cdef inline double* marginal(self) noexcept nogil:
        """Return the marginal of the variable of the next bucket."""
        return &self.marginals_[self.messages.tree.state_at[self.messages.tree.nodes[self.n_left - 1].variable]]

    cdef int advance_small(self, int64_t most_cells, double* n_cells) except -1 nogil:
        cdef const Node* node
        while self.n_left and n_cells[0] < most_cells:
            node = &self.messages.tree.nodes[self.n_left - 1]
            if node.n_blocks > SMALL_BLOCKS:
                break
            self.open_bucket()
            distribute_rows(&self.f, &self.own, self.marginal(), 0, self.f.outer)
            self.close_bucket()
            n_cells[0] += <double> node.n_rows * node.n_states + 1
        return 0

    def advance(self, int64_t most_cells):
        """Process the next small buckets, and return their number of table cells; see `CompiledMessages.advance`."""
        cdef double n_cells = 0
        if self.busy:
            raise RuntimeError("another thread computes the marginals")
        self.busy = True
        try:
            with nogil:
                self.advance_small(most_cells, &n_cells)
        finally:
            self.busy = False
        return n_cells

    def large_bucket(self):
        """Return the next bucket if it is large, else None."""
        if self.n_left == 0 or self.busy or self.messages.tree.nodes[self.n_left - 1].n_blocks <= SMALL_BLOCKS:
            return None
        return BeliefBucket(self)


@cython.final
@cython.no_gc_clear  # deallocation reads other objects
cdef class BeliefBucket(LargeBucket):
    """A large bucket whose beliefs are computed.

    The blocks of a slice have equal states of some outer axes, which all large beliefs contain, so two slices share no
    cell of a large belief. Each slice has a copy of each small belief.
    """
    cdef Beliefs beliefs
    cdef double[:, ::1] sums   # [slices, K]: the part of each slice in the marginal of the variable
    cdef bint[::1] is_sliced   # [outer axes]: the state of this axis is the same in all blocks of a slice
    cdef Py_ssize_t n_after    # number of adjacent blocks of a slice, which differ in the axes after the last sliced
    cdef int64_t[::1] copy_at  # [inputs + 1]: the place of each small belief in a copy
    cdef double[:, ::1] copies  # [slices, cells]: the small beliefs of all slices

    def __cinit__(self, Beliefs beliefs not None):
        require(not beliefs.busy and beliefs.n_left > 0, "no bucket is left")
        self.beliefs = beliefs
        beliefs.open_bucket()
        beliefs.busy = True
        self.open(&beliefs.f)
        self.divide()

    cdef int divide(self) except -1:
        """Choose the axes of the slices; allocate their sums and copies, which are smaller than the table."""
        cdef Py_ssize_t i, a, n_slices = 1, n_outer = self.f.n_axes - self.f.n_inner
        cdef const Node* node = &self.beliefs.messages.tree.nodes[self.beliefs.n_left - 1]
        cdef int64_t length
        cdef bint is_small
        self.is_sliced, self.copy_at = np.zeros(n_outer, np.int32), np.zeros(self.f.n_inputs + 1, np.int64)
        for i in range(self.f.n_inputs):
            length = self.beliefs.messages.input(node, i).length if self.f.inputs[i].output != NULL else 0
            is_small = length <= COPIED_CELLS or length <= self.f.outer * self.f.inner // COMBINED_PART
            self.copy_at[i + 1] = self.copy_at[i] + (length if is_small else 0)
        for a in range(n_outer):
            self.is_sliced[a] = n_slices < LEAST_SLICES and \
                n_slices * self.f.sizes[a] * self.copy_at[self.f.n_inputs] <= self.f.outer * self.f.inner
            for i in range(self.f.n_inputs):
                if self.f.inputs[i].output != NULL and self.copy_at[i] == self.copy_at[i + 1] and \
                        self.f.inputs[i].step[a] == 0:
                    self.is_sliced[a] = False
            n_slices *= self.f.sizes[a] if self.is_sliced[a] else 1
        self.n_after = 1
        a = n_outer - 1
        while a >= 0 and not self.is_sliced[a]:
            self.n_after *= self.f.sizes[a]
            a -= 1
        self.n_slices_, self.sums = n_slices, np.zeros((n_slices, self.f.n_states))
        self.copies = np.zeros((n_slices, self.copy_at[self.f.n_inputs]))
        return 0

    def __dealloc__(self):
        if self.is_open:
            self.beliefs.busy = False
            self.beliefs.free_layout()

    def run(self, Py_ssize_t first, Py_ssize_t last):
        """Compute the beliefs of the blocks from ``first`` to ``last`` - 1, which must belong to one slice.

        The blocks are counted slice by slice.
        """
        cdef BucketLayout f
        cdef Py_ssize_t slice_, per_slice = self.n_blocks_ // self.n_slices_, i, at, n
        self.require_blocks(first, last)
        if first == last:
            return
        slice_ = first // per_slice
        require((last - 1) // per_slice == slice_, "the blocks must belong to one slice")
        copy_layout(&f, self.f)
        self.n_running += 1
        with nogil:
            for i in range(f.n_inputs):
                if self.copy_at[i] < self.copy_at[i + 1]:
                    f.inputs[i].output = &self.copies[slice_, self.copy_at[i]]
            first -= slice_ * per_slice
            last -= slice_ * per_slice
            while first < last:
                n = min(last - first, self.n_after - first % self.n_after)
                at = self.block_at(slice_, first // self.n_after) + first % self.n_after
                distribute_rows(&f, &self.beliefs.own, &self.sums[slice_, 0], at, at + n)
                first += n
        self.n_running -= 1
        free(f.cells)

    cdef Py_ssize_t block_at(self, Py_ssize_t slice_, Py_ssize_t number) noexcept nogil:
        """Return the first block of a sequence of adjacent blocks, which has this number in its slice."""
        cdef Py_ssize_t a, block = 0, step = 1
        for a in range(self.is_sliced.shape[0] - 1, -1, -1):
            if step >= self.n_after:
                if self.is_sliced[a]:
                    block += slice_ % self.f.sizes[a] * step
                    slice_ //= self.f.sizes[a]
                else:
                    block += number % self.f.sizes[a] * step
                    number //= self.f.sizes[a]
            step *= self.f.sizes[a]
        return block

    def close(self):
        """Add up the slices after all blocks were computed."""
        cdef Py_ssize_t x, s, i
        cdef int64_t k
        cdef double* marginal
        self.require_complete()
        self.is_open = self.beliefs.busy = False
        marginal = self.beliefs.marginal()
        for x in range(self.f.n_states):
            for s in range(self.n_slices_):
                marginal[x] += self.sums[s, x]
        for i in range(self.f.n_inputs):
            for s in range(self.n_slices_):
                for k in range(self.copy_at[i], self.copy_at[i + 1]):
                    self.f.inputs[i].output[k - self.copy_at[i]] += self.copies[s, k]
        self.beliefs.close_bucket()


# Loops ----------------------------------------------------------------------------------------------------------------

cdef enum Operation:
    COPY, ADD, MULTIPLY


# ``how`` must be a constant in each call of the next two functions: the compiler then makes a loop without branches.

cdef inline void combine(double* cell, double value, Operation how) noexcept nogil:
    if how == COPY:
        cell[0] = value
    elif how == ADD:
        cell[0] += value
    else:
        cell[0] *= value


cdef inline void combine_cells(const BucketLayout* f, const BucketInput* table, Operation how) noexcept nogil:
    """Copy the rows of a table to the cells of the current block, or add or multiply them."""
    cdef Py_ssize_t b, k, n = f.inner * f.n_states, width = f.n_states
    cdef const double* values = table.values + table.base
    cdef const int32_t* index = table.index
    cdef double* cells = f.cells
    if table.pattern == ADJACENT:
        for b in range(n):
            combine(&cells[b], values[b], how)
    elif width == 2:
        for b in range(f.inner):
            combine(&cells[2 * b], values[index[b]], how)
            combine(&cells[2 * b + 1], values[index[b] + 1], how)
    else:
        for b in range(f.inner):
            for k in range(width):
                combine(&cells[b * width + k], values[index[b] + k], how)


cdef void fill_block(const BucketLayout* f, bint log_domain) noexcept nogil:
    """Combine the tables on the rows of the current block."""
    cdef Py_ssize_t i
    combine_cells(f, &f.inputs[0], COPY)
    for i in range(1, f.n_inputs):
        if log_domain:
            combine_cells(f, &f.inputs[i], ADD)
        else:
            combine_cells(f, &f.inputs[i], MULTIPLY)


cdef inline void first_block(BucketLayout* f, Py_ssize_t first, Py_ssize_t* digits) noexcept nogil:
    """Set the odometer over the outer axes to block ``first``."""
    cdef Py_ssize_t i, a
    for i in range(f.n_inputs):
        f.inputs[i].base = 0
    for a in range(f.n_axes - f.n_inner - 1, -1, -1):
        digits[a] = first % f.sizes[a]
        first //= f.sizes[a]
        for i in range(f.n_inputs):
            f.inputs[i].base += f.inputs[i].step[a] * digits[a]


cdef inline void next_block(BucketLayout* f, Py_ssize_t* digits) noexcept nogil:
    """Advance the odometer by one block."""
    cdef Py_ssize_t i, a = f.n_axes - f.n_inner - 1
    cdef int64_t change = 0
    while a >= 0 and change <= 0:
        digits[a] += 1
        change = 1
        if digits[a] == f.sizes[a]:
            change, digits[a] = 1 - f.sizes[a], 0
        for i in range(f.n_inputs):
            f.inputs[i].base += f.inputs[i].step[a] * change
        a -= 1


cdef void collect_rows(BucketLayout* f, bint log_domain, bint maximise, double* message, Py_ssize_t first,
                       Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t digits[MOST_AXES]
    cdef Py_ssize_t _, b, k, width = f.n_states
    cdef double top, total
    cdef const double* row
    cdef const double* cells = f.cells
    message += first * f.inner
    first_block(f, first, digits)
    for _ in range(first, last):
        fill_block(f, log_domain)
        if not log_domain and not maximise and width == 2:
            for b in range(f.inner):
                message[b] = cells[2 * b] + cells[2 * b + 1]
        else:
            for b in range(f.inner):
                row = cells + b * width
                if not log_domain and not maximise:
                    total = row[0]
                    for k in range(1, width):
                        total += row[k]
                    message[b] = total
                    continue
                top = row[0]
                for k in range(1, width):
                    if row[k] > top:
                        top = row[k]
                if maximise or top == -INFINITY:
                    message[b] = top
                    continue
                total = 0
                for k in range(width):
                    total += exp(row[k] - top)
                message[b] = top + log(total)
        message += f.inner
        next_block(f, digits)


cdef void distribute_rows(BucketLayout* f, const Own* own, double* marginal, Py_ssize_t first, Py_ssize_t last
                          ) noexcept nogil:
    cdef Py_ssize_t digits[MOST_AXES]
    cdef Py_ssize_t _, b, k, i, n = f.inner * f.n_states, width = f.n_states
    cdef double factor
    cdef bint any_row
    cdef double* row
    cdef double* output
    cdef double* cells = f.cells
    cdef const int32_t* index
    cdef const double* message = own.message + first * f.inner
    cdef const double* probability = (own.probability if own.probability else &own.one) + first * f.inner
    first_block(f, first, digits)
    for _ in range(first, last):
        any_row = False
        for b in range(f.inner):
            if probability[b] > 0:
                any_row = True
                break
        if any_row:
            fill_block(f, own.in_logs)
            for b in range(f.inner):
                row = cells + b * width
                if not probability[b] > 0:
                    for k in range(width):
                        row[k] = 0
                elif own.in_logs:
                    for k in range(width):
                        row[k] = exp(row[k] - (message[b] + own.offset)) * probability[b]
                else:
                    factor = probability[b] / (message[b] * own.scale)
                    for k in range(width):
                        row[k] *= factor
            add_rows(f, cells, marginal)
            for i in range(f.n_inputs):
                output, index = f.inputs[i].output, f.inputs[i].index
                if output == NULL:
                    continue
                output += f.inputs[i].base
                if f.inputs[i].pattern == ADJACENT:
                    for b in range(n):
                        output[b] += cells[b]
                elif f.inputs[i].pattern == CONSTANT:
                    add_rows(f, cells, output)
                else:
                    for b in range(f.inner):
                        for k in range(width):
                            output[index[b] + k] += cells[b * width + k]
        message += f.inner
        probability += f.inner
        next_block(f, digits)


cdef inline void add_rows(const BucketLayout* f, const double* cells, double* sums) noexcept nogil:
    """Add the sum of all rows of a block to ``sums`` [K]; the block first, which keeps rounding errors small."""
    cdef Py_ssize_t b, k, width = f.n_states
    cdef double total
    for k in range(width):
        total = 0
        for b in range(f.inner):
            total += cells[b * width + k]
        sums[k] += total
