/* The loops of one instruction set, as function pointers. loops.c is compiled for the plain machine, AVX2 and AVX-512;
 * engine.c takes each function from the best set that has it. All sets give the same bits. */
#ifndef HERDNER_LOOPS_H
#define HERDNER_LOOPS_H

#include "blocks.h"
#include "record.h"

typedef struct {
    const char *instructions;
    stepper step[N_LOOPS][N_DRAWS]; /* NULL: this set has no faster loop than the set below */
    void (*step_blocks)(blocks *, const sampler *, worker *, const int32_t *order, int64_t start, int64_t from, int64_t to);
    void (*uniform_block)(uint64_t key, uint64_t block, double *out);
    void (*raw_block)(uint64_t key, uint64_t block, uint64_t *out);
    void (*exp_scaled)(const double *from, double *to, int64_t n, double beta);
    void (*set_beta)(model *m, double beta);
    void (*step_beta)(model *m, double beta);
    void (*tally_states)(uint8_t *counts, const model *m, const state_t *x, int all_binary, int64_t begin, int64_t end);
} loop_set;

extern const loop_set loops_plain;
#ifdef HERDNER_X86
extern const loop_set loops_avx2, loops_avx512;
#endif

#endif
