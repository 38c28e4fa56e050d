/* The conditional of a variable of any number of states: a row of probabilities, not normalised. Rows have `width` entries,
 * the number of states rounded up to a multiple of 4; the padding is 0. */
#ifndef HERDNER_CATEGORICAL_CONDITIONAL_H
#define HERDNER_CATEGORICAL_CONDITIONAL_H

#include "binary_conditional.h"
#include "vectors.h"

/* The log-probability of state k, up to a constant that all states share. */
static inline double log_weight(const model *m, int64_t i, const state_t *x, int k) {
    double sum = m->c.unary[m->c.unary_at[i] + k];
    for (int64_t e = m->c.starts[i + 1] - 1; e >= m->c.starts[i]; e--)
        sum += m->c.rows[row_of(&m->c, e, m->c.widths[i], x) + k];
    return sum;
}

enum { VECTOR_STATES = 16 }; /* rows of at most so many states are kept in vector registers */

static inline void log_domain_row(const model *m, int64_t i, const state_t *x, double *restrict w) {
    const int n_states = m->c.sizes[i];
    double top = -INFINITY;
    for (int k = 0; k < n_states; k++) {
        w[k] = log_weight(m, i, x, k);
        if (w[k] > top) top = w[k];
    }
    for (int k = 0; k < n_states; k++) w[k] = w[k] == -INFINITY ? 0.0 : fast_exp(m->beta * (w[k] - top));
    for (int k = n_states; k < m->c.widths[i]; k++) w[k] = 0.0;
}

/* Multiply the unary row of variable i by the rows of its incidences from `begin` on, for states from .. from + length - 1;
 * rows[k / 4] receives states from + k. The caller knows that variable `last` (or -1) is in state `last_state`: in a chain
 * this saves the wait until the state can be read from memory. */
static ALWAYS_INLINE void product_of_rows(const model *m, int64_t i, const state_t *x, double4 *rows, int from, int length,
                                          int width, int64_t begin, int64_t last, int last_state) {
    const double *unary = m->unary + m->c.unary_at[i];
    double4 factor;
    for (int k = 0; k < length; k += 4) LOAD4(rows[k / 4], unary + from + k);
    for (int64_t e = m->c.starts[i + 1] - 1; e >= begin; e--) {
        const int known = last >= 0 && !m->c.others_at && m->c.others[e] == last;
        /* The address up to the latest state, which is added last because it arrives last. */
        const double *first = m->rows + from + (known ? m->c.row_at[e] : row_of(&m->c, e, width, x));
        const double *row = first + (known ? (int64_t)width * last_state : 0);
        for (int k = 0; k < length; k += 4) {
            LOAD4(factor, row + k);
            rows[k / 4] *= factor;
        }
    }
}

/* Fill w[k], k < width, with the probabilities of the states given the other variables, not normalised. */
static ALWAYS_INLINE void conditional_row(const model *m, int64_t i, const state_t *x, double *restrict w, int width,
                                     int64_t last, int last_state) {
    if (m->log_domain && m->log_domain[i]) {
        log_domain_row(m, i, x, w);
        return;
    }
    double4 rows[VECTOR_STATES / 4];
    for (int from = 0; from < width; from += VECTOR_STATES) {
        const int length = width - from < VECTOR_STATES ? width - from : VECTOR_STATES;
        product_of_rows(m, i, x, rows, from, length, width, m->c.starts[i], last, last_state);
        for (int k = 0; k < length; k += 4) STORE4(w + from + k, rows[k / 4]);
    }
}

/* The change of the log-potential when variable i flips to state `to`; both states must be allowed. */
static inline double flip_log_gain(const model *m, int64_t i, const state_t *x, int to) {
    if (m->grid || m->c.sizes[i] == 2) {
        const double l = log_odds(m, i, x);
        return to ? -l : l;
    }
    return log_weight(m, i, x, to) - log_weight(m, i, x, x[i]);
}

#endif
