/* The engine's own data: one run. engine.c fills and frees it, run.c advances it, state_counting.c counts small graphs. */
#ifndef HERDNER_RUN_H
#define HERDNER_RUN_H

#include <stdatomic.h>

#include "loops.h"

/* Positions of a sweep that form a shard. Its flips are multiplied together and its weights share a hash table; threads
 * take whole shards. */
enum { SHARD = 4096 };

struct engine {
    sampler s;
    record r;
    setup_fields setup;
    arrays_fields arrays;
    grid_fields grid;
    blocks blocks;
    counting_tables counting;
    factor_group *groups;
    int n_groups, all_binary;
    loop_set loops;            /* of the best instruction set for each function */
    stepper step;
    uint64_t joint_key;
    const double *uniforms;    /* uniform numbers from outside, for update `uniforms_from` and later; or NULL */
    int64_t uniforms_from;
    hash_table *tables;        /* [n_tables], one per shard; a single one if a position does not always update one variable */
    packed_store *stores;      /* [n_tables] */
    void *places_memory;       /* the allocation that holds s.places */
    int64_t n_tables;
    flips *flips;              /* [shards] */
    uint8_t *byte_counts;      /* counts of the latest sweeps that are not yet in arrays.counts; or NULL */
    atomic_int n_arrived, barrier_round, failed; /* of the threads that share sweeps */
    worker *workers;           /* [n_threads] */
};

void sum_joint_key(engine *e);

#endif
