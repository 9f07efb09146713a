/* The observer that finds hazards; see hazards.c. */
#ifndef EMU_HAZARDS_H
#define EMU_HAZARDS_H

#include "../../core/job.h"
#include "../observe/observer.h"

typedef struct hazards hazards;

/* The job must stay valid as long as the hazards. NULL: out of memory. */
hazards *hazards_new(const smk_job *job);
void hazards_free(hazards *h);
emu_observer hazards_observer(hazards *h);

/* Findings take the step that reveals them from *now (smk_hazard.step), which must stay valid while
 * the job runs. */
void hazards_set_step(hazards *h, const uint64_t *now);

/* Whether a fault, which is among the findings, has ended the run. */
bool hazards_stopped(const hazards *h);

/* Called when the job has ended: writes all findings, in the order of source lines, to
 * out->hazards. */
smk_code hazards_report(hazards *h, smk_trace *out, smk_status *status);

#endif
