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

from hashing cimport Slot, mix

from herdner._ext.batches cimport BATCH_SEQUENCES, Many, PairCounts
from herdner._ext.bundles cimport KeyTable
from herdner._ext.memory cimport own, owned, require, require_offsets, require_range
from herdner._ext.smoothing cimport (
    CHAIN_OK, Workspace, chain_features, chain_score_rows, chain_spread_rows, in_lines, longest, node_marginals, smooth,
    total_log,
)
from herdner._ext.bundles import bundle


def number_keys(const uint64_t[::1] keys not None):
    """Return the distinct keys uint64[m] in the order of their first occurrence, and the index of each key int32[n].

    Keys must not be 0. The slots of the table are random, so keys of a file cannot be chosen to collide.
    """
    cdef Py_ssize_t i
    cdef KeyTable table = KeyTable()  # values: 1 + the index
    cdef Slot* slot
    numbers_array = np.empty(keys.shape[0], np.int32)
    cdef int32_t[::1] numbers = numbers_array
    for i in range(keys.shape[0]):
        slot = table.add(keys[i])
        if slot.value == 0:
            slot.value = table.n
        numbers[i] = <int32_t> slot.value - 1
    entries = np.asarray(table.rows)
    entries = entries[entries[:, 0] != 0]
    distinct = np.empty(table.n, np.uint64)
    distinct[entries[:, 1].astype(np.int64) - 1] = entries[:, 0]
    return distinct, numbers_array


def count_pairs(numbers, starts, const uint8_t[:, ::1] allowed not None, columns, int32_t[:, ::1] counts):
    """Count how often each feature occurs with each tag that its token may have; adds to ``counts`` [columns, K].

    Token t has the features ``numbers[starts[t]:starts[t + 1]]``; feature f is counted in column ``columns[f]``, or not
    at all if that is -1. Tokens that may have any tag are not counted.
    """
    cdef const int32_t[::1] feature = owned(numbers, np.int32, 1, "numbers")
    cdef const int32_t[::1] column_of = owned(columns, np.int32, 1, "columns")
    cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts")
    cdef Py_ssize_t t, i, k, n_states = allowed.shape[1], n
    cdef int32_t tags[256]
    cdef int32_t column
    require(n_states <= 256, "there are at most 256 tags")
    with nogil:
        for t in range(first.shape[0] - 1):
            n = 0
            for k in range(n_states):
                if allowed[t, k]:
                    tags[n] = <int32_t> k
                    n += 1
            if n == n_states and n > 1:
                continue
            for i in range(first[t], first[t + 1]):
                column = column_of[feature[i]]
                if column >= 0:
                    for k in range(n):
                        counts[column, tags[k]] += 1


def column_hashes(numbers, starts, Py_ssize_t n_features):
    """Return a hash of the tokens of each feature: uint64[n_features].

    Features that occur at the same tokens equally often have equal hashes; others differ except with probability 2^-64.
    """
    cdef const int32_t[::1] feature = owned(numbers, np.int32, 1, "numbers")
    cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts")
    cdef Py_ssize_t t, i
    hashes_array = np.zeros(n_features, np.uint64)
    cdef uint64_t[::1] hashes = hashes_array
    cdef uint64_t token
    with nogil:
        for t in range(first.shape[0] - 1):
            token = mix(<uint64_t> t + 1)
            for i in range(first[t], first[t + 1]):
                hashes[feature[i]] += token
    return hashes_array


def lay_out(numbers, starts, columns, int32_t n_dense, entry_starts):
    """Lay out the columns and weights of tokens. Return (uses int32[m], starts int64[n + 1], middles int64[n]).

    ``uses[starts[t]:middles[t]]`` are the dense columns of token t, those below ``n_dense``;
    ``uses[middles[t]:starts[t + 1]]`` are the weights of its other columns: column c has the weights from
    ``entry_starts[c - n_dense]`` on. ``columns`` int32[features] is -1 for a feature that is not used.
    """
    cdef const int32_t[::1] feature = owned(numbers, np.int32, 1, "numbers")
    cdef const int32_t[::1] column_of = owned(columns, np.int32, 1, "columns")
    cdef const int64_t[::1] first = owned(starts, np.int64, 1, "starts")
    cdef const int64_t[::1] first_entry = owned(entry_starts, np.int64, 1, "entry_starts")
    cdef Py_ssize_t t, i, k = 0, e, n = first.shape[0] - 1, m = 0
    cdef int32_t column
    require(n_dense >= 0, "the number of dense columns must be at least 0")
    for i in range(feature.shape[0]):
        column = column_of[feature[i]]
        if column >= n_dense:
            m += first_entry[column - n_dense + 1] - first_entry[column - n_dense]
        elif column >= 0:
            m += 1
    uses_array, starts_array, middles_array = np.empty(m, np.int32), np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    cdef int32_t[::1] uses = uses_array
    cdef int64_t[::1] new_starts = starts_array, middles = middles_array
    with nogil:
        for t in range(n):
            for i in range(first[t], first[t + 1]):
                column = column_of[feature[i]]
                if 0 <= column < n_dense:
                    uses[k] = column
                    k += 1
            middles[t] = k
            for i in range(first[t], first[t + 1]):
                column = column_of[feature[i]] - n_dense
                if column >= 0:
                    for e in range(first_entry[column], first_entry[column + 1]):
                        uses[k] = <int32_t> e
                        k += 1
            new_starts[t + 1] = k
    return uses_array, starts_array, middles_array


def mark_used_weights(data, const uint8_t[:, ::1] allowed not None, uint8_t[:, ::1] dense not None,
                      uint8_t[::1] entries not None):
    """Mark the weights that some token uses with a tag that it may have: ``dense`` [D, K], and sparse ``entries``."""
    cdef const int32_t[::1] uses = own(data.uses, np.int32, 1, "uses")
    cdef const int64_t[::1] starts = own(data.starts, np.int64, 1, "starts")
    cdef const int64_t[::1] middles = own(data.middles, np.int64, 1, "middles")
    cdef const uint8_t[::1] entry_tags = own(data.entry_tags, np.uint8, 1, "entry_tags")
    cdef Py_ssize_t t, i, k
    with nogil:
        for t in range(allowed.shape[0]):
            for i in range(starts[t], middles[t]):
                for k in range(allowed.shape[1]):
                    dense[uses[i], k] |= allowed[t, k]
            for i in range(middles[t], starts[t + 1]):
                entries[uses[i]] |= allowed[t, entry_tags[uses[i]]]


@cython.internal
@cython.final
cdef class FeatureLayout:
    """Private and checked copy of rows of features; row r has columns and entries (see `chain_features`)."""
    cdef const int32_t[::1] columns, entries
    cdef const int64_t[::1] column_starts, entry_starts

    def __cinit__(self, columns, column_starts, entries, entry_starts, Py_ssize_t n_rows, Py_ssize_t n_columns,
                  Py_ssize_t n_entries):
        self.columns, self.entries = own(columns, np.int32, 1, "columns"), own(entries, np.int32, 1, "entries")
        self.column_starts = own(column_starts, np.int64, 1, "column_starts")
        self.entry_starts = own(entry_starts, np.int64, 1, "entry_starts")
        require(self.column_starts.shape[0] == n_rows + 1 == self.entry_starts.shape[0], "each row needs features")
        require_offsets(self.column_starts, self.columns.shape[0], "column_starts")
        require_offsets(self.entry_starts, self.entries.shape[0], "entry_starts")
        require_range(self.columns, 0, n_columns, "uses must be columns that exist")
        require_range(self.entries, 0, n_entries, "uses must be entries that exist")

    cdef chain_features features(self, const uint8_t[::1] entry_tags, const double[::1] values, int stride):
        """Return the addresses that loops read."""
        cdef chain_features f
        f.columns, f.entries, f.entry_tags, f.values = NULL, NULL, NULL, NULL
        f.stride, f.n_rows = stride, self.column_starts.shape[0] - 1
        f.column_starts, f.entry_starts = &self.column_starts[0], &self.entry_starts[0]
        if self.columns.shape[0]:
            f.columns = &self.columns[0]
        if self.entries.shape[0]:
            f.entries, f.entry_tags = &self.entries[0], &entry_tags[0]
            if values is not None:
                f.values = &values[0]
        return f


@cython.final
cdef class TrainingData:
    """Private and checked copy of what `add_gradient` reads of a `herdner.crf.chain_data.ChainData`.

    The copy has the sentences ``first`` to ``last`` - 1. Features that many of their tokens share form bundles.
    """
    cdef const int32_t[::1] states
    cdef const int64_t[::1] sentence_offsets
    cdef const uint8_t[::1] entry_tags
    cdef const uint8_t[:, ::1] allowed
    cdef const double[::1] values
    cdef FeatureLayout tokens, bundles   # the dense columns of a token are bundles
    cdef Py_ssize_t n_dense, first

    def __cinit__(self, data, Py_ssize_t first, Py_ssize_t last):
        cdef Py_ssize_t n, i
        # Each attribute is read once, because it could have another value the next time.
        states, uses, allowed, values = np.asarray(data.states), np.asarray(data.uses), data.allowed, data.values
        self.n_dense, self.first = len(data.dense), first
        self.entry_tags = own(data.entry_tags, np.uint8, 1, "entry_tags")
        n_entries = self.entry_tags.shape[0]
        offsets = own(data.sentence_offsets, np.int64, 1, "sentence_offsets")
        require_offsets(offsets, len(states), "sentence_offsets")
        require(0 <= first <= last < len(offsets), "the sentences must exist")
        here = slice(offsets[first], offsets[last])
        self.sentence_offsets = own(offsets[first:last + 1] - offsets[first], np.int64, 1, "sentence_offsets")
        self.states = own(states[here], np.int32, 1, "states")
        self.allowed = own(np.asarray(allowed)[here], np.uint8, 2, "allowed")
        starts, middles = own(data.starts, np.int64, 1, "starts"), own(data.middles, np.int64, 1, "middles")
        require(len(middles) == len(states) == len(starts) - 1, "each token needs features")
        require_offsets(starts, len(uses), "starts")
        begin, end = starts[offsets[first]], starts[offsets[last]]
        if values is not None:
            values = np.asarray(values)
            require(len(values) == len(uses), "each use needs a value")
            values = own(values[begin:end], np.float64, 1, "values")
        n = self.states.shape[0]
        require(0 < self.allowed.shape[1] <= 256, "there must be 1 to 256 tags")
        require(self.allowed.shape[0] == n, "each token needs allowed tags")
        for i in range(self.entry_tags.shape[0]):
            require(self.entry_tags[i] < self.allowed.shape[1], "entries must have tags that exist")
        require_range(self.states, -1, self.allowed.shape[1], "states must be tags or -1")
        require(self.n_dense + n_entries < 1 << 31, "there are too many weights")
        tokens, bundles, values = bundle(
            features_of(uses[begin:end], starts[offsets[first]:offsets[last] + 1] - begin, middles[here] - begin,
                        <int32_t> self.n_dense),
            starts[offsets[first]:offsets[last] + 1] - begin, values, <int32_t> self.n_dense,
            <int32_t> (self.n_dense + n_entries),
        )
        n_bundles = len(bundles[1]) - 1
        self.tokens = FeatureLayout(*tokens, n, n_bundles, n_entries)
        self.bundles = FeatureLayout(*bundles, n_bundles, self.n_dense, n_entries)
        self.values = None if values is None else own(values, np.float64, 1, "values")
        require(values is None or len(values) == self.tokens.entries.shape[0], "each entry needs a value")


cdef features_of(const int32_t[::1] uses, const int64_t[::1] starts, const int64_t[::1] middles, int32_t n_dense):
    """Return the uses as numbers of features: columns as they are, and entries plus ``n_dense``."""
    cdef Py_ssize_t t, i
    numbers_array = np.array(uses)
    cdef int32_t[::1] numbers = numbers_array
    for t in range(middles.shape[0]):
        for i in range(middles[t], starts[t + 1]):
            numbers[i] += n_dense
    return numbers_array


@cython.internal
@cython.boundscheck(False)
cdef class TokenBatch:
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
        self.many = Many.__new__(Many)
        self.many.allocate(
            space, self.unary, self.offsets, most, self.log_z, self.nodes, None, self.pairs, self.weights)


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
def add_gradient(TrainingData data not None, const double[::1] sentence_weights not None,
                 const double[:, ::1] dense not None, const double[::1] entries not None,
                 const double[:, :, ::1] transition not None, const double[::1] start not None,
                 const double[::1] end not None, double[:, ::1] dense_slope not None,
                 double[::1] entry_slope not None, double[:, ::1] transition_slope not None):
    """Compute the negative log-likelihood of the sentences of ``data``, and store its derivatives in the slopes.

    ``sentence_weights`` are the weights of all sentences; those of weight 0 are skipped. ``start`` and ``end`` [K] are
    log-potentials of the first and the last token of a sentence. Returns (value, fault); fault is a sentence whose tags
    the tables forbid, or -1.
    """
    cdef const int32_t[::1] states = data.states
    cdef const int64_t[::1] offsets = data.sentence_offsets
    cdef int n_states = <int> data.allowed.shape[1], k
    cdef int64_t n_sentences = offsets.shape[0] - 1, first = data.first
    require(sentence_weights.shape[0] >= first + n_sentences, "each sentence needs a weight")
    require(transition.shape[0] == 1 and transition.shape[1] == n_states == transition.shape[2]
            and start.shape[0] == n_states == end.shape[0], "transition, start and end must fit the tags")
    require(dense.shape[0] == data.n_dense and dense.shape[1] == (n_states + 3) // 4 * 4,
            "the dense table needs a padded row for each column")
    require(entries.shape[0] == data.entry_tags.shape[0], "each entry needs a weight")
    require(dense_slope.shape[0] == dense.shape[0] and dense_slope.shape[1] == dense.shape[1]
            and entry_slope.shape[0] == entries.shape[0] and transition_slope.shape[0] == n_states
            and transition_slope.shape[1] == n_states, "slopes must have the shapes of their weights")
    cdef int64_t n_longest = longest(offsets), s = 0, i, n, at, to, fault = -1, n_batch
    cdef Workspace space = Workspace(transition, n_longest)
    cdef TokenBatch batch = TokenBatch(space, offsets, n_longest)
    cdef PartialSentences partial = PartialSentences(transition, n_longest, data.allowed)
    cdef int stride = space.c.scaled.stride
    cdef chain_features tokens = data.tokens.features(data.entry_tags, data.values, stride)
    cdef chain_features bundles = data.bundles.features(data.entry_tags, None, stride)
    cdef double[:, ::1] sums = in_lines((bundles.n_rows + 1, stride))
    cdef double[:, ::1] slope_sums = in_lines((bundles.n_rows + 1, stride))
    cdef const double* weights = NULL
    cdef const double* rows = NULL
    cdef double* slopes = NULL
    cdef double* row_slopes = NULL
    cdef double value = 0.0, weight, gain
    if entries.shape[0]:
        weights, slopes = &entries[0], &entry_slope[0]
    if dense.shape[0]:
        rows, row_slopes = &dense[0, 0], &dense_slope[0, 0]
    with nogil:
        if dense.shape[0]:
            memset(row_slopes, 0, dense_slope.shape[0] * dense_slope.shape[1] * sizeof(double))
        if entries.shape[0]:
            memset(slopes, 0, entry_slope.shape[0] * sizeof(double))
        memset(&transition_slope[0, 0], 0, n_states * n_states * sizeof(double))
        chain_score_rows(&bundles, 0, bundles.n_rows, rows, weights, &sums[0, 0], stride)
        memset(&slope_sums[0, 0], 0, bundles.n_rows * stride * sizeof(double))
        while s < n_sentences and fault == -1:
            n_batch = min(n_sentences - s, <int64_t> BATCH_SEQUENCES)
            for i in range(n_batch):
                at, to, weight = offsets[s + i], batch.offsets[i], sentence_weights[first + s + i]
                n = offsets[s + i + 1] - at if weight != 0.0 else 0
                batch.offsets[i + 1], batch.weights[i] = to + n, weight
                if n:
                    chain_score_rows(&tokens, at, n, &sums[0, 0], weights, &batch.unary[to, 0], n_states)
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
                chain_spread_rows(&tokens, at, n, &batch.nodes[to, 0], n_states, weight, &slope_sums[0, 0], slopes)
            s += BATCH_SEQUENCES
        chain_spread_rows(&bundles, 0, bundles.n_rows, &slope_sums[0, 0], stride, 1.0, row_slopes, slopes)
    np.asarray(transition_slope)[:] += batch.pairs.total(space) - partial.pairs.total(partial.space)
    return value, fault


def add_slopes(const double[:, :, ::1] dense not None, const double[:, ::1] entries not None, places,
               double[::1] total not None, int64_t first, int64_t last):
    """Add the derivatives of all parts to the coordinates ``first`` to ``last`` - 1 of ``total``.

    The first coordinates are the cells ``places`` of the tables ``dense`` [parts, D, stride], counted row by row; the
    others are ``entries`` [parts, E].
    """
    cdef const int64_t[::1] cell = owned(places, np.int64, 1, "places")
    cdef int64_t n_dense = cell.shape[0], n_cells = dense.shape[1] * dense.shape[2], i, p, place
    cdef bint fits = True
    require(0 <= first <= last <= n_dense + entries.shape[1] <= total.shape[0], "the coordinates must exist")
    require(dense.shape[0] == entries.shape[0], "each part needs derivatives")
    with nogil:
        for i in range(first, min(last, n_dense)):
            place = cell[i]
            if not 0 <= place < n_cells:
                fits = False
                break
            for p in range(dense.shape[0]):
                total[i] += (&dense[p, 0, 0])[place]
        for i in range(max(first, n_dense), last):
            for p in range(entries.shape[0]):
                total[i] += entries[p, i - n_dense]
    require(fits, "the places must exist")
