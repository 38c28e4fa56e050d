# cython: language_level=3
"""Belief propagation on factors of any number of variables, by sums or maxima, in sweeps or by residuals.

Called by ``herdner.inference.factor_messages``, which lays out the graph.

Axis a of factor f is slot ``factor_at[f] + a``. It stores the message from f to its variable there, scaled to a maximum
of 1. A factor can have a weight w below 1 (tree-reweighted belief propagation): its table is then the potential to the
power 1 / w, and the belief of a variable is the product of all messages to it, each to the power w of its factor. The
cavity belief, which the variable sends to a factor, is the belief divided by the message from there.

All results are those of the log domain. Numbers are multiplied where nothing can underflow: a message is stored as
numbers if none is below `SMALLEST_ENTRY`, and a belief is computed from numbers if none is below `SMALLEST_BELIEF`.
A product of factor and messages that has a smaller entry is computed again with logarithms. An entry of -inf in the
logarithm of a message means that no allowed joint state has the variable in this state; a belief of -inf is sent as it
is.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t

from heap cimport Heap, move_down, move_up
from herdner._ext.memory cimport own, require, require_offsets
from rows cimport BUDGET, EXP_CELLS, MOST_VARIABLES
from sums cimport log_sum_exp


cdef double SMALLEST_ENTRY = 1e-100   # of a product of a factor and messages with maxima of 1
cdef double SMALLEST_BELIEF = 1e-180  # of a product of messages, scaled to a maximum of 1
cdef double LOG_SMALLEST_ENTRY = -230.25850929940458


cdef class FactorMessages:
    """Messages and beliefs of a graph in the layout of `herdner.inference.factor_messages.FactorLayout`."""
    cdef const int32_t[::1] sizes, scope, slots   # [V]; [S], the variable of each slot; [S], the slots by variable
    cdef const int64_t[::1] factor_at, starts     # [F + 1], the first slot of each factor; [V + 1], into `slots`
    cdef const int32_t[::1] factor_of             # [S]
    cdef const int64_t[::1] table_at, message_at, belief_at  # [F + 1]; [S + 1]; [V + 1]
    cdef const double[::1] log_tables, tables, tops, weights  # tables / tops: scaled to a maximum of 1; the maxima
    cdef double damping, tolerance
    cdef bint maximise, weighted
    cdef double[::1] messages, log_messages       # log_messages only where `numeric` is 0
    cdef uint8_t[::1] numeric                     # [S]
    cdef double[::1] beliefs, log_beliefs, probabilities
    cdef uint8_t[::1] in_logs                     # [V]: the belief is also stored as logarithms
    # Work space of one factor: a row for each of its axes, and the two tables of `contract`.
    cdef double[::1] inputs, log_inputs, outputs, fresh, log_fresh, products, partial_sums
    cdef bint fresh_in_logs                       # the fresh messages of the factor are also stored as logarithms
    # The heap of slots: the largest estimate of a residual first. Keys are negative estimates.
    cdef Heap heap
    cdef int32_t[::1] items, place                # [S], [S]
    cdef double[::1] key                          # [S]
    cdef readonly double change                   # the largest change of a message or a belief in the last sweep
    cdef readonly int64_t fault                   # a variable without a possible state, or -1

    def __cinit__(self, layout, double damping, double tolerance, bint maximise):
        self.sizes, self.scope = own(layout.sizes, np.int32, 1, "sizes"), own(layout.scope, np.int32, 1, "scope")
        self.factor_at = own(layout.factor_at, np.int64, 1, "factor_at")
        self.log_tables = own(layout.tables, np.float64, 1, "tables")
        self.weights = own(layout.weights, np.float64, 1, "weights")
        self.damping, self.tolerance, self.maximise, self.fault = damping, tolerance, maximise, -1
        self.lay_out()
        cdef int64_t n_slots = self.scope.shape[0], n_entries = self.message_at[n_slots]
        self.weighted = np.any(np.asarray(self.weights) != 1.0)
        self.messages, self.log_messages = np.ones(n_entries), np.zeros(n_entries)
        self.numeric = np.full(n_slots, 0 if self.weighted else 1, np.uint8)
        self.beliefs, self.log_beliefs, self.probabilities = np.ones((3, self.belief_at[self.sizes.shape[0]]))
        self.in_logs = np.zeros(self.sizes.shape[0], np.uint8)
        self.items, self.place = np.arange(n_slots, dtype=np.int32), np.arange(n_slots, dtype=np.int32)
        self.key = np.full(n_slots, -np.inf)
        if n_slots:
            self.heap = Heap(&self.items[0], &self.place[0], &self.key[0], n_slots)
        self.change = INFINITY
        with nogil:
            self.update_beliefs()

    cdef int lay_out(self) except -1:
        """Check all positions, and derive those of tables, messages and beliefs."""
        cdef int64_t n = self.sizes.shape[0], n_slots = self.scope.shape[0], n_factors = self.factor_at.shape[0] - 1
        cdef int64_t f, s, cells, rows, most_rows = 1, most_entries = 1, end = self.log_tables.shape[0]
        cdef int64_t[::1] table_at, message_at, belief_at
        cdef int32_t[::1] factor_of
        cdef double[::1] tables = np.empty(end), tops = np.empty(max(0, n_factors))
        cdef double top
        require_offsets(self.factor_at, n_slots, "factor_at")
        require(self.weights.shape[0] == n_factors, "weights must have an entry for each factor")
        require(n_slots < <int64_t> 1 << 31, "a graph must have fewer than 2^31 slots")
        table_at, message_at = np.zeros(n_factors + 1, np.int64), np.zeros(n_slots + 1, np.int64)
        belief_at, factor_of = np.zeros(n + 1, np.int64), np.empty(n_slots, np.int32)
        for f in range(n):
            require(self.sizes[f] > 0, "sizes must be at least 1")
        for f in range(n_factors):
            require(1 <= self.factor_at[f + 1] - self.factor_at[f] <= MOST_VARIABLES, "factors have 1 to 64 variables")
            cells, rows = 1, 0
            for s in range(self.factor_at[f], self.factor_at[f + 1]):
                require(0 <= self.scope[s] < n, "scope must consist of variables")
                factor_of[s] = <int32_t> f
                rows += cells
                cells *= self.sizes[self.scope[s]]
                require(cells <= end - table_at[f], "tables must have a cell for each joint state of a factor")
                message_at[s + 1] = message_at[s] + self.sizes[self.scope[s]]
            table_at[f + 1] = table_at[f] + cells
            most_rows = max(most_rows, rows)
            most_entries = max(most_entries, message_at[self.factor_at[f + 1]] - message_at[self.factor_at[f]])
            top = -INFINITY
            for s in range(table_at[f], table_at[f + 1]):
                top = larger(self.log_tables[s], top)
            tops[f] = top if top > -INFINITY else 0.0
            for s in range(table_at[f], table_at[f + 1]):
                tables[s] = exp(self.log_tables[s] - tops[f])
        require(table_at[n_factors] == end, "tables must have no further cells")
        counts = np.bincount(np.asarray(self.scope), minlength=n)
        require(n == 0 or counts.min() > 0, "each variable must have a factor")
        self.starts = own(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.int64, 1, "starts")
        self.slots = own(np.argsort(self.scope, kind="stable").astype(np.int32), np.int32, 1, "slots")
        for f in range(n):
            belief_at[f + 1] = belief_at[f] + self.sizes[f]
        self.table_at, self.message_at, self.belief_at = table_at, message_at, belief_at
        self.factor_of, self.tables, self.tops = factor_of, tables, tops
        self.inputs, self.log_inputs, self.outputs, self.fresh, self.log_fresh = np.zeros((5, most_entries))
        self.products, self.partial_sums = np.zeros((2, most_rows))
        return 0

    def sweep(self, int64_t at):
        """Update the messages of all factors, from factor ``at`` on, for a fraction of a second.

        All messages of a sweep are computed from the beliefs before it. Returns the next factor, F at the end of the
        sweep, when the beliefs are updated.
        """
        cdef int64_t spent = 0, n_factors = self.factor_at.shape[0] - 1, s
        require(at >= 0, "positions count from 0")
        with nogil:
            if at == 0:
                self.change = 0.0
            while at < n_factors and spent < BUDGET:
                spent += self.compute(at, -1)
                for s in range(self.factor_at[at], self.factor_at[at + 1]):
                    self.change = larger(self.apply(s), self.change)
                at += 1
            if at >= n_factors:
                self.change = larger(self.update_beliefs(), self.change)
        return at

    def update(self):
        """Compute all beliefs from the messages, as at the end of a sweep."""
        with nogil:
            self.update_beliefs()

    def restart_residuals(self):
        """Set all estimates of residuals to infinity, so that every message is computed once."""
        cdef int64_t s
        with nogil:
            for s in range(self.heap.size):
                self.key[s] = -INFINITY

    def advance(self, int64_t n_messages):
        """Send the message with the largest estimate of its residual, again and again.

        The residual of a message is the change that it makes: the largest change of an entry of the message or of a
        probability of its receiver (Elidan, McGraw and Koller 2006). It is known only when the message is computed.
        Until then its estimate is the sum of the residuals of the messages on which it depends, since it was sent
        (Sutton and McCallum 2007). Messages whose residual is not above the tolerance are not sent.

        Returns the number of messages that were computed, at most ``n_messages`` and those of a fraction of a second;
        and True if no estimate is above the tolerance.
        """
        cdef int64_t spent = 0, count = 0
        cdef int32_t s
        cdef double change
        with nogil:
            while count < n_messages and spent < BUDGET and self.fault < 0 and self.is_pending():
                s = self.items[0]
                spent += self.compute(self.factor_of[s], <int> (s - self.factor_at[self.factor_of[s]]))
                count += 1
                change = self.residual(s)
                if change > self.tolerance:
                    spent += self.send(s, change)
                else:
                    self.key[s] = -change
                    move_down(&self.heap, s)
        return count, not self.is_pending()

    cdef bint is_pending(self) noexcept nogil:
        """Return True if an estimate is above the tolerance."""
        return self.heap.size > 0 and -self.key[self.items[0]] > self.tolerance

    @property
    def marginals(self):
        """The beliefs of all variables, one after the other, as probabilities: float64[sum of sizes]."""
        return np.array(self.probabilities)

    def log_z(self):
        """Return the Bethe approximation of log Z, or its tree-reweighted version (sums only).

        It is the sum of the log-partition functions of the beliefs of factors and variables, minus those of the slots,
        in which the scales of the messages cancel (Yedidia, Freeman and Weiss 2005).
        """
        cdef double total = 0.0, norm
        cdef int64_t f, s, v, first, k, n_factors = self.factor_at.shape[0] - 1
        cdef double *x = &self.inputs[0]
        cdef double *out = &self.outputs[0]
        with nogil:
            for f in range(n_factors):
                first = self.factor_at[f]
                for s in range(first, self.factor_at[f + 1]):
                    self.cavity(s)
                self.contract(f, 0, False)
                v, norm = self.scope[first], 0.0
                for k in range(self.sizes[v]):
                    norm += x[k] * out[k]
                if norm >= SMALLEST_ENTRY:
                    norm = log(norm)
                else:
                    self.take_logs(f)
                    self.contract(f, 0, True)
                    for k in range(self.sizes[v]):
                        out[k] += self.log_inputs[k]
                    norm = log_sum_exp(out, self.sizes[v])
                total += self.weights[f] * (norm + self.tops[f])
                for s in range(first, self.factor_at[f + 1]):
                    total -= self.weights[f] * self.log_slot(s)
            for v in range(self.sizes.shape[0]):
                self.log_sum(v, x)
                total += log_sum_exp(x, self.sizes[v])
        return total

    def mutual_information(self):
        """Return the mutual information of the variables of each factor under its belief, float64[F] in nats."""
        cdef int64_t f, s, cells, cell, n_factors = self.factor_at.shape[0] - 1, rest, first
        cdef double[::1] result = np.zeros(n_factors)
        cdef double[::1] joint = np.empty(max(1, int(np.diff(self.table_at).max(initial=0))))
        cdef double top, total
        cdef int64_t a
        with nogil:
            for f in range(n_factors):
                first, cells = self.factor_at[f], self.table_at[f + 1] - self.table_at[f]
                for s in range(first, self.factor_at[f + 1]):
                    self.cavity(s)
                self.take_logs(f)
                top, total = -INFINITY, 0.0
                for cell in range(cells):
                    joint[cell], rest = self.log_tables[self.table_at[f] + cell], cell
                    for s in range(self.factor_at[f + 1] - 1, first - 1, -1):
                        joint[cell] += self.log_inputs[self.message_at[s] - self.message_at[first]
                                                       + rest % self.sizes[self.scope[s]]]
                        rest //= self.sizes[self.scope[s]]
                    top = larger(joint[cell], top)
                for cell in range(cells):
                    joint[cell] = exp(joint[cell] - top)
                    total += joint[cell]
                for a in range(self.message_at[self.factor_at[f + 1]] - self.message_at[first]):
                    self.outputs[a] = 0.0
                for cell in range(cells):
                    joint[cell] /= total
                    rest = cell
                    result[f] += positive_log(joint[cell])
                    for s in range(self.factor_at[f + 1] - 1, first - 1, -1):
                        a = self.message_at[s] - self.message_at[first] + rest % self.sizes[self.scope[s]]
                        self.outputs[a] += joint[cell]
                        rest //= self.sizes[self.scope[s]]
                for a in range(self.message_at[self.factor_at[f + 1]] - self.message_at[first]):
                    result[f] -= positive_log(self.outputs[a])
        return np.asarray(result)

    def forest_log_z(self, order):
        """Return log Z of the reparametrised graph on a forest (Wainwright, Jaakkola and Willsky 2005, eq. 22).

        ``order`` has the slots of the forest's factors that receive a message, one for each factor, from the leaves to
        the roots. The reparametrised graph has the belief of each variable, and for each factor of the forest its table
        divided by its messages. The mean over forests, in which each factor has its weight as frequency, is at least
        log Z, whatever the messages are.
        """
        cdef int64_t i, f, s, t, v, k, at, b, first, n_slots = self.scope.shape[0]
        cdef double total = 0.0
        cdef double[::1] sums = np.empty(self.belief_at[self.sizes.shape[0]])
        cdef uint8_t[::1] is_root = np.ones(self.sizes.shape[0], np.uint8)
        cdef const int32_t[::1] receivers = own(order, np.int32, 1, "order")
        for i in range(receivers.shape[0]):
            require(0 <= receivers[i] < n_slots, "order must consist of slots")
        with nogil:
            for v in range(self.sizes.shape[0]):
                self.log_sum(v, &sums[self.belief_at[v]])
            for i in range(receivers.shape[0]):
                s = receivers[i]
                f = self.factor_of[s]
                first = self.factor_at[f]
                for t in range(first, self.factor_at[f + 1]):
                    if t == s:
                        continue
                    is_root[self.scope[t]] = 0
                    at, b = self.message_at[t] - self.message_at[first], self.belief_at[self.scope[t]]
                    for k in range(self.sizes[self.scope[t]]):
                        self.log_inputs[at + k] = -INFINITY
                        if sums[b + k] > -INFINITY:
                            self.log_inputs[at + k] = sums[b + k] - self.log_entry(t, k)
                self.contract(f, <int> (s - first), True)
                at, b = self.message_at[s] - self.message_at[first], self.belief_at[self.scope[s]]
                for k in range(self.sizes[self.scope[s]]):
                    if sums[b + k] > -INFINITY:
                        sums[b + k] += self.outputs[at + k] - self.log_entry(s, k)
                total += self.tops[f]
            for v in range(self.sizes.shape[0]):
                if is_root[v]:
                    total += log_sum_exp(&sums[self.belief_at[v]], self.sizes[v])
        return total

    # Beliefs ----------------------------------------------------------------------------------------------------------

    cdef double log_entry(self, int64_t s, int64_t k) noexcept nogil:
        """Return the logarithm of an entry of a message."""
        cdef int64_t at = self.message_at[s] + k
        return log(self.messages[at]) if self.numeric[s] else self.log_messages[at]

    cdef void log_sum(self, int64_t v, double *out) noexcept nogil:
        """Compute the logarithm of the belief of a variable, without a scale."""
        cdef int64_t j, k, s
        cdef double weight
        for k in range(self.sizes[v]):
            out[k] = 0.0
        for j in range(self.starts[v], self.starts[v + 1]):
            s = self.slots[j]
            weight = self.weights[self.factor_of[s]]
            for k in range(self.sizes[v]):
                out[k] += weight * self.log_entry(s, k)

    cdef double update_beliefs(self) noexcept nogil:
        """Update the beliefs of all variables. Return the largest change of a probability."""
        cdef int64_t v
        cdef double change = 0.0
        for v in range(self.sizes.shape[0]):
            change = larger(self.update_belief(v), change)
        return change

    cdef double update_belief(self, int64_t v) noexcept nogil:
        """Update the belief of a variable. Return the largest change of a probability."""
        cdef int64_t k, n = self.sizes[v], at = self.belief_at[v]
        cdef double *belief = &self.beliefs[at]
        cdef double *probability = &self.probabilities[at]
        cdef double total = 0.0, change = 0.0, value
        self.in_logs[v] = not self.multiply(v, belief)
        if self.in_logs[v]:
            self.log_sum(v, &self.log_beliefs[at])
            if not to_numbers(&self.log_beliefs[at], belief, n):
                self.fault = v
                return 0.0
        for k in range(n):
            total += belief[k]
        for k in range(n):
            value = belief[k] / total
            change = larger(fabs(value - probability[k]), change)
            probability[k] = value
        return change

    cdef bint multiply(self, int64_t v, double *belief) noexcept nogil:
        """Compute the belief of a variable as numbers, scaled to a maximum of 1. Return False if one is too small."""
        cdef int64_t j, k, s, n = self.sizes[v]
        cdef const double *message
        cdef double least
        if self.weighted:
            return False
        for k in range(n):
            belief[k] = 1.0
        for j in range(self.starts[v], self.starts[v + 1]):
            s = self.slots[j]
            if not self.numeric[s]:
                return False
            message = &self.messages[self.message_at[s]]
            least = 1.0
            for k in range(n):
                belief[k] *= message[k]
                least = smaller(belief[k], least)
            if least < SMALLEST_BELIEF and not scale(belief, n) >= SMALLEST_BELIEF:
                return False
        return scale(belief, n) >= SMALLEST_BELIEF

    cdef void cavity(self, int64_t s) noexcept nogil:
        """Compute what the variable of a slot sends to its factor, in ``inputs`` or, if in logarithms, in both."""
        cdef int64_t v = self.scope[s], f = self.factor_of[s], k, n = self.sizes[v], at
        cdef const double *message = &self.messages[self.message_at[s]]
        cdef const double *belief = &self.beliefs[self.belief_at[v]]
        cdef double *x
        cdef double *lx
        at = self.message_at[s] - self.message_at[self.factor_at[f]]
        x, lx = &self.inputs[at], &self.log_inputs[at]
        if not self.in_logs[v]:
            for k in range(n):
                x[k] = belief[k] / message[k]
            scale(x, n)
            return
        belief = &self.log_beliefs[self.belief_at[v]]
        for k in range(n):
            lx[k] = belief[k] - self.log_entry(s, k) if belief[k] > -INFINITY else -INFINITY
        if not to_numbers(lx, x, n):
            self.fault = v

    cdef void take_logs(self, int64_t f) noexcept nogil:
        """Compute the logarithms of those inputs of a factor that `cavity` has computed as numbers."""
        cdef int64_t s, k, at, first = self.factor_at[f]
        for s in range(first, self.factor_at[f + 1]):
            if not self.in_logs[self.scope[s]]:
                at = self.message_at[s] - self.message_at[first]
                for k in range(self.sizes[self.scope[s]]):
                    self.log_inputs[at + k] = log(self.inputs[at + k])

    cdef double log_slot(self, int64_t s) noexcept nogil:
        """Return the logarithm of the sum over states of the message of a slot and what `cavity` has computed."""
        cdef int64_t k, f = self.factor_of[s], at = self.message_at[s] - self.message_at[self.factor_at[f]]
        cdef double total = 0.0
        for k in range(self.sizes[self.scope[s]]):
            total += self.inputs[at + k] * self.messages[self.message_at[s] + k]
        if total >= SMALLEST_ENTRY:
            return log(total)
        self.take_logs(f)
        for k in range(self.sizes[self.scope[s]]):
            self.outputs[k] = self.log_inputs[at + k] + self.log_entry(s, k)
        return log_sum_exp(&self.outputs[0], self.sizes[self.scope[s]])

    # Messages ---------------------------------------------------------------------------------------------------------

    cdef int64_t compute(self, int64_t f, int target) noexcept nogil:
        """Compute fresh messages to axis ``target`` of a factor, or to all axes if it is -1.

        Returns the number of cells visited.
        """
        cdef int64_t s, k, at, first = self.factor_at[f], end = self.factor_at[f + 1]
        cdef int64_t cells = self.table_at[f + 1] - self.table_at[f]
        cdef int64_t spent = 2 * cells + self.message_at[end] - self.message_at[first]
        cdef int64_t low = first if target < 0 else first + target, high = end if target < 0 else low + 1
        cdef double least = 1.0
        for s in range(first, end):
            if target < 0 or s != low:
                self.cavity(s)
        self.contract(f, target, False)
        for k in range(self.message_at[low] - self.message_at[first], self.message_at[high] - self.message_at[first]):
            least = smaller(self.outputs[k], least)
        self.fresh_in_logs = not least >= SMALLEST_ENTRY
        if self.fresh_in_logs:
            spent *= EXP_CELLS
            self.take_logs(f)
            self.contract(f, target, True)
        for s in range(low, high):
            at = self.message_at[s] - self.message_at[first]
            for k in range(at, at + self.sizes[self.scope[s]]):
                if self.fresh_in_logs:
                    self.log_fresh[k] = self.outputs[k]
                else:
                    self.fresh[k] = self.outputs[k]
            if not self.fresh_in_logs:
                scale(&self.fresh[at], self.sizes[self.scope[s]])
            elif not to_numbers(&self.log_fresh[at], &self.fresh[at], self.sizes[self.scope[s]]):
                self.fault = self.scope[s]
        return spent

    cdef double log_fresh_entry(self, int64_t at) noexcept nogil:
        """Return the logarithm of an entry of a fresh message."""
        return self.log_fresh[at] if self.fresh_in_logs else log(self.fresh[at])

    cdef double apply(self, int64_t s) noexcept nogil:
        """Replace the message of a slot by the fresh one, damped. Return the largest change of an entry."""
        cdef int64_t k, n = self.sizes[self.scope[s]], at = self.message_at[s]
        cdef int64_t origin = self.message_at[self.factor_at[self.factor_of[s]]]
        cdef double *message = &self.messages[at]
        cdef double *fresh = &self.fresh[at - origin]
        cdef double *logs = &self.log_messages[at]
        cdef double change = 0.0, old, new
        if self.numeric[s] and not self.fresh_in_logs:
            if self.damping < 1.0:
                for k in range(n):
                    if self.damping == 0.5:
                        fresh[k] = sqrt(message[k] * fresh[k])
                    else:
                        fresh[k] = message[k] * exp(self.damping * log(fresh[k] / message[k]))
                scale(fresh, n)
        else:
            for k in range(n):
                old, new = self.log_entry(s, k), self.log_fresh_entry(at - origin + k)
                logs[k] = new
                if self.damping < 1.0:
                    logs[k] = old + self.damping * (new - old) if old > -INFINITY and new > -INFINITY else -INFINITY
            if not to_numbers(logs, fresh, n):
                self.fault = self.scope[s]
            self.numeric[s] = not self.weighted
            for k in range(n):
                if logs[k] < LOG_SMALLEST_ENTRY:
                    self.numeric[s] = 0
        for k in range(n):
            change = larger(fabs(fresh[k] - message[k]), change)
            message[k] = fresh[k]
        return change

    cdef void contract(self, int64_t f, int target, bint in_logs) noexcept nogil:
        """Compute the outputs of axis ``target`` of a factor, or those of all axes if it is -1.

        The output of an axis is the sum (or maximum) over all other axes of the table times their inputs. Axes are
        summed out from the last one to the first; what is left has a row for each joint state of the axes before.
        ``products`` has the product of their inputs for each row.
        """
        cdef int64_t first = self.factor_at[f], rows = 1, size, r
        cdef int arity = <int> (self.factor_at[f + 1] - first), d, lowest = 0 if target < 0 else target
        cdef int64_t n_rows[MOST_VARIABLES]
        cdef double *product[MOST_VARIABLES]
        cdef double *free = &self.partial_sums[0]
        cdef const double *table = &self.log_tables[self.table_at[f]] if in_logs else &self.tables[self.table_at[f]]
        cdef const double *x = &self.log_inputs[0] if in_logs else &self.inputs[0]
        cdef double *out = &self.outputs[0]
        cdef int64_t origin = self.message_at[first]
        product[0] = &self.products[0]
        product[0][0] = 0.0 if in_logs else 1.0
        for d in range(arity):
            n_rows[d] = rows
            if d + 1 == arity:
                break
            size = self.sizes[self.scope[first + d]]
            product[d + 1] = product[d] + rows
            if d < target or target < 0:
                multiply_out(product[d], rows, x + self.message_at[first + d] - origin, size, product[d + 1], in_logs)
            rows *= size
        for d in range(arity - 1, lowest - 1, -1):
            size, rows = self.sizes[self.scope[first + d]], n_rows[d]
            if target < 0 or d == target:
                add_rows(table, rows, size, product[d], out + self.message_at[first + d] - origin, in_logs,
                         self.maximise)
            if d > lowest:
                sum_rows(table, rows, size, x + self.message_at[first + d] - origin, free, in_logs, self.maximise)
                table = free
                free += rows
        if in_logs:
            for d in range(lowest, arity if target < 0 else target + 1):
                for r in range(self.message_at[first + d] - origin, self.message_at[first + d + 1] - origin):
                    out[r] -= self.tops[f]

    # Residuals --------------------------------------------------------------------------------------------------------

    cdef double residual(self, int64_t s) noexcept nogil:
        """Return the largest change of an entry or of a probability of the receiver by the fresh message of a slot."""
        cdef int64_t v = self.scope[s], k, n = self.sizes[v], at = self.message_at[s], b = self.belief_at[v]
        cdef int64_t origin = self.message_at[self.factor_at[self.factor_of[s]]]
        cdef const double *fresh = &self.fresh[at - origin]
        cdef double *changed = &self.outputs[0]  # free after `compute`
        cdef double change = 0.0, total = 0.0, weight = self.weights[self.factor_of[s]]
        for k in range(n):
            change = larger(fabs(fresh[k] - self.messages[at + k]), change)
        if self.numeric[s] and not self.fresh_in_logs and not self.in_logs[v]:
            for k in range(n):
                changed[k] = self.beliefs[b + k] * (fresh[k] / self.messages[at + k])
        else:
            for k in range(n):
                changed[k] = self.log_beliefs[b + k] if self.in_logs[v] else log(self.beliefs[b + k])
                if changed[k] > -INFINITY:
                    changed[k] += weight * (self.log_fresh_entry(at - origin + k) - self.log_entry(s, k))
            if not to_numbers(changed, changed, n):
                return 1.0
        for k in range(n):
            total += changed[k]
        for k in range(n):
            change = larger(fabs(changed[k] / total - self.probabilities[b + k]), change)
        return change

    cdef int64_t send(self, int32_t s, double change) noexcept nogil:
        """Send the fresh message of a slot, and raise the estimates of the messages that depend on it.

        Returns the number of cells visited.
        """
        cdef int64_t v = self.scope[s], j, f, spent = 1
        cdef int32_t t, u
        self.apply(s)
        self.update_belief(v)
        self.key[s] = -(1.0 - self.damping) * change
        move_down(&self.heap, s)
        for j in range(self.starts[v], self.starts[v + 1]):
            t = self.slots[j]
            if t == s and not self.weighted:  # a factor with a weight receives a power of its own message
                continue
            f = self.factor_of[t]
            for u in range(<int32_t> self.factor_at[f], <int32_t> self.factor_at[f + 1]):
                if u != t:
                    self.key[u] -= self.damping * change
                    move_up(&self.heap, u)
                    spent += EXP_CELLS
        return spent


# Rows of a table, as numbers or as logarithms -------------------------------------------------------------------------

cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double smaller(double a, double b) noexcept nogil:
    return a if a < b else b


cdef inline double positive_log(double p) noexcept nogil:
    """Return p log p."""
    return p * log(p) if p > 0.0 else 0.0


cdef inline double scale(double *values, int64_t n) noexcept nogil:
    """Divide values by their maximum. Return the smallest value."""
    cdef double top = values[0], least = values[0], factor
    cdef int64_t k
    for k in range(1, n):
        top = larger(values[k], top)
        least = smaller(values[k], least)
    factor = 1.0 / top
    for k in range(n):
        values[k] *= factor
    return least * factor


cdef inline bint to_numbers(double *logs, double *out, int64_t n) noexcept nogil:
    """Subtract the maximum from logarithms, and compute their numbers. Return False if all are -inf."""
    cdef double top = -INFINITY
    cdef int64_t k
    for k in range(n):
        top = larger(logs[k], top)
    if top == -INFINITY:
        return False
    for k in range(n):
        logs[k] -= top
        out[k] = exp(logs[k])
    return True


cdef inline void multiply_out(const double *rows, int64_t n_rows, const double *x, int64_t size, double *out,
                              bint in_logs) noexcept nogil:
    """Compute the product of each row's number with each of ``x``."""
    cdef int64_t r, k
    for r in range(n_rows):
        for k in range(size):
            out[r * size + k] = rows[r] + x[k] if in_logs else rows[r] * x[k]


cdef inline void sum_rows(const double *table, int64_t n_rows, int64_t size, const double *x, double *out, bint in_logs,
                          bint maximise) noexcept nogil:
    """Compute the sum (or maximum) of each row times ``x``."""
    cdef int64_t r, k
    cdef double total, other
    for r in range(n_rows):
        if in_logs:
            total = -INFINITY
            for k in range(size):
                total = larger(table[k] + x[k], total)
            if not maximise and total > -INFINITY:
                other = 0.0
                for k in range(size):
                    other += exp(table[k] + x[k] - total)
                total += log(other)
        elif maximise:
            total = 0.0
            for k in range(size):
                total = larger(table[k] * x[k], total)
        else:
            total, other, k = 0.0, 0.0, 0
            while k + 1 < size:  # two sums, so that one addition need not wait for the other
                total += table[k] * x[k]
                other += table[k + 1] * x[k + 1]
                k += 2
            if k < size:
                total += table[k] * x[k]
            total += other
        out[r] = total
        table += size


cdef inline void add_rows(const double *table, int64_t n_rows, int64_t size, const double *x, double *out, bint in_logs,
                          bint maximise) noexcept nogil:
    """Compute the sum (or maximum) of all rows, each times its number in ``x``."""
    cdef int64_t r, k
    cdef double top, total
    if not in_logs:
        for k in range(size):
            out[k] = 0.0
        for r in range(n_rows):
            if maximise:
                for k in range(size):
                    out[k] = larger(table[k] * x[r], out[k])
            else:
                for k in range(size):
                    out[k] += table[k] * x[r]
            table += size
        return
    for k in range(size):
        top = -INFINITY
        for r in range(n_rows):
            top = larger(table[r * size + k] + x[r], top)
        if not maximise and top > -INFINITY:
            total = 0.0
            for r in range(n_rows):
                total += exp(table[r * size + k] + x[r] - top)
            top += log(total)
        out[k] = top
