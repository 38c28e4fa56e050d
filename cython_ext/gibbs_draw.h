/* One draw of the Gibbs family (HGW19 Algorithm 6): which herding weight, then which label.
 *
 * Fixed-point probabilities are multiples of 2^-32; a label of probability 0 has exactly 0 and is never drawn. */
#ifndef HERDNER_GIBBS_DRAW_H
#define HERDNER_GIBBS_DRAW_H

#include "gibbs_weights.h"

enum { SHARE_COMPLETE, SHARE_BLANKET, SHARE_SUM, SHARE_BINS, SHARE_RANDOM_BINS };

/* How a loop draws, a constant in specialised loops. DRAW_ANY covers all cases. */
enum { DRAW_RANDOM, DRAW_BLANKET, DRAW_SUM, DRAW_BINS, DRAW_ANY };

typedef struct {
    model m;
    const label *x;             /* the state that conditionals are taken of */
    label *y;                   /* the state that labels are written to: x itself, but for the Jacobi scan */
    int draw, sharing, circular;
    double one;                 /* what signed weights count as 1: 2^32, so that all are whole numbers, or 1.0 */
    int64_t bins;
    double error_bound;
    const int64_t *key_starts;  /* the variables whose labels make the key, in rising order */
    const int32_t *key_members;
    const uint8_t *long_keys;   /* variables whose keys are hashes, as they do not fit 64 bits; may be NULL */
    const uint64_t *place;      /* complete sharing: the key is the sum of place * label over the other variables, */
    uint64_t *state_sum;        /* and this the sum over all */
    const uint64_t *bin_places; /* of more than two labels: the key is the sum of place * bin over the labels */
    uint64_t weight_key;
    uint32_t *fractions;        /* dense weights of two labels in the circular form, or NULL */
    double *dense;              /* dense signed weights, or NULL */
    const int64_t *weights_at;  /* first key of each variable in the dense table, -1: hashed; or NULL: i * n_keys */
    int64_t n_keys, words;
    int64_t most_bytes;         /* of a hash table */
    const uint8_t *independent; /* which BATCHes of variables have no neighbours among themselves; or NULL */
    double *conditional_sums;   /* Rao-Blackwell: in the layout of the unary rows; may be NULL */
    uint32_t *conditional_counts; /* [V]: how many conditionals were added */
    int follow;                 /* keep the log-potential */
} sampler;

typedef struct {
    double gain[4];             /* of the log-potential, since it was last taken, in the present shard, by i modulo 4 */
    weight_table *table;
    int64_t fault;              /* 0, or one of the negative codes; then `faulty` is the variable */
    int64_t faulty;
    double *w, *cumulative, *p; /* scratch of the widest row */
} worker;

static ALWAYS_INLINE int64_t first_key(const sampler *s, int64_t i) {
    return s->weights_at ? s->weights_at[i] : i * s->n_keys;
}

/* The neighbours of variable i of a grid in rising order. */
static inline int grid_members(const grid_model *g, int64_t i, int64_t *at) {
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

/* The state of the blanket: a mixed-radix number or, where that does not fit, a hash. */
static ALWAYS_INLINE uint64_t blanket_key(const sampler *s, int64_t i, const label *x) {
    uint64_t key = 0;
    if (s->m.grid) {
        int64_t at[4];
        const int n = grid_members(s->m.grid, i, at);
        for (int k = 0; k < n; k++) key = key * 2 + x[at[k]];
        return key;
    }
    const int hashed = s->long_keys && s->long_keys[i];
    for (int64_t e = s->key_starts[i]; e < s->key_starts[i + 1]; e++) {
        const int32_t j = s->key_members[e];
        key = hashed ? mix64(key + GOLDEN * (x[j] + 1)) : key * s->m.sizes[j] + x[j];
    }
    return key;
}

/* How many neighbours have each label, whoever they are; for two labels the sum of the neighbours (HG16 Sec. 4.3). */
static ALWAYS_INLINE uint64_t sum_key(const sampler *s, int64_t i, const label *x) {
    uint64_t key = 0;
    if (s->m.grid) {
        int64_t at[4];
        const int n = grid_members(s->m.grid, i, at);
        for (int k = 0; k < n; k++) key += x[at[k]];
        return key;
    }
    const int64_t begin = s->key_starts[i], end = s->key_starts[i + 1];
    for (int64_t e = begin; e < end; e++) {
        const label l = x[s->key_members[e]];
        if (s->long_keys && s->long_keys[i]) {
            key += mix64(GOLDEN * (l + 1));
        } else if (l) {
            uint64_t place = 1;
            for (label k = 1; k < l; k++) place *= (uint64_t)(end - begin + 1);
            key += place;
        }
    }
    return key;
}

static ALWAYS_INLINE uint64_t complete_key(const sampler *s, int64_t i) {
    return *s->state_sum - s->place[i] * s->x[i];
}

/* The bin (b / B, (b + 1) / B] of p in 2^-32 (HGW19 Algorithm 5); 0 belongs to bin 0. */
static ALWAYS_INLINE uint64_t bin_of(int64_t p, int64_t bins) { return p ? (uint64_t)(p * bins - 1) >> 32 : 0; }

/* A second uniform number where the first has been used to choose the weight. */
static inline double next_uniform(double u) {
    uint64_t bits;
    memcpy(&bits, &u, 8);
    return as_uniform(mix64(bits + GOLDEN));
}

static inline double *signed_slot(const sampler *s, worker *w, int64_t i, uint64_t key) {
    if (s->dense && first_key(s, i) >= 0) return s->dense + (first_key(s, i) + key) * s->words;
    double *slot = weight_slot(w->table, i, key, s->most_bytes, &w->fault);
    if (!slot) w->faulty = i;
    return slot;
}

/* The start of a weight in the circular form does not depend on p: uniform on all fractions. */
static ALWAYS_INLINE uint32_t start_fraction(uint64_t weight_key, int64_t i, uint64_t key) {
    return (uint32_t)(mix_pair(weight_key, i, key) >> 32);
}

/* Probability of label 1 in 2^-32, to the nearest. */
static ALWAYS_INLINE int64_t fixed_p(double odds) {
    const double shifted = 4294967296.0 / (1.0 + odds) + ROUNDING_SHIFT;
    int64_t bits;
    memcpy(&bits, &shifted, 8);
    return bits - ROUNDING_BITS;
}

/* HG16 eq. 9: w += p; the carry is the label. */
static ALWAYS_INLINE int herd_fraction(uint32_t *weight, int64_t p) {
    const uint64_t sum = (uint64_t)*weight + (uint64_t)p;
    *weight = (uint32_t)sum;
    return (int)(sum >> 32);
}

/* ---- signed herding ----
 *
 * Weights and probabilities p are doubles in units of 1 / one; with one = 2^32 all are whole numbers, so that every sum is
 * exact. HGW19 Algorithms 2 and 3, within an error bound Algorithms 7 and 8 (`drawn` is the label drawn at random), and
 * the circular form, which adds p before it decides. Herding never chooses a label of probability 0. */

/* The start of signed weights: a fraction of `one` from 32 random bits. */
static ALWAYS_INLINE double start_fraction_of(double one, uint64_t random) {
    return (double)(random >> 32) * (one / 4294967296.0);
}

/* The start is 0 within an error bound, else uniform on (p - 1, p]. */
static ALWAYS_INLINE int herd_two(double *weight, double p, double one, int circular, double bound, int drawn, int unborn,
                                  uint64_t start) {
    if (unborn) *weight = bound > 0.0 ? 0.0 : (circular ? 0.0 : p) - start_fraction_of(one, start);
    if (circular) *weight += p;
    int x = (p > 0.0) & ((*weight > 0.0) | (p >= one));
    const int random = bound > 0.0 && fabs(*weight) <= bound * one;
    x ^= (x ^ drawn) & -random; /* no branch, as it would be unpredictable */
    *weight += (circular ? 0.0 : p) - x * one;
    return x;
}

/* The first label of new weights is drawn from p, and all others had their last turn a random part of a round ago. (The
 * start p - e_k, k drawn from p, makes early labels depend on p in the wrong way: for p = 0.2, 0.8 the second label is
 * 0 four times out of five.) Within an error bound all start at 0. Returns the first label. */
static int start_labels(double *weights, const double *p, int n, double one, int circular, int bounded, int drawn,
                        uint64_t start) {
    if (bounded) {
        memset(weights, 0, n * sizeof(double));
        return drawn;
    }
    const double at = start_fraction_of(one, start);
    double sum = 0.0, top = -INFINITY;
    int chosen = -1;
    for (int k = 0; k < n; k++) {
        weights[k] = (circular ? 0.0 : p[k]) - start_fraction_of(one, mix64(start + GOLDEN * (k + 1)));
        if (p[k] <= 0.0) continue;
        if (chosen < 0 || sum <= at) chosen = k;
        sum += p[k];
        const double decides = circular ? weights[k] + p[k] : weights[k];
        if (decides > top) top = decides;
    }
    weights[chosen] = circular ? top - p[chosen] : top;
    return chosen;
}

static ALWAYS_INLINE uint64_t mask_bits(quad_mask mask) {
#ifdef __AVX2__
    return (uint64_t)__builtin_ia32_movmskpd256((quad)mask);
#else
    return (mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8);
#endif
}

/* The label of the largest weight among those of positive p, ties to the smallest; p is added to all weights, and 1 taken
 * from the one chosen. width: n rounded up to a multiple of 4; p is 0 above n. */
static ALWAYS_INLINE int herd_labels(double *restrict weights, const double *restrict p, int width, double one,
                                     const int circular, const double bound, int drawn, double *restrict decides) {
    quad tops = QUAD(-INFINITY);
    for (int k = 0; k < width; k += 4) {
        quad w, q, d;
        LOAD_QUAD(w, weights + k);
        LOAD_QUAD(q, p + k);
        d = WHERE(q > 0.0, circular ? w + q : w, QUAD(-INFINITY));
        tops = LARGER(d, tops);
        w += q;
        STORE_QUAD(weights + k, w);
        STORE_QUAD(decides + k, d);
    }
    quad other = SHUFFLED(tops, tops, 2, 3, 0, 1);
    tops = LARGER(other, tops);
    other = SHUFFLED(tops, tops, 1, 0, 3, 2);
    tops = LARGER(other, tops);
    int x = -1;
    for (int from = 0; x < 0; from += 64) {
        uint64_t bits = 0;
        for (int k = from; k < width && k < from + 64; k += 4) {
            quad d;
            LOAD_QUAD(d, decides + k);
            bits |= mask_bits(d == tops) << (k - from);
        }
        if (bits) x = from + __builtin_ctzll(bits);
    }
    if (bound > 0.0 && tops[0] <= bound * one) x = drawn;
    weights[x] -= one;
    return x;
}

/* ---- variables of two labels ---- */

static inline uint64_t key_of(const sampler *s, int64_t i) {
    switch (s->sharing) {
        case SHARE_COMPLETE: return complete_key(s, i);
        case SHARE_BLANKET: return blanket_key(s, i, s->x);
        case SHARE_SUM: return sum_key(s, i, s->x);
        default: return 0;
    }
}

/* u < 1 / (1 + odds) without the division. Odds may be infinite. */
static ALWAYS_INLINE int draws_one(double odds, double u) { return u * (1.0 + odds) < 1.0; }

/* The key b or b + 1 of HGW19 Algorithm 9, so that the mean of key / B is p, which becomes that multiple; `drawn` a label
 * drawn from it. */
static ALWAYS_INLINE uint64_t random_bin(const sampler *s, double u, int64_t *p, double *real, int *drawn) {
    const uint64_t scaled = (uint64_t)*p * (uint64_t)s->bins;
    const uint64_t key = (scaled >> 32) + (u * 4294967296.0 < (double)(uint32_t)scaled);
    *p = (int64_t)((key << 32) / (uint64_t)s->bins);
    *real = (double)key / (double)s->bins;
    *drawn = next_uniform(u) * 4294967296.0 < (double)*p;
    return key;
}

/* The label that the weight of a key decides on; `drawn` is the one drawn at random, for an error bound. */
static ALWAYS_INLINE int herd_two_key(const sampler *s, worker *w, int64_t i, uint64_t key, int64_t p, double real,
                                      int drawn) {
    if (s->fractions) return herd_fraction(s->fractions + first_key(s, i) + key, p);
    double *slot = signed_slot(s, w, i, key);
    if (!slot) return s->x[i];
    const int unborn = is_unborn(slot), fixed = s->one > 1.0;
    if (s->circular && fixed && s->error_bound == 0.0) { /* what `fractions` would hold */
        uint32_t fraction = unborn ? start_fraction(s->weight_key, i, key) : (uint32_t)*slot;
        const int x = herd_fraction(&fraction, p);
        *slot = fraction;
        return x;
    }
    const uint64_t start = unborn ? mix_pair(s->weight_key, i, key) : 0;
    return herd_two(slot, fixed ? (double)p : real, s->one, s->circular, s->error_bound, drawn, unborn, start);
}

static int draw_two_any(const sampler *s, worker *w, int64_t i, double odds, double u) {
    int drawn = draws_one(odds, u);
    if (s->draw == DRAW_RANDOM) return drawn;
    int64_t p = fixed_p(odds);
    double real = 1.0 / (1.0 + odds);
    const uint64_t key = s->sharing == SHARE_BINS          ? bin_of(p, s->bins)
                         : s->sharing == SHARE_RANDOM_BINS ? random_bin(s, u, &p, &real, &drawn)
                                                           : key_of(s, i);
    return herd_two_key(s, w, i, key, p, real, drawn);
}

static ALWAYS_INLINE int draw_two(const sampler *s, worker *w, int64_t i, double odds, double u, const int draw) {
    switch (draw) {
        case DRAW_RANDOM: return draws_one(odds, u);
        case DRAW_BLANKET: return herd_fraction(s->fractions + first_key(s, i) + blanket_key(s, i, s->x), fixed_p(odds));
        case DRAW_SUM: return herd_fraction(s->fractions + first_key(s, i) + sum_key(s, i, s->x), fixed_p(odds));
        case DRAW_BINS: {
            const int64_t p = fixed_p(odds);
            return herd_fraction(s->fractions + first_key(s, i) + bin_of(p, s->bins), p);
        }
        default: return draw_two_any(s, w, i, odds, u);
    }
}

/* ---- variables of any number of labels; rows of `width`, a multiple of 4, whose padding is 0 ---- */

/* Sums of w[0] .. w[k]: of four at a time, (a, a + b, (a + b) + c, (a + b) + (c + d)), added to those before. */
static ALWAYS_INLINE double cumulate(const double *restrict w, double *restrict cumulative, int width) {
    const quad zero = QUAD(0.0);
    quad before = zero;
    for (int k = 0; k < width; k += 4) {
        quad v;
        LOAD_QUAD(v, w + k);
        v += SHUFFLED(v, zero, 4, 0, 4, 2);
        v += SHUFFLED(v, zero, 4, 4, 1, 1);
        const quad sums = v + before;
        STORE_QUAD(cumulative + k, sums);
        before += SHUFFLED(v, v, 3, 3, 3, 3);
    }
    return before[0];
}

/* The smallest label whose cumulative weight exceeds u times the total; labels of weight 0 never are. */
static ALWAYS_INLINE int pick(const double *restrict w, const double *restrict cumulative, int width, double u) {
    const quad at = QUAD(u * cumulative[width - 1]);
    for (int from = 0; from < width; from += 64) {
        uint64_t bits = 0;
        for (int k = from; k < width && k < from + 64; k += 4) {
            quad c;
            LOAD_QUAD(c, cumulative + k);
            bits |= mask_bits(c > at) << (k - from);
        }
        if (bits) return from + __builtin_ctzll(bits);
    }
    int x = width - 1; /* u * total was rounded up to the total */
    while (x > 0 && w[x] == 0.0) x--;
    return x;
}

/* The sum of a row. */
static ALWAYS_INLINE double total_of(const double *restrict w, int width) {
    quad sum, v;
    LOAD_QUAD(sum, w);
    for (int k = 4; k < width; k += 4) {
        LOAD_QUAD(v, w + k);
        sum += v;
    }
    sum += SHUFFLED(sum, sum, 2, 3, 0, 1);
    return sum[0] + sum[1];
}

/* p[k] in 2^-32, to the nearest; what is 0 stays 0. Together they may miss 1 by some 2^-32, which shifts all weights alike. */
static ALWAYS_INLINE void fixed_labels_p(const double *restrict w, double total, double *restrict p, int width) {
    const quad scale = QUAD(4294967296.0 / total), shift = QUAD(ROUNDING_SHIFT);
    for (int k = 0; k < width; k += 4) {
        quad v;
        LOAD_QUAD(v, w + k);
        v = (v * scale + shift) - shift;
        STORE_QUAD(p + k, v);
    }
}

/* Bins of a vector of probabilities: those of all labels together. An extension: HGW19 has two labels. */
static ALWAYS_INLINE uint64_t labels_bin(const sampler *s, const double *p, int n) {
    uint64_t key = 0;
    if (s->bins == 1) return 0;
    for (int k = 0; k < n; k++) key += s->bin_places[k] * bin_of((int64_t)p[k], s->bins);
    return key;
}

/* Random rounding of p to multiples of 1 / B whose mean is p: systematic sampling with one uniform number, which for two
 * labels is HGW19 Algorithm 9. Returns the key. */
static inline uint64_t round_labels(const sampler *s, double *p, int n, double u) {
    const uint64_t offset = (uint64_t)(u * 4294967296.0), bins = (uint64_t)s->bins;
    uint64_t key = 0, sum = 0, last = 0, before = 0;
    int end = n - 1; /* where the sum is 1: as a sum of rounded numbers it may miss it, and no label be left */
    while (p[end] == 0.0) end--;
    for (int k = 0; k < n; k++) {
        sum += (uint64_t)p[k];
        if (k >= end || sum > UINT64_C(4294967296)) sum = UINT64_C(4294967296);
        const uint64_t count = (sum * bins + offset) >> 32, c = (count << 32) / bins;
        key += s->bin_places[k] * (count - last);
        p[k] = (double)(c - before);
        last = count;
        before = c;
    }
    return key;
}

/* A label drawn from whole p in 2^-32. */
static inline int pick_fixed(const double *p, int n, double u) {
    const double at = u * 4294967296.0;
    double sum = 0.0;
    int x = 0;
    for (int k = 0; k < n; k++) {
        if (p[k] > 0.0 && sum <= at) x = k;
        sum += p[k];
    }
    return x;
}

/* Herds with the weights of a key, whose start may be due. */
static ALWAYS_INLINE int herd_key(const sampler *s, worker *w, int64_t i, uint64_t key, const double *p, double *decides,
                                  int n, int width, double one, const int circular, const double bound, int drawn) {
    double *slot = signed_slot(s, w, i, key);
    if (!slot) return s->x[i];
    if (is_unborn(slot)) {
        const int x = start_labels(slot, p, n, one, circular, bound > 0.0, drawn, mix_pair(s->weight_key, i, key));
        for (int k = 0; k < n; k++) slot[k] += p[k];
        for (int k = n; k < width; k++) slot[k] = 0.0;
        slot[x] -= one;
        return x;
    }
    return herd_labels(slot, p, width, one, circular, bound, drawn, decides);
}

static int draw_labels_any(const sampler *s, worker *w, int64_t i, double total, int n, int width, double u) {
    int drawn = 0;
    if (s->draw == DRAW_RANDOM || s->error_bound > 0.0) {
        cumulate(w->w, w->cumulative, width);
        drawn = pick(w->w, w->cumulative, width, u);
    }
    if (s->draw == DRAW_RANDOM) return drawn;
    fixed_labels_p(w->w, total, w->p, width);
    uint64_t key;
    if (s->sharing == SHARE_BINS) {
        key = labels_bin(s, w->p, n);
    } else if (s->sharing == SHARE_RANDOM_BINS) {
        key = round_labels(s, w->p, n, u);
        drawn = pick_fixed(w->p, n, next_uniform(u));
    } else {
        key = key_of(s, i);
    }
    if (s->one == 1.0)
        for (int k = 0; k < n; k++)
            w->p[k] = s->sharing == SHARE_RANDOM_BINS ? w->p[k] / 4294967296.0 : w->w[k] / total;
    return herd_key(s, w, i, key, w->p, w->w, n, width, s->one, s->circular, s->error_bound, drawn);
}

/* w: of the labels, and its total; scratch: a row. */
static ALWAYS_INLINE int draw_labels(const sampler *s, worker *k, int64_t i, double *w, double total, double *scratch, int n,
                                     int width, double u, const int draw) {
    if (draw == DRAW_RANDOM) {
        cumulate(w, scratch, width);
        return pick(w, scratch, width, u);
    }
    fixed_labels_p(w, total, scratch, width);
    const uint64_t key = draw == DRAW_BLANKET ? blanket_key(s, i, s->x) : draw == DRAW_SUM ? sum_key(s, i, s->x)
                                              : labels_bin(s, scratch, n);
    return herd_key(s, k, i, key, scratch, w, n, width, 4294967296.0, 1, 0.0, 0);
}

#endif
