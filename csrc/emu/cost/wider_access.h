/* What the requests of one PTX instruction would cost if the machine code's accesses were wider.
 *
 * ptxas may join an access with its neighbours to one of 8 or 16 aligned bytes per lane, also
 * across the steps of a loop that it unrolls. smemkern/_trace/machine_code.py reads from the
 * machine code how wide they are and how often they run; their cost is counted here. */
#ifndef EMU_WIDER_ACCESS_H
#define EMU_WIDER_ACCESS_H

#include "../../core/job.h"
#include "../observe/observer.h"

typedef struct wider_access {
    smk_wider_cost cost[SMK_N_WIDTHS];
} wider_access;

/* Adds a request of a load or store of shared memory, of up to 16 bytes per lane. */
void wider_access_record(wider_access *w, const emu_request *r);

void wider_access_merge(wider_access *into, const wider_access *from);

#endif
