/* Which packed row an update uses, and prefetching it (packed_weights.h draws the layout).
 *
 * The state of `last` is unknown until just before the update. So the loop prefetches, AHEAD_ROWS updates earlier, the rows
 * for all states of `last`; where a row_line names them, it prefetches the line AHEAD_LINES updates earlier. */
#ifndef HERDNER_PACKED_LOOKUP_H
#define HERDNER_PACKED_LOOKUP_H

#include "sampler.h"

enum { AHEAD_LINES = 16, AHEAD_ROWS = 6 }; /* updates */

static ALWAYS_INLINE int is_packed(const sampler *s, int64_t i) { return s->sites && s->sites[i].n_rest >= 0; }

/* The state of the blanket of variable i without `last`, as a number in base n_states. */
static ALWAYS_INLINE uint64_t rest_of(const sampler *s, int64_t i, int n_states) {
    const int32_t *members = s->rest + s->sites[i].rest;
    uint64_t rest = 0;
    for (int e = 0; e < s->sites[i].n_rest; e++) rest = rest * n_states + s->x[members[e]];
    return rest;
}

static ALWAYS_INLINE int state_of(const sampler *s, int64_t last) { return last < 0 ? 0 : s->x[last]; }

/* The place of a blanket state among the places of its variable. */
static ALWAYS_INLINE int64_t place_of(uint64_t rest, int64_t last, int last_state, int n_states) {
    return last < 0 ? (int64_t)rest : (int64_t)rest * n_states + last_state;
}

/* The tag of (variable, rest); never 0. */
static ALWAYS_INLINE uint64_t line_tag(int64_t i, uint64_t rest) { return mix64(((uint64_t)i << 32 | rest) + 1); }

/* Prefetch the line of variable i, or the owners of its places. Returns the index where the line probably is. */
static ALWAYS_INLINE uint64_t prefetch_line(const sampler *s, const packed_store *m, int64_t i, int n_states) {
    const packed_site *site = s->sites + i;
    if (site->n_rest < 0 || (site->first ? !s->owners : !m->lines.entries)) return 0;
    const uint64_t rest = rest_of(s, i, n_states);
    if (site->first) {
        __builtin_prefetch(s->owners + site->first + place_of(rest, site->last, 0, n_states));
        return 0;
    }
    const uint64_t at = line_tag(i, rest) & m->lines.mask;
    __builtin_prefetch(m->lines.entries + at * sizeof(row_line), 1);
    return at;
}

/* Prefetch all rows that variable i may use; `at`: from `prefetch_line`. */
static ALWAYS_INLINE void prefetch_rows(const sampler *s, const packed_store *m, int64_t i, int n_states, uint64_t at) {
    const packed_site *site = s->sites + i;
    if (site->n_rest < 0) return;
    if (site->first) {
        const int64_t first = site->first + place_of(rest_of(s, i, n_states), site->last, 0, n_states);
        if (!s->owners) {
            for (int k = 0; k < n_states; k++) __builtin_prefetch(s->places + first + k, 1);
        } else if (site->last >= 0) {
            for (int k = 0; k < n_states; k++) __builtin_prefetch(s->places + site->first - 1 + s->owners[first + k], 1);
        }
    } else if (m->lines.entries) {
        const row_line *line = (const row_line *)(m->lines.entries + at * sizeof(row_line));
        for (int k = 0; k < MAX_PACKED_STATES; k++) __builtin_prefetch(m->rows + line->rows[k], 1);
    }
}

/* The row that variable i has used at this state of its blanket before, or NULL. */
static ALWAYS_INLINE packed_row *find_row(const sampler *s, const packed_store *m, int64_t i, int n_states, int last_state) {
    const packed_site *site = s->sites + i;
    const uint64_t rest = rest_of(s, i, n_states);
    if (site->first) {
        const int64_t at = site->first + place_of(rest, site->last, last_state, n_states);
        if (!s->owners) return s->places[at].high[0] ? s->places + at : NULL;
        return s->owners[at] ? s->places + site->first - 1 + s->owners[at] : NULL;
    }
    if (!m->lines.entries) return NULL;
    const uint32_t row = line_of(m, line_tag(i, rest))->rows[last_state];
    return row ? m->rows + row : NULL;
}

/* Give this state of the blanket the row of `key`; *is_new is set where the row has no weights yet. Returns NULL with the
 * worker's fault set on failure. */
static packed_row *add_row(const sampler *s, worker *w, int64_t i, int n_states, uint64_t key, int *is_new) {
    packed_store *m = w->store;
    const uint64_t rest = rest_of(s, i, n_states);
    const int64_t first = s->sites[i].first, last = s->sites[i].last;
    const int64_t place = place_of(rest, last, state_of(s, last), n_states);
    if (!first) w->fault = reserve_line(m, s->max_bytes);
    if (!first && !w->fault) w->fault = reserve_row(m, s->max_bytes);
    int64_t row = first ? place + 1 : m->n_rows + 1;
    *is_new = 1; /* with blanket sharing each blanket state has its own key; several may share the key of a bin */
    if (s->w.draw == DRAW_BINS && !w->fault) row = row_of_key(m, i, key, row, is_new, s->max_bytes, &w->fault);
    if (w->fault) {
        w->fault_variable = i;
        return NULL;
    }
    if (first) {
        if (s->owners) s->owners[first + place] = (uint16_t)row;
        return s->places + first - 1 + row;
    }
    row_line *line = line_of(m, line_tag(i, rest));
    m->lines.count += !line->tag;
    line->tag = line_tag(i, rest);
    line->rows[state_of(s, last)] = (uint32_t)row;
    m->n_rows += *is_new;
    return m->rows + row;
}

#endif
