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

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* Without this, compilers read a vector from memory for each use. */
#define IN_REGISTER(v) __asm__("" : "+x"(v))

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f")))
#define VEC __m512d
#define LANES 8
#define LOAD(p) _mm512_loadu_pd(p)
#define STORE(p, v) _mm512_storeu_pd(p, v)
#define SPLAT(s) _mm512_set1_pd(s)
#define ADD(a, b) _mm512_add_pd(a, b)
#define SUB(a, b) _mm512_sub_pd(a, b)
#define MUL(a, b) _mm512_mul_pd(a, b)
#define DIV(a, b) _mm512_div_pd(a, b)
#define MAX(a, b) _mm512_max_pd(a, b)
#define MIN(a, b) _mm512_min_pd(a, b)
#define WHERE_MORE(x, a, b) _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), x)
#define TIMES_POWER(x, n)                                                                                              \
    _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(x), _mm512_slli_epi64(_mm512_castpd_si512(n), 52)))
#define EXPONENT(x)                                                                                                    \
    _mm512_sub_pd(_mm512_castsi512_pd(_mm512_or_si512(_mm512_srli_epi64(_mm512_castpd_si512(x), 52),                   \
                                                      _mm512_castpd_si512(_mm512_set1_pd(0x1p52)))),                   \
                  _mm512_set1_pd(0x1p52 + 1023))
#define INVERSE_POWER(x)                                                                                               \
    _mm512_castsi512_pd(_mm512_sub_epi64(_mm512_set1_epi64(INT64_C(2046) << 52),                                       \
                                         _mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(INT64_C(2047) << 52))))
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
#define VEC __m256d
#define LANES 4
#define LOAD(p) _mm256_loadu_pd(p)
#define STORE(p, v) _mm256_storeu_pd(p, v)
#define SPLAT(s) _mm256_set1_pd(s)
#define ADD(a, b) _mm256_add_pd(a, b)
#define SUB(a, b) _mm256_sub_pd(a, b)
#define MUL(a, b) _mm256_mul_pd(a, b)
#define DIV(a, b) _mm256_div_pd(a, b)
#define MAX(a, b) _mm256_max_pd(a, b)
#define MIN(a, b) _mm256_min_pd(a, b)
#define WHERE_MORE(x, a, b) _mm256_and_pd(x, _mm256_cmp_pd(a, b, _CMP_GT_OQ))
#define EQUAL_BITS(a, b) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ))
#define TIMES_POWER(x, n)                                                                                              \
    _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(x), _mm256_slli_epi64(_mm256_castpd_si256(n), 52)))
#define EXPONENT(x)                                                                                                    \
    _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64(_mm256_castpd_si256(x), 52),                   \
                                                      _mm256_castpd_si256(_mm256_set1_pd(0x1p52)))),                   \
                  _mm256_set1_pd(0x1p52 + 1023))
#define INVERSE_POWER(x)                                                                                               \
    _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_set1_epi64x(INT64_C(2046) << 52),                                      \
                                         _mm256_and_si256(_mm256_castpd_si256(x), _mm256_set1_epi64x(INT64_C(2047) << 52))))
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

static inline int chain_has_avx2(void) { return __builtin_cpu_supports("avx2"); }
static inline int chain_has_avx512(void) { return __builtin_cpu_supports("avx512f"); }
#define DISPATCH(f, ...) (chain_has_avx2() ? f##_avx2(__VA_ARGS__) : f##_base(__VA_ARGS__))
#define LANE_DISPATCH(f, ...) (chain_has_avx512() ? f##_avx512(__VA_ARGS__) : DISPATCH(f, __VA_ARGS__))
#else
#define IN_REGISTER(v)
static inline int chain_has_avx512(void) { return 0; }
#define DISPATCH(f, ...) f##_base(__VA_ARGS__)
#define LANE_DISPATCH(f, ...) f##_base(__VA_ARGS__)
#endif

/* Vectors of two doubles for every processor, which compilers translate to SSE2, NEON or plain C. */
typedef double two_doubles __attribute__((vector_size(16)));
typedef uint64_t two_words __attribute__((vector_size(16)));
typedef double unaligned_two_doubles __attribute__((vector_size(16), aligned(8), may_alias));
#define CHOOSE(mask, a, b) ((two_doubles)(((two_words)(mask) & (two_words)(a)) | (~(two_words)(mask) & (two_words)(b))))
#define EXPONENT_BITS (UINT64_C(2047) << 52)
#define LANES 2
#define VEC two_doubles
#define LOAD(p) ((two_doubles) * (const unaligned_two_doubles *)(p))
#define STORE(p, v) (*(unaligned_two_doubles *)(p) = (v))
#define SPLAT(s) ((two_doubles){s, s})
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define MAX(a, b) CHOOSE((a) > (b), a, b)
#define MIN(a, b) CHOOSE((a) < (b), a, b)
#define WHERE_MORE(x, a, b) ((two_doubles)((two_words)((a) > (b)) & (two_words)(x)))
#define EQUAL_BITS(a, b) (((a)[0] == (b)[0]) | ((a)[1] == (b)[1]) << 1)
#define TIMES_POWER(x, n) ((two_doubles)((two_words)(x) + ((two_words)(n) << 52)))
#define EXPONENT(x) ((two_doubles)(((two_words)(x) >> 52) | (two_words)SPLAT(0x1p52)) - (0x1p52 + 1023))
#define INVERSE_POWER(x) ((two_doubles)((UINT64_C(2046) << 52) - ((two_words)(x) & EXPONENT_BITS)))
#define NAME(x) x##_base
#define TARGET
#include "one_sequence.h"
#include "feature_rows.h"
#include "lanes.h"

int chain_has_bad_numbers(const double *values, int64_t n) { return DISPATCH(count_bad_numbers, values, n) != 0; }

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

int chain_n_lanes(void) { return chain_has_avx512() ? 8 : 4; }

void chain_lanes_forward_backward(const chain_lanes *c, int backward, int *sound) {
    for (int l = 0; l < CHAIN_WIDEST; l++) sound[l] = 1;
    LANE_DISPATCH(lane_exponentials, c, sound);
    LANE_DISPATCH(lane_forward, c, sound);
    if (backward) LANE_DISPATCH(lane_backward, c, sound);
}

void chain_lanes_marginals(const chain_lanes *c, double *const *rows) { LANE_DISPATCH(lane_marginals, c, rows); }

int chain_stretch_scores(const chain_stretches *c) { return LANE_DISPATCH(lane_best_scores, c); }

void chain_stretch_trace(const chain_stretches *c) { LANE_DISPATCH(lane_trace_back, c); }

#define ARGUMENTS(...) __VA_ARGS__
#define PUBLIC(type, name, parameters, arguments)                                                                      \
    type chain_##name parameters { return DISPATCH(name, ARGUMENTS arguments); }
PUBLIC(void, best_scores, (const chain_tables *c, chain_path *paths, int n_paths), (c, paths, n_paths))
PUBLIC(void, trace_back, (const chain_tables *c, chain_path *paths, int n_paths), (c, paths, n_paths))
PUBLIC(int, exponentials, (const chain_tables *c, const double *unary, int64_t n, double *x, double *tops),
       (c, unary, n, x, tops))
PUBLIC(int, forward, (const chain_tables *c, int64_t n, const int32_t *edge_table, int64_t first, const double *x,
       const double *tops, double *forward, double *norm), (c, n, edge_table, first, x, tops, forward, norm))
PUBLIC(int, backward, (const chain_tables *c, int64_t last, const int32_t *edge_table, const double *x, double *backward,
       double *xb, double *scale), (c, last, edge_table, x, backward, xb, scale))
PUBLIC(void, product, (double *out, const double *row, const double *table, int n_states, int stride),
       (out, row, table, n_states, stride))
PUBLIC(double, message, (double *out, const double *row, const double *table, const double *before, int n_states,
       int stride), (out, row, table, before, n_states, stride))
PUBLIC(void, cavity, (double *out, const double *belief, const double *message, int stride), (out, belief, message, stride))
PUBLIC(void, replace_message, (double *belief, const double *new, const double *old, int stride, double *least,
       double *most), (belief, new, old, stride, least, most))
PUBLIC(void, multiply, (double *row, const double *by, int stride, double *least, double *most),
       (row, by, stride, least, most))
PUBLIC(double, join, (double *out, const double *forward, const double *backward, int n, int stride),
       (out, forward, backward, n, stride))
PUBLIC(void, add_outer, (double *table, const double *left, const double *right, double share, int n_states, int stride),
       (table, left, right, share, n_states, stride))
PUBLIC(void, score_rows,
       (const chain_features *f, int64_t first, int64_t n, const double *table, const double *weights, double *out, int width),
       (f, first, n, table, weights, out, width))
PUBLIC(void, spread_rows,
       (const chain_features *f, int64_t first, int64_t n, const double *excess, int width, double share, double *table,
        double *weights),
       (f, first, n, excess, width, share, table, weights))
