/* Forward-backward of four sequences side by side, one in each lane, for one instruction set; chain_target.h includes it.
 * A row [n_labels, 4] has label j of lane l at 4 j + l. What is added is added in the order of `forward`, `backward` and
 * `join`, so each lane has the bits of its sequence alone. A lane goes on beyond the end of its sequence, and past faults:
 * what comes of that is never used. */

#define EACH_LABEL for (int j = 0; j < n_labels; j++)
#define EACH_VEC for (int v = 0; v < FOUR; v++)
#define IN_LANES(p, j) ((p) + 4 * (j) + v * LANES)

/* out[k][l] = in[l][k], k and l < 4. */
static ALWAYS_INLINE TARGET void NAME(transpose)(const double *const *in, double *const *out) {
#if LANES == 4
    const VEC a = LOAD(in[0]), b = LOAD(in[1]), c = LOAD(in[2]), d = LOAD(in[3]);
    const VEC ab = _mm256_unpacklo_pd(a, b), cd = _mm256_unpacklo_pd(c, d);
    const VEC ab1 = _mm256_unpackhi_pd(a, b), cd1 = _mm256_unpackhi_pd(c, d);
    STORE(out[0], _mm256_permute2f128_pd(ab, cd, 0x20));
    STORE(out[1], _mm256_permute2f128_pd(ab1, cd1, 0x20));
    STORE(out[2], _mm256_permute2f128_pd(ab, cd, 0x31));
    STORE(out[3], _mm256_permute2f128_pd(ab1, cd1, 0x31));
#else
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < 4; l++) out[k][l] = in[l][k];
#endif
}

/* Blocks of four labels; the last one ends with the row, so that some labels may be met twice. */
#define EACH_FOUR_LABELS                                                                                               \
    for (int j = 0, more = n_labels >= 4; more; more = j < n_labels - 4, j = j + 4 < n_labels - 4 ? j + 4 : n_labels - 4)

/* A row of lanes from the rows [n_labels] of four sequences. */
static ALWAYS_INLINE TARGET void NAME(into_lanes)(const double *const *rows, int n_labels, double *lanes) {
    EACH_FOUR_LABELS {
        const double *const in[4] = {rows[0] + j, rows[1] + j, rows[2] + j, rows[3] + j};
        double *const out[4] = {lanes + 4 * j, lanes + 4 * j + 4, lanes + 4 * j + 8, lanes + 4 * j + 12};
        NAME(transpose)(in, out);
    }
    for (int j = 0; n_labels < 4 && j < n_labels; j++)
        for (int l = 0; l < 4; l++) lanes[4 * j + l] = rows[l][j];
}

static ALWAYS_INLINE TARGET void NAME(from_lanes)(const double *lanes, int n_labels, double *const *rows) {
    EACH_FOUR_LABELS {
        const double *const in[4] = {lanes + 4 * j, lanes + 4 * j + 4, lanes + 4 * j + 8, lanes + 4 * j + 12};
        double *const out[4] = {rows[0] + j, rows[1] + j, rows[2] + j, rows[3] + j};
        NAME(transpose)(in, out);
    }
    for (int j = 0; n_labels < 4 && j < n_labels; j++)
        for (int l = 0; l < 4; l++) rows[l][j] = lanes[4 * j + l];
}

/* DO(width) for labels j .. j + width - 1: by threes, with one four or two, as one alone would wait for itself. */
#define EACH_FEW_LABELS(DO)                                                                                            \
    for (int j = 0, left = n_labels; left; j = n_labels - left) {                                                      \
        if (left > 1 && left % 3 == 1) { DO(4); left -= 4; }                                                           \
        else if (left > 2) { DO(3); left -= 3; }                                                                       \
        else if (left == 2) { DO(2); left = 0; }                                                                       \
        else { DO(1); left = 0; }                                                                                      \
    }

/* Labels j .. j + width - 1 of out[j] = sum_i(previous[i] * table[i, j]) * factor * extra[j], or without extra. `small`
 * [FOUR] adds up what is too small; so it may be factors up to 2 n_labels, by which `forward` scales later. */
static ALWAYS_INLINE TARGET void NAME(lane_labels)(double *restrict out, const double *restrict previous,
                                                   const double *restrict table, const double *factor,
                                                   const double *restrict extra, int n_labels, VEC *small, const int width) {
    VEC even[4][FOUR], odd[4][FOUR];
#define SUM_OF(i, k) MUL(LOAD(IN_LANES(previous, i)), LOAD(IN_LANES(table, (i)*n_labels + (k))))
    for (int k = 0; k < width; k++)
        EACH_VEC {
            even[k][v] = SUM_OF(0, k);
            odd[k][v] = n_labels > 1 ? SUM_OF(1, k) : SPLAT(0.0);
        }
    for (int i = 2; i < n_labels; i += 2) {
        for (int k = 0; k < width; k++) EACH_VEC even[k][v] = ADD(SUM_OF(i, k), even[k][v]);
        if (i + 1 == n_labels) break;
        for (int k = 0; k < width; k++) EACH_VEC odd[k][v] = ADD(SUM_OF(i + 1, k), odd[k][v]);
    }
#undef SUM_OF
    for (int k = 0; k < width; k++)
        EACH_VEC {
            VEC sum = MUL(ADD(even[k][v], odd[k][v]), LOAD(factor + v * LANES));
            if (extra) sum = MUL(sum, LOAD(IN_LANES(extra, k)));
            small[v] = ADD(small[v], WHERE_MORE(sum, SPLAT(64 * CHAIN_SMALLEST), sum));
            STORE(IN_LANES(out, k), sum);
        }
}

/* `forward_row`, or `backward_row` without extra; each entry of the table [n_labels, n_labels, 4] four times. */
static ALWAYS_INLINE TARGET void NAME(lane_row)(double *restrict out, const double *restrict previous,
                                                const double *restrict table, const double *factor,
                                                const double *restrict extra, int n_labels, VEC *small) {
#define LABELS(width)                                                                                                  \
    NAME(lane_labels)(out + 4 * j, previous, table + 4 * j, factor, extra ? extra + 4 * j : NULL, n_labels, small, width)
    EACH_FEW_LABELS(LABELS)
#undef LABELS
}

/* The sums of a row's lanes, in the order of `sum`. */
static ALWAYS_INLINE TARGET void NAME(lane_sums)(const double *row, int n_labels, VEC *total) {
    VEC sums[4][FOUR];
    for (int k = 0; k < 4; k++) EACH_VEC sums[k][v] = SPLAT(0.0);
    for (int j = 0; j < n_labels; j += 4)
        for (int k = 0; k < 4; k++)
            if (j + k < n_labels) EACH_VEC sums[k][v] = ADD(sums[k][v], LOAD(IN_LANES(row, j + k)));
    EACH_VEC total[v] = ADD(ADD(sums[0][v], sums[2][v]), ADD(sums[1][v], sums[3][v]));
}

/* Sound is a lane without entries that are too small or rows that are 0. */
static ALWAYS_INLINE TARGET void NAME(note_small)(const VEC *small, const VEC *lowest, int *sound) {
    double entries[4], rows[4];
    EACH_VEC STORE(entries + v * LANES, small[v]);
    EACH_VEC STORE(rows + v * LANES, lowest[v]);
    for (int l = 0; l < 4; l++) sound[l] &= entries[l] == 0.0 && rows[l] > 0.0;
}

/* x [n, n_labels, 4] = exp(unary - its largest of the token), these in tops [n, 4]. */
static TARGET void NAME(lane_exponentials)(const chain_lanes *c, int *sound) {
    const int n_labels = c->n_labels;
    const double zeros[CHAIN_LANE_LABELS] = {0.0};
    double range[4], low[4];
    VEC least[FOUR], lowest[FOUR];
    EACH_VEC least[v] = lowest[v] = SPLAT(0.0);
    for (int64_t t = 0; t < c->ends[0]; t++) {
        const double *rows[4];
        double *x = c->x + 4 * t * n_labels;
        VEC top[FOUR], bottom[FOUR];
        for (int l = 0; l < 4; l++) rows[l] = t < c->ends[l] ? c->unary[l] + t * n_labels : zeros;
        NAME(into_lanes)(rows, n_labels, x);
        EACH_VEC top[v] = bottom[v] = LOAD(x + v * LANES);
        EACH_LABEL EACH_VEC {
            top[v] = MAX(top[v], LOAD(IN_LANES(x, j)));
            bottom[v] = MIN(bottom[v], LOAD(IN_LANES(x, j)));
        }
        EACH_VEC STORE(c->tops + 4 * t + v * LANES, top[v]);
        EACH_VEC lowest[v] = MIN(lowest[v], top[v]);
        EACH_VEC bottom[v] = SUB(bottom[v], top[v]);
        if (NAME(at_least)(bottom, -CHAIN_UNARY_RANGE)) {
            EACH_LABEL EACH_VEC STORE(IN_LANES(x, j), NAME(exp_near)(SUB(LOAD(IN_LANES(x, j)), top[v])));
            continue;
        }
        EACH_LABEL EACH_VEC {
            const VEC d = SUB(LOAD(IN_LANES(x, j)), top[v]);
            least[v] = MIN(least[v], WHERE_MORE(d, d, SPLAT(-INFINITY)));
            STORE(IN_LANES(x, j), NAME(exp)(d));
        }
    }
    EACH_VEC STORE(range + v * LANES, least[v]);
    EACH_VEC STORE(low + v * LANES, lowest[v]);
    for (int l = 0; l < 4; l++) sound[l] &= low[l] > -INFINITY && range[l] >= -CHAIN_UNARY_RANGE;
}

/* Rows are not yet scaled; the factors to do so are kept. */
static TARGET void NAME(lane_forward)(const chain_lanes *c, int *sound) {
    const int n_labels = c->n_labels, width = 4 * n_labels;
    double *row = c->forward, *factor = c->factor;
    VEC small[FOUR], total[FOUR], lowest[FOUR];
    EACH_VEC {
        small[v] = SPLAT(0.0);
        lowest[v] = SPLAT(1.0);
    }
    for (int64_t t = 0; t < c->ends[0]; t++, row += width, factor += 4) {
        if (t) NAME(lane_row)(row, row - width, c->table, factor - 4, c->x + t * width, n_labels, small);
        else memcpy(row, c->x, width * sizeof(double));
        NAME(lane_sums)(row, n_labels, total);
        EACH_VEC {
            const VEC top = LOAD(IN_LANES(c->tops, t)), shift = t ? ADD(top, SPLAT(c->shift)) : top;
            lowest[v] = MIN(lowest[v], total[v]);
            STORE(factor + v * LANES, INVERSE_POWER(total[v]));
            STORE(IN_LANES(c->norm, t), ADD(MUL(EXPONENT(total[v]), SPLAT(M_LN2)), shift));
        }
    }
    NAME(note_small)(small, lowest, sound);
}

static TARGET void NAME(lane_backward)(const chain_lanes *c, int *sound) {
    const int n_labels = c->n_labels, width = 4 * n_labels;
    ALIGNED double xb[4 * CHAIN_LANE_LABELS];
    double factor[4];
    VEC small[FOUR], total[FOUR], lowest[FOUR];
    EACH_VEC {
        small[v] = SPLAT(0.0);
        lowest[v] = SPLAT(1.0);
    }
    for (int64_t t = c->ends[0] - 1; t >= 0; t--) {
        double *row = c->backward + t * width;
        const double *x = c->x + t * width;
        for (int l = 0; l < 4; l++) {
            if (t < c->ends[l] - 1) continue;
            factor[l] = 1.0;
            EACH_LABEL row[4 * j + l] = 1.0;
        }
        if (!t) break;
        EACH_LABEL EACH_VEC STORE(IN_LANES(xb, j), MUL(LOAD(IN_LANES(x, j)), LOAD(IN_LANES(row, j))));
        NAME(lane_row)(row - width, xb, c->transposed, factor, NULL, n_labels, small);
        NAME(lane_sums)(row - width, n_labels, total);
        EACH_VEC {
            lowest[v] = MIN(lowest[v], total[v]);
            STORE(factor + v * LANES, INVERSE_POWER(total[v]));
        }
    }
    NAME(note_small)(small, lowest, sound);
}

/* Row t of rows[l] [ends[l], n_labels] becomes the node marginals of token t of lane l; powers of 2 do not matter to them. */
static TARGET void NAME(lane_nodes)(const chain_lanes *c, double *const *rows) {
    const int n_labels = c->n_labels;
    ALIGNED double joined[4 * CHAIN_LANE_LABELS];
    double unused[CHAIN_LANE_LABELS];
    for (int64_t t = 0; t < c->ends[0]; t++) {
        const double *forward = c->forward + 4 * t * n_labels, *backward = c->backward + 4 * t * n_labels;
        double *out[4];
        VEC total[FOUR];
        EACH_LABEL EACH_VEC STORE(IN_LANES(joined, j), MUL(LOAD(IN_LANES(forward, j)), LOAD(IN_LANES(backward, j))));
        NAME(lane_sums)(joined, n_labels, total);
        EACH_VEC total[v] = DIV(SPLAT(1.0), total[v]);
        EACH_LABEL EACH_VEC STORE(IN_LANES(joined, j), MUL(LOAD(IN_LANES(joined, j)), total[v]));
        for (int l = 0; l < 4; l++) out[l] = t < c->ends[l] ? rows[l] + t * n_labels : unused;
        NAME(from_lanes)(joined, n_labels, out);
    }
}

/* Labels j .. j + width - 1 of out[j] = max_i(previous[i] + table[i, j]) + extra[j], in the order of `max_sum_block`.
 * `sound` [FOUR] becomes 0 unless it is plain that these are finite and not too large: it looks at their squares. */
static ALWAYS_INLINE TARGET void NAME(lane_max_labels)(double *restrict out, const double *restrict previous,
                                                       const double *restrict table, const double *restrict extra,
                                                       int n_labels, VEC *sound, const int width) {
    VEC best[4][FOUR];
#define SUM_OF(i, k) ADD(LOAD(IN_LANES(previous, i)), LOAD(IN_LANES(table, (i)*n_labels + (k))))
    for (int k = 0; k < width; k++) EACH_VEC best[k][v] = SUM_OF(0, k);
    for (int i = 1; i < n_labels; i++)
        for (int k = 0; k < width; k++) EACH_VEC best[k][v] = MAX(SUM_OF(i, k), best[k][v]);
#undef SUM_OF
    for (int k = 0; k < width; k++)
        EACH_VEC {
            const VEC more = LOAD(IN_LANES(extra, k));
            sound[v] = WHERE_MORE(sound[v], SPLAT(CHAIN_LARGEST), MUL(more, more));
            STORE(IN_LANES(out, k), ADD(best[k][v], more));
        }
}

/* Whether all log-potentials are sound. */
static TARGET int NAME(lane_best_scores)(const chain_stretches *c) {
    const int n_labels = c->n_labels;
    VEC sound[FOUR];
    const double zeros[CHAIN_LANE_LABELS] = {0.0};
    ALIGNED double extra[4 * CHAIN_LANE_LABELS];
    double *row = c->scores;
    EACH_VEC sound[v] = SPLAT(1.0);
    for (int64_t t = 0; t < c->longest; t++, row += 4 * n_labels) {
        const double *rows[4], *previous = t ? row - 4 * n_labels : extra;
        for (int l = 0; l < 4; l++) rows[l] = t < c->ends[l] ? c->unary[l] + t * n_labels : zeros;
        for (int l = 0; l < 4; l++) CHAIN_PREFETCH(rows[l] + CHAIN_LANE_AHEAD);
        NAME(into_lanes)(rows, n_labels, extra);
#define LABELS(width)                                                                                                  \
    NAME(lane_max_labels)(row + 4 * j, previous, c->table + 4 * j, extra + 4 * j, n_labels, sound, width)
        EACH_FEW_LABELS(LABELS)
#undef LABELS
        for (int l = 0; c->begins[t] && l < 4; l++)
            if (c->begins[t] >> l & 1) EACH_LABEL row[4 * j + l] = rows[l][j];
    }
    return NAME(at_least)(sound, 1.0);
}

/* One token of each lane, `into` [4] being the transposed rows of the labels that follow, which those found replace. */
static ALWAYS_INLINE TARGET void NAME(lane_trace_step)(const chain_stretches *c, int64_t t, const double **into) {
    static const double nothing[CHAIN_LANE_LABELS] = {-0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0,
                                                      -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0};
    static const double numbers[CHAIN_LANE_LABELS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const double *row = c->scores + 4 * t * c->n_labels;
    const int n_labels = c->n_labels;
    ALIGNED double ahead[4 * CHAIN_LANE_LABELS];
    double found[4];
    VEC top[FOUR], best[FOUR];
    for (int l = 0; l < 4; l++)
        if (c->begins[t + 1] >> l & 1) into[l] = nothing;
    NAME(into_lanes)(into, n_labels, ahead);
    EACH_VEC {
        top[v] = SPLAT(-INFINITY);
        best[v] = SPLAT(0.0);
    }
    EACH_LABEL EACH_VEC {
        const VEC sum = ADD(LOAD(IN_LANES(row, j)), LOAD(IN_LANES(ahead, j)));
        best[v] = MAX(best[v], WHERE_MORE(SPLAT(numbers[j]), sum, top[v]));
        top[v] = MAX(sum, top[v]);
    }
    EACH_VEC {
        STORE(found + v * LANES, best[v]);
        STORE(c->tops + 4 * t + v * LANES, top[v]);
    }
    for (int l = 0; l < 4; l++) {
        const int label = (int)found[l];
        if (t < c->ends[l]) c->states[l][t] = label;
        into[l] = c->transposed + label * c->stride;
    }
}

/* Of two at a time, as each step waits for the one before it. */
static TARGET void NAME(lane_trace_back)(const chain_stretches *c) {
    const double *into[2][4];
    const int64_t longest = c[0].longest > c[1].longest ? c[0].longest : c[1].longest;
    for (int k = 0; k < 8; k++) into[k / 4][k % 4] = c->transposed;
    for (int64_t t = longest - 1; t >= 0; t--)
        for (int k = 0; k < 2; k++)
            if (t < c[k].longest) NAME(lane_trace_step)(c + k, t, into[k]);
}

#undef EACH_LABEL
#undef EACH_FOUR_LABELS
#undef EACH_FEW_LABELS
#undef EACH_VEC
#undef IN_LANES
