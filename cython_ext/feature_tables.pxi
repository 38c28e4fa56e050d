# Included by features.pyx: the tables that its loops read, each frozen but for the store of words.

cdef class WordTable:
    """Look-up from a hashed word or phrase to an integer, a table of `hashing.build_table`; frozen."""
    cdef const uint64_t[:, ::1] table
    cdef const Slot* slots
    cdef uint64_t mask

    def __init__(self, const uint64_t[:, ::1] table not None):
        self.table, self.slots, self.mask = table, <const Slot*> &table[0, 0], table.shape[0] - 1


cdef struct Entry:
    double weight
    int64_t label


cdef class FeatureWeights:
    """Sparse weights of features, laid out so that a feature costs one cache line to find and mostly one to use;
    frozen.

    Parameters: as in `herdner.crf.training.ChainWeights`, whose row r has the entries ``starts[r]:starts[r + 1]``.
    """
    cdef const uint64_t[:, ::1] table   # key -> first entry << 16 | number of entries
    cdef const int64_t[:, ::1] entry_rows
    cdef const uint64_t[::1] filter_words
    cdef const Slot* slots
    cdef const Entry* entries
    cdef const uint64_t* filter         # one bit per hash: small enough for the cache, it rejects most unknown features
    cdef uint64_t mask, filter_mask
    cdef readonly Py_ssize_t n_labels

    def __init__(self, keys, starts, labels, weights, Py_ssize_t n_labels):
        entries = np.zeros((len(labels) + 1, 2), np.int64)  # never empty, so that its address exists
        entries[:-1, 0] = np.asarray(weights, np.float64).view(np.int64)
        entries[:-1, 1] = labels
        starts = np.asarray(starts, np.uint64)
        self.table = build_table(keys, starts[:-1] << np.uint64(16) | np.diff(starts))
        self.entry_rows = entries
        self.slots, self.mask = <const Slot*> &self.table[0, 0], self.table.shape[0] - 1
        self.entries = <const Entry*> &self.entry_rows[0, 0]
        self.n_labels = n_labels
        self.filter_words = filter_of(keys)
        self.filter, self.filter_mask = &self.filter_words[0], 64 * self.filter_words.shape[0] - 1

    cdef inline bint may_hold(self, uint64_t key) noexcept nogil:
        """False only for keys without weights."""
        cdef uint64_t bit = key >> 20 & self.filter_mask
        return self.filter[bit >> 6] >> (bit & 63) & 1

    cdef inline void prefetch(self, uint64_t key) noexcept nogil:
        herdner_prefetch(&self.slots[(key ^ (key >> 32)) & self.mask])

    cdef inline uint64_t row(self, uint64_t key) noexcept nogil:
        """Where the weights of a feature are, on their way to the cache; 0 where it has none."""
        cdef const Slot* slot = find(self.slots, self.mask, key)
        if slot == NULL:
            return 0
        herdner_prefetch(&self.entries[slot.value >> 16])
        return slot.value

    cdef inline void add(self, uint64_t row, double* scores) noexcept nogil:
        cdef const Entry* entry = &self.entries[row >> 16]
        cdef Py_ssize_t e
        for e in range(row & 0xFFFF):
            scores[entry[e].label] += entry[e].weight


cdef class TypeStore:
    """Records of the words met so far. It only grows, and records stay where they are."""
    cdef dict ids, groups
    cdef TypeRecord** records
    cdef double** sums
    cdef Py_ssize_t n_types, capacity, sum_width

    def __cinit__(self, Py_ssize_t capacity, Py_ssize_t sum_width):
        cdef Py_ssize_t n_chunks = capacity // CHUNK + 1
        self.ids, self.groups = {}, {}
        self.n_types, self.capacity, self.sum_width = 0, capacity, sum_width
        self.records = <TypeRecord**> PyMem_RawCalloc(n_chunks, sizeof(void*))
        self.sums = <double**> PyMem_RawCalloc(n_chunks, sizeof(void*))
        if self.records == NULL or self.sums == NULL:
            raise MemoryError("no memory for word records")

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.capacity // CHUNK + 1):
            if self.records != NULL:
                PyMem_RawFree(self.records[i])
            if self.sums != NULL:
                PyMem_RawFree(self.sums[i])
        PyMem_RawFree(self.records)
        PyMem_RawFree(self.sums)

    cdef inline TypeRecord* record(self, Py_ssize_t type) noexcept nogil:
        return &self.records[type // CHUNK][type % CHUNK]

    cdef inline double* sums_of(self, Py_ssize_t type) noexcept nogil:
        return &self.sums[type // CHUNK][(type % CHUNK) * self.sum_width]

    cdef Py_ssize_t reserve(self) except -1:
        """Room for one more record; its number."""
        cdef Py_ssize_t chunk = self.n_types // CHUNK
        if self.records[chunk] == NULL:
            self.records[chunk] = <TypeRecord*> PyMem_RawCalloc(CHUNK, sizeof(TypeRecord))
            self.sums[chunk] = <double*> PyMem_RawCalloc(CHUNK * max(self.sum_width, 1), sizeof(double))
            if self.records[chunk] == NULL or self.sums[chunk] == NULL:
                raise MemoryError("no memory for word records")
        self.n_types += 1
        return self.n_types - 1


cdef filter_of(const uint64_t[::1] keys):
    """Bits (uint64 words, a power of two, 16 to 32 bits per key) of which those of the keys are set."""
    cdef uint64_t n_bits = 64, bit
    cdef Py_ssize_t i
    while n_bits < 16 * <uint64_t> keys.shape[0]:
        n_bits *= 2
    cdef uint64_t[::1] words = np.zeros(n_bits // 64, np.uint64)
    for i in range(keys.shape[0]):
        bit = keys[i] >> 20 & (n_bits - 1)
        words[bit >> 6] |= <uint64_t> 1 << (bit & 63)
    return np.asarray(words)
