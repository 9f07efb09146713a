/* The threads of a flow: each moves shares between host memory and slots, whichever way there is something to
 * move.
 *
 *      host memory --(threads)--> slot --(copy engine)--> device        device --> slot --> host memory
 *
 * One core copies 10 GB/s, the bus moves 55 each way at once, so many threads share the work. The caller is one of
 * them, and the one that listens for signals. What memory is pinned already moves without a stop in between.
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
    FEW_THREADS = 4, /* so many for FEW_BYTES each, as waking one takes as long as these; ... */
    FEW_BYTES = 512 << 10, /* ... then one for THREAD_BYTES */
    THREAD_BYTES = 2 << 20,
    MUCH_BYTES = 64 << 20,       /* memory is what these wait for */
    SPIN_NS = 200 * 1000,        /* a pool_thread, before it sleeps ... */
    CALLER_SPIN_NS = 500 * 1000, /* ... and the caller, whom nobody would wake */
    NAP_NS = 20 * 1000,
    SPINS = 50, /* 2 us */
    ASK_NS = 1000 * 1000
};

/* ---- moving pieces ---- */

static smk_code fail(worker *w, CUresult result, const char *call) {
    return pipeline_fail(w->flow, result, call, &w->status);
}

/* The caller's chance to hear of a signal. */
static smk_code listen(worker *w) {
    return w->interrupt_poller ? interrupt_poll(w->interrupt_poller, &w->status) : SMK_OK;
}

static void deliver(worker *w, const smk_rectangle *r) {
    if (w->flow->flow->delivered) atomic_fetch_add(w->flow->flow->delivered, r->width * r->lines);
}

/* One end of a copy; `host` is NULL where it is a device's memory. */
typedef struct place {
    char *host;
    CUdeviceptr device;
    size_t pitch;
} place;

/* Where the piece is on the flow's device. */
static place on_device(const pipeline_state *f, const smk_rectangle *r) {
    return (place){.device = f->addresses[r->buffer] + r->offset, .pitch = r->pitch};
}

/* Puts a copy of the rectangle's lines on the stream; `call` is what was called. */
static CUresult copy(const driver *cu, place to, place from, const smk_rectangle *r,
                     CUstream stream, const char **call) {
    const size_t bytes = r->width * r->lines;
    if (r->lines > 1 && (to.pitch != r->width || from.pitch != r->width)) {
        const CUDA_MEMCPY2D lines = {
            .srcMemoryType = from.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
            .srcHost = from.host,
            .srcDevice = from.device,
            .srcPitch = from.pitch,
            .dstMemoryType = to.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
            .dstHost = to.host,
            .dstDevice = to.device,
            .dstPitch = to.pitch,
            .WidthInBytes = r->width,
            .Height = r->lines};
        *call = "cuMemcpy2DAsync";
        return cu->cuMemcpy2DAsync(&lines, stream);
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

/* Puts the flow's mark of the stage behind a copy. */
static CUresult mark_copy(pipeline_state *f, stage *stage, CUstream stream, const char **call) {
    *call = "cuStreamWriteValue32";
    return stage_signal(f->d, &stage->copied[f->self], stream);
}

/* The piece's copy between the host, or its stage, and the flow's device. */
static smk_code put_copy(worker *w, pipeline_state *f, const chunk *piece, stage *stage) {
    const smk_rectangle *r = &piece->rectangle;
    const place host = {.host = stage ? stage->memory : r->host,
                        .pitch = stage ? r->width : (size_t)r->host_pitch};
    const place device = on_device(f, r);
    const bool out = f->flow->tasks[piece->task].kind == SMK_COPY_OUT;
    const CUstream stream = f->copies[out ? STAGE_OUT : STAGE_IN];
    const char *call;
    wait_for_lock(&f->calls);
    CUresult result = copy(f->d->cu, out ? host : device, out ? device : host, r, stream, &call);
    if (!result && stage) result = mark_copy(f, stage, stream, &call);
    pthread_mutex_unlock(&f->calls);
    return result ? pipeline_fail(f, result, call, &w->status) : SMK_OK;
}

/* The other's copy of the piece from this flow's device, once it has come here. */
static smk_code pass_on(worker *w, pipeline_state *other, const chunk *mine, const chunk *theirs,
                        stage *stage) {
    const place from = on_device(w->flow, &mine->rectangle);
    const place to = on_device(other, &theirs->rectangle);
    const char *call = "cuStreamWaitValue32";
    wait_for_lock(&other->calls);
    CUresult result = stage_wait(other->d, &stage->copied[w->flow->self], other->passing);
    if (!result) result = copy(other->d->cu, to, from, &theirs->rectangle, other->passing, &call);
    if (!result) result = mark_copy(other, stage, other->passing, &call);
    pthread_mutex_unlock(&other->calls);
    return result ? pipeline_fail(other, result, call, &w->status) : SMK_OK;
}

/* The piece that another flow has in common with this one goes to its GPU, too. */
static smk_code put_for(worker *w, pipeline_state *other, const chunk *piece, stage *stage) {
    device *d;
    const task_state *mine = &w->flow->tasks[piece->task];
    chunk theirs = *piece;
    theirs.task = other->common[mine->common - 1];
    const smk_rectangle *whole = &other->tasks[theirs.task].whole;
    theirs.rectangle.buffer = whole->buffer;
    theirs.rectangle.offset += whole->offset - mine->whole.offset;
    if (device_enter(other->d->info.ordinal, &d, &w->status)) return w->status.code;
    const smk_code code = other->passing ? pass_on(w, other, piece, &theirs, stage)
                                         : put_copy(w, other, &theirs, stage);
    if (!code) tasks_enqueued(other, &theirs, NULL);
    device_leave(d);
    return code;
}

/* Its own flow hears of it last: with that the slot may be used again. */
static smk_code put(worker *w, const chunk *piece, staging_slot *slot) {
    pipeline_state *f = w->flow;
    stage *stage = slot ? slot->stage : NULL;
    smk_code code = put_copy(w, f, piece, stage);
    for (int i = 0; f->tasks[piece->task].common && i < f->group->n && !code; i++)
        if (i != f->self) code = put_for(w, f->group->members[i], piece, stage);
    if (code) return code;
    if (!slot && f->flow->tasks[piece->task].kind == SMK_COPY_OUT) deliver(w, &piece->rectangle);
    tasks_enqueued(f, piece, slot);
    return SMK_OK;
}

static smk_code carry_out(worker *w, const work_item *task) {
    const smk_rectangle *r = &task->share;
    if (task->deed == WORK_ENQUEUE) return put(w, &task->piece, task->slot);
    const lines host = {r->host, r->host_pitch};
    const lines slot = {task->slot->stage->memory + r->offset, (ptrdiff_t)r->pitch};
    if (task->deed == WORK_COPY_OUT) {
        copy_rows_from_stage(host, slot, r->width, r->lines);
        deliver(w, r);
    } else {
        copy_rows_to_stage(slot, host, r->width, r->lines, w->flow->is_much);
    }
    return staging_copied(w->flow, task) ? put(w, &task->slot->piece, task->slot) : SMK_OK;
}

/* ---- what to do next ---- */

/* A few microseconds, or until there is something new, without the lock. */
static void spin(const worker *w, const work_item *task, unsigned changes) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&w->flow->changes) != changes) return;
        for (int k = 0; k < task->n_watched; k++)
            if (stage_done(&task->watched[k])) return;
        wait_relax();
    }
}

/* There was nothing to do: a little later there may be. Copies that fail never tell; a stream does. */
static smk_code wait_a_little(worker *w, const work_item *task, unsigned changes) {
    pipeline_state *f = w->flow;
    const int64_t time = wait_now();
    if (!w->idle_since) w->idle_since = w->asked = time;
    if (time - w->asked > ASK_NS) {
        CUresult result = f->d->cu->cuStreamQuery(f->lanes[0]);
        if (result && result != CUDA_ERROR_NOT_READY) return fail(w, result, "cuStreamQuery");
        w->asked = time;
    }
    if (time - w->idle_since < (w->interrupt_poller ? CALLER_SPIN_NS : SPIN_NS))
        spin(w, task, changes);
    else if (w->interrupt_poller || task->n_watched)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    else
        tasks_idle_wait(f, changes);
    return SMK_OK;
}

/* What this thread finds to do, until there is nothing left. It never waits for one thing while there may be
 * another. */
static smk_code work(worker *w) {
    for (;;) {
        pipeline_state *f = w->flow;
        work_item task;
        const unsigned changes = atomic_load(&f->changes);
        smk_code code = listen(w);
        if (code) return code;
        const poll_result answer = staging_poll(f, !w->interrupt_poller, &task);
        if (atomic_load(&f->stopped)) return SMK_INTERRUPTED;
        if (answer == POLL_DONE) return SMK_OK;
        if (answer == POLL_TAKEN) {
            w->idle_since = 0;
            code = carry_out(w, &task);
        } else {
            code = wait_a_little(w, &task, changes);
        }
        if (code) return code;
    }
}

static void tell(worker *w, smk_code code) {
    if (code && w->status.code) pipeline_stop(w->flow, &w->status);
}

static void help(void *argument) {
    worker *w = argument;
    device *d;
    if (device_enter(w->flow->d->info.ordinal, &d, &w->status)) {
        pipeline_stop(w->flow, &w->status);
        return;
    }
    tell(w, work(w));
    device_leave(d);
}

/* ---- all of them ---- */

static size_t staged_bytes(const pipeline_state *f) {
    size_t bytes = 0;
    for (size_t i = 0; i < f->flow->n_tasks; i++)
        bytes += f->tasks[i].direct ? 0 : f->tasks[i].whole.width * f->tasks[i].whole.lines;
    return bytes;
}

static size_t useful_threads(size_t bytes) {
    const size_t few = (bytes + FEW_BYTES - 1) / FEW_BYTES, many = bytes / THREAD_BYTES;
    return many > FEW_THREADS ? many : few < FEW_THREADS ? few : FEW_THREADS;
}

static int threads_for(const pipeline_state *f, size_t bytes) {
    cpu_set_t cores;
    int n = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    const size_t useful = useful_threads(bytes);
    n = f->flow->share > 1 ? n / f->flow->share : n;
    n = n < MAX_WORKERS ? n : MAX_WORKERS;
    n = useful < (size_t)n ? (int)useful : n;
    return n < 1 ? 1 : n;
}

/* Where there are no threads for all of the work, fewer do. */
smk_code workers_start(pipeline_state *f, workers *crew, interrupt_poller *p, smk_status *status) {
    const size_t bytes = staged_bytes(f);
    const int wanted = threads_for(f, bytes);
    f->is_much = bytes >= MUCH_BYTES;
    crew->workers[0] = (worker){.flow = f, .interrupt_poller = p};
    crew->n = 1;
    if (staging_rings_take(f, status)) return status->code;
    f->ends = f->rings[STAGE_IN].slots[0].stage->ends;
    for (; crew->n < wanted; crew->n++) {
        worker *w = &crew->workers[crew->n];
        *w = (worker){.flow = f};
        if (!(crew->threads[crew->n] = thread_pool_start(help, w))) break;
    }
    return SMK_OK;
}

void workers_run(pipeline_state *f, workers *crew) {
    worker *caller = &crew->workers[0];
    staging_slot *full[SLOTS_IN];
    smk_code code = SMK_OK;
    tasks_start_kernels(f);
    const int n = staging_rings_open(f, full);
    for (int i = 0; i < n && !code; i++)
        code = put(caller, &full[i]->piece, full[i]);
    tell(caller, code ? code : work(caller));
}

smk_code workers_join(pipeline_state *f, workers *crew, smk_status *status) {
    if (status->code) pipeline_stop(f, status);
    for (int i = 1; i < crew->n; i++)
        thread_pool_join(crew->threads[i]);
    if (f->stopped) smk_fail(status, f->status.code, "%s", f->status.message);
    staging_rings_give(f);
    return status->code;
}
