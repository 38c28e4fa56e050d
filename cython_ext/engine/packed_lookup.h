/* Which packed weights a state of a blanket leads to: found without working out their key, and asked for ahead of time,
 * where otherwise each update would wait for the memory.
 *
 * Places, and lines of rows, are in the order of the label of the last member of the blanket before the variable: in a
 * sweep in order it is the only one that is not known a few updates earlier. So all weights are fetched that it may choose
 * from; where they have no places, the line that names them is fetched before. */
#ifndef HERDNER_PACKED_LOOKUP_H
#define HERDNER_PACKED_LOOKUP_H

#include "sampler.h"

enum { AHEAD_LINES = 16, AHEAD_ROWS = 6 }; /* updates */

/* Whether the weights of variable i are packed. */
static ALWAYS_INLINE int has_memo(const sampler *s, int64_t i) { return s->sites && s->sites[i].n_rest >= 0; }

/* The state of the blanket of variable i but for its last member before i, as a number in base n_labels. */
static ALWAYS_INLINE uint64_t rest_of(const sampler *s, int64_t i, int n_states) {
    const int32_t *members = s->rest + s->sites[i].rest;
    uint64_t rest = 0;
    for (int e = 0; e < s->sites[i].n_rest; e++) rest = rest * n_states + s->x[members[e]];
    return rest;
}

static ALWAYS_INLINE int state_of(const sampler *s, int64_t last) { return last < 0 ? 0 : s->x[last]; }

/* The place of a state among those of its variable. */
static ALWAYS_INLINE int64_t place_of(uint64_t rest, int64_t last, int state_t, int n_states) {
    return last < 0 ? (int64_t)rest : (int64_t)rest * n_states + state_t;
}

/* A number of its own, not 0, for each variable and rest. */
static ALWAYS_INLINE uint64_t line_tag(int64_t i, uint64_t rest) { return mix64(((uint64_t)i << 32 | rest) + 1); }

/* Asks for the line of variable i, or for the owners of its places; returns where the line probably stands. */
static ALWAYS_INLINE uint64_t prefetch_line(const sampler *s, const memo *m, int64_t i, int n_states) {
    const memo_site *site = s->sites + i;
    if (site->n_rest < 0 || (site->first >= 0 ? !s->owners : !m->lines)) return 0;
    const uint64_t rest = rest_of(s, i, n_states);
    if (site->first >= 0) {
        __builtin_prefetch(s->owners + site->first + place_of(rest, site->last, 0, n_states));
        return 0;
    }
    const uint64_t at = line_tag(i, rest) & m->mask;
    __builtin_prefetch(m->lines + at, 1);
    return at;
}

/* Asks for all weights that variable i may use; `at`: of its line. */
static ALWAYS_INLINE void prefetch_rows(const sampler *s, const memo *m, int64_t i, int n_states, uint64_t at) {
    const memo_site *site = s->sites + i;
    if (site->n_rest < 0) return;
    if (site->first >= 0) {
        const packed_row *places = s->places + site->first;
        const int64_t place = place_of(rest_of(s, i, n_states), site->last, 0, n_states);
        if (!s->owners) {
            for (int k = 0; k < n_states; k++) __builtin_prefetch(places + place + k, 1);
        } else if (site->last >= 0) {
            const uint16_t *owners = s->owners + site->first + place;
            for (int k = 0; k < n_states; k++) __builtin_prefetch(places + (int64_t)owners[k] - 1, 1);
        }
    } else if (m->lines) {
        for (int k = 0; k < MAX_PACKED_STATES; k++) __builtin_prefetch(m->rows + m->lines[at].rows[k], 1);
    }
}

/* The weights that variable i had at this state of its blanket, whose last member before i has `label`; NULL where it was
 * not met. */
static ALWAYS_INLINE packed_row *known_row(const sampler *s, const memo *m, int64_t i, int n_states, int state_t) {
    const memo_site *site = s->sites + i;
    const uint64_t rest = rest_of(s, i, n_states);
    if (site->first >= 0) {
        const int64_t at = site->first + place_of(rest, site->last, state_t, n_states);
        if (!s->owners) return s->places[at].high[0] ? s->places + at : NULL;
        return s->owners[at] ? s->places + site->first + s->owners[at] - 1 : NULL;
    }
    if (!m->lines) return NULL;
    const uint32_t row = line_at(m, line_tag(i, rest))->rows[state_t];
    return row ? m->rows + row : NULL;
}

/* The weights of a key, which this state of the blanket leads to from now on, *unborn where they are new; NULL with the
 * worker's fault set. */
static packed_row *row_of_key(const sampler *s, worker *w, int64_t i, int n_states, uint64_t key, int *unborn) {
    memo *m = w->memo;
    const uint64_t rest = rest_of(s, i, n_states);
    const int64_t first = s->sites[i].first, last = s->sites[i].last;
    const int64_t place = place_of(rest, last, state_of(s, last), n_states);
    if (first < 0) w->fault = room_for_line(m, s->max_bytes);
    if (first < 0 && !w->fault) w->fault = room_for_row(m, s->max_bytes);
    int64_t number = first < 0 ? m->n_rows + 1 : place + 1;
    *unborn = 1; /* as each state of a blanket has a key of its own, but of bins several may share one */
    if (s->w.draw == DRAW_BINS && !w->fault) number = number_of(m, i, key, number, unborn, s->max_bytes, &w->fault);
    if (w->fault) {
        w->fault_variable = i;
        return NULL;
    }
    if (first >= 0) {
        if (s->owners) s->owners[first + place] = (uint16_t)number;
        return s->places + first + number - 1;
    }
    memo_line *line = line_at(m, line_tag(i, rest));
    m->n_lines += !line->tag;
    line->tag = line_tag(i, rest);
    line->rows[state_of(s, last)] = (uint32_t)number;
    m->n_rows += *unborn;
    return m->rows + number;
}

#endif
