/* Jobs whose arrays are on the GPU: they are only enqueued. (Others run as pipelines:
 * pipeline/run_job.c.) Also queries of devices and memory. */
#include "gpu.h"

#include <stdlib.h>

#include "context.h"
#include "errors.h"
#include "launch.h"
#include "module.h"
#include "pool.h"
#include "stage.h"
#include "stream.h"

/* The kernel that messages name: the last one, because the others prepare its operands. */
static const char *name_of(const smk_job *job) {
    return job->launches[job->n_launches - 1].entry;
}

smk_code gpu_check_job(const smk_job *job, smk_status *status) {
    for (size_t i = 0; i < job->n_pointers; i++) {
        const smk_pointer *pointer = &job->pointers[i];
        if (pointer->buffer >= job->n_buffers ||
            pointer->arg_offset + sizeof(CUdeviceptr) > job->args_bytes)
            return smk_fail(status, SMK_VALUE,
                            "pointer %zu of kernel \"%s\" is at byte %u of %zu argument bytes "
                            "and refers to buffer %u of %zu",
                            i, name_of(job), pointer->arg_offset, job->args_bytes, pointer->buffer,
                            job->n_buffers);
    }
    return SMK_OK;
}

/* ---- enqueueing ---- */

/* The module is never unloaded, because the end of the kernels is not observed. */
static smk_code queue_kernels(device *d, const smk_job *job, CUstream stream,
                              const CUdeviceptr *addresses, smk_status *status) {
    launch_plan plan = {.job = job, .stream = stream};
    module *m;
    smk_code code = module_acquire(d, &job->image, &m, status);
    if (code) return code;
    if (!(code = launch_find(d, &plan, m, status)) &&
        !(code = launch_make_args(d, &plan, addresses, status)))
        code = launch_all(d, &plan, status);
    module_keep(d, m);
    launch_free(&plan);
    return code;
}

static smk_code queue_jobs(device *d, const smk_job *first, CUdeviceptr *addresses,
                           smk_status *status) {
    smk_code code = SMK_OK;
    for (size_t i = 0; i < first->n_buffers; i++) {
        const smk_buffer *buffer = &first->buffers[i];
        if (buffer->access & SMK_ON_DEVICE)
            addresses[i] = (CUdeviceptr)(uintptr_t)buffer->host;
        else if (buffer->bytes &&
                 pool_allocate(d, first->stream, buffer->bytes, &addresses[i], status))
            return status->code;
    }
    for (size_t i = 0; i < first->n_after; i++)
        if (stream_wait(d, first->stream, first->after[i], status)) return status->code;
    for (const smk_job *job = first; job && !code; job = job->next)
        code = queue_kernels(d, job, first->stream, addresses, status);
    return code;
}

smk_code gpu_queue(int ordinal, const smk_job *job, smk_status *status) {
    device *d;
    smk_code code = device_enter(ordinal, &d, status);
    if (code) return code;
    const int mode = device_relax_capture_mode(d);
    CUdeviceptr *addresses = calloc(job->n_buffers + 1, sizeof *addresses); /* 0: an empty buffer */
    if (addresses)
        queue_jobs(d, job, addresses, status);
    else
        smk_fail_memory(status, job->n_buffers * sizeof *addresses, "buffer addresses");
    if (!atomic_load(&d->lost))
        for (size_t i = 0; addresses && i < job->n_buffers; i++)
            if (addresses[i] && !(job->buffers[i].access & SMK_ON_DEVICE))
                pool_free(d, job->stream, addresses[i], status);
    free(addresses);
    device_restore_capture_mode(d, mode);
    device_leave(d);
    return status->code;
}

int gpu_count(smk_status *why) {
    smk_status unused = {0};
    const driver *cu = driver_open(why ? why : &unused);
    return cu ? cu->n_devices : 0;
}

smk_code gpu_describe(int ordinal, gpu_info *out, smk_status *status) {
    const driver *cu = driver_open(status);
    if (!cu) return status->code;
    const gpu_info *known = device_known(ordinal);
    if (!known) return device_describe(cu, ordinal, out, status);
    *out = *known;
    return SMK_OK;
}

smk_code gpu_pointer_device(uint64_t address, int *ordinal, smk_status *status) {
    device *d;
    smk_code code = device_enter(0, &d, status);
    if (code) return code;
    CUresult result =
        d->cu->cuPointerGetAttribute(ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (result)
        code =
            device_fail(d, result, SMK_VALUE, status,
                        driver_result_is_sticky(result)
                            ? "a kernel failed before address 0x%llx was looked up "
                              "(cuPointerGetAttribute)"
                            : "address 0x%llx is in the memory of no GPU (cuPointerGetAttribute)",
                        (unsigned long long)address);
    device_leave(d);
    return code;
}

smk_code gpu_memory(int ordinal, size_t *bytes, smk_status *status) {
    device *d;
    size_t total;
    smk_code code = device_enter(ordinal, &d, status);
    if (code) return code;
    CUresult result = d->cu->cuMemGetInfo(bytes, &total);
    if (result)
        code = device_fail(d, result, SMK_ERROR, status, "cuMemGetInfo");
    else
        *bytes =
            (*bytes + pool_bytes(d)) / 10 * 9; /* the rest: for others, and rounding to pages */
    device_leave(d);
    return code;
}

size_t gpu_pool_bytes(int ordinal) {
    device *d = device_enter_if_open(ordinal);
    if (!d) return 0;
    size_t bytes = pool_bytes(d);
    device_leave(d);
    return bytes;
}

size_t gpu_stage_bytes(int ordinal) {
    device *d = device_enter_if_open(ordinal);
    if (!d) return 0;
    size_t bytes = stage_bytes(d);
    device_leave(d);
    return bytes;
}

bool gpu_pin(void *memory, size_t bytes) {
    device *d = device_enter_any();
    if (!d) return false;
    const int mode = device_relax_capture_mode(d);
    const CUresult result = d->cu->cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    device_restore_capture_mode(d, mode);
    device_leave(d);
    return result == CUDA_SUCCESS;
}

void gpu_unpin(void *memory) {
    device *d = device_enter_any();
    if (!d) return;
    const int mode = device_relax_capture_mode(d);
    d->cu->cuMemHostUnregister(memory); /* a failure only leaves the registration */
    device_restore_capture_mode(d, mode);
    device_leave(d);
}

smk_code gpu_trim(int ordinal, smk_status *status) {
    device *d = device_enter_if_open(ordinal);
    if (!d) return SMK_OK; /* nothing to free */
    smk_code code = pool_trim(d, status);
    stage_trim(d);
    device_leave(d);
    return code;
}
