/* Herding weights of variables of a few labels, packed: where all states of a blanket have a place, at the place of the
 * first state that was met of those that share them; else in the order in which they were met, with a hash table of lines
 * that say which of them an update uses. */
#ifndef HERDNER_PACKED_WEIGHTS_H
#define HERDNER_PACKED_WEIGHTS_H

#include "model.h"
#include "weight_table.h"

enum { MEMO_MEMBERS = 8 }; /* at most: 12^8 < 2^32 */

/* Weights in units of 2^-32, in one line of the cache: the last 32 bits of each, and floor(w / 2^32) + 128 in byte k / 4 of
 * high[k % 4], so that all four at a time are unpacked alike. Of weights that were not yet met all is 0.
 *
 * None leaves its 40 bits, whatever the probabilities: the sum of the k largest of n weights is never 3k(n - k)/2 above k
 * times their mean. To rise, the k would have to have a part in p while a smaller one is chosen, which must then be within 1
 * of them; but where these bounds are nearly reached, the k are further ahead than that. */
typedef struct {
    uint32_t low[MAX_PACKED_STATES], high[4];
} packed_row;

/* Of a variable whose weights are packed: what decides them. */
typedef struct {
    int64_t first, rest;     /* its first place, or -1; where the members of its blanket stand but for `last` */
    int32_t n_rest, last;    /* -1: its weights are not packed; the last member of its blanket before it, or -1 */
} memo_site;

typedef struct {
    uint64_t tag;               /* 0: free */
    uint32_t rows[MAX_PACKED_STATES]; /* by the label of one variable; 0: not met */
    uint64_t unused;
} memo_line;

typedef struct {
    uint64_t tag, number; /* tag 0: free */
} memo_number;

typedef struct {
    packed_row *rows; /* [most_rows], of which number 0 is nobody's */
    memo_line *lines; /* [mask + 1] */
    uint64_t mask;
    int64_t n_rows, most_rows, n_lines;
    memo_number *numbers; /* [number_mask + 1]: of the rows, by their keys */
    uint64_t number_mask;
    int64_t n_numbers;
} memo;

static inline void memo_free(memo *m) {
    free(m->numbers);
    free(m->rows);
    free(m->lines);
}

/* The line of a tag, or the free one where it belongs. */
static ALWAYS_INLINE memo_line *line_at(const memo *m, uint64_t tag) {
    uint64_t at = tag & m->mask;
    while (m->lines[at].tag && m->lines[at].tag != tag) at = (at + 1) & m->mask;
    return m->lines + at;
}

/* What is in use, in bytes. */
static inline int64_t memo_bytes(const memo *m) {
    const int64_t lines = m->lines ? (int64_t)m->mask + 1 : 0, numbers = m->numbers ? (int64_t)m->number_mask + 1 : 0;
    return lines * (int64_t)sizeof(memo_line) + m->n_rows * (int64_t)sizeof(packed_row) + numbers * (int64_t)sizeof(memo_number);
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

static ALWAYS_INLINE memo_number *number_at(const memo *m, uint64_t tag) {
    uint64_t at = tag & m->number_mask;
    while (m->numbers[at].tag && m->numbers[at].tag != tag) at = (at + 1) & m->number_mask;
    return m->numbers + at;
}

/* Room for one more number; returns a fault. */
static int64_t room_for_number(memo *m, int64_t most) {
    const int64_t before = m->numbers ? (int64_t)m->number_mask + 1 : 0, size = sizeof(memo_number);
    if (m->n_numbers * 2 < before) return 0;
    int64_t numbers = before ? before * 4 : 1024;
    if (before && memo_bytes(m) + (numbers - before) * size > most) numbers = before * 2;
    if (memo_bytes(m) + (numbers - before) * size > most) return WEIGHTS_FULL;
    memo_number *const old = m->numbers, *const bigger = table_memory(numbers * sizeof(memo_number));
    if (!bigger) return NO_MEMORY;
    memset(bigger, 0, numbers * sizeof(memo_number));
    m->numbers = bigger;
    m->number_mask = numbers - 1;
    for (int64_t k = 0; k < before; k++)
        if (old[k].tag) *number_at(m, old[k].tag) = old[k];
    free(old);
    return 0;
}

/* The number that a pair goes by: `next`, which is kept, where it is *unborn; 0 with *fault set. */
static int64_t number_of(memo *m, int64_t i, uint64_t key, int64_t next, int *unborn, int64_t most, int64_t *fault) {
    *fault = room_for_number(m, most);
    if (*fault) return 0;
    const uint64_t tag = pair_tag(i, key);
    memo_number *number = number_at(m, tag);
    *unborn = !number->tag;
    if (*unborn) {
        *number = (memo_number){tag, (uint64_t)next};
        m->n_numbers++;
    }
    return (int64_t)number->number;
}

#endif
