/* Viterbi and forward-backward of WIDE sequences side by side (four or eight), one in each lane, for one instruction set.
 *
 * A row [n_states, WIDE] stores state j of lane l at WIDE * j + l. Sums are added in the order of `forward`, `backward` and
 * `join` in one_sequence.h, so each lane gets the bits that its sequence would get alone. A lane continues beyond the end
 * of its sequence and after faults; these results are never used. */

#define WIDE (LANES > 4 ? LANES : 4)
#define VECS (WIDE / LANES)
#define EACH_STATE for (int j = 0; j < n_states; j++)
#define EACH_VEC for (int v = 0; v < VECS; v++)
#define EACH_LANE for (int l = 0; l < WIDE; l++)
#define IN_LANES(p, j) ((p) + WIDE * (j) + v * LANES)

/* Blocks of four states. The last block ends with the row, so some states may be processed twice. */
#define EACH_FOUR_STATES                                                                                               \
    for (int j = 0, more = n_states >= 4; more; more = j < n_states - 4, j = j + 4 < n_states - 4 ? j + 4 : n_states - 4)

#if LANES >= 4
/* Transpose each half of four numbers: out[k][l] = in[l][k] for k, l < 4. */
static ALWAYS_INLINE TARGET void NAME(transpose)(const VEC *in, VEC *out) {
    const VEC ab = LOWS(in[0], in[1]), cd = LOWS(in[2], in[3]), ab1 = HIGHS(in[0], in[1]), cd1 = HIGHS(in[2], in[3]);
    out[0] = FIRST_PAIRS(ab, cd);
    out[1] = FIRST_PAIRS(ab1, cd1);
    out[2] = LAST_PAIRS(ab, cd);
    out[3] = LAST_PAIRS(ab1, cd1);
}
#endif

/* Interleave the rows [n_states] of the sequences into a row of lanes. */
static ALWAYS_INLINE TARGET void NAME(into_lanes)(const double *const *rows, int n_states, double *lanes) {
#if LANES >= 4
    EACH_FOUR_STATES {
        VEC in[4], out[4];
        for (int l = 0; l < 4; l++) in[l] = LOAD_FOURS(rows, l, j);
        NAME(transpose)(in, out);
        for (int k = 0; k < 4; k++) STORE(lanes + WIDE * (j + k), out[k]);
    }
    if (n_states >= 4) return;
#endif
    EACH_STATE EACH_LANE lanes[WIDE * j + l] = rows[l][j];
}

/* Split a row of lanes into the rows [n_states] of the sequences. */
static ALWAYS_INLINE TARGET void NAME(from_lanes)(const double *lanes, int n_states, double *const *rows) {
#if LANES >= 4
    EACH_FOUR_STATES {
        VEC in[4], out[4];
        for (int k = 0; k < 4; k++) in[k] = LOAD(lanes + WIDE * (j + k));
        NAME(transpose)(in, out);
        for (int l = 0; l < 4; l++) STORE_FOURS(rows, l, j, out[l]);
    }
    if (n_states >= 4) return;
#endif
    EACH_STATE EACH_LANE rows[l][j] = lanes[WIDE * j + l];
}

/* 1 if every lane is at least `bound`. */
static ALWAYS_INLINE TARGET int NAME(lanes_at_least)(const VEC *values, double bound) {
    double lanes[WIDE];
    int all = 1;
    EACH_VEC STORE(lanes + v * LANES, values[v]);
    EACH_LANE all &= lanes[l] >= bound;
    return all;
}

/* Define the function `name` from `name`_of, whose first argument is the number of states. Compilers unroll its loops for
 * the usual numbers: 9 (BIO tags of four labels) and 13 (BIOES tags of three). */
#define UNROLLED(type, name, parameters, arguments)                                                                    \
    static TARGET type NAME(name) parameters {                                                                         \
        if (c->n_states == 9) return NAME(name##_of)(9, PASSED arguments);                                             \
        if (c->n_states == 13) return NAME(name##_of)(13, PASSED arguments);                                           \
        return NAME(name##_of)(c->n_states, PASSED arguments);                                                         \
    }
#define PASSED(...) __VA_ARGS__

/* DO(width) for states j .. j + width - 1, three at a time, with one block of four or two: the sums of a single state would
 * have to wait for each other. */
#define EACH_FEW_STATES(DO)                                                                                            \
    for (int j = 0, left = n_states; left; j = n_states - left) {                                                      \
        if (left > 1 && left % 3 == 1) { DO(4); left -= 4; }                                                           \
        else if (left > 2) { DO(3); left -= 3; }                                                                       \
        else if (left == 2) { DO(2); left = 0; }                                                                       \
        else { DO(1); left = 0; }                                                                                      \
    }

/* States j .. j + width - 1 of out[j] = sum_i(previous[i] * table[i, j]) * factor * extra[j]; `extra` may be NULL. `small`
 * [VECS] sums the entries that are too small. The bound has a margin of 64, which exceeds the factor of at most 2 n_states
 * that `forward` multiplies by later. */
static ALWAYS_INLINE TARGET void NAME(lane_states)(double *restrict out, const double *restrict previous,
                                                   const double *restrict table, const double *factor,
                                                   const double *restrict extra, int n_states, VEC *small, const int width) {
    VEC even[4][VECS], odd[4][VECS];
#define SUM_OF(i, k) (LOAD(IN_LANES(previous, i)) * LOAD(IN_LANES(table, (i)*n_states + (k))))
    for (int k = 0; k < width; k++)
        EACH_VEC {
            even[k][v] = SUM_OF(0, k);
            odd[k][v] = n_states > 1 ? SUM_OF(1, k) : SPLAT(0.0);
        }
    for (int i = 2; i < n_states; i += 2) {
        for (int k = 0; k < width; k++) EACH_VEC even[k][v] = SUM_OF(i, k) + even[k][v];
        if (i + 1 == n_states) break;
        for (int k = 0; k < width; k++) EACH_VEC odd[k][v] = SUM_OF(i + 1, k) + odd[k][v];
    }
#undef SUM_OF
    for (int k = 0; k < width; k++)
        EACH_VEC {
            VEC sum = (even[k][v] + odd[k][v]) * LOAD(factor + v * LANES);
            if (extra) sum *= LOAD(IN_LANES(extra, k));
            small[v] += WHERE_MORE(sum, SPLAT(64 * CHAIN_SMALLEST), sum);
            STORE(IN_LANES(out, k), sum);
        }
}

/* `next_row` in lanes; the table [n_states, n_states, WIDE] repeats each entry. */
static ALWAYS_INLINE TARGET void NAME(lane_row)(double *restrict out, const double *restrict previous,
                                                const double *restrict table, const double *factor,
                                                const double *restrict extra, int n_states, VEC *small) {
#define STATES(width)                                                                                                  \
    NAME(lane_states)(out + WIDE * j, previous, table + WIDE * j, factor, extra ? extra + WIDE * j : NULL, n_states, small, width)
    EACH_FEW_STATES(STATES)
#undef STATES
}

/* Sums of a row over all states, for each lane, in the order of `sum`. */
static ALWAYS_INLINE TARGET void NAME(lane_sums)(const double *row, int n_states, VEC *total) {
    VEC sums[4][VECS];
    for (int k = 0; k < 4; k++) EACH_VEC sums[k][v] = SPLAT(0.0);
    for (int j = 0; j < n_states; j += 4)
        for (int k = 0; k < 4; k++)
            if (j + k < n_states) EACH_VEC sums[k][v] += LOAD(IN_LANES(row, j + k));
    EACH_VEC total[v] = (sums[0][v] + sums[2][v]) + (sums[1][v] + sums[3][v]);
}

/* Clear sound[l] where lane l has entries that are too small, or rows of zeros. */
static ALWAYS_INLINE TARGET void NAME(note_small)(const VEC *small, const VEC *lowest, int *sound) {
    double entries[WIDE], rows[WIDE];
    EACH_VEC STORE(entries + v * LANES, small[v]);
    EACH_VEC STORE(rows + v * LANES, lowest[v]);
    EACH_LANE sound[l] &= entries[l] == 0.0 && rows[l] > 0.0;
}

/* x [n, n_states, WIDE] = exp(unary - largest of the token); tops [n, WIDE] receives the largest. */
static ALWAYS_INLINE TARGET void NAME(lane_exponentials_of)(const int n_states, const chain_lanes *c, int *sound) {
    const double zeros[CHAIN_LANE_STATES] = {0.0};
    double range[WIDE], low[WIDE];
    VEC least[VECS], lowest[VECS];
    EACH_VEC least[v] = lowest[v] = SPLAT(0.0);
    for (int64_t t = 0; t < c->ends[0]; t++) {
        const double *rows[WIDE];
        double *x = c->x + WIDE * t * n_states;
        VEC top[VECS], bottom[VECS];
        EACH_LANE rows[l] = t < c->ends[l] ? c->unary[l] + t * n_states : zeros;
        NAME(into_lanes)(rows, n_states, x);
        EACH_VEC top[v] = bottom[v] = LOAD(x + v * LANES);
        EACH_STATE EACH_VEC {
            top[v] = MAX(top[v], LOAD(IN_LANES(x, j)));
            bottom[v] = MIN(bottom[v], LOAD(IN_LANES(x, j)));
        }
        EACH_VEC STORE(c->tops + WIDE * t + v * LANES, top[v]);
        EACH_VEC lowest[v] = MIN(lowest[v], top[v]);
        EACH_VEC bottom[v] -= top[v];
        if (NAME(lanes_at_least)(bottom, -CHAIN_UNARY_RANGE)) {
            EACH_STATE EACH_VEC STORE(IN_LANES(x, j), NAME(exp_near)(LOAD(IN_LANES(x, j)) - top[v]));
            continue;
        }
        EACH_STATE EACH_VEC {
            const VEC d = LOAD(IN_LANES(x, j)) - top[v];
            least[v] = MIN(least[v], WHERE_MORE(d, d, SPLAT(-INFINITY)));
            STORE(IN_LANES(x, j), NAME(exp)(d));
        }
    }
    EACH_VEC STORE(range + v * LANES, least[v]);
    EACH_VEC STORE(low + v * LANES, lowest[v]);
    EACH_LANE sound[l] &= low[l] > -INFINITY && range[l] >= -CHAIN_UNARY_RANGE;
}

UNROLLED(void, lane_exponentials, (const chain_lanes *c, int *sound), (c, sound))

/* Forward rows without their factors, which are stored in `factor`. */
static ALWAYS_INLINE TARGET void NAME(lane_forward_of)(const int n_states, const chain_lanes *c, int *sound) {
    const int width = WIDE * n_states;
    double *row = c->forward, *factor = c->factor;
    VEC small[VECS], total[VECS], lowest[VECS];
    EACH_VEC {
        small[v] = SPLAT(0.0);
        lowest[v] = SPLAT(1.0);
    }
    for (int64_t t = 0; t < c->ends[0]; t++, row += width, factor += WIDE) {
        if (t) NAME(lane_row)(row, row - width, c->table, factor - WIDE, c->x + t * width, n_states, small);
        else memcpy(row, c->x, width * sizeof(double));
        NAME(lane_sums)(row, n_states, total);
        EACH_VEC {
            const VEC top = LOAD(IN_LANES(c->tops, t)), shift = t ? top + c->shift : top;
            lowest[v] = MIN(lowest[v], total[v]);
            STORE(factor + v * LANES, INVERSE_POWER(total[v]));
            STORE(IN_LANES(c->norm, t), EXPONENT(total[v]) * M_LN2 + shift);
        }
    }
    NAME(note_small)(small, lowest, sound);
}

UNROLLED(void, lane_forward, (const chain_lanes *c, int *sound), (c, sound))

/* Backward rows without their factors, which are stored in `scale`. */
static ALWAYS_INLINE TARGET void NAME(lane_backward_of)(const int n_states, const chain_lanes *c, int *sound) {
    const int width = WIDE * n_states;
    ALIGNED double xb[WIDE * CHAIN_LANE_STATES];
    VEC small[VECS], total[VECS], lowest[VECS];
    EACH_VEC {
        small[v] = SPLAT(0.0);
        lowest[v] = SPLAT(1.0);
    }
    for (int64_t t = c->ends[0] - 1; t >= 0; t--) {
        double *row = c->backward + t * width;
        const double *x = c->x + t * width;
        double *factor = c->scale + WIDE * t; /* multiplies row t - 1 */
        EACH_LANE {
            if (t < c->ends[l] - 1) continue;
            factor[l] = 1.0;
            EACH_STATE row[WIDE * j + l] = 1.0;
        }
        if (!t) break;
        EACH_STATE EACH_VEC STORE(IN_LANES(xb, j), LOAD(IN_LANES(x, j)) * LOAD(IN_LANES(row, j)));
        NAME(lane_row)(row - width, xb, c->transposed, factor, NULL, n_states, small);
        NAME(lane_sums)(row - width, n_states, total);
        EACH_VEC {
            lowest[v] = MIN(lowest[v], total[v]);
            STORE(factor - WIDE + v * LANES, INVERSE_POWER(total[v]));
        }
    }
    NAME(note_small)(small, lowest, sound);
}

UNROLLED(void, lane_backward, (const chain_lanes *c, int *sound), (c, sound))

/* Add the outer products of n rows of each lane to `pairs`. */
static ALWAYS_INLINE TARGET void NAME(add_pairs)(const int n_states, const double *left, const double *right,
                                                 double *pairs, const int n) {
    for (int i = 0; i < n_states; i++)
        EACH_STATE EACH_VEC {
            VEC sum = LOAD(IN_LANES(pairs, i * n_states + j));
            for (int k = 0; k < n; k++)
                sum += LOAD(IN_LANES(left, k * n_states + i)) * LOAD(IN_LANES(right, k * n_states + j));
            STORE(IN_LANES(pairs, i * n_states + j), sum);
        }
}

/* The two rows whose outer product gives the pair probabilities of tokens t - 1 and t; zeros in lanes that have ended.
 * `share`: 1 / (the sum of forward times backward at t - 1). */
static ALWAYS_INLINE TARGET void NAME(pair_rows)(const int n_states, const chain_lanes *c, int64_t t, const VEC *share,
                                                 double *left, double *right) {
    const double *x = c->x + WIDE * t * n_states, *forward = c->forward + WIDE * (t - 1) * n_states;
    const double *backward = c->backward + WIDE * t * n_states;
    double going[WIDE];
    EACH_LANE going[l] = t < c->ends[l];
    EACH_VEC {
        const VEC here = LOAD(going + v * LANES), factor = share[v] * LOAD(IN_LANES(c->scale, t));
        EACH_STATE {
            STORE(IN_LANES(left, j), WHERE_MORE(LOAD(IN_LANES(forward, j)) * factor, here, SPLAT(0.0)));
            STORE(IN_LANES(right, j), WHERE_MORE(LOAD(IN_LANES(x, j)) * LOAD(IN_LANES(backward, j)), here, SPLAT(0.0)));
        }
    }
}

/* Write the node marginals of token t of lane l to row t of rows[l] [ends[l], n_states]; they need no scaling, as powers of
 * 2 cancel. `pairs`, unless NULL, are added for AT_A_TIME tokens at once, so that they are read and written less often. */
static ALWAYS_INLINE TARGET void NAME(lane_marginals_of)(const int n_states, const chain_lanes *c, double *const *rows) {
    enum { AT_A_TIME = 4 };
    ALIGNED double joined[WIDE * CHAIN_LANE_STATES], lefts[AT_A_TIME * WIDE * CHAIN_LANE_STATES];
    ALIGNED double rights[AT_A_TIME * WIDE * CHAIN_LANE_STATES];
    double unused[CHAIN_LANE_STATES];
    int waiting = 0;
    VEC share[VECS];
    EACH_VEC share[v] = SPLAT(0.0);
    if (c->pairs) memset(c->pairs, 0, n_states * n_states * WIDE * sizeof(double));
    for (int64_t t = 0; t < c->ends[0]; t++) {
        const double *forward = c->forward + WIDE * t * n_states, *backward = c->backward + WIDE * t * n_states;
        double *out[WIDE];
        if (c->pairs && t) {
            const int at = waiting++ * WIDE * n_states;
            NAME(pair_rows)(n_states, c, t, share, lefts + at, rights + at);
            if (waiting == AT_A_TIME) {
                NAME(add_pairs)(n_states, lefts, rights, c->pairs, AT_A_TIME);
                waiting = 0;
            }
        }
        EACH_STATE EACH_VEC STORE(IN_LANES(joined, j), LOAD(IN_LANES(forward, j)) * LOAD(IN_LANES(backward, j)));
        NAME(lane_sums)(joined, n_states, share);
        EACH_VEC share[v] = 1.0 / share[v];
        EACH_STATE EACH_VEC STORE(IN_LANES(joined, j), LOAD(IN_LANES(joined, j)) * share[v]);
        EACH_LANE out[l] = t < c->ends[l] ? rows[l] + t * n_states : unused;
        NAME(from_lanes)(joined, n_states, out);
    }
    if (waiting) NAME(add_pairs)(n_states, lefts, rights, c->pairs, waiting);
}

UNROLLED(void, lane_marginals, (const chain_lanes *c, double *const *rows), (c, rows))

/* States j .. j + width - 1 of out[j] = max_i(previous[i] + table[i, j]) + extra[j], in the order of `max_sum_block`.
 * `sound` [VECS] becomes 0 where the square of a log-potential is not finite and small: a cheap test that may reject
 * sound rows but never accepts a bad one. */
static ALWAYS_INLINE TARGET void NAME(lane_max_states)(double *restrict out, const double *restrict previous,
                                                       const double *restrict table, const double *restrict extra,
                                                       int n_states, VEC *sound, const int width) {
    VEC best[4][VECS];
#define SUM_OF(i, k) (LOAD(IN_LANES(previous, i)) + LOAD(IN_LANES(table, (i)*n_states + (k))))
    for (int k = 0; k < width; k++) EACH_VEC best[k][v] = SUM_OF(0, k);
    for (int i = 1; i < n_states; i++)
        for (int k = 0; k < width; k++) EACH_VEC best[k][v] = MAX(SUM_OF(i, k), best[k][v]);
#undef SUM_OF
    for (int k = 0; k < width; k++)
        EACH_VEC {
            const VEC more = LOAD(IN_LANES(extra, k));
            sound[v] = WHERE_MORE(sound[v], SPLAT(CHAIN_LARGEST), more * more);
            STORE(IN_LANES(out, k), best[k][v] + more);
        }
}

/* Scores of a group of stretches; returns 1 if all log-potentials are certainly sound. */
static ALWAYS_INLINE TARGET int NAME(lane_best_scores_of)(const int n_states, const chain_stretches *c) {
    VEC sound[VECS];
    const double zeros[CHAIN_LANE_STATES] = {0.0};
    ALIGNED double extra[WIDE * CHAIN_LANE_STATES];
    double *row = c->scores;
    EACH_VEC sound[v] = SPLAT(1.0);
    for (int64_t t = 0; t < c->longest; t++, row += WIDE * n_states) {
        const double *rows[WIDE], *previous = t ? row - WIDE * n_states : extra;
        EACH_LANE rows[l] = t < c->ends[l] ? c->unary[l] + t * n_states : zeros;
        EACH_LANE CHAIN_PREFETCH(rows[l] + CHAIN_LANE_AHEAD);
        NAME(into_lanes)(rows, n_states, extra);
#define STATES(width)                                                                                                  \
    NAME(lane_max_states)(row + WIDE * j, previous, c->table + WIDE * j, extra + WIDE * j, n_states, sound, width)
        EACH_FEW_STATES(STATES)
#undef STATES
        for (int l = 0; c->begins[t] && l < WIDE; l++)
            if (c->begins[t] >> l & 1) EACH_STATE row[WIDE * j + l] = rows[l][j];
    }
    return NAME(lanes_at_least)(sound, 1.0);
}

UNROLLED(int, lane_best_scores, (const chain_stretches *c), (c))

/* Choose the states of token t in all lanes. `into` [WIDE]: the transposed table rows of the states at t + 1, replaced by
 * those of the states at t. */
static ALWAYS_INLINE TARGET void NAME(lane_trace_step)(const int n_states, const chain_stretches *c, int64_t t,
                                                       const double **into) {
    static const double no_successor[CHAIN_LANE_STATES] = {[0 ... CHAIN_LANE_STATES - 1] = -0.0};
    const double *row = c->scores + WIDE * t * n_states;
    ALIGNED double ahead[WIDE * CHAIN_LANE_STATES];
    double states[WIDE];
    VEC top[VECS], best[VECS];
    for (int l = 0; c->begins[t + 1] && l < WIDE; l++)
        if (c->begins[t + 1] >> l & 1) into[l] = no_successor;
    NAME(into_lanes)(into, n_states, ahead);
    EACH_VEC {
        top[v] = SPLAT(-INFINITY);
        best[v] = SPLAT(0.0);
    }
    EACH_STATE EACH_VEC {
        const VEC sum = LOAD(IN_LANES(row, j)) + LOAD(IN_LANES(ahead, j));
        best[v] = MAX(best[v], WHERE_MORE(SPLAT((double)j), sum, top[v]));
        top[v] = MAX(sum, top[v]);
    }
    EACH_VEC {
        STORE(states + v * LANES, best[v]);
        STORE(c->tops + WIDE * t + v * LANES, top[v]);
    }
    EACH_LANE {
        const int state = (int)states[l];
        if (t < c->ends[l]) c->states[l][t] = state;
        into[l] = c->transposed + state * c->stride;
    }
}

/* Trace all groups of stretches in turn, as each step of one group waits for its previous step. */
static ALWAYS_INLINE TARGET void NAME(lane_trace_back_of)(const int n_states, const chain_stretches *c) {
    const double *into[CHAIN_STRETCHES / WIDE][WIDE];
    int64_t longest = 0;
    for (int k = 0; k < CHAIN_STRETCHES / WIDE; k++) {
        EACH_LANE into[k][l] = c->transposed;
        if (c[k].longest > longest) longest = c[k].longest;
    }
    for (int64_t t = longest - 1; t >= 0; t--)
        for (int k = 0; k < CHAIN_STRETCHES / WIDE; k++)
            if (t < c[k].longest) NAME(lane_trace_step)(n_states, c + k, t, into[k]);
}

UNROLLED(void, lane_trace_back, (const chain_stretches *c), (c))

#undef WIDE
#undef UNROLLED
#undef PASSED
#undef VECS
#undef EACH_STATE
#undef EACH_FOUR_STATES
#undef EACH_FEW_STATES
#undef EACH_VEC
#undef EACH_LANE
#undef IN_LANES
