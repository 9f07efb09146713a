/* Calls about streams and events. All work is done when it is queued, so nothing ever waits. What
 * captured streams do is in capture.c. */
#include <string.h>

#include "work.h"

/* ---- streams ---- */

static CUresult create(CUstream *out, unsigned flags, int priority) {
    static uint64_t n = 2; /* the ids of the default streams are 1 and 2 */
    if (!out || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    CUstream s = handle_new(HANDLE_STREAM, sizeof *s);
    if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
    s->flags = flags;
    s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    s->id = ++n;
    *out = s;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    DRIVER_CALL(cuStreamCreate, NEED_CONTEXT, create(out, flags, 0));
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    DRIVER_CALL(cuStreamCreateWithPriority, NEED_CONTEXT, create(out, flags, priority));
}

static CUresult destroy(CUstream s) {
    if (!handle_is(s, HANDLE_STREAM)) return CUDA_ERROR_INVALID_HANDLE;
    stream_free(s);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream s) {
    DRIVER_CALL_IN(context_of(s), cuStreamDestroy, destroy(s));
}

static CUresult check(CUstream s) {
    return stream_is(s) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult query(CUstream s) {
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = capture_check_wait(s);
    return result ? result : queue_query_stream(s);
}

EXPORT CUresult cuStreamQuery(CUstream s) {
    DRIVER_CALL_IN(context_of(s), cuStreamQuery, query(s));
}

static CUresult wait(CUstream s) {
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = capture_check_wait(s);
    if (!result) result = queue_wait_stream(s);
    if (!result) launch_flush_printed();
    return result;
}

EXPORT CUresult cuStreamSynchronize(CUstream s) {
    DRIVER_CALL_IN(context_of(s), cuStreamSynchronize, wait(s));
}

static CUresult add_callback(CUstream s, CUstreamCallback call, void *user, unsigned flags) {
    if (!call || flags) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = wait(s);
    const bool before = driver_set_host_function(true);
    if (!result) call(s, CUDA_SUCCESS, user);
    driver_set_host_function(before);
    return result;
}

EXPORT CUresult cuStreamAddCallback(CUstream s, CUstreamCallback call, void *user, unsigned flags) {
    DRIVER_CALL_IN(context_of(s), cuStreamAddCallback, add_callback(s, call, user, flags));
}

static const struct stream *properties(CUstream s) {
    static const struct stream defaults = {.id = 1};
    return (uintptr_t)s <= 2 ? &defaults : s;
}

/* One property, as bytes. */
static CUresult get(CUstream s, const void *value, size_t bytes, void *out) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, value, bytes);
    return check(s);
}

#define STREAM_PROPERTY(name, type, expression)                                                    \
    static CUresult name##_of(CUstream s, type *out) {                                             \
        if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;                                       \
        const type value = (expression);                                                           \
        return get(s, &value, sizeof value, out);                                                  \
    }                                                                                              \
    EXPORT CUresult name(CUstream s, type *out) {                                                  \
        DRIVER_CALL_IN(context_of(s), name, name##_of(s, out));                                    \
    }

STREAM_PROPERTY(cuStreamGetFlags, unsigned, properties(s)->flags)
STREAM_PROPERTY(cuStreamGetPriority, int, properties(s)->priority)
STREAM_PROPERTY(cuStreamGetId, unsigned long long, properties(s)->id)
STREAM_PROPERTY(cuStreamGetDevice, CUdevice, 0)
STREAM_PROPERTY(cuStreamGetCtx, CUcontext, context_current())

EXPORT CUresult cuStreamAttachMemAsync(CUstream s, CUdeviceptr address, size_t bytes,
                                       unsigned flags) {
    size_t offset;
    (void)bytes;
    DRIVER_CALL_IN(context_of(s), cuStreamAttachMemAsync,
                   !stream_is(s)                            ? CUDA_ERROR_INVALID_HANDLE
                   : flags != 1 && flags != 2 && flags != 4 ? CUDA_ERROR_INVALID_VALUE
                   : memory_find(address, &offset)          ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
    DRIVER_CALL_IN(context_of(to), cuStreamCopyAttributes, check(to) ? check(to) : check(from));
}

static CUresult stream_attribute(CUstream s, int attribute, void *value, bool set) {
    enum { VALUE_BYTES = 64, MAX_ATTRIBUTE = 32 };
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    if (!value || attribute > MAX_ATTRIBUTE) return CUDA_ERROR_INVALID_VALUE;
    if (!set) memset(value, 0, VALUE_BYTES);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetAttribute(CUstream s, int attribute, void *value) {
    DRIVER_CALL_IN(context_of(s), cuStreamGetAttribute,
                   stream_attribute(s, attribute, value, false));
}

EXPORT CUresult cuStreamSetAttribute(CUstream s, int attribute, void *value) {
    DRIVER_CALL_IN(context_of(s), cuStreamSetAttribute,
                   stream_attribute(s, attribute, value, true));
}

/* ---- events ---- */

CUresult event_new(CUevent *out, unsigned flags) {
    if (!out || flags > EVENT_ALL_FLAGS) return CUDA_ERROR_INVALID_VALUE;
    if (flags & EVENT_INTERPROCESS && !(flags & EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    CUevent e = handle_new(HANDLE_EVENT, sizeof *e);
    if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    *out = e;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags) {
    DRIVER_CALL(cuEventCreate, NEED_CONTEXT, event_new(out, flags));
}

static CUresult destroy_event(CUevent e) {
    if (!handle_is(e, HANDLE_EVENT)) return CUDA_ERROR_INVALID_HANDLE;
    event_free(e);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent e) {
    DRIVER_CALL_IN(context_of(e), cuEventDestroy, destroy_event(e));
}

/* In a captured stream an external record is a node, and any other marks a place in the graph. */
static CUresult record(CUevent e, CUstream s, unsigned flags) {
    enum { EXTERNAL = 1 };
    capture *into;
    if (flags > EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(e, HANDLE_EVENT) || !stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = capture_of(s, &into);
    if (result) return result;
    if (flags && !into) return CUDA_ERROR_ILLEGAL_STATE;
    if (into && !flags) return capture_record(into, s, e);
    event_forget_capture(e);
    work w = {.kind = WORK_RECORD, .of.event = e};
    result = work_submit(s, &w);
    /* Other processes cannot wait for what is in a queue here. */
    return result || !(e->flags & EVENT_INTERPROCESS) ? result : queue_wait_event(e);
}

EXPORT CUresult cuEventRecord(CUevent e, CUstream s) {
    DRIVER_CALL_IN(context_of(s), cuEventRecord, record(e, s, 0));
}

EXPORT CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags) {
    DRIVER_CALL_IN(context_of(s), cuEventRecordWithFlags, record(e, s, flags));
}

static CUresult check_event(CUevent e, bool flush) {
    if (!handle_is(e, HANDLE_EVENT)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = capture_check_event(e);
    if (!result) result = flush ? queue_wait_event(e) : queue_query_event(e);
    if (flush && !result) launch_flush_printed();
    return result;
}

EXPORT CUresult cuEventQuery(CUevent e) {
    DRIVER_CALL_IN(context_of(e), cuEventQuery, check_event(e, false));
}

EXPORT CUresult cuEventSynchronize(CUevent e) {
    DRIVER_CALL_IN(context_of(e), cuEventSynchronize, check_event(e, true));
}

static CUresult wait_event(CUstream s, CUevent e, unsigned flags) {
    enum { EXTERNAL = 1 };
    bool done = false;
    if (flags > EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(e, HANDLE_EVENT) || !stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    capture *into;
    CUresult result = flags ? capture_of(s, &into) : capture_wait(s, e, &done);
    if (flags && !result && !into) result = CUDA_ERROR_ILLEGAL_STATE;
    work w = {.kind = WORK_WAIT, .of.event = e};
    return result || done ? result : work_submit(s, &w);
}

EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
    DRIVER_CALL_IN(context_of(s), cuStreamWaitEvent, wait_event(s, e, flags));
}

static CUresult elapsed(float *milliseconds, CUevent first, CUevent last) {
    if (!handle_is(first, HANDLE_EVENT) || !handle_is(last, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (queue_has_event(first) || queue_has_event(last)) return CUDA_ERROR_NOT_READY;
    if (!first->recorded || !last->recorded || (first->flags | last->flags) & EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((last->seconds - first->seconds) * 1e3);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent last) {
    DRIVER_CALL_IN(context_of(first), cuEventElapsedTime, elapsed(milliseconds, first, last));
}

EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent first, CUevent last) {
    DRIVER_CALL_IN(context_of(first), cuEventElapsedTime, elapsed(milliseconds, first, last));
}
