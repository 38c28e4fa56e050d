/* Recording the states at the ends of sweeps. Every part is optional; its array is NULL if the caller did not ask for it. */
#ifndef HERDNER_RECORD_H
#define HERDNER_RECORD_H

#include "model.h"

typedef struct {
    record_fields options;
    double best_log_potential;
    double log_potential, carry; /* of the current state: a compensated sum */
    int64_t burn_in, n_samples;
} record;

/* The table cell of factor f of a group at the joint state x. */
static inline int64_t cell_of(const factor_group *g, int64_t f, const state_t *x) {
    int64_t cell = 0;
    for (int64_t a = 0; a < g->arity; a++) cell = cell * g->sizes[a] + x[g->scopes[f * g->arity + a]];
    return g->table_of_factor[f * g->table_of_factor_stride] * g->cells + cell;
}

static inline double state_log_potential(const factor_group *groups, int n_groups, const state_t *x) {
    double sum = 0.0, carry = 0.0;
    for (int g = 0; g < n_groups; g++) {
        for (int64_t f = 0; f < groups[g].n_scale; f++) {
            const double value = groups[g].scale[f * groups[g].scale_stride] * groups[g].tables[cell_of(&groups[g], f, x)];
            if (value == -INFINITY) return value;
            const double term = value - carry, next = sum + term; /* Kahan's sum */
            carry = (next - sum) - term;
            sum = next;
        }
    }
    return sum;
}

/* Add a change to the log-potential of the current state. */
static inline void add_gain(record *r, double flip_log_gain) {
    const double term = flip_log_gain - r->carry, next = r->log_potential + term;
    r->carry = (next - r->log_potential) - term;
    r->log_potential = next;
}

/* The first entry of variable i in the layout of unary rows; i may be the number of variables. */
static inline int64_t rows_before(const model *m, int64_t i) { return i < m->c.n ? unary_row(m, i) : m->c.n_unary; }

/* States are counted in bytes, which are moved to the recorded counts before they can overflow. */
enum { MAX_BYTE_COUNT = 255 };

static inline void flush_counts(uint8_t *restrict byte_counts, uint32_t *restrict counts, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) counts[k] += byte_counts[k];
    memset(byte_counts + begin, 0, end - begin);
}

/* Count the states of variables begin .. end - 1: only state 1 of a binary variable, every state of other variables. */
static inline void tally_states(uint8_t *restrict counts, const model *m, const state_t *restrict x, int all_two,
                                int64_t begin, int64_t end) {
    if (all_two)
        for (int64_t i = begin; i < end; i++) counts[i] += x[i];
    else
        for (int64_t i = begin; i < end; i++) {
            if (m->c.sizes[i] == 2) counts[unary_row(m, i)] += x[i];
            else counts[unary_row(m, i) + x[i]]++;
        }
}

/* Record the end of sweep t, except the counts of states. */
static inline void record_sweep(record *r, const arrays_fields *to, const factor_group *groups, int n_groups,
                                const state_t *x, int64_t n, int64_t t) {
    if (to->trace) to->trace[t] = r->log_potential;
    if (to->best && r->log_potential > r->best_log_potential) {
        r->best_log_potential = r->log_potential;
        memcpy(to->best, x, n * sizeof(state_t));
    }
    if (t < r->burn_in) return;
    if (to->samples && (t - r->burn_in) % r->options.every == 0)
        memcpy(to->samples + n * r->n_samples++, x, n * sizeof(state_t));
    if (to->joint) {
        int64_t cell = 0;
        for (int64_t i = 0; i < n; i++) cell += to->joint_multipliers[i] * x[i];
        to->joint[cell]++;
    }
    for (int g = 0; g < n_groups; g++)
        for (int64_t f = 0; groups[g].counts && f < groups[g].n_scale; f++)
            groups[g].counts[cell_of(&groups[g], f, x)] += groups[g].scale[f * groups[g].scale_stride];
}

#endif
