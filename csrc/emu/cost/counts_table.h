/* What counts.c fills while a launch runs and counts_report.c reads: tables of each function that ran, by
 * instruction. */
#ifndef EMU_COUNTS_TABLE_H
#define EMU_COUNTS_TABLE_H

#include "counts.h"
#include "cost_cache.h"

typedef struct tally {
    uint64_t requests, wavefronts, ideal, worst, bytes;
    uint64_t machine_requests, machine_wavefronts; /* after ptxas joined loads: widen.h */
    smk_request worst_request;                     /* the first that cost `worst` */
    uint32_t width;
    emu_operation operation;
} tally;

typedef struct tallies {
    tally *shared, *global; /* NULL: no request */
    pattern *last;          /* of its requests: the next will often have the same */
} tallies;

typedef struct function_counts {
    struct function_counts *next;
    const ptx_function *function;
    emu_executed *executed;
    tallies *tallies;
} function_counts;

struct counts {
    function_counts *functions; /* the one used last is first */
    cost_cache *patterns;       /* values: cost, ideal, the machine's cost */
    cost_cache_find_function *find;
    uint64_t barriers;
    bool out_of_memory;
};

/* Adds up; of the worst requests the worse is kept. */
void tally_merge(tally *into, const tally *from);

#endif
