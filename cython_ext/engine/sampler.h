/* What the loops of one run share, and what each thread has of its own. */
#ifndef HERDNER_SAMPLER_H
#define HERDNER_SAMPLER_H

#include "packed_weights.h"
#include "flips.h"

/* Probabilities and herding weights are whole multiples of 1 / ONE, so that every sum of them is exact. */
#define ONE 4294967296.0

typedef struct {
    model m;
    plan_fields plan;
    weights_fields w;
    const state_t *x;             /* the state that conditionals are taken of */
    state_t *y;                   /* the state that labels are written to: x itself, but for the Jacobi scan */
    uint64_t *joint_key;        /* complete sharing: the sum of w.place * label over all variables */
    uint64_t weight_key;
    uint32_t *fractions;        /* dense weights of two labels in the circular form, or NULL */
    double *dense;              /* dense signed weights, or NULL */
    int64_t max_bytes;         /* of a hash table */
    const uint8_t *independent; /* which BATCHes of variables have no neighbours among themselves; or NULL */
    double *conditional_sums;   /* Rao-Blackwell: in the layout of the unary rows; may be NULL */
    uint32_t *conditional_counts; /* [V]: how many conditionals were added */
    memo_site *sites;           /* [V] where weights are packed, or NULL */
    int32_t *rest;              /* members of their blankets */
    packed_row *places;         /* [w.n_slots] where weights are packed, or NULL */
    uint16_t *owners;           /* [w.n_slots] of bins: 1 + the place whose weights a place uses, within those of its variable */
    int tracks;                 /* keep what turns of labels gain */
    int max_factors;                /* see `turn_many` */
} sampler;

typedef struct {
    flips *flips;               /* of the present shard in this sweep */
    weight_table *table;
    memo *memo;
    int64_t fault, fault_variable;      /* 0, or one of the negative codes; then `faulty` is the variable */
    double *w, *cumulative, *p; /* scratch of the widest row */
} worker;

/* Updates order[0] .. order[n - 1], or first .. first + n - 1 where order is NULL, taking one uniform number each. */
typedef void (*stepper)(const sampler *, worker *, const int32_t *order, int64_t first, int64_t n, const double *u);

/* won, lost: as in `turn`; of careful variables they do not matter. */
static ALWAYS_INLINE void set_state(const sampler *s, worker *w, int64_t i, int x, double numerator, double denominator) {
    const state_t old = s->x[i];
    if (s->tracks && s->m.log_domain && s->m.log_domain[i]) {
        if (x != old) w->flips->flip_log_gain[i % 4] += flip_log_gain(&s->m, i, s->x, x);
    } else if (s->tracks) {
        add_flip(w->flips, i % 4, numerator, denominator);
    }
    if (s->w.multipliers && s->x == s->y) *s->joint_key += s->w.multipliers[i] * ((uint64_t)x - old);
    s->y[i] = (state_t)x;
}

/* A loop works on a copy of the sampler, which stores to labels and weights cannot change: its fields stay in registers. */
#define OWN_COPY(s) const sampler own = *(s), *restrict const s_ = &own

#define EACH_VARIABLE for (int64_t j = 0, i; j < n && (i = order ? order[j] : first + j, 1); j++)

#endif
