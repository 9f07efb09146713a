/* State per GPU: its primary context, which other libraries share, and the resources that smemkern
 * reuses between calls. Opened on first use and never closed: at exit the driver frees everything
 * itself, in an order that is not known to us.
 */
#ifndef SMK_CUDA_CONTEXT_H
#define SMK_CUDA_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "driver.h"
#include "gpu.h"

enum { MAX_FREE_STREAMS = 32 };

typedef struct device {
    const driver *cu;
    CUdevice handle;
    CUcontext context;
    gpu_info info;

    atomic_bool lost; /* the context failed and cannot be used any more */
    smk_status loss;  /* the failure; written once, before `lost` is set */

    pthread_mutex_t mutex; /* guards the fields down to n_stages */
    bool pool_opened;
    CUmemoryPool pool; /* NULL: the device supports none; memory is allocated and freed each time */
    uint64_t pool_peers; /* bit mask of the devices that can access the pool's memory */
    CUstream free_streams[MAX_FREE_STREAMS];
    int n_free_streams;
    struct stage *stages; /* staging buffers that no call holds, most recently used first */
    int n_stages;

    pthread_mutex_t modules_mutex; /* guards the fields below; held while the driver compiles */
    struct module *modules;        /* most recently used first */
    struct retired *retired;       /* modules that interrupted kernels may still run */

    struct device *next;
} device;

/* Pushes the device's context on the calling thread's context stack. Each successful enter needs a
 * leave. */
smk_code device_enter(int ordinal, device **out, smk_status *status);
void device_leave(device *d);

/* The same for a device that this process has opened and not lost; otherwise NULL. */
device *device_enter_if_open(int ordinal);

/* The same for the device opened last; for operations that affect all devices. */
device *device_enter_any(void);

/* While any thread captures a graph, the driver fails potentially unsafe calls of other threads,
 * such as creating a pool or querying a stream, and invalidates the capture. Relaxed mode
 * (cuThreadExchangeStreamCaptureMode) permits them for the calling thread. Calls are paired:
 * restore takes the value that relax returned. */
int device_relax_capture_mode(device *d);
void device_restore_capture_mode(device *d, int mode);

/* device_describe queries the driver, which takes a third of a millisecond. device_known returns
 * the description from when the device was opened, or NULL before that. */
smk_code device_describe(const driver *cu, int ordinal, gpu_info *out, smk_status *status);
const gpu_info *device_known(int ordinal);

/* driver_fail; also marks the device as lost if the result means that its context is. */
smk_code device_fail(device *d, CUresult result, smk_code otherwise, smk_status *status,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
