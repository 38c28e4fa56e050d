/* Loops over linear chains: Viterbi and scaled forward-backward, and sums and products of single rows.
 *
 * A sequence has n tokens, each in one of `n_states` states. Rows of one number per state are padded to `stride`, the next
 * multiple of 4: with -inf where log-potentials are added, with 0 where probabilities are multiplied.
 *
 * chain.c compiles every loop for several instruction sets and chooses one when a module is loaded. All of them perform the
 * same operations in the same order, so they give the same bits. */
#ifndef HERDNER_CHAIN_H
#define HERDNER_CHAIN_H

#include <stdint.h>

/* Results of a pass. CHAIN_EXTREME: the numbers span too wide a range; the caller repeats the pass in the log domain. */
enum { CHAIN_OK = 0, CHAIN_IMPOSSIBLE = 1, CHAIN_EXTREME = 2 };

/* The scaled loops run only where nothing can underflow, so that a zero always means "impossible". Finite entries of a
 * table lie within exp(-115) of its largest entry, those of a unary row within exp(-149). No entry of a forward or backward
 * row, whose sum is at least 1, is below 1e-70 unless it is zero. A row that still lacks its factor is then above 1e-185,
 * the product of two unaries and two tables is above 1e-300, and the smallest normaliser (of an edge) is above 1e-255. */
#define CHAIN_TABLE_RANGE 115.0
#define CHAIN_UNARY_RANGE 149.0
#define CHAIN_SMALLEST 1e-70
#define CHAIN_LARGEST 1e300 /* the largest log-potential that can still be added to others */

enum {
    CHAIN_PATHS = 8,      /* sequences that Viterbi processes in turn, as each token waits for the one before it */
    CHAIN_AHEAD = 2048,   /* log-potentials that Viterbi prefetches: about those of the next sequences */
    CHAIN_WIDEST = 8,     /* the largest number of lanes */
    CHAIN_STRETCHES = 8,  /* stretches that one call of lane Viterbi takes, in one group or in two */
    CHAIN_MOST_STATES = 256,
    CHAIN_LANE_STATES = 20, /* with more states, tables with an entry per lane would no longer fit the cache */
    CHAIN_LANE_TOKENS = 1024,
    CHAIN_LANE_AHEAD = 256, /* log-potentials that lane Viterbi prefetches */
};

/* Pairwise tables [T, n_states, stride] of all edges (log-potentials, or their scaled exponentials) and their transposes.
 * `shifts` [T]: the largest log-potential of each table, which was subtracted before exponentiation. */
typedef struct {
    int n_states, stride;
    const double *tables, *transposed, *shifts;
} chain_tables;

/* One sequence in Viterbi. First `t` rises to n - 1 while `scores` [n + 1, stride] are filled, the last row being scratch;
 * then `t` falls to 0, `best` being the state of token t. `readable` counts the doubles in memory from `unary` on.
 *
 * No back-pointers are stored: the trace repeats the one maximisation that it needs per token with the same operands, so
 * it finds the same maximum. The smallest of equal states wins, decided from the last token to the first. */
typedef struct {
    const double *unary;
    const int32_t *edge_table;
    double *scores;
    int32_t *states;
    int64_t n, readable, sequence, t;
    int best;
} chain_path;

/* Forward-backward of `chain_n_lanes` sequences side by side, one in each lane of a vector:
 *
 *     row t of `forward`:   state 0                state 1                ...
 *                           lane 0 1 2 3 4 5 6 7 | lane 0 1 2 3 4 5 6 7 | ...
 *
 * The longest sequence stands first; lane l has ends[l] tokens. Every edge uses the same scaled table; `table` and
 * `transposed` [n_states, n_states, lanes] repeat each entry once per lane. x, forward and backward are
 * [ends[0], n_states, lanes]; tops, norm, factor and scale [ends[0], lanes]. `pairs` [n_states, n_states, lanes], or NULL,
 * receives the expected counts of pairs of states, which the caller multiplies by the scaled table at the end. */
typedef struct {
    int n_states;
    double shift;
    const double *table, *transposed, *unary[CHAIN_WIDEST];
    int64_t ends[CHAIN_WIDEST];
    double *x, *forward, *backward, *tops, *norm, *factor, *scale, *pairs;
} chain_lanes;

/* Viterbi of stretches, one in each lane. A stretch is a row of whole sequences, concatenated; lane l has ends[l] tokens,
 * `longest` is the largest of these. Bit l of begins [longest + 1] is set where a sequence of lane l begins, and after its
 * last token. `table` is [n_states, n_states, lanes], `transposed` [n_states, stride]. Results: `states`; scores
 * [longest, n_states, lanes] as in chain_path; tops [longest, lanes], which holds the log-potential of the best labelling
 * at the last token of each sequence. */
typedef struct {
    int n_states, stride;
    const double *table, *transposed, *unary[CHAIN_WIDEST];
    int32_t *states[CHAIN_WIDEST];
    int64_t ends[CHAIN_WIDEST], longest;
    uint8_t *begins;
    double *scores, *tops;
} chain_stretches;

/* Rows of features. Row r has the columns columns[column_starts[r]] to columns[column_starts[r + 1] - 1], which are rows
 * [stride] of a table of weights, and likewise entries, which are weights of one state each. `values` of the entries; NULL
 * if all are 1. */
typedef struct {
    int stride;
    int64_t n_rows;
    const int32_t *columns, *entries;
    const int64_t *column_starts, *entry_starts;
    const uint8_t *entry_tags;
    const double *values;
} chain_features;

/* How many of n numbers are NaN, +inf or beyond CHAIN_LARGEST. Here and below, a pointer leads to the loop for this machine's
 * instruction set; it is set when the module is loaded. */
extern int64_t (*chain_count_bad_numbers)(const double *values, int64_t n);

/* Viterbi of at most CHAIN_PATHS sequences: fills the scores; chooses the state of a sequence's last token and returns its
 * log-potential; then chooses all other states. */
extern void (*chain_best_scores)(const chain_tables *c, chain_path *paths, int n_paths);
double chain_start_trace(const chain_tables *c, chain_path *path);
extern void (*chain_trace_back)(const chain_tables *c, chain_path *paths, int n_paths);

/* Forward-backward of one sequence; see one_sequence.h. Returns one of the results above. */
extern int (*chain_exponentials)(const chain_tables *c, const double *unary, int64_t n, double *x, double *tops);
extern int (*chain_forward)(const chain_tables *c, int64_t n, const int32_t *edge_table, int64_t first, const double *x,
                            const double *tops, double *forward, double *norm);
void chain_start_backward(const chain_tables *c, double *row);
extern int (*chain_backward)(const chain_tables *c, int64_t last, const int32_t *edge_table, const double *x,
                             double *backward, double *xb, double *scale);

/* The number of lanes on this machine: 4 or 8. */
extern int chain_n_lanes;
/* Forward-backward in lanes; sound[l] becomes 0 where the sequence of lane l has to be processed alone. */
extern void (*chain_lane_exponentials)(const chain_lanes *c, int *sound);
extern void (*chain_lane_forward)(const chain_lanes *c, int *sound);
extern void (*chain_lane_backward)(const chain_lanes *c, int *sound);
/* Node marginals of all lanes, row t of rows[l] being that of token t; also `pairs`, unless NULL. */
extern void (*chain_lane_marginals)(const chain_lanes *c, double *const *rows);
/* Viterbi scores of one group of stretches; 0 where a number may be bad. */
extern int (*chain_lane_best_scores)(const chain_stretches *c);
/* States of all CHAIN_STRETCHES stretches from their scores. */
extern void (*chain_lane_trace_back)(const chain_stretches *c);

/* Rows of belief propagation; see one_sequence.h. */
extern void (*chain_product)(double *out, const double *row, const double *table, int n_states, int stride);
extern double (*chain_message)(double *out, const double *row, const double *table, const double *before, int n_states,
                               int stride);
extern void (*chain_cavity)(double *out, const double *belief, const double *message, int stride);
extern void (*chain_replace_message)(double *belief, const double *new, const double *old, int stride, double *least,
                                     double *most);
extern void (*chain_multiply)(double *row, const double *by, int stride, double *least, double *most);
extern double (*chain_join)(double *out, const double *forward, const double *backward, int n, int stride);
extern void (*chain_add_outer)(double *table, const double *left, const double *right, double share, int n_states,
                               int stride);

/* Add up the weights of n rows of features from row `first` on: out[r] receives the first `width` states of a row's sum. */
extern void (*chain_score_rows)(const chain_features *f, int64_t first, int64_t n, const double *table,
                                const double *weights, double *out, int width);
/* Add `share` times the rows excess [n, width] to the derivatives `table` and `weights` of the rows' columns and entries. */
extern void (*chain_spread_rows)(const chain_features *f, int64_t first, int64_t n, const double *excess, int width,
                                 double share, double *table, double *weights);

#endif
