/* The compiled engine, built once for each instruction set from gibbs_engine.c; all give the same bits. */
#ifndef HERDNER_GIBBS_ENGINE_H
#define HERDNER_GIBBS_ENGINE_H

#include "gibbs_run.h"

typedef struct {
    void (*heat)(model *m, double beta);
    void (*exp_scaled)(const double *from, double *to, int64_t n, double beta);
    int64_t (*run_alone)(run *r, thread_state *t, int64_t from, int64_t to);
    int64_t (*run_together)(run *r, thread_state *t, int me, int64_t first, int64_t last);
} gibbs_engine;

extern const gibbs_engine gibbs_engine_base;
#ifdef HERDNER_HAS_AVX2
extern const gibbs_engine gibbs_engine_avx2;
#endif

static inline const gibbs_engine *best_engine(void) {
#ifdef HERDNER_HAS_AVX2
    if (__builtin_cpu_supports("avx2")) return &gibbs_engine_avx2;
#endif
    return &gibbs_engine_base;
}

#endif
