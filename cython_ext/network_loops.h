/* The loops of a small neural network over words (network.pyx): integers only, so that every machine gets the same scores.
 * GCC and Clang turn the simple loops into vector code; the product of a matrix and a vector is written by hand. */
#ifndef HERDNER_NETWORK_LOOPS_H
#define HERDNER_NETWORK_LOOPS_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#define NETWORK_LANES 16 /* rows of a matrix that are processed side by side */

/* Add a row of n bytes to 16-bit sums. */
static inline void network_add(int16_t *restrict sums, const int8_t *restrict row, int64_t n) {
    for (int64_t i = 0; i < n; i++) sums[i] = (int16_t)(sums[i] + row[i]);
}

/* Limit n sums to [low, high]. */
static inline void network_limit(int16_t *restrict sums, int16_t low, int16_t high, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const int16_t value = sums[i] < low ? low : sums[i];
        sums[i] = value > high ? high : value;
    }
}

/* The inner product of n 16-bit numbers. */
static inline int32_t network_product(const int16_t *restrict a, const int16_t *restrict b, int64_t n) {
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (int32_t)a[i] * b[i];
    return sum;
}

/* Multiply 16 rows of a matrix by a vector of n_pairs pairs: sums[i] = rows[i] @ vector. The matrix is stored pair by pair:
 * two numbers of the first row, two of the second row and so on. */
static inline void network_lanes_plain(int32_t *restrict sums, const int16_t *restrict matrix, const int16_t *restrict vector,
                                       int64_t n_pairs) {
    memset(sums, 0, NETWORK_LANES * sizeof *sums);
    for (int64_t j = 0; j < n_pairs; j++, matrix += 2 * NETWORK_LANES)
        for (int i = 0; i < NETWORK_LANES; i++)
            sums[i] += (int32_t)matrix[2 * i] * vector[2 * j] + (int32_t)matrix[2 * i + 1] * vector[2 * j + 1];
}

#if defined(__x86_64__) && defined(__GNUC__)
static inline void network_lanes_sse2(int32_t *sums, const int16_t *matrix, const int16_t *vector, int64_t n_pairs) {
    __m128i s[4] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
    for (int64_t j = 0; j < n_pairs; j++, matrix += 2 * NETWORK_LANES) {
        int32_t pair;
        memcpy(&pair, vector + 2 * j, sizeof pair);
        const __m128i both = _mm_set1_epi32(pair);
        for (int i = 0; i < 4; i++)
            s[i] = _mm_add_epi32(s[i], _mm_madd_epi16(_mm_loadu_si128((const __m128i *)matrix + i), both));
    }
    for (int i = 0; i < 4; i++) _mm_storeu_si128((__m128i *)sums + i, s[i]);
}

__attribute__((target("avx2"))) static inline void network_lanes_avx2(int32_t *sums, const int16_t *matrix,
                                                                       const int16_t *vector, int64_t n_pairs) {
    __m256i s[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int64_t j = 0; j < n_pairs; j++, matrix += 2 * NETWORK_LANES) {
        int32_t pair;
        memcpy(&pair, vector + 2 * j, sizeof pair);
        const __m256i both = _mm256_set1_epi32(pair);
        for (int i = 0; i < 2; i++)
            s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)matrix + i), both));
    }
    for (int i = 0; i < 2; i++) _mm256_storeu_si256((__m256i *)sums + i, s[i]);
}
#endif

static inline void network_lanes(int32_t *sums, const int16_t *matrix, const int16_t *vector, int64_t n_pairs) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2"))
        network_lanes_avx2(sums, matrix, vector, n_pairs);
    else
        network_lanes_sse2(sums, matrix, vector, n_pairs);
#else
    network_lanes_plain(sums, matrix, vector, n_pairs);
#endif
}

/* Multiply a matrix of m rows (a multiple of 16) by a vector of n_pairs pairs, divide by 2^shift, round, and limit the
 * result to -127 .. 127. */
static inline void network_multiply(int8_t *restrict result, const int16_t *matrix, const int16_t *vector, int64_t m,
                                    int64_t n_pairs, int shift) {
    const int32_t half = shift ? 1 << (shift - 1) : 0;
    int32_t sums[NETWORK_LANES];
    for (int64_t first = 0; first < m; first += NETWORK_LANES) {
        network_lanes(sums, matrix + 2 * first * n_pairs, vector, n_pairs);
        for (int i = 0; i < NETWORK_LANES; i++) {
            const int32_t value = (sums[i] + half) >> shift;
            result[first + i] = (int8_t)(value < -127 ? -127 : value > 127 ? 127 : value);
        }
    }
}

#endif
