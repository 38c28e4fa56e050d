/* The interface between Python and the loops of the Gibbs family. gibbs.pyx includes no other header of this folder.
 *
 * An `engine` runs one Markov chain (a run). The caller fills its parts field by field from Python values (fields.h), begins
 * the run, and then advances it in chunks of any size; the results do not depend on the sizes of the chunks. */
#ifndef HERDNER_ENGINE_H
#define HERDNER_ENGINE_H

#include "conditional.h"

typedef struct engine engine;

enum {
    MAX_STATES = 65535,         /* of a variable */
    MAX_COUNTED_VARIABLES = 16, /* of a graph whose states `engine_count_states` counts */
    MAX_PACKED_STATES = 12,     /* of a variable whose herding weights can be packed (packed_weights.h) */
    BATCH_SIZE = 16,            /* independent variables that the binary loop updates together */
};

/* Reasons why a run cannot continue; 0: none. */
enum { WEIGHTS_FULL = -2, NO_MEMORY = -3, IMPOSSIBLE = -4 };

/* The parts of an engine: X(part, C struct, fields, place in the engine). Each group of factors is one more part. */
#define PARTS(X)                                                                                                       \
    X(PART_PLAN, plan_fields, PLAN_FIELDS, s.plan)                                                                     \
    X(PART_RECORD, record_fields, RECORD_FIELDS, r.options)                                                            \
    X(PART_SETUP, setup_fields, SETUP_FIELDS, setup)                                                                   \
    X(PART_WEIGHTS, weights_fields, WEIGHTS_FIELDS, s.w)                                                               \
    X(PART_GRID, grid_fields, GRID_FIELDS, grid)                                                                       \
    X(PART_BLOCKS, blocks, BLOCKS_FIELDS, blocks)                                                                      \
    X(PART_ARRAYS, arrays_fields, ARRAYS_FIELDS, arrays)                                                               \
    X(PART_COUNTING, counting_tables, COUNTING_FIELDS, counting)
#define PART_CONSTANT(PART, STRUCT, FIELDS, PLACE) PART,
enum { PARTS(PART_CONSTANT) PART_GROUPS };

/* Kinds of fields, see fields.h. */
enum { WHOLE, REAL, ENUM, ARRAY, BUFFER, STRIDED, PRIVATE };

typedef struct {
    const char *name; /* NULL ends a table */
    int64_t offset;   /* in the struct of the part, in bytes */
    int kind;
    const char *type; /* NumPy's name of the element type; the words of an enumeration */
} field;

engine *engine_new(int64_t n_groups);
void engine_free(engine *e);
/* The struct of a part and its fields. `part`: one of PARTS, or PART_GROUPS + the index of a group. */
void *engine_part(engine *e, int part, const field **fields);
conditionals *engine_conditionals(engine *e);

/* Check what the loops read (check.c): one group of factors; a joint state of n variables; all parts, before the run begins;
 * the tables of PART_COUNTING. Each returns a description of the first fault, or NULL. */
const char *engine_group_fault(const engine *e, int64_t k);
const char *engine_state_fault(const engine *e, const state_t *x, int64_t n);
const char *engine_fault(const engine *e);
const char *engine_counting_fault(const engine *e, int filled);
/* The number of sweeps that fit into the arrays of a run. */
int64_t engine_most_sweeps(const engine *e);
/* Begin the run, after all parts are filled. `max_instructions`: the best instruction set that may be used, or "". Returns
 * 0 or NO_MEMORY. */
int64_t engine_begin(engine *e, const char *max_instructions);
/* Do updates from .. to - 1 on the calling thread. Returns 0 or a fault. */
int64_t engine_advance(engine *e, int64_t from, int64_t to);
/* Do this thread's share of sweeps first .. last - 1; every thread must call this with its own index. Returns a fault. */
int64_t engine_advance_parallel(engine *e, int thread, int64_t first, int64_t last);
void engine_flush(engine *e); /* bring the recorded arrays up to date */
int64_t engine_fault_variable(const engine *e, int thread);
/* Take the uniform numbers of update `first` and later from an array. */
void engine_set_uniforms(engine *e, const double *uniforms, int64_t first);
/* Count the states of a small graph: fill the tables of PART_COUNTING; run whole sweeps and return 0 or a fault. */
void engine_fill_counting_tables(engine *e);
int64_t engine_count_states(engine *e, int64_t first, int64_t last);

const state_t *engine_state(const engine *e);
const int64_t *engine_counting_keys(const engine *e);
double engine_best_log_potential(const engine *e);
/* The log-potential of a state, summed over all factors. */
double engine_log_potential_of(const engine *e, const state_t *x);
const char *engine_instructions(const engine *e); /* "plain", "avx2" or "avx512" */

/* Block `block` of the uniform numbers of the stream `key`. */
void engine_uniform_block(uint64_t key, uint64_t block, double *out);
/* Set dense fractions to their start values. `starts` [V + 1], or NULL where each variable has n_keys. */
void engine_initialise_fractions(uint64_t key, uint32_t *fractions, const int64_t *starts, int64_t n_keys,
                                 int64_t n_variables);

#endif
