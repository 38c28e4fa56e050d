/* The conditional of a variable of any number of labels: a row of probabilities that need not add up to 1. */
#ifndef HERDNER_CHANCES_H
#define HERDNER_CHANCES_H

#include "odds.h"
#include "quads.h"

/* log p of label k less that of another, up to one constant for all labels. */
static inline double log_weight(const model *m, int64_t i, const label *x, int k) {
    double sum = m->c.unary[m->c.unary_at[i] + k];
    for (int64_t e = m->c.starts[i + 1] - 1; e >= m->c.starts[i]; e--)
        sum += m->c.rows[row_of(&m->c, e, m->c.widths[i], x) + k];
    return sum;
}

enum { REGISTERS = 16 }; /* labels of rows that are kept in registers */

static inline void careful_weights(const model *m, int64_t i, const label *x, double *restrict w) {
    const int n_labels = m->c.sizes[i];
    double top = -INFINITY;
    for (int k = 0; k < n_labels; k++) {
        w[k] = log_weight(m, i, x, k);
        if (w[k] > top) top = w[k];
    }
    for (int k = 0; k < n_labels; k++) w[k] = w[k] == -INFINITY ? 0.0 : fast_exp(m->beta * (w[k] - top));
    for (int k = n_labels; k < m->c.widths[i]; k++) w[k] = 0.0;
}

/* rows[k / 4]: labels from + k, k < length, of the product of the unary row of variable i and those of its incidences from
 * `begin` on. Variable `last` (or -1) is known to have `last_label`: in a chain that saves the wait until it can be read
 * from memory. */
static ALWAYS_INLINE void product_of_rows(const model *m, int64_t i, const label *x, quad *rows, int from, int length,
                                          int width, int64_t begin, int64_t last, int last_label) {
    const double *unary = m->unary + m->c.unary_at[i];
    quad factor;
    for (int k = 0; k < length; k += 4) LOAD_QUAD(rows[k / 4], unary + from + k);
    for (int64_t e = m->c.starts[i + 1] - 1; e >= begin; e--) {
        const int known = last >= 0 && !m->c.others_at && m->c.others[e] == last;
        /* Where the row stands but for the label that was last drawn, which is waited for. */
        const double *first = m->rows + from + (known ? m->c.row_at[e] : row_of(&m->c, e, width, x));
        const double *row = first + (known ? (int64_t)width * last_label : 0);
        for (int k = 0; k < length; k += 4) {
            LOAD_QUAD(factor, row + k);
            rows[k / 4] *= factor;
        }
    }
}

/* w[k], k < width: the probabilities of the labels given the other variables, not normalised; the padding is 0. */
static ALWAYS_INLINE void weights_of(const model *m, int64_t i, const label *x, double *restrict w, int width,
                                     int64_t last, int last_label) {
    if (m->careful && m->careful[i]) {
        careful_weights(m, i, x, w);
        return;
    }
    quad rows[REGISTERS / 4];
    for (int from = 0; from < width; from += REGISTERS) {
        const int length = width - from < REGISTERS ? width - from : REGISTERS;
        product_of_rows(m, i, x, rows, from, length, width, m->c.starts[i], last, last_label);
        for (int k = 0; k < length; k += 4) STORE_QUAD(w + from + k, rows[k / 4]);
    }
}

/* What the log-potential gains when variable i goes from its label to `to`; both must be allowed. */
static inline double gain(const model *m, int64_t i, const label *x, int to) {
    if (m->grid || m->c.sizes[i] == 2) {
        const double l = log_odds(m, i, x);
        return to ? -l : l;
    }
    return log_weight(m, i, x, to) - log_weight(m, i, x, x[i]);
}

#endif
