# cython: language_level=3
"""Variable elimination: elimination orders, and the sums of one bucket.

A bucket belongs to one variable with K states and holds tables that contain the variable. Each table is a flat array
whose last axis is this variable, so the K cells of a row are adjacent. The other axes are those of the separator: all
other variables of the bucket. ``strides`` [tables, axes] gives the step of each table along each axis of the separator,
0 where the table does not contain the axis.

``collect`` sums the variable out: it gives one cell for each state of the separator. ``distribute`` combines the
probabilities of the separator with the tables and adds up the beliefs of each table.

`herdner.inference.elimination` lays out the buckets and calls these loops.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

cdef extern from "allocation.h" nogil:
    bint is_addressable(int64_t n, size_t size)

cdef extern from *:
    """
    #define popcount64(x) __builtin_popcountll(x)
    #define lowest_bit(x) __builtin_ctzll(x)
    """
    int popcount64(uint64_t x) nogil
    int lowest_bit(uint64_t x) nogil


cdef int64_t MOST_CELLS = <int64_t> 1 << 40  # states of a separator

cdef enum:
    BLOCK = 4096      # cells that are combined at a time; they stay in the first cache
    MOST_AXES = 64    # of a separator
    MOST_TABLES = 4096


# Elimination orders ---------------------------------------------------------------------------------------------------

cdef enum Criterion:
    MIN_FILL, MIN_WEIGHTED_FILL, MIN_WEIGHT


cdef struct Elimination:
    Py_ssize_t n, words
    uint64_t* adjacent     # [n, words]: bit w of row v says that v and w are neighbours
    uint64_t* alive        # [words]
    double* log_size       # [n]: log2 of the number of states
    double* cost           # [n]
    unsigned char* dirty   # [n]: the cost is out of date
    uint64_t work          # words that were read


cdef double vertex_cost(Elimination* g, Py_ssize_t v, Criterion criterion) noexcept nogil:
    """Return the cost of eliminating ``v`` now: lower is better."""
    cdef const uint64_t* row = g.adjacent + v * g.words
    cdef const uint64_t* other
    cdef uint64_t bits, missing
    cdef Py_ssize_t k, j, u
    cdef double cost = 0
    if criterion == MIN_WEIGHT:
        cost = g.log_size[v]
    for k in range(g.words):
        bits = row[k]
        while bits:
            u = 64 * k + lowest_bit(bits)
            bits &= bits - 1
            if criterion == MIN_WEIGHT:
                cost += g.log_size[u]
                continue
            other = g.adjacent + u * g.words
            g.work += g.words
            for j in range(g.words):
                missing = row[j] & ~other[j]
                if criterion == MIN_FILL:
                    cost += popcount64(missing)
                else:
                    while missing:
                        cost += g.log_size[u] * g.log_size[64 * j + lowest_bit(missing)]
                        missing &= missing - 1
            if criterion == MIN_FILL:
                cost -= 1  # u itself, which is not its own neighbour
            else:
                cost -= g.log_size[u] * g.log_size[u]
    return cost


cdef double eliminate(Elimination* g, Py_ssize_t v) noexcept nogil:
    """Join the neighbours of ``v``, remove it, and return log2 of the cells of its bucket."""
    cdef uint64_t* row = g.adjacent + v * g.words
    cdef uint64_t* other
    cdef uint64_t bits, more
    cdef Py_ssize_t k, j, u
    cdef double log_cells = g.log_size[v]
    for k in range(g.words):
        bits = row[k]
        while bits:
            u = 64 * k + lowest_bit(bits)
            bits &= bits - 1
            log_cells += g.log_size[u]
            other = g.adjacent + u * g.words
            g.work += g.words
            for j in range(g.words):
                other[j] |= row[j]
            other[u >> 6] &= ~(<uint64_t> 1 << (u & 63))
            other[v >> 6] &= ~(<uint64_t> 1 << (v & 63))
            g.dirty[u] = 1
    # Fill of a vertex changes where two of its neighbours were joined: only vertices next to a neighbour of v.
    for k in range(g.words):
        bits = row[k]
        while bits:
            u = 64 * k + lowest_bit(bits)
            bits &= bits - 1
            other = g.adjacent + u * g.words
            for j in range(g.words):
                more = other[j]
                while more:
                    g.dirty[64 * j + lowest_bit(more)] = 1
                    more &= more - 1
    g.alive[v >> 6] &= ~(<uint64_t> 1 << (v & 63))
    return log_cells


cdef inline uint64_t next_random(uint64_t* state) noexcept nogil:
    """xorshift64*, for ties alone."""
    state[0] ^= state[0] >> 12
    state[0] ^= state[0] << 25
    state[0] ^= state[0] >> 27
    return state[0] * <uint64_t> 2685821657736338717


cdef double run_order(Elimination* g, Criterion criterion, uint64_t seed, double limit, double spread,
                      uint64_t most_work, int32_t* order) noexcept nogil:
    """Fill ``order`` greedily; return log2 of the cells of all buckets.

    The result is infinity once a bucket has over 2^limit cells or more than ``most_work`` words were read.
    """
    cdef Py_ssize_t step, v, best, n_ties
    cdef double cost, least, log_cells, total = 0
    cdef uint64_t state = seed | 1
    for v in range(g.n):
        g.dirty[v] = 1
    for step in range(g.n):
        best, n_ties, least = -1, 0, INFINITY
        g.work += g.n // 8
        for v in range(g.n):
            if not (g.alive[v >> 6] >> (v & 63)) & 1:
                continue
            if g.dirty[v]:
                g.cost[v] = vertex_cost(g, v, criterion)
                g.dirty[v] = 0
                if g.work > most_work:
                    return INFINITY
            cost = g.cost[v]
            if spread > 0:  # the random order prefers low costs, but does not always take the lowest
                cost = (cost + 1) * (1 + spread * (<double> (next_random(&state) >> 40) / 16777216.0))
            if cost < least or best < 0:
                best, n_ties, least = v, 1, cost
            elif cost == least and seed:
                n_ties += 1
                if next_random(&state) % <uint64_t> n_ties == 0:
                    best = v
        order[step] = <int32_t> best
        log_cells = eliminate(g, best)
        if log_cells > limit:
            return INFINITY
        total += exp(log_cells * 0.6931471805599453)
    return log(total) / 0.6931471805599453 if g.n else 0


def find_order(const int64_t[::1] starts not None, const int32_t[::1] neighbours not None,
               const double[::1] log_sizes not None, int criterion, uint64_t seed, double limit, double spread,
               uint64_t most_work, int32_t[::1] order not None):
    """Fill ``order`` int32[n] with a greedy elimination order of a graph.

    Args:
        starts, neighbours: int64[n + 1], int32[..]: the neighbours of each vertex, symmetric, without loops; checked.
        log_sizes: float64[n], log2 of the number of states of each variable.
        criterion: 0 least fill, 1 least fill weighted by the sizes of both ends, 2 smallest bucket.
        seed: Seed of the choice among equal costs; 0 takes the first.
        limit: log2 of the largest bucket that is allowed.
        spread: Relative size of the random noise on costs; 0 for none.
        most_work: Number of words after which the search ends without an order.

    Returns:
        log2 of the number of cells of all buckets (infinity without an order), and the number of words read.
    """
    cdef Py_ssize_t n = log_sizes.shape[0], v, e
    cdef Elimination g
    cdef double cells
    if starts.shape[0] != n + 1 or order.shape[0] != n or n and (starts[0] != 0 or starts[n] != neighbours.shape[0]):
        raise ValueError("starts, log_sizes and order do not fit each other")
    g.n, g.words, g.work = n, (n + 63) // 64, 0
    if not is_addressable(<int64_t> n * g.words, sizeof(uint64_t)):
        raise MemoryError("no memory for an elimination order")
    g.adjacent = <uint64_t*> calloc(max(1, n * g.words), sizeof(uint64_t))
    g.alive = <uint64_t*> calloc(max(1, g.words), sizeof(uint64_t))
    g.log_size = <double*> malloc(max(1, n) * sizeof(double))
    g.cost = <double*> malloc(max(1, n) * sizeof(double))
    g.dirty = <unsigned char*> malloc(max(1, n))
    try:
        if not (g.adjacent and g.alive and g.log_size and g.cost and g.dirty):
            raise MemoryError("no memory for an elimination order")
        for v in range(n):
            if not 0 <= log_sizes[v] < 64:
                raise ValueError("log_sizes must be at least 0 and below 64")
            g.log_size[v] = log_sizes[v]
            g.alive[v >> 6] |= <uint64_t> 1 << (v & 63)
            if not 0 <= starts[v] <= starts[v + 1] <= neighbours.shape[0]:
                raise ValueError("starts must ascend")
            for e in range(starts[v], starts[v + 1]):
                if not 0 <= neighbours[e] < n or neighbours[e] == v:
                    raise ValueError("neighbours must be other vertices of the graph")
                g.adjacent[v * g.words + (neighbours[e] >> 6)] |= <uint64_t> 1 << (neighbours[e] & 63)
        with nogil:
            cells = run_order(&g, <Criterion> criterion, seed, limit, spread, most_work, &order[0] if n else NULL)
        return cells, g.work
    finally:
        free(g.adjacent)
        free(g.alive)
        free(g.log_size)
        free(g.cost)
        free(g.dirty)


# Buckets --------------------------------------------------------------------------------------------------------------

cdef struct Layout:
    Py_ssize_t n_tables, n_axes, n_inner, n_states, inner, outer  # inner: states of the separator in a block
    Py_ssize_t sizes[64]
    int64_t strides[64]        # of one table, while it is laid out
    int32_t** index            # [tables][inner]: the place of each row of the block, None where rows are adjacent
    unsigned char* pattern     # [tables]
    double** table             # [tables]
    double** output            # [tables], NULL where no beliefs are wanted
    int64_t* step              # [tables, outer axes]


cdef enum Pattern:
    ADJACENT, CONSTANT, GATHER


cdef class Bucket:
    """The tables of one bucket with their places; a checked copy of what the loops read."""
    cdef Layout f
    cdef list references       # the arrays themselves
    cdef list beliefs
    cdef Py_ssize_t n_rows

    def __cinit__(self, list tables not None, const int64_t[:, ::1] strides not None, const int32_t[::1] sizes not None,
                  Py_ssize_t n_states, list beliefs=None):
        """Lay out a bucket.

        Args:
            tables: float64 arrays, contiguous.
            strides: int64[tables, axes].
            sizes: int32[axes], the states of each variable of the separator.
            n_states: K, the states of the variable of the bucket.
            beliefs: For each table a float64 array of its size to which its beliefs are added, or None.
        """
        cdef Py_ssize_t i, a, last
        cdef const double[::1] table
        cdef double[::1] belief
        cdef Layout* f = &self.f
        memset(f, 0, sizeof(Layout))
        f.n_tables, f.n_axes, f.n_states = len(tables), sizes.shape[0], n_states
        if f.n_axes > MOST_AXES or strides.shape[0] != f.n_tables or strides.shape[1] != f.n_axes or n_states < 1:
            raise ValueError("tables, strides and sizes do not fit each other")
        self.references, self.n_rows = list(tables), 1
        self.beliefs = [None] * f.n_tables if beliefs is None else list(beliefs)
        if len(self.references) != f.n_tables or len(self.beliefs) != f.n_tables or n_states >= 1 << 31:
            raise ValueError("each table needs beliefs or None, and n_states must be below 2^31")
        for a in range(f.n_axes):
            if sizes[a] < 1:
                raise ValueError("sizes must be at least 1")
            f.sizes[a] = sizes[a]
            self.n_rows *= sizes[a]
            if self.n_rows > MOST_CELLS:
                raise ValueError("a separator must have less than 2^40 states")
        f.inner, f.n_inner = 1, 0
        while f.n_inner < f.n_axes and f.inner * f.sizes[f.n_axes - 1 - f.n_inner] * n_states <= BLOCK:
            f.inner *= f.sizes[f.n_axes - 1 - f.n_inner]
            f.n_inner += 1
        f.outer = self.n_rows // f.inner
        f.index = <int32_t**> calloc(max(1, f.n_tables), sizeof(int32_t*))
        f.pattern = <unsigned char*> calloc(max(1, f.n_tables), 1)
        f.table = <double**> calloc(max(1, f.n_tables), sizeof(double*))
        f.output = <double**> calloc(max(1, f.n_tables), sizeof(double*))
        f.step = <int64_t*> calloc(max(1, f.n_tables * f.n_axes), sizeof(int64_t))
        if not (f.index and f.pattern and f.table and f.output and f.step):
            raise MemoryError("no memory for a bucket")
        for i in range(f.n_tables):
            table = self.references[i]
            last = n_states - 1
            if last >= table.shape[0]:
                raise ValueError("a table is smaller than its strides say")
            for a in range(f.n_axes):
                if strides[i, a] < 0:
                    raise ValueError("strides must not be negative")
                if strides[i, a] and f.sizes[a] - 1 > (table.shape[0] - 1 - last) // strides[i, a]:
                    raise ValueError("a table is smaller than its strides say")
                f.step[i * f.n_axes + a] = strides[i, a]
                last += strides[i, a] * (f.sizes[a] - 1)
            f.table[i] = <double*> &table[0]
            if self.beliefs[i] is not None:
                belief = self.beliefs[i]
                if belief.shape[0] != table.shape[0]:
                    raise ValueError("beliefs must have the size of their table")
                f.output[i] = &belief[0]
            self.lay_out_block(i)

    cdef int lay_out_block(self, Py_ssize_t i) except -1:
        """Find the places of the rows of a block in table ``i``."""
        cdef Layout* f = &self.f
        cdef Py_ssize_t a, b, rest
        cdef int64_t place
        cdef bint adjacent = True, constant = True
        cdef int32_t* index = <int32_t*> malloc(f.inner * sizeof(int32_t))
        if not index:
            raise MemoryError("no memory for a bucket")
        f.index[i] = index
        for b in range(f.inner):
            rest, place = b, 0
            for a in range(f.n_axes - 1, f.n_axes - 1 - f.n_inner, -1):
                place += f.step[i * f.n_axes + a] * (rest % f.sizes[a])
                rest //= f.sizes[a]
            if place >= 1 << 31:
                raise ValueError("the rows of a block must be within 2^31 cells")
            index[b] = <int32_t> place
            adjacent = adjacent and place == b * f.n_states
            constant = constant and place == 0
        f.pattern[i] = ADJACENT if adjacent else CONSTANT if constant else GATHER
        return 0

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.f.index:
            for i in range(self.f.n_tables):
                free(self.f.index[i])
        free(self.f.index)
        free(self.f.pattern)
        free(self.f.table)
        free(self.f.output)
        free(self.f.step)

    @property
    def n_blocks(self):
        """Number of blocks; a call may take some of them."""
        return self.f.outer

    @property
    def n_slices(self):
        """Number of states of the first outer axis if all beliefs contain it (then slices share no cell), else 1."""
        cdef Py_ssize_t i
        if self.f.n_axes == self.f.n_inner:
            return 1
        for i in range(self.f.n_tables):
            if self.f.output[i] != NULL and self.f.step[i * self.f.n_axes] == 0:
                return 1
        return self.f.sizes[0]

    def collect(self, bint log_domain, bint maximise, double[::1] message not None, Py_ssize_t first, Py_ssize_t last):
        """Sum the variable out of the product of all tables, or take its maximum.

        Args:
            log_domain: The tables hold logarithms; so does the message.
            maximise: Take the maximum in place of the sum.
            message: float64[rows], filled.
            first, last: The blocks to take: ``first`` to ``last`` - 1.
        """
        if message.shape[0] != self.n_rows or not 0 <= first <= last <= self.f.outer:
            raise ValueError("the message must have one cell for each state of the separator")
        cdef double* cells = <double*> malloc(self.f.inner * self.f.n_states * sizeof(double))
        cdef int64_t* base = <int64_t*> malloc(max(1, self.f.n_tables) * sizeof(int64_t))
        if cells and base:
            with nogil:
                collect_rows(&self.f, log_domain, maximise, cells, base, &message[0], first, last)
        free(base)
        free(cells)
        if not (cells and base):
            raise MemoryError("no memory for a bucket")

    def distribute(self, bint log_domain, const double[::1] message not None, const double[::1] probability not None,
                   double[::1] marginal not None, Py_ssize_t first, Py_ssize_t last):
        """Add the beliefs of the bucket to those of its tables and of its variable.

        Args:
            log_domain: As in `collect`.
            message: float64[rows], as ``collect`` filled it, by sums.
            probability: float64[rows], of the states of the separator.
            marginal: float64[K], to which the probabilities of the variable are added.
            first, last: The blocks to take: ``first`` to ``last`` - 1.
        """
        if message.shape[0] != self.n_rows or probability.shape[0] != self.n_rows or \
                marginal.shape[0] != self.f.n_states or not 0 <= first <= last <= self.f.outer:
            raise ValueError("message, probability or marginal do not fit the bucket")
        cdef double* cells = <double*> malloc(self.f.inner * self.f.n_states * sizeof(double))
        cdef int64_t* base = <int64_t*> malloc(max(1, self.f.n_tables) * sizeof(int64_t))
        if cells and base:
            with nogil:
                distribute_rows(&self.f, log_domain, cells, base, &message[0], &probability[0], &marginal[0], first,
                                last)
        free(base)
        free(cells)
        if not (cells and base):
            raise MemoryError("no memory for a bucket")


cdef void fill_block(const Layout* f, bint log_domain, double* cells, const int64_t* base) noexcept nogil:
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


cdef inline void first_block(const Layout* f, Py_ssize_t first, Py_ssize_t* digits, int64_t* base) noexcept nogil:
    """Set the odometer over the outer axes to block ``first``."""
    cdef Py_ssize_t i, a
    memset(base, 0, f.n_tables * sizeof(int64_t))
    for a in range(f.n_axes - f.n_inner - 1, -1, -1):
        digits[a] = first % f.sizes[a]
        first //= f.sizes[a]
        for i in range(f.n_tables):
            base[i] += f.step[i * f.n_axes + a] * digits[a]


cdef inline void next_block(const Layout* f, Py_ssize_t* digits, int64_t* base) noexcept nogil:
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


cdef void collect_rows(const Layout* f, bint log_domain, bint maximise, double* cells, int64_t* base, double* message,
                       Py_ssize_t first, Py_ssize_t last) noexcept nogil:
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


cdef void distribute_rows(const Layout* f, bint log_domain, double* cells, int64_t* base, const double* message,
                          const double* probability, double* marginal, Py_ssize_t first,
                          Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t digits[64]
    cdef Py_ssize_t _, b, k, i, n = f.inner * f.n_states, width = f.n_states
    cdef double factor
    cdef bint any_row
    cdef double* row
    cdef double* output
    cdef const int32_t* index
    message += first * f.inner
    probability += first * f.inner
    first_block(f, first, digits, base)
    for _ in range(first, last):
        any_row = False
        for b in range(f.inner):
            if probability[b] > 0:
                any_row = True
                break
        if any_row:
            fill_block(f, log_domain, cells, base)
            for b in range(f.inner):
                row = cells + b * width
                if not probability[b] > 0:
                    for k in range(width):
                        row[k] = 0
                elif log_domain:
                    for k in range(width):
                        row[k] = exp(row[k] - message[b]) * probability[b]
                else:
                    factor = probability[b] / message[b]
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


cdef inline void add_rows(const Layout* f, const double* cells, double* sums) noexcept nogil:
    """Add the sum of all rows of a block to ``sums`` [K]; the block first, which keeps rounding errors small."""
    cdef Py_ssize_t b, k, width = f.n_states
    cdef double total
    for k in range(width):
        total = 0
        for b in range(f.inner):
            total += cells[b * width + k]
        sums[k] += total
