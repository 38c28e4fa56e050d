/* Grids of two labels in raster order, several variables at a time. Included by gibbs_loops.h.
 *
 * Of the neighbours of a variable inside the grid only the left one is not known beforehand. So the odds are computed for
 * both its labels, for a stretch of a row at a time, in loops that compilers turn into vector code; then one pass from left
 * to right selects. Every number is the same as in the general loop, and so is the result. */

enum { STRETCH = 256 };

typedef struct {
    double odds[2][STRETCH + 4]; /* by the label of the left neighbour; loops may read up to 3 more */
    int64_t p[2][STRETCH + 4];
    uint32_t key[2][STRETCH];
} stretch;

/* odds[l][j] of variables i + j where the left neighbour has label l; products in the order unary, right, down, up, left. */
static ALWAYS_INLINE void stretch_odds(const model *m, const label *restrict x, int64_t i, int n, double *restrict odds0,
                                       double *restrict odds1) {
    const grid_model *g = m->grid;
    const double up0 = g->ratio[UP][0], up1 = g->ratio[UP][1], down0 = g->ratio[DOWN][0], down1 = g->ratio[DOWN][1];
    const double left0 = g->ratio[LEFT][0], left1 = g->ratio[LEFT][1], right0 = g->ratio[RIGHT][0];
    const double right1 = g->ratio[RIGHT][1], *restrict unary = m->unary + i;
    const label *restrict up = x + i - g->columns, *restrict down = x + i + g->columns, *restrict right = x + i + 1;
    for (int j = 0; j < n; j++) {
        const double known = unary[j] * (right[j] ? right1 : right0) * (down[j] ? down1 : down0) * (up[j] ? up1 : up0);
        odds0[j] = known * left0;
        odds1[j] = known * left1;
    }
}

/* x_j = given0_j where x_(j-1) is 0, given1_j where it is 1, for 64 labels at once: x is x_(j-1), flipped where given0_j,
 * as long as the two differ. So x is the parity of given0 up to j, P, but for what P was before the last j at which they
 * agreed; and that bit is held along the bits in which they differ as a sum holds its carry. `before` is x_(-1). */
static ALWAYS_INLINE uint64_t resolve(uint64_t given0, uint64_t given1, uint64_t before) {
    const uint64_t differ = given0 ^ given1;
    uint64_t parity = given0;
    for (int k = 1; k < 64; k *= 2) parity ^= parity << k;
    const uint64_t held = ~differ & (parity << 1), a = held | differ;
    const uint64_t carries = (a + held + before) ^ a ^ held;
    return parity ^ (held | (differ & carries));
}

typedef uint16_t sixteen __attribute__((vector_size(32)));
typedef uint16_t unaligned_sixteen __attribute__((vector_size(32), aligned(2), may_alias));

/* Stores n labels, bit j of each word[j / 64]. */
static ALWAYS_INLINE void store_labels(label *restrict y, const uint64_t *words, int n) {
    const sixteen bit = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}, none = {0};
    int j = 0;
    for (; j + 16 <= n; j += 16)
        *(unaligned_sixteen *)(y + j) = (sixteen)((((uint16_t)(words[j / 64] >> (j % 64)) + none) & bit) == bit) & 1;
    for (; j < n; j++) y[j] = words[j / 64] >> (j % 64) & 1;
}

/* Labels from the two that either label of the left neighbour would give: bits of given0, given1; the padding is ignored. */
static ALWAYS_INLINE void store_resolved(label *y, const uint64_t *given0, const uint64_t *given1, int n) {
    uint64_t x[STRETCH / 64], before = y[-1];
    for (int k = 0; k * 64 < n; k++) {
        x[k] = resolve(given0[k], given1[k], before);
        before = x[k] >> 63;
    }
    store_labels(y, x, n);
}

/* Bits of `draws_one` for n variables, n rounded up to a multiple of 4. */
static ALWAYS_INLINE void drawn_bits(const double *odds, const double *u, int n, uint64_t *bits) {
    for (int k = 0; k < n; k += 64) {
        uint64_t word = 0;
        for (int j = 0; j < 64 && k + j < n; j += 4) {
            quad o, v;
            LOAD_QUAD(o, odds + k + j);
            LOAD_QUAD(v, u + k + j);
            word |= mask_bits(v * (1.0 + o) < 1.0) << j;
        }
        bits[k / 64] = word;
    }
}

static ALWAYS_INLINE void stretch_random(const sampler *s, stretch *t, int64_t i, int n, const double *restrict u) {
    uint64_t given[2][STRETCH / 64];
    double own[STRETCH + 4];
    if (n % 4) u = memcpy(own, u, n * sizeof(double)); /* not to read past the end */
    drawn_bits(t->odds[0], u, n, given[0]);
    drawn_bits(t->odds[1], u, n, given[1]);
    store_resolved(s->y + i, given[0], given[1], n);
}

/* Herding with one weight for each variable: the carries of both sums, then the labels, then the sums that were meant. */
static ALWAYS_INLINE void stretch_one_bin(const sampler *s, stretch *t, int64_t i, int n) {
    uint64_t given[2][STRETCH / 64];
    uint32_t *restrict weights = s->fractions + i;
    for (int l = 0; l < 2; l++) {
        for (int j = 0; j < n; j++) t->p[l][j] += weights[j];
        for (int k = 0; k < n; k += 64) {
            uint64_t word = 0;
            for (int j = 0; j < 64 && k + j < n; j += 4) {
                const quad_mask sums = *(const unaligned_mask *)(t->p[l] + k + j);
                word |= mask_bits(sums << 31) << j;
            }
            given[l][k / 64] = word;
        }
    }
    store_resolved(s->y + i, given[0], given[1], n);
    const label *restrict left = s->y + i - 1;
    for (int j = 0; j < n; j++) weights[j] = (uint32_t)(left[j] ? t->p[1][j] : t->p[0][j]);
}

static ALWAYS_INLINE void stretch_keys(const sampler *s, stretch *t, int64_t i, int n, const int draw) {
    const label *restrict up = s->x + i - s->m.grid->columns, *restrict down = s->x + i + s->m.grid->columns;
    const label *restrict right = s->x + i + 1;
    uint32_t *restrict key0 = t->key[0], *restrict key1 = t->key[1];
    for (int j = 0; j < n; j++) {
        if (draw == DRAW_BLANKET) { /* in rising order: up, left, right, down */
            key0[j] = (uint32_t)up[j] << 3 | (uint32_t)right[j] << 1 | down[j];
            key1[j] = key0[j] | 4;
        } else if (draw == DRAW_SUM) {
            key0[j] = (uint32_t)up[j] + right[j] + down[j];
            key1[j] = key0[j] + 1;
        } else {
            key0[j] = (uint32_t)bin_of(t->p[0][j], s->bins);
            key1[j] = (uint32_t)bin_of(t->p[1][j], s->bins);
        }
    }
}

static ALWAYS_INLINE void stretch_herd(const sampler *s, stretch *t, int64_t i, int n, const int draw) {
    for (int l = 0; l < 2; l++)
        for (int j = 0; j < n; j++) t->p[l][j] = fixed_p(t->odds[l][j]);
    if (draw == DRAW_BINS && s->bins == 1) {
        stretch_one_bin(s, t, i, n);
        return;
    }
    stretch_keys(s, t, i, n, draw);
    uint64_t left = s->y[i - 1];
    uint32_t *weights = s->fractions + i * s->n_keys;
    for (int j = 0; j < n; j++, weights += s->n_keys) {
        uint32_t *slot0 = weights + t->key[0][j], *slot1 = weights + t->key[1][j];
        const uint64_t sum0 = (uint64_t)*slot0 + (uint64_t)t->p[0][j], sum1 = (uint64_t)*slot1 + (uint64_t)t->p[1][j];
        const uint64_t sum = sum0 ^ ((sum0 ^ sum1) & -left);
        uint32_t *slot = (uint32_t *)((uintptr_t)slot0 ^ (((uintptr_t)slot0 ^ (uintptr_t)slot1) & -(uintptr_t)left));
        *slot = (uint32_t)sum;
        left = sum >> 32;
        s->y[i + j] = (label)left;
    }
}

/* What is kept of a stretch whose labels were `old`: the conditionals, and what the log-potential gained. */
static ALWAYS_INLINE void stretch_record(const sampler *s, worker *w, const stretch *t, const label *old, int64_t i, int n) {
    const label *x = s->x + i;
    if (s->conditional_sums)
        for (int j = 0; j < n; j++) {
            s->conditional_sums[i + j] += 1.0 / (1.0 + t->odds[x[j - 1]][j]);
            s->conditional_counts[i + j]++;
        }
    const grid_model *g = s->m.grid;
    for (int j = 0; s->follow && j < n; j++) {
        const double right = g->log_ratio[RIGHT][j + 1 < n ? old[j + 1] : x[j + 1]];
        const double l = s->m.unary_log[i + j] + g->log_ratio[LEFT][x[j - 1]] + g->log_ratio[UP][x[j - g->columns]] +
                         g->log_ratio[DOWN][x[j + g->columns]] + right;
        w->gain += x[j] == old[j] ? 0.0 : x[j] ? -l : l;
    }
}

static ALWAYS_INLINE void step_stretch(const sampler *s, worker *w, int64_t i, int n, const double *u, const int draw) {
    stretch t;
    label old[STRETCH];
    const int recorded = s->follow || s->conditional_sums;
    if (recorded) memcpy(old, s->x + i, n * sizeof(label));
    stretch_odds(&s->m, s->x, i, n, t.odds[0], t.odds[1]);
    if (draw == DRAW_RANDOM) stretch_random(s, &t, i, n, u);
    else stretch_herd(s, &t, i, n, draw);
    if (recorded) stretch_record(s, w, &t, old, i, n);
}

#define STEP_GRID(NAME, DRAW)                                                                                          \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        const int64_t columns = s->m.grid->columns, last_row = (s->m.grid->rows - 1) * columns;                        \
        const int plain = DRAW != DRAW_ANY && !order && s->x == s->y && !s->weights_at;                                \
        for (int64_t j = 0; j < n;) {                                                                                  \
            const int64_t i = order ? order[j] : first + j, to_end = columns - 1 - i % columns;                        \
            if (plain && i > columns && i < last_row && to_end > 0 && to_end < columns - 1) {                          \
                const int64_t most = to_end < n - j ? to_end : n - j;                                                  \
                const int length = most < STRETCH ? (int)most : STRETCH;                                               \
                step_stretch(s, w, i, length, u + j, DRAW);                                                            \
                j += length;                                                                                           \
            } else {                                                                                                   \
                update_two(s, w, i, u[j], DRAW, GRID);                                                                    \
                if (DRAW == DRAW_ANY && w->fault) return;                                                              \
                j++;                                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }
STEP_GRID(step_grid_random, DRAW_RANDOM)
STEP_GRID(step_grid_blanket, DRAW_BLANKET)
STEP_GRID(step_grid_sum, DRAW_SUM)
STEP_GRID(step_grid_bins, DRAW_BINS)
STEP_GRID(step_grid_any, DRAW_ANY)
