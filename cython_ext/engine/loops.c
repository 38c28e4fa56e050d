/* Compiled with INSTRUCTIONS=plain, avx2 or avx512; defines loops_plain, loops_avx2 or loops_avx512. AVX-512 gains nothing in
 * the binary loop, the general loop and the blocks (measured, see README.md), so it does not compile them. */
#include "loops.h"

#include "grid_loop.h"

#ifndef HERDNER_WIDE_ONLY
/* Variables of any graph. */
static void step_general(const sampler *s, worker *w, const int32_t *order, int64_t first, int64_t n, const double *u) {
    EACH_VARIABLE {
        if (s->m.c.sizes[i] == 2) update_binary(s, w, i, u[j], DRAW_GENERAL, LISTS);
        else update_categorical(s, w, i, u[j], s->m.c.sizes[i], s->m.c.widths[i], DRAW_GENERAL, 0, -1, 0);
        if (w->fault) return;
    }
}
#endif

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define JOINED(a, b) a##b
#define LOOPS_OF(instructions) JOINED(loops_, instructions)
#define EACH_DRAW(NAME) {NAME##random, NAME##blanket, NAME##sum, NAME##bins, NAME##general}
_Static_assert(N_DRAWS == 5, "EACH_DRAW lists every draw, in the order of DRAWS");
_Static_assert(N_LOOPS == 4, "each loop has a row of steps");

const loop_set LOOPS_OF(INSTRUCTIONS) = {
    .instructions = TEXT_OF(INSTRUCTIONS),
    .step = {
#ifndef HERDNER_WIDE_ONLY
        [LOOP_GENERAL] = {step_general, step_general, step_general, step_general, step_general},
        [LOOP_BINARY] = EACH_DRAW(step_binary_),
#endif
        /* No benchmark herds by the sum of the neighbours with more than two states. */
        [LOOP_CATEGORICAL] = {step_categorical_random, step_categorical_blanket, step_categorical_general,
                              step_categorical_bins, step_categorical_general},
        [LOOP_GRID] = EACH_DRAW(step_grid_),
    },
#ifndef HERDNER_WIDE_ONLY
    .step_blocks = step_blocks,
#endif
    .uniform_block = uniform_block,
    .raw_block = raw_block,
    .exp_scaled = exp_scaled,
    .set_beta = set_beta,
    .step_beta = step_beta,
    .tally_states = tally_states,
};
