/* Variables of any number of labels: herding, the draw, the update, and the loop over variables of one number of labels.
 * Rows have a `width`, a multiple of 4, whose padding is 0. */
#ifndef HERDNER_LABELS_H
#define HERDNER_LABELS_H

#include "blanket_memo.h"
#include "keys.h"
#include "slots.h"

/* The first label of new weights is drawn from p, and all others had their last turn a random part of a round ago. (The
 * start p - e_k, k drawn from p, makes early labels depend on p in the wrong way: for p = 0.2, 0.8 the second label is
 * 0 four times out of five.) Within an error bound all start at 0. Returns the first label. */
static int start_labels(double *weights, const double *p, int n, int circular, int bounded, int drawn, uint64_t start) {
    if (bounded) {
        memset(weights, 0, n * sizeof(double));
        return drawn;
    }
    const double at = start_part(start);
    double sum = 0.0, top = -INFINITY;
    int chosen = -1;
    for (int k = 0; k < n; k++) {
        weights[k] = (circular ? 0.0 : p[k]) - start_part(mix64(start + GOLDEN * (k + 1)));
        if (p[k] <= 0.0) continue;
        if (chosen < 0 || sum <= at) chosen = k;
        sum += p[k];
        const double decides = circular ? weights[k] + p[k] : weights[k];
        if (decides > top) top = decides;
    }
    weights[chosen] = circular ? top - p[chosen] : top;
    return chosen;
}

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
    quad before = zero;
    for (int k = 0; k < width; k += 4) {
        quad v;
        LOAD_QUAD(v, w + k);
        v += SHUFFLED(zero, v, 0, 4, 2, 6);
        const quad four = v + HALVES_EXCHANGED(v), first = SECONDS(v);
        v += SHUFFLED(zero, first, 0, 1, 4, 5);
        const quad sums = v + before;
        STORE_QUAD(cumulative + k, sums);
        before += SECONDS(four);
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

/* p[k] in 2^-32, to the nearest; what is 0 stays 0. Together they may miss 1 by some 2^-32, which shifts all weights alike. */
static ALWAYS_INLINE void fixed_labels_p(const double *restrict w, quad total, double *restrict p, int width) {
    const quad scale = QUAD(ONE) / total;
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

/* As `add_and_choose`, for new weights. */
static ALWAYS_INLINE int start_and_choose(double *weights, const double *p, int n, int width, const int circular,
                                          const double bound, int drawn, uint64_t start) {
    const int x = start_labels(weights, p, n, circular, bound > 0.0, drawn, start);
    for (int k = 0; k < n; k++) weights[k] += p[k];
    for (int k = n; k < width; k++) weights[k] = 0.0;
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

/* The same in the circular form, with packed weights. */
static ALWAYS_INLINE int herd_packed(const sampler *s, worker *w, int64_t i, const double *p, double *decides, int n,
                                     int width, const int draw) {
    double weights[MOST_PACKED];
    int x, unborn = 0;
    uint64_t key = 0;
    packed_row *row = known_row(s, w->memo, i, n);
    if (!row) {
        key = draw == DRAW_BLANKET ? blanket_key(s, i, s->x) : labels_bin(s, p, n);
        row = row_of_key(s, w, i, n, key, &unborn);
    }
    if (!row) return s->x[i];
    if (unborn) {
        x = start_and_choose(weights, p, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
    } else {
        unpack(row, weights, width);
        x = add_and_choose(weights, p, width, 1, 0.0, 0, decides);
    }
    pack(weights, row, width);
    row->high[x]--; /* 1, without waiting for what was just written */
    return x;
}

static int draw_labels_any(const sampler *s, worker *w, int64_t i, quad total, int n, int width, double u) {
    int drawn = 0;
    if (s->w.draw == DRAW_RANDOM || s->plan.error_bound > 0.0) {
        const quad all = cumulate(w->w, w->cumulative, width);
        drawn = pick(w->w, w->cumulative, width, all, u);
    }
    if (s->w.draw == DRAW_RANDOM) return drawn;
    fixed_labels_p(w->w, total, w->p, width);
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

/* w: of the labels, and its total; scratch, decides: rows. */
static ALWAYS_INLINE int draw_labels(const sampler *s, worker *k, int64_t i, const double *w, quad total, double *scratch,
                                     double *decides, int n, int width, double u, const int draw) {
    if (draw == DRAW_RANDOM) {
        const quad all = cumulate(w, scratch, width);
        return pick(w, scratch, width, all, u);
    }
    fixed_labels_p(w, total, scratch, width);
    if (draw != DRAW_SUM && width <= MOST_PACKED && has_memo(s, i))
        return herd_packed(s, k, i, scratch, decides, n, width, draw);
    const uint64_t key = draw == DRAW_BLANKET ? blanket_key(s, i, s->x) : draw == DRAW_SUM ? sum_key(s, i, s->x)
                                              : labels_bin(s, scratch, n);
    const uint64_t place = draw == DRAW_BLANKET ? blanket_place(s, i, s->x, 1) : key;
    return herd_key(s, k, i, key, place, scratch, decides, n, width, 1, 0.0, 0);
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
                                       const int draw, int64_t last, int last_label) {
    double own[3][REGISTERS];
    const int small = width <= REGISTERS && draw != DRAW_ANY;
    double *weights = small ? own[0] : w->w, *scratch = small ? own[1] : w->p, *decides = small ? own[2] : w->cumulative;
    weights_of(&s->m, i, s->x, weights, width, last, last_label);
    const quad total = total_of(weights, width);
    if (!(total[0] > 0.0)) {
        w->fault = IMPOSSIBLE;
        w->faulty = i;
        return 0;
    }
    if (s->conditional_sums) {
        double *to = s->conditional_sums + unary_row(&s->m, i);
        for (int k = 0; k < n_labels; k++) to[k] += weights[k] / total[0];
        s->conditional_counts[i]++;
    }
    const int x = draw == DRAW_ANY ? draw_labels_any(s, w, i, total, n_labels, width, u)
                                   : draw_labels(s, w, i, weights, total, scratch, decides, n_labels, width, u, draw);
    set_label(s, w, i, x, weights[x], weights[s->x[i]]);
    return x;
}

/* Variables of one number of labels above two, joined in pairs or not at all: rows of 4 to 16 doubles. */
#define STEP_LABELS(NAME, DRAW)                                                                                        \
    static void NAME(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {   \
        const int n_labels = s->m.c.sizes[0], width = s->m.c.widths[0];                                                    \
        OWN_COPY(s);                                                                                                   \
        const int64_t unknown = s->x == s->y ? 0 : -1; /* Jacobi: others keep their old labels */                      \
        int64_t last = -1;                                                                                             \
        int x = 0;                                                                                                     \
        uint64_t lines[AHEAD_LINES] = {0}; /* of the updates ahead */                                                  \
        EACH_VARIABLE {                                                                                                \
            if ((DRAW == DRAW_BLANKET || DRAW == DRAW_BINS) && s_->w.packed) {                                         \
                int64_t k = j + AHEAD_LINES;                                                                           \
                if (k < n) lines[k % AHEAD_LINES] = fetch_line(s_, w->memo, order ? order[k] : first + k, n_labels);   \
                k = j + AHEAD_ROWS;                                                                                    \
                if (k < n) fetch_rows(s_, w->memo, order ? order[k] : first + k, n_labels, lines[k % AHEAD_LINES]);    \
            } else if (DRAW == DRAW_BLANKET && j + AHEAD_LABELS < n) {                                                 \
                fetch_blanket(s_, order ? order[j + AHEAD_LABELS] : i + AHEAD_LABELS);                                 \
            }                                                                                                          \
            switch (width) {                                                                                           \
                case 4: x = update_labels(s_, w, i, u[j], n_labels, 4, DRAW, last, x); break;                          \
                case 8: x = update_labels(s_, w, i, u[j], n_labels, 8, DRAW, last, x); break;                          \
                case 12: x = update_labels(s_, w, i, u[j], n_labels, 12, DRAW, last, x); break;                        \
                default: x = update_labels(s_, w, i, u[j], n_labels, width, DRAW, last, x);                            \
            }                                                                                                          \
            if (w->fault) return;                                                                                      \
            last = i | unknown;                                                                                        \
        }                                                                                                              \
    }
STEP_LABELS(step_labels_random, DRAW_RANDOM)
STEP_LABELS(step_labels_blanket, DRAW_BLANKET)
STEP_LABELS(step_labels_sum, DRAW_SUM)
STEP_LABELS(step_labels_bins, DRAW_BINS)
STEP_LABELS(step_labels_any, DRAW_ANY)

#endif
