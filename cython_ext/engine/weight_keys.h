/* The key of the herding weights that an update uses (Y of HGW19 Algorithm 6), for each kind of sharing.
 *
 * Fixed-point probabilities are integers in units of 2^-32. A state of probability 0 has exactly 0 and is never chosen. */
#ifndef HERDNER_WEIGHT_KEYS_H
#define HERDNER_WEIGHT_KEYS_H

#include "sampler.h"

/* The neighbours of variable i of a grid in ascending order. Returns their number. */
static inline int grid_members(const grid_fields *g, int64_t i, int64_t *at) {
    int side[4];
    const int n = grid_neighbours(g, i, at, side);
    for (int k = 1; k < n; k++)
        for (int j = k; j > 0 && at[j] < at[j - 1]; j--) {
            const int64_t t = at[j];
            at[j] = at[j - 1];
            at[j - 1] = t;
        }
    return n;
}

/* The state of the blanket as a mixed-radix number or, where that exceeds 64 bits, as a hash. */
static ALWAYS_INLINE uint64_t blanket_key(const sampler *s, int64_t i, const state_t *x) {
    uint64_t key = 0;
    if (s->m.grid) {
        int64_t at[4];
        const int n = grid_members(s->m.grid, i, at);
        for (int k = 0; k < n; k++) key = key * 2 + x[at[k]];
        return key;
    }
    const int hashed = s->w.hashed_keys && s->w.hashed_keys[i];
    for (int64_t e = s->w.key_starts[i]; e < s->w.key_starts[i + 1]; e++) {
        const int32_t j = s->w.key_members[e];
        key = hashed ? mix64(key + GOLDEN * (x[j] + 1)) : key * s->m.c.sizes[j] + x[j];
    }
    return key;
}

/* The position of a blanket state's weights among the dense weights of variable i: a mixed-radix number whose last digit
 * belongs to the first member, so that the weights for all states of that member are adjacent. If `with_first` is 0, the
 * last digit is 0. */
static ALWAYS_INLINE uint64_t blanket_place(const sampler *s, int64_t i, const state_t *x, int with_first) {
    const int64_t begin = s->w.key_starts[i];
    uint64_t place = 0;
    for (int64_t e = s->w.key_starts[i + 1] - 1; e > begin; e--) {
        const int32_t j = s->w.key_members[e];
        place = place * s->m.c.sizes[j] + x[j];
    }
    if (begin == s->w.key_starts[i + 1]) return 0;
    return place * s->m.c.sizes[s->w.key_members[begin]] + (with_first ? x[s->w.key_members[begin]] : 0);
}

/* The number of neighbours in each state; for binary variables the sum of the neighbours (HG16 Sec. 4.3). */
static ALWAYS_INLINE uint64_t sum_key(const sampler *s, int64_t i, const state_t *x) {
    uint64_t key = 0;
    if (s->m.grid) {
        int64_t at[4];
        const int n = grid_members(s->m.grid, i, at);
        for (int k = 0; k < n; k++) key += x[at[k]];
        return key;
    }
    const int64_t begin = s->w.key_starts[i], end = s->w.key_starts[i + 1];
    for (int64_t e = begin; e < end; e++) {
        const state_t l = x[s->w.key_members[e]];
        if (s->w.hashed_keys && s->w.hashed_keys[i]) {
            key += mix64(GOLDEN * (l + 1));
        } else if (l) {
            uint64_t place = 1;
            for (state_t k = 1; k < l; k++) place *= (uint64_t)(end - begin + 1);
            key += place;
        }
    }
    return key;
}

/* The state of all other variables. */
static ALWAYS_INLINE uint64_t complete_key(const sampler *s, int64_t i) {
    return *s->joint_key - s->w.multipliers[i] * s->x[i];
}

/* The bin (b / B, (b + 1) / B] of a fixed-point probability (HGW19 Algorithm 5); 0 belongs to bin 0. */
static ALWAYS_INLINE uint64_t bin_of(int64_t p, int64_t bins) { return p ? (uint64_t)(p * bins - 1) >> 32 : 0; }

/* A second uniform number, derived from one that has already chosen the weight. */
static inline double next_uniform(double u) {
    uint64_t bits;
    memcpy(&bits, &u, 8);
    return as_uniform(mix64(bits + GOLDEN));
}

_Static_assert(N_SHARINGS == 5, "key_of lists every sharing except those by bins, whose keys depend on probabilities");
static inline uint64_t key_of(const sampler *s, int64_t i) {
    switch (s->w.sharing) {
        case SHARE_COMPLETE: return complete_key(s, i);
        case SHARE_BLANKET: return blanket_key(s, i, s->x);
        case SHARE_SUM: return sum_key(s, i, s->x);
        default: return 0;
    }
}

/* The key b or b + 1 of HGW19 Algorithm 9, drawn so that the mean of key / B is p. Sets p to key / B, and `drawn` to a state
 * drawn from that probability. */
static ALWAYS_INLINE uint64_t random_bin(const sampler *s, double u, int64_t *p, int *drawn) {
    const uint64_t scaled = (uint64_t)*p * (uint64_t)s->w.n_bins;
    const uint64_t key = (scaled >> 32) + (u * ONE < (double)(uint32_t)scaled);
    *p = (int64_t)((key << 32) / (uint64_t)s->w.n_bins);
    *drawn = next_uniform(u) * ONE < (double)*p;
    return key;
}

/* The bins of all states together. HGW19 defines bins for two states only. */
static ALWAYS_INLINE uint64_t bins_key(const sampler *s, const double *p, int n) {
    uint64_t key = 0;
    if (s->w.n_bins == 1) return 0;
    for (int k = 0; k < n; k++) key += s->w.bin_multipliers[k] * bin_of((int64_t)p[k], s->w.n_bins);
    return key;
}

/* The key of variable i in a loop specialised for `draw`; bins are those of the probabilities p. */
static ALWAYS_INLINE uint64_t key_for_draw(const sampler *s, int64_t i, const double *p, int n, const int draw) {
    if (draw == DRAW_BLANKET) return blanket_key(s, i, s->x);
    return draw == DRAW_SUM ? sum_key(s, i, s->x) : bins_key(s, p, n);
}

/* The position of that key's weights among the dense weights of variable i. */
static ALWAYS_INLINE uint64_t dense_place(const sampler *s, int64_t i, uint64_t key, const int draw) {
    return draw == DRAW_BLANKET ? blanket_place(s, i, s->x, 1) : key;
}

/* Round p at random to multiples of 1 / B whose mean is p, by systematic sampling with one uniform number. For two states
 * this is HGW19 Algorithm 9. Returns the key. */
static inline uint64_t round_probabilities(const sampler *s, double *p, int n, double u) {
    const uint64_t offset = (uint64_t)(u * ONE), bins = (uint64_t)s->w.n_bins;
    uint64_t key = 0, sum = 0, last = 0, before = 0;
    int end = n - 1; /* the last possible state; its cumulative sum is set to 1, which a sum of rounded numbers may miss */
    while (p[end] == 0.0) end--;
    for (int k = 0; k < n; k++) {
        sum += (uint64_t)p[k];
        if (k >= end || sum > UINT64_C(4294967296)) sum = UINT64_C(4294967296);
        const uint64_t count = (sum * bins + offset) >> 32, c = (count << 32) / bins;
        key += s->w.bin_multipliers[k] * (count - last);
        p[k] = (double)(c - before);
        last = count;
        before = c;
    }
    return key;
}

#endif
