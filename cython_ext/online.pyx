# cython: language_level=3
"""Online learning of linear chains: averaged perceptron, passive aggressive, AROW and SGD, one sequence at a time.

Called by ``herdner.crf.online``. A weight vector has one number for each entry of `OnlineChains` (an attribute with a
tag), and then one for each learned transition.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp, isfinite, log, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from herdner._ext.memory cimport own, require_offsets

cdef enum:
    INSENSITIVE_COST = 1
    MARGIN_PERCEPTRON = 3

PERCEPTRON = MARGIN_PERCEPTRON


@cython.final
cdef class OnlineChains:
    """Sequences with sparse attributes and the tags that each item may have; all arrays are copied and checked.

    ``offsets`` int64[S + 1]: borders of the sequences. ``starts`` int64[n + 1] and ``uses`` int32[m]: item t uses the
    entries ``uses[starts[t]:starts[t + 1]]``. ``values`` float64[m], or None for 1. ``entry_tags`` uint8[E]: tag of
    each entry. ``states`` int32[n]: tag of each item, or -1 if it may have several. ``allowed`` uint8[n, K].
    ``learned`` bool[K, K]: transitions with a weight. ``fixed`` float64[K, K]: log-potentials that are added to the
    weights of transitions; -inf forbids a transition.
    """
    cdef const int64_t[::1] offsets, starts
    cdef const int32_t[::1] uses, states
    cdef const double[::1] values
    cdef const uint8_t[::1] entry_tags
    cdef const uint8_t[:, ::1] allowed
    cdef const int32_t[:, ::1] pairs
    cdef const double[:, ::1] fixed
    cdef int64_t n_weights, longest
    cdef int n_states

    def __cinit__(self, offsets, starts, uses, values, entry_tags, states, allowed, learned, fixed):
        offsets, starts = own(offsets, np.int64, 1, "offsets"), own(starts, np.int64, 1, "starts")
        uses, states = own(uses, np.int32, 1, "uses"), own(states, np.int32, 1, "states")
        entry_tags, allowed = own(entry_tags, np.uint8, 1, "entry_tags"), own(allowed, np.uint8, 2, "allowed")
        learned, fixed = own(learned, np.bool_, 2, "learned"), own(fixed, np.float64, 2, "fixed")
        n, m = len(states), len(uses)
        n_states = fixed.shape[0]
        require_offsets(offsets, n, "offsets")
        require_offsets(starts, m, "starts")
        if len(starts) != n + 1:
            raise ValueError("starts must have a border for each item")
        if fixed.shape != (n_states, n_states) or learned.shape != fixed.shape or not 1 <= n_states <= 256:
            raise ValueError("learned and fixed must have shape [K, K] with 1 to 256 tags")
        if allowed.shape != (n, n_states):
            raise ValueError("allowed must have shape [n, K]")
        if m and not 0 <= uses.min() <= uses.max() < len(entry_tags):
            raise ValueError("uses must be indices of entries")
        if (len(entry_tags) and entry_tags.max() >= n_states
                or n and not -1 <= states.min() <= states.max() < n_states):
            raise ValueError("tags must be indices below K")
        if np.isnan(fixed).any() or (fixed == np.inf).any():
            raise ValueError("fixed must be finite or -inf")
        if values is not None:
            values = own(values, np.float64, 1, "values")
            if values.shape != (m,) or not np.isfinite(values).all():
                raise ValueError("values must be a finite number for each use")
        pairs = np.full(learned.shape, -1, np.int32)
        pairs[learned] = np.arange(len(entry_tags), len(entry_tags) + learned.sum())
        self.offsets, self.starts, self.uses, self.values = offsets, starts, uses, values
        self.entry_tags, self.states, self.allowed = entry_tags, states, allowed
        self.pairs, self.fixed, self.n_states = pairs, fixed, n_states
        self.n_weights = len(entry_tags) + int(learned.sum())
        self.longest = max(int(np.diff(offsets).max(initial=1)), 1)

    def __len__(self):
        return self.offsets.shape[0] - 1


@cython.internal
cdef class Pass:
    """Memory of one pass over sequences, and the weights that it changes in place."""
    cdef OnlineChains data
    cdef const int64_t[::1] order
    cdef const double[::1] sample_weights
    cdef double[::1] weights, second
    cdef double[:, ::1] transition, unary, scores, back, pair_sums, factors
    cdef double[::1] delta, scales
    cdef int32_t[:, ::1] previous
    cdef int32_t[::1] gold, best
    cdef int64_t[::1] active
    cdef uint8_t[::1] is_active
    cdef int64_t n_active

    def __cinit__(self, OnlineChains data not None, order, sample_weights, double[::1] weights not None,
                  double[::1] second):
        cdef int64_t n = data.longest, K = data.n_states
        order = own(order, np.int64, 1, "order")
        sample_weights = own(sample_weights, np.float64, 1, "sample_weights")
        if len(order) and not 0 <= order.min() <= order.max() < len(data):
            raise ValueError("order must contain indices of sequences")
        if sample_weights.shape != (len(data),) or not np.isfinite(sample_weights).all():
            raise ValueError("there must be a finite weight for each sequence")
        if weights.shape[0] != data.n_weights or second is not None and second.shape[0] != data.n_weights:
            raise ValueError(f"there must be {data.n_weights} weights")
        self.data, self.order, self.sample_weights = data, order, sample_weights
        self.weights, self.second = weights, second
        self.transition, self.pair_sums, self.factors = np.empty((K, K)), np.empty((K, K)), np.empty((K, K))
        self.unary, self.scores, self.back = np.empty((n, K)), np.empty((n, K)), np.empty((n, K))
        self.previous, self.scales = np.empty((n, K), np.int32), np.empty(n)
        self.gold, self.best = np.empty(n, np.int32), np.empty(n, np.int32)
        self.delta, self.is_active = np.zeros(data.n_weights), np.zeros(data.n_weights, np.uint8)
        self.active, self.n_active = np.empty(data.n_weights, np.int64), 0

    cdef void fill(self, int64_t first, int64_t n, double scale) noexcept nogil:
        """Fill the log-potentials of a sequence with items ``first`` to ``first`` + n - 1."""
        cdef int64_t t, i
        cdef int k, j
        cdef double value
        for k in range(self.data.n_states):
            for j in range(self.data.n_states):
                self.transition[k, j] = self.data.fixed[k, j]
                if self.data.pairs[k, j] >= 0:
                    self.transition[k, j] += scale * self.weights[self.data.pairs[k, j]]
        memset(&self.unary[0, 0], 0, n * self.data.n_states * sizeof(double))
        for t in range(n):
            for i in range(self.data.starts[first + t], self.data.starts[first + t + 1]):
                value = scale if self.data.values is None else scale * self.data.values[i]
                self.unary[t, self.data.entry_tags[self.data.uses[i]]] += value * self.weights[self.data.uses[i]]

    cdef double viterbi(self, int64_t first, int64_t n, bint constrained, int32_t[::1] states) noexcept nogil:
        """Find the best tags (among those that are allowed, if ``constrained``) and return their score."""
        cdef int64_t t
        cdef int k, j, best
        cdef double score, top
        for t in range(n):
            for k in range(self.data.n_states):
                top, best = -INFINITY, 0
                if t:
                    for j in range(self.data.n_states):
                        score = self.scores[t - 1, j] + self.transition[j, k]
                        if score > top:
                            top, best = score, j
                else:
                    top = 0.0
                if constrained and not self.data.allowed[first + t, k]:
                    top = -INFINITY
                self.scores[t, k], self.previous[t, k] = top + self.unary[t, k], best
        top, best = -INFINITY, 0
        for k in range(self.data.n_states):
            if self.scores[n - 1, k] > top:
                top, best = self.scores[n - 1, k], k
        for t in range(n - 1, -1, -1):
            states[t] = best
            best = self.previous[t, best]
        return top

    cdef double find_gold(self, int64_t first, int64_t n) noexcept nogil:
        """Find the annotated tags, or the best ones that are allowed, and return their score."""
        cdef int64_t t
        cdef double score = 0.0
        for t in range(n):
            if self.data.states[first + t] < 0:
                return self.viterbi(first, n, True, self.gold)
        for t in range(n):
            self.gold[t] = self.data.states[first + t]
            score += self.unary[t, self.gold[t]]
            if t:
                score += self.transition[self.gold[t - 1], self.gold[t]]
        return score

    cdef int64_t n_errors(self, int64_t n) noexcept nogil:
        cdef int64_t t, wrong = 0
        for t in range(n):
            wrong += self.gold[t] != self.best[t]
        return wrong

    cdef inline void change(self, int64_t index, double value) noexcept nogil:
        if not self.is_active[index]:
            self.is_active[index], self.active[self.n_active] = 1, index
            self.n_active += 1
        self.delta[index] += value

    cdef void find_delta(self, int64_t first, int64_t n) noexcept nogil:
        """Fill ``delta`` with the features of the annotated tags minus those of the best tags."""
        cdef int64_t t, i
        cdef int32_t gold, best, tag
        cdef double value
        for i in range(self.n_active):
            self.delta[self.active[i]], self.is_active[self.active[i]] = 0.0, 0
        self.n_active = 0
        for t in range(n):
            gold, best = self.gold[t], self.best[t]
            if gold != best:
                for i in range(self.data.starts[first + t], self.data.starts[first + t + 1]):
                    tag = self.data.entry_tags[self.data.uses[i]]
                    value = 1.0 if self.data.values is None else self.data.values[i]
                    if tag == gold:
                        self.change(self.data.uses[i], value)
                    elif tag == best:
                        self.change(self.data.uses[i], -value)
            if t and (gold != best or self.gold[t - 1] != self.best[t - 1]):
                if self.data.pairs[self.gold[t - 1], gold] >= 0:
                    self.change(self.data.pairs[self.gold[t - 1], gold], 1.0)
                if self.data.pairs[self.best[t - 1], best] >= 0:
                    self.change(self.data.pairs[self.best[t - 1], best], -1.0)

    cdef double sums(self, int64_t first, int64_t n, bint constrained) noexcept nogil:
        """Run forward-backward: ``back`` has the marginals of items, ``pair_sums`` those of pairs. Returns log Z.

        The result is not finite if numbers overflow or no labelling is possible.
        """
        cdef int64_t t
        cdef int k, j
        cdef double largest = -INFINITY, top, total, log_z = 0.0, share
        for k in range(self.data.n_states):
            for j in range(self.data.n_states):
                largest = max(largest, self.transition[k, j])
        if largest == -INFINITY:
            largest = 0.0
        for k in range(self.data.n_states):
            for j in range(self.data.n_states):
                self.factors[k, j] = exp(self.transition[k, j] - largest)
        for t in range(n):
            top = -INFINITY
            for k in range(self.data.n_states):
                if not constrained or self.data.allowed[first + t, k]:
                    top = max(top, self.unary[t, k])
            total = 0.0
            for k in range(self.data.n_states):
                self.back[t, k] = 0.0  # first the factor of the item alone
                if not constrained or self.data.allowed[first + t, k]:
                    self.back[t, k] = exp(self.unary[t, k] - top)
                self.scores[t, k] = self.back[t, k]
                if t:
                    share = 0.0
                    for j in range(self.data.n_states):
                        share += self.scores[t - 1, j] * self.factors[j, k]
                    self.scores[t, k] *= share
                total += self.scores[t, k]
            if not (total > 0.0 and isfinite(total)):
                return INFINITY
            for k in range(self.data.n_states):
                self.scores[t, k] /= total
            self.scales[t] = total
            log_z += log(total) + top + (largest if t else 0.0)
        self.backward(n)
        return log_z

    cdef void backward(self, int64_t n) noexcept nogil:
        """Turn ``back`` from factors of items into marginals, and sum the marginals of pairs."""
        cdef int64_t t
        cdef int k, j, n_states = self.data.n_states
        cdef double total
        cdef double[:, ::1] message = self.unary   # the log-potentials are not needed any more
        memset(&self.pair_sums[0, 0], 0, n_states * n_states * sizeof(double))
        for k in range(n_states):
            message[n - 1, k] = 1.0
        for t in range(n - 1, 0, -1):
            for j in range(n_states):
                total = 0.0
                for k in range(n_states):
                    message[t - 1, j] = self.factors[j, k] * self.back[t, k] * message[t, k] / self.scales[t]
                    self.pair_sums[j, k] += self.scores[t - 1, j] * message[t - 1, j]
                    total += message[t - 1, j]
                message[t - 1, j] = total
        for t in range(n):
            for k in range(n_states):
                self.back[t, k] = self.scores[t, k] * message[t, k]

    cdef void add_expectation(self, int64_t first, int64_t n, double gain) noexcept nogil:
        """Add ``gain`` times the expected features under the marginals to the weights."""
        cdef int64_t t, i
        cdef int k, j
        cdef double value
        for t in range(n):
            for i in range(self.data.starts[first + t], self.data.starts[first + t + 1]):
                value = gain if self.data.values is None else gain * self.data.values[i]
                self.weights[self.data.uses[i]] += value * self.back[t, self.data.entry_tags[self.data.uses[i]]]
        for k in range(self.data.n_states):
            for j in range(self.data.n_states):
                if self.data.pairs[k, j] >= 0:
                    self.weights[self.data.pairs[k, j]] += gain * self.pair_sums[k, j]

    cdef double move(self, int64_t s, double scale, double gain) noexcept nogil:
        """Take a gradient step on sequence s, and return its loss at the weights before the step."""
        cdef int64_t first = self.data.offsets[s], n = self.data.offsets[s + 1] - self.data.offsets[s]
        cdef double log_z, score
        if n == 0:
            return 0.0
        self.fill(first, n, scale)
        score = self.find_gold(first, n)
        log_z = self.sums(first, n, False)
        if not isfinite(log_z):
            return INFINITY
        self.add_expectation(first, n, -gain)
        if is_complete(self.data.states, first, n):
            self.add_gold(first, n, gain)
        else:
            self.fill_again(first, n, scale, gain)
            score = self.sums(first, n, True)
            if not isfinite(score):
                return INFINITY
            self.add_expectation(first, n, gain)
        return log_z - score

    cdef void fill_again(self, int64_t first, int64_t n, double scale, double gain) noexcept nogil:
        """Fill the log-potentials of the weights before the step whose first half has just been taken."""
        self.add_expectation(first, n, gain)
        self.fill(first, n, scale)
        self.add_expectation(first, n, -gain)

    cdef void add_gold(self, int64_t first, int64_t n, double gain) noexcept nogil:
        """Add ``gain`` times the features of the annotated tags to the weights."""
        cdef int64_t t, i
        for t in range(n):
            for i in range(self.data.starts[first + t], self.data.starts[first + t + 1]):
                if self.data.entry_tags[self.data.uses[i]] == self.gold[t]:
                    self.weights[self.data.uses[i]] += gain if self.data.values is None else gain * self.data.values[i]
            if t and self.data.pairs[self.gold[t - 1], self.gold[t]] >= 0:
                self.weights[self.data.pairs[self.gold[t - 1], self.gold[t]]] += gain

    cdef double errors(self, int64_t s, int64_t* n_errors, double* margin) noexcept nogil:
        """Decode sequence s: count the errors, and return the best score minus that of the annotated tags."""
        cdef int64_t first = self.data.offsets[s], n = self.data.offsets[s + 1] - self.data.offsets[s]
        cdef double gold
        n_errors[0] = 0
        if n == 0:
            return 0.0
        self.fill(first, n, 1.0)
        gold = self.find_gold(first, n)
        margin[0] = self.viterbi(first, n, False, self.best) - gold
        n_errors[0] = self.n_errors(n)
        if n_errors[0]:
            self.find_delta(first, n)
        return gold


cdef bint is_complete(const int32_t[::1] states, int64_t first, int64_t n) noexcept nogil:
    cdef int64_t t
    for t in range(first, first + n):
        if states[t] < 0:
            return False
    return True


def margin_epoch(data, order, sample_weights, double[::1] weights not None, double[::1] sums not None, double count,
                 int kind, double c, bint error_sensitive):
    """Update ``weights`` and ``sums`` in place, sequence by sequence; return (loss, count).

    ``kind`` is PERCEPTRON (Collins 2002), or 0, 1 or 2 for passive aggressive without slack, PA-I and PA-II (Crammer et
    al. 2006). ``count`` is 1 plus the number of sequences seen before; the averaged weights are weights - sums / count.
    """
    cdef Pass p = Pass(data, order, sample_weights, weights, sums)
    cdef int64_t i, k, s, wrong = 0
    cdef double loss = 0.0, step, cost, norm, margin = 0.0
    with nogil:
        for i in range(p.order.shape[0]):
            s = p.order[i]
            if p.errors(s, &wrong, &margin) == -INFINITY:
                loss = INFINITY
                break
            if wrong:
                if kind == MARGIN_PERCEPTRON:
                    cost, step = <double> wrong / (p.data.offsets[s + 1] - p.data.offsets[s]), 1.0
                else:
                    cost = margin + (sqrt(<double> wrong) if error_sensitive else <double> INSENSITIVE_COST)
                    norm = 0.0
                    for k in range(p.n_active):
                        norm += p.delta[p.active[k]] * p.delta[p.active[k]]
                    if kind == 2:
                        step = cost / (norm + 0.5 / c)
                    else:
                        step = cost / norm if norm > 0.0 else 0.0
                        if kind == 1:
                            step = min(c, step)
                step *= p.sample_weights[s]
                for k in range(p.n_active):
                    weights[p.active[k]] += step * p.delta[p.active[k]]
                    sums[p.active[k]] += step * count * p.delta[p.active[k]]
                loss += cost * p.sample_weights[s]
            count += 1.0
    return loss, count


def arow_epoch(data, order, sample_weights, double[::1] weights not None, double[::1] variances not None,
               double gamma):
    """Update the means ``weights`` and the ``variances`` in place (AROW, Crammer et al. 2009); return the loss."""
    cdef Pass p = Pass(data, order, sample_weights, weights, variances)
    cdef int64_t i, j, k, s, wrong = 0
    cdef double loss = 0.0, share, cost, square, margin = 0.0
    with nogil:
        for i in range(p.order.shape[0]):
            s = p.order[i]
            if p.errors(s, &wrong, &margin) == -INFINITY:
                loss = INFINITY
                break
            if wrong:
                cost, share = margin + wrong, gamma
                for j in range(p.n_active):
                    k = p.active[j]
                    p.delta[k] *= p.sample_weights[s]
                    share += p.delta[k] * p.delta[k] * variances[k]
                for j in range(p.n_active):
                    k = p.active[j]
                    square = p.delta[k] * p.delta[k]
                    weights[k] += cost / share * variances[k] * p.delta[k]
                    variances[k] = 1.0 / (1.0 / variances[k] + square / gamma)
                loss += cost * p.sample_weights[s]
    return loss


def sgd_epoch(data, order, sample_weights, double[::1] weights not None, double t, double rate, double decay,
              double penalty):
    """Update ``weights`` in place by stochastic gradient descent (Shalev-Shwartz et al. 2007); return (loss, t).

    The learning rate of step t is rate / (1 + decay * rate * t); ``penalty`` / 2 is the weight of the squared norm in
    the loss of each sequence. The loss is that of the sequences alone, and infinite if numbers overflow.
    """
    cdef Pass p = Pass(data, order, sample_weights, weights, None)
    cdef int64_t i, k, s
    cdef double loss = 0.0, step, scale = 1.0
    with nogil:
        for i in range(p.order.shape[0]):
            s = p.order[i]
            step = rate / (1.0 + decay * rate * t)
            scale *= 1.0 - step * penalty
            if not scale > 1e-100:   # the first step of a high rate forgets the start
                for k in range(p.data.n_weights):
                    weights[k] = 0.0
                scale = 1.0
            loss += p.sample_weights[s] * p.move(s, scale, p.sample_weights[s] * step / scale)
            t += 1.0
        for k in range(p.data.n_weights):
            weights[k] *= scale
    return loss, t
