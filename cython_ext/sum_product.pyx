# cython: language_level=3
"""Sum-product over chains joined by links: each chain by forward-backward, messages along the links.

``herdner.inference.backends.sum_product`` lays out the graph and calls it.

Link e has two slots, one at each end; a slot holds the message that its variable receives from the other end, as
numbers (the largest is 1) and as their logarithms, both at labels of the receiver. -inf says that no state with
this label is allowed; that is never taken back. What a variable tells the other end is its belief without what it heard
from there, the cavity belief. Numbers are multiplied where nothing can underflow, as in chain.h; everything
else is done in logarithms.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, log
from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.smoothing cimport (
    CHAIN_EXTREME, CHAIN_OK, ScaledTables, Smoothed, Workspace, chain_exponentials, chain_product, chain_tables,
    edges_from, joined, log_sum_exp, node_marginals, scaled_passes, smooth, soft_max, total_log,
)
from rows cimport BUDGET


cdef enum:
    LOG_CELLS = 24  # what the logarithms and exponentials of a label cost, in products


cdef double FAINT = 1e-100  # a message whose numbers are 0 or at least this is told by them, without logarithms
cdef double MOST_PENDING = 1.0


cdef class SumProduct:
    """Messages and beliefs of a graph, laid out as `herdner.graph.linked_chains.LinkedChains`."""
    cdef Workspace space            # of all chains, so that they are only smoothed anew where they change
    cdef ScaledTables scaled        # exp(table - shift) of the links
    cdef chain_tables links         # the same, for the loops
    cdef const double[:, ::1] unary
    cdef const int64_t[::1] offsets
    cdef const int32_t[::1] edge_table
    cdef const double[:, :, ::1] link_tables
    cdef double damping, tolerance
    # Slots, in the order of their variables: the slots of chain s are slot_starts[s] .. slot_starts[s + 1] - 1.
    cdef int64_t[::1] slot_starts
    cdef int32_t[::1] variable, partner, link, table, chain_of
    cdef uint8_t[::1] second        # this is the slot of the second variable of its link's scope
    cdef double[:, ::1] told        # [slots, stride]: the messages
    cdef double[:, ::1] log_told    # [slots, K]: where the numbers are not enough
    cdef uint8_t[::1] plain         # [slots]: the numbers are enough
    cdef uint8_t[::1] news          # [slots]: the message is newer than the chain's beliefs
    cdef double[:, ::1] log_heard   # [slots, K]: the messages that the chain's beliefs are by
    cdef double[:, ::1] cavity      # [slots, stride]
    cdef uint8_t[::1] in_logs       # [slots]: the cavity belief is one of logarithms
    cdef uint8_t[::1] seen          # [chains]: has beliefs
    cdef uint8_t[::1] log_domain    # [chains]: these are logarithms
    cdef uint8_t[::1] stale         # [chains]: was sent messages that make a difference
    cdef double[::1] pending        # [chains]: by how many nats all messages since may have changed its odds
    cdef double[:, ::1] work, scratch
    cdef readonly object unaries    # float64[V, K]: the unary log-potentials with the messages heard
    cdef readonly object log_zs     # float64[S]: log Z of each chain, with these unaries
    cdef readonly object marginals  # float64[V, K]: the beliefs, once `settle` was called
    cdef double[:, ::1] heard, nodes
    cdef double[::1] log_z
    cdef readonly int64_t n_stale
    cdef readonly int64_t n_updates  # variables whose chain was smoothed
    cdef readonly int64_t fault      # a variable in a chain that -inf entries leave no labelling, or -1

    def __cinit__(self, chains, double damping, double tolerance):
        form = chains.form
        self.unary, self.offsets, self.edge_table = form.unary, form.offsets, form.edge_table
        self.link_tables = chains.tables
        self.space = Workspace(form.tables, self.unary.shape[0])
        self.damping, self.tolerance, self.fault = damping, tolerance, -1
        self.scaled = ScaledTables(self.link_tables)
        self.links = self.scaled.c
        self.set_slots(chains.scopes, chains.table_of_edge)
        n_slots, n_labels, n_chains = self.variable.shape[0], self.unary.shape[1], self.offsets.shape[0] - 1
        self.told, self.cavity = np.ones((2, n_slots, self.links.stride))
        self.log_told, self.log_heard = np.zeros((2, n_slots, n_labels))
        self.in_logs, self.news = np.zeros((2, n_slots), np.uint8)
        self.plain, self.stale = np.ones(n_slots, np.uint8), np.ones(n_chains, np.uint8)
        self.seen, self.log_domain = np.zeros((2, n_chains), np.uint8)
        self.n_stale, self.n_updates = n_chains, 0
        self.work, self.scratch = np.empty((n_labels, n_labels)), np.empty((4, self.links.stride))
        self.unaries, self.marginals = np.array(form.unary), np.empty(form.unary.shape)
        self.pending, self.log_zs = np.zeros(n_chains), np.empty(n_chains)
        self.heard, self.nodes, self.log_z = self.unaries, self.marginals, self.log_zs

    cdef void set_slots(self, const int32_t[:, ::1] scopes, const int32_t[:] table_of_edge):
        cdef int64_t n_links = scopes.shape[0], e, v, s, a
        cdef int side
        cdef int32_t[:, ::1] slot_of = np.empty((n_links, 2), np.int32)
        cdef int64_t[::1] ends = np.zeros(self.unary.shape[0] + 1, np.int64)  # of each variable's slots
        self.variable, self.partner, self.link, self.table, self.chain_of = np.empty((5, 2 * n_links), np.int32)
        self.second = np.empty(2 * n_links, np.uint8)
        self.slot_starts = np.zeros(self.offsets.shape[0], np.int64)
        for e in range(n_links):
            for side in range(2):
                ends[scopes[e, side] + 1] += 1
        for v in range(self.unary.shape[0]):
            ends[v + 1] += ends[v]
        for e in range(n_links):
            for side in range(2):
                v = scopes[e, side]
                a = ends[v]
                ends[v] += 1
                self.variable[a], self.link[a], self.table[a] = <int32_t> v, <int32_t> e, table_of_edge[e]
                self.second[a], slot_of[e, side] = <uint8_t> side, <int32_t> a
            for side in range(2):
                self.partner[slot_of[e, side]] = slot_of[e, 1 - side]
        for s in range(self.offsets.shape[0] - 1):
            self.slot_starts[s + 1] = ends[self.offsets[s + 1] - 1]
            for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
                self.chain_of[a] = <int32_t> s

    def advance(self, int64_t at, int64_t n_sweeps, bint send):
        """Forward-backward in one stale chain after the other, for a fraction of a second; with ``send`` each then
        sends its messages to the others.

        ``at`` counts the places of all sweeps, S of each: every second sweep goes from the last chain to the first.
        Returns the place to go on from, and ``n_sweeps`` * S at the end, which comes early where no chain is stale.
        """
        cdef int64_t spent = 0, n_chains = self.offsets.shape[0] - 1, end = n_sweeps * n_chains, s, a, n, n_slots, size
        cdef int n_labels = self.links.n_labels
        with nogil:
            while at < end and self.n_stale and spent < BUDGET and self.fault < 0:
                s = n_chains - 1 - at % n_chains if at // n_chains % 2 else at % n_chains
                at += 1
                if not self.stale[s]:
                    continue
                n = self.offsets[s + 1] - self.offsets[s]
                n_slots = self.slot_starts[s + 1] - self.slot_starts[s]
                size = n_labels * (<int64_t> n_labels + LOG_CELLS)
                spent += (2 * n + n_slots) * size
                if not self.smooth_chain(s):
                    break
                for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
                    if not send or not self.send(a):
                        break
        return at if self.n_stale else end

    def settle(self):
        """The beliefs of all variables by the last forward-backward of their chains."""
        cdef Smoothed c
        cdef int64_t s
        with nogil:
            for s in range(self.offsets.shape[0] - 1):
                c = self.space.part(self.offsets[s])
                c.log_domain = self.log_domain[s]
                node_marginals(&c, self.offsets[s + 1] - self.offsets[s], &self.nodes[self.offsets[s], 0])

    cdef bint smooth_chain(self, int64_t s) noexcept nogil:
        """Forward-backward of a chain given the messages; false where there is no labelling."""
        cdef int64_t start = self.offsets[s], n = self.offsets[s + 1] - start, first = n, last = -1, a, t
        cdef Smoothed c = self.space.part(start)
        cdef const int32_t *edges = edges_from(self.edge_table, start)
        cdef bint known = self.seen[s] and not self.log_domain[s]
        cdef int status = CHAIN_OK if known else CHAIN_EXTREME
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            t = self.variable[a] - start
            if not self.news[a] or t == last:
                continue
            self.hear(a)
            first, last = min(first, t), t
            if status == CHAIN_OK:
                status = chain_exponentials(&c.scaled, &self.heard[start + t, 0], 1, c.x + t * c.scaled.stride,
                                            c.tops + t)
        if status == CHAIN_OK:
            c.log_domain = False
            status = scaled_passes(&c, n, edges, first, last, True)
        if status == CHAIN_EXTREME:
            status = smooth(&c, &self.heard[start, 0], n, edges, True)
        if status != CHAIN_OK:
            self.fault = start
            return False
        self.log_z[s] = total_log(&c, n)
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            self.leave_out(&c, a, self.variable[a] - start)
        self.n_updates += n
        self.n_stale -= 1
        self.seen[s], self.log_domain[s], self.stale[s], self.pending[s] = 1, c.log_domain, 0, 0.0
        return True

    cdef void hear(self, int64_t a) noexcept nogil:
        """Adds up what the variable of slot ``a`` is told."""
        cdef int64_t v = self.variable[a]
        cdef int k
        while a > 0 and self.variable[a - 1] == v:
            a -= 1
        for k in range(self.links.n_labels):
            self.heard[v, k] = self.unary[v, k]
        while a < self.variable.shape[0] and self.variable[a] == v:
            for k in range(self.links.n_labels):
                if self.news[a]:
                    self.log_heard[a, k] = log(self.told[a, k]) if self.plain[a] else self.log_told[a, k]
                self.heard[v, k] += self.log_heard[a, k]
            self.news[a] = 0
            a += 1

    cdef void leave_out(self, const Smoothed *c, int64_t a, int64_t t) noexcept nogil:
        """The belief of a slot's variable, token t of the chain that was just smoothed, and the cavity belief."""
        cdef double *cavity = &self.cavity[a, 0]
        cdef double *belief = &self.nodes[self.variable[a], 0]
        cdef double total = joined(c, t, cavity), share = 1.0 / total
        cdef int k
        self.in_logs[a] = c.log_domain or not self.plain[a]
        for k in range(self.links.n_labels):
            belief[k] = cavity[k] * share
            if self.log_heard[a, k] == -INFINITY:  # no state has this label: what it would tell makes no difference
                cavity[k] = -INFINITY if self.in_logs[a] else 0.0
            elif c.log_domain:
                cavity[k] -= total + self.log_heard[a, k]
            elif self.in_logs[a]:
                cavity[k] = log(belief[k]) - self.log_heard[a, k]
            else:
                cavity[k] = belief[k] / self.told[a, k]

    cdef bint send(self, int64_t a) noexcept nogil:
        """Sends the other end of a slot's link its message, false where that leaves no label. The chain there becomes
        stale if the message makes a difference."""
        cdef int64_t to = self.partner[a]
        cdef double *new = &self.scratch[0, 0]
        cdef double *log_new = &self.scratch[1, 0]
        cdef int k
        cdef bint logs = self.in_logs[a] or not self.scaled.scalable, plain, moves
        if not (self.message_in_logs(a, to, log_new) if logs else self.message(a, to, new)):
            self.fault = self.variable[to]
            return False
        plain = numbers(new, log_new, self.links.n_labels, logs)
        moves = self.moves(to, new, log_new, plain)
        if moves:
            self.make_stale(self.chain_of[to])
        if self.damping < 1.0:
            plain = self.damp(to, new, log_new, plain)
            if moves:  # only a part of it is sent, so more is to come
                self.make_stale(self.chain_of[a])
        for k in range(self.links.n_labels):
            self.told[to, k], self.log_told[to, k] = new[k], log_new[k]
        self.plain[to], self.news[to] = plain, 1
        return True

    cdef void make_stale(self, int64_t s) noexcept nogil:
        self.n_stale += 1 - self.stale[s]
        self.stale[s] = 1

    cdef bint message(self, int64_t a, int64_t to, double *new) noexcept nogil:
        """``new`` = what slot a tells slot ``to``, its largest number 1; false where all are 0."""
        cdef const double *tables = self.links.transposed if self.second[a] else self.links.tables
        cdef int n_labels = self.links.n_labels, stride = self.links.stride, k
        cdef double top = 0.0
        chain_product(new, &self.cavity[a, 0], tables + <int64_t> self.table[a] * n_labels * stride, n_labels, stride)
        for k in range(n_labels):
            if self.ruled_out(to, k):
                new[k] = 0.0
            top = fmax(top, new[k])
        if top == 0.0:
            return False
        for k in range(n_labels):
            new[k] /= top
        return True

    cdef bint message_in_logs(self, int64_t a, int64_t to, double *log_new) noexcept nogil:
        """The same in logarithms."""
        cdef int n_labels = self.links.n_labels, k
        cdef double top = -INFINITY
        cdef double *mine = &self.scratch[2, 0]
        cdef double *terms = &self.scratch[3, 0]
        cdef int i
        self.log_cavity(a, mine)
        for k in range(n_labels):
            for i in range(n_labels):
                terms[i] = mine[i] + self.potential(a, i, k)
            log_new[k] = -INFINITY if self.ruled_out(to, k) else log_sum_exp(terms, n_labels)
            top = fmax(top, log_new[k])
        if top == -INFINITY:
            return False
        for k in range(n_labels):
            log_new[k] -= top
        return True

    cdef bint ruled_out(self, int64_t to, int k) noexcept nogil:
        return self.told[to, k] == 0.0 if self.plain[to] else self.log_told[to, k] == -INFINITY

    cdef double potential(self, int64_t a, int mine, int theirs) noexcept nogil:
        """The log-potential of a slot's link for labels at its own and at the other end."""
        if self.second[a]:
            return self.link_tables[self.table[a], theirs, mine]
        return self.link_tables[self.table[a], mine, theirs]

    cdef void log_cavity(self, int64_t a, double *out) noexcept nogil:
        cdef int k
        for k in range(self.links.n_labels):
            out[k] = self.cavity[a, k] if self.in_logs[a] else log(self.cavity[a, k])

    cdef bint moves(self, int64_t to, const double *new, const double *log_new, bint plain) noexcept nogil:
        """Whether a message rules a label out, changes the receiver's belief by more than the tolerance or, with
        others since the last beliefs, the odds of any two labellings of its chain by more than MOST_PENDING: what
        makes no difference alone could do so together with them."""
        cdef double *before = &self.scratch[2, 0]
        cdef double *after = &self.scratch[3, 0]
        cdef double total = 0.0
        cdef int64_t s = self.chain_of[to]
        cdef int k
        if not self.seen[s]:
            return True
        self.pending[s] += self.log_range(to, new, log_new, plain)
        if not self.pending[s] <= MOST_PENDING:
            return True
        if plain and not self.in_logs[to]:
            for k in range(self.links.n_labels):
                before[k] = self.nodes[self.variable[to], k]
                after[k] = self.cavity[to, k] * new[k]
                total += after[k]
        else:
            self.log_cavity(to, before)
            for k in range(self.links.n_labels):
                after[k] = before[k] + (log(new[k]) if plain else log_new[k])
                before[k] += self.log_heard[to, k]
            soft_max(before, self.links.n_labels)
            soft_max(after, self.links.n_labels)
            total = 1.0
        for k in range(self.links.n_labels):
            if not fabs(after[k] / total - before[k]) <= self.tolerance:
                return True
        return False

    cdef double log_range(self, int64_t to, const double *new, const double *log_new, bint plain) noexcept nogil:
        """By how much more a message raises one label than another, in nats; inf where it rules one out."""
        cdef bint numbers_do = plain and self.plain[to]
        cdef double least = INFINITY, most = 0.0 if numbers_do else -INFINITY, change
        cdef int k
        for k in range(self.links.n_labels):
            if self.ruled_out(to, k):
                continue
            if numbers_do:
                change = new[k] / self.told[to, k]
            else:
                change = log(new[k]) if plain else log_new[k]
                change -= log(self.told[to, k]) if self.plain[to] else self.log_told[to, k]
            least, most = fmin(least, change), fmax(most, change)
        return log(most / least) if numbers_do else most - least

    cdef bint damp(self, int64_t to, double *new, double *log_new, bint plain) noexcept nogil:
        """Moves the message back towards the one it replaces."""
        cdef int k
        cdef double top = -INFINITY, old
        for k in range(self.links.n_labels):
            if plain:
                log_new[k] = log(new[k])
            if log_new[k] > -INFINITY:
                old = log(self.told[to, k]) if self.plain[to] else self.log_told[to, k]
                log_new[k] = (1.0 - self.damping) * old + self.damping * log_new[k]
            top = fmax(top, log_new[k])
        for k in range(self.links.n_labels):
            log_new[k] -= top
        return numbers(new, log_new, self.links.n_labels, True)

    def log_potential(self, const int32_t[::1] state):
        """The log-potential of a state [V], constants left out."""
        cdef const double *tables = self.space.c.tables
        cdef int64_t n_labels = self.links.n_labels, s, t, table, a
        cdef double total = 0.0
        with nogil:
            for s in range(self.offsets.shape[0] - 1):
                for t in range(self.offsets[s], self.offsets[s + 1]):
                    total += self.unary[t, state[t]]
                    if t > self.offsets[s]:
                        table = 0 if self.edge_table is None else self.edge_table[t]
                        total += tables[(table * n_labels + state[t - 1]) * n_labels + state[t]]
            for a in range(self.variable.shape[0]):
                if not self.second[a]:
                    total += self.potential(a, state[self.variable[a]], state[self.variable[self.partner[a]]])
        return total

    def log_corrections(self):
        """The sum of log sum_ij cavity[i] exp(table[i, j]) cavity[j] over the links: -inf where one allows no
        pair of labels."""
        cdef int64_t a, table
        cdef double total = 0.0, value
        cdef int k
        with nogil:
            for a in range(self.variable.shape[0]):
                if self.second[a]:
                    continue
                value = 0.0
                if self.scaled.scalable and not (self.in_logs[a] or self.in_logs[self.partner[a]]):
                    table = self.table[a]
                    chain_product(&self.scratch[0, 0], &self.cavity[a, 0],
                                  self.links.tables + table * self.links.n_labels * self.links.stride,
                                  self.links.n_labels, self.links.stride)
                    for k in range(self.links.n_labels):
                        value += self.scratch[0, k] * self.cavity[self.partner[a], k]
                    if 1e-200 < value < INFINITY:
                        total += log(value) + self.links.shifts[table]
                        continue
                self.log_pairs(a, &self.work[0, 0])
                total += log_sum_exp(&self.work[0, 0], self.links.n_labels * self.links.n_labels)
        return total

    cdef void log_pairs(self, int64_t a, double *out) noexcept nogil:
        """``out`` [K, K]: the logarithms of the belief of a slot's link, not normalised, its own label first."""
        cdef double *mine = &self.scratch[2, 0]
        cdef double *theirs = &self.scratch[3, 0]
        cdef int n_labels = self.links.n_labels, i, j
        self.log_cavity(a, mine)
        self.log_cavity(self.partner[a], theirs)
        for i in range(n_labels):
            for j in range(n_labels):
                out[i * n_labels + j] = mine[i] + self.potential(a, i, j) + theirs[j]

    def pairs(self, double[:, :, ::1] out):
        """Fills ``out`` [E, K, K] with the beliefs of the links."""
        cdef int n_labels = self.links.n_labels
        cdef int64_t a
        with nogil:
            for a in range(self.variable.shape[0]):
                if not self.second[a]:
                    self.log_pairs(a, &out[self.link[a], 0, 0])
                    soft_max(&out[self.link[a], 0, 0], n_labels * n_labels)


cdef bint numbers(double *new, double *log_new, int n, bint from_logs) noexcept nogil:
    """Completes a message: its numbers and, where these are not enough, its logarithms. True where they are."""
    cdef double smallest = 1.0
    cdef int k
    for k in range(n):
        if from_logs:
            new[k] = exp(log_new[k])
            smallest = fmin(smallest, new[k] if log_new[k] > -INFINITY else 1.0)
        else:
            smallest = fmin(smallest, new[k] if new[k] > 0.0 else 1.0)
    if smallest < FAINT and not from_logs:
        for k in range(n):
            log_new[k] = log(new[k])
    return smallest >= FAINT
