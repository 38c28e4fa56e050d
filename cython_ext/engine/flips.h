/* The change of the log-potential by flips, without a logarithm for each.
 *
 * A flip from state a to state b multiplies the probability of the joint state by p(b) / p(a), where p is the conditional
 * of the variable. The loops multiply all p(b) and all p(a) of a sweep; one logarithm of the quotient at the end of the
 * sweep is the change of the log-potential times beta.
 *
 * There are four products side by side, of variables i modulo 4, so that every loop multiplies in the same order and gets
 * the same bits. Numerators and denominators stay in [1, 2) and their powers of two are counted separately: no factor
 * underflows, and the result does not depend on when the powers are separated. */
#ifndef HERDNER_FLIPS_H
#define HERDNER_FLIPS_H

#include "categorical_conditional.h"

typedef struct {
    double numerator[4], denominator[4];
    int64_t power[4];
    double log_gain[4]; /* of variables in the log domain: the sum of their changes */
} flips;

static const flips NO_FLIPS = {{1.0, 1.0, 1.0, 1.0}, {1.0, 1.0, 1.0, 1.0}, {0}, {0.0}};

#define FRACTION_BITS UINT64_C(0x000fffffffffffff)
#define ONE_BITS UINT64_C(0x3ff0000000000000)

/* Separate the power of two from a product: returns its exponent + 1023. */
static ALWAYS_INLINE int64_t take_power(double *product) {
    uint64_t bits;
    memcpy(&bits, product, 8);
    const int64_t power = (int64_t)(bits >> 52);
    bits = (bits & FRACTION_BITS) | ONE_BITS;
    memcpy(product, &bits, 8);
    return power;
}

/* Record a flip to a state of probability `numerator` from one of probability `denominator`. Both must be normal doubles;
 * they need not be normalised. */
static ALWAYS_INLINE void add_flip(flips *t, int lane, double numerator, double denominator) {
    t->numerator[lane] *= numerator;
    t->denominator[lane] *= denominator;
    t->power[lane] += take_power(&t->numerator[lane]) - take_power(&t->denominator[lane]);
}

enum { MAX_FLIPS = 256 };

/* Record the flips of n <= MAX_FLIPS binary variables, from `first` on, from the states `old` to x. The odds of state 0 are
 * base[j], times ratio[left[j]] unless `left` is NULL; where a state does not change, they may be 0, infinite or NaN. A
 * product of `max_factors` odds of flips must be a normal double. */
static ALWAYS_INLINE void add_flips(flips *t, int64_t first, int n, int max_factors, const double *base, const double *ratio,
                                    const state_t *left, const state_t *old, const state_t *x) {
    int16_t up[MAX_FLIPS], down[MAX_FLIPS], other[MAX_FLIPS]; /* flags: 0 to 1, 1 to 0, left[j] = 1; all bits set, or none */
    for (int j = 0; j < n; j++) {
        up[j] = (int16_t)-(x[j] & ~old[j]);
        down[j] = (int16_t)-(old[j] & ~x[j]);
        if (left) other[j] = (int16_t)-left[j];
    }
    int j = 0;
#define ADD_FLIP                                                                                                       \
    const double odds = left ? base[j] * ratio[left[j]] : base[j];                                                     \
    add_flip(t, (first + j) % 4, down[j] ? odds : 1.0, up[j] ? odds : 1.0)
    for (; j < n && (first + j) % 4; j++) {
        ADD_FLIP;
    }
    const double4 ratio0 = SPLAT4(left ? ratio[0] : 1.0), ratio1 = SPLAT4(left ? ratio[1] : 1.0);
    double4 numerator, denominator;
    bits4 power;
    LOAD4(numerator, t->numerator);
    LOAD4(denominator, t->denominator);
    memcpy(&power, t->power, sizeof(power));
    while (j + 4 <= n) {
        const int stop = n - j < 4 * max_factors ? n : j + 4 * max_factors;
        for (; j + 4 <= stop; j += 4) {
            double4 odds;
            LOAD4(odds, base + j);
            if (left) odds *= SELECT4(widen_flags(other + j), ratio1, ratio0);
            numerator *= SELECT4(widen_flags(down + j), odds, SPLAT4(1.0));
            denominator *= SELECT4(widen_flags(up + j), odds, SPLAT4(1.0));
        }
        power += ((bits4)numerator >> 52) - ((bits4)denominator >> 52);
        numerator = (double4)(((bits4)numerator & FRACTION_BITS) | ONE_BITS);
        denominator = (double4)(((bits4)denominator & FRACTION_BITS) | ONE_BITS);
    }
    STORE4(t->numerator, numerator);
    STORE4(t->denominator, denominator);
    memcpy(t->power, &power, sizeof(power));
    for (; j < n; j++) {
        ADD_FLIP;
    }
#undef ADD_FLIP
}

/* The change of the log-potential by all recorded flips, for beta > 0. */
static inline double flips_log_gain(const flips *t, double beta) {
    double numerator = 1.0, denominator = 1.0, power = 0.0;
    for (int lane = 0; lane < 4; lane++) {
        numerator *= t->numerator[lane];
        denominator *= t->denominator[lane];
        power += (double)t->power[lane];
    }
    const double *logs = t->log_gain;
    return (power * 0.6931471805599453 + log(numerator / denominator)) / beta + ((logs[0] + logs[1]) + (logs[2] + logs[3]));
}

#endif
