/* Advancing a run: sweeps in chunks of any size, on one thread or on several that share every colour of a sweep. */
#include "run.h"

#ifdef _WIN32
__declspec(dllimport) int __stdcall SwitchToThread(void); /* windows.h would define many other names */
#define sched_yield SwitchToThread
#else
#include <sched.h>
#endif

_Static_assert(N_FORMS == 2, "a form that is not CIRCULAR is THRESHOLD");
_Static_assert(N_SCANS == 5, "only SCAN_RANDOM draws an order; the order of another scan is an array, or NULL");

/* Annealing in equal steps computes exact exponentials after so many sweeps. */
enum { EXACT_SWEEPS = 32 };

/* The log-potential is summed over all factors again where the tracked one may have lost digits: after so many sweeps, near
 * infinite temperature, and after a sweep that changed it by a much larger amount than its value. */
enum { RESUM_SWEEPS = 1024 };
#define SMALLEST_BETA 1e-3
#define LARGE_GAIN 1e6

/* The first of the updates from .. to - 1 (all of one sweep) that one call of a loop can do. */
typedef struct {
    const int32_t *order;
    const double *u;
    int64_t position, n;
} chunk;

static chunk next_chunk(engine *e, worker *w, int64_t from, int64_t to) {
    const int64_t block = from / UNIFORM_BLOCK, at = from % UNIFORM_BLOCK;
    const int64_t position = from % e->setup.n_steps, shard = position / SHARD;
    chunk c = {e->setup.order ? e->setup.order + position : NULL, w->uniforms + at, position, UNIFORM_BLOCK - at};
    if (c.n > to - from) c.n = to - from;
    if (c.n > (shard + 1) * SHARD - position) c.n = (shard + 1) * SHARD - position;
    if (e->uniforms) {
        c.u = e->uniforms + (from - e->uniforms_from);
    } else if ((e->s.w.draw == DRAW_RANDOM || e->s.w.draw == DRAW_GENERAL) && w->uniform_index != block) {
        e->loops.uniform_block(e->s.uniform_key, block, w->uniforms);
        w->uniform_index = block;
    }
    if (e->setup.scan == SCAN_RANDOM) {
        if (w->order_index != block) {
            uint64_t raw[UNIFORM_BLOCK];
            e->loops.raw_block(e->arrays.keys[1], block, raw);
            for (int j = 0; j < UNIFORM_BLOCK; j++) w->order[j] = (int32_t)below(raw[j], (uint64_t)e->s.m.c.n);
            w->order_index = block;
        }
        c.order = w->order + at;
    }
    if (e->n_tables) {
        w->table = e->tables + (e->n_tables > 1 ? shard : 0);
        w->store = e->stores + (e->n_tables > 1 ? shard : 0);
    }
    w->flips = e->flips + shard; /* a chunk continues the product of the chunk before, so chunk sizes do not matter */
    return c;
}

void sum_joint_key(engine *e) {
    e->joint_key = 0;
    for (int64_t i = 0; i < e->s.m.c.n; i++) e->joint_key += e->s.w.multipliers[i] * e->s.x[i];
}

static void begin_sweep(engine *e, int64_t sweep) {
    const double *betas = e->setup.betas;
    e->s.conditional_sums = sweep >= e->s.plan.burn_in ? e->arrays.conditional_sums : NULL;
    if (betas && e->s.m.unary_step && sweep % EXACT_SWEEPS) e->loops.step_beta(&e->s.m, betas[sweep]);
    else if (betas) e->loops.set_beta(&e->s.m, betas[sweep]);
    if (e->blocks.first) scale_blocks(&e->blocks, e->s.m.beta);
    if (e->s.x != e->s.y) memcpy(e->s.y, e->s.x, e->s.m.c.n * sizeof(state_t));
}

/* Update the log-potential and record the sweep. Returns 0, or IMPOSSIBLE if a Jacobi sweep has left the support. */
static int64_t end_sweep(engine *e, int64_t sweep) {
    const int64_t n_shards = (e->setup.n_steps + SHARD - 1) / SHARD;
    const int jacobi = e->s.x != e->s.y;
    const int wanted = (int)e->r.options.tracks_log_potential;
    int resum = jacobi || (wanted && (!e->s.tracks || e->s.m.beta < SMALLEST_BETA || sweep % RESUM_SWEEPS == RESUM_SWEEPS - 1));
    double gain = 0.0;
    for (int64_t k = 0; e->s.tracks && k < n_shards; k++) {
        const double shard_gain = flips_log_gain(e->flips + k, e->s.m.beta);
        add_gain(&e->r, shard_gain);
        gain += shard_gain;
        e->flips[k] = NO_FLIPS;
    }
    /* The digits that remain after a huge penalty are rounding errors. */
    resum |= e->s.tracks && fabs(gain) > LARGE_GAIN * (1.0 + fabs(e->r.log_potential));
    if (jacobi) {
        state_t *swapped = e->s.y;
        e->s.y = (state_t *)e->s.x;
        e->s.x = swapped;
        if (e->s.w.multipliers) sum_joint_key(e);
    }
    if (resum) {
        e->r.log_potential = state_log_potential(e->groups, e->n_groups, e->s.x);
        e->r.carry = 0.0;
        if (jacobi && e->r.log_potential == -INFINITY) return IMPOSSIBLE;
    }
    record_sweep(&e->r, &e->arrays, e->groups, e->n_groups, e->s.x, e->s.m.c.n, sweep);
    return 0;
}

/* Count the states of variables begin .. end - 1 at the end of a sweep. */
static void count_sweep(engine *e, int64_t sweep, int64_t begin, int64_t end) {
    if (sweep < e->s.plan.burn_in || !e->byte_counts) return;
    e->loops.tally_states(e->byte_counts, &e->s.m, e->s.x, e->all_binary, begin, end);
    if ((sweep - e->s.plan.burn_in) % MAX_BYTE_COUNT == MAX_BYTE_COUNT - 1)
        flush_counts(e->byte_counts, e->arrays.counts, rows_before(&e->s.m, begin), rows_before(&e->s.m, end));
}

int64_t engine_advance(engine *e, int64_t from, int64_t to) {
    worker *w = e->workers;
    const int64_t n_steps = e->setup.n_steps;
    while (from < to) {
        const int64_t sweep = from / n_steps, start = sweep * n_steps;
        const int64_t stop = start + n_steps < to ? start + n_steps : to;
        if (from == start) begin_sweep(e, sweep);
        if (e->blocks.first) {
            w->table = e->tables;
            e->loops.step_blocks(&e->blocks, &e->s, w, e->setup.order, start, from - start, stop - start);
            from = stop;
        }
        while (from < stop && !w->fault) {
            const chunk c = next_chunk(e, w, from, stop);
            e->step(&e->s, w, c.order, c.position, c.n, c.u);
            from += c.n;
        }
        if (!w->fault && stop == start + n_steps) w->fault = end_sweep(e, sweep);
        if (w->fault) return w->fault;
        if (stop == start + n_steps) count_sweep(e, sweep, 0, e->s.m.c.n);
    }
    return 0;
}

/* Wait until all threads have arrived. The atomics are sequentially consistent, so all earlier writes are visible after. */
static void barrier(engine *e) {
    const int round = atomic_load(&e->barrier_round);
    if (atomic_fetch_add(&e->n_arrived, 1) == e->setup.n_threads - 1) {
        atomic_store(&e->n_arrived, 0);
        atomic_store(&e->barrier_round, round + 1);
        return;
    }
    for (int spins = 0; atomic_load(&e->barrier_round) == round; spins++)
        if (spins > 1000) sched_yield();
}

/* A thread's share of positions begin .. end - 1. It consists of whole shards, except at the ends. */
static void thread_share(int64_t begin, int64_t end, int thread, int64_t n_threads, int64_t *from, int64_t *to) {
    const int64_t first = begin / SHARD, shards = (end + SHARD - 1) / SHARD - first;
    *from = (first + shards * thread / n_threads) * SHARD;
    *to = (first + shards * (thread + 1) / n_threads) * SHARD;
    if (*from < begin) *from = begin;
    if (*to > end) *to = end;
}

/* The result equals that of engine_advance. After a fault of one thread all threads end after that sweep, so that none
 * waits for ever. */
int64_t engine_advance_parallel(engine *e, int thread, int64_t first, int64_t last) {
    worker *w = &e->workers[thread];
    const int64_t n = e->s.m.c.n, n_threads = e->setup.n_threads;
    for (int64_t sweep = first; sweep < last; sweep++) {
        const int64_t start = sweep * e->setup.n_steps;
        if (thread == 0) begin_sweep(e, sweep);
        barrier(e);
        for (int64_t colour = 0; colour < e->setup.n_colour_starts - 1; colour++) {
            const int64_t *ends = e->setup.colour_starts + colour;
            int64_t from, to;
            thread_share(ends[0], ends[1], thread, n_threads, &from, &to);
            while (from < to && !w->fault) {
                const chunk c = next_chunk(e, w, start + from, start + to);
                e->step(&e->s, w, c.order, c.position, c.n, c.u);
                from += c.n;
            }
            if (w->fault) atomic_store(&e->failed, 1);
            barrier(e);
        }
        if (thread == 0) {
            const int64_t fault = end_sweep(e, sweep);
            if (fault) atomic_store(&e->failed, 1);
            if (fault && !w->fault) w->fault = fault;
        }
        barrier(e);
        if (atomic_load(&e->failed)) break;
        count_sweep(e, sweep, n * thread / n_threads, n * (thread + 1) / n_threads);
        barrier(e);
    }
    return w->fault;
}
