# cython: language_level=3, boundscheck=True
"""The conditional log-likelihood of linear chains over sparse features, and its gradient.

Called by ``herdner.crf.chain_data``, which lays out the data, and ``herdner.crf.likelihood``, which sums the parts.

A sparse feature has few weights (entries), one for each tag with which it occurs. Features with many weights are rows
of a dense table, which vector code adds.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from hashing cimport mix

from prefetch cimport prefetch
from herdner._ext.batches cimport BATCH_SEQUENCES, Many, PairCounts
from herdner._ext.memory cimport own, require, require_offsets
from herdner._ext.smoothing cimport (
    CHAIN_OK, Workspace, chain_gather, chain_scatter, longest, node_marginals, smooth, total_log,
)

cdef enum:
    AHEAD = 24   # weights that are prefetched: about those of a token


def number_keys(const uint64_t[::1] keys not None):
    """Return the distinct keys uint64[m] in the order of their first occurrence, and the index of each key int32[n].

    Keys must not be 0.
    """
    cdef Py_ssize_t n = keys.shape[0], i
    cdef uint64_t capacity = 1 << 16, slot, m = 0
    table_array, numbers_array = np.zeros((capacity, 2), np.uint64), np.empty(n, np.int32)
    cdef uint64_t[:, ::1] table = table_array
    cdef int32_t[::1] numbers = numbers_array
    for i in range(n):
        slot = (keys[i] ^ (keys[i] >> 32)) & (capacity - 1)
        while table[slot, 0] != 0 and table[slot, 0] != keys[i]:
            slot = (slot + 1) & (capacity - 1)
        if table[slot, 0] == 0:
            table[slot, 0], table[slot, 1] = keys[i], m
            m += 1
        numbers[i] = <int32_t> table[slot, 1]
        if 2 * m > capacity:
            capacity *= 4
            table_array = enlarge(table_array, capacity)
            table = table_array
    entries = np.asarray(table_array)
    entries = entries[entries[:, 0] != 0]
    distinct = np.empty(m, np.uint64)
    distinct[entries[:, 1].astype(np.int64)] = entries[:, 0]
    return distinct, numbers_array


cdef enlarge(const uint64_t[:, ::1] old, uint64_t capacity):
    new_array = np.zeros((capacity, 2), np.uint64)
    cdef uint64_t[:, ::1] new = new_array
    cdef uint64_t slot
    cdef Py_ssize_t i
    for i in range(old.shape[0]):
        if old[i, 0] != 0:
            slot = (old[i, 0] ^ (old[i, 0] >> 32)) & (capacity - 1)
            while new[slot, 0] != 0:
                slot = (slot + 1) & (capacity - 1)
            new[slot, 0], new[slot, 1] = old[i, 0], old[i, 1]
    return new_array


def count_pairs(const int32_t[::1] numbers not None, const int64_t[::1] starts not None,
                const uint8_t[:, ::1] allowed not None, const int32_t[::1] columns not None, int32_t[:, ::1] counts):
    """Count how often each feature occurs with each tag that its token may have; adds to ``counts`` [columns, K].

    Token t has the features ``numbers[starts[t]:starts[t + 1]]``; feature f is counted in column ``columns[f]``, or not
    at all if that is -1. Tokens that may have any tag are not counted.
    """
    cdef Py_ssize_t t, i, k, n_states = allowed.shape[1], n
    cdef int32_t tags[256]
    cdef int32_t column
    require(n_states <= 256, "there are at most 256 tags")
    with nogil:
        for t in range(starts.shape[0] - 1):
            n = 0
            for k in range(n_states):
                if allowed[t, k]:
                    tags[n] = <int32_t> k
                    n += 1
            if n == n_states and n > 1:
                continue
            for i in range(starts[t], starts[t + 1]):
                column = columns[numbers[i]]
                if column >= 0:
                    for k in range(n):
                        counts[column, tags[k]] += 1


def column_hashes(const int32_t[::1] numbers not None, const int64_t[::1] starts not None, Py_ssize_t n_features):
    """Return a hash of the tokens of each feature: uint64[n_features].

    Features that occur at the same tokens equally often have equal hashes; others differ except with probability 2^-64.
    """
    cdef Py_ssize_t t, i
    hashes_array = np.zeros(n_features, np.uint64)
    cdef uint64_t[::1] hashes = hashes_array
    cdef uint64_t token
    with nogil:
        for t in range(starts.shape[0] - 1):
            token = mix(<uint64_t> t + 1)
            for i in range(starts[t], starts[t + 1]):
                hashes[numbers[i]] += token
    return hashes_array


def lay_out(const int32_t[::1] numbers not None, const int64_t[::1] starts not None,
            const int32_t[::1] columns not None, int32_t n_dense, const int64_t[::1] entry_starts not None):
    """Lay out the columns and weights of tokens. Return (uses int32[m], starts int64[n + 1], middles int64[n]).

    ``uses[starts[t]:middles[t]]`` are the dense columns of token t, those below ``n_dense``;
    ``uses[middles[t]:starts[t + 1]]`` are the weights of its other columns: column c has the weights from
    ``entry_starts[c - n_dense]`` on. ``columns`` int32[features] is -1 for a feature that is not used.
    """
    cdef Py_ssize_t t, i, k = 0, e, n = starts.shape[0] - 1, m = 0
    cdef int32_t column
    require(n_dense >= 0, "the number of dense columns must be at least 0")
    for i in range(numbers.shape[0]):
        column = columns[numbers[i]]
        if column >= n_dense:
            m += entry_starts[column - n_dense + 1] - entry_starts[column - n_dense]
        elif column >= 0:
            m += 1
    uses_array, starts_array, middles_array = np.empty(m, np.int32), np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    cdef int32_t[::1] uses = uses_array
    cdef int64_t[::1] new_starts = starts_array, middles = middles_array
    with nogil:
        for t in range(n):
            for i in range(starts[t], starts[t + 1]):
                column = columns[numbers[i]]
                if 0 <= column < n_dense:
                    uses[k] = column
                    k += 1
            middles[t] = k
            for i in range(starts[t], starts[t + 1]):
                column = columns[numbers[i]] - n_dense
                if column >= 0:
                    for e in range(entry_starts[column], entry_starts[column + 1]):
                        uses[k] = <int32_t> e
                        k += 1
            new_starts[t + 1] = k
    return uses_array, starts_array, middles_array


def mark_used_weights(data, const uint8_t[:, ::1] allowed not None, uint8_t[:, ::1] dense not None,
                      uint8_t[::1] entries not None):
    """Mark the weights that some token uses with a tag that it may have: ``dense`` [D, K], and sparse ``entries``."""
    cdef const int32_t[::1] uses = data.uses
    cdef const int64_t[::1] starts = data.starts, middles = data.middles
    cdef const uint8_t[::1] entry_labels = data.entry_labels
    cdef Py_ssize_t t, i, k
    with nogil:
        for t in range(allowed.shape[0]):
            for i in range(starts[t], middles[t]):
                for k in range(allowed.shape[1]):
                    dense[uses[i], k] |= allowed[t, k]
            for i in range(middles[t], starts[t + 1]):
                entries[uses[i]] |= allowed[t, entry_labels[uses[i]]]


@cython.final
cdef class TrainingData:
    """Private and checked copy of what `add_gradient` reads of a `herdner.crf.chain_data.ChainData`."""
    cdef const int32_t[::1] uses, states
    cdef const int64_t[::1] starts, middles, sentence_offsets
    cdef const uint8_t[::1] entry_labels
    cdef const uint8_t[:, ::1] allowed
    cdef const double[::1] values
    cdef Py_ssize_t n_dense

    def __cinit__(self, data):
        cdef Py_ssize_t n, t, i
        self.uses, self.states = own(data.uses, np.int32, 1, "uses"), own(data.states, np.int32, 1, "states")
        self.starts, self.middles = own(data.starts, np.int64, 1, "starts"), own(data.middles, np.int64, 1, "middles")
        self.sentence_offsets = own(data.sentence_offsets, np.int64, 1, "sentence_offsets")
        self.entry_labels = own(data.entry_labels, np.uint8, 1, "entry_labels")
        self.allowed, self.n_dense = own(data.allowed, np.uint8, 2, "allowed"), len(data.dense)
        if data.values is not None:
            self.values = own(data.values, np.float64, 1, "values")
            require(self.values.shape[0] == self.uses.shape[0], "each use needs a value")
        n = self.states.shape[0]
        require(self.allowed.shape[0] == n == self.middles.shape[0] == self.starts.shape[0] - 1,
                "each token needs allowed tags, a tag and features")
        require(0 < self.allowed.shape[1] <= 256, "there must be 1 to 256 tags")
        require_offsets(self.starts, self.uses.shape[0], "starts")
        require_offsets(self.sentence_offsets, n, "sentence_offsets")
        for i in range(self.entry_labels.shape[0]):
            require(self.entry_labels[i] < self.allowed.shape[1], "entries must have tags that exist")
        for t in range(n):
            require(-1 <= self.states[t] < self.allowed.shape[1], "states must be tags or -1")
            require(self.starts[t] <= self.middles[t] <= self.starts[t + 1], "middles must be between starts")
            for i in range(self.starts[t], self.starts[t + 1]):
                require(0 <= self.uses[i] < (self.n_dense if i < self.middles[t] else self.entry_labels.shape[0]),
                        "uses must be columns and entries that exist")


cdef struct Features:
    const int32_t* uses
    const int64_t* starts
    const int64_t* middles
    const uint8_t* entry_labels
    const double* values   # of the uses; NULL if all are 1
    int64_t n_uses
    int n_states
    int stride


cdef inline void score(const Features* f, int64_t token, const double* dense, const double* entries, double* padded,
                       double* unary) noexcept nogil:
    """Fill ``unary`` [K] with the summed weights of a token's features.

    ``padded`` [2, stride] is scratch for two sums side by side, as each addition waits for the one before.
    """
    cdef int64_t i
    cdef int k
    cdef double value
    memset(padded, 0, 2 * f.stride * sizeof(double))
    for i in range(f.middles[token], f.starts[token + 1]):
        if i + AHEAD < f.n_uses:
            prefetch(&entries[f.uses[i + AHEAD]])
        value = entries[f.uses[i]] if f.values == NULL else f.values[i] * entries[f.uses[i]]
        padded[(i & 1) * f.stride + f.entry_labels[f.uses[i]]] += value
    for k in range(f.stride):
        padded[k] += padded[f.stride + k]
    chain_gather(padded, dense, f.uses + f.starts[token], f.middles[token] - f.starts[token], f.stride)
    for k in range(f.n_states):
        unary[k] = padded[k]


cdef inline void spread(const Features* f, int64_t token, const double* excess, double* padded, double* dense,
                        double* entries) noexcept nogil:
    """Add ``excess`` [K] to the derivatives with respect to the weights of a token's features."""
    cdef int64_t i
    cdef int k
    cdef double value
    for k in range(f.stride):
        padded[k] = excess[k] if k < f.n_states else 0.0
    chain_scatter(dense, padded, f.uses + f.starts[token], f.middles[token] - f.starts[token], f.stride)
    for i in range(f.middles[token], f.starts[token + 1]):
        if i + AHEAD < f.n_uses:
            prefetch(&entries[f.uses[i + AHEAD]])
        value = padded[f.entry_labels[f.uses[i]]]
        entries[f.uses[i]] += value if f.values == NULL else f.values[i] * value


@cython.internal
@cython.boundscheck(False)
cdef class Batch:
    """A batch of sentences: their log-potentials, the results of forward-backward, and their weights."""
    cdef double[:, ::1] unary, nodes
    cdef double[::1] log_z, weights
    cdef int64_t[::1] offsets
    cdef PairCounts pairs
    cdef Many many

    def __cinit__(self, Workspace space, const int64_t[::1] offsets, int64_t most):
        cdef int64_t s, n = offsets.shape[0] - 1, n_tokens = 1
        cdef int n_states = space.c.scaled.n_states
        for s in range(0, n, BATCH_SEQUENCES):
            n_tokens = max(n_tokens, offsets[min(s + BATCH_SEQUENCES, n)] - offsets[s])
        self.unary, self.nodes = np.empty((n_tokens, n_states)), np.empty((n_tokens, n_states))
        self.log_z, self.weights = np.empty(BATCH_SEQUENCES), np.empty(BATCH_SEQUENCES)
        self.offsets = np.zeros(BATCH_SEQUENCES + 1, np.int64)
        self.pairs = PairCounts(n_states, space.c.scaled.stride)
        self.many = Many(space, self.unary, self.offsets, most, self.log_z, self.nodes, None, self.pairs, self.weights)


@cython.internal
@cython.boundscheck(False)
cdef class PartialSentences:
    """Sentences that are partially annotated: forward-backward over the allowed tags."""
    cdef Workspace space
    cdef PairCounts pairs
    cdef const uint8_t[:, ::1] allowed
    cdef double[:, ::1] nodes

    def __cinit__(self, const double[:, :, ::1] transition, int64_t most, const uint8_t[:, ::1] allowed):
        self.space, self.allowed = Workspace(transition, most), allowed
        self.pairs = PairCounts(transition.shape[1], self.space.c.scaled.stride)
        self.nodes = np.empty((most, transition.shape[1]))

    cdef double subtract(self, int64_t at, int64_t n, double* unary, double* nodes, double weight) noexcept nogil:
        """Subtract the marginals over the allowed tags from ``nodes``; ``unary`` is overwritten.

        Returns log Z over the allowed tags, or -inf if they allow no labelling.
        """
        cdef int64_t t
        cdef Py_ssize_t n_states = self.allowed.shape[1], k
        for t in range(n):
            for k in range(n_states):
                if not self.allowed[at + t, k]:
                    unary[t * n_states + k] = -INFINITY
        if smooth(&self.space.c, unary, n, NULL, True) != CHAIN_OK:
            return -INFINITY
        node_marginals(&self.space.c, n, &self.nodes[0, 0])
        self.pairs.add_alone(&self.space.c, n, weight)
        for t in range(n):
            for k in range(n_states):
                nodes[t * n_states + k] -= self.nodes[t, k]
        return total_log(&self.space.c, n)


cdef bint has_all_tags(const int32_t* states, int64_t n) noexcept nogil:
    cdef int64_t t
    for t in range(n):
        if states[t] < 0:
            return False
    return True


@cython.boundscheck(False)
cdef double subtract_tags(const int32_t* states, int64_t n, const double* unary, double* nodes,
                          const double[:, :, ::1] transition, double weight,
                          double[:, ::1] transition_slope) noexcept nogil:
    """Subtract the annotated tags from the marginals ``nodes``, and their pairs from the derivatives.

    Returns the log-potential of the annotated tags.
    """
    cdef Py_ssize_t n_states = transition.shape[1]
    cdef double gain = 0.0
    cdef int64_t t
    for t in range(n):
        gain += unary[t * n_states + states[t]]
        nodes[t * n_states + states[t]] -= 1.0
        if t:
            gain += transition[0, states[t - 1], states[t]]
            transition_slope[states[t - 1], states[t]] -= weight
    return gain


@cython.boundscheck(False)
def add_gradient(TrainingData data not None, Py_ssize_t first, Py_ssize_t last,
                 const double[::1] sentence_weights not None, const double[:, ::1] dense not None,
                 const double[::1] entries not None, const double[:, :, ::1] transition not None,
                 const double[::1] start not None, const double[::1] end not None,
                 double[:, ::1] dense_slope not None, double[::1] entry_slope not None,
                 double[:, ::1] transition_slope not None):
    """Compute the negative log-likelihood of sentences ``first`` to ``last`` - 1 and add its derivatives to the slopes.

    Sentences of weight 0 are skipped. ``start`` and ``end`` [K] are
    log-potentials of the first and the last token of a sentence. Returns (value, fault); fault is a sentence whose tags
    the tables forbid, or -1.
    """
    cdef const int32_t[::1] uses = data.uses, states = data.states
    cdef const int64_t[::1] starts = data.starts, middles = data.middles
    cdef const uint8_t[::1] entry_labels = data.entry_labels
    cdef const uint8_t[:, ::1] allowed = data.allowed
    cdef const double[::1] values = data.values
    cdef int n_states = <int> allowed.shape[1], k
    require(0 <= first <= last < data.sentence_offsets.shape[0], "the sentences must exist")
    require(sentence_weights.shape[0] == data.sentence_offsets.shape[0] - 1, "each sentence needs a weight")
    require(transition.shape[0] == 1 and transition.shape[1] == n_states == transition.shape[2]
            and start.shape[0] == n_states == end.shape[0], "transition, start and end must fit the tags")
    require(dense.shape[0] == data.n_dense and dense.shape[1] == (n_states + 3) // 4 * 4,
            "the dense table needs a padded row for each column")
    require(entries.shape[0] == entry_labels.shape[0], "each entry needs a weight")
    require(dense_slope.shape[0] == dense.shape[0] and dense_slope.shape[1] == dense.shape[1]
            and entry_slope.shape[0] == entries.shape[0] and transition_slope.shape[0] == n_states
            and transition_slope.shape[1] == n_states, "slopes must have the shapes of their weights")
    cdef const int64_t[::1] offsets = data.sentence_offsets[first:last + 1]
    cdef int64_t n_longest = longest(offsets), n_sentences = last - first, s = 0, i, t, n, at, to, fault = -1, n_batch
    cdef Workspace space = Workspace(transition, n_longest)
    cdef Batch batch = Batch(space, offsets, n_longest)
    cdef PartialSentences partial = PartialSentences(transition, n_longest, allowed)
    cdef Features f
    cdef double[::1] padded = np.zeros(2 * space.c.scaled.stride)
    cdef const double* weights = NULL
    cdef const double* rows = NULL
    cdef double* slopes = NULL
    cdef double* row_slopes = NULL
    cdef double value = 0.0, weight, gain
    f.uses, f.middles, f.entry_labels, f.values = NULL, NULL, NULL, NULL
    f.starts, f.n_uses, f.n_states, f.stride = &starts[0], uses.shape[0], n_states, space.c.scaled.stride
    if middles.shape[0]:
        f.middles = &middles[0]
    if uses.shape[0]:
        f.uses = &uses[0]
        if values is not None:
            f.values = &values[0]
    if entries.shape[0]:
        f.entry_labels, weights, slopes = &entry_labels[0], &entries[0], &entry_slope[0]
    if dense.shape[0]:
        rows, row_slopes = &dense[0, 0], &dense_slope[0, 0]
    with nogil:
        while s < n_sentences and fault == -1:
            n_batch = min(n_sentences - s, <int64_t> BATCH_SEQUENCES)
            for i in range(n_batch):
                at, to, weight = offsets[s + i], batch.offsets[i], sentence_weights[first + s + i]
                n = offsets[s + i + 1] - at if weight != 0.0 else 0
                batch.offsets[i + 1], batch.weights[i] = to + n, weight
                for t in range(n):
                    score(&f, at + t, rows, weights, &padded[0], &batch.unary[to + t, 0])
                for k in range(n_states if n else 0):
                    batch.unary[to, k] += start[k]
                    batch.unary[to + n - 1, k] += end[k]
            fault = batch.many.batch(0, n_batch)
            if fault != -1:
                fault = first + s + max(fault, <int64_t> 0)
                break
            for i in range(n_batch):
                at, to, weight = offsets[s + i], batch.offsets[i], batch.weights[i]
                n = batch.offsets[i + 1] - to
                if n == 0:
                    continue
                if has_all_tags(&states[at], n):
                    gain = subtract_tags(&states[at], n, &batch.unary[to, 0], &batch.nodes[to, 0], transition, weight,
                                         transition_slope)
                else:
                    gain = partial.subtract(at, n, &batch.unary[to, 0], &batch.nodes[to, 0], weight)
                if gain == -INFINITY:
                    fault = first + s + i
                    break
                value += weight * (batch.log_z[i] - gain)
                for t in range(n):
                    for k in range(n_states):
                        batch.nodes[to + t, k] *= weight
                    spread(&f, at + t, &batch.nodes[to + t, 0], &padded[0], row_slopes, slopes)
            s += BATCH_SEQUENCES
    np.asarray(transition_slope)[:] += batch.pairs.total(space) - partial.pairs.total(partial.space)
    return value, fault
