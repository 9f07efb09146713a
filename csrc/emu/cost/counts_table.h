/* The tables that counts.c fills during a launch and counts_report.c reads: one per executed
 * function, with one element per PTX instruction. */
#ifndef EMU_COUNTS_TABLE_H
#define EMU_COUNTS_TABLE_H

#include "counts.h"
#include "cost_cache.h"
#include "request_cost.h"
#include "wider_access.h"

typedef struct tally {
    uint64_t requests, wavefronts, ideal, worst, bytes;
    /* The same for the machine code's accesses, which ptxas has vectorized (ptxas_vectorize.h). */
    uint64_t machine_requests, machine_wavefronts, machine_ideal;
    smk_request worst_request; /* of the first block and warp with `worst` wavefronts */
    uint32_t width;
    emu_operation operation;
    wider_access *wider; /* NULL: not counted */
} tally;

typedef struct tallies {
    tally *shared, *remote, *global; /* NULL: no request; remote: shared memory of other blocks */
    pattern *last;                   /* of the last request; the next one often has the same */
} tallies;

typedef struct function_counts {
    struct function_counts *next;
    const ptx_function *function;
    emu_executed *executed;
    tallies *tallies;
} function_counts;

struct counts {
    function_counts *functions; /* most recently used first */
    cost_cache *patterns;       /* values: the members of request_cost */
    cost_cache_find_function *lookup;
    remote_access remote;
    uint64_t barriers;
    bool by_instruction; /* fill tally.wider */
    bool out_of_memory;
};

/* Adds the counts of `from` to `into`, and keeps the worse of the two worst requests. */
void tally_merge(tally *into, const tally *from);

#endif
