/* A graph at a temperature: the conditionals of one variable each, as log-potentials and as their exponentials. */
#ifndef HERDNER_MODEL_H
#define HERDNER_MODEL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "uniforms.h"

/* The sides of a grid, whose neighbours need no lists: a rectangle of variables of two labels, row by row, whose pairs
 * along one axis are all alike. */
enum { UP, DOWN, LEFT, RIGHT };

typedef struct {
    conditionals c;
    const grid_fields *grid;        /* in place of c.starts .. c.rows; or NULL */
    const double (*log_ratio)[2];   /* [side][label]: the log odds that a neighbour of a grid adds */
    double ratio[4][2];             /* exp(beta * log_ratio) */
    double *unary, *rows;           /* exp(beta * c.unary), exp(beta * c.rows), rewritten by heat() */
    double *unary_step, *rows_step; /* exp(step * log) where annealing rises in equal steps; else NULL */
    const uint8_t *careful;         /* products of these variables' rows could leave the range of a double; or NULL */
    double *turned;                 /* see ahead.h: rows, the two labels of each table exchanged; or NULL */
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

enum { MOST_TURNED = 1 << 15 }; /* doubles: what stays near the processor beside the rows themselves */

/* Every table joins two variables of sizes[0] labels. */
static inline void turn_tables(model *m) {
    const int n = m->c.sizes[0], width = m->c.widths[0];
    for (int64_t at = 0; at < m->c.n_rows; at += n * width)
        for (int l = 0; l < n; l++)
            for (int k = 0; k < n; k++) m->turned[at + k * width + l] = m->rows[at + l * width + k];
}

static inline void heat(model *m, double beta) {
    if (beta == m->beta) return;
    m->beta = beta;
    exp_scaled(m->c.unary, m->unary, m->c.n_unary, beta);
    if (m->grid) exp_scaled(m->log_ratio[0], m->ratio[0], 8, beta);
    else exp_scaled(m->c.rows, m->rows, m->c.n_rows, beta);
    if (m->turned) turn_tables(m);
}

/* to *= by. The pointers come as arguments: read from a model each time, they would keep the loop from being vector code. */
static inline void multiply(double *restrict to, const double *restrict by, int64_t n) {
    for (int64_t j = 0; j < n; j++) to[j] *= by[j];
}

/* One step further: a product in place of each exponential. Its rounding is within an ulp for each step taken. */
static inline void heat_step(model *m, double beta) {
    m->beta = beta;
    multiply(m->unary, m->unary_step, m->c.n_unary);
    if (m->grid) multiply(m->ratio[0], m->rows_step, 8);
    else multiply(m->rows, m->rows_step, m->c.n_rows);
    if (m->turned) turn_tables(m);
}

static ALWAYS_INLINE int64_t unary_row(const model *m, int64_t i) { return m->c.unary_at ? m->c.unary_at[i] : i; }

#endif
