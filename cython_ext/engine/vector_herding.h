/* Herding of up to 16 labels in the circular form: a row of weights is in registers, and as little as can be is on the way
 * from the label before to the next one. */
#ifndef HERDNER_VECTOR_HERDING_H
#define HERDNER_VECTOR_HERDING_H

#include "chain_totals.h"
#include "packed_lookup.h"
#include "weight_keys.h"
#include "herding_weights.h"

/* 1.5 * 2^48 + 2^39: added to a weight it leaves four bits behind the point, which say whose weight it is. So one maximum
 * finds the label too, of equal weights the first. (2^39 is the 128 of packed weights.) */
#define TAG_SHIFT UINT64_C(0x42f8080000000000)
#define TAGS_FROM(k) ((bits4){15 - (k), 14 - (k), 13 - (k), 12 - (k)})

/* Weights k .. k + 3 with their labels. */
static ALWAYS_INLINE double4 tag_states(double4 weights, int k) { return weights + (double4)(TAGS_FROM(k) + TAG_SHIFT); }

static ALWAYS_INLINE double4 untag_states(double4 weights, int k) { return weights - (double4)(TAGS_FROM(k) + TAG_SHIFT); }

static ALWAYS_INLINE void unpack_tagged(const packed_row *row, double4 *weights, int width) {
    const bits4 high = widen_words(row->high);
    for (int k = 0; k < width; k += 4) {
        const bits4 above = (k ? high >> (2 * k) : high) & 255;
        weights[k / 4] = (double4)((above << 36) + (widen_words(row->low + k) << 4)
                                + (TAGS_FROM(k) + (TAG_SHIFT - (UINT64_C(1) << 43))));
    }
}

static ALWAYS_INLINE void pack_tagged(const double4 *weights, packed_row *row, int width) {
    bits4 high = {0, 0, 0, 0};
    for (int k = 0; k < width; k += 4) {
        const bits4 bits = (bits4)weights[k / 4];
        store_words(row->low + k, bits >> 4);
        high |= ((bits >> 36) & 255) << (2 * k);
    }
    store_words(row->high, high);
}

/* The label of the largest weight that is allowed, from which 1 is taken. That is done in all of them at once: where one
 * number is stored whose place waits for the label, all later loads wait too. */
static ALWAYS_INLINE int choose_largest(double4 *weights, const mask4 *allowed, int width) {
    const double4 none = SPLAT4(0.0), one = SPLAT4(ONE);
    double4 eligible[VECTOR_STATES / 4], tops = none;
    for (int k = 0; k < width; k += 4) {
        eligible[k / 4] = SELECT4(allowed[k / 4], weights[k / 4], none);
        tops = k ? MAX4(eligible[k / 4], tops) : eligible[0];
    }
    double4 other = SWAP_HALVES(tops);
    tops = MAX4(other, tops);
    other = SWAP_PAIRS(tops);
    tops = MAX4(other, tops);
    for (int k = 0; k < width; k += 4) weights[k / 4] -= SELECT4(eligible[k / 4] == tops, one, none);
    return 15 - (int)(((bits4)tops)[0] & 15);
}

/* New weights of a key, packed. */
static __attribute__((noinline)) int initialise_packed(const sampler *s, int64_t i, uint64_t key, const double *p, int n,
                                                  int width, packed_row *row) {
    double weights[MAX_PACKED_STATES];
    double4 labelled[MAX_PACKED_STATES / 4];
    const int x = initialise_and_choose(weights, p, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
    weights[x] -= ONE;
    for (int k = 0; k < width; k += 4) {
        LOAD4(labelled[k / 4], weights + k);
        labelled[k / 4] = tag_states(labelled[k / 4], k);
    }
    pack_tagged(labelled, row, width);
    return x;
}

/* Herds with packed weights; p, allowed, fixed: as in `herd_in_registers`. */
static ALWAYS_INLINE int herd_packed(const sampler *s, worker *w, int64_t i, const double4 *p, const mask4 *allowed,
                                     const double *fixed, int n, int width, const int draw, int state_before) {
    packed_row *row = known_row(s, w->memo, i, n, state_before);
    if (!row) {
        int unborn;
        const uint64_t key = key_for_draw(s, i, fixed, n, draw);
        row = row_of_key(s, w, i, n, key, &unborn);
        if (!row) return s->x[i];
        if (unborn) return initialise_packed(s, i, key, fixed, n, width, row);
    }
    double4 weights[MAX_PACKED_STATES / 4];
    unpack_tagged(row, weights, width);
    for (int k = 0; k < width; k += 4) weights[k / 4] += p[k / 4];
    const int x = choose_largest(weights, allowed, width);
    pack_tagged(weights, row, width);
    return x;
}

/* Herds with the probabilities rows times scale. Variable `last` (or -1) is known to have `last_label`. */
static ALWAYS_INLINE int herd_vector_row(const sampler *s, worker *w, int64_t i, const double4 *rows, double4 scale, int n,
                                           int width, const int draw, int64_t last, int last_state) {
    double4 p[VECTOR_STATES / 4], weights[VECTOR_STATES / 4];
    mask4 allowed[VECTOR_STATES / 4];
    double fixed[VECTOR_STATES]; /* p as an array */
    for (int k = 0; k < width; k += 4) {
        const double4 exact = rows[k / 4] * scale;
        p[k / 4] = ROUND4(exact);
        allowed[k / 4] = exact > 0.5; /* what is rounded to more than 0, without waiting for it */
        STORE4(fixed + k, p[k / 4]);
    }
    if ((draw == DRAW_BLANKET || draw == DRAW_BINS) && width <= MAX_PACKED_STATES && has_memo(s, i)) {
        const int64_t before = s->sites[i].last;
        const int state_before = last >= 0 && before == last ? last_state : state_of(s, before);
        return herd_packed(s, w, i, p, allowed, fixed, n, width, draw, state_before);
    }
    const uint64_t key = key_for_draw(s, i, fixed, n, draw);
    double *slot = signed_weight(s, w, i, key, dense_place(s, i, key, draw));
    if (!slot) return s->x[i];
    if (is_uninitialised(slot)) {
        const int x = initialise_and_choose(slot, fixed, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
        slot[x] -= ONE;
        return x;
    }
    for (int k = 0; k < width; k += 4) {
        LOAD4(weights[k / 4], slot + k);
        weights[k / 4] = tag_states(weights[k / 4], k) + p[k / 4];
    }
    const int x = choose_largest(weights, allowed, width);
    for (int k = 0; k < width; k += 4) STORE4(slot + k, untag_states(weights[k / 4], k));
    return x;
}

#endif
