/* A table of driver results: our code, whether the context is lost, and a remedy. Results that are
 * not in the table get the code that the caller passes.
 */
#include "errors.h"

#include <stdio.h>

typedef struct meaning {
    int result;
    smk_code code;
    bool sticky;
    const char *remedy;
} meaning;

#define REMEDY_NO_DEVICE "Use device=\"emu\", or check nvidia-smi and CUDA_VISIBLE_DEVICES"
#define REMEDY_STUB      "This is the toolkit's stub: take lib64/stubs out of LD_LIBRARY_PATH"
#define REMEDY_BUSY      "Another process holds the GPU in exclusive mode: wait or change the mode"
#define REMEDY_MEMORY    "Use smaller arrays, or free what other libraries and processes hold"
#define REMEDY_UPDATE    "Install a newer NVIDIA driver"
#define REMEDY_MISMATCH "The kernel module and libcuda differ in version: reboot, or reinstall both"
#define REMEDY_PTX      "Install a newer NVIDIA driver, or the NVRTC of the driver's own version"
#define REMEDY_NO_BINARY   "Add this GPU to SMEMKERN_CUDA_ARCHS and build again, or pass PTX"
#define REMEDY_IMAGE       "Pass PTX text or a fat binary made for this GPU"
#define REMEDY_JIT         "The driver's JIT compiler is disabled or missing: pass machine code"
#define REMEDY_RESOURCES   "Use fewer threads per block, fewer registers or less shared memory"
#define REMEDY_COOPERATIVE "All blocks must fit on the GPU at the same time: launch fewer of them"
#define REMEDY_CLUSTER     "Pass the size of clusters that divides the grid, at most 8 or 16 blocks"
#define REMEDY_SANITIZER   "compute-sanitizer, or device=\"emu\", shows the thread and the address"
#define REMEDY_TIMEOUT   "The GPU drives a display, which limits run time: launch less work at once"
#define REMEDY_HARDWARE  "A hardware fault: see dmesg for its Xid, and reset the GPU"
#define REMEDY_DESTROYED "Another library reset the device (cudaDeviceReset)"
#define REMEDY_STREAM    "The stream must be alive and belong to this device"
#define REMEDY_CAPTURE   "The stream is being captured into a graph: end the capture first"
#define REMEDY_FABRIC    "The fabric manager is not ready: start nvidia-fabricmanager"
#define REMEDY_MPS       "Check the CUDA MPS daemon"

static const meaning meanings[] = {
    {2, SMK_MEMORY, false, REMEDY_MEMORY},                  /* OUT_OF_MEMORY */
    {34, SMK_NO_DEVICE, false, REMEDY_STUB},                /* STUB_LIBRARY */
    {36, SMK_DRIVER_TOO_OLD, false, REMEDY_UPDATE},         /* CALL_REQUIRES_NEWER_DRIVER */
    {46, SMK_NO_DEVICE, false, REMEDY_BUSY},                /* DEVICE_UNAVAILABLE */
    {100, SMK_NO_DEVICE, false, REMEDY_NO_DEVICE},          /* NO_DEVICE */
    {101, SMK_NO_DEVICE, false, REMEDY_NO_DEVICE},          /* INVALID_DEVICE */
    {200, SMK_KERNEL_IMAGE, false, REMEDY_IMAGE},           /* INVALID_IMAGE */
    {209, SMK_KERNEL_IMAGE, false, REMEDY_NO_BINARY},       /* NO_BINARY_FOR_GPU */
    {214, SMK_LAUNCH, true, REMEDY_HARDWARE},               /* ECC_UNCORRECTABLE */
    {218, SMK_KERNEL_IMAGE, false, REMEDY_IMAGE},           /* INVALID_PTX */
    {220, SMK_LAUNCH, true, REMEDY_HARDWARE},               /* NVLINK_UNCORRECTABLE */
    {221, SMK_KERNEL_IMAGE, false, REMEDY_JIT},             /* JIT_COMPILER_NOT_FOUND */
    {222, SMK_DRIVER_TOO_OLD, false, REMEDY_PTX},           /* UNSUPPORTED_PTX_VERSION */
    {223, SMK_KERNEL_IMAGE, false, REMEDY_JIT},             /* JIT_COMPILATION_DISABLED */
    {225, SMK_KERNEL_IMAGE, false, REMEDY_IMAGE},           /* UNSUPPORTED_DEVSIDE_SYNC */
    {226, SMK_LAUNCH, true, REMEDY_HARDWARE},               /* CONTAINED */
    {300, SMK_KERNEL_IMAGE, false, REMEDY_IMAGE},           /* INVALID_SOURCE */
    {302, SMK_KERNEL_IMAGE, false, REMEDY_IMAGE},           /* SHARED_OBJECT_SYMBOL_NOT_FOUND */
    {303, SMK_KERNEL_IMAGE, false, REMEDY_IMAGE},           /* SHARED_OBJECT_INIT_FAILED */
    {400, SMK_VALUE, false, REMEDY_STREAM},                 /* INVALID_HANDLE */
    {700, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* ILLEGAL_ADDRESS */
    {701, SMK_LAUNCH, false, REMEDY_RESOURCES},             /* LAUNCH_OUT_OF_RESOURCES */
    {702, SMK_LAUNCH, true, REMEDY_TIMEOUT},                /* LAUNCH_TIMEOUT */
    {709, SMK_LAUNCH, true, REMEDY_DESTROYED},              /* CONTEXT_IS_DESTROYED */
    {710, SMK_LAUNCH, true, "A device-side assert failed"}, /* ASSERT */
    {714, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* HARDWARE_STACK_ERROR */
    {715, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* ILLEGAL_INSTRUCTION */
    {716, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* MISALIGNED_ADDRESS */
    {717, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* INVALID_ADDRESS_SPACE */
    {718, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* INVALID_PC */
    {719, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* LAUNCH_FAILED */
    {720, SMK_LAUNCH, false, REMEDY_COOPERATIVE},           /* COOPERATIVE_LAUNCH_TOO_LARGE */
    {721, SMK_LAUNCH, true, REMEDY_SANITIZER},              /* TENSOR_MEMORY_LEAK */
    {802, SMK_NO_DEVICE, false, REMEDY_FABRIC},             /* SYSTEM_NOT_READY */
    {803, SMK_DRIVER_TOO_OLD, false, REMEDY_MISMATCH},      /* SYSTEM_DRIVER_MISMATCH */
    {804, SMK_DRIVER_TOO_OLD, false, REMEDY_UPDATE},        /* COMPAT_NOT_SUPPORTED_ON_DEVICE */
    {805, SMK_NO_DEVICE, false, REMEDY_MPS},                /* MPS_CONNECTION_FAILED */
    {807, SMK_NO_DEVICE, false, REMEDY_MPS},                /* MPS_SERVER_NOT_READY */
    {810, SMK_LAUNCH, true, REMEDY_MPS},                    /* MPS_CLIENT_TERMINATED */
    {900, SMK_VALUE, false, REMEDY_CAPTURE},                /* STREAM_CAPTURE_UNSUPPORTED */
    {901, SMK_VALUE, false, REMEDY_CAPTURE},                /* STREAM_CAPTURE_INVALIDATED */
    {906, SMK_VALUE, false, REMEDY_CAPTURE},                /* STREAM_CAPTURE_IMPLICIT */
    {911, SMK_LAUNCH, true, REMEDY_HARDWARE},               /* EXTERNAL_DEVICE */
    {912, SMK_LAUNCH, false, REMEDY_CLUSTER},               /* INVALID_CLUSTER_SIZE */
};

static const meaning *find_meaning(CUresult result) {
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].result == (int)result) return &meanings[i];
    return NULL;
}

bool driver_result_is_sticky(CUresult result) {
    const meaning *m = find_meaning(result);
    return m && m->sticky;
}

smk_code driver_vfail(const driver *cu, CUresult result, smk_code otherwise, smk_status *status,
                      const char *format, va_list arguments) {
    char call[2000];
    vsnprintf(call, sizeof call, format, arguments);

    char number[32];
    snprintf(number, sizeof number, "CUDA error %d", (int)result);
    const char *name = NULL, *text = NULL;
    if (cu && cu->cuGetErrorName(result, &name) != CUDA_SUCCESS) name = NULL;
    if (cu && cu->cuGetErrorString(result, &text) != CUDA_SUCCESS) text = NULL;

    const meaning *m = find_meaning(result);
    return smk_fail(status, m ? m->code : otherwise, "%s: %s%s%s%s%s%s", call, name ? name : number,
                    text ? " (" : "", text ? text : "", text ? ")" : "", m ? ". " : "",
                    m ? m->remedy : "");
}

smk_code driver_fail(const driver *cu, CUresult result, smk_code otherwise, smk_status *status,
                     const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    smk_code code = driver_vfail(cu, result, otherwise, status, format, arguments);
    va_end(arguments);
    return code;
}
