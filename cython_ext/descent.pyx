# cython: language_level=3
"""Algorithm 2 of DoGS17, coordinate descent on the Dobrushin variation of a scan. ``herdner.dobrushin.optimise`` checks
and calls.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from matrix cimport Matrix, capped, matrix_of, row_times

cdef enum:
    BITS = 4  # of the number of leaves in a group of a tournament


def choose_dense(influence, const double[:, :] q, const double[:, ::1] rows, double[::1] d, double goal,
                 int32_t[::1] order, double[::1] w):
    """Algorithm 2's backward pass over T steps of a random scan ``q`` [T, V] whose b before each are ``rows`` [T, V].

    ``order`` [T] and ``d`` [V] are overwritten from the last step on, until d^T b is at most ``goal``; returns how many
    steps were left as they are. Time O(V + nnz) for each step. ``w`` [V] is room to work in."""
    cdef Matrix c = matrix_of(influence)
    cdef int64_t t, i, e, best, left = rows.shape[0]
    cdef double bound, mean, moved
    with nogil:
        for t in range(rows.shape[0] - 1, -1, -1):
            bound, mean, best = 0.0, 0.0, 0
            for i in range(c.n):
                w[i] = 0.0
                if d[i]:
                    bound += d[i] * rows[t, i]
                    w[i] = d[i] * (row_times(&c, i, &rows[t, 0]) - rows[t, i])
                mean += q[t, i] * w[i]
                if w[i] < w[best]:
                    best = i
            if bound + mean <= goal:
                break
            order[t] = <int32_t> best
            left = t
            moved = d[best]
            d[best] = 0.0
            for e in range(c.starts[best], c.starts[best + 1]):
                d[c.sources[e]] = capped(d[c.sources[e]] + moved * c.values[e])
    return left


cdef class Descent:
    """Algorithm 2 of DoGS17 on scans that name a variable for each step: forward, then backward with early stopping.

    All arrays over the variables begin as untouched zero pages, which stand for d = 0, w = 0 and nothing seen, so that
    a run costs what it visits and no more; `reset` puts back what was visited. The derivatives w are never carried
    along by differences: w_i = d_i ((C b)_i - b_i) is taken anew, in the order of the row, whenever a part of it
    changes, so that equal states have equal derivatives and ties are ties, whatever came before. The
    smallest is found by a tournament: leaves in groups of 2^BITS, these in groups again, to the top. A group keeps
    its winner as the distance from its first leaf, so that zero pages are a tournament of zeros, in which the first
    leaf wins. Most changes of a leaf end at the first group, which it neither had won nor wins.
    """

    cdef Matrix c
    cdef object influence
    cdef double[::1] b, d, w, pulls
    cdef uint8_t[::1] seen, ready, weighed
    cdef int32_t[::1] winners
    cdef int32_t[::1] visited, support
    cdef int64_t n_visited, n_support
    cdef int64_t levels[17]
    cdef int height

    def __init__(self, influence):
        self.influence, self.c = influence, matrix_of(influence)
        self.height = 0
        size = 0
        while self.c.n > 1 and (self.c.n - 1) >> (BITS * self.height):
            self.height += 1
            self.levels[self.height] = size
            size += ((self.c.n - 1) >> (BITS * self.height)) + 1
        self.b, self.d, self.w = np.zeros(self.c.n), np.zeros(self.c.n), np.zeros(self.c.n)
        self.pulls = np.empty(self.c.n)
        self.seen, self.ready = np.zeros(self.c.n, np.uint8), np.zeros(self.c.n, np.uint8)
        self.weighed = np.zeros(self.c.n, np.uint8)
        self.winners = np.zeros(size, np.int32)
        self.visited, self.support = np.empty(self.c.n, np.int32), np.empty(self.c.n, np.int32)
        self.n_visited = self.n_support = 0

    cdef inline void see(self, int64_t i) noexcept nogil:
        """Sets b_i = 1 if that has not been done yet."""
        if not self.seen[i]:
            self.seen[i], self.b[i] = 1, 1.0
            self.visited[self.n_visited] = <int32_t> i
            self.n_visited += 1

    cdef inline double pull(self, int64_t i) noexcept nogil:
        """(C b)_i"""
        cdef int64_t e
        if not self.ready[i]:
            self.ready[i] = 1
            self.see(i)
            for e in range(self.c.starts[i], self.c.starts[i + 1]):
                self.see(self.c.sources[e])
        return capped(row_times(&self.c, i, &self.b[0]))

    cdef inline void weigh(self, int64_t i, double value) noexcept nogil:
        self.d[i] = capped(value)
        if not self.weighed[i]:
            self.weighed[i] = 1
            self.support[self.n_support] = <int32_t> i
            self.n_support += 1
            self.pulls[i] = self.pull(i)

    cdef inline int64_t winner(self, int64_t group, int height) noexcept nogil:
        """The leaf that won in a group of a height; a group of height 0 is a leaf."""
        return (group << (BITS * height)) + (self.winners[self.levels[height] + group] if height else 0)

    cdef inline int64_t match(self, int64_t group, int height) noexcept nogil:
        """The leaf that wins in a group, of the winners of its members."""
        cdef int64_t member = group << BITS, end = (group + 1) << BITS
        cdef int64_t last = ((self.c.n - 1) >> (BITS * (height - 1))) + 1
        cdef int64_t leaf, best = self.winner(member, height - 1)
        cdef double least = self.w[best]
        for member in range(member + 1, min(end, last)):
            leaf = self.winner(member, height - 1)
            if self.w[leaf] < least:
                best, least = leaf, self.w[leaf]
        return best

    cdef inline void play(self, int64_t i, double value) noexcept nogil:
        """w_i = value, and what follows in the groups that leaf i is in, the smallest first, until one does not
        change."""
        cdef double before = self.w[i]
        cdef int64_t group = i, best = i, now
        cdef bint won
        cdef int height
        if before == value:
            return
        self.w[i] = value
        for height in range(1, self.height + 1):
            now = self.winner(group >> BITS, height)
            won = now >> (BITS * (height - 1)) == group  # by way of the member that has changed
            group >>= BITS
            if won:
                if value > before:
                    best = self.match(group, height)
            elif self.w[best] > self.w[now] or (self.w[best] == self.w[now] and best > now):
                return
            self.winners[self.levels[height] + group] = <int32_t> (best - (group << (BITS * height)))

    cdef inline void refresh(self, int64_t i) noexcept nogil:
        """After d_i has changed."""
        self.play(i, self.d[i] * (self.pulls[i] - self.b[i]) if self.d[i] else 0.0)

    cdef inline void refresh_pull(self, int64_t i) noexcept nogil:
        """After b of a neighbour has changed; those without d wait until they get one."""
        if self.weighed[i]:
            self.pulls[i] = self.pull(i)
            self.refresh(i)

    cdef double bound(self) noexcept nogil:
        """d^T b"""
        cdef int64_t k
        cdef double total = 0.0
        for k in range(self.n_support):
            total += self.d[self.support[k]] * self.b[self.support[k]]
        return total

    cdef void walk(self, const int32_t[::1] order) noexcept nogil:
        cdef int64_t t
        for t in range(order.shape[0]):
            self.b[order[t]] = self.pull(order[t])

    def run(self, int32_t[::1] order, const int32_t[::1] important, const double[::1] importance, double goal,
            double[::1] before):
        """Optimises ``order`` [T] in place for the importance of the ``important`` variables, all different.

        Stops once the Dobrushin variation is at most ``goal``. ``before`` [T] is room to work in. Returns (variation
        of the input, steps left as they were). `reset` comes before anything else."""
        cdef int64_t t, e, k, best, left = order.shape[0], since = 0
        cdef int32_t i
        cdef double now, first, moved
        with nogil:
            for t in range(order.shape[0]):
                i = order[t]
                self.see(i)
                before[t] = self.b[i]
                self.b[i] = self.pull(i)
            for k in range(important.shape[0]):
                self.weigh(important[k], importance[k])
            for k in range(important.shape[0]):
                self.refresh(important[k])
            first = now = self.bound()
            for t in range(order.shape[0] - 1, -1, -1):
                if since >= self.n_support:  # as in walk_recorded
                    now = self.bound()
                    since = 0
                if now <= goal:
                    break
                since += 1
                i = order[t]
                self.b[i] = before[t]
                if self.weighed[i]:
                    self.refresh(i)
                for e in range(self.c.starts[i], self.c.starts[i + 1]):
                    self.refresh_pull(self.c.sources[e])
                best = self.winner(0, self.height)
                now += self.w[best] - self.w[i]
                order[t] = <int32_t> best
                left = t
                moved = self.d[best]
                if moved:
                    self.d[best] = 0.0
                    self.refresh(best)
                    for e in range(self.c.starts[best], self.c.starts[best + 1]):
                        k = self.c.sources[e]
                        self.weigh(k, self.d[k] + moved * self.c.values[e])
                        self.refresh(k)
        return first, left

    def variation(self, const int32_t[::1] order, const int32_t[::1] important, const double[::1] importance):
        """The Dobrushin variation of an order, as `walk` has it. `reset` comes before anything else."""
        cdef int64_t k
        cdef double total = 0.0
        with nogil:
            self.walk(order)
            for k in range(important.shape[0]):
                self.see(important[k])
                total += importance[k] * self.b[important[k]]
        return total

    def mark_reaching(self, const int32_t[::1] order, const int32_t[::1] important, const double[::1] importance,
                      uint8_t[::1] reach):
        """reach[t]: the Dobrushin variation depends on step t. The others draw a variable that a later step draws anew
        before it influences one of importance, or one that never does. `reset` comes before anything else."""
        cdef int64_t t, e, k
        cdef double moved
        with nogil:
            for k in range(important.shape[0]):
                self.weigh(important[k], importance[k])
            for t in range(order.shape[0] - 1, -1, -1):
                moved = self.d[order[t]]
                reach[t] = moved != 0.0
                if moved:
                    self.d[order[t]] = 0.0
                    for e in range(self.c.starts[order[t]], self.c.starts[order[t] + 1]):
                        k = self.c.sources[e]
                        self.weigh(k, self.d[k] + moved * self.c.values[e])

    def reset(self):
        """Puts back what runs have visited; returns how many variables that were."""
        cdef int64_t k, i, n = self.n_visited
        cdef int height
        for k in range(self.n_visited):
            i = self.visited[k]
            self.seen[i], self.ready[i] = 0, 0
        for k in range(self.n_support):
            i = self.support[k]
            self.weighed[i], self.d[i], self.w[i] = 0, 0.0, 0.0
            for height in range(1, self.height + 1):
                self.winners[self.levels[height] + (i >> (BITS * height))] = 0
        self.n_visited = self.n_support = 0
        return n
