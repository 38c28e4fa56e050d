/* The loops, compiled with INSTRUCTIONS=plain as loops_plain and, where there are such, for avx2 and avx512. */
#include "run.h"

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define JOINED(a, b) a##b
#define LOOPS(instructions) JOINED(loops_, instructions)

const loops LOOPS(INSTRUCTIONS) = {TEXT_OF(INSTRUCTIONS), choose_stepper, run_alone, run_together, heat, exp_scaled};
