/* The interface of the engine: its parts, beginning a run, freeing it, and questions about it. */
#include "engine.h"

#include "herding_weights.h"
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
#define TYPE_OF_PRIVATE(TYPE) NUMPY_TYPE(TYPE)
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
    e->groups = zeroed_memory(n_groups + 1, sizeof(factor_group));
    if (e->groups) return e;
    free(e);
    return NULL;
}

void engine_free(engine *e) {
    if (!e) return;
    for (int64_t k = 0; e->tables && k < e->n_tables; k++) free(e->tables[k].entries);
    for (int64_t k = 0; e->stores && k < e->n_tables; k++) packed_store_free(&e->stores[k]);
    for (int64_t k = 0; e->workers && k < e->setup.n_threads; k++) free(e->workers[k].row);
    void *all[] = {e->tables, e->stores, e->places_memory, e->s.owners, e->s.sites, e->s.rest, e->s.m.transposed, e->workers,
                   e->blocks.exp_tables, e->blocks.filter, e->blocks.row, e->blocks.outside_hash, e->flips, e->byte_counts,
                   e->groups, e};
    for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++) free(all[k]);
}

#ifdef HERDNER_X86
#define HAS(INSTRUCTIONS) (!!__builtin_cpu_supports(INSTRUCTIONS))
#define TAKE(FUNCTION) if (faster->FUNCTION) set->FUNCTION = faster->FUNCTION

/* Replace the functions of a set by those that `faster` has. */
static void take_loops(loop_set *set, const loop_set *faster) {
    set->instructions = faster->instructions;
    for (int loop = 0; loop < N_LOOPS; loop++)
        for (int draw = 0; draw < N_DRAWS; draw++) TAKE(step[loop][draw]);
    TAKE(step_blocks);
    TAKE(uniform_block);
    TAKE(raw_block);
    TAKE(exp_scaled);
    TAKE(set_beta);
    TAKE(step_beta);
    TAKE(tally_states);
}
#endif

/* The best loops that this machine can run, but none better than `max_instructions`. */
static loop_set best_loops(const char *max_instructions) {
    loop_set set = loops_plain;
#ifdef HERDNER_X86
    const int any = !*max_instructions || !strcmp(max_instructions, "avx512");
    if ((any || !strcmp(max_instructions, "avx2")) && HAS("avx2")) take_loops(&set, &loops_avx2);
    if (any && HAS("avx512f") && HAS("avx512vl") && HAS("avx512bw") && HAS("avx512dq")) take_loops(&set, &loops_avx512);
#endif
    (void)max_instructions;
    return set;
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
        e->loops.exp_scaled(m->c.unary, m->unary_step, m->c.n_unary, e->setup.beta_step);
        if (m->grid) e->loops.exp_scaled(e->grid.sides, m->rows_step, 8, e->setup.beta_step);
        else e->loops.exp_scaled(m->c.rows, m->rows_step, m->c.n_rows, e->setup.beta_step);
    }
    if (!e->setup.betas) e->loops.set_beta(m, 1.0);
}

static void begin_sampler(engine *e) {
    sampler *s = &e->s;
    s->x = e->arrays.state;
    s->y = e->setup.scan == SCAN_JACOBI ? e->arrays.next_state : e->arrays.state;
    s->joint_key = &e->joint_key;
    s->uniform_key = e->arrays.keys[0];
    s->weight_key = e->arrays.keys[2];
    s->fractions = e->arrays.fractions;
    s->dense = e->arrays.dense;
    s->independent = e->setup.independent;
    s->conditional_counts = e->arrays.conditional_counts;
    s->max_factors = (int)e->setup.max_factors;
    s->tracks = e->r.options.tracks_log_potential && s->x == s->y && !e->blocks.first;
    s->max_bytes = s->plan.weight_memory / (e->n_tables > 1 ? e->n_tables : 1);
    e->all_binary = e->setup.loop == LOOP_GRID || e->setup.loop == LOOP_BINARY;
    e->step = e->loops.step[e->setup.loop][s->w.draw];
    if (s->w.multipliers) sum_joint_key(e);
}

/* The blankets of packed weights, and their places. Returns 0 or NO_MEMORY. */
static int64_t allocate_sites(engine *e) {
    const weights_fields *w = &e->s.w;
    const int64_t n = e->s.m.c.n;
    packed_site *sites = e->s.sites = array_memory(n, sizeof(packed_site));
    int32_t *rest = e->s.rest = array_memory(w->key_starts[n] + 1, sizeof(int32_t));
    if (!sites || !rest) return NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = w->key_starts[i], end = w->key_starts[i + 1];
        const int64_t first = !w->n_dense ? -1 : w->weight_starts ? w->weight_starts[i] : i * w->n_keys;
        sites[i] = (packed_site){first + 1, begin, -1, -1};
        if (end - begin > MAX_BLANKET) continue;
        int64_t before = begin; /* members are in ascending order */
        while (before < end && w->key_members[before] < i) before++;
        if (before > begin) sites[i].last = w->key_members[before - 1];
        sites[i].n_rest = 0;
        for (int64_t k = begin; k < end; k++)
            if (k != before - 1) rest[begin + sites[i].n_rest++] = w->key_members[k];
    }
    if (!w->n_dense) return 0;
    e->places_memory = zeroed_memory(w->n_dense + 2, sizeof(packed_row));
    if (w->draw == DRAW_BINS) e->s.owners = zeroed_memory(w->n_dense + 1, sizeof(uint16_t));
    if (!e->places_memory || (w->draw == DRAW_BINS && !e->s.owners)) return NO_MEMORY;
    advise_large_pages(e->places_memory, (w->n_dense + 2) * sizeof(packed_row));
    e->s.places = (packed_row *)(((uintptr_t)e->places_memory + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
    return 0;
}

/* Allocate what the run needs beside the arrays of Python. Returns 0 or NO_MEMORY. */
static int64_t allocate(engine *e) {
    const int64_t n_shards = (e->setup.n_steps + SHARD - 1) / SHARD, n_threads = e->setup.n_threads;
    const int own = /* a position updates the same variable in every sweep */
        e->setup.scan != SCAN_RANDOM && e->setup.scan != SCAN_FIXED && !e->blocks.first;
    int64_t widest = e->blocks.stride > 4 ? e->blocks.stride : 4;
    for (int64_t i = 0; e->setup.loop != LOOP_GRID && i < e->s.m.c.n; i++)
        if (e->s.m.c.widths[i] > widest) widest = e->s.m.c.widths[i];
    e->n_tables = !e->s.w.needs_table ? 0 : own ? n_shards : 1;
    e->tables = zeroed_memory(e->n_tables + 1, sizeof(hash_table));
    e->stores = zeroed_memory(e->n_tables + 1, sizeof(packed_store));
    e->flips = array_memory(n_shards + 1, sizeof(flips));
    if (e->arrays.counts) e->byte_counts = zeroed_memory(e->arrays.n_counts + 1, 1);
    e->workers = zeroed_memory(n_threads, sizeof(worker));
    if (e->s.w.packed && allocate_sites(e)) return NO_MEMORY;
    /* Packed weights hide the latency that precomputed totals would save. */
    const int precomputes = (e->s.w.draw == DRAW_BINS || e->s.w.draw == DRAW_BLANKET) && !e->s.w.packed;
    if (precomputes && e->setup.loop == LOOP_CATEGORICAL && e->s.m.c.n_rows && e->s.m.c.n_rows <= MAX_TRANSPOSED) {
        e->s.m.transposed = zeroed_memory(e->s.m.c.n_rows, sizeof(double));
        if (!e->s.m.transposed) return NO_MEMORY;
    }
    if (!e->tables || !e->stores || !e->flips || !e->workers || (e->arrays.counts && !e->byte_counts)) return NO_MEMORY;
    for (int64_t k = 0; k < n_shards; k++) e->flips[k] = NO_FLIPS;
    for (int64_t k = 0; k < n_threads; k++) {
        worker *w = &e->workers[k];
        w->uniform_index = w->order_index = -1;
        w->flips = e->flips;
        w->row = array_memory(3 * widest, sizeof(double));
        if (!w->row) return NO_MEMORY;
        w->cumulative = w->row + widest;
        w->p = w->row + 2 * widest;
    }
    if (!e->blocks.first) return 0;
    blocks *b = &e->blocks;
    b->exp_tables = array_memory(b->n_tables, sizeof(double));
    b->filter = array_memory(b->longest * b->stride, sizeof(double));
    b->row = array_memory(3 * widest, sizeof(double));
    b->outside_hash = array_memory(b->longest, sizeof(uint64_t));
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

void engine_flush(engine *e) {
    if (e->byte_counts) flush_counts(e->byte_counts, e->arrays.counts, 0, e->arrays.n_counts);
}

int64_t engine_fault_variable(const engine *e, int thread) { return e->workers[thread].fault_variable; }

void engine_set_uniforms(engine *e, const double *uniforms, int64_t first) {
    e->uniforms = uniforms;
    e->uniforms_from = first;
}

const state_t *engine_state(const engine *e) { return e->s.x; }
const int64_t *engine_counting_keys(const engine *e) { return e->counting.keys; }

double engine_best_log_potential(const engine *e) { return e->r.best_log_potential; }

double engine_log_potential_of(const engine *e, const state_t *x) { return state_log_potential(e->groups, e->n_groups, x); }

const char *engine_instructions(const engine *e) { return e->loops.instructions; }

void engine_uniform_block(uint64_t key, uint64_t block, double *out) { uniform_block(key, block, out); }

void engine_initialise_fractions(uint64_t key, uint32_t *fractions, const int64_t *at, int64_t n_keys, int64_t n_variables) {
    for (int64_t i = 0; i < n_variables; i++) {
        const int64_t first = at ? at[i] : i * n_keys, n = at ? at[i + 1] - first : n_keys;
        for (int64_t k = 0; k < n; k++) fractions[first + k] = initial_fraction(key, i, k);
    }
}
