# cython: language_level=3
"""Sum-product over chains joined by links: each chain by forward-backward, messages along the links.

``herdner.inference.backends.sum_product`` lays out the graph and calls it.

Link e has two slots, one at each end; a slot holds the message that its variable receives from the other end, as
numbers (the largest is 1) and, where these are not enough, as their logarithms, both at labels of the receiver. -inf
says that no state with this label is allowed; that is never taken back. What a variable tells the other end is its
belief without what it heard from there, the cavity belief. A message is made when its receiver wants it: once for each
time that the receiver is looked at, however often its sender has changed, and kept only if it makes a difference there.
Numbers are multiplied where nothing can underflow, as in chain.h; everything else is done in logarithms.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, frexp, ldexp, log
from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.smoothing cimport (
    CHAIN_EXTREME, CHAIN_OK, ScaledTables, Smoothed, Workspace, chain_cavity, chain_exponentials,
    chain_message, chain_multiply, chain_product, chain_replace_message, chain_start_backward, chain_tables, edges_from, joined,
    log_sum_exp, longest, node_marginals, scaled_passes, smooth, soft_max, total_log,
)
from prefetch cimport prefetch
from rows cimport BUDGET


cdef enum:
    LOG_CELLS = 24  # what the logarithms and exponentials of a label cost, in products


cdef double FAINT = 1e-100  # a message whose numbers are 0 or at least this is told by them, without logarithms
cdef double SPREAD = 1e64   # numbers of a token further apart are multiplied as logarithms, see chain.h
cdef double LOG_2 = 0.6931471805599453
cdef double MOST_PENDING = 2.718281828459045  # one nat


cdef class SumProduct:
    """Messages and beliefs of a graph, laid out as `herdner.graph.linked_chains.LinkedChains`."""
    cdef Workspace space            # of one chain
    cdef ScaledTables scaled        # exp(table - shift) of the links
    cdef chain_tables links         # the same, for the loops
    cdef const double[:, ::1] unary
    cdef const int64_t[::1] offsets
    cdef const int32_t[::1] edge_table
    cdef const double[:, :, ::1] link_tables
    cdef double damping, tolerance
    # Slots, in the order of their variables: the slots of chain s are slot_starts[s] .. slot_starts[s + 1] - 1.
    cdef int64_t[::1] slot_starts
    cdef int32_t[::1] variable, partner, link, table
    cdef int32_t[::1] far, far_chain  # the partner's variable, and its chain
    cdef uint8_t[::1] second        # this is the slot of the second variable of its link's scope
    cdef double[:, ::1] told        # [slots, stride]: the messages that the chain's beliefs are by
    cdef double[:, ::1] log_told    # [slots, K]: where the numbers are not enough
    cdef uint8_t[::1] plain         # [slots]: the numbers are enough
    cdef uint8_t[::1] news          # [slots]: the sender has changed since
    # The messages to the chain that is looked at: a row for each of its slots.
    cdef double[:, ::1] fresh, log_fresh
    cdef uint8_t[::1] fresh_plain, is_fresh
    cdef uint8_t[::1] seen          # [chains]: has beliefs
    cdef uint8_t[::1] log_domain    # [chains]: these are logarithms too
    cdef bint any_logs              # some chain or message is not told by its numbers: as long as none is, nobody asks
    cdef uint8_t[::1] stale         # [chains]: has not been looked at since a sender changed
    cdef double[::1] pending        # [chains]: by which factor messages not kept since may have changed its odds
    cdef double[:, ::1] scratch, heard
    cdef readonly object log_zs     # float64[S]: log Z of each chain, with the messages
    cdef readonly object marginals  # float64[V, K]: the beliefs
    cdef double[:, ::1] nodes, log_nodes
    cdef double[::1] log_z
    cdef readonly int64_t n_stale
    cdef readonly int64_t n_updates  # variables whose chain was smoothed
    cdef readonly int64_t fault      # a variable in a chain that -inf entries leave no labelling, or -1

    def __cinit__(self, chains, double damping, double tolerance):
        form = chains.form
        self.unary, self.offsets, self.edge_table = form.unary, form.offsets, form.edge_table
        self.link_tables = chains.tables
        n, n_states, n_chains = self.unary.shape[0], self.unary.shape[1], self.offsets.shape[0] - 1
        self.space = Workspace(form.tables, longest(self.offsets))
        self.heard = np.empty((longest(self.offsets), n_states))
        self.damping, self.tolerance, self.fault = damping, tolerance, -1
        self.scaled = ScaledTables(self.link_tables)
        self.links = self.scaled.c
        self.set_slots(chains.scopes, chains.table_of_edge)
        n_slots, n_fresh = self.variable.shape[0], max(1, int(np.diff(self.slot_starts).max(initial=0)))
        self.told, self.fresh = np.zeros((n_slots, self.links.stride)), np.zeros((n_fresh, self.links.stride))
        self.told[:, :n_states] = 1.0
        self.log_told, self.log_fresh = np.empty((n_slots, n_states)), np.empty((n_fresh, n_states))
        self.news, self.plain = np.zeros(n_slots, np.uint8), np.ones(n_slots, np.uint8)
        self.is_fresh, self.fresh_plain = np.empty((2, n_fresh), np.uint8)
        self.seen, self.log_domain = np.zeros((2, n_chains), np.uint8)
        self.stale, self.pending, self.log_zs = np.ones(n_chains, np.uint8), np.ones(n_chains), np.empty(n_chains)
        self.n_stale, self.n_updates, self.any_logs = n_chains, 0, not self.scaled.scalable
        self.scratch = np.empty((5, self.links.stride))
        # Room behind the last row, so that loops may read whole strides; logarithms are seldom touched.
        self.marginals = np.empty(n * n_states + self.links.stride)[:n * n_states].reshape(n, n_states)
        self.nodes, self.log_nodes, self.log_z = self.marginals, np.empty((n, n_states)), self.log_zs

    cdef void set_slots(self, const int32_t[:, ::1] scopes, const int32_t[:] table_of_edge):
        cdef int64_t n_links = scopes.shape[0], e, v, s, a
        cdef int side
        cdef int32_t[:, ::1] slot_of = np.empty((n_links, 2), np.int32)
        cdef int64_t[::1] ends = np.zeros(self.unary.shape[0] + 1, np.int64)  # of each variable's slots
        self.variable, self.partner, self.link, self.table = np.empty((4, 2 * n_links), np.int32)
        self.far, self.far_chain = np.empty((2, 2 * n_links), np.int32)
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
                a = slot_of[e, side]
                self.partner[a], self.far[a] = slot_of[e, 1 - side], scopes[e, 1 - side]
        for s in range(self.offsets.shape[0] - 1):
            self.slot_starts[s + 1] = ends[self.offsets[s + 1] - 1]
            for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
                self.far_chain[self.partner[a]] = <int32_t> s

    def advance(self, int64_t at, int64_t n_sweeps, bint send):
        """Looks at one stale chain after the other, for a fraction of a second: it gets what others have to tell, its
        forward-backward if that makes a difference, and with ``send`` the others are then stale.

        ``at`` counts the places of all sweeps, S of each: every second sweep goes from the last chain to the first.
        Returns the place to go on from, and ``n_sweeps`` * S at the end, which comes early where no chain is stale.
        """
        cdef int64_t spent = 0, n_chains = self.offsets.shape[0] - 1, end = n_sweeps * n_chains, s, n, n_slots, size
        cdef int n_states = self.links.n_states
        with nogil:
            while at < end and self.n_stale and spent < BUDGET and self.fault < 0:
                s = n_chains - 1 - at % n_chains if at // n_chains % 2 else at % n_chains
                at += 1
                if not self.stale[s]:
                    continue
                if at % n_chains:
                    self.fetch(s - 1 if (at - 1) // n_chains % 2 else s + 1)
                n = self.offsets[s + 1] - self.offsets[s]
                n_slots = self.slot_starts[s + 1] - self.slot_starts[s]
                size = n_states * (<int64_t> n_states + LOG_CELLS)
                spent += (2 * n + n_slots) * size
                self.look(s, send)
        return at if self.n_stale else end

    cdef void fetch(self, int64_t s) noexcept nogil:
        """Asks memory for what the next chain's messages are made of."""
        cdef int64_t a, p
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            if self.news[a]:
                p = self.partner[a]
                prefetch(&self.told[p, 0])
                prefetch(&self.told[p, 0] + 8)
                prefetch(&self.nodes[self.far[a], 0])
                prefetch(&self.nodes[self.far[a], 0] + 8)

    cdef void look(self, int64_t s, bint send) noexcept nogil:
        cdef int64_t a
        cdef bint moves = self.listen(s)
        self.n_stale -= 1
        self.stale[s] = 0
        if self.fault >= 0 or not moves:
            return
        self.keep(s)
        if not self.smooth_chain(s) or not send:
            return
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            self.news[self.partner[a]] = 1
            self.make_stale(self.far_chain[a])

    cdef void make_stale(self, int64_t s) noexcept nogil:
        self.n_stale += 1 - self.stale[s]
        self.stale[s] = 1

    cdef bint listen(self, int64_t s) noexcept nogil:
        """The messages to a chain from senders that have changed; whether any rules a label out or would change the
        belief of a variable by more than the tolerance or, with others that were not kept, the odds of any two
        labellings of the chain by more than MOST_PENDING: what makes no difference alone could do so together."""
        cdef int64_t first = self.slot_starts[s], end = self.slot_starts[s + 1], a = first, begin
        cdef bint moves = not self.seen[s], any_fresh
        while a < end:
            begin, any_fresh = a, False
            while a < end and self.variable[a] == self.variable[begin]:
                self.is_fresh[a - first] = self.news[a]
                if self.news[a]:
                    any_fresh, self.news[a] = True, 0
                    if not self.message(a, a - first):
                        self.fault = self.variable[a]
                        return False
                a += 1
            if any_fresh and not moves:
                moves = self.changes(s, begin, a)
        return moves

    cdef void keep(self, int64_t s) noexcept nogil:
        """The fresh messages take the place of those before them; if damped, only a part does, so more is to come."""
        cdef int64_t first = self.slot_starts[s], a, i
        cdef int k
        for a in range(first, self.slot_starts[s + 1]):
            i = a - first
            if not self.is_fresh[i]:
                continue
            if self.damping < 1.0:
                self.fresh_plain[i] = self.damp(a, &self.fresh[i, 0], &self.log_fresh[i, 0], self.fresh_plain[i])
                self.news[a] = 1
            for k in range(self.links.stride):
                self.told[a, k] = self.fresh[i, k]
            if not self.fresh_plain[i]:
                for k in range(self.links.n_states):
                    self.log_told[a, k] = self.log_fresh[i, k]
            self.plain[a] = self.fresh_plain[i]

    cdef bint smooth_chain(self, int64_t s) noexcept nogil:
        """Forward-backward of a chain given the messages; false where there is no labelling."""
        cdef int64_t start = self.offsets[s], n = self.offsets[s + 1] - start, a = self.slot_starts[s]
        cdef Smoothed c = self.space.c
        cdef const int32_t *edges = edges_from(self.edge_table, start)
        cdef int status = CHAIN_EXTREME
        c.log_domain = False
        if c.scalable:
            status = chain_exponentials(&c.scaled, &self.unary[start, 0], n, c.x, c.tops)
        while a < self.slot_starts[s + 1] and status == CHAIN_OK:
            status = self.hear(&c, a, self.variable[a] - start)
            a += 1
        if status == CHAIN_OK:
            chain_start_backward(&c.scaled, c.backward + (n - 1) * c.scaled.stride)
            status = scaled_passes(&c, n, edges, 0, n - 1, True)
        if status == CHAIN_EXTREME:
            self.add_heard(s, &self.heard[0, 0])
            status = smooth(&c, &self.heard[0, 0], n, edges, True)
        if status != CHAIN_OK:
            self.fault = start
            return False
        self.log_z[s] = total_log(&c, n)
        node_marginals(&c, n, &self.nodes[start, 0])
        if c.log_domain:
            self.any_logs = True
            self.keep_logs(&c, s)
        self.n_updates += n
        self.seen[s], self.log_domain[s], self.pending[s] = 1, c.log_domain, 1.0
        if self.damping < 1.0:
            for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
                if self.news[a]:
                    self.make_stale(s)
        return True

    cdef int hear(self, Smoothed *c, int64_t a, int64_t t) noexcept nogil:
        """Multiplies token t of the chain by the message of slot ``a``, and by a power of 2 that keeps it near 1."""
        cdef double *row = c.x + t * c.scaled.stride
        cdef double top, least, factor
        cdef int k, exponent
        if not self.plain[a]:
            return CHAIN_EXTREME
        chain_multiply(row, &self.told[a, 0], c.scaled.stride, &least, &top)
        if not top <= SPREAD * least:
            return CHAIN_EXTREME
        if 0.0 < top < 0.5:
            frexp(top, &exponent)
            factor = ldexp(1.0, -exponent)
            for k in range(c.scaled.stride):
                row[k] *= factor
            c.tops[t] += exponent * LOG_2
        return CHAIN_OK

    cdef void add_heard(self, int64_t s, double *out) noexcept nogil:
        """``out`` [n, K]: the unary log-potentials of a chain with the messages."""
        cdef int64_t start = self.offsets[s], t, a
        cdef int n_states = self.links.n_states, k
        for t in range((self.offsets[s + 1] - start) * n_states):
            out[t] = (&self.unary[start, 0])[t]
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            t = (self.variable[a] - start) * n_states
            for k in range(n_states):
                out[t + k] += log(self.told[a, k]) if self.plain[a] else self.log_told[a, k]

    def unaries(self, int64_t first, int64_t last):
        """float64[n, K]: the unary log-potentials, with the messages, of the chains from ``first`` to ``last``
        (exclusive)."""
        cdef int64_t start = self.offsets[first], s
        found = np.empty((self.offsets[last] - start, self.unary.shape[1]))
        cdef double[:, ::1] rows = found
        with nogil:
            for s in range(first, last):
                self.add_heard(s, &rows[self.offsets[s] - start, 0])
        return found

    cdef void keep_logs(self, Smoothed *c, int64_t s) noexcept nogil:
        """The logarithms of the beliefs of a chain's variables with links."""
        cdef int64_t a, v, last = -1
        cdef double total
        cdef int k
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            v = self.variable[a]
            if v != last:
                total = joined(c, v - self.offsets[s], &self.log_nodes[v, 0])
                for k in range(self.links.n_states):
                    self.log_nodes[v, k] -= total
            last = v

    cdef bint in_logs(self, int64_t a) noexcept nogil:
        """Whether the cavity belief of a slot is one of logarithms."""
        return self.any_logs and (self.log_domain[self.far_chain[self.partner[a]]] or not self.plain[a])

    cdef void cavity(self, int64_t a, double *out) noexcept nogil:
        """``out`` [stride]: the belief of a slot's variable without what the slot was told, not normalised; 0 for
        labels that no state has: what they would tell makes no difference."""
        chain_cavity(out, &self.nodes[self.variable[a], 0], &self.told[a, 0], self.links.stride)

    cdef void log_cavity(self, int64_t a, double *out) noexcept nogil:
        cdef int64_t v = self.variable[a]
        cdef bint logs = self.log_domain[self.far_chain[self.partner[a]]]
        cdef double belief
        cdef int k
        for k in range(self.links.n_states):
            belief = self.log_nodes[v, k] if logs else log(self.nodes[v, k])
            out[k] = -INFINITY if self.ruled_out(a, k) else belief - self.log_message(a, k)

    cdef bint message(self, int64_t to, int64_t i) noexcept nogil:
        """Row i of the fresh messages: what slot ``to`` is told now, its largest number 1; false where all are 0."""
        cdef int64_t a = self.partner[to]
        cdef double *new = &self.fresh[i, 0]
        cdef double *log_new = &self.log_fresh[i, 0]
        cdef double smallest
        cdef int k
        if self.any_logs and (self.in_logs(a) or not self.scaled.scalable):
            if not self.message_in_logs(a, to, log_new):
                return False
            smallest = numbers(new, log_new, self.links.n_states)
        else:
            smallest = self.message_in_numbers(a, to, new)
            if smallest == 0.0:
                return False
            for k in range(self.links.n_states if smallest < FAINT else 0):
                log_new[k] = log(new[k])
        self.fresh_plain[i] = smallest >= FAINT
        self.any_logs |= not self.fresh_plain[i]
        return True

    cdef double message_in_numbers(self, int64_t a, int64_t to, double *new) noexcept nogil:
        """The least number of the message that is not 0, or 0 where all are."""
        cdef const double *tables = self.links.tables if self.second[to] else self.links.transposed
        cdef const double *before = &self.told[to, 0]
        cdef int n_states = self.links.n_states, stride = self.links.stride, k
        if not self.plain[to]:
            before = &self.scratch[1, 0]
            for k in range(n_states):
                self.scratch[1, k] = not self.ruled_out(to, k)
        chain_cavity(&self.scratch[0, 0], &self.nodes[self.far[to], 0], &self.told[a, 0], stride)
        return chain_message(new, &self.scratch[0, 0], tables + <int64_t> self.table[to] * n_states * stride, before,
                             n_states, stride)

    cdef bint message_in_logs(self, int64_t a, int64_t to, double *log_new) noexcept nogil:
        """The same in logarithms."""
        cdef int n_states = self.links.n_states, k
        cdef double top = -INFINITY
        cdef double *mine = &self.scratch[2, 0]
        cdef double *terms = &self.scratch[3, 0]
        cdef int i
        self.log_cavity(a, mine)
        for k in range(n_states):
            for i in range(n_states):
                terms[i] = mine[i] + self.potential(a, i, k)
            log_new[k] = -INFINITY if self.ruled_out(to, k) else log_sum_exp(terms, n_states)
            top = fmax(top, log_new[k])
        if top == -INFINITY:
            return False
        for k in range(n_states):
            log_new[k] -= top
        return True

    cdef bint ruled_out(self, int64_t to, int k) noexcept nogil:
        return self.told[to, k] == 0.0 if self.plain[to] else self.log_told[to, k] == -INFINITY

    cdef double log_message(self, int64_t a, int k) noexcept nogil:
        return log(self.told[a, k]) if self.plain[a] else self.log_told[a, k]

    cdef double potential(self, int64_t a, int mine, int theirs) noexcept nogil:
        """The log-potential of a slot's link for labels at its own and at the other end."""
        if self.second[a]:
            return self.link_tables[self.table[a], theirs, mine]
        return self.link_tables[self.table[a], mine, theirs]

    cdef bint changes(self, int64_t s, int64_t begin, int64_t end) noexcept nogil:
        """Whether the fresh messages among the slots of one variable make a difference; see `listen`."""
        cdef int64_t first = self.slot_starts[s], a
        cdef bint plain = not self.log_domain[s]
        if self.any_logs:
            for a in range(begin, end):
                if self.is_fresh[a - first] and not (self.plain[a] and self.fresh_plain[a - first]):
                    plain = False
        return self.changes_numbers(s, begin, end) if plain else self.changes_logs(s, begin, end)

    cdef bint changes_numbers(self, int64_t s, int64_t begin, int64_t end) noexcept nogil:
        cdef int64_t first = self.slot_starts[s], a
        cdef int stride = self.links.stride, n_states = self.links.n_states, k
        cdef double *after = &self.scratch[1, 0]
        cdef const double *before = &self.nodes[self.variable[begin], 0]
        cdef double least, most, total = 0.0, farthest = 0.0
        for k in range(stride):
            after[k] = before[k]
        for a in range(begin, end):
            if not self.is_fresh[a - first]:
                continue
            chain_replace_message(after, &self.fresh[a - first, 0], &self.told[a, 0], stride, &least, &most)
            self.pending[s] *= most / least
        if not self.pending[s] <= MOST_PENDING:
            return True
        for k in range(n_states):
            total += after[k]
        total = 1.0 / total
        for k in range(n_states):
            farthest = max(farthest, fabs(after[k] * total - before[k]))
        return not farthest <= self.tolerance

    cdef bint changes_logs(self, int64_t s, int64_t begin, int64_t end) noexcept nogil:
        cdef int64_t first = self.slot_starts[s], v = self.variable[begin], a, i
        cdef int n_states = self.links.n_states, k
        cdef double *before = &self.scratch[2, 0]
        cdef double *after = &self.scratch[3, 0]
        cdef double least, most, change
        for k in range(n_states):
            before[k] = self.log_nodes[v, k] if self.log_domain[s] else log(self.nodes[v, k])
            after[k] = before[k]
        for a in range(begin, end):
            i, least, most = a - first, INFINITY, -INFINITY
            if not self.is_fresh[i]:
                continue
            for k in range(n_states):
                if self.ruled_out(a, k):
                    continue
                change = log(self.fresh[i, k]) if self.fresh_plain[i] else self.log_fresh[i, k]
                change -= self.log_message(a, k)
                least, most = fmin(least, change), fmax(most, change)
                after[k] += change
            self.pending[s] *= exp(most - least)
        if not self.pending[s] <= MOST_PENDING:
            return True
        soft_max(before, n_states)
        soft_max(after, n_states)
        for k in range(n_states):
            if not fabs(after[k] - before[k]) <= self.tolerance:
                return True
        return False

    cdef bint damp(self, int64_t to, double *new, double *log_new, bint plain) noexcept nogil:
        """Moves the message back towards the one it replaces."""
        cdef int k
        cdef double top = -INFINITY
        for k in range(self.links.n_states):
            if plain:
                log_new[k] = log(new[k])
            if log_new[k] > -INFINITY:
                log_new[k] = (1.0 - self.damping) * self.log_message(to, k) + self.damping * log_new[k]
            top = fmax(top, log_new[k])
        for k in range(self.links.n_states):
            log_new[k] -= top
        return numbers(new, log_new, self.links.n_states) >= FAINT

    def log_potential(self, const int32_t[::1] state):
        """The log-potential of a state [V], constants left out."""
        cdef const double *tables = self.space.c.tables
        cdef int64_t n_states = self.links.n_states, s, t, table, a
        cdef double total = 0.0
        with nogil:
            for s in range(self.offsets.shape[0] - 1):
                for t in range(self.offsets[s], self.offsets[s + 1]):
                    total += self.unary[t, state[t]]
                    if t > self.offsets[s]:
                        table = 0 if self.edge_table is None else self.edge_table[t]
                        total += tables[(table * n_states + state[t - 1]) * n_states + state[t]]
            for a in range(self.variable.shape[0]):
                if not self.second[a]:
                    total += self.potential(a, state[self.variable[a]], state[self.variable[self.partner[a]]])
        return total

    def log_corrections(self):
        """The sum of log sum_ij cavity[i] exp(table[i, j]) cavity[j] over the links: -inf where one allows no
        pair of labels."""
        cdef int64_t a, table
        cdef double total = 0.0, value
        cdef double[:, ::1] work = np.empty((self.links.n_states, self.links.n_states))
        cdef int k
        with nogil:
            for a in range(self.variable.shape[0]):
                if self.second[a]:
                    continue
                value = 0.0
                if self.scaled.scalable and not (self.in_logs(a) or self.in_logs(self.partner[a])):
                    table = self.table[a]
                    self.cavity(a, &self.scratch[0, 0])
                    self.cavity(self.partner[a], &self.scratch[1, 0])
                    chain_product(&self.scratch[2, 0], &self.scratch[0, 0],
                                  self.links.tables + table * self.links.n_states * self.links.stride,
                                  self.links.n_states, self.links.stride)
                    for k in range(self.links.n_states):
                        value += self.scratch[2, k] * self.scratch[1, k]
                    if 1e-200 < value < INFINITY:
                        total += log(value) + self.links.shifts[table]
                        continue
                self.log_pairs(a, &work[0, 0])
                total += log_sum_exp(&work[0, 0], self.links.n_states * self.links.n_states)
        return total

    cdef void log_pairs(self, int64_t a, double *out) noexcept nogil:
        """``out`` [K, K]: the logarithms of the belief of a slot's link, not normalised, its own label first."""
        cdef double *mine = &self.scratch[2, 0]
        cdef double *theirs = &self.scratch[3, 0]
        cdef int n_states = self.links.n_states, i, j
        self.log_cavity(a, mine)
        self.log_cavity(self.partner[a], theirs)
        for i in range(n_states):
            for j in range(n_states):
                out[i * n_states + j] = mine[i] + self.potential(a, i, j) + theirs[j]

    def pairs(self, double[:, :, ::1] out):
        """Fills ``out`` [E, K, K] with the beliefs of the links."""
        cdef int n_states = self.links.n_states
        cdef int64_t a
        with nogil:
            for a in range(self.variable.shape[0]):
                if not self.second[a]:
                    self.log_pairs(a, &out[self.link[a], 0, 0])
                    soft_max(&out[self.link[a], 0, 0], n_states * n_states)


cdef double numbers(double *new, const double *log_new, int n) noexcept nogil:
    """The numbers of a message from their logarithms; the least of those that are not 0 by these."""
    cdef double smallest = 1.0
    cdef int k
    for k in range(n):
        new[k] = exp(log_new[k])
        smallest = fmin(smallest, new[k] if log_new[k] > -INFINITY else 1.0)
    return smallest
