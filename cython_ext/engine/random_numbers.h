/* Uniform numbers as a function of (key, index): update g of a run uses number g of its stream, so results depend neither
 * on threads nor on the sizes of chunks.
 *
 * Numbers are generated in blocks. Block b holds the outputs of UNIFORM_LANES interleaved xoshiro256++ generators (Blackman
 * and Vigna 2021), whose states SplitMix64 derives from the key and b. The interleaving allows vector code. */
#ifndef HERDNER_RANDOM_NUMBERS_H
#define HERDNER_RANDOM_NUMBERS_H

#include <stdint.h>
#include <string.h>

#include "conditional.h"
#include "vectors.h"

#define UNIFORM_BLOCK 1024
#define UNIFORM_LANES 8

/* SplitMix64's output function: a bijection of 64 bits. */
static inline uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* A 64-bit hash of a pair under a key. */
static inline uint64_t mix_pair(uint64_t key, uint64_t a, uint64_t b) {
    return mix64(mix64(mix64(key + GOLDEN * (a + 1)) + GOLDEN * (b + 1)));
}

typedef uint64_t unaligned_bits4 __attribute__((vector_size(32), aligned(8), may_alias));

#define ROTATED_LANES(x, k) (((x) << (k)) | ((x) >> (64 - (k))))

/* A number of 52 random bits in [0, 1). */
static inline double as_uniform(uint64_t raw) {
    const uint64_t bits = (raw >> 12) | UINT64_C(0x3ff0000000000000);
    double u;
    memcpy(&u, &bits, 8);
    return u - 1.0;
}

typedef double four_uniforms __attribute__((vector_size(32), aligned(8), may_alias));

/* Block `block` of the stream `key`: 64-bit numbers or, if `uniform`, the doubles that `as_uniform` makes of them. */
static ALWAYS_INLINE void fill_block(uint64_t key, uint64_t block, void *restrict out, const int uniform) {
    uint64_t seeds[4][UNIFORM_LANES], z = mix64(key ^ mix64(GOLDEN * (block + 1)));
    for (int w = 0; w < 4; w++)
        for (int l = 0; l < UNIFORM_LANES; l++) seeds[w][l] = mix64(z += GOLDEN);
    bits4 s[4][2];
    memcpy(s, seeds, sizeof(seeds));
    for (int j = 0; j < UNIFORM_BLOCK / 4; j += 2) {
        for (int h = 0; h < 2; h++) {
            const bits4 sum = s[0][h] + s[3][h], t = s[1][h] << 17, result = ROTATED_LANES(sum, 23) + s[0][h];
            const bits4 bits = (result >> 12) | UINT64_C(0x3ff0000000000000);
            if (uniform) ((four_uniforms *)out)[j + h] = (four_uniforms)bits - 1.0;
            else ((unaligned_bits4 *)out)[j + h] = result;
            s[2][h] ^= s[0][h];
            s[3][h] ^= s[1][h];
            s[1][h] ^= s[2][h];
            s[0][h] ^= s[3][h];
            s[2][h] ^= t;
            s[3][h] = ROTATED_LANES(s[3][h], 45);
        }
    }
}

static inline void raw_block(uint64_t key, uint64_t block, uint64_t *restrict out) { fill_block(key, block, out, 0); }

static inline void uniform_block(uint64_t key, uint64_t block, double *restrict out) { fill_block(key, block, out, 1); }

/* The high 64 bits of a * b. */
static inline uint64_t multiply_high(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
#else
    const uint64_t low_a = (uint32_t)a, high_a = a >> 32, low_b = (uint32_t)b, high_b = b >> 32;
    const uint64_t middle = high_a * low_b + (low_a * low_b >> 32), carry = low_a * high_b + (uint32_t)middle;
    return high_a * high_b + (middle >> 32) + (carry >> 32);
#endif
}

/* A random 64-bit number as an integer 0 .. n - 1; the bias is below n / 2^64. */
static inline uint64_t below(uint64_t raw, uint64_t n) { return multiply_high(raw, n); }

#endif
