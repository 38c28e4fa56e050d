/* The seam between Python and the loops of the Gibbs family, and all of it: gibbs.pyx sees no other header.
 *
 * An `engine` runs one Markov chain ("a run"). Its parts are filled field by field from Python values (fields.h), it
 * begins, and then goes on piece by piece. The loops are compiled once for each instruction set, with the same bits. */
#ifndef HERDNER_ENGINE_H
#define HERDNER_ENGINE_H

#include "conditional.h"

typedef struct engine engine;

enum { MOST_LABELS = 65535, MOST_COUNTED = 16 /* variables that `engine_count` takes */ };
enum { MOST_PACKED = 12 }; /* labels of variables whose weights may be packed */
enum { BATCH = 16 }; /* variables that the loop of pairs works on together where they are independent */

/* Why a run cannot go on; 0 is none. */
enum { WEIGHTS_FULL = -2, NO_MEMORY = -3, IMPOSSIBLE = -4 };

/* The parts of an engine, each from one Python value; GROUPS: one part for each group of factors, from there on. */
enum { PART_PLAN, PART_RECORD, PART_SETUP, PART_WEIGHTS, PART_GRID, PART_BLOCKS, PART_ARRAYS, PART_COUNTING, PART_GROUPS };
enum { WHOLE, REAL, WORD, ARRAY, BUFFER, STRIDED };

typedef struct {
    const char *name; /* NULL ends a table */
    int64_t offset;
    int kind;
    const char *type; /* of an array's entries, as numpy.dtype has it, or the words */
} field;

engine *engine_new(int64_t n_groups);
void engine_free(engine *e);
void *engine_part(engine *e, int part, const field **fields);
conditionals *engine_conditionals(engine *e);

/* Once all parts are filled; `most`: the best instructions that may be used, or "". Returns a fault. */
int64_t engine_begin(engine *e, const char *most);
/* Updates number from .. to - 1; or whole sweeps, each of the threads calling with its own number. Returns a fault. */
int64_t engine_advance(engine *e, int64_t from, int64_t to);
int64_t engine_advance_together(engine *e, int me, int64_t first, int64_t last);
void engine_settle(engine *e); /* what is recorded is complete in its arrays, until the engine goes on */
int64_t engine_faulty(const engine *e, int me); /* the variable at fault */
/* Update number `first` and later take their numbers from here. */
void engine_drive(engine *e, const double *uniforms, int64_t first);
/* Counting the states of a small graph: fills PART_COUNTING's tables; runs whole sweeps. */
void engine_tabulate(engine *e);
int64_t engine_count(engine *e, int64_t first, int64_t last);

const label *engine_state(const engine *e);
double engine_log_potential(const engine *e); /* kept incrementally */
double engine_best_log_potential(const engine *e);
double engine_added_up(const engine *e, const label *x); /* the log-potential of a state, added up anew */
int64_t engine_n_kept(const engine *e);
int64_t engine_n_samples(const engine *e);
const char *engine_instructions(const engine *e); /* of its loops: "plain", "avx2" or "avx512" */

void engine_uniforms(uint64_t key, uint64_t block, double *out);
/* Dense weights at their starts: fractions, `at` [V + 1] or NULL where each variable has n_keys; signed ones, unborn. */
void engine_start_fractions(uint64_t key, uint32_t *fractions, const int64_t *at, int64_t n_keys, int64_t n_variables);
void engine_unborn(double *weights, int64_t n);

#endif
