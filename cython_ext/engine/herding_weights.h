/* Where the herding weights of a (variable, key) live, and how they start.
 *
 * Two numeric forms. Fractions: one uint32 w / 2^32 for variables of two labels in the circular form.
 * Signed: doubles in units of 2^-32; one for a variable of two labels, a padded row otherwise. Signed herding is HGW19
 * Algorithms 2 and 3, within an error bound Algorithms 7 and 8 (`drawn` is the label drawn at random); the circular form
 * adds p before it decides. Herding never chooses a label of probability 0.
 *
 * Dense tables hold every key; beyond a budget a hash table holds the keys that were met. Weights of a few labels may stand
 * by the state of the blanket instead (blanket_memo.h). The start of a weight is drawn from a stream of its own by
 * (variable, key), so it does not depend on the layout or on when the key is first met. */
#ifndef HERDNER_HERDING_WEIGHTS_H
#define HERDNER_HERDING_WEIGHTS_H

#include "sampler.h"

static ALWAYS_INLINE int64_t first_weight(const sampler *s, int64_t i) {
    return s->w.weight_starts ? s->w.weight_starts[i] : i * s->w.n_keys;
}

static ALWAYS_INLINE double *signed_weight(const sampler *s, worker *w, int64_t i, uint64_t key, uint64_t place) {
    if (s->dense && first_weight(s, i) >= 0) return s->dense + (first_weight(s, i) + place) * s->w.row_length;
    double *slot = weight_table_slot(w->table, i, key, s->max_bytes, &w->fault);
    if (!slot) w->fault_variable = i;
    return slot;
}

/* The start of a weight in the circular form does not depend on p: uniform on all fractions. */
static ALWAYS_INLINE uint32_t initial_fraction(uint64_t weight_key, int64_t i, uint64_t key) {
    return (uint32_t)(mix_pair(weight_key, i, key) >> 32);
}

/* Of signed weights: from 32 random bits. */
static ALWAYS_INLINE double random_fixed(uint64_t random) { return (double)(random >> 32); }

/* The first label of new weights is drawn from p, and all others had their last turn a random part of a round ago. (The
 * start p - e_k, k drawn from p, makes early labels depend on p in the wrong way: for p = 0.2, 0.8 the second label is
 * 0 four times out of five.) Within an error bound all start at 0. Returns the first label. */
static int initialise_row(double *weights, const double *p, int n, int circular, int bounded, int drawn, uint64_t start) {
    if (bounded) {
        memset(weights, 0, n * sizeof(double));
        return drawn;
    }
    const double at = random_fixed(start);
    double sum = 0.0, top = -INFINITY;
    int chosen = -1;
    for (int k = 0; k < n; k++) weights[k] = 0.0 - random_fixed(mix64(start + GOLDEN * (k + 1)));
    for (int k = 0; k < n; k++) {
        if (!circular) weights[k] += p[k];
        if (p[k] <= 0.0) continue;
        if (chosen < 0 || sum <= at) chosen = k;
        sum += p[k];
        const double decides = circular ? weights[k] + p[k] : weights[k];
        if (decides > top) top = decides;
    }
    weights[chosen] = circular ? top - p[chosen] : top;
    return chosen;
}

/* Starts weights, adds p, and returns the first label. */
static ALWAYS_INLINE int initialise_and_choose(double *weights, const double *p, int n, int width, const int circular,
                                          const double bound, int drawn, uint64_t start) {
    const int x = initialise_row(weights, p, n, circular, bound > 0.0, drawn, start);
    for (int k = 0; k < n; k++) weights[k] += p[k];
    for (int k = n; k < width; k++) weights[k] = 0.0;
    return x;
}

#endif
