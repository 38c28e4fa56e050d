# cython: language_level=3
"""Greedy elimination of the vertices of an undirected graph: elimination orders, and blocks with small separators.

To eliminate a vertex is to join all its neighbours to each other and to remove it. The bucket of a vertex consists of
the vertex and its neighbours at this time. A graph is stored as the ascending list of the neighbours of each vertex,
so sparse graphs of many vertices need little memory.

`GreedyOrder` eliminates all vertices, the cheapest one first. It keeps the costs of all vertices up to date: an
elimination changes only the costs of its neighbours, and of vertices of which it joins two neighbours. `find_block`
eliminates as many vertices as possible with few neighbours each. `herdner.inference.elimination_order` and
`herdner.inference.tempering` call them.
"""

from libc.math cimport exp2, floor
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

cimport cython
import numpy as np

from allocation cimport allocate, allocate_zeroed, require_memory
from heap cimport Heap, remove_item, set_key
from herdner._ext.memory cimport owned, require

cdef double UNITS = 256  # weights of variables are multiples of 1 / UNITS, so that sums of costs are exact
cdef const char* ORDER = b"an elimination order; make the graph smaller, or use a sampler"


# Graphs ---------------------------------------------------------------------------------------------------------------

cdef struct EliminationGraph:
    Py_ssize_t n
    int32_t** neighbours  # [n]: ascending
    int32_t* degree       # [n]
    int32_t* room         # [n]: entries that are allocated
    Heap heap             # vertices
    uint64_t work         # entries that were read or moved


cdef int fill_graph(EliminationGraph* g, starts_, neighbours_, Py_ssize_t n) except -1:
    """Check and copy the neighbours of n vertices; the heap is empty."""
    cdef const int64_t[::1] starts = owned(starts_, np.int64, 1, "starts")
    cdef const int32_t[::1] neighbours = owned(neighbours_, np.int32, 1, "neighbours")
    cdef Py_ssize_t v
    cdef int64_t e
    require(starts.shape[0] == n + 1 and n < <int64_t> 1 << 31 and starts[0] == 0
            and starts[n] == neighbours.shape[0], "starts and neighbours do not fit each other")
    g.n, g.heap.size, g.work = n, 0, 0
    g.neighbours = <int32_t**> allocate_zeroed(n, sizeof(int32_t*), ORDER)
    g.degree = <int32_t*> allocate(n, sizeof(int32_t), ORDER)
    g.room = <int32_t*> allocate(n, sizeof(int32_t), ORDER)
    g.heap.place = <int32_t*> allocate(n, sizeof(int32_t), ORDER)
    g.heap.items = <int32_t*> allocate(n, sizeof(int32_t), ORDER)
    g.heap.key = <double*> allocate(n, sizeof(double), ORDER)
    for v in range(n):
        require(0 <= starts[v] <= starts[v + 1] <= neighbours.shape[0] and starts[v + 1] - starts[v] < n,
                "starts must ascend, and a vertex has fewer neighbours than there are vertices")
        g.heap.place[v] = -1
        g.degree[v] = <int32_t> (starts[v + 1] - starts[v])
        g.room[v] = g.degree[v] + 4
        g.neighbours[v] = <int32_t*> allocate(g.room[v], sizeof(int32_t), ORDER)
        for e in range(starts[v], starts[v + 1]):
            require(0 <= neighbours[e] < n and neighbours[e] != v
                    and (e == starts[v] or neighbours[e - 1] < neighbours[e]),
                    "neighbours must be other vertices of the graph, in ascending order")
            g.neighbours[v][e - starts[v]] = neighbours[e]
    for v in range(n):
        for e in range(g.degree[v]):
            require(is_adjacent(g, g.neighbours[v][e], <int32_t> v), "neighbours must be symmetric")
    return 0


cdef void free_graph(EliminationGraph* g) noexcept:
    cdef Py_ssize_t v
    if g.neighbours:
        for v in range(g.n):
            free(g.neighbours[v])
    free(g.neighbours)
    free(g.degree)
    free(g.room)
    free(g.heap.items)
    free(g.heap.place)
    free(g.heap.key)


cdef inline Py_ssize_t first_not_below(const int32_t* row, Py_ssize_t first, Py_ssize_t last, int32_t v) noexcept nogil:
    """Return the first place from ``first`` to ``last`` whose vertex is at least ``v``."""
    cdef Py_ssize_t middle
    while first < last:
        middle = (first + last) >> 1
        if row[middle] < v:
            first = middle + 1
        else:
            last = middle
    return first


cdef inline bint is_adjacent(const EliminationGraph* g, int32_t a, int32_t b) noexcept nogil:
    cdef Py_ssize_t at = first_not_below(g.neighbours[a], 0, g.degree[a], b)
    return at < g.degree[a] and g.neighbours[a][at] == b


cdef int insert(EliminationGraph* g, int32_t a, int32_t b) except -1 nogil:
    """Add ``b`` to the neighbours of ``a``."""
    cdef Py_ssize_t at = first_not_below(g.neighbours[a], 0, g.degree[a], b)
    if g.degree[a] == g.room[a]:
        g.neighbours[a] = <int32_t*> require_memory(
            realloc(g.neighbours[a], 2 * <size_t> g.room[a] * sizeof(int32_t)), ORDER)
        g.room[a] *= 2
    memmove(g.neighbours[a] + at + 1, g.neighbours[a] + at, (g.degree[a] - at) * sizeof(int32_t))
    g.neighbours[a][at] = b
    g.degree[a] += 1
    g.work += (g.degree[a] - at) // 8 + 4
    return 0


cdef void detach(EliminationGraph* g, int32_t a, int32_t b) noexcept nogil:
    """Remove ``b`` from the neighbours of ``a``."""
    cdef Py_ssize_t at = first_not_below(g.neighbours[a], 0, g.degree[a], b)
    g.degree[a] -= 1
    memmove(g.neighbours[a] + at, g.neighbours[a] + at + 1, (g.degree[a] - at) * sizeof(int32_t))
    g.work += (g.degree[a] - at) // 8 + 4


cdef void discard(EliminationGraph* g, int32_t v) noexcept nogil:
    """Free the neighbours of a vertex that was removed."""
    free(g.neighbours[v])
    g.neighbours[v] = NULL
    g.degree[v] = g.room[v] = 0


# Elimination orders ---------------------------------------------------------------------------------------------------

cdef enum Criterion:
    MIN_FILL, MIN_WEIGHTED_FILL, MIN_WEIGHT


@cython.final
cdef class GreedyOrder:
    """Search for one elimination order of a graph by a greedy rule; vertices with at most one neighbour are first."""
    cdef EliminationGraph g
    cdef double* log_size      # [n]: log2 of the number of states
    cdef double* weight        # [n]: a multiple of 1 / UNITS
    cdef double* weight_sum    # [n]: sum of the weights of all neighbours
    cdef double* cost          # [n]
    cdef int32_t* touched      # [n_touched]: vertices whose cost has changed
    cdef int32_t* is_touched   # [n]
    cdef int32_t* leaves       # [n_leaves]: vertices with at most one neighbour
    cdef double[:, ::1] doubles   # the memory of these arrays
    cdef int32_t[:, ::1] vertices
    cdef Py_ssize_t n_touched, n_leaves, n_measured
    cdef Criterion criterion
    cdef double limit, spread
    cdef uint64_t random_state
    cdef int32_t[::1] order_
    cdef double[::1] message_sizes  # [n]: cells of the separator of each vertex, in the order of their elimination
    cdef readonly Py_ssize_t n_ordered  # vertices that were eliminated
    cdef readonly Py_ssize_t width      # largest number of neighbours of a vertex when it was eliminated
    cdef readonly double cells          # of all buckets
    cdef readonly double message_cells  # of all separators: the buckets without the eliminated vertices
    cdef readonly bint is_hopeless      # a bucket has more cells than the limit: the search ended without an order
    cdef bint busy             # a thread uses the graph

    def __cinit__(self, starts, neighbours, const double[::1] log_sizes not None, int criterion, uint64_t seed,
                  double limit, double spread):
        """Check and copy a graph.

        Args:
            starts, neighbours: int64[n + 1], int32[..]: the neighbours of each vertex in ascending order, symmetric.
            log_sizes: float64[n], log2 of the number of states of each variable.
            criterion: 0 least fill, 1 least fill weighted by the sizes of both ends, 2 smallest bucket.
            seed: Seed of the random numbers.
            limit: log2 of the largest bucket that is allowed.
            spread: Relative size of the random noise on costs; 0 for none.
        """
        cdef Py_ssize_t v, e, n = log_sizes.shape[0]
        require(0 <= criterion <= 2, "the criterion is not 0, 1 or 2")
        fill_graph(&self.g, starts, neighbours, n)
        self.doubles, self.vertices = np.zeros((4, n + 1)), np.zeros((3, n + 1), np.int32)
        self.log_size, self.weight, self.weight_sum = &self.doubles[0, 0], &self.doubles[1, 0], &self.doubles[2, 0]
        self.cost, self.touched = &self.doubles[3, 0], &self.vertices[0, 0]
        self.is_touched, self.leaves = &self.vertices[1, 0], &self.vertices[2, 0]
        self.criterion, self.limit, self.spread, self.random_state = <Criterion> criterion, limit, spread, seed | 1
        self.order_, self.message_sizes = np.zeros(n, np.int32), np.zeros(n)
        for v in range(n):
            require(0 <= log_sizes[v] < 64, "log_sizes must be at least 0 and below 64")
            self.log_size[v] = log_sizes[v]
            self.weight[v] = 1 if criterion == MIN_FILL else floor(UNITS * log_sizes[v] + 0.5) / UNITS
        for v in range(n):
            for e in range(self.g.degree[v]):
                self.weight_sum[v] += self.weight[self.g.neighbours[v][e]]
            if self.g.degree[v] <= 1:
                self.leaves[self.n_leaves] = <int32_t> v
                self.n_leaves += 1

    def __dealloc__(self):
        free_graph(&self.g)

    @property
    def order(self):
        """Copy of the vertices in the order of their elimination, int32[n]; entries from ``n_ordered`` on are 0."""
        return np.array(self.order_)

    @property
    def work(self):
        """Number of entries that were read or moved so far."""
        return self.g.work

    def peak_cells(self, starts_, neighbours_):
        """Return the largest number of cells that messages and beliefs of separators have at the same time.

        The second pass takes the buckets in reverse order. It computes the beliefs of the separators of the messages in
        a bucket, and then frees the message and the belief of the bucket's own separator.

        Args:
            starts_, neighbours_: The graph, as in `GreedyOrder`.
        """
        cdef const int64_t[::1] starts = owned(starts_, np.int64, 1, "starts")
        cdef const int32_t[::1] neighbours = owned(neighbours_, np.int32, 1, "neighbours")
        cdef Py_ssize_t n = self.g.n, k, r, above
        cdef int64_t e
        cdef int32_t v
        cdef double cells, peak = 0
        cdef int32_t[::1] position = np.zeros(n, np.int32)
        cdef int32_t[::1] parent = np.full(n, -1, np.int32)    # the bucket that has the message of a bucket
        cdef int32_t[::1] ancestor = np.full(n, -1, np.int32)  # shortcuts to the latest bucket above (Liu 1986)
        cdef double[::1] inputs = np.zeros(n)                  # cells of the messages in a bucket
        require(not self.busy and self.n_ordered == n and starts.shape[0] == n + 1,
                "the search must have found an order, and starts must fit the graph")
        for k in range(n):
            position[self.order_[k]] = <int32_t> k
        for k in range(n):
            v = self.order_[k]
            for e in range(starts[v], starts[v + 1]):
                require(0 <= e < neighbours.shape[0] and 0 <= neighbours[e] < n,
                        "starts and neighbours do not fit each other")
                r = position[neighbours[e]]
                while 0 <= r < k:
                    above = ancestor[r]
                    ancestor[r] = <int32_t> k
                    if above < 0:
                        parent[r] = <int32_t> k
                        inputs[k] += self.message_sizes[r]
                    r = above
        cells = self.message_cells
        for k in range(n - 1, -1, -1):
            cells += inputs[k]
            peak = max(peak, cells)
            cells -= self.message_sizes[k] * (1 if parent[k] < 0 else 2)
        return peak

    def advance(self, uint64_t most_work):
        """Continue the search; return True if it has ended.

        Args:
            most_work: Approximate number of entries to read or move.
        """
        if self.busy:
            raise RuntimeError("another thread uses the search")
        self.busy = True
        try:
            with nogil:
                self.search(self.g.work + most_work)
        except MemoryError:
            self.is_hopeless = True
            raise
        finally:
            self.busy = False
        return self.is_hopeless or self.n_ordered == self.g.n

    cdef int search(self, uint64_t most_work) except -1 nogil:
        """Eliminate vertices until the work is done."""
        cdef EliminationGraph* g = &self.g
        cdef int32_t v, u
        while not self.is_hopeless and self.n_ordered < g.n and g.work < most_work:
            if self.n_leaves:
                self.n_leaves -= 1
                v = self.leaves[self.n_leaves]
                u = g.neighbours[v][0] if g.degree[v] else -1
                self.append(v)
                if u >= 0:
                    detach(g, u, v)
                    self.weight_sum[u] -= self.weight[v]
                    if g.degree[u] == 1:
                        self.leaves[self.n_leaves] = u
                        self.n_leaves += 1
                discard(g, v)
            elif self.n_measured < g.n:
                v = <int32_t> self.n_measured
                self.n_measured += 1
                if g.degree[v]:  # all vertices without neighbours were eliminated
                    self.cost[v] = self.first_cost(v)
                    set_key(&g.heap, v, self.noisy(self.cost[v]))
            else:
                v = g.heap.items[0]
                remove_item(&g.heap, v)
                self.append(v)
                if not self.is_hopeless:
                    self.eliminate(v)
        return 0

    cdef void append(self, int32_t v) noexcept nogil:
        """Append a vertex to the order, and add its bucket to the totals."""
        cdef Py_ssize_t e
        cdef double log_rows = 0
        for e in range(self.g.degree[v]):
            log_rows += self.log_size[self.g.neighbours[v][e]]
        self.order_[self.n_ordered], self.message_sizes[self.n_ordered] = v, exp2(log_rows)
        self.n_ordered += 1
        self.g.work += self.g.degree[v] + 4
        if log_rows + self.log_size[v] > self.limit:
            self.is_hopeless = True
            return
        self.width = max(self.width, self.g.degree[v])
        self.cells += exp2(log_rows + self.log_size[v])
        self.message_cells += exp2(log_rows)

    cdef double noisy(self, double cost) noexcept nogil:
        """Return the cost with random noise; low costs stay likely to be the lowest."""
        if self.spread <= 0:
            return cost
        self.random_state ^= self.random_state >> 12  # xorshift64*
        self.random_state ^= self.random_state << 25
        self.random_state ^= self.random_state >> 27
        return (cost + 1) * (1 + self.spread * (
            <double> (self.random_state * <uint64_t> 2685821657736338717 >> 40) / 16777216.0))

    cdef double first_cost(self, int32_t v) noexcept nogil:
        """Return the cost of eliminating ``v`` now."""
        cdef EliminationGraph* g = &self.g
        cdef Py_ssize_t e
        cdef int32_t u
        cdef double cost = 0
        if self.criterion == MIN_WEIGHT:
            return self.weight[v] + self.weight_sum[v]
        for e in range(g.degree[v]):  # twice the weight of all pairs of neighbours that are not adjacent
            u = g.neighbours[v][e]
            cost += self.weight[u] * (self.weight_sum[v] - self.weight[u] - self.common(u, v, 0))
        return cost / 2

    cdef double common(self, int32_t a, int32_t b, double loss) noexcept nogil:
        """Return the weight of the common neighbours of ``a`` and ``b``; lower their costs by ``loss``."""
        cdef EliminationGraph* g = &self.g
        cdef const int32_t* x
        cdef const int32_t* y
        cdef Py_ssize_t i = 0, j = 0, n_x, n_y
        cdef double total = 0
        if g.degree[a] > g.degree[b]:
            a, b = b, a
        x, y, n_x, n_y = g.neighbours[a], g.neighbours[b], g.degree[a], g.degree[b]
        g.work += n_x + (n_y if n_y < 8 * n_x else 8 * n_x)
        while i < n_x and j < n_y:
            if x[i] < y[j]:
                i += 1
            elif x[i] > y[j]:
                if n_y < 8 * n_x:
                    j += 1
                else:
                    j = first_not_below(y, j, n_y, x[i])
            else:
                total += self.weight[x[i]]
                if loss:
                    self.cost[x[i]] -= loss
                    self.touch(x[i])
                i += 1
                j += 1
        return total

    cdef inline void touch(self, int32_t v) noexcept nogil:
        if not self.is_touched[v]:
            self.is_touched[v] = 1
            self.touched[self.n_touched] = v
            self.n_touched += 1

    cdef int join(self, int32_t a, int32_t b) except -1 nogil:
        """Make two vertices neighbours, and update the costs."""
        cdef double both
        if self.criterion == MIN_WEIGHT:
            self.cost[a] += self.weight[b]
            self.cost[b] += self.weight[a]
        else:
            both = self.common(a, b, self.weight[a] * self.weight[b])
            self.cost[a] += self.weight[b] * (self.weight_sum[a] - both)
            self.cost[b] += self.weight[a] * (self.weight_sum[b] - both)
        self.weight_sum[a] += self.weight[b]
        self.weight_sum[b] += self.weight[a]
        insert(&self.g, a, b)
        return insert(&self.g, b, a)

    cdef int eliminate(self, int32_t v) except -1 nogil:
        """Join the neighbours of ``v``, remove it, and update the costs."""
        cdef EliminationGraph* g = &self.g
        cdef const int32_t* row = g.neighbours[v]
        cdef Py_ssize_t i, j, at, n = g.degree[v]
        cdef int32_t a
        for i in range(n):
            a, at = row[i], 0
            g.work += n - i
            for j in range(i + 1, n):
                at = first_not_below(g.neighbours[a], at, g.degree[a], row[j])
                if at == g.degree[a] or g.neighbours[a][at] != row[j]:
                    self.join(a, row[j])
        for i in range(n):
            a = row[i]
            detach(g, a, v)
            self.weight_sum[a] -= self.weight[v]
            if self.criterion == MIN_WEIGHT:
                self.cost[a] -= self.weight[v]
            else:  # pairs of v and a neighbour of a outside the bucket of v
                self.cost[a] -= self.weight[v] * (self.weight_sum[a] - self.weight_sum[v] + self.weight[a])
            self.touch(a)
        for i in range(self.n_touched):
            a = self.touched[i]
            self.is_touched[a] = 0
            if a != v:
                set_key(&g.heap, a, self.noisy(self.cost[a]))
        g.work += 8 * self.n_touched
        self.n_touched = 0
        discard(g, v)
        return 0


def least_largest_bucket(starts, neighbours, const double[::1] log_sizes not None):
    """Return a lower bound on log2 of the cells of the largest bucket of any elimination order.

    In each subgraph, the vertex that an order eliminates first has a bucket that contains all its neighbours in the
    subgraph. The bound is the largest minimum of these buckets over the subgraphs that remain if the vertex with the
    smallest one is removed repeatedly (degeneracy).

    Args:
        starts, neighbours, log_sizes: The graph, as in `GreedyOrder`.
    """
    cdef EliminationGraph g
    cdef Py_ssize_t e
    cdef int32_t u, v
    cdef double bound = 0, key
    memset(&g, 0, sizeof(g))
    try:
        fill_graph(&g, starts, neighbours, log_sizes.shape[0])
        with nogil:
            for v in range(<int32_t> g.n):
                key = log_sizes[v]
                for e in range(g.degree[v]):
                    key += log_sizes[g.neighbours[v][e]]
                set_key(&g.heap, v, key)
            while g.heap.size:
                v = g.heap.items[0]
                bound = max(bound, g.heap.key[v])
                remove_item(&g.heap, v)
                for e in range(g.degree[v]):
                    u = g.neighbours[v][e]
                    if g.heap.place[u] >= 0:
                        set_key(&g.heap, u, g.heap.key[u] - log_sizes[v])
        return bound
    finally:
        free_graph(&g)


# Blocks ---------------------------------------------------------------------------------------------------------------

def find_block(starts, neighbours, const double[::1] log_sizes not None, Py_ssize_t width, double most_log2_cells,
               const double[::1] ties not None, unsigned char[::1] is_missing not None):
    """Return the vertices of one block in the order of their elimination, int32[k].

    The vertex with the fewest neighbours is eliminated if its bucket is small enough. Otherwise the vertex with the
    most neighbours is left out of the block; vertices that are missing in all earlier blocks are left out last.

    Args:
        starts, neighbours, log_sizes: The graph, as in `GreedyOrder`.
        width: Largest number of neighbours of an eliminated vertex.
        most_log2_cells: log2 of the largest number of cells of a bucket.
        ties: float64[n], numbers from 0 to below 1 that decide between vertices with equally many neighbours.
        is_missing: uint8[n], 1 for vertices that are in no earlier block; set to 0 for the vertices of the block.
    """
    cdef EliminationGraph g, by_degree
    cdef Py_ssize_t e, n = log_sizes.shape[0], n_block = 0
    cdef int32_t v, u
    cdef double log_cells
    cdef int32_t[::1] block
    require(ties.shape[0] == n == is_missing.shape[0], "log_sizes, ties and is_missing do not fit each other")
    memset(&g, 0, sizeof(g))
    by_degree = g
    array = np.zeros(n, np.int32)
    block = array
    try:
        fill_graph(&g, starts, neighbours, n)
        # A second heap, of which only the keys are used; the vertex to leave out has the smallest key.
        fill_graph(&by_degree, np.zeros(n + 1, np.int64), np.zeros(0, np.int32), n)
        with nogil:
            for v in range(<int32_t> n):
                set_key(&g.heap, v, g.degree[v] + ties[v])
                set_key(&by_degree.heap, v, late_key(&g, v, ties, is_missing))
            while g.heap.size:
                v = g.heap.items[0]
                log_cells = log_sizes[v]
                if g.degree[v] <= width:
                    for e in range(g.degree[v]):
                        log_cells += log_sizes[g.neighbours[v][e]]
                if g.degree[v] == 0 or g.degree[v] <= width and log_cells <= most_log2_cells:
                    block[n_block] = v
                    n_block += 1
                    join_neighbours(&g, v)
                else:
                    v = by_degree.heap.items[0]
                remove_item(&g.heap, v)
                remove_item(&by_degree.heap, v)
                for e in range(g.degree[v]):
                    u = g.neighbours[v][e]
                    detach(&g, u, v)
                    set_key(&g.heap, u, g.degree[u] + ties[u])
                    set_key(&by_degree.heap, u, late_key(&g, u, ties, is_missing))
                discard(&g, v)
            for e in range(n_block):
                is_missing[block[e]] = 0
        return array[:n_block]
    except MemoryError:
        raise MemoryError("no memory for a block of variables; use the backend 'gibbs'") from None
    finally:
        free_graph(&g)
        free_graph(&by_degree)


cdef inline double late_key(const EliminationGraph* g, int32_t v, const double[::1] ties,
                            const unsigned char[::1] is_missing) noexcept nogil:
    """Return a key that is smallest for the vertex that is left out of a block."""
    return (<double> (1 << 30) if is_missing[v] else 0.0) - g.degree[v] + ties[v]


cdef int join_neighbours(EliminationGraph* g, int32_t v) except -1 nogil:
    """Join all neighbours of a vertex to each other."""
    cdef Py_ssize_t i, j
    cdef int32_t a, b
    for i in range(g.degree[v]):
        for j in range(i):
            a, b = g.neighbours[v][i], g.neighbours[v][j]
            if not is_adjacent(g, a, b):
                insert(g, a, b)
                insert(g, b, a)
    return 0
