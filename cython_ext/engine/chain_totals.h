/* Totals of conditionals in a chain, computed before the state of the previous variable is known.
 *
 * In a chain every update waits for the update before it, so latency decides the speed. Herding needs the probabilities of
 * variable i, normalised: rows / total. The total would take a quarter of the latency and the division a sixth. Instead both
 * are computed for every state that variable i - 1 may choose, side by side, while that choice is still pending:
 *
 *     without:  state of i - 1  ->  row of the table  ->  product  ->  total  ->  1 / total  ->  probabilities
 *     with:     state of i - 1  ->  row of the table  ->  product  ------------------------->  probabilities
 *               \                   totals for all states of i - 1, and their inverses (done) -> select one
 *
 * The totals for all states l of i - 1 are one product of a row with a matrix: sum_k product[k] * table[l][k]. It reads the
 * table transposed, so that the numbers of all l are adjacent. */
#ifndef HERDNER_CHAIN_TOTALS_H
#define HERDNER_CHAIN_TOTALS_H

#include "categorical_conditional.h"

/* Whether variable i has a factor with `last`, the previous variable, and the machine has vectors of four doubles: the
 * totals take five times the arithmetic. */
static ALWAYS_INLINE int can_precompute_totals(const model *m, int64_t i, int64_t last) {
#ifdef __AVX2__
    const int64_t first = m->c.starts[i];
    return m->transposed && first < m->c.starts[i + 1] && m->c.others[first] == last;
#else
    (void)m, (void)i, (void)last;
    return 0;
#endif
}

/* Fill `rows` as `product_of_rows` does and return the total of the row; *scale receives one / total. The caller has checked
 * `can_precompute_totals`, and that the variable is not in the log domain. */
static ALWAYS_INLINE double product_with_totals(const model *m, int64_t i, const state_t *x, double4 *rows, int n_states,
                                                int width, int last_state, double one, double4 *scale) {
    const int64_t first = m->c.starts[i];
    const int n_rows = n_states == 9 ? 9 : width; /* entries from n_states on are multiplied by 0 */
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
