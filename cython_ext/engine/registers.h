/* Herding of up to 16 labels in the circular form: a row of weights is in registers, and as little as can be is on the way
 * from the label before to the next one. */
#ifndef HERDNER_REGISTERS_H
#define HERDNER_REGISTERS_H

#include "ahead.h"
#include "blanket_memo.h"
#include "keys.h"
#include "slots.h"

/* 1.5 * 2^48 + 2^39: added to a weight it leaves four bits behind the point, which say whose weight it is. So one maximum
 * finds the label too, of equal weights the first. (2^39 is the 128 of packed weights.) */
#define LABEL_SHIFT UINT64_C(0x42f8080000000000)
#define LABELS_FROM(k) ((lanes){15 - (k), 14 - (k), 13 - (k), 12 - (k)})

/* Weights k .. k + 3 with their labels. */
static ALWAYS_INLINE quad with_labels(quad weights, int k) { return weights + (quad)(LABELS_FROM(k) + LABEL_SHIFT); }

static ALWAYS_INLINE quad without_labels(quad weights, int k) { return weights - (quad)(LABELS_FROM(k) + LABEL_SHIFT); }

static ALWAYS_INLINE void unpack_with_labels(const packed_row *row, quad *weights, int width) {
    const lanes high = widened_words(row->high);
    for (int k = 0; k < width; k += 4) {
        const lanes above = (k ? high >> (2 * k) : high) & 255;
        weights[k / 4] = (quad)((above << 36) + (widened_words(row->low + k) << 4)
                                + (LABELS_FROM(k) + (LABEL_SHIFT - (UINT64_C(1) << 43))));
    }
}

static ALWAYS_INLINE void pack_with_labels(const quad *weights, packed_row *row, int width) {
    lanes high = {0, 0, 0, 0};
    for (int k = 0; k < width; k += 4) {
        const lanes bits = (lanes)weights[k / 4];
        store_words(row->low + k, bits >> 4);
        high |= ((bits >> 36) & 255) << (2 * k);
    }
    store_words(row->high, high);
}

/* The label of the largest weight that is allowed, from which 1 is taken. That is done in all of them at once: where one
 * number is stored whose place waits for the label, all later loads wait too. */
static ALWAYS_INLINE int choose_largest(quad *weights, const quad_mask *allowed, int width) {
    const quad none = QUAD(0.0), one = QUAD(ONE);
    quad eligible[REGISTERS / 4], tops = none;
    for (int k = 0; k < width; k += 4) {
        eligible[k / 4] = WHERE(allowed[k / 4], weights[k / 4], none);
        tops = k ? LARGER(eligible[k / 4], tops) : eligible[0];
    }
    quad other = HALVES_EXCHANGED(tops);
    tops = LARGER(other, tops);
    other = PAIRS_EXCHANGED(tops);
    tops = LARGER(other, tops);
    for (int k = 0; k < width; k += 4) weights[k / 4] -= WHERE(eligible[k / 4] == tops, one, none);
    return 15 - (int)(((lanes)tops)[0] & 15);
}

/* New weights of a key, packed. */
static __attribute__((noinline)) int start_packed(const sampler *s, int64_t i, uint64_t key, const double *p, int n,
                                                  int width, packed_row *row) {
    double weights[MOST_PACKED];
    quad labelled[MOST_PACKED / 4];
    const int x = start_and_choose(weights, p, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
    weights[x] -= ONE;
    for (int k = 0; k < width; k += 4) {
        LOAD_QUAD(labelled[k / 4], weights + k);
        labelled[k / 4] = with_labels(labelled[k / 4], k);
    }
    pack_with_labels(labelled, row, width);
    return x;
}

/* Herds with packed weights; p, allowed, fixed: as in `herd_in_registers`. */
static ALWAYS_INLINE int herd_packed(const sampler *s, worker *w, int64_t i, const quad *p, const quad_mask *allowed,
                                     const double *fixed, int n, int width, const int draw, int label_before) {
    packed_row *row = known_row(s, w->memo, i, n, label_before);
    if (!row) {
        int unborn;
        const uint64_t key = key_drawn_by(s, i, fixed, n, draw);
        row = row_of_key(s, w, i, n, key, &unborn);
        if (!row) return s->x[i];
        if (unborn) return start_packed(s, i, key, fixed, n, width, row);
    }
    quad weights[MOST_PACKED / 4];
    unpack_with_labels(row, weights, width);
    for (int k = 0; k < width; k += 4) weights[k / 4] += p[k / 4];
    const int x = choose_largest(weights, allowed, width);
    pack_with_labels(weights, row, width);
    return x;
}

/* Herds with the probabilities rows times scale. Variable `last` (or -1) is known to have `last_label`. */
static ALWAYS_INLINE int herd_in_registers(const sampler *s, worker *w, int64_t i, const quad *rows, quad scale, int n,
                                           int width, const int draw, int64_t last, int last_label) {
    quad p[REGISTERS / 4], weights[REGISTERS / 4];
    quad_mask allowed[REGISTERS / 4];
    double fixed[REGISTERS]; /* p as an array */
    for (int k = 0; k < width; k += 4) {
        const quad exact = rows[k / 4] * scale;
        p[k / 4] = TO_NEAREST(exact);
        allowed[k / 4] = exact > 0.5; /* what is rounded to more than 0, without waiting for it */
        STORE_QUAD(fixed + k, p[k / 4]);
    }
    if ((draw == DRAW_BLANKET || draw == DRAW_BINS) && width <= MOST_PACKED && has_memo(s, i)) {
        const int64_t before = s->sites[i].last;
        const int label_before = last >= 0 && before == last ? last_label : label_of(s, before);
        return herd_packed(s, w, i, p, allowed, fixed, n, width, draw, label_before);
    }
    const uint64_t key = key_drawn_by(s, i, fixed, n, draw);
    double *slot = signed_slot(s, w, i, key, place_drawn_by(s, i, key, draw));
    if (!slot) return s->x[i];
    if (is_unborn(slot)) {
        const int x = start_and_choose(slot, fixed, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
        slot[x] -= ONE;
        return x;
    }
    for (int k = 0; k < width; k += 4) {
        LOAD_QUAD(weights[k / 4], slot + k);
        weights[k / 4] = with_labels(weights[k / 4], k) + p[k / 4];
    }
    const int x = choose_largest(weights, allowed, width);
    for (int k = 0; k < width; k += 4) STORE_QUAD(slot + k, without_labels(weights[k / 4], k));
    return x;
}

#endif
