/* Viterbi and scaled forward-backward over one sequence, for one instruction set. chain.c defines these macros and includes
 * this file, once per instruction set:
 *
 *     NAME(x)               the name of x in this set
 *     TARGET                the attribute of all functions
 *     LANES                 how many doubles a vector holds
 *     MAX, MIN
 *     WHERE_MORE(x, a, b)   x where a > b, else 0
 *     EQUAL_BITS(a, b)      one bit per lane, set where a and b are equal
 *
 * Every entry of a row goes through the same operations in the same order for any LANES, so all sets give the same bits. */
#include "exponential.h"

#define FOUR (4 / LANES)
#define EACH_FOUR(stride) for (int j = 0; j < (stride); j += 4) for (int v = 0; v < FOUR; v++)
#define AT(p) ((p) + j + v * LANES)

/* States j .. j + n_vecs * LANES - 1 of `next_row`. Two sums run side by side (even and odd i), as every step of a sum waits
 * for its previous step. */
static ALWAYS_INLINE TARGET void NAME(next_block)(double *restrict out, const double *restrict previous,
                                                  const double *restrict table, const double *restrict extra, double factor,
                                                  int n_states, int stride, int j, const int n_vecs) {
    VEC even[12 / LANES], odd[12 / LANES], p = SPLAT(previous[0]), q;
    int i = 1;
    for (int v = 0; v < n_vecs; v++) even[v] = p * LOAD(AT(table));
    for (int v = 0; v < n_vecs; v++) odd[v] = SPLAT(0.0);
    for (; i + 1 < n_states; i += 2) {
        q = SPLAT(previous[i]);
        p = SPLAT(previous[i + 1]);
        table += stride;
        for (int v = 0; v < n_vecs; v++) odd[v] += q * LOAD(AT(table));
        table += stride;
        for (int v = 0; v < n_vecs; v++) even[v] += p * LOAD(AT(table));
    }
    if (i < n_states) {
        q = SPLAT(previous[i]);
        table += stride;
        for (int v = 0; v < n_vecs; v++) odd[v] += q * LOAD(AT(table));
    }
    for (int v = 0; v < n_vecs; v++) {
        const VEC sum = (even[v] + odd[v]) * factor;
        STORE(AT(out), extra ? sum * LOAD(AT(extra)) : sum);
    }
}

/* out[j] = sum_i(previous[i] * table[i, j]) * factor * extra[j]; `factor` is a power of 2, `extra` may be NULL. */
static ALWAYS_INLINE TARGET void NAME(next_row)(double *restrict out, const double *restrict previous,
                                                const double *restrict table, const double *restrict extra, double factor,
                                                int n_states, int stride) {
    int j = 0;
    for (; stride - j >= 12; j += 12)
        NAME(next_block)(out, previous, table, extra, factor, n_states, stride, j, 12 / LANES);
    if (stride - j == 8) NAME(next_block)(out, previous, table, extra, factor, n_states, stride, j, 8 / LANES);
    if (stride - j == 4) NAME(next_block)(out, previous, table, extra, factor, n_states, stride, j, 4 / LANES);
}

/* out [stride] = row [n_states] times table [n_states, stride]. */
static TARGET void NAME(product)(double *out, const double *row, const double *table, int n_states, int stride) {
    NAME(next_row)(out, row, table, NULL, 1.0, n_states, stride);
}

/* The sum of a row: first of every fourth entry, then of these four sums. */
static ALWAYS_INLINE TARGET double NAME(sum)(const double *row, int stride) {
    VEC sums[FOUR];
    double four[4];
    for (int v = 0; v < FOUR; v++) sums[v] = SPLAT(0.0);
    EACH_FOUR(stride) sums[v] += LOAD(AT(row));
    for (int v = 0; v < FOUR; v++) STORE(four + v * LANES, sums[v]);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* a where b > 0, else c. */
#define OR_ELSE(a, b, c) (WHERE_MORE(a, b, SPLAT(0.0)) + ((c) - WHERE_MORE(SPLAT(c), b, SPLAT(0.0))))

/* The least number of `least` [FOUR] and the largest of `most` [FOUR]. */
static ALWAYS_INLINE TARGET void NAME(extremes)(const VEC *least, const VEC *most, double *lowest, double *highest) {
    double low[4], high[4];
    for (int v = 0; v < FOUR; v++) {
        STORE(low + v * LANES, least[v]);
        STORE(high + v * LANES, most[v]);
    }
    *lowest = fmin(fmin(low[0], low[1]), fmin(low[2], low[3]));
    *highest = fmax(fmax(high[0], high[1]), fmax(high[2], high[3]));
}

/* The cavity belief without one message: out [stride] = belief / message, 0 where the message is 0. */
static TARGET void NAME(cavity)(double *restrict out, const double *restrict belief, const double *restrict message,
                                int stride) {
    EACH_FOUR(stride) {
        const VEC m = LOAD(AT(message));
        STORE(AT(out), WHERE_MORE(LOAD(AT(belief)) / m, m, SPLAT(0.0)));
    }
}

/* A message: out [stride] = row [n_states] times table, 0 where `before` is 0, scaled so that its largest number is 1.
 * Returns the least number that is not 0, or 0 if all numbers are 0. */
static TARGET double NAME(message)(double *restrict out, const double *restrict row, const double *restrict table,
                                   const double *restrict before, int n_states, int stride) {
    VEC least[FOUR], most[FOUR];
    double lowest, highest;
    NAME(product)(out, row, table, n_states, stride);
    for (int v = 0; v < FOUR; v++) {
        least[v] = SPLAT(1.0);
        most[v] = SPLAT(0.0);
    }
    EACH_FOUR(stride) {
        const VEC x = WHERE_MORE(LOAD(AT(out)), LOAD(AT(before)), SPLAT(0.0));
        STORE(AT(out), x);
        most[v] = MAX(most[v], x);
    }
    NAME(extremes)(least, most, &lowest, &highest);
    if (highest == 0.0) return 0.0;
    EACH_FOUR(stride) {
        const VEC x = LOAD(AT(out)) * (1.0 / highest);
        STORE(AT(out), x);
        least[v] = MIN(least[v], OR_ELSE(x, x, 1.0));
    }
    NAME(extremes)(least, most, &lowest, &highest);
    return lowest;
}

/* Multiply a belief [stride] by new / old where `old` is not 0; *lowest and *highest are the extremes of these factors. */
static TARGET void NAME(replace_message)(double *restrict belief, const double *restrict new, const double *restrict old,
                                         int stride, double *lowest, double *highest) {
    VEC least[FOUR], most[FOUR];
    for (int v = 0; v < FOUR; v++) {
        least[v] = SPLAT(DBL_MAX);
        most[v] = SPLAT(0.0);
    }
    EACH_FOUR(stride) {
        const VEC before = LOAD(AT(old)), ratio = LOAD(AT(new)) / before;
        STORE(AT(belief), LOAD(AT(belief)) * OR_ELSE(ratio, before, 1.0));
        least[v] = MIN(least[v], OR_ELSE(ratio, before, DBL_MAX));
        most[v] = MAX(most[v], WHERE_MORE(ratio, before, SPLAT(0.0)));
    }
    NAME(extremes)(least, most, lowest, highest);
}

/* Multiply a row [stride] by another; *lowest is the least product that is not 0, *highest the largest. */
static TARGET void NAME(multiply)(double *restrict row, const double *restrict by, int stride, double *lowest,
                                  double *highest) {
    VEC least[FOUR], most[FOUR];
    for (int v = 0; v < FOUR; v++) {
        least[v] = SPLAT(DBL_MAX);
        most[v] = SPLAT(0.0);
    }
    EACH_FOUR(stride) {
        const VEC x = LOAD(AT(row)) * LOAD(AT(by));
        STORE(AT(row), x);
        least[v] = MIN(least[v], OR_ELSE(x, x, DBL_MAX));
        most[v] = MAX(most[v], x);
    }
    NAME(extremes)(least, most, lowest, highest);
}

/* 1 if all of `values` [FOUR] are at least `bound`. */
static ALWAYS_INLINE TARGET int NAME(at_least)(const VEC *values, double bound) {
    double four[4];
    for (int v = 0; v < FOUR; v++) STORE(four + v * LANES, values[v]);
    return four[0] >= bound && four[1] >= bound && four[2] >= bound && four[3] >= bound;
}

/* Blocks of four entries, for n >= 4. The last block ends with the row, so some entries may be processed twice. */
#define EACH_BLOCK(n)                                                                                                  \
    for (int j = 0, more = 1; more; more = j < (n)-4, j = j + 4 < (n)-4 ? j + 4 : (n)-4)                               \
        for (int v = 0; v < FOUR; v++)

/* x = exp(u - max u), padded with 0. Returns 0 if the finite entries lie too far apart or none is finite. */
static ALWAYS_INLINE TARGET int NAME(exp_row)(const double *u, double *x, int n, int stride, double *largest) {
    VEC top[FOUR], least[FOUR];
    double four[4], few[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, tops;
    if (n < 4) {
        for (int j = 0; j < n; j++) few[j] = u[j];
        u = few;
        n = 4;
    }
    for (int v = 0; v < FOUR; v++) top[v] = LOAD(u + v * LANES);
    EACH_BLOCK(n) top[v] = MAX(top[v], LOAD(AT(u)));
    for (int v = 0; v < FOUR; v++) STORE(four + v * LANES, top[v]);
    tops = four[0];
    for (int i = 1; i < 4; i++) tops = four[i] > tops ? four[i] : tops;
    if (tops == -INFINITY) return 0;
    *largest = tops;
    for (int v = 0; v < FOUR; v++) least[v] = SPLAT(0.0);
    EACH_BLOCK(n) {
        const VEC d = LOAD(AT(u)) - tops;
        least[v] = MIN(least[v], WHERE_MORE(d, d, SPLAT(-INFINITY)));
        STORE(AT(x), NAME(exp)(d));
    }
    for (int j = n; j < stride; j++) x[j] = 0.0;
    return NAME(at_least)(least, -CHAIN_UNARY_RANGE);
}

/* x [n, stride] = exp(unary - largest of the token); tops [n] receives the largest. */
static TARGET int NAME(exponentials)(const chain_tables *c, const double *unary, int64_t n, double *x, double *tops) {
    for (int64_t t = 0; t < n; t++)
        if (!NAME(exp_row)(unary + t * c->n_states, x + t * c->stride, c->n_states, c->stride, tops + t))
            return CHAIN_EXTREME;
    return CHAIN_OK;
}

/* row *= factor; `least` [FOUR] tracks the smallest entries that are not zero. */
static ALWAYS_INLINE TARGET void NAME(scale_row)(double *row, double factor, int stride, VEC *least) {
    EACH_FOUR(stride) {
        const VEC scaled = LOAD(AT(row)) * factor;
        least[v] = MIN(least[v], scaled + WHERE_MORE(SPLAT(1.0), SPLAT(DBL_TRUE_MIN), scaled));
        STORE(AT(row), scaled);
    }
}

/* Remove finished paths from `active`; `steps` becomes the number of tokens that every other path still has. */
#define STEPS(left, steps)                                                                                             \
    int64_t steps = INT64_MAX;                                                                                         \
    for (int k = n_paths - 1; k >= 0; k--) {                                                                           \
        if ((left) <= 0) active[k] = active[--n_paths];                                                                \
        else if ((left) < steps) steps = (left);                                                                       \
    }                                                                                                                  \
    if (!n_paths) break

/* States j .. j + n_vecs * LANES - 1 of the next rows of n sequences, which share a table:
 * row[j] = max_i(previous[i] + table[i, j]) + extra[j]. The previous row stands before `row` in memory. */
static ALWAYS_INLINE TARGET void NAME(max_sum_block)(double *const *rows, const double *const *extra,
                                                     const double *table, int n_states, int stride, int j,
                                                     const int n_vecs, const int n) {
    VEC best[2][3], into[3];
    for (int v = 0; v < n_vecs; v++) into[v] = LOAD(AT(table));
    for (int k = 0; k < n; k++)
        for (int v = 0; v < n_vecs; v++) best[k][v] = rows[k][-stride] + into[v];
    for (int i = 1; i < n_states; i++) {
        table += stride;
        for (int v = 0; v < n_vecs; v++) {
            into[v] = LOAD(AT(table));
            IN_REGISTER(into[v]);
        }
        for (int k = 0; k < n; k++) {
            const VEC previous = SPLAT(rows[k][i - stride]);
            for (int v = 0; v < n_vecs; v++) best[k][v] = MAX(previous + into[v], best[k][v]);
        }
    }
    for (int k = 0; k < n; k++)
        for (int v = 0; v < n_vecs; v++) STORE(AT(rows[k]), best[k][v] + LOAD(AT(extra[k])));
}

static ALWAYS_INLINE TARGET void NAME(max_sum_rows)(double *const *rows, const double *const *extra,
                                                    const double *table, int n_states, int stride, const int n) {
    int j = 0;
    for (; stride - j >= 3 * LANES; j += 3 * LANES)
        NAME(max_sum_block)(rows, extra, table, n_states, stride, j, 3, n);
    if (stride - j >= 2 * LANES) {
        NAME(max_sum_block)(rows, extra, table, n_states, stride, j, 2, n);
        j += 2 * LANES;
    }
    if (j < stride) NAME(max_sum_block)(rows, extra, table, n_states, stride, j, 1, n);
}

/* Advance the first two of n paths by one token. */
static ALWAYS_INLINE TARGET void NAME(best_step)(const chain_tables *c, chain_path *const *paths, int n) {
    const int n_states = c->n_states, stride = c->stride;
    const int64_t size = (int64_t)n_states * stride;
    double *rows[2];
    const double *extra[2], *tables[2];
    for (int l = 0; l < 2 && l < n; l++) {
        chain_path *path = paths[l];
        const int64_t t = ++path->t;
        rows[l] = path->scores + t * stride;
        extra[l] = path->unary + t * n_states;
        tables[l] = c->tables + (path->edge_table ? path->edge_table[t] * size : 0);
        CHAIN_PREFETCH(extra[l] + CHAIN_AHEAD);
        if (t * n_states + stride > path->readable)
            extra[l] = memcpy(path->scores + path->n * stride, extra[l], n_states * sizeof(double));
    }
    if (n > 1 && tables[0] == tables[1]) {
        NAME(max_sum_rows)(rows, extra, tables[0], n_states, stride, 2);
    } else {
        NAME(max_sum_rows)(rows, extra, tables[0], n_states, stride, 1);
        if (n > 1) NAME(max_sum_rows)(rows + 1, extra + 1, tables[1], n_states, stride, 1);
    }
}

/* Scores of the best labellings up to each token and state, for at most CHAIN_PATHS sequences in turn. */
static TARGET void NAME(best_scores)(const chain_tables *c, chain_path *paths, int n_paths) {
    chain_path *active[CHAIN_PATHS];
    for (int k = 0; k < n_paths; k++) {
        active[k] = paths + k;
        paths[k].t = 0;
        for (int j = 0; j < c->stride; j++) paths[k].scores[j] = j < c->n_states ? paths[k].unary[j] : -INFINITY;
    }
    for (;;) {
        STEPS(active[k]->n - 1 - active[k]->t, steps);
        for (; steps; steps--)
            for (int k = 0; k < n_paths; k += 2) NAME(best_step)(c, active + k, n_paths - k);
    }
}

/* The largest of four numbers, in all lanes. It has no branch, because a branch would be unpredictable. */
static ALWAYS_INLINE TARGET VEC NAME(largest)(const VEC *four) {
#if LANES == 4
    const VEC pairs = MAX(four[0], _mm256_permute2f128_pd(four[0], four[0], 1));
    return MAX(pairs, _mm256_permute_pd(pairs, 5));
#else
    const VEC pairs = MAX(four[0], four[1]), swapped = {pairs[1], pairs[0]};
    return MAX(pairs, swapped);
#endif
}

/* The first state of the largest a[i] + b[i]. The rows are padded with -inf or NaN. */
static ALWAYS_INLINE TARGET int NAME(argmax_sum)(const double *a, const double *b, int n_states, int stride) {
    VEC top[FOUR];
    uint64_t ties = 0;
    if (stride > 64) {
        int best = 0;
        for (int i = 1; i < n_states; i++) best = a[i] + b[i] > a[best] + b[best] ? i : best;
        return best;
    }
    for (int v = 0; v < FOUR; v++) top[v] = SPLAT(-INFINITY);
    EACH_FOUR(stride) top[v] = MAX(LOAD(AT(a)) + LOAD(AT(b)), top[v]);
    top[0] = NAME(largest)(top);
    EACH_FOUR(stride) ties |= (uint64_t)EQUAL_BITS(LOAD(AT(a)) + LOAD(AT(b)), top[0]) << (j + v * LANES);
    return __builtin_ctzll(ties | UINT64_C(1) << (n_states - 1)); /* NaN equals nothing; the result is a state even then */
}

/* Choose the states of all paths from their last tokens back to the first. */
static TARGET void NAME(trace_back)(const chain_tables *c, chain_path *paths, int n_paths) {
    const int n_states = c->n_states, stride = c->stride;
    const int64_t size = (int64_t)n_states * stride;
    chain_path *active[CHAIN_PATHS];
    for (int k = 0; k < n_paths; k++) active[k] = paths + k;
    for (;;) {
        STEPS(active[k]->t, steps);
        for (; steps; steps--) {
            for (int k = 0; k < n_paths; k++) {
                chain_path *path = active[k];
                const int64_t t = path->t--, e = path->edge_table ? path->edge_table[t] : 0;
                const double *into = c->transposed + e * size + (int64_t)path->best * stride;
                path->best = NAME(argmax_sum)(path->scores + (t - 1) * stride, into, n_states, stride);
                path->states[t - 1] = path->best;
            }
        }
    }
}
#undef STEPS

/* How many of n numbers are NaN, +inf or beyond CHAIN_LARGEST. */
static TARGET int64_t NAME(count_bad_numbers)(const double *values, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += !((values[i] <= CHAIN_LARGEST) & ((values[i] >= -CHAIN_LARGEST) | (values[i] == -INFINITY)));
    return count;
}

/* Forward probabilities given the tokens so far, up to a factor, from token `first` on. Each row is divided by the power
 * of 2 that brings its sum into [1, 2): that rounds nothing, no step waits for a division, and a pass that begins in the
 * middle gives the same bits. `norm` [n] receives the logarithms of the divisors, so log Z is the sum of `norm` plus the
 * logarithm of the last row's sum. `x` [n, stride] and `tops` [n] come from chain_exponentials. Here and below `tables` are
 * exp(table - shift). A row is multiplied by its factor while the next row is computed. */
static TARGET int NAME(forward)(const chain_tables *c, int64_t n, const int32_t *edge_table, int64_t first,
                                const double *x, const double *tops, double *forward, double *norm) {
    const int n_states = c->n_states, stride = c->stride;
    const int64_t size = (int64_t)n_states * stride;
    VEC least[FOUR];
    double factor = 1.0, total, shift;
    for (int v = 0; v < FOUR; v++) least[v] = SPLAT(1.0);
    for (int64_t t = first; t < n; t++) {
        double *row = forward + t * stride;
        const double *xt = x + t * stride;
        shift = tops[t];
        if (t == 0) {
            memcpy(row, xt, stride * sizeof(double));
        } else {
            const int64_t e = edge_table ? edge_table[t] : 0;
            NAME(next_row)(row, row - stride, c->tables + e * size, xt, factor, n_states, stride);
            shift += c->shifts[e];
            if (t > first) NAME(scale_row)(row - stride, factor, stride, least);
        }
        total = NAME(sum)(row, stride);
        if (!(total > 0.0)) return CHAIN_IMPOSSIBLE;
        norm[t] = chain_exponent(total, &factor) * M_LN2 + shift;
    }
    if (first < n) NAME(scale_row)(forward + (n - 1) * stride, factor, stride, least);
    return NAME(at_least)(least, CHAIN_SMALLEST) ? CHAIN_OK : CHAIN_EXTREME;
}

/* Backward probabilities, scaled like the forward ones: row t - 1 is divided by scale[t]. The caller provides the rows from
 * token `last` on. `xb` [n, stride] receives x * backward, the factor of a token in the sums of its left neighbour. */
static TARGET int NAME(backward)(const chain_tables *c, int64_t last, const int32_t *edge_table, const double *x,
                                 double *backward, double *xb, double *scale) {
    const int n_states = c->n_states, stride = c->stride;
    const int64_t size = (int64_t)n_states * stride;
    VEC least[FOUR];
    double *row = backward + last * stride, factor = 1.0, total;
    for (int v = 0; v < FOUR; v++) least[v] = SPLAT(1.0);
    for (int64_t t = last; t > 0; t--, row -= stride) {
        double *xbt = xb + t * stride;
        const double *xt = x + t * stride, *into = c->transposed + (edge_table ? edge_table[t] * size : 0);
        EACH_FOUR(stride) STORE(AT(xbt), LOAD(AT(xt)) * LOAD(AT(row)));
        NAME(next_row)(row - stride, xbt, into, NULL, factor, n_states, stride);
        if (t < last) {
            NAME(scale_row)(row, factor, stride, least);
            EACH_FOUR(stride) STORE(AT(xbt), LOAD(AT(xbt)) * factor);
        }
        total = NAME(sum)(row - stride, stride);
        if (!(total > 0.0)) return CHAIN_EXTREME;
        chain_exponent(total, &factor);
        scale[t] = 1.0 / factor;
    }
    if (last > 0) NAME(scale_row)(backward, factor, stride, least);
    return NAME(at_least)(least, CHAIN_SMALLEST) ? CHAIN_OK : CHAIN_EXTREME;
}

/* out [n] = forward times backward, the probabilities of a token up to a factor. Returns their sum. */
static TARGET double NAME(join)(double *out, const double *forward, const double *backward, int n, int stride) {
    VEC sums[FOUR];
    double four[4];
    for (int v = 0; v < FOUR; v++) sums[v] = SPLAT(0.0);
    EACH_FOUR(stride) sums[v] += LOAD(AT(forward)) * LOAD(AT(backward));
    for (int v = 0; v < FOUR; v++) STORE(four + v * LANES, sums[v]);
    if (n < 4)
        for (int j = 0; j < n; j++) out[j] = forward[j] * backward[j];
    else
        EACH_BLOCK(n) STORE(AT(out), LOAD(AT(forward)) * LOAD(AT(backward)));
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* table [n_states, stride] += share * the outer product of two rows. */
static TARGET void NAME(add_outer)(double *restrict table, const double *restrict left, const double *restrict right,
                                   double share, int n_states, int stride) {
    for (int i = 0; i < n_states; i++, table += stride) {
        const VEC weight = SPLAT(left[i] * share);
        EACH_FOUR(stride) STORE(AT(table), LOAD(AT(table)) + weight * LOAD(AT(right)));
    }
}

#undef FOUR
#undef EACH_FOUR
#undef EACH_BLOCK
#undef AT
