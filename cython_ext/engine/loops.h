/* The loops: all give the same bits; which one is used is only a matter of speed. */
#ifndef HERDNER_LOOPS_H
#define HERDNER_LOOPS_H

#include "grid_loop.h"
#include "categorical_loop.h"
#include "binary_loop.h"

/* Anything. */
static void step_general(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {
    EACH_VARIABLE {
        if (s->m.c.sizes[i] == 2) update_binary(s, w, i, u[j], DRAW_GENERAL, LISTS);
        else update_categorical(s, w, i, u[j], s->m.c.sizes[i], s->m.c.widths[i], DRAW_GENERAL, 0, -1, 0);
        if (w->fault) return;
    }
}

static inline stepper choose_stepper(int64_t loop, int64_t draw) {
    static const stepper two[] = {step_binary_random, step_binary_blanket, step_binary_sum, step_binary_bins, step_binary_general};
    static const stepper labels[] = {step_categorical_random, step_categorical_blanket, step_categorical_sum, step_categorical_bins,
                                     step_categorical_general};
    static const stepper grid[] = {step_grid_random, step_grid_blanket, step_grid_sum, step_grid_bins, step_grid_general};
    if (loop == LOOP_GRID) return grid[draw];
    return loop == LOOP_BINARY ? two[draw] : loop == LOOP_CATEGORICAL ? labels[draw] : step_general;
}

#endif
