/* Tasks are enqueued in list order per queue. A task is put on its stream as soon as all tasks that
 * it waits for are on theirs; events order the streams. No function here waits for the device. */
#include "tasks.h"

#include <stdlib.h>

#include "../cuda/errors.h"

enum { IDLE_NS = 2 * 1000 * 1000 };

static stage_way way_of(const smk_task *task) {
    return task->kind == SMK_COPY_OUT ? STAGE_OUT : STAGE_IN;
}

/* The stream on which the task ends. */
static CUstream stream_of(const pipeline_state *p, size_t i) {
    const smk_task *task = &p->graph->tasks[i];
    return task->kind == SMK_COMPUTE                      ? p->compute_streams[task->compute_stream]
           : p->peer_stream && p->tasks[i].copied_by_peer ? p->peer_stream
                                                          : p->copy_streams[way_of(task)];
}

/* ---- chunks ---- */

/* Pinned: allocated by the driver, or registered by any library. */
static bool is_pinned(device *d, const char *address) {
    unsigned type =
        0; /* stays 0 for unregistered memory; cuPointerGetAttribute would fail instead */
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *value = &type;
    return d->cu->cuPointerGetAttributes(1, &wanted, &value, (CUdeviceptr)(uintptr_t)address) ==
               CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

static bool is_direct(device *d, const smk_rectangle *r) {
    const char *last = r->host + (ptrdiff_t)(r->height - 1) * r->host_pitch;
    const char *low = last < r->host ? last : r->host, *high = last < r->host ? r->host : last;
    return r->host_pitch >= (ptrdiff_t)r->width && is_pinned(d, low) &&
           is_pinned(d, high + r->width - 1);
}

/* The copy engine reads short rows that are spread over many pages at half its rate. Threads gather
 * them faster. */
static bool is_read_slowly(const smk_rectangle *r) {
    enum { SHORT = 8 << 10, FAR = 64 << 20 }; /* bytes */
    return r->width <= SHORT && r->height * (size_t)r->host_pitch > FAR;
}

/* At least two chunks, so that one is filled while the engine copies the other. */
static size_t chunk_bytes(size_t bytes) {
    enum { CHUNKS = 2, MIN_CHUNK = 512 << 10 };
    const size_t size = (bytes / CHUNKS + MIN_CHUNK - 1) / MIN_CHUNK * MIN_CHUNK;
    return size < MIN_CHUNK ? MIN_CHUNK : size < STAGE_BYTES ? size : STAGE_BYTES;
}

chunking cut_into_chunks(const smk_rectangle *r, size_t max_bytes) {
    chunking c = {.width = r->width < max_bytes ? r->width : max_bytes};
    if (c.width == 0 || r->height == 0) return c;
    c.height = max_bytes / c.width < r->height ? max_bytes / c.width : r->height;
    c.per_row = (r->width + c.width - 1) / c.width;
    c.n = c.per_row * ((r->height + c.height - 1) / c.height);
    return c;
}

smk_rectangle chunk_at(const smk_rectangle *whole, const chunking *c, size_t i) {
    smk_rectangle r = *whole;
    const size_t x = i % c->per_row * c->width, y = i / c->per_row * c->height;
    r.host += (ptrdiff_t)x + (ptrdiff_t)y * r.host_pitch;
    r.offset += x + y * r.pitch;
    r.width = r.width - x < c->width ? r.width - x : c->width;
    r.height = r.height - y < c->height ? r.height - y : c->height;
    return r;
}

smk_rectangle join_rows(smk_rectangle r) {
    if (r.height == 1 || (r.host_pitch == (ptrdiff_t)r.width && r.pitch == r.width)) {
        r.width *= r.height;
        r.height = 1;
        r.host_pitch = (ptrdiff_t)r.width;
        r.pitch = r.width;
    }
    return r;
}

static void init_copy(const pipeline_state *p, const smk_task *task, task_state *s) {
    const smk_rectangle r = join_rows(task->rectangle);
    if (r.width == 0 || r.height == 0) return;
    const size_t bytes = r.width * r.height;
    s->whole = r;
    s->direct = is_direct(p->d, &r);
    s->chunks = cut_into_chunks(&r, s->direct ? bytes : chunk_bytes(bytes));
}

/* ---- tasks in their queues ---- */

/* The next task of this kind, from i on. */
static size_t find(const pipeline_state *p, smk_task_kind kind, size_t i) {
    while (i < p->graph->n_tasks && p->graph->tasks[i].kind != kind)
        i++;
    return i;
}

/* The next one with chunks to hand out. */
static size_t find_copy(const pipeline_state *p, smk_task_kind kind, size_t i) {
    i = find(p, kind, i);
    while (i < p->graph->n_tasks && (p->tasks[i].chunks.n == 0 || p->tasks[i].copied_by_peer))
        i = find(p, kind, i + 1);
    return i;
}

/* Prepares the tasks that task i waits for to signal their end. */
static smk_code init_dependencies(pipeline_state *p, size_t i, smk_status *status) {
    const smk_task *task = &p->graph->tasks[i];
    for (int k = 0; k < task->n_after; k++) {
        task_state *before = &p->tasks[task->after[k]];
        if (task->kind == SMK_COPY_OUT && p->tasks[i].direct) {
            before->signals = true;
            continue;
        }
        if (before->done || stream_of(p, i) == stream_of(p, task->after[k])) continue;
        CUresult result = p->d->cu->cuEventCreate(&before->done, CU_EVENT_DISABLE_TIMING);
        if (result) return device_fail(p->d, result, SMK_ERROR, status, "cuEventCreate");
    }
    return SMK_OK;
}

smk_code tasks_init(pipeline_state *p, smk_status *status) {
    const smk_pipeline *graph = p->graph;
    const size_t bytes = (graph->n_tasks + 1) * sizeof *p->tasks;
    bool stage_all = false;
    p->tasks = calloc(1, bytes);
    if (!p->tasks) return smk_fail_memory(status, bytes, "a pipeline");
    for (size_t i = 0; i < graph->n_tasks; i++) {
        const smk_task *task = &graph->tasks[i];
        task_state *s = &p->tasks[i];
        if (task->kind != SMK_COMPUTE) init_copy(p, task, s);
        stage_all |= task->kind == SMK_COPY_IN && s->direct && is_read_slowly(&s->whole);
        if (!s->direct) p->unstaged[way_of(task)] += s->chunks.n;
        if (init_dependencies(p, i, status)) return status->code;
    }
    for (size_t i = 0; stage_all && i < graph->n_tasks; i++) /* a mix of both is even slower */
        if (graph->tasks[i].kind == SMK_COPY_IN) tasks_stage(p, i);
    for (int kind = 0; kind < SMK_N_KINDS; kind++) {
        p->next_copy[kind] = find_copy(p, (smk_task_kind)kind, 0);
        p->pending[kind] = find(p, (smk_task_kind)kind, 0);
    }
    return SMK_OK;
}

void tasks_free(pipeline_state *p) {
    for (size_t i = 0; p->tasks && i < p->graph->n_tasks; i++) {
        if (p->tasks[i].done) p->d->cu->cuEventDestroy(p->tasks[i].done);
        launch_free(&p->tasks[i].launches);
    }
    free(p->tasks);
    free(p->shared_tasks);
    p->tasks = NULL;
    p->shared_tasks = NULL;
}

void tasks_stage(pipeline_state *p, size_t task) {
    task_state *s = &p->tasks[task];
    if (!s->direct) return;
    s->direct = false;
    s->chunks = cut_into_chunks(&s->whole, chunk_bytes(s->whole.width * s->whole.height));
    p->unstaged[way_of(&p->graph->tasks[task])] += s->chunks.n;
}

void tasks_skip(pipeline_state *p, size_t task) {
    const smk_task_kind kind = p->graph->tasks[task].kind;
    p->tasks[task].copied_by_peer = true;
    p->unstaged[way_of(&p->graph->tasks[task])] -= p->tasks[task].chunks.n;
    p->next_copy[kind] = find_copy(p, kind, p->next_copy[kind]);
}

/* ---- with the lock held, except wait_for_dependencies, signal_end and launch ---- */

void tasks_notify(pipeline_state *p) {
    p->changes++;
    pthread_cond_broadcast(&p->changed);
}

static void stop(pipeline_state *p, const smk_status *why) {
    if (!p->stopped) p->status = *why;
    p->stopped = true;
    tasks_notify(p);
}

static bool is_ready(const pipeline_state *p, const smk_task *task) {
    for (int i = 0; i < task->n_after; i++)
        if (!p->tasks[task->after[i]].enqueued) return false;
    return true;
}

/* Whether the kernels that the task waits for have ended. Required before a copy to the caller's
 * memory is enqueued. Otherwise it could still write after an interrupted call has returned. */
static bool kernels_have_ended(const pipeline_state *p, const smk_task *task) {
    for (int i = 0; i < task->n_after; i++) {
        const uint32_t before = task->after[i];
        const int stream = p->graph->tasks[before].compute_stream;
        if (!stage_reached(&p->kernel_fences[stream], p->tasks[before].sequence)) return false;
    }
    return true;
}

/* Makes the task's stream wait for the tasks that the task waits for. */
static smk_code wait_for_dependencies(const pipeline_state *p, size_t i, smk_status *status) {
    const smk_task *task = &p->graph->tasks[i];
    const CUstream stream = stream_of(p, i);
    for (int k = 0; k < task->n_after; k++) {
        const uint32_t before = task->after[k];
        if (!p->tasks[before].done || stream == stream_of(p, before)) continue;
        CUresult result = p->d->cu->cuStreamWaitEvent(stream, p->tasks[before].done, 0);
        if (result) return pipeline_fail(p, result, "cuStreamWaitEvent", status);
    }
    return SMK_OK;
}

static smk_code signal_end(pipeline_state *p, size_t i, smk_status *status) {
    task_state *s = &p->tasks[i];
    if (s->done) {
        CUresult result = p->d->cu->cuEventRecord(s->done, stream_of(p, i));
        if (result) return pipeline_fail(p, result, "cuEventRecord", status);
    }
    if (s->signals) {
        stage_fence *fence = &p->kernel_fences[p->graph->tasks[i].compute_stream];
        CUresult result = stage_signal(p->d, fence, stream_of(p, i));
        if (result) return pipeline_fail(p, result, "cuStreamWriteValue32", status);
        s->sequence = fence->expected;
    }
    return SMK_OK;
}

/* Signals the end of copies that are on their stream, in list order: other tasks wait for the last
 * copy in place of all before it, whichever thread was faster. */
static void end_copies(pipeline_state *p, smk_task_kind kind) {
    size_t i = p->pending[kind];
    for (; i < p->graph->n_tasks && p->tasks[i].on_stream == p->tasks[i].chunks.n;
         i = find(p, kind, i + 1)) {
        smk_status status = {0};
        if (signal_end(p, i, &status)) {
            stop(p, &status);
            break;
        }
        p->tasks[i].enqueued = true;
    }
    p->pending[kind] = i;
}

static smk_code launch(pipeline_state *p, size_t i, smk_status *status) {
    wait_for_lock(&p->driver_mutex);
    smk_code code = wait_for_dependencies(p, i, status);
    if (!code) {
        atomic_store(&p->launched, true);
        code = launch_with_textures(p->d, &p->tasks[i].launches, status);
    }
    if (!code) code = signal_end(p, i, status);
    pthread_mutex_unlock(&p->driver_mutex);
    return code;
}

/* Launches kernels in list order, up to the first that waits for a task that is not enqueued. A
 * single thread does so at a time, and releases the lock during launches: other threads need it to
 * find work. That thread also launches what becomes ready meanwhile. */
static void launch_ready(pipeline_state *p) {
    if (p->launching) return;
    p->launching = true;
    for (size_t i = p->pending[SMK_COMPUTE];
         !p->stopped && i < p->graph->n_tasks && is_ready(p, &p->graph->tasks[i]);
         i = p->pending[SMK_COMPUTE]) {
        smk_status status = {0};
        pthread_mutex_unlock(&p->lock);
        const smk_code code = launch(p, i, &status);
        wait_for_lock(&p->lock);
        if (code) {
            stop(p, &status);
        } else {
            p->tasks[i].enqueued = true;
            p->pending[SMK_COMPUTE] = find(p, SMK_COMPUTE, i + 1);
            tasks_notify(p);
        }
    }
    p->launching = false;
}

/* After a copy was enqueued, and at the start. */
static void advance(pipeline_state *p) {
    end_copies(p, SMK_COPY_IN);
    end_copies(p, SMK_COPY_OUT);
    launch_ready(p);
    tasks_notify(p);
}

poll_result tasks_poll_copy(pipeline_state *p, stage_way way, poll_caller who, chunk *out) {
    const smk_task_kind kind = way == STAGE_IN ? SMK_COPY_IN : SMK_COPY_OUT;
    const size_t i = p->next_copy[kind];
    if (p->stopped || i == p->graph->n_tasks || (who.is_worker && !p->unstaged[way]))
        return POLL_DONE;
    const smk_task *task = &p->graph->tasks[i];
    task_state *s = &p->tasks[i];
    if (s->direct ? !p->memory_ready : !who.has_slot) return POLL_NOT_YET;
    if (s->taken == 0) {
        if (!is_ready(p, task)) return POLL_NOT_YET;
        if (s->direct && way == STAGE_OUT && (who.is_worker || !kernels_have_ended(p, task)))
            return POLL_NOT_YET;
        smk_status status = {0};
        if (wait_for_dependencies(p, i, &status)) {
            stop(p, &status);
            return POLL_NOT_YET;
        }
    }
    *out = (chunk){i, chunk_at(&s->whole, &s->chunks, s->taken), s->direct};
    s->taken++;
    p->unstaged[way] -= !s->direct;
    if (s->taken == s->chunks.n) p->next_copy[kind] = find_copy(p, kind, i + 1);
    return POLL_TAKEN;
}

/* ---- without the lock ---- */

void tasks_start_kernels(pipeline_state *p) {
    wait_for_lock(&p->lock);
    advance(p);
    pthread_mutex_unlock(&p->lock);
}

void tasks_enqueued(pipeline_state *p, const chunk *chunk, staging_slot *slot) {
    task_state *s = &p->tasks[chunk->task];
    const bool out = p->graph->tasks[chunk->task].kind == SMK_COPY_OUT;
    const bool from_peer = s->copied_by_peer && p->peer_stream;
    const size_t bytes = chunk->rectangle.width * chunk->rectangle.height;
    wait_for_lock(&p->lock);
    *(from_peer ? &p->bytes_peer : &p->bytes[out ? STAGE_OUT : STAGE_IN]) += bytes;
    p->bytes_direct += chunk->direct ? bytes : 0;
    if (slot) {
        p->bytes_staged += bytes;
        slot->open = out;
        slot->enqueued = true;
        tasks_notify(p);
    }
    if (++s->on_stream == s->chunks.n && !p->stopped) advance(p);
    pthread_mutex_unlock(&p->lock);
}

smk_code pipeline_fail(const pipeline_state *p, CUresult result, const char *call,
                       smk_status *status) {
    const bool named = atomic_load(&p->launched) && driver_result_is_sticky(result);
    return device_fail(p->d, result, SMK_ERROR, status, "%s%s%s", named ? p->kernel_name : "",
                       named ? ", reported by " : "", call);
}

void pipeline_stop(pipeline_state *p, const smk_status *why) {
    wait_for_lock(&p->lock);
    stop(p, why);
    pthread_mutex_unlock(&p->lock);
}

void tasks_idle_wait(pipeline_state *p, unsigned changes) {
    wait_for_lock(&p->lock);
    if (p->changes == changes) wait_for_change(&p->changed, &p->lock, IDLE_NS);
    pthread_mutex_unlock(&p->lock);
}
