/* The loops of chain.h for each instruction set: AVX2 where the processor has it, SSE2 on other x86-64, plain C elsewhere.
 * (AVX2 makes the forward pass of Viterbi 1.6 times as fast as SSE2 at 9 states.) Lanes use AVX-512 where available.
 *
 *                      exponential.h   one_sequence.h   lanes.h
 *                                      feature_rows.h
 *     AVX-512          x                                x          8 doubles in a vector, 8 lanes
 *     AVX2             x               x                x          4 doubles in a vector, 4 lanes
 *     SSE2, plain C    x               x                x          2 or 1, 4 lanes
 *
 * Each section below defines the vector macros that these files use, includes the files, and removes the macros. */
#include "chain.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define ALIGNED __attribute__((aligned(64))) /* so that no vector crosses a cache line */
#define CHAIN_PREFETCH(p) __builtin_prefetch(p)

/* Vectors of LANES doubles: a number in all lanes (also -0.0), loads and stores, and the bits. */
#define VEC NAME(vector)
#define SPLAT(s) ((s) - (VEC){0.0})
#define LOAD(p) ((VEC) * (const NAME(unaligned) *)(p))
#define STORE(p, v) (*(NAME(unaligned) *)(p) = (v))
#define WORDS(x) ((NAME(words))(x))

/* Adding this to a double below 2^51 and subtracting it again rounds to an integer; in between, the low bits hold that
 * integer. */
#define ROUNDER 0x1.8p52

/* The exponent e of a positive normal number, and the factor 2^-e. */
static ALWAYS_INLINE int chain_exponent(double number, double *factor) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint64_t biased = bits >> 52, inverse = (2046 - biased) << 52;
    memcpy(factor, &inverse, sizeof inverse);
    return (int)biased - 1023;
}

/* The same for vectors, both as doubles; and x times 2 to the integer n - ROUNDER. */
#define EXPONENT(x) ((VEC)((WORDS(x) >> 52) | WORDS(SPLAT(0x1p52))) - (0x1p52 + 1023))
#define INVERSE_POWER(x) ((VEC)((UINT64_C(2046) << 52) - (WORDS(x) & (UINT64_C(2047) << 52))))
#define TIMES_POWER(x, n) ((VEC)(WORDS(x) + (WORDS(n) << 52)))

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* Without this, compilers read a vector from memory for each use. */
#define IN_REGISTER(v) __asm__("" : "+x"(v))

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f")))
#define LANES 8
#define MAX(a, b) _mm512_max_pd(a, b)
#define MIN(a, b) _mm512_min_pd(a, b)
#define WHERE_MORE(x, a, b) _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), x)
#define LOWS(a, b) _mm512_unpacklo_pd(a, b)
#define HIGHS(a, b) _mm512_unpackhi_pd(a, b)
#define FIRST_PAIRS(a, b) _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), b)
#define LAST_PAIRS(a, b) _mm512_permutex2var_pd(a, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), b)
#define LOAD_FOURS(rows, l, j)                                                                                         \
    _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd((rows)[l] + (j))), _mm256_loadu_pd((rows)[(l) + 4] + (j)), 1)
#define STORE_FOURS(rows, l, j, v)                                                                                     \
    (_mm256_storeu_pd((rows)[l] + (j), _mm512_castpd512_pd256(v)),                                                     \
     _mm256_storeu_pd((rows)[(l) + 4] + (j), _mm512_extractf64x4_pd(v, 1)))
#include "exponential.h"
#include "lanes.h"
#include "undefine.h"

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2")))
#define LANES 4
#define MAX(a, b) _mm256_max_pd(a, b)
#define MIN(a, b) _mm256_min_pd(a, b)
#define WHERE_MORE(x, a, b) _mm256_and_pd(x, _mm256_cmp_pd(a, b, _CMP_GT_OQ))
#define EQUAL_BITS(a, b) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ))
#define LOWS(a, b) _mm256_unpacklo_pd(a, b)
#define HIGHS(a, b) _mm256_unpackhi_pd(a, b)
#define FIRST_PAIRS(a, b) _mm256_permute2f128_pd(a, b, 0x20)
#define LAST_PAIRS(a, b) _mm256_permute2f128_pd(a, b, 0x31)
#define LOAD_FOURS(rows, l, j) LOAD((rows)[l] + (j))
#define STORE_FOURS(rows, l, j, v) STORE((rows)[l] + (j), v)
#include "one_sequence.h"
#include "feature_rows.h"
#include "lanes.h"
#include "undefine.h"

#else
#define IN_REGISTER(v)
#endif

/* Vectors of two doubles for every processor, which compilers translate to SSE2, NEON or plain C. */
#define CHOOSE(mask, a, b) ((VEC)((WORDS(mask) & WORDS(a)) | (~WORDS(mask) & WORDS(b))))
#define LANES 2
#define MAX(a, b) CHOOSE((a) > (b), a, b)
#define MIN(a, b) CHOOSE((a) < (b), a, b)
#define WHERE_MORE(x, a, b) ((VEC)(WORDS((a) > (b)) & WORDS(x)))
#define EQUAL_BITS(a, b) (((a)[0] == (b)[0]) | ((a)[1] == (b)[1]) << 1)
#define NAME(x) x##_base
#define TARGET
#include "one_sequence.h"
#include "feature_rows.h"
#include "lanes.h"

/* The loops that chain.h declares as pointers, and those of them that AVX-512 has. */
#define EACH_LANE_LOOP(DO)                                                                                             \
    DO(lane_exponentials) DO(lane_forward) DO(lane_backward) DO(lane_marginals) DO(lane_best_scores) DO(lane_trace_back)
#define EACH_LOOP(DO)                                                                                                  \
    DO(count_bad_numbers) DO(best_scores) DO(trace_back) DO(exponentials) DO(forward) DO(backward) DO(product)         \
    DO(message) DO(cavity) DO(replace_message) DO(multiply) DO(join) DO(add_outer) DO(score_rows) DO(spread_rows)      \
    EACH_LANE_LOOP(DO)

#define DEFINE(name) __typeof__(name##_base) *chain_##name = name##_base;
EACH_LOOP(DEFINE)
int chain_n_lanes = 4;

#if defined(__x86_64__) && defined(__GNUC__)
#define USE_AVX2(name) chain_##name = name##_avx2;
#define USE_AVX512(name) chain_##name = name##_avx512;
__attribute__((constructor)) static void choose_loops(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) { EACH_LOOP(USE_AVX2) }
    if (__builtin_cpu_supports("avx512f")) {
        EACH_LANE_LOOP(USE_AVX512)
        chain_n_lanes = 8;
    }
}
#endif

double chain_start_trace(const chain_tables *c, chain_path *path) {
    const double *last = path->scores + path->t * c->stride;
    path->best = 0;
    for (int j = 1; j < c->n_states; j++)
        if (last[j] > last[path->best]) path->best = j;
    path->states[path->t] = path->best;
    return last[path->best];
}

void chain_start_backward(const chain_tables *c, double *row) {
    for (int j = 0; j < c->stride; j++) row[j] = j < c->n_states ? 1.0 : 0.0;
}
