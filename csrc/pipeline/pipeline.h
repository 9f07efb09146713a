/* Host-device pipelines: calls on arrays in host memory.
 *
 * A problem is cut into blocks. Copies to the device, kernels and copies back run at the same time,
 * as in a pipelined kernel, one level up.
 *
 *     plan/plan.h          from a problem to a task graph (plan/graph.h); a pure function
 *       blocks.h           blocks of the operands, and their slots in device memory
 *       schedule.c         which blocks, in which order
 *       out_of_core.c      ... if the operands do not fit into device memory
 *       plan.c             the graph
 *       rates.h            what is assumed of the bus and the GPU: a row per chip
 *     run.c                runs a graph on a GPU: streams, memory, kernels
 *       tasks.h            which copies and kernels are next
 *       workers.h          host threads that copy between the caller's memory and staging buffers
 *       staging_ring.h     ... buffers in pinned memory (../cuda/stage.h)
 *       stream_copy.h      ... past the caches
 *       thread_pool.h
 *     multi_gpu.c          one graph per GPU; peer_group.h: copies that all of them need
 *     run_emu.c            runs a graph on the emulator
 *     run_job.c            a job with buffers in host memory as a small graph
 *
 * This is the header for the other folders.
 */
#ifndef SMK_PIPELINE_H
#define SMK_PIPELINE_H

#include "plan/graph.h"
#include "plan/plan.h"

smk_code pipeline_run_gpu(int ordinal, const smk_pipeline *pipeline, smk_status *status);

/* Runs n pipelines at the same time, each on its GPU. Only the first one's poll is called. If one
 * fails, all end. */
smk_code pipeline_run_gpus(const int *ordinals, const smk_pipeline *pipelines, int n,
                           smk_status *status);

/* Runs the tasks on the emulator, in list order. */
smk_code pipeline_run_emu(const smk_pipeline *pipeline, smk_status *status);

/* Runs a job on a GPU. An asynchronous one is enqueued; others are a pipeline: copies in, kernels,
 * copies out. */
smk_code pipeline_run_job(int ordinal, const smk_job *job, smk_status *status);

#endif
