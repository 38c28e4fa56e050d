/* Chain loops for the instruction set at hand: AVX2 where the processor has it, SSE2 on other x86-64, plain C elsewhere.
 * (AVX2 makes the forward pass of Viterbi 1.6 times as fast as SSE2 at 9 labels.) Loops of many sequences side by side take
 * AVX-512 where there is that. */
#ifndef HERDNER_CHAIN_H
#define HERDNER_CHAIN_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define ALIGNED __attribute__((aligned(64))) /* no vector that is read or written lies in two lines of the cache */
#define CHAIN_PREFETCH(p) __builtin_prefetch(p)
#else
#define ALWAYS_INLINE inline
#define ALIGNED
#define CHAIN_PREFETCH(p) ((void)(p))
#define restrict __restrict
#endif

enum { CHAIN_OK = 0, CHAIN_IMPOSSIBLE = 1, CHAIN_EXTREME = 2 };

/* Pairwise tables [T, n_labels, stride] of all edges (log-potentials, or their scaled exponentials) and their
 * transposes; `shifts` [T] are the logarithms the exponentials were divided by. */
typedef struct {
    int n_labels, stride;
    const double *tables, *transposed, *shifts;
} chain_tables;

/* `wide` sequences in lanes, as many as `chain_wide` tells, the longest first, ends[l] tokens each. Of the tied scaled
 * table and its transpose [n_labels, n_labels, wide] each entry stands in all lanes; x, forward and backward are
 * [ends[0], n_labels, wide], the others [ends[0], wide]. `pairs` [n_labels, n_labels, wide], or NULL, becomes the expected
 * counts of pairs of labels but for the scaled table, by which they are multiplied in the end. With more labels, those of
 * one sequence fill vectors as well, and tables leave the cache. */
enum { CHAIN_WIDEST = 8, CHAIN_STRETCHES = 8, CHAIN_LANE_LABELS = 20, CHAIN_LANE_TOKENS = 1024, CHAIN_LANE_AHEAD = 256 };
typedef struct {
    int n_labels;
    double shift;
    const double *table, *transposed, *unary[CHAIN_WIDEST];
    int64_t ends[CHAIN_WIDEST];
    double *x, *forward, *backward, *tops, *norm, *factor, *scale, *pairs;
} chain_lanes;

/* Viterbi of stretches of whole sequences, one in each lane, ends[l] tokens each, `longest` the most of them. Bit l of
 * begins [longest + 1] is set where a sequence of lane l begins, and behind its last. The table [n_labels, n_labels, wide]
 * has each entry in all lanes, `transposed` is [n_labels, stride]. Filled are `states`, scores [longest, n_labels, wide], as
 * of chain_path, and tops [longest, wide]: at the last token of a sequence, the log-potential of its best labelling. */
typedef struct {
    int n_labels, stride;
    const double *table, *transposed, *unary[CHAIN_WIDEST];
    int32_t *states[CHAIN_WIDEST];
    int64_t ends[CHAIN_WIDEST], longest;
    uint8_t *begins;
    double *scores, *tops;
} chain_stretches;

/* The scaled loops are used only where nothing can underflow, so that a zero always means "impossible": finite entries
 * of a table lie within exp(-115) of its largest, of a unary row within exp(-149), and no entry of a forward or
 * backward row, whose sum is at least 1, is below 1e-70 if it is not zero. A row that has not got its factor yet is
 * then above 1e-185, two unaries and two tables make no product below 1e-300, and the smallest normaliser, that of an
 * edge, is above 1e-255. Everything else is done in the log domain. */
#define CHAIN_TABLE_RANGE 115.0
#define CHAIN_UNARY_RANGE 149.0
#define CHAIN_SMALLEST 1e-70
#define CHAIN_LARGEST 1e300

static ALWAYS_INLINE int argmax(const double *row, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static ALWAYS_INLINE int argmax_sum(const double *a, const double *b, int n) {
    int best = 0;
    double largest = a[0] + b[0];
    for (int i = 1; i < n; i++) {
        const double sum = a[i] + b[i];
        best = sum > largest ? i : best;
        largest = sum > largest ? sum : largest;
    }
    return best;
}

/* Viterbi of one sequence of n tokens: first t rises to n - 1 and `scores` [n + 1, stride] are filled, the last row being
 * scratch; then t falls to 0, `best` being the label of token t. `readable` counts the doubles in memory from `unary` on.
 * No back-pointers are stored: the one maximisation that is needed per token is repeated with the same operands, so it
 * finds the same maximum. Ties go to the smallest label, decided from the last token to the first. */
typedef struct {
    const double *unary;
    const int32_t *edge_table;
    double *scores;
    int32_t *states;
    int64_t n, readable, sequence, t;
    int best;
} chain_path;

/* So many sequences are under way at a time: a token waits for the one before it, but not for those of others. Meanwhile
 * memory is asked for log-potentials so many numbers ahead, about those of the next sequences. */
enum { CHAIN_PATHS = 8, CHAIN_AHEAD = 2048 };

static ALWAYS_INLINE double chain_start_trace(const chain_tables *c, chain_path *path) {
    const double *last = path->scores + path->t * c->stride;
    path->states[path->t] = path->best = argmax(last, c->n_labels);
    return last[path->best];
}

static ALWAYS_INLINE int chain_lowest_bit(uint64_t bits) {
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    int i = 0;
    while (!(bits >> i & 1)) i++;
    return i;
#endif
}

/* Added to a double below 2^51 and taken off again, it rounds to an integer; between, the low bits are that integer. */
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

/* Compilers else read a vector again for each time that it is used. */
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
#include "chain_exp.h"
#include "chain_lanes.h"
#include "chain_undef.h"

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
#define SAME(a, b) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ))
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
#include "chain_target.h"
#include "chain_lanes.h"
#include "chain_undef.h"

#define LANES 2
#define VEC __m128d
#define LOAD(p) _mm_loadu_pd(p)
#define STORE(p, v) _mm_storeu_pd(p, v)
#define SPLAT(s) _mm_set1_pd(s)
#define ADD(a, b) _mm_add_pd(a, b)
#define SUB(a, b) _mm_sub_pd(a, b)
#define MUL(a, b) _mm_mul_pd(a, b)
#define DIV(a, b) _mm_div_pd(a, b)
#define MAX(a, b) _mm_max_pd(a, b)
#define MIN(a, b) _mm_min_pd(a, b)
#define WHERE_MORE(x, a, b) _mm_and_pd(x, _mm_cmpgt_pd(a, b))
#define SAME(a, b) _mm_movemask_pd(_mm_cmpeq_pd(a, b))
#define TIMES_POWER(x, n)                                                                                              \
    _mm_castsi128_pd(_mm_add_epi64(_mm_castpd_si128(x), _mm_slli_epi64(_mm_castpd_si128(n), 52)))
#define EXPONENT(x)                                                                                                    \
    _mm_sub_pd(_mm_or_pd(_mm_castsi128_pd(_mm_srli_epi64(_mm_castpd_si128(x), 52)), _mm_set1_pd(0x1p52)),              \
               _mm_set1_pd(0x1p52 + 1023))
#define INVERSE_POWER(x)                                                                                               \
    _mm_castsi128_pd(_mm_sub_epi64(_mm_set1_epi64x(INT64_C(2046) << 52),                                               \
                                   _mm_and_si128(_mm_castpd_si128(x), _mm_set1_epi64x(INT64_C(2047) << 52))))
#define DISPATCH(f, ...) (chain_has_avx2() ? f##_avx2(__VA_ARGS__) : f##_base(__VA_ARGS__))
#define LANE_DISPATCH(f, ...) (chain_has_avx512() ? f##_avx512(__VA_ARGS__) : DISPATCH(f, __VA_ARGS__))

static inline int chain_has_avx2(void) { return __builtin_cpu_supports("avx2"); }
static inline int chain_has_avx512(void) { return __builtin_cpu_supports("avx512f"); }

#else

#define IN_REGISTER(v)
#define LANES 1
#define VEC double
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SPLAT(s) (s)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define WHERE_MORE(x, a, b) ((a) > (b) ? (x) : 0.0)
#define SAME(a, b) ((a) == (b))
#define TIMES_POWER(x, n) chain_times_power(x, n)
#define EXPONENT(x) ((double)chain_exponent(x, &(double){0.0}))
#define INVERSE_POWER(x) chain_inverse_power(x)

static ALWAYS_INLINE double chain_inverse_power(double x) {
    double factor;
    chain_exponent(x, &factor);
    return factor;
}

static ALWAYS_INLINE double chain_times_power(double x, double n) {
    uint64_t bits, power;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&power, &n, sizeof power);
    bits += power << 52;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

#define DISPATCH(f, ...) f##_base(__VA_ARGS__)
#define LANE_DISPATCH(f, ...) f##_base(__VA_ARGS__)

static inline int chain_has_avx512(void) { return 0; }

#endif

#define NAME(x) x##_base
#define TARGET
#include "chain_target.h"
#include "chain_lanes.h"

static int chain_has_bad_numbers(const double *values, int64_t n) { return DISPATCH(unfit, values, n) != 0; }

static void chain_best_scores(const chain_tables *c, chain_path *paths, int n_paths) {
    DISPATCH(best_scores, c, paths, n_paths);
}

static void chain_trace_back(const chain_tables *c, chain_path *paths, int n_paths) {
    DISPATCH(trace_back, c, paths, n_paths);
}

static int chain_exponentials(const chain_tables *c, const double *unary, int64_t n, double *x, double *tops) {
    return DISPATCH(exponentials, c, unary, n, x, tops);
}

static int chain_forward(const chain_tables *c, int64_t n, const int32_t *edge_table, int64_t first, const double *x,
                         const double *tops, double *forward, double *norm) {
    return DISPATCH(forward, c, n, edge_table, first, x, tops, forward, norm);
}

static void chain_start_backward(const chain_tables *c, double *row) {
    for (int j = 0; j < c->stride; j++) row[j] = j < c->n_labels ? 1.0 : 0.0;
}

static int chain_backward(const chain_tables *c, int64_t last, const int32_t *edge_table, const double *x,
                          double *backward, double *xb, double *scale) {
    return DISPATCH(backward, c, last, edge_table, x, backward, xb, scale);
}

/* How many lanes there are on this machine. */
static inline int chain_wide(void) { return chain_has_avx512() ? 8 : 4; }

/* Forward and, if asked, backward of the sequences; afterwards sound[l] is 0 where lane l has to be done alone. */
static void chain_in_lanes(const chain_lanes *c, int backward, int *sound) {
    for (int l = 0; l < CHAIN_WIDEST; l++) sound[l] = 1;
    LANE_DISPATCH(lane_exponentials, c, sound);
    LANE_DISPATCH(lane_forward, c, sound);
    if (backward) LANE_DISPATCH(lane_backward, c, sound);
}

/* The scores; whether it is plain that no number is bad, or -inf. */
static int chain_best_in_lanes(const chain_stretches *c) { return LANE_DISPATCH(lane_best_scores, c); }

/* Of CHAIN_STRETCHES stretches that have their scores, in one group or more. */
static void chain_trace_lanes(const chain_stretches *c) { LANE_DISPATCH(lane_trace_back, c); }

static void chain_lane_nodes(const chain_lanes *c, double *const *rows) { LANE_DISPATCH(lane_nodes, c, rows); }

static void chain_product(double *out, const double *row, const double *table, int n_labels, int stride) {
    DISPATCH(product, out, row, table, n_labels, stride);
}

static double chain_message(double *out, const double *row, const double *table, const double *before, int n_labels,
                            int stride) {
    return DISPATCH(message, out, row, table, before, n_labels, stride);
}

static void chain_cavity(double *out, const double *belief, const double *told, int stride) {
    DISPATCH(cavity, out, belief, told, stride);
}

static void chain_retell(double *belief, const double *new, const double *told, int stride, double *least,
                         double *most) {
    DISPATCH(retell, belief, new, told, stride, least, most);
}

static void chain_multiply(double *row, const double *by, int stride, double *least, double *most) {
    DISPATCH(multiply, row, by, stride, least, most);
}

static double chain_join(double *out, const double *forward, const double *backward, int n, int stride) {
    return DISPATCH(join, out, forward, backward, n, stride);
}

static void chain_add_outer(double *table, const double *left, const double *right, double share, int n_labels,
                            int stride) {
    DISPATCH(add_outer, table, left, right, share, n_labels, stride);
}

static void chain_gather(double *out, const double *table, const int32_t *which, int64_t n, int stride) {
    DISPATCH(gather, out, table, which, n, stride);
}

static void chain_scatter(double *table, const double *row, const int32_t *which, int64_t n, int stride) {
    DISPATCH(scatter, table, row, which, n, stride);
}

#endif
