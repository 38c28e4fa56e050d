# cython: language_level=3
"""Belief propagation (sum-product) over chains joined by links: forward-backward in each chain, messages along links.

Called by ``herdner.inference.backends.sum_product``, which lays out the graph.

Link e has two slots, one at each end. A slot stores the message that its variable receives from the other end: one
number per state of the receiver, the largest being 1, and their logarithms where the numbers would underflow. An entry
of -inf means that no allowed joint state has the variable in this state; such entries never become finite again. The
message to the other end is the cavity belief (the belief divided by the message from there) times the table of the
link.

Messages are computed lazily: only when their receiver is visited, however often the sender has changed, and they are
stored only if they change the receiver. Numbers are multiplied where nothing can underflow (see chain_loops/chain.h);
everything else uses logarithms.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, fabs, fmax, fmin, frexp, ldexp, log
from libc.stdint cimport int32_t, int64_t, uint8_t

from herdner._ext.smoothing cimport (
    CHAIN_EXTREME, CHAIN_OK, ScaledTables, Smoothed, Workspace, chain_cavity, chain_exponentials,
    chain_message, chain_multiply, chain_product, chain_replace_message, chain_start_backward, chain_tables, edges_from,
    joined, longest, node_marginals, own_edges, own_sequences, own_tables, scaled_passes, scaled_tables,
    smooth, soft_max, total_log,
)
from herdner._ext.memory cimport owned, require
from prefetch cimport prefetch
from rows cimport BUDGET
from sums cimport log_sum_exp


cdef enum:
    LOG_CELLS = 24  # the cost of the logarithms and exponentials of a state, in products
    N_SCRATCH = 5   # rows of intermediate results


cdef double SMALLEST_NUMBER = 1e-100  # messages with smaller numbers (other than 0) are stored as logarithms
cdef double LARGEST_RANGE = 1e64      # numbers of a token that span more are multiplied as logarithms
cdef double LOG_2 = 0.6931471805599453
cdef double LARGEST_PENDING = 2.718281828459045  # one nat


cdef class SumProductLoop:
    """Messages and beliefs of a graph in the layout of `herdner.graph.linked_chains.LinkedChains`."""
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
    cdef uint8_t[::1] second        # 1: the slot of the second variable in the link's scope
    cdef double[:, ::1] messages    # [slots, stride]: the messages from which the chain's beliefs were computed
    cdef double[:, ::1] log_messages  # [slots, K]: their logarithms, where `numeric` is 0
    cdef uint8_t[::1] numeric       # [slots]: 1 if the numbers suffice, without logarithms
    cdef uint8_t[::1] outdated      # [slots]: 1 if the sender has changed since
    # The new messages to the chain that is being visited: a row for each of its slots.
    cdef double[:, ::1] fresh, log_fresh
    cdef uint8_t[::1] fresh_numeric, is_fresh
    cdef uint8_t[::1] has_beliefs   # [chains]
    cdef uint8_t[::1] log_domain    # [chains]: 1 if the beliefs are also stored as logarithms
    cdef bint any_logs              # some chain or message needs logarithms; until then no slot is checked for them
    cdef uint8_t[::1] stale         # [chains]: 1 if a sender has changed since the last visit
    cdef double[::1] pending        # [chains]: the factor by which messages not stored may have changed the odds
    cdef double[:, ::1] scratch, unary_with_messages
    cdef readonly object log_zs     # float64[S]: log Z of each chain including its messages
    cdef readonly object marginals  # float64[V, K]: the beliefs
    cdef double[:, ::1] nodes, log_nodes
    cdef double[::1] log_z
    cdef readonly int64_t n_stale
    cdef readonly int64_t n_updates  # variables of all chains smoothed so far
    cdef readonly int64_t fault      # a variable of a chain without an allowed labelling, or -1

    def __cinit__(self, chains, double damping, double tolerance):
        cdef int64_t slot, n, n_slots, n_fresh, n_chains
        cdef int k, n_states
        form = chains.form
        self.unary = owned(form.unary, np.float64, 2, "unary")
        n, n_states = self.unary.shape[0], <int> self.unary.shape[1]
        self.offsets, tables = own_sequences(form.offsets, n), own_tables(form.tables, n_states)
        self.edge_table = own_edges(form.edge_table, n, len(tables))
        link_tables = self.link_tables = own_tables(chains.tables, n_states)
        scopes = owned(chains.scopes, np.int32, 2, "scopes")
        table_of_edge = owned(np.ascontiguousarray(chains.table_of_edge), np.int32, 1, "table_of_edge")
        check_links(self.offsets, scopes, table_of_edge, self.link_tables.shape[0])
        n_chains = self.offsets.shape[0] - 1
        self.space = Workspace(tables, longest(self.offsets))
        self.damping, self.tolerance, self.fault = damping, tolerance, -1
        self.scaled = scaled_tables(link_tables)
        self.links = self.scaled.c
        self.set_slots(scopes, table_of_edge)
        n_slots, n_fresh = self.variable.shape[0], max(1, longest(self.slot_starts))
        cdef double[:, ::1] rows = np.zeros((n_slots + n_fresh + N_SCRATCH, self.links.stride))
        self.messages, self.fresh = rows[:n_slots], rows[n_slots:n_slots + n_fresh]
        self.scratch = rows[n_slots + n_fresh:]
        for slot in range(n_slots):
            for k in range(n_states):
                self.messages[slot, k] = 1.0
        cdef double[:, ::1] log_rows = np.empty((n_slots + n_fresh + n + longest(self.offsets), n_states))
        self.log_messages, self.log_fresh = log_rows[:n_slots], log_rows[n_slots:n_slots + n_fresh]
        log_rows = log_rows[n_slots + n_fresh:]
        self.log_nodes, self.unary_with_messages = log_rows[:n], log_rows[n:]
        cdef uint8_t[:, ::1] of_slot = np.zeros((2, n_slots), np.uint8), of_fresh = np.empty((2, n_fresh), np.uint8)
        cdef uint8_t[:, ::1] of_chain = np.zeros((3, n_chains), np.uint8)
        self.outdated, self.numeric = of_slot[0], of_slot[1]
        self.is_fresh, self.fresh_numeric = of_fresh[0], of_fresh[1]
        self.has_beliefs, self.log_domain, self.stale = of_chain[0], of_chain[1], of_chain[2]
        self.numeric[:], self.stale[:] = 1, 1
        self.pending, self.log_zs = np.empty(n_chains), np.empty(n_chains)
        self.pending[:] = 1.0
        self.n_stale, self.n_updates, self.any_logs = n_chains, 0, not self.scaled.scalable
        # Padding after the last row, so that loops may read whole strides.
        self.marginals = np.empty(n * n_states + self.links.stride)[:n * n_states].reshape(n, n_states)
        self.nodes, self.log_z = self.marginals, self.log_zs

    cdef void set_slots(self, const int32_t[:, ::1] scopes, const int32_t[:] table_of_edge):
        cdef int64_t n_links = scopes.shape[0], e, v, s, a
        cdef int side
        cdef int32_t[:, ::1] slot_of = np.empty((n_links, 2), np.int32)
        cdef int64_t[::1] ends = np.zeros(self.unary.shape[0] + 1, np.int64)  # the end of each variable's slots
        cdef int32_t[:, ::1] rows = np.empty((6, 2 * n_links), np.int32)
        self.variable, self.partner, self.link, self.table = rows[0], rows[1], rows[2], rows[3]
        self.far, self.far_chain = rows[4], rows[5]
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

    def advance(self, int64_t n_sweeps, bint send):
        """Visit one stale chain after the other, until no chain is stale or ``n_sweeps`` sweeps are done.

        A visit computes the messages to the chain and, if they make a difference, its forward-backward; with ``send``
        the chains linked to it then become stale. Every second sweep goes from the last chain to the first. Ctrl-C can
        interrupt the sweeps between two visits.
        """
        cdef int64_t n_chains = self.offsets.shape[0] - 1, at = 0, end = n_sweeps * n_chains
        while at < end and self.n_stale and self.fault < 0:
            PyErr_CheckSignals()
            with nogil:
                at = self.visit_chains(at, end, send)

    cdef int64_t visit_chains(self, int64_t at, int64_t end, bint send) noexcept nogil:
        """Visit stale chains for a fraction of a second, from the visit ``at`` on, and return the next visit."""
        cdef int64_t n_chains = self.offsets.shape[0] - 1, spent = 0, s, n, n_slots, size
        cdef int n_states = self.links.n_states
        while at < end and self.n_stale and spent < BUDGET and self.fault < 0:
            s = n_chains - 1 - at % n_chains if at // n_chains % 2 else at % n_chains
            at += 1
            if not self.stale[s]:
                continue
            if at % n_chains:
                self.prefetch_messages(s - 1 if (at - 1) // n_chains % 2 else s + 1)
            n = self.offsets[s + 1] - self.offsets[s]
            n_slots = self.slot_starts[s + 1] - self.slot_starts[s]
            size = n_states * (<int64_t> n_states + LOG_CELLS)
            spent += (2 * n + n_slots) * size
            self.visit(s, send)
        return at

    cdef void prefetch_messages(self, int64_t s) noexcept nogil:
        """Prefetch the operands of the messages to the next chain."""
        cdef int64_t a, p
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            if self.outdated[a]:
                p = self.partner[a]
                prefetch(&self.messages[p, 0])
                prefetch(&self.messages[p, 0] + 8)
                prefetch(&self.nodes[self.far[a], 0])
                prefetch(&self.nodes[self.far[a], 0] + 8)

    cdef void visit(self, int64_t s, bint send) noexcept nogil:
        """Update a chain from its messages; with ``send`` mark the messages that it sends as outdated."""
        cdef int64_t a
        cdef bint matters = self.receive(s)
        self.n_stale -= 1
        self.stale[s] = 0
        if self.fault >= 0 or not matters:
            return
        self.store_messages(s)
        if not self.smooth_chain(s) or not send:
            return
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            self.outdated[self.partner[a]] = 1
            self.make_stale(self.far_chain[a])

    cdef void make_stale(self, int64_t s) noexcept nogil:
        self.n_stale += 1 - self.stale[s]
        self.stale[s] = 1

    cdef bint receive(self, int64_t s) noexcept nogil:
        """Compute the messages to a chain from senders that have changed. Return True if they matter.

        They matter if they rule a state out, change the belief of a variable by more than the tolerance or, together
        with earlier messages that were not stored, change the odds of two labellings of the chain by more than
        LARGEST_PENDING: changes that are negligible alone can add up.
        """
        cdef int64_t first = self.slot_starts[s], end = self.slot_starts[s + 1], a = first, begin
        cdef bint matters = not self.has_beliefs[s], any_fresh
        while a < end:
            begin, any_fresh = a, False
            while a < end and self.variable[a] == self.variable[begin]:
                self.is_fresh[a - first] = self.outdated[a]
                if self.outdated[a]:
                    any_fresh, self.outdated[a] = True, 0
                    if not self.message(a, a - first):
                        self.fault = self.variable[a]
                        return False
                a += 1
            if any_fresh and not matters:
                matters = self.changes(s, begin, a)
        return matters

    cdef void store_messages(self, int64_t s) noexcept nogil:
        """Replace the messages to a chain by the fresh ones. Damped messages stay outdated: they change again."""
        cdef int64_t first = self.slot_starts[s], a, i
        cdef int k
        for a in range(first, self.slot_starts[s + 1]):
            i = a - first
            if not self.is_fresh[i]:
                continue
            if self.damping < 1.0:
                self.fresh_numeric[i] = self.damp(a, &self.fresh[i, 0], &self.log_fresh[i, 0], self.fresh_numeric[i])
                self.outdated[a] = 1
            for k in range(self.links.stride):
                self.messages[a, k] = self.fresh[i, k]
            if not self.fresh_numeric[i]:
                for k in range(self.links.n_states):
                    self.log_messages[a, k] = self.log_fresh[i, k]
            self.numeric[a] = self.fresh_numeric[i]

    cdef bint smooth_chain(self, int64_t s) noexcept nogil:
        """Run forward-backward in a chain with its messages. Return False if no labelling is allowed."""
        cdef int64_t start = self.offsets[s], n = self.offsets[s + 1] - start, a = self.slot_starts[s]
        cdef Smoothed c = self.space.c
        cdef const int32_t *edges = edges_from(self.edge_table, start)
        cdef int status = CHAIN_EXTREME
        c.log_domain = False
        if c.scalable:
            status = chain_exponentials(&c.scaled, &self.unary[start, 0], n, c.x, c.tops)
        while a < self.slot_starts[s + 1] and status == CHAIN_OK:
            status = self.multiply_message(&c, a, self.variable[a] - start)
            a += 1
        if status == CHAIN_OK:
            chain_start_backward(&c.scaled, c.backward + (n - 1) * c.scaled.stride)
            status = scaled_passes(&c, n, edges, 0, n - 1, True)
        if status == CHAIN_EXTREME:
            self.add_messages(s, &self.unary_with_messages[0, 0])
            status = smooth(&c, &self.unary_with_messages[0, 0], n, edges, True)
        if status != CHAIN_OK:
            self.fault = start
            return False
        self.log_z[s] = total_log(&c, n)
        node_marginals(&c, n, &self.nodes[start, 0])
        if c.log_domain:
            self.any_logs = True
            self.store_log_beliefs(&c, s)
        self.n_updates += n
        self.has_beliefs[s], self.log_domain[s], self.pending[s] = 1, c.log_domain, 1.0
        if self.damping < 1.0:
            for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
                if self.outdated[a]:
                    self.make_stale(s)
        return True

    cdef int multiply_message(self, Smoothed *c, int64_t a, int64_t t) noexcept nogil:
        """Multiply token t of the chain by the message of slot ``a``, and by a power of 2 that keeps it near 1."""
        cdef double *row = c.x + t * c.scaled.stride
        cdef double top, least, factor
        cdef int k, exponent
        if not self.numeric[a]:
            return CHAIN_EXTREME
        chain_multiply(row, &self.messages[a, 0], c.scaled.stride, &least, &top)
        if not top <= LARGEST_RANGE * least:
            return CHAIN_EXTREME
        if 0.0 < top < 0.5:
            frexp(top, &exponent)
            factor = ldexp(1.0, -exponent)
            for k in range(c.scaled.stride):
                row[k] *= factor
            c.tops[t] += exponent * LOG_2
        return CHAIN_OK

    cdef void add_messages(self, int64_t s, double *out) noexcept nogil:
        """Fill ``out`` [n, K] with the unary log-potentials of a chain plus its messages."""
        cdef int64_t start = self.offsets[s], t, a
        cdef int n_states = self.links.n_states, k
        for t in range((self.offsets[s + 1] - start) * n_states):
            out[t] = (&self.unary[start, 0])[t]
        for a in range(self.slot_starts[s], self.slot_starts[s + 1]):
            t = (self.variable[a] - start) * n_states
            for k in range(n_states):
                out[t + k] += log(self.messages[a, k]) if self.numeric[a] else self.log_messages[a, k]

    def unaries(self, int64_t first, int64_t last):
        """Return the unary log-potentials plus messages of chains ``first`` to ``last`` - 1: float64[n, K]."""
        require(0 <= first <= last < self.offsets.shape[0], "the chains must exist")
        cdef int64_t start = self.offsets[first], s
        result = np.empty((self.offsets[last] - start, self.unary.shape[1]))
        cdef double[:, ::1] rows = result
        with nogil:
            for s in range(first, last):
                self.add_messages(s, &rows[self.offsets[s] - start, 0])
        return result

    cdef void store_log_beliefs(self, Smoothed *c, int64_t s) noexcept nogil:
        """Store the logarithms of the beliefs of a chain's linked variables."""
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
        """Return True if the cavity belief of a slot needs logarithms."""
        return self.any_logs and (self.log_domain[self.far_chain[self.partner[a]]] or not self.numeric[a])

    cdef void cavity(self, int64_t a, double *out) noexcept nogil:
        """Compute the cavity belief of a slot in ``out`` [stride], not normalised; 0 at states that are ruled out."""
        chain_cavity(out, &self.nodes[self.variable[a], 0], &self.messages[a, 0], self.links.stride)

    cdef void log_cavity(self, int64_t a, double *out) noexcept nogil:
        cdef int64_t v = self.variable[a]
        cdef bint logs = self.log_domain[self.far_chain[self.partner[a]]]
        cdef double belief
        cdef int k
        for k in range(self.links.n_states):
            belief = self.log_nodes[v, k] if logs else log(self.nodes[v, k])
            out[k] = -INFINITY if self.ruled_out(a, k) else belief - self.log_message(a, k)

    cdef bint message(self, int64_t to, int64_t i) noexcept nogil:
        """Compute the new message to slot ``to`` as row i of the fresh messages. Return False if all numbers are 0."""
        cdef int64_t a = self.partner[to]
        cdef double *new = &self.fresh[i, 0]
        cdef double *log_new = &self.log_fresh[i, 0]
        cdef double smallest
        cdef int k
        if self.any_logs and (self.in_logs(a) or not self.scaled.scalable):
            if not self.message_in_logs(a, to, log_new):
                return False
            smallest = exponentiate(new, log_new, self.links.n_states)
        else:
            smallest = self.message_in_numbers(a, to, new)
            if smallest == 0.0:
                return False
            for k in range(self.links.n_states if smallest < SMALLEST_NUMBER else 0):
                log_new[k] = log(new[k])
        self.fresh_numeric[i] = smallest >= SMALLEST_NUMBER
        self.any_logs |= not self.fresh_numeric[i]
        return True

    cdef double message_in_numbers(self, int64_t a, int64_t to, double *new) noexcept nogil:
        """Compute a message as numbers. Return the least that is not 0, or 0 if all are 0."""
        cdef const double *tables = self.links.tables if self.second[to] else self.links.transposed
        cdef const double *before = &self.messages[to, 0]
        cdef int n_states = self.links.n_states, stride = self.links.stride, k
        if not self.numeric[to]:
            before = &self.scratch[1, 0]
            for k in range(n_states):
                self.scratch[1, k] = not self.ruled_out(to, k)
        chain_cavity(&self.scratch[0, 0], &self.nodes[self.far[to], 0], &self.messages[a, 0], stride)
        return chain_message(new, &self.scratch[0, 0], tables + <int64_t> self.table[to] * n_states * stride, before,
                             n_states, stride)

    cdef bint message_in_logs(self, int64_t a, int64_t to, double *log_new) noexcept nogil:
        """Compute a message as logarithms. Return False if all are -inf."""
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
        return self.messages[to, k] == 0.0 if self.numeric[to] else self.log_messages[to, k] == -INFINITY

    cdef double log_message(self, int64_t a, int k) noexcept nogil:
        return log(self.messages[a, k]) if self.numeric[a] else self.log_messages[a, k]

    cdef double potential(self, int64_t a, int mine, int theirs) noexcept nogil:
        """Return the log-potential of a slot's link for the states at its own end and at the other end."""
        if self.second[a]:
            return self.link_tables[self.table[a], theirs, mine]
        return self.link_tables[self.table[a], mine, theirs]

    cdef bint changes(self, int64_t s, int64_t begin, int64_t end) noexcept nogil:
        """Return True if the fresh messages to one variable matter; see `receive`."""
        cdef int64_t first = self.slot_starts[s], a
        cdef bint numeric = not self.log_domain[s]
        if self.any_logs:
            for a in range(begin, end):
                if self.is_fresh[a - first] and not (self.numeric[a] and self.fresh_numeric[a - first]):
                    numeric = False
        return self.changes_numbers(s, begin, end) if numeric else self.changes_logs(s, begin, end)

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
            chain_replace_message(after, &self.fresh[a - first, 0], &self.messages[a, 0], stride, &least, &most)
            self.pending[s] *= most / least
        if not self.pending[s] <= LARGEST_PENDING:
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
                change = log(self.fresh[i, k]) if self.fresh_numeric[i] else self.log_fresh[i, k]
                change -= self.log_message(a, k)
                least, most = fmin(least, change), fmax(most, change)
                after[k] += change
            self.pending[s] *= exp(most - least)
        if not self.pending[s] <= LARGEST_PENDING:
            return True
        soft_max(before, n_states)
        soft_max(after, n_states)
        for k in range(n_states):
            if not fabs(after[k] - before[k]) <= self.tolerance:
                return True
        return False

    cdef bint damp(self, int64_t to, double *new, double *log_new, bint numeric) noexcept nogil:
        """Damp a new message towards the one that it replaces. Return True if it needs no logarithms."""
        cdef int k
        cdef double top = -INFINITY
        for k in range(self.links.n_states):
            if numeric:
                log_new[k] = log(new[k])
            if log_new[k] > -INFINITY:
                log_new[k] = (1.0 - self.damping) * self.log_message(to, k) + self.damping * log_new[k]
            top = fmax(top, log_new[k])
        for k in range(self.links.n_states):
            log_new[k] -= top
        return exponentiate(new, log_new, self.links.n_states) >= SMALLEST_NUMBER

    def log_potential(self, state):
        """Return the log-potential of a joint state int32[V], without constants."""
        return self.sum_potentials(owned(state, np.int32, 1, "state"))

    cdef double sum_potentials(self, const int32_t[::1] state) except? -1:
        cdef const double *tables = self.space.c.tables
        cdef int64_t n_states = self.links.n_states, s, t, table, a
        cdef double total = 0.0
        require(state.shape[0] == self.unary.shape[0], "a joint state has a state for each variable")
        for t in range(state.shape[0]):
            require(0 <= state[t] < n_states, "a joint state consists of states of the variables")
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
        """Return the sum over links of log sum_ij cavity[i] exp(table[i, j]) cavity[j].

        It is -inf if a link allows no pair of states.
        """
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
        """Fill ``out`` [K, K] with the log-belief of a slot's link, not normalised, the slot's own state first."""
        cdef double *mine = &self.scratch[2, 0]
        cdef double *theirs = &self.scratch[3, 0]
        cdef int n_states = self.links.n_states, i, j
        self.log_cavity(a, mine)
        self.log_cavity(self.partner[a], theirs)
        for i in range(n_states):
            for j in range(n_states):
                out[i * n_states + j] = mine[i] + self.potential(a, i, j) + theirs[j]

    def pairs(self, double[:, :, ::1] out not None):
        """Fill ``out`` [E, K, K] with the beliefs of the links."""
        cdef int n_states = self.links.n_states
        cdef int64_t a
        require(2 * out.shape[0] == self.variable.shape[0] and out.shape[1] == n_states == out.shape[2],
                "out must have a table for each link")
        with nogil:
            for a in range(self.variable.shape[0]):
                if not self.second[a]:
                    self.log_pairs(a, &out[self.link[a], 0, 0])
                    soft_max(&out[self.link[a], 0, 0], n_states * n_states)


cdef int check_links(const int64_t[::1] offsets, const int32_t[:, ::1] scopes, const int32_t[::1] tables,
                     int64_t n_tables) except -1:
    """Raise ValueError unless no chain is empty and each link joins two variables by a table."""
    cdef int64_t n = offsets[offsets.shape[0] - 1], s, e
    for s in range(1, offsets.shape[0]):
        require(offsets[s - 1] < offsets[s], "chains must not be empty")
    require(scopes.shape[1] == 2 and tables.shape[0] == scopes.shape[0], "each link needs two variables and a table")
    for e in range(scopes.shape[0]):
        require(0 <= scopes[e, 0] < n and 0 <= scopes[e, 1] < n, "links must join variables of the graph")
        require(0 <= tables[e] < n_tables, "links must use tables that exist")
    return 0


cdef double exponentiate(double *new, const double *log_new, int n) noexcept nogil:
    """Compute the numbers of a message from their logarithms. Return the least of those whose logarithm is finite."""
    cdef double smallest = 1.0
    cdef int k
    for k in range(n):
        new[k] = exp(log_new[k])
        smallest = fmin(smallest, new[k] if log_new[k] > -INFINITY else 1.0)
    return smallest
