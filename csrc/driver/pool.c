/* Memory of streams and of graphs, from pools. A pool has no memory of its own: what is allocated
 * from it is an allocation like any other, of the pool's kind. */
#include <string.h>

#include "work.h"

/* In a captured stream a node allocates, at an address that is known now. */
static CUresult alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
    capture *into;
    if (!stream_is(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (pool && !handle_is(pool, HANDLE_POOL)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = capture_of(stream, &into);
    if (result) return result;
    const memory_kind kind = pool ? pool->kind : MEMORY_DEVICE;
    if (!into) {
        size_t offset;
        result = memory_new(kind, bytes, 0, out);
        allocation *a = result ? NULL : memory_find(*out, &offset);
        if (a) a->pooled = true;
        return result;
    }
    if (kind != MEMORY_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    result = memory_reserve(bytes, out);
    if (result) return result;
    work w = {.kind = WORK_ALLOC, .of.memory = {*out, bytes}};
    return capture_add(into, stream, &w);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemAllocAsync, alloc_async(out, bytes, NULL, stream));
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                                        CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemAllocFromPoolAsync,
                   pool ? alloc_async(out, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE);
}

static CUresult free_async(CUdeviceptr address, CUstream stream) {
    work w = {.kind = WORK_FREE, .of.memory = {address, 0}};
    return address ? work_submit(stream, &w) : CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemFreeAsync, free_async(address, stream));
}

static CUmemoryPool new_pool(memory_kind kind) {
    CUmemoryPool pool = handle_new(HANDLE_POOL, sizeof *pool);
    if (pool) pool->kind = kind;
    return pool;
}

enum { N_POOLS = MEMORY_MANAGED + 1 }; /* kinds of memory that a pool can have */
static CUmemoryPool default_pools[N_POOLS];

static CUresult default_pool(CUmemoryPool *out, memory_kind kind) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!default_pools[kind]) default_pools[kind] = new_pool(kind);
    *out = default_pools[kind];
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_pool(CUmemoryPool *out, CUdevice device) {
    return device ? CUDA_ERROR_INVALID_DEVICE : default_pool(out, MEMORY_DEVICE);
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
    DRIVER_CALL(cuDeviceGetDefaultMemPool, NEED_INIT, get_pool(out, device));
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
    DRIVER_CALL(cuDeviceGetMemPool, NEED_INIT, get_pool(out, device));
}

static CUresult check_pool(CUmemoryPool pool) {
    return handle_is(pool, HANDLE_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    DRIVER_CALL(cuDeviceSetMemPool, NEED_INIT,
                device ? CUDA_ERROR_INVALID_DEVICE : check_pool(pool));
}

/* The memory of a pool: of a type (1 pinned, 2 managed) and a location. False: there is none. */
static bool kind_of(int type, const CUmemLocation *location, memory_kind *kind) {
    enum { PINNED = 1, MANAGED = 2, NOWHERE = 0, DEVICE = 1, HOST = 2, HOST_NUMA_CURRENT = 4 };
    const bool is_host = location->type >= HOST && location->type <= HOST_NUMA_CURRENT;
    if (location->type == DEVICE && location->id) return false;
    if (type == MANAGED) {
        *kind = MEMORY_MANAGED;
        return location->type == NOWHERE || location->type == DEVICE || is_host;
    }
    *kind = is_host ? MEMORY_PINNED : MEMORY_DEVICE;
    return type == PINNED && (location->type == DEVICE || is_host);
}

static CUresult create_pool(CUmemoryPool *out, const CUmemPoolProps *properties) {
    memory_kind kind;
    if (!out || !properties || !kind_of(properties->allocType, &properties->location, &kind))
        return CUDA_ERROR_INVALID_VALUE;
    *out = new_pool(kind);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties) {
    DRIVER_CALL(cuMemPoolCreate, NEED_INIT, create_pool(out, properties));
}

static CUresult destroy_pool(CUmemoryPool pool) {
    if (!handle_is(pool, HANDLE_POOL)) return CUDA_ERROR_INVALID_VALUE;
    for (int k = 0; k < N_POOLS; k++)
        if (pool == default_pools[k]) return CUDA_ERROR_INVALID_VALUE;
    handle_free(pool, HANDLE_POOL);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    DRIVER_CALL(cuMemPoolDestroy, NEED_INIT, destroy_pool(pool));
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    (void)bytes;
    DRIVER_CALL(cuMemPoolTrimTo, NEED_INIT, check_pool(pool));
}

/* Attributes 1 to 3 are flags, as ints; the others are sizes of 8 bytes. */
static CUresult pool_attribute(CUmemoryPool pool, int attribute, void *value, bool set) {
    enum { LAST_FLAG = 3, THRESHOLD, LAST = 8 };
    if (check_pool(pool) || !value || attribute < 1 || attribute > LAST)
        return CUDA_ERROR_INVALID_VALUE;
    if (set && attribute == THRESHOLD) memcpy(&pool->threshold, value, sizeof pool->threshold);
    if (set) return CUDA_SUCCESS;
    const uint64_t out = attribute <= LAST_FLAG   ? 1
                         : attribute == THRESHOLD ? pool->threshold
                                                  : memory_in_use();
    memcpy(value, &out, attribute <= LAST_FLAG ? sizeof(int) : sizeof out);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    DRIVER_CALL(cuMemPoolSetAttribute, NEED_INIT, pool_attribute(pool, attribute, value, true));
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    DRIVER_CALL(cuMemPoolGetAttribute, NEED_INIT, pool_attribute(pool, attribute, value, false));
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const void *access, size_t n) {
    DRIVER_CALL(cuMemPoolSetAccess, NEED_INIT,
                n && !access ? CUDA_ERROR_INVALID_VALUE : check_pool(pool));
}

/* Memory of graphs: attributes 0 and 1 are bytes in use, 2 and 3 bytes reserved, now and at
 * most. */
static CUresult graph_memory(CUdevice device, int attribute, uint64_t *value) {
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (attribute < 0 || attribute > 3 || !value) return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    for (size_t k = 0; k < memory_count(); k++) {
        const allocation *a = memory_at(k);
        if (a && a->reserved && a->live) *value += a->bytes;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value) {
    DRIVER_CALL(cuDeviceGetGraphMemAttribute, NEED_INIT, graph_memory(device, attribute, value));
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    DRIVER_CALL(cuDeviceGraphMemTrim, NEED_INIT, device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS);
}

static CUresult pool_of(CUmemoryPool *out, const CUmemLocation *location, int type) {
    memory_kind kind;
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    if (location->type == 1 && location->id) return CUDA_ERROR_INVALID_DEVICE;
    return kind_of(type, location, &kind) ? default_pool(out, kind) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location, int type) {
    DRIVER_CALL(cuMemGetDefaultMemPool, NEED_INIT, pool_of(out, location, type));
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, int type) {
    DRIVER_CALL(cuMemGetMemPool, NEED_INIT, pool_of(out, location, type));
}

static CUresult pool_access(int *flags, CUmemoryPool pool, const CUmemLocation *location) {
    if (!flags || !location || check_pool(pool)) return CUDA_ERROR_INVALID_VALUE;
    *flags = 3; /* reads and writes */
    return location->id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location) {
    DRIVER_CALL(cuMemPoolGetAccess, NEED_INIT, pool_access(flags, pool, location));
}
