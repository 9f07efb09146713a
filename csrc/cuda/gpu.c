/* A job on a GPU, from host buffers to host buffers. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "context.h"
#include "launch.h"
#include "module.h"
#include "pool.h"
#include "stream.h"
#include "transfer.h"

/* What one call holds on the device. */
typedef struct run {
    device *d;
    const smk_job *job;
    CUstream stream;
    module *module;
    CUdeviceptr *addresses; /* of the buffers; 0 for an empty one */
    launch_plan plan;
    patience patience;
    char what[256];    /* the kernel and the device, for messages */
    bool left_running; /* interrupted: kernels of this call may still run */
} run;

/* Of the kernel that the others prepare for, as messages name it. */
static const char *name_of(const smk_job *job) {
    return job->launches[job->n_launches - 1].entry;
}

static smk_code check_job(const smk_job *job, smk_status *status) {
    for (size_t i = 0; i < job->n_pointers; i++) {
        const smk_pointer *pointer = &job->pointers[i];
        if (pointer->buffer >= job->n_buffers ||
            pointer->arg_offset + sizeof(CUdeviceptr) > job->args_bytes)
            return smk_fail(status, SMK_VALUE,
                            "pointer %zu of kernel \"%s\" stands at byte %u of %zu argument bytes "
                            "and names buffer %u of %zu",
                            i, name_of(job), pointer->arg_offset, job->args_bytes, pointer->buffer,
                            job->n_buffers);
    }
    return SMK_OK;
}

/* Made when it is needed: most calls on arrays that are on the device return before that. */
static const char *what(run *r) {
    if (!*r->what)
        snprintf(r->what, sizeof r->what, "kernel \"%s\" on device %d (%s)", name_of(r->job),
                 r->d->info.ordinal, r->d->info.name);
    return r->what;
}

static smk_code wait_for_kernels(run *r, smk_status *status) {
    smk_code code = wait_for_stream(r->d, r->stream, &r->patience, what(r), status);
    r->left_running = code == SMK_INTERRUPTED;
    return code;
}

static smk_code buffers_in(run *r, smk_status *status) {
    for (size_t i = 0; i < r->job->n_buffers; i++) {
        const smk_buffer *buffer = &r->job->buffers[i];
        if (buffer->access & SMK_ON_DEVICE) {
            r->addresses[i] = (CUdeviceptr)(uintptr_t)buffer->host;
            continue;
        }
        if (buffer->bytes == 0) continue;
        smk_code code = pool_allocate(r->d, r->stream, buffer->bytes, &r->addresses[i], status);
        if (!code && (buffer->access & SMK_IN))
            code = transfer_in(r->d, r->stream, r->addresses[i], buffer->host, buffer->bytes,
                               &r->patience, status);
        if (code) return code;
    }
    return SMK_OK;
}

static smk_code buffers_out(run *r, smk_status *status) {
    for (size_t i = 0; i < r->job->n_buffers; i++) {
        const smk_buffer *buffer = &r->job->buffers[i];
        if (buffer->bytes == 0 || !(buffer->access & SMK_OUT)) continue;
        smk_code code = transfer_out(r->d, r->stream, buffer->host, r->addresses[i], buffer->bytes,
                                     &r->patience, status);
        if (code) return code;
    }
    return SMK_OK;
}

static smk_code follow_producers(run *r, smk_status *status) {
    for (size_t i = 0; i < r->job->n_after; i++)
        if (stream_follow(r->d, r->stream, r->job->after[i], status)) return status->code;
    return SMK_OK;
}

static smk_code run_job(run *r, smk_status *status) {
    const smk_job *job = r->job;
    smk_code code;
    r->plan = (launch_plan){.job = job, .stream = r->stream};
    if ((code = module_acquire(r->d, &job->image, &r->module, status))) return code;
    if ((code = launch_find(r->d, &r->plan, r->module, status))) return code;
    if ((code = buffers_in(r, status))) return code;
    if ((code = launch_make_args(r->d, &r->plan, r->addresses, status))) return code;
    if ((code = follow_producers(r, status))) return code;
    if ((code = launch_all(r->d, &r->plan, status)) || job->asynchronous) return code;
    if ((code = wait_for_kernels(r, status))) return code;

    /* Before the repeats, which change a buffer that is both read and written. */
    if ((code = buffers_out(r, status))) return code;
    if (job->repeat > 0) {
        code = launch_timed(r->d, &r->plan, &r->patience, what(r), status);
        r->left_running = code == SMK_INTERRUPTED;
    }
    return code;
}

/* Lets go of everything. After a lost context nothing is worth a call, and nothing would answer. */
static smk_code release(run *r, smk_code code, smk_status *status) {
    device *d = r->d;
    /* A call that failed half-way may have kernels on the stream: wait for them here, where that
     * can be interrupted. */
    smk_status ignored = {0};
    if (code && !r->left_running && !atomic_load(&d->lost)) wait_for_kernels(r, &ignored);
    if (atomic_load(&d->lost)) goto host;

    for (size_t i = 0; i < r->job->n_buffers; i++)
        if (r->addresses[i] && !(r->job->buffers[i].access & SMK_ON_DEVICE))
            pool_free(d, r->stream, r->addresses[i], status);
    if (r->job->asynchronous && !code) {
        module_keep(d, r->module);
        goto host;
    }
    if (!r->left_running) {
        /* For host memory that is pinned, which is copied behind our back; and a synchronize is
         * where the pool drops what is above its threshold. */
        CUresult result = d->cu->cuStreamSynchronize(r->stream);
        if (result) device_fail(d, result, SMK_LAUNCH, status, "%s", what(r));
    }
    if (r->left_running) {
        module_release_after(d, r->module, r->stream, !r->job->stream);
    } else {
        if (r->module) module_release(d, r->module);
        if (!r->job->stream) stream_give(d, r->stream);
    }

host:
    launch_free(&r->plan);
    free(r->addresses);
    return status->code;
}

smk_code gpu_run(int ordinal, const smk_job *job, smk_status *status) {
    run r = {.job = job, .patience = patience_start(job->poll, job->poll_arg)};
    smk_code code = check_job(job, status);
    if (!code) code = device_enter(ordinal, &r.d, status);
    if (code) return code;

    const int mode = device_ignore_captures(r.d);
    r.addresses = calloc(job->n_buffers + 1, sizeof *r.addresses);
    if (!r.addresses)
        code = smk_fail_memory(status, job->n_buffers * sizeof *r.addresses, "buffer addresses");
    else if (job->stream)
        r.stream = job->stream;
    else
        code = stream_take(r.d, &r.stream, status);
    if (code) {
        free(r.addresses);
    } else {
        code = run_job(&r, status);
        code = release(&r, code, status);
    }
    device_heed_captures(r.d, mode);
    device_leave(r.d);
    return code;
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
        code = device_fail(d, result, SMK_VALUE, status,
                           "address 0x%llx is in the memory of no GPU (cuPointerGetAttribute)",
                           (unsigned long long)address);
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

smk_code gpu_pool_trim(int ordinal, smk_status *status) {
    device *d = device_enter_if_open(ordinal);
    if (!d) return SMK_OK; /* nothing is held */
    smk_code code = pool_trim(d, status);
    device_leave(d);
    return code;
}
