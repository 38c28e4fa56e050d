/* Uniform numbers that are a function of (key, number): update g of a run uses number g of its stream, whoever asks for
 * it and whenever, so that results depend neither on threads nor on how a run is cut into pieces.
 *
 * Numbers come in blocks. Block b holds the outputs of LANES interleaved xoshiro256++ generators (Blackman and Vigna
 * 2021) whose states are drawn by SplitMix64 from the key and b; compilers turn the inner loops into vector code. */
#ifndef HERDNER_UNIFORMS_H
#define HERDNER_UNIFORMS_H

#include <stdint.h>
#include <string.h>

#include "conditional.h"
#include "quads.h"

#define UNIFORM_BLOCK 1024
#define UNIFORM_LANES 8

/* SplitMix64's output function: a bijection of 64 bits. */
static inline uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* A number of its own for each pair under a key. */
static inline uint64_t mix_pair(uint64_t key, uint64_t a, uint64_t b) {
    return mix64(mix64(mix64(key + GOLDEN * (a + 1)) + GOLDEN * (b + 1)));
}

typedef uint64_t unaligned_lanes __attribute__((vector_size(32), aligned(8), may_alias));

#define ROTATED_LANES(x, k) (((x) << (k)) | ((x) >> (64 - (k))))

/* A number of 52 random bits in [0, 1). */
static inline double as_uniform(uint64_t raw) {
    const uint64_t bits = (raw >> 12) | UINT64_C(0x3ff0000000000000);
    double u;
    memcpy(&u, &bits, 8);
    return u - 1.0;
}

typedef double four_uniforms __attribute__((vector_size(32), aligned(8), may_alias));

/* Numbers block * UNIFORM_BLOCK .. + UNIFORM_BLOCK - 1 of the stream `key`: of 64 bits each or, if `uniform`, as
 * `as_uniform` makes them. */
static ALWAYS_INLINE void fill_block(uint64_t key, uint64_t block, void *restrict out, const int uniform) {
    uint64_t seeds[4][UNIFORM_LANES], z = mix64(key ^ mix64(GOLDEN * (block + 1)));
    for (int w = 0; w < 4; w++)
        for (int l = 0; l < UNIFORM_LANES; l++) seeds[w][l] = mix64(z += GOLDEN);
    lanes s[4][2];
    memcpy(s, seeds, sizeof(seeds));
    for (int j = 0; j < UNIFORM_BLOCK / 4; j += 2) {
        for (int h = 0; h < 2; h++) {
            const lanes sum = s[0][h] + s[3][h], t = s[1][h] << 17, result = ROTATED_LANES(sum, 23) + s[0][h];
            const lanes bits = (result >> 12) | UINT64_C(0x3ff0000000000000);
            if (uniform) ((four_uniforms *)out)[j + h] = (four_uniforms)bits - 1.0;
            else ((unaligned_lanes *)out)[j + h] = result;
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

/* raw as an integer 0 .. n - 1; its bias is below n / 2^64. */
static inline uint64_t below(uint64_t raw, uint64_t n) {
    return (uint64_t)(((unsigned __int128)raw * n) >> 64);
}

#endif
