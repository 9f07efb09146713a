/* What threads do in a running flow. */
#ifndef SMK_CUDA_FLOW_WORK_H
#define SMK_CUDA_FLOW_WORK_H

#include "flow_steps.h"

/* Moves all pieces and starts all kernels, with as many threads as there is work for: the caller's alone, for
 * little. Kernels and copies may still run when it returns. */
smk_code flow_work(flow_state *f, patience *p, int *n_workers, smk_status *status);

#endif
