/* Traces: a trace owns its lists; the caller that requested the counts frees it. */
#include "job.h"

#include <stdlib.h>

bool smk_trace_has_hazards(const smk_trace *trace) {
    for (size_t k = 0; k < trace->n_hazards; k++)
        if (smk_is_hazard(trace->hazards[k].kind)) return true;
    return false;
}

void smk_trace_free(smk_trace *trace) {
    free(trace->sites);
    free(trace->opcodes);
    free(trace->instructions);
    for (size_t k = 0; k < trace->n_hazards; k++)
        free(trace->hazards[k].message);
    free(trace->hazards);
    if (trace->texts) trace->free_texts(trace->texts);
    *trace = (smk_trace){0};
}
