/* The herding weights of a (variable, key): their numeric forms, where they are stored, and their start values.
 *
 * Fractions: one uint32 w / 2^32, for binary variables in the circular form. Signed weights: doubles in units of 2^-32; one
 * for a binary variable, otherwise a row padded to a multiple of 4. Signed herding is HGW19 Algorithms 2 and 3, with an
 * error bound Algorithms 7 and 8; the circular form adds p before it decides. Herding never chooses a state of probability 0.
 *
 * A dense table has weights for all keys. Beyond a budget a hash table stores only the keys that occur. Weights of a few
 * states can be packed instead (packed_weights.h). The start value of a weight comes from a stream of random numbers by
 * (variable, key), so it depends neither on the layout nor on when the key first occurs. */
#ifndef HERDNER_HERDING_WEIGHTS_H
#define HERDNER_HERDING_WEIGHTS_H

#include "sampler.h"

#define UNINITIALISED -0.0 /* no sum of weights is a negative zero */

static ALWAYS_INLINE int is_uninitialised(const double *weight) { return *weight == 0.0 && signbit(*weight); }

/* The index of a variable's first dense weight; negative if its weights are in the hash table. */
static ALWAYS_INLINE int64_t first_weight(const sampler *s, int64_t i) {
    return s->w.weight_starts ? s->w.weight_starts[i] : i * s->w.n_keys;
}

/* The signed weights of a key, in the hash table created on demand; NULL with the worker's fault set on failure.
 * `place`: their position among the dense weights of the variable. */
static ALWAYS_INLINE double *signed_weights(const sampler *s, worker *w, int64_t i, uint64_t key, uint64_t place) {
    if (s->dense && first_weight(s, i) >= 0) return s->dense + (first_weight(s, i) + place) * s->w.row_length;
    const int64_t size = 8 * (1 + s->w.row_length);
    w->fault = hash_table_reserve(w->table, size, 1024, 2, s->max_bytes);
    if (w->fault) {
        w->fault_variable = i;
        return NULL;
    }
    const uint64_t tag = pair_tag(i, key);
    uint64_t *entry = hash_entry(w->table, size, tag);
    double *weights = (double *)(entry + 1);
    if (!*entry) {
        *entry = tag;
        w->table->count++;
        weights[0] = UNINITIALISED;
    }
    return weights;
}

/* The start value of a fraction: uniform, whatever the probability. */
static ALWAYS_INLINE uint32_t initial_fraction(uint64_t weight_key, int64_t i, uint64_t key) {
    return (uint32_t)(mix_pair(weight_key, i, key) >> 32);
}

/* A uniform number 0 <= r < ONE from random bits. */
static ALWAYS_INLINE double random_fixed(uint64_t random) { return (double)(random >> 32); }

/* Set the start values of a row and return its first state. That state is drawn from p; all other states start as if they
 * had been chosen a random part of a round ago. (The simpler start p - e_k with k drawn from p would correlate early states
 * with p: for p = 0.2, 0.8 the second state would be 0 four times out of five.) With an error bound all weights start at 0
 * and the first state is `drawn`. */
static int initialise_row(double *weights, const double *p, int n, int circular, int bounded, int drawn, uint64_t random) {
    if (bounded) {
        memset(weights, 0, n * sizeof(double));
        return drawn;
    }
    const double at = random_fixed(random);
    double sum = 0.0, top = -INFINITY;
    int first = -1;
    for (int k = 0; k < n; k++) weights[k] = 0.0 - random_fixed(mix64(random + GOLDEN * (k + 1)));
    for (int k = 0; k < n; k++) {
        if (!circular) weights[k] += p[k];
        if (p[k] <= 0.0) continue;
        if (first < 0 || sum <= at) first = k;
        sum += p[k];
        const double decisive = circular ? weights[k] + p[k] : weights[k];
        if (decisive > top) top = decisive;
    }
    weights[first] = circular ? top - p[first] : top;
    return first;
}

/* Set the start values of a row, add p, and return the first state. */
static ALWAYS_INLINE int initialise_and_choose(double *weights, const double *p, int n, int width, const int circular,
                                               const double bound, int drawn, uint64_t random) {
    const int x = initialise_row(weights, p, n, circular, bound > 0.0, drawn, random);
    for (int k = 0; k < n; k++) weights[k] += p[k];
    for (int k = n; k < width; k++) weights[k] = 0.0;
    return x;
}

#endif
