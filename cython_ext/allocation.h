/* Memory for arrays. Where size_t has 32 bits, as in WebAssembly, the size of an array can exceed it; then there is none. */
#ifndef HERDNER_ALLOCATION_H
#define HERDNER_ALLOCATION_H

#include <stdint.h>
#include <stdlib.h>

/* 1 if an array of n elements of `size` bytes fits into the address space. */
static inline int is_addressable(int64_t n, size_t size) { return n >= 0 && (uint64_t)n <= PTRDIFF_MAX / size; }

/* Uninitialised memory for n elements, or NULL. */
static inline void *array_memory(int64_t n, size_t size) {
    return is_addressable(n, size) ? malloc((size_t)n * size) : NULL;
}

/* Memory of zeros for n elements, or NULL. */
static inline void *zeroed_memory(int64_t n, size_t size) {
    return is_addressable(n, size) ? calloc((size_t)n, size) : NULL;
}

#endif
