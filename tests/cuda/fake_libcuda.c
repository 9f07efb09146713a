/* A libcuda.so.1 for machines with no GPU: device memory is host memory, a few kernels are C
 * loops, and everything is counted. It is as strict as the driver where that matters: calls need a
 * current context, copies and kernels must stay inside allocations, a crash is sticky.
 */
#include "fake_internal.h"

#include <pthread.h>
#include <stdio.h>

enum { N_DEVICES = 2, SHARED_OPTIN = 227 << 10, STATIC_SHARED = 16 };

struct CUevent_st {
    CUstream stream; /* NULL: reached already */
};

struct CUfunc_st {
    char name[64];
    int dynamic_shared;
    bool wide_clusters; /* clusters of more than 8 blocks are allowed */
};

enum { MOST_FUNCTIONS = 32 };

struct CUmod_st {
    struct CUfunc_st functions[MOST_FUNCTIONS];
};

EXPORTED fake_cuda_state fake_cuda = {.total_bytes = 1 << 30, .virtual_sm = 90, .version = 13000};

#define DEFAULT_STREAM ((CUstream)1) /* CU_STREAM_LEGACY */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUstream streams;
static _Thread_local int depth; /* contexts pushed by this thread */
static _Thread_local int capture_mode;

bool fake_stream_is_busy(CUstream stream) {
    return stream != DEFAULT_STREAM && stream->hangs && fake_cuda.kernels_hang;
}

static void settle_streams(void) {
    for (CUstream *link = &streams; *link;) {
        CUstream stream = *link;
        while (stream->n_marks && !fake_stream_is_busy(stream)) {
            stream->n_marks--;
            __atomic_store_n(stream->marks[stream->n_marks], stream->values[stream->n_marks],
                             __ATOMIC_RELEASE);
        }
        if (!stream->destroyed || fake_stream_is_busy(stream)) {
            link = &stream->next;
            continue;
        }
        *link = stream->next;
        free(stream);
        fake_cuda.streams--;
    }
}

/* How often a thread asks whether something has ended depends on the clock: between two calls of
 * another kind, a question counts once. */
static bool counts(const char *call) {
    static _Thread_local unsigned asked;
    const unsigned kind = !strcmp(call, "cuStreamQuery")  ? 1
                          : !strcmp(call, "cuEventQuery") ? 2
                                                          : 0;
    const bool again = asked & kind;
    asked = kind ? asked | kind : 0;
    return !again;
}

int fake_begin(const char *call, bool needs_context) {
    pthread_mutex_lock(&mutex);
    fake_settle_memory();
    settle_streams();
    if (fake_cuda.fail_call && !strcmp(fake_cuda.fail_call, call) &&
        --fake_cuda.fail_countdown == 0) {
        fake_cuda.fail_call = NULL;
        return fake_cuda.fail_result;
    }
    if (counts(call) && ++fake_cuda.calls == fake_cuda.fail_number) {
        fake_cuda.failed_call = call;
        const bool fault = fake_cuda.fail_result >= ILLEGAL_ADDRESS &&
                           fake_cuda.fail_result <= LAUNCH_FAILED && needs_context;
        if (fault) fake_cuda.sticky = fake_cuda.fail_result;
        return fake_cuda.fail_result;
    }
    /* As an H200 with driver 580 does. */
    static const char unsafe[] = "cuMemAlloc cuEventQuery cuMemPoolCreate cuMemPoolSetAttribute "
                                 "cuStreamQuery cuStreamSynchronize";
    if (fake_cuda.capturing && !capture_mode && strstr(unsafe, call)) return CAPTURE_UNSUPPORTED;
    if (needs_context && !depth) return INVALID_CONTEXT;
    return needs_context ? fake_cuda.sticky : CUDA_SUCCESS;
}

void fake_end(const int *unused) {
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

CUresult cuInit(unsigned flags) {
    CALL_ANYWHERE(cuInit);
    return fail(flags ? INVALID_VALUE : 0);
}

CUresult cuDriverGetVersion(int *version) {
    CALL_ANYWHERE(cuDriverGetVersion);
    *version = fake_cuda.version;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    CALL_ANYWHERE(cuGetErrorName);
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "CUDA_ERROR_FAKE_%d", (int)error);
    *name = text;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    CALL_ANYWHERE(cuGetErrorString);
    *text = error ? "a fake failure" : "no failure";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    CALL_ANYWHERE(cuDeviceGetCount);
    *count = N_DEVICES;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CALL_ANYWHERE(cuDeviceGet);
    *device = ordinal;
    return fail(ordinal < 0 || ordinal >= N_DEVICES ? INVALID_VALUE : 0);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    CALL_ANYWHERE(cuDeviceGetName);
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    CALL_ANYWHERE(cuDeviceTotalMem);
    *bytes = fake_cuda.total_bytes;
    return fail(device < 0 || device >= N_DEVICES ? INVALID_VALUE : 0);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    CALL_ANYWHERE(cuDeviceGetAttribute);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = SHARED_OPTIN; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = !fake_cuda.no_pools; break;
    }
    return fail(device < 0 || device >= N_DEVICES ? INVALID_VALUE : 0);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CALL_ANYWHERE(cuDevicePrimaryCtxRetain);
    *context = (CUcontext)&fake_cuda;
    return fail(device < 0 || device >= N_DEVICES ? INVALID_VALUE : 0);
}

CUresult cuCtxPushCurrent(CUcontext context) {
    CALL_ANYWHERE(cuCtxPushCurrent);
    if (context != (CUcontext)&fake_cuda) return fail(INVALID_CONTEXT);
    depth++;
    fake_cuda.contexts_pushed++;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    CALL_ANYWHERE(cuCtxPopCurrent);
    if (!depth) return fail(INVALID_CONTEXT);
    depth--;
    fake_cuda.contexts_pushed--;
    *context = (CUcontext)&fake_cuda;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    CALL(cuPointerGetAttribute);
    if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || !fake_is_allocated(address, 1))
        return fail(INVALID_VALUE);
    *(int *)value = 0;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr address) {
    CALL(cuPointerGetAttributes);
    if (n != 1 || attributes[0] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) return fail(INVALID_VALUE);
    const bool pinned = fake_is_pinned((const void *)(uintptr_t)address);
    *(unsigned *)values[0] = pinned ? CU_MEMORYTYPE_HOST : 0;
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    CALL(cuStreamCreate);
    *stream = calloc(1, sizeof **stream);
    (*stream)->next = streams;
    streams = *stream;
    fake_cuda.streams++;
    return fail(flags == CU_STREAM_NON_BLOCKING ? 0 : INVALID_VALUE);
}

CUresult cuStreamDestroy(CUstream stream) {
    CALL(cuStreamDestroy);
    stream->destroyed = true;
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
    CALL(cuStreamQuery);
    return fake_stream_is_busy(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
    CALL(cuStreamSynchronize);
    return fail(fake_stream_is_busy(stream) ? INVALID_VALUE
                                            : 0); /* would hang: a test wants to know */
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    CALL(cuEventCreate);
    *event = calloc(1, sizeof **event);
    fake_cuda.events++;
    return fail(flags <= CU_EVENT_DISABLE_TIMING ? 0 : INVALID_VALUE);
}

CUresult cuEventDestroy(CUevent event) {
    CALL(cuEventDestroy);
    free(event);
    fake_cuda.events--;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    CALL(cuEventRecord);
    event->stream = fake_stream_is_busy(stream) ? stream : NULL;
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
    CALL(cuEventQuery);
    return event->stream && fake_cuda.kernels_hang ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    CALL(cuStreamWaitEvent);
    fake_cuda.waits++;
    if (event && event->stream && stream != DEFAULT_STREAM && fake_stream_is_busy(event->stream))
        stream->hangs = true;
    return fail(stream && event && !flags ? 0 : INVALID_VALUE);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, uint32_t value,
                              unsigned flags) {
    CALL(cuStreamWriteValue32);
    void *memory = (void *)(uintptr_t)address;
    if (!stream || flags || !fake_is_pinned(memory)) return fail(INVALID_VALUE);
    if (!fake_stream_is_busy(stream)) {
        __atomic_store_n((uint32_t *)memory, value, __ATOMIC_RELEASE);
        return CUDA_SUCCESS;
    }
    if (stream->n_marks == MOST_MARKS) return fail(INVALID_VALUE);
    stream->marks[stream->n_marks] = memory;
    stream->values[stream->n_marks++] = value;
    return CUDA_SUCCESS;
}

/* What has not come by now would have to be waited for: nothing here runs by itself. */
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
    CALL(cuStreamWaitValue32);
    const uint32_t *memory = (const uint32_t *)(uintptr_t)address;
    return fail(stream && flags == CU_STREAM_WAIT_VALUE_GEQ && fake_is_pinned(memory) &&
                        (int32_t)(__atomic_load_n(memory, __ATOMIC_ACQUIRE) - value) >= 0
                    ? 0
                    : INVALID_VALUE);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    CALL(cuThreadExchangeStreamCaptureMode);
    const int previous = capture_mode;
    capture_mode = *mode;
    *mode = previous;
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop) {
    CALL(cuEventElapsedTime);
    *milliseconds = 0.25f;
    return fail(start && stop ? 0 : INVALID_VALUE);
}

/* ---- modules and kernels ---- */

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n_options,
                            CUjit_option *options, void **values) {
    CALL(cuModuleLoadDataEx);
    if (!strncmp(image, "bad", 3)) {
        for (unsigned i = 0; i < n_options; i++)
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER) strcpy(values[i], "line 7: nonsense");
        return fail(INVALID_IMAGE);
    }
    *module = calloc(1, sizeof **module);
    for (size_t i = 0; i < MOST_FUNCTIONS && fake_kernel_name(i); i++) {
        strcpy((*module)->functions[i].name, fake_kernel_name(i));
        (*module)->functions[i].dynamic_shared = 48 << 10;
    }
    fake_cuda.modules++;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
    CALL(cuModuleUnload);
    free(module);
    fake_cuda.modules--;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    CALL(cuModuleGetFunction);
    for (size_t i = 0; i < MOST_FUNCTIONS; i++) {
        *function = &module->functions[i];
        if (!strcmp(name, module->functions[i].name)) return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    CALL(cuFuncGetAttribute);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = STATIC_SHARED; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = fake_cuda.virtual_sm; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->dynamic_shared; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = function->wide_clusters;
        break;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    CALL(cuFuncSetAttribute);
    if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        function->wide_clusters = value;
        return CUDA_SUCCESS;
    }
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
        value > SHARED_OPTIN - STATIC_SHARED)
        return fail(INVALID_VALUE);
    function->dynamic_shared = value;
    return CUDA_SUCCESS;
}

/* Kernels here find what they read by their other arguments. */
CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                                const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                                const uint32_t *steps, int interleave, int swizzle,
                                int l2_promotion, int fill) {
    CALL_ANYWHERE(cuTensorMapEncodeTiled);
    (void)type, (void)strides, (void)steps, (void)interleave, (void)swizzle, (void)l2_promotion;
    memcpy(map, &address, sizeof address);
    return fail(rank && sizes[0] && box[0] && !fill ? 0 : INVALID_VALUE);
}

static bool is_cluster(const unsigned size[3], const unsigned grid[3], CUfunction function) {
    for (int k = 0; k < 3; k++)
        if (!size[k] || grid[k] % size[k]) return false;
    return size[0] * size[1] * size[2] <= (function->wide_clusters ? 16 : 8);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra) {
    CALL(cuLaunchKernelEx);
    const unsigned *grid = config->grid, *block = config->block;
    CUstream stream = config->stream;
    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || block[0] * block[1] * block[2] > 1024 ||
        (int)config->shared_bytes > function->dynamic_shared || !stream || !parameters || extra)
        return fail(INVALID_VALUE);
    for (unsigned i = 0; i < config->n_attributes; i++) {
        const CUlaunchAttribute *attribute = &config->attributes[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            if (!is_cluster(attribute->value.cluster, grid, function))
                return fail(INVALID_CLUSTER_SIZE);
            continue;
        }
        if (attribute->value.allowed != 1) return fail(INVALID_VALUE);
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            if (grid[0] > MOST_RESIDENT) return fail(COOPERATIVE_LAUNCH_TOO_LARGE);
            continue;
        }
        if (attribute->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
            !stream->has_launched)
            return fail(INVALID_VALUE);
        fake_cuda.overlapping++;
    }
    fake_cuda.launched_on = stream;
    if (stream != DEFAULT_STREAM) stream->has_launched = true;
    fake_cuda.sticky = fake_run(function->name, parameters, grid);
    fake_cuda.launches++;
    if (!strcmp(function->name, "spin") ||
        (!strcmp(function->name, "gemm_naive") && fake_cuda.products_hang))
        stream->hangs = true;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                      uint64_t flags, int *status) {
    CALL_ANYWHERE(cuGetProcAddress);
    static const struct {
        const char *name;
        int version;
        void *function;
    } table[] = {
#define X(function, version, arguments) {#function, version, (void *)function},
        DRIVER_FUNCTIONS(X) OPTIONAL_DRIVER_FUNCTIONS(X)
#undef X
    };
    *function = NULL;
    *status = 1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name) && version >= table[i].version && !flags) {
            *function = table[i].function;
            *status = 0;
        }
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
