/* One flow, from its first allocation to its last byte. */
#ifndef SMK_PIPELINE_RUN_H
#define SMK_PIPELINE_RUN_H

#include "peer_group.h"

/* As pipeline_run_gpu. It meets the others of the group and parts from them, or is missed; NULL: there are none. */
smk_code pipeline_run_group(int ordinal, const smk_pipeline *flow, peer_group *group, int self,
                            smk_status *status);

#endif
