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
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

cimport cython
import numpy as np

cdef extern from "allocation.h" nogil:
    void* array_memory(int64_t n, size_t size)
    void* zeroed_memory(int64_t n, size_t size)

cdef int64_t MOST_CELLS = <int64_t> 1 << 40  # states of a separator

cdef enum:
    BLOCK = 4096         # cells that are combined at a time; they stay in the first cache
    MOST_AXES = 64       # of a separator
    SMALL_BLOCKS = 256   # most blocks of a small bucket, which takes a few milliseconds
    LEAST_SLICES = 4     # slices that are aimed at in the second pass; one thread works on each
    COPIED_CELLS = 4096  # largest table of which each slice has a copy, if 1/32 of the rows is not more
    COMBINED_PART = 32   # a table merged from several factors has at most 1/32 as many cells as its bucket has rows
    COMBINED_ROWS = 64   # or at most this many cells, if that is more

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
    int64_t* strides    # [inputs, axes]
    int32_t* separator  # [axes]: the variable that is eliminated first is the last
    int32_t* widths     # [axes]: numbers of states of the separator's variables
    Py_ssize_t n_blocks


cdef struct BucketLayout:
    Py_ssize_t n_tables, n_axes, n_inner, n_states, inner, outer  # inner: states of the separator in a block
    const int32_t* sizes       # [axes]
    const int64_t* step        # [tables, axes]
    int32_t** index            # [tables][inner]: the place of each row of the block, NULL where rows are adjacent
    unsigned char* pattern     # [tables]
    double** table             # [tables]
    double** logs              # [tables]: a copy of the table as logarithms, or NULL
    double** output            # [tables], NULL where no beliefs are wanted
    double* cells              # of one block
    int64_t* base              # [tables]


cdef struct Own:               # of a bucket in the second pass
    const double* message      # [rows], as it was stored
    double* logs               # [rows]: its logarithms, or NULL
    double offset, scale       # the logarithm of the maximum before scaling, and the maximum
    const double* probability  # [rows]: of the states of the separator; NULL for a separator without variables
    double one
    bint in_logs


cdef enum Pattern:
    ADJACENT, CONSTANT, GATHER


cdef enum Status:
    FINE, NO_MEMORY, IMPOSSIBLE


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


cdef bint open_layout(BucketLayout* f, const Node* node, Table** inputs, bint in_logs) noexcept nogil:
    """Lay out the tables of a bucket for the loops; return False without memory."""
    cdef Py_ssize_t i, k, n = node.n_inputs
    memset(f, 0, sizeof(BucketLayout))
    f.n_tables, f.n_axes, f.n_states, f.sizes, f.step = n, node.n_axes, node.n_states, node.widths, node.strides
    f.n_inner = axes_of_block(node.widths, node.n_axes, node.n_states, &f.inner)
    f.outer = node.n_blocks
    f.index = <int32_t**> calloc(n + 1, sizeof(int32_t*))
    f.pattern = <unsigned char*> calloc(n + 1, 1)
    f.table = <double**> calloc(n + 1, sizeof(double*))
    f.logs = <double**> calloc(n + 1, sizeof(double*))
    f.output = <double**> calloc(n + 1, sizeof(double*))
    f.base = <int64_t*> calloc(n + 1, sizeof(int64_t))
    f.cells = <double*> malloc(f.inner * f.n_states * sizeof(double))
    if not (f.index and f.pattern and f.table and f.logs and f.output and f.base and f.cells):
        return False
    for i in range(n):
        f.table[i] = inputs[i].values
        if in_logs and not inputs[i].in_logs:
            f.logs[i] = f.table[i] = <double*> array_memory(inputs[i].length, sizeof(double))
            if not f.logs[i]:
                return False
            for k in range(inputs[i].length):
                f.logs[i][k] = log(inputs[i].values[k])
        if not lay_out_block(f, i):
            return False
    return True


cdef bint lay_out_block(BucketLayout* f, Py_ssize_t i) noexcept nogil:
    """Find the places of the rows of a block in table ``i``; return False without memory."""
    cdef Py_ssize_t a, b, first = f.n_axes - f.n_inner
    cdef const int64_t* step = f.step + i * f.n_axes
    cdef int32_t digits[MOST_AXES]
    cdef int64_t place = 0, dense = f.n_states
    cdef bint adjacent = True, constant = True
    for a in range(f.n_axes - 1, first - 1, -1):
        adjacent = adjacent and step[a] == dense
        constant = constant and step[a] == 0
        dense *= f.sizes[a]
    f.pattern[i] = ADJACENT if adjacent else CONSTANT if constant else GATHER
    if adjacent:
        return True
    f.index[i] = <int32_t*> malloc(f.inner * sizeof(int32_t))
    if not f.index[i]:
        return False
    for a in range(first, f.n_axes):
        digits[a] = 0
    for b in range(f.inner):
        f.index[i][b] = <int32_t> place
        a = f.n_axes - 1
        while a >= first:
            digits[a] += 1
            place += step[a]
            if digits[a] < f.sizes[a]:
                break
            place -= step[a] * f.sizes[a]
            digits[a] = 0
            a -= 1
    return True


cdef void close_layout(BucketLayout* f) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(f.n_tables):
        if f.index:
            free(f.index[i])
        if f.logs:
            free(f.logs[i])
    free(f.index)
    free(f.pattern)
    free(f.table)
    free(f.logs)
    free(f.output)
    free(f.base)
    free(f.cells)
    memset(f, 0, sizeof(BucketLayout))


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
        cdef Py_ssize_t f, e, place, n = sizes_.shape[0], n_factors = scope_at_.shape[0] - 1
        cdef int64_t cells
        if order_.shape[0] != n or n_factors < 0 or table_at_.shape[0] != n_factors + 1 or scope_at_[0] != 0 or \
                table_at_[0] != 0 or scope_at_[n_factors] != scopes_.shape[0] or \
                table_at_[n_factors] != tables_.shape[0]:
            raise ValueError("the arrays of a graph do not fit each other")
        position = np.full(n, -1, np.int32)
        self.state_at = np.zeros(n + 1, np.int64)
        self.most_states = 1
        for place in range(n):
            if not 0 <= order_[place] < n or position[order_[place]] >= 0 or sizes_[place] < 1:
                raise ValueError("order must name each variable once, and sizes must be at least 1")
            position[order_[place]] = <int32_t> place
            self.state_at[place + 1] = self.state_at[place] + sizes_[place]
            self.most_states = max(self.most_states, sizes_[place])
        for f in range(n_factors):
            if not 0 <= scope_at_[f] < scope_at_[f + 1] <= scopes_.shape[0]:
                raise ValueError("a factor must have at least one variable")
            cells = 1
            for e in range(scope_at_[f], scope_at_[f + 1]):
                if not 0 <= scopes_[e] < n or e > scope_at_[f] and scopes_[e] <= scopes_[e - 1]:
                    raise ValueError("a scope must name variables of the graph in ascending order")
                if cells > MOST_CELLS // sizes_[scopes_[e]]:
                    raise ValueError("a factor must have at most 2^40 cells")
                cells *= sizes_[scopes_[e]]
            if table_at_[f + 1] - table_at_[f] != cells or table_at_[f] < 0:
                raise ValueError("a table must have one cell for each joint state of its variables")
        self.n, self.n_factors = n, n_factors
        self.nodes = <Node*> zeroed_memory(n + 1, sizeof(Node))
        self.tables = <Table*> zeroed_memory(n_factors + 1, sizeof(Table))
        if not (self.nodes and self.tables):
            raise MemoryError("no memory for the buckets of a graph")
        self.table_of_factor_, self.scopes_of_tables = np.zeros(n_factors, np.int64), []
        self.build(sizes_, order_, position, scope_at_, scopes_, table_at_, tables_)

    def __dealloc__(self):
        cdef Py_ssize_t b, t
        if self.nodes:
            for b in range(self.n):
                free(self.nodes[b].sources)
                free(self.nodes[b].strides)
                free(self.nodes[b].separator)
                free(self.nodes[b].widths)
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
        if not 0 <= table < len(self.scopes_of_tables):
            raise ValueError("the table does not exist")
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
            if n_axes > MOST_AXES:
                raise ValueError("a separator has too many variables")
            node.variable, node.n_states, node.n_axes, node.n_rows = v, sizes[v], n_axes, 1
            node.separator = <int32_t*> array_memory(n_axes + 1, sizeof(int32_t))
            node.widths = <int32_t*> array_memory(n_axes + 1, sizeof(int32_t))
            if not (node.separator and node.widths):
                raise MemoryError("no memory for the buckets of a graph")
            for at in range(n_axes):
                u = separator[at]
                node.separator[at], node.widths[at], axis[u] = u, sizes[u], <int32_t> at
                if node.n_rows > MOST_CELLS // sizes[u]:
                    raise ValueError("a separator must have at most 2^40 states")
                node.n_rows *= sizes[u]
            axes_of_block(node.widths, n_axes, node.n_states, &at)
            node.n_blocks = node.n_rows // at
            f = self.n_tables
            self.multiply_factors(node, first_factor[place], next_factor, &axis[0], scope_at, scopes, table_at, tables,
                                  sizes)
            node.n_inputs = n_messages + self.n_tables - f
            node.sources = <int64_t*> array_memory(node.n_inputs + 1, sizeof(int64_t))
            node.strides = <int64_t*> zeroed_memory(node.n_inputs * n_axes + 1, sizeof(int64_t))
            if not (node.sources and node.strides):
                raise MemoryError("no memory for the buckets of a graph")
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
        ones.values = <double*> array_memory(self.most_states, sizeof(double))
        if not ones.values:
            raise MemoryError("no memory for the buckets of a graph")
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
        table.values = <double*> zeroed_memory(cells, sizeof(double))
        if cells > MOST_CELLS or not table.values:
            raise MemoryError("no memory for the buckets of a graph")
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
                a = m
                while a >= 0:
                    digits[a] += 1
                    place += strides[a]
                    if digits[a] < widths[a]:
                        break
                    place -= strides[a] * widths[a]
                    digits[a] = 0
                    a -= 1
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
    cdef double* offsets             # [n]
    cdef bint busy, is_used          # is_used: `Beliefs` frees the messages

    def __cinit__(self, CompiledBucketTree tree not None, bint maximise):
        self.tree, self.maximised, self.total = tree, maximise, tree.offset
        self.is_impossible = tree.is_impossible
        self.tables = <Table*> zeroed_memory(tree.n + 1, sizeof(Table))
        self.offsets = <double*> zeroed_memory(tree.n + 1, sizeof(double))
        if not (self.tables and self.offsets):
            raise MemoryError("no memory for the messages of a graph")

    def __dealloc__(self):
        cdef Py_ssize_t b
        if self.tables:
            for b in range(self.tree.n):
                free(self.tables[b].values)
        free(self.tables)
        free(self.offsets)

    @property
    def is_done(self):
        """True if all messages were computed."""
        return self.n_done == self.tree.n

    cdef bint find_inputs(self, const Node* node, Table** inputs) noexcept nogil:
        """Write the inputs of a bucket; return True if their product must be computed with logarithms."""
        cdef Py_ssize_t i
        cdef double span = 0
        cdef bint in_logs = False
        for i in range(node.n_inputs):
            inputs[i] = &self.tree.tables[node.sources[i]] if node.sources[i] >= 0 else \
                &self.tables[-1 - node.sources[i]]
            span += inputs[i].span
            in_logs = in_logs or inputs[i].in_logs
        return in_logs or span > BUCKET_RANGE

    cdef Status open_bucket(self, BucketLayout* f, Py_ssize_t place, bint* in_logs) noexcept nogil:
        """Lay out a bucket for the loops."""
        cdef const Node* node = &self.tree.nodes[place]
        cdef Table** inputs = <Table**> malloc((node.n_inputs + 1) * sizeof(Table*))
        cdef bint is_open
        memset(f, 0, sizeof(BucketLayout))
        if not inputs:
            return NO_MEMORY
        in_logs[0] = self.find_inputs(node, inputs)
        is_open = open_layout(f, node, inputs, in_logs[0])
        free(inputs)
        if not is_open:
            close_layout(f)
            return NO_MEMORY
        return FINE

    cdef Status open_message(self, BucketLayout* f, bint* in_logs) noexcept nogil:
        """Lay out the next bucket, and allocate its message."""
        cdef Table* message = &self.tables[self.n_done]
        message.length = self.tree.nodes[self.n_done].n_rows
        free(message.values)
        message.values = <double*> array_memory(message.length, sizeof(double))
        if not message.values:
            return NO_MEMORY
        return self.open_bucket(f, self.n_done, in_logs)

    cdef Status close_message(self, bint in_logs) noexcept nogil:
        """Scale the message of the next bucket."""
        cdef Table* message = &self.tables[self.n_done]
        message.in_logs = in_logs
        if not scale(message, &self.offsets[self.n_done]):
            self.is_impossible = True
            return IMPOSSIBLE
        self.total += self.offsets[self.n_done]
        self.n_done += 1
        return FINE

    cdef Status advance_small(self, int64_t most_cells, double* n_cells) noexcept nogil:
        cdef BucketLayout f
        cdef bint in_logs
        cdef Status status = FINE
        cdef const Node* node
        while status == FINE and self.n_done < self.tree.n and n_cells[0] < most_cells:
            node = &self.tree.nodes[self.n_done]
            if node.n_blocks > SMALL_BLOCKS:
                break
            status = self.open_message(&f, &in_logs)
            if status == FINE:
                collect_rows(&f, in_logs, self.maximised, f.cells, f.base, self.tables[self.n_done].values, 0, f.outer)
                close_layout(&f)
                status = self.close_message(in_logs)
                n_cells[0] += <double> node.n_rows * node.n_states + 1
        return status

    def advance(self, int64_t most_cells):
        """Compute the messages of the next small buckets, and return their number of table cells.

        The result ends before a large bucket, or after ``most_cells`` cells, which takes a fraction of a second.
        """
        cdef double n_cells = 0
        cdef Status status
        if self.busy:
            raise RuntimeError("another thread computes the messages")
        if self.is_impossible:
            return 0.0
        self.busy = True
        with nogil:
            status = self.advance_small(most_cells, &n_cells)
        self.busy = False
        if status == NO_MEMORY:
            raise MemoryError("no memory for the messages of a graph")
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
        cdef int64_t at
        cdef const Table* table
        cdef const Node* node
        states = np.asarray(states)
        if not (0 <= place < self.tree.n and self.n_done == self.tree.n and states.shape[1:] == (self.tree.n,)):
            raise ValueError("the bucket must exist, the messages must be complete, and states must fit the graph")
        node = &self.tree.nodes[place]
        # Only the separator is copied: this method is called for each bucket with all states.
        variables = np.asarray(<int32_t[:node.n_axes]> node.separator) if node.n_axes else np.zeros(0, np.int32)
        cdef const int32_t[:, ::1] digits = np.take(states, variables, axis=1)
        result = np.zeros((digits.shape[0], node.n_states))
        cdef double[:, ::1] rows = result
        if self.is_used:  # checked after the copy, during which another thread may run
            raise ValueError("the computation of marginals has freed the messages")
        for row in range(digits.shape[0]):
            for a in range(node.n_axes):
                if not 0 <= digits[row, a] < node.widths[a]:
                    raise ValueError("states must be at least 0 and below the sizes")
            for i in range(node.n_inputs):
                table = &self.tree.tables[node.sources[i]] if node.sources[i] >= 0 else \
                    &self.tables[-1 - node.sources[i]]
                at = 0
                for a in range(node.n_axes):
                    at += node.strides[i * node.n_axes + a] * digits[row, a]
                for x in range(node.n_states):
                    rows[row, x] += table.values[at + x] if table.in_logs else log(table.values[at + x])
        return result

    def best_state(self):
        """Set the variables in reverse elimination order, each to its best state; return the joint state int32[n]."""
        cdef Py_ssize_t place, i, a, x
        cdef int64_t at
        cdef const Node* node
        cdef const Table* table
        cdef double value
        cdef bint in_logs
        cdef Table** inputs
        cdef double* row
        result = np.zeros(self.tree.n, np.int32)
        cdef int32_t[::1] state = result
        if self.n_done != self.tree.n or self.is_used:
            raise ValueError("the messages must be complete, and the computation of marginals frees them")
        row = <double*> malloc(self.tree.most_states * sizeof(double))
        inputs = <Table**> malloc((self.tree.n_factors + self.tree.n + 1) * sizeof(Table*))
        if row and inputs:
            for place in range(self.tree.n - 1, -1, -1):
                node = &self.tree.nodes[place]
                in_logs = self.find_inputs(node, inputs)
                for x in range(node.n_states):
                    row[x] = 0.0 if in_logs else 1.0
                for i in range(node.n_inputs):
                    table, at = inputs[i], 0
                    for a in range(node.n_axes):
                        at += node.strides[i * node.n_axes + a] * state[node.separator[a]]
                    for x in range(node.n_states):
                        value = table.values[at + x]
                        if in_logs:
                            row[x] += value if table.in_logs else log(value)
                        else:
                            row[x] *= value
                a = 0
                for x in range(1, node.n_states):
                    if row[x] > row[a]:
                        a = x
                state[node.variable] = <int32_t> a
        is_done = row != NULL and inputs != NULL
        free(row)
        free(inputs)
        if not is_done:
            raise MemoryError("no memory for the best state")
        return result


@cython.final
@cython.no_gc_clear  # deallocation reads other objects
cdef class MessageBucket:
    """A large bucket whose message is computed in pieces, possibly by several threads."""
    cdef CompiledMessages messages
    cdef BucketLayout f
    cdef bint in_logs, is_open
    cdef Py_ssize_t n_running  # calls in progress, in any thread

    def __cinit__(self, CompiledMessages messages not None):
        if messages.busy or messages.is_impossible or messages.n_done == messages.tree.n:
            raise ValueError("no bucket is left")
        self.messages = messages
        if messages.open_message(&self.f, &self.in_logs) != FINE:
            raise MemoryError("no memory for the messages of a graph")
        messages.busy = self.is_open = True

    def __dealloc__(self):
        if self.is_open:
            self.messages.busy = False
            close_layout(&self.f)

    @property
    def n_blocks(self):
        """Number of blocks; a call may take some of them."""
        return self.f.outer

    @property
    def n_slices(self):
        """Number of slices; 0 because threads may process any blocks simultaneously."""
        return 0

    @property
    def n_cells(self):
        """Number of cells of the bucket."""
        return <double> self.f.outer * self.f.inner * self.f.n_states

    def run(self, Py_ssize_t first, Py_ssize_t last):
        """Compute the message for the blocks from ``first`` to ``last`` - 1."""
        cdef double* cells
        cdef int64_t* base
        if not self.is_open or not 0 <= first <= last <= self.f.outer:
            raise ValueError("the blocks do not exist")
        cells = <double*> malloc(self.f.inner * self.f.n_states * sizeof(double))
        base = <int64_t*> malloc((self.f.n_tables + 1) * sizeof(int64_t))
        self.n_running += 1
        if cells and base:
            with nogil:
                collect_rows(&self.f, self.in_logs, self.messages.maximised, cells, base,
                             self.messages.tables[self.messages.n_done].values, first, last)
        self.n_running -= 1
        is_done = cells != NULL and base != NULL
        free(base)
        free(cells)
        if not is_done:
            raise MemoryError("no memory for a bucket")

    def close(self):
        """Complete the message after all blocks were computed."""
        if not self.is_open or self.n_running:
            raise ValueError("the bucket is closed, or a thread computes its blocks")
        self.is_open = self.messages.busy = False
        close_layout(&self.f)
        self.messages.close_message(self.in_logs)


@cython.final
@cython.no_gc_clear  # deallocation reads other objects
cdef class Beliefs:
    """Marginals of variables and tables, by a pass over the buckets in reverse elimination order.

    Each message is freed as soon as it is no longer needed, so the messages can be used only once.
    """
    cdef readonly CompiledMessages messages
    cdef readonly Py_ssize_t n_left  # buckets that are left
    cdef double** separators         # [n]: the probabilities of a bucket's separator, or NULL
    cdef double** tables             # [n_tables]: the marginal of each table, or NULL
    cdef double[::1] marginals_
    cdef bint with_tables, busy

    def __cinit__(self, CompiledMessages messages not None, bint with_tables):
        if messages.n_done != messages.tree.n or messages.maximised or messages.is_used:
            raise ValueError("the messages must be complete, and they must be sums that no other pass has used")
        self.messages, self.with_tables, self.n_left = messages, with_tables, messages.tree.n
        self.marginals_ = np.zeros(messages.tree.state_at[messages.tree.n])
        self.separators = <double**> zeroed_memory(messages.tree.n + 1, sizeof(double*))
        self.tables = <double**> zeroed_memory(messages.tree.n_tables + 1, sizeof(double*))
        if not (self.separators and self.tables):
            raise MemoryError("no memory for the marginals of a graph")
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

    @property
    def is_done(self):
        """True if all marginals were computed."""
        return self.n_left == 0

    @property
    def is_impossible(self):
        """False, because the messages exist."""
        return False

    @property
    def marginals(self):
        """Copy of the marginals of all variables, one after the other, float64[sum of the sizes]."""
        return np.array(self.marginals_)

    def table(self, Py_ssize_t t):
        """Return the marginal of a table as a flat array, float64[cells]."""
        cdef Py_ssize_t i
        if not (0 <= t < self.messages.tree.n_tables and self.n_left == 0 and self.with_tables):
            raise ValueError("the table must exist, and the pass must be complete")
        result = np.zeros(self.messages.tree.tables[t].length)
        cdef double[::1] view = result
        for i in range(view.shape[0]):
            view[i] = self.tables[t][i]
        return result

    cdef Status open_bucket(self, BucketLayout* f, Own* own) noexcept nogil:
        """Lay out the next bucket, and allocate its beliefs."""
        cdef Py_ssize_t place = self.n_left - 1, i
        cdef const Node* node = &self.messages.tree.nodes[place]
        cdef const Table* table = &self.messages.tables[place]
        cdef int64_t source, k
        memset(own, 0, sizeof(Own))
        if self.messages.open_bucket(f, place, &own.in_logs) != FINE:
            return NO_MEMORY
        own.message, own.offset = table.values, self.messages.offsets[place]
        own.scale, own.probability, own.one = exp(own.offset), self.separators[place], 1
        if own.in_logs and not table.in_logs:
            own.logs = <double*> array_memory(table.length, sizeof(double))
            if not own.logs:
                close_layout(f)
                return NO_MEMORY
            for k in range(table.length):
                own.logs[k] = log(table.values[k])
            own.message = own.logs
        for i in range(node.n_inputs):
            source = node.sources[i]
            if source >= 0:
                if self.with_tables and source < self.messages.tree.n_tables:
                    free(self.tables[source])
                    f.output[i] = self.tables[source] = <double*> zeroed_memory(
                        self.messages.tree.tables[source].length, sizeof(double))
            else:
                free(self.separators[-1 - source])
                f.output[i] = self.separators[-1 - source] = <double*> zeroed_memory(
                    self.messages.tables[-1 - source].length, sizeof(double))
            if not f.output[i] and (source < 0 or self.with_tables and source < self.messages.tree.n_tables):
                free(own.logs)
                close_layout(f)
                return NO_MEMORY
        return FINE

    cdef void close_bucket(self, BucketLayout* f, Own* own) noexcept nogil:
        """Free the layout of the next bucket, its message and its probabilities, and go on to the bucket after."""
        cdef Table* message = &self.messages.tables[self.n_left - 1]
        free(own.logs)
        close_layout(f)
        self.n_left -= 1
        free(message.values)
        message.values = NULL
        free(self.separators[self.n_left])
        self.separators[self.n_left] = NULL

    cdef Status advance_small(self, int64_t most_cells, double* n_cells) noexcept nogil:
        cdef BucketLayout f
        cdef Own own
        cdef Status status = FINE
        cdef const Node* node
        while self.n_left and n_cells[0] < most_cells:
            node = &self.messages.tree.nodes[self.n_left - 1]
            if node.n_blocks > SMALL_BLOCKS:
                break
            status = self.open_bucket(&f, &own)
            if status != FINE:
                break
            distribute_rows(&f, &own, f.cells, f.base, &self.marginals_[self.messages.tree.state_at[node.variable]], 0,
                            f.outer)
            self.close_bucket(&f, &own)
            n_cells[0] += <double> node.n_rows * node.n_states + 1
        return status

    def advance(self, int64_t most_cells):
        """Process the next small buckets, and return their number of table cells; see `CompiledMessages.advance`."""
        cdef double n_cells = 0
        cdef Status status
        if self.busy:
            raise RuntimeError("another thread computes the marginals")
        self.busy = True
        with nogil:
            status = self.advance_small(most_cells, &n_cells)
        self.busy = False
        if status != FINE:
            raise MemoryError("no memory for the marginals of a graph")
        return n_cells

    def large_bucket(self):
        """Return the next bucket if it is large, else None."""
        if self.n_left == 0 or self.busy or self.messages.tree.nodes[self.n_left - 1].n_blocks <= SMALL_BLOCKS:
            return None
        return BeliefBucket(self)


@cython.final
@cython.no_gc_clear  # deallocation reads other objects
cdef class BeliefBucket:
    """A large bucket whose beliefs are computed in pieces, possibly by several threads.

    The blocks of a slice have equal states of some outer axes, which all large beliefs contain, so two slices share no
    cell of a large belief. Each slice has a copy of each small belief.
    """
    cdef Beliefs beliefs
    cdef BucketLayout f
    cdef Own own
    cdef bint is_open
    cdef Py_ssize_t n_running  # calls in progress, in any thread
    cdef double[:, ::1] sums   # [slices, K]: the part of each slice in the marginal of the variable
    cdef bint[::1] is_sliced   # [outer axes]: the state of this axis is the same in all blocks of a slice
    cdef Py_ssize_t n_after    # number of adjacent blocks of a slice, which differ in the axes after the last sliced
    cdef int64_t[::1] copy_at  # [tables + 1]: the place of each small belief in a copy
    cdef double[:, ::1] copies  # [slices, cells]: the small beliefs of all slices

    def __cinit__(self, Beliefs beliefs not None):
        if beliefs.busy or beliefs.n_left == 0:
            raise ValueError("no bucket is left")
        self.beliefs = beliefs
        if beliefs.open_bucket(&self.f, &self.own) != FINE:
            raise MemoryError("no memory for the marginals of a graph")
        beliefs.busy = self.is_open = True
        self.divide()

    cdef int divide(self) except -1:
        """Choose the axes of the slices; allocate their sums and copies, which are smaller than the table."""
        cdef Py_ssize_t i, a, n_slices = 1, n_outer = self.f.n_axes - self.f.n_inner
        cdef int64_t length
        cdef bint is_small
        self.is_sliced, self.copy_at = np.zeros(n_outer, np.int32), np.zeros(self.f.n_tables + 1, np.int64)
        for i in range(self.f.n_tables):
            length = self.length(i) if self.f.output[i] != NULL else 0
            is_small = length <= COPIED_CELLS or length <= self.f.outer * self.f.inner // COMBINED_PART
            self.copy_at[i + 1] = self.copy_at[i] + (length if is_small else 0)
        for a in range(n_outer):
            self.is_sliced[a] = n_slices < LEAST_SLICES and \
                n_slices * self.f.sizes[a] * self.copy_at[self.f.n_tables] <= self.f.outer * self.f.inner
            for i in range(self.f.n_tables):
                if self.f.output[i] != NULL and self.copy_at[i] == self.copy_at[i + 1] and \
                        self.f.step[i * self.f.n_axes + a] == 0:
                    self.is_sliced[a] = False
            n_slices *= self.f.sizes[a] if self.is_sliced[a] else 1
        self.n_after = 1
        a = n_outer - 1
        while a >= 0 and not self.is_sliced[a]:
            self.n_after *= self.f.sizes[a]
            a -= 1
        self.sums = np.zeros((n_slices, self.f.n_states))
        self.copies = np.zeros((n_slices, self.copy_at[self.f.n_tables]))
        return 0

    cdef int64_t length(self, Py_ssize_t i) noexcept:
        """Return the number of cells of input ``i``."""
        cdef int64_t source = self.beliefs.messages.tree.nodes[self.beliefs.n_left - 1].sources[i]
        if source >= 0:
            return self.beliefs.messages.tree.tables[source].length
        return self.beliefs.messages.tables[-1 - source].length

    def __dealloc__(self):
        if self.is_open:
            self.beliefs.busy = False
            free(self.own.logs)
            close_layout(&self.f)

    @property
    def n_blocks(self):
        """Number of blocks; a call may take some of them."""
        return self.f.outer

    @property
    def n_slices(self):
        """Number of slices of equally many blocks, at least 1; threads may process different slices simultaneously."""
        return self.sums.shape[0]

    @property
    def n_cells(self):
        """Number of cells of the bucket."""
        return <double> self.f.outer * self.f.inner * self.f.n_states

    def run(self, Py_ssize_t first, Py_ssize_t last):
        """Compute the beliefs of the blocks from ``first`` to ``last`` - 1, which must belong to one slice.

        The blocks are counted slice by slice.
        """
        cdef double* cells
        cdef int64_t* base
        cdef double** outputs
        cdef BucketLayout f = self.f
        cdef Py_ssize_t slice_, per_slice = self.f.outer // self.sums.shape[0], i, at, n
        if not self.is_open or not 0 <= first <= last <= self.f.outer:
            raise ValueError("the blocks do not exist")
        if first == last:
            return
        slice_ = first // per_slice
        if (last - 1) // per_slice != slice_:
            raise ValueError("the blocks must belong to one slice")
        cells = <double*> malloc(self.f.inner * self.f.n_states * sizeof(double))
        base = <int64_t*> malloc((self.f.n_tables + 1) * sizeof(int64_t))
        outputs = <double**> malloc((self.f.n_tables + 1) * sizeof(double*))
        self.n_running += 1
        if cells and base and outputs:
            with nogil:
                for i in range(f.n_tables):
                    outputs[i] = self.f.output[i]
                    if self.copy_at[i] < self.copy_at[i + 1]:
                        outputs[i] = &self.copies[slice_, self.copy_at[i]]
                f.output = outputs
                first -= slice_ * per_slice
                last -= slice_ * per_slice
                while first < last:
                    n = min(last - first, self.n_after - first % self.n_after)
                    at = self.block_at(slice_, first // self.n_after) + first % self.n_after
                    distribute_rows(&f, &self.own, cells, base, &self.sums[slice_, 0], at, at + n)
                    first += n
        self.n_running -= 1
        is_done = cells != NULL and base != NULL and outputs != NULL
        free(outputs)
        free(base)
        free(cells)
        if not is_done:
            raise MemoryError("no memory for a bucket")

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
        cdef CompiledBucketTree tree = self.beliefs.messages.tree
        if not self.is_open or self.n_running:
            raise ValueError("the bucket is closed, or a thread computes its blocks")
        self.is_open = self.beliefs.busy = False
        marginal = &self.beliefs.marginals_[tree.state_at[tree.nodes[self.beliefs.n_left - 1].variable]]
        for x in range(self.f.n_states):
            for s in range(self.sums.shape[0]):
                marginal[x] += self.sums[s, x]
        for i in range(self.f.n_tables):
            for s in range(self.copies.shape[0]):
                for k in range(self.copy_at[i], self.copy_at[i + 1]):
                    self.f.output[i][k - self.copy_at[i]] += self.copies[s, k]
        self.beliefs.close_bucket(&self.f, &self.own)


# Loops ----------------------------------------------------------------------------------------------------------------

cdef void fill_block(const BucketLayout* f, bint log_domain, double* cells, const int64_t* base) noexcept nogil:
    """Combine the tables on the rows of the block that begins at ``base`` in each table."""
    cdef Py_ssize_t i, b, k, n = f.inner * f.n_states, width = f.n_states
    cdef const double* table
    cdef const int32_t* index
    for i in range(f.n_tables):
        table, index = f.table[i] + base[i], f.index[i]
        if i == 0:
            if f.pattern[i] == ADJACENT:
                memcpy(cells, table, n * sizeof(double))
            elif width == 2:
                for b in range(f.inner):
                    cells[2 * b] = table[index[b]]
                    cells[2 * b + 1] = table[index[b] + 1]
            else:
                for b in range(f.inner):
                    for k in range(width):
                        cells[b * width + k] = table[index[b] + k]
        elif log_domain:
            if f.pattern[i] == ADJACENT:
                for b in range(n):
                    cells[b] += table[b]
            elif width == 2:
                for b in range(f.inner):
                    cells[2 * b] += table[index[b]]
                    cells[2 * b + 1] += table[index[b] + 1]
            else:
                for b in range(f.inner):
                    for k in range(width):
                        cells[b * width + k] += table[index[b] + k]
        elif f.pattern[i] == ADJACENT:
            for b in range(n):
                cells[b] *= table[b]
        elif width == 2:
            for b in range(f.inner):
                cells[2 * b] *= table[index[b]]
                cells[2 * b + 1] *= table[index[b] + 1]
        else:
            for b in range(f.inner):
                for k in range(width):
                    cells[b * width + k] *= table[index[b] + k]


cdef inline void first_block(const BucketLayout* f, Py_ssize_t first, Py_ssize_t* digits, int64_t* base) noexcept nogil:
    """Set the odometer over the outer axes to block ``first``."""
    cdef Py_ssize_t i, a
    memset(base, 0, f.n_tables * sizeof(int64_t))
    for a in range(f.n_axes - f.n_inner - 1, -1, -1):
        digits[a] = first % f.sizes[a]
        first //= f.sizes[a]
        for i in range(f.n_tables):
            base[i] += f.step[i * f.n_axes + a] * digits[a]


cdef inline void next_block(const BucketLayout* f, Py_ssize_t* digits, int64_t* base) noexcept nogil:
    """Advance the odometer by one block."""
    cdef Py_ssize_t i, a = f.n_axes - f.n_inner - 1
    while a >= 0:
        digits[a] += 1
        if digits[a] < f.sizes[a]:
            for i in range(f.n_tables):
                base[i] += f.step[i * f.n_axes + a]
            return
        digits[a] = 0
        for i in range(f.n_tables):
            base[i] -= f.step[i * f.n_axes + a] * (f.sizes[a] - 1)
        a -= 1


cdef void collect_rows(const BucketLayout* f, bint log_domain, bint maximise, double* cells, int64_t* base,
                       double* message, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t digits[64]
    cdef Py_ssize_t _, b, k, width = f.n_states
    cdef double top, total
    cdef const double* row
    message += first * f.inner
    first_block(f, first, digits, base)
    for _ in range(first, last):
        fill_block(f, log_domain, cells, base)
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
        next_block(f, digits, base)


cdef void distribute_rows(const BucketLayout* f, const Own* own, double* cells, int64_t* base, double* marginal,
                          Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t digits[64]
    cdef Py_ssize_t _, b, k, i, n = f.inner * f.n_states, width = f.n_states
    cdef double factor
    cdef bint any_row
    cdef double* row
    cdef double* output
    cdef const int32_t* index
    cdef const double* message = own.message + first * f.inner
    cdef const double* probability = (own.probability if own.probability else &own.one) + first * f.inner
    first_block(f, first, digits, base)
    for _ in range(first, last):
        any_row = False
        for b in range(f.inner):
            if probability[b] > 0:
                any_row = True
                break
        if any_row:
            fill_block(f, own.in_logs, cells, base)
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
            for i in range(f.n_tables):
                output = f.output[i]
                if output == NULL:
                    continue
                output += base[i]
                index = f.index[i]
                if f.pattern[i] == ADJACENT:
                    for b in range(n):
                        output[b] += cells[b]
                elif f.pattern[i] == CONSTANT:
                    add_rows(f, cells, output)
                else:
                    for b in range(f.inner):
                        for k in range(width):
                            output[index[b] + k] += cells[b * width + k]
        message += f.inner
        probability += f.inner
        next_block(f, digits, base)


cdef inline void add_rows(const BucketLayout* f, const double* cells, double* sums) noexcept nogil:
    """Add the sum of all rows of a block to ``sums`` [K]; the block first, which keeps rounding errors small."""
    cdef Py_ssize_t b, k, width = f.n_states
    cdef double total
    for k in range(width):
        total = 0
        for b in range(f.inner):
            total += cells[b * width + k]
        sums[k] += total
