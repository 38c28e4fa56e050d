/* The seam: an engine's parts, its beginning and end, and what is asked of it. */
#include "engine.h"

#include "state_counting.h"
#include "run.h"

#define NUMPY_TYPE(TYPE)                                                                                               \
    _Generic((TYPE *)0, int8_t *: "i1", uint8_t *: "u1", uint16_t *: "u2", int32_t *: "i4", uint32_t *: "u4",          \
             int64_t *: "i8", uint64_t *: "u8", double *: "f8")
#define DESCRIBE(KIND, TYPE, NAME) {#NAME, offsetof(described, NAME), KIND, TYPE_OF_##KIND(TYPE)},
#define TYPE_OF_WHOLE(TYPE) NUMPY_TYPE(TYPE)
#define TYPE_OF_REAL(TYPE) NUMPY_TYPE(TYPE)
#define TYPE_OF_ENUM(LIST) LIST(WORD_OF)
#define TYPE_OF_ARRAY(TYPE) NUMPY_TYPE(TYPE)
#define TYPE_OF_BUFFER(TYPE) NUMPY_TYPE(TYPE)
#define TYPE_OF_STRIDED(TYPE) NUMPY_TYPE(TYPE)
#define PART_CASE(PART, STRUCT, FIELDS, PLACE) case PART: DESCRIBED_PART(STRUCT, FIELDS, &e->PLACE)
#define DESCRIBED_PART(STRUCT, FIELDS, ADDRESS)                                                                        \
    {                                                                                                                  \
        typedef STRUCT described;                                                                                      \
        static const field all[] = {FIELDS(DESCRIBE) {NULL, 0, 0, NULL}};                                              \
        *fields = all;                                                                                                 \
        return ADDRESS;                                                                                                \
    }

void *engine_part(engine *e, int part, const field **fields) {
    switch (part) {
        PARTS(PART_CASE)
        default: DESCRIBED_PART(factor_group, GROUP_FIELDS, &e->groups[part - PART_GROUPS])
    }
}

conditionals *engine_conditionals(engine *e) { return &e->s.m.c; }

engine *engine_new(int64_t n_groups) {
    engine *e = calloc(1, sizeof(engine));
    if (!e) return NULL;
    e->n_groups = (int)n_groups;
    e->groups = calloc(n_groups + 1, sizeof(factor_group));
    if (e->groups) return e;
    free(e);
    return NULL;
}

void engine_free(engine *e) {
    if (!e) return;
    for (int64_t k = 0; e->tables && k < e->n_tables; k++) weight_table_free(&e->tables[k]);
    for (int64_t k = 0; e->memos && k < e->n_tables; k++) memo_free(&e->memos[k]);
    for (int64_t k = 0; e->threads && k < e->setup.n_threads; k++) free(e->threads[k].w.w);
    free(e->tables);
    free(e->memos);
    free(e->places);
    free(e->s.owners);
    free(e->s.sites);
    free(e->s.rest);
    free(e->s.m.transposed);
    free(e->threads);
    free(e->blocks.exp_tables);
    free(e->blocks.filter);
    free(e->blocks.row);
    free(e->blocks.outside_hash);
    free(e->flips);
    free(e->byte_counts);
    free(e->groups);
    free(e);
}

extern const loops loops_plain;
#ifdef HERDNER_X86
extern const loops loops_avx2, loops_avx512;
#define HAS(INSTRUCTIONS) (!!__builtin_cpu_supports(INSTRUCTIONS))
#endif

/* The best loops that this machine can run, or the best of those up to `most`. */
static const loops *best_loops(const char *most) {
#ifdef HERDNER_X86
    const int any = !*most || !strcmp(most, "avx512");
    if (any && HAS("avx512f") && HAS("avx512vl") && HAS("avx512bw") && HAS("avx512dq")) return &loops_avx512;
    if ((any || !strcmp(most, "avx2")) && HAS("avx2")) return &loops_avx2;
#endif
    (void)most;
    return &loops_plain;
}

static void begin_model(engine *e) {
    model *m = &e->s.m;
    if (e->setup.loop == LOOP_GRID) {
        m->grid = &e->grid;
        m->log_ratio = (const double(*)[2])e->grid.sides;
        m->c.n = m->c.n_unary = e->grid.rows * e->grid.columns;
        m->c.unary = e->grid.unary;
    }
    m->unary = e->arrays.unary;
    m->rows = e->arrays.rows;
    m->unary_step = e->arrays.unary_step;
    m->rows_step = e->arrays.rows_step;
    m->log_domain = e->setup.log_domain;
    m->beta = -1.0;
    if (m->unary_step) {
        e->loops->exp_scaled(m->c.unary, m->unary_step, m->c.n_unary, e->setup.beta_step);
        if (m->grid) e->loops->exp_scaled(e->grid.sides, m->rows_step, 8, e->setup.beta_step);
        else e->loops->exp_scaled(m->c.rows, m->rows_step, m->c.n_rows, e->setup.beta_step);
    }
    if (!e->setup.betas) e->loops->set_beta(m, 1.0);
}

static void begin_sampler(engine *e) {
    sampler *s = &e->s;
    s->x = e->arrays.state;
    s->y = e->setup.scan == SCAN_JACOBI ? e->arrays.next_state : e->arrays.state;
    s->joint_key = &e->joint_key;
    s->weight_key = e->arrays.keys[2];
    s->fractions = e->arrays.fractions;
    s->dense = e->arrays.dense;
    s->independent = e->setup.independent;
    s->conditional_counts = e->arrays.conditional_counts;
    s->max_factors = (int)e->setup.max_factors;
    s->tracks = e->r.options.tracks_log_potential && s->x == s->y && !e->blocks.first;
    s->max_bytes = s->plan.weight_memory / (e->n_tables > 1 ? e->n_tables : 1);
    e->all_two = e->setup.loop == LOOP_GRID || e->setup.loop == LOOP_BINARY;
    e->step = e->loops->choose(e->setup.loop, s->w.draw);
    if (s->w.multipliers) sum_joint_key(e);
}

/* What decides packed weights. Returns 0, or NO_MEMORY. */
static int64_t allocate_sites(engine *e) {
    const weights_fields *w = &e->s.w;
    const int64_t n = e->s.m.c.n;
    memo_site *sites = e->s.sites = malloc(n * sizeof(memo_site));
    int32_t *rest = e->s.rest = malloc((w->key_starts[n] + 1) * sizeof(int32_t));
    if (!sites || !rest) return NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = w->key_starts[i], end = w->key_starts[i + 1];
        sites[i] = (memo_site){!w->n_dense ? -1 : w->weight_starts ? w->weight_starts[i] : i * w->n_keys, begin, -1, -1};
        if (end - begin > MEMO_MEMBERS) continue;
        int64_t before = begin; /* members come in rising order */
        while (before < end && w->key_members[before] < i) before++;
        if (before > begin) sites[i].last = w->key_members[before - 1];
        sites[i].n_rest = 0;
        for (int64_t k = begin; k < end; k++)
            if (k != before - 1) rest[begin + sites[i].n_rest++] = w->key_members[k];
    }
    if (!w->n_dense) return 0;
    e->places = calloc(w->n_dense + 1, sizeof(packed_row));
    if (w->draw == DRAW_BINS) e->s.owners = calloc(w->n_dense, sizeof(uint16_t));
    if (!e->places || (w->draw == DRAW_BINS && !e->s.owners)) return NO_MEMORY;
    wish_large_pages(e->places, (w->n_dense + 1) * sizeof(packed_row));
    e->s.places = (packed_row *)(((uintptr_t)e->places + 63) & ~(uintptr_t)63); /* each in one line of the cache */
    return 0;
}

/* 0, or NO_MEMORY. */
static int64_t allocate(engine *e) {
    const int64_t n_shards = (e->setup.n_steps + SHARD - 1) / SHARD, n_threads = e->setup.n_threads;
    const int own = /* positions own their variables */
        e->setup.scan != SCAN_RANDOM && e->setup.scan != SCAN_FIXED && !e->blocks.first;
    int64_t widest = e->blocks.stride > 4 ? e->blocks.stride : 4;
    for (int64_t i = 0; e->setup.loop != LOOP_GRID && i < e->s.m.c.n; i++)
        if (e->s.m.c.widths[i] > widest) widest = e->s.m.c.widths[i];
    e->n_tables = !e->s.w.needs_table ? 0 : own ? n_shards : 1;
    e->tables = calloc(e->n_tables + 1, sizeof(weight_table));
    e->memos = calloc(e->n_tables + 1, sizeof(memo));
    e->flips = malloc((n_shards + 1) * sizeof(flips));
    if (e->arrays.counts) e->byte_counts = calloc(e->arrays.n_counts + 1, 1);
    e->threads = calloc(n_threads, sizeof(thread_state));
    if (e->s.w.packed && allocate_sites(e)) return NO_MEMORY;
    const int herds = e->s.w.draw != DRAW_RANDOM && e->s.w.draw != DRAW_GENERAL;
    if (herds && e->setup.loop == LOOP_CATEGORICAL && e->s.m.c.n_rows && e->s.m.c.n_rows <= MAX_TRANSPOSED) {
        e->s.m.transposed = calloc(e->s.m.c.n_rows, sizeof(double));
        if (!e->s.m.transposed) return NO_MEMORY;
    }
    if (!e->tables || !e->memos || !e->flips || !e->threads || (e->arrays.counts && !e->byte_counts)) return NO_MEMORY;
    for (int64_t k = 0; k < n_shards; k++) e->flips[k] = NO_FLIPS;
    for (int64_t k = 0; k < e->n_tables; k++) e->tables[k].words = e->s.w.row_length;
    for (int64_t k = 0; k < n_threads; k++) {
        worker *w = &e->threads[k].w;
        e->threads[k].block = e->threads[k].order_block = -1;
        w->flips = e->flips;
        w->w = malloc(3 * widest * sizeof(double));
        if (!w->w) return NO_MEMORY;
        w->cumulative = w->w + widest;
        w->p = w->w + 2 * widest;
    }
    if (!e->blocks.first) return 0;
    blocks *b = &e->blocks;
    b->exp_tables = malloc(b->n_tables * sizeof(double));
    b->filter = malloc(b->longest * b->stride * sizeof(double));
    b->row = malloc(3 * widest * sizeof(double));
    b->outside_hash = malloc(b->longest * sizeof(uint64_t));
    b->beta = -1.0;
    return b->exp_tables && b->filter && b->row && b->outside_hash ? 0 : NO_MEMORY;
}

int64_t engine_begin(engine *e, const char *most) {
    e->loops = best_loops(most);
    if (allocate(e)) return NO_MEMORY;
    begin_model(e);
    begin_sampler(e);
    e->r.burn_in = e->s.plan.burn_in;
    e->r.log_potential = engine_log_potential_of(e, e->s.x);
    e->r.best_log_potential = e->r.options.tracks_log_potential ? e->r.log_potential : -INFINITY;
    return 0;
}

int64_t engine_advance(engine *e, int64_t from, int64_t to) { return e->loops->alone(e, e->threads, from, to); }

int64_t engine_advance_parallel(engine *e, int thread, int64_t first, int64_t last) {
    return e->loops->together(e, &e->threads[thread], thread, first, last);
}

void engine_flush(engine *e) {
    if (e->byte_counts) flush_counts(e->byte_counts, e->arrays.counts, 0, e->arrays.n_counts);
}

int64_t engine_fault_variable(const engine *e, int thread) { return e->threads[thread].w.fault_variable; }

void engine_set_uniforms(engine *e, const double *uniforms, int64_t first) {
    e->uniforms = uniforms;
    e->uniforms_from = first;
}

void engine_fill_counting_tables(engine *e) { fill_counting_tables(e); }

int64_t engine_count_states(engine *e, int64_t first, int64_t last) { return count_sweeps(e, e->threads, first, last); }

const state_t *engine_state(const engine *e) { return e->s.x; }

double engine_best_log_potential(const engine *e) { return e->r.best_log_potential; }

double engine_log_potential_of(const engine *e, const state_t *x) { return state_log_potential(e->groups, e->n_groups, x); }

int64_t engine_n_recorded(const engine *e) { return e->r.n_kept; }

int64_t engine_n_samples(const engine *e) { return e->r.n_samples; }

const char *engine_instructions(const engine *e) { return e->loops->instructions; }

void engine_uniform_block(uint64_t key, uint64_t block, double *out) { uniform_block(key, block, out); }

void engine_initialise_fractions(uint64_t key, uint32_t *fractions, const int64_t *at, int64_t n_keys, int64_t n_variables) {
    for (int64_t i = 0; i < n_variables; i++) {
        const int64_t first = at ? at[i] : i * n_keys, n = at ? at[i + 1] - first : n_keys;
        for (int64_t k = 0; k < n; k++) fractions[first + k] = initial_fraction(key, i, k);
    }
}

void engine_mark_uninitialised(double *weights, int64_t n) {
    for (int64_t k = 0; k < n; k++) weights[k] = UNINITIALISED;
}
