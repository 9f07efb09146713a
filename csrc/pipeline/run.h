/* One flow, from its first allocation to its last byte. */
#ifndef SMK_CUDA_FLOW_H
#define SMK_CUDA_FLOW_H

#include "flow_group.h"

/* As gpu_flow. It meets the others of the group and parts from them, or is missed; NULL: there are none. */
smk_code flow_run(int ordinal, const smk_flow *flow, flow_group *group, int self,
                  smk_status *status);

#endif
