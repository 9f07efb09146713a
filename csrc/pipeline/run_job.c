/* Runs a job with buffers in host memory as a pipeline: copies in, kernels, copies out. */
#include <stdlib.h>

#include "../cuda/gpu.h"
#include "pipeline.h"

static smk_task copy_task(const smk_buffer *buffer, size_t index, bool out) {
    return (smk_task){
        .kind = out ? SMK_COPY_OUT : SMK_COPY_IN,
        .rectangle = {
            .host = buffer->host, .buffer = (uint32_t)index, .width = buffer->bytes, .height = 1}};
}

static smk_code run_tasks(int ordinal, const smk_job *job, smk_task *tasks, smk_status *status) {
    size_t n = 0;
    for (size_t i = 0; i < job->n_buffers; i++)
        if (job->buffers[i].access & SMK_IN) tasks[n++] = copy_task(&job->buffers[i], i, false);
    const uint32_t compute = (uint32_t)n;
    tasks[n++] = (smk_task){.kind = SMK_COMPUTE, .job = job};
    if (compute) { /* copies in share a stream: waiting for the last is enough */
        tasks[compute].after[0] = compute - 1;
        tasks[compute].n_after = 1;
    }
    for (size_t i = 0; i < job->n_buffers; i++) {
        if (!(job->buffers[i].access & SMK_OUT)) continue;
        tasks[n] = copy_task(&job->buffers[i], i, true);
        tasks[n].after[0] = compute;
        tasks[n++].n_after = 1;
    }
    const smk_pipeline pipeline = {.image = job->image,
                                   .buffers = job->buffers,
                                   .n_buffers = job->n_buffers,
                                   .tasks = tasks,
                                   .n_tasks = n,
                                   .stream = job->stream,
                                   .after = job->after,
                                   .n_after = job->n_after,
                                   .poll = job->poll,
                                   .poll_arg = job->poll_arg,
                                   .repeat = job->repeat,
                                   .milliseconds = job->milliseconds,
                                   .transfer = job->transfer};
    return pipeline_run_gpu(ordinal, &pipeline, status);
}

smk_code pipeline_run_job(int ordinal, const smk_job *job, smk_status *status) {
    for (const smk_job *one = job; one; one = one->next)
        if (gpu_check_job(one, status)) return status->code;
    if (job->asynchronous) return gpu_queue(ordinal, job, status);
    const size_t most = 2 * job->n_buffers + 1;
    smk_task *tasks = calloc(most, sizeof *tasks);
    if (!tasks) return smk_fail_memory(status, most * sizeof *tasks, "a job's tasks");
    const smk_code code = run_tasks(ordinal, job, tasks, status);
    free(tasks);
    return code;
}
