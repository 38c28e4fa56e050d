/* What is kept of the states at the ends of sweeps. Every part is optional: its pointer is NULL where it is not wanted. */
#ifndef HERDNER_GIBBS_RECORD_H
#define HERDNER_GIBBS_RECORD_H

#include "gibbs_model.h"

/* A group of factors, for counts and log-potentials; strides in elements, 0 where one number stands for all. */
typedef struct {
    int64_t n, arity, cells;
    const int32_t *scopes, *table_of_factor, *sizes;
    int64_t table_stride, scale_stride;
    const double *scale, *tables;
    double *counts;
} factor_group;

typedef struct {
    uint32_t *counts;          /* like the unary rows: sweeps in which a label was taken (label 1 of two labels) */
    double *conditional_sums;  /* taken up by the loops after the burn-in */
    uint32_t *joint;           /* sweeps in which a whole state was taken */
    const int64_t *joint_place;
    int table_counts;
    double *trace;             /* [n_sweeps] */
    label *samples;            /* every `every`-th state after the burn-in */
    int64_t every;
    label *best;               /* the visited state of largest log-potential */
    double best_log_potential;
    double log_potential, carry; /* of the current state: a compensated sum */
    int64_t burn_in, n_kept, n_samples;
} record;

static inline int64_t cell_of(const factor_group *g, int64_t f, const label *x) {
    int64_t cell = 0;
    for (int64_t a = 0; a < g->arity; a++) cell = cell * g->sizes[a] + x[g->scopes[f * g->arity + a]];
    return g->table_of_factor[f * g->table_stride] * g->cells + cell;
}

static inline double state_log_potential(const factor_group *groups, int n_groups, const label *x) {
    double sum = 0.0, carry = 0.0;
    for (int g = 0; g < n_groups; g++) {
        for (int64_t f = 0; f < groups[g].n; f++) {
            const double value = groups[g].scale[f * groups[g].scale_stride] * groups[g].tables[cell_of(&groups[g], f, x)];
            if (value == -INFINITY) return value;
            const double term = value - carry, next = sum + term; /* Kahan's sum */
            carry = (next - sum) - term;
            sum = next;
        }
    }
    return sum;
}

static inline void add_gain(record *r, double gain) {
    const double term = gain - r->carry, next = r->log_potential + term;
    r->carry = (next - r->log_potential) - term;
    r->log_potential = next;
}

/* Counts the labels of variables begin .. end - 1. */
static inline void count_labels(record *r, const model *m, const label *restrict x, int all_two, int64_t begin, int64_t end) {
    uint32_t *restrict counts = r->counts;
    if (all_two)
        for (int64_t i = begin; i < end; i++) counts[i] += x[i];
    else
        for (int64_t i = begin; i < end; i++) {
            if (m->sizes[i] == 2) counts[unary_row(m, i)] += x[i];
            else counts[unary_row(m, i) + x[i]]++;
        }
}

/* The end of sweep t, but for the counts of labels; keeps[t] after the burn-in. */
static inline void record_sweep(record *r, const factor_group *groups, int n_groups, const label *x, int64_t n, int64_t t) {
    if (r->trace) r->trace[t] = r->log_potential;
    if (r->best && r->log_potential > r->best_log_potential) {
        r->best_log_potential = r->log_potential;
        memcpy(r->best, x, n * sizeof(label));
    }
    if (t < r->burn_in) return;
    if (r->samples && (t - r->burn_in) % r->every == 0) memcpy(r->samples + n * r->n_samples++, x, n * sizeof(label));
    if (r->joint) {
        int64_t cell = 0;
        for (int64_t i = 0; i < n; i++) cell += r->joint_place[i] * x[i];
        r->joint[cell]++;
    }
    for (int g = 0; r->table_counts && g < n_groups; g++)
        for (int64_t f = 0; f < groups[g].n; f++)
            groups[g].counts[cell_of(&groups[g], f, x)] += groups[g].scale[f * groups[g].scale_stride];
    r->n_kept++;
}

#endif
