/* Each thread copies slices between host memory and staging slots, in whichever direction there is
 * work.
 *
 *      in:   host memory --(threads)--> slot --(copy engine)--> device
 *      out:  device --(copy engine)--> slot --(threads)--> host memory
 *
 * One core copies 10 GB/s and the bus 55 GB/s in each direction, so many threads share the work.
 * The caller's thread is one of them, and also polls for signals. Pinned memory is copied directly.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "workers.h"

#include <sched.h>
#include <time.h>

#include "peer_group.h"
#include "staging_ring.h"
#include "stream_copy.h"
#include "thread_pool.h"

enum {
    FEW_THREADS = 4, /* up to here one thread per FEW_BYTES, which take as long as waking one ... */
    FEW_BYTES = 512 << 10,
    THREAD_BYTES = 2 << 20,        /* ... then one per THREAD_BYTES */
    MEMORY_BOUND_BYTES = 64 << 20, /* staged; above, host memory is the bottleneck */
    WORKER_SPIN_NS = 200 * 1000,   /* then it sleeps until it is woken */
    CALLER_SPIN_NS = 500 * 1000,   /* then it naps */
    NAP_NS = 20 * 1000,
    SPINS = 50, /* 2 us */
    QUERY_NS = 1000 * 1000
};

static smk_code fail(worker *w, CUresult result, const char *call) {
    return pipeline_fail(w->pipeline, result, call, &w->status);
}

static void deliver(worker *w, const smk_rectangle *r) {
    if (w->pipeline->graph->delivered)
        atomic_fetch_add(w->pipeline->graph->delivered, r->width * r->height);
}

/* ---- copies by the driver ---- */

/* One end of a copy; `host` is NULL for device memory. */
typedef struct endpoint {
    char *host;
    CUdeviceptr device;
    size_t pitch;
} endpoint;

static endpoint device_endpoint(const pipeline_state *p, const smk_rectangle *r) {
    return (endpoint){.device = p->addresses[r->buffer] + r->offset, .pitch = r->pitch};
}

/* Enqueues a copy of the rectangle's size. *call: the driver function. */
static CUresult copy(const driver *cu, endpoint to, endpoint from, const smk_rectangle *r,
                     CUstream stream, const char **call) {
    const size_t bytes = r->width * r->height;
    if (r->height > 1 && (to.pitch != r->width || from.pitch != r->width)) {
        const CUDA_MEMCPY2D rows = {
            .srcMemoryType = from.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
            .srcHost = from.host,
            .srcDevice = from.device,
            .srcPitch = from.pitch,
            .dstMemoryType = to.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
            .dstHost = to.host,
            .dstDevice = to.device,
            .dstPitch = to.pitch,
            .WidthInBytes = r->width,
            .Height = r->height};
        *call = "cuMemcpy2DAsync";
        return cu->cuMemcpy2DAsync(&rows, stream);
    }
    if (to.host) {
        *call = "cuMemcpyDtoHAsync";
        return cu->cuMemcpyDtoHAsync(to.host, from.device, bytes, stream);
    }
    if (from.host) {
        *call = "cuMemcpyHtoDAsync";
        return cu->cuMemcpyHtoDAsync(to.device, from.host, bytes, stream);
    }
    *call = "cuMemcpyDtoDAsync";
    return cu->cuMemcpyDtoDAsync(to.device, from.device, bytes, stream);
}

/* Signals the end of the pipeline's copy from or to the staging buffer. */
static CUresult signal_copy(pipeline_state *p, stage *stage, CUstream stream, const char **call) {
    *call = "cuStreamWriteValue32";
    return stage_signal(p->d, &stage->copied[p->member], stream);
}

/* Between the chunk's host memory (or its staging buffer) and the pipeline's device. */
static smk_code enqueue_copy(worker *w, pipeline_state *p, const chunk *chunk, stage *stage) {
    const smk_rectangle *r = &chunk->rectangle;
    const endpoint host = {.host = stage ? stage->memory : r->host,
                           .pitch = stage ? r->width : (size_t)r->host_pitch};
    const endpoint device = device_endpoint(p, r);
    const bool out = p->graph->tasks[chunk->task].kind == SMK_COPY_OUT;
    const CUstream stream = p->copy_streams[out ? STAGE_OUT : STAGE_IN];
    const char *call;
    wait_for_lock(&p->driver_mutex);
    CUresult result = copy(p->d->cu, out ? host : device, out ? device : host, r, stream, &call);
    if (!result && stage) result = signal_copy(p, stage, stream, &call);
    pthread_mutex_unlock(&p->driver_mutex);
    return result ? pipeline_fail(p, result, call, &w->status) : SMK_OK;
}

/* From this pipeline's device to the peer's, once the chunk has arrived here. */
static smk_code copy_between_gpus(worker *w, pipeline_state *peer, const chunk *mine,
                                  const chunk *theirs, stage *stage) {
    const endpoint from = device_endpoint(w->pipeline, &mine->rectangle);
    const endpoint to = device_endpoint(peer, &theirs->rectangle);
    const CUstream stream = peer->peer_stream;
    const char *call = "cuStreamWaitValue32";
    wait_for_lock(&peer->driver_mutex);
    CUresult result = stage_wait(peer->d, &stage->copied[w->pipeline->member], stream);
    if (!result) result = copy(peer->d->cu, to, from, &theirs->rectangle, stream, &call);
    if (!result) result = signal_copy(peer, stage, stream, &call);
    pthread_mutex_unlock(&peer->driver_mutex);
    return result ? pipeline_fail(peer, result, call, &w->status) : SMK_OK;
}

/* Copies a chunk of a shared task to the peer's GPU: from this GPU or from the staging buffer. */
static smk_code enqueue_for_peer(worker *w, pipeline_state *peer, const chunk *mine, stage *stage) {
    device *d;
    const task_state *task = &w->pipeline->tasks[mine->task];
    chunk theirs = *mine;
    theirs.task = peer->shared_tasks[task->shared - 1];
    const smk_rectangle *whole = &peer->tasks[theirs.task].whole;
    theirs.rectangle.buffer = whole->buffer;
    theirs.rectangle.offset += whole->offset - task->whole.offset;
    if (device_enter(peer->d->info.ordinal, &d, &w->status)) return w->status.code;
    const smk_code code = peer->peer_stream ? copy_between_gpus(w, peer, mine, &theirs, stage)
                                            : enqueue_copy(w, peer, &theirs, stage);
    if (!code) tasks_enqueued(peer, &theirs, NULL);
    device_leave(d);
    return code;
}

/* tasks_enqueued of this pipeline comes last: it frees the slot for reuse. */
static smk_code enqueue_chunk(worker *w, const chunk *chunk, staging_slot *slot) {
    pipeline_state *p = w->pipeline;
    stage *stage = slot ? slot->stage : NULL;
    smk_code code = enqueue_copy(w, p, chunk, stage);
    for (int i = 0; p->tasks[chunk->task].shared && i < p->group->n && !code; i++)
        if (i != p->member) code = enqueue_for_peer(w, p->group->members[i], chunk, stage);
    if (code) return code;
    if (!slot && p->graph->tasks[chunk->task].kind == SMK_COPY_OUT) deliver(w, &chunk->rectangle);
    tasks_enqueued(p, chunk, slot);
    return SMK_OK;
}

/* ---- the loop of a thread ---- */

static smk_code do_work(worker *w, const work_item *item) {
    const smk_rectangle *r = &item->slice;
    if (item->kind == WORK_ENQUEUE) return enqueue_chunk(w, &item->chunk, item->slot);
    const byte_rows host = {r->host, r->host_pitch};
    const byte_rows slot = {item->slot->stage->memory + r->offset, (ptrdiff_t)r->pitch};
    if (item->kind == WORK_COPY_OUT) {
        copy_rows_from_stage(host, slot, r->width, r->height);
        deliver(w, r);
    } else {
        copy_rows_to_stage(slot, host, r->width, r->height, w->pipeline->memory_bound);
    }
    return staging_copied(w->pipeline, item) ? enqueue_chunk(w, &item->slot->chunk, item->slot)
                                             : SMK_OK;
}

/* About 2 us, less if something changes. Without the lock. */
static void spin(const worker *w, const work_item *item, unsigned changes) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&w->pipeline->changes) != changes) return;
        for (int k = 0; k < item->n_watched; k++)
            if (stage_done(&item->watched[k])) return;
        wait_relax();
    }
}

/* There was nothing to do. A copy that fails never signals its fence, but a stream reports the
 * failure, so one is queried every ms. */
static smk_code wait_a_little(worker *w, const work_item *item, unsigned changes) {
    pipeline_state *p = w->pipeline;
    const int64_t time = wait_now();
    if (!w->idle_since) w->idle_since = w->queried = time;
    if (time - w->queried > QUERY_NS) {
        CUresult result = p->d->cu->cuStreamQuery(p->compute_streams[0]);
        if (result && result != CUDA_ERROR_NOT_READY) return fail(w, result, "cuStreamQuery");
        w->queried = time;
    }
    if (time - w->idle_since < (w->interrupt_poller ? CALLER_SPIN_NS : WORKER_SPIN_NS))
        spin(w, item, changes);
    else if (w->interrupt_poller || item->n_watched)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    else
        tasks_idle_wait(p, changes);
    return SMK_OK;
}

/* Never waits for one thing while there is other work. */
static smk_code work_loop(worker *w) {
    for (;;) {
        pipeline_state *p = w->pipeline;
        work_item item;
        const unsigned changes = atomic_load(&p->changes);
        smk_code code =
            w->interrupt_poller ? interrupt_poll(w->interrupt_poller, &w->status) : SMK_OK;
        if (code) return code;
        const poll_result result = staging_poll(p, !w->interrupt_poller, &item);
        if (atomic_load(&p->stopped)) return SMK_INTERRUPTED;
        if (result == POLL_DONE) return SMK_OK;
        if (result == POLL_TAKEN) {
            w->idle_since = 0;
            code = do_work(w, &item);
        } else {
            code = wait_a_little(w, &item, changes);
        }
        if (code) return code;
    }
}

static void report(worker *w, smk_code code) {
    if (code && w->status.code) pipeline_stop(w->pipeline, &w->status);
}

static void worker_main(void *argument) {
    worker *w = argument;
    device *d;
    if (device_enter(w->pipeline->d->info.ordinal, &d, &w->status)) {
        pipeline_stop(w->pipeline, &w->status);
        return;
    }
    report(w, work_loop(w));
    device_leave(d);
}

/* ---- all threads ---- */

static size_t total_staged_bytes(const pipeline_state *p) {
    size_t bytes = 0;
    for (size_t i = 0; i < p->graph->n_tasks; i++)
        bytes += p->tasks[i].direct ? 0 : p->tasks[i].whole.width * p->tasks[i].whole.height;
    return bytes;
}

static size_t useful_threads(size_t bytes) {
    const size_t few = (bytes + FEW_BYTES - 1) / FEW_BYTES, many = bytes / THREAD_BYTES;
    return many > FEW_THREADS ? many : few < FEW_THREADS ? few : FEW_THREADS;
}

static int threads_for(const pipeline_state *p, size_t bytes) {
    cpu_set_t cores;
    int n = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    const size_t useful = useful_threads(bytes);
    n = p->graph->n_concurrent > 1 ? n / p->graph->n_concurrent : n;
    n = n < MAX_WORKERS ? n : MAX_WORKERS;
    n = useful < (size_t)n ? (int)useful : n;
    return n < 1 ? 1 : n;
}

smk_code workers_start(pipeline_state *p, workers *all, interrupt_poller *poller,
                       smk_status *status) {
    const size_t bytes = total_staged_bytes(p);
    const int wanted = threads_for(p, bytes);
    p->memory_bound = bytes >= MEMORY_BOUND_BYTES;
    all->workers[0] = (worker){.pipeline = p, .interrupt_poller = poller};
    all->n = 1;
    if (staging_rings_take(p, status)) return status->code;
    p->kernel_fences = p->rings[STAGE_IN].slots[0].stage->ends;
    for (; all->n < wanted; all->n++) {
        worker *w = &all->workers[all->n];
        *w = (worker){.pipeline = p};
        all->threads[all->n] = thread_pool_start(worker_main, w);
        if (!all->threads[all->n]) break; /* fewer threads do the work too */
    }
    return SMK_OK;
}

void workers_run(pipeline_state *p, workers *all) {
    worker *caller = &all->workers[0];
    staging_slot *full[SLOTS_IN];
    smk_code code = SMK_OK;
    tasks_start_kernels(p);
    const int n = staging_rings_open(p, full);
    for (int i = 0; i < n && !code; i++)
        code = enqueue_chunk(caller, &full[i]->chunk, full[i]);
    report(caller, code ? code : work_loop(caller));
}

smk_code workers_join(pipeline_state *p, workers *all, smk_status *status) {
    if (status->code) pipeline_stop(p, status);
    for (int i = 1; i < all->n; i++)
        thread_pool_join(all->threads[i]);
    if (p->stopped) smk_fail(status, p->status.code, "%s", p->status.message);
    staging_rings_give(p);
    return status->code;
}
