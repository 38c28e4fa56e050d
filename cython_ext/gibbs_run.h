/* A run: sweeps in pieces of any size, on one thread or several that take a share of every colour. */
#ifndef HERDNER_GIBBS_RUN_H
#define HERDNER_GIBBS_RUN_H

#include <sched.h>
#include <stdatomic.h>

#include "gibbs_blocks.h"
#include "gibbs_loops.h"
#include "gibbs_record.h"

/* Positions of a sweep whose gains are summed, and whose hashed weights live, together: what threads share out. */
enum { SHARD = 4096 };

/* Sweeps after which annealing in steps takes exponentials anew. */
enum { EXACT_HEAT = 32 };

typedef struct {
    sampler s;
    record r;
    factor_group *groups;
    int n_groups, loop, all_two;
    int64_t n_steps;              /* of a sweep */
    const int32_t *order;         /* [n_steps], or NULL: 0, 1, .. */
    int random_scan, jacobi;
    uint64_t draw_key, scan_key;
    const double *driving;        /* uniform numbers from elsewhere: of update `driving_from` and later; or NULL */
    int64_t driving_from;
    const double *betas;          /* [n_sweeps], or NULL: heated once */
    const int64_t *colour_starts; /* [n_colours + 1] positions, for threads */
    int64_t n_colours;
    weight_table *tables;         /* [n_tables], position / SHARD each; one alone where positions do not own variables */
    int64_t n_tables;
    double *gains;                /* [shards, 4], as in `worker` */
    blocks *blocks;               /* variables resampled together, or NULL */
    atomic_int waiting, turn, failed;
    int n_threads;
} run;

typedef struct {
    worker w;
    int64_t block;                /* whose numbers are in u */
    double u[UNIFORM_BLOCK];
    int64_t order_block;
    int32_t order[UNIFORM_BLOCK];
} thread_state;

/* Updates number from .. to - 1, all of one sweep. */
static void advance(run *r, thread_state *t, int64_t from, int64_t to) {
    const stepper step = choose_stepper(r->loop, r->s.draw);
    const int uses_u = r->s.draw == DRAW_RANDOM || r->s.draw == DRAW_ANY;
    const int64_t sweep_start = from / r->n_steps * r->n_steps;
    while (from < to) {
        const int64_t block = from / UNIFORM_BLOCK, at = from % UNIFORM_BLOCK, position = from - sweep_start;
        const int64_t shard = position / SHARD;
        int64_t n = UNIFORM_BLOCK - at < to - from ? UNIFORM_BLOCK - at : to - from;
        if (n > (shard + 1) * SHARD - position) n = (shard + 1) * SHARD - position;
        const double *u = t->u + at;
        if (r->driving) {
            u = r->driving + (from - r->driving_from);
        } else if (uses_u && t->block != block) {
            uniform_block(r->draw_key, block, t->u);
            t->block = block;
        }
        const int32_t *order = r->order ? r->order + position : NULL;
        if (r->random_scan) {
            if (t->order_block != block) {
                uint64_t raw[UNIFORM_BLOCK];
                raw_block(r->scan_key, block, raw);
                for (int j = 0; j < UNIFORM_BLOCK; j++) t->order[j] = (int32_t)below(raw[j], (uint64_t)r->s.m.n);
                t->order_block = block;
            }
            order = t->order + at;
        }
        if (r->n_tables) t->w.table = r->tables + (r->n_tables > 1 ? shard : 0);
        /* Goes on where it stood, so that the sum is the same however the run is cut. */
        memcpy(t->w.gain, r->gains + 4 * shard, sizeof(t->w.gain));
        step(&r->s, &t->w, order, position, n, u);
        memcpy(r->gains + 4 * shard, t->w.gain, sizeof(t->w.gain));
        if (t->w.fault) return;
        from += n;
    }
}

/* The same where the variables, in their order, are resampled block by block, each when its last variable's turn comes. */
static void advance_blocks(run *r, thread_state *t, int64_t from, int64_t to) {
    const int64_t sweep_start = from / r->n_steps * r->n_steps;
    for (int64_t i = from - sweep_start; i < to - sweep_start; i++) {
        if (!filter_next(r->blocks, &r->s.m, i, r->s.x)) {
            t->w.fault = IMPOSSIBLE;
            t->w.faulty = i;
            return;
        }
        if (i + 1 < r->s.m.n && r->blocks->first[i + 1] == r->blocks->first[i]) continue;
        for (int64_t j = i; j >= r->blocks->first[i]; j--) {
            const int64_t block = (sweep_start + j) / UNIFORM_BLOCK;
            if (t->block != block) uniform_block(r->draw_key, block, t->u);
            t->block = block;
            sample_back(r->blocks, &r->s, j, j == i, t->u[(sweep_start + j) % UNIFORM_BLOCK]);
        }
    }
}

static void sum_state(run *r) {
    *r->s.state_sum = 0;
    for (int64_t i = 0; i < r->s.m.n; i++) *r->s.state_sum += r->s.place[i] * r->s.x[i];
}

static void begin_sweep(run *r, int64_t sweep) {
    r->s.conditional_sums = sweep >= r->r.burn_in ? r->r.conditional_sums : NULL;
    if (r->betas && r->s.m.unary_step && sweep % EXACT_HEAT) heat_step(&r->s.m, r->betas[sweep]);
    else if (r->betas) heat(&r->s.m, r->betas[sweep]);
    if (r->blocks) heat_blocks(r->blocks, r->s.m.beta);
    if (r->jacobi) memcpy(r->s.y, r->s.x, r->s.m.n * sizeof(label));
}

/* 0, or IMPOSSIBLE where a Jacobi sweep has left the support. */
static int64_t end_sweep(run *r, int64_t sweep) {
    const int64_t n_shards = (r->n_steps + SHARD - 1) / SHARD;
    for (int64_t k = 0; k < n_shards; k++) {
        double *g = r->gains + 4 * k;
        add_gain(&r->r, (g[0] + g[1]) + (g[2] + g[3]));
        memset(g, 0, 4 * sizeof(double));
    }
    if (r->jacobi) {
        label *swapped = r->s.y;
        r->s.y = (label *)r->s.x;
        r->s.x = swapped;
        r->r.log_potential = state_log_potential(r->groups, r->n_groups, r->s.x);
        r->r.carry = 0.0;
        if (r->s.place) sum_state(r);
        if (r->r.log_potential == -INFINITY) return IMPOSSIBLE;
    }
    if (r->blocks && r->s.follow) {
        r->r.log_potential = state_log_potential(r->groups, r->n_groups, r->s.x);
        r->r.carry = 0.0;
    }
    record_sweep(&r->r, r->groups, r->n_groups, r->s.x, r->s.m.n, sweep);
    return 0;
}

/* Updates from .. to - 1 on one thread; returns a fault. */
static int64_t run_alone(run *r, thread_state *t, int64_t from, int64_t to) {
    while (from < to) {
        const int64_t sweep = from / r->n_steps, sweep_end = (sweep + 1) * r->n_steps;
        const int64_t stop = sweep_end < to ? sweep_end : to;
        if (from % r->n_steps == 0) begin_sweep(r, sweep);
        (r->blocks ? advance_blocks : advance)(r, t, from, stop);
        if (t->w.fault) return t->w.fault;
        if (stop == sweep_end) {
            const int64_t fault = end_sweep(r, sweep);
            if (fault) return fault;
            if (r->r.counts && sweep >= r->r.burn_in) count_labels(&r->r, &r->s.m, r->s.x, r->all_two, 0, r->s.m.n);
        }
        from = stop;
    }
    return 0;
}

/* Waits until all threads are here. Sequentially consistent, so what was written before is seen after. */
static void meet(run *r) {
    const int turn = atomic_load(&r->turn);
    if (atomic_fetch_add(&r->waiting, 1) == r->n_threads - 1) {
        atomic_store(&r->waiting, 0);
        atomic_store(&r->turn, turn + 1);
        return;
    }
    for (int spins = 0; atomic_load(&r->turn) == turn; spins++)
        if (spins > 1000) sched_yield();
}

/* Thread `me`'s share of positions begin .. end - 1: whole shards, but for the ends. */
static void share_of(int64_t begin, int64_t end, int me, int n_threads, int64_t *from, int64_t *to) {
    const int64_t first = begin / SHARD, shards = (end + SHARD - 1) / SHARD - first;
    *from = (first + shards * me / n_threads) * SHARD;
    *to = (first + shards * (me + 1) / n_threads) * SHARD;
    if (*from < begin) *from = begin;
    if (*to > end) *to = end;
}

/* Whole sweeps first .. last - 1 on n_threads threads, each calling this with its own number and state; the same
 * result as run_alone. Where one has a fault all end after that sweep, so that none waits for ever. */
static int64_t run_together(run *r, thread_state *t, int me, int64_t first, int64_t last) {
    int64_t fault = 0;
    for (int64_t sweep = first; sweep < last; sweep++) {
        if (me == 0) begin_sweep(r, sweep);
        meet(r);
        for (int64_t c = 0; c < r->n_colours; c++) {
            int64_t from, to;
            share_of(r->colour_starts[c], r->colour_starts[c + 1], me, r->n_threads, &from, &to);
            if (from < to && !t->w.fault) advance(r, t, sweep * r->n_steps + from, sweep * r->n_steps + to);
            if (t->w.fault) atomic_store(&r->failed, 1);
            meet(r);
        }
        if (me == 0) {
            fault = end_sweep(r, sweep);
            if (fault) atomic_store(&r->failed, 1);
        }
        meet(r);
        if (atomic_load(&r->failed)) break;
        const int64_t n = r->s.m.n;
        if (r->r.counts && sweep >= r->r.burn_in)
            count_labels(&r->r, &r->s.m, r->s.x, r->all_two, n * me / r->n_threads, n * (me + 1) / r->n_threads);
        meet(r);
    }
    return t->w.fault ? t->w.fault : fault;
}

#endif
