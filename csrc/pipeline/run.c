/* Runs a pipeline on a GPU: streams, device memory, kernels. Copies are the workers' part. */
#include "../cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipeline.h"
#include "peer_group.h"
#include "workers.h"
#include "../cuda/pool.h"
#include "../cuda/stream.h"

enum {
    SMALL_BYTES = 4 << 20, /* one stream is as fast for these */
    MAX_STREAMS = SMK_COMPUTE_STREAMS + STAGE_WAYS + 1
};

/* What one call holds. */
typedef struct run {
    pipeline_state p;
    module *module;
    interrupt_poller interrupt_poller;
    char kernel_name[256];
    CUstream own[MAX_STREAMS]; /* streams taken for this call */
    int n_own;
    int n_computes, n_threads;
    int64_t started, ended; /* of the last byte; 0: not yet */
} run;

/* ---- preparation ---- */

static size_t copied_bytes(const smk_pipeline *graph) {
    size_t bytes = 0;
    for (size_t i = 0; i < graph->n_tasks; i++)
        if (graph->tasks[i].kind != SMK_COMPUTE)
            bytes += graph->tasks[i].rectangle.width * graph->tasks[i].rectangle.height;
    return bytes;
}

static smk_code take_stream(run *r, CUstream *out, smk_status *status) {
    smk_code code = stream_take(r->p.d, out, status);
    if (!code) r->own[r->n_own++] = *out;
    return code;
}

/* A single stream if there is nothing to overlap: waits between streams take time. */
static smk_code open_streams(run *r, smk_status *status) {
    pipeline_state *p = &r->p;
    CUstream first = p->graph->stream;
    smk_code code = first ? SMK_OK : take_stream(r, &first, status);
    const bool several = p->group || r->n_computes > 1 || copied_bytes(p->graph) > SMALL_BYTES;
    for (int way = 0; way < STAGE_WAYS && !code; way++) {
        p->copy_streams[way] = first;
        if (several) code = take_stream(r, &p->copy_streams[way], status);
    }
    for (int i = 0; i < SMK_COMPUTE_STREAMS && !code; i++) {
        p->compute_streams[i] = first;
        if (i && r->n_computes > 1 && !p->graph->stream)
            code = take_stream(r, &p->compute_streams[i], status);
    }
    if (!code && p->group && peer_group_can_copy(p)) code = take_stream(r, &p->peer_stream, status);
    return code;
}

/* All streams of the pipeline, each once. */
static int all_streams(const pipeline_state *p, CUstream out[MAX_STREAMS]) {
    CUstream every[MAX_STREAMS];
    int n_every = 0, n = 0;
    for (int i = 0; i < SMK_COMPUTE_STREAMS; i++)
        every[n_every++] = p->compute_streams[i];
    for (int way = 0; way < STAGE_WAYS; way++)
        every[n_every++] = p->copy_streams[way];
    every[n_every++] = p->peer_stream;
    for (int i = 0; i < n_every; i++) {
        int k = 0;
        while (k < n && out[k] != every[i])
            k++;
        if (k == n && every[i]) out[n++] = every[i];
    }
    return n;
}

/* Allocates on the first compute stream, in that stream's order. The other streams wait for it. */
static smk_code allocate(run *r, smk_status *status) {
    pipeline_state *p = &r->p;
    CUstream streams[MAX_STREAMS], first = p->compute_streams[0];
    for (size_t i = 0; i < p->graph->n_after; i++)
        if (stream_wait(p->d, first, p->graph->after[i], status)) return status->code;
    for (size_t i = 0; i < p->graph->n_buffers; i++) {
        const smk_buffer *buffer = &p->graph->buffers[i];
        if (buffer->access & SMK_ON_DEVICE)
            p->addresses[i] = (CUdeviceptr)(uintptr_t)buffer->host;
        else if (buffer->bytes &&
                 pool_allocate(p->d, first, buffer->bytes, &p->addresses[i], status))
            return status->code;
    }
    const int n = all_streams(p, streams);
    for (int i = 0; i < n; i++)
        if (streams[i] != first && stream_wait(p->d, streams[i], first, status))
            return status->code;
    return SMK_OK;
}

static smk_code init_tasks(run *r, smk_status *status) {
    pipeline_state *p = &r->p;
    const size_t bytes = (p->graph->n_buffers + 1) * sizeof *p->addresses;
    p->addresses = calloc(1, bytes);
    if (!p->addresses) return smk_fail_memory(status, bytes, "buffer addresses");
    const smk_code code = open_streams(r, status);
    return code ? code : tasks_init(p, status);
}

/* Loads the kernels, allocates device memory, and fills in the kernels' arguments. */
static smk_code init_launches(run *r, smk_status *status) {
    pipeline_state *p = &r->p;
    smk_code code = module_acquire(p->d, &p->graph->image, &r->module, status);
    for (size_t i = 0; i < p->graph->n_tasks && !code; i++) {
        const smk_task *task = &p->graph->tasks[i];
        if (task->kind != SMK_COMPUTE) continue;
        p->tasks[i].launches =
            (launch_plan){.job = task->job, .stream = p->compute_streams[task->compute_stream]};
        code = launch_find(p->d, &p->tasks[i].launches, r->module, status);
    }
    if (!code) code = allocate(r, status);
    for (size_t i = 0; i < p->graph->n_tasks && !code; i++)
        if (p->graph->tasks[i].kind == SMK_COMPUTE)
            code = launch_make_args(p->d, &p->tasks[i].launches, p->addresses, status);
    return code;
}

/* ---- running ---- */

static smk_code wait_for_all(run *r, smk_status *status) {
    CUstream streams[MAX_STREAMS];
    const int n = all_streams(&r->p, streams);
    smk_code code = SMK_OK;
    for (int i = 0; i < n && !code; i++)
        code = wait_for_stream(r->p.d, streams[i], &r->interrupt_poller, r->kernel_name, status);
    if (!code && !r->ended) r->ended = wait_now();
    return code;
}

static smk_code time_repeats(run *r, smk_status *status) {
    const smk_pipeline *graph = r->p.graph;
    const smk_code code = wait_for_all(r, status);
    if (code) return code;
    for (size_t i = 0; i < graph->n_tasks; i++)
        if (graph->tasks[i].kind == SMK_COMPUTE)
            return launch_timed(r->p.d, &r->p.tasks[i].launches, graph->repeat, graph->milliseconds,
                                &r->interrupt_poller, r->kernel_name, status);
    return SMK_OK;
}

/* Threads fill slots while device memory is allocated: that takes as long as half a MiB does. */
static smk_code run_alone(run *r, workers *all, smk_status *status) {
    pipeline_state *p = &r->p;
    smk_code code = init_tasks(r, status);
    if (!code) code = workers_start(p, all, &r->interrupt_poller, status);
    if (!code) code = init_launches(r, status);
    if (!code) workers_run(p, all);
    return workers_join(p, all, status);
}

/* Threads start after the group has agreed on who copies what. */
static smk_code run_with_peers(run *r, workers *all, smk_status *status) {
    pipeline_state *p = &r->p;
    smk_code code = init_tasks(r, status);
    if (!code) code = init_launches(r, status);
    if (code) {
        peer_group_absent(p->group);
        return code;
    }
    peer_group_join(p);
    if (!workers_start(p, all, &r->interrupt_poller, status)) workers_run(p, all);
    code = workers_join(p, all, status);
    peer_group_leave(p, code != SMK_OK, &r->interrupt_poller);
    return code;
}

static smk_code run_tasks(run *r, smk_status *status) {
    workers all;
    all.n = 0;
    const smk_code code = (r->p.group ? run_with_peers : run_alone)(r, &all, status);
    r->n_threads = all.n;
    return code || !r->p.graph->repeat ? code : time_repeats(r, status);
}

/* ---- the end ---- */

/* The first compute stream waits for all others. */
static void join_streams(run *r, smk_status *status) {
    CUstream streams[MAX_STREAMS], first = r->p.compute_streams[0];
    const int n = all_streams(&r->p, streams);
    for (int i = 0; first && i < n; i++)
        if (streams[i] != first) stream_wait(r->p.d, first, streams[i], status);
}

/* Frees device memory in stream order, while the work still runs. Without a pool, where freeing
 * would block without polling for signals, and if the streams cannot be joined, it first waits for
 * the work. Returns true if that was interrupted and work may still run. */
static bool finish(run *r, bool left_running, smk_status *status) {
    pipeline_state *p = &r->p;
    smk_status waited = {0}, freed = {0};
    join_streams(r, &freed);
    if (!left_running && (freed.code || !p->d->pool))
        left_running = wait_for_all(r, &waited) == SMK_INTERRUPTED;
    for (size_t i = 0; p->addresses && i < p->graph->n_buffers; i++)
        if (p->addresses[i] && !(p->graph->buffers[i].access & SMK_ON_DEVICE))
            pool_free(p->d, p->compute_streams[0], p->addresses[i], &freed);
    if (!left_running) left_running = wait_for_all(r, &waited) == SMK_INTERRUPTED;
    /* Any call can report a kernel's failure. Only the wait's message names the kernel. */
    if (waited.code) smk_fail(status, waited.code, "%s", waited.message);
    if (freed.code) smk_fail(status, freed.code, "%s", freed.message);
    return left_running;
}

/* The textures of the graph's job (a graph of several jobs has none), which the caller frees. */
static texture_set *take_textures(pipeline_state *p) {
    texture_set *found = NULL;
    for (size_t i = 0; p->tasks && i < p->graph->n_tasks && !found; i++) {
        found = p->tasks[i].launches.textures;
        p->tasks[i].launches.textures = NULL;
    }
    return found;
}

/* Releases everything. A kernel that still runs after an interruption keeps what it uses until it
 * ends. After a lost context all driver calls fail, so none is made. */
static smk_code release(run *r, smk_code code, smk_status *status) {
    pipeline_state *p = &r->p;
    device *d = p->d;
    const CUstream first = p->compute_streams[0];
    texture_set *textures = take_textures(p);
    const bool left_running = !atomic_load(&d->lost) && finish(r, code == SMK_INTERRUPTED, status);
    if (!status->code) texture_set_restore(textures);
    if (atomic_load(&d->lost)) {
        texture_set_forget(textures);
        goto host;
    }

    if (left_running) {
        module_release_after(d, r->module, first, r->own, r->n_own, textures);
    } else {
        /* At a synchronize the pool returns memory above its threshold to the system. */
        CUresult result = first ? d->cu->cuStreamSynchronize(first) : CUDA_SUCCESS;
        if (result) device_fail(d, result, SMK_LAUNCH, status, "%s", r->kernel_name);
        texture_set_destroy(d, textures);
        if (r->module) module_release(d, r->module);
        while (r->n_own)
            stream_give(d, r->own[--r->n_own]);
    }

host:
    tasks_free(p);
    free(p->addresses);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->driver_mutex);
    return status->code;
}

/* Counts the compute tasks. Messages name the last kernel of the last one. */
static void inspect_graph(run *r) {
    const smk_pipeline *graph = r->p.graph;
    const smk_job *last = NULL;
    for (size_t i = 0; i < graph->n_tasks; i++) {
        if (graph->tasks[i].kind != SMK_COMPUTE) continue;
        last = graph->tasks[i].job;
        r->n_computes++;
    }
    if (last && last->n_launches)
        snprintf(r->kernel_name, sizeof r->kernel_name, "kernel \"%s\" on device %d (%s)",
                 last->launches[last->n_launches - 1].entry, r->p.d->info.ordinal,
                 r->p.d->info.name);
    r->p.kernel_name = r->kernel_name;
}

smk_code pipeline_run_member(int ordinal, const smk_pipeline *pipeline, peer_group *group,
                             int member, smk_status *status) {
    run r = {.p = {.graph = pipeline, .group = group, .member = member},
             .interrupt_poller = interrupt_start(pipeline->poll, pipeline->poll_arg, NULL)};
    smk_code code = device_enter(ordinal, &r.p.d, status);
    if (code) {
        if (group) peer_group_absent(group);
        return code;
    }
    r.started = wait_now();
    const int mode = device_relax_capture_mode(r.p.d);
    pthread_mutex_init(&r.p.driver_mutex, NULL);
    pthread_mutex_init(&r.p.lock, NULL);
    wait_init(&r.p.changed);
    inspect_graph(&r);
    code = release(&r, run_tasks(&r, status), status);
    if (!code && pipeline->transfer)
        *pipeline->transfer = (smk_transfer){.bytes_in = r.p.bytes[STAGE_IN],
                                             .bytes_out = r.p.bytes[STAGE_OUT],
                                             .bytes_direct = r.p.bytes_direct,
                                             .bytes_staged = r.p.bytes_staged,
                                             .bytes_peer = r.p.bytes_peer,
                                             .seconds = 1e-9 * (double)(r.ended - r.started),
                                             .threads = r.n_threads,
                                             .steps = pipeline->n_tasks};
    device_restore_capture_mode(r.p.d, mode);
    device_leave(r.p.d);
    return code;
}

smk_code pipeline_run_gpu(int ordinal, const smk_pipeline *pipeline, smk_status *status) {
    return pipeline_run_member(ordinal, pipeline, NULL, 0, status);
}
