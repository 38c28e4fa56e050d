/* The loops: all give the same bits; which one is used is only a matter of speed. */
#ifndef HERDNER_LOOPS_H
#define HERDNER_LOOPS_H

#include "grid.h"
#include "labels.h"
#include "two.h"

/* Anything. */
static void step_any(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {
    EACH_VARIABLE {
        if (s->m.c.sizes[i] == 2) update_two(s, w, i, u[j], DRAW_ANY, LISTS);
        else update_labels(s, w, i, u[j], s->m.c.sizes[i], s->m.c.widths[i], DRAW_ANY, 0, -1, 0);
        if (w->fault) return;
    }
}

static inline stepper choose_stepper(int64_t loop, int64_t draw) {
    static const stepper two[] = {step_two_random, step_two_blanket, step_two_sum, step_two_bins, step_two_any};
    static const stepper labels[] = {step_labels_random, step_labels_blanket, step_labels_sum, step_labels_bins,
                                     step_labels_any};
    static const stepper grid[] = {step_grid_random, step_grid_blanket, step_grid_sum, step_grid_bins, step_grid_any};
    if (loop == LOOP_GRID) return grid[draw];
    return loop == LOOP_TWO ? two[draw] : loop == LOOP_LABELS ? labels[draw] : step_any;
}

#endif
