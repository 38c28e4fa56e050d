/* Counting the states of a small graph of two labels: what an update needs is looked up by the state of all variables.
 *
 * The labels are those of the other loops, bit for bit. Variable i is bit n - 1 - i of a state, as in the joint. */
#ifndef HERDNER_GIBBS_COUNT_H
#define HERDNER_GIBBS_COUNT_H

#include "gibbs_run.h"

enum { MOST_COUNTED = 16 }; /* variables */

typedef struct {
    double *odds;        /* [n, 2^n]: of label 0 against label 1 of a variable in a state, whatever its own label */
    int64_t *p;          /* the probability of label 1 in 2^-32 */
    int64_t *keys;       /* of the herding weight; of random bins the lower one of the two */
    double *upper;       /* of random bins: the chance of the upper one in 2^-32 */
    int64_t *aims;       /* [bins + 1]: of random bins, the p of each */
    int64_t focus;       /* the variable after whose update, the last of a sweep, states are counted */
    uint64_t *visits;    /* [2, 2^n]: samples of a state; row 1: those that used the upper one of two keys */
    uint64_t *returns;   /* [2, 2^n]: samples of a state by the label of the focus when its group was last met; or NULL */
    const int32_t *groups; /* [2^n]: of the states of the others; whatever the focus's own label */
    int8_t *last;        /* [groups]: that label, or -1 */
} counting;

static double small_odds(const sampler *s, int64_t i) {
    return s->m.grid ? grid_odds(&s->m, i, s->x) : odds_of(&s->m, i, s->x);
}

/* Fills the tables; the state is as before. */
static void tabulate(run *r, const counting *c) {
    sampler *s = &r->s;
    const int64_t n = s->m.n;
    label before[MOST_COUNTED];
    memcpy(before, s->x, n * sizeof(label));
    for (int64_t k = 0; k <= s->bins; k++) c->aims[k] = (k << 32) / s->bins;
    for (int64_t state = 0; state < (int64_t)1 << n; state++) {
        for (int64_t i = 0; i < n; i++) s->y[i] = (label)(state >> (n - 1 - i) & 1);
        if (s->place) sum_state(r);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = i << n | state;
            const double odds = small_odds(s, i);
            const int64_t p = fixed_p(odds);
            c->odds[at] = odds;
            c->p[at] = p;
            const uint64_t scaled = (uint64_t)p * (uint64_t)s->bins;
            c->upper[at] = (double)(uint32_t)scaled;
            c->keys[at] = (int64_t)(s->draw == DRAW_RANDOM            ? 0
                                    : s->sharing == SHARE_BINS        ? bin_of(p, s->bins)
                                    : s->sharing == SHARE_RANDOM_BINS ? scaled >> 32
                                                                      : key_of(s, i));
        }
    }
    memcpy(s->y, before, n * sizeof(label));
    if (s->place) sum_state(r);
}

enum { COUNT_RANDOM, COUNT_FRACTIONS, COUNT_RANDOM_BINS, COUNT_ANY };

static ALWAYS_INLINE int64_t count_loop(run *r, thread_state *t, const counting *c, int64_t first, int64_t last,
                                        const int how) {
    const sampler own = r->s, *restrict const s = &own;
    const int64_t n = s->m.n, n_steps = r->n_steps, half = (int64_t)1 << n;
    int64_t state = 0, number = first * n_steps;
    if (r->n_tables) t->w.table = r->tables;
    for (int64_t i = 0; i < n; i++) state |= (int64_t)s->x[i] << (n - 1 - i);
    for (int64_t sweep = first; sweep < last; sweep++) {
        int64_t upper = 0;
        for (int64_t j = 0; j < n_steps; j++, number++) {
            const int64_t i = r->order ? r->order[j] : j, shift = n - 1 - i;
            const int64_t others = state & ~((int64_t)1 << shift), at = i << n | others;
            double u = 0.0;
            if (how != COUNT_FRACTIONS && r->driving) {
                u = r->driving[number - r->driving_from];
            } else if (how != COUNT_FRACTIONS) {
                const int64_t block = number / UNIFORM_BLOCK;
                if (t->block != block) {
                    uniform_block(r->draw_key, block, t->u);
                    t->block = block;
                }
                u = t->u[number % UNIFORM_BLOCK];
            }
            int64_t x;
            if (how == COUNT_RANDOM) {
                x = draws_one(c->odds[at], u);
            } else if (how == COUNT_FRACTIONS) {
                x = herd_fraction(s->fractions + first_key(s, i) + c->keys[at], c->p[at]);
            } else if (how == COUNT_RANDOM_BINS) {
                upper = u * 4294967296.0 < c->upper[at];
                const int64_t key = c->keys[at] + upper;
                x = herd_fraction(s->fractions + first_key(s, i) + key, c->aims[key]);
            } else {
                int64_t p = c->p[at];
                int drawn = draws_one(c->odds[at], u);
                double real = 1.0 / (1.0 + c->odds[at]);
                uint64_t key = (uint64_t)c->keys[at];
                if (s->sharing == SHARE_RANDOM_BINS) {
                    key = random_bin(s, u, &p, &real, &drawn);
                    upper = key != (uint64_t)c->keys[at];
                }
                x = herd_two_key(s, &t->w, i, key, p, real, drawn);
                if (t->w.fault) return t->w.fault;
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
    for (int64_t i = 0; i < n; i++) r->s.y[i] = (label)(state >> (n - 1 - i) & 1);
    if (s->place) sum_state(r);
    return 0;
}

/* Sweeps first .. last - 1, whose last update must be that of the focus; returns a fault. */
static int64_t count_sweeps(run *r, thread_state *t, const counting *c, int64_t first, int64_t last) {
    if (r->s.draw == DRAW_RANDOM) return count_loop(r, t, c, first, last, COUNT_RANDOM);
    if (r->s.fractions && r->s.sharing == SHARE_RANDOM_BINS) return count_loop(r, t, c, first, last, COUNT_RANDOM_BINS);
    if (r->s.fractions) return count_loop(r, t, c, first, last, COUNT_FRACTIONS);
    return count_loop(r, t, c, first, last, COUNT_ANY);
}

#endif
