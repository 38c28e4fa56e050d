/* Viterbi and scaled forward-backward over one sequence, for one instruction set. chain.h includes this file once per
 * set, having defined
 *   NAME(x)  the name of x for this set;  TARGET  the functions' attribute;
 *   VEC, LANES, LOAD, STORE, SPLAT, ADD, MUL, MAX  its vectors of doubles.
 * Every lane does the same operations in the same order whatever LANES is, so all sets give the same bits. Rows are
 * padded to `stride`, a multiple of 4: with -inf where scores are added, with 0 where probabilities are multiplied. */

/* Labels j .. j + NV * LANES - 1 of: out[j] = FINISH(REDUCE_i COMBINE(previous[i], table[i, j]), extra[j]). */
#define BLOCK(NV, COMBINE, REDUCE, FINISH)                                                                             \
    do {                                                                                                               \
        VEC acc[NV], p = SPLAT(previous[0]);                                                                           \
        const double *row = table + j;                                                                                 \
        for (int v = 0; v < NV; v++) acc[v] = COMBINE(p, LOAD(row + v * LANES));                                       \
        for (int i = 1; i < n_labels; i++) {                                                                           \
            row += stride;                                                                                             \
            p = SPLAT(previous[i]);                                                                                    \
            for (int v = 0; v < NV; v++) acc[v] = REDUCE(COMBINE(p, LOAD(row + v * LANES)), acc[v]);                   \
        }                                                                                                              \
        for (int v = 0; v < NV; v++) STORE(out + j + v * LANES, FINISH(acc[v], LOAD(extra + j + v * LANES)));          \
        j += NV * LANES;                                                                                               \
    } while (0)

#define ROW(name, COMBINE, REDUCE, FINISH)                                                                             \
    static ALWAYS_INLINE TARGET void NAME(name)(double *restrict out, const double *restrict previous,                 \
                                                const double *restrict table, const double *restrict extra,            \
                                                int n_labels, int stride) {                                            \
        int j = 0;                                                                                                     \
        while (stride - j >= 12) BLOCK(12 / LANES, COMBINE, REDUCE, FINISH);                                           \
        if (stride - j == 8) BLOCK(8 / LANES, COMBINE, REDUCE, FINISH);                                                \
        if (stride - j == 4) BLOCK(4 / LANES, COMBINE, REDUCE, FINISH);                                                \
    }

#define KEEP(result, extra) (result)
ROW(max_sum_row, ADD, MAX, ADD)      /* out[j] = max_i(previous[i] + table[i, j]) + extra[j] */
ROW(forward_row, MUL, ADD, MUL)      /* out[j] = sum_i(previous[i] * table[i, j]) * extra[j] */
ROW(backward_row, MUL, ADD, KEEP)    /* out[j] = sum_i(previous[i] * table[i, j]) */

/* out [stride] = row [n_labels] times table [n_labels, stride]. */
static TARGET void NAME(product)(double *out, const double *row, const double *table, int n_labels, int stride) {
    NAME(backward_row)(out, row, table, table, n_labels, stride);
}

/* Scores of the best labellings up to each token and label: `scores` [n + 1, stride], its last row being scratch.
 * `readable` counts the doubles in memory from `unary` on. */
static TARGET void NAME(best_scores)(const chain_tables *c, const double *unary, int64_t n, int64_t readable,
                                     const int32_t *edge_table, double *scores) {
    const int n_labels = c->n_labels, stride = c->stride;
    const int64_t size = (int64_t)n_labels * stride;
    for (int j = 0; j < stride; j++) scores[j] = j < n_labels ? unary[j] : -INFINITY;
    for (int64_t t = 1; t < n; t++) {
        const double *extra = unary + t * n_labels;
        double *row = scores + t * stride;
        if (t * n_labels + stride > readable) extra = memcpy(scores + n * stride, extra, n_labels * sizeof(double));
        NAME(max_sum_row)(row, row - stride, c->tables + (edge_table ? edge_table[t] * size : 0), extra, n_labels, stride);
    }
}

/* How many of n numbers are neither -inf nor of a size that sums can be made of. */
static TARGET int64_t NAME(unfit)(const double *values, int64_t n) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        found += !((values[i] <= CHAIN_LARGEST) & ((values[i] >= -CHAIN_LARGEST) | (values[i] == -INFINITY)));
    return found;
}

/* Forward probabilities given the tokens so far, from token `first` on: rows of `forward` sum to 1, `norm` [n] holds the
 * logarithms that were divided out, so log Z is its sum. `x` [n, stride] and `tops` [n] are those of
 * chain_exponentials. Here and below the tables are exp(table - its largest), the largest being `shifts`. */
static TARGET int NAME(forward)(const chain_tables *c, int64_t n, const int32_t *edge_table, int64_t first,
                                const double *x, const double *tops, double *forward, double *norm) {
    const int n_labels = c->n_labels, stride = c->stride;
    const int64_t size = (int64_t)n_labels * stride;
    for (int64_t t = first; t < n; t++) {
        double *row = forward + t * stride, total, shift = tops[t];
        const double *xt = x + t * stride;
        if (t == 0) {
            memcpy(row, xt, stride * sizeof(double));
        } else {
            const int64_t e = edge_table ? edge_table[t] : 0;
            NAME(forward_row)(row, row - stride, c->tables + e * size, xt, n_labels, stride);
            shift += c->shifts[e];
        }
        if (!normalise_row(row, n_labels, &total)) return CHAIN_EXTREME;
        if (total == 0) return CHAIN_IMPOSSIBLE;
        norm[t] = log(total) + shift;
    }
    return CHAIN_OK;
}

/* Backward probabilities, rows scaled to sum to 1: row t - 1 was divided by scale[t]. Rows from token `last` on are
 * there already. `xb` [n, stride] receives x * backward, a token's factor towards its left neighbour. */
static TARGET int NAME(backward)(const chain_tables *c, int64_t last, const int32_t *edge_table, const double *x,
                                 double *backward, double *xb, double *scale) {
    const int n_labels = c->n_labels, stride = c->stride;
    const int64_t size = (int64_t)n_labels * stride;
    double *row = backward + last * stride;
    for (int64_t t = last; t > 0; t--, row -= stride) {
        double *xbt = xb + t * stride;
        for (int j = 0; j < stride; j++) xbt[j] = x[t * stride + j] * row[j];
        NAME(backward_row)(row - stride, xbt, c->transposed + (edge_table ? edge_table[t] * size : 0), xbt, n_labels,
                           stride);
        if (!normalise_row(row - stride, n_labels, scale + t)) return CHAIN_EXTREME;
    }
    return CHAIN_OK;
}

/* out [stride] += the sum of the rows [stride] of `table` that `which` [n] names. */
static TARGET void NAME(gather)(double *restrict out, const double *restrict table, const int32_t *which, int64_t n,
                                int stride) {
    int j = 0;
    for (; j + 4 * LANES <= stride; j += 4 * LANES) {
        VEC acc[4];
        for (int v = 0; v < 4; v++) acc[v] = LOAD(out + j + v * LANES);
        for (int64_t i = 0; i < n; i++)
            for (int v = 0; v < 4; v++) acc[v] = ADD(acc[v], LOAD(table + (int64_t)which[i] * stride + j + v * LANES));
        for (int v = 0; v < 4; v++) STORE(out + j + v * LANES, acc[v]);
    }
    for (; j < stride; j += LANES) {
        VEC acc = LOAD(out + j);
        for (int64_t i = 0; i < n; i++) acc = ADD(acc, LOAD(table + (int64_t)which[i] * stride + j));
        STORE(out + j, acc);
    }
}

/* Adds `row` [stride] to the rows of `table` that `which` [n] names. */
static TARGET void NAME(scatter)(double *restrict table, const double *restrict row, const int32_t *which, int64_t n,
                                 int stride) {
    for (int64_t i = 0; i < n; i++) {
        double *to = table + (int64_t)which[i] * stride;
        for (int j = 0; j < stride; j += LANES) STORE(to + j, ADD(LOAD(to + j), LOAD(row + j)));
    }
}

#undef BLOCK
#undef ROW
#undef KEEP
