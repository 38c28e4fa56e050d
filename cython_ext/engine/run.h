/* A run: sweeps in pieces of any size, on one thread or several that take a share of every colour. */
#ifndef HERDNER_RUN_H
#define HERDNER_RUN_H

#ifdef _WIN32
__declspec(dllimport) int __stdcall SwitchToThread(void); /* of windows.h, whose other names would be in the way */
#define sched_yield SwitchToThread
#else
#include <sched.h>
#endif
#include <stdatomic.h>

#include "blocks.h"
#include "loops.h"
#include "record.h"

/* Positions of a sweep whose gains are summed, and whose hashed weights live, together: what threads share out. */
enum { SHARD = 4096 };

/* Sweeps after which annealing in steps takes exponentials anew. */
enum { EXACT_SWEEPS = 32 };

/* What is kept of the log-potential is added up anew where it may be off by more than its rounding: after so many sweeps,
 * near infinite heat, and after a sweep of so large a gain relative to it. */
enum { RESUM_SWEEPS = 1024 };
#define SMALLEST_BETA 1e-3
#define LARGE_GAIN 1e6

/* What one thread has of its own. */
typedef struct {
    worker w;
    int64_t block; /* whose numbers are in u */
    double u[UNIFORM_BLOCK];
    int64_t order_block;
    int32_t order[UNIFORM_BLOCK];
} thread_state;

/* What is compiled for each instruction set, and its name. */
typedef struct {
    const char *instructions;
    stepper (*choose)(int64_t loop, int64_t draw);
    int64_t (*alone)(struct engine *e, thread_state *t, int64_t from, int64_t to);
    int64_t (*together)(struct engine *e, thread_state *t, int thread, int64_t first, int64_t last);
    void (*set_beta)(model *m, double beta);
    void (*exp_scaled)(const double *from, double *to, int64_t n, double beta);
} loops;

struct engine {
    sampler s;
    record r;
    setup_fields setup;
    arrays_fields arrays;
    grid_fields grid;
    blocks blocks;
    counting_tables counting;
    factor_group *groups;
    int n_groups, all_two;
    stepper step;
    uint64_t joint_key;
    const double *uniforms; /* uniform numbers from elsewhere: of update `driving_from` and later; or NULL */
    int64_t uniforms_from;
    weight_table *tables;  /* [n_tables], position / SHARD each; one alone where positions do not own variables */
    memo *memos;           /* likewise */
    void *places;          /* the memory of s.places */
    int64_t n_tables;
    flips *flips;          /* [shards] */
    uint8_t *byte_counts;          /* counts of the latest sweeps, not yet in arrays.counts; or NULL */
    atomic_int waiting, add_flip, failed;
    thread_state *threads;
    const loops *loops;
};

/* Of the updates number from .. to - 1, all of one sweep, the first ones that one call of a loop can take. */
typedef struct {
    const int32_t *order;
    const double *u;
    int64_t position, n;
} chunk;

static ALWAYS_INLINE chunk next_chunk(engine *e, thread_state *t, int64_t from, int64_t to) {
    const int64_t block = from / UNIFORM_BLOCK, at = from % UNIFORM_BLOCK;
    const int64_t position = from % e->setup.n_steps, shard = position / SHARD;
    chunk p = {e->setup.order ? e->setup.order + position : NULL, t->u + at, position, UNIFORM_BLOCK - at};
    if (p.n > to - from) p.n = to - from;
    if (p.n > (shard + 1) * SHARD - position) p.n = (shard + 1) * SHARD - position;
    if (e->uniforms) {
        p.u = e->uniforms + (from - e->uniforms_from);
    } else if ((e->s.w.draw == DRAW_RANDOM || e->s.w.draw == DRAW_GENERAL) && t->block != block) {
        uniform_block(e->arrays.keys[0], block, t->u);
        t->block = block;
    }
    if (e->setup.scan == SCAN_RANDOM) {
        if (t->order_block != block) {
            uint64_t raw[UNIFORM_BLOCK];
            raw_block(e->arrays.keys[1], block, raw);
            for (int j = 0; j < UNIFORM_BLOCK; j++) t->order[j] = (int32_t)below(raw[j], (uint64_t)e->s.m.c.n);
            t->order_block = block;
        }
        p.order = t->order + at;
    }
    if (e->n_tables) {
        t->w.table = e->tables + (e->n_tables > 1 ? shard : 0);
        t->w.memo = e->memos + (e->n_tables > 1 ? shard : 0);
    }
    t->w.flips = e->flips + shard; /* goes on where it stood, so that the product is the same however the run is cut */
    return p;
}

/* Steps from .. to - 1 of the sweep that began with update `start`: each block when its last variable's turn comes. Not
 * inlined into run_alone, where it would be a fifth slower. */
static __attribute__((noinline)) void advance_blocks(engine *e, thread_state *t, int64_t start, int64_t from, int64_t to) {
    blocks *b = &e->blocks;
    const int herds = e->s.w.draw != DRAW_RANDOM;
    t->w.table = e->tables;
    for (int64_t p = from; p < to; p++) {
        const int64_t i = e->setup.order ? e->setup.order[p] : p;
        b->begin = b->first[p];
        b->end = b->last[p];
        if (!extend_filter(b, &e->s.m, i, e->s.x)) {
            t->w.fault = IMPOSSIBLE;
            t->w.fault_variable = i;
            return;
        }
        if (herds) hash_outside(b, &e->s.m, i, e->s.x);
        if (i < b->end) continue;
        for (int64_t j = i; j >= b->begin; j--) {
            const int64_t number = start + p - (i - j), block = number / UNIFORM_BLOCK;
            if (!herds && t->block != block) uniform_block(e->arrays.keys[0], block, t->u);
            t->block = block;
            sample_backward(b, &e->s, &t->w, j, j == i, t->u[number % UNIFORM_BLOCK]);
            if (t->w.fault) return;
        }
    }
}

static void sum_joint_key(engine *e) {
    e->joint_key = 0;
    for (int64_t i = 0; i < e->s.m.c.n; i++) e->joint_key += e->s.w.multipliers[i] * e->s.x[i];
}

static void begin_sweep(engine *e, int64_t sweep) {
    const double *betas = e->setup.betas;
    e->s.conditional_sums = sweep >= e->s.plan.burn_in ? e->arrays.conditional_sums : NULL;
    if (betas && e->s.m.unary_step && sweep % EXACT_SWEEPS) step_beta(&e->s.m, betas[sweep]);
    else if (betas) set_beta(&e->s.m, betas[sweep]);
    if (e->blocks.first) scale_blocks(&e->blocks, e->s.m.beta);
    if (e->s.x != e->s.y) memcpy(e->s.y, e->s.x, e->s.m.c.n * sizeof(state_t));
}

/* 0, or IMPOSSIBLE where a Jacobi sweep has left the support. */
static int64_t end_sweep(engine *e, int64_t sweep) {
    const int64_t n_shards = (e->setup.n_steps + SHARD - 1) / SHARD;
    const int jacobi = e->s.x != e->s.y;
    int anew = jacobi || (e->r.options.tracks_log_potential && (!e->s.tracks || e->s.m.beta < SMALLEST_BETA || sweep % RESUM_SWEEPS == RESUM_SWEEPS - 1));
    double gained = 0.0;
    for (int64_t k = 0; e->s.tracks && k < n_shards; k++) {
        const double flip_log_gain = flips_log_gain(e->flips + k, e->s.m.beta);
        add_gain(&e->r, flip_log_gain);
        gained += flip_log_gain;
        e->flips[k] = NO_FLIPS;
    }
    /* What is left of a huge penalty is its rounding. */
    anew |= e->s.tracks && fabs(gained) > LARGE_GAIN * (1.0 + fabs(e->r.log_potential));
    if (jacobi) {
        state_t *swapped = e->s.y;
        e->s.y = (state_t *)e->s.x;
        e->s.x = swapped;
        if (e->s.w.multipliers) sum_joint_key(e);
    }
    if (anew) {
        e->r.log_potential = state_log_potential(e->groups, e->n_groups, e->s.x);
        e->r.carry = 0.0;
        if (jacobi && e->r.log_potential == -INFINITY) return IMPOSSIBLE;
    }
    record_sweep(&e->r, &e->arrays, e->groups, e->n_groups, e->s.x, e->s.m.c.n, sweep);
    return 0;
}

/* Counts the labels of the variables begin .. end - 1 at the end of a sweep. */
static void count_sweep(engine *e, int64_t sweep, int64_t begin, int64_t end) {
    const int64_t kept = sweep + 1 - e->s.plan.burn_in;
    if (!e->byte_counts || kept <= 0) return;
    tally_states(e->byte_counts, &e->s.m, e->s.x, e->all_two, begin, end);
    if (kept % MAX_BYTE_COUNT == 0) flush_counts(e->byte_counts, e->arrays.counts, rows_before(&e->s.m, begin), rows_before(&e->s.m, end));
}

/* Updates from .. to - 1 on one thread; returns a fault. */
static int64_t advance_serial(engine *e, thread_state *t, int64_t from, int64_t to) {
    const int64_t n_steps = e->setup.n_steps;
    while (from < to) {
        const int64_t sweep = from / n_steps, start = sweep * n_steps;
        const int64_t stop = start + n_steps < to ? start + n_steps : to;
        if (from == start) begin_sweep(e, sweep);
        if (e->blocks.first) {
            advance_blocks(e, t, start, from - start, stop - start);
            from = stop;
        }
        while (from < stop && !t->w.fault) {
            const chunk p = next_chunk(e, t, from, stop);
            e->step(&e->s, &t->w, p.order, p.position, p.n, p.u);
            from += p.n;
        }
        if (!t->w.fault && stop == start + n_steps) t->w.fault = end_sweep(e, sweep);
        if (t->w.fault) return t->w.fault;
        if (stop == start + n_steps) count_sweep(e, sweep, 0, e->s.m.c.n);
    }
    return 0;
}

/* Waits until all threads are here. Sequentially consistent, so what was written before is seen after. */
static void barrier(engine *e) {
    const int add_flip = atomic_load(&e->add_flip);
    if (atomic_fetch_add(&e->waiting, 1) == e->setup.n_threads - 1) {
        atomic_store(&e->waiting, 0);
        atomic_store(&e->add_flip, add_flip + 1);
        return;
    }
    for (int spins = 0; atomic_load(&e->add_flip) == add_flip; spins++)
        if (spins > 1000) sched_yield();
}

/* Thread `me`'s share of positions begin .. end - 1: whole shards, but for the ends. */
static void thread_share(int64_t begin, int64_t end, int thread, int64_t n_threads, int64_t *from, int64_t *to) {
    const int64_t first = begin / SHARD, shards = (end + SHARD - 1) / SHARD - first;
    *from = (first + shards * thread / n_threads) * SHARD;
    *to = (first + shards * (thread + 1) / n_threads) * SHARD;
    if (*from < begin) *from = begin;
    if (*to > end) *to = end;
}

/* Whole sweeps first .. last - 1 on n_threads threads, each calling this with its own number and state; the same
 * result as run_alone. Where one has a fault all end after that sweep, so that none waits for ever. */
static int64_t advance_parallel(engine *e, thread_state *t, int thread, int64_t first, int64_t last) {
    const int64_t n = e->s.m.c.n, n_threads = e->setup.n_threads;
    for (int64_t sweep = first; sweep < last; sweep++) {
        const int64_t start = sweep * e->setup.n_steps;
        if (thread == 0) begin_sweep(e, sweep);
        barrier(e);
        for (int64_t c = 0; c < e->setup.n_colour_starts - 1; c++) {
            int64_t from, to;
            thread_share(e->setup.colour_starts[c], e->setup.colour_starts[c + 1], thread, n_threads, &from, &to);
            while (from < to && !t->w.fault) {
                const chunk p = next_chunk(e, t, start + from, start + to);
                e->step(&e->s, &t->w, p.order, p.position, p.n, p.u);
                from += p.n;
            }
            if (t->w.fault) atomic_store(&e->failed, 1);
            barrier(e);
        }
        if (thread == 0) {
            const int64_t fault = end_sweep(e, sweep);
            if (fault) atomic_store(&e->failed, 1);
            if (fault && !t->w.fault) t->w.fault = fault;
        }
        barrier(e);
        if (atomic_load(&e->failed)) break;
        count_sweep(e, sweep, n * thread / n_threads, n * (thread + 1) / n_threads);
        barrier(e);
    }
    return t->w.fault;
}

#endif
