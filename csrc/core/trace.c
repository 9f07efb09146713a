/* Traces: a trace owns its lists; the caller that requested the counts frees it. */
#include "job.h"

#include <stdlib.h>

bool smk_is_hazard(smk_hazard_kind kind) {
    static const bool is_benign[] = {
#define X(name, spelling, benign) [SMK_HAZARD_##name] = benign,
        SMK_HAZARD_MAP(X)
#undef X
    };
    return !is_benign[kind];
}

const char *smk_hazard_name(smk_hazard_kind kind) {
    static const char *const names[] = {
#define X(name, spelling, benign) [SMK_HAZARD_##name] = spelling,
        SMK_HAZARD_MAP(X)
#undef X
    };
    return names[kind];
}

const char *smk_space_name(smk_space space) {
    static const char *const names[] = {[SMK_NO_SPACE] = NULL,
                                        [SMK_SHARED_SPACE] = "shared",
                                        [SMK_GLOBAL_SPACE] = "global",
                                        [SMK_OTHER_SPACE] = "other"};
    return names[space];
}

const char *smk_access_name(smk_access access) {
    static const char *const names[] = {
        [SMK_LOAD] = "load",
        [SMK_STORE] = "store",
        [SMK_ATOMIC] = "atomic",
        [SMK_COPY_ASYNC] = "copy_async",
        [SMK_LDMATRIX] = "ldmatrix",
        [SMK_STMATRIX] = "stmatrix",
        [SMK_BULK] = "bulk",
        [SMK_MATRIX] = "matrix",
        [SMK_TEXTURE] = "texture",
        [SMK_REMOTE_LOAD] = "remote_load",
        [SMK_REMOTE_STORE] = "remote_store",
        [SMK_REMOTE_ATOMIC] = "remote_atomic",
    };
    return names[access];
}

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
