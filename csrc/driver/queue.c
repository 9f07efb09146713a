/* --shuffle: work waits in the queues of its streams until the program waits for it, and runs in
 * an order that a seed draws from those that CUDA allows.
 *
 * A piece of work comes after the earlier ones of its stream, after the event that it waits for,
 * and, between the legacy default stream and streams that are not made non-blocking, after the
 * earlier ones of the other. At a wait, pieces that are ready run in any order until the wait is
 * over. All others stay in their queues, so what a program reads without waiting is old.
 */
#include "work.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PENDING = 256, LEGACY = 1, NON_BLOCKING = 1 };

typedef struct task {
    struct task *next;
    uint64_t number;
    work work;
    CUstream stream;
    bool blocking;         /* ordered with the legacy stream */
    uint64_t event;        /* the record that it waits for; 0: none */
    unsigned char *staged; /* bytes of pageable memory that it copies from */
    CUcontext context;
    const char *call;
    frames callers;
} task;

static struct {
    bool read, wanted;
    uint64_t state; /* of the generator */
    task *first;    /* in the order of submission */
    uint64_t number;
    size_t n;
} queue;

bool queue_wanted(void) {
    const char *seed = getenv("SMEMKERN_RUN_SHUFFLE");
    if (queue.read) return queue.wanted;
    queue.read = true;
    queue.wanted = seed && *seed;
    if (queue.wanted) queue.state = strtoull(seed, NULL, 10);
    return queue.wanted;
}

/* ---- order ---- */

static CUstream key_of(CUstream s) {
    return s ? s : (CUstream)(uintptr_t)LEGACY;
}

static bool is_legacy(const task *t) {
    return (uintptr_t)t->stream == LEGACY;
}

static bool comes_after(const task *t, const task *earlier) {
    return t->stream == earlier->stream || t->event == earlier->number ||
           (is_legacy(earlier) && t->blocking) || (is_legacy(t) && earlier->blocking);
}

static bool is_ready(const task *t) {
    for (const task *p = queue.first; p != t; p = p->next)
        if (comes_after(t, p)) return false;
    return true;
}

/* Takes out one of the tasks that are ready: the first one always is. */
static task *take(void) {
    size_t n = 0;
    for (const task *t = queue.first; t; t = t->next)
        n += is_ready(t);
    size_t chosen = report_draw(&queue.state) % n;
    for (task **link = &queue.first;; link = &(*link)->next) {
        if (!is_ready(*link) || chosen--) continue;
        task *t = *link;
        *link = t->next;
        queue.n--;
        return t;
    }
}

static bool is_pending(uint64_t number) {
    for (const task *t = queue.first; t; t = t->next)
        if (t->number == number) return true;
    return false;
}

/* ---- running ---- */

/* In the name of the call that submitted it. */
static void run_one(void) {
    task *t = take();
    CUcontext before = context_current();
    const char *call = driver_set_call(t->call);
    context_set_current(t->context);
    report_on_behalf(&t->callers);
    const CUresult result = work_run(&t->work);
    report_on_behalf(NULL);
    if (result && t->work.kind == WORK_KERNEL && !t->context->error) t->context->error = result;
    context_set_current(before);
    driver_set_call(call);
    work_free(&t->work);
    free(t->staged);
    free(t);
}

static void wait_all(void) {
    while (queue.first)
        run_one();
}

static CUresult error_of_context(void) {
    const CUcontext c = context_current();
    return c ? c->error : CUDA_SUCCESS;
}

/* Whether something is pending of a stream, or, stream 0, at all. */
static bool has_pending(CUstream stream, uint64_t last) {
    for (const task *t = queue.first; t; t = t->next)
        if (t->stream == key_of(stream) && t->number <= last) return true;
    return false;
}

CUresult queue_wait_stream(CUstream stream) {
    const uint64_t last = queue.number;
    while (has_pending(stream, last))
        run_one();
    return error_of_context();
}

static CUresult wait_task(uint64_t number) {
    while (is_pending(number))
        run_one();
    return error_of_context();
}

CUresult queue_wait_event(CUevent e) {
    return wait_task(e->task);
}

/* A query makes some progress, so that a loop of queries ends. */
CUresult queue_query_stream(CUstream stream) {
    if (has_pending(stream, queue.number)) run_one();
    return has_pending(stream, queue.number) ? CUDA_ERROR_NOT_READY : error_of_context();
}

CUresult queue_query_event(CUevent e) {
    if (is_pending(e->task)) run_one();
    return is_pending(e->task) ? CUDA_ERROR_NOT_READY : error_of_context();
}

bool queue_has_event(CUevent e) {
    return is_pending(e->task);
}

void queue_before(const char *call) {
    static const char *const waiting[] = {"cuArrayDestroy",
                                          "cuCtxDestroy",
                                          "cuCtxDetach",
                                          "cuCtxSynchronize",
                                          "cuDevicePrimaryCtxReset",
                                          "cuDevicePrimaryCtxRelease",
                                          "cuIpcCloseMemHandle",
                                          "cuLibraryUnload",
                                          "cuMemFree",
                                          "cuMemFreeHost",
                                          "cuMemHostUnregister",
                                          "cuMemUnmap",
                                          "cuMipmappedArrayDestroy",
                                          "cuModuleUnload",
                                          "cuStreamAddCallback",
                                          "cuSurfObjectDestroy",
                                          "cuTexObjectDestroy"};
    for (size_t k = 0; queue.first && k < sizeof waiting / sizeof *waiting; k++)
        if (!strcmp(call, waiting[k])) wait_all();
}

/* ---- submission ---- */

static bool is_pinned(CUdeviceptr address) {
    size_t offset;
    const allocation *a = memory_find(address, &offset);
    return a ? a->kind == MEMORY_PINNED || a->kind == MEMORY_MANAGED
             : memory_registered((const void *)(uintptr_t)address) != NULL;
}

/* Memory of the host that no call has pinned. */
static bool is_pageable(unsigned type, const void *host, CUdeviceptr device) {
    size_t offset;
    const CUdeviceptr address = type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device;
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_UNIFIED) return false;
    return !memory_is_device(address) && !memory_find(address, &offset) && !is_pinned(address);
}

/* Copies from pageable memory read it when they are called. False: out of memory. */
static bool stage(task *t) {
    CUDA_MEMCPY3D *c = &t->work.of.copy;
    t->staged = malloc(c->WidthInBytes + 1);
    if (!t->staged) return false;
    memcpy(t->staged, copy_source(c), c->WidthInBytes);
    c->srcHost = t->staged;
    c->srcMemoryType = CU_MEMORYTYPE_HOST;
    c->srcXInBytes = c->srcY = c->srcZ = 0;
    return true;
}

/* Whether the call returns only once the work is done: copies without Async in their name, unless
 * they are between device memory, and all copies to pageable memory. */
static bool is_awaited(const task *t) {
    const CUDA_MEMCPY3D *c = &t->work.of.copy;
    if (t->work.kind == WORK_SET) return !strstr(t->call, "Async") && is_pinned(t->work.of.set.dst);
    if (t->work.kind != WORK_COPY) return false;
    if (is_pageable(c->dstMemoryType, c->dstHost, c->dstDevice)) return true;
    const bool from_pageable = is_pageable(c->srcMemoryType, c->srcHost, c->srcDevice);
    if (from_pageable && (c->Height > 1 || c->Depth > 1)) return true;
    return !strstr(t->call, "Async") &&
           (from_pageable || is_pinned(c->srcDevice) || is_pinned(c->dstDevice));
}

static void append(task *t) {
    task **link = &queue.first;
    while (*link)
        link = &(*link)->next;
    *link = t;
    queue.n++;
}

CUresult queue_submit(CUstream stream, work *w) {
    CUresult result = w->kind == WORK_COPY ? copy_reach(&w->of.copy) : CUDA_SUCCESS;
    if (result) return result;
    task *t = calloc(1, sizeof *t);
    if (!t) return CUDA_ERROR_OUT_OF_MEMORY;
    *t = (task){.number = ++queue.number,
                .work = *w,
                .stream = key_of(stream),
                .context = context_current(),
                .call = driver_call(),
                .callers = report_frames()};
    t->blocking = (uintptr_t)t->stream <= 2 || !(stream->flags & NON_BLOCKING);
    if (w->kind == WORK_WAIT) t->event = w->of.event->task;
    if (w->kind == WORK_RECORD) w->of.event->task = t->number;
    const bool awaited = is_awaited(t);
    const CUDA_MEMCPY3D *c = &t->work.of.copy;
    if (w->kind == WORK_COPY && !awaited && c->Height <= 1 && c->Depth <= 1 &&
        is_pageable(c->srcMemoryType, c->srcHost, c->srcDevice) && !stage(t)) {
        free(t);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    w->kind = WORK_EMPTY; /* the task owns what it had */
    const uint64_t number = t->number;
    append(t);
    while (queue.n > MAX_PENDING)
        run_one();
    return awaited ? wait_task(number) : CUDA_SUCCESS;
}

/* Work that has not run when the program ends. */
void queue_end(void) {
    for (const task *t = queue.first; t; t = t->next) {
        if (t->work.kind != WORK_KERNEL && t->work.kind != WORK_COPY) continue;
        report_on_behalf(&t->callers);
        report_misuse("not-awaited", NULL,
                      "the program ends and has not waited for this call of %s", t->call);
        report_on_behalf(NULL);
    }
}
