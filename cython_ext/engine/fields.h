/* The values that Python passes to the engine, each declared once.
 *
 *     Python object                  list below       C struct, which the loops read
 *     Setup(betas=..., scan=...)  -> SETUP_FIELDS  -> setup_fields {const double *betas; int64_t n_betas, scan; ...}
 *                                                 \-> table of `field`s, by which gibbs.pyx fills the struct
 *
 * A list names attributes of one Python class; its docstring says what they mean. gibbs.pyx checks the type of each
 * attribute and copies it (an array: its address) into the struct. To add an option of the sampler, add an attribute to the
 * Python class, a line here, and the loop that reads it.
 *
 * F(WHOLE, int64_t, name): an integer or bool. F(REAL, double, name): a number. F(ENUM, LIST, name): a word of the
 * enumeration LIST. F(ARRAY, type, name): a contiguous array, or NULL for None, and its length n_name; F(BUFFER, ...): one
 * that the engine writes to; F(PRIVATE, ...): one of which the engine changes a copy that Python cannot reach, because loops
 * read positions from it; F(STRIDED, ...): an array with the distance of its elements, name_stride, which is 0 where the array
 * repeats one number. */
#ifndef HERDNER_FIELDS_H
#define HERDNER_FIELDS_H

#include <stddef.h>

#include "engine.h"

/* The enumerations, each with its Python words. Python takes them from here: `herdner._ext.gibbs.ENUMERATIONS`. */
#define FORMS(X) X(CIRCULAR, "circular") X(THRESHOLD, "threshold")
#define LOOPS(X) X(LOOP_GENERAL, "general") X(LOOP_BINARY, "binary") X(LOOP_CATEGORICAL, "categorical") X(LOOP_GRID, "grid")
#define SCANS(X)                                                                                                       \
    X(SCAN_SYSTEMATIC, "systematic") X(SCAN_RANDOM, "random") X(SCAN_CHECKERBOARD, "checkerboard")                     \
    X(SCAN_JACOBI, "jacobi") X(SCAN_FIXED, "fixed")
#define SHARINGS(X)                                                                                                    \
    X(SHARE_COMPLETE, "complete") X(SHARE_BLANKET, "blanket") X(SHARE_SUM, "neighbour-sum") X(SHARE_BINS, "bins")      \
    X(SHARE_RANDOM_BINS, "random-bins")
/* How a loop chooses a state. Specialised loops take it as a constant; DRAW_GENERAL covers all cases. */
#define DRAWS(X)                                                                                                       \
    X(DRAW_RANDOM, "random") X(DRAW_BLANKET, "blanket") X(DRAW_SUM, "neighbour-sum") X(DRAW_BINS, "bins")              \
    X(DRAW_GENERAL, "general")

#define CONSTANT(NAME, WORD) NAME,
#define WORD_OF(NAME, WORD) WORD " "
enum { FORMS(CONSTANT) N_FORMS };
enum { LOOPS(CONSTANT) N_LOOPS };
enum { SCANS(CONSTANT) N_SCANS };
enum { SHARINGS(CONSTANT) N_SHARINGS };
enum { DRAWS(CONSTANT) N_DRAWS };

#define PLAN_FIELDS(F) /* herdner.inference.gibbs.plan.Plan */                                                         \
    F(WHOLE, int64_t, burn_in)                                                                                         \
    F(WHOLE, int64_t, weight_memory)                                                                                   \
    F(REAL, double, error_bound)                                                                                       \
    F(ENUM, FORMS, form)

#define RECORD_FIELDS(F) /* herdner.inference.record.Record */                                                         \
    F(WHOLE, int64_t, every)                                                                                           \
    F(WHOLE, int64_t, tracks_log_potential)

#define SETUP_FIELDS(F) /* herdner.inference.gibbs.setup.Setup */                                                      \
    F(WHOLE, int64_t, n_steps)                                                                                         \
    F(WHOLE, int64_t, n_threads)                                                                                       \
    F(ENUM, LOOPS, loop)                                                                                               \
    F(ENUM, SCANS, scan)                                                                                               \
    F(ARRAY, int32_t, order)                                                                                           \
    F(ARRAY, int64_t, colour_starts)                                                                                   \
    F(ARRAY, double, betas)                                                                                            \
    F(REAL, double, beta_step)                                                                                         \
    F(ARRAY, uint8_t, log_domain)                                                                                      \
    F(ARRAY, uint8_t, independent)                                                                                     \
    F(WHOLE, int64_t, max_factors)

#define WEIGHTS_FIELDS(F) /* herdner.inference.gibbs.weights.Weights */                                                \
    F(ENUM, DRAWS, draw)                                                                                               \
    F(ENUM, SHARINGS, sharing)                                                                                         \
    F(WHOLE, int64_t, n_bins)                                                                                          \
    F(ARRAY, int64_t, key_starts)                                                                                      \
    F(ARRAY, int32_t, key_members)                                                                                     \
    F(ARRAY, uint8_t, hashed_keys)                                                                                     \
    F(ARRAY, uint64_t, multipliers)                                                                                    \
    F(ARRAY, uint64_t, bin_multipliers)                                                                                \
    F(ARRAY, int64_t, weight_starts)                                                                                   \
    F(WHOLE, int64_t, n_keys)                                                                                          \
    F(WHOLE, int64_t, row_length)                                                                                      \
    F(WHOLE, int64_t, needs_table)                                                                                     \
    F(WHOLE, int64_t, packed)                                                                                          \
    F(WHOLE, int64_t, n_dense)

#define GRID_FIELDS(F) /* herdner.graph.grids.GridForm */                                                              \
    F(WHOLE, int64_t, rows)                                                                                            \
    F(WHOLE, int64_t, columns)                                                                                         \
    F(WHOLE, int64_t, wraps)                                                                                           \
    F(ARRAY, double, unary)                                                                                            \
    F(ARRAY, double, sides)

#define BLOCKS_FIELDS(F) /* herdner.inference.gibbs.blocks.Blocks */                                                   \
    F(ARRAY, int32_t, first)                                                                                           \
    F(ARRAY, int32_t, last)                                                                                            \
    F(ARRAY, int32_t, edge_table)                                                                                      \
    F(ARRAY, double, tables)                                                                                           \
    F(WHOLE, int64_t, n_states)                                                                                        \
    F(WHOLE, int64_t, stride)                                                                                          \
    F(WHOLE, int64_t, longest)                                                                                         \
    F(REAL, double, range)

#define ARRAYS_FIELDS(F) /* herdner.inference.gibbs.run.Arrays */                                                      \
    F(ARRAY, uint64_t, keys)                                                                                           \
    F(PRIVATE, uint16_t, state)                                                                                        \
    F(PRIVATE, uint16_t, next_state)                                                                                   \
    F(BUFFER, double, unary)                                                                                           \
    F(BUFFER, double, rows)                                                                                            \
    F(BUFFER, double, unary_step)                                                                                      \
    F(BUFFER, double, rows_step)                                                                                       \
    F(BUFFER, uint32_t, fractions)                                                                                     \
    F(BUFFER, double, dense)                                                                                           \
    F(BUFFER, uint32_t, counts)                                                                                        \
    F(BUFFER, double, conditional_sums)                                                                                \
    F(BUFFER, uint32_t, conditional_counts)                                                                            \
    F(BUFFER, uint32_t, joint)                                                                                         \
    F(ARRAY, int64_t, joint_multipliers)                                                                               \
    F(BUFFER, double, trace)                                                                                           \
    F(BUFFER, uint16_t, samples)                                                                                       \
    F(BUFFER, uint16_t, best)

#define GROUP_FIELDS(F) /* herdner._ext.gibbs.Group */                                                                 \
    F(WHOLE, int64_t, arity)                                                                                           \
    F(ARRAY, int32_t, sizes)                                                                                           \
    F(ARRAY, int32_t, scopes)                                                                                          \
    F(STRIDED, int32_t, table_of_factor)                                                                               \
    F(STRIDED, double, scale)                                                                                          \
    F(ARRAY, double, tables)                                                                                           \
    F(WHOLE, int64_t, cells)                                                                                           \
    F(BUFFER, double, counts)

#define COUNTING_FIELDS(F) /* herdner.studies.convergence.counts.CountingTables */                                     \
    F(PRIVATE, double, odds)                                                                                           \
    F(PRIVATE, int64_t, p)                                                                                             \
    F(PRIVATE, int64_t, keys)                                                                                          \
    F(PRIVATE, double, upper)                                                                                          \
    F(PRIVATE, int64_t, aims)                                                                                          \
    F(WHOLE, int64_t, focus)                                                                                           \
    F(BUFFER, uint64_t, visits)                                                                                        \
    F(BUFFER, uint64_t, returns)                                                                                       \
    F(ARRAY, int32_t, groups)                                                                                          \
    F(PRIVATE, int8_t, last)

#define DECLARE(KIND, TYPE, NAME) DECLARE_##KIND(TYPE, NAME)
#define DECLARE_WHOLE(TYPE, NAME) TYPE NAME;
#define DECLARE_REAL(TYPE, NAME) TYPE NAME;
#define DECLARE_ENUM(LIST, NAME) int64_t NAME;
#define DECLARE_ARRAY(TYPE, NAME) const TYPE *NAME; int64_t n_##NAME;
#define DECLARE_BUFFER(TYPE, NAME) TYPE *NAME; int64_t n_##NAME;
#define DECLARE_PRIVATE(TYPE, NAME) TYPE *NAME; int64_t n_##NAME;
#define DECLARE_STRIDED(TYPE, NAME) const TYPE *NAME; int64_t n_##NAME, NAME##_stride;

typedef struct { PLAN_FIELDS(DECLARE) } plan_fields;
typedef struct { RECORD_FIELDS(DECLARE) } record_fields;
typedef struct { SETUP_FIELDS(DECLARE) } setup_fields;
typedef struct { WEIGHTS_FIELDS(DECLARE) } weights_fields;
typedef struct { GRID_FIELDS(DECLARE) } grid_fields;
typedef struct { BLOCKS_FIELDS(DECLARE) } blocks_fields;
typedef struct { ARRAYS_FIELDS(DECLARE) } arrays_fields;
typedef struct { GROUP_FIELDS(DECLARE) } factor_group;
typedef struct { COUNTING_FIELDS(DECLARE) } counting_tables;

/* gibbs.pyx writes a pointer and the integers after it as consecutive 64-bit words. A pointer of 32 bits is followed by
 * padding; it is the lower half of its word on a little-endian machine, such as WebAssembly. */
#if UINTPTR_MAX < UINT64_MAX
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a pointer is the lower half of a 64-bit word");
#endif
_Static_assert(sizeof(void *) <= 8 && sizeof(double) == 8, "the fields of a struct fit into 64-bit words");
#define WORDS(KIND, TYPE, NAME) + WORDS_##KIND
enum { WORDS_WHOLE = 1, WORDS_REAL = 1, WORDS_ENUM = 1, WORDS_ARRAY = 2, WORDS_BUFFER = 2, WORDS_PRIVATE = 2, WORDS_STRIDED = 3 };
#define ASSERT_SIZE(STRUCT, FIELDS) _Static_assert(sizeof(STRUCT) == 8 * (0 FIELDS(WORDS)), "no padding but after pointers")
ASSERT_SIZE(plan_fields, PLAN_FIELDS);
ASSERT_SIZE(record_fields, RECORD_FIELDS);
ASSERT_SIZE(setup_fields, SETUP_FIELDS);
ASSERT_SIZE(weights_fields, WEIGHTS_FIELDS);
ASSERT_SIZE(grid_fields, GRID_FIELDS);
ASSERT_SIZE(blocks_fields, BLOCKS_FIELDS);
ASSERT_SIZE(arrays_fields, ARRAYS_FIELDS);
ASSERT_SIZE(factor_group, GROUP_FIELDS);
ASSERT_SIZE(counting_tables, COUNTING_FIELDS);
_Static_assert(offsetof(factor_group, n_scale) == offsetof(factor_group, scale) + 8 &&
                   offsetof(factor_group, scale_stride) == offsetof(factor_group, scale) + 16,
               "the length and the stride of an array follow its pointer");

#endif
