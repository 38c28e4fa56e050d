/* Blocked Gibbs sampling. A block is a run of consecutive variables, each joined to the one before. Its states are drawn
 * together, given all other variables, by forward filtering and backward sampling (Scott 2002). Within a block a variable
 * has no neighbours except the previous and the next one; neighbours outside the block are allowed.
 *
 *     extend_filter, i = begin .. end:    row i = (row i - 1 * edge table) * outside_row(i)
 *     sample_backward, i = end .. begin:  state i ~ row i * edge table column of state i + 1
 *
 * The filter uses exponentials where nothing can underflow, so that a zero always means "impossible": entries of edge tables
 * and of outside rows are zero or within 1e-100 of their largest, and so is every row of the filter. Other blocks are
 * filtered in the log domain.
 *
 * Step p of a sweep adds variable order[p] to the filter of the block first[p] .. last[p], from left to right. Blocks may
 * overlap and come in any order.
 *
 * Herded: a variable has a row of weights for each state of its right neighbour and each joint state of the variables
 * outside the block that the filter has used so far. These determine its probabilities, as HG16 requires of a key. */
#ifndef HERDNER_BLOCKS_H
#define HERDNER_BLOCKS_H

#include "categorical_loop.h"

#define FILTER_SMALLEST 1e-100
#define FILTER_RANGE 230.0

typedef struct {
    BLOCKS_FIELDS(DECLARE)
    double *exp_tables;     /* exp(beta * tables) */
    double *filter;         /* [longest block, stride] */
    double *row;            /* [3 * (stride rounded up to a multiple of 4)], scratch */
    uint64_t *outside_hash; /* [longest block], for herding: a hash of the outside states that the filter has used so far */
    double beta;
    int64_t begin, end; /* the first and the last variable of the current block */
    int log_domain;     /* whether the current block is filtered in the log domain */
} blocks;

static inline void scale_blocks(blocks *b, double beta) {
    if (beta == b->beta) return;
    b->beta = beta;
    exp_scaled(b->tables, b->exp_tables, b->n_tables, beta);
}

static ALWAYS_INLINE double scaled_log(double log_value, double beta) {
    return log_value == -INFINITY ? log_value : beta * log_value;
}

static ALWAYS_INLINE int is_outside(const blocks *b, const model *m, int64_t e) {
    return m->c.others[e] < b->begin || m->c.others[e] > b->end;
}

/* Divide a row by `by`. Returns 0 if a positive entry becomes too small. */
static ALWAYS_INLINE int scale_row(double *restrict row, int n, double by) {
    const double factor = 1.0 / by;
    int small = 0;
    for (int k = 0; k < n; k++) {
        row[k] *= factor;
        small |= (row[k] < FILTER_SMALLEST) & (row[k] > 0.0);
    }
    return !small;
}

/* u[k], k < stride: the product of the unary factors of variable i and its factors with variables outside the block, scaled
 * so that the largest is 1; 0 beyond its states. Returns 0 if the entries span too wide a range. */
static ALWAYS_INLINE int outside_row(const blocks *b, const model *m, int64_t i, const state_t *x, double *restrict u,
                                     const int stride) {
    const int64_t begin = m->c.starts[i], end = m->c.starts[i + 1];
    const int width = m->c.widths[i];
    if (m->log_domain && m->log_domain[i]) return 0;
    memset(u, 0, stride * sizeof(double));
    if (m->c.sizes[i] == 2) {
        double odds = m->unary[m->c.unary_at[i]];
        for (int64_t e = begin; e < end; e++)
            if (is_outside(b, m, e)) odds *= m->rows[row_of(&m->c, e, 1, x)];
        u[0] = odds <= 1.0 ? odds : 1.0;
        u[1] = odds <= 1.0 ? 1.0 : 1.0 / odds;
        return scale_row(u, 2, 1.0);
    }
    memcpy(u, m->unary + m->c.unary_at[i], width * sizeof(double));
    for (int64_t e = begin; e < end; e++) {
        if (!is_outside(b, m, e)) continue;
        const double *restrict row = m->rows + row_of(&m->c, e, width, x);
        for (int k = 0; k < width; k++) u[k] *= row[k];
    }
    double top = 0.0;
    for (int k = 0; k < width; k++) top = u[k] > top ? u[k] : top;
    return scale_row(u, width, top);
}

/* The same row as logarithms, for any range. */
static inline void outside_row_log(const blocks *b, const model *m, int64_t i, const state_t *x, double *u) {
    const int n_states = m->c.sizes[i], width = m->c.widths[i];
    for (int k = 0; k < width; k++) u[k] = m->c.unary[m->c.unary_at[i] + k];
    for (int64_t e = m->c.starts[i]; e < m->c.starts[i + 1]; e++) {
        if (!is_outside(b, m, e)) continue;
        const double *row = m->c.rows + row_of(&m->c, e, width, x);
        for (int k = 0; k < width; k++) u[k] += row[k];
    }
    for (int k = (int)b->stride - 1; k >= 0; k--)
        u[k] = k < n_states ? scaled_log(state_value(u, k, n_states), b->beta) : -INFINITY;
}

/* Row i of the filter, normalised. Returns 0 if its entries span too wide a range. */
static ALWAYS_INLINE int filter_exp(const blocks *b, const model *m, int64_t i, const state_t *x, const int stride) {
    double *restrict to = b->filter + (i - b->begin) * stride;
    if (!outside_row(b, m, i, x, to, stride)) return 0;
    if (i != b->begin) {
        double local[16], *restrict sums = stride <= 16 ? local : b->row; /* registers, where stride is a constant */
        const double *restrict before = to - stride;
        const double *restrict table = b->exp_tables + b->edge_table[i] * b->n_states * stride;
        const int n_before = m->c.sizes[i - 1];
        for (int k = 0; k < stride; k++) sums[k] = before[0] * table[k];
        for (int l = 1; l < n_before; l++)
            for (int k = 0; k < stride; k++) sums[k] += before[l] * table[l * stride + k];
        for (int k = 0; k < stride; k++) to[k] *= sums[k];
    }
    double total[2] = {0.0, 0.0};
    for (int k = 0; k < stride; k += 2)
        for (int lane = 0; lane < 2; lane++) total[lane] += to[k + lane];
    return total[0] + total[1] > 0.0 && scale_row(to, stride, total[0] + total[1]);
}

static inline double log_sum(const double *row, int n) {
    double top = -INFINITY, total = 0.0;
    for (int k = 0; k < n; k++) top = row[k] > top ? row[k] : top;
    if (top == -INFINITY) return top;
    for (int k = 0; k < n; k++) total += fast_exp(row[k] - top);
    return top + log(total);
}

/* Row i of the filter in the log domain. Returns 0 if every joint state of the block so far is forbidden. */
static inline int filter_log(const blocks *b, const model *m, int64_t i, const state_t *x) {
    double *to = b->filter + (i - b->begin) * b->stride;
    outside_row_log(b, m, i, x, to);
    if (i != b->begin) {
        const double *table = b->tables + b->edge_table[i] * b->n_states * b->stride;
        for (int k = 0; k < m->c.sizes[i]; k++) {
            for (int l = 0; l < m->c.sizes[i - 1]; l++)
                b->row[l] = (to - b->stride)[l] + scaled_log(table[l * b->stride + k], b->beta);
            to[k] += log_sum(b->row, m->c.sizes[i - 1]);
        }
    }
    const double total = log_sum(to, m->c.sizes[i]);
    for (int k = 0; k < m->c.sizes[i]; k++) to[k] -= total;
    return total > -INFINITY;
}

/* Add variable i to the filter of its block. Returns 0 if every joint state of the block so far is forbidden. */
static inline int extend_filter(blocks *b, const model *m, int64_t i, const state_t *x) {
    int done = 0;
    if (i == b->begin) b->log_domain = b->range * b->beta > FILTER_RANGE;
    if (b->log_domain) return filter_log(b, m, i, x);
    switch (b->stride) {
        case 4: done = filter_exp(b, m, i, x, 4); break;
        case 12: done = filter_exp(b, m, i, x, 12); break;
        default: done = filter_exp(b, m, i, x, (int)b->stride);
    }
    if (done) return 1;
    b->log_domain = 1;
    for (int64_t j = b->begin; j <= i; j++)
        if (!filter_log(b, m, j, x)) return 0;
    return 1;
}

/* The probabilities of variable i given the filter and, unless `next` is negative, the state `next` of variable i + 1. */
static ALWAYS_INLINE void backward_row(const blocks *b, const model *m, int64_t i, int next, double *restrict w) {
    const int n_states = m->c.sizes[i];
    const double *from = b->filter + (i - b->begin) * b->stride;
    const int64_t at = next < 0 ? 0 : b->edge_table[i + 1] * b->n_states * b->stride + next;
    if (!b->log_domain) {
        for (int k = 0; k < n_states; k++) w[k] = next < 0 ? from[k] : from[k] * b->exp_tables[at + k * b->stride];
        return;
    }
    double top = -INFINITY;
    for (int k = 0; k < n_states; k++) {
        w[k] = next < 0 ? from[k] : from[k] + scaled_log(b->tables[at + k * b->stride], b->beta);
        top = w[k] > top ? w[k] : top;
    }
    for (int k = 0; k < n_states; k++) w[k] = fast_exp(w[k] - top);
}

/* Extend the hash of outside states by the neighbours of variable i, the next variable of its block. */
static ALWAYS_INLINE void hash_outside(const blocks *b, const model *m, int64_t i, const state_t *x) {
    uint64_t outside_hash = i == b->begin ? 0 : b->outside_hash[i - 1 - b->begin];
    for (int64_t e = m->c.starts[i]; e < m->c.starts[i + 1]; e++)
        if (is_outside(b, m, e)) outside_hash = mix64(outside_hash + GOLDEN * (uint64_t)(x[m->c.others[e]] + 1));
    b->outside_hash[i - b->begin] = outside_hash;
}

/* The herded state of variable i; the key consists of the state of i + 1 (`right`, or -1) and the outside states. */
static inline int herd_backward(const blocks *b, const sampler *s, worker *k, int64_t i, int right, const double *w,
                            double4 total, int n_states, int width) {
    double *p = b->row + 2 * width;
    fixed_probabilities(w, SPLAT4(ONE) / total, p, width);
    const uint64_t key = mix64(b->outside_hash[i - b->begin] + GOLDEN * (uint64_t)(right + 2));
    return herd_key(s, k, i, key, 0, p, b->row + width, n_states, width, 1, 0.0, 0);
}

/* Draw the state of variable i, after the later variables of its block. */
static inline void sample_backward(const blocks *b, const sampler *s, worker *k, int64_t i, int is_last, double u) {
    const int n_states = s->m.c.sizes[i], width = (n_states + 3) / 4 * 4, right = is_last ? -1 : s->y[i + 1];
    double *w = b->row, *cumulative = b->row + width;
    backward_row(b, &s->m, i, right, w);
    for (int l = n_states; l < width; l++) w[l] = 0.0;
    const double4 total = cumulate(w, cumulative, width);
    if (s->conditional_sums) {
        double *to = s->conditional_sums + s->m.c.unary_at[i];
        if (n_states == 2) to[0] += w[1] / total[0];
        else
            for (int l = 0; l < n_states; l++) to[l] += w[l] / total[0];
        s->conditional_counts[i]++;
    }
    s->y[i] = (state_t)(s->w.draw == DRAW_RANDOM ? pick(w, cumulative, width, total, u)
                                               : herd_backward(b, s, k, i, right, w, total, n_states, width));
}

/* Do steps from .. to - 1 of the sweep that began with update `start`. A block is drawn at the step of its last variable. */
static void step_blocks(blocks *b, const sampler *s, worker *w, const int32_t *order, int64_t start, int64_t from,
                        int64_t to) {
    const int herds = s->w.draw != DRAW_RANDOM;
    for (int64_t p = from; p < to; p++) {
        const int64_t i = order ? order[p] : p;
        b->begin = b->first[p];
        b->end = b->last[p];
        if (!extend_filter(b, &s->m, i, s->x)) {
            w->fault = IMPOSSIBLE;
            w->fault_variable = i;
            return;
        }
        if (herds) hash_outside(b, &s->m, i, s->x);
        if (i < b->end) continue;
        for (int64_t j = i; j >= b->begin; j--) {
            const int64_t number = start + p - (i - j), index = number / UNIFORM_BLOCK;
            if (!herds && w->uniform_index != index) uniform_block(s->uniform_key, index, w->uniforms);
            w->uniform_index = index;
            sample_backward(b, s, w, j, j == i, w->uniforms[number % UNIFORM_BLOCK]);
            if (w->fault) return;
        }
    }
}

#endif
