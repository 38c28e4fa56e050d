/* The loops of one instruction set: this file is compiled with INSTRUCTIONS=plain as loops_plain, also for avx2 and avx512. */
#include "run.h"

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define JOINED(a, b) a##b
#define LOOPS_OF(instructions) JOINED(loops_, instructions)

const loops LOOPS_OF(INSTRUCTIONS) = {TEXT_OF(INSTRUCTIONS), choose_stepper, advance_serial, advance_parallel, set_beta, exp_scaled};
