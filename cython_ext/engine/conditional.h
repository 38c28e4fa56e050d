/* The full conditionals of all variables, in the layout that the Gibbs family, mean field, iterated conditional modes and
 * the repair of forbidden states share. herdner.graph.conditionals describes the arrays.
 *
 * log p(x_i = k | others) = unary[unary_at[i] + k] + the sum over incidences e of rows[row_of(e) + k]
 *
 *     variable i:   starts[i]                starts[i + 1]
 *     incidences:      | e | e + 1 | e + 2 |
 *                        \ row_at[e] + width * x[others[e]]  ->  a row of `width` log-potentials in `rows`
 *
 * A binary variable has rows of one number: the log odds of state 0 against state 1. */
#ifndef HERDNER_CONDITIONAL_H
#define HERDNER_CONDITIONAL_H

#include <stdint.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef uint16_t state_t;

typedef struct {
    int64_t n, n_unary, n_rows;
    const int32_t *sizes, *widths;
    const int64_t *unary_at;
    const double *unary;
    const int64_t *starts;
    const int32_t *row_at;
    const int64_t *others_at; /* NULL if every factor has two variables */
    const int32_t *others, *places;
    const double *rows;
} conditionals;

/* The start of the row of incidence e at the joint state x; `width` is the row length of its variable. */
#define ROW_OF(NAME, STATE)                                                                                            \
    static ALWAYS_INLINE int64_t NAME(const conditionals *c, int64_t e, int64_t width, const STATE *x) {               \
        int64_t at = c->row_at[e];                                                                                     \
        if (!c->others_at) return at + width * x[c->others[e]];                                                        \
        for (int64_t k = c->others_at[e]; k < c->others_at[e + 1]; k++) at += (int64_t)c->places[k] * x[c->others[k]]; \
        return at;                                                                                                     \
    }
ROW_OF(row_of, state_t)
ROW_OF(row_of_int32, int32_t)

/* The log-potential of state k in a row, up to a constant; NaN where no state of a binary variable is allowed. */
static ALWAYS_INLINE double state_value(const double *row, int64_t k, int64_t n_states) {
    if (n_states != 2) return row[k];
    const double value = k ? -row[0] : row[0];
    return value > 0.0 ? 0.0 : value;
}

#endif
