/* Packed herding weights: the 40-bit weights of a variable of at most 12 states in one cache line.
 *
 * Herding keeps a row of weights, one per state, for each key (HGW19 Algorithm 6). With doubles a row of 9 states takes two
 * cache lines; packed it takes one, and the loop waits for memory half as often.
 *
 *     packed_row, 64 bytes:   low[0] low[1] ... low[11]    high[0] ... high[3]
 *                             32 bits each                 4 bytes each: byte k / 4 of high[k % 4] belongs to state k
 *
 *     weight of state k in units of 2^-32 = (byte - 128) * 2^32 + low[k]
 *
 * The order of the bytes lets vector code unpack four states at a time. A row of zeros has not been initialised yet, since
 * an initialised row has a byte near 128.
 *
 * Where the rows are. The blanket of a variable decides its key, so a row is found by the state of the blanket. One member
 * of the blanket is special: `last`, the nearest member before the variable. In a sweep in order it was updated just now,
 * all other members ("the rest") much earlier.
 *
 *     blanket of i:    rest = (x[3], x[7], x[90])                              last = x[i - 1]
 *                        |                                                        |
 *     few states:      place = number of `rest` in base n_states  * n_states  +  state of last
 *                      s->places[first + place] is the row. The rows of all states of `last` are adjacent.
 *
 *     many states:     line = store.lines[hash of (i, rest)]  ->  line.rows[state of last]  ->  store.rows[...]
 *                      One row_line of 64 bytes names the rows of all states of `last`. Rows are appended to `store.rows`
 *                      when they are first needed.
 *
 * Both layouts are prefetched while `last` is still unknown (packed_lookup.h).
 *
 * With blanket sharing each state of the blanket has its own row. With bins several states share one row: then `owners`
 * (few states) names the place whose row a place uses, and `store.keys` (many states) maps the key of a bin to its row.
 *
 * 40 bits suffice for any probabilities: the sum of the k largest of n weights never exceeds k times their mean by more
 * than 3k(n - k) / 2. To grow, the k weights would need a share of p while a smaller weight is chosen, which must then be
 * within 1 of them; but where these bounds are nearly reached, the k weights are further ahead than that. */
#ifndef HERDNER_PACKED_WEIGHTS_H
#define HERDNER_PACKED_WEIGHTS_H

#include "hash_table.h"
#include "model.h"

enum { MAX_BLANKET = 8 }; /* members of a blanket: 12^8 < 2^32, so the state of `rest` fits 32 bits */

typedef struct {
    uint32_t low[MAX_PACKED_STATES], high[4];
} packed_row;

/* The blanket of a variable. */
typedef struct {
    int64_t first, rest;    /* the first of its places, or 0: it has none; where its `rest` begins in sampler.rest */
    int32_t n_rest, last;   /* -1: its weights are not packed; the nearest member before the variable, or -1 */
} packed_site;

typedef struct {
    uint64_t tag;
    uint32_t rows[MAX_PACKED_STATES]; /* by the state of `last`; 0: no row yet */
    uint64_t unused;
} row_line;

typedef struct {
    uint64_t tag, row;
} key_row;

_Static_assert(sizeof(packed_row) == CACHE_LINE && sizeof(row_line) == CACHE_LINE, "one cache line each");
_Static_assert(sizeof(packed_site) == 24 && sizeof(key_row) == 16, "arrays of these have no padding");
_Static_assert(MAX_PACKED_STATES % 4 == 0, "vectors hold four states");

typedef struct {
    packed_row *rows; /* [capacity]; row 0 is unused */
    int64_t n_rows, capacity;
    hash_table lines, keys; /* of row_line and of key_row */
} packed_store;

static inline void packed_store_free(packed_store *m) {
    free(m->keys.entries);
    free(m->rows);
    free(m->lines.entries);
}

static ALWAYS_INLINE row_line *line_of(const packed_store *m, uint64_t tag) {
    return (row_line *)hash_entry(&m->lines, sizeof(row_line), tag);
}

/* How many more bytes a store may take. */
static inline int64_t packed_budget(const packed_store *m, int64_t max_bytes) {
    return max_bytes - hash_table_bytes(&m->lines, sizeof(row_line)) - hash_table_bytes(&m->keys, sizeof(key_row)) -
           m->n_rows * (int64_t)sizeof(packed_row);
}

static int64_t reserve_line(packed_store *m, int64_t max_bytes) {
    const int64_t own = hash_table_bytes(&m->lines, sizeof(row_line));
    return hash_table_reserve(&m->lines, sizeof(row_line), 256, 2, packed_budget(m, max_bytes) + own);
}

/* Make room for row n_rows + 1; returns 0 or a fault. */
static int64_t reserve_row(packed_store *m, int64_t max_bytes) {
    if ((int64_t)sizeof(packed_row) > packed_budget(m, max_bytes) || m->n_rows == UINT32_MAX) return WEIGHTS_FULL;
    if (m->n_rows + 1 < m->capacity) return 0;
    /* A factor of 8, as untouched memory costs nothing but a copy touches all of it. */
    const int64_t capacity = m->capacity ? m->capacity * 8 : 1024;
    packed_row *larger = table_memory(capacity, sizeof(packed_row));
    if (!larger) return NO_MEMORY;
    if (m->rows) memcpy(larger, m->rows, (m->n_rows + 1) * sizeof(packed_row));
    free(m->rows);
    m->rows = larger;
    m->capacity = capacity;
    return 0;
}

/* The row of a key. A key without a row gets row `next`, and *is_new is set. Returns 0 with *fault set on failure. */
static int64_t row_of_key(packed_store *m, int64_t i, uint64_t key, int64_t next, int *is_new, int64_t max_bytes,
                          int64_t *fault) {
    const int64_t own = hash_table_bytes(&m->keys, sizeof(key_row));
    *fault = hash_table_reserve(&m->keys, sizeof(key_row), 1024, 4, packed_budget(m, max_bytes) + own);
    if (*fault) return 0;
    const uint64_t tag = pair_tag(i, key);
    key_row *entry = (key_row *)hash_entry(&m->keys, sizeof(key_row), tag);
    *is_new = !entry->tag;
    if (*is_new) {
        *entry = (key_row){tag, (uint64_t)next};
        m->keys.count++;
    }
    return (int64_t)entry->row;
}

#endif
