/* One draw of the Gibbs family (HGW19 Algorithm 6): which herding weight, then which label.
 *
 * Fixed-point probabilities are multiples of 2^-32; a label of probability 0 has exactly 0 and is never drawn. */
#ifndef HERDNER_GIBBS_DRAW_H
#define HERDNER_GIBBS_DRAW_H

#include "gibbs_weights.h"

enum { SHARE_COMPLETE, SHARE_BLANKET, SHARE_SUM, SHARE_BINS, SHARE_RANDOM_BINS };
enum { NUMBERS_FIXED, NUMBERS_DOUBLE };

/* How a loop draws, a constant in specialised loops. DRAW_ANY covers all cases. */
enum { DRAW_RANDOM, DRAW_BLANKET, DRAW_SUM, DRAW_BINS, DRAW_ANY };

typedef struct {
    model m;
    const label *x;             /* the state that conditionals are taken of */
    label *y;                   /* the state that labels are written to: x itself, but for the Jacobi scan */
    int draw, sharing, numbers, circular;
    int64_t bins;
    double error_bound;
    const int64_t *key_starts;  /* the variables whose labels make the key, in rising order */
    const int32_t *key_members;
    const uint8_t *long_keys;   /* variables whose keys are hashes, as they do not fit 64 bits; may be NULL */
    const uint64_t *place;      /* complete sharing: the key is the sum of place * label over the other variables, */
    uint64_t *state_sum;        /* and this the sum over all */
    uint64_t weight_key;
    uint32_t *fractions;        /* dense weights of two labels in the circular form, or NULL */
    int64_t *dense;             /* dense signed weights, or NULL */
    const int64_t *weights_at;  /* first key of each variable in the dense table, or NULL: i * n_keys */
    int64_t n_keys, words;
    int64_t most_bytes;         /* of a hash table */
    double *conditional_sums;   /* Rao-Blackwell: in the layout of the unary rows; may be NULL */
    uint32_t *conditional_counts; /* [V]: how many conditionals were added */
    int follow;                 /* keep the log-potential */
} sampler;

typedef struct {
    double gain;                /* of the log-potential since the sweep began, in the present shard */
    weight_table *table;
    int64_t fault;              /* 0, or one of the negative codes; then `faulty` is the variable */
    int64_t faulty;
    double *w, *cumulative;     /* scratch of the widest row */
    int64_t *p;
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

static inline int64_t *signed_slot(const sampler *s, worker *w, int64_t i, uint64_t key) {
    if (s->dense) return s->dense + (first_key(s, i) + key) * s->words;
    int64_t *slot = weight_slot(w->table, i, key, s->most_bytes, &w->fault);
    if (!slot) w->faulty = i;
    return slot;
}

static ALWAYS_INLINE double start_uniform(const sampler *s, int64_t i, uint64_t key) {
    return as_uniform(mix_pair(s->weight_key, i, key));
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

/* Signed herding in two number types: NUM with 1 = ONE. HGW19 Algorithms 2 and 3, within an error bound Algorithms 7 and 8
 * (`drawn` is the label drawn at random), and the circular form, which adds p before it decides. Herding never chooses a
 * label of probability 0; ties go to the smallest label. `start`: uniform, for weights that are not born yet. */
#define SIGNED_HERDING(NAME, NUM, ONE)                                                                                 \
    static ALWAYS_INLINE int NAME##_two(NUM *weight, NUM p, const int circular, double bound, int drawn,               \
                                        int unborn, double start) {                                                    \
        if (unborn) *weight = (circular ? 0 : p) - (NUM)(start * (double)(ONE));                                       \
        if (circular) *weight += p;                                                                                    \
        int x = p > 0 && (*weight > 0 || p >= (ONE));                                                                  \
        if (bound > 0.0 && fabs((double)*weight) <= bound * (double)(ONE)) x = drawn;                                  \
        *weight += (circular ? 0 : p) - (x ? (ONE) : 0);                                                               \
        return x;                                                                                                      \
    }                                                                                                                  \
    static ALWAYS_INLINE int NAME##_labels(NUM *restrict weights, const NUM *restrict p, int n, const int circular,    \
                                           double bound, int drawn, int unborn, double start) {                        \
        if (unborn) {                                                                                                  \
            NUM sum = 0;                                                                                               \
            const NUM at = (NUM)(start * (double)(ONE));                                                               \
            int chosen = -1;                                                                                           \
            for (int k = 0; k < n; k++) {                                                                              \
                weights[k] = circular ? 0 : p[k];                                                                      \
                if (p[k] > 0 && (chosen < 0 || sum <= at)) chosen = k;                                                 \
                sum += p[k];                                                                                           \
            }                                                                                                          \
            weights[chosen] -= (ONE);                                                                                  \
        }                                                                                                              \
        int best = -1;                                                                                                 \
        NUM top = 0;                                                                                                   \
        for (int k = 0; k < n; k++) {                                                                                  \
            if (circular) weights[k] += p[k];                                                                          \
            if (p[k] > 0 && (best < 0 || weights[k] > top)) {                                                          \
                best = k;                                                                                              \
                top = weights[k];                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        if (bound > 0.0 && (double)top <= bound * (double)(ONE)) best = drawn;                                         \
        if (!circular)                                                                                                 \
            for (int k = 0; k < n; k++) weights[k] += p[k];                                                            \
        weights[best] -= (ONE);                                                                                        \
        return best;                                                                                                   \
    }

SIGNED_HERDING(fixed, int64_t, ONE_FIXED)
SIGNED_HERDING(real, double, 1.0)

/* ---- variables of two labels ---- */

static inline uint64_t key_of(const sampler *s, int64_t i) {
    switch (s->sharing) {
        case SHARE_COMPLETE: return complete_key(s, i);
        case SHARE_BLANKET: return blanket_key(s, i, s->x);
        case SHARE_SUM: return sum_key(s, i, s->x);
        default: return 0;
    }
}

static int draw_two_any(const sampler *s, worker *w, int64_t i, double odds, double u) {
    int drawn = u * (1.0 + odds) < 1.0;
    if (s->draw == DRAW_RANDOM) return drawn;
    int64_t p = fixed_p(odds);
    double real = 1.0 / (1.0 + odds);
    uint64_t key;
    if (s->sharing == SHARE_BINS) {
        key = bin_of(p, s->bins);
    } else if (s->sharing == SHARE_RANDOM_BINS) { /* HGW19 Algorithm 9: b or b + 1, so that the mean is p */
        const uint64_t scaled = (uint64_t)p * (uint64_t)s->bins;
        key = (scaled >> 32) + (u * 4294967296.0 < (double)(uint32_t)scaled);
        p = (int64_t)((key << 32) / (uint64_t)s->bins);
        real = (double)key / (double)s->bins;
        drawn = next_uniform(u) * 4294967296.0 < (double)p;
    } else {
        key = key_of(s, i);
    }
    if (s->fractions) return herd_fraction(s->fractions + first_key(s, i) + key, p);
    int64_t *slot = signed_slot(s, w, i, key);
    if (!slot) return s->x[i];
    const int unborn = *slot == UNBORN;
    if (s->circular && s->numbers == NUMBERS_FIXED && s->error_bound == 0.0) {
        uint32_t fraction = unborn ? start_fraction(s->weight_key, i, key) : (uint32_t)*slot;
        const int x = herd_fraction(&fraction, p);
        *slot = fraction;
        return x;
    }
    const double start = unborn ? start_uniform(s, i, key) : 0.0;
    if (s->numbers == NUMBERS_FIXED) return fixed_two(slot, p, s->circular, s->error_bound, drawn, unborn, start);
    return real_two((double *)slot, real, s->circular, s->error_bound, drawn, unborn, start);
}

static ALWAYS_INLINE int draw_two(const sampler *s, worker *w, int64_t i, double odds, double u, const int draw) {
    switch (draw) {
        case DRAW_RANDOM: return u * (1.0 + odds) < 1.0;
        case DRAW_BLANKET: return herd_fraction(s->fractions + first_key(s, i) + blanket_key(s, i, s->x), fixed_p(odds));
        case DRAW_SUM: return herd_fraction(s->fractions + first_key(s, i) + sum_key(s, i, s->x), fixed_p(odds));
        case DRAW_BINS: {
            const int64_t p = fixed_p(odds);
            return herd_fraction(s->fractions + first_key(s, i) + bin_of(p, s->bins), p);
        }
        default: return draw_two_any(s, w, i, odds, u);
    }
}

/* ---- variables of any number of labels ---- */

/* Sums w[0] + .. + w[k], in this order. */
static ALWAYS_INLINE double cumulate(const double *restrict w, double *restrict cumulative, int n) {
    double sum = 0.0;
    for (int k = 0; k < n; k++) cumulative[k] = sum += w[k];
    return sum;
}

/* The smallest label whose cumulative weight exceeds u times the total; labels of weight 0 never are. */
static ALWAYS_INLINE int pick(const double *restrict w, const double *restrict cumulative, int n, double u) {
    const double at = u * cumulative[n - 1];
    int x = 0;
    for (int k = 0; k < n; k++) x += cumulative[k] <= at;
    if (x < n) return x;
    while (x > 0 && w[x - 1] == 0.0) x--; /* u * total was rounded up to the total */
    return x - 1;
}

/* p[k] in 2^-32, adding up to 1: differences of rounded cumulative sums, so that what is 0 stays 0. */
static ALWAYS_INLINE void fixed_labels_p(const double *restrict cumulative, int64_t *restrict p, int n) {
    const double scale = 4294967296.0 / cumulative[n - 1];
    int64_t before = 0;
    for (int k = 0; k < n; k++) {
        const double rounded = cumulative[k] * scale + ROUNDING_SHIFT;
        int64_t bits;
        memcpy(&bits, &rounded, 8);
        const int64_t c = bits - ROUNDING_BITS;
        p[k] = c - before;
        before = c;
    }
}

/* Bins of a vector of probabilities: floor(B p_k) of all labels together, hashed. An extension: HGW19 has two labels. */
static inline uint64_t labels_bin(const int64_t *p, int n, int64_t bins) {
    uint64_t key = 0;
    if (bins == 1) return 0;
    for (int k = 0; k < n; k++) key = mix64(key + GOLDEN * (bin_of(p[k], bins) + 1));
    return key;
}

/* Random rounding of p to multiples of 1 / B whose mean is p: systematic sampling with one uniform number, which for two
 * labels is HGW19 Algorithm 9. Returns the key. */
static inline uint64_t round_labels(int64_t *p, int n, int64_t bins, double u) {
    const uint64_t offset = (uint64_t)(u * 4294967296.0);
    uint64_t key = 0, sum = 0, last = 0, before = 0;
    for (int k = 0; k < n; k++) {
        sum += (uint64_t)p[k];
        const uint64_t count = (sum * (uint64_t)bins + offset) >> 32;
        const uint64_t c = (count << 32) / (uint64_t)bins;
        key = mix64(key + GOLDEN * (count - last + 1));
        p[k] = (int64_t)(c - before);
        last = count;
        before = c;
    }
    return key;
}

/* The same u as `pick`, on probabilities in 2^-32. */
static inline int pick_fixed(const int64_t *p, int n, double u) {
    const double at = u * (double)ONE_FIXED;
    double sum = 0.0;
    int x = 0;
    for (int k = 0; k < n; k++) {
        if (p[k] > 0 && sum <= at) x = k;
        sum += (double)p[k];
    }
    return x;
}

static int draw_labels_any(const sampler *s, worker *w, int64_t i, int n, double u) {
    const double total = w->cumulative[n - 1];
    const int random = pick(w->w, w->cumulative, n, u);
    if (s->draw == DRAW_RANDOM) return random;
    fixed_labels_p(w->cumulative, w->p, n);
    uint64_t key;
    int drawn = random;
    if (s->sharing == SHARE_BINS) {
        key = labels_bin(w->p, n, s->bins);
    } else if (s->sharing == SHARE_RANDOM_BINS) {
        key = round_labels(w->p, n, s->bins, u);
        drawn = pick_fixed(w->p, n, next_uniform(u));
    } else {
        key = key_of(s, i);
    }
    int64_t *slot = signed_slot(s, w, i, key);
    if (!slot) return s->x[i];
    const int unborn = *slot == UNBORN;
    const double start = unborn ? start_uniform(s, i, key) : 0.0;
    if (s->numbers == NUMBERS_FIXED)
        return fixed_labels(slot, w->p, n, s->circular, s->error_bound, drawn, unborn, start);
    double *real = (double *)w->p; /* the same 8 bytes per label */
    for (int k = 0; k < n; k++)
        real[k] = s->sharing == SHARE_RANDOM_BINS ? (double)w->p[k] / (double)ONE_FIXED : w->w[k] / total;
    return real_labels((double *)slot, real, n, s->circular, s->error_bound, drawn, unborn, start);
}

static ALWAYS_INLINE int draw_labels(const sampler *s, worker *w, int64_t i, int n, double u, const int draw) {
    if (draw == DRAW_RANDOM) return pick(w->w, w->cumulative, n, u);
    if (draw == DRAW_ANY) return draw_labels_any(s, w, i, n, u);
    fixed_labels_p(w->cumulative, w->p, n);
    const uint64_t key = draw == DRAW_BLANKET ? blanket_key(s, i, s->x) : draw == DRAW_SUM ? sum_key(s, i, s->x)
                                              : labels_bin(w->p, n, s->bins);
    int64_t *slot = signed_slot(s, w, i, key);
    if (!slot) return s->x[i];
    const int unborn = *slot == UNBORN;
    return fixed_labels(slot, w->p, n, 1, 0.0, 0, unborn, unborn ? start_uniform(s, i, key) : 0.0);
}

#endif
