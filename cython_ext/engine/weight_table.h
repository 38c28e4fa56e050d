/* A hash table of the herding weights that were met, for keys too many for a dense table. */
#ifndef HERDNER_WEIGHT_TABLE_H
#define HERDNER_WEIGHT_TABLE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "uniforms.h"

#define UNBORN -0.0 /* no sum of weights is ever a negative zero */

static ALWAYS_INLINE int is_unborn(const double *slot) { return *slot == 0.0 && signbit(*slot); }

/* Of a pair; `tag` 0: free. */
typedef struct {
    uint64_t tag;
    int64_t row;
} weight_entry;

/* Open addressing by a 64-bit hash of (variable, key): two pairs with one hash would share a weight, which among 10^8
 * pairs happens with probability 0.0003. The weights stand in the order in which they were met, so that growing moves
 * none of them where the system can move pages, and no memory is touched for free places but that of their entries. */
typedef struct {
    weight_entry *entries;
    double *values; /* [room, words] */
    uint64_t mask;  /* entries - 1 */
    int64_t count, room, words;
} weight_table;

static inline void weight_table_free(weight_table *t) {
    free(t->entries);
    free(t->values);
    t->entries = NULL;
    t->values = NULL;
}

/* Room for `room` weights, a power of 2, and twice as many entries. */
static int weight_table_resize(weight_table *t, int64_t room) {
    const uint64_t mask = 2 * (uint64_t)room - 1;
    double *values = realloc(t->values, 8 * room * t->words);
    if (!values) return NO_MEMORY;
    t->values = values;
    weight_entry *entries = calloc(mask + 1, sizeof(*entries));
    if (!entries) return NO_MEMORY;
    for (uint64_t s = 0; t->entries && s <= t->mask; s++) {
        if (!t->entries[s].tag) continue;
        uint64_t to = t->entries[s].tag & mask;
        while (entries[to].tag) to = (to + 1) & mask;
        entries[to] = t->entries[s];
    }
    free(t->entries);
    t->entries = entries;
    t->mask = mask;
    t->room = room;
    return 0;
}

/* The slot of a pair, new ones marked UNBORN; NULL with *fault set where the table may not grow beyond `most` bytes. */
static double *weight_slot(weight_table *t, int64_t i, uint64_t key, int64_t most, int64_t *fault) {
    if (t->count == t->room) {
        const int64_t room = t->room ? 2 * t->room : 512, bytes = room * (2 * sizeof(weight_entry) + 8 * t->words);
        *fault = bytes > most ? WEIGHTS_FULL : weight_table_resize(t, room);
        if (*fault) return NULL;
    }
    uint64_t tag = mix64(mix64(key) + GOLDEN * (uint64_t)(i + 1));
    tag += !tag;
    uint64_t s = tag & t->mask;
    while (t->entries[s].tag && t->entries[s].tag != tag) s = (s + 1) & t->mask;
    if (t->entries[s].tag) return t->values + t->entries[s].row * t->words;
    double *slot = t->values + t->count * t->words;
    t->entries[s] = (weight_entry){tag, t->count++};
    slot[0] = UNBORN;
    return slot;
}

#endif
