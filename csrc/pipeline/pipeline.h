/* Host-device pipelines: calls on arrays in host memory.
 *
 * A problem is cut into blocks, and copies to the device, kernels and copies back run at the same time: what
 * a pipelined kernel does with tiles and shared memory, one level up.
 *
 *     plan/plan.h          from a problem to a task graph (plan/graph.h); a pure function
 *       schedule.c         which blocks, in which order
 *       out_of_core.c      ... where the device's memory is too small for the operands
 *       block_sizes.c, block_layout.c, plan.c
 *     run.c                runs a graph on a GPU: streams, memory, kernels
 *       tasks.h            which task is next
 *       workers.h          host threads that copy between the caller's memory and staging buffers
 *       staging_ring.h     ... through pinned memory (../cuda/stage.h)
 *       stream_copy.h      ... past the caches
 *       thread_pool.h
 *     multi_gpu.c          a graph per GPU; peer_group.h shares what all of them read
 *     run_emu.c            runs a graph on the emulator
 *
 * This is the header for the other folders.
 */
#ifndef SMK_PIPELINE_H
#define SMK_PIPELINE_H

#include "plan/graph.h"
#include "plan/plan.h"

smk_code pipeline_run_gpu(int ordinal, const smk_pipeline *pipeline, smk_status *status);

/* n pipelines at the same time, each on its GPU. The first one's poll is called. If one fails, all end. */
smk_code pipeline_run_gpus(const int *ordinals, const smk_pipeline *pipelines, int n,
                           smk_status *status);

/* The tasks in the order of their list, on the emulator. */
smk_code pipeline_run_emu(const smk_pipeline *pipeline, smk_status *status);

/* A job on a GPU: queued, if it is asynchronous; else a pipeline of copies in, its kernels, copies out. */
smk_code pipeline_run_job(int ordinal, const smk_job *job, smk_status *status);

#endif
