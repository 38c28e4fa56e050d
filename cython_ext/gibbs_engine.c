/* Compiled with ENGINE=gibbs_engine_base and, for AVX2, ENGINE=gibbs_engine_avx2. */
#include "gibbs_engine.h"

const gibbs_engine ENGINE = {heat, exp_scaled, run_alone, run_together};
