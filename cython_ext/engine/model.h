/* A graph at a temperature: the conditionals as log-potentials, and exp(beta * log-potential) for the current beta. */
#ifndef HERDNER_MODEL_H
#define HERDNER_MODEL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "random_numbers.h"

/* The four neighbours in a grid: a rectangle of binary variables in row-major order, in which all pairs along one axis have
 * the same table. Its neighbours need no incidence lists. */
enum { UP, DOWN, LEFT, RIGHT };

typedef struct {
    conditionals c;
    const grid_fields *grid;        /* replaces c.starts to c.rows; or NULL */
    const double (*log_ratio)[2];   /* [side][state]: the log odds that a neighbour in a grid adds */
    double ratio[4][2];             /* exp(beta * log_ratio) */
    double *unary, *rows;           /* exp(beta * c.unary), exp(beta * c.rows), rewritten by set_beta() */
    double *unary_step, *rows_step; /* exp(beta_step * log-potential) if annealing rises in equal steps; else NULL */
    const uint8_t *log_domain;      /* [V]: 1 if a product of the variable's rows could leave the range of a double; or NULL */
    double *transposed;             /* `rows` with each table transposed (chain_totals.h); or NULL */
    double beta;
} model;

/* 1.5 * 2^52: adding it to a double rounds that to an integer, which then stands in the low bits. */
#define ROUNDING_SHIFT 6755399441055744.0
#define ROUNDING_BITS INT64_C(0x4338000000000000)

/* exp(x) within 1.5 ulp, 0 below -708 and infinite above 709, by Cody and Waite's reduction and a polynomial. Unlike libm's
 * exp it compiles to vector code and gives the same bits on every machine. */
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

/* to = exp(beta * from). At beta = 0, -inf still gives 0 and inf still gives inf. */
static inline void exp_scaled(const double *restrict from, double *restrict to, int64_t n, double beta) {
    if (beta == 0.0)
        for (int64_t j = 0; j < n; j++) to[j] = from[j] == -INFINITY ? 0.0 : from[j] == INFINITY ? INFINITY : 1.0;
    else
        for (int64_t j = 0; j < n; j++) to[j] = fast_exp(beta * from[j]);
}

enum { MAX_TRANSPOSED = 1 << 15 }; /* doubles that fit the cache beside the rows themselves */

/* Refresh `transposed`. All tables join two variables of sizes[0] states. */
static inline void transpose_tables(model *m) {
    const int n = m->c.sizes[0], width = m->c.widths[0];
    for (int64_t at = 0; at < m->c.n_rows; at += n * width)
        for (int l = 0; l < n; l++)
            for (int k = 0; k < n; k++) m->transposed[at + k * width + l] = m->rows[at + l * width + k];
}

/* Set the inverse temperature and all exponentials. */
static inline void set_beta(model *m, double beta) {
    if (beta == m->beta) return;
    m->beta = beta;
    exp_scaled(m->c.unary, m->unary, m->c.n_unary, beta);
    if (m->grid) exp_scaled(m->log_ratio[0], m->ratio[0], 8, beta);
    else exp_scaled(m->c.rows, m->rows, m->c.n_rows, beta);
    if (m->transposed) transpose_tables(m);
}

/* to *= by. The pointers are arguments because pointers read from a struct would prevent vector code. */
static inline void multiply(double *restrict to, const double *restrict by, int64_t n) {
    for (int64_t j = 0; j < n; j++) to[j] *= by[j];
}

/* Raise the inverse temperature by one step, with a product in place of each exponential. Each step rounds by an ulp. */
static inline void step_beta(model *m, double beta) {
    m->beta = beta;
    multiply(m->unary, m->unary_step, m->c.n_unary);
    if (m->grid) multiply(m->ratio[0], m->rows_step, 8);
    else multiply(m->rows, m->rows_step, m->c.n_rows);
    if (m->transposed) transpose_tables(m);
}

/* The first entry of variable i in the layout of unary rows. */
static ALWAYS_INLINE int64_t unary_row(const model *m, int64_t i) { return m->c.unary_at ? m->c.unary_at[i] : i; }

#endif
