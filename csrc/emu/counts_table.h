/* What counts.c fills while a launch runs and counts_report.c reads: a cell for each instruction of each
 * function that ran. */
#ifndef EMU_COUNTS_TABLE_H
#define EMU_COUNTS_TABLE_H

#include "counts.h"

typedef struct tally {
    uint64_t requests, wavefronts, ideal, worst, bytes;
    uint64_t machine_requests, machine_wavefronts; /* after ptxas joined loads: widen.h */
    smk_request worst_request;                     /* the first that cost `worst` */
    uint32_t width;
    emu_operation operation;
} tally;

typedef struct cell {
    const ptx_instruction *ptx; /* NULL: never run */
    uint64_t warps, lanes;
    tally shared, global;
} cell;

typedef struct function_counts {
    struct function_counts *next;
    const ptx_function *function;
    struct widened *widened;
    uint8_t *atomic_forms;
    uint32_t n;
    cell cells[];
} function_counts;

struct counts {
    function_counts *functions; /* the one used last is first */
    uint64_t barriers;
    bool out_of_memory;
};

/* Adds up; of the worst requests the worse is kept. */
void tally_merge(tally *into, const tally *from);

#endif
