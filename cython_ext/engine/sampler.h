/* What all loops of a run read (`sampler`), and what each thread owns (`worker`). */
#ifndef HERDNER_SAMPLER_H
#define HERDNER_SAMPLER_H

#include "flips.h"
#include "packed_weights.h"

/* Probabilities and herding weights are integers in units of 1 / ONE, so that their sums are exact. */
#define ONE 4294967296.0

typedef struct {
    model m;
    plan_fields plan;
    weights_fields w;
    const state_t *x;             /* the joint state that conditionals are computed from */
    state_t *y;                   /* where new states are written: x itself except in the Jacobi scan */
    uint64_t *joint_key;          /* complete sharing: the sum of w.multipliers * state over all variables */
    uint64_t uniform_key, weight_key; /* streams of random numbers: for draws, and for the start values of weights */
    uint32_t *fractions;          /* dense weights of binary variables in the circular form, or NULL */
    double *dense;                /* dense signed weights, or NULL */
    int64_t max_bytes;            /* of the hash tables of one shard */
    const uint8_t *independent;   /* [V / BATCH_SIZE]: 1 if no two variables of a batch are neighbours; or NULL */
    double *conditional_sums;     /* sums of conditionals in the layout of the unary rows (Rao-Blackwell), or NULL */
    uint32_t *conditional_counts; /* [V]: how many conditionals were added */
    packed_site *sites;           /* [V] if weights are packed, or NULL */
    int32_t *rest;                /* members of their blankets without `last` */
    packed_row *places;           /* [1 + w.n_dense]; place 0 is unused */
    uint16_t *owners;             /* [1 + w.n_dense], for bins: 1 + the place, among those of the variable, whose row is used */
    int tracks;                   /* record flips, from which the log-potential is updated */
    int max_factors;              /* see `add_flips` */
} sampler;

typedef struct {
    flips *flips; /* of the current shard and sweep */
    hash_table *table;
    packed_store *store;
    int64_t fault, fault_variable;        /* 0 or a fault, and the variable where it occurred */
    double *row, *cumulative, *p;         /* scratch for the widest row */
    int64_t uniform_index, order_index;   /* the blocks that `uniforms` and `order` hold */
    double uniforms[UNIFORM_BLOCK];
    int32_t order[UNIFORM_BLOCK];
} worker;

/* Update variables order[0] .. order[n - 1] (first .. first + n - 1 if order is NULL), each with one uniform number. */
typedef void (*stepper)(const sampler *, worker *, const int32_t *order, int64_t first, int64_t n, const double *u);

/* Write a new state. `numerator`, `denominator`: see `add_flip`; variables in the log domain do not use them. */
static ALWAYS_INLINE void set_state(const sampler *s, worker *w, int64_t i, int x, double numerator, double denominator) {
    const state_t old = s->x[i];
    if (s->tracks && s->m.log_domain && s->m.log_domain[i]) {
        if (x != old) w->flips->log_gain[i % 4] += flip_log_gain(&s->m, i, s->x, x);
    } else if (s->tracks) {
        add_flip(w->flips, i % 4, numerator, denominator);
    }
    if (s->w.multipliers && s->x == s->y) *s->joint_key += s->w.multipliers[i] * ((uint64_t)x - old);
    s->y[i] = (state_t)x;
}

/* A loop works on a local copy of the sampler. Stores to states and weights cannot change it, so the compiler keeps its
 * fields in registers. */
#define OWN_COPY(s) const sampler own = *(s), *restrict const s_ = &own

#define EACH_VARIABLE for (int64_t j = 0, i; j < n && (i = order ? order[j] : first + j, 1); j++)

#endif
