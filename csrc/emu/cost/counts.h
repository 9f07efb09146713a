/* The observer that fills a job's smk_trace; see counts.c. */
#ifndef EMU_COUNTS_H
#define EMU_COUNTS_H

#include "../../core/job.h"
#include "../observe/observer.h"

typedef struct counts counts;

counts *counts_new(void); /* NULL: out of memory */
void counts_free(counts *c);
emu_observer counts_observer(counts *c);

/* Everything counted so far, by source line, space, access and width; and by opcode. Once.
 * `out` starts as zeros; smk_trace_free is due in any case. */
smk_code counts_report(counts *c, smk_trace *out, smk_status *status);

#endif
