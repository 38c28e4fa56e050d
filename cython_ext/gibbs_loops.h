/* The loops: each updates n variables in turn, order[0] .. order[n - 1], or first .. first + n - 1 where order is NULL,
 * taking one uniform number each. All give the same bits; which one is used is only a matter of speed. */
#ifndef HERDNER_GIBBS_LOOPS_H
#define HERDNER_GIBBS_LOOPS_H

#include "gibbs_draw.h"

typedef void (*stepper)(const sampler *, worker *, const int32_t *order, int64_t first, int64_t n, const double *u);

enum { IMPOSSIBLE = -4 };

static ALWAYS_INLINE void set_label(const sampler *s, worker *w, int64_t i, int x) {
    const label old = s->x[i];
    if (s->follow && x != old) w->gain[i % 4] += gain(&s->m, i, s->x, x);
    if (s->place && s->x == s->y) *s->state_sum += s->place[i] * ((uint64_t)x - old);
    s->y[i] = (label)x;
}

enum { LISTS, LISTS_OF_FOURS, GRID }; /* how a variable's neighbours are found */

static ALWAYS_INLINE void update_two(const sampler *s, worker *w, int64_t i, double u, const int draw, const int form) {
    const double odds = form == GRID ? grid_odds(&s->m, i, s->x)
                        : form == LISTS_OF_FOURS ? padded_odds(&s->m, i, s->x, NULL)
                                                 : odds_of(&s->m, i, s->x);
    if (s->conditional_sums) {
        s->conditional_sums[unary_row(&s->m, i)] += 1.0 / (1.0 + odds);
        s->conditional_counts[i]++;
    }
    set_label(s, w, i, draw_two(s, w, i, odds, u, draw));
}

/* Returns the new label. */
static ALWAYS_INLINE int update_labels(const sampler *s, worker *w, int64_t i, double u, int n_labels, int width,
                                       const int draw, int64_t last, int last_label) {
    double own[2][REGISTERS];
    const int small = width <= REGISTERS && draw != DRAW_ANY;
    double *weights = small ? own[0] : w->w, *scratch = small ? own[1] : w->p;
    weights_of(&s->m, i, s->x, weights, width, last, last_label);
    const double total = total_of(weights, width);
    if (!(total > 0.0)) {
        w->fault = IMPOSSIBLE;
        w->faulty = i;
        return 0;
    }
    if (s->conditional_sums) {
        double *to = s->conditional_sums + unary_row(&s->m, i);
        for (int k = 0; k < n_labels; k++) to[k] += weights[k] / total;
        s->conditional_counts[i]++;
    }
    const int x = draw == DRAW_ANY ? draw_labels_any(s, w, i, total, n_labels, width, u)
                                   : draw_labels(s, w, i, weights, total, scratch, n_labels, width, u, draw);
    set_label(s, w, i, x);
    return x;
}

/* A loop works on a copy of the sampler, which stores to labels and weights cannot change: its fields stay in registers. */
#define OWN_COPY(s) const sampler own = *(s), *restrict const s_ = &own

#define EACH_VARIABLE for (int64_t j = 0, i; j < n && (i = order ? order[j] : first + j, 1); j++)

/* Anything. */
static void step_any(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {
    EACH_VARIABLE {
        if (s->m.sizes[i] == 2) update_two(s, w, i, u[j], DRAW_ANY, LISTS);
        else update_labels(s, w, i, u[j], s->m.sizes[i], s->m.widths[i], DRAW_ANY, -1, 0);
        if (w->fault) return;
    }
}

/* Variables of two labels, joined in pairs or not at all. Those of a batch that are no neighbours of each other are worked
 * on together: all odds first, then all draws, so that the processor need not wait for one before it begins the next. */
enum { BATCH = 16 };

static ALWAYS_INLINE void update_batch(const sampler *s, worker *w, int64_t i, const double *restrict u, const int draw) {
    double odds[BATCH], logs[BATCH], gains[4];
    int64_t p[BATCH];
    memcpy(gains, w->gain, sizeof(gains));
    if (s->follow)
        for (int j = 0; j < BATCH; j++) odds[j] = padded_odds(&s->m, i + j, s->x, logs + j);
    else
        for (int j = 0; j < BATCH; j++) odds[j] = padded_odds(&s->m, i + j, s->x, NULL);
    for (int j = 0; draw != DRAW_RANDOM && j < BATCH; j++) p[j] = fixed_p(odds[j]);
    for (int j = 0; j < BATCH; j++) {
        int x;
        if (draw == DRAW_RANDOM) {
            x = draws_one(odds[j], u[j]);
        } else {
            const uint64_t key = draw == DRAW_BLANKET ? blanket_key(s, i + j, s->x)
                                 : draw == DRAW_SUM   ? sum_key(s, i + j, s->x)
                                                      : bin_of(p[j], s->bins);
            x = herd_fraction(s->fractions + first_key(s, i + j) + key, p[j]);
        }
        if (s->follow) { /* whether a label turns is unpredictable: no branch */
            const double turned = x ? -logs[j] : logs[j];
            gains[j % 4] += x == s->x[i + j] ? 0.0 : turned;
        }
        s->y[i + j] = (label)x;
    }
    memcpy(w->gain, gains, sizeof(gains));
}

#define STEP_TWO(NAME, DRAW)                                                                                           \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        OWN_COPY(s);                                                                                                   \
        const int batches = DRAW != DRAW_ANY && !order && s->independent && !s->conditional_sums && s->x == s->y;      \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const int64_t i = order ? order[j] : first + j;                                                            \
            if (batches && i % BATCH == 0 && j + BATCH <= n && s_->independent[i / BATCH]) {                           \
                update_batch(s_, w, i, u + j, DRAW);                                                                   \
                j += BATCH - 1;                                                                                        \
                continue;                                                                                              \
            }                                                                                                          \
            update_two(s_, w, i, u[j], DRAW, LISTS_OF_FOURS);                                                          \
            if (DRAW == DRAW_ANY && w->fault) return;                                                                  \
        }                                                                                                              \
    }
STEP_TWO(step_two_random, DRAW_RANDOM)
STEP_TWO(step_two_blanket, DRAW_BLANKET)
STEP_TWO(step_two_sum, DRAW_SUM)
STEP_TWO(step_two_bins, DRAW_BINS)
STEP_TWO(step_two_any, DRAW_ANY)

/* Variables of one number of labels above two, joined in pairs or not at all: rows of 4 to 16 doubles. */
#define STEP_LABELS(NAME, DRAW)                                                                                        \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        const int n_labels = s->m.sizes[0], width = s->m.widths[0];                                                    \
        OWN_COPY(s);                                                                                                   \
        const int64_t unknown = s->x == s->y ? 0 : -1; /* Jacobi: others keep their old labels */                      \
        int64_t last = -1;                                                                                             \
        int x = 0;                                                                                                     \
        EACH_VARIABLE {                                                                                                \
            switch (width) {                                                                                           \
                case 4: x = update_labels(s_, w, i, u[j], n_labels, 4, DRAW, last, x); break;                          \
                case 8: x = update_labels(s_, w, i, u[j], n_labels, 8, DRAW, last, x); break;                          \
                case 12: x = update_labels(s_, w, i, u[j], n_labels, 12, DRAW, last, x); break;                        \
                default: x = update_labels(s_, w, i, u[j], n_labels, width, DRAW, last, x);                            \
            }                                                                                                          \
            if (w->fault) return;                                                                                      \
            last = i | unknown;                                                                                        \
        }                                                                                                              \
    }
STEP_LABELS(step_labels_random, DRAW_RANDOM)
STEP_LABELS(step_labels_blanket, DRAW_BLANKET)
STEP_LABELS(step_labels_sum, DRAW_SUM)
STEP_LABELS(step_labels_bins, DRAW_BINS)
STEP_LABELS(step_labels_any, DRAW_ANY)

#include "gibbs_grid.h"

enum { LOOP_ANY, LOOP_TWO, LOOP_LABELS, LOOP_GRID };

static inline stepper choose_stepper(int loop, int draw) {
    static const stepper two[] = {step_two_random, step_two_blanket, step_two_sum, step_two_bins, step_two_any};
    static const stepper labels[] = {step_labels_random, step_labels_blanket, step_labels_sum, step_labels_bins,
                                     step_labels_any};
    static const stepper grid[] = {step_grid_random, step_grid_blanket, step_grid_sum, step_grid_bins, step_grid_any};
    if (loop == LOOP_GRID) return grid[draw];
    return loop == LOOP_TWO ? two[draw] : loop == LOOP_LABELS ? labels[draw] : step_any;
}

#endif
