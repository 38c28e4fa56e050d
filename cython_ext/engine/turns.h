/* What the log-potential gains as labels turn, without a logarithm for each: the product of the probabilities that new
 * labels had, over the product of those that old ones had. Its logarithm, taken once a sweep, is the gain at beta = 1.
 *
 * Four products side by side, of variables i modulo 4, so that every loop multiplies in the same order and has the same
 * bits. Both parts stay in [1, 2), their powers of two apart: so no factor is lost, nor is when they were set apart seen. */
#ifndef HERDNER_TURNS_H
#define HERDNER_TURNS_H

#include "chances.h"

typedef struct {
    double won[4], lost[4];
    int64_t power[4];
    double gain[4]; /* of careful variables, added up as logarithms */
} turns;

static const turns NO_TURNS = {{1.0, 1.0, 1.0, 1.0}, {1.0, 1.0, 1.0, 1.0}, {0}, {0.0}};

#define FRACTION_BITS UINT64_C(0x000fffffffffffff)
#define ONE_BITS UINT64_C(0x3ff0000000000000)

/* The product's power of two, above 2^-1023, which is taken out of it. */
static ALWAYS_INLINE int64_t take_power(double *product) {
    uint64_t bits;
    memcpy(&bits, product, 8);
    const int64_t power = (int64_t)(bits >> 52);
    bits = (bits & FRACTION_BITS) | ONE_BITS;
    memcpy(product, &bits, 8);
    return power;
}

/* Both probabilities, of whatever total, must be normal doubles. */
static ALWAYS_INLINE void turn(turns *t, int lane, double won, double lost) {
    t->won[lane] *= won;
    t->lost[lane] *= lost;
    t->power[lane] += take_power(&t->won[lane]) - take_power(&t->lost[lane]);
}

enum { MOST_TURNS = 256 };

/* Turns of variables first .. first + n - 1 of two labels, from `old` to x, n at most MOST_TURNS. Their odds of label 0
 * are known[j] times ratio[left[j]], or left is NULL; infinite ones, 0 and no numbers do not matter where no label turns.
 * The product of `factors` odds that matter is a normal double. */
static ALWAYS_INLINE void turn_many(turns *t, int64_t first, int n, int factors, const double *known, const double *ratio,
                                    const label *left, const label *old, const label *x) {
    int16_t up[MOST_TURNS], down[MOST_TURNS], other[MOST_TURNS]; /* all bits set where so */
    for (int j = 0; j < n; j++) {
        up[j] = (int16_t)-(x[j] & ~old[j]);
        down[j] = (int16_t)-(old[j] & ~x[j]);
        if (left) other[j] = (int16_t)-left[j];
    }
    int j = 0;
#define TURN_ONE                                                                                                       \
    const double odds = left ? known[j] * ratio[left[j]] : known[j];                                                   \
    turn(t, (first + j) % 4, down[j] ? odds : 1.0, up[j] ? odds : 1.0)
    for (; j < n && (first + j) % 4; j++) {
        TURN_ONE;
    }
    const quad ratio0 = QUAD(left ? ratio[0] : 1.0), ratio1 = QUAD(left ? ratio[1] : 1.0);
    quad won, lost;
    lanes power;
    LOAD_QUAD(won, t->won);
    LOAD_QUAD(lost, t->lost);
    memcpy(&power, t->power, sizeof(power));
    while (j + 4 <= n) {
        const int stop = n - j < 4 * factors ? n : j + 4 * factors;
        for (; j + 4 <= stop; j += 4) {
            quad odds;
            LOAD_QUAD(odds, known + j);
            if (left) odds *= WHERE(widened(other + j), ratio1, ratio0);
            won *= WHERE(widened(down + j), odds, QUAD(1.0));
            lost *= WHERE(widened(up + j), odds, QUAD(1.0));
        }
        power += ((lanes)won >> 52) - ((lanes)lost >> 52);
        won = (quad)(((lanes)won & FRACTION_BITS) | ONE_BITS);
        lost = (quad)(((lanes)lost & FRACTION_BITS) | ONE_BITS);
    }
    STORE_QUAD(t->won, won);
    STORE_QUAD(t->lost, lost);
    memcpy(t->power, &power, sizeof(power));
    for (; j < n; j++) {
        TURN_ONE;
    }
#undef TURN_ONE
}

/* What all of them gained at this beta above 0. */
static inline double log_gain(const turns *t, double beta) {
    double won = 1.0, lost = 1.0, power = 0.0;
    for (int lane = 0; lane < 4; lane++) {
        won *= t->won[lane];
        lost *= t->lost[lane];
        power += (double)t->power[lane];
    }
    return (power * 0.6931471805599453 + log(won / lost)) / beta + ((t->gain[0] + t->gain[1]) + (t->gain[2] + t->gain[3]));
}

#endif
