/* The lists a trace holds belong to it alone: whoever asked for the counts frees them. */
#include "job.h"

#include <stdlib.h>

void smk_trace_free(smk_trace *trace) {
    free(trace->sites);
    free(trace->opcodes);
    *trace = (smk_trace){0};
}
