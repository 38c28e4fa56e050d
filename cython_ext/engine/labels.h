/* Variables of any number of labels: herding, the draw, the update, and the loop over variables of one number of labels.
 * Rows have a `width`, a multiple of 4, whose padding is 0. */
#ifndef HERDNER_LABELS_H
#define HERDNER_LABELS_H

#include "registers.h"

/* The label of the largest weight among those of positive p, ties to the smallest; p is added to all weights, and 1 is to
 * be taken from the one chosen. width: n rounded up to a multiple of 4; p is 0 above n. */
static ALWAYS_INLINE int add_and_choose(double *restrict weights, const double *restrict p, int width,
                                        const int circular, const double bound, int drawn, double *restrict decides) {
    quad tops = QUAD(-INFINITY);
    for (int k = 0; k < width; k += 4) {
        quad w, q, d;
        LOAD_QUAD(w, weights + k);
        LOAD_QUAD(q, p + k);
        d = WHERE(q > 0.0, circular ? w + q : w, QUAD(-INFINITY));
        tops = LARGER(d, tops);
        w += q;
        STORE_QUAD(weights + k, w);
        STORE_QUAD(decides + k, d);
    }
    quad other = HALVES_EXCHANGED(tops);
    tops = LARGER(other, tops);
    other = PAIRS_EXCHANGED(tops);
    tops = LARGER(other, tops);
    int x = -1;
    for (int from = 0; x < 0; from += 64) {
        uint64_t bits = 0;
        for (int k = from; k < width && k < from + 64; k += 4) {
            quad d;
            LOAD_QUAD(d, decides + k);
            bits |= mask_bits(d == tops) << (k - from);
        }
        if (bits) x = from + __builtin_ctzll(bits);
    }
    if (bound > 0.0 && tops[0] <= bound * ONE) x = drawn;
    return x;
}

/* Sums of w[0] .. w[k]: of four at a time, (a, a + b, (a + b) + c, (a + b) + (c + d)), added to those before. Returns their
 * total in each lane. The sums of all fours are worked out before they are added up, as each waits for those before. */
static ALWAYS_INLINE quad cumulate(const double *restrict w, double *restrict cumulative, int width) {
    const quad zero = QUAD(0.0);
    quad before;
    for (int k = 0; k < width; k += 4) {
        quad v;
        LOAD_QUAD(v, w + k);
        v += SHUFFLED(zero, v, 0, 4, 2, 6);
        const quad four = v + HALVES_EXCHANGED(v), first = SECONDS(v);
        v += SHUFFLED(zero, first, 0, 1, 4, 5);
        const quad sums = k ? v + before : v;
        STORE_QUAD(cumulative + k, sums);
        before = k ? before + SECONDS(four) : SECONDS(four);
    }
    return before;
}

/* The smallest label whose cumulative weight exceeds u times the total; labels of weight 0 never are. */
static ALWAYS_INLINE int pick(const double *restrict w, const double *restrict cumulative, int width, quad total, double u) {
    const quad at = QUAD(u) * total;
    for (int from = 0; from < width; from += 64) {
        uint64_t bits = 0;
        for (int k = from; k < width && k < from + 64; k += 4) {
            quad c;
            LOAD_QUAD(c, cumulative + k);
            bits |= mask_bits(c > at) << (k - from);
        }
        if (bits) return from + __builtin_ctzll(bits);
    }
    int x = width - 1; /* u * total was rounded up to the total */
    while (x > 0 && w[x] == 0.0) x--;
    return x;
}

/* The sum of a row, in each lane. */
static ALWAYS_INLINE quad total_of(const double *restrict w, int width) {
    quad sum, v;
    LOAD_QUAD(sum, w);
    for (int k = 4; k < width; k += 4) {
        LOAD_QUAD(v, w + k);
        sum += v;
    }
    sum += HALVES_EXCHANGED(sum);
    sum += PAIRS_EXCHANGED(sum);
    return sum;
}

/* p[k] in 2^-32, to the nearest; scale: 2^32 over the total, in each lane. What is 0 stays 0. Together they may miss 1 by some 2^-32, which shifts all weights alike. */
static ALWAYS_INLINE void fixed_labels_p(const double *restrict w, quad scale, double *restrict p, int width) {
    for (int k = 0; k < width; k += 4) {
        quad v;
        LOAD_QUAD(v, w + k);
        v = TO_NEAREST(v * scale);
        STORE_QUAD(p + k, v);
    }
}

/* A label drawn from whole p in 2^-32. */
static inline int pick_fixed(const double *p, int n, double u) {
    const double at = u * ONE;
    double sum = 0.0;
    int x = 0;
    for (int k = 0; k < n; k++) {
        if (p[k] > 0.0 && sum <= at) x = k;
        sum += p[k];
    }
    return x;
}

/* Herds with the weights of a key, whose start may be due; `place`: where they stand in a dense table. */
static ALWAYS_INLINE int herd_key(const sampler *s, worker *w, int64_t i, uint64_t key, uint64_t place, const double *p,
                                  double *decides, int n, int width, const int circular, const double bound, int drawn) {
    double *slot = signed_slot(s, w, i, key, place);
    if (!slot) return s->x[i];
    const uint64_t start = is_unborn(slot) ? mix_pair(s->weight_key, i, key) : 0;
    const int x = is_unborn(slot) ? start_and_choose(slot, p, n, width, circular, bound, drawn, start)
                                  : add_and_choose(slot, p, width, circular, bound, drawn, decides);
    slot[x] -= ONE;
    return x;
}

static int draw_labels_any(const sampler *s, worker *w, int64_t i, quad scale, int n, int width, double u) {
    int drawn = 0;
    if (s->w.draw == DRAW_RANDOM || s->plan.error_bound > 0.0) {
        const quad all = cumulate(w->w, w->cumulative, width);
        drawn = pick(w->w, w->cumulative, width, all, u);
    }
    if (s->w.draw == DRAW_RANDOM) return drawn;
    fixed_labels_p(w->w, scale, w->p, width);
    uint64_t key;
    if (s->w.sharing == SHARE_BINS) {
        key = labels_bin(s, w->p, n);
    } else if (s->w.sharing == SHARE_RANDOM_BINS) {
        key = round_labels(s, w->p, n, u);
        drawn = pick_fixed(w->p, n, next_uniform(u));
    } else {
        key = key_of(s, i);
    }
    return herd_key(s, w, i, key, key, w->p, w->cumulative, n, width, s->plan.form == CIRCULAR, s->plan.error_bound, drawn);
}

/* w: of the labels; scale: as in `fixed_labels_p`; scratch, decides: rows. */
static ALWAYS_INLINE int draw_labels(const sampler *s, worker *k, int64_t i, const double *w, quad scale, double *scratch,
                                     double *decides, int n, int width, double u, const int draw) {
    if (draw == DRAW_RANDOM) {
        const quad all = cumulate(w, scratch, width);
        return pick(w, scratch, width, all, u);
    }
    fixed_labels_p(w, scale, scratch, width);
    const uint64_t key = key_drawn_by(s, i, scratch, n, draw);
    return herd_key(s, k, i, key, place_drawn_by(s, i, key, draw), scratch, decides, n, width, 1, 0.0, 0);
}

enum { AHEAD_LABELS = 2, MOST_FETCHED = 256 };

/* Asks for the weights that variable i will need, whatever label the first of its blanket gets until then: in a chain the
 * variable before it. Without that each update waits for the memory, as its weights depend on the update before. */
static ALWAYS_INLINE void fetch_blanket(const sampler *s, int64_t i) {
    const int64_t begin = s->w.key_starts[i];
    if (!s->dense || first_key(s, i) < 0 || begin == s->w.key_starts[i + 1]) return;
    const int64_t words = s->w.words, n = s->m.c.sizes[s->w.key_members[begin]] * words;
    if (n > MOST_FETCHED) return;
    const double *from = s->dense + (first_key(s, i) + blanket_place(s, i, s->x, 0)) * words;
    for (int64_t k = 0; k < n; k += 8) __builtin_prefetch(from + k, 1);
}

/* Returns the new label. */
static ALWAYS_INLINE int update_labels(const sampler *s, worker *w, int64_t i, double u, int n_labels, int width,
                                       const int draw, const int plain, int64_t last, int last_label) {
    double own[3][REGISTERS];
    const int small = width <= REGISTERS && draw != DRAW_ANY, herds = small && draw != DRAW_RANDOM;
    double *weights = small ? own[0] : w->w, *scratch = small ? own[1] : w->p, *decides = small ? own[2] : w->cumulative;
    quad rows[REGISTERS / 4], scale;
    double total;
    if (herds && is_ahead(&s->m, i, last) && (plain || !s->m.careful || !s->m.careful[i])) {
        total = product_ahead(&s->m, i, s->x, rows, n_labels, width, last_label, ONE, &scale);
        for (int k = 0; k < width; k += 4) STORE_QUAD(weights + k, rows[k / 4]);
    } else {
        weights_of(&s->m, i, s->x, weights, width, last, last_label);
        const quad totals = total_of(weights, width);
        total = totals[0];
        scale = QUAD(ONE) / totals;
        for (int k = 0; herds && k < width; k += 4) LOAD_QUAD(rows[k / 4], weights + k);
    }
    if (!(total > 0.0)) {
        w->fault = IMPOSSIBLE;
        w->faulty = i;
        return 0;
    }
    if (!plain && s->conditional_sums) {
        double *to = s->conditional_sums + unary_row(&s->m, i);
        for (int k = 0; k < n_labels; k++) to[k] += weights[k] / total;
        s->conditional_counts[i]++;
    }
    const int x = herds              ? herd_in_registers(s, w, i, rows, scale, n_labels, width, draw, last, last_label)
                  : draw == DRAW_ANY ? draw_labels_any(s, w, i, scale, n_labels, width, u)
                                     : draw_labels(s, w, i, weights, scale, scratch, decides, n_labels, width, u, draw);
    if (plain && !s->follow) s->y[i] = (label)x;
    else set_label(s, w, i, x, weights[x], weights[s->x[i]]);
    return x;
}

/* plain: variables in order, whose labels are seen at once, and nothing that few runs ask for. Chains of names of four
 * classes have 9 labels, which are worth a loop of their own. */
static ALWAYS_INLINE void run_labels(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n,
                                     const double *u, int n_labels, int width, const int draw, const int plain) {
    const int packed = (draw == DRAW_BLANKET || draw == DRAW_BINS) && s->sites;
    const int64_t unknown = s->x == s->y ? 0 : -1; /* Jacobi: others keep their old labels */
    int64_t last = -1;
    int x = 0;
    uint64_t lines[AHEAD_LINES] = {0}; /* of the updates ahead */
#define VARIABLE(j) (plain || !order ? first + (j) : order[j])
    for (int64_t j = 0; j < n; j++) {
        const int64_t i = VARIABLE(j), line = j + AHEAD_LINES, row = j + AHEAD_ROWS, weights = j + AHEAD_LABELS;
        if (packed && line < n) lines[line % AHEAD_LINES] = fetch_line(s, w->memo, VARIABLE(line), n_labels);
        if (packed && row < n) fetch_rows(s, w->memo, VARIABLE(row), n_labels, lines[row % AHEAD_LINES]);
        if (!packed && draw == DRAW_BLANKET && weights < n) fetch_blanket(s, VARIABLE(weights));
        x = update_labels(s, w, i, u[j], n_labels, width, draw, plain, last, x);
        if (w->fault) return;
        last = i | unknown;
    }
#undef VARIABLE
}

/* Variables of one number of labels above two, joined in pairs or not at all. */
#define STEP_LABELS(NAME, DRAW)                                                                                        \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        const int n_labels = s->m.c.sizes[0], width = s->m.c.widths[0];                                                \
        const int plain = !order && s->x == s->y && !s->m.careful && !s->w.place && !s->conditional_sums;              \
        OWN_COPY(s);                                                                                                   \
        if (n_labels == 9 && plain) run_labels(s_, w, order, first, n, u, 9, 12, DRAW, 1);                             \
        else if (width == 4) run_labels(s_, w, order, first, n, u, n_labels, 4, DRAW, 0);                              \
        else if (width == 8) run_labels(s_, w, order, first, n, u, n_labels, 8, DRAW, 0);                              \
        else if (width == 12) run_labels(s_, w, order, first, n, u, n_labels, 12, DRAW, 0);                            \
        else if (width == 16) run_labels(s_, w, order, first, n, u, n_labels, 16, DRAW, 0);                            \
        else if (width > REGISTERS) run_labels(s_, w, order, first, n, u, n_labels, width, DRAW, 0);                   \
    }
STEP_LABELS(step_labels_random, DRAW_RANDOM)
STEP_LABELS(step_labels_blanket, DRAW_BLANKET)
STEP_LABELS(step_labels_sum, DRAW_SUM)
STEP_LABELS(step_labels_bins, DRAW_BINS)

static void step_labels_any(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {
    OWN_COPY(s);
    run_labels(s_, w, order, first, n, u, s->m.c.sizes[0], s->m.c.widths[0], DRAW_ANY, 0);
}

#endif
