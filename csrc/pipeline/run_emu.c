/* A flow of blocks on the emulator: its tasks in the order of their list, which is one that its waits allow. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../emu/emu.h"
#include "pipeline.h"

/* The flow's buffers in host memory, filled with a number that reads as NaN. */
static smk_code make_buffers(const smk_pipeline *flow, smk_buffer *buffers, smk_status *status) {
    for (size_t i = 0; i < flow->n_buffers; i++) {
        const size_t bytes = flow->buffers[i].bytes;
        buffers[i] = (smk_buffer){.bytes = bytes, .access = SMK_IN | SMK_OUT};
        buffers[i].host = guarded_alloc(bytes); /* aligned as the device's allocations */
        if (!buffers[i].host) return smk_fail_memory(status, bytes, "a flow's blocks");
        memset(buffers[i].host, 0xff, bytes);
    }
    return SMK_OK;
}

static size_t copy(const smk_rectangle *r, const smk_buffer *buffers, bool in) {
    char *block = (char *)buffers[r->buffer].host + r->offset, *host = r->host;
    for (size_t i = 0; i < r->lines; i++, block += r->pitch, host += r->host_pitch)
        memcpy(in ? block : host, in ? host : block, r->width);
    return r->width * r->lines;
}

static smk_code compute(const smk_pipeline *flow, const smk_task *task, const smk_buffer *buffers,
                        smk_status *status) {
    smk_job job = *task->job;
    job.image = flow->image;
    job.buffers = buffers;
    job.n_buffers = flow->n_buffers;
    job.poll = flow->poll;
    job.poll_arg = flow->poll_arg;
    if (job.n_launches && emu_run(&job, status)) return status->code;
    if (flow->poll && flow->poll(flow->poll_arg)) /* kernels of less than 50 ms do not ask */
        return smk_fail(status, SMK_INTERRUPTED, "interrupted");
    return SMK_OK;
}

static smk_code run_tasks(const smk_pipeline *flow, const smk_buffer *buffers, smk_transfer *moved,
                          smk_status *status) {
    for (size_t i = 0; i < flow->n_tasks; i++) {
        const smk_task *task = &flow->tasks[i];
        if (task->kind == SMK_COPY_IN) {
            moved->bytes_in += copy(&task->rectangle, buffers, true);
        } else if (task->kind == SMK_COPY_OUT) {
            const size_t bytes = copy(&task->rectangle, buffers, false);
            moved->bytes_out += bytes;
            if (flow->delivered) atomic_fetch_add(flow->delivered, bytes);
        } else if (compute(flow, task, buffers, status)) {
            return status->code;
        }
    }
    return SMK_OK;
}

smk_code pipeline_run_emu(const smk_pipeline *flow, smk_status *status) {
    struct timespec begin, end;
    smk_transfer moved = {.threads = 1, .steps = flow->n_tasks};
    smk_buffer *buffers = calloc(flow->n_buffers, sizeof *buffers);
    if (!buffers)
        return smk_fail_memory(status, flow->n_buffers * sizeof *buffers, "a flow's blocks");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    smk_code code = make_buffers(flow, buffers, status);
    if (!code) code = run_tasks(flow, buffers, &moved, status);
    clock_gettime(CLOCK_MONOTONIC, &end);
    moved.seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    if (!code && flow->transfer) *flow->transfer = moved;
    for (size_t i = 0; i < flow->n_buffers; i++)
        guarded_free(buffers[i].host, buffers[i].bytes);
    free(buffers);
    return code;
}
