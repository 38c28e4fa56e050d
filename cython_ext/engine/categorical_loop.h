/* Variables of any number of states: normalising, drawing, herding, one update, and the loop over variables that all have
 * the same number of states. Rows have a `width`, the number of states rounded up to a multiple of 4; the padding is 0.
 *
 *     update_categorical
 *       1. conditional   conditional_row(), or product_with_totals() in a chain  ->  rows, not normalised
 *       2. choice        draw: random     cumulate(), pick()
 *                        draw: blanket    herd_vector_row(): up to 16 states, in registers
 *                              or bins    draw_categorical(): more states, in memory
 *                        draw: general    draw_categorical_general(): every sharing, form and error bound
 *       3. set_state     the new state, and the flip
 *
 *     categorical_loop, for variables j = 0, 1, ...
 *
 *         prefetch line for j + 16 | prefetch rows for j + 6 | update j | update j + 1 waits for the state of j
 *
 * `draw`, `width` and, for the usual 9 states, `n_states` are compile-time constants: STEP_CATEGORICAL chooses among the
 * instances. All of them give the same bits as the general loop (tests/inference/test_gibbs_engines.py).
 *
 * To change an update, change the general path first (conditional_row, draw_categorical_general); it defines the results.
 * Then change the vector path until the tests agree. */
#ifndef HERDNER_CATEGORICAL_LOOP_H
#define HERDNER_CATEGORICAL_LOOP_H

#include "chain_totals.h"
#include "herding_weights.h"
#include "packed_lookup.h"
#include "weight_keys.h"

/* Add p to the weights and return the state of the largest weight among those with p > 0, the smallest state of equals; with
 * an error bound that no weight exceeds, return `drawn`. The caller subtracts 1 from the weight of that state. `decisive`
 * [width] is scratch. */
static ALWAYS_INLINE int add_and_choose(double *restrict weights, const double *restrict p, int width,
                                        const int circular, const double bound, int drawn, double *restrict decisive) {
    double4 tops = SPLAT4(-INFINITY);
    for (int k = 0; k < width; k += 4) {
        double4 w, q, d;
        LOAD4(w, weights + k);
        LOAD4(q, p + k);
        d = SELECT4(q > 0.0, circular ? w + q : w, SPLAT4(-INFINITY));
        tops = MAX4(d, tops);
        w += q;
        STORE4(weights + k, w);
        STORE4(decisive + k, d);
    }
    double4 other = SWAP_HALVES(tops);
    tops = MAX4(other, tops);
    other = SWAP_PAIRS(tops);
    tops = MAX4(other, tops);
    int x = -1;
    for (int from = 0; x < 0; from += 64) {
        uint64_t bits = 0;
        for (int k = from; k < width && k < from + 64; k += 4) {
            double4 d;
            LOAD4(d, decisive + k);
            bits |= mask_bits(d == tops) << (k - from);
        }
        if (bits) x = from + __builtin_ctzll(bits);
    }
    if (bound > 0.0 && tops[0] <= bound * ONE) x = drawn;
    return x;
}

/* Cumulative sums of a row. Four states at a time give (a, a + b, (a + b) + c, (a + b) + (c + d)), to which the sum of the
 * states before is added. Returns the total in each lane. */
static ALWAYS_INLINE double4 cumulate(const double *restrict w, double *restrict cumulative, int width) {
    const double4 zero = SPLAT4(0.0);
    double4 before = zero;
    for (int k = 0; k < width; k += 4) {
        double4 v;
        LOAD4(v, w + k);
        v += SHUFFLE4(zero, v, 0, 4, 2, 6);
        const double4 four = v + SWAP_HALVES(v), first = DUPLICATE_ODD(v);
        v += SHUFFLE4(zero, first, 0, 1, 4, 5);
        const double4 sums = k ? v + before : v;
        STORE4(cumulative + k, sums);
        before = k ? before + DUPLICATE_ODD(four) : DUPLICATE_ODD(four);
    }
    return before;
}

/* The smallest state whose cumulative weight exceeds u * total; never a state of weight 0. */
static ALWAYS_INLINE int pick(const double *restrict w, const double *restrict cumulative, int width, double4 total, double u) {
    const double4 at = SPLAT4(u) * total;
    for (int from = 0; from < width; from += 64) {
        uint64_t bits = 0;
        for (int k = from; k < width && k < from + 64; k += 4) {
            double4 c;
            LOAD4(c, cumulative + k);
            bits |= mask_bits(c > at) << (k - from);
        }
        if (bits) return from + __builtin_ctzll(bits);
    }
    int x = width - 1; /* u * total was rounded up to the total */
    while (x > 0 && w[x] == 0.0) x--;
    return x;
}

/* The sum of a row, in each lane. */
static ALWAYS_INLINE double4 total_of(const double *restrict w, int width) {
    double4 sum, v;
    LOAD4(sum, w);
    for (int k = 4; k < width; k += 4) {
        LOAD4(v, w + k);
        sum += v;
    }
    sum += SWAP_HALVES(sum);
    sum += SWAP_PAIRS(sum);
    return sum;
}

/* Fixed-point probabilities in units of 2^-32, rounded to the nearest; `scale`: ONE / total, in each lane. A zero stays
 * zero. Their sum may miss ONE by a few units, which shifts all weights alike. */
static ALWAYS_INLINE void fixed_probabilities(const double *restrict w, double4 scale, double *restrict p, int width) {
    for (int k = 0; k < width; k += 4) {
        double4 v;
        LOAD4(v, w + k);
        v = ROUND4(v * scale);
        STORE4(p + k, v);
    }
}

/* A state drawn from fixed-point probabilities. */
static inline int pick_fixed(const double *p, int n, double u) {
    const double at = u * ONE;
    double sum = 0.0;
    int x = 0;
    for (int k = 0; k < n; k++) {
        if (p[k] > 0.0 && sum <= at) x = k;
        sum += p[k];
    }
    return x;
}

/* Herd with the weights of a key, initialising them if needed. `place`: their position in a dense table. */
static ALWAYS_INLINE int herd_key(const sampler *s, worker *w, int64_t i, uint64_t key, uint64_t place, const double *p,
                                  double *scratch, int n, int width, const int circular, const double bound, int drawn) {
    double *weights = signed_weights(s, w, i, key, place);
    if (!weights) return s->x[i];
    const int x = is_uninitialised(weights)
                      ? initialise_and_choose(weights, p, n, width, circular, bound, drawn, mix_pair(s->weight_key, i, key))
                      : add_and_choose(weights, p, width, circular, bound, drawn, scratch);
    weights[x] -= ONE;
    return x;
}

/* Choose a state by any sharing, form and error bound; w->row holds the conditional. */
static int draw_categorical_general(const sampler *s, worker *w, int64_t i, double4 scale, int n, int width, double u) {
    int drawn = 0;
    if (s->w.draw == DRAW_RANDOM || s->plan.error_bound > 0.0) {
        const double4 total = cumulate(w->row, w->cumulative, width);
        drawn = pick(w->row, w->cumulative, width, total, u);
    }
    if (s->w.draw == DRAW_RANDOM) return drawn;
    fixed_probabilities(w->row, scale, w->p, width);
    uint64_t key;
    if (s->w.sharing == SHARE_BINS) {
        key = bins_key(s, w->p, n);
    } else if (s->w.sharing == SHARE_RANDOM_BINS) {
        key = round_probabilities(s, w->p, n, u);
        drawn = pick_fixed(w->p, n, next_uniform(u));
    } else {
        key = key_of(s, i);
    }
    return herd_key(s, w, i, key, key, w->p, w->cumulative, n, width, s->plan.form == CIRCULAR, s->plan.error_bound, drawn);
}

/* Choose a state from the conditional `row`. `scale`: see `fixed_probabilities`; `p`, `scratch`: rows of scratch. */
static ALWAYS_INLINE int draw_categorical(const sampler *s, worker *w, int64_t i, const double *row, double4 scale, double *p,
                                          double *scratch, int n, int width, double u, const int draw) {
    if (draw == DRAW_RANDOM) {
        const double4 total = cumulate(row, p, width);
        return pick(row, p, width, total, u);
    }
    fixed_probabilities(row, scale, p, width);
    const uint64_t key = key_for_draw(s, i, p, n, draw);
    return herd_key(s, w, i, key, dense_place(s, i, key, draw), p, scratch, n, width, 1, 0.0, 0);
}

/* Herding of variables of at most 16 states in the circular form, with the row of weights in vector registers.
 *
 * One update of a variable, all steps on 4 states at a time:
 *
 *     weights                  w[0]    w[1]    w[2]   ...    from a dense table, a hash table or a packed row
 *     + p                      each state gains its probability
 *     tag                      the 4 lowest bits of w[k] hold 15 - k
 *     maximum                  of the states with p > 0; the tag of the maximum is the state, ties go to the smallest
 *     - 1 where w = maximum    only the chosen state, because the tags make all weights different
 *     untag, store
 *
 * Two properties make it fast. There is no separate search for the position of the maximum. And the 1 is subtracted in all
 * registers by comparison, not in memory: a store to an address that depends on the state would delay all later loads.
 *
 * Tagging. A weight is an integer below 2^40 in units of 2^-32 times ONE. Adding 1.5 * 2^48 gives a double whose last bit is
 * worth 2^-4; adding (15 - k) of these bits writes the tag. 2^39 more makes packed weights (packed_weights.h) nonnegative:
 *
 *     bits of the double:  63        52 51             44 43            36 35        4 3    0
 *                          sign, exponent   1000...       weight / 2^32     low 32 bits  15 - k
 *                                                         + 128 (the byte)
 *
 * so bits 4 to 35 are `low` and bits 36 to 43 the byte in `high` of a packed row: packing is shifting. */

/* The bits of 1.5 * 2^48 + 2^39. */
#define TAG_SHIFT UINT64_C(0x42f8080000000000)
#define TAGS_FROM(k) ((bits4){15 - (k), 14 - (k), 13 - (k), 12 - (k)})
_Static_assert(VECTOR_STATES == 16, "tags have four bits");

/* Tag the weights of states k to k + 3; remove their tags. */
static ALWAYS_INLINE double4 tag_states(double4 weights, int k) { return weights + (double4)(TAGS_FROM(k) + TAG_SHIFT); }
static ALWAYS_INLINE double4 untag_states(double4 weights, int k) { return weights - (double4)(TAGS_FROM(k) + TAG_SHIFT); }

static ALWAYS_INLINE void unpack_tagged(const packed_row *row, double4 *weights, int width) {
    const bits4 high = widen_words(row->high);
    for (int k = 0; k < width; k += 4) {
        const bits4 bytes = (k ? high >> (2 * k) : high) & 255;
        weights[k / 4] = (double4)((bytes << 36) + (widen_words(row->low + k) << 4)
                                   + (TAGS_FROM(k) + (TAG_SHIFT - (UINT64_C(1) << 43))));
    }
}

static ALWAYS_INLINE void pack_tagged(const double4 *weights, packed_row *row, int width) {
    bits4 high = {0, 0, 0, 0};
    for (int k = 0; k < width; k += 4) {
        const bits4 bits = (bits4)weights[k / 4];
        store_words(row->low + k, bits >> 4);
        high |= ((bits >> 36) & 255) << (2 * k);
    }
    store_words(row->high, high);
}

/* Choose the state of the largest tagged weight among those that are allowed, and subtract 1 from its weight. */
static ALWAYS_INLINE int choose_largest(double4 *weights, const mask4 *allowed, int width) {
    const double4 none = SPLAT4(0.0), one = SPLAT4(ONE);
    double4 eligible[VECTOR_STATES / 4], tops = none;
    for (int k = 0; k < width; k += 4) {
        eligible[k / 4] = SELECT4(allowed[k / 4], weights[k / 4], none);
        tops = k ? MAX4(eligible[k / 4], tops) : eligible[0];
    }
    double4 other = SWAP_HALVES(tops);
    tops = MAX4(other, tops);
    other = SWAP_PAIRS(tops);
    tops = MAX4(other, tops);
    for (int k = 0; k < width; k += 4) weights[k / 4] -= SELECT4(eligible[k / 4] == tops, one, none);
    return 15 - (int)(((bits4)tops)[0] & 15);
}

/* Write the start values of a key to a packed row and return the first state. */
static __attribute__((noinline)) int initialise_packed(const sampler *s, int64_t i, uint64_t key, const double *p, int n,
                                                       int width, packed_row *row) {
    double weights[MAX_PACKED_STATES];
    double4 tagged[MAX_PACKED_STATES / 4];
    const int x = initialise_and_choose(weights, p, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
    weights[x] -= ONE;
    for (int k = 0; k < width; k += 4) {
        LOAD4(tagged[k / 4], weights + k);
        tagged[k / 4] = tag_states(tagged[k / 4], k);
    }
    pack_tagged(tagged, row, width);
    return x;
}

/* Herd with packed weights. `p`, `allowed`, `fixed`: as in `herd_vector_row`. */
static ALWAYS_INLINE int herd_packed(const sampler *s, worker *w, int64_t i, const double4 *p, const mask4 *allowed,
                                     const double *fixed, int n, int width, const int draw, int last_state) {
    packed_row *row = find_row(s, w->store, i, n, last_state);
    if (!row) {
        int is_new;
        const uint64_t key = key_for_draw(s, i, fixed, n, draw);
        row = add_row(s, w, i, n, key, &is_new);
        if (!row) return s->x[i];
        if (is_new) return initialise_packed(s, i, key, fixed, n, width, row);
    }
    double4 weights[MAX_PACKED_STATES / 4];
    unpack_tagged(row, weights, width);
    for (int k = 0; k < width; k += 4) weights[k / 4] += p[k / 4];
    const int x = choose_largest(weights, allowed, width);
    pack_tagged(weights, row, width);
    return x;
}

/* Herd with the probabilities rows * scale and return the new state. The caller knows that variable `last` (or -1) is in
 * state `last_state`. */
static ALWAYS_INLINE int herd_vector_row(const sampler *s, worker *w, int64_t i, const double4 *rows, double4 scale, int n,
                                         int width, const int draw, int64_t last, int last_state) {
    double4 p[VECTOR_STATES / 4], weights[VECTOR_STATES / 4];
    mask4 allowed[VECTOR_STATES / 4];
    double fixed[VECTOR_STATES]; /* p in memory */
    for (int k = 0; k < width; k += 4) {
        const double4 exact = rows[k / 4] * scale;
        p[k / 4] = ROUND4(exact);
        allowed[k / 4] = exact > 0.5; /* p > 0, without waiting for the rounding */
        STORE4(fixed + k, p[k / 4]);
    }
    if (width <= MAX_PACKED_STATES && is_packed(s, i)) {
        const int64_t before = s->sites[i].last;
        return herd_packed(s, w, i, p, allowed, fixed, n, width, draw,
                           last >= 0 && before == last ? last_state : state_of(s, before));
    }
    const uint64_t key = key_for_draw(s, i, fixed, n, draw);
    double *stored = signed_weights(s, w, i, key, dense_place(s, i, key, draw));
    if (!stored) return s->x[i];
    if (is_uninitialised(stored)) {
        const int x = initialise_and_choose(stored, fixed, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
        stored[x] -= ONE;
        return x;
    }
    for (int k = 0; k < width; k += 4) {
        LOAD4(weights[k / 4], stored + k);
        weights[k / 4] = tag_states(weights[k / 4], k) + p[k / 4];
    }
    const int x = choose_largest(weights, allowed, width);
    for (int k = 0; k < width; k += 4) STORE4(stored + k, untag_states(weights[k / 4], k));
    return x;
}

enum { AHEAD_UPDATES = 2, MAX_PREFETCHED = 256 };

/* Prefetch the dense weights that variable i may use, for every state of the first member of its blanket: in a chain that
 * is the previous variable, whose state is still unknown. */
static ALWAYS_INLINE void prefetch_weights(const sampler *s, int64_t i) {
    const int64_t begin = s->w.key_starts[i];
    if (!s->dense || first_weight(s, i) < 0 || begin == s->w.key_starts[i + 1]) return;
    const int64_t length = s->w.row_length, n = s->m.c.sizes[s->w.key_members[begin]] * length;
    if (n > MAX_PREFETCHED) return;
    const double *from = s->dense + (first_weight(s, i) + blanket_place(s, i, s->x, 0)) * length;
    for (int64_t k = 0; k < n; k += 8) __builtin_prefetch(from + k, 1);
}

/* Update variable i and return its new state. `plain`: as in `categorical_loop`. Variable `last` (or -1), updated just
 * before, is in state `last_state`. */
static ALWAYS_INLINE int update_categorical(const sampler *s, worker *w, int64_t i, double u, int n_states, int width,
                                            const int draw, const int plain, int64_t last, int last_state) {
    double local[3][VECTOR_STATES];
    const int small = width <= VECTOR_STATES && draw != DRAW_GENERAL, herds = small && draw != DRAW_RANDOM;
    double *row = small ? local[0] : w->row, *p = small ? local[1] : w->p, *scratch = small ? local[2] : w->cumulative;
    double4 rows[VECTOR_STATES / 4], scale;
    double total;
    if (herds && can_precompute_totals(&s->m, i, last) && (plain || !s->m.log_domain || !s->m.log_domain[i])) {
        total = product_with_totals(&s->m, i, s->x, rows, n_states, width, last_state, ONE, &scale);
        for (int k = 0; k < width; k += 4) STORE4(row + k, rows[k / 4]);
    } else {
        conditional_row(&s->m, i, s->x, row, width, last, last_state);
        const double4 totals = total_of(row, width);
        total = totals[0];
        scale = SPLAT4(ONE) / totals;
        for (int k = 0; herds && k < width; k += 4) LOAD4(rows[k / 4], row + k);
    }
    if (!(total > 0.0)) {
        w->fault = IMPOSSIBLE;
        w->fault_variable = i;
        return 0;
    }
    if (!plain && s->conditional_sums) {
        double *to = s->conditional_sums + unary_row(&s->m, i);
        for (int k = 0; k < n_states; k++) to[k] += row[k] / total;
        s->conditional_counts[i]++;
    }
    const int x = herds                  ? herd_vector_row(s, w, i, rows, scale, n_states, width, draw, last, last_state)
                  : draw == DRAW_GENERAL ? draw_categorical_general(s, w, i, scale, n_states, width, u)
                                         : draw_categorical(s, w, i, row, scale, p, scratch, n_states, width, u, draw);
    if (plain && !s->tracks) s->y[i] = (state_t)x;
    else set_state(s, w, i, x, row[x], row[s->x[i]]);
    return x;
}

/* Update n variables. `plain`: they are in order, new states are visible at once, and neither conditionals nor complete
 * keys are recorded. */
static ALWAYS_INLINE void categorical_loop(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n,
                                           const double *u, int n_states, int width, const int draw, const int plain) {
    const int packed = (draw == DRAW_BLANKET || draw == DRAW_BINS) && s->sites;
    const int64_t unknown = s->x == s->y ? 0 : -1; /* the Jacobi scan computes conditionals from the old states */
    int64_t last = -1;
    int x = 0;
    uint64_t lines[AHEAD_LINES] = {0}; /* of the next updates */
#define VARIABLE(j) (plain || !order ? first + (j) : order[j])
    for (int64_t j = 0; j < n; j++) {
        const int64_t i = VARIABLE(j), line = j + AHEAD_LINES, row = j + AHEAD_ROWS, weights = j + AHEAD_UPDATES;
        if (packed && line < n) lines[line % AHEAD_LINES] = prefetch_line(s, w->store, VARIABLE(line), n_states);
        if (packed && row < n) prefetch_rows(s, w->store, VARIABLE(row), n_states, lines[row % AHEAD_LINES]);
        if (!packed && draw == DRAW_BLANKET && weights < n) prefetch_weights(s, VARIABLE(weights));
        x = update_categorical(s, w, i, u[j], n_states, width, draw, plain, last, x);
        if (w->fault) return;
        last = i | unknown;
    }
#undef VARIABLE
}

/* Variables of one number of states above two, joined in pairs or not at all. There are instances for up to 4, 8, 12 and 16
 * states, and one for nine states (BIO tags of four labels) in a plain scan. */
#define LOOP_OF(N_STATES, WIDTH, DRAW, PLAIN) categorical_loop(s_, w, order, first, n, u, N_STATES, WIDTH, DRAW, PLAIN)
#ifdef HERDNER_ONE_INSTANCE
#define INSTANCES(DRAW) LOOP_OF(n_states, width, DRAW, 0)
#else
#define INSTANCES(DRAW)                                                                                                \
    if (n_states == 9 && plain) LOOP_OF(9, 12, DRAW, 1);                                                               \
    else if (width == 4) LOOP_OF(n_states, 4, DRAW, 0);                                                                \
    else if (width == 8) LOOP_OF(n_states, 8, DRAW, 0);                                                                \
    else if (width == 12) LOOP_OF(n_states, 12, DRAW, 0);                                                              \
    else if (width == 16) LOOP_OF(n_states, 16, DRAW, 0);                                                              \
    else if (width > VECTOR_STATES) LOOP_OF(n_states, width, DRAW, 0)
#endif
#define STEP_CATEGORICAL(NAME, DRAW)                                                                                   \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        const int n_states = s->m.c.sizes[0], width = s->m.c.widths[0];                                                \
        const int plain = !order && s->x == s->y && !s->m.log_domain && !s->w.multipliers && !s->conditional_sums;     \
        (void)plain;                                                                                                   \
        OWN_COPY(s);                                                                                                   \
        INSTANCES(DRAW);                                                                                               \
    }
STEP_CATEGORICAL(step_categorical_random, DRAW_RANDOM)
STEP_CATEGORICAL(step_categorical_blanket, DRAW_BLANKET)
STEP_CATEGORICAL(step_categorical_bins, DRAW_BINS)

static void step_categorical_general(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n,
                                     const double *u) {
    OWN_COPY(s);
    categorical_loop(s_, w, order, first, n, u, s->m.c.sizes[0], s->m.c.widths[0], DRAW_GENERAL, 0);
}

#endif
