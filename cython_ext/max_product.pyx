# cython: language_level=3
"""Loopy max-product in the log domain, over factors of any number of variables.

Position a of factor f is slot ``factor_at[f] + a``; the slot stores the message from f to its variable there. A
variable sends to a factor its belief minus the factor's own message. An entry of -inf in a message means that no
allowed joint state has the variable in this state. Such entries never become finite again, so a belief of -inf is sent
as it is.

Called by ``herdner.inference.backends.max_product``, which lays out the graph.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport qsort

cimport cython

from herdner._ext.memory cimport own, require, require_offsets
from rows cimport BUDGET, MOST_VARIABLES
from sums cimport CompensatedSum, add


cdef class MaxProductLoop:
    """Messages and beliefs of a graph, in the layout of herdner.inference.backends.max_product.

    ``sizes`` [V]; ``unary`` [V, K] log-potentials; ``scope`` [S], the variable of each slot; ``factor_at`` [F + 1];
    ``table_at`` [S], the start of the factor's table in ``tables``, row-major over its positions (for factors of two
    variables this slot's position is last); ``scale`` [F]. Derived: ``factor_of`` [S]; ``message_at`` [S + 1];
    ``starts`` [V + 1] and ``slots`` [S], the slots of each variable; ``order`` [V].
    """
    cdef const int32_t[::1] sizes, scope
    cdef const int64_t[::1] factor_at, table_at
    cdef const double[::1] tables, scale
    cdef const double[:, ::1] unary
    cdef int32_t[::1] factor_of, slots, order
    cdef int64_t[::1] message_at, starts
    cdef double damping
    cdef double[::1] messages, new
    cdef double[:, ::1] beliefs, incoming
    cdef uint8_t[::1] decided
    cdef int32_t[::1] x            # the best state of each belief (ties: the smallest), or the decoded state
    # The largest change of a message in this sweep, up to a constant, at states that are not yet ruled out.
    cdef readonly double change
    cdef readonly int64_t fault    # a variable whose states are all impossible, or -1

    def __cinit__(self, slots, unary, double damping):
        self.sizes, self.unary = own(slots.sizes, np.int32, 1, "sizes"), own(unary, np.float64, 2, "unary")
        self.scope, self.scale = own(slots.scope, np.int32, 1, "scope"), own(slots.scale, np.float64, 1, "scale")
        self.factor_at = own(slots.factor_at, np.int64, 1, "factor_at")
        self.table_at = own(slots.table_at, np.int64, 1, "table_at")
        self.tables = own(slots.tables, np.float64, 1, "tables")
        self.lay_out()
        self.traverse()
        self.damping = damping
        self.messages = np.zeros(self.message_at[self.scope.shape[0]])
        self.beliefs = np.array(self.unary)
        self.new = np.empty(self.unary.shape[1])
        self.incoming = np.empty((max(2, np.max(np.diff(self.factor_at), initial=0)), self.unary.shape[1]))
        self.decided = np.zeros(self.unary.shape[0], np.uint8)
        self.x = np.zeros(self.unary.shape[0], np.int32)
        self.fault = -1

    @cython.boundscheck(True)
    cdef int lay_out(self) except -1:
        """Check all positions, and derive those of messages and of the slots of variables."""
        cdef int64_t n = self.sizes.shape[0], n_slots = self.scope.shape[0], n_factors = self.scale.shape[0], i, f, s
        cdef int64_t cells
        require(self.unary.shape[0] == n, "unary must have a row for each variable")
        require(self.table_at.shape[0] == n_slots < <int64_t> 1 << 31, "table_at must have an entry for each slot")
        require(self.factor_at.shape[0] == n_factors + 1, "factor_at must have an entry for each factor")
        require_offsets(self.factor_at, n_slots, "factor_at")
        self.factor_of, self.message_at = np.empty(n_slots, np.int32), np.zeros(n_slots + 1, np.int64)
        for i in range(n):
            require(0 < self.sizes[i] <= self.unary.shape[1], "unary must have a column for each state")
        for f in range(n_factors):
            require(2 <= self.factor_at[f + 1] - self.factor_at[f] <= MOST_VARIABLES, "factors have 2 to 64 variables")
            cells = 1
            for s in range(self.factor_at[f], self.factor_at[f + 1]):
                require(0 <= self.scope[s] < n, "scope must consist of variables")
                self.factor_of[s] = <int32_t> f
                self.message_at[s + 1] = self.message_at[s] + self.sizes[self.scope[s]]
                cells *= self.sizes[self.scope[s]]
                require(cells <= self.tables.shape[0], "tables must have a cell for each joint state of a factor")
            for s in range(self.factor_at[f], self.factor_at[f + 1]):
                require(0 <= self.table_at[s] <= self.tables.shape[0] - cells, "tables must be inside their array")
        counts = np.bincount(np.asarray(self.scope), minlength=n)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.slots = np.argsort(self.scope, kind="stable").astype(np.int32)
        return 0

    cdef int traverse(self) except -1:
        """Order all variables, with one component after the other.

        Trees are visited breadth first from their largest variable. Other components are visited in descending order,
        which uses the cache better.
        """
        cdef int64_t n = self.sizes.shape[0], root, begin, done = 0, n_seen = 0, j, f, s, links
        cdef uint8_t[::1] seen = np.zeros(n, np.uint8), used = np.zeros(self.scale.shape[0], np.uint8)
        self.order = np.zeros(n, np.int32)
        with nogil:
            for root in range(n - 1, -1, -1):
                if seen[root]:
                    continue
                seen[root] = 1
                begin, links = n_seen, 0
                self.order[n_seen] = <int32_t> root
                n_seen += 1
                while done < n_seen:
                    for j in range(self.starts[self.order[done]], self.starts[self.order[done] + 1]):
                        f = self.factor_of[self.slots[j]]
                        if used[f]:
                            continue
                        used[f] = 1
                        links += self.factor_at[f + 1] - self.factor_at[f] - 1
                        for s in range(self.factor_at[f], self.factor_at[f + 1]):
                            if not seen[self.scope[s]]:
                                seen[self.scope[s]] = 1
                                self.order[n_seen] = self.scope[s]
                                n_seen += 1
                    done += 1
                if links > n_seen - begin - 1:
                    qsort(&self.order[begin], n_seen - begin, sizeof(int32_t), descending)
        return 0

    @property
    def state(self):
        """The best state of each belief, or the decoded state: int32[V]."""
        return np.array(self.x)

    def sweep(self, int64_t at, bint backward):
        """Update the messages to one variable after the other, along ``order`` or ``backward``.

        Starts at position ``at`` and runs for a fraction of a second. Returns the next position, V at the end.
        """
        cdef int64_t spent = 0, n = self.order.shape[0], i
        require(at >= 0, "positions count from 0")
        if at == 0:
            self.change = 0.0
        with nogil:
            while at < n and spent < BUDGET and self.fault < 0:
                i = self.order[n - 1 - at if backward else at]
                spent += self.receive(i)
                self.x[i] = best_state(&self.beliefs[i, 0], self.sizes[i])
                if self.beliefs[i, self.x[i]] == -INFINITY:
                    self.fault = i
                at += 1
        return at

    def decode(self, int64_t at):
        """Choose the states of one variable after the other along ``order``, given the states chosen before.

        A variable without an allowed state takes the best state of its belief. ``at`` and result: as in `sweep`.
        """
        cdef int64_t spent = 0, n = self.order.shape[0], i, j, k
        cdef double[:, ::1] sums = np.empty((1, self.unary.shape[1]))
        require(at >= 0, "positions count from 0")
        with nogil:
            while at < n and spent < BUDGET:
                i = self.order[at]
                for k in range(self.sizes[i]):
                    sums[0, k] = self.unary[i, k]
                for j in range(self.starts[i], self.starts[i + 1]):
                    spent += self.send(self.slots[j])
                    for k in range(self.sizes[i]):
                        sums[0, k] += self.new[k]
                self.x[i] = best_state(&sums[0, 0], self.sizes[i])
                if sums[0, self.x[i]] == -INFINITY:
                    self.x[i] = best_state(&self.beliefs[i, 0], self.sizes[i])
                self.decided[i] = 1
                at += 1
        return at

    def log_potential(self):
        """Return the log-potential of the state, without factors of no variables."""
        cdef CompensatedSum total = CompensatedSum(0.0, 0.0)
        cdef double term
        cdef int64_t i, f, s, at
        with nogil:
            for i in range(self.unary.shape[0] + self.scale.shape[0]):
                if i < self.unary.shape[0]:
                    term = self.unary[i, self.x[i]]
                else:
                    f = i - self.unary.shape[0]
                    s, at = self.factor_at[f], 0
                    if self.factor_at[f + 1] - s == 2:  # the table of the second slot is in the order of both slots
                        at = <int64_t> self.x[self.scope[s]] * self.sizes[self.scope[s + 1]]
                        at += self.table_at[s + 1] + self.x[self.scope[s + 1]]
                    else:
                        for s in range(s, self.factor_at[f + 1]):
                            at = at * self.sizes[self.scope[s]] + self.x[self.scope[s]]
                        at += self.table_at[self.factor_at[f]]
                    term = self.scale[f] * self.tables[at]
                if term == -INFINITY:
                    total.value = term
                    break
                add(&total, term)
        return total.value

    cdef int64_t receive(self, int64_t i) noexcept nogil:
        """Update the messages from all factors of variable i, and its belief. Return the number of cells visited."""
        cdef int64_t spent = 1, j, s
        cdef int k, n_states = self.sizes[i]
        cdef double *message
        cdef double *belief = &self.beliefs[i, 0]
        cdef double top, low, high
        for j in range(self.starts[i], self.starts[i + 1]):
            s = self.slots[j]
            spent += self.send(s)
            message = &self.messages[self.message_at[s]]
            top = self.new[best_state(&self.new[0], n_states)]
            if top == -INFINITY:
                self.fault = i
                return spent
            low, high = INFINITY, -INFINITY
            for k in range(n_states):
                if belief[k] > -INFINITY:
                    if self.new[k] == -INFINITY and message[k] > -INFINITY:
                        high = INFINITY
                    else:
                        low = min(low, self.new[k] - message[k])
                        high = max(high, self.new[k] - message[k])
                if self.new[k] == -INFINITY:
                    message[k] = -INFINITY
                else:
                    message[k] += self.damping * (self.new[k] - top - message[k])
            if high - low > self.change:
                self.change = high - low
        for k in range(n_states):
            belief[k] = self.unary[i, k]
        for j in range(self.starts[i], self.starts[i + 1]):
            message = &self.messages[self.message_at[self.slots[j]]]
            for k in range(n_states):
                belief[k] += message[k]
        return spent

    cdef void variable_message(self, int64_t s, double *out) noexcept nogil:
        """Compute the message from the variable of slot s to its factor."""
        cdef int64_t j = self.scope[s]
        cdef int k
        cdef const double *message = &self.messages[self.message_at[s]]
        cdef const double *belief = &self.beliefs[j, 0]
        if self.decided[j]:
            for k in range(self.sizes[j]):
                out[k] = -INFINITY
            out[self.x[j]] = 0.0
            return
        for k in range(self.sizes[j]):
            out[k] = belief[k] - message[k] if belief[k] > -INFINITY else -INFINITY

    cdef int64_t send(self, int64_t s) noexcept nogil:
        """Compute the message to slot s in ``new``. Return the number of cells visited.

        For each state it is the largest sum of the factor and the messages from its other variables.
        """
        cdef int64_t f = self.factor_of[s], first = self.factor_at[f], other
        cdef int n_states = self.sizes[self.scope[s]], n_others, j, k
        cdef double *new = &self.new[0]
        cdef const double *incoming = &self.incoming[0, 0]
        cdef const double *row = &self.tables[self.table_at[s]]
        cdef double scale = self.scale[f]
        if self.factor_at[f + 1] - first > 2:
            return self.send_of_many(s, f)
        other = 2 * first + 1 - s
        n_others = self.sizes[self.scope[other]]
        self.variable_message(other, &self.incoming[0, 0])
        if n_states == 2 and n_others == 2:
            new[0] = larger(scale * row[0] + incoming[0], scale * row[2] + incoming[1])
            new[1] = larger(scale * row[1] + incoming[0], scale * row[3] + incoming[1])
            return 4
        for k in range(n_states):
            new[k] = -INFINITY
        for j in range(n_others):
            if incoming[j] > -INFINITY:
                for k in range(n_states):
                    new[k] = larger(scale * row[k] + incoming[j], new[k])
            row += n_states
        return n_states * n_others

    cdef int64_t send_of_many(self, int64_t s, int64_t f) noexcept nogil:
        """Compute `send` for a factor of three or more variables, in one pass over its table."""
        cdef int64_t first = self.factor_at[f], spent = 0
        cdef int arity = <int> (self.factor_at[f + 1] - first), axis = <int> (s - first), last = arity - 1, d, k
        cdef const double *row = &self.tables[self.table_at[s]]
        cdef double scale = self.scale[f], value
        cdef int32_t state
        cdef int32_t x[MOST_VARIABLES]
        cdef double sums[MOST_VARIABLES]  # of the messages from all variables before
        for d in range(arity):
            x[d] = 0
            if d != axis:
                self.variable_message(first + d, &self.incoming[d, 0])
            else:
                for k in range(self.sizes[self.scope[s]]):
                    self.incoming[d, k] = 0.0
        for k in range(self.sizes[self.scope[s]]):
            self.new[k] = -INFINITY
        sums[0] = 0.0
        d = 0
        while d >= 0:
            for d in range(d, last):
                sums[d + 1] = sums[d] + self.incoming[d, x[d]]
            for k in range(self.sizes[self.scope[first + last]]):
                value = scale * row[k] + sums[last] + self.incoming[last, k]
                state = k if axis == last else x[axis]
                self.new[state] = larger(value, self.new[state])
            row += self.sizes[self.scope[first + last]]
            spent += self.sizes[self.scope[first + last]]
            d = last - 1
            while d >= 0:
                x[d] += 1
                if x[d] < self.sizes[self.scope[first + d]]:
                    break
                x[d] = 0
                d -= 1
        return spent


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline int32_t best_state(const double *values, int n) noexcept nogil:
    cdef int32_t best = 0, k
    for k in range(1, n):
        if values[k] > values[best]:
            best = k
    return best


cdef int descending(const void *a, const void *b) noexcept nogil:
    cdef int32_t left = (<const int32_t *> a)[0], right = (<const int32_t *> b)[0]
    return (left < right) - (left > right)
