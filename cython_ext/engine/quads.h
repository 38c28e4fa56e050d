/* Four doubles at a time. */
#ifndef HERDNER_QUADS_H
#define HERDNER_QUADS_H

#include <stdint.h>
#include <string.h>

/* __builtin_shuffle takes lanes 0-3 of the first operand, 4-7 of the second. */
typedef double quad __attribute__((vector_size(32)));
typedef int64_t quad_mask __attribute__((vector_size(32)));
#ifdef __clang__
#define SHUFFLED(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLED(a, b, i, j, k, l) __builtin_shuffle(a, b, (quad_mask){i, j, k, l})
#endif
#define QUAD(x) ((quad){x, x, x, x})
typedef double unaligned_quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t unaligned_mask __attribute__((vector_size(32), aligned(8), may_alias));
#define LOAD_QUAD(v, from) ((v) = *(const unaligned_quad *)(from))
#define STORE_QUAD(to, v) (*(unaligned_quad *)(to) = (v))
#ifdef __AVX2__
#define LARGER(a, b) __builtin_ia32_maxpd256(a, b)
#define WHERE(mask, a, b) __builtin_ia32_blendvpd256(b, a, (quad)(mask))
#define TO_NEAREST(v) __builtin_ia32_roundpd256(v, 8) /* of 2^51 at most */
#else
#define TO_NEAREST(v) (((v) + ROUNDING_SHIFT) - ROUNDING_SHIFT)
#define WHERE(mask, a, b) ((quad)(((mask) & (quad_mask)(a)) | (~(mask) & (quad_mask)(b))))
#define LARGER(a, b) WHERE((a) > (b), a, b)
#endif

/* Within halves (one step of the processor; across them it takes three): the halves exchanged, the numbers of each half
 * exchanged, the second number of each half twice. */
#if defined(__AVX2__) && !defined(__clang__)
#define HALVES_EXCHANGED(v) __builtin_ia32_vperm2f128_pd256(v, v, 1)
#else
#define HALVES_EXCHANGED(v) SHUFFLED(v, v, 2, 3, 0, 1)
#endif
#define PAIRS_EXCHANGED(v) SHUFFLED(v, v, 1, 0, 3, 2)
#define SECONDS(v) SHUFFLED(v, v, 1, 1, 3, 3)

/* Four numbers -1 or 0 as a mask. */
static ALWAYS_INLINE quad_mask widened(const int16_t *from) {
#ifdef __clang__
    typedef int16_t narrow __attribute__((vector_size(8)));
    narrow four;
    memcpy(&four, from, sizeof(four));
    return __builtin_convertvector(four, quad_mask);
#elif defined(__AVX2__)
    typedef short eight __attribute__((vector_size(16))); /* GCC does not find it itself */
    typedef int64_t two __attribute__((vector_size(16)));
    two four = {0, 0};
    memcpy(&four, from, 4 * sizeof(*from));
    return (quad_mask)__builtin_ia32_pmovsxwq256((eight)four);
#else
    return (quad_mask){from[0], from[1], from[2], from[3]};
#endif
}

typedef uint64_t lanes __attribute__((vector_size(32)));
typedef uint32_t four_words __attribute__((vector_size(16), aligned(4), may_alias));

static ALWAYS_INLINE lanes widened_words(const uint32_t *from) {
#if defined(__AVX2__) && !defined(__clang__)
    typedef int words __attribute__((vector_size(16)));
    return (lanes)__builtin_ia32_pmovzxdq256((words) * (const four_words *)from);
#else
    return __builtin_convertvector(*(const four_words *)from, lanes);
#endif
}

/* The low half of each. */
static ALWAYS_INLINE void store_words(uint32_t *to, lanes v) { *(four_words *)to = __builtin_convertvector(v, four_words); }

/* Bit k: whether lane k is set. */
static ALWAYS_INLINE uint64_t mask_bits(quad_mask mask) {
#ifdef __AVX2__
    return (uint64_t)__builtin_ia32_movmskpd256((quad)mask);
#else
    return (mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8);
#endif
}

#endif
