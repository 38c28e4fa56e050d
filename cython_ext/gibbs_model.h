/* The full conditionals that every loop of the Gibbs family shares; arrays as in herdner.graph.conditionals.
 *
 * All loops multiply the unary row of a variable by the rows of its incidences from the last to the first, so that a
 * specialised loop and the general one give the same bits. The first is the pair with the nearest variable before, which
 * in a sweep has been updated just now: taking it last leaves all else to be computed ahead. */
#ifndef HERDNER_GIBBS_MODEL_H
#define HERDNER_GIBBS_MODEL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "uniforms.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef uint16_t label;

enum { MOST_LABELS = 65535 };

/* A rectangular grid of variables of two labels, row by row, whose pairs along one axis are all alike. Its neighbours
 * need no lists. log_ratio[side][label]: the log odds of label 0 against 1 that a neighbour on that side adds. */
enum { UP, DOWN, LEFT, RIGHT };

typedef struct {
    int64_t rows, columns;
    int wraps;
    double log_ratio[4][2], ratio[4][2]; /* ratio: heated */
} grid_model;

typedef struct {
    int64_t n;
    const grid_model *grid;  /* in place of starts .. rows; or NULL */
    const int32_t *sizes, *widths;
    const int64_t *unary_at; /* NULL: the unary row of variable i is number i */
    const int64_t *starts, *others_at;
    const int32_t *row_at, *others, *places;
    const double *unary_log, *rows_log;
    double *unary, *rows;    /* exp(beta * log), rewritten by heat() */
    int64_t n_unary, n_rows;
    double *unary_step, *rows_step; /* exp(step * log) where annealing rises in equal steps; else NULL */
    const uint8_t *careful;  /* products of these variables' rows could leave the range of a double; may be NULL */
    double beta;
} model;

/* 1.5 * 2^52: adding it rounds to an integer, which is then in the low bits. */
#define ROUNDING_SHIFT 6755399441055744.0
#define ROUNDING_BITS INT64_C(0x4338000000000000)

/* exp(x), below 1.5 ulp off, 0 below -708 and infinite above 709: Cody and Waite's reduction and a polynomial. Its own so
 * that it is vector code, and the same bits on every machine. */
static ALWAYS_INLINE double fast_exp(double x) {
    const double bounded = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    const double shifted = bounded * 1.4426950408889634 + ROUNDING_SHIFT;
    const double n = shifted - ROUNDING_SHIFT;
    const double r = (bounded - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.6059043836821613e-10;
    p = p * r + 2.08767569878681e-09;
    p = p * r + 2.505210838544172e-08;
    p = p * r + 2.7557319223985893e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 1.984126984126984e-04;
    p = p * r + 1.388888888888889e-03;
    p = p * r + 8.333333333333333e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, 8);
    bits = (bits + 1023) << 52;
    double power;
    memcpy(&power, &bits, 8);
    const double result = p * power;
    return x < -708.0 ? 0.0 : x > 709.0 ? INFINITY : result;
}

/* to = exp(beta * from), where infinities stay what they are even at beta 0. */
static inline void exp_scaled(const double *restrict from, double *restrict to, int64_t n, double beta) {
    if (beta == 0.0)
        for (int64_t j = 0; j < n; j++) to[j] = from[j] == -INFINITY ? 0.0 : from[j] == INFINITY ? INFINITY : 1.0;
    else
        for (int64_t j = 0; j < n; j++) to[j] = fast_exp(beta * from[j]);
}

static inline void heat(model *m, double beta) {
    if (beta == m->beta) return;
    m->beta = beta;
    exp_scaled(m->unary_log, m->unary, m->n_unary, beta);
    if (m->grid) exp_scaled(m->grid->log_ratio[0], ((grid_model *)m->grid)->ratio[0], 8, beta);
    else exp_scaled(m->rows_log, m->rows, m->n_rows, beta);
}

/* One step further: a product in place of each exponential. Its rounding is within an ulp for each step taken. */
static inline void heat_step(model *m, double beta) {
    m->beta = beta;
    for (int64_t j = 0; j < m->n_unary; j++) m->unary[j] *= m->unary_step[j];
    double *rows = m->grid ? ((grid_model *)m->grid)->ratio[0] : m->rows;
    const int64_t n_rows = m->grid ? 8 : m->n_rows;
    for (int64_t j = 0; j < n_rows; j++) rows[j] *= m->rows_step[j];
}

static ALWAYS_INLINE int64_t unary_row(const model *m, int64_t i) { return m->unary_at ? m->unary_at[i] : i; }

/* The neighbours of variable i of a grid and their sides, in the order of incidence lists: those before i, the last
 * first, then those after i, the last first; returns how many there are. */
static inline int grid_neighbours(const grid_model *g, int64_t i, int64_t *at, int *side) {
    const int64_t r = i / g->columns, c = i % g->columns, whole = g->rows * g->columns;
    const int absent[4] = {r == 0, r == g->rows - 1, c == 0, c == g->columns - 1};
    const int64_t step[4] = {-g->columns, g->columns, -1, 1}, around[4] = {whole, -whole, g->columns, -g->columns};
    int n = 0;
    for (int k = 0; k < 4; k++) {
        if (absent[k] && !g->wraps) continue;
        const int64_t j = i + step[k] + (absent[k] ? around[k] : 0);
        int to = n++;
        for (; to > 0 && (j < i) + (double)j / whole > (at[to - 1] < i) + (double)at[to - 1] / whole; to--) {
            at[to] = at[to - 1];
            side[to] = side[to - 1];
        }
        at[to] = j;
        side[to] = k;
    }
    return n;
}

/* Where incidence e of a variable finds its row; width: of that variable. */
static ALWAYS_INLINE int64_t row_of(const model *m, int64_t e, int width, const label *x) {
    int64_t at = m->row_at[e];
    if (!m->others_at) return at + (int64_t)width * x[m->others[e]];
    for (int64_t k = m->others_at[e]; k < m->others_at[e + 1]; k++) at += (int64_t)m->places[k] * x[m->others[k]];
    return at;
}

/* The sum of the logarithms: log odds of label 0 against label 1. Not a number where both are forbidden. */
static inline double log_odds(const model *m, int64_t i, const label *x) {
    double sum = m->unary_log[unary_row(m, i)];
    if (m->grid) {
        int64_t at[4];
        int side[4];
        for (int k = grid_neighbours(m->grid, i, at, side) - 1; k >= 0; k--) sum += m->grid->log_ratio[side[k]][x[at[k]]];
        return sum;
    }
    for (int64_t e = m->starts[i + 1] - 1; e >= m->starts[i]; e--) sum += m->rows_log[row_of(m, e, 1, x)];
    return sum;
}

static inline double careful_odds(const model *m, int64_t i, const label *x) {
    const double sum = log_odds(m, i, x);
    double odds;
    exp_scaled(&sum, &odds, 1, m->beta);
    return odds;
}

static ALWAYS_INLINE double grid_odds(const model *m, int64_t i, const label *x) {
    int64_t at[4];
    int side[4];
    double product = m->unary[i];
    for (int k = grid_neighbours(m->grid, i, at, side) - 1; k >= 0; k--) product *= m->grid->ratio[side[k]][x[at[k]]];
    return product;
}

/* The odds of label 0 against label 1 given the other variables. */
static ALWAYS_INLINE double odds_of(const model *m, int64_t i, const label *x) {
    if (m->careful && m->careful[i]) return careful_odds(m, i, x);
    double product = m->unary[unary_row(m, i)];
    for (int64_t e = m->starts[i + 1] - 1; e >= m->starts[i]; e--) product *= m->rows[row_of(m, e, 1, x)];
    return product;
}

/* The same where the lists have multiples of four pairs of two labels; and their logarithm, where `log` is not NULL. */
static ALWAYS_INLINE double padded_odds(const model *m, int64_t i, const label *x, double *log) {
    const int64_t begin = m->starts[i];
    double product = m->unary[i], sum = log ? m->unary_log[i] : 0.0;
    for (int64_t e = m->starts[i + 1] - 4; e >= begin; e -= 4)
        for (int k = 3; k >= 0; k--) {
            const int32_t at = m->row_at[e + k] + x[m->others[e + k]];
            product *= m->rows[at];
            if (log) sum += m->rows_log[at];
        }
    if (log) *log = sum;
    return m->careful && m->careful[i] ? careful_odds(m, i, x) : product;
}

/* log p of label k less that of another, up to one constant for all labels. */
static inline double log_weight(const model *m, int64_t i, const label *x, int k) {
    double sum = m->unary_log[m->unary_at[i] + k];
    for (int64_t e = m->starts[i + 1] - 1; e >= m->starts[i]; e--)
        sum += m->rows_log[row_of(m, e, m->widths[i], x) + k];
    return sum;
}

/* Rows of four labels at a time; __builtin_shuffle takes lanes 0-3 of the first operand, 4-7 of the second. */
typedef double quad __attribute__((vector_size(32)));
typedef int64_t quad_mask __attribute__((vector_size(32)));
#ifdef __clang__
#define SHUFFLED(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLED(a, b, i, j, k, l) __builtin_shuffle(a, b, (quad_mask){i, j, k, l})
#endif
#define QUAD(x) ((quad){x, x, x, x})
typedef double unaligned_quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t unaligned_mask __attribute__((vector_size(32), aligned(8), may_alias));
#define LOAD_QUAD(v, from) ((v) = *(const unaligned_quad *)(from))
#define STORE_QUAD(to, v) (*(unaligned_quad *)(to) = (v))
#ifdef __AVX2__
#define LARGER(a, b) __builtin_ia32_maxpd256(a, b)
#define WHERE(mask, a, b) __builtin_ia32_blendvpd256(b, a, (quad)(mask))
#else
#define WHERE(mask, a, b) ((quad)(((mask) & (quad_mask)(a)) | (~(mask) & (quad_mask)(b))))
#define LARGER(a, b) WHERE((a) > (b), a, b)
#endif

enum { REGISTERS = 16 }; /* labels of rows that are kept in registers */

static inline void careful_weights(const model *m, int64_t i, const label *x, double *restrict w) {
    const int n_labels = m->sizes[i];
    double top = -INFINITY;
    for (int k = 0; k < n_labels; k++) {
        w[k] = log_weight(m, i, x, k);
        if (w[k] > top) top = w[k];
    }
    for (int k = 0; k < n_labels; k++) w[k] = w[k] == -INFINITY ? 0.0 : fast_exp(m->beta * (w[k] - top));
    for (int k = n_labels; k < m->widths[i]; k++) w[k] = 0.0;
}

/* w[k], k < width: the probabilities of the labels given the other variables, not normalised; the padding is 0. Variable
 * `last` (or -1) is known to have `last_label`: in a chain that saves the wait until it can be read from memory. */
static ALWAYS_INLINE void weights_of(const model *m, int64_t i, const label *x, double *restrict w, int width,
                                     int64_t last, int last_label) {
    if (m->careful && m->careful[i]) {
        careful_weights(m, i, x, w);
        return;
    }
    const double *unary = m->unary + m->unary_at[i];
    quad rows[REGISTERS / 4], factor;
    for (int from = 0; from < width; from += REGISTERS) {
        const int length = width - from < REGISTERS ? width - from : REGISTERS;
        for (int k = 0; k < length; k += 4) LOAD_QUAD(rows[k / 4], unary + from + k);
        for (int64_t e = m->starts[i + 1] - 1; e >= m->starts[i]; e--) {
            const int64_t at = !m->others_at && m->others[e] == last ? m->row_at[e] + (int64_t)width * last_label
                                                                     : row_of(m, e, width, x);
            const double *row = m->rows + at + from;
            for (int k = 0; k < length; k += 4) {
                LOAD_QUAD(factor, row + k);
                rows[k / 4] *= factor;
            }
        }
        for (int k = 0; k < length; k += 4) STORE_QUAD(w + from + k, rows[k / 4]);
    }
}

/* What the log-potential gains when variable i goes from its label to `to`; both must be allowed. */
static inline double gain(const model *m, int64_t i, const label *x, int to) {
    if (m->grid || m->sizes[i] == 2) {
        const double l = log_odds(m, i, x);
        return to ? -l : l;
    }
    return log_weight(m, i, x, to) - log_weight(m, i, x, x[i]);
}

#endif
