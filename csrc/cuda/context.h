/* A GPU as this process uses it: its primary context, which other libraries share, and what we
 * keep in it from call to call. Opened on first use, never closed: at exit the driver tears
 * everything down by itself, in an order that nobody else can know.
 */
#ifndef SMK_CUDA_CONTEXT_H
#define SMK_CUDA_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "driver.h"
#include "gpu.h"

enum { MOST_FREE_STREAMS = 32 };

typedef struct device {
    const driver *cu;
    CUdevice handle;
    CUcontext context;
    gpu_info info;

    atomic_bool lost;
    smk_status loss; /* what lost it; written once, before lost is set */

    pthread_mutex_t mutex; /* guards the rest, but not the modules */
    bool pool_opened;
    CUmemoryPool pool;     /* NULL: this device has none, memory is allocated and freed each time */
    uint64_t pool_open_to; /* a bit for each device that reaches it, too */
    CUstream free_streams[MOST_FREE_STREAMS];
    int n_free_streams;
    struct stage *stages; /* idle ones; the latest used first */
    int n_stages;

    pthread_mutex_t modules_mutex; /* its own, for it is held while the driver compiles */
    struct module *modules;        /* the latest used first */
    struct retired *retired;       /* modules that an interrupted kernel may still run */

    struct device *next;
} device;

/* Makes the device's context current for the calling thread, on top of whatever was; every enter
 * that succeeds is paired with a leave. */
smk_code device_enter(int ordinal, device **out, smk_status *status);
void device_leave(device *d);

/* The same, only if this process has used the device and has not lost it; otherwise NULL. */
device *device_enter_if_open(int ordinal);

/* The same, whichever was opened last: for what is of all of them. */
device *device_enter_any(void);

/* While any thread captures a graph the driver refuses calls that could disturb it, such as creating
 * a pool or asking for a stream, and spoils the capture, unless the calling thread says that it
 * knows. To be paired; the first returns what the second takes. */
int device_relax_capture_mode(device *d);
void device_restore_capture_mode(device *d, int mode);

/* What the driver says, which takes it a third of a millisecond; and what was said when the device
 * was opened, NULL before that. */
smk_code device_describe(const driver *cu, int ordinal, gpu_info *out, smk_status *status);
const gpu_info *device_known(int ordinal);

/* driver_fail, and remembers when the result means that the context is lost. */
smk_code device_fail(device *d, CUresult result, smk_code otherwise, smk_status *status,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
