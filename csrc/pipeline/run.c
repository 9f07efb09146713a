/* Runs a flow: its streams, its memory on the device, its kernels; what the threads do is workers_run.c's. */
#include "../cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipeline.h"
#include "run.h"
#include "peer_group.h"
#include "workers.h"
#include "../cuda/pool.h"
#include "../cuda/stream.h"

enum {
    SMALL_BYTES = 4 << 20, /* of flows that one stream does as fast */
    MOST_STREAMS = SMK_COMPUTE_STREAMS + STAGE_WAYS + 1
};

/* What one call holds on the device. */
typedef struct run {
    pipeline_state f;
    module *module;
    interrupt_poller interrupt_poller;
    char what[256];
    CUstream own[MOST_STREAMS]; /* taken for this call */
    int n_own;
    int n_computes, n_threads;
    int64_t started, ended; /* ended: the last byte was where it belongs; 0: not yet */
} run;

static size_t bytes_of(const smk_pipeline *flow) {
    size_t bytes = 0;
    for (size_t i = 0; i < flow->n_tasks; i++)
        if (flow->tasks[i].kind != SMK_COMPUTE)
            bytes += flow->tasks[i].rectangle.width * flow->tasks[i].rectangle.lines;
    return bytes;
}

static smk_code take_stream(run *r, CUstream *out, smk_status *status) {
    smk_code code = stream_take(r->f.d, out, status);
    if (!code) r->own[r->n_own++] = *out;
    return code;
}

/* One stream where there is nothing to overlap: several take longer to tell of each other. */
static smk_code open_streams(run *r, smk_status *status) {
    pipeline_state *f = &r->f;
    CUstream first = f->flow->stream;
    smk_code code = first ? SMK_OK : take_stream(r, &first, status);
    const bool several = f->group || r->n_computes > 1 || bytes_of(f->flow) > SMALL_BYTES;
    for (int way = 0; way < STAGE_WAYS && !code; way++) {
        f->copies[way] = first;
        if (several) code = take_stream(r, &f->copies[way], status);
    }
    for (int i = 0; i < SMK_COMPUTE_STREAMS && !code; i++) {
        f->lanes[i] = first;
        if (i && r->n_computes > 1 && !f->flow->stream) code = take_stream(r, &f->lanes[i], status);
    }
    if (!code && f->group && peer_group_can_copy(f)) code = take_stream(r, &f->passing, status);
    return code;
}

/* All of the flow's streams, each once. */
static int all_streams(const pipeline_state *f, CUstream out[MOST_STREAMS]) {
    CUstream every[MOST_STREAMS];
    int n_every = 0, n = 0;
    for (int i = 0; i < SMK_COMPUTE_STREAMS; i++)
        every[n_every++] = f->lanes[i];
    for (int way = 0; way < STAGE_WAYS; way++)
        every[n_every++] = f->copies[way];
    every[n_every++] = f->passing;
    for (int i = 0; i < n_every; i++) {
        int at = 0;
        while (at < n && out[at] != every[i])
            at++;
        if (at == n && every[i]) out[n++] = every[i];
    }
    return n;
}

/* Memory of the pool belongs to the stream that asked for it; the others begin behind that. */
static smk_code allocate(run *r, smk_status *status) {
    pipeline_state *f = &r->f;
    CUstream streams[MOST_STREAMS], first = f->lanes[0];
    for (size_t i = 0; i < f->flow->n_after; i++)
        if (stream_wait(f->d, first, f->flow->after[i], status)) return status->code;
    for (size_t i = 0; i < f->flow->n_buffers; i++) {
        const smk_buffer *buffer = &f->flow->buffers[i];
        if (buffer->access & SMK_ON_DEVICE)
            f->addresses[i] = (CUdeviceptr)(uintptr_t)buffer->host;
        else if (buffer->bytes &&
                 pool_allocate(f->d, first, buffer->bytes, &f->addresses[i], status))
            return status->code;
    }
    const int n = all_streams(f, streams);
    for (int i = 0; i < n; i++)
        if (streams[i] != first && stream_wait(f->d, streams[i], first, status))
            return status->code;
    return SMK_OK;
}

static smk_code make_launches(run *r, smk_status *status) {
    pipeline_state *f = &r->f;
    smk_code code = module_acquire(f->d, &f->flow->image, &r->module, status);
    for (size_t i = 0; i < f->flow->n_tasks && !code; i++) {
        const smk_task *task = &f->flow->tasks[i];
        if (task->kind != SMK_COMPUTE) continue;
        f->tasks[i].plan = (launch_plan){.job = task->job, .stream = f->lanes[task->lane]};
        code = launch_find(f->d, &f->tasks[i].plan, r->module, status);
    }
    if (!code) code = allocate(r, status);
    for (size_t i = 0; i < f->flow->n_tasks && !code; i++)
        if (f->flow->tasks[i].kind == SMK_COMPUTE)
            code = launch_make_args(f->d, &f->tasks[i].plan, f->addresses, status);
    return code;
}

static smk_code wait_for_all(run *r, smk_status *status) {
    CUstream streams[MOST_STREAMS];
    const int n = all_streams(&r->f, streams);
    smk_code code = SMK_OK;
    for (int i = 0; i < n && !code; i++)
        code = wait_for_stream(r->f.d, streams[i], &r->interrupt_poller, r->what, status);
    if (!code && !r->ended) r->ended = wait_now();
    return code;
}

static smk_code time_repeats(run *r, smk_status *status) {
    const smk_code code = wait_for_all(r, status);
    if (code) return code;
    for (size_t i = 0; i < r->f.flow->n_tasks; i++)
        if (r->f.flow->tasks[i].kind == SMK_COMPUTE)
            return launch_timed(r->f.d, &r->f.tasks[i].plan, r->f.flow->repeat,
                                r->f.flow->milliseconds, &r->interrupt_poller, r->what, status);
    return SMK_OK;
}

static smk_code init_tasks(run *r, smk_status *status) {
    pipeline_state *f = &r->f;
    const size_t bytes = (f->flow->n_buffers + 1) * sizeof *f->addresses;
    f->addresses = calloc(1, bytes);
    if (!f->addresses) return smk_fail_memory(status, bytes, "buffer addresses");
    const smk_code code = open_streams(r, status);
    return code ? code : tasks_init(f, status);
}

/* Threads fill slots while memory is allocated, which takes as long as half a MiB does. */
static smk_code work_alone(run *r, workers *crew, smk_status *status) {
    pipeline_state *f = &r->f;
    smk_code code = init_tasks(r, status);
    if (!code) code = workers_start(f, crew, &r->interrupt_poller, status);
    if (!code) code = make_launches(r, status);
    if (!code) workers_run(f, crew);
    return workers_join(f, crew, status);
}

/* It is said first who brings what. */
static smk_code work_together(run *r, workers *crew, smk_status *status) {
    pipeline_state *f = &r->f;
    smk_code code = init_tasks(r, status);
    if (!code) code = make_launches(r, status);
    if (code) {
        peer_group_absent(f->group);
        return code;
    }
    peer_group_join(f);
    if (!workers_start(f, crew, &r->interrupt_poller, status)) workers_run(f, crew);
    code = workers_join(f, crew, status);
    peer_group_leave(f, code != SMK_OK, &r->interrupt_poller);
    return code;
}

static smk_code run_flow(run *r, smk_status *status) {
    workers crew;
    crew.n = 0;
    const smk_code code = (r->f.group ? work_together : work_alone)(r, &crew, status);
    r->n_threads = crew.n;
    return code || !r->f.flow->repeat ? code : time_repeats(r, status);
}

/* The first stream comes behind all of them. */
static void join(run *r, smk_status *status) {
    CUstream streams[MOST_STREAMS], first = r->f.lanes[0];
    const int n = all_streams(&r->f, streams);
    for (int i = 0; first && i < n; i++)
        if (streams[i] != first) stream_wait(r->f.d, first, streams[i], status);
}

/* Memory is freed behind the work, while that still runs; only where that cannot be had, or would wait where no signal is
 * heard, as without a pool, after it. Whether it was interrupted, and something may run on. */
static bool finish(run *r, bool left_running, smk_status *status) {
    pipeline_state *f = &r->f;
    smk_status waited = {0}, freed = {0};
    join(r, &freed);
    if (!left_running && (freed.code || !f->d->pool))
        left_running = wait_for_all(r, &waited) == SMK_INTERRUPTED;
    for (size_t i = 0; f->addresses && i < f->flow->n_buffers; i++)
        if (f->addresses[i] && !(f->flow->buffers[i].access & SMK_ON_DEVICE))
            pool_free(f->d, f->lanes[0], f->addresses[i], &freed);
    if (!left_running) left_running = wait_for_all(r, &waited) == SMK_INTERRUPTED;
    /* Any call tells of a kernel's failure: that which waits names it. */
    if (waited.code) smk_fail(status, waited.code, "%s", waited.message);
    if (freed.code) smk_fail(status, freed.code, "%s", freed.message);
    return left_running;
}

/* Lets go of everything. After a lost context nothing is worth a call, and nothing would answer. A kernel
 * that still runs, after an interruption, keeps what it uses until it ends. */
static smk_code release(run *r, smk_code code, smk_status *status) {
    pipeline_state *f = &r->f;
    device *d = f->d;
    const CUstream first = f->lanes[0];
    const bool left_running = !atomic_load(&d->lost) && finish(r, code == SMK_INTERRUPTED, status);
    if (atomic_load(&d->lost)) goto host;

    if (left_running) {
        module_release_after(d, r->module, first, r->own, r->n_own);
    } else {
        /* A synchronize is where the pool drops what is above its threshold. */
        CUresult result = first ? d->cu->cuStreamSynchronize(first) : CUDA_SUCCESS;
        if (result) device_fail(d, result, SMK_LAUNCH, status, "%s", r->what);
        if (r->module) module_release(d, r->module);
        while (r->n_own)
            stream_give(d, r->own[--r->n_own]);
    }

host:
    tasks_free(f);
    free(f->addresses);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    pthread_mutex_destroy(&f->calls);
    return status->code;
}

smk_code pipeline_run_group(int ordinal, const smk_pipeline *flow, peer_group *group, int self,
                            smk_status *status) {
    run r = {.f = {.flow = flow, .group = group, .self = self},
             .interrupt_poller = interrupt_poller_start(flow->poll, flow->poll_arg)};
    smk_code code = device_enter(ordinal, &r.f.d, status);
    if (code) {
        if (group) peer_group_absent(group);
        return code;
    }
    r.started = wait_now();
    const int mode = device_relax_capture_mode(r.f.d);
    pthread_mutex_init(&r.f.calls, NULL);
    pthread_mutex_init(&r.f.lock, NULL);
    wait_init(&r.f.changed);
    const smk_job *last = NULL;
    for (size_t i = 0; i < flow->n_tasks; i++)
        if (flow->tasks[i].kind == SMK_COMPUTE) {
            last = flow->tasks[i].job;
            r.n_computes++;
        }
    if (last)
        snprintf(r.what, sizeof r.what, "kernel \"%s\" on device %d (%s)",
                 last->launches[last->n_launches - 1].entry, r.f.d->info.ordinal, r.f.d->info.name);
    r.f.what = r.what;
    code = release(&r, run_flow(&r, status), status);
    if (!code && flow->transfer)
        *flow->transfer = (smk_transfer){.bytes_in = r.f.bytes[STAGE_IN],
                                         .bytes_out = r.f.bytes[STAGE_OUT],
                                         .bytes_direct = r.f.bytes_direct,
                                         .bytes_staged = r.f.bytes_staged,
                                         .bytes_peer = r.f.bytes_peer,
                                         .seconds = 1e-9 * (double)(r.ended - r.started),
                                         .threads = r.n_threads,
                                         .steps = flow->n_tasks};
    device_restore_capture_mode(r.f.d, mode);
    device_leave(r.f.d);
    return code;
}

smk_code pipeline_run_gpu(int ordinal, const smk_pipeline *flow, smk_status *status) {
    return pipeline_run_group(ordinal, flow, NULL, 0, status);
}
