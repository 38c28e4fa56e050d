# cython: language_level=3
"""A small neural network over a window of words, whose scores are added to those of the features.

The vector of a word is the sum of one row for each attribute of the word and for each of its codes (word vectors by
product quantisation, Jegou et al. 2011). The hidden layer is linear in the vectors of all words of the window.
Therefore the product with each of its matrices is computed once for each distinct word (`describe`), and a token only
adds the products of its neighbours and the rows of its position's attributes (`add_scores`). All numbers are integers.

``herdner.ner.network`` describes the arrays; features.pyx calls the methods.
"""

import numpy as np

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from prefetch cimport prefetch

from herdner._ext.memory cimport own, require, require_range
from herdner._ext.words cimport N_TYPE_ATTRIBUTES, TypeRecord

cdef extern from "network_loops.h" nogil:
    void network_add(int16_t* sums, const int8_t* row, int64_t n)
    void network_limit(int16_t* sums, int16_t low, int16_t high, int64_t n)
    int32_t network_product(const int16_t* a, const int16_t* b, int64_t n)
    void network_multiply(int8_t* result, const int16_t* matrix, const int16_t* vector, int64_t m, int64_t n_pairs,
                          int shift)
    enum: NETWORK_LANES

cdef enum:
    LARGEST_BIAS = 1 << 14         # with 19 + 32 rows of at most 128, all sums fit in 16 bits
    LARGEST_OUTPUT_BIAS = 1 << 28  # with 512 products of at most (2^14 + 51 * 128) * 128, all sums fit in 32 bits
    MOST_PLACES = 32               # attributes of positions
    MOST_BITS = 20                 # log2 of the number of rows of a table
    MOST_WORDS = 19                # of a window
    MOST_TABLES = 64
    MOST_ATTRIBUTES = 64           # of a position
    CODE_ROWS = 256


cdef object first_rows(const int32_t[:, ::1] attributes, int n_attributes, str owner):
    """Return the first row of the table of each attribute (index, number of bits), and the number of rows: int64."""
    require(attributes.shape[1] == 2, "attributes need an index and the number of bits")
    fault = f"a table of a network needs an attribute of {owner} and 1 to {MOST_BITS} bits"
    require_range(attributes[:, 0], 0, n_attributes, fault)
    require_range(attributes[:, 1], 1, MOST_BITS + 1, fault)
    return np.append(0, np.cumsum(1 << np.asarray(attributes)[:, 1].astype(np.int64)))


cdef class CompiledNetwork:
    def __cinit__(self, attributes, tables, codes, places, place_rows, hidden, bias, outputs, output_bias, int shift,
                  double scale, columns):
        self.attributes = own(attributes, np.int32, 2, "attributes")
        self.tables = own(tables, np.int8, 2, "tables")
        self.codes = own(codes, np.uint8, 2, "codes")
        self.places, self.place_rows = own(places, np.int32, 2, "places"), own(place_rows, np.int8, 2, "place_rows")
        wide_hidden, wide_outputs = np.asarray(hidden), np.asarray(outputs)
        require(wide_hidden.dtype == np.int8 and wide_outputs.dtype == np.int8, "weights of a network must be int8")
        require(wide_hidden.ndim == 3 and wide_hidden.size > 0, "the hidden layer of a network needs 3 axes")
        self.window, self.units, self.n_dimensions = wide_hidden.shape
        self.row_width = (self.window * self.units + NETWORK_LANES - 1) // NETWORK_LANES * NETWORK_LANES
        self.n_pairs = (self.n_dimensions + 1) // 2
        self.hidden = own(self.in_lanes(wide_hidden), np.int16, 4, "hidden")
        self.outputs = own(wide_outputs.astype(np.int16), np.int16, 2, "outputs")
        self.bias = own(bias, np.int16, 1, "bias")
        self.output_bias = own(output_bias, np.int32, 1, "output_bias")
        self.columns = own(columns, np.int32, 1, "columns")
        self.n_outputs, self.n_tags = self.outputs.shape[0], self.columns.shape[0]
        self.shift, self.scale = shift, scale
        starts = first_rows(self.attributes, N_TYPE_ATTRIBUTES, "words")
        codes = starts[-1] + CODE_ROWS * np.arange(1, self.codes.shape[1] + 1)
        self.starts = own(np.append(starts, codes), np.int64, 1, "starts")
        self.place_starts = own(first_rows(self.places, MOST_ATTRIBUTES, "positions"), np.int64, 1, "place_starts")
        self.n_attributes = np.asarray(self.places)[:, 0].max(initial=-1) + 1
        require(self.starts[self.starts.shape[0] - 1] == self.tables.shape[0],
                "the tables of a network must have a row for each value")
        require(self.places.shape[0] <= MOST_PLACES, f"positions can have at most {MOST_PLACES} attributes")
        require(self.place_starts[self.places.shape[0]] == self.place_rows.shape[0]
                and self.place_rows.shape[1] == self.units,
                "the positions of a network must have a row for each value")
        require(self.attributes.shape[0] + self.codes.shape[1] <= MOST_TABLES, "a network has too many tables")
        require(self.window % 2 == 1 and 1 <= self.window <= MOST_WORDS, "the window of a network is too wide")
        require(self.units <= MOST_UNITS and self.n_dimensions <= MOST_DIMENSIONS
                and self.n_dimensions == self.tables.shape[1], "the hidden layer of a network has a wrong shape")
        require(self.bias.shape[0] == self.units == self.outputs.shape[1]
                and self.output_bias.shape[0] == self.n_outputs >= 1, "the output layer of a network has a wrong shape")
        require(0 <= shift <= 30 and np.isfinite(scale), "the shift or the scale of a network is out of range")
        require((np.abs(np.asarray(self.bias).astype(np.int64)) <= LARGEST_BIAS).all()
                and (np.abs(np.asarray(self.output_bias).astype(np.int64)) <= LARGEST_OUTPUT_BIAS).all(),
                "a bias of a network is too large")
        require_range(self.columns, -1, self.n_outputs, "columns must be tags of the network, or -1")

    cdef object in_lanes(self, hidden):
        """Return the matrices of the hidden layer, one below the other, in the layout of `network_multiply`.

        int16[blocks, pairs, 16, 2]: blocks of 16 rows, in which the pairs of columns stand one after the other.
        """
        padded = np.zeros((self.row_width, 2 * self.n_pairs), np.int16)
        padded[:self.window * self.units, :self.n_dimensions] = hidden.reshape(self.window * self.units, -1)
        blocks = padded.reshape(-1, NETWORK_LANES, self.n_pairs, 2)
        return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3))

    cdef void describe(self, const TypeRecord* record, int8_t* rows) noexcept nogil:
        """Compute the products of a word's vector with all matrices of the hidden layer, int8[window * units]."""
        cdef int16_t vector[MOST_DIMENSIONS]
        cdef const int8_t* parts[MOST_TABLES]
        cdef Py_ssize_t t, k = 0, n_tables = self.attributes.shape[0], n = self.n_dimensions
        cdef uint64_t value
        for t in range(n_tables):
            value = record.attributes[self.attributes[t, 0]]
            if value:
                value = value * 0x9E3779B97F4A7C15ULL >> (64 - self.attributes[t, 1])
                parts[k] = &self.tables[self.starts[t] + <int64_t> value, 0]
                k += 1
        if 0 < record.vector <= self.codes.shape[0]:
            for t in range(self.codes.shape[1]):
                parts[k] = &self.tables[self.starts[n_tables + t] + self.codes[record.vector - 1, t], 0]
                k += 1
        for t in range(k):
            prefetch(parts[t])
        memset(vector, 0, MOST_DIMENSIONS * sizeof(int16_t))
        for t in range(k):
            network_add(vector, parts[t], n)
        network_limit(vector, -127, 127, n)
        network_multiply(rows, &self.hidden[0, 0, 0, 0], vector, self.row_width, self.n_pairs, self.shift)

    cdef void add_scores(self, const int8_t** rows, const uint64_t* position, double* scores,
                         int32_t* products) noexcept nogil:
        """Add the scores of a token to ``scores``.

        ``rows`` are the products of each word of the window, and ``position`` are the attributes of the token's
        position. ``products`` [tags of the network + units] is scratch memory.
        """
        cdef int16_t* sums = <int16_t*> (products + self.n_outputs)
        cdef Py_ssize_t w, k
        cdef uint64_t value
        cdef int32_t best
        memcpy(sums, &self.bias[0], self.units * sizeof(int16_t))
        for w in range(self.window):
            network_add(sums, rows[w] + w * self.units, self.units)
        for k in range(self.places.shape[0]):
            value = position[self.places[k, 0]]
            if value:
                value &= (<uint64_t> 1 << self.places[k, 1]) - 1
                network_add(sums, &self.place_rows[self.place_starts[k] + <int64_t> value, 0], self.units)
        network_limit(sums, 0, 32767, self.units)
        for k in range(self.n_outputs):
            products[k] = self.output_bias[k] + network_product(sums, &self.outputs[k, 0], self.units)
        best = products[0]
        for k in range(1, self.n_outputs):
            best = max(best, products[k])
        for k in range(self.n_tags):
            scores[k] += self.scale * (best if self.columns[k] == -1 else products[self.columns[k]])
