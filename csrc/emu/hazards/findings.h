/* Findings: repeated ones are folded as they are found, and told in source lines in the end. */
#ifndef EMU_HAZARDS_FINDINGS_H
#define EMU_HAZARDS_FINDINGS_H

#include "../../core/job.h"
#include "../machine/machine.h"

typedef struct finding_party {
    const ptx_instruction *ptx; /* NULL: there is none */
    uint32_t block[3];
    uint32_t thread; /* in the block */
} finding_party;

typedef struct finding {
    smk_hazard_kind kind;
    finding_party party, other;
    uint64_t address; /* as its region knows it; 0: none */
    uint32_t width;
    uint64_t count;
    char *message; /* owned */
} finding;

typedef struct findings {
    finding *items;
    size_t n, room;
    uint32_t *table; /* index + 1 by kind and instructions */
    size_t table_size;
    bool out_of_memory;
} findings;

/* Takes f's message. Of equal ones the count is summed, and the one of the lowest block stays. */
void findings_add(findings *all, finding f);
void findings_free(findings *all);

/* What a launch says of a place and of a thread. */
typedef struct finding_scene {
    uint32_t block[3];
    const ptx_module *module;
    const ptx_function *entry;
    uint64_t dynamic_shared_at;
    smk_trace *trace; /* whose the strings will be */
} finding_scene;

/* Told into `out` (which has room for all): one for each kind and pair of lines; returns how many. */
size_t findings_tell(const findings *all, const finding_scene *scene, smk_hazard *out);

#endif
