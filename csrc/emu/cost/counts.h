/* The observer that counts for a job's smk_trace: see counts.c. */
#ifndef EMU_COUNTS_H
#define EMU_COUNTS_H

#include "../../core/job.h"
#include "../observe/observer.h"

typedef struct counts counts;

/* by_instruction: for smk_trace.instructions. NULL: out of memory. */
counts *counts_new(bool by_instruction);
void counts_free(counts *c);
emu_observer counts_observer(counts *c);

/* Fills `out` (zeros before) with the counts so far, by source line, space, access and width, and
 * by opcode. Call it once: it merges the tables in place. Call smk_trace_free(out) also on
 * failure. */
smk_code counts_report(counts *c, smk_trace *out, smk_status *status);

#endif
