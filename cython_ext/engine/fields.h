/* What Python hands to the engine, each value declared once.
 *
 * A list below names attributes of one Python class, whose docstring says what they mean. It makes a C struct, which the
 * loops read, and a table of its fields, by which gibbs.pyx fills it and checks types. So a new option of the sampler is
 * an attribute of the plan, a line here, and the loop that reads it.
 *
 * F(WHOLE, int64_t, name), F(REAL, double, name): numbers. F(WORD, "first second", name): a word, as its place among
 * these. F(ARRAY, type, name): a contiguous array, or NULL, and its length n_name; F(BUFFER, ..): one that is written to;
 * F(STRIDED, ..): a row and its `name_stride` in elements, 0 where it repeats one number. */
#ifndef HERDNER_FIELDS_H
#define HERDNER_FIELDS_H

#include <stddef.h>

#include "engine.h"

enum { CIRCULAR, THRESHOLD };
#define PLAN_FIELDS(F) /* herdner.inference.gibbs.plan.Plan */                                                                \
    F(WHOLE, int64_t, burn_in)                                                                                         \
    F(WHOLE, int64_t, weight_memory)                                                                                   \
    F(REAL, double, error_bound)                                                                                       \
    F(WORD, "circular threshold", form)

#define RECORD_FIELDS(F) /* herdner.inference.record.Record */                                                          \
    F(WHOLE, int64_t, every)                                                                                           \
    F(WHOLE, int64_t, follows)

enum { LOOP_ANY, LOOP_TWO, LOOP_LABELS, LOOP_GRID };
enum { SCAN_SYSTEMATIC, SCAN_RANDOM, SCAN_CHECKERBOARD, SCAN_JACOBI, SCAN_GIVEN };
#define SETUP_FIELDS(F) /* herdner.inference.gibbs.setup.Setup */                                                      \
    F(WHOLE, int64_t, n_steps)                                                                                         \
    F(WHOLE, int64_t, n_threads)                                                                                       \
    F(WORD, "any two labels grid", loop)                                                                               \
    F(WORD, "systematic random checkerboard jacobi given", scan)                                                       \
    F(ARRAY, int32_t, order)                                                                                           \
    F(ARRAY, int64_t, colour_starts)                                                                                   \
    F(ARRAY, double, betas)                                                                                            \
    F(REAL, double, heat_step)                                                                                         \
    F(ARRAY, uint8_t, careful)                                                                                         \
    F(ARRAY, uint8_t, independent)                                                                                     \
    F(WHOLE, int64_t, factors)

/* How a loop draws, a constant in specialised loops; DRAW_ANY covers all cases. */
enum { DRAW_RANDOM, DRAW_BLANKET, DRAW_SUM, DRAW_BINS, DRAW_ANY };
enum { SHARE_COMPLETE, SHARE_BLANKET, SHARE_SUM, SHARE_BINS, SHARE_RANDOM_BINS };
#define WEIGHTS_FIELDS(F) /* herdner.inference.gibbs.weights.Weights */                                                \
    F(WORD, "random blanket neighbour-sum bins any", draw)                                                             \
    F(WORD, "complete blanket neighbour-sum bins random-bins", sharing)                                                \
    F(WHOLE, int64_t, n_bins)                                                                                          \
    F(ARRAY, int64_t, key_starts)                                                                                      \
    F(ARRAY, int32_t, key_members)                                                                                     \
    F(ARRAY, uint8_t, long_keys)                                                                                       \
    F(ARRAY, uint64_t, place)                                                                                          \
    F(ARRAY, uint64_t, bin_places)                                                                                     \
    F(ARRAY, int64_t, weights_at)                                                                                      \
    F(WHOLE, int64_t, n_keys)                                                                                          \
    F(WHOLE, int64_t, words)                                                                                           \
    F(WHOLE, int64_t, hashed)                                                                                          \
    F(WHOLE, int64_t, packed)                                                                                          \
    F(WHOLE, int64_t, n_slots)

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
    F(WHOLE, int64_t, n_labels)                                                                                        \
    F(WHOLE, int64_t, stride)                                                                                          \
    F(WHOLE, int64_t, longest)                                                                                         \
    F(REAL, double, range)

#define ARRAYS_FIELDS(F) /* herdner.inference.gibbs.run.Arrays */                                                      \
    F(ARRAY, uint64_t, keys)                                                                                           \
    F(BUFFER, uint16_t, state)                                                                                         \
    F(BUFFER, uint16_t, other)                                                                                         \
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
    F(ARRAY, int64_t, joint_place)                                                                                     \
    F(BUFFER, double, trace)                                                                                           \
    F(BUFFER, uint16_t, samples)                                                                                       \
    F(BUFFER, uint16_t, best)

#define GROUP_FIELDS(F) /* herdner.inference.gibbs.run.Group */                                                        \
    F(WHOLE, int64_t, arity)                                                                                           \
    F(ARRAY, int32_t, sizes)                                                                                           \
    F(ARRAY, int32_t, scopes)                                                                                          \
    F(STRIDED, int32_t, table_of_factor)                                                                               \
    F(STRIDED, double, scale)                                                                                          \
    F(ARRAY, double, tables)                                                                                           \
    F(WHOLE, int64_t, cells)                                                                                           \
    F(BUFFER, double, counts)

#define COUNTING_FIELDS(F) /* herdner.studies.convergence.counts.Tables */                                                     \
    F(BUFFER, double, odds)                                                                                            \
    F(BUFFER, int64_t, p)                                                                                              \
    F(BUFFER, int64_t, keys)                                                                                           \
    F(BUFFER, double, upper)                                                                                           \
    F(BUFFER, int64_t, aims)                                                                                           \
    F(WHOLE, int64_t, focus)                                                                                           \
    F(BUFFER, uint64_t, visits)                                                                                        \
    F(BUFFER, uint64_t, returns)                                                                                       \
    F(ARRAY, int32_t, groups)                                                                                          \
    F(BUFFER, int8_t, last)

#define DECLARE(KIND, TYPE, NAME) DECLARE_##KIND(TYPE, NAME)
#define DECLARE_WHOLE(TYPE, NAME) TYPE NAME;
#define DECLARE_REAL(TYPE, NAME) TYPE NAME;
#define DECLARE_WORD(WORDS, NAME) int64_t NAME;
#define DECLARE_ARRAY(TYPE, NAME) const TYPE *NAME; int64_t n_##NAME;
#define DECLARE_BUFFER(TYPE, NAME) TYPE *NAME; int64_t n_##NAME;
#define DECLARE_STRIDED(TYPE, NAME) const TYPE *NAME; int64_t n_##NAME, NAME##_stride;

typedef struct { PLAN_FIELDS(DECLARE) } plan_fields;
typedef struct { RECORD_FIELDS(DECLARE) } record_fields;
typedef struct { SETUP_FIELDS(DECLARE) } setup_fields;
typedef struct { WEIGHTS_FIELDS(DECLARE) } weights_fields;
typedef struct { GRID_FIELDS(DECLARE) } grid_fields;
typedef struct { BLOCKS_FIELDS(DECLARE) } blocks_fields;
typedef struct { ARRAYS_FIELDS(DECLARE) } arrays_fields;
typedef struct { GROUP_FIELDS(DECLARE) } factor_group;
typedef struct { COUNTING_FIELDS(DECLARE) } counting;

#endif
