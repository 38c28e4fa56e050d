/* A hash table of the herding weights that were met, for keys too many for a dense table. */
#ifndef HERDNER_WEIGHT_TABLE_H
#define HERDNER_WEIGHT_TABLE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "engine.h"
#include "random_numbers.h"

enum { LARGE_PAGE = 1 << 21 };

/* What is read here and there stands in large pages, so that the processor knows where they all are. Only a wish. */
static inline void wish_large_pages(void *memory, size_t bytes) {
#ifdef __linux__
    const uintptr_t from = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    const uintptr_t to = ((uintptr_t)memory + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);
    if (from < to) madvise((void *)from, to - from, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

/* Memory for such a table, each line of the cache as one. */
static inline void *table_memory(size_t bytes) {
#ifdef __linux__
    void *memory;
    if (posix_memalign(&memory, bytes < LARGE_PAGE ? 64 : LARGE_PAGE, bytes)) return NULL;
    wish_large_pages(memory, bytes);
    return memory;
#else
    return malloc(bytes);
#endif
}

#define UNINITIALISED -0.0 /* no sum of weights is ever a negative zero */

static ALWAYS_INLINE int is_uninitialised(const double *slot) { return *slot == 0.0 && signbit(*slot); }

/* Of (variable, key), not 0. */
static ALWAYS_INLINE uint64_t pair_tag(int64_t i, uint64_t key) {
    const uint64_t tag = mix64(mix64(key) + GOLDEN * (uint64_t)(i + 1));
    return tag + !tag;
}

/* Open addressing by a 64-bit hash of (variable, key): two pairs with one hash would share a weight, which among 10^8
 * pairs happens with probability 0.0003. */
typedef struct {
    uint64_t *tags;   /* 0: free */
    double *values;   /* [slots, words] */
    uint64_t mask;    /* slots - 1 */
    int64_t count, words;
} weight_table;

static inline void weight_table_free(weight_table *t) {
    free(t->tags);
    free(t->values);
    t->tags = NULL;
    t->values = NULL;
}

static int weight_table_resize(weight_table *t, uint64_t slots) {
    weight_table bigger = {table_memory(slots * 8), table_memory(slots * 8 * t->words), slots - 1, t->count, t->words};
    if (!bigger.tags || !bigger.values) {
        weight_table_free(&bigger);
        return NO_MEMORY;
    }
    memset(bigger.tags, 0, slots * 8);
    for (uint64_t s = 0; t->tags && s <= t->mask; s++) {
        if (!t->tags[s]) continue;
        uint64_t to = t->tags[s] & bigger.mask;
        while (bigger.tags[to]) to = (to + 1) & bigger.mask;
        bigger.tags[to] = t->tags[s];
        memcpy(bigger.values + to * t->words, t->values + s * t->words, 8 * t->words);
    }
    weight_table_free(t);
    *t = bigger;
    return 0;
}

/* The slot of a pair, new ones marked UNBORN; NULL with *fault set where the table may not grow beyond `most` bytes. */
static double *weight_table_slot(weight_table *t, int64_t i, uint64_t key, int64_t most, int64_t *fault) {
    if (!t->tags || (uint64_t)t->count * 2 > t->mask) {
        const uint64_t slots = t->tags ? (t->mask + 1) * 2 : 1024;
        *fault = (int64_t)(slots * 8 * (t->words + 1)) > most ? WEIGHTS_FULL : weight_table_resize(t, slots);
        if (*fault) return NULL;
    }
    const uint64_t tag = pair_tag(i, key);
    uint64_t s = tag & t->mask;
    while (t->tags[s] && t->tags[s] != tag) s = (s + 1) & t->mask;
    double *slot = t->values + s * t->words;
    if (!t->tags[s]) {
        t->tags[s] = tag;
        t->count++;
        slot[0] = UNINITIALISED;
    }
    return slot;
}

#endif
