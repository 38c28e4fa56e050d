/* Which weights a state of a blanket leads to: found without working out their key, and asked for ahead of time, where
 * otherwise each update would wait for the memory.
 *
 * A line holds this for all labels of one member of the blanket, the last one before the variable: in a sweep in order it
 * is the only one that is not known a few updates earlier. So lines are fetched first, then all weights that they name. */
#ifndef HERDNER_BLANKET_MEMO_H
#define HERDNER_BLANKET_MEMO_H

#include "sampler.h"

enum { AHEAD_LINES = 8, AHEAD_ROWS = 3 }; /* updates */

/* Whether the weights of variable i stand in a memo. */
static ALWAYS_INLINE int is_remembered(const sampler *s, int64_t i) {
    return s->remembers && s->w.key_starts[i + 1] - s->w.key_starts[i] <= MEMO_MEMBERS &&
           !(s->dense && s->w.weights_at[i] >= 0);
}

/* A number of its own, not 0, for each variable and state of its blanket but for *last, or -1. */
static ALWAYS_INLINE uint64_t memo_tag(const sampler *s, int64_t i, const label *x, int64_t *last) {
    uint64_t rest = 0;
    *last = -1;
    for (int64_t e = s->w.key_starts[i]; e < s->w.key_starts[i + 1]; e++) {
        int64_t j = s->w.key_members[e];
        if (j < i) {
            const int64_t before = *last;
            *last = j;
            j = before;
        }
        if (j >= 0) rest = rest * MEMO_LABELS + x[j];
    }
    return mix64(((uint64_t)i << 32 | rest) + 1);
}

/* Asks for the line of variable i; returns where it probably stands. */
static ALWAYS_INLINE uint64_t fetch_line(const sampler *s, const memo *m, int64_t i) {
    int64_t last;
    if (!is_remembered(s, i) || !m->lines) return 0;
    const uint64_t at = memo_tag(s, i, s->x, &last) & m->mask;
    __builtin_prefetch(m->lines + at, 1);
    return at;
}

/* Asks for all weights that a line names. */
static ALWAYS_INLINE void fetch_rows(const memo *m, uint64_t at) {
    if (!m->lines) return;
    for (int k = 0; k < MEMO_LABELS; k++) __builtin_prefetch(m->rows + m->lines[at].rows[k], 1);
}

/* The weights that variable i had at this state of its blanket; NULL where it is new. */
static ALWAYS_INLINE packed_row *remembered(const sampler *s, const memo *m, int64_t i) {
    int64_t last;
    if (!m->lines) return NULL;
    const memo_line *line = line_at(m, memo_tag(s, i, s->x, &last));
    const uint32_t row = line->rows[last < 0 ? 0 : s->x[last]];
    return row ? m->rows + row : NULL;
}

/* The weights of a key, which this state of the blanket leads to from now on, *unborn where they are new; NULL with the
 * worker's fault set. */
static packed_row *remember(const sampler *s, worker *w, int64_t i, uint64_t key, int *unborn) {
    memo *m = w->memo;
    int64_t last, row = 0;
    *unborn = 1;
    w->fault = room_for_line(m, s->most_bytes);
    if (w->fault) row = 0;
    else if (s->w.draw == DRAW_BLANKET) row = new_row(m, s->most_bytes, &w->fault); /* the only state of this key */
    else row = row_of_key(m, i, key, unborn, s->most_bytes, &w->fault);
    if (w->fault) {
        w->faulty = i;
        return NULL;
    }
    const uint64_t tag = memo_tag(s, i, s->x, &last);
    memo_line *line = line_at(m, tag);
    m->n_lines += !line->tag;
    line->tag = tag;
    line->rows[last < 0 ? 0 : s->x[last]] = (uint32_t)row;
    return m->rows + row;
}

#endif
