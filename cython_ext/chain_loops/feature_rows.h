/* Log-potentials of rows of features, and their derivatives, for one instruction set; see `chain_features`.
 *
 * Each state's sum is computed in the same order for any LANES, so all sets give the same bits. */
#define AHEAD 32               /* columns and entries that are prefetched */
#define MOST_VECS 4            /* vectors of a sum that are kept in registers */

/* Store the sum of the columns of row r in `sum`, for `n_vecs` * LANES states. */
static ALWAYS_INLINE TARGET void NAME(sum_columns)(const int n_vecs, const int stride, const chain_features *f,
                                                   int64_t r, const double *table, double *sum) {
    VEC acc[MOST_VECS];
    for (int v = 0; v < n_vecs; v++) acc[v] = SPLAT(0.0);
    for (int64_t i = f->column_starts[r]; i < f->column_starts[r + 1]; i++) {
        const double *row = table + (int64_t)f->columns[i] * stride;
        for (int v = 0; v < n_vecs; v++) acc[v] += LOAD(row + v * LANES);
    }
    for (int v = 0; v < n_vecs; v++) STORE(sum + v * LANES, acc[v]);
}

static TARGET void NAME(score_rows)(const chain_features *f, int64_t first, int64_t n, const double *table,
                                    const double *weights, double *out, int width) {
    ALIGNED double sum[CHAIN_MOST_STATES];
    const int stride = f->stride;
    const int64_t n_columns = f->column_starts[f->n_rows], n_entries = f->entry_starts[f->n_rows];
    for (int64_t r = first; r < first + n; r++, out += width) {
        int j = 0;
        for (int64_t i = f->column_starts[r] + AHEAD; i < f->column_starts[r + 1] + AHEAD && i < n_columns; i++)
            CHAIN_PREFETCH(table + (int64_t)f->columns[i] * stride);
        for (; j + MOST_VECS * LANES <= stride; j += MOST_VECS * LANES)
            NAME(sum_columns)(MOST_VECS, stride, f, r, table + j, sum + j);
        for (; j < stride; j += LANES) NAME(sum_columns)(1, stride, f, r, table + j, sum + j);
        for (int64_t i = f->entry_starts[r]; i < f->entry_starts[r + 1]; i++) {
            if (i + AHEAD < n_entries) CHAIN_PREFETCH(weights + f->entries[i + AHEAD]);
            const double weight = weights[f->entries[i]];
            sum[f->entry_tags[f->entries[i]]] += f->values ? f->values[i] * weight : weight;
        }
        if ((first + n - r) * width >= stride) {
            for (int j = 0; j < stride; j += LANES) STORE(out + j, LOAD(sum + j)); /* later rows overwrite the excess */
        } else {
            memcpy(out, sum, width * sizeof(double));
        }
    }
}

static TARGET void NAME(spread_rows)(const chain_features *f, int64_t first, int64_t n, const double *excess, int width,
                                     double share, double *table, double *weights) {
    ALIGNED double row[CHAIN_MOST_STATES] = {0.0};
    const int stride = f->stride;
    const int64_t n_columns = f->column_starts[f->n_rows], n_entries = f->entry_starts[f->n_rows];
    for (int64_t r = first; r < first + n; r++, excess += width) {
        for (int k = 0; k < width; k++) row[k] = share * excess[k];
        for (int64_t i = f->column_starts[r]; i < f->column_starts[r + 1]; i++) {
            if (i + AHEAD < n_columns) CHAIN_PREFETCH(table + (int64_t)f->columns[i + AHEAD] * stride);
            double *to = table + (int64_t)f->columns[i] * stride;
            for (int j = 0; j < stride; j += LANES) STORE(to + j, LOAD(to + j) + LOAD(row + j));
        }
        for (int64_t i = f->entry_starts[r]; i < f->entry_starts[r + 1]; i++) {
            if (i + AHEAD < n_entries) CHAIN_PREFETCH(weights + f->entries[i + AHEAD]);
            const double value = row[f->entry_tags[f->entries[i]]];
            weights[f->entries[i]] += f->values ? f->values[i] * value : value;
        }
    }
}

#undef AHEAD
#undef MOST_VECS
