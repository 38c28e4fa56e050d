/* Which packed weights a state of a blanket leads to: found without working out their key, and asked for ahead of time,
 * where otherwise each update would wait for the memory.
 *
 * Places, and lines of rows, are in the order of the label of the last member of the blanket before the variable: in a
 * sweep in order it is the only one that is not known a few updates earlier. So all weights are fetched that it may choose
 * from; where they have no places, the line that names them is fetched before. */
#ifndef HERDNER_BLANKET_MEMO_H
#define HERDNER_BLANKET_MEMO_H

#include "sampler.h"

enum { AHEAD_LINES = 16, AHEAD_ROWS = 6 }; /* updates */

/* The first place of variable i; negative where its states have none. */
static ALWAYS_INLINE int64_t first_place(const sampler *s, int64_t i) {
    return !s->places ? -1 : s->w.weights_at ? s->w.weights_at[i] : i * s->w.n_keys;
}

static ALWAYS_INLINE int has_memo(const sampler *s, int64_t i) {
    return s->w.packed && s->w.key_starts[i + 1] - s->w.key_starts[i] <= MEMO_MEMBERS;
}

/* The state of the blanket of variable i but for the label of *last (-1: there is no member before i), as a number in base
 * n_labels. */
static ALWAYS_INLINE uint64_t rest_of(const sampler *s, int64_t i, int n_labels, int64_t *last) {
    uint64_t rest = 0;
    *last = -1;
    for (int64_t e = s->w.key_starts[i]; e < s->w.key_starts[i + 1]; e++) {
        int64_t j = s->w.key_members[e];
        if (j < i) {
            const int64_t before = *last;
            *last = j;
            j = before;
        }
        if (j >= 0) rest = rest * n_labels + s->x[j];
    }
    return rest;
}

static ALWAYS_INLINE int label_of(const sampler *s, int64_t last) { return last < 0 ? 0 : s->x[last]; }

/* The place of a state among those of its variable. */
static ALWAYS_INLINE int64_t place_of(uint64_t rest, int64_t last, int label, int n_labels) {
    return last < 0 ? (int64_t)rest : (int64_t)rest * n_labels + label;
}

/* A number of its own, not 0, for each variable and rest. */
static ALWAYS_INLINE uint64_t line_tag(int64_t i, uint64_t rest) { return mix64(((uint64_t)i << 32 | rest) + 1); }

/* Asks for the line of variable i, if it has one; returns where it probably stands. */
static ALWAYS_INLINE uint64_t fetch_line(const sampler *s, const memo *m, int64_t i, int n_labels) {
    int64_t last;
    if (first_place(s, i) >= 0 || !has_memo(s, i) || !m->lines) return 0;
    const uint64_t at = line_tag(i, rest_of(s, i, n_labels, &last)) & m->mask;
    __builtin_prefetch(m->lines + at, 1);
    return at;
}

/* Asks for all weights that variable i may use; `at`: of its line. */
static ALWAYS_INLINE void fetch_rows(const sampler *s, const memo *m, int64_t i, int n_labels, uint64_t at) {
    int64_t last;
    const int64_t first = first_place(s, i);
    if (first >= 0) {
        const uint64_t rest = rest_of(s, i, n_labels, &last);
        const packed_row *from = s->places + first + place_of(rest, last, 0, n_labels);
        for (int k = 0; k < n_labels; k++) __builtin_prefetch(from + k, 1);
    } else if (m->lines) {
        for (int k = 0; k < MOST_PACKED; k++) __builtin_prefetch(m->rows + m->lines[at].rows[k], 1);
    }
}

/* The weights that variable i had at this state of its blanket; NULL where it was not met. */
static ALWAYS_INLINE packed_row *known_row(const sampler *s, const memo *m, int64_t i, int n_labels) {
    int64_t last;
    const uint64_t rest = rest_of(s, i, n_labels, &last);
    const int64_t first = first_place(s, i);
    if (first >= 0) {
        packed_row *places = s->places + first;
        const uint32_t owner = places[place_of(rest, last, label_of(s, last), n_labels)].owner;
        return owner ? places + owner - 1 : NULL;
    }
    if (!m->lines) return NULL;
    const uint32_t row = line_at(m, line_tag(i, rest))->rows[label_of(s, last)];
    return row ? m->rows + row : NULL;
}

/* The weights of a key, which this state of the blanket leads to from now on, *unborn where they are new; NULL with the
 * worker's fault set. */
static packed_row *row_of_key(const sampler *s, worker *w, int64_t i, int n_labels, uint64_t key, int *unborn) {
    memo *m = w->memo;
    int64_t last;
    const uint64_t rest = rest_of(s, i, n_labels, &last);
    const int64_t first = first_place(s, i), place = place_of(rest, last, label_of(s, last), n_labels);
    if (first < 0) w->fault = room_for_line(m, s->most_bytes);
    if (first < 0 && !w->fault) w->fault = room_for_row(m, s->most_bytes);
    int64_t number = first < 0 ? m->n_rows + 1 : place + 1;
    *unborn = 1; /* as each state of a blanket has a key of its own, but of bins several may share one */
    if (s->w.draw == DRAW_BINS && !w->fault) number = number_of(m, i, key, number, unborn, s->most_bytes, &w->fault);
    if (w->fault) {
        w->faulty = i;
        return NULL;
    }
    if (first >= 0) {
        s->places[first + place].owner = (uint32_t)number;
        return s->places + first + number - 1;
    }
    memo_line *line = line_at(m, line_tag(i, rest));
    m->n_lines += !line->tag;
    line->tag = line_tag(i, rest);
    line->rows[label_of(s, last)] = (uint32_t)number;
    m->n_rows += *unborn;
    return m->rows + number;
}

#endif
