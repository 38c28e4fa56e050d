/* Hash tables for herding weights whose keys are too many for a dense table.
 *
 * Entries of `size` bytes begin with a 64-bit tag, a hash of the key; tag 0 marks a free entry. Collisions go to the next
 * entry (linear probing); at most half of the entries are in use. The tags stand for the keys: two keys with the same tag
 * would share an entry, which happens among 10^8 keys with probability 0.0003. */
#ifndef HERDNER_HASH_TABLE_H
#define HERDNER_HASH_TABLE_H

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "../allocation.h"
#include "engine.h"
#include "random_numbers.h"

enum { LARGE_PAGE = 1 << 21, CACHE_LINE = 64 };

/* Ask for large pages, which make reads at random places faster. The kernel may refuse. */
static inline void advise_large_pages(void *memory, size_t bytes) {
#ifdef __linux__
    const uintptr_t from = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    const uintptr_t to = ((uintptr_t)memory + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);
    if (from < to) madvise((void *)from, to - from, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

/* Uninitialised memory for n entries of `size` bytes that begins with a cache line, or NULL. */
static inline void *table_memory(int64_t n, size_t size) {
#ifdef __linux__
    void *memory;
    if (!is_addressable(n, size)) return NULL;
    const size_t bytes = (size_t)n * size;
    if (posix_memalign(&memory, bytes < LARGE_PAGE ? CACHE_LINE : LARGE_PAGE, bytes)) return NULL;
    advise_large_pages(memory, bytes);
    return memory;
#else
    return array_memory(n, size);
#endif
}

/* The tag of (variable, key); never 0. */
static ALWAYS_INLINE uint64_t pair_tag(int64_t i, uint64_t key) {
    const uint64_t tag = mix64(mix64(key) + GOLDEN * (uint64_t)(i + 1));
    return tag + !tag;
}

typedef struct {
    unsigned char *entries;
    uint64_t mask; /* number of entries - 1 */
    int64_t count; /* entries in use */
} hash_table;

static inline int64_t hash_table_bytes(const hash_table *t, int64_t size) {
    return t->entries ? (int64_t)(t->mask + 1) * size : 0;
}

/* The entry of a tag, or the free entry where it belongs. The table must have entries. */
static ALWAYS_INLINE uint64_t *hash_entry(const hash_table *t, int64_t size, uint64_t tag) {
    uint64_t at = tag & t->mask;
    for (;; at = (at + 1) & t->mask) {
        uint64_t *entry = (uint64_t *)(t->entries + at * size);
        if (!*entry || *entry == tag) return entry;
    }
}

/* Make room for one more entry. A full table grows by a factor of `growth`, or of 2 where it would exceed `max_bytes`.
 * Returns 0, WEIGHTS_FULL or NO_MEMORY. */
static int64_t hash_table_reserve(hash_table *t, int64_t size, int64_t initial, int64_t growth, int64_t max_bytes) {
    const int64_t before = t->entries ? (int64_t)t->mask + 1 : 0;
    if (t->count * 2 < before) return 0;
    int64_t after = before ? before * growth : initial;
    if (before && after * size > max_bytes) after = before * 2;
    if (after * size > max_bytes) return WEIGHTS_FULL;
    hash_table larger = {table_memory(after, (size_t)size), (uint64_t)after - 1, t->count};
    if (!larger.entries) return NO_MEMORY;
    memset(larger.entries, 0, after * size);
    for (int64_t k = 0; k < before; k++) {
        const uint64_t *entry = (const uint64_t *)(t->entries + k * size);
        if (*entry) memcpy(hash_entry(&larger, size, *entry), entry, size);
    }
    free(t->entries);
    *t = larger;
    return 0;
}

#endif
