/* Calls about the driver, its one device, and the current context. */
#include <stdio.h>
#include <string.h>

#include "work.h"

enum { DRIVER_VERSION = 13000, API_VERSION = 3020, N_DEVICE_ATTRIBUTES = 150, N_LIMITS = 7 };

EXPORT CUresult cuDriverGetVersion(int *version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* ---- results ---- */

static const struct {
    CUresult number;
    const char *name, *text;
} results[] = {
#define X(number, name, text) {name, #name, text},
#include "results.def"
#undef X
};

static CUresult describe(CUresult error, bool name, const char **out) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    for (size_t k = 0; k < sizeof results / sizeof *results; k++)
        if (results[k].number == error) *out = name ? results[k].name : results[k].text;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out) {
    return describe(error, true, out);
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **out) {
    return describe(error, false, out);
}

/* ---- the device ---- */

static CUresult set_int(int *out, int value) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
    DRIVER_CALL(cuDeviceGetCount, NEED_INIT, set_int(count, 1));
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    DRIVER_CALL(cuDeviceGet, NEED_INIT, ordinal ? CUDA_ERROR_INVALID_DEVICE : set_int(device, 0));
}

static CUresult get_name(char *name, int length, CUdevice device) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!name || length < 1) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", device_name());
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    DRIVER_CALL(cuDeviceGetName, NEED_INIT, get_name(name, length, device));
}

static CUresult get_uuid(CUuuid *uuid, CUdevice device) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    *uuid = device_uuid();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    DRIVER_CALL(cuDeviceGetUuid, NEED_INIT, get_uuid(uuid, device));
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    DRIVER_CALL(cuDeviceGetUuid, NEED_INIT, get_uuid(uuid, device));
}

static CUresult get_memory(size_t *bytes, CUdevice device) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device_memory();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    DRIVER_CALL(cuDeviceTotalMem, NEED_INIT, get_memory(bytes, device));
}

static CUresult get_attribute(int *out, int attribute, CUdevice device) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (attribute < 1 || attribute >= N_DEVICE_ATTRIBUTES) return CUDA_ERROR_INVALID_VALUE;
    return set_int(out, device_attribute(attribute));
}

EXPORT CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice device) {
    DRIVER_CALL(cuDeviceGetAttribute, NEED_INIT, get_attribute(out, attribute, device));
}

static CUresult get_capability(int *major, int *minor, CUdevice device) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = device_attribute(75);
    *minor = device_attribute(76);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    DRIVER_CALL(cuDeviceComputeCapability, NEED_INIT, get_capability(major, minor, device));
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    DRIVER_CALL(cuDeviceCanAccessPeer, NEED_INIT,
                device || peer ? CUDA_ERROR_INVALID_DEVICE : set_int(can, 0));
}

/* All contexts are on one device, which needs no access to itself. */
static CUresult peer(CUcontext context, CUresult result) {
    return handle_is(context, HANDLE_CONTEXT) ? result : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags) {
    DRIVER_CALL(cuCtxEnablePeerAccess, NEED_CONTEXT,
                flags ? CUDA_ERROR_INVALID_VALUE
                      : peer(context, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext context) {
    DRIVER_CALL(cuCtxDisablePeerAccess, NEED_CONTEXT,
                peer(context, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED));
}

EXPORT CUresult cuDeviceGetP2PAttribute(int *out, int attribute, CUdevice from, CUdevice to) {
    (void)out, (void)attribute, (void)from, (void)to;
    DRIVER_CALL(cuDeviceGetP2PAttribute, NEED_INIT, CUDA_ERROR_INVALID_DEVICE);
}

static CUresult get_bus(char *id, int length, CUdevice device) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!id || length < 13) return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, (size_t)length, "0000:%02x:%02x.0", device_attribute(33), device_attribute(34));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
    DRIVER_CALL(cuDeviceGetPCIBusId, NEED_INIT, get_bus(id, length, device));
}

static CUresult by_bus(CUdevice *device, const char *id) {
    char own[16];
    if (!device || !id) return CUDA_ERROR_INVALID_VALUE;
    if (!strchr(id, ':')) return CUDA_ERROR_INVALID_VALUE;
    get_bus(own, sizeof own, 0);
    return strcmp(own, id) ? CUDA_ERROR_INVALID_DEVICE : set_int(device, 0);
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
    DRIVER_CALL(cuDeviceGetByPCIBusId, NEED_INIT, by_bus(device, id));
}

/* ---- the current context ---- */

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    DRIVER_CALL(cuCtxSetCurrent, NEED_INIT, context_set_current(context));
}

static CUresult get_current(CUcontext *out) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = context_current();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *out) {
    DRIVER_CALL(cuCtxGetCurrent, NEED_INIT, get_current(out));
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    DRIVER_CALL(cuCtxGetDevice, NEED_INIT,
                context_current() ? set_int(device, 0) : CUDA_ERROR_INVALID_CONTEXT);
}

EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    DRIVER_CALL(cuCtxGetDevice, NEED_INIT,
                (context ? handle_is(context, HANDLE_CONTEXT) : context_current() != NULL)
                    ? set_int(device, 0)
                    : CUDA_ERROR_INVALID_CONTEXT);
}

EXPORT CUresult cuCtxGetFlags(unsigned *flags) {
    DRIVER_CALL(cuCtxGetFlags, NEED_CONTEXT, set_int((int *)flags, (int)context_current()->flags));
}

EXPORT CUresult cuCtxSetFlags(unsigned flags) {
    DRIVER_CALL(cuCtxSetFlags, NEED_CONTEXT, (context_current()->flags = flags, CUDA_SUCCESS));
}

static CUresult get_id(CUcontext context, unsigned long long *id) {
    if (!context) context = context_current();
    if (!handle_is(context, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    DRIVER_CALL(cuCtxGetId, NEED_INIT, get_id(context, id));
}

static CUresult get_version(CUcontext context, unsigned *version) {
    if (!context) context = context_current();
    if (!handle_is(context, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    return set_int((int *)version, API_VERSION);
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
    DRIVER_CALL(cuCtxGetApiVersion, NEED_INIT, get_version(context, version));
}

static CUresult synchronize(void) {
    const CUresult result = capture_check_wait(NULL);
    if (!result) launch_flush_printed();
    return result;
}

EXPORT CUresult cuCtxSynchronize(void) {
    DRIVER_CALL(cuCtxSynchronize, NEED_CONTEXT, synchronize());
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
    DRIVER_CALL(cuCtxSynchronize, NEED_CONTEXT,
                context && !handle_is(context, HANDLE_CONTEXT) ? CUDA_ERROR_INVALID_CONTEXT
                                                               : synchronize());
}

static CUresult get_limit(size_t *value, int limit) {
    if (!value || limit < 0 || limit >= N_LIMITS) return CUDA_ERROR_INVALID_VALUE;
    *value = context_current()->limits[limit];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetLimit(size_t *value, int limit) {
    DRIVER_CALL(cuCtxGetLimit, NEED_CONTEXT, get_limit(value, limit));
}

static CUresult set_limit(int limit, size_t value) {
    if (limit < 0 || limit >= N_LIMITS) return CUDA_ERROR_INVALID_VALUE;
    context_current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetLimit(int limit, size_t value) {
    DRIVER_CALL(cuCtxSetLimit, NEED_CONTEXT, set_limit(limit, value));
}

EXPORT CUresult cuCtxGetCacheConfig(int *config) {
    DRIVER_CALL(cuCtxGetCacheConfig, NEED_CONTEXT, set_int(config, 0));
}

EXPORT CUresult cuCtxSetCacheConfig(int config) {
    DRIVER_CALL(cuCtxSetCacheConfig, NEED_CONTEXT,
                config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetSharedMemConfig(int *config) {
    DRIVER_CALL(cuCtxGetSharedMemConfig, NEED_CONTEXT, set_int(config, 1));
}

EXPORT CUresult cuCtxSetSharedMemConfig(int config) {
    DRIVER_CALL(cuCtxSetSharedMemConfig, NEED_CONTEXT,
                config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

static CUresult get_priorities(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    DRIVER_CALL(cuCtxGetStreamPriorityRange, NEED_CONTEXT, get_priorities(least, greatest));
}

EXPORT CUresult cuCtxResetPersistingL2Cache(void) {
    DRIVER_CALL(cuCtxResetPersistingL2Cache, NEED_CONTEXT, CUDA_SUCCESS);
}

/* The driver has no log, so callbacks are not called. */
static CUresult register_log(void *callback, void **out) {
    if (!callback) return CUDA_ERROR_INVALID_VALUE;
    if (out) *out = callback;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLogsRegisterCallback(void *callback, void *data, void **out) {
    (void)data;
    DRIVER_CALL(cuLogsRegisterCallback, NEED_NOTHING, register_log(callback, out));
}

EXPORT CUresult cuLogsUnregisterCallback(void *registered) {
    DRIVER_CALL(cuLogsUnregisterCallback, NEED_NOTHING,
                registered ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuProfilerStart(void) {
    DRIVER_CALL(cuProfilerStart, NEED_CONTEXT, CUDA_SUCCESS);
}

EXPORT CUresult cuProfilerStop(void) {
    DRIVER_CALL(cuProfilerStop, NEED_CONTEXT, CUDA_SUCCESS);
}
