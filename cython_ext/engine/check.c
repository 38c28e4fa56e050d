/* Checks of everything by which the loops find elements of arrays. engine_begin refuses a run that fails one of them, so
 * that no loop has to check. Each function returns a description of the first fault, or NULL. */
#include "herding_weights.h"
#include "run.h"

#define REQUIRE(CONDITION, FAULT)                                                                                      \
    do {                                                                                                               \
        if (!(CONDITION)) return FAULT;                                                                                \
    } while (0)
#define FITS(ARRAY, LENGTH) (!(ARRAY) || n_##ARRAY == (LENGTH))

enum { MOST_BINS = 1 << 30, MOST_THREADS = 1 << 12 };
#define MOST_CELLS (INT64_C(1) << 48)

static int rises(const int64_t *starts, int64_t n, int64_t end) {
    if (n < 1 || starts[0] != 0 || starts[n - 1] != end) return 0;
    for (int64_t k = 1; k < n; k++)
        if (starts[k] < starts[k - 1]) return 0;
    return 1;
}

static int within(const int32_t *values, int64_t n, int64_t end) {
    for (int64_t k = 0; k < n; k++)
        if (values[k] < 0 || values[k] >= end) return 0;
    return 1;
}

/* a * b, or MOST_CELLS where that is exceeded. */
static int64_t capped_product(int64_t a, int64_t b) { return a && b > MOST_CELLS / a ? MOST_CELLS : a * b; }

static int64_t states_of(const engine *e, int64_t i) { return e->setup.loop == LOOP_GRID ? 2 : e->s.m.c.sizes[i]; }

/* A group of factors by itself. */
const char *engine_group_fault(const engine *e, int64_t k) {
    const factor_group *g = &e->groups[k];
    int64_t cells = 1;
    REQUIRE(g->arity >= 0 && g->n_sizes == g->arity && g->n_scale == g->n_table_of_factor, "a group of factors");
    for (int64_t a = 0; a < g->arity; a++) {
        REQUIRE(g->sizes[a] > 0, "the sizes of a group");
        cells = capped_product(cells, g->sizes[a]);
    }
    REQUIRE(g->cells == cells && cells < MOST_CELLS && g->n_tables % cells == 0, "the cells of a group");
    REQUIRE(g->n_scopes == g->n_scale * g->arity && within(g->scopes, g->n_scopes, INT32_MAX), "the scopes of a group");
    for (int64_t f = 0; f < g->n_scale; f++) {
        const int64_t table = g->table_of_factor[f * g->table_of_factor_stride];
        REQUIRE(table >= 0 && table < g->n_tables / cells, "the tables of a group");
    }
    REQUIRE(!g->counts || g->n_counts == g->n_tables, "the counts of a group");
    return NULL;
}

/* A joint state x of n variables, of which factors read some. */
const char *engine_state_fault(const engine *e, const state_t *x, int64_t n) {
    for (int k = 0; k < e->n_groups; k++) {
        const factor_group *g = &e->groups[k];
        for (int64_t f = 0; f < g->n_scale; f++)
            for (int64_t a = 0; a < g->arity; a++) {
                const int32_t i = g->scopes[f * g->arity + a];
                REQUIRE(i < n && x[i] < g->sizes[a], "the joint state");
            }
    }
    return NULL;
}

static const char *form_fault(const engine *e) {
    const conditionals *c = &e->s.m.c;
    const int64_t loop = e->setup.loop;
    if (loop == LOOP_GRID) {
        const grid_fields *g = &e->grid;
        REQUIRE(g->rows > 0 && g->columns > 0 && g->rows < INT32_MAX && g->columns < INT32_MAX, "the sides of the grid");
        REQUIRE(g->unary && g->n_unary == g->rows * g->columns && g->n_sides == 8, "the arrays of the grid");
        REQUIRE(g->rows > 2 && g->columns > 2, "the sides of the grid");
        return NULL;
    }
    REQUIRE(c->n > 0, "the number of variables");
    for (int64_t i = 0; i < c->n; i++) {
        REQUIRE(c->sizes[i] <= MAX_STATES, "the number of states");
        REQUIRE(loop == LOOP_GENERAL || c->sizes[i] == c->sizes[0], "the number of states");
        REQUIRE(loop != LOOP_BINARY || e->blocks.first || (c->starts[i + 1] - c->starts[i]) % 4 == 0,
                "the padding of the conditionals");
    }
    REQUIRE(loop == LOOP_GENERAL || !c->others_at, "the arity of the factors");
    REQUIRE(loop != LOOP_BINARY || c->sizes[0] == 2, "the number of states");
    REQUIRE(loop != LOOP_CATEGORICAL || (c->sizes[0] > 2 && c->n_rows % ((int64_t)c->sizes[0] * c->widths[0]) == 0),
            "the tables of the conditionals");
    return NULL;
}

static const char *setup_fault(const engine *e, int64_t n) {
    const setup_fields *s = &e->setup;
    REQUIRE(s->n_steps > 0 && s->n_steps < MOST_CELLS && s->n_threads > 0 && s->n_threads <= MOST_THREADS, "the setup");
    REQUIRE(s->order ? s->n_order == s->n_steps && within(s->order, s->n_order, n) : s->n_steps == n, "the order");
    REQUIRE(!s->colour_starts || rises(s->colour_starts, s->n_colour_starts, s->n_steps), "the colours");
    REQUIRE(!s->log_domain || s->n_log_domain == n, "log_domain");
    REQUIRE(!s->independent || s->n_independent >= n / BATCH_SIZE, "independent");
    REQUIRE(s->max_factors > 0, "max_factors");
    for (int64_t k = 0; s->betas && k < s->n_betas; k++)
        REQUIRE(s->betas[k] >= 0.0 && s->betas[k] < INFINITY, "the inverse temperatures");
    return NULL;
}

/* How many dense weights variable i may use. */
static int64_t count_keys(const engine *e, int64_t i, int64_t n) {
    const weights_fields *w = &e->s.w;
    const int64_t sharing = w->draw == DRAW_BLANKET ? SHARE_BLANKET : w->draw == DRAW_SUM ? SHARE_SUM
                            : w->draw == DRAW_BINS ? SHARE_BINS : w->sharing;
    int64_t count = 1, most = 1;
    if (w->packed || sharing == SHARE_BLANKET || sharing == SHARE_SUM) {
        if (e->setup.loop == LOOP_GRID) return sharing == SHARE_BLANKET ? 16 : 5;
        if (w->hashed_keys && w->hashed_keys[i]) return MOST_CELLS;
        const int64_t begin = w->key_starts[i], end = w->key_starts[i + 1];
        for (int64_t k = begin; k < end; k++) {
            const int64_t size = states_of(e, w->key_members[k]);
            count = capped_product(count, size);
            if (size > most) most = size;
        }
        if (w->packed || sharing == SHARE_BLANKET) return count;
        count = 1;
        for (int64_t k = 1; k < most && count < MOST_CELLS; k++) count = capped_product(count, end - begin + 1);
        return count;
    }
    if (sharing == SHARE_COMPLETE) {
        int64_t last = 0;
        for (int64_t j = 0; j < n; j++) {
            const uint64_t factor = w->multipliers[j];
            if (factor >= (uint64_t)MOST_CELLS) return MOST_CELLS;
            last += capped_product((int64_t)factor, states_of(e, j) - 1);
            if (last >= MOST_CELLS) return MOST_CELLS;
        }
        return last + 1;
    }
    if (states_of(e, i) == 2) return w->n_bins + (sharing == SHARE_RANDOM_BINS);
    return sharing == SHARE_BINS && w->n_bins == 1 ? 1 : MOST_CELLS;
}

static const char *weights_fault(const engine *e, int64_t n) {
    const weights_fields *w = &e->s.w;
    const arrays_fields *a = &e->arrays;
    const int is_grid = e->setup.loop == LOOP_GRID;
    int64_t widest = 1, most = 2;
    if (w->draw == DRAW_RANDOM) return NULL;
    for (int64_t i = 0; !is_grid && i < n; i++) {
        if (e->s.m.c.sizes[i] != 2 && e->s.m.c.widths[i] > widest) widest = e->s.m.c.widths[i];
        if (e->s.m.c.sizes[i] > most) most = e->s.m.c.sizes[i];
    }
    if (e->blocks.first && widest < 4) widest = 4;
    REQUIRE(w->n_bins > 0 && w->n_bins <= MOST_BINS, "the number of bins");
    REQUIRE(w->row_length >= (w->packed ? 1 : widest) && w->row_length <= MAX_STATES + 3, "the rows of weights");
    REQUIRE(!w->key_starts || (w->n_key_starts == n + 1 && rises(w->key_starts, n + 1, w->n_key_members)), "the keys");
    REQUIRE(within(w->key_members, w->n_key_members, n), "the members of the keys");
    REQUIRE(!w->hashed_keys || w->n_hashed_keys == n, "the hashed keys");
    REQUIRE(!w->multipliers || w->n_multipliers == n, "the multipliers");
    REQUIRE(!w->weight_starts || w->n_weight_starts == n + 1, "the starts of the weights");
    if (e->blocks.first) {
        REQUIRE(w->needs_table && !a->dense && !a->fractions && !w->packed && !w->multipliers, "the weights of blocks");
        return NULL;
    }
    REQUIRE(w->draw == DRAW_GENERAL || w->sharing == (w->draw == DRAW_BLANKET ? SHARE_BLANKET
                                                      : w->draw == DRAW_SUM ? SHARE_SUM : SHARE_BINS), "the sharing");
    const int by_blanket = w->draw == DRAW_BLANKET || w->draw == DRAW_SUM || w->packed ||
                           (w->draw == DRAW_GENERAL && (w->sharing == SHARE_BLANKET || w->sharing == SHARE_SUM));
    const int prefetches = e->setup.loop == LOOP_CATEGORICAL && w->draw == DRAW_BLANKET;
    REQUIRE(is_grid || !(by_blanket || prefetches) || w->key_starts, "the keys");
    REQUIRE(w->draw != DRAW_GENERAL || w->sharing != SHARE_COMPLETE || w->multipliers, "the multipliers");
    const int by_bins = w->draw == DRAW_BINS || w->sharing == SHARE_BINS || w->sharing == SHARE_RANDOM_BINS;
    REQUIRE(!by_bins || most == 2 || w->n_bin_multipliers >= most, "the multipliers of bins");
    const int packs = e->setup.loop == LOOP_CATEGORICAL && (w->draw == DRAW_BLANKET || w->draw == DRAW_BINS);
    REQUIRE(!w->packed || (packs && most <= MAX_PACKED_STATES && w->needs_table), "the packed weights");
    REQUIRE(w->packed || a->fractions || a->dense || w->needs_table, "the weights");
    REQUIRE(!a->fractions || (most == 2 && e->s.plan.form == CIRCULAR && !w->packed), "the fractions");
    REQUIRE(w->n_dense >= 0 && w->n_dense < MOST_CELLS && w->n_keys >= 0 && w->n_keys < MOST_CELLS, "the dense weights");
    /* Specialised loops of binary variables and grids use only fractions. */
    const int fractions_only = w->draw != DRAW_GENERAL && (e->setup.loop == LOOP_BINARY || is_grid);
    REQUIRE(!fractions_only || a->fractions, "the fractions");
    const int64_t n_slots = a->fractions ? a->n_fractions : w->packed ? w->n_dense : a->n_dense / w->row_length;
    const int64_t shared = w->draw == DRAW_GENERAL && w->sharing == SHARE_COMPLETE ? count_keys(e, 0, n) : -1;
    for (int64_t i = 0; (a->fractions || a->dense || (w->packed && w->n_dense)) && i < n; i++) {
        const int64_t first = w->weight_starts ? w->weight_starts[i] : i * w->n_keys;
        if (first < 0 && !a->fractions && w->needs_table) continue;
        const int64_t count = shared >= 0 ? shared : count_keys(e, i, n);
        REQUIRE(first >= 0 && count <= n_slots && first <= n_slots - count, "the starts of the weights");
        if (w->packed) REQUIRE(count < UINT16_MAX, "the packed weights");
    }
    return NULL;
}

static const char *blocks_fault(const engine *e, int64_t n) {
    const blocks *b = &e->blocks;
    if (!b->first) return NULL;
    REQUIRE(e->setup.loop != LOOP_GRID && !e->s.m.c.others_at && e->setup.n_threads > 0, "the graph of the blocks");
    REQUIRE(e->s.w.draw == DRAW_RANDOM || e->s.w.draw == DRAW_GENERAL, "the weights of blocks");
    REQUIRE(b->n_first == e->setup.n_steps && b->n_last == b->n_first && b->n_edge_table == n, "the blocks");
    REQUIRE(b->n_states > 0 && b->stride >= 2 && b->stride % 2 == 0 && b->n_states <= MAX_STATES &&
                b->stride <= MAX_STATES + 3 && b->longest > 0 && b->longest <= n, "the sizes of the blocks");
    REQUIRE(b->n_tables > 0 && b->n_tables % (b->n_states * b->stride) == 0, "the tables of the blocks");
    REQUIRE(within(b->edge_table, n, b->n_tables / (b->n_states * b->stride)), "the edges of the blocks");
    for (int64_t i = 0; i < n; i++)
        REQUIRE(e->s.m.c.sizes[i] <= b->n_states && e->s.m.c.widths[i] <= b->stride && e->s.m.c.sizes[i] <= b->stride,
                "the states of the blocks");
    for (int64_t p = 0, before = -1; p < b->n_first; p++) {
        const int64_t i = e->setup.order ? e->setup.order[p] : p, first = b->first[p], last = b->last[p];
        const int continues = p && before == i - 1 && b->first[p - 1] == first && b->last[p - 1] == last;
        REQUIRE(first >= 0 && first <= i && i <= last && last < n && last - first < b->longest, "the steps of the blocks");
        REQUIRE(i == first || continues, "the steps of the blocks");
        REQUIRE(p + 1 < b->n_first || i == last, "the steps of the blocks");
        before = i;
    }
    return NULL;
}

static const char *arrays_fault(const engine *e, int64_t n) {
    const arrays_fields *a = &e->arrays;
    const int is_grid = e->setup.loop == LOOP_GRID;
    const int64_t n_unary = is_grid ? n : e->s.m.c.n_unary, n_rows = is_grid ? 8 : e->s.m.c.n_rows;
    int64_t n_joint = 1;
    REQUIRE(a->n_keys == 4 && a->n_state == n && a->n_unary == n_unary, "the arrays of a run");
    REQUIRE(is_grid || a->n_rows == n_rows, "the rows of a run");
    REQUIRE(e->setup.scan != SCAN_JACOBI || a->n_next_state == n, "the next state of a run");
    REQUIRE(!a->unary_step || (a->n_unary_step == n_unary && a->n_rows_step == n_rows && e->setup.betas), "the steps");
    REQUIRE(!a->counts || a->n_counts == n_unary, "the counts of a run");
    REQUIRE(!a->conditional_sums || (a->n_conditional_sums == n_unary && a->n_conditional_counts == n), "the sums of a run");
    REQUIRE(!a->best || a->n_best == n, "the best state of a run");
    REQUIRE(!a->samples || (e->r.options.every > 0 && a->n_samples % n == 0), "the samples of a run");
    REQUIRE(!a->joint || a->n_joint_multipliers == n, "the joint counts of a run");
    for (int64_t i = 0; a->joint && i < n; i++) {
        REQUIRE(a->joint_multipliers[i] >= 0, "the joint counts of a run");
        n_joint += capped_product(a->joint_multipliers[i], states_of(e, i) - 1);
        REQUIRE(n_joint <= a->n_joint, "the joint counts of a run");
    }
    for (int64_t i = 0; i < n; i++) REQUIRE(a->state[i] < states_of(e, i), "the state of a run");
    return NULL;
}

const char *engine_fault(const engine *e) {
    const char *fault = form_fault(e);
    if (fault) return fault;
    const int64_t n = e->setup.loop == LOOP_GRID ? e->grid.rows * e->grid.columns : e->s.m.c.n;
    if ((fault = setup_fault(e, n)) || (fault = blocks_fault(e, n)) || (fault = arrays_fault(e, n))) return fault;
    if ((fault = weights_fault(e, n))) return fault;
    for (int k = 0; k < e->n_groups; k++) {
        const factor_group *g = &e->groups[k];
        for (int64_t f = 0; f < g->n_scopes; f++)
            REQUIRE(g->scopes[f] < n && states_of(e, g->scopes[f]) == g->sizes[f % g->arity], "the scopes of a group");
    }
    return NULL;
}

/* The sweeps that fit into the arrays of a run. */
int64_t engine_most_sweeps(const engine *e) {
    const arrays_fields *a = &e->arrays;
    int64_t most = MOST_CELLS / e->setup.n_steps;
    if (e->setup.betas && e->setup.n_betas < most) most = e->setup.n_betas;
    if (a->trace && a->n_trace < most) most = a->n_trace;
    if (a->samples) {
        const int64_t kept = capped_product(a->n_samples / a->n_state, e->r.options.every);
        const int64_t burn_in = e->s.plan.burn_in > 0 ? e->s.plan.burn_in : 0;
        if (kept < most - burn_in) most = burn_in + kept;
    }
    return most;
}

/* The tables of a small graph, before they are filled, or before states are counted with them (`filled`). */
const char *engine_counting_fault(const engine *e, int filled) {
    const counting_tables *c = &e->counting;
    const int64_t n = e->s.m.c.n, n_states = n <= MAX_COUNTED_VARIABLES ? INT64_C(1) << n : 0;
    REQUIRE(n_states && e->setup.scan != SCAN_RANDOM && e->setup.scan != SCAN_JACOBI && !e->blocks.first, "the graph");
    for (int64_t i = 0; i < n; i++) REQUIRE(states_of(e, i) == 2, "the number of states");
    REQUIRE(c->n_odds == n * n_states && c->n_p == c->n_odds && c->n_keys == c->n_odds && c->n_upper == c->n_odds &&
                c->n_aims == e->s.w.n_bins + 1, "the tables");
    REQUIRE(c->focus >= 0 && c->focus < n && c->n_visits == 2 * n_states, "the visits");
    if (!filled) return NULL;
    REQUIRE(c->n_groups == n_states && (!c->returns || c->n_returns == 2 * n_states), "the returns");
    REQUIRE(within(c->groups, c->n_groups, c->n_last), "the groups");
    for (int64_t k = 0; k < c->n_last; k++) REQUIRE(c->last[k] >= -1 && c->last[k] <= 1, "the states of the groups");
    for (int64_t i = 0; i < n; i++) {
        const int64_t n_keys = e->s.w.draw == DRAW_RANDOM ? 1 : count_keys(e, i, n);
        const int64_t last = n_keys - 1 - (e->s.w.draw != DRAW_RANDOM && e->s.w.sharing == SHARE_RANDOM_BINS);
        const int bounded = e->s.fractions || (e->s.dense && first_weight(&e->s, i) >= 0);
        for (int64_t k = 0; k < n_states; k++) {
            const int64_t key = c->keys[i << n | k], p = c->p[i << n | k];
            /* A probability of 1 is in the bin behind the last, from which no draw goes to the next bin. */
            const int in_last = key == n_keys - 1 && c->upper[i << n | k] == 0.0;
            REQUIRE(!bounded || (key >= 0 && (key <= last || in_last)), "the keys");
            REQUIRE(p >= 0 && p <= INT64_C(1) << 32, "the probabilities");
        }
    }
    return NULL;
}
