/* Devices and their primary contexts. Each device is opened once. */
#include "context.h"

#include <stdarg.h>
#include <stdlib.h>

#include "errors.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(device *) devices; /* entries are added with `opening` held, and never removed */

static smk_code refuse_ordinal(const driver *cu, int ordinal, smk_status *status) {
    return smk_fail(status, SMK_NO_DEVICE,
                    "there is no device \"cuda:%d\": this process sees %d GPU%s, \"cuda:0\"%s",
                    ordinal, cu->n_devices, cu->n_devices == 1 ? "" : "s",
                    cu->n_devices == 1 ? " alone" : " and on");
}

smk_code device_describe(const driver *cu, int ordinal, gpu_info *out, smk_status *status) {
    if (ordinal < 0 || ordinal >= cu->n_devices) return refuse_ordinal(cu, ordinal, status);
    int major = 0, minor = 0, shared = 0;
    CUdevice handle;
    CUresult result = cu->cuDeviceGet(&handle, ordinal);
    if (result) return driver_fail(cu, result, SMK_NO_DEVICE, status, "cuDeviceGet");

    *out = (gpu_info){.ordinal = ordinal, .driver_version = cu->version};
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } wanted[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
                  {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &out->multiprocessors},
                  {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &out->clock_khz},
                  {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if ((result = cu->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, handle)))
            return driver_fail(cu, result, SMK_ERROR, status, "cuDeviceGetAttribute(%d)",
                               wanted[i].attribute);
    if ((result = cu->cuDeviceGetName(out->name, sizeof out->name, handle)))
        return driver_fail(cu, result, SMK_ERROR, status, "cuDeviceGetName");
    if ((result = cu->cuDeviceTotalMem(&out->memory_bytes, handle)))
        return driver_fail(cu, result, SMK_ERROR, status, "cuDeviceTotalMem");
    out->sm = 10 * major + minor;
    out->shared_bytes_optin = (size_t)shared;
    return SMK_OK;
}

/* Adds the device to the list. The caller holds `opening`. */
static smk_code open_device(const driver *cu, int ordinal, device **out, smk_status *status) {
    device *d = calloc(1, sizeof *d);
    if (!d) return smk_fail_memory(status, sizeof *d, "the state of a device");
    d->cu = cu;
    smk_code code = device_describe(cu, ordinal, &d->info, status);
    if (code) goto fail;

    CUresult result = cu->cuDeviceGet(&d->handle, ordinal);
    if (!result) result = cu->cuDevicePrimaryCtxRetain(&d->context, d->handle);
    if (result) {
        code = driver_fail(cu, result, SMK_NO_DEVICE, status,
                           "cuDevicePrimaryCtxRetain of device %d (%s)", ordinal, d->info.name);
        goto fail;
    }
    pthread_mutex_init(&d->mutex, NULL);
    pthread_mutex_init(&d->modules_mutex, NULL);
    d->next = atomic_load(&devices);
    atomic_store(&devices, d);
    *out = d;
    return SMK_OK;

fail:
    free(d);
    return code;
}

static device *find_device(int ordinal) {
    device *d = atomic_load(&devices);
    while (d && d->info.ordinal != ordinal)
        d = d->next;
    return d;
}

smk_code device_enter(int ordinal, device **out, smk_status *status) {
    const driver *cu = driver_open(status);
    if (!cu) return status->code;

    device *d = find_device(ordinal);
    if (!d) {
        pthread_mutex_lock(&opening);
        d = find_device(ordinal); /* another thread may have opened it meanwhile */
        if (!d) open_device(cu, ordinal, &d, status);
        pthread_mutex_unlock(&opening);
    }
    if (!d) return status->code;

    if (atomic_load(&d->lost))
        return smk_fail(status, SMK_LAUNCH,
                        "device %d (%s) was lost earlier in this process and cannot be used any "
                        "more. Start a new process. The first failure was: %s",
                        ordinal, d->info.name, d->loss.message);
    CUresult result = cu->cuCtxPushCurrent(d->context);
    if (result) return device_fail(d, result, SMK_ERROR, status, "cuCtxPushCurrent");
    *out = d;
    return SMK_OK;
}

void device_leave(device *d) {
    CUcontext popped;
    d->cu->cuCtxPopCurrent(&popped);
}

int device_relax_capture_mode(device *d) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    d->cu->cuThreadExchangeStreamCaptureMode(&mode); /* on failure the driver refuses the calls */
    return mode;
}

void device_restore_capture_mode(device *d, int mode) {
    d->cu->cuThreadExchangeStreamCaptureMode(&mode);
}

const gpu_info *device_known(int ordinal) {
    const device *d = find_device(ordinal);
    return d ? &d->info : NULL;
}

device *device_enter_if_open(int ordinal) {
    smk_status ignored = {0};
    if (!driver_open(&ignored)) return NULL; /* as in a forked child */
    device *d = find_device(ordinal);
    return d && device_enter(ordinal, &d, &ignored) == SMK_OK ? d : NULL;
}

device *device_enter_any(void) {
    const device *last = atomic_load(&devices);
    return last ? device_enter_if_open(last->info.ordinal) : NULL;
}

smk_code device_fail(device *d, CUresult result, smk_code otherwise, smk_status *status,
                     const char *format, ...) {
    smk_status what = {0};
    va_list arguments;
    va_start(arguments, format);
    driver_vfail(d->cu, result, otherwise, &what, format, arguments);
    va_end(arguments);
    if (!driver_result_is_sticky(result)) return smk_fail(status, what.code, "%s", what.message);

    pthread_mutex_lock(&opening);
    if (!atomic_load(&d->lost)) {
        d->loss = what;
        atomic_store(&d->lost, true);
    }
    pthread_mutex_unlock(&opening);
    return smk_fail(status, what.code,
                    "%s. The context of device %d (%s) is lost with it: every later use of it in "
                    "this process fails, so start a new one",
                    what.message, d->info.ordinal, d->info.name);
}
