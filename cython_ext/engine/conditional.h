/* The full conditional of a variable, laid out once for all who work on conditionals: the Gibbs family, blocks, mean
 * field, iterated conditional modes and repair. Arrays as in herdner.graph.conditionals. */
#ifndef HERDNER_CONDITIONAL_H
#define HERDNER_CONDITIONAL_H

#include <stdint.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef uint16_t label;

typedef struct {
    int64_t n, n_unary, n_rows;
    const int32_t *sizes, *widths;
    const int64_t *unary_at;
    const double *unary;
    const int64_t *starts;
    const int32_t *row_at;
    const int64_t *others_at; /* NULL where every factor joins two variables */
    const int32_t *others, *places;
    const double *rows;
} conditionals;

/* Where incidence e of a variable finds its row at the state x; width: of that variable. */
#define ROW_OF(NAME, LABEL)                                                                                            \
    static ALWAYS_INLINE int64_t NAME(const conditionals *c, int64_t e, int64_t width, const LABEL *x) {               \
        int64_t at = c->row_at[e];                                                                                     \
        if (!c->others_at) return at + width * x[c->others[e]];                                                        \
        for (int64_t k = c->others_at[e]; k < c->others_at[e + 1]; k++) at += (int64_t)c->places[k] * x[c->others[k]]; \
        return at;                                                                                                     \
    }
ROW_OF(row_of, label)
ROW_OF(row_of_int32, int32_t)

/* The log-potential of label k in a row, in which two labels have the log-odds of label 0; NaN where none is allowed. */
static ALWAYS_INLINE double label_value(const double *row, int64_t k, int64_t n_labels) {
    if (n_labels != 2) return row[k];
    const double value = k ? -row[0] : row[0];
    return value > 0.0 ? 0.0 : value;
}

#endif
