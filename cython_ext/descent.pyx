# cython: language_level=3
"""Coordinate descent on the Dobrushin variation of a scan (DoGS17 Algorithm 2).

Called by ``herdner.dobrushin.optimise``, which checks the arguments.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.influence cimport InfluenceMatrix
from herdner._ext.memory cimport owned, require
from matrix cimport Matrix, capped, row_times

cdef enum:
    BITS = 4  # of the number of leaves in a group of a tournament


def choose_dense(InfluenceMatrix influence not None, const double[:, :] q not None,
                 const double[:, ::1] rows not None, double[::1] d not None, double goal,
                 int32_t[::1] order not None, double[::1] w not None):
    """Run the backward pass of Algorithm 2 over T steps of a random scan ``q`` [T, V].

    ``rows`` [T, V] holds b before each step. ``order`` [T] and ``d`` [V] are overwritten from the last step on, until
    d^T b is at most ``goal``. ``w`` [V] is scratch. Each step takes time O(V + nnz). Returns the number of steps that
    were not changed.
    """
    cdef Matrix c = influence.c
    cdef int64_t t, i, e, best, left = rows.shape[0]
    cdef double bound, mean, moved
    require(rows.shape[1] == q.shape[1] == d.shape[0] == w.shape[0] == c.n, "arrays must have an entry per variable")
    require(q.shape[0] >= rows.shape[0] <= order.shape[0], "q, rows and order must have the same number of steps")
    if not c.n:
        return left
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
    """DoGS17 Algorithm 2 on deterministic scans: a forward pass, then a backward pass with early stopping.

    All arrays over the variables begin as untouched zero pages, which mean d = 0, w = 0 and not visited. So the cost of
    a run depends only on the variables that it visits; `reset` restores these. The derivatives w are never updated by
    differences: w_i = d_i ((C b)_i - b_i) is computed anew, in the order of the row, whenever one of its parts changes.
    Hence equal inputs have equal derivatives, and ties do not depend on rounding.

    A tournament tree finds the smallest w: leaves in groups of 2^BITS, these in larger groups, up to the root. A group
    stores its winner as the distance from its first leaf, so zero pages are a valid tournament of zeros, which the
    first leaf wins. Most changes of a leaf stop at its first group, which the leaf neither won before nor wins now.
    """

    cdef Matrix c
    cdef InfluenceMatrix influence
    cdef double[::1] b, d, w, pulls
    cdef uint8_t[::1] seen, ready, weighed
    cdef int32_t[::1] winners
    cdef int32_t[::1] visited, support
    cdef int64_t n_visited, n_support
    cdef int64_t levels[17]
    cdef int height
    cdef bint busy  # a thread uses the arrays

    def __cinit__(self, InfluenceMatrix influence not None):
        self.influence, self.c = influence, influence.c
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
        """Set b_i = 1 at the first visit of variable i."""
        if not self.seen[i]:
            self.seen[i], self.b[i] = 1, 1.0
            self.visited[self.n_visited] = <int32_t> i
            self.n_visited += 1

    cdef inline double pull(self, int64_t i) noexcept nogil:
        """Return (C b)_i."""
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
        """Return the leaf that has won a group; a group of height 0 is a leaf."""
        return (group << (BITS * height)) + (self.winners[self.levels[height] + group] if height else 0)

    cdef inline int64_t match(self, int64_t group, int height) noexcept nogil:
        """Return the best leaf among the winners of a group's members."""
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
        """Set w_i = value and update the groups of leaf i, from the smallest on, until one does not change."""
        cdef double before = self.w[i]
        cdef int64_t group = i, best = i, now
        cdef bint won
        cdef int height
        if before == value:
            return
        self.w[i] = value
        for height in range(1, self.height + 1):
            now = self.winner(group >> BITS, height)
            won = now >> (BITS * (height - 1)) == group  # through the member that has changed
            group >>= BITS
            if won:
                if value > before:
                    best = self.match(group, height)
            elif self.w[best] > self.w[now] or (self.w[best] == self.w[now] and best > now):
                return
            self.winners[self.levels[height] + group] = <int32_t> (best - (group << (BITS * height)))

    cdef inline void refresh(self, int64_t i) noexcept nogil:
        """Update w_i after d_i has changed."""
        self.play(i, self.d[i] * (self.pulls[i] - self.b[i]) if self.d[i] else 0.0)

    cdef inline void refresh_pull(self, int64_t i) noexcept nogil:
        """Update w_i after b of a neighbour has changed. Variables with d_i = 0 are updated when d_i changes."""
        if self.weighed[i]:
            self.pulls[i] = self.pull(i)
            self.refresh(i)

    cdef checked(self, order, important, importance):
        """Return private copies of the variables of a scan and of the important ones."""
        cdef const int32_t[::1] variables
        cdef Py_ssize_t k
        copies = (np.array(owned(order, np.int32, 1, "order")), np.array(owned(important, np.int32, 1, "important")),
                  np.array(importance))
        for variables in copies[:2]:
            for k in range(variables.shape[0]):
                require(0 <= variables[k] < self.c.n, "scans consist of variables of the influence matrix")
        require(len(copies[1]) == len(copies[2]), "each important variable needs an importance")
        return copies

    cdef int enter(self) except -1:
        """Raise ValueError if another thread uses the arrays; the caller must then clear ``busy``."""
        require(not self.busy, "another thread uses the descent")
        self.busy = True
        return 0

    cdef double bound(self) noexcept nogil:
        """Return d^T b."""
        cdef int64_t k
        cdef double total = 0.0
        for k in range(self.n_support):
            total += self.d[self.support[k]] * self.b[self.support[k]]
        return total

    cdef void walk(self, const int32_t[::1] order) noexcept nogil:
        cdef int64_t t
        for t in range(order.shape[0]):
            self.b[order[t]] = self.pull(order[t])

    def run(self, int32_t[::1] order not None, important, const double[::1] importance not None, double goal,
            double[::1] before not None):
        """Optimise ``order`` [T] in place for the importance of the ``important`` variables, which must be distinct.

        Stops once the Dobrushin variation is at most ``goal``. ``before`` [T] is scratch. Returns (variation of the
        input, number of steps not changed). Call `reset` before the next use.
        """
        cdef int64_t t, e, k, best, left = order.shape[0], since = 0
        cdef int32_t i
        cdef double now, first, moved
        cdef int32_t[::1] scan, chosen
        require(before.shape[0] == order.shape[0], "before must have an entry for each step")
        scan, chosen, importance = self.checked(order, important, importance)
        self.enter()
        with nogil:
            for t in range(scan.shape[0]):
                i = scan[t]
                self.see(i)
                before[t] = self.b[i]
                self.b[i] = self.pull(i)
            for k in range(chosen.shape[0]):
                self.weigh(chosen[k], importance[k])
            for k in range(chosen.shape[0]):
                self.refresh(chosen[k])
            first = now = self.bound()
            for t in range(scan.shape[0] - 1, -1, -1):
                if since >= self.n_support:  # as in walk_recorded
                    now = self.bound()
                    since = 0
                if now <= goal:
                    break
                since += 1
                i = scan[t]
                self.b[i] = before[t]
                if self.weighed[i]:
                    self.refresh(i)
                for e in range(self.c.starts[i], self.c.starts[i + 1]):
                    self.refresh_pull(self.c.sources[e])
                best = self.winner(0, self.height)
                now += self.w[best] - self.w[i]
                scan[t] = <int32_t> best
                left = t
                moved = self.d[best]
                if moved:
                    self.d[best] = 0.0
                    self.refresh(best)
                    for e in range(self.c.starts[best], self.c.starts[best + 1]):
                        k = self.c.sources[e]
                        self.weigh(k, self.d[k] + moved * self.c.values[e])
                        self.refresh(k)
        self.busy = False
        order[:] = scan
        return first, left

    def variation(self, order, important, const double[::1] importance not None):
        """Return the Dobrushin variation of an order, as computed by `walk`. Call `reset` before the next use."""
        cdef int64_t k
        cdef double total = 0.0
        cdef int32_t[::1] scan, chosen
        scan, chosen, importance = self.checked(order, important, importance)
        self.enter()
        with nogil:
            self.walk(scan)
            for k in range(chosen.shape[0]):
                self.see(chosen[k])
                total += importance[k] * self.b[chosen[k]]
        self.busy = False
        return total

    def mark_reaching(self, order, important, const double[::1] importance not None, uint8_t[::1] reach not None):
        """Set reach[t] = 1 where the Dobrushin variation depends on step t.

        It does not depend on a step whose variable never influences an important one, or is drawn again before it does.
        Call `reset` before the next use.
        """
        cdef int64_t t, e, k
        cdef double moved
        cdef int32_t[::1] scan, chosen
        scan, chosen, importance = self.checked(order, important, importance)
        require(reach.shape[0] == scan.shape[0], "reach must have an entry for each step")
        self.enter()
        with nogil:
            for k in range(chosen.shape[0]):
                self.weigh(chosen[k], importance[k])
            for t in range(scan.shape[0] - 1, -1, -1):
                moved = self.d[scan[t]]
                reach[t] = moved != 0.0
                if moved:
                    self.d[scan[t]] = 0.0
                    for e in range(self.c.starts[scan[t]], self.c.starts[scan[t] + 1]):
                        k = self.c.sources[e]
                        self.weigh(k, self.d[k] + moved * self.c.values[e])
        self.busy = False

    def reset(self):
        """Restore the variables that were visited since the last reset. Return their number."""
        cdef int64_t k, i, n = self.n_visited
        cdef int height
        require(not self.busy, "another thread uses the descent")
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
