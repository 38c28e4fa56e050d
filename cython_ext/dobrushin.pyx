# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Dobrushin's matrix and what it says of scans: loops over its rows. ``herdner.dobrushin`` checks.

A matrix C is ``starts`` int64[V + 1], ``sources`` int32[nnz], ``values`` float64[nnz]: row i holds the influences on
variable i, of the variables j in ``sources``; entry (i, j) is there where (j, i) is, zero or not, and (i, i) is not.
"""

import numpy as np

from libc.math cimport exp, fabs, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    BITS = 4  # of the number of leaves in a group of a tournament

cdef double LARGEST = 1e150  # of b and of d, where C says nothing: products stay finite


def count_pairs(const int32_t[:, ::1] pairs, int64_t[::1] starts):
    """Adds to ``starts[i + 1]`` the number of pairs of variable i."""
    cdef int64_t f
    with nogil:
        for f in range(pairs.shape[0]):
            starts[pairs[f, 0] + 1] += 1
            starts[pairs[f, 1] + 1] += 1


def place_pairs(const int32_t[:, ::1] pairs, const double[:] strength, int64_t[::1] cursor, int32_t[::1] sources,
                double[::1] values):
    """Appends each pair, with its strength, to the rows of its two variables; ``cursor`` [V] is where each row
    stands."""
    cdef int64_t f, e
    cdef int32_t i, j
    with nogil:
        for f in range(pairs.shape[0]):
            i, j = pairs[f, 0], pairs[f, 1]
            e = cursor[i]
            cursor[i] += 1
            sources[e], values[e] = j, strength[f]
            e = cursor[j]
            cursor[j] += 1
            sources[e], values[e] = i, strength[f]


def merge_repeated(int64_t[::1] starts, int32_t[::1] sources, double[::1] values):
    """Adds up the entries of a row that name one source, in place of the first; returns how many entries are left."""
    cdef int64_t i, e, begin, end, to = 0, n = starts.shape[0] - 1
    cdef int64_t[::1] seen = np.full(n, -1, np.int64)
    with nogil:
        begin = 0
        for i in range(n):
            end = starts[i + 1]
            starts[i] = to
            for e in range(begin, end):
                if seen[sources[e]] >= starts[i]:
                    values[seen[sources[e]]] += values[e]
                    continue
                seen[sources[e]] = to
                sources[to], values[to] = sources[e], values[e]
                to += 1
            begin = end
        starts[n] = to
    return to


def bound_pairwise(double[::1] values):
    """tanh(R / 4) in place of each range R >= 0 (DoGS17 Theorem 10)."""
    cdef int64_t e
    cdef double q
    with nogil:
        for e in range(values.shape[0]):
            q = exp(-0.5 * values[e])
            values[e] = (1.0 - q) / (1.0 + q)


def bound_binary(const int64_t[::1] starts, double[::1] values, const double[::1] fields, bint as_printed):
    """DoGS17's bound for states -1 and +1 in place of the couplings t (or sums of their sizes).

    With q = e^-2|t| and b of the theorem, which is at most 1 up to b -> 1/b: the influence is at most
    (1 - q^2) b / ((b + q) (1 + b q)) (Theorem 11), and with ``as_printed`` (1 - q^2) b / (q (1 + b)^2), at most 1
    (Theorem 12). ``fields`` [V] are theta_i. What is not a number, as infinity less infinity, makes b = 1.
    """
    cdef int64_t i, e
    cdef double total, widest, q, b, bound
    with nogil:
        for i in range(fields.shape[0]):
            total = 0.0
            for e in range(starts[i], starts[i + 1]):
                total += fabs(values[e])
            widest = exp(-2.0 * (fabs(fields[i]) - total))
            for e in range(starts[i], starts[i + 1]):
                q = exp(-2.0 * fabs(values[e]))
                b = widest * q
                if not b < 1.0:
                    b = 1.0
                if as_printed:
                    bound = (1.0 - q * q) * b / (q * (1.0 + b) * (1.0 + b))
                else:
                    bound = (1.0 - q * q) * b / ((b + q) * (1.0 + b * q))
                values[e] = 1.0 if isnan(bound) or bound > 1.0 else bound


def multiply(const int64_t[::1] starts, const int32_t[::1] sources, const double[::1] values, const double[::1] x,
             double[::1] to):
    """to = C x."""
    cdef int64_t i, e
    cdef double total
    with nogil:
        for i in range(x.shape[0]):
            total = 0.0
            for e in range(starts[i], starts[i + 1]):
                total += values[e] * x[sources[e]]
            to[i] = total


def multiply_transposed(const int64_t[::1] starts, const int32_t[::1] sources, const double[::1] values,
                        const double[::1] x, double[::1] to):
    """to = C^T x."""
    cdef int64_t i, e
    with nogil:
        to[:] = 0.0
        for i in range(x.shape[0]):
            for e in range(starts[i], starts[i + 1]):
                to[sources[e]] += values[e] * x[i]


cdef inline double weighted(const int32_t[::1] support, const double[::1] d, const double[::1] b) noexcept nogil:
    """d^T b over the support of d."""
    cdef int64_t k
    cdef double total = 0.0
    for k in range(support.shape[0]):
        total += d[support[k]] * b[support[k]]
    return total


def walk(const int64_t[::1] starts, const int32_t[::1] sources, const double[::1] values, const int32_t[::1] order,
         double[::1] b):
    """b = B(order[T - 1]) .. B(order[0]) b (DoGS17 Definition 7): each step replaces b_i by (C b)_i."""
    cdef int64_t t, e
    cdef int32_t i
    cdef double total
    with nogil:
        for t in range(order.shape[0]):
            i = order[t]
            total = 0.0
            for e in range(starts[i], starts[i + 1]):
                total += values[e] * b[sources[e]]
            b[i] = min(total, LARGEST)


def walk_recorded(const int64_t[::1] starts, const int32_t[::1] sources, const double[::1] values,
                  const int32_t[::1] order, double[::1] b, const double[::1] d, const int32_t[::1] support,
                  double[::1] curve):
    """Like `walk`; ``curve`` [T + 1] receives d^T b before the first step and after each.

    The sum is carried along by differences and taken anew every ``len(support)`` steps, so that what the differences
    lose stays small beside a sum that shrinks."""
    cdef int64_t t, e, since = 0
    cdef int32_t i
    cdef double total, now
    with nogil:
        now = weighted(support, d, b)
        curve[0] = now
        for t in range(order.shape[0]):
            i = order[t]
            total = 0.0
            for e in range(starts[i], starts[i + 1]):
                total += values[e] * b[sources[e]]
            total = min(total, LARGEST)
            now += d[i] * (total - b[i])
            b[i] = total
            since += 1
            if since >= support.shape[0]:
                now = weighted(support, d, b)
                since = 0
            curve[t + 1] = now


def walk_random(const int64_t[::1] starts, const int32_t[::1] sources, const double[::1] values,
                const double[:, :] q, double[:, ::1] rows):
    """rows[t + 1] = B(q[t]) rows[t] = rows[t] - diag(q[t]) (I - C) rows[t]; ``rows`` [T + 1, V]."""
    cdef int64_t t, i, e
    cdef double total
    with nogil:
        for t in range(rows.shape[0] - 1):
            for i in range(rows.shape[1]):
                total = 0.0
                if q[t, i]:
                    for e in range(starts[i], starts[i + 1]):
                        total += values[e] * rows[t, sources[e]]
                    total = q[t, i] * (total - rows[t, i])
                rows[t + 1, i] = min(rows[t, i] + total, LARGEST)


def choose_dense(const int64_t[::1] starts, const int32_t[::1] sources, const double[::1] values,
                 const double[:, :] q, const double[:, ::1] rows, double[::1] d, double goal, int32_t[::1] order,
                 double[::1] w):
    """Algorithm 2's backward pass over T steps of a random scan ``q`` [T, V] whose b before each are ``rows`` [T, V].

    ``order`` [T] and ``d`` [V] are overwritten from the last step on, until d^T b is at most ``goal``; returns how many
    steps were left as they are. Time O(V + nnz) for each step. ``w`` [V] is room to work in."""
    cdef int64_t t, i, e, best, left = rows.shape[0]
    cdef double total, bound, mean, moved
    with nogil:
        for t in range(rows.shape[0] - 1, -1, -1):
            bound, mean, best = 0.0, 0.0, 0
            for i in range(rows.shape[1]):
                total = 0.0
                if d[i]:
                    for e in range(starts[i], starts[i + 1]):
                        total += values[e] * rows[t, sources[e]]
                    bound += d[i] * rows[t, i]
                    total = d[i] * (total - rows[t, i])
                w[i] = total
                mean += q[t, i] * total
                if total < w[best]:
                    best = i
            if bound + mean <= goal:
                break
            order[t] = <int32_t> best
            left = t
            moved = d[best]
            d[best] = 0.0
            for e in range(starts[best], starts[best + 1]):
                d[sources[e]] = min(d[sources[e]] + moved * values[e], LARGEST)
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

    cdef const int64_t[::1] starts
    cdef const int32_t[::1] sources
    cdef const double[::1] values
    cdef double[::1] b, d, w, pulls
    cdef uint8_t[::1] seen, ready, weighed
    cdef int32_t[::1] winners
    cdef int32_t[::1] visited, support
    cdef int64_t n, n_visited, n_support
    cdef int64_t levels[17]
    cdef int height

    def __init__(self, const int64_t[::1] starts, const int32_t[::1] sources, const double[::1] values):
        self.starts, self.sources, self.values = starts, sources, values
        self.n = starts.shape[0] - 1
        self.height = 0
        size = 0
        while self.n > 1 and (self.n - 1) >> (BITS * self.height):
            self.height += 1
            self.levels[self.height] = size
            size += ((self.n - 1) >> (BITS * self.height)) + 1
        self.b, self.d, self.w, self.pulls = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n), np.empty(self.n)
        self.seen, self.ready = np.zeros(self.n, np.uint8), np.zeros(self.n, np.uint8)
        self.weighed = np.zeros(self.n, np.uint8)
        self.winners = np.zeros(size, np.int32)
        self.visited, self.support = np.empty(self.n, np.int32), np.empty(self.n, np.int32)
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
        cdef double total = 0.0
        if not self.ready[i]:
            self.ready[i] = 1
            self.see(i)
            for e in range(self.starts[i], self.starts[i + 1]):
                self.see(self.sources[e])
        for e in range(self.starts[i], self.starts[i + 1]):
            total += self.values[e] * self.b[self.sources[e]]
        return min(total, LARGEST)

    cdef inline void weigh(self, int64_t i, double value) noexcept nogil:
        self.d[i] = min(value, LARGEST)
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
        cdef int64_t last = ((self.n - 1) >> (BITS * (height - 1))) + 1
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
                for e in range(self.starts[i], self.starts[i + 1]):
                    self.refresh_pull(self.sources[e])
                best = self.winner(0, self.height)
                now += self.w[best] - self.w[i]
                order[t] = <int32_t> best
                left = t
                moved = self.d[best]
                if moved:
                    self.d[best] = 0.0
                    self.refresh(best)
                    for e in range(self.starts[best], self.starts[best + 1]):
                        k = self.sources[e]
                        self.weigh(k, self.d[k] + moved * self.values[e])
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
                    for e in range(self.starts[order[t]], self.starts[order[t] + 1]):
                        k = self.sources[e]
                        self.weigh(k, self.d[k] + moved * self.values[e])

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
