/* Findings: deduplicated as they are found, and reported by source line at the end. */
#ifndef EMU_HAZARDS_FINDINGS_H
#define EMU_HAZARDS_FINDINGS_H

#include "../../core/job.h"
#include "../machine/machine.h"

/* One of the operations of a finding: an instruction, and the thread that ran it. */
typedef struct finding_op {
    const ptx_instruction *ptx; /* NULL: none */
    uint32_t block[3];
    uint32_t thread; /* in the block */
} finding_op;

typedef struct finding {
    smk_hazard_kind kind;
    finding_op op, other; /* the one that comes last in the program, and the one before it */
    uint64_t address;     /* generic (machine/spaces.h); 0: none */
    uint32_t width;
    uint64_t count; /* 0: not to be reported */
    uint64_t step;  /* of a recorded run: the one that revealed it */
    bool of_copy;   /* no finding if the operation, or the other, is in a race, too */
    char *message;  /* owned */
} finding;

typedef struct findings {
    finding *items;
    size_t n, capacity;
    uint32_t *table; /* hash table of index + 1, by kind and instructions */
    size_t table_size;
    bool out_of_memory;
    const uint64_t *now; /* of a recorded run: the step that runs; else NULL */
} findings;

/* Takes ownership of f's message. Findings of one kind at the same instructions become one: counts
 * are added, and the operation of the lowest block and thread is kept. */
void findings_add(findings *all, finding f);
void findings_free(findings *all);

/* What a report needs of the launch, to name variables and threads. */
typedef struct finding_context {
    uint32_t block[3]; /* dimensions; 0: no launch so far */
    const ptx_module *module;
    const ptx_function *entry;
    uint64_t dynamic_shared_at;
    smk_trace *trace; /* owner of the strings */
} finding_context;

/* Writes one row per kind and pair of source lines to `out`, which has room for all findings.
 * Returns how many. */
size_t findings_report(const findings *all, const finding_context *context, smk_hazard *out);

#endif
