/* Runs a task graph on the emulator. List order satisfies all dependencies: tasks wait only for
 * earlier ones. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../emu/emu.h"
#include "pipeline.h"

/* The pipeline's buffers, in host memory and filled with NaN. */
static smk_code make_buffers(const smk_pipeline *pipeline, smk_buffer *buffers,
                             smk_status *status) {
    for (size_t i = 0; i < pipeline->n_buffers; i++) {
        const size_t bytes = pipeline->buffers[i].bytes;
        buffers[i] = (smk_buffer){.bytes = bytes, .access = SMK_IN | SMK_OUT};
        buffers[i].host = guarded_alloc(bytes); /* aligned like device memory */
        if (!buffers[i].host) return smk_fail_memory(status, bytes, "a pipeline's buffers");
        memset(buffers[i].host, 0xff, bytes);
    }
    return SMK_OK;
}

static size_t copy(const smk_rectangle *r, const smk_buffer *buffers, bool in) {
    char *block = (char *)buffers[r->buffer].host + r->offset, *host = r->host;
    for (size_t i = 0; i < r->height; i++, block += r->pitch, host += r->host_pitch)
        memcpy(in ? block : host, in ? host : block, r->width);
    return r->width * r->height;
}

static smk_code compute(const smk_pipeline *pipeline, const smk_task *task,
                        const smk_buffer *buffers, smk_status *status) {
    smk_job job = *task->job;
    job.image = pipeline->image;
    job.buffers = buffers;
    job.n_buffers = pipeline->n_buffers;
    job.poll = pipeline->poll;
    job.poll_arg = pipeline->poll_arg;
    if (job.n_launches && emu_run(&job, status)) return status->code;
    if (pipeline->poll && pipeline->poll(pipeline->poll_arg)) /* short kernels do not poll */
        return smk_fail(status, SMK_INTERRUPTED, "interrupted");
    return SMK_OK;
}

static smk_code run_tasks(const smk_pipeline *pipeline, const smk_buffer *buffers,
                          smk_transfer *moved, smk_status *status) {
    for (size_t i = 0; i < pipeline->n_tasks; i++) {
        const smk_task *task = &pipeline->tasks[i];
        if (task->kind == SMK_COPY_IN) {
            moved->bytes_in += copy(&task->rectangle, buffers, true);
        } else if (task->kind == SMK_COPY_OUT) {
            const size_t bytes = copy(&task->rectangle, buffers, false);
            moved->bytes_out += bytes;
            if (pipeline->delivered) atomic_fetch_add(pipeline->delivered, bytes);
        } else if (compute(pipeline, task, buffers, status)) {
            return status->code;
        }
    }
    return SMK_OK;
}

smk_code pipeline_run_emu(const smk_pipeline *pipeline, smk_status *status) {
    struct timespec begin, end;
    smk_transfer moved = {.threads = 1, .steps = pipeline->n_tasks};
    smk_buffer *buffers = calloc(pipeline->n_buffers, sizeof *buffers);
    if (!buffers)
        return smk_fail_memory(status, pipeline->n_buffers * sizeof *buffers,
                               "a pipeline's buffers");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    smk_code code = make_buffers(pipeline, buffers, status);
    if (!code) code = run_tasks(pipeline, buffers, &moved, status);
    clock_gettime(CLOCK_MONOTONIC, &end);
    moved.seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    if (!code && pipeline->transfer) *pipeline->transfer = moved;
    for (size_t i = 0; i < pipeline->n_buffers; i++)
        guarded_free(buffers[i].host, buffers[i].bytes);
    free(buffers);
    return code;
}
