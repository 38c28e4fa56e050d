/* The loops, compiled with LOOPS=loops_base and, for AVX2, LOOPS=loops_avx2. */
#include "run.h"

const loops LOOPS = {choose_stepper, run_alone, run_together, heat, exp_scaled};
