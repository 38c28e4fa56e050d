/* In a chain, what of a conditional can be worked out before the label of the variable before is known.
 *
 * Each update of a chain waits for the one before it, so what is on the way from one label to the next is what takes time.
 * The sum of the probabilities would be a quarter of that way, and dividing by it a sixth. So both are worked out for every
 * label that the variable before may get, side by side, from a copy of the table that joins the two with its labels
 * exchanged, where the numbers for all labels of the variable before stand together. */
#ifndef HERDNER_CHAIN_TOTALS_H
#define HERDNER_CHAIN_TOTALS_H

#include "categorical_conditional.h"

/* Whether that is done for variable i. It takes five times the arithmetic, so only where there are vectors of four numbers. */
static ALWAYS_INLINE int can_precompute_totals(const model *m, int64_t i, int64_t last) {
#ifdef __AVX2__
    const int64_t first = m->c.starts[i];
    return m->transposed && first < m->c.starts[i + 1] && m->c.others[first] == last;
#else
    return 0;
#endif
}

/* rows: as of `product_of_rows`, of a variable that is_ahead and not careful. Returns their total, as `total_of` has it;
 * *scale: one / total. */
static ALWAYS_INLINE double product_with_totals(const model *m, int64_t i, const state_t *x, double4 *rows, int n_states, int width,
                                          int last_state, double one, double4 *scale) {
    const int64_t first = m->c.starts[i];
    const int n_rows = n_states == 9 ? 9 : width; /* beyond n_labels 0 is multiplied */
    double totals[VECTOR_STATES], scales[VECTOR_STATES];
    double4 factor, sums[4][VECTOR_STATES / 4];
    product_of_rows(m, i, x, rows, 0, width, width, first + 1, -1, 0);
    const double *transposed = m->transposed + m->c.row_at[first];
#pragma GCC unroll 16
    for (int k = 0; k < n_rows; k++) {
        const double *row = transposed + (k <= width - 4 || k < n_states ? k : n_states - 1) * width;
#pragma GCC unroll 4
        for (int l = 0; l < width; l += 4) {
            LOAD4(factor, row + l);
            factor *= SPLAT4(rows[k / 4][k % 4]);
            sums[k % 4][l / 4] = k < 4 ? factor : sums[k % 4][l / 4] + factor;
        }
    }
#pragma GCC unroll 4
    for (int l = 0; l < width; l += 4) {
        const double4 sum = (sums[0][l / 4] + sums[2][l / 4]) + (sums[1][l / 4] + sums[3][l / 4]);
        STORE4(totals + l, sum);
        STORE4(scales + l, SPLAT4(one) / sum);
    }
    const double *row = m->rows + m->c.row_at[first] + (int64_t)width * last_state;
#pragma GCC unroll 4
    for (int k = 0; k < width; k += 4) {
        LOAD4(factor, row + k);
        rows[k / 4] *= factor;
    }
    *scale = SPLAT4(scales[last_state]);
    return totals[last_state];
}

#endif
