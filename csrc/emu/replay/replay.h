/* The observer that records a window of a run: see recorder.c. */
#ifndef EMU_REPLAY_H
#define EMU_REPLAY_H

#include "../../core/job.h"
#include "../observe/observer.h"

typedef struct recorder recorder;

/* Of job->recording. NULL: out of memory. */
recorder *recorder_new(const smk_job *job);
void recorder_free(recorder *r);
emu_observer recorder_observer(recorder *r);

/* The number of the step that runs now; valid until recorder_free. */
const uint64_t *recorder_now(const recorder *r);

/* Called when the job has ended: sets job->recording's bytes. `trace`: of the same run, for its
 * hazards; NULL: none. */
smk_code recorder_report(recorder *r, const smk_trace *trace, smk_status *status);

#endif
