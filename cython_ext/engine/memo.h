/* Herding weights of variables of a few labels, packed: where all states of a blanket have a place, at the place of the
 * first state that was met of those that share them; else in the order in which they were met, with a hash table of lines
 * that say which of them an update uses. */
#ifndef HERDNER_MEMO_H
#define HERDNER_MEMO_H

#include "model.h"
#include "weight_table.h"

enum { MEMO_MEMBERS = 8 }; /* at most: 12^8 < 2^32 */

/* Weights in units of 2^-32, in one line of the cache: floor(w / 2^32) and the rest.
 *
 * None leaves int8_t, whatever the probabilities: the sum of the k largest of n weights is never 3k(n - k)/2 above k times
 * their mean. To rise, the k would have to have a part in p while a smaller one is chosen, which must then be within 1 of
 * them; but where these bounds are nearly reached, the k are further ahead than that. */
typedef struct {
    uint32_t low[MOST_PACKED];
    int8_t high[MOST_PACKED];
    uint32_t owner; /* of a place: 1 + the place whose weights it uses, within those of its variable; 0: not met */
} packed_row;

typedef struct {
    uint64_t tag;               /* 0: free */
    uint32_t rows[MOST_PACKED]; /* by the label of one variable; 0: not met */
    uint64_t unused;
} memo_line;

typedef struct {
    packed_row *rows; /* [most_rows], of which number 0 is nobody's */
    memo_line *lines; /* [mask + 1] */
    uint64_t mask;
    int64_t n_rows, most_rows, n_lines;
    weight_table numbers; /* of the rows, by their keys */
} memo;

static inline void memo_free(memo *m) {
    weight_table_free(&m->numbers);
    free(m->rows);
    free(m->lines);
}

static ALWAYS_INLINE void unpack(const packed_row *row, double *weights, int width) {
    for (int k = 0; k < width; k++) {
        const uint64_t bits = ((uint64_t)(int64_t)row->high[k] << 32 | row->low[k]) + ROUNDING_BITS;
        double w;
        memcpy(&w, &bits, 8);
        weights[k] = w - ROUNDING_SHIFT;
    }
}

static ALWAYS_INLINE void pack(const double *weights, packed_row *row, int width) {
    uint64_t bits[MOST_PACKED];
    for (int k = 0; k < width; k++) {
        const double w = weights[k] + ROUNDING_SHIFT;
        memcpy(bits + k, &w, 8);
    }
    for (int k = 0; k < width; k++) row->low[k] = (uint32_t)bits[k];
    for (int k = 0; k < width; k++) row->high[k] = (int8_t)((bits[k] - ROUNDING_BITS) >> 32);
}

/* The line of a tag, or the free one where it belongs. */
static ALWAYS_INLINE memo_line *line_at(const memo *m, uint64_t tag) {
    uint64_t at = tag & m->mask;
    while (m->lines[at].tag && m->lines[at].tag != tag) at = (at + 1) & m->mask;
    return m->lines + at;
}

/* What is in use, in bytes. */
static inline int64_t memo_bytes(const memo *m) {
    const int64_t lines = m->lines ? (int64_t)m->mask + 1 : 0, numbers = m->numbers.tags ? (int64_t)m->numbers.mask + 1 : 0;
    return lines * (int64_t)sizeof(memo_line) + m->n_rows * (int64_t)sizeof(packed_row) + numbers * 16;
}

/* Room for one more line; returns a fault. */
static int64_t room_for_line(memo *m, int64_t most) {
    const uint64_t before = m->lines ? m->mask + 1 : 0, lines = before ? before * 2 : 256;
    if ((uint64_t)m->n_lines * 2 < before) return 0;
    if (memo_bytes(m) + (int64_t)((lines - before) * sizeof(memo_line)) > most) return WEIGHTS_FULL;
    memo_line *const old = m->lines, *const bigger = table_memory(lines * sizeof(memo_line));
    if (!bigger) return NO_MEMORY;
    memset(bigger, 0, lines * sizeof(memo_line));
    m->lines = bigger;
    m->mask = lines - 1;
    for (uint64_t k = 0; k < before; k++)
        if (old[k].tag) *line_at(m, old[k].tag) = old[k];
    free(old);
    return 0;
}

/* Room for row n_rows + 1; returns a fault. */
static int64_t room_for_row(memo *m, int64_t most) {
    if (memo_bytes(m) + (int64_t)sizeof(packed_row) > most || m->n_rows == UINT32_MAX) return WEIGHTS_FULL;
    if (m->n_rows + 1 < m->most_rows) return 0;
    /* By eight, as what is not touched is not yet memory, but what is copied has been touched twice. */
    const int64_t rows = m->most_rows ? m->most_rows * 8 : 1024;
    packed_row *bigger = table_memory(rows * sizeof(packed_row));
    if (!bigger) return NO_MEMORY;
    if (m->rows) memcpy(bigger, m->rows, (m->n_rows + 1) * sizeof(packed_row));
    free(m->rows);
    m->rows = bigger;
    m->most_rows = rows;
    return 0;
}

/* The number that a pair goes by: `next`, which is kept, where it is *unborn; 0 with *fault set. */
static int64_t number_of(memo *m, int64_t i, uint64_t key, int64_t next, int *unborn, int64_t most, int64_t *fault) {
    double *number = weight_slot(&m->numbers, i, key, most - memo_bytes(m), fault);
    if (!number) return 0;
    *unborn = is_unborn(number);
    if (*unborn) *number = (double)next;
    return (int64_t)*number;
}

#endif
