/* Calls about modules, libraries, functions, and launches. */
#include <stdlib.h>
#include <string.h>

#include "work.h"

EXPORT CUresult cuModuleLoad(CUmodule *out, const char *file) {
    DRIVER_CALL(cuModuleLoad, NEED_CONTEXT, module_for_device(module_read(file, out), out));
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    DRIVER_CALL(cuModuleLoadData, NEED_CONTEXT, module_for_device(module_new(image, out), out));
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, int *options,
                                   void **values) {
    (void)options;
    DRIVER_CALL(cuModuleLoadDataEx, NEED_CONTEXT,
                n && !values ? CUDA_ERROR_INVALID_VALUE
                             : module_for_device(module_new(image, out), out));
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image) {
    DRIVER_CALL(cuModuleLoadFatBinary, NEED_CONTEXT, module_new(image, out));
}

EXPORT CUresult cuModuleUnload(CUmodule m) {
    DRIVER_CALL(cuModuleUnload, NEED_CONTEXT, module_drop(m));
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
    DRIVER_CALL_IN(context_of(m), cuModuleGetFunction, module_function(m, name, out));
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule m,
                                     const char *name) {
    DRIVER_CALL(cuModuleGetGlobal, NEED_CONTEXT, module_global(m, name, address, bytes));
}

static CUresult loading_mode(int *mode) {
    enum { LAZY = 2 };
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = LAZY;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetLoadingMode(int *mode) {
    DRIVER_CALL(cuModuleGetLoadingMode, NEED_NOTHING, loading_mode(mode));
}

static CUresult count(unsigned *out, CUmodule m) {
    if (!handle_is(m, HANDLE_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    for (*out = 0; emu_entry_name(m->loaded, *out);)
        ++*out;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned *out, CUmodule m) {
    DRIVER_CALL(cuModuleGetFunctionCount, NEED_CONTEXT, count(out, m));
}

static CUresult enumerate(CUfunction *out, unsigned n, CUmodule m) {
    const char *name;
    if (!handle_is(m, HANDLE_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned k = 0; k < n && (name = emu_entry_name(m->loaded, k)); k++) {
        const CUresult result = module_function(m, name, &out[k]);
        if (result) return result;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned n, CUmodule m) {
    DRIVER_CALL(cuModuleEnumerateFunctions, NEED_CONTEXT, enumerate(out, n, m));
}

/* ---- libraries: they need no context, and belong to none ---- */

static CUresult as_library(CUresult result, CUlibrary *out) {
    if (!result) (*out)->head.context = NULL;
    return result;
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *out, const void *image, int *jit, void **jit_values,
                                  unsigned n_jit, int *options, void **values, unsigned n) {
    (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
    DRIVER_CALL(cuLibraryLoadData, NEED_INIT, as_library(library_new(image, out), out));
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *file, int *jit, void **jit_values,
                                      unsigned n_jit, int *options, void **values, unsigned n) {
    (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
    DRIVER_CALL(cuLibraryLoadFromFile, NEED_INIT, as_library(module_read(file, out), out));
}

EXPORT CUresult cuLibraryUnload(CUlibrary m) {
    DRIVER_CALL(cuLibraryUnload, NEED_INIT, module_drop(m));
}

static CUresult library_kernel(CUlibrary m, const char *name, CUkernel *out) {
    const CUresult result = module_function(m, name, out);
    if (!result) (*out)->of_library = true;
    return result;
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary m, const char *name) {
    DRIVER_CALL(cuLibraryGetKernel, NEED_INIT, library_kernel(m, name, out));
}

EXPORT CUresult cuLibraryGetKernelCount(unsigned *out, CUlibrary m) {
    DRIVER_CALL(cuLibraryGetKernelCount, NEED_INIT, count(out, m));
}

EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned n, CUlibrary m) {
    DRIVER_CALL(cuLibraryEnumerateKernels, NEED_INIT, enumerate(out, n, m));
}

static CUresult same_module(CUmodule *out, CUlibrary m) {
    if (!handle_is(m, HANDLE_MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = m;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetModule(CUmodule *out, CUlibrary m) {
    DRIVER_CALL(cuLibraryGetModule, NEED_INIT, same_module(out, m));
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary m,
                                   const char *name) {
    DRIVER_CALL(cuLibraryGetGlobal, NEED_INIT, module_global(m, name, address, bytes));
}

EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary m,
                                    const char *name) {
    DRIVER_CALL(cuLibraryGetManaged, NEED_INIT, module_global(m, name, address, bytes));
}

/* ---- functions and kernels ---- */

static CUresult same_function(CUfunction *out, CUkernel f) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = f;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *out, CUkernel f) {
    DRIVER_CALL(cuKernelGetFunction, NEED_CONTEXT, same_function(out, f));
}

static CUresult module_of(CUmodule *out, CUfunction f) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    return same_module(out, f->module);
}

EXPORT CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel f) {
    DRIVER_CALL(cuKernelGetLibrary, NEED_INIT, module_of(out, f));
}

EXPORT CUresult cuFuncGetModule(CUmodule *out, CUfunction f) {
    DRIVER_CALL(cuFuncGetModule, NEED_CONTEXT, module_of(out, f));
}

static CUresult name_of(const char **out, CUfunction f) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = f->signature.entry;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetName(const char **out, CUkernel f) {
    DRIVER_CALL(cuKernelGetName, NEED_INIT, name_of(out, f));
}

EXPORT CUresult cuFuncGetName(const char **out, CUfunction f) {
    DRIVER_CALL(cuFuncGetName, NEED_CONTEXT, name_of(out, f));
}

static CUresult parameter_of(CUfunction f, size_t k, size_t *offset, size_t *bytes) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!offset || k >= f->signature.n_parameters) return CUDA_ERROR_INVALID_VALUE;
    *offset = f->signature.parameters[k].offset;
    if (bytes) *bytes = f->signature.parameters[k].size;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetParamInfo(CUkernel f, size_t k, size_t *offset, size_t *bytes) {
    DRIVER_CALL(cuKernelGetParamInfo, NEED_INIT, parameter_of(f, k, offset, bytes));
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t k, size_t *offset, size_t *bytes) {
    DRIVER_CALL(cuFuncGetParamInfo, NEED_CONTEXT, parameter_of(f, k, offset, bytes));
}

EXPORT CUresult cuFuncGetAttribute(int *out, int attribute, CUfunction f) {
    DRIVER_CALL_IN(context_of(f), cuFuncGetAttribute, function_attribute(f, attribute, out));
}

EXPORT CUresult cuKernelGetAttribute(int *out, int attribute, CUkernel f, CUdevice device) {
    DRIVER_CALL(cuKernelGetAttribute, NEED_INIT,
                device ? CUDA_ERROR_INVALID_DEVICE : function_attribute(f, attribute, out));
}

EXPORT CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value) {
    DRIVER_CALL(cuFuncSetAttribute, NEED_CONTEXT, function_set_attribute(f, attribute, value));
}

EXPORT CUresult cuKernelSetAttribute(int attribute, int value, CUkernel f, CUdevice device) {
    DRIVER_CALL(cuKernelSetAttribute, NEED_INIT,
                device ? CUDA_ERROR_INVALID_DEVICE : function_set_attribute(f, attribute, value));
}

static CUresult set_config(CUfunction f, int config, int most) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    return config < 0 || config > most ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetCacheConfig(CUfunction f, int config) {
    DRIVER_CALL(cuFuncSetCacheConfig, NEED_CONTEXT, set_config(f, config, 3));
}

EXPORT CUresult cuKernelSetCacheConfig(CUkernel f, int config, CUdevice device) {
    DRIVER_CALL(cuKernelSetCacheConfig, NEED_INIT,
                device ? CUDA_ERROR_INVALID_DEVICE : set_config(f, config, 3));
}

/* Of the launches before cuLaunchKernel, which are not supported; it has no effect on others. */
static CUresult set_block(CUfunction f, int x, int y, int z) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    return x < 1 || y < 1 || z < 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z) {
    DRIVER_CALL(cuFuncSetBlockShape, NEED_CONTEXT, set_block(f, x, y, z));
}

EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction f, int config) {
    DRIVER_CALL(cuFuncSetSharedMemConfig, NEED_CONTEXT, set_config(f, config, 2));
}

static CUresult is_loaded(int *out, CUfunction f) {
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncIsLoaded(int *out, CUfunction f) {
    DRIVER_CALL(cuFuncIsLoaded, NEED_CONTEXT, is_loaded(out, f));
}

EXPORT CUresult cuFuncLoad(CUfunction f) {
    DRIVER_CALL(cuFuncLoad, NEED_CONTEXT, set_config(f, 0, 0));
}

/* ---- launches ---- */

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **params, void **extra) {
    const CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
    DRIVER_CALL_IN(context_of(stream), cuLaunchKernel, launch(f, &config, params, extra));
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
                                 void **extra) {
    DRIVER_CALL_IN(context_of(config ? config->hStream : NULL), cuLaunchKernelEx,
                   launch(f, config, params, extra));
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                          unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                          CUstream stream, void **params) {
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    const CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, stream, &cooperative, 1};
    DRIVER_CALL_IN(context_of(stream), cuLaunchCooperativeKernel, launch(f, &config, params, NULL));
}

static CUresult call_host(CUstream stream, CUhostFn call, void *user) {
    if (!call) return CUDA_ERROR_INVALID_VALUE;
    work w = {.kind = WORK_HOST, .of.host = {call, user}};
    return work_submit(stream, &w);
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *user) {
    DRIVER_CALL_IN(context_of(stream), cuLaunchHostFunc, call_host(stream, call, user));
}

/* ---- occupancy ---- */

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
                                                            size_t shared) {
    DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, NEED_CONTEXT,
                launch_occupancy(f, threads, shared, blocks));
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f,
                                                                     int threads, size_t shared,
                                                                     unsigned flags) {
    DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, NEED_CONTEXT,
                flags > 1 ? CUDA_ERROR_INVALID_VALUE
                          : launch_occupancy(f, threads, shared, blocks));
}

/* The largest blocks among those with the most resident threads. */
static CUresult potential(int *grid, int *block, CUfunction f, size_t (*shared_of)(int threads),
                          size_t shared, int limit) {
    enum { WARP = 32, SMS = 16 };
    int best = 0;
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!grid || !block) return CUDA_ERROR_INVALID_VALUE;
    if (limit < 0) return CUDA_ERROR_INVALID_VALUE;
    int most = (int)f->signature.max_threads;
    if (limit > 0 && limit < most) most = limit;
    for (int threads = (most + WARP - 1) / WARP * WARP; threads > 0; threads -= WARP) {
        const int tried = threads < most ? threads : most;
        int blocks;
        launch_occupancy(f, tried, shared_of ? shared_of(tried) : shared, &blocks);
        if (blocks * tried <= best) continue;
        best = blocks * tried;
        *block = tried;
        *grid = blocks * device_attribute(SMS);
    }
    return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f,
                                                 size_t (*shared_of)(int threads), size_t shared,
                                                 int limit) {
    DRIVER_CALL(cuOccupancyMaxPotentialBlockSize, NEED_CONTEXT,
                potential(grid, block, f, shared_of, shared, limit));
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                          size_t (*shared_of)(int threads),
                                                          size_t shared, int limit,
                                                          unsigned flags) {
    DRIVER_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, NEED_CONTEXT,
                flags > 1 ? CUDA_ERROR_INVALID_VALUE
                          : potential(grid, block, f, shared_of, shared, limit));
}

static CUresult available(size_t *out, CUfunction f, int blocks) {
    enum { SHARED_PER_SM = 81, SHARED_OPTIN = 97, BLOCKS_PER_SM = 106, SHARED_RESERVED = 111 };
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || blocks < 1 || blocks > device_attribute(BLOCKS_PER_SM))
        return CUDA_ERROR_INVALID_VALUE;
    const int64_t each = device_attribute(SHARED_PER_SM) / blocks -
                         device_attribute(SHARED_RESERVED) -
                         (int64_t)f->signature.static_shared_bytes;
    const int64_t most = device_attribute(SHARED_OPTIN) - (int64_t)f->signature.static_shared_bytes;
    *out = each < 0 ? 0 : (size_t)(each < most ? each : most);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, CUfunction f, int blocks,
                                                        int threads) {
    DRIVER_CALL(cuOccupancyAvailableDynamicSMemPerBlock, NEED_CONTEXT,
                threads < 1 ? CUDA_ERROR_INVALID_VALUE : available(out, f, blocks));
}

/* Clusters of a GPU are within a group of its multiprocessors. Which ones make a group is not
 * documented, so this is as if all were one group: an upper bound. */
static CUresult active_clusters(int *clusters, CUfunction f, const CUlaunchConfig *c) {
    enum { SMS = 16 };
    if (!handle_is(f, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    if (!clusters || !c || (c->numAttrs && !c->attrs)) return CUDA_ERROR_INVALID_VALUE;
    smk_launch l = {
        .cluster = {(uint32_t)f->cluster[0], (uint32_t)f->cluster[1], (uint32_t)f->cluster[2]}};
    for (unsigned k = 0; k < c->numAttrs; k++)
        launch_attribute(&c->attrs[k], &l);
    int blocks;
    const uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    const CUresult result = launch_occupancy(f, threads < INT32_MAX ? (int)threads : INT32_MAX,
                                             c->sharedMemBytes, &blocks);
    if (result) return result;
    uint64_t size = 1;
    for (int k = 0; k < 3; k++)
        size *= l.cluster[k] ? l.cluster[k] : 1;
    *clusters = (int)((uint64_t)blocks * (uint64_t)device_attribute(SMS) / size);
    return CUDA_SUCCESS;
}

enum { CLUSTER_LAUNCH = 120 }; /* the attribute of a device that has clusters */

EXPORT CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction f, const CUlaunchConfig *c) {
    DRIVER_CALL(cuOccupancyMaxActiveClusters, NEED_CONTEXT,
                device_attribute(CLUSTER_LAUNCH) ? active_clusters(clusters, f, c)
                                                 : CUDA_ERROR_NOT_SUPPORTED);
}

/* 8 is the largest portable size; an H100 has 16, where the function allows it. */
static CUresult largest_cluster(int *size, CUfunction f, const CUlaunchConfig *c) {
    enum { PORTABLE = 8, MOST = 16 };
    int blocks;
    if (!size || !c) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    const CUresult result = launch_occupancy(f, threads < INT32_MAX ? (int)threads : INT32_MAX,
                                             c->sharedMemBytes, &blocks);
    if (!result) *size = !blocks ? 0 : f->non_portable_cluster ? MOST : PORTABLE;
    return result;
}

EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction f,
                                                   const CUlaunchConfig *c) {
    DRIVER_CALL(cuOccupancyMaxPotentialClusterSize, NEED_CONTEXT,
                device_attribute(CLUSTER_LAUNCH) ? largest_cluster(size, f, c)
                                                 : CUDA_ERROR_NOT_SUPPORTED);
}
