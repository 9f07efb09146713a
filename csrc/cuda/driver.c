/* Opens libcuda at run time. Linked against it, or against libcudart, the extension could not be
 * loaded on machines without a driver.
 */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "errors.h"

/* The first CUDA version that has the signature of cuGetProcAddress used here and that loads the
 * machine code of the build. */
enum { OLDEST_VERSION = 12000 };

typedef CUresult (*get_proc_address)(const char *name, void **function, int version, uint64_t flags,
                                     int *symbol_status);

static const struct {
    const char *name;
    int version;
    size_t offset;
    bool optional;
} functions[] = {
#define X(function, version, arguments) {#function, version, offsetof(driver, function), false},
    DRIVER_FUNCTIONS(X)
#undef X
#define X(function, version, arguments) {#function, version, offsetof(driver, function), true},
        OPTIONAL_DRIVER_FUNCTIONS(X)
#undef X
};

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static bool tried;         /* guarded by `opening`, as are the next two */
static smk_status failure; /* why there is no driver; returned by every later call */
static driver opened;
static atomic_bool ready; /* `opened` is valid and will not change */

/* Whether this process has used the driver. Set before any mutex is locked, so that a forked child
 * can check it without a mutex that its parent may have held. */
static atomic_bool used;

/* In the forked child of a process that had used the driver: that process's id; else 0. */
static atomic_int parent;

/* Runs in the forked child. (getpid() in every call would double the cost of
 * driver_open.) */
static void note_fork(void) {
    if (atomic_load(&used) && !atomic_load(&parent)) atomic_store(&parent, getppid());
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, note_fork);
}

/* dlsym into a function pointer. memcpy, because ISO C has no cast from object to function
 * pointers. */
static bool find_symbol(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static smk_code too_old(void *library, const char *missing, smk_status *status) {
    CUresult (*get_version)(int *version);
    int version = 0;
    if (!find_symbol(library, "cuDriverGetVersion", &get_version) || get_version(&version))
        version = 0;
    return smk_fail(status, SMK_DRIVER_TOO_OLD,
                    "the NVIDIA driver supports CUDA %d.%d and lacks %s; smemkern needs a driver "
                    "for CUDA %d.%d or newer. Install a newer NVIDIA driver, or use "
                    "device=\"emu\"",
                    version / 1000, version % 1000 / 10, missing, OLDEST_VERSION / 1000,
                    OLDEST_VERSION % 1000 / 10);
}

static smk_code load_functions(void *library, driver *cu, smk_status *status) {
    get_proc_address lookup;
    if (!find_symbol(library, "cuGetProcAddress_v2", &lookup))
        return too_old(library, "cuGetProcAddress_v2", status);

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = NULL;
        int symbol_status = 0;
        CUresult result =
            lookup(functions[i].name, &function, functions[i].version, 0, &symbol_status);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_FOUND)
            return driver_fail(NULL, result, SMK_ERROR, status, "cuGetProcAddress of %s",
                               functions[i].name);
        if (!function && !functions[i].optional) return too_old(library, functions[i].name, status);
        memcpy((char *)cu + functions[i].offset, &function, sizeof function);
    }
    return SMK_OK;
}

static smk_code open_driver(driver *cu, smk_status *status) {
    /* Never closed: the driver's threads run until the process ends. */
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return smk_fail(status, SMK_NO_DEVICE,
                        "there is no NVIDIA driver: %s. Use device=\"emu\", or install the "
                        "driver; in a container, pass the GPU through",
                        dlerror());
    smk_code code = load_functions(library, cu, status);
    if (code) return code;

    CUresult result = cu->cuInit(0);
    if (result) return driver_fail(cu, result, SMK_NO_DEVICE, status, "cuInit");
    if ((result = cu->cuDriverGetVersion(&cu->version)))
        return driver_fail(cu, result, SMK_ERROR, status, "cuDriverGetVersion");
    if ((result = cu->cuDeviceGetCount(&cu->n_devices)))
        return driver_fail(cu, result, SMK_NO_DEVICE, status, "cuDeviceGetCount");
    if (cu->n_devices == 0)
        return smk_fail(status, SMK_NO_DEVICE,
                        "the NVIDIA driver sees no GPU. Use device=\"emu\", or check nvidia-smi "
                        "and CUDA_VISIBLE_DEVICES");
    return SMK_OK;
}

const driver *driver_open(smk_status *status) {
    static pthread_once_t watching = PTHREAD_ONCE_INIT;
    const int user = atomic_load(&parent);
    if (user) {
        smk_fail(status, SMK_ERROR,
                 "this process was forked from process %d after that had used the GPU, and CUDA "
                 "does not survive a fork. Use the start method \"spawn\" of multiprocessing, or "
                 "use the GPU only after the fork",
                 user);
        return NULL;
    }
    if (atomic_load(&ready)) return &opened;

    pthread_once(&watching, watch_forks);
    atomic_store(&used, true);
    pthread_mutex_lock(&opening);
    if (!tried) {
        open_driver(&opened, &failure);
        tried = true;
        atomic_store(&ready, failure.code == SMK_OK);
    }
    pthread_mutex_unlock(&opening);
    if (failure.code == SMK_OK) return &opened;

    /* CUDA was not initialised, so a forked child reports this failure, not that it was forked. */
    atomic_store(&used, false);
    smk_fail(status, failure.code, "%s", failure.message);
    return NULL;
}
