/* Herding of variables of at most 16 states in the circular form, with the row of weights in vector registers.
 *
 * One update of a variable, all steps on 4 states at a time:
 *
 *     weights                  w[0]    w[1]    w[2]   ...    from a dense table, a hash table or a packed row
 *     + p                      each state gains its probability
 *     tag                      the 4 lowest bits of w[k] hold 15 - k
 *     maximum                  of the states with p > 0; the tag of the maximum is the state, ties go to the smallest
 *     - 1 where w = maximum    only the chosen state, because the tags make all weights different
 *     untag, store
 *
 * Two properties make it fast. There is no separate search for the position of the maximum. And the 1 is subtracted in all
 * registers by comparison, not in memory: a store to an address that depends on the state would delay all later loads.
 *
 * Tagging. A weight is an integer below 2^40 in units of 2^-32 times ONE. Adding 1.5 * 2^48 gives a double whose last bit is
 * worth 2^-4; adding (15 - k) of these bits writes the tag. 2^39 more makes packed weights (packed_weights.h) nonnegative:
 *
 *     bits of the double:  63        52 51             44 43            36 35        4 3    0
 *                          sign, exponent   1000...       weight / 2^32     low 32 bits  15 - k
 *                                                         + 128 (the byte)
 *
 * so bits 4 to 35 are `low` and bits 36 to 43 the byte in `high` of a packed row: packing is shifting. */
#ifndef HERDNER_VECTOR_HERDING_H
#define HERDNER_VECTOR_HERDING_H

#include "chain_totals.h"
#include "herding_weights.h"
#include "packed_lookup.h"
#include "weight_keys.h"

/* The bits of 1.5 * 2^48 + 2^39. */
#define TAG_SHIFT UINT64_C(0x42f8080000000000)
#define TAGS_FROM(k) ((bits4){15 - (k), 14 - (k), 13 - (k), 12 - (k)})
_Static_assert(VECTOR_STATES == 16, "tags have four bits");

/* Tag the weights of states k to k + 3; remove their tags. */
static ALWAYS_INLINE double4 tag_states(double4 weights, int k) { return weights + (double4)(TAGS_FROM(k) + TAG_SHIFT); }
static ALWAYS_INLINE double4 untag_states(double4 weights, int k) { return weights - (double4)(TAGS_FROM(k) + TAG_SHIFT); }

static ALWAYS_INLINE void unpack_tagged(const packed_row *row, double4 *weights, int width) {
    const bits4 high = widen_words(row->high);
    for (int k = 0; k < width; k += 4) {
        const bits4 bytes = (k ? high >> (2 * k) : high) & 255;
        weights[k / 4] = (double4)((bytes << 36) + (widen_words(row->low + k) << 4)
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

/* Choose the state of the largest tagged weight among those that are allowed, and subtract 1 from its weight. */
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

/* Write the start values of a key to a packed row and return the first state. */
static __attribute__((noinline)) int initialise_packed(const sampler *s, int64_t i, uint64_t key, const double *p, int n,
                                                       int width, packed_row *row) {
    double weights[MAX_PACKED_STATES];
    double4 tagged[MAX_PACKED_STATES / 4];
    const int x = initialise_and_choose(weights, p, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
    weights[x] -= ONE;
    for (int k = 0; k < width; k += 4) {
        LOAD4(tagged[k / 4], weights + k);
        tagged[k / 4] = tag_states(tagged[k / 4], k);
    }
    pack_tagged(tagged, row, width);
    return x;
}

/* Herd with packed weights. `p`, `allowed`, `fixed`: as in `herd_vector_row`. */
static ALWAYS_INLINE int herd_packed(const sampler *s, worker *w, int64_t i, const double4 *p, const mask4 *allowed,
                                     const double *fixed, int n, int width, const int draw, int last_state) {
    packed_row *row = find_row(s, w->store, i, n, last_state);
    if (!row) {
        int is_new;
        const uint64_t key = key_for_draw(s, i, fixed, n, draw);
        row = add_row(s, w, i, n, key, &is_new);
        if (!row) return s->x[i];
        if (is_new) return initialise_packed(s, i, key, fixed, n, width, row);
    }
    double4 weights[MAX_PACKED_STATES / 4];
    unpack_tagged(row, weights, width);
    for (int k = 0; k < width; k += 4) weights[k / 4] += p[k / 4];
    const int x = choose_largest(weights, allowed, width);
    pack_tagged(weights, row, width);
    return x;
}

/* Herd with the probabilities rows * scale and return the new state. The caller knows that variable `last` (or -1) is in
 * state `last_state`. */
static ALWAYS_INLINE int herd_vector_row(const sampler *s, worker *w, int64_t i, const double4 *rows, double4 scale, int n,
                                         int width, const int draw, int64_t last, int last_state) {
    double4 p[VECTOR_STATES / 4], weights[VECTOR_STATES / 4];
    mask4 allowed[VECTOR_STATES / 4];
    double fixed[VECTOR_STATES]; /* p in memory */
    for (int k = 0; k < width; k += 4) {
        const double4 exact = rows[k / 4] * scale;
        p[k / 4] = ROUND4(exact);
        allowed[k / 4] = exact > 0.5; /* p > 0, without waiting for the rounding */
        STORE4(fixed + k, p[k / 4]);
    }
    if (width <= MAX_PACKED_STATES && is_packed(s, i)) {
        const int64_t before = s->sites[i].last;
        return herd_packed(s, w, i, p, allowed, fixed, n, width, draw,
                           last >= 0 && before == last ? last_state : state_of(s, before));
    }
    const uint64_t key = key_for_draw(s, i, fixed, n, draw);
    double *stored = signed_weights(s, w, i, key, dense_place(s, i, key, draw));
    if (!stored) return s->x[i];
    if (is_uninitialised(stored)) {
        const int x = initialise_and_choose(stored, fixed, n, width, 1, 0.0, 0, mix_pair(s->weight_key, i, key));
        stored[x] -= ONE;
        return x;
    }
    for (int k = 0; k < width; k += 4) {
        LOAD4(weights[k / 4], stored + k);
        weights[k / 4] = tag_states(weights[k / 4], k) + p[k / 4];
    }
    const int x = choose_largest(weights, allowed, width);
    for (int k = 0; k < width; k += 4) STORE4(stored + k, untag_states(weights[k / 4], k));
    return x;
}

#endif
