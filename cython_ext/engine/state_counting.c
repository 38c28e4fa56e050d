/* Counting the states of a small graph of binary variables. What an update needs is looked up by the joint state.
 *
 * The states are those of the other loops, bit for bit. Variable i is bit n - 1 - i of a joint state. The tables, part
 * COUNTING, are described by herdner.studies.convergence.counts.CountingTables. */
#include "binary_loop.h"
#include "run.h"

/* The odds of state 0 against state 1. */
static double small_odds(const sampler *s, int64_t i) {
    return s->m.grid ? grid_odds(&s->m, i, s->x) : odds_of(&s->m, i, s->x);
}

/* Fill the tables; the state of the run stays as it is. */
void engine_fill_counting_tables(engine *e) {
    const counting_tables *c = &e->counting;
    sampler *s = &e->s;
    const int64_t n = s->m.c.n;
    state_t before[MAX_COUNTED_VARIABLES];
    memcpy(before, s->x, n * sizeof(state_t));
    for (int64_t k = 0; k <= s->w.n_bins; k++) c->aims[k] = (k << 32) / s->w.n_bins;
    for (int64_t state = 0; state < (int64_t)1 << n; state++) {
        for (int64_t i = 0; i < n; i++) s->y[i] = (state_t)(state >> (n - 1 - i) & 1);
        if (s->w.multipliers) sum_joint_key(e);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = i << n | state;
            const double odds = small_odds(s, i);
            const int64_t p = fixed_probability(odds);
            c->odds[at] = odds;
            c->p[at] = p;
            const uint64_t scaled = (uint64_t)p * (uint64_t)s->w.n_bins;
            c->upper[at] = (double)(uint32_t)scaled;
            c->keys[at] = (int64_t)(s->w.draw == DRAW_RANDOM            ? 0
                                    : s->w.sharing == SHARE_BINS        ? bin_of(p, s->w.n_bins)
                                    : s->w.sharing == SHARE_RANDOM_BINS ? scaled >> 32
                                                                      : key_of(s, i));
        }
    }
    memcpy(s->y, before, n * sizeof(state_t));
    if (s->w.multipliers) sum_joint_key(e);
}

enum { COUNT_RANDOM, COUNT_FRACTIONS, COUNT_RANDOM_BINS, COUNT_GENERAL };

static ALWAYS_INLINE int64_t count_loop(engine *e, worker *w, int64_t first, int64_t last, const int how) {
    const counting_tables *c = &e->counting;
    const sampler own = e->s, *restrict const s = &own;
    const int64_t n = s->m.c.n, n_steps = e->setup.n_steps, half = (int64_t)1 << n;
    int64_t state = 0, number = first * n_steps;
    if (e->n_tables) w->table = e->tables;
    for (int64_t i = 0; i < n; i++) state |= (int64_t)s->x[i] << (n - 1 - i);
    for (int64_t sweep = first; sweep < last; sweep++) {
        int64_t upper = 0;
        for (int64_t j = 0; j < n_steps; j++, number++) {
            const int64_t i = e->setup.order ? e->setup.order[j] : j, shift = n - 1 - i;
            const int64_t others = state & ~((int64_t)1 << shift), at = i << n | others;
            double u = 0.0;
            if (how != COUNT_FRACTIONS && e->uniforms) {
                u = e->uniforms[number - e->uniforms_from];
            } else if (how != COUNT_FRACTIONS) {
                const int64_t block = number / UNIFORM_BLOCK;
                if (w->uniform_index != block) {
                    e->loops.uniform_block(s->uniform_key, block, w->uniforms);
                    w->uniform_index = block;
                }
                u = w->uniforms[number % UNIFORM_BLOCK];
            }
            int64_t x;
            if (how == COUNT_RANDOM) {
                x = draws_one(c->odds[at], u);
            } else if (how == COUNT_FRACTIONS) {
                x = herd_fraction(s->fractions + first_weight(s, i) + c->keys[at], c->p[at]);
            } else if (how == COUNT_RANDOM_BINS) {
                upper = u * ONE < c->upper[at];
                const int64_t key = c->keys[at] + upper;
                x = herd_fraction(s->fractions + first_weight(s, i) + key, c->aims[key]);
            } else {
                int64_t p = c->p[at];
                int drawn = draws_one(c->odds[at], u);
                uint64_t key = (uint64_t)c->keys[at];
                if (s->w.sharing == SHARE_RANDOM_BINS) {
                    key = random_bin(s, u, &p, &drawn);
                    upper = key != (uint64_t)c->keys[at];
                }
                x = herd_binary(s, w, i, key, p, drawn);
                if (w->fault) return w->fault;
            }
            state = others | x << shift;
        }
        c->visits[upper * half + state]++;
        if (c->returns) {
            const int64_t shift = n - 1 - c->focus;
            int8_t *before = c->last + c->groups[state];
            if (*before >= 0) c->returns[*before * half + state]++;
            *before = (int8_t)(state >> shift & 1);
        }
    }
    for (int64_t i = 0; i < n; i++) e->s.y[i] = (state_t)(state >> (n - 1 - i) & 1);
    if (s->w.multipliers) sum_joint_key(e);
    return 0;
}

/* Do sweeps first .. last - 1, whose last update must be that of the focus. */
int64_t engine_count_states(engine *e, int64_t first, int64_t last) {
    worker *w = e->workers;
    if (e->s.w.draw == DRAW_RANDOM) return count_loop(e, w, first, last, COUNT_RANDOM);
    if (e->s.fractions && e->s.w.sharing == SHARE_RANDOM_BINS) return count_loop(e, w, first, last, COUNT_RANDOM_BINS);
    if (e->s.fractions) return count_loop(e, w, first, last, COUNT_FRACTIONS);
    return count_loop(e, w, first, last, COUNT_GENERAL);
}

