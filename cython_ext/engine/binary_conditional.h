/* The conditional of a binary variable: the odds of state 0 against state 1.
 *
 * All loops multiply the unary odds by the odds of the incidences from the last to the first, so that specialised loops and
 * the general loop give the same bits. The first incidence is the pair with the nearest variable before, which was updated
 * just now: because it comes last, the processor can compute everything else in advance. */
#ifndef HERDNER_BINARY_CONDITIONAL_H
#define HERDNER_BINARY_CONDITIONAL_H

#include "model.h"

/* The neighbours of variable i of a grid and their sides, in the order of incidence lists: first those before i in
 * descending order, then those after i in descending order. Returns their number. */
static inline int grid_neighbours(const grid_fields *g, int64_t i, int64_t *at, int *side) {
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

/* The log odds of state 0 against state 1; NaN where both are forbidden. */
static inline double log_odds(const model *m, int64_t i, const state_t *x) {
    double sum = m->c.unary[unary_row(m, i)];
    if (m->grid) {
        int64_t at[4];
        int side[4];
        for (int k = grid_neighbours(m->grid, i, at, side) - 1; k >= 0; k--) sum += m->log_ratio[side[k]][x[at[k]]];
        return sum;
    }
    for (int64_t e = m->c.starts[i + 1] - 1; e >= m->c.starts[i]; e--) sum += m->c.rows[row_of(&m->c, e, 1, x)];
    return sum;
}

static inline double log_domain_odds(const model *m, int64_t i, const state_t *x) {
    const double sum = log_odds(m, i, x);
    double odds;
    exp_scaled(&sum, &odds, 1, m->beta);
    return odds;
}

static ALWAYS_INLINE double grid_odds(const model *m, int64_t i, const state_t *x) {
    int64_t at[4];
    int side[4];
    double product = m->unary[i];
    for (int k = grid_neighbours(m->grid, i, at, side) - 1; k >= 0; k--) product *= m->ratio[side[k]][x[at[k]]];
    return product;
}

/* The odds of state 0 against state 1 given the other variables. */
static ALWAYS_INLINE double odds_of(const model *m, int64_t i, const state_t *x) {
    if (m->log_domain && m->log_domain[i]) return log_domain_odds(m, i, x);
    double product = m->unary[unary_row(m, i)];
    for (int64_t e = m->c.starts[i + 1] - 1; e >= m->c.starts[i]; e--) product *= m->rows[row_of(&m->c, e, 1, x)];
    return product;
}

/* The same odds where every incidence list has a multiple of four pairs (Conditionals.padded_form). */
static ALWAYS_INLINE double padded_odds(const model *m, int64_t i, const state_t *x) {
    const int64_t begin = m->c.starts[i];
    double product = m->unary[i];
    for (int64_t e = m->c.starts[i + 1] - 4; e >= begin; e -= 4)
        for (int k = 3; k >= 0; k--) product *= m->rows[m->c.row_at[e + k] + x[m->c.others[e + k]]];
    return m->log_domain && m->log_domain[i] ? log_domain_odds(m, i, x) : product;
}

#endif
