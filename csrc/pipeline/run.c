/* Runs a flow: its streams, its memory on the device, its kernels; what the threads do is flow_work.c's. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "flow.h"
#include "flow_group.h"
#include "flow_work.h"
#include "pool.h"
#include "stream.h"

enum {
    SMALL_BYTES = 4 << 20, /* of flows that one stream does as fast */
    MOST_STREAMS = SMK_LANES + STAGE_WAYS + 1
};

/* What one call holds on the device. */
typedef struct run {
    flow_state f;
    module *module;
    patience patience;
    char what[256];
    CUstream own[MOST_STREAMS]; /* taken for this call */
    int n_own;
    int n_computes, n_threads;
    int64_t started, ended; /* ended: the last byte was where it belongs; 0: not yet */
} run;

static size_t bytes_of(const smk_flow *flow) {
    size_t bytes = 0;
    for (size_t i = 0; i < flow->n_steps; i++)
        if (flow->steps[i].kind != SMK_COMPUTE)
            bytes += flow->steps[i].rectangle.width * flow->steps[i].rectangle.lines;
    return bytes;
}

static smk_code take_stream(run *r, CUstream *out, smk_status *status) {
    smk_code code = stream_take(r->f.d, out, status);
    if (!code) r->own[r->n_own++] = *out;
    return code;
}

/* One stream where there is nothing to overlap: several take longer to tell of each other. */
static smk_code open_streams(run *r, smk_status *status) {
    flow_state *f = &r->f;
    CUstream first = f->flow->stream;
    smk_code code = first ? SMK_OK : take_stream(r, &first, status);
    const bool several = f->group || r->n_computes > 1 || bytes_of(f->flow) > SMALL_BYTES;
    for (int way = 0; way < STAGE_WAYS && !code; way++) {
        f->copies[way] = first;
        if (several) code = take_stream(r, &f->copies[way], status);
    }
    for (int i = 0; i < SMK_LANES && !code; i++) {
        f->lanes[i] = first;
        if (i && r->n_computes > 1 && !f->flow->stream) code = take_stream(r, &f->lanes[i], status);
    }
    if (!code && f->group && flow_group_may_pass(f)) code = take_stream(r, &f->passing, status);
    return code;
}

/* All of the flow's streams, each once. */
static int all_streams(const flow_state *f, CUstream out[MOST_STREAMS]) {
    CUstream every[MOST_STREAMS];
    int n_every = 0, n = 0;
    for (int i = 0; i < SMK_LANES; i++)
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
    flow_state *f = &r->f;
    CUstream streams[MOST_STREAMS], first = f->lanes[0];
    for (size_t i = 0; i < f->flow->n_after; i++)
        if (stream_follow(f->d, first, f->flow->after[i], status)) return status->code;
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
        if (streams[i] != first && stream_follow(f->d, streams[i], first, status))
            return status->code;
    return SMK_OK;
}

static smk_code make_launches(run *r, smk_status *status) {
    flow_state *f = &r->f;
    smk_code code = module_acquire(f->d, &f->flow->image, &r->module, status);
    for (size_t i = 0; i < f->flow->n_steps && !code; i++) {
        const smk_step *step = &f->flow->steps[i];
        if (step->kind != SMK_COMPUTE) continue;
        f->steps[i].plan = (launch_plan){.job = step->job, .stream = f->lanes[step->lane]};
        code = launch_find(f->d, &f->steps[i].plan, r->module, status);
    }
    if (!code) code = allocate(r, status);
    for (size_t i = 0; i < f->flow->n_steps && !code; i++)
        if (f->flow->steps[i].kind == SMK_COMPUTE)
            code = launch_make_args(f->d, &f->steps[i].plan, f->addresses, status);
    return code;
}

static smk_code wait_for_all(run *r, smk_status *status) {
    CUstream streams[MOST_STREAMS];
    const int n = all_streams(&r->f, streams);
    smk_code code = SMK_OK;
    for (int i = 0; i < n && !code; i++)
        code = wait_for_stream(r->f.d, streams[i], &r->patience, r->what, status);
    if (!code && !r->ended) r->ended = wait_now();
    return code;
}

static smk_code time_repeats(run *r, smk_status *status) {
    const smk_code code = wait_for_all(r, status);
    if (code) return code;
    for (size_t i = 0; i < r->f.flow->n_steps; i++)
        if (r->f.flow->steps[i].kind == SMK_COMPUTE)
            return launch_timed(r->f.d, &r->f.steps[i].plan, r->f.flow->repeat,
                                r->f.flow->milliseconds, &r->patience, r->what, status);
    return SMK_OK;
}

static smk_code make_steps(run *r, smk_status *status) {
    flow_state *f = &r->f;
    const size_t bytes = (f->flow->n_buffers + 1) * sizeof *f->addresses;
    f->addresses = calloc(1, bytes);
    if (!f->addresses) return smk_fail_memory(status, bytes, "buffer addresses");
    const smk_code code = open_streams(r, status);
    return code ? code : flow_steps_make(f, status);
}

/* Threads fill slots while memory is allocated, which takes as long as half a MiB does. */
static smk_code work_alone(run *r, flow_crew *crew, smk_status *status) {
    flow_state *f = &r->f;
    smk_code code = make_steps(r, status);
    if (!code) code = flow_begin(f, crew, &r->patience, status);
    if (!code) code = make_launches(r, status);
    if (!code) flow_work(f, crew);
    return flow_end(f, crew, status);
}

/* It is said first who brings what. */
static smk_code work_together(run *r, flow_crew *crew, smk_status *status) {
    flow_state *f = &r->f;
    smk_code code = make_steps(r, status);
    if (!code) code = make_launches(r, status);
    if (code) {
        flow_group_miss(f->group);
        return code;
    }
    flow_group_meet(f);
    if (!flow_begin(f, crew, &r->patience, status)) flow_work(f, crew);
    code = flow_end(f, crew, status);
    flow_group_part(f, code != SMK_OK, &r->patience);
    return code;
}

static smk_code run_flow(run *r, smk_status *status) {
    flow_crew crew;
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
        if (streams[i] != first) stream_follow(r->f.d, first, streams[i], status);
}

/* Memory is freed behind the work, while that still runs; only where that cannot be had, or would wait where no signal is
 * heard, as without a pool, after it. Whether it was interrupted, and something may run on. */
static bool finish(run *r, bool left_running, smk_status *status) {
    flow_state *f = &r->f;
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
    flow_state *f = &r->f;
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
    flow_steps_free(f);
    free(f->addresses);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    pthread_mutex_destroy(&f->calls);
    return status->code;
}

smk_code flow_run(int ordinal, const smk_flow *flow, flow_group *group, int self,
                  smk_status *status) {
    run r = {.f = {.flow = flow, .group = group, .self = self},
             .patience = patience_start(flow->poll, flow->poll_arg)};
    smk_code code = device_enter(ordinal, &r.f.d, status);
    if (code) {
        if (group) flow_group_miss(group);
        return code;
    }
    r.started = wait_now();
    const int mode = device_ignore_captures(r.f.d);
    pthread_mutex_init(&r.f.calls, NULL);
    pthread_mutex_init(&r.f.lock, NULL);
    wait_init(&r.f.changed);
    const smk_job *last = NULL;
    for (size_t i = 0; i < flow->n_steps; i++)
        if (flow->steps[i].kind == SMK_COMPUTE) {
            last = flow->steps[i].job;
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
                                         .steps = flow->n_steps};
    device_heed_captures(r.f.d, mode);
    device_leave(r.f.d);
    return code;
}

smk_code gpu_flow(int ordinal, const smk_flow *flow, smk_status *status) {
    return flow_run(ordinal, flow, NULL, 0, status);
}
