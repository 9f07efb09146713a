/* The lock, the device, contexts, handles. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

enum { N_BUCKETS = 1024, MAX_ATTRIBUTES = 256, MAX_DEPTH = 32 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* no longer busy */
    bool busy;           /* a kernel of background.c has the place of a call */
    unsigned depth;      /* calls that run, each within the one before */
    bool initialised;
    bool present; /* SMEMKERN_RUN_DEVICE describes a device */
    char name[256];
    size_t memory;
    int attributes[MAX_ATTRIBUTES];
    struct context *primary;
    const char *call;
    uint64_t contexts;
    handle *buckets[N_BUCKETS];
} state = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, .idle = PTHREAD_COND_INITIALIZER};

/* Each thread has a stack of contexts; the current one is the last. */
static _Thread_local struct {
    struct context *stack[MAX_DEPTH];
    int depth;
    bool in_host_function;
} mine;

/* ---- the device ---- */

/* "name;bytes of memory;attribute=value,attribute=value,..." */
static bool read_device(const char *text) {
    const char *memory = text ? strchr(text, ';') : NULL;
    const char *list = memory ? strchr(memory + 1, ';') : NULL;
    if (!list) return false;
    snprintf(state.name, sizeof state.name, "%.*s", (int)(memory - text), text);
    state.memory = (size_t)strtoull(memory + 1, NULL, 10);
    for (const char *at = list + 1; *at;) {
        char *end;
        const long key = strtol(at, &end, 10);
        if (end == at || *end != '=' || key < 0 || key >= MAX_ATTRIBUTES) return false;
        state.attributes[key] = (int)strtol(end + 1, &end, 10);
        at = *end == ',' ? end + 1 : end;
        if (*end && *end != ',') return false;
    }
    return true;
}

int device_attribute(int attribute) {
    return attribute >= 0 && attribute < MAX_ATTRIBUTES ? state.attributes[attribute] : 0;
}

const char *device_name(void) {
    return state.name;
}

size_t device_memory(void) {
    return state.memory;
}

CUuuid device_uuid(void) {
    CUuuid uuid = {{0}};
    snprintf(uuid.bytes, sizeof uuid.bytes, "smemkern sm %d%d", state.attributes[75],
             state.attributes[76]);
    return uuid;
}

double driver_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- calls ---- */

void driver_lock(void) {
    pthread_mutex_lock(&state.lock);
}

void driver_unlock(void) {
    pthread_mutex_unlock(&state.lock);
}

void driver_set_busy(bool busy) {
    state.busy = busy;
    if (!busy) pthread_cond_broadcast(&state.idle);
}

bool driver_is_outermost(void) {
    return state.depth == 1;
}

bool driver_wait_idle(int seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while (state.busy)
        if (pthread_cond_timedwait(&state.idle, &state.lock, &until) == ETIMEDOUT)
            return !state.busy;
    return true;
}

/* A kernel of background.c ends before any other call runs. On a GPU most calls would not wait, so
 * a kernel that waits for what this call does would end there and does not here. */
static void wait_for_kernel(const char *call) {
    enum { SILENT_SECONDS = 5 };
    if (driver_wait_idle(SILENT_SECONDS)) return;
    if (!strstr(call, "Synchronize"))
        fprintf(stderr,
                "smemkern: %s waits for the kernel of an earlier %s to end. If that kernel waits "
                "for this call, it never ends here; Ctrl-C names its loop.\n",
                call, state.call);
    while (!driver_wait_idle(SILENT_SECONDS)) {
    }
}

void driver_finish(void) {
    driver_lock();
    wait_for_kernel("the end of the program");
    driver_unlock();
}

bool driver_set_host_function(bool inside) {
    const bool before = mine.in_host_function;
    mine.in_host_function = inside;
    return before;
}

/* CUDA does not permit calls from host functions, which could free what is running. Questions do
 * no harm. */
static bool is_permitted(const char *call) {
    return !mine.in_host_function || strstr(call, "Get") || strstr(call, "Query");
}

/* A child of fork has no GPU: with NVIDIA's driver, too, all its calls fail. The lock can be held
 * by a thread that the child does not have. */
static bool is_forked;

static void note_fork(void) {
    is_forked = true;
}

CUresult driver_enter(need what, const char *call) {
    if (is_forked && what >= NEED_INIT) return CUDA_ERROR_NOT_INITIALIZED;
    if (!is_permitted(call)) return CUDA_ERROR_NOT_PERMITTED;
    pthread_mutex_lock(&state.lock);
    if (state.busy && (!strcmp(call, "cuStreamQuery") || !strcmp(call, "cuEventQuery"))) {
        pthread_mutex_unlock(&state.lock);
        return CUDA_ERROR_NOT_READY;
    }
    wait_for_kernel(call);
    CUresult result = CUDA_SUCCESS;
    state.depth++;
    state.call = call;
    if (what >= NEED_INIT && !state.initialised) result = CUDA_ERROR_NOT_INITIALIZED;
    if (!result) queue_before(call);
    if (!result && what == NEED_CONTEXT) {
        const struct context *c = context_current();
        result = c ? c->error : CUDA_ERROR_INVALID_CONTEXT;
    }
    if (result) {
        state.depth--;
        pthread_mutex_unlock(&state.lock);
    }
    return result;
}

CUresult driver_leave(CUresult result) {
    state.depth--;
    pthread_mutex_unlock(&state.lock);
    watch_deliver();
    return result;
}

const char *driver_call(void) {
    return state.call;
}

const char *driver_set_call(const char *call) {
    const char *before = state.call;
    state.call = call;
    return before;
}

EXPORT CUresult cuInit(unsigned flags) {
    if (is_forked) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = driver_enter(NEED_NOTHING, "cuInit");
    if (result) return result;
    if (flags)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!state.initialised && !read_device(getenv("SMEMKERN_RUN_DEVICE")))
        result = CUDA_ERROR_NO_DEVICE;
    if (!result && !state.initialised) {
        state.initialised = true;
        pthread_atfork(NULL, NULL, note_fork);
        report_start();
    }
    return driver_leave(result);
}

/* ---- handles ---- */

static handle **bucket_of(const void *object) {
    return &state.buckets[((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> 54];
}

void *handle_new(handle_kind kind, size_t bytes) {
    handle *h = calloc(1, bytes);
    if (!h) return NULL;
    handle **bucket = bucket_of(h);
    h->kind = kind;
    h->context = context_current();
    h->next = *bucket;
    *bucket = h;
    return h;
}

bool handle_is(const void *object, handle_kind kind) {
    for (const handle *h = *bucket_of(object); h; h = h->next)
        if (h == object) return h->kind == kind;
    return false;
}

void handle_free(void *object, handle_kind kind) {
    for (handle **link = bucket_of(object); *link; link = &(*link)->next)
        if (*link == object && (*link)->kind == kind) {
            *link = (*link)->next;
            free(object);
            return;
        }
}

/* Calls `each` for the live handles of a context; it frees them. */
static void handles_of(const struct context *context, handle_kind kind,
                       void (*each)(void *object)) {
    for (size_t k = 0; k < N_BUCKETS; k++)
        for (handle *h = state.buckets[k]; h;)
            if (h->kind == kind && h->context == context) {
                each(h);
                h = state.buckets[k]; /* it may have freed the next one, too */
            } else
                h = h->next;
}

/* The handles 1 and 2 are the default streams. */
bool stream_is(CUstream stream) {
    return (uintptr_t)stream <= 2 || handle_is(stream, HANDLE_STREAM);
}

/* ---- contexts ---- */

CUcontext context_current(void) {
    CUcontext c = mine.depth ? mine.stack[mine.depth - 1] : NULL;
    return c && handle_is(c, HANDLE_CONTEXT) ? c : NULL;
}

CUresult context_set_current(CUcontext context) {
    if (context && !handle_is(context, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!mine.depth) mine.depth = 1;
    mine.stack[mine.depth - 1] = context;
    return CUDA_SUCCESS;
}

CUcontext context_of(const void *object) {
    driver_lock();
    const handle *h = *bucket_of(object);
    while (h && h != object)
        h = h->next;
    CUcontext c = h ? h->context : NULL;
    driver_unlock();
    return c;
}

bool context_lend(CUcontext context) {
    driver_lock();
    const bool lent = context && !context_current() && mine.depth < MAX_DEPTH;
    if (lent) mine.stack[mine.depth++] = context;
    driver_unlock();
    return lent;
}

void context_take_back(void) {
    mine.depth--;
}

static CUcontext context_new(unsigned flags) {
    enum { STACK, PRINTF, MALLOC_HEAP, SYNC_DEPTH, PENDING, FETCH, PERSISTING };
    CUcontext c = handle_new(HANDLE_CONTEXT, sizeof *c);
    if (!c) return NULL;
    c->flags = flags;
    c->id = ++state.contexts;
    c->limits[STACK] = 1024;
    c->limits[PRINTF] = 1 << 20;
    c->limits[MALLOC_HEAP] = 8 << 20;
    c->limits[SYNC_DEPTH] = 2;
    c->limits[PENDING] = 2048;
    c->limits[FETCH] = 64;
    return c;
}

CUcontext context_primary(void) {
    if (!state.primary) {
        state.primary = context_new(0);
        if (state.primary) state.primary->primary = true;
    }
    return state.primary;
}

static void drop_module(void *object) {
    module_drop(object);
}

static void drop_stream(void *object) {
    stream_free(object);
}

static void drop_event(void *object) {
    event_free(object);
}

static void drop_array(void *object) {
    handle_free(object, HANDLE_ARRAY);
}

/* Frees all that a context has. */
static void clear(CUcontext c) {
    launch_flush_printed();
    for (storage_entry *s; (s = c->storage);) {
        c->storage = s->next; /* first, as the destructor may change the list */
        if (s->destroy) s->destroy(c, s->key, s->value);
        free(s);
    }
    handles_of(c, HANDLE_MODULE, drop_module);
    handles_of(c, HANDLE_STREAM, drop_stream);
    handles_of(c, HANDLE_EVENT, drop_event);
    handles_of(c, HANDLE_TEXTURE, texture_drop);
    handles_of(c, HANDLE_MIPMAP, mipmap_drop);
    handles_of(c, HANDLE_ARRAY, drop_array);
    memory_release_all(c);
    c->error = CUDA_SUCCESS;
}

static void context_free(CUcontext c) {
    clear(c);
    handle_free(c, HANDLE_CONTEXT);
}

/* The lowest 3 bits name one way to wait, or none. */
static bool are_flags(unsigned flags) {
    const unsigned scheduling = flags & 7;
    return flags <= 0xff && !(scheduling & (scheduling - 1));
}

static CUresult create_context(CUcontext *out, unsigned flags, CUdevice device) {
    if (!out || !are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (mine.depth == MAX_DEPTH) return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext c = context_new(flags);
    if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
    mine.stack[mine.depth++] = c;
    *out = c;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
    DRIVER_CALL(cuCtxCreate, NEED_INIT, create_context(out, flags, device));
}

/* CUctxCreateParams: pointers to parameters that no emulated context has. */
static bool wants_features(const void *params) {
    struct {
        const void *affinity;
        int n;
        const void *graphics;
    } given = {NULL, 0, NULL};
    if (params) memcpy(&given, params, sizeof given);
    return given.affinity || given.graphics;
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *out, const void *params, unsigned flags,
                               CUdevice device) {
    DRIVER_CALL(cuCtxCreate, NEED_INIT,
                wants_features(params) ? CUDA_ERROR_NOT_SUPPORTED
                                       : create_context(out, flags, device));
}

static CUresult push(CUcontext c) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(c, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    if (mine.depth == MAX_DEPTH) return CUDA_ERROR_OUT_OF_MEMORY;
    mine.stack[mine.depth++] = c;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext c) {
    DRIVER_CALL(cuCtxPushCurrent, NEED_INIT, push(c));
}

static CUresult pop(CUcontext *out) {
    CUcontext c = context_current();
    if (!c) return CUDA_ERROR_INVALID_CONTEXT;
    mine.depth--;
    if (out) *out = c;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    DRIVER_CALL(cuCtxPopCurrent, NEED_INIT, pop(out));
}

static CUresult destroy(CUcontext c) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(c, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    if (c->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (c == context_current()) mine.depth--;
    context_free(c);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext c) {
    DRIVER_CALL(cuCtxDestroy, NEED_INIT, destroy(c));
}

/* The name of cuCtxDestroy before version 4. */
EXPORT CUresult cuCtxDetach(CUcontext c) {
    DRIVER_CALL(cuCtxDetach, NEED_INIT, destroy(c));
}

/* ---- primary contexts ---- */

static CUresult retain(CUcontext *out, CUdevice device) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = context_primary();
    if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
    c->retained++;
    *out = c;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    DRIVER_CALL(cuDevicePrimaryCtxRetain, NEED_INIT, retain(out, device));
}

static CUresult release(CUdevice device, bool reset) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = state.primary;
    if (!c || (!reset && !c->retained)) return reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!reset && --c->retained) return CUDA_SUCCESS;
    clear(c); /* its handle stays valid */
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    DRIVER_CALL(cuDevicePrimaryCtxRelease, NEED_INIT, release(device, false));
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    DRIVER_CALL(cuDevicePrimaryCtxReset, NEED_INIT, release(device, true));
}

static CUresult set_flags(CUdevice device, unsigned flags) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    CUcontext c = context_primary();
    if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
    c->flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    DRIVER_CALL(cuDevicePrimaryCtxSetFlags, NEED_INIT, set_flags(device, flags));
}

static CUresult get_state(CUdevice device, unsigned *flags, int *active) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    *flags = state.primary ? state.primary->flags : 0;
    *active = state.primary && state.primary->retained;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    DRIVER_CALL(cuDevicePrimaryCtxGetState, NEED_INIT, get_state(device, flags, active));
}
