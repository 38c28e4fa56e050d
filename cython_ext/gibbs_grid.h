/* Grids of two labels in raster order, several variables at a time. Included by gibbs_loops.h.
 *
 * Of the neighbours of a variable inside the grid only the left one is not known beforehand. So the odds are computed for
 * both its labels, for a stretch of a row at a time, in loops that compilers turn into vector code; then one pass from left
 * to right selects. Every number is the same as in the general loop, and so is the result. */

enum { STRETCH = 256 };

typedef struct {
    double odds[2][STRETCH]; /* by the label of the left neighbour */
    int64_t p[2][STRETCH];
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

/* The labels from those that either label of the left neighbour would give, without branches, as they are unpredictable. */
static ALWAYS_INLINE void stretch_random(const sampler *s, stretch *t, int64_t i, int n, const double *restrict u) {
    int64_t *restrict given0 = t->p[0], *restrict given1 = t->p[1];
    for (int j = 0; j < n; j++) {
        given0[j] = t->odds[0][j] < u[j];
        given1[j] = t->odds[1][j] < u[j];
    }
    int64_t left = s->y[i - 1];
    for (int j = 0; j < n; j++) {
        left = given0[j] ^ ((given0[j] ^ given1[j]) & -left);
        s->y[i + j] = (label)left;
    }
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
    const int one = draw == DRAW_BINS && s->bins == 1;
    if (!one) stretch_keys(s, t, i, n, draw);
    uint64_t left = s->y[i - 1];
    uint32_t *weights = s->fractions + i * s->n_keys;
    for (int j = 0; j < n; j++, weights += s->n_keys) {
        uint32_t *slot0 = weights + (one ? 0 : t->key[0][j]), *slot1 = weights + (one ? 0 : t->key[1][j]);
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
