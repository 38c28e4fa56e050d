/* The seam: an engine's parts, its beginning and end, and what is asked of it. */
#include "engine.h"

#include "count.h"
#include "run.h"

#define KIND_OF(TYPE)                                                                                                  \
    _Generic((TYPE *)0, int8_t *: "i1", uint8_t *: "u1", uint16_t *: "u2", int32_t *: "i4", uint32_t *: "u4",          \
             int64_t *: "i8", uint64_t *: "u8", double *: "f8")
#define DESCRIBE(KIND, TYPE, NAME) {#NAME, offsetof(described, NAME), KIND, TYPE_##KIND(TYPE)},
#define TYPE_WHOLE(TYPE) KIND_OF(TYPE)
#define TYPE_REAL(TYPE) KIND_OF(TYPE)
#define TYPE_WORD(WORDS) WORDS
#define TYPE_ARRAY(TYPE) KIND_OF(TYPE)
#define TYPE_BUFFER(TYPE) KIND_OF(TYPE)
#define TYPE_STRIDED(TYPE) KIND_OF(TYPE)
#define PART(STRUCT, FIELDS, AT)                                                                                       \
    {                                                                                                                  \
        typedef STRUCT described;                                                                                      \
        static const field all[] = {FIELDS(DESCRIBE) {NULL, 0, 0, NULL}};                                              \
        *fields = all;                                                                                                 \
        return AT;                                                                                                     \
    }

void *engine_part(engine *e, int part, const field **fields) {
    switch (part) {
        case PART_PLAN: PART(plan_fields, PLAN_FIELDS, &e->s.plan)
        case PART_RECORD: PART(record_fields, RECORD_FIELDS, &e->r.options)
        case PART_SETUP: PART(setup_fields, SETUP_FIELDS, &e->setup)
        case PART_WEIGHTS: PART(weights_fields, WEIGHTS_FIELDS, &e->s.w)
        case PART_GRID: PART(grid_fields, GRID_FIELDS, &e->grid)
        case PART_BLOCKS: PART(blocks, BLOCKS_FIELDS, &e->blocks)
        case PART_ARRAYS: PART(arrays_fields, ARRAYS_FIELDS, &e->arrays)
        case PART_COUNTING: PART(counting, COUNTING_FIELDS, &e->counting)
        default: PART(factor_group, GROUP_FIELDS, &e->groups[part - PART_GROUPS])
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
    free(e->s.m.turned);
    free(e->threads);
    free(e->blocks.heated);
    free(e->blocks.filter);
    free(e->blocks.row);
    free(e->blocks.seen);
    free(e->turns);
    free(e->few);
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
    m->careful = e->setup.careful;
    m->beta = -1.0;
    if (m->unary_step) {
        e->loops->exp_scaled(m->c.unary, m->unary_step, m->c.n_unary, e->setup.heat_step);
        if (m->grid) e->loops->exp_scaled(e->grid.sides, m->rows_step, 8, e->setup.heat_step);
        else e->loops->exp_scaled(m->c.rows, m->rows_step, m->c.n_rows, e->setup.heat_step);
    }
    if (!e->setup.betas) e->loops->heat(m, 1.0);
}

static void begin_sampler(engine *e) {
    sampler *s = &e->s;
    s->x = e->arrays.state;
    s->y = e->setup.scan == SCAN_JACOBI ? e->arrays.other : e->arrays.state;
    s->state_sum = &e->state_sum;
    s->weight_key = e->arrays.keys[2];
    s->fractions = e->arrays.fractions;
    s->dense = e->arrays.dense;
    s->independent = e->setup.independent;
    s->conditional_counts = e->arrays.conditional_counts;
    s->factors = (int)e->setup.factors;
    s->follow = e->r.options.follows && s->x == s->y && !e->blocks.first;
    s->most_bytes = s->plan.weight_memory / (e->n_tables > 1 ? e->n_tables : 1);
    e->all_two = e->setup.loop == LOOP_GRID || e->setup.loop == LOOP_TWO;
    e->step = e->loops->choose(e->setup.loop, s->w.draw);
    if (s->w.place) sum_state(e);
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
        sites[i] = (memo_site){!w->n_slots ? -1 : w->weights_at ? w->weights_at[i] : i * w->n_keys, begin, -1, -1};
        if (end - begin > MEMO_MEMBERS) continue;
        int64_t before = begin; /* members come in rising order */
        while (before < end && w->key_members[before] < i) before++;
        if (before > begin) sites[i].last = w->key_members[before - 1];
        sites[i].n_rest = 0;
        for (int64_t k = begin; k < end; k++)
            if (k != before - 1) rest[begin + sites[i].n_rest++] = w->key_members[k];
    }
    if (!w->n_slots) return 0;
    e->places = calloc(w->n_slots + 1, sizeof(packed_row));
    if (w->draw == DRAW_BINS) e->s.owners = calloc(w->n_slots, sizeof(uint16_t));
    if (!e->places || (w->draw == DRAW_BINS && !e->s.owners)) return NO_MEMORY;
    wish_large_pages(e->places, (w->n_slots + 1) * sizeof(packed_row));
    e->s.places = (packed_row *)(((uintptr_t)e->places + 63) & ~(uintptr_t)63); /* each in one line of the cache */
    return 0;
}

/* 0, or NO_MEMORY. */
static int64_t allocate(engine *e) {
    const int64_t n_shards = (e->setup.n_steps + SHARD - 1) / SHARD, n_threads = e->setup.n_threads;
    const int own = /* positions own their variables */
        e->setup.scan != SCAN_RANDOM && e->setup.scan != SCAN_GIVEN && !e->blocks.first;
    int64_t widest = e->blocks.stride > 4 ? e->blocks.stride : 4;
    for (int64_t i = 0; e->setup.loop != LOOP_GRID && i < e->s.m.c.n; i++)
        if (e->s.m.c.widths[i] > widest) widest = e->s.m.c.widths[i];
    e->n_tables = !e->s.w.hashed ? 0 : own ? n_shards : 1;
    e->tables = calloc(e->n_tables + 1, sizeof(weight_table));
    e->memos = calloc(e->n_tables + 1, sizeof(memo));
    e->turns = malloc((n_shards + 1) * sizeof(turns));
    if (e->arrays.counts) e->few = calloc(e->arrays.n_counts + 1, 1);
    e->threads = calloc(n_threads, sizeof(thread_state));
    if (e->s.w.packed && allocate_sites(e)) return NO_MEMORY;
    const int herds = e->s.w.draw != DRAW_RANDOM && e->s.w.draw != DRAW_ANY;
    if (herds && e->setup.loop == LOOP_LABELS && e->s.m.c.n_rows && e->s.m.c.n_rows <= MOST_TURNED) {
        e->s.m.turned = calloc(e->s.m.c.n_rows, sizeof(double));
        if (!e->s.m.turned) return NO_MEMORY;
    }
    if (!e->tables || !e->memos || !e->turns || !e->threads || (e->arrays.counts && !e->few)) return NO_MEMORY;
    for (int64_t k = 0; k < n_shards; k++) e->turns[k] = NO_TURNS;
    for (int64_t k = 0; k < e->n_tables; k++) e->tables[k].words = e->s.w.words;
    for (int64_t k = 0; k < n_threads; k++) {
        worker *w = &e->threads[k].w;
        e->threads[k].block = e->threads[k].order_block = -1;
        w->turns = e->turns;
        w->w = malloc(3 * widest * sizeof(double));
        if (!w->w) return NO_MEMORY;
        w->cumulative = w->w + widest;
        w->p = w->w + 2 * widest;
    }
    if (!e->blocks.first) return 0;
    blocks *b = &e->blocks;
    b->heated = malloc(b->n_tables * sizeof(double));
    b->filter = malloc(b->longest * b->stride * sizeof(double));
    b->row = malloc(3 * widest * sizeof(double));
    b->seen = malloc(b->longest * sizeof(uint64_t));
    b->beta = -1.0;
    return b->heated && b->filter && b->row && b->seen ? 0 : NO_MEMORY;
}

int64_t engine_begin(engine *e, const char *most) {
    e->loops = best_loops(most);
    if (allocate(e)) return NO_MEMORY;
    begin_model(e);
    begin_sampler(e);
    e->r.burn_in = e->s.plan.burn_in;
    e->r.log_potential = engine_added_up(e, e->s.x);
    e->r.best_log_potential = e->r.options.follows ? e->r.log_potential : -INFINITY;
    return 0;
}

int64_t engine_advance(engine *e, int64_t from, int64_t to) { return e->loops->alone(e, e->threads, from, to); }

int64_t engine_advance_together(engine *e, int me, int64_t first, int64_t last) {
    return e->loops->together(e, &e->threads[me], me, first, last);
}

void engine_settle(engine *e) {
    if (e->few) spill_counts(e->few, e->arrays.counts, 0, e->arrays.n_counts);
}

int64_t engine_faulty(const engine *e, int me) { return e->threads[me].w.faulty; }

void engine_drive(engine *e, const double *uniforms, int64_t first) {
    e->driving = uniforms;
    e->driving_from = first;
}

void engine_tabulate(engine *e) { tabulate(e); }

int64_t engine_count(engine *e, int64_t first, int64_t last) { return count_sweeps(e, e->threads, first, last); }

const label *engine_state(const engine *e) { return e->s.x; }

double engine_log_potential(const engine *e) { return e->r.log_potential; }

double engine_best_log_potential(const engine *e) { return e->r.best_log_potential; }

double engine_added_up(const engine *e, const label *x) { return state_log_potential(e->groups, e->n_groups, x); }

int64_t engine_n_kept(const engine *e) { return e->r.n_kept; }

int64_t engine_n_samples(const engine *e) { return e->r.n_samples; }

const char *engine_instructions(const engine *e) { return e->loops->instructions; }

void engine_uniforms(uint64_t key, uint64_t block, double *out) { uniform_block(key, block, out); }

void engine_start_fractions(uint64_t key, uint32_t *fractions, const int64_t *at, int64_t n_keys, int64_t n_variables) {
    for (int64_t i = 0; i < n_variables; i++) {
        const int64_t first = at ? at[i] : i * n_keys, n = at ? at[i + 1] - first : n_keys;
        for (int64_t k = 0; k < n; k++) fractions[first + k] = start_fraction(key, i, k);
    }
}

void engine_unborn(double *weights, int64_t n) {
    for (int64_t k = 0; k < n; k++) weights[k] = UNBORN;
}
