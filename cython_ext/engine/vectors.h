/* Vectors of four doubles (double4), of four 64-bit integers (bits4) and of four flags (mask4: all bits set, or none).
 * GCC and Clang translate them for every processor; intrinsics serve only where a compiler misses the best instruction. */
#ifndef HERDNER_VECTORS_H
#define HERDNER_VECTORS_H

#include <stdint.h>
#include <string.h>

/* SHUFFLE4 numbers the lanes of the first operand 0 to 3, those of the second 4 to 7. */
typedef double double4 __attribute__((vector_size(32)));
typedef int64_t mask4 __attribute__((vector_size(32)));
#ifdef __clang__
#define SHUFFLE4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLE4(a, b, i, j, k, l) __builtin_shuffle(a, b, (mask4){i, j, k, l})
#endif
#define SPLAT4(x) ((double4){x, x, x, x})
typedef double unaligned_double4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t unaligned_mask4 __attribute__((vector_size(32), aligned(8), may_alias));
#define LOAD4(v, from) ((v) = *(const unaligned_double4 *)(from))
#define STORE4(to, v) (*(unaligned_double4 *)(to) = (v))
#ifdef __AVX2__
#define MAX4(a, b) __builtin_ia32_maxpd256(a, b)
#define SELECT4(mask, a, b) __builtin_ia32_blendvpd256(b, a, (double4)(mask))
#define ROUND4(v) __builtin_ia32_roundpd256(v, 8) /* to the nearest integer, for numbers up to 2^51 */
#else
#define ROUND4(v) (((v) + ROUNDING_SHIFT) - ROUNDING_SHIFT)
#define SELECT4(mask, a, b) ((double4)(((mask) & (mask4)(a)) | (~(mask) & (mask4)(b))))
#define MAX4(a, b) SELECT4((a) > (b), a, b)
#endif

/* Swap the halves; swap the numbers within each half; repeat the second number of each half. The last two stay within the
 * halves, which takes one cycle instead of three. */
#if defined(__AVX2__) && !defined(__clang__)
#define SWAP_HALVES(v) __builtin_ia32_vperm2f128_pd256(v, v, 1)
#else
#define SWAP_HALVES(v) SHUFFLE4(v, v, 2, 3, 0, 1)
#endif
#define SWAP_PAIRS(v) SHUFFLE4(v, v, 1, 0, 3, 2)
#define DUPLICATE_ODD(v) SHUFFLE4(v, v, 1, 1, 3, 3)

/* Four 16-bit flags (-1 or 0) as a mask. */
static ALWAYS_INLINE mask4 widen_flags(const int16_t *from) {
#ifdef __clang__
    typedef int16_t narrow __attribute__((vector_size(8)));
    narrow four;
    memcpy(&four, from, sizeof(four));
    return __builtin_convertvector(four, mask4);
#elif defined(__AVX2__)
    typedef short eight __attribute__((vector_size(16))); /* GCC does not choose this instruction itself */
    typedef int64_t two __attribute__((vector_size(16)));
    two four = {0, 0};
    memcpy(&four, from, 4 * sizeof(*from));
    return (mask4)__builtin_ia32_pmovsxwq256((eight)four);
#else
    return (mask4){from[0], from[1], from[2], from[3]};
#endif
}

typedef uint64_t bits4 __attribute__((vector_size(32)));
typedef uint32_t uint32x4 __attribute__((vector_size(16), aligned(4), may_alias));

/* Four 32-bit integers as 64-bit integers. */
static ALWAYS_INLINE bits4 widen_words(const uint32_t *from) {
#if defined(__AVX2__) && !defined(__clang__)
    typedef int words __attribute__((vector_size(16)));
    return (bits4)__builtin_ia32_pmovzxdq256((words) * (const uint32x4 *)from);
#else
    return __builtin_convertvector(*(const uint32x4 *)from, bits4);
#endif
}

/* Store the low 32 bits of each integer. */
static ALWAYS_INLINE void store_words(uint32_t *to, bits4 v) { *(uint32x4 *)to = __builtin_convertvector(v, uint32x4); }

/* An integer whose bit k is flag k. */
static ALWAYS_INLINE uint64_t mask_bits(mask4 mask) {
#ifdef __AVX2__
    return (uint64_t)__builtin_ia32_movmskpd256((double4)mask);
#else
    return (mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8);
#endif
}

#endif
