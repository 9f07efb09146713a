/* Steps become queued in the order of their list within each queue, so a task whose predecessors are all
 * queued can be put on its stream at once, and streams are told of each other by events. Nothing here waits for
 * the device. */
#include "tasks.h"

#include <stdlib.h>

#include "../cuda/errors.h"

enum { REST_NS = 2 * 1000 * 1000 };

static stage_way way_of(const smk_task *task) {
    return task->kind == SMK_COPY_OUT ? STAGE_OUT : STAGE_IN;
}

/* Where the task's end is. */
static CUstream stream_of(const pipeline_state *f, const smk_task *task) {
    const bool passed = f->passing && f->tasks[task - f->flow->tasks].elsewhere;
    return task->kind == SMK_COMPUTE ? f->lanes[task->lane]
           : passed                  ? f->passing
                                     : f->copies[way_of(task)];
}

/* ---- cutting ---- */

/* Memory that the copy engines reach: pinned, or registered by whoever owns it. */
static bool is_pinned(device *d, const char *address) {
    unsigned type =
        0; /* stays 0 of memory that the driver does not know; asked for one, it would be an error */
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *value = &type;
    return d->cu->cuPointerGetAttributes(1, &wanted, &value, (CUdeviceptr)(uintptr_t)address) ==
               CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

static bool is_direct(device *d, const smk_rectangle *r) {
    const char *last = r->host + (ptrdiff_t)(r->lines - 1) * r->host_pitch;
    const char *low = last < r->host ? last : r->host, *high = last < r->host ? r->host : last;
    return r->host_pitch >= (ptrdiff_t)r->width && is_pinned(d, low) &&
           is_pinned(d, high + r->width - 1);
}

/* Whether threads bring it to the engine sooner than it gets there: it takes short lines of very much memory, of many
 * pages, at half its rate. */
static bool is_read_slowly(const smk_rectangle *r) {
    enum { SHORT = 8 << 10, FAR = 64 << 20 }; /* bytes */
    return r->width <= SHORT && r->lines * (size_t)r->host_pitch > FAR;
}

/* Two at least, so that one is filled while the engine moves the other. */
static size_t chunk_bytes(size_t bytes) {
    enum { PIECES = 2, LEAST = 512 << 10 };
    const size_t share = (bytes / PIECES + LEAST - 1) / LEAST * LEAST;
    return share < LEAST ? LEAST : share < STAGE_BYTES ? share : STAGE_BYTES;
}

chunking cut_into_chunks(const smk_rectangle *r, size_t most) {
    chunking c = {.width = r->width < most ? r->width : most};
    if (c.width == 0 || r->lines == 0) return c;
    c.lines = most / c.width < r->lines ? most / c.width : r->lines;
    c.across = (r->width + c.width - 1) / c.width;
    c.n = c.across * ((r->lines + c.lines - 1) / c.lines);
    return c;
}

smk_rectangle flow_part(const smk_rectangle *whole, const chunking *c, size_t i) {
    smk_rectangle r = *whole;
    const size_t x = i % c->across * c->width, y = i / c->across * c->lines;
    r.host += (ptrdiff_t)x + (ptrdiff_t)y * r.host_pitch;
    r.offset += x + y * r.pitch;
    r.width = r.width - x < c->width ? r.width - x : c->width;
    r.lines = r.lines - y < c->lines ? r.lines - y : c->lines;
    return r;
}

smk_rectangle joined_lines(smk_rectangle r) {
    if (r.lines == 1 || (r.host_pitch == (ptrdiff_t)r.width && r.pitch == r.width)) {
        r.width *= r.lines;
        r.lines = 1;
        r.host_pitch = (ptrdiff_t)r.width;
        r.pitch = r.width;
    }
    return r;
}

static void cut(pipeline_state *f, const smk_task *task, task_state *s) {
    const smk_rectangle r = joined_lines(task->rectangle);
    if (r.width == 0 || r.lines == 0) return;
    const size_t bytes = r.width * r.lines;
    s->whole = r;
    s->direct = is_direct(f->d, &r);
    s->cut = cut_into_chunks(&r, s->direct ? bytes : chunk_bytes(bytes));
}

/* ---- tasks in their queues ---- */

/* The next task of the kind, from `at` on. */
static size_t find(const pipeline_state *f, smk_task_kind kind, size_t at) {
    while (at < f->flow->n_tasks && f->flow->tasks[at].kind != kind)
        at++;
    return at;
}

/* The next one that has something to hand out. */
static size_t find_copy(const pipeline_state *f, smk_task_kind kind, size_t at) {
    at = find(f, kind, at);
    while (at < f->flow->n_tasks && (f->tasks[at].cut.n == 0 || f->tasks[at].elsewhere))
        at = find(f, kind, at + 1);
    return at;
}

smk_code tasks_init(pipeline_state *f, smk_status *status) {
    const smk_pipeline *flow = f->flow;
    bool staged = false;
    f->tasks = calloc(flow->n_tasks + 1, sizeof *f->tasks);
    if (!f->tasks) return smk_fail_memory(status, flow->n_tasks * sizeof *f->tasks, "a flow");
    for (size_t i = 0; i < flow->n_tasks; i++) {
        const smk_task *task = &flow->tasks[i];
        if (task->kind != SMK_COMPUTE) cut(f, task, &f->tasks[i]);
        if (task->kind == SMK_COPY_IN && f->tasks[i].direct)
            staged |= is_read_slowly(&f->tasks[i].whole);
        if (!f->tasks[i].direct) f->staged[way_of(task)] += f->tasks[i].cut.n;
        for (int j = 0; j < task->n_after; j++) {
            task_state *before = &f->tasks[task->after[j]];
            const bool same = stream_of(f, task) == stream_of(f, &flow->tasks[task->after[j]]);
            if (task->kind == SMK_COPY_OUT && f->tasks[i].direct) {
                before->told = true;
                continue;
            }
            if (before->done || same) continue;
            CUresult result = f->d->cu->cuEventCreate(&before->done, CU_EVENT_DISABLE_TIMING);
            if (result) return device_fail(f->d, result, SMK_ERROR, status, "cuEventCreate");
        }
    }
    for (size_t i = 0; staged && i < flow->n_tasks; i++) /* some of each would be slower yet */
        if (flow->tasks[i].kind == SMK_COPY_IN) tasks_stage(f, i);
    for (int kind = 0; kind < SMK_N_KINDS; kind++) {
        f->next[kind] = find_copy(f, (smk_task_kind)kind, 0);
        f->first[kind] = find(f, (smk_task_kind)kind, 0);
    }
    return SMK_OK;
}

void tasks_free(pipeline_state *f) {
    for (size_t i = 0; f->tasks && i < f->flow->n_tasks; i++) {
        if (f->tasks[i].done) f->d->cu->cuEventDestroy(f->tasks[i].done);
        launch_free(&f->tasks[i].plan);
    }
    free(f->tasks);
    free(f->common);
    f->tasks = NULL;
    f->common = NULL;
}

void tasks_stage(pipeline_state *f, size_t task) {
    task_state *s = &f->tasks[task];
    if (!s->direct) return;
    s->direct = false;
    s->cut = cut_into_chunks(&s->whole, chunk_bytes(s->whole.width * s->whole.lines));
    f->staged[way_of(&f->flow->tasks[task])] += s->cut.n;
}

void tasks_skip(pipeline_state *f, size_t task) {
    const stage_way way = way_of(&f->flow->tasks[task]);
    const smk_task_kind kind = f->flow->tasks[task].kind;
    f->tasks[task].elsewhere = true;
    f->staged[way] -= f->tasks[task].cut.n;
    f->next[kind] = find_copy(f, kind, f->next[kind]);
}

/* The functions below, down to the line, are called with the lock held; follow, end and start need none. */

void tasks_notify(pipeline_state *f) {
    f->changes++;
    pthread_cond_broadcast(&f->changed);
}

static void stop(pipeline_state *f, const smk_status *why) {
    if (!f->stopped) f->status = *why;
    f->stopped = true;
    tasks_notify(f);
}

static bool is_ready(const pipeline_state *f, const smk_task *task) {
    for (int i = 0; i < task->n_after; i++)
        if (!f->tasks[task->after[i]].queued) return false;
    return true;
}

/* The kernels that the task waits for have ended. Asked before a copy to memory that is the caller's: a kernel that
 * never ends must not leave one behind that waits to write there. */
static bool has_ended(const pipeline_state *f, const smk_task *task) {
    for (int i = 0; i < task->n_after; i++) {
        const uint32_t before = task->after[i];
        const int lane = f->flow->tasks[before].lane;
        if (!stage_reached(&f->ends[lane], f->tasks[before].mark)) return false;
    }
    return true;
}

/* What the task's stream does from now on comes after all that it waits for. */
static smk_code follow(const pipeline_state *f, const smk_task *task, smk_status *status) {
    const CUstream stream = stream_of(f, task);
    for (int i = 0; i < task->n_after; i++) {
        const uint32_t before = task->after[i];
        if (!f->tasks[before].done || stream == stream_of(f, &f->flow->tasks[before])) continue;
        CUresult result = f->d->cu->cuStreamWaitEvent(stream, f->tasks[before].done, 0);
        if (result) return pipeline_fail(f, result, "cuStreamWaitEvent", status);
    }
    return SMK_OK;
}

/* Tells of the task's end. */
static smk_code end(pipeline_state *f, size_t i, smk_status *status) {
    task_state *s = &f->tasks[i];
    const smk_task *task = &f->flow->tasks[i];
    if (s->done) {
        CUresult result = f->d->cu->cuEventRecord(s->done, stream_of(f, task));
        if (result) return pipeline_fail(f, result, "cuEventRecord", status);
    }
    if (s->told) {
        CUresult result = stage_signal(f->d, &f->ends[task->lane], stream_of(f, task));
        if (result) return pipeline_fail(f, result, "cuStreamWriteValue32", status);
        s->mark = f->ends[task->lane].expected;
    }
    return SMK_OK;
}

/* Ends the copies that are on their stream. A queue is ended in its order, so that the last task stands for
 * those before it, whichever thread was faster. */
static void end_copies(pipeline_state *f, smk_task_kind kind) {
    size_t i = f->first[kind];
    for (; i < f->flow->n_tasks && f->tasks[i].on_queue == f->tasks[i].cut.n;
         i = find(f, kind, i + 1)) {
        smk_status status = {0};
        if (end(f, i, &status)) {
            stop(f, &status);
            break;
        }
        f->tasks[i].queued = true;
    }
    f->first[kind] = i;
}

static smk_code start(pipeline_state *f, size_t i, smk_status *status) {
    wait_for_lock(&f->calls);
    smk_code code = follow(f, &f->flow->tasks[i], status);
    if (!code) {
        atomic_store(&f->launched, true);
        code = launch_all(f->d, &f->tasks[i].plan, status);
    }
    if (!code) code = end(f, i, status);
    pthread_mutex_unlock(&f->calls);
    return code;
}

/* Puts kernels on their streams, up to the first that waits for something that is not on its own. One thread does, and
 * lets go of the lock meanwhile, as the others have to know what to do next; it also finds what they make ready. */
static void compute(pipeline_state *f) {
    if (f->starts) return;
    f->starts = true;
    for (size_t i = f->first[SMK_COMPUTE];
         !f->stopped && i < f->flow->n_tasks && is_ready(f, &f->flow->tasks[i]);
         i = f->first[SMK_COMPUTE]) {
        smk_status status = {0};
        pthread_mutex_unlock(&f->lock);
        const smk_code code = start(f, i, &status);
        wait_for_lock(&f->lock);
        if (code) {
            stop(f, &status);
        } else {
            f->tasks[i].queued = true;
            f->first[SMK_COMPUTE] = find(f, SMK_COMPUTE, i + 1);
            tasks_notify(f);
        }
    }
    f->starts = false;
}

/* There may be more to do: after a copy, and at the start. */
static void proceed(pipeline_state *f) {
    end_copies(f, SMK_COPY_IN);
    end_copies(f, SMK_COPY_OUT);
    compute(f);
    tasks_notify(f);
}

poll_result tasks_poll_copy(pipeline_state *f, stage_way way, poll_caller who, chunk *out) {
    const smk_task_kind kind = way == STAGE_IN ? SMK_COPY_IN : SMK_COPY_OUT;
    const size_t i = f->next[kind];
    if (f->stopped || i == f->flow->n_tasks || (who.helps && !f->staged[way])) return POLL_DONE;
    const smk_task *task = &f->flow->tasks[i];
    task_state *s = &f->tasks[i];
    if (s->direct ? !f->may_put : !who.has_slot) return POLL_NOT_YET;
    if (s->taken == 0) {
        if (!is_ready(f, task)) return POLL_NOT_YET;
        if (s->direct && way == STAGE_OUT && (who.helps || !has_ended(f, task)))
            return POLL_NOT_YET;
        smk_status status = {0};
        if (follow(f, task, &status)) {
            stop(f, &status);
            return POLL_NOT_YET;
        }
    }
    *out = (chunk){i, flow_part(&s->whole, &s->cut, s->taken), s->direct};
    s->taken++;
    f->staged[way] -= !s->direct;
    if (s->taken == s->cut.n) f->next[kind] = find_copy(f, kind, i + 1);
    return POLL_TAKEN;
}

/* ------------------------------------------------------------------------------------------- */

void tasks_start_kernels(pipeline_state *f) {
    wait_for_lock(&f->lock);
    proceed(f);
    pthread_mutex_unlock(&f->lock);
}

void tasks_enqueued(pipeline_state *f, const chunk *piece, staging_slot *slot) {
    task_state *s = &f->tasks[piece->task];
    const bool out = f->flow->tasks[piece->task].kind == SMK_COPY_OUT;
    const size_t bytes = piece->rectangle.width * piece->rectangle.lines;
    wait_for_lock(&f->lock);
    *(s->elsewhere && f->passing ? &f->bytes_peer : &f->bytes[out ? STAGE_OUT : STAGE_IN]) += bytes;
    f->bytes_direct += piece->direct ? bytes : 0;
    if (slot) {
        f->bytes_staged += bytes;
        slot->open = out;
        slot->queued = true;
        tasks_notify(f);
    }
    if (++s->on_queue == s->cut.n && !f->stopped) proceed(f);
    pthread_mutex_unlock(&f->lock);
}

smk_code pipeline_fail(const pipeline_state *f, CUresult result, const char *call,
                       smk_status *status) {
    const bool named = atomic_load(&f->launched) && driver_result_is_sticky(result);
    return device_fail(f->d, result, SMK_ERROR, status, "%s%s%s", named ? f->what : "",
                       named ? ", reported by " : "", call);
}

void pipeline_stop(pipeline_state *f, const smk_status *why) {
    wait_for_lock(&f->lock);
    stop(f, why);
    pthread_mutex_unlock(&f->lock);
}

void tasks_idle_wait(pipeline_state *f, unsigned changes) {
    wait_for_lock(&f->lock);
    if (f->changes == changes) wait_for_change(&f->changed, &f->lock, REST_NS);
    pthread_mutex_unlock(&f->lock);
}
