/* Binary variables: herding, the draw, one update, and the loop over variables joined in pairs or not at all.
 *
 *     update_binary:  odds of state 0  ->  draw_binary (random, or herded by a sharing)  ->  set_state
 *     update_batch:   the same for BATCH_SIZE independent variables, step by step */
#ifndef HERDNER_BINARY_LOOP_H
#define HERDNER_BINARY_LOOP_H

#include "weight_keys.h"
#include "herding_weights.h"

/* The probability of state 1 in units of 2^-32, rounded to the nearest; 0 if the odds are NaN, as keys depend on it. */
static ALWAYS_INLINE int64_t fixed_probability(double odds) {
    const double p = ONE / (1.0 + odds), shifted = (p > 0.0 ? p : 0.0) + ROUNDING_SHIFT;
    int64_t bits;
    memcpy(&bits, &shifted, 8);
    return bits - ROUNDING_BITS;
}

/* Herding in the circular form: w += p; the carry is the state. */
static ALWAYS_INLINE int herd_fraction(uint32_t *weight, int64_t p) {
    const uint64_t sum = (uint64_t)*weight + (uint64_t)p;
    *weight = (uint32_t)sum;
    return (int)(sum >> 32);
}

/* Signed herding; with an error bound the start value is 0, otherwise uniform on (p - 1, p]. */
static ALWAYS_INLINE int herd_signed(double *weight, double p, int circular, double bound, int drawn, int is_new,
                                  uint64_t random_bits) {
    if (is_new) *weight = bound > 0.0 ? 0.0 : (circular ? 0.0 : p) - random_fixed(random_bits);
    if (circular) *weight += p;
    int x = (p > 0.0) & ((*weight > 0.0) | (p >= ONE));
    const int random = bound > 0.0 && fabs(*weight) <= bound * ONE;
    x ^= (x ^ drawn) & -random; /* no branch, as it would be unpredictable */
    *weight += (circular ? 0.0 : p) - x * ONE;
    return x;
}

/* u < 1 / (1 + odds), without the division. The odds may be infinite. */
static ALWAYS_INLINE int draws_one(double odds, double u) { return u * (1.0 + odds) < 1.0; }

/* The state chosen by the weight of a key. `drawn`: a state drawn at random, used within the error bound. */
static ALWAYS_INLINE int herd_binary(const sampler *s, worker *w, int64_t i, uint64_t key, int64_t p, int drawn) {
    if (s->fractions) return herd_fraction(s->fractions + first_weight(s, i) + key, p);
    double *weight = signed_weights(s, w, i, key, key);
    if (!weight) return s->x[i];
    const int is_new = is_uninitialised(weight), circular = s->plan.form == CIRCULAR;
    if (circular && s->plan.error_bound == 0.0) { /* the weight is a fraction, stored as a double */
        uint32_t fraction = is_new ? initial_fraction(s->weight_key, i, key) : (uint32_t)*weight;
        const int x = herd_fraction(&fraction, p);
        *weight = fraction;
        return x;
    }
    const uint64_t random_bits = is_new ? mix_pair(s->weight_key, i, key) : 0;
    return herd_signed(weight, (double)p, circular, s->plan.error_bound, drawn, is_new, random_bits);
}

static int draw_binary_general(const sampler *s, worker *w, int64_t i, double odds, double u) {
    int drawn = draws_one(odds, u);
    if (s->w.draw == DRAW_RANDOM) return drawn;
    int64_t p = fixed_probability(odds);
    const uint64_t key = s->w.sharing == SHARE_BINS          ? bin_of(p, s->w.n_bins)
                         : s->w.sharing == SHARE_RANDOM_BINS ? random_bin(s, u, &p, &drawn)
                                                           : key_of(s, i);
    return herd_binary(s, w, i, key, p, drawn);
}

static ALWAYS_INLINE int draw_binary(const sampler *s, worker *w, int64_t i, double odds, double u, const int draw) {
    uint32_t *weights = draw == DRAW_RANDOM || draw == DRAW_GENERAL ? NULL : s->fractions + first_weight(s, i);
    switch (draw) {
        case DRAW_RANDOM: return draws_one(odds, u);
        case DRAW_BLANKET: return herd_fraction(weights + blanket_key(s, i, s->x), fixed_probability(odds));
        case DRAW_SUM: return herd_fraction(weights + sum_key(s, i, s->x), fixed_probability(odds));
        case DRAW_BINS: {
            const int64_t p = fixed_probability(odds);
            return herd_fraction(weights + bin_of(p, s->w.n_bins), p);
        }
        default: return draw_binary_general(s, w, i, odds, u);
    }
}

enum { LISTS, PADDED_LISTS, GRID }; /* where the neighbours of a variable come from */

static ALWAYS_INLINE void update_binary(const sampler *s, worker *w, int64_t i, double u, const int draw, const int form) {
    const double odds = form == GRID ? grid_odds(&s->m, i, s->x)
                        : form == PADDED_LISTS ? padded_odds(&s->m, i, s->x)
                                                 : odds_of(&s->m, i, s->x);
    if (s->conditional_sums) {
        s->conditional_sums[unary_row(&s->m, i)] += 1.0 / (1.0 + odds);
        s->conditional_counts[i]++;
    }
    const int x = draw_binary(s, w, i, odds, u, draw), old = s->x[i];
    set_state(s, w, i, x, old > x ? odds : 1.0, old < x ? odds : 1.0);
}

/* Update a batch of variables of which no two are neighbours: first all odds, then all draws, so that the processor computes
 * several of them at once. */
static ALWAYS_INLINE void update_batch(const sampler *s, worker *w, int64_t i, const double *restrict u, const int draw) {
    double odds[BATCH_SIZE];
    int64_t p[BATCH_SIZE];
    state_t old[BATCH_SIZE];
    memcpy(old, s->x + i, sizeof(old));
    for (int j = 0; j < BATCH_SIZE; j++) odds[j] = padded_odds(&s->m, i + j, s->x);
    for (int j = 0; draw != DRAW_RANDOM && j < BATCH_SIZE; j++) p[j] = fixed_probability(odds[j]);
    for (int j = 0; j < BATCH_SIZE; j++) {
        int x;
        if (draw == DRAW_RANDOM) {
            x = draws_one(odds[j], u[j]);
        } else {
            const uint64_t key = draw == DRAW_BLANKET ? blanket_key(s, i + j, s->x)
                                 : draw == DRAW_SUM   ? sum_key(s, i + j, s->x)
                                                      : bin_of(p[j], s->w.n_bins);
            x = herd_fraction(s->fractions + first_weight(s, i + j) + key, p[j]);
        }
        s->y[i + j] = (state_t)x;
    }
    if (s->tracks) add_flips(w->flips, i, BATCH_SIZE, s->max_factors, odds, NULL, NULL, old, s->y + i);
}

#define STEP_BINARY(NAME, DRAW)                                                                                        \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        OWN_COPY(s);                                                                                                   \
        const int batches = DRAW != DRAW_GENERAL && !order && s->independent && !s->conditional_sums && s->x == s->y && \
                            !(s->tracks && s->m.log_domain);                                                           \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const int64_t i = order ? order[j] : first + j;                                                            \
            if (batches && i % BATCH_SIZE == 0 && j + BATCH_SIZE <= n && s_->independent[i / BATCH_SIZE]) {            \
                update_batch(s_, w, i, u + j, DRAW);                                                                   \
                j += BATCH_SIZE - 1;                                                                                   \
                continue;                                                                                              \
            }                                                                                                          \
            update_binary(s_, w, i, u[j], DRAW, PADDED_LISTS);                                                         \
            if (DRAW == DRAW_GENERAL && w->fault) return;                                                              \
        }                                                                                                              \
    }
STEP_BINARY(step_binary_random, DRAW_RANDOM)
STEP_BINARY(step_binary_blanket, DRAW_BLANKET)
STEP_BINARY(step_binary_sum, DRAW_SUM)
STEP_BINARY(step_binary_bins, DRAW_BINS)
STEP_BINARY(step_binary_general, DRAW_GENERAL)

#endif
