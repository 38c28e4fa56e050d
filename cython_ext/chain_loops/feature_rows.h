/* Log-potentials of rows of features, and their derivatives, for one instruction set; see `chain_features`.
 *
 * Each state's sum is computed in the same order for any LANES, so all sets give the same bits. */
#define AHEAD 32 /* columns and entries that are prefetched */

static ALWAYS_INLINE TARGET void NAME(score_rows_of)(const int stride, const chain_features *f, int64_t first, int64_t n,
                                                     const double *table, const double *weights, double *out, int width) {
    ALIGNED double sum[CHAIN_MOST_STATES];
    const int64_t n_columns = f->column_starts[f->n_rows], n_entries = f->entry_starts[f->n_rows];
    for (int64_t r = first; r < first + n; r++, out += width) {
        for (int j = 0; j < stride; j += 4 * LANES) {
            VEC acc[4];
            const int more = (stride - j < 4 * LANES ? stride - j : 4 * LANES) / LANES;
            for (int v = 0; v < more; v++) acc[v] = SPLAT(0.0);
            for (int64_t i = f->column_starts[r]; i < f->column_starts[r + 1]; i++) {
                if (j == 0 && i + AHEAD < n_columns) CHAIN_PREFETCH(table + (int64_t)f->columns[i + AHEAD] * stride);
                const double *row = table + (int64_t)f->columns[i] * stride + j;
                for (int v = 0; v < more; v++) acc[v] = ADD(acc[v], LOAD(row + v * LANES));
            }
            for (int v = 0; v < more; v++) STORE(sum + j + v * LANES, acc[v]);
        }
        for (int64_t i = f->entry_starts[r]; i < f->entry_starts[r + 1]; i++) {
            if (i + AHEAD < n_entries) CHAIN_PREFETCH(weights + f->entries[i + AHEAD]);
            const double weight = weights[f->entries[i]];
            sum[f->entry_labels[f->entries[i]]] += f->values ? f->values[i] * weight : weight;
        }
        if ((first + n - r) * width >= stride) {
            for (int j = 0; j < stride; j += LANES) STORE(out + j, LOAD(sum + j)); /* later rows overwrite the excess */
        } else {
            memcpy(out, sum, width * sizeof(double));
        }
    }
}

static ALWAYS_INLINE TARGET void NAME(spread_rows_of)(const int stride, const chain_features *f, int64_t first, int64_t n,
                                                      const double *excess, int width, double share, double *table,
                                                      double *weights) {
    ALIGNED double row[CHAIN_MOST_STATES] = {0.0};
    const int64_t n_columns = f->column_starts[f->n_rows], n_entries = f->entry_starts[f->n_rows];
    for (int64_t r = first; r < first + n; r++, excess += width) {
        for (int k = 0; k < width; k++) row[k] = share * excess[k];
        for (int64_t i = f->column_starts[r]; i < f->column_starts[r + 1]; i++) {
            if (i + AHEAD < n_columns) CHAIN_PREFETCH(table + (int64_t)f->columns[i + AHEAD] * stride);
            double *to = table + (int64_t)f->columns[i] * stride;
            for (int j = 0; j < stride; j += LANES) STORE(to + j, ADD(LOAD(to + j), LOAD(row + j)));
        }
        for (int64_t i = f->entry_starts[r]; i < f->entry_starts[r + 1]; i++) {
            if (i + AHEAD < n_entries) CHAIN_PREFETCH(weights + f->entries[i + AHEAD]);
            const double value = row[f->entry_labels[f->entries[i]]];
            weights[f->entries[i]] += f->values ? f->values[i] * value : value;
        }
    }
}

/* Compilers unroll the loops for the usual numbers of states. */
#define EACH_STRIDE(f, ...)                                                                                            \
    switch (c->stride) {                                                                                               \
    case 4: f(4, c, __VA_ARGS__); return;                                                                              \
    case 8: f(8, c, __VA_ARGS__); return;                                                                              \
    case 12: f(12, c, __VA_ARGS__); return;                                                                            \
    case 16: f(16, c, __VA_ARGS__); return;                                                                            \
    default: f(c->stride, c, __VA_ARGS__);                                                                             \
    }

static TARGET void NAME(score_rows)(const chain_features *c, int64_t first, int64_t n, const double *table,
                                    const double *weights, double *out, int width) {
    EACH_STRIDE(NAME(score_rows_of), first, n, table, weights, out, width)
}

static TARGET void NAME(spread_rows)(const chain_features *c, int64_t first, int64_t n, const double *excess, int width,
                                     double share, double *table, double *weights) {
    EACH_STRIDE(NAME(spread_rows_of), first, n, excess, width, share, table, weights)
}

#undef EACH_STRIDE
#undef AHEAD
