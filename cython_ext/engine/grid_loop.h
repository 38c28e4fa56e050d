/* Grids of binary variables in raster order, many variables at a time.
 *
 * Of the neighbours of a variable inside the grid, only the left one is updated just before it. So the loop computes
 * everything for both states of the left neighbour, for a stretch of a row at a time and in vector code, and then selects
 * from left to right:
 *
 *     stretch j:              0      1      2     ...        of up to MAX_STRETCH variables
 *     odds without left       o0     o1     o2               stretch_odds: known before the stretch begins
 *     state if left is 0      a0     a1     a2               64 states in one word
 *     state if left is 1      b0     b1     b2
 *     state                   left ? b0 : a0  ->  ? b1 : a1  ->  ...     resolve: 64 selections at once
 *
 * Every number equals that of the general loop, and so does the result. Variables at the border of the grid go through
 * update_binary one by one. */
#ifndef HERDNER_GRID_LOOP_H
#define HERDNER_GRID_LOOP_H

#include "binary_loop.h"

enum { MAX_STRETCH = MAX_FLIPS };

/* The weights of a variable, a cache line, are prefetched so many variables earlier. */
enum { AHEAD = 128 };

typedef struct {
    double odds[MAX_STRETCH + 4]; /* without the left neighbour; vector loops may read up to 3 more */
    int64_t p[2][MAX_STRETCH + 4]; /* by the state of the left neighbour */
    uint32_t slot[2][MAX_STRETCH];
} stretch;

/* For variables i + j: odds[j], multiplied in the order unary, right, down, up; if `herds`, also p[l][j], the fixed-point
 * probability where the left neighbour is in state l. */
static ALWAYS_INLINE void stretch_odds(const model *m, const state_t *restrict x, int64_t i, int n, stretch *restrict t,
                                       const int herds, const int keeps_odds) {
    const double up0 = m->ratio[UP][0], up1 = m->ratio[UP][1], down0 = m->ratio[DOWN][0], down1 = m->ratio[DOWN][1];
    const double left0 = m->ratio[LEFT][0], left1 = m->ratio[LEFT][1], right0 = m->ratio[RIGHT][0];
    const double right1 = m->ratio[RIGHT][1], *restrict unary = m->unary + i;
    const state_t *restrict up = x + i - m->grid->columns, *restrict down = x + i + m->grid->columns;
    const state_t *restrict right = x + i + 1;
    for (int j = 0; j < n; j++) {
        const double odds = unary[j] * (right[j] ? right1 : right0) * (down[j] ? down1 : down0) * (up[j] ? up1 : up0);
        if (keeps_odds) t->odds[j] = odds;
        if (herds) {
            t->p[0][j] = fixed_probability(odds * left0);
            t->p[1][j] = fixed_probability(odds * left1);
        }
    }
}

/* Select 64 states at once: bit j of the result x is bit j of `if0` where x_(j-1) = 0 and of `if1` where x_(j-1) = 1;
 * `before` is x_(-1).
 *
 * Where if0 and if1 differ, x_j is x_(j-1), inverted if if0_j is 1. So x_j is the parity of if0 up to j, corrected by the
 * parity at the last position where if0 and if1 agree. That correction moves on through the positions where they differ,
 * as a carry moves through an addition; hence one addition computes it for all j. */
static ALWAYS_INLINE uint64_t resolve(uint64_t if0, uint64_t if1, uint64_t before) {
    const uint64_t differ = if0 ^ if1;
    uint64_t parity = if0;
    for (int k = 1; k < 64; k *= 2) parity ^= parity << k;
    const uint64_t fixed = ~differ & (parity << 1), a = fixed | differ;
    const uint64_t carries = (a + fixed + before) ^ a ^ fixed;
    return parity ^ (fixed | (differ & carries));
}

typedef uint16_t sixteen __attribute__((vector_size(32)));
typedef uint16_t unaligned_sixteen __attribute__((vector_size(32), aligned(2), may_alias));

/* Store n states, given as bits of `words`. */
static ALWAYS_INLINE void store_states(state_t *restrict y, const uint64_t *words, int n) {
    const sixteen bit = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}, none = {0};
    int j = 0;
    for (; j + 16 <= n; j += 16)
        *(unaligned_sixteen *)(y + j) = (sixteen)((((uint16_t)(words[j / 64] >> (j % 64)) + none) & bit) == bit) & 1;
    for (; j < n; j++) y[j] = words[j / 64] >> (j % 64) & 1;
}

/* Store n states from the bits for both states of the left neighbour. Bits beyond n are ignored. */
static ALWAYS_INLINE void store_resolved(state_t *y, const uint64_t *if0, const uint64_t *if1, int n) {
    uint64_t x[MAX_STRETCH / 64], before = y[-1];
    for (int k = 0; k * 64 < n; k++) {
        x[k] = resolve(if0[k], if1[k], before);
        before = x[k] >> 63;
    }
    store_states(y, x, n);
}

/* Bits of `draws_one` for n variables (rounded up to a multiple of 4) with odds * left[l], for both states l. */
static ALWAYS_INLINE void drawn_bits(const double *odds, const double *left, const double *u, int n,
                                     uint64_t bits[2][MAX_STRETCH / 64]) {
    for (int k = 0; k < n; k += 64) {
        uint64_t word0 = 0, word1 = 0;
        for (int j = 0; j < 64 && k + j < n; j += 4) {
            double4 o, v;
            LOAD4(o, odds + k + j);
            LOAD4(v, u + k + j);
            word0 |= mask_bits(v * (1.0 + o * left[0]) < 1.0) << j;
            word1 |= mask_bits(v * (1.0 + o * left[1]) < 1.0) << j;
        }
        bits[0][k / 64] = word0;
        bits[1][k / 64] = word1;
    }
}

static ALWAYS_INLINE void stretch_random(const sampler *s, stretch *t, int64_t i, int n, const double *restrict u) {
    uint64_t bits[2][MAX_STRETCH / 64];
    double padded[MAX_STRETCH + 4];
    if (n % 4) u = memcpy(padded, u, n * sizeof(double)); /* so that vectors do not read past the end */
    drawn_bits(t->odds, s->m.ratio[LEFT], u, n, bits);
    store_resolved(s->y + i, bits[0], bits[1], n);
}

/* Herding with one weight per variable: the carries of both sums, then the states, then the weights they select. */
static ALWAYS_INLINE void stretch_one_bin(const sampler *s, stretch *t, int64_t i, int n) {
    uint64_t bits[2][MAX_STRETCH / 64];
    uint32_t *restrict weights = s->fractions + i;
    for (int l = 0; l < 2; l++) {
        for (int j = 0; j < n; j++) t->p[l][j] += weights[j];
        for (int k = 0; k < n; k += 64) {
            uint64_t word = 0;
            for (int j = 0; j < 64 && k + j < n; j += 4) {
                const mask4 sums = *(const unaligned_mask4 *)(t->p[l] + k + j);
                word |= mask_bits((sums >> 32) != 0) << j;
            }
            bits[l][k / 64] = word;
        }
    }
    store_resolved(s->y + i, bits[0], bits[1], n);
    const state_t *restrict left = s->y + i - 1;
    for (int j = 0; j < n; j++) weights[j] = (uint32_t)(left[j] ? t->p[1][j] : t->p[0][j]);
}

/* The positions of the weights of a stretch, relative to those of its first variable, by the state of the left neighbour. */
static ALWAYS_INLINE void stretch_slots(const sampler *s, stretch *t, int64_t i, int n, const int draw) {
    const state_t *restrict up = s->x + i - s->m.grid->columns, *restrict down = s->x + i + s->m.grid->columns;
    const state_t *restrict right = s->x + i + 1;
    uint32_t *restrict slot0 = t->slot[0], *restrict slot1 = t->slot[1];
    const uint32_t n_keys = (uint32_t)s->w.n_keys;
    for (int j = 0; j < n; j++) {
        const uint32_t first = (uint32_t)j * n_keys;
        if (draw == DRAW_BLANKET) { /* members in ascending order: up, left, right, down */
            slot0[j] = first + ((uint32_t)up[j] << 3 | (uint32_t)right[j] << 1 | down[j]);
        } else if (draw == DRAW_SUM) {
            slot0[j] = first + up[j] + right[j] + down[j];
        } else {
            slot0[j] = first + (uint32_t)bin_of(t->p[0][j], s->w.n_bins);
            slot1[j] = first + (uint32_t)bin_of(t->p[1][j], s->w.n_bins);
        }
    }
}

static ALWAYS_INLINE void stretch_herd(const sampler *s, stretch *t, int64_t i, int n, const int draw) {
    if (draw == DRAW_BINS && s->w.n_bins == 1) {
        stretch_one_bin(s, t, i, n);
        return;
    }
    stretch_slots(s, t, i, n, draw);
    const uint32_t distance = draw == DRAW_BLANKET ? 4 : 1; /* from slot[0] to slot[1] */
    uint32_t *restrict weights = s->fractions + i * s->w.n_keys;
    state_t *restrict y = s->y + i;
    uint64_t left = y[-1];
    for (int j = 0; j < n; j++) {
        if (draw == DRAW_BLANKET) __builtin_prefetch(weights + (j + AHEAD) * 16, 1);
        const uint32_t slot0 = t->slot[0][j], slot1 = draw == DRAW_BINS ? t->slot[1][j] : slot0 + distance;
        const uint64_t sum0 = weights[slot0] + (uint64_t)t->p[0][j], sum1 = weights[slot1] + (uint64_t)t->p[1][j];
        const uint64_t sum = sum0 ^ ((sum0 ^ sum1) & -left); /* no branch, as it would be unpredictable */
        weights[slot0 ^ ((slot0 ^ slot1) & -(uint32_t)left)] = (uint32_t)sum;
        left = sum >> 32;
        y[j] = (state_t)left;
    }
}

/* Record the conditionals and the flips of a stretch whose states were `old`. */
static ALWAYS_INLINE void stretch_record(const sampler *s, worker *w, stretch *t, const state_t *restrict old, int64_t i, int n) {
    const state_t *restrict x = s->x + i, *restrict left = x - 1;
    if (s->conditional_sums)
        for (int j = 0; j < n; j++) {
            s->conditional_sums[i + j] += 1.0 / (1.0 + t->odds[j] * s->m.ratio[LEFT][left[j]]);
            s->conditional_counts[i + j]++;
        }
    if (s->tracks) add_flips(w->flips, i, n, s->max_factors, t->odds, s->m.ratio[LEFT], left, old, x);
}

static ALWAYS_INLINE void step_stretch(const sampler *s, worker *w, int64_t i, int n, const double *u, const int draw) {
    stretch t;
    state_t old[MAX_STRETCH];
    const int recorded = s->tracks || s->conditional_sums;
    if (recorded) memcpy(old, s->x + i, n * sizeof(state_t));
    if (draw == DRAW_RANDOM) stretch_odds(&s->m, s->x, i, n, &t, 0, 1);
    else if (recorded) stretch_odds(&s->m, s->x, i, n, &t, 1, 1);
    else stretch_odds(&s->m, s->x, i, n, &t, 1, 0);
    if (draw == DRAW_RANDOM) stretch_random(s, &t, i, n, u);
    else stretch_herd(s, &t, i, n, draw);
    if (recorded) stretch_record(s, w, &t, old, i, n);
}

#define STEP_GRID(NAME, DRAW)                                                                                          \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        const int64_t columns = s->m.grid->columns, last_row = (s->m.grid->rows - 1) * columns;                        \
        const int plain = DRAW != DRAW_GENERAL && !order && s->x == s->y && !s->w.weight_starts;                       \
        for (int64_t j = 0; j < n;) {                                                                                  \
            const int64_t i = order ? order[j] : first + j, to_end = columns - 1 - i % columns;                        \
            if (plain && i > columns && i < last_row && to_end > 0 && to_end < columns - 1) {                          \
                const int64_t most = to_end < n - j ? to_end : n - j;                                                  \
                const int length = most < MAX_STRETCH ? (int)most : MAX_STRETCH;                                       \
                step_stretch(s, w, i, length, u + j, DRAW);                                                            \
                j += length;                                                                                           \
            } else {                                                                                                   \
                update_binary(s, w, i, u[j], DRAW, GRID);                                                              \
                if (DRAW == DRAW_GENERAL && w->fault) return;                                                          \
                j++;                                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }
STEP_GRID(step_grid_random, DRAW_RANDOM)
STEP_GRID(step_grid_blanket, DRAW_BLANKET)
STEP_GRID(step_grid_sum, DRAW_SUM)
STEP_GRID(step_grid_bins, DRAW_BINS)
STEP_GRID(step_grid_general, DRAW_GENERAL)

#endif
